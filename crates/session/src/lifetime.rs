//! How long the program lives: from its exec to its end, without what the launcher does before and after.
//!
//! The drainer looks for the end between its naps, which is late by up to one of them. So a thread of its own
//! waits for it, and does nothing else.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread::JoinHandle;

use hetrace_ring::clock;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The program while it lives.
#[derive(Debug)]
pub(crate) struct Lifetime {
    began: u64,
    end: Option<JoinHandle<Option<u64>>>,
}

impl Lifetime {
    /// Of a child that has just become the program. Where the kernel has no descriptors of processes, or there is no
    /// memory for a thread, nothing is measured.
    pub fn of(pid: libc::pid_t) -> Self {
        let began = now();
        let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let wait = |process: OwnedFd| {
            std::thread::Builder::new().name("hetrace-end".to_owned()).spawn(move || wait(&process)).ok()
        };
        Self { began, end: process.and_then(wait) }
    }

    /// Returns it in nanoseconds, when the program has ended.
    pub fn ns(self) -> Option<u64> {
        let end = self.end?.join().ok()??;
        Some(end.saturating_sub(self.began))
    }
}

/// Waits for the end of a process; returns when it was.
fn wait(process: &impl AsFd) -> Option<u64> {
    let mut poll = libc::pollfd { fd: process.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure of ours.
    while unsafe { libc::poll(&raw mut poll, 1, -1) } < 0 {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
    Some(now())
}

fn now() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn it_is_that_of_the_program() {
        let mut child = Command::new("sleep").arg("0.05").spawn().expect("sleep");
        let lifetime = Lifetime::of(child.id() as libc::pid_t);
        // Whoever buries it, and whenever: that is not part of it.
        std::thread::sleep(std::time::Duration::from_millis(300));
        child.wait().expect("its end");
        let ns = lifetime.ns().expect("a kernel of this decade");
        assert!((40_000_000..250_000_000).contains(&ns), "{ns}");
    }
}
