//! All fields of a payload, one after the other, with as little as possible in between.
//!
//! [`Event::visit`](super::Event::visit) can show any payload. A [`Picker`] is for classes of which
//! there are millions of events: it has a list of what to read next, made once, and identifies
//! fields by their position. Payloads of plain little-endian integers, lists of these
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
    /// With the positions of their fields.
    steps: Vec<(usize, Step)>,
    /// The integers of the first steps, which always stand at the same places.
    leading: Box<[Leading]>,
    /// Whether a length is that of a list which is not right behind it.
    shares: bool,
}

/// An integer at a place of the payload that is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leading {
    at: u32,
    /// Bits of its word that it has not.
    unused: u8,
    signed: bool,
}

impl Leading {
    /// Returns the byte of the payload behind it.
    #[inline]
    pub fn end(self) -> usize {
        self.at as usize + size_of::<u64>() - usize::from(self.unused / 8)
    }

    /// Returns its bits, the sign extended, in a payload of which [`Picker::has_leading`] is true; else 0, perhaps.
    #[inline(always)]
    pub fn get(self, payload: &[u8]) -> u64 {
        let unused = self.unused % 64;
        let high = crate::bits::word(payload, self.at as usize).unwrap_or(0) << unused;
        if self.signed { ((high as i64) >> unused) as u64 } else { high >> unused }
    }
}

/// Leading integers at most.
const MOST_LEADING: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    One(Number),
    /// The length of so many lists is kept under its number.
    Length(Number, usize),
    /// A list, and which length it has.
    Many(Number, usize),
    /// The length of so many lists and, in the next field, the first list that has it.
    List(Number, usize, Number),
    /// A text and its NUL.
    Text,
}

/// A value as it lies in the payload. What it is as a [`Scalar`] costs more, and most callers
/// want the bits of most fields.
#[derive(Clone, Copy, Debug)]
pub struct Picked<'e>(Raw<'e>);

#[derive(Clone, Copy, Debug)]
enum Raw<'e> {
    /// Of a list, if the last says so.
    Number(&'e Number, u64, bool),
    Text(&'e [u8]),
    /// A list of bytes.
    Bytes(&'e Number, &'e [u8]),
}

impl<'e> Picked<'e> {
    /// The integer's bits, the sign extended; none of a text.
    #[inline(always)]
    pub fn bits(self) -> Option<u64> {
        match self.0 {
            Raw::Number(_, bits, _) => Some(bits),
            Raw::Text(_) | Raw::Bytes(..) => None,
        }
    }

    /// Whether it is an element of a list, or one.
    #[inline(always)]
    pub fn in_list(self) -> bool {
        matches!(self.0, Raw::Number(_, _, true) | Raw::Bytes(..))
    }

    /// The elements of a list of bytes without signs; none of anything else.
    #[inline(always)]
    pub fn bytes(self) -> Option<&'e [u8]> {
        match self.0 {
            Raw::Bytes(_, bytes) => Some(bytes),
            Raw::Number(..) | Raw::Text(_) => None,
        }
    }

    /// The text's bytes; none of an integer.
    #[inline(always)]
    pub fn text(self) -> Option<&'e [u8]> {
        match self.0 {
            Raw::Number(..) | Raw::Bytes(..) => None,
            Raw::Text(bytes) => Some(bytes),
        }
    }

    /// The number, if it fits: [`Scalar::as_u64`].
    #[inline(always)]
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            Raw::Number(number, bits, _) if !number.signed || bits as i64 >= 0 => Some(bits),
            _ => None,
        }
    }

    /// The number, if it fits: [`Scalar::as_i64`].
    #[inline(always)]
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Raw::Number(number, bits, _) if number.signed || bits as i64 >= 0 => Some(bits as i64),
            _ => None,
        }
    }

    /// The text, or an enumeration's label: [`Scalar::as_str`].
    #[inline]
    pub fn as_str(self) -> Option<&'e str> {
        match self.0 {
            Raw::Number(Number { labels: Some(labels), .. }, ..) => labels.get(self.integer()),
            Raw::Number(..) | Raw::Bytes(..) => None,
            Raw::Text(bytes) => std::str::from_utf8(bytes).ok(),
        }
    }

    /// The value as [`Event::visit`](super::Event::visit) has it.
    #[inline]
    pub fn scalar(self) -> Scalar<'e> {
        match self.0 {
            Raw::Text(bytes) => Scalar::text(bytes),
            Raw::Bytes(_, bytes) => Scalar::Bytes(bytes),
            Raw::Number(number, bits, _) => match &number.labels {
                None if number.signed => Scalar::Signed(bits as i64),
                None => Scalar::Unsigned(bits),
                Some(labels) => Scalar::Enum { value: self.integer(), label: labels.get(self.integer()) },
            },
        }
    }

    /// The number with its sign; 0 of a text.
    fn integer(self) -> i128 {
        match self.0 {
            Raw::Number(number, bits, _) if number.signed => i128::from(bits as i64),
            Raw::Number(_, bits, _) => i128::from(bits),
            Raw::Text(_) | Raw::Bytes(..) => 0,
        }
    }
}

/// An integer of whole bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub bytes: usize,
    pub signed: bool,
    /// What its values are called, if it is an enumeration.
    labels: Option<Box<Labels>>,
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
        let steps = together(steps);
        let shares = steps.iter().any(|(_, step)| matches!(step, Step::Many(..)));
        Some(Self { leading: leading(&steps), shares, steps })
    }

    /// Returns the integers that payloads begin with, always at the same places: they are the first fields.
    pub fn leading(&self) -> &[Leading] {
        &self.leading
    }

    /// Returns how many bytes the length has of a list of bytes, if that is all that payloads have behind these integers.
    pub fn only_bytes(&self) -> Option<usize> {
        match self.steps.get(self.leading.len()..)? {
            [(_, Step::List(length, _, byte))] if byte.bytes == 1 && !byte.signed => Some(length.bytes),
            _ => None,
        }
    }

    /// Returns whether a whole word is at each of these in the payload that `data` begins with.
    #[inline(always)]
    pub fn has_leading(&self, data: &[u8]) -> bool {
        self.leading.last().is_none_or(|last| data.len() >= last.at as usize + size_of::<u64>())
    }

    /// Returns the steps with the positions of their fields.
    pub(super) fn into_steps(self) -> Vec<(usize, Step)> {
        self.steps
    }

    /// Shows each value of the payload that `data` begins with: the position of its field, that of
    /// the element in a list, and the value. False if `data` ends too early.
    #[inline(always)]
    pub fn pick<'e>(&'e self, data: &'e [u8], mut each: impl FnMut(usize, usize, Picked<'e>)) -> bool {
        self.pick_behind(0, data, |position, element, value| match value.0 {
            Raw::Bytes(number, bytes) => {
                for (element, byte) in bytes.iter().enumerate() {
                    each(position, element, Picked(Raw::Number(number, (*byte).into(), true)));
                }
            }
            _ => each(position, element, value),
        })
    }

    /// The same for the fields behind the first so many of the leading ones, with a list of bytes as one value.
    #[inline(always)]
    pub fn pick_behind<'e>(
        &'e self,
        first: usize,
        data: &'e [u8],
        each: impl FnMut(usize, usize, Picked<'e>),
    ) -> bool {
        match self.shares {
            true => self.pick_as::<true>(first, data, each),
            false => self.pick_as::<false>(first, data, each),
        }
    }

    /// `SHARES` is whether lengths have to be remembered.
    #[inline(always)]
    fn pick_as<'e, const SHARES: bool>(
        &'e self,
        first: usize,
        data: &'e [u8],
        mut each: impl FnMut(usize, usize, Picked<'e>),
    ) -> bool {
        let last = first.checked_sub(1).and_then(|last| self.leading.get(last));
        let mut at = last.map_or(0, |last| last.end());
        let mut lengths = [0u64; LISTS];
        for (position, step) in self.steps.get(first..).unwrap_or_default() {
            let position = *position;
            let one = |number: &'e Number, bits| Picked(Raw::Number(number, bits, false));
            match step {
                Step::One(number) => {
                    let Some(bits) = number.get(data, at) else { return false };
                    each(position, 0, one(number, bits));
                    at += number.bytes;
                }
                Step::Length(number, length) => {
                    let Some(bits) = number.get(data, at) else { return false };
                    each(position, 0, one(number, bits));
                    if SHARES {
                        lengths[*length % LISTS] = bits;
                    }
                    at += number.bytes;
                }
                Step::List(number, length, element) => {
                    let Some(bits) = number.get(data, at) else { return false };
                    each(position, 0, one(number, bits));
                    at += number.bytes;
                    // Most lists are there for what is rare.
                    if bits > 0 {
                        if SHARES {
                            lengths[*length % LISTS] = bits;
                        }
                        let Some(end) = element.list(data, at, position + 1, bits, &mut each) else {
                            return false;
                        };
                        at = end;
                    }
                }
                Step::Many(..) if !SHARES => return false,
                Step::Many(element, length) => {
                    let len = lengths[*length % LISTS];
                    let Some(end) = element.list(data, at, position, len, &mut each) else { return false };
                    at = end;
                }
                Step::Text => {
                    let Some(rest) = data.get(at..) else { return false };
                    let Some(len) = crate::bits::find_nul(rest) else { return false };
                    each(position, 0, Picked(Raw::Text(rest.get(..len).unwrap_or_default())));
                    at += len + 1;
                }
            }
        }
        true
    }
}

/// The integers of the first steps.
fn leading(steps: &[(usize, Step)]) -> Box<[Leading]> {
    let mut at = 0;
    let integers = steps.iter().take(MOST_LEADING).map_while(|(_, step)| match step {
        Step::One(number) => {
            let integer = Leading { at, unused: 64 - 8 * number.bytes as u8, signed: number.signed };
            at += number.bytes as u32;
            Some(integer)
        }
        _ => None,
    });
    integers.collect()
}

/// Numbers the steps by their fields, and makes one of lengths and the lists right behind them.
fn together(steps: Vec<Step>) -> Vec<(usize, Step)> {
    let mut all: Vec<(usize, Step)> = Vec::with_capacity(steps.len());
    for (position, step) in steps.into_iter().enumerate() {
        if let Step::Many(element, of) = &step
            && let Some((_, last)) = all.last_mut().filter(|(before, _)| before + 1 == position)
            && let Step::Length(number, length) = &*last
            && length == of
        {
            *last = Step::List(number.clone(), *of, element.clone());
            continue;
        }
        all.push((position, step));
    }
    all
}

/// The name of the length field, if it is a direct member of the payload.
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
            FieldClass::Enum(c) => (&c.container, Some(Box::new(Labels::of(c)))),
            _ => return None,
        };
        let whole = integer.size.is_multiple_of(8) && (8..=64).contains(&integer.size);
        let plain = integer.align == 8 && integer.byte_order == ByteOrder::Little && !integer.reversed;
        let number = Self { bytes: integer.size as usize / 8, signed: integer.signed, labels };
        (whole && plain && !integer.variable && integer.clock.is_none()).then_some(number)
    }

    /// Shows the elements of a list of these; gives its end, or none if `data` ends too early.
    #[inline(always)]
    fn list<'e>(
        &'e self,
        data: &'e [u8],
        mut at: usize,
        position: usize,
        len: u64,
        each: &mut impl FnMut(usize, usize, Picked<'e>),
    ) -> Option<usize> {
        let rest = data.len().saturating_sub(at) / self.bytes;
        if len > rest as u64 {
            return None;
        }
        if self.bytes == 1 && !self.signed {
            let all = data.get(at..)?.get(..len as usize)?;
            if !all.is_empty() {
                each(position, 0, Picked(Raw::Bytes(self, all)));
            }
            return Some(at + all.len());
        }
        for element in 0..len as usize {
            each(position, element, Picked(Raw::Number(self, self.get(data, at)?, true)));
            at += self.bytes;
        }
        Some(at)
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
