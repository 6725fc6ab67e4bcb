//! The consumer's side: what the drainer does with arenas and their rings.
//!
//! The producer may be broken or hostile, so nothing found in shared memory is
//! believed: positions are checked against sizes that the reader learned once,
//! lengths against what was published. A file that is cut short under a mapping
//! is the business of [`crate::survive`].

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::directory::Entry;
use crate::abi::{
    ABI_VERSION, ADDED_UP, ARENA_MAGIC, ARENA_NOTES_OFFSET, ArenaHeader, FIRST_RING, MAX_RINGS, OpenFold,
    PAGE, RING_MAGIC, RingHeader, directory_entry, drained, ring_bytes,
};
use crate::map::{MapError, Mapping, map_file, map_part};
use crate::note::Byte;
use crate::record;
use crate::writer::{FOLD_RECORD_WORDS, fold_words};

/// Why a file is no arena, or a part of it no ring, that can be read.
#[derive(Debug)]
pub enum RingError {
    /// It can't be mapped.
    Map(MapError),
    /// It does not begin as it should (or its maker has not finished).
    Magic(u64),
    /// It was made by another version.
    Version(u32),
    /// Its size is no power of two, or leaves the arena.
    Size(u64),
}

/// An arena as its reader sees it.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
}

impl Arena {
    /// Maps header and directory of an arena file.
    ///
    /// # Errors
    /// When the file is not a complete arena of this version.
    pub fn open(file: &File) -> Result<Arena, RingError> {
        let mapping = map_file(file, FIRST_RING as usize, true).map_err(RingError::Map)?;
        let arena = Arena { mapping };
        // Pairs with the Release store of the maker: the rest is written, the lock held.
        let magic = arena.header().magic.load(Ordering::Acquire);
        if magic != ARENA_MAGIC {
            return Err(RingError::Magic(magic));
        }
        if arena.header().version != ABI_VERSION {
            return Err(RingError::Version(arena.header().version));
        }
        Ok(arena)
    }

    /// The header. Its plain members are fixed.
    pub fn header(&self) -> &ArenaHeader {
        // SAFETY: the mapping begins with a page that holds a header, whose
        // members are valid for all bit patterns.
        unsafe { &*self.mapping.base().cast::<ArenaHeader>() }
    }

    /// Where its process leaves notes.
    pub fn notes(&self) -> &[Byte] {
        // SAFETY: the rest of the first page of the mapping; the program writes bytes there, as the reader does.
        unsafe {
            let place = self.mapping.base().add(ARENA_NOTES_OFFSET).cast();
            std::slice::from_raw_parts(place, PAGE - ARENA_NOTES_OFFSET)
        }
    }

    /// Entries of the directory that were taken so far.
    pub fn rings(&self) -> usize {
        (self.header().rings.load(Ordering::Acquire) as usize).min(MAX_RINGS)
    }

    /// Adds rings that threads may claim.
    pub fn add_reusable(&self, rings: i32) {
        self.header().reusable.fetch_add(rings, Ordering::Relaxed);
    }

    /// Opens the ring with this number; `None` if it is not complete yet.
    ///
    /// # Errors
    /// When what the directory or the ring's header says can't be.
    pub fn ring(&self, file: &File, number: usize) -> Result<Option<Ring>, RingError> {
        let ring = self.look(file, number)?;
        // Its thread may wait for room now: somebody reads it.
        ring.iter().for_each(|ring| ring.header().drained.store(drained::YES, Ordering::Relaxed));
        Ok(ring)
    }

    /// Opens the ring with this number to look at it: somebody else reads it.
    ///
    /// # Errors
    /// As [`Arena::ring`].
    pub fn look(&self, file: &File, number: usize) -> Result<Option<Ring>, RingError> {
        if number >= MAX_RINGS {
            return Ok(None);
        }
        // SAFETY: the directory follows the header's page within the mapping, and has
        // `MAX_RINGS` entries, which are valid for all bit patterns.
        let entry = unsafe { &*self.mapping.base().add(PAGE).cast::<Entry>().add(number) };
        let Some((offset, data)) = entry.find() else { return Ok(None) };
        if offset < FIRST_RING || data < PAGE as u64 || data > MOST_DATA {
            return Err(RingError::Size(directory_entry(offset, data)));
        }
        let ring = Ring::map(file, offset, data)?;
        (ring.number as usize == number)
            .then_some(Some(ring))
            .ok_or(RingError::Size(directory_entry(offset, data)))
    }
}

/// No ring has more data bytes.
const MOST_DATA: u64 = 1 << 32;

/// A ring as its reader sees it.
#[derive(Debug)]
pub struct Ring {
    mapping: Mapping,
    data_bytes: u64,
    number: u32,
    /// Up to where this reader has taken bytes. The producer goes by the header's `tail`, up to which they are released.
    taken: AtomicU64,
}

/// A run of polls that never became a record.
#[derive(Debug, Clone, Copy)]
pub struct OpenRun {
    /// Number of the fold event.
    pub id: u16,
    /// Count, first, last, total, and the standard error of that, in ticks.
    pub words: [u64; FOLD_RECORD_WORDS],
}

impl Ring {
    /// Maps a ring of `data` data bytes that begins at `offset`.
    ///
    /// # Errors
    /// When it is not a ring of this size.
    pub fn open(file: &File, offset: u64, data: u64) -> Result<Ring, RingError> {
        let ring = Ring::map(file, offset, data)?;
        ring.header().drained.store(drained::YES, Ordering::Relaxed);
        Ok(ring)
    }

    fn map(file: &File, offset: u64, data: u64) -> Result<Ring, RingError> {
        if !data.is_power_of_two() || data < PAGE as u64 {
            return Err(RingError::Size(data));
        }
        let length = usize::try_from(ring_bytes(data)).map_err(|_| RingError::Size(data))?;
        let mapping = map_part(file, offset, length, true).map_err(RingError::Map)?;
        let mut ring = Ring { mapping, data_bytes: data, number: 0, taken: AtomicU64::new(0) };
        let header = ring.header();
        let magic = header.magic.load(Ordering::Acquire);
        if magic != RING_MAGIC {
            return Err(RingError::Magic(magic));
        }
        if header.data_bytes != data {
            return Err(RingError::Size(header.data_bytes));
        }
        let (number, tail) = (header.number, header.tail.own());
        ring.number = number;
        *ring.taken.get_mut() = tail;
        Ok(ring)
    }

    /// The header.
    pub fn header(&self) -> &RingHeader {
        // SAFETY: the mapping begins with a page that holds a header, whose
        // members are valid for all bit patterns.
        unsafe { &*self.mapping.base().cast::<RingHeader>() }
    }

    /// Number in the arena's directory.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Bytes published and not yet taken, at most `most`, as whole records that lie in one
    /// piece: where the ring goes over its end, the next call returns the rest. The slice is
    /// valid until [`Ring::release`].
    pub fn published(&self, most: usize) -> &[u8] {
        self.published_from(self.taken.load(Ordering::Relaxed), most)
    }

    /// The same from a position on, at which a record begins that is not taken.
    pub fn published_from(&self, tail: u64, most: usize) -> &[u8] {
        let header = self.header();
        let ready = header.head.published().wrapping_sub(tail);
        // A head outside the ring is a broken producer: nothing is taken.
        if ready > self.data_bytes {
            return &[];
        }
        let at = tail & (self.data_bytes - 1);
        let to_end = (self.data_bytes - at) as usize;
        // A record that begins before the data's end may end in the page behind it.
        let ready = (ready as usize).min(to_end + PAGE);
        let first = PAGE + at as usize;
        // SAFETY: `ready` bytes from `first` end at most one page behind the data, which the
        // mapping has, and the producer does not touch published bytes before `release`.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapping.base().add(first), ready) };
        if bytes.len() <= most && bytes.len() <= to_end {
            return bytes;
        }
        let mut end = 0;
        while end < to_end
            && let Some(head) = bytes.get(end..end + record::HEAD)
        {
            let head = u64::from_le_bytes(head.try_into().unwrap_or_default());
            let next = end + record::length(head).max(record::HEAD);
            if next > most || next > bytes.len() {
                break;
            }
            end = next;
        }
        if end == 0 {
            return bytes; // What stands first is no record: whoever parses it finds that.
        }
        &bytes[..end]
    }

    /// Takes the first `bytes` published bytes. The producer does not write there yet: another reader finds them again if
    /// this one is killed before [`Ring::release`].
    pub fn take(&self, bytes: usize) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(bytes as u64), Ordering::Relaxed);
    }

    /// Returns up to where this reader has taken bytes.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Goes on at a position that a reader before has come to, and gives the producer what is before it. Returns none
    /// if that is not among the published bytes.
    pub fn skip_to(&self, position: u64) -> Option<()> {
        let taken = self.taken.load(Ordering::Relaxed);
        let ready = self.header().head.published().wrapping_sub(taken);
        if ready > self.data_bytes || position.wrapping_sub(taken) > ready {
            return None;
        }
        self.taken.store(position, Ordering::Relaxed);
        self.release();
        Some(())
    }

    /// Gives what was taken back to the producer.
    pub fn release(&self) {
        self.header().tail.release(self.taken.load(Ordering::Relaxed));
    }

    /// Bytes that are taken and not released.
    pub fn held(&self) -> u64 {
        self.taken.load(Ordering::Relaxed).wrapping_sub(self.header().tail.own())
    }

    /// Drops everything published, after the ring was found to be damaged.
    /// Returns how many bytes that were.
    pub fn discard(&self) -> u64 {
        let header = self.header();
        let head = header.head.published();
        let lost = head.wrapping_sub(self.taken.swap(head, Ordering::Relaxed));
        header.tail.release(head);
        lost
    }

    /// Bytes that wait to be taken, without checking them.
    pub fn waiting(&self) -> u64 {
        let header = self.header();
        header.head.published().wrapping_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Records that are there and will never be published. Only sure when the writer is gone.
    pub fn unpublished(&self) -> u64 {
        let header = self.header();
        let waits = header.unpublished_at.load(Ordering::Relaxed) == header.head.published();
        if waits { header.unpublished.load(Ordering::Relaxed) } else { 0 }
    }

    /// Data bytes of the ring.
    pub fn size(&self) -> u64 {
        self.data_bytes
    }

    /// Calls that are in no record yet: the run of polls that is still open, and what was added up. Only sure when
    /// the writer is gone.
    pub fn open_folds(&self) -> impl Iterator<Item = OpenRun> {
        let header = self.header();
        let open = |fold: &OpenFold, flag: u64| {
            // Pairs with the Release store in `Writer::fold`.
            let id = fold.id.load(Ordering::Acquire);
            let [count, first, last, total, error] = fold_words(fold);
            let words = [count | flag, first, last, total, error];
            (id != 0 && count != 0).then_some(OpenRun { id: id as u16, words })
        };
        let sums = header.sums.iter().filter_map(move |sum| open(sum, ADDED_UP));
        open(&header.fold, 0).into_iter().chain(sums)
    }

    /// Makes an empty ring that its thread has left free for another.
    pub fn recycle(&self) {
        self.header().state.free();
    }

    /// Says that nobody reads the ring any more: its thread must not wait for room.
    pub fn leave(&self) {
        self.header().drained.store(drained::NO_MORE, Ordering::Relaxed);
    }
}
