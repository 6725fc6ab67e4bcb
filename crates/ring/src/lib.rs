//! The shared memory between a traced program and the drainer.
//!
//! A *session* is a folder on a memory file system. The launcher makes it and
//! puts a [`Control`] and a [`Reported`] file there; each traced process adds one *arena* file per
//! API, and takes from it one *ring* per recording thread: a [`RingHeader`] and a
//! power of two of data bytes. One thread writes a ring, one other process reads
//! it, so what was recorded outlives the writer.
//!
//! ```text
//! session folder                      mode 0700, owned by the user
//!   control                           read-only for programs: options, mask, function flags
//!   reported                          what programs write together: wake-up word, counts
//!   arena-API-PID-N                   one per process and API: the rings of its threads
//!   blob-HASH                         program sources and the like, on request
//! ```
//!
//! Rules for everything in here (`docs/shm-abi.md` has the byte diagrams):
//! * types in shared memory are `#[repr(C)]`, made of integers only, and valid
//!   for every bit pattern; whatever is read from there is checked before use;
//! * the producer never blocks, allocates, or makes a system call outside the
//!   slow paths marked as such;
//! * nothing panics: this code runs inside other people's programs.

pub mod abi;
pub mod clock;
pub mod cursor;
pub mod directory;
mod map;
pub mod note;
mod primitive;
pub mod reader;
pub mod record;
pub mod survive;
pub mod tenure;
pub mod writer;

pub use abi::{ArenaHeader, Control, Reported, RingHeader};
pub use map::{MapError, Mapping, map_file, map_part};
