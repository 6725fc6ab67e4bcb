//! The folder in shared memory that programs join when they begin dormant. It outlives sessions and services: programs
//! have its control file mapped.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hetrace_ctf::account::Checksum;
use hetrace_ring::abi::{ABI_VERSION, MAX_FUNCTIONS};

use super::protocol::SOCKET;
use crate::apis::Found;
use crate::control::Control;
use crate::folder::{self, STANDING};
use crate::run::RunOptions;
use crate::settings;

/// Data bytes up to which rings grow.
const RING_BYTES: u32 = 1 << 20;

/// The folder, owned by its lock.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    _lock: File,
}

impl Held {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody answers there any more.
    pub fn forget_socket(&self) {
        let _ = fs::remove_file(self.path.join(SOCKET));
    }
}

/// Returns the folder's path for these libraries: programs with others have another folder, as functions have other
/// numbers there.
///
/// # Errors
/// When this user's folder for sessions can't be had.
pub fn path(libraries: &[Found]) -> io::Result<PathBuf> {
    let mut build = String::new();
    for library in libraries {
        build.push_str(&format!("{}:{:x};", library.api, library.mark.0));
    }
    let Checksum(build) = Checksum::of(build.as_bytes());
    Ok(folder::fixed_parent()?.join(format!("{STANDING}{ABI_VERSION}-{build:016x}")))
}

/// Returns the folder, made if need be.
///
/// # Errors
/// When it can't be had.
pub fn make(libraries: &[Found]) -> io::Result<PathBuf> {
    let path = path(libraries)?;
    let options = RunOptions { ring_bytes: RING_BYTES, ..RunOptions::default() };
    let apis = libraries.iter().map(|l| (l.api.clone(), vec![0; MAX_FUNCTIONS])).collect();
    folder::make_standing(&path, |fresh| Control::make_standby(fresh, &settings::settings(&options, apis)))?;
    Ok(path)
}

/// Returns the folders of other builds, in which programs may be dormant that this build can't record.
pub fn others(own: &Path) -> Vec<PathBuf> {
    let entries = own.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let is_standby =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(STANDING));
    entries.map(|entry| entry.path()).filter(|path| path != own && is_standby(path)).collect()
}

pub(super) fn hold(path: &Path) -> io::Result<Option<Held>> {
    Ok(folder::lock_standing(path)?.map(|lock| Held { path: path.to_owned(), _lock: lock }))
}
