//! The next tool's callbacks, to which events are passed on.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use hetrace_interpose::published::Published;

use crate::generated::prelude::P;

/// More than there are events.
pub const EVENTS: usize = 64;

/// Its callbacks, by the event's number.
pub static CALLBACKS: [Published<c_void>; EVENTS] = [const { Published::new() }; EVENTS];

/// Returns the next tool's callback of an event.
///
/// # Safety
/// `F` is that event's type.
#[inline(always)]
pub unsafe fn callback<F: Copy>(event: c_uint) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<P>()) };
    let there = CALLBACKS.get(event as usize)?.get();
    // SAFETY: not NULL, so the function that the tool has set for this event, whose type is `F` by the specification.
    (!there.is_null()).then(|| unsafe { std::mem::transmute_copy::<P, F>(&there) })
}

/// Returns the address of the next tool's callback of an event; NULL if it has none.
pub fn raw(event: c_uint) -> *const c_void {
    CALLBACKS.get(event as usize).map_or(null_mut(), Published::get).cast_const()
}
