//! Paths from records that add up passes of loops.
//!
//! In a loop the same lanes mostly go the same way as in the pass before. Then no record is made, and each lane counts. When
//! those that are there, or the way that they go, are other than before, the lanes that have counted together say how often
//! ([`Record::repeats`]), and the branch is recorded as ever. At the end of a lane what is left is said, too. So of one site
//! a lane's records are in order; those of two sites are not, since what was counted is said later. So a lane has a queue
//! for each site, and takes the next of it where it comes by.

use std::collections::VecDeque;

use super::{Decoder, Ended, Fault, Path, Step, Violation};
use crate::graph::{Block, EXIT};
use crate::plan::Site;
use crate::record::{Lanes, Record};

/// A lane whose path is longer is not followed further.
const LONGEST: usize = 1 << 24;

/// Passes of a lane through one site, all the same way.
#[derive(Debug, Clone, Copy)]
struct Turn {
    case: usize,
    earliest: u64,
    latest: u64,
    recorded: bool,
    times: u32,
}

/// A lane's turns, by site.
type Queues = Vec<VecDeque<Turn>>;

/// As [`Decoder::lane`].
pub(crate) fn lane(
    decoder: &Decoder<'_>,
    lane: u32,
    begin: u64,
    ended: Option<u64>,
    records: &[Record],
) -> (Path, Vec<Violation>) {
    let (mut queues, mut violations) = queues(decoder, lane, begin, records);
    let (mut steps, exits) = follow(decoder, &mut queues);
    if exits.is_none() && ended.is_some() {
        let time = ended.unwrap_or(begin);
        violations.push(Violation { time, lane, what: Fault::Unreachable });
    }
    // Of a lane that is not known to have ended, passes that it had counted and nobody said may be before these.
    let left = queues.iter().filter_map(|queue| queue.front()).filter(|_| ended.is_some());
    violations.extend(left.map(|turn| Violation { time: turn.latest, lane, what: Fault::Unreachable }));
    if bound(&mut steps, begin, ended) {
        violations.push(Violation { time: begin, lane, what: Fault::Time });
    }
    (Path { steps, ended: exits.unwrap_or(Ended::Unknown) }, violations)
}

fn queues(decoder: &Decoder<'_>, lane: u32, begin: u64, records: &[Record]) -> (Queues, Vec<Violation>) {
    let sites = &decoder.plan.sites;
    let (mut queues, mut before) = (vec![VecDeque::new(); sites.len()], vec![begin; sites.len()]);
    let mut violations = Vec::new();
    let bit: Lanes = 1 << (lane & 63);
    for record in records.iter().filter(|record| record.active & bit != 0) {
        let number = record.site as usize;
        let mut wrong = |what| violations.push(Violation { time: record.time, lane, what });
        let Some(Site::Branch(block)) = sites.get(number) else {
            wrong(Fault::NoSite);
            continue;
        };
        if record.time < before[number] {
            wrong(Fault::Time);
            continue;
        }
        let case = match decoder.case(*block, record, record.chosen & bit != 0) {
            Ok(Some(case)) => case,
            Ok(None) => continue,
            Err(what) => {
                wrong(what);
                continue;
            }
        };
        let recorded = record.repeats == 0;
        let earliest = if recorded { record.time } else { before[number] };
        let times = record.repeats.max(1);
        queues[number].push_back(Turn { case, earliest, latest: record.time, recorded, times });
        before[number] = record.time;
    }
    (queues, violations)
}

/// Goes from the entry to where the turns are over. Returns how the path ends; nothing if it does not come to an end.
fn follow(decoder: &Decoder<'_>, queues: &mut Queues) -> (Vec<Step>, Option<Ended>) {
    let mut steps = Vec::new();
    let (mut at, mut since): (Block, usize) = (0, 0);
    while steps.len() < LONGEST && since <= decoder.graph.len() {
        let mut step = Step { block: at, earliest: 0, latest: u64::MAX, recorded: false };
        let successors = decoder.graph.successors(at);
        let case = if decoder.graph.branches(at) {
            let number = decoder.plan.number(Site::Branch(at)).and_then(|n| queues.get_mut(n as usize));
            let Some(turn) = number.and_then(take) else {
                steps.push(step);
                return (steps, None);
            };
            (step.earliest, step.latest, step.recorded) = (turn.earliest, turn.latest, turn.recorded);
            since = 0;
            turn.case
        } else {
            // A loop without a choice is never left.
            since += 1;
            0
        };
        steps.push(step);
        match successors.get(case) {
            Some(next) if *next != EXIT => at = *next,
            Some(_) => return (steps, Some(Ended::Exit)),
            None => return (steps, None),
        }
    }
    (steps, None)
}

/// Takes one pass.
fn take(queue: &mut VecDeque<Turn>) -> Option<Turn> {
    let first = queue.front_mut()?;
    first.times -= 1;
    if first.times > 0 { Some(*first) } else { queue.pop_front() }
}

/// Each step is not before those before it, and not after those behind. Returns whether that cannot be.
fn bound(steps: &mut [Step], begin: u64, ended: Option<u64>) -> bool {
    let mut earliest = begin;
    for step in steps.iter_mut() {
        step.earliest = step.earliest.max(earliest);
        earliest = step.earliest;
    }
    let (mut latest, mut wrong) = (ended.unwrap_or(u64::MAX), false);
    for step in steps.iter_mut().rev() {
        step.latest = step.latest.min(latest);
        latest = step.latest;
        if step.latest < step.earliest {
            wrong = true;
            step.latest = step.earliest;
        }
    }
    wrong
}
