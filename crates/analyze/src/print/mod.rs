//! Every call on a line of its own, or every event; all of them, or those that are asked for.

mod clock;
mod filter;
mod line;
mod lost;
mod run;
mod tree;

pub use crate::watch::Watch;
use std::io::{self, Write};
use std::ops::ControlFlow;

pub use clock::Clock;
pub use filter::Filter;
pub use run::print_some;

use crate::spans::Summary;
use crate::trace::Trace;

/// What is a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A call, when it ends: calls inside of it stand before it, deeper to the
    /// right. Its time is when it began.
    #[default]
    Calls,
    /// An event.
    Events,
    /// An outermost call, when it ends: calls inside of it stand behind it in the
    /// order in which they began, deeper to the right.
    Tree,
}

/// How lines look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What is a line.
    pub form: Form,
    /// What times count from.
    pub clock: Clock,
    /// Also the time since the line before.
    pub deltas: bool,
    /// ANSI colours.
    pub colour: bool,
    /// Names of kernels with all that templates and parameters add.
    pub full_names: bool,
}

/// Prints a trace. It ends with the first error of `out`, so that a pipe which
/// nobody reads any more ends it.
///
/// # Errors
/// Those of `out`.
pub fn print(trace: &Trace, options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let go_on = |_| ControlFlow::Continue(());
    print_some(trace, options, &Filter::default(), &go_on, out).map(Option::unwrap_or_default)
}
