//! The API libraries beside the launcher, before they are opened.
//!
//! There are many APIs and a machine has few. What each needs of a machine (`needs.txt`, which the code generator makes)
//! is in the launcher since it was built, so that a library whose API is absent costs a name in a folder:
//!
//! ```text
//! cublas  libcuda.so.1  libcublas.so.11,libcublas.so.12     API, what its programs need one of, its own libraries
//! ```
//! with tabs between. A library that is not in the list is opened, and says what it needs itself.

use std::path::{Path, PathBuf};

use super::{Found, LibraryError, PREFIX, SUFFIX, VARIABLE, folders, open_by};
use crate::ldcache::Search;

/// What the APIs need that were there when the launcher was built.
const NEEDS: &str = include_str!(concat!(env!("OUT_DIR"), "/needs.txt"));

/// A library that lies beside the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Short name of its API, as its file is named.
    pub api: String,
    path: PathBuf,
}

/// What the libraries beside the launcher are to a program.
#[derive(Debug, Default)]
pub struct Sorted {
    /// Those of APIs that it may use, opened.
    pub present: Vec<Found>,
    /// Names of the others.
    pub absent: Vec<String>,
}

impl Candidate {
    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let api = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned();
        Some(Self { api, path })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks into it.
    ///
    /// # Errors
    /// When the file can't be read or carries no model of this version.
    pub fn open(&self) -> Result<Found, LibraryError> {
        open_by(&self.path, &Search::new())
    }
}

/// Returns all libraries in the first folder that has any, by API name.
///
/// # Errors
/// When `HETRACE_LIBRARIES` names a folder that has none.
pub fn candidates() -> Result<Vec<Candidate>, LibraryError> {
    for folder in folders() {
        let found = within(&folder);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    match std::env::var_os(VARIABLE) {
        Some(folder) => Err(LibraryError::Form {
            path: folder.into(),
            what: format!("contains no {PREFIX}*{SUFFIX}, but {VARIABLE} names it"),
        }),
        None => Ok(Vec::new()),
    }
}

fn within(folder: &Path) -> Vec<Candidate> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Candidate> = entries.filter_map(|entry| Candidate::at(entry.path())).collect();
    found.sort_by(|a, b| a.api.cmp(&b.api));
    found
}

/// Opens those of which a program that is linked to these libraries may use the API.
///
/// # Errors
/// The first library that can't be used.
pub fn sort(candidates: &[Candidate], linked: &[String]) -> Result<Sorted, LibraryError> {
    let search = Search::new();
    let mut sorted = Sorted::default();
    for candidate in candidates {
        let known = needs(NEEDS, &candidate.api);
        if known.is_some_and(|needs| needs.are_absent(&search, linked)) {
            sorted.absent.push(candidate.api.clone());
            continue;
        }
        let found = open_by(&candidate.path, &search)?;
        if found.absent && !found.is_brought_by(linked) {
            sorted.absent.push(found.api);
        } else {
            sorted.present.push(found);
        }
    }
    Ok(sorted)
}

/// What an API's programs need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Needs<'t> {
    /// Libraries and files of which they need one, with commas between.
    requires: &'t str,
    /// The API's own libraries.
    libraries: &'t str,
}

impl Needs<'_> {
    fn are_absent(&self, search: &Search, linked: &[String]) -> bool {
        let brought = |names: &str| words(names).any(|name| linked.iter().any(|linked| linked == name));
        search.are_absent(words(self.requires)) && !brought(self.requires) && !brought(self.libraries)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|word| !word.is_empty())
}

/// Returns what an API needs, if a list has it.
fn needs<'t>(list: &'t str, api: &str) -> Option<Needs<'t>> {
    list.lines().find_map(|line| {
        let (requires, libraries) = line.strip_prefix(api)?.strip_prefix('\t')?.split_once('\t')?;
        Some(Needs { requires, libraries })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_found_by_its_whole_name() {
        let list = "toy\tlibtoydriver.so.1,/dev/toy\tlibtoy.so.2\ntoyrt\t\tlibtoyrt.so\n";
        let toy = needs(list, "toy").expect("it is there");
        assert_eq!((toy.requires, toy.libraries), ("libtoydriver.so.1,/dev/toy", "libtoy.so.2"));
        assert_eq!(needs(list, "to"), None);
        assert_eq!(needs(list, "toyrt").map(|needs| needs.requires), Some(""));
    }

    #[test]
    fn what_a_program_is_linked_to_is_there() {
        let toy = Needs { requires: "libnowhere.so.1,/nowhere/device", libraries: "libtoy.so.2" };
        let absent = |needs: Needs<'_>, linked: &[&str]| {
            let linked: Vec<String> = linked.iter().map(|&name| name.to_owned()).collect();
            needs.are_absent(&Search::new(), &linked)
        };
        assert!(absent(toy, &["libc.so.6"]) && absent(toy, &["libtoy.so.1"]));
        assert!(!absent(toy, &["libtoy.so.2"]) && !absent(toy, &["libc.so.6", "libnowhere.so.1"]));
        assert!(!absent(Needs { requires: "", ..toy }, &[]), "nothing is needed");
        assert!(!absent(Needs { requires: "libnowhere.so.1,libc.so.6", ..toy }, &[]));
    }

    #[test]
    fn the_launcher_has_what_the_apis_of_its_source_need() {
        let mut apis: Vec<&str> = NEEDS.lines().filter_map(|line| line.split('\t').next()).collect();
        assert!(apis.len() > 20, "{NEEDS}");
        apis.sort_unstable();
        apis.dedup();
        assert_eq!(apis.len(), NEEDS.lines().count(), "each once");
    }

    #[test]
    fn libraries_of_absent_apis_are_not_opened_and_unknown_ones_are() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let absent = NEEDS.lines().find_map(|line| {
            let api = line.split('\t').next()?;
            needs(NEEDS, api).filter(|needs| needs.are_absent(&Search::new(), &[])).map(|_| api)
        });
        // This machine may have all of them.
        let Some(api) = absent else { return };
        for name in [api, "nobody_knows_this"] {
            std::fs::write(folder.path().join(format!("{PREFIX}{name}{SUFFIX}")), "no library")
                .expect("a file");
        }
        let found = within(folder.path());
        let names = |of: &str| found.iter().filter(|c| c.api == of).cloned().collect::<Vec<_>>();
        let sorted = sort(&names(api), &[]).expect("nobody looks into it");
        assert_eq!((sorted.absent, sorted.present.len()), (vec![api.to_owned()], 0));
        assert!(sort(&names("nobody_knows_this"), &[]).is_err());
    }
}
