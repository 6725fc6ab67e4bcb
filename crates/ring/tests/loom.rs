//! Every interleaving of one producer and one consumer, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-ring --test loom --release`.
#![cfg(loom)]

use hetrace_ring::cursor::{Head, Tail};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

const SIZE: u64 = 2;

struct Ring {
    head: Head,
    tail: Tail,
    data: [UnsafeCell<u64>; SIZE as usize],
}

#[test]
fn what_is_read_was_written_whole() {
    loom::model(|| {
        let ring = Arc::new(Ring {
            head: Head::new(),
            tail: Tail::new(),
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
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
