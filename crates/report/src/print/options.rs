//! How a trace is printed.

use super::clock::Clock;

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
    /// order in which they began, deeper to the right. Of what a filter wants, all that is
    /// inside is shown, too, and the calls around it.
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
