//! Calls that are added up by function instead of being recorded one by one.
//!
//! Of some all that is known is that they were made: reading the counter twice is a part of what adding a call up takes. Their
//! time is taken to be that of the others, and the record says what error that leaves.
//!
//! The sums stand in the ring's header, so that the drainer finds them when the program is killed. The thread
//! itself makes records of them now and then; a function keeps its place for as long as the thread has the ring.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{FOLD_RECORD, FOLD_RECORD_WORDS, Writer, add_in_one, count_in, put_words};
use crate::abi::{ADDED_UP, OpenFold, RingHeader, SUMS};
use crate::clock;
use crate::record::IDS_PER_CALL;

impl Writer {
    /// Adds a call up: the number of its function's event for many calls, and the counter values before and
    /// after it. Returns false if there is no place for one more function, or no ring.
    pub fn add_up(&self, fold_id: u16, before: u64, after: u64) -> bool {
        let Some(sum) = self.header().and_then(|header| place(header, fold_id)) else { return false };
        if sum.count.load(Ordering::Relaxed) == 0 {
            sum.first.store(before, Ordering::Relaxed);
        }
        sum.last.store(after, Ordering::Relaxed);
        let ticks = after.wrapping_sub(before);
        add_in_one(&sum.total, ticks);
        add_in_one(&sum.timed, 1);
        let squares = sum.squares.load(Ordering::Relaxed).saturating_add(ticks.saturating_mul(ticks));
        sum.squares.store(squares, Ordering::Relaxed);
        // Last: what is counted has its time.
        add_in_one(&sum.count, 1);
        true
    }

    /// Counts a call that is about to be made and whose time is not to be known. Returns false if no call of the function was
    /// [added up](Self::add_up) since the last record: then nothing would be known of their times.
    #[inline(always)]
    pub fn count_up(&self, fold_id: u16) -> bool {
        let known = |sum: &&OpenFold| {
            sum.id.load(Ordering::Relaxed) == u32::from(fold_id) && sum.timed.load(Ordering::Relaxed) != 0
        };
        // Where most functions have their place; others are added up.
        let sum = self.header().and_then(|header| header.sums.get(first_place(fold_id))).filter(known);
        if let Some(sum) = sum {
            add_in_one(&sum.count, 1);
        }
        sum.is_some()
    }

    /// As [`count_up`](Self::count_up), if the thread is at a step where this call's time is not to be known, and it is the
    /// program's own.
    #[inline(always)]
    pub fn counts_only(&self, fold_id: u16) -> bool {
        let counts = self.meter.may_only_count() && !self.is_inside() && self.count_up(fold_id);
        if counts {
            self.meter.only_counts();
            self.meter.call(true);
        }
        counts
    }

    /// Takes back what [`count_up`](Self::count_up) counted: the call is recorded.
    #[cold]
    pub fn count_down(&self, fold_id: u16) {
        if let Some(sum) = self.header().and_then(|header| place(header, fold_id)) {
            // A record may have been made of it meanwhile, by a handler: then it is in two.
            if sum.count.load(Ordering::Relaxed) > 0 {
                add_in_one(&sum.count, 1u64.wrapping_neg());
            }
        }
    }

    /// Makes records of what was added up. What finds no room stays where it is.
    pub fn flush_sums(&self) {
        if self.is_inside() && !self.is_inside_no_more() {
            return; // A handler's call within the tracer's own: now there is room for nothing.
        }
        for number in 0..SUMS {
            let Some(sum) = self.header().and_then(|header| header.sums.get(number)) else { return };
            if sum.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let id = sum.id.load(Ordering::Relaxed) as u16;
            let body = |at: *mut u8| {
                // Taken when there is room, for which the thread may have waited, or gone to another ring: until
                // then the drainer finds it in the sums if the program is killed. None is left if a handler made
                // the record meanwhile, and what one adds from here on comes into this record or into the next one.
                let sum = self.header().and_then(|header| place(header, id));
                let [count, rest @ ..] = sum.map_or([0; FOLD_RECORD_WORDS], |sum| take(sum).words());
                let [first, last, total, error] = rest;
                // SAFETY: as many words as the length says.
                unsafe { put_words(at, [count | ADDED_UP, first, last, total, error]) };
            };
            // SAFETY: `body` writes as many words as a record of that length has.
            unsafe { self.write(id, FOLD_RECORD, false, clock::ticks, body) };
        }
    }

    /// Counts as lost what was added up and is in no record: the thread ends, and its ring is another's.
    pub(super) fn lose_sums(&self) {
        let Some(header) = self.header() else { return };
        for sum in &header.sums {
            count_in(&header.lost_calls, sum.count.swap(0, Ordering::Relaxed));
        }
    }
}

/// What a sum has, or had.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub count: u64,
    pub first: u64,
    pub last: u64,
    total: u64,
    timed: u64,
    squares: u64,
}

impl Sum {
    /// What stands there now.
    pub fn of(sum: &OpenFold) -> Self {
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Self {
            count: get(&sum.count),
            first: get(&sum.first),
            last: get(&sum.last),
            total: get(&sum.total),
            timed: get(&sum.timed),
            squares: get(&sum.squares),
        }
    }

    /// As a record has it: count, first, last, the time of all calls, and the standard error of that.
    pub fn words(self) -> [u64; FOLD_RECORD_WORDS] {
        let (total, error) = self.of_all();
        [self.count, self.first, self.last, total, error]
    }

    /// Ticks of all calls, and the standard error of that: of calls that are taken by chance, without putting any back.
    fn of_all(self) -> (u64, u64) {
        if self.timed == 0 || self.timed >= self.count {
            return (self.total, 0); // A handler may be counting at this moment.
        }
        let (all, timed, total) = (self.count as f64, self.timed as f64, self.total as f64);
        let mean = total / timed;
        // One alone says nothing of how much others differ, nor do squares that are too much.
        let variance = match (self.timed, self.squares) {
            (1, _) | (_, u64::MAX) => mean * mean,
            _ => (self.squares as f64 - total * mean).max(0.0) / (timed - 1.0),
        };
        let error = all * (variance / timed * (1.0 - timed / all)).sqrt();
        ((all * mean) as u64, error as u64)
    }
}

/// Takes what a sum has, which is empty afterwards.
fn take(sum: &OpenFold) -> Sum {
    // First of all: it is another's as soon as nothing is counted.
    let first = sum.first.load(Ordering::Relaxed);
    let count = sum.count.swap(0, Ordering::Relaxed);
    Sum {
        count,
        first,
        last: sum.last.load(Ordering::Relaxed),
        total: sum.total.swap(0, Ordering::Relaxed),
        timed: sum.timed.swap(0, Ordering::Relaxed),
        squares: sum.squares.swap(0, Ordering::Relaxed),
    }
}

/// Where a function's place is looked for first.
fn first_place(fold_id: u16) -> usize {
    usize::from(fold_id / IDS_PER_CALL) % SUMS
}

/// The place of a function, which is taken if need be.
fn place(header: &RingHeader, fold_id: u16) -> Option<&OpenFold> {
    let (front, back) = header.sums.split_at_checked(first_place(fold_id))?;
    let id = u32::from(fold_id);
    back.iter().chain(front).find(|sum| {
        let there = sum.id.load(Ordering::Relaxed);
        there == id
            // Not a store: a handler may take it for another function at this very moment. Release: pairs
            // with the Acquire load in `reader::open_folds`.
            || (there == 0
                && match sum.id.compare_exchange(0, id, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => true,
                    Err(other) => other == id,
                })
    })
}

/// Forgets what another thread has added up.
pub(super) fn clear(header: &RingHeader) {
    for sum in &header.sums {
        sum.id.store(0, Ordering::Relaxed);
        for word in [&sum.count, &sum.total, &sum.timed, &sum.squares] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// The thread is about to go on in another ring: functions have the same places there.
pub(super) fn make_places(old: &RingHeader, new: &RingHeader) {
    clear(new);
    for (from, to) in old.sums.iter().zip(&new.sums) {
        to.id.store(from.id.load(Ordering::Relaxed), Ordering::Release);
    }
}

/// The thread has gone on in another ring, and handlers add up there.
pub(super) fn hand_over(old: &RingHeader, new: &RingHeader) {
    for from in &old.sums {
        let Sum { count, first, last, total, timed, squares } = take(from);
        if count == 0 {
            continue;
        }
        let Some(to) = place(new, from.id.load(Ordering::Relaxed) as u16) else {
            // Handlers have met more functions than there are places, just before and just now.
            count_in(&new.lost_calls, count);
            continue;
        };
        if to.count.load(Ordering::Relaxed) == 0 || to.first.load(Ordering::Relaxed) > first {
            to.first.store(first, Ordering::Relaxed);
        }
        to.last.fetch_max(last, Ordering::Relaxed);
        add_in_one(&to.total, total);
        add_in_one(&to.timed, timed);
        let all = to.squares.load(Ordering::Relaxed).saturating_add(squares);
        to.squares.store(all, Ordering::Relaxed);
        add_in_one(&to.count, count);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn sum(times: &[u64], count: u64) -> [u64; FOLD_RECORD_WORDS] {
        let (total, squares) =
            (times.iter().sum(), times.iter().map(|t| t.saturating_mul(*t)).fold(0, u64::saturating_add));
        Sum { count, total, timed: times.len() as u64, squares, ..Sum::default() }.words()
    }

    #[test]
    fn what_was_timed_is_exact() {
        assert_eq!(sum(&[10, 30, 20], 3), [3, 0, 0, 60, 0]);
        assert_eq!(sum(&[10, 30], 1), [1, 0, 0, 40, 0], "a handler is counting");
        assert_eq!(sum(&[], 7), [7, 0, 0, 0, 0], "a run of polls");
    }

    #[test]
    fn what_was_counted_has_the_time_of_the_others_and_its_error() {
        assert_eq!(sum(&[50; 10], 160), [160, 0, 0, 8000, 0]);
        // One alone: as much error as time.
        assert_eq!(sum(&[50], 1000), [1000, 0, 0, 50_000, 49_974]);
        // The square of the error is 160² × 46.7/10 × (1 - 10/160).
        let [.., total, error] = sum(&[40, 50, 60, 45, 55, 50, 44, 56, 43, 57], 160);
        assert_eq!((total, error), (8000, 334));
        let [.., error] = sum(&[1 << 40, 1], 4);
        assert!(error > 1 << 20, "squares that are too much: {error}");
    }
}
