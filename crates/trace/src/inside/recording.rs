//! A trace's files of what kernels recorded, read and not added up.

use std::collections::BTreeMap;

use hetrace_ctf::read::Files;
use hetrace_format::files::INSIDE;
use hetrace_gpu_kernel::Description;
use hetrace_gpu_kernel::pool::{self, Pool};

use super::loss::{Loss, Losses, add_list};
use super::{Described, Refused};

/// What was recorded inside of a trace's kernels, launch by launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// Kernels by number, which is the same in all processes.
    pub kernels: BTreeMap<u32, Described>,
    /// What each context of each process wrote, by process.
    pub pools: Vec<OfProcess>,
    /// Kernels that were wanted, and ran as they were.
    pub refused: Vec<Refused>,
    /// Records that found no room.
    pub lost: u64,
    /// What each kernel lost, by name. Records of which it is not known whose they are are in [`Self::lost`] only.
    pub losses: Losses,
    /// What could not be read, or makes no sense, a sentence each.
    pub problems: Vec<String>,
}

/// What a context wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfProcess {
    /// Its process.
    pub pid: i64,
    /// Its records.
    pub pool: Pool,
}

impl Recording {
    /// Reads a trace's files; empty if nothing was recorded inside.
    pub fn read(files: &Files) -> Self {
        let mut recording = Recording::default();
        let mut pools = Vec::new();
        for name in files.list(INSIDE) {
            let path = format!("{INSIDE}/{name}");
            if let Some(pid) = name.strip_suffix(".pool").and_then(process) {
                pools.push((pid, path));
            } else if name.ends_with(".late") {
                recording.list(files, &path, |loss| &mut loss.launches);
            } else if name.ends_with(".over") {
                recording.list(files, &path, |loss| &mut loss.overwritten);
            } else if name.ends_with(".json") {
                match description(files, &path) {
                    Ok(found) => {
                        recording.refused.extend(found.refused);
                        let kernels = found.kernels.into_iter().map(|kernel| (kernel.number, kernel));
                        recording.kernels.extend(kernels);
                    }
                    Err(problem) => recording.problems.push(format!("{path}: {problem}")),
                }
            } else {
                recording.problems.push(format!("{path}: a file of no known kind"));
            }
        }
        recording.refused.sort_by(|a, b| (&a.name, &a.reason).cmp(&(&b.name, &b.reason)));
        recording.refused.dedup();
        pools.sort();
        for (pid, path) in pools {
            if let Some(pool) = recording.pool(files, &path) {
                recording.lose(&pool);
                recording.pools.push(OfProcess { pid, pool });
            }
        }
        recording
    }

    /// Returns whether nothing was recorded, nor was to be.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.kernels.is_empty() && self.refused.is_empty()
    }

    /// Notes which kernels' records found no room in a pool, or are left out for that.
    fn lose(&mut self, pool: &Pool) {
        let lost = pool.lost_by.iter().map(|(number, records)| (number, *records, 0));
        let left = pool.left_out.iter().map(|(number, records)| (number, 0, *records));
        for (number, records, left_out) in lost.chain(left) {
            if let Some(kernel) = self.kernels.get(number) {
                let loss = self.losses.entry(kernel.name.clone()).or_default();
                loss.records = loss.records.saturating_add(records);
                loss.left_out = loss.left_out.saturating_add(left_out);
            }
        }
    }

    /// Reads a list of launches, and adds them to a sum of their kernels.
    fn list(&mut self, files: &Files, path: &str, sum: fn(&mut Loss) -> &mut u64) {
        let list = match files.read(path) {
            Ok(list) => String::from_utf8_lossy(&list.unwrap_or_default()).into_owned(),
            Err(error) => return self.problems.push(format!("{path}: {error}")),
        };
        let bad = add_list(&mut self.losses, &list, sum);
        if bad > 0 {
            self.problems.push(format!("{path}: {bad} lines make no sense"));
        }
    }

    fn pool(&mut self, files: &Files, path: &str) -> Option<Pool> {
        let bytes = match files.read(path) {
            Ok(bytes) => bytes?,
            Err(error) => {
                self.problems.push(format!("{path}: {error}"));
                return None;
            }
        };
        let read = pool::read(&bytes);
        self.lost = self.lost.saturating_add(read.lost);
        let faults = read.faults;
        let mut say = |number: u64, what: &str| {
            if number > 0 {
                self.problems.push(format!("{path}: {number} {what}"));
            }
        };
        say(faults.unbegun, "chunks were taken and never begun: their warps were stopped there");
        say(faults.missing, "chunks are missing: the file is cut");
        say(
            faults.gaps,
            "times a chunk is missing before another: what these lanes did between is not known",
        );
        say(faults.records, "records make no sense");
        Some(read)
    }
}

/// Returns the process that wrote `PID-N`.
fn process(stem: &str) -> Option<i64> {
    stem.split_once('-')?.0.parse().ok()
}

fn description(files: &Files, path: &str) -> Result<Description, String> {
    let bytes = files.read(path).map_err(|error| error.to_string())?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}
