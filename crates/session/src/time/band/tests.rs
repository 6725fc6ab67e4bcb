//! The band by examples and by property.

use super::*;
use proptest::prelude::*;

fn evidence(kind: Kind, dev: u64, host: u64) -> Evidence {
    Evidence { dev, host, kind }
}

#[test]
fn two_gates_give_the_line_through_their_middles() {
    let mut band = Band::new(0);
    for (dev, host) in [(1_000_000, 5_000_000), (2_000_000, 6_000_100)] {
        band.offer(evidence(Kind::Lower, dev, host - 10)).unwrap();
        band.offer(evidence(Kind::Upper, dev, host + 10)).unwrap();
    }
    let line = band.line().unwrap();
    assert_eq!((line.dev, line.dev_end, line.host), (1_000_000, 2_000_000, 5_000_000));
    assert_eq!((line.to_host(2_000_000), line.error_ns), (6_000_100, 11));
    assert!((line.drift - 100e-6).abs() < 1e-12);
    assert!((line.drift_error - 20e-6).abs() < 1e-12);
    assert_eq!(line.error_at(3_000_000), 31);
}

#[test]
fn a_contradiction_changes_nothing() {
    let mut band = Band::new(1);
    band.offer(evidence(Kind::Lower, 1_000, 1_000)).unwrap();
    band.offer(evidence(Kind::Upper, 1_000, 1_100)).unwrap();
    let line = band.line();
    for wrong in [
        evidence(Kind::Upper, 1_000, 990),
        evidence(Kind::Lower, 1_000, 1_110),
        evidence(Kind::Lower, 2_000, 2_110),
        evidence(Kind::Upper, 0, u64::MAX),
    ] {
        assert!(!band.admits(wrong));
        assert_eq!(band.offer(wrong), Err(Contradiction));
    }
    assert_eq!(band.line(), line);
    // Within the slack it is rounding, not a contradiction.
    assert!(band.admits(evidence(Kind::Upper, 1_000, 998)));
}

#[test]
fn more_vertices_than_are_kept_do_not_admit_a_wrong_line_less() {
    let mut band = Band::new(1);
    // A parabola, every point of which is a vertex; the true line is host = dev.
    for i in 0..2_000u64 {
        let (dev, away) = (1 + i * 1_000_000, i.abs_diff(1_000).pow(2));
        band.offer(evidence(Kind::Lower, dev, 1_000_000_000 + dev - away - 100)).unwrap();
        band.offer(evidence(Kind::Upper, dev, 1_000_000_000 + dev + away + 100)).unwrap();
    }
    let line = band.line().unwrap();
    for dev in (1..2_000_000_000).step_by(9_999_991) {
        assert!(line.to_host(dev).abs_diff(1_000_000_000 + dev) <= line.error_ns);
    }
    // The steepest line that passes: 100 + i² at i = 10, times 1,000 for the end.
    assert!(line.error_ns < 20_300, "{}", line.error_ns);
}

/// Returns the range of values at both ends over all admitted lines, by trying every
/// line through two points and every extreme slope through one.
fn brute_force(points: &[(Kind, f64, f64)]) -> Option<[(f64, f64); 2]> {
    let xs = || points.iter().map(|p| p.1);
    let ends = [xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max)];
    let mut ranges = [(f64::INFINITY, f64::NEG_INFINITY); 2];
    for p in points {
        let through = points.iter().filter(|q| q.1 != p.1).map(|q| (q.2 - p.2) / (q.1 - p.1));
        for slope in through.chain([-MAX_DRIFT, MAX_DRIFT]).filter(|s| s.abs() <= MAX_DRIFT) {
            let at = |x: f64| p.2 + slope * (x - p.1);
            let admitted = points.iter().all(|q| match q.0 {
                Kind::Lower => at(q.1) >= q.2 - 1e-6,
                Kind::Upper => at(q.1) <= q.2 + 1e-6,
            });
            for (range, x) in ranges.iter_mut().zip(ends).filter(|_| admitted) {
                *range = (range.0.min(at(x)), range.1.max(at(x)));
            }
        }
    }
    (ranges[0].0 <= ranges[0].1).then_some(ranges)
}

proptest! {
    #[test]
    fn the_line_is_the_middle_of_all_that_are_admitted(
        points in prop::collection::vec((any::<bool>(), 0u64..2_000_000, -300i64..700), 2..25)
    ) {
        let mut band = Band::new(0);
        let mut taken = Vec::new();
        for (lower, x, away) in points {
            let (kind, y) = if lower { (Kind::Lower, -away) } else { (Kind::Upper, away) };
            let e = evidence(kind, x, (10_000_000 + x).saturating_add_signed(y));
            let mut with = taken.clone();
            with.push((kind, x as f64, y as f64));
            prop_assert_eq!(band.admits(e), band.offer(e).is_ok());
            if brute_force(&with).is_some() {
                taken = with;
                prop_assert!(band.admits(e));
            } else {
                prop_assert!(!band.admits(e));
            }
        }
        let line = band.line().unwrap();
        if !line.is_known() {
            return Ok(());
        }
        let ranges = brute_force(&taken).unwrap();
        let half = ranges.iter().map(|r| (r.1 - r.0) / 2.0).fold(0.0, f64::max);
        prop_assert!((line.error_ns as f64 - half - 1.0).abs() <= 1.0, "{} {half}", line.error_ns);
        for (range, dev) in ranges.iter().zip([line.dev, line.dev_end]) {
            let y = line.to_host(dev) as f64 - 10_000_000.0 - dev as f64;
            prop_assert!((y - (range.0 + range.1) / 2.0).abs() <= 1.0, "{y} {range:?}");
        }
    }
}

#[test]
fn what_every_line_satisfies_makes_no_vertex_and_still_widens_the_range() {
    let mut band = Band::new(0);
    for dev in [1_000_000, 2_000_000] {
        band.offer(evidence(Kind::Lower, dev, dev - 10)).unwrap();
        band.offer(evidence(Kind::Upper, dev, dev + 10)).unwrap();
    }
    let vertices = |band: &Band| (band.lowers.vertices().to_vec(), band.uppers.vertices().to_vec());
    let before = (vertices(&band), band.slope_min, band.slope_max);
    // Delays far longer than the shortest: no line that is left could contradict them.
    for dev in (3_000_000..6_000_000).step_by(100_000) {
        band.offer(evidence(Kind::Lower, dev, dev - 50_000)).unwrap();
        band.offer(evidence(Kind::Upper, dev, dev + 50_000)).unwrap();
    }
    assert_eq!((vertices(&band), band.slope_min, band.slope_max), before);
    assert_eq!(band.line().unwrap().dev_end, 5_900_000);
    // One that does say something new.
    band.offer(evidence(Kind::Lower, 6_000_000, 6_000_000)).unwrap();
    assert_ne!(vertices(&band), before.0);
}

proptest! {
    /// Evidence that was left out would have changed nothing: each piece holds in the end.
    #[test]
    fn the_last_line_satisfies_all_evidence_within_its_error(
        delays in prop::collection::vec((1u64..5_000, 0u64..3_000, 0u64..90_000), 2..200),
        drift in -200i64..200,
    ) {
        let mut band = Band::new(1);
        let mut dev = 1_000_000u64;
        let mut all = Vec::new();
        for (gap, before, after) in delays {
            dev += gap * 1_000;
            let host = dev.saturating_add_signed(dev as i64 * drift / 1_000_000);
            all.push(evidence(Kind::Lower, dev, host - before));
            all.push(evidence(Kind::Upper, dev, host + after));
        }
        for e in &all {
            band.offer(*e).unwrap();
        }
        let line = band.line().unwrap();
        for e in all {
            let (host, error) = (line.to_host(e.dev), line.error_at(e.dev) + 1);
            match e.kind {
                Kind::Lower => prop_assert!(host + error >= e.host, "{e:?} {line:?}"),
                Kind::Upper => prop_assert!(host <= e.host + error, "{e:?} {line:?}"),
            }
        }
    }
}
