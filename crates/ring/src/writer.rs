//! The producer's side: one [`Writer`] per recording thread.
//!
//! A writer lives in memory of the program's own that the kernel clears
//! in a child process (`MADV_WIPEONFORK`), so a child can never write into its
//! parent's ring, however it was forked: an empty writer has no room, and the
//! slow path then finds that it belongs to nobody.
//!
//! ```text
//!   record(len) ── room? ──► reserve ──► bytes ──► finish ──► Head::publish
//!                   │ no
//!                   └──► make_room: close an open fold, look how far the drainer
//!                        is, wake it; else move to a larger ring, else count the
//!                        record as lost (or wait)
//! ```
//!
//! A record that begins in the last bytes of the ring's data goes on in the page
//! behind them, so each lies in one piece; positions count on as if it did not.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use crate::abi::{Control, OpenFold, PAGE, Reported, RingHeader};
use crate::clock;
use crate::record;

mod cell;
mod copy;
mod meter;
mod nested;
mod operand;
mod room;
mod sums;

use cell::{Flag, Half, Pointer, Word};
pub use meter::{Look, Meter, STEPS, Step};
use nested::Nested;
pub use room::{drainer_lives, nap, wake};

/// Bytes of the record of a run of polls.
const FOLD_RECORD: usize = record::HEAD + FOLD_RECORD_WORDS * 8;
/// Its words: how many calls, when the first began and the last ended, their time, and the standard error of that.
pub const FOLD_RECORD_WORDS: usize = 5;

/// Words of a poll's arguments and results that are compared.
pub const FOLD_WORDS: usize = 8;

/// Finds a larger ring for a writer whose ring is full, and calls [`Writer::move_to`]. Returns
/// whether it did.
///
/// # Safety
/// The writer is this thread's, attached, and its record waits for room.
pub type Grow = unsafe fn(&Writer) -> bool;

/// A thread's way into its ring. Used by shared references only: a signal handler may have
/// another at any moment ([`cell`]).
#[repr(C)]
#[derive(Debug)]
pub struct Writer {
    /// Where the next record goes. Only ever moved by [`Writer::reserve`].
    end: Word,
    /// A record must end here or before; else the slow path decides.
    limit: Word,
    /// How far the ring was free when the slow path last looked.
    free_until: Word,
    /// First data byte.
    data: Pointer<u8>,
    /// Data bytes minus 1.
    mask: Word,
    /// Stack pointer of the record that is being written, 0 if there is none. A record that
    /// finds one here is a signal handler's, and leaves the publishing to that one; unless
    /// the stack shows that the handler did not return ([`nested`]).
    busy: Word,
    /// Records of handlers inside of it.
    nested: Nested,
    /// Who records here: an address of the thread's own, or 0 for a writer of nobody. Other
    /// threads look for a free one here.
    pub owner: AtomicU64,
    /// The lowest address of the stack that its calls are expected on.
    stack: Word,
    /// Thread id.
    tid: Half,
    /// The tracer itself is calling the API; such calls are not recorded.
    inside: Half,
    /// Stack pointer where it began to.
    inside_stack: Word,
    header: Pointer<RingHeader>,
    control: Pointer<Control>,
    /// The last poll: its arguments and results, and where the ring stood.
    fold_key: [Word; FOLD_WORDS],
    fold_id: Half,
    fold_open: Flag,
    /// See [`Writer::continue_adrift`].
    adrift: Flag,
    fold_head: Word,
    /// What recording takes of the thread's time, where there is a budget.
    pub meter: Meter,
    /// For the API's own use; cleared with the rest in a forked child.
    pub extra: AtomicPtr<libc::c_void>,
    /// A [`Grow`], or null.
    grow: Pointer<()>,
    /// For the use of that: the counter value before which it has nothing.
    grow_not_before: Word,
    /// The ring that it is about to go on in, or null. It stays where a handler that does not return
    /// has interrupted that ([`room`]).
    next: Pointer<u8>,
    /// Its data bytes.
    next_data: Word,
    /// Where the next ring stood when it was got.
    next_head: Word,
    /// The ring that it has left, until that one is marked as left.
    leaving: Pointer<RingHeader>,
    /// What was taken for a ring that is not made yet.
    pub making: Making,
    /// Stack pointer of whoever is getting its first ring, 0 if nobody is.
    beginning: Word,
    reported: Pointer<Reported>,
    /// The part of its thread's stack that was found to be readable throughout: from the first address to the second.
    pub readable: [Word; 2],
}

/// What was taken for a ring that is being made. It stays where a handler that does not return has interrupted
/// that, for the next time.
#[repr(C)]
#[derive(Debug)]
pub struct Making {
    /// Its data bytes.
    pub data: Word,
    /// Bytes that were booked on what the process may have of large rings.
    pub booked: Word,
    /// Bytes that were taken of the budget.
    pub paid: Word,
    /// Its place in the arena, 0 if it has none.
    pub offset: Word,
    /// Its number, plus 1; 0 if it has none.
    pub number: Half,
}

impl Making {
    /// Nothing was taken.
    #[allow(clippy::new_without_default, reason = "made in a place of its own")]
    pub const fn new() -> Self {
        Making {
            data: Word::new(),
            booked: Word::new(),
            paid: Word::new(),
            offset: Word::new(),
            number: Half::new(),
        }
    }

    /// It is made, or what was taken is given back; but for what is booked.
    pub fn settle(&self) {
        self.data.set(0);
        self.paid.set(0);
        self.offset.set(0);
        self.number.set(0);
    }
}

/// What the slow path found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There is room now.
    Yes,
    /// The record is lost, and counted.
    No,
    /// The writer belongs to no ring (a new process): attach first.
    Detached,
}

impl Writer {
    /// Makes an empty writer one of the ring at `base`.
    ///
    /// # Safety
    /// A ring of `data` data bytes, a power of two, begins at `base`; it, `control`, and `reported` if it is not null stay mapped
    /// for as long as the writer is used, and no other writer uses this ring.
    pub unsafe fn attach(
        &self,
        base: *mut u8,
        data: u64,
        control: *const Control,
        reported: *const Reported,
    ) {
        // SAFETY: a ring begins with a page that holds the header, says this function's contract.
        let header = unsafe { &*base.cast::<RingHeader>() };
        self.control.set(control.cast_mut());
        self.reported.set(reported.cast_mut());
        // SAFETY: the data begins one page into the ring, which is larger than that.
        self.data.set(unsafe { base.add(PAGE) });
        // Not what the header says: a program may have written noise there, and this says where we write.
        self.mask.set(data - 1);
        self.end.set(header.head.own());
        self.busy.set(0);
        self.nested.reset(0);
        self.inside.set(0);
        self.fold_open.set(false);
        self.fold_head.set(u64::MAX);
        sums::clear(header);
        self.readable.iter().for_each(|word| word.set(0));
        self.limit.set(self.end.get());
        self.free_until.set(self.end.get());
        self.next.set(std::ptr::null_mut());
        self.beginning.set(0);
        // Until it has a header nobody writes anything with it.
        compiler_fence(Ordering::SeqCst);
        self.header.set(base.cast());
    }

    /// Its thread gets a first ring from here on, until [`Writer::attach`].
    pub fn begin(&self) {
        self.beginning.set(stack_pointer());
    }

    /// Whether this is the stack on which the writer's thread is expected. Another one is
    /// that of a signal handler, or of a task that shares the thread's local storage.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        self.above_stack() < STACK_BELOW + STACK_ABOVE
    }

    /// From now on the thread is expected around the present stack.
    pub fn settle(&self) {
        self.stack.set(stack_pointer().wrapping_sub(STACK_BELOW));
    }

    /// Whether the writer has a ring.
    #[inline]
    pub fn attached(&self) -> bool {
        !self.header.get().is_null()
    }

    /// The ring's header, if there is one.
    pub fn header(&self) -> Option<&RingHeader> {
        // SAFETY: only `attach` and `move_to` store a pointer here, and their contracts say that a
        // ring begins there which stays mapped for as long as the writer is used.
        unsafe { self.header.get().as_ref() }
    }

    /// Data bytes of the ring, if there is one.
    pub fn data_bytes(&self) -> u64 {
        self.mask.get().wrapping_add(1)
    }

    /// The id of the thread, 0 before it was set.
    pub fn tid(&self) -> u32 {
        self.tid.get()
    }

    /// Sets the id of the thread.
    pub fn set_tid(&self, tid: u32) {
        self.tid.set(tid);
    }

    /// From now on `grow` is called when the ring is full.
    pub fn set_grow(&self, grow: Grow) {
        self.grow.set(grow as *mut ());
    }

    /// Whether the counter has come to the value that [`Writer::grow_later`] was called with.
    pub fn may_grow(&self, now: u64) -> bool {
        now >= self.grow_not_before.get()
    }

    /// There is no larger ring before this counter value.
    pub fn grow_later(&self, not_before: u64) {
        self.grow_not_before.set(not_before);
    }

    /// The tracer itself calls the API from now on: nothing is recorded.
    pub fn enter(&self) {
        if self.inside.get() == 0 || self.is_inside_no_more() {
            self.inside_stack.set(stack_pointer());
        }
        compiler_fence(Ordering::SeqCst);
        self.inside.set(self.inside.get().wrapping_add(1));
        // Every record takes the slow path, which knows.
        self.limit.set(0);
    }

    /// Ends what [`Writer::enter`] began; the next record finds its room anew.
    pub fn leave(&self) {
        self.inside.set(self.inside.get().saturating_sub(1));
    }

    /// Whether the tracer itself is calling.
    pub fn is_inside(&self) -> bool {
        self.inside.get() != 0
    }

    /// Whether the tracer itself is calling, and not a signal handler that interrupted it, as far as can be known.
    pub fn is_own_call(&self) -> bool {
        self.is_inside() && !self.is_inside_no_more() && !self.is_handlers()
    }

    /// Whether a record is being written, or was left by a handler that did not return.
    pub fn is_busy(&self) -> bool {
        self.busy.get() != 0
    }

    /// Forgets the ring, so that the next call attaches anew.
    pub fn detach(&self) {
        self.header.set(std::ptr::null_mut());
        compiler_fence(Ordering::SeqCst);
        self.end.set(0);
        self.limit.set(0);
        self.fold_open.set(false);
    }

    /// Writes one record: its head and what `body` puts behind it. Returns the
    /// time stamp, or `None` if the record is lost or there is no ring.
    ///
    /// # Safety
    /// `body` writes exactly `length - 8` bytes from the pointer it gets;
    /// `length` is at most [`record::MAX_RECORD`].
    #[inline(always)]
    pub unsafe fn record(&self, id: u16, length: usize, body: impl FnOnce(*mut u8)) -> Option<u64> {
        // SAFETY: `write` has the same contract as this function.
        unsafe { self.write(id, length, false, clock::ticks, body) }
    }

    /// As [`Writer::record`], at a time read earlier.
    ///
    /// # Safety
    /// As [`Writer::record`].
    pub unsafe fn record_at(
        &self,
        id: u16,
        length: usize,
        time: u64,
        body: impl FnOnce(*mut u8),
    ) -> Option<u64> {
        // SAFETY: `write` has the same contract as this function.
        unsafe { self.write(id, length, false, || time, body) }
    }

    /// `inner` is for a record that this writer makes itself, within another.
    ///
    /// # Safety
    /// As [`Writer::record`].
    #[inline(always)]
    unsafe fn write(
        &self,
        id: u16,
        length: usize,
        inner: bool,
        time: impl FnOnce() -> u64,
        body: impl FnOnce(*mut u8),
    ) -> Option<u64> {
        // A handler that comes before the store is done before it; one that comes later
        // writes behind us, and leaves the publishing to us.
        let me = stack_pointer();
        if !self.is_idle() && self.enter_nested(inner) {
            // The writer's own record has room: `wait_for_room` saw to it, and handlers leave it.
            let room = if inner && self.attached() { Room::Yes } else { self.make_room(length, true) };
            if room != Room::Yes {
                self.leave_nested();
                return None;
            }
        } else {
            self.busy.set(me);
            compiler_fence(Ordering::SeqCst);
            if !self.is_within_limit(self.end.get().wrapping_add(length as u64)) {
                let room = self.make_room(length, false);
                if room != Room::Yes {
                    self.abandon(room);
                    return None;
                }
            }
        }
        let position = self.end.fetch_add(length as u64);
        // Read now and not before, so that time never runs backwards in a ring.
        let now = time();
        // SAFETY: `position & mask` lies in the data of the ring, behind which is a page of room
        // for the end of a record: a record is shorter than a page.
        let at = unsafe { self.data.get().add(self.place_of(position)) };
        // SAFETY: `length` is 8 at least, and from `at` on so many bytes are this record's alone:
        // nobody else was given `position`, and the reader stops at what is published. Records are
        // packed, so the store may be unaligned.
        unsafe { at.cast::<u64>().write_unaligned(record::pack(id, length, now).to_le()) };
        // SAFETY: the head's eight bytes are part of `length`.
        body(unsafe { at.add(record::HEAD) });
        // Nobody else's record begins at this place of the stack.
        if self.is_busy_at(me) {
            self.finish();
        } else {
            self.leave_nested();
        }
        Some(now)
    }

    /// Publishes what was written, by handlers, too.
    #[inline(always)]
    fn finish(&self) {
        compiler_fence(Ordering::SeqCst);
        let end = self.publish();
        if self.end.get() != end {
            self.publish_again(end);
        }
    }

    /// Publishes up to the end, and lets handlers publish from now on.
    #[inline(always)]
    fn publish(&self) -> u64 {
        let end = self.end.get();
        // SAFETY: not null, or `make_room` would have said Detached; a ring whose header was stored
        // here stays mapped (contract of `attach`).
        unsafe { (*self.header.get()).head.publish(end) };
        compiler_fence(Ordering::SeqCst);
        self.busy.set(0);
        compiler_fence(Ordering::SeqCst);
        end
    }

    /// A handler wrote a record between the two, and saw us at work.
    #[cold]
    #[inline(never)]
    fn publish_again(&self, mut published: u64) {
        // Without a ring: a handler came between the two and has forked, and this is the child.
        while self.attached() && self.end.get() != published {
            self.busy.set(stack_pointer());
            compiler_fence(Ordering::SeqCst);
            published = self.publish();
        }
    }

    /// Ends a record that could not be written.
    #[cold]
    fn abandon(&self, room: Room) {
        match room {
            Room::Detached => self.busy.set(0),
            _ => self.finish(),
        }
    }

    /// Whether the last record of this thread was this poll, unchanged.
    #[inline(always)]
    pub fn continues_poll(&self, fold_id: u16, key: &[u64; FOLD_WORDS], arguments: usize) -> bool {
        self.fold_id.get() == u32::from(fold_id)
            && self.fold_head.get() == self.end.get()
            && self.is_same(key, 0, arguments)
    }

    /// Remembers a poll that was just recorded in full.
    #[inline(always)]
    pub fn remember_poll(&self, fold_id: u16, key: &[u64; FOLD_WORDS]) {
        self.fold_id.set(u32::from(fold_id));
        for (word, value) in self.fold_key.iter().zip(key) {
            word.set(*value);
        }
        self.fold_head.set(self.end.get());
    }

    /// Whether a key agrees with that of the remembered poll from one word to another.
    #[inline(always)]
    fn is_same(&self, key: &[u64; FOLD_WORDS], from: usize, to: usize) -> bool {
        let mut different = 0;
        // By numbers, which are constants where this is inlined: of iterators the compiler makes a loop.
        for i in from..to {
            let (Some(word), Some(value)) = (self.fold_key.get(i), key.get(i)) else { break };
            different |= word.get() ^ value;
        }
        different == 0
    }

    /// Adds one equal poll to the run, if its result is the remembered one.
    /// Returns whether it did.
    #[inline(always)]
    pub fn fold(&self, key: &[u64; FOLD_WORDS], arguments: usize, before: u64, after: u64) -> bool {
        // A signal handler may have recorded something during the poll itself.
        let alone = self.fold_head.get() == self.end.get() && self.is_idle();
        if !alone || !self.is_same(key, arguments, FOLD_WORDS) {
            return false;
        }
        let Some(header) = self.header() else { return false };
        let fold = &header.fold;
        if self.fold_open.get() {
            add(&fold.count, 1);
            add(&fold.total, after.wrapping_sub(before));
            fold.last.store(after, Ordering::Relaxed);
        } else {
            fold.count.store(1, Ordering::Relaxed);
            fold.first.store(before, Ordering::Relaxed);
            fold.last.store(after, Ordering::Relaxed);
            fold.total.store(after.wrapping_sub(before), Ordering::Relaxed);
            // Pairs with the Acquire load in `reader::open_folds`.
            fold.id.store(self.fold_id.get(), Ordering::Release);
            self.fold_open.set(true);
            // The next record, whichever it is, takes the slow path.
            self.limit.set(0);
        }
        true
    }

    /// Turns an open run of polls into a record. The caller has seen to room.
    fn close_fold(&self) {
        self.fold_open.set(false);
        let Some(header) = self.header() else { return };
        let words = fold_words(&header.fold);
        let id = header.fold.id.load(Ordering::Relaxed) as u16;
        // SAFETY: as many words as the length says.
        let body = |at: *mut u8| unsafe { put_words(at, words) };
        // It is written as a signal handler would, while the record that ends the run waits, and
        // belongs where its last poll ended.
        // SAFETY: `body` writes as many words as a record of that length has.
        let written = unsafe { self.write(id, FOLD_RECORD, true, || words[2], body) };
        if let Some(header) = self.header() {
            if written.is_none() {
                count_in(&header.lost_calls, words[0]);
            }
            header.fold.id.store(0, Ordering::Release);
        }
    }

    /// Gives an open run of polls up: it, and its calls, are counted as lost.
    fn lose_fold(&self) {
        self.fold_open.set(false);
        let Some(header) = self.header() else { return };
        let calls = header.fold.count.load(Ordering::Relaxed);
        header.fold.id.store(0, Ordering::Release);
        count_in(&header.lost, 1);
        count_in(&header.lost_calls, calls);
    }

    /// Makes records of calls that are in none yet, for a thread that ends.
    pub fn flush(&self) {
        if self.is_busy() {
            // A thread that ends goes on with nothing.
            self.give_up_interrupted();
        }
        self.flush_sums();
        self.lose_sums();
        if self.fold_open.get() && self.busy.get() == 0 {
            self.busy.set(stack_pointer());
            compiler_fence(Ordering::SeqCst);
            self.make_room(0, false);
            self.finish();
        }
    }
}

/// How far below and above the stack pointer of its first record a thread's calls are expected.
/// The stacks of others begin further away, or it is looked at more closely.
const STACK_BELOW: u64 = 8 << 20;
const STACK_ABOVE: u64 = 1 << 20;

/// The stack pointer, or an address near by.
#[inline(always)]
pub(crate) fn stack_pointer() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let sp: u64;
        // SAFETY: copies a register.
        unsafe { std::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
        sp
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let sp: u64;
        // SAFETY: copies a register.
        unsafe { std::arch::asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
        sp
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    {
        let here = 0u8;
        std::hint::black_box(&raw const here) as u64
    }
}

/// The body of a [`FOLD_RECORD`].
///
/// # Safety
/// `at` has room for so many words.
unsafe fn put_words(at: *mut u8, words: [u64; FOLD_RECORD_WORDS]) {
    for (i, word) in words.into_iter().enumerate() {
        // SAFETY: `at` has room for all of `words`, and `i` counts these. Records are packed, so the store may be unaligned.
        unsafe { at.cast::<u64>().add(i).write_unaligned(word.to_le()) };
    }
}

/// What a record of a run, or of calls that were added up, would have.
pub(crate) fn fold_words(fold: &OpenFold) -> [u64; FOLD_RECORD_WORDS] {
    sums::Sum::of(fold).words()
}

/// Counts what was lost. In one step, since a handler that comes between a load and a store counts, too, and
/// its losses would be forgotten.
fn count_in(word: &std::sync::atomic::AtomicU64, n: u64) {
    word.fetch_add(n, Ordering::Relaxed);
}

/// Adds to a sum that only the owning thread writes, and its handlers: in one instruction, so that a handler
/// comes before or after it, and what it counts is not lost.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn add_in_one(word: &AtomicU64, n: u64) {
    // SAFETY: changes eight aligned bytes that `word` lends, and which may be changed through it. No lock
    // prefix: only this thread and its handlers write, and others that read find the old sum or the new one.
    unsafe {
        std::arch::asm!(
            "add qword ptr [{word}], {n}",
            word = in(reg) word.as_ptr(),
            n = in(reg) n,
            options(nostack)
        );
    }
}

/// As above: a handler may come between a load and a store.
#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline(always)]
pub fn add_in_one(word: &AtomicU64, n: u64) {
    word.fetch_add(n, Ordering::Relaxed);
}

/// Adds to a sum that only the owning thread writes, and none of its handlers.
fn add(word: &std::sync::atomic::AtomicU64, n: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}
