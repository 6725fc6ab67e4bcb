//! Which calls' records are wanted in a session with a capture window: CUPTI makes them for all work of the process
//! for a while after the window was closed, and of what was enqueued outside nothing is to be recorded.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hetrace_interpose::commands::Mapped;
use hetrace_interpose::ring::abi::option;
use hetrace_interpose::session;

/// Whether the session has a window.
static WINDOWED: AtomicBool = AtomicBool::new(false);
const PLACES: usize = 4 << 20;
/// By the low bits of correlation ids, which count up: the next bits of one that is wanted.
static WANTED: Mapped<AtomicU8, PLACES> = Mapped::new();

/// Looks at the session.
pub fn start() {
    let windowed = session().is_some_and(|s| s.option(option::WINDOW));
    WINDOWED.store(windowed, Ordering::Relaxed);
}

/// What stands in the place of a wanted id: never 0.
fn tag(id: u64) -> u8 {
    (id / PLACES as u64) as u8 | 0x80
}

/// The records of this id are wanted.
#[inline]
pub fn add(id: u64) {
    if WINDOWED.load(Ordering::Relaxed)
        && let Some(place) = WANTED.or_map().get(id as usize % PLACES)
    {
        place.store(tag(id), Ordering::Relaxed);
    }
}

/// Whether records of this id are wanted.
pub fn has(id: u64) -> bool {
    let place = || WANTED.all().get(id as usize % PLACES).map_or(0, |place| place.load(Ordering::Relaxed));
    id == 0 || !WINDOWED.load(Ordering::Relaxed) || place() == tag(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_wanted() {
        assert!(has(7), "all are without a window");
        WINDOWED.store(true, Ordering::Relaxed);
        let again = 7 + PLACES as u64;
        assert!(!has(7) && !has(again) && has(0));
        add(7);
        assert!(has(7) && !has(8) && !has(again), "an id in the same place is another");
        add(again);
        assert!(has(again) && !has(7));
    }
}
