//! `--inside-on-full ring`: what was recorded last is kept, and what it took the place of is counted.

use super::views::read;
use super::*;

const RING: &[&str] =
    &["--inside", "*", "--inside-sample", "launches:1", "--inside-on-full", "ring", "--inside-buffer", "64K"];

fn tally(run: &Run) -> serde_json::Value {
    serde_json::from_str(&read(run, &["tally", "--inside", "--json"]).0).expect("JSON")
}

#[test]
fn what_was_recorded_last_is_kept() {
    let bed = Bed::new(TEXT.as_bytes());
    for strategy in ["chunks", "padded"] {
        let options = [RING, &["--inside-strategy", strategy]].concat();
        let run = bed.run(&options, &["data", "40"], &[("FAKE_CUDA_FULL", "1")]);
        check_seen(&run, SEEN);
        run.check_no_misuse();
        // Half of the memory is 7 chunks and a header.
        let pools = std::fs::read_dir(run.scratch.path().join("trace/inside")).expect("a folder").flatten();
        let pools = pools.filter(|entry| entry.path().extension().is_some_and(|end| end == "pool"));
        assert_eq!(pools.count(), 2, "{}", notes(&run));
        let tally = tally(&run);
        let kernels = tally["inside"].as_array().expect("kernels");
        // First all launches of one kernel, then all of the other.
        let names: Vec<_> = kernels.iter().map(|kernel| kernel["symbol"].as_str()).collect();
        assert_eq!(names, [Some("k2000")], "{}", notes(&run));
        let kept = kernels[0]["launches"].as_u64().expect("launches");
        assert!((7..=14).contains(&kept), "{kept} of two pools of 7");
        let lost = tally["inside_lost"].as_array().expect("rows");
        let of = |symbol: &str, what: &str| {
            lost.iter().find(|row| row["symbol"] == symbol).and_then(|row| row[what].as_u64()).unwrap_or(0)
        };
        let sums = |symbol: &str| {
            ["records", "launches_as_they_were", "launches_overwritten"].map(|what| of(symbol, what))
        };
        let (first, second) = (sums("k1000"), sums("k2000"));
        assert!(first[2] >= 7 && second[2] >= 7, "{first:?} {second:?}");
        // Each launch is kept, lost, overwritten, or ran as it was.
        assert_eq!(first.iter().sum::<u64>(), 40, "{first:?}");
        assert_eq!(second.iter().sum::<u64>() + kept, 40, "{second:?} {kept}");
        assert_eq!((of("k1000", "launches_without_records"), of("k2000", "left_out")), (0, 0));
        let said = notes(&run);
        let all = first[2] + second[2];
        assert!(
            said.contains(&format!("what {all} launches recorded was overwritten by later ones")),
            "{said}"
        );
        let (text, _) = read(&run, &["tally", "--inside"]);
        assert!(text.contains("Launches overwritten"), "{text}");
        let (why, _) = read(&run, &["why"]);
        let over = format!("{} launches recorded what later ones have overwritten", second[2]);
        assert!(why.contains(&over), "{over}: {why}");
    }
}

/// As long as a kernel runs that may write there, the pool stays as it is.
#[test]
fn a_pool_is_not_emptied_under_a_kernel_that_runs() {
    // Each takes 20 ms, and all are in flight at once.
    let long = TEXT.replace("k1000", "k20000000");
    let bed = Bed::new(long.as_bytes());
    let run = bed.run(RING, &["data", "12"], &[("FAKE_CUDA_FULL", "1"), ("INSIDE_FIRST", "k20000000")]);
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    run.check_no_misuse();
    let said = notes(&run);
    assert!(!said.contains("overwritten"), "{said}");
    assert!(said.contains("launches ran as they were, as there was no room any more"), "{said}");
    assert_eq!(chunks(&run), [7]);
}

#[test]
fn kernels_in_graphs_run_as_they_were() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(RING, &["graph"], &[]);
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    run.check_no_misuse();
    assert!(ran(&run).keys().all(|name| !name.ends_with("__hetrace_inside")), "{:?}", ran(&run));
    let said = notes(&run);
    assert_eq!(said.matches("kernels in graphs run as they were").count(), 1, "{said}");
}
