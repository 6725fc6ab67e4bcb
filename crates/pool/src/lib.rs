//! How a pool of what kernels record inside begins, for all who touch one: who makes it, in the traced program; twins of
//! kernels, which write there; the launcher, which moves it; reports, which read it. [docs/inside.md](../../../docs/inside.md)
//! has the whole layout.
//!
//! ```text
//!  header of 4,096 bytes │ row of large chunks │ row of small ones │ row of large chunks │ …
//!
//!  header:   8  places of chunks      24  not 0: there was no room      2048 + 64 n  counter n: large chunks asked for
//!           16  lost records          32  where the host sees that            + 8   lost records
//!           64 + 16 n  sum n of lost records by kernel: its number, plus 1      + 16  small chunks asked for, and TICKET
//!               + 8    how many                                                      (place of its first one << 24)
//!                                                                               + 24 + 8 m  since when multiprocessor 32 m + n loses
//! ```
//! A row has as many places as there are counters, each of the size of a large chunk; sixteen small ones are in one place.
//! So it is with [`Strategy::Chunks`]; others have other counters, and other things in their rows: [`Layout`].
//! Any bytes can be read as a header; what is behind their end is 0.

mod layout;

pub use layout::{Layout, Size, Strategy};

/// Bytes of a large chunk, of a place, and of the header.
pub const CHUNK: u64 = 4096;
/// Bytes of a small chunk.
pub const SMALL: u64 = 256;
/// Places that a pool has at most: their numbers have to fit into what lanes keep.
pub const MOST: u64 = (1 << 23) - 1;

/// Where a header has the number of its strategy.
const STRATEGY: usize = 0;
/// Where it has how many counters there are, if they are behind it.
pub const COUNT: usize = 4;
/// Where it has the number of places.
pub const PLACES: usize = 8;
/// Where it has records that were lost before a counter was chosen.
const LOST: usize = 16;
/// Where it says that there was no room any more.
pub const FULL: usize = 24;
/// Where it has the address of memory of the host, to which that is written, too; 0: to none.
pub const HOST_FULL: usize = 32;

/// Counters of chunks that were asked for.
pub const COUNTERS: usize = 32;
/// Bytes from a counter to the next one.
pub const STRIDE: usize = 64;
/// Where the first counter of large chunks is.
pub const ASKED: usize = 2048;
/// Where the first counter of small chunks is.
pub const ASKED_SMALL: usize = ASKED + 16;
/// Where the first counter of lost records is.
pub const MISSED: usize = ASKED + 8;
/// Where the first time of a loss is.
const SINCE: usize = ASKED + 24;
/// How many times there are in each step of [`STRIDE`].
const TIMES: usize = (STRIDE - (SINCE - ASKED)) / 8;
/// What counters of first chunks begin with, so that a lane can distinguish what one returned from a cursor.
pub const TICKET: u32 = 0x8000_0000;
/// Bits of such a counter that count. With [`Strategy::Chunks`] those above have the place of its first small chunk, so that
/// what a lane got from it says all of where its chunk is.
pub const TICKET_BITS: u32 = 24;

/// Where the first sum of lost records by kernel is: the kernel's number, plus 1 (u32; 0: it is free), and at 8 its records.
const LOSSES: usize = 64;
/// Bytes of such a sum.
const LOSS: usize = 16;
/// How many there are.
const SUMS: usize = (ASKED - LOSSES) / LOSS;

const _: () = assert!(ASKED_SMALL + STRIDE * (COUNTERS - 1) + 4 <= CHUNK as usize);

fn bytes_at<const N: usize>(header: &[u8], at: usize) -> [u8; N] {
    header.get(at..).and_then(|there| there.first_chunk()).copied().unwrap_or([0; N])
}

/// Returns a number of a pool, of 32 bits; 0 behind the end.
pub fn u32_at(pool: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(pool, at))
}

/// The same of 64 bits.
pub fn u64_at(pool: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(pool, at))
}

/// Returns the header of a pool of [`Strategy::Chunks`] with so many places, of which none was asked for; at most [`MOST`] are
/// used.
pub fn empty(places: u64) -> [u8; CHUNK as usize] {
    let mut header = [0; CHUNK as usize];
    Layout::default().begin(places, &mut header);
    header
}

/// Returns how many places there are, according to a header.
pub fn places(header: &[u8]) -> u64 {
    u64_at(header, PLACES)
}

/// Returns whether there was no room any more.
pub fn is_full(header: &[u8]) -> bool {
    u32_at(header, FULL) != 0
}

/// Returns how many records found no room.
pub fn lost(header: &[u8]) -> u64 {
    let of_any = (0..COUNTERS).map(|counter| u64_at(header, MISSED + STRIDE * counter));
    let by_kernel = (0..SUMS).map(|sum| u64_at(header, LOSSES + LOSS * sum + 8));
    of_any.chain(by_kernel).fold(u64_at(header, LOST), u64::saturating_add)
}

/// Returns where a header has the sum of lost records of the kernel with this number. Kernels of an image have different
/// ones, up to 124; two of different images may have the same, which is whose of them comes first.
pub fn loss_slot(kernel: u32) -> usize {
    LOSSES + LOSS * (kernel as usize % SUMS)
}

/// Returns where a header has since when a multiprocessor's records are lost: all ones less its `%clock64`, so that the first
/// is the largest number, and 0 is never. Those from 160 on share their places with others.
pub fn since_slot(multiprocessor: u32) -> usize {
    let (step, time) = (multiprocessor as usize % COUNTERS, multiprocessor as usize / COUNTERS);
    SINCE + STRIDE * step + 8 * time.min(TIMES - 1)
}

/// Returns the `%clock64` of a multiprocessor at which the first record of a leader that found no room was to be made, in modes
/// other than paths: those before are all there. Nothing if there is none.
pub fn lost_since(header: &[u8], multiprocessor: u32) -> Option<u64> {
    Some(!u64_at(header, since_slot(multiprocessor))).filter(|time| *time != u64::MAX)
}

/// Returns the lost records of each kernel, by its number, that has a sum of its own and lost some.
pub fn lost_by(header: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    let sums = (0..SUMS).map(|sum| LOSSES + LOSS * sum);
    sums.filter_map(|at| Some((u32_at(header, at).checked_sub(1)?, u64_at(header, at + 8))))
        .filter(|(_, records)| *records > 0)
}

/// Returns how many places at a pool's begin may be used, of `there` places; what is behind is zero.
pub fn used(header: &[u8], there: u64) -> u64 {
    Layout::of(header).used(header, there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_used_up_to_its_last_chunk() {
        let mut header = empty(100);
        assert_eq!(
            (places(&header), used(&header, 100), is_full(&header), lost(&header)),
            (100, 0, false, 0)
        );
        header[ASKED + 64 * 5] = 2;
        header[ASKED + 64 * 31] = 1;
        assert_eq!(used(&header, 100), 64 + 6);
        assert_eq!(used(&header, 20), 20);
        // Small ones are in the rows between.
        header[ASKED_SMALL + 64 * 9] = 33;
        assert_eq!(header[ASKED_SMALL + 64 * 9 + 3], 0x80 + 32 + 9);
        // As it was before it said its place.
        let mut older = header;
        older[ASKED_SMALL + 64 * 9 + 3] = 0x80;
        assert_eq!(Layout::default().asked(&older, 9, Size::Small), 33);
        assert_eq!(Layout::default().asked(&header, 9, Size::Small), 33);
        assert_eq!(used(&header, 1000), 5 * 32 + 10);
        assert_eq!(used(&header[..100], 20), 0);
        (header[FULL], header[16], header[MISSED + 64 * 31]) = (1, 2, 3);
        assert!(is_full(&header));
        assert_eq!(lost(&header), 5);
        // The last sum ends where counters begin.
        assert_eq!((loss_slot(123), loss_slot(124)), (ASKED - LOSS, LOSSES));
        (header[loss_slot(123)], header[loss_slot(123) + 8]) = (124, 4);
        // Somebody else's, of whom no number is known.
        header[loss_slot(0) + 8] = 3;
        assert_eq!((lost(&header), lost_by(&header).collect::<Vec<_>>()), (12, vec![(123, 4)]));
    }

    #[test]
    fn each_multiprocessor_has_a_time_since_when_it_loses() {
        let places: std::collections::BTreeSet<usize> = (0..160).map(since_slot).collect();
        assert_eq!(places.len(), 160);
        // Between the words of a counter and those of the next one, and in the header.
        assert!(places.iter().all(|at| (ASKED_SMALL - ASKED + 4..STRIDE).contains(&((at - ASKED) % STRIDE))));
        assert!(places.iter().all(|at| *at >= ASKED && at + 8 <= CHUNK as usize));
        assert_eq!((since_slot(160), since_slot(u32::MAX)), (since_slot(128), since_slot(159)));
        let mut header = empty(1);
        assert_eq!((lost_since(&header, 131), lost_since(&[], 0)), (None, None));
        header[since_slot(131)..][..8].copy_from_slice(&(!77u64).to_le_bytes());
        assert_eq!((lost_since(&header, 131), lost_since(&header, 130)), (Some(77), None));
    }

    #[test]
    fn no_more_places_are_used_than_a_lane_can_name() {
        assert_eq!((places(&empty(u64::MAX)), places(&[])), (MOST, 0));
    }
}
