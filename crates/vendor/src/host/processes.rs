//! Memory of the program's processes: it, or several, and all that descend from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// New processes are looked for so often: that reads a file of each process of the machine.
const LOOK: Duration = Duration::from_secs(1);
/// The size of a page where the kernel does not say it.
const PAGE: u64 = 4096;
/// What the kernel calls the size of a page in `/proc/self/auxv`.
const AT_PAGESZ: u64 = 6;

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// When it began: with its number what distinguishes it from all others.
    began: u64,
    /// Pages in main memory.
    pages: u64,
}

/// The processes of the program.
#[derive(Debug)]
pub(super) struct Processes {
    proc: PathBuf,
    page: u64,
    /// Processes that were named and not looked for yet.
    named: Vec<u32>,
    /// Whether any was named.
    follows: bool,
    /// Their numbers, and when they began.
    known: BTreeMap<u32, u64>,
    looked: Option<Instant>,
}

impl Processes {
    /// Returns the processes of a program that has not begun yet; `proc` is `/proc`.
    pub fn new(proc: PathBuf) -> Self {
        let page = page(&proc);
        Processes { proc, page, named: Vec::new(), follows: false, known: BTreeMap::new(), looked: None }
    }

    /// A program has begun, or is found to run.
    pub fn follow(&mut self, program: u32) {
        self.named.push(program);
        self.follows = true;
        self.looked = None;
    }

    /// Returns the memory of all in main memory, in bytes; nothing if there is none of them.
    pub fn resident(&mut self, now: Instant) -> Option<u64> {
        if !self.follows {
            return None;
        }
        if self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK) {
            self.looked = Some(now);
            self.look();
        }
        let mut pages = 0u64;
        let proc = &self.proc;
        self.known.retain(|pid, began| {
            // Its number may be another's by now.
            let Some(stat) = stat(proc, *pid).filter(|stat| stat.began == *began) else { return false };
            pages = pages.saturating_add(stat.pages);
            true
        });
        (!self.known.is_empty()).then(|| pages.saturating_mul(self.page))
    }

    /// Looks for descendants. One whose parent has ended stays known.
    fn look(&mut self) {
        let named = std::mem::take(&mut self.named);
        let mut children: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for entry in fs::read_dir(&self.proc).into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some((pid, stat)) = pid.and_then(|pid| Some((pid, stat(&self.proc, pid)?))) else { continue };
            if named.contains(&pid) {
                self.known.insert(pid, stat.began);
            }
            children.entry(stat.parent).or_default().push((pid, stat.began));
        }
        let mut parents: Vec<u32> = self.known.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            for (pid, began) in children.remove(&parent).unwrap_or_default() {
                self.known.insert(pid, began);
                parents.push(pid);
            }
        }
    }
}

/// Reads what the kernel says of a process.
fn stat(proc: &Path, pid: u32) -> Option<Stat> {
    let bytes = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // Its name may contain anything, a parenthesis, too.
    let (_, behind) = text.rsplit_once(')')?;
    let number = |at: usize| behind.split_ascii_whitespace().nth(at)?.parse::<u64>().ok();
    // The state is the third of all, and the first behind the name. Of what has ended nothing is left.
    if matches!(behind.split_ascii_whitespace().next()?, "Z" | "X") {
        return None;
    }
    Some(Stat { parent: u32::try_from(number(1)?).ok()?, began: number(19)?, pages: number(21)? })
}

/// Returns the size of a page, in bytes.
fn page(proc: &Path) -> u64 {
    let bytes = fs::read(proc.join("self/auxv")).unwrap_or_default();
    let words = bytes.chunks_exact(8).filter_map(|b| b.first_chunk()).map(|b| u64::from_ne_bytes(*b));
    let words: Vec<u64> = words.collect();
    let pair = words.chunks_exact(2).find(|pair| pair.first() == Some(&AT_PAGESZ));
    pair.and_then(|pair| pair.get(1).copied()).filter(|page| *page > 0).unwrap_or(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of a made-up machine.
    fn put(proc: &Path, pid: u32, name: &str, parent: u32, began: u64, pages: u64) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 4194304 10 0 0 0 5 6 0 0 20 0 1 0 {began} 1000000 {pages} 18446744073709551615\n"
        );
        fs::write(folder.join("stat"), text).unwrap();
    }

    #[test]
    fn descendants_count_and_others_do_not() {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path();
        fs::create_dir_all(proc.join("self")).unwrap();
        fs::write(proc.join("self/auxv"), [3u64, 64, 6, 1000, 0, 0].map(u64::to_ne_bytes).concat()).unwrap();
        put(proc, 1, "init", 0, 1, 100);
        put(proc, 50, "app", 1, 7, 10);
        put(proc, 51, "a ) b (", 50, 8, 20);
        put(proc, 52, "grandchild", 51, 9, 40);
        put(proc, 60, "other", 1, 9, 500);
        fs::write(proc.join("version"), "Linux").unwrap();
        let mut processes = Processes::new(proc.to_owned());
        let start = Instant::now();
        assert_eq!(processes.resident(start), None, "not begun");
        processes.follow(50);
        assert_eq!(processes.resident(start), Some(70_000));

        // Its parent has ended; the number of another is a stranger's now; a new one is found a second later.
        put(proc, 52, "orphan", 1, 9, 41);
        fs::remove_dir_all(proc.join("51")).unwrap();
        put(proc, 53, "new", 52, 12, 300);
        assert_eq!(processes.resident(start + LOOK / 2), Some(51_000));
        put(proc, 50, "stranger", 1, 99, 5000);
        assert_eq!(processes.resident(start + LOOK), Some(341_000));
        fs::remove_dir_all(proc.join("52")).unwrap();
        fs::remove_dir_all(proc.join("53")).unwrap();
        assert_eq!(processes.resident(start + 2 * LOOK), None, "all have ended");
        assert_eq!(processes.resident(start + 4 * LOOK), None, "the stranger is not taken for the program");
    }

    #[test]
    fn what_is_no_stat_is_no_process() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("7")).unwrap();
        let ended = "7 (x) Z 1 1 1 0 -1 1 1 0 0 0 5 6 0 0 20 0 1 0 1 1 0";
        for text in
            [ended, "", "7", "7 (x)", "7 (x) S 1", "7 (x) S -1 1 1 0 -1 1 1 0 0 0 5 6 0 0 20 0 1 0 1 1 1"]
        {
            fs::write(root.path().join("7/stat"), text).unwrap();
            assert_eq!(stat(root.path(), 7), None, "{text:?}");
        }
        assert_eq!(page(root.path()), PAGE);
    }
}
