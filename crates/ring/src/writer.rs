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

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::abi::{Control, OpenFold, PAGE, RingHeader};
use crate::clock;
use crate::record;

mod nested;
mod room;

use nested::Nested;
pub use room::{drainer_lives, nap, wake};

/// Bytes of the record of a run of polls.
const FOLD_RECORD: usize = record::HEAD + 4 * 8;

/// Words of a poll's arguments and results that are compared.
pub const FOLD_WORDS: usize = 8;

/// A thread's way into its ring.
#[repr(C)]
#[derive(Debug)]
pub struct Writer {
    /// Where the next record goes. Only ever moved by [`Writer::reserve`].
    end: u64,
    /// A record must end here or before; else the slow path decides.
    limit: u64,
    /// How far the ring was free when the slow path last looked.
    free_until: u64,
    /// First data byte.
    data: *mut u8,
    /// Data bytes minus 1.
    mask: u64,
    /// Stack pointer of the record that is being written, 0 if there is none. A record that
    /// finds one here is a signal handler's, and leaves the publishing to that one; unless
    /// the stack shows that the handler did not return ([`nested`]).
    busy: u64,
    /// Records of handlers inside of it.
    nested: Nested,
    /// Who records here: an address of the thread's own, or 0 for a writer of nobody.
    pub owner: AtomicU64,
    /// The lowest address of the stack that its calls are expected on.
    stack: u64,
    /// Thread id.
    pub tid: u32,
    /// The tracer itself is calling the API; such calls are not recorded.
    inside: u32,
    /// Stack pointer where it began to.
    inside_stack: u64,
    header: *const RingHeader,
    control: *const Control,
    /// The last poll: what was asked and answered, and where the ring stood.
    fold_key: [u64; FOLD_WORDS],
    fold_id: u32,
    fold_open: bool,
    /// See [`Writer::set_adrift`].
    adrift: bool,
    fold_head: u64,
    /// For the API's own use; cleared with the rest in a forked child.
    pub extra: *mut libc::c_void,
    /// Called when the ring is full: finds a larger one and calls
    /// [`Writer::move_to`]. Returns whether it did.
    pub grow: Option<unsafe fn(&mut Writer) -> bool>,
    /// For the use of that: the counter value before which it has nothing.
    pub grow_not_before: u64,
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
    /// A ring of the size that its header has begins at `base`; it and `control` stay mapped
    /// for as long as the writer is used, and no other writer uses this ring.
    pub unsafe fn attach(&mut self, base: *mut u8, control: *const Control) {
        // SAFETY: a ring begins with a page that holds the header.
        let header = unsafe { &*base.cast::<RingHeader>() };
        self.header = header;
        self.control = control;
        // SAFETY: the data begins one page into the mapping.
        self.data = unsafe { base.add(PAGE) };
        self.mask = header.data_bytes - 1;
        self.end = header.head.own();
        self.busy = 0;
        self.nested = Nested::default();
        self.inside = 0;
        self.fold_open = false;
        self.fold_head = u64::MAX;
        self.limit = self.end;
        self.free_until = self.end;
    }

    /// Whether this is the stack on which the writer's thread is expected. Another one is
    /// that of a signal handler, or of a task that shares the thread's local storage.
    #[inline(always)]
    pub fn is_here(&self) -> bool {
        stack_pointer().wrapping_sub(self.stack) < STACK_BELOW + STACK_ABOVE
    }

    /// From now on the thread is expected around the present stack.
    pub fn settle(&mut self) {
        self.stack = stack_pointer().wrapping_sub(STACK_BELOW);
    }

    /// Whether the writer has a ring.
    #[inline]
    pub fn attached(&self) -> bool {
        !self.header.is_null()
    }

    /// The ring's header, if there is one.
    pub fn header(&self) -> Option<&RingHeader> {
        // SAFETY: null or what `attach` was promised.
        unsafe { self.header.as_ref() }
    }

    /// The tracer itself calls the API from now on: nothing is recorded.
    pub fn enter(&mut self) {
        if self.inside == 0 {
            self.inside_stack = stack_pointer();
        }
        self.inside = self.inside.wrapping_add(1);
        // Every record takes the slow path, which knows.
        self.limit = 0;
    }

    /// Ends what [`Writer::enter`] began; the next record finds its room anew.
    pub fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// Whether the tracer itself is calling.
    pub fn is_inside(&self) -> bool {
        self.inside != 0
    }

    /// Whether a record is being written, or was left by a handler that did not return.
    pub fn is_busy(&self) -> bool {
        self.busy != 0
    }

    /// This is a forked child's copy of a writer whose record was interrupted by the handler that
    /// forked: that record ends in memory of nobody, in the ring's place, and then nothing more
    /// comes there (see [`Writer::make_room`]).
    pub fn set_adrift(&mut self) {
        self.adrift = true;
        self.limit = 0;
        self.fold_open = false;
        self.fold_head = u64::MAX;
    }

    /// Forgets the ring, so that the next call attaches anew.
    pub fn detach(&mut self) {
        self.header = std::ptr::null();
        self.end = 0;
        self.limit = 0;
        self.fold_open = false;
    }

    /// Writes one record: its head and what `body` puts behind it. Answers the
    /// time stamp, or `None` if the record is lost or there is no ring.
    ///
    /// # Safety
    /// `body` writes exactly `length - 8` bytes from the pointer it gets;
    /// `length` is at most [`record::MAX_RECORD`].
    #[inline(always)]
    pub unsafe fn record(&mut self, id: u16, length: usize, body: impl FnOnce(*mut u8)) -> Option<u64> {
        // SAFETY: promised by the caller.
        unsafe { self.write(id, length, false, clock::ticks, body) }
    }

    /// As [`Writer::record`], at a time read earlier.
    ///
    /// # Safety
    /// As [`Writer::record`].
    pub unsafe fn record_at(
        &mut self,
        id: u16,
        length: usize,
        time: u64,
        body: impl FnOnce(*mut u8),
    ) -> Option<u64> {
        // SAFETY: promised by the caller.
        unsafe { self.write(id, length, false, || time, body) }
    }

    /// `inner` is for a record that this writer makes itself, within another.
    ///
    /// # Safety
    /// As [`Writer::record`].
    #[inline(always)]
    unsafe fn write(
        &mut self,
        id: u16,
        length: usize,
        inner: bool,
        time: impl FnOnce() -> u64,
        body: impl FnOnce(*mut u8),
    ) -> Option<u64> {
        // A handler that comes before the store is done before it; one that comes later
        // writes behind us, and leaves the publishing to us.
        let me = stack_pointer();
        if self.busy != 0 && self.enter_nested(inner) {
            let room = self.make_room(length, true);
            if room != Room::Yes {
                self.leave_nested();
                return None;
            }
        } else {
            self.busy = me;
            compiler_fence(Ordering::SeqCst);
            if self.end.wrapping_add(length as u64) > self.limit {
                let room = self.make_room(length, false);
                if room != Room::Yes {
                    self.abandon(room);
                    return None;
                }
            }
        }
        let position = self.reserve(length as u64);
        // Read now and not before, so that time never runs backwards in a ring.
        let now = time();
        // SAFETY: `position & mask` lies in the data, behind which is a page of room for the
        // end of a record: a record is shorter than a page.
        let at = unsafe { self.data.add((position & self.mask) as usize) };
        // SAFETY: as above; records are packed, so the store may be unaligned.
        unsafe { at.cast::<u64>().write_unaligned(record::pack(id, length, now).to_le()) };
        // SAFETY: the head's eight bytes are part of `length`.
        body(unsafe { at.add(record::HEAD) });
        // Nobody else's record begins at this place of the stack.
        if self.busy == me {
            self.finish();
        } else {
            self.leave_nested();
        }
        Some(now)
    }

    /// Moves the end, and answers where it was: in one instruction, so that a
    /// signal handler comes before or after it and never gets the same place.
    #[inline(always)]
    fn reserve(&mut self, length: u64) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            let mut position = length;
            // SAFETY: adds to a word of ours. No lock prefix: only this thread
            // and its signal handlers are concerned.
            unsafe {
                std::arch::asm!(
                    "xadd qword ptr [{end}], {position}",
                    end = in(reg) &raw mut self.end,
                    position = inout(reg) position,
                    options(nostack)
                );
            }
            position
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            // SAFETY: an aligned word of ours, accessed as an atomic here only.
            let end = unsafe { std::sync::atomic::AtomicU64::from_ptr(&raw mut self.end) };
            end.fetch_add(length, Ordering::Relaxed)
        }
    }

    /// Publishes what was written, by handlers, too.
    #[inline(always)]
    fn finish(&mut self) {
        compiler_fence(Ordering::SeqCst);
        let end = self.publish();
        // SAFETY: a word of ours; a handler may change it at any moment.
        if unsafe { (&raw const self.end).read_volatile() } != end {
            self.publish_again(end);
        }
    }

    /// Publishes up to the end, and lets handlers publish from now on.
    #[inline(always)]
    fn publish(&mut self) -> u64 {
        // SAFETY: a word of ours; a handler may change it at any moment.
        let end = unsafe { (&raw const self.end).read_volatile() };
        // SAFETY: attached, or there would have been no room.
        unsafe { (*self.header).head.publish(end) };
        compiler_fence(Ordering::SeqCst);
        self.busy = 0;
        compiler_fence(Ordering::SeqCst);
        end
    }

    /// A handler wrote a record between the two, and saw us at work.
    #[cold]
    #[inline(never)]
    fn publish_again(&mut self, mut published: u64) {
        // SAFETY: as in `publish`. Without a ring: a handler came between the two and has forked,
        // and this is the child.
        while !self.header.is_null() && unsafe { (&raw const self.end).read_volatile() } != published {
            self.busy = stack_pointer();
            compiler_fence(Ordering::SeqCst);
            published = self.publish();
        }
    }

    /// Ends a record that could not be written.
    #[cold]
    fn abandon(&mut self, room: Room) {
        match room {
            Room::Detached => self.busy = 0,
            _ => self.finish(),
        }
    }

    /// Whether the last record of this thread was this poll, unchanged.
    #[inline(always)]
    pub fn continues_poll(&self, fold_id: u16, key: &[u64; FOLD_WORDS], arguments: usize) -> bool {
        self.fold_id == u32::from(fold_id)
            && self.fold_head == self.end
            && same(&self.fold_key, key, 0, arguments)
    }

    /// Remembers a poll that was just recorded in full.
    #[inline(always)]
    pub fn remember_poll(&mut self, fold_id: u16, key: &[u64; FOLD_WORDS]) {
        self.fold_id = u32::from(fold_id);
        self.fold_key = *key;
        self.fold_head = self.end;
    }

    /// Adds one equal poll to the run, if its answer is the remembered one.
    /// Answers whether it did.
    #[inline(always)]
    pub fn fold(&mut self, key: &[u64; FOLD_WORDS], arguments: usize, before: u64, after: u64) -> bool {
        // A signal handler may have recorded something during the poll itself.
        let alone = self.fold_head == self.end && self.busy == 0;
        if !alone || !same(&self.fold_key, key, arguments, FOLD_WORDS) {
            return false;
        }
        let Some(header) = self.header() else { return false };
        let fold = &header.fold;
        if self.fold_open {
            add(&fold.count, 1);
            add(&fold.total, after.wrapping_sub(before));
            fold.last.store(after, Ordering::Relaxed);
        } else {
            fold.count.store(1, Ordering::Relaxed);
            fold.first.store(before, Ordering::Relaxed);
            fold.last.store(after, Ordering::Relaxed);
            fold.total.store(after.wrapping_sub(before), Ordering::Relaxed);
            // Pairs with the Acquire load in `reader::open_fold`.
            fold.id.store(self.fold_id, Ordering::Release);
            self.fold_open = true;
            // The next record, whichever it is, takes the slow path.
            self.limit = 0;
        }
        true
    }

    /// Turns an open run of polls into a record. The caller has seen to room.
    fn close_fold(&mut self) {
        self.fold_open = false;
        let Some(header) = self.header() else { return };
        let words = fold_words(&header.fold);
        let id = header.fold.id.load(Ordering::Relaxed) as u16;
        let body = |at: *mut u8| {
            for (i, word) in words.iter().enumerate() {
                // SAFETY: four words, as the length says.
                unsafe { at.cast::<u64>().add(i).write_unaligned(word.to_le()) };
            }
        };
        // Room was seen to. It is written as a signal handler would, while the record that
        // ends the run waits: told so is that just this one fits.
        self.free_until = self.end.wrapping_add(FOLD_RECORD as u64 + record::MAX_RECORD as u64);
        // It belongs where its last poll ended, before whatever ends the run.
        // SAFETY: `body` writes four words.
        let written = unsafe { self.write(id, FOLD_RECORD, true, || words[2], body) };
        if let Some(header) = self.header() {
            if written.is_none() {
                add(&header.lost_calls, words[0]);
            }
            header.fold.id.store(0, Ordering::Release);
        }
    }

    /// Gives an open run of polls up: it, and its calls, are counted as lost.
    fn lose_fold(&mut self) {
        self.fold_open = false;
        let Some(header) = self.header() else { return };
        let calls = header.fold.count.load(Ordering::Relaxed);
        header.fold.id.store(0, Ordering::Release);
        add(&header.lost, 1);
        add(&header.lost_calls, calls);
    }

    /// Ends an open run of polls, for a thread that ends.
    pub fn flush(&mut self) {
        if self.fold_open && self.busy == 0 {
            self.busy = stack_pointer();
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
    #[cfg(target_arch = "x86_64")]
    {
        let sp: u64;
        // SAFETY: copies a register.
        unsafe { std::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
        sp
    }
    #[cfg(target_arch = "aarch64")]
    {
        let sp: u64;
        // SAFETY: copies a register.
        unsafe { std::arch::asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
        sp
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let here = 0u8;
        std::hint::black_box(&raw const here) as u64
    }
}

/// Whether two keys agree from one word to another. One word at a time: the key
/// was just stored so, and a wider load would have to wait for the stores.
#[inline(always)]
fn same(a: &[u64; FOLD_WORDS], b: &[u64; FOLD_WORDS], from: usize, to: usize) -> bool {
    let mut different = 0;
    for i in from..to {
        // SAFETY: `from` and `to` are at most `FOLD_WORDS`.
        different |= unsafe { a.as_ptr().add(i).read_volatile() ^ b.as_ptr().add(i).read_volatile() };
    }
    different == 0
}

/// `count, first, last, total` of a run.
pub(crate) fn fold_words(fold: &OpenFold) -> [u64; 4] {
    [&fold.count, &fold.first, &fold.last, &fold.total].map(|w| w.load(Ordering::Relaxed))
}

/// Only the owning thread writes its counters, so no atomic addition is needed.
fn add(word: &std::sync::atomic::AtomicU64, n: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}
