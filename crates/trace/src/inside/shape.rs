//! How a launch filled the device: its warps and thread blocks over time.

use std::collections::BTreeMap;

use super::{Clocks, Launch, event};

/// A warp's time on its multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpSpan {
    /// The place of its thread block in [`Launch::blocks`].
    pub block: usize,
    /// Its number there.
    pub warp: u32,
    /// Where it ran.
    pub multiprocessor: u32,
    /// Its first record, by the device's timer, ns.
    pub from: u64,
    /// Its last record.
    pub to: u64,
    /// Lanes of which there are records.
    pub lanes: u32,
    /// Records.
    pub records: usize,
    /// All of its lanes are known to have ended.
    pub ended: bool,
}

/// A thread block's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockSpan {
    /// Its number in the grid.
    pub at: [u32; 3],
    /// Where it ran.
    pub multiprocessor: u32,
    /// From its first warp's first record to its last warp's last one.
    pub ns: u64,
}

/// A launch in figures, from the warps that recorded. Times are of the device's timer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// `%gridid`.
    pub grid: u64,
    /// Thread blocks that the launch has, and those that recorded.
    pub blocks: (u64, u64),
    /// Threads of a block.
    pub threads: u64,
    /// From the first record to the last, ns.
    pub ns: u64,
    /// Warps that were resident at a time: most, and in the mean over `ns`.
    pub peak_warps: u64,
    /// The same in the mean.
    pub mean_warps: f64,
    /// Thread blocks at a time, at most.
    pub peak_blocks: u64,
    /// From when there were fewer than half of `peak_warps` for good, to the end.
    pub tail_ns: u64,
    /// Warps at a time in the tail, in the mean.
    pub tail_warps: f64,
    /// The thread block that took longest.
    pub longest: BlockSpan,
    /// What a thread block took in the mean.
    pub mean_block_ns: f64,
    /// The thread block that ended last.
    pub last: BlockSpan,
    /// Time in which at least one warp was there, by multiprocessor.
    pub busy: BTreeMap<u32, u64>,
}

/// Returns the warps of a launch of which there are records, as they began.
pub fn warps(launch: &Launch, clocks: &Clocks) -> Vec<WarpSpan> {
    let mut all = Vec::new();
    for (place, block) in launch.blocks.iter().enumerate() {
        for warp in &block.warps {
            let entries = event::entries(warp);
            let (Some(first), Some(last)) = (entries.first(), entries.last()) else { continue };
            let at = |entry| clocks.ns(block.multiprocessor, event::time(entry));
            let ended = warp.ended.iter().fold(0, |all, (_, lanes)| all | lanes);
            all.push(WarpSpan {
                block: place,
                warp: warp.number,
                multiprocessor: block.multiprocessor,
                from: at(first),
                to: at(last).max(at(first)),
                lanes: warp.lanes().count_ones(),
                records: entries.len(),
                ended: warp.lanes() & !ended == 0,
            });
        }
    }
    all.sort_by_key(|warp| (warp.from, warp.block, warp.warp));
    all
}

/// Returns how many of some spans there are at a time: each change, in order.
pub fn resident(spans: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for (from, to) in spans {
        *changes.entry(from).or_default() += 1;
        *changes.entry(to.max(from)).or_default() -= 1;
    }
    let mut level = 0i64;
    let steps = changes.into_iter().map(|(time, change)| {
        level += change;
        (time, u64::try_from(level).unwrap_or(0))
    });
    steps.collect()
}

/// The most at a time, the sum over time, and the end of the last time with at least half of the most.
fn sums(steps: &[(u64, u64)]) -> (u64, f64, u64) {
    let peak = steps.iter().map(|(_, level)| *level).max().unwrap_or(0);
    let (mut area, mut tail_from) = (0.0, steps.first().map_or(0, |(time, _)| *time));
    for pair in steps.windows(2) {
        let [(from, level), (to, _)] = pair else { continue };
        area += *level as f64 * (to - from) as f64;
        if *level > 0 && level.saturating_mul(2) >= peak {
            tail_from = *to;
        }
    }
    (peak, area, tail_from)
}

impl Shape {
    /// Returns that of a launch.
    pub fn of(launch: &Launch, clocks: &Clocks) -> Self {
        let warps = warps(launch, clocks);
        let steps = resident(warps.iter().map(|warp| (warp.from, warp.to)));
        let (peak_warps, area, tail_from) = sums(&steps);
        let first = steps.first().map_or(0, |(time, _)| *time);
        let end = steps.last().map_or(0, |(time, _)| *time);
        let in_tail = |pair: &[(u64, u64)]| match pair {
            [(from, level), (to, _)] if *from >= tail_from => *level as f64 * (to - from) as f64,
            _ => 0.0,
        };
        let tail: f64 = steps.windows(2).map(in_tail).sum();
        // By place among the blocks that recorded.
        let mut blocks: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut by_multiprocessor: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for warp in &warps {
            let span = blocks.entry(warp.block).or_insert((warp.from, warp.to));
            *span = (span.0.min(warp.from), span.1.max(warp.to));
            by_multiprocessor.entry(warp.multiprocessor).or_default().push((warp.from, warp.to));
        }
        let block = |(place, (from, to)): (&usize, &(u64, u64))| {
            let of = &launch.blocks[*place];
            BlockSpan { at: of.at, multiprocessor: of.multiprocessor, ns: to - from }
        };
        let longest = blocks.iter().max_by_key(|(_, (from, to))| to - from).map(block);
        let last = blocks.iter().max_by_key(|(_, (_, to))| *to).map(block);
        let sum: f64 = blocks.values().map(|(from, to)| (to - from) as f64).sum();
        let product = |of: [u32; 3]| of.iter().fold(1u64, |all, one| all.saturating_mul(u64::from(*one)));
        Self {
            grid: launch.grid,
            blocks: (product(launch.blocks_in_grid), blocks.len() as u64),
            threads: product(launch.threads_in_block),
            ns: end - first,
            peak_warps,
            mean_warps: area / (end - first).max(1) as f64,
            peak_blocks: sums(&resident(blocks.values().copied())).0,
            tail_ns: end.saturating_sub(tail_from),
            tail_warps: tail / end.saturating_sub(tail_from).max(1) as f64,
            longest: longest.unwrap_or_default(),
            mean_block_ns: sum / blocks.len().max(1) as f64,
            last: last.unwrap_or_default(),
            busy: by_multiprocessor.into_iter().map(|(number, spans)| (number, busy(&spans))).collect(),
        }
    }
}

/// Time in which there is at least one.
fn busy(spans: &[(u64, u64)]) -> u64 {
    let steps = resident(spans.iter().copied());
    let on = |pair: &[(u64, u64)]| match pair {
        [(from, level), (to, _)] if *level > 0 => to - from,
        _ => 0,
    };
    steps.windows(2).map(on).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::{ThreadBlock, Warp};

    /// A launch of warps that begin and end so, on multiprocessors whose clocks are the timer.
    fn launch(blocks: &[(u32, u64, u64)]) -> Launch {
        let block = |(number, (multiprocessor, from, to)): (usize, &(u32, u64, u64))| ThreadBlock {
            at: [u32::try_from(number).unwrap(), 0, 0],
            multiprocessor: *multiprocessor,
            warps: vec![Warp {
                began: vec![(*from, 0xffff_ffff)],
                ended: vec![(*to, 0xffff_ffff)],
                clocks: vec![(*from, *from), (*to, *to)],
                ..Warp::default()
            }],
        };
        Launch {
            grid: 9,
            kernel: 0,
            blocks_in_grid: [8, 1, 1],
            threads_in_block: [32, 1, 1],
            blocks: blocks.iter().enumerate().map(block).collect(),
        }
    }

    #[test]
    fn a_launch_in_figures() {
        // Four warps for a while, and one of them for as long again.
        let spans = [(0, 0, 20_000), (0, 0, 20_000), (1, 0, 20_000), (1, 0, 40_000)];
        let launch = launch(&spans);
        let shape = Shape::of(&launch, &Clocks::of(&launch, None));
        assert_eq!((shape.blocks, shape.threads, shape.ns), ((8, 4), 32, 40_000));
        assert_eq!((shape.peak_warps, shape.mean_warps, shape.peak_blocks), (4, 2.5, 4));
        assert_eq!((shape.tail_ns, shape.tail_warps), (20_000, 1.0));
        assert_eq!((shape.longest.at, shape.longest.ns, shape.mean_block_ns), ([3, 0, 0], 40_000, 25_000.0));
        assert_eq!((shape.last.at, shape.last.multiprocessor), ([3, 0, 0], 1));
        assert_eq!(shape.busy, BTreeMap::from([(0, 20_000), (1, 40_000)]));
    }

    #[test]
    fn what_follows_each_other_does_not_add_up() {
        assert_eq!(resident([(0, 10), (10, 20), (5, 10)].into_iter()), [(0, 1), (5, 2), (10, 1), (20, 0)]);
        assert_eq!(Shape::of(&launch(&[]), &Clocks::default()).ns, 0);
        // Records of one moment only.
        let one = launch(&[(0, 5, 5)]);
        let shape = Shape::of(&one, &Clocks::of(&one, None));
        assert_eq!((shape.ns, shape.tail_ns, shape.mean_warps), (0, 0, 0.0));
    }
}
