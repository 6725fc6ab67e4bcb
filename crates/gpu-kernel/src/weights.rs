//! How often lanes took each edge of a kernel in an earlier run, to choose by where the next one records.
//!
//! A kernel is recognised by its content: its name, a [`digest`] of its text and where its blocks lead. Weights decide where
//! records are made and nothing else: whatever they say, what is decoded is what lanes did.

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::description::Kernel;
use crate::graph::{Block, EXIT, Edge, Graph};
use crate::plan::{Mode, Plan, by_depth};

/// What an earlier trace says of its kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// The trace's path, for people.
    pub trace: String,
    /// By name and text, each once.
    pub kernels: Vec<KernelWeights>,
}

/// What an earlier trace says of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelWeights {
    /// Its name, as its text has it.
    pub name: String,
    /// The digest of its text.
    pub text: String,
    /// By block, and for each of its successors, how often a lane went there.
    pub edges: Vec<Vec<u64>>,
}

/// Returns the digest of a kernel's text: FNV-1a of 64 bits, in hexadecimal.
pub fn digest(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

impl Weights {
    /// Adds what a kernel did. Of one that ran nothing, or has no digest of its text, nothing is known.
    pub fn add(&mut self, kernel: &Kernel, graph: &Graph, counts: &Counts) {
        if kernel.text.is_empty() || counts.begun == 0 {
            return;
        }
        let mut edges: Vec<Vec<u64>> = (0..graph.len()).map(|block| taken(graph, counts, block)).collect();
        let same = |known: &&mut KernelWeights| known.name == kernel.name && known.text == kernel.text;
        match self.kernels.iter_mut().find(same) {
            Some(known) if known.fits(graph) => {
                let pairs = known.edges.iter_mut().flatten().zip(edges.iter_mut().flatten());
                pairs.for_each(|(sum, more)| *sum = sum.saturating_add(*more));
            }
            Some(_) => {}
            None => {
                let (name, text) = (kernel.name.clone(), kernel.text.clone());
                self.kernels.push(KernelWeights { name, text, edges });
            }
        }
    }

    /// Returns those of a kernel.
    ///
    /// # Errors
    /// Why there are none, for people.
    pub fn of(&self, name: &str, text: &str, graph: &Graph) -> Result<&KernelWeights, String> {
        let named = || self.kernels.iter().filter(|known| known.name == name);
        let known = named().find(|known| known.text == text && known.fits(graph));
        known.ok_or_else(|| match named().next() {
            Some(_) => "its text is another one there".to_owned(),
            None => "it did not record there".to_owned(),
        })
    }
}

/// Returns how often each successor of a block was taken. Ends of lanes may not be counted: these are what is missing.
fn taken(graph: &Graph, counts: &Counts, block: Block) -> Vec<u64> {
    let to = graph.successors(block);
    let known = |case| counts.edges.get(&Edge { from: block, case }).copied();
    let lanes = counts.blocks.get(block).map_or(0, |block| block.lanes);
    let others = (0..to.len()).filter_map(known).fold(0, u64::saturating_add);
    let of = |(case, to): (usize, &Block)| match known(case) {
        None if *to == EXIT => lanes.saturating_sub(others),
        known => known.unwrap_or(0),
    };
    to.iter().enumerate().map(of).collect()
}

impl KernelWeights {
    /// Returns whether they are of such a graph.
    fn fits(&self, graph: &Graph) -> bool {
        let of = |(block, edges): (Block, &Vec<u64>)| edges.len() == graph.successors(block).len();
        self.edges.len() == graph.len() && self.edges.iter().enumerate().all(of)
    }

    /// Chooses where to record; edges by how often lanes took them, and those that were taken as often by how deep in loops they
    /// lie.
    pub fn plan(&self, graph: &Graph, mode: Mode) -> Plan {
        let depth = by_depth(graph);
        Plan::weighted(graph, mode, |edge| (self.edge(edge), depth(edge)))
    }

    /// Returns how often lanes took an edge.
    pub fn edge(&self, edge: Edge) -> u64 {
        self.edges.get(edge.from).and_then(|to| to.get(edge.case)).copied().unwrap_or(0)
    }

    /// Returns how often lanes left a block.
    pub fn block(&self, block: Block) -> u64 {
        self.edges.get(block).into_iter().flatten().fold(0, |sum, edge| sum.saturating_add(*edge))
    }
}
