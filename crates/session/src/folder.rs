//! The session's folder: shared memory that only its owner can reach.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// First part of every session folder's name.
const PREFIX: &str = "hetrace-";
/// The file that its launcher keeps locked.
const LOCK: &str = "lock";

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held locked for as long as the session lives.
    _lock: File,
}

impl Folder {
    /// Makes a folder for this process, and clears away those of launchers
    /// that were killed.
    ///
    /// # Errors
    /// When no memory file system lets us make one.
    pub fn make() -> io::Result<Folder> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for base in bases() {
            clear_stale(&base);
            match make_in(&base) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Memory file systems, best first; then whatever holds temporary files.
fn bases() -> Vec<PathBuf> {
    let mut bases = vec![PathBuf::from("/dev/shm")];
    bases.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    bases.push(std::env::temp_dir());
    bases
}

fn make_in(base: &Path) -> io::Result<Folder> {
    let (user, process) = (rustix::process::getuid().as_raw(), std::process::id());
    for attempt in 0..1000u32 {
        let path = base.join(format!("{PREFIX}{user}-{process}-{attempt}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                let lock =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(LOCK))?;
                lock.lock()?;
                return Ok(Folder { path, _lock: lock });
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes our own folders whose launcher is gone: nobody will read them.
fn clear_stale(base: &Path) {
    let user = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(&format!("{PREFIX}{user}-")) {
            continue;
        }
        let path = entry.path();
        let ours = fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir() && m.uid() == user);
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        if ours && lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}
