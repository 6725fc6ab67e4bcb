//! The integers of a payload, each put into its slot of an array.
//!
//! A [`Picker`](super::Picker) calls back for each value. A [`Gatherer`] is for payloads of which
//! there are millions, with many short lists that are mostly empty: it only stores what is there,
//! and returns how long the payload is, so that its end need not be looked for first.

use super::alike::Varying;
use super::integer::{Bits, Integer};
use super::pick::{Number, Picker, Step};
use crate::bits::word;
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

/// How to gather the payloads of a class: integers first, and then lists behind lengths of 8 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gatherer {
    integers: Box<[Integer]>,
    /// Bytes of all integers.
    bytes: usize,
    lists: Box<[List]>,
}

/// A list, and one right behind it that has its length, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List {
    own: Elements,
    beside: Option<Elements>,
}

/// What a list has, and its slots: the first, how many, and that of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elements {
    bits: Bits,
    bytes: usize,
    first: u16,
    most: u16,
    count: u16,
}

impl Elements {
    fn new(number: &Number, slots: Option<Slots>) -> Self {
        let (bits, bytes) = (Bits::of(number), number.bytes);
        let Some(Slots { first, most, count }) = slots else {
            return Elements { bits, bytes, first: NOWHERE, most: 0, count: NOWHERE };
        };
        Elements { bits, bytes, first: short(first), most: short(most), count: count.map_or(NOWHERE, short) }
    }
}

/// The slot of what nobody wants: no array is so long.
const NOWHERE: u16 = u16::MAX;

/// A number of a slot; [`NOWHERE`] if no array is so long.
fn short(slot: usize) -> u16 {
    slot.min(NOWHERE.into()) as u16
}

impl Gatherer {
    /// For payloads of a class: `slots` has those of each field, by position; values of a field
    /// without any are passed over. None if the class has other fields than plain integers and, behind these,
    /// lists of them, each behind a length of 8 bits or right behind a list that shares its length.
    pub fn new(class: &StructClass, slots: &[Option<Slots>]) -> Option<Self> {
        let of = |position: usize| slots.get(position).copied().flatten();
        let (mut integers, mut bytes, mut lists) = (Vec::new(), 0, Vec::<List>::new());
        let mut last = None;
        for (position, step) in Picker::new(class)?.into_steps() {
            match step {
                Step::One(number) if lists.is_empty() => {
                    let slot = of(position).map_or(NOWHERE, |slots| short(slots.first));
                    let at = u16::try_from(bytes).ok()?;
                    integers.push(Integer { bits: Bits::of(&number), at, slot });
                    bytes += number.bytes;
                }
                Step::List(length, number, element) if length.bytes == 1 => {
                    last = Some(number);
                    lists.push(List { own: Elements::new(&element, of(position + 1)), beside: None });
                }
                Step::Many(element, number) if last == Some(number) => {
                    let list = lists.last_mut().filter(|list| list.beside.is_none())?;
                    list.beside = Some(Elements::new(&element, of(position)));
                }
                Step::One(_) | Step::List(..) | Step::Many(..) | Step::Length(..) | Step::Text => {
                    return None;
                }
            }
        }
        Some(Self { integers: integers.into(), bytes, lists: lists.into() })
    }

    /// Which integers vary from event to event: those that have these slots.
    pub fn varying(&self, slots: &[usize]) -> Varying {
        // What lists write, too, is not what it was before.
        let listed = |slot: u16| {
            let lists = self.lists.iter().flat_map(|list| [Some(list.own), list.beside]).flatten();
            let mut written = lists
                .flat_map(|list| [list.first..list.first.saturating_add(list.most), list.count..list.count]);
            written.any(|slots| slots.contains(&slot))
        };
        let own = self.integers.iter().copied().filter(|integer| !listed(integer.slot));
        Varying::new(own, self.bytes, slots)
    }

    /// Puts the values of the payload that `data` begins with into `slots`, and returns where it
    /// ends. Slots of lists that are empty stay as they are. None if `data` ends
    /// less than a word behind the start of some value: the payload has to be read otherwise.
    #[inline]
    pub fn gather(&self, data: &[u8], slots: &mut [u64]) -> Option<usize> {
        // The last integer's word may reach behind it.
        let fixed = data.get(..self.bytes + size_of::<u64>())?;
        for integer in &self.integers {
            let value = integer.bits.of_word(word(fixed, integer.at.into())?);
            if let Some(slot) = slots.get_mut(usize::from(integer.slot)) {
                *slot = value;
            }
        }
        let (mut at, mut rest) = (self.bytes, self.lists.iter());
        while !rest.as_slice().is_empty() {
            let lengths = word(data, at)?;
            // The lengths of empty lists lie side by side.
            let empty = lengths.trailing_zeros() as usize / 8;
            at += empty.min(rest.len());
            if empty >= size_of::<u64>() {
                rest = rest.as_slice().get(empty..).unwrap_or_default().iter();
            } else if let Some(list) = rest.nth(empty) {
                let len = (lengths >> (8 * empty)) as usize & 0xff;
                at = list.gather(data, at + 1, len, slots)?;
            }
        }
        Some(at)
    }
}

impl List {
    /// Stores so many elements; returns the list's end.
    #[inline]
    fn gather(&self, data: &[u8], at: usize, len: usize, slots: &mut [u64]) -> Option<usize> {
        let end = self.own.gather(data, at, len, slots)?;
        self.beside.map_or(Some(end), |beside| beside.gather(data, end, len, slots))
    }
}

impl Elements {
    #[inline]
    fn gather(&self, data: &[u8], at: usize, len: usize, slots: &mut [u64]) -> Option<usize> {
        let end = at + len * self.bytes;
        if end > data.len() {
            return None;
        }
        let stored = len.min(self.most.into());
        for index in 0..stored {
            let value = self.bits.of_word(word(data, at + index * self.bytes)?);
            if let Some(slot) = slots.get_mut(usize::from(self.first) + index) {
                *slot = value;
            }
        }
        if let Some(slot) = slots.get_mut(usize::from(self.count)) {
            *slot = stored as u64;
        }
        Some(end)
    }
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
            .field("m", IntegerClass::unsigned(8))
            .field("last", list("m", 64))
    }

    fn slots() -> [Option<Slots>; 7] {
        let one = |first| Some(Slots { first, most: 1, count: None });
        [one(0), None, None, Some(Slots { first: 1, most: 2, count: Some(3) }), one(4), None, one(5)]
    }

    fn payload(list: &[u16]) -> Vec<u8> {
        let mut body = (-5i64).to_le_bytes()[..6].to_vec();
        body.extend([1, 2, list.len() as u8]);
        list.iter().for_each(|v| body.extend(v.to_le_bytes()));
        list.iter().for_each(|v| body.extend((u32::from(*v) + 1000).to_le_bytes()));
        body.push(1);
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

    /// More of them than lengths fit a word.
    #[test]
    fn empty_lists_are_passed_over_together() {
        let class = (0..20).fold(StructClass::default(), |class, n| {
            let length = FieldPath::relative(format!("n{n}"));
            let list = FieldClass::sequence(length, IntegerClass::unsigned(8));
            class.field(format!("n{n}"), IntegerClass::unsigned(8)).field(format!("list{n}"), list)
        });
        let of = |position: usize| Some(Slots { first: position / 2, most: 1, count: None });
        let slots: Vec<_> = (0..40).map(|p| of(p).filter(|_| p % 2 == 1)).collect();
        let gatherer = Gatherer::new(&class, &slots).expect("plain lists");
        for full in [&[][..], &[0], &[7], &[8], &[9, 10], &[0, 19], &[3, 11, 12, 18]] {
            let (mut body, mut expected) = (Vec::new(), [0; 20]);
            for list in 0..20u8 {
                body.push(u8::from(full.contains(&list)));
                if full.contains(&list) {
                    body.push(list + 1);
                    expected[usize::from(list)] = u64::from(list) + 1;
                }
            }
            let end = body.len();
            body.extend([0xff; 8]);
            let mut found = [0; 20];
            assert_eq!((gatherer.gather(&body, &mut found), found), (Some(end), expected), "{full:?}");
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
    fn texts_and_integers_behind_lists_are_for_others() {
        let text = class().field("name", FieldClass::string());
        let late = class().field("late", IntegerClass::unsigned(8));
        assert_eq!([text, late].map(|class| Gatherer::new(&class, &slots())), [None, None]);
    }
}
