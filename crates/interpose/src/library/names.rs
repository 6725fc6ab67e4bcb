//! The names of an API's functions, as one text.
//!
//! A list of references would be a list of addresses, which the dynamic loader has to move in each process that the
//! library is loaded into, whether or not it has to do with the API: 24 bytes to read for each name, and pages to write.

use std::ffi::CStr;

/// All names, by the numbers of the functions. [`names!`](crate::names) makes it.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The names, each with its NUL, one behind the other.
    text: &'static [u8],
    /// Where each begins, and where the last ends.
    starts: &'static [u32],
    /// The bytes with which names begin, as a set.
    firsts: [u64; 4],
}

impl Names {
    /// Of what [`text`] and [`starts`] made of the same names.
    ///
    /// # Panics
    /// When it is evaluated, which is while compiling: they are not of the same names.
    pub const fn new(text: &'static [u8], starts: &'static [u32]) -> Names {
        let (mut firsts, mut number) = ([0; 4], 0);
        while number + 1 < starts.len() {
            let first = text[starts[number] as usize];
            firsts[(first >> 6) as usize] |= 1 << (first & 63);
            number += 1;
        }
        Names { text, starts, firsts }
    }

    /// Whether a name begins with this byte.
    pub fn begin_with(&self, first: u8) -> bool {
        self.firsts.get(usize::from(first >> 6)).is_some_and(|set| set >> (first & 63) & 1 != 0)
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a function.
    pub fn get(&self, number: usize) -> Option<&'static CStr> {
        let (start, end) = (*self.starts.get(number)?, *self.starts.get(number + 1)?);
        CStr::from_bytes_with_nul(self.text.get(start as usize..end as usize)?).ok()
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &'static CStr> {
        (0..self.len()).map_while(|number| self.get(number))
    }
}

/// Bytes that names have together, each with its NUL.
pub const fn bytes<const COUNT: usize>(names: &[&CStr; COUNT]) -> usize {
    let (mut all, mut number) = (0, 0);
    while number < COUNT {
        all += names[number].to_bytes_with_nul().len();
        number += 1;
    }
    all
}

/// Names one behind the other; `BYTES` is what [`bytes`] returns for them.
///
/// # Panics
/// When it is evaluated, which is while compiling: `BYTES` is another number.
pub const fn text<const COUNT: usize, const BYTES: usize>(names: &[&CStr; COUNT]) -> [u8; BYTES] {
    let mut text = [0; BYTES];
    let (mut all, mut number) = (0, 0);
    while number < COUNT {
        let name = names[number].to_bytes_with_nul();
        let mut i = 0;
        while i < name.len() {
            text[all] = name[i];
            all += 1;
            i += 1;
        }
        number += 1;
    }
    assert!(all == BYTES);
    text
}

/// Where each name begins in [`text`], and where the last ends; `PLACES` is one more than there are names.
///
/// # Panics
/// When it is evaluated, which is while compiling: `PLACES` is another number.
pub const fn starts<const COUNT: usize, const PLACES: usize>(names: &[&CStr; COUNT]) -> [u32; PLACES] {
    assert!(PLACES == COUNT + 1);
    let mut starts = [0; PLACES];
    let mut number = 0;
    while number < COUNT {
        starts[number + 1] = starts[number] + names[number].to_bytes_with_nul().len() as u32;
        number += 1;
    }
    starts
}

/// Makes [`Names`] of a list of names, which is there while compiling only.
#[macro_export]
macro_rules! names {
    ($list:path) => {{
        static TEXT: [u8; $crate::library::names::bytes(&$list)] = $crate::library::names::text(&$list);
        static STARTS: [u32; $list.len() + 1] = $crate::library::names::starts(&$list);
        $crate::library::names::Names::new(&TEXT, &STARTS)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_list() {
        static LIST: [&CStr; 4] = [c"toyOpen", c"", c"toyClose", c"toyOpen_v2"];
        static NAMES: Names = crate::names!(LIST);
        assert_eq!(NAMES.iter().collect::<Vec<_>>(), LIST);
        assert_eq!((NAMES.len(), NAMES.get(1), NAMES.get(4)), (4, Some(c""), None));
        let firsts: Vec<u8> = (0..=255).filter(|first| NAMES.begin_with(*first)).collect();
        assert_eq!(firsts, [0, b't']);
        static NONE: [&CStr; 0] = [];
        let none: Names = crate::names!(NONE);
        assert!(none.is_empty() && none.get(0).is_none());
    }
}
