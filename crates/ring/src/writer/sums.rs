//! Calls that are added up by function instead of being recorded one by one.
//!
//! The sums stand in the ring's header, so that the drainer finds them when the program is killed. The thread
//! itself makes records of them now and then; a function keeps its place for as long as the thread has the ring.

use std::sync::atomic::Ordering;

use super::{FOLD_RECORD, Writer, add_in_one, count_in};
use crate::abi::{ADDED_UP, OpenFold, RingHeader, SUMS};
use crate::clock;
use crate::record::IDS_PER_CALL;

impl Writer {
    /// Adds a call up: the number of its function's event for many calls, and the counter values before and
    /// after it. Returns false if there is no place for one more function, or no ring.
    pub fn add_up(&self, fold_id: u16, before: u64, after: u64) -> bool {
        if self.is_inside() {
            return true; // The tracer's own call, of which nothing is recorded.
        }
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

    /// Makes records of what was added up.
    pub fn flush_sums(&self) {
        for number in 0..SUMS {
            let Some(sum) = self.header().and_then(|header| header.sums.get(number)) else { return };
            if sum.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // What a handler adds meanwhile comes into this record or into the next one.
            let count = sum.count.swap(0, Ordering::Relaxed);
            let total = sum.total.swap(0, Ordering::Relaxed);
            let (first, last) = (sum.first.load(Ordering::Relaxed), sum.last.load(Ordering::Relaxed));
            let id = sum.id.load(Ordering::Relaxed) as u16;
            let words = [count | ADDED_UP, first, last, total];
            let body = |at: *mut u8| {
                for (i, word) in words.iter().enumerate() {
                    // SAFETY: four words, as the length says.
                    unsafe { at.cast::<u64>().add(i).write_unaligned(word.to_le()) };
                }
            };
            // SAFETY: `body` writes four words.
            let written = unsafe { self.write(id, FOLD_RECORD, false, clock::ticks, body) };
            if written.is_none()
                && let Some(header) = self.header()
            {
                count_in(&header.lost_calls, count);
            }
        }
    }
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

/// The thread goes on in another ring.
pub(super) fn hand_over(old: &RingHeader, new: &RingHeader) {
    clear(new);
    for (from, to) in old.sums.iter().zip(&new.sums) {
        to.first.store(from.first.load(Ordering::Relaxed), Ordering::Relaxed);
        to.last.store(from.last.load(Ordering::Relaxed), Ordering::Relaxed);
        to.total.store(from.total.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        to.count.store(from.count.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        to.id.store(from.id.load(Ordering::Relaxed), Ordering::Release);
    }
}
