//! Calls that are added up by function instead of being recorded one by one.
//!
//! The sums stand in the ring's header, so that the drainer finds them when the program is killed. The thread
//! itself makes records of them now and then; a function keeps its place for as long as the thread has the ring.

use std::sync::atomic::Ordering;

use super::{FOLD_RECORD, Writer, add_in_one, count_in, put_words};
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
        add_in_one(&sum.total, after.wrapping_sub(before));
        // Last: what is counted has its time.
        add_in_one(&sum.count, 1);
        true
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
                let [count, first, last, total] = sum.map_or([0; 4], take);
                // SAFETY: four words, as the length says.
                unsafe { put_words(at, [count | ADDED_UP, first, last, total]) };
            };
            // SAFETY: `body` writes four words.
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

/// Count, first, last and total of a sum, which is empty afterwards.
fn take(sum: &OpenFold) -> [u64; 4] {
    // First of all: it is another's as soon as nothing is counted.
    let first = sum.first.load(Ordering::Relaxed);
    let count = sum.count.swap(0, Ordering::Relaxed);
    [count, first, sum.last.load(Ordering::Relaxed), sum.total.swap(0, Ordering::Relaxed)]
}

/// The place of a function, which is taken if need be.
fn place(header: &RingHeader, fold_id: u16) -> Option<&OpenFold> {
    let first = usize::from(fold_id / IDS_PER_CALL) % SUMS;
    let (front, back) = header.sums.split_at_checked(first)?;
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
        sum.count.store(0, Ordering::Relaxed);
        sum.total.store(0, Ordering::Relaxed);
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
        let [count, first, last, total] = take(from);
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
        add_in_one(&to.count, count);
    }
}
