//! The control flow of a kernel: basic blocks, who follows whom, loops.

use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};

/// The number of a basic block. The entry is 0.
pub type Block = usize;

/// Where blocks lead that end a lane.
pub const EXIT: Block = usize::MAX;

/// A control flow graph. Block 0 is the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// By block, where it leads, [`EXIT`] for the end of a lane: none for a block that never ends, one for one without a
    /// choice. The first of two is the taken one of a branch.
    successors: Vec<Vec<Block>>,
}

/// An edge, by where it leaves and which of the successors it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The block that it leaves.
    pub from: Block,
    /// Which of its successors it leads to.
    pub case: usize,
}

/// A graph that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadGraph {
    /// There is no block.
    Empty,
    /// A block leads to one that there is not.
    Unknown {
        /// The block.
        from: Block,
        /// Where it leads.
        to: Block,
    },
}

impl std::fmt::Display for BadGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadGraph::Empty => write!(f, "a graph without a block"),
            BadGraph::Unknown { from, to } => {
                write!(f, "block {from} leads to block {to}, which there is not")
            }
        }
    }
}

impl std::error::Error for BadGraph {}

impl Graph {
    /// Makes a graph of where each block leads.
    ///
    /// # Errors
    /// When there is no block, or one leads to one that there is not.
    pub fn new(successors: Vec<Vec<Block>>) -> Result<Self, BadGraph> {
        if successors.is_empty() {
            return Err(BadGraph::Empty);
        }
        let graph = Self { successors };
        for edge in graph.edges() {
            let to = graph.target(edge);
            if to != EXIT && to >= graph.len() {
                return Err(BadGraph::Unknown { from: edge.from, to });
            }
        }
        Ok(graph)
    }

    /// Returns how many blocks there are.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one block")]
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    /// Returns where a block leads.
    pub fn successors(&self, block: Block) -> &[Block] {
        self.successors.get(block).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a block ends with a choice.
    pub fn branches(&self, block: Block) -> bool {
        self.successors(block).len() > 1
    }

    /// Returns all edges, by block and case.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let of = |(from, to): (Block, &Vec<Block>)| (0..to.len()).map(move |case| Edge { from, case });
        self.successors.iter().enumerate().flat_map(of)
    }

    /// Returns where an edge leads.
    pub fn target(&self, edge: Edge) -> Block {
        self.successors(edge.from)[edge.case]
    }

    /// Returns by block whether a lane can come there.
    pub fn reachable(&self) -> Vec<bool> {
        let mut reached = vec![false; self.len()];
        let mut open = vec![0];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut reached[block], true) {
                open.extend(self.successors(block).iter().copied().filter(|to| *to != EXIT));
            }
        }
        reached
    }

    /// Finds the loops.
    pub fn loops(&self) -> Loops {
        let reachable = self.reachable();
        let mut graph = DiGraph::<(), ()>::with_capacity(self.len(), 2 * self.len());
        let nodes: Vec<NodeIndex> = (0..self.len()).map(|_| graph.add_node(())).collect();
        let inside = |edge: &Edge| reachable[edge.from] && self.target(*edge) != EXIT;
        let edges: Vec<Edge> = self.edges().filter(inside).collect();
        let mut predecessors = vec![Vec::new(); self.len()];
        for edge in &edges {
            graph.add_edge(nodes[edge.from], nodes[self.target(*edge)], ());
            predecessors[self.target(*edge)].push(edge.from);
        }
        let dominators = dominators::simple_fast(&graph, nodes[0]);
        let dominates = |header: Block, block: Block| {
            dominators.dominators(nodes[block]).is_some_and(|mut all| all.any(|node| node == nodes[header]))
        };
        let back: Vec<Edge> = edges.into_iter().filter(|e| dominates(self.target(*e), e.from)).collect();
        let mut headers: Vec<Block> = back.iter().map(|edge| self.target(*edge)).collect();
        headers.sort_unstable();
        headers.dedup();
        let loops = headers.into_iter().map(|header| {
            let latches = back.iter().filter(|e| self.target(**e) == header).map(|e| e.from);
            Loop { header, body: body(header, latches.collect(), &predecessors) }
        });
        Loops { loops: loops.collect(), back }
    }
}

/// Returns the blocks of the natural loop of a header: those that reach its latches without passing it.
fn body(header: Block, latches: Vec<Block>, predecessors: &[Vec<Block>]) -> Vec<Block> {
    let mut inside = vec![false; predecessors.len()];
    inside[header] = true;
    let mut open = latches;
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut inside[block], true) {
            open.extend(&predecessors[block]);
        }
    }
    (0..inside.len()).filter(|block| inside[*block]).collect()
}

/// A natural loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The block through which lanes come in.
    pub header: Block,
    /// Its blocks, sorted, with the header.
    pub body: Vec<Block>,
}

/// The natural loops of a graph. What goes around without one header (irreducible) is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loops {
    /// By header.
    pub loops: Vec<Loop>,
    /// The edges that lead back to a header.
    pub back: Vec<Edge>,
}

impl Loops {
    /// Returns the smallest loop that a block is in.
    pub fn innermost(&self, block: Block) -> Option<&Loop> {
        let around = self.loops.iter().filter(|one| one.body.binary_search(&block).is_ok());
        around.min_by_key(|one| one.body.len())
    }

    /// Returns in how many loops a block is.
    pub fn depth(&self, block: Block) -> usize {
        self.loops.iter().filter(|l| l.body.binary_search(&block).is_ok()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_have_a_header_and_blocks() {
        // 0 ► 1 ► 2 ► 1, and 1 ► 3 ► 3, 3 ► exit; 4 is never reached.
        let graph = Graph::new(vec![vec![1], vec![2, 3], vec![1], vec![3, EXIT], vec![1]]).unwrap();
        assert_eq!(graph.reachable(), [true, true, true, true, false]);
        let loops = graph.loops();
        let expected = [Loop { header: 1, body: vec![1, 2] }, Loop { header: 3, body: vec![3] }];
        assert_eq!(loops.loops, expected);
        assert_eq!(loops.back, [Edge { from: 2, case: 0 }, Edge { from: 3, case: 0 }]);
        assert_eq!([0, 1, 2, 3].map(|block| loops.depth(block)), [0, 1, 1, 1]);
    }

    #[test]
    fn loops_lie_in_loops() {
        // Two headers, one around the other.
        let graph = Graph::new(vec![vec![1], vec![2], vec![2, 3], vec![1, EXIT]]).unwrap();
        let loops = graph.loops();
        assert_eq!([0, 1, 2, 3].map(|block| loops.depth(block)), [0, 1, 2, 1]);
        // Entered at two blocks: no loop with a header.
        let graph = Graph::new(vec![vec![1, 2], vec![2, EXIT], vec![1]]).unwrap();
        assert_eq!(graph.loops(), Loops { loops: vec![], back: vec![] });
    }

    #[test]
    fn graphs_that_make_no_sense_are_refused() {
        assert_eq!(Graph::new(vec![]), Err(BadGraph::Empty));
        let error = Graph::new(vec![vec![EXIT], vec![2]]).unwrap_err();
        assert_eq!(error.to_string(), "block 1 leads to block 2, which there is not");
    }
}
