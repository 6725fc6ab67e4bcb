//! Events with times, used again and again: one pool per context or device.
//!
//! The lock is held for a few instructions and no call of the driver, and is
//! only ever tried: who does not get it makes an event, or destroys one.

use crate::mapped::pages;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

type P = *mut c_void;

/// Events kept; more are destroyed when they come back.
const KEPT: usize = 8192;
const TRIES: usize = 200;

/// The free events.
#[derive(Debug)]
pub struct Pool {
    locked: AtomicBool,
    count: AtomicUsize,
    events: AtomicPtr<P>,
}

impl Pool {
    /// An empty one.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Pool {
        Pool {
            locked: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            events: AtomicPtr::new(null_mut()),
        }
    }

    fn locked<R>(&self, work: impl FnOnce(&AtomicUsize, *mut P) -> R) -> Option<R> {
        for _ in 0..TRIES {
            if !self.locked.swap(true, Ordering::Acquire) {
                let mut events = self.events.load(Ordering::Relaxed);
                if events.is_null() {
                    events = pages(KEPT * size_of::<P>()).cast();
                    self.events.store(events, Ordering::Relaxed);
                }
                let result = work(&self.count, events);
                self.locked.store(false, Ordering::Release);
                return Some(result);
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Returns a free event of the pool, or a new one. NULL if there is none to be had.
    #[inline]
    pub fn take(&self, make: impl FnOnce() -> P) -> P {
        let taken = self.locked(|count, events| {
            let kept = count.load(Ordering::Relaxed);
            if kept == 0 || events.is_null() {
                return null_mut();
            }
            count.store(kept - 1, Ordering::Relaxed);
            // SAFETY: below the count, so it was put there.
            unsafe { *events.add(kept - 1) }
        });
        match taken {
            Some(event) if !event.is_null() => event,
            _ => make(),
        }
    }

    /// Gives an event back that nothing refers to any more; `destroy` gets one that finds no room.
    pub fn give(&self, event: P, destroy: impl FnOnce(P)) {
        let given = self.locked(|count, events| {
            let kept = count.load(Ordering::Relaxed);
            if events.is_null() || kept >= KEPT {
                return false;
            }
            // SAFETY: below the capacity, and the lock is ours.
            unsafe { *events.add(kept) = event };
            count.store(kept + 1, Ordering::Relaxed);
            true
        });
        if given != Some(true) {
            destroy(event);
        }
    }

    /// Forgets all events: their context has ended, and they with it.
    pub fn forget(&self) {
        // Whoever held the lock has left by now: nobody uses the context.
        self.locked.store(false, Ordering::Relaxed);
        self.locked(|count, _| count.store(0, Ordering::Relaxed));
    }
}
