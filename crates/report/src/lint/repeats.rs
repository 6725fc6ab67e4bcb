//! Bytes that go back and forth without anybody having had the time to look at them.
//!
//! A trace does not show what a program does with its memory between two calls. But it shows how long that took:
//! in less time than a processor needs to read or write so many bytes, it has not done that to all of them.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::memory::Memory;
use super::passed::Passed;
use super::rules::Severity;
use super::span::Span;
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::FunctionId;

/// What a thread can at most look at in a nanosecond, in bytes.
const BANDWIDTH: u64 = 100;
/// Fewer bytes are not worth a word.
const LEAST: u64 = 64 * 1024;
/// How often, from which on it is worth a word.
const ROUNDS: u64 = 5;
/// Ranges that are remembered of a process.
const RANGES: usize = 64;

/// A copy, and when it was over.
#[derive(Clone, Copy, Debug)]
struct Copy {
    source: Span,
    target: Span,
    call: Ref,
    duration: u64,
    /// When its call returned; none before a wait has.
    end: Option<u64>,
    /// How long its thread had been in calls until then.
    in_calls: u64,
    thread: usize,
    /// Whether the trace has a hash of its bytes, which says more than time.
    hashed: bool,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    in_calls: u64,
    /// The last read into the host's memory.
    read: Option<Copy>,
}

/// All that is counted.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// By position.
    threads: Vec<Thread>,
    /// What was sent to a range of a device last, by the process's position.
    sent: QuickMap<(usize, Span), Copy>,
    unused: QuickMap<(i64, FunctionId), Sum>,
    back: QuickMap<(i64, FunctionId, FunctionId), (Sum, Ref)>,
    again: QuickMap<(i64, FunctionId), (Sum, Ref)>,
}

impl Copy {
    /// Whether its thread had no time for all of its bytes until `start`.
    fn was_left_alone(&self, bytes: u64, start: u64, in_calls: u64) -> bool {
        let Some(end) = self.end else { return true };
        let elsewhere = in_calls.saturating_sub(self.in_calls);
        let outside = start.saturating_sub(end).saturating_sub(elsewhere);
        bytes >= LEAST && outside.saturating_mul(BANDWIDTH) < bytes
    }
}

impl Repeats {
    /// A call of the program itself has ended, after so long.
    #[inline]
    pub fn count(&mut self, thread: usize, duration: u64) {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        self.threads[thread].in_calls += duration;
    }

    /// It has succeeded, and copies or waits.
    pub fn exit(&mut self, passed: &Passed, facts: &Facts<'_>, end: u64, memory: &Memory) {
        if facts.transfers {
            self.copy(passed, end, memory);
        } else if let Some(thread) = self.threads.get_mut(passed.by.thread)
            && let Some(read) = thread.read.as_mut().filter(|read| read.end.is_none())
        {
            (read.end, read.in_calls) = (Some(end), thread.in_calls);
        }
    }

    fn copy(&mut self, passed: &Passed, end: u64, memory: &Memory) {
        let duration = end.saturating_sub(passed.call.start);
        let (pid, call, by) = (passed.call.pid, passed.call, passed.by);
        let Some((source, target)) = passed.source.zip(passed.target) else { return };
        let thread = &mut self.threads[by.thread];
        // Without this one.
        let in_calls = thread.in_calls.saturating_sub(duration);
        let is_over = passed.waits.then_some(end);
        let copy = Copy {
            source,
            target,
            call,
            duration,
            end: is_over,
            in_calls: in_calls + duration,
            thread: by.thread,
            hashed: passed.hashed.is_some(),
        };
        match (memory.is_device(pid, &source), memory.is_device(pid, &target)) {
            (true, false) => {
                // What is read into it changes what is sent from it.
                self.sent.retain(|(of, _), sent| *of != by.process || !sent.source.meets(&target));
                let before = thread.read.replace(copy);
                let Some(before) = before.filter(|before| target.covers(&before.target)) else { return };
                if before.was_left_alone(before.target.bytes, call.start, in_calls)
                    && before.target.bytes >= LEAST
                {
                    let sum = self.unused.entry((pid, call.function)).or_insert(Sum::new(before.call));
                    sum.add(before.duration);
                }
            }
            (false, true) => {
                let before = thread.read.filter(|read| read.target.covers(&source));
                if let Some(before) = before {
                    // Whatever comes of it, it was of use.
                    thread.read = None;
                    if before.end.is_some() && before.was_left_alone(source.bytes, call.start, in_calls) {
                        let key = (pid, before.call.function, call.function);
                        let new = (Sum::new(call), before.call);
                        self.back.entry(key).or_insert(new).0.add(duration.saturating_add(before.duration));
                    }
                }
                if self.sent.len() > RANGES {
                    self.sent.clear();
                }
                // The host may write again what it has sent when that is over, or has been taken.
                let sent = Copy { end: Some(end), ..copy };
                let Some(before) = self.sent.insert((by.process, target), sent) else { return };
                let by_hash = before.hashed && copy.hashed;
                if !passed.repeats
                    && !by_hash
                    && before.source == source
                    && before.thread == by.thread
                    && before.was_left_alone(source.bytes, call.start, in_calls)
                {
                    let new = (Sum::new(call), before.call);
                    self.again.entry((pid, call.function)).or_insert(new).0.add(duration);
                }
            }
            _ => {}
        }
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let name = |function| knowledge.of(function).map_or("a call", |facts| &facts.function.name);
        let mut rows: Vec<_> = self.unused.iter().filter(|(_, sum)| sum.count >= ROUNDS).collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, function), sum) in rows {
            let name = name(*function);
            let what = format!(
                "{name} reads into memory that the next read writes before its thread had the time to look at it"
            );
            let hit = Hit::new("unused-read", format!("{pid} {name}"), what, ("first", sum.first));
            findings.add(hit.times(sum.count).costs(sum.ns));
        }
        let mut rows: Vec<_> = self.back.iter().filter(|(_, (sum, _))| sum.count >= ROUNDS).collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, from, to), (sum, read)) in rows {
            let (from, to) = (name(*from), name(*to));
            let what = format!("{to} sends to a device what {from} has read from one, unchanged");
            let hit = Hit::new("ping-pong", format!("{pid} {from} {to}"), what, ("sent", sum.first));
            findings.add(hit.with(Some(("read", *read))).times(sum.count).costs(sum.ns));
        }
        let mut rows: Vec<_> = self.again.iter().filter(|(_, (sum, _))| sum.count >= ROUNDS).collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, function), (sum, before)) in rows {
            let name = name(*function);
            let what = format!(
                "{name} sends the same memory to the same place again, which its thread had no time to change all of"
            );
            let hit = Hit::new("same-bytes", format!("{pid} {name} again"), what, ("again", sum.first));
            let hit = hit.with(Some(("before", *before))).times(sum.count).costs(sum.ns);
            findings.add(hit.graded(
                Severity::Hint,
                Some("a part may have changed, or another thread may have changed it"),
            ));
        }
    }
}
