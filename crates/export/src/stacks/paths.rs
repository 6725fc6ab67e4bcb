//! A tree of call paths.

use std::collections::HashMap;

/// A place in the tree; 0 is its root.
pub(super) type Node = u32;

/// Paths that are remembered; what lies beyond is counted at the call around it.
const KEPT: usize = 1 << 20;
/// The depth of nested calls up to which paths are distinguished.
const DEEPEST: u32 = 256;

#[derive(Clone, Debug, Default)]
struct Place {
    parent: Node,
    frame: u32,
    depth: u32,
    weight: u64,
    /// What of the weight does not count.
    off: u64,
}

impl Place {
    fn weight(&self) -> u64 {
        self.weight.saturating_sub(self.off)
    }
}

/// All paths with their weights.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    places: Vec<Place>,
    children: HashMap<(Node, u32), Node>,
    frames: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            places: vec![Place::default()],
            children: HashMap::new(),
            frames: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl Paths {
    /// The number of a frame's name.
    pub fn frame(&mut self, name: &str) -> u32 {
        // What separates frames and lines may not be in a name.
        let clean = |c: char| {
            if c == ';' {
                ','
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(name.chars().map(clean).collect());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The path with one more frame.
    pub fn below(&mut self, parent: Node, frame: u32) -> Node {
        if let Some(node) = self.children.get(&(parent, frame)) {
            return *node;
        }
        let depth = self.places.get(parent as usize).map_or(0, |p| p.depth) + 1;
        if self.places.len() >= KEPT || depth > DEEPEST {
            return parent;
        }
        let node = u32::try_from(self.places.len()).unwrap_or(0);
        self.places.push(Place { parent, frame, depth, weight: 0, off: 0 });
        self.children.insert((parent, frame), node);
        node
    }

    /// A path has so much more.
    pub fn add(&mut self, node: Node, weight: u64) {
        if let Some(place) = self.places.get_mut(node as usize) {
            place.weight = place.weight.saturating_add(weight);
        }
    }

    /// So much of what a path has does not count; where it is more than that, nothing is left.
    pub fn take_off(&mut self, node: Node, weight: u64) {
        if let Some(place) = self.places.get_mut(node as usize) {
            place.off = place.off.saturating_add(weight);
        }
    }

    /// What a path has by itself.
    pub fn weight(&self, node: Node) -> u64 {
        self.places.get(node as usize).map_or(0, Place::weight)
    }

    /// How many paths have a weight, and their sum.
    pub fn sum(&self) -> (u64, u128) {
        let with = self.places.iter().map(Place::weight).filter(|weight| *weight > 0);
        with.fold((0, 0), |(count, sum), weight| (count + 1, sum + u128::from(weight)))
    }

    /// The last frame of a path.
    pub fn name(&self, node: Node) -> &str {
        let frame = self.places.get(node as usize).map(|p| p.frame as usize);
        frame.and_then(|frame| self.frames.get(frame)).map_or("", String::as_str)
    }

    /// How many frames a path has.
    pub fn depth(&self, node: Node) -> u32 {
        self.places.get(node as usize).map_or(0, |p| p.depth)
    }

    /// By node, what it and all below it have.
    pub fn totals(&self) -> Vec<u128> {
        let mut totals: Vec<u128> = self.places.iter().map(|p| p.weight().into()).collect();
        // Parents come before their children.
        for (at, place) in self.places.iter().enumerate().skip(1).rev() {
            totals[place.parent as usize] += totals[at];
        }
        totals
    }

    /// All paths but the root: each after the one around it, siblings by name.
    pub fn in_order(&self) -> Vec<Node> {
        let mut children: Vec<Vec<Node>> = vec![Vec::new(); self.places.len()];
        for (at, place) in self.places.iter().enumerate().skip(1) {
            children[place.parent as usize].push(at as Node);
        }
        let mut order = Vec::with_capacity(self.places.len());
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            if node != 0 {
                order.push(node);
            }
            let below = &mut children[node as usize];
            below.sort_by(|a, b| self.name(*b).cmp(self.name(*a)));
            open.append(below);
        }
        order
    }

    /// Appends a path, its frames separated by semicolons.
    pub fn write_path(&self, node: Node, out: &mut String) {
        let mut frames = Vec::new();
        let mut next = node;
        while let Some(place) = self.places.get(next as usize).filter(|_| next != 0) {
            frames.push(self.name(next));
            next = place.parent;
        }
        for (at, frame) in frames.iter().rev().enumerate() {
            if at > 0 {
                out.push(';');
            }
            out.push_str(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_by_all_their_frames() {
        let mut paths = Paths::default();
        let [a, b] = ["a", "b;\n"].map(|name| paths.frame(name));
        let one = paths.below(0, a);
        let two = paths.below(one, b);
        let three = paths.below(0, b);
        assert_eq!(paths.below(one, b), two);
        for (node, weight) in [(two, 5), (three, 2), (two, 1)] {
            paths.add(node, weight);
        }
        let mut text = String::new();
        paths.write_path(two, &mut text);
        assert_eq!(text, "a;b, ");
        assert_eq!(paths.sum(), (2, 8));
        assert_eq!(paths.totals(), [8, 6, 6, 2]);
        assert_eq!(paths.in_order(), [one, two, three]);
    }

    #[test]
    fn what_is_too_deep_is_counted_around() {
        let mut paths = Paths::default();
        let frame = paths.frame("f");
        let deepest = (0..DEEPEST + 10).fold(0, |node, _| paths.below(node, frame));
        assert_eq!(paths.depth(deepest), DEEPEST);
    }
}
