//! Signals sent to the launcher are meant for the program.
//!
//! A terminal sends its own to the whole process group, where the program gets them by itself;
//! what comes from `kill`, a timer or a queue comes to the launcher alone and is passed on.
//! Who sends to the whole group by `kill` sends twice: the two cases look alike from here.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::inherited::{KernelAction, SIGNALS, kernel_action};
use crate::manifest::Exit;

/// The program, while it runs.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// What continues us while we are stopped; its signal is not for the program.
pub(super) static WATCHER: AtomicI32 = AtomicI32::new(0);
/// With which status this process ends as soon as it is asked to: the program has ended and
/// the trace is written.
static STATUS: AtomicI32 = AtomicI32::new(-1);

/// The signal that opens and closes the capture window, or asks for a snapshot, and is not passed on; 0 if there is none.
static TOGGLE: AtomicI32 = AtomicI32::new(0);
/// How often it came.
static TOGGLES: AtomicU32 = AtomicU32::new(0);

/// From now on a signal is the launcher's own: it is counted in [`toggles`], and does not reach the program.
pub fn toggle_on(signal: libc::c_int) {
    TOGGLE.store(signal, Ordering::Relaxed);
}

/// How often the signal came that [`toggle_on`] names.
pub fn toggles() -> u32 {
    TOGGLES.load(Ordering::Relaxed)
}

/// Signals with which the launcher has nothing to do itself. SIGSEGV and SIGBUS are faults
/// of ours, SIGCHLD is how the kernel reports the program's end.
const PASSED_ON: [libc::c_int; 26] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSYS,
];
/// What asks a process to end.
const REQUESTS: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
/// Faults, when the kernel or this process itself sends them.
const FAULTS: [libc::c_int; 5] = [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGFPE, libc::SIGSYS];

fn all() -> impl Iterator<Item = libc::c_int> {
    PASSED_ON.into_iter().chain(32..=SIGNALS)
}

/// Dispositions of this process as they were.
pub struct Before(Vec<(libc::c_int, KernelAction)>);

/// Catches everything that is to be passed on. The caller has all signals blocked.
pub fn catch() -> Before {
    let mut before = Vec::new();
    for signal in all() {
        let mut old = KernelAction::default();
        if kernel_action(signal, None, Some(&mut old)) {
            before.push((signal, old));
        }
        install(signal);
    }
    Before(before)
}

/// Undoes [`catch`].
pub fn release(before: Before) {
    for (signal, action) in &before.0 {
        kernel_action(*signal, Some(action), None);
    }
}

/// Catches one signal.
pub fn install(signal: libc::c_int) {
    // SAFETY: all bit patterns of the structure are valid; the handler does only what a
    // handler may.
    let (action, handler) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = pass_on as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        (action, pass_on as *const () as usize)
    };
    // SAFETY: `action` is filled in, and its handler does only what a handler may.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } == 0 {
        return;
    }
    // The C library keeps 32 and 33 to itself. The kernel has them like all others, with
    // the return path that the C library gave another handler.
    let mut known = KernelAction::default();
    if kernel_action(libc::SIGUSR1, None, Some(&mut known)) && known.handler == handler {
        // Of its own uses one is to cancel threads, the other to change the user of all
        // threads: this process does neither.
        kernel_action(signal, Some(&known), None);
    }
}

/// Sets a signal to its default action.
pub fn set_default(signal: libc::c_int) {
    kernel_action(signal, Some(&KernelAction::default()), None);
}

/// Names the program: from now on it gets what is caught.
pub fn pass_on_to(pid: libc::pid_t) {
    PROGRAM.store(pid, Ordering::Relaxed);
}

/// The program was buried: its number may be another's soon.
pub fn nobody() {
    PROGRAM.store(0, Ordering::Relaxed);
}

/// What is left to do is for people to read: whoever asks us to end may have that at once, with
/// the program's status.
pub fn ended(exit: Exit) {
    let status = match exit {
        Exit::Code(code) => code & 0xff,
        Exit::Signal(signal) => 128 + signal,
    };
    STATUS.store(status, Ordering::Relaxed);
    // Background jobs that write to a terminal stop like all others.
    set_default(libc::SIGTTOU);
    set_default(libc::SIGTSTP);
}

/// Ends this process as the program ended: by the same signal, without a second core dump.
pub fn end_by(signal: libc::c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong);
        set_default(signal);
        libc::kill(libc::getpid(), signal);
    }
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the handler is installed with SA_SIGINFO, so the kernel passes a valid structure;
    // all calls are async-signal-safe, and `errno` is put back.
    unsafe {
        let errno = *libc::__errno_location();
        act(signal, &mut *info);
        *libc::__errno_location() = errno;
    }
}

/// # Safety
/// Only for the handler: `info` is what the kernel passed.
unsafe fn act(signal: libc::c_int, info: &mut libc::siginfo_t) {
    // SAFETY: plain system calls; `si_pid` is read only where the sender is a process.
    unsafe {
        let by_process = info.si_code <= 0;
        let sender = if by_process { info.si_pid() } else { 0 };
        if FAULTS.contains(&signal) && (!by_process || sender == libc::getpid()) {
            // Ours: it comes again, and ends us.
            return set_default(signal);
        }
        let status = STATUS.load(Ordering::Relaxed);
        if status >= 0 && REQUESTS.contains(&signal) {
            libc::_exit(status);
        }
        if signal == TOGGLE.load(Ordering::Relaxed) && by_process {
            TOGGLES.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let program = PROGRAM.load(Ordering::Relaxed);
        // The program's own signals to its process group reach it without us, and those of this
        // process are about its own writes.
        let ours = sender == libc::getpid() || sender == WATCHER.load(Ordering::Relaxed);
        if program <= 0 || by_process && (ours || sender == program) && sender != 0 {
            return;
        }
        if by_process && info.si_code != libc::SI_USER && info.si_code != libc::SI_TKILL {
            // A value comes with it.
            if libc::syscall(libc::SYS_rt_sigqueueinfo, program, signal, info as *mut _) == 0 {
                return;
            }
        } else if !by_process && !is_from_elsewhere(signal) {
            return;
        }
        libc::kill(program, signal);
    }
}

/// Returns whether a signal of the kernel's came to the launcher alone: not from the terminal to the
/// group, but as the terminal's hang-up to the session's leader, or for a continued job.
unsafe fn is_from_elsewhere(signal: libc::c_int) -> bool {
    // SAFETY: plain system calls.
    let leads = unsafe { libc::getsid(0) == libc::getpid() };
    leads && (signal == libc::SIGHUP || signal == libc::SIGCONT)
}
