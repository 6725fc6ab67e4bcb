//! A source cut into tokens by where they lie. What is between them is blank, or a comment.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword.
    Word,
    /// A number, a string, a character.
    Literal,
    /// One character of punctuation.
    Mark(u8),
    /// A whole line for the preprocessor, with those that continue it.
    Directive,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes in the source.
    pub at: Range<usize>,
}

impl Token {
    /// Returns its text.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        source.get(self.at.clone()).unwrap_or_default()
    }

    /// Returns whether it is this mark.
    pub fn is(&self, mark: u8) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Cuts a source.
pub fn tokens(source: &str) -> Vec<Token> {
    let bytes = source.as_bytes();
    let (mut found, mut at, mut fresh) = (Vec::new(), 0, true);
    while let Some(byte) = bytes.get(at).copied() {
        let begin = at;
        let kind = match byte {
            b'\n' => {
                (fresh, at) = (true, at + 1);
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'\\' if continues(bytes, at) > 0 => {
                at += continues(bytes, at);
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = comment(bytes, at);
                continue;
            }
            b'#' if fresh => {
                at = directive(bytes, at);
                Kind::Directive
            }
            b'"' | b'\'' => {
                at = quoted(bytes, at);
                Kind::Literal
            }
            b'0'..=b'9' => {
                at = number(bytes, at);
                Kind::Literal
            }
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                at = number(bytes, at);
                Kind::Literal
            }
            _ if is_word(byte) => {
                while bytes.get(at).copied().is_some_and(is_word) {
                    at += 1;
                }
                Kind::Word
            }
            mark => {
                at += 1;
                Kind::Mark(mark)
            }
        };
        fresh = false;
        found.push(Token { kind, at: begin..at });
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Returns the bytes of a backslash and the end of the line that it continues; 0 for none.
fn continues(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..) {
        Some([b'\\', b'\n', ..]) => 2,
        Some([b'\\', b'\r', b'\n', ..]) => 3,
        _ => 0,
    }
}

/// Returns where a comment ends: of one of a line before the end of that.
fn comment(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 2;
    if bytes.get(begin + 1) == Some(&b'*') {
        while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
            at += 1;
        }
        return (at + 2).min(bytes.len());
    }
    while bytes.get(at).is_some_and(|byte| *byte != b'\n') {
        at += continues(bytes, at).max(1);
    }
    at.min(bytes.len())
}

/// Returns where a line for the preprocessor ends.
fn directive(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at).copied() {
        at = match byte {
            b'\n' => break,
            b'\\' => at + continues(bytes, at).max(1),
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => comment(bytes, at),
            _ => at + 1,
        };
    }
    at.min(bytes.len())
}

fn quoted(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at).copied() {
        at = match byte {
            b'\\' => at + continues(bytes, at).max(2),
            b'\n' => break,
            byte if byte == bytes[begin] => return at + 1,
            _ => at + 1,
        };
    }
    at.min(bytes.len())
}

fn number(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at).copied() {
        let sign = matches!(byte, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P');
        // `0xE+1` is three tokens in C, too, but for this one: nothing here depends on where numbers end.
        if !(is_word(byte) || byte == b'.' || sign) {
            break;
        }
        at += 1;
    }
    at
}

/// Returns a directive's name, and what is behind it.
pub fn command(directive: &str) -> (&str, &str) {
    let rest = directive.strip_prefix('#').unwrap_or(directive).trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest.split_at(end)
}

/// The lines of a source.
#[derive(Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Finds them.
    pub fn of(source: &str) -> Self {
        Self(source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Returns the number of the line that a byte is in, from 1.
    pub fn line(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|end| *end < at) + 1).unwrap_or(u32::MAX)
    }

    /// Returns where the next line begins.
    pub fn next(&self, at: usize) -> Option<usize> {
        self.0.get(self.0.partition_point(|end| *end < at)).map(|end| end + 1)
    }

    /// Returns where the line begins that a byte is in.
    pub fn begin(&self, at: usize) -> usize {
        let before = self.0.partition_point(|end| *end < at);
        before.checked_sub(1).and_then(|line| self.0.get(line)).map_or(0, |end| end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_where_they_are() {
        let source = "#define A(x) \\\n  if (x) /* a\n */ y\nint a1 = 0x1p-3f, b /* # */; // c \\\n d\n x.s0 = '\\'' + \"/*\\\n\"; # no\n.5e+3";
        let texts: Vec<&str> = tokens(source).iter().map(|token| token.text(source)).collect();
        let expected = [
            "#define A(x) \\\n  if (x) /* a\n */ y",
            "int",
            "a1",
            "=",
            "0x1p-3f",
            ",",
            "b",
            ";",
            "x",
            ".",
            "s0",
            "=",
            "'\\''",
            "+",
            "\"/*\\\n\"",
            ";",
            "#",
            "no",
            ".5e+3",
        ];
        assert_eq!(texts, expected);
        assert_eq!(tokens("/* never ends").len() + tokens("// x\\").len() + tokens("").len(), 0);
        assert_eq!(tokens("\"open\nx").len(), 2);
    }

    #[test]
    fn lines_are_counted_from_one() {
        let lines = Lines::of("ab\nc\n\nd");
        assert_eq!([0, 2, 3, 5, 6].map(|at| lines.line(at)), [1, 1, 2, 3, 4]);
        assert_eq!([0, 2, 3, 6].map(|at| lines.next(at)), [Some(3), Some(3), Some(5), None]);
        assert_eq!([0, 2, 3, 6].map(|at| lines.begin(at)), [0, 0, 3, 6]);
    }
}
