//! All that our programs write into, of all CPUs, and how often there was no room.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;

use super::buffer::Buffer;
use super::counts::Counts;
use super::maps::RING;
use super::ring::Ring;
use super::words::{HEAD, MARK};

/// What is mapped of the programs' memory. Vectors are by place among the CPUs.
#[derive(Debug)]
pub struct Buffers {
    /// Numbers of the CPUs.
    cpus: Vec<u32>,
    /// None on a realtime kernel.
    buffers: Vec<Buffer>,
    rings: Vec<Ring>,
    wake: OwnedFd,
    /// By number of the CPU: what did not fit into its ring buffer.
    counts: Arc<Counts>,
    /// By place: what was dropped when it was last asked for.
    known: Vec<u64>,
}

impl Buffers {
    /// Maps the programs' buffers of so many bytes, and their ring buffers, each with the number of its CPU.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(
        buffers: Vec<(u32, OwnedFd)>,
        size: usize,
        rings: Vec<(u32, OwnedFd)>,
        counts: Arc<Counts>,
    ) -> io::Result<Self> {
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let cpus: Vec<u32> = rings.iter().map(|(cpu, _)| *cpu).collect();
        let buffers = buffers.into_iter().map(|(_, buffer)| Buffer::map(buffer, size));
        let buffers = buffers.collect::<io::Result<Vec<_>>>()?;
        let rings = rings.into_iter().map(|(_, ring)| Ring::map(ring, RING as usize));
        let rings = rings.collect::<io::Result<Vec<_>>>()?;
        for ring in &rings {
            // Edges: else a reader would be woken by each record.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&wake, ring.event(), epoll::EventData::new_u64(0), flags)?;
        }
        let known = vec![0; cpus.len()];
        Ok(Self { cpus, buffers, rings, wake, counts, known })
    }

    /// Numbers of the CPUs.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Returns what can be polled: it is readable when a quarter of a buffer has been filled.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Forgets that there was something to read.
    pub fn awake(&self) {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        while matches!(epoll::wait(&self.wake, &mut events, Some(&now)), Ok((some, _)) if !some.is_empty()) {}
    }

    /// Appends the words of all unread records of a CPU, by its place, and those of records that interrupted another.
    /// Returns how many bytes made no sense.
    pub fn take(&mut self, cpu: usize, words: &mut Vec<u64>, nested: &mut Vec<u64>) -> usize {
        let damaged = self.buffers.get_mut(cpu).map_or(0, |buffer| buffer.take(words));
        let is_mark = |words: &[u64]| words.get(HEAD - 1).is_some_and(|word| *word as u8 == MARK);
        let put = |words: &[u64]| {
            if !is_mark(words) {
                nested.extend_from_slice(words);
            }
        };
        damaged + self.rings.get_mut(cpu).map_or(0, |ring| ring.take(put))
    }

    /// Returns how many records there was no room for since it was last asked, by the CPU's place, where there were some.
    pub fn dropped(&mut self) -> Vec<(usize, u64)> {
        let mut dropped = Vec::new();
        for (place, (cpu, known)) in self.cpus.iter().zip(&mut self.known).enumerate() {
            let buffer = self.buffers.get(place).map_or(0, Buffer::dropped);
            let now = self.counts.get(*cpu as usize).saturating_add(buffer);
            let fresh = now.saturating_sub(std::mem::replace(known, now));
            if fresh > 0 {
                dropped.push((place, fresh));
            }
        }
        dropped
    }
}

#[cfg(test)]
impl Buffers {
    /// Of one CPU, whose buffer is this; nothing wakes.
    pub fn of_one(buffer: Buffer) -> Self {
        let counts = tempfile::tempfile().unwrap();
        counts.set_len(8).unwrap();
        Self {
            cpus: vec![0],
            buffers: vec![buffer],
            rings: Vec::new(),
            wake: epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(),
            counts: Arc::new(Counts::map(counts, 1).unwrap()),
            known: vec![0],
        }
    }
}
