//! Kinds of fields: the class of each, and its bytes both ways.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EnumClass, EnumMapping, FieldClass, FieldPath, IntegerClass, StructClass};

/// A type that is a field of an event.
pub(crate) trait Field: Sized {
    /// Returns how it is laid out.
    fn class() -> FieldClass;

    /// Appends its bytes.
    fn put(&self, body: &mut Vec<u8>);

    /// Returns the value of a field; what an older version did not write, or wrote otherwise, is 0 or
    /// empty.
    fn get(value: Option<Scalar<'_>>) -> Self;
}

/// A handle or an address: a number that people see to base 16.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u64);

impl Field for u32 {
    fn class() -> FieldClass {
        IntegerClass::unsigned(32).into()
    }

    fn put(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.to_le_bytes());
    }

    fn get(value: Option<Scalar<'_>>) -> Self {
        value.and_then(Scalar::as_u64).and_then(|v| v.try_into().ok()).unwrap_or(0)
    }
}

impl Field for i32 {
    fn class() -> FieldClass {
        IntegerClass::signed(32).into()
    }

    fn put(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.to_le_bytes());
    }

    fn get(value: Option<Scalar<'_>>) -> Self {
        value.and_then(Scalar::as_i64).and_then(|v| v.try_into().ok()).unwrap_or(0)
    }
}

impl Field for u64 {
    fn class() -> FieldClass {
        IntegerClass::unsigned(64).into()
    }

    fn put(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.to_le_bytes());
    }

    fn get(value: Option<Scalar<'_>>) -> Self {
        value.and_then(Scalar::as_u64).unwrap_or(0)
    }
}

impl Field for Handle {
    fn class() -> FieldClass {
        IntegerClass::unsigned(64).hex().into()
    }

    fn put(&self, body: &mut Vec<u8>) {
        self.0.put(body);
    }

    fn get(value: Option<Scalar<'_>>) -> Self {
        Handle(u64::get(value))
    }
}

impl Field for String {
    fn class() -> FieldClass {
        FieldClass::string()
    }

    fn put(&self, body: &mut Vec<u8>) {
        put_text(body, self.as_bytes());
    }

    fn get(value: Option<Scalar<'_>>) -> Self {
        value.and_then(text).unwrap_or_default().to_owned()
    }
}

/// What stands for an empty text: babeltrace2 (2.0.4) shows the text of an
/// earlier event in its place.
const NOTHING: &str = "-";

/// Appends a text up to its NUL, or what stands for none.
pub(crate) fn put_text(body: &mut Vec<u8>, text: &[u8]) {
    let text = text.split(|b| *b == 0).next().filter(|t| !t.is_empty()).unwrap_or(NOTHING.as_bytes());
    body.extend_from_slice(text);
    body.push(0);
}

/// Returns the text of a field; empty where `-` stands for none. None if it is no text.
pub fn text(value: Scalar<'_>) -> Option<&str> {
    value.as_str().map(|text| if text == NOTHING { "" } else { text })
}

/// Returns an enumeration of 8 bits.
pub(crate) fn names(names: impl IntoIterator<Item = &'static str>) -> FieldClass {
    let mapping =
        |(value, label): (i128, &str)| EnumMapping { label: label.to_owned(), start: value, end: value };
    let mappings = (0..).zip(names).map(mapping).collect();
    FieldClass::Enum(EnumClass { container: IntegerClass::unsigned(8), mappings })
}

/// Name of the field with the length of a list.
pub(crate) fn length(name: &str) -> String {
    format!("_{name}_length")
}

/// Adds a list of as many elements as the integer before it says.
pub(crate) fn counted(fields: StructClass, name: &str, bits: u32, element: FieldClass) -> StructClass {
    let length = length(name);
    fields
        .field(length.clone(), IntegerClass::unsigned(bits))
        .field(name, FieldClass::sequence(FieldPath::relative(length), element))
}
