//! Values of attributes: `size = 8;`, `byte_order = le;` and their like.

use super::ast::{Assign, Literal};
use super::{ParseError, ParseErrorKind as Kind};
use crate::class::{Base, ByteOrder, Encoding};

/// Alignments above this are mistakes, not layouts.
const MAX_ALIGN: u32 = 1 << 20;

type Result<T> = std::result::Result<T, ParseError>;

pub(super) fn bad(a: &Assign) -> ParseError {
    let kind = Kind::BadValue { attribute: a.name().into_owned(), value: a.value.to_string() };
    ParseError::new(a.line, kind)
}

pub(super) fn int(a: &Assign) -> Result<i128> {
    match a.value {
        Literal::Int(value) => Ok(value),
        _ => Err(bad(a)),
    }
}

pub(super) fn ranged(a: &Assign, min: u32, max: u32) -> Result<u32> {
    let value = u32::try_from(int(a)?).map_err(|_| bad(a))?;
    if (min..=max).contains(&value) { Ok(value) } else { Err(bad(a)) }
}

pub(super) fn alignment(line: u32, value: i128) -> Result<u32> {
    match u32::try_from(value) {
        Ok(align) if align.is_power_of_two() && align <= MAX_ALIGN => Ok(align),
        _ => {
            let kind = Kind::BadValue { attribute: "align".into(), value: value.to_string() };
            Err(ParseError::new(line, kind))
        }
    }
}

/// Returns the word or text an attribute is set to.
pub(super) fn word(a: &Assign) -> Result<&str> {
    match &a.value {
        Literal::Str(text) => Ok(text),
        Literal::Path(path) if path.len() == 1 => Ok(&path[0]),
        _ => Err(bad(a)),
    }
}

pub(super) fn boolean(a: &Assign) -> Result<bool> {
    match &a.value {
        Literal::Int(value) => Ok(*value != 0),
        _ => match word(a)?.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad(a)),
        },
    }
}

pub(super) fn byte_order(a: &Assign, native: ByteOrder) -> Result<ByteOrder> {
    match word(a)? {
        "le" => Ok(ByteOrder::Little),
        "be" | "network" => Ok(ByteOrder::Big),
        "native" => Ok(native),
        _ => Err(bad(a)),
    }
}

pub(super) fn encoding(a: &Assign) -> Result<Encoding> {
    match word(a)?.to_ascii_lowercase().as_str() {
        "none" => Ok(Encoding::None),
        "utf8" => Ok(Encoding::Utf8),
        "ascii" => Ok(Encoding::Ascii),
        _ => Err(bad(a)),
    }
}

pub(super) fn base(a: &Assign) -> Result<Base> {
    match &a.value {
        Literal::Int(2) => Ok(Base::Binary),
        Literal::Int(8) => Ok(Base::Octal),
        Literal::Int(10) => Ok(Base::Decimal),
        Literal::Int(16) => Ok(Base::Hexadecimal),
        _ => match word(a)? {
            "decimal" | "dec" | "d" | "i" | "u" => Ok(Base::Decimal),
            "hexadecimal" | "hex" | "x" | "X" | "p" => Ok(Base::Hexadecimal),
            "octal" | "oct" | "o" => Ok(Base::Octal),
            "binary" | "b" => Ok(Base::Binary),
            _ => Err(bad(a)),
        },
    }
}
