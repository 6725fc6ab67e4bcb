//! Copies of pieces of modules' unwind tables, for all threads, without a lock.
//!
//! Tables are read by the kernel, as a corrupt stack may lead to a module that is gone meanwhile. To find a function takes
//! twenty steps through them, and a program that makes calls from tens of thousands of addresses would ask the kernel a
//! million times. So pieces are copied whole and kept: for good, as what is in a module's file does not change.
//!
//! ```text
//!  address ─► piece of 1 KiB ─┬─ in a module's memory ─► its place: copied once by the kernel
//!                             └─ else, and without a place ─► the kernel, each time
//! ```

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::keyed::Keyed;
use super::modules::Module;
use crate::hash;
use crate::mapped::{Mapped, Zeroed};
use crate::peek;

/// Bytes of a piece: a page's are there or not together, and so are those of a piece.
const PIECE: usize = 1 << 10;
/// Words of a piece.
const WORDS: usize = PIECE / 8;
/// Pieces, at most: 8 MiB, if they are used.
const PIECES: usize = 1 << 13;
/// Places for them, of which half are free: a power of two.
const PLACES: usize = 2 * PIECES;
/// So many places are looked at for one piece.
const REACH: usize = 8;
/// Bytes of a block, which is what is read at a time: they do not lie in two pieces.
pub(super) const BLOCK: usize = 64;

/// Words that lie side by side from a multiple of [`BLOCK`] on.
pub(super) type Block = [u64; BLOCK / 8];

/// A place for a copy.
struct Place {
    word: Keyed,
    /// The number of its piece, from 1 on; 0 if it has none yet. Changed by who has taken the place.
    piece: AtomicU64,
}

// SAFETY: it is made of atomics: a key of which 0 is free, and a number.
unsafe impl Zeroed for Place {}

/// Places, and the copies themselves, which lie side by side: else each would take a page.
struct Copies {
    places: Mapped<Place, PLACES>,
    words: Mapped<AtomicU64, { PIECES * WORDS }>,
    /// Pieces that are some place's.
    used: AtomicUsize,
}

/// The copies of this process.
static COPIES: Copies = Copies::new();

/// Reads a block of a module's tables, which may not be there.
pub(super) fn block(module: &Module, at: usize) -> Option<Block> {
    COPIES.block(module, at)
}

impl Copies {
    const fn new() -> Self {
        Self { places: Mapped::new(), words: Mapped::new(), used: AtomicUsize::new(0) }
    }

    /// As [`block`].
    fn block(&self, module: &Module, at: usize) -> Option<Block> {
        let (piece, place) = (at & !(PIECE - 1), at % PIECE / 8);
        let is_inside = module.contains(piece) && module.contains(piece + (PIECE - 1));
        let mut block = Block::default();
        match is_inside.then(|| self.piece(module, piece)).flatten() {
            Some(words) => {
                let words = words.get(place..)?;
                block.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
            }
            // SAFETY: room for as many bytes as are asked for.
            None => unsafe { peek::read(at as *const u8, block.as_mut_ptr().cast(), BLOCK) }.ok()?,
        }
        Some(block)
    }

    /// Returns the copy of a piece of a module's memory; none if there is no room, or it can't be read.
    fn piece(&self, module: &Module, at: usize) -> Option<&[AtomicU64]> {
        // By its place in memory, too, although what is relative to that is the same in all: some tables are not.
        let key = hash::mix(module.identity, at as u64).max(Keyed::FIRST);
        let places = self.places.or_map();
        let first = (key >> 40) as usize;
        for place in (first..first + REACH).filter_map(|place| places.get(place % PLACES)) {
            let found = place.word.key();
            if found == key {
                return self.words(place);
            }
            if found == Keyed::FREE && place.word.take() {
                let is_read = self.read(place, at).is_some();
                place.word.leave(if is_read { key } else { Keyed::FREE });
                return is_read.then(|| self.words(place)).flatten();
            }
        }
        None
    }

    /// The copy that lies at a place.
    fn words(&self, place: &Place) -> Option<&[AtomicU64]> {
        let number = (place.piece.load(Ordering::Relaxed) as usize).checked_sub(1)?;
        self.words.or_map().get(number * WORDS..)?.get(..WORDS)
    }

    /// Reads a piece for a place that this thread has taken.
    fn read(&self, place: &Place, at: usize) -> Option<()> {
        if place.piece.load(Ordering::Relaxed) == 0 {
            let below = |used: usize| (used < PIECES).then_some(used + 1);
            let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below).ok()?;
            place.piece.store(before as u64 + 1, Ordering::Relaxed);
        }
        let words = self.words(place)?;
        // SAFETY: there is room for a piece, of atomics, which may be written while others refer to them. It is this place's
        // alone, and nobody looks into it before this thread, which has taken the place, leaves it under a key.
        unsafe { peek::read(at as *const u8, words.as_ptr().cast_mut().cast(), PIECE) }.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that stands for a module's.
    fn module(memory: &[u64], identity: u64) -> Module {
        let at = memory.as_ptr() as usize;
        Module { memory: (at, at + 8 * memory.len()), base: 0, table: 0, identity }
    }

    #[test]
    fn a_piece_is_copied_once_for_each_module() {
        static COPIES: Copies = Copies::new();
        let mut memory: Vec<u64> = (0..4 * WORDS as u64).collect();
        let first = memory.as_ptr().align_offset(PIECE);
        let at = memory[first..].as_ptr() as usize;
        let (one, other) = (module(&memory, 7), module(&memory, 8));
        let numbers = |from: u64| Some(std::array::from_fn(|i| first as u64 + from + i as u64));
        assert_eq!(COPIES.block(&one, at + BLOCK), numbers(8));
        memory.fill(9);
        assert_eq!(COPIES.block(&one, at + 2 * BLOCK), numbers(16), "it was copied");
        assert_eq!(COPIES.block(&other, at), Some([9; 8]), "what another module has there is not the same");
        // The end of a piece that the module does not have whole is read as it is now.
        let part = Module { memory: (at + BLOCK, at + PIECE), ..one };
        assert_eq!(COPIES.block(&part, at + BLOCK), Some([9; 8]));
    }

    #[test]
    fn what_is_not_there_is_none_and_takes_no_place() {
        static COPIES: Copies = Copies::new();
        let nothing = Module { memory: (0, usize::MAX), base: 0, table: 0, identity: 3 };
        assert_eq!(COPIES.block(&nothing, PIECE), None);
        assert_eq!(COPIES.block(&nothing, PIECE), None);
        assert!(COPIES.places.all().iter().all(|place| place.word.key() == Keyed::FREE));
        assert_eq!(COPIES.used.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn without_a_place_it_is_read_each_time() {
        static TAKEN: Copies = Copies::new();
        static FULL: Copies = Copies::new();
        let mut memory: Vec<u64> = vec![0; 3 * WORDS];
        let at = memory[memory.as_ptr().align_offset(PIECE)..].as_ptr() as usize;
        let module = module(&memory, 7);
        let expect = |copies: &Copies, memory: &mut [u64]| {
            for number in [5, 6] {
                memory.fill(number);
                assert_eq!(copies.block(&module, at), Some([number; 8]));
            }
        };
        TAKEN.places.or_map().iter().for_each(|place| assert!(place.word.take()));
        expect(&TAKEN, &mut memory);
        FULL.used.store(PIECES, Ordering::Relaxed);
        expect(&FULL, &mut memory);
        assert!(FULL.places.all().iter().all(|place| place.word.key() == Keyed::FREE));
    }
}
