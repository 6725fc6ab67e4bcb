//! Calls that enqueued, for commands that come later.

use std::collections::{HashMap, VecDeque};

use hetrace_trace::spans::Command;

/// Calls of a thread that are remembered.
pub(crate) const REMEMBERED: usize = 1 << 16;

/// The last calls that enqueued, each with what is to be known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes<T> {
    /// By process and thread: when they began.
    threads: HashMap<(i64, i64), VecDeque<(u64, T)>>,
}

impl<T: Copy> Causes<T> {
    /// A call that enqueues begins.
    pub fn add(&mut self, pid: i64, tid: i64, start: u64, known: T) {
        let calls = self.threads.entry((pid, tid)).or_default();
        if calls.len() >= REMEMBERED {
            calls.pop_front();
        }
        calls.push_back((start, known));
    }

    /// What is known of the call that enqueued a command.
    pub fn of(&self, command: &Command<'_>) -> Option<T> {
        if command.cause == 0 {
            return None;
        }
        let calls = self.threads.get(&(command.pid, command.cause_tid))?;
        let at = calls.partition_point(|(start, _)| *start < command.cause);
        // Of calls inside one another that began at once, the innermost enqueued.
        let same = calls.range(at..).take_while(|(start, _)| *start == command.cause);
        same.last().map(|(_, known)| *known)
    }
}
