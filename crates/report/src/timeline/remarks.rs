//! What the manifest says of moments: where a snapshot's window begins, and which triggers fired.

use std::collections::VecDeque;

use hetrace_trace::trace::Trace;

/// A remark at a moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// On the trace's clock, in nanoseconds.
    pub time: u64,
    /// Its category.
    pub category: &'static str,
    /// What it says.
    pub text: String,
}

/// Returns all of a trace, by time.
pub(super) fn remarks(trace: &Trace) -> VecDeque<Remark> {
    let Some(flight) = &trace.manifest().flight else { return VecDeque::new() };
    let begin = flight.since_ns.map(|time| Remark {
        time,
        category: "capture",
        text: "snapshot begins: of what was before there is only what later events need".to_owned(),
    });
    let fired = flight.fired.iter().map(|fired| Remark {
        time: fired.time_ns,
        category: "trigger",
        text: fired.to_string(),
    });
    let mut all: Vec<Remark> = begin.into_iter().chain(fired).collect();
    all.sort_by_key(|remark| remark.time);
    all.into()
}
