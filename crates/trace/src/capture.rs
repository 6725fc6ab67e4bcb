//! Capture windows: the parts of a run that were recorded.
//!
//! Outside of them a trace has only calls that make, name and free objects or mark ranges, and no commands: a device
//! that seems to be idle there, or a thread that seems to do nothing, is not known to be.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
pub use hetrace_format::window::{Capture, Window};
use hetrace_format::window::{CaptureBegin, CaptureEnd};

use crate::text::{duration, plural};
use crate::trace::Trace;

/// The windows of a trace, with what they cover of how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered<'t> {
    /// The windows.
    pub capture: &'t [Window],
    /// The options that asked for them.
    pub asked: &'t str,
    /// How long they were open together, ns.
    pub open_ns: u64,
    /// How long the program lived, or else the trace is, ns.
    pub whole_ns: u64,
}

impl<'t> Covered<'t> {
    /// Those of a trace; none if all of the run was recorded. `first` and `last` are when its events begin and end.
    pub fn of(trace: &'t Trace, first: u64, last: u64) -> Option<Self> {
        let manifest = trace.manifest();
        let capture = manifest.capture.as_ref()?;
        let end = manifest.end_ns.filter(|end| *end > 0).unwrap_or(last);
        let whole_ns = manifest.lifetime_ns.unwrap_or(last.saturating_sub(first));
        let open_ns = capture.open_ns(end).min(whole_ns);
        Some(Self { capture: &capture.windows, asked: &capture.asked, open_ns, whole_ns })
    }

    /// From when to when there is something of all kinds: from the first window's begin to the last one's end, ns on
    /// the trace's clock.
    pub fn reach(&self) -> Option<(u64, u64)> {
        let (first, last) = self.capture.first().zip(self.capture.last())?;
        Some((first.begin_ns, last.end_ns.unwrap_or(u64::MAX)))
    }
}

impl std::fmt::Display for Covered<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        sentence(f, self.asked, self.capture.len() as u64, self.open_ns, self.whole_ns)
    }
}

/// Writes what a trace covers: how many windows, how long they were open together, and of how long.
///
/// # Errors
/// Those of `out`.
pub fn sentence(
    out: &mut dyn std::fmt::Write,
    asked: &str,
    windows: u64,
    open_ns: u64,
    whole_ns: u64,
) -> std::fmt::Result {
    let whole = duration(whole_ns);
    if windows == 0 {
        return write!(
            out,
            "The capture window never opened ({asked}): of {whole} only calls are recorded that make, name and free objects, \
             or mark ranges."
        );
    }
    let open = duration(open_ns);
    if asked.starts_with(Capture::FLIGHT) {
        return write!(
            out,
            "Snapshot of a flight recording ({asked}): the last {open} of {whole}. Of what was before there is only what later \
             events need; the tables cover the window."
        );
    }
    let name = if windows == 1 { "Capture window".to_owned() } else { plural(windows, "capture window") };
    write!(
        out,
        "{name} ({asked}): {open} of {whole}. Outside only calls are recorded that make, name and free objects, or mark \
         ranges; of all else the tables cover the window."
    )
}

/// What an event says of a window, in words, if it opens or closes one.
pub fn flip_of(event: &Event<'_, '_>) -> Option<String> {
    let what = match event.class().name.as_str() {
        CaptureBegin::EVENT => "opens",
        CaptureEnd::EVENT => "closes",
        _ => return None,
    };
    let number = |name| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
    let reason = event.get("reason");
    let reason = reason.as_ref().and_then(|reason| reason.as_str()).unwrap_or("?");
    let by = match reason {
        "launch" | "range" => format!("{reason} {} in process {}", number("number"), number("pid")),
        other => other.to_owned(),
    };
    Some(format!("capture window {what}: {by}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_how_much_is_covered() {
        let said = |windows| {
            let mut text = String::new();
            sentence(&mut text, "--launches 1..2", windows, 5_000_000, 2_000_000_000).map(|()| text)
        };
        assert!(
            said(1)
                .is_ok_and(|text| text.starts_with("Capture window (--launches 1..2): 5.00 ms of 2.00 s."))
        );
        let mut text = String::new();
        let said_of_flight = sentence(&mut text, "--flight 30s", 1, 5_000_000, 2_000_000_000);
        assert!(
            said_of_flight.is_ok() && text.contains("(--flight 30s): the last 5.00 ms of 2.00 s"),
            "{text}"
        );
        assert!(said(2).is_ok_and(|text| text.starts_with("2 capture windows (--launches 1..2): 5.00 ms")));
        assert!(said(0).is_ok_and(|text| {
            text.starts_with("The capture window never opened (--launches 1..2): of 2.00 s")
        }));
    }
}
