//! The arenas of a session: found, opened, and known to be in use or not.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hetrace_ring::reader::{Arena, Ring, RingError};
use hetrace_ring::{MapError, note};
use rustix::fs::FlockOperation;

use super::plausible;

/// Calls of a process that it could not record, and attempts to get memory for its threads that failed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unrecorded {
    pub calls: u64,
    pub failed: u64,
}

/// An arena that the drainer has opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// Number by which its rings name it.
    pub number: u32,
    /// Its image.
    pub image: usize,
    pub api: usize,
    pub arena: Arena,
    pub file: File,
    path: PathBuf,
    /// Directory entries looked at.
    looked: usize,
    /// Those of them that were not complete, or could not be opened.
    open: Vec<usize>,
    /// Rings that can't be read, and why: the last of the reasons.
    pub unread: Option<String>,
}

impl Opened {
    pub fn new(number: u32, image: usize, api: usize, arena: Arena, file: File, path: PathBuf) -> Self {
        Opened { number, image, api, arena, file, path, looked: 0, open: Vec::new(), unread: None }
    }

    /// Returns the file's name.
    pub fn name(&self) -> Option<OsString> {
        self.path.file_name().map(OsString::from)
    }

    /// Opens rings that were made since.
    pub fn fresh(&mut self) -> Vec<Ring> {
        let (made, mut rings) = (self.arena.rings(), Vec::new());
        let numbers: Vec<usize> =
            std::mem::take(&mut self.open).into_iter().chain(self.looked..made).collect();
        self.looked = self.looked.max(made);
        self.unread = None;
        for number in numbers {
            match self.arena.ring(&self.file, number) {
                Ok(Some(ring)) => rings.push(ring),
                Ok(None) => self.open.push(number),
                Err(error) => {
                    self.open.push(number);
                    self.unread = Some(describe(&error));
                }
            }
        }
        rings
    }

    /// Returns whether some task can still write here: its maker's address space is there. Certain,
    /// where the file system has locks; else by the process's id.
    pub fn is_alive(&self, pid: u32) -> bool {
        let header = self.arena.header();
        if header.locked == 0 {
            return alive(pid);
        }
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
                false
            }
            // Somebody else's program may have locked it, too: then it stays until the end.
            Err(error) => error == rustix::io::Errno::WOULDBLOCK || alive(pid),
        }
    }

    /// Bytes of memory that it takes, as the file system says: what the program says may be noise, and others would have
    /// less for it.
    pub fn used(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.blocks().saturating_mul(512))
    }

    /// What is lost of it besides records, since earlier traces; none if it was overwritten.
    pub fn unrecorded(&self) -> Option<Unrecorded> {
        let header = self.arena.header();
        let calls = plausible(header.calls_without_ring.load(Ordering::Relaxed))?;
        let failed = plausible(header.rings_failed.load(Ordering::Relaxed).into())?;
        let before = header.calls_counted.load(Ordering::Relaxed);
        let failed_before = header.failed_counted.load(Ordering::Relaxed).into();
        Some(Unrecorded { calls: calls.checked_sub(before)?, failed: failed.checked_sub(failed_before)? })
    }

    /// What was lost until now, and what was said, is of earlier traces.
    pub fn forget(&self) {
        let header = self.arena.header();
        let (calls, failed) = (&header.calls_without_ring, &header.rings_failed);
        header.calls_counted.store(calls.load(Ordering::Relaxed), Ordering::Relaxed);
        header.failed_counted.store(failed.load(Ordering::Relaxed), Ordering::Relaxed);
        note::forget(&header.notes, self.arena.notes());
    }

    /// What it left for the report.
    pub fn notes(&self) -> note::Found {
        note::read(&self.arena.header().notes, self.arena.notes())
    }

    /// Removes the file.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens an arena's file: a plain file of our own, whatever its name says.
pub(super) fn open(path: &Path) -> Result<(File, Arena), RingError> {
    let os = |e| RingError::Map(MapError::Os(e));
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(os)?;
    let metadata = file.metadata().map_err(os)?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(os(io::Error::other("not a file of this user")));
    }
    let arena = Arena::open(&file)?;
    Ok((file, arena))
}

/// Returns why an arena or a ring can't be read, for people.
pub(super) fn describe(error: &RingError) -> String {
    match error {
        RingError::Map(MapError::Os(error)) => error.to_string(),
        RingError::Map(MapError::Size(_)) => "the file is too short".to_owned(),
        RingError::Magic(_) => "the file is incomplete".to_owned(),
        RingError::Version(version) => format!("unsupported version {version}"),
        RingError::Size(_) => "invalid sizes".to_owned(),
    }
}

/// Returns whether a process is there and not merely waiting to be buried.
fn alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes().first().copied());
    !matches!(state.flatten(), None | Some(b'Z' | b'X'))
}
