//! Which calls a call was made in, from the outermost one, over all APIs.
//!
//! A tree whose nodes are functions. It is bounded: what lies deeper than
//! [`DEPTH`] calls counts as one node of the call at that depth, and what comes
//! when there are [`NODES`] paths already counts as one node of the whole.

use std::collections::HashMap;

use super::cell::Cell;

/// Calls in calls that are distinguished.
pub(super) const DEPTH: u16 = 64;
/// Paths that are distinguished of one run.
const NODES: usize = 1 << 15;
/// No parent: an outermost call.
pub(super) const ROOT: u32 = u32::MAX;
/// In place of a function: all that is deeper, or that came too late.
pub(super) const REST: u32 = u32::MAX;

/// A path: a function, called by that of another path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub parent: u32,
    /// Its number in [`super::Profile`], or [`REST`].
    pub function: u32,
    depth: u16,
    /// The child that was asked for last: most are asked for again.
    last: (u32, u32),
}

/// The paths of a run, and the calls of each. Parents stand before their children.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<(Node, Cell)>,
    children: HashMap<(u32, u32), u32>,
    /// By function: the path of its outermost calls, which are most of all; [`ROOT`] if
    /// there is none.
    outermost: Vec<u32>,
    /// Calls that are in nodes of [`REST`].
    pub cut: u64,
}

impl Paths {
    /// The path of a function that is called by that of `parent`.
    #[inline]
    pub fn child(&mut self, parent: u32, function: u32) -> u32 {
        match self.nodes.get(parent as usize) {
            Some((node, _)) if node.last.0 == function && node.last.1 != ROOT => node.last.1,
            Some((node, _)) if node.function == REST => parent,
            Some(_) => self.find(parent, function),
            None => match self.outermost.get(function as usize) {
                Some(path) if *path != ROOT => *path,
                _ => self.find(parent, function),
            },
        }
    }

    fn find(&mut self, parent: u32, function: u32) -> u32 {
        let depth = self.nodes.get(parent as usize).map_or(0, |(node, _)| node.depth + 1);
        let function = if depth >= DEPTH { REST } else { function };
        let known = self.children.get(&(parent, function)).copied();
        let child = known.unwrap_or_else(|| match self.nodes.len() < NODES {
            true => self.make(parent, function, depth),
            false => match self.children.get(&(ROOT, REST)) {
                Some(rest) => *rest,
                None => self.make(ROOT, REST, 0),
            },
        });
        if function == REST {
            return child;
        }
        if let Some((node, _)) = self.nodes.get_mut(parent as usize) {
            node.last = (function, child);
        } else {
            let place = function as usize;
            if self.outermost.len() <= place {
                self.outermost.resize(place + 1, ROOT);
            }
            self.outermost[place] = child;
        }
        child
    }

    fn make(&mut self, parent: u32, function: u32, depth: u16) -> u32 {
        let id = u32::try_from(self.nodes.len()).unwrap_or(0);
        self.nodes.push((Node { parent, function, depth, last: (0, ROOT) }, Cell::default()));
        self.children.insert((parent, function), id);
        id
    }

    /// Counts calls of a path.
    #[inline]
    pub fn add(&mut self, path: u32, calls: &Cell) {
        if let Some((node, cell)) = self.nodes.get_mut(path as usize) {
            cell.add(calls);
            if node.function == REST {
                self.cut = self.cut.saturating_add(calls.calls);
            }
        }
    }

    /// All paths with their calls; parents stand before their children.
    pub fn all(&self) -> impl Iterator<Item = &(Node, Cell)> {
        self.nodes.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Paths {
        /// The functions of a path, the outermost first.
        fn functions(&self, path: u32) -> Vec<u32> {
            let (mut functions, mut at) = (Vec::new(), path);
            while let Some((node, _)) = self.nodes.get(at as usize) {
                functions.push(node.function);
                at = node.parent;
            }
            functions.reverse();
            functions
        }
    }

    fn one() -> Cell {
        Cell { calls: 1, total: 2, own: 1, ..Cell::default() }
    }

    #[test]
    fn paths_are_distinguished_by_all_that_is_around() {
        let mut paths = Paths::default();
        let outer = paths.child(ROOT, 1);
        let inner = paths.child(outer, 2);
        assert_ne!(inner, paths.child(ROOT, 2));
        assert_eq!(outer, paths.child(ROOT, 1));
        assert_eq!(inner, paths.child(outer, 2));
        assert_eq!(paths.functions(inner), [1, 2]);
    }

    #[test]
    fn deep_recursion_ends_in_one_row() {
        let mut paths = Paths::default();
        let mut at = ROOT;
        for _ in 0..1_000_000 {
            at = paths.child(at, 7);
            paths.add(at, &one());
        }
        assert_eq!(paths.all().count(), usize::from(DEPTH) + 1);
        assert_eq!(paths.cut, 1_000_000 - u64::from(DEPTH));
        assert_eq!(paths.functions(at).last(), Some(&REST));
    }

    #[test]
    fn too_many_paths_share_one_row() {
        let mut paths = Paths::default();
        for function in 0..100_000 {
            let path = paths.child(ROOT, function);
            let inner = paths.child(path, function + 1);
            paths.add(path, &one());
            paths.add(inner, &one());
        }
        assert_eq!(paths.all().count(), NODES + 1);
        let calls: u64 = paths.all().map(|(_, cell)| cell.calls).sum();
        assert_eq!(calls, 200_000);
        assert_eq!(paths.cut, 200_000 - NODES as u64);
    }
}
