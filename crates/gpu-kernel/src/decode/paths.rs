//! Paths of lanes that say which ways they went ([`Mode::Paths`](crate::plan::Mode::Paths)).

use super::{Decoder, Ended, Fault, Path, Step, Violation};
use crate::graph::{Block, EXIT};
use crate::plan::Site;
use crate::record::{Lanes, Record, WAYS};
use crate::ways;

/// A lane whose path is longer is not followed further.
const LONGEST: usize = 1 << 24;

/// As [`Decoder::lane`].
pub(crate) fn lane(
    decoder: &Decoder<'_>,
    lane: u32,
    begin: u64,
    ended: Option<u64>,
    records: &[Record],
) -> (Path, Vec<Violation>) {
    let mut replay =
        Replay { decoder, at: None, over: false, time: begin, open: 0, steps: vec![], violations: vec![] };
    replay.enter(0);
    let bit: Lanes = 1 << (lane & 63);
    for record in records.iter().filter(|record| record.active & bit != 0) {
        if let Err(what) = replay.record(record) {
            replay.violations.push(Violation { time: record.time, lane, what });
        }
        if replay.steps.len() >= LONGEST {
            break;
        }
    }
    if let Some(time) = ended.filter(|_| !replay.over) {
        replay.violations.push(Violation { time, lane, what: Fault::Unreachable });
    }
    let ended = if replay.over { Ended::Exit } else { Ended::Unknown };
    (Path { steps: replay.steps, ended }, replay.violations)
}

/// A lane on its way.
struct Replay<'d, 'a> {
    decoder: &'d Decoder<'a>,
    at: Option<Block>,
    over: bool,
    /// The time of the last record.
    time: u64,
    /// The first of the steps after that.
    open: usize,
    steps: Vec<Step>,
    violations: Vec<Violation>,
}

impl Replay<'_, '_> {
    fn enter(&mut self, block: Block) {
        if block == EXIT {
            (self.at, self.over) = (None, true);
            return;
        }
        self.at = Some(block);
        self.steps.push(Step { block, earliest: self.time, latest: u64::MAX, recorded: false });
    }

    /// Goes on to the next choice, or to the end.
    fn advance(&mut self) {
        let graph = self.decoder.graph;
        // A ring without a choice is never left.
        for _ in 0..=graph.len() {
            let Some([next]) = self.at.map(|at| graph.successors(at)) else { break };
            self.enter(*next);
        }
    }

    /// Goes the ways that a word has. Returns whether all of them could be gone.
    fn go(&mut self, mut word: u32) -> bool {
        let graph = self.decoder.graph;
        self.advance();
        while let Some(to) = self.at.map(|at| graph.successors(at)) {
            let Some((case, rest)) = ways::first(word, to.len()) else { break };
            let Some(next) = to.get(case) else { return false };
            word = rest;
            self.enter(*next);
            self.advance();
        }
        word == 1
    }

    fn record(&mut self, record: &Record) -> Result<(), Fault> {
        if record.site != WAYS {
            return Err(Fault::NoSite);
        }
        if record.time < self.time {
            return Err(Fault::Time);
        }
        let word = u32::try_from(record.chosen).map_err(|_| Fault::NoChoice)?;
        let went = self.go(word);
        // Where it was said is known besides.
        let site = record.case.checked_sub(1).map(usize::from);
        let there = match site.map(|site| self.decoder.plan.sites.get(site)) {
            None => self.over,
            Some(Some(Site::Branch(block))) => {
                let there = self.at == Some(*block);
                if !there {
                    self.enter(*block);
                }
                there
            }
            Some(_) => return Err(Fault::NoSite),
        };
        for step in self.steps.iter_mut().skip(self.open) {
            step.latest = record.time;
        }
        (self.open, self.time) = (self.steps.len(), record.time);
        if went && there { Ok(()) } else { Err(Fault::Unreachable) }
    }
}
