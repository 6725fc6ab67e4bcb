//! Ranges and collectives: what calls of few functions say, in the order of time.
//!
//! The sums of all other calls need no order, so this is a walk of its own, over these functions and
//! the commands. What it passes over decides nothing here as long as each call has its one end, or
//! is open when the trace ends: calls that have lost theirs show by what happens around them.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::{Collector, WATCHED};
use hetrace_trace::spans::{At, Call, Command, Open, Orphan, Summary, Unfinished, Visitor, walk_part};
use hetrace_trace::trace::{Only, Trace};
use hetrace_trace::watch::Stopped;

/// A collector of nothing else.
pub(super) struct Marks<'t> {
    collector: Collector<'t>,
    summary: Summary,
}

/// All ranges and collectives of a trace.
///
/// # Errors
/// When the query's watch says so.
pub(super) fn marks<'t>(trace: &'t Trace, collector: Collector<'t>) -> Result<Marks<'t>, Stopped> {
    let only = Only::with_commands(trace, |function| collector.marks(function));
    let mut marks = Marks { collector, summary: Summary::default() };
    match walk_part(trace.cursor_of_only(&only), &mut marks) {
        ControlFlow::Continue(summary) => Ok(Marks { summary, ..marks }),
        ControlFlow::Break(stopped) => Err(stopped),
    }
}

impl Visitor for Marks<'_> {
    type Break = Stopped;

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.collector.left -= 1;
        if self.collector.left == 0 {
            self.collector.left = WATCHED;
            // The events are counted by who reads all of them.
            if self.collector.query.watch.is_some_and(|watch| watch(0).is_break()) {
                return ControlFlow::Break(Stopped);
            }
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.collector.mark_entry(at, call, event);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.collector.mark_exit(at, call, event);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<Stopped> {
        self.collector.mark_unfinished(at, call);
        ControlFlow::Continue(())
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.collector.orphan(at, call, event)
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.collector.mark_command(at, command);
        ControlFlow::Continue(())
    }
}

impl<'t> Collector<'t> {
    /// Whether ranges or collectives have to do with a function.
    fn marks(&self, function: hetrace_trace::trace::FunctionId) -> bool {
        self.marked.needs(function) || self.collectives.needs(function) || self.makers.needs(function)
    }

    #[inline]
    pub(super) fn mark_entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        if self.in_ranges {
            let step = self.marked.ranges().entry(at, call, event);
            self.step(at, step);
        }
        if self.in_collectives {
            self.collectives.entry(at, call, event);
            self.makers.entry(call, event);
        }
    }

    #[inline]
    pub(super) fn mark_exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        if self.in_ranges {
            let step = self.marked.ranges().exit(at, call, event);
            self.step(at, step);
        }
        if self.in_collectives {
            self.collectives.exit(at, call, event);
        }
    }

    pub(super) fn mark_unfinished(&mut self, at: At<'_>, call: &Unfinished) {
        if !self.choice.any || self.choice.has_call(call.function, at.who(), call.start) {
            self.makers.unfinished(call);
        }
        if self.in_ranges {
            let step = self.marked.ranges().unfinished(at, call);
            self.step(at, step);
        }
    }

    #[inline]
    pub(super) fn mark_command(&mut self, at: At<'_>, command: &Command<'_>) {
        if !self.choice.any || self.choice.has_command(command, at.time) {
            self.marked.command(at, command);
        }
        self.collectives.command(at, command);
    }

    /// Takes in what the other walk has found, if it surely is what one walk over all would
    /// have: nothing was lost, and no call is without an end or without a begin, but for those that were
    /// open when the trace ended.
    pub(super) fn take_marks(&mut self, marks: Marks<'t>, summary: &Summary) -> bool {
        let whole =
            |s: &Summary| s.orphans == 0 && s.lost_events == 0 && s.lost_packets == 0 && s.damaged == 0;
        self.marked = marks.collector.marked;
        self.collectives = marks.collector.collectives;
        self.makers = marks.collector.makers;
        let known = whole(summary) && whole(&marks.summary) && self.given_up == 0;
        self.marked_threads = Some(marks.summary.threads);
        known
    }
}
