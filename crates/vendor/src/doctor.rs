//! What `hetrace doctor` finds, and where it looks.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: two or three words.
    pub what: String,
    /// Whether tracing works as far as this goes.
    pub works: bool,
    /// What was found.
    pub says: String,
    /// What would make it better, or work at all.
    pub mend: Option<String>,
}

impl Finding {
    /// One that is as it should be.
    pub fn fine(what: &str, says: impl Into<String>) -> Finding {
        Finding { what: what.to_owned(), works: true, says: says.into(), mend: None }
    }

    /// One without which tracing does not work.
    pub fn failed(what: &str, says: impl Into<String>) -> Finding {
        Finding { works: false, ..Finding::fine(what, says) }
    }

    /// The same with what would make it better.
    pub fn with(self, mend: impl Into<String>) -> Finding {
        Finding { mend: Some(mend.into()), ..self }
    }
}

/// The machine as the doctor sees it. It reads files and loads no library.
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
    /// A file's text, by its path below the root.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    /// The value of a variable that is set, and not to nothing.
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
