//! A thread of ours, and those that want something of it.
//!
//! * [`Duty`]: whether the thread is at something that must not be torn off, and whether it may begin anything. Both stand in
//!   one word, so that who stops it either is waited for or finds it idle.
//! * [`Requests`]: how often it was asked for something, and how often that was done. What the asker did before comes
//!   before the work, and the work before the asker goes on.
//! * [`Bell`]: that there is something to do. Who takes it finds what was asked for before it rang.
//!
//! Who sleeps and who wakes up whom is not here: these are system calls. `tests/loom_worker.rs` explores the interleavings.

use crate::primitive::{AtomicBool, AtomicU32, Ordering};

/// Whether a thread works, and may.
#[derive(Debug)]
pub struct Duty(AtomicU32);

const WORKS: u32 = 1;
const STOPPED: u32 = 2;

impl Duty {
    /// It does not, and may.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Duty(AtomicU32::new(0))
    }

    /// It does not, and may.
    #[cfg(loom)]
    pub fn new() -> Self {
        Duty(AtomicU32::new(0))
    }

    /// The thread: begins to work. Returns whether it may.
    pub fn begin(&self) -> bool {
        // Pairs with the exchange in `stop`.
        if self.0.fetch_or(WORKS, Ordering::AcqRel) & STOPPED == 0 {
            return true;
        }
        self.end();
        false
    }

    /// The thread: it is at nothing any more.
    pub fn end(&self) {
        // Pairs with the Acquire load in `is_idle`: what it did is done.
        self.0.fetch_and(!WORKS, Ordering::Release);
    }

    /// Any other: the thread begins nothing from now on.
    pub fn stop(&self) {
        self.0.fetch_or(STOPPED, Ordering::AcqRel);
    }

    /// Any other: whether it is at nothing. After [`Duty::stop`] that stays so.
    pub fn is_idle(&self) -> bool {
        // Pairs with the Release exchange in `end`.
        self.0.load(Ordering::Acquire) & WORKS == 0
    }
}

/// What a thread is asked for.
#[derive(Debug)]
pub struct Requests {
    asked: AtomicU32,
    done: AtomicU32,
    last: AtomicBool,
}

impl Requests {
    /// Nothing.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Requests { asked: AtomicU32::new(0), done: AtomicU32::new(0), last: AtomicBool::new(false) }
    }

    /// Nothing.
    #[cfg(loom)]
    pub fn new() -> Self {
        Requests { asked: AtomicU32::new(0), done: AtomicU32::new(0), last: AtomicBool::new(false) }
    }

    /// Asks. `last`: nothing comes after it. Returns the request's number.
    pub fn ask(&self, last: bool) -> u32 {
        if last {
            // First: who finds the number finds this.
            self.last.swap(true, Ordering::Release);
        }
        // Pairs with the Acquire load in `pending`.
        self.asked.fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Returns whether a request was answered, as of the number of those that were: see [`Requests::done`].
    pub fn has(done: u32, request: u32) -> bool {
        done.wrapping_sub(request).cast_signed() >= 0
    }

    /// Returns the number of requests that were answered.
    pub fn done(&self) -> u32 {
        // Pairs with the Release store in `finish`: what they asked for is done.
        self.done.load(Ordering::Acquire)
    }

    /// The word that has this number, to sleep on.
    #[cfg(not(loom))]
    pub fn done_word(&self) -> &AtomicU32 {
        &self.done
    }

    /// The thread: returns the number of the last request that was not answered, and whether one of those said that it is
    /// the last.
    pub fn pending(&self) -> Option<(u32, bool)> {
        // Pairs with the Release addition in `ask`: what the asker did before is seen.
        let asked = self.asked.load(Ordering::Acquire);
        if asked == self.done.load(Ordering::Relaxed) {
            return None;
        }
        Some((asked, self.last.swap(false, Ordering::AcqRel)))
    }

    /// The thread: has done what was asked for up to that one.
    pub fn finish(&self, asked: u32) {
        // Pairs with the Acquire load in `done`.
        self.done.store(asked, Ordering::Release);
    }
}

/// Whether there is something to do.
#[derive(Debug)]
pub struct Bell(AtomicU32);

impl Bell {
    /// It has not rung.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Bell(AtomicU32::new(0))
    }

    /// It has not rung.
    #[cfg(loom)]
    pub fn new() -> Self {
        Bell(AtomicU32::new(0))
    }

    /// Rings; the word is 1 from now on.
    pub fn ring(&self) {
        // Pairs with the Acquire exchange in `take`, and comes before or after it.
        self.0.swap(1, Ordering::Release);
    }

    /// The thread: returns whether it has rung since this was called last. The word is 0 from now on.
    pub fn take(&self) -> bool {
        // Never a plain store: what rings in that moment would be forgotten, and with it what was asked for.
        self.0.swap(0, Ordering::Acquire) != 0
    }

    /// The word, to sleep on.
    #[cfg(not(loom))]
    pub fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_was_stopped_begins_nothing() {
        let duty = Duty::new();
        assert!(duty.is_idle() && duty.begin() && !duty.is_idle());
        duty.stop();
        assert!(!duty.is_idle(), "it is still at it");
        duty.end();
        assert!(duty.is_idle() && !duty.begin() && duty.is_idle());
    }

    #[test]
    fn requests_are_answered_together() {
        let requests = Requests::new();
        assert!(requests.pending().is_none());
        let (first, second) = (requests.ask(false), requests.ask(true));
        assert!(!Requests::has(requests.done(), first));
        assert_eq!(requests.pending(), Some((second, true)));
        let third = requests.ask(false);
        requests.finish(second);
        let done = requests.done();
        assert!(Requests::has(done, first) && Requests::has(done, second) && !Requests::has(done, third));
        assert_eq!(requests.pending(), Some((third, false)), "the last one was answered");
    }

    #[test]
    fn a_bell_is_taken_once() {
        let bell = Bell::new();
        assert!(!bell.take());
        bell.ring();
        bell.ring();
        assert!(bell.take() && !bell.take());
    }
}
