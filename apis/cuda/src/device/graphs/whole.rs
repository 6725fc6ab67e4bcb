//! What launches of the program's own executable take as a whole, some of them: beside what its twin takes that says what
//! events between nodes add ([`price`](super::price)).
//!
//! An event is recorded in the stream before such a launch and one behind it; their times are asked for when the graph is
//! launched again, so nothing waits for them. A launch counts if the device came to the first event only after the launch was in
//! the stream: else what the driver took on the host to launch it is in the time, too.

use super::super::contexts::Context;
use super::super::driver;
use crate::generated::prelude::{P, null_mut};

/// So many launches are measured: the least of them is what a launch takes that nothing holds up.
const ENOUGH: u32 = 8;
/// Of so many launches at most it is tried.
const TRIES: u32 = 64;
/// The program launches its graphs one by one, if so many of them in a row say nothing.
const IN_VAIN: u32 = 4;

/// What is known of it.
#[derive(Debug, Default)]
pub struct Whole {
    /// Whose the events are, once there are some.
    home: Option<(&'static Context, u32)>,
    /// Before and behind a launch.
    events: Option<[P; 2]>,
    /// A launch is being measured: both events are in its stream.
    is_in_flight: bool,
    /// Launches that were to be measured, and those that were.
    tries: u32,
    count: u32,
    /// Nanoseconds of the shortest one.
    least: Option<u64>,
}

impl Whole {
    /// What the shortest launch took so far, in nanoseconds.
    pub fn least(&self) -> Option<u64> {
        self.least
    }

    /// Whether nothing more is to be expected of the next launches.
    pub fn is_known(&self) -> bool {
        self.least.is_some() || self.tries >= IN_VAIN
    }

    /// A launch begins in a stream of a context: the first event, if it is to be measured. Returns whether it is.
    pub fn begins(&mut self, stream: P, home: (&'static Context, u32)) -> bool {
        let (context, generation) = home;
        let Some(_in_use) = context.enter(generation) else { return false };
        let is_same = self.home.is_some_and(|(c, g)| std::ptr::eq(c, context) && g == generation);
        if self.events.is_some() && !is_same {
            return false;
        }
        self.look();
        if self.is_in_flight || self.count >= ENOUGH || self.tries >= TRIES {
            return false;
        }
        let Some([before, _]) = self.events.or_else(|| self.take(home)) else { return false };
        self.tries += 1;
        // SAFETY: an event of the stream's context, which lives.
        unsafe { driver::cuEventRecord(before, stream) == 0 }
    }

    /// The launch is in the stream: the second event.
    pub fn ends(&mut self, stream: P) {
        if let Some([before, after]) = self.events {
            // SAFETY: the program's stream, in which the first event was recorded just now.
            self.is_in_flight = unsafe {
                driver::cuEventQuery(before) == driver::NOT_READY && driver::cuEventRecord(after, stream) == 0
            };
        }
    }

    fn take(&mut self, home: (&'static Context, u32)) -> Option<[P; 2]> {
        let (context, _) = home;
        // SAFETY: the context lives: the program is launching in it.
        let pair = unsafe { [context.pool.take(context.handle()), context.pool.take(context.handle())] };
        self.home = Some(home);
        self.events = Some(pair);
        if pair.contains(&null_mut()) {
            self.end();
        }
        self.events
    }

    /// Takes the time of the launch that was measured last, if it has ended.
    fn look(&mut self) {
        let (Some([before, after]), Some((context, _)), true) = (self.events, self.home, self.is_in_flight)
        else {
            return;
        };
        // SAFETY: events of ours, both recorded, of a context that `begins` has found to live. The driver has an error for those
        // that it has not come to.
        let took = unsafe { context.clock.between(context, before, after) };
        if let Some(took) = took {
            self.is_in_flight = false;
            self.count += 1;
            self.least = Some(self.least.map_or(took, |least| least.min(took)));
        }
    }

    /// It does something else from now on. Nothing waits for that to be measured: it may be changed before each launch.
    pub fn changed(&mut self) {
        let Whole { home, events, .. } = *self;
        // Events of a launch that is still measured are recorded anew: what they would say is of the graph before.
        *self = Whole { home, events, tries: IN_VAIN, ..Whole::default() };
    }

    /// Nothing is measured any more.
    pub fn end(&mut self) {
        let (home, events) = (self.home.take(), self.events.take());
        self.is_in_flight = false;
        if let (Some((context, generation)), Some(events)) = (home, events)
            && let Some(_in_use) = context.enter(generation)
        {
            for event in events.into_iter().filter(|event| !event.is_null()) {
                // SAFETY: an event of the context, which nothing waits for: recorded events may be given back.
                unsafe { context.pool.give(event) };
            }
        }
    }
}
