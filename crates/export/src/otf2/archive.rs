//! An archive: the folder, its files, and what they have in common.
//!
//! ```text
//! OUT/traces.otf2        the anchor: sizes of chunks, counts, properties; written last
//! OUT/traces.def         definitions
//! OUT/traces/0.evt …     events of each location
//! OUT/traces/0.def …     definitions of its own: none
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::definitions::{Definitions, LocationKind};
use super::encode::Encode;
use super::file::{ChunkedFile, DEFINITION_CHUNK, EVENT_CHUNK};
use crate::Error;

/// A location's bytes go out when so many wait.
const WAITING: usize = 64 << 10;
/// All go out when they hold so much memory, in bytes.
const MEMORY: usize = 64 << 20;

/// The version of the anchor file, of the trace, and of the library that writes the same.
const ANCHOR_FORMAT: u8 = 3;
const TRACE_FORMAT: u8 = 2;
const LIBRARY: [u8; 3] = [3, 0, 2];
/// Plain files without compression.
const SUBSTRATE: u8 = 1;
const COMPRESSION: u8 = 1;

/// What is written of a location.
#[derive(Debug)]
struct Location {
    name: String,
    kind: LocationKind,
    group: u32,
    file: ChunkedFile,
}

/// What stands in the anchor file for people.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub machine: String,
    pub creator: String,
    pub description: String,
    /// Names as `A::B` in capitals, digits and `_`.
    pub properties: Vec<(String, String)>,
    /// The same for no other archive.
    pub id: u64,
}

/// An archive that is being written. What has been written vanishes with it, unless it was
/// finished.
#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
    /// Whether the folder was made for it.
    made: bool,
    finished: bool,
    pub definitions: Definitions,
    locations: Vec<Location>,
    /// Memory of all locations' files.
    memory: usize,
    /// Times of the first and the last event.
    span: Option<(u64, u64)>,
    /// Events whose times were before those of the events before.
    moved: u64,
}

impl Archive {
    /// Makes the folder; one that is there must not have an archive.
    ///
    /// # Errors
    /// Those of the system, and when there is an archive.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let made = !folder.exists();
        fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
        for name in ["traces.otf2", "traces.def", "traces"] {
            let path = folder.join(name);
            if path.exists() {
                return Err(failed(&path, io::Error::from(io::ErrorKind::AlreadyExists)));
            }
        }
        let archive = Self {
            folder: folder.to_owned(),
            made,
            finished: false,
            definitions: Definitions::default(),
            locations: Vec::new(),
            memory: 0,
            span: None,
            moved: 0,
        };
        let events = archive.events();
        fs::create_dir(&events).map_err(|e| failed(&events, e))?;
        Ok(archive)
    }

    fn events(&self) -> PathBuf {
        self.folder.join("traces")
    }

    /// A new location; its name may be set later.
    pub fn location(&mut self, name: &str, kind: LocationKind, group: u32) -> u32 {
        let id = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let file = ChunkedFile::new(self.events().join(format!("{id}.evt")), EVENT_CHUNK);
        self.memory += file.memory();
        self.locations.push(Location { name: name.to_owned(), kind, group, file });
        id
    }

    /// Names a location.
    pub fn rename(&mut self, location: u32, name: String) {
        if let Some(location) = self.locations.get_mut(location as usize) {
            location.name = name;
        }
    }

    /// When the last event of a location was; 0 if it has none.
    pub fn time_of(&self, location: u32) -> u64 {
        self.locations.get(location as usize).map_or(0, |l| l.file.time())
    }

    /// Adds an event to a location. Time does not run backwards there: what is too early is
    /// at the time of the event before it.
    ///
    /// # Errors
    /// Those of the system.
    #[inline]
    pub fn event(&mut self, location: u32, time: u64, record: &[u8]) -> Result<(), Error> {
        let Some(place) = self.locations.get_mut(location as usize) else { return Ok(()) };
        let file = &mut place.file;
        self.moved += u64::from(time < file.time());
        let before = file.memory();
        file.event(time, record);
        let time = file.time();
        let (first, last) = self.span.get_or_insert((time, time));
        (*first, *last) = (time.min(*first), time.max(*last));
        self.memory = self.memory.saturating_sub(before).saturating_add(file.memory());
        if file.waiting() >= WAITING || self.memory > MEMORY { self.send(location) } else { Ok(()) }
    }

    #[cold]
    fn send(&mut self, location: u32) -> Result<(), Error> {
        if let Some(Location { file, .. }) = self.locations.get_mut(location as usize) {
            file.flush(false).map_err(|e| failed(file.path(), e))?;
        }
        if self.memory > MEMORY {
            let some = |l: &&mut Location| l.file.waiting() > 0;
            for Location { file, .. } in self.locations.iter_mut().filter(some) {
                file.flush(true).map_err(|e| failed(file.path(), e))?;
            }
            self.memory = 0;
        }
        Ok(())
    }

    /// Times of the first and the last event.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Events that were too early.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// How many locations there are.
    pub fn locations(&self) -> u64 {
        self.locations.len() as u64
    }

    /// Writes the rest: events, definitions and bytes in all.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(mut self, about: &About) -> Result<(u64, u64, u64), Error> {
        let (mut events, mut bytes) = (0, 0);
        for location in &mut self.locations {
            let Location { name, kind, group, file } = location;
            events += file.events();
            bytes += file.finish().map_err(|e| failed(file.path(), e))?;
            let mut own = ChunkedFile::new(file.path().with_extension("def"), DEFINITION_CHUNK);
            bytes += own.finish().map_err(|e| failed(own.path(), e))?;
            self.definitions.location(name, *kind, file.events(), *group);
        }
        let mut file = ChunkedFile::new(self.folder.join("traces.def"), DEFINITION_CHUNK);
        for record in self.definitions.records() {
            file.definition(record);
        }
        bytes += file.finish().map_err(|e| failed(file.path(), e))?;
        let anchor = anchor(about, self.locations(), self.definitions.count());
        let path = self.folder.join("traces.otf2");
        fs::write(&path, &anchor).map_err(|e| failed(&path, e))?;
        self.finished = true;
        Ok((events, self.definitions.count(), bytes + anchor.len() as u64))
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // Half an archive is of no use; what cannot be removed stays.
        let _ = fs::remove_dir_all(self.events());
        for name in ["traces.def", "traces.otf2"] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        if self.made {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

/// The bytes of the anchor file.
fn anchor(about: &About, locations: u64, definitions: u64) -> Vec<u8> {
    let mut out = vec![3, 0x42];
    out.text("OTF2");
    out.extend([ANCHOR_FORMAT, TRACE_FORMAT]);
    out.extend(LIBRARY);
    out.full_u64(EVENT_CHUNK);
    out.full_u64(DEFINITION_CHUNK);
    out.extend([SUBSTRATE, COMPRESSION]);
    out.full_u64(locations);
    out.full_u64(definitions);
    out.text(&about.machine);
    out.text(&about.creator);
    out.text(&about.description);
    out.full_u32(u32::try_from(about.properties.len()).unwrap_or(u32::MAX));
    for (name, value) in &about.properties {
        out.text(name);
        out.text(value);
    }
    out.full_u64(about.id);
    // Neither snapshots nor thumbnails.
    out.full_u32(0);
    out.full_u32(0);
    out.extend([2, 1, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the OTF2 library 3.0.2 wrote; its chunks had other sizes.
    #[test]
    fn the_anchor_is_that_of_the_library() {
        let about = About {
            machine: "mach".to_owned(),
            creator: "crea".to_owned(),
            description: "desc".to_owned(),
            properties: vec![("HETRACE::LOST_EVENTS".to_owned(), "17".to_owned())],
            id: 0xcdb6_bb23_7db7_3eac,
        };
        let expected = [
            &b"\x03\x42OTF2\0\x03\x02\x03\x00\x02"[..],
            b"\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x01\x01",
            b"\x02\x00\x00\x00\x00\x00\x00\x00\x21\x00\x00\x00\x00\x00\x00\x00",
            b"mach\0crea\0desc\0\x01\x00\x00\x00HETRACE::LOST_EVENTS\x0017\0",
            b"\xac\x3e\xb7\x7d\x23\xbb\xb6\xcd\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00",
        ]
        .concat();
        assert_eq!(anchor(&about, 2, 0x21), expected);
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("archive");
        let mut archive = Archive::new(&out).unwrap();
        let location = archive.location("l", LocationKind::Thread, 0);
        for time in 0..20_000 {
            archive.event(location, time, &[12, 0]).unwrap();
        }
        assert!(out.join("traces/0.evt").exists(), "some of it has gone out");
        drop(archive);
        assert!(!out.exists());
    }

    #[test]
    fn an_archive_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        Archive::new(folder.path()).unwrap().finish(&About::default()).unwrap();
        let error = Archive::new(folder.path()).unwrap_err().to_string();
        assert!(error.contains("traces.otf2") && error.contains("exists"), "{error}");
        assert!(folder.path().join("traces.otf2").exists());
    }
}
