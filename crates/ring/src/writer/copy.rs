//! Writers as a whole: empty ones, cleared ones, and the copy that a forked child goes on with.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use super::{FOLD_WORDS, Flag, Half, Making, Meter, Nested, Pointer, Word, Writer};

impl Writer {
    /// An empty writer: without a ring, and all zeros, as in memory that the kernel cleared.
    #[allow(clippy::new_without_default, reason = "a writer is made in a place of its own")]
    pub const fn new() -> Self {
        Writer {
            end: Word::new(),
            limit: Word::new(),
            free_until: Word::new(),
            data: Pointer::new(),
            mask: Word::new(),
            busy: Word::new(),
            nested: Nested::new(),
            owner: AtomicU64::new(0),
            stack: Word::new(),
            tid: Half::new(),
            inside: Half::new(),
            inside_stack: Word::new(),
            header: Pointer::new(),
            control: Pointer::new(),
            fold_key: [const { Word::new() }; FOLD_WORDS],
            fold_id: Half::new(),
            fold_open: Flag::new(),
            adrift: Flag::new(),
            fold_head: Word::new(),
            meter: Meter::new(),
            extra: AtomicPtr::new(std::ptr::null_mut()),
            grow: Pointer::new(),
            grow_not_before: Word::new(),
            next: Pointer::new(),
            next_data: Word::new(),
            next_head: Word::new(),
            leaving: Pointer::new(),
            making: Making::new(),
            beginning: Word::new(),
            reported: Pointer::new(),
            readable: [const { Word::new() }; 2],
        }
    }

    /// Makes it empty again, but for the owner.
    pub fn clear(&self) {
        self.detach();
        self.copy_but_header(&Writer::new());
    }

    /// Makes this one a copy of another, with its owner.
    pub fn copy_from(&self, from: &Writer) {
        self.detach();
        self.copy_but_header(from);
        self.owner.store(from.owner.load(Ordering::Relaxed), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.header.set(from.header.get());
    }

    /// This becomes a forked child's copy of a writer whose record was interrupted by the handler that
    /// forked: that record ends in memory of nobody, in the ring's place, and then nothing more
    /// comes there (see [`Writer::make_room`]).
    pub fn continue_adrift(&self, saved: &Writer) {
        self.detach();
        self.copy_but_header(saved);
        self.owner.store(saved.owner.load(Ordering::Relaxed), Ordering::Relaxed);
        self.adrift.set(true);
        self.limit.set(0);
        self.fold_open.set(false);
        self.fold_head.set(u64::MAX);
        // A handler that comes before this finds a writer without a ring.
        compiler_fence(Ordering::SeqCst);
        self.header.set(saved.header.get());
    }

    /// Copies all but the header, without which the rest is not used, and the owner. The compiler
    /// says so if a member is missing here.
    fn copy_but_header(&self, from: &Writer) {
        let Writer {
            end,
            limit,
            free_until,
            data,
            mask,
            busy,
            nested,
            owner: _,
            stack,
            tid,
            inside,
            inside_stack,
            header: _,
            control,
            fold_key,
            fold_id,
            fold_open,
            adrift,
            fold_head,
            // An account begins with a ring.
            meter: _,
            extra,
            grow,
            grow_not_before,
            // Rings of the process's own, which a forked child does not have.
            next: _,
            next_data: _,
            next_head: _,
            leaving: _,
            making: _,
            beginning: _,
            reported,
            // The stack of a child is looked at anew.
            readable: _,
        } = from;
        self.end.set(end.get());
        self.limit.set(limit.get());
        self.free_until.set(free_until.get());
        self.data.set(data.get());
        self.mask.set(mask.get());
        self.busy.set(busy.get());
        self.nested.copy_from(nested);
        self.stack.set(stack.get());
        self.tid.set(tid.get());
        self.inside.set(inside.get());
        self.inside_stack.set(inside_stack.get());
        self.control.set(control.get());
        self.reported.set(reported.get());
        self.fold_key.iter().zip(fold_key).for_each(|(word, there)| word.set(there.get()));
        self.fold_id.set(fold_id.get());
        self.fold_open.set(fold_open.get());
        self.adrift.set(adrift.get());
        self.fold_head.set(fold_head.get());
        self.extra.store(extra.load(Ordering::Relaxed), Ordering::Relaxed);
        self.grow.set(grow.get());
        self.grow_not_before.set(grow_not_before.get());
        self.next.set(std::ptr::null_mut());
        self.leaving.set(std::ptr::null_mut());
        self.making.settle();
        self.making.booked.set(0);
        self.beginning.set(0);
    }
}
