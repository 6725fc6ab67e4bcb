//! Records of all CPUs in the order of time.
//!
//! ```text
//!  ring 0 ──► bytes ─┐                     released once nothing earlier can come
//!  ring 1 ──► bytes ─┴─► sorted by time ──────────────────────────────────────────► taker
//! ```
//! A record's time is taken before the record is visible, and a CPU of a virtual machine may be taken
//! away in between. So records wait for [`PATIENCE`].

use std::ops::Range;

use crate::perf::record::{Record, Records};

/// How long records wait for earlier ones, in nanoseconds.
pub const PATIENCE: u64 = 20_000_000;

/// Records that wait.
#[derive(Debug, Default)]
pub struct Order {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    damaged: u64,
}

#[derive(Debug, Clone)]
struct Waiting {
    time: u64,
    cpu: usize,
    place: Range<usize>,
}

impl Order {
    /// Takes what is unread in a CPU's ring buffer: `read` appends it.
    pub fn add(&mut self, cpu: usize, read: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        read(&mut self.bytes);
        let mut records = Records::new(&self.bytes[begin..]);
        while let Some(record) = records.next() {
            let place = records.place();
            let place = begin + place.start..begin + place.end;
            self.waiting.push(Waiting { time: record.time, cpu, place });
        }
        self.damaged += records.damaged() as u64;
    }

    /// Hands out all records before a time, the earliest first: of one CPU and one time in the order in
    /// which they were written.
    pub fn release(&mut self, before: u64, mut take: impl FnMut(usize, Record<'_>)) {
        // Sorting is stable, and each CPU's records come nearly sorted.
        self.waiting.sort_by_key(|w| (w.time, w.cpu));
        let due = self.waiting.partition_point(|w| w.time < before);
        for waiting in &self.waiting[..due] {
            let record = Records::new(&self.bytes[waiting.place.clone()]).next();
            record.into_iter().for_each(|record| take(waiting.cpu, record));
        }
        self.waiting.drain(..due);
        self.forget();
    }

    /// Returns how many bytes made no sense.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Keeps the bytes of waiting records only.
    fn forget(&mut self) {
        let mut kept = Vec::with_capacity(self.waiting.iter().map(|w| w.place.len()).sum());
        for waiting in &mut self.waiting {
            let begin = kept.len();
            kept.extend_from_slice(&self.bytes[waiting.place.clone()]);
            waiting.place = begin..kept.len();
        }
        self.bytes = kept;
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
                order.add(cpu, |bytes| for time in times {
                    bytes.extend(switch(*time, number));
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
                order.release(before, |cpu, r| {
                    assert_eq!(r.what, What::In);
                    found.push((r.time, cpu, r.who.tid));
                });
                prop_assert!(found[had..].iter().all(|(time, ..)| *time < before));
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!(order.damaged(), 0);
        }
    }

    #[test]
    fn noise_is_counted() {
        let mut order = Order::default();
        order.add(0, |bytes| bytes.extend([switch(1, 1), vec![7; 30]].concat()));
        let mut times = Vec::new();
        order.release(u64::MAX, |_, r| times.push(r.time));
        assert_eq!((times, order.damaged()), (vec![1], 30));
    }
}
