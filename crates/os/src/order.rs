//! Records of all CPUs in the order of time.
//!
//! ```text
//!  buffers ──► Taken: bytes as they were ──► chunk, sorted ──► heap of chunks ──► taker
//!              (crate::intake)               released once nothing earlier can come
//! ```
//! A record's time is taken before the record is visible, and a CPU of a virtual machine may be taken
//! away in between. So records wait for [`PATIENCE`]. Of our programs a CPU's records are in order but where one
//! interrupts another, so nothing is kept beside them; what is not in order gets a list of places.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::perf::bpf::{MOST_WORDS, length};
use crate::perf::record::{Record, Records};

/// How long records wait for earlier ones, in nanoseconds.
pub const PATIENCE: u64 = 20_000_000;
/// With so many bytes waiting, writing them is not put off any longer.
const PRESSES: usize = 128 << 20;
/// So many bytes may always wait,
const LEAST: usize = 256 << 20;
/// and so many if they are no more than one part of so many of the memory that is available.
const MOST: usize = 1 << 30;
const SHARE: usize = 8;
/// Bytes of memory that are kept for what is taken next.
const SPARE: usize = 16 << 20;

/// A record as it came out of a ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of perf's.
    Record(Record<'a>),
    /// Of our programs in the kernel: words, the first of which is the time.
    Words(&'a [u64]),
}

/// How many bytes wait, of those that were taken and not written yet. Shared by the thread that takes them.
#[derive(Debug)]
pub struct Waiting {
    bytes: AtomicUsize,
    most: usize,
    /// Memory of what was written, for what is taken next: to get and to return it are system calls that wait for each
    /// other, and whoever writes may be without a processor in the middle of one.
    spare: Mutex<Vec<Vec<u64>>>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { bytes: AtomicUsize::new(0), most: most(), spare: Mutex::default() }
    }
}

impl Waiting {
    /// Returns whether so much waits that nothing more should be taken: the kernel drops, and counts, what comes then.
    pub fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.most
    }

    /// Returns memory for words: empty.
    pub fn spare(&self) -> Vec<u64> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.pop().unwrap_or_default()
    }

    fn give_back(&self, mut words: Vec<u64>) {
        words.clear();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(Vec::capacity).sum();
        if (kept + words.capacity()) * size_of::<u64>() <= SPARE {
            spare.push(words);
        }
    }

    fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { of: Arc::clone(self), bytes }
    }
}

/// Returns how many bytes may wait.
fn most() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    (kib.unwrap_or(0).saturating_mul(1024) / SHARE).clamp(LEAST, MOST)
}

/// Bytes that count as long as this is there.
#[derive(Debug)]
struct Charge {
    of: Arc<Waiting>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What was in a buffer of a CPU at a time.
#[derive(Debug)]
pub struct Taken {
    cpu: usize,
    content: Content,
    charge: Charge,
}

#[derive(Debug)]
enum Content {
    Records(Vec<u8>),
    Words(Vec<u64>),
}

impl Taken {
    /// Records of perf's, of a CPU by its place; none if there are none.
    pub fn records(cpu: usize, bytes: Vec<u8>, waiting: &Arc<Waiting>) -> Option<Self> {
        let charge = (!bytes.is_empty()).then(|| waiting.charge(bytes.capacity()))?;
        Some(Self { cpu, content: Content::Records(bytes), charge })
    }

    /// Records of our programs, likewise: words one behind the other.
    pub fn words(cpu: usize, words: Vec<u64>, waiting: &Arc<Waiting>) -> Option<Self> {
        if words.is_empty() {
            waiting.give_back(words);
            return None;
        }
        let charge = waiting.charge(words.capacity() * size_of::<u64>());
        Some(Self { cpu, content: Content::Words(words), charge })
    }
}

/// Records that wait.
#[derive(Debug, Default)]
pub struct Order {
    chunks: BinaryHeap<Reverse<Chunk>>,
    /// Counts chunks: of equal times the earlier chunk is first.
    number: u64,
    waiting: Arc<Waiting>,
    damaged: u64,
}

/// Where the records of a chunk are.
#[derive(Debug)]
enum Places {
    /// One behind the other, the next one here.
    InOrder(usize),
    /// Time and place of each record, the last one first.
    Listed(Vec<(u64, u32, u32)>),
}

/// What was taken, while it is handed out.
#[derive(Debug)]
struct Chunk {
    cpu: usize,
    number: u64,
    content: Content,
    places: Places,
    /// The time of the next record.
    time: u64,
    _charges: [Option<Charge>; 2],
}

impl Chunk {
    fn key(&self) -> (u64, usize, u64) {
        (self.time, self.cpu, self.number)
    }

    /// Finds the next record. Returns whether there is one.
    fn find(&mut self) -> bool {
        let next = match (&self.places, &self.content) {
            (Places::InOrder(at), Content::Words(words)) => words.get(*at).copied(),
            (Places::InOrder(_), Content::Records(_)) => None,
            (Places::Listed(places), _) => places.last().map(|(time, ..)| *time),
        };
        self.time = next.unwrap_or(u64::MAX);
        next.is_some()
    }

    /// Hands out the next record. Returns whether there are more.
    fn release(&mut self, take: &mut impl FnMut(usize, Piece<'_>)) -> bool {
        let (begin, end) = match &mut self.places {
            Places::InOrder(at) => {
                let Content::Words(words) = &self.content else { return false };
                let begin = *at;
                // At least one, so that this ends.
                *at += words.get(begin..).map_or(0, length).max(1);
                (begin, *at)
            }
            Places::Listed(places) => match places.pop() {
                Some((_, begin, end)) => (begin as usize, end as usize),
                None => return false,
            },
        };
        match &self.content {
            Content::Records(bytes) => {
                let record = bytes.get(begin..end).and_then(|bytes| Records::new(bytes).next());
                record.into_iter().for_each(|record| take(self.cpu, Piece::Record(record)));
            }
            Content::Words(words) => {
                words.get(begin..end).into_iter().for_each(|words| take(self.cpu, Piece::Words(words)));
            }
        }
        self.find()
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
    /// Makes one of which so much waits already.
    pub fn with(waiting: Arc<Waiting>) -> Self {
        Self { waiting, ..Self::default() }
    }

    /// Adds what was taken.
    pub fn add(&mut self, taken: Taken) {
        let Taken { cpu, mut content, charge } = taken;
        let (places, damaged) = match &mut content {
            Content::Records(bytes) => listed_records(bytes),
            Content::Words(words) => places_of_words(words),
        };
        self.damaged += damaged as u64;
        let list = match &places {
            Places::InOrder(_) => None,
            Places::Listed(list) => Some(self.waiting.charge(size_of_val(list.as_slice()))),
        };
        self.number += 1;
        let charges = [Some(charge), list];
        let mut chunk = Chunk { cpu, number: self.number, content, places, time: 0, _charges: charges };
        if chunk.find() {
            self.chunks.push(Reverse(chunk));
        }
    }

    /// Returns the count of what waits.
    pub fn waiting(&self) -> &Arc<Waiting> {
        &self.waiting
    }

    /// Returns whether so much waits that writing it should not be put off.
    pub fn presses(&self) -> bool {
        self.waiting.bytes.load(Ordering::Relaxed) > PRESSES
    }

    /// Hands out records before a time, the earliest first and at most so many: of one CPU and one time in the order
    /// in which they came. Returns whether there are more.
    pub fn release(&mut self, before: u64, most: usize, mut take: impl FnMut(usize, Piece<'_>)) -> bool {
        let mut released = 0;
        while let Some(mut first) = self.chunks.peek_mut() {
            if first.0.time >= before {
                return false;
            }
            if released == most {
                return true;
            }
            released += 1;
            if !first.0.release(&mut take) {
                let Reverse(done) = PeekMut::pop(first);
                if let Content::Words(words) = done.content {
                    self.waiting.give_back(words);
                }
            }
        }
        false
    }

    /// Returns how many bytes made no sense.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// Lists the records of perf's. Returns also how many bytes made no sense.
fn listed_records(bytes: &[u8]) -> (Places, usize) {
    let (mut records, mut list) = (Records::new(bytes), Vec::new());
    while let Some(record) = records.next() {
        let place = records.place();
        list.push((record.time, place.start as u32, place.end as u32));
    }
    (sorted(list), records.damaged())
}

/// Finds the records of our programs, and shortens the words to those that are records. Returns also how many bytes are not.
fn places_of_words(words: &mut Vec<u64>) -> (Places, usize) {
    let (mut at, mut last, mut in_order) = (0, 0, true);
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        let length = length(rest);
        if length == 0 || length > rest.len().min(MOST_WORDS) {
            break;
        }
        in_order &= rest[0] >= last;
        last = rest[0];
        at += length;
    }
    let damaged = (words.len() - at) * size_of::<u64>();
    words.truncate(at);
    if in_order {
        return (Places::InOrder(0), damaged);
    }
    let (mut at, mut list) = (0, Vec::new());
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        let end = at + length(rest).max(1);
        list.push((rest[0], at as u32, end as u32));
        at = end;
    }
    (sorted(list), damaged)
}

/// They come nearly sorted. Of one time the one that was written first is first.
fn sorted(mut list: Vec<(u64, u32, u32)>) -> Places {
    list.reverse();
    list.sort_by_key(|(time, begin, _)| Reverse((*time, *begin)));
    Places::Listed(list)
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

    impl Order {
        fn put(&mut self, cpu: usize, bytes: Vec<u8>) {
            let waiting = Arc::clone(&self.waiting);
            Taken::records(cpu, bytes, &waiting).into_iter().for_each(|taken| self.add(taken));
        }

        fn put_words(&mut self, cpu: usize, words: Vec<u64>) {
            let waiting = Arc::clone(&self.waiting);
            Taken::words(cpu, words, &waiting).into_iter().for_each(|taken| self.add(taken));
        }

        fn bytes(&self) -> usize {
            self.waiting.bytes.load(Ordering::Relaxed)
        }
    }

    proptest! {
        #[test]
        fn all_come_once_and_in_order(
            mut cpus in prop::collection::vec(prop::collection::vec(0u64..100, 0..20), 1..4),
            in_order in any::<bool>(),
            steps in prop::collection::vec(0u64..110, 0..5),
        ) {
            let mut order = Order::default();
            let mut number = 0;
            let mut expected = Vec::new();
            for (cpu, times) in cpus.iter_mut().enumerate() {
                let half = times.len() / 2;
                let (perf, words) = times.split_at_mut(half);
                if in_order {
                    words.sort_unstable();
                }
                let mut numbered = |time: &u64| {
                    expected.push((*time, cpu, number));
                    number += 1;
                    number - 1
                };
                let perf: Vec<u8> = perf.iter().flat_map(|time| switch(*time, numbered(time))).collect();
                let words = words.iter().flat_map(|time| [*time, u64::from(numbered(time)), 3 << 8]).collect();
                order.put(cpu, perf);
                order.put_words(cpu, words);
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
            prop_assert_eq!((order.damaged(), order.bytes()), (0, 0));
        }
    }

    #[test]
    fn noise_is_counted() {
        let mut order = Order::default();
        order.put(0, [switch(1, 1), vec![7; 30]].concat());
        // One that is longer than what there is, and one without a length.
        order.put_words(0, vec![2, 0, 3 << 8, 3, 0, 200 << 8]);
        order.put_words(0, vec![4, 0, 3 << 8, 5, 0, 0, 0]);
        order.put_words(1, vec![6]);
        let mut times = Vec::new();
        let more = order.release(u64::MAX, 9, |_, piece| match piece {
            Piece::Record(record) => times.push(record.time),
            Piece::Words(words) => times.push(words[0]),
        });
        assert!(!more);
        assert_eq!((times, order.damaged()), (vec![1, 2, 4], 30 + 24 + 32 + 8));
        assert_eq!(order.bytes(), 0);
    }

    #[test]
    fn what_waits_is_counted_until_it_is_handed_out() {
        let mut order = Order::default();
        let waiting = Arc::clone(order.waiting());
        let taken = Taken::words(0, vec![0; (waiting.most + 8) / 8], &waiting).expect("words");
        assert!(waiting.is_full() && order.presses());
        drop(taken);
        assert!(!waiting.is_full() && !order.presses());
        order.put_words(0, vec![1, 0, 3 << 8]);
        assert!(order.bytes() >= 24);
        assert!((LEAST..=MOST).contains(&waiting.most));
        assert!(!order.release(u64::MAX, 9, |_, _| ()));
        assert!(waiting.spare().capacity() >= 3 && waiting.spare().capacity() == 0);
        waiting.give_back(Vec::with_capacity(SPARE / 8 + 1));
        assert_eq!(waiting.spare().capacity(), 0);
    }
}
