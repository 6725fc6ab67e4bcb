//! Rows of unwind tables: how to come from a frame to the one that called it. They are made by [`super::table`] once for
//! an address, and kept here, for all threads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapped::{Mapped, Zeroed};

/// Places for rows; a power of two, and all that a key can choose. Frameworks for training call from tens of thousands of
/// addresses, and one that is not kept is looked up by system calls in each stack that has it.
const PLACES: usize = 1 << 16;
/// So many places are looked at for one address.
const REACH: usize = 4;

/// Where the caller's stack pointer is: the canonical frame address (CFA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cfa {
    /// So many bytes above the stack pointer.
    Sp(i32),
    /// So many bytes above the frame pointer.
    Bp(i32),
    /// In the word that is so many bytes above the frame pointer: functions that align their stack.
    AtBp(i32),
    /// As by [`Self::Sp`], and a word more in the second half of 16 bytes of code: the procedure linkage table.
    Plt(i32),
}

/// What happened to the caller's frame pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saved {
    /// It is still there.
    Same,
    /// It is so many bytes above the CFA.
    AtCfa(i32),
    /// It is so many bytes above the frame pointer.
    AtBp(i32),
    /// It is gone.
    Gone,
}

/// How to unwind one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// The return address is right below the CFA.
    Frame(Cfa, Saved),
    /// The kernel made it, to call a signal handler: all registers lie on the stack.
    Signal,
    /// Nobody called it.
    Outermost,
    /// There is no table for it.
    None,
    /// The table says something that is not read here.
    Odd,
}

/// Bits of an offset.
const OFFSET: u32 = 28;

impl Row {
    /// As one word, which is never 0. Of a row that does not fit the table is not read.
    fn pack(self) -> u64 {
        let (kind, cfa, bp, other) = match self {
            Self::Frame(cfa, bp) => {
                let (cfa_kind, cfa) = match cfa {
                    Cfa::Sp(offset) => (1, offset),
                    Cfa::Bp(offset) => (2, offset),
                    Cfa::AtBp(offset) => (3, offset),
                    Cfa::Plt(offset) => (4, offset),
                };
                let (bp_kind, bp) = match bp {
                    Saved::Same => (0, 0),
                    Saved::AtCfa(offset) => (1, offset),
                    Saved::AtBp(offset) => (2, offset),
                    Saved::Gone => (3, 0),
                };
                (cfa_kind, cfa, bp, bp_kind)
            }
            Self::Signal => (5, 0, 0, 0),
            Self::Outermost => (6, 0, 0, 0),
            Self::None => (7, 0, 0, 0),
            Self::Odd => (8, 0, 0, 0),
        };
        let bits = |offset: i32| u64::from(offset.cast_unsigned()) & ((1 << OFFSET) - 1);
        let fits = |offset: i32| offset << (32 - OFFSET) >> (32 - OFFSET) == offset;
        if !fits(cfa) || !fits(bp) {
            return Self::Odd.pack();
        }
        kind | other << 4 | bits(cfa) << 8 | bits(bp) << (8 + OFFSET)
    }

    #[inline(always)]
    fn unpack(word: u64) -> Self {
        let offset = |shift: u32| (word >> shift << (32 - OFFSET)) as i32 >> (32 - OFFSET);
        let (cfa, bp) = (offset(8), offset(8 + OFFSET));
        let bp = match word >> 4 & 3 {
            0 => Saved::Same,
            1 => Saved::AtCfa(bp),
            2 => Saved::AtBp(bp),
            _ => Saved::Gone,
        };
        match word & 15 {
            1 => Self::Frame(Cfa::Sp(cfa), bp),
            2 => Self::Frame(Cfa::Bp(cfa), bp),
            3 => Self::Frame(Cfa::AtBp(cfa), bp),
            4 => Self::Frame(Cfa::Plt(cfa), bp),
            5 => Self::Signal,
            6 => Self::Outermost,
            7 => Self::None,
            _ => Self::Odd,
        }
    }
}

/// A place for a row: a key, which belongs to it only if the other word says so, and the row.
///
/// A place is written by several threads without any order between the two words, so the first holds both: what two
/// threads wrote in turn has no key.
struct Place {
    both: AtomicU64,
    row: AtomicU64,
}

// SAFETY: it is made of atomics.
unsafe impl Zeroed for Place {}

/// Rows by what names an address: a hash of its module and of the place in it.
pub(super) struct Rows {
    /// Most programs' stacks are not recorded: they take no addresses for it.
    places: Mapped<Place, PLACES>,
}

impl Rows {
    pub const fn new() -> Self {
        Self { places: Mapped::new() }
    }

    /// Returns the row of a key, if it is kept.
    #[inline(always)]
    pub fn get(&self, key: u64) -> Option<Row> {
        let first = (key >> 48) as usize;
        let places = self.places.all();
        for place in first..first + REACH {
            let place = places.get(place % PLACES)?;
            let (both, row) = (place.both.load(Ordering::Relaxed), place.row.load(Ordering::Relaxed));
            if both ^ row == key && row != 0 {
                return Some(Row::unpack(row));
            }
        }
        None
    }

    /// Keeps a row, perhaps in the place of another one; not without memory.
    pub fn keep(&self, key: u64, row: Row) {
        let (first, all) = ((key >> 48) as usize, self.places.or_map());
        let mut places = (first..first + REACH).filter_map(|place| all.get(place % PLACES));
        let free = places.find(|place| place.row.load(Ordering::Relaxed) == 0);
        let Some(place) = free.or_else(|| all.get((first + key as usize % REACH) % PLACES)) else { return };
        let row = row.pack();
        place.both.store(key ^ row, Ordering::Relaxed);
        place.row.store(row, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        static ROWS: Rows = Rows::new();
        let offsets = [0, 8, -16, 1 << 20, -(1 << 27), (1 << 27) - 1];
        let mut key = 0_u64;
        for one in offsets {
            for two in offsets {
                for cfa in [Cfa::Sp(one), Cfa::Bp(one), Cfa::AtBp(one), Cfa::Plt(one)] {
                    for bp in [Saved::Same, Saved::AtCfa(two), Saved::AtBp(two), Saved::Gone] {
                        key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
                        assert_eq!(ROWS.get(key), None);
                        ROWS.keep(key, Row::Frame(cfa, bp));
                        assert_eq!(ROWS.get(key), Some(Row::Frame(cfa, bp)));
                    }
                }
            }
        }
        for row in [Row::Signal, Row::Outermost, Row::None, Row::Odd] {
            assert_eq!(Row::unpack(row.pack()), row);
        }
        assert_eq!(
            Row::unpack(Row::Frame(Cfa::Sp(1 << 27), Saved::Same).pack()),
            Row::Odd,
            "it does not fit"
        );
    }

    #[test]
    fn a_place_that_two_wrote_is_nobodys() {
        static ROWS: Rows = Rows::new();
        ROWS.keep(7, Row::Signal);
        ROWS.places.all()[0].row.store(Row::Outermost.pack(), Ordering::Relaxed);
        assert_eq!(ROWS.get(7), None);
        for key in 1..=2 * REACH as u64 {
            ROWS.keep(key, Row::None);
            assert_eq!(ROWS.get(key), Some(Row::None), "others make room");
        }
    }
}
