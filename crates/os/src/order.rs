//! Records of all CPUs in the order of time.
//!
//! ```text
//!  ring 0 ──► chunk, sorted ─┐                    released once nothing earlier can come
//!  ring 1 ──► chunk, sorted ─┴─► heap of chunks ──────────────────────────────────────────► taker
//! ```
//! A record's time is taken before the record is visible, and a CPU of a virtual machine may be taken
//! away in between. So records wait for [`PATIENCE`]. Taking them out of the ring buffers is a copy and no more: what
//! a storm leaves behind is released bit by bit, and ring buffers are emptied in between.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::perf::record::{Record, Records};

/// How long records wait for earlier ones, in nanoseconds.
pub const PATIENCE: u64 = 20_000_000;
/// Most bytes that wait. The kernel drops, and counts, what comes then.
pub const MOST: usize = 256 << 20;

/// A record as it came out of a ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of perf's.
    Record(Record<'a>),
    /// Of our programs in the kernel: words, the first of which is the time.
    Words(&'a [u64]),
}

/// Records that wait.
#[derive(Debug, Default)]
pub struct Order {
    chunks: BinaryHeap<Reverse<Chunk>>,
    /// Counts chunks: of equal times the earlier chunk is first.
    number: u64,
    bytes: usize,
    damaged: u64,
}

/// What was in a ring buffer at a time.
#[derive(Debug)]
struct Chunk {
    cpu: usize,
    number: u64,
    content: Content,
    /// Time and place of each record, the last one first.
    waiting: Vec<(u64, u32, u32)>,
}

#[derive(Debug)]
enum Content {
    Records(Vec<u8>),
    Words(Vec<u64>),
}

impl Chunk {
    fn key(&self) -> (u64, usize, u64) {
        (self.waiting.last().map_or(u64::MAX, |(time, ..)| *time), self.cpu, self.number)
    }

    fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Records(bytes) => bytes.len(),
            Content::Words(words) => words.len() * 8,
        };
        content + self.waiting.capacity() * size_of::<(u64, u32, u32)>()
    }
}

impl PartialEq for Chunk {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Chunk {}

impl PartialOrd for Chunk {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Chunk {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Order {
    /// Takes what is unread in a CPU's ring buffer of perf's: `read` appends it.
    pub fn add(&mut self, cpu: usize, read: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        read(&mut bytes);
        let (mut records, mut waiting) = (Records::new(&bytes), Vec::new());
        while let Some(record) = records.next() {
            let place = records.place();
            waiting.push((record.time, place.start as u32, place.end as u32));
        }
        self.damaged += records.damaged() as u64;
        self.push(cpu, Content::Records(bytes), waiting);
    }

    /// Takes what is unread in a CPU's ring buffer of our programs: `read` hands over the words of each record.
    pub fn add_words(&mut self, cpu: usize, read: impl FnOnce(&mut dyn FnMut(&[u64]))) {
        let (mut words, mut waiting) = (Vec::new(), Vec::new());
        read(&mut |record| {
            let Some(time) = record.first() else { return };
            let begin = words.len();
            words.extend_from_slice(record);
            waiting.push((*time, begin as u32, words.len() as u32));
        });
        self.push(cpu, Content::Words(words), waiting);
    }

    fn push(&mut self, cpu: usize, content: Content, mut waiting: Vec<(u64, u32, u32)>) {
        if waiting.is_empty() {
            return;
        }
        // They come nearly sorted. Of one time the one that was written first is first.
        waiting.reverse();
        waiting.sort_by_key(|(time, begin, _)| Reverse((*time, *begin)));
        self.number += 1;
        let chunk = Chunk { cpu, number: self.number, content, waiting };
        self.bytes += chunk.bytes();
        self.chunks.push(Reverse(chunk));
    }

    /// Returns whether so much waits that writing it should not be put off.
    pub fn presses(&self) -> bool {
        self.bytes > MOST / 2
    }

    /// Returns whether so much waits that nothing more should be taken.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST
    }

    /// Hands out records before a time, the earliest first and at most so many: of one CPU and one time in the order
    /// in which they came. Returns whether there are more.
    pub fn release(&mut self, before: u64, most: usize, mut take: impl FnMut(usize, Piece<'_>)) -> bool {
        let mut released = 0;
        while let Some(mut first) = self.chunks.peek_mut() {
            let chunk = &mut first.0;
            let Some((_, begin, end)) = chunk.waiting.last().copied().filter(|(time, ..)| *time < before)
            else {
                return false;
            };
            if released == most {
                return true;
            }
            released += 1;
            let place = begin as usize..end as usize;
            match &chunk.content {
                Content::Records(bytes) => {
                    let record = bytes.get(place).and_then(|bytes| Records::new(bytes).next());
                    record.into_iter().for_each(|record| take(chunk.cpu, Piece::Record(record)));
                }
                Content::Words(words) => {
                    words.get(place).into_iter().for_each(|words| take(chunk.cpu, Piece::Words(words)));
                }
            }
            chunk.waiting.pop();
            if chunk.waiting.is_empty() {
                let Reverse(chunk) = std::collections::binary_heap::PeekMut::pop(first);
                self.bytes = self.bytes.saturating_sub(chunk.bytes());
            }
        }
        false
    }

    /// Returns how many bytes made no sense.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::perf::record::What;

    /// A switch of this time.
    fn switch(time: u64, tid: u32) -> Vec<u8> {
        let parts: [&[u8]; 6] = [
            &14u32.to_ne_bytes(),
            &0u16.to_ne_bytes(),
            &24u16.to_ne_bytes(),
            &1u32.to_ne_bytes(),
            &tid.to_ne_bytes(),
            &time.to_ne_bytes(),
        ];
        parts.concat()
    }

    proptest! {
        #[test]
        fn all_come_once_and_in_order(
            cpus in prop::collection::vec(prop::collection::vec(0u64..100, 0..20), 1..4),
            steps in prop::collection::vec(0u64..110, 0..5),
        ) {
            let mut order = Order::default();
            let mut number = 0;
            let mut expected = Vec::new();
            for (cpu, times) in cpus.iter().enumerate() {
                let (perf, words) = times.split_at(times.len() / 2);
                order.add(cpu, |bytes| for time in perf {
                    bytes.extend(switch(*time, number));
                    expected.push((*time, cpu, number));
                    number += 1;
                });
                order.add_words(cpu, |put| for time in words {
                    put(&[*time, u64::from(number)]);
                    expected.push((*time, cpu, number));
                    number += 1;
                });
            }
            expected.sort_unstable();
            let mut found = Vec::new();
            let mut steps = steps.clone();
            steps.sort_unstable();
            for before in steps.into_iter().chain([u64::MAX]) {
                let had = found.len();
                // A few at a time.
                while order.release(before, 3, |cpu, piece| match piece {
                    Piece::Record(r) => {
                        assert_eq!(r.what, What::In);
                        found.push((r.time, cpu, r.who.tid));
                    }
                    Piece::Words(words) => found.push((words[0], cpu, words[1] as u32)),
                }) {}
                prop_assert!(found[had..].iter().all(|(time, ..)| *time < before));
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!((order.damaged(), order.bytes), (0, 0));
        }
    }

    #[test]
    fn noise_is_counted() {
        let mut order = Order::default();
        order.add(0, |bytes| bytes.extend([switch(1, 1), vec![7; 30]].concat()));
        let mut times = Vec::new();
        let more = order.release(u64::MAX, 9, |_, piece| match piece {
            Piece::Record(record) => times.push(record.time),
            Piece::Words(_) => panic!("{piece:?}"),
        });
        assert!(!more);
        assert_eq!((times, order.damaged()), (vec![1], 30));
    }
}
