//! What a killed drainer was writing: whether it is in its file.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::PathBuf;

use crate::layout::trace_folders;
use crate::output::TraceFolder;
use crate::stream_files::{Place, numbered};

/// The files of a trace, by their numbers in the file system: paths and bytes.
#[derive(Debug)]
pub(super) struct Found(HashMap<u64, (PathBuf, u64)>);

impl Found {
    /// Looks at the files of a trace, and of all its parts.
    pub fn in_trace(trace: &TraceFolder) -> Self {
        Found(trace_folders(trace.path()).iter().flat_map(|folder| numbered(folder)).collect())
    }

    /// Returns whether a packet is there. If half of it is, that is cut off: its records are still in their ring; `notes`
    /// has it where that fails. Where it is said to be stands in memory that the program can write, so it must be a file
    /// of its own, whose name begins so.
    pub fn has(&self, place: Place, own: &str, notes: &mut Vec<String>) -> bool {
        let Some((path, length)) = self.0.get(&place.file) else { return false };
        let is_own =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(own));
        if !is_own || *length <= place.begin {
            return false;
        }
        if *length >= place.end {
            return true;
        }
        let cut = OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(place.begin));
        if let Err(error) = cut {
            notes.push(format!(
                "{}: its last packet is not whole, and its records may be there twice: {error}",
                path.display()
            ));
        }
        false
    }
}
