//! Events with times: one pool per context.

use hetrace_interpose::commands::pool;

use super::driver;
use crate::generated::prelude::{P, null_mut};

/// The free events of a context.
#[derive(Debug)]
pub struct Pool(pool::Pool);

impl Pool {
    pub const fn new() -> Pool {
        Pool(pool::Pool::new())
    }

    /// A free event of the pool, or a new one. NULL if there is none to be had.
    ///
    /// # Safety
    /// The pool's context lives.
    #[inline]
    pub unsafe fn take(&self, context: P) -> P {
        self.0.take(|| make(context))
    }

    /// Gives an event back that nothing refers to any more.
    ///
    /// # Safety
    /// The pool's context lives, and the event is of it.
    pub unsafe fn give(&self, event: P) {
        self.0.give(event, |event| {
            // SAFETY: the event is of this pool's context, which lives; it was not put into the pool, so
            // nothing refers to it.
            unsafe { driver::cuEventDestroy_v2(event) };
        });
    }

    /// Forgets all events: their context has ended, and they with it.
    pub fn forget(&self) {
        self.0.forget();
    }
}

#[cold]
fn make(context: P) -> P {
    let Some(_pushed) = driver::Pushed::new(context) else { return null_mut() };
    // Some other stream may be in capture.
    let _relaxed = driver::Relaxed::new();
    let mut event = null_mut();
    // SAFETY: room for the answer. The flags 0 mean: with times.
    let error = unsafe { driver::cuEventCreate(&mut event, 0) };
    if error == 0 { event } else { null_mut() }
}
