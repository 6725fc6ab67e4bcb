//! A signal handler between any two instructions of what puts a command into its thread's block, of what collects it, of
//! what sets an object in a table, and of what leaves a value to wait for a command and takes it up.

#[path = "../../../../ring/tests/stepping/mod.rs"]
mod stepping;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use stepping::{EVERY, How, Stepping, some_of};

use super::{Api, Depth, Kept, Put, Thread, collect, command, store, thread};
use crate::commands::waiting::Waiting;
use crate::table::Table;

const RELAXED: Ordering = Ordering::Relaxed;

/// Tokens of handlers' commands are from here on.
const HANDLER: u64 = 1000;
/// The commands of a store that is under test, as the handler of its thread has them.
static THREAD: AtomicPtr<Thread<u64, ()>> = AtomicPtr::new(std::ptr::null_mut());
static KEPT: AtomicU64 = AtomicU64::new(0);

fn put_as_handler() {
    // SAFETY: the one of the test that is stepping, which lives until that is over; handlers come in its thread only.
    let thread = unsafe { &*THREAD.load(RELAXED) };
    let token = HANDLER + KEPT.load(RELAXED);
    if thread.put(token, command(token)) != Put::Full {
        KEPT.fetch_add(1, RELAXED);
    }
}

/// Puts a command and collects, with a handler at a step of one of both that puts one, too. Returns at how many steps it
/// could come.
fn try_at(at: u64, while_collecting: bool) -> u64 {
    let store = store(1000);
    let (_, thread) = thread(store);
    let before: Vec<u64> = (1..=3).collect();
    for token in &before {
        assert_ne!(thread.put(*token, command(*token)), Put::Full);
    }
    THREAD.store(std::ptr::from_ref(&thread).cast_mut(), RELAXED);
    KEPT.store(0, RELAXED);
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    let stepping = Stepping::new(How::default(), put_as_handler);
    let steps = if while_collecting {
        assert_ne!(thread.put(9, command(9)), Put::Full);
        stepping.run(at, || _ = collect(store, Depth::All, &mut api, &mut kept))
    } else {
        stepping.run(at, || assert_ne!(thread.put(9, command(9)), Put::Full))
    };
    drop(stepping);
    // What comes next is put and collected as ever.
    assert_ne!(thread.put(10, command(10)), Put::Full);
    collect(store, Depth::All, &mut api, &mut kept);
    let mut starts = kept.starts();
    starts.sort_unstable();
    let handlers = (0..KEPT.load(RELAXED)).map(|n| HANDLER + n);
    let all: Vec<u64> = before.into_iter().chain([9, 10]).chain(handlers).collect();
    assert_eq!(starts, all, "at {at} of {steps}, {while_collecting}");
    assert!(!store.any(), "at {at} of {steps}");
    steps
}

/// Commands of a handler that are not refused are collected, and so is what it interrupted.
#[test]
fn a_handler_puts_commands_at_each_step_of_putting_and_collecting() {
    for while_collecting in [false, true] {
        let steps = try_at(EVERY - 1, while_collecting);
        assert!(steps > 50, "{steps}");
        let mut kept = 0;
        for at in some_of(steps) {
            try_at(at, while_collecting);
            kept += KEPT.load(RELAXED);
        }
        assert!(kept > 10, "{kept}: not all are refused");
    }
}

static TABLE: AtomicPtr<Table<64>> = AtomicPtr::new(std::ptr::null_mut());
/// What the handler sets: the object that the thread is setting, or another.
static OBJECT: AtomicU64 = AtomicU64::new(0);
/// It removes another object first. Not from tables that are for [`Table::first`].
static REMOVES: AtomicBool = AtomicBool::new(false);

const OWN: u64 = 16;
const OTHER: u64 = 32;
const OLD: u64 = 48;

fn set_as_handler() {
    // SAFETY: the one of the test that is stepping, which lives until that is over.
    let table = unsafe { &*TABLE.load(RELAXED) };
    assert!(matches!(table.get(OWN), None | Some(0 | 1)));
    if REMOVES.load(RELAXED) {
        assert_eq!(table.remove(OLD), Some(3));
    }
    assert!(table.set(OBJECT.load(RELAXED), 2));
}

fn set_at(at: u64, object: u64, first: bool) -> u64 {
    let table = Table::<64>::new();
    assert!(table.set(OLD, 3));
    TABLE.store((&raw const table).cast_mut(), RELAXED);
    OBJECT.store(object, RELAXED);
    REMOVES.store(!first, RELAXED);
    let stepping = Stepping::new(How::default(), set_as_handler);
    let steps = stepping.run(at, || {
        if first {
            let there = table.first(OWN, 1);
            assert!(there == Some(1) || (there == Some(2) && object == OWN), "{there:?}");
        } else {
            assert!(table.set(OWN, 1));
        }
    });
    drop(stepping);
    let came = at < steps;
    let own = table.get(OWN);
    assert!(own == Some(1) || (own == Some(2) && object == OWN && came), "{own:?} at {at} of {steps}");
    assert_eq!(table.get(OLD), (first || !came).then_some(3));
    if object == OTHER {
        assert_eq!(table.get(OTHER), came.then_some(2), "at {at} of {steps}");
    }
    assert!(table.remove(OWN).is_some());
    assert_eq!(table.get(OWN), None, "one slot: at {at} of {steps}");
    steps
}

/// The same object or another, and one that goes: each is there afterwards, once.
#[test]
fn a_handler_sets_objects_at_each_step_of_setting_one() {
    for (object, first) in [(OTHER, false), (OWN, false), (OTHER, true), (OWN, true)] {
        let steps = set_at(EVERY - 1, object, first);
        assert!(steps > 20, "{steps}");
        // The last steps are those of the test itself.
        for at in some_of(steps) {
            set_at(at, object, first);
        }
    }
}

static WAITING: AtomicPtr<Waiting<u64, 4>> = AtomicPtr::new(std::ptr::null_mut());
/// Bits of the values that the handler, and what it interrupts, was offered and was done with.
static DONE: AtomicU64 = AtomicU64::new(0);

/// Is done with each value, which must not have been done with before.
fn take_up(value: u64) -> bool {
    assert_eq!(DONE.fetch_or(value, RELAXED) & value, 0, "{value} came twice");
    true
}

fn leave_as_handler() {
    // SAFETY: the one of the test that is stepping, which lives until that is over.
    let waiting = unsafe { &*WAITING.load(RELAXED) };
    assert!(waiting.leave(7, 1, 4));
    waiting.each(7, take_up);
    assert!(waiting.leave(7, 1, 8));
}

fn wait_at(at: u64, while_looking: bool) -> u64 {
    let waiting = Waiting::<u64, 4>::new();
    WAITING.store((&raw const waiting).cast_mut(), RELAXED);
    DONE.store(0, RELAXED);
    assert!(waiting.leave(7, 1, 1));
    let stepping = Stepping::new(How::default(), leave_as_handler);
    let steps = if while_looking {
        assert!(waiting.leave(7, 1, 2));
        stepping.run(at, || waiting.each(7, take_up))
    } else {
        stepping.run(at, || assert!(waiting.leave(7, 1, 2)))
    };
    drop(stepping);
    waiting.each(7, take_up);
    let all = if at < steps { 1 | 2 | 4 | 8 } else { 1 | 2 };
    assert_eq!(DONE.load(RELAXED), all, "at {at} of {steps}, {while_looking}");
    assert_eq!(
        (waiting.bytes(7), waiting.may_have_some()),
        (0, false),
        "at {at} of {steps}, {while_looking}"
    );
    // All places are free again.
    assert!((0..4).all(|value| waiting.leave(7, 1, 1 << value)), "at {at} of {steps}, {while_looking}");
    steps
}

/// A handler leaves values and takes up what waits, as a call of its own does that synchronizes: each comes once.
#[test]
fn a_handler_comes_at_each_step_of_leaving_what_waits_and_taking_it_up() {
    for while_looking in [false, true] {
        let steps = wait_at(EVERY - 1, while_looking);
        assert!(steps > 20, "{steps}");
        for at in some_of(steps) {
            wait_at(at, while_looking);
        }
    }
}
