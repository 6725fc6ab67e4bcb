//! The integers of a payload, each put into its slot of an array.
//!
//! A [`Picker`](super::Picker) calls back for each value. A [`Gatherer`] is for payloads of which
//! there are millions, with many short lists that are mostly empty: it only stores what is there,
//! and returns how long the payload is, so that nobody has to look for its end before.

use std::hint::cold_path;

use super::pick::{Number, Picker, Step};
use crate::bits::mask;
use crate::class::StructClass;

/// Where the values of a field go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The slot of the first value.
    pub first: usize,
    /// Values of a list that have a slot; those behind them are passed over.
    pub most: usize,
    /// The slot for how many values have one, if that is wanted.
    pub count: Option<usize>,
}

/// How to gather the payloads of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gatherer {
    steps: Box<[Move]>,
}

/// One integer, or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    One(Bits, u16),
    /// A list, right behind its length.
    List(Bits, Bits, Of),
    /// A list as long as the one before.
    Again(Bits, Of),
}

/// The slots of a list: the first, how many, and that of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Of {
    first: u16,
    most: u16,
    count: u16,
}

impl Of {
    fn new(slots: Option<Slots>) -> Self {
        let Some(Slots { first, most, count }) = slots else {
            return Of { first: NOWHERE, most: 0, count: NOWHERE };
        };
        let short = |n: usize| u16::try_from(n).unwrap_or(NOWHERE);
        Of { first: short(first), most: short(most), count: count.map_or(NOWHERE, short) }
    }
}

/// An integer of whole bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    /// Those of its word that it has.
    mask: u64,
    /// The one of its sign; 0 if it has none.
    sign: u64,
    bytes: usize,
}

impl Bits {
    fn of(number: &Number) -> Self {
        let bytes = number.bytes.clamp(1, 8);
        let mask = mask(8 * bytes as u32);
        Self { mask, sign: if number.signed { mask ^ (mask >> 1) } else { 0 }, bytes }
    }

    /// Its bits with the sign extended; none where no whole word is there.
    #[inline(always)]
    fn get(self, data: &[u8], at: usize) -> Option<u64> {
        let word = u64::from_le_bytes(*data.get(at..)?.first_chunk()?);
        Some(((word & self.mask) ^ self.sign).wrapping_sub(self.sign))
    }
}

/// The slot of what nobody wants: no array is so long.
const NOWHERE: u16 = u16::MAX;

impl Gatherer {
    /// For payloads of a class: `slots` has those of each field, by position; values of a field
    /// without any are passed over. None if the class has other fields than plain integers
    /// and lists of them, each right behind its length or behind a list that shares its length.
    pub fn new(class: &StructClass, slots: &[Option<Slots>]) -> Option<Self> {
        let of = |position: usize| Of::new(slots.get(position).copied().flatten());
        let (mut steps, mut last) = (Vec::new(), None);
        for (position, step) in Picker::new(class)?.into_steps() {
            steps.push(match step {
                Step::One(number) => Move::One(Bits::of(&number), of(position).first),
                Step::List(number, length, element) => {
                    last = Some(length);
                    Move::List(Bits::of(&number), Bits::of(&element), of(position + 1))
                }
                Step::Many(element, length) if last == Some(length) => {
                    Move::Again(Bits::of(&element), of(position))
                }
                Step::Many(..) | Step::Length(..) | Step::Text => return None,
            });
        }
        Some(Self { steps: steps.into() })
    }

    /// Puts the values of the payload that `data` begins with into `slots`, and returns where it
    /// ends. Slots of lists that are empty stay as they are. None if `data` ends
    /// less than a word behind the start of some value: the payload has to be read otherwise.
    #[inline]
    pub fn gather(&self, data: &[u8], slots: &mut [u64]) -> Option<usize> {
        let (mut at, mut len) = (0, 0);
        for step in &self.steps {
            match *step {
                Move::One(number, slot) => {
                    let bits = number.get(data, at)?;
                    if let Some(slot) = slots.get_mut(usize::from(slot)) {
                        *slot = bits;
                    }
                    at += number.bytes;
                }
                Move::List(number, element, of) => {
                    len = number.get(data, at)?;
                    at += number.bytes;
                    // So the next step need not wait for the length of an empty list.
                    if len > 0 {
                        cold_path();
                        at = elements(element, data, at, len, of, slots)?;
                    }
                }
                Move::Again(element, of) => {
                    if len > 0 {
                        cold_path();
                        at = elements(element, data, at, len, of, slots)?;
                    }
                }
            }
        }
        Some(at)
    }
}

/// Stores the elements of a list; returns its end.
#[inline]
fn elements(element: Bits, data: &[u8], at: usize, len: u64, to: Of, slots: &mut [u64]) -> Option<usize> {
    let bytes = element.bytes;
    let end = at.checked_add(usize::try_from(len).ok()?.checked_mul(bytes)?)?;
    if end > data.len() {
        return None;
    }
    let stored = (len as usize).min(to.most.into());
    for index in 0..stored {
        let bits = element.get(data, at + index * bytes)?;
        if let Some(slot) = slots.get_mut(usize::from(to.first) + index) {
            *slot = bits;
        }
    }
    if let Some(slot) = slots.get_mut(usize::from(to.count)) {
        *slot = stored as u64;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{FieldClass, FieldPath, IntegerClass};

    fn class() -> StructClass {
        let list = |of: &str, bits| {
            FieldClass::sequence(FieldPath::relative(of.to_owned()), IntegerClass::unsigned(bits))
        };
        StructClass::default()
            .field("distance", IntegerClass::signed(48))
            .field("ignored", IntegerClass::unsigned(16))
            .field("n", IntegerClass::unsigned(8))
            .field("list", list("n", 16))
            .field("beside", list("n", 32))
            .field("last", IntegerClass::unsigned(64))
    }

    fn slots() -> [Option<Slots>; 6] {
        let one = |first| Some(Slots { first, most: 1, count: None });
        [one(0), None, None, Some(Slots { first: 1, most: 2, count: Some(3) }), one(4), one(5)]
    }

    fn payload(list: &[u16]) -> Vec<u8> {
        let mut body = (-5i64).to_le_bytes()[..6].to_vec();
        body.extend([1, 2, list.len() as u8]);
        list.iter().for_each(|v| body.extend(v.to_le_bytes()));
        list.iter().for_each(|v| body.extend((u32::from(*v) + 1000).to_le_bytes()));
        body.extend(77u64.to_le_bytes());
        body
    }

    #[test]
    fn values_are_in_their_slots_and_the_end_is_right() {
        let gatherer = Gatherer::new(&class(), &slots()).expect("plain integers");
        for (list, expected) in [
            (&[][..], [-5i64 as u64, 9, 9, 9, 9, 77]),
            (&[3], [-5i64 as u64, 3, 9, 1, 1003, 77]),
            (&[3, 4, 5], [-5i64 as u64, 3, 4, 2, 1003, 77]),
        ] {
            let mut found = [9; 6];
            let body = payload(list);
            assert_eq!(gatherer.gather(&body, &mut found), Some(body.len()));
            assert_eq!(found, expected, "{list:?}");
        }
    }

    #[test]
    fn a_payload_that_is_cut_is_not_gathered() {
        let gatherer = Gatherer::new(&class(), &slots()).expect("plain integers");
        let body = payload(&[3, 4, 5]);
        for cut in 0..body.len() {
            assert_eq!(gatherer.gather(&body[..cut], &mut [0; 6]), None, "{cut}");
        }
        let mut huge = payload(&[]);
        huge[8] = 255;
        assert_eq!(gatherer.gather(&huge, &mut [0; 6]), None);
    }

    #[test]
    fn texts_are_for_others() {
        let class = class().field("name", FieldClass::string());
        assert_eq!(Gatherer::new(&class, &slots()), None);
    }
}
