//! Arrows: from a call to what it had the device do, and on to the call that
//! waited for it.
//!
//! ```text
//! thread 7   ▐ launch ▌              ▐ synchronize                ▌
//!                 ╰────────╮                               ╭──────╯
//! queue                    ▐ first ▌ ▐ second ▌ ▐ third    ▌
//! ```
//!
//! A wait is a call with the role `sync`. It ended on a command that ended after
//! the wait began and before it returned; if the wait names a queue, on one of
//! that queue, else on one that its own thread enqueued, and if there is none, on
//! one of the process. Of each queue that is the last such command, and of
//! several waits the one that returned first gets it. Of each queue the last
//! [`RECENT`] commands are remembered.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

use super::names::Fnv;
use super::tracks::{Kind, number};
use hetrace_trace::spans::Command;
use hetrace_trace::trace::Trace;

/// Commands of a queue that a wait may still end on.
const RECENT: usize = 16;
/// Calls of which a first command has been seen.
const CAUSES: usize = 4096;
/// Arrows into one wait.
const MAX_ENDS: usize = 16;
/// Clocks of devices are not trusted to be wrong by more than this, in nanoseconds.
const MAX_SLACK: u64 = 10_000;

/// A command that may be waited for.
#[derive(Clone, Copy, Debug)]
struct Recent {
    end: u64,
    flow: u64,
    tid: i64,
}

/// The last commands of a queue.
#[derive(Debug)]
struct Queue {
    pid: i64,
    handle: u64,
    recent: VecDeque<Recent>,
}

/// A call that waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub pid: i64,
    pub tid: i64,
    pub start: u64,
    pub end: u64,
    /// The handle of the queue that it waited for, if it names one.
    pub queue: Option<u64>,
}

/// What arrows need to remember.
#[derive(Debug, Default)]
pub(super) struct Flows {
    queues: Vec<Queue>,
    /// Calls of which a first command has been seen, and in which order.
    caused: HashSet<u64, BuildHasherDefault<Fnv>>,
    order: VecDeque<u64>,
    /// By how much a command may seem to end too late, in nanoseconds.
    slack: u64,
}

impl Flows {
    pub fn new(trace: &Trace) -> Self {
        let slack = trace.manifest().device_error_ns().unwrap_or(0).min(MAX_SLACK);
        Self { slack, ..Self::default() }
    }

    /// The arrows that a command is on, and of them the one that may go on to a
    /// wait: no two commands share that. From the call there is one to each
    /// command but the nodes of a graph, of which only the first has it.
    pub fn of_command(&mut self, command: &Command<'_>, start: u64, flows: &mut Vec<u64>) -> u64 {
        flows.clear();
        let own = number(Kind::Queue, [command.queue, start, command.node]);
        let cause = command.cause_id();
        let first = command.cause > 0 && self.caused.insert(cause);
        if first {
            self.order.push_back(cause);
            if self.order.len() > CAUSES
                && let Some(oldest) = self.order.pop_front()
            {
                self.caused.remove(&oldest);
            }
            flows.push(cause);
            return cause;
        }
        if command.cause > 0 && command.graph == 0 {
            flows.push(cause);
        }
        flows.push(own);
        own
    }

    /// A place for a queue's commands.
    pub fn add_queue(&mut self, pid: i64, handle: u64) -> usize {
        self.queues.push(Queue { pid, handle, recent: VecDeque::new() });
        self.queues.len() - 1
    }

    /// A file ends: of what ended before, and of the calls so far, the next has nothing.
    pub fn cut(&mut self, time: u64) {
        self.queues.iter_mut().for_each(|queue| queue.recent.retain(|c| c.end > time));
        self.caused.clear();
        self.order.clear();
    }

    /// A command will be waited for, perhaps.
    pub fn ends(&mut self, queue: usize, command: &Command<'_>, end: u64, flow: u64) {
        let Some(queue) = self.queues.get_mut(queue) else { return };
        if queue.recent.len() >= RECENT {
            queue.recent.pop_front();
        }
        queue.recent.push_back(Recent { end, flow, tid: command.cause_tid });
    }

    /// The arrows that end at a wait.
    pub fn waited(&mut self, wait: Wait, flows: &mut Vec<u64>) {
        flows.clear();
        match wait.queue {
            Some(handle) => {
                let meant = |q: &Queue| q.handle == handle;
                self.take(wait, flows, meant, |_| true);
            }
            None => {
                self.take(wait, flows, |_| true, |command| command.tid == wait.tid);
                if flows.is_empty() {
                    self.take(wait, flows, |_| true, |_| true);
                }
            }
        }
    }

    fn take(
        &mut self,
        wait: Wait,
        flows: &mut Vec<u64>,
        meant: impl Fn(&Queue) -> bool,
        counts: impl Fn(&Recent) -> bool,
    ) {
        let until = wait.end.saturating_add(self.slack);
        let of_wait = |q: &&mut Queue| q.pid == wait.pid && !q.recent.is_empty() && meant(q);
        for queue in self.queues.iter_mut().filter(of_wait) {
            let within = |c: &&Recent| c.end > wait.start && c.end <= until && counts(c);
            let last = queue.recent.iter().filter(within).max_by_key(|c| c.end).copied();
            let Some(last) = last else { continue };
            // Whatever of these ended before was waited for, too.
            queue.recent.retain(|c| c.end > last.end || !counts(c));
            if flows.len() < MAX_ENDS {
                flows.push(last.flow);
            }
        }
    }
}
