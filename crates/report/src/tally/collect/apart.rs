//! The sums of calls without their events.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::super::ways::Way;
use super::{Choice, Collector};
use hetrace_trace::spans::fast::{Border, CallSink, Ended, Leaf, Leaves};
use hetrace_trace::spans::{At, Call, Command, ErrorText, Fold, Open, Unfinished, Why};
use hetrace_trace::trace::{FunctionId, Thread, ThreadId};
use hetrace_trace::values::Values;

/// Where the sums of commands that differ in nothing but their times are, once one was counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    usage: Option<usize>,
    sums: Option<usize>,
}

/// Passes on the calls of a thread that are wanted.
struct Chosen<'c, L> {
    /// Whether all are: asked once, as there are millions of them.
    all: bool,
    choice: &'c Choice,
    /// Whether those of the thread are.
    wanted: bool,
    sums: L,
}

impl<L: Leaves> Leaves for Chosen<'_, L> {
    #[inline(always)]
    fn take(&mut self, leaf: Leaf) {
        if self.all || is_chosen(self.choice, self.wanted, leaf.function, leaf.start) {
            self.sums.take(leaf);
        }
    }
}

impl CallSink for Collector<'_> {
    type Known = Counted;

    fn thread(&mut self, id: ThreadId, thread: &Thread) {
        let wanted = self.choice.has_thread(thread.pid, thread.tid);
        self.current = (Collector::slice(self, id), wanted);
        (self.who.pid, self.who.tid) = (thread.pid, thread.tid);
    }

    #[inline(always)]
    fn leaves(&mut self, thread: ThreadId) -> impl Leaves {
        let (choice, (slice, wanted)) = (self.choice, self.current);
        Chosen { all: !choice.any, choice, wanted, sums: self.host.leaves(slice, thread) }
    }

    #[inline]
    fn call(&mut self, call: &Call) {
        if self.wants(call.function, call.start) {
            self.host.call(self.current.0, call);
        }
    }

    fn fold(&mut self, fold: &Fold) {
        if self.wants(fold.function, fold.first) {
            self.host.fold(self.current.0, fold);
        }
    }

    fn unfinished(&mut self, call: &Unfinished) {
        self.given_up += u64::from(call.why != Why::TraceEnds);
        self.memory.unfinished(call.thread, call.depth);
        if self.wants(call.function, call.start) {
            self.host.unfinished(self.current.0, call);
        }
    }

    fn noted_entry(&mut self, call: &Open, values: &Values<'_>) {
        self.memory.entered(call, values);
    }

    fn noted_exit(&mut self, call: &Call, values: &Values<'_>) {
        self.memory.left(&self.who, call, values);
    }

    fn noted_undecided(&mut self, thread: ThreadId) {
        self.memory.ended_late(thread);
    }

    fn begin_later(&mut self) {
        self.memory.begin_later();
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, known: &mut Counted) {
        self.energy.command(self.meters, command);
        let usage = *known.usage.get_or_insert_with(|| self.usage.place(command));
        self.usage.add(usage, command);
        if !self.choice.any || self.choice.has_command(command, at.time) {
            let sums = *known.sums.get_or_insert_with(|| self.devices.place(command, None, Way::default()));
            self.devices.add(sums, command);
        }
    }

    fn unknown(&mut self, api: &str, function: &str) {
        *self.unknown.entry((api.to_owned(), function.to_owned())).or_default() += 1;
    }

    fn other(&mut self, event: &Event<'_, '_>) {
        if let Some(ErrorText { api, code, text: Some(text) }) = ErrorText::of(event) {
            self.host.error_text(api, code, text);
        }
    }

    fn merge(&mut self, other: Self, there: &[Thread], here: &mut dyn FnMut(&Thread) -> ThreadId) {
        self.host.merge(&other.host, there, here);
        self.devices.merge(&other.devices);
        self.usage.merge(&other.usage);
        self.energy.merge(&other.energy);
        self.given_up += other.given_up;
        for (function, calls) in other.unknown {
            *self.unknown.entry(function).or_default() += calls;
        }
        self.joining = Some((other.memory, self.memory.open()));
    }

    fn joined(&mut self, borders: &[Border]) -> Result<(), Ended> {
        let Some((later, open)) = self.joining.take() else { return Ok(()) };
        if self.memory.join(later, borders, &open) { Ok(()) } else { Err(Ended::Unfit) }
    }

    fn watch(&mut self, events: u64) -> ControlFlow<()> {
        self.query.watch.map_or(ControlFlow::Continue(()), |watch| watch(events))
    }
}

impl Collector<'_> {
    /// Whether a call of the current thread is wanted.
    #[inline(always)]
    fn wants(&self, function: FunctionId, begin: u64) -> bool {
        !self.choice.any || is_chosen(self.choice, self.current.1, function, begin)
    }
}

/// Whether a call is wanted where not all are; `of_thread` is whether those of its thread are.
#[inline(always)]
fn is_chosen(choice: &Choice, of_thread: bool, function: FunctionId, begin: u64) -> bool {
    of_thread && choice.has_function(function) && choice.has_time(begin)
}
