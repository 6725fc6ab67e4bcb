//! Names of values.

use std::fmt::Write;

use hetrace_ctf::class::Encoding;
use hetrace_model::{EnumGroup, Model};

/// The enumeration of that name.
pub(super) fn group<'m>(model: &'m Model, name: Option<&String>) -> Option<&'m EnumGroup> {
    let name = name?;
    model.enums.get(name)
}

/// A value by its name, a set as names with `|` between; a number where there
/// is no name.
pub(super) fn write_named(out: &mut String, group: &EnumGroup, value: i64) {
    if let Some((name, _)) = group.values.iter().find(|(_, v)| *v == value) {
        out.push_str(name);
        return;
    }
    if !group.bits {
        let _ = write!(out, "{value}");
        return;
    }
    let (mut rest, mut first) = (value as u64, true);
    for (name, bit) in &group.values {
        let bit = *bit as u64;
        if bit.is_power_of_two() && rest & bit != 0 {
            rest &= !bit;
            let bar = if std::mem::take(&mut first) { "" } else { "|" };
            let _ = write!(out, "{bar}{name}");
        }
    }
    if rest != 0 {
        let _ = write!(out, "{}{rest:#x}", if first { "" } else { "|" });
    } else if first {
        out.push('0');
    }
}

/// Appends a text in quotes, with what could upset a terminal escaped.
pub(super) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    escaped(out, text);
    out.push('"');
}

/// Appends a text that was found as bytes in quotes: what is not valid UTF-8 as `\xff`. Of other encodings it is not
/// known where the next character begins, so what is not valid is shown as bytes.
pub(super) fn write_encoded(out: &mut String, encoding: Encoding, bytes: &[u8]) {
    if let Some(text) = encoding.decode(bytes) {
        return quoted(out, &text);
    }
    if encoding.unit() > 1 {
        return write_bytes(out, bytes);
    }
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        escaped(out, chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
}

fn escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// How many bytes of a value without a type are shown.
const SHOWN_BYTES: usize = 64;

/// Appends bytes as `[0a 1b]`.
pub(super) fn write_bytes(out: &mut String, bytes: &[u8]) {
    out.push('[');
    for (i, byte) in bytes.iter().take(SHOWN_BYTES).enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('?');
        out.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    if let Some(more) = bytes.len().checked_sub(SHOWN_BYTES).filter(|n| *n > 0) {
        let _ = write!(out, " … {more} more");
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(group: &EnumGroup, value: i64) -> String {
        let mut out = String::new();
        write_named(&mut out, group, value);
        out
    }

    #[test]
    fn sets_are_shown_by_name() {
        let values = [("NONE", 0), ("A", 1), ("B", 2), ("ALL", 0xff)];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        let group = EnumGroup { name: "g".into(), bits: true, values };
        for (value, text) in [(0, "NONE"), (1, "A"), (3, "A|B"), (0xff, "ALL"), (5, "A|0x4"), (8, "0x8")] {
            assert_eq!(shown(&group, value), text);
        }
    }

    #[test]
    fn texts_are_shown_as_what_they_are_encoded_in() {
        let shown = |encoding: Encoding, bytes: &[u8]| {
            let mut out = String::new();
            write_encoded(&mut out, encoding, bytes);
            out
        };
        for encoding in [Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le] {
            assert_eq!(shown(encoding, &encoding.encode("aé😀\n")), "\"aé😀\\n\"");
        }
        assert_eq!(shown(Encoding::Utf16Le, &[0, 0xd8, b'a', 0]), "[00 d8 61 00]", "half a pair");
        assert_eq!(shown(Encoding::Utf8, b"a\xff\xc3b"), r#""a\xff\xc3b""#);
    }

    #[test]
    fn terminals_are_safe() {
        let mut out = String::new();
        quoted(&mut out, "a\"b\\c\n\x1b[0mé");
        assert_eq!(out, r#""a\"b\\c\n\u{1b}[0mé""#);
    }
}
