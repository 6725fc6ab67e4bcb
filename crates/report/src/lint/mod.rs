//! Misuse, found from arguments and lifetimes.
//!
//! ```text
//!  facts      what each function means, once per trace: from roles, types and tables of the model
//!  values     numbers of an event's fields  ──►  passed   what an open call was passed, as far as `reads` says
//!    │
//!  walk       one walk; per rule group a table of what is open or alive:
//!    ├── lifetimes   leak, use-after-release, double-release, wrong-context, event-unused: by `objects`
//!    ├── calls       ignored-error, unfinished-call, deprecated
//!    ├── memory      out-of-bounds, alloc-in-loop, and releases of addresses
//!    ├── copies      overlapping-copies, pageable-async, small-copies, same-bytes: with `moves` for commands
//!    ├── sent        same-bytes, where the trace has hashes
//!    ├── flow        sync-after-launch, busy-poll, default-stream, small-launch, build-in-loop, …
//!    ├── states      what objects go through: list-state, event-not-reset, deadlock, outlives-owner, …
//!    └── hazards     what commands do to memory, and in which order:
//!          ├── arguments   redundant-set-arg, argument-size, launches with released arguments
//!          ├── waits       unwaited-read, redundant-sync, double-wait: by `order`
//!          ├── races       race
//!          ├── maps        map-leak, mapped-in-use
//!          ├── contents    uninitialized-read
//!          └── repeats     unused-read, ping-pong, same-bytes again
//!  findings   equal ones folded  ──►  show   a second walk that writes the calls they name
//!    └──► report   as a value, text, or SARIF
//! ```
//!
//! The tables are bounded; what does not fit is passed over and noted. Rules claim only what
//! the trace shows. Where calls are missing, rules that need all of them say so and are graded
//! down.

mod arguments;
mod calls;
mod contents;
mod copies;
mod duties;
mod facts;
mod findings;
mod flow;
mod hazards;
mod kinds;
mod lifetimes;
mod maps;
mod memory;
mod moves;
mod objects;
mod order;
mod own_events;
mod passed;
mod races;
mod reads;
mod repeats;
mod report;
mod rules;
mod sarif;
mod sent;
mod show;
mod span;
mod states;
mod sum;
mod text;
mod waits;
mod walk;

use std::ops::ControlFlow;

pub use report::{CodeFrame, Evidence, Finding, Missing, Occurrence, Report, SCHEMA};
pub use rules::{Group, RULES, Rule, Severity, rule_of};
pub use text::{TextOptions, rules_text};

use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Pace, Stopped, Watch};

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these rules; all if empty.
    pub only: Vec<String>,
    /// Not these.
    pub except: Vec<String>,
    /// Calls are missing for a reason that is not in the trace.
    pub partial: Option<String>,
}

/// Looks for misuse in a trace.
pub fn lint(trace: &Trace, options: &Options) -> Report {
    // Nobody is there to stop it.
    lint_watched(trace, options, None).unwrap_or_default()
}

/// The same, for long traces: events are read again up to the last call that is shown.
///
/// # Errors
/// When the watch says so.
pub fn lint_watched(trace: &Trace, options: &Options, watch: Option<Watch<'_>>) -> Result<Report, Stopped> {
    let any = |list: &[String], id: &str| list.iter().any(|one| one == id);
    let selected =
        |id: &str| (options.only.is_empty() || any(&options.only, id)) && !any(&options.except, id);
    let mut linter = walk::Linter::new(trace, findings::Findings::new(selected), Pace::new(watch));
    let summary = match hetrace_trace::spans::walk(trace, &mut linter) {
        ControlFlow::Break(stopped) => return Err(stopped),
        ControlFlow::Continue(summary) => summary,
    };
    linter.finish();
    let doubt = doubt(&summary, options, linter.unknown);
    let calls = show::calls(trace, &linter.findings, &summary, Pace::new(watch))?;
    Ok(report::report(trace, &linter, &calls, &summary, (doubt, !options.only.is_empty())))
}

/// Why calls may be missing.
fn doubt(summary: &Summary, options: &Options, unknown: u64) -> Option<String> {
    if let Some(partial) = &options.partial {
        return Some(partial.clone());
    }
    let lost = summary.lost_events.max(summary.lost_calls);
    if lost > 0
        || summary.lost_packets > 0
        || summary.damaged > 0
        || summary.differences > 0
        || summary.orphans > 0
    {
        return Some(match lost {
            0 => "a part of the trace is missing".to_owned(),
            lost => format!("{} lost", hetrace_trace::text::plural(lost, "event")),
        });
    }
    (unknown > 0).then(|| {
        let calls = hetrace_trace::text::plural(unknown, "call");
        format!("{calls} of functions that no model describes")
    })
}
