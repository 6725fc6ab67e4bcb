//! How long the program lives: from its exec to its end, without what the launcher does before and after; and
//! what it takes of processors meanwhile.
//!
//! The drainer looks for the end between its naps, and after what it is busy with. So the thread that
//! hears of the end first says when that was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::clock;

use crate::manifest::Manifest;

/// When the program begins and ends; 0 while it has not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifetime {
    began: u64,
    ended: Arc<AtomicU64>,
    /// Processor time of the children that this process had waited for when the program began.
    before: u64,
}

impl Lifetime {
    /// The program runs since now.
    pub fn begin(&mut self) {
        self.before = children_time();
        self.began = now();
    }

    /// Returns the processor time of the program and of those children of it that it waited for, in nanoseconds. To
    /// be asked when it has been waited for, and before any other child has.
    pub fn processor_ns(&self) -> u64 {
        children_time().saturating_sub(self.before)
    }

    /// The program has ended, if that was not noted before.
    pub fn end(&self) {
        // The first to notice was nearer to the end.
        let _ = self.ended.compare_exchange(0, now(), Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The program has ended: writes how long it lived, and what it took of processors, if it is known how it ended.
    pub fn complete(&self, manifest: &mut Manifest) {
        self.end();
        if manifest.exit.is_some() {
            (manifest.lifetime_ns, manifest.processor_ns) = (self.ns(), Some(self.processor_ns()));
        }
    }

    /// Returns it in nanoseconds, once the program has ended.
    pub fn ns(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::Acquire);
        (ended != 0).then(|| ended.saturating_sub(self.began))
    }
}

fn now() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Returns the processor time, user's and system's, of all children that this process has waited for and of
/// theirs, in nanoseconds.
pub fn children_time() -> u64 {
    // SAFETY: all zeros are a valid structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it is ours to write to.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    let ns =
        |time: libc::timeval| (time.tv_sec as u64).saturating_mul(1_000_000_000) + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime).saturating_add(ns(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Ending;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn processor_time_is_that_of_children_which_were_waited_for() {
        let mut lifetime = Lifetime::default();
        lifetime.begin();
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let status = Command::new("sh").args(["-c", work]).status().expect("sh");
        assert!(status.success() && lifetime.processor_ns() > 1_000_000, "{}", lifetime.processor_ns());
    }

    #[test]
    fn it_is_that_of_the_program() {
        let mut lifetime = Lifetime::default();
        let (ended, (send, receive)) = (lifetime.clone(), std::sync::mpsc::channel());
        let ending = Ending::new(move || {
            ended.end();
            send.send(()).unwrap();
        });
        let mut child = Command::new("sleep").arg("0.05").spawn().expect("sleep");
        lifetime.begin();
        ending.of(child.id() as libc::pid_t);
        assert_eq!(lifetime.ns(), None);
        receive.recv_timeout(Duration::from_secs(30)).expect("the end");
        let ns = lifetime.ns().expect("it has ended");
        assert!(ns >= 40_000_000, "{ns}");
        // Whoever buries it, and whenever: that is not part of it.
        child.wait().expect("its end");
        lifetime.end();
        assert_eq!(lifetime.ns(), Some(ns));
    }
}
