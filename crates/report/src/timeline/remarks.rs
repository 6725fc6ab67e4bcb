//! What the manifest says of moments: where a snapshot's window begins, which triggers fired, and when capture windows
//! were open: outside of them a row without calls does not say that there were none.

use std::collections::VecDeque;

use hetrace_trace::capture::Capture;
use hetrace_trace::trace::Trace;

/// A remark at a moment, or of a time from there on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// On the trace's clock, in nanoseconds.
    pub time: u64,
    /// When what it says is over, if that is not a moment; [`u64::MAX`]: with the trace.
    pub until: Option<u64>,
    /// Its category.
    pub category: &'static str,
    /// What it says.
    pub text: String,
}

/// Returns all of a trace, by time.
pub(super) fn remarks(trace: &Trace) -> VecDeque<Remark> {
    let manifest = trace.manifest();
    let capture = manifest.capture.as_ref().filter(|capture| !capture.asked.starts_with(Capture::FLIGHT));
    let windows = capture.iter().flat_map(|capture| {
        capture.windows.iter().map(|window| Remark {
            time: window.begin_ns,
            until: Some(window.end_ns.unwrap_or(u64::MAX)),
            category: "capture",
            text: format!("capture window ({})", capture.asked),
        })
    });
    let mut all: Vec<Remark> = windows.collect();
    if let Some(flight) = &manifest.flight {
        all.extend(flight.since_ns.map(|time| Remark {
            time,
            until: None,
            category: "capture",
            text: "snapshot begins: of what was before there is only what later events need".to_owned(),
        }));
        all.extend(flight.fired.iter().map(|fired| Remark {
            time: fired.time_ns,
            until: None,
            category: "trigger",
            text: fired.to_string(),
        }));
    }
    all.sort_by_key(|remark| remark.time);
    all.into()
}
