//! Every interleaving of those who open and close a capture window, and of the launcher that reads the log, explored by
//! loom: `RUSTFLAGS="--cfg loom" cargo test -p hetrace-ring --test loom_window --release`.
//!
//! Under loom the log has two places. Each ordering and step that a test names was weakened or left out once, and the
//! test failed.
#![cfg(loom)]

use hetrace_ring::abi::flag;
use hetrace_ring::abi::window::{Cause, Flip, Switch, reason, state};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
// Of the test, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

/// A switch of a window that is not open.
fn switch() -> Arc<Switch> {
    let number = || AtomicU32::new(0);
    let flip = |_| Flip {
        sequence: number(),
        open: number(),
        reason: number(),
        pid: number(),
        tid: number(),
        reserved: 0,
        ticks: AtomicU64::new(0),
        number: AtomicU64::new(0),
    };
    Arc::new(Switch {
        mask: AtomicU8::new(flag::OUTSIDE),
        reserved: [0; 3],
        state: AtomicU32::new(state::BEFORE),
        flips: number(),
        drained: number(),
        log: std::array::from_fn(flip),
    })
}

/// Of who does it, all that can be asked of a flip is made: so it is a mixture if one of them is another's.
fn cause(who: u32) -> Cause {
    Cause { reason: reason::CALL, number: who.into(), pid: who, tid: who }
}

fn check(flip: (u64, bool, Cause)) {
    let who = flip.2.pid;
    assert_eq!((flip.0, flip.2), (who.into(), cause(who)));
}

/// Threads that ask for a change at once leave the mask as the last flip says, and the log has them in turn.
/// The exchanges of `flips` in `Switch::set_open_by_call`, and their orderings.
#[test]
fn the_mask_is_as_the_last_flip_says() {
    loom::model(|| {
        let switch = switch();
        let other = {
            let switch = switch.clone();
            loom::thread::spawn(move || switch.set_open_by_call(true, 1, cause(1)))
        };
        switch.set_open_by_call(true, 2, cause(2));
        switch.set_open_by_call(false, 2, cause(2));
        other.join().unwrap();
        let flips = switch.flips.load(Ordering::Relaxed);
        assert!(flips == 2 || flips == 3, "{flips}");
        let open = flips % 2 == 1;
        assert_eq!((switch.is_open(), switch.state.load(Ordering::Relaxed) == state::OPEN), (open, open));
    });
}

/// A window that ends while it is opened is closed, whichever comes first. In `Switch::open_once` the last exchange.
#[test]
fn an_end_that_overtakes_its_beginning_closes_the_window() {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let switch = switch();
        let other = {
            let switch = switch.clone();
            loom::thread::spawn(move || switch.close_for_good(2, cause(2)))
        };
        switch.open_once(1, cause(1));
        other.join().unwrap();
        assert_eq!(switch.mask.load(Ordering::Relaxed), flag::OUTSIDE & !flag::COUNTED);
        let flips = switch.flips.load(Ordering::Relaxed);
        assert!(flips == 0 || flips == 2, "{flips}");
        OPENED.fetch_add(flips as usize, Ordering::Relaxed);
    });
    assert!(OPENED.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// The launcher reads a flip whole, or not at all, also one whose place serves a later one meanwhile.
/// In `Switch::log_as` Release, the fence and that the sequence is none at first; in `Switch::flip` Acquire, the fence and the second look.
#[test]
fn a_flip_is_read_whole() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let switch = switch();
        let program = {
            let switch = switch.clone();
            loom::thread::spawn(move || {
                for (flip, open) in (1..).zip([true, false, true]) {
                    switch.set_open(open, flip, cause(flip as u32));
                }
            })
        };
        for number in [0, 2] {
            if let Some(flip) = switch.flip(number) {
                check(flip);
                assert_eq!(flip.0, u64::from(number) + 1);
                READ.fetch_add(1, Ordering::Relaxed);
            }
        }
        program.join().unwrap();
        assert_eq!(switch.flip(0), None, "its place has another");
        assert!(switch.flip(2).is_some() && switch.is_open());
    });
    assert!(READ.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}
