//! Which line of its file an instruction of a code object comes from: the tables that the compiler leaves, in the three
//! forms that CPython 3.9 to 3.14 have.

/// The form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// 3.9, `co_lnotab`: pairs of bytes, by how much the instruction and the line grow.
    Pairs,
    /// 3.10, `co_linetable`: pairs of bytes, how long the next range is and by how much its line grows.
    Ranges,
    /// Since 3.11: entries of several bytes, of which the first has the high bit.
    Entries,
}

/// In a table of ranges: the range has no line.
const NO_LINE: i8 = -128;

/// Returns the line of the instruction that begins `offset` bytes behind the first; 0 if it has none. A code object
/// begins in line `first`.
pub(super) fn line(form: Form, table: &[u8], first: i32, offset: i32) -> i32 {
    let found = match form {
        Form::Pairs => in_pairs(table, first, offset),
        Form::Ranges => in_ranges(table, first, offset),
        Form::Entries => in_entries(table, first, offset),
    };
    found.unwrap_or(0).max(0)
}

fn in_pairs(table: &[u8], first: i32, offset: i32) -> Option<i32> {
    let (mut at, mut line) = (0_i32, first);
    for pair in table.chunks_exact(2) {
        at += i32::from(pair[0]);
        if at > offset {
            break;
        }
        line = line.wrapping_add(i32::from(pair[1].cast_signed()));
    }
    Some(line)
}

fn in_ranges(table: &[u8], first: i32, offset: i32) -> Option<i32> {
    if offset < 0 {
        return Some(first);
    }
    let (mut end, mut line) = (0_i32, first);
    for pair in table.chunks_exact(2) {
        let (length, step) = (pair[0], pair[1].cast_signed());
        end += i32::from(length);
        if step != NO_LINE {
            line = line.wrapping_add(i32::from(step));
        }
        if end > offset {
            return (step != NO_LINE).then_some(line);
        }
    }
    None
}

/// Kinds of entries: bits 3 to 6 of their first byte.
mod kind {
    /// Up to this one the line stays, and a byte with columns follows.
    pub const LAST_SHORT: u8 = 9;
    /// From here to [`LAST_ONE_LINE`] the line grows by 0, 1 or 2, and two bytes with columns follow.
    pub const ONE_LINE: u8 = 10;
    /// See there.
    pub const LAST_ONE_LINE: u8 = 12;
    /// There is no line.
    pub const NONE: u8 = 15;
}

fn in_entries(table: &[u8], first: i32, offset: i32) -> Option<i32> {
    if offset < 0 {
        return Some(first);
    }
    let (mut end, mut line) = (0_i32, first);
    let mut rest = table;
    while let Some((&head, mut body)) = rest.split_first() {
        let kind = head >> 3 & 15;
        end = end.wrapping_add(2 * (i32::from(head & 7) + 1));
        match kind {
            ..=kind::LAST_SHORT | kind::NONE => {}
            kind::ONE_LINE..=kind::LAST_ONE_LINE => {
                line = line.wrapping_add(i32::from(kind - kind::ONE_LINE));
            }
            _ => line = line.wrapping_add(signed(&mut body)?),
        }
        if end > offset {
            return (kind != kind::NONE).then_some(line);
        }
        // What follows with columns has the high bit nowhere.
        let next = body.iter().position(|byte| byte & 0x80 != 0)?;
        rest = body.get(next..)?;
    }
    None
}

/// A number in groups of six bits, the lowest first; bit 6 of a byte says that another follows. Its lowest bit is the
/// sign.
fn signed(bytes: &mut &[u8]) -> Option<i32> {
    let (mut value, mut shift) = (0_u32, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    let size = (value >> 1).cast_signed();
    Some(if value & 1 == 0 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `compile("a=1\n\n\nb=2\n", …)` of each version has them.
    #[test]
    fn tables_of_each_form() {
        // 3.9: 4 bytes of instructions of line 1, then line 4.
        let pairs = [4, 3];
        let at = |offset| line(Form::Pairs, &pairs, 1, offset);
        assert_eq!([at(0), at(3), at(4), at(100)], [1, 1, 4, 4]);
        // 3.10: the ranges of lines 1 and 4, and one without.
        let ranges = [4, 0, 4, 3, 2, 128];
        let at = |offset| line(Form::Ranges, &ranges, 1, offset);
        assert_eq!([at(-1), at(0), at(4), at(8), at(10)], [1, 1, 4, 0, 0]);
        // 3.11: RESUME without columns in line 0; two units of line 1; three by a long step back to 7 of 10.
        let entries =
            [0x80 | 13 << 3, 0b11, 0x80 | 11 << 3 | 1, 0, 1, 0x80 | 15 << 3, 0x80 | 14 << 3 | 2, 14, 0, 1, 5];
        let at = |offset| line(Form::Entries, &entries, 1, offset);
        assert_eq!([at(0), at(2), at(4), at(6), at(8), at(12), at(14)], [0, 1, 1, 0, 8, 8, 0]);
    }

    #[test]
    fn long_steps_and_lines_that_go_back() {
        // -100 is 201: 9 and 3 in groups of six bits.
        let entries = [0x80 | 13 << 3, 64 | 9, 3];
        assert_eq!(line(Form::Entries, &entries, 500, 0), 400);
        assert_eq!(line(Form::Pairs, &[0, 127, 0, 127, 2, 246], 10, 0), 264);
        assert_eq!(line(Form::Pairs, &[0, 127, 0, 127, 2, 246], 10, 2), 254);
    }

    #[test]
    fn damaged_tables_have_no_line() {
        for length in 0..40_usize {
            let table: Vec<u8> = (0..length).map(|i| (i * 151 + length * 7) as u8).collect();
            for form in [Form::Pairs, Form::Ranges, Form::Entries] {
                assert!(line(form, &table, 3, 1 << 20) >= 0);
            }
        }
        assert_eq!(line(Form::Entries, &[0x80 | 13 << 3, 255, 255, 255, 255, 255, 255, 255], 1, 0), 0);
    }
}
