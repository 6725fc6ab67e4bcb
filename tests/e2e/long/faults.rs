//! What happens to long runs: a wall clock that is set, a program that is stopped in the middle of a record, a launcher that
//! is killed between two parts.

use hetrace_ctf::read::{Files, StreamReader, Trace};

use super::*;

#[test]
fn a_wall_clock_that_is_set_changes_nothing_but_dates() {
    let scratch = tempfile::tempdir().expect("a folder");
    let clock = scratch.path().join("clock");
    let shim = program("launcher.so").display().to_string();
    let variables = [("LD_PRELOAD", shim.as_str()), ("WALL_CLOCK", clock.to_str().expect("a path"))];
    let options = ["--sample=10ms", "--rotate-every", "1s", "--keep-for", "30m"];
    let mut long = Long::start_with(&variables, &options, &["launch:10", "touch:a", "wait:b", "launch:10"]);
    long.until("a");
    let one_more = |count: usize| {
        let next = long.trace.join(format!("{:04}", long.parts().len() + count));
        wait_for("parts", || next.exists());
    };
    one_more(1);
    // An hour back, and then two days ahead: all parts are older than thirty minutes by it.
    for set in ["-3600", "172800"] {
        std::fs::write(&clock, set).expect("a file");
        one_more(2);
    }
    long.go("b");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(!err.contains("removed"), "{err}");
    let parts = long.parts();
    assert_eq!(parts[0].file_name().expect("a name"), "0001", "nothing was removed by the wall clock");
    let times = |name: &str| -> Vec<i64> {
        parts.iter().map(|part| manifest(part)[name].as_i64().expect("a time")).collect()
    };
    let (monotonic, wall) = (times("start_ns"), times("start_realtime_ns"));
    assert!(monotonic.is_sorted(), "{monotonic:?}");
    let steps: Vec<i64> = wall.windows(2).map(|two| (two[1] - two[0]) / 1_000_000_000).collect();
    assert!(steps.iter().any(|step| *step < -3000) && steps.iter().any(|step| *step > 170_000), "{steps:?}");
    parts.iter().for_each(|part| is_sound(part));
    is_sound(&long.trace);
    assert_eq!(launched(&long.trace), 20);
    let whole = tally(&long.trace);
    assert_eq!(
        (&whole["unfinished_calls"], &whole["steps_back"], &whole["lost_events"]),
        (&0.into(), &0.into(), &0.into())
    );
    // The whole run took what it took by the clock that nobody sets.
    let took = whole["duration_ns"].as_i64().expect("a time");
    assert!(took > 0 && took < 3_000_000_000_000, "{took}");
}

/// Whether all threads of a process are stopped.
fn is_stopped(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[test]
fn a_program_that_is_stopped_in_the_middle_of_a_record_holds_up_nothing() {
    let half = program("half_record").display().to_string();
    let other = program("windows").display().to_string();
    let script =
        format!("{half} 7 5 > said & {other} wait:a launch:6000 touch:b wait:c launch:6000 touch:d; wait");
    let options = ["--sample=10ms", "--rotate-size", "64K"];
    let mut long = Long::start_line(None, &options, &["sh", "-c", &script], &[]);
    long.until("half");
    let mut pid = String::new();
    wait_for("a stopped process", || {
        pid = std::fs::read_to_string(long.path("half")).unwrap_or_default();
        is_stopped(&pid)
    });
    // Parts go on, with the calls of the other process.
    for (go, until) in [("a", "b"), ("c", "d")] {
        let parts = long.parts().len();
        long.go(go);
        long.until(until);
        wait_for("parts", || long.parts().len() > parts + 1);
    }
    let asked = run(Command::new(hetrace()).args(["snapshot", "--wait", "300"]).arg(long.id()));
    assert_eq!(asked.status, 0, "{}", asked.err);
    assert!(is_stopped(&pid));
    // What is half written is not there, neither as a call nor as damage.
    let early = tally(&long.trace);
    assert_eq!((launched(&long.trace), &early["unfinished_calls"]), (12_007, &0.into()));
    assert_eq!((&early["lost_events"], &early["damaged_bytes"]), (&0.into(), &0.into()));
    let before = long.parts().len();
    let go_on = run(Command::new("kill").args(["-s", "CONT", &pid]));
    assert_eq!(go_on.status, 0, "{}", go_on.err);
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let said = std::fs::read_to_string(long.path("said")).expect("what it said");
    assert!(said.contains("FAULTS 1"), "{said}");
    if cfg!(target_arch = "x86_64") {
        assert!(
            said.lines().any(|line| line.starts_with("FAULT") && line.contains("libhetrace_opencl")),
            "{said}"
        );
    }
    // Afterwards it is there once.
    let whole = tally(&long.trace);
    assert_eq!(launched(&long.trace), 12_000 + 7 + 1 + 5);
    for name in ["unfinished_calls", "orphaned_exits", "lost_events", "damaged_bytes", "steps_back"] {
        assert_eq!(whole[name], 0, "{name}");
    }
    let parts = long.parts();
    assert_eq!(parts.iter().map(|part| launched(part)).sum::<u64>(), 12_013);
    assert!(parts.len() >= before);
    parts.iter().for_each(|part| is_sound(part));
    is_sound(&long.trace);
}

/// Runs until hetrace is killed by itself where a name is given, and the program until it has done all. Returns what it left.
fn killed(at: &str, options: &[&str]) -> Long {
    let shim = program("launcher.so").display().to_string();
    let script = ["launch:1000", "touch:a", "wait:b", "launch:300", "touch:c", "wait:d"];
    // It lives on meanwhile: what is left by programs that have ended, whoever runs hetrace recovers.
    let mut long = Long::start_with(&[("LD_PRELOAD", &shim), ("KILL_AT", at)], options, &script);
    // The program has its stderr, so that it can't be read to its end yet.
    let child = long.child.as_mut().expect("a child");
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), None, "{at}: not killed");
    long.go("b");
    long.until("c");
    long
}

/// Each launch is there, or said to be lost: rings are not emptied any more, and the machine may be slow. One in the middle
/// of which hetrace was killed is one call.
fn all_launches(trace: &Path) {
    let lost = tally(trace)["lost_events"].as_u64().expect("a number");
    let seen = launched(trace);
    assert!(seen == 1300 || seen < 1300 && seen + lost >= 1300, "{seen} launches, {lost} events lost");
}

/// Parts, and what else is in the folder.
fn left(long: &Long) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    long.parts().into_iter().partition(|path| !name(path).starts_with('.'))
}

#[test]
fn a_launcher_that_is_killed_between_two_parts_leaves_all_that_was_recorded() {
    // Before the second has its name; before anybody has noted that it is there; before the first is finished.
    for (at, count) in [("before:/.0002.tmp", 1), ("after:/.0002.tmp", 2), ("after:/trace.new", 2)] {
        let long = killed(at, &["--rotate-size", "64K"]);
        assert_eq!(left(&long).0.len(), count, "{at}");
        let before = command("tally", &long.trace);
        assert!(before.status == 0 && before.err.contains("hetrace recover"), "{at}: {}", before.err);
        let done = command("recover", &long.trace);
        assert!(done.status == 0 && done.err.contains("recovered"), "{at}: {}", done.err);
        long.go("d");
        all_launches(&long.trace);
        let (parts, others) = left(&long);
        assert_eq!((parts.len(), others.len()), (count, 0), "{at}: {others:?}");
        let (last, finished) = parts.split_last().expect("a part");
        let table = command("tally", last);
        assert!(table.out.contains("killed while it recorded"), "{at}: {}", table.out);
        for part in finished {
            is_complete(part);
            assert!(command("tally", part).out.contains("killed when it went over to the next part"), "{at}");
        }
        let added_up = parts.iter().map(|part| launched(part)).sum::<u64>();
        assert_eq!(added_up, launched(&long.trace), "{at}: the parts, added up");
        // It is finished: nothing says any more that something could be recovered.
        let after = command("tally", &long.trace);
        assert!(after.status == 0 && !after.err.contains("recover"), "{at}: {}", after.err);
        // How the program ended nobody knows, which is said of the last part.
        let checked = command("check", &long.trace).out;
        assert!(
            checked.contains("1 finding") && checked.contains("the recording is unfinished"),
            "{at}: {checked}"
        );
    }
}

#[test]
fn a_part_without_the_operating_systems_events_says_so() {
    if !hetrace_tests::has_tracepoints() {
        return;
    }
    let long = killed("after:/.0002.tmp", &["--rotate-size", "64K", "--os", "tree"]);
    let missing = |when: &str| {
        let checked = command("check", &long.trace);
        let said = checked.out.contains("0002: the trace of the operating system is missing");
        assert!(checked.status == 1 && said, "{when}: {}{}", checked.out, checked.err);
    };
    missing("before");
    let done = command("recover", &long.trace);
    assert!(done.status == 0 && done.err.contains("recovered"), "{}", done.err);
    missing("after");
    all_launches(&long.trace);
    let (parts, others) = left(&long);
    assert_eq!((parts.len(), others.len()), (2, 0), "{others:?}");
    let table = command("tally", &parts[1]);
    assert!(table.out.contains("events of the operating system are missing in this part"), "{}", table.out);
    // The part before has an account of both of its traces.
    is_complete(&parts[0]);
    // What there is of them can be read, also packed.
    let file = long.path("job.tar");
    let packed = run(Command::new(hetrace()).arg("pack").arg(&long.trace).arg("-o").arg(&file));
    assert!(packed.status == 0 && packed.err.contains("0002/kernel"), "{}", packed.err);
    let events = |trace: &Path| {
        let files = Files::open(trace).expect("a series");
        let kernel = Trace::from_files(files.kernel().expect("a kernel trace")).expect("a kernel trace");
        let count =
            |mut stream: StreamReader<'_>| std::iter::from_fn(|| stream.next_event().map(drop)).count();
        kernel.streams().map(count).collect::<Vec<_>>()
    };
    assert_eq!(events(&file), events(&long.trace));
}
