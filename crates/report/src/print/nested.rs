//! Commands by the call that enqueued them, for a tree: they run after it, mostly when it has ended.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::spans::{self, At, Visitor, walk_as_recorded};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Stopped, Watch};

/// Commands that are nested; those that come later have lines of their own.
const KEPT: usize = 1 << 20;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 14;

/// A command below its call.
#[derive(Debug)]
pub(super) struct Command {
    pub time: u64,
    /// It in words.
    pub text: String,
    /// Whether it is what a filter wants.
    pub wanted: bool,
}

/// Commands by what they name their call with.
#[derive(Debug, Default)]
pub(super) struct Nested {
    lines: HashMap<u64, Vec<Command>>,
}

impl Nested {
    /// The first commands of a trace: `line` is asked for the words of each, and whether it is wanted, with the time of
    /// the first event.
    pub fn of(
        trace: &Trace,
        watch: Watch<'_>,
        line: impl FnMut(At<'_>, &spans::Command<'_>, u64) -> (String, bool),
    ) -> Result<Self, Stopped> {
        let mut collector =
            Collector { line, watch, left: WATCHED, first: None, kept: 0, nested: Self::default() };
        match walk_as_recorded(trace, &mut collector) {
            ControlFlow::Continue(_) => Ok(collector.nested),
            ControlFlow::Break(stopped) => Err(stopped),
        }
    }

    /// Whether there are commands of a call.
    pub fn has(&self, cause: u64) -> bool {
        self.lines.contains_key(&cause)
    }

    /// The commands of a call.
    pub fn take(&mut self, cause: u64) -> Vec<Command> {
        self.lines.remove(&cause).unwrap_or_default()
    }
}

/// Whether a command is one of the first, of which `before` came already.
pub(super) fn is_nested(command: &spans::Command<'_>, before: usize) -> bool {
    command.cause != 0 && before < KEPT
}

struct Collector<'w, L> {
    line: L,
    watch: Watch<'w>,
    left: u32,
    first: Option<u64>,
    kept: usize,
    nested: Nested,
}

impl<L: FnMut(At<'_>, &spans::Command<'_>, u64) -> (String, bool)> Visitor for Collector<'_, L> {
    type Break = Stopped;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.first.get_or_insert(at.time);
        self.left -= 1;
        if self.left > 0 {
            return ControlFlow::Continue(());
        }
        self.left = WATCHED;
        // They are counted when they are printed.
        match (self.watch)(0) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Stopped),
        }
    }

    fn command(
        &mut self,
        at: At<'_>,
        command: &spans::Command<'_>,
        _: &Event<'_, '_>,
    ) -> ControlFlow<Stopped> {
        if is_nested(command, self.kept) {
            self.kept += 1;
            let (text, wanted) = (self.line)(at, command, self.first.unwrap_or(at.time));
            let of_call = self.nested.lines.entry(command.cause_id()).or_default();
            of_call.push(Command { time: at.time, text, wanted });
        }
        ControlFlow::Continue(())
    }
}
