//! The folder of a trace: a name that the user chose, or the next free number.

use std::io;
use std::path::{Path, PathBuf};

use crate::access::Access;

/// Numbers tried.
const MOST: u32 = 100_000;

/// Where a trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There; nothing may be there yet.
    Named(PathBuf),
    /// There with the first of `-1`, `-2`, … that is free.
    Numbered(PathBuf),
}

impl Default for Place {
    fn default() -> Self {
        Place::Numbered("hetrace".into())
    }
}

impl Place {
    /// Returns the path, as far as it is known.
    pub fn path(&self) -> &Path {
        match self {
            Place::Named(path) | Place::Numbered(path) => path,
        }
    }

    /// Makes the folder. Of several runs that want the same, each number goes to one: making it
    /// is what decides.
    ///
    /// # Errors
    /// When it is there, or the system refuses.
    pub fn make(&self, access: Access) -> io::Result<PathBuf> {
        let stem = match self {
            Place::Named(path) => return access.make_folder(path).map(|()| path.clone()),
            Place::Numbered(stem) => stem,
        };
        for n in 1..MOST {
            let mut name = stem.clone().into_os_string();
            name.push(format!("-{n}"));
            let path = PathBuf::from(name);
            match access.make_folder(&path) {
                Ok(()) => return Ok(path),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free number; choose a name with -o"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_get_a_number_each() {
        let scratch = tempfile::tempdir().unwrap();
        let place = Place::Numbered(scratch.path().join("t"));
        let make = || place.make(Access::Owner).unwrap();
        let mut made: Vec<PathBuf> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        });
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 16);
        let named = Place::Named(scratch.path().join("t-1"));
        assert_eq!(named.make(Access::Owner).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
