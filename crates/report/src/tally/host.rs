//! Sums of calls by function.

use std::collections::HashMap;
use std::hint::cold_path;

use super::add::add_to;
use super::by::By;
use super::cells::{HostCell, merge};
use super::labels::{Labels, Who};
use super::rows::{ApiTotals, ErrorRow, TracingRow, UnfinishedRow};
use super::times::Times;
use super::ways::{Way, Ways};
use hetrace_trace::facts::objects;
use hetrace_trace::spans::fast::{Leaf, Leaves};
use hetrace_trace::spans::{Call, Fold, Unfinished, Why};
use hetrace_trace::system::Shares;
use hetrace_trace::trace::{CallCost, Function, FunctionId, Thread, ThreadId, Trace};

/// Unfinished calls of a function that are reported with their arguments.
const NAMED: usize = 8;
/// Calls that take longer in themselves than so many ns have other work in them, which pushes the recorder out of the
/// nearest caches.
const DISPLACES: u64 = 1000;
/// What a recorded call that hands something to a driver was seen to take at most beyond what it takes behind other work
/// in the launcher, ns: launches on H100s and H200s. Why is not known (`docs/measurements/2026-11-26-statement-gpu.md`),
/// so it is in the interval and in no sum.
const AMONG_DRIVERS_NS: u64 = 260;

/// Calls that failed in one way.
#[derive(Clone, Copy, Debug, Default)]
struct Failed {
    calls: u64,
    time: u64,
    /// What of it was not in other calls.
    own: u64,
    /// What of the time is the tracer's own, and what of that is not in other calls.
    cost: u64,
    own_cost: u64,
}

impl Failed {
    fn add(&mut self, other: &Self) {
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.time, other.time),
            (&mut self.own, other.own),
            (&mut self.cost, other.cost),
            (&mut self.own_cost, other.own_cost),
        ] {
            *to = to.saturating_add(n);
        }
    }
}

/// Sums of one function.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// Calls that share a record with others.
    folded: u64,
    /// Those of them that were added up, and their time, as that in `times`.
    summed: u64,
    summed_ns: u64,
    /// The square of the standard error of that.
    summed_variance: u64,
    /// Of the time of calls that went well, as recorded, what was in other calls.
    inside: u64,
    /// Of the time of calls that went well, what is the tracer's own in other calls, and what is not in others.
    inside_cost: u64,
    own_cost: u64,
    /// All calls that failed.
    failed: Failed,
    /// See [`Self::nothing`].
    gross: bool,
    /// Codes with what failed so; they are few: a list is searched faster than a map.
    codes: Vec<(i64, Failed)>,
    unfinished: u64,
    running: u64,
    lost: u64,
    /// Of calls that went well.
    times: Times,
    /// The thread that called last, from 1; callers are noted when it changes.
    caller: u32,
}

impl Sum {
    /// That of no calls; `gross`: times are left as they were recorded.
    fn nothing(gross: bool) -> Self {
        Self { gross, ..Self::default() }
    }

    fn calls(&self) -> u64 {
        self.times.count.saturating_add(self.summed).saturating_add(self.failed.calls)
    }

    /// Whether nothing called, as of most functions.
    fn is_nothing(&self) -> bool {
        self.calls() == 0 && self.unfinished == 0
    }

    /// Time in calls that went well and not in other calls, as recorded.
    fn own(&self) -> u64 {
        self.gross().saturating_sub(self.inside)
    }

    /// How much shorter times of calls that went well are than as they were recorded.
    fn off(&self) -> u64 {
        if self.gross { 0 } else { self.cost() }
    }

    /// Time in calls that went well, as recorded.
    fn gross(&self) -> u64 {
        self.times.total.saturating_add(self.summed_ns).saturating_add(self.off())
    }

    /// What of it is the tracer's.
    fn cost(&self) -> u64 {
        self.inside_cost.saturating_add(self.own_cost)
    }

    /// A call that went well, without calls inside. `off` has all bits if times are to be without the cost, else none.
    #[inline(always)]
    fn add_leaf(&mut self, time: u32, cost: u32, off: u32) {
        add_to(&mut self.own_cost, cost.into());
        self.times.add_short(time - (cost & off));
    }

    fn add(&mut self, other: &Sum) {
        self.times.merge(&other.times);
        for (to, n) in [
            (&mut self.folded, other.folded),
            (&mut self.summed, other.summed),
            (&mut self.summed_ns, other.summed_ns),
            (&mut self.summed_variance, other.summed_variance),
            (&mut self.inside, other.inside),
            (&mut self.inside_cost, other.inside_cost),
            (&mut self.own_cost, other.own_cost),
            (&mut self.unfinished, other.unfinished),
            (&mut self.running, other.running),
            (&mut self.lost, other.lost),
        ] {
            *to = to.saturating_add(n);
        }
        self.failed.add(&other.failed);
        for (code, failed) in &other.codes {
            self.count_code(*code, failed);
        }
    }

    #[cold]
    fn fail(&mut self, code: i64, failed: &Failed) {
        self.failed.add(failed);
        self.count_code(code, failed);
    }

    fn count_code(&mut self, code: i64, failed: &Failed) {
        match self.codes.iter_mut().find(|(c, ..)| *c == code) {
            Some((_, known)) => known.add(failed),
            None => self.codes.push((code, *failed)),
        }
    }
}

/// A cell of calls that failed, and of no others.
fn failed_cell(failed: &Failed) -> HostCell {
    HostCell {
        errors: failed.calls,
        error_ns: failed.time,
        error_own: failed.own,
        error_cost: failed.cost,
        error_own_cost: failed.own_cost,
        ..HostCell::default()
    }
}

/// A part of the calls whose sums are their own: a thread, a range and a way, where
/// these are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slice {
    pub thread: ThreadId,
    pub range: Option<u32>,
    pub way: Way,
}

impl Slice {
    /// Of all calls.
    pub const fn of_all() -> Self {
        Self { thread: ThreadId(u32::MAX), range: None, way: Way { layer: None, line: None } }
    }
}

/// Calls that were inside of other calls of their layer, of those that went well.
#[derive(Clone, Copy, Debug, Default)]
struct Again {
    calls: u64,
    time: u64,
}

/// The threads that called.
#[derive(Clone, Debug, Default)]
struct Callers {
    /// By API and thread: whether it called.
    by_api: Vec<Vec<bool>>,
    /// The API of each function.
    apis: Vec<u32>,
}

impl Callers {
    /// It is not inlined, as [`Host::leaves`] needs it rarely.
    #[inline(never)]
    fn note(&mut self, function: FunctionId, thread: ThreadId) {
        let api = self.apis.get(function.index()).map_or(0, |&api| api as usize);
        let Some(callers) = self.by_api.get_mut(api) else { return };
        match callers.get_mut(thread.index()) {
            Some(seen) => *seen = true,
            None => {
                callers.resize(thread.index() + 1, false);
                callers[thread.index()] = true;
            }
        }
    }
}

/// What sums up the calls of a thread that went well, without calls inside.
struct OfThread<'h> {
    /// See [`Sum::add_leaf`].
    off: u32,
    /// By function.
    sums: &'h mut [Sum],
    callers: &'h mut Callers,
    thread: ThreadId,
}

impl Leaves for OfThread<'_> {
    #[inline(always)]
    fn take(&mut self, leaf: Leaf) {
        let Some(sum) = self.sums.get_mut(leaf.function.index()) else { return };
        sum.add_leaf(leaf.time, leaf.cost, self.off);
        let caller = self.thread.0.wrapping_add(1);
        if sum.caller != caller {
            cold_path();
            sum.caller = caller;
            self.callers.note(leaf.function, self.thread);
        }
    }
}

/// Sums of all functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// By slice and function.
    slices: Vec<(Slice, Vec<Sum>)>,
    by_slice: HashMap<Slice, usize>,
    /// Sums of nothing, by function.
    empty: Vec<Sum>,
    /// Whether times are left as they were recorded.
    gross: bool,
    /// What recording a run's calls costs, each.
    fold: CallCost,
    callers: Callers,
    /// Whether slices are of threads.
    by_thread: bool,
    /// What APIs themselves say of codes.
    texts: HashMap<(String, i64), String>,
    /// By slice and function: what threads did in calls that went well, if that is known.
    states: HashMap<(Slice, FunctionId), Shares>,
    /// Likewise, where layers are distinguished.
    again: HashMap<(Slice, FunctionId), Again>,
}

impl Host {
    /// `gross`: the tracer's own cost stays in the times.
    pub fn new(trace: &Trace, by_thread: bool, gross: bool) -> Self {
        let functions = trace.functions();
        let api = |f: &Function| u32::try_from(f.api).unwrap_or(0);
        Self {
            slices: Vec::new(),
            by_slice: HashMap::new(),
            empty: vec![Sum::nothing(gross); functions.all().len()],
            gross,
            fold: trace.costs().of_folded(),
            callers: Callers {
                by_api: vec![Vec::new(); functions.apis().len()],
                apis: functions.all().iter().map(api).collect(),
            },
            by_thread,
            texts: HashMap::new(),
            states: HashMap::new(),
            again: HashMap::new(),
        }
    }

    /// Of a trace that has more functions now; `new` has their new numbers by the old ones, if they have others.
    pub fn grow(&mut self, trace: &Trace, new: Option<&[FunctionId]>) {
        let mut grown = Self::new(trace, self.by_thread, self.gross);
        let place = |old: usize| new.map_or(Some(old), |new| new.get(old).map(|id| id.index()));
        for (slice, sums) in std::mem::take(&mut self.slices) {
            let at = grown.slice(slice);
            for (old, sum) in sums.into_iter().enumerate() {
                let to = place(old).and_then(|new| grown.slices.get_mut(at)?.1.get_mut(new));
                if let Some(to) = to {
                    *to = sum;
                }
            }
        }
        // An API is where its functions are.
        for (old, api) in self.callers.apis.iter().enumerate() {
            let now = place(old).and_then(|new| grown.callers.apis.get(new));
            let to = now.and_then(|now| grown.callers.by_api.get_mut(*now as usize));
            let from = self.callers.by_api.get(*api as usize);
            if let (Some(to), Some(from)) = (to.filter(|to| to.is_empty()), from) {
                to.clone_from(from);
            }
        }
        grown.texts = std::mem::take(&mut self.texts);
        *self = grown;
    }

    /// An API says what one of its codes means. Of several texts the first of the alphabet stays, as events
    /// come in several orders.
    pub fn error_text(&mut self, api: &str, code: i64, text: &str) {
        let known = self.texts.entry((api.to_owned(), code)).or_insert_with(|| text.to_owned());
        if text < known.as_str() {
            text.clone_into(known);
        }
    }

    /// Where the sums of a slice are.
    pub fn slice(&mut self, slice: Slice) -> usize {
        let (empty, slices) = (&self.empty, &mut self.slices);
        *self.by_slice.entry(slice).or_insert_with(|| {
            slices.push((slice, empty.clone()));
            slices.len() - 1
        })
    }

    #[inline(always)]
    fn sum(&mut self, slice: usize, function: FunctionId) -> Option<&mut Sum> {
        self.slices.get_mut(slice)?.1.get_mut(function.index())
    }

    /// Takes calls of a thread that went well, without calls inside.
    #[inline(always)]
    pub fn leaves(&mut self, slice: usize, thread: ThreadId) -> impl Leaves {
        OfThread {
            off: if self.gross { 0 } else { u32::MAX },
            sums: self.slices.get_mut(slice).map(|(_, sums)| sums.as_mut_slice()).unwrap_or_default(),
            callers: &mut self.callers,
            thread,
        }
    }

    pub fn call(&mut self, slice: usize, call: &Call) {
        self.callers.note(call.function, call.thread);
        let gross = self.gross;
        let Some(sum) = self.sum(slice, call.function) else { return };
        let time = call.duration();
        match call.error {
            None => {
                let net = if gross { time } else { call.net_duration() };
                sum.times.add(net);
                sum.inside = sum.inside.saturating_add(time.saturating_sub(call.own));
                // Of its cost, `own_cost` is a part.
                sum.inside_cost = sum.inside_cost.saturating_add(call.cost.saturating_sub(call.own_cost));
                sum.own_cost = sum.own_cost.saturating_add(call.own_cost);
            }
            Some(code) => {
                let Call { own, cost, own_cost, .. } = *call;
                sum.fail(code, &Failed { calls: 1, time, own, cost, own_cost });
            }
        }
    }

    /// What the thread of a call did in it.
    pub fn states(&mut self, slice: usize, call: &Call, shares: &Shares) {
        let Some((slice, _)) = self.slices.get(slice) else { return };
        if call.error.is_none() {
            self.states.entry((*slice, call.function)).or_default().add(shares);
        }
    }

    /// Calls that went well were inside of another call of their layer, and took so long together, without the tracer's
    /// part if that is left out.
    pub fn again(&mut self, slice: usize, function: FunctionId, calls: u64, time: u64) {
        let Some((slice, _)) = self.slices.get(slice) else { return };
        let again = self.again.entry((*slice, function)).or_default();
        again.calls = again.calls.saturating_add(calls);
        again.time = again.time.saturating_add(time);
    }

    pub fn fold(&mut self, slice: usize, fold: &Fold) {
        self.callers.note(fold.function, fold.thread);
        let total = if self.gross { fold.total } else { fold.total.saturating_sub(fold.cost) };
        let Some(sum) = self.sum(slice, fold.function) else { return };
        sum.folded = sum.folded.saturating_add(fold.count);
        match fold.error {
            None if fold.summed => {
                // Of these no single one is known.
                sum.summed = sum.summed.saturating_add(fold.count);
                sum.summed_ns = sum.summed_ns.saturating_add(total);
                let variance = fold.total_error.saturating_mul(fold.total_error);
                sum.summed_variance = sum.summed_variance.saturating_add(variance);
                sum.own_cost = sum.own_cost.saturating_add(fold.cost);
            }
            None => {
                // A run keeps only its sum: its average stands for its calls.
                sum.times.add_many(total / fold.count.max(1), fold.count, total);
                sum.own_cost = sum.own_cost.saturating_add(fold.cost);
            }
            Some(code) => {
                let Fold { count: calls, total, cost, .. } = *fold;
                sum.fail(code, &Failed { calls, time: total, own: total, cost, own_cost: cost });
            }
        }
    }

    /// Adds what another part of the trace has, whose threads are `there`;
    /// `here` numbers a thread in this part.
    pub fn merge(&mut self, other: &Host, there: &[Thread], mut here: impl FnMut(&Thread) -> ThreadId) {
        for (slice, sums) in &other.slices {
            // If rows are not grouped by thread, all have the same.
            let thread = match there.get(slice.thread.index()) {
                Some(who) if self.by_thread => here(who),
                _ => slice.thread,
            };
            let at = self.slice(Slice { thread, ..*slice });
            let called = self.slices[at].1.iter_mut().zip(sums).filter(|(_, from)| !from.is_nothing());
            called.for_each(|(to, from)| to.add(from));
        }
        other.texts.iter().for_each(|((api, code), text)| self.error_text(api, *code, text));
        for (api, callers) in other.callers.by_api.iter().enumerate() {
            for (thread, _) in there.iter().zip(callers).filter(|(_, called)| **called) {
                let index = here(thread).index();
                let Some(seen) = self.callers.by_api.get_mut(api) else { continue };
                if seen.len() <= index {
                    seen.resize(index + 1, false);
                }
                seen[index] = true;
            }
        }
    }

    pub fn unfinished(&mut self, slice: usize, call: &Unfinished) {
        self.callers.note(call.function, call.thread);
        let Some(sum) = self.sum(slice, call.function) else { return };
        sum.unfinished += 1;
        match call.why {
            Why::TraceEnds => sum.running += 1,
            Why::ExitLost => sum.lost += 1,
            Why::ThreadEnded => {}
        }
    }

    /// All that was called, whichever slice: function, its name and API, its sums.
    fn whole<'a>(&self, trace: &'a Trace) -> Vec<(FunctionId, &'a str, &'a str, Sum)> {
        let functions = trace.functions();
        let all = (0u32..).zip(functions.all()).filter_map(|(id, f)| {
            let own = self.slices.iter().filter_map(|(_, sums)| sums.get(id as usize));
            let mut own = own.filter(|sum| !sum.is_nothing()).peekable();
            own.peek()?;
            let mut sum = Sum::nothing(self.gross);
            own.for_each(|own| sum.add(own));
            let api = functions.apis().get(f.api).map_or("", String::as_str);
            Some((FunctionId(id), f.name.as_str(), api, sum))
        });
        all.collect()
    }

    /// What rows are made of; `range` and `ways` name those of a slice.
    pub fn cells(
        &self,
        trace: &Trace,
        labels: &Labels<'_>,
        threads: &[Thread],
        range: impl Fn(u32) -> String,
        ways: &Ways<'_>,
    ) -> Vec<HostCell> {
        let functions = trace.functions();
        let mut cells = Vec::new();
        let (by_name, by_api) = (labels.calls.contains(&By::Name), labels.calls.contains(&By::Api));
        let by_error = labels.calls.contains(&By::Error);
        for (slice, sums) in &self.slices {
            let none = Thread::default();
            let who = threads.get(slice.thread.index()).unwrap_or(&none);
            let Way { layer, line } = slice.way;
            let (range, layer) = (slice.range.map(&range), layer.map(|layer| ways.layer_name(layer)));
            let line = line.map(|line| ways.line_name(line));
            let (pid, tid, thread) = (who.pid, who.tid, who.name.as_str());
            let (range, layer, line) = (range.as_deref(), layer.as_deref(), line.as_deref());
            let who = Who { pid, tid, thread, range, layer, line, ..Who::default() };
            let mut of_slice = Vec::new();
            for ((id, f), sum) in (0u32..).zip(functions.all()).zip(sums).filter(|(_, sum)| sum.calls() > 0) {
                let api = functions.apis().get(f.api).filter(|_| by_api).cloned().unwrap_or_default();
                let again = self.again.get(&(*slice, FunctionId(id))).copied().unwrap_or_default();
                let whole = HostCell {
                    name: if by_name { f.name.clone() } else { String::new() },
                    api,
                    group: labels.group(&labels.calls, &who),
                    folded: sum.folded.saturating_sub(sum.summed),
                    summed: sum.summed,
                    summed_ns: sum.summed_ns,
                    summed_variance: sum.summed_variance,
                    own: sum.own(),
                    taken: sum.off(),
                    cost: sum.cost(),
                    own_cost: sum.own_cost,
                    times: sum.times.clone(),
                    states: self.states.get(&(*slice, FunctionId(id))).copied().unwrap_or_default(),
                    again: again.calls,
                    again_ns: again.time,
                    ..failed_cell(&sum.failed)
                };
                if !by_error {
                    of_slice.push(whole);
                    continue;
                }
                for &(code, failed) in &sum.codes {
                    let error = trace.error_name(FunctionId(id), code);
                    let group = labels.group(&labels.calls, &Who { error: Some(&error), ..who });
                    let (name, api) = (whole.name.clone(), whole.api.clone());
                    of_slice.push(HostCell { name, api, group, ..failed_cell(&failed) });
                }
                if whole.times.count > 0 || sum.summed > 0 {
                    of_slice.push(whole.without_failed());
                }
            }
            merge(&mut cells, of_slice);
        }
        cells
    }

    pub fn errors(&self, trace: &Trace) -> Vec<ErrorRow> {
        let mut rows = Vec::new();
        for (id, name, api, sum) in self.whole(trace) {
            let reported = |failed: Failed| match self.gross {
                true => failed.time,
                false => failed.time.saturating_sub(failed.cost),
            };
            rows.extend(sum.codes.iter().map(|&(code, failed)| ErrorRow {
                name: name.to_owned(),
                api: api.to_owned(),
                error: trace.error_name(id, code),
                code,
                text: self.texts.get(&(api.to_owned(), code)).cloned(),
                calls: failed.calls,
                total_ns: reported(failed),
            }));
        }
        rows
    }

    /// Which APIs have enqueued commands that nobody timed, and why. Without numbers, so that several traces say it once.
    /// What such an API had another one do, that one has times of.
    pub fn untimed(&self, trace: &Trace) -> Vec<String> {
        let whole = self.whole(trace);
        let said = |model: &hetrace_model::Model| {
            let why = model.untimed.as_ref()?;
            let enqueued = |(id, _, api, sum): &(FunctionId, &str, &str, Sum)| {
                let function = trace.functions().get(*id);
                let memory = |index: usize| {
                    model.functions.get(index).is_some_and(|f| f.has_role("alloc") || f.has_role("free"))
                };
                let calls = sum.calls() > sum.failed.calls && sum.inside == 0;
                *api == model.api && calls && function.enqueues && !function.index.is_some_and(memory)
            };
            let any = whole.iter().any(enqueued);
            any.then(|| format!("{}: commands on devices have no times: {why}.", model.title))
        };
        trace.models().iter().filter_map(said).collect()
    }

    /// Calls without an end; `with` has what some of them were called with.
    pub fn unfinished_rows(&self, trace: &Trace, with: &[(FunctionId, String)]) -> Vec<UnfinishedRow> {
        let rows = self.whole(trace).into_iter().filter(|(.., sum)| sum.unfinished > 0);
        let row = |(id, name, api, sum): (FunctionId, &str, &str, Sum)| UnfinishedRow {
            name: name.to_owned(),
            api: api.to_owned(),
            calls: sum.unfinished,
            running: sum.running,
            lost: sum.lost,
            with: with.iter().filter(|(f, _)| *f == id).map(|(_, text)| text.clone()).take(NAMED).collect(),
        };
        rows.map(row).collect()
    }

    pub fn apis(&self, trace: &Trace, threads: &[Thread]) -> Vec<ApiTotals> {
        let whole = self.whole(trace);
        let mut totals = Vec::new();
        for (api, callers) in trace.functions().apis().iter().zip(&self.callers.by_api) {
            let who: Vec<&Thread> =
                threads.iter().zip(callers).filter(|(_, called)| **called).map(|(t, _)| t).collect();
            let mut pids: Vec<i64> = who.iter().map(|t| t.pid).collect();
            pids.sort_unstable();
            pids.dedup();
            if who.is_empty() {
                continue;
            }
            let sum = |of: fn(&Sum) -> u64| {
                let own = whole.iter().filter(|(_, _, a, _)| a == api);
                own.map(|(.., s)| of(s)).fold(0, u64::saturating_add)
            };
            totals.push(ApiTotals {
                api: api.clone(),
                title: trace.models().iter().find(|m| m.api == *api).map_or("", |m| &m.title).to_owned(),
                processes: pids.len() as u64,
                threads: who.len() as u64,
                calls: sum(Sum::calls),
                errors: sum(|s| s.failed.calls),
                error_self_ns: sum(|s| s.failed.own),
                error_cost_ns: sum(|s| s.failed.own_cost),
                self_ns: sum(Sum::own),
                cost_ns: sum(|s| s.own_cost),
            });
        }
        totals
    }

    /// What recording all this has cost; none where it is not known. `all`: these are all calls of the trace.
    pub fn tracing(&self, trace: &Trace, all: bool) -> Option<TracingRow> {
        let costs = trace.costs();
        let mut row = TracingRow { left_out: !self.gross, ..TracingRow::default() };
        let cold: u64 = costs.of_cold().into();
        for (function, .., sum) in self.whole(trace) {
            let single = sum.calls().saturating_sub(sum.folded);
            let folded = sum.folded.saturating_mul(self.fold.whole.into());
            let warm = u64::from(costs.of(function).whole).min(cold);
            let displaced = sum.own() > sum.calls().saturating_mul(DISPLACES);
            let each = if displaced { cold } else { warm };
            // Traces without a figure for calls behind other work have no interval.
            let enqueues =
                displaced && cold > warm && trace.described(function).is_some_and(objects::enqueues);
            let among_drivers = if enqueues { AMONG_DRIVERS_NS } else { 0 };
            let recording = |each: u64| single.saturating_mul(each).saturating_add(folded);
            // Commands of calls that failed are none.
            let enqueued = single.saturating_sub(sum.failed.calls) as f64;
            let [timing, collecting] = costs.means(function).map(|mean| (enqueued * mean) as u64);
            for (to, n) in [
                (&mut row.calls, sum.calls()),
                (&mut row.calls_ns, recording(each)),
                (&mut row.least_ns, recording(warm)),
                (&mut row.most_ns, recording(cold).saturating_add(single.saturating_mul(among_drivers))),
                (&mut row.timing_ns, timing),
                (&mut row.collecting_ns, collecting),
                (&mut row.inside_ns, sum.own_cost.saturating_add(sum.failed.own_cost)),
            ] {
                *to = to.saturating_add(n);
            }
        }
        if all {
            let beside = costs.beside();
            row.lifetime_ns = trace.manifest().lifetime_ns.unwrap_or(0);
            row.timing_ns = row.timing_ns.saturating_add(beside.summed);
            row.driver_ns = beside.driver;
            row.loading_ns = beside.loading;
            row.setup_ns = beside.setup;
            (row.collector_start_ns, row.collector_end_ns) = (beside.collector_start, beside.collector_end);
            let ends = beside.collector_start.saturating_add(beside.collector_end);
            row.collector_ns = ends.saturating_add(beside.collector);
            row.collector_apart_ns = beside.collector_apart;
            (row.own_commands, row.own_bytes, row.own_device_ns) =
                (beside.own_commands, beside.own_bytes, beside.own_device);
            let both = [
                (beside.collector_calls, &mut row.collector_calls_ns),
                (beside.collector_once, &mut row.collector_once_ns),
            ];
            for ([least, about, most], part) in both {
                *part = about;
                row.least_ns = row.least_ns.saturating_add(least);
                row.most_ns = row.most_ns.saturating_add(most);
            }
        }
        let besides = row.besides_ns();
        row.total_ns = row.calls_ns.saturating_add(row.calibrated_ns()).saturating_add(besides);
        row.least_ns = row.least_ns.saturating_add(besides);
        row.most_ns = row.most_ns.saturating_add(besides);
        costs.is_known().then_some(row)
    }
}
