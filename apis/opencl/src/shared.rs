//! Events of the program of which we own a reference, so that it can be hidden.
//!
//! A table in the library for the few that most programs have at a time, and a large one, made when
//! that is full: there is one such event for each command in flight that the program asked for one.

use hetrace_interpose::commands::pages;
use hetrace_interpose::published::Published;
use hetrace_interpose::table::Table;

use crate::generated::prelude::P;

/// Twice as many places as commands can be in flight by default, so that they are found soon.
type Large = Table<{ 2 << 20 }>;

static SMALL: Table<16384> = Table::new();
static LARGE: Published<Large> = Published::new();

fn large() -> Option<&'static Large> {
    // SAFETY: null, or zeroed pages that stay, which are an empty table.
    unsafe { LARGE.get().as_ref() }
}

/// A reference to this event is ours from now on.
pub fn add(event: P) {
    if !SMALL.set(event as u64, 1)
        && let Some(large) = large().or_else(make)
    {
        large.set(event as u64, 1);
    }
}

#[cold]
fn make() -> Option<&'static Large> {
    // Whoever is second wastes addresses, and no memory.
    LARGE.first(pages(size_of::<Large>()).cast());
    large()
}

/// Whether a reference to this event is ours.
pub fn has(event: P) -> bool {
    SMALL.get(event as u64).is_some() || large().is_some_and(|l| l.get(event as u64).is_some())
}

/// Our reference is about to be released.
pub fn remove(event: P) {
    if SMALL.remove(event as u64).is_none()
        && let Some(large) = large()
    {
        large.remove(event as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ours_until_they_are_given_up() {
        // More than the small table holds, and as many as it may lose to neighbours.
        let event = |i: usize| (0x7f00_0000_0000 + 64 * i) as P;
        let most = 3 * 16384;
        (0..most).for_each(|i| add(event(i)));
        assert!((0..most).all(|i| has(event(i))) && !has(event(most)));
        assert!(large().is_some(), "the small one was full");
        (0..most).step_by(2).for_each(|i| remove(event(i)));
        assert!((0..most).all(|i| has(event(i)) == (i % 2 == 1)));
        remove(event(0));
        assert!(!has(event(0)));
        (0..most).for_each(|i| remove(event(i)));
        assert!(!(0..most).any(|i| has(event(i))));
    }
}
