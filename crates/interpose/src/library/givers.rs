//! The copies that functions were handed out of.
//!
//! A runtime asks its driver for five hundred functions when it starts. In which library each of them lies, and whether
//! that is a copy of the API's, is most of what handing it out takes; so it is remembered by the code of the library.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::P;
use crate::elf::Object;

/// Of several ages, and of several libraries.
static GIVERS: [Giver; 8] = [const { Giver::new() }; 8];

/// A copy that hands out its own functions, in an age of what lies where. Written once: the next age takes another.
struct Giver {
    taken: AtomicBool,
    /// All else is there.
    ready: AtomicBool,
    age: AtomicU64,
    copy: AtomicUsize,
    object: [AtomicUsize; Object::WORDS],
}

impl Giver {
    const fn new() -> Giver {
        Giver {
            taken: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            age: AtomicU64::new(0),
            copy: AtomicUsize::new(0),
            object: [const { AtomicUsize::new(0) }; Object::WORDS],
        }
    }

    /// The copy, if the address is among its code in this age.
    fn holding(&self, address: P, age: u64) -> Option<(usize, Object)> {
        // What was written before `ready` is seen with it, and is not written again.
        if !self.ready.load(Ordering::Acquire) || self.age.load(Ordering::Relaxed) != age {
            return None;
        }
        let words = self.object.each_ref().map(|word| word.load(Ordering::Relaxed));
        // SAFETY: words of a library that was loaded in this age, in which none was closed.
        let object = unsafe { Object::from_words(words) };
        object.executes(address).then(|| (self.copy.load(Ordering::Relaxed), object))
    }
}

/// The copy among whose code an address lies, and its file, if it was remembered in this age (`watch::moves`).
pub(super) fn known(address: P, age: u64) -> Option<(usize, Object)> {
    GIVERS.iter().find_map(|giver| giver.holding(address, age))
}

/// Remembers a copy that was looked at in an age, if there is room.
pub(super) fn remember((copy, object): &(usize, Object), age: u64) {
    let free = GIVERS.iter().find(|giver| !giver.taken.swap(true, Ordering::Relaxed));
    let Some(free) = free else { return };
    free.age.store(age, Ordering::Relaxed);
    free.copy.store(*copy, Ordering::Relaxed);
    for (place, word) in free.object.iter().zip(object.words()) {
        place.store(word, Ordering::Relaxed);
    }
    free.ready.store(true, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_known_by_addresses_in_its_code_in_one_age_only() {
        let libc =
            Object::holding(libc::getpid as *const std::ffi::c_void).expect("a library of this program");
        let getpid = libc.definition(c"getpid").expect("the C library's");
        let own = a_copy_is_known_by_addresses_in_its_code_in_one_age_only as P;
        assert!(known(getpid, 7).is_none(), "not seen yet");
        remember(&(2, libc), 7);
        let (copy, object) = known(getpid, 7).expect("just seen");
        assert_eq!((copy, object.words()), (2, libc.words()));
        assert_eq!(object.definition(c"getpid"), Some(getpid));
        assert!(known(getpid, 8).is_none(), "another library may lie there");
        assert!(known(own, 7).is_none(), "another library's");
        // Without room nothing is forgotten, and nothing else remembered.
        for age in 8..20 {
            remember(&(3, libc), age);
        }
        assert_eq!(known(getpid, 7).map(|found| found.0), Some(2));
        assert_eq!(known(getpid, 14).map(|found| found.0), Some(3));
        assert!(known(getpid, 15).is_none());
    }
}
