//! How kernels get room: each strategy has its own pool, and reports say the same of all.

use super::views::read;
use super::*;

const STRATEGIES: [&str; 5] = ["chunks", "chunks-per-sm", "global-cursor", "sm-cursor", "padded"];

/// What `tally --inside --json` says of kernels' insides.
fn tally(run: &Run) -> serde_json::Value {
    let (json, _) = read(run, &["tally", "--inside", "--json"]);
    serde_json::from_str(&json).expect("JSON")
}

/// The first word of the one pool, and how many counters are behind its header.
fn layout(run: &Run) -> [u32; 2] {
    let folder = std::fs::read_dir(run.scratch.path().join("trace/inside")).expect("a folder").flatten();
    let pools = folder.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "pool"));
    let [pool] = &pools.collect::<Vec<_>>()[..] else { panic!("one pool") };
    let bytes = std::fs::read(pool).expect("a pool");
    [0, 4].map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")))
}

#[test]
fn reports_say_the_same_of_each_strategy() {
    let bed = Bed::new(TEXT.as_bytes());
    let mut first = None;
    for (number, strategy) in STRATEGIES.into_iter().enumerate() {
        for spill in [false, true] {
            let on_full = if spill { "spill" } else { "drop" };
            let options =
                ["--inside-mode", "branches", "--inside-strategy", strategy, "--inside-on-full", on_full];
            let run = bed.run(&[ALL, &options].concat(), &["data"], &[]);
            check_seen(&run, SEEN);
            assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 3), ("k2000__hetrace_inside", 3)]));
            let said = notes(&run);
            assert!(!said.contains("LOST") && said.contains("2 kernels can record"), "{said}");
            // 132 multiprocessors, or one for all.
            let counters = if strategy.contains("sm") { 132 } else { u32::from(strategy.contains("cursor")) };
            assert_eq!(layout(&run), [[0, 1, 2, 3, 4][number], counters], "{strategy}");
            let (printed, _) = read(&run, &["print", "--inside"]);
            let begins = printed.matches(" (0,0,0) warp 0 SM 0: begin lanes 00000001").count();
            assert_eq!((printed.lines().count(), begins), (6, 6), "{strategy}: {printed}");
            let inside = tally(&run)["inside"].clone();
            let kernels = inside.as_array().expect("kernels").iter();
            let counted: Vec<_> = kernels
                .map(|k| [&k["kernel"], &k["launches"], &k["blocks"]].map(ToString::to_string))
                .collect();
            assert_eq!(counted.len(), 2, "{strategy}: {inside}");
            assert_eq!(&counted, first.get_or_insert(counted.clone()), "{strategy} {on_full}");
            run.check_no_misuse();
        }
    }
}

#[test]
fn each_strategy_counts_what_finds_no_room() {
    let bed = Bed::new(TEXT.as_bytes());
    // 40 launches, each of which has a leader of its own with one record; 15 places, or 7 behind the counters.
    for (strategy, room) in [("chunks-per-sm", 7), ("padded", 15), ("global-cursor", 40), ("sm-cursor", 0)] {
        let options = ["--inside-strategy", strategy, "--inside-buffer", "64K"];
        let run = bed.run(&[ALL, &options].concat(), &["data", "20"], &[]);
        check_seen(&run, SEEN);
        let (tally, said) = (tally(&run), notes(&run));
        assert_eq!(tally["inside_lost_records"], 40 - room, "{strategy}: {said}");
        assert_eq!(said.contains("LOST"), room < 40, "{strategy}: {said}");
        let rows = tally["inside_lost"].as_array().expect("rows");
        let by_kernel: u64 = rows.iter().map(|row| row["records"].as_u64().expect("a number")).sum();
        assert_eq!(by_kernel, 40 - room, "{strategy}");
    }
}

#[test]
fn a_strategy_is_another_code_in_the_cache() {
    let bed = Bed::new(TEXT.as_bytes());
    let cached = || std::fs::read_dir(bed.cache().join("hetrace/inside")).expect("a cache").count();
    for (at, strategy) in STRATEGIES.into_iter().enumerate() {
        let run = bed.run(&[ALL, &["--inside-strategy", strategy]].concat(), &["data"], &[]);
        check_seen(&run, SEEN);
        assert_eq!(cached(), at + 1, "{strategy}");
    }
    // The default is what is there already if nothing is said.
    check_recorded(&bed.run(ALL, &["data"], &[]));
    assert_eq!(cached(), STRATEGIES.len());
}
