//! Commands and memory: who waits for whom, what was written, what is mapped, what races.
//!
//! ```text
//!  arguments   what a launch's kernel is passed  ──┐
//!  waits       which commands are over, by order  ─┼──►  races, maps, contents, repeats
//!  passed      what a call copies, maps, ends  ────┘
//! ```

use super::arguments::Kernels;
use super::contents::Contents;
use super::facts::{Facts, Knowledge};
use super::findings::Findings;
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::maps::{Maps, Use};
use super::memory::Memory;
use super::own_events::OwnEvents;
use super::passed::Passed;
use super::races::{Does, Races};
use super::repeats::Repeats;
use super::span::Span;
use super::waits::Waits;
use hetrace_trace::spans::Command;
use hetrace_trace::values::Values;

/// All that is followed of commands and their memory.
#[derive(Debug, Default)]
pub(super) struct Hazards {
    waits: Waits,
    races: Races,
    maps: Maps,
    contents: Contents,
    kernels: Kernels,
    repeats: Repeats,
    own_events: OwnEvents,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub at: u64,
    pub failed: bool,
}

/// Memory objects that a call is passed.
fn objects(passed: &Passed, knowledge: &Knowledge<'_>) -> Vec<(KindId, u64)> {
    let holds = |kind: KindId| knowledge.kind(kind).is_some_and(|kind| kind.memory);
    let objects = passed.handles.iter().filter(|(_, kind, handle)| *handle != 0 && holds(*kind));
    objects.map(|(_, kind, handle)| (*kind, *handle)).collect()
}

fn whole(object: (KindId, u64)) -> Span {
    Span { object: Some(object), start: 0, bytes: u64::MAX }
}

impl Hazards {
    /// A call begins.
    #[inline]
    pub fn entry(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
    ) {
        self.own_events.entry(passed, facts);
        if facts.orders || self.waits.has_reads() {
            self.waits.entry(passed, facts, (lifetimes, knowledge));
        }
        if !passed.root || !facts.common.enqueues {
            return;
        }
        if facts.common.launches {
            let all = !self.maps.is_empty() || self.waits.order.is_open(passed.by.process);
            self.kernels.entry(passed, facts, (lifetimes, all), knowledge);
        }
        if !self.maps.is_empty() {
            self.mapped(passed, facts, knowledge);
        }
    }

    /// Commands that use what is mapped.
    fn mapped(&mut self, passed: &mut Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) {
        let mut uses: Vec<((KindId, u64), Use)> = Vec::new();
        if facts.transfers {
            uses.extend(passed.source.and_then(|span| Some((span.object?, Use::Reads))));
            uses.extend(passed.target.and_then(|span| Some((span.object?, Use::Writes))));
        } else if facts.reads {
            uses.extend(objects(passed, knowledge).into_iter().map(|object| (object, Use::Reads)));
        }
        for used in &passed.used {
            let how = match used.memory {
                memory if memory.only_read => Use::Reads,
                memory if memory.only_written => Use::Writes,
                _ => Use::MayWrite,
            };
            uses.push((used.object, how));
        }
        let hits = uses.iter().filter_map(|(object, how)| self.maps.used(passed, facts, *object, *how));
        let hits: Vec<_> = hits.collect();
        passed.faults.extend(hits);
        for span in [passed.source, passed.target].into_iter().flatten() {
            if span.object.is_none() {
                self.maps.stages(passed.call.pid, &span);
            }
        }
    }

    /// A call ends.
    pub fn exit(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (ended, out): (Ended, &Values<'_>),
        (lifetimes, memory): (&mut Lifetimes, &mut Memory),
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let duration = ended.at.saturating_sub(passed.call.start);
        if passed.root {
            self.repeats.count(passed.by.thread, duration);
            if !ended.failed && (facts.transfers || facts.common.syncs) {
                self.repeats.exit(passed, facts, ended.at, memory);
            }
            if passed.argument.is_some() {
                self.kernels.set(passed, facts, (duration, ended.failed), lifetimes, findings);
                return;
            }
        }
        if ended.failed {
            return;
        }
        if facts.common.enqueues {
            self.enqueued(passed, facts, (lifetimes, memory), knowledge, findings);
        }
        if (facts.common.launches && passed.kernel.is_none()) || facts.function.resets {
            // What a graph has in it is not followed.
            self.waits.lose(passed.by.process);
        }
        if facts.common.records {
            self.contents.unknown(passed, facts);
        }
        if passed.root && (facts.maps || facts.unmaps) {
            self.maps.exit(passed, facts, out, knowledge);
        }
        if !facts.makes.is_empty() {
            self.own_events.made(passed, facts, out, knowledge);
            self.made(passed, facts, out, knowledge);
        }
        if facts.orders && (!facts.common.enqueues || passed.waits || facts.calls_back) {
            self.waits.exit(passed, facts, duration, (lifetimes, knowledge));
        }
        for (kind, handle) in &passed.ended {
            let Some(kind) = kind.filter(|kind| knowledge.kind(*kind).is_some_and(|kind| kind.memory)) else {
                continue;
            };
            if lifetimes.is_alive(passed.call.pid, (kind, *handle)) {
                continue;
            }
            self.races.forget(passed.by.process, (kind, *handle));
            if !self.maps.is_empty() {
                self.maps.released(passed.call.pid, (kind, *handle), passed.call, knowledge, findings);
            }
        }
    }

    /// A quiet call of the program itself has succeeded, after so long: see [`Facts::quiet`].
    #[inline]
    pub fn quiet(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duration: u64,
        lifetimes: &Lifetimes,
        findings: &mut Findings,
    ) {
        self.repeats.count(passed.by.thread, duration);
        if passed.argument.is_some() {
            self.kernels.set(passed, facts, (duration, false), lifetimes, findings);
        }
    }

    /// Kernels and queues that a call has made.
    fn made(&mut self, passed: &Passed, facts: &Facts<'_>, out: &Values<'_>, knowledge: &Knowledge<'_>) {
        for (place, kind) in &facts.makes {
            let Some(about) = knowledge.kind(*kind).filter(|kind| !kind.event && !kind.memory) else {
                continue;
            };
            if about.queue {
                let unordered = facts.numbers.flags.map_or(0, |bits| bits.means.unordered);
                let unordered = unordered & passed.flags != 0;
                let queues = out.all(*place).iter();
                queues.for_each(|queue| self.waits.order.made(passed.by.process, *queue, unordered));
            } else if passed.root {
                let first = passed.handles.first().filter(|(_, known, _)| known == kind);
                let of = first.map(|(_, _, handle)| *handle);
                out.all(*place).iter().for_each(|handle| self.kernels.made(passed.call.pid, *handle, of));
            }
        }
    }

    /// A call that enqueues has succeeded.
    fn enqueued(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (lifetimes, memory): (&mut Lifetimes, &mut Memory),
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        self.waits.enqueued(passed, facts, (lifetimes, memory), knowledge);
        if let Some(hit) = memory.enqueued(passed, facts) {
            findings.add(hit);
        }
        if !passed.root {
            if facts.common.launches {
                self.contents.unknown(passed, facts);
            }
            return;
        }
        let is_open = self.waits.order.is_open(passed.by.process);
        if facts.common.launches {
            self.contents.launched(passed, facts, lifetimes, findings);
            if is_open {
                self.race_of_launch(passed, facts, knowledge, findings);
            }
            return;
        }
        let objects = if facts.transfers { Vec::new() } else { objects(passed, knowledge) };
        self.contents.exit(passed, facts, &objects, lifetimes, findings);
        if is_open {
            self.race_of_copy(passed, facts, &objects, lifetimes, knowledge, findings);
        }
    }

    fn race_of_launch(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        for used in &passed.used {
            let does = match used.memory {
                memory if memory.only_read => Does::KernelReads,
                memory if memory.only_written => Does::KernelWrites,
                _ => Does::Either,
            };
            let access = (whole(used.object), does, used.bytes);
            let hit = self.races.uses(passed, facts, access, &self.waits.order, knowledge);
            hit.into_iter().for_each(|hit| findings.add(hit));
        }
    }

    fn race_of_copy(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        objects: &[(KindId, u64)],
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let bytes =
            |span: &Span| lifetimes.object(passed.call.pid, span.object?).and_then(|known| known.bytes);
        let mut uses = |span: Span, does: Does| {
            let access = (span, does, bytes(&span));
            let hit = self.races.uses(passed, facts, access, &self.waits.order, knowledge);
            hit.into_iter().for_each(|hit| findings.add(hit));
        };
        if facts.transfers {
            passed.source.into_iter().for_each(|span| uses(span, Does::Reads));
            passed.target.into_iter().for_each(|span| uses(span, Does::Writes));
        } else if facts.maps {
            let bits = facts.numbers.flags.map_or(0, |bits| bits.means.host_writes);
            let does = if bits & passed.flags != 0 { Does::Writes } else { Does::Reads };
            objects.iter().for_each(|object| uses(whole(*object), does));
        }
    }

    /// A command of a device.
    pub fn command(&mut self, command: &Command<'_>) {
        self.waits.command(command);
    }

    /// Whether a call has a race that is reported.
    pub fn has_raced(&self, call: (i64, i64, u64)) -> bool {
        self.races.known.contains_key(&call)
    }

    /// The trace has ended, perhaps because the program did.
    pub fn finish(&self, ended: bool, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        self.waits.finish(ended, knowledge, findings);
        self.kernels.finish(knowledge, findings);
        self.repeats.finish(knowledge, findings);
        self.own_events.finish(knowledge, findings);
        if ended {
            self.maps.finish(knowledge, findings);
        }
    }
}
