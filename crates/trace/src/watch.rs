//! Long work asks now and then whether it shall go on, and so reports how far it is.

use std::ops::ControlFlow;

/// What is called now and then while a trace is read, with how many events have
/// been read since the last time; [`ControlFlow::Break`] stops the reading. It may
/// be called from several threads.
pub type Watch<'w> = &'w (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// The reading was stopped by its [`Watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Events between two questions whether to go on.
const EVENTS: u32 = 1 << 14;

/// Counts events for a watch.
pub struct Pace<'w> {
    watch: Option<Watch<'w>>,
    /// Events until the next question.
    left: u32,
}

impl<'w> Pace<'w> {
    /// Of a watch; without one, work always goes on.
    pub fn new(watch: Option<Watch<'w>>) -> Self {
        Self { watch, left: EVENTS }
    }

    /// One more event has been read.
    #[inline]
    pub fn step(&mut self) -> ControlFlow<Stopped> {
        self.left -= 1;
        if self.left == 0 { self.ask() } else { ControlFlow::Continue(()) }
    }

    #[cold]
    fn ask(&mut self) -> ControlFlow<Stopped> {
        self.left = EVENTS;
        match self.watch.map(|watch| watch(u64::from(EVENTS))) {
            Some(ControlFlow::Break(())) => ControlFlow::Break(Stopped),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_watch_is_asked_now_and_then_and_can_stop() {
        let seen = AtomicU64::new(0);
        let watch = |events| match seen.fetch_add(events, Ordering::Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let mut pace = Pace::new(Some(&watch));
        let steps = (1..).find(|_| pace.step().is_break());
        assert_eq!(steps, Some(2 * u64::from(EVENTS)));
        assert_eq!(seen.into_inner(), 2 * u64::from(EVENTS));
    }
}
