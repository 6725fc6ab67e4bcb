//! Capture windows: what is recorded inside of one is all that the program did there, and outside of it only what makes,
//! names and frees objects, or marks ranges.

#[path = "cuda/run.rs"]
mod cuda;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hetrace_ctf::read::Trace;
use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, Traced, hetrace, trace_with};
use serde_json::Value;

const LAUNCH: &str = "clEnqueueNDRangeKernel";

fn windows(options: &[&str], script: &[&str]) -> Traced {
    let room = ["--buffer", "8192"];
    let options: Vec<&str> = room.iter().chain(options).copied().collect();
    let command: Vec<&str> = ["windows"].iter().chain(script).copied().collect();
    let traced = trace_with(Platform::Pocl, &options, &command);
    assert_eq!(traced.done.status, 0, "{}", traced.done.err);
    traced
}

/// What there is of launches in a trace: calls, and commands with their times, all of the kernel that the program has,
/// on a queue that is known. Each call that was begun has ended, and nothing is lost.
fn launches(seen: &Seen) -> u64 {
    assert!(seen.damage.is_empty() && seen.discarded == 0 && seen.disorder == 0, "{seen:?}");
    assert_eq!(seen.total(), seen.ended, "each call has its end");
    for command in &seen.commands {
        assert_eq!((&*command.kind, &*command.name), ("kernel", "addone"), "{command:?}");
        assert!(command.queue != 0 && command.start > 0 && command.end > command.start, "{command:?}");
    }
    let calls = seen.total().get(LAUNCH).copied().unwrap_or(0);
    assert_eq!(calls, seen.commands.len() as u64, "each recorded launch was timed, and no other");
    calls
}

/// The windows in the manifest.
fn recorded(manifest: &Value) -> Vec<Value> {
    manifest["capture"]["windows"].as_array().expect("windows").clone()
}

/// Names of the events of windows with their reasons, in their order; none as long as there is no trace.
fn flips(folder: &Path) -> Vec<String> {
    let Ok(trace) = Trace::open(folder) else { return Vec::new() };
    let mut flips = Vec::new();
    for mut stream in trace.streams() {
        while let Some(Ok(event)) = stream.next_event() {
            if event.class().name.starts_with("capture:") {
                let reason =
                    event.get("reason").and_then(|r| r.as_str().map(str::to_owned)).unwrap_or_default();
                flips.push(format!("{} {reason}", event.class().name));
            }
        }
    }
    flips
}

fn tally(folder: &Path) -> Value {
    let done = run(Command::new(hetrace()).args(["tally", "--json"]).arg(folder));
    assert_eq!(done.status, 0, "{}", done.err);
    serde_json::from_str(&done.out).expect("JSON")
}

fn text(command: &str, folder: &Path) -> String {
    let done = run(Command::new(hetrace()).arg(command).arg(folder));
    assert!(done.status <= 1, "{}", done.err);
    done.out
}

#[test]
fn launches_by_number_are_recorded_and_timed_and_no_others() {
    let traced = windows(&["--launches", "1000..2000"], &["alloc:3", "launch:5000", "free"]);
    let seen = traced.seen();
    assert_eq!(launches(&seen), 1000);
    // What was made and freed outside is known.
    let total = seen.total();
    let made: Vec<u64> = ["clCreateCommandQueue", "clCreateKernel", "clCreateBuffer", "clReleaseMemObject"]
        .map(|name| total.get(name).copied().unwrap_or(0))
        .into();
    assert_eq!(made, [1, 1, 4, 3]);
    assert!(!total.contains_key("clSetKernelArg") && total["clFinish"] <= 17, "{total:?}");
    assert_eq!(flips(&traced.folder), ["capture:begin launch", "capture:end launch"]);
    let capture = &traced.manifest()["capture"];
    // Behind the last one nothing is counted any more.
    assert_eq!(
        (&capture["asked"], capture["launches"].as_u64()),
        (&"--launches 1000..2000".into(), Some(2001))
    );
    let window = &recorded(&traced.manifest())[0];
    let [begin, end] = ["begin_ns", "end_ns"].map(|name| window[name].as_u64().expect("a time"));
    assert!(seen.commands.iter().all(|c| (begin..end).contains(&c.cause)), "{window}");
}

#[test]
fn launches_of_many_threads_and_processes_are_counted_together() {
    for (script, window) in
        [(&["threads:4", "launch:1000"][..], "1000..2000"), (&["children:3", "launch:500"], "200..1200")]
    {
        let traced = windows(&["--launches", window], script);
        assert_eq!(launches(&traced.seen()), 1000, "{script:?}");
        assert_eq!(recorded(&traced.manifest()).len(), 1);
    }
}

#[test]
fn a_window_without_an_end_is_open_to_the_end() {
    let traced = windows(&["--launches", "10.."], &["launch:50"]);
    assert_eq!(launches(&traced.seen()), 40);
    assert_eq!(flips(&traced.folder), ["capture:begin launch"]);
    assert!(recorded(&traced.manifest())[0]["end_ns"].is_null());
    let traced = windows(&["--launches", "..10"], &["launch:50"]);
    assert_eq!(launches(&traced.seen()), 10);
}

#[test]
fn ranges_by_name_and_number() {
    for script in [&["push:other:4", "push:step:30", "push:other:4"][..], &["start:step:30"]] {
        let traced = windows(&["--range", "st?p@10..20"], script);
        assert_eq!(launches(&traced.seen()), 50, "{script:?}");
        assert_eq!(flips(&traced.folder), ["capture:begin range", "capture:end range"]);
        let tally = tally(&traced.folder);
        let ranges: Vec<(&str, u64)> = tally["ranges"]
            .as_array()
            .expect("ranges")
            .iter()
            .map(|row| (row["name"].as_str().expect("a name"), row["calls"].as_u64().expect("a count")))
            .collect();
        assert_eq!(ranges, [("step", 10)], "those outside are not counted");
    }
}

#[test]
fn a_range_around_the_window_is_known() {
    let script = ["open:epoch", "push:step:6", "close", "launch:3"];
    let traced = windows(&["--range", "step@2..4"], &script);
    assert_eq!(launches(&traced.seen()), 10);
    let tally = tally(&traced.folder);
    assert_eq!(tally["unmatched_range_ends"], 0);
    assert!(tally["open_ranges"].as_array().is_none_or(Vec::is_empty), "{}", tally["open_ranges"]);
    let lint = text("lint", &traced.folder);
    assert!(!lint.contains("never ended") && !lint.contains("epoch"), "{lint}");
}

#[test]
fn ranges_of_many_processes_are_counted_together() {
    let traced = windows(&["--range", "step@10..11"], &["children:2", "push:step:30"]);
    // The window is that of all processes: while the range is open the other process may launch, too.
    let seen = traced.seen();
    assert!((5..=300).contains(&launches(&seen)), "{:?}", seen.total());
    assert_eq!(flips(&traced.folder), ["capture:begin range", "capture:end range"]);
}

#[test]
fn a_forked_child_ends_no_range_of_its_parents() {
    let script = ["open:step", "launch:7", "fork", "launch:20", "close", "launch:30"];
    let traced = windows(&["--range", "step@0..2"], &script);
    assert_eq!(launches(&traced.seen()), 27);
}

#[test]
fn what_never_comes_is_said_with_what_came() {
    for (options, script, words) in [
        (
            ["--launches", "100..200"],
            &["launch:7"][..],
            "the capture window never opened (--launches 100..200): the program launched 7 kernels, numbers 0 to 6",
        ),
        (
            ["--range", "step@10..20"],
            &["push:step:3"],
            "the capture window never opened (--range step@10..20): there were 3 such ranges, numbers 0 to 2",
        ),
        (["--range", "nothing@0..1"], &["push:step:3"], "no range has such a name"),
        (["--delay", "36000s"], &["launch:3"], "(--delay 36000s): the program ended before"),
    ] {
        let traced = windows(&options, script);
        assert!(traced.done.err.contains(words), "{}", traced.done.err);
        let seen = traced.seen();
        assert_eq!((launches(&seen), seen.total()["clCreateBuffer"]), (0, 1), "{options:?}");
        assert!(recorded(&traced.manifest()).is_empty());
        assert!(text("tally", &traced.folder).contains("The capture window never opened"));
    }
}

#[test]
fn a_call_across_the_border_is_whole_or_not_there() {
    // The wait begins outside and ends inside, and the other way round.
    for window in ["5..100", "..5"] {
        let traced = windows(&["--launches", window], &["held:10", "launch:1"]);
        let seen = traced.seen();
        launches(&seen);
        let waits = seen.total().get("clWaitForEvents").copied().unwrap_or(0);
        assert_eq!(waits, seen.ended.get("clWaitForEvents").copied().unwrap_or(0));
        let tally = tally(&traced.folder);
        assert!(tally["unfinished"].as_array().is_none_or(Vec::is_empty), "{}", tally["unfinished"]);
        assert_eq!(tally["orphaned_exits"].as_u64().unwrap_or(0), 0);
    }
}

/// A run that goes on beside the test.
struct Beside {
    scratch: tempfile::TempDir,
    child: Child,
}

impl Beside {
    fn start(options: &[&str], script: &[&str]) -> Self {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "-o", "trace"]).args(options).arg("--").arg(program("windows")).args(script);
        line.current_dir(scratch.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = line.envs(Platform::Pocl.environment(scratch.path())).spawn().expect("hetrace");
        Beside { scratch, child }
    }

    fn trace(&self) -> std::path::PathBuf {
        self.scratch.path().join("trace")
    }

    /// Waits until something is so. The test bed's limit ends one that never is.
    fn until(&self, what: impl Fn(&Self) -> bool) {
        let begun = std::time::Instant::now();
        while !what(self) {
            assert!(begun.elapsed() < std::time::Duration::from_secs(300), "it never was so");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.scratch.path().join(name), "").expect("a file");
    }

    fn has(&self, name: impl AsRef<OsStr>) -> bool {
        self.scratch.path().join(name.as_ref()).exists()
    }

    fn signal(&self, signal: &str) {
        let done = run(Command::new("kill").args([signal, &self.child.id().to_string()]));
        assert_eq!(done.status, 0, "{}", done.err);
    }

    /// Waits for the end. Returns what was recorded.
    fn end(mut self) -> (Seen, Vec<String>) {
        assert!(self.child.wait().expect("a child").success());
        (Seen::read(&self.trace()), flips(&self.trace()))
    }
}

#[test]
fn a_delay_opens_the_window_and_a_duration_closes_it() {
    let run = Beside::start(&["--delay", "1ms"], &["wait:go", "launch:100"]);
    run.until(|run| flips(&run.trace()).len() == 1);
    run.touch("go");
    let (seen, events) = run.end();
    assert_eq!((launches(&seen), events), (100, vec!["capture:begin time".to_owned()]));

    let run = Beside::start(&["--duration", "1ms"], &["wait:go", "launch:100"]);
    run.until(|run| flips(&run.trace()).len() == 2);
    run.touch("go");
    let (seen, events) = run.end();
    assert_eq!((launches(&seen), events.last().map(String::as_str)), (0, Some("capture:end time")));
}

#[test]
fn a_duration_closes_a_window_that_a_range_opened() {
    // The range does not end before the window does.
    let script = ["launch:5", "open:step", "wait:go", "launch:9", "close"];
    let run = Beside::start(&["--range", "step@0..1", "--duration", "1ms"], &script);
    run.until(|run| flips(&run.trace()).len() == 2);
    run.touch("go");
    let (seen, events) = run.end();
    assert_eq!(
        (launches(&seen), events),
        (0, ["capture:begin range", "capture:end time"].map(str::to_owned).into())
    );
}

#[test]
fn a_range_is_in_the_window_to_its_end_though_others_begin() {
    let script = ["threads:2", "open:step", "wait:go", "launch:5", "close"];
    let run = Beside::start(&["--range", "step@0..1"], &script);
    run.until(|run| !flips(&run.trace()).is_empty());
    // Time for the other thread to begin the range behind the window.
    std::thread::sleep(std::time::Duration::from_millis(500));
    run.touch("go");
    let (seen, events) = run.end();
    assert!((5..=10).contains(&launches(&seen)), "{:?}", seen.total());
    assert_eq!(events, ["capture:begin range", "capture:end range"]);
}

#[test]
fn a_signal_opens_and_closes_the_window_again_and_again() {
    let script = [
        "launch:10",
        "touch:a",
        "wait:b",
        "launch:20",
        "touch:c",
        "wait:d",
        "launch:30",
        "touch:e",
        "wait:f",
        "launch:40",
    ];
    let run = Beside::start(&["--toggle-on", "USR2"], &script);
    for (number, (done, go)) in [("a", "b"), ("c", "d"), ("e", "f")].into_iter().enumerate() {
        run.until(|run| run.has(done));
        run.signal("-USR2");
        run.until(|run| flips(&run.trace()).len() == number + 1);
        run.touch(go);
    }
    let (seen, events) = run.end();
    assert_eq!(launches(&seen), 60);
    assert_eq!(events, ["capture:begin signal", "capture:end signal", "capture:begin signal"]);
}

/// Runs a script with a `/dev/shm` of its own.
fn alone(scratch: &Path, script: &str) -> Done {
    let mount = format!("mount -t tmpfs -o mode=1777,size=64m tmpfs /dev/shm; {script}");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &mount]).current_dir(scratch);
    run(command.env("HETRACE", hetrace()).env("WINDOWS", program("windows")))
}

#[test]
fn a_killed_launcher_leaves_the_window_as_it_is() {
    // Killed inside of the window, and behind it: stopped before, so that it has read nothing.
    for (window, there, ends) in [("10..1000", 90, 0), ("10..20", 10, 1)] {
        let scratch = tempfile::tempdir().expect("scratch");
        let script = format!(
            "\"$HETRACE\" run -q -o t --launches {window} -- sh -c \
             'kill -STOP $PPID; \"$WINDOWS\" launch:100 >/dev/null; kill -KILL $PPID; touch ended' 2>/dev/null; \
             until test -e ended; do sleep 0.05; done; \"$HETRACE\" recover t"
        );
        let done = alone(scratch.path(), &script);
        assert_eq!(done.status, 0, "{}", done.err);
        let folder = scratch.path().join("t");
        assert_eq!(launches(&Seen::read(&folder)), there);
        let manifest = hetrace_tests::counts::manifest(&folder);
        let windows = recorded(&manifest);
        assert_eq!((windows.len(), windows[0]["end_ns"].is_u64()), (1, ends == 1), "{windows:?}");
        assert_eq!(flips(&folder).len(), 1 + ends);
    }
}

#[test]
fn commands_of_cuda_by_each_source() {
    for source in ["events", "cupti"] {
        let run = cuda::run_with(&["--launches", "100..200"], source, &["work", "streams"], &[]);
        let seen = run.seen();
        let kernels: Vec<_> = seen.commands.iter().filter(|c| c.kind == "kernel").collect();
        assert_eq!(seen.total()["cuLaunchKernel"], 100, "{source}: {}", run.done.err);
        // One of them is refused, on purpose.
        let tally = tally(&run.scratch.path().join("trace"));
        let failed =
            tally["host"].as_array().expect("rows").iter().find(|row| row["name"] == "cuLaunchKernel");
        let failed = failed.and_then(|row| row["errors"].as_u64()).expect("a count");
        assert_eq!(kernels.len() as u64, 100 - failed, "{source}");
        assert!(kernels.iter().all(|c| !c.name.is_empty() && c.cause != 0 && c.end > c.start), "{source}");
        // The same kernels at the same times as the driver says that its devices ran them, in its own order.
        let ops: Vec<_> = run.ops().into_iter().filter(|op| op.kind == "kernel").collect();
        assert_eq!(ops.len(), 300);
        assert_eq!(run.lost(), 0, "{source}");
        assert!(seen.total().contains_key("cuMemAlloc_v2"), "{source}: {:?}", seen.total());
        run.check_no_misuse();
    }
}

#[test]
fn a_budget_and_a_window_go_together() {
    let traced = windows(&["--launches", "1000..2000", "--max-overhead", "100%"], &["launch:3000"]);
    let seen = traced.seen();
    assert_eq!((seen.total()[LAUNCH], seen.damage.len()), (1000, 0));
}

#[test]
fn reports_say_what_the_trace_covers() {
    let traced = windows(&["--launches", "100..200"], &["launch:300"]);
    let tally = text("tally", &traced.folder);
    assert!(tally.contains("Capture window (--launches 100..200): "), "{tally}");
    assert!(tally.contains("the tables cover"), "{tally}");
    let print = text("print", &traced.folder);
    assert!(
        print.contains("capture window opens: launch 100")
            && print.contains("capture window closes: launch 200"),
        "{print}"
    );
    let drawn = traced.folder.with_file_name("drawn");
    let done = run(Command::new(hetrace()).arg("timeline").arg(&traced.folder).arg("-o").arg(&drawn));
    assert_eq!(done.status, 0, "{}", done.err);
    let drawn = String::from_utf8_lossy(&std::fs::read(drawn).expect("a timeline")).into_owned();
    assert!(drawn.contains("capture window opens: launch 100"));
    assert!(drawn.contains("capture window (--launches 100..200)"), "as a slice");
    for report in ["why", "lint"] {
        let shown = text(report, &traced.folder);
        assert!(shown.contains("apture window"), "{report}: {shown}");
    }
}

#[test]
fn the_window_of_one_trace_is_not_that_of_a_merged_one() {
    let part = windows(&["--range", "step@2..4"], &["push:step:6"]);
    let whole = windows(&[], &["push:step:6"]);
    assert!(whole.manifest().get("capture").is_none() && flips(&whole.folder).is_empty());
    let merged = part.folder.with_file_name("merged");
    let done =
        run(Command::new(hetrace()).arg("merge").args([&part.folder, &whole.folder]).arg("-o").arg(&merged));
    assert_eq!(done.status, 0, "{}", done.err);
    let tally = tally(&merged);
    assert_eq!(tally["ranges"][0]["calls"], 12, "{}", tally["ranges"]);
    let notes = tally["notes"].to_string();
    assert!(notes.contains("covers a capture window only (--range step@2..4)"), "{notes}");
}
