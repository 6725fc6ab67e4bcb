//! Every interleaving of those who ask about an object and those who end it, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_life --release`.
//!
//! The file is compiled here with loom's atomics. Each ordering and step that a test names was weakened or left out
//! once, and the test failed.
#![cfg(loom)]
#![allow(dead_code, unused_imports, reason = "the file is compiled as it is")]

#[path = "../src/life.rs"]
mod life;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

use life::Life;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
// Of the tests, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

/// A record, and what is known of the object that has it: of generation g, g.
struct Record {
    life: Life,
    known: UnsafeCell<u32>,
}

impl Record {
    fn new() -> Arc<Record> {
        let record = Record { life: Life::new(), known: UnsafeCell::new(0) };
        assert!(record.make());
        Arc::new(record)
    }

    fn make(&self) -> bool {
        let mine = self.life.make();
        if mine {
            // loom reports a race if somebody is still inside of the last one, or is here, too.
            self.known.with_mut(|p| unsafe { *p = self.life.generation() });
            self.life.begin();
        }
        mine
    }

    /// Returns whether it was there.
    fn ask(&self, generation: u32) -> bool {
        let Some(_inside) = self.life.enter(generation) else { return false };
        assert_eq!(self.known.with(|p| unsafe { *p }), generation);
        true
    }

    /// Returns whether this one has ended it.
    fn end(&self, generation: u32) -> bool {
        let wait = |_| {
            thread::yield_now();
            true
        };
        let Some(left) = self.life.end(generation, wait) else { return false };
        assert!(left);
        self.known.with_mut(|p| unsafe { *p = 0 });
        self.life.free();
        true
    }
}

/// Who is inside when the object ends is waited for, and nobody enters from then on.
/// The addition of 0 in `Life::end` and its two orderings; in `Life::enter` that it is counted first, and Acquire; Release in the
/// drop of `Use`.
#[test]
fn nobody_is_inside_of_what_has_ended() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let record = Record::new();
        let generation = record.life.generation();
        let other = {
            let record = record.clone();
            thread::spawn(move || record.ask(generation))
        };
        assert!(record.end(generation));
        INSIDE.fetch_add(usize::from(other.join().unwrap()), Ordering::Relaxed);
        assert!(!record.ask(generation));
    });
    assert!(INSIDE.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Who ends an object that another is ending, or has ended, does not end the one that has its record next.
/// The generation in the exchange in `Life::end`.
#[test]
fn an_object_ends_once_and_never_for_another() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let record = Record::new();
        let generation = record.life.generation();
        let other = {
            let record = record.clone();
            thread::spawn(move || record.end(generation))
        };
        let here = record.end(generation);
        let next = here && record.make();
        assert!(here ^ other.join().unwrap());
        assert_eq!(record.life.lives(), next);
        NEXT.fetch_add(usize::from(next && record.ask(record.life.generation())), Ordering::Relaxed);
    });
    assert!(NEXT.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// An object's record is filled in when it is known. Release in `Life::begin`, Acquire in `Life::known`.
#[test]
fn what_is_known_of_an_object_is_written() {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let record = Record::new();
        let first = record.life.generation();
        assert!(record.end(first));
        let other = {
            let record = record.clone();
            thread::spawn(move || {
                let Some(generation) = record.life.known() else { return };
                KNOWN.fetch_add(1, Ordering::Relaxed);
                assert_ne!(generation, first);
                assert_eq!(record.known.with(|p| unsafe { *p }), generation);
            })
        };
        assert!(record.make());
        other.join().unwrap();
    });
    assert!(KNOWN.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// The next object's record is filled in when the end of the last one is over. Release in `Life::free`, Acquire in `Life::make`.
#[test]
fn an_end_is_over_when_the_next_object_begins() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let record = Record::new();
        let other = {
            let record = record.clone();
            thread::spawn(move || MADE.fetch_add(usize::from(record.make()), Ordering::Relaxed))
        };
        assert!(record.end(record.life.generation()));
        other.join().unwrap();
    });
    assert!(MADE.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// One that breaks while it ends has ended. The exchange in `Life::give_up`.
#[test]
fn what_breaks_at_its_end_has_ended() {
    loom::model(|| {
        let record = Record::new();
        let generation = record.life.generation();
        let other = {
            let record = record.clone();
            thread::spawn(move || record.life.give_up())
        };
        assert!(record.end(generation));
        other.join().unwrap();
        assert!(record.life.known().is_none() && record.make());
    });
}
