//! Values: borrowed scalars for speed, owned trees for convenience.

/// A value without parts. Text borrows the bytes of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'t> {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// An enumeration: the number and, if there is one, its first label. A
    /// boolean of CTF 2 has the labels `false` and `true`.
    Enum {
        /// The number.
        value: i128,
        /// Its name.
        label: Option<&'t str>,
    },
    /// A text, without its NUL.
    Str(&'t str),
    /// A text that is not UTF-8, without its NUL; or the bytes of a BLOB, or of a
    /// text in UTF-16 or UTF-32, which [`crate::class::Encoding::decode`] reads.
    Bytes(&'t [u8]),
}

impl<'t> Scalar<'t> {
    /// Text from bytes.
    pub(crate) fn text(bytes: &'t [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Scalar::Str(text),
            Err(_) => Scalar::Bytes(bytes),
        }
    }

    /// Returns the number, if this is an integer or enumeration that fits.
    pub fn as_u64(self) -> Option<u64> {
        match self {
            Scalar::Unsigned(v) => Some(v),
            Scalar::Signed(v) => u64::try_from(v).ok(),
            Scalar::Enum { value, .. } => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// Returns the bits of a number, in two's complement; none if this is no integer or enumeration.
    pub fn bits(self) -> Option<u64> {
        match self {
            Scalar::Unsigned(v) => Some(v),
            Scalar::Signed(v) => Some(v as u64),
            Scalar::Enum { value, .. } => Some(value as u64),
            _ => None,
        }
    }

    /// Returns the number, if this is an integer or enumeration that fits.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Scalar::Unsigned(v) => i64::try_from(v).ok(),
            Scalar::Signed(v) => Some(v),
            Scalar::Enum { value, .. } => i64::try_from(value).ok(),
            _ => None,
        }
    }

    /// Returns the number, if this is a floating-point one.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Scalar::Float(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the text, if this is one in UTF-8, or an enumeration's label.
    pub fn as_str(self) -> Option<&'t str> {
        match self {
            Scalar::Str(text) => Some(text),
            Scalar::Enum { label, .. } => label,
            _ => None,
        }
    }
}

/// Any value, owned.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// An enumeration.
    Enum {
        /// The number.
        value: i128,
        /// Its name.
        label: Option<String>,
    },
    /// A text.
    Str(String),
    /// A text that is not valid in its encoding, or the bytes of a BLOB.
    Bytes(Vec<u8>),
    /// Named fields.
    Struct(Vec<(String, Value)>),
    /// Elements of an array or sequence.
    Array(Vec<Value>),
    /// The chosen option of a variant.
    Variant {
        /// Its name.
        option: String,
        /// Its value.
        value: Box<Value>,
    },
    /// An optional field, if it is there.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// Returns the field of a structure.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

impl From<Scalar<'_>> for Value {
    fn from(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Unsigned(v) => Value::Unsigned(v),
            Scalar::Signed(v) => Value::Signed(v),
            Scalar::Float(v) => Value::Float(v),
            Scalar::Enum { value, label } => Value::Enum { value, label: label.map(Into::into) },
            Scalar::Str(text) => Value::Str(text.into()),
            Scalar::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}
