//! A trace to its report.

use std::ops::ControlFlow;

use super::Options;
use super::collect::Collector;
use super::inside::insides;
use super::report::report;
use super::rows::Report;
use super::sampled::Sampled;
use hetrace_trace::spans::walk;
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Pace, Stopped, Watch};

/// Reports where the time of a trace's devices went.
pub fn why(trace: &Trace, options: &Options) -> Report {
    // Nobody is there to stop it.
    why_watched(trace, options, None).unwrap_or_default()
}

/// The same, for long traces.
///
/// # Errors
/// When the watch says so.
pub fn why_watched(trace: &Trace, options: &Options, watch: Option<Watch<'_>>) -> Result<Report, Stopped> {
    let sampled = Sampled::read(trace, watch)?;
    let mut collector = Collector::new(trace, options, sampled, Pace::new(watch));
    match walk(trace, &mut collector) {
        ControlFlow::Break(stopped) => Err(stopped),
        ControlFlow::Continue(summary) => {
            collector.finish(summary.last.unwrap_or(0));
            Ok(Report { inside: insides(trace, watch)?, ..report(&collector, &summary) })
        }
    }
}
