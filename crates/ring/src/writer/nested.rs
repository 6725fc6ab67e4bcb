//! Records of signal handlers that interrupt the writing of another record.
//!
//! Such a record takes its place behind the interrupted one, and is published with it.
//!
//! ```text
//!         published   interrupted     handler's records
//!   ────────┼────────────┬──────────────┬─────────┬─────
//!           head         hole           │         end
//! ```
//! A handler may never return (`siglongjmp`): then the interrupted record stays a hole. That
//! is found when a record begins on the same stack, and not so far below the interrupted one
//! as a handler's would: whoever wrote that one has left. The hole becomes an ABANDONED record, which is counted as lost,
//! and all that waited behind it is published.

use std::sync::atomic::Ordering;

use super::cell::{Half, Word};
use super::{FOLD_RECORD, Room, Writer, count_in, stack_pointer};
use crate::abi::special;
use crate::record;

/// How many records may interrupt each other.
const DEPTH: usize = 4;

/// What is known of the records in progress.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Nested {
    /// Records of handlers that are being written.
    count: Half,
    /// Where the last one that is complete ends.
    end: Word,
    /// Place and length of the record that was interrupted, by how many it interrupted itself;
    /// of no length if it had no place yet.
    holes: [Hole; DEPTH],
}

#[repr(C)]
#[derive(Debug)]
struct Hole {
    at: Word,
    length: Half,
}

impl Hole {
    const fn new() -> Self {
        Hole { at: Word::new(), length: Half::new() }
    }

    fn set(&self, at: u64, length: u32) {
        self.at.set(at);
        self.length.set(length);
    }
}

impl Nested {
    pub(super) const fn new() -> Self {
        Nested { count: Half::new(), end: Word::new(), holes: [const { Hole::new() }; DEPTH] }
    }

    /// No record is in progress any more, and the last one ended at `end`.
    pub(super) fn reset(&self, end: u64) {
        self.count.set(0);
        self.end.set(end);
        self.holes.iter().for_each(|hole| hole.set(0, 0));
    }

    pub(super) fn copy_from(&self, from: &Nested) {
        self.count.set(from.count.get());
        self.end.set(from.end.get());
        for (hole, there) in self.holes.iter().zip(&from.holes) {
            hole.set(there.at.get(), there.length.get());
        }
    }

    /// Records that are being written, but for the last.
    pub(super) fn interrupted(&self) -> usize {
        self.count.get() as usize
    }
}

impl Writer {
    /// A record begins, and another is being written. Returns whether that goes on afterwards;
    /// if not, the new record is no handler's. An `inner` one is the writer's own.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_nested(&self, inner: bool) -> bool {
        if !inner && !is_below(self.busy.get()) && !on_another_stack(self.busy.get()) {
            self.give_up_interrupted();
            return false;
        }
        self.note_hole();
        let count = self.nested.count.get().wrapping_add(1);
        self.nested.count.set(count);
        if let Some(hole) = self.nested.holes.get(count as usize) {
            hole.set(0, 0);
        }
        true
    }

    /// A handler's record is complete, or has no room.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_nested(&self) {
        self.nested.end.set(self.end.get());
        self.nested.count.set(self.nested.count.get().saturating_sub(1));
    }

    /// Whether a handler's record has room, and can be published later.
    pub(super) fn nested_room(&self, length: usize) -> Room {
        let Some(header) = self.header() else { return Room::Detached };
        let deep = self.nested.interrupted() >= DEPTH;
        // It takes what is known to be free, and leaves room for those that it interrupted, of which
        // the first may be about to end a run of polls.
        let others = self.nested.interrupted() * record::MAX_RECORD + FOLD_RECORD;
        if !deep && self.end.get().wrapping_add((length + others) as u64) <= self.free_until.get() {
            let head = header.head.own();
            if header.unpublished_at.load(Ordering::Relaxed) != head {
                header.unpublished.store(0, Ordering::Relaxed);
                header.unpublished_at.store(head, Ordering::Relaxed);
            }
            count_in(&header.unpublished, 1);
            return Room::Yes;
        }
        self.lose();
        Room::No
    }

    /// What was reserved since the last complete record is the interrupted one's.
    fn note_hole(&self) {
        let Some(published) = self.header().map(|h| h.head.own()) else { return };
        let from = self.nested.end.get().max(published);
        let length = self.end.get().wrapping_sub(from);
        if length > 0
            && length <= record::MAX_RECORD as u64
            && let Some(hole) = self.nested.holes.get(self.nested.interrupted())
        {
            hole.set(from, length as u32);
        }
    }

    /// Whoever wrote the records in progress has left them.
    pub(super) fn give_up_interrupted(&self) {
        if self.finish_move() {
            // Nothing of it is in this ring, and all of the other is published.
            if let Some(header) = self.header() {
                count_in(&header.lost, 1);
                count_in(&header.lost_calls, 1);
            }
            self.busy.set(0);
            return;
        }
        self.note_hole();
        let Some(header) = self.header() else {
            self.nested.reset(0);
            self.busy.set(0);
            return;
        };
        let published = header.head.own();
        let levels = (self.nested.interrupted() + 1).min(DEPTH);
        let mut given_up = 0;
        for hole in self.nested.holes.iter().take(levels) {
            let (at, length) = (hole.at.get(), hole.length.get());
            // Holes of earlier records are published long ago.
            if length < record::HEAD as u32 || at < published {
                continue;
            }
            let head = record::pack(special::ABANDONED, length as usize, 0);
            // SAFETY: the hole lies between what is published and the end, so it is this
            // writer's, in one piece, and has room for a head.
            unsafe {
                let place = self.data.get().add((at & self.mask.get()) as usize);
                place.cast::<u64>().write_unaligned(head.to_le());
            }
            given_up += 1;
        }
        // One that had no place yet is lost as well.
        count_in(&header.lost, given_up.max(1));
        count_in(&header.lost_calls, given_up.max(1));
        let end = self.end.get();
        header.head.publish(end);
        self.nested.reset(end);
        // If it has begun, it could be done before: but then all that stands in this ring had to be published first.
        self.finish_move();
        self.busy.set(0);
    }

    /// Whether a handler that did not return has interrupted whoever was getting its first ring: what was got so far
    /// is there for the next. False for a handler that will return.
    #[cold]
    pub fn was_left_beginning(&self) -> bool {
        let stack = self.beginning.get();
        stack != 0 && !is_below(stack) && !on_another_stack(stack)
    }

    /// Whether a call that comes while the tracer itself is calling is a signal handler's for
    /// certain: it runs on the alternate signal stack, and the tracer does not. On the thread's own
    /// stack a handler's calls can't be distinguished from the tracer's.
    #[cold]
    pub fn is_handlers(&self) -> bool {
        self.is_inside() && on_another_stack(self.inside_stack.get())
    }

    /// The tracer's own calls were left by a handler that did not return: calls are the
    /// program's again.
    pub(super) fn is_inside_no_more(&self) -> bool {
        self.is_left_by(stack_pointer())
    }

    /// As [`Writer::is_own_call`] finds out by the stack where it runs, for a call of which more is known: its return address
    /// lies at `place`. What the tracer calls itself returns to below where it began to. Returns whether it calls no more.
    pub fn is_left_by(&self, place: u64) -> bool {
        let left = place > self.inside_stack.get() && !on_another_stack(self.inside_stack.get());
        if left {
            self.inside.set(0);
        }
        left
    }
}

/// A handler runs this far below what it interrupted, at the least: the kernel leaves the red
/// zone and stores the processor's state between them, which is more than that. (Frames of
/// calls that begin a record differ by less.)
const FRAME: u64 = 1024;

/// Whether a handler that interrupted whoever was at `stack` may run here.
fn is_below(stack: u64) -> bool {
    stack_pointer() < stack.saturating_sub(FRAME)
}

/// Whether the thread runs on its alternate signal stack, and `other` is not there.
fn on_another_stack(other: u64) -> bool {
    if cfg!(miri) {
        return false; // It knows no alternate stacks.
    }
    // SAFETY: all bit patterns are valid, and the call fills it in.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: sets nothing, and has a place for what there is.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), &raw mut stack) } == 0;
    let base = stack.ss_sp as u64;
    let there = other >= base && other < base.saturating_add(stack.ss_size as u64);
    known && stack.ss_flags & libc::SS_ONSTACK != 0 && !there
}
