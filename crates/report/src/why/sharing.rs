//! A device that several processes share: how long commands of one were ready while only another's ran.

use std::collections::BTreeMap;

use super::Window;
use super::coverage::Busy;
use hetrace_trace::hash::QuickMap;

/// Commands of one process that were ready while only commands of another ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delayed {
    pub commands: u64,
    pub ns: u64,
    pub longest: u64,
    /// When the longest began.
    pub longest_at: u64,
}

/// One device.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    /// When commands of each process ran.
    processes: QuickMap<i64, Busy>,
    /// By the process that waited, and the one that had the device.
    pub delayed: BTreeMap<(i64, i64), Delayed>,
}

impl Sharing {
    /// A command of a process ran, which was ready since `ready`: it was enqueued, and those before it on its queue
    /// had ended. Commands come in the order of their starts.
    pub fn command(&mut self, pid: i64, ready: Option<u64>, (start, end): (u64, u64), window: Window) {
        let is_shared = self.processes.keys().any(|other| *other != pid);
        if let Some(ready) = ready.filter(|ready| *ready < start && is_shared) {
            let own: Vec<(u64, u64)> =
                self.processes.get(&pid).map(|busy| busy.pieces(ready, start).collect()).unwrap_or_default();
            for (other, busy) in self.processes.iter().filter(|(other, _)| **other != pid) {
                let mut all = Delayed::default();
                for (from, to) in busy.pieces(ready, start) {
                    for (from, to) in without(from, to, &own) {
                        let (from, to) = window.clip(from, to);
                        all.ns += to - from;
                        if to - from > all.longest {
                            (all.longest, all.longest_at) = (to - from, from);
                        }
                    }
                }
                if all.ns > 0 {
                    let sum = self.delayed.entry((pid, *other)).or_default();
                    sum.commands += 1;
                    sum.ns = sum.ns.saturating_add(all.ns);
                    if all.longest > sum.longest {
                        (sum.longest, sum.longest_at) = (all.longest, all.longest_at);
                    }
                }
            }
        }
        self.processes.entry(pid).or_default().add(start, end);
    }
}

/// The parts of a time that are in none of others, which are in order.
fn without(mut from: u64, to: u64, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    for &(start, end) in others {
        if start >= to {
            break;
        }
        if start > from {
            parts.push((from, start));
        }
        from = from.max(end);
    }
    if from < to {
        parts.push((from, to));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Window = Window { from: 0, to: u64::MAX };

    #[test]
    fn a_ready_command_waits_for_another_process() {
        let mut sharing = Sharing::default();
        sharing.command(1, Some(0), (0, 100), ALL);
        // Ready at 50: another's has the device until 100.
        sharing.command(2, Some(50), (100, 200), ALL);
        // The first one is ready at 120, and runs at 210; nothing ran from 200 to 210.
        sharing.command(1, Some(120), (210, 300), ALL);
        // Its own command ran meanwhile: that is no waiting for others.
        sharing.command(1, Some(150), (300, 310), ALL);
        // Nothing is known of when this one was enqueued.
        sharing.command(2, None, (320, 330), ALL);
        let delayed = |commands, ns, longest_at| Delayed { commands, ns, longest: ns, longest_at };
        let first = Delayed { commands: 2, ns: 130, longest: 80, longest_at: 120 };
        let expected = [((1, 2), first), ((2, 1), delayed(1, 50, 50))];
        assert_eq!(sharing.delayed.clone().into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn times_are_cut() {
        assert_eq!(without(0, 10, &[(2, 3), (5, 6), (9, 20)]), [(0, 2), (3, 5), (6, 9)]);
        assert_eq!(without(0, 10, &[(0, 10)]), []);
        assert_eq!(without(5, 10, &[(0, 6), (20, 30)]), [(6, 10)]);
    }
}
