//! What was done to an image: its kernels with their graphs and where they record, and those that were refused.
//!
//! It is kept as JSON beside the records ([docs/inside.md](../../../docs/inside.md)), and has all that is needed to
//! decode them: [`Kernel::graph`] and [`Kernel::plan`].

use serde::{Deserialize, Serialize};

use crate::graph::{BadGraph, Block, EXIT, Edge, Graph};
use crate::plan::{Mode, Plan, Site};

/// An image that was rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its hash, in the way of who asked.
    pub image: String,
    /// Kernels that have a twin.
    pub kernels: Vec<Kernel>,
    /// Kernels that were wanted and have none.
    pub refused: Vec<Refused>,
}

/// A kernel of which no twin was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its name, as the text has it.
    pub name: String,
    /// Why, for people.
    pub reason: String,
}

/// A kernel that has a twin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its number in its process.
    pub number: u32,
    /// Its name, as the text has it.
    pub name: String,
    /// Where it records.
    #[serde(with = "mode")]
    pub mode: Mode,
    /// Whether its records have times. Where there is no clock, they only have an order: for each lane its own.
    #[serde(default = "timed")]
    pub timed: bool,
    /// By block, where it leads; −1 is the end of a lane.
    pub successors: Vec<Vec<i64>>,
    /// By number, where records are made.
    pub sites: Vec<SiteName>,
    /// By site, whether passes are added up there.
    pub summed: Vec<bool>,
    /// By block, what it is made of.
    pub blocks: Vec<BlockText>,
    /// Functions that it calls, as the text names them: what runs in them is not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// A [digest](crate::weights::digest) of its text, by which a later run recognises it; empty where none was made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What became of weights of an earlier run, if some were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weighted>,
}

/// What became of weights that were given, in the description of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighted {
    /// The trace that they are of.
    pub trace: String,
    /// Why they are not those by which it was chosen where the kernel records; missing if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<String>,
}

/// Descriptions that do not say it are of kernels with a clock.
fn timed() -> bool {
    true
}

/// What a block is made of, by its text: what one lane does that runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockText {
    /// The file of the source that it begins in.
    pub file: Option<String>,
    /// The line there.
    pub line: Option<u32>,
    /// Instructions.
    pub instructions: u32,
    /// Operations on floating-point numbers of 32 bits; a fused multiply-add is two.
    pub flops32: u32,
    /// Of 64 bits.
    pub flops64: u32,
    /// Of 16 bits.
    pub flops16: u32,
    /// Operations on integers.
    pub integer: u32,
    /// Bytes loaded from global memory.
    pub loaded: u32,
    /// Bytes stored to global memory.
    pub stored: u32,
    /// Barriers of the thread block.
    pub barriers: u32,
}

/// A site as JSON has it: `["branch", block]`, `["edge", block, case]` or `["block", block]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SiteName {
    /// A branch or a block.
    Block(String, Block),
    /// An edge.
    Edge(String, Block, usize),
}

/// A description that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadKernel {
    /// Its graph.
    Graph(BadGraph),
    /// A successor that is neither a block nor −1.
    Successor(i64),
    /// The site with this number is of no known kind, or of a block or edge that there is not.
    Site(usize),
    /// There are not as many `summed` as there are sites.
    Summed,
}

impl std::fmt::Display for BadKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadKernel::Graph(bad) => bad.fmt(f),
            BadKernel::Successor(to) => write!(f, "a block leads to {to}"),
            BadKernel::Site(number) => write!(f, "site {number} is nowhere in the graph"),
            BadKernel::Summed => f.write_str("summed has not one value for each site"),
        }
    }
}

impl std::error::Error for BadKernel {}

impl Kernel {
    /// Returns the graph.
    ///
    /// # Errors
    /// Where blocks lead to what there is not.
    pub fn graph(&self) -> Result<Graph, BadKernel> {
        let block = |to: &i64| match to {
            -1 => Ok(EXIT),
            to => Block::try_from(*to).map_err(|_| BadKernel::Successor(*to)),
        };
        let blocks = |to: &Vec<i64>| to.iter().map(block).collect::<Result<Vec<Block>, BadKernel>>();
        let successors: Result<Vec<Vec<Block>>, BadKernel> = self.successors.iter().map(blocks).collect();
        Graph::new(successors?).map_err(BadKernel::Graph)
    }

    /// Returns where records are made.
    ///
    /// # Errors
    /// If a site is nowhere in the graph.
    pub fn plan(&self, graph: &Graph) -> Result<Plan, BadKernel> {
        if self.summed.len() != self.sites.len() {
            return Err(BadKernel::Summed);
        }
        let sites = self.sites.iter().enumerate().map(|(number, name)| {
            let site = name.site().filter(|site| match site {
                Site::Branch(block) | Site::Block(block) => *block < graph.len(),
                Site::Edge(edge) => edge.case < graph.successors(edge.from).len(),
            });
            site.ok_or(BadKernel::Site(number))
        });
        let sites: Vec<Site> = sites.collect::<Result<_, _>>()?;
        if !sites.is_sorted() {
            // A site's number is found by search.
            return Err(BadKernel::Site(0));
        }
        Ok(Plan { mode: self.mode, sites, summed: self.summed.clone() })
    }
}

impl SiteName {
    /// Returns the site; nothing of a kind that is not known.
    pub fn site(&self) -> Option<Site> {
        match self {
            SiteName::Block(kind, block) if kind == "branch" => Some(Site::Branch(*block)),
            SiteName::Block(kind, block) if kind == "block" => Some(Site::Block(*block)),
            SiteName::Edge(kind, from, case) if kind == "edge" => {
                Some(Site::Edge(Edge { from: *from, case: *case }))
            }
            _ => None,
        }
    }
}

impl From<Site> for SiteName {
    fn from(site: Site) -> Self {
        match site {
            Site::Branch(block) => SiteName::Block("branch".to_owned(), block),
            Site::Block(block) => SiteName::Block("block".to_owned(), block),
            Site::Edge(Edge { from, case }) => SiteName::Edge("edge".to_owned(), from, case),
        }
    }
}

/// Returns how JSON has where a graph's blocks lead.
pub fn successors(graph: &Graph) -> Vec<Vec<i64>> {
    let number = |to: &Block| if *to == EXIT { -1 } else { i64::try_from(*to).unwrap_or(i64::MAX) };
    (0..graph.len()).map(|block| graph.successors(block).iter().map(number).collect()).collect()
}

/// Modes by their names.
mod mode {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::plan::Mode;

    pub fn serialize<S: Serializer>(mode: &Mode, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
        let name = String::deserialize(from)?;
        Mode::named(&name).ok_or_else(|| D::Error::unknown_variant(&name, &["branches", "edges", "blocks"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(mode: Mode) -> (Graph, Plan, Kernel) {
        let graph = Graph::new(vec![vec![1], vec![1, 2], vec![EXIT]]).unwrap();
        let plan = if mode == Mode::Branches { Plan::summed(&graph) } else { Plan::new(&graph, mode) };
        let kernel = Kernel {
            number: 7,
            name: "k".to_owned(),
            mode,
            timed: true,
            successors: successors(&graph),
            sites: plan.sites.iter().map(|site| SiteName::from(*site)).collect(),
            summed: plan.summed.clone(),
            blocks: vec![BlockText::default(); 3],
            calls: vec![],
            text: String::new(),
            weights: None,
        };
        (graph, plan, kernel)
    }

    #[test]
    fn graph_and_plan_come_back_from_json() {
        for mode in [Mode::Branches, Mode::Edges, Mode::Blocks] {
            let (graph, plan, kernel) = kernel(mode);
            let text = serde_json::to_string(&kernel).unwrap();
            let back: Kernel = serde_json::from_str(&text).unwrap();
            assert_eq!(back, kernel);
            assert_eq!(back.graph().unwrap(), graph);
            assert_eq!(back.plan(&graph).unwrap(), plan);
        }
    }

    #[test]
    fn json_is_as_documented() {
        let (_, _, kernel) = kernel(Mode::Edges);
        let value = serde_json::to_value(&kernel).unwrap();
        assert_eq!(value["successors"], serde_json::json!([[1], [1, 2], [-1]]));
        assert_eq!((&value["mode"], &value["sites"][0][0]), (&"edges".into(), &"edge".into()));
    }

    #[test]
    fn nonsense_is_named() {
        let (graph, _, mut kernel) = kernel(Mode::Blocks);
        kernel.sites[1] = SiteName::Block("block".to_owned(), 9);
        assert_eq!(kernel.plan(&graph), Err(BadKernel::Site(1)));
        kernel.summed.pop();
        assert_eq!(kernel.plan(&graph), Err(BadKernel::Summed));
        kernel.successors[0][0] = -2;
        assert_eq!(kernel.graph(), Err(BadKernel::Successor(-2)));
    }
}
