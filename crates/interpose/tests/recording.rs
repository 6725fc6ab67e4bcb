//! What threads record into a session: a folder made here, and its arenas read as the drainer does.
#![cfg(not(loom))]

mod session;

use std::ffi::c_void;
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use hetrace_interpose::{
    Extra, OwnWork, call, count_commands, poll, put::Put, record_with_text, thread_extra, thread_id,
    with_guard,
};
use hetrace_ring::abi::{RingHeader, flag, special};
use hetrace_ring::reader::Arena;
use hetrace_ring::record;
use session::{
    ENTRY, EXIT, FOLD, RELAXED, Record, add, arenas, ids, in_thread, joined, recorded, records_of,
};

#[test]
fn a_call_is_its_entry_and_its_exit() {
    let mut entered = 0;
    let (records, lost) = in_thread(|| assert_eq!(add(7, |time| entered = time), 8));
    assert_eq!(ids(&records), [ENTRY, EXIT]);
    assert_eq!((&records[0].3[..], &records[1].3[..]), (&7u32.to_le_bytes()[..], &8u32.to_le_bytes()[..]));
    assert_eq!(records[0].2, record::time(record::pack(0, 8, entered)), "the entry's time");
    assert_eq!(lost, [0, 0]);
}

#[test]
fn a_function_that_is_switched_off_is_only_called() {
    let mut after = false;
    let (records, _) = in_thread(|| {
        // SAFETY: nothing is recorded.
        let result = unsafe { call(0, ENTRY, || (1u32,), |_| 5, |_| (1u32,), || after = true) };
        assert_eq!(result, 5);
        assert_eq!(thread_id(), 0, "no ring for nothing");
    });
    assert!(records.is_empty() && after);
}

#[test]
fn calls_inside_of_a_call_stand_between_its_records() {
    let (records, _) = in_thread(|| {
        add(1, |_| _ = add(2, |_| ()));
    });
    let bodies: Vec<u8> = records.iter().map(|(.., body)| body[0]).collect();
    assert_eq!((ids(&records), bodies), (vec![ENTRY, ENTRY, EXIT, EXIT], vec![1, 2, 3, 2]));
}

#[test]
fn the_tracers_own_calls_are_not_recorded() {
    let (records, lost) = in_thread(|| {
        add(1, |_| ());
        // As what a function that jumps to ours looks like: nothing of it is on the stack then.
        with_guard(|| add(2, |_| ()));
        with_guard(|| by_another_library(|| _ = add(2, |_| ())));
        add(3, |_| ());
    });
    let bodies: Vec<u8> = records.iter().map(|(.., body)| body[0]).collect();
    assert_eq!((bodies, lost), (vec![1, 2, 3, 4], [0, 0]));
}

/// A handler's jump out of the tracer's work is as a panic here: nothing is done on the way. The next call is made from deeper
/// than where that work began, and still from where the program had been.
#[test]
fn the_tracers_work_is_over_when_a_handler_has_left_it() {
    #[inline(never)]
    fn from_further_below(number: u32) {
        let frame = std::hint::black_box([number; 4096]);
        add(std::hint::black_box(&frame)[1], |_| ());
    }
    let (records, lost) = in_thread(|| {
        add(1, |_| ());
        let left = std::panic::catch_unwind(|| with_guard(|| std::panic::resume_unwind(Box::new(()))));
        assert!(left.is_err());
        from_further_below(2);
        add(3, |_| ());
        with_guard(|| by_another_library(|| _ = add(5, |_| ())));
        add(4, |_| ());
    });
    let bodies: Vec<u8> = records.iter().map(|(.., body)| body[0]).collect();
    assert_eq!((bodies, lost), (vec![1, 2, 2, 3, 3, 4, 4, 5], [0, 0]));
}

/// As a driver calls back what the tracer has called it for: this whole program counts as the tracer here.
fn by_another_library(mut work: impl FnMut()) {
    unsafe extern "C" fn found<F: FnMut()>(work: *const c_void, _: *const c_void) -> libc::c_int {
        // SAFETY: the closure of the call below, which nobody else uses meanwhile.
        let work = unsafe { &mut *work.cast_mut().cast::<F>() };
        work();
        0
    }
    fn compare<F: FnMut()>(_: &F) -> unsafe extern "C" fn(*const c_void, *const c_void) -> libc::c_int {
        found::<F>
    }
    let how = compare(&work);
    let one = [0u8];
    // SAFETY: a table of one byte; the key is given to `found` alone, whose closure it is.
    unsafe { libc::bsearch((&raw mut work).cast(), one.as_ptr().cast(), 1, 1, Some(how)) };
}

/// A poll with one argument.
fn ask(argument: u64, result: u32) -> u32 {
    let key = [argument, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: plain numbers are recorded.
    unsafe {
        poll(
            flag::RECORD,
            ENTRY,
            1,
            key,
            || (argument,),
            |_| result,
            |result, key| key[1] = u64::from(result),
            |result: u32| (result,),
            || (),
        )
    }
}

#[test]
fn equal_polls_in_a_row_become_one_record() {
    let (records, _) = in_thread(|| {
        assert!((0..5).all(|_| ask(1, 3) == 3));
        assert_eq!(ask(1, 4), 4, "another result");
        assert_eq!(ask(2, 4), 4, "another argument");
        assert_eq!(ask(2, 4), 4);
        add(1, |_| ());
    });
    assert_eq!(ids(&records), [ENTRY, EXIT, FOLD, ENTRY, EXIT, ENTRY, EXIT, FOLD, ENTRY, EXIT]);
    let folded = |at: usize| u64::from_le_bytes(*records[at].3.first_chunk().expect("a count"));
    assert_eq!((folded(2), folded(7)), (4, 1));
}

#[test]
fn a_poll_after_something_else_is_recorded_in_full() {
    let (records, _) = in_thread(|| {
        ask(1, 3);
        add(1, |_| ());
        ask(1, 3);
    });
    assert_eq!(ids(&records), [ENTRY, EXIT, ENTRY, EXIT, ENTRY, EXIT]);
}

/// More bytes than a record can have.
#[derive(Clone, Copy)]
struct TooMuch;

impl Put for TooMuch {
    fn size(&self) -> usize {
        record::MAX_RECORD
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        at
    }
}

#[test]
fn what_no_record_can_hold_is_counted() {
    let (records, lost) = in_thread(|| {
        add(1, |_| ());
        // SAFETY: never written, since it is too long.
        let result = unsafe { call(flag::RECORD, ENTRY, || TooMuch, |_| 5, |_| (1u32,), || ()) };
        assert_eq!(result, 5);
        add(3, |_| ());
    });
    assert_eq!(ids(&records), [ENTRY, EXIT, ENTRY, EXIT]);
    assert_eq!(lost[1], 1);
}

/// Nobody drains: a thread goes on in larger rings, each of which says which one it follows.
#[test]
fn a_thread_that_fills_its_ring_goes_on_in_larger_ones() {
    joined();
    let calls = 16 * 1024u32;
    let tid = std::thread::spawn(move || {
        (0..calls).for_each(|i| assert_eq!(add(i, |_| ()), i + 1));
        thread_id()
    });
    let tid = tid.join().expect("no panic");
    let (records, lost) = recorded(std::process::id(), tid);
    assert_eq!(lost, [0, 0]);
    let entries = records.iter().filter(|(_, id, ..)| *id == ENTRY);
    let number = |body: &[u8]| u32::from_le_bytes(*body.first_chunk().expect("a number"));
    let mut found: Vec<u32> = entries.map(|(.., body)| number(body)).collect();
    // Rings stand in the order of their numbers; one that was used before may be among them.
    found.sort_unstable();
    assert!(found.into_iter().eq(0..calls));
    let begun = records.iter().filter(|(_, id, ..)| *id == special::THREAD);
    let chain: Vec<(u32, u32)> = begun.map(|(ring, .., body)| (*ring, number(&body[4..]))).collect();
    assert!(chain.len() > 1, "{chain:?}");
    assert_eq!(chain.iter().filter(|(_, follows)| *follows == 0).count(), 1, "{chain:?}");
    for (_, follows) in chain.iter().filter(|(_, follows)| *follows > 0) {
        assert!(chain.iter().any(|(ring, _)| ring + 1 == *follows), "{chain:?}");
    }
}

#[test]
fn a_ring_of_a_thread_that_ended_serves_others() {
    let threads = 60;
    let rings: Vec<u32> = (0..threads)
        .map(|i| {
            let (records, _) = in_thread(|| _ = add(i, |_| ()));
            assert_eq!(ids(&records), [ENTRY, EXIT]);
            records[0].0
        })
        .collect();
    let used: std::collections::BTreeSet<u32> = rings.iter().copied().collect();
    assert!(used.len() < threads as usize / 2, "{rings:?}");
}

#[test]
fn threads_of_the_same_time_have_rings_of_their_own() {
    let barrier = std::sync::Barrier::new(4);
    joined();
    let tids: Vec<u32> = std::thread::scope(|scope| {
        let thread = |i: u32| {
            let barrier = &barrier;
            scope.spawn(move || {
                (0..100).for_each(|_| _ = add(i, |_| ()));
                barrier.wait();
                thread_id()
            })
        };
        let threads: Vec<_> = (0..4).map(thread).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    let mut rings = Vec::new();
    for (i, tid) in (0u32..).zip(tids) {
        let (records, _) = recorded(std::process::id(), tid);
        let entries: Vec<&Record> = records.iter().filter(|(_, id, ..)| *id == ENTRY).collect();
        assert_eq!(entries.len(), 100);
        assert!(entries.iter().all(|(.., body)| body[..] == i.to_le_bytes()));
        rings.push(entries[0].0);
    }
    rings.sort_unstable();
    rings.dedup();
    assert_eq!(rings.len(), 4);
}

/// It has the parent's writer cleared, and makes an arena of its own.
#[test]
fn a_forked_child_records_into_an_arena_of_its_own() {
    let mut child = 0;
    let (records, _) = in_thread(|| {
        add(1, |_| {
            // SAFETY: the child calls nothing that takes a lock another thread may have.
            child = unsafe { libc::fork() };
            if child == 0 {
                add(2, |_| ());
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(thread_id() == 0)) };
            }
        });
    });
    assert_eq!(ids(&records), [ENTRY, EXIT], "the parent's");
    let mut status = 0;
    // SAFETY: a child of this process, and a place for the result.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    let (records, lost) = recorded(child as u32, child as u32);
    assert_eq!((ids(&records), lost), (vec![special::THREAD, ENTRY, EXIT], [0, 0]));
    assert_eq!(records[1].3, 2u32.to_le_bytes());
}

#[test]
fn an_apis_memory_is_the_threads_until_it_ends() {
    static MINE: OnceLock<Extra> = OnceLock::new();
    let extra = MINE.get_or_init(Extra::new);
    in_thread(|| {
        assert!(thread_extra().is_none(), "before the first recorded call");
        add(1, |_| ());
        let word = thread_extra().expect("a word");
        assert!(word.load(RELAXED).is_null());
        assert!(extra.take());
        word.store(std::ptr::from_ref(extra).cast_mut().cast::<c_void>(), RELAXED);
        assert!(!extra.take(), "taken");
    });
    assert!(extra.take(), "its thread has ended");
}

/// The header of the ring of a thread that recorded.
fn header_of<R>(tid: u32, look: impl FnOnce(&RingHeader) -> R) -> R {
    let all = arenas(std::process::id());
    let rings = all.iter().flat_map(|(file, arena)| {
        (0..arena.rings()).filter_map(move |number| arena.ring(file, number).expect("a ring"))
    });
    let ring = rings.into_iter().find(|ring| !records_of(ring, tid).0.is_empty()).expect("its ring");
    look(ring.header())
}

#[test]
fn commands_are_counted_in_the_threads_ring() {
    let mut tid = 0;
    in_thread(|| {
        add(1, |_| ());
        count_commands(3, 1);
        tid = thread_id();
    });
    let counts = header_of(tid, |header| (header.commands.load(RELAXED), header.reported.load(RELAXED)));
    assert!(counts.0 >= 3 && counts.1 >= 1, "{counts:?}");
}

/// Sleeps where a call that is interrupted would stand still.
fn interrupted() {
    std::thread::sleep(std::time::Duration::from_millis(2));
}

/// One interrupted call must not change what the others are said to take: it has a record of its own.
#[test]
fn own_work_that_was_disturbed_counts_apart() {
    const CALLS: u64 = 2000;
    const DISTURBED: u64 = 3;
    let mut tid = 0;
    let call = |during: &dyn Fn(&mut OwnWork)| {
        let mut work = OwnWork::since(hetrace_ring::clock::ticks());
        assert_eq!(work.real(|| 5).0, 5);
        during(&mut work);
        drop(work);
    };
    let (records, _) = in_thread(|| {
        add(1, |_| ());
        for _ in 0..CALLS {
            call(&|_| ());
        }
        for _ in 0..DISTURBED {
            call(&|_| interrupted());
        }
        call(&|work| work.collecting(interrupted));
        let mut failed = OwnWork::since(hetrace_ring::clock::ticks());
        failed.real(interrupted);
        failed.failed();
        tid = thread_id();
    });
    // The shortest of some, as this thread may be kept from running here, too.
    let sleep = || {
        let slept = hetrace_ring::clock::ticks();
        interrupted();
        hetrace_ring::clock::ticks().wrapping_sub(slept)
    };
    let least = (0..8).map(|_| sleep()).min().expect("some") / 20;
    let own: Vec<u64> = records
        .iter()
        .filter(|(_, id, ..)| *id == special::OWN_WORK)
        .map(|record| u64::from_le_bytes(record.3[..8].try_into().expect("eight")))
        .collect();
    header_of(tid, |header| {
        let [calls, ticks, apart, apart_ticks, collecting, limit] = [
            &header.timing_calls,
            &header.timing_ticks,
            &header.apart_calls,
            &header.apart_ticks,
            &header.collecting_ticks,
            &header.timing_limit,
        ]
        .map(|word| word.load(RELAXED));
        assert_eq!(
            (calls + apart, own.len() as u64),
            (CALLS + DISTURBED + 1, apart),
            "but the one that failed"
        );
        assert!(calls > CALLS * 9 / 10, "{calls} ordinary ones");
        assert!(ticks / calls <= limit && limit <= 1 << 14, "{ticks} ticks of {calls}, limit {limit}");
        assert!(own.iter().sum::<u64>() > (DISTURBED + 1) * least, "each says what it took: {own:?}");
        // Of which an interruption counts as little as it can be distinguished from work, and collecting is the store's to count.
        let most = apart * (1 << 14);
        assert!(apart_ticks > 0 && apart_ticks <= most && collecting == 0, "{apart_ticks} {collecting}");
    });
}

#[test]
fn a_text_stands_behind_its_record() {
    let (records, _) = in_thread(|| assert!(record_with_text(5, &0x0102_0304u32, c"name")));
    assert_eq!((records[0].1, &records[0].3[..]), (5, &b"\x04\x03\x02\x01name\0"[..]));
}

#[test]
fn a_signal_handler_may_make_a_threads_first_call() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn handler(_: libc::c_int) {
        CALLED.store(add(40, |_| ()), RELAXED);
    }
    let (records, _) = in_thread(|| {
        // SAFETY: a handler that records only.
        unsafe {
            libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
            libc::raise(libc::SIGUSR1);
        }
        add(1, |_| ());
    });
    assert_eq!(CALLED.load(RELAXED), 41);
    assert_eq!(ids(&records), [ENTRY, EXIT, ENTRY, EXIT]);
    assert_eq!(joined().reported.calls_without_arena.get(), Some(0));
    let without = |(_, arena): (File, Arena)| arena.header().calls_without_ring.load(RELAXED);
    assert_eq!(arenas(std::process::id()).into_iter().map(without).sum::<u64>(), 0);
}

#[test]
fn a_handlers_calls_inside_of_the_tracers_own_are_counted_where_they_are_known() {
    extern "C" fn handler(_: libc::c_int) {
        assert_eq!(add(50, |_| ()), 51);
    }
    let with_flags = |flags: libc::c_int, signal: libc::c_int| {
        in_thread(|| {
            let mut memory = vec![0u8; 1 << 16];
            let stack =
                libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            // SAFETY: all bit patterns are valid.
            let mut before: libc::stack_t = unsafe { std::mem::zeroed() };
            // SAFETY: all bit patterns are valid.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = flags;
            // SAFETY: a stack that lives until the thread's own is set again, and a handler that
            // records only.
            unsafe {
                assert_eq!(libc::sigaltstack(&stack, &mut before), 0);
                assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
            }
            add(1, |_| ());
            with_guard(|| {
                // A call that the tracer makes itself, and one of a handler.
                by_another_library(|| _ = add(2, |_| ()));
                // SAFETY: the handler set above.
                unsafe { libc::raise(signal) };
            });
            add(3, |_| ());
            // SAFETY: the stack that the thread had, or none.
            assert_eq!(unsafe { libc::sigaltstack(&before, std::ptr::null_mut()) }, 0);
        })
    };
    let (on_its_own, lost) = with_flags(libc::SA_ONSTACK, libc::SIGUSR2);
    assert_eq!((ids(&on_its_own), lost), (vec![ENTRY, EXIT, ENTRY, EXIT], [0, 1]));
    // On the thread's stack it looks as the tracer's own (docs/shm-abi.md, "Known limits").
    let (on_threads, lost) = with_flags(0, libc::SIGURG);
    assert_eq!((ids(&on_threads), lost), (vec![ENTRY, EXIT, ENTRY, EXIT], [0, 0]));
}
