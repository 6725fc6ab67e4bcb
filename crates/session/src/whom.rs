//! Which processes a session of the service records.

use std::sync::atomic::{AtomicU8, Ordering};

use hetrace_model::glob_matches;
use hetrace_ring::abi::Window;
use hetrace_ring::abi::window::{GLOB, PIDS};
use serde::{Deserialize, Serialize};

/// Processes of one user: those that match all that is said. Each decides for itself, see `selection.rs` of `interpose`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whom {
    /// Process ids, as the processes have them; none: any.
    pub pids: Vec<u32>,
    /// Glob of their names (`/proc/PID/comm`).
    pub comm: Option<String>,
    /// Glob of the paths of their control groups.
    pub cgroup: Option<String>,
}

impl Whom {
    /// Returns whether nothing is said.
    pub fn is_everybody(&self) -> bool {
        *self == Whom::default()
    }

    /// Checks that it fits into shared memory.
    ///
    /// # Errors
    /// What is too much, for people.
    pub fn check(&self) -> Result<(), String> {
        if self.pids.len() > PIDS {
            return Err(format!("at most {PIDS} process ids are possible"));
        }
        if self.pids.contains(&0) {
            return Err("0 is no process id".to_owned());
        }
        let unfit = |glob: &&String| glob.is_empty() || glob.len() >= GLOB || glob.contains('\0');
        match [&self.comm, &self.cgroup].into_iter().flatten().find(unfit) {
            Some(_) => Err(format!("a name or glob has 1 to {} bytes", GLOB - 1)),
            None => Ok(()),
        }
    }

    /// Returns whether a process is one of them, as far as that can be seen from outside.
    pub(crate) fn selects(&self, pid: u32) -> bool {
        let read = |file: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let own = |status: String| {
            // The last of its numbers is the one that it has for itself.
            let line = status.lines().find_map(|line| line.strip_prefix("NSpid:").map(str::to_owned));
            line.and_then(|line| line.split_ascii_whitespace().last()?.parse().ok()).unwrap_or(pid)
        };
        let group =
            |glob: &str, line: &str| line.splitn(3, ':').nth(2).is_some_and(|p| glob_matches(glob, p));
        (self.pids.is_empty() || self.pids.contains(&own(read("status"))))
            && self.comm.as_ref().is_none_or(|glob| glob_matches(glob, read("comm").trim_end_matches('\n')))
            && self.cgroup.as_ref().is_none_or(|glob| read("cgroup").lines().any(|line| group(glob, line)))
    }

    /// Puts it where programs look.
    pub(crate) fn store(&self, window: &Window) {
        for (i, place) in window.pids.iter().enumerate() {
            place.store(self.pids.get(i).copied().unwrap_or(0), Ordering::Relaxed);
        }
        put(&window.comm, self.comm.as_deref());
        put(&window.cgroup, self.cgroup.as_deref());
        window.selects.store(u32::from(!self.is_everybody()), Ordering::Relaxed);
    }
}

fn put(place: &[AtomicU8; GLOB], text: Option<&str>) {
    let bytes = text.unwrap_or_default().bytes().take(GLOB - 1).chain(std::iter::repeat(0));
    for (place, byte) in place.iter().zip(bytes) {
        place.store(byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let whom =
            |pids: Vec<u32>, comm: Option<&str>| Whom { pids, comm: comm.map(str::to_owned), cgroup: None };
        assert!(whom(vec![1; PIDS], Some("a*")).check().is_ok());
        assert!(whom(vec![1; PIDS + 1], None).check().is_err());
        assert!(whom(vec![0], None).check().is_err());
        assert!(whom(vec![], Some("")).check().is_err());
        assert!(whom(vec![], Some(&"x".repeat(GLOB))).check().is_err());
    }

    #[test]
    fn a_shorter_glob_leaves_nothing_of_the_one_before() {
        let place = [const { AtomicU8::new(1) }; GLOB];
        put(&place, Some("abcdef"));
        put(&place, Some("x"));
        let text: Vec<u8> = place.iter().map(|b| b.load(Ordering::Relaxed)).collect();
        assert_eq!(&text[..2], b"x\0");
        assert!(text[1..].iter().all(|b| *b == 0));
    }
}
