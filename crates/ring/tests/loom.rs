//! Every interleaving of those who meet at a ring, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-ring --test loom --release`.
//!
//! Each ordering that a test names was weakened to `Relaxed` once, and the test failed.
#![cfg(loom)]

use hetrace_ring::cursor::{Head, Tail};
use hetrace_ring::tenure::State;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
// Of the test, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: u64 = 2;

struct Ring {
    head: Head,
    tail: Tail,
    state: State,
    data: [UnsafeCell<u64>; SIZE as usize],
}

impl Ring {
    fn new() -> Arc<Ring> {
        let data = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(Ring { head: Head::new(), tail: Tail::new(), state: State::new(), data })
    }

    /// As a thread that has claimed the ring: loom reports a race if another may be there.
    fn write(&self, value: u64) {
        let head = self.head.own();
        self.data[(head % SIZE) as usize].with_mut(|p| unsafe { *p = value });
        self.head.publish(head + 1);
    }

    /// As the drainer: all that is published.
    fn take(&self) -> Vec<u64> {
        let (mut tail, head) = (self.tail.own(), self.head.published());
        let mut taken = Vec::new();
        while tail < head {
            taken.push(self.data[(tail % SIZE) as usize].with(|p| unsafe { *p }));
            tail += 1;
        }
        self.tail.release(tail);
        taken
    }

    fn claim(&self) -> bool {
        self.state.claim(&self.head, &self.tail, SIZE)
    }
}

/// Two threads look for a ring: one gets it. When that one has ended, the other may have it, and
/// records behind what is there. Release in `State::end`, Acquire in `State::claim`.
#[test]
fn a_ring_has_one_thread_at_a_time() {
    loom::model(|| {
        let ring = Ring::new();
        let thread = |value| {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let mine = ring.claim();
                if mine {
                    ring.state.begin();
                    ring.write(value);
                    ring.state.end();
                }
                mine
            })
        };
        let threads = [thread(1), thread(2)];
        let claimed = threads.map(|t| t.join().unwrap());
        let expected: Vec<u64> = (1..).zip(claimed).filter(|(_, mine)| *mine).map(|(i, _)| i).collect();
        let mut seen = ring.take();
        seen.sort_unstable();
        assert!(!seen.is_empty());
        assert_eq!(seen, expected);
    });
}

/// A thread goes on in a larger ring, and the drainer after it: nothing is left behind.
/// Release in `State::leave`, Acquire in `State::is_left`.
#[test]
fn a_ring_that_was_left_is_drained_to_its_end() {
    loom::model(|| {
        let (small, large) = (Ring::new(), Ring::new());
        let thread = {
            let (small, large) = (small.clone(), large.clone());
            loom::thread::spawn(move || {
                small.write(1);
                small.write(2);
                small.state.leave();
                large.write(3);
            })
        };
        let mut seen = Vec::new();
        for _ in 0..2 {
            // In this order, as `hand_over` does: that it was left, and then that it is empty.
            seen.extend(small.take());
            if small.state.is_left() && small.head.published() == small.tail.own() {
                seen.extend(large.take());
                break;
            }
        }
        thread.join().unwrap();
        assert!([1, 2, 3].starts_with(&seen), "{seen:?}");
    });
}

/// The drainer frees what a thread left, and another takes it and records behind what was there.
/// Release in `State::leave` and `State::free`, Acquire in `State::is_left` and `State::claim`: the next
/// thread knows of the first one by the drainer alone.
#[test]
fn a_ring_that_was_left_serves_another_thread() {
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let ring = Ring::new();
        ring.state.begin();
        let drainer = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let mut seen = Vec::new();
                if ring.state.is_left() {
                    seen = ring.take();
                    ring.state.free();
                }
                seen
            })
        };
        let next = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let mine = ring.claim();
                if mine {
                    ring.write(2);
                }
                mine
            })
        };
        ring.write(1);
        ring.state.leave();
        let mut seen = drainer.join().unwrap();
        let expected = if next.join().unwrap() { vec![1, 2] } else { vec![1] };
        SERVED.fetch_add(expected.len() - 1, Ordering::Relaxed);
        seen.extend(ring.take());
        assert_eq!(seen, expected);
    });
    assert!(SERVED.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// A ring that another thread had, filled and gave back since one looked has no room for that one.
/// The second look in `State::claim`.
#[test]
fn a_ring_that_was_filled_meanwhile_is_not_claimed() {
    loom::model(|| {
        let ring = Ring::new();
        ring.state.end();
        let thread = |value| {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let mine = ring.claim();
                if mine {
                    ring.write(value);
                    ring.write(value);
                    ring.state.end();
                }
                mine
            })
        };
        let threads = [thread(1), thread(2)];
        let claimed = threads.map(|t| t.join().unwrap());
        assert_eq!(claimed.iter().filter(|mine| **mine).count(), 1);
        let seen = ring.take();
        assert_eq!(seen, if claimed[0] { [1, 1] } else { [2, 2] });
    });
}

#[test]
fn what_is_read_was_written_whole() {
    loom::model(|| {
        let ring = Ring::new();
        let producer = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                let mut written = 0;
                for value in 1..=3u64 {
                    let head = ring.head.own();
                    if head - ring.tail.released() == SIZE {
                        continue; // Full: dropped, as the real writer does.
                    }
                    // loom reports a race if the consumer may still read here.
                    ring.data[(head % SIZE) as usize].with_mut(|p| unsafe { *p = value });
                    ring.head.publish(head + 1);
                    written += 1;
                }
                written
            })
        };
        let mut seen = Vec::new();
        for _ in 0..2 {
            let tail = ring.tail.own();
            if ring.head.published() > tail {
                seen.push(ring.data[(tail % SIZE) as usize].with(|p| unsafe { *p }));
                ring.tail.release(tail + 1);
            }
        }
        let written = producer.join().unwrap();
        assert!(seen.len() as u64 <= written);
        assert!(seen.is_sorted() && seen.iter().all(|v| *v != 0));
    });
}
