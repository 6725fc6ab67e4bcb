//! Something that is wrong with a trace.

use hetrace_ctf::account::Difference;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind it is, in a word for programs.
    pub kind: &'static str,
    /// The file, by its path in the trace; empty if it is of the trace as a whole.
    pub file: String,
    /// What is where, and what that means.
    pub text: String,
}

impl Finding {
    /// Returns a finding.
    pub(super) fn new(kind: &'static str, file: &str, text: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), text: text.into() }
    }
}

impl From<Difference> for Finding {
    fn from(difference: Difference) -> Self {
        Self::new(difference.kind(), difference.name(), difference.to_string())
    }
}
