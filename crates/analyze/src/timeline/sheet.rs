//! The sheet that everything is drawn on: rows, slices, counters.

use std::collections::HashSet;
use std::io::{self, Write};

use super::annotations::Annotations;
use super::names::Of;
use super::packets::Packets;
use super::packets::field::{counter, event, packet, track};
use super::proto::Message;

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
    /// Its number, unlike all others.
    pub number: u64,
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
    pub fn new(number: u64, parent: Option<u64>, name: &'a str) -> Self {
        Self { number, parent, name, rank: None, sorts: false, counter: None }
    }
}

/// The beginning of a slice, its end, or an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    pub kind: u64,
    pub time: u64,
    pub track: u64,
    /// Category and name; an end has none.
    pub name: Option<(&'a str, &'a str)>,
    /// Arrows that it is on.
    pub flows: &'a [u64],
    /// Arrows that end here.
    pub ends: &'a [u64],
}

impl<'a> Mark<'a> {
    pub fn begin(time: u64, track: u64, category: &'a str, name: &'a str) -> Self {
        Self { kind: event::BEGIN, time, track, name: Some((category, name)), flows: &[], ends: &[] }
    }

    pub fn end(time: u64, track: u64) -> Self {
        Self { kind: event::END, time, track, name: None, flows: &[], ends: &[] }
    }

    pub fn instant(time: u64, track: u64, category: &'a str, name: &'a str) -> Self {
        Self { kind: event::INSTANT, ..Self::begin(time, track, category, name) }
    }

    pub fn flows(self, flows: &'a [u64]) -> Self {
        Self { flows, ..self }
    }
}

/// What is written to. Nothing is before [`Sheet::open`].
pub(super) struct Sheet<'o> {
    /// Taken by `packets` at the first event, whose time the file begins with.
    out: Option<&'o mut dyn Write>,
    packets: Option<Packets<'o>>,
    /// Annotations for the next mark.
    pub notes: Annotations,
    /// Numbers of the rows that are described.
    rows: HashSet<u64>,
}

impl<'o> Sheet<'o> {
    pub fn new(out: &'o mut dyn Write) -> Self {
        Self { out: Some(out), packets: None, notes: Annotations::default(), rows: HashSet::new() }
    }

    /// Begins the file, if it has not begun.
    pub fn open(&mut self, first: u64, epoch: Option<i64>) {
        if let Some(out) = self.out.take() {
            self.packets = Some(Packets::new(out, first, epoch));
        }
    }

    /// Whether a row is described.
    pub fn has(&self, row: u64) -> bool {
        self.rows.contains(&row)
    }

    /// Describes a row, if it is not.
    pub fn row(&mut self, row: Row<'_>) -> io::Result<()> {
        if self.has(row.number) {
            return Ok(());
        }
        self.describe(row, |d| d.string(track::NAME, row.name))
    }

    /// Describes a row by fields of the caller's, also once more.
    pub fn describe(&mut self, row: Row<'_>, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.rows.insert(row.number);
        let Some(packets) = &mut self.packets else { return Ok(()) };
        packets.add(|p| {
            p.message(packet::TRACK_DESCRIPTOR, |d| {
                d.varint(track::UUID, row.number);
                if let Some(parent) = row.parent {
                    d.varint(track::PARENT, parent);
                }
                write(d);
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
            });
        })
    }

    /// Writes a mark with the annotations gathered, and forgets them.
    pub fn mark(&mut self, mark: Mark<'_>) -> io::Result<()> {
        let Some(packets) = &mut self.packets else { return Ok(()) };
        let notes = &mut self.notes;
        let numbers = mark.name.map(|(category, name)| {
            (notes.names.number(Of::Category, category), notes.names.number(Of::Event, name))
        });
        packets.add(|p| {
            p.varint(packet::TIMESTAMP, mark.time);
            if notes.names.has_fresh() {
                p.message(packet::INTERNED_DATA, |data| notes.names.write_fresh(data));
            }
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, mark.kind);
                e.varint(event::TRACK, mark.track);
                if let Some((category, name)) = numbers {
                    e.varint(event::CATEGORY, category);
                    e.varint(event::NAME, name);
                }
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

    /// From `time` on, a counter has this value.
    pub fn count(&mut self, time: u64, track: u64, value: f64) -> io::Result<()> {
        /// Up to here, every whole number is a `f64`.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let Some(packets) = &mut self.packets else { return Ok(()) };
        packets.add(|p| {
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

    /// Writes what has been gathered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.packets.as_mut().map_or(Ok(()), Packets::flush)
    }
}
