//! A pointer that one thread leaves for others, with all that it wrote to where the pointer leads.
//!
//! * It is left with *Release* and found with *Acquire*.
//! * [`Published::take`] is an exchange: of several that take it one has it. So is [`Published::first`]: of several that
//!   leave one at once, one has left it, and all find that.
//!
//! `tests/loom_process.rs` explores the interleavings.

use crate::primitive::{AtomicPtr, Ordering};

/// The pointer; NULL if there is none.
#[repr(transparent)]
#[derive(Debug)]
pub struct Published<T>(AtomicPtr<T>);

impl<T> Published<T> {
    /// None.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Published(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// None.
    #[cfg(loom)]
    pub fn new() -> Self {
        Published(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the pointer.
    #[inline(always)]
    pub fn get(&self) -> *mut T {
        // Pairs with the Release exchange in `set`: what it leads to is written.
        self.0.load(Ordering::Acquire)
    }

    /// Leaves it for others; NULL: there is none any more.
    pub fn set(&self, pointer: *mut T) {
        // Pairs with the Acquire load in `get`. An exchange, as in `take`: it comes before or after that one.
        self.0.swap(pointer, Ordering::Release);
    }

    /// Leaves it for others unless there is one. Returns the one that is there then.
    pub fn first(&self, pointer: *mut T) -> *mut T {
        // Release: pairs with the Acquire load in `get`. Acquire: another's is written.
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(std::ptr::null_mut(), pointer, order.0, order.1) {
            Ok(_) => pointer,
            Err(there) => there,
        }
    }

    /// Takes it away, and returns it.
    pub fn take(&self) -> *mut T {
        // Acquire: pairs with the Release exchange in `set`. Release: who finds that it is gone finds it as it was left.
        self.0.swap(std::ptr::null_mut(), Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_taken_once() {
        let (published, mut value) = (Published::<u32>::new(), 7);
        assert!(published.get().is_null() && published.take().is_null());
        published.set(&raw mut value);
        assert!(std::ptr::eq(published.get(), &raw const value));
        assert!(std::ptr::eq(published.take(), &raw const value));
        assert!(published.get().is_null() && published.take().is_null());
    }

    #[test]
    fn the_first_one_stays() {
        let (published, mut one, mut two) = (Published::<u32>::new(), 1, 2);
        let (one, two) = (&raw mut one, &raw mut two);
        assert!(
            [published.first(one), published.first(two), published.get()].iter().all(|there| *there == one)
        );
    }
}
