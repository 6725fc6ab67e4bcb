//! How much memory rings may take.
//!
//! Rings lie on a memory file system that programs use, too, and count as memory of the
//! machine and of the program's control group. What they may take in all is a share of what
//! each of these has left; it is looked at again now and then, since others take from it as well, and soon when
//! programs have taken much. Not more often: on a machine with a GPU a program's end, which frees much, took
//! up to a third longer where both met (docs/measurements/2026-11-23-hecbench.md).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of the file system's room the rings may have one part in this many.
const OF_FILE_SYSTEM: u64 = 2;
/// Of the memory of the machine, or of a control group.
const OF_MEMORY: u64 = 8;

/// Longest time between two looks.
const PERIOD: Duration = Duration::from_secs(5);
/// Bytes below which it is looked at each time: nothing must be lost that there is room for again.
const LITTLE: u64 = 256 << 20;

/// Of what is left each process and API may take an equal part until the next look, but not less than one part in this
/// many: they do not see what others take meanwhile.
const SHARERS: u64 = 4;

/// When it was looked at what rings may have, and what was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looked {
    at: Instant,
    /// What was left then.
    left: u64,
    /// What rings may have in all.
    pub most: u64,
}

impl Looked {
    /// A look that found so many bytes left for rings, which have so many.
    pub(crate) fn new(at: Instant, left: u64, used: u64) -> Self {
        Looked { at, left, most: left.saturating_add(used) }
    }

    /// Returns whether it is time for another look, when so many bytes are left of what was found.
    pub(crate) fn is_due(&self, now: Instant, left: u64) -> bool {
        left < LITTLE || left < self.left / 2 || now.saturating_duration_since(self.at) >= PERIOD
    }
}

/// What each of so many arenas may take of what is left.
pub(crate) fn share(left: u64, arenas: usize) -> u64 {
    left / (arenas as u64).clamp(1, SHARERS)
}

/// Bytes that rings may take besides the `used` ones that they have, in a session at `folder`.
pub(crate) fn left(folder: &Path, used: u64) -> u64 {
    let share = |free: Option<u64>, part: u64| free.map_or(u64::MAX, |free| free.saturating_add(used) / part);
    let most = share(file_system(folder), OF_FILE_SYSTEM)
        .min(share(machine(), OF_MEMORY))
        .min(share(control_group(Path::new("/sys/fs/cgroup"), "/proc/self/cgroup"), OF_MEMORY));
    most.saturating_sub(used)
}

/// Bytes free on the file system of a folder.
pub(crate) fn file_system(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Bytes of memory that the machine can give.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes that the tightest of the control groups around us has left: `/proc/self/cgroup` names
/// ours, `0::/a/b` of version 2 or `7:memory:/a/b` of version 1.
fn control_group(root: &Path, own: &str) -> Option<u64> {
    let groups = fs::read_to_string(own).ok()?;
    let left = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        match controllers {
            "" => tightest(root, &root.join(path), "memory.max", "memory.current"),
            c if c.split(',').any(|c| c == "memory") => {
                let root = root.join("memory");
                tightest(&root, &root.join(path), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => None,
        }
    };
    groups.lines().filter_map(left).min()
}

/// Returns the least that a group or one around it has left.
fn tightest(root: &Path, group: &Path, limit: &str, usage: &str) -> Option<u64> {
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = |group: &Path| Some(number(group.join(limit))?.saturating_sub(number(group.join(usage))?));
    group.ancestors().take_while(|g| g.starts_with(root)).filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_control_group_counts() {
        let root = tempfile::TempDir::new().expect("a folder");
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).expect("folders");
        let write = |path: PathBuf, text: &str| fs::write(path, text).expect("written");
        write(root.path().join("a/memory.max"), "1000\n");
        write(root.path().join("a/memory.current"), "400\n");
        write(inner.join("memory.max"), "max\n");
        write(inner.join("memory.current"), "10\n");
        let own = root.path().join("own");
        write(own.clone(), "0::/a/b\n");
        assert_eq!(control_group(root.path(), own.to_str().expect("text")), Some(600));
        write(inner.join("memory.max"), "500\n");
        assert_eq!(control_group(root.path(), own.to_str().expect("text")), Some(490));
        write(own.clone(), "3:cpu:/\n");
        assert_eq!(control_group(root.path(), own.to_str().expect("text")), None);
    }

    #[test]
    fn who_has_taken_half_of_it_has_it_looked_at_soon_and_others_rarely() {
        let (at, gibibyte) = (Instant::now(), 1 << 30);
        let looked = Looked::new(at, 4 * gibibyte, 0);
        let later = at + Duration::from_millis(250);
        assert!(!looked.is_due(later, 4 * gibibyte) && !looked.is_due(later, 2 * gibibyte));
        assert!(looked.is_due(later, 2 * gibibyte - 1));
        assert!(looked.is_due(at + PERIOD, 4 * gibibyte));
        // Where there is little, or less than nothing, room that comes is found soon.
        let little = Looked::new(at, LITTLE - 1, gibibyte);
        assert!(little.is_due(later, LITTLE - 1) && looked.is_due(later, 0));
        assert_eq!(little.most, LITTLE - 1 + gibibyte);
    }

    #[test]
    fn processes_that_do_not_see_each_other_do_not_take_it_all() {
        assert_eq!([0, 1, 2, 4, 1000].map(|arenas| share(4096, arenas)), [4096, 4096, 2048, 1024, 1024]);
    }

    #[test]
    fn what_rings_have_counts_as_theirs() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let free = left(folder.path(), 0);
        assert!(free > 0 && left(folder.path(), 1 << 20) < free + (1 << 20));
    }
}
