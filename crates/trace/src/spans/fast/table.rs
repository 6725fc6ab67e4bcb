//! What a scan needs to know of each stream class.

use hetrace_ctf::read::{Scanner, Want};

use super::digest::{Kind, MOST_FUNCTIONS, what};
use crate::hash::QuickMap;
use crate::trace::{Class, FunctionId, Identity, Trace, Verdict};
use crate::values::Plans;

/// A stream class.
#[derive(Debug)]
pub(super) struct Table<'t> {
    pub scanner: Option<Scanner<'t>>,
}

/// What a scan reads of events of a class: their function and kind, and their result. `exits` are the classes of
/// exits, by function.
fn want(index: usize, class: &Class, noted: &Plans<'_>, exits: &QuickMap<FunctionId, usize>) -> Option<Want> {
    let rare = |field, open| {
        let number = u32::try_from(index).ok().filter(|number| (*number as usize) < MOST_FUNCTIONS)?;
        Some(Want { field, mark: what(Kind::Rare, number), open, then: None })
    };
    let mut then = None;
    let (function, kind, field) = match class {
        Class::Entry(function) if noted.are_for(*function) => return rare(None, false),
        Class::Exit(function, verdict) if noted.are_for(*function) => return rare(verdict.field(), false),
        Class::Entry(function) => {
            then = exits.get(function).copied();
            (function, Kind::Entry, None)
        }
        Class::Exit(function, Verdict::Always) => (function, Kind::Exit, None),
        Class::Exit(function, Verdict::Zero(at)) => (function, Kind::Exit, Some(*at)),
        Class::Exit(function, Verdict::ZeroOr(at, _)) => (function, Kind::State, Some(*at)),
        Class::Exit(function, Verdict::NonZero(at)) => (function, Kind::NonZero, Some(*at)),
        Class::Command(reader) if reader.is_quick() => return rare(None, true),
        _ => return None,
    };
    Some(Want { field, mark: what(kind, function.0), open: false, then })
}

impl<'t> Table<'t> {
    /// The tables of all stream classes; calls of the functions that `noted` is for are shown with
    /// their values.
    pub fn all(trace: &'t Trace, noted: &Plans<'_>) -> Vec<Self> {
        let streams = trace.ctf().class().streams.iter().enumerate();
        let table = |(position, class)| {
            let classes = trace.classes().of_stream(position);
            let context = match Identity::of(class) {
                Identity::Packet => Some([None, None]),
                // The name is looked at when the thread changes.
                Identity::Event { pid, tid, .. } => Some([pid, tid]),
            };
            let exits = classes.iter().enumerate().filter_map(|(index, class)| match class {
                Class::Exit(function, _) => Some((*function, index)),
                _ => None,
            });
            let exits = exits.collect();
            let want = |index: usize| want(index, classes.get(index)?, noted, &exits);
            Self { scanner: context.and_then(|context| trace.ctf().scanner(position, context, want)) }
        };
        streams.map(table).collect()
    }
}
