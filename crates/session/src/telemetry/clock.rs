//! The time that sampling goes by: the system's clock, or one that a test sets.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use hetrace_ring::clock;

/// A source of time, and of waiting for a time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the time on the trace's clock, in nanoseconds.
    fn now(&self) -> u64;

    /// Sleeps until [`Clock::now`] returns this time or more, or until the program has ended;
    /// without a time, until the program has ended. Returns whether it has ended.
    fn wait(&self, stop: &Stop, until: Option<u64>) -> bool;
}

/// CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        clock::nanoseconds(libc::CLOCK_MONOTONIC)
    }

    fn wait(&self, stop: &Stop, until: Option<u64>) -> bool {
        let mut stopped = stop.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let Some(until) = until else {
                stopped = stop.changed.wait(stopped).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_sub(self.now());
            if left == 0 {
                break;
            }
            let nap = Duration::from_nanos(left);
            stopped = stop.changed.wait_timeout(stopped, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
        *stopped
    }
}

/// Returns the processor time of this thread, in nanoseconds.
pub fn cpu_time() -> u64 {
    clock::nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Says to all lanes that the program has ended, or that they are to pause.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: Mutex<bool>,
    /// Changed with `stopped` locked.
    paused: AtomicBool,
    changed: Condvar,
}

impl Stop {
    /// The program has ended.
    pub fn set(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Lanes are to pause, or to go on.
    pub fn set_paused(&self, paused: bool) {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        self.paused.store(paused, Ordering::Relaxed);
        drop(stopped);
        self.changed.notify_all();
    }

    /// Sleeps as long as lanes are to pause and the program has not ended. Returns whether that was so for a while.
    pub fn pauses(&self) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let paused = || self.paused.load(Ordering::Relaxed);
        let pauses = paused() && !*stopped;
        while paused() && !*stopped {
            stopped = self.changed.wait(stopped).unwrap_or_else(PoisonError::into_inner);
        }
        pauses
    }
}
