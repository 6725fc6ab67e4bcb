//! Where an export goes: beside its place first, into it when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hetrace_export::Error;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// A place that is free. What was not kept is removed at the end.
pub struct Place {
    output: PathBuf,
    /// What is written until all is there: a hidden neighbour, so that renaming
    /// moves no bytes.
    partial: PathBuf,
    shared: bool,
}

impl Place {
    /// Returns a place at `output`; if it is shared, in the folder that may be there.
    ///
    /// # Errors
    /// When something is there already, or it has no name.
    pub fn new(output: &Path, shared: bool) -> Result<Self> {
        let Some(name) = output.file_name() else {
            bail!("{}: not the name of a file or folder; choose one with -o", output.display());
        };
        let there = fs::symlink_metadata(output);
        if there.is_ok() && !(shared && output.is_dir()) {
            return Err(taken(output));
        }
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".partial-{}", std::process::id()));
        Ok(Self { output: output.to_owned(), partial: output.with_file_name(partial), shared })
    }

    /// Returns the file to write.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn file(&self) -> Result<BufWriter<File>, Error> {
        let file = File::options().write(true).create_new(true).open(&self.partial);
        file.map(BufWriter::new).map_err(|source| self.failed(source))
    }

    /// Returns the folder to write into, which is empty.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> Result<&Path, Error> {
        fs::create_dir(&self.partial).map_err(|source| self.failed(source))?;
        Ok(&self.partial)
    }

    /// Returns an error of the system about this place.
    pub fn failed(&self, source: io::Error) -> Error {
        Error::Io { path: self.output.display().to_string(), source }
    }

    /// Puts what was written where it belongs.
    ///
    /// # Errors
    /// When something has come there meanwhile, or the system refuses.
    pub fn keep(self) -> Result<()> {
        if !(self.shared && self.output.is_dir()) {
            return rename(&self.partial, &self.output);
        }
        let mut files = Vec::new();
        list(&self.partial, Path::new(""), &mut files).with_context(|| self.partial.display().to_string())?;
        // Before anything is moved: a folder with half of an export is worse than none.
        if let Some(file) = files.iter().find(|file| self.output.join(file).exists()) {
            let file = self.output.join(file);
            bail!(
                "{}: already exists; give this trace another --rank, or choose another folder with -o",
                file.display()
            );
        }
        let mut moved = Vec::new();
        for file in &files {
            let to = self.output.join(file);
            let made = to.parent().map_or(Ok(()), fs::create_dir_all);
            let made = made.with_context(|| to.display().to_string());
            if let Err(error) = made.and_then(|()| rename(&self.partial.join(file), &to)) {
                for file in moved {
                    let _ = fs::remove_file(file);
                }
                return Err(error);
            }
            moved.push(to);
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may be gone, be a file or a folder; what cannot be removed has a name that says what it is.
        let _ = fs::remove_file(&self.partial);
        let _ = fs::remove_dir_all(&self.partial);
    }
}

fn taken(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{}: already exists; remove it, or choose another place with -o", path.display())
}

/// Renames, but not over what is there.
fn rename(from: &Path, to: &Path) -> Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        // Not every file system can promise it.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(taken(to));
            }
            fs::rename(from, to).with_context(|| to.display().to_string())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(taken(to)),
        other => other.with_context(|| to.display().to_string()),
    }
}

/// The files below a folder.
fn list(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => list(root, &path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        list(folder, Path::new(""), &mut files).unwrap();
        files
    }

    #[test]
    fn what_is_not_kept_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let output = root.path().join("out");
        let place = Place::new(&output, false).unwrap();
        place.file().unwrap().write_all(b"half").unwrap();
        assert_eq!(names(root.path()).len(), 1);
        drop(place);
        let place = Place::new(&output, false).unwrap();
        fs::write(place.folder().unwrap().join("a"), "half").unwrap();
        drop(place);
        assert!(names(root.path()).is_empty() && !output.exists());
    }

    #[test]
    fn nothing_is_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let output = root.path().join("out");
        let place = Place::new(&output, false).unwrap();
        place.file().unwrap().write_all(b"new").unwrap();
        // It comes while the export is written.
        fs::write(&output, "old").unwrap();
        let error = place.keep().unwrap_err().to_string();
        assert!(error.contains("choose another place with -o"), "{error}");
        assert_eq!(fs::read(&output).unwrap(), b"old");
        assert!(Place::new(&output, false).is_err() && Place::new(&output, true).is_err());
        assert_eq!(names(root.path()), [Path::new("out")]);
    }

    #[test]
    fn a_shared_folder_takes_what_it_has_not() {
        let root = tempfile::tempdir().unwrap();
        let output = root.path().join("out");
        let write = |names: &[&str]| {
            let place = Place::new(&output, true).unwrap();
            let folder = place.folder().unwrap();
            for name in names {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, name).unwrap();
            }
            place.keep()
        };
        write(&["calls/0", "trace/0"]).unwrap();
        write(&["calls/1", "trace/1"]).unwrap();
        let error = write(&["calls/2", "trace/1"]).unwrap_err().to_string();
        assert!(error.contains("trace/1: already exists; give this trace another --rank"), "{error}");
        let expected = ["calls/0", "calls/1", "trace/0", "trace/1"].map(PathBuf::from);
        assert_eq!(names(&output), expected);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
