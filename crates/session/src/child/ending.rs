//! Hearing of the program's end at once.
//!
//! The launcher sleeps on a word that programs wake when their rings fill, and can't wait for a
//! process at the same time. SIGCHLD would interrupt it, but its disposition is the caller's. So a
//! thread waits, and leaves the status for who buries the program.

use std::io;

use super::inherited::kernel_mask;

/// Calls `then` when a child of ours has ended or is none any more, from another thread. If there
/// can be no thread, or this kernel's filters forbid to wait so, nobody calls it.
pub fn call_at_end(pid: libc::pid_t, then: impl FnOnce() + Send + 'static) {
    // What is sent to this process is for the main thread, which stops and continues it.
    let mask = kernel_mask(Some(u64::MAX));
    let builder = std::thread::Builder::new().name("hetrace-end".to_owned()).stack_size(64 << 10);
    let _ = builder.spawn(move || {
        if is_over(pid) {
            then();
        }
    });
    kernel_mask(Some(mask));
}

/// Waits until a child has ended. Returns whether that is known.
fn is_over(pid: libc::pid_t) -> bool {
    let Ok(id) = libc::id_t::try_from(pid) else { return false };
    loop {
        // SAFETY: all zeros are a valid structure, which is ours to write to.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, id, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if ended == 0 {
            return true;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            // Somebody else has buried it.
            Some(libc::ECHILD) => return true,
            _ => return false,
        }
    }
}
