//! The bytes both sides agree on. `docs/shm-abi.md` draws them.
//!
//! Whoever changes anything here or in [`records`] raises [`ABI_VERSION`]; a
//! library and a launcher of different versions do not talk, and the launcher
//! says so.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::cursor::{Head, Tail};
use crate::primitive;
use crate::tenure::State;
pub use crate::tenure::state;
use directory::Used;

pub mod directory;
pub mod inside;
pub mod records;
pub mod window;

pub use records::*;
pub use window::{Counts, Flip, Switch, Window};

/// Raised with every change of these files.
pub const ABI_VERSION: u32 = 27;
/// First bytes of a control file.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"HTRCTRL1");
/// First bytes of an arena file.
pub const ARENA_MAGIC: u64 = u64::from_le_bytes(*b"HTRARENA");
/// First bytes of a ring.
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"HTRRING1");
/// Page size that the file layout assumes; a larger page of the machine is fine.
pub const PAGE: usize = 4096;
/// APIs in one session.
pub const MAX_APIS: usize = 32;
/// Functions of one API: one flag byte each, one page of flags.
pub const MAX_FUNCTIONS: usize = PAGE;
/// Pages for notes in what programs write together.
pub const NOTE_PAGES: usize = 4;
/// Size of a control file.
pub const CONTROL_BYTES: usize = flags_offset(MAX_APIS);
/// Name of the control file in the session's folder: what the launcher publishes for programs, which they map read-only.
pub const CONTROL_FILE: &str = "control";
/// Name of the file that all programs of the session write: what belongs to no arena.
pub const REPORTED_FILE: &str = "reported";
/// Size of that file.
pub const REPORTED_BYTES: usize = REPORTED_NOTES_OFFSET + NOTE_PAGES * PAGE;
/// Prefix of arena files.
pub const ARENA_PREFIX: &str = "arena-";
/// Prefix of blob files.
pub const BLOB_PREFIX: &str = "blob-";
/// Prefix of the empty folders by which a library says that it found a control file of another version:
/// `refused-API-VERSION`, the library's own. That stays so in all versions, as do the first 12 bytes of [`Control`].
pub const REFUSED_PREFIX: &str = "refused-";
/// The environment variable with the session's folder.
pub const SESSION_VARIABLE: &str = "HETRACE_SESSION";

/// Byte offset of the page with the [`Window`], in the control file.
pub const WINDOW_OFFSET: usize = PAGE;
/// Byte offset of the page with [`Counts`], in [`REPORTED_FILE`].
pub const COUNTS_OFFSET: usize = PAGE;
/// Byte offset of the notes there.
pub const REPORTED_NOTES_OFFSET: usize = 2 * PAGE;
/// Byte offset of the notes in an arena: the rest of its first page.
pub const ARENA_NOTES_OFFSET: usize = 1024;

/// Byte offset of the flags of API number `api`.
pub const fn flags_offset(api: usize) -> usize {
    WINDOW_OFFSET + (1 + api) * PAGE
}

/// Options of a session, as bits of [`Control::options`].
pub mod option {
    /// A full ring makes the program wait instead of losing records.
    pub const BLOCK: u32 = 1 << 0;
    /// Commands on devices are timed.
    pub const DEVICE: u32 = 1 << 1;
    /// Equal polls in a row become one record.
    pub const FOLD: u32 = 1 << 2;
    /// Program sources and intermediate code are stored.
    pub const SOURCES: u32 = 1 << 3;
    /// Build options and logs are recorded.
    pub const BUILD_LOGS: u32 = 1 << 4;
    /// Names and types of kernel arguments are recorded.
    pub const KERNEL_ARGS: u32 = 1 << 5;
    /// All properties of devices and platforms are recorded.
    pub const PROPERTIES: u32 = 1 << 6;
    /// Buffers of chosen kernels are stored.
    pub const BUFFERS: u32 = 1 << 7;
    /// Commands are timed by events even where a collector (CUPTI) could be had.
    pub const EVENTS: u32 = 1 << 8;
    /// Only every [`super::Control::sample_every`]-th launch of each kernel is
    /// timed, by events; the others are counted.
    pub const SAMPLED: u32 = 1 << 9;
    /// The session has a capture window: see [`super::Window`].
    pub const WINDOW: u32 = 1 << 10;
    /// The control file stands there for programs that begin dormant, and outlives sessions: a process makes its
    /// arena with the first call that it records.
    pub const STANDBY: u32 = 1 << 11;
    /// What is sent from memory of the host is hashed.
    pub const HASH_COPIES: u32 = 1 << 12;
    /// The Python stack of each call is recorded before it.
    pub const PY_STACKS: u32 = 1 << 13;
    /// The native stack of each call is recorded before it: see [`super::Control::stack_depth`].
    pub const STACKS: u32 = 1 << 14;
    /// Chosen kernels record what happens inside them: see [`super::Control::inside_choices`].
    pub const INSIDE: u32 = 1 << 15;
    /// Their pools are memory of the host, in files of the session.
    pub const INSIDE_SPILL: u32 = 1 << 16;
    /// Migrations of managed memory are not recorded.
    pub const NO_MIGRATIONS: u32 = 1 << 17;
    /// Pools of [`INSIDE`] are emptied when they are full, and what was in them last is kept.
    pub const INSIDE_RING: u32 = 1 << 18;
}

/// Bits of a function's flag byte.
///
/// A program combines the byte with [`super::Switch::mask`] by `and`: bits of [`INSIDE`] count while the capture
/// window is open, those of [`OUTSIDE`] while it is not, and none at all under a mask of 0. So what has a meaning in
/// both has a bit for each.
pub mod flag {
    /// Calls are recorded.
    pub const RECORD: u8 = 1 << 0 | 1 << 4;
    /// The function's hook is active, even if calls are not recorded.
    pub const HOOK: u8 = 1 << 1 | 1 << 5;
    /// Something is done before calls are recorded: they count towards the budget of
    /// [`super::Control::overhead_ppm`], or [`super::option::PY_STACKS`] or
    /// [`super::option::STACKS`] is on.
    pub const METERED: u8 = 1 << 2;
    /// Where the budget is spent, calls are added up in [`super::RingHeader::sums`] instead of being recorded.
    pub const SUMMABLE: u8 = 1 << 3;
    /// Calls are counted in [`super::Counts::launches`], which opens and closes the window; or, where
    /// [`super::Window::selects`] is set, each process looks whether it is recorded at all.
    pub const COUNTED: u8 = 1 << 6 | 1 << 7;
    /// The bits that count while the capture window is open, and in a session without windows.
    pub const INSIDE: u8 = 0b0100_1111;
    /// The bits that count while it is not open.
    pub const OUTSIDE: u8 = !INSIDE;
}

/// Start of the control file. The launcher alone writes it: programs open it for reading, so that nothing that they do
/// to their memory changes what the launcher publishes for others. What they report stands in [`Reported`] and [`ArenaHeader`].
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// [`CONTROL_MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`ABI_VERSION`].
    pub version: u32,
    /// Process id of the launcher.
    pub launcher: u32,
    /// See [`option`].
    pub options: AtomicU32,
    /// Data bytes of a ring; a power of two.
    pub ring_bytes: u32,
    /// Longest text recorded, in bytes without its NUL.
    pub text_cap: u32,
    /// Most bytes recorded of a value.
    pub bytes_cap: u32,
    /// Most elements recorded of an array.
    pub seq_cap: u32,
    /// Number of names in `apis`.
    pub api_count: u32,
    /// 1 until the drainer ends: a blocking program must not wait for the dead.
    pub drainer_alive: AtomicU32,
    /// With [`option::SAMPLED`]: which launches of each kernel are timed, every
    /// how many.
    pub sample_every: AtomicU32,
    /// NUL-terminated names of the APIs, in the order of their flags.
    pub apis: [[u8; 32]; MAX_APIS],
    /// Milliseconds after which a collector hands out what it has: a program
    /// that is killed loses at most that much.
    pub collect_every_ms: AtomicU32,
    /// Commands on devices whose times are not known yet, at most, in each process and API;
    /// 0: as many as the library thinks right.
    pub most_in_flight: AtomicU32,
    /// Bytes that rings of each process and API may take in addition, until there is a new one. Each keeps account of
    /// what it takes by itself.
    pub budget: AtomicU64,
    /// Bytes that are left for rings of all of them, by the same look.
    pub room: AtomicU64,
    /// How much of a thread's time recording may take, in parts per million; 0: as much as it takes.
    pub overhead_ppm: AtomicU32,
    /// Ticks that recording a call takes; 0 until it was measured.
    pub call_ticks: AtomicU32,
    /// Raised with each new `budget`.
    pub budget_looks: AtomicU32,
    /// Commands that the drainer has taken from rings and not yet written, at most: they wait to be put in order.
    pub commands_waiting: AtomicU32,
    /// A robust mutex of the C library, which the launcher holds as long as it lives. The
    /// first word is its lock, in which the kernel marks that the holder died.
    pub keeper: [AtomicU32; 16],
    /// Most bytes stored of one buffer by [`option::BUFFERS`].
    pub buffer_cap: AtomicU64,
    /// Which launches [`option::BUFFERS`] is about; unused ones have no kernel.
    pub buffer_choices: [BufferChoice; BUFFER_CHOICES],
    /// Which of the snapshots in [`Reported::snapshot_asked`] the launcher has answered: the number when it began to write
    /// for the last time.
    pub snapshot_done: AtomicU32,
    /// Frames of a native stack that are recorded, at most.
    pub stack_depth: AtomicU32,
    /// Bytes of a pool, with [`option::INSIDE`].
    pub inside_buffer: AtomicU64,
    /// Of the launches chosen, one in so many records; 0: all, but of kernels without numbers some are left to compare with.
    pub inside_every: AtomicU32,
    /// How kernels get room in a pool: the number of a strategy of `hetrace_pool`.
    pub inside_strategy: AtomicU32,
    /// Which kernels [`option::INSIDE`] is about, and which launches of each; unused ones have no kernel.
    pub inside_choices: [BufferChoice; inside::CHOICES],
}

/// Start of [`REPORTED_FILE`], which all programs of a session map writable, and other commands of the user, too: what
/// belongs to no arena. One of them can write anything here. So nothing in it decides what is recorded of another: `wake`
/// and `made` let the drainer look sooner, and counts are believed as far as their checks go.
#[repr(C)]
#[derive(Debug)]
pub struct Reported {
    /// Futex word: the drainer sleeps on it, programs wake it when a ring fills.
    pub wake: AtomicU32,
    /// Programs add 1 for each arena and each ring they make, so that the drainer looks.
    pub made: AtomicU32,
    /// Arenas that programs made: the drainer compares it with those it could open.
    pub arenas_made: Checked,
    /// Calls that were not recorded in processes that have no arena.
    pub calls_without_arena: Checked,
    /// Snapshots asked for so far: whoever wants one adds 1, and wakes the drainer by `wake`. It wraps.
    pub snapshot_asked: Checked,
    /// Notes of processes without an arena, at [`REPORTED_NOTES_OFFSET`].
    pub notes: Notes,
}

/// How much there is in pages for notes; see [`crate::note`].
#[repr(C)]
#[derive(Debug)]
pub struct Notes {
    /// Bytes used.
    pub used: primitive::AtomicU32,
    /// Notes that found no room.
    pub lost: primitive::AtomicU32,
}

/// A count in memory that others may overwrite: the upper half is made of the lower one, so that noise is no count. Zeros
/// are the count 0.
#[repr(transparent)]
#[derive(Debug)]
pub struct Checked(AtomicU64);

impl Checked {
    /// Returns the count; none if it was overwritten.
    pub fn get(&self) -> Option<u32> {
        Self::open(self.0.load(Ordering::Acquire))
    }

    /// Adds 1, and returns what it is now. One that was overwritten begins anew: whoever reads it sees it go back.
    pub fn increase(&self) -> u32 {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let next = Self::open(word).unwrap_or(0).wrapping_add(1);
            match self.0.compare_exchange_weak(word, Self::close(next), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return next,
                Err(there) => word = there,
            }
        }
    }

    /// Makes it this count.
    pub fn set(&self, count: u32) {
        self.0.store(Self::close(count), Ordering::Release);
    }

    fn close(count: u32) -> u64 {
        u64::from(count.wrapping_mul(0x9e37_79b1)) << 32 | u64::from(count)
    }

    fn open(word: u64) -> Option<u32> {
        (Self::close(word as u32) == word).then_some(word as u32)
    }
}

/// How many choices of launches a session has.
pub const BUFFER_CHOICES: usize = 8;

/// Launches whose buffers are stored.
#[repr(C)]
#[derive(Debug)]
pub struct BufferChoice {
    /// The first launch of each kernel, counted from 0.
    pub first: AtomicU64,
    /// The last one.
    pub last: AtomicU64,
    /// NUL-terminated glob of kernels' names.
    pub kernel: [AtomicU8; 240],
}

/// Start of an arena file: the memory from which one process takes the rings of one API.
///
/// The file is sparse. Whoever makes it holds an exclusive `flock` on the open file
/// description, and then maps and closes the file: the mapping keeps the description, so the
/// lock lasts exactly as long as some task has this address space and can write here. A
/// process that has become another program, or ended, has let go of it; one whose first
/// thread has ended has not.
///
/// ```text
///  page 0      pages 1 … DIRECTORY_PAGES      then
///  ┌──────────┬───────────────────────────┬──────────────────────────────────────────┐
///  │ header   │ u64 per ring: place, size │ ring 0 │ ring 1 │ …        ◄── used │ free │
///  └──────────┴───────────────────────────┴──────────────────────────────────────────┘
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct ArenaHeader {
    /// [`ARENA_MAGIC`], stored last, when the lock is held.
    pub magic: AtomicU64,
    /// [`ABI_VERSION`].
    pub version: u32,
    /// Number of the API in [`Control::apis`].
    pub api: u32,
    /// Process id, in the process's own PID namespace.
    pub pid: u32,
    /// Parent's process id, in the same namespace.
    pub parent: u32,
    /// Inode of the PID namespace; 0 if it is not known.
    pub pid_namespace: u64,
    /// Start time of the process from `/proc/PID/stat`; 0 if it is not known.
    pub process_start: u64,
    /// What the kernel gave this program image as `AT_RANDOM`: arenas with the same process id
    /// and the same bytes share an address space.
    pub image: [u8; 16],
    /// Name of the process, NUL-padded.
    pub comm: [u8; 16],
    /// The command line, arguments separated by NULs, cut to fit.
    pub command: [u8; 512],
    /// Offset behind the last ring.
    pub used: Used,
    /// Entries of the directory that are taken.
    pub rings: AtomicU32,
    /// Rings in state FREE or ENDED, for threads that look for one.
    pub reusable: AtomicI32,
    /// 1 if the maker holds the lock.
    pub locked: u32,
    /// The part of [`Control::overhead_ppm`] that is this arena's, written by the drainer: a process may
    /// have an arena for each of several APIs that its threads call. 0: the drainer was not here yet.
    pub overhead_ppm: AtomicU32,
    /// Ticks that making the arena and its rings took, while the program's threads waited.
    pub setup_ticks: AtomicU64,
    /// Ticks that a collector of device times took to begin, while the program waited.
    pub collector_start_ticks: AtomicU64,
    /// Ticks that it took on threads of the program later, but for `collector_end_ticks`.
    pub collector_ticks: AtomicU64,
    /// Ticks that it took on a thread of the library's own.
    pub collector_apart_ticks: AtomicU64,
    /// How many commands are in the counts that were recorded last ([`CountRecord`]); [`RingHeader::counted`] has all.
    pub counted_reported: AtomicU64,
    /// Calls that were not recorded because their thread has no ring.
    pub calls_without_ring: AtomicU64,
    /// Those of them that earlier traces have counted, where the arena outlives a session.
    pub calls_counted: AtomicU64,
    /// Threads' attempts to get a ring that failed for want of memory.
    pub rings_failed: AtomicU32,
    /// Those of them that earlier traces have counted.
    pub failed_counted: AtomicU32,
    /// Ticks that the library took to begin when it was loaded, without making the arena.
    pub loading_ticks: AtomicU64,
    /// What a collector of device times does in each call that enqueues, in nanoseconds, as it was calibrated on other
    /// machines: least, about and most, of 16 bits each from the lowest on. 0: there is none.
    pub collector_call_ns: AtomicU64,
    /// What it does in other calls, where it begins with a context and ends with the process, in nanoseconds, likewise
    /// calibrated: least, about and most of all of them together.
    pub collector_once_ns: [AtomicU64; 3],
    /// Ticks that a collector of device times took when a context or the process ended, while the program waited.
    pub collector_end_ticks: AtomicU64,
    /// Commands that the library itself gave to devices, their bytes, and the nanoseconds that they took there.
    pub own_device: [AtomicU64; 3],
    /// Notes of the process, at [`ARENA_NOTES_OFFSET`].
    pub notes: Notes,
}

/// Pages of the directory of an arena.
pub const DIRECTORY_PAGES: usize = 16;
/// Most rings of an arena.
pub const MAX_RINGS: usize = DIRECTORY_PAGES * PAGE / 8;
/// Offset of the first ring in an arena.
pub const FIRST_RING: u64 = ((1 + DIRECTORY_PAGES) * PAGE) as u64;

/// An entry of the directory: a ring's place, which is a multiple of a page, and the binary
/// logarithm of its data bytes. 0 is an entry that is not complete.
pub const fn directory_entry(offset: u64, data: u64) -> u64 {
    offset | data.trailing_zeros() as u64
}

/// Place and data bytes of a ring from its directory entry. Whatever stands there, the data
/// bytes are a power of two.
pub const fn directory_parts(entry: u64) -> (u64, u64) {
    (entry & !(PAGE as u64 - 1), 1 << (entry & 63))
}

/// Bytes that a ring takes in its arena: header, data, and a page for the end of a record
/// that begins in the last bytes of the data.
pub const fn ring_bytes(data: u64) -> u64 {
    data + 2 * PAGE as u64
}

/// Whether somebody reads a ring.
pub mod drained {
    /// The drainer has not opened it.
    pub const NOT_YET: u32 = 0;
    /// The drainer reads it.
    pub const YES: u32 = 1;
    /// The drainer will read no more: what is recorded is lost.
    pub const NO_MORE: u32 = 2;
}

/// Start of a ring; the data begins at byte [`PAGE`].
#[repr(C)]
#[derive(Debug)]
pub struct RingHeader {
    /// [`RING_MAGIC`].
    pub magic: AtomicU64,
    /// Data bytes; a power of two.
    pub data_bytes: u64,
    /// See [`state`].
    pub state: State,
    /// Number of the ring in its arena's directory.
    pub number: u32,
    /// See [`drained`].
    pub drained: AtomicU32,
    /// The producer's position.
    pub head: Head,
    /// Records that found no room, since the ring was made.
    pub lost: AtomicU64,
    /// Calls whose entry or exit is among the lost.
    pub lost_calls: AtomicU64,
    /// Records behind `head` that wait for one which a signal handler interrupted. They are
    /// lost if the process ends now.
    pub unpublished: AtomicU64,
    /// Where `head` was then; if it is elsewhere by now, they were published.
    pub unpublished_at: AtomicU64,
    /// Commands that this thread enqueued and that will be timed.
    pub commands: AtomicU64,
    /// Commands that this thread has reported, whoever enqueued them.
    pub reported: AtomicU64,
    /// Ticks of the tracer's own work inside of calls that enqueue commands, to time these: of the
    /// undisturbed ones, which took no more than `timing_limit`.
    pub timing_ticks: AtomicU64,
    /// Calls in which such work was done.
    pub timing_calls: AtomicU64,
    /// Ticks above which such a call counts apart, with a record of what it took ([`special::OWN_WORK`]).
    /// Only the thread itself reads and writes it.
    pub timing_limit: AtomicU64,
    /// Ticks of the same work in calls that count apart, no more of each than a call takes that nothing interrupts.
    pub apart_ticks: AtomicU64,
    /// These calls.
    pub apart_calls: AtomicU64,
    /// Ticks in which commands were collected that had finished, inside of calls that enqueue and
    /// after calls that wait; no more for each of them than it takes a thread that nothing interrupts.
    pub collecting_ticks: AtomicU64,
    /// Commands that this thread enqueued and that were counted, where not all are timed.
    pub counted: AtomicU64,
    /// Ticks that calls which enqueue commands took longer because these are timed, in the driver: as it was learned
    /// from calls whose commands are not. 0 where nothing is known of it.
    pub driver_ticks: AtomicU64,
    /// As `timing_ticks` and `apart_ticks` together, of calls that were added up, which are in neither of the counts.
    pub summed_ticks: AtomicU64,
    /// A run of polls that has not become a record yet.
    pub fold: OpenFold,
    /// Calls that were added up and have not become records yet.
    pub sums: [OpenFold; SUMS],
    /// What the drainer knows of the records that come next.
    pub reader: ReaderState,
    /// The consumer's position.
    pub tail: Tail,
}

/// What the drainer knows of the records at its position. It stands here so that another can
/// go on if it is killed.
#[repr(C)]
#[derive(Debug)]
pub struct ReaderState {
    /// The thread that recorded them.
    pub tid: AtomicU32,
    /// [`ThreadRecord::follows`] of that, until what came before is taken.
    pub follows: AtomicU32,
    /// Counter value of the last record that was taken.
    pub time: AtomicU64,
    /// [`RingHeader::lost`] that earlier traces have counted, where the ring outlives a session.
    pub lost: AtomicU64,
    /// [`RingHeader::lost_calls`], likewise.
    pub lost_calls: AtomicU64,
    /// Time of that record in the trace, in nanoseconds: another drainer's clock may be a little behind, and a call that goes
    /// on in its files would end before it begins.
    pub written: AtomicU64,
    /// What all this will be when the packet is in its file that is being written.
    pub next: NextState,
}

/// What a drainer says before it writes a packet: if it is killed, the next one learns from the length of the file whether
/// the packet is there.
#[repr(C)]
#[derive(Debug)]
pub struct NextState {
    /// Number of the file in its file system; 0 when nothing is being written. Stored last, and cleared first.
    pub file: AtomicU64,
    /// Bytes of the file before the packet.
    pub begin: AtomicU64,
    /// Bytes of the file with the packet.
    pub length: AtomicU64,
    /// The consumer's position.
    pub tail: AtomicU64,
    /// [`ReaderState::time`].
    pub time: AtomicU64,
    /// [`ReaderState::written`].
    pub written: AtomicU64,
    /// [`ReaderState::tid`].
    pub tid: AtomicU32,
    /// [`ReaderState::follows`].
    pub follows: AtomicU32,
}

/// Functions whose calls a thread adds up at a time.
pub const SUMS: usize = 16;
/// Set in the first word of a record of many calls, their number: they were added up, and are no run of polls.
pub const ADDED_UP: u64 = 1 << 63;

/// Calls of a function that become one record: a run of equal polls, or calls that were added up. They stand
/// here and not in the program's own memory so that the drainer can finish them when the program is killed.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct OpenFold {
    /// Number of the fold event; 0 when there is none.
    pub id: AtomicU32,
    /// Not used.
    pub reserved: u32,
    /// Calls. 0 where a function's calls are added up and none came since the last record.
    pub count: AtomicU64,
    /// Counter value when the first began.
    pub first: AtomicU64,
    /// Counter value when the last ended; of calls that were only counted none is known.
    pub last: AtomicU64,
    /// Ticks inside them all, or inside those that are in `timed`.
    pub total: AtomicU64,
    /// Of calls that were added up, those whose time is in `total`. 0 in a run of polls, of which all are.
    pub timed: AtomicU64,
    /// The sum of the squares of their times, or [`u64::MAX`] if that is too much.
    pub squares: AtomicU64,
}

const _: () = assert!(size_of::<Control>() <= PAGE);
// A mutex of the C library lies there.
const _: () = assert!(std::mem::offset_of!(Control, keeper).is_multiple_of(8));
const _: () = assert!(size_of::<Reported>() <= PAGE);
const _: () = assert!(size_of::<Window>() <= PAGE);
const _: () = assert!(size_of::<Counts>() <= PAGE);
const _: () = assert!(size_of::<ArenaHeader>() <= ARENA_NOTES_OFFSET);
const _: () = assert!(size_of::<RingHeader>() <= PAGE);
// A record that begins in the last byte of the data ends in the page behind it.
const _: () = assert!(crate::record::MAX_RECORD < PAGE);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_was_overwritten_is_none() {
        let count = Checked(AtomicU64::new(0));
        assert_eq!(count.get(), Some(0));
        assert_eq!((count.increase(), count.increase(), count.get()), (1, 2, Some(2)));
        for noise in [u64::MAX, 0xa5a5_a5a5_a5a5_a5a5, 1, 3 << 32, u64::from_le_bytes(*b"overflow")] {
            count.0.store(noise, Ordering::Relaxed);
            assert_eq!(count.get(), None, "{noise:x}");
        }
        assert_eq!((count.increase(), count.get()), (1, Some(1)), "it begins anew");
        count.set(u32::MAX);
        assert_eq!((count.increase(), count.get()), (0, Some(0)), "it wraps");
    }
}
