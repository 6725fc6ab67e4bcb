//! Numbers that calls share with the commands that they enqueue.

use std::collections::VecDeque;

use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::{FunctionId, Trace};

/// Calls that are remembered. A command whose call was so many before has no number.
const KEPT: usize = 1 << 20;

/// Calls that enqueue, counted from 1.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// By function, whether it enqueues.
    enqueues: Vec<bool>,
    /// By what commands name their call with.
    known: QuickMap<u64, u64>,
    /// The same in the order of the calls.
    calls: VecDeque<u64>,
    next: u64,
}

impl Numbers {
    /// Numbers for the calls of a trace; none if it has no commands.
    pub fn of(trace: &Trace) -> Self {
        let ids = (0u32..).zip(trace.functions().all()).map(|(id, _)| FunctionId(id));
        let enqueues = |id| {
            let function = trace.described(id);
            function.is_some_and(|f| f.has_role("enqueue") || f.has_role("launch") || f.has_command())
        };
        let any = !trace.names().queues().is_empty();
        Self { enqueues: if any { ids.map(enqueues).collect() } else { Vec::new() }, ..Self::default() }
    }

    /// A call begins, which commands name by `cause`.
    pub fn entry(&mut self, function: FunctionId, cause: impl FnOnce() -> u64) {
        if self.enqueues.get(function.index()) != Some(&true) {
            return;
        }
        self.next += 1;
        let cause = cause();
        self.known.insert(cause, self.next);
        self.calls.push_back(cause);
        if self.calls.len() > KEPT
            && let Some(oldest) = self.calls.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// The number of a call of a function; none if it enqueues nothing.
    pub fn of_call(&self, function: FunctionId, cause: impl FnOnce() -> u64) -> Option<u64> {
        let enqueues = self.enqueues.get(function.index()) == Some(&true);
        if enqueues { self.known.get(&cause()).copied() } else { None }
    }

    /// The number of the call that enqueued a command.
    pub fn of_command(&self, cause: u64) -> Option<u64> {
        self.known.get(&cause).copied()
    }
}
