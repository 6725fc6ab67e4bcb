//! `pack`, `unpack`, `trim`, `merge` and `recover` of traces with events of the operating system beside the program's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hetrace_ctf::read::Files;
use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::{Platform, has_tracepoints, hetrace};
use hetrace_trace::system::{State, System};
use hetrace_trace::trace::Trace;
use serde_json::Value;

fn well(arguments: &[&str], paths: &[&Path]) -> Done {
    let done = run(Command::new(hetrace()).args(arguments).args(paths));
    assert_eq!(done.status, 0, "{arguments:?} {paths:?}: {}{}", done.out, done.err);
    done
}

fn manifest(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("hetrace/hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Records without a loss.
fn record(scratch: &Path, name: &str, options: &[&str], script: &[&str]) -> PathBuf {
    let trace = scratch.join(name);
    for _ in 0..5 {
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "--os-buffer", "32768", "-o"])
            .arg(&trace)
            .args(options)
            .arg("--")
            .args(script);
        let done = run(line.current_dir(scratch).envs(Platform::Pocl.environment(scratch)));
        assert_eq!(done.status, 0, "{}", done.err);
        let first = if trace.join("0001").exists() { trace.join("0001") } else { trace.clone() };
        if manifest(&first)["os"]["dropped"] == 0 {
            return trace;
        }
        std::fs::remove_dir_all(&trace).expect("removed");
    }
    panic!("it always drops something");
}

fn windows() -> String {
    program("windows").to_string_lossy().into_owned()
}

fn kernel_lines(trace: &Path) -> Vec<String> {
    let printed = well(&["print"], &[trace]);
    printed
        .out
        .lines()
        .filter(|line| line.contains(" kernel ") && line.contains("{cpu_id="))
        .map(str::to_owned)
        .collect()
}

fn is_complete(trace: &Path) {
    let checked = well(&["check"], &[trace]);
    assert!(checked.out.contains("complete and unchanged"), "{}{}", checked.out, checked.err);
}

/// What the kernel trace of a trace says of its threads.
fn system(trace: &Path) -> System {
    let files = Files::open(trace).expect("a trace");
    let kernel = Trace::from_files(files.kernel().expect("a kernel trace")).expect("a trace");
    hetrace_trace::os::read(&kernel, |_| true, None).expect("no watch").expect("states")
}

/// States of a thread in a time, one after the other.
fn states(system: &System, (pid, tid): (i64, i64), from: u64, to: u64) -> Vec<(u64, u64, String)> {
    let mut all: Vec<(u64, u64, String)> = Vec::new();
    for part in system.within(pid, tid, from, to) {
        let text = match part.state {
            // Its name may be another one later.
            State::Ready { behind: Some(person) } => format!("ready behind {}", system.person(person).tid),
            state => system.text(state),
        };
        match all.last_mut().filter(|(_, end, last)| *end == part.start && *last == text) {
            Some((_, end, _)) => *end = part.end,
            None => all.push((part.start, part.end, text)),
        }
    }
    all
}

#[test]
fn a_packed_trace_has_both_and_is_read_in_place() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    for options in [&["--os", "tree"][..], &["--os", "tree", "--compress"]] {
        let trace = record(scratch.path(), "trace", options, &[&windows(), "launch:20"]);
        let (file, folder) = (scratch.path().join("trace.tar"), scratch.path().join("unpacked"));
        well(&["pack", "-o", file.to_str().expect("a path")], &[&trace]);
        is_complete(&file);
        assert_eq!(kernel_lines(&file), kernel_lines(&trace));
        let [packed, plain] = [&file, &trace].map(|trace| well(&["tally", "--json"], &[trace]).out);
        assert_eq!(packed, plain, "tables with states");
        well(&["unpack", "-o", folder.to_str().expect("a path")], &[&file]);
        is_complete(&folder);
        let same = run(Command::new("diff").args(["-r", "-q"]).arg(&trace).arg(&folder));
        assert!(
            same.out.lines().all(|line| line.starts_with("Only in") && line.ends_with(": model")),
            "{}",
            same.out
        );
        // It is removed with both, when both were compared.
        std::fs::remove_file(&file).expect("removed");
        well(&["pack", "--remove", "-o", file.to_str().expect("a path")], &[&trace]);
        assert!(!trace.exists());
        // A file that is cut short lacks something of the second, and says so.
        let bytes = std::fs::read(&file).expect("a file");
        let cut = scratch.path().join("cut.tar");
        std::fs::write(&cut, &bytes[..bytes.len() * 9 / 10]).expect("a file");
        let checked = run(Command::new(hetrace()).arg("check").arg(&cut));
        assert!(checked.status == 1, "{}{}", checked.out, checked.err);
        for path in [&file, &cut] {
            std::fs::remove_file(path).expect("removed");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

#[test]
fn a_part_in_time_knows_what_threads_were_doing() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    // A thread that sleeps over the beginning of the window, one that computes, and many that begin and end.
    let script = "sleep 2 & while :; do :; done & hog=$!; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.1; done; kill $hog; wait";
    let trace = record(scratch.path(), "trace", &["--os", "tree"], &["sh", "-c", script]);
    let whole = system(&trace);
    for (from, to) in [(300u64, 700u64), (650, 5000)] {
        let part = scratch.path().join(format!("part-{from}"));
        let times = [format!("--from={from}ms"), format!("--to={to}ms")];
        let out = format!("-o{}", part.display());
        well(&["trim", &times[0], &times[1], &out], &[&trace]);
        is_complete(&part);
        let read = run(Command::new("babeltrace2").arg(part.join("kernel")));
        assert_eq!((read.status, &*read.err), (0, ""), "babeltrace2");
        let cut = system(&part);
        assert_eq!((cut.damaged, cut.dropped), (0, 0));
        // Right before the window, where the last events of each thread stand a nanosecond apart, switches between them seem
        // to be missing; states in it are compared below.
        let lives = cut.lives.len() as u64;
        assert!(cut.torn <= whole.torn + lives, "{} of {}, {lives} threads", cut.torn, whole.torn);
        let trimmed = &manifest(&part)["trimmed"][0];
        let number = |name: &str| trimmed[name].as_i64().and_then(|n| u64::try_from(n).ok()).expect("a time");
        let last =
            whole.lives.iter().filter_map(|life| life.stretches.last()).map(|s| s.end).max().expect("an end");
        let (from, to) = (number("from_ns"), number("to_ns").min(last));
        let mut seen = BTreeSet::new();
        for life in &whole.lives {
            let person = whole.person(life.person);
            let who = (person.pid.unwrap_or(person.tid), person.tid);
            let expected = states(&whole, who, from, to);
            if expected.is_empty() {
                continue;
            }
            let found = states(&cut, who, from, to);
            // The last state ends with the last event of the trace, which may be where another begins.
            let count = found.len();
            assert!(
                count + 1 >= expected.len(),
                "{} of {}: {}",
                count,
                expected.len(),
                whole.who(life.person)
            );
            let mut both = found.iter().zip(&expected).enumerate();
            let other = both.find(|(at, ((start, end, text), (begin, until, expected)))| {
                start != begin || text != expected || end != until && at + 1 < count
            });
            assert_eq!(other, None, "{} from {from}", whole.who(life.person));
            seen.extend(expected.into_iter().map(|(_, _, text)| text));
        }
        assert!(seen.iter().any(|text| text.contains("clock_nanosleep")), "{seen:?}");
        // Of the time before nothing seems to be known: the moved events are a nanosecond apart.
        let before =
            cut.lives.iter().flat_map(|life| &life.stretches).map(|s| s.start).min().expect("a state");
        assert!(from - before < 100_000, "{}", from - before);
        // Names are there.
        assert!(cut.people.iter().any(|person| person.name == "sh"), "{:?}", cut.people);
    }
}

#[test]
fn merging_keeps_the_kernels_trace_and_those_of_several() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let path = |name: &str| scratch.path().join(name);
    let one = record(scratch.path(), "one", &["--os", "tree"], &[&windows(), "launch:20"]);
    let plain = path("plain");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "-o"]).arg(&plain).arg("--").args([&windows(), "launch:7"]);
    let done = run(line.current_dir(scratch.path()).envs(Platform::Pocl.environment(scratch.path())));
    assert_eq!(done.status, 0, "{}", done.err);

    // One of them: it is read with both.
    let both = path("both");
    let out = format!("-o{}", both.display());
    well(&["merge", &out], &[&one, &plain]);
    is_complete(&both);
    assert_eq!(kernel_lines(&both).len(), kernel_lines(&one).len());
    assert!(well(&["tally"], &[&both]).out.contains("clEnqueueNDRangeKernel"));

    // Two: each stays, and one is chosen.
    let other = record(scratch.path(), "other", &["--os", "tree"], &[&windows(), "launch:9"]);
    let all = path("all");
    let said = well(&["merge", &format!("-o{}", all.display())], &[&one, &other]);
    assert!(said.err.contains("kernel-one") && said.err.contains("--kernel"), "{}", said.err);
    let table = well(&["tally"], &[&all]);
    assert!(table.out.contains("clEnqueueNDRangeKernel"), "{}", table.err);
    let kernel = all.join("kernel-other");
    let table = well(&["print", "--kernel", kernel.to_str().expect("a path")], &[&all]);
    assert_eq!(
        table.out.lines().filter(|line| line.contains(" kernel ") && line.contains("{cpu_id=")).count(),
        kernel_lines(&other).len(),
        "{}",
        table.err
    );

    // A run in parts becomes one trace, with one kernel trace.
    let job = record(
        scratch.path(),
        "job",
        &["--os", "tree", "--rotate-every", "1s", "--sample", "20ms"],
        &["sh", "-c", &format!("{} launch:20; sleep 2; {} launch:5", windows(), windows())],
    );
    assert!(job.join("0002").exists());
    let whole = path("whole");
    well(&["merge", &format!("-o{}", whole.display())], &[&job]);
    is_complete(&whole);
    assert_eq!(kernel_lines(&whole).len(), kernel_lines(&job).len());
    let file = path("whole.tar");
    well(&["pack", &format!("-o{}", file.display())], &[&whole]);
    assert_eq!(kernel_lines(&file).len(), kernel_lines(&job).len());
    let part = path("part");
    well(&["trim", "--from=100ms", "--to=1500ms", &format!("-o{}", part.display())], &[&job]);
    is_complete(&part);
    assert!(!kernel_lines(&part).is_empty());
}

#[test]
fn what_a_killed_launcher_wrote_of_the_system_is_finished() {
    if !has_tracepoints() {
        return;
    }
    for options in [&["--os", "tree"][..], &["--os", "tree", "--rotate-every", "1s", "--sample", "20ms"]] {
        let scratch = tempfile::tempdir().expect("a folder");
        let trace = scratch.path().join("trace");
        let mut command = Command::new(hetrace());
        command.args(["run", "-q", "-o"]).arg(&trace).args(options);
        // It lives on, so that nobody else recovers it.
        command.arg("--").arg(program("windows")).args(["launch:20", "touch:a", "wait:b"]);
        command.current_dir(scratch.path()).envs(Platform::Pocl.environment(scratch.path()));
        let mut launcher = command.stdout(Stdio::null()).spawn().expect("hetrace");
        let is_divided = options.len() > 2;
        let last = if is_divided { trace.join("0003") } else { trace.clone() };
        let channel = last.join("kernel/channel0_0");
        while std::fs::metadata(&channel).map_or(0, |found| found.len()) == 0
            || !scratch.path().join("a").exists()
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(1500));
        launcher.kill().and_then(|()| launcher.wait()).expect("an end");
        let newest = if is_divided {
            let mut parts: Vec<PathBuf> =
                std::fs::read_dir(&trace).expect("parts").flatten().map(|entry| entry.path()).collect();
            parts.retain(|part| part.join("hetrace").exists());
            parts.sort();
            parts.pop().expect("a part")
        } else {
            trace.clone()
        };
        // Half a packet, as a kill in the middle of writing leaves it.
        let stream = newest.join("kernel/channel0_0");
        if let Ok(bytes) = std::fs::read(&stream) {
            let torn = [&bytes[..], &bytes[..200.min(bytes.len())]].concat();
            std::fs::write(&stream, torn).expect("a file");
        }
        let recovered = run(Command::new(hetrace()).arg("recover").arg(&trace));
        assert!(recovered.status == 0 && recovered.err.contains("recovered"), "{}", recovered.err);
        std::fs::write(scratch.path().join("b"), "").expect("a file");
        let os = &manifest(&newest)["os"];
        assert!(!os["account"].is_null(), "{os}");
        let checked = run(Command::new(hetrace()).arg("check").arg(&newest));
        // How the program ended is not known, and nothing else is wrong.
        let only = checked.out.contains("the recording is unfinished") && checked.out.contains("1 finding");
        assert!(checked.status == 0 || only, "{}{}", checked.out, checked.err);
        // Only that the kernel dropped events is worth a word.
        let read = run(Command::new("babeltrace2").arg(newest.join("kernel")));
        let is_known = read.err.lines().all(|line| line.contains("discarded") && line.contains("events"));
        assert!(read.status == 0 && is_known, "babeltrace2: {}", read.err);
        if is_divided {
            is_complete(&trace.join("0001"));
        } else {
            assert_eq!(os["events"].as_u64(), Some(read.out.lines().count() as u64));
        }
        let table = well(&["tally"], &[&trace]);
        assert!(table.out.contains("those of the last second or so are missing"), "{}", table.out);
    }
}

#[test]
fn a_damaged_kernel_trace_costs_nothing_of_the_programs() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let trace = record(scratch.path(), "trace", &["--os", "tree"], &[&windows(), "launch:20"]);
    // Noise in the middle of a stream: what can be read is taken, and the rest is named.
    let stream = trace.join("kernel/channel0_0");
    let mut bytes = std::fs::read(&stream).expect("a stream");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].copy_from_slice(&[0xa5; 64]);
    std::fs::write(&stream, &bytes).expect("a stream");
    let part = scratch.path().join("part");
    let done = well(&["trim", "--to=10s", &format!("-o{}", part.display())], &[&trace]);
    assert!(!done.err.is_empty() && part.join("kernel/metadata").exists(), "{}", done.err);
    assert!(well(&["tally"], &[&part]).out.contains("clEnqueueNDRangeKernel"));
    let file = scratch.path().join("trace.tar");
    well(&["pack", &format!("-o{}", file.display())], &[&trace]);
    assert_eq!(run(Command::new(hetrace()).arg("check").arg(&file)).status, 1);
    // Metadata of which nothing can be made.
    std::fs::write(trace.join("kernel/metadata"), [0xa5; 4096]).expect("metadata");
    for (name, arguments) in [("trim", "--to=10s"), ("merge", "--compress")] {
        let out = scratch.path().join(name);
        let other = scratch.path().join("other");
        if name == "merge" {
            std::fs::rename(&part, &other).expect("moved");
        }
        let paths: &[&Path] = if name == "merge" { &[&trace, &other] } else { &[&trace] };
        let done = well(&[name, arguments, &format!("-o{}", out.display())], paths);
        assert!(done.err.contains("kernel: left out"), "{name}: {}", done.err);
        assert!(well(&["tally"], &[&out]).out.contains("clEnqueueNDRangeKernel"), "{name}");
    }
}
