//! How many processes and threads are recorded; what is beyond that is dropped and counted.

/// Most processes and threads at a time. Which are beyond the limit is decided when they are found, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Processes; none: any number.
    pub(super) processes: Option<u32>,
    /// Threads of all of them; none: any number.
    pub(super) threads: Option<u32>,
    /// Threads that are recorded now.
    pub(super) recorded: u32,
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

    /// Returns whether one more thread is recorded, and counts it.
    pub(super) fn admits_thread(&mut self) -> bool {
        let admits = self.threads.is_none_or(|most| self.recorded < most);
        self.recorded = self.recorded.saturating_add(u32::from(admits));
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
