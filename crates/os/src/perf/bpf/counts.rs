//! Numbers that programs in the kernel count, in an array that is mapped here.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// The numbers, mapped.
#[derive(Debug)]
pub struct Counts {
    map: MmapRaw,
    numbers: usize,
}

impl Counts {
    /// Maps an array of so many numbers of eight bytes.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(array: impl AsFd, numbers: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(numbers * 8).map_raw_read_only(array.as_fd().as_raw_fd())?;
        Ok(Self { map, numbers })
    }

    /// Returns one of them; 0 if there is none at this place.
    pub fn get(&self, place: usize) -> u64 {
        if place >= self.numbers {
            return 0;
        }
        // SAFETY: the map has `numbers` times eight bytes from the beginning of a page on, so the place is inside of
        // it and aligned; the kernel adds to it atomically, and nothing is written through this reference. The map
        // lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(place)) }.load(Ordering::Relaxed)
    }
}
