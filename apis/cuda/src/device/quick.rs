//! Launches of the kernel that a thread launched last, within a budget and where few are timed: those that are only counted are
//! known by one comparison each, and everything else is looked up for one launch in sixteen.
//!
//! What a thread has here is its own: words beside its slot. Counts are atomic, and hand nothing over.

use hetrace_interpose::commands::sample::Counted;

use super::{functions, slot};
use crate::generated::prelude::P;

/// Words of the slot: the kernel's handle, its count, the number of the launch that is timed next, and what is left of
/// [`LAUNCHES`] beside the age of handles.
const KERNEL: usize = 2;
const COUNTED: usize = 3;
const NEXT: usize = 4;
const LEFT: usize = 5;
/// Launches until the thread's account is looked at.
const LAUNCHES: u64 = 15;
/// The bits of what is left.
const BITS: u32 = 8;

/// The launches of a kernel were looked up, and the one of number `next` is the next that is timed.
pub fn remember(kernel: P, counted: &'static Counted, next: u64) {
    slot::set_word::<LEFT>(0);
    slot::set_word::<KERNEL>(kernel as u64);
    slot::set_word::<COUNTED>(std::ptr::from_ref(counted) as u64);
    slot::set_word::<NEXT>(next);
    // A handler that comes before this finds that nothing is left; one that comes in between has its own kernel there.
    slot::set_word::<LEFT>(u64::from(functions::age()) << BITS | LAUNCHES);
}

/// Whether a launch may be one that [`count`] counts.
#[inline(always)]
pub fn may(kernel: P) -> bool {
    slot::word::<KERNEL>() == kernel as u64 && left().is_some()
}

/// The word with what is left, if something is.
#[inline(always)]
fn left() -> Option<u64> {
    let left = slot::word::<LEFT>();
    (left & ((1 << BITS) - 1) != 0 && left >> BITS == u64::from(functions::age())).then_some(left)
}

/// Counts a launch that is about to be made, if it is of the kernel that was remembered and is not to be timed.
#[inline(always)]
pub fn count(kernel: P) -> Option<&'static Counted> {
    if slot::word::<KERNEL>() != kernel as u64 {
        return None;
    }
    slot::set_word::<LEFT>(left()? - 1);
    // SAFETY: what `remember` put there: counts are never freed. A handler that interrupted it left zero launches.
    let counted = unsafe { (slot::word::<COUNTED>() as *const Counted).as_ref() }?;
    counted.count_before(slot::word::<NEXT>()).then_some(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_counted_until_one_is_to_be_timed_or_it_is_time_for_a_look() {
        static COUNTED: Counted = Counted::new();
        let (kernel, other) = (16 as P, 32 as P);
        assert!(count(kernel).is_none(), "nothing is known");
        remember(kernel, &COUNTED, 5);
        assert!(count(other).is_none());
        // Of numbers 0 to 4.
        assert_eq!((0..20).filter(|_| count(kernel).is_some()).count(), 5);
        remember(kernel, &COUNTED, u64::MAX);
        assert_eq!((0..100).filter(|_| count(kernel).is_some()).count(), LAUNCHES as usize);
        remember(kernel, &COUNTED, u64::MAX);
        functions::unloaded();
        assert!(count(kernel).is_none(), "the handle may be another's");
    }
}
