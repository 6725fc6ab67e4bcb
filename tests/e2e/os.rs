//! Events of the operating system: complete, in order, and what other tools count.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hetrace_ctf::read::{Merge, Trace};
use hetrace_tests::bed::{program, run};
use hetrace_tests::{has_tracepoints, hetrace};
use serde_json::Value;
use tempfile::TempDir;

/// An event of the kernel's trace: time, name, CPU, and fields as text.
#[derive(Debug, Clone)]
struct Event {
    time: i64,
    name: String,
    fields: HashMap<String, String>,
}

impl Event {
    fn number(&self, name: &str) -> i64 {
        self.fields[name].parse().unwrap_or_else(|_| panic!("{name} of {self:?}"))
    }
}

/// Reads a trace's events by babeltrace2, which has to have no complaint.
fn events(trace: &Path) -> Vec<Event> {
    let read = run(Command::new("babeltrace2").arg("--clock-cycles").arg("--no-delta").arg(trace));
    assert_eq!((read.status, &*read.err), (0, ""));
    read.out.lines().map(event).collect()
}

fn event(line: &str) -> Event {
    let (time, rest) = line.strip_prefix('[').and_then(|l| l.split_once("] ")).expect("a time");
    let (head, fields) = rest.split_once(": ").expect("a name");
    let name = head.rsplit(' ').next().expect("a name").to_owned();
    let pairs = fields.split(['{', '}', ',']).filter_map(|pair| pair.split_once(" = "));
    let fields = pairs.map(|(k, v)| (k.trim().to_owned(), v.trim().trim_matches('"').to_owned())).collect();
    Event { time: time.trim_start_matches('0').parse().unwrap_or(0), name, fields }
}

fn count(events: &[Event], name: &str) -> usize {
    events.iter().filter(|e| e.name == name).count()
}

fn manifest(trace: &Path) -> Value {
    manifest_of(trace).expect("a manifest")
}

fn manifest_of(trace: &Path) -> Option<Value> {
    let text = fs::read(trace.join("hetrace/hetrace/manifest.json")).ok()?;
    Some(serde_json::from_slice(&text).expect("JSON"))
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).out.trim() == "0"
}

/// Tries to record without a loss. What a machine does beside a test may be more than its reader can take; that this is
/// counted is tested by itself. A recorder that always loses something fails the test.
const TRIES: u32 = 5;

/// Records a command with these options.
fn record(scratch: &TempDir, options: &[&str], command: &[&str]) -> (PathBuf, String, String) {
    record_without(&["dropped"], scratch, options, command)
}

/// The same, once more also where one of these numbers of the manifest is not 0, which are the kernel's doing.
fn record_without(
    losses: &[&str],
    scratch: &TempDir,
    options: &[&str],
    command: &[&str],
) -> (PathBuf, String, String) {
    for _ in 1..TRIES {
        let (trace, out, err) = record_once(scratch, options, command);
        let is_whole = |manifest: Value| losses.iter().all(|loss| manifest["os"][*loss] == 0);
        if manifest_of(&trace).is_none_or(is_whole) {
            return (trace, out, err);
        }
        eprintln!("events missing: once more: {err}");
        fs::remove_dir_all(&trace).expect("removed");
    }
    record_once(scratch, options, command)
}

fn record_once(scratch: &TempDir, options: &[&str], command: &[&str]) -> (PathBuf, String, String) {
    let trace = scratch.path().join("trace");
    let mut hetrace = Command::new(hetrace());
    hetrace.args(["run", "-q", "-o"]).arg(&trace).args(options).arg("--").args(command);
    // Room for what others do on a busy machine: nothing may be dropped.
    hetrace.env("HETRACE_OS_BUFFER", "32768");
    let done = run(&mut hetrace);
    assert_eq!(done.status, 0, "{}", done.err);
    (trace, done.out, done.err)
}

fn os() -> String {
    program("os").to_string_lossy().into_owned()
}

#[test]
fn a_thousand_short_processes_are_followed_and_nothing_stays() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let mark = format!("HETRACE_OS_TEST={}", scratch.path().display());
    let mut command = Command::new(hetrace());
    let (name, value) = mark.split_once('=').expect("a variable");
    command.env(name, value).current_dir(scratch.path());
    command.args(["run", "-q", "--os", "tree", "-o", "trace", "--", &os(), "shorts", "1000"]);
    let done = run(&mut command);
    assert_eq!(done.status, 0, "{}", done.err);
    // Threads that the kernel exempts from tracing come between ours now and then.
    let lost = done.err.lines().find(|line| line.contains("LOST") && !line.contains("did not deliver"));
    assert_eq!(lost, None, "{}", done.err);

    let trace = scratch.path().join("trace");
    let report = &manifest(&trace)["os"];
    for nothing in ["dropped", "unwritten", "late", "damaged_bytes"] {
        assert_eq!(report[nothing], 0, "{nothing}: {report}");
    }
    let events = events(&trace);
    assert_eq!(report["events"].as_u64(), Some(events.len() as u64));
    // The program itself, which the launcher forks, and its children. Whatever CPU it ran on, each stream is
    // as long as the recording, for readers that look at what all have in common.
    for (name, number) in [
        ("sched_process_fork", 1001),
        ("sched_wakeup_new", 1001),
        ("sched_process_exit", 1001),
        ("syscall_entry_exit_group", 1001),
        ("sched_process_exec", 1),
    ] {
        assert_eq!(count(&events, name), number, "{name}");
    }
    for fork in events.iter().filter(|e| e.name == "sched_process_fork") {
        assert_eq!(fork.number("child_pid"), fork.number("child_tid"), "{fork:?}");
    }
    // A call that is entered is left, but for the one that ends a process, and `execve`, with whose end
    // it begins.
    let calls = |prefix: &str| events.iter().filter(|e| e.name.starts_with(prefix)).count();
    assert_eq!(calls("syscall_entry_") - 1001, calls("syscall_exit_") - 1 - children_of_fork(&events));
    assert!(events.windows(2).all(|two| two[0].time <= two[1].time));
    nothing_stays(&mark);
}

/// Returns how many ends of `clone` have no beginning: a child begins with one.
fn children_of_fork(events: &[Event]) -> usize {
    let of = |kind: &str| {
        let names = ["clone", "clone3", "fork", "vfork"].map(|call| format!("syscall_{kind}_{call}"));
        events.iter().filter(|e| names.contains(&e.name)).count()
    };
    of("exit") - of("entry")
}

/// Waits until no process has this variable: the one that closes the tracepoints ends by itself.
fn nothing_stays(mark: &str) {
    for _ in 0..600 {
        let has_mark = |pid: &PathBuf| {
            let environ = fs::read(pid.join("environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|variable| variable == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").expect("/proc").flatten().map(|e| e.path());
        if !entries.into_iter().any(|pid| has_mark(&pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("a process of the run is still there");
}

#[test]
fn threads_belong_to_their_process() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, ..) = record(&scratch, &["--os", "tree"], &[&os(), "threads", "20"]);
    let events = events(&trace);
    let process = events.iter().find(|e| e.name == "sched_process_exec").expect("a start").number("tid");
    let is_thread = |e: &&Event| e.name == "sched_process_fork" && e.number("parent_tid") == process;
    let begun: Vec<&Event> = events.iter().filter(is_thread).collect();
    assert_eq!(begun.len(), 20);
    for fork in begun {
        assert_eq!((fork.number("parent_pid"), fork.number("child_pid")), (process, process), "{fork:?}");
        assert_ne!(fork.number("child_tid"), process, "{fork:?}");
    }
}

/// In a container the kernel's numbers of processes are not those that the program sees.
#[test]
fn another_namespace_has_the_kernels_numbers() {
    if !is_root() || !has_tracepoints() {
        eprintln!("SKIPPED: only root makes namespaces");
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let mut command = Command::new("unshare");
    command.args(["-pf", "--mount-proc"]).arg(hetrace()).args(["run", "-q", "--os", "tree", "-o", "trace"]);
    let done = run(command.args(["--", &os(), "shorts", "20"]).current_dir(scratch.path()));
    assert_eq!(done.status, 0, "{}", done.err);
    let events = events(&scratch.path().join("trace"));
    assert_eq!(count(&events, "sched_process_exit"), 21);
    let forks: Vec<&Event> = events.iter().filter(|e| e.name == "sched_process_fork").collect();
    assert_eq!(forks.len(), 20);
    for fork in forks {
        assert_eq!(fork.number("parent_pid"), fork.number("parent_tid"), "{fork:?}");
        assert_eq!(fork.number("child_pid"), fork.number("child_tid"), "{fork:?}");
    }
}

#[test]
fn a_full_disk_is_counted() {
    if !is_root() || !has_tracepoints() {
        eprintln!("SKIPPED: only root mounts a small disk");
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let script = format!(
        "mount -t tmpfs -o size=600k tmpfs {0}; cd {0}; {1} run -q --os tree -o trace -- {2} shorts 1000; \
         {1} check --json trace | tr -d '\\n'; echo; cat trace/hetrace/hetrace/manifest.json; babeltrace2 trace/kernel | wc -l",
        scratch.path().display(),
        hetrace().display(),
        os()
    );
    let done = run(Command::new("unshare").args(["-m", "sh", "-ec", &script]));
    assert_eq!(done.status, 0, "{}", done.err);
    let (checked, rest) = done.out.split_once('\n').expect("two reports");
    let (json, lines) = rest.trim_end().rsplit_once('\n').expect("a number");
    let report = &serde_json::from_str::<Value>(json).expect("a manifest")["os"];
    let unwritten = report["unwritten"].as_u64().expect("a number");
    assert!(unwritten > 0, "{report}");
    assert!(
        done.err.contains(&format!("{unwritten} events of the operating system were not written")),
        "{}",
        done.err
    );
    assert_eq!(report["events"].as_u64(), lines.trim().parse().ok(), "{}", done.err);
    // Streams can't count what came when nothing more could be written to them.
    let checked: Value = serde_json::from_str(checked).expect("what check says");
    let dropped = report["dropped"].as_u64().expect("a number");
    assert!(checked["dropped_events"].as_u64() >= Some(dropped + unwritten), "{checked}: {report}");
}

#[test]
fn what_was_written_outlives_the_launcher() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = scratch.path().join("trace");
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--os", "tree", "-o"]).arg(&trace);
    // Ends with the launcher, whose end closes the pipe.
    command.args(["--", "sh", "-c", "while sleep 0.01; do echo; done"]);
    let mut launcher = command.stdout(Stdio::piped()).spawn().expect("hetrace");
    let channel = trace.join("kernel/channel0_0");
    while fs::metadata(&channel).map_or(0, |m| m.len()) == 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    launcher.kill().expect("a launcher");
    launcher.wait().expect("its end");
    drop(launcher.stdout.take());
    assert!(count(&events(&trace), "sched_switch") > 0);
    let printed = run(Command::new(hetrace()).arg("print").arg(&trace));
    assert!(printed.out.contains("kernel sched_switch"), "{}", printed.err);
    run(Command::new(hetrace()).arg("recover").arg(&trace));
}

#[test]
fn context_switches_are_as_many_as_the_kernel_counts() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, out, _) = record(&scratch, &["--os", "tree"], &[&os(), "sleeps", "200"]);
    let words: Vec<i64> = out.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [voluntary, involuntary] = words[..] else { panic!("{out}") };
    let events = events(&trace);
    let program = events.iter().find(|e| e.name == "sched_process_exec").expect("a start").number("tid");
    let when = |name: &str| events.iter().find(|e| e.name == name).expect(name).time;
    let (before, after) = (when("syscall_entry_getrusage"), when("syscall_exit_getrusage"));
    let until = |time: i64, preempted: bool| {
        let own = |e: &&Event| e.name == "sched_switch" && e.number("prev_tid") == program && e.time <= time;
        // Ready to run (`TASK_RUNNING`), or taken off its CPU meanwhile (`TASK_REPORT_MAX`).
        let is_ready = |e: &Event| matches!(e.number("prev_state"), 0 | 256);
        events.iter().filter(own).filter(|e| is_ready(e) == preempted).count() as i64
    };
    assert!((until(before, false)..=until(after, false)).contains(&voluntary), "{out}");
    assert!((until(before, true)..=until(after, true)).contains(&involuntary), "{out}");
    assert!(voluntary >= 200, "{out}");
    let naps = count(&events, "syscall_entry_clock_nanosleep");
    assert_eq!(naps, 200);
}

#[test]
fn system_calls_can_be_chosen() {
    if !has_tracepoints() {
        return;
    }
    for (globs, kinds) in
        [("none", &[][..]), ("clock_*", &["clock_nanosleep"]), ("getr*,exit*", &["getrusage", "exit_group"])]
    {
        let scratch = tempfile::tempdir().expect("scratch");
        let options = ["--os", "tree", "--os-syscalls", globs];
        let (trace, ..) = record(&scratch, &options, &[&os(), "sleeps", "3"]);
        let events = events(&trace);
        let prefix = "syscall_entry_";
        let mut found: Vec<&str> = events.iter().filter_map(|e| e.name.strip_prefix(prefix)).collect();
        found.sort_unstable();
        found.dedup();
        for kind in kinds {
            assert!(found.contains(kind), "{globs}: {found:?}");
        }
        let fits = |name: &&str| globs.split(',').any(|g| name.starts_with(g.trim_end_matches('*')));
        assert!(found.iter().all(fits), "{globs}: {found:?}");
        assert!(count(&events, "sched_switch") > 0);
    }
}

#[test]
fn a_glob_of_no_system_call_is_an_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = scratch.path().join("trace");
    let with = |os: &str| {
        let mut hetrace = Command::new(hetrace());
        hetrace
            .args(["run", "--os", os, "--os-syscalls", "read,raed*", "-o"])
            .arg(&trace)
            .args(["--", "true"]);
        run(&mut hetrace)
    };
    let done = with("tree");
    assert_eq!(done.status, 2, "{}", done.err);
    assert!(done.err.contains("no system call matches `raed*`"), "{}", done.err);
    assert!(!trace.exists());
    // Without these events the option has no meaning, and a variable may well have set it.
    assert_eq!(with("off").status, 0);
}

#[test]
fn the_whole_machine_has_others_in_it() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, _, err) = record(&scratch, &["--os", "system"], &[&os(), "sleeps", "100"]);
    assert!(err.contains("by tracepoints (system)"), "{err}");
    let events = events(&trace);
    let dumped: Vec<&Event> = events.iter().filter(|e| e.name == "lttng_statedump_process_state").collect();
    assert!(dumped.iter().any(|e| e.number("pid") == 1), "{dumped:?}");
    assert_eq!((count(&events, "lttng_statedump_start"), count(&events, "lttng_statedump_end")), (1, 1));
    let program = events.iter().find(|e| e.name == "sched_process_exec").expect("a start").number("tid");
    let others = |e: &&Event| {
        e.name == "sched_switch" && e.number("prev_tid") != program && e.number("next_tid") != program
    };
    assert!(events.iter().any(|e| others(&e)));
}

#[test]
fn calls_and_the_kernels_events_are_on_one_time_line() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let linked = program("linked").to_string_lossy().into_owned();
    // Where the kernel exempts a thread from tracing, print says what it did not deliver.
    let losses = ["dropped", "unseen_switches"];
    let (trace, ..) = record_without(&losses, &scratch, &["--os", "tree"], &[&linked, "5"]);
    // Ours prints both by time; so does babeltrace2, which has as many events.
    let printed = run(Command::new(hetrace()).args(["print", "--events", "--monotonic"]).arg(&trace));
    assert_eq!((printed.status, &*printed.err), (0, ""));
    let times: Vec<f64> =
        printed.out.lines().map(|l| l.split(' ').next().expect("a time").parse().expect("seconds")).collect();
    assert!(times.windows(2).all(|two| two[0] <= two[1]));
    let kernel = printed.out.lines().filter(|l| l.split(' ').nth(1) == Some("kernel")).count();
    let both = run(Command::new("babeltrace2").arg(&trace));
    assert_eq!((both.status, &*both.err), (0, ""));
    assert_eq!(both.out.lines().count(), times.len());
    assert!(kernel > 0 && kernel < times.len());
    // A call to the real clock of a process: the program's own writing to its terminal comes after its first call.
    let first_call = both.out.lines().position(|l| l.contains("opencl:")).expect("a call");
    let exec = both.out.lines().position(|l| l.contains("sched_process_exec:")).expect("a start");
    let end = both.out.lines().position(|l| l.contains("syscall_entry_exit_group:")).expect("an end");
    assert!(exec < first_call && first_call < end);
    let tally = run(Command::new(hetrace()).arg("tally").arg(&trace));
    assert!(tally.status == 0 && tally.out.contains("clFinish"), "{}", tally.err);
    let check = run(Command::new(hetrace()).arg("check").arg(&trace));
    assert_eq!(check.status, 0, "{}", check.out);
    assert!(check.out.contains("complete and unchanged"), "{}", check.out);
}

#[test]
fn what_is_missing_of_the_kernels_trace_is_found() {
    if !has_tracepoints() {
        return;
    }
    let scratch = TempDir::new().expect("a folder");
    for (name, options) in [("plain", &[][..]), ("packed", &["--compress"])] {
        let trace = scratch.path().join(name);
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "--os", "tree", "-o"]).arg(&trace).args(options);
        let done = run(line.args(["--", "sh", "-c", "ls / > /dev/null; ls / > /dev/null"]));
        assert_eq!(done.status, 0, "{}", done.err);
        let check = || run(Command::new(hetrace()).arg("check").arg(&trace));
        let sound = check();
        assert!(sound.status == 0 && sound.out.contains("complete and unchanged"), "{}", sound.out);
        let print = run(Command::new(hetrace()).arg("print").arg(&trace));
        assert!(print.status == 0 && print.out.contains("sched_switch"), "{}", print.err);
        let streams =
            fs::read_dir(trace.join("kernel")).expect("a folder").flatten().map(|entry| entry.path());
        let is_stream =
            |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("channel"));
        let stream = streams.filter(is_stream).max_by_key(|path| fs::metadata(path).map_or(0, |m| m.len()));
        let stream = stream.expect("a stream");
        assert_eq!(stream.extension().is_some_and(|end| end == "zst"), !options.is_empty());
        let whole = fs::read(&stream).expect("a stream");
        let mut changed = whole.clone();
        *changed.last_mut().expect("a byte") ^= 1;
        fs::write(&stream, changed).expect("to write");
        let damaged = check();
        assert!(damaged.status == 1 && damaged.out.contains("kernel: channel"), "{}", damaged.out);
        fs::write(&stream, &whole[..whole.len() - 1]).expect("to write");
        assert_eq!(check().status, 1);
        fs::remove_file(&stream).expect("to remove");
        let missing = check();
        assert!(missing.status == 1 && missing.out.contains("missing"), "{}", missing.out);
    }
}

/// A folder that everybody may read, with hetrace and its libraries in it.
fn public_copy(scratch: &TempDir) -> PathBuf {
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
    open(scratch.path());
    let built = hetrace().parent().expect("a folder").to_owned();
    for entry in fs::read_dir(built).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "hetrace" || (name.starts_with("libhetrace_") && name.ends_with(".so")) {
            let to = scratch.path().join(&name);
            fs::copy(entry.path(), &to).expect("a copy");
            open(&to);
        }
    }
    let to = scratch.path().join("os");
    fs::copy(program("os"), &to).expect("a copy");
    open(&to);
    let home = scratch.path().join("home");
    fs::create_dir(&home).expect("a folder");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).expect("a mode");
    home
}

#[test]
fn an_ordinary_user_gets_the_switches_of_its_own_threads() {
    if !is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let home = public_copy(&scratch);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "../hetrace"]);
    command.args(["run", "-q", "--os", "tree", "-o", "trace", "--", "../os", "sleeps", "100"]);
    let done = run(command.current_dir(&home).env("HOME", &home));
    assert_eq!(done.status, 0, "{}", done.err);
    if done.err.contains("by tracepoints") {
        eprintln!("SKIPPED: ordinary users may have tracepoints here");
        return;
    }
    // Why it is no more, and what would help.
    assert!(done.err.contains("hetrace: operating system: only context switches"), "{}", done.err);
    assert!(done.err.contains("For more: sudo "), "{}", done.err);
    let trace = home.join("trace");
    assert_eq!(manifest(&trace)["os"]["way"], "switches");
    let events = events(&trace);
    let blocked = |e: &&Event| e.name == "perf_thread_out" && e.number("preempted") == 0;
    assert!(events.iter().filter(blocked).count() >= 100, "{}", events.len());
    let (ins, outs) = (count(&events, "perf_thread_in"), count(&events, "perf_thread_out"));
    assert!(ins.abs_diff(outs) <= 1, "{ins} in, {outs} out");
    assert_eq!(count(&events, "perf_thread_end"), 1);
}

#[test]
fn without_perf_events_statistics_are_left() {
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = scratch.path().join("trace");
    let mut command = Command::new(program("os"));
    command.arg("refused").arg(hetrace()).args(["run", "-q", "--os", "auto", "-o"]).arg(&trace);
    // Longer than the time between two samples.
    let done = run(command.args(["--", "sleep", "1"]));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(!done.err.contains("For more"), "{}", done.err);
    let report = &manifest(&trace)["os"];
    assert_eq!(report["way"], "statistics");
    // A filter of system calls is named, not only the setting that forbids nothing of this.
    assert!(report["why"].as_str().is_some_and(|why| why.contains("perf_event_open")), "{report}");
    let events = events(&trace);
    assert!(!events.is_empty() && events.iter().all(|e| e.name == "proc_schedstat"), "{events:?}");
}

/// Records 30 processes without one of the ways that the kernel has to record them. Returns what is in the trace; none if there
/// are no tracepoints then.
fn shorts_without(refused: &str) -> Option<Vec<Event>> {
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = scratch.path().join("trace");
    let mut command = Command::new(program("os"));
    command.arg(refused).arg(hetrace()).args(["run", "-q", "--os", "tree", "-o"]).arg(&trace);
    let done = run(command.arg("--").arg(program("os")).args(["shorts", "30"]));
    assert_eq!(done.status, 0, "{}", done.err);
    let report = &manifest(&trace)["os"];
    if report["way"] != "tracepoints" {
        eprintln!("SKIPPED: no tracepoints here: {}", report["why"]);
        return None;
    }
    assert_eq!(report["dropped"].as_u64().unwrap_or(0), 0, "{report}");
    Some(events(&trace))
}

#[test]
fn programs_in_the_kernel_need_no_perf_events_and_perf_no_programs() {
    for refused in ["no-perf", "no-bpf"] {
        let Some(events) = shorts_without(refused) else { continue };
        // The launcher forks the program, which begins by one execve, and that each of the processes.
        let counts = ["sched_process_fork", "sched_process_exec", "sched_process_exit"];
        assert_eq!(counts.map(|name| count(&events, name)), [31, 1, 31], "{refused}");
        let more = ["sched_switch", "sched_wakeup_new", "syscall_entry_wait4"];
        assert!(more.iter().all(|name| count(&events, name) >= 1), "{refused}");
    }
}

/// The reader of this project takes the kernel's trace alone, as it takes LTTng's.
#[test]
fn our_own_reader_takes_the_kernels_trace() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, ..) = record(&scratch, &["--os", "tree"], &[&os(), "sleeps", "3"]);
    let kernel = Trace::open(&trace.join("kernel")).expect("a trace");
    let mut merge = Merge::new(&kernel);
    let (mut number, mut threads) = (0, 0);
    while let Some(event) = merge.next_event() {
        let event = event.expect("an event");
        number += 1;
        if event.class().name == "sched_switch" {
            assert!(event.get("next_tid").is_some());
            threads += 1;
        }
    }
    assert_eq!(number, events(&trace).len());
    assert!(threads > 0);
}

/// What of the kernel's trace cannot be read is said, and the program's own is shown all the same.
#[test]
fn a_damaged_kernel_trace_is_named_and_the_program_shown() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, ..) = record(&scratch, &["--os", "tree"], &[&os(), "sleeps", "3"]);
    let print = || run(Command::new(hetrace()).arg("print").arg(&trace));
    assert!(!print().out.contains("<damaged"), "{}", print().out);
    let kernel = trace.join("kernel");
    for stream in std::fs::read_dir(&kernel).expect("a folder").flatten().map(|e| e.path()) {
        let mut bytes = std::fs::read(&stream).expect("a file");
        if stream.file_name().is_some_and(|name| name != "metadata") && bytes.len() > 400 {
            // Behind the header of the first packet.
            bytes[200..300].fill(0xff);
            std::fs::write(&stream, &bytes).expect("written");
        }
    }
    let (damaged, metadata) = (print(), kernel.join("metadata"));
    assert_eq!(damaged.status, 0, "{}", damaged.err);
    assert!(damaged.out.contains("<damaged: channel0_"), "{}", damaged.out);
    assert!(damaged.err.contains("damaged"), "{}", damaged.err);
    std::fs::write(&metadata, "no metadata").expect("written");
    let unreadable = print();
    assert_eq!(unreadable.status, 0, "{}", unreadable.err);
    assert!(unreadable.err.contains("kernel: left out: metadata line 1"), "{}", unreadable.err);
}

/// Analyses that others wrote for LTTng's kernel traces run on this one.
#[test]
#[ignore = "needs install-deps.sh --full"]
fn analyses_of_lttngs_traces_take_it() {
    if !has_tracepoints() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let (trace, ..) = record(&scratch, &["--os", "tree"], &[&os(), "sleeps", "200"]);
    let analysis = |name: &str| {
        let mut command = Command::new(name);
        // Else the ten that used most.
        command.args((name == "lttng-cputop-mi").then_some(["--limit", "1000000"]).iter().flatten());
        let done = run(command.arg(&trace));
        assert_eq!(done.status, 0, "{name}: {}", done.err);
        serde_json::from_str::<Value>(&done.out).unwrap_or_else(|e| panic!("{name}: {e}: {}", done.out))
    };
    let calls = analysis("lttng-syscallstats-mi");
    let rows = calls["results"][0]["data"].as_array().expect("rows");
    let naps = rows.iter().find(|row| row[0]["name"] == "clock_nanosleep").expect("naps");
    // It takes the thread that a CPU went to last for the one that calls: where the kernel has not delivered a
    // switch, that is another until the next.
    let unseen = manifest(&trace)["os"]["unseen_switches"].as_u64().expect("a number");
    let counted = naps[1]["value"].as_u64().expect("a number");
    assert!((200u64.saturating_sub(2 * unseen)..=200).contains(&counted), "{naps}, {unseen} unseen");
    let cpus = analysis("lttng-cputop-mi");
    let rows = cpus["results"][0]["data"].as_array().expect("rows");
    let program =
        events(&trace).iter().find(|e| e.name == "sched_process_exec").expect("a start").number("tid");
    assert!(rows.iter().any(|row| row[0]["tid"] == program), "{cpus}");
    for name in ["lttng-schedtop-mi", "lttng-iolatencytop-mi", "lttng-irqstats-mi"] {
        analysis(name);
    }
}
