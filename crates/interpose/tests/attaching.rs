//! A thread's first call, its way to larger rings, and its end: with memory and without, and with a signal handler that
//! calls between any two instructions.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(loom)))]

mod session;
#[path = "../../ring/tests/stepping/mod.rs"]
mod stepping;

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard};

use hetrace_interpose::thread_id;
use hetrace_ring::abi::{special, state};
use hetrace_ring::clock::ticks;
use session::{ENTRY, EXIT, RELAXED, Record, add, arenas, joined, recorded};
use stepping::{EVERY, How, Stepping, some_of};

/// What threads call with, and handlers.
const MAIN: u32 = 1;
const LATER: u32 = 2;
const HANDLER: u32 = 1000;
/// Ticks for which nobody tries again after there was no room, and more.
const PAUSE: u64 = 1 << 25;

/// What is the process's is tried by one test at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    joined();
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Runs it in a thread of its own. Returns the thread, and what came of it.
fn thread<R: Send>(work: impl FnOnce() -> R + Send) -> (u32, R) {
    std::thread::scope(|scope| {
        let work = || {
            let result = work();
            // Not known before the thread has a ring.
            (thread_id(), result)
        };
        scope.spawn(work).join().expect("no panic")
    })
}

/// The arguments of calls that are recorded whole, in order.
fn calls(records: &[Record]) -> Vec<u32> {
    let of = |id: u16| {
        let records = records.iter().filter(move |record| record.1 == id);
        records.map(|record| u32::from_le_bytes(*record.3.first_chunk().expect("a number")))
    };
    let (entries, exits): (Vec<u32>, Vec<u32>) = (of(ENTRY).collect(), of(EXIT).map(|x| x - 1).collect());
    let sorted = |mut all: Vec<u32>| {
        all.sort_unstable();
        all
    };
    assert_eq!(sorted(entries.clone()), sorted(exits), "each with its end");
    entries
}

/// Calls that were not recorded because their threads had no ring.
fn without_ring() -> u64 {
    let all = arenas(std::process::id());
    let rings = all.iter().map(|(_, arena)| arena.header().calls_without_ring.load(RELAXED)).sum::<u64>();
    rings + u64::from(joined().reported.calls_without_arena.get().expect("a count"))
}

fn rings() -> usize {
    arenas(std::process::id()).iter().map(|(_, arena)| arena.rings()).sum()
}

/// Position and data bytes of the ring in which a thread records now.
fn ring_of(tid: u32) -> (u32, u64, u64) {
    for (file, arena) in arenas(std::process::id()) {
        // The last ones are the likeliest.
        for number in (0..arena.rings()).rev() {
            let Some(ring) = arena.look(&file, number).expect("a ring") else { continue };
            let header = ring.header();
            if header.state.get() == state::ACTIVE && !session::records_of(&ring, tid).0.is_empty() {
                return (ring.number(), header.head.own() - header.tail.own(), header.data_bytes);
            }
        }
    }
    panic!("a thread without a ring");
}

/// Makes more calls than leave half of its ring free: no other thread can have that.
fn fill_half() {
    let tid = thread_id();
    loop {
        let (_, used, data) = ring_of(tid);
        if used > data / 2 {
            return;
        }
        (0..(data / 2 - used) / 64 + 1).for_each(|_| _ = add(0, |_| ()));
    }
}

/// What the launcher lets the process take, as long as this lives: nothing.
struct NoMemory(u64);

impl NoMemory {
    fn new() -> NoMemory {
        NoMemory(joined().control.budget.swap(0, RELAXED))
    }
}

impl Drop for NoMemory {
    fn drop(&mut self) {
        joined().control.budget.store(self.0, RELAXED);
        pause();
    }
}

fn pause() {
    let begin = ticks();
    while ticks().wrapping_sub(begin) < PAUSE {
        std::hint::spin_loop();
    }
}

static MADE: AtomicU32 = AtomicU32::new(0);
/// Handlers make a call only if it is on.
static CALLS: AtomicBool = AtomicBool::new(false);

fn call_as_handler() {
    if CALLS.load(RELAXED) {
        let number = HANDLER + MADE.fetch_add(1, RELAXED);
        assert_eq!(add(number, |_| ()), number + 1);
    }
}

/// What a thread recorded in the rings that were made last; in others nothing is free.
fn recorded_lately(tid: u32, first: usize) -> (Vec<Record>, [u64; 2]) {
    let (mut records, mut lost) = (Vec::new(), [0; 2]);
    for (file, arena) in arenas(std::process::id()) {
        for number in first..arena.rings() {
            let Some(ring) = arena.look(&file, number).expect("a ring") else { continue };
            let (found, missing) = session::records_of(&ring, tid);
            lost = [lost[0] + missing[0], lost[1] + missing[1]];
            records.extend(found);
        }
    }
    (records, lost)
}

/// A thread does something with a handler at a step of it, and then makes one call more. Returns at how many steps one
/// could come, and checks that all calls of both were recorded, or are counted.
fn try_at(at: u64, before: fn(), operation: fn(), makes: &[u32]) -> u64 {
    // Where it is not one that was made lately, it was left by a handler in a run before.
    let (unrecorded, first) = (without_ring(), rings().saturating_sub(64));
    let (tid, steps) = thread(|| {
        before();
        let stepping = Stepping::new(How::default(), call_as_handler);
        MADE.store(0, RELAXED);
        CALLS.store(at != EVERY - 1, RELAXED);
        let steps = stepping.run(at, operation);
        drop(stepping);
        add(LATER, |_| ());
        fill_half();
        steps
    });
    let (records, lost) = recorded_lately(tid, first);
    let calls = calls(&records);
    let own: Vec<u32> = calls.iter().copied().filter(|number| (1..HANDLER).contains(number)).collect();
    assert_eq!(own, [makes, &[LATER]].concat(), "at {at} of {steps}");
    let handlers = calls.iter().filter(|number| **number >= HANDLER).count() as u64;
    let uncounted = u64::from(MADE.load(RELAXED)) - handlers;
    assert_eq!(uncounted, lost[1] + without_ring() - unrecorded, "at {at} of {steps}: {lost:?}");
    steps
}

fn call_once() {
    add(MAIN, |_| ());
}

/// A thread's first call makes a ring: at each step a handler calls, too, which may attach the thread itself.
#[test]
fn a_handler_calls_at_each_step_of_making_a_ring() {
    let _turn = turn();
    use_up_if_free();
    let steps = try_at(EVERY - 1, || (), call_once, &[MAIN]);
    assert!(steps > 500, "{steps}");
    let (mut tried, mut made) = (0, 0);
    for at in some_of(steps).step_by(4) {
        let before = rings();
        try_at(at, || (), call_once, &[MAIN]);
        tried += 1;
        made += usize::from(rings() > before);
    }
    // Where the thread and its handler have made one each, the next thread finds that of the two that was given back.
    assert!(made > tried / 3, "{made} of {tried}");
}

/// All that threads leave here is more than half full.
fn use_up_if_free() {
    let free = |(file, arena): &(std::fs::File, hetrace_ring::reader::Arena)| {
        (0..arena.rings()).any(|number| {
            arena.look(file, number).expect("a ring").is_some_and(|ring| {
                let header = ring.header();
                let used = header.head.own() - header.tail.own();
                matches!(header.state.get(), state::FREE | state::ENDED) && used <= header.data_bytes / 2
            })
        })
    };
    while arenas(std::process::id()).iter().any(free) {
        thread(|| {
            add(0, |_| ());
            fill_half();
        });
    }
}

/// Where a ring of a thread that has ended is free, the first call claims it, again with a handler at each step.
#[test]
fn a_handler_calls_at_each_step_of_claiming_a_ring() {
    let _turn = turn();
    // A thread makes a ring, and leaves it nearly empty.
    let give = || _ = thread(|| _ = add(0, |_| ()));
    use_up_if_free();
    give();
    let made = rings();
    let steps = try_at(EVERY - 1, || (), call_once, &[MAIN]);
    assert!(steps > 300, "{steps}");
    assert_eq!(rings(), made, "it was claimed");
    let (mut tried, mut claimed) = (0, 0);
    for at in some_of(steps).step_by(4) {
        give();
        let made = rings();
        try_at(at, || (), call_once, &[MAIN]);
        tried += 1;
        claimed += usize::from(rings() == made);
    }
    assert!(claimed > tried / 3, "{claimed} of {tried}");
    use_up_if_free();
}

/// Calls until the ring has no room for many more.
fn fill() {
    add(0, |_| ());
    let tid = thread_id();
    let (number, before, _) = ring_of(tid);
    add(0, |_| ());
    let (_, used, data) = ring_of(tid);
    let each = used - before;
    // A quarter is left to handlers.
    (0..(data - data / 4 - used) / each - 8).for_each(|_| _ = add(0, |_| ()));
    assert_eq!(ring_of(tid).0, number, "it has not moved yet");
}

fn call_on() {
    (0..12).for_each(|i| _ = add(10 + i, |_| ()));
}

/// A thread whose ring is full moves to a larger one, with a handler at each step.
#[test]
fn a_handler_calls_at_each_step_of_a_move_to_a_larger_ring() {
    let _turn = turn();
    use_up_if_free();
    let makes: Vec<u32> = (10..22).collect();
    let made = rings();
    let steps = try_at(EVERY - 1, fill, call_on, &makes);
    assert_eq!(rings(), made + 2, "the thread's first ring, and the larger one");
    assert!(steps > 1000, "{steps}");
    for at in some_of(steps).step_by(8) {
        try_at(at, fill, call_on, &makes);
    }
}

/// Without memory a thread's calls go through, are counted, and it is not tried again for a while. When there is some
/// again, the thread records.
#[test]
fn a_thread_without_memory_records_when_there_is_some() {
    let _turn = turn();
    use_up_if_free();
    let failed = || arenas(std::process::id())[0].1.header().rings_failed.load(RELAXED);
    let (before, failures) = (without_ring(), failed());
    let (tid, ()) = thread(|| {
        let none = NoMemory::new();
        (0..100).for_each(|_| assert_eq!(add(MAIN, |_| ()), MAIN + 1));
        assert_eq!(without_ring() - before, 100);
        assert!((1..100).contains(&(failed() - failures)), "it is not tried each time");
        drop(none);
        add(LATER, |_| ());
        fill_half();
    });
    let (records, lost) = recorded(std::process::id(), tid);
    let own: Vec<u32> = calls(&records).into_iter().filter(|number| *number > 0).collect();
    assert_eq!((own, lost), (vec![LATER], [0, 0]));
    assert_eq!(without_ring() - before, 100);
}

/// A thread that fills its ring and gets no larger one goes on: what finds no room is counted. When there is memory
/// again, it moves, and is recorded from then on.
#[test]
fn a_thread_that_gets_no_larger_ring_counts_what_finds_no_room() {
    let _turn = turn();
    use_up_if_free();
    let made = rings();
    let (tid, small) = thread(|| {
        fill();
        let small = ring_of(thread_id()).0;
        let none = NoMemory::new();
        (0..3000).for_each(|_| assert_eq!(add(MAIN, |_| ()), MAIN + 1));
        assert_eq!(ring_of(thread_id()).0, small);
        drop(none);
        (0..3).for_each(|_| _ = add(LATER, |_| ()));
        assert_ne!(ring_of(thread_id()).0, small, "it has moved");
        fill_half();
        small
    });
    assert_eq!(rings(), made + 2);
    let (records, lost) = recorded(std::process::id(), tid);
    let of = |number: u32| calls(&records).into_iter().filter(|call| *call == number).count() as u64;
    assert!(lost[1] > 1000 && of(MAIN) + lost[1] == 3000, "{} recorded, {lost:?}", of(MAIN));
    assert_eq!(of(LATER), 3);
    let follows: Vec<u32> = records
        .iter()
        .filter(|(ring, id, ..)| *id == special::THREAD && *ring != small)
        .map(|record| u32::from_le_bytes(*record.3[4..].first_chunk().expect("a number")))
        .collect();
    assert_eq!(follows, [small + 1], "the larger ring names the one before");
}

/// What a thread calls while it ends, after the library has given its ring away, is recorded, too; and when it has ended,
/// the ring is another's.
#[test]
fn a_thread_that_calls_while_it_ends_attaches_again() {
    unsafe extern "C" fn last(_: *mut libc::c_void) {
        assert_eq!(add(LATER, |_| ()), LATER + 1);
    }
    let _turn = turn();
    use_up_if_free();
    let made = rings();
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a valid place, and a destructor that takes anything.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(last)) }, 0);
    let (tid, ()) = thread(move || {
        add(MAIN, |_| ());
        // SAFETY: the key made above, which is younger than the library's: that one's destructor runs first.
        assert_eq!(unsafe { libc::pthread_setspecific(key, (&raw const made).cast()) }, 0);
    });
    let (records, lost) = recorded(std::process::id(), tid);
    assert_eq!((calls(&records), lost), (vec![MAIN, LATER], [0, 0]));
    let begun = records.iter().filter(|(_, id, ..)| *id == special::THREAD).count();
    assert_eq!(begun, 2, "it had given its ring away in between");
    assert_eq!(rings(), made + 1, "and has got it again");
    let (other, ()) = thread(|| {
        add(MAIN, |_| ());
        fill_half();
    });
    assert_eq!((rings(), recorded(std::process::id(), other).0[0].0), (made + 1, records[0].0));
    // SAFETY: made above.
    unsafe { libc::pthread_key_delete(key) };
}
