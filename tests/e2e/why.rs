//! `hetrace why` on programs with a planted cause of idle time each, and on near-misses: what threads wait for is
//! found across threads, events and queues. The program is `idle`; how busy this machine is changes times, never
//! what is asserted.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;
use tempfile::TempDir;

/// A trace of the program, and what `why` says of it.
struct Seen {
    /// The trace goes with it.
    _scratch: TempDir,
    report: Value,
    text: String,
}

/// Records the program, prefixed by another command line if one is given.
fn record(scratch: &TempDir, name: &str, options: &[&str], before: &[&str], mode: &str) -> PathBuf {
    let trace = scratch.path().join(name);
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "-o"]).arg(&trace).args(options).arg("--").args(before);
    command.arg(program("idle")).arg(mode).envs(Platform::Pocl.environment(scratch.path()));
    let done = run(&mut command);
    assert_eq!(done.status, 0, "{mode}: {}", done.err);
    trace
}

fn why(trace: &Path, more: &[&str]) -> Done {
    let done = run(Command::new(hetrace()).arg("why").arg(trace).args(more));
    assert_eq!(done.status, 0, "{}", done.err);
    done
}

fn seen(scratch: TempDir, trace: &Path) -> Seen {
    let report = serde_json::from_str(&why(trace, &["--json"]).out).expect("JSON");
    let text = why(trace, &[]).out;
    Seen { _scratch: scratch, report, text }
}

fn look(mode: &str) -> Seen {
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "trace", &["--buffer", "8192"], &[], mode);
    seen(scratch, &trace)
}

/// The same with the operating system's events; none where the kernel does not let this user have them. Once more where
/// a busy machine made the kernel drop events, as states are unknown there.
fn look_with_os(before: &[&str], mode: &str) -> Option<Seen> {
    let said = run(Command::new(hetrace()).args(["doctor", "--json"])).out;
    let findings: Value = serde_json::from_str(&said).expect("JSON");
    let own = findings.as_array().expect("a list").iter().find(|f| f["what"] == "--os").expect("a finding");
    if !own["says"].as_str().expect("text").starts_with("tracepoints") {
        eprintln!("SKIPPED: no tracepoints here: {}", own["says"]);
        return None;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let options = ["--os", "tree", "--os-buffer", "32768"];
    let is_whole = |trace: &PathBuf| {
        let manifest = std::fs::read(trace.join("hetrace/hetrace/manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        manifest["os"]["dropped"] == 0
    };
    let mut traces = (0..5).map(|n| record(&scratch, &n.to_string(), &options, before, mode));
    let trace = traces.find(is_whole).expect("a trace without a loss");
    Some(seen(scratch, &trace))
}

fn number(value: &Value, what: &str) -> u64 {
    value[what].as_u64().unwrap_or_else(|| panic!("{what} is no number in {value}"))
}

fn text<'v>(value: &'v Value, what: &str) -> &'v str {
    value[what].as_str().unwrap_or_default()
}

impl Seen {
    fn device(&self) -> &Value {
        &self.report["devices"][0]
    }

    fn causes(&self) -> &[Value] {
        self.device()["causes"].as_array().expect("causes")
    }

    /// Idle time of causes that this is true of.
    fn idle(&self, of: impl Fn(&Value) -> bool) -> u64 {
        self.causes().iter().filter(|cause| of(cause)).map(|cause| number(cause, "ns")).sum()
    }

    /// The cause of most idle time.
    fn main_cause(&self) -> &Value {
        self.causes().iter().max_by_key(|cause| number(cause, "ns")).expect("a cause")
    }

    fn saving(&self, kind: &str) -> Option<&Value> {
        self.report["savings"].as_array().expect("savings").iter().find(|saving| text(saving, "kind") == kind)
    }

    fn verdict(&self) -> &str {
        text(&self.report["verdict"], "text")
    }

    /// What is true of every report.
    fn check(&self) {
        let run = number(&self.report["verdict"], "run_ns");
        assert_eq!(run, number(&self.report, "duration_ns"), "{}", self.report["verdict"]);
        for saving in self.report["savings"].as_array().expect("savings") {
            let share = saving["share"].as_f64().expect("a share");
            assert!((share - number(saving, "ns") as f64 / run as f64).abs() < 1e-9, "{saving}");
            assert!(number(saving, "ns") <= run && number(saving, "idle_ns") <= run, "{saving}");
        }
        let all: u64 = self.causes().iter().map(|cause| number(cause, "ns")).sum();
        assert_eq!(all, number(self.device(), "idle_ns"), "{}", self.device());
        let first = self.text.lines().find(|line| line.contains("usy ")).expect("a verdict");
        assert!(first.starts_with("Device busy "), "{first}");
    }
}

/// How long threads of `idle` compute in one piece, at least.
const WORK: u64 = 60_000_000;

#[test]
fn a_user_event_set_late_is_named_with_who_sets_it() {
    let seen = look("event");
    seen.check();
    let cause = seen.main_cause();
    assert_eq!((text(cause, "kind"), text(cause, "call")), ("user event", "clSetUserEventStatus"), "{cause}");
    assert!(number(cause, "ns") >= WORK * 9 / 10, "{cause}");
    assert!(!text(cause, "by_thread").is_empty() && cause["by_thread"] != cause["thread"], "{cause}");
    assert!(seen.saving("user event").is_some(), "{}", seen.report["savings"]);
    assert!(seen.saving("not submitted").is_none(), "nobody forgot to flush: {}", seen.report["savings"]);
}

#[test]
fn an_event_set_before_is_no_cause() {
    let seen = look("event-early");
    seen.check();
    assert_eq!(seen.idle(|cause| text(cause, "kind") == "user event"), 0, "{:#?}", seen.causes());
    assert!(
        seen.idle(|cause| text(cause, "kind").starts_with("host")) >= WORK * 9 / 10,
        "{:#?}",
        seen.causes()
    );
}

#[test]
fn builds_of_main_are_what_a_worker_waits_for() {
    for mode in ["build", "newborn"] {
        let seen = look(mode);
        seen.check();
        let cause = seen.main_cause();
        assert_eq!((text(cause, "kind"), text(cause, "call")), ("call", "clBuildProgram"), "{mode}: {cause}");
        let (by, thread) = (text(cause, "by_thread"), text(cause, "thread"));
        assert!(!by.is_empty() && by != thread, "{mode}: {cause}");
        // Three builds before the only launch are start-up, and no time to enqueue ahead of.
        assert_eq!(cause["start_up"], true, "{mode}: {cause}");
        assert!(
            seen.verdict().contains("start-up, mostly in clBuildProgram of thread "),
            "{}",
            seen.verdict()
        );
        let host = seen.idle(|cause| text(cause, "kind").starts_with("host"));
        assert!(host < number(cause, "ns"), "{mode}: no work of a thread that had nothing to do: {cause}");
    }
}

#[test]
fn a_thread_behind_a_lock_waits_for_whoever_holds_it() {
    let seen = look("lock");
    seen.check();
    // Without the operating system's events nobody knows, and it says so.
    let cause = seen.main_cause();
    let said = (text(cause, "kind"), text(cause, "call"));
    assert_eq!(said, ("another thread", "clBuildProgram"), "{cause}");
    assert!(text(cause, "by_thread").contains("(holder)"), "{cause}");
    assert!(text(cause, "remedy").contains("is not known"), "{cause}");
    let Some(seen) = look_with_os(&[], "lock") else { return };
    seen.check();
    let cause = seen.main_cause();
    assert_eq!(text(cause, "kind"), "lock", "{cause}");
    let words = text(cause, "cause");
    assert!(words.contains("held by holder (") && words.ends_with("which was in clBuildProgram"), "{words}");
    assert!(seen.saving("lock").is_some(), "{}", seen.report["savings"]);
    // The path to the end leads through who held it.
    let path = seen.report["path"]["shares"].as_array().expect("shares");
    let builds = path.iter().filter(|share| text(share, "name") == "clBuildProgram");
    let builds: u64 = builds.map(|share| number(share, "ns")).sum();
    assert!(builds >= number(cause, "ns") / 2, "{builds}: {cause} {path:#?}");
}

#[test]
fn a_thread_that_sleeps_does_not_wait_for_builds_beside_it() {
    let Some(seen) = look_with_os(&[], "beside") else { return };
    seen.check();
    assert_eq!(seen.idle(|cause| text(cause, "call") == "clBuildProgram"), 0, "{:#?}", seen.causes());
    let asleep = seen.idle(|cause| text(cause, "cause").contains("nanosleep"));
    assert!(asleep >= 5 * 39_000_000, "{:#?}", seen.causes());
}

#[test]
fn host_work_between_steps_is_named_with_what_overlap_could_save() {
    let seen = look("host");
    seen.check();
    // Thirty steps of 5 ms of work.
    let host = seen.idle(|cause| text(cause, "kind").starts_with("host"));
    assert!(host >= 29 * 4_900_000, "{:#?}", seen.causes());
    let saving = seen.saving("waits").or_else(|| seen.saving("host work"));
    let saving = saving.unwrap_or_else(|| panic!("{}", seen.report["savings"]));
    // No more of it can hide than the device works, and what its threads take to wake up.
    assert!(number(saving, "ns") <= number(saving, "idle_ns"), "{saving}");
    // On a machine busy enough, steps are anything but steady.
    let steady = &seen.report["steady"];
    if steady.is_object() {
        assert_eq!((text(steady, "what"), text(steady, "by")), ("spin", "command"), "{steady}");
        assert!(number(steady, "steps") >= 15 && number(steady, "period_ns") >= 4_900_000, "{steady}");
        assert!(seen.text.contains("Steady part: "), "{}", seen.text);
    }
}

#[test]
fn memory_that_is_made_in_each_step_is_named_and_not_what_is_made_once() {
    let seen = look("objects");
    seen.check();
    let saving = seen.saving("objects").unwrap_or_else(|| panic!("{}", seen.report["savings"]));
    assert!(text(saving, "cause").contains("clCreateBuffer"), "{saving}");
    let seen = look("once");
    seen.check();
    assert!(seen.saving("objects").is_none(), "{}", seen.report["savings"]);
    let made =
        seen.causes().iter().find(|cause| text(cause, "call") == "clCreateBuffer").expect("it is a cause");
    assert_eq!(made["start_up"], true, "{made}");
    let start_up = seen.report["start_up"]["causes"].as_array().expect("causes");
    assert!(start_up.iter().any(|cause| text(cause, "cause") == "in clCreateBuffer"), "{start_up:?}");
}

#[test]
fn polling_is_found_and_is_no_loss_while_the_device_works() {
    let seen = look("polls");
    seen.check();
    let waits = seen.report["waits"].as_array().expect("waits");
    let polls = waits.iter().find(|wait| text(wait, "name") == "clGetEventInfo").expect("polls wait");
    assert_eq!((&polls["polling"], number(polls, "immediate")), (&Value::Bool(true), 0), "{polls}");
    assert!(number(polls, "busy_ns") > number(polls, "ns") / 2, "{polls}");
    assert!(seen.text.contains("Polling: clGetEventInfo is asked again and again"), "{}", seen.text);
    // The time is the kernels', not the polls'.
    let path = seen.report["path"]["shares"].as_array().expect("shares");
    assert_eq!(text(&path[0], "kind"), "kernel", "{path:#?}");
}

#[test]
fn copies_and_kernels_in_turn_are_named_with_their_queue() {
    let seen = look("copies");
    seen.check();
    let device = seen.device();
    assert_eq!(number(device, "both_ns"), 0, "{device}");
    let saving = seen.saving("overlap").unwrap_or_else(|| panic!("{}", seen.report["savings"]));
    assert!(text(saving, "what").contains("both are on queue 0x"), "{saving}");
    // No more than what copies beside kernels, or kernels beside copies, could hide.
    let least = number(device, "computing_ns").min(number(device, "copying_ns"));
    assert!(number(saving, "ns") <= least, "{saving}: {device}");
}

#[test]
fn copies_on_a_queue_of_their_own_have_what_they_could_gain() {
    let seen = look("two-queues");
    seen.check();
    if number(seen.device(), "both_ns") == 0 {
        eprintln!("SKIPPED: this device runs one command at a time");
        return;
    }
    let one = look("copies");
    let part = |seen: &Seen| {
        let saved = seen.saving("overlap").map_or(0, |saving| number(saving, "ns"));
        saved as f64 / number(seen.device(), "busy_ns") as f64
    };
    assert!(part(&seen) < part(&one), "{} {}", seen.report["savings"], one.report["savings"]);
    let what = seen.saving("overlap").map_or("", |saving| text(saving, "what"));
    assert!(!what.contains("both are on"), "{what}");
}

#[test]
fn launches_that_the_device_outruns_are_no_case_for_several_queues() {
    let seen = look("small");
    seen.check();
    assert!(seen.report["verdict"]["busy_share"].as_f64().expect("a share") < 0.5, "{}", seen.verdict());
    assert!(seen.saving("queues").is_none(), "they share what they write: {}", seen.report["savings"]);
    let launching = ["launch", "device latency", "not submitted", "call", "wake-up latency"];
    // How long each gap is, a busy machine decides.
    let of_launches = seen.causes().iter().filter(|cause| launching.contains(&text(cause, "kind")));
    let gaps: u64 = of_launches.map(|cause| number(cause, "gaps")).sum();
    assert!(gaps > number(seen.device(), "gaps") / 2, "{:#?}", seen.causes());
}

#[test]
fn blocking_reads_are_named_with_the_host_work_behind_them() {
    let seen = look("reads");
    seen.check();
    let saving = seen.saving("blocking copies").unwrap_or_else(|| panic!("{}", seen.report["savings"]));
    assert!(text(saving, "what").contains("not blocking in clEnqueueReadBuffer"), "{saving}");
    // Thirty steps of 3 ms of work behind the read.
    let host = seen.idle(|cause| {
        text(cause, "call") == "clEnqueueReadBuffer" && text(cause, "kind") == "host after wait"
    });
    assert!(host >= 29 * 2_900_000, "{:#?}", seen.causes());
}

#[test]
fn work_beside_the_next_kernel_keeps_no_device_idle() {
    let seen = look("ahead");
    seen.check();
    // Of each kernel's time a small part: a busy machine may add to it.
    let host = seen.idle(|cause| text(cause, "kind").starts_with("host"));
    assert!(host < number(seen.device(), "busy_ns"), "{:#?}", seen.causes());
    let behind = look("host");
    let part = |seen: &Seen| {
        let host = seen.idle(|cause| text(cause, "kind").starts_with("host"));
        host as f64 / number(seen.device(), "busy_ns") as f64
    };
    assert!(part(&seen) < part(&behind), "{:#?} {:#?}", seen.causes(), behind.causes());
}

#[test]
fn sleeping_between_questions_is_polling() {
    let seen = look("naps");
    seen.check();
    let polling = seen.idle(|cause| text(cause, "kind") == "polling");
    // Thirty kernels that end long before the first nap does.
    assert!(polling >= 20 * 4_000_000, "{:#?}", seen.causes());
    let saving = seen.saving("polling").unwrap_or_else(|| panic!("{}", seen.report["savings"]));
    assert!(text(saving, "what").contains("instead of polling with clGetEventInfo"), "{saving}");
}

#[test]
fn a_run_without_commands_says_what_took_the_time() {
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = record(&scratch, "trace", &[], &[], "nothing");
    let seen = seen(scratch, &trace);
    let verdict = seen.verdict();
    assert!(verdict.starts_with("no command ran on a device in "), "{verdict}");
    assert!(verdict.contains(" in clBuildProgram"), "{verdict}");
    assert!(seen.text.contains("No command ran on a device"), "{}", seen.text);
    let path = seen.report["path"]["shares"].as_array().expect("shares");
    assert!(path.iter().any(|share| text(share, "name") == "clBuildProgram"), "{path:#?}");
}

/// CLUST, §4.8.1: one queue against several.
#[test]
fn kernels_in_one_queue_could_overlap_in_several() {
    let one = look("one");
    one.check();
    let device = one.device();
    assert_eq!((number(device, "queues"), number(device, "most_at_a_time")), (1, 1), "{device}");
    let saving = one.saving("queues").unwrap_or_else(|| panic!("{}", one.report["savings"]));
    // A work-group has at most half of a device of several compute units.
    let (ns, busy) = (number(saving, "ns"), number(device, "busy_ns"));
    assert!(ns > busy / 4 && ns < busy, "{saving}: {device}");
    assert!(text(saving, "what").contains("(there is 1 queue)"), "{saving}");
    assert!(text(saving, "what").contains("share no memory that they write"), "{saving}");
    let chain = look("chain");
    chain.check();
    assert!(chain.saving("queues").is_none(), "each needs the one before: {}", chain.report["savings"]);
    let several = look("several");
    several.check();
    let device = several.device();
    if number(device, "most_at_a_time") < 2 {
        eprintln!("SKIPPED: this device runs one command at a time");
        return;
    }
    // What was to be gained has been.
    let left = several.saving("queues").map_or(0, |saving| number(saving, "ns"));
    assert!(left < ns / 2, "{left} of {ns}: {}", several.report["savings"]);
}

/// A competitor on CPU 0, as long as this lives.
struct Hog(Child);

impl Hog {
    fn start() -> Self {
        let mut hog = Command::new(program("states"));
        let child = hog.arg("hog").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut hog = Hog(child.expect("a competitor"));
        let mut line = String::new();
        let out = hog.0.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        hog
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// CLUST, §4.7.1: a program slowed by competitors for its CPU.
#[test]
fn competitors_for_the_cpu_are_named() {
    let pinned = ["taskset", "-c", "0"];
    let hog = Hog::start();
    let Some(seen) = look_with_os(&pinned, "busy") else { return };
    drop(hog);
    seen.check();
    let cpu = &seen.report["cpu"];
    let behind = cpu["behind"].as_array().unwrap_or_else(|| panic!("{cpu}"));
    let hog = behind.iter().find(|row| text(row, "who").starts_with("hog ("));
    let hog = hog.unwrap_or_else(|| panic!("{cpu}"));
    // Both want the CPU all the time; others here may take more of it.
    assert!(number(hog, "ns") > 10_000_000, "{cpu}");
    assert!(
        seen.text.contains("CPUs: the program's threads were ready and had no CPU for "),
        "{}",
        seen.text
    );
    // Without it, others may take the CPU, but not that one.
    let Some(seen) = look_with_os(&pinned, "busy") else { return };
    assert!(!seen.report["cpu"].to_string().contains("hog ("), "{}", seen.report["cpu"]);
}
