//! The sheet that everything is drawn on: rows, slices, counters, in one file or several.
//!
//! A file is whole by itself. Where one ends and the next begins, open slices end and begin
//! anew, a row is described when the file first needs it, and a counter has its value from
//! the file's beginning on. Before the first file, and between files, nothing is written,
//! but what is open is known: so a window begins like any part.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasherDefault;
use std::io;

use super::annotations::Annotations;
use super::names::{Fnv, Of};
use super::packets::Packets;
use super::packets::field::{counter, event, packet, track};
use super::part::{Part, Parts};
use super::proto::Message;

/// What a slice that goes on in another part says.
pub const CONTINUED: &str = "continued, ns since it began";

/// What a counter counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    Bytes,
    Named(&'static str),
}

/// A row about to be described.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// Its key, unlike all others; see `tracks::number`.
    pub key: u64,
    /// The number of the row that it belongs to.
    pub parent: Option<u64>,
    pub name: &'a str,
    /// Where it stands among its parent's rows.
    pub rank: Option<u64>,
    /// Whether its own children have ranks.
    pub sorts: bool,
    /// None if it has slices.
    pub counter: Option<Unit>,
}

impl<'a> Row<'a> {
    /// A row of slices.
    pub fn new(key: u64, parent: Option<u64>, name: &'a str) -> Self {
        Self { key, parent, name, rank: None, sorts: false, counter: None }
    }
}

/// The beginning of a slice, its end, or an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    pub kind: u64,
    pub time: u64,
    /// The number of the row.
    pub track: u64,
    /// Category and name; an end has none.
    pub name: Option<(&'a str, &'a str)>,
    /// Arrows that it is on.
    pub flows: &'a [u64],
    /// Arrows that end here.
    pub ends: &'a [u64],
    /// The arrow that it is on once more in the next file; 0 for none.
    pub onward: u64,
}

impl<'a> Mark<'a> {
    pub fn begin(time: u64, track: u64, category: &'a str, name: &'a str) -> Self {
        let name = Some((category, name));
        Self { kind: event::BEGIN, time, track, name, flows: &[], ends: &[], onward: 0 }
    }

    pub fn end(time: u64, track: u64) -> Self {
        Self { kind: event::END, name: None, ..Self::begin(time, track, "", "") }
    }

    pub fn instant(time: u64, track: u64, category: &'a str, name: &'a str) -> Self {
        Self { kind: event::INSTANT, ..Self::begin(time, track, category, name) }
    }

    pub fn flows(self, flows: &'a [u64], onward: u64) -> Self {
        Self { flows, onward, ..self }
    }
}

/// A slice that has begun.
#[derive(Clone, Debug)]
struct Open {
    begin: u64,
    /// Numbers of category and name.
    names: [u64; 2],
    /// The name, if it has no number.
    text: Option<Box<str>>,
    onward: u64,
}

/// A row that is known.
#[derive(Clone, Debug, Default)]
struct Known {
    parent: Option<u64>,
    /// As it is described.
    descriptor: Vec<u8>,
    /// The last file that describes it.
    file: u32,
    open: Vec<Open>,
    /// Of a counter the last value.
    level: Option<f64>,
    /// The last file with a value.
    counted: u32,
}

/// What is written to. Nothing is before [`Sheet::begin_file`].
pub(super) struct Sheet<'o> {
    out: &'o mut dyn Parts,
    packets: Packets,
    /// Whether a file is open; a window that has not begun has none.
    active: bool,
    /// Annotations for the next mark.
    pub notes: Annotations,
    /// Numbers of the rows, from 1, by key.
    numbers: HashMap<u64, u64, BuildHasherDefault<Fnv>>,
    rows: Vec<Known>,
    /// Slices that are known to end: when, and on which row.
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// Counts the files.
    file: u32,
    /// When this one began.
    from: u64,
    slices: u64,
}

impl<'o> Sheet<'o> {
    pub fn new(out: &'o mut dyn Parts) -> Self {
        Self {
            out,
            packets: Packets::default(),
            active: false,
            notes: Annotations::default(),
            numbers: HashMap::default(),
            rows: Vec::new(),
            ends: BinaryHeap::new(),
            file: 0,
            from: 0,
            slices: 0,
        }
    }

    /// Whether what is drawn now is written.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// When the file began.
    #[inline]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Bytes and slices of this file.
    #[inline]
    pub fn size(&self) -> (u64, u64) {
        (self.packets.bytes(), self.slices)
    }

    /// Begins a file at a time; `epoch` is what has to be added for the time since the Unix epoch.
    pub fn begin_file(&mut self, time: u64, epoch: Option<i64>) -> io::Result<()> {
        self.end_until(time)?;
        self.file += 1;
        (self.active, self.from, self.slices) = (true, time, 0);
        self.notes.clear();
        self.notes.names.begin_file();
        self.packets.begin_file(time, epoch);
        for row in 0..self.rows.len() {
            // Taken out while they are written, which changes none of them.
            let open = std::mem::take(&mut self.rows[row].open);
            for slice in &open {
                self.notes.number(CONTINUED, time.saturating_sub(slice.begin));
                self.reopen(time, row as u64 + 1, slice)?;
            }
            self.rows[row].open = open;
        }
        Ok(())
    }

    /// Ends the file at a time: all of it is written then. Slices that are open end, and
    /// `goes_on` says why.
    pub fn end_file(&mut self, time: u64, goes_on: &str) -> io::Result<Part> {
        self.end_until(time)?;
        for row in 0..self.rows.len() {
            for _ in 0..self.rows[row].open.len() {
                self.notes.text("goes on", goes_on);
                self.write_end(time, row as u64 + 1)?;
            }
            let Known { level, counted, .. } = self.rows[row];
            if let Some(level) = level.filter(|level| counted != self.file && *level != 0.0) {
                self.write_count(self.from, row as u64 + 1, level)?;
            }
        }
        self.packets.flush(self.out)?;
        self.active = false;
        let (bytes, slices) = self.size();
        Ok(Part { number: self.file, from: self.from, to: time, slices, bytes })
    }

    /// The file is whole; another one follows.
    pub fn next_file(&mut self, done: &Part) -> io::Result<()> {
        self.out.next(done)
    }

    /// The number of a row, if it is known.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u64> {
        self.numbers.get(&key).copied()
    }

    /// The number of a row.
    pub fn row(&mut self, row: Row<'_>) -> u64 {
        match self.find(row.key) {
            Some(number) => number,
            None => self.describe(row, |d| d.string(track::NAME, row.name)),
        }
    }

    /// Describes a row by fields of the caller's, also once more.
    pub fn describe(&mut self, row: Row<'_>, write: impl FnOnce(&mut Message)) -> u64 {
        let number = self.find(row.key).unwrap_or_else(|| {
            self.rows.push(Known::default());
            let number = self.rows.len() as u64;
            self.numbers.insert(row.key, number);
            number
        });
        let mut d = Message::default();
        d.varint(track::UUID, number);
        if let Some(parent) = row.parent {
            d.varint(track::PARENT, parent);
        }
        write(&mut d);
        if row.sorts {
            d.varint(track::CHILD_ORDERING, track::EXPLICIT);
        }
        if let Some(rank) = row.rank {
            d.varint(track::RANK, rank);
        }
        if let Some(unit) = row.counter {
            d.message(track::COUNTER, |c| match unit {
                Unit::Count => c.varint(counter::UNIT, counter::COUNT),
                Unit::Bytes => c.varint(counter::UNIT, counter::BYTES),
                Unit::Named(name) => c.string(counter::UNIT_NAME, name),
            });
        }
        if let Some(known) = self.known(number) {
            known.parent = row.parent;
            known.descriptor = d.bytes().to_vec();
            known.file = 0;
        }
        number
    }

    fn known(&mut self, number: u64) -> Option<&mut Known> {
        self.rows.get_mut(usize::try_from(number).ok()?.wrapping_sub(1))
    }

    /// Makes sure that the file describes a row, and what it belongs to.
    #[inline]
    fn need(&mut self, number: u64) -> io::Result<()> {
        let file = self.file;
        match self.known(number) {
            Some(known) if known.file != file => self.need_now(number),
            _ => Ok(()),
        }
    }

    #[cold]
    fn need_now(&mut self, number: u64) -> io::Result<()> {
        let mut missing = Vec::new();
        let (mut next, file) = (Some(number), self.file);
        while let Some(known) = next.and_then(|next| self.known(next))
            && known.file != file
        {
            known.file = file;
            missing.push(next.unwrap_or(0));
            next = known.parent;
        }
        for number in missing.into_iter().rev() {
            let Some(known) = self.rows.get(number as usize - 1) else { continue };
            self.packets.add(self.out, |p| {
                p.message(packet::TRACK_DESCRIPTOR, |d| d.append(&known.descriptor));
            })?;
        }
        Ok(())
    }

    /// Writes a mark with the annotations gathered, and forgets them.
    pub fn mark(&mut self, mark: Mark<'_>) -> io::Result<()> {
        self.end_until(mark.time)?;
        if mark.kind == event::END {
            if let Some(known) = self.known(mark.track) {
                known.open.pop();
            }
            return self.write_end(mark.time, mark.track);
        }
        let (category, name) = mark.name.unwrap_or_default();
        let names = &mut self.notes.names;
        let numbers = [names.number(Of::Category, category), names.number(Of::Event, name)];
        if mark.kind == event::BEGIN {
            let text = (numbers[1] == 0).then(|| name.into());
            let open = Open { begin: mark.time, names: numbers, text, onward: mark.onward };
            if let Some(known) = self.known(mark.track) {
                known.open.push(open);
            }
        }
        if !self.active {
            self.notes.clear();
            return Ok(());
        }
        self.need(mark.track)?;
        self.slices += 1;
        let notes = &mut self.notes;
        self.packets.add(self.out, |p| {
            p.varint(packet::TIMESTAMP, mark.time);
            if notes.names.has_fresh() {
                p.message(packet::INTERNED_DATA, |data| notes.names.write_fresh(data));
            }
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, mark.kind);
                e.varint(event::TRACK, mark.track);
                write_names(e, numbers, category, name);
                for flow in mark.flows {
                    e.fixed64(event::FLOW, *flow);
                }
                for flow in mark.ends {
                    e.fixed64(event::LAST_OF_FLOW, *flow);
                }
                e.append(notes.bytes());
            });
        })?;
        self.notes.clear();
        Ok(())
    }

    /// Writes a slice whose end is known. On its row it may end after what comes later only
    /// if that lies inside of it.
    pub fn slice(&mut self, begin: Mark<'_>, end: u64) -> io::Result<()> {
        let track = begin.track;
        self.mark(begin)?;
        self.ends.push(Reverse((end, track)));
        Ok(())
    }

    /// Slices that were to end with the trace do so now.
    pub fn end_endless(&mut self, time: u64) {
        let end = |end| if end == u64::MAX { time } else { end };
        let ends = std::mem::take(&mut self.ends).into_iter();
        self.ends = ends.map(|Reverse((at, row))| Reverse((end(at), row))).collect();
    }

    /// Writes the ends that are due.
    #[inline]
    fn end_until(&mut self, time: u64) -> io::Result<()> {
        while let Some(&Reverse((end, track))) = self.ends.peek()
            && end <= time
        {
            self.ends.pop();
            if let Some(known) = self.known(track) {
                known.open.pop();
            }
            self.write_bare_end(end, track)?;
        }
        Ok(())
    }

    fn write_bare_end(&mut self, time: u64, track: u64) -> io::Result<()> {
        if !self.active {
            return Ok(());
        }
        self.packets.add(self.out, |p| {
            p.varint(packet::TIMESTAMP, time);
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, event::END);
                e.varint(event::TRACK, track);
            });
        })
    }

    /// An end with the annotations gathered.
    fn write_end(&mut self, time: u64, track: u64) -> io::Result<()> {
        let notes = &mut self.notes;
        if self.active {
            self.packets.add(self.out, |p| {
                p.varint(packet::TIMESTAMP, time);
                if notes.names.has_fresh() {
                    p.message(packet::INTERNED_DATA, |data| notes.names.write_fresh(data));
                }
                p.message(packet::TRACK_EVENT, |e| {
                    e.varint(event::TYPE, event::END);
                    e.varint(event::TRACK, track);
                    e.append(notes.bytes());
                });
            })?;
        }
        notes.clear();
        Ok(())
    }

    fn reopen(&mut self, time: u64, track: u64, slice: &Open) -> io::Result<()> {
        self.need(track)?;
        self.slices += 1;
        let notes = &mut self.notes;
        notes.names.again(Of::Category, slice.names[0]);
        notes.names.again(Of::Event, slice.names[1]);
        self.packets.add(self.out, |p| {
            p.varint(packet::TIMESTAMP, time);
            p.message(packet::INTERNED_DATA, |data| notes.names.write_fresh(data));
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, event::BEGIN);
                e.varint(event::TRACK, track);
                write_names(e, slice.names, "", slice.text.as_deref().unwrap_or(""));
                if slice.onward != 0 {
                    e.fixed64(event::FLOW, slice.onward);
                }
                e.append(notes.bytes());
            });
        })?;
        notes.clear();
        Ok(())
    }

    /// From `time` on, a counter has this value; what was before the file holds from its
    /// beginning on.
    pub fn count(&mut self, time: u64, track: u64, value: f64) -> io::Result<()> {
        let (file, from) = (self.file, self.from);
        let time = if self.active { time.max(from) } else { time };
        let Some(known) = self.known(track) else { return Ok(()) };
        let before = known.level.replace(value).filter(|_| known.counted != file && time > from);
        if !self.active {
            return Ok(());
        }
        if let Some(before) = before {
            self.write_count(from, track, before)?;
        }
        self.write_count(time, track, value)
    }

    fn write_count(&mut self, time: u64, track: u64, value: f64) -> io::Result<()> {
        /// Up to here, every whole number is a `f64`.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        self.need(track)?;
        let file = self.file;
        if let Some(known) = self.known(track) {
            known.counted = file;
        }
        self.packets.add(self.out, |p| {
            p.varint(packet::TIMESTAMP, time);
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, event::COUNTER);
                e.varint(event::TRACK, track);
                if value.fract() == 0.0 && value.abs() <= EXACT {
                    e.varint(event::COUNTER_VALUE, value as i64 as u64);
                } else {
                    e.double(event::DOUBLE_COUNTER_VALUE, value);
                }
            });
        })
    }
}

fn write_names(e: &mut Message, numbers: [u64; 2], category: &str, name: &str) {
    for (number, text, by_number, itself) in [
        (numbers[0], category, event::CATEGORY, event::CATEGORY_ITSELF),
        (numbers[1], name, event::NAME, event::NAME_ITSELF),
    ] {
        match number {
            0 => e.string(itself, text),
            number => e.varint(by_number, number),
        }
    }
}
