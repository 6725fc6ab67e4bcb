//! Which functions are recorded.

use hetrace_model::glob_matches;
use hetrace_model::index::{Index, Kind, Row};
use hetrace_ring::abi::flag;

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Commands on devices and the calls that make them, build code, and wait.
    Minimal,
    /// Every call that a program's source has; equal polls in a row become one record.
    #[default]
    Default,
    /// Every call by itself, those between a compiler's code and its runtime too, with more of what pointers point at.
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

/// Roles of the functions that only [`Mode::Full`] records.
const ON_DEMAND: &[&str] = &["glue", "detail"];

impl Selection {
    /// Returns the flag byte of each function of an API.
    pub fn flags(&self, index: &Index) -> Vec<u8> {
        self.each(index, |kind, named| self.of_kind(kind, named))
    }

    /// Returns a byte for each function of an API, which depends on its kind and on whether globs choose it: there are
    /// few kinds.
    pub(crate) fn each(&self, index: &Index, of_kind: impl Fn(&Kind<'_>, bool) -> u8) -> Vec<u8> {
        let of_kinds = |named| index.kinds().map(|kind| of_kind(&kind, named)).collect::<Vec<u8>>();
        let chosen = of_kinds(true);
        if self.include.is_empty() && self.exclude.is_empty() {
            return index.by_kind(&chosen);
        }
        let others = of_kinds(false);
        let flags = |kinds: &[u8], kind: usize| kinds.get(kind).copied().unwrap_or(0);
        let of_row = |row: Row<'_>| flags(if self.names(row.name) { &chosen } else { &others }, row.kind);
        index.rows().map(of_row).collect()
    }

    /// Returns whether calls of functions are recorded that no model has: globs mean them
    /// by the name of their event.
    pub fn unknown(&self) -> bool {
        self.mode != Mode::Minimal && self.names("unknown")
    }

    /// Returns whether globs choose a function of this name.
    fn names(&self, name: &str) -> bool {
        let included = self.include.is_empty() || self.include.iter().any(|g| glob_matches(g, name));
        included && !self.exclude.iter().any(|g| glob_matches(g, name))
    }

    /// Returns the flag byte of functions of a kind that globs choose, or do not.
    pub(crate) fn of_kind(&self, f: &Kind<'_>, named: bool) -> u8 {
        let mut flags = 0;
        let in_mode = match self.mode {
            Mode::Minimal => MINIMAL.iter().any(|r| f.has_role(r)),
            // Who asks for functions by name means them.
            Mode::Default => !ON_DEMAND.iter().any(|r| f.has_role(r)) || !self.include.is_empty(),
            Mode::Full => true,
        };
        if in_mode && named {
            flags |= flag::RECORD;
        }
        // Times of devices depend on these, recorded or not.
        if self.devices && (f.hook.is_some() || f.commands || f.has_role("sync")) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(mode: Mode, include: &[&str], roles: &[&str]) -> bool {
        let include = include.iter().map(|&glob| glob.to_owned()).collect();
        let selection = Selection { mode, include, ..Selection::default() };
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index =
            Index::parse(format!("{head}\n-\t{}\t-\n\n\n", roles.join(",")).into_bytes()).expect("an index");
        let kind = index.kinds().next().expect("a kind");
        selection.of_kind(&kind, selection.names("pushCall")) & flag::RECORD != 0
    }

    #[test]
    fn a_compilers_own_calls_are_recorded_when_asked_for() {
        assert!(!recorded(Mode::Default, &[], &["glue"]));
        assert!(!recorded(Mode::Default, &[], &["range-push", "detail"]));
        assert!(recorded(Mode::Full, &[], &["range-push", "detail"]));
        assert!(recorded(Mode::Default, &["push*"], &["glue"]));
        assert!(recorded(Mode::Full, &[], &["glue"]));
        assert!(!recorded(Mode::Minimal, &[], &["glue"]));
        assert!(recorded(Mode::Default, &[], &["state"]));
    }
}
