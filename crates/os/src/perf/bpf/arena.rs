//! Memory that programs and this process share and that the kernel has only where it was touched: an arena of BPF's (Linux 6.9).
//!
//! ```text
//!  stride 0: buffer of CPU 0    stride 1: buffer of CPU 1    …
//!    of each the first pages are there from the beginning, others from when they are needed
//! ```
//! An array is there as a whole when it is made: 4 MiB for each CPU, of which a program that lives some milliseconds writes
//! a hundredth. Programs load zeros from pages that are not there, and what they store is gone, so nothing is written before
//! this process has touched the pages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use memmap2::{Advice, MmapOptions, MmapRaw};

use super::kernel::{self, Map};
use super::words::{BESIDE, LEAST};

/// Most bytes of an arena.
const MOST: usize = 1 << 32;

/// An arena, mapped.
#[derive(Debug)]
pub struct Arena {
    map: OwnedFd,
    memory: Arc<MmapRaw>,
    stride: usize,
}

impl Arena {
    /// Makes one with a buffer of so many bytes of data, a power of two, for all CPUs up to this number; less if that is more
    /// than an arena can have.
    ///
    /// # Errors
    /// When the kernel does not have arenas, or refuses.
    pub fn make(last: u32, bytes: usize) -> io::Result<(Self, usize)> {
        let number = last as usize + 1;
        let mut size = bytes;
        while (size + BESIDE) * number > MOST && size > LEAST {
            size /= 2;
        }
        let stride = size + BESIDE;
        let length = stride * number;
        let pages = u32::try_from(length / rustix::param::page_size()).map_err(io::Error::other)?;
        let map = kernel::map(Map::Arena, 0, 0, pages)?;
        let memory = Arc::new(MmapOptions::new().len(length).map_raw(&map)?);
        Ok((Self { map, memory, stride }, size))
    }

    /// Returns the memory.
    pub fn memory(&self) -> &Arc<MmapRaw> {
        &self.memory
    }

    /// Returns the bytes from one CPU's buffer to the next one's.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the address of the first byte, as programs have it: the lower half.
    pub fn address(&self) -> u32 {
        self.memory.as_ptr() as usize as u32
    }

    /// Returns how many CPUs have a place: those of lower numbers.
    pub fn cpus(&self) -> usize {
        self.memory.len() / self.stride
    }
}

impl AsFd for Arena {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// Has the kernel make pages of these bytes.
///
/// # Errors
/// When there is no memory.
pub fn touch(memory: &MmapRaw, begin: usize, bytes: usize) -> io::Result<()> {
    memory.advise_range(Advice::PopulateWrite, begin, bytes)
}
