//! What belongs to this process alone, in memory that the kernel clears in a forked child.
//!
//! One range of private memory, mapped when the library starts: the state of the process's
//! part in the session, and a writer for each thread that records. `MADV_WIPEONFORK` makes a
//! child find zeros there, however it was forked: no arena, and writers of nobody. A child
//! that shares its parent's memory (`vfork`, `CLONE_VM`) finds its parent's, as it should.
//!
//! ```text
//!   page 0   │ pages 1 … │ then
//!   Process  │ rings     │ Writer │ Writer │ …          owner 0: nobody's
//! ```
//! Where rings are and how large stands here and not only in the arena: a program that overwrites its arena must not lead
//! us out of it.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::directory::Entry;
use hetrace_ring::abi::{ArenaHeader, MAX_RINGS, PAGE};
use hetrace_ring::writer::Writer;

use crate::phase::{Phase, Stage};
use crate::share::Share;

/// Writers: as many threads can record at a time.
const WRITERS: usize = 8192;
/// Bytes of a writer's place: whole cache lines, so that threads do not share one.
const PLACE: usize = size_of::<Writer>().next_multiple_of(64);
/// Bytes in front of the writers: the process's page, and where its rings are.
const FRONT: usize = PAGE + MAX_RINGS * size_of::<Entry>();
const LENGTH: usize = FRONT + WRITERS * PLACE;

/// This process's part in the session. All zeros at first, and in a forked child.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Process {
    /// How far it has come with its arena.
    pub(crate) phase: Phase,
    /// Process id; 0 before anybody asked.
    pub(crate) pid: AtomicU32,
    /// The arena.
    pub(crate) arena: AtomicPtr<u8>,
    /// Up to where rings may lie in the arena.
    pub(crate) limit: AtomicU64,
    /// Data bytes of rings that are larger than the session's.
    pub(crate) larger: AtomicU64,
    /// No ring is made before this counter value: there was no room a moment ago.
    pub(crate) not_before: AtomicU64,
    /// What it has taken of the launcher's budget.
    pub(crate) share: Share,
    /// Rings made so far: the directory has memory for so many.
    pub(crate) rings: AtomicU32,
    /// Where the search for a ring begins: one that was free lately.
    pub(crate) ring_hint: AtomicU32,
    /// Where the search for a writer begins.
    pub(crate) writer_hint: AtomicU32,
}

/// The header of the process's arena, if it has one.
pub(crate) fn header(process: &Process) -> Option<&'static ArenaHeader> {
    let ready = process.phase.get() == Stage::Ready;
    let base = process.arena.load(Ordering::Relaxed);
    (ready && !base.is_null()).then(|| arena(base))
}

/// The header of an arena.
pub(crate) fn arena(base: *mut u8) -> &'static ArenaHeader {
    // SAFETY: an arena stays mapped as long as the process is this one, and its first page has
    // memory; the members that change are atomics.
    unsafe { &*base.cast::<ArenaHeader>() }
}

const _: () = assert!(size_of::<Process>() <= PAGE);

static RANGE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// How many places for writers were ever in use, here or in processes that this one was forked
/// from: a forked child has it from its parent.
static EVER_USED: AtomicU32 = AtomicU32::new(0);

/// Lets the search for a writer begin behind all that were ever in use. The thread that forked
/// still has its parent's place in its word, cleared; were another thread of the child there, both
/// would record in one ring, if their stacks are near each other.
pub(crate) fn keep_clear_of_parents_writers(process: &Process) {
    process.writer_hint.store(EVER_USED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Maps the range. Returns whether there is one.
pub(crate) fn prepare() -> bool {
    if !RANGE.load(Ordering::Acquire).is_null() {
        return true;
    }
    // SAFETY: a fresh range at an address of the kernel's choice, without memory until it is used.
    let range = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            LENGTH,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if range == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the range mapped above.
    if unsafe { libc::madvise(range, LENGTH, libc::MADV_WIPEONFORK) } != 0 {
        // Without it a child could write into its parent's rings: rather none.
        // SAFETY: the range mapped above, which nobody uses yet.
        unsafe { libc::munmap(range, LENGTH) };
        return false;
    }
    RANGE.store(range.cast(), Ordering::Release);
    true
}

/// The process's part, if the library has joined a session.
pub(crate) fn process() -> Option<&'static Process> {
    // SAFETY: null, or a range that stays mapped and begins with a `Process`, all of whose
    // members are atomics and valid for all bit patterns.
    unsafe { RANGE.load(Ordering::Acquire).cast::<Process>().as_ref() }
}

fn place(number: usize) -> Option<&'static Writer> {
    let range = RANGE.load(Ordering::Acquire);
    if range.is_null() || number >= WRITERS {
        return None;
    }
    // SAFETY: the range has `WRITERS` places behind its front, each aligned to 64 bytes, and
    // stays mapped for ever. A writer is made of atomics, for which all bit patterns are valid that
    // it can have: zeros, and what it stores itself. (The kernel clears it in a child before that
    // one runs.)
    Some(unsafe { &*range.add(FRONT + number * PLACE).cast::<Writer>() })
}

/// The place of a ring of the arena, by its number, as a directory has it; 0 if there is none.
pub(crate) fn ring_place(number: usize) -> Option<&'static Entry> {
    let range = RANGE.load(Ordering::Acquire);
    if range.is_null() || number >= MAX_RINGS {
        return None;
    }
    // SAFETY: the range has `MAX_RINGS` entries, valid for all bit patterns, behind its first page, and stays mapped for ever.
    Some(unsafe { &*range.add(PAGE + number * size_of::<Entry>()).cast::<Entry>() })
}

/// A writer for this owner, all zeros but for that. Only its owner may use it.
pub(crate) fn take_writer(owner: u64) -> Option<&'static Writer> {
    let from = process()?.writer_hint.load(Ordering::Relaxed) as usize;
    (0..WRITERS).map(|i| (from + i) % WRITERS).find_map(|number| {
        let writer = place(number)?;
        // Pairs with the Release store in `give_writer`: it is all zeros again.
        writer.owner.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed).ok()?;
        process()?.writer_hint.store((number + 1) as u32, Ordering::Relaxed);
        EVER_USED.fetch_max((number + 1) as u32, Ordering::Relaxed);
        Some(writer)
    })
}

/// Gives a writer back that came from [`take_writer`], and that the thread does not use any more.
pub(crate) fn give_writer(writer: &'static Writer) {
    writer.clear();
    // Pairs with the Acquire exchange in `take_writer`.
    writer.owner.store(0, Ordering::Release);
    let address = |writer: &Writer| std::ptr::from_ref(writer) as usize;
    if let (Some(process), Some(first)) = (process(), place(0)) {
        let number = address(writer).saturating_sub(address(first)) / PLACE;
        process.writer_hint.store(number as u32, Ordering::Relaxed);
    }
}

/// The writer that a task took which has no word of its own.
pub(crate) fn writer_of(owner: u64) -> Option<&'static Writer> {
    (0..WRITERS).filter_map(place).find(|w| w.owner.load(Ordering::Relaxed) == owner)
}

/// This process's id, without a system call but for the first.
pub fn pid() -> u32 {
    let known = process().map_or(0, |p| p.pid.load(Ordering::Relaxed));
    if known != 0 {
        return known;
    }
    // SAFETY: no preconditions.
    let pid = unsafe { libc::getpid() as u32 };
    if let Some(process) = process() {
        process.pid.store(pid, Ordering::Relaxed);
    }
    pid
}

/// Who this thread is: an address of its own.
pub(crate) fn this_thread() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

/// Where the C library keeps a thread's id behind [`this_thread`]; seen so from 2.17 to 2.41.
const TID_OFFSET: usize = 720;

/// 1 if it was found there, 2 if not.
static TID_PLACE: AtomicU32 = AtomicU32::new(0);

/// Looks where the C library keeps a thread's id. Called when the library starts.
pub(crate) fn find_tid() {
    let found = cfg!(all(target_arch = "x86_64", target_env = "gnu")) && kept_tid() == kernel_tid();
    TID_PLACE.store(if found { 1 } else { 2 }, Ordering::Relaxed);
}

fn kept_tid() -> u32 {
    // SAFETY: a thread's descriptor is larger than this on every platform that we try it on,
    // and is the thread's own for as long as it runs.
    unsafe { (this_thread() as *const u8).add(TID_OFFSET).cast::<u32>().read_volatile() }
}

fn kernel_tid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// This thread's id, without a system call where the C library has it: a filter may forbid
/// to ask. A task that shares another's local storage has that one's.
pub(crate) fn tid() -> u32 {
    if TID_PLACE.load(Ordering::Relaxed) == 1 {
        let tid = kept_tid();
        if tid != 0 && tid >> 31 == 0 {
            return tid;
        }
    }
    kernel_tid()
}

/// This task's id, as the kernel has it. By the system call: glibc has `gettid` from 2.30 on only, and a library that
/// asks an older one for it ends the program.
pub fn task() -> u32 {
    kernel_tid()
}
