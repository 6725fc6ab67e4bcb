//! Memory that an API has for a thread, and that another may have when that one has ended.

use crate::primitive::{AtomicU32, Ordering};

/// The beginning of what [`thread_extra`](crate::thread_extra) points to: whether it is some
/// thread's. When that one ends, another may have it. Zeroed memory is one of nobody.
#[repr(C)]
#[derive(Debug)]
pub struct Extra {
    used: AtomicU32,
}

impl Extra {
    /// One of nobody.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Extra { used: AtomicU32::new(0) }
    }

    /// Takes what no thread has. Returns whether that worked.
    pub fn take(&self) -> bool {
        // Pairs with the Release store in `release`: its last user is done with it.
        self.used.load(Ordering::Relaxed) == 0
            && self.used.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The thread that took it does not use it any more.
    pub fn release(&self) {
        // Pairs with the Acquire exchange in `take`.
        self.used.store(0, Ordering::Release);
    }
}
