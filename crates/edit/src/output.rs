//! Files and folders that are there whole or not at all.
//!
//! Work goes into a hidden name beside the result, which is removed again if anything
//! goes wrong, and renamed in one step, over nothing, when all is on disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::Error;

/// A result in the making.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    scratch: PathBuf,
}

impl Output {
    /// Begins a result of this name.
    pub fn new(path: &Path) -> Result<Self, Error> {
        if path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: path.into() });
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        Ok(Self { path: path.into(), scratch: path.with_file_name(name) })
    }

    /// Returns where to work until it is finished.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Makes the file to work in.
    pub fn file(&self) -> Result<File, Error> {
        let made = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&self.scratch);
        made.map_err(Error::io(&self.scratch))
    }

    /// Makes the folder to work in.
    pub fn folder(&self) -> Result<(), Error> {
        fs::create_dir(&self.scratch).map_err(Error::io(&self.scratch))
    }

    /// All is written: gives it its name.
    pub fn finish(self) -> Result<(), Error> {
        let io = |path: &Path, source| Error::Io { path: path.into(), source };
        sync(&self.scratch).map_err(|e| io(&self.scratch, e))?;
        rename(&self.scratch, &self.path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists { path: self.path.clone() },
            _ => io(&self.path, error),
        })?;
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| io(folder, e))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After `finish` there is nothing of this name; else nobody would want it.
        let _ = match self.scratch.is_dir() {
            true => fs::remove_dir_all(&self.scratch),
            false => fs::remove_file(&self.scratch),
        };
    }
}

/// Removes a folder: whoever looks meanwhile sees all of it or nothing, and if that ends in the middle, what is left has a
/// hidden name.
pub(crate) fn remove_whole(folder: &Path) -> Result<(), Error> {
    let real = folder.canonicalize().map_err(Error::io(folder))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(real.file_name().unwrap_or_default());
    hidden.push(format!(".{}.old", std::process::id()));
    let hidden = real.with_file_name(hidden);
    rename(&real, &hidden).map_err(Error::io(folder))?;
    fs::remove_dir_all(&hidden).map_err(Error::io(&hidden))
}

/// A name for what is there, over nothing.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot promise it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        other => Ok(other?),
    }
}

/// Brings a file, or all of a folder, to disk.
fn sync(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten_or_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        let output = Output::new(&path).unwrap();
        let scratch = output.scratch().to_owned();
        output.file().unwrap();
        assert!(scratch.exists() && !path.exists());
        // Somebody else was faster.
        fs::write(&path, "theirs").unwrap();
        assert!(matches!(output.finish(), Err(Error::Exists { .. })));
        assert!(!scratch.exists());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert!(matches!(Output::new(&path), Err(Error::Exists { .. })));

        let path = folder.path().join("folder");
        let output = Output::new(&path).unwrap();
        output.folder().unwrap();
        fs::write(output.scratch().join("file"), "x").unwrap();
        output.finish().unwrap();
        assert!(path.join("file").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
