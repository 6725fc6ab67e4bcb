//! Which libraries are loaded, by the beginnings of their names: for what an API can say by that alone.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::watch::age;
use crate::elf::each_object;

/// How often what was found to lack all is asked in vain before it is looked for again.
const PATIENCE: u64 = 64;

/// Whether a library of each of `N` kinds is loaded. Known until one is opened or closed.
#[derive(Debug)]
pub struct Named<const N: usize> {
    kinds: [&'static [&'static str]; N],
    /// What was found, one bit each in the lowest byte, [`KNOWN`], and above both the age in which it was.
    found: AtomicU64,
    /// How often nothing was found.
    asked: AtomicU64,
}

const KNOWN: u64 = 1 << 8;

impl<const N: usize> Named<N> {
    /// Kinds of libraries, each by the beginnings of their names.
    pub const fn new(kinds: [&'static [&'static str]; N]) -> Self {
        const { assert!(N <= 8) };
        Named { kinds, found: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    /// Whether each kind is loaded.
    pub fn loaded(&self) -> [bool; N] {
        // Read first: what is loaded meanwhile is of another age.
        let now = age() << 9 | KNOWN;
        let found = self.found.load(Ordering::Relaxed);
        let bits = match found & !0xff == now {
            // A library may be on its way whose age has begun already.
            true if found & 0xff == 0
                && self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(PATIENCE) =>
            {
                self.look(now)
            }
            true => found,
            false => self.look(now),
        };
        std::array::from_fn(|kind| bits >> kind & 1 != 0)
    }

    #[cold]
    fn look(&self, now: u64) -> u64 {
        let mut bits = now;
        each_object(|object| {
            let name = object.soname().map(CStr::to_bytes).unwrap_or_default();
            for (kind, beginnings) in self.kinds.iter().enumerate() {
                let is = beginnings.iter().any(|with| name.starts_with(with.as_bytes()));
                bits |= u64::from(is) << kind;
            }
            true
        });
        self.found.store(bits, Ordering::Relaxed);
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::Named;

    #[test]
    fn kinds_are_known_by_the_beginnings_of_names() {
        let kinds = Named::new([&["libc.so", "libmusl"], &["libnothing_of_this_name"]]);
        assert_eq!((kinds.loaded(), kinds.loaded()), ([true, false], [true, false]));
        let none = Named::new([&["libnothing_of_this_name"]]);
        assert!((0..200).all(|_| none.loaded() == [false]));
    }
}
