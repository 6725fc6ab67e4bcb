//! Events of the operating system in runs of several parts: each part has those of its time, all together are the run's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_ctf::read::{Files, Merge, Trace};
use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, has_tracepoints, hetrace};
use serde_json::Value;

/// An event: time and name.
type Event = (i64, String);

/// Events of a trace, in the order of time.
fn events(trace: &Trace) -> Vec<Event> {
    let mut merge = Merge::new(trace);
    let mut found = Vec::new();
    while let Some(event) = merge.next_event() {
        let event = event.expect("an event");
        found.push((event.timestamp().expect("a time").cast_signed(), event.class().name.clone()));
    }
    found
}

/// Events of a part, read by itself.
fn of_part(part: &Path) -> Vec<Event> {
    let kernel = part.join("kernel");
    let found = events(&Trace::open(&kernel).expect("a kernel trace"));
    // babeltrace2 decompresses nothing.
    if kernel.join("channel0_0").exists() {
        let read = run(Command::new("babeltrace2").arg(&kernel));
        assert_eq!((read.status, &*read.err), (0, ""), "babeltrace2 of {}", part.display());
        assert_eq!(read.out.lines().count(), found.len());
    }
    found
}

/// Events of all parts, read as one.
fn of_series(folder: &Path) -> Vec<Event> {
    let files = Files::open(folder).expect("a series");
    events(&Trace::from_files(files.kernel().expect("a kernel trace")).expect("a trace"))
}

fn command(name: &str, trace: &Path) -> Done {
    run(Command::new(hetrace()).arg(name).arg(trace))
}

fn manifest(part: &Path) -> Value {
    let text = std::fs::read_to_string(part.join("hetrace/hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn is_complete(trace: &Path) {
    let checked = command("check", trace);
    assert_eq!(checked.status, 0, "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("complete and unchanged"), "{}{}", checked.out, checked.err);
}

fn start(folder: &Path, options: &[&str], script: &[&str]) -> Child {
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "-o"]).arg(folder).args(options).arg("--").args(script);
    line.env("HETRACE_OS_BUFFER", "32768").stdout(Stdio::piped()).stderr(Stdio::piped());
    line.spawn().expect("hetrace")
}

fn end(child: Child) -> Done {
    let done = child.wait_with_output().expect("an end");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { status: done.status.code().unwrap_or(-1), out: text(&done.stdout), err: text(&done.stderr) }
}

/// Records without a loss; what a machine does beside a test may be more than its reader can take.
fn record(folder: &Path, options: &[&str], script: &[&str]) -> Done {
    for _ in 0..5 {
        let done = end(start(folder, options, script));
        assert_eq!(done.status, 0, "{}", done.err);
        if parts(folder).iter().all(|part| manifest(part)["os"]["dropped"] == 0) {
            return done;
        }
        eprintln!("events dropped: once more: {}", done.err);
        std::fs::remove_dir_all(folder).expect("removed");
    }
    panic!("it always drops something");
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sleeps 40 times for 50 ms, and begins a process each time.
const PROCESSES: &str = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 \
                         35 36 37 38 39 40; do sleep 0.05; done";

#[test]
fn nothing_is_lost_between_parts_and_each_has_its_time() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    for options in
        [&["--os", "tree", "--rotate-every", "1s"][..], &["--os=tree", "--rotate-every=1s", "--compress"]]
    {
        let folder = scratch.path().join("job");
        // Some seconds of short sleeps.
        let os = program("os").to_string_lossy().into_owned();
        let done = record(&folder, options, &[&os, "sleeps", "20000"]);
        let parts = parts(&folder);
        assert!(parts.len() > 2, "{parts:?}");
        let all = of_series(&folder);
        let name = |wanted: &'static str| move |(_, name): &&Event| name == wanted;
        let count = |wanted| all.iter().filter(name(wanted)).count();
        // Each sleep is there once, so what the parts repeat is not.
        assert_eq!(count("syscall_entry_clock_nanosleep"), 20_000, "{}", done.err);
        assert_eq!(count("syscall_exit_clock_nanosleep"), 20_000);
        // The program was taken off its CPU as often as the kernel says.
        let words: Vec<usize> = done.out.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [voluntary, involuntary] = words[..] else { panic!("{}", done.out) };
        assert!(count("sched_switch") >= 2 * (voluntary + involuntary) - 2, "{}", done.out);
        assert!(all.windows(2).all(|two| two[0].0 <= two[1].0), "in the order of time");
        assert_eq!(count("lttng_statedump_start"), 1);

        let (mut sum, mut recorded) = (0, 0);
        let begins = parts.iter().map(|part| manifest(part)["start_ns"].as_i64().expect("a time"));
        let begins: Vec<i64> = begins.collect();
        for (number, part) in parts.iter().enumerate() {
            is_complete(part);
            let own = of_part(part);
            // Of its time: from its beginning, where the state dump is, to that of the next part.
            let until = begins.get(number + 1).copied().unwrap_or(i64::MAX);
            let outside =
                own.iter().filter(|(time, _)| number > 0 && *time < begins[number] || *time >= until).count();
            assert_eq!(outside, 0, "{} of {begins:?}", part.display());
            let dump = own.iter().filter(|(_, name)| name.starts_with("lttng_statedump")).count();
            assert!(
                own.iter().any(|(_, name)| name == "lttng_statedump_process_state"),
                "{}",
                part.display()
            );
            assert!(number == 0 || own[0].1 == "lttng_statedump_start", "{:?}", own[0]);
            sum += own.len() - if number > 0 { dump } else { 0 };
            recorded += manifest(part)["os"]["events"].as_u64().expect("a number");
            let table = command("tally", part);
            assert_eq!(table.status, 0, "{}", table.err);
        }
        assert_eq!((sum, recorded), (all.len(), all.len() as u64));
        is_complete(&folder);
        let printed = command("print", &folder);
        let kernel = printed.out.lines().filter(|line| line.contains("kernel ")).count();
        assert_eq!((printed.status, kernel), (0, all.len()), "{}", printed.err);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

#[test]
fn processes_belong_to_the_program_in_all_parts_and_are_named_in_each() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    for scope in ["tree", "system"] {
        let folder = scratch.path().join(scope);
        record(&folder, &["--os", scope, "--rotate-every", "1s"], &["sh", "-c", PROCESSES]);
        let parts = parts(&folder);
        assert!(parts.len() > 1, "{parts:?}");
        let all = of_series(&folder);
        let execs = all.iter().filter(|(_, name)| name == "sched_process_exec").count();
        assert!(if scope == "tree" { execs == 41 } else { execs >= 41 }, "{execs} programs under {scope}");
        // The shell began in the first part, and has its name in the last.
        let dumped = run(Command::new("babeltrace2").arg(parts[parts.len() - 1].join("kernel")));
        let shell = |line: &str| line.contains("statedump_process_state") && line.contains("name = \"sh\"");
        assert!(dumped.out.lines().any(shell), "{}", dumped.err);
        is_complete(&folder);
    }
}

#[test]
fn a_budget_and_retention_count_the_kernels_trace() {
    if !has_tracepoints() {
        return;
    }
    let size = |folder: &Path| {
        let done = run(Command::new("du").args(["-sb", "--"]).arg(folder));
        done.out.split_whitespace().next().and_then(|bytes| bytes.parse::<u64>().ok()).expect("a number")
    };
    let scratch = tempfile::tempdir().expect("a folder");
    let os = program("os").to_string_lossy().into_owned();
    let shorts = [os.as_str(), "shorts", "3000"];
    // One trace: what does not fit is dropped and counted.
    let one = scratch.path().join("one");
    let done = end(start(&one, &["--os", "tree", "--max-disk", "500K"], &shorts));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(
        done.err.contains("events of the operating system were not written: the disk budget"),
        "{}",
        done.err
    );
    assert!(size(&one) < 800 << 10, "{}", size(&one));
    is_complete(&one);
    let unwritten = manifest(&one)["os"]["unwritten"].as_u64().expect("a number");
    assert!(unwritten > 0, "{}", done.err);

    // Parts are as large as their kernel traces make them, and the oldest make room.
    let job = scratch.path().join("job");
    let options = ["--os", "tree", "--rotate-size", "300K", "--keep", "1000", "--max-disk", "2M"];
    let done = end(start(&job, &options, &[&os, "sleeps", "15000"]));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("parts were removed"), "{}", done.err);
    assert!(size(&job) < 3 << 20, "{}", size(&job));
    let all = parts(&job);
    assert!(all.len() > 1, "{all:?}");
    all.iter().for_each(|part| is_complete(part));
    for part in &all {
        assert_eq!(manifest(part)["os"]["unwritten"], 0, "{}: {}", part.display(), done.err);
    }

    let two = scratch.path().join("two");
    // Not a storm, of which the last part has what the reader had not written.
    record(&two, &["--os", "tree", "--rotate-size", "300K", "--keep", "2"], &[&os, "sleeps", "15000"]);
    assert_eq!(parts(&two).len(), 2);
    is_complete(&two);
}

#[test]
fn a_killed_launcher_leaves_parts_that_are_read_as_one() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("job");
    // Ends with the launcher, whose end closes the pipe.
    let script = ["sh", "-c", "while sleep 0.01; do echo; done"];
    let mut child = start(&folder, &["--os", "tree", "--rotate-every", "1s"], &script);
    let third = folder.join("0003/kernel/channel0_0");
    wait_for("a third part", || std::fs::metadata(&third).is_ok_and(|found| found.len() > 4096));
    wait_for("an account", || !manifest(&folder.join("0002"))["os"]["account"].is_null());
    child.kill().and_then(|()| child.wait()).expect("an end");
    drop(child.stdout.take());
    // Those before the last are finished, with the account of their kernel trace.
    is_complete(&folder.join("0001"));
    is_complete(&folder.join("0002"));
    let all = of_series(&folder);
    assert!(all.iter().filter(|(_, name)| name == "sched_switch").count() > 200);
    let table = command("tally", &folder);
    assert_eq!(table.status, 0, "{}", table.err);
    let recovered = command("recover", &folder);
    // Another launcher may have done it, as the program has ended.
    let said = ["recovered", "nothing to recover"].iter().any(|said| recovered.err.contains(said));
    assert!(recovered.status == 0 && said, "{}", recovered.err);
    let printed = command("print", &folder);
    assert!(printed.out.contains("kernel sched_switch"), "{}", printed.err);
}

/// A small file system, where this user may mount one.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={size}");
        let done = run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()));
        if done.status != 0 {
            eprintln!("SKIPPED: only root mounts a small disk: {}", done.err);
        }
        (done.status == 0).then_some(Small(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

#[test]
fn a_disk_that_is_full_in_a_part_costs_what_does_not_fit() {
    if !has_tracepoints() {
        return;
    }
    let os = program("os").to_string_lossy().into_owned();
    let script = [os.as_str(), "shorts", "10000"];
    let Some(small) = Small::mount("1M") else { return };
    let folder = small.0.path().join("job");
    let done = end(start(&folder, &["--os", "tree", "--rotate-size", "200K"], &script));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("events of the operating system were not written"), "{}", done.err);
    let all = parts(&folder);
    assert!(all.len() > 1, "{all:?}");
    // What is there is sound, and what is missing is counted, though there may be no room for the account of a part.
    for part in &all {
        let checked = command("check", part);
        let is_sound = ["complete and unchanged", "undamaged"].iter().any(|said| checked.out.contains(said));
        assert!(checked.status == 0 && is_sound, "{}{}", checked.out, checked.err);
    }
    let table = command("tally", &folder);
    let said = format!("{}{}", table.out, table.err);
    assert!(table.status == 0 && said.contains("not written"), "{said}");
    assert!(!of_series(&folder).is_empty());
    drop(small);

    // With retention the oldest parts make room.
    let Some(small) = Small::mount("2M") else { return };
    let folder = small.0.path().join("job");
    let sleeps = [os.as_str(), "sleeps", "20000"];
    let done = end(start(&folder, &["--os", "tree", "--rotate-size", "200K", "--keep", "1000"], &sleeps));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("parts were removed"), "{}", done.err);
    let all = parts(&folder);
    all.iter().for_each(|part| is_complete(part));
    assert!(all.iter().all(|part| manifest(part)["os"]["unwritten"] == 0), "{}", done.err);
}
