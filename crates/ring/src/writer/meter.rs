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
//!      down down                                    step 7, 8, 9: as 4, 5, 6, and most calls are only counted
//! ```
//! Where adding calls up is most of what is spent, a thread goes from step 4 to 7, from 5 to 8, and from 6 to 9: there it reads
//! the counter for one call in about [`Meter::EACH`], by chance, as a program's own rhythm could else hide a function for ever.
//!
//! What cannot be spared is not owed for ever: at the lowest step that is of use a thread owes what a second brings,
//! or what it owed when it came there, and no more. So it records in full again soon after the load is gone.
//!
//! What all threads do is decided by each for itself: no thread waits for another, and one that is quiet records
//! in full beside one that is not. A signal handler that comes in between makes a decision late at worst.

use super::cell::{Flag, Half, Word};

/// What is recorded at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// One of so many commands of a kind is timed.
    pub one_in: u32,
    /// Calls are added up.
    pub summed: bool,
    /// Of these most are only counted.
    pub counted: bool,
}

/// All steps, down from the first.
pub const STEPS: [Step; 10] = [
    Step { one_in: 1, summed: false, counted: false },
    Step { one_in: 4, summed: false, counted: false },
    Step { one_in: 16, summed: false, counted: false },
    Step { one_in: 64, summed: false, counted: false },
    Step { one_in: 64, summed: true, counted: false },
    Step { one_in: 1 << 10, summed: true, counted: false },
    Step { one_in: 1 << 16, summed: true, counted: false },
    Step { one_in: 64, summed: true, counted: true },
    Step { one_in: 1 << 10, summed: true, counted: true },
    Step { one_in: 1 << 16, summed: true, counted: true },
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
/// Ticks, about a tenth of a second: what was spent before hardly counts when it is asked what a step takes.
const RECENT: u64 = PATIENCE * 4;
/// Ticks, about a tenth of a second, after which what was added up becomes records.
const FLUSHED: u64 = RECENT;
/// Ticks, some twenty microseconds: no driver takes longer for timing a command, as far as is known.
const DRIVER: u64 = 1 << 16;
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
    /// What `credit` was when the thread came to its step.
    owed: Word,
    /// When the thread came to its step.
    stepped: Word,
    /// Ticks spent since then.
    spent: Word,
    /// From when on the next two count: the step's begin, or some time ago.
    recently: Word,
    /// Ticks spent since then.
    recent: Word,
    /// Ticks that commands took since then.
    fresh: Word,
    /// Ticks that commands took so far, at the last look.
    commands: Word,
    /// When sums became records last.
    flushed: Word,
    /// Commands that the thread had counted at the last look.
    counted: Word,
    /// 1 if they come so often that the budget would not be kept by a driver that takes [`DRIVER`] for timing each.
    pressed: Half,
    /// The call that enqueued the last command, as whoever learns what drivers take keeps it; 0: none.
    last_command: Word,
    /// How many calls are only counted before the next one that is not.
    left: Half,
    /// How many they were, when that was decided.
    drawn: Half,
    /// What chance has come to.
    chance: Half,
    /// The last look.
    looked: Word,
    /// The present call is added up, or only counted.
    adds_up: Flag,
}

/// What a look at a [`Meter`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The thread went to another step. Until then it had spent so much, in parts per million of the time.
    pub stepped: Option<u32>,
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
            owed: Word::new(),
            stepped: Word::new(),
            spent: Word::new(),
            recently: Word::new(),
            recent: Word::new(),
            fresh: Word::new(),
            commands: Word::new(),
            flushed: Word::new(),
            counted: Word::new(),
            pressed: Half::new(),
            last_command: Word::new(),
            left: Half::new(),
            drawn: Half::new(),
            chance: Half::new(),
            looked: Word::new(),
            adds_up: Flag::new(),
        }
    }

    /// Begins at a counter value, with so many ticks to spend; the first step may be taken at once. `commands` are the
    /// ticks that timed commands took in the thread's ring until now: those of threads that had it before.
    pub fn begin(&self, now: u64, credit: u64, commands: u64) {
        for word in [&self.spent, &self.recent, &self.fresh, &self.owed] {
            word.set(0);
        }
        for word in [&self.credited, &self.recently, &self.flushed] {
            word.set(now);
        }
        self.stepped.set(now.saturating_sub(SETTLED + 1));
        self.credit.set(credit);
        self.commands.set(commands);
        self.step.set(0);
        self.calls.set(0);
        self.pressed.set(0);
        self.last_command.set(0);
        self.chance.set(now as u32);
        self.adds_up.set(false);
        self.looked.set(now);
        self.draw();
    }

    /// Begins at the step of a number.
    pub fn begin_at(&self, step: u32) {
        self.step.set(step.min(STEPS.len() as u32 - 1));
        self.draw();
    }

    /// Returns the number of the present step.
    pub fn number(&self) -> u32 {
        self.step.get()
    }

    /// The thread goes on in another ring, in which timed commands took so many ticks until now; in the old one it
    /// was `old`.
    pub fn moved(&self, old: u64, commands: u64) {
        self.charge(old);
        self.commands.set(commands);
    }

    /// Returns the present step.
    #[inline]
    pub fn step(&self) -> Step {
        *STEPS.get(self.step.get() as usize).unwrap_or(&STEPS[0])
    }

    /// Whether a call that may be added up is to be counted only: at a step where most are, but for one in about
    /// [`Self::EACH`].
    #[inline(always)]
    pub fn only_counts(&self) -> bool {
        let left = self.left.get();
        if left == 0 {
            return false;
        }
        self.left.set(left - 1);
        true
    }

    /// Whether [`only_counts`](Self::only_counts) would be true.
    #[inline(always)]
    pub fn may_only_count(&self) -> bool {
        self.left.get() != 0
    }

    /// Whether the present call is added up or counted, instead of being recorded.
    #[inline(always)]
    pub fn adds_up(&self) -> bool {
        self.adds_up.get()
    }

    /// A call begins, which is added up or counted, or is not.
    #[inline(always)]
    pub fn call(&self, adds_up: bool) {
        self.adds_up.set(adds_up);
    }

    /// How many calls were only counted before this one, which is not; from now on more are.
    pub fn draw(&self) -> u64 {
        let passed = self.drawn.get().saturating_sub(self.left.get());
        let chance = self.chance.get().wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        self.chance.set(chance);
        // From EACH / 2 to EACH * 3 / 2.
        let drawn = if self.step().counted { Self::EACH / 2 + (chance >> 16) % (Self::EACH + 1) } else { 0 };
        self.drawn.set(drawn);
        self.left.set(drawn);
        passed.into()
    }

    /// The counter's value at the last look: what is only counted was later.
    #[inline]
    pub fn looked(&self) -> u64 {
        self.looked.get()
    }

    /// Counts a call. Returns whether it is time for a look.
    #[inline]
    pub fn count(&self) -> bool {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        calls.is_multiple_of(Self::EACH)
    }

    /// The next call that is counted is one that looks.
    #[inline]
    pub fn look_soon(&self) {
        self.calls.set((Self::EACH - 1) | (self.calls.get() & !(Self::EACH - 1)));
    }

    /// Spends so many ticks.
    #[inline]
    pub fn spend(&self, ticks: u64) {
        self.credit.fetch_add(ticks.wrapping_neg());
        self.spent.fetch_add(ticks);
        self.recent.fetch_add(ticks);
    }

    /// Whether so many ticks may be spent at once, where `ppm` of the time may be: they were saved, but for what may be
    /// owed without a thread having to wait for long until it goes up again.
    pub fn affords(&self, ppm: u32, ticks: u64) -> bool {
        let most = (SAVED / MILLION * u64::from(ppm)).cast_signed();
        let left = self.credit.get().cast_signed().saturating_sub(ticks.min(i64::MAX as u64).cast_signed());
        left > -most / ENOUGH
    }

    /// The thread has a ring in which so many commands were counted before.
    pub fn begin_counting(&self, counted: u64) {
        self.counted.set(counted);
    }

    /// Notes how many commands the thread has counted so far; to be called before each look. `ppm` of the time may be
    /// spent.
    pub fn note_commands(&self, now: u64, ppm: u32, counted: u64) {
        let fresh = counted.saturating_sub(self.counted.get());
        self.counted.set(counted);
        let since = now.saturating_sub(self.credited.get());
        let most = u128::from(since) * u128::from(ppm) / u128::from(MILLION);
        // All of the time can't be exceeded.
        let is_limit = u64::from(ppm) < MILLION;
        self.pressed.set(u32::from(is_limit && u128::from(fresh) * u128::from(DRIVER) > most));
    }

    /// Whether it matters what the driver takes for timing a command: where commands are few, whatever that is is within
    /// the budget.
    pub fn is_pressed(&self) -> bool {
        self.pressed.get() != 0
    }

    /// Keeps what is known of the call that enqueued the thread's last command; returns that of the one before, 0 if
    /// there was none.
    #[inline]
    pub fn replace_last_command(&self, call: u64) -> u64 {
        let before = self.last_command.get();
        self.last_command.set(call);
        before
    }

    /// Spends what commands took since the last look.
    fn charge(&self, commands: u64) {
        let fresh = commands.wrapping_sub(self.commands.get());
        self.commands.set(commands);
        self.fresh.fetch_add(fresh);
        self.spend(fresh);
    }

    /// Looks at the account: `ppm` of the time may be spent, and `commands` are the ticks that all timed commands
    /// took so far.
    pub fn look(&self, now: u64, ppm: u32, commands: u64) -> Look {
        self.charge(commands);
        self.looked.set(now);
        let ppm = u64::from(ppm);
        let most = (SAVED / MILLION * ppm).cast_signed();
        let credit = self.earn(now, ppm, most);
        let rate = self.rate(now);
        let since = now.saturating_sub(self.stepped.get());
        let step = self.step.get() as usize;
        let next = if credit < 0 && since > SETTLED && rate > ppm {
            self.down(step)
        } else if credit > most / ENOUGH && since > PATIENCE {
            self.up(step)
        } else {
            step
        };
        if next == step {
            let flush = self.step().summed && now.saturating_sub(self.flushed.get()) > FLUSHED;
            if flush {
                self.flushed.set(now);
            }
            return Look { stepped: None, flush };
        }
        let spent = parts(self.spent.get(), since);
        self.step.set(next as u32);
        self.owed.set(credit.cast_unsigned());
        for word in [&self.stepped, &self.recently, &self.flushed] {
            word.set(now);
        }
        for word in [&self.spent, &self.recent, &self.fresh] {
            word.set(0);
        }
        let spent = u32::try_from(spent).unwrap_or(u32::MAX);
        self.draw();
        // What was added up so far belongs to the step that ends.
        Look { stepped: Some(spent), flush: true }
    }

    /// Adds what time has brought. Returns what the thread has now, `most` at most.
    fn earn(&self, now: u64, ppm: u64, most: i64) -> i64 {
        let passed = now.saturating_sub(self.credited.get());
        self.credited.set(now);
        let brought = (u128::from(passed) * u128::from(ppm) / u128::from(MILLION)) as u64;
        let mut credit = self.credit.get().wrapping_add(brought).cast_signed().min(most);
        let step = self.step.get() as usize;
        if self.down(step) == step {
            credit = credit.max(self.owed.get().cast_signed().min(-most));
        }
        self.credit.set(credit.cast_unsigned());
        credit
    }

    /// What was spent recently, in parts per million of the time.
    fn rate(&self, now: u64) -> u64 {
        let since = now.saturating_sub(self.recently.get());
        let rate = parts(self.recent.get(), since);
        if since > RECENT {
            self.recently.set(now - since / 2);
            for word in [&self.recent, &self.fresh] {
                word.fetch_add((word.get() / 2).wrapping_neg());
            }
        }
        rate
    }

    /// The next step down: not one that spares commands where they hardly take anything, nor one that spares calls where
    /// commands take most.
    fn down(&self, step: usize) -> usize {
        let worth = self.fresh.get() > self.recent.get() / WORTH;
        match step {
            0..SUMMED if !worth => SUMMED,
            SUMMED..COUNTED if !worth || step + 1 == COUNTED => step + COUNTED - SUMMED,
            COUNTED.. if !worth => step,
            _ => step.saturating_add(1).min(STEPS.len() - 1),
        }
    }

    /// The next step up: not by way of others where there are no commands.
    fn up(&self, step: usize) -> usize {
        match step {
            SUMMED if self.commands.get() == 0 => 0,
            COUNTED => SUMMED,
            _ => step.saturating_sub(1),
        }
    }
}

/// How much of a time was spent, in parts per million.
fn parts(spent: u64, time: u64) -> u64 {
    let parts = u128::from(spent) * u128::from(MILLION) / u128::from(time.max(1));
    u64::try_from(parts).unwrap_or(u64::MAX)
}

/// The first step at which calls are added up.
const SUMMED: usize = 4;
const _: () = assert!(STEPS[SUMMED].summed && !STEPS[SUMMED - 1].summed);
/// The first step at which most of them are only counted.
const COUNTED: usize = 7;
const _: () = assert!(STEPS[COUNTED].counted && !STEPS[COUNTED - 1].counted);

#[cfg(test)]
mod tests;
