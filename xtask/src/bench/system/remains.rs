//! What stays when all has ended: nothing should.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::bench::report::Report;

/// A variable in the environment of all that runs, so that what stays is found.
pub type Mark = (&'static str, String);

/// Its name.
pub const MARK: &str = "BENCH_SYSTEM";
/// Longest wait for what should end by itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// Folders in which files of ours could stay: sessions and arenas, and whatever is temporary.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// How the folder's name begins that dormant programs of a user join, those to come, too: it stays on purpose.
const STANDING: &str = "standby-";

/// What there was before.
pub struct Before(Vec<PathBuf>);

impl Before {
    /// Looks.
    pub fn look() -> Self {
        Before(files())
    }

    /// Waits until nothing of the runs is there any more, and says what stayed.
    pub fn compare(&self, mark: &Mark, report: &mut Report) -> Result<()> {
        let start = Instant::now();
        let (processes, threads) = loop {
            let (processes, threads) = left(mark)?;
            if processes == 0 || start.elapsed() > PATIENCE {
                break (processes, threads);
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let stayed: Vec<PathBuf> = files().into_iter().filter(|path| !self.0.contains(path)).collect();
        report.title("What stays");
        report.line(&format!(
            "{processes} processes with {threads} threads, {} files in {} (others' among them)",
            stayed.len(),
            FOLDERS.join(" and ")
        ));
        stayed.iter().for_each(|path| report.line(&path.display().to_string()));
        report.keep("stays", json!({ "processes": processes, "threads": threads, "files": stayed }));
        Ok(())
    }
}

/// Returns how many processes have the mark in their environment, and their threads.
fn left(mark: &Mark) -> Result<(usize, usize)> {
    let mark = format!("{}={}", mark.0, mark.1);
    let marked = |pid: &PathBuf| {
        let environ = fs::read(pid.join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|variable| variable == mark.as_bytes())
    };
    let all: Vec<PathBuf> = fs::read_dir("/proc")?.flatten().map(|e| e.path()).filter(marked).collect();
    Ok((all.len(), all.iter().map(|pid| entries(&pid.join("task")).len()).sum()))
}

/// Returns all files whose own name or folder's has ours in it, without those that stay on purpose.
fn files() -> Vec<PathBuf> {
    let ours = |path: &PathBuf| path.to_string_lossy().contains("hetrace");
    let mut folders: Vec<PathBuf> = FOLDERS.iter().flat_map(|f| entries(Path::new(f))).filter(ours).collect();
    let mut all = Vec::new();
    while let Some(path) = folders.pop() {
        let standing = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(STANDING));
        let bench = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hetrace-bench-"));
        if !standing && !bench {
            let link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
            folders.extend(if link { Vec::new() } else { entries(&path) });
            all.push(path);
        }
    }
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
