//! Payloads of a class that are the same but for some integers, as those of events that repeat but for their times.
//!
//! ```text
//!  known    | queue | thread | ····before | ····duration | kernel | shape |     compared as words, without
//!  another  | queue | thread | ····before | ····duration | kernel | shape |     the integers that vary
//! ```
//! To find out that a payload is as a known one takes less than to read it.

use super::integer::Integer;
use crate::bits::word;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Which integers of a class vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    /// By byte of all integers: the bits that do not vary.
    constant: Box<[u8]>,
    /// The same by word.
    masks: Box<[u64]>,
    /// Those that vary, each with its place among those that were asked for.
    integers: Box<[(Integer, usize)]>,
}

/// What others have to have in common with a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its words, and the bits of them that count.
    words: Box<[u64]>,
    masks: Box<[u64]>,
    bytes: usize,
}

impl Varying {
    /// Those of `slots` vary, of the integers that a gatherer puts into slots.
    pub(super) fn new(integers: impl Iterator<Item = Integer>, bytes: usize, slots: &[usize]) -> Self {
        let place = |integer: Integer| slots.iter().position(|slot| *slot == usize::from(integer.slot));
        let varying = integers.filter_map(|integer| Some((integer, place(integer)?)));
        let varying: Box<[_]> = varying.collect();
        let mut constant = vec![u8::MAX; bytes];
        for (integer, _) in &varying {
            constant.iter_mut().skip(integer.at.into()).take(integer.bits.bytes()).for_each(|byte| *byte = 0);
        }
        Self { masks: words_of(&constant), constant: constant.into(), integers: varying }
    }

    /// Returns a number that payloads have in common whose integers are the same but for those that vary; none if
    /// `data` ends with these or just behind them.
    #[inline]
    pub fn common(&self, data: &[u8]) -> Option<u64> {
        let (words, _) = data.get(..self.masks.len() * WORD)?.as_chunks();
        // Products that do not wait for each other, by factors that are odd and differ.
        let mut factor = 0x9e37_79b9_7f4a_7c15_u64;
        let mut sum = 0u64;
        for (word, mask) in words.iter().zip(&self.masks) {
            sum = sum.wrapping_add((u64::from_le_bytes(*word) & mask).wrapping_mul(factor));
            factor = factor.wrapping_add(0x3c6e_f372_fe94_f82a);
        }
        Some(sum ^ (sum >> 32))
    }

    /// Keeps what others are to have in common with the payload of so many bytes with which `data` begins.
    pub fn known(&self, data: &[u8], bytes: usize) -> Option<Known> {
        let mut constant = self.constant.to_vec();
        constant.resize(bytes, u8::MAX);
        let masks = words_of(&constant);
        let words = words_of(data.get(..bytes)?);
        Some(Known {
            words: words.iter().zip(&masks).map(|(word, mask)| word & mask).collect(),
            masks,
            bytes,
        })
    }

    /// Puts the integers that vary to where their slots were among those that were given. None if `data` ends with these
    /// or just behind them.
    #[inline]
    pub fn read(&self, data: &[u8], to: &mut [u64]) -> Option<()> {
        for (integer, place) in &self.integers {
            *to.get_mut(*place)? = integer.bits.of_word(word(data, integer.at.into())?);
        }
        Some(())
    }
}

impl Known {
    /// Returns how long the payload is with which `data` begins, if it is like this one; none if it is not, and if `data`
    /// ends just behind it.
    #[inline]
    pub fn length(&self, data: &[u8]) -> Option<usize> {
        let (words, _) = data.get(..self.words.len() * WORD)?.as_chunks();
        let known = self.words.iter().zip(&self.masks);
        let other =
            |(word, (known, mask)): (&[u8; WORD], (&u64, &u64))| (u64::from_le_bytes(*word) & mask) ^ known;
        let others = words.iter().zip(known).map(other).fold(0, |all, other| all | other);
        (others == 0).then_some(self.bytes)
    }
}

/// Bytes as words; 0 where the last one has none.
fn words_of(bytes: &[u8]) -> Box<[u64]> {
    let word = |bytes: &[u8]| {
        let mut word = [0; WORD];
        word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        u64::from_le_bytes(word)
    };
    bytes.chunks(WORD).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::super::gather::{Gatherer, Slots};
    use crate::class::{FieldClass, FieldPath, IntegerClass, StructClass};

    fn payload(time: i64, kernel: u16, list: &[u8]) -> Vec<u8> {
        let mut payload = vec![7];
        payload.extend(&time.to_le_bytes()[..6]);
        payload.extend(kernel.to_le_bytes());
        payload.extend(&(-time).to_le_bytes()[..6]);
        payload.push(list.len() as u8);
        payload.extend(list);
        payload
    }

    #[test]
    fn payloads_are_alike_but_for_what_varies() {
        let list = FieldClass::sequence(FieldPath::relative("n".to_owned()), IntegerClass::unsigned(8));
        let class = StructClass::default()
            .field("queue", IntegerClass::unsigned(8))
            .field("before", IntegerClass::signed(48))
            .field("kernel", IntegerClass::unsigned(16))
            .field("after", IntegerClass::signed(48))
            .field("n", IntegerClass::unsigned(8))
            .field("list", list);
        let one = |first| Some(Slots { first, most: 1, count: None });
        let slots = [one(3), one(0), one(4), one(1), None, one(5)];
        let gatherer = Gatherer::new(&class, &slots).expect("plain integers");
        let varying = gatherer.varying(&[1, 2, 0]);
        // What comes behind it does not count.
        let with = |mut payload: Vec<u8>, behind: u8| {
            payload.extend([behind; 16]);
            payload
        };
        let first = with(payload(5, 9, &[1, 2]), 1);
        let known = varying.known(&first, 18).expect("it is there");
        let same = with(payload(-6, 9, &[1, 2]), 2);
        assert_eq!([&first, &same].map(|data| known.length(data)), [Some(18); 2]);
        assert_eq!(varying.common(&first), varying.common(&same));
        let mut places = [99; 3];
        assert_eq!((varying.read(&same, &mut places), places), (Some(()), [6, 99, -6i64 as u64]));
        for other in
            [payload(5, 8, &[1, 2]), payload(5, 9, &[1, 3]), payload(5, 9, &[1]), payload(5, 9, &[1, 2, 3])]
        {
            assert_eq!(known.length(&with(other, 1)), None);
        }
        assert_ne!(varying.common(&first), varying.common(&with(payload(5, 8, &[1, 2]), 1)));
        // Where whole words are missing, it has to be read otherwise.
        let cut = &first[..18];
        assert_eq!((known.length(cut), varying.read(&first[..10], &mut places)), (None, None));
        assert_eq!((varying.common(&first[..15]), varying.known(&first[..17], 18)), (None, None));
    }
}
