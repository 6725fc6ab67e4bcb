//! A process, from the exec that made it what it is: who it is outside its namespaces, and
//! the names of its threads.
//!
//! Its arenas say what it takes itself for. In a PID namespace of its own that is not what
//! others call it, and two such processes may both be number 1; the kernel knows better.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use hetrace_ring::abi::ArenaHeader;

use crate::output::Identity;

/// What distinguishes images: process id here, when the process started, and what the kernel
/// gave the image at random.
pub(super) type Key = (u32, u64, [u8; 16]);

/// One of them.
#[derive(Debug)]
pub(super) struct Image {
    pub key: Key,
    /// Process id in the launcher's namespace.
    pub pid: u32,
    /// Parent's process id, there.
    pub parent: u32,
    /// How many images had the process id before.
    pub generation: u64,
    /// Its command line.
    pub command: Vec<String>,
    /// What its environment says of its rank.
    pub job: Option<crate::job::Job>,
    /// Whether it recorded anything.
    pub recorded: bool,
    /// Whether it is beyond a limit of the session.
    pub refused: bool,
    comm: [u8; 16],
    /// Whether its ids are another namespace's, and those of its threads that are known.
    foreign: bool,
    tids: HashMap<u32, u32>,
}

impl Image {
    /// Returns the image that an arena is of.
    pub fn new(header: &ArenaHeader, pid: u32, generation: u64) -> Self {
        let foreign = pid != header.pid;
        let start = header.process_start;
        Image {
            key: (pid, start, header.image),
            pid,
            parent: if foreign { parent(pid).unwrap_or(0) } else { header.parent },
            generation,
            command: arguments(&header.command),
            job: crate::job::of_process(pid, start),
            recorded: false,
            refused: false,
            comm: header.comm,
            foreign,
            tids: HashMap::new(),
        }
    }

    /// Returns the process itself.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, tid: self.pid, name: self.comm }
    }

    /// Returns a thread by the id that the process has for it, with the name that it has now. One that
    /// has ended has the process's name, which it began with.
    pub fn thread(&mut self, inner: u32) -> Identity {
        let tid = self.outer_tid(inner);
        let path = format!("/proc/{}/task/{tid}/comm", self.pid);
        let name = fs::read(path).ok().filter(|_| tid != 0).map(|text| {
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            std::array::from_fn(|i| text.get(i).copied().unwrap_or(0))
        });
        Identity { pid: self.pid, tid, name: name.unwrap_or(self.comm) }
    }

    /// Returns what the launcher's namespace calls a thread; what the process calls it, if that can't
    /// be known any more.
    pub fn outer_tid(&mut self, inner: u32) -> u32 {
        if !self.foreign || inner == 0 {
            return inner;
        }
        if !self.tids.contains_key(&inner) {
            self.tids.extend(threads(self.pid));
            self.tids.entry(inner).or_insert(inner);
        }
        self.tids.get(&inner).copied().unwrap_or(inner)
    }
}

/// Threads of a process: their ids inside its namespace and here.
fn threads(pid: u32) -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let pair = |entry: fs::DirEntry| {
        let outer = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let ids = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
        Some((ids.split_whitespace().next_back()?.parse().ok()?, outer))
    };
    entries.flatten().filter_map(pair).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Process id, in this namespace, of whoever made an arena: who holds its lock.
pub(super) fn outer_pid(header: &ArenaHeader, file: &File) -> u32 {
    let own = fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino());
    // Not known (0) is that of a program without /proc: it may be in another, too.
    if header.pid_namespace == own || own == 0 {
        return header.pid;
    }
    let holder = || {
        let metadata = file.metadata().ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        holder(&locks, metadata.dev(), metadata.ino())
    };
    holder().unwrap_or(header.pid)
}

/// Returns who holds the lock of a file: `1: FLOCK  ADVISORY  WRITE 3272 00:1b:2 0 EOF`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", rustix::fs::major(device), rustix::fs::minor(device));
    let of_file = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let matches = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&&*file);
        fields.get(4).filter(|_| matches)?.parse().ok()
    };
    locks.lines().find_map(of_file)
}

fn arguments(command: &[u8]) -> Vec<String> {
    let end = command.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    let text = command.get(..end).unwrap_or_default();
    text.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_its_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 00:1b:2 0 EOF\n2: FLOCK  ADVISORY  WRITE 3272 00:1b:2 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4 00:1b:22 0 EOF\n";
        assert_eq!(holder(locks, rustix::fs::makedev(0, 0x1b), 2), Some(3272));
        assert_eq!(holder(locks, rustix::fs::makedev(0, 0x1b), 3), None);
    }
}
