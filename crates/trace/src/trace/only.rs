//! Some of the calls of a trace, for walks that look for nothing else.

use hetrace_ctf::read::{Scanner, Want};

use super::Trace;
use super::class::{Class, Classes};
use super::functions::FunctionId;
use super::identity::Identity;

/// Which calls are looked for. A [`Cursor`](super::Cursor) of these passes over most of the
/// other events without looking at them; the few that it does show are of [`Class::Other`].
#[derive(Debug)]
pub struct Only<'t> {
    classes: Classes,
    /// By stream class: how to get past the others.
    scanners: Vec<Option<Scanner<'t>>>,
}

impl<'t> Only<'t> {
    /// Calls of the functions that `wanted` is true of.
    pub fn new(trace: &'t Trace, wanted: impl Fn(FunctionId) -> bool) -> Self {
        Self::of(trace, false, wanted)
    }

    /// The same, and all commands.
    pub fn with_commands(trace: &'t Trace, wanted: impl Fn(FunctionId) -> bool) -> Self {
        Self::of(trace, true, wanted)
    }

    fn of(trace: &'t Trace, commands: bool, wanted: impl Fn(FunctionId) -> bool) -> Self {
        let keep = |class: &Class| match class {
            Class::Entry(function) | Class::Exit(function, _) | Class::Fold(function, ..) => {
                wanted(*function)
            }
            Class::Command(_) => commands,
            Class::OwnWork(_) | Class::BudgetStep | Class::Stack(..) => true,
            _ => false,
        };
        let classes = trace.classes().map(|class| if keep(class) { class.clone() } else { Class::Other });
        let streams = trace.ctf().class().streams.iter().enumerate();
        let scanner = |(position, class)| {
            // Where each event has its thread, they have to be looked at.
            let owned = matches!(Identity::of(class), Identity::Packet);
            let events = classes.of_stream(position);
            let passed = |index: usize| events.get(index).is_none_or(|class| *class == Class::Other);
            let want =
                |index| passed(index).then_some(Want { field: None, mark: 0, open: false, then: None });
            owned.then(|| trace.ctf().scanner(position, [None, None], want))?
        };
        let scanners = streams.map(scanner).collect();
        Self { classes, scanners }
    }

    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(super) fn scanner(&self, stream: usize) -> Option<&Scanner<'t>> {
        self.scanners.get(stream)?.as_ref()
    }
}
