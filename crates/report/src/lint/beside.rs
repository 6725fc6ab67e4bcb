//! Reading the trace and looking for faults in it, at the same time where there are processors for both.
//!
//! ```text
//!  reading: order, calls, values ──► batches of steps, few at a time ──► rules
//!          ◄── the batches, to be filled again ◄──
//! ```
//! The rules see the same steps in the same order either way.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use hetrace_trace::spans::{Summary, walk};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Pace, Stopped};

use super::facts::Knowledge;
use super::reading::{Reading, Rules};
use super::steps::Batch;
use super::walk::Linter;

/// Batches that wait for the rules: reading is ahead by no more.
const AHEAD: usize = 3;

/// Walks over a trace, and has the rules look at all of it.
pub(super) fn run<'t>(
    trace: &'t Trace,
    knowledge: &Knowledge<'t>,
    pace: Pace<'t>,
    linter: &mut Linter<'_, 't>,
) -> Result<Summary, Stopped> {
    let several = thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    let read = |rules: &mut dyn Rules<'t>| {
        let mut reading = Reading::new(trace, knowledge, pace, rules);
        match walk(trace, &mut reading) {
            ControlFlow::Break(stopped) => Err(stopped),
            ControlFlow::Continue(summary) => {
                reading.finish();
                Ok(summary)
            }
        }
    };
    if !several {
        return read(&mut Here(linter));
    }
    thread::scope(|scope| {
        let (full, filled) = sync_channel(AHEAD);
        let (empty, emptied) = channel();
        let rules = move || {
            for mut batch in filled {
                linter.take(&mut batch);
                batch.clear();
                // Reading may have been stopped.
                _ = empty.send(batch);
            }
        };
        scope.spawn(rules);
        read(&mut There { full, emptied })
    })
}

/// Rules of the same thread.
struct Here<'l, 'k, 't>(&'l mut Linter<'k, 't>);

impl<'t> Rules<'t> for Here<'_, '_, 't> {
    fn take(&mut self, mut full: Batch<'t>) -> Batch<'t> {
        self.0.take(&mut full);
        full.clear();
        full
    }
}

/// Rules of another thread.
struct There<'t> {
    full: SyncSender<Batch<'t>>,
    emptied: Receiver<Batch<'t>>,
}

impl<'t> Rules<'t> for There<'t> {
    fn take(&mut self, full: Batch<'t>) -> Batch<'t> {
        // It takes batches as long as this is there.
        _ = self.full.send(full);
        self.emptied.try_recv().unwrap_or_default()
    }
}

impl<'t> Rules<'t> for &mut dyn Rules<'t> {
    fn take(&mut self, full: Batch<'t>) -> Batch<'t> {
        (**self).take(full)
    }
}
