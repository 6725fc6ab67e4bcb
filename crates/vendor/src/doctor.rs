//! Findings of `hetrace doctor`, and the machine that it examines.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked: two or three words.
    pub what: String,
    /// Whether this allows tracing.
    pub works: bool,
    /// What was found.
    pub says: String,
    /// How to fix or improve it.
    pub fix: Option<String>,
}

impl Finding {
    /// Makes a finding that does not prevent tracing.
    pub fn fine(what: &str, says: impl Into<String>) -> Finding {
        Finding { what: what.to_owned(), works: true, says: says.into(), fix: None }
    }

    /// Makes a finding that prevents tracing.
    pub fn failed(what: &str, says: impl Into<String>) -> Finding {
        Finding { works: false, ..Finding::fine(what, says) }
    }

    /// Adds how to fix or improve it.
    pub fn with(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }
}

/// The machine that is examined: by reading files, without loading any library.
pub struct Machine<'a> {
    /// Where `/` is.
    pub root: &'a Path,
    /// Whether the user is root.
    pub privileged: bool,
    /// Returns the path at which the loader finds a library.
    pub library: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Returns the value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Machine<'_> {
    /// Returns the text of a file, by its path below the root.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    /// Returns the value of a variable that is set and not empty.
    pub(crate) fn set(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name)?.into_string().ok()?;
        (!value.is_empty()).then_some(value)
    }
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("root", &self.root)
            .field("privileged", &self.privileged)
            .finish_non_exhaustive()
    }
}
