//! Numbers, texts and records as OTF2 writes them.
//!
//! ```text
//! 0                    00
//! 4096                 02 00 10          so many bytes follow, the lowest first
//! not defined          ff                all bits of the type set
//! -3 (signed)          08 fd ff … ff     negative numbers are written in full
//! record               kind, length, data; from 255 bytes on kind, ff, length of 8 bytes, data
//! ```

/// A reference to nothing, and a number that is not known.
pub(super) const UNDEFINED: u32 = u32::MAX;

/// In place of a record's length: it stands behind, in 8 bytes.
const LONG: u8 = 0xff;

/// Appends what records are made of.
pub(super) trait Encode {
    /// One byte.
    fn byte(&mut self, value: u8);
    /// A number of 32 bits in as many bytes as it needs.
    fn u32(&mut self, value: u32);
    /// The same of 64 bits.
    fn u64(&mut self, value: u64);
    /// The same with a sign.
    fn i64(&mut self, value: i64);
    /// A number in 4 bytes.
    fn full_u32(&mut self, value: u32);
    /// A number in 8 bytes.
    fn full_u64(&mut self, value: u64);
    /// A text up to its first NUL, and a NUL.
    fn text(&mut self, text: &str);
}

impl Encode for Vec<u8> {
    #[inline]
    fn byte(&mut self, value: u8) {
        self.push(value);
    }

    #[inline]
    fn u32(&mut self, value: u32) {
        if value == UNDEFINED { self.push(LONG) } else { short(self, value.into()) }
    }

    #[inline]
    fn u64(&mut self, value: u64) {
        if value == u64::MAX { self.push(LONG) } else { short(self, value) }
    }

    fn i64(&mut self, value: i64) {
        short(self, value as u64);
    }

    fn full_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn full_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let end = text.bytes().position(|b| b == 0).unwrap_or(text.len());
        self.extend_from_slice(text.as_bytes().get(..end).unwrap_or_default());
        self.push(0);
    }
}

#[inline]
fn short(out: &mut Vec<u8>, value: u64) {
    let size = 8 - value.leading_zeros() as usize / 8;
    out.push(size as u8);
    out.extend_from_slice(value.to_le_bytes().get(..size).unwrap_or_default());
}

/// Appends a record; `data` appends what is in it.
pub(super) fn record(out: &mut Vec<u8>, kind: u8, data: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.push(LONG);
    data(out);
    let length = out.len() - at - 1;
    match u8::try_from(length) {
        Ok(length) if length != LONG => {
            if let Some(place) = out.get_mut(at) {
                *place = length;
            }
        }
        _ => {
            out.splice(at + 1..at + 1, (length as u64).to_le_bytes());
        }
    }
}

/// Splits the first record off; `None` where there is none.
pub(super) fn split_record(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match *records.get(1)? {
        LONG => {
            let length = records.get(2..10)?.try_into().ok()?;
            10usize.checked_add(usize::try_from(u64::from_le_bytes(length)).ok()?)?
        }
        length => 2 + usize::from(length),
    };
    records.split_at_checked(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the OTF2 library 3.0.2 wrote for these.
    #[test]
    fn numbers_are_those_of_the_library() {
        let u32s: [(u32, &[u8]); 4] = [
            (0, &[0]),
            (300, &[2, 0x2c, 1]),
            (UNDEFINED, &[0xff]),
            (0xffff_fffe, &[4, 0xfe, 0xff, 0xff, 0xff]),
        ];
        for (value, bytes) in u32s {
            let mut out = Vec::new();
            out.u32(value);
            assert_eq!(out, bytes, "{value}");
        }
        let u64s: [(u64, &[u8]); 4] = [
            (70_000, &[3, 0x70, 0x11, 1]),
            (1_000_000_000, &[4, 0, 0xca, 0x9a, 0x3b]),
            (1_700_000_000_000_000_000, &[8, 0, 0, 0x2a, 0x36, 0xfe, 0x9c, 0x97, 0x17]),
            (u64::MAX, &[0xff]),
        ];
        for (value, bytes) in u64s {
            let mut out = Vec::new();
            out.u64(value);
            assert_eq!(out, bytes, "{value}");
        }
        let mut out = Vec::new();
        out.i64(-3);
        out.i64(0);
        out.i64(5);
        assert_eq!(out, [8, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1, 5]);
    }

    #[test]
    fn texts_end_at_the_first_nul() {
        let mut out = Vec::new();
        out.text("one");
        out.text("a\0b");
        assert_eq!(out, b"one\0a\0");
    }

    #[test]
    fn long_records_have_a_long_length() {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        record(&mut short, 10, |d| d.extend([7; 254]));
        assert_eq!(short.get(..3), Some(&[10, 254, 7][..]));
        record(&mut long, 10, |d| d.extend([7; 255]));
        assert_eq!(long.get(..11), Some(&[10, 0xff, 255, 0, 0, 0, 0, 0, 0, 0, 7][..]));
        let both = [long.clone(), short.clone()].concat();
        assert_eq!(split_record(&both), Some((&long[..], &short[..])));
        assert_eq!(split_record(&short), Some((&short[..], &[][..])));
        assert_eq!(split_record(&short[..9]), None);
        assert_eq!(split_record(&[]), None);
    }
}
