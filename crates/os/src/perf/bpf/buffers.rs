//! All that our programs write into, of all CPUs, and how often there was no room.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;

use super::buffer::Buffer;
use super::counts::Counts;
use super::maps::Kept;
use super::ring::Ring;
use super::words::{HEAD, MARK, length};

/// What is to be mapped: see [`super::maps::Maps`].
#[derive(Debug)]
pub struct Mapped {
    pub cpus: Vec<u32>,
    pub buffers: Kept,
    pub size: usize,
    pub ring: OwnedFd,
    pub ring_size: usize,
}

/// What is mapped of the programs' memory. Vectors are by place among the CPUs.
#[derive(Debug)]
pub struct Buffers {
    /// Numbers of the CPUs.
    cpus: Vec<u32>,
    /// None on a realtime kernel.
    buffers: Vec<Buffer>,
    /// None in some tests.
    ring: Option<Ring>,
    /// What was in the ring buffer.
    nested: Vec<Vec<u64>>,
    /// Records of CPUs that came later than recording began.
    homeless: u64,
    wake: OwnedFd,
    /// By number of the CPU: what did not fit into its ring buffer.
    counts: Arc<Counts>,
    /// By place: what was dropped when it was last asked for.
    known: Vec<u64>,
}

impl Buffers {
    /// Maps the programs' buffers and their ring buffer.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(maps: Mapped, counts: Arc<Counts>) -> io::Result<Self> {
        let Mapped { cpus, buffers, size, ring, ring_size } = maps;
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let buffers = match buffers {
            Kept::Arena(arena) => cpus.iter().map(|cpu| Buffer::in_arena(&arena, *cpu, size)).collect(),
            Kept::Arrays(arrays) => arrays.iter().map(|(_, array)| Buffer::map(array, size)).collect(),
            Kept::Nothing => Ok(Vec::new()),
        };
        let buffers: Vec<Buffer> = buffers?;
        let ring = Ring::map(ring, ring_size)?;
        // Edges: else a reader would be woken by each record.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&wake, ring.event(), epoll::EventData::new_u64(0), flags)?;
        let (known, nested) = (vec![0; cpus.len()], vec![Vec::new(); cpus.len()]);
        Ok(Self { cpus, buffers, ring: Some(ring), nested, homeless: 0, wake, counts, known })
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
        let damaged = damaged + self.sort();
        nested.append(&mut self.nested[cpu]);
        damaged
    }

    /// Sorts what is in the ring buffer by the CPUs. Returns how many bytes made no sense.
    fn sort(&mut self) -> usize {
        let Self { ring: Some(ring), cpus, nested, homeless, .. } = self else { return 0 };
        let mut damaged = 0;
        let is_mark = |words: &[u64]| words.get(HEAD - 1).is_some_and(|word| *word as u8 == MARK);
        let taken = ring.take(|words| {
            let Some((cpu, words)) = words.split_first() else { return };
            if is_mark(words) {
                return;
            }
            match cpus.binary_search(&(*cpu as u32)) {
                // What is behind it would not be found.
                Ok(_) if length(words) != words.len() => damaged += size_of_val(words),
                Ok(place) => nested[place].extend_from_slice(words),
                Err(_) => *homeless += 1,
            }
        });
        taken + damaged
    }

    /// Returns how many records there was no room for since it was last asked, by the CPU's place, where there were some.
    pub fn dropped(&mut self) -> Vec<(usize, u64)> {
        let mut dropped = Vec::new();
        let homeless = std::mem::take(&mut self.homeless);
        if homeless > 0 {
            dropped.push((0, homeless));
        }
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
            ring: None,
            nested: vec![Vec::new()],
            homeless: 0,
            wake: epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(),
            counts: Arc::new(Counts::map(counts, 1).unwrap()),
            known: vec![0],
        }
    }
}
