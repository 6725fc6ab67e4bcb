//! Which events concern a program and its descendants.
//!
//! Events come in the order of time from all CPUs, so that a thread is known from its beginning on: the
//! event of the fork comes before all events of the child. Nothing is looked up meanwhile, so a process
//! that lives for a microsecond is followed as one that lives for an hour.

use crate::hash::{NumberMap, NumberSet};

/// What of an event decides whether it concerns the tree. Numbers of threads are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerns {
    /// A CPU goes from one thread to another.
    Switch {
        /// The CPU.
        cpu: u32,
        /// The one.
        from: u32,
        /// The other.
        to: u32,
        /// Whether the one would run on.
        ready: bool,
    },
    /// The thread that ran wakes this one.
    Wake {
        /// The one that is woken.
        thread: u32,
        /// Where it is to run.
        cpu: u32,
    },
    /// This thread moves to another CPU.
    Migrate {
        /// The thread.
        thread: u32,
        /// The CPU.
        cpu: u32,
    },
    /// A thread begins another.
    Fork {
        /// The one.
        parent: u32,
        /// The other.
        child: u32,
    },
    /// A thread runs a new program, under the number of its process.
    Exec {
        /// The number now.
        tid: u32,
        /// The number before.
        old: u32,
    },
    /// A thread ends.
    Exit(u32),
    /// Nothing is left of a thread.
    Free(u32),
    /// The thread that ran.
    Current,
    /// The thread that ran, and with it a request.
    Request(u32, u64),
    /// Who began this request.
    Completion(u32, u64),
    /// Everybody.
    All,
}

/// How many requests may be pending.
const MOST_REQUESTS: usize = 1 << 16;

/// The threads of a program and of its descendants.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// By number; whether the thread has ended.
    threads: NumberMap<u32, bool>,
    /// Those of them that are on a CPU.
    running: NumberSet<u32>,
    /// Those that wait for one, and for which.
    waiting: NumberMap<u32, u32>,
    /// How many wait, by CPU.
    queues: NumberMap<u32, usize>,
    /// Pending requests of these threads: device and first sector.
    requests: NumberSet<(u32, u64)>,
}

impl Tree {
    /// Begins with some threads.
    pub fn new(threads: impl IntoIterator<Item = u32>) -> Self {
        Self { threads: threads.into_iter().map(|t| (t, false)).collect(), ..Self::default() }
    }

    /// Returns its threads.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// Adds a thread that runs already.
    pub fn add(&mut self, thread: u32) {
        self.threads.insert(thread, false);
    }

    /// Returns whether a thread belongs to it.
    pub fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// Takes the next event, which came while `current` ran. Returns whether it concerns the tree.
    pub fn take(&mut self, current: u32, what: Concerns) -> bool {
        match what {
            Concerns::Switch { cpu, from, to, ready } => self.switch(cpu, from, to, ready),
            Concerns::Wake { thread, cpu } => {
                if self.has(thread) && !self.running.contains(&thread) {
                    self.waits(thread, cpu);
                }
                self.has(thread) || self.has(current)
            }
            Concerns::Migrate { thread, cpu } => {
                if self.waiting.contains_key(&thread) {
                    self.waits(thread, cpu);
                }
                self.has(thread)
            }
            Concerns::Fork { parent, child } => {
                let follows = self.has(parent);
                if follows {
                    self.threads.insert(child, false);
                } else if self.threads.get(&child) == Some(&true) {
                    // The number of one that has ended, given to a stranger.
                    self.forget(child);
                }
                follows || self.has(child)
            }
            Concerns::Exec { tid, old } => {
                let concerns = self.has(old) || self.has(tid);
                if concerns {
                    self.threads.insert(tid, false);
                }
                concerns
            }
            Concerns::Exit(thread) => self.threads.get_mut(&thread).map(|ended| *ended = true).is_some(),
            Concerns::Free(thread) => {
                let ended = self.threads.get(&thread).copied();
                // One that lives has the number of an earlier one, of which this is said.
                if ended == Some(true) {
                    self.forget(thread);
                }
                ended.is_some()
            }
            Concerns::Current => self.has(current),
            Concerns::Request(device, sector) => {
                let concerns = self.has(current);
                if concerns && self.requests.len() < MOST_REQUESTS {
                    self.requests.insert((device, sector));
                }
                concerns
            }
            Concerns::Completion(device, sector) => self.requests.remove(&(device, sector)),
            Concerns::All => true,
        }
    }

    /// A CPU goes to another thread. That concerns the tree also while one of its threads waits for this CPU:
    /// who has it meanwhile is why that one waits.
    fn switch(&mut self, cpu: u32, from: u32, to: u32, ready: bool) -> bool {
        let awaited = self.queues.get(&cpu).is_some_and(|queue| *queue > 0);
        if self.has(to) {
            self.runs_or_sleeps(to);
            self.running.insert(to);
        }
        if self.has(from) {
            self.running.remove(&from);
            if ready {
                self.waits(from, cpu);
            }
        }
        awaited || self.has(from) || self.has(to)
    }

    /// A thread waits for a CPU.
    fn waits(&mut self, thread: u32, cpu: u32) {
        self.runs_or_sleeps(thread);
        self.waiting.insert(thread, cpu);
        *self.queues.entry(cpu).or_default() += 1;
    }

    /// A thread waits for no CPU.
    fn runs_or_sleeps(&mut self, thread: u32) {
        if let Some(cpu) = self.waiting.remove(&thread)
            && let Some(queue) = self.queues.get_mut(&cpu)
        {
            *queue -= 1;
        }
    }

    /// A thread is of the tree no more.
    fn forget(&mut self, thread: u32) {
        self.runs_or_sleeps(thread);
        self.running.remove(&thread);
        self.threads.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(cpu: u32, from: u32, to: u32) -> Concerns {
        Concerns::Switch { cpu, from, to, ready: false }
    }

    #[test]
    fn while_a_thread_waits_for_a_cpu_all_who_have_it_are_recorded() {
        let mut tree = Tree::new([10]);
        let wake = |cpu| Concerns::Wake { thread: 10, cpu };
        assert!(!tree.take(1, switch(3, 1, 2)));
        assert!(tree.take(2, wake(3)));
        assert!(tree.take(2, switch(3, 2, 1)) && tree.take(1, switch(3, 1, 2)));
        assert!(!tree.take(5, switch(4, 5, 6)));
        // It moves to another CPU, and what it waited for goes on alone.
        assert!(tree.take(6, Concerns::Migrate { thread: 10, cpu: 4 }));
        assert!(!tree.take(2, switch(3, 2, 1)));
        assert!(tree.take(6, switch(4, 6, 5)) && tree.take(5, switch(4, 5, 10)));
        // Woken although it runs: it does not wait.
        assert!(tree.take(1, wake(3)));
        assert!(!tree.take(1, switch(3, 1, 2)));
        // Preempted, it waits; blocked, it does not.
        assert!(tree.take(10, Concerns::Switch { cpu: 4, from: 10, to: 5, ready: true }));
        assert!(tree.take(5, switch(4, 5, 6)) && tree.take(6, switch(4, 6, 10)));
        assert!(tree.take(10, switch(4, 10, 5)));
        assert!(!tree.take(5, switch(4, 5, 6)));
        // What is forgotten waits no more.
        assert!(
            tree.take(2, wake(3)) && tree.take(10, Concerns::Exit(10)) && tree.take(0, Concerns::Free(10))
        );
        assert!(!tree.take(2, switch(3, 2, 1)));
    }

    #[test]
    fn descendants_belong_to_it_from_their_fork_to_their_end() {
        let mut tree = Tree::new([10]);
        assert!(!tree.take(1, Concerns::Fork { parent: 1, child: 2 }));
        assert!(tree.take(10, Concerns::Fork { parent: 10, child: 11 }));
        assert!(tree.take(11, Concerns::Fork { parent: 11, child: 12 }));
        assert!(tree.take(0, switch(0, 0, 12)));
        assert!(tree.take(12, switch(0, 12, 2)));
        assert!(!tree.take(2, switch(0, 2, 0)));
        assert!(tree.take(12, Concerns::Exit(12)));
        // It is switched away from after its end.
        assert!(tree.take(12, switch(0, 12, 0)));
        assert!(tree.take(0, Concerns::Free(12)));
        assert!(!tree.take(0, switch(0, 0, 12)));
    }

    #[test]
    fn a_number_that_comes_again_is_another_thread() {
        let mut tree = Tree::new([10, 11]);
        assert!(tree.take(11, Concerns::Exit(11)));
        assert!(!tree.take(1, Concerns::Fork { parent: 1, child: 11 }));
        assert!(!tree.take(0, switch(0, 0, 11)));
        // And of the tree's own, the late end of the earlier thread is not its end.
        assert!(tree.take(10, Concerns::Fork { parent: 10, child: 11 }));
        assert!(tree.take(0, Concerns::Free(11)));
        assert!(tree.take(0, switch(0, 0, 11)));
    }

    #[test]
    fn whoever_wakes_is_recorded_on_either_side() {
        let mut tree = Tree::new([10]);
        assert!(tree.take(1, Concerns::Wake { thread: 10, cpu: 1 }));
        assert!(tree.take(10, Concerns::Wake { thread: 1, cpu: 1 }));
        assert!(!tree.take(1, Concerns::Wake { thread: 2, cpu: 1 }));
        assert!(!tree.take(10, Concerns::Migrate { thread: 1, cpu: 1 }));
        assert!(tree.take(10, Concerns::Current));
        assert!(tree.take(10, Concerns::Exec { tid: 9, old: 10 }));
        assert!(tree.take(9, Concerns::Current));
    }

    #[test]
    fn completions_go_to_who_began_the_request() {
        let mut tree = Tree::new([10]);
        assert!(tree.take(10, Concerns::Request(8, 100)));
        assert!(!tree.take(1, Concerns::Request(8, 200)));
        assert!(tree.take(0, Concerns::Completion(8, 100)));
        assert!(!tree.take(0, Concerns::Completion(8, 100)));
        assert!(!tree.take(10, Concerns::Completion(8, 200)));
    }
}
