//! Arrows: from a call to what it had the device do, and on to the call that
//! waited for it.
//!
//! ```text
//! thread 7   ▐ launch ▌              ▐ synchronize                ▌
//!                 ╰────────╮                               ╭──────╯
//! queue                    ▐ first ▌ ▐ second ▌ ▐ third    ▌
//! ```
//!
//! Which calls wait, and for which commands, [`hetrace_trace::waits`] decides. Of each queue
//! the command that ended last within the wait has the arrow.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;

use super::names::Fnv;
use super::tracks::{Kind, number};
use hetrace_trace::spans::Command;
use hetrace_trace::trace::Trace;
use hetrace_trace::waits::{Wait, Waits};

/// Calls of which a first command has been seen.
const CAUSES: usize = 4096;
/// Arrows into one wait.
const MAX_ENDS: usize = 16;
/// The arrow of a command that may be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Onward {
    pub queue: u32,
    pub end: u64,
    pub flow: u64,
}

/// What arrows need to remember.
#[derive(Debug)]
pub(super) struct Flows<'t> {
    /// Commands that are not drawn have no arrow.
    pub waits: Waits<'t, Option<Onward>>,
    /// Arrows of what ended until then lie in another file.
    cut: u64,
    /// Calls of which a first command has been seen, and in which order.
    caused: HashSet<u64, BuildHasherDefault<Fnv>>,
    order: VecDeque<u64>,
}

impl<'t> Flows<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self { waits: Waits::new(trace), cut: 0, caused: HashSet::default(), order: VecDeque::new() }
    }

    /// The arrows that a command is on, and of them the one that may go on to a
    /// wait: no two commands share that. From the call there is one to each
    /// command but the nodes of a graph, of which only the first has it.
    pub fn of_command(&mut self, command: &Command<'_>, start: u64, flows: &mut Vec<u64>) -> u64 {
        flows.clear();
        // Handles are shared by default queues of several contexts, and by processes.
        let queue = command.on_queue.map_or(command.queue, |q| q.id.into());
        let own = number(Kind::Queue, [queue, start, command.node]);
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

    /// A file ends: of what ended before, and of the calls so far, the next has nothing.
    pub fn cut(&mut self, time: u64) {
        self.cut = time;
        self.caused.clear();
        self.order.clear();
    }

    /// The arrows that end at a wait.
    pub fn waited(&mut self, wait: Option<&Wait>, flows: &mut Vec<u64>) {
        flows.clear();
        let Some(wait) = wait else { return };
        let mut last: Vec<Onward> = Vec::new();
        let after = wait.start.max(self.cut);
        for onward in self.waits.waited(wait).all.into_iter().flatten().filter(|c| c.end > after) {
            let known = last.iter_mut().find(|known| known.queue == onward.queue);
            match known {
                Some(known) if known.end >= onward.end => {}
                Some(known) => *known = onward,
                None => last.push(onward),
            }
        }
        flows.extend(last.iter().take(MAX_ENDS).map(|onward| onward.flow));
    }
}
