//! What calls that wait were waiting for, summed up.
//!
//! ```text
//! thread   t0 enqueue ──── other work ──── t1 ▐ wait ▌ t2
//! queue          ▐ command                        ▌
//! ```
//!
//! Which calls wait, and for which commands, [`hetrace_trace::waits`] decides. A wait is real if a
//! command that it waited for ended between t1 and t2. What ended before t1 had been hidden behind
//! the thread's other work.

use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::CommandKind;
use std::collections::{BTreeMap, VecDeque};

use super::Window;
use super::coverage::Busy;
use super::path::NodeId;
use hetrace_trace::owners::ApiIndex;
use hetrace_trace::spans::Command;
use hetrace_trace::trace::{FunctionId, Trace};
use hetrace_trace::waits::{Wait, Waits as Matcher, What};

/// Commands of a queue that another queue's may have had to wait for.
const LATEST: usize = 16;
/// Threads that are counted for a function.
const THREADS: usize = 1024;

/// A command that may be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    pub start: u64,
    pub end: u64,
    pub node: NodeId,
    /// When the call that enqueued it began; 0 if it is not known.
    pub cause: u64,
    pub bytes: u64,
    /// The number of its kind, if it moves memory.
    pub copies: Option<CommandKind>,
}

/// A queue and its last commands.
#[derive(Clone, Debug)]
struct Queue {
    pid: i64,
    /// As calls name it.
    handle: u64,
    api: Option<ApiIndex>,
    busy: Busy,
    latest: VecDeque<Recent>,
}

/// Sums of the waits in one function.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitSum {
    pub calls: u64,
    pub ns: u64,
    /// What was waited for ran.
    pub busy: u64,
    /// It did not run yet, or not all the time.
    pub before: u64,
    /// All of it had ended.
    pub after: u64,
    /// Calls in which nothing ended.
    pub immediate: u64,
    pub immediate_ns: u64,
    pub threads: Vec<(i64, i64)>,
}

/// Sums of transfers of one kind, of which the program saw the end in a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransferSum {
    pub count: u64,
    /// Waited for alone and really: t2 - t0 is right.
    pub measured: u64,
    pub measured_bytes: u64,
    /// t2 - t0 of these.
    pub seen_ns: u64,
    /// What the device took for them.
    pub device_ns: u64,
    /// They had ended before t1.
    pub hidden: u64,
    /// t1 - t0, of all.
    pub other_work_ns: u64,
}

/// All waits.
pub(super) struct Waits<'t> {
    pub matcher: Matcher<'t, Recent>,
    queues: Vec<Queue>,
    by_number: QuickMap<(i64, u32), usize>,
    /// By process, what its commands kept busy.
    processes: QuickMap<i64, Busy>,
    pub sums: BTreeMap<FunctionId, WaitSum>,
    pub transfers: BTreeMap<CommandKind, TransferSum>,
}

impl<'t> Waits<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self {
            matcher: Matcher::new(trace),
            queues: Vec::new(),
            by_number: QuickMap::default(),
            processes: QuickMap::default(),
            sums: BTreeMap::new(),
            transfers: BTreeMap::new(),
        }
    }

    /// A command begins.
    pub fn command(&mut self, command: &Command<'_>, recent: Recent) {
        // What is too old for a wait is not missed: it had long ended.
        self.matcher.command(command, recent);
        let (pid, handle, api) = (command.pid, command.named_queue(), self.matcher.api_of(command));
        let number = command.on_queue.map_or(0, |q| q.id);
        let place = *self.by_number.entry((pid, number)).or_insert_with(|| {
            self.queues.push(Queue { pid, handle, api, busy: Busy::default(), latest: VecDeque::new() });
            self.queues.len() - 1
        });
        self.processes.entry(pid).or_default().add(recent.start, recent.end);
        let Some(queue) = self.queues.get_mut(place) else { return };
        queue.busy.add(recent.start, recent.end);
        if queue.latest.len() >= LATEST {
            queue.latest.pop_front();
        }
        queue.latest.push_back(recent);
    }

    /// When commands of a process ran.
    pub fn process(&self, pid: i64) -> Option<&Busy> {
        self.processes.get(&pid)
    }

    /// A call that waited has ended. Returns the command that it ended on.
    pub fn ended(&mut self, wait: &Wait, polls: bool, window: Window) -> Option<Recent> {
        let waited = self.matcher.waited(wait);
        let last = waited.last.and_then(|at| waited.all.get(at)).copied();
        self.count(wait, last, polls, window);
        if window.from <= wait.end && wait.end <= window.to {
            self.conclude(wait, &waited.all);
        }
        last
    }

    /// A call that waited has not ended: it counts with the time that is known of it.
    pub fn unfinished(&mut self, wait: &Wait, polls: bool, window: Window) {
        let last = self.matcher.last_within(wait).copied();
        self.count(wait, last, polls, window);
    }

    /// When what a call may have waited for ran in it.
    fn pieces(&self, wait: &Wait) -> Vec<(u64, u64)> {
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        if wait.api.is_some() || matches!(wait.what, What::Queue(_)) {
            let meant = |q: &&Queue| q.pid == wait.pid && wait.is_for(q.handle, q.api);
            for queue in self.queues.iter().filter(meant) {
                pieces.extend(queue.busy.pieces(wait.start, wait.end));
            }
        } else if let Some(busy) = self.processes.get(&wait.pid) {
            pieces.extend(busy.pieces(wait.start, wait.end));
        }
        pieces.sort_unstable();
        pieces
    }

    fn count(&mut self, wait: &Wait, last: Option<Recent>, polls: bool, window: Window) {
        let (start, end) = window.clip(wait.start, wait.end);
        if end == start && (wait.end < window.from || wait.start > window.to) {
            return;
        }
        // Whoever asks again and again waits, whatever the answer of this time.
        let pieces = if last.is_some() || polls { self.pieces(wait) } else { Vec::new() };
        let sum = self.sums.entry(wait.function).or_default();
        sum.calls += 1;
        sum.ns = sum.ns.saturating_add(end - start);
        if !sum.threads.contains(&(wait.pid, wait.tid)) && sum.threads.len() < THREADS {
            sum.threads.push((wait.pid, wait.tid));
        }
        if last.is_none() && !polls {
            sum.immediate += 1;
            sum.immediate_ns = sum.immediate_ns.saturating_add(end - start);
            return;
        }
        let (mut busy, mut at) = (0_u64, start);
        for (from, to) in &pieces {
            let (from, to) = ((*from).max(at), (*to).min(end));
            if to > from {
                busy += to - from;
                at = to;
            }
        }
        let after = last.map_or(0, |last| end.saturating_sub(last.end.max(at)));
        let before = (end - start).saturating_sub(busy).saturating_sub(after);
        for (to, ns) in [(&mut sum.busy, busy), (&mut sum.after, after), (&mut sum.before, before)] {
            *to = to.saturating_add(ns);
        }
    }

    fn conclude(&mut self, wait: &Wait, concluded: &[Recent]) {
        let waited_for = concluded.iter().filter(|c| c.end > wait.start).count();
        for command in concluded {
            let Some(kind) = command.copies.filter(|_| command.cause > 0 && command.cause < wait.start)
            else {
                continue;
            };
            let sum = self.transfers.entry(kind).or_default();
            sum.count += 1;
            sum.other_work_ns = sum.other_work_ns.saturating_add(wait.start - command.cause);
            if command.end <= wait.start {
                sum.hidden += 1;
            } else if waited_for == 1 {
                sum.measured += 1;
                sum.measured_bytes = sum.measured_bytes.saturating_add(command.bytes);
                sum.seen_ns = sum.seen_ns.saturating_add(wait.end.saturating_sub(command.cause));
                sum.device_ns = sum.device_ns.saturating_add(command.end.saturating_sub(command.start));
            }
        }
    }

    /// The command of a process that ended last within a time.
    pub fn ended_within(&self, pid: i64, from: u64, to: u64) -> Option<Recent> {
        let of_process = self.queues.iter().filter(|q| q.pid == pid);
        // What ended last began among the last of its queue.
        let commands = of_process.flat_map(|q| &q.latest);
        commands.filter(|c| c.end > from && c.end <= to).max_by_key(|c| c.end).copied()
    }

    /// Every place that knows a point of the critical path.
    pub fn nodes(&mut self) -> impl Iterator<Item = &mut NodeId> {
        let latest = self.queues.iter_mut().flat_map(|q| q.latest.iter_mut());
        self.matcher.kept_mut().chain(latest).map(|c| &mut c.node)
    }
}
