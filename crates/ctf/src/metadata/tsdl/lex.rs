//! Text to tokens.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{ParseError, ParseErrorKind};

/// A token and the line it is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'s> {
    pub line: u32,
    pub kind: Kind<'s>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'s> {
    Ident(&'s str),
    Str(Cow<'s, str>),
    Int(u64),
    /// One of `{ } [ ] < > ( ) ; : , = . * + -`, or `:=`, `...`, `->`.
    Punct(Punct),
    /// All between the braces of an integer and the last of them, by its number in [`Tokens::bodies`].
    Body(usize),
}

/// A text's tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens<'s> {
    pub list: Vec<Token<'s>>,
    /// What stands in the braces of integers, and the closing ones: most of a text, and few of them differ.
    pub bodies: Vec<&'s str>,
    known: HashMap<&'s str, usize>,
}

/// Punctuation as the bytes of one number: most tokens are some, and are compared with some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Punct(u32);

impl Punct {
    /// That of a text of one to three characters.
    #[inline]
    pub const fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut packed, mut at) = (0, 0);
        while at < bytes.len() {
            packed = packed << 8 | bytes[at] as u32;
            at += 1;
        }
        Self(packed)
    }

    /// Returns the one that a text begins with, and its length. Longer ones first.
    fn at_start(text: &[u8]) -> Option<(Self, usize)> {
        let long = match text {
            [b':', b'=', ..] => ":=",
            [b'.', b'.', b'.', ..] => "...",
            [b'-', b'>', ..] => "->",
            [
                one @ (b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b'(' | b')' | b';' | b':' | b',' | b'='
                | b'.' | b'*' | b'+' | b'-'),
                ..,
            ] => return Some((Self(u32::from(*one)), 1)),
            _ => return None,
        };
        Some((Self::of(long), long.len()))
    }
}

impl std::fmt::Display for Punct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0.to_be_bytes().into_iter().filter(|byte| *byte != 0);
        bytes.into_iter().try_for_each(|byte| write!(f, "{}", char::from(byte)))
    }
}

impl std::fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Ident(name) => write!(f, "`{name}`"),
            Kind::Str(text) => write!(f, "{text:?}"),
            Kind::Int(value) => write!(f, "{value}"),
            Kind::Punct(punct) => write!(f, "`{punct}`"),
            Kind::Body(_) => write!(f, "`{{`"),
        }
    }
}

/// Returns all tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Tokens<'_>, ParseError> {
    let mut tokens = Tokens { list: Vec::with_capacity(text.len() / 8), ..Tokens::default() };
    let mut lexer = Lexer { rest: text, line: 1 };
    while let Some(token) = lexer.next()? {
        let is_integer = matches!(token.kind, Kind::Ident("integer"));
        tokens.list.push(token);
        if let Some(body) = is_integer.then(|| lexer.body()).flatten() {
            let next = tokens.bodies.len();
            let number = *tokens.known.entry(body).or_insert(next);
            if number == next {
                tokens.bodies.push(body);
            }
            tokens.list.push(Token { line: lexer.line, kind: Kind::Body(number) });
        }
    }
    Ok(tokens)
}

/// Returns the tokens of a [`Kind::Body`] on a line.
pub(super) fn tokens_of_body(body: &str, line: u32) -> Result<Vec<Token<'_>>, ParseError> {
    let mut lexer = Lexer { rest: body, line };
    std::iter::from_fn(|| lexer.next().transpose()).collect()
}

/// No integer's attributes are longer, but those that somebody has made to be.
const LONGEST_BODY: usize = 256;

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
}

impl<'s> Lexer<'s> {
    /// Returns the next token.
    fn next(&mut self) -> Result<Option<Token<'s>>, ParseError> {
        self.skip_blank()?;
        let line = self.line;
        match self.token() {
            Ok(kind) => Ok(kind.map(|kind| Token { line, kind })),
            Err(kind) => Err(ParseError::new(line, kind)),
        }
    }

    /// Takes an integer's attributes in their braces, if they are as everybody writes them: on the same line, and without
    /// texts and comments in which a brace would be none. Returns what is behind the first brace.
    fn body(&mut self) -> Option<&'s str> {
        let inner = self.rest.trim_start_matches(' ').strip_prefix('{')?;
        let end = inner.bytes().take(LONGEST_BODY).position(|byte| b"}{\n\"'/\\".contains(&byte))?;
        if inner.as_bytes().get(end) != Some(&b'}') {
            return None;
        }
        let (body, rest) = inner.split_at(end + 1);
        self.rest = rest;
        Some(body)
    }

    /// Takes `len` bytes, which must end between characters.
    fn take(&mut self, len: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(len);
        self.line = self.line.saturating_add(taken.matches('\n').count() as u32);
        self.rest = rest;
        taken
    }

    /// Takes a token without ends of lines.
    fn take_plain(&mut self, len: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Takes what all metadata have between tokens. Returns whether nothing else can be blank.
    fn skip_plain_blank(&mut self) -> bool {
        let bytes = self.rest.as_bytes();
        let blank = bytes.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(bytes.len());
        self.take(blank);
        !matches!(self.rest.as_bytes().first(), Some(b'/' | b'\\' | 0x0b | 0x80..))
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            if self.skip_plain_blank() {
                return Ok(());
            }
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            // A line that goes on.
            if let Some(len) = continuation(self.rest) {
                self.take(len);
                continue;
            }
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest[2..].find("*/") else {
                    let kind = ParseErrorKind::Unterminated("comment");
                    return Err(ParseError::new(self.line, kind));
                };
                self.take(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Option<Kind<'s>>, ParseErrorKind> {
        let bytes = self.rest.as_bytes();
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        if word(&first) {
            let end = bytes.iter().position(|b| !word(b)).unwrap_or(bytes.len());
            let ident = self.take_plain(end);
            if first.is_ascii_digit() {
                return number(ident).map(|n| Some(Kind::Int(n)));
            }
            if ident == "L" && self.rest.starts_with(['"', '\'']) {
                return self.token();
            }
            return Ok(Some(Kind::Ident(ident)));
        }
        if first == b'"' {
            return self.quoted('"').map(|s| Some(Kind::Str(s)));
        }
        if first == b'\'' {
            let text = self.quoted('\'')?;
            let mut chars = text.chars();
            return match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(Some(Kind::Int(u64::from(u32::from(c))))),
                _ => Err(ParseErrorKind::Unterminated("character")),
            };
        }
        if let Some((punct, len)) = Punct::at_start(bytes) {
            self.take_plain(len);
            return Ok(Some(Kind::Punct(punct)));
        }
        Err(ParseErrorKind::Character(self.rest.chars().next().unwrap_or_default()))
    }

    fn quoted(&mut self, quote: char) -> Result<Cow<'s, str>, ParseErrorKind> {
        if let Some(end) = self.rest[1..].find([quote, '\\'])
            && self.rest[1 + end..].starts_with(quote)
        {
            let quoted = self.take(end + 2);
            return Ok(quoted[1..=end].into());
        }
        self.escaped(quote).map(Cow::Owned)
    }

    /// A text with escapes in it.
    fn escaped(&mut self, quote: char) -> Result<String, ParseErrorKind> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        loop {
            let Some((at, c)) = chars.next() else {
                return Err(ParseErrorKind::Unterminated("literal"));
            };
            if c == quote {
                self.take(at + 1);
                return Ok(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            if let Some(len) = continuation(&self.rest[at..]) {
                // The backslash itself has been taken.
                chars.nth(len - 2);
                continue;
            }
            let Some((at, escape)) = chars.next() else {
                return Err(ParseErrorKind::Unterminated("literal"));
            };
            let (plain, radix, start, most) = match escape {
                'n' => ('\n', 0, 0, 0),
                't' => ('\t', 0, 0, 0),
                'r' => ('\r', 0, 0, 0),
                'a' => ('\x07', 0, 0, 0),
                'b' => ('\x08', 0, 0, 0),
                'f' => ('\x0c', 0, 0, 0),
                'v' => ('\x0b', 0, 0, 0),
                '\\' | '\'' | '"' | '?' => (escape, 0, 0, 0),
                'x' => (' ', 16, at + 1, 2),
                'u' => (' ', 16, at + 1, 4),
                'U' => (' ', 16, at + 1, 8),
                '0'..='7' => (' ', 8, at, 3),
                _ => return Err(ParseErrorKind::Escape),
            };
            if radix == 0 {
                text.push(plain);
                continue;
            }
            let digits = self.rest[start..].chars().take(most);
            let len = digits.take_while(|c| c.is_digit(radix)).count();
            let code = u32::from_str_radix(&self.rest[start..start + len], radix);
            let code = code.ok().and_then(char::from_u32).ok_or(ParseErrorKind::Escape)?;
            text.push(code);
            // The octal form's first digit has been taken as the escape itself.
            for _ in 0..len - usize::from(radix == 8) {
                chars.next();
            }
        }
    }
}

/// Returns the length of a backslash with the end of its line.
fn continuation(text: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].into_iter().find(|c| text.starts_with(c)).map(str::len)
}

fn number(word: &str) -> Result<u64, ParseErrorKind> {
    let bad = || ParseErrorKind::Number(word.into());
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let parsed = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16)
    } else if let Some(bin) = digits.strip_prefix("0b").or(digits.strip_prefix("0B")) {
        u64::from_str_radix(bin, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(&digits[1..], 8)
    } else {
        digits.parse()
    };
    parsed.map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds() {
        let kinds: Vec<_> =
            tokens("a_1 /* x\n */ 0x10UL 010 7 'A' \"q\\\"\\x41\\102c\\n\" := ... -> . // end")
                .unwrap()
                .list
                .into_iter()
                .map(|t| (t.line, t.kind))
                .collect();
        assert_eq!(
            kinds,
            [
                (1, Kind::Ident("a_1")),
                (2, Kind::Int(16)),
                (2, Kind::Int(8)),
                (2, Kind::Int(7)),
                (2, Kind::Int(65)),
                (2, Kind::Str("q\"ABc\n".into())),
                (2, Kind::Punct(Punct::of(":="))),
                (2, Kind::Punct(Punct::of("..."))),
                (2, Kind::Punct(Punct::of("->"))),
                (2, Kind::Punct(Punct::of("."))),
            ]
        );
    }

    #[test]
    fn equal_integers_are_looked_into_once() {
        let text = "integer { size = 8; } a; integer { size = 8; } b;\ninteger {size=9;} integer\n{ size = 8; } \
                    integer { a = \"}\"; } integer";
        let found = tokens(text).unwrap();
        assert_eq!(found.bodies, [" size = 8; }", "size=9;}"]);
        let numbers: Vec<_> = found.list.iter().filter(|t| matches!(t.kind, Kind::Body(_))).collect();
        let body = |line, number| Token { line, kind: Kind::Body(number) };
        assert_eq!(numbers, [&body(1, 0), &body(1, 0), &body(2, 1)]);
        let inside = tokens_of_body(found.bodies[1], 2).unwrap();
        assert_eq!(inside.len(), 5);
        assert!(inside.iter().all(|token| token.line == 2));
        // Nobody looks for an end again and again where there is none.
        let endless = "integer {".repeat(100_000);
        assert!(tokens(&endless).unwrap().bodies.is_empty());
    }

    #[test]
    fn punctuation_is_what_it_was() {
        let all = [
            ":=", "...", "->", "{", "}", "[", "]", "<", ">", "(", ")", ";", ":", ",", "=", ".", "*", "+", "-",
        ];
        for text in all {
            assert_eq!(Punct::at_start(text.as_bytes()), Some((Punct::of(text), text.len())));
            assert_eq!(Punct::of(text).to_string(), text);
        }
        assert_eq!(Punct::at_start(b"&"), None);
    }

    #[test]
    fn blanks_and_lines_of_all_kinds_are_passed() {
        let text = "a\u{b}b\u{a0}c \u{2028}\r\n \"x\ny\" d // e\n/* \u{e9}\n */f";
        let found: Vec<_> =
            tokens(text).unwrap().list.into_iter().map(|t| (t.line, t.kind.to_string())).collect();
        let expected = [(1, "`a`"), (1, "`b`"), (1, "`c`"), (2, "\"x\\ny\""), (3, "`d`"), (5, "`f`")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn lines_go_on() {
        let kinds = tokens("a\\\n b \"c\\\nd\\\r\n\\u00e9\\U0001F600\"").unwrap().list;
        let kinds: Vec<_> = kinds.into_iter().map(|t| (t.line, t.kind)).collect();
        assert_eq!(kinds, [(1, Kind::Ident("a")), (2, Kind::Ident("b")), (2, Kind::Str("cdé😀".into()))]);
    }

    #[test]
    fn mistakes_have_lines() {
        assert_eq!(tokens("\n\n @").unwrap_err(), ParseError::new(3, ParseErrorKind::Character('@')));
        assert!(tokens("\"abc").is_err());
        assert!(tokens("/* abc").is_err());
        assert!(tokens("99999999999999999999999").is_err());
        assert!(tokens("\"\\xé\"").is_err());
    }
}
