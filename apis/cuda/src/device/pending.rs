//! Commands between two events whose times are not known yet.
//!
//! Each thread has a block of its own, in which only it adds commands, without
//! a lock. Whoever synchronizes collects finished commands from all blocks; a
//! flag that is only ever *tried* keeps two collectors out of one block.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::{Extra, pid, thread_extra, with_guard};

use super::contexts::Context;
use super::record::pages;
use super::streams::Cache;
use crate::generated::prelude::{P, null_mut};

/// Commands one thread may have under way; more are not timed, and counted.
const CAPACITY: usize = 4096;

/// A command under way.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Recorded before it; NULL when the command was collected.
    pub before: P,
    /// Recorded after it.
    pub after: P,
    /// Where both belong.
    pub context: &'static Context,
    pub generation: u32,
    /// What is known already.
    pub command: Enqueued,
}

/// What is known of a command when it is enqueued; less than half of a record,
/// for this is written on the program's time.
#[derive(Debug, Clone, Copy)]
pub struct Enqueued {
    /// Index into `COMMAND_KINDS`.
    pub kind: u8,
    /// Indexes into `MEMORY_KINDS`.
    pub memory: [u8; 2],
    /// Bits of `command_flag`.
    pub flags: u16,
    pub cause_tid: u32,
    /// Counter value of the entry record of the call.
    pub cause: u64,
    /// Counter value when the call returned.
    pub returned: u64,
    /// The queue's key.
    pub queue: u64,
    /// Id of the function that runs; 0 if none.
    pub function: u64,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Work-groups in each dimension, and work-items of each.
    pub geometry: [u32; 6],
    /// Bytes of local memory that the launch asks for.
    pub shared: u32,
    /// Launches it stands for.
    pub weight: u32,
}

/// The commands of one thread, and what it remembers.
#[repr(C)]
#[derive(Debug)]
pub struct Block {
    extra: Extra,
    head: AtomicU64,
    tail: AtomicU64,
    collecting: AtomicBool,
    /// Process that the block belongs to: a forked child must not touch it.
    pid: u32,
    next: AtomicPtr<Block>,
    /// Streams that this thread used last. Only it looks there.
    pub streams: UnsafeCell<Cache>,
    slots: [UnsafeCell<Pending>; CAPACITY],
}

// SAFETY: slots from `tail` to `head` are the collector's, the others the
// owner's; `head` (Release/Acquire) and the flag hand them over. `streams` is
// the owner's alone.
unsafe impl Sync for Block {}

static FIRST: AtomicPtr<Block> = AtomicPtr::new(null_mut());

/// This thread's block, made if need be. `None` where there is no ring or no memory.
#[inline]
pub fn own() -> Option<&'static Block> {
    let word = match thread_extra() {
        Some(word) => word,
        // A thread of which no call was recorded yet gets its ring now.
        None => with_guard(thread_extra)?,
    };
    let mut block = word.load(Ordering::Relaxed);
    if block.is_null() {
        block = make()?.cast();
        word.store(block, Ordering::Relaxed);
    }
    // SAFETY: made below, and never freed.
    unsafe { block.cast::<Block>().as_ref() }
}

#[cold]
fn make() -> Option<*mut Block> {
    let me = pid();
    if !super::is_owner(me) {
        return None; // A forked child, to which the driver is dead.
    }
    // One of a thread that has ended; what that enqueued stays in it until it is collected.
    if let Some(left) = blocks(me).find(|b| b.extra.take()) {
        // SAFETY: its owner has ended, and only this thread has taken its place.
        // That one's default stream is not this one's.
        unsafe { *left.streams.get() = std::mem::zeroed() };
        return Some(std::ptr::from_ref(left).cast_mut());
    }
    // Zeroed memory is a valid block without commands.
    let block = pages(size_of::<Block>()).cast::<Block>();
    if block.is_null() {
        return None;
    }
    // SAFETY: nobody else has it yet.
    unsafe {
        (*block).pid = me;
        (*block).extra.take();
    }
    let mut first = FIRST.load(Ordering::Acquire);
    loop {
        // SAFETY: as above.
        unsafe { (*block).next.store(first, Ordering::Relaxed) };
        match FIRST.compare_exchange(first, block, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(block),
            Err(now) => first = now,
        }
    }
}

fn blocks(pid: u32) -> impl Iterator<Item = &'static Block> {
    // SAFETY: blocks are never freed.
    let follow = |block: &AtomicPtr<Block>| unsafe { block.load(Ordering::Acquire).as_ref() };
    std::iter::successors(follow(&FIRST), move |b| follow(&b.next)).filter(move |b| b.pid == pid)
}

/// Whether any command of the process is under way.
pub fn any() -> bool {
    blocks(pid()).any(|b| b.head.load(Ordering::Relaxed) != b.tail.load(Ordering::Relaxed))
}

impl Block {
    /// Whether it takes one more command.
    pub fn has_room(&self) -> bool {
        // Pairs with the Release store of the collector: the slot was read.
        self.head.load(Ordering::Relaxed).wrapping_sub(self.tail.load(Ordering::Acquire)) < CAPACITY as u64
    }

    /// Adds a command. Answers how many are under way in this thread, or `None`
    /// if there is no room.
    #[inline]
    pub fn push(&self, pending: Pending) -> Option<u64> {
        let head = self.head.load(Ordering::Relaxed);
        let used = head.wrapping_sub(self.tail.load(Ordering::Acquire));
        if used >= CAPACITY as u64 {
            return None;
        }
        let slot = self.slots.get(head as usize % CAPACITY)?;
        // SAFETY: the slot is outside `tail..head`, so it is the owner's.
        unsafe { *slot.get() = pending };
        // Pairs with the Acquire load in `collect`.
        self.head.store(head.wrapping_add(1), Ordering::Release);
        Some(used + 1)
    }

    fn collect(&self, finished: &mut impl FnMut(&Pending) -> Progress) -> Left {
        // Most threads of many have nothing under way. What is added this moment is not
        // complete, and its call has not returned.
        if self.head.load(Ordering::Acquire) == self.tail.load(Ordering::Acquire) {
            return Left::default();
        }
        // Pairs with the Release store below.
        if self.collecting.swap(true, Ordering::Acquire) {
            let commands = self.head.load(Ordering::Relaxed) != self.tail.load(Ordering::Relaxed);
            // The other thread will tell; until then nothing is certain.
            return Left { oldest: u64::from(commands) };
        }
        let tail = self.tail.load(Ordering::Relaxed);
        // Pairs with the Release store in `push`.
        let head = self.head.load(Ordering::Acquire);
        let (mut waiting, mut waits) = ([0u64; WAITING], 0);
        let (mut done, mut gap, mut oldest) = (tail, false, 0);
        let mut at = tail;
        while at != head && waits < WAITING {
            let Some(slot) = self.slots.get(at as usize % CAPACITY) else { break };
            // SAFETY: between `tail` and `head`, and the flag makes us the only collector.
            let pending = unsafe { &mut *slot.get() };
            let queue = pending.command.queue;
            if !pending.before.is_null() && !waiting.iter().take(waits).any(|q| *q == queue) {
                match finished(pending) {
                    Progress::Collected => pending.before = null_mut(),
                    Progress::QueueWaits => {
                        if let Some(place) = waiting.get_mut(waits) {
                            *place = queue;
                            waits += 1;
                        }
                    }
                }
            }
            if !gap && !pending.before.is_null() {
                (gap, oldest) = (true, pending.command.cause);
            }
            at = at.wrapping_add(1);
            if !gap {
                done = at;
            }
        }
        // Pairs with the Acquire load in `push`: these slots are the owner's again.
        self.tail.store(done, Ordering::Release);
        self.collecting.store(false, Ordering::Release);
        Left { oldest }
    }
}

/// Streams known to wait, while a block is gone through.
const WAITING: usize = 16;

/// What is to be done with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was told, or given up.
    Collected,
    /// It is not complete, so others of its stream are not, either.
    QueueWaits,
}

/// What is still under way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// Counter value when the oldest was enqueued; 0 if there is none.
    pub oldest: u64,
}

impl Left {
    fn add(&mut self, other: Left) {
        self.oldest = match (self.oldest, other.oldest) {
            (0, there) | (there, 0) => there,
            (a, b) => a.min(b),
        };
    }
}

/// Offers commands of one thread's block, or of all, to `finished`. Never
/// waits: a block that another thread is collecting is left to it. Answers what
/// is still under way.
pub fn collect(only: Option<&Block>, mut finished: impl FnMut(&Pending) -> Progress) -> Left {
    let mut left = Left::default();
    match only {
        Some(block) => left.add(block.collect(&mut finished)),
        None => blocks(pid()).for_each(|block| left.add(block.collect(&mut finished))),
    }
    left
}
