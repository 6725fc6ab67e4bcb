//! Rows of what a program says of itself: ranges, marks and counters.
//!
//! What a thread pushed lies on rows of the thread, one for each domain, and so do
//! its marks. What was started may be ended by any thread and overlap anything, so
//! it lies on rows of the process, one for each domain, side by side where needed. Counters are the process's, too.

use std::collections::HashMap;
use std::io;

use super::annotations::Annotations;
use super::lanes::Lanes;
use super::sheet::{Mark, Row, Sheet, Unit};
use super::tracks::{Kind, number};
use hetrace_trace::ranges::{Counted, Payload, Range, Step, Style};
use hetrace_trace::spans::cause_id;
use hetrace_trace::stacks::Stacks;

/// A range that is drawn and has not ended.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    row: u64,
    begin: u64,
    /// Rows of a domain and which of them, if it was started.
    lane: Option<(u64, usize)>,
}

/// Where a range belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Short name of the API, and how people spell it.
    pub api: &'a str,
    pub title: &'a str,
    /// Rows of the process and of the thread.
    pub process: u64,
    pub thread: u64,
    /// The code that begins ranges.
    pub stacks: &'a Stacks,
}

/// All ranges that are open, and rows for more.
#[derive(Debug, Default)]
pub(super) struct RangeRows {
    open: HashMap<u64, Drawn>,
    started: HashMap<u64, Lanes>,
    /// Until when a thread's row of a domain is drawn: what was lost may make a
    /// range begin before the end of one that is over.
    drawn: HashMap<u64, u64>,
}

impl RangeRows {
    /// Draws what a call turned out to do.
    pub fn draw(&mut self, sheet: &mut Sheet<'_>, place: Place<'_>, step: &Step) -> io::Result<()> {
        match step {
            Step::Begun(range) => self.begin(sheet, place, range),
            Step::Ended { range, end, by } => {
                if *by != range.thread {
                    sheet.notes.text("ended by", "another thread");
                }
                self.end(sheet, range, *end)
            }
            Step::Mark(mark) => {
                let row = pushed(sheet, place, mark);
                annotate(&mut sheet.notes, place.stacks, mark);
                sheet.mark(Mark::instant(mark.begin, row, place.api, title(mark)))
            }
            Step::Counted(counted) => count(sheet, place, counted),
        }
    }

    fn begin(&mut self, sheet: &mut Sheet<'_>, place: Place<'_>, range: &Range) -> io::Result<()> {
        let (row, lane) = match range.style {
            Style::Pushed | Style::Probed => (pushed(sheet, place, range), None),
            Style::Started => {
                let domain = number(Kind::Started, [place.process, hash(place.api), hash(&range.domain)]);
                let lanes = self.started.entry(domain).or_default();
                // Until it ends, nobody knows when.
                let Some(lane) = lanes.take(range.begin, u64::MAX) else { return Ok(()) };
                let key = number(Kind::Started, [domain, lane as u64, 1]);
                let row = sheet.find(key).unwrap_or_else(|| {
                    let name = domain_title(place, range) + ": started ranges";
                    sheet.row(Row::new(key, Some(place.process), &name))
                });
                (row, Some((domain, lane)))
            }
        };
        let begin = range.begin.max(self.drawn.get(&row).copied().unwrap_or(0));
        annotate(&mut sheet.notes, place.stacks, range);
        self.open.insert(range.key, Drawn { row, begin, lane });
        self.drawn.insert(row, begin);
        sheet.mark(Mark::begin(begin, row, place.api, title(range)))
    }

    /// Ends a range, if its beginning is drawn.
    pub fn end(&mut self, sheet: &mut Sheet<'_>, range: &Range, end: u64) -> io::Result<()> {
        let Some(drawn) = self.open.remove(&range.key) else {
            sheet.notes.clear();
            return Ok(());
        };
        let end = end.max(drawn.begin).max(self.drawn.get(&drawn.row).copied().unwrap_or(0));
        self.drawn.insert(drawn.row, end);
        if let Some((domain, lane)) = drawn.lane
            && let Some(lanes) = self.started.get_mut(&domain)
        {
            lanes.give_back(lane, end);
        }
        sheet.mark(Mark::end(end, drawn.row))
    }
}

/// Draws the value of a counter, if it is a number.
fn count(sheet: &mut Sheet<'_>, place: Place<'_>, counted: &Counted) -> io::Result<()> {
    if !counted.value.is_finite() {
        return Ok(());
    }
    let key = number(Kind::Counter, [place.process, hash(place.api), counted.key]);
    let row = sheet.find(key).unwrap_or_else(|| {
        let title = counted.title();
        sheet.row(Row { counter: Some(Unit::Count), ..Row::new(key, Some(place.process), &title) })
    });
    sheet.count(counted.time, row, counted.value)
}

/// The row of what a thread pushed in a domain.
fn pushed(sheet: &mut Sheet<'_>, place: Place<'_>, range: &Range) -> u64 {
    let key = number(Kind::Pushed, [place.thread, hash(place.api), hash(&range.domain)]);
    sheet.find(key).unwrap_or_else(|| {
        let name = domain_title(place, range);
        sheet.row(Row::new(key, Some(place.thread), &name))
    })
}

fn domain_title(place: Place<'_>, range: &Range) -> String {
    if range.domain.is_empty() { place.title.to_owned() } else { format!("{} {}", place.title, range.domain) }
}

fn title(range: &Range) -> &str {
    if range.message.is_empty() { "(no message)" } else { &range.message }
}

fn annotate(notes: &mut Annotations, stacks: &Stacks, range: &Range) {
    if !range.category.is_empty() {
        notes.text("category", &range.category);
    }
    match range.payload {
        None => {}
        Some(Payload::Unsigned(value)) => notes.number("payload", value),
        Some(Payload::Signed(value)) => notes.signed("payload", value),
        Some(Payload::Float(value)) => notes.float("payload", value),
        Some(Payload::Bits(value)) => notes.pointer("payload", value),
    }
    if range.color > 0 {
        notes.text("color", &format!("#{:06x}", range.color & 0x00ff_ffff));
    }
    notes.stack(stacks, range.stack);
}

/// A number for a text that is part of a row's identity.
fn hash(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |hash, byte| cause_id(hash as i64, byte.into(), 0))
}
