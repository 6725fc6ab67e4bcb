//! Two numbers that belong together, such as the times of two clocks at one moment: one thread at a time sets both, any
//! thread reads both.
//!
//! * The version is odd while they are being set. Who finds the same even one before and after has read both of one time.
//! * Both are stored with *Release* and loaded with *Acquire*: who has read one of them sees, when it looks at the version
//!   again, that they are being set. That needs no fence, and loom proves it.
//!
//! `tests/loom_process.rs` explores the interleavings.

use crate::primitive::{AtomicU64, Ordering, spin_loop};

/// The numbers. Zeroed memory: none were set.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Pair {
    version: AtomicU64,
    first: AtomicU64,
    second: AtomicU64,
}

/// How often a reader looks again. In the midst of setting are a few instructions; a handler may have interrupted them, or
/// another thread was preempted.
#[cfg(not(loom))]
const PATIENCE: u32 = 64;
/// All that loom can try.
#[cfg(loom)]
const PATIENCE: u32 = 2;

impl Pair {
    /// Whether they were set.
    pub fn is_set(&self) -> bool {
        self.version.load(Ordering::Relaxed) > 1
    }

    /// Sets both. Not two threads at once.
    pub fn set(&self, first: u64, second: u64) {
        let version = self.version.load(Ordering::Relaxed);
        // One that left in the midst of it has left an odd one.
        let odd = version | 1;
        self.version.store(odd, Ordering::Relaxed);
        // Pair with the Acquire loads in `get`, which see the odd version then.
        self.first.store(first, Ordering::Release);
        self.second.store(second, Ordering::Release);
        // Pairs with the first Acquire load in `get`: both are there.
        self.version.store(odd + 1, Ordering::Release);
    }

    /// Returns both; none if they were not set, or are being set for long.
    pub fn get(&self) -> Option<(u64, u64)> {
        for _ in 0..PATIENCE {
            let before = self.version.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            let both = (self.first.load(Ordering::Acquire), self.second.load(Ordering::Acquire));
            if before & 1 == 0 && self.version.load(Ordering::Relaxed) == before {
                return Some(both);
            }
            spin_loop();
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_as_they_were_set() {
        let pair = Pair::default();
        assert_eq!((pair.is_set(), pair.get()), (false, None));
        pair.set(0, 7);
        assert_eq!((pair.is_set(), pair.get()), (true, Some((0, 7))));
        pair.set(8, 9);
        assert_eq!(pair.get(), Some((8, 9)));
    }

    #[test]
    fn one_that_stays_in_the_midst_of_setting_is_waited_for_not_for_ever() {
        let pair = Pair::default();
        pair.set(1, 2);
        pair.version.store(3, Ordering::Relaxed);
        assert_eq!(pair.get(), None);
        pair.set(3, 4);
        assert_eq!(pair.get(), Some((3, 4)), "and the next one sets them");
    }
}
