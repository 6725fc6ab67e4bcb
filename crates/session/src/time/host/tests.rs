//! Simulated host clocks.

use super::*;
use proptest::prelude::*;

fn point(tsc: u64, ns: u64) -> ReferencePoint {
    let realtime_ns = ns + 1_700_000_000_000_000_000;
    ReferencePoint { tsc, monotonic_ns: ns, realtime_ns, uncertainty_ns: 0 }
}

/// A real clock to be followed: its rate changes at every knot.
struct Truth {
    /// `(tsc, ns × 2⁴⁸, rate)`
    knot: (u64, u128, u64),
}

impl Truth {
    fn new(tsc: u64, ns: u64, ghz: f64) -> Self {
        let rate = ((1u64 << MULT_SHIFT) as f64 / ghz) as u64;
        Self { knot: (tsc, u128::from(ns) << MULT_SHIFT, rate) }
    }

    fn at(&self, tsc: u64) -> u64 {
        ((self.knot.1 + u128::from(tsc - self.knot.0) * u128::from(self.knot.2)) >> MULT_SHIFT) as u64
    }

    /// From `tsc` on runs at `nominal`, `ppm` off.
    fn turn(&mut self, tsc: u64, nominal: u64, ppm: f64) {
        let ns = self.knot.1 + u128::from(tsc - self.knot.0) * u128::from(self.knot.2);
        self.knot = (tsc, ns, (nominal as f64 * (1.0 + ppm * 1e-6)) as u64);
    }
}

/// xorshift: an hour of clock needs more numbers than proptest likes to keep.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn within(&mut self, n: i64) -> i64 {
        (self.next() % (2 * n as u64 + 1)) as i64 - n
    }
}

#[test]
fn two_points_make_a_line_in_both_directions() {
    let clock = HostClock::new(point(2_000, 1_000), point(4_000, 2_000));
    assert_eq!([2_000, 4_000, 8_000, 1_000, 0].map(|t| clock.to_ns(t)), [1_000, 2_000, 4_000, 500, 0]);
    let swapped = HostClock::new(point(4_000, 2_000), point(2_000, 1_000));
    assert_eq!(swapped.segments(), clock.segments());
    assert_eq!(clock.wall_offset_ns(), 1_700_000_000_000_000_000);
}

#[test]
fn degenerate_points_and_the_ends_of_the_range_saturate() {
    let clock = HostClock::new(point(5, 7), point(5, 7));
    assert_eq!((clock.to_ns(5), clock.to_ns(6), clock.to_ns(0)), (7, 8, 2));
    let slow = HostClock::new(point(0, 1), point(1, u64::MAX / 2 - 1_700_000_000_000_000_000));
    assert_eq!(slow.to_ns(u64::MAX), u64::MAX);
    let late = HostClock::new(point(1 << 60, 10), point((1 << 60) + 1_000, 1_010));
    assert_eq!((late.to_ns(0), late.to_ns((1 << 60) - 3)), (0, 7));
}

#[test]
fn preempted_stale_and_equal_points_are_ignored() {
    let mut clock = HostClock::new(point(0, 0), point(100_000_000, 100_000_000));
    let before = clock.clone();
    let preempted = ReferencePoint { uncertainty_ns: 900_000, ..point(200_000_000, 200_700_000) };
    for p in [preempted, point(100_000_000, 100_000_001), point(50, 50)] {
        assert_eq!(clock.add(p), Added::Ignored);
    }
    assert_eq!(clock.ignored(), 3);
    assert_eq!(clock.segments(), before.segments());
    // Better a bad reading than none for a minute.
    let old = ReferencePoint { uncertainty_ns: 900_000, ..point(60_000_000_000, 60_000_000_000) };
    assert_ne!(clock.add(old), Added::Ignored);
}

#[test]
fn a_clock_that_agrees_keeps_its_segment() {
    let mut clock = HostClock::new(point(0, 0), point(300_000_000, 100_000_000));
    for n in 2..10_000 {
        assert_eq!(clock.add(point(n * 300_000_000, n * 100_000_000 + n % 30)), Added::Kept);
    }
    assert_eq!(clock.segments().len(), 1);
}

#[test]
fn an_error_is_gone_after_one_period_and_a_late_drainer_does_not_overshoot() {
    let mut clock = HostClock::new(point(0, 0), point(1_000_000_000, 1_000_000_000));
    assert_eq!(clock.add(point(1_100_000_000, 1_100_020_000)), Added::Steered);
    assert_eq!(clock.error_ns(), 20_000);
    let rate = clock.segments()[2].ns_per_tick();
    assert!((rate - 1.0).abs() < 20e-6, "{rate}");
    for tsc in [1_200_100_000, 1_300_000_000, 9_000_000_000u64] {
        let truth = 1_100_020_000.0 + (tsc - 1_100_000_000) as f64 * rate;
        assert!((clock.to_ns(tsc) as f64 - truth).abs() < 3.0, "{tsc}: {}", clock.to_ns(tsc));
    }
}

#[test]
fn after_a_step_it_catches_up_or_waits_but_never_goes_back() {
    for step in [3_600_000_000_000i64, 5_000_000, -5_000_000, -2_000_000_000] {
        let mut clock = HostClock::new(point(0, 5_000_000_000), point(1_000_000_000, 6_000_000_000));
        let (mut last, mut settled) = (0, 0);
        for n in 11..100u64 {
            let ns = (5_000_000_000 + n as i64 * 100_000_000 + step) as u64;
            if clock.add(point(n * 100_000_000, ns)) != Added::Stepped && settled == 0 {
                settled = n;
            }
            for t in 0..100 {
                let now = clock.to_ns(n * 100_000_000 + t * 1_000_000);
                assert!(now >= last);
                last = now;
            }
        }
        assert_eq!(clock.steps(), 1);
        assert!(settled < if step.abs() > 1_000_000_000 { 50 } else { 13 }, "{step}: {settled}");
        let end = (5_000_000_000 + 9_900_000_000 + step) as u64;
        assert!(clock.to_ns(9_900_000_000).abs_diff(end) <= 1, "{step}");
    }
}

#[test]
fn a_fast_slew_is_learnt_although_each_point_looks_like_a_step() {
    let mut clock = HostClock::new(point(0, 0), point(1_000_000_000, 1_000_000_000));
    let truth = |tsc: u64| 1_000_000_000 + (tsc - 1_000_000_000) / 100 * 108;
    for n in 11..40 {
        clock.add(point(n * 100_000_000, truth(n * 100_000_000)));
    }
    assert!(clock.to_ns(4_000_000_000).abs_diff(truth(4_000_000_000)) < 1_000);
}

#[test]
fn forgetting_bounds_memory_and_changes_nothing_later() {
    let mut clock = HostClock::new(point(0, 0), point(100_000_000, 100_000_000));
    for n in 2..200 {
        clock.add(point(n * 100_000_000, n * 100_000_000 + (n % 2) * 10_000));
    }
    let all = clock.clone();
    assert!(clock.forget_before(10_000_000_000) > 90);
    for tsc in (10_000_000_000..20_000_000_000).step_by(7_777_777) {
        assert_eq!(clock.to_ns(tsc), all.to_ns(tsc));
    }
    assert_eq!(clock.forget_before(0), 0);
    clock.forget_before(u64::MAX);
    assert_eq!(clock.segments().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_wandering_clock_is_followed_within_a_microsecond_for_an_hour(
        seed in 1u64..,
        boot in 0u64..1 << 50,
        ghz in 0.9f64..5.2,
        swing in 20.0f64..120.0,
    ) {
        let mut noise = Noise(seed);
        let mut truth = Truth::new(boot, 5_000_000_000, ghz);
        let nominal = truth.knot.2;
        let ms = |n: u64| (n as f64 * ghz * 1e6) as u64;
        let read = |truth: &Truth, noise: &mut Noise, tsc| {
            let uncertainty_ns = (noise.next() % 301) as u32;
            let error = noise.within(i64::from(uncertainty_ns));
            let monotonic_ns = truth.at(tsc).saturating_add_signed(error);
            ReferencePoint { tsc, monotonic_ns, realtime_ns: 0, uncertainty_ns }
        };
        let first = read(&truth, &mut noise, boot);
        let mut now = boot + ms(250);
        let mut clock = HostClock::new(first, read(&truth, &mut noise, now));
        let (mut worst, mut walk) = (0, 0.0f64);
        let mut last = clock.to_ns(now);
        for n in 0..36_000u64 {
            // A slow swing of ±45 ppm, and a random walk of ±5 on top.
            walk = (walk + noise.within(100) as f64 * 1e-3).clamp(-5.0, 5.0);
            let phase = n as f64 / 10.0 / swing * std::f64::consts::TAU;
            let ppm = 45.0 * (phase.sin() * if swing > 60.0 { 1.0 } else { swing / 60.0 }) + walk;
            truth.turn(now, nominal, ppm);
            let period = ms(80 + noise.next() % 40);
            for part in 1..=4 {
                let tsc = now + period * part / 4;
                let ns = clock.to_ns(tsc);
                prop_assert!(ns >= last);
                last = ns;
                worst = worst.max(ns.abs_diff(truth.at(tsc)));
            }
            now += period;
            let before = (clock.to_ns(now), clock.to_ns(now - 1), clock.to_ns(now - period / 2));
            clock.add(read(&truth, &mut noise, now));
            let after = (clock.to_ns(now), clock.to_ns(now - 1), clock.to_ns(now - period / 2));
            prop_assert_eq!(before, after);
        } prop_assert!(worst <= 1_000, "{} ns off", worst);
        prop_assert!(worst <= clock.error_ns() + 300);
        prop_assert_eq!(clock.steps(), 0);
        // Two segments per point at the very most: 1.7 MB an hour.
        prop_assert!(clock.segments().len() <= 72_001);
    }
}

proptest! {
    /// Whatever the points are, also nonsense.
    #[test]
    fn it_is_monotone_continuous_and_stable_whatever_it_is_given(
        points in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u32..2_000), 2..40),
        ordered in any::<bool>(),
        mut probes in prop::collection::vec(0u64..1 << 41, 1..50),
    ) {
        let mut points = points;
        if ordered {
            points.sort_unstable();
        }
        let mut points = points.into_iter().map(|(tsc, monotonic_ns, uncertainty_ns)| {
            ReferencePoint { tsc, monotonic_ns, realtime_ns: 0, uncertainty_ns }
        });
        let mut clock = HostClock::new(points.next().unwrap(), points.next().unwrap());
        probes.extend([0, u64::MAX]);
        for p in points {
            let before = clock.clone();
            clock.add(p);
            let untouched = probes.iter().copied().chain([p.tsc]).filter(|&t| t <= p.tsc);
            untouched.for_each(|t| assert_eq!(clock.to_ns(t), before.to_ns(t)));
            probes.extend([p.tsc, p.tsc.saturating_sub(1)]);
        }
        for pair in clock.segments().windows(2) {
            prop_assert!(pair[0].tsc < pair[1].tsc);
            prop_assert_eq!(pair[0].at(pair[1].tsc), pair[1].ns);
        }
        probes.extend(clock.segments().iter().flat_map(|s| [s.tsc - 1, s.tsc, s.tsc + 1]));
        probes.sort_unstable();
        prop_assert!(probes.windows(2).all(|w| clock.to_ns(w[0]) <= clock.to_ns(w[1])));
    }
}
