//! Which context memory belongs to that is known by its address, and how far it goes.

use std::collections::{BTreeMap, HashSet};

use crate::lint::duties::handles_of;
use crate::lint::facts::Facts;
use crate::lint::findings::{Hit, PASSES, Ref};
use crate::lint::passed::Passed;
use crate::lint::rules::Severity;
use crate::lint::span::Span;
use hetrace_trace::values::Values;

/// Allocations that are followed at a time.
const KEPT: usize = 1 << 20;

/// An allocation that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub start: u64,
    pub bytes: u64,
    pub context: u64,
    pub made: Ref,
    root: bool,
}

/// All allocations of APIs that have contexts in their calls.
#[derive(Debug, Default)]
pub(super) struct Homes {
    by_address: BTreeMap<(i64, u64), Home>,
    /// Freed ones, as far as they are remembered.
    freed: HashSet<(i64, u64)>,
    /// Processes of which some allocation is not known.
    partial: HashSet<i64>,
}

impl Homes {
    /// Whether an address is, or was, one of an allocation.
    pub fn knows(&self, pid: i64, address: u64) -> bool {
        self.around(pid, address).is_some() || self.freed.contains(&(pid, address))
    }

    /// Whether all allocations of a process are known.
    pub fn is_complete(&self, pid: i64) -> bool {
        !self.partial.contains(&pid)
    }

    /// The allocation that an address is in.
    pub fn around(&self, pid: i64, address: u64) -> Option<&Home> {
        let (_, home) = self.by_address.range((pid, 0)..=(pid, address)).next_back()?;
        (address - home.start < home.bytes.max(1)).then_some(home)
    }

    /// A call has allocated memory: perhaps where some is already.
    pub fn allocated(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        out: &Values<'_>,
        context: Option<u16>,
    ) -> Option<Hit> {
        let pid = passed.call.pid;
        let place = facts.allocation.as_ref()?.address;
        let start = out.first(place).filter(|start| *start != 0)?;
        let Some(bytes) = passed.size.filter(|_| self.by_address.len() < KEPT) else {
            self.partial.insert(pid);
            return None;
        };
        let context = context.and_then(|at| handles_of(&passed.handles, at).next()).map_or(0, |(_, c)| c);
        let end = start.saturating_add(bytes.max(1));
        let before = self.by_address.range((pid, 0)..(pid, end)).next_back().map(|(_, home)| *home);
        let before = before.filter(|home| start < home.start.saturating_add(home.bytes.max(1)));
        let within: Vec<_> = self.by_address.range((pid, start)..(pid, end)).map(|(key, _)| *key).collect();
        for key in within {
            self.by_address.remove(&key);
        }
        if let Some(before) = before {
            self.by_address.remove(&(pid, before.start));
        }
        self.freed.remove(&(pid, start));
        let home = Home { start, bytes, context, made: passed.call, root: passed.root };
        self.by_address.insert((pid, start), home);
        let before = before.filter(|before| before.root && passed.root)?;
        let what = format!(
            "{} returns {bytes} bytes at {start:#x}, within {} at {:#x} that were never freed",
            facts.function.name, before.bytes, before.start
        );
        let hit = Hit::new("overlapping-allocation", &*facts.function.name, what, ("call", passed.call));
        Some(hit.with(Some(("has them", before.made))))
    }

    /// Memory was freed.
    pub fn ended(&mut self, pid: i64, address: u64) {
        self.by_address.remove(&(pid, address));
        if self.freed.len() < KEPT {
            self.freed.insert((pid, address));
        }
    }

    /// All of a process is gone.
    pub fn reset(&mut self, pid: i64) {
        self.by_address.retain(|key, _| key.0 != pid);
    }

    /// Memory of one context is moved in another.
    pub fn strange(&self, passed: &Passed, facts: &Facts<'_>, context: u64, failed: bool) -> Option<Hit> {
        let pid = passed.call.pid;
        let spans = [passed.source, passed.target].into_iter().flatten().filter(|span| span.object.is_none());
        let mut homes = spans.filter_map(|span: Span| Some((span, *self.around(pid, span.start)?)));
        let (span, home) = homes.find(|(_, home)| home.context != context && home.context != 0)?;
        let name = &facts.function.name;
        let what = format!(
            "{name} is passed {:#x} of context {:#x} together with what is of context {context:#x}",
            span.start, home.context
        );
        let hit = Hit::new("wrong-context", format!("{name} memory"), what, ("call", passed.call));
        let hit = hit.with(Some(("made", home.made)));
        Some(if failed { hit } else { hit.graded(Severity::Warning, Some(PASSES)) })
    }
}
