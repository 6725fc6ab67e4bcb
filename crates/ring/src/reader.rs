//! The consumer's side: what the drainer does with one ring.
//!
//! The producer may be broken or hostile, so nothing found in a ring is
//! believed: positions are checked against its size, lengths against what was
//! published.

use std::fs::File;
use std::sync::atomic::Ordering;

use crate::abi::{ABI_VERSION, PAGE, RING_MAGIC, RingHeader, state};
use crate::map::{MapError, Mapping, map_mirrored};
use crate::record;
use crate::writer::fold_words;

/// Why a file is no ring that can be read.
#[derive(Debug)]
pub enum RingError {
    /// It can't be mapped.
    Map(MapError),
    /// It does not begin as a ring does (or its maker has not finished).
    Magic(u64),
    /// It was made by another version.
    Version(u32),
    /// Its size is no power of two, or not the file's.
    Size(u64),
}

/// A ring as its reader sees it.
#[derive(Debug)]
pub struct Ring {
    mapping: Mapping,
    data_bytes: u64,
}

/// A run of polls that never became a record.
#[derive(Debug, Clone, Copy)]
pub struct OpenRun {
    /// Number of the fold event.
    pub id: u16,
    /// Count, first, last, total, in ticks.
    pub words: [u64; 4],
}

impl Ring {
    /// Maps a ring file.
    ///
    /// # Errors
    /// When the file is not a complete ring of this version.
    pub fn open(file: &File) -> Result<Ring, RingError> {
        let size = file.metadata().map_err(|e| RingError::Map(MapError::Os(e)))?.len();
        let data = size.saturating_sub(PAGE as u64);
        if !data.is_power_of_two() || data < PAGE as u64 {
            return Err(RingError::Size(size));
        }
        let mapping = map_mirrored(file, data as usize).map_err(RingError::Map)?;
        let ring = Ring { mapping, data_bytes: data };
        let header = ring.header();
        // Pairs with the Release store of the maker: the rest is written.
        let magic = header.magic.load(Ordering::Acquire);
        if magic != RING_MAGIC {
            return Err(RingError::Magic(magic));
        }
        if header.version != ABI_VERSION {
            return Err(RingError::Version(header.version));
        }
        if header.data_bytes != data {
            return Err(RingError::Size(header.data_bytes));
        }
        Ok(ring)
    }

    /// The header. Its plain members are fixed while the ring is claimed.
    pub fn header(&self) -> &RingHeader {
        // SAFETY: the mapping begins with a page that holds a header, whose
        // members are valid for all bit patterns.
        unsafe { &*self.mapping.base().cast::<RingHeader>() }
    }

    /// Bytes published and not yet taken, at most `most`, as whole records.
    /// The slice is valid until [`Ring::release`].
    pub fn published(&self, most: usize) -> &[u8] {
        let header = self.header();
        let tail = header.tail.own();
        let ready = header.head.published().wrapping_sub(tail);
        // A head outside the ring is a broken producer: nothing is taken.
        if ready > self.data_bytes {
            return &[];
        }
        let at = PAGE + (tail & (self.data_bytes - 1)) as usize;
        // SAFETY: the mirror makes `ready` bytes from `at` contiguous, and the
        // producer does not touch them before `release`.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapping.base().add(at), ready as usize) };
        if bytes.len() <= most {
            return bytes;
        }
        let mut end = 0;
        while let Some(head) = bytes.get(end..end + record::HEAD) {
            let head = u64::from_le_bytes(head.try_into().unwrap_or_default());
            let next = end + record::length(head).max(record::HEAD);
            if next > most {
                break;
            }
            end = next;
        }
        &bytes[..end]
    }

    /// Gives the first `bytes` published bytes back to the producer.
    pub fn release(&self, bytes: usize) {
        let tail = &self.header().tail;
        tail.release(tail.own().wrapping_add(bytes as u64));
    }

    /// Drops everything published, after the ring was found to be damaged.
    /// Answers how many bytes that were.
    pub fn discard(&self) -> u64 {
        let header = self.header();
        let head = header.head.published();
        let lost = head.wrapping_sub(header.tail.own());
        header.tail.release(head);
        lost
    }

    /// Bytes that wait, without checking them.
    pub fn waiting(&self) -> u64 {
        let header = self.header();
        header.head.published().wrapping_sub(header.tail.own())
    }

    /// Data bytes of the ring.
    pub fn size(&self) -> u64 {
        self.data_bytes
    }

    /// The run of polls that is still open. Only sure when the writer is gone.
    pub fn open_fold(&self) -> Option<OpenRun> {
        let fold = &self.header().fold;
        // Pairs with the Release store in `Writer::fold`.
        let id = fold.id.load(Ordering::Acquire);
        (id != 0).then(|| OpenRun { id: id as u16, words: fold_words(fold) })
    }

    /// Makes an empty ring of an ended thread free for another.
    pub fn recycle(&self) {
        // Pairs with the Acquire exchange of a thread that claims the ring.
        self.header().state.store(state::FREE, Ordering::Release);
    }
}
