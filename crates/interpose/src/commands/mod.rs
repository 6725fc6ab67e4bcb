//! Commands on devices whose times are not known yet.
//!
//! An API's library puts each command that it has enqueued into a [`Store`], with a *token*: what
//! the API can be asked by, such as an event, or a pair of them. Nothing is waited for, and there is
//! no thread: commands are looked at when the program synchronizes, and now and then while it
//! enqueues ([`Put::Due`]). The API is a [`Backend`]: it says whether a command has ended and what
//! its times are. All else stands here once: places for commands ([`nodes`]), a block for each
//! thread ([`block`]), which blocks to look at ([`store`]), records and counts ([`report`]).
//!
//! ```text
//!   thread:     enqueue ──► Thread::put ──► block (inbox ──► a lane for each queue)
//!   any thread: Store::collect ──► block by block: Backend::poll ──► record, Backend::release
//! ```
//!
//! A command that is recorded now and executed later, perhaps many times, is not in flight when it
//! is recorded: a [`Recording`] keeps it, and each execution puts commands of its own in.
//!
//! * Nothing here allocates from the program's heap, waits, or takes a lock: a collector that finds
//!   another at work leaves the block to it.
//! * No command is given up while there is a place, of which there are [`Store::limit`]. Memory
//!   comes with the commands, a few hundred bytes for each. What is given up is counted
//!   ([`Store::lose`]), and said with the next [`PendingRecord`](hetrace_ring::abi::PendingRecord).
//! * A command whose record finds no room in the ring stays until there is some.
//! * A forked child finds an empty store.

mod block;
pub mod driver;
mod lanes;
#[doc(hidden)]
pub mod links;
mod loops;
#[cfg(not(loom))]
pub mod named;
mod nodes;
mod note;
#[cfg(not(loom))]
mod owner;
#[cfg(not(loom))]
pub mod places;
pub mod pool;
pub(crate) mod primitive;
mod recording;
pub mod reference;
mod report;
#[cfg(not(loom))]
pub mod sample;
pub mod slot;
mod store;
#[cfg(test)]
mod tests;
mod timing;
pub mod waiting;

pub use crate::mapped::{Mapped, Zeroed, arena, pages};
pub use links::Claim;
pub use note::{Note, Once};
pub use recording::{Execution, Recording};
pub use report::text;
pub use store::{Place, Put, Store, Thread};
pub use timing::Timing;

/// Commands in flight in a process and API if the session does not say: the driver itself needs
/// more memory for so many than we do (200 MiB), and a program enqueues them in about a second.
pub const DEFAULT: u32 = 1 << 20;
/// The most that can be asked for.
pub const MOST: u32 = 16 << 20;

/// What is known of a command when it is enqueued. It is about half of a record: this is written
/// with every command, on the program's time.
#[derive(Debug, Clone, Copy)]
pub struct Enqueued {
    /// Thread that enqueued it.
    pub cause_tid: u32,
    /// Index into `COMMAND_KINDS`.
    pub kind: u8,
    /// Dimensions of the geometry; 0 when there is none.
    pub dimensions: u8,
    /// Where the bytes come from and go to: indexes into `MEMORY_KINDS`.
    pub memory: [u8; 2],
    /// Counter value of the entry record of the call.
    pub cause: u64,
    /// Counter value when the call returned.
    pub returned: u64,
    /// The queue's key.
    pub queue: u64,
    /// The device's key.
    pub device: u64,
    /// Id of the function that runs; 0 if there is none, or it has a name.
    pub function: u64,
    /// NUL-terminated name of the function that runs, which stays as it is until the command was
    /// recorded; NULL if there is none.
    pub name: *const u8,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Global offset, global size, local size, in work-items.
    pub geometry: [[u64; 3]; 3],
    /// Bytes of local memory that the launch asks for.
    pub shared: u32,
    /// Launches it stands for; 0 and 1 mean itself only.
    pub weight: u32,
    /// Number of the graph that it is a node of; 0 if it is none.
    pub graph: u32,
    /// Number of the node in that graph; 0 if it is none.
    pub node: u32,
    /// Bits of `command_flag`.
    pub flags: u16,
    /// Commands of the queue end in the order in which they were enqueued.
    pub in_order: bool,
}

impl Enqueued {
    /// A command of a kind, of which nothing else is known.
    #[inline(always)]
    pub const fn of(kind: u8) -> Self {
        Self {
            cause_tid: 0,
            kind,
            dimensions: 0,
            memory: [0; 2],
            cause: 0,
            returned: 0,
            queue: 0,
            device: 0,
            function: 0,
            name: std::ptr::null(),
            bytes: 0,
            geometry: [[0; 3]; 3],
            shared: 0,
            weight: 0,
            graph: 0,
            node: 0,
            flags: 0,
            in_order: false,
        }
    }

    /// The same of a launch: of blocks in three dimensions, and threads of a block. Zeros are none.
    #[inline(always)]
    pub fn launched(self, sizes: [usize; 6]) -> Self {
        let [x, y, z, a, b, c] = sizes.map(|n| n as u32).map(u64::from);
        let dimensions = if x | y | z | a | b | c != 0 { 3 } else { 0 };
        Self { dimensions, geometry: [[0; 3], [x * a, y * b, z * c], [a, b, c]], ..self }
    }
}

// SAFETY: the name is only read, and stays as it is.
unsafe impl Send for Enqueued {}
// SAFETY: nothing in it can be changed through a shared reference.
unsafe impl Sync for Enqueued {}

/// The times of a command that has ended, in nanoseconds of the device's clock. 0: not known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// It entered the queue.
    pub queued: u64,
    /// It was given to the device.
    pub submitted: u64,
    /// It started.
    pub start: u64,
    /// It ended.
    pub end: u64,
    /// Execution status: 0 complete, negative an error.
    pub status: i32,
    /// Error of asking for the times; 0 when they are valid.
    pub error: i32,
    /// The clock of these times must not be related to the host's by when the command was
    /// enqueued and seen to be complete.
    pub apart: bool,
}

/// What a [`Backend`] says of a command.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// It has ended.
    Ended(Times),
    /// It has not, or that can't be asked now.
    Waits,
    /// Its times will never be known.
    Gone,
}

/// An API that is asked about its commands. One is made for each look at them.
pub trait Backend {
    /// What it is asked by. The store copies it, and nothing else.
    type Token: Copy + Send + Sync + 'static;

    /// Returns whether a command has ended, and its times.
    fn poll(&mut self, token: Self::Token, command: &Enqueued) -> Progress;

    /// The command was recorded or given up: it will not be asked about again.
    fn release(&mut self, token: Self::Token);
}

/// What an API keeps for each thread that enqueues commands.
///
/// # Safety
/// All bytes zero are a valid value. Other threads have no reference to it, but the value may
/// become that of another thread when this one has ended.
pub unsafe trait Local: 'static {
    /// It becomes another thread's.
    fn begin(&self);
}

// SAFETY: it has no bytes.
unsafe impl Local for () {
    fn begin(&self) {}
}

/// How much is asked in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Some commands that may have ended: while the program enqueues others.
    Some,
    /// All queues: the program has waited for one.
    All,
    /// Everything: what is not found now never will be.
    Last,
}

impl Depth {
    /// Queues whose first command waits, after which the look ends.
    fn queues(self) -> u32 {
        if self == Depth::Some { 16 } else { u32::MAX }
    }

    /// Commands that wait, of a queue without order, after which the look ends.
    fn misses(self) -> u32 {
        match self {
            Depth::Some => 32,
            Depth::All => 512,
            Depth::Last => u32::MAX,
        }
    }
}

/// What is still in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Left {
    /// Counter value when the oldest was enqueued; 0 if there is none.
    oldest: u64,
}

impl Left {
    /// Nothing is certain.
    fn unknown() -> Self {
        Left { oldest: 1 }
    }

    fn add(&mut self, other: Left) {
        self.oldest = match (self.oldest, other.oldest) {
            (0, there) | (there, 0) => there,
            (a, b) => a.min(b),
        };
    }
}
