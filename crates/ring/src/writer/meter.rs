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
//! What cannot be spared is not owed for ever: at the lowest step that is of use a thread owes what a second brings,
//! or what it owed when it came there, and no more. So it records in full again soon after the load is gone.
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
    }

    /// Begins at the step of a number.
    pub fn begin_at(&self, step: u32) {
        self.step.set(step.min(STEPS.len() as u32 - 1));
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

    /// Counts a call. Returns whether it is time for a look.
    #[inline]
    pub fn count(&self) -> bool {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        calls.is_multiple_of(Self::EACH)
    }

    /// Spends so many ticks.
    #[inline]
    pub fn spend(&self, ticks: u64) {
        self.credit.fetch_add(ticks.wrapping_neg());
        self.spent.fetch_add(ticks);
        self.recent.fetch_add(ticks);
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

    /// The next step down: not one that spares commands where they hardly take anything.
    fn down(&self, step: usize) -> usize {
        let below = step.saturating_add(1).min(STEPS.len() - 1);
        let worth = self.fresh.get() > self.recent.get() / WORTH;
        if worth { below } else { SUMMED.max(step) }
    }

    /// The next step up: not by way of others where there are no commands.
    fn up(&self, step: usize) -> usize {
        if step == SUMMED && self.commands.get() == 0 { 0 } else { step.saturating_sub(1) }
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
                steps.extend(meter.look(now, PPM, commands).stepped.map(|_| meter.step()));
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
        meter.begin(1000, 1 << 17, 0);
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

    /// A second, about.
    const SECOND: u64 = SAVED;

    /// What a thread does for a time: a call each so many ticks, of which one in so many times a command at so many
    /// ticks if it is its turn.
    #[derive(Clone, Copy)]
    struct Load {
        apart: u64,
        commands_one_in: u64,
        each: u64,
    }

    const QUIET: Load = Load { apart: 2_000_000, commands_one_in: 4, each: 2000 };
    const BUSY: Load = Load { apart: 4000, commands_one_in: 4, each: 2000 };
    /// Nothing can keep it within two percent.
    const HOPELESS: Load = Load { apart: 400, commands_one_in: 1 << 40, each: 0 };

    /// A thread under a load that is another at times, with a budget.
    struct Thread {
        meter: Meter,
        ppm: u32,
        now: u64,
        calls: u64,
        spent: u64,
        commands: u64,
    }

    impl Thread {
        fn new(ppm: u32) -> Thread {
            let meter = Meter::new();
            meter.begin(1000, 1 << 17, 0);
            Thread { meter, ppm, now: 1000, calls: 0, spent: 0, commands: 0 }
        }

        /// Returns what was spent, in parts per million of the time.
        fn under(&mut self, load: Load, ticks: u64) -> u64 {
            let (end, spent) = (self.now + ticks, self.spent);
            while self.now < end {
                self.now += load.apart;
                self.calls += 1;
                if self.meter.count() {
                    self.meter.look(self.now, self.ppm, self.commands);
                }
                let step = self.meter.step();
                let cost = if step.summed { 50 } else { 200 };
                self.meter.spend(cost);
                self.spent += cost;
                let turn = load.commands_one_in * u64::from(step.one_in);
                if self.calls.is_multiple_of(turn) {
                    self.commands += load.each;
                    self.spent += load.each;
                }
            }
            parts(self.spent - spent, ticks)
        }
    }

    #[test]
    fn a_burst_after_hours_of_quiet_is_found_at_once() {
        let mut thread = Thread::new(PPM);
        thread.under(QUIET, 3600 * SECOND);
        assert_eq!(thread.meter.step(), STEPS[0]);
        thread.under(BUSY, SECOND / 4);
        let rate = thread.under(BUSY, SECOND);
        assert!(rate <= 22_000, "{rate} of {PPM}");
    }

    #[test]
    fn what_could_not_be_kept_is_not_owed_for_ever() {
        let mut thread = Thread::new(PPM);
        let rate = thread.under(HOPELESS, 60 * SECOND);
        assert!(rate > 100_000, "{rate}: more than there is");
        assert!(thread.meter.step().summed);
        thread.under(QUIET, SECOND * 3 / 2);
        assert_eq!(thread.meter.step(), STEPS[0]);
    }

    #[test]
    fn phases_of_any_length_keep_within_the_budget() {
        for ppm in [1000, 20_000, 100_000] {
            for (busy, quiet) in [(1, 1), (1, 9), (9, 1)] {
                for length in [SECOND / 100, SECOND / 10, SECOND, 10 * SECOND] {
                    let mut thread = Thread::new(ppm);
                    let apart = BUSY.apart * 30_000 / u64::from(ppm.min(30_000));
                    let load = Load { apart, ..BUSY };
                    let began = thread.now;
                    for _ in 0..(20 * SECOND / length / (busy + quiet)).max(3) {
                        thread.under(load, busy * length);
                        thread.under(QUIET, quiet * length);
                    }
                    let rate = parts(thread.spent, thread.now - began);
                    assert!(rate <= u64::from(ppm) * 11 / 10, "{rate} of {ppm}: {busy}, {quiet} of {length}");
                }
            }
        }
    }

    #[test]
    fn bursts_that_no_step_keeps_are_paid_for_afterwards() {
        // Five percent when calls are added up, a quarter of the time.
        let load = Load { apart: 1000, ..HOPELESS };
        for length in [SECOND / 100, SECOND / 10, SECOND / 2, SECOND, 3 * SECOND] {
            let mut thread = Thread::new(PPM);
            let began = thread.now;
            for _ in 0..(20 * SECOND / length / 4).max(3) {
                thread.under(load, length);
                thread.under(QUIET, length * 3);
            }
            let rate = parts(thread.spent, thread.now - began);
            assert!(rate <= 22_000, "{rate} of {PPM}: {length}");
        }
    }

    #[test]
    fn where_commands_are_few_it_does_not_matter_what_a_driver_takes() {
        let meter = meter();
        let looked = |apart: u64| {
            let (mut now, mut pressed) = (1000, Vec::new());
            meter.begin(now, 1 << 17, 0);
            for commands in (0..64).step_by(16) {
                now += 16 * apart;
                meter.note_commands(now, PPM, commands);
                meter.look(now, PPM, 0);
                pressed.push(meter.is_pressed());
            }
            pressed.split_off(1)
        };
        // A fiftieth of the time is less than 65,536 ticks a command, and more.
        assert_eq!((looked(3_200_000), looked(3_400_000)), (vec![true; 3], vec![false; 3]));
    }

    #[test]
    fn another_ring_has_other_counts() {
        let meter = Meter::new();
        // A ring that others had before, whose commands took a second.
        meter.begin(1000, 1 << 17, SECOND);
        assert_eq!(meter.look(1000 + SETTLED * 2, PPM, SECOND + 10).stepped, None);
        // One that others had for longer, and one that nobody had.
        for commands in [40 * SECOND, 0] {
            meter.moved(SECOND + 20, commands);
            assert_eq!(meter.look(1000 + SETTLED * 4, PPM, commands + 30).stepped, None);
            meter.moved(commands + 30, SECOND + 20);
        }
        assert_eq!(meter.spent.get(), 10 + 10 + 30 + 30);
    }
}
