//! Every interleaving of those who go through a gate together and of one who goes alone, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_gate --release`.
//!
//! The file is compiled here with loom's atomics.
#![cfg(loom)]

#[path = "../src/inside/gate.rs"]
mod gate;

/// Stands for the crate's module of this name.
mod primitive {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

use gate::Gate;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// What those inside only look at, and who is alone changes; and what each of those inside changes for itself.
#[derive(Default)]
struct Place {
    gate: Gate,
    pool: UnsafeCell<u32>,
    flights: [UnsafeCell<u32>; 2],
}

impl Place {
    fn launch(&self, number: usize) -> bool {
        let is_in = self.gate.enter();
        if is_in {
            // loom reports a race with who empties.
            self.pool.with(|pool| unsafe { assert!(*pool <= 2) });
            self.flights[number].with_mut(|flight| unsafe { *flight += 1 });
            self.gate.leave();
        }
        is_in
    }

    fn empty(&self) -> Option<u32> {
        self.gate.alone(|| {
            self.pool.with_mut(|pool| unsafe { *pool += 1 });
            self.flights.iter().map(|flight| flight.with(|flight| unsafe { *flight })).sum()
        })
    }
}

#[test]
fn who_is_alone_is_alone() {
    loom::model(|| {
        let place = Arc::new(Place::default());
        let of = |number| {
            let place = Arc::clone(&place);
            thread::spawn(move || place.launch(number))
        };
        let launches = [of(0), of(1)];
        let seen = place.empty();
        let launched = launches.map(|thread| thread.join().unwrap());
        assert!(seen.is_none_or(|flights| flights <= 2));
        // Whoever was turned away has gone: all who launched are seen, and nobody is inside.
        let all = launched.into_iter().filter(|launched| *launched).count() as u32;
        assert_eq!(place.empty(), Some(all));
        assert!(launched != [false; 2] || seen.is_some());
    });
}

#[test]
fn one_of_two_is_alone() {
    loom::model(|| {
        let place = Arc::new(Place::default());
        let other = {
            let place = Arc::clone(&place);
            thread::spawn(move || place.empty().is_some())
        };
        let here = place.empty().is_some();
        let there = other.join().unwrap();
        assert!(here || there);
        place.pool.with(|pool| unsafe { assert_eq!(*pool, u32::from(here) + u32::from(there)) });
    });
}
