//! Thread blocks and warps inside of kernels, on a row for each multiprocessor, and how many warps are resident.
//!
//! ```text
//! Toy GPU
//! ├── inside: resident warps       a counter, of all launches that recorded
//! ├── inside: achieved occupancy   the same in percent of what the device holds
//! └── inside kernels
//!     ├── SM 0: thread blocks      by the kernel's name
//!     ├── SM 0: warps              those of its thread blocks
//!     └── …
//! ```
//! A launch is drawn when its command begins. What it becomes is bounded: [`OF_LAUNCH`] slices and [`STEPS`] changes of the
//! counters, and all launches together [`Options::inside_slices`](super::Options::inside_slices). What is left out is counted
//! and said where it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use super::devices::device_row;
use super::lanes::Lanes;
use super::sheet::{Mark, Row, Sheet, Unit};
use super::tracks::{Kind, Tracks, number};
use hetrace_trace::demangle;
use hetrace_trace::inside::{WarpSpan, resident};
use hetrace_trace::placed::{Launch, Placed, Ran};
use hetrace_trace::text::plural;
use hetrace_trace::trace::{Thread, Trace};
use hetrace_vendor::occupancy::{self, Needs};

/// The category of its slices.
const CATEGORY: &str = "inside";
/// Slices that a launch gets at most: thread blocks first, then warps, each as they began.
const OF_LAUNCH: usize = 20_000;
/// Changes of a counter that a launch gets at most; if it has more, each stands for a part of its time.
const STEPS: usize = 1_000;
/// Ranks of the rows among those of a device: behind all queues.
const RANK: u64 = i32::MAX as u64 - 3;

/// All of it, drawn as time goes on.
#[derive(Debug, Default)]
pub(super) struct Insides<'t> {
    launches: Vec<Launch<'t>>,
    /// The next launch.
    next: usize,
    /// What is to be drawn of launches that have begun: when, and in which order of those of one time.
    pending: BinaryHeap<Reverse<(u64, u64, Item)>>,
    met: u64,
    /// By process and device.
    devices: HashMap<(i64, u32), Of>,
    /// By row of all, multiprocessor, and whether it is that of warps.
    rows: HashMap<(u64, u32, bool), (Lanes, Vec<u64>)>,
    /// Slices that may still be drawn.
    left: u64,
    /// Thread blocks and warps that were not drawn.
    pub left_out: u64,
    /// Launches whose commands are not known.
    pub unplaced: u64,
    /// Launches whose records have no times.
    pub untimed: u64,
}

/// A device's rows.
#[derive(Debug, Clone, Copy)]
struct Of {
    all: u64,
    warps: u64,
    occupancy: Option<u64>,
    /// Warps that it holds at most, 0 if that is not known.
    most: u64,
    /// Resident warps now.
    level: f64,
}

/// What is to be drawn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A thread block by its place among those of a launch, until then.
    Block { launch: usize, block: usize, end: u64 },
    /// A warp by its thread block and number, until then; records, lanes, and whether all have ended.
    Warp { launch: usize, block: usize, warp: u32, end: u64, records: usize, lanes: u32, ended: bool },
    /// So many thousandths of a warp more or less.
    Change { launch: usize, milli: i64 },
    /// So many thread blocks and warps of it are not drawn.
    LeftOut { launch: usize, blocks: usize, warps: usize },
}

impl<'t> Insides<'t> {
    /// Those of some processes, of all if there is none; at most so many slices.
    pub fn new(placed: Placed<'t>, pids: &[i64], slices: u64) -> Self {
        let unplaced = placed.unplaced;
        let wanted =
            |launch: &Launch<'_>| launch.ran.is_some() && (pids.is_empty() || pids.contains(&launch.pid));
        let wanted = placed.launches.into_iter().filter(wanted);
        // There is nothing to draw of what has no times.
        let (launches, untimed): (Vec<_>, Vec<_>) = wanted.partition(|launch| launch.kernel.timed);
        Self { launches, left: slices, unplaced, untimed: untimed.len() as u64, ..Self::default() }
    }

    /// When what comes next begins.
    #[inline]
    fn due(&self) -> Option<u64> {
        let pending = self.pending.peek().map(|Reverse((time, ..))| *time);
        let launch = self.launches.get(self.next).and_then(|launch| Some(launch.ran.as_ref()?.start));
        pending.into_iter().chain(launch).min()
    }

    /// Whether something is to be drawn that begins before a time.
    #[inline]
    pub fn is_due(&self, time: u64) -> bool {
        self.due().is_some_and(|due| due < time)
    }

    /// Draws what begins before a time.
    pub fn draw(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        until: u64,
    ) -> io::Result<()> {
        while self.is_due(until) {
            let launch = self.launches.get(self.next).and_then(|launch| launch.ran.as_ref());
            let first = self.pending.peek().map(|Reverse((time, ..))| *time);
            // A launch before what is of its time: nothing of it begins before it does.
            if launch.is_some_and(|ran| first.is_none_or(|first| ran.start <= first)) {
                self.begin(self.next);
                self.next += 1;
            } else if let Some(Reverse((time, _, item))) = self.pending.pop() {
                self.item(sheet, tracks, trace, time, item)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, time: u64, item: Item) {
        self.met += 1;
        self.pending.push(Reverse((time, self.met, item)));
    }

    /// Makes of a launch what is to be drawn.
    fn begin(&mut self, at: usize) {
        let warps = self.launches[at].warps();
        let room = OF_LAUNCH.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let host = |ns: u64| self.launches[at].host(ns).unwrap_or(0);
        let mut blocks: Vec<(u64, u64, usize)> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        for warp in &warps {
            let (from, to) = (host(warp.from), host(warp.to));
            let place = *places.entry(warp.block).or_insert(blocks.len());
            match blocks.get_mut(place) {
                Some(block) => block.1 = block.1.max(to),
                None => blocks.push((from, to, warp.block)),
            }
        }
        let changes = changes(&warps, host);
        let spans: Vec<(u64, u64)> = warps.iter().map(|warp| (host(warp.from), host(warp.to))).collect();
        let drawn = (blocks.len().min(room), warps.len().min(room.saturating_sub(blocks.len())));
        let out = (blocks.len() - drawn.0, warps.len() - drawn.1);
        self.left = self.left.saturating_sub((drawn.0 + drawn.1) as u64);
        self.left_out += (out.0 + out.1) as u64;
        if out != (0, 0) {
            let start = self.launches[at].ran.as_ref().map_or(0, |ran| ran.start);
            self.push(start, Item::LeftOut { launch: at, blocks: out.0, warps: out.1 });
        }
        for (from, end, block) in blocks.into_iter().take(drawn.0) {
            self.push(from, Item::Block { launch: at, block, end });
        }
        for (warp, (from, end)) in warps.iter().zip(spans).take(drawn.1) {
            let WarpSpan { block, warp, records, lanes, ended, .. } = *warp;
            self.push(from, Item::Warp { launch: at, block, warp, end, records, lanes, ended });
        }
        for (time, milli) in changes {
            self.push(time, Item::Change { launch: at, milli });
        }
    }

    fn item(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        time: u64,
        item: Item,
    ) -> io::Result<()> {
        let (Item::Block { launch: at, .. }
        | Item::Warp { launch: at, .. }
        | Item::Change { launch: at, .. }
        | Item::LeftOut { launch: at, .. }) = item;
        let Some(launch) = self.launches.get(at) else { return Ok(()) };
        let Some(ran) = &launch.ran else { return Ok(()) };
        let of = self.devices.entry((ran.pid, ran.device));
        let of = of.or_insert_with(|| Of::new(sheet, tracks, trace, ran));
        let notes = &mut sheet.notes;
        match item {
            Item::Change { milli, .. } => {
                of.level += milli as f64 / 1000.0;
                sheet.count(time, of.warps, of.level)?;
                let percent = of.level * 100.0 / of.most.max(1) as f64;
                of.occupancy.map_or(Ok(()), |row| sheet.count(time, row, percent))
            }
            Item::LeftOut { blocks, warps, .. } => {
                let blocks = plural(blocks as u64, "thread block");
                let what = format!("{blocks} and {} not drawn", plural(warps as u64, "warp"));
                sheet.mark(Mark::instant(time, of.all, CATEGORY, &what))
            }
            Item::Block { block, end, .. } => {
                let Some(block) = launch.records.blocks.get(block) else { return Ok(()) };
                notes.text("thread_block", &place(block.at));
                notes.number("grid_id", launch.records.grid);
                notes.number("warps_recorded", block.warps.len() as u64);
                notes.number("may_be_off_ns", launch.slack_ns().unwrap_or(0));
                if launch.clocks.assumed {
                    notes.text("clock", "its frequency is not known: 1 GHz is assumed");
                }
                let name = demangle::short(&launch.kernel.name);
                let key = (of.all, block.multiprocessor, false);
                slice(&mut self.rows, sheet, key, &name, (time, end))
            }
            Item::Warp { block, warp, end, records, lanes, ended, .. } => {
                let Some(block) = launch.records.blocks.get(block) else { return Ok(()) };
                notes.text("thread_block", &place(block.at));
                notes.text("kernel", &demangle::short(&launch.kernel.name));
                notes.number("records", records as u64);
                notes.number("lanes", lanes.into());
                if !ended {
                    notes.text("unfinished", "its end was not recorded");
                }
                let key = (of.all, block.multiprocessor, true);
                slice(&mut self.rows, sheet, key, &format!("warp {warp}"), (time, end))
            }
        }
    }
}

/// Draws a slice on the row of a multiprocessor; on none if there are too many at a time.
fn slice(
    rows: &mut HashMap<(u64, u32, bool), (Lanes, Vec<u64>)>,
    sheet: &mut Sheet<'_>,
    key: (u64, u32, bool),
    name: &str,
    (from, to): (u64, u64),
) -> io::Result<()> {
    let (all, multiprocessor, warps) = key;
    let (lanes, found) = rows.entry(key).or_default();
    let Some(lane) = lanes.take(from, to) else {
        sheet.notes.clear();
        return Ok(());
    };
    if found.len() <= lane {
        let what = if warps { "warps" } else { "thread blocks" };
        let place = u64::from(multiprocessor) * 2 + u64::from(warps);
        let key = number(Kind::Multiprocessor, [all, place, lane as u64]);
        let title = format!("SM {multiprocessor}: {what}");
        let rank = Some(place.min(RANK));
        found.push(sheet.row(Row { rank, ..Row::new(key, Some(all), &title) }));
    }
    sheet.slice(Mark::begin(from, found[lane], CATEGORY, name), to)
}

impl Of {
    fn new(sheet: &mut Sheet<'_>, tracks: &mut Tracks, trace: &Trace, ran: &Ran) -> Self {
        let process =
            tracks.process(sheet, trace, &Thread { pid: ran.pid, tid: ran.pid, name: String::new() });
        let device = trace.names().device(ran.device);
        let parent = device_row(sheet, trace, ran.pid, device, process);
        // A block of one warp that needs nothing: what is left is how many warps there can be.
        let rules = device.and_then(|device| occupancy::rules(&device.properties));
        let needs = Needs { threads: 32, registers: 0, shared: 0 };
        let each = rules.and_then(|rules| rules.occupancy(&needs)).map_or(0, |occupancy| occupancy.of);
        let most = each * device.map_or(0, |device| u64::from(device.compute_units));
        let mut row = |place: u64, name: &str, counter: Option<Unit>, sorts: bool| {
            let key = number(Kind::Inside, [parent, place, 0]);
            let rank = Some(RANK + place);
            sheet.row(Row { rank, counter, sorts, ..Row::new(key, Some(parent), name) })
        };
        let warps = row(0, "inside: resident warps", Some(Unit::Count), false);
        let percent = Some(Unit::Named("%"));
        let occupancy = (most > 0).then(|| row(1, "inside: achieved occupancy", percent, false));
        Self { all: row(2, "inside kernels", None, true), warps, occupancy, most, level: 0.0 }
    }
}

/// The number of a thread block.
fn place([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

/// Returns by how many thousandths the number of resident warps changes when; the sum is 0.
fn changes(warps: &[WarpSpan], host: impl Fn(u64) -> u64) -> Vec<(u64, i64)> {
    let steps = resident(warps.iter().map(|warp| (host(warp.from), host(warp.to))));
    let levels: Vec<(u64, i64)> = if steps.len() <= STEPS {
        steps.into_iter().map(|(time, level)| (time, i64::try_from(level).unwrap_or(0) * 1000)).collect()
    } else {
        means(&steps)
    };
    let mut before = 0;
    let change = |(time, level): (u64, i64)| (time, level - std::mem::replace(&mut before, level));
    levels.into_iter().map(change).filter(|(_, change)| *change != 0).collect()
}

/// Thousandths in the mean of each part of the time.
fn means(steps: &[(u64, u64)]) -> Vec<(u64, i64)> {
    let (Some(&(first, _)), Some(&(last, _))) = (steps.first(), steps.last()) else { return Vec::new() };
    let part = (last - first).div_ceil(STEPS as u64 - 1).max(1);
    let mut sums = vec![0u128; STEPS];
    for pair in steps.windows(2) {
        let [(from, level), (to, _)] = pair else { continue };
        let mut at = *from;
        while at < *to {
            let of = (at - first) / part;
            let until = (first + (of + 1) * part).min(*to);
            if let Some(sum) = usize::try_from(of).ok().and_then(|of| sums.get_mut(of)) {
                *sum += u128::from(*level) * u128::from(until - at);
            }
            at = until;
        }
    }
    let parts = sums.into_iter().zip(0u64..).map(|(sum, at)| {
        let milli = sum * 1000 / u128::from(part);
        (first + at * part, i64::try_from(milli).unwrap_or(i64::MAX))
    });
    parts.take_while(|(time, _)| *time < last).chain([(last, 0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64) -> WarpSpan {
        WarpSpan { block: 0, warp: 0, multiprocessor: 0, from, to, lanes: 32, records: 2, ended: true }
    }

    #[test]
    fn counters_change_when_warps_come_and_go() {
        let found = changes(&[span(10, 30), span(20, 30)], |ns| ns + 5);
        assert_eq!(found, [(15, 1000), (25, 1000), (35, -2000)]);
    }

    #[test]
    fn many_changes_become_means_of_parts() {
        // Every 10 ns one begins that lasts 15: one and a half are there in the mean.
        let warps: Vec<WarpSpan> = (0..50_000).map(|n| span(10 * n, 10 * n + 15)).collect();
        let found = changes(&warps, |ns| ns);
        assert!(found.len() <= STEPS, "{}", found.len());
        assert_eq!(found.iter().map(|(_, change)| change).sum::<i64>(), 0);
        let mut level = 0;
        let levels: Vec<i64> = found
            .iter()
            .map(|(_, change)| {
                level += change;
                level
            })
            .collect();
        assert!(levels[1..levels.len() - 2].iter().all(|level| (1480..1520).contains(level)), "{levels:?}");
    }
}
