//! Simulated device clocks.

use super::*;
use proptest::prelude::*;

/// A device clock: `host = host0 + (dev − dev0) · (1 + ppb / 10⁹)`.
#[derive(Clone, Copy, Debug)]
struct Truth {
    dev0: u64,
    host0: u64,
    ppb: i64,
}

impl Truth {
    fn new(dev0: u64, host0: u64, ppb: i64) -> Self {
        Self { dev0, host0, ppb }
    }

    fn host(&self, dev: u64) -> u64 {
        let elapsed = i128::from(dev) - i128::from(self.dev0);
        let host = i128::from(self.host0) + elapsed + elapsed * i128::from(self.ppb) / 1_000_000_000;
        u64::try_from(host).unwrap()
    }
}

/// A command: a pause before it, then how long the enqueue call took before
/// the queued time and after it, the work, and until its completion was seen.
type Command = [u64; 5];

fn feed(clock: &mut DeviceClock, truth: &Truth, dev: &mut u64, c: Command) {
    evidence(truth, dev, c).into_iter().for_each(|e| clock.take(e));
}

/// Returns what CLUST has: nothing but the two inequalities.
fn evidence(truth: &Truth, dev: &mut u64, [pause, before, _, work, seen]: Command) -> [Evidence; 2] {
    let queued = *dev + pause;
    let end = queued + work;
    *dev = end;
    [
        Evidence { dev: queued, host: truth.host(queued) - before, kind: Kind::Lower },
        Evidence { dev: end, host: truth.host(end) + seen, kind: Kind::Upper },
    ]
}

fn log_uniform(from: f64, to: f64) -> impl Strategy<Value = u64> {
    (from.ln()..to.ln()).prop_map(|x| x.exp() as u64)
}

fn truths() -> impl Strategy<Value = Truth> {
    let bases = prop_oneof![Just(0), Just(1_700_000_000_000_000_000), 0u64..1 << 61];
    (bases, 1u64 << 40..1 << 61, -100_000i64..=100_000)
        .prop_map(|(dev0, host0, ppb)| Truth::new(dev0, host0, ppb))
}

fn commands(slack: (f64, f64), n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Command>> {
    let wait = || log_uniform(slack.0, slack.1);
    let command = (log_uniform(1e3, 1e8), wait(), wait(), log_uniform(1e3, 1e7), wait());
    prop::collection::vec(command.prop_map(|(a, b, c, d, e)| [a, b, c, d, e]), n)
}

fn assert_within(clock: &DeviceClock, truth: &Truth, devs: &[u64], limit: u64) -> Result<(), TestCaseError> {
    for &dev in devs {
        let off = clock.to_host(dev).abs_diff(truth.host(dev));
        prop_assert!(off <= limit, "{} ns off at {}, stated {}", off, dev, limit);
    }
    Ok(())
}

#[test]
fn one_sided_evidence_gives_a_guess_and_no_error() {
    let mut clock = DeviceClock::new();
    assert_eq!((clock.to_host(7), clock.error_ns(), clock.is_known()), (7, u64::MAX, false));
    clock.lower(1_000, 51_000);
    assert_eq!((clock.to_host(1_500), clock.error_at(1_500), clock.is_known()), (51_499, u64::MAX, false));
    clock.upper(1_200, 51_402);
    assert!(clock.is_known());
    assert!(clock.to_host(1_100).abs_diff(51_200) <= clock.error_ns());
    assert!(clock.error_ns() <= 110, "{}", clock.error_ns());
}

#[test]
fn direct_readings_give_the_rate() {
    let mut clock = DeviceClock::new();
    let truth = Truth::new(1 << 60, 1_000_000, 40_000);
    for n in 0..100 {
        let dev = truth.dev0 + n * 100_000_000;
        clock.direct(dev, truth.host(dev) + n % 50, 50);
    }
    assert!(clock.error_ns() < 60, "{}", clock.error_ns());
    let line = clock.lines().next().unwrap();
    assert!((line.drift - 40e-6).abs() <= line.drift_error && line.drift_error < 20e-9, "{line:?}");
    let later = truth.dev0 + 60_000_000_000;
    assert!(clock.to_host(later).abs_diff(truth.host(later)) <= clock.error_at(later));
}

#[test]
fn coarse_device_times_are_no_contradiction() {
    let mut clock = DeviceClock::with_resolution(1_000);
    for dev in (1_000_000..2_000_000_000u64).step_by(999_983) {
        clock.direct(dev / 1_000 * 1_000, dev + 5_000_000, 20);
    }
    assert_eq!((clock.epochs(), clock.rejected()), (1, 0));
    assert!(clock.error_ns() < 1_600);
}

/// 500 short commands; each piece of evidence arrives up to `late` places late.
fn run(clock: &mut DeviceClock, truth: &Truth, dev: &mut u64, late: usize) {
    let command = |n: u64| [1_000_000, 700 + n % 900, 0, 50_000, 800 + n % 700];
    let mut all: Vec<_> = (0..500).flat_map(|n| evidence(truth, dev, command(n))).collect();
    for (i, n) in (late..all.len()).zip((0usize..).step_by(7)) {
        all.swap(i, i - n % (late + 1));
    }
    all.into_iter().for_each(|e| clock.take(e));
}

/// The wall clock is set while a program runs on a device that uses it.
fn steps(by: i64, late: usize) {
    let before = Truth::new(1_700_000_000_000_000_000, 1 << 50, 3_000);
    let mut clock = DeviceClock::new();
    let mut dev = before.dev0;
    run(&mut clock, &before, &mut dev, late);
    let (old_end, error) = (dev, clock.error_ns());
    // The device's clock jumps, the host's goes on.
    let after = Truth::new(dev.saturating_add_signed(by), before.host(dev), 3_000);
    dev = after.dev0;
    run(&mut clock, &after, &mut dev, late);
    let stated = clock.error_ns();
    assert_eq!((clock.epochs(), clock.rejected()), (2, 0), "{by}");
    assert!(stated < 2_000 && error < 2_000, "{by}");
    for back in (0..524_000_000).step_by(100_003) {
        let new = dev - back;
        assert!(clock.to_host(new).abs_diff(after.host(new)) <= stated, "{by} {back}");
        // Times that occurred twice belong to the second time.
        let old = old_end - back;
        let once = by > 0 || old < after.dev0;
        assert!(!once || clock.to_host(old).abs_diff(before.host(old)) <= stated, "{by} {back}");
    }
}

#[test]
fn a_step_begins_an_epoch_with_a_line_of_its_own() {
    for by in [300_000, 50_000_000, 3_600_000_000_000] {
        for late in [0, 1, 20] {
            steps(by, late);
            steps(-by, late);
        }
    }
    steps(-1_600_000_000_000_000_000, 0);
}

#[test]
fn wrong_values_from_a_driver_are_counted_and_change_nothing() {
    let truth = Truth::new(1 << 55, 1 << 50, -20_000);
    let (mut clean, mut soiled) = (DeviceClock::new(), DeviceClock::new());
    let mut dev = truth.dev0;
    for n in 0..1_000u64 {
        for e in evidence(&truth, &mut dev, [100_000 + n, 900, 0, 5_000, 900]) {
            clean.take(e);
            soiled.take(e);
        }
        match n % 100 {
            50 => soiled.lower(0, 1 << 50),
            60 => soiled.upper(u64::MAX, 3),
            70 => soiled.lower(dev, truth.host(dev) + n * 1_000_000_000),
            _ => {}
        }
    }
    assert_eq!((soiled.epochs(), clean.rejected()), (1, 0));
    assert!(soiled.rejected() >= 25);
    assert_eq!(clean.lines().collect::<Vec<_>>(), soiled.lines().collect::<Vec<_>>());
}

#[test]
fn a_bending_clock_is_followed_epoch_by_epoch() {
    let mut clock = DeviceClock::new();
    let (mut dev, mut worst, mut truth) = (0, 0, Truth::new(0, 1 << 50, 0));
    for n in 0..60_000u64 {
        if n % 100 == 0 {
            // The rate swings by 1 ppm, once a minute: NTP at work.
            let ppb = ((n as f64 / 60_000.0 * std::f64::consts::TAU).sin() * 1_000.0) as i64;
            truth = Truth::new(dev, truth.host(dev), ppb);
        }
        let command = [980_000, 600 + n * 7 % 500, 0, 20_000, 600 + n * 11 % 900];
        feed(&mut clock, &truth, &mut dev, command);
        if n > 100 {
            worst = worst.max(clock.to_host(dev).abs_diff(truth.host(dev)));
        }
    }
    assert!(worst < 5_000, "{worst}");
    assert!((2..100).contains(&clock.epochs()), "{}", clock.epochs());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_truth_is_within_the_stated_error(
        truth in truths(),
        commands in commands((500.0, 1e7), 1..300),
        shuffle in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
        direct in prop::option::of(log_uniform(50.0, 1e6)),
        probes in prop::collection::vec(0.0f64..1.0, 20),
    ) {
        let mut clock = DeviceClock::new();
        let mut dev = truth.dev0;
        let mut all: Vec<Evidence> = Vec::new();
        for &c in &commands {
            let pair = evidence(&truth, &mut dev, c);
            // The return of the enqueue call bounds the queued time as well.
            let host = truth.host(pair[0].dev) + c[2];
            all.extend(pair);
            all.push(Evidence { dev: pair[0].dev, host, kind: Kind::Upper });
            if let Some(uncertainty) = direct.filter(|_| c[0] % 3 == 0) {
                clock.direct(dev, truth.host(dev) + c[0] % uncertainty, uncertainty);
            }
        }
        for (i, other) in shuffle.iter().enumerate() {
            let (i, j) = (i % all.len(), other.index(all.len()));
            all.swap(i, j);
        }
        all.iter().for_each(|&e| clock.take(e));
        prop_assert_eq!((clock.epochs(), clock.rejected()), (1, 0));
        let (first, last) = (truth.dev0 + commands[0][0], dev);
        let at = |f: &f64| first + ((last - first) as f64 * f) as u64;
        let probes: Vec<u64> = probes.iter().map(at).chain([first, last]).collect();
        assert_within(&clock, &truth, &probes, clock.error_ns())?;
        for far in [truth.dev0, dev + 1_000_000_000] {
            assert_within(&clock, &truth, &[far], clock.error_at(far))?;
        }
        prop_assert!(probes.iter().all(|&d| clock.to_host(d) <= clock.to_host(d + 1)));
    }

    #[test]
    fn short_calls_give_two_microseconds_from_the_inequalities_alone(
        truth in truths(),
        commands in commands((500.0, 2e3), 20..200),
    ) {
        let mut clock = DeviceClock::new();
        let mut dev = truth.dev0;
        let mut seen = vec![];
        for c in commands {
            feed(&mut clock, &truth, &mut dev, c);
            seen.push(dev);
            assert_within(&clock, &truth, &seen, clock.error_ns())?;
        }
        prop_assert!(clock.error_ns() < 2_000, "{}", clock.error_ns());
        prop_assert_eq!(clock.epochs(), 1);
    }
}

proptest! {
    /// Whatever the evidence is, also nonsense.
    #[test]
    fn nothing_makes_it_panic_or_grow_or_run_backwards(
        evidence in prop::collection::vec((any_time(), any_time(), 0u8..3), 0..400),
        probes in prop::collection::vec(any_time(), 10),
    ) {
        let mut clock = DeviceClock::new();
        for (dev, host, kind) in evidence {
            match kind {
                0 => clock.lower(dev, host),
                1 => clock.upper(dev, host),
                _ => clock.direct(dev, host, host % 1_000),
            }
            prop_assert!(clock.recent.len() <= RECENT && clock.closed.len() <= MAX_CLOSED);
        }
        for line in clock.lines() {
            let ends = [line.dev, line.dev_end].into_iter().chain(probes.iter().copied());
            prop_assert!(ends.clone().all(|d| line.to_host(d) <= line.to_host(d.saturating_add(1))));
            prop_assert!(line.drift.abs() <= 500e-6 && line.drift_error >= 0.0);
        }
        let _ = probes.iter().map(|&d| clock.error_at(d).max(clock.to_host(d))).max();
    }
}

fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..1_000_000, (1u64 << 60)..(1 << 60) + 1_000_000]
}
