//! The files of a trace's streams, of which only so many are open at a time.
//!
//! There is a stream for each thread that records, and a program may have more threads than
//! this process may have open files. So a file that was not written to for longest is closed,
//! and opened again for its next packet.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hetrace_format::files::{BLOBS, METADATA, MODELS, OWN};
use hetrace_os::Room;

use crate::access::Access;

/// Most files open at a time.
const MOST: usize = 128;
/// Share of the files that this process may open.
const SHARE: u64 = 4;
/// Files of one name: process ids come again.
const NAMESAKES: u32 = 10_000;

/// What the system refused to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why, in the system's words.
    pub why: String,
    /// How many bytes.
    pub bytes: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of packets could not be written: {}", self.bytes, self.why)
    }
}

/// Where a packet is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the file in its file system, never 0.
    pub file: u64,
    /// Bytes of the file before the packet, and with it.
    pub begin: u64,
    /// See [`Place::begin`].
    pub end: u64,
}

/// Learns of a packet before it is written.
pub type Before<'a> = &'a mut dyn FnMut(Place);

/// Returns the files right in a folder: number, path, bytes.
pub fn numbered(folder: &Path) -> impl Iterator<Item = (u64, (PathBuf, u64))> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    found.filter_map(|entry| {
        let file = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((file.ino(), (entry.path(), file.len())))
    })
}

/// Open files, and what could not be written.
#[derive(Debug, Default)]
pub struct Files(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The one written to last stands at the end.
    open: Vec<(u64, Arc<File>)>,
    made: u64,
    most: Option<usize>,
    /// By what the system says.
    refused: BTreeMap<String, Refused>,
    /// Bytes that may be on disk, and that are.
    budget: Option<u64>,
    used: u64,
    /// Those of them that are beside the streams, when they were looked at last.
    beside: u64,
    /// Something did not fit: smaller packets that would are not written, so that it does not depend on their sizes
    /// what is there.
    is_full: bool,
}

impl State {
    fn keep(&mut self, number: u64, file: Arc<File>) {
        let most = *self.most.get_or_insert_with(most);
        if self.open.len() >= most {
            self.open.remove(0);
        }
        self.open.push((number, file));
    }
}

/// Returns how many files may be open.
fn most() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = limit.map_or(u64::MAX, |limit| limit / SHARE);
    usize::try_from(share).unwrap_or(MOST).clamp(1, MOST)
}

impl Files {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Books that a packet was not written.
    pub fn refuse(&self, error: &io::Error, bytes: u64) {
        let mut state = self.state();
        let why = error.to_string();
        let known = state.refused.entry(why.clone());
        known.or_insert_with(|| Refused { why, bytes: 0 }).bytes += bytes;
    }

    /// Returns those that may take so many bytes.
    pub fn limited(budget: Option<u64>) -> Self {
        Files(Mutex::new(State { budget, ..State::default() }))
    }

    /// Takes bytes of the budget.
    ///
    /// # Errors
    /// When there are not so many left.
    pub fn take(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        let Some(budget) = state.budget else { return Ok(()) };
        if state.is_full || state.used.saturating_add(bytes) > budget {
            state.is_full = true;
            return Err(io::Error::other(format!(
                "the disk budget of {budget} bytes is used up (--max-disk)"
            )));
        }
        state.used += bytes;
        Ok(())
    }

    /// Takes bytes of the budget that are on disk already.
    pub fn charge(&self, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_add(bytes);
    }

    /// Counts what is beside the streams of a trace, if there is a budget.
    pub fn weigh(&self, folder: &Path) {
        if self.state().budget.is_none() {
            return;
        }
        let beside = [METADATA, OWN, MODELS, BLOBS].map(|name| size(&folder.join(name))).into_iter().sum();
        let mut state = self.state();
        let before = std::mem::replace(&mut state.beside, beside);
        state.used = state.used.saturating_sub(before).saturating_add(beside);
    }

    /// Closes the file of a stream, to which nothing is written any more: it may be removed.
    pub fn close(&self, stream: &StreamFile) {
        self.state().open.retain(|(number, _)| *number != stream.number);
    }

    /// Returns whether more is used than there may be.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.budget.is_some_and(|budget| state.used > budget)
    }

    /// Gives back bytes of the budget: they are on disk no more.
    pub fn give_back(&self, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(bytes);
        state.is_full = false;
    }

    /// Returns what was not written so far, by reason.
    pub fn refused(&self) -> Vec<Refused> {
        self.state().refused.values().cloned().collect()
    }

    /// Makes the file of a stream, under the first name that is free.
    pub fn create(&self, folder: &Path, name: &str, suffix: &str, access: Access) -> io::Result<StreamFile> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for n in 0..NAMESAKES {
            // A process id that came again: its first streams have the plain name.
            let again = if n == 0 { String::new() } else { format!("-again-{n}") };
            let name = format!("{name}{again}");
            let path = folder.join(format!("{name}{suffix}"));
            match self.retried(|| access.make_file(&path)) {
                Ok(file) => return self.made(path, name, file),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => last = e,
                Err(e) => return Err(e),
            }
        }
        Err(last)
    }

    /// Makes the file of a stream, whose name is free.
    pub fn create_once(
        &self,
        folder: &Path,
        name: &str,
        suffix: &str,
        access: Access,
    ) -> io::Result<StreamFile> {
        let path = folder.join(format!("{name}{suffix}"));
        let file = self.retried(|| access.make_file(&path))?;
        self.made(path, name.to_owned(), file)
    }

    fn made(&self, path: PathBuf, name: String, file: File) -> io::Result<StreamFile> {
        let inode = file.metadata()?.ino();
        let mut state = self.state();
        state.made += 1;
        let number = state.made;
        state.keep(number, Arc::new(file));
        Ok(StreamFile { path, name, number, inode, length: 0 })
    }

    /// Does something that opens a file. If that is refused for the number of open files, it
    /// is tried once more with none of ours.
    fn retried(&self, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
        match open() {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                let mut state = self.state();
                let half = state.open.len().div_ceil(2);
                state.most = Some(half.max(1));
                state.open.clear();
                drop(state);
                open()
            }
            result => result,
        }
    }

    fn open(&self, stream: &StreamFile) -> io::Result<Arc<File>> {
        let mut state = self.state();
        if let Some(at) = state.open.iter().position(|(number, _)| *number == stream.number) {
            let found = state.open.remove(at);
            let file = Arc::clone(&found.1);
            state.open.push(found);
            return Ok(file);
        }
        drop(state);
        let open = || {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            OpenOptions::new().write(true).custom_flags(flags).open(&stream.path)
        };
        let file = Arc::new(self.retried(open)?);
        self.state().keep(stream.number, Arc::clone(&file));
        Ok(file)
    }
}

/// For the operating system's events of a run that is not divided.
impl Room for Files {
    fn take(&self, _part: u32, bytes: u64) -> io::Result<()> {
        Files::take(self, bytes)
    }

    fn charge(&self, _part: u32, bytes: u64) {
        Files::charge(self, bytes);
    }

    fn give_back(&self, _part: u32, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_sub(bytes);
    }

    fn make(&self) -> bool {
        false
    }
}

/// Returns the bytes of a file, or of those right in a folder.
fn size(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => {
            let found = entries.flatten().filter_map(|entry| entry.metadata().ok());
            found.filter(std::fs::Metadata::is_file).map(|found| found.len()).sum()
        }
        Err(_) => std::fs::metadata(path).map_or(0, |found| found.len()),
    }
}

/// One stream's file.
#[derive(Debug)]
pub struct StreamFile {
    path: PathBuf,
    name: String,
    number: u64,
    inode: u64,
    /// Bytes of whole packets.
    length: u64,
}

impl StreamFile {
    /// Returns the file's name, without what is added for compression.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder has another name.
    pub fn moved(&mut self, folder: &Path) {
        if let Some(name) = self.path.file_name() {
            self.path = folder.join(name);
        }
    }

    /// Appends all or nothing: half a packet would hide all that follow it.
    pub fn append(&mut self, files: &Files, bytes: &[u8], before: Before<'_>) -> io::Result<u64> {
        files.take(bytes.len() as u64)?;
        let done = self.put(files, bytes, before);
        if done.is_err() {
            let mut state = files.state();
            state.used = state.used.saturating_sub(bytes.len() as u64);
        }
        done
    }

    /// The same whatever the budget is, of which these bytes are.
    pub fn append_anyway(&mut self, files: &Files, bytes: &[u8], before: Before<'_>) -> io::Result<u64> {
        let done = self.put(files, bytes, before)?;
        files.charge(done);
        Ok(done)
    }

    fn put(&mut self, files: &Files, bytes: &[u8], before: Before<'_>) -> io::Result<u64> {
        let file = files.open(self)?;
        let found = file.metadata()?;
        if found.nlink() == 0 || found.ino() != self.inode {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the stream's file was removed"));
        }
        if found.len() > self.length {
            // What could not be taken back when a packet did not fit.
            file.set_len(self.length)?;
        }
        before(Place { file: self.inode, begin: self.length, end: self.length + bytes.len() as u64 });
        match file.write_all_at(bytes, self.length) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(bytes.len() as u64)
            }
            Err(error) => {
                file.set_len(self.length)?;
                Err(error)
            }
        }
    }
}
