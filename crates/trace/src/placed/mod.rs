//! What was recorded inside of kernels, on the host's time line.
//!
//! ```text
//!  Recording ──► launches in order of %gridid ──┐
//!                                               ├──► Placed: each launch with the command that it was
//!  commands of twins, with their times ─────────┘
//!
//!  a warp's clock ──► the device's timer ([`Clocks`]) ──► the host's clock: the command's begin and end
//! ```
//! A launch's records are between its first and its last one, and its command began before and ended after them. They are put
//! into the middle of what is left, so they are off by at most half of that ([`Launch::slack_ns`]), and never outside. Records
//! without times are put where their command begins.

mod ran;
mod search;

use std::ops::ControlFlow;

use hetrace_gpu_kernel::pool;

use crate::inside::{BlockText, Clocks, Described, Event, Recording, WarpSpan, events, rate, warps};
use crate::trace::Trace;
use crate::watch::{Stopped, Watch};

pub use ran::Ran;

/// All launches that recorded.
#[derive(Debug, Clone, Default)]
pub struct Placed<'t> {
    /// Those that are on the time line come first, as they began there.
    pub launches: Vec<Launch<'t>>,
    /// Those of which no command is known: they are in `launches`, without times of the host.
    pub unplaced: u64,
    /// The time of the trace's first event.
    pub first: u64,
}

/// A launch that recorded.
#[derive(Debug, Clone)]
pub struct Launch<'t> {
    /// Its process.
    pub pid: i64,
    /// Its kernel.
    pub kernel: &'t Described,
    /// Its records.
    pub records: &'t pool::Launch,
    /// The clocks of its multiprocessors.
    pub clocks: Clocks,
    /// The command that it was.
    pub ran: Option<Ran>,
    /// First and last record, by the device's timer.
    extent: (u64, u64),
}

impl<'t> Placed<'t> {
    /// Finds the commands of all launches that a trace has [joined](Trace::join_inside). It is a walk over the trace, if there are any.
    ///
    /// # Errors
    /// When the watch says so.
    pub fn new(trace: &'t Trace, watch: Option<Watch<'_>>) -> Result<Self, Stopped> {
        let Some(recording) = trace.inside() else { return Ok(Self::default()) };
        let (ran, first) = ran::commands(trace, watch)?;
        Ok(Self { first, ..Self::of(recording, ran) })
    }

    /// Calls `of` with each record of the launches that are on the time line, in the order of the host's time, which comes
    /// first. Memory is in proportion to the records of launches that ran at a time.
    ///
    /// # Errors
    /// What `of` breaks with.
    pub fn each<B>(&self, mut of: impl FnMut(u64, &Launch<'t>, &Event) -> ControlFlow<B>) -> ControlFlow<B> {
        let placed = self.launches.len() - usize::try_from(self.unplaced).unwrap_or(usize::MAX);
        let mut rest = self.launches.get(..placed).unwrap_or_default();
        while let Some(ran) = rest.first().and_then(|launch| launch.ran.as_ref()) {
            let mut until = ran.end;
            let mut count = 0;
            while let Some(ran) =
                rest.get(count).and_then(|launch| launch.ran.as_ref()).filter(|ran| ran.start <= until)
            {
                until = until.max(ran.end);
                count += 1;
            }
            let (together, behind) = rest.split_at(count);
            rest = behind;
            let mut all: Vec<(u64, usize, Event)> = Vec::new();
            for (place, launch) in together.iter().enumerate() {
                let host = |event: Event| (launch.host(event.ns).unwrap_or(0), place, event);
                all.extend(launch.events().into_iter().map(host));
            }
            // Stable: those of a launch stay in their order.
            all.sort_by_key(|(host, place, _)| (*host, *place));
            for (host, place, event) in &all {
                of(*host, &together[*place], event)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn of(recording: &'t Recording, mut ran: Vec<Ran>) -> Self {
        let mut placed = Placed::default();
        for of_process in recording.pools.chunk_by(|a, b| a.pid == b.pid) {
            let pid = of_process.first().map_or(0, |of| of.pid);
            let mut of: Vec<Ran> = ran.extract_if(.., |ran| ran.pid == pid).collect();
            for context in of_process {
                let rate = rate(&context.pool);
                let described =
                    |launch: &'t pool::Launch| Some((recording.kernels.get(&launch.kernel)?, launch));
                let found = context.pool.launches.iter().filter_map(described);
                let launches: Vec<Launch<'t>> =
                    found.map(|(kernel, records)| Launch::new(pid, kernel, records, rate)).collect();
                let commands = search::commands(&launches, &of, of_process.len() == 1);
                let mut taken: Vec<usize> = commands.iter().flatten().copied().collect();
                for (mut launch, command) in launches.into_iter().zip(commands) {
                    launch.ran = command.and_then(|at| of.get(at).cloned());
                    placed.unplaced += u64::from(launch.ran.is_none());
                    placed.launches.push(launch);
                }
                taken.sort_unstable();
                taken.into_iter().rev().for_each(|at| drop(of.remove(at)));
            }
        }
        placed.launches.sort_by_key(|launch| {
            let start = launch.ran.as_ref().map_or(u64::MAX, |ran| ran.start);
            (start, launch.pid, launch.records.grid)
        });
        placed
    }
}

impl<'t> Launch<'t> {
    fn new(pid: i64, kernel: &'t Described, records: &'t pool::Launch, rate: Option<f64>) -> Self {
        let clocks = Clocks::of(records, rate);
        let spans = warps(records, &clocks);
        let from = spans.iter().map(|warp| warp.from).min().unwrap_or(0);
        let extent = (from, spans.iter().map(|warp| warp.to).max().unwrap_or(from));
        Self { pid, kernel, records, clocks, ran: None, extent }
    }

    /// Returns when it was on the host's clock, by the device's timer; nothing if its command is not known.
    pub fn host(&self, ns: u64) -> Option<u64> {
        let ran = self.ran.as_ref()?;
        if !self.kernel.timed {
            // All that is known is that it had begun.
            return Some(ran.start);
        }
        let room = (ran.end - ran.start).saturating_sub(self.extent.1 - self.extent.0);
        let since = ns.saturating_sub(self.extent.0);
        Some(ran.start.saturating_add(room / 2).saturating_add(since).min(ran.end))
    }

    /// Returns by how much its times on the host's clock may be off, at most, as far as the device's timer is right.
    pub fn slack_ns(&self) -> Option<u64> {
        let ran = self.ran.as_ref()?;
        if !self.kernel.timed {
            return Some(ran.end - ran.start);
        }
        let (ran, recorded) = (ran.end - ran.start, self.extent.1 - self.extent.0);
        Some(ran.abs_diff(recorded).div_ceil(2))
    }

    /// Returns the first and the last record's time by the device's timer.
    pub fn extent(&self) -> (u64, u64) {
        self.extent
    }

    /// Returns its warps, as they began.
    pub fn warps(&self) -> Vec<WarpSpan> {
        warps(self.records, &self.clocks)
    }

    /// Returns all of its records in order of time. Memory is in proportion to them.
    pub fn events(&self) -> Vec<Event> {
        events(self.records, &self.clocks)
    }

    /// Returns where a basic block is in the source: `FILE:LINE`; nothing if that is not known.
    pub fn source(&self, block: usize) -> Option<String> {
        source(self.kernel.blocks.get(block)?)
    }
}

/// Returns where a basic block begins in the source: `FILE:LINE`; nothing if that is not known.
pub fn source(block: &BlockText) -> Option<String> {
    Some(format!("{}:{}", block.file.as_ref()?, block.line?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inside::{Mode, OfProcess, Pool, ThreadBlock, Warp};

    fn described(number: u32, name: &str) -> Described {
        Described {
            number,
            name: name.to_owned(),
            mode: Mode::Branches,
            timed: true,
            successors: vec![vec![-1]],
            sites: vec![],
            summed: vec![],
            blocks: vec![BlockText { file: Some("a.cu".to_owned()), line: Some(7), ..BlockText::default() }],
            calls: vec![],
            text: String::new(),
            weights: None,
        }
    }

    /// One warp, which begins and ends then by the device's timer; the clock is the timer.
    fn launch(grid: u64, kernel: u32, from: u64, to: u64) -> pool::Launch {
        let warp = Warp {
            began: vec![(from, 1)],
            ended: vec![(to, 1)],
            clocks: vec![(from, from), (to, to)],
            ..Warp::default()
        };
        let blocks = vec![ThreadBlock { at: [0; 3], multiprocessor: 0, warps: vec![warp] }];
        pool::Launch { grid, kernel, blocks_in_grid: [1; 3], threads_in_block: [1; 3], blocks }
    }

    fn recording(pools: &[&[pool::Launch]]) -> Recording {
        let pool = |launches: &&[pool::Launch]| OfProcess {
            pid: 7,
            pool: Pool { launches: launches.to_vec(), ..Pool::default() },
        };
        Recording {
            kernels: [(1, described(1, "a")), (2, described(2, "b"))].into(),
            pools: pools.iter().map(pool).collect(),
            ..Recording::default()
        }
    }

    fn ran(symbol: &str, start: u64, end: u64) -> Ran {
        Ran { pid: 7, symbol: symbol.to_owned(), cause: start / 2, start, end, ..Ran::default() }
    }

    fn starts(placed: &Placed<'_>) -> Vec<(u64, Option<u64>)> {
        placed.launches.iter().map(|l| (l.records.grid, l.ran.as_ref().map(|ran| ran.start))).collect()
    }

    const TIMER: u64 = 1_700_000_000_000_000_000;

    #[test]
    fn as_many_launches_as_commands_are_paired_in_order() {
        let launches = [
            launch(4, 1, TIMER, TIMER + 80),
            launch(9, 1, TIMER + 10, TIMER + 40),
            launch(5, 2, TIMER, TIMER),
        ];
        let recording = recording(&[&launches]);
        let placed =
            Placed::of(&recording, vec![ran("a", 2_000, 2_100), ran("b", 900, 960), ran("a", 1_000, 1_100)]);
        assert_eq!(starts(&placed), [(5, Some(900)), (4, Some(1_000)), (9, Some(2_000))]);
        assert_eq!(placed.unplaced, 0);
        let one = &placed.launches[1];
        // 80 of 100 ns: in the middle.
        assert_eq!(
            (one.host(TIMER), one.host(TIMER + 80), one.slack_ns()),
            (Some(1_010), Some(1_090), Some(10))
        );
        // What is outside is put to the border.
        assert_eq!((one.host(0), one.host(u64::MAX)), (Some(1_010), Some(1_100)));
        assert_eq!((one.source(0).as_deref(), one.source(1)), (Some("a.cu:7"), None));
        assert_eq!(one.events().len(), 2);
    }

    #[test]
    fn runs_of_a_node_have_one_number_and_their_own_commands() {
        // The node's number is from when its graph was made executable: it runs, then another launch, then it runs again.
        let at = [0u64, 100_000, 200_000];
        let commands: Vec<Ran> = at.iter().map(|at| ran("a", 50_000 + at, 50_000 + at + 10_000)).collect();
        let of = |grid, at: u64| launch(grid, 1, TIMER + at, TIMER + at + 9_000);
        let recording = recording(&[&[of(4, at[0]), of(4, at[2]), of(14, at[1])]]);
        let placed = Placed::of(&recording, commands);
        assert_eq!(starts(&placed), [(4, Some(50_000)), (14, Some(150_000)), (4, Some(250_000))]);
    }

    #[test]
    fn where_records_are_lost_launches_are_found_by_their_times() {
        // Of six commands the second, third and fifth have records, 1 ms apart and jittering by a microsecond.
        let at = [0u64, 1_000_000, 2_000_300, 3_500_000, 4_200_000, 9_000_000];
        let commands: Vec<Ran> = at.iter().map(|at| ran("a", 50_000 + at, 50_000 + at + 100_000)).collect();
        let of = |grid: usize| launch(grid as u64, 1, TIMER + at[grid] + 1_000, TIMER + at[grid] + 98_500);
        let recording = recording(&[&[of(1), of(2), of(4)]]);
        let placed = Placed::of(&recording, commands);
        assert_eq!(starts(&placed), [(1, Some(1_050_000)), (2, Some(2_050_300)), (4, Some(4_250_000))]);
    }

    #[test]
    fn each_command_is_that_of_one_launch() {
        // Two contexts, and a launch more than there are commands.
        let one = [launch(1, 1, TIMER, TIMER + 50)];
        let other = [launch(1, 1, 500, 540), launch(2, 1, 90_000_500, 90_000_540)];
        let recording = recording(&[&one, &other]);
        let placed = Placed::of(&recording, vec![ran("a", 1_000, 1_060), ran("a", 3_000, 3_060)]);
        let mut found: Vec<Option<u64>> = starts(&placed).into_iter().map(|(_, at)| at).collect();
        found.sort_unstable();
        assert_eq!(found, [None, Some(1_000), Some(3_000)]);
        assert_eq!(placed.unplaced, 1);
        assert_eq!(placed.launches[2].host(1), None);
        let mut times = Vec::new();
        let walked = placed.each(|host, launch, event| {
            times.push((host, launch.records.grid, event.what.name(launch.kernel)));
            ControlFlow::<()>::Continue(())
        });
        assert!(walked.is_continue());
        assert_eq!(times, [(1_005, 1, "begin"), (1_055, 1, "end"), (3_010, 1, "begin"), (3_050, 1, "end")]);
        let nothing = Placed::of(&recording, vec![ran("b", 1, 2)]);
        assert_eq!(nothing.unplaced, 3);
    }
}
