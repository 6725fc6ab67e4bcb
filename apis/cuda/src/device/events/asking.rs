//! Asking the driver whether commands have ended, and when they ran.

use hetrace_interpose::commands::{Backend, Enqueued, Progress, Times};

use super::super::contexts::{Context, clock};
use super::super::driver;
use super::{Pair, give_back};
use crate::generated::prelude::P;

/// What a look at commands has made ready: the context it asks about is current.
pub(super) struct Asking {
    context: Option<(&'static Context, u32)>,
    /// The launch of a twin that was asked about last, by its event and number, and what the driver said.
    ended: Option<(P, u32, i32)>,
    pushed: Option<driver::Pushed>,
    /// Dropped last: a capture may be in progress where what was current is made so again.
    _relaxed: driver::Relaxed,
}

impl Asking {
    pub(super) fn new() -> Self {
        Asking { context: None, ended: None, pushed: None, _relaxed: driver::Relaxed::new() }
    }

    /// Asks whether a command has ended. One event says it of all nodes of a graph, and what it says holds for this look.
    ///
    /// # Safety
    /// Events of a context that lives and is current, recorded once each and not given back yet.
    unsafe fn query(&mut self, pair: &Pair) -> i32 {
        // SAFETY: contract: the event of a command of its own.
        let Some(twin) = pair.twin else { return unsafe { driver::cuEventQuery(pair.after) } };
        let (end, number) = (twin.end(), twin.launches());
        if let Some((.., error)) = self.ended.filter(|(event, launch, _)| (*event, *launch) == (end, number))
        {
            return error;
        }
        // SAFETY: contract: the twin is in use by this command, and its event was recorded behind its launch.
        let error = unsafe { driver::cuEventQuery(end) };
        self.ended = Some((end, number, error));
        error
    }

    /// Makes the context of a command current. `None` if that can't be done.
    fn turn_to(&mut self, context: &'static Context, generation: u32) -> Option<()> {
        if self.context.is_some_and(|(c, g)| std::ptr::eq(c, context) && g == generation) {
            return Some(());
        }
        self.context = None;
        // The one before is taken off first: they lie on a stack.
        self.pushed = None;
        self.pushed = Some(driver::Pushed::new(context.handle())?);
        self.context = Some((context, generation));
        if context.clock.is_due() {
            // SAFETY: it lives, for the caller is using it, and is current.
            unsafe { context.clock.renew(context) };
        }
        Some(())
    }
}

impl Backend for Asking {
    type Token = Pair;

    fn poll(&mut self, pair: Pair, _: &Enqueued) -> Progress {
        let Some(_in_use) = pair.context.enter(pair.generation) else {
            return Progress::Gone; // It ended before anybody asked.
        };
        if self.turn_to(pair.context, pair.generation).is_none() {
            return Progress::Waits;
        }
        // SAFETY: events of a context that lives and is current, recorded once
        // each and not given back yet.
        let times = unsafe {
            match self.query(&pair) {
                0 => pair.context.clock.times(pair.context, pair.before, pair.after),
                driver::NOT_READY | driver::NOT_PERMITTED => return Progress::Waits,
                error if driver::CAPTURE_ERRORS.contains(&error) => return Progress::Waits,
                error => {
                    // Else it ended through a door that we do not see: no news to the program.
                    pair.context.broke(error, driver::stays(error));
                    return Progress::Gone;
                }
            }
        };
        let Some(times) = times else {
            // SAFETY: it lives and is current.
            unsafe { pair.context.clock.renew(pair.context) };
            return Progress::Waits;
        };
        let (start, mut end) = times.unwrap_or((0, 0));
        if let (Some(twin), Ok(_)) = (pair.twin, times) {
            // SAFETY: events of the twin, whose launch has ended, in a context that lives and is current.
            twin.look(|[first, second]| unsafe { pair.context.clock.between(pair.context, first, second) });
            end = twin.price.end(start, end);
        }
        // A context that joined another's clock did so by a bracket: when its calls were
        // made says nothing about the device's clock, and the launcher must not use it.
        let apart = !clock::leads(pair.context);
        Progress::Ended(Times { start, end, error: times.err().unwrap_or(0), apart, ..Times::default() })
    }

    fn release(&mut self, pair: Pair) {
        // Of a context that has ended or is broken, the events went with it.
        if let Some(_in_use) = pair.context.enter(pair.generation) {
            give_back(&pair);
        }
    }
}
