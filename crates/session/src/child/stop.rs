//! A program that is stopped stops the launcher, so that a shell sees a stopped job.
//!
//! Whoever continues the launcher continues the program, by the SIGCONT passed on. But the
//! program may also be continued alone, by its number; a stopped launcher can't see that, so a
//! small process watches for it meanwhile.

use std::sync::atomic::Ordering;

use super::inherited::kernel_mask;
use super::signals::{self, WATCHER};

/// How often the watcher looks, in nanoseconds.
const LOOK: libc::c_long = 20_000_000;

/// Stops this process by a signal that stopped the program, until either is continued.
pub fn with(program: libc::pid_t, signal: libc::c_int) {
    let mut path = [0u8; 32];
    path_of_stat(program, &mut path);
    // SAFETY: returns a number.
    let us = unsafe { libc::getpid() };
    // It is not to be stopped or continued with us.
    let mask = kernel_mask(Some(u64::MAX));
    // SAFETY: the child does system calls only, see `watch`.
    let watcher = unsafe { libc::fork() };
    if watcher == 0 {
        watch(us, &path);
    }
    WATCHER.store(watcher.max(0), Ordering::Relaxed);
    if signal != libc::SIGSTOP {
        signals::set_default(signal);
    }
    kernel_mask(Some(mask));
    // SAFETY: stops this process. It goes on here when it is continued.
    unsafe { libc::kill(us, signal) };
    if signal != libc::SIGSTOP {
        signals::install(signal);
    }
    if watcher > 0 {
        // SAFETY: a child of ours, not buried yet.
        unsafe {
            libc::kill(watcher, libc::SIGKILL);
            while libc::waitpid(watcher, std::ptr::null_mut(), 0) == -1
                && *libc::__errno_location() == libc::EINTR
            {}
        }
        WATCHER.store(0, Ordering::Relaxed);
    }
}

/// Writes `/proc/PID/stat` with its NUL.
fn path_of_stat(pid: libc::pid_t, path: &mut [u8; 32]) {
    use std::io::Write;
    // 32 bytes hold any process id.
    let _ = write!(&mut path[..], "/proc/{pid}/stat\0");
}

/// Continues the launcher as soon as the program is not stopped any more. System calls only: it
/// is a copy of a process with threads.
fn watch(launcher: libc::pid_t, path: &[u8; 32]) -> ! {
    let nap = libc::timespec { tv_sec: 0, tv_nsec: LOOK };
    // SAFETY: plain system calls on memory of this process.
    unsafe {
        while libc::getppid() == launcher {
            if !is_stopped(path) {
                // More than once, if need be: it may be about to stop.
                libc::kill(launcher, libc::SIGCONT);
            }
            libc::nanosleep(&nap, std::ptr::null_mut());
        }
        libc::_exit(0)
    }
}

/// Returns whether a process is stopped, by its `stat`. One that is gone is not.
fn is_stopped(path: &[u8; 32]) -> bool {
    let mut text = [0u8; 256];
    // SAFETY: a path with its NUL, and room for as many bytes as are asked for.
    let length = unsafe {
        let fd = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return false;
        }
        let length = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        length
    };
    let text = text.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    // The name before it may have brackets of its own.
    let end = text.iter().rposition(|b| *b == b')');
    matches!(end.and_then(|end| text.get(end + 2)), Some(b'T' | b't'))
}
