//! Hearing of the program's end at once.
//!
//! The launcher sleeps on a word that programs wake when their rings fill, and can't wait for a
//! process at the same time. SIGCHLD would interrupt it, but its disposition is the caller's. So a
//! thread waits, and leaves the status for who buries the program.

use std::io;
use std::sync::mpsc::{Sender, channel};

use super::inherited::kernel_mask;

/// A thread that waits for the end of a program.
#[derive(Debug)]
pub struct Ending(Option<Sender<libc::pid_t>>);

impl Ending {
    /// Makes the thread, which calls `then` when the program of [`Ending::of`] has ended or is no child of ours any
    /// more. If there can be no thread, or this kernel's filters forbid to wait so, nobody calls it.
    ///
    /// This is done before the program is started: with the first thread the C library takes signals for
    /// itself that are to be passed on.
    pub fn new(then: impl FnOnce() + Send + 'static) -> Self {
        // What is sent to this process is for the main thread, which stops and continues it.
        let mask = kernel_mask(Some(u64::MAX));
        let builder = std::thread::Builder::new().name("hetrace-end".to_owned()).stack_size(64 << 10);
        let (send, receive) = channel();
        let thread = builder.spawn(move || {
            // None comes if the program could not be started.
            if receive.recv().is_ok_and(is_over) {
                then();
            }
        });
        kernel_mask(Some(mask));
        Ending(thread.ok().map(|_| send))
    }

    /// Names the program, a child of ours.
    pub fn of(self, pid: libc::pid_t) {
        // Nobody receives it if there is no thread.
        let _ = self.0.map(|send| send.send(pid));
    }
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
