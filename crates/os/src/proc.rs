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

/// Returns a process and all that descend from it now.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        for tid in numbers(format!("/proc/{pid}/task")) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children"));
            let children = children.unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|n| n.parse::<u32>().ok()));
        }
    }
    found
}

/// Returns when a process began, in ticks since the start of the machine: with its number what distinguishes it from
/// all others. None if there is no such process.
pub fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    // The name may have anything in it, also parentheses.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Returns the time as [`start_of`] has it.
pub fn ticks_now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    (time.tv_sec as u64) * per_second + (time.tv_nsec as u64) * per_second / 1_000_000_000
}

/// The first PID namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Returns whether numbers of processes are here those that the kernel's events have.
pub fn first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == FIRST_NAMESPACE)
}
