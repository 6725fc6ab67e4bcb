//! Reads what twins wrote: [docs/inside.md](../../../docs/inside.md) has the layout.
//!
//! ```text
//!  pool: header, chunks ──► by launch, thread block, warp, leader ──► chunks of a leader in order of their clocks
//!                                                      └──► records of a warp in order of time, begins and ends of lanes
//! ```
//! Any bytes can be read. What makes no sense is left out and counted ([`Faults`]).
//!
//! Times are of the clock of the multiprocessor. A record has its lower half; the upper one follows from the record before
//! it, so between two records of one leader there must be less than 2³² cycles (about two seconds): of a longer time without
//! a record whole multiples of that are missing.

mod runs;

use std::collections::{BTreeMap, BTreeSet};

use hetrace_pool::{Layout, Size, Strategy, is_full, lost, lost_by, lost_since, places, u32_at, u64_at};

use crate::record::{Lanes, Record, WAYS};

/// Bytes of a chunk's header, of the head of a leader, and of a record.
const HEADER: usize = 64;
const RECORD: usize = 16;

/// What is in a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Chunks that were asked for; where there are cursors, records and heads of leaders.
    pub asked: u64,
    /// Places that there are, each for a large chunk.
    pub chunks: u64,
    /// Whether there was no room any more for a chunk. From then on warps that begin do not record.
    pub full: bool,
    /// Records that found no room; of lanes that did not end they are not known, and of words of ways only the first of
    /// lanes.
    pub lost: u64,
    /// Of these, those of kernels by number; of the others it is not known which kernel's they are.
    pub lost_by: BTreeMap<u32, u64>,
    /// By number of kernels, records that are there and left out: those of a warp, in modes other than paths, that were made after
    /// one of its leaders had no room ([`end_at`]).
    pub left_out: BTreeMap<u32, u64>,
    /// In order of their numbers.
    pub launches: Vec<Launch>,
    /// What made no sense.
    pub faults: Faults,
}

/// What makes no sense in a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Chunks that were taken and not begun: whoever took them was stopped there. So it is with records and heads of cursors.
    pub unbegun: u64,
    /// What is not in the bytes, though taken.
    pub missing: u64,
    /// Chunks before which another one of the same leader is missing.
    pub gaps: u64,
    /// Records of no known kind, or without a site, or of an unknown leader.
    pub records: u64,
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// `%gridid`. A node of an executable graph has the same in each of its runs, which are launches here, one after the other.
    pub grid: u64,
    /// The kernel's number in its process.
    pub kernel: u32,
    /// `%nctaid`.
    pub blocks_in_grid: [u32; 3],
    /// `%ntid`.
    pub threads_in_block: [u32; 3],
    /// Its thread blocks of which there are records, by number.
    pub blocks: Vec<ThreadBlock>,
}

/// A thread block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadBlock {
    /// `%ctaid`.
    pub at: [u32; 3],
    /// `%smid` when its first chunk was begun.
    pub multiprocessor: u32,
    /// Its warps of which there are records, by number.
    pub warps: Vec<Warp>,
}

/// A warp.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warp {
    /// Its number in its thread block.
    pub number: u32,
    /// When lanes began.
    pub began: Vec<(u64, Lanes)>,
    /// When lanes ended.
    pub ended: Vec<(u64, Lanes)>,
    /// In order of time.
    pub records: Vec<Record>,
    /// `%clock64` and `%globaltimer` (ns) at one time, for each chunk, by clock.
    pub clocks: Vec<(u64, u64)>,
}

impl Warp {
    /// Returns all lanes of which there are records.
    pub fn lanes(&self) -> Lanes {
        let marks = self.began.iter().chain(&self.ended).map(|(_, lanes)| *lanes);
        marks.chain(self.records.iter().map(|record| record.active)).fold(0, |all, lanes| all | lanes)
    }

    /// Returns when a lane began; nothing if that was lost.
    pub fn begin(&self, lane: u32) -> Option<u64> {
        first(&self.began, lane)
    }

    /// Returns when a lane ended; nothing if it did not, or that was lost.
    pub fn end(&self, lane: u32) -> Option<u64> {
        first(&self.ended, lane)
    }
}

fn first(marks: &[(u64, Lanes)], lane: u32) -> Option<u64> {
    marks.iter().find(|(_, lanes)| lanes >> (lane & 63) & 1 != 0).map(|(time, _)| *time)
}

/// A chunk's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    // In the order in which chunks are sorted.
    grid: u64,
    kernel: u32,
    /// Which of the runs of one `%gridid`.
    run: u32,
    /// z, y, x.
    block: [u32; 3],
    leader: u32,
    clock: u64,
    /// Where it is behind the pool's header, and its bytes.
    at: usize,
    bytes: usize,
    /// The lower half of the clock when lanes began, or of the record for which it was begun.
    since: u32,
    global: u64,
    multiprocessor: u32,
    before: u32,
    threads: [u32; 3],
    blocks: [u32; 3],
}

impl Head {
    /// Returns where it ends, in units from the begin of a pool with a header of so many bytes.
    fn end(&self, header: usize) -> u32 {
        u32::try_from((header + self.at + self.bytes) / RECORD).unwrap_or(u32::MAX)
    }
}

/// Three numbers, of 32, 16 and 16 bits.
fn triple(bytes: &[u8], at: usize) -> [u32; 3] {
    let both = u32_at(bytes, at + 4);
    [u32_at(bytes, at), both & 0xffff, both >> 16]
}

/// What was recorded, by where it lies.
struct Recorded<'a> {
    /// The pool's header.
    head: &'a [u8],
    /// What is behind it.
    bytes: &'a [u8],
    /// Bytes of the header.
    header: usize,
    /// By where a leader's head is, in units of that: what was recorded by cursors, in the order of those.
    slots: BTreeMap<u32, Vec<[u32; 4]>>,
    /// Records were lost, and a leader whose place is full may have lost some: it gets no other place.
    ends: bool,
}

impl Recorded<'_> {
    /// Returns the records of a chunk or of a leader.
    fn of(&self, head: &Head) -> impl Iterator<Item = [u32; 4]> {
        let chunk = self.bytes.get(head.at + HEADER..head.at + head.bytes).unwrap_or_default();
        let unit = u32::try_from((self.header + head.at) / HEADER).ok();
        let slots = unit.and_then(|unit| self.slots.get(&unit)).filter(|_| head.bytes == HEADER);
        let inside = chunk.chunks_exact(RECORD).map(record).take_while(|[.., last]| *last != 0);
        inside.chain(slots.into_iter().flatten().copied())
    }
}

fn record(bytes: &[u8]) -> [u32; 4] {
    [0, 4, 8, 12].map(|at| u32_at(bytes, at))
}

/// Reads a pool.
pub fn read(bytes: &[u8]) -> Pool {
    let layout = Layout::of(bytes);
    let counters = || {
        let sizes = |counter| layout.strategy().sizes().iter().map(move |size| (counter, *size));
        (0..layout.counters()).flat_map(sizes)
    };
    let mut pool = Pool {
        asked: counters().map(|(counter, size)| layout.asked(bytes, counter, size)).sum(),
        chunks: places(bytes),
        full: is_full(bytes),
        lost: lost(bytes),
        lost_by: lost_by(bytes).collect(),
        ..Pool::default()
    };
    let (mut heads, faults) = (Vec::new(), &mut pool.faults);
    let header = usize::try_from(layout.header_bytes()).unwrap_or(usize::MAX);
    let (head, here) = bytes.split_at(header.min(bytes.len()));
    let ends = layout.strategy() == Strategy::Padded && pool.lost > 0;
    let mut recorded = Recorded { head, bytes: here, header, slots: BTreeMap::new(), ends };
    let there = here.len() as u64 / hetrace_pool::CHUNK;
    for (counter, size) in counters() {
        let taken = layout.asked(bytes, counter, size).min(layout.fitting(counter, size, pool.chunks));
        let found = taken.min(layout.fitting(counter, size, there));
        faults.missing += taken - found;
        for number in 0..found {
            let (place, unit) = layout.place(counter, size, number);
            let Ok(at) = usize::try_from(place * hetrace_pool::CHUNK + unit * size.bytes()) else { continue };
            match taken_at(here, at, size) {
                Some(Taken::Head(head)) => heads.push(head),
                Some(Taken::Slot(leader, record)) => recorded.slots.entry(leader).or_default().push(record),
                None => faults.unbegun += 1,
            }
        }
    }
    faults.records += orphans(&mut recorded, &heads);
    heads.sort_unstable();
    if runs::separate(&mut heads, header) {
        heads.sort_unstable();
    }
    for launch in heads.chunk_by(|a, b| (a.grid, a.kernel, a.run) == (b.grid, b.kernel, b.run)) {
        let Some(one) = launch.first() else { continue };
        let (blocks, mut late) = (launch.chunk_by(|a, b| a.block == b.block), 0);
        pool.launches.push(Launch {
            grid: one.grid,
            kernel: one.kernel,
            blocks_in_grid: one.blocks,
            threads_in_block: one.threads,
            blocks: blocks.map(|block| thread_block(&recorded, block, faults, &mut late)).collect(),
        });
        if late > 0 {
            *pool.left_out.entry(one.kernel).or_default() += late;
        }
    }
    pool
}

/// What a counter gave out.
enum Taken {
    Head(Head),
    /// A record, and where its leader's head is.
    Slot(u32, [u32; 4]),
}

/// Reads what was given out; none if nobody wrote there.
fn taken_at(pool: &[u8], at: usize, size: Size) -> Option<Taken> {
    let bytes = usize::try_from(size.bytes()).ok()?;
    if size != Size::Slot {
        return head(pool, at, bytes).map(Taken::Head);
    }
    let slot = pool.get(at..at + bytes)?;
    let (leader, record) = (u32_at(slot, RECORD), record(slot));
    (leader != 0 && record[3] != 0).then_some(Taken::Slot(leader, record))
}

/// Takes away records of leaders that are not there, and returns how many these were.
fn orphans(recorded: &mut Recorded<'_>, heads: &[Head]) -> u64 {
    if recorded.slots.is_empty() {
        return 0;
    }
    let unit = |head: &Head| u32::try_from((recorded.header + head.at) / HEADER).ok();
    let known: BTreeSet<u32> = heads.iter().filter_map(unit).collect();
    let mut lost = 0;
    recorded.slots.retain(|leader, records| {
        let is_known = known.contains(leader);
        lost += if is_known { 0 } else { records.len() as u64 };
        is_known
    });
    lost
}

fn head(pool: &[u8], at: usize, size: usize) -> Option<Head> {
    let bytes = pool.get(at..at + size)?;
    let [x, y, z] = triple(bytes, 32);
    let leader = u32_at(bytes, 40);
    Some(Head {
        grid: u64_at(bytes, 0),
        // 0 is a chunk that was not begun.
        kernel: u32_at(bytes, 24).checked_sub(1)?,
        run: 0,
        block: [z, y, x],
        leader: leader & 0xffff,
        clock: u64_at(bytes, 8),
        at,
        bytes: size,
        since: u32_at(bytes, 28),
        global: u64_at(bytes, 16),
        multiprocessor: leader >> 16,
        before: u32_at(bytes, 44),
        threads: triple(bytes, 48),
        blocks: triple(bytes, 56),
    })
}

/// `late` is how many records were left out ([`end_at`]).
fn thread_block(pool: &Recorded<'_>, heads: &[Head], faults: &mut Faults, late: &mut u64) -> ThreadBlock {
    let first = heads.iter().min_by_key(|head| head.clock);
    let [z, y, x] = first.map_or([0; 3], |head| head.block);
    let warps = heads.chunk_by(|a, b| a.leader / 32 == b.leader / 32);
    ThreadBlock {
        at: [x, y, z],
        multiprocessor: first.map_or(0, |head| head.multiprocessor),
        warps: warps.map(|heads| warp(pool, heads, faults, late)).collect(),
    }
}

fn warp(pool: &Recorded<'_>, heads: &[Head], faults: &mut Faults, late: &mut u64) -> Warp {
    let mut warp = Warp { number: heads.first().map_or(0, |head| head.leader / 32), ..Warp::default() };
    warp.clocks = heads.iter().map(|head| (head.clock, head.global)).collect();
    warp.clocks.sort_unstable();
    let since = heads.iter().filter_map(|head| lost_since(pool.head, head.multiprocessor)).min();
    let leaders = heads.chunk_by(|a, b| a.leader == b.leader);
    let full = leaders.filter_map(|chunks| leader(pool, chunks, since, &mut warp, faults)).min();
    if let Some(end) = full.into_iter().chain(since).min() {
        *late += end_at(&mut warp, end);
    }
    // What was counted is before the pass that was written with it.
    warp.records.sort_by_key(|record| (record.time, record.repeats == 0));
    warp.records.dedup_by(|next, record| {
        // One pass of which several lanes wrote their parts.
        let passes = next.repeats == 0 && record.repeats == 0 && record.site != WAYS;
        let same = passes && (next.time, next.site, next.case) == (record.time, record.site, record.case);
        if same {
            record.active |= next.active;
            record.chosen |= next.chosen;
        }
        same
    });
    // Lanes that say their ways begin as one, when their leaders' first chunks say.
    let says = |record: &&Record| record.site == WAYS;
    let lanes = warp.records.iter().filter(says).fold(0, |all, record| all | record.active);
    if lanes != 0 {
        let first = heads.iter().map(|head| before(head.clock, head.since)).min();
        warp.began.push((first.unwrap_or(0), lanes));
    }
    warp.began.sort_unstable();
    warp.ended.sort_unstable();
    warp
}

/// Leaves out what a warp recorded from a time on, and returns how much that was. From then on records of one of its leaders may
/// be missing, and which lanes were in those is not known: with the records of other leaders their paths would have holes.
fn end_at(warp: &mut Warp, end: u64) -> u64 {
    let count = |warp: &Warp| warp.records.len() + warp.began.len() + warp.ended.len();
    let before = count(warp);
    warp.records.retain(|record| record.time < end);
    warp.began.retain(|(time, _)| *time < end);
    warp.ended.retain(|(time, _)| *time < end);
    (before - count(warp)) as u64
}

/// Returns when a clock had this lower half, at the latest before a time.
fn before(time: u64, low: u32) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    let since = u64::from((time as u32).wrapping_sub(low));
    time.wrapping_sub(since)
}

/// Reads all chunks of a leader. Returns a time if its records from that on may be lost, as its place is full; `since` is when
/// the first one was for which there was no place.
fn leader(
    pool: &Recorded<'_>,
    heads: &[Head],
    since: Option<u64>,
    warp: &mut Warp,
    faults: &mut Faults,
) -> Option<u64> {
    // Counts whose time is that of the record behind them.
    let mut open = warp.records.len();
    let (mut time, mut ended, mut room) = (0u64, 0, 0);
    for head in heads {
        room = (head.bytes - HEADER) / RECORD;
        // Where the chunk before it ends: in units from the pool's begin.
        faults.gaps += u64::from(head.before != ended);
        ended = head.end(pool.header);
        let mut timed = false;
        for [low, lanes, chosen, last] in pool.of(head) {
            room = room.saturating_sub(1);
            let (kind, site) = (last >> 28, (last & 0xffff).checked_sub(1));
            if kind != 2 {
                // The first was before the chunk's own clock was read.
                #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
                let since = |from: u64, to: u32| u64::from(to.wrapping_sub(from as u32));
                time = if timed { time.wrapping_add(since(time, low)) } else { before(head.clock, low) };
                timed = true;
                warp.records[open..].iter_mut().for_each(|count| count.time = time);
                open = warp.records.len();
            }
            let mut record = Record {
                time,
                site: site.unwrap_or(0),
                active: lanes.into(),
                chosen: chosen.into(),
                case: u16::try_from(last >> 16 & 0xfff).unwrap_or(0),
                repeats: 0,
            };
            match (kind, site) {
                (1, Some(_)) => {
                    warp.records.push(record);
                    open = warp.records.len();
                }
                (2, Some(_)) if low > 0 => {
                    (record.repeats, record.time) = (low, head.clock.max(time));
                    warp.records.push(record);
                }
                (3, None) => warp.began.push((time, lanes.into())),
                (4, None) => warp.ended.push((time, lanes.into())),
                (5 | 6, _) => {
                    record.case = u16::try_from(last & 0xffff).unwrap_or(0);
                    (record.site, record.chosen) = (WAYS, chosen.into());
                    warp.records.push(record);
                    open = warp.records.len();
                    if kind == 6 {
                        warp.ended.push((time, lanes.into()));
                    }
                }
                _ => faults.records += 1,
            }
        }
    }
    let end = (pool.ends && room == 0).then(|| time.saturating_add(1));
    if end.or(since).is_some() {
        // The record behind these counts is lost: they are of a time after the last one.
        warp.records[open..].iter_mut().for_each(|count| count.time = u64::MAX);
    }
    end
}
