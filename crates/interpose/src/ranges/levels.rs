//! How deep each thread's ranges are nested, domain by domain.
//!
//! Only domains in which the thread has open ranges take a place, so programs
//! may have any number of domains. The first few places are the thread's own; those behind are shared by all threads,
//! since a library that is loaded late takes its threads' storage from a reserve of the dynamic loader, of which
//! the program's own libraries need what is left.
//!
//! The very first place stays its domain's when the last range of that is closed, until another domain wants it: a program
//! with one domain finds it again and again, and looks nowhere else. A domain that has it has no other place.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::table::Table;

/// What push and pop answer when the level is not known.
pub const NO_TRACKING: i32 = -2;
/// Domains in which one thread has open ranges, in its own places besides the first.
const DOMAINS: usize = 3;

/// Further ones: a thread's domain → how many of its ranges are open.
static MORE: Table<1024> = Table::new();
/// How many there are, so that nobody looks for nothing.
static FURTHER: AtomicU32 = AtomicU32::new(0);

/// A domain of this thread, in [`MORE`].
fn key(domain: u64) -> u64 {
    // Not its id: a forked child goes on where its parent was.
    // SAFETY: no preconditions.
    let thread = unsafe { libc::pthread_self() } as u64;
    let hash = (domain ^ thread.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Neither of the two keys that a table has a use for itself.
    (hash ^ hash >> 31).clamp(1, u64::MAX - 1)
}

/// As [`Levels::push`], of a domain that has no place of the thread's own; `may_begin` if it may take one here.
#[cold]
fn push_further(domain: u64, may_begin: bool) -> Option<i32> {
    let key = key(domain);
    let open = MORE.get(key).unwrap_or(0);
    if open == 0 && !may_begin {
        return None;
    }
    if !MORE.set(key, open.saturating_add(1)) {
        return Some(NO_TRACKING);
    }
    FURTHER.fetch_add(u32::from(open == 0), Ordering::Relaxed);
    Some(i32::try_from(open).unwrap_or(i32::MAX))
}

#[cold]
fn pop_further(domain: u64) -> i32 {
    let key = key(domain);
    let Some(level) = MORE.get(key).and_then(|open| open.checked_sub(1)) else { return NO_TRACKING };
    if level > 0 {
        MORE.set(key, level);
    } else if MORE.remove(key).is_some() {
        FURTHER.fetch_sub(1, Ordering::Relaxed);
    }
    i32::try_from(level).unwrap_or(i32::MAX)
}

struct Levels {
    /// A domain, and how many of its ranges are open: none, too.
    first: Cell<(u64, u32)>,
    used: Cell<usize>,
    /// The domain, and how many of its ranges are open: at least one.
    open: [Cell<(u64, u32)>; DOMAINS],
}

thread_local! {
    // Constant and without a destructor: nothing is registered or allocated, and
    // the last calls of a dying thread find it.
    static LEVELS: Levels = const {
        Levels { first: Cell::new((0, 0)), used: Cell::new(0), open: [const { Cell::new((0, 0)) }; DOMAINS] }
    };
}

impl Levels {
    fn places(&self) -> &[Cell<(u64, u32)>] {
        self.open.get(..self.used.get()).unwrap_or(&[])
    }

    #[inline]
    fn push(&self, domain: u64) -> i32 {
        let (there, count) = self.first.get();
        if there != domain {
            return self.push_elsewhere(domain, count == 0);
        }
        self.first.set((domain, count.saturating_add(1)));
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// Of another domain than the first place's, which is free.
    #[cold]
    fn push_elsewhere(&self, domain: u64, is_free: bool) -> i32 {
        if is_free && self.used.get() == 0 && FURTHER.load(Ordering::Relaxed) == 0 {
            self.first.set((domain, 1));
            return 0;
        }
        for place in self.places() {
            let (there, count) = place.get();
            if there == domain {
                place.set((domain, count.saturating_add(1)));
                return i32::try_from(count).unwrap_or(i32::MAX);
            }
        }
        // Its first range may have begun when all places were taken.
        let has_further = FURTHER.load(Ordering::Relaxed) > 0;
        if has_further && let Some(level) = push_further(domain, false) {
            return level;
        }
        let used = self.used.get();
        let Some(place) = self.open.get(used) else {
            return push_further(domain, true).unwrap_or(NO_TRACKING);
        };
        place.set((domain, 1));
        self.used.set(used + 1);
        0
    }

    #[inline]
    fn pop(&self, domain: u64) -> i32 {
        let (there, count) = self.first.get();
        if there != domain {
            return self.pop_elsewhere(domain);
        }
        let Some(level) = count.checked_sub(1) else { return NO_TRACKING };
        self.first.set((domain, level));
        i32::try_from(level).unwrap_or(i32::MAX)
    }

    #[cold]
    fn pop_elsewhere(&self, domain: u64) -> i32 {
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
        if FURTHER.load(Ordering::Relaxed) > 0 { pop_further(domain) } else { NO_TRACKING }
    }
}

/// Opens a range of this thread. Returns its level, from 0 on.
#[inline]
pub fn push(domain: u64) -> i32 {
    LEVELS.try_with(|levels| levels.push(domain)).unwrap_or(NO_TRACKING)
}

/// Closes this thread's last range. Returns its level.
#[inline]
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
    fn a_domain_that_loses_the_first_place_is_found_where_it_goes_on() {
        std::thread::spawn(|| {
            // 1 has the first place, 2 another; 1 ends, and 2 goes on where it is.
            assert_eq!([push(1), push(2), pop(1), push(2)], [0, 0, 0, 1]);
            // 1 still has the first place, with nothing open.
            assert_eq!([pop(1), push(1), push(3), pop(1)], [NO_TRACKING, 0, 0, 0]);
            assert_eq!([pop(2), pop(2), pop(2), pop(3)], [1, 0, NO_TRACKING, 0]);
            // All are closed: another takes the first place.
            assert_eq!([push(4), push(1), pop(4), pop(1), pop(1)], [0, 0, 0, 0, NO_TRACKING]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn many_domains_one_after_another() {
        for domain in 1..1000 {
            assert_eq!([push(domain), push(domain), pop(domain), pop(domain)], [0, 1, 1, 0]);
        }
    }

    #[test]
    fn many_domains_at_once_have_levels_all_the_same() {
        let each = |from: u64| {
            let all = from..from + 40;
            assert!(all.clone().all(|domain| push(domain) == 0));
            assert!(all.clone().all(|domain| push(domain) == 1));
            // Places of the thread's own are free again: those further ones stay where they are.
            for domain in from..from + 3 {
                assert_eq!([pop(domain), pop(domain), pop(domain)], [1, 0, NO_TRACKING]);
            }
            assert!(all.clone().skip(3).all(|domain| push(domain) == 2 && pop(domain) == 2));
            assert!(all.clone().skip(3).all(|domain| pop(domain) == 1 && pop(domain) == 0));
            assert!(all.clone().all(|domain| pop(domain) == NO_TRACKING));
        };
        // Threads have levels of their own, in the same domains.
        std::thread::scope(|threads| (0..8).for_each(|_| _ = threads.spawn(|| each(1000))));
        assert_eq!((push(99), pop(99)), (0, 0));
        // And what there is no room for is not tracked. Here, since all threads share it.
        let levels: Vec<i32> = (5000..9000).map(push).collect();
        let tracked = levels.iter().filter(|level| **level == 0).count();
        assert!(tracked > 500 && levels.contains(&NO_TRACKING), "{tracked}");
        assert_eq!((5000..9000).map(pop).filter(|level| *level == 0).count(), tracked);
    }
}
