//! Memory that the programs share with each other and with the reader.

use std::io;
use std::os::fd::OwnedFd;

use super::arena::Arena;
use super::buffer;
use super::kernel::{self, Map};
use super::threads::Threads;
use super::words::{SCRATCH, Whose};

/// Bytes of the ring buffer for each CPU. It has what does not fit into the buffers because a program was interrupted, and
/// records with a text.
const RING: usize = 64 << 10;
/// On a realtime kernel, where it has all.
const WHOLE_RING: usize = 512 << 10;
/// What it has at least, and at most.
const RINGS: (usize, usize) = (256 << 10, 64 << 20);
/// Says whether threads of the kernel are put off for others nearly everywhere (`PREEMPT_RT`).
const REALTIME: &str = "/sys/kernel/realtime";

/// What the programs share.
#[derive(Debug)]
pub struct Maps {
    /// The threads, unless those of the whole machine are recorded.
    pub threads: Option<Threads>,
    /// By number of the CPU: how many records it had no room for. And how many threads have no place in `threads`.
    pub counts: OwnedFd,
    /// The place of the latter.
    pub forgotten: u32,
    /// Numbers of the CPUs, which grow.
    pub cpus: Vec<u32>,
    /// The CPUs' buffers.
    pub buffers: Kept,
    /// Bytes of a buffer's data at most: a power of two.
    pub size: usize,
    /// The ring buffer.
    pub ring: OwnedFd,
    /// Its bytes.
    pub ring_size: usize,
    /// Where records of any length are made: see [`Whose`].
    pub scratch: Option<OwnedFd>,
}

/// What the CPUs' buffers are in.
#[derive(Debug)]
pub enum Kept {
    /// An arena.
    Arena(Arena),
    /// An array for each CPU, by the CPU's number, which grows.
    Arrays(Vec<(u32, OwnedFd)>),
    /// There are none, as programs may be put off for others of their CPU.
    Nothing,
}

impl Maps {
    /// Makes them for these CPUs, with buffers of so many bytes where the kernel makes such. `follow`: threads are followed;
    /// `fields`: programs load what they record.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(cpus: &[u32], bytes: usize, follow: bool, fields: bool) -> io::Result<Self> {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        let last = cpus.last().copied().unwrap_or(0);
        let realtime = std::fs::read(REALTIME).is_ok_and(|text| text.first() == Some(&b'1'));
        // What all begin with the kernel makes for less as arrays.
        let large = cpus.len() * buffer::size(bytes) > buffer::FIRST_OF_ALL;
        let arena =
            (fields && large && !realtime).then(|| Arena::make(last, buffer::size(bytes)).ok()).flatten();
        let (buffers, size) = match arena {
            _ if realtime => (Kept::Nothing, buffer::size(bytes)),
            Some((arena, size)) => (Kept::Arena(arena), size),
            None => {
                let (arrays, size) = buffer::make(&cpus, bytes)?;
                (Kept::Arrays(arrays), size)
            }
        };
        let each = if realtime { WHOLE_RING } else { RING };
        let ring_size = (each * cpus.len()).clamp(RINGS.0, RINGS.1).next_power_of_two();
        let ring = kernel::map(Map::Ring, 0, 0, ring_size as u32)?;
        let threads = follow.then(Threads::new).transpose()?;
        let forgotten = last + 1;
        let counts = kernel::map(Map::Array, 4, 8, forgotten + 1)?;
        let scratch = fields.then(|| kernel::map(Map::PerCpu, 4, SCRATCH as u32, Whose::ALL).ok()).flatten();
        Ok(Self { threads, counts, forgotten, cpus, buffers, size, ring, ring_size, scratch })
    }
}
