//! Memory that the programs share with each other and with the reader.

use std::io;
use std::os::fd::OwnedFd;

use super::buffer;
use super::kernel::{self, Map};
use super::threads::Threads;

/// Bytes of a ring buffer, which has what does not fit into the buffer beside it because a program was interrupted.
pub const RING: u32 = 256 << 10;
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
    /// A buffer for each CPU, by the CPU's number, which grows; none where programs may be put off for others of their
    /// CPU.
    pub buffers: Vec<(u32, OwnedFd)>,
    /// Bytes of a buffer's data: a power of two.
    pub size: usize,
    /// A ring buffer for each CPU, likewise.
    pub rings: Vec<(u32, OwnedFd)>,
}

impl Maps {
    /// Makes them for these CPUs, with buffers of so many bytes where the kernel makes such. `follow`: threads are followed.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(cpus: &[u32], bytes: usize, follow: bool) -> io::Result<Self> {
        let realtime = std::fs::read(REALTIME).is_ok_and(|text| text.first() == Some(&b'1'));
        let (buffers, size) = buffer::make(if realtime { &[] } else { cpus }, bytes)?;
        let ring = |cpu: &u32| Ok((*cpu, kernel::map(Map::Ring, 0, 0, RING)?));
        let mut rings = cpus.iter().map(ring).collect::<io::Result<Vec<_>>>()?;
        rings.sort_unstable_by_key(|(cpu, _)| *cpu);
        let threads = follow.then(Threads::new).transpose()?;
        let forgotten = rings.last().map_or(0, |(cpu, _)| cpu + 1);
        let counts = kernel::map(Map::Array, 4, 8, forgotten + 1)?;
        Ok(Self { threads, counts, forgotten, buffers, size, rings })
    }
}
