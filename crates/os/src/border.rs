//! Where one part of a long recording ends and the next one begins.
//!
//! ```text
//!   launcher: Borders::ask ──► reader: all before it is written ──► Trace::leave, go_over ──► state dump
//!             Borders::passed ◄──────────────────────────────────┘
//! ```
//! Events are written in the order of time, some time after they happened. So a border is a time, and each event is in
//! the part that it happened in, however late it is read.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::Report;

/// A border that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Border {
    /// When the next part begins, in nanoseconds on the trace's clock.
    pub at: u64,
    /// Its folder, which is there already, with [`hetrace_ctf::read::Part::FILE`] in it.
    pub folder: PathBuf,
    /// Its number.
    pub number: u32,
}

/// A part that is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Its number.
    pub number: u32,
    /// What was recorded in it.
    pub report: Report,
}

/// What launcher and reader say to each other about parts.
#[derive(Debug)]
pub struct Borders {
    state: Mutex<State>,
    /// Wakes the reader.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    asked: VecDeque<Border>,
    passed: Vec<Passed>,
}

impl Borders {
    /// There are none yet.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { state: Mutex::default(), wake })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a border at the present time, which `now` returns: whatever delays this thread, the reader has written nothing
    /// that happens from then on, as it asks for borders after it has found out up to when it may write.
    pub fn ask(&self, folder: PathBuf, number: u32, now: impl FnOnce() -> u64) {
        let mut state = self.state();
        state.asked.push_back(Border { at: now(), folder, number });
        drop(state);
        // A counter that has room for any number of ones.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Returns the parts that were finished since it was asked last, the first one first.
    pub fn passed(&self) -> Vec<Passed> {
        std::mem::take(&mut self.state().passed)
    }

    /// Returns what wakes the reader.
    pub(crate) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Returns the borders that are not passed yet, but so many.
    pub(crate) fn fresh(&self, known: usize) -> Vec<Border> {
        let mut number = [0; 8];
        let _ = rustix::io::read(&self.wake, &mut number);
        self.state().asked.iter().skip(known).cloned().collect()
    }

    /// Notes that a part is finished; the first border is passed by that, if there is one.
    pub(crate) fn pass(&self, passed: Passed) {
        let mut state = self.state();
        state.asked.pop_front();
        state.passed.push(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_passed_in_their_order() {
        let borders = Borders::new().unwrap();
        let border = |number| Border { at: u64::from(number) * 10, folder: PathBuf::new(), number };
        for number in [2, 3] {
            // Nobody learns of borders while the time of one is found out.
            borders.ask(PathBuf::new(), number, || {
                assert!(borders.state.try_lock().is_err());
                u64::from(number) * 10
            });
        }
        assert_eq!(borders.fresh(0), [border(2), border(3)]);
        assert_eq!(borders.fresh(1), [border(3)]);
        let passed = |number| Passed { number, report: Report { events: 7, ..Report::default() } };
        borders.pass(passed(1));
        assert_eq!(borders.fresh(0), [border(3)]);
        [2, 3].into_iter().for_each(|number| borders.pass(passed(number)));
        assert_eq!(borders.passed(), [passed(1), passed(2), passed(3)]);
        assert!(borders.passed().is_empty() && borders.fresh(0).is_empty());
    }
}
