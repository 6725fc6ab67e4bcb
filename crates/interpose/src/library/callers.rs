//! Who makes a call, found without the unwinder and without a lock.
//!
//! A recorded call goes on from inside of its wrapper, so that the return address of the program's own
//! call lies some words further up the stack. How many is the same each time: where this library calls
//! something, its frames have one size, for none of its functions makes room on the stack that is not
//! known when it is compiled. So the unwinder is asked once for each such place ([`learn`]). A place for
//! which it says two things is never believed again.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dlsym::each_frame;
use crate::real::is_ours;
use crate::table::Table;

/// So many calls of this library's functions by one another are followed.
const DEEPEST: usize = 8;
/// Stands for the size of a frame that differs.
const VARIES: u64 = u64::MAX;

/// Place in this library that a call returns to → bytes from where that return address lies to where
/// the next one lies.
static FRAMES: Table<2048> = Table::new();

/// Where a local variable of [`super::scope`] lies below its return address; 0 if that is not known yet.
static SCOPE: AtomicUsize = AtomicUsize::new(0);

/// A call from outside of this library: where it returns to, and where on the stack that return address lies.
pub(super) type Call = (*const c_void, *const *const c_void);

/// Returns the call from outside that led to the one whose return address lies at `place`; `None` if that
/// is not known without the unwinder.
///
/// # Safety
/// At `place` lies the return address of a call that has not returned yet.
pub(super) unsafe fn call_at(place: *const *const c_void) -> Option<Call> {
    let mut place = place;
    for _ in 0..DEEPEST {
        // SAFETY: at first the contract; later the frame just passed has the size that the unwinder found
        // for its place in the code, so that the return address of its function lies here.
        let at = unsafe { *place };
        if !is_ours(at) {
            return Some((at, place));
        }
        let size = FRAMES.get(at as u64).filter(|size| *size != 0 && *size != VARIES)?;
        place = place.wrapping_byte_add(size as usize);
    }
    None
}

/// As [`call_at`], with the unwinder's help where that is needed. NULL if it does not know either.
///
/// # Safety
/// At `place` lies the return address of a call that has not returned yet.
pub(super) unsafe fn call_to(place: *const *const c_void) -> Call {
    // SAFETY: contract: the call whose return address lies at `place` has not returned yet.
    unsafe { call_at(place) }.unwrap_or_else(|| learn(place))
}

/// The call from outside that led to [`super::scope`]. NULL if the unwinder does not know it.
///
/// # Safety
/// `local` is a variable of that function, which has not returned, or of one inlined into it: the same one in
/// each call.
pub(super) unsafe fn call_to_scope(local: *const c_void) -> Call {
    let distance = SCOPE.load(Ordering::Relaxed);
    if distance != 0 {
        let place = local.wrapping_byte_add(distance).cast();
        // SAFETY: a function's frame has one size, and its variable one place there: so far above it lies
        // its return address, as the unwinder has shown.
        return unsafe { call_to(place) };
    }
    let mut place = std::ptr::null();
    // What a function calls has its return address below the function's variables.
    each_frame(|_, lies| {
        place = lies as *const *const c_void;
        lies <= local as usize
    });
    if place as usize <= local as usize {
        return (std::ptr::null(), std::ptr::null());
    }
    SCOPE.store(place as usize - local as usize, Ordering::Relaxed);
    // SAFETY: the unwinder has shown that a return address lies here, of a function that has not returned.
    unsafe { call_to(place) }
}

/// Asks the unwinder for the call from outside that led to the one whose return address lies at `place`,
/// and remembers the frames between. NULL if it does not know.
#[cold]
pub(super) fn learn(place: *const *const c_void) -> Call {
    let mut inner: Option<(*const c_void, usize)> = None;
    each_frame(|at, lies| {
        if inner.is_none() && lies != place as usize {
            return true; // Of a function that we called since.
        }
        if let Some((called, before)) = inner {
            remember_frame(called, lies.wrapping_sub(before) as u64);
        }
        inner = Some((at, lies));
        true
    });
    match inner {
        Some((at, lies)) if !is_ours(at) => (at, lies as *const *const c_void),
        _ => (std::ptr::null(), std::ptr::null()),
    }
}

fn remember_frame(at: *const c_void, size: u64) {
    let at = at as u64;
    match FRAMES.get(at) {
        // 0: another thread is about to say it.
        None | Some(0) => _ = FRAMES.set(at, size),
        Some(known) if known == size || known == VARIES => {}
        Some(_) => _ = FRAMES.set(at, VARIES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address outside of this program, and two inside of it.
    fn places() -> (*const c_void, *const c_void, *const c_void) {
        // SAFETY: a NUL-terminated name.
        let outside = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getppid".as_ptr()) };
        let inside = call_at as *const c_void;
        (outside, inside.wrapping_byte_add(1), inside.wrapping_byte_add(2))
    }

    #[test]
    fn frames_are_followed_once_their_size_is_known() {
        let (outside, first, second) = places();
        let stack = [first, std::ptr::null(), second, std::ptr::null(), std::ptr::null(), outside];
        let from = |at: usize| {
            // SAFETY: a place of `stack`, above which lie as many words as the frames here are said to have.
            unsafe { call_at(&raw const stack[at]) }.map(|(caller, _)| caller)
        };
        assert_eq!((from(5), from(2), from(0)), (Some(outside), None, None));
        remember_frame(second, 24);
        assert_eq!((from(2), from(0)), (Some(outside), None));
        remember_frame(first, 16);
        assert_eq!(from(0), Some(outside));
        remember_frame(first, 16);
        assert_eq!(from(0), Some(outside));
        // A frame that had another size once is never believed.
        remember_frame(first, 40);
        remember_frame(first, 16);
        assert_eq!((from(2), from(0)), (Some(outside), None));
    }
}
