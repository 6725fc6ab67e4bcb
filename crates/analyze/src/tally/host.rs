//! Sums of calls by function.

use super::rows::{ApiTotals, ErrorRow, HostRow, UnfinishedRow};
use crate::spans::{Call, Fold, Unfinished, Why};
use crate::trace::{Function, FunctionId, Thread, ThreadId, Trace};

/// Sums of one function.
#[derive(Clone, Debug, Default)]
struct Sum {
    calls: u64,
    folded: u64,
    total: u64,
    own: u64,
    min: u64,
    max: u64,
    errors: u64,
    error_ns: u64,
    /// Codes are few: a list is searched faster than a map.
    codes: Vec<(i64, u64)>,
    unfinished: u64,
    running: u64,
    lost: u64,
}

impl Sum {
    /// Calls that went well.
    fn good(&self) -> u64 {
        self.calls.saturating_sub(self.errors)
    }

    fn add(&mut self, other: &Sum) {
        if other.good() > 0 {
            self.min = if self.good() == 0 { other.min } else { self.min.min(other.min) };
            self.max = self.max.max(other.max);
        }
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.folded, other.folded),
            (&mut self.total, other.total),
            (&mut self.own, other.own),
            (&mut self.errors, other.errors),
            (&mut self.error_ns, other.error_ns),
            (&mut self.unfinished, other.unfinished),
            (&mut self.running, other.running),
            (&mut self.lost, other.lost),
        ] {
            *to = to.saturating_add(n);
        }
        for &(code, calls) in &other.codes {
            self.count_code(code, calls);
        }
    }

    fn fail(&mut self, code: i64, calls: u64, time: u64) {
        self.errors = self.errors.saturating_add(calls);
        self.error_ns = self.error_ns.saturating_add(time);
        self.count_code(code, calls);
    }

    fn count_code(&mut self, code: i64, calls: u64) {
        match self.codes.iter_mut().find(|(c, _)| *c == code) {
            Some((_, n)) => *n = n.saturating_add(calls),
            None => self.codes.push((code, calls)),
        }
    }
}

/// Sums of all functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// By function.
    sums: Vec<Sum>,
    /// By API and thread: whether it called.
    callers: Vec<Vec<bool>>,
    /// The API of each function.
    apis: Vec<u32>,
}

impl Host {
    pub fn new(trace: &Trace) -> Self {
        let functions = trace.functions();
        let api = |f: &Function| u32::try_from(f.api).unwrap_or(0);
        Self {
            sums: vec![Sum::default(); functions.all().len()],
            callers: vec![Vec::new(); functions.apis().len()],
            apis: functions.all().iter().map(api).collect(),
        }
    }

    #[inline]
    fn called(&mut self, function: FunctionId, thread: ThreadId) {
        let api = self.apis.get(function.index()).map_or(0, |&api| api as usize);
        let Some(callers) = self.callers.get_mut(api) else { return };
        match callers.get_mut(thread.index()) {
            Some(seen) => *seen = true,
            None => {
                callers.resize(thread.index() + 1, false);
                callers[thread.index()] = true;
            }
        }
    }

    #[inline]
    pub fn call(&mut self, call: &Call) {
        self.called(call.function, call.thread);
        let Some(sum) = self.sums.get_mut(call.function.index()) else { return };
        let time = call.duration();
        sum.calls += 1;
        match call.error {
            None => {
                sum.min = if sum.good() == 1 { time } else { sum.min.min(time) };
                sum.max = sum.max.max(time);
                sum.total = sum.total.saturating_add(time);
                sum.own = sum.own.saturating_add(call.own);
            }
            Some(code) => sum.fail(code, 1, time),
        }
    }

    pub fn fold(&mut self, fold: &Fold) {
        self.called(fold.function, fold.thread);
        let Some(sum) = self.sums.get_mut(fold.function.index()) else { return };
        let first = sum.good() == 0;
        sum.calls = sum.calls.saturating_add(fold.count);
        sum.folded = sum.folded.saturating_add(fold.count);
        match fold.error {
            None => {
                // A run keeps only its sum: its average stands for its calls.
                let average = fold.total / fold.count.max(1);
                sum.min = if first { average } else { sum.min.min(average) };
                sum.max = sum.max.max(average);
                sum.total = sum.total.saturating_add(fold.total);
                sum.own = sum.own.saturating_add(fold.total);
            }
            Some(code) => sum.fail(code, fold.count, fold.total),
        }
    }

    /// Adds what another part of the trace has, whose threads are `there`;
    /// `here` numbers a thread in this part.
    pub fn merge(&mut self, other: &Host, there: &[Thread], mut here: impl FnMut(&Thread) -> ThreadId) {
        for (to, from) in self.sums.iter_mut().zip(&other.sums) {
            to.add(from);
        }
        for (api, callers) in other.callers.iter().enumerate() {
            for (thread, _) in there.iter().zip(callers).filter(|(_, called)| **called) {
                let index = here(thread).index();
                let Some(seen) = self.callers.get_mut(api) else { continue };
                if seen.len() <= index {
                    seen.resize(index + 1, false);
                }
                seen[index] = true;
            }
        }
    }

    pub fn unfinished(&mut self, call: &Unfinished) {
        self.called(call.function, call.thread);
        let Some(sum) = self.sums.get_mut(call.function.index()) else { return };
        sum.unfinished += 1;
        match call.why {
            Why::TraceEnds => sum.running += 1,
            Why::ExitLost => sum.lost += 1,
            Why::ThreadEnded => {}
        }
    }

    /// Functions with their sums, those with the most time first.
    fn sorted<'a>(
        &'a self,
        trace: &'a Trace,
    ) -> impl Iterator<Item = (FunctionId, &'a str, &'a str, &'a Sum)> {
        let functions = trace.functions();
        let mut all: Vec<_> = (0u32..)
            .zip(functions.all())
            .zip(&self.sums)
            .map(|((id, f), sum)| {
                let api = functions.apis().get(f.api).map_or("", String::as_str);
                (FunctionId(id), f.name.as_str(), api, sum)
            })
            .collect();
        all.sort_by(|(_, a_name, a_api, a), (_, b_name, b_api, b)| {
            let time = b.total.cmp(&a.total).then(b.error_ns.cmp(&a.error_ns));
            time.then(a_api.cmp(b_api)).then(a_name.cmp(b_name))
        });
        all.into_iter()
    }

    pub fn rows(&self, trace: &Trace) -> Vec<HostRow> {
        let called = self.sorted(trace).filter(|(.., sum)| sum.calls > 0);
        called
            .map(|(_, name, api, sum)| HostRow {
                name: name.to_owned(),
                api: api.to_owned(),
                calls: sum.calls,
                folded: sum.folded,
                total_ns: sum.total,
                self_ns: sum.own,
                avg_ns: average(sum.total, sum.good()),
                min_ns: sum.min,
                max_ns: sum.max,
                errors: sum.errors,
                error_ns: sum.error_ns,
            })
            .collect()
    }

    pub fn errors(&self, trace: &Trace) -> Vec<ErrorRow> {
        let mut rows = Vec::new();
        for (id, name, api, sum) in self.sorted(trace) {
            rows.extend(sum.codes.iter().map(|&(code, calls)| ErrorRow {
                name: name.to_owned(),
                api: api.to_owned(),
                error: trace.error_name(id, code),
                code,
                calls,
            }));
        }
        rows.sort_by(|a, b| {
            let rest = |r: &ErrorRow| (r.name.clone(), r.api.clone(), r.code);
            b.calls.cmp(&a.calls).then_with(|| rest(a).cmp(&rest(b)))
        });
        rows
    }

    pub fn unfinished_rows(&self, trace: &Trace) -> Vec<UnfinishedRow> {
        let mut rows: Vec<_> = self
            .sorted(trace)
            .filter(|(.., sum)| sum.unfinished > 0)
            .map(|(_, name, api, sum)| UnfinishedRow {
                name: name.to_owned(),
                api: api.to_owned(),
                calls: sum.unfinished,
                running: sum.running,
                lost: sum.lost,
            })
            .collect();
        rows.sort_by(|a, b| b.calls.cmp(&a.calls).then(a.name.cmp(&b.name)));
        rows
    }

    pub fn apis(&self, trace: &Trace, threads: &[Thread]) -> Vec<ApiTotals> {
        let mut totals = Vec::new();
        for (index, (api, callers)) in trace.functions().apis().iter().zip(&self.callers).enumerate() {
            let who: Vec<&Thread> =
                threads.iter().zip(callers).filter(|(_, called)| **called).map(|(t, _)| t).collect();
            let mut pids: Vec<i64> = who.iter().map(|t| t.pid).collect();
            pids.sort_unstable();
            pids.dedup();
            let own = self.sums.iter().zip(&self.apis);
            let own: Vec<&Sum> = own.filter(|(_, a)| **a as usize == index).map(|(sum, _)| sum).collect();
            if who.is_empty() {
                continue;
            }
            let sum = |of: fn(&Sum) -> u64| own.iter().map(|s| of(s)).fold(0, u64::saturating_add);
            totals.push(ApiTotals {
                api: api.clone(),
                title: trace.models().iter().find(|m| m.api == *api).map_or("", |m| &m.title).to_owned(),
                processes: pids.len() as u64,
                threads: who.len() as u64,
                calls: sum(|s| s.calls),
                self_ns: sum(|s| s.own),
            });
        }
        totals
    }
}

pub(super) fn average(total: u64, calls: u64) -> f64 {
    if calls == 0 { 0.0 } else { total as f64 / calls as f64 }
}
