//! Memory that is mapped for the host: what never ends, and what commands do to it meanwhile.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::passed::Passed;
use super::rules::Severity;
use super::span::Span;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::values::{Place, Values};

/// Mappings that are followed at a time.
const KEPT: usize = 1 << 16;

/// A mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    /// What the host has.
    address: u64,
    bytes: u64,
    writes: bool,
    call: Ref,
    /// The host's side of a copy lies in it: memory that was made to be copied from.
    stages: bool,
}

/// An object, or memory at an address.
type Mapped = (i64, Option<KindId>, u64);

/// All mappings.
#[derive(Debug, Default)]
pub(super) struct Maps {
    by_object: QuickMap<Mapped, Vec<Mapping>>,
}

/// How a command uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    Writes,
    /// A kernel has it as an argument.
    MayWrite,
}

/// What a call maps or ends the mapping of: the memory object that it is passed, or an address.
fn mapped(passed: &Passed, knowledge: &Knowledge<'_>) -> Option<Mapped> {
    let holds = |kind: KindId| knowledge.kind(kind).is_some_and(|kind| kind.memory);
    let object = passed.handles.iter().find(|(_, kind, _)| holds(*kind));
    object.map(|(_, kind, handle)| (passed.call.pid, Some(*kind), *handle))
}

impl Maps {
    pub fn is_empty(&self) -> bool {
        self.by_object.is_empty()
    }

    /// A call of the program itself has succeeded.
    pub fn exit(&mut self, passed: &Passed, facts: &Facts<'_>, out: &Values<'_>, knowledge: &Knowledge<'_>) {
        if facts.maps
            && self.by_object.len() < KEPT
            && let Some(object) = mapped(passed, knowledge)
        {
            let address = out.first(Place::Result).unwrap_or(0);
            let bits = facts.numbers.flags.map_or(0, |bits| bits.means.host_writes);
            let writes = bits == 0 || bits & passed.flags != 0;
            let bytes = passed.size.unwrap_or(1);
            let mapping = Mapping { address, bytes, writes, call: passed.call, stages: false };
            self.by_object.entry(object).or_default().push(mapping);
        } else if facts.unmaps
            && let Some(object) = mapped(passed, knowledge)
            && let Some(mappings) = self.by_object.get_mut(&object)
        {
            let known = mappings.iter().position(|mapping| Some(mapping.address) == passed.unmapped);
            mappings.remove(known.unwrap_or(mappings.len() - 1));
            if mappings.is_empty() {
                self.by_object.remove(&object);
            }
        }
    }

    /// A copy has this side at the host.
    pub fn stages(&mut self, pid: i64, span: &Span) {
        let mappings = self.by_object.iter_mut().filter(|((of, ..), _)| *of == pid);
        for mapping in mappings.flat_map(|(_, mappings)| mappings) {
            mapping.stages |= span.start.wrapping_sub(mapping.address) < mapping.bytes;
        }
    }

    /// A command that is enqueued uses an object.
    pub fn used(&self, passed: &Passed, facts: &Facts<'_>, object: (KindId, u64), how: Use) -> Option<Hit> {
        let mappings = self.by_object.get(&(passed.call.pid, Some(object.0), object.1))?;
        let writes = mappings.iter().find(|mapping| mapping.writes);
        let mapping = writes.or(mappings.first().filter(|_| how != Use::Reads))?;
        let name = &facts.function.name;
        let does = match how {
            Use::Reads => "reads an object",
            Use::Writes => "writes an object",
            Use::MayWrite => "launches a kernel with an argument",
        };
        let what = format!(
            "{name} {does} that is mapped for the host to {}",
            match mapping.writes {
                true => "write",
                false => "read",
            }
        );
        let hit = Hit::new("mapped-in-use", format!("{name} {how:?}"), what, ("use", passed.call));
        let hit = hit.with(Some(("mapped", mapping.call)));
        Some(match how == Use::MayWrite && !mapping.writes {
            true => hit.graded(Severity::Warning, Some("the kernel may only read it, which is allowed")),
            false => hit,
        })
    }

    /// An object is gone: what is still mapped of it will never end.
    pub fn released(
        &mut self,
        pid: i64,
        object: (KindId, u64),
        by: Ref,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let Some(mappings) = self.by_object.remove(&(pid, Some(object.0), object.1)) else { return };
        for mapping in mappings.iter().filter(|mapping| !mapping.stages) {
            findings.add(leaked(mapping, object.0, knowledge).with(Some(("released", by))));
        }
    }

    /// The trace has ended, and the program by itself.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let all = self.by_object.iter().flat_map(|((_, kind, _), m)| m.iter().map(move |m| (*kind, m)));
        let mut left: Vec<_> = all.filter(|(_, mapping)| !mapping.stages).collect();
        left.sort_by_key(|(_, mapping)| (mapping.call.start, mapping.call.tid));
        for (kind, mapping) in left {
            findings.add(leaked(mapping, kind.unwrap_or(KindId::MAX), knowledge));
        }
    }
}

fn leaked(mapping: &Mapping, kind: KindId, knowledge: &Knowledge<'_>) -> Hit {
    let name = knowledge.of(mapping.call.function).map_or("a call", |facts| &facts.function.name);
    let kind = knowledge.kind(kind).map_or("memory", |kind| &kind.name);
    let what = format!("{name} maps a {kind} for the host, and nothing ends that");
    Hit::new("map-leak", name, what, ("mapped", mapping.call))
}
