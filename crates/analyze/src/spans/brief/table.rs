//! What a scan needs to know of each stream class.

use hetrace_ctf::read::{Scanner, Want};

use super::digest::MOST_FUNCTIONS;
use crate::trace::{Class, Identity, Trace, Verdict};

/// A stream class.
#[derive(Debug)]
pub(super) struct Table<'t> {
    pub scanner: Option<Scanner<'t>>,
    /// By event class.
    pub rows: Vec<Row>,
}

/// An event class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub function: u32,
    pub kind: RowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Entry,
    /// Failed if the field is not 0.
    ExitZero,
    /// Failed if the field is 0.
    ExitNonZero,
    /// Never failed, as far as is told.
    Exit,
    /// The event is needed.
    Whole,
}

impl Row {
    fn of(class: &Class) -> (Self, Want) {
        let row = |function: u32, kind| Row { function, kind };
        let (row, want) = match class {
            Class::Entry(f) => (row(f.0, RowKind::Entry), Want::Time),
            Class::Exit(f, Verdict::Always) => (row(f.0, RowKind::Exit), Want::Time),
            Class::Exit(f, Verdict::Zero(at)) => (row(f.0, RowKind::ExitZero), Want::Field(*at)),
            Class::Exit(f, Verdict::NonZero(at)) => (row(f.0, RowKind::ExitNonZero), Want::Field(*at)),
            _ => (row(0, RowKind::Whole), Want::Whole),
        };
        match usize::try_from(row.function) {
            Ok(function) if function < MOST_FUNCTIONS => (row, want),
            _ => (Row { function: 0, kind: RowKind::Whole }, Want::Whole),
        }
    }
}

impl<'t> Table<'t> {
    /// The tables of all stream classes.
    pub fn all(trace: &'t Trace) -> Vec<Self> {
        let streams = trace.ctf().class().streams.iter().enumerate();
        let table = |(position, class)| {
            let classes = trace.classes().of_stream(position);
            let rows: Vec<(Row, Want)> = classes.iter().map(Row::of).collect();
            let context = match Identity::of(class) {
                Identity::Packet => Some([None, None]),
                // The name is looked at when the thread changes.
                Identity::Event { pid, tid, .. } => Some([pid, Some(tid)]),
            };
            let want = |index: usize| rows.get(index).map_or(Want::Whole, |(_, want)| *want);
            let scanner = context.and_then(|context| trace.ctf().scanner(position, context, want));
            Self { scanner, rows: rows.into_iter().map(|(row, _)| row).collect() }
        };
        streams.map(table).collect()
    }
}
