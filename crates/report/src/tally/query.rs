//! What of a trace is counted, and how rows are grouped.

use super::By;
use hetrace_model::glob_matches;

use hetrace_trace::demangle;
use hetrace_trace::spans::Command;
use hetrace_trace::trace::{FunctionId, Item, Thread, Trace};
pub use hetrace_trace::watch::Watch;

/// How a trace is read for a tally. The result is always the same; the time is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// As it goes fastest, on all processors.
    #[default]
    Fastest,
    /// So many slices of time at once, if the trace can be cut.
    Slices(usize),
    /// Every event with all that it has, in the order of time.
    InOrder,
}

/// What of a trace is counted, and how rows are grouped.
#[derive(Clone, Default)]
pub struct Query<'w> {
    /// What rows are grouped by; by API and name if nothing is named.
    pub by: Vec<By>,
    /// Functions, commands and ranges of these names only: globs, of which one must match.
    pub names: Vec<String>,
    /// Calls of these APIs and commands on their queues only.
    pub apis: Vec<String>,
    /// What these processes did only.
    pub pids: Vec<i64>,
    /// What these threads did only.
    pub tids: Vec<i64>,
    /// Only what begins then or later, ns after the first event.
    pub from: Option<u64>,
    /// Only what begins before, ns after the first event.
    pub to: Option<u64>,
    /// Whether times of calls are left as they were recorded, with the tracer's own cost.
    pub gross: bool,
    /// How it is read.
    pub reading: Reading,
    /// Who wants to know how far it is.
    pub watch: Option<Watch<'w>>,
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("by", &self.by).field("chosen", &self.chosen()).finish_non_exhaustive()
    }
}

impl Query<'_> {
    /// What is left out, in words; none if nothing is.
    pub fn chosen(&self) -> Option<String> {
        let mut words = Vec::new();
        let mut list = |what: &str, all: Vec<String>| {
            if !all.is_empty() {
                words.push(format!("{what} {}", all.join(" or ")));
            }
        };
        let text = |all: &[i64]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        list("name", self.names.clone());
        list("API", self.apis.clone());
        list("process", text(&self.pids));
        list("thread", text(&self.tids));
        let seconds = |ns: u64| format!("{} s", ns as f64 / 1e9);
        match (self.from, self.to) {
            (None, None) => {}
            (Some(from), None) => words.push(format!("begun at {} or later", seconds(from))),
            (None, Some(to)) => words.push(format!("begun before {}", seconds(to))),
            (Some(from), Some(to)) => words.push(format!("begun from {} to {}", seconds(from), seconds(to))),
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Whether nothing is left out.
    pub(super) fn is_of_all(&self) -> bool {
        self.chosen().is_none()
    }

    /// Whether only some of the launches of a function may be wanted.
    pub(super) fn splits_functions(&self) -> bool {
        !self.tids.is_empty() || self.from.is_some() || self.to.is_some()
    }

    /// Whether a name is wanted.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|glob| glob_matches(glob, name))
    }

    /// Whether what a process did is wanted.
    pub(super) fn has_process(&self, pid: i64) -> bool {
        self.pids.is_empty() || self.pids.contains(&pid)
    }

    /// Whether an API is wanted.
    pub(super) fn has_api(&self, api: &str) -> bool {
        self.apis.is_empty() || self.apis.iter().any(|known| known == api)
    }

    /// Whether a kernel or a kind of command is wanted, under any of its names.
    pub(super) fn has_command(&self, kind: &str, symbol: &str) -> bool {
        if self.names.is_empty() {
            return true;
        }
        if symbol.is_empty() {
            return self.has_name(kind);
        }
        self.has_name(symbol)
            || self.has_name(&demangle::short(symbol))
            || self.has_name(&demangle::full(symbol))
    }
}

/// The same for one trace, where each call and command is asked for.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Whether anything is left out.
    pub any: bool,
    /// By function; empty if all are wanted.
    functions: Vec<bool>,
    pids: Vec<i64>,
    tids: Vec<i64>,
    from: u64,
    to: u64,
}

impl Choice {
    pub fn new(trace: &Trace, query: &Query<'_>) -> Self {
        let functions = trace.functions();
        let wanted = |f: &hetrace_trace::trace::Function| {
            query.has_name(&f.name) && functions.apis().get(f.api).is_none_or(|api| query.has_api(api))
        };
        let all = query.names.is_empty() && query.apis.is_empty();
        let windowed = query.from.is_some() || query.to.is_some();
        let first = if windowed { first(trace) } else { 0 };
        Self {
            any: !query.is_of_all(),
            functions: if all { Vec::new() } else { functions.all().iter().map(wanted).collect() },
            pids: query.pids.clone(),
            tids: query.tids.clone(),
            from: query.from.map_or(0, |from| first.saturating_add(from)),
            to: query.to.map_or(u64::MAX, |to| first.saturating_add(to)),
        }
    }

    /// Whether what begins then is wanted.
    #[inline]
    pub fn has_time(&self, begin: u64) -> bool {
        begin >= self.from && (begin < self.to || self.to == u64::MAX)
    }

    /// Whether what a thread does is wanted.
    pub fn has_thread(&self, pid: i64, tid: i64) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }

    /// Whether calls of a function are wanted.
    #[inline]
    pub fn has_function(&self, function: FunctionId) -> bool {
        self.functions.is_empty() || self.functions.get(function.index()) == Some(&true)
    }

    /// Whether a call is wanted.
    pub fn has_call(&self, function: FunctionId, who: &Thread, begin: u64) -> bool {
        self.has_function(function) && self.has_thread(who.pid, who.tid) && self.has_time(begin)
    }

    /// Whether a command is wanted, of whatever name; `time` is that of its event.
    pub fn has_command(&self, command: &Command<'_>, time: u64) -> bool {
        self.has_thread(command.pid, command.cause_tid)
            && self.has_time(command.times.map_or(time, |t| t.start))
    }

    /// Whether what began then on a thread is wanted.
    pub fn has_range(&self, pid: i64, tid: i64, begin: u64) -> bool {
        self.has_thread(pid, tid) && self.has_time(begin)
    }
}

/// Time of the first event.
fn first(trace: &Trace) -> u64 {
    let mut cursor = trace.cursor();
    while let Some(item) = cursor.next_item() {
        if let Item::Event(event) = item {
            return event.time;
        }
    }
    0
}
