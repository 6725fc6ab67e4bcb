//! Times of HIP's commands: what was in the time lines of the fake library's streams (`tests/programs/hip/fake_hip.c`)
//! against what the trace has. It is a fake: no AMD GPU has been seen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_hip::programs;
use hetrace_tests::seen::Command as OnDevice;
use hetrace_tests::{Done, Seen, hetrace, reports};
use tempfile::TempDir;

struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

fn traced(program: &str, variables: &[(&str, &str)], options: &[&str]) -> Ran {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("trace");
    let with = |command: &mut Command| {
        run(command.env("LD_LIBRARY_PATH", programs()).envs(variables.iter().copied()))
    };
    let bare = with(&mut Command::new(programs().join(program)));
    let mut command = Command::new(hetrace());
    command.args(["run", "--buffer", "8192"]).args(options).arg("-o").arg(&folder);
    let done = with(command.arg("--").arg(programs().join(program)));
    let said = |done: &Done| {
        let lines = done.out.lines().filter(|line| !line.starts_with("RAN ")).map(str::to_owned);
        (lines.collect::<Vec<_>>(), done.status)
    };
    assert_eq!(said(&done), said(&bare), "{}", done.err);
    Ran { done, folder, _scratch: scratch }
}

impl Ran {
    /// What the library says of each command.
    fn said(&self) -> Vec<BTreeMap<String, String>> {
        let lines = self.done.out.lines().filter_map(|line| line.strip_prefix("RAN "));
        let pair = |pair: &str| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        let mut said: Vec<BTreeMap<_, _>> =
            lines.map(|line| line.split(' ').filter_map(pair).collect()).collect();
        said.sort_by_key(|said| said["start"].parse::<u64>().expect("a time"));
        said
    }

    fn seen(&self) -> Vec<OnDevice> {
        let mut commands = Seen::read(&self.folder).commands;
        commands.sort_by_key(|c| c.start);
        commands
    }

    fn tally(&self) -> serde_json::Value {
        reports::tally(&self.folder)
    }
}

/// Each command is in the trace once, with its name, and lasted as long as in its stream's time line: what its events
/// say, which are apart by what it took to record them where the stream had nothing else to do.
fn check(ran: &Ran) {
    let (said, seen) = (ran.said(), ran.seen());
    let names = |commands: &mut dyn Iterator<Item = (String, String)>| {
        let mut names: Vec<_> = commands.map(|(kind, name)| format!("{kind} {name}")).collect();
        names.sort();
        names
    };
    let known = |name: &str| match name {
        "-" => String::new(),
        name => name.to_owned(),
    };
    assert_eq!(
        names(&mut seen.iter().map(|c| (c.kind.clone(), c.name.clone()))),
        names(&mut said.iter().map(|s| (s["kind"].clone(), known(&s["name"])))),
        "{}{}",
        ran.done.out,
        ran.done.err
    );
    assert_eq!(ran.tally()["lost_device_commands"], 0);
    // Commands behind others of their stream begin when these end, and then the events say it to the float's precision.
    let mut behind = 0;
    for kind in ["s", "l", "p"] {
        let line: Vec<_> = said.iter().filter(|s| s["stream"] == kind).collect();
        for pair in line.windows(2).filter(|pair| pair[0]["end"] == pair[1]["start"]) {
            let number = |name: &str| pair[1][name].parse::<u64>().expect("a time");
            let lasted = number("end") - number("start");
            let name = known(&pair[1]["name"]);
            // A copy that the call waits for has ended before the event behind it is recorded.
            let blocks = pair[1]["kind"] == "read";
            let found = seen.iter().filter(|c| c.kind == pair[1]["kind"] && c.name == name).any(|c| {
                let here = c.end - c.start;
                here.abs_diff(lasted) <= 200 + lasted / 1000 || (blocks && here > lasted)
            });
            assert!(found, "{pair:?}\n{seen:#?}");
            behind += 1;
        }
    }
    assert!(behind >= 5, "{}", ran.done.out);
    for command in &seen {
        assert_eq!(command.device_name, "a fake of gfx90a");
    }
}

#[test]
fn commands_have_the_times_of_their_streams() {
    let ran = traced("device", &[], &[]);
    check(&ran);
    let seen = ran.seen();
    let bytes = |kind: &str| seen.iter().filter(|c| c.kind == kind).map(|c| c.bytes).sum::<u64>();
    assert_eq!([bytes("write"), bytes("read"), bytes("copy")], [3 * 4096, 3 * 512 + 64, 3 * 256]);
    let sizes = |name: &str| {
        let mut all: Vec<_> = seen.iter().filter(|c| c.name == name).map(|c| c.global.clone()).collect();
        all.sort();
        all.dedup();
        all
    };
    assert_eq!(sizes("module_kernel"), [vec![32, 3, 1], vec![64, 8, 1]]);
    assert!(ran.done.err.contains("captured commands are timed as part of their graph"), "{}", ran.done.err);
    let tally = ran.tally();
    assert!(tally["utilization"][0]["device"].as_str().expect("a name").starts_with("a fake of gfx90a"));
    // The default streams, of all threads and of the one, and two of the program's.
    let queues: std::collections::BTreeSet<u64> = seen.iter().map(|c| c.queue).collect();
    assert_eq!(queues.len(), 3, "{queues:?}");
}

/// chipStar, say, which ends a program at a call that it did not make: its calls are recorded, its commands have no times,
/// and the report says why.
#[test]
fn a_library_of_another_maker_gets_no_calls_of_ours() {
    // `traced` compares what the program prints, and how it ends, with a run without us.
    let ran = traced("other", &[], &[]);
    assert!(ran.done.err.contains("device times: HIP's library is not AMD's"), "{}", ran.done.err);
    assert!(ran.seen().is_empty(), "{:?}", ran.seen());
    let launches = |name: &str| {
        let rows = ran.tally()["host"].as_array().expect("rows").clone();
        rows.iter().filter(|row| row["name"] == name).filter_map(|row| row["calls"].as_u64()).sum::<u64>()
    };
    assert!(launches("hipLaunchKernel") > 0 && launches("hipStreamCreateWithFlags") > 0, "{}", ran.tally());
}

/// As in versions before 6: every call of ours would be the thread's last error.
#[test]
fn the_last_error_stays_the_programs() {
    for variables in [&[][..], &[("FAKE_HIP_OLD", "1")]] {
        // `traced` compares what the program prints of it with a run without us.
        let ran = traced("device", variables, &[]);
        assert!(ran.done.out.contains("failed: last error 1\n"), "{}", ran.done.out);
    }
}

/// A value of `LD_LIBRARY_PATH` by which the fake rocprofiler-sdk is found, too.
fn with_profiler() -> String {
    format!("{0}:{0}/profiler", programs().display())
}

fn profiled(variables: &[(&str, &str)], options: &[&str]) -> Ran {
    let path = with_profiler();
    let all: Vec<(&str, &str)> =
        [("LD_LIBRARY_PATH", &*path)].into_iter().chain(variables.iter().copied()).collect();
    traced("device", &all, options)
}

/// Each command of the program with its kind and how long it lasted, the shortest first.
fn lasted(commands: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut all: Vec<_> = commands.collect();
    all.sort();
    all
}

/// A fake: it shows that ours takes what the real one documents, not that the real one works.
#[test]
fn commands_have_the_times_of_the_collector() {
    let ran = profiled(&[], &[]);
    assert!(ran.done.err.contains("device times: rocprofiler-sdk"), "{}", ran.done.err);
    check(&ran);
    // To the nanosecond of both clocks' relation, of all commands and not only of those behind others; the collector's
    // clock is 7000 seconds apart from the host's.
    let said = lasted(ran.said().iter().map(|s| {
        let number = |name: &str| s[name].parse::<u64>().expect("a time");
        (s["kind"].clone(), number("end") - number("start"))
    }));
    let seen = lasted(ran.seen().iter().map(|c| (c.kind.clone(), c.end - c.start)));
    assert_eq!(seen.len(), said.len());
    for (said, seen) in said.iter().zip(&seen) {
        assert!(said.0 == seen.0 && said.1.abs_diff(seen.1) <= 50 + said.1 / 1000, "{said:?} {seen:?}");
    }
    // Its calls end before or after what they enqueued, but none begins later.
    let calls = Seen::read(&ran.folder);
    for command in &calls.commands {
        assert!(command.start > 0 && command.end >= command.start, "{command:?}");
    }
}

#[test]
fn without_the_collector_events_are_used_and_the_report_says_why() {
    for (variables, why) in [
        (&[("FAKE_ROCPROFILER", "locked")][..], "events, because rocprofiler-sdk was configured before"),
        (
            &[("FAKE_ROCPROFILER", "refuses")],
            "events, because rocprofiler-sdk refuses to trace kernels and copies",
        ),
        (
            &[("HETRACE_ROCPROFILER", "/nowhere"), ("FAKE_ROCPROFILER", "locked")],
            "HETRACE_ROCPROFILER is not usable",
        ),
    ] {
        let ran = profiled(variables, &[]);
        assert!(ran.done.err.contains(why), "{}", ran.done.err);
        check(&ran);
    }
    let ran = traced("device", &[], &[]);
    assert!(ran.done.err.contains("events, because there is no librocprofiler-sdk"), "{}", ran.done.err);
    let ran = profiled(&[], &["--device-times", "events"]);
    assert!(ran.done.err.contains("device times: events, as requested"), "{}", ran.done.err);
    check(&ran);
}

/// Found by the variable, and by its function, as a tool that is preloaded is.
#[test]
fn another_tool_of_the_collectors_gets_what_it_wants() {
    let tool = programs().join("libother_tool.so").display().to_string();
    for variable in ["ROCP_TOOL_LIBRARIES", "LD_PRELOAD"] {
        let ran = profiled(&[(variable, &tool)], &[]);
        let dispatches = ran.said().iter().filter(|s| ["kernel", "fill"].contains(&&*s["kind"])).count() + 4;
        let line = format!("other tool: {dispatches} kernels, 0 ids of others");
        assert!(ran.done.err.contains(&line), "{line}\n{}", ran.done.err);
        check(&ran);
    }
}

#[test]
fn what_the_collector_does_not_deliver_is_counted_as_lost() {
    let ran = profiled(&[("FAKE_ROCPROFILER", "staged")], &[]);
    let (said, seen) = (ran.said().len(), ran.seen().len());
    assert_eq!((seen + 1, ran.tally()["lost_device_commands"].as_u64()), (said, Some(1)), "{}", ran.done.err);
    let ran = profiled(&[("FAKE_ROCPROFILER", "silent")], &[]);
    assert_eq!((ran.seen().len(), ran.tally()["lost_device_commands"].as_u64()), (0, Some(said as u64)));
}

#[test]
fn samples_are_counted() {
    let ran = traced("device", &[], &["--device-times", "sampled:2"]);
    let launches = Seen::read(&ran.folder).launches;
    let counted: u64 = launches.values().map(|[all, ..]| all).sum();
    let kernels = ran.said().iter().filter(|s| s["kind"] == "kernel").count() as u64;
    assert_eq!(counted, kernels, "{launches:?}");
}
