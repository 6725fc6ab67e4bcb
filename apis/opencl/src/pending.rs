//! Commands that were enqueued and whose times are not known yet.
//!
//! Each thread has a block of its own, in which only it adds commands, without
//! a lock. Whoever synchronizes collects finished commands from all blocks; a
//! flag that is only ever *tried* keeps two collectors out of one block.
//!
//! ```text
//!   owner:     push ──► head          collector:  tail ──► done? ──► record, release
//! ```

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::{Extra, pid, thread_extra};

use crate::generated::prelude::P;

/// Commands one thread may have under way; more are not timed, and counted.
pub const CAPACITY: usize = 4096;

/// A command under way.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Its event, of which we own one reference; NULL when it was collected.
    pub event: P,
    /// Kernel's name, or NULL.
    pub name: *const u8,
    /// Whether the program has the event, too.
    pub shared: bool,
    /// What is known already.
    pub command: Enqueued,
}

/// What is known of a command when it is enqueued. It is less than half of a
/// record: this is written with every command, on the program's time.
#[derive(Debug, Clone, Copy)]
pub struct Enqueued {
    /// Thread that enqueued it.
    pub cause_tid: u32,
    /// Index into `COMMAND_KINDS`.
    pub kind: u8,
    /// Dimensions of the geometry; 0 when there is none.
    pub dimensions: u8,
    /// Counter value of the entry record of the call.
    pub cause: u64,
    /// Counter value when the call returned.
    pub returned: u64,
    /// The queue's handle.
    pub queue: u64,
    /// The device's handle.
    pub device: u64,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Global offset, global size, local size.
    pub geometry: [[u64; 3]; 3],
}

/// The commands of one thread, and of those that had the block before it.
#[repr(C)]
#[derive(Debug)]
pub struct Block {
    extra: Extra,
    pub head: AtomicU64,
    pub tail: AtomicU64,
    collecting: AtomicBool,
    /// Process that the block belongs to: a forked child must not touch it.
    pid: u32,
    next: AtomicPtr<Block>,
    slots: [UnsafeCell<Pending>; CAPACITY],
}

// SAFETY: slots from `tail` to `head` are the collector's, the others the
// owner's; `head` (Release/Acquire) and the flag hand them over.
unsafe impl Sync for Block {}

static FIRST: AtomicPtr<Block> = AtomicPtr::new(std::ptr::null_mut());

/// This thread's block, made if need be. `None` outside a recorded call.
fn own() -> Option<&'static Block> {
    let word = thread_extra()?;
    let mut block = word.load(Ordering::Relaxed);
    if block.is_null() {
        block = make()?.cast();
        word.store(block, Ordering::Relaxed);
    }
    // SAFETY: made below, and never freed.
    unsafe { block.cast::<Block>().as_ref() }
}

/// The blocks of this process.
fn blocks(pid: u32) -> impl Iterator<Item = &'static Block> {
    // SAFETY: blocks are never freed.
    let follow = |block: &AtomicPtr<Block>| unsafe { block.load(Ordering::Acquire).as_ref() };
    std::iter::successors(follow(&FIRST), move |b| follow(&b.next)).filter(move |b| b.pid == pid)
}

#[cold]
fn make() -> Option<*mut Block> {
    // One of a thread that has ended; what that enqueued stays in it until it is collected.
    if let Some(left) = blocks(pid()).find(|b| b.extra.take()) {
        return Some(std::ptr::from_ref(left).cast_mut());
    }
    let length = size_of::<Block>();
    // SAFETY: a fresh range at an address of the kernel's choice; zeroed memory
    // is a valid block, and pages cost nothing before they are used.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    let block = page.cast::<Block>();
    // SAFETY: nobody else has it yet.
    unsafe { (*block).pid = pid() };
    // SAFETY: as above.
    unsafe { &*block }.extra.take();
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

/// Adds a command. Answers how many are under way in this thread, or `None` if
/// there is no room.
pub fn push(pending: Pending) -> Option<u64> {
    let block = own()?;
    let head = block.head.load(Ordering::Relaxed);
    // Pairs with the Release store of the collector: the slot was read.
    let used = head.wrapping_sub(block.tail.load(Ordering::Acquire));
    if used >= CAPACITY as u64 {
        return None;
    }
    let slot = block.slots.get(head as usize % CAPACITY)?;
    // SAFETY: the slot is outside `tail..head`, so it is the owner's.
    unsafe { *slot.get() = pending };
    // Pairs with the Acquire load in `collect`.
    block.head.store(head.wrapping_add(1), Ordering::Release);
    Some(used + 1)
}

/// What `finished` says of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was recorded and released.
    Collected,
    /// It is not complete, so others of its in-order queue are not, either.
    QueueWaits,
    /// It is not complete.
    Waits,
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

/// Offers commands of this thread's block, or of all, to `finished`. Never
/// waits: a block that another thread is collecting is left to it. Answers what
/// is still under way.
pub fn collect(all: bool, mut finished: impl FnMut(&Pending) -> Progress) -> Left {
    let mut left = Left::default();
    if all {
        for block in blocks(pid()) {
            left.add(collect_block(block, &mut finished));
        }
    } else if let Some(block) = own() {
        left.add(collect_block(block, &mut finished));
    }
    left
}

/// Queues known to wait, while a block is gone through.
const WAITING: usize = 8;
/// Incomplete commands of out-of-order queues that are asked about at a time.
const MISSES: usize = 64;

fn collect_block(block: &Block, finished: &mut impl FnMut(&Pending) -> Progress) -> Left {
    // Pairs with the Release store below.
    if block.collecting.swap(true, Ordering::Acquire) {
        let commands = block.head.load(Ordering::Relaxed).wrapping_sub(block.tail.load(Ordering::Relaxed));
        // The other thread will tell; until then nothing is certain.
        return Left { oldest: u64::from(commands > 0) };
    }
    let tail = block.tail.load(Ordering::Relaxed);
    // Pairs with the Release store in `push`.
    let head = block.head.load(Ordering::Acquire);
    let (mut waiting, mut waits, mut misses) = ([0u64; WAITING], 0, 0);
    let (mut done, mut gap, mut oldest) = (tail, false, 0);
    let mut at = tail;
    while at != head && misses < MISSES && waits < WAITING {
        let Some(slot) = block.slots.get(at as usize % CAPACITY) else { break };
        // SAFETY: between `tail` and `head`, and the flag makes us the only collector.
        let pending = unsafe { &mut *slot.get() };
        let queue = pending.command.queue;
        if !pending.event.is_null() && !waiting.iter().take(waits).any(|q| *q == queue) {
            match finished(pending) {
                Progress::Collected => pending.event = std::ptr::null_mut(),
                Progress::QueueWaits => {
                    if let Some(place) = waiting.get_mut(waits) {
                        *place = queue;
                        waits += 1;
                    }
                }
                Progress::Waits => misses += 1,
            }
        }
        if !gap && !pending.event.is_null() {
            (gap, oldest) = (true, pending.command.cause);
        }
        at = at.wrapping_add(1);
        if !gap {
            done = at;
        }
    }
    // Pairs with the Acquire load in `push`: these slots are the owner's again.
    block.tail.store(done, Ordering::Release);
    block.collecting.store(false, Ordering::Release);
    Left { oldest }
}
