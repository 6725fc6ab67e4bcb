//! Triggers of a flight recording: expressions over what programs do, each of which asks for a snapshot when it becomes
//! true ([docs/triggers.md], [decision 0057]).
//!
//! ```text
//!   text ──► syntax (parse) ──► Bound (bind: names of the models, of telemetry) ──► Watch ──► Fired
//!                                        │ by function: what a trigger needs of it    ▲
//!            Drainer ── calls of these functions only ────────────────────────────────┤
//!            Devices ── commands that have ended, if a trigger is about any ────────────┤
//!            Telemetry ── Feed ── samples of these quantities only ───────────────────┤
//!            the launcher's loop ── time, the program's end ──────────────────────────┘
//! ```
//! The program does nothing for it: all is found in what it records anyway.
//!
//! [docs/triggers.md]: https://github.com/hetrace/hetrace/blob/main/docs/triggers.md
//! [decision 0057]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0057-triggers.md

mod bind;
mod command;
mod feed;
mod fields;
mod lex;
mod near;
mod parse;
mod possible;
mod rule;
mod subject;
mod syntax;
#[cfg(test)]
mod tests;
mod units;
mod watch;

use std::fmt;
use std::ops::Range;

pub use bind::Bound;
pub(crate) use command::Ran;
pub(crate) use feed::Feed;
pub(crate) use fields::Place as FieldPlace;
pub use syntax::Trigger;
pub use watch::Account;
pub(crate) use watch::{CallRecord, Watch};

/// Why an expression is no trigger, or can't be one here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerError {
    what: String,
    text: String,
    /// The bytes of the text that are meant.
    at: Range<usize>,
}

impl TriggerError {
    fn new(text: &str, at: Range<usize>, what: impl Into<String>) -> Self {
        TriggerError { what: what.into(), text: text.to_owned(), at }
    }
}

impl std::error::Error for TriggerError {}

impl fmt::Display for TriggerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever the user wrote, and as wide as it has characters.
        let shown =
            |part: &str| -> String { part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect() };
        let before = self.text.get(..self.at.start).unwrap_or(&self.text);
        let meant = self.text.get(self.at.clone()).unwrap_or_default();
        let carets = "^".repeat(meant.chars().count().max(1));
        let (text, indent) = (shown(&self.text), " ".repeat(before.chars().count()));
        write!(f, "{}\n  {text}\n  {indent}{carets}", self.what)
    }
}
