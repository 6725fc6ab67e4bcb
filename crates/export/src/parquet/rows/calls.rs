//! Rows of calls.

use std::sync::Arc;

use hetrace_ctf::read::Event;
use hetrace_trace::args::Args;
use hetrace_trace::spans::{At, Call, Fold, Open, Orphan, Unfinished, Why};
use hetrace_trace::stacks::StackId;
use hetrace_trace::trace::{FunctionId, Trace};

use super::super::batch::Cell;
use super::super::json;
use super::super::tables::CALLS;
use super::{Rows, Step, ns};

/// An open call, and those that were at its place before: its room is used again.
#[derive(Debug, Default)]
struct Slot<'t> {
    /// Its number; 0 if none is open here.
    id: i64,
    parent: i64,
    range: Option<Arc<str>>,
    stack: StackId,
    args: Args<'t>,
}

/// Open calls.
#[derive(Debug, Default)]
pub(super) struct Calls<'t> {
    /// By thread and depth.
    open: Vec<Vec<Slot<'t>>>,
    last: i64,
    arguments: String,
    returned: String,
}

impl<'t> Calls<'t> {
    fn number(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    fn slot(&mut self, thread: usize, depth: u32) -> Option<&mut Slot<'t>> {
        self.open.get_mut(thread)?.get_mut(depth as usize).filter(|slot| slot.id != 0)
    }

    /// The number of the innermost open call of a thread that is less deep; 0 for none.
    fn around(&self, thread: usize, depth: u32) -> i64 {
        let open = self.open.get(thread).map_or(&[][..], Vec::as_slice);
        let above = open.get(..(depth as usize).min(open.len())).unwrap_or(&[]);
        above.iter().rev().map(|slot| slot.id).find(|id| *id != 0).unwrap_or(0)
    }

    /// The number of the innermost open call of a thread; 0 for none.
    pub fn innermost(&self, thread: usize) -> i64 {
        self.around(thread, u32::MAX)
    }

    fn enter(&mut self, thread: usize, depth: u32) -> &mut Slot<'t> {
        let (id, parent) = (self.number(), self.around(thread, depth));
        if self.open.len() <= thread {
            self.open.resize_with(thread + 1, Vec::new);
        }
        let open = &mut self.open[thread];
        let depth = depth as usize;
        if open.len() <= depth {
            open.resize_with(depth + 1, Slot::default);
        }
        let slot = &mut open[depth];
        (slot.id, slot.parent) = (id, parent);
        slot
    }
}

/// A row of `calls`, all but who.
#[derive(Clone, Copy, Default)]
struct Row<'r> {
    id: i64,
    parent: i64,
    state: &'r str,
    missing: &'r str,
    start: u64,
    end: Option<u64>,
    duration: Option<u64>,
    own: Option<u64>,
    /// What tracing took of the two.
    cost: Option<(u64, u64)>,
    count: u64,
    depth: Option<u32>,
    error: Option<i64>,
    result: Option<&'r str>,
    arguments: &'r str,
    returned: &'r str,
    range: Option<&'r str>,
    /// The command that it ended on.
    waited: Option<i64>,
    /// The code that made it.
    stack: StackId,
}

pub(super) fn api_of(trace: &Trace, function: FunctionId) -> &str {
    trace.functions().apis().get(trace.functions().get(function).api).map_or("", String::as_str)
}

impl Rows<'_, '_> {
    /// Notes that a call began, and returns its number.
    pub(super) fn enter(&mut self, call: &Open, event: &Event<'_, '_>) -> i64 {
        let range = self.marks.innermost(call.thread).cloned();
        let slot = self.calls.enter(call.thread.index(), call.depth);
        (slot.range, slot.stack) = (range, call.stack);
        if let Some(plans) = &self.plans {
            slot.args.read(plans, event, None);
        }
        slot.id
    }

    pub(super) fn leave(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let mut arguments = std::mem::take(&mut self.calls.arguments);
        let mut returned = std::mem::take(&mut self.calls.returned);
        arguments.clear();
        returned.clear();
        let (mut id, mut parent, mut range, mut stack) = (0, 0, None, StackId::NONE);
        if let Some(slot) = self.calls.slot(call.thread.index(), call.depth) {
            (id, parent, range) = (std::mem::take(&mut slot.id), slot.parent, slot.range.take());
            stack = slot.stack;
            if let Some(plans) = &self.plans {
                self.exit.read(plans, event, Some(&slot.args));
                json::write_arguments(&mut arguments, &slot.args);
                json::write_arguments(&mut returned, &self.exit);
            }
        }
        let waited = match self.waits.exit(at, call) {
            Some(wait) => self.waited(&wait, id)?,
            None => None,
        };
        let exit = std::mem::take(&mut self.exit);
        let row = Row {
            id,
            parent,
            state: "finished",
            start: call.start,
            end: Some(call.end),
            duration: Some(call.duration()),
            own: Some(call.own),
            cost: Some((call.cost, call.own_cost)),
            count: 1,
            depth: Some(call.depth),
            error: call.error,
            result: self.plans.as_ref().and_then(|_| json::result(&exit)),
            arguments: &arguments,
            returned: &returned,
            range: range.as_deref(),
            waited,
            stack,
            ..Row::default()
        };
        let step = self.call(at, call.function, &row);
        (self.calls.arguments, self.calls.returned, self.exit) = (arguments, returned, exit);
        step
    }

    pub(super) fn give_up(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let mut arguments = String::new();
        let (mut id, mut parent, mut range, mut stack) = (0, 0, None, StackId::NONE);
        if let Some(slot) = self.calls.slot(call.thread.index(), call.depth) {
            (id, parent, range) = (std::mem::take(&mut slot.id), slot.parent, slot.range.take());
            stack = slot.stack;
            if self.plans.is_some() {
                json::write_arguments(&mut arguments, &slot.args);
            }
        }
        let missing = match call.why {
            Why::TraceEnds => "trace ends",
            Why::ExitLost => "exit lost",
            Why::ThreadEnded => "thread ended",
        };
        let row = Row {
            id,
            parent,
            state: "unfinished",
            missing,
            start: call.start,
            count: 1,
            depth: Some(call.depth),
            arguments: &arguments,
            range: range.as_deref(),
            stack,
            ..Row::default()
        };
        self.call(at, call.function, &row)
    }

    pub(super) fn orphaned(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> Step {
        let (mut returned, mut exit) = (String::new(), std::mem::take(&mut self.exit));
        if let Some(plans) = &self.plans {
            exit.read(plans, event, None);
            json::write_arguments(&mut returned, &exit);
        }
        let range = self.marks.innermost(call.thread).cloned();
        let row = Row {
            id: self.calls.number(),
            parent: self.calls.around(call.thread.index(), u32::MAX),
            state: "orphan",
            start: call.end,
            end: Some(call.end),
            count: 1,
            error: call.error,
            result: self.plans.as_ref().and_then(|_| json::result(&exit)),
            returned: &returned,
            range: range.as_deref(),
            ..Row::default()
        };
        let step = self.call(at, call.function, &row);
        self.exit = exit;
        step
    }

    pub(super) fn folded(&mut self, at: At<'_>, fold: &Fold) -> Step {
        let range = self.marks.innermost(fold.thread).cloned();
        let id = self.calls.number();
        let waited = match self.waits.fold(at, fold) {
            Some(wait) => self.waited(&wait, id)?,
            None => None,
        };
        let row = Row {
            id,
            parent: self.calls.around(fold.thread.index(), fold.depth),
            state: if fold.summed { "added up" } else { "folded" },
            start: fold.first,
            end: Some(fold.last),
            duration: Some(fold.total),
            own: Some(fold.total),
            cost: Some((fold.cost, fold.cost)),
            count: fold.count,
            depth: Some(fold.depth),
            error: fold.error,
            range: range.as_deref(),
            waited,
            ..Row::default()
        };
        self.call(at, fold.function, &row)
    }

    pub(super) fn unknown_call(&mut self, at: At<'_>, api: &str, name: &str, event: &Event<'_, '_>) -> Step {
        self.unknown_calls += 1;
        let mut arguments = String::new();
        if let Some(plans) = &self.plans {
            self.exit.read(plans, event, None);
            json::write_arguments(&mut arguments, &self.exit);
        }
        let range = self.marks.innermost(at.thread).cloned();
        let row = Row {
            id: self.calls.number(),
            parent: self.calls.around(at.thread.index(), u32::MAX),
            state: "unknown",
            start: at.time,
            count: 1,
            arguments: &arguments,
            range: range.as_deref(),
            ..Row::default()
        };
        self.named_call(at, api, name, None, &row)
    }

    fn call(&mut self, at: At<'_>, function: FunctionId, row: &Row<'_>) -> Step {
        let trace = self.trace;
        let error = row.error.map(|code| trace.error_name(function, code));
        let name = &trace.functions().get(function).name;
        self.named_call(at, api_of(trace, function), name, error.as_deref(), row)
    }

    fn named_call(
        &mut self,
        at: At<'_>,
        api: &str,
        name: &str,
        error_name: Option<&str>,
        row: &Row<'_>,
    ) -> Step {
        let who = at.who();
        let source = self.sources.of(row.stack);
        let frame = source.as_ref().map(|source| &source.frame);
        let cost = row.cost.filter(|_| self.trace.costs().is_known());
        let cells: [Cell<'_>; CALLS.columns.len()] = [
            row.id.into(),
            Cell::number(u64::try_from(row.parent).unwrap_or(0)),
            who.pid.into(),
            who.tid.into(),
            Cell::text(&who.name),
            api.into(),
            name.into(),
            row.state.into(),
            Cell::text(row.missing),
            self.clock.of(row.start).into(),
            row.end.map(|end| self.clock.of(end)).into(),
            row.duration.map_or(Cell::Null, ns),
            row.own.map_or(Cell::Null, ns),
            cost.map_or(Cell::Null, |(all, _)| ns(all)),
            cost.map_or(Cell::Null, |(_, own)| ns(own)),
            row.count.into(),
            row.depth.into(),
            row.error.into(),
            error_name.into(),
            row.result.into(),
            Cell::text(row.arguments),
            Cell::text(row.returned),
            row.range.into(),
            row.waited.into(),
            self.job_rank(who.pid).into(),
            frame.map_or(Cell::Null, |frame| Cell::text(&frame.file)),
            frame.filter(|frame| frame.line > 0).map_or(Cell::Null, |frame| u64::from(frame.line).into()),
            frame.map_or(Cell::Null, |frame| Cell::text(&frame.name)),
            source.as_ref().map_or(Cell::Null, |source| Cell::text(&source.stack)),
        ];
        self.sheets.push(&CALLS, &cells)
    }
}
