//! Values of any class to bits: the mirror of `read/visit.rs`.

use std::borrow::Cow;

use thiserror::Error;

use crate::bits::{align_up, mask, put, reverse, sign_extend};
use crate::class::{
    BlobLength, ByteOrder, Encoding, Field, FieldClass, FloatClass, IntegerClass, StructClass,
};
use crate::value::Value;

/// A value that its class cannot hold.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A value of another kind than the class.
    #[error("{value:?} does not fit the class of field {field:?}")]
    WrongKind {
        /// The field.
        field: String,
        /// The value.
        value: Value,
    },
    /// A number outside of what the integer can hold.
    #[error("{value} does not fit in the {bits} bits of field {field:?}")]
    Range {
        /// The field.
        field: String,
        /// The number.
        value: i128,
        /// The integer's size.
        bits: u32,
    },
    /// Another number of elements or fields than the class has.
    #[error("field {field:?} has {found} parts instead of {expected}")]
    Length {
        /// The field.
        field: String,
        /// What the class has.
        expected: u64,
        /// What the value has.
        found: u64,
    },
    /// An option that the variant does not have.
    #[error("field {field:?} has no option {option:?}")]
    NoOption {
        /// The field.
        field: String,
        /// The option.
        option: String,
    },
}

/// Appends values to bytes. Lengths of sequences and tags of variants are
/// fields of their own and have to be in the value, as the reader gives them.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    pos: u64,
}

impl Encoder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bits so far.
    pub fn position(&self) -> u64 {
        self.pos
    }

    /// Returns the bytes; unused bits of the last one are 0.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn align(&mut self, align: u32) {
        self.pos = align_up(self.pos, align).unwrap_or(self.pos);
        self.grow();
    }

    fn grow(&mut self) {
        self.bytes.resize(self.pos.div_ceil(8) as usize, 0);
    }

    fn bits(&mut self, value: u64, bits: u32, order: ByteOrder) {
        let at = self.pos;
        self.pos += u64::from(bits);
        self.grow();
        put(&mut self.bytes, at, bits, order, value);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.align(8);
        self.bytes.extend_from_slice(bytes);
        self.pos += bytes.len() as u64 * 8;
    }

    /// Appends a structure.
    pub fn structure(&mut self, class: &StructClass, value: &Value) -> Result<(), EncodeError> {
        self.fields("", class, value)
    }

    fn fields(&mut self, name: &str, class: &StructClass, value: &Value) -> Result<(), EncodeError> {
        let Value::Struct(values) = value else {
            return Err(wrong(name, value));
        };
        let (expected, found) = (class.fields.len() as u64, values.len() as u64);
        if expected != found {
            return Err(EncodeError::Length { field: name.into(), expected, found });
        }
        self.align(class.align());
        for (Field { name, class }, (_, value)) in class.fields.iter().zip(values) {
            self.field(name, class, value)?;
        }
        Ok(())
    }

    /// Appends a field; `name` is for errors.
    pub fn field(&mut self, name: &str, class: &FieldClass, value: &Value) -> Result<(), EncodeError> {
        match (class, value) {
            (FieldClass::Integer(c), _) => self.integer(name, c, value),
            (FieldClass::Enum(c), _) => self.integer(name, &c.container, value),
            (FieldClass::Float(c), Value::Float(v)) => {
                self.float(c, *v);
                Ok(())
            }
            (FieldClass::String(c), _) => self.string(name, c.encoding, value),
            (FieldClass::Struct(c), _) => self.fields(name, c, value),
            (FieldClass::Array(c), _) if let Some(encoding) = c.element.character() => {
                let text = text(name, encoding, value)?;
                let found = text.len() as u64;
                if found > c.len {
                    return Err(EncodeError::Length { field: name.into(), expected: c.len, found });
                }
                self.align(c.min_align);
                self.raw(&text);
                self.pos += (c.len - found) * 8;
                self.grow();
                Ok(())
            }
            (FieldClass::Sequence(c), _) if let Some(encoding) = c.element.character() => {
                self.align(c.min_align);
                self.raw(&text(name, encoding, value)?);
                Ok(())
            }
            (FieldClass::Blob(c), Value::Bytes(bytes)) => {
                let found = bytes.len() as u64;
                if let BlobLength::Static(expected) = c.length
                    && expected != found
                {
                    return Err(EncodeError::Length { field: name.into(), expected, found });
                }
                self.raw(bytes);
                Ok(())
            }
            (FieldClass::Optional(_), Value::Optional(None)) => Ok(()),
            (FieldClass::Optional(c), Value::Optional(Some(value))) => self.field(name, &c.class, value),
            (FieldClass::Array(c), Value::Array(items)) => {
                let found = items.len() as u64;
                if found != c.len {
                    return Err(EncodeError::Length { field: name.into(), expected: c.len, found });
                }
                self.align(c.min_align);
                self.elements(name, &c.element, items)
            }
            (FieldClass::Sequence(c), Value::Array(items)) => {
                self.align(c.min_align);
                self.elements(name, &c.element, items)
            }
            (FieldClass::Variant(c), Value::Variant { option, value }) => {
                match c.options.iter().find(|o| &o.name == option) {
                    Some(chosen) => self.field(name, &chosen.class, value),
                    None => Err(EncodeError::NoOption { field: name.into(), option: option.clone() }),
                }
            }
            _ => Err(wrong(name, value)),
        }
    }

    fn float(&mut self, class: &FloatClass, value: f64) {
        self.align(class.align);
        let (raw, bits) = match class.size() {
            32 => (u64::from((value as f32).to_bits()), 32),
            _ => (value.to_bits(), 64),
        };
        self.bits(turned(raw, bits, class.reversed), bits, class.byte_order);
    }

    fn string(&mut self, name: &str, encoding: Encoding, value: &Value) -> Result<(), EncodeError> {
        let (text, unit) = (text(name, encoding, value)?, encoding.unit());
        // A NUL inside would end it for the reader.
        let is_nul = |unit: &&[u8]| unit.iter().all(|&b| b == 0);
        let len = text.chunks(unit).position(|u| is_nul(&u)).map_or(text.len(), |n| n * unit);
        self.raw(&text[..len]);
        self.raw(&[0; 4][..unit]);
        Ok(())
    }

    fn elements(&mut self, name: &str, class: &FieldClass, items: &[Value]) -> Result<(), EncodeError> {
        // An array is aligned even without an element.
        self.align(class.align());
        items.iter().try_for_each(|item| self.field(name, class, item))
    }

    fn integer(&mut self, name: &str, c: &IntegerClass, value: &Value) -> Result<(), EncodeError> {
        let number = match value {
            Value::Unsigned(v) => i128::from(*v),
            Value::Signed(v) => i128::from(*v),
            Value::Enum { value, .. } => *value,
            _ => return Err(wrong(name, value)),
        };
        let raw = number as u64 & mask(c.size);
        let back = if c.signed { i128::from(sign_extend(raw, c.size)) } else { i128::from(raw) };
        if back != number {
            return Err(EncodeError::Range { field: name.into(), value: number, bits: c.size });
        }
        self.align(c.align);
        match c.variable {
            true => self.leb128(raw, c.signed),
            false => self.bits(turned(raw, c.size, c.reversed), c.size, c.byte_order),
        }
        Ok(())
    }

    /// An integer in LEB128, in as few bytes as it takes.
    fn leb128(&mut self, mut raw: u64, signed: bool) {
        self.align(8);
        loop {
            let part = (raw & 0x7f) as u8;
            raw = if signed { (raw as i64 >> 7) as u64 } else { raw >> 7 };
            // The last byte shows the sign in its topmost bit but one.
            let last = match signed {
                true => raw == if part & 0x40 == 0 { 0 } else { u64::MAX },
                false => raw == 0,
            };
            self.raw(&[if last { part } else { part | 0x80 }]);
            if last {
                return;
            }
        }
    }
}

/// Returns a number as its bits stand.
fn turned(raw: u64, bits: u32, reversed: bool) -> u64 {
    if reversed { reverse(raw, bits) } else { raw }
}

fn text<'v>(name: &str, encoding: Encoding, value: &'v Value) -> Result<Cow<'v, [u8]>, EncodeError> {
    match value {
        Value::Str(text) if encoding.unit() == 1 => Ok(Cow::Borrowed(text.as_bytes())),
        Value::Str(text) => Ok(Cow::Owned(encoding.encode(text))),
        Value::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        _ => Err(wrong(name, value)),
    }
}

fn wrong(field: &str, value: &Value) -> EncodeError {
    EncodeError::WrongKind { field: field.into(), value: value.clone() }
}
