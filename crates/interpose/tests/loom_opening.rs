//! Every interleaving of threads that open and close libraries with those that watch, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_opening --release`.
//!
//! The files are compiled here with loom's atomics. Each ordering and step that a test names was weakened or left out
//! once, and the test failed.
#![cfg(loom)]
#![allow(dead_code, unused_imports, reason = "the files are compiled as they are")]

#[path = "../src/library/moves.rs"]
mod moves;
#[path = "../src/library/openers.rs"]
mod openers;
#[path = "../src/library/seal.rs"]
mod seal;
#[path = "../src/library/seen.rs"]
mod seen;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::thread::yield_now as spin_loop;
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use moves::Moves;
use openers::Openers;
use seal::Seal;
use seen::Seen;
// Of the tests, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

const OWN: u64 = 0;
const THUNK: u64 = 1;
const NOW: u64 = 10;
const LATER: u64 = 20;

/// A wrapper, and what `watch.rs` has.
struct World {
    seal: Seal,
    openers: Openers<2>,
    real: primitive::AtomicU64,
}

impl World {
    /// A watch that nobody is inside of any more.
    fn watched() -> Arc<World> {
        let real = primitive::AtomicU64::new(OWN);
        let world = World { seal: Seal::new(), openers: Openers::new(), real };
        world.opens(1);
        assert!(world.openers.has_left(1));
        Arc::new(world)
    }

    /// As `Library::opening` does it.
    fn opens(&self, me: u64) {
        self.openers.enters(me, NOW, LATER);
        if self.seal.extend(LATER) {
            self.seal();
        }
    }

    fn seal(&self) {
        self.seal.seal(|| self.real.store(THUNK, Ordering::Release));
    }

    /// As `Library::end_watch` does it.
    fn ends(&self) {
        self.seal.end(|_| self.openers.are_none(NOW), || self.real.store(OWN, Ordering::Release));
    }

    fn is_sealed(&self) -> bool {
        self.real.load(Ordering::Relaxed) == THUNK
    }
}

/// A thread that is inside of `dlopen` finds the wrappers sealed, however others end the watch before it meanwhile.
/// In `Seal::extend` that it is an exchange, to another value; the exchange in `Seal::end`; that `Seal::seal` waits for it; and that
/// the thread enters first.
#[test]
fn wrappers_are_sealed_while_a_thread_is_inside() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let world = World::watched();
        let other = {
            let world = world.clone();
            thread::spawn(move || world.ends())
        };
        world.opens(2);
        assert!(world.is_sealed());
        other.join().unwrap();
        assert!(world.is_sealed());
        // Nobody else is inside when this one is outside.
        assert!(world.openers.has_left(2));
        world.ends();
        assert!(!world.is_sealed());
        ENDED.fetch_add(1, Ordering::Relaxed);
    });
    assert!(ENDED.load(Ordering::Relaxed) > 0);
}

/// Of two threads that are inside the one that leaves does not end the watch of the other.
/// Acquire and Release in `Seal::extend`, `Seal::end` and `Openers`.
#[test]
fn who_leaves_does_not_end_the_watch_of_another() {
    loom::model(|| {
        let world = World::watched();
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                world.opens(3);
                assert!(world.openers.has_left(3));
                world.ends();
            })
        };
        world.opens(2);
        other.join().unwrap();
        assert!(world.is_sealed());
    });
}

/// A watch that is for ever is not made one with an end by a thread that opens something at that moment.
/// The exchange in `Seal::extend`.
#[test]
fn what_is_for_ever_stays() {
    loom::model(|| {
        let world = World::watched();
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                world.opens(2);
                assert!(world.openers.has_left(2));
                world.ends();
            })
        };
        world.seal.keep();
        world.seal();
        other.join().unwrap();
        assert_eq!(world.seal.until(), u64::MAX);
        assert!(world.is_sealed());
    });
}

/// Two libraries are opened at once after one was closed: neither comes before the address space counts as another.
/// That `Moves` is one word.
#[test]
fn none_is_opened_before_the_move_counts() {
    loom::model(|| {
        let moves = Arc::new(Moves::new());
        moves.closing();
        let before = moves.count();
        let open = move |moves: &Moves| {
            moves.opening();
            assert!(moves.count() > before);
        };
        let other = {
            let moves = moves.clone();
            thread::spawn(move || open(&moves))
        };
        open(&moves);
        other.join().unwrap();
        assert_eq!(moves.count(), before + 1);
    });
}

/// A library that is closed while another is opened counts, and so does the next one that is opened.
/// The exchanges in `Moves`.
#[test]
fn no_closing_is_forgotten() {
    loom::model(|| {
        let moves = Arc::new(Moves::new());
        moves.closing();
        let other = {
            let moves = moves.clone();
            thread::spawn(move || moves.closing())
        };
        moves.opening();
        let closed = other.join().unwrap();
        moves.opening();
        assert_eq!(moves.count(), closed + 1);
    });
}

/// Who finds that a caller was looked at finds what came of it. Release in `Seen::add`, Acquire in `Seen::holds`.
#[test]
fn what_was_found_out_about_a_caller_is_seen() {
    static HELD: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let caller = 0x7f00_0010_0000 as *const std::ffi::c_void;
        let shared = Arc::new((Seen::<1>::new(), UnsafeCell::new(0u64)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                if shared.0.holds(0x7f00_0010_0000 as *const std::ffi::c_void, 3) {
                    HELD.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(shared.1.with(|p| unsafe { *p }), 7);
                }
            })
        };
        shared.1.with_mut(|p| unsafe { *p = 7 });
        shared.0.add(caller, 3);
        other.join().unwrap();
        assert!(shared.0.holds(caller, 3) && !shared.0.holds(caller, 4));
    });
    assert!(HELD.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}
