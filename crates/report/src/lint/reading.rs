//! The walk over the trace that makes steps for the rules.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::budget::step_of;
use hetrace_trace::sent::sent_of;
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Unfinished, Visitor};
use hetrace_trace::trace::{ThreadId, Threads, Trace};
use hetrace_trace::values::{Plans, Wanted};
use hetrace_trace::watch::{Pace, Stopped};

use super::facts::Knowledge;
use super::findings::Ref;
use super::states::struct_faults;
use super::steps::{Batch, Ran, Rare, Step};

/// Takes batches, and gives back such as may be filled.
pub(super) trait Rules<'t> {
    /// All that was read, in order.
    fn take(&mut self, full: Batch<'t>) -> Batch<'t>;
}

/// Reads what rules ask for.
pub(super) struct Reading<'k, 't, R> {
    pace: Pace<'t>,
    knowledge: &'k Knowledge<'t>,
    plans: Plans<'t>,
    batch: Batch<'t>,
    rules: R,
    /// Threads that the rules know.
    known: usize,
}

impl<'k, 't, R: Rules<'t>> Reading<'k, 't, R> {
    pub fn new(trace: &'t Trace, knowledge: &'k Knowledge<'t>, pace: Pace<'t>, rules: R) -> Self {
        let plans = Plans::of(trace, |function| {
            let facts = knowledge.of(function)?;
            let places = facts.asked.as_ref().map(|[entry, exit]| [entry.as_slice(), exit.as_slice()]);
            let hashed = facts.numbers.hash.then_some(facts.handles.as_slice());
            let packed = facts.numbers.argument.filter(|argument| argument.has_bytes);
            Some(Wanted { hashed, places, packed: packed.map(|argument| argument.value) })
        });
        Self { pace, knowledge, plans, batch: Batch::default(), rules, known: 0 }
    }

    /// The trace has ended: the rules get what is left.
    pub fn finish(mut self) {
        if !self.batch.is_empty() {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        self.batch = self.rules.take(std::mem::take(&mut self.batch));
    }

    #[inline]
    fn step(&mut self, step: Step) -> ControlFlow<Stopped> {
        self.batch.steps.push(step);
        if self.batch.is_full() {
            self.hand_over();
        }
        ControlFlow::Continue(())
    }

    fn rare(&mut self, rare: Rare) -> ControlFlow<Stopped> {
        self.step(Step::Rare(Box::new(rare)))
    }

    /// The rules are to know this thread, and all before.
    #[inline]
    fn knows(&mut self, thread: ThreadId, threads: &Threads) {
        while self.known <= thread.index() {
            let who = threads.all().get(self.known).map_or((0, 0), |thread| (thread.pid, thread.tid));
            self.batch.threads.push(who);
            self.known += 1;
        }
    }
}

impl<'t, R: Rules<'t>> Visitor for Reading<'_, 't, R> {
    type Break = Stopped;

    #[inline]
    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.pace.step()
    }

    #[inline]
    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.knows(call.thread, at.threads);
        let knowledge = self.knowledge;
        let Some(facts) = knowledge.of(call.function) else { return ControlFlow::Continue(()) };
        if let Some(duties) = facts.duties.as_ref().filter(|d| !d.headers.is_empty() && call.depth == 0) {
            let who = at.who();
            let this = Ref { pid: who.pid, tid: who.tid, start: call.start, function: call.function };
            let hits = struct_faults(this, facts, &duties.headers, event);
            if !hits.is_empty() {
                self.rare(Rare::Structs(hits))?;
            }
        }
        let (number, values) = self.batch.room();
        values.read_entry(facts.function, &facts.handles, (call.function, &self.plans), event);
        self.step(Step::Entry(*call, number))
    }

    #[inline]
    fn exit(&mut self, _: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let Some(facts) = self.knowledge.of(call.function) else { return ControlFlow::Continue(()) };
        let number = facts.returns.then(|| {
            let (number, values) = self.batch.room();
            values.read_exit(facts.function, (call.function, &self.plans), event);
            number
        });
        self.step(Step::Exit(*call, number))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<Stopped> {
        let who = at.who();
        self.rare(Rare::Unfinished((who.pid, who.tid), *call))
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let who = at.who();
        if fold.summed {
            return self.rare(Rare::SumsUp(who.pid));
        }
        let polls = self.knowledge.of(fold.function).is_some_and(|facts| facts.common.polls);
        match polls && fold.depth == 0 {
            true => self.rare(Rare::Polls((who.pid, who.tid), *fold)),
            false => ControlFlow::Continue(()),
        }
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let number = self.batch.commands.len() as u32;
        self.batch.commands.push(Ran::from(command));
        self.step(Step::Command(number))
    }

    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        if step_of(event).is_some_and(|(_, step)| step.summed) {
            self.rare(Rare::SumsUp(at.who().pid))
        } else if let Some(sent) = sent_of(event) {
            self.rare(Rare::Hashed(at.who().pid, at.time, sent))
        } else {
            ControlFlow::Continue(())
        }
    }

    fn unknown(&mut self, _: At<'_>, _: &str, _: &str, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.rare(Rare::Unknown)
    }
}
