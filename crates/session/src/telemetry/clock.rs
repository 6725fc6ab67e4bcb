//! The time that sampling goes by: the system's clock, or one that a test sets.

use std::fmt;
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

/// Says to all lanes that the program has ended.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// The program has ended.
    pub fn set(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}
