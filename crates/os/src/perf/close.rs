//! Closing many tracepoints, which takes the kernel long.
//!
//! The last close of a tracepoint waits until no CPU can still be in it: 25 to 50 ms each, one after the
//! other. Nobody should wait for that at the end of a run, so a process of its own does: it holds the
//! descriptors, closes everything else, waits until this process has closed its own, and ends.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};

/// Drops what holds these events, without waiting for the kernel. If there can be no other process, it
/// waits.
pub fn quickly<T>(holder: T, events: impl Fn(&T) -> Vec<BorrowedFd<'_>>) {
    let Ok((reading, writing)) = pipe_with(PipeFlags::CLOEXEC) else { return };
    let mut kept: Vec<RawFd> = events(&holder).iter().map(AsRawFd::as_raw_fd).collect();
    kept.push(reading.as_raw_fd());
    kept.sort_unstable();
    // SAFETY: the child does nothing but system calls on numbers, and does not return.
    match unsafe { libc::fork() } {
        0 => wait_and_end(&kept, reading.as_raw_fd()),
        // Closed by the child alone, then; or by this process, if there is none.
        _ => drop(holder),
    }
    drop(writing);
}

/// The child's part. Other threads of its parent may have held locks, so it makes system calls only.
fn wait_and_end(kept: &[RawFd], pipe: RawFd) -> ! {
    let mut byte = 0u8;
    // SAFETY: system calls on numbers and on one byte of ours. After `_exit` this process is no more.
    unsafe {
        // Signals of the terminal are for others.
        libc::setsid();
        let mut first: libc::c_uint = 0;
        for fd in kept {
            let fd = fd.cast_unsigned();
            if first < fd {
                libc::syscall(libc::SYS_close_range, first, fd - 1, 0);
            }
            first = fd + 1;
        }
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
        // The other end is closed by now, also in this process: this returns when the parent closes its own.
        while libc::read(pipe, (&raw mut byte).cast(), 1) == -1 && *libc::__errno_location() == libc::EINTR {}
        libc::_exit(0)
    }
}
