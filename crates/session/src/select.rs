//! Which functions are recorded.

use hetrace_model::{Function, Model, glob_matches};
use hetrace_ring::abi::flag;

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands on devices and the calls that make them, build code, and wait.
    Minimal,
    /// Every call; equal polls in a row become one record.
    #[default]
    Default,
    /// Every call by itself, with more of what pointers point at.
    Full,
}

/// What the user wants recorded.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// How much.
    pub mode: Mode,
    /// Only functions that one of these globs matches; all when empty.
    pub include: Vec<String>,
    /// No function that one of these globs matches.
    pub exclude: Vec<String>,
    /// Whether commands on devices are timed.
    pub devices: bool,
}

/// Roles of the functions that [`Mode::Minimal`] records.
const MINIMAL: &[&str] =
    &["launch", "enqueue", "build", "sync", "read", "write", "copy", "map", "unmap", "fill"];

impl Selection {
    /// The flag byte of each function of an API.
    pub fn flags(&self, model: &Model) -> Vec<u8> {
        model.functions.iter().map(|f| self.function(f)).collect()
    }

    /// Whether calls of functions are recorded that no model has: globs mean them
    /// by the name of their event.
    pub fn unknown(&self) -> bool {
        self.mode != Mode::Minimal && self.names("unknown")
    }

    fn names(&self, name: &str) -> bool {
        let included = self.include.is_empty() || self.include.iter().any(|g| glob_matches(g, name));
        included && !self.exclude.iter().any(|g| glob_matches(g, name))
    }

    fn function(&self, f: &Function) -> u8 {
        let mut flags = 0;
        let in_mode = self.mode != Mode::Minimal || MINIMAL.iter().any(|r| f.has_role(r));
        if in_mode && self.names(&f.name) {
            flags |= flag::RECORD;
        }
        // Times of devices depend on these, recorded or not.
        if self.devices && (f.hook.is_some() || f.command.is_some() || f.has_role("sync")) {
            flags |= flag::HOOK;
        }
        // Functions handed out by address must be exchanged when they are
        // asked for, whether or not the asking is recorded.
        if f.has_role("entry-point") {
            flags |= flag::HOOK;
        }
        flags
    }
}
