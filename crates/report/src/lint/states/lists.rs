//! Command buffers: open, closed, submitted, emptied; and what they are made for.

use super::engines::On;
use super::flights::{Flights, Launch};
use super::lanes::Op;
use crate::lint::duties::{Duties, MadeNow, handles_of};
use crate::lint::facts::{Facts, Knowledge};
use crate::lint::findings::{Hit, Ref};
use crate::lint::passed::Passed;
use hetrace_trace::hash::QuickMap;

/// Commands that are kept of a command buffer.
const KEPT: usize = 1 << 12;

/// A command buffer.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub made: Ref,
    pub immediate: bool,
    pub in_order: bool,
    /// Calls that append to it wait.
    pub waits: bool,
    pub closed: Option<Ref>,
    pub on: Option<On>,
    pub ops: Vec<Op>,
    /// It has more in it than is known.
    pub partial: bool,
}

/// All of them, by process and handle.
pub(super) type Lists = QuickMap<(i64, u64), List>;

impl List {
    pub fn new(made: Ref, duties: &Duties<'_>, now: &MadeNow, on: Option<On>) -> Option<Self> {
        let means = duties.made.as_ref()?.means;
        let (immediate, ops) = (means.immediate, Vec::new());
        let (in_order, waits) = (now.in_order, now.waits);
        let known = means.recorded || immediate;
        known.then_some(Self { made, immediate, in_order, waits, closed: None, on, ops, partial: false })
    }

    /// A command is appended.
    pub fn append(&mut self, op: Op) {
        match self.ops.len() < KEPT {
            true => self.ops.push(op),
            false => self.partial = true,
        }
    }
}

/// A call changes a command buffer, appends to it, or submits some, in a state in which it may not.
pub(super) fn faults(
    passed: &Passed,
    facts: &Facts<'_>,
    duties: &Duties<'_>,
    (lists, flights): (&Lists, Option<&Flights>),
    knowledge: &Knowledge<'_>,
) -> Vec<Hit> {
    let mut hits = Vec::new();
    let Some(at) = duties.list else { return hits };
    let name = &facts.function.name;
    let mut fault = |about: &str, what: String, with: Option<(&'static str, Ref)>| {
        let hit = Hit::new("list-state", format!("{name} {about}"), what, ("call", passed.call));
        hits.push(hit.with(with));
    };
    for (kind, handle) in handles_of(&passed.handles, at) {
        let Some(list) = lists.get(&(passed.call.pid, handle)) else { continue };
        let kind = knowledge.kind(kind).map_or("command buffer", |kind| &kind.name);
        let made = Some(("made", list.made));
        match list.closed {
            _ if duties.submit && list.immediate => {
                fault("immediate", format!("{name} is passed a {kind} that runs its commands at once"), made);
            }
            None if duties.submit => {
                fault("open", format!("{name} submits a {kind} that was not closed"), made)
            }
            Some(closed) if duties.appends => {
                let what = format!("{name} appends to a {kind} that was closed and not emptied");
                fault("closed", what, Some(("closed", closed)));
            }
            _ if duties.reopen && list.immediate => {
                fault("immediate", format!("{name} empties a {kind} that runs its commands at once"), made);
            }
            _ => {}
        }
        let flying =
            flights.filter(|_| duties.reopen).and_then(|f| f.find(|_, flying| flying.list == handle));
        if let Some(flying) = flying.filter(|_| !list.immediate) {
            let what = format!("{name} empties a {kind} whose commands may not be over");
            fault("in flight", what, Some(("submitted", flying.by)));
        }
    }
    hits
}

/// Where the commands of a command buffer go that runs them at once.
pub(super) fn launch_of(list: &List, handle: u64, by: Ref) -> Launch {
    Launch { lane: handle, list: handle, by, in_order: list.in_order }
}
