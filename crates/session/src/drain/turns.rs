//! When the drainer lets others have its processor.
//!
//! A thread of a driver that is woken while the drainer has its processor, and finds no other, waits until the drainer
//! is done: of an iteration of 16 µs with one such thread on two processors that was a third. So the drainer takes
//! little at a time and offers its turn in between, which takes 0.2 µs where nobody wants it.
//!
//! Where others want it for long (all processors compute), a turn that was given away comes back only after some
//! milliseconds, and rings fill up meanwhile. Then nothing is offered for a while; nor while a ring is half full.

use std::time::{Duration, Instant};

/// Most bytes that are taken from a ring at once: a packet is written before them or behind them, not in between, so
/// that what a killed drainer has written is what it has given back.
const PIECE: usize = 32 << 10;
/// The same between two turns: some 80 records, or 10 µs.
const SHORT: usize = 2 << 10;
/// A turn that comes back only after so long was wanted by a thread that computes.
const LONG: Duration = Duration::from_millis(1);
/// For how long nothing is offered then; twice as long each time that it happens again soon after.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(64));

/// Turns that are offered.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Until when nothing is offered, and how long that is; none at first.
    pause: Option<(Instant, Duration)>,
}

impl Turns {
    /// Returns whether turns are offered while this part of a ring's bytes waits.
    pub(super) fn are_offered(&self, waiting: u64, size: u64) -> bool {
        waiting <= size / 2 && self.pause.is_none_or(|(until, _)| Instant::now() >= until)
    }

    /// Offers a turn.
    pub(super) fn offer(&mut self) {
        let began = Instant::now();
        std::thread::yield_now();
        let now = Instant::now();
        self.took(now - began, now);
    }

    /// It came back at `now`, after so long.
    fn took(&mut self, time: Duration, now: Instant) {
        if time >= LONG {
            let (least, most) = PAUSES;
            let again = self.pause.filter(|(until, pause)| now.saturating_duration_since(*until) < *pause);
            let pause = again.map_or(least, |(_, pause)| (pause * 2).min(most));
            self.pause = Some((now + pause, pause));
        }
    }
}

/// Returns how many bytes are taken at once.
pub(super) fn piece(offers: bool) -> usize {
    if offers { SHORT } else { PIECE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_come_back_late_end_the_offers_for_a_while_and_longer_the_next_time() {
        let mut turns = Turns::default();
        let now = Instant::now();
        turns.took(LONG - Duration::from_nanos(1), now);
        assert!(turns.are_offered(50, 100));
        assert!(!turns.are_offered(51, 100));

        turns.took(LONG, now);
        assert!(!turns.are_offered(0, 100));
        let (until, pause) = turns.pause.unwrap();
        assert_eq!((until, pause), (now + PAUSES.0, PAUSES.0));
        // Soon after.
        turns.took(LONG, until);
        let (until, pause) = turns.pause.unwrap();
        assert_eq!(pause, PAUSES.0 * 2);
        // Long after.
        turns.took(LONG, until + pause);
        assert_eq!(turns.pause.unwrap().1, PAUSES.0);
        (0..100).for_each(|_| {
            let (until, _) = turns.pause.unwrap();
            turns.took(LONG, until);
        });
        assert_eq!(turns.pause.unwrap().1, PAUSES.1);
    }
}
