//! Every interleaving of a thread of ours with those that want something of it, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_worker --release`.
//!
//! The file is compiled here with loom's atomics. Each ordering and step that a test names was weakened or left out
//! once, and the test failed.
#![cfg(loom)]
#![allow(dead_code, unused_imports, reason = "the file is compiled as it is")]

#[path = "../src/worker.rs"]
mod worker;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use worker::{Bell, Duty, Requests};
// Of the tests, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

/// When a thread has been stopped and is idle, it is at nothing, for good, and what it did is done.
/// In `Duty::begin` the exchange, Release in `Duty::end`, Acquire in `Duty::is_idle`.
#[test]
fn a_thread_that_was_stopped_is_at_nothing() {
    static WORKED: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Duty::new(), UnsafeCell::new(0u32)));
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    if !shared.0.begin() {
                        return;
                    }
                    shared.1.with_mut(|p| unsafe { *p += 1 });
                    shared.0.end();
                }
            })
        };
        shared.0.stop();
        while !shared.0.is_idle() {
            thread::yield_now();
        }
        // loom reports a race if the thread may still be at it.
        WORKED.fetch_add(shared.1.with_mut(|p| unsafe { *p }) as usize, Ordering::Relaxed);
        worker.join().unwrap();
    });
    assert!(WORKED.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// What the worker does, and for whom.
struct Desk {
    requests: Requests,
    bell: Bell,
    /// What each asker has done before it asked.
    before: [UnsafeCell<u32>; 2],
    /// What the worker did: for each request that was the last, 1 more.
    done: UnsafeCell<u32>,
}

impl Desk {
    fn new() -> Arc<Desk> {
        Arc::new(Desk {
            requests: Requests::new(),
            bell: Bell::new(),
            before: [UnsafeCell::new(0), UnsafeCell::new(0)],
            done: UnsafeCell::new(0),
        })
    }

    /// As the worker's thread in one round.
    fn serve(&self) -> bool {
        let Some((asked, last)) = self.requests.pending() else { return false };
        // loom reports a race if the asker is still at it.
        let before = |which: usize| self.before[which].with(|p| unsafe { *p });
        let all = before(0) + if asked == 2 { before(1) } else { 0 };
        assert_eq!(all, asked);
        self.done.with_mut(|p| unsafe { *p += u32::from(last) });
        self.requests.finish(asked);
        true
    }
}

/// Who asked finds that what it did before was there when it was served, that the last one was served as such, and what the
/// thread did. Release and Acquire in `Requests::ask`, `pending`, `finish` and `done`, and the order in `ask`.
#[test]
fn who_asked_finds_it_done() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let desk = Desk::new();
        let worker = {
            let desk = desk.clone();
            thread::spawn(move || {
                desk.serve();
                desk.serve();
            })
        };
        desk.before[0].with_mut(|p| unsafe { *p = 1 });
        let first = desk.requests.ask(false);
        desk.before[1].with_mut(|p| unsafe { *p = 1 });
        let last = desk.requests.ask(true);
        let done = desk.requests.done();
        if Requests::has(done, last) {
            DONE.fetch_add(1, Ordering::Relaxed);
            assert!(Requests::has(done, first));
            assert_eq!(desk.done.with(|p| unsafe { *p }), 1);
        }
        worker.join().unwrap();
    });
    assert!(DONE.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// A thread that has taken the bell finds what was asked for before it rang; or it rings still.
/// The exchange in `Bell::take` and its Acquire, Release in `Bell::ring`.
#[test]
fn no_ringing_is_forgotten() {
    loom::model(|| {
        let desk = Desk::new();
        let worker = {
            let desk = desk.clone();
            thread::spawn(move || {
                // It wakes up, for whatever reason.
                desk.bell.take();
                desk.serve();
            })
        };
        desk.before[0].with_mut(|p| unsafe { *p = 1 });
        let request = desk.requests.ask(false);
        desk.bell.ring();
        worker.join().unwrap();
        let served = Requests::has(desk.requests.done(), request);
        assert!(served || desk.bell.take());
    });
}
