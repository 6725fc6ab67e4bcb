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
    /// What could not be made.
    missing: Vec<Missing>,
    /// Launches that failed, by queue.
    launches: QuickMap<u64, Ref>,
    /// Equal failures in a row.
    row: Option<(FunctionId, i64, u64, Ref)>,
}

/// Something could not be made.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// The type of the object; none for memory.
    kind: Option<KindId>,
    call: Ref,
    /// A call that was passed NULL for it has been reported.
    said: bool,
}

/// What failed.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By position.
    threads: Vec<Thread>,
    /// Calls of functions that have others in their place.
    deprecated: QuickMap<FunctionId, (u64, Ref)>,
    /// What could not be built, by process, type and handle.
    unbuilt: QuickMap<(i64, KindId, u64), Ref>,
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
        if facts.function.replaced.is_some() {
            let old = self.deprecated.entry(passed.call.function).or_insert((0, passed.call));
            old.0 += 1;
        }
        self.build(passed, facts, error, knowledge, findings);
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
                thread.missing.retain(|missing| !made(&missing.kind));
            }
        }
        if facts.common.launches {
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

    /// A quiet call of the program itself has succeeded: see [`Facts::quiet`].
    #[inline]
    pub fn quiet(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        if let Some(thread) = self.threads.get_mut(passed.by.thread).filter(|thread| thread.row.is_some()) {
            thread.repeated(passed, facts, None, knowledge, findings);
        }
    }

    /// A call of the program itself never returned: what it is passed as NULL, with where that could not be made.
    pub fn ended_in(&self, passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Option<Hit> {
        let thread = self.threads.get(passed.by.thread)?;
        let missing = thread.missing.get(thread.null(passed, facts)?)?;
        let kind = missing.kind.and_then(|kind| knowledge.kind(kind)).map_or("memory", |kind| &kind.name);
        let name = &facts.function.name;
        let what = format!("{name} is passed NULL: the {kind} could not be made before");
        Some(null_passed(name, what, missing.call, passed.call))
    }

    /// A call that builds, or uses what could not be built.
    fn build(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        error: Option<i64>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let pid = passed.call.pid;
        if facts.builds {
            // What is built in its place, and not what others are linked to.
            let first = passed.handles.first().filter(|_| facts.makes.is_empty());
            let Some((_, kind, handle)) = first.filter(|(_, kind, _)| !holds_others(knowledge, *kind)) else {
                return;
            };
            match error {
                Some(_) => drop(self.unbuilt.insert((pid, *kind, *handle), passed.call)),
                None => drop(self.unbuilt.remove(&(pid, *kind, *handle))),
            }
            return;
        }
        if self.unbuilt.is_empty() || facts.asks {
            return;
        }
        for (_, kind, handle) in &passed.handles {
            let Some(failed) = self.unbuilt.get(&(pid, *kind, *handle)).copied() else { continue };
            if facts.makes.is_empty() && facts.gives_back.is_none() {
                continue;
            }
            self.unbuilt.remove(&(pid, *kind, *handle));
            if facts.makes.is_empty() {
                continue;
            }
            let (name, kind) =
                (&facts.function.name, knowledge.kind(*kind).map_or("object", |kind| &kind.name));
            let what = format!("{name} uses a {kind} that could not be built");
            let hit = Hit::new("ignored-error", format!("{name} after build"), what, ("failed", failed));
            findings.add(hit.with(Some(("then", passed.call))));
        }
    }

    /// All deprecated functions are one finding.
    fn deprecated(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let mut rows: Vec<_> = self.deprecated.iter().map(|(id, (n, first))| (*id, *n, *first)).collect();
        rows.sort_by_key(|(id, _, first)| (first.start, *id));
        let words = rows.iter().filter_map(|(id, ..)| {
            let function = knowledge.of(*id)?.function;
            let since = match function.deprecated.as_deref() {
                None | Some("") => String::new(),
                Some(version) => format!(" (since {version})"),
            };
            Some(format!("{}{since}: use {}", function.name, function.replaced.as_deref()?))
        });
        let what = format!("deprecated functions are called: {}", words.collect::<Vec<_>>().join("; "));
        for (_, count, first) in &rows {
            findings.add(Hit::new("deprecated", "", what.clone(), ("call", *first)).times(*count));
        }
    }

    /// The trace has ended.
    pub fn finish(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        self.deprecated(knowledge, findings);
        self.threads.sort_by_key(|thread| thread.ids);
        self.threads.iter_mut().for_each(|thread| thread.end_row(knowledge, findings));
    }
}

/// Whether objects of a type are what others belong to or go to.
fn holds_others(knowledge: &Knowledge<'_>, kind: KindId) -> bool {
    knowledge.kind(kind).is_some_and(|kind| kind.context || kind.queue)
}

/// A call is passed NULL for what could not be made.
fn null_passed(name: &str, what: String, made: Ref, call: Ref) -> Hit {
    Hit::new("ignored-error", name, what, ("failed", made)).with(Some(("then", call)))
}

impl Thread {
    /// What could not be made and is passed as NULL: its place in the table.
    fn null(&self, passed: &Passed, facts: &Facts<'_>) -> Option<usize> {
        let optional = |at: u16| {
            let param = facts.function.params.get(usize::from(at));
            param.is_none_or(|p| p.pointers > 0 || facts.queue == Some(p.name.as_str()))
        };
        let null = |kind: KindId| {
            passed.handles.iter().any(|(at, k, handle)| *k == kind && *handle == 0 && !optional(*at))
        };
        let spans = || [passed.source, passed.target].into_iter().flatten();
        self.missing.iter().position(|missing| match &missing.kind {
            Some(kind) => facts.gives_back.is_none() && null(*kind),
            None => spans().any(|span| span.object.is_none() && span.start == 0),
        })
    }

    fn failed(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let name = &facts.function.name;
        let used = self.null(passed, facts);
        let used = used.and_then(|at| self.missing.get_mut(at)).filter(|missing| !missing.said);
        if let Some(missing) = used {
            missing.said = true;
            let kind = missing.kind.and_then(|kind| knowledge.kind(kind)).map_or("memory", |kind| &kind.name);
            let what = format!("{name} is passed NULL, and fails: the {kind} could not be made before");
            findings.add(null_passed(name, what, missing.call, passed.call));
        }
        // What is enqueued yields an event only where one is asked for.
        let made = facts.makes.iter().filter(|_| !facts.common.enqueues);
        let missing = made.map(|(_, kind)| Some(*kind));
        for kind in missing.chain(facts.allocation.iter().map(|_| None)) {
            self.missing.retain(|missing| missing.kind != kind);
            self.missing.push(Missing { kind, call: passed.call, said: false });
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
            (Some((f, ..)), Some(_)) if *f != function && (facts.common.queries || facts.common.polls) => {}
            _ => {
                self.end_row(knowledge, findings);
                let counts = !facts.common.queries && !facts.common.polls;
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

/// What a signal is called.
pub(super) fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 9] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (15, "SIGTERM"),
    ];
    let name = NAMES.iter().find(|(number, _)| *number == signal);
    name.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// A call will have no end; `killed` is the signal that ended the program.
pub(super) fn unfinished(
    call: Ref,
    about: &Unfinished,
    name: &str,
    killed: Option<i32>,
    findings: &mut Findings,
) {
    let by_signal = killed.map(|signal| format!("when {} ended the program", signal_name(signal)));
    let why = match about.why {
        Why::TraceEnds => by_signal.as_deref().unwrap_or("when the trace ended"),
        Why::ThreadEnded => "when its thread ended",
        // That is a loss of the tracer's, and no fault.
        Why::ExitLost => return,
    };
    let what = format!("{name} had not returned {why}");
    let hit = Hit::new("unfinished-call", format!("{name} {why}"), what, ("call", call));
    findings.add(hit.costs(about.until.saturating_sub(about.start)));
}
