//! What is not the program's and what is missing: commands of our own, and losses by kernel.

use super::views::read;
use super::*;

fn lost(run: &Run) -> (serde_json::Value, String) {
    let (json, _) = read(run, &["tally", "--inside", "--json"]);
    let tally: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let (text, _) = read(run, &["tally", "--inside"]);
    (tally, text)
}

/// What we gave to the device is behind the tracing overhead, and nowhere else.
fn check_own(run: &Run) {
    let (tally, text) = lost(run);
    assert_eq!(tally["tracing"]["own_commands"], 5, "{}", tally["tracing"]);
    assert!(text.contains("On devices: 5 commands of the tracer's own (fills, copies), "), "{text}");
    assert_eq!(tally["commands_without_call"], 0);
    assert!(tally["device"].as_array().expect("rows").iter().all(|row| row["kind"] == "kernel"), "{text}");
}

/// Of 20 launches of two kernels 15 of the first found a chunk.
fn check_losses(run: &Run) {
    let (tally, text) = lost(run);
    assert_eq!(tally["inside_lost_records"], 25);
    let of = |symbol: &str, records: u64, silent: u64| {
        serde_json::json!({
            "kernel": symbol, "symbol": symbol, "records": records, "left_out": 0,
            "launches_as_they_were": 0, "launches_overwritten": 0, "launches_without_records": silent,
        })
    };
    assert_eq!(tally["inside_lost"], serde_json::json!([of("k2000", 20, 20), of("k1000", 5, 5)]));
    assert!(text.contains("Lost inside | 2 kernels") && text.contains("k2000 |      20 |"), "{text}");
    assert!(text.contains("25 records inside of kernels found no room: "), "{text}");
    let (why, _) = read(run, &["why"]);
    assert!(why.contains("Incomplete: 5 records found no room."), "{why}");
}

/// After the first loss launches ran as they were.
fn check_late(run: &Run) {
    let (tally, _) = lost(run);
    let of = |row: &serde_json::Value| {
        let number = |name: &str| row[name].as_u64();
        (row["symbol"].as_str().map(str::to_owned), number("records"), number("launches_as_they_were"))
    };
    let rows: Vec<_> = tally["inside_lost"].as_array().expect("rows").iter().map(of).collect();
    assert_eq!(
        rows,
        [(Some("k1000".to_owned()), Some(1), Some(4)), (Some("k2000".to_owned()), Some(0), Some(20))]
    );
    let (why, _) = read(run, &["why"]);
    assert!(
        why.contains("Incomplete: 1 record found no room, 4 launches came after that and ran as they were."),
        "{why}"
    );
}

/// What fills and copies a pool goes through streams of our own: it is in no table, and counted apart.
#[test]
fn our_own_commands_are_none_of_the_programs() {
    let bed = Bed::new(TEXT.as_bytes());
    for source in ["cupti", "events"] {
        let run = bed.run_by(source, ALL, &["data"], &[]);
        check_seen(&run, SEEN);
        let seen = run.seen();
        assert_eq!(run::kinds(&seen), BTreeMap::from([("kernel", 6)]), "{source}");
        assert!(seen.commands.iter().all(|command| command.cause != 0), "{source}: {:?}", seen.commands);
        // The device filled it, wrote its header and its address, and read the header and all of it.
        let ours: Vec<_> = run.ops().into_iter().filter(|op| op.kind != "kernel").collect();
        let kinds: Vec<&str> = ours.iter().map(|op| op.kind.as_str()).collect();
        assert_eq!(kinds, ["fill", "write", "write", "read", "read"], "{source}");
        let timing = run.manifest()["cost"]["timing"].as_array().expect("APIs").clone();
        let cuda = timing.iter().find(|row| row["api"] == "cuda").expect("CUDA");
        let sum = |of: fn(&run::Op) -> u64| ours.iter().map(of).sum::<u64>();
        assert_eq!((&cuda["own_commands"], &cuda["own_bytes"]), (&5.into(), &sum(|op| op.bytes).into()));
        let ns = cuda["own_device_ns"].as_u64().expect("a time");
        // From event to event, in steps of 32 ns.
        assert!(ns + 5 * 64 >= sum(|op| op.end - op.start), "{source}: {ns}");
        check_own(&run);
    }
}

#[test]
fn a_pool_that_is_full_loses_and_says_so() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(
        &["--inside", "*", "--inside-sample", "launches:1", "--inside-buffer", "64K"],
        &["data", "20"],
        &[],
    );
    check_seen(&run, SEEN);
    assert_eq!(chunks(&run), [15]);
    let said = notes(&run);
    assert!(said.contains("LOST: 25 records inside kernels found no room"), "{said}");
    check_losses(&run);
}

/// Where the host sees that a pool is full, launches run as they were, and are counted by kernel.
#[test]
fn launches_that_come_when_a_pool_is_full_are_counted() {
    let bed = Bed::new(TEXT.as_bytes());
    let options = ["--inside", "*", "--inside-sample", "launches:1", "--inside-buffer", "64K"];
    let run = bed.run(&options, &["data", "20"], &[("FAKE_CUDA_FULL", "1")]);
    check_seen(&run, SEEN);
    assert_eq!(chunks(&run), [15]);
    assert_eq!(
        ran(&run),
        twins(&[("k1000", 4), ("k1000__hetrace_inside", 16), ("k2000", 20)]),
        "{}",
        notes(&run)
    );
    check_late(&run);
}
