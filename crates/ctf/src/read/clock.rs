//! Clock values of fewer than 64 bits.

use crate::bits::mask;

/// Returns the clock after a field of `bits` bits has shown `value`.
///
/// A value below the clock's own low bits means that these have wrapped, once:
/// the same rule as babeltrace2's. More wraps cannot be seen, so a writer has
/// to leave a full value (a packet's begin) at least once per period.
#[inline]
pub(super) fn update(clock: u64, value: u64, bits: u32) -> u64 {
    let low = mask(bits);
    let value = value & low;
    if bits >= 64 {
        return value;
    }
    let high = clock & !low;
    let high = if value < clock & low { high.wrapping_add(1 << bits) } else { high };
    high | value
}

#[cfg(test)]
mod tests {
    use super::update;

    #[test]
    fn wraps_once() {
        assert_eq!(update(0x0FE, 0xFF, 8), 0x0FF);
        assert_eq!(update(0x0FF, 0xFF, 8), 0x0FF);
        assert_eq!(update(0x0FF, 0x00, 8), 0x100);
        assert_eq!(update(0x1FF, 5, 64), 5);
        assert_eq!(update(u64::MAX, 0, 8), 0);
    }
}
