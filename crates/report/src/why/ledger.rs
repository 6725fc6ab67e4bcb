//! What a device did over time, coarsely: sums of slices of its time, so that a part of the time can be asked for
//! when the whole has been seen.

use super::causes::Cause;

/// Slices; when there are so many, each two become one.
const SLICES: usize = 512;

/// Sums up to a moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// At least one command ran.
    pub busy: u64,
    /// Something was computed and something copied.
    pub both: u64,
    /// By part: at least one command of it ran.
    pub parts: [u64; 4],
    /// What others could have run beside kernels that waited for each other on one queue.
    pub room: u64,
    /// The same of kernels of which nobody knows whether they need each other.
    pub room_unknown: u64,
    /// How often something was copied after something had been computed.
    pub rounds: u64,
}

impl Totals {
    fn since(&self, base: &Totals) -> Totals {
        let mut parts = self.parts;
        parts.iter_mut().zip(base.parts).for_each(|(part, base)| *part = part.saturating_sub(base));
        Totals {
            busy: self.busy.saturating_sub(base.busy),
            both: self.both.saturating_sub(base.both),
            parts,
            room: self.room.saturating_sub(base.room),
            room_unknown: self.room_unknown.saturating_sub(base.room_unknown),
            rounds: self.rounds.saturating_sub(base.rounds),
        }
    }

    fn add(&mut self, other: &Totals) {
        self.busy = self.busy.saturating_add(other.busy);
        self.both = self.both.saturating_add(other.both);
        self.room = self.room.saturating_add(other.room);
        self.room_unknown = self.room_unknown.saturating_add(other.room_unknown);
        self.rounds = self.rounds.saturating_add(other.rounds);
        self.parts.iter_mut().zip(other.parts).for_each(|(part, more)| *part = part.saturating_add(more));
    }
}

/// Idle time of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Idle {
    pub cause: Cause,
    /// Whether it is of gaps that began while the thread waited for the device.
    pub drained: bool,
    pub ns: u64,
    pub gaps: u64,
}

/// A part of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub from: u64,
    pub to: u64,
    pub totals: Totals,
    /// Idle time by cause, and in how many gaps it was.
    pub causes: Vec<Idle>,
}

impl Slice {
    fn spend(&mut self, idle: Idle) {
        let same = |known: &&mut Idle| known.cause == idle.cause && known.drained == idle.drained;
        match self.causes.iter_mut().find(same) {
            Some(known) => {
                known.ns = known.ns.saturating_add(idle.ns);
                known.gaps = known.gaps.saturating_add(idle.gaps);
            }
            None => self.causes.push(idle),
        }
    }

    fn add(&mut self, other: &Slice) {
        self.to = other.to;
        self.totals.add(&other.totals);
        for idle in &other.causes {
            self.spend(*idle);
        }
    }

    /// How long it is.
    pub fn ns(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// All slices, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    closed: Vec<Slice>,
    open: Slice,
    base: Totals,
    begun: bool,
    /// A slice is closed when it is so long.
    interval: u64,
}

impl Ledger {
    /// A part of a gap, which has just ended.
    pub fn idle(&mut self, idle: Idle) {
        self.open.spend(idle);
    }

    /// A command begins; `totals` are up to then.
    pub fn mark(&mut self, time: u64, totals: Totals) {
        if !self.begun {
            self.begun = true;
            self.open = Slice { from: time, to: time, ..Slice::default() };
            self.base = totals;
            return;
        }
        if time <= self.open.from || time - self.open.from < self.interval {
            return;
        }
        self.close(time, totals);
        if self.closed.len() >= SLICES {
            let whole = std::mem::take(&mut self.closed);
            for pair in whole.chunks(2) {
                let mut pair = pair.iter().cloned();
                let Some(mut one) = pair.next() else { continue };
                pair.for_each(|other| one.add(&other));
                self.closed.push(one);
            }
            let from = self.closed.first().map_or(time, |slice| slice.from);
            self.interval =
                self.interval.saturating_mul(2).max(time.saturating_sub(from) / (SLICES as u64 / 2));
        }
    }

    fn close(&mut self, time: u64, totals: Totals) {
        self.open.to = time.max(self.open.from);
        self.open.totals = totals.since(&self.base);
        self.base = totals;
        let next = Slice { from: self.open.to, to: self.open.to, ..Slice::default() };
        self.closed.push(std::mem::replace(&mut self.open, next));
    }

    /// The last command has ended.
    pub fn finish(&mut self, time: u64, totals: Totals) {
        if self.begun {
            self.close(time, totals);
        }
    }

    /// The sums of a time, from the first slice that begins in it to the last one that ends in it.
    pub fn of(&self, from: u64, to: u64) -> Slice {
        let mut inside = self.closed.iter().filter(|slice| slice.from >= from && slice.to <= to);
        let mut sum = inside.next().cloned().unwrap_or_default();
        inside.for_each(|slice| sum.add(slice));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up_however_often_they_are_joined() {
        let mut ledger = Ledger::default();
        // A command of 6 ns every 10 ns, and a gap of 4 ns before each.
        for n in 0..100_000_u64 {
            if n > 0 {
                ledger.idle(Idle { cause: Cause::Host, drained: false, ns: 4, gaps: 1 });
            }
            ledger.mark(10 * n, Totals { busy: 6 * n, ..Totals::default() });
        }
        ledger.finish(999_996, Totals { busy: 600_000, ..Totals::default() });
        assert!(ledger.closed.len() <= SLICES);
        let all = ledger.of(0, u64::MAX);
        assert_eq!((all.from, all.to, all.totals.busy), (0, 999_996, 600_000));
        let idle = Idle { cause: Cause::Host, drained: false, ns: 4 * 99_999, gaps: 99_999 };
        assert_eq!(all.causes, [idle]);
        let half = ledger.of(250_000, 750_000);
        assert!((480_000..=500_000).contains(&half.ns()), "{half:?}");
        assert_eq!(half.totals.busy + half.causes[0].ns, half.ns());
    }
}
