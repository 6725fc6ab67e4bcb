//! What calls are passed that fail: NULL, objects that nobody handed out, or all too early.

use std::collections::HashSet;

use super::homes::Homes;
use crate::lint::facts::{Facts, Knowledge};
use crate::lint::findings::{Findings, Hit};
use crate::lint::kinds::KindId;
use crate::lint::lifetimes::Lifetimes;
use crate::lint::passed::Passed;
use crate::lint::rules::Severity;
use hetrace_trace::values::Values;

/// Handles that are remembered.
const KEPT: usize = 1 << 20;

/// What is needed to judge calls that fail.
#[derive(Debug, Default)]
pub(super) struct Failed {
    /// Handed out otherwise than to be released: by process.
    handed: HashSet<(i64, u64)>,
    /// APIs that are usable, by process.
    usable: HashSet<(i64, u16)>,
    /// What fails as they are not has been said.
    said: HashSet<(i64, u16)>,
}

/// Whether a parameter may be NULL as the API has it.
fn optional(facts: &Facts<'_>, at: u16, kind: KindId, knowledge: &Knowledge<'_>) -> bool {
    let param = facts.function.params.get(usize::from(at));
    let Some((param, about)) = param.zip(knowledge.kind(kind)) else { return true };
    let is_queue = about.queue || facts.queue == Some(param.name.as_str());
    // Events and fences are asked for by a handle where something else is the first.
    param.pointers > 0 || (about.event && at > 0) || (is_queue && !facts.common.default_queues.is_empty())
}

/// A call that fails, or never returns, was passed NULL.
pub(super) fn null(passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Option<Hit> {
    let null = passed
        .handles
        .iter()
        .find(|(at, kind, handle)| *handle == 0 && !optional(facts, *at, *kind, knowledge));
    let name = &facts.function.name;
    let which = match null {
        Some((at, ..)) => facts.function.params.get(usize::from(*at))?.name.clone(),
        None => {
            let address = |span: &Option<crate::lint::span::Span>| {
                span.is_some_and(|span| span.object.is_none() && span.start == 0)
            };
            match (address(&passed.source), address(&passed.target)) {
                (true, _) => "the address that it reads from".to_owned(),
                (_, true) => "the address that it writes to".to_owned(),
                _ => return None,
            }
        }
    };
    let what = format!("{name} is passed NULL: {which}");
    Some(Hit::new("null-argument", format!("{name} {which}"), what, ("call", passed.call)))
}

impl Failed {
    /// A call has returned: what it handed out, and what it makes usable.
    pub fn succeeded(&mut self, passed: &Passed, facts: &Facts<'_>, out: &Values<'_>, api: u16) {
        let pid = passed.call.pid;
        if facts.duties.as_ref().is_some_and(|duties| duties.init) {
            self.usable.insert((pid, api));
        }
        // What a library makes for itself is not in the table of objects.
        let library = if passed.root { [].iter() } else { facts.makes.iter() };
        for (place, _) in facts.mentions.iter().chain(library) {
            if self.handed.len() < KEPT {
                self.handed.extend(out.all(*place).iter().map(|handle| (pid, *handle)));
            }
        }
    }

    /// A call of the program itself has failed.
    #[cold]
    pub fn failed(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        (lifetimes, homes): (&Lifetimes, &Homes),
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let (pid, api) = (passed.call.pid, knowledge.api_of(passed.call.function));
        let name = &facts.function.name;
        let inits = facts.duties.as_ref().is_some_and(|duties| duties.init);
        if knowledge.has_init(api) && !inits && !self.usable.contains(&(pid, api)) {
            if self.said.insert((pid, api)) {
                let what = format!("{name} fails, and nothing has made its API usable before");
                findings.add(Hit::new(
                    "not-initialized",
                    format!("{pid} {api}"),
                    what,
                    ("call", passed.call),
                ));
            }
            return;
        }
        if let Some(hit) = null(passed, facts, knowledge) {
            findings.add(hit);
            return;
        }
        self.unknown(passed, facts, lifetimes, knowledge, findings);
        if let Some(address) =
            passed.freed.iter().find(|address| **address != 0 && !homes.knows(pid, **address))
        {
            let fault = homes.is_complete(pid) && facts.duties.is_some();
            let what = format!("{name} fails to free {address:#x}, which no call has allocated");
            let hit = Hit::new("unknown-object", format!("{name} address"), what, ("call", passed.call));
            if fault {
                findings.add(hit);
            }
        }
    }

    fn unknown(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        // Where queries answer with handles, any may come from there.
        let api = knowledge.api_of(passed.call.function);
        if knowledge.answers(api) || lifetimes.overflow {
            return;
        }
        let pid = passed.call.pid;
        let unknown = passed.handles.iter().find(|(_, _, handle)| {
            *handle != 0 && !lifetimes.knows(pid, *handle) && !self.handed.contains(&(pid, *handle))
        });
        let Some((_, kind, handle)) = unknown else { return };
        let known = knowledge.kind(*kind).map_or("object", |kind| &kind.name);
        let is_default = facts.common.default_queues.contains(handle);
        if is_default || facts.gives_back.is_some_and(|(_, of)| of == *kind) && !passed.faults.is_empty() {
            return;
        }
        let name = &facts.function.name;
        let what = format!("{name} fails with {handle:#x}, a {known} that no call has made or handed out");
        let hit = Hit::new("unknown-object", format!("{name} {known}"), what, ("call", passed.call));
        findings.add(hit.graded(Severity::Error, None));
    }
}
