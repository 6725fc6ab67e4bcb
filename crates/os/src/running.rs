//! Which thread each CPU went to, so that a context switch is missed that the kernel did not deliver.
//!
//! Kernels leave out switches without counting them: those of threads that they exempt from tracing, which ftrace does
//! not show either (seen on a virtual machine for all threads of its process 1).

/// The threads on the CPUs, as far as switches show.
#[derive(Debug, Clone, Default)]
pub struct Running {
    threads: Vec<Option<u32>>,
}

impl Running {
    /// Takes a switch. Returns the thread that the CPU went to before, if that is not the one that it leaves now: the
    /// switches in between were not delivered.
    pub fn switch(&mut self, cpu: usize, from: u32, to: u32) -> Option<u32> {
        self.goes_to(cpu, Some(to)).filter(|last| *last != from)
    }

    /// What a CPU runs is not known any more.
    pub fn forget(&mut self, cpu: usize) {
        self.goes_to(cpu, None);
    }

    /// A thread has another number since it runs another program: that of its process.
    pub fn renamed(&mut self, cpu: usize, old: u32, tid: u32) {
        if let Some(thread) = self.threads.get_mut(cpu)
            && *thread == Some(old)
        {
            *thread = Some(tid);
        }
    }

    fn goes_to(&mut self, cpu: usize, thread: Option<u32>) -> Option<u32> {
        if self.threads.len() <= cpu {
            self.threads.resize(cpu + 1, None);
        }
        std::mem::replace(&mut self.threads[cpu], thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_was_not_delivered_is_missed_once() {
        let mut running = Running::default();
        assert_eq!(running.switch(1, 10, 11), None, "nothing is known of this CPU yet");
        assert_eq!(running.switch(1, 11, 12), None);
        assert_eq!(running.switch(1, 13, 14), Some(12));
        assert_eq!(running.switch(1, 14, 15), None);
        running.forget(1);
        assert_eq!(running.switch(1, 20, 21), None, "counted as dropped already");
        assert_eq!(running.switch(0, 1, 2), None);
    }

    #[test]
    fn a_thread_that_runs_another_program_is_the_same_one() {
        let mut running = Running::default();
        running.switch(0, 1, 11);
        running.renamed(0, 11, 10);
        assert_eq!(running.switch(0, 10, 2), None);
        running.renamed(0, 11, 10);
        assert_eq!(running.switch(0, 2, 3), None);
    }
}
