//! Arguments as JSON objects.

use std::fmt::Write;

use hetrace_trace::args::{Args, Role, Typed};

/// Appends what was passed or came back, without the result; nothing if there
/// is nothing.
pub(super) fn write_arguments(out: &mut String, args: &Args<'_>) {
    let mut first = true;
    for piece in args.pieces.iter().filter(|piece| piece.role != Role::Return) {
        out.push(if std::mem::take(&mut first) { '{' } else { ',' });
        write_text(out, piece.name);
        out.push(':');
        let _ = match piece.typed {
            Some(Typed::Unsigned(v)) => write!(out, "{v}"),
            Some(Typed::Signed(v)) => write!(out, "{v}"),
            Some(Typed::Pointer(v)) => write!(out, "\"{v:#x}\""),
            // There is no other way to write what is no number.
            Some(Typed::Float(v)) if v.is_finite() => write!(out, "{v:?}"),
            Some(Typed::Float(v)) => write!(out, "\"{v}\""),
            None => {
                write_shown(out, args.of(piece));
                Ok(())
            }
        };
    }
    if !first {
        out.push('}');
    }
}

/// What a call returned, as a text without quotes.
pub(super) fn result<'a>(args: &'a Args<'_>) -> Option<&'a str> {
    let text = args.find(Role::Return)?;
    Some(text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text))
}

/// A value as it is shown; a text in quotes as that text.
fn write_shown(out: &mut String, shown: &str) {
    match shown.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(quoted) => write_quoted(out, quoted),
        None => write_text(out, shown),
    }
}

/// A text with the escapes that `print` writes.
fn write_quoted(out: &mut String, quoted: &str) {
    out.push('"');
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            write_char(out, c);
            continue;
        }
        match chars.next() {
            Some('n') => write_char(out, '\n'),
            Some('t') => write_char(out, '\t'),
            Some('u') => {
                let digits: String =
                    chars.by_ref().skip_while(|c| *c == '{').take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                write_char(out, code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(c) => write_char(out, c),
            None => write_char(out, '\\'),
        }
    }
    out.push('"');
}

/// Appends a text as JSON has it.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    if text.bytes().any(|b| b < 0x20 || b == b'"' || b == b'\\') {
        text.chars().for_each(|c| write_char(out, c));
    } else {
        out.push_str(text);
    }
    out.push('"');
}

fn write_char(out: &mut String, c: char) {
    match c {
        '"' | '\\' => out.extend(['\\', c]),
        '\n' => out.push_str("\\n"),
        c if u32::from(c) < 0x20 => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_from_json() {
        for text in ["", "a b", "é\u{1b}[0m", "\"\\\"\\\\\"", "line\n\ttab", "{a=1, b=\"x\"}"] {
            let mut out = String::new();
            write_text(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn quotes_and_escapes_of_print_are_undone() {
        for (shown, meant) in [
            (r#""a\"b\\c\n\u{1b}[0mé""#, "a\"b\\c\n\u{1b}[0mé"),
            ("\"\"", ""),
            ("\"", "\""),
            ("CL_TRUE", "CL_TRUE"),
            (r#"{name="x"}"#, r#"{name="x"}"#),
            (r#""cut \u{zz} and \""#, "cut \u{fffd} and \\"),
            (r#""\""#, "\\"),
        ] {
            let mut out = String::new();
            write_shown(&mut out, shown);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), meant, "{shown}");
        }
    }
}
