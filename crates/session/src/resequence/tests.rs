//! Orders by examples and by property.

use super::*;
use proptest::prelude::*;

/// What came out: `(run, key, record)` in order.
type Out = Vec<(usize, u64, usize)>;

fn assert_sorted_runs(out: &Out, runs: usize) -> Result<(), TestCaseError> {
    for run in 0..runs {
        let keys: Vec<u64> = out.iter().filter(|r| r.0 == run).map(|r| r.1).collect();
        prop_assert!(!keys.is_empty(), "run {run} is empty");
        prop_assert!(keys.is_sorted(), "run {run}: {keys:?}");
    }
    prop_assert!(out.iter().all(|r| r.0 < runs));
    Ok(())
}

/// Every record pushed came out once, with its key.
fn assert_complete(out: &Out, keys: &[u64]) -> Result<(), TestCaseError> {
    let mut got: Vec<(usize, u64)> = out.iter().map(|r| (r.2, r.1)).collect();
    got.sort_unstable();
    let want: Vec<(usize, u64)> = keys.iter().copied().enumerate().collect();
    prop_assert_eq!(got, want);
    Ok(())
}

#[test]
fn equal_keys_come_in_order_of_arrival() {
    let mut seq = Resequencer::new();
    for (key, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (5, 'e')] {
        seq.push(key, name);
    }
    let mut out = String::new();
    seq.advance(5, &mut |_, _, name| out.push(name));
    assert_eq!(out, "bd");
    assert_eq!(seq.held(), 3);
    seq.finish(&mut |_, _, name| out.push(name));
    assert_eq!(out, "bdace");
    assert_eq!(seq.runs(), 1);
}

#[test]
fn a_late_record_opens_a_run_and_the_next_goes_where_it_fits() {
    let mut seq = Resequencer::new();
    let mut out = Vec::new();
    for key in [10, 4, 7, 12, 2, 10] {
        seq.push(key, ());
        seq.finish(&mut |run, key, ()| out.push((run, key)));
    }
    assert_eq!(out, [(0, 10), (1, 4), (1, 7), (0, 12), (2, 2), (1, 10)]);
    assert_eq!(seq.runs(), 3);
}

#[test]
fn the_limit_releases_the_oldest_early_and_counts_them() {
    let mut seq = Resequencer::with_capacity_limit(2);
    let mut out = Vec::new();
    for key in [30, 10, 20, 40] {
        seq.push(key, ());
    }
    seq.advance(0, &mut |run, key, ()| out.push((run, key)));
    assert_eq!((out.as_slice(), seq.held(), seq.forced()), (&[(0, 10), (0, 20)][..], 2, 2));
    seq.push(15, ());
    seq.advance(0, &mut |run, key, ()| out.push((run, key)));
    assert_eq!(out[2..], [(1, 15)]);
    seq.finish(&mut |run, key, ()| out.push((run, key)));
    assert_eq!(out[3..], [(0, 30), (0, 40)]);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_runs_are_sorted_whatever_the_watermarks(
        steps in prop::collection::vec((0u64..1000, prop::option::of(0u64..1000)), 0..200),
        limit in prop_oneof![Just(usize::MAX), 0usize..20],
    ) {
        let mut seq = Resequencer::with_capacity_limit(limit);
        let (mut out, mut keys) = (Out::new(), Vec::new());
        for (key, watermark) in steps {
            seq.push(key, keys.len());
            keys.push(key);
            if let Some(watermark) = watermark {
                seq.advance(watermark, &mut |r, k, v| out.push((r, k, v)));
                prop_assert!(seq.held() <= limit);
            }
        }
        seq.finish(&mut |r, k, v| out.push((r, k, v)));
        assert_sorted_runs(&out, seq.runs())?;
        assert_complete(&out, &keys)?;
        // As few runs as the order of release allows: as many as the longest
        // strictly falling sequence in it.
        let mut falls: Vec<usize> = Vec::new();
        for (i, r) in out.iter().enumerate() {
            let before = (0..i).filter(|&j| out[j].1 > r.1).map(|j| falls[j]).max();
            falls.push(before.unwrap_or(0) + 1);
        }
        prop_assert_eq!(seq.runs(), falls.into_iter().max().unwrap_or(0));
    }
}
