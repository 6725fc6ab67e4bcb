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

/// The first PID namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Returns whether numbers of processes are here those that the kernel's events have.
pub fn first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == FIRST_NAMESPACE)
}
