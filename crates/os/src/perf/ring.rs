//! The ring buffer that the kernel writes records of one CPU into.
//!
//! ```text
//!  page 0: struct perf_event_mmap_page            pages 1 to 2^n: data
//!    data_head  written by the kernel, ever growing   ─┐ modulo the size of the data:
//!    data_tail  written by us, ever growing           ─┘ unread is from tail to head
//! ```
//! Records are contiguous modulo the size: one may go over the end and on at the beginning.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// The smallest buffer that is of use, in bytes.
const LEAST: usize = 64 << 10;

/// A ring buffer. The event that it belongs to is in it: other events may be redirected here.
#[derive(Debug)]
pub struct Ring {
    event: Arc<OwnedFd>,
    map: MmapRaw,
    /// Where the data begins in the map.
    offset: usize,
    /// Bytes of data: a power of two.
    size: usize,
}

impl Ring {
    /// Maps the buffer of an event, with room for `bytes` of data, rounded up to a power of two. Who may
    /// not lock so much memory (`/proc/sys/kernel/perf_event_mlock_kb`) gets half of it, or half of that.
    ///
    /// # Errors
    /// When the system refuses even the smallest.
    pub fn map(event: OwnedFd, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let mut size = bytes.max(page).next_power_of_two();
        let map = loop {
            match MmapOptions::new().len(page + size).map_raw(&event) {
                Ok(map) => break map,
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied && size / 2 >= LEAST => size /= 2,
                Err(e) => return Err(e),
            }
        };
        // The kernel says where its data is since 4.1; before, it is behind the first page.
        Ok(Self { event: Arc::new(event), map, offset: page, size })
    }

    /// Returns the event that it belongs to.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Returns the event for whoever opens or stops others with it.
    pub fn share(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.event)
    }

    /// Appends all unread records to `into` and makes their room free. Returns how many bytes.
    pub fn take(&mut self, into: &mut Vec<u8>) -> usize {
        // Pairs with the kernel's barrier before it stores `data_head`: the data is there.
        let head =
            self.position(std::mem::offset_of!(perf_event_mmap_page, data_head)).load(Ordering::Acquire);
        let tail_at = self.position(std::mem::offset_of!(perf_event_mmap_page, data_tail));
        // Only we write it.
        let tail = tail_at.load(Ordering::Relaxed);
        let unread = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.size);
        let begin = tail as usize & (self.size - 1);
        let first = unread.min(self.size - begin);
        self.copy(begin, first, into);
        self.copy(0, unread - first, into);
        // Pairs with the kernel's reading of `data_tail`: all was copied before it may overwrite it.
        tail_at.store(head, Ordering::Release);
        unread
    }

    /// Returns one of the two positions in the first page.
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the map is longer than the first page, which is aligned to pages; the kernel writes
        // `data_head` and reads `data_tail`, both u64 at multiples of 8, with single stores and loads.
        // The map lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// Appends a part of the data that the kernel has finished and does not touch.
    fn copy(&self, begin: usize, len: usize, into: &mut Vec<u8>) {
        into.reserve(len);
        // SAFETY: `begin + len` is at most `size`, so all is inside the map. The kernel writes from
        // `data_head` to `data_tail + size` only, and this lies between `data_tail` and `data_head`.
        // Room for `len` bytes was reserved, and they are written before they count.
        unsafe {
            let from = self.map.as_ptr().add(self.offset + begin);
            let end = into.len();
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(end), len);
            into.set_len(end + len);
        }
    }
}
