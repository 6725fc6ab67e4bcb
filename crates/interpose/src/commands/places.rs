//! Places for what an API keeps of objects whose number is not known: made when they are needed, used again, and
//! never unmapped, so that a number always names memory.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::links::{Link, Spares};
use crate::mapped::{map_once, pages};

/// Places that are mapped together.
const CHUNK: usize = 1024;

/// What a place has room for.
///
/// # Safety
/// All bytes zero are a valid value, and every reference to it is shared.
pub unsafe trait Placed: Sync + 'static {
    /// Leads from one that is free to the next one. Whoever has taken the place leaves it alone.
    fn next(&self) -> &Link;
}

/// At most `CHUNKS` times 1024 places, with numbers from 1.
#[derive(Debug)]
pub struct Places<T: Placed, const CHUNKS: usize> {
    free: Spares,
    /// Places that were ever handed out.
    made: AtomicU32,
    chunks: [AtomicPtr<T>; CHUNKS],
}

impl<T: Placed, const CHUNKS: usize> Places<T, CHUNKS> {
    /// None.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Places {
            free: Spares::new(),
            made: AtomicU32::new(0),
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
        }
    }

    /// The place of a number, if there is one.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&'static T> {
        let at = number.wrapping_sub(1) as usize;
        let chunk = self.chunks.get(at / CHUNK)?.load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a chunk has this many places, is never unmapped, and zeros are a valid value.
        Some(unsafe { &*chunk.add(at % CHUNK) })
    }

    /// Returns a place that is the caller's from here on, as its last user left it, and its number; `None` if there
    /// are no more, or no memory.
    pub fn take(&self) -> Option<(u32, &'static T)> {
        let spare = self.free.take(|n| self.get(n).map(T::next));
        if spare != 0 {
            return Some((spare, self.get(spare)?));
        }
        let made = self.made.load(Ordering::Relaxed) as usize;
        self.chunk(made / CHUNK).then_some(())?;
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        // Others may have taken what was left of the chunk.
        self.chunk((number as usize - 1) / CHUNK).then_some(())?;
        Some((number, self.get(number)?))
    }

    /// Gives a place back.
    pub fn give(&self, number: u32) {
        if let Some(place) = self.get(number) {
            self.free.give(number, place.next());
        }
    }

    /// All places that were ever taken, with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &'static T)> {
        (1..=self.made.load(Ordering::Relaxed)).filter_map(|n| Some((n, self.get(n)?)))
    }

    /// Maps a chunk unless it is mapped. Returns whether it is there.
    fn chunk(&self, number: usize) -> bool {
        self.chunks.get(number).is_some_and(|place| map_once(place, CHUNK * size_of::<T>(), pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Thing(Link, AtomicU32);

    // SAFETY: atomics only, for which zeros are valid.
    unsafe impl Placed for Thing {
        fn next(&self) -> &Link {
            &self.0
        }
    }

    #[test]
    fn places_come_again_and_end() {
        static PLACES: Places<Thing, 2> = Places::new();
        let taken: Vec<u32> = (0..2048).filter_map(|_| PLACES.take()).map(|(number, _)| number).collect();
        assert_eq!(taken, (1..=2048).collect::<Vec<u32>>());
        assert!(PLACES.take().is_none());
        PLACES.get(77).expect("a place").1.store(5, Ordering::Relaxed);
        PLACES.give(77);
        PLACES.give(2000);
        let again: Vec<u32> = (0..3).filter_map(|_| PLACES.take()).map(|(number, _)| number).collect();
        assert_eq!(again, [2000, 77]);
        assert_eq!(PLACES.get(77).expect("a place").1.load(Ordering::Relaxed), 5);
        assert!(PLACES.get(0).is_none() && PLACES.get(4000).is_none());
    }
}
