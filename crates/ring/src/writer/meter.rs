//! What recording takes of a thread's time, and what it does to keep within a budget.
//!
//! Time brings credit, and recording takes from it. A thread that has none left, and still spends more than
//! its share, goes one step down: first it times fewer commands, then it adds calls up. It goes up again when
//! enough credit has come together, which in a quiet phase takes a fraction of a second.
//!
//! ```text
//!   credit                                          step 0: all
//!   │╲   ╱╲                                         step 1, 2, 3: one command in 4, 16, 64 is timed
//!   │ ╲ ╱  ╲    ╱                                   step 4: calls are added up, too
//!  0├──▼────▼──╱──── time                           step 5, 6: one command in 1024, in 65536
//!      down down
//! ```
//!
//! What all threads do is decided by each for itself: no thread waits for another, and one that is quiet records
//! in full beside one that is not. A signal handler that comes in between makes a decision late at worst.

use super::cell::{Half, Word};

/// What is recorded at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// One of so many commands of a kind is timed.
    pub one_in: u32,
    /// Calls are added up.
    pub summed: bool,
}

/// All steps, down from the first.
pub const STEPS: [Step; 7] = [
    Step { one_in: 1, summed: false },
    Step { one_in: 4, summed: false },
    Step { one_in: 16, summed: false },
    Step { one_in: 64, summed: false },
    Step { one_in: 64, summed: true },
    Step { one_in: 1 << 10, summed: true },
    Step { one_in: 1 << 16, summed: true },
];

/// Ticks, about a second, whose credit may be saved.
const SAVED: u64 = 1 << 31;
/// Of the most that can be saved, so much must be there before a thread goes up.
const ENOUGH: i64 = 4;
/// Ticks, about a millisecond, after which the effect of a step is seen.
const SETTLED: u64 = 1 << 21;
/// Where commands take less than one part in so many of what is spent, timing fewer of them is of no use.
const WORTH: u64 = 8;
/// Ticks, some tens of milliseconds, before a thread goes up.
const PATIENCE: u64 = 1 << 26;
/// What is in a part per million.
const MILLION: u64 = 1_000_000;

/// A thread's account.
#[derive(Debug)]
pub struct Meter {
    /// Calls, of which every [`Meter::EACH`]th looks at the clock.
    calls: Half,
    step: Half,
    /// Up to when time has brought credit; 0 before the first look.
    credited: Word,
    /// Ticks that may be spent, as a signed number.
    credit: Word,
    /// When the thread came to its step.
    stepped: Word,
    /// Ticks spent since then.
    spent: Word,
    /// Ticks that commands took so far, at the last look.
    commands: Word,
    /// Ticks that commands took since the thread came to its step.
    fresh: Word,
    /// When sums became records last.
    flushed: Word,
}

/// What a look at a [`Meter`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The step to which the thread went, and what it had spent, in parts per million of the time.
    pub stepped: Option<(Step, u32)>,
    /// It is time to make records of what was added up.
    pub flush: bool,
}

impl Meter {
    /// Calls between two looks.
    pub const EACH: u32 = 16;

    /// A new account.
    #[allow(clippy::new_without_default, reason = "never made but in a writer")]
    pub const fn new() -> Self {
        Meter {
            calls: Half::new(),
            step: Half::new(),
            credited: Word::new(),
            credit: Word::new(),
            stepped: Word::new(),
            spent: Word::new(),
            commands: Word::new(),
            fresh: Word::new(),
            flushed: Word::new(),
        }
    }

    /// Begins at a counter value, with so many ticks to spend.
    pub fn begin(&self, now: u64, credit: u64) {
        for word in [&self.spent, &self.commands, &self.fresh] {
            word.set(0);
        }
        for word in [&self.credited, &self.stepped, &self.flushed] {
            word.set(now);
        }
        self.credit.set(credit);
        self.step.set(0);
        self.calls.set(0);
    }

    /// Returns the present step.
    #[inline]
    pub fn step(&self) -> Step {
        *STEPS.get(self.step.get() as usize).unwrap_or(&STEPS[0])
    }

    /// Counts a call. Returns whether it is time for a look.
    #[inline]
    pub fn count(&self) -> bool {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        calls % Self::EACH == 0
    }

    /// Spends so many ticks.
    #[inline]
    pub fn spend(&self, ticks: u64) {
        self.credit.fetch_add(ticks.wrapping_neg());
        self.spent.fetch_add(ticks);
    }

    /// Looks at the account: `ppm` of the time may be spent, and `commands` are the ticks that all timed commands
    /// took so far.
    pub fn look(&self, now: u64, ppm: u32, commands: u64) -> Look {
        let fresh = commands.wrapping_sub(self.commands.get());
        self.commands.set(commands);
        self.fresh.fetch_add(fresh);
        self.spend(fresh);
        let ppm = u64::from(ppm);
        let passed = now.saturating_sub(self.credited.get());
        self.credited.set(now);
        let most = (SAVED / MILLION * ppm).cast_signed();
        let brought = (u128::from(passed) * u128::from(ppm) / u128::from(MILLION)) as u64;
        let credit = self.credit.get().wrapping_add(brought).cast_signed().min(most);
        self.credit.set(credit.cast_unsigned());
        let since = now.saturating_sub(self.stepped.get());
        let rate = self.spent.get().saturating_mul(MILLION) / since.max(1);
        let step = self.step.get() as usize;
        let next = if credit < 0 && since > SETTLED && rate > ppm {
            self.down(step)
        } else if credit > most / ENOUGH && since > PATIENCE {
            self.up(step)
        } else {
            step
        };
        if next == step {
            let flush = self.step().summed && now.saturating_sub(self.flushed.get()) > PATIENCE * 4;
            if flush {
                self.flushed.set(now);
            }
            return Look { stepped: None, flush };
        }
        self.step.set(next as u32);
        self.stepped.set(now);
        self.flushed.set(now);
        self.spent.set(0);
        self.fresh.set(0);
        let spent = u32::try_from(rate).unwrap_or(u32::MAX);
        // What was added up so far belongs to the step that ends.
        Look { stepped: Some((self.step(), spent)), flush: true }
    }

    /// The next step down: not one that spares commands where they hardly take anything.
    fn down(&self, step: usize) -> usize {
        let below = step.saturating_add(1).min(STEPS.len() - 1);
        let worth = self.fresh.get() > self.spent.get() / WORTH;
        if worth { below } else { SUMMED.max(step) }
    }

    /// The next step up: not by way of others where there are no commands.
    fn up(&self, step: usize) -> usize {
        if step == SUMMED && self.commands.get() == 0 { 0 } else { step.saturating_sub(1) }
    }
}

/// The first step at which calls are added up.
const SUMMED: usize = 4;
const _: () = assert!(STEPS[SUMMED].summed && !STEPS[SUMMED - 1].summed);

#[cfg(test)]
mod tests {
    use super::*;

    const PPM: u32 = 20_000;

    /// A thread that makes a call each `apart` ticks, of which each times a command at `each` ticks if it
    /// is its turn. Returns what was spent, and the steps that it went.
    fn run(meter: &Meter, mut now: u64, calls: u64, apart: u64, each: u64) -> (u64, Vec<Step>, u64) {
        let (mut spent, mut steps, mut commands) = (0, Vec::new(), meter.commands.get());
        for call in 0..calls {
            now += apart;
            if meter.count() {
                steps.extend(meter.look(now, PPM, commands).stepped.map(|(step, _)| step));
            }
            let step = meter.step();
            let cost = if step.summed { 50 } else { 200 };
            meter.spend(cost);
            spent += cost;
            if each > 0 && call % u64::from(step.one_in) == 0 {
                commands += each;
                spent += each;
            }
        }
        (spent, steps, now)
    }

    fn meter() -> Meter {
        let meter = Meter::new();
        meter.begin(1000, 1 << 17);
        meter
    }

    #[test]
    fn a_quiet_thread_stays_where_it_is() {
        let (spent, steps, end) = run(&meter(), 1000, 100_000, 200_000, 2000);
        assert!(steps.is_empty() && spent * 50 < end, "{steps:?}, {spent} of {end}");
    }

    #[test]
    fn a_busy_thread_keeps_within_the_budget_and_comes_back() {
        let meter = meter();
        // Commands of 2000 ticks each 20000: ten percent, and calls one percent more.
        let (spent, steps, now) = run(&meter, 1000, 2_000_000, 20_000, 2000);
        assert_eq!(steps.first(), Some(&STEPS[1]));
        assert!(steps.iter().all(|s| !s.summed), "sampling is enough: {steps:?}");
        assert!(spent * 1000 < now * 21, "{spent} of {now}");
        let (_, steps, _) = run(&meter, now, 20_000, 1_000_000, 2000);
        assert_eq!(steps.last(), Some(&STEPS[0]), "{steps:?}");
    }

    #[test]
    fn where_no_commands_are_timed_calls_are_added_up_at_once() {
        let meter = meter();
        let (spent, steps, now) = run(&meter, 1000, 5_000_000, 4000, 0);
        assert_eq!(steps.first(), Some(&STEPS[SUMMED]));
        assert!(spent * 1000 < now * 21, "{spent} of {now}");
    }

    #[test]
    fn what_cannot_be_kept_is_as_little_as_there_is() {
        // Nothing is won by timing none where the calls are what takes the time.
        let (spent, steps, now) = run(&meter(), 1000, 5_000_000, 500, 300);
        assert_eq!(steps.last(), Some(&STEPS[SUMMED]), "{steps:?}");
        assert!(spent * 100 < now * 12, "{spent} of {now}");
        let (spent, steps, now) = run(&meter(), 1000, 50_000_000, 500, 100_000);
        assert_eq!(steps.last(), Some(&STEPS[6]), "{steps:?}");
        assert!(spent * 7 < now, "{spent} of {now}");
    }
}
