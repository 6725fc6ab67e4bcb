//! Every interleaving of threads of a process that make what is the process's, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_process --release`.
//!
//! The files are compiled here with loom's atomics. Each ordering and step that a test names was weakened or left out
//! once, and the test failed.
#![cfg(loom)]
#![allow(dead_code, unused_imports, reason = "the files are compiled as they are")]

#[path = "../src/commands/owner.rs"]
mod owner;
#[path = "../src/pair.rs"]
mod pair;
#[path = "../src/phase.rs"]
mod phase;
#[path = "../src/published.rs"]
mod published;
#[path = "../src/share.rs"]
mod share;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::thread::yield_now as spin_loop;
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use owner::Owner;
use pair::Pair;
use phase::{Phase, Stage};
use published::Published;
use share::Share;
// Of the tests, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two threads need the arena: one makes it, and who finds it ready finds all of it.
/// Release in `Phase::finish`, Acquire in `Phase::get`, the exchange in `Phase::begin`.
#[test]
fn one_thread_makes_the_arena_and_others_find_it_whole() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Phase::new(), UnsafeCell::new(0u64)));
        let need = |shared: &(Phase, UnsafeCell<u64>), me: u64| {
            if shared.0.begin(me) {
                // loom reports a race if another makes it, too, or looks already.
                shared.1.with_mut(|p| unsafe { *p += 7 });
                shared.0.finish(true);
                return true;
            }
            if shared.0.get() == Stage::Ready {
                FOUND.fetch_add(1, Ordering::Relaxed);
                assert_eq!(shared.1.with(|p| unsafe { *p }), 7);
            }
            false
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || need(&shared, 16))
        };
        let here = need(&shared, 32);
        assert_ne!(here, other.join().unwrap());
        assert_eq!((shared.0.get(), shared.1.with(|p| unsafe { *p })), (Stage::Ready, 7));
    });
    assert!(FOUND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// One that is given up while it ends is ready all the same, if it comes to that.
/// The exchange in `Phase::give_up`.
#[test]
fn a_maker_that_is_given_up_at_its_end_is_ready() {
    loom::model(|| {
        let phase = Arc::new(Phase::new());
        assert!(phase.begin(16));
        let other = {
            let phase = phase.clone();
            thread::spawn(move || phase.give_up(16))
        };
        phase.finish(true);
        other.join().unwrap();
        assert_eq!(phase.get(), Stage::Ready);
    });
}

const PAGE: u64 = 4096;

/// Two threads that take memory at once do not take more than there is, while a third finds that the launcher has
/// looked again. The exchanges in `Share::take`.
#[test]
fn no_more_is_taken_than_there_is() {
    loom::model(|| {
        let share = Arc::new(Share::new());
        let take = |look| {
            let share = share.clone();
            thread::spawn(move || share.take(look, 3 * PAGE, 2 * PAGE))
        };
        let threads = [take(1), take(1)];
        let taken = threads.map(|thread| thread.join().unwrap());
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
        assert_eq!(share.taken(1), 2 * PAGE);
    });
}

/// What a thread takes when the launcher has looked again is not forgotten by another that finds that, too.
/// The exchange in `Share::take`.
#[test]
fn what_is_taken_of_a_new_look_is_not_forgotten() {
    loom::model(|| {
        let share = Arc::new(Share::new());
        assert!(share.take(1, 8 * PAGE, 5 * PAGE));
        let other = {
            let share = share.clone();
            thread::spawn(move || {
                assert!(share.take(2, 8 * PAGE, 3 * PAGE));
                share.give(2, PAGE);
            })
        };
        assert!(share.take(2, 8 * PAGE, 4 * PAGE));
        other.join().unwrap();
        assert_eq!(share.taken(2), 6 * PAGE);
    });
}

/// Who finds a pointer finds what was written there. Release in `Published::set`, Acquire in `Published::get`.
#[test]
fn what_a_pointer_leads_to_is_complete() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Published::<u64>::new(), UnsafeCell::new(0u64)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                if !shared.0.get().is_null() {
                    FOUND.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(shared.1.with(|p| unsafe { *p }), 7);
                }
            })
        };
        shared.1.with_mut(|p| unsafe { *p = 7 });
        shared.0.set(std::ptr::NonNull::dangling().as_ptr());
        other.join().unwrap();
    });
    assert!(FOUND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// One of two that take a pointer has it, with what was written there. The exchange in `Published::take`, and its Acquire.
#[test]
fn a_pointer_is_taken_by_one() {
    loom::model(|| {
        let shared = Arc::new((Published::<u64>::new(), UnsafeCell::new(0u64)));
        let take = |shared: &(Published<u64>, UnsafeCell<u64>)| {
            let mine = !shared.0.take().is_null();
            if mine {
                // loom reports a race if the other has it, too, or the one that left it is still there.
                shared.1.with_mut(|p| unsafe { *p += 1 });
            }
            mine
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || take(&shared))
        };
        shared.1.with_mut(|p| unsafe { *p = 7 });
        shared.0.set(std::ptr::NonNull::dangling().as_ptr());
        let here = take(&shared);
        assert!(here ^ other.join().unwrap());
        assert_eq!(shared.1.with(|p| unsafe { *p }), 8);
    });
}

/// In a forked child two threads count at once what their parent has counted before: nothing of theirs is cleared.
/// The exchange in `Owner::take`, its Release store, and the Acquire loads.
#[test]
fn what_a_child_counts_is_not_cleared() {
    static CLEARED: AtomicUsize = AtomicUsize::new(0);
    /// Whose it is, a count, and what only who clears it touches.
    type Shared = (Owner, primitive::AtomicU64, UnsafeCell<bool>);
    loom::model(|| {
        let shared: Arc<Shared> =
            Arc::new((Owner::new(), primitive::AtomicU64::new(0), UnsafeCell::new(false)));
        assert!(shared.0.take(7, || panic!("nobody has counted")));
        shared.1.store(5, Ordering::Relaxed);
        let count = |shared: &Shared| {
            if !shared.0.is(8) {
                shared.0.take(8, || {
                    CLEARED.fetch_add(1, Ordering::Relaxed);
                    shared.1.store(0, Ordering::Relaxed);
                    shared.2.with_mut(|p| unsafe { *p = true });
                });
            }
            // loom reports a race if another may still be clearing.
            assert!(shared.2.with(|p| unsafe { *p }));
            shared.1.fetch_add(1, Ordering::Relaxed);
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || count(&shared))
        };
        count(&shared);
        other.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Relaxed), 2);
    });
    assert!(CLEARED.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Of two threads that leave a pointer at once, one has left it, and both find what it leads to.
/// The exchange in `Published::first`, its Release, and its Acquire when it fails.
#[test]
fn of_pointers_that_are_left_at_once_one_stays() {
    static SECOND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Published::<u64>::new(), [UnsafeCell::new(0u64), UnsafeCell::new(0)]));
        // The pointers are never followed: they are the numbers of the cells.
        let leave = |shared: &(Published<u64>, [UnsafeCell<u64>; 2]), me: usize| {
            shared.1[me].with_mut(|p| unsafe { *p = 7 });
            let own = std::ptr::without_provenance_mut::<u64>(8 * (me + 1));
            let there = shared.0.first(own).addr() / 8 - 1;
            SECOND.fetch_add(usize::from(there != me), Ordering::Relaxed);
            assert_eq!(shared.1[there].with(|p| unsafe { *p }), 7);
            there
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || leave(&shared, 1))
        };
        let here = leave(&shared, 0);
        assert_eq!(here, other.join().unwrap());
    });
    assert!(SECOND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Numbers that are set together are read together. The odd version, Release of both numbers and of the even version, and
/// the Acquire loads.
#[test]
fn numbers_of_a_pair_are_of_one_time() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let pair = Arc::new(Pair::default());
        pair.set(1, 10);
        let other = {
            let pair = pair.clone();
            thread::spawn(move || {
                if let Some((first, second)) = pair.get() {
                    FOUND.fetch_or(1 << first, Ordering::Relaxed);
                    assert_eq!(second, 10 * first);
                }
            })
        };
        pair.set(2, 20);
        other.join().unwrap();
        assert_eq!(pair.get(), Some((2, 20)));
    });
    assert_eq!(FOUND.load(Ordering::Relaxed), 0b110, "loom has not tried what this is about");
}
