//! What a program says of itself: ranges and marks.
//!
//! What a thread pushed nests with its calls. What was started may be ended by any thread
//! and overlap anything: it has locations of its own, for each process and domain.

use std::collections::HashMap;

use hetrace_trace::ranges::{Payload, Range, Step};
use hetrace_trace::spans::At;

use super::super::definitions::LocationKind;
use super::super::events::Value;
use super::super::lanes::Lanes;
use super::counters::Counters;
use super::output::{Attribute, Output, With};
use super::places::Places;
use super::regions::Regions;
use super::threads::{Open, Threads};
use crate::Error;

/// A started range that has not ended: which rows, which of them, its location and region.
#[derive(Clone, Copy, Debug)]
struct Row {
    rows: usize,
    lane: usize,
    location: u32,
    region: u32,
}

/// Started ranges.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Started {
    /// By process, API and domain.
    by_domain: HashMap<(i64, String), usize>,
    rows: Vec<Lanes>,
    open: HashMap<u64, Row>,
    with: With,
    /// Ranges that found no place.
    pub crowded: u64,
    /// What the program counts.
    pub counters: Counters,
}

/// What ranges are written with.
pub(in crate::otf2) struct Around<'a, 't> {
    pub out: &'a mut Output,
    pub places: &'a mut Places<'t>,
    pub regions: &'a mut Regions<'t>,
    pub threads: &'a mut Threads,
}

impl Started {
    /// What a call turned out to do; `title` is how people spell its API.
    pub fn step(
        &mut self,
        around: Around<'_, '_>,
        at: At<'_>,
        title: &str,
        step: &Step,
    ) -> Result<(), Error> {
        match step {
            Step::Begun(range) => self.begin(around, at, title, range),
            Step::Ended { range, end, .. } => self.end(around, range, *end, None),
            Step::Mark(mark) => {
                let Around { out, places, regions, threads } = around;
                let region = regions.range(&mut out.archive.definitions, mark, title);
                annotate(&mut self.with, out, mark);
                threads.instant(out, places, at, region, &self.with)
            }
            // Its call is written as any other.
            Step::Counted(counted) => {
                self.counters.add(counted);
                Ok(())
            }
        }
    }

    fn begin(&mut self, around: Around<'_, '_>, at: At<'_>, title: &str, range: &Range) -> Result<(), Error> {
        let Around { out, places, regions, threads } = around;
        let region = regions.range(&mut out.archive.definitions, range, title);
        annotate(&mut self.with, out, range);
        if range.style.nests() {
            let what = (Open::Range(range.key), range.begin, region);
            return threads.enter(out, places, at, what, &self.with, None);
        }
        let who = at.who();
        let name =
            if range.domain.is_empty() { title.to_owned() } else { format!("{title} {}", range.domain) };
        let rows = match self.by_domain.get(&(who.pid, name.clone())) {
            Some(rows) => *rows,
            None => {
                let group = places.process(&mut out.archive.definitions, who.pid, &who.name);
                let title = format!("{name}: started ranges");
                self.rows.push(Lanes::new(title, LocationKind::Thread, group));
                self.by_domain.insert((who.pid, name), self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let Some(lanes) = self.rows.get_mut(rows) else { return Ok(()) };
        // Its end is not known yet.
        let Some(place) = lanes.take(&mut out.archive, range.begin, u64::MAX) else {
            self.crowded += 1;
            return Ok(());
        };
        let (lane, location) = (place.lane, place.location);
        self.open.insert(range.key, Row { rows, lane, location, region });
        out.enter(location, range.begin, region, &self.with)
    }

    /// Ends a range; `why` it was never ended, if so.
    pub fn end(
        &mut self,
        around: Around<'_, '_>,
        range: &Range,
        end: u64,
        why: Option<&str>,
    ) -> Result<(), Error> {
        let Around { out, threads, .. } = around;
        self.with.clear();
        if let Some(why) = why {
            self.with.add(Attribute::Unfinished, out.text(why));
        }
        if range.style.nests() {
            return threads.leave(out, range.thread, (Open::Range(range.key), end), &self.with).map(|_| ());
        }
        let Some(row) = self.open.remove(&range.key) else { return Ok(()) };
        if let Some(lanes) = self.rows.get_mut(row.rows) {
            lanes.give_back(row.lane, end.max(range.begin));
        }
        out.leave(row.location, end, row.region, &self.with)
    }

    /// Ends what cannot be ended any more, since another range has been started under its id;
    /// says how many there are.
    pub fn finish(&mut self, out: &mut Output, end: u64) -> Result<u64, Error> {
        if self.open.is_empty() {
            return Ok(0);
        }
        let mut left: Vec<(u64, Row)> = self.open.drain().collect();
        left.sort_unstable_by_key(|(key, _)| *key);
        self.with.clear();
        self.with.add(Attribute::Unfinished, out.text("its id was given to another range"));
        for (_, row) in &left {
            out.leave(row.location, end, row.region, &self.with)?;
        }
        Ok(left.len() as u64)
    }
}

fn annotate(with: &mut With, out: &mut Output, range: &Range) {
    with.clear();
    if !range.category.is_empty() {
        with.add(Attribute::Category, out.text(&range.category));
    }
    match range.payload {
        None => {}
        Some(Payload::Unsigned(n) | Payload::Bits(n)) => with.add(Attribute::Payload, Value::Unsigned(n)),
        Some(Payload::Signed(n)) => with.add(Attribute::SignedPayload, Value::Signed(n)),
        Some(Payload::Float(n)) => with.add(Attribute::FloatPayload, Value::Float(n)),
    }
}
