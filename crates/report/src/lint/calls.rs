//! Calls that failed without anybody caring, did not end, or should not be used.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::passed::Passed;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::{Unfinished, Why};
use hetrace_trace::trace::FunctionId;

/// Equal failures in a row from which on nobody can have looked at them.
const IN_A_ROW: u64 = 100;

/// What is open on a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Process and thread.
    ids: (i64, i64),
    /// What could not be made: types of objects, none for memory.
    missing: Vec<(Option<KindId>, Ref)>,
    /// Launches that failed, by queue.
    launches: QuickMap<u64, Ref>,
    /// Equal failures in a row.
    row: Option<(FunctionId, i64, u64, Ref)>,
}

/// What failed.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By position.
    threads: Vec<Thread>,
}

impl Calls {
    /// A call of the program itself ends.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        error: Option<i64>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let name = &facts.function.name;
        if let Some(version) = &facts.function.deprecated {
            let what = match version.is_empty() {
                true => format!("{name} is deprecated"),
                false => format!("{name} is deprecated since version {version}"),
            };
            findings.add(Hit::new("deprecated", name, what, ("call", passed.call)));
        }
        if self.threads.len() <= passed.by.thread {
            self.threads.resize_with(passed.by.thread + 1, Thread::default);
        }
        let thread = &mut self.threads[passed.by.thread];
        thread.ids = (passed.call.pid, passed.call.tid);
        if facts.asks_error {
            *thread = Thread { ids: thread.ids, ..Thread::default() };
            return;
        }
        thread.repeated(passed, facts, error, knowledge, findings);
        let queue = passed.queue.unwrap_or(0);
        match error {
            Some(_) => thread.failed(passed, facts, knowledge, findings),
            None if thread.missing.is_empty() => {}
            None => {
                let made = |kind: &Option<KindId>| match kind {
                    Some(kind) => facts.makes.iter().any(|(_, made)| made == kind),
                    None => facts.allocation.is_some(),
                };
                thread.missing.retain(|(kind, _)| !made(kind));
            }
        }
        if facts.launch {
            match error {
                Some(_) => drop(thread.launches.insert(queue, passed.call)),
                None => drop(thread.launches.remove(&queue)),
            }
        } else if error.is_none()
            && facts.reads_back
            && let Some(launch) = thread.launches.remove(&queue)
        {
            let what = format!("{name} reads back after a launch into the same queue failed");
            let hit = Hit::new("ignored-error", format!("{name} after launch"), what, ("failed", launch));
            findings.add(hit.with(Some(("then", passed.call))));
        }
    }

    /// The trace has ended.
    pub fn finish(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        self.threads.sort_by_key(|thread| thread.ids);
        self.threads.iter_mut().for_each(|thread| thread.end_row(knowledge, findings));
    }
}

impl Thread {
    fn failed(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let name = &facts.function.name;
        let optional = |at: u16| {
            let param = facts.function.params.get(usize::from(at));
            param.is_none_or(|p| p.pointers > 0 || facts.queue == Some(p.name.as_str()))
        };
        let null = |kind: KindId| {
            passed.handles.iter().any(|(at, k, handle)| *k == kind && *handle == 0 && !optional(*at))
        };
        let spans = || [passed.source, passed.target].into_iter().flatten();
        let used = self.missing.iter().position(|(kind, _)| match kind {
            Some(kind) => facts.gives_back.is_none() && null(*kind),
            None => spans().any(|span| span.object.is_none() && span.start == 0),
        });
        if let Some((kind, made)) = used.map(|at| self.missing.remove(at)) {
            let kind = kind.and_then(|kind| knowledge.kind(kind)).map_or("memory", |kind| &kind.name);
            let what = format!("{name} is passed NULL, and fails: the {kind} could not be made before");
            let hit = Hit::new("ignored-error", name, what, ("failed", made));
            findings.add(hit.with(Some(("then", passed.call))));
        }
        // What is enqueued yields an event only where one is asked for.
        let made = facts.makes.iter().filter(|_| !facts.enqueues);
        let missing = made.map(|(_, kind)| Some(*kind));
        for kind in missing.chain(facts.allocation.iter().map(|_| None)) {
            self.missing.retain(|(known, _)| *known != kind);
            self.missing.push((kind, passed.call));
        }
    }

    fn repeated(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        error: Option<i64>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let function = passed.call.function;
        match (&mut self.row, error) {
            (Some((f, code, count, _)), Some(error)) if *f == function && *code == error => *count += 1,
            (None, None) => {}
            // Other calls in between do not matter, a success does.
            (Some((f, ..)), None) if *f != function => {}
            (Some((f, ..)), Some(_)) if *f != function && (facts.queries || facts.polls) => {}
            _ => {
                self.end_row(knowledge, findings);
                let counts = !facts.queries && !facts.polls;
                self.row = error.filter(|_| counts).map(|error| (function, error, 1, passed.call));
            }
        }
    }

    fn end_row(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let Some((function, code, count, first)) = self.row.take().filter(|(_, _, n, _)| *n >= IN_A_ROW)
        else {
            return;
        };
        let Some(facts) = knowledge.of(function) else { return };
        let name = &facts.function.name;
        let what = format!("{name} fails {count} times in a row with the same error");
        let hit = Hit::new("ignored-error", format!("{name} {code} again"), what, ("failed", first));
        findings.add(hit.times(count));
    }
}

/// A call will have no end.
pub(super) fn unfinished(call: Ref, about: &Unfinished, name: &str, findings: &mut Findings) {
    let why = match about.why {
        Why::TraceEnds => "when the trace ended",
        Why::ThreadEnded => "when its thread ended",
        // That is a loss of the tracer's, and no fault.
        Why::ExitLost => return,
    };
    let what = format!("{name} had not returned {why}");
    let hit = Hit::new("unfinished-call", format!("{name} {why}"), what, ("call", call));
    findings.add(hit.costs(about.until.saturating_sub(about.start)));
}
