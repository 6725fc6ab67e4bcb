//! Commands that wait for what never comes, or for each other.

use std::collections::{HashMap, HashSet};

use super::flights::Flights;
use super::lanes::Flying;
use crate::lint::facts::Knowledge;
use crate::lint::findings::{Findings, Hit};

/// A command: its lane and number.
type Node = (u64, u64);

/// Calls that are shown of a circle.
const SHOWN: usize = 6;

/// The trace has ended: what has not run, and why.
pub(super) fn finish(flights: &Flights, knowledge: &Knowledge<'_>, findings: &mut Findings) {
    let stuck = flights.lanes.iter().flat_map(|(at, lane)| {
        let numbers = (lane.first..).zip(&lane.flying).filter(|(_, flying)| !flying.ran);
        numbers.map(|(number, flying)| ((*at, number), flying))
    });
    let stuck: Vec<(Node, &Flying)> = stuck.collect();
    let mut signals: HashMap<u64, Vec<Node>> = HashMap::new();
    for (node, flying) in stuck.iter().filter(|(_, flying)| flying.op.event != 0 && !flying.op.resets) {
        signals.entry(flying.op.event).or_default().push(*node);
    }
    let is_open = |event: &u64| flights.events.get(event).filter(|event| event.set.is_none());
    let mut next: HashMap<Node, Vec<Node>> = HashMap::new();
    for (node, flying) in &stuck {
        let held = flights.lanes.get(&node.0).and_then(|lane| lane.held_by(node.1));
        let mut after: Vec<Node> = held.map(|number| (node.0, number)).into_iter().collect();
        for event in &flying.op.waits {
            let Some(about) = is_open(event) else { continue };
            match signals.get(event) {
                Some(nodes) => after.extend(nodes),
                None => {
                    let name = knowledge.of(flying.op.call.function).map_or("a call", |f| &f.function.name);
                    let kind = knowledge.kind(about.kind).map_or("event", |kind| &kind.name);
                    let what = format!("{name} waits for a {kind} that nothing signals");
                    let hit = Hit::new(
                        "event-never-set",
                        format!("{name} nothing"),
                        what,
                        ("waits", flying.op.call),
                    );
                    findings.add(hit.with(Some(("made", about.made))));
                }
            }
        }
        next.insert(*node, after);
    }
    if let Some(circle) = circle(&stuck, &next) {
        findings.add(described(&circle, &stuck, knowledge));
    }
}

/// The first circle that there is.
fn circle(stuck: &[(Node, &Flying)], next: &HashMap<Node, Vec<Node>>) -> Option<Vec<Node>> {
    let mut left: HashSet<Node> = HashSet::new();
    for (start, _) in stuck {
        // The way here, and for each node of it those that are not tried yet.
        let mut way: Vec<(Node, Vec<Node>)> = Vec::new();
        let mut now = Some(*start);
        loop {
            match now.take().filter(|node| !left.contains(node)) {
                Some(node) => {
                    if let Some(at) = way.iter().position(|(known, _)| *known == node) {
                        return Some(way.split_off(at).into_iter().map(|(node, _)| node).collect());
                    }
                    way.push((node, next.get(&node).cloned().unwrap_or_default()));
                }
                None => {
                    let Some((node, others)) = way.last_mut() else { break };
                    now = others.pop();
                    if now.is_none() {
                        left.insert(*node);
                        way.pop();
                    }
                }
            }
        }
    }
    None
}

fn described(circle: &[Node], stuck: &[(Node, &Flying)], knowledge: &Knowledge<'_>) -> Hit {
    let flying = |node: &Node| stuck.iter().find(|(known, _)| known == node).map(|(_, flying)| *flying);
    let all: Vec<&Flying> = circle.iter().filter_map(flying).collect();
    let name = |flying: &Flying| {
        knowledge.of(flying.op.call.function).map_or("a call", |facts| facts.function.name.as_str())
    };
    let names: Vec<&str> = all.iter().map(|flying| name(flying)).collect();
    let lanes: HashSet<u64> = circle.iter().map(|(lane, _)| *lane).collect();
    let what = match (lanes.len(), all.len()) {
        (1, _) => format!(
            "{} waits for what only comes behind it in the same order: {}",
            names.first().unwrap_or(&"a command"),
            names.join(", ")
        ),
        (_, count) => format!("{count} commands wait for each other: {}", names.join(", ")),
    };
    let mut calls = all.iter().take(SHOWN).map(|flying| ("waits", flying.op.call));
    let first = calls.next().unwrap_or_default();
    let hit = Hit::new("deadlock", names.join(" "), what, first);
    calls.fold(hit, |hit, call| hit.with(Some(call)))
}
