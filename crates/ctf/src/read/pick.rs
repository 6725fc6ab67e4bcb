//! All fields of a payload, one after the other, with as little as possible in between.
//!
//! [`Event::visit`](super::Event::visit) can show any payload. A [`Picker`] is for classes of which
//! there are millions of events: it has a list of what to read next, made once, and is told
//! which field is which by its position. Payloads of plain little-endian integers, lists of these
//! and texts have one.

use crate::class::{ByteOrder, EnumClass, FieldClass, IntegerClass, IntegerForm, StructClass};
use crate::value::Scalar;

/// Labels that are looked up by their number.
const LABELS: i128 = 32;

/// Lists that a payload may have.
const LISTS: usize = 32;

/// How to read the payloads of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picker {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    One(Number),
    /// The length of so many lists is kept under its number.
    Length(Number, usize),
    /// A list, and which length it has.
    Many(Number, usize),
    /// A text and its NUL.
    Text,
}

/// An integer of whole bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number {
    bytes: usize,
    signed: bool,
    /// What its values are called, if it is an enumeration.
    labels: Option<Labels>,
}

/// The labels of an enumeration: of its first numbers, and the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Labels {
    first: Vec<Option<String>>,
    all: EnumClass,
}

impl Picker {
    /// For payloads of a class; none if it has other fields than those said above.
    pub fn new(class: &StructClass) -> Option<Self> {
        let lengths: Vec<(&str, usize)> = class
            .fields
            .iter()
            .filter_map(|field| match &field.class {
                FieldClass::Sequence(list) => length_of(&list.length).and_then(|name| class.index(name)),
                _ => None,
            })
            .enumerate()
            .map(|(list, at)| (class.fields[at].name.as_str(), list))
            .collect();
        // The same name twice, or a byte that nobody aligned, is for others.
        let plain = class.min_align <= 8 && lengths.len() <= LISTS;
        let unique = |name: &str| class.fields.iter().filter(|field| field.name == name).count() == 1;
        if !plain || !lengths.iter().all(|(name, _)| unique(name)) {
            return None;
        }
        let number_of = |name: &str| lengths.iter().find(|(known, _)| *known == name).map(|(_, at)| *at);
        let mut seen: Vec<&str> = Vec::new();
        let mut steps = Vec::with_capacity(class.fields.len());
        for field in &class.fields {
            steps.push(match &field.class {
                FieldClass::Integer(_) | FieldClass::Enum(_) => {
                    let number = Number::of(&field.class)?;
                    match number_of(&field.name) {
                        Some(_) if number.signed => return None,
                        Some(length) => Step::Length(number, length),
                        None => Step::One(number),
                    }
                }
                // Characters are one text.
                FieldClass::Sequence(list) if list.min_align <= 8 && !list.element.is_character() => {
                    let length = length_of(&list.length).filter(|name| seen.contains(name))?;
                    Step::Many(Number::of(&list.element)?, number_of(length)?)
                }
                FieldClass::String(text) if text.encoding.unit() == 1 => Step::Text,
                _ => return None,
            });
            seen.push(&field.name);
        }
        Some(Self { steps })
    }

    /// Shows each value of the payload that `data` begins with: the position of its field, that of
    /// the element in a list, and the value, as [`Event::visit`](super::Event::visit) has it. False
    /// if `data` ends too early.
    #[inline]
    pub fn pick<'e>(&'e self, data: &'e [u8], mut each: impl FnMut(usize, usize, Scalar<'e>)) -> bool {
        let (mut lengths, mut at) = ([0u64; LISTS], 0usize);
        for (position, step) in self.steps.iter().enumerate() {
            match step {
                Step::One(number) => {
                    let Some(bits) = number.get(data, at) else { return false };
                    each(position, 0, number.scalar(bits));
                    at += number.bytes;
                }
                Step::Length(number, length) => {
                    let Some(bits) = number.get(data, at) else { return false };
                    each(position, 0, number.scalar(bits));
                    lengths[*length % LISTS] = bits;
                    at += number.bytes;
                }
                Step::Many(number, length) => {
                    let len = lengths[*length % LISTS];
                    let rest = data.len().saturating_sub(at) / number.bytes;
                    if len > rest as u64 {
                        return false;
                    }
                    for element in 0..len as usize {
                        let Some(bits) = number.get(data, at) else { return false };
                        each(position, element, number.scalar(bits));
                        at += number.bytes;
                    }
                }
                Step::Text => {
                    let Some(rest) = data.get(at..) else { return false };
                    let Some(len) = crate::bits::find_nul(rest) else { return false };
                    each(position, 0, Scalar::text(&rest[..len]));
                    at += len + 1;
                }
            }
        }
        true
    }
}

/// The name of the field right in the payload that tells a length.
fn length_of(path: &crate::class::FieldPath) -> Option<&str> {
    let own = path.scope.is_none() && path.parents.is_none_or(|parents| parents == 0);
    match path.names.as_slice() {
        [name] if own => Some(name),
        _ => None,
    }
}

impl Number {
    fn of(class: &FieldClass) -> Option<Self> {
        let (integer, labels): (&IntegerClass, _) = match class {
            FieldClass::Integer(c) if c.form == IntegerForm::Number => (c, None),
            FieldClass::Enum(c) => (&c.container, Some(Labels::of(c))),
            _ => return None,
        };
        let whole = integer.size.is_multiple_of(8) && (8..=64).contains(&integer.size);
        let plain = integer.align == 8 && integer.byte_order == ByteOrder::Little && !integer.reversed;
        let number = Self { bytes: integer.size as usize / 8, signed: integer.signed, labels };
        (whole && plain && !integer.variable && integer.clock.is_none()).then_some(number)
    }

    /// Its bits, the sign extended.
    #[inline(always)]
    fn get(&self, data: &[u8], at: usize) -> Option<u64> {
        let unused = 64 - 8 * self.bytes as u32;
        let rest = data.get(at..)?;
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let mut word = [0; 8];
                word.get_mut(..self.bytes)?.copy_from_slice(rest.get(..self.bytes)?);
                u64::from_le_bytes(word)
            }
        };
        let high = word << unused;
        Some(if self.signed { ((high as i64) >> unused) as u64 } else { high >> unused })
    }

    #[inline(always)]
    fn scalar(&self, bits: u64) -> Scalar<'_> {
        match &self.labels {
            None if self.signed => Scalar::Signed(bits as i64),
            None => Scalar::Unsigned(bits),
            Some(labels) => {
                let value = if self.signed { i128::from(bits as i64) } else { i128::from(bits) };
                Scalar::Enum { value, label: labels.get(value) }
            }
        }
    }
}

impl Labels {
    fn of(class: &EnumClass) -> Self {
        let first = (0..LABELS).map(|value| class.label(value).map(str::to_owned)).collect();
        Self { first, all: class.clone() }
    }

    #[inline]
    fn get(&self, value: i128) -> Option<&str> {
        let known = usize::try_from(value).ok().and_then(|value| self.first.get(value));
        known.map_or_else(|| self.all.label(value), |label| label.as_deref())
    }
}
