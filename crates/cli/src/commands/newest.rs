//! The default trace: the newest in this folder.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};
use hetrace_ctf::archive;
use hetrace_ctf::read::{Files, Part, session};

/// Extension of packed traces.
pub const EXTENSION: &str = "tar";

/// Returns the named trace, or the newest of those in this folder, packed or not.
pub fn trace(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if !path.exists() {
            bail!("{}: no such trace", path.display());
        }
        return Ok(path.to_owned());
    }
    match newest(Path::new("."))? {
        Some(path) => Ok(path),
        None => bail!("no trace in this folder; record one with `hetrace run -- PROGRAM`, or give its path"),
    }
}

/// Returns whether a path is a packed trace.
pub fn is_packed(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(archive::BLOCK as u64).read_to_end(&mut start));
    read.is_ok() && archive::is_archive(&start)
}

/// Returns the folder with the metadata in that of a trace: of several parts the last.
fn inner(path: &Path) -> PathBuf {
    if let Some((program, _)) = session(path) {
        return program;
    }
    match path.join(Part::FILE).is_file() || path.join("metadata").is_file() {
        true => path.to_owned(),
        false => Files::open(path)
            .ok()
            .and_then(|files| files.parts().last().map(|part| part.files.path().to_owned()))
            .unwrap_or_else(|| path.to_owned()),
    }
}

fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let dates = match path.is_dir() {
            true => inner(&path).join("metadata"),
            false if path.extension().is_some_and(|e| e == EXTENSION) => path.clone(),
            false => continue,
        };
        // An archive may be of anything.
        if let Ok(modified) = std::fs::metadata(dates).and_then(|m| m.modified())
            && (path.is_dir() || Files::open(&path).is_ok())
        {
            found.push((modified, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}
