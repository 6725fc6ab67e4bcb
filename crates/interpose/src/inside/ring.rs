//! `--inside-on-full ring`: of a pool that becomes full again and again, what was recorded last is kept.
//!
//! ```text
//!  twins record ──► pool ── full, and nothing in flight ──► what is kept, in place of what was kept before; the pool is empty
//! ```
//! Lanes keep cursors into a pool as long as they run. So it is emptied only when each launch of a twin that may write there
//! is known to have ended: behind each stands an event ([`Flight`]). Until then launches run as they were.
//!
//! Between threads there is a [`Gate`], of which loom explores the interleavings: launches of twins go through it together, and who empties the pool alone. Nobody
//! waits there: a launch that finds it closed runs as it was, and who finds it taken empties nothing. What a flight and a
//! count say is written within the gate.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::gate::Gate;
use super::pools;
use super::twins::{self, KERNELS};
use crate::commands::{Mapped, Zeroed};
use crate::prelude::P;

/// Launches of twins of one context that may be in flight; more run as they were.
const FLIGHTS: usize = 256;
/// Of these a launch looks at so many for one that has ended.
const LOOKS: usize = 8;

/// A launch whose end is not known yet.
struct Flight {
    /// Stands behind it; 0: none was made yet.
    event: AtomicU64,
    state: AtomicU32,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FLYING: u32 = 2;

/// What is known of a pool.
struct Ring {
    gate: Gate,
    /// A launch's end can't be known, or emptying failed: nothing is emptied any more.
    broken: AtomicBool,
    /// There is something kept.
    kept: AtomicBool,
    next: AtomicUsize,
    flights: [Flight; FLIGHTS],
    /// By kernel, launches that record in the pool, and those whose records are kept.
    launches: [[AtomicU64; 2]; KERNELS],
}

// SAFETY: all its members are atomics, for which zeros are values.
unsafe impl Zeroed for Ring {}

static RINGS: Mapped<Ring, { pools::MOST }> = Mapped::new();

/// A launch of a twin that is about to be made: to be ended by [`Self::launched`], unless it was refused.
#[expect(missing_debug_implementations, reason = "it leaves when it is dropped")]
pub struct Begun {
    ring: &'static Ring,
    flight: &'static Flight,
    kernel: u32,
}

/// Returns what of a pool is known; none if there is no room.
fn ring(context: P) -> Option<&'static Ring> {
    RINGS.or_map().get(pools::place(context)?)
}

/// Begins a launch of a kernel's twin in a context. `make` makes an event; `has_ended` says of one whether all before it has
/// ended, or nothing if that can't be known. Returns none if it must run as it was.
pub fn begin(
    context: P,
    kernel: u32,
    make: impl Fn() -> Option<P>,
    has_ended: impl Fn(P) -> Option<bool>,
) -> Option<Begun> {
    let ring = ring(context)?;
    if !ring.gate.enter() {
        return None;
    }
    let found = ring.free(make, has_ended);
    if found.is_none() {
        ring.gate.leave();
    }
    found.map(|flight| Begun { ring, flight, kernel })
}

impl Ring {
    /// Returns a flight, taken, with an event.
    fn free(&self, make: impl Fn() -> Option<P>, has_ended: impl Fn(P) -> Option<bool>) -> Option<&Flight> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let take = |flight: &Flight, from| {
            flight.state.compare_exchange(from, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let mut looked = self.flights.iter().cycle().skip(first % FLIGHTS).take(LOOKS);
        let flight = looked.find(|flight| {
            if take(flight, FREE) {
                return true;
            }
            // Whoever takes it has it alone while it asks.
            if !take(flight, FLYING) {
                return false;
            }
            let ended = has_ended(flight.event.load(Ordering::Relaxed) as P) == Some(true);
            if !ended {
                flight.state.store(FLYING, Ordering::Release);
            }
            ended
        })?;
        if flight.event.load(Ordering::Relaxed) == 0 {
            match make() {
                Some(event) => flight.event.store(event as u64, Ordering::Relaxed),
                None => {
                    flight.state.store(FREE, Ordering::Release);
                    return None;
                }
            }
        }
        Some(flight)
    }
}

impl Begun {
    /// Returns the event that is to stand behind the launch.
    pub fn event(&self) -> P {
        self.flight.event.load(Ordering::Relaxed) as P
    }

    /// The twin was launched; `marked`: the event stands behind it.
    pub fn launched(self, marked: bool) {
        if marked {
            self.flight.state.store(FLYING, Ordering::Release);
        } else {
            self.ring.broken.store(true, Ordering::Release);
        }
        if let Some([records, _]) = self.ring.launches.get(self.kernel as usize) {
            records.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // It was refused, or its event was.
        let _ = self.flight.state.compare_exchange(TAKEN, FREE, Ordering::Release, Ordering::Relaxed);
        self.ring.gate.leave();
    }
}

/// Empties a pool that is full, if all that may write there has ended. `empty` keeps what is in it and empties it; it returns
/// whether that was done. Returns whether there is room again.
pub fn turn(context: P, has_ended: impl Fn(P) -> Option<bool>, empty: impl FnOnce() -> bool) -> bool {
    let Some(ring) = ring(context).filter(|ring| !ring.broken.load(Ordering::Acquire)) else { return false };
    let turned = ring.gate.alone(|| {
        // Another thread may have been faster.
        if !pools::is_full(context) {
            return true;
        }
        for flight in ring.flights.iter().filter(|flight| flight.state.load(Ordering::Acquire) == FLYING) {
            match has_ended(flight.event.load(Ordering::Relaxed) as P) {
                Some(true) => flight.state.store(FREE, Ordering::Release),
                Some(false) => return false,
                None => {
                    ring.broken.store(true, Ordering::Release);
                    return false;
                }
            }
        }
        if !empty() {
            ring.broken.store(true, Ordering::Release);
            ring.kept.store(false, Ordering::Release);
            return false;
        }
        ring.kept.store(true, Ordering::Release);
        for (kernel, [records, kept]) in ring.launches.iter().enumerate() {
            let over = kept.swap(records.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            if over > 0 {
                twins::overwritten(kernel, over);
            }
        }
        true
    });
    turned.unwrap_or(false)
}

/// Returns whether something of a context's pool is kept beside it.
pub fn keeps(context: P) -> bool {
    ring(context).is_some_and(|ring| ring.kept.load(Ordering::Acquire))
}

/// A context ends, and its pool: its events end with it.
pub fn end(context: P) {
    let Some(ring) = ring(context) else { return };
    for flight in &ring.flights {
        flight.event.store(0, Ordering::Relaxed);
        flight.state.store(FREE, Ordering::Release);
    }
    ring.launches.iter().flatten().for_each(|count| count.store(0, Ordering::Relaxed));
    ring.kept.store(false, Ordering::Release);
    ring.broken.store(false, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn a_pool_is_emptied_when_all_that_writes_there_has_ended() {
        static FULL: AtomicU32 = AtomicU32::new(0);
        let context = 0x3000 as P;
        let flag = (&raw const FULL).cast_mut().cast();
        assert_eq!(pools::of(context, |_| Some((7, flag))), Some(7));
        let (made, ended) = (Cell::new(0x100u64), Cell::new(false));
        let make = || {
            made.set(made.get() + 1);
            Some(made.get() as P)
        };
        let begin = || begin(context, 3, make, |_| Some(ended.get()));
        begin().expect("a flight").launched(true);
        drop(begin().expect("one that is refused"));
        FULL.store(1, Ordering::Relaxed);
        let never = || panic!("something may write there");
        assert!(!turn(context, |_| Some(ended.get()), never), "it flies");
        let inside = begin().expect("a flight");
        ended.set(true);
        assert!(!turn(context, |_| Some(true), never), "a launch is being made");
        drop(inside);
        let empty = || {
            FULL.store(0, Ordering::Relaxed);
            true
        };
        assert!(!keeps(context));
        assert!(turn(context, |_| Some(true), empty) && keeps(context));
        assert!(turn(context, |_| Some(true), never), "it is not full");
        // What was kept is overwritten.
        let before = twins::overwritten_of(3);
        begin().expect("a flight").launched(true);
        begin().expect("a flight").launched(true);
        for over in [1, 3] {
            FULL.store(1, Ordering::Relaxed);
            assert!(turn(context, |_| Some(true), empty));
            assert_eq!(twins::overwritten_of(3) - before, over);
        }
        // As many as fly at a time have an event each; one more runs as it was.
        ended.set(false);
        let events = made.get();
        for _ in 0..FLIGHTS {
            begin().expect("a flight").launched(true);
        }
        assert!(begin().is_none() && made.get() <= events + FLIGHTS as u64);
        ended.set(true);
        assert!(begin().is_some());
        // Whose end can't be known is never taken for ended.
        begin().expect("a flight").launched(false);
        FULL.store(1, Ordering::Relaxed);
        assert!(!turn(context, |_| Some(true), never));
        end(context);
        assert!(!keeps(context) && turn(context, |_| Some(true), empty), "a new context of this handle");
        pools::end(|of| of == context, |_, _, _| {});
        assert!(ring(context).is_none() && ring(null_mut()).is_none());
    }
}
