//! Writes the page: the introduction of `docs/reliability.md`, and the table of this run.

use std::path::PathBuf;

use anyhow::{Context, Result};
use hetrace_tests::torture::{Row, markdown};

use super::output;
use crate::repo;

/// Ends what people write.
const MARK: &str = "<!-- Below: written by `cargo xtask test --torture`. -->";

/// Writes `target/torture/reliability.md`, and returns where that is.
pub fn write(rows: &[Row], seed: u64) -> Result<PathBuf> {
    let page = repo::root().join("docs/reliability.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let (introduction, _) = text.split_once(MARK).with_context(|| format!("{}: no mark", page.display()))?;
    let folder = repo::root().join("target/torture");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("reliability.md");
    let kernel = output("uname", &["-r"])?;
    let commit = output("git", &["rev-parse", "--short", "HEAD"])?;
    let when = output("date", &["-u", "+%Y-%m-%d"])?;
    let runs: u64 = rows.iter().map(|row| row.figures.runs).sum();
    let about = format!(
        "{} runs on {}, commit {}, Linux {}, seed {seed}.",
        runs,
        when.trim(),
        commit.trim(),
        kernel.trim()
    );
    std::fs::write(&path, format!("{introduction}{MARK}\n\n{about}\n\n{}", markdown(rows)))?;
    Ok(path)
}
