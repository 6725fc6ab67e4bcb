//! The walk that looks for faults.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::calls::{self, Calls, signal_name};
use super::copies::Copies;
use super::facts::Knowledge;
use super::findings::{Findings, Hit, Ref};
use super::flow::Flow;
use super::hazards::{Ended, Hazards};
use super::lifetimes::{Leak, Leaks, Lifetimes};
use super::memory::Memory;
use super::passed::{By, Hashed, Passed};
use super::rules::Severity;
use super::sent::Sent;
use super::states::States;
use hetrace_trace::budget::step_of;
use hetrace_trace::demangle;
use hetrace_trace::outermost::Outermost;
use hetrace_trace::sent::{SentBytes, sent_of};
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Unfinished, Visitor, Why};
use hetrace_trace::trace::{Exit, FunctionId, ThreadId, Threads, Trace};
use hetrace_trace::values::{Plans, Values, Wanted};
use hetrace_trace::watch::{Pace, Stopped};

/// From so many launches on it is of interest during which of them something was made.
const MANY: u64 = 100;
/// A stack that deep is damage.
const DEEPEST: usize = 1024;

/// Signals by which a fault of the program's own ends it: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const FAULTS: [i32; 5] = [4, 6, 7, 8, 11];

/// A thread and what its open calls were passed.
#[derive(Debug)]
struct Caller {
    pid: i64,
    tid: i64,
    by: By,
    /// By depth.
    open: Vec<Passed>,
}

impl Caller {
    /// The place of a call; none if it is too deep.
    fn place(&mut self, depth: u32) -> Option<&mut Passed> {
        let depth = depth as usize;
        if self.open.len() <= depth {
            if depth > DEEPEST {
                return None;
            }
            self.open.resize_with(depth + 1, Passed::default);
        }
        self.open.get_mut(depth)
    }

    /// An open call; none if it is not followed.
    fn opened(&mut self, depth: u32) -> Option<&mut Passed> {
        self.open.get_mut(depth as usize).filter(|passed| passed.open)
    }
}

/// All that is followed.
pub(super) struct Linter<'t> {
    pace: Pace<'t>,
    trace: &'t Trace,
    knowledge: Knowledge<'t>,
    plans: Plans<'t>,
    /// Of the last event.
    values: Values<'t>,
    pub findings: Findings,
    /// By position.
    threads: Vec<Caller>,
    outermost: Outermost,
    /// The ids of processes, by position.
    processes: Vec<i64>,
    lifetimes: Lifetimes,
    memory: Memory,
    copies: Copies,
    sent: Sent,
    calls: Calls,
    flow: Flow,
    hazards: Hazards,
    states: States,
    /// The signal that ended the program.
    killed: Option<i32>,
    /// Calls of functions that no model has.
    pub unknown: u64,
    pub notes: Vec<String>,
}

impl<'t> Linter<'t> {
    pub fn new(trace: &'t Trace, mut findings: Findings, pace: Pace<'t>) -> Self {
        if trace.manifest().capture.is_some() {
            findings.is_windowed();
        }
        let mut copies = Copies::default();
        copies.error_ns = trace.manifest().device_error_ns().unwrap_or(0);
        let knowledge = Knowledge::new(trace);
        let plans = Plans::of(trace, |function| {
            let facts = knowledge.of(function)?;
            let places = facts.asked.as_ref().map(|[entry, exit]| [entry.as_slice(), exit.as_slice()]);
            let hashed = facts.numbers.hash.then_some(facts.handles.as_slice());
            let packed = facts.numbers.argument.filter(|argument| argument.has_bytes);
            Some(Wanted { hashed, places, packed: packed.map(|argument| argument.value) })
        });
        Self {
            pace,
            trace,
            knowledge,
            plans,
            values: Values::default(),
            findings,
            threads: Vec::new(),
            outermost: Outermost::new(trace.functions()),
            processes: Vec::new(),
            lifetimes: Lifetimes::default(),
            memory: Memory::default(),
            copies,
            sent: Sent::default(),
            calls: Calls::default(),
            flow: Flow::default(),
            hazards: Hazards::default(),
            states: States::default(),
            killed: match trace.manifest().exit {
                Some(Exit::Signal(signal)) => Some(signal),
                _ => None,
            },
            unknown: 0,
            notes: Vec::new(),
        }
    }

    /// The position of a thread in the table, which has it and all before.
    fn thread(&mut self, thread: ThreadId, threads: &Threads) -> usize {
        while self.threads.len() <= thread.index() {
            let at = self.threads.len();
            let who = threads.all().get(at).map_or((0, 0), |thread| (thread.pid, thread.tid));
            let process = self.processes.iter().position(|pid| *pid == who.0).unwrap_or_else(|| {
                self.processes.push(who.0);
                self.processes.len() - 1
            });
            let by = By { thread: at, process };
            self.threads.push(Caller { pid: who.0, tid: who.1, by, open: Vec::new() });
        }
        thread.index()
    }

    /// The trace has ended: what can only be said now.
    pub fn finish(&mut self) {
        let (knowledge, findings) = (&self.knowledge, &mut self.findings);
        let mut leaks = self.lifetimes.finish(knowledge, findings);
        self.memory.finish(knowledge, findings, &mut leaks);
        self.copies.finish(|call| self.hazards.has_raced(call), knowledge, findings);
        self.sent.finish(knowledge, findings);
        self.calls.finish(knowledge, findings);
        let names = self.trace.names();
        let kernel = |id| {
            let name = names.kernel(id).map_or("a kernel", |kernel| &kernel.name);
            demangle::short(name).into_owned()
        };
        self.flow.finish(kernel, knowledge, findings);
        let ended = matches!(self.trace.manifest().exit, Some(Exit::Code(_)));
        self.hazards.finish(ended, knowledge, findings);
        self.states.finish(knowledge, findings);
        self.leaks(leaks);
        if let Some(signal) = self.killed.filter(|signal| FAULTS.contains(signal)) {
            self.findings.convict(&signal_name(signal));
        }
        if self.lifetimes.overflow || self.memory.overflow {
            self.notes.push("More objects than are followed at a time: some were passed over.".to_owned());
        }
        let summing = self.findings.summing();
        if summing > 0 {
            let whose = if summing == 1 { "a process".to_owned() } else { format!("{summing} processes") };
            self.notes.push(format!(
                "Calls of {whose} were added up to keep within a budget: from then on only rules that look at each \
                 call by itself say something of it."
            ));
        }
        if self.findings.dropped > 0 {
            self.notes.push(format!("{} findings more than are kept.", self.findings.dropped));
        }
    }

    /// What an open call sends was hashed.
    fn hashed(&mut self, at: At<'_>, sent: SentBytes) {
        self.sent.begin();
        let pid = at.who().pid;
        let is_it = |passed: &Passed| passed.open && passed.call.start == sent.cause;
        let mut callers = self.threads.iter_mut().filter(|c| c.pid == pid && c.tid == sent.cause_tid);
        let caller = callers.find(|caller| caller.open.iter().any(is_it));
        // A call of a library that the program's own call is made on sends what that was passed.
        let outer =
            caller.and_then(|caller| caller.open.iter_mut().rfind(|passed| passed.open && passed.root));
        if let Some((outer, hash)) = outer.zip(sent.hash) {
            outer.hashed = Some(Hashed { hash, bytes: sent.bytes, ns: at.time.saturating_sub(sent.cause) });
        }
    }

    fn leaks(&mut self, leaks: Leaks) {
        let manifest = self.trace.manifest();
        let main = manifest.processes.first().map(|process| process.pid);
        let code = match manifest.exit {
            Some(Exit::Code(code)) => code,
            _ if leaks.is_empty() => return,
            _ => {
                let note = "The program did not end by itself: nothing is said of leaks.";
                self.notes.push(note.to_owned());
                return;
            }
        };
        for ((pid, function, kind), Leak { count, bytes, first, last }) in leaks {
            let process = self.processes.iter().position(|of| *of == pid);
            let launches = process.map_or((0, 0), |process| {
                (self.flow.launches(process), self.flow.launches_since(process, last))
            });
            let name = &self.trace.functions().get(function).name;
            let size = if bytes > 0 {
                format!(" ({} in total)", hetrace_trace::text::bytes(bytes))
            } else {
                String::new()
            };
            let times = hetrace_trace::text::plural(count, &kind);
            let what = format!("{name}: {times}{size} never released");
            let hit =
                Hit::new("leak", format!("{pid} {name} {kind}"), what, ("first made", first)).times(count);
            self.findings.add(match main {
                _ if code != 0 => hit.graded(Severity::Hint, Some("the program ended with an error")),
                Some(main) if main != pid => {
                    hit.graded(Severity::Hint, Some("how this process ended is not known"))
                }
                _ if count == 1 => hit
                    .graded(Severity::Hint, Some("a single one may be meant to live as long as the program")),
                // Pools and libraries make what they need in the first steps, and no more.
                _ if launches.0 >= MANY && launches.1 >= launches.0 / 10 * 9 => {
                    let doubt =
                        "later launches make none, so they may be meant to live as long as the program";
                    hit.graded(Severity::Hint, Some(doubt))
                }
                _ => hit,
            });
        }
    }
}

type Step = ControlFlow<Stopped>;

impl Visitor for Linter<'_> {
    type Break = Stopped;

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> Step {
        self.pace.step()
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let thread = self.thread(call.thread, at.threads);
        let (Some(facts), Some(caller)) = (self.knowledge.of(call.function), self.threads.get_mut(thread))
        else {
            return ControlFlow::Continue(());
        };
        let this = Ref { pid: caller.pid, tid: caller.tid, start: call.start, function: call.function };
        let own = self.outermost.entry(call, self.trace.functions());
        let mut around = caller.open.iter().take(call.depth as usize);
        let outer = around.rfind(|passed| passed.open).filter(|_| !own);
        let outer = outer.map(|outer| (outer.root_waits, outer.outer));
        let by = caller.by;
        let Some(passed) = caller.place(call.depth) else { return ControlFlow::Continue(()) };
        self.values.read_entry(facts.function, &facts.handles, (call.function, &self.plans), event);
        passed.begin(facts, &self.values, this, by, own);
        if let Some(outer) = outer {
            (passed.root_waits, passed.outer) = outer;
        }
        self.lifetimes.entry(passed, facts, &self.knowledge);
        if facts.quiet {
            return ControlFlow::Continue(());
        }
        self.memory.entry(passed, facts, &self.lifetimes);
        self.copies.entry(passed, facts, &self.memory);
        self.hazards.entry(passed, facts, &self.lifetimes, &self.knowledge);
        self.states.entry(passed, facts, (&self.values, event), &self.knowledge);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, _: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        self.outermost.exit(call.thread, call.depth);
        // What it was passed stays in its place while rules look at it: it is large.
        let caller = self.threads.get_mut(call.thread.index());
        let passed = caller.and_then(|caller| caller.opened(call.depth));
        let Some((passed, facts)) = passed.zip(self.knowledge.of(call.function)) else {
            return ControlFlow::Continue(());
        };
        passed.open = false;
        let (knowledge, findings) = (&self.knowledge, &mut self.findings);
        let failed = call.error.is_some();
        // What is passed several objects may mix contexts.
        if facts.quiet && !failed && passed.root && passed.handles.len() < 2 && passed.faults.is_empty() {
            self.calls.quiet(passed, facts, knowledge, findings);
            self.flow.quiet(passed.by.thread, knowledge, findings);
            self.hazards.quiet(passed, facts, call.duration(), &self.lifetimes, findings);
            return ControlFlow::Continue(());
        }
        for mut hit in std::mem::take(&mut passed.faults) {
            if failed && hit.severity.is_some() {
                (hit.severity, hit.doubt) = (None, None);
            }
            findings.add(hit);
        }
        match facts.returns {
            true => self.values.read_exit(facts.function, (call.function, &self.plans), event),
            false => self.values.clear(facts.function),
        }
        let out = &self.values;
        let launches = self.flow.launches(passed.by.process);
        self.memory.exit(passed, facts, failed, out, call.duration(), launches);
        if passed.root {
            self.calls.exit(passed, facts, call.error, knowledge, findings);
            if !failed {
                self.copies.exit(passed, facts, call.duration(), &self.memory, knowledge, findings);
                let known = (&self.lifetimes, knowledge);
                self.flow.exit(passed, facts, call.end, out, known, findings);
            }
        }
        let ended = Ended { at: call.end, failed };
        let tables = (&mut self.lifetimes, &mut self.memory);
        self.hazards.exit(passed, facts, (ended, out), tables, knowledge, findings);
        if passed.root && !failed {
            self.sent.exit(passed, facts, call.duration(), &self.memory, knowledge);
        }
        if !failed && (!passed.ended.is_empty() || !facts.makes.is_empty()) && !facts.common.enqueues {
            self.copies.forget(passed.by.process);
        }
        self.states.exit(passed, facts, (failed, out), &self.lifetimes, knowledge, findings);
        self.lifetimes.exit(passed, facts, failed, out, knowledge, findings);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let own = self.outermost.exit(call.thread, call.depth);
        let caller = self.threads.get_mut(call.thread.index());
        // What is wrong with a call that never returned may be why.
        let killed = self.killed.filter(|_| call.why != Why::ExitLost);
        let mut explained = false;
        if let Some(passed) = caller.and_then(|caller| caller.opened(call.depth)) {
            passed.open = false;
            if killed.is_some()
                && passed.root
                && let Some(facts) = self.knowledge.of(call.function)
            {
                let known = self.calls.ended_in(passed, facts, &self.knowledge);
                let null =
                    known.is_none().then(|| States::ended_in(passed, facts, &self.knowledge)).flatten();
                passed.faults.extend(known.or(null));
            }
            for mut hit in passed.faults.drain(..).filter(|_| call.why != Why::ExitLost) {
                if let Some(signal) = killed {
                    hit.what = format!("{}, and {} ends the program in it", hit.what, signal_name(signal));
                    (hit.severity, hit.doubt) = (Some(Severity::Error), None);
                    explained = true;
                }
                self.findings.add(hit);
            }
        }
        if own && !explained {
            let who = at.who();
            let this = Ref { pid: who.pid, tid: who.tid, start: call.start, function: call.function };
            let name = &self.trace.functions().get(call.function).name;
            calls::unfinished(this, call, name, killed, &mut self.findings);
        }
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        if fold.summed {
            self.findings.sums_up(at.who().pid);
            return ControlFlow::Continue(());
        }
        let polls = self.knowledge.of(fold.function).is_some_and(|facts| facts.common.polls);
        if polls && self.outermost.would_be(fold.thread, fold.depth) {
            let who = at.who();
            let this = Ref { pid: who.pid, tid: who.tid, start: fold.first, function: fold.function };
            let (knowledge, findings) = (&self.knowledge, &mut self.findings);
            let polls = (fold.count, fold.first, fold.last);
            self.flow.poll(fold.thread.index(), this, polls, knowledge, findings);
        }
        ControlFlow::Continue(())
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Step {
        self.hazards.command(command);
        let raced = |call| self.hazards.has_raced(call);
        if !raced((command.pid, command.cause_tid, command.cause)) {
            self.copies.command(command, raced, &self.knowledge, &mut self.findings);
        }
        self.flow.command(command);
        ControlFlow::Continue(())
    }

    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> Step {
        if step_of(event).is_some_and(|(_, step)| step.summed) {
            self.findings.sums_up(at.who().pid);
        } else if let Some(sent) = sent_of(event) {
            self.hashed(at, sent);
        }
        ControlFlow::Continue(())
    }

    fn unknown(&mut self, _: At<'_>, _: &str, _: &str, _: &Event<'_, '_>) -> Step {
        self.unknown += 1;
        ControlFlow::Continue(())
    }
}

/// The name of a function that a finding is about.
pub(super) fn name_of(trace: &Trace, function: FunctionId) -> &str {
    match function == FunctionId(u32::MAX) {
        true => "",
        false => &trace.functions().get(function).name,
    }
}
