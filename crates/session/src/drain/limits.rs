//! How many processes and threads are recorded; what is beyond that is dropped and counted.

use std::collections::HashMap;

/// A thread of an image, by the numbers that these have.
pub(super) type Thread = (usize, u32);

/// Most processes and threads at a time. Which are beyond the limit is decided when they are found, once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Processes; none: any number.
    pub(super) processes: Option<u32>,
    /// Threads of all of them; none: any number.
    pub(super) threads: Option<u32>,
    /// Threads that are recorded now, and how many rings each has.
    recorded: HashMap<Thread, u32>,
    /// Processes that were refused.
    pub(super) refused_processes: u64,
    /// Threads that were refused.
    pub(super) refused_threads: u64,
}

impl Limits {
    /// Records at most so many processes and threads at a time; none: any number.
    pub fn new(processes: Option<u32>, threads: Option<u32>) -> Self {
        Self { processes, threads, ..Self::default() }
    }

    /// Notes which threads have rings now.
    pub(super) fn count(&mut self, threads: impl Iterator<Item = Thread>) {
        if self.threads.is_some() {
            self.recorded.clear();
            threads.for_each(|thread| *self.recorded.entry(thread).or_default() += 1);
        }
    }

    /// A ring is another thread's from now on. Returns whether that one is recorded, and counts it; a thread that goes on
    /// in a larger ring is what it was.
    pub(super) fn admits_thread(&mut self, before: Option<Thread>, thread: Thread) -> bool {
        let Some(most) = self.threads else { return true };
        if let Some(before) = before
            && let Some(rings) = self.recorded.get_mut(&before)
        {
            *rings = rings.saturating_sub(1);
            if *rings == 0 {
                self.recorded.remove(&before);
            }
        }
        let admits = self.recorded.contains_key(&thread) || self.recorded.len() < most as usize;
        if admits {
            *self.recorded.entry(thread).or_default() += 1;
        }
        self.refused_threads = self.refused_threads.saturating_add(u64::from(!admits));
        admits
    }

    /// Returns whether one more process is recorded, besides so many.
    pub(super) fn admits_process(&mut self, recorded: usize) -> bool {
        let admits = self.processes.is_none_or(|most| recorded < most as usize);
        self.refused_processes = self.refused_processes.saturating_add(u64::from(!admits));
        admits
    }

    /// Processes and threads that were refused so far.
    pub fn refused(&self) -> (u64, u64) {
        (self.refused_processes, self.refused_threads)
    }

    /// Returns what the user should know.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let note = |refused: u64, most: Option<u32>, what: &str| {
            most.filter(|_| refused > 0).map(|most| {
                format!(
                    "{refused} {what} were beyond the limit of {most} (--max-{what}): what they recorded was dropped and counted"
                )
            })
        };
        let processes = note(self.refused_processes, self.processes, "processes");
        processes.into_iter().chain(note(self.refused_threads, self.threads, "threads"))
    }
}
