//! Names that are written once and then referred to by number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::packets::field::interned;
use super::proto::Message;

/// The hash of Fowler, Noll and Vo, with words of eight bytes: names are short
/// and nobody chooses them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
            self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
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

/// Numbers of names; from 1 in each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: [HashMap<String, u64, BuildHasherDefault<Fnv>>; 3],
    /// Names not yet written.
    fresh: Vec<(Of, u64, String)>,
}

impl Names {
    /// The number of a name.
    pub fn number(&mut self, of: Of, name: &str) -> u64 {
        let numbers = &mut self.numbers[of as usize];
        if let Some(&number) = numbers.get(name) {
            return number;
        }
        let number = numbers.len() as u64 + 1;
        numbers.insert(name.to_owned(), number);
        self.fresh.push((of, number, name.to_owned()));
        number
    }

    /// Whether there are names to be written before the next packet.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Writes those names as `InternedData`.
    pub fn write_fresh(&mut self, data: &mut Message) {
        for (of, number, name) in self.fresh.drain(..) {
            let field = match of {
                Of::Category => interned::CATEGORY,
                Of::Event => interned::EVENT_NAME,
                Of::Annotation => interned::ANNOTATION_NAME,
            };
            data.message(field, |m| {
                m.varint(interned::IID, number);
                m.string(interned::TEXT, &name);
            });
        }
    }
}
