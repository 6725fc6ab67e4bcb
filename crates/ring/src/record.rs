//! The eight bytes that stand before every record in a ring.
//!
//! ```text
//!  bit 0           14           26                                    64
//!      ┌────────────┬────────────┬─────────────────────────────────────┐
//!      │ event id   │ length     │ low 38 bits of the time in ticks    │
//!      └────────────┴────────────┴─────────────────────────────────────┘
//! ```
//! The length counts these eight bytes too. 38 bits of ticks are a minute and
//! more, and the drainer looks every few milliseconds, so it always knows
//! which period is meant. In the trace the head is another
//! (`docs/trace-format.md`).

/// Size of a record's head in bytes.
pub const HEAD: usize = 8;
/// The longest record, including its head.
pub const MAX_RECORD: usize = (1 << LENGTH_BITS) - 1;
/// Bits of the time stamp that a record keeps.
pub const TIME_BITS: u32 = 64 - ID_BITS - LENGTH_BITS;
/// Bits of the event number.
pub const ID_BITS: u32 = 14;
/// Bits of the length.
pub const LENGTH_BITS: u32 = 12;
/// Largest event number.
pub const MAX_ID: u16 = (1 << ID_BITS) - 1;

/// Numbers below this are for records that are not calls.
pub const FIRST_CALL_ID: u16 = 32;
/// Numbers of a function: entry, exit, and many calls in one record.
pub const IDS_PER_CALL: u16 = 3;

/// Whether an event number is that of many calls in one record.
#[inline(always)]
pub const fn is_fold(id: u16) -> bool {
    id >= FIRST_CALL_ID && (id - FIRST_CALL_ID) % IDS_PER_CALL == 2
}

/// Packs a record's head.
#[inline(always)]
pub const fn pack(id: u16, length: usize, time: u64) -> u64 {
    (id as u64) | ((length as u64) << ID_BITS) | (time << (ID_BITS + LENGTH_BITS))
}

/// A record's event number.
#[inline(always)]
pub const fn id(head: u64) -> u16 {
    (head & MAX_ID as u64) as u16
}

/// A record's length in bytes.
#[inline(always)]
pub const fn length(head: u64) -> usize {
    ((head >> ID_BITS) & MAX_RECORD as u64) as usize
}

/// The low bits of a record's time.
#[inline(always)]
pub const fn time(head: u64) -> u64 {
    head >> (ID_BITS + LENGTH_BITS)
}

/// The smallest full time not before `floor` that has these low bits.
#[inline(always)]
pub const fn unwrap_time(low: u64, floor: u64) -> u64 {
    let mask = (1u64 << TIME_BITS) - 1;
    floor.wrapping_add(low.wrapping_sub(floor) & mask)
}

/// Returns whether these are the low bits of a full time.
#[inline(always)]
pub const fn is_low(low: u64, full: u64) -> bool {
    unwrap_time(low, full) == full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_keeps_its_parts() {
        let head = pack(0x3abc, 4095, 0xff_1234_5678_9abc);
        let time_left = 0x1234_5678_9abc & ((1 << TIME_BITS) - 1);
        assert_eq!((id(head), length(head), time(head)), (0x3abc, 4095, time_left));
    }

    #[test]
    fn time_is_the_next_with_these_bits() {
        let period = 1u64 << TIME_BITS;
        for (full, floor) in [(5, 5), (5, 0), (period + 3, period - 1), (7 * period, 6 * period + 1)] {
            assert_eq!(unwrap_time(full & (period - 1), floor), full);
        }
    }
}
