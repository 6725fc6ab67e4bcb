//! What a killed drainer was writing: whether it is in its file.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::PathBuf;

use crate::output::{Place, TraceFolder, numbered};
use crate::recover::parts::trace_folders;

/// The files of a trace, by their numbers in the file system: paths and bytes.
#[derive(Debug)]
pub(super) struct Found(HashMap<u64, (PathBuf, u64)>);

impl Found {
    /// Looks at the files of a trace, and of all its parts.
    pub fn in_trace(trace: &TraceFolder) -> Self {
        Found(trace_folders(trace).iter().flat_map(|folder| numbered(folder)).collect())
    }

    /// Returns whether a packet is there. If half of it is, that is cut off: its records are still in their ring. Where it is
    /// said to be stands in memory that the program can write, so it must be a file of its own, whose name begins so.
    ///
    /// # Errors
    /// A note for the report, when half a packet stays.
    pub fn has(&self, place: Place, family: &str) -> Result<bool, String> {
        let Some((path, length)) = self.0.get(&place.file) else { return Ok(false) };
        let is_own =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(family));
        if !is_own || *length <= place.begin {
            return Ok(false);
        }
        if *length >= place.end {
            return Ok(true);
        }
        let cut = OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(place.begin));
        let note = |error| {
            format!(
                "{}: its last packet is not whole, and its records may be there twice: {error}",
                path.display()
            )
        };
        cut.map(|()| false).map_err(note)
    }
}
