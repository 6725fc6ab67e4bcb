//! Whether all wrappers go through the jumps that choose, and until when: who begins a watch, and who ends one.
//!
//! Who opens a library says until when it may be on its way, and then seals the wrappers. Who ends the watch looks until
//! when it is to last, and whether anybody is inside, and takes that word away *by an exchange from what it saw*. So
//! either the exchange fails, as the time is another by now, or it came before the one who opens, which then finds that
//! somebody is ending the watch, waits for the few stores that this takes, and seals anew. Both change the word by
//! read-modify-write operations, which have one order; no fences are needed.
//!
//! `tests/loom_opening.rs` explores the interleavings.

use crate::primitive::{AtomicBool, AtomicU64, Ordering, spin_loop};

/// How often one looks whether the watch has been ended.
const PATIENCE: u32 = 100_000;

/// Until when a library may be on its way, and whether the wrappers are sealed.
#[derive(Debug)]
pub(super) struct Seal {
    /// Counter value; 0: there is no watch; `u64::MAX`: it never ends.
    until: AtomicU64,
    /// All wrappers go through the jumps that choose.
    sealed: AtomicBool,
    /// Somebody ends the watch.
    ending: AtomicBool,
}

impl Seal {
    /// No watch.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Seal { until: AtomicU64::new(0), sealed: AtomicBool::new(false), ending: AtomicBool::new(false) }
    }

    /// No watch.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Seal { until: AtomicU64::new(0), sealed: AtomicBool::new(false), ending: AtomicBool::new(false) }
    }

    /// Returns until when there is a watch.
    pub(super) fn until(&self) -> u64 {
        // SeqCst, as those that store it: pairs with the fence in `Library::find`.
        self.until.load(Ordering::SeqCst)
    }

    /// A watch lasts until then at the least. Returns false if it never ends anyway. The value is another one
    /// afterwards: who is about to end the watch goes by the old one, and must not find it again.
    pub(super) fn extend(&self, until: u64) -> bool {
        let later = |now: u64| (now != u64::MAX).then(|| until.max(now.saturating_add(1)));
        self.until.fetch_update(Ordering::SeqCst, Ordering::Acquire, later).is_ok()
    }

    /// The watch never ends from now on.
    pub(super) fn keep(&self) {
        self.until.swap(u64::MAX, Ordering::SeqCst);
    }

    /// Seals the wrappers by `seal`, if they are not sealed. [`Seal::extend`] or [`Seal::keep`] was called before.
    pub(super) fn seal(&self, seal: impl FnOnce()) {
        // Who ends the watch is waited for. Not for ever: a signal handler may have interrupted them, or they have no
        // processor.
        let has_ended = (0..PATIENCE).any(|_| {
            // Pairs with the Release store in `end`: the wrappers are as they were left.
            let ending = self.ending.load(Ordering::Acquire);
            if ending {
                spin_loop();
            }
            !ending
        });
        // Otherwise the wrappers may not be sealed any more. Those that they take from us yet are looked up.
        if has_ended && self.sealed.load(Ordering::Acquire) {
            return;
        }
        seal();
        self.sealed.store(true, Ordering::Release);
    }

    /// Ends the watch if `is_over` says so of the time that it was to last to: `unseal` makes the wrappers what they were.
    pub(super) fn end(&self, is_over: impl FnOnce(u64) -> bool, unseal: impl FnOnce()) {
        if self.ending.swap(true, Ordering::AcqRel) {
            return;
        }
        // Pairs with the exchanges in `extend`: who has said so is seen to be inside.
        let until = self.until.load(Ordering::Acquire);
        let over = until != u64::MAX
            && is_over(until)
            && self.until.compare_exchange(until, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if over {
            unseal();
            self.sealed.store(false, Ordering::Release);
        }
        // Pairs with the Acquire load in `seal`.
        self.ending.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_watch_ends_when_it_is_over() {
        let (seal, sealed) = (Seal::new(), Cell::new(0));
        let begin = |until| seal.extend(until) && (seal.seal(|| sealed.set(sealed.get() + 1)), true).1;
        let end = |now| seal.end(|until| until <= now, || sealed.set(0));
        assert!(begin(5) && begin(7));
        assert_eq!((sealed.get(), seal.until()), (1, 7), "sealed once");
        end(6);
        assert_eq!(sealed.get(), 1);
        end(7);
        assert_eq!((sealed.get(), seal.until()), (0, 0));
        assert!(begin(9));
        assert_eq!(sealed.get(), 1, "anew");
    }

    #[test]
    fn what_was_seen_does_not_come_again() {
        let seal = Seal::new();
        assert!(seal.extend(5));
        seal.end(
            |until| {
                assert_eq!(until, 5);
                // Another thread opens something meanwhile, by a clock that is behind.
                seal.extend(3)
            },
            || panic!("it is inside"),
        );
        assert!(seal.until() > 5);
    }

    #[test]
    fn one_that_is_kept_never_ends() {
        let seal = Seal::new();
        seal.keep();
        assert!(!seal.extend(9));
        seal.end(|_| true, || panic!("for ever"));
        assert_eq!(seal.until(), u64::MAX);
    }
}
