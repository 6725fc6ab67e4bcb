//! Work that no signal handler of the program leaves half done.
//!
//! A handler may leave by `siglongjmp`, and what it interrupted never goes on. If that was a walk over the
//! dynamic loader's list, the list's lock stays locked, and the next thread waits for ever.

/// Signals 32 and 33, by which the C library makes threads end and change their user. It waits until they have, so
/// they are never held; and its own functions would forget that a program was started with them blocked.
const OF_THE_C_LIBRARY: u64 = 0b11 << 31;

/// As long as it lives, signals to this thread are pending. A thread that is begun meanwhile begins so.
#[derive(Debug)]
pub struct Held {
    before: u64,
}

/// Holds signals to this thread.
#[must_use]
pub fn hold() -> Held {
    Held { before: mask(libc::SIG_BLOCK, !OF_THE_C_LIBRARY) }
}

impl Drop for Held {
    fn drop(&mut self) {
        mask(libc::SIG_SETMASK, self.before);
    }
}

/// Changes this thread's mask of signals, as the kernel has it, and returns the one before. With these arguments it
/// can't fail, and so leaves `errno` alone.
fn mask(how: libc::c_int, signals: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: two sets of our own, of the size that the kernel has them in; only this thread's mask is changed.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const signals, &raw mut before, size_of::<u64>())
    };
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static CAME: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn on_signal(_: libc::c_int) {
        CAME.fetch_add(1, Ordering::SeqCst);
    }

    #[test]
    fn signals_come_when_the_work_is_done() {
        let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: a handler that only counts, for a signal that nobody else uses here.
        let before = unsafe { libc::signal(libc::SIGURG, handler) };
        let raise = || {
            // SAFETY: the signal has a handler, and goes to this thread.
            unsafe { libc::raise(libc::SIGURG) };
            CAME.load(Ordering::SeqCst)
        };
        {
            let _outer = hold();
            assert_eq!(raise(), 0);
            drop(hold());
            assert_eq!(raise(), 0, "still held: the inner one found the signals held");
        }
        assert_eq!(CAME.load(Ordering::SeqCst), 1, "equal pending signals are one");
        assert_eq!(raise(), 2, "they come again");
        // SAFETY: what was there before.
        unsafe { libc::signal(libc::SIGURG, before) };
    }

    #[test]
    fn the_mask_comes_back_whole() {
        // A thread of its own: what it blocks is nobody else's business.
        let thread = std::thread::spawn(|| {
            let odd = OF_THE_C_LIBRARY | 1 << (libc::SIGURG - 1);
            mask(libc::SIG_SETMASK, odd);
            drop(hold());
            let (after, held) = (mask(libc::SIG_SETMASK, 0), hold());
            let during = mask(libc::SIG_BLOCK, 0);
            drop(held);
            assert_eq!(after, odd, "with the signals of the C library, which its own functions forget");
            assert_eq!(during & OF_THE_C_LIBRARY, 0, "they are not held");
        });
        assert!(thread.join().is_ok());
    }
}
