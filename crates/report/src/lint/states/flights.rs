//! Events, fences, and commands from where they are appended until the program knows that they are over.

use std::collections::BTreeMap;

use super::lanes::{Flying, Lane, Op};
use crate::lint::facts::Knowledge;
use crate::lint::findings::{Findings, Hit, Ref};
use crate::lint::kinds::KindId;
use crate::lint::span::Span;
use hetrace_trace::hash::QuickMap;

/// Commands of a process that are followed at a time.
const KEPT: usize = 1 << 16;

/// Something that is signalled and stays so until it is reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub kind: KindId,
    pub made: Ref,
    /// What signalled it since it was reset.
    pub set: Option<Ref>,
    /// Somebody has seen it.
    pub seen: bool,
    /// The command that signals it last: its lane and number.
    pub last: Option<(u64, u64)>,
}

/// What is in flight in a process.
#[derive(Debug, Default)]
pub(super) struct Flights {
    pub events: QuickMap<u64, Event>,
    /// By the handle of the queue, or of the immediate command buffer.
    pub lanes: BTreeMap<u64, Lane>,
    units: u64,
    flying: usize,
}

/// What commands are put in flight by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    pub lane: u64,
    pub list: u64,
    pub by: Ref,
    pub in_order: bool,
}

impl Flights {
    /// The next submission begins.
    pub fn unit(&mut self) -> u64 {
        self.units += 1;
        self.units
    }

    /// Puts a command in flight.
    pub fn fly(
        &mut self,
        op: Op,
        to: Launch,
        unit: u64,
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        if self.flying >= KEPT {
            self.forget();
        }
        self.flying += 1;
        let lane = self.lanes.entry(to.lane).or_default();
        let number = lane.end();
        if !op.resets
            && let Some(event) = self.events.get_mut(&op.event)
        {
            event.last = Some((to.lane, number));
        }
        let Launch { list, by, in_order, .. } = to;
        lane.flying.push_back(Flying { op, unit, list, by, in_order, ran: false });
        lane.blocked += 1;
        if self.run(to.lane, number, false, (knowledge, findings)) {
            self.go_on((knowledge, findings));
        }
    }

    /// Nothing is known any more.
    fn forget(&mut self) {
        self.lanes.clear();
        self.events.clear();
        self.flying = 0;
    }

    /// Runs a command if it can, or must have: says whether it did.
    fn run(
        &mut self,
        at: u64,
        number: u64,
        must: bool,
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) -> bool {
        let Some(lane) = self.lanes.get(&at) else { return false };
        let Some(flying) = lane.get(number).filter(|flying| !flying.ran) else { return false };
        let is_open = |event: &u64| self.events.get(event).is_some_and(|event| event.set.is_none());
        if !must && (flying.op.waits.iter().any(is_open) || lane.held_by(number).is_some()) {
            return false;
        }
        let Flying { op, by, .. } = flying;
        let (call, by, event, resets) = (op.call, *by, op.event, op.resets);
        for event in op.waits.clone() {
            if let Some(event) = self.events.get_mut(&event) {
                event.seen = true;
            }
        }
        if let Some(event) = self.events.get_mut(&event) {
            if resets {
                (event.set, event.seen) = (None, false);
            } else if !must {
                signal(event, call, by, (knowledge, findings));
            } else {
                event.set = event.set.or(Some(call));
            }
        }
        let lane = self.lanes.get_mut(&at);
        if let Some((lane, true)) = lane.map(|lane| {
            let there = lane.get_mut(number).map(|flying| flying.ran = true).is_some();
            (lane, there)
        }) {
            lane.blocked = lane.blocked.saturating_sub(1);
        }
        true
    }

    /// Runs what can run now, until there is nothing more.
    fn go_on(&mut self, (knowledge, findings): (&Knowledge<'_>, &mut Findings)) {
        loop {
            let waiting = self.lanes.iter().filter(|(_, lane)| lane.blocked > 0);
            let waiting: Vec<(u64, u64)> = waiting
                .flat_map(|(at, lane)| {
                    let numbers = (lane.first..).zip(&lane.flying).filter(|(_, flying)| !flying.ran);
                    numbers.map(|(number, _)| (*at, number))
                })
                .collect();
            let mut ran = false;
            for (lane, number) in waiting {
                ran |= self.run(lane, number, false, (knowledge, findings));
            }
            if !ran {
                return;
            }
        }
    }

    /// The program signals an event.
    pub fn signalled(&mut self, event: u64, by: Ref, (knowledge, findings): (&Knowledge<'_>, &mut Findings)) {
        if let Some(event) = self.events.get_mut(&event) {
            signal(event, by, by, (knowledge, findings));
            self.go_on((knowledge, findings));
        }
    }

    /// The program resets an event.
    pub fn reset(&mut self, event: u64) {
        if let Some(event) = self.events.get_mut(&event) {
            (event.set, event.seen) = (None, false);
        }
    }

    /// The program has seen that an event is signalled.
    pub fn seen(&mut self, event: u64, by: Ref, known: (&Knowledge<'_>, &mut Findings)) {
        let Some(about) = self.events.get_mut(&event) else { return };
        about.seen = true;
        // What signalled it may be another process.
        about.set = about.set.or(Some(by));
        if let Some((lane, number)) = about.last {
            self.over(lane, number + 1, known);
        }
    }

    /// Commands of a lane before a number are over, and so is what they waited for.
    pub fn over(&mut self, lane: u64, before: u64, (knowledge, findings): (&Knowledge<'_>, &mut Findings)) {
        let mut stack = vec![(lane, before)];
        let mut ran = false;
        while let Some((at, before)) = stack.pop() {
            while let Some(lane) =
                self.lanes.get(&at).filter(|lane| lane.first < before && !lane.flying.is_empty())
            {
                let number = lane.first;
                ran |= self.run(at, number, true, (knowledge, findings));
                let Some(lane) = self.lanes.get_mut(&at) else { break };
                lane.first += 1;
                let Some(flying) = lane.flying.pop_front() else { break };
                self.flying = self.flying.saturating_sub(1);
                let signalling = flying.op.waits.iter().filter_map(|event| self.events.get(event)?.last);
                stack.extend(signalling.map(|(lane, number)| (lane, number + 1)));
            }
        }
        if ran {
            self.go_on((knowledge, findings));
        }
    }

    /// All commands of a lane are over.
    pub fn all_over(&mut self, lane: u64, known: (&Knowledge<'_>, &mut Findings)) {
        let end = self.lanes.get(&lane).map_or(0, Lane::end);
        self.over(lane, end, known);
    }

    /// All commands are over.
    pub fn everything_over(&mut self, (knowledge, findings): (&Knowledge<'_>, &mut Findings)) {
        let lanes: Vec<u64> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.all_over(lane, (knowledge, findings));
        }
    }

    /// An event has ended. That something waits for it is still of interest.
    pub fn gone(&mut self, event: u64) {
        if self.find(|_, flying| !flying.ran && flying.op.waits.contains(&event)).is_none() {
            self.events.remove(&event);
        }
    }

    /// A command that may not be over, of those that `is` is true of.
    pub fn find(&self, is: impl Fn(u64, &Flying) -> bool) -> Option<&Flying> {
        if self.flying == 0 {
            return None;
        }
        let all =
            self.lanes.iter().flat_map(|(at, lane)| lane.flying.iter().map(move |flying| (*at, flying)));
        all.filter(|(at, flying)| is(*at, flying)).map(|(_, flying)| flying).next()
    }

    /// A command that may not be over and uses this memory.
    pub fn using(&self, span: &Span) -> Option<&Flying> {
        self.find(|_, flying| flying.op.touches(span))
    }
}

/// An event is signalled, perhaps again.
fn signal(event: &mut Event, call: Ref, by: Ref, (knowledge, findings): (&Knowledge<'_>, &mut Findings)) {
    if let Some(before) = event.set {
        let kind = knowledge.kind(event.kind).map_or("event", |kind| &kind.name);
        let name = |call: Ref| knowledge.of(call.function).map_or("a call", |facts| &facts.function.name);
        let seen = match event.seen {
            true => "and that was waited for and not reset",
            false => "and that was neither waited for nor reset",
        };
        let what =
            format!("{} signals a {kind} that {} has signalled before {seen}", name(call), name(before));
        let about = format!("{} {}", name(call), name(before));
        let hit = Hit::new("event-not-reset", about, what, ("signals", call));
        let hit = hit.with((by != call).then_some(("in", by)));
        findings.add(hit.with((before != call).then_some(("before", before))));
    }
    (event.set, event.seen) = (Some(call), false);
}
