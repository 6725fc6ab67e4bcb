//! Types and enumerations of a model, by name. A model has hundreds, and who reads a trace asks for few of them, so of a
//! text that is known to be as it was written each is understood when somebody asks for it.

use std::fmt;
use std::ops::{Index, Range};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::extracted::{EnumGroup, Type};

/// What has a name, by which it is looked for.
pub trait HasName {
    /// Returns the name.
    fn name(&self) -> &str;
}

impl HasName for Type {
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for EnumGroup {
    fn name(&self) -> &str {
        &self.name
    }
}

/// A list, in its order.
#[derive(Clone)]
pub struct Listed<T> {
    items: Vec<Item<T>>,
    places: OnceLock<Places>,
}

/// Where names are: a table with room for twice as many, by a hash of the name. One and the position, 0 of an empty place.
type Places = Box<[u32]>;

#[derive(Clone)]
struct Item<T> {
    /// Its line, empty if it was understood at once.
    line: Box<str>,
    /// Where its name is in the line.
    name: Range<usize>,
    value: OnceLock<Box<T>>,
}

/// What a line begins with.
pub(crate) const NAME: &str = "{\"name\":\"";

impl<T: HasName + DeserializeOwned> Item<T> {
    /// None if the line does not begin as those do that we write, or may have an escape.
    fn later(line: &str) -> Option<Self> {
        let name = name_of(line)?;
        (line.ends_with('}') && memchr::memchr(b'\\', line.as_bytes()).is_none()).then_some(())?;
        Some(Self { name, line: line.into(), value: OnceLock::new() })
    }

    fn name(&self) -> &str {
        match self.value.get() {
            Some(value) => value.name(),
            None => self.line.get(self.name.clone()).unwrap_or_default(),
        }
    }

    /// None if the line is not what it was taken for.
    fn get(&self) -> Option<&T> {
        if self.value.get().is_none() {
            let value = serde_json::from_str(&self.line).ok()?;
            // Another thread may have been quicker.
            let _ = self.value.set(Box::new(value));
        }
        self.value.get().map(|value| &**value)
    }
}

/// Returns where the name is in a line that begins with it.
pub(crate) fn name_of(line: &str) -> Option<Range<usize>> {
    let rest = line.strip_prefix(NAME)?;
    let length = memchr::memchr(b'"', rest.as_bytes())?;
    Some(NAME.len()..NAME.len() + length)
}

impl<T: HasName + DeserializeOwned> Listed<T> {
    /// Those of lines as `cargo xtask codegen` writes them, with commas between them. They are taken for what they should
    /// be, so the text must be known to be as it was written. None if a line begins otherwise.
    pub(crate) fn later(lines: &str) -> Option<Self> {
        if lines.is_empty() {
            return Some(Self::default());
        }
        let lines = lines.split('\n').map(|line| line.strip_suffix(',').unwrap_or(line));
        let items = lines.map(Item::later).collect::<Option<_>>()?;
        Some(Self { items, places: OnceLock::new() })
    }

    /// Returns the first of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let places = self.places.get_or_init(|| self.places());
        let at = *places.get(self.place(places, name)?)?;
        self.items.get((at as usize).checked_sub(1)?)?.get()
    }

    fn places(&self) -> Places {
        let mut places: Places = vec![0; (2 * self.items.len()).next_power_of_two()].into();
        for (item, number) in self.items.iter().zip(1u32..) {
            let free = self.place(&places, item.name()).and_then(|at| places.get_mut(at));
            // Of equal names the first counts.
            if let Some(free @ 0) = free {
                *free = number;
            }
        }
        places
    }

    /// Returns where a name is, or where it would be.
    fn place(&self, places: &[u32], name: &str) -> Option<usize> {
        let mask = places.len().checked_sub(1)?;
        let mut at = hash(name) & mask;
        // Half of the places are free.
        loop {
            let other = match *places.get(at)? {
                0 => return Some(at),
                number => self.items.get(number as usize - 1)?,
            };
            if other.name() == name {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns all names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(Item::name)
    }

    /// Returns all, in order: each is understood.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter_map(Item::get)
    }

    /// Returns those in whose text a word may stand, in order.
    pub fn mentioning(&self, word: &str) -> impl Iterator<Item = &T> {
        let may = move |item: &&Item<T>| item.value.get().is_some() || item.line.contains(word);
        self.items.iter().filter(may).filter_map(Item::get)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Of a name's length, beginning and end: names are asked for often, and differ in these.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let word = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(23),
        _ => bytes.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)),
    };
    let mixed = (word ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

impl<T> From<Vec<T>> for Listed<T> {
    fn from(all: Vec<T>) -> Self {
        let item = |value: T| Item { line: Box::default(), name: 0..0, value: Box::new(value).into() };
        Self { items: all.into_iter().map(item).collect(), places: OnceLock::new() }
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: HasName + DeserializeOwned> Index<usize> for Listed<T> {
    type Output = T;

    #[allow(clippy::expect_used)] // as of a slice
    fn index(&self, at: usize) -> &T {
        self.items.get(at).and_then(Item::get).expect("a position in the list")
    }
}

impl<T: HasName + DeserializeOwned + PartialEq> PartialEq for Listed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: HasName + DeserializeOwned + fmt::Debug> fmt::Debug for Listed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: HasName + DeserializeOwned + Serialize> Serialize for Listed<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        "{\"name\":\"b\",\"values\":[[\"one\",1]]},\n",
        "{\"name\":\"a\",\"values\":[]},\n",
        "{\"name\":\"b\",\"bits\":true,\"values\":[]}"
    );

    #[test]
    fn lines_are_the_same_later() {
        let lazy: Listed<EnumGroup> = Listed::later(LINES).expect("three lines");
        let whole: Listed<EnumGroup> = serde_json::from_str(&format!("[{LINES}]")).expect("a list");
        assert_eq!(lazy.names().collect::<Vec<_>>(), ["b", "a", "b"]);
        assert!(lazy.items.iter().all(|item| item.value.get().is_none()));
        for list in [&lazy, &whole] {
            assert_eq!(list.get("b").map(|group| group.values.len()), Some(1), "the first of its name");
            assert_eq!(list.get("a").map(|group| group.values.len()), Some(0));
            assert_eq!((list.get(""), list.get("c"), list.len()), (None, None, 3));
        }
        assert_eq!(lazy.items.iter().filter(|item| item.value.get().is_some()).count(), 2);
        assert_eq!(lazy, whole);
        assert_eq!((lazy[2].bits, lazy.is_empty()), (true, false));
        assert_eq!(serde_json::to_string(&lazy).expect("a text"), format!("[{}]", LINES.replace('\n', "")));
    }

    #[test]
    fn what_is_not_written_so_is_not_taken_for_it() {
        for wrong in
            ["{}", "\n", "{ \"name\":\"b\"}", "{\"name\":\"b", "{\"name\":\"b\\n\"}", "{\"name\":\"b\"}\n"]
        {
            assert!(Listed::<EnumGroup>::later(wrong).is_none(), "{wrong}");
        }
    }
}
