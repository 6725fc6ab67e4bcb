//! Where a function stands in an API's list of names.
//!
//! A runtime asks for some five hundred functions of its driver when it starts, each by name, and reading
//! the whole list for each is most of what that takes. So the compiler makes a table of hashes.

use std::ffi::CStr;

use super::names::Names;

/// Stands where no name is.
const FREE: u16 = u16::MAX;

/// Places that a table for so many names needs: a power of two, at most half of it used.
pub const fn places(names: usize) -> usize {
    (2 * names + 1).next_power_of_two()
}

/// Makes the table of an API's names; `PLACES` is what [`places`] returns for them. Of a name that is there
/// twice the first one counts.
///
/// # Panics
/// When it is evaluated, which is while compiling: there are too many names.
pub const fn index<const NAMES: usize, const PLACES: usize>(names: &[&CStr; NAMES]) -> [u16; PLACES] {
    assert!(PLACES == places(NAMES) && NAMES < FREE as usize);
    let mut table = [FREE; PLACES];
    let mut number = 0;
    while number < NAMES {
        let mut place = hash(names[number].to_bytes()) & (PLACES - 1);
        while table[place] != FREE {
            place = (place + 1) & (PLACES - 1);
        }
        table[place] = number as u16;
        number += 1;
    }
    table
}

/// Returns the number of a name in `names`, for which [`index`] made `table`.
pub fn find(table: &[u16], names: &Names, name: &CStr) -> Option<usize> {
    let last = table.len().checked_sub(1)?;
    let mut place = hash(name.to_bytes()) & last;
    // Half of the places are free.
    loop {
        let number = usize::from(*table.get(place).filter(|number| **number != FREE)?);
        if names.get(number)? == name {
            return Some(number);
        }
        place = (place + 1) & last;
    }
}

/// FNV-1a, folded so that the low bits depend on all others.
const fn hash(bytes: &[u8]) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    (hash ^ hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_name_and_no_other() {
        static LIST: [&CStr; 5] = [c"toyOpen", c"toyClose", c"", c"toyOpen", c"toyOpen_v2"];
        static NAMES: Names = crate::names!(LIST);
        static TABLE: [u16; places(5)] = index(&LIST);
        let found: Vec<_> = NAMES.iter().map(|name| find(&TABLE, &NAMES, name)).collect();
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(0), Some(4)]);
        for other in [c"toyOpe", c"toyOpen_", c"toyOpen_v3", c"x"] {
            assert_eq!(find(&TABLE, &NAMES, other), None, "{other:?}");
        }
    }

    #[test]
    fn no_names_are_found_in_nothing() {
        static NO_NAMES: [&CStr; 0] = [];
        static NONE: Names = crate::names!(NO_NAMES);
        static TABLE: [u16; places(0)] = index(&NO_NAMES);
        assert_eq!(find(&TABLE, &NONE, c"toyOpen"), None);
        assert_eq!(find(&[], &NONE, c"toyOpen"), None);
    }
}
