//! What the caller handed down to this process.
//!
//! Rust's runtime ignores SIGPIPE and opens `/dev/null` for closed standard descriptors
//! before `main`. A program that is started must find both as the caller left them, so they
//! are read before that, by a function that the C runtime calls at the start.

use std::fs;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::limits::{self, Limits};

/// Signals that the caller ignores: bit `n - 1` for signal `n`.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Signals that the caller blocks, likewise.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Closed ones of the descriptors 0 to 2.
static CLOSED: AtomicU32 = AtomicU32::new(0);
static READ: AtomicBool = AtomicBool::new(false);

/// Highest signal number of Linux.
pub const SIGNALS: libc::c_int = 64;

/// `struct sigaction` as the kernel has it. The C library's refuses the signals 32 and 33,
/// which it keeps for itself; a program may find them ignored nevertheless.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelAction {
    /// A function, or `SIG_DFL` or `SIG_IGN`.
    pub handler: usize,
    /// `SA_*`.
    pub flags: libc::c_ulong,
    /// What a handler returns to.
    pub restorer: usize,
    /// Blocked while the handler runs.
    pub mask: u64,
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    let mut ignored = 0;
    for signal in 1..=SIGNALS {
        let mut action = KernelAction::default();
        if kernel_action(signal, None, Some(&mut action)) && action.handler == libc::SIG_IGN {
            ignored |= bit(signal);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(kernel_mask(None), Ordering::Relaxed);
    let mut closed = 0;
    for fd in 0..3 {
        // SAFETY: asks for flags only.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            closed |= 1 << fd;
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    READ.store(true, Ordering::Relaxed);
}

/// Returns the bit of a signal in a set.
pub fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// `rt_sigaction` itself. Returns whether it succeeded. Async-signal-safe.
pub fn kernel_action(
    signal: libc::c_int,
    new: Option<&KernelAction>,
    old: Option<&mut KernelAction>,
) -> bool {
    let new = new.map_or(std::ptr::null(), |a| a as *const KernelAction);
    let old = old.map_or(std::ptr::null_mut(), |a| a as *mut KernelAction);
    // SAFETY: both are null or structures of the kernel's form; the last argument is the
    // size of its signal sets. Who passes a handler answers for it.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, size_of::<u64>()) == 0 }
}

/// Sets the signal mask of this thread, if given, and returns the one before.
/// Async-signal-safe.
pub fn kernel_mask(new: Option<u64>) -> u64 {
    let mut old = 0u64;
    let set = new.as_ref().map_or(std::ptr::null(), |m| m as *const u64);
    // SAFETY: null or a set of the kernel's size, and room for another.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            set,
            &mut old as *mut u64,
            size_of::<u64>(),
        )
    };
    old
}

/// What a program started by us has to find.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    /// Ignored signals.
    pub ignored: u64,
    /// Blocked signals.
    pub blocked: u64,
    /// Closed ones of the descriptors 0 to 2.
    pub closed: u32,
    /// Limits that this process has raised for itself.
    pub limits: Limits,
    /// Descriptors that were open and would be after `exec`, if that is known.
    open: Option<Vec<RawFd>>,
    /// The signal that the caller wants at its parent's death.
    pub at_parents_death: libc::c_int,
    /// Whether orphans below the program become its children.
    pub adopts: bool,
}

impl Inherited {
    /// Takes note of everything, and prepares this process for its own work: a status of the
    /// program must be there to be had, a write beyond a limit is an error and no signal, and
    /// limits are as high as they may be.
    pub fn take() -> Inherited {
        let mut death: libc::c_int = 0;
        let mut adopts: libc::c_int = 0;
        // SAFETY: each writes an int of ours, or sets a number.
        unsafe {
            libc::prctl(libc::PR_GET_PDEATHSIG, &mut death as *mut libc::c_int);
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut adopts as *mut libc::c_int);
            // With SIGCHLD ignored the kernel throws statuses away.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        }
        let read = READ.load(Ordering::Relaxed);
        debug_assert!(read, "the C runtime calls what lies in .init_array");
        Inherited {
            ignored: IGNORED.load(Ordering::Relaxed),
            blocked: BLOCKED.load(Ordering::Relaxed),
            closed: CLOSED.load(Ordering::Relaxed),
            limits: limits::raise(),
            open: open_past_exec(),
            at_parents_death: death,
            adopts: adopts != 0,
        }
    }

    /// Keeps from the program what libraries have opened in this process since without
    /// `O_CLOEXEC`: NVML opens devices so.
    pub fn hide_new_descriptors(&self) {
        let (Some(before), Some(now)) = (&self.open, open_past_exec()) else { return };
        for fd in now.into_iter().filter(|fd| *fd > 2 && !before.contains(fd)) {
            // SAFETY: sets a flag of a descriptor; if it is closed by now, nothing.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Descriptors without `FD_CLOEXEC`; nothing without `/proc`.
fn open_past_exec() -> Option<Vec<RawFd>> {
    let names = fs::read_dir("/proc/self/fd").ok()?.flatten();
    let all = names.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    // SAFETY: asks for flags only. The folder's own descriptor has the flag.
    let stays = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } == 0;
    Some(all.filter(stays).collect())
}
