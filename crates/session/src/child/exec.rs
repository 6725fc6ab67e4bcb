//! Forking, and becoming the program.
//!
//! Between `fork` and `execve` other threads' locks may be held for ever, so the child does
//! system calls only; everything it needs was made before.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::inherited::{Inherited, KernelAction, SIGNALS, bit, kernel_action, kernel_mask};
use super::{environment, search, signals};

/// Interprets scripts that name no interpreter.
const SHELL: &CStr = c"/bin/sh";
/// Status of a child that could not become the program; its parent never passes it on.
const NEVER_STARTED: libc::c_int = 127;
/// Interval timers: they survive `execve`, but not `fork`.
const TIMERS: [libc::c_int; 3] = [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF];

/// An array of C strings as `execve` takes it.
struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(owned: Vec<CString>) -> Self {
        let pointers = owned.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Strings { _owned: owned, pointers }
    }
}

/// What the child has to do.
struct Plan<'a> {
    files: Vec<CString>,
    arguments: Strings,
    environment: &'a Strings,
    inherited: &'a Inherited,
    timers: [libc::itimerval; 3],
}

/// Why the child could not become the program, and with which file.
struct Failure {
    error: io::Error,
    file: usize,
}

/// Starts a program. Returns its process id.
pub fn start(
    command: &[OsString],
    variables: &[(OsString, OsString)],
    inherited: &Inherited,
) -> io::Result<libc::pid_t> {
    let name = command.first().ok_or(io::ErrorKind::InvalidInput)?;
    let paths = search::candidates(name);
    let files: Vec<CString> = paths.iter().map(|p| text(p.as_os_str())).collect::<Result<_, _>>()?;
    let arguments: Vec<CString> = command.iter().map(|a| text(a)).collect::<Result<_, _>>()?;
    let environment = Strings::new(environment::with(environment::own(), variables)?);
    inherited.hide_new_descriptors();
    let plan = |files, arguments| Plan {
        files,
        arguments: Strings::new(arguments),
        environment: &environment,
        inherited,
        timers: [libc::itimerval { it_interval: NO_TIME, it_value: NO_TIME }; 3],
    };
    let failure = match fork(plan(files, arguments.clone()))? {
        Ok(pid) => return Ok(pid),
        Err(failure) => failure,
    };
    // No format that the kernel knows: a shell would read it as commands, if it is text.
    let script = paths.get(failure.file).filter(|path| is_for_shell(&failure.error, path));
    let Some(script) = script else { return Err(failure.error) };
    let mut arguments = arguments.into_iter().skip(1).collect::<Vec<_>>();
    arguments.splice(0..0, [SHELL.to_owned(), text(script.as_os_str())?]);
    fork(plan(vec![SHELL.to_owned()], arguments))?.map_err(|failure| failure.error)
}

const NO_TIME: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 0 };

fn text(of: &OsStr) -> io::Result<CString> {
    CString::new(of.as_bytes()).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}

fn is_for_shell(error: &io::Error, path: &Path) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC) && search::is_script(path)
}

/// Forks. The outer error is ours, the inner one is that the program could not be executed.
fn fork(mut plan: Plan) -> io::Result<Result<libc::pid_t, Failure>> {
    let (reading, writing) = pipe()?;
    // Nothing is delivered until it is known whom to pass it on to.
    kernel_mask(Some(u64::MAX));
    let before = signals::catch();
    for (which, timer) in TIMERS.into_iter().zip(&mut plan.timers) {
        let none = libc::itimerval { it_interval: NO_TIME, it_value: NO_TIME };
        // SAFETY: both are structures of ours. The timer moves to the child.
        unsafe { libc::setitimer(which, &none, timer) };
    }
    // SAFETY: the child does nothing but system calls until it is the program, see `become_it`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        become_it(&plan, writing.as_raw_fd());
    }
    let error = io::Error::last_os_error();
    drop(writing);
    let failure = if pid > 0 { failure(pid, reading) } else { None };
    if pid < 0 || failure.is_some() {
        for (which, timer) in TIMERS.into_iter().zip(&plan.timers) {
            // SAFETY: gives this process its timer back.
            unsafe { libc::setitimer(which, timer, std::ptr::null_mut()) };
        }
        signals::release(before);
    } else {
        signals::pass_on_to(pid);
        // SAFETY: sets a number of this process: orphans are the program's, or the caller's.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0) };
    }
    // Whatever is sent to us is the program's: none stays blocked, even if the caller blocks it.
    kernel_mask(Some(0));
    match failure {
        _ if pid < 0 => Err(error),
        Some(failure) => Ok(Err(failure)),
        None => Ok(Ok(pid)),
    }
}

/// Waits until the child is the program, which closes the pipe, or until it says why not.
fn failure(pid: libc::pid_t, reading: OwnedFd) -> Option<Failure> {
    let mut bytes = Vec::new();
    let read = std::fs::File::from(reading).take(8).read_to_end(&mut bytes);
    let (code, file) = (bytes.get(..4)?, bytes.get(4..8)?);
    read.ok()?;
    // SAFETY: buries the child, which ends by itself now.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    let number = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let file = usize::try_from(number(file)).unwrap_or_default();
    Some(Failure { error: io::Error::from_raw_os_error(number(code)), file })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = MaybeUninit::<[RawFd; 2]>::uninit();
    // SAFETY: room for two descriptors, which are ours alone if the call succeeds.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr().cast(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        let [reading, writing] = ends.assume_init();
        Ok((OwnedFd::from_raw_fd(reading), OwnedFd::from_raw_fd(writing)))
    }
}

/// The child's part: system calls only, and no return.
fn become_it(plan: &Plan, writing: RawFd) -> ! {
    let inherited = plan.inherited;
    for signal in (1..=SIGNALS).filter(|s| *s != libc::SIGKILL && *s != libc::SIGSTOP) {
        let ignored = inherited.ignored & bit(signal) != 0;
        let handler = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
        kernel_action(signal, Some(&KernelAction { handler, ..KernelAction::default() }), None);
    }
    inherited.limits.apply();
    // SAFETY: all are plain system calls on numbers and on structures that live until `execve`.
    unsafe {
        for (which, timer) in TIMERS.into_iter().zip(&plan.timers) {
            libc::setitimer(which, timer, std::ptr::null_mut());
        }
        if inherited.at_parents_death != 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, inherited.at_parents_death as libc::c_ulong);
        }
        if inherited.adopts {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong);
        }
        for fd in (0..3).filter(|fd| inherited.closed & (1 << fd) != 0) {
            libc::close(fd);
        }
    }
    kernel_mask(Some(inherited.blocked));
    let (code, file) = execute(plan);
    let mut message = [0; 8];
    message[..4].copy_from_slice(&code.to_ne_bytes());
    message[4..].copy_from_slice(&(file as i32).to_ne_bytes());
    // SAFETY: eight bytes of ours; then this process is no more.
    unsafe {
        libc::write(writing, message.as_ptr().cast(), message.len());
        libc::_exit(NEVER_STARTED)
    }
}

/// Tries the files in turn, as `execvp` does. Returns why none became the program, and which.
fn execute(plan: &Plan) -> (libc::c_int, usize) {
    let mut denied = None;
    let mut last = (libc::ENOENT, 0);
    for (number, file) in plan.files.iter().enumerate() {
        // SAFETY: C strings and null-terminated arrays of them, made before the fork.
        let code = unsafe {
            libc::execve(file.as_ptr(), plan.arguments.pointers.as_ptr(), plan.environment.pointers.as_ptr());
            *libc::__errno_location()
        };
        last = (code, number);
        match code {
            libc::EACCES => denied = Some(last),
            libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
            _ => return last,
        }
    }
    denied.unwrap_or(last)
}
