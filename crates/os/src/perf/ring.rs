//! The ring buffer that the kernel writes records of one CPU into.
//!
//! ```text
//!  page 0: struct perf_event_mmap_page            pages 1 to 2^n: data
//!    data_head  written by the kernel, ever growing   ─┐ modulo the size of the data:
//!    data_tail  written by us, ever growing           ─┘ unread is from tail to head
//! ```
//! Records are contiguous modulo the size: one may go over the end and on at the beginning.
//!
//! A record that says how many were lost comes with the next one that has room, so of the last losses there is none. What each
//! event lost is therefore asked of the event itself (Linux 6.0), when the buffer was so full that something may have been.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::{open, record};

/// The smallest buffer that is of use, in bytes.
const LEAST: usize = 64 << 10;
/// No record has more bytes: their length is a number of 16 bits.
const LONGEST: u64 = 64 << 10;

/// A ring buffer. The event that it belongs to is in it: other events may be redirected here.
#[derive(Debug)]
pub struct Ring {
    event: Arc<OwnedFd>,
    /// Others whose records go here, if all of them are known.
    others: Option<Vec<Arc<OwnedFd>>>,
    /// What all of them had lost when it was last asked.
    known: u64,
    /// What was lost since [`Ring::dropped`].
    dropped: u64,
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
        let (event, others) = (Arc::new(event), Some(Vec::new()));
        Ok(Self { event, others, known: 0, dropped: 0, map, offset: page, size })
    }

    /// Returns the event that it belongs to.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Returns the event for whoever opens or stops others with it.
    pub fn share(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.event)
    }

    /// Counts what another event loses, too, whose records go here.
    pub fn counts(&mut self, event: Arc<OwnedFd>) {
        self.others.iter_mut().for_each(|others| others.push(Arc::clone(&event)));
    }

    /// Leaves it to records to say what was lost: not all events whose records go here will be known.
    pub fn leaves_counting(mut self) -> Self {
        self.others = None;
        self
    }

    /// Returns how many records there was no room for since it was last asked, as far as no record says it.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Appends all unread records to `into` and makes their room free. Returns how many bytes.
    pub fn take(&mut self, into: &mut Vec<u8>) -> usize {
        let kept = into.len();
        // Pairs with the kernel's barrier before it stores `data_head`: the data is there.
        let head_at = self.position(std::mem::offset_of!(perf_event_mmap_page, data_head));
        let head = head_at.load(Ordering::Acquire);
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
        // The kernel loses records until it sees that: how far it has come is looked at after it.
        fence(Ordering::SeqCst);
        let filled = head_at.load(Ordering::Relaxed).wrapping_sub(tail).saturating_add(LONGEST);
        let taken = &mut into[kept..];
        if (filled > self.size as u64 || record::says_lost(taken)) && self.count() {
            record::unsay_lost(taken);
        }
        unread
    }

    /// Counts what was lost. False if it is not known: then records say it.
    fn count(&mut self) -> bool {
        let Some(others) = &self.others else { return false };
        let lost = std::iter::once(&self.event).chain(others).map(open::lost);
        let Some(now) = lost.sum::<Option<u64>>() else { return false };
        self.dropped += now.saturating_sub(self.known);
        self.known = now;
        true
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::open::Of;
    use crate::perf::record::{Records, What};

    /// A thread that takes another name again and again fills the buffer: what is there and what was lost is all, also
    /// where nothing comes after it.
    #[test]
    fn what_was_lost_is_known_also_when_nothing_comes_after_it() {
        const NAMES: u64 = 500;
        let thread = rustix::thread::gettid();
        let cpu = rustix::thread::sched_getcpu();
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only).expect("to stay on this CPU");
        let event = match open::switches(Of::Thread(thread), cpu as u32, 1) {
            Ok(event) if open::lost(&event).is_some() => event,
            other => return println!("SKIPPED: the kernel does not count what is lost: {other:?}"),
        };
        let mut ring = Ring::map(event, 1).expect("a ring");
        let (mut there, mut dropped) = (0, 0);
        for round in 1..=4 {
            for n in 0..NAMES {
                let name = std::ffi::CString::new(format!("name {n}")).unwrap();
                rustix::thread::set_name(&name).expect("a name");
            }
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            let what: Vec<_> = Records::new(&bytes).map(|record| record.what).collect();
            assert!(!what.iter().any(|what| matches!(what, What::Lost(_))), "counted twice: {what:?}");
            there += what.iter().filter(|what| matches!(what, What::Comm { .. })).count() as u64;
            dropped += ring.dropped();
            // Switches may be among what was lost.
            assert!(there < round * NAMES && there + dropped >= round * NAMES, "{there} and {dropped}");
        }
    }
}
