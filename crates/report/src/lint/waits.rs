//! What the program waits for: nothing that is left, the same again, or never.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::memory::Memory;
use super::order::{After, Id, Order};
use super::passed::Passed;
use super::span::Span;
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::{Command, MemoryKind};
use hetrace_trace::trace::FunctionId;

/// Needless waits from which on it is worth a word.
const NEEDLESS: u64 = 5;
/// Reads that are followed at a time.
const PENDING: usize = 1024;

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Queue(u64),
    Events,
    All,
    Unknown,
}

/// A read that nothing has waited for.
#[derive(Clone, Copy, Debug)]
struct Read {
    process: usize,
    id: Id,
    target: Option<Span>,
    call: Ref,
}

/// All waits.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub order: Order,
    reads: Vec<Read>,
    finished: QuickMap<(i64, FunctionId), Sum>,
    twice: QuickMap<(i64, FunctionId), Sum>,
}

fn target(passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Target {
    let mut rest = Target::All;
    for (_, kind, handle) in &passed.handles {
        match knowledge.kind(*kind) {
            Some(kind) if kind.queue => return Target::Queue(facts.common.queue_of(*handle)),
            Some(kind) if kind.event => rest = Target::Events,
            Some(kind) if kind.context => {}
            _ => rest = Target::Unknown,
        }
    }
    rest
}

fn events<'p>(
    passed: &'p Passed,
    knowledge: &'p Knowledge<'_>,
) -> impl Iterator<Item = (KindId, u64)> + use<'p> {
    let is_event = |kind: KindId| knowledge.kind(kind).is_some_and(|kind| kind.event);
    passed
        .handles
        .iter()
        .filter(move |(_, kind, handle)| *handle != 0 && is_event(*kind))
        .map(|(_, k, h)| (*k, *h))
}

impl Waits {
    /// Whether there are reads that nothing has waited for.
    pub fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// A call begins.
    pub fn entry(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (lifetimes, knowledge): (&Lifetimes, &Knowledge<'_>),
    ) {
        let process = passed.by.process;
        if facts.common.enqueues || facts.common.syncs || facts.common.polls || facts.may_wait {
            passed.mark = self.order.last(process);
        }
        if facts.callback && !facts.common.enqueues {
            // It may be called, and release the event, before the call returns.
            self.events(passed, facts, lifetimes, knowledge);
        }
        if passed.root && !self.reads.is_empty() {
            self.used(passed, facts);
        }
        if !passed.root || !facts.common.syncs {
            return;
        }
        passed.idle = match target(passed, facts, knowledge) {
            Target::Queue(queue) => self.order.is_idle(process, Some(queue)),
            Target::All => self.order.is_idle(process, None),
            Target::Unknown => false,
            Target::Events => {
                let mut events = events(passed, knowledge).peekable();
                events.peek().is_some()
                    && events.all(|event| {
                        let command = lifetimes.command_of(passed.call.pid, event);
                        command.is_some_and(|id| self.order.is_done(process, id))
                    })
            }
        };
    }

    /// Memory is used that a read may not have written yet.
    fn used(&mut self, passed: &mut Passed, facts: &Facts<'_>) {
        let freed = passed.freed.iter().filter(|_| !facts.may_wait);
        for address in freed.chain(&passed.host).filter(|address| **address != 0) {
            let inside = |read: &&Read| {
                read.target.is_some_and(|span| {
                    span.object.is_none() && address.wrapping_sub(span.start) < span.bytes
                })
            };
            let of = |read: &Read| read.process == passed.by.process;
            let Some(at) = self.reads.iter().position(|read| of(read) && inside(&read)) else { continue };
            // It is said once.
            let read = self.reads.remove(at);
            let name = &facts.function.name;
            let does = if facts.frees.is_some() { "frees" } else { "reads" };
            let what = format!(
                "{name} {does} the memory at {address:#x}, into which a command that nothing has waited for reads"
            );
            let hit = Hit::new("unwaited-read", format!("{name} {does}"), what, ("use", passed.call));
            passed.faults.push(hit.with(Some(("read", read.call))));
            return;
        }
    }

    /// A call that enqueues has succeeded: its command has a number now.
    #[inline]
    pub fn enqueued(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (lifetimes, memory): (&mut Lifetimes, &Memory),
        knowledge: &Knowledge<'_>,
    ) {
        let (pid, process) = (passed.call.pid, passed.by.process);
        let queue = facts.common.queue_of(passed.queue.unwrap_or(0));
        if !passed.root {
            self.order.count(process, queue);
            return;
        }
        let records = facts.marks && facts.function.command.is_none();
        let id = if facts.names_events && !records {
            let named = events(passed, knowledge);
            let after =
                named.map(|event| lifetimes.command_of(pid, event).map_or(After::Unknown, After::Command));
            self.order.enqueue(process, queue, after, facts.barrier)
        } else {
            self.order.enqueue(process, queue, std::iter::empty(), facts.barrier)
        };
        passed.command = id;
        if records {
            // An event that is recorded stands for all that is before it in its queue.
            let recorded: Vec<_> = events(passed, knowledge).collect();
            recorded.into_iter().for_each(|event| lifetimes.stands_for(pid, event, id));
        }
        if facts.obscure_command {
            self.order.forget(process, queue);
        }
        if !facts.transfers && !facts.reads {
            return;
        }
        let at_host = |span: &Span| span.object.is_none() && !memory.is_device(pid, span);
        let from_device = passed.source.is_some_and(|span| memory.is_device(pid, &span));
        let reads = match passed.target.filter(|_| facts.transfers) {
            Some(target) => at_host(&target) && from_device,
            None => facts.reads,
        };
        if reads && !passed.waits {
            if self.reads.len() >= PENDING {
                self.reads.remove(0);
            }
            self.reads.push(Read { process, id, target: passed.target, call: passed.call });
        }
    }

    /// A call has succeeded: what it waited for is over.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duration: u64,
        (lifetimes, knowledge): (&Lifetimes, &Knowledge<'_>),
    ) {
        let (pid, process, call) = (passed.call.pid, passed.by.process, passed.call);
        if facts.common.syncs {
            let target = target(passed, facts, knowledge);
            match target {
                Target::Queue(queue) => self.order.finish(process, Some(queue), passed.mark),
                Target::All | Target::Unknown => self.order.finish(process, None, passed.mark),
                Target::Events => self.events(passed, facts, lifetimes, knowledge),
            }
            if passed.root && passed.idle {
                let table = if target == Target::Events { &mut self.twice } else { &mut self.finished };
                table.entry((pid, call.function)).or_insert(Sum::new(call)).add(duration);
            }
        } else if facts.may_wait {
            self.order.finish(process, None, passed.mark);
        } else if passed.waits && facts.common.enqueues {
            match passed.queue.map(|queue| facts.common.queue_of(queue)) {
                Some(queue) if queue != 0 && passed.command != 0 => self.order.wait(process, passed.command),
                _ => self.order.finish(process, None, passed.mark.max(passed.command)),
            }
        } else if facts.calls_back {
            self.order.wait(process, passed.command);
        } else if facts.asks || facts.callback {
            self.events(passed, facts, lifetimes, knowledge);
            return;
        } else {
            return;
        }
        if !self.reads.is_empty() {
            let order = &self.order;
            self.reads.retain(|read| !order.is_done(read.process, read.id));
        }
    }

    /// Commands whose events are named are over, or the program can know when they are.
    fn events(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
    ) {
        if facts.common.polls
            && let Target::Queue(queue) = target(passed, facts, knowledge)
        {
            self.order.finish(passed.by.process, Some(queue), passed.mark);
        }
        for event in events(passed, knowledge) {
            if let Some(id) = lifetimes.command_of(passed.call.pid, event) {
                self.order.wait(passed.by.process, id);
            }
        }
        if !self.reads.is_empty() {
            let order = &self.order;
            self.reads.retain(|read| !order.is_done(read.process, read.id));
        }
    }

    /// What a process has enqueued may be run by others, or be over.
    pub fn lose(&mut self, process: usize) {
        self.order.fence(process);
        self.reads.retain(|read| read.process != process);
    }

    /// A command of a device: copies into pageable memory are over when their call ends.
    pub fn command(&mut self, command: &Command<'_>) {
        if command.to == MemoryKind::Pageable && !self.reads.is_empty() {
            let of = |read: &Read| {
                (read.call.pid, read.call.tid, read.call.start)
                    == (command.pid, command.cause_tid, command.cause)
            };
            self.reads.retain(|read| !of(read));
        }
    }

    /// The trace has ended.
    pub fn finish(&self, ended: bool, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        for read in self.reads.iter().filter(|_| ended) {
            let Some(facts) = knowledge.of(read.call.function) else { continue };
            let name = &facts.function.name;
            let what =
                format!("{name} does not wait for its bytes, and nothing else does before the program ends");
            findings.add(Hit::new("unwaited-read", name, what, ("read", read.call)));
        }
        let tables = [
            (&self.finished, "redundant-sync", "waits for what was over already, as the program had seen"),
            (&self.twice, "double-wait", "waits again for commands that the program had waited for"),
        ];
        for (table, rule, what) in tables {
            let mut rows: Vec<_> = table.iter().filter(|(_, sum)| sum.count >= NEEDLESS).collect();
            rows.sort_by_key(|(key, _)| **key);
            for ((pid, function), sum) in rows {
                let Some(facts) = knowledge.of(*function) else { continue };
                let name = &facts.function.name;
                let hit =
                    Hit::new(rule, format!("{pid} {name}"), format!("{name} {what}"), ("first", sum.first));
                findings.add(hit.times(sum.count).costs(sum.ns));
            }
        }
    }
}
