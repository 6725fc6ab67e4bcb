//! JSON, as far as metadata needs it: objects keep the order of their members,
//! and whole numbers all of their digits.

use std::fmt::{self, Write};

use super::JsonErrorKind as Kind;

/// What one level of a field class takes is four levels of JSON.
const MAX_DEPTH: u32 = 4 * crate::metadata::MAX_DEPTH + 8;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i128),
    /// A number with a fraction, or too large: nothing in metadata needs one.
    Real,
    Str(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns the last member of that name.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Str(text.into())
    }
}

macro_rules! from_int {
    ($($int:ty),*) => {$(
        impl From<$int> for Json {
            fn from(value: $int) -> Self {
                Json::Int(value.into())
            }
        }
    )*};
}
from_int!(u8, u32, u64, i64, i128);

/// Reads one value and the blanks around it.
pub(super) fn parse(text: &str) -> Result<Json, Kind> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_blank();
    if parser.at == text.len() { Ok(value) } else { Err(parser.expected("the end")) }
}

struct Parser<'s> {
    text: &'s str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn expected(&self, expected: &'static str) -> Kind {
        Kind::Syntax { expected, offset: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes a character, and the blanks before it.
    fn eat(&mut self, byte: u8) -> bool {
        self.skip_blank();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, Kind> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self) -> Result<Json, Kind> {
        self.skip_blank();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Json::Str),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.expected("a value")),
        }
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Result<Json, Kind>) -> Result<Json, Kind> {
        if self.depth >= MAX_DEPTH {
            return Err(Kind::TooDeep(MAX_DEPTH));
        }
        self.depth += 1;
        self.at += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn object(&mut self) -> Result<Json, Kind> {
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_blank();
            let name = self.string()?;
            if !self.eat(b':') {
                return Err(self.expected("a colon"));
            }
            members.push((name, self.value()?));
            if self.eat(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.expected("a comma or }"));
            }
        }
    }

    fn array(&mut self) -> Result<Json, Kind> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.eat(b']') {
                return Ok(Json::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("a comma or ]"));
            }
        }
    }

    fn number(&mut self) -> Result<Json, Kind> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let word = &rest[..end.unwrap_or(rest.len())];
        let digits = word.strip_prefix('-').unwrap_or(word);
        let whole = digits.bytes().all(|b| b.is_ascii_digit());
        let value = match word.parse() {
            // Numbers beyond 64 bits fit nowhere; up to there sums do not overflow.
            Ok(value) if whole && (i64::MIN.into()..=u64::MAX.into()).contains(&value) => Json::Int(value),
            _ if word.parse::<f64>().is_ok() => Json::Real,
            _ => return Err(self.expected("a number")),
        };
        self.at += word.len();
        Ok(value)
    }

    fn string(&mut self) -> Result<String, Kind> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.find(|c: char| matches!(c, '"' | '\\') || c < ' ') else {
                return Err(self.expected("the end of a string"));
            };
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.expected("no control character")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Kind> {
        self.at += 1;
        let escape = self.peek().ok_or_else(|| self.expected("an escape sequence"))?;
        let plain = match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                let low = match unit {
                    0xD800..=0xDBFF if self.text[self.at..].starts_with("\\u") => {
                        self.at += 1;
                        Some(self.unit()?)
                    }
                    _ => None,
                };
                let mut decoded = char::decode_utf16([unit].into_iter().chain(low));
                // A half of a pair is no character.
                return match (decoded.next(), decoded.next()) {
                    (Some(Ok(c)), None) => Ok(c),
                    _ => Err(self.expected("a pair of surrogates")),
                };
            }
            _ => return Err(self.expected("an escape sequence")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Returns the four digits behind `\u`.
    fn unit(&mut self) -> Result<u16, Kind> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|d| u16::from_str_radix(d, 16).ok());
        let unit = unit.ok_or_else(|| self.expected("four digits"))?;
        self.at += 5;
        Ok(unit)
    }
}

/// The text of a value, on one line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Only what was read can be a `Real`, and only errors print that.
            Json::Null | Json::Real => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Int(value) => write!(f, "{value}"),
            Json::Str(text) => quoted(f, text),
            Json::Array(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    quoted(f, name)?;
                    write!(f, ": {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let text = r#"{"a": [1, -2, 18446744073709551615, true, null, {}], "b": "\"\\\n\u0001é😀", "a": []}"#;
        let value = parse(text).unwrap();
        assert_eq!(value.to_string(), text);
        assert_eq!(parse(&value.to_string()).unwrap(), value);
        assert_eq!(parse(r#""\ud83d\ude00\/""#).unwrap(), Json::Str("😀/".into()));
        assert_eq!(parse(" [ 1.5 , 1e3 ] ").unwrap(), Json::Array(vec![Json::Real, Json::Real]));
        assert_eq!(value.get("a"), Some(&Json::Array(Vec::new())), "the last one counts");
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "tru",
            "1 2",
            "\"a",
            "\"\\x\"",
            "\"\\ud800\"",
            "--1",
            "\"\n\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), Err(Kind::TooDeep(MAX_DEPTH)));
    }
}
