//! Memory that is known by its address, and what is done beyond its bounds and its end;
//! allocations that are made again and again.

use std::collections::{BTreeMap, VecDeque};

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::lifetimes::{Leak, Leaks, Lifetimes};
use super::passed::Passed;
use super::rules::Severity;
use super::span::Span;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::MemoryKind;
use hetrace_trace::trace::FunctionId;
use hetrace_trace::values::Values;

/// Allocations that are followed at a time.
const KEPT: usize = 1 << 20;
/// Freed ones that are remembered.
const REMEMBERED: usize = 1 << 14;
/// Rounds of allocating, launching and freeing from which on it is a loop.
const LOOP: u64 = 8;

#[derive(Clone, Debug)]
struct Block {
    bytes: Option<u64>,
    device: bool,
    made: Ref,
    dead: Option<Ref>,
    /// A copy or fill has written into it.
    written: bool,
    /// Commands of its process before it that may write anything.
    before: u64,
}

/// Allocations of one size by one function.
#[derive(Clone, Debug)]
struct Rounds {
    alive: u64,
    /// How many there were when the last one was made.
    level: u64,
    launches: u64,
    rounds: u64,
    cost: u64,
    first: Ref,
}

/// All allocations.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By process and address.
    blocks: BTreeMap<(i64, u64), Block>,
    dead: VecDeque<(i64, u64)>,
    rounds: QuickMap<(i64, FunctionId, u64), Rounds>,
    /// Commands that may write anything, by the position of the process.
    obscure: Vec<u64>,
    pub overflow: bool,
}

impl Memory {
    /// A call begins.
    pub fn entry(&mut self, passed: &mut Passed, facts: &Facts<'_>, lifetimes: &Lifetimes) {
        let pid = passed.call.pid;
        for at in 0..passed.freed.len() {
            let Some(&address) = passed.freed.get(at) else { break };
            let Some(block) = self.blocks.get_mut(&(pid, address)) else { continue };
            let made = (block.made.function, block.bytes.unwrap_or(0));
            match block.dead {
                // What is inside of the call that freed it, or a library's own affair.
                Some(_) if !passed.root => {}
                None if !passed.root => {
                    self.blocks.remove(&(pid, address));
                }
                Some(dead) => {
                    let name = &facts.function.name;
                    let what = format!("{name} frees {address:#x}, which was freed before");
                    let hit = Hit::new("double-release", name, what, ("again", passed.call));
                    passed.faults.push(hit.with(Some(("first", dead))).with(Some(("made", block.made))));
                }
                None => {
                    block.dead = Some(passed.call);
                    passed.ended.push((None, address));
                    self.dead.push_back((pid, address));
                    self.gone(pid, made);
                }
            }
        }
        while self.dead.len() > REMEMBERED {
            let Some(oldest) = self.dead.pop_front() else { break };
            if self.blocks.get(&oldest).is_some_and(|block| block.dead.is_some()) {
                self.blocks.remove(&oldest);
            }
        }
        if passed.root && facts.transfers {
            let [source, target] = facts.numbers.memory;
            for (span, kind) in [(passed.source, source), (passed.target, target)] {
                let Some(span) = span else { continue };
                if let Some(fault) = self.fault(passed, facts, (&span, kind), lifetimes) {
                    passed.faults.push(fault);
                }
            }
        }
        // An object that goes takes its memory along.
        for &(kind, handle) in &passed.ended {
            let Some(kind) = kind.filter(|kind| !lifetimes.is_alive(pid, (*kind, handle))) else { continue };
            if let Some(made) = lifetimes.origin(pid, (kind, handle)) {
                self.gone(pid, made);
            }
        }
    }

    fn gone(&mut self, pid: i64, (function, bytes): (FunctionId, u64)) {
        if let Some(rounds) = self.rounds.get_mut(&(pid, function, bytes)) {
            rounds.alive = rounds.alive.saturating_sub(1);
        }
    }

    /// The allocation that an address is in, dead or alive.
    fn around(&self, pid: i64, address: u64) -> Option<(u64, &Block)> {
        let ((_, start), block) = self.blocks.range((pid, 0)..=(pid, address)).next_back()?;
        let inside = address.checked_sub(*start)? < block.bytes.unwrap_or(1).max(1);
        inside.then_some((*start, block))
    }

    /// Whether a span begins in memory that only the API's own calls can read.
    pub fn is_device(&self, pid: i64, span: &Span) -> bool {
        let block = || self.around(pid, span.start).map(|(_, block)| block);
        span.object.is_some() || block().is_some_and(|block| block.device && block.dead.is_none())
    }

    fn fault(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        (span, kind): (&Span, MemoryKind),
        lifetimes: &Lifetimes,
    ) -> Option<Hit> {
        let (pid, name) = (passed.call.pid, &facts.function.name);
        if let Some(object) = span.object {
            let (bytes, made) = lifetimes.bytes(pid, object)?;
            return (span.end() > bytes).then(|| {
                let what =
                    format!("{name} accesses byte {} of {:#x}, an object of {bytes} B", span.end(), object.1);
                Hit::new("out-of-bounds", name, what, ("call", passed.call)).with(Some(("made", made)))
            });
        }
        let (start, block) = self.around(pid, span.start)?;
        if let Some(dead) = block.dead {
            // Addresses that a device gave back may be the host's afterwards, which nothing in a trace says.
            return (block.device && !kind.is_of_host()).then(|| {
                let what = format!("{name} accesses {:#x}, which was freed before", span.start);
                let hit = Hit::new("use-after-release", name, what, ("use", passed.call));
                let hit = hit.with(Some(("release", dead))).with(Some(("made", block.made)));
                match kind {
                    MemoryKind::Device => hit,
                    _ => hit.graded(Severity::Warning, Some("the address may be the host's by now")),
                }
            });
        }
        let bytes = block.bytes?;
        (span.end() > start.saturating_add(bytes)).then(|| {
            let end = span.end().saturating_sub(start);
            let what = format!("{name} accesses byte {end} of the {bytes}-byte allocation at {start:#x}");
            Hit::new("out-of-bounds", name, what, ("call", passed.call)).with(Some(("made", block.made)))
        })
    }

    /// A call ends.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        failed: bool,
        out: &Values<'_>,
        duration: u64,
        launches: u64,
    ) {
        let pid = passed.call.pid;
        if failed {
            for (_, address) in passed.ended.iter().filter(|(kind, _)| kind.is_none()) {
                if let Some(block) = self.blocks.get_mut(&(pid, *address)) {
                    block.dead = block.dead.filter(|dead| *dead != passed.call);
                }
            }
            return;
        }
        if facts.function.resets {
            self.blocks.retain(|key, _| key.0 != pid);
            return;
        }
        for place in &facts.addresses {
            let reported = out.first(*place).unwrap_or(0);
            if let Some((start, _)) = self.around(pid, reported).filter(|(_, block)| block.dead.is_some()) {
                self.blocks.remove(&(pid, start));
            }
        }
        let mut pooled = false;
        if let Some(allocation) = &facts.allocation
            && let Some(address) = out.first(allocation.address).filter(|address| *address != 0)
        {
            pooled = allocation.pooled;
            self.clear(pid, address, passed.size.unwrap_or(1));
            let before = self.obscure.get(passed.by.process).copied().unwrap_or(0);
            let block = Block {
                bytes: passed.size,
                device: allocation.device,
                made: passed.call,
                dead: None,
                written: false,
                before,
            };
            match self.blocks.len() < KEPT {
                true if passed.root => drop(self.blocks.insert((pid, address), block)),
                true => {}
                false => self.overflow = true,
            }
        } else if facts.makes.is_empty() || !facts.has_extent {
            return;
        }
        if passed.root && !pooled {
            self.allocated(passed, duration, launches);
        }
    }

    /// A call that enqueues has succeeded; returns what it reads that nothing has written.
    #[inline]
    pub fn enqueued(&mut self, passed: &Passed, facts: &Facts<'_>) -> Option<Hit> {
        let (pid, process) = (passed.call.pid, passed.by.process);
        if !facts.transfers || !passed.root {
            if !facts.marks && !facts.barrier && facts.allocation.is_none() && facts.frees.is_none() {
                if self.obscure.len() <= process {
                    self.obscure.resize(process + 1, 0);
                }
                self.obscure[process] += 1;
            }
            return None;
        }
        let address = |span: Option<Span>| span.filter(|span| span.object.is_none()).map(|span| span.start);
        let mut hit = None;
        if let Some((at, source)) =
            address(passed.source).and_then(|at| Some((at, self.around_mut(pid, at)?)))
            && source.device
            && !source.written
        {
            let (made, before) = (source.made, source.before);
            // Once for each allocation.
            source.written = true;
            if self.obscure.get(process).copied().unwrap_or(0) == before {
                let name = &facts.function.name;
                let what = format!("{name} reads {at:#x}, into whose allocation nothing has written");
                let read = Hit::new("uninitialized-read", name, what, ("read", passed.call));
                hit = Some(read.with(Some(("made", made))));
            }
        }
        if let Some(target) = address(passed.target).and_then(|at| self.around_mut(pid, at)) {
            target.written = true;
        }
        hit
    }

    /// The allocation that an address is in, if it is there.
    fn around_mut(&mut self, pid: i64, address: u64) -> Option<&mut Block> {
        let ((_, start), block) = self.blocks.range_mut((pid, 0)..=(pid, address)).next_back()?;
        let inside = address.checked_sub(*start)? < block.bytes.unwrap_or(1).max(1);
        (inside && block.dead.is_none()).then_some(block)
    }

    /// Takes out what cannot be there any more.
    fn clear(&mut self, pid: i64, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes.max(1));
        if let Some((start, _)) = self.around(pid, address) {
            self.blocks.remove(&(pid, start));
        }
        let stale: Vec<_> = self.blocks.range((pid, address)..(pid, end)).map(|(key, _)| *key).collect();
        for key in stale {
            self.blocks.remove(&key);
        }
    }

    fn allocated(&mut self, passed: &Passed, duration: u64, launches: u64) {
        let Some(bytes) = passed.size else { return };
        if self.rounds.len() >= KEPT {
            return;
        }
        let key = (passed.call.pid, passed.call.function, bytes);
        let new = Rounds { alive: 0, level: 0, launches, rounds: 0, cost: 0, first: passed.call };
        let rounds = self.rounds.entry(key).or_insert(new);
        // One that was made before has been freed since.
        if rounds.alive <= rounds.level && launches > rounds.launches {
            rounds.rounds += 1;
            rounds.cost = rounds.cost.saturating_add(duration);
        }
        rounds.level = rounds.alive;
        rounds.launches = launches;
        rounds.alive += 1;
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings, leaks: &mut Leaks) {
        let mut alive: Vec<_> = self.blocks.iter().filter(|(_, block)| block.dead.is_none()).collect();
        alive.sort_by_key(|(_, block)| block.made.start);
        for ((pid, _), block) in alive {
            let place = (*pid, block.made.function, "allocation".to_owned());
            let leak = leaks.entry(place).or_insert_with(|| Leak::new(block.made));
            leak.add(block.made.start, block.bytes);
        }
        let mut rounds: Vec<_> = self.rounds.iter().filter(|(_, r)| r.rounds >= LOOP).collect();
        rounds.sort_by_key(|(key, _)| **key);
        for ((pid, function, bytes), rounds) in rounds {
            let Some(facts) = knowledge.of(*function) else { continue };
            let name = &facts.function.name;
            let what =
                format!("{name} makes {bytes} bytes again after what it made before was used and freed");
            let hit =
                Hit::new("alloc-in-loop", format!("{pid} {name} {bytes}"), what, ("first", rounds.first));
            findings.add(hit.times(rounds.rounds).costs(rounds.cost));
        }
    }
}
