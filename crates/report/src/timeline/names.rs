//! Names that are written once in each file and then referred to by number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::packets::field::interned;
use super::proto::Message;

/// Names that are remembered, of each kind; more are written out where they stand.
const KEPT: usize = 1 << 16;
/// Longer ones are written out, too.
const LONGEST: usize = 1024;

/// The hash of Fowler, Noll and Vo, with words of eight bytes: names are short
/// and nobody chooses them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut step = |word: u64| self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| step(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            step(rest.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte)));
        }
    }
}

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Category,
    Event,
    Annotation,
}

/// A name, and the last file that it is written in.
#[derive(Clone, Debug)]
struct Known {
    name: Box<str>,
    file: u32,
}

/// Where a name was when it was asked for last, and its number. Most names stay where they are.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    address: usize,
    number: u32,
}

/// Names that are found by where they are.
const SEEN: usize = 256;

/// Numbers of names, from 1 in each kind; they are the same in all files.
#[derive(Clone, Debug)]
pub(super) struct Names {
    seen: [[Seen; SEEN]; 3],
    numbers: [HashMap<Box<str>, u32, BuildHasherDefault<Fnv>>; 3],
    known: [Vec<Known>; 3],
    /// Names not yet written in this file.
    fresh: Vec<(Of, u32)>,
    /// Counts the files.
    file: u32,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            seen: [[Seen::default(); SEEN]; 3],
            numbers: Default::default(),
            known: Default::default(),
            fresh: Vec::new(),
            file: 0,
        }
    }
}

impl Names {
    /// A new file begins, in which no name is written.
    pub fn begin_file(&mut self) {
        self.file += 1;
        self.fresh.clear();
    }

    /// The number of a name; 0 if it has none.
    #[inline]
    pub fn number(&mut self, of: Of, name: &str) -> u64 {
        let address = name.as_ptr() as usize;
        let slot = (address >> 3 ^ address >> 11) % SEEN;
        let seen = self.seen[of as usize][slot];
        let known = &mut self.known[of as usize];
        // Another name may have come to the same place.
        if seen.address == address
            && let Some(known) = known.get_mut((seen.number as usize).wrapping_sub(1))
            && *known.name == *name
        {
            if known.file != self.file {
                known.file = self.file;
                self.fresh.push((of, seen.number));
            }
            return seen.number.into();
        }
        let number = self.search(of, name);
        self.seen[of as usize][slot] = Seen { address, number };
        number.into()
    }

    fn search(&mut self, of: Of, name: &str) -> u32 {
        let number = match self.numbers[of as usize].get(name) {
            Some(&number) => number,
            None => self.add(of, name),
        };
        self.again(of, number.into());
        number
    }

    #[cold]
    fn add(&mut self, of: Of, name: &str) -> u32 {
        let known = &mut self.known[of as usize];
        if known.len() >= KEPT || name.len() > LONGEST {
            return 0;
        }
        known.push(Known { name: name.into(), file: 0 });
        let number = u32::try_from(known.len()).unwrap_or(0);
        self.numbers[of as usize].insert(name.into(), number);
        number
    }

    /// A number is used once more.
    #[inline]
    pub fn again(&mut self, of: Of, number: u64) {
        let at = (number as usize).wrapping_sub(1);
        if let Some(known) = self.known[of as usize].get_mut(at)
            && known.file != self.file
        {
            known.file = self.file;
            self.fresh.push((of, number as u32));
        }
    }

    /// Whether there are names to be written before the next packet.
    #[inline]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Writes those names as `InternedData`.
    pub fn write_fresh(&mut self, data: &mut Message) {
        for (of, number) in self.fresh.drain(..) {
            let Some(known) = self.known[of as usize].get(number as usize - 1) else { continue };
            let field = match of {
                Of::Category => interned::CATEGORY,
                Of::Event => interned::EVENT_NAME,
                Of::Annotation => interned::ANNOTATION_NAME,
            };
            data.message(field, |m| {
                m.varint(interned::IID, number.into());
                m.string(interned::TEXT, &known.name);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_the_names_that_it_uses() {
        let mut names = Names::default();
        names.begin_file();
        assert_eq!((names.number(Of::Event, "a"), names.number(Of::Event, "b")), (1, 2));
        assert!(names.has_fresh());
        names.write_fresh(&mut Message::default());
        assert_eq!(names.number(Of::Event, "a"), 1);
        assert!(!names.has_fresh());
        names.begin_file();
        assert_eq!(names.number(Of::Event, "b"), 2);
        let mut data = Message::default();
        names.write_fresh(&mut data);
        assert_eq!(data.bytes(), b"\x12\x05\x08\x02\x12\x01b");
    }

    #[test]
    fn names_without_end_are_not_remembered() {
        let mut names = Names::default();
        names.begin_file();
        for i in 0..KEPT {
            assert!(names.number(Of::Event, &i.to_string()) > 0);
        }
        assert_eq!(names.number(Of::Event, "one more"), 0);
        assert_eq!(names.number(Of::Event, "7"), 8);
        assert_eq!(names.number(Of::Category, &"x".repeat(LONGEST + 1)), 0);
    }
}
