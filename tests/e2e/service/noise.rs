//! Programs with stray writes: they may overwrite all memory of ours that they have mapped writable, and spoil their own
//! records by it.

use super::*;

/// Of the same user and the same session: the one is recorded whole, and the other's losses are said.
#[test]
fn a_program_that_overwrites_all_it_can_write_spoils_only_its_own() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    let broken =
        bench.dormant(&["launch:20", "touch:a1", "wait:1", "noise:40", "touch:a2", "wait:2", "fail"]);
    let sound =
        bench.dormant(&["launch:20", "touch:b1", "wait:1", "launch:2000", "touch:b2", "wait:2", "launch:7"]);
    ["a1", "b1"].iter().for_each(|name| bench.wait_for(name));
    // It says how much it lost while it is spoilt beside it.
    bench.go("1");
    ["a2", "b2"].iter().for_each(|name| bench.wait_for(name));
    let session = &bench.status()["service"]["session"];
    assert_eq!((&session["paused"], session["limit"].is_null()), (&Value::Bool(false), true), "{session}");
    // One that begins behind it.
    let later = bench.dormant(&["launch:30", "touch:c1", "wait:2"]);
    bench.wait_for("c1");
    bench.go("2");
    let ends: Vec<Option<i32>> =
        bench.programs.drain(..).map(|mut child| child.wait().expect("an end").code()).collect();
    assert_eq!(ends, [Some(3), Some(0), Some(0)], "each program's own status");
    let said = bench.well(&["stop"]);
    assert!(said.contains("overwritten"), "{said}");
    let seen = bench.seen("trace");
    for (pid, launches) in [(sound, 2027), (later, 30)] {
        assert_eq!(seen.calls[&pid].get(LAUNCH), Some(&launches), "{pid}: {:?}", seen.calls.keys());
    }
    let losses = &bench.manifest("trace")["losses"];
    let threads = losses["threads"].as_array().expect("threads");
    assert!(threads.iter().all(|t| t["pid"] == broken), "only of the broken one: {losses}");
    // Some of its memory can't be read at all, perhaps.
    let unread = losses["processes"].as_u64();
    assert!(unread <= Some(1) && losses["unwritten_bytes"] == 0, "{losses}");
    bench.well(&["tally", "trace"]);
    // And the next session is as if nothing had been.
    bench.well(&["start", "-o", "next"]);
    bench.dormant(&["launch:4"]);
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(!said.contains("overwritten"), "{said}");
    assert_eq!(calls(&bench.seen("next"), LAUNCH), 4);
    is_whole(&bench, "next");
}
