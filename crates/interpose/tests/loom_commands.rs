//! Every interleaving of owners and collectors of commands in flight, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-interpose --test loom_commands --release`.
#![cfg(loom)]

use hetrace_interpose::commands::links::{Claim, Inbox, Link, Returned, Spares};
use hetrace_interpose::commands::waiting::Waiting;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
// Of the tests, not of what is tested: loom need not know of it.
use std::sync::atomic::AtomicUsize;

/// A node with what is to be handed over in it; loom reports a race if two touch it.
struct Node {
    arrival: Link,
    next: Link,
    value: UnsafeCell<u32>,
}

struct Shared {
    nodes: Vec<Node>,
    inbox: Inbox,
    returned: Returned,
    spares: Spares,
    claim: Claim,
    /// The collector's; guarded by the claim.
    kept_is_free: UnsafeCell<bool>,
    seen: UnsafeCell<Vec<u32>>,
    put: AtomicU32,
}

impl Shared {
    fn new(nodes: usize) -> Arc<Shared> {
        let node = |_| Node { arrival: Link::new(), next: Link::new(), value: UnsafeCell::new(0) };
        Arc::new(Shared {
            nodes: (0..nodes).map(node).collect(),
            inbox: Inbox::new(),
            returned: Returned::new(),
            spares: Spares::new(),
            claim: Claim::new(),
            kept_is_free: UnsafeCell::new(false),
            seen: UnsafeCell::new(Vec::new()),
            put: AtomicU32::new(0),
        })
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get((number as usize).wrapping_sub(1))
    }

    fn arrival(&self, number: u32) -> Option<&Link> {
        self.node(number).map(|n| &n.arrival)
    }

    /// As `Block::push` does it: with its own nodes, or those that have come back.
    fn put(&self, spare: &mut u32, value: u32) -> bool {
        if *spare == 0 {
            *spare = self.returned.take();
        }
        let Some(node) = self.node(*spare) else { return false };
        let number = std::mem::replace(spare, node.next.get());
        node.value.with_mut(|v| unsafe { *v = value });
        unsafe { self.inbox.put(number, &node.arrival) };
        self.put.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// As a round does it, if each command has ended when it is taken.
    fn collect(&self) {
        self.claim.holding(|| {
            loop {
                let before = self.inbox.kept();
                let Some(number) = self.inbox.take(|n| self.arrival(n)) else { return };
                let was_free = self.kept_is_free.with_mut(|k| unsafe { std::mem::replace(&mut *k, false) });
                if was_free {
                    self.returned.give(before, &self.node(before).unwrap().next);
                }
                let value = self.node(number).unwrap().value.with(|v| unsafe { *v });
                self.seen.with_mut(|s| unsafe { (*s).push(value) });
                // It came last: its link is still the owner's.
                self.kept_is_free.with_mut(|k| unsafe { *k = true });
            }
        });
    }
}

#[test]
fn what_is_collected_was_put_in_whole_and_in_order() {
    loom::model(|| {
        let shared = Shared::new(2);
        let owner = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.node(1).unwrap().next.set(2);
                let mut spare = 1;
                (1..=3).filter(|value| shared.put(&mut spare, *value)).collect::<Vec<u32>>()
            })
        };
        shared.collect();
        shared.collect();
        let put = owner.join().unwrap();
        shared.collect();
        let seen = shared.seen.with(|s| unsafe { (*s).clone() });
        assert_eq!(seen, put);
        assert!(put.len() >= 2);
    });
}

#[test]
fn of_two_collectors_one_has_the_commands() {
    loom::model(|| {
        let shared = Shared::new(2);
        shared.node(1).unwrap().next.set(2);
        let mut spare = 1;
        assert!(shared.put(&mut spare, 1));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.collect())
        };
        assert!(shared.put(&mut spare, 2));
        shared.collect();
        other.join().unwrap();
        shared.collect();
        assert_eq!(shared.seen.with(|s| unsafe { (*s).clone() }), [1, 2]);
    });
}

/// A thread takes a batch, changes it as its own, and gives it back. The same one may come again,
/// with another behind it, between another's look and its exchange.
#[test]
fn a_batch_has_one_owner() {
    loom::model(|| {
        let shared = Shared::new(2);
        for number in [1, 2] {
            shared.spares.give(number, &shared.node(number).unwrap().arrival);
        }
        let take = |shared: &Shared| {
            let batch = shared.spares.take(|n| shared.arrival(n));
            if let Some(node) = shared.node(batch) {
                node.value.with_mut(|v| unsafe { *v += 1 });
            }
            batch
        };
        let give = |shared: &Shared, batch: u32| {
            if let Some(node) = shared.node(batch) {
                shared.spares.give(batch, &node.arrival);
            }
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let batch = take(&shared);
                give(&shared, batch);
                batch
            })
        };
        // The first one comes again, and another is behind it.
        let (one, two) = (take(&shared), take(&shared));
        give(&shared, one);
        give(&shared, two);
        let three = other.join().unwrap();
        let mut left = [0, 0].map(|_| shared.spares.take(|n| shared.arrival(n)));
        left.sort_unstable();
        assert_eq!(left, [1, 2]);
        let taken: u32 = shared.nodes.iter().map(|n| n.value.with(|v| unsafe { *v })).sum();
        assert_eq!(taken, [one, two, three].iter().filter(|b| **b != 0).count() as u32);
    });
}

/// A thread in need takes what came back for another.
#[test]
fn what_came_back_goes_to_one() {
    loom::model(|| {
        let shared = Shared::new(2);
        let give = |shared: &Shared, number| {
            let node = shared.node(number).unwrap();
            node.value.with_mut(|v| unsafe { *v += 1 });
            shared.returned.give(number, &node.next);
        };
        let take = |shared: &Shared| {
            let (mut count, mut next) = (0, shared.returned.take());
            while let Some(node) = shared.node(next) {
                node.value.with_mut(|v| unsafe { *v += 1 });
                next = node.next.get();
                count += 1;
            }
            count
        };
        let thief = {
            let shared = shared.clone();
            thread::spawn(move || take(&shared))
        };
        give(&shared, 1);
        give(&shared, 2);
        let here = take(&shared);
        let there = thief.join().unwrap();
        assert_eq!(here + there + take(&shared), 2);
    });
}

/// Of two threads that look at what waits one has it, whole; what it is not done with the other may have behind it.
/// The exchange in `Slot::take_up` with its Acquire, and Release in `Slot::fill`.
#[test]
fn what_waits_is_taken_up_once() {
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let shared = Arc::new((Waiting::<u32, 1>::new(), UnsafeCell::new(0u32)));
        // Where loom looks whether what was written before is seen, and whether two have it.
        let look = |shared: &(Waiting<u32, 1>, UnsafeCell<u32>), last: bool| {
            let mut seen = 0;
            shared.0.each(7, |value| {
                let looks = shared.1.with_mut(|looks| unsafe {
                    *looks += 1;
                    *looks
                });
                assert_eq!(value, 5);
                KEPT.fetch_add(usize::from(looks == 2), Ordering::Relaxed);
                seen += u32::from(looks > 1 || last);
                looks > 1 || last
            });
            seen
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || look(&shared, false) + look(&shared, false))
        };
        shared.1.with_mut(|looks| unsafe { *looks = 0 });
        assert!(shared.0.leave(7, 1, 5));
        let here = look(&shared, false);
        let there = other.join().unwrap();
        assert_eq!(here + there + look(&shared, true), 1);
        assert!(!shared.0.may_have_some());
    });
    assert!(KEPT.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// A place serves one value after another: of threads that leave one at once each has a place, and who takes a place has
/// it when the last one is done with it. The exchange in `Slot::claim` with its Acquire, and Release in `Slot::free`.
#[test]
fn a_place_serves_one_value_after_another() {
    static AGAIN: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let waiting = Arc::new(Waiting::<u32, 1>::new());
        assert!(waiting.leave(7, 1, 1));
        let other = {
            let waiting = waiting.clone();
            thread::spawn(move || waiting.leave(7, 1, 100))
        };
        let mut sum = 0;
        waiting.each(7, |value| {
            sum += value;
            true
        });
        let here = waiting.leave(7, 1, 10);
        let there = other.join().unwrap();
        AGAIN.fetch_add(usize::from(there), Ordering::Relaxed);
        waiting.each(7, |value| {
            sum += value;
            true
        });
        assert_eq!(sum, 1 + if here { 10 } else { 0 } + if there { 100 } else { 0 });
        assert!(here || there);
        assert!(!waiting.may_have_some() && waiting.bytes(7) == 0);
    });
    assert!(AGAIN.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}
