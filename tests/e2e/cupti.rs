//! Commands on CUDA devices, timed by CUPTI: a fake one, to which the fake driver reports what
//! its devices do.

#[path = "cuda/run.rs"]
mod run;

use std::collections::BTreeMap;

use run::{Run, check_all_reported, check_order, kinds, run, run_with, work};

/// Runs `work.c` with the CUPTI of this major version.
fn with_version(version: u32, mode: &str) -> Run {
    let library = hetrace_tests::fake::driver().join(format!("libcupti.so.{version}"));
    run("auto", &["work", mode], &[("HETRACE_CUPTI", library.to_str().expect("a path"))])
}

/// Calls whose commands CUPTI has not reported.
fn in_flight(run: &Run) -> u64 {
    run.manifest()["losses"]["commands_in_flight"].as_u64().expect("a count")
}

/// CUPTI has reported everything, exactly, and nothing else was done to know it.
fn check_reported(run: &Run) {
    let seen = run.seen();
    let notes = run.manifest()["notes"].to_string();
    assert!(notes.contains("device times: CUPTI"), "{notes}");
    check_order(&seen, 0);
    check_all_reported(&run.ops(), &seen, 1000);
    assert_eq!((run.lost(), in_flight(run)), (0, 0));
    assert_eq!(run.manifest()["losses"]["commands_without_call"].as_u64().unwrap_or(0), 0);
    let counts = std::fs::read_to_string(&run.files("counts.")[0]).expect("counts");
    assert!(!counts.contains("cuEventRecord"), "{counts}");
    // Kinds of memory, graphs and nodes, in the order of their starts.
    let (mut ops, mut details) = (run.ops(), run.details());
    ops.sort_by_key(|o| (o.kind.clone(), o.stream, o.start));
    details.sort_by_key(|d| (d.kind.clone(), d.queue, d.start));
    for (op, reported) in ops.iter().zip(&details) {
        let kinds = ["unknown", "pageable", "pinned", "device", "array", "managed"];
        let memory = op.memory.map(|m| kinds[m as usize]);
        assert!(op.kind == "kernel" || memory == [&*reported.from, &*reported.to], "{op:?} {reported:?}");
        assert_eq!(op.node, reported.node, "{op:?} {reported:?}");
    }
    run.check_no_misuse();
}

#[test]
fn all_is_reported_in_each_version_of_its_records() {
    for version in [12, 13] {
        for mode in ["streams", "per_thread", "elsewhere", "together", "threads", "modules", "copies"] {
            check_reported(&with_version(version, mode));
        }
    }
}

#[test]
fn commands_are_all_there_however_many_are_in_flight() {
    check_reported(&with_version(13, "inflight"));
}

#[test]
fn it_sees_into_graphs() {
    for version in [12, 13] {
        let run = with_version(version, "capture");
        check_reported(&run);
        assert_eq!(kinds(&run.seen()), BTreeMap::from([("kernel", 101 + 7 * 5)]));
        let in_graphs = run.details().iter().filter(|d| d.node != [0, 0]).count();
        assert_eq!(in_graphs, 7 * 5);
    }
}

#[test]
fn large_graphs_fit_into_ordinary_buffers() {
    let run = run_with(&[], "auto", &["work", "graph", "1000", "100"], &[]);
    assert_eq!(kinds(&run.seen()), BTreeMap::from([("kernel", 100_000)]), "{}", run.manifest()["losses"]);
    check_reported(&run);
}

#[test]
fn one_that_refuses_is_replaced_by_events() {
    let reasons = [
        ("cuptiSubscribe:39", "because another tool uses CUPTI already"),
        ("cuptiActivityEnable:35", "because the driver lets only administrators use CUPTI"),
        ("cuptiActivityRegisterCallbacks:999", "because cuptiActivityRegisterCallbacks returned error 999"),
    ];
    for (refusal, reason) in reasons {
        let run = run("auto", &["work", "elsewhere"], &[("FAKE_CUPTI_REFUSE", refusal)]);
        let (seen, doubt) = (run.seen(), run.doubt());
        check_all_reported(&run.ops(), &seen, doubt);
        let notes = run.manifest()["notes"].to_string();
        assert!(notes.contains(&format!("device times: events, {reason}")), "{notes}");
    }
}

/// CUPTI takes 15 ms to begin, and longer than a launch for each flush: the report says so.
#[test]
fn what_it_takes_of_the_program_is_a_part_of_the_overhead() {
    let slow = "cuptiSubscribe:15,cuptiActivityFlushAll:3";
    let run = run("auto", &["work", "together"], &[("FAKE_CUPTI_SLOW", slow)]);
    check_all_reported(&run.ops(), &run.seen(), 1000);
    let manifest = run.manifest();
    let timing = manifest["cost"]["timing"].as_array().expect("what was measured").clone();
    let cuda = timing.iter().find(|row| row["api"] == "cuda").expect("that of CUDA");
    let ms = |name: &str| cuda[name].as_f64().unwrap_or(0.0) / 1e6;
    let lifetime = manifest["lifetime_ns"].as_f64().expect("a lifetime") / 1e6;
    assert!(ms("collector_start_ns") >= 15.0 && ms("collector_start_ns") < lifetime, "{cuda}");
    // At the end of the program, twice: for what is complete, and for the rest.
    assert!(ms("collector_end_ns") >= 6.0 && ms("collector_end_ns") < lifetime, "{cuda}");
    // What the program's own calls take longer can't be measured in it.
    assert!(cuda["collector_once_ns"][0].as_u64() > Some(0), "{cuda}");
    assert_eq!(cuda["calls"], 0, "nothing is done inside of the calls");
    let mut tally = std::process::Command::new(hetrace_tests::hetrace());
    let done = hetrace_tests::bed::run(tally.args(["tally"]).arg(run.scratch.path().join("trace")));
    assert!(done.out.contains(" ms in the collector of device times ("), "{}", done.out);
    assert!(done.out.contains(" ms to start, ") && done.out.contains(" ms to end), "), "{}", done.out);
    assert!(done.out.contains(" about in its part of contexts and of the end (calibrated, "), "{}", done.out);
}

/// Counters of managed memory are not even asked for.
#[test]
fn migrations_can_be_left_out() {
    let refused = [("FAKE_CUPTI_REFUSE", "cuptiActivityConfigureUnifiedMemoryCounter:999")];
    for (options, asked) in [(&[][..], true), (&["--no-migrations"], false)] {
        let run = run_with(options, "auto", &["work", "together"], &refused);
        check_all_reported(&run.ops(), &run.seen(), 1000);
        let notes = run.manifest()["notes"].to_string();
        assert_eq!(notes.contains("migrations of managed memory are not recorded"), asked, "{notes}");
    }
}

#[test]
fn what_it_drops_is_counted() {
    let run = run("auto", &["work", "threads"], &[("FAKE_CUPTI_DROP", "10")]);
    let seen = run.seen();
    check_order(&seen, 0);
    // Counted once.
    assert_eq!((seen.commands.len() as u64, run.lost(), in_flight(&run)), (7200, 800, 0));
}

#[test]
fn a_program_that_uses_it_gets_it() {
    for program in ["takes_cupti", "asks_cupti"] {
        let run = run("auto", &[program], &[]);
        let seen = run.seen();
        assert_eq!(run.done.out, "30 kernels\n", "{program}: {}", run.done.err);
        assert_eq!(kinds(&seen), BTreeMap::from([("kernel", 50)]), "{program}");
        assert_eq!((run.lost(), in_flight(&run)), (0, 0), "{program}");
        check_order(&seen, run.doubt());
        let notes = run.manifest()["notes"].to_string();
        assert!(notes.contains("events from here on, because the program uses CUPTI itself"), "{notes}");
    }
}

#[test]
fn a_kill_costs_no_more_than_a_period() {
    let run = work("auto", "killed");
    assert_eq!(run.done.status, 128 + 9, "{}", run.done.err);
    let seen = hetrace_tests::Seen::read(&run.scratch.path().join("trace"));
    assert!(seen.damage.is_empty(), "{:?}", seen.damage);
    let launches = seen.entries.values().flatten().filter(|(_, name)| name == "cuLaunchKernel");
    let mut launches: Vec<u64> = launches.map(|(time, _)| *time).collect();
    launches.sort_unstable();
    // The program launches for ten periods and more: nearly all have reported, and only the end is missing.
    let mut causes: Vec<u64> = seen.commands.iter().map(|c| c.cause).collect();
    causes.sort_unstable();
    assert_eq!(causes, launches[..causes.len()], "not the first ones");
    assert!(causes.len() > launches.len() / 2, "{} of {}", causes.len(), launches.len());
    check_order(&seen, 0);
    // What it costs is reported, but for a launch that had just begun.
    let missing = (launches.len() - seen.commands.len()) as u64;
    assert!(
        missing > 0 && (missing - 1..=missing).contains(&in_flight(&run)),
        "{missing} {}",
        in_flight(&run)
    );
}

#[test]
fn a_program_may_end_with_work_in_flight() {
    let run = work("auto", "unwaited");
    assert_eq!(kinds(&run.seen()), BTreeMap::from([("kernel", 10), ("untimed", 5)]));
    assert_eq!(in_flight(&run), 0, "reported as such");
}

#[test]
fn contexts_and_processes_end() {
    let run = work("auto", "destroy");
    assert_eq!(run.seen().commands.len() as u64 + run.lost(), run.ops().len() as u64, "reported or counted");
    run.check_no_misuse();
    let run = work("auto", "fork");
    let mut by_process = BTreeMap::new();
    run.seen().commands.iter().for_each(|c| *by_process.entry(c.pid).or_insert(0) += 1);
    let counts: Vec<i32> = by_process.into_values().collect();
    assert!(counts == [1, 4] || counts == [4, 1], "{counts:?}");
    run.check_no_misuse();
}

#[test]
fn streams_come_and_go() {
    let run = work("auto", "churn");
    check_reported(&run);
}
