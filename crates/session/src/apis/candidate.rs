//! The API libraries beside the launcher, before they are opened.
//!
//! There are many APIs and a machine has few. What each needs of a machine is in the launcher since it was built
//! ([`known`](super::known)), so that a library whose API is absent costs a name in a folder. A library that the launcher
//! does not know is opened, and says what it needs itself.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, RawDir, openat};

use super::known::{self, Known};
use super::{Found, LibraryError, Name, PREFIX, SUFFIX, VARIABLE, folders, open_file};
use crate::ldcache::Search;

/// A library that lies beside the launcher.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Short name of its API, as its file is named.
    pub api: Name,
    /// What the launcher knows of it.
    known: Option<&'static Known>,
    /// The file's name in the folder.
    file: Cow<'static, CStr>,
    folder: Arc<Folder>,
}

/// A folder with libraries.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    open: OwnedFd,
}

/// What the libraries beside the launcher are to a program.
#[derive(Debug, Default)]
pub struct Sorted {
    /// Those of APIs that it may use, opened.
    pub present: Vec<Found>,
    /// Names of the others.
    pub absent: Vec<Name>,
}

impl Candidate {
    fn new(file: &CStr, folder: &Arc<Folder>) -> Option<Self> {
        let name = file.to_bytes().strip_prefix(PREFIX.as_bytes())?.strip_suffix(SUFFIX.as_bytes())?;
        let folder = Arc::clone(folder);
        Some(match known::by_file(file) {
            Some(known) => {
                Self { api: known.api.into(), known: Some(known), file: known.file.into(), folder }
            }
            None => {
                let api = std::str::from_utf8(name).ok()?.to_owned();
                Self { api: api.into(), known: None, file: CString::from(file).into(), folder }
            }
        })
    }

    /// Returns where it is.
    fn path(&self) -> PathBuf {
        self.folder.path.join(OsStr::from_bytes(self.file.to_bytes()))
    }

    /// Looks into it, and reads all that is to be known before a program starts.
    ///
    /// # Errors
    /// When the file can't be read or carries no model of this version.
    pub fn open(&self) -> Result<Found, LibraryError> {
        let found = self.open_by(&Search::new(), None)?;
        found.index()?;
        Ok(found)
    }

    /// Looks into it: no further than need be, if it is as the launcher knows it.
    fn open_by(&self, search: &Search, known: Option<&'static Known>) -> Result<Found, LibraryError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.folder.open, &*self.file, flags, Mode::empty()).map(File::from);
        let file = file.map_err(|error| LibraryError::Read { path: self.path(), error: error.into() })?;
        open_file(file, &|| self.path(), known, search)
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

fn within(path: &Path) -> Vec<Candidate> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = rustix::fs::open(path, flags, Mode::empty()) else { return Vec::new() };
    let folder = Arc::new(Folder { path: path.to_owned(), open });
    let mut room = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(&folder.open, &mut room);
    let mut found = Vec::with_capacity(64);
    while let Some(Ok(entry)) = entries.next() {
        found.extend(Candidate::new(entry.file_name(), &folder));
    }
    found.sort_by(|a, b| a.api.cmp(&b.api));
    found
}

/// Opens those of which a program that is linked to these libraries may use the API.
///
/// # Errors
/// The first library that can't be used.
pub fn sort(candidates: &[Candidate], linked: &[String]) -> Result<Sorted, LibraryError> {
    let search = Search::new();
    let machine = Machine::new(&search, linked);
    let mut sorted = Sorted::default();
    for candidate in candidates {
        if candidate.known.is_some_and(|known| machine.lacks(known)) {
            sorted.absent.push(candidate.api.clone());
            continue;
        }
        let found = candidate.open_by(&search, candidate.known)?;
        if found.absent && !found.is_brought_by(linked) {
            sorted.absent.push(found.api);
        } else {
            sorted.present.push(found);
        }
    }
    Ok(sorted)
}

/// Which of the [`known::names`] there are, each looked for once.
struct Machine<'s> {
    search: &'s Search,
    there: Vec<OnceCell<bool>>,
    /// The program is linked to it.
    linked: Vec<bool>,
}

impl<'s> Machine<'s> {
    fn new(search: &'s Search, linked: &[String]) -> Self {
        let names = known::names();
        let mut is_linked = vec![false; names.len()];
        for name in linked {
            if let Ok(number) = names.binary_search_by(|known| known.to_bytes().cmp(name.as_bytes())) {
                is_linked[number] = true;
            }
        }
        Machine { search, there: vec![OnceCell::new(); names.len()], linked: is_linked }
    }

    /// Returns whether there is nothing of what an API's programs need one of, neither here nor with the program.
    fn lacks(&self, known: &Known) -> bool {
        let brought = |numbers: &[u16]| numbers.iter().any(|number| self.linked[usize::from(*number)]);
        let is_there = |number: &u16| {
            let number = usize::from(*number);
            *self.there[number].get_or_init(|| self.search.is_there(known::names()[number]))
        };
        !known.requires.is_empty()
            && !brought(known.requires)
            && !brought(known.libraries)
            && !known.requires.iter().any(is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, api: &str) {
        std::fs::write(folder.join(format!("{PREFIX}{api}{SUFFIX}")), "no library").expect("a file");
    }

    #[test]
    fn what_a_program_is_linked_to_is_there() {
        let search = Search::new();
        let lacks = |known: &Known, linked: &[&str]| {
            let linked: Vec<String> = linked.iter().map(|&name| name.to_owned()).collect();
            Machine::new(&search, &linked).lacks(known)
        };
        let mut looked = 0;
        for known in known::all().iter().filter(|known| !known.requires.is_empty()) {
            let file = known.file;
            let required: Vec<&str> = known.entrance.requires.iter().map(|name| &**name).collect();
            assert_eq!(lacks(known, &[]), search.are_absent(required.iter().copied()), "{file:?}");
            if lacks(known, &["libc.so.6"]) {
                looked += 1;
                assert!(!lacks(known, &["libc.so.6", &*known.entrance.libraries[0]]), "{file:?}");
                assert!(!lacks(known, &[required[0]]), "{file:?}");
            }
        }
        for always in known::all().iter().filter(|known| known.requires.is_empty()) {
            assert!(!lacks(always, &[]), "nothing is needed");
        }
        eprintln!("{looked} APIs are absent here");
    }

    #[test]
    fn libraries_of_absent_apis_are_not_opened_and_unknown_ones_are() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let search = Search::new();
        let machine = Machine::new(&search, &[]);
        let absent = known::all().iter().find(|known| machine.lacks(known));
        // This machine may have all of them.
        let Some(Known { api, .. }) = absent else { return };
        written(folder.path(), api);
        written(folder.path(), "nobody_knows_this");
        std::fs::write(folder.path().join("libother.so"), "").expect("a file");
        let found = within(folder.path());
        let names = |of: &str| found.iter().filter(|c| c.api == of).cloned().collect::<Vec<_>>();
        let sorted = sort(&names(api), &[]).expect("nobody looks into it");
        assert_eq!((sorted.absent, sorted.present.len()), (vec![Cow::Borrowed(*api)], 0));
        let error = sort(&names("nobody_knows_this"), &[]).expect_err("it is none").to_string();
        assert!(error.contains("libhetrace_nobody_knows_this.so"), "{error}");
        assert_eq!(found.len(), 2);
    }
}
