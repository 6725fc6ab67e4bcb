//! Events of capture windows: from when to when a run was recorded.
//!
//! They stand in a stream of the launcher's own, `capture-1`, and only in traces of runs that had a window. The window
//! is closed when such a trace begins, unless the first event is a [`CaptureEnd`].

use hetrace_ctf::class::{EventClass, StreamClass, StructClass};
use hetrace_ctf::write::form;
use serde::{Deserialize, Serialize};

use crate::define::definitions;
use crate::event;
use crate::field::Field;

/// Stream class of these events: behind that of telemetry.
pub const STREAM: u32 = 65;

definitions! { "capture":
    /// A capture window was opened: from here on all that was asked for is recorded.
    CaptureBegin = 0, "begin" {
        /// `time`, `launch`, `range`, `signal` or `call`.
        reason: String,
        /// The launch or range that opened it, counted from 0; 0 if none did.
        number: u64,
        /// Process that did it, or the launcher.
        pid: u32,
        /// Its thread.
        tid: u32,
    }

    /// The window was closed: from here on only calls are recorded that make, name and free objects, or mark ranges.
    CaptureEnd = 1, "end" {
        /// As in [`CaptureBegin`].
        reason: String,
        /// The launch or range that closed it.
        number: u64,
        /// Process that did it, or the launcher.
        pid: u32,
        /// Its thread.
        tid: u32,
    }
}

/// Returns the stream class.
pub fn stream() -> StreamClass {
    let mut stream = form::stream_class(u64::from(STREAM));
    stream.events.extend([CaptureBegin::class(), CaptureEnd::class()]);
    stream
}

/// What was asked for, and when it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capture {
    /// The windows that were asked for, as the options that ask for them: `--launches 1000..2000`.
    pub asked: String,
    /// The windows, in the order of time; none if what opens one never came.
    pub windows: Vec<Window>,
    /// Launches of kernels until the window was closed for good, or in all; none if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<u64>,
    /// Ranges of the name that was asked for, until the window was closed for good, or in all; none if they were not
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<u64>,
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// When it was opened, ns on the trace's clock.
    pub begin_ns: u64,
    /// When it was closed; none if it was open when the program ended, or recording did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Why it was opened: `time`, `launch`, `range`, `signal` or `call`.
    pub opened_by: String,
    /// Why it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
}

impl Capture {
    /// The option whose window is the end of a run: how [`Capture::asked`] of a flight recording's snapshot begins.
    pub const FLIGHT: &str = "--flight";

    /// Returns whether a moment was in a window. Moments are ns on the trace's clock.
    pub fn covers(&self, time: u64) -> bool {
        self.windows.iter().any(|w| w.begin_ns <= time && w.end_ns.is_none_or(|end| time < end))
    }

    /// Returns how long the windows were open together, in ns; `end` is when the trace ends.
    pub fn open_ns(&self, end: u64) -> u64 {
        let length = |w: &Window| w.end_ns.unwrap_or(end).min(end.max(w.begin_ns)).saturating_sub(w.begin_ns);
        self.windows.iter().map(length).fold(0, u64::saturating_add)
    }

    /// Returns the parts of a time that lie in windows, in ns. Windows do not overlap.
    pub fn parts(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let part = move |w: &Window| (w.begin_ns.max(from), w.end_ns.unwrap_or(u64::MAX).min(to));
        self.windows.iter().map(part).filter(|(from, to)| from < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> Capture {
        let window = |begin_ns, end_ns| Window { begin_ns, end_ns, ..Window::default() };
        Capture { windows: vec![window(10, Some(20)), window(30, None)], ..Capture::default() }
    }

    #[test]
    fn a_window_has_its_begin_and_not_its_end() {
        let covered: Vec<u64> = (0..40).filter(|t| capture().covers(*t)).collect();
        assert_eq!(covered, (10..20).chain(30..40).collect::<Vec<u64>>());
    }

    #[test]
    fn lengths_end_with_the_trace() {
        assert_eq!([capture().open_ns(50), capture().open_ns(30), capture().open_ns(12)], [30, 10, 2]);
        assert_eq!(capture().parts(15, 35).collect::<Vec<_>>(), [(15, 20), (30, 35)]);
        assert_eq!(capture().parts(20, 30).count(), 0);
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let ids: Vec<u64> = stream().events.iter().map(|event| event.id).collect();
        assert_eq!(ids, [u64::from(CaptureBegin::ID), u64::from(CaptureEnd::ID)]);
        assert_eq!(CaptureBegin::EVENT, "capture:begin");
    }
}
