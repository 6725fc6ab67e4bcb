//! Events that the program completes itself, and what waits for those that it never completes.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::passed::Passed;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::values::Values;

/// Events that are followed at a time.
const KEPT: usize = 1 << 16;

/// An event that is not completed yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    made: Ref,
    /// The first call that waits for it, or whose command does.
    waits: Option<Ref>,
}

/// All of them, by process, type and handle.
#[derive(Debug, Default)]
pub(super) struct OwnEvents {
    open: QuickMap<(i64, KindId, u64), Open>,
}

impl OwnEvents {
    /// A call begins: it completes events, or waits for some.
    #[inline]
    pub fn entry(&mut self, passed: &Passed, facts: &Facts<'_>) {
        if self.open.is_empty() || !facts.names_events {
            return;
        }
        let waits = facts.common.enqueues || facts.common.syncs;
        for (_, kind, handle) in &passed.handles {
            let key = (passed.call.pid, *kind, *handle);
            if facts.completes {
                self.open.remove(&key);
            } else if waits && let Some(open) = self.open.get_mut(&key) {
                open.waits.get_or_insert(passed.call);
            }
        }
    }

    /// A call has made events.
    pub fn made(&mut self, passed: &Passed, facts: &Facts<'_>, out: &Values<'_>, knowledge: &Knowledge<'_>) {
        if facts.common.enqueues || self.open.len() >= KEPT {
            return;
        }
        for (place, kind) in &facts.makes {
            if knowledge.kind(*kind).is_some_and(|kind| kind.completed) {
                let handles = out.all(*place).iter().filter(|handle| **handle != 0);
                let open = Open { made: passed.call, waits: None };
                self.open.extend(handles.map(|handle| ((passed.call.pid, *kind, *handle), open)));
            }
        }
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let waited =
            self.open.iter().filter_map(|((_, kind, _), open)| Some((*kind, open.made, open.waits?)));
        let mut waited: Vec<(KindId, Ref, Ref)> = waited.collect();
        waited.sort_by_key(|(_, made, waits)| (waits.start, waits.tid, made.start));
        for (kind, made, waits) in waited {
            let name = knowledge.of(waits.function).map_or("a call", |facts| &facts.function.name);
            let kind = knowledge.kind(kind).map_or("event", |kind| &kind.name);
            let what =
                format!("{name} waits for a {kind} that the program is to complete itself, and never does");
            findings
                .add(Hit::new("event-never-set", name, what, ("waits", waits)).with(Some(("made", made))));
        }
    }
}
