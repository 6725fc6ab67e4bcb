//! What the kernel writes for us to read: perf's ring buffers and our programs' buffers, of all CPUs.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::order::{Taken, Waiting};
use crate::perf::bpf::Buffers;
use crate::perf::ring::Ring;
use crate::perf::user::Hits;

/// All that is emptied. Vectors are by place among the CPUs.
#[derive(Debug, Default)]
pub struct Intake {
    /// Perf's, of tracepoints and switches.
    pub rings: Vec<Ring>,
    /// Our programs'.
    pub buffers: Option<Buffers>,
    /// Probes in the program's code, and the number of the first one's records.
    pub hits: Option<(Hits, u16)>,
}

/// What was in all buffers.
#[derive(Debug, Default)]
pub struct Batch {
    /// What there was, in no order.
    pub taken: Vec<Taken>,
    /// By place among the CPUs: how many records were dropped since the batch before.
    pub dropped: Vec<(usize, u64)>,
    /// How many bytes made no sense.
    pub damaged: u64,
}

impl Batch {
    fn lost(&mut self, cpu: usize, records: u64) {
        if records > 0 {
            self.dropped.push((cpu, records));
        }
    }
}

impl Intake {
    /// Takes what is unread in all buffers: copies, and no more.
    pub fn empty(&mut self, waiting: &Arc<Waiting>) -> Batch {
        let mut batch = Batch::default();
        for (cpu, ring) in self.rings.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            batch.taken.extend(Taken::records(cpu, bytes, waiting));
            batch.lost(cpu, ring.dropped());
        }
        if let Some((hits, first)) = &mut self.hits {
            for cpu in 0..hits.rings.len() {
                let mut bytes = Vec::new();
                hits.take(cpu, *first, &mut bytes);
                batch.taken.extend(Taken::records(cpu, bytes, waiting));
                batch.lost(cpu, hits.rings[cpu].dropped());
            }
            batch.damaged += std::mem::take(&mut hits.damaged) as u64;
        }
        if let Some(buffers) = &mut self.buffers {
            for cpu in 0..buffers.cpus().len() {
                let (mut words, mut nested) = (waiting.spare(), Vec::new());
                batch.damaged += buffers.take(cpu, &mut words, &mut nested) as u64;
                batch.taken.extend(Taken::words(cpu, words, waiting));
                batch.taken.extend(Taken::words(cpu, nested, waiting));
            }
            batch.dropped.append(&mut buffers.dropped());
        }
        batch
    }

    /// Returns what can be polled: one is readable when a buffer is filled to its mark.
    pub fn wakes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let hits = self.hits.iter().flat_map(|(hits, _)| &hits.rings);
        let rings = self.rings.iter().chain(hits).map(Ring::event);
        rings.chain(self.buffers.as_ref().map(Buffers::wake))
    }

    /// Forgets that there was something to read.
    pub fn awake(&self) {
        self.buffers.iter().for_each(Buffers::awake);
    }
}
