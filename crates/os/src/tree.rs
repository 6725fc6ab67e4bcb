//! Which events concern a program and its descendants.
//!
//! Events come in the order of time from all CPUs, so that a thread is known from its beginning on: the
//! event of the fork comes before all events of the child. Nothing is looked up meanwhile, so a process
//! that lives for a microsecond is followed as one that lives for an hour.

use std::collections::{HashMap, HashSet};

/// What of an event decides whether it concerns the tree. Numbers of threads are the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerns {
    /// The CPU goes from one thread to another.
    Switch(u32, u32),
    /// This thread, or the one that ran.
    Thread(u32),
    /// This thread alone.
    Only(u32),
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
    threads: HashMap<u32, bool>,
    /// Pending requests of these threads: device and first sector.
    requests: HashSet<(u32, u64)>,
}

impl Tree {
    /// Begins with some threads.
    pub fn new(threads: impl IntoIterator<Item = u32>) -> Self {
        Self { threads: threads.into_iter().map(|t| (t, false)).collect(), requests: HashSet::new() }
    }

    /// Returns whether a thread belongs to it.
    pub fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// Takes the next event, which came while `current` ran. Returns whether it concerns the tree.
    pub fn take(&mut self, current: u32, what: Concerns) -> bool {
        match what {
            Concerns::Switch(one, other) => self.has(one) || self.has(other),
            Concerns::Thread(thread) => self.has(thread) || self.has(current),
            Concerns::Only(thread) => self.has(thread),
            Concerns::Fork { parent, child } => {
                let follows = self.has(parent);
                if follows {
                    self.threads.insert(child, false);
                } else if self.threads.get(&child) == Some(&true) {
                    // The number of one that has ended, given to a stranger.
                    self.threads.remove(&child);
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
                    self.threads.remove(&thread);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_belong_to_it_from_their_fork_to_their_end() {
        let mut tree = Tree::new([10]);
        assert!(!tree.take(1, Concerns::Fork { parent: 1, child: 2 }));
        assert!(tree.take(10, Concerns::Fork { parent: 10, child: 11 }));
        assert!(tree.take(11, Concerns::Fork { parent: 11, child: 12 }));
        assert!(tree.take(0, Concerns::Switch(0, 12)));
        assert!(tree.take(12, Concerns::Switch(12, 2)));
        assert!(!tree.take(2, Concerns::Switch(2, 0)));
        assert!(tree.take(12, Concerns::Exit(12)));
        // It is switched away from after its end.
        assert!(tree.take(12, Concerns::Switch(12, 0)));
        assert!(tree.take(0, Concerns::Free(12)));
        assert!(!tree.take(0, Concerns::Switch(0, 12)));
    }

    #[test]
    fn a_number_that_comes_again_is_another_thread() {
        let mut tree = Tree::new([10, 11]);
        assert!(tree.take(11, Concerns::Exit(11)));
        assert!(!tree.take(1, Concerns::Fork { parent: 1, child: 11 }));
        assert!(!tree.take(0, Concerns::Switch(0, 11)));
        // And of the tree's own, the late end of the earlier thread is not its end.
        assert!(tree.take(10, Concerns::Fork { parent: 10, child: 11 }));
        assert!(tree.take(0, Concerns::Free(11)));
        assert!(tree.take(0, Concerns::Switch(0, 11)));
    }

    #[test]
    fn whoever_wakes_is_recorded_on_either_side() {
        let mut tree = Tree::new([10]);
        assert!(tree.take(1, Concerns::Thread(10)));
        assert!(tree.take(10, Concerns::Thread(1)));
        assert!(!tree.take(1, Concerns::Thread(2)));
        assert!(!tree.take(10, Concerns::Only(1)));
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
