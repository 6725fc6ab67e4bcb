//! Numbers of processes and threads as `/proc` lists them.

use std::fs;
use std::path::Path;

/// Returns the numbers that are names in a folder, sorted; none where it is gone.
pub fn numbers(folder: impl AsRef<Path>) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
