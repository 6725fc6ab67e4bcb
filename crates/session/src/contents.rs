//! Contents that programs store on request: from the session's folder, which is memory, into
//! the trace.
//!
//! Programs write that folder. What lies there under a content's name is believed to be one
//! only if it is a plain file of a sensible size.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hetrace_format::files;
use hetrace_ring::abi::BLOB_PREFIX;

use crate::access::Access;
use crate::drain::Drainer;

/// Bytes moved at a time while the program runs.
const PORTION: u64 = 256 << 20;
/// No content has more; one that says so is a trap.
const LARGEST: u64 = 4 << 30;
/// Names given as examples.
const EXAMPLES: usize = 3;

/// What is moved, and what could not be.
#[derive(Debug)]
pub struct Contents {
    session: PathBuf,
    blobs: PathBuf,
    access: Access,
    /// Names of contents that are none.
    odd: BTreeSet<String>,
    /// What the system said last.
    refused: Option<io::Error>,
}

impl Contents {
    /// From a session's folder into a trace's.
    pub fn new(session: &Path, trace: &Path, access: Access) -> Self {
        let (session, blobs) = (session.to_owned(), trace.join(files::BLOBS));
        Contents { session, blobs, access, odd: BTreeSet::new(), refused: None }
    }

    /// Moves them into another trace's folder from now on.
    pub fn go_on(&mut self, trace: &Path) {
        self.blobs = trace.join(files::BLOBS);
    }

    /// Moves some that are complete: as long as the program says.
    pub fn move_some(&mut self, drainer: &Drainer) {
        self.take(drainer, false);
    }

    /// Moves all, also what a killed program has stored and not reported.
    pub fn move_all(&mut self, drainer: &Drainer) {
        self.take(drainer, true);
    }

    fn take(&mut self, drainer: &Drainer, all: bool) {
        let mut moved = 0;
        let Ok(entries) = fs::read_dir(&self.session) else { return };
        for entry in entries.flatten() {
            let file = entry.file_name();
            let Some(name) = file.to_str().and_then(|n| n.strip_prefix(BLOB_PREFIX)) else { continue };
            // Its own metadata, not those of what a link leads to.
            let Ok(found) = entry.metadata() else { continue };
            let hash = files::blob_hash(name);
            let Some(hash) = hash.filter(|_| found.is_file() && found.len() <= LARGEST) else {
                self.odd.insert(file.to_string_lossy().into_owned());
                continue;
            };
            let said = drainer.content(hash);
            if !all && said != Some(found.len()) {
                continue;
            }
            match self.one(&entry.path(), name) {
                Ok(bytes) => moved += bytes,
                // What can't be moved now is tried again, and reported at the end.
                Err(error) => self.refused = Some(error),
            }
            if moved >= PORTION && !all {
                break;
            }
        }
    }

    /// Moves one. Returns its size.
    fn one(&self, from: &Path, name: &str) -> io::Result<u64> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let source = OpenOptions::new().read(true).custom_flags(flags).open(from)?;
        let found = source.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other(format!("{}: not a regular file", from.display())));
        }
        self.access.need_folder(&self.blobs)?;
        let (size, target) = (found.len(), self.blobs.join(name));
        // The same content may have come before, and this one be cut short.
        if fs::metadata(&target).map_or(0, |m| m.len()) < size || size == 0 {
            let part = self.blobs.join(format!("{name}.part"));
            let _ = fs::remove_file(&part);
            let mut to: File = self.access.make_file(&part)?;
            let copied = io::copy(&mut source.take(size), &mut to);
            if let Err(error) = copied.and_then(|_| fs::rename(&part, target)) {
                let _ = fs::remove_file(part);
                return Err(error);
            }
        }
        fs::remove_file(from)?;
        Ok(size)
    }

    /// Returns what the report must say.
    pub fn notes(&self, drainer: &Drainer) -> Vec<String> {
        let there = |hash: &u64, size: u64| {
            fs::metadata(self.blobs.join(files::blob(*hash))).is_ok_and(|m| m.len() == size)
        };
        let missing = drainer.contents().filter(|(hash, size)| !there(hash, *size)).count();
        let mut notes = Vec::new();
        if missing > 0 {
            let why = match &self.refused {
                Some(error) => error.to_string(),
                None => "the file system in memory may have been full".to_owned(),
            };
            notes.push(format!("{missing} stored contents are missing or incomplete ({why})"));
        }
        if !self.odd.is_empty() {
            let names: Vec<&str> = self.odd.iter().take(EXAMPLES).map(|n| &**n).collect();
            let more = if self.odd.len() > names.len() { ", …" } else { "" };
            notes.push(format!(
                "{} entries of the session's folder have names of stored contents and are none (no plain \
                 files, or too large); they were left out: {}{more}",
                self.odd.len(),
                names.join(", ")
            ));
        }
        notes
    }
}
