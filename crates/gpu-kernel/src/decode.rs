//! From records to the path of each lane.
//!
//! A lane is replayed from the entry. Where its block has one successor it goes on; where there is a choice, the next
//! record that has the lane says which way (branches, blocks), or from which edge on it is known again (edges). Blocks
//! between two records of a lane were run between their times, which is all that is known of them.
//!
//! ```text
//!  records of a lane      t=10 branch 1, taken                  t=30 branch 4, not taken
//!  its path          0 ─► 1 ───────────► 2 ──────────► 4 ─────────────────────────────► 5
//!  earliest, latest  0,10 10 recorded    10,30         30 recorded                      30,end
//! ```

mod paths;
mod sums;

use std::collections::VecDeque;

use crate::graph::{Block, EXIT, Edge, Graph};

use crate::plan::{Mode, Plan, Site};
use crate::record::{Lanes, Record};

/// One block in a lane's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The block.
    pub block: Block,
    /// Not before this time.
    pub earliest: u64,
    /// And not after this; `u64::MAX` if nothing later is known of the lane.
    pub latest: u64,
    /// A record was made there, or on the way to it; else it is inferred.
    pub recorded: bool,
}

/// How a lane's path ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// At the end of the kernel.
    Exit,
    /// Where the records end: the kernel was stopped there, or what it wrote is lost.
    Unknown,
}

/// The path of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Its blocks, in order.
    pub steps: Vec<Step>,
    /// How it ends.
    pub ended: Ended,
}

/// Records that contradict the graph or each other. The lane goes on where the next record has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// The time of the record.
    pub time: u64,
    /// The lane.
    pub lane: u32,
    /// What is wrong.
    pub what: Fault,
}

/// What can be wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its site is in no plan.
    NoSite,
    /// Lanes were chosen that were not there, or a case that there is not.
    NoChoice,
    /// It is not before the one before it.
    Time,
    /// The lane cannot have come there from where it was.
    Unreachable,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::NoSite => "a record of a site that there is not",
            Fault::NoChoice => "a record of lanes that were not there, or of a choice that there is not",
            Fault::Time => "a record before the one before it",
            Fault::Unreachable => "a record at a place that the lane cannot have come to",
        })
    }
}

/// Replays lanes through a graph.
#[derive(Debug)]
pub struct Decoder<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) plan: &'a Plan,
    /// By block, the edges that are not recorded: which successors a lane may take without a record.
    quiet: Vec<Vec<usize>>,
}

impl<'a> Decoder<'a> {
    /// Returns a decoder for a graph and the plan by which it was instrumented.
    pub fn new(graph: &'a Graph, plan: &'a Plan) -> Self {
        let edges = plan.mode == Mode::Edges;
        let recorded = |edge: Edge| edges && plan.number(Site::Edge(edge)).is_some();
        let quiet = |from: Block| {
            let cases = 0..graph.successors(from).len();
            cases.filter(|case| !recorded(Edge { from, case: *case })).collect()
        };
        Self { graph, plan, quiet: (0..graph.len()).map(quiet).collect() }
    }

    /// Returns the path of a lane that began at `begin`, from all records of its warp in the order in which they were made,
    /// and what was wrong. `ended` says when it ended, if it did.
    pub fn lane(
        &self,
        lane: u32,
        begin: u64,
        ended: Option<u64>,
        records: &[Record],
    ) -> (Path, Vec<Violation>) {
        if self.plan.mode == Mode::Paths {
            return paths::lane(self, lane, begin, ended, records);
        }
        if self.plan.adds_up() {
            return sums::lane(self, lane, begin, ended, records);
        }
        let mut replay = Replay {
            decoder: self,
            lane,
            // With a record in each block the entry has one, too.
            at: None,
            time: begin,
            open: 0,
            over: false,
            steps: Vec::new(),
            violations: Vec::new(),
        };
        if self.plan.mode != Mode::Blocks {
            replay.enter(0, None);
        }
        let bit: Lanes = 1 << (lane & 63);
        for record in records.iter().filter(|record| record.active & bit != 0) {
            if let Err(what) = replay.record(record, record.chosen & bit != 0) {
                replay.violations.push(Violation { time: record.time, lane, what });
            }
        }
        let ended = replay.finish(ended);
        (Path { steps: replay.steps, ended }, replay.violations)
    }

    /// Returns which way a lane went that a record of a branch has: none if another record of this choice says it.
    pub(crate) fn case(&self, block: Block, record: &Record, chosen: bool) -> Result<Option<usize>, Fault> {
        if record.chosen & !record.active != 0 {
            return Err(Fault::NoChoice);
        }
        let ways = self.graph.successors(block).len();
        match (chosen, ways, usize::from(record.case)) {
            (true, _, case) if case < ways => Ok(Some(case)),
            (false, 2, 0) => Ok(Some(1)),
            // Of a choice between many there is a record for each that is taken.
            (false, 3.., case) if case < ways => Ok(None),
            _ => Err(Fault::NoChoice),
        }
    }

    /// Returns the blocks that a lane runs without a record from behind a block to another, which is the last of them; of a
    /// lane that ends, those before that. They are found by breadth: in a plan of edges there is one way.
    pub(crate) fn way(&self, from: Block, to: Block) -> Option<Vec<Block>> {
        let mut before = vec![None; self.graph.len()];
        let mut open = VecDeque::from([from]);
        while let Some(block) = open.pop_front() {
            for case in self.goes_on(block) {
                let next = self.graph.successors(block)[*case];
                if next == to {
                    let mut way = if to == EXIT { vec![] } else { vec![to] };
                    let mut at = block;
                    while at != from {
                        way.push(at);
                        at = before[at]?;
                    }
                    way.reverse();
                    return Some(way);
                }
                if next != EXIT && next != from && before[next].is_none() {
                    before[next] = Some(block);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// Which successors a lane takes from a block without a record.
    fn goes_on(&self, block: Block) -> &[usize] {
        match self.plan.mode {
            Mode::Paths | Mode::Branches if self.graph.branches(block) => &[],
            Mode::Blocks => &[],
            Mode::Paths | Mode::Branches | Mode::Edges => &self.quiet[block],
        }
    }
}

/// A lane on its way.
#[derive(Debug)]
struct Replay<'d, 'a> {
    decoder: &'d Decoder<'a>,
    lane: u32,
    /// The block that it is in.
    at: Option<Block>,
    /// The time of the last record.
    time: u64,
    /// The first of the steps after that record.
    open: usize,
    /// It has come to the end of the kernel.
    over: bool,
    steps: Vec<Step>,
    violations: Vec<Violation>,
}

impl Replay<'_, '_> {
    /// The lane goes into a block; with a record if there is a time.
    fn enter(&mut self, block: Block, recorded: Option<u64>) {
        if block == EXIT {
            (self.at, self.over) = (None, true);
            return;
        }
        self.at = Some(block);
        let (earliest, latest) = recorded.map_or((self.time, u64::MAX), |time| (time, time));
        self.steps.push(Step { block, earliest, latest, recorded: recorded.is_some() });
    }

    /// All steps before now were over at this time.
    fn settle(&mut self, time: u64) {
        for step in self.steps.iter_mut().skip(self.open).filter(|step| step.latest == u64::MAX) {
            step.latest = time;
        }
        (self.open, self.time) = (self.steps.len(), time);
    }

    /// The lane has come to a block without a record, or is taken there if that cannot be.
    fn come_to(&mut self, block: Block) -> Result<(), Fault> {
        match self.at {
            Some(at) if at == block && self.decoder.plan.mode == Mode::Branches => Ok(()),
            Some(at) => match self.decoder.way(at, block) {
                Some(way) => {
                    way.into_iter().for_each(|block| self.enter(block, None));
                    Ok(())
                }
                None => {
                    self.enter(block, None);
                    Err(Fault::Unreachable)
                }
            },
            None => {
                self.enter(block, None);
                Err(Fault::Unreachable)
            }
        }
    }

    fn record(&mut self, record: &Record, chosen: bool) -> Result<(), Fault> {
        let graph = self.decoder.graph;
        let site = self.decoder.plan.sites.get(record.site as usize).ok_or(Fault::NoSite)?;
        if record.chosen & !record.active != 0 {
            return Err(Fault::NoChoice);
        }
        if record.time < self.time {
            return Err(Fault::Time);
        }
        match *site {
            Site::Branch(block) => {
                let Some(case) = self.decoder.case(block, record, chosen)? else { return Ok(()) };
                let came = self.come_to(block);
                self.settle(record.time);
                if let Some(step) = self.steps.last_mut() {
                    *step = Step { block, earliest: record.time, latest: record.time, recorded: true };
                }
                self.enter(graph.successors(block)[case], None);
                came
            }
            Site::Edge(edge) => {
                let came = match self.at {
                    Some(at) if at == edge.from => Ok(()),
                    _ => self.come_to(edge.from),
                };
                self.settle(record.time);
                self.enter(graph.target(edge), None);
                // It was left then, and the block behind it is run when the lane's turn comes.
                let behind = self.steps.get_mut(self.open).filter(|_| self.at.is_some());
                behind.into_iter().for_each(|step| step.recorded = true);
                came
            }
            Site::Block(block) => {
                let follows = match self.at {
                    None => block == 0 && self.steps.is_empty(),
                    Some(at) => graph.successors(at).contains(&block),
                };
                self.settle(record.time);
                self.enter(block, Some(record.time));
                self.open = self.steps.len();
                if follows { Ok(()) } else { Err(Fault::Unreachable) }
            }
        }
    }

    /// The records are over; the lane ended then, if it did.
    fn finish(&mut self, ended: Option<u64>) -> Ended {
        let Some(time) = ended else { return if self.over { Ended::Exit } else { Ended::Unknown } };
        if let Some(at) = self.at {
            let leaves =
                self.decoder.plan.mode == Mode::Blocks && self.decoder.graph.successors(at).contains(&EXIT);
            match self.decoder.way(at, EXIT) {
                Some(way) => way.into_iter().for_each(|block| self.enter(block, None)),
                None if leaves => {}
                None => {
                    self.violations.push(Violation { time, lane: self.lane, what: Fault::Unreachable });
                    return Ended::Unknown;
                }
            }
        }
        self.settle(time);
        Ended::Exit
    }
}
