//! Whether an object of the program's lives about which other threads ask its API: a record of ours that is used again
//! for a later object when this one has ended.
//!
//! ```text
//!           make             begin            end             free
//!   FREE ─────────► MAKING ─────────► LIVE ─────────► ENDING ─────────► FREE
//!                                       │ give_up        ▲
//!                                       └───► BROKEN ────┘
//! ```
//! * A generation, which goes up in `make`, distinguishes the objects: it stands in one word with the state, so that who
//!   ends one never ends the next.
//! * Who asks about the object enters first: it is counted, and then looks at the word. Who ends it changes the word, and
//!   then looks at the count, *by adding 0*: additions to one word have an order, so that either the one that enters comes
//!   first, and is counted, or it finds what the other has stored before. (Two plain loads could both miss, and an
//!   instruction more on the way in would be needed against that.)
//! * The end waits for those inside, a few microseconds; not for ever, as a handler may have left by `siglongjmp`.
//!
//! `tests/loom_life.rs` explores the interleavings.

use crate::primitive::{AtomicU32, AtomicU64, Ordering};

const FREE: u64 = 0;
const MAKING: u64 = 1;
const LIVE: u64 = 2;
/// An error made everything fail that was asked of it.
const BROKEN: u64 = 3;
const ENDING: u64 = 4;
/// The bits of a word that have its state.
const STATE: u64 = u32::MAX as u64;

/// State and generation of an object, and who asks about it.
#[derive(Debug)]
pub struct Life {
    word: AtomicU64,
    users: AtomicU32,
}

/// Proof that an object lives, and the reason why it goes on living.
#[derive(Debug)]
pub struct Use<'l>(&'l Life);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        // Pairs with the Acquire additions in `end`, and the load in `make`: what was done inside is over.
        self.0.users.fetch_sub(1, Ordering::Release);
    }
}

fn state(word: u64) -> u64 {
    word & STATE
}

fn generation(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Life {
    /// There was no object.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Life {
        Life { word: AtomicU64::new(FREE), users: AtomicU32::new(0) }
    }

    /// There was no object.
    #[cfg(loom)]
    pub fn new() -> Life {
        Life { word: AtomicU64::new(FREE), users: AtomicU32::new(0) }
    }

    /// Which object it is.
    pub fn generation(&self) -> u32 {
        generation(self.word.load(Ordering::Relaxed))
    }

    /// Whether it can be asked anything.
    #[inline]
    pub fn lives(&self) -> bool {
        state(self.word.load(Ordering::Relaxed)) == LIVE
    }

    /// Whether nothing is asked of it any more, though it has not ended.
    pub fn is_broken(&self) -> bool {
        state(self.word.load(Ordering::Acquire)) == BROKEN
    }

    /// Returns the object's generation if it has begun and not ended.
    #[inline]
    pub fn known(&self) -> Option<u32> {
        // Pairs with the Release store in `begin`: what is known of it is written.
        let word = self.word.load(Ordering::Acquire);
        matches!(state(word), LIVE | BROKEN).then(|| generation(word))
    }

    /// Takes a record that no object has. Returns whether it is this thread's to fill in.
    pub fn make(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if state(word) != FREE || self.users.load(Ordering::Acquire) != 0 {
            return false;
        }
        let next = u64::from(generation(word).wrapping_add(1)) << 32 | MAKING;
        // Pairs with the Release store in `free`: the last object's end is over.
        self.word.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// What [`Life::make`] took is filled in.
    pub fn begin(&self) {
        let word = self.word.load(Ordering::Relaxed) & !STATE | LIVE;
        // Pairs with the Acquire loads in `known` and `enter`.
        self.word.store(word, Ordering::Release);
    }

    /// Permission to ask about the object; `None` if it has ended, or another took its place.
    #[inline]
    pub fn enter(&self, generation: u32) -> Option<Use<'_>> {
        // Before the word is looked at, so that `end` sees one of the two: pairs with the Release additions there.
        self.users.fetch_add(1, Ordering::Acquire);
        let entered = Use(self);
        // Pairs with the Release store in `begin`.
        let lives = self.word.load(Ordering::Acquire) == u64::from(generation) << 32 | LIVE;
        lives.then_some(entered)
    }

    /// Everything fails that is asked of it: leave it alone from now on. Returns whether that is new.
    pub fn give_up(&self) -> bool {
        let broken = |word| (state(word) == LIVE).then_some(word & !STATE | BROKEN);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, broken).is_ok()
    }

    /// The object of this generation is about to end: from now on nobody enters. `wait` gets how often it was called before,
    /// and returns whether to look again. Returns whether all have left; none if it has ended already, or another is at it.
    pub fn end(&self, of: u32, mut wait: impl FnMut(u32) -> bool) -> Option<bool> {
        let ending = |word| {
            let is_it = matches!(state(word), LIVE | BROKEN) && generation(word) == of;
            is_it.then_some(word & !STATE | ENDING)
        };
        self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, ending).ok()?;
        let mut rounds = 0;
        // Release: pairs with the Acquire addition in `enter`, which finds that it is ending. Acquire: pairs with the
        // Release subtraction of `Use`.
        while self.users.fetch_add(0, Ordering::AcqRel) != 0 {
            if !wait(rounds) {
                return Some(false);
            }
            rounds += 1;
        }
        Some(true)
    }

    /// What was known of the object that has ended is forgotten: another may have the record.
    pub fn free(&self) {
        let word = self.word.load(Ordering::Relaxed) & !STATE | FREE;
        // Pairs with the Acquire exchange in `make`.
        self.word.store(word, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn begun(life: &Life) -> u32 {
        assert!(life.make());
        life.begin();
        life.generation()
    }

    #[test]
    fn who_is_inside_is_waited_for() {
        let life = Life::new();
        let first = begun(&life);
        let inside = life.enter(first);
        assert!(inside.is_some() && life.enter(first + 1).is_none());
        let mut rounds = 0;
        let left = life.end(first, |round| {
            rounds = round + 1;
            round < 4
        });
        assert_eq!((left, rounds), (Some(false), 5));
        assert!(life.enter(first).is_none() && !life.lives());
        life.free();
        assert!(!life.make(), "somebody is inside of the last one");
        drop(inside);
        assert!(life.make());
    }

    #[test]
    fn the_next_object_is_another() {
        let life = Life::new();
        assert!(life.known().is_none() && life.enter(0).is_none());
        let first = begun(&life);
        assert_eq!(life.known(), Some(first));
        assert_eq!(life.end(first, |_| false), Some(true));
        assert_eq!(life.end(first, |_| false), None, "it ends once");
        life.free();
        let second = begun(&life);
        assert_ne!(first, second);
        assert_eq!(life.end(first, |_| false), None, "that is another");
        assert!(life.enter(first).is_none() && life.enter(second).is_some() && life.lives());
    }

    #[test]
    fn one_that_broke_is_known_until_it_ends() {
        let life = Life::new();
        assert!(!life.give_up());
        let first = begun(&life);
        assert!(life.give_up() && !life.give_up());
        assert!(life.is_broken() && life.enter(first).is_none() && life.known() == Some(first));
        assert_eq!(life.end(first, |_| false), Some(true));
        assert!(!life.is_broken() && life.known().is_none());
    }
}
