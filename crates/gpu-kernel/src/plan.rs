//! Where to record, so that each lane's path follows from the records.
//!
//! - [`Mode::Paths`]: each lane keeps which ways it went, a bit for a choice between two, and says it when its word is full
//!   and at its end; lanes whose words are the same say it as one. Paths are exact; times and who was together are so where
//!   something is said.
//! - [`Mode::Branches`]: at the end of each block with a choice, who was there and who took which way. One record has both
//!   ways, so no edge has to be split, and after a loss the next record shows where its lanes are.
//! - [`Mode::Edges`]: on the edges that are not in a spanning tree of the graph. From one of them to the next, or to the
//!   end, there is one way through the tree, so they determine the whole path (Ball and Larus, "Optimally Profiling and
//!   Tracing Programs", TOPLAS 16(4), 1994). The tree is that of the greatest weight, so that what is recorded is rare;
//!   weights are by how deep in loops an edge lies, or counted in an earlier run.
//! - [`Mode::Blocks`]: at the beginning of each block: what the others are compared with.

use petgraph::unionfind::UnionFind;

use crate::graph::{Block, EXIT, Edge, Graph};

/// Which sites there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Blocks with a choice: each lane keeps which way it went.
    #[default]
    Paths,
    /// Blocks with a choice: each is recorded.
    Branches,
    /// Edges that are not in the tree.
    Edges,
    /// All blocks.
    Blocks,
}

impl Mode {
    /// Returns its name in options and descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Paths => "paths",
            Mode::Branches => "branches",
            Mode::Edges => "edges",
            Mode::Blocks => "blocks",
        }
    }

    /// Returns the mode of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Mode::Paths, Mode::Branches, Mode::Edges, Mode::Blocks].into_iter().find(|mode| mode.name() == name)
    }
}

/// Where one kind of record is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// At the end of a block with a choice.
    Branch(Block),
    /// On an edge.
    Edge(Edge),
    /// At the beginning of a block.
    Block(Block),
}

/// Where records are made in a graph. Blocks that no lane can come to have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How they were chosen.
    pub mode: Mode,
    /// By number.
    pub sites: Vec<Site>,
    /// By number, whether passes that are as the one before are counted, and not recorded: branches in loops.
    pub summed: Vec<bool>,
}

/// How much more often a block is expected to run for each loop that it is in.
const PER_LOOP: u64 = 10;
/// Loops beyond this depth count no more.
const DEEPEST: u32 = 12;

impl Plan {
    /// Chooses sites; edges by how deep in loops they lie.
    pub fn new(graph: &Graph, mode: Mode) -> Self {
        Self::weighted(graph, mode, by_depth(graph))
    }

    /// Chooses sites; edges by how often they are expected to be taken.
    pub fn weighted<W: Ord>(graph: &Graph, mode: Mode, weight: impl Fn(Edge) -> W) -> Self {
        let reachable = graph.reachable();
        let blocks = (0..graph.len()).filter(|block| reachable[*block]);
        let sites: Vec<Site> = match mode {
            Mode::Blocks => blocks.map(Site::Block).collect(),
            Mode::Paths | Mode::Branches => {
                blocks.filter(|block| graph.branches(*block)).map(Site::Branch).collect()
            }
            Mode::Edges => outside_tree(graph, &reachable, weight).into_iter().map(Site::Edge).collect(),
        };
        let summed = vec![false; sites.len()];
        Self { mode, sites, summed }
    }

    /// Chooses branches, and adds up the passes of those in loops that have two ways.
    pub fn summed(graph: &Graph) -> Self {
        let (mut plan, loops) = (Self::new(graph, Mode::Branches), graph.loops());
        let is_summed = |site: &Site| match site {
            Site::Branch(block) => graph.successors(*block).len() == 2 && loops.depth(*block) > 0,
            Site::Edge(_) | Site::Block(_) => false,
        };
        plan.summed = plan.sites.iter().map(is_summed).collect();
        plan
    }

    /// Returns whether passes of any site are added up.
    pub fn adds_up(&self) -> bool {
        self.summed.contains(&true)
    }

    /// Returns the number of a site.
    pub fn number(&self, site: Site) -> Option<u32> {
        // They are sorted as they were found.
        self.sites.binary_search(&site).ok().and_then(|number| u32::try_from(number).ok())
    }
}

/// Returns how often an edge is expected to be taken, by how deep in loops it lies.
pub(crate) fn by_depth(graph: &Graph) -> impl Fn(Edge) -> u64 {
    let loops = graph.loops();
    move |edge: Edge| {
        let to = graph.target(edge);
        let depth = loops.depth(edge.from).min(if to == EXIT { 0 } else { loops.depth(to) });
        PER_LOOP.pow(u32::try_from(depth).unwrap_or(DEEPEST).min(DEEPEST))
    }
}

/// Returns the edges that are not in the spanning tree of the greatest weight, sorted.
fn outside_tree<W: Ord>(graph: &Graph, reachable: &[bool], weight: impl Fn(Edge) -> W) -> Vec<Edge> {
    let mut edges: Vec<Edge> = graph.edges().filter(|edge| reachable[edge.from]).collect();
    // The heaviest first; those of one weight by place, so that a graph has one plan.
    edges.sort_by_key(|edge| (std::cmp::Reverse(weight(*edge)), *edge));
    // All ends are one node. It is known that a lane begins, and that it ended: neither has to be recorded.
    let node = |block: Block| if block == EXIT { graph.len() } else { block };
    let mut together = UnionFind::<usize>::new(graph.len() + 1);
    let mut outside: Vec<Edge> =
        edges.into_iter().filter(|edge| !together.union(edge.from, node(graph.target(*edge)))).collect();
    outside.sort_unstable();
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diamond_in_a_loop() -> Graph {
        // 0 ► 1; 1 ► 2 or 3 ► 4; 4 ► 1 or exit.
        Graph::new(vec![vec![1], vec![2, 3], vec![4], vec![4], vec![1, EXIT], vec![0]]).unwrap()
    }

    #[test]
    fn sites_are_of_blocks_that_are_reached() {
        let graph = diamond_in_a_loop();
        assert_eq!(Plan::new(&graph, Mode::Blocks).sites, [0, 1, 2, 3, 4].map(Site::Block));
        let plan = Plan::new(&graph, Mode::Branches);
        assert_eq!(plan.sites, [1, 4].map(Site::Branch));
        assert_eq!((plan.number(Site::Branch(4)), plan.number(Site::Branch(2))), (Some(1), None));
    }

    #[test]
    fn edges_are_as_few_as_can_be_and_the_lightest() {
        let graph = diamond_in_a_loop();
        // As many as there are choices: edges less those of a tree of five blocks and the end.
        let plan = Plan::new(&graph, Mode::Edges);
        assert_eq!(plan.sites.len(), 7 - (6 - 1));
        // What is counted decides: the arm that is taken once, and not the other.
        let rare = Edge { from: 1, case: 1 };
        let plan = Plan::weighted(&graph, Mode::Edges, |e| if e == rare || e.from == 3 { 1 } else { 100 });
        assert!(
            plan.sites.contains(&Site::Edge(rare))
                || plan.sites.contains(&Site::Edge(Edge { from: 3, case: 0 }))
        );
        assert!(!plan.sites.contains(&Site::Edge(Edge { from: 1, case: 0 })));
    }
}
