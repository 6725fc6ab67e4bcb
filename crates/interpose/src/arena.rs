//! The process's arena: made when the API is there, as the library starts or a function of it is asked for; else by the
//! first call, as in a forked child.
//!
//! All that needs a descriptor is done here, once: afterwards rings are taken from memory that
//! is mapped already, and no call of the program opens, closes or names a file. Programs may
//! have come to their limit of descriptors by then, have limited the size of files, or have
//! forbidden themselves most system calls.
//!
//! Where two threads, or a thread and the drainer, meet here, each thing is a type of its own, of which loom explores the
//! interleavings: who makes the arena ([`crate::phase`]), what the process takes of the launcher's budget
//! ([`crate::share`]), the places of rings and how they become known ([`hetrace_ring::abi::directory`]), and whose a ring is
//! ([`hetrace_ring::tenure`]). `reusable`, `ring_hint` and `rings` only say where it is worth looking.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use hetrace_ring::abi::directory::Entry;
use hetrace_ring::abi::{
    ABI_VERSION, ARENA_MAGIC, ARENA_PREFIX, ArenaHeader, Control, DIRECTORY_PAGES, FIRST_RING, MAX_RINGS,
    PAGE, RING_MAGIC, RingHeader, ThreadRecord, ring_bytes, special,
};
use hetrace_ring::writer::Making;
use hetrace_ring::{clock, record};

use crate::cancel::NoCancel;
use crate::errno::ErrnoGuard;
use crate::own::{self, Process, arena, header};
use crate::phase::Stage;
use crate::process::{PATH, Session};
use crate::spent;
use crate::text::Text;
use crate::who::{image, pid_namespace, process_start, read_file};

/// Size of an arena's file, which is sparse, and of its mapping.
const ARENA: u64 = 256 << 20;
/// Of a program's addresses, where they are limited, the arenas of all APIs take one part in this many.
const OF_ADDRESSES: u64 = 16;
/// Of what all rings may take now, likewise.
const OF_BUDGET: u64 = 2;
/// The least that is any good.
const LEAST: u64 = FIRST_RING + ring_bytes(PAGE as u64);
/// Data bytes of the ring that is there before the first call: its thread needs no memory.
const SEED: u64 = 16 << 10;
/// Where `MADV_POPULATE_WRITE` is not known (before Linux 5.14), this much has memory at once.
const BACKED: u64 = 8 << 20;

/// How long a thread sleeps while another makes the arena, and how often: two seconds at the least.
const NAP_NS: i64 = 20_000;
const PATIENCE: u32 = 100_000;

const MADV_POPULATE_WRITE: libc::c_int = 23;

/// The process's part with its arena, made if need be. `None` if there is none to be had, or
/// a signal handler came while its own thread is making it.
pub(crate) fn ready(session: &Session) -> Option<&'static Process> {
    let process = own::process()?;
    let mut naps = 0;
    loop {
        match process.phase.get() {
            Stage::Ready => return Some(process),
            Stage::Failed => return None,
            Stage::Starting(maker) => {
                if maker == own::this_thread() {
                    return None;
                }
                if naps == PATIENCE {
                    // A handler has left it by siglongjmp, say. If it ends nevertheless, it is ready.
                    process.phase.give_up(maker);
                }
                naps += 1;
                hetrace_ring::writer::nap(NAP_NS);
            }
            Stage::Empty => start(session, process),
        }
    }
}

/// Makes the arena, unless another thread has begun to.
#[cold]
pub(crate) fn start(session: &Session, process: &Process) {
    if process.phase.get() != Stage::Empty {
        return;
    }
    // Opening a file is a point where a thread may be cancelled: the others would wait for ever.
    let _whole = NoCancel::new();
    if !process.phase.begin(own::this_thread()) {
        return;
    }
    let began = clock::ticks();
    own::keep_clear_of_parents_writers(process);
    let _errno = ErrnoGuard::new();
    let made = match make(session, process) {
        Ok(()) => true,
        Err(what) => {
            let mut text = Text::<160>::new();
            text.push(b"process ");
            text.number(u64::from(own::pid()));
            text.push(b" is not recorded: ");
            text.push(what.as_bytes());
            session.note(text.bytes());
            false
        }
    };
    process.phase.finish(made);
    if let Some(header) = header(process) {
        header.setup_ticks.fetch_add(clock::ticks().wrapping_sub(began), Ordering::Relaxed);
    }
    spent::say_loading();
}

fn make(session: &Session, process: &Process) -> Result<(), &'static str> {
    let size = size(session).ok_or("its limits leave no room for shared memory")?;
    let mut path = [0; PATH + 64];
    let (path, fd) = create(session, &mut path).ok_or("no file can be made in the session's folder")?;
    let made = Maker { session, fd, size }.make(process);
    if made.is_err() {
        // SAFETY: a NUL-terminated path, of the file just made.
        unsafe { libc::unlink(path.as_ptr()) };
    }
    made
}

/// An arena being made, in a file of its own.
struct Maker<'s> {
    session: &'s Session,
    fd: RawFd,
    size: u64,
}

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        // SAFETY: opened by `create`, and nobody else knows it. The mapping keeps the file.
        unsafe { libc::close(self.fd) };
    }
}

impl Maker<'_> {
    fn make(mut self, process: &Process) -> Result<(), &'static str> {
        // In a child that was made without the C library it keeps the parent's.
        own::find_tid();
        // SAFETY: an open descriptor. The mode is what it should be under any umask.
        let sized = unsafe {
            libc::fchmod(self.fd, 0o600) == 0 && libc::ftruncate(self.fd, self.size as libc::off_t) == 0
        };
        if !sized {
            return Err("the memory file system takes no file of this size");
        }
        // SAFETY: an open descriptor.
        let locked = unsafe { libc::flock(self.fd, libc::LOCK_EX | libc::LOCK_NB) } == 0;
        let base = self.map().ok_or("no addresses are left for shared memory")?;
        process.arena.store(base, Ordering::Relaxed);
        process.limit.store(self.size, Ordering::Relaxed);
        // The header, the directory's first page, and the first ring.
        let first = 2 * PAGE as u64 + ring_bytes(SEED);
        if !budget(self.session, process).take(first) {
            return Err("the memory file system has too little room");
        }
        let header = populate(base, 0, 2 * PAGE as u64);
        if header == Populated::Unknown {
            self.back(process)?;
        } else if header == Populated::No {
            return Err("the memory file system is full");
        }
        self.describe(base, locked);
        if let Some(ring) = carve_unpaid(process, SEED, &Making::new()) {
            // SAFETY: a ring just made, which is this thread's alone.
            unsafe { &*ring.base.cast::<RingHeader>() }.state.free();
            arena(base).reusable.fetch_add(1, Ordering::Relaxed);
        }
        // Pairs with the Acquire load in `Arena::open`.
        arena(base).magic.store(ARENA_MAGIC, Ordering::Release);
        self.session.reported().arenas_made.increase();
        self.session.reported().made.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Maps the file, as much of it as there are addresses for. A forked child does not get
    /// the mapping: whoever has it can write there, and counts as alive.
    fn map(&mut self) -> Option<*mut u8> {
        while self.size >= LEAST {
            // SAFETY: a fresh range at an address of the kernel's choice.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    self.size as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_NORESERVE,
                    self.fd,
                    0,
                )
            };
            if base != libc::MAP_FAILED {
                // SAFETY: the range mapped above.
                let kept = unsafe { libc::madvise(base, self.size as usize, libc::MADV_DONTFORK) } == 0;
                // SAFETY: the range mapped above. A core file without it is as good.
                unsafe { libc::madvise(base, self.size as usize, libc::MADV_DONTDUMP) };
                return kept.then_some(base.cast());
            }
            self.size = (self.size / 2) & !(PAGE as u64 - 1);
        }
        None
    }

    /// Gets memory for a first part: an old kernel can't do that later without a descriptor.
    fn back(&self, process: &Process) -> Result<(), &'static str> {
        let length = BACKED.min(self.size);
        // SAFETY: an open descriptor.
        let done = budget(self.session, process).take(length)
            // SAFETY: an open descriptor.
            && unsafe { libc::fallocate(self.fd, 0, 0, length as libc::off_t) } == 0;
        process.limit.store(length, Ordering::Relaxed);
        done.then_some(()).ok_or("the memory file system is full")
    }

    fn describe(&self, base: *mut u8, locked: bool) {
        let mut comm = [0u8; 16];
        // SAFETY: PR_GET_NAME writes at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, comm.as_mut_ptr()) };
        let mut command = [0u8; 512];
        read_file(c"/proc/self/cmdline", &mut command[..511]);
        // SAFETY: no preconditions.
        let parent = unsafe { libc::getppid() as u32 };
        let header = base.cast::<ArenaHeader>();
        // SAFETY: the first page of the mapping, which is aligned and has memory (`populate` or `back`).
        // The drainer may have it mapped already, but reads nothing except `magic` before that is
        // stored; in this process only the thread that makes the arena knows the address. No
        // reference is made, so none claims to be the only one.
        unsafe {
            (&raw mut (*header).version).write(ABI_VERSION);
            (&raw mut (*header).api).write(self.session.api);
            (&raw mut (*header).pid).write(own::pid());
            (&raw mut (*header).parent).write(parent);
            (&raw mut (*header).pid_namespace).write(pid_namespace());
            (&raw mut (*header).process_start).write(process_start());
            (&raw mut (*header).image).write(image());
            (&raw mut (*header).comm).write(comm);
            (&raw mut (*header).command).write(command);
            (&raw mut (*header).locked).write(u32::from(locked));
        }
        arena(base).used.begin();
    }
}

/// Bytes that an arena may have under this process's limits.
fn size(session: &Session) -> Option<u64> {
    let limit = |what| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a valid place for the result.
        let known = unsafe { libc::getrlimit(what, &raw mut limit) } == 0;
        if known { limit.rlim_cur } else { libc::RLIM_INFINITY }
    };
    // Of addresses most are the program's, however many libraries record it.
    let arenas = u64::from(session.control().api_count.max(1));
    let size = ARENA.min(limit(libc::RLIMIT_FSIZE)).min(limit(libc::RLIMIT_AS) / OF_ADDRESSES / arenas);
    // `mlockall` gets memory for all of it: there must be some left for others then.
    let room = session.control().room.load(Ordering::Relaxed);
    let size = size.min((room / OF_BUDGET).max(LEAST));
    let size = size & !(PAGE as u64 - 1);
    (size >= LEAST).then_some(size)
}

/// A new file in the session's folder, and its path.
fn create<'b>(session: &Session, buffer: &'b mut [u8; PATH + 64]) -> Option<(&'b CStr, RawFd)> {
    for number in 0..10_000 {
        let mut name = Text::<64>::new();
        name.push(ARENA_PREFIX.as_bytes());
        name.number(u64::from(session.api));
        name.push(b"-");
        name.number(u64::from(own::pid()));
        name.push(b"-");
        name.number(number);
        let path = session.path(buffer, name.bytes())?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: a NUL-terminated path.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if fd >= 0 {
            return Some((session.path(buffer, name.bytes())?, fd));
        }
        // SAFETY: the C library's own place for this thread's errno.
        if unsafe { *libc::__errno_location() } != libc::EEXIST {
            return None;
        }
    }
    None
}

/// Where the arena is. None in a child that was forked by a handler, while what that one
/// interrupted goes on.
fn base(process: &Process) -> Option<*mut u8> {
    let base = process.arena.load(Ordering::Relaxed);
    (!base.is_null()).then_some(base)
}

/// What the launcher lets this process take until it says so anew. What others take the launcher finds out: a count in
/// memory that all programs write could leave one without rings because of another.
struct Budget<'c> {
    control: &'c Control,
    process: &'c Process,
}

fn budget<'c>(session: &Session, process: &'c Process) -> Budget<'c> {
    Budget { control: session.control(), process }
}

impl Budget<'_> {
    /// The number of the launcher's last look, and what it allows.
    fn allowed(&self) -> (u32, u64) {
        // Pairs with the Release store of the launcher: the budget is of that look, or of a later one.
        let look = self.control.budget_looks.load(Ordering::Acquire);
        (look, self.control.budget.load(Ordering::Relaxed))
    }

    /// What may still be taken.
    fn left(&self) -> u64 {
        let (look, budget) = self.allowed();
        budget.saturating_sub(self.process.share.taken(look))
    }

    fn take(&self, bytes: u64) -> bool {
        let (look, budget) = self.allowed();
        self.process.share.take(look, budget, bytes)
    }

    fn give(&self, bytes: u64) {
        self.process.share.give(self.allowed().0, bytes);
    }
}

/// What rings may still take: of the memory for all programs, and of this arena.
pub(crate) fn left(session: &Session, process: &Process) -> u64 {
    let used = base(process).map_or(u64::MAX, |base| arena(base).used.get());
    budget(session, process).left().min(process.limit.load(Ordering::Relaxed).saturating_sub(used))
}

#[derive(PartialEq, Eq)]
enum Populated {
    Yes,
    No,
    /// The kernel does not know the request.
    Unknown,
}

/// Gets memory for a part of the arena: a full file system must show here as a failure, not
/// later as SIGBUS in the program.
fn populate(base: *mut u8, offset: u64, length: u64) -> Populated {
    // SAFETY: the range lies in the arena's mapping.
    let done =
        unsafe { libc::madvise(base.add(offset as usize).cast(), length as usize, MADV_POPULATE_WRITE) };
    // SAFETY: the C library's own place for this thread's errno.
    match (done, unsafe { *libc::__errno_location() }) {
        (0, _) => Populated::Yes,
        (_, libc::EINVAL) => Populated::Unknown,
        _ => Populated::No,
    }
}

/// Gives memory of a part of the arena back.
fn release(base: *mut u8, offset: u64, length: u64) {
    // SAFETY: the range lies in the arena's mapping, and holds no data that is in use.
    unsafe { libc::madvise(base.add(offset as usize).cast(), length as usize, libc::MADV_REMOVE) };
}

/// A new ring of so many data bytes, in state CLAIMED; if there is memory for it. `making` is what a handler that did not
/// return has left half done, or nothing.
pub(crate) fn carve(session: &Session, process: &Process, data: u64, making: &Making) -> Option<Space> {
    if making.data.get() != data {
        unmake(session, process, making);
        making.data.set(data);
    }
    if making.paid.get() == 0 {
        if !budget(session, process).take(ring_bytes(data)) {
            return None;
        }
        making.paid.set(ring_bytes(data));
    }
    let ring = carve_unpaid(process, data, making);
    match ring {
        Some(_) => {
            session.reported().made.fetch_add(1, Ordering::Release);
        }
        None => budget(session, process).give(ring_bytes(data)),
    }
    making.settle();
    ring
}

/// Gives back what was taken for a ring that is not made. Its place in the arena stays empty.
pub(crate) fn unmake(session: &Session, process: &Process, making: &Making) {
    let (offset, paid, number) = (making.offset.get(), making.paid.get(), making.number.get());
    let arena_base = base(process).filter(|_| offset != 0);
    let made = arena_base.and_then(|base| ring(base, (number as usize).checked_sub(1)?));
    if let (Some(base), Some(ring)) = (arena_base, made.map(|ring| ring.base)) {
        // It was made and never handed out: it is there for others.
        making.settle();
        // SAFETY: a ring of this arena, whose header stays.
        unsafe { &*ring.cast::<RingHeader>() }.state.free();
        arena(base).reusable.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if let Some(base) = arena_base {
        release(base, offset, ring_bytes(making.data.get()));
    }
    making.settle();
    budget(session, process).give(paid);
}

fn carve_unpaid(process: &Process, data: u64, making: &Making) -> Option<Space> {
    let base = base(process)?;
    let (header, limit) = (arena(base), process.limit.load(Ordering::Relaxed));
    let length = ring_bytes(data);
    if !data.is_power_of_two()
        || data < PAGE as u64
        || header.rings.load(Ordering::Relaxed) as usize >= MAX_RINGS
    {
        return None;
    }
    if making.offset.get() == 0 {
        making.offset.set(header.used.take(length, limit)?);
    }
    if making.number.get() == 0 {
        making.number.set(header.rings.fetch_add(1, Ordering::Relaxed) + 1);
    }
    let (offset, number) = (making.offset.get(), making.number.get() - 1);
    let entry_at = PAGE as u64 + u64::from(number) * 8;
    let entry_page = entry_at & !(PAGE as u64 - 1);
    let populated = |offset, length| populate(base, offset, length) != Populated::No;
    let directory = entry_page == PAGE as u64 || populated(entry_page, PAGE as u64);
    if number as usize >= MAX_RINGS || !directory || !populated(offset, length) {
        release(base, offset, length);
        return None;
    }
    // SAFETY: `room` left the ring within `limit`, which is at most the length of the mapping.
    let ring = unsafe { base.add(offset as usize) };
    let header = ring.cast::<RingHeader>();
    // SAFETY: a page in the mapping, which `populate` got memory for. The addition to `used` made
    // the range this thread's alone, and nobody else reads it before the directory names it.
    unsafe {
        (&raw mut (*header).data_bytes).write(data);
        (&raw mut (*header).number).write(number);
    }
    // SAFETY: the same page; a header is valid for all bit patterns, and what others will change
    // in it are atomics.
    let fresh = unsafe { &*header };
    fresh.state.make();
    fresh.magic.store(RING_MAGIC, Ordering::Relaxed);
    // SAFETY: in the directory, whose page has memory.
    let entry = unsafe { &*base.add(entry_at as usize).cast::<Entry>() };
    // The drainer finds it there, and other threads of this process here: the header is written.
    entry.publish(offset, data);
    own::ring_place(number as usize)?.publish(offset, data);
    process.rings.fetch_max(number + 1, Ordering::Release);
    Some(Space { base: ring, data })
}

/// A ring of at least so many data bytes that nobody uses, now in state CLAIMED: one that the
/// drainer has emptied, or one of an ended thread with room behind what waits there.
pub(crate) fn claim(process: &Process, least: u64) -> Option<Space> {
    let base = base(process)?;
    let header = arena(base);
    if header.reusable.load(Ordering::Relaxed) <= 0 {
        return None;
    }
    let count = (process.rings.load(Ordering::Acquire) as usize).min(MAX_RINGS);
    let from = process.ring_hint.load(Ordering::Relaxed) as usize;
    (0..count).map(|i| (from + i) % count).find_map(|number| {
        let ring = ring(base, number)?;
        // SAFETY: a ring of this arena, whose header stays.
        let there = unsafe { &*ring.base.cast::<RingHeader>() };
        let size = ring.data;
        if size < least || !there.state.claim(&there.head, &there.tail, size) {
            return None;
        }
        header.reusable.fetch_sub(1, Ordering::Relaxed);
        process.ring_hint.store((number + 1) as u32, Ordering::Relaxed);
        Some(ring)
    })
}

/// A ring's memory, as its maker knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// Its first byte.
    pub(crate) base: *mut u8,
    /// Its data bytes.
    pub(crate) data: u64,
}

/// A ring by its number, if it is complete.
fn ring(base: *mut u8, number: usize) -> Option<Space> {
    const _: () = assert!(MAX_RINGS * 8 == DIRECTORY_PAGES * PAGE);
    let (offset, data) = own::ring_place(number)?.find()?;
    // SAFETY: the place of a ring that this process made, in the mapping; it stands in private memory, which is cleared in
    // a child.
    Some(Space { base: unsafe { base.add(offset as usize) }, data })
}

/// Begins a thread's records in a ring that it claimed: who it is, and in which ring its
/// records before these stand (see [`ThreadRecord::follows`]).
pub(crate) fn begin(space: Space, tid: u32, follows: u32) {
    let Space { base: ring, data } = space;
    // SAFETY: a ring that this thread claimed.
    let header = unsafe { &*ring.cast::<RingHeader>() };
    let now = clock::ticks();
    let body = ThreadRecord {
        tid,
        follows,
        claimed_at: now,
        lost: header.lost.load(Ordering::Relaxed),
        lost_calls: header.lost_calls.load(Ordering::Relaxed),
    };
    let length = record::HEAD + size_of::<ThreadRecord>();
    let at = header.head.own();
    // SAFETY: half of the ring is free, and from `at` on a record's length is in one piece.
    unsafe {
        let place = ring.add(PAGE + (at & (data - 1)) as usize);
        place.cast::<u64>().write_unaligned(record::pack(special::THREAD, length, now).to_le());
        place.add(record::HEAD).cast::<ThreadRecord>().write_unaligned(body);
    }
    header.head.publish(at.wrapping_add(length as u64));
    header.state.begin();
}

/// Lets others have a ring: its thread has ended, or does not need it after all.
pub(crate) fn end(process: &Process, ring: &RingHeader) {
    process.ring_hint.store(ring.number, Ordering::Relaxed);
    ring.state.end();
    if let Some(base) = base(process) {
        arena(base).reusable.fetch_add(1, Ordering::Relaxed);
    }
}
