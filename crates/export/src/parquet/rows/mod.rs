//! The walk that makes rows.

mod calls;
mod collectives;
mod commands;
mod inside;
mod marks;
mod names;
mod samples;
mod states;
mod trace;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::SyncSender;

use hetrace_ctf::read::Event;
use hetrace_trace::args::{Args, Plans};
use hetrace_trace::collectives::Collectives;
use hetrace_trace::probes::Border;
use hetrace_trace::ranges::Ranges;
use hetrace_trace::samples::{Inside, Sample};
use hetrace_trace::spans::{
    At, Call, Command, ErrorText, Fold, Open, Orphan, Summary, Unfinished, Visitor, cause_id,
};
use hetrace_trace::trace::{Job as Ranks, Trace};
use hetrace_trace::waits::Waits;

use self::calls::Calls;
use self::collectives::Called;
use self::commands::{Cause, Causes, Kernels, Ran, Words};
use self::marks::Marks;
use self::trace::LeftOut;
use super::Options;
use super::batch::{Batch, Cell};
use super::files::Job;
use super::schema::Table;
use super::tables::TABLES;
use crate::Watch;
use crate::operations::Operations;
use crate::sources::Sources;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 14;

/// The walk is not to go on: it was stopped, or the writer has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop;

type Step = ControlFlow<Stop>;

/// Rows on their way to the writer.
struct Sheets {
    /// By place among [`TABLES`].
    batches: Vec<Batch>,
    send: SyncSender<Job>,
}

impl Sheets {
    fn push(&mut self, table: &'static Table, row: &[Cell<'_>]) -> Step {
        let Some(at) = TABLES.iter().position(|t| std::ptr::eq(*t, table)) else {
            return ControlFlow::Continue(());
        };
        match self.batches.get_mut(at).is_some_and(|batch| batch.push(row)) {
            true => self.send(at),
            false => ControlFlow::Continue(()),
        }
    }

    fn send(&mut self, table: usize) -> Step {
        let (Some(batch), Some(about)) = (self.batches.get_mut(table), TABLES.get(table)) else {
            return ControlFlow::Continue(());
        };
        let batch = std::mem::replace(batch, Batch::new(about));
        // Nobody takes it if the writer has failed; it says why.
        self.send.send(Job { table, batch }).map_or(ControlFlow::Break(Stop), |()| ControlFlow::Continue(()))
    }

    fn finish(&mut self) -> Step {
        for table in 0..self.batches.len() {
            if self.batches.get(table).is_some_and(|batch| !batch.is_empty()) {
                self.send(table)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Makes rows of what a walk finds.
pub(super) struct Rows<'t, 'w> {
    trace: &'t Trace,
    watch: Watch<'w>,
    left: u32,
    sheets: Sheets,
    clock: Clock,
    /// None if arguments are left out.
    plans: Option<Plans<'t>>,
    calls: Calls<'t>,
    sources: Sources<'t>,
    /// The calls that threads are in, for samples.
    inside: Inside,
    exit: Args<'t>,
    ranges: Ranges<'t>,
    marks: Marks,
    causes: Causes,
    /// Commands that wait for who waits for them.
    waits: Waits<'t, Ran>,
    words: Words,
    operations: Operations<'t, Called<'t>>,
    collectives: Collectives,
    job: Ranks,
    /// The rank that all processes are said to have.
    rank: Option<u32>,
    kernels: Kernels,
    left_out: LeftOut,
    /// What APIs say of their error codes, of which there are few.
    error_texts: BTreeMap<(String, i64), Option<String>>,
    unknown_calls: u64,
    commands: i64,
    without_call: u64,
}

/// Times of the trace to times of the tables.
#[derive(Clone, Copy, Debug)]
struct Clock {
    offset: i64,
}

impl Clock {
    fn of(self, time: u64) -> i64 {
        let sum = i128::from(time) + i128::from(self.offset);
        i64::try_from(sum).unwrap_or(i64::MAX)
    }
}

/// A duration as a cell.
fn ns(duration: u64) -> Cell<'static> {
    Cell::Uint(duration)
}

impl<'t, 'w> Rows<'t, 'w> {
    pub fn new(trace: &'t Trace, options: Options, watch: Watch<'w>, send: SyncSender<Job>) -> Self {
        Self {
            trace,
            watch,
            left: WATCHED,
            sheets: Sheets { batches: TABLES.iter().map(|table| Batch::new(table)).collect(), send },
            clock: Clock { offset: trace.epoch_offset_ns().unwrap_or(0) },
            plans: options.arguments.then(|| Plans::new(trace)),
            calls: Calls::default(),
            sources: Sources::new(trace.names().stacks()),
            inside: Inside::default(),
            exit: Args::default(),
            ranges: Ranges::new(trace),
            marks: Marks::default(),
            causes: Causes::default(),
            waits: Waits::new(trace),
            words: Words::default(),
            operations: Operations::new(trace),
            collectives: Collectives::new(trace),
            job: trace.job(),
            rank: options.rank,
            kernels: Kernels::default(),
            left_out: LeftOut::default(),
            error_texts: BTreeMap::new(),
            unknown_calls: 0,
            commands: 0,
            without_call: 0,
        }
    }

    /// Makes the rows that are of the whole trace, and sends what is left.
    pub fn finish(&mut self, summary: &Summary) -> Step {
        self.finish_commands()?;
        self.finish_operations()?;
        self.open_ranges(summary)?;
        self.insides()?;
        self.states()?;
        self.names(summary)?;
        self.trace_row(summary)?;
        self.sheets.finish()
    }

    /// The rank of a process in its job.
    fn job_rank(&self, pid: i64) -> Option<u64> {
        self.rank.map(u64::from).or_else(|| Some(self.job.rank_of(pid)?.rank))
    }
}

impl Visitor for Rows<'_, '_> {
    type Break = Stop;

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> Step {
        self.left -= 1;
        if self.left == 0 {
            self.left = WATCHED;
            return (self.watch)(u64::from(WATCHED)).map_break(|()| Stop);
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let id = self.enter(call, event);
        if self.trace.has_samples() {
            self.inside.entry(at, call);
        }
        self.waits.entry(call, event);
        self.collectives.entry(at, call, event);
        self.operates(at, call, id, event);
        if self.trace.functions().get(call.function).enqueues {
            let (who, launch) = (at.who(), self.operations.launch(call.thread));
            self.causes.called(cause_id(who.pid, who.tid, call.start), Cause { call: id, launch });
        }
        let step = self.ranges.entry(at, call, event);
        self.marked(at, step)
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        self.leave(at, call, event)?;
        self.inside.end(at, call.depth);
        self.collectives.exit(at, call, event);
        self.operated(call)?;
        let step = self.ranges.exit(at, call, event);
        self.marked(at, step)
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        self.give_up(at, call)?;
        self.inside.end(at, call.depth);
        self.waits.unfinished(at, call);
        self.unfinished_operation(call)?;
        let step = self.ranges.unfinished(at, call);
        self.marked(at, step)
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> Step {
        self.orphaned(at, call, event)?;
        let step = self.ranges.orphan(call);
        self.marked(at, step)
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        self.folded(at, fold)
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Step {
        self.ran(command, at.time)
    }

    fn sample(&mut self, at: At<'_>, sample: &Sample, _: &Event<'_, '_>) -> Step {
        self.sampled(at, sample)
    }

    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> Step {
        let step = self.ranges.border(at, border, name);
        self.marked(at, step)
    }

    fn unknown(&mut self, at: At<'_>, api: &str, function: &str, event: &Event<'_, '_>) -> Step {
        self.unknown_call(at, api, function, event)
    }

    fn other(&mut self, _: At<'_>, event: &Event<'_, '_>) -> Step {
        match ErrorText::of(event) {
            Some(ErrorText { api, code, text }) => {
                self.error_texts.entry((api.to_owned(), code)).or_insert_with(|| text.map(str::to_owned));
            }
            None => self.left_out.see(self.trace, event),
        }
        ControlFlow::Continue(())
    }
}
