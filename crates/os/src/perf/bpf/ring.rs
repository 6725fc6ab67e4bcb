//! The ring buffer that the programs of one CPU write into.
//!
//! ```text
//!  page 0: consumer position, written by us    page 1: producer position    from page 2 on: data, twice
//!  a record: 0 length u32, with BUSY and DISCARDED in its upper bits    4 u32    8 content, filled up to 8 bytes
//! ```
//! Data is mapped twice in a row, so that records are contiguous.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// Not finished yet.
const BUSY: u32 = 1 << 31;
/// Of no interest.
const DISCARDED: u32 = 1 << 30;
/// Bytes before a record's content.
const HEADER: usize = 8;

/// A ring buffer, mapped.
#[derive(Debug)]
pub struct Ring {
    map: OwnedFd,
    ours: MmapRaw,
    theirs: MmapRaw,
    page: usize,
    /// Bytes of data: a power of two.
    size: usize,
}

impl Ring {
    /// Maps a ring buffer of this many bytes.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(map: OwnedFd, size: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let ours = MmapOptions::new().len(page).map_raw(&map)?;
        let theirs = MmapOptions::new().offset(page as u64).len(page + 2 * size).map_raw_read_only(&map)?;
        Ok(Self { map, ours, theirs, page, size })
    }

    /// Returns its descriptor, of which a reader can learn that it is filled to a mark.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// Hands out the words of all finished records and makes their room free. Returns how many bytes made no
    /// sense.
    pub fn take(&mut self, mut record: impl FnMut(&[u64])) -> usize {
        // SAFETY: the map is a page, which begins with the position, aligned; only we write it, and the kernel
        // reads it with single loads. The map lives as long as `self`.
        let ours = unsafe { AtomicU64::from_ptr(self.ours.as_mut_ptr().cast()) };
        // SAFETY: the map begins with the page of the position, aligned, which the kernel writes with single
        // stores; nothing is written through this reference. The map lives as long as `self`.
        let theirs = unsafe { AtomicU64::from_ptr(self.theirs.as_mut_ptr().cast()) };
        let begin = ours.load(Ordering::Relaxed);
        // Pairs with the kernel's store of the position behind the header of a record.
        let end = theirs.load(Ordering::Acquire);
        let (mut at, mut damaged) = (begin, 0);
        while at < end && end - at <= self.size as u64 {
            let offset = at as usize & (self.size - 1);
            let Some(length) = self.length(offset) else { break };
            let content = (length & !DISCARDED) as usize;
            let step = (HEADER + content).next_multiple_of(8) as u64;
            if step > end - at {
                // Where the next one begins is unknown.
                damaged += (end - at) as usize;
                at = end;
                break;
            }
            if length & DISCARDED == 0 {
                record(self.words(offset + HEADER, content / 8));
            }
            at += step;
        }
        // Pairs with the kernel's reading of it: all was read before it may overwrite it.
        ours.store(at, Ordering::Release);
        damaged
    }

    /// Returns the length of the record at an offset, below the size; none while it is being written.
    fn length(&self, offset: usize) -> Option<u32> {
        // SAFETY: `offset` is below `size` and a multiple of 8, so that the header is inside of the data, which
        // follows the first page. The kernel exchanges it as a whole.
        let header = unsafe { AtomicU32::from_ptr(self.theirs.as_mut_ptr().add(self.page + offset).cast()) };
        // Pairs with the kernel's exchange at the end of a record: its content is there.
        let length = header.load(Ordering::Acquire);
        (length & BUSY == 0).then_some(length)
    }

    /// Returns words of a finished record, which begins at this offset and is not longer than the data.
    fn words(&self, offset: usize, words: usize) -> &[u64] {
        // SAFETY: `offset` is at most `size + 8` and a multiple of 8, the record ends at most `size` bytes behind its
        // header, and the map has twice `size` bytes of data. The kernel writes it again only when the position
        // that we store has gone beyond it, which it has not while the caller has this.
        unsafe {
            let from = self.theirs.as_ptr().add(self.page + offset);
            std::slice::from_raw_parts(from.cast(), words)
        }
    }
}
