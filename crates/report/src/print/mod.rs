//! Every call on a line of its own, or every event; all of them, or those that are asked for.

mod beside;
mod clock;
mod commands;
mod filter;
mod inside;
mod last;
mod line;
mod nested;
mod numbers;
mod options;
mod order;
mod run;
mod shared;
mod tree;

pub use hetrace_trace::watch::Watch;
use std::io::{self, Write};
use std::ops::ControlFlow;

pub use clock::Clock;
pub use filter::Filter;
pub use inside::{Insides, print_inside};
pub use last::{LastOptions, print_last};
pub use options::{Form, Options};
pub use run::{print_both, print_some};

use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;

/// Prints a trace. It ends with the first error of `out`, so that a pipe which
/// nobody reads any more ends it.
///
/// # Errors
/// Those of `out`.
pub fn print(trace: &Trace, options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let go_on = |_| ControlFlow::Continue(());
    print_some(trace, options, &Filter::default(), &go_on, out).map(Option::unwrap_or_default)
}
