//! The trace that is meant when none is named.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The named trace, or the newest of those in this folder.
pub fn trace(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        if !path.exists() {
            bail!("{}: there is no such trace", path.display());
        }
        if !path.join("metadata").exists() {
            bail!("{}: not a trace: a folder with a file `metadata` is expected", path.display());
        }
        return Ok(path.to_owned());
    }
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(".")?.flatten() {
        let metadata = entry.path().join("metadata");
        if let Ok(modified) = std::fs::metadata(metadata).and_then(|m| m.modified()) {
            found.push((modified, entry.path()));
        }
    }
    match found.into_iter().max() {
        Some((_, path)) => Ok(path),
        None => bail!("no trace in this folder; record one with `hetrace run -- PROGRAM`, or name one"),
    }
}
