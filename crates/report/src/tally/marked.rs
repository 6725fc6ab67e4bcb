//! Ranges of the program, and what was launched inside of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::cells::RangeCell;
use super::counters::Counters;
use super::energy::{Meters, RangeEnergy};
use super::query::{Choice, Query};
use super::rows::{CounterRow, OpenRangeRow};
use super::times::Times;
use hetrace_trace::capture::Capture;
use hetrace_trace::history::History;
use hetrace_trace::ranges::{Range, Ranges, Step, Style};
use hetrace_trace::spans::{At, Command};
use hetrace_trace::stacks::Sites;
use hetrace_trace::trace::{FunctionId, Thread, ThreadId};

/// Commands that are kept until the call that caused them comes.
const KEPT: usize = 1 << 20;

/// What has a row: domain, message, category, how it was begun, and where, if that is distinguished.
type Key = (Arc<str>, Arc<str>, Arc<str>, Style, u32);

/// Sums of ranges of one name.
#[derive(Clone, Debug, Default)]
struct Sum {
    times: Times,
    commands: u64,
    device: u64,
    energy: RangeEnergy,
}

/// A range that is open, and those around it: places in [`Marked::chain`].
#[derive(Clone, Copy, Debug)]
struct Link {
    row: u32,
    key: u64,
    /// The link around it; itself if there is none.
    around: u32,
}

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// A command seen before its call.
#[derive(Clone, Copy, Debug)]
struct Seen {
    pid: i64,
    tid: i64,
    cause: u64,
    ns: u64,
    commands: u64,
}

/// Sums of all ranges.
#[derive(Debug)]
pub(super) struct Marked<'t> {
    ranges: Ranges<'t>,
    /// Where ranges are begun, if rows are grouped by that.
    sites: Option<Sites<'t>>,
    /// Only ranges that were open in one of these windows count.
    capture: Option<&'t Capture>,
    keys: Vec<Key>,
    by_key: HashMap<Key, u32>,
    sums: Vec<Sum>,
    chain: Vec<Link>,
    /// The innermost open range of each thread, at each time.
    history: History<u32>,
    /// The same, now.
    innermost: HashMap<ThreadId, u32>,
    early: Vec<Seen>,
    counters: Counters,
}

impl<'t> Marked<'t> {
    pub fn new(ranges: Ranges<'t>, sites: Option<Sites<'t>>, capture: Option<&'t Capture>) -> Self {
        Self {
            ranges,
            sites,
            capture,
            keys: Vec::new(),
            by_key: HashMap::new(),
            sums: Vec::new(),
            chain: Vec::new(),
            history: History::default(),
            innermost: HashMap::new(),
            early: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// What the program counted itself.
    pub fn counters(&self) -> Vec<CounterRow> {
        self.counters.rows()
    }

    /// Whether calls of a function become steps.
    pub fn needs(&self, function: FunctionId) -> bool {
        self.ranges.needs(function)
    }

    /// Where calls go to become steps.
    pub fn ranges(&mut self) -> &mut Ranges<'t> {
        &mut self.ranges
    }

    #[cold]
    pub fn step(&mut self, at: At<'_>, meters: &Meters, choice: &Choice, step: Step) {
        match step {
            Step::Begun(range) => {
                let row = self.row(&range);
                let around = self.innermost.get(&range.thread).copied().unwrap_or(NONE);
                let link = self.link(Link { row, key: range.key, around });
                self.now(at.threads.get(range.thread), range.thread, range.begin, link);
            }
            Step::Ended { range, end, .. } => {
                let row = self.row(&range) as usize;
                let ns = end.saturating_sub(range.begin);
                let who = at.threads.get(range.thread);
                let covered = |capture: &Capture| capture.parts(range.begin, end).next().is_some();
                if choice.has_range(who.pid, who.tid, range.begin) && self.capture.is_none_or(covered) {
                    let sum = &mut self.sums[row];
                    sum.times.add(ns);
                    sum.energy.add(meters, range.begin, end);
                }
                let innermost = self.innermost.get(&range.thread).copied().unwrap_or(NONE);
                let without = self.without(innermost, range.key);
                self.now(at.threads.get(range.thread), range.thread, end, without);
            }
            Step::Counted(counted) => {
                let who = at.who();
                let covered =
                    |capture: &Capture| capture.parts(counted.time, counted.time + 1).next().is_some();
                if choice.has_range(who.pid, who.tid, counted.time) && self.capture.is_none_or(covered) {
                    self.counters.add(&counted);
                }
            }
            Step::Mark(_) => {}
        }
    }

    fn now(&mut self, who: &Thread, thread: ThreadId, time: u64, link: u32) {
        self.innermost.insert(thread, link);
        self.history.change(who.pid, who.tid, time, link);
    }

    fn link(&mut self, link: Link) -> u32 {
        // Beyond that, ranges are counted, but not what is inside.
        let Ok(place) = u32::try_from(self.chain.len()) else { return NONE };
        if place == NONE {
            return NONE;
        }
        self.chain.push(link);
        place
    }

    /// The chain without one of its ranges, which usually is the innermost.
    fn without(&mut self, from: u32, key: u64) -> u32 {
        let (mut inner, mut at) = (Vec::new(), from);
        while let Some(link) = self.chain.get(at as usize).copied() {
            if link.key == key {
                let rest = link.around;
                let rebuilt = inner.into_iter().rev();
                return rebuilt.fold(rest, |around, link: Link| self.link(Link { around, ..link }));
            }
            inner.push(link);
            at = link.around;
        }
        from
    }

    fn row(&mut self, range: &Range) -> u32 {
        let site = self.sites.as_mut().map_or(0, |sites| sites.number(range.stack));
        let [domain, message, category] = [&range.domain, &range.message, &range.category].map(Arc::clone);
        let key = (domain, message, category, range.style, site);
        if let Some(row) = self.by_key.get(&key) {
            return *row;
        }
        let row = u32::try_from(self.sums.len()).unwrap_or(u32::MAX);
        self.sums.push(Sum::default());
        self.keys.push(key.clone());
        self.by_key.insert(key, row);
        row
    }

    #[inline]
    pub fn command(&mut self, at: At<'_>, command: &Command<'_>) {
        if !self.ranges.is_active() || command.cause_tid == 0 || command.cause == 0 {
            return;
        }
        let seen = Seen {
            pid: command.pid,
            tid: command.cause_tid,
            cause: command.cause,
            ns: command.times.map_or(0, |t| t.duration()).saturating_mul(command.weight),
            commands: command.weight,
        };
        // Clocks differ a little, and what caused it may come later.
        if command.cause > at.time && self.early.len() < KEPT {
            self.early.push(seen);
        } else {
            self.seen(&seen);
        }
    }

    fn seen(&mut self, command: &Seen) {
        let Some(innermost) = self.history.at(command.pid, command.tid, command.cause) else { return };
        let mut at = innermost;
        while let Some(link) = self.chain.get(at as usize).copied() {
            // In a range inside one of its own name it counts once.
            let mut inner = innermost;
            while inner != at
                && let Some(other) = self.chain.get(inner as usize)
                && other.row != link.row
            {
                inner = other.around;
            }
            if inner == at
                && let Some(sum) = self.sums.get_mut(link.row as usize)
            {
                sum.commands = sum.commands.saturating_add(command.commands);
                sum.device = sum.device.saturating_add(command.ns);
            }
            at = link.around;
        }
    }

    /// The walk has ended.
    pub fn finish(&mut self) {
        for command in std::mem::take(&mut self.early) {
            self.seen(&command);
        }
    }

    /// The innermost open range of a thread, as a number for [`Self::name`].
    pub fn innermost(&self, thread: ThreadId) -> Option<u32> {
        let link = self.chain.get(*self.innermost.get(&thread)? as usize)?;
        Some(link.row)
    }

    /// The range in which a command was enqueued, as a number for [`Self::name`].
    pub fn of_command(&self, command: &Command<'_>) -> Option<u32> {
        let link = self.history.at(command.pid, command.cause_tid, command.cause)?;
        Some(self.chain.get(link as usize)?.row)
    }

    /// `domain/name`.
    pub fn name(&self, row: u32) -> String {
        match self.keys.get(row as usize) {
            Some((domain, name, .., site)) if domain.is_empty() => self.placed(name, *site),
            Some((domain, name, .., site)) => format!("{domain}/{}", self.placed(name, *site)),
            None => String::new(),
        }
    }

    /// The name of a range, and where it is begun, if that is distinguished.
    fn placed(&self, name: &str, site: u32) -> String {
        match self.sites.as_ref().map_or("", |sites| sites.name(site)) {
            "" => name.to_owned(),
            site => format!("{name} at {site}"),
        }
    }

    /// What rows are made of.
    pub fn cells(&self, meters: &Meters, devices: &[u32], query: &Query<'_>) -> Vec<RangeCell> {
        let wanted = |(key, sum): &(&Key, &Sum)| sum.times.count > 0 && query.has_name(&key.1);
        let ended = self.keys.iter().zip(&self.sums).filter(wanted);
        let cell = |((domain, name, category, style, site), sum): (&Key, &Sum)| RangeCell {
            domain: domain.to_string(),
            name: self.placed(name, *site),
            category: category.to_string(),
            style: style.name().to_owned(),
            commands: sum.commands,
            device_ns: sum.device,
            energy: sum.energy.row(meters, devices, sum.times.total),
            times: sum.times.clone(),
        };
        ended.map(cell).collect()
    }

    /// Ranges without an end.
    pub fn open(&self, threads: &[Thread], first: u64) -> Vec<OpenRangeRow> {
        let row = |range: &&Range| {
            let who = threads.get(range.thread.index());
            OpenRangeRow {
                domain: range.domain.to_string(),
                name: range.message.to_string(),
                pid: who.map_or(0, |t| t.pid),
                tid: who.map_or(0, |t| t.tid),
                since_ns: range.begin.saturating_sub(first),
            }
        };
        self.ranges.open().iter().map(row).collect()
    }

    /// Ends of ranges without a beginning.
    pub fn unmatched(&self) -> u64 {
        self.ranges.unmatched()
    }
}
