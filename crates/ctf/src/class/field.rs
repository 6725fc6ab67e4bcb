//! Field classes: how a value is laid out in bits.

use std::sync::Arc;

use super::{Encoding, FieldPath, Roles};

/// The order of the bytes of a number, and of the bits of a bit field.
///
/// Little: the first bits of the stream are the least significant ones, and a
/// byte is filled from its least significant bit. Big: the reverse of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// The base in which people want to see a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// 2
    Binary,
    /// 8
    Octal,
    /// 10
    #[default]
    Decimal,
    /// 16
    Hexadecimal,
}

/// What the bits of an integer mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntegerForm {
    /// A number.
    #[default]
    Number,
    /// False if no bit is set. CTF 2 only, as are the following.
    Boolean,
    /// Bits, for display in hexadecimal.
    BitArray,
    /// Flags: the mappings of the [`EnumClass`] around name bits, not values.
    BitMap,
}

/// How a field is laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldClass {
    /// An integer of 1 to 64 bits.
    Integer(IntegerClass),
    /// A binary32 or binary64 number.
    Float(FloatClass),
    /// An integer with names for its values.
    Enum(EnumClass),
    /// A NUL-terminated string.
    String(StringClass),
    /// Named fields one after the other.
    Struct(StructClass),
    /// A number of elements that the metadata gives.
    Array(ArrayClass),
    /// A number of elements that an earlier field gives.
    Sequence(SequenceClass),
    /// One of several fields, chosen by an earlier field.
    Variant(VariantClass),
    /// A field that is there or not, as an earlier field says. CTF 2 only.
    Optional(OptionalClass),
    /// Bytes that are no text. CTF 2 only.
    Blob(BlobClass),
}

impl FieldClass {
    /// Returns the alignment in bits; a power of two in any class made by the parser.
    pub fn align(&self) -> u32 {
        match self {
            FieldClass::Integer(c) => c.align,
            FieldClass::Float(c) => c.align,
            FieldClass::Enum(c) => c.container.align,
            FieldClass::String(_) | FieldClass::Blob(_) => 8,
            FieldClass::Struct(c) => c.align(),
            FieldClass::Array(c) => c.element.align().max(c.min_align),
            FieldClass::Sequence(c) => c.element.align().max(c.min_align),
            // Alignment is the chosen option's own affair.
            FieldClass::Variant(_) | FieldClass::Optional(_) => 1,
        }
    }

    /// Returns whether an array of this is text: bytes with an encoding.
    pub fn is_character(&self) -> bool {
        self.character().is_some()
    }

    /// Returns what this is encoded in, if it is a text.
    pub fn encoding(&self) -> Option<Encoding> {
        match self {
            FieldClass::String(c) => Some(c.encoding),
            FieldClass::Array(c) => c.element.character(),
            FieldClass::Sequence(c) => c.element.character(),
            _ => None,
        }
    }

    /// Returns what an array of this is encoded in, if it is text.
    pub fn character(&self) -> Option<Encoding> {
        match self {
            FieldClass::Integer(i) if i.size == 8 && i.align == 8 && i.encoding != Encoding::None => {
                Some(i.encoding)
            }
            _ => None,
        }
    }
}

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerClass {
    /// Bits, 1 to 64.
    pub size: u32,
    /// Alignment in bits, counted from the start of the packet.
    pub align: u32,
    /// Two's complement?
    pub signed: bool,
    /// For display.
    pub base: Base,
    /// Order of bytes and bits.
    pub byte_order: ByteOrder,
    /// Whether this is a character.
    pub encoding: Encoding,
    /// The name of the clock whose (low) bits this is.
    pub clock: Option<String>,
    /// Whether it is in LEB128, seven bits a byte, instead of `size` bits; these
    /// are then 64 and the alignment is 8. CTF 2 only, as are the following.
    pub variable: bool,
    /// Whether its bits stand in the other order than `byte_order` has them.
    pub reversed: bool,
    /// What its bits mean.
    pub form: IntegerForm,
    /// What it says to the reader. In CTF 1.8 names do, and this is empty.
    pub roles: Roles,
}

impl IntegerClass {
    /// Returns a little-endian integer; aligned to bytes if it is made of whole ones.
    pub fn new(size: u32, signed: bool) -> Self {
        Self {
            size,
            align: if size.is_multiple_of(8) { 8 } else { 1 },
            signed,
            base: Base::Decimal,
            byte_order: ByteOrder::Little,
            encoding: Encoding::None,
            clock: None,
            variable: false,
            reversed: false,
            form: IntegerForm::Number,
            roles: Roles::default(),
        }
    }

    /// One in LEB128, of up to 64 bits.
    pub fn leb128(signed: bool) -> Self {
        Self { variable: true, ..Self::new(64, signed) }
    }

    /// Returns an unsigned one.
    pub fn unsigned(size: u32) -> Self {
        Self::new(size, false)
    }

    /// Returns a signed one.
    pub fn signed(size: u32) -> Self {
        Self::new(size, true)
    }

    /// The same with another alignment in bits.
    pub fn align(mut self, align: u32) -> Self {
        self.align = align;
        self
    }

    /// The same for display in base 16.
    pub fn hex(mut self) -> Self {
        self.base = Base::Hexadecimal;
        self
    }

    /// The same, mapped to a clock.
    pub fn clock(mut self, name: impl Into<String>) -> Self {
        self.clock = Some(name.into());
        self
    }

    /// The same in another byte order.
    pub fn order(mut self, byte_order: ByteOrder) -> Self {
        self.byte_order = byte_order;
        self
    }

    /// Returns a byte of UTF-8: an array of these is a text.
    pub fn character() -> Self {
        Self { encoding: Encoding::Utf8, ..Self::new(8, false) }
    }
}

/// A floating-point number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatClass {
    /// Bits of the exponent: 8 or 11.
    pub exp_dig: u32,
    /// Bits of the mantissa with the implied one: 24 or 53.
    pub mant_dig: u32,
    /// Alignment in bits.
    pub align: u32,
    /// Order of bytes.
    pub byte_order: ByteOrder,
    /// Whether its bits stand in the other order than `byte_order` has them.
    pub reversed: bool,
}

impl FloatClass {
    /// Returns a little-endian binary32 on a byte boundary.
    pub fn single() -> Self {
        Self { exp_dig: 8, mant_dig: 24, align: 8, byte_order: ByteOrder::Little, reversed: false }
    }

    /// Returns a little-endian binary64 on a byte boundary.
    pub fn double() -> Self {
        Self { exp_dig: 11, mant_dig: 53, align: 8, byte_order: ByteOrder::Little, reversed: false }
    }

    /// Bits in all.
    pub fn size(&self) -> u32 {
        self.exp_dig.saturating_add(self.mant_dig)
    }
}

/// An integer with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumClass {
    /// The integer behind it.
    pub container: IntegerClass,
    /// The names, in the order written. A label with several ranges is here several times.
    /// Shared by all uses of an enumeration: a trace has few and uses them often.
    pub mappings: Arc<[EnumMapping]>,
}

impl EnumClass {
    /// Returns the first label whose range holds the value; none for flags, of which
    /// one would not say all.
    pub fn label(&self, value: i128) -> Option<&str> {
        if self.container.form == IntegerForm::BitMap {
            return None;
        }
        self.mappings.iter().find(|m| m.start <= value && value <= m.end).map(|m| m.label.as_str())
    }

    /// Returns all labels of a value: those whose range holds it, or, for flags, those
    /// of whose bits one is set. A label with several ranges comes once.
    pub fn labels(&self, value: i128) -> impl Iterator<Item = &str> {
        let flags = self.container.form == IntegerForm::BitMap;
        let holds = move |m: &EnumMapping| match flags {
            true => (m.start.max(0)..=m.end.min(63)).any(|bit| value >> bit & 1 == 1),
            false => m.start <= value && value <= m.end,
        };
        let hits = self.mappings.iter().enumerate().filter(move |(_, m)| holds(m));
        let first = move |index: usize, label: &str| {
            !self.mappings[..index].iter().any(|m| m.label == label && holds(m))
        };
        hits.filter(move |(index, m)| first(*index, &m.label)).map(|(_, m)| m.label.as_str())
    }
}

/// One name for a range of values. `i128` holds what `u64` and `i64` do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumMapping {
    /// The name.
    pub label: String,
    /// First value.
    pub start: i128,
    /// Last value, included.
    pub end: i128,
}

/// A NUL-terminated string, on a byte boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringClass {
    /// What it is encoded in.
    pub encoding: Encoding,
}

/// Named fields.
#[derive(Clone, Debug, PartialEq)]
pub struct StructClass {
    /// The least alignment, as `align(n)` says; 1 without it.
    pub min_align: u32,
    /// The fields, in order.
    pub fields: Vec<Field>,
}

impl Default for StructClass {
    fn default() -> Self {
        Self { min_align: 1, fields: Vec::new() }
    }
}

impl StructClass {
    /// Returns the alignment in bits: the greatest of the fields' and the stated one.
    pub fn align(&self) -> u32 {
        self.fields.iter().map(|f| f.class.align()).fold(self.min_align, u32::max)
    }

    /// The same with one more field.
    pub fn field(mut self, name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        self.fields.push(Field { name: name.into(), class: class.into() });
        self
    }

    /// Returns the position of a field.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }
}

/// A field of a structure, or an option of a variant.
///
/// Names of fields are what readers show: without the one `_` that TSDL puts
/// before names that would not be identifiers. Names of variant options are
/// kept as written, because the labels of the tag must equal them.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The layout.
    pub class: FieldClass,
}

/// A fixed number of elements.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayClass {
    /// How many.
    pub len: u64,
    /// Of what.
    pub element: Box<FieldClass>,
    /// The least alignment of the whole; 1 in CTF 1.8.
    pub min_align: u32,
}

/// As many elements as an earlier field says.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceClass {
    /// The field with the number: an unsigned integer.
    pub length: FieldPath,
    /// Of what.
    pub element: Box<FieldClass>,
    /// The least alignment of the whole; 1 in CTF 1.8.
    pub min_align: u32,
}

/// One of several fields.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantClass {
    /// The enumeration whose label is the name of the option; in CTF 2 any integer.
    pub tag: FieldPath,
    /// The options.
    pub options: Vec<Field>,
    /// Which values of the tag choose which option; none in CTF 1.8, where labels do.
    pub ranges: Option<Vec<OptionRange>>,
}

/// Values of a tag that choose an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRange {
    /// First value.
    pub start: i128,
    /// Last value, included.
    pub end: i128,
    /// Position of the option.
    pub option: usize,
}

/// A field that is there or not.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalClass {
    /// The field that says so: a boolean or an integer.
    pub selector: FieldPath,
    /// First and last values with which it is there; none for a boolean.
    pub ranges: Option<Vec<(i128, i128)>>,
    /// The field.
    pub class: Box<FieldClass>,
}

/// Bytes, on a byte boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobClass {
    /// How many.
    pub length: BlobLength,
    /// Their IANA media type.
    pub media_type: String,
    /// What they say to the reader: the UUID of the metadata stream, or nothing.
    pub roles: Roles,
}

/// How long a BLOB is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobLength {
    /// So many bytes.
    Static(u64),
    /// As many bytes as an earlier field, an unsigned integer, says.
    Dynamic(FieldPath),
}

impl BlobClass {
    /// The media type of bytes of which nothing is known.
    pub const OCTETS: &str = "application/octet-stream";

    /// Bytes of no known type.
    pub fn new(length: BlobLength) -> Self {
        Self { length, media_type: Self::OCTETS.into(), roles: Roles::default() }
    }
}

impl FieldClass {
    /// Returns an array of a fixed length.
    pub fn array(len: u64, element: impl Into<FieldClass>) -> Self {
        FieldClass::Array(ArrayClass { len, element: Box::new(element.into()), min_align: 1 })
    }

    /// Returns a sequence whose length is in an earlier field.
    pub fn sequence(length: FieldPath, element: impl Into<FieldClass>) -> Self {
        FieldClass::Sequence(SequenceClass { length, element: Box::new(element.into()), min_align: 1 })
    }

    /// Returns a NUL-terminated UTF-8 string.
    pub fn string() -> Self {
        FieldClass::String(StringClass { encoding: Encoding::Utf8 })
    }
}

macro_rules! from_class {
    ($($class:ident => $variant:ident),*) => {$(
        impl From<$class> for FieldClass {
            fn from(class: $class) -> Self {
                FieldClass::$variant(class)
            }
        }
    )*};
}
from_class!(IntegerClass => Integer, FloatClass => Float, EnumClass => Enum, StringClass => String,
    StructClass => Struct, ArrayClass => Array, SequenceClass => Sequence, VariantClass => Variant,
    OptionalClass => Optional, BlobClass => Blob);
