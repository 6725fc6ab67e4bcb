//! What was at a moment on a thread, for commands that come later.
//!
//! A command names the call that caused it by its thread and time, and is seen
//! when it starts. Until then the thread has gone on, so what was open around the
//! call must be remembered. Memory is bounded: what is oldest is forgotten.

use std::collections::{HashMap, VecDeque};

/// Changes that are remembered of each thread.
const KEPT: usize = 1 << 20;

/// The changes of each thread.
#[derive(Clone, Debug)]
pub struct History<T> {
    /// By process and thread, with their times.
    threads: HashMap<(i64, i64), VecDeque<(u64, T)>>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { threads: HashMap::new() }
    }
}

impl<T: Copy> History<T> {
    /// From `time` on there is `now`.
    pub fn change(&mut self, pid: i64, tid: i64, time: u64, now: T) {
        let changes = self.threads.entry((pid, tid)).or_default();
        if changes.len() >= KEPT {
            changes.pop_front();
        }
        // What is noticed late holds from then on.
        let time = changes.back().map_or(time, |(last, _)| time.max(*last));
        changes.push_back((time, now));
    }

    /// What there was at `time`.
    pub fn at(&self, pid: i64, tid: i64, time: u64) -> Option<T> {
        let changes = self.threads.get(&(pid, tid))?;
        // Most commands are caused by what is newest.
        let newest = changes.back().filter(|(since, _)| *since <= time);
        if let Some((_, now)) = newest {
            return Some(*now);
        }
        let after = changes.partition_point(|(since, _)| *since <= time);
        changes.get(after.checked_sub(1)?).map(|(_, then)| *then)
    }
}
