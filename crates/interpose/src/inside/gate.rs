//! Many at a time, or one alone; nobody waits.
//!
//! `tests/loom_gate.rs` explores the interleavings.

use crate::primitive::{AtomicU32, Ordering};

/// Lets many in at a time, or one alone. Zeros are one through which nobody has come yet.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

/// One is inside alone; below it is how many try.
const ALONE: u32 = 1 << 31;

impl Gate {
    /// Comes in with others. Returns whether that was possible; then [`Self::leave`] follows.
    pub fn enter(&self) -> bool {
        // What who was alone has written is seen.
        let is_open = self.0.fetch_add(1, Ordering::Acquire) & ALONE == 0;
        if !is_open {
            self.leave();
        }
        is_open
    }

    /// Goes out again.
    pub fn leave(&self) {
        // What was written inside is seen by who is alone next.
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Runs `work` with nobody else inside; nothing where somebody is.
    pub fn alone<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        self.0.compare_exchange(0, ALONE, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let done = work();
        // Those who were turned away meanwhile take themselves off.
        self.0.fetch_sub(ALONE, Ordering::Release);
        Some(done)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_gate_lets_many_in_or_one_alone() {
        let gate = Gate::default();
        assert!(gate.enter() && gate.enter());
        assert_eq!(gate.alone(|| ()), None);
        gate.leave();
        gate.leave();
        assert_eq!(gate.alone(|| gate.enter()), Some(false));
        assert_eq!(gate.alone(|| ()), Some(()), "who was not let in is out");
    }
}
