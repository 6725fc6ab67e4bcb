//! The critical path: what the end had to wait for, and that before it.
//!
//! It cannot be walked backwards in one pass, so each point that something later
//! may have waited for knows the path to itself, as a chain of nodes:
//!
//! ```text
//! thread   ─host─ launch ─host─ sync ▐ wake-up ─host─ …
//!                    ╰ launch        │
//! queue                 ▐ kernel ────╯
//! ```
//!
//! Chains share their beginnings. What all of them share is summed up and
//! forgotten from time to time, so memory grows with what is still open.

use hetrace_trace::spans::CommandKind;
use std::collections::HashMap;

/// A node's place.
pub(super) type NodeId = u32;
/// No node: what all paths share, and has been summed up.
pub(super) const NONE: NodeId = u32::MAX;
/// No node: the beginning of the trace.
pub(super) const ROOT: NodeId = u32::MAX - 1;
/// No node: nobody will ask.
pub(super) const UNSET: NodeId = u32::MAX - 2;
/// No node: it was forgotten for the sake of memory.
const CUT: NodeId = u32::MAX - 3;
/// Nodes before they are cleared up.
const FULL: usize = 1 << 20;

/// What time on the path went to, and the number of what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    /// A thread outside of calls.
    Host(u32),
    /// A thread outside of calls that waited, and not for a thread of the program.
    Blocked(u32),
    /// In a call of this function.
    Call(u32),
    /// From the beginning of this function to the command's.
    Launch(u32),
    /// A kernel of this number.
    Kernel(u32),
    /// Another command, by its kind.
    Command(CommandKind),
    /// From the end of a command to the beginning of the next one.
    Latency,
    /// From the end of a command to that of this function, which waited.
    WakeUp(u32),
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: NodeId,
    step: Step,
    ns: u64,
}

/// The end of a thread's path, and what came since.
#[derive(Clone, Debug)]
pub(super) struct Strand {
    pub tip: NodeId,
    pending: Vec<(Step, u64)>,
}

/// All paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<Node>,
    settled: HashMap<Step, u64>,
    /// A path went on from what had been forgotten.
    cut: bool,
    full: usize,
}

impl Strand {
    pub fn new() -> Self {
        Self { tip: ROOT, pending: Vec::new() }
    }

    /// The thread did this.
    pub fn spend(&mut self, step: Step, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.pending.iter_mut().find(|(known, _)| *known == step) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.pending.push((step, ns)),
        }
    }

    /// It goes on from somewhere else.
    pub fn rebase(&mut self, tip: NodeId) {
        self.tip = tip;
        self.pending.clear();
    }
}

impl Paths {
    pub fn add(&mut self, parent: NodeId, step: Step, ns: u64) -> NodeId {
        let Ok(id) = NodeId::try_from(self.nodes.len()) else { return parent };
        if ns == 0 || id >= CUT {
            return parent;
        }
        self.cut |= parent == CUT;
        let parent = if parent == CUT { NONE } else { parent };
        self.nodes.push(Node { parent, step, ns });
        id
    }

    /// Where a thread is now.
    pub fn tip(&mut self, strand: &mut Strand) -> NodeId {
        for (step, ns) in std::mem::take(&mut strand.pending) {
            strand.tip = self.add(strand.tip, step, ns);
        }
        strand.tip
    }

    pub fn is_full(&self) -> bool {
        self.nodes.len() >= self.full.max(FULL)
    }

    /// Forgets nodes that nobody can come back to and sums up those that all
    /// share. `tips` goes over every place that knows a node.
    pub fn clear_up(&mut self, mut tips: impl FnMut(&mut dyn FnMut(&mut NodeId))) {
        let mut cutoff = 0;
        loop {
            let (mut through, mut all) = (vec![0_u64; self.nodes.len()], 0_u64);
            tips(&mut |tip| {
                if *tip >= CUT {
                    return;
                }
                // Who has not moved for long would keep all since.
                if *tip < cutoff {
                    *tip = CUT;
                    return;
                }
                if let Some(count) = through.get_mut(*tip as usize) {
                    *count += 1;
                    all += 1;
                }
            });
            // Parents come before their children.
            for at in (0..self.nodes.len()).rev() {
                let (count, parent) = (through[at], self.nodes[at].parent);
                if let Some(of_parent) = through.get_mut(parent as usize) {
                    *of_parent = of_parent.saturating_add(count);
                }
            }
            let live = through.iter().filter(|n| **n > 0 && **n < all).count();
            if live > self.full.max(FULL) / 2 && (cutoff as usize) < self.nodes.len() {
                cutoff = (cutoff as usize + self.nodes.len() / 8 + 1) as NodeId;
                continue;
            }
            self.compact(&through, all, &mut tips);
            return;
        }
    }

    fn compact(&mut self, through: &[u64], all: u64, tips: &mut impl FnMut(&mut dyn FnMut(&mut NodeId))) {
        let old = std::mem::take(&mut self.nodes);
        let mut places = vec![NONE; old.len()];
        for (at, node) in old.iter().enumerate() {
            // A tip on a shared node comes to stand at the beginning.
            if all > 0 && through[at] == all {
                if node.parent == ROOT {
                    self.settled.clear();
                }
                let sum = self.settled.entry(node.step).or_default();
                *sum = sum.saturating_add(node.ns);
            } else if through[at] > 0 {
                let parent = places.get(node.parent as usize).copied().unwrap_or(node.parent);
                places[at] = self.nodes.len() as NodeId;
                self.nodes.push(Node { parent, ..*node });
            }
        }
        tips(&mut |tip| *tip = places.get(*tip as usize).copied().unwrap_or(*tip));
    }

    /// Whether part of the path to a node may be missing.
    pub fn is_cut(&self, at: NodeId) -> bool {
        self.cut || at == CUT
    }

    /// What the path to a node consists of, in nanoseconds.
    pub fn sums(&self, mut at: NodeId) -> HashMap<Step, u64> {
        let mut sums: HashMap<Step, u64> = HashMap::new();
        let mut add = |step, ns| {
            let sum = sums.entry(step).or_default();
            *sum = u64::saturating_add(*sum, ns);
        };
        while let Some(node) = self.nodes.get(at as usize) {
            add(node.step, node.ns);
            at = node.parent;
        }
        if at == NONE || at == CUT {
            self.settled.iter().for_each(|(step, ns)| add(*step, *ns));
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_up_changes_no_path() {
        let mut paths = Paths::default();
        let shared = paths.add(ROOT, Step::Host(0), 10);
        let shared = paths.add(shared, Step::Call(1), 5);
        let dead = paths.add(shared, Step::Latency, 7);
        let mut a = paths.add(shared, Step::Kernel(1), 3);
        let mut b = paths.add(shared, Step::Host(0), 4);
        assert!(dead != NONE);
        let (before_a, before_b) = (paths.sums(a), paths.sums(b));
        paths.clear_up(|visit| {
            visit(&mut a);
            visit(&mut b);
        });
        assert_eq!(paths.nodes.len(), 2);
        assert_eq!((paths.sums(a), paths.sums(b)), (before_a, before_b));
        assert!(!paths.is_cut(a));
        let next = paths.add(a, Step::Latency, 1);
        assert_eq!(paths.sums(next)[&Step::Latency], 1);
    }

    #[test]
    fn who_stands_still_for_long_is_left_behind() {
        let mut paths = Paths { full: 8, ..Paths::default() };
        let mut old = paths.add(ROOT, Step::Host(1), 1);
        let mut tip = ROOT;
        for _ in 0..3 * FULL / 4 {
            tip = paths.add(tip, Step::Host(0), 1);
        }
        paths.clear_up(|visit| {
            visit(&mut old);
            visit(&mut tip);
        });
        assert!(old == CUT && !paths.is_cut(tip) && paths.nodes.len() <= FULL / 2);
        paths.add(old, Step::Latency, 1);
        assert!(paths.is_cut(tip));
        assert_eq!(paths.sums(tip)[&Step::Host(0)], 3 * FULL as u64 / 4);
    }
}
