//! How deep each thread's ranges are nested, domain by domain.
//!
//! Only domains in which the thread has open ranges take a place, so programs
//! may have any number of domains.

use std::cell::Cell;

/// What push and pop answer when the level is not known.
pub const NO_TRACKING: i32 = -2;
/// Domains in which one thread has open ranges.
const DOMAINS: usize = 32;

struct Levels {
    used: Cell<usize>,
    /// The domain, and how many of its ranges are open: at least one.
    open: [Cell<(u64, u32)>; DOMAINS],
}

thread_local! {
    // Constant and without a destructor: nothing is registered or allocated, and
    // the last calls of a dying thread find it.
    static LEVELS: Levels =
        const { Levels { used: Cell::new(0), open: [const { Cell::new((0, 0)) }; DOMAINS] } };
}

impl Levels {
    fn places(&self) -> &[Cell<(u64, u32)>] {
        self.open.get(..self.used.get()).unwrap_or(&[])
    }

    fn push(&self, domain: u64) -> i32 {
        for place in self.places() {
            let (there, count) = place.get();
            if there == domain {
                place.set((domain, count.saturating_add(1)));
                return i32::try_from(count).unwrap_or(i32::MAX);
            }
        }
        let used = self.used.get();
        let Some(place) = self.open.get(used) else { return NO_TRACKING };
        place.set((domain, 1));
        self.used.set(used + 1);
        0
    }

    fn pop(&self, domain: u64) -> i32 {
        let places = self.places();
        for place in places {
            let (there, count) = place.get();
            if there != domain {
                continue;
            }
            let level = count.saturating_sub(1);
            if level > 0 {
                place.set((domain, level));
            } else if let Some(last) = places.last() {
                place.set(last.get());
                self.used.set(places.len() - 1);
            }
            return i32::try_from(level).unwrap_or(i32::MAX);
        }
        NO_TRACKING
    }
}

/// Opens a range of this thread. Returns its level, from 0 on.
pub fn push(domain: u64) -> i32 {
    LEVELS.try_with(|levels| levels.push(domain)).unwrap_or(NO_TRACKING)
}

/// Closes this thread's last range. Returns its level.
pub fn pop(domain: u64) -> i32 {
    LEVELS.try_with(|levels| levels.pop(domain)).unwrap_or(NO_TRACKING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_domain_has_its_own_levels() {
        assert_eq!(pop(0), NO_TRACKING);
        assert_eq!([push(0), push(0), push(7), push(0)], [0, 1, 0, 2]);
        assert_eq!([pop(7), pop(7), pop(0), push(0), pop(0), pop(0), pop(0)], [0, -2, 2, 2, 2, 1, 0]);
        assert_eq!(pop(0), NO_TRACKING);
        std::thread::spawn(|| assert_eq!(pop(0), NO_TRACKING)).join().unwrap();
    }

    #[test]
    fn many_domains_one_after_another() {
        for domain in 1..1000 {
            assert_eq!([push(domain), push(domain), pop(domain), pop(domain)], [0, 1, 1, 0]);
        }
    }

    #[test]
    fn too_many_at_once_are_not_tracked() {
        let levels: Vec<i32> = (1..=40).map(push).collect();
        assert_eq!(levels.iter().filter(|l| **l == 0).count(), DOMAINS);
        assert_eq!((1..=40).map(pop).filter(|l| *l == 0).count(), DOMAINS);
        assert_eq!(push(99), 0);
    }
}
