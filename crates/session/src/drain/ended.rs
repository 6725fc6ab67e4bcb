//! Processes that have ended, as far as they are asked about when the trace is finished.
//!
//! A session may see any number of processes come and go, so what is known of each is kept in a file ([`Rows`]). In
//! memory remain its id and start, by which a process that became another program is one still.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use hetrace_ctf::account::StreamAccount;

use super::image::Image;
use crate::devices::Devices;
use crate::manifest::{DeviceClock, Process};

/// Rows that are kept in memory until they are written together.
const TOGETHER: usize = 64;

/// Rows that are asked for once, at the end.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    /// Those that are not in the file.
    recent: Vec<T>,
    /// JSON, a line for each of the others. It has no name: it is gone with this process.
    file: Option<File>,
    /// Bytes of it that are whole lines.
    length: u64,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { recent: Vec::new(), file: None, length: 0 }
    }
}

impl<T: Clone + Serialize + DeserializeOwned> Rows<T> {
    /// Adds rows. They go into a file in this folder; while that can't be they are kept in memory.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = T>, folder: &Path) {
        for row in rows {
            self.recent.push(row);
            if self.recent.len().is_multiple_of(TOGETHER) && self.store(folder).is_ok() {
                self.recent = Vec::new();
            }
        }
    }

    /// Writes what is in memory behind the rest. What was written in part is written over the next time.
    fn store(&mut self, folder: &Path) -> io::Result<()> {
        let mut lines = Vec::new();
        for row in &self.recent {
            serde_json::to_writer(&mut lines, row)?;
            lines.write_all(b"\n")?;
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all_at(&lines, self.length)?;
        self.length += lines.len() as u64;
        Ok(())
    }

    /// All rows, in the order in which they were added.
    pub fn all(&self) -> io::Result<Vec<T>> {
        let mut rows = Vec::new();
        if let Some(file) = &self.file {
            let mut lines = vec![0; usize::try_from(self.length).map_err(io::Error::other)?];
            file.read_exact_at(&mut lines, 0)?;
            for row in serde_json::Deserializer::from_slice(&lines).into_iter() {
                rows.push(row?);
            }
        }
        rows.extend_from_slice(&self.recent);
        Ok(rows)
    }
}

/// What is known of processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Stream files that are finished.
    pub accounts: Rows<StreamAccount>,
    processes: Rows<Process>,
    clocks: Rows<DeviceClock>,
    /// Ids and starts of those processes.
    starts: HashSet<(u32, u64)>,
    /// How many images had a process id so far.
    generations: HashMap<u32, u64>,
    /// Contents that they stored, and their sizes.
    pub contents: HashMap<u64, u64>,
    /// Commands without a record.
    pub lost: u64,
    /// Commands whose call is not known, though they say that there is one.
    pub without_call: u64,
}

impl Ended {
    /// One more image of a process id; returns how many there were before.
    pub fn generation(&mut self, pid: u32) -> u64 {
        let made = self.generations.entry(pid).or_default();
        *made += 1;
        *made - 1
    }

    /// An image has ended, with all that it recorded.
    pub(super) fn image(&mut self, image: &Image, folder: &Path) {
        // A process that became another program is one still.
        if image.recorded && self.starts.insert((image.key.0, image.key.1)) {
            self.processes.extend([process(image)], folder);
        }
    }

    /// A process's devices are done with.
    pub fn devices(&mut self, devices: &Devices, folder: &Path) {
        self.clocks.extend(devices.reports(), folder);
        self.contents.extend(devices.contents().iter().map(|(hash, size)| (*hash, *size)));
        self.lost = self.lost.saturating_add(devices.lost());
        self.without_call = self.without_call.saturating_add(devices.without_call());
    }

    /// Processes that recorded: those that have ended, and of these images the ones that live.
    pub(super) fn processes<'i>(&self, living: impl Iterator<Item = &'i Image>) -> io::Result<Vec<Process>> {
        let mut processes = self.processes.all()?;
        let mut starts = HashSet::new();
        for image in living.filter(|image| image.recorded) {
            let start = (image.key.0, image.key.1);
            if !self.starts.contains(&start) && starts.insert(start) {
                processes.push(process(image));
            }
        }
        Ok(processes)
    }

    /// How well the clocks of devices are known, of those of processes that have ended.
    pub fn clocks(&self) -> io::Result<Vec<DeviceClock>> {
        self.clocks.all()
    }
}

fn process(image: &Image) -> Process {
    Process {
        pid: image.pid.into(),
        parent: Some(image.parent.into()),
        command: image.command.clone(),
        job: image.job.clone(),
        host: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        for count in [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 5 * TOGETHER + 7] {
            let mut rows = Rows::default();
            rows.extend((0..count).map(|n| (n, format!("row {n}\n"))), folder.path());
            assert_eq!(rows.recent.len(), count % TOGETHER);
            let all = rows.all().unwrap();
            assert!(all.into_iter().eq((0..count).map(|n| (n, format!("row {n}\n")))), "{count}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the files have no names");
    }

    #[test]
    fn rows_that_can_not_be_written_stay_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let mut rows = Rows::default();
        rows.extend(0..3 * TOGETHER, &missing);
        assert_eq!(rows.recent.len(), 3 * TOGETHER);
        std::fs::create_dir(&missing).unwrap();
        rows.extend(3 * TOGETHER..4 * TOGETHER + 1, &missing);
        assert_eq!(rows.recent.len(), 1);
        assert!(rows.all().unwrap().into_iter().eq(0..4 * TOGETHER + 1));
    }
}
