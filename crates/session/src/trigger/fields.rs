//! Values of one field of a record, found without reading the others.

use hetrace_model::layout::{self, Field, Shape};
use hetrace_model::{Model, Type};

use super::units::Number;

/// How many bytes a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Fixed(usize),
    /// An 8-bit count, and elements of so many bytes.
    Seq(usize),
    /// A 16-bit count and bytes.
    Bytes,
    Text,
    Texts,
}

/// What a field's value is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An integer of so many bytes.
    Int {
        /// Its bytes.
        size: u8,
        /// It has a sign.
        signed: bool,
    },
    /// A real number of so many bytes.
    Float(u8),
    /// Text.
    Text,
    /// The first of several numbers, if there is one.
    First(u8, bool),
}

impl Form {
    /// Returns that of a shape; none if a trigger can't compare it.
    pub fn of(shape: &Shape) -> Option<Form> {
        match shape {
            Shape::Int(int) => Some(Form::Int { size: int.size, signed: int.signed }),
            Shape::Float(size) => Some(Form::Float(*size)),
            Shape::Text => Some(Form::Text),
            Shape::Seq(element) => match &**element {
                Shape::Int(int) => Some(Form::First(int.size, int.signed)),
                _ => None,
            },
            Shape::Bytes | Shape::Texts | Shape::Struct(_) => None,
        }
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(Number),
    /// Text.
    Text(String),
}

/// Where a field lies in records of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Those before it.
    before: Vec<Width>,
    form: Form,
}

impl Place {
    /// Returns that of one of an event's fields; none if a trigger can't compare it.
    pub fn of(model: &Model, fields: &[Field], number: usize) -> Option<Place> {
        let form = Form::of(&fields.get(number)?.shape)?;
        let before = fields.get(..number)?.iter().map(|field| width(model, &field.shape)).collect();
        Some(Place { before, form })
    }

    /// Returns the form of the value.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Reads the value; none if the record has none, or is damaged.
    pub fn read(&self, record: &[u8]) -> Option<Value> {
        let mut rest = record;
        for width in &self.before {
            rest = skip(*width, rest)?;
        }
        match self.form {
            Form::Int { size, signed } => integer(rest, size, signed),
            Form::Float(4) => {
                Some(Value::Number(Number::Float(f32::from_le_bytes(*rest.first_chunk()?).into())))
            }
            Form::Float(_) => Some(Value::Number(Number::Float(f64::from_le_bytes(*rest.first_chunk()?)))),
            Form::Text => {
                let text = rest.split(|byte| *byte == 0).next()?;
                Some(Value::Text(String::from_utf8_lossy(text).into_owned()))
            }
            Form::First(size, signed) => {
                let (count, elements) = rest.split_first()?;
                if *count == 0 { None } else { integer(elements, size, signed) }
            }
        }
    }

    /// Reads an integer as bits; none if it is none, or the record is damaged.
    #[inline]
    pub fn read_bits(&self, record: &[u8]) -> Option<u64> {
        match self.read(record)? {
            Value::Number(Number::Int(value)) => Some(value as u64),
            _ => None,
        }
    }
}

fn integer(bytes: &[u8], size: u8, signed: bool) -> Option<Value> {
    let bytes = bytes.get(..usize::from(size).min(8))?;
    let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let shift = 64 - 8 * bytes.len() as u32;
    let value =
        if signed && shift < 64 { i128::from((word << shift) as i64 >> shift) } else { i128::from(word) };
    Some(Value::Number(Number::Int(value)))
}

fn width(model: &Model, shape: &Shape) -> Width {
    match shape {
        Shape::Seq(element) => Width::Seq(fixed(model, element)),
        Shape::Bytes => Width::Bytes,
        Shape::Text => Width::Text,
        Shape::Texts => Width::Texts,
        shape => Width::Fixed(fixed(model, shape)),
    }
}

/// Returns the bytes of what always has as many.
fn fixed(model: &Model, shape: &Shape) -> usize {
    match shape {
        Shape::Int(int) => int.size.into(),
        Shape::Float(size) => (*size).into(),
        Shape::Struct(name) => {
            let known: Option<&Type> = model.types.get(name);
            known.map_or(1, |ty| layout::recorded_size(ty) as usize)
        }
        // Only elements come here, and these are never counted themselves.
        Shape::Seq(_) | Shape::Bytes | Shape::Text | Shape::Texts => 1,
    }
}

fn skip(width: Width, bytes: &[u8]) -> Option<&[u8]> {
    match width {
        Width::Fixed(size) => bytes.get(size..),
        Width::Seq(size) => {
            let (count, rest) = bytes.split_first()?;
            rest.get(usize::from(*count) * size..)
        }
        Width::Bytes => {
            let (count, rest) = bytes.split_first_chunk::<2>()?;
            rest.get(usize::from(u16::from_le_bytes(*count))..)
        }
        Width::Text => after_text(bytes),
        Width::Texts => {
            let (count, mut rest) = bytes.split_first()?;
            for _ in 0..*count {
                rest = after_text(rest)?;
            }
            Some(rest)
        }
    }
}

fn after_text(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(bytes.iter().position(|byte| *byte == 0)? + 1..)
}

#[cfg(test)]
mod tests {
    use hetrace_model::layout::{Int, Source};
    use proptest::prelude::*;

    use super::*;

    fn model() -> Model {
        let text = r#"{"api":"toy","registry":{"file":"toy.h","sha256":""},"interpose":{},"errors":"e",
            "types":[{"name":"pair","kind":"struct","size":12}],"enums":[],"info":{},"functions":[]}"#;
        serde_json::from_str(text).expect("a model")
    }

    fn int(size: u8, signed: bool) -> Shape {
        Shape::Int(Int { size, signed, hex: false, values: None })
    }

    fn fields(shapes: Vec<Shape>) -> Vec<Field> {
        let field = |shape| Field { name: "x".to_owned(), shape, source: Source::Tracer };
        shapes.into_iter().map(field).collect()
    }

    #[test]
    fn values_are_found_behind_all_kinds_of_fields() {
        let fields = fields(vec![
            Shape::Seq(Box::new(Shape::Struct("pair".to_owned()))),
            Shape::Bytes,
            Shape::Texts,
            Shape::Text,
            int(2, true),
            Shape::Float(4),
            Shape::Seq(Box::new(int(8, false))),
        ]);
        let mut record = vec![1];
        record.extend([0; 12]);
        record.extend([3, 0, 9, 9, 9, 2, b'a', 0, 0, b'h', b'i', 0, 0xfe, 0xff, 0, 0, 0x20, 0x41, 1]);
        record.extend(u64::MAX.to_le_bytes());
        let read = |number| Place::of(&model(), &fields, number).expect("a place").read(&record);
        assert_eq!(read(3), Some(Value::Text("hi".to_owned())));
        assert_eq!(read(4), Some(Value::Number(Number::Int(-2))));
        assert_eq!(read(5), Some(Value::Number(Number::Float(10.0))));
        assert_eq!(read(6), Some(Value::Number(Number::Int(u64::MAX.into()))));
        assert!(Place::of(&model(), &fields, 0).is_none() && Place::of(&model(), &fields, 1).is_none());
    }

    fn shape() -> impl Strategy<Value = Shape> {
        prop_oneof![
            (1u8..=8, any::<bool>()).prop_map(|(size, signed)| int(size, signed)),
            Just(Shape::Float(4)),
            Just(Shape::Float(8)),
            Just(Shape::Bytes),
            Just(Shape::Text),
            Just(Shape::Texts),
            Just(Shape::Seq(Box::new(int(4, false)))),
            Just(Shape::Struct("pair".to_owned())),
        ]
    }

    proptest! {
        #[test]
        fn noise_is_read_without_panic(shapes in prop::collection::vec(shape(), 1..6), noise in any::<Vec<u8>>()) {
            let fields = fields(shapes);
            for number in 0..fields.len() {
                if let Some(place) = Place::of(&model(), &fields, number) {
                    let _ = place.read(&noise);
                }
            }
        }
    }
}
