//! The trace that is meant when none is named.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};
use hetrace_ctf::archive;
use hetrace_ctf::read::Files;

/// How the names of packed traces end.
pub const EXTENSION: &str = "tar";

/// The named trace, or the newest of those in this folder, packed or not.
pub fn trace(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if !path.exists() {
            bail!("{}: there is no such trace", path.display());
        }
        return Ok(path.to_owned());
    }
    match newest(Path::new("."))? {
        Some(path) => Ok(path),
        None => bail!("no trace in this folder; record one with `hetrace run -- PROGRAM`, or name one"),
    }
}

/// Whether something is a file that many files were packed into.
pub fn is_packed(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(archive::BLOCK as u64).read_to_end(&mut start));
    read.is_ok() && archive::is_archive(&start)
}

fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let dates = match path.is_dir() {
            true => path.join("metadata"),
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
