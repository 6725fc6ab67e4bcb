//! How often kernels were launched in which shape.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hasher;

use hetrace_trace::hash::Mix;
use hetrace_trace::spans::{Command, Sizes};

/// Shapes that are distinguished of one function on one queue. Of more, it is always the same ones that are
/// kept, in whichever order they come, and their counts are exact: those with the least hashes.
const MOST: usize = 1024;

/// Shapes that are looked at before all others.
const RECENT: usize = 16;

/// How a kernel was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    /// Work-items.
    pub global: Sizes,
    /// Work-items of a group.
    pub local: Sizes,
    /// Groups of a cluster.
    pub cluster: Sizes,
    /// Bytes of local memory that the launch asked for.
    pub shared: u64,
}

/// Launches of one function on one queue, by shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    /// What was launched last, the last first; what they count is not in `all` yet.
    recent: Vec<(Shape, u64)>,
    /// By hash and shape.
    all: BTreeMap<(u64, Shape), u64>,
}

impl Shapes {
    /// Counts launches of one shape.
    pub fn add(&mut self, shape: &Shape, calls: u64) {
        match self.recent.iter().position(|(known, _)| known == shape) {
            Some(at) => {
                self.recent[at].1 = self.recent[at].1.saturating_add(calls);
                self.recent.swap(0, at);
            }
            None => {
                if self.recent.len() >= RECENT
                    && let Some((oldest, calls)) = self.recent.pop()
                {
                    self.count(oldest, calls);
                }
                self.recent.push((*shape, calls));
            }
        }
    }

    /// Adds what another part of the trace has.
    pub fn merge(&mut self, other: &Self) {
        let all = other.all.iter().map(|((_, shape), calls)| (*shape, *calls));
        all.chain(other.recent.iter().copied()).for_each(|(shape, calls)| self.count(shape, calls));
    }

    fn count(&mut self, shape: Shape, calls: u64) {
        let known = self.all.entry((shape.hash(), shape)).or_default();
        *known = known.saturating_add(calls);
        if self.all.len() > MOST {
            self.all.pop_last();
        }
    }

    /// Returns so many shapes with their launches, the most frequent first, and how many there are.
    pub fn most_frequent(&self, number: usize) -> (Vec<(Shape, u64)>, u64) {
        let mut whole = Self { recent: Vec::new(), all: self.all.clone() };
        self.recent.iter().for_each(|(shape, calls)| whole.count(*shape, *calls));
        let mut all: Vec<(Shape, u64)> = whole.all.into_iter().map(|((_, s), calls)| (s, calls)).collect();
        let different = all.len() as u64;
        all.sort_unstable_by_key(|(shape, calls)| Reverse((*calls, *shape)));
        all.truncate(number);
        (all, different)
    }
}

impl Shape {
    /// That of a launch.
    pub fn of(command: &Command<'_>) -> Self {
        let geometry = &command.geometry;
        let (global, local, cluster) = (geometry.global, geometry.local, geometry.cluster);
        Self { global, local, cluster, shared: command.shared }
    }

    fn hash(&self) -> u64 {
        let mut hash = Mix::default();
        for sizes in [self.global, self.local, self.cluster] {
            hash.write_usize(sizes.as_slice().len());
            sizes.as_slice().iter().for_each(|size| hash.write_u64(*size));
        }
        hash.write_u64(self.shared);
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(size: u64) -> Shape {
        let none = Sizes::default();
        Shape { global: Sizes::new(&[size]), local: none, cluster: none, shared: 0 }
    }

    #[test]
    fn the_order_does_not_count_however_many_there_are() {
        let number = MOST as u64 * 3;
        let (mut forward, mut backward, mut halves) =
            (Shapes::default(), Shapes::default(), Shapes::default());
        let mut later = Shapes::default();
        for round in 0..2 * number {
            let (up, down) = (1 + round % number, number - round % number);
            forward.add(&shape(up), up);
            backward.add(&shape(down), down);
            if round < number { &mut halves } else { &mut later }.add(&shape(up), up);
        }
        halves.merge(&later);
        let most = forward.most_frequent(8);
        assert_eq!(most.1, MOST as u64);
        assert!(most.0.iter().all(|(shape, calls)| *calls == 2 * shape.global.product()));
        assert_eq!(backward.most_frequent(8), most);
        assert_eq!(halves.most_frequent(8), most);
    }
}
