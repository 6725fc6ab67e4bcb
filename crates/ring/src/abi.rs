//! The bytes both sides agree on. `docs/shm-abi.md` draws them.
//!
//! Whoever changes anything here or in [`records`] raises [`ABI_VERSION`]; a
//! library and a launcher of different versions do not talk, and the launcher
//! says so.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::cursor::{Head, Tail};

pub mod records;

pub use records::*;

/// Raised with every change of these files.
pub const ABI_VERSION: u32 = 6;
/// First bytes of a control file.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"HTRCTRL1");
/// First bytes of a ring file.
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"HTRRING1");
/// Page size that the file layout assumes; a larger page of the machine is fine.
pub const PAGE: usize = 4096;
/// APIs in one session.
pub const MAX_APIS: usize = 16;
/// Functions of one API: one flag byte each, one page of flags.
pub const MAX_FUNCTIONS: usize = PAGE;
/// Pages for notes.
pub const NOTE_PAGES: usize = 4;
/// Size of a control file.
pub const CONTROL_BYTES: usize = (1 + NOTE_PAGES + MAX_APIS) * PAGE;
/// Name of the control file in the session's folder.
pub const CONTROL_FILE: &str = "control";
/// Prefix of ring files.
pub const RING_PREFIX: &str = "ring-";
/// Prefix of blob files.
pub const BLOB_PREFIX: &str = "blob-";
/// The environment variable with the session's folder.
pub const SESSION_VARIABLE: &str = "HETRACE_SESSION";

/// Byte offset of the flags of API number `api`.
pub const fn flags_offset(api: usize) -> usize {
    (1 + NOTE_PAGES + api) * PAGE
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
}

/// Bits of a function's flag byte.
pub mod flag {
    /// Calls are recorded.
    pub const RECORD: u8 = 1 << 0;
    /// The function's hook is active, even if calls are not recorded.
    pub const HOOK: u8 = 1 << 1;
}

/// Start of the control file. The launcher writes it, traced programs read it.
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
    /// Programs add 1 for each ring they make, so that the drainer looks.
    pub rings_made: AtomicU32,
    /// Futex word: the drainer sleeps on it, programs wake it when a ring fills.
    pub wake: AtomicU32,
    /// Rings that could not be made (no memory, no file): their calls are lost.
    pub rings_failed: AtomicU32,
    /// Calls lost because no ring could be made.
    pub calls_without_ring: AtomicU64,
    /// Bytes used of the notes' pages; see [`crate::note::note`].
    pub notes_used: AtomicU32,
    /// Notes that found no room.
    pub notes_lost: AtomicU32,
    /// 1 while the drainer lives: a blocking program must not wait for the dead.
    pub drainer_alive: AtomicU32,
    /// With [`option::SAMPLED`]: which launches of each kernel are timed, every
    /// how many.
    pub sample_every: AtomicU32,
    /// NUL-terminated names of the APIs, in the order of their flags.
    pub apis: [[u8; 32]; MAX_APIS],
    /// Milliseconds after which a collector hands out what it has: a program
    /// that is killed loses at most that much.
    pub collect_every_ms: AtomicU32,
    /// Not used.
    pub reserved: u32,
    /// Most bytes stored of one buffer by [`option::BUFFERS`].
    pub buffer_cap: AtomicU64,
    /// Which launches [`option::BUFFERS`] is about; unused ones have no kernel.
    pub buffer_choices: [BufferChoice; BUFFER_CHOICES],
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

/// State of a ring file.
pub mod state {
    /// Nobody's: a thread of the same process and API may claim it.
    pub const FREE: u32 = 0;
    /// A thread records into it.
    pub const ACTIVE: u32 = 1;
    /// Its thread ended; the drainer will free it when it is empty.
    pub const ENDED: u32 = 2;
    /// A thread is claiming it and writes its identity.
    pub const CLAIMED: u32 = 3;
    /// Its thread went on in a larger ring, whose [`super::RingHeader::follows`]
    /// names this one; the drainer will free it when it is empty.
    pub const MOVED: u32 = 4;
}

/// Start of a ring file; the data begins at byte [`PAGE`].
#[repr(C)]
#[derive(Debug)]
pub struct RingHeader {
    /// [`RING_MAGIC`], stored last.
    pub magic: AtomicU64,
    /// [`ABI_VERSION`].
    pub version: u32,
    /// Number of the API in [`Control::apis`].
    pub api: u32,
    /// Data bytes; a power of two.
    pub data_bytes: u64,
    /// See [`state`].
    pub state: AtomicU32,
    /// How often the ring was claimed; changes with every new thread.
    pub incarnation: AtomicU32,
    /// Process id of the writer.
    pub pid: u32,
    /// Thread id of the writer.
    pub tid: AtomicU32,
    /// Start time of the process from `/proc/PID/stat`, to tell reused ids apart.
    pub process_start: u64,
    /// Counter value when the present thread claimed the ring.
    pub claimed_at: AtomicU64,
    /// Name of the thread, NUL-padded.
    pub comm: [AtomicU8; 16],
    /// Parent of the process.
    pub parent: u32,
    /// Number in the file's name.
    pub number: u32,
    /// The command line, arguments separated by NULs, cut to fit.
    pub command: [u8; 512],
    /// 1 more than the number of the ring from which the present thread came
    /// because it was full; 0 if it began here.
    pub follows: AtomicU32,
    /// The producer's position.
    pub head: Head,
    /// Records that found no room, since the ring was made.
    pub lost: AtomicU64,
    /// Calls whose entry or exit is among the lost.
    pub lost_calls: AtomicU64,
    /// Commands that this thread enqueued and that will be timed.
    pub commands: AtomicU64,
    /// Commands that this thread has reported, whoever enqueued them.
    pub reported: AtomicU64,
    /// Ticks of the tracer's own work inside of calls that enqueue commands, to time these.
    pub timing_ticks: AtomicU64,
    /// Calls in which such work was done.
    pub timing_calls: AtomicU64,
    /// Ticks in them in which commands were collected that had finished: in a few of them, and for many.
    pub collecting_ticks: AtomicU64,
    /// A run of polls that has not become a record yet.
    pub fold: OpenFold,
    /// The consumer's position.
    pub tail: Tail,
}

/// A run of equal polls in progress. It stands here and not in the program's
/// own memory so that the drainer can finish it when the program is killed.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct OpenFold {
    /// Number of the fold event; 0 when no run is open.
    pub id: AtomicU32,
    /// Not used.
    pub reserved: u32,
    /// Calls in the run.
    pub count: AtomicU64,
    /// Counter value when the first began.
    pub first: AtomicU64,
    /// Counter value when the last ended.
    pub last: AtomicU64,
    /// Ticks inside them all.
    pub total: AtomicU64,
}

const _: () = assert!(size_of::<Control>() <= PAGE);
const _: () = assert!(size_of::<RingHeader>() <= PAGE);
