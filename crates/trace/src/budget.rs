//! Threads that recorded less for a part of their time, to keep within the budget of
//! `hetrace run --max-overhead`.
//!
//! Such threads leave a step in their streams whenever they go on otherwise: one in so many commands of each kernel is
//! timed, or calls are added up by function. Steps are few, so they are read as a whole, before the walk.

use std::collections::BTreeMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::Event;
use hetrace_format::calls;
pub use hetrace_format::calls::BudgetStep;

use crate::trace::{Class, Item, Only, Trace};

/// What a step in an event says, and of which API's stream, if it is one.
pub fn step_of<'e>(event: &'e Event<'_, '_>) -> Option<(&'e str, BudgetStep)> {
    let api = event.class().name.strip_suffix(calls::BUDGET_STEP)?;
    let number = |name| event.get(name).and_then(Scalar::as_u64).and_then(|n| u32::try_from(n).ok());
    let step = BudgetStep {
        one_in: number("one_in")?.max(1),
        summed: number("summed")? != 0,
        counted: number("summed")? > 1,
        spent_ppm: number("spent_ppm")?,
        budget_ppm: number("budget_ppm")?,
    };
    Some((api, step))
}

/// How much a thread records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// Whether calls are added up by function.
    pub summed: bool,
    /// One of so many commands of a kernel, or of another kind, is timed; 1: all.
    pub one_in: u32,
}

impl Level {
    /// All calls are recorded, and all commands timed.
    pub const ALL: Self = Self { summed: false, one_in: 1 };
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, ns on the trace's clock.
    pub time: u64,
    /// The number of its stream: a thread has one for each API.
    pub stream: u32,
    /// What is recorded from then on.
    pub step: BudgetStep,
}

/// A thread with steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteppedThread {
    /// Its process.
    pub pid: i64,
    /// Its own id.
    pub tid: i64,
    /// When the streams with steps begin, ns on the trace's clock.
    pub from: u64,
    /// When they end.
    pub to: u64,
    /// In the order of time.
    pub steps: Vec<Step>,
}

impl SteppedThread {
    /// Whether it recorded less at any time.
    pub fn stepped_down(&self) -> bool {
        self.steps.iter().any(|step| step.step.one_in > 1 || step.step.summed)
    }

    /// How long it recorded how much, ns. Of several streams the one that records least counts.
    pub fn levels(&self) -> BTreeMap<Level, u64> {
        let (mut levels, mut now) = (BTreeMap::new(), BTreeMap::<u32, BudgetStep>::new());
        let mut since = self.from;
        let ends = self.steps.iter().map(|step| (step.time, Some(step))).chain([(self.to, None)]);
        for (time, step) in ends {
            let one_in = now.values().map(|step| step.one_in).max().unwrap_or(1);
            let level = Level { summed: now.values().any(|step| step.summed), one_in };
            let ns: &mut u64 = levels.entry(level).or_default();
            *ns = ns.saturating_add(time.saturating_sub(since));
            since = since.max(time);
            now.extend(step.map(|step| (step.stream, step.step)));
        }
        levels.retain(|_, ns| *ns > 0);
        levels
    }

    /// When its calls were added up in any of the streams: from and to, ns on the trace's clock.
    pub fn summed(&self) -> Vec<(u64, u64)> {
        let (mut spans, mut now) = (Vec::new(), BTreeMap::<u32, bool>::new());
        let mut since = None;
        for Step { time, stream, step } in &self.steps {
            now.insert(*stream, step.summed);
            since = match (since, now.values().any(|summed| *summed)) {
                (None, true) => Some(*time),
                (Some(from), false) => {
                    spans.push((from, *time));
                    None
                }
                (since, _) => since,
            };
        }
        spans.extend(since.map(|from| (from, self.to)));
        spans
    }

    /// Where recording took more than it may, up to the last step of a stream: for how long, ns, and the largest share of
    /// a stream, in parts per million. What is after the last step is not known. A thread is over its budget before each
    /// step down, and under it afterwards: only the mean counts, and a tenth more is none.
    pub fn over(&self) -> Option<(u64, u32)> {
        let mut streams = BTreeMap::<u32, Spent>::new();
        for Step { time, stream, step } in &self.steps {
            let spent = streams.entry(*stream).or_insert(Spent { until: self.from, ..Spent::default() });
            let span = time.saturating_sub(spent.until);
            spent.until = spent.until.max(*time);
            spent.ns = spent.ns.saturating_add(span);
            spent.parts += u128::from(span) * u128::from(step.spent_ppm);
            spent.budget_ppm = step.budget_ppm;
        }
        let over = streams.values().filter_map(|spent| {
            let mean = u32::try_from(spent.parts / u128::from(spent.ns.max(1))).unwrap_or(u32::MAX);
            (mean > spent.budget_ppm.saturating_add(spent.budget_ppm / 10)).then_some((spent.ns, mean))
        });
        over.reduce(|(ns, worst), (more, mean)| (ns.max(more), worst.max(mean)))
    }
}

/// What a stream's steps say was spent.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// When its last step was.
    until: u64,
    ns: u64,
    /// Nanoseconds times parts per million.
    parts: u128,
    budget_ppm: u32,
}

/// The steps of all threads, by process and thread. Damage is left to the walk, which comes to the same bytes.
pub fn read(trace: &Trace) -> Vec<SteppedThread> {
    if !trace.has_budget_steps() {
        return Vec::new();
    }
    let mut threads = BTreeMap::<(i64, i64), SteppedThread>::new();
    let only = Only::new(trace, |_| false);
    let mut cursor = trace.cursor_of_only(&only);
    while let Some(item) = cursor.next_item() {
        let Item::Event(occurrence) = item else { continue };
        if !matches!(occurrence.class, Class::BudgetStep) {
            continue;
        }
        let Some((_, step)) = step_of(&occurrence.event) else { continue };
        let who = occurrence.threads().get(occurrence.thread);
        let (pid, tid, time) = (who.pid, who.tid, occurrence.time);
        let new = || SteppedThread { pid, tid, from: time, to: time, steps: Vec::new() };
        let thread = threads.entry((pid, tid)).or_insert_with(new);
        thread.steps.push(Step { time, stream: occurrence.stream, step });
    }
    let mut streams: Vec<u32> = threads.values().flat_map(|t| &t.steps).map(|step| step.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    streams.into_iter().for_each(|stream| widen(trace, stream as usize, &mut threads));
    threads.into_values().collect()
}

/// The threads that a stream is of last from its first packet of theirs to the last.
fn widen(trace: &Trace, stream: usize, threads: &mut BTreeMap<(i64, i64), SteppedThread>) {
    let Some(mut reader) = trace.ctf().stream(stream) else { return };
    while let Some(head) = reader.pass_packet() {
        let Ok(head) = head else { continue };
        let Some(Ok(event)) = reader.next_event() else { continue };
        let number = |name| event.get_in(Scope::PacketContext, name).and_then(Scalar::as_i64).unwrap_or(0);
        let Some(thread) = threads.get_mut(&(number("vpid"), number("vtid"))) else { continue };
        thread.from = head.timestamp_begin.map_or(thread.from, |begin| begin.min(thread.from));
        thread.to = head.timestamp_end.map_or(thread.to, |end| end.max(thread.to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(time: u64, stream: u32, one_in: u32, summed: bool, spent_ppm: u32) -> Step {
        Step {
            time,
            stream,
            step: BudgetStep { one_in, summed, counted: false, spent_ppm, budget_ppm: 20_000 },
        }
    }

    #[test]
    fn times_of_levels_are_those_of_the_thread() {
        let steps = vec![
            step(100, 1, 4, false, 50_000),
            step(150, 2, 2, false, 30_000),
            step(200, 1, 64, true, 25_000),
            step(300, 1, 1, false, 5_000),
            step(350, 2, 1, false, 5_000),
        ];
        let thread = SteppedThread { pid: 1, tid: 2, from: 0, to: 1000, steps };
        assert!(thread.stepped_down());
        let levels = [
            (Level::ALL, 750),
            (Level { summed: false, one_in: 2 }, 50),
            (Level { summed: false, one_in: 4 }, 100),
            (Level { summed: true, one_in: 64 }, 100),
        ];
        assert_eq!(thread.levels(), BTreeMap::from(levels));
        assert_eq!(thread.summed(), [(200, 300)]);
        // The first stream; the second one made up for its beginning.
        assert_eq!(thread.over(), Some((300, 26_666)));
        let quiet = SteppedThread { steps: vec![step(10, 1, 1, false, 20_000)], ..thread };
        assert_eq!((quiet.stepped_down(), quiet.over()), (false, None));
    }
}
