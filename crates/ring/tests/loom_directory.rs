//! Every interleaving of threads that make rings and the drainer that finds them, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-ring --test loom_directory --release`.
//!
//! Each ordering and step that a test names was weakened or left out once, and the test failed.
#![cfg(loom)]

use hetrace_ring::abi::directory::{Entry, Used};
use hetrace_ring::abi::{FIRST_RING, PAGE};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
// Of the test, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

const LENGTH: u64 = 2 * PAGE as u64;

/// An arena with room for two rings.
struct Arena {
    used: Used,
    entries: [Entry; 2],
    /// What a ring's header says.
    headers: [UnsafeCell<u64>; 2],
}

/// As `carve_unpaid` does it: takes a place, fills the header in, and makes the ring known under its number.
fn make(arena: &Arena, number: usize, limit: u64) -> bool {
    let Some(offset) = arena.used.take(LENGTH, limit) else { return false };
    let place = ((offset - FIRST_RING) / LENGTH) as usize;
    // loom reports a race if another has the place, too, or the drainer looks already.
    arena.headers[place].with_mut(|p| unsafe { *p = number as u64 });
    arena.entries[number].publish(offset, PAGE as u64);
    true
}

fn arena() -> Arc<Arena> {
    let arena = Arena {
        used: Used::new(),
        entries: [Entry::new(), Entry::new()],
        headers: [UnsafeCell::new(9), UnsafeCell::new(9)],
    };
    arena.used.begin();
    Arc::new(arena)
}

/// Two threads make a ring each, and the drainer finds those that are complete, whole.
/// The exchange in `Used::take`, Release in `Entry::publish`, Acquire in `Entry::word`.
#[test]
fn a_ring_is_found_whole() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let arena = arena();
        let threads = [0, 1].map(|number| {
            let arena = arena.clone();
            loom::thread::spawn(move || assert!(make(&arena, number, FIRST_RING + 2 * LENGTH)))
        });
        for (number, entry) in arena.entries.iter().enumerate() {
            if let Some((offset, data)) = entry.find() {
                FOUND.fetch_add(1, Ordering::Relaxed);
                assert_eq!(data, PAGE as u64);
                let place = ((offset - FIRST_RING) / LENGTH) as usize;
                assert_eq!(arena.headers[place].with(|p| unsafe { *p }), number as u64);
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert!(FOUND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Where there is room for one, one of two threads has it. The exchange in `Used::take`.
#[test]
fn the_last_place_is_one_threads() {
    loom::model(|| {
        let arena = arena();
        let limit = FIRST_RING + LENGTH + 1;
        let other = {
            let arena = arena.clone();
            loom::thread::spawn(move || make(&arena, 0, limit))
        };
        let here = make(&arena, 1, limit);
        assert!(here ^ other.join().unwrap());
        assert_eq!(arena.used.get(), FIRST_RING + LENGTH);
    });
}
