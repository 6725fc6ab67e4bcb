//! Bytes that are sent again unchanged, as their hash shows: of traces that have hashes (`--hash-copies`).

use std::collections::HashSet;

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::memory::Memory;
use super::passed::{Launched, Passed};
use super::rules::Severity;
use super::span::Span;
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::FunctionId;

/// How often, from which on it is worth a word.
const ROUNDS: u64 = 2;
/// The same, where kernels in between may have written there: then it may be meant.
const DOUBTED: u64 = 5;
/// Ranges that are remembered.
const RANGES: usize = 1024;

/// What a range of a device has.
#[derive(Clone, Copy, Debug)]
struct Kept {
    hash: u64,
    call: Ref,
    /// A kernel may have written there since.
    doubt: bool,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    sum: Sum,
    bytes: u64,
    before: Ref,
}

/// All that was sent, by the process's position.
#[derive(Debug, Default)]
pub(super) struct Sent {
    there: QuickMap<(usize, Span), Kept>,
    /// What a kernel may write, as its last launch that was looked at showed.
    written: QuickMap<(usize, u64), Vec<(KindId, u64)>>,
    /// Objects that others are a part of: what is written into these is not followed.
    parted: HashSet<(usize, (KindId, u64))>,
    again: QuickMap<(i64, FunctionId, bool), Again>,
    /// The trace has hashes.
    active: bool,
}

impl Sent {
    /// The trace has a hash.
    pub fn begin(&mut self) {
        self.active = true;
    }

    /// A call of the program itself has succeeded, after so long.
    #[inline]
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duration: u64,
        memory: &Memory,
        knowledge: &Knowledge<'_>,
    ) {
        if self.active {
            self.follow(passed, facts, duration, memory, knowledge);
        }
    }

    fn follow(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duration: u64,
        memory: &Memory,
        knowledge: &Knowledge<'_>,
    ) {
        let process = passed.by.process;
        if facts.function.resets {
            self.there.retain(|(of, _), _| *of != process);
        }
        for (kind, handle) in &passed.ended {
            let gone = kind.map(|kind| (kind, *handle));
            self.there.retain(|(of, span), _| *of != process || span.object != gone);
            if let Some(gone) = gone {
                self.parted.remove(&(process, gone));
            }
        }
        let holds = |kind: KindId| knowledge.kind(kind).is_some_and(|kind| kind.memory);
        let objects = passed.handles.iter().filter(|(_, kind, handle)| *handle != 0 && holds(*kind));
        let objects = objects.map(|(_, kind, handle)| (*kind, *handle));
        if facts.transfers {
            self.copied(passed, duration, memory);
        } else if facts.common.launches {
            self.launched(passed);
        } else if !facts.common.enqueues {
            if facts.makes.iter().any(|(_, kind)| holds(*kind)) {
                self.parted.extend(objects.map(|object| (process, object)));
            }
        } else if !facts.reads && !self.is_harmless(passed, facts) {
            let objects: Vec<_> = objects.collect();
            let all = objects.is_empty() && (facts.moves || facts.obscure_command);
            self.there.retain(|(of, span), _| {
                *of != process || !(all || span.object.is_some_and(|object| objects.contains(&object)))
            });
        }
    }

    /// Whether nothing is written by a command that is neither a copy nor a kernel.
    fn is_harmless(&self, passed: &Passed, facts: &Facts<'_>) -> bool {
        let writes = facts.numbers.flags.map_or(0, |bits| bits.means.host_writes);
        facts.unmaps || (facts.maps && writes != 0 && writes & passed.flags == 0)
    }

    fn launched(&mut self, passed: &Passed) {
        let process = passed.by.process;
        let kernel = passed.kernel.map(|kernel| (process, kernel));
        if let Some(kernel) = kernel.filter(|_| passed.launched == Launched::Objects) {
            let written = passed.used.iter().filter(|used| !used.memory.only_read);
            if self.written.len() > RANGES {
                self.written.clear();
            }
            self.written.insert(kernel, written.map(|used| used.object).collect());
        }
        let known = kernel.filter(|_| passed.launched != Launched::Unknown);
        let written = known.and_then(|kernel| self.written.get(&kernel));
        for ((_, span), kept) in self.there.iter_mut().filter(|((of, _), _)| *of == process) {
            let object = span.object;
            kept.doubt |= match (written, object) {
                (Some(written), Some(object)) => {
                    written.contains(&object) || self.parted.contains(&(process, object))
                }
                _ => true,
            };
        }
    }

    fn copied(&mut self, passed: &Passed, duration: u64, memory: &Memory) {
        let Some(target) = passed.target else { return };
        let (process, pid) = (passed.by.process, passed.call.pid);
        let before = self.there.remove(&(process, target));
        self.there.retain(|(of, span), _| *of != process || !span.meets(&target));
        let now = passed.hashed.filter(|hashed| hashed.bytes == target.bytes);
        let Some(now) = now.filter(|_| memory.is_device(pid, &target)) else { return };
        if self.there.len() >= RANGES {
            self.there.clear();
        }
        self.there.insert((process, target), Kept { hash: now.hash, call: passed.call, doubt: false });
        if let Some(before) = before.filter(|before| before.hash == now.hash && !passed.repeats) {
            let new = Again { sum: Sum::new(passed.call), bytes: 0, before: before.call };
            let again = self.again.entry((pid, passed.call.function, before.doubt)).or_insert(new);
            again.sum.add(duration.saturating_sub(now.ns));
            again.bytes = again.bytes.saturating_add(now.bytes);
        }
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let mut rows: Vec<_> = self.again.iter().collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, function, doubt), again) in rows {
            if again.sum.count < if *doubt { DOUBTED } else { ROUNDS } {
                continue;
            }
            let name = knowledge.of(*function).map_or("a call", |facts| &facts.function.name);
            let bytes = hetrace_trace::text::bytes(again.bytes);
            let what = format!("{name} sends bytes, {bytes} in total, to where the same were sent before");
            let about = format!("{pid} {name} hash {doubt}");
            let hit = Hit::new("same-bytes", about, what, ("again", again.sum.first));
            let hit = hit.with(Some(("before", again.before))).times(again.sum.count).costs(again.sum.ns);
            findings.add(match doubt {
                true => hit.graded(Severity::Hint, Some("a kernel in between may have written there")),
                false => hit,
            });
        }
    }
}
