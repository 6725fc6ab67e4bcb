//! Objects that one call at a time may be passed.

use crate::lint::facts::{Facts, Knowledge};
use crate::lint::findings::{Hit, Ref};
use crate::lint::objects::Key;
use crate::lint::passed::Passed;
use hetrace_trace::hash::QuickMap;

/// What open calls have to themselves.
#[derive(Debug, Default)]
pub(super) struct Exclusive {
    held: QuickMap<Key, Ref>,
}

impl Exclusive {
    /// A call begins.
    pub fn entry(&mut self, passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Option<Hit> {
        let (_, kind, handle) = *passed.handles.first().filter(|(_, _, handle)| *handle != 0)?;
        let key = (passed.call.pid, kind, handle);
        match self.held.get(&key).copied() {
            Some(held) if held.tid != passed.call.tid => {
                let kind = knowledge.kind(kind).map_or("object", |kind| &kind.name);
                let name = &facts.function.name;
                let other = knowledge.of(held.function).map_or("a call", |facts| &facts.function.name);
                let what = format!("{name} is passed a {kind} that {other} of another thread is using");
                let hit = Hit::new("concurrent-use", format!("{name} {other}"), what, ("call", passed.call));
                Some(hit.with(Some(("beside", held))))
            }
            Some(_) => None,
            None => {
                self.held.insert(key, passed.call);
                None
            }
        }
    }

    /// It ends.
    pub fn exit(&mut self, passed: &Passed) {
        let Some((_, kind, handle)) = passed.handles.first() else { return };
        let key = (passed.call.pid, *kind, *handle);
        if self.held.get(&key) == Some(&passed.call) {
            self.held.remove(&key);
        }
    }
}
