//! `hetrace run --rotate-size`, `--rotate-every`, `--keep`, `--max-disk`: a long run in parts, each whole in itself, and
//! all of them as one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, hetrace};

#[path = "long/faults.rs"]
mod faults;
#[path = "long/followed.rs"]
mod followed;
#[path = "long/packed.rs"]
mod packed;

const LAUNCH: &str = "clEnqueueNDRangeKernel";

/// A run of a program that does what its script says.
struct Long {
    scratch: tempfile::TempDir,
    trace: PathBuf,
    child: Option<Child>,
}

impl Long {
    fn start(options: &[&str], script: &[&str]) -> Self {
        Self::start_in(None, options, script)
    }

    fn start_in(folder: Option<&Path>, options: &[&str], script: &[&str]) -> Self {
        let windows = program("windows").display().to_string();
        Self::start_line(folder, options, &[&[&*windows], script].concat(), &[])
    }

    /// With variables for hetrace.
    fn start_with(variables: &[(&str, &str)], options: &[&str], script: &[&str]) -> Self {
        let windows = program("windows").display().to_string();
        Self::start_line(None, options, &[&[&*windows], script].concat(), variables)
    }

    fn start_line(
        folder: Option<&Path>,
        options: &[&str],
        command: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let trace = folder.unwrap_or(scratch.path()).join("trace");
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "-o"]).arg(&trace).args(options).arg("--").args(command);
        line.current_dir(scratch.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        line.envs(variables.iter().copied());
        let child = line.envs(Platform::Pocl.environment(scratch.path())).spawn().expect("hetrace");
        Long { scratch, trace, child: Some(child) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn until(&self, name: &str) {
        wait_for(name, || self.path(name).exists());
    }

    fn go(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file");
    }

    fn id(&self) -> String {
        self.child.as_ref().expect("a child").id().to_string()
    }

    /// Waits for the end. Returns the status, if it was no signal, and what hetrace wrote.
    fn end(&mut self) -> (Option<i32>, String) {
        let done = self.child.take().expect("a child").wait_with_output().expect("an end");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    fn parts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.trace).expect("a folder").flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.sort();
        all
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The program does not wait for ever for a test that failed.
            ["b", "d", "f"].map(|name| std::fs::write(self.path(name), "")).into_iter().for_each(drop);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < Duration::from_secs(300), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn command(name: &str, trace: &Path) -> Done {
    run(Command::new(hetrace()).arg(name).arg(trace))
}

fn tally(trace: &Path) -> serde_json::Value {
    let done = run(Command::new(hetrace()).args(["tally", "--json"]).arg(trace));
    assert_eq!(done.status, 0, "{}", done.err);
    serde_json::from_str(&done.out).expect("JSON")
}

/// How many there are of each name.
type Counts = Vec<(String, u64)>;

/// Calls by function, and commands on devices by name.
fn sums(trace: &Path) -> (Counts, Counts) {
    let tally = tally(trace);
    let rows = |what: &str| {
        let rows = tally[what].as_array().unwrap_or_else(|| panic!("{what} in {tally:#}"));
        let row = |row: &serde_json::Value| {
            (row["name"].as_str().expect("a name").to_owned(), row["calls"].as_u64().expect("a number"))
        };
        let mut all: Vec<_> = rows.iter().map(row).collect();
        all.sort();
        all
    };
    (rows("host"), rows("device"))
}

fn add(all: &mut Counts, more: Counts) {
    for (name, calls) in more {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += calls,
            None => all.push((name, calls)),
        }
    }
    all.sort();
}

fn manifest(trace: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(trace.join("hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

fn is_complete(trace: &Path) {
    let checked = command("check", trace);
    assert_eq!(checked.status, 0, "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("complete and unchanged"), "{}{}", checked.out, checked.err);
}

/// Every reader takes it as a whole trace.
fn is_sound(trace: &Path) {
    is_complete(trace);
    for name in ["tally", "print", "why", "lint"] {
        let done = command(name, trace);
        assert_eq!(done.status, 0, "{name}: {}{}", done.out, done.err);
    }
    let line = trace.with_extension("json");
    let timeline = run(Command::new(hetrace()).arg("timeline").arg(trace).arg("-o").arg(&line));
    assert_eq!(timeline.status, 0, "{}", timeline.err);
    let _ = std::fs::remove_file(line);
}

/// What a run of `script` records that is not divided.
fn undivided(script: &[&str]) -> (Counts, Counts) {
    let mut run = Long::start(&[], script);
    let (status, err) = run.end();
    assert_eq!(status, Some(0), "{err}");
    sums(&run.trace)
}

/// Polls are as many as it takes.
fn without_polls((mut calls, commands): (Counts, Counts)) -> (Counts, Counts) {
    calls.retain(|(name, _)| name != "clGetEventInfo");
    (calls, commands)
}

#[test]
fn parts_are_whole_and_together_they_are_the_run() {
    let script = ["launch:2000", "threads:3", "launch:6000"];
    let expected = without_polls(undivided(&script));
    for options in [&["--rotate-size", "64K"][..], &["--rotate-size", "64KiB", "--compress"]] {
        let mut long = Long::start(options, &script);
        let (status, err) = long.end();
        assert_eq!(status, Some(0), "{err}");
        let parts = long.parts();
        assert!(parts.len() > 1, "{parts:?}");
        let names: Vec<_> = parts.iter().map(|part| part.file_name().expect("a name").to_owned()).collect();
        let numbers: Vec<_> =
            (1..=parts.len()).map(|n| std::ffi::OsString::from(format!("{n:04}"))).collect();
        assert_eq!(names, numbers);
        let (mut calls, mut commands) = (Vec::new(), Vec::new());
        for (number, part) in (1u64..).zip(&parts) {
            is_sound(part);
            let manifest = manifest(part);
            assert_eq!(manifest["rotation"]["part"], number, "{manifest:#}");
            assert_eq!(manifest["stopped"].as_bool().unwrap_or(false), number < parts.len() as u64);
            let (c, d) = sums(part);
            add(&mut calls, c);
            add(&mut commands, d);
            if !options.contains(&"--compress") {
                let read = run(Command::new("babeltrace2").arg(part));
                assert!(read.status == 0 && read.err.is_empty(), "babeltrace2: {}", read.err);
            }
        }
        // A call that is open at a border is one call.
        assert_eq!(without_polls((calls, commands)), expected, "the parts, added up");
        is_sound(&long.trace);
        assert_eq!(without_polls(sums(&long.trace)), expected, "the series");
        let whole = tally(&long.trace);
        assert_eq!((&whole["unfinished_calls"], &whole["orphaned_exits"]), (&0.into(), &0.into()));
        let merged = long.path("merged");
        let done = run(Command::new(hetrace()).arg("merge").arg(&long.trace).arg("-o").arg(&merged));
        assert_eq!(done.status, 0, "{}", done.err);
        is_sound(&merged);
        assert_eq!(sums(&merged), sums(&long.trace), "merged");
        let text = |trace: &Path| command("print", trace).out.lines().count();
        assert_eq!(text(&merged), text(&long.trace));
    }
}

#[test]
fn a_call_that_lasts_over_borders_is_one_call_and_open_in_each_part() {
    // A thread waits in clWaitForEvents while samples fill parts.
    let script = ["launch:10", "touch:a", "block:d", "launch:10"];
    let mut long = Long::start(&["--sample=10ms", "--rotate-every", "1s"], &script);
    long.until("a");
    wait_for("parts", || long.trace.join("0004").exists());
    // It can be read while it is recorded, as far as it has come.
    let early = command("tally", &long.trace);
    assert!(early.status == 0 && early.err.contains("still being recorded"), "{}", early.err);
    long.go("d");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let parts = long.parts();
    let waits = |trace: &Path| {
        let (calls, _) = sums(trace);
        calls.iter().find(|(name, _)| name == "clWaitForEvents").map_or(0, |(_, calls)| *calls)
    };
    let open = |trace: &Path| tally(trace)["unfinished_calls"].as_u64().expect("a number");
    let returned: Vec<u64> = parts.iter().map(|part| waits(part)).collect();
    assert_eq!((returned.iter().sum::<u64>(), waits(&long.trace)), (1, 1), "{returned:?}");
    // Where it is neither begun nor ended it is open.
    assert!(parts.iter().any(|part| waits(part) == 0 && open(part) == 1), "{returned:?}");
    assert_eq!(open(&long.trace), 0);
    // What was made in the first part has its name in those that launch it later.
    let named = command("tally", parts.last().expect("a part"));
    assert!(named.out.contains("addone"), "{}", named.out);
}

#[test]
fn telemetry_of_the_host_is_in_every_part() {
    let script = ["launch:10", "touch:a", "wait:b", "launch:10"];
    let mut long = Long::start(&["--sample=10ms", "--rotate-every", "1s"], &script);
    long.until("a");
    wait_for("parts", || long.trace.join("0003").exists());
    long.go("b");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    for part in long.parts() {
        is_complete(&part);
        let print = command("print", &part).out;
        assert!(print.contains("telemetry:"), "{}: {print}", part.display());
    }
    is_complete(&long.trace);
}

#[test]
fn only_the_last_parts_stay() {
    let script = ["launch:60000"];
    let mut long = Long::start(&["--rotate-size", "64K", "--keep", "2"], &script);
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let parts = long.parts();
    assert_eq!(parts.len(), 2, "{parts:?}");
    assert!(err.contains("parts were removed"), "{err}");
    parts.iter().for_each(|part| is_sound(part));
    is_sound(&long.trace);
    let checked = command("check", &long.trace).out;
    assert!(checked.contains("were removed"), "{checked}");
    let launched = Seen::read(&parts[1]).total().get(LAUNCH).copied().unwrap_or(0);
    assert!(launched < 60_000);
}

/// Bytes of all files below a folder, each once.
fn size(folder: &Path) -> u64 {
    let done = run(Command::new("du").args(["-sb", "--"]).arg(folder));
    done.out.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// What folders take themselves.
const FOLDERS: u64 = 256 << 10;

#[test]
fn a_disk_budget_is_kept() {
    let mut long = Long::start(&["--max-disk", "1M"], &["launch:60000"]);
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("the disk budget of 1048576 bytes is used up (--max-disk)"), "{err}");
    is_complete(&long.trace);
    assert!(size(&long.trace) <= (1 << 20) + FOLDERS, "{}", size(&long.trace));
    let losses = &manifest(&long.trace)["losses"];
    assert!(losses["unwritten_bytes"].as_u64().expect("a number") > 0, "{losses}");
    let table = command("tally", &long.trace);
    assert!(table.out.contains("that could not be written"), "{}", table.out);

    // With retention the oldest parts make room, and nothing new is lost.
    let options = ["--rotate-every", "1s", "--keep", "1000", "--max-disk", "12M"];
    let mut long = Long::start(&options, &["launch:300000"]);
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("parts were removed"), "{err}");
    assert!(size(&long.trace) <= (12 << 20) + FOLDERS, "{}", size(&long.trace));
    is_complete(&long.trace);
    let last = long.parts().pop().expect("a part");
    assert_eq!(manifest(&last)["losses"]["unwritten_bytes"], 0, "{err}");
}

#[test]
fn a_killed_launcher_leaves_whole_parts_and_one_that_is_recovered() {
    let script = ["launch:6000", "touch:a", "wait:b", "launch:300", "touch:c"];
    let mut long = Long::start(&["--rotate-size", "64K"], &script);
    long.until("a");
    // The second part is begun, and the first one finished.
    let first = long.trace.join("0001");
    wait_for("a part", || manifest(&first)["stopped"] == true);
    let child = long.child.as_mut().expect("a child");
    child.kill().and_then(|()| child.wait()).expect("an end");
    long.child = None;
    long.go("b");
    long.until("c");
    // The program has ended, so another test's `hetrace run` may be quicker: what counts is that somebody did it.
    let done = command("recover", &long.trace);
    let mut parts = long.parts();
    let last = parts.pop().expect("a part");
    let table = command("tally", &last);
    assert!(
        table.status == 0 && table.out.contains("killed while it recorded"),
        "{}{}{}",
        done.err,
        table.out,
        table.err
    );
    // The one before may lack its account, if it was finished in that moment.
    parts.pop();
    parts.iter().for_each(|part| is_complete(part));
    let whole = command("tally", &long.trace);
    assert!(whole.status == 0 && whole.out.contains("addone"), "{}{}", whole.out, whole.err);
}

/// Launches of kernels.
fn launched(trace: &Path) -> u64 {
    let (calls, _) = sums(trace);
    calls.iter().find(|(name, _)| name == LAUNCH).map_or(0, |(_, calls)| *calls)
}

#[test]
fn requests_are_answered() {
    let script = ["launch:6000", "touch:a", "wait:b", "launch:50", "touch:c", "wait:d"];
    let mut long = Long::start(&["--rotate-size", "64K"], &script);
    long.until("a");
    wait_for("a part", || long.trace.join("0002").exists());
    long.go("b");
    long.until("c");
    let done = run(Command::new(hetrace()).args(["snapshot", "--wait", "300"]).arg(long.id()));
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(launched(&long.trace), 6050);
    long.go("d");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let parts = long.parts();
    let all = long.path("all");
    let merged = run(Command::new(hetrace()).arg("merge").args(&parts).arg("-o").arg(&all));
    assert!(merged.status != 0 && merged.err.contains("a part of the same run"), "{}", merged.err);
    let alone = run(Command::new(hetrace()).arg("merge").arg(&parts[0]).arg("-o").arg(&all));
    assert!(alone.status != 0 && alone.err.contains("give two or more"), "{}", alone.err);
    let file = long.path("one.tar");
    let one = run(Command::new(hetrace()).arg("pack").arg(&parts[0]).arg("-o").arg(&file));
    assert_eq!(one.status, 0, "{}", one.err);
    is_complete(&file);
    // A part that somebody removed is missed, and the others are read.
    if parts.len() > 2 {
        std::fs::remove_dir_all(&parts[1]).expect("to remove");
        let checked = command("check", &long.trace);
        assert!(checked.status == 1 && checked.out.contains("0002 to 0002 are missing"), "{}", checked.out);
        assert_eq!(command("tally", &long.trace).status, 0);
    }
}

/// A small file system, where this user may mount one.
struct Small(tempfile::TempDir);

impl Small {
    fn mount(size: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={size}");
        let done = run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()));
        assert_eq!(done.status, 0, "{}", done.err);
        Small(folder)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

#[test]
fn a_full_disk_costs_what_does_not_fit_and_nothing_before() {
    let small = Small::mount("4M");
    let steps = ["launch:12000", "touch:a", "wait:b", "launch:108000"];
    let mut long = Long::start_in(Some(small.0.path()), &["--rotate-size", "256K"], &steps);
    wait_for("a second part", || long.path("a").exists() && long.trace.join("0002").exists());
    long.go("b");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("No space left on device"), "{err}");
    let parts = long.parts();
    assert!(parts.len() > 1, "{parts:?}");
    parts.iter().for_each(|part| is_complete(part));
    let whole = command("tally", &long.trace);
    assert!(whole.status == 0 && whole.out.contains("that could not be written"), "{}", whole.out);
    drop(long);

    // With retention the oldest parts make room, for what does not come faster than parts can go.
    let small = Small::mount("4M");
    let options = ["--rotate-size", "256K", "--keep", "1000"];
    let steps =
        (0..10).flat_map(|i| ["launch:12000".to_owned(), format!("touch:a{i}"), format!("wait:b{i}")]);
    let steps: Vec<String> = steps.collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let mut long = Long::start_in(Some(small.0.path()), &options, &steps);
    let mut last = None;
    for i in 0..10 {
        long.until(&format!("a{i}"));
        wait_for("another part", || long.parts().last() > last.as_ref());
        last = long.parts().pop();
        long.go(&format!("b{i}"));
    }
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("parts were removed"), "{err}");
    let parts = long.parts();
    assert!(parts.len() > 1, "{parts:?}: {err}");
    parts.iter().for_each(|part| is_complete(part));
    assert_eq!(manifest(&parts[parts.len() - 1])["losses"]["unwritten_bytes"], 0, "{err}");
}
