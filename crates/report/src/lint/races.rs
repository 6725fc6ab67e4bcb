//! Commands that nothing orders, of which one writes what the other uses.
//!
//! What a command uses is known of copies, fills and mappings by their parameters, of kernels by the objects
//! that are their arguments. Whether a kernel reads or writes them is known only if the object was made for one
//! of both; two kernels that share an object may well use different parts of it, so of them nothing is claimed.

use super::facts::{Facts, Knowledge};
use super::findings::{Hit, Ref};
use super::kinds::KindId;
use super::order::{Id, Order};
use super::passed::Passed;
use super::rules::Severity;
use super::span::Span;
use hetrace_trace::hash::QuickMap;

/// Uses of one object, or of addresses by one process, that are looked at.
const RECENT: usize = 64;
/// Objects that are followed at a time.
const KEPT: usize = 1 << 16;

/// What a command does to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Reads,
    Writes,
    /// A kernel reads, writes or both.
    Either,
    /// A kernel reads, and nothing else.
    KernelReads,
    /// A kernel writes.
    KernelWrites,
}

impl Does {
    fn is_kernel(self) -> bool {
        matches!(self, Self::Either | Self::KernelReads | Self::KernelWrites)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Reads | Self::KernelReads => "reads",
            Self::Writes | Self::KernelWrites => "writes",
            Self::Either => "uses",
        }
    }
}

/// A command uses bytes.
#[derive(Clone, Copy, Debug)]
struct Access {
    id: Id,
    span: Span,
    does: Does,
    call: Ref,
}

/// Where accesses are kept: by the process's position, for an object or for all addresses.
type Place = (usize, Option<(KindId, u64)>);

/// Uses of memory by commands that may not be over.
#[derive(Debug, Default)]
pub(super) struct Races {
    recent: QuickMap<Place, Vec<Access>>,
    /// Calls whose fault is known.
    pub known: QuickMap<(i64, i64, u64), ()>,
}

impl Races {
    /// A command that is enqueued uses bytes; returns the fault, if it has one.
    pub fn uses(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        (span, does, whole): (Span, Does, Option<u64>),
        order: &Order,
        knowledge: &Knowledge<'_>,
    ) -> Option<Hit> {
        let process = passed.by.process;
        if self.recent.len() > KEPT {
            self.recent.clear();
        }
        let Self { recent, known } = self;
        let recent = recent.entry((process, span.object)).or_default();
        recent.retain(|access| !order.is_done(process, access.id));
        let access = Access { id: passed.command, span, does, call: passed.call };
        let clash = recent.iter().rev().find(|other| {
            other.id != access.id
                && clashes(other, &access)
                && !order.are_ordered(process, other.id, access.id)
        });
        let hit = clash.copied().map(|other| {
            known.insert((passed.call.pid, passed.call.tid, passed.call.start), ());
            hit(facts, &access, &other, whole, knowledge)
        });
        // Behind the last one of the same kind in its queue nothing is that is not behind this one.
        let same = |other: &Access| other.does == does && other.span == span;
        if let Some(other) = recent
            .iter_mut()
            .find(|other| same(other) && order.are_ordered_by_queue(process, other.id, access.id))
        {
            *other = access;
        } else {
            if recent.len() >= RECENT {
                recent.remove(0);
            }
            recent.push(access);
        }
        hit
    }

    /// An object is gone, or another is at its handle.
    pub fn forget(&mut self, process: usize, object: (KindId, u64)) {
        self.recent.remove(&(process, Some(object)));
    }
}

fn clashes(a: &Access, b: &Access) -> bool {
    if !a.span.meets(&b.span) || (a.does.is_kernel() && b.does.is_kernel()) {
        return false;
    }
    match (a.does, b.does) {
        (Does::Reads | Does::KernelReads, Does::Reads | Does::KernelReads) => false,
        (_, _) => true,
    }
}

#[cold]
fn hit(
    facts: &Facts<'_>,
    access: &Access,
    other: &Access,
    whole: Option<u64>,
    knowledge: &Knowledge<'_>,
) -> Hit {
    let name = &facts.function.name;
    let before = knowledge.of(other.call.function).map_or("a call", |facts| &facts.function.name);
    let (first, last) = (access.span.start.max(other.span.start), access.span.end().min(other.span.end()));
    let bytes = last.saturating_sub(first);
    let what = match access.span.object {
        Some((kind, handle)) => {
            let kind = knowledge.kind(kind).map_or("object", |kind| &kind.name);
            format!("{kind} {handle:#x}")
        }
        None => format!("{bytes} B at {first:#x}"),
    };
    let what = format!(
        "{name} {} {what}, which {before} {}: nothing orders the two commands",
        access.does.word(),
        other.does.word()
    );
    let hit = Hit::new("race", format!("{name} {before}"), what, ("call", access.call));
    let hit = hit.with(Some(("other", other.call)));
    let kernel = access.does.is_kernel() || other.does.is_kernel();
    let reads = [access.does, other.does].contains(&Does::Reads);
    let either = [access.does, other.does].contains(&Does::Either);
    let part = whole.is_none_or(|whole| bytes < whole);
    match (kernel, either && reads) {
        (true, true) => hit.graded(Severity::Warning, Some("the kernel may only read it")),
        (true, false) if part => hit.graded(Severity::Warning, Some("the kernel may use other bytes of it")),
        _ => hit,
    }
}
