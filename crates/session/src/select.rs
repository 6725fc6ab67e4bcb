//! Which functions are recorded.

use hetrace_model::glob_matches;
use hetrace_model::index::{Index, Kind, Row};

use crate::flags::Choice;
pub use crate::flags::Mode;

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

impl Selection {
    /// Returns the flag byte of each function of an API.
    pub fn flags(&self, index: &Index) -> Vec<u8> {
        let choice = self.choice();
        self.each(index, |kind, named| choice.selected(kind, named))
    }

    /// Returns what flags depend on, as far as it is selected.
    pub(crate) fn choice(&self) -> Choice {
        let Self { mode, devices, .. } = *self;
        Choice { mode, devices, by_name: !self.include.is_empty(), ..Choice::default() }
    }

    /// Returns whether all functions are chosen alike, whatever their names.
    pub(crate) fn is_of_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Returns a byte for each function of an API, which depends on its kind and on whether globs choose it: there are
    /// few kinds.
    pub(crate) fn each(&self, index: &Index, of_kind: impl Fn(&Kind<'_>, bool) -> u8) -> Vec<u8> {
        let of_kinds = |named| index.kinds().map(|kind| of_kind(&kind, named)).collect::<Vec<u8>>();
        let chosen = of_kinds(true);
        if self.is_of_all() {
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
}

#[cfg(test)]
mod tests {
    use hetrace_ring::abi::flag;

    use super::*;

    fn recorded(mode: Mode, include: &[&str], roles: &[&str]) -> bool {
        let include = include.iter().map(|&glob| glob.to_owned()).collect();
        let selection = Selection { mode, include, ..Selection::default() };
        let head = r#"{"api":"toy","interpose":{},"model_bytes":0,"frame_bytes":0,"model_sum":0}"#;
        let index =
            Index::parse(format!("{head}\n-\t{}\t-\n\n\n", roles.join(",")).into_bytes()).expect("an index");
        let kind = index.kinds().next().expect("a kind");
        selection.choice().selected(&kind, selection.names("pushCall")) & flag::RECORD != 0
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
