//! Commands on CUDA devices, timed by events, on a driver that simulates devices and
//! reports afterwards what they did.

#[path = "cuda/run.rs"]
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command as Process;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Trace;
use hetrace_tests::hetrace;
use run::{Op, Run, check_all_reported, check_order, kinds, run, run_with, work};

#[test]
fn streams_of_two_devices() {
    let run = work("events", "streams");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    check_all_reported(&run.ops(), &seen, doubt);
    assert_eq!(
        kinds(&seen),
        BTreeMap::from([("copy", 2), ("fill", 2), ("kernel", 300), ("read", 4), ("write", 4)])
    );
    let devices: BTreeSet<&str> = seen.devices.values().map(String::as_str).collect();
    assert_eq!(devices, BTreeSet::from(["Fake Device 0", "Fake Device 1"]));
    assert_eq!(run.lost(), 0);
    run.check_no_misuse();
}

#[test]
fn a_stream_of_another_context_than_the_current_one() {
    let run = work("events", "elsewhere");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    check_all_reported(&run.ops(), &seen, doubt);
    assert!(seen.commands.iter().all(|c| c.device == 1));
    run.check_no_misuse();
}

#[test]
fn a_capture_is_not_disturbed() {
    // The program itself checks its graph.
    let run = work("events", "capture");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    assert_eq!(kinds(&seen), BTreeMap::from([("graph", 7), ("kernel", 101)]));
    // Five kernels of 4 µs in each graph.
    assert!(seen.commands.iter().filter(|c| c.kind == "graph").all(|c| c.end - c.start >= 19_000));
    assert_eq!(run.lost(), 0);
    run.check_no_misuse();
}

#[test]
fn default_streams_of_threads() {
    let run = work("events", "per_thread");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    check_all_reported(&run.ops(), &seen, doubt);
    let queues: BTreeSet<(u64, u64)> = seen.commands.iter().map(|c| (c.queue, c.queue_number)).collect();
    assert_eq!(queues.len(), 3, "one legacy stream and two of threads");
    let handles: Vec<u64> = queues.iter().map(|(handle, _)| *handle).collect();
    assert_eq!(handles, [1, 2, 2], "as the driver's documentation has them");
}

#[test]
fn contexts_that_end_with_work_in_flight() {
    let run = work("events", "destroy");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    let all = run.ops().len() as u64;
    assert_eq!(all, 61);
    assert_eq!(seen.commands.len() as u64 + run.lost(), all, "reported or counted");
    run.check_no_misuse();
}

#[test]
fn an_illegal_access_ends_it_quietly() {
    let run = work("events", "fault");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    assert_eq!((seen.commands.len(), run.lost()), (5, 1));
    let notes = run.manifest()["notes"].to_string();
    assert_eq!(notes.matches("CUDA error 700").count(), 1, "{notes}");
}

#[test]
fn many_threads() {
    let run = work("events", "threads");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    assert_eq!(seen.commands.len() as u64 + run.lost(), 8000, "reported or counted");
    assert!(seen.commands.len() > 7900, "{} lost", run.lost());
    run.check_no_misuse();
}

#[test]
fn clocks_are_compared_again_and_again() {
    let run = work("events", "slowly");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    check_all_reported(&run.ops(), &seen, doubt);
    // Without comparisons, what is known of the clock is that each kernel lay between its launch and the end
    // of a wait at least 10 ms later.
    assert!(doubt < 2_000_000, "known to {doubt} ns");
    assert_eq!(run.manifest()["device_clocks"][0]["epochs"], 1);
}

#[test]
fn addresses_of_unloaded_code_come_again() {
    let run = work("events", "modules");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_all_reported(&run.ops(), &seen, doubt);
    let names: BTreeSet<&str> = seen.commands.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), 20);
}

#[test]
fn a_few_launches_stand_for_all() {
    let run = work("sampled:10", "sampled");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    let of = |name: &str| seen.commands.iter().filter(|c| c.name == name).count();
    // The first, and one of each ten after it.
    assert!((100..=101).contains(&of("k300")), "{}", of("k300"));
    assert!((4..=5).contains(&of("k9000")), "{}", of("k9000"));
    assert_eq!(of("rare"), 1);
}

/// What the devices did and what the tables say, where hardly anything may be spent on recording.
#[test]
fn with_a_limit_all_commands_are_counted() {
    for mode in ["streams", "sampled", "threads", "modules", "per_thread"] {
        let run = run_with(&["--max-overhead", "0.01%"], "auto", &["work", mode], &[]);
        assert_eq!(run.done.status, 0, "{}", run.done.err);
        let notes = run.manifest()["notes"].to_string();
        assert!(notes.contains("device times: events, as there is a limit"), "{notes}");
        let json = Process::new(hetrace()).args(["tally", "--json"]).arg(&run.files("trace")[0]).output();
        let json = json.expect("tally").stdout;
        let tables: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        let mut found: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
        for row in tables["device"].as_array().expect("rows") {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let sums = found.entry((text("kind"), text("symbol"))).or_default();
            sums[0] += row["calls"].as_u64().expect("a count");
            sums[1] += row["bytes"].as_u64().unwrap_or(0);
        }
        let mut expected: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
        for op in run.ops() {
            let is_kernel = op.kind == "kernel";
            let name = if is_kernel { op.name.clone() } else { String::new() };
            let sums = expected.entry((op.kind.clone(), name)).or_default();
            sums[0] += 1;
            sums[1] += if is_kernel { 0 } else { op.bytes };
        }
        assert_eq!(found, expected, "{mode}");
        check_launches(&run, &tables, mode);
        run.check_no_misuse();
    }
}

/// Calls are all counted, also those of which nothing else is known.
fn check_launches(run: &Run, tables: &serde_json::Value, mode: &str) {
    let counts = std::fs::read_to_string(&run.files("counts.")[0]).expect("counts");
    let made = counts.lines().find_map(|line| line.strip_prefix("cuLaunchKernel ")?.parse::<u64>().ok());
    let rows = tables["host"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "cuLaunchKernel");
    assert_eq!(row.and_then(|row| row["calls"].as_u64()), made, "{mode}");
}

#[test]
fn off_is_off() {
    let run = work("off", "streams");
    let seen = run.seen();
    assert!(seen.commands.is_empty());
    assert_eq!(seen.total()["cuLaunchKernel"], 302);
    let counts = std::fs::read_to_string(&run.files("counts.")[0]).expect("counts");
    assert!(!counts.contains("cuEventRecord"), "{counts}");
}

#[test]
fn children_touch_nothing_of_their_parents() {
    let run = work("events", "fork");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    let mut by_process = BTreeMap::new();
    for c in &seen.commands {
        *by_process.entry(c.pid).or_insert(0) += 1;
    }
    assert_eq!(by_process.into_values().collect::<BTreeSet<_>>(), BTreeSet::from([1, 4]));
    run.check_no_misuse();
}

#[test]
fn contexts_of_one_device_share_its_clock() {
    let run = work("events", "together");
    let (seen, doubt) = (run.seen(), run.doubt());
    // The second joins the first's clock by a bracket of its own.
    check_all_reported(&run.ops(), &seen, doubt + 20_000);
    assert_eq!(run.manifest()["device_clocks"].as_array().expect("clocks").len(), 1);
}

#[test]
fn functions_that_the_driver_hands_out() {
    for source in ["events", "auto"] {
        let run = run(source, &["looked_up"], &[]);
        let seen = run.seen();
        let total = seen.total();
        assert_eq!((total["cuLaunchKernel"], total["cuLaunchKernel_ptsz"]), (3, 4));
        check_all_reported(&run.ops(), &seen, if source == "auto" { 1000 } else { run.doubt() });
        let queues: BTreeSet<u64> = seen.commands.iter().map(|c| c.queue).collect();
        assert_eq!((seen.commands.len(), queues.len()), (7, 2));
        assert!(seen.commands.iter().all(|c| c.name == "k1000"));
    }
}

#[test]
fn an_old_driver_has_no_ids_and_no_names() {
    for mode in ["streams", "modules", "per_thread", "destroy"] {
        let run = run("events", &["work", mode], &[("FAKE_CUDA_OLD", "1")]);
        let (seen, doubt, ops) = (run.seen(), run.doubt(), run.ops());
        check_order(&seen, doubt);
        assert_eq!(seen.commands.len() as u64 + run.lost(), ops.len() as u64, "{mode}");
        let (mut done, mut recorded) = (BTreeMap::new(), BTreeMap::new());
        ops.iter().for_each(|o| *done.entry(o.name.replace('-', "")).or_insert(0) += 1);
        seen.commands.iter().for_each(|c| *recorded.entry(c.name.clone()).or_insert(0) += 1);
        assert!(mode == "destroy" || recorded == done, "{mode}: {recorded:?} {done:?}");
        let queues = |ops: &[Op]| ops.iter().map(|o| (o.context, o.stream)).collect::<BTreeSet<_>>().len();
        let key = |c: &run::Command| (c.context, c.queue_number);
        let keys: BTreeSet<(u64, u64)> = seen.commands.iter().map(key).collect();
        assert!(mode == "destroy" || keys.len() == queues(&ops), "{mode}: {keys:?}");
    }
}

#[test]
fn commands_of_calls_that_are_not_recorded() {
    let run = run("events", &["work", "per_thread"], &[("HETRACE_EXCLUDE", "*")]);
    assert_eq!(run.seen().commands.len(), 1 + 2 * 22);
}

#[test]
fn a_callback_asks_nothing_and_may_end_the_program() {
    for source in ["events", "auto"] {
        let run = work(source, "callback");
        let seen = run.seen();
        let kernels = seen.commands.iter().filter(|c| c.kind == "kernel").count();
        // What is not known at the end is in flight, and no context is broken by it.
        assert!((2..=3).contains(&kernels), "{source}: {kernels}");
        assert_eq!(run.lost(), 0, "{source}");
        assert!(!run.manifest()["notes"].to_string().contains("CUDA error"), "{}", run.manifest()["notes"]);
        run.check_no_misuse();
    }
}

#[test]
fn commands_are_all_there_however_many_are_in_flight() {
    let run = work("events", "inflight");
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    assert_eq!(kinds(&seen), BTreeMap::from([("kernel", 60_004)]));
    assert_eq!(run.ops().len(), 60_004);
    assert_eq!(run.lost(), 0);
    run.check_no_misuse();
}

#[test]
fn commands_beyond_the_bound_are_counted() {
    let options = ["--buffer", "8192", "--max-in-flight", "1000"];
    let run = run_with(&options, "events", &["work", "inflight", "5000"], &[]);
    let (seen, doubt) = (run.seen(), run.doubt());
    check_order(&seen, doubt);
    // One before, and then 1,000; a few more if the launches take as long as what holds them back.
    let (recorded, lost) = (seen.commands.len() as u64, run.lost());
    assert_eq!(recorded + lost, 5_004);
    assert!(recorded >= 1_001 && lost > 0, "{recorded} recorded");
    let report = &run.done.err;
    assert!(report.contains(&format!("LOST: {lost} device commands")), "{report}");
    assert!(report.contains("(--max-in-flight N allows more)"), "{report}");
    run.check_no_misuse();
}

/// Runs a program that waits for four streams, and checks what does not depend on times. Returns in how many of the
/// calls no command ended.
fn wait_for_streams(source: &str) -> u64 {
    let run = work(source, "waits");
    let seen = run.seen();
    let line = run.done.out.lines().find_map(|l| l.strip_prefix("streams ")).expect("the program's handles");
    let words = line.split(' ').filter_map(|word| word.strip_prefix("0x"));
    let [s, other, first, second] =
        words.map(|digits| u64::from_str_radix(digits, 16).expect("a handle")).collect::<Vec<_>>()[..]
    else {
        panic!("four handles: {line}")
    };
    let mut on: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for command in &seen.commands {
        *on.entry((command.queue, command.context)).or_default() += 1;
    }
    let expected = [((s, second), 1), ((other, second), 20), ((1, first), 1), ((1, second), 1)];
    assert_eq!(on, BTreeMap::from(expected), "{source}");
    let folder = run.scratch.path().join("trace");
    let read = |options: &[&str]| {
        let done = hetrace_tests::bed::run(Process::new(hetrace()).args(options).arg(&folder));
        assert_eq!(done.status, 0, "{options:?}: {}", done.err);
        done.out
    };
    let why: serde_json::Value = serde_json::from_str(&read(&["why", "--json"])).expect("JSON");
    let rows = why["waits"].as_array().expect("waits");
    let row = rows.iter().find(|row| row["name"] == "cuStreamSynchronize").expect("the wait");
    assert_eq!(row["calls"], 4, "{source}: {row}");
    let at_once = row["immediate"].as_u64().expect("a count");
    // Default streams of two contexts have one handle and are two queues.
    let tally: serde_json::Value =
        serde_json::from_str(&read(&["tally", "--json", "--by", "queue"])).expect("JSON");
    let rows = tally["device"].as_array().expect("commands");
    let queues: BTreeSet<&str> = rows.iter().filter_map(|row| row["queue"].as_str()).collect();
    assert_eq!(queues.len(), 4, "{source}: {queues:?}");
    for context in [first, second] {
        let is_its =
            |queue: &&&str| queue.contains(":0x1 (stream ") && queue.ends_with(&format!("{context:#x})"));
        assert_eq!(queues.iter().filter(is_its).count(), 1, "{source}: {queues:?}");
    }
    at_once
}

#[test]
fn streams_have_the_handles_that_the_program_waits_for() {
    for source in ["events", "auto"] {
        // A busy machine may come to a wait when the stream is through already.
        let all = (0..5).any(|_| wait_for_streams(source) == 0);
        assert!(all, "{source}: each of the four calls waits for its stream");
    }
}

/// The definitions of devices in a trace, a line each.
fn devices(folder: &Path) -> String {
    let (trace, mut all) = (Trace::open(folder).expect("a trace"), String::new());
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.expect("an event");
            if event.class().name != "device:device" {
                continue;
            }
            let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
            let text = |name: &str| event.get(name).and_then(Scalar::as_str).unwrap_or_default();
            let (handle, ordinal) = (number("handle"), number("ordinal"));
            let (name, uuid, api) = (text("name"), text("uuid"), text("api"));
            all += &format!(
                "device handle={handle:#x} ordinal={ordinal} name=\"{name}\" uuid={uuid} api={api}\n"
            );
        }
    }
    all
}

/// What a recorded run says of devices and of the memory on them: `cuda/two_devices.txt`, which `BLESS=1` writes anew.
/// Scripts of traces that have such devices (`crates/report/tests/golden/memory_cuda.txt`) take their handles from it.
#[test]
fn memory_is_on_the_device_that_it_was_made_on() {
    let run = work("events", "memory");
    let folder = run.scratch.path().join("trace");
    let mut found = devices(&folder);
    let mut tally = Process::new(hetrace());
    let done = hetrace_tests::bed::run(tally.args(["tally", "--csv=memory"]).arg(&folder));
    assert_eq!(done.status, 0, "{}", done.err);
    for line in done.out.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        // Neither the machine's name nor a time.
        found += &[&cells[..2], &cells[3..5], &cells[6..]].concat().join(",");
        found += "\n";
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/cuda/two_devices.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).expect("writable");
    }
    assert_eq!(found, std::fs::read_to_string(&path).expect("readable"));
}
