//! Whose numbers are in memory that a forked child has from its parent.
//!
//! The child must not report what its parent counted, so whoever comes first there clears them. Others that come meanwhile
//! wait for the few stores that this takes, or what they count would be cleared, too. Not for ever: the process may
//! have been forked in the midst of that, or a handler may have interrupted it.
//!
//! `tests/loom_process.rs` explores the interleavings.

use crate::primitive::{AtomicU32, Ordering, spin_loop};

/// The process; 0: nobody's.
#[derive(Debug, Default)]
pub(crate) struct Owner(AtomicU32);

/// No process has this id.
const CLEARING: u32 = u32::MAX;
const PATIENCE: u32 = 10_000;

impl Owner {
    /// Nobody's.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Owner(AtomicU32::new(0))
    }

    /// Nobody's.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Owner(AtomicU32::new(0))
    }

    /// Returns whether the numbers are this process's.
    #[inline]
    pub(crate) fn is(&self, pid: u32) -> bool {
        // Pairs with the Release store in `take`: they are cleared.
        self.0.load(Ordering::Acquire) == pid
    }

    /// Makes them this process's, if they are not. `clear` clears what another has counted. Returns whether this did it.
    #[cold]
    pub(crate) fn take(&self, pid: u32, clear: impl Fn()) -> bool {
        for _ in 0..PATIENCE {
            let there = self.0.load(Ordering::Acquire);
            if there == pid {
                return false;
            }
            let order = (Ordering::Acquire, Ordering::Relaxed);
            if there == CLEARING {
                spin_loop();
            } else if self.0.compare_exchange(there, CLEARING, order.0, order.1).is_ok() {
                if there != 0 {
                    clear();
                }
                // Pairs with the Acquire loads in `is` and above.
                self.0.store(pid, Ordering::Release);
                return true;
            }
        }
        // Nobody is at it any more.
        clear();
        self.0.compare_exchange(CLEARING, pid, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn set(&self, pid: u32) {
        self.0.store(pid, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_another_counted_is_cleared_once() {
        let (owner, cleared) = (Owner::new(), Cell::new(0));
        let take = |pid| owner.take(pid, || cleared.set(cleared.get() + 1));
        assert!(take(7) && owner.is(7) && !take(7));
        assert_eq!(cleared.get(), 0, "they were nobody's");
        assert!(take(8) && owner.is(8) && !take(8));
        assert_eq!(cleared.get(), 1);
    }

    #[test]
    fn a_child_that_was_forked_in_the_midst_of_it_goes_on() {
        let (owner, cleared) = (Owner::new(), Cell::new(0));
        owner.set(CLEARING);
        assert!(owner.take(7, || cleared.set(1)) && owner.is(7));
        assert_eq!(cleared.get(), 1);
    }
}
