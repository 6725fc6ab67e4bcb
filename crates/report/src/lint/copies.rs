//! Copies: what they have in common, how small they are, what they repeat.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::memory::Memory;
use super::moves::{Move, Moves};
use super::passed::Passed;
use super::span::Span;
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::{Command, MemoryKind};
use hetrace_trace::trace::FunctionId;

/// Commands that run at a time.
const ACTIVE: usize = 256;
/// Overlaps that are kept until it is known whether they are races.
const OVERLAPS: usize = 1 << 12;
/// A small copy has at most so many bytes.
const SMALL: u64 = 16 * 1024;
/// So many of them in a row are many.
const ROW: u64 = 8;
/// Below it, copies from pageable memory are as good as others.
const PAGEABLE: u64 = 64 * 1024;
/// Copies between two launches that are remembered.
const REPEATS: usize = 1024;
/// What is read back as it was sent, from which on it is worth a word: how often, and of how many bytes.
const BACK: (u64, u64) = (2, 4096);

/// A command that runs.
#[derive(Clone, Copy, Debug)]
struct Active {
    start: u64,
    end: u64,
    moves: Move,
    cause: Cause,
}

/// The call that a command came from: its process and thread, and when it began.
pub(super) type Cause = (i64, i64, u64);

/// Two commands that moved the same bytes at the same time. A race if the program did not order them, and then found as
/// one, perhaps later: a device may be done before the call returns.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    call: Ref,
    other: Ref,
    causes: [Cause; 2],
    start: u64,
    bytes: u64,
}

/// Small copies in a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: Ref,
    queue: Option<u64>,
    source: Span,
    target: Span,
    count: u64,
    bytes: u64,
    time: u64,
}

/// A copy by what it moves.
type Same = (Option<Span>, Span);

/// A copy that nothing has read since.
#[derive(Clone, Copy, Debug)]
struct Sent {
    call: Ref,
    /// Nothing else was written there since.
    whole: bool,
    /// Of what was sent, where the trace has it.
    hash: Option<u64>,
}

/// All copies.
#[derive(Debug, Default)]
pub(super) struct Copies {
    moves: Moves,
    active: QuickMap<i64, Vec<Active>>,
    /// To be reported if they are no races.
    overlaps: Vec<Overlap>,
    /// By the position of the thread.
    rows: Vec<Option<Row>>,
    /// By the position of the process: what nothing could have read yet.
    written: Vec<QuickMap<Same, Sent>>,
    /// What was read back as it was sent, by the functions that sent and read.
    back: QuickMap<(i64, FunctionId, FunctionId), (Sum, Ref)>,
    /// How wrong times of devices may be.
    pub error_ns: u64,
}

impl Copies {
    /// A call begins.
    #[inline]
    pub fn entry(&mut self, passed: &mut Passed, facts: &Facts<'_>, memory: &Memory) {
        if !facts.moves && !facts.transfers {
            return;
        }
        if let (Some(source), Some(target)) = (passed.source, passed.target)
            && source.meets(&target)
            && passed.root
            && memory.is_device(passed.call.pid, &target)
        {
            let name = &facts.function.name;
            let what = format!(
                "{name} copies {} bytes onto themselves or their neighbours: from {:#x} to {:#x}",
                source.bytes, source.start, target.start
            );
            passed.faults.push(Hit::new("overlapping-copies", name, what, ("call", passed.call)));
        }
        let key = (passed.call.pid, passed.call.tid, passed.call.start);
        let waits = passed.waits || passed.root_waits;
        let moves = Move { call: passed.outer, source: passed.source, target: passed.target, waits };
        self.moves.insert(key, moves);
    }

    /// A command of a device; `raced` says of which calls a race is known.
    #[inline]
    pub fn command(
        &mut self,
        command: &Command<'_>,
        raced: impl Fn(Cause) -> bool,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        if self.overlaps.len() >= OVERLAPS {
            self.overlapped(&raced, knowledge, findings);
        }
        let key = (command.pid, command.cause_tid, command.cause);
        let Some(moves) = self.moves.get(&key).copied() else { return };
        let Some(facts) = knowledge.of(moves.call.function) else { return };
        let pageable = command.from == MemoryKind::Pageable || command.to == MemoryKind::Pageable;
        if pageable && !moves.waits && command.bytes >= PAGEABLE {
            let name = &facts.function.name;
            let side = if command.from == MemoryKind::Pageable { "from" } else { "to" };
            let what = format!("{name} copies asynchronously {side} pageable memory");
            findings.add(Hit::new("pageable-async", format!("{name} {side}"), what, ("call", moves.call)));
        }
        let Some(times) = command.times else { return };
        if moves.target.is_none() {
            return;
        }
        let active = self.active.entry(command.pid).or_default();
        active.retain(|a| a.end > times.start);
        let margin = self.error_ns.saturating_mul(2).max(1_000);
        for other in
            active.iter().filter(|o| o.end.min(times.end) > times.start.max(o.start).saturating_add(margin))
        {
            if let Some((first, second)) = clash(&other.moves, &moves) {
                let (start, end) = (first.start.max(second.start), first.end().min(second.end()));
                let bytes = end.saturating_sub(start);
                let (call, causes) = (moves.call, [other.cause, key]);
                self.overlaps.push(Overlap { call, other: other.moves.call, causes, start, bytes });
                break;
            }
        }
        if active.len() < ACTIVE {
            active.push(Active { start: times.start, end: times.end, moves, cause: key });
        }
    }

    /// Reports what moved the same bytes and is no race.
    fn overlapped(
        &mut self,
        raced: impl Fn(Cause) -> bool,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        for overlap in self.overlaps.drain(..).filter(|overlap| !overlap.causes.into_iter().any(&raced)) {
            let Overlap { call, other, start, bytes, .. } = overlap;
            let Some(facts) = knowledge.of(call.function) else { continue };
            let name = &facts.function.name;
            let what =
                format!("{name} moves {bytes} bytes at {start:#x} while another command moves them, too");
            let hit = Hit::new("overlapping-copies", format!("{name} in flight"), what, ("call", call));
            findings.add(hit.with(Some(("other", other))));
        }
    }

    /// A call of the program itself has succeeded.
    #[inline]
    pub fn exit(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        duration: u64,
        memory: &Memory,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        if facts.common.enqueues || facts.common.syncs {
            self.row(passed, duration, knowledge, findings);
            self.repeat(passed, facts, duration, memory, findings);
        }
    }

    fn row(&mut self, passed: &Passed, time: u64, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let small = passed.source.zip(passed.target).filter(|(source, _)| source.bytes <= SMALL);
        if self.rows.len() <= passed.by.thread {
            self.rows.resize(passed.by.thread + 1, None);
        }
        let place = &mut self.rows[passed.by.thread];
        if let (Some(row), Some((source, target))) = (place.as_mut(), small)
            && row.first.function == passed.call.function
            && row.queue == passed.queue
            && source.follows(&row.source)
            && target.follows(&row.target)
        {
            (row.source, row.target) = (source, target);
            row.count += 1;
            row.bytes = row.bytes.saturating_add(source.bytes);
            row.time = row.time.saturating_add(time);
            return;
        }
        if let Some(row) = place.take() {
            end_of_row(&row, knowledge, findings);
        }
        *place = small.map(|(source, target)| Row {
            first: passed.call,
            queue: passed.queue,
            source,
            target,
            count: 1,
            bytes: source.bytes,
            time,
        });
    }

    /// Only what is written into memory that the host cannot read counts.
    fn repeat(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        duration: u64,
        memory: &Memory,
        findings: &mut Findings,
    ) {
        if self.written.len() <= passed.by.process {
            self.written.resize_with(passed.by.process + 1, QuickMap::default);
        }
        let written = &mut self.written[passed.by.process];
        let Some(target) = passed.target.filter(|_| facts.transfers) else {
            if facts.common.enqueues {
                written.clear();
            }
            return;
        };
        if let Some(source) = passed.source {
            let (pid, call) = (passed.call.pid, passed.call);
            let whole = |before: &Span| source.bytes >= BACK.1 && before.covers(&source);
            if !memory.is_device(pid, &target)
                && let Some((_, sent)) = written.iter().find(|((from, to), sent)| {
                    sent.whole && whole(to) && from.is_some_and(|from| !memory.is_device(pid, &from))
                })
            {
                let key = (pid, sent.call.function, call.function);
                self.back.entry(key).or_insert((Sum::new(call), sent.call)).0.add(duration);
            }
            written.retain(|(_, before), _| !before.meets(&source));
        }
        for ((_, before), sent) in written.iter_mut() {
            sent.whole &= !before.meets(&target);
        }
        if !memory.is_device(passed.call.pid, &target) || passed.source.is_none() {
            return;
        }
        let name = &facts.function.name;
        let same = (passed.source, target);
        let hash = passed.hashed.map(|hashed| hashed.hash);
        let before = written.insert(same, Sent { call: passed.call, whole: true, hash });
        let differ = |before: &Sent| before.hash.zip(hash).is_some_and(|(before, now)| before != now);
        if let Some(before) = before.filter(|before| !differ(before)) {
            let what = format!(
                "{name} writes the same {} bytes again before anything could have read them",
                target.bytes
            );
            let hit = Hit::new("same-bytes", name, what, ("again", passed.call));
            findings.add(hit.with(Some(("before", before.call))).costs(duration));
            passed.repeats = true;
        }
        if written.len() > REPEATS {
            written.clear();
        }
    }

    /// An object or memory was made or ended: what was known of ranges no longer holds.
    pub fn forget(&mut self, process: usize) {
        self.written.get_mut(process).into_iter().for_each(QuickMap::clear);
    }

    /// The trace has ended.
    pub fn finish(
        &mut self,
        raced: impl Fn(Cause) -> bool,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        self.overlapped(raced, knowledge, findings);
        let mut rows: Vec<Row> = self.rows.drain(..).flatten().collect();
        rows.sort_by_key(|row| (row.first.pid, row.first.tid));
        rows.iter().for_each(|row| end_of_row(row, knowledge, findings));
        let mut back: Vec<_> = self.back.iter().filter(|(_, (sum, _))| sum.count >= BACK.0).collect();
        back.sort_by_key(|(key, _)| **key);
        for ((pid, from, to), (sum, sent)) in back {
            let name = |id: FunctionId| knowledge.of(id).map_or("a call", |facts| &facts.function.name);
            let (from, to) = (name(*from), name(*to));
            let what = format!(
                "{to} reads back what {from} has sent, with nothing in between that could have changed it"
            );
            let hit = Hit::new("ping-pong", format!("{pid} {from} {to}"), what, ("read", sum.first));
            findings.add(hit.with(Some(("sent", *sent))).times(sum.count).costs(sum.ns));
        }
    }
}

/// A range that one of both writes while the other has to do with it.
fn clash(a: &Move, b: &Move) -> Option<(Span, Span)> {
    let pairs = [(a.target, b.target), (a.target, b.source), (a.source, b.target)];
    pairs.into_iter().find_map(|(a, b)| a.zip(b).filter(|(a, b)| a.meets(b)))
}

fn end_of_row(row: &Row, knowledge: &Knowledge<'_>, findings: &mut Findings) {
    let Some(facts) = knowledge.of(row.first.function).filter(|_| row.count >= ROW) else { return };
    let name = &facts.function.name;
    let what =
        format!("{name} copies {} bytes in {} adjacent parts, one after another", row.bytes, row.count);
    // Of all but one the cost of a call could be saved.
    let saved = row.time / row.count * (row.count - 1);
    findings.add(Hit::new("small-copies", name, what, ("first", row.first)).times(row.count).costs(saved));
}
