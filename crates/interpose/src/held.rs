//! Work that no signal handler of the program leaves half done.
//!
//! A handler may leave by `siglongjmp`, and what it interrupted never goes on. If that was a walk over the
//! dynamic loader's list, the list's lock stays locked, and the next thread waits for ever.

/// As long as it lives, signals to this thread are pending.
pub(crate) struct Held {
    before: libc::sigset_t,
}

impl Held {
    pub(crate) fn new() -> Self {
        // SAFETY: a set of signals is plain words, for which zeroes are valid.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: two sets of our own; only this thread's mask is changed. It does not touch `errno`.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        }
        Held { before }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the mask that `new` found; null says that nobody wants the present one.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
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
            let _outer = Held::new();
            assert_eq!(raise(), 0);
            drop(Held::new());
            assert_eq!(raise(), 0, "still held: the inner one found the signals held");
        }
        assert_eq!(CAME.load(Ordering::SeqCst), 1, "equal pending signals are one");
        assert_eq!(raise(), 2, "they come again");
        // SAFETY: what was there before.
        unsafe { libc::signal(libc::SIGURG, before) };
    }
}
