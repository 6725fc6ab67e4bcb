//! Sums of lanes that say which ways they went: by where they were and what they say, as few things are said often.

use std::collections::HashMap;

use super::{Counter, Place, Warp, each, route};
use crate::graph::{EXIT, Edge};
use crate::record::{Lanes, Record};
use crate::ways;

/// What lanes ran that were at one place and said one word.
#[derive(Debug)]
pub(super) struct Walk {
    edges: Vec<Edge>,
    /// Those of them by which rounds of loops are counted, and how often in a row.
    turns: Vec<(Edge, u64)>,
    end: Place,
    /// Whether all of the word could be gone.
    fits: bool,
    lanes: u64,
    visits: u64,
    time: u64,
}

/// By place and word.
pub(super) type Walks = HashMap<(Place, u32), Walk>;

impl Counter<'_> {
    /// Returns nothing for a record that makes no sense.
    pub(super) fn walk(&mut self, warp: &mut Warp, record: &Record) -> Option<()> {
        let word = u32::try_from(record.chosen).ok().filter(|word| *word != 0)?;
        let before = warp.time.replace(warp.time.map_or(record.time, |before| before.max(record.time)));
        let mut spent = record.time.saturating_sub(before.unwrap_or(record.time));
        let (mut left, mut fit) = (record.active, true);
        while left != 0 {
            let place = warp.places[left.trailing_zeros() as usize];
            let mut together: Lanes = 0;
            each(left, |lane| together |= Lanes::from(warp.places[lane] == place) << lane);
            left &= !together;
            let new = (!self.walks.contains_key(&(place, word))).then(|| self.new_walk(place, word));
            let walk = match new {
                Some(walk) => self.walks.entry((place, word)).or_insert(walk),
                None => self.walks.get_mut(&(place, word))?,
            };
            walk.lanes = walk.lanes.saturating_add(together.count_ones().into());
            walk.visits = walk.visits.saturating_add(1);
            walk.time = walk.time.saturating_add(std::mem::take(&mut spent));
            let (turns, end) = (std::mem::take(&mut walk.turns), walk.end);
            fit &= walk.fits;
            for (edge, times) in &turns {
                self.round(warp, *edge, together, *times);
            }
            if let Some(walk) = self.walks.get_mut(&(place, word)) {
                walk.turns = turns;
            }
            each(together, |lane| warp.places[lane] = end);
        }
        fit.then_some(())
    }

    fn new_walk(&self, from: Place, mut word: u32) -> Walk {
        let (mut edges, mut turns): (Vec<Edge>, Vec<(Edge, u64)>) = (vec![], vec![]);
        let mut end = from;
        while !self.is_over(end) {
            let way = route(self.graph, self.plan, &self.decoder, end, None);
            let Some(at) = way.last().copied() else { break };
            let to = self.graph.successors(at);
            let Some((case, rest)) = ways::first(word, to.len()).filter(|(case, _)| *case < to.len()) else {
                break;
            };
            word = rest;
            let edge = Edge { from: at, case };
            edges.push(edge);
            if self.trips.iter().any(|trips| trips.site.as_ref().is_some_and(|(site, _)| *site == at)) {
                match turns.last_mut().filter(|(last, _)| *last == edge) {
                    Some((_, times)) => *times += 1,
                    None => turns.push((edge, 1)),
                }
            }
            end = Place::Behind(edge);
        }
        Walk { edges, turns, end, fits: word == 1, lanes: 0, visits: 0, time: 0 }
    }

    /// Whether lanes that are there have ended.
    fn is_over(&self, place: Place) -> bool {
        matches!(place, Place::Behind(edge) if self.graph.target(edge) == EXIT)
    }

    /// Adds what lanes said to the sums of edges and of time.
    pub(super) fn add_walks(&mut self) {
        for ((from, _), walk) in std::mem::take(&mut self.walks) {
            let begins = (from == Place::Begin || walk.edges.is_empty()).then_some(from);
            let (mut parts, edges) = (Vec::new(), walk.edges.iter().map(|edge| Place::Behind(*edge)));
            let places = begins.into_iter().chain(edges).filter(|place| !self.is_over(*place));
            for place in places {
                let way = route(self.graph, self.plan, &self.decoder, place, None);
                parts.extend(way.into_iter().map(|block| (block, self.weights[block])));
            }
            self.divide(walk.time, parts);
            for edge in &walk.edges {
                for flow in [self.edges.entry(*edge).or_default(), &mut self.sites[edge.from]] {
                    flow.lanes = flow.lanes.saturating_add(walk.lanes);
                    flow.visits = flow.visits.saturating_add(walk.visits);
                }
                self.added[edge.from] = true;
            }
        }
    }
}
