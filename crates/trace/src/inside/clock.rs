//! Clocks of multiprocessors on the device's own timer.
//!
//! Each chunk of records has both at one moment. The timer is one for the device and counts nanoseconds, in steps of 32
//! of them on an H100; the clocks of two multiprocessors have nothing to do with each other, and their frequency changes.
//! So each multiprocessor of each launch has a line of its own through its moments.

use std::collections::HashMap;

use super::{Launch, Pool};

/// Moments that are farther apart say how fast a clock is: steps of the timer are less than 1 % of it.
const FAR_NS: u64 = 10_000;
/// Nanoseconds of a cycle that a device may have: 5 GHz to 50 MHz.
const CYCLE_NS: std::ops::RangeInclusive<f64> = 0.2..=20.0;
/// What is assumed if nothing says it.
const ASSUMED_NS: f64 = 1.0;

/// The clocks of the multiprocessors that ran a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clocks {
    by_multiprocessor: HashMap<u32, Line>,
    /// Nothing said how fast they are: one cycle is taken for one nanosecond.
    pub assumed: bool,
}

/// The timer by a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    clock: u64,
    ns: u64,
    /// To be added to `ns`, from the mean of all moments.
    more: f64,
    cycle_ns: f64,
}

/// All moments of a launch, by multiprocessor, in order.
fn moments(launch: &Launch) -> HashMap<u32, Vec<(u64, u64)>> {
    let mut all: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    for block in &launch.blocks {
        let moments = block.warps.iter().flat_map(|warp| warp.clocks.iter().copied());
        all.entry(block.multiprocessor).or_default().extend(moments);
    }
    all.values_mut().for_each(|moments| moments.sort_unstable());
    all
}

/// How long a cycle is, from the first and the last moment.
fn cycle(moments: &[(u64, u64)]) -> Option<f64> {
    let (first, last) = (moments.first()?, moments.last()?);
    let (cycles, ns) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
    let cycle = ns as f64 / cycles.max(1) as f64;
    (ns >= FAR_NS && CYCLE_NS.contains(&cycle)).then_some(cycle)
}

/// Returns how many nanoseconds a cycle has, in the middle of all that can be measured in a pool; nothing if nothing can.
pub fn rate(pool: &Pool) -> Option<f64> {
    let of_launch = |launch: &Launch| moments(launch).values().filter_map(|m| cycle(m)).collect::<Vec<f64>>();
    let mut all: Vec<f64> = pool.launches.iter().flat_map(of_launch).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

impl Clocks {
    /// Returns those of a launch. `rate` has a cycle's nanoseconds for multiprocessors that do not say it themselves.
    pub fn of(launch: &Launch, rate: Option<f64>) -> Self {
        let moments = moments(launch);
        let mut own: Vec<f64> = moments.values().filter_map(|moments| cycle(moments)).collect();
        own.sort_by(f64::total_cmp);
        let common = own.get(own.len() / 2).copied().or(rate);
        let line = |(number, moments): (&u32, &Vec<(u64, u64)>)| {
            let &(clock, ns) = moments.first()?;
            let cycle_ns = cycle(moments).or(common).unwrap_or(ASSUMED_NS);
            let off = |(c, n): &(u64, u64)| {
                n.wrapping_sub(ns) as i64 as f64 - c.wrapping_sub(clock) as i64 as f64 * cycle_ns
            };
            let more = moments.iter().map(off).sum::<f64>() / moments.len() as f64;
            Some((*number, Line { clock, ns, more, cycle_ns }))
        };
        let by_multiprocessor = moments.iter().filter_map(line).collect();
        Self { by_multiprocessor, assumed: common.is_none() }
    }

    /// Returns the device's timer at a moment of a multiprocessor's clock; 0 of one that ran nothing.
    pub fn ns(&self, multiprocessor: u32, clock: u64) -> u64 {
        let Some(line) = self.by_multiprocessor.get(&multiprocessor) else { return 0 };
        let since = line.more + clock.wrapping_sub(line.clock) as i64 as f64 * line.cycle_ns;
        line.ns.saturating_add_signed(since.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::{ThreadBlock, Warp};

    fn launch(moments: &[(u32, &[(u64, u64)])]) -> Launch {
        let block = |(multiprocessor, clocks): &(u32, &[(u64, u64)])| ThreadBlock {
            at: [0; 3],
            multiprocessor: *multiprocessor,
            warps: vec![Warp { clocks: clocks.to_vec(), ..Warp::default() }],
        };
        Launch {
            grid: 1,
            kernel: 0,
            blocks_in_grid: [1; 3],
            threads_in_block: [32, 1, 1],
            blocks: moments.iter().map(block).collect(),
        }
    }

    #[test]
    fn each_multiprocessor_has_a_line_of_its_own() {
        // 2 GHz, far apart; and one with a single moment, which goes as fast.
        let launch = launch(&[(0, &[(1_000, 5_000), (101_000, 55_000)]), (7, &[(900_000, 6_000)])]);
        let clocks = Clocks::of(&launch, None);
        assert!(!clocks.assumed);
        assert_eq!((clocks.ns(0, 1_000), clocks.ns(0, 3_000), clocks.ns(0, 101_000)), (5_000, 6_000, 55_000));
        // What was before the first moment, too.
        assert_eq!(
            (clocks.ns(7, 900_000), clocks.ns(7, 899_000), clocks.ns(7, 902_000)),
            (6_000, 5_500, 7_000)
        );
        assert_eq!(clocks.ns(3, 1), 0);
        let pool = Pool { launches: vec![launch], ..Pool::default() };
        assert_eq!(rate(&pool), Some(0.5));
    }

    #[test]
    fn nothing_that_says_how_fast_is_an_assumption() {
        // Too near, and a clock that stands still.
        let near = launch(&[(0, &[(1_000, 5_000), (1_100, 5_032)]), (1, &[(7, 0), (7, 1 << 40)])]);
        assert_eq!(rate(&Pool { launches: vec![near.clone()], ..Pool::default() }), None);
        let clocks = Clocks::of(&near, None);
        assert!(clocks.assumed);
        assert_eq!(clocks.ns(0, 2_100) - clocks.ns(0, 1_100), 1_000);
        // The mean of the moments: 5,000 + 0 and 5,032 - 100 cycles of 0.5 ns.
        assert_eq!(Clocks::of(&near, Some(0.5)).ns(0, 1_000), 4_991);
    }
}
