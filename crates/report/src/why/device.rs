//! What is summed up of one device.

use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::CommandKind;

use super::Window;
use super::causes::Cause;
use super::coverage::{Busy, Union};
use super::gaps::Part as GapPart;
use super::histogram::Histogram;
use super::independent::Free;
use super::ledger::{Idle, Ledger, Totals};
use super::sampled::{Sampled, Sums};
use super::sharing::Sharing;
use super::sweep::{Part, Sweep};
use super::threads::Threads;

/// Gaps that are listed.
const LISTED: usize = 10_000;

/// What a command was, for evidence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Title {
    pub kind: CommandKind,
    /// Number of its function; 0 if it has none.
    pub function: u32,
    pub pid: i64,
    /// Handle of its queue, and its number; 0 if it has none.
    pub queue: u64,
    pub queue_number: u32,
}

/// Where between a device's commands a time lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    Before,
    Between,
    After,
}

/// What was around a part of a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub start: u64,
    pub end: u64,
    pub before: Option<Title>,
    pub after: Option<Title>,
    /// The place of the thread that enqueued the next command.
    pub thread: Option<usize>,
}

/// A gap, or what was before the first command, with its parts.
#[derive(Clone, Debug)]
pub(super) struct Explained {
    pub place: Place,
    pub evidence: Evidence,
    pub parts: Vec<GapPart>,
}

/// Sums of a cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct CauseSum {
    pub ns: u64,
    pub gaps: u64,
    pub longest: Evidence,
}

/// A gap that is listed.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub evidence: Evidence,
    /// Its causes, the longest first.
    pub causes: Vec<(Cause, u64)>,
}

/// A command on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub title: Title,
    pub part: Part,
    /// Number of its queue.
    pub queue: u32,
    pub start: u64,
    pub end: u64,
    /// When its call began; 0 if it is not known.
    pub cause: u64,
    /// Since when nothing of its own process kept it; none if that is not known.
    pub ready: Option<u64>,
    pub thread: Option<usize>,
    /// It is the first of its function.
    pub fresh: bool,
    /// How much of the device it can keep busy, from 0 to 1.
    pub fill: f64,
    /// Launches before it, on its queue, that could run beside it.
    pub free: Free,
}

/// The last command of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub end: u64,
    fill: f64,
}

/// A device.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    /// Its numbers: each process has one of its own.
    pub numbers: Vec<u32>,
    pub pids: Vec<i64>,
    pub commands: u64,
    pub untimed: u64,
    /// When commands without times may have run.
    pub untimed_busy: Busy,
    pub sweep: Sweep,
    pub sharing: Sharing,
    pub first: Option<u64>,
    pub last_end: u64,
    pub last: Option<Title>,
    pub last_thread: Option<usize>,
    /// When the queue depth was above 0.
    pub waiting: Union,
    /// The same, summed over what waited.
    pub waiting_ns: u64,
    pub launch: Histogram,
    pub queued: Histogram,
    /// By process and queue, when the last command had ended.
    pub queue_ends: QuickMap<(i64, u32), Last>,
    /// Time of commands by queue's number, and whether they compute.
    pub by_queue: QuickMap<(u32, bool), u64>,
    pub ledger: Ledger,
    /// What others could have run beside kernels that waited for each other on one queue.
    room: u64,
    /// The same of kernels of which nobody knows whether they need each other.
    room_unknown: u64,
    /// Whether the last command computed, and how often a copy came after one that did.
    computed: bool,
    rounds: u64,
    pub causes: QuickMap<(Place, Cause), CauseSum>,
    /// What threads did in them with their CPUs, if that was sampled.
    pub sampled: QuickMap<Place, QuickMap<Cause, Sums>>,
    /// Their time by the code that made the calls which they name, as far as that is known.
    pub sites: QuickMap<(Place, Cause), Sums>,
    pub gaps: u64,
    pub longest_gap: u64,
    pub listed: Vec<Listed>,
    pub not_listed: u64,
}

impl Device {
    /// The gap that ends now, if there is one.
    pub fn gap(&self, start: u64) -> Option<(u64, u64)> {
        (self.first.is_some() && start > self.last_end).then_some((self.last_end, start))
    }

    /// A command begins, behind a gap if there is one.
    pub fn ran(&mut self, ran: &Ran, gap: Option<Explained>, window: Window, least: Option<u64>) {
        if let Some(Explained { place, evidence, parts }) = gap {
            self.explained(place, evidence, &parts, window, least);
        }
        self.command(ran, window);
    }

    /// Takes in what the thread did in a gap, if that was sampled, and where the calls in it were made.
    pub fn witness(&mut self, gap: Option<&Explained>, sampled: &Sampled, threads: &Threads, window: Window) {
        let Some(Explained { place, evidence, parts }) = gap else { return };
        let Some(thread) = evidence.thread.and_then(|place| threads.get(place)) else { return };
        for part in parts {
            let (start, end) = window.clip(part.start, part.end);
            if let Some((function, by)) = part.cause.made() {
                let who = by.map_or(Some(thread), |by| threads.get(by as usize));
                let site = who.map_or(0, |who| who.site(function, part.end));
                if site > 0 {
                    let sums = self.sites.entry((*place, part.cause)).or_default();
                    *sums.entry(site).or_insert(0) += end - start;
                }
            }
            if !sampled.is_empty() {
                let sums = self.sampled.entry(*place).or_default();
                sampled.add((thread.pid, thread.tid), &GapPart { start, end, ..*part }, sums);
            }
        }
    }

    fn command(&mut self, ran: &Ran, window: Window) {
        self.commands += u64::from(window.from <= ran.start && ran.start <= window.to);
        if !self.pids.contains(&ran.title.pid) {
            self.pids.push(ran.title.pid);
        }
        let alone = self.sweep.command(ran.start, ran.end, ran.part, window);
        self.ledger.mark(ran.start.max(window.from).min(window.to), self.totals());
        let inside = window.of(ran.start, ran.end);
        let computes = ran.part == Part::Compute;
        self.rounds += u64::from(self.computed && !computes && inside > 0);
        self.computed = computes;
        let of_queue = self.by_queue.entry((ran.queue, computes)).or_default();
        *of_queue = of_queue.saturating_add(inside);
        self.sharing.command(ran.title.pid, ran.ready, (ran.start, ran.end), window);
        let first = *self.first.get_or_insert(ran.start);
        let queue_end = self.queue_ends.entry((ran.title.pid, ran.queue)).or_default();
        if ran.cause > 0 {
            let (from, to) = window.clip(ran.cause.max(first), ran.start);
            self.waiting.add(from, to);
            self.waiting_ns = self.waiting_ns.saturating_add(to - from);
            if window.from <= ran.start && ran.start <= window.to {
                let since = ran.start.saturating_sub(ran.cause);
                self.queued.add(since);
                if queue_end.end <= ran.cause {
                    self.launch.add(since);
                }
            }
        }
        let behind = ran.cause > 0 && queue_end.end > ran.cause && queue_end.end <= ran.start;
        if behind && alone && ran.fill < 1.0 && queue_end.fill < 1.0 && computes {
            let (room, least) = match ran.free {
                Free::Unknown => (&mut self.room_unknown, ran.fill),
                Free::Launches(free) => (&mut self.room, ran.fill.max(1.0 / (1.0 + f64::from(free)))),
            };
            *room = room.saturating_add((inside as f64 * (1.0 - least)) as u64);
        }
        if ran.end >= queue_end.end {
            *queue_end = Last { end: ran.end, fill: ran.fill };
        }
        if ran.end >= self.last_end {
            self.last_end = ran.end;
            self.last = Some(ran.title);
        }
        self.last_thread = ran.thread.or(self.last_thread);
    }

    /// Sums up to where the sweep is.
    pub fn totals(&self) -> Totals {
        let Sweep { busy, both, parts, .. } = self.sweep;
        Totals { busy, both, parts, room: self.room, room_unknown: self.room_unknown, rounds: self.rounds }
    }

    /// A gap has been explained. `least` is from when on gaps are listed.
    pub fn explained(
        &mut self,
        place: Place,
        gap: Evidence,
        parts: &[GapPart],
        window: Window,
        least: Option<u64>,
    ) {
        let ns = window.of(gap.start, gap.end);
        if ns == 0 {
            return;
        }
        let mut causes: QuickMap<Cause, u64> = QuickMap::default();
        let drained = parts.iter().any(|part| matches!(part.cause, Cause::Return(_) | Cause::AfterWait(_)));
        for part in parts {
            let (start, end) = window.clip(part.start, part.end);
            if end == start {
                continue;
            }
            let longest = Evidence { start, end, ..gap };
            let new = CauseSum { ns: 0, gaps: 0, longest };
            let sum = self.causes.entry((place, part.cause)).or_insert(new);
            sum.ns = sum.ns.saturating_add(end - start);
            if end - start > sum.longest.end - sum.longest.start {
                sum.longest = longest;
            }
            let of_gap = causes.entry(part.cause).or_insert(0);
            let gaps = u64::from(*of_gap == 0);
            sum.gaps += gaps;
            if place == Place::Between {
                self.ledger.idle(Idle { cause: part.cause, drained, ns: end - start, gaps });
            }
            *of_gap = of_gap.saturating_add(end - start);
        }
        if place != Place::Between {
            return;
        }
        self.gaps += 1;
        self.longest_gap = self.longest_gap.max(ns);
        if least.is_some_and(|least| ns >= least) {
            if self.listed.len() < LISTED {
                let mut causes: Vec<(Cause, u64)> = causes.into_iter().collect();
                causes.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
                self.listed.push(Listed { evidence: gap, causes });
            } else {
                self.not_listed += 1;
            }
        }
    }
}
