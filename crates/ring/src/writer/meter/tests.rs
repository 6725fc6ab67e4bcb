//! Made-up threads, whose calls and commands take known times.

use super::*;

const PPM: u32 = 20_000;

/// What a call takes that is recorded, added up, or only counted.
const COSTS: [u64; 3] = [200, 50, 15];

/// A call of a thread, as `hetrace_interpose::budget` does it. Returns what it takes, and whether there was a step.
fn call(meter: &Meter, now: u64, ppm: u32, commands: u64) -> (u64, bool) {
    if meter.only_counts() {
        return (COSTS[2], false);
    }
    let counted = if meter.step().counted { meter.draw() } else { 0 };
    meter.spend(counted * COSTS[2]);
    let looks = meter.count() || counted >= u64::from(Meter::EACH) / 2;
    let stepped = looks && meter.look(now, ppm, commands).stepped.is_some();
    let cost = COSTS[usize::from(meter.step().summed)];
    meter.spend(cost);
    (cost, stepped)
}

/// A thread that makes a call each `apart` ticks, of which each times a command at `each` ticks if it
/// is its turn. Returns what was spent, and the steps that it went.
fn run(meter: &Meter, mut now: u64, calls: u64, apart: u64, each: u64) -> (u64, Vec<Step>, u64) {
    let (mut spent, mut steps, mut commands) = (0, Vec::new(), meter.commands.get());
    for number in 0..calls {
        now += apart;
        let (cost, stepped) = call(meter, now, PPM, commands);
        steps.extend(stepped.then(|| meter.step()));
        let step = meter.step();
        spent += cost;
        if each > 0 && number % u64::from(step.one_in) == 0 {
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
    assert!(steps.iter().all(|step| !step.counted), "that is enough: {steps:?}");
}

#[test]
fn where_adding_calls_up_is_too_much_most_are_only_counted() {
    // Adding up would take four percent.
    let meter = meter();
    let (spent, steps, now) = run(&meter, 1000, 5_000_000, 1200, 0);
    assert!(steps.contains(&STEPS[COUNTED]), "{steps:?}");
    assert!(spent * 1000 < now * 21, "{spent} of {now}");
    // Back up, and the same burst comes down again.
    let (_, steps, now) = run(&meter, now, 20_000, 1_000_000, 0);
    assert_eq!(steps.last(), Some(&STEPS[0]), "{steps:?}");
    let (_, steps, _) = run(&meter, now, 1_000_000, 1200, 0);
    assert!(steps.contains(&STEPS[COUNTED]), "{steps:?}");
}

#[test]
fn which_calls_are_timed_is_left_to_chance() {
    let meter = meter();
    meter.begin_at(COUNTED as u32);
    let timed: Vec<u32> = (0..100_000).filter(|_| !meter.only_counts() && meter.draw() < 1 << 20).collect();
    let each = 100_000 / timed.len() as u32;
    assert!((Meter::EACH..=Meter::EACH + 2).contains(&each), "{each}");
    // A program that makes calls of two, four, or sixteen functions in turn: each has its share.
    for functions in [2, 4, 16] {
        for function in 0..functions {
            let share = timed.iter().filter(|call| *call % functions == function).count() as u32 * functions;
            assert!((80..=120).contains(&(share * 100 / timed.len() as u32)), "{function} of {functions}");
        }
    }
}

#[test]
fn what_was_only_counted_is_known_with_the_next_call() {
    let meter = meter();
    assert!(!meter.only_counts(), "at the first step nothing is");
    meter.begin_at(COUNTED as u32);
    let passed = (0..).take_while(|_| meter.only_counts()).count() as u64;
    assert_eq!(meter.draw(), passed);
}

#[test]
fn what_cannot_be_kept_is_as_little_as_there_is() {
    // Nothing is won by timing even fewer where the calls are what takes the time.
    let (spent, steps, now) = run(&meter(), 1000, 5_000_000, 500, 300);
    assert_eq!(steps.last(), Some(&STEPS[COUNTED + 1]), "{steps:?}");
    assert!(spent * 100 < now * 12, "{spent} of {now}");
    let (spent, steps, now) = run(&meter(), 1000, 50_000_000, 500, 100_000);
    assert_eq!(steps.last(), Some(&STEPS[9]), "{steps:?}");
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
const HOPELESS: Load = Load { apart: 120, commands_one_in: 1 << 40, each: 0 };

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
            let (cost, _) = call(&self.meter, self.now, self.ppm, self.commands);
            let step = self.meter.step();
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
    // Six percent when calls are only counted, a quarter of the time.
    let load = Load { apart: 300, ..HOPELESS };
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

#[test]
fn some_work_is_affordable_that_is_owed_for_a_while() {
    let meter = Meter::new();
    meter.begin(1000, 2_000_000, 0);
    // Two per cent of a second may be saved, of which a quarter may be owed.
    let owed = SAVED / MILLION * u64::from(PPM) / 4;
    assert!(meter.affords(PPM, 2_000_000 + owed - 10) && !meter.affords(PPM, 2_000_000 + owed + 10));
    meter.spend(2_000_000);
    assert!(meter.affords(PPM, owed - 10) && !meter.affords(PPM, owed + 10));
    assert!(!meter.affords(PPM, u64::MAX) && !meter.affords(0, 1), "no number is too large");
}

#[test]
fn a_call_may_only_be_counted_where_only_counts_says_so() {
    let meter = Meter::new();
    meter.begin(1000, 1, 0);
    assert!(!meter.may_only_count() && !meter.only_counts());
    meter.begin_at(9);
    let mut counted = 0;
    while meter.may_only_count() {
        assert!(meter.only_counts());
        counted += 1;
    }
    assert!(!meter.only_counts());
    assert!((u64::from(Meter::EACH) / 2..=u64::from(Meter::EACH) * 3 / 2).contains(&counted), "{counted}");
    assert_eq!(meter.draw(), counted);
}

#[test]
fn a_look_that_could_not_be_is_the_next_ones() {
    let meter = Meter::new();
    let looks = |calls: u32| (0..calls).filter(|_| meter.count()).count();
    assert_eq!(looks(Meter::EACH), 1);
    meter.look_soon();
    assert!(meter.count());
    meter.look_soon();
    meter.look_soon();
    assert_eq!((looks(1), looks(Meter::EACH - 1), looks(1)), (1, 0, 1));
}
