//! Every interleaving of threads that meet at a table or at an API's memory for a thread, explored
//! by loom: `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom --release`.
//!
//! The files are compiled here with loom's atomics. Each ordering that a test names was weakened
//! to `Relaxed` once, and the test failed.
#![cfg(loom)]

#[path = "../src/extra.rs"]
mod extra;
#[path = "../src/table.rs"]
mod table;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

use extra::Extra;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
// Of the tests, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};
use table::Table;

/// A table, and what the word 2 in it stands for: 7.
type Shared = Arc<(Table<2>, UnsafeCell<u64>)>;

/// Asks for an object's word, which is 1, while another thread makes it 2: who finds that finds what it
/// stands for. Returns the table, and whether the word was stored.
fn asked_while_set(ask: impl Fn(&Table<2>) -> Option<u64>) -> (Shared, bool) {
    let shared: Shared = Arc::new((Table::new(), UnsafeCell::new(0)));
    assert!(shared.0.set(16, 1));
    let maker = {
        let shared = shared.clone();
        loom::thread::spawn(move || {
            shared.1.with_mut(|p| unsafe { *p = 7 });
            shared.0.set(16, 2)
        })
    };
    let found = ask(&shared.0);
    if found == Some(2) {
        assert_eq!(shared.1.with(|p| unsafe { *p }), 7);
    } else {
        assert_eq!(found, Some(1));
    }
    let stored = maker.join().unwrap();
    (shared, stored)
}

/// What the word stands for that is stored for an object is there when another finds the word.
/// Release of the value in `Table::set`, Acquire of it in `Table::get`.
#[test]
fn what_a_value_stands_for_is_complete() {
    loom::model(|| {
        let (shared, stored) = asked_while_set(|table| table.get(16));
        assert!(stored);
        assert_eq!(shared.0.get(16), Some(2));
    });
}

/// What the word of an object stands for that is removed is complete, too.
/// Release of the value in `Table::set`, Acquire of it in `Table::remove`.
#[test]
fn what_a_removed_value_stands_for_is_complete() {
    loom::model(|| _ = asked_while_set(|table| table.remove(16)));
}

/// A new object is found with what its value stands for, or as one that is still being created.
/// Release of the value for a new key in `Table::set`, Acquire of it in `Table::get`.
#[test]
fn what_a_new_value_stands_for_is_complete() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Table::<2>::new(), UnsafeCell::new(0u64)));
        let reader = {
            let shared = shared.clone();
            loom::thread::spawn(move || match shared.0.get(16) {
                Some(2) => {
                    FOUND.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(shared.1.with(|p| unsafe { *p }), 7);
                }
                found => assert!(matches!(found, None | Some(0)), "{found:?}"),
            })
        };
        shared.1.with_mut(|p| unsafe { *p = 7 });
        assert!(shared.0.set(16, 2));
        reader.join().unwrap();
        assert_eq!(shared.0.get(16), Some(2));
    });
    assert!(FOUND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// An object in the slot of one that was removed keeps its value: that of the other does not come back.
/// Release of the key in `Table::remove`, Acquire of it for a new key in `Table::set`.
#[test]
fn a_slot_serves_one_object_after_another() {
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let table = Arc::new(Table::<1>::new());
        let first = {
            let table = table.clone();
            loom::thread::spawn(move || {
                let there = table.set(16, 1);
                if there {
                    assert_eq!(table.remove(16), Some(1));
                }
                there
            })
        };
        let second = table.set(32, 2);
        let first = first.join().unwrap();
        assert!(first || second);
        assert_eq!(table.get(32), second.then_some(2));
        SERVED.fetch_add(usize::from(first && second), Ordering::Relaxed);
    });
    assert!(SERVED.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Two threads that set different objects get different slots, and neither hides the other's.
/// The exchange in `Table::set`.
#[test]
fn objects_do_not_displace_each_other() {
    loom::model(|| {
        let table = Arc::new(Table::<2>::new());
        let other = {
            let table = table.clone();
            loom::thread::spawn(move || {
                assert!(table.set(16, 1));
                assert_eq!(table.get(16), Some(1));
            })
        };
        assert!(table.set(32, 2));
        assert_eq!(table.get(32), Some(2));
        other.join().unwrap();
        assert_eq!((table.get(16), table.get(32)), (Some(1), Some(2)));
        assert!(!table.set(48, 3), "full");
    });
}

/// One of two threads that remove an object gets its value, and its slot serves another.
/// The exchange in `Table::remove`.
#[test]
fn an_object_is_removed_once() {
    loom::model(|| {
        let table = Arc::new(Table::<2>::new());
        assert!(table.set(16, 1));
        let other = {
            let table = table.clone();
            loom::thread::spawn(move || table.remove(16))
        };
        let here = table.remove(16);
        let there = other.join().unwrap();
        assert_eq!(here.xor(there), Some(1), "{here:?} {there:?}");
        assert_eq!(table.get(16), None);
        assert!(table.set(32, 2) && table.set(48, 3));
    });
}

/// Of two threads that release an object at once, one finds that it was the last.
/// The exchange in `Table::update`.
#[test]
fn no_change_of_a_value_is_forgotten() {
    loom::model(|| {
        let table = Arc::new(Table::<2>::new());
        assert!(table.set(16, 2));
        let release = |table: &Table<2>| table.update(16, |references| references - 1);
        let other = {
            let table = table.clone();
            loom::thread::spawn(move || release(&table))
        };
        let mut before = [release(&table), other.join().unwrap()];
        before.sort_unstable();
        assert_eq!((before, table.get(16)), ([Some(1), Some(2)], Some(0)));
    });
}

/// Two threads that set one object use one slot: nothing is left of it when it was removed.
/// The second look at the key in `Table::set`.
#[test]
fn an_object_has_one_slot() {
    loom::model(|| {
        let table = Arc::new(Table::<2>::new());
        let other = {
            let table = table.clone();
            loom::thread::spawn(move || table.set(16, 1))
        };
        assert!(table.set(16, 2));
        assert!(other.join().unwrap());
        assert!(table.remove(16).is_some());
        assert_eq!(table.get(16), None);
    });
}

/// Of two threads that come with different values for one key both get that of the first, with what it stands for.
/// The exchange of the value in `Table::first`, and its orderings.
#[test]
fn the_first_value_is_that_of_all() {
    loom::model(|| {
        let shared = Arc::new((Table::<2>::new(), UnsafeCell::new(0u64), UnsafeCell::new(0u64)));
        let stands = |shared: &(Table<2>, UnsafeCell<u64>, UnsafeCell<u64>), value| {
            let made = if value == 1 { &shared.1 } else { &shared.2 };
            made.with_mut(|p| unsafe { *p = value });
            let first = shared.0.first(16, value).unwrap();
            let there = if first == 1 { &shared.1 } else { &shared.2 };
            assert_eq!(there.with(|p| unsafe { *p }), first);
            first
        };
        let other = {
            let shared = shared.clone();
            loom::thread::spawn(move || stands(&shared, 1))
        };
        let here = stands(&shared, 2);
        assert_eq!(other.join().unwrap(), here);
        assert_eq!(shared.0.get(16), Some(here));
    });
}

/// A thread's memory goes to one thread when the first has ended, with all that it left there.
/// Release in `Extra::release`, Acquire in `Extra::take`.
#[test]
fn memory_of_a_thread_that_ended_goes_to_one_other() {
    loom::model(|| {
        let block = Arc::new((Extra::new(), UnsafeCell::new(0u64)));
        assert!(block.0.take());
        let owner = {
            let block = block.clone();
            loom::thread::spawn(move || {
                block.1.with_mut(|p| unsafe { *p = 1 });
                block.0.release();
            })
        };
        let next = |block: Arc<(Extra, UnsafeCell<u64>)>| {
            let mine = block.0.take();
            if mine {
                // loom reports a race if the first may still be there, or another is, too.
                block.1.with_mut(|p| unsafe { *p += 1 });
            }
            mine
        };
        let other = {
            let block = block.clone();
            loom::thread::spawn(move || next(block))
        };
        let here = next(block.clone());
        let there = other.join().unwrap();
        owner.join().unwrap();
        assert!(!(here && there));
        let value = block.1.with(|p| unsafe { *p });
        assert_eq!(value, 1 + u64::from(here) + u64::from(there));
    });
}
