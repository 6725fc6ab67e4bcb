//! Commands whose times rocprofiler-sdk will deliver, by the id under which they were enqueued.
//!
//! The thread that enqueues a command opens a slot, a thread of rocprofiler-sdk's puts what the device did into it, and
//! whoever collects commands looks there. Nothing waits for another, and nothing is allocated.
//!
//! * A slot is taken with an exchange of its `id` from 0 (*Acquire*) and given up by storing 0 (*Release*): what the next
//!   owner writes comes after what the last one read.
//! * `count` goes up with *Release* after the times were written and is loaded with *Acquire*: who finds an activity finds
//!   its times.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_interpose::table::Table;

use super::records::Activity;

/// Commands in flight; another has no times.
const MOST: usize = 1 << 16;

/// A command: zeros are none.
#[derive(Debug)]
struct Slot {
    id: AtomicU64,
    queue: AtomicU64,
    count: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    bytes: AtomicU64,
}

/// All of them.
#[derive(Debug)]
pub struct Slots<const N: usize> {
    slots: [Slot; N],
    /// The last id that was given out. An id is never used again.
    last: AtomicU64,
    /// Queue → the largest id of which the device has done something.
    latest: Table<4096>,
    /// The same some time ago, and when that was.
    settled: Table<4096>,
    since: Table<4096>,
}

/// rocprofiler-sdk delivers in any order what a queue does in order, but not so late, in nanoseconds.
const LATE: u64 = 10_000_000;

/// The process's.
pub static SLOTS: Slots<MOST> = Slots::new();

/// What is known of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Activities so far; 0: none yet.
    pub count: u64,
    /// From the first one's start to the last one's end.
    pub start: u64,
    pub end: u64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// The device has done something of a later command of its queue, and nothing of this one comes any more.
    pub passed: bool,
}

impl<const N: usize> Slots<N> {
    /// None in flight.
    pub const fn new() -> Self {
        Slots {
            slots: [const {
                Slot {
                    id: AtomicU64::new(0),
                    queue: AtomicU64::new(0),
                    count: AtomicU64::new(0),
                    start: AtomicU64::new(0),
                    end: AtomicU64::new(0),
                    bytes: AtomicU64::new(0),
                }
            }; N],
            last: AtomicU64::new(0),
            latest: Table::new(),
            settled: Table::new(),
            since: Table::new(),
        }
    }

    fn slot(&self, id: u64) -> Option<&Slot> {
        self.slots.get(id as usize % N)
    }

    /// A command is about to be enqueued. Returns its id, never 0; `None` if too many are in flight.
    pub fn open(&self, queue: u64) -> Option<u64> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let slot = self.slot(id)?;
        // Pairs with the Release store in `close`.
        slot.id.compare_exchange(0, id, Ordering::Acquire, Ordering::Relaxed).ok()?;
        slot.queue.store(queue, Ordering::Relaxed);
        slot.start.store(u64::MAX, Ordering::Relaxed);
        slot.end.store(0, Ordering::Relaxed);
        slot.bytes.store(0, Ordering::Relaxed);
        slot.count.store(0, Ordering::Release);
        Some(id)
    }

    /// The command was recorded, given up, or never enqueued.
    pub fn close(&self, id: u64) {
        if let Some(slot) = self.slot(id).filter(|slot| slot.id.load(Ordering::Relaxed) == id) {
            // Pairs with the Acquire exchange in `open`.
            slot.id.store(0, Ordering::Release);
        }
    }

    /// A device did something, of which we heard now, in nanoseconds. Returns whether it was of a command that is in flight.
    pub fn deliver(&self, activity: &Activity, now: u64) -> bool {
        let slot = self.slot(activity.id).filter(|_| activity.id != 0);
        let Some(slot) = slot.filter(|slot| slot.id.load(Ordering::Acquire) == activity.id) else {
            return false;
        };
        slot.start.fetch_min(activity.start, Ordering::Relaxed);
        slot.end.fetch_max(activity.end, Ordering::Relaxed);
        slot.bytes.fetch_add(activity.bytes, Ordering::Relaxed);
        // Pairs with the Acquire load in `find`.
        slot.count.fetch_add(1, Ordering::Release);
        self.see(slot.queue.load(Ordering::Relaxed), activity.id, now);
        true
    }

    /// Something of this command was delivered. One thread of rocprofiler-sdk's does that.
    fn see(&self, queue: u64, id: u64, now: u64) {
        if now.saturating_sub(self.since.get(queue).unwrap_or(0)) > LATE {
            self.settled.set(queue, self.latest.get(queue).unwrap_or(0));
            self.since.set(queue, now);
        }
        if self.latest.update(queue, |latest| latest.max(id)).is_none() {
            self.latest.set(queue, id);
        }
    }

    /// What is known of a command; `None` if it is not in flight.
    pub fn find(&self, id: u64) -> Option<Found> {
        let slot = self.slot(id).filter(|slot| slot.id.load(Ordering::Relaxed) == id)?;
        let settled = self.settled.get(slot.queue.load(Ordering::Relaxed)).unwrap_or(0);
        // Pairs with the Release addition in `deliver`. Looked at after what says that later commands have run, so that
        // all that was delivered before that is seen.
        let count = slot.count.load(Ordering::Acquire);
        Some(Found {
            count,
            start: slot.start.load(Ordering::Relaxed),
            end: slot.end.load(Ordering::Relaxed),
            bytes: slot.bytes.load(Ordering::Relaxed),
            passed: settled > id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(id: u64, start: u64, end: u64, bytes: u64) -> Activity {
        Activity { id, start, end, bytes }
    }

    #[test]
    fn a_command_is_what_its_activities_are_together() {
        let slots = Slots::<8>::new();
        let id = slots.open(5).unwrap();
        assert_eq!(slots.find(id).map(|f| (f.count, f.passed)), Some((0, false)));
        assert!(slots.deliver(&activity(id, 20, 30, 100), 0) && slots.deliver(&activity(id, 10, 25, 28), 0));
        let found = Found { count: 2, start: 10, end: 30, bytes: 128, passed: false };
        assert_eq!(slots.find(id), Some(found));
    }

    #[test]
    fn a_command_is_passed_when_later_ones_have_been_delivered_for_a_while() {
        let slots = Slots::<8>::new();
        let ids: Vec<u64> = (0..3).map(|_| slots.open(5).unwrap()).collect();
        let passed = || ids.iter().map(|id| slots.find(*id).unwrap().passed).collect::<Vec<_>>();
        assert!(slots.deliver(&activity(ids[1], 1, 2, 0), LATE + 1));
        assert_eq!(passed(), [false; 3]);
        assert!(slots.deliver(&activity(ids[2], 3, 4, 0), 2 * LATE));
        assert_eq!(passed(), [false; 3], "the last one may just be late");
        let fourth = slots.open(5).unwrap();
        assert!(slots.deliver(&activity(fourth, 5, 6, 0), 3 * LATE));
        assert_eq!(passed(), [true, true, false]);
    }

    #[test]
    fn other_queues_say_nothing() {
        let slots = Slots::<8>::new();
        let ids: Vec<u64> = [5, 6, 6].into_iter().map(|queue| slots.open(queue).unwrap()).collect();
        for (at, id) in (1u64..).zip(&ids[1..]) {
            assert!(slots.deliver(&activity(*id, 1, 2, 0), at * 2 * LATE));
        }
        assert!(slots.find(ids[1]).is_some() && !slots.find(ids[0]).unwrap().passed);
    }

    #[test]
    fn what_is_over_is_not_found_and_its_place_is_free() {
        let slots = Slots::<2>::new();
        let ids = [slots.open(1), slots.open(1), slots.open(1)];
        assert_eq!(ids, [Some(1), Some(2), None]);
        slots.close(2);
        assert_eq!((slots.find(2), slots.deliver(&activity(2, 1, 2, 0), 1)), (None, false));
        // 3 was given out in vain.
        assert_eq!((slots.open(1), slots.open(1)), (Some(4), None));
        assert!(!slots.deliver(&activity(0, 1, 2, 0), 1));
    }
}
