//! The service: programs that were begun dormant are recorded from `start` to `stop`, and run on whatever becomes of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, fake, hetrace};
use serde_json::Value;
use tempfile::TempDir;

#[path = "service/beside.rs"]
mod beside;
#[path = "service/faults.rs"]
mod faults;
#[path = "service/noise.rs"]
mod noise;
#[path = "service/parts.rs"]
mod parts;
#[path = "service/users.rs"]
mod users;

const LAUNCH: &str = "clEnqueueNDRangeKernel";
/// A user who has nothing else to do here.
const SOMEBODY: u32 = 54_321;

/// The user who runs this.
fn user() -> u32 {
    fs::metadata("/proc/self").expect("a process").uid()
}

fn kill(pid: u32, signal: &str) {
    let done = run(Command::new("kill").args(["-s", signal, &pid.to_string()]));
    assert_eq!(done.status, 0, "{}", done.err);
}

/// There is one service of a user, so one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A service with programs that were begun dormant.
struct Bench {
    scratch: TempDir,
    user: Option<u32>,
    service: Option<Child>,
    programs: Vec<Child>,
    _one: MutexGuard<'static, ()>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().chain(&mut self.service) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Bench {
    fn new(user: Option<u32>) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = TempDir::new().expect("a scratch folder");
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).expect("its mode");
        Bench { scratch, user, service: None, programs: Vec::new(), _one: one }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.scratch.path()).stdin(Stdio::null());
        self.user.into_iter().for_each(|user| _ = command.uid(user).gid(user));
        command
    }

    fn hetrace(&self, arguments: &[&str]) -> Done {
        run(self.command(hetrace()).args(arguments))
    }

    fn well(&self, arguments: &[&str]) -> String {
        let done = self.hetrace(arguments);
        assert_eq!(done.status, 0, "{arguments:?}: {}", done.err);
        done.out + &done.err
    }

    fn serve(&mut self, options: &[&str]) {
        let child = self.command(hetrace()).arg("service").args(options).stderr(Stdio::null()).spawn();
        self.service = Some(child.expect("a service"));
        self.until("a service that answers", || self.status()["service"].is_object());
    }

    /// Ends the service by a signal, and waits until it is gone.
    fn end_service(&mut self, signal: &str) {
        let mut service = self.service.take().expect("a service");
        kill(service.id(), signal);
        service.wait().expect("its end");
    }

    fn status(&self) -> Value {
        let done = self.hetrace(&["status", "--json"]);
        assert_eq!(done.status, 0, "{}", done.err);
        serde_json::from_str(&done.out).expect("JSON")
    }

    /// Begins a program dormant, and returns its process id.
    fn dormant(&mut self, script: &[&str]) -> u32 {
        let mut command = self.command(program("windows"));
        command.args(script).stdout(Stdio::null());
        command.envs(Platform::Pocl.environment(self.scratch.path()));
        // What PoCL keeps is another user's otherwise.
        command.env("HOME", self.scratch.path()).env("POCL_CACHE_DIR", self.path("cache"));
        self.begin(command.envs(self.variables(&[])))
    }

    /// Begins a program that has the functions of a CUDA driver (a fake) from that driver, dormant.
    fn looks_up(&mut self, files: &[&str], collector: &Path) {
        let driver = fake::driver().to_str().expect("a path").to_owned();
        let variables = self.variables(&[("LD_LIBRARY_PATH", &driver)]);
        assert!(variables.iter().any(|(name, _)| name == "LD_PRELOAD"), "{variables:?}");
        let mut command = self.command(fake::program("looked_up"));
        command.args(files).stdout(Stdio::null()).envs(variables);
        command.env("FAKE_CUDA_DEVICES", "1").env("FAKE_CUDA_COUNTS", self.path("counts"));
        command.env("HETRACE_CUPTI", collector);
        self.begin(&mut command);
    }

    fn begin(&mut self, command: &mut Command) -> u32 {
        let child = command.spawn().expect("a program");
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    /// What `hetrace env` lets a shell set.
    fn variables(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let line = format!("eval \"$({} env)\"; env -0", hetrace().display());
        let done = run(self
            .command("sh")
            .args(["-c", &line])
            .env_clear()
            .envs(more.iter().copied())
            .env("PATH", std::env::var("PATH").expect("a path")));
        let pairs = done.out.split('\0').filter_map(|pair| pair.split_once('='));
        let ours = pairs.filter(|(name, _)| !["PWD", "PATH", "_", "SHLVL", "OLDPWD"].contains(name));
        ours.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(300), "no {what}: {:?}", self.status());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_for(&self, name: &str) {
        self.until(name, || self.path(name).exists());
    }

    fn go(&self, name: &str) {
        fs::write(self.path(name), "").expect("a file");
    }

    /// Waits for the programs, all of which must end well.
    fn ended(&mut self) {
        for mut child in self.programs.drain(..) {
            assert!(child.wait().expect("an end").success());
        }
    }

    fn seen(&self, trace: &str) -> Seen {
        Seen::read(&self.path(trace))
    }

    fn manifest(&self, trace: &str) -> Value {
        let text = fs::read_to_string(self.path(trace).join("hetrace/manifest.json")).expect("a manifest");
        serde_json::from_str(&text).expect("JSON")
    }
}

fn calls(seen: &Seen, function: &str) -> u64 {
    assert!(seen.damage.is_empty() && seen.disorder == 0, "{seen:?}");
    seen.total().get(function).copied().unwrap_or(0)
}

/// Whether all that a user looks at can read the trace, and finds it finished.
fn is_whole(bench: &Bench, trace: &str) {
    for command in ["check", "tally", "print"] {
        let text = bench.well(&[command, trace]);
        assert!(!text.contains("INCOMPLETE"), "{command}: {text}");
    }
}

#[test]
fn only_what_is_between_start_and_stop_is_recorded_and_not_what_is_paused() {
    let mut bench = Bench::new(None);
    // Before there is a service at all.
    bench.dormant(&[
        "launch:7",
        "touch:a1",
        "wait:1",
        "launch:20",
        "touch:a2",
        "wait:2",
        "launch:30",
        "touch:a3",
        "wait:3",
        "launch:40",
        "touch:a4",
        "wait:4",
        "launch:50",
    ]);
    bench.dormant(&["touch:b1", "wait:1", "launch:5", "touch:b2", "wait:4", "launch:3"]);
    let refused = bench.hetrace(&["start"]);
    assert!(refused.status == 125 && refused.err.contains("no service"), "{}", refused.err);
    bench.serve(&[]);
    let refused = bench.hetrace(&["stop"]);
    assert!(refused.status == 125 && refused.err.contains("hetrace start"), "{}", refused.err);
    ["a1", "b1"].iter().for_each(|name| bench.wait_for(name));
    bench.well(&["start", "-o", "trace"]);
    let refused = bench.hetrace(&["start", "-o", "other"]);
    assert!(refused.status == 125 && refused.err.contains("hetrace stop"), "{}", refused.err);
    bench.go("1");
    ["a2", "b2"].iter().for_each(|name| bench.wait_for(name));
    bench.until("two processes", || bench.status()["service"]["session"]["processes"] == 2);
    let pid = bench.programs[0].id().to_string();
    for asked in [vec!["top", "--once"], vec!["top", "--once", &pid], vec!["top", "--once", "trace"]] {
        let shown = bench.well(&asked);
        assert!(shown.contains(LAUNCH), "{asked:?}: {shown}");
    }
    let said = bench.well(&["snapshot", &pid]);
    assert!(said.contains("hetrace tally"), "{said}");
    bench.well(&["pause"]);
    assert_eq!(bench.status()["service"]["session"]["paused"], true);
    bench.go("2");
    bench.wait_for("a3");
    bench.well(&["resume"]);
    bench.go("3");
    bench.wait_for("a4");
    let said = bench.well(&["stop"]);
    assert!(said.contains("trace") && said.contains("next: hetrace tally"), "{said}");
    let refused = bench.hetrace(&["top", "--once"]);
    assert!(refused.status == 125 && refused.err.contains("no program"), "{}", refused.err);
    bench.go("4");
    bench.ended();
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 20 + 5 + 40);
    is_whole(&bench, "trace");
    let manifest = bench.manifest("trace");
    assert_eq!(manifest["stopped"], true);
    assert_eq!(manifest["processes"].as_array().map(Vec::len), Some(2));
    assert_eq!(manifest["capture"]["windows"].as_array().map(Vec::len), Some(2));
    assert_eq!(manifest["losses"]["records"], 0);
}

/// Its driver is initialized, and its context and stream are made, before anything is recorded.
#[test]
fn a_program_on_a_gpu_that_runs_is_recorded_with_its_commands() {
    for collector in [fake::driver().join("libcupti.so.13"), PathBuf::from("/nowhere")] {
        let mut bench = Bench::new(None);
        bench.looks_up(&["ready1", "go1", "ready2", "go2", "ready3", "go3"], &collector);
        bench.serve(&[]);
        for session in ["1", "2"] {
            bench.wait_for(&format!("ready{session}"));
            bench.well(&["start", "-o", session]);
            bench.go(&format!("go{session}"));
            let next = char::from(session.as_bytes()[0] + 1);
            bench.wait_for(&format!("ready{next}"));
            bench.well(&["stop"]);
            let seen = bench.seen(session);
            assert_eq!(calls(&seen, "cuLaunchKernel"), 5);
            assert_eq!(seen.commands.len(), 5, "{seen:?}");
            for command in &seen.commands {
                assert_eq!((command.kind.as_str(), command.name.as_str()), ("kernel", "k1000"));
                assert!(command.queue > 2 && command.end > command.start, "{command:?}");
            }
            let devices: Vec<&str> = seen.devices.values().map(String::as_str).collect();
            assert_eq!(devices, ["Fake Device 0"]);
            is_whole(&bench, session);
        }
        bench.go("go3");
        bench.ended();
    }
}

#[test]
fn sessions_follow_each_other_and_each_knows_the_queues_that_were_made_in_one() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "first"]);
    bench.dormant(&[
        "launch:4",
        "touch:1",
        "wait:2",
        "launch:8",
        "touch:3",
        "wait:4",
        "launch:16",
        "touch:5",
    ]);
    bench.wait_for("1");
    bench.well(&["stop"]);
    bench.go("2");
    bench.wait_for("3");
    bench.well(&["start", "-o", "second"]);
    bench.go("4");
    bench.wait_for("5");
    bench.well(&["stop"]);
    bench.ended();
    for (trace, launches) in [("first", 4), ("second", 16)] {
        let seen = bench.seen(trace);
        assert_eq!(calls(&seen, LAUNCH), launches, "{trace}");
        assert_eq!(seen.commands.len() as u64, launches, "{trace}");
        assert!(
            seen.commands.iter().all(|c| c.queue != 0 && c.end > c.start && c.name == "addone"),
            "{seen:?}"
        );
        is_whole(&bench, trace);
    }
}

#[test]
fn processes_are_selected_by_id_name_and_control_group() {
    let mut bench = Bench::new(None);
    let script = [
        "touch:ready",
        "wait:go",
        "launch:3",
        "touch:did",
        "wait:more",
        "launch:5",
        "touch:again",
        "wait:end",
    ];
    let one = |who: &str| {
        script.map(|word| {
            word.split_once(':')
                .filter(|(w, _)| *w == "touch")
                .map_or_else(|| word.to_owned(), |(w, file)| format!("{w}:{file}-{who}"))
        })
    };
    let (a, b) = (one("a"), one("b"));
    let pid = bench.dormant(&a.each_ref().map(String::as_str));
    bench.dormant(&b.each_ref().map(String::as_str));
    bench.serve(&[]);
    ["ready-a", "ready-b"].iter().for_each(|name| bench.wait_for(name));
    bench.well(&["start", "-o", "by-pid", "--pid", &pid.to_string()]);
    bench.go("go");
    ["did-a", "did-b"].iter().for_each(|name| bench.wait_for(name));
    bench.well(&["stop"]);
    let seen = bench.seen("by-pid");
    assert_eq!(calls(&seen, LAUNCH), 3, "one of two that do the same");
    assert_eq!(bench.manifest("by-pid")["processes"][0]["pid"], pid);
    // The one that was left out is asked again with each session.
    bench.well(&["start", "-o", "by-name", "--comm", "wind*", "--cgroup", "*"]);
    bench.go("more");
    ["again-a", "again-b"].iter().for_each(|name| bench.wait_for(name));
    bench.well(&["stop"]);
    assert_eq!(calls(&bench.seen("by-name"), LAUNCH), 10);
    bench.well(&["start", "-o", "nobody", "--comm", "nobody"]);
    bench.go("end");
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("no process recorded anything"), "{said}");
    let refused = bench.hetrace(&["start", "--user", "no such user"]);
    assert!(refused.status == 125 && refused.err.contains("no user"), "{}", refused.err);
}

#[test]
fn a_service_that_is_killed_and_comes_back_loses_nothing() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&[
        "launch:10",
        "touch:1",
        "wait:2",
        "launch:20",
        "touch:3",
        "wait:4",
        "launch:40",
        "touch:5",
        "wait:6",
    ]);
    bench.wait_for("1");
    let written = || bench.status()["service"]["session"]["records"].as_u64().unwrap_or(0);
    bench.until("records", || written() > 20);
    // So that what was taken from the rings is in files.
    std::thread::sleep(Duration::from_secs(1));
    bench.end_service("KILL");
    // Nobody reads: it stands in the rings.
    bench.go("2");
    bench.wait_for("3");
    assert!(bench.status()["service"].is_null());
    bench.serve(&[]);
    assert!(bench.status()["service"]["session"]["trace"].is_string(), "the session goes on");
    bench.go("4");
    bench.wait_for("5");
    bench.well(&["stop"]);
    bench.go("6");
    bench.ended();
    let seen = bench.seen("trace");
    assert_eq!(calls(&seen, LAUNCH), 70);
    let manifest = bench.manifest("trace");
    assert_eq!(manifest["losses"]["records"], 0);
    assert!(manifest["notes"].to_string().contains("another went on"), "{manifest}");
    is_whole(&bench, "trace");
}

#[test]
fn a_service_that_is_ended_finishes_the_trace_and_programs_run_on() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:10", "touch:1", "wait:2", "launch:20"]);
    bench.wait_for("1");
    bench.end_service("TERM");
    bench.go("2");
    bench.ended();
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 10);
    is_whole(&bench, "trace");
}

#[test]
fn rings_grow_while_the_service_is_held_up() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:1", "touch:1", "wait:2", "launch:5000", "touch:3"]);
    bench.wait_for("1");
    bench.until("a process", || bench.status()["service"]["session"]["processes"] == 1);
    let service = bench.service.as_ref().expect("a service").id();
    kill(service, "STOP");
    bench.go("2");
    // More than a first ring has room for; nobody reads.
    let since = Instant::now();
    while !bench.path("3").exists() {
        assert!(since.elapsed() < Duration::from_secs(300), "the program waits for nobody");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(service, "CONT");
    bench.ended();
    bench.well(&["stop"]);
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 5001);
    assert_eq!(bench.manifest("trace")["losses"]["records"], 0);
    is_whole(&bench, "trace");
}

/// Runs a script where `/dev/shm` is a memory file system of its own, of this size.
fn apart(scratch: &Path, size: &str, script: &str) -> Done {
    let mount = format!("mount -t tmpfs -o mode=1777,size={size} tmpfs /dev/shm; {script}");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &mount]).current_dir(scratch).env("HETRACE", hetrace());
    command.env("WINDOWS", program("windows")).envs(Platform::Pocl.environment(scratch));
    run(&mut command)
}

const SERVED: &str = "( ulimit -n ${FILES:-1024}; exec \"$HETRACE\" service ) 2>said & S=$!; until \"$HETRACE\" status | grep -q process; do sleep 0.05; done;";

#[test]
fn a_full_dev_shm_is_counted_and_programs_run_on() {
    let bench = Bench::new(None);
    let script = format!(
        "{SERVED} \"$HETRACE\" start -o t && eval \"$(\"$HETRACE\" env)\" && dd if=/dev/zero of=/dev/shm/fill bs=4k 2>/dev/null; \
         \"$WINDOWS\" launch:100 >out; echo $?; rm /dev/shm/fill; \"$HETRACE\" stop 2>&1; kill $S; wait $S"
    );
    let done = apart(bench.scratch.path(), "2M", &script);
    assert!(done.out.starts_with("0\n"), "the program runs: {done:?}");
    assert!(done.out.contains("not recorded") || done.out.contains("dropped"), "{done:?}");
    // No room to begin with: said, and nothing begun.
    let done = apart(bench.scratch.path(), "64k", "XDG_RUNTIME_DIR= \"$HETRACE\" service 2>&1; echo $?");
    assert!(done.out.ends_with("125\n"), "{done:?}");
}

#[test]
fn few_descriptors_are_enough() {
    let bench = Bench::new(None);
    let script = format!(
        "FILES=24; {SERVED} \"$HETRACE\" start -o t; eval \"$(\"$HETRACE\" env)\"; \
         for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \"$WINDOWS\" launch:2 >out & P=\"$P $!\"; done; \
         for p in $P; do wait $p || echo failed; done; \"$HETRACE\" stop 2>&1; kill $S; wait $S"
    );
    let done = apart(bench.scratch.path(), "256M", &script);
    assert!(
        done.status == 0 && !done.out.contains("failed") && done.out.contains("of 20 processes"),
        "{done:?}"
    );
    let seen = bench.seen("t");
    assert_eq!(calls(&seen, LAUNCH), 40);
}

#[test]
fn a_full_disk_is_said_and_programs_run_on() {
    let bench = Bench::new(None);
    let script = format!(
        "mkdir disk; mount -t tmpfs -o size=1M tmpfs disk; {SERVED} \"$HETRACE\" start -o disk/t; \
         eval \"$(\"$HETRACE\" env)\"; dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null; \
         \"$WINDOWS\" launch:3000 >out; echo $?; \"$HETRACE\" stop 2>&1; rm disk/fill; kill $S; wait $S"
    );
    let done = apart(bench.scratch.path(), "256M", &script);
    assert!(done.out.starts_with("0\n"), "{done:?}");
    assert!(done.out.contains("could not be written"), "{done:?}");
}

#[test]
fn users_are_kept_apart() {
    assert_eq!(user(), 0, "this test needs root, to be somebody else");
    let mut bench = Bench::new(Some(SOMEBODY));
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:6", "touch:1"]);
    bench.wait_for("1");
    bench.ended();
    let own = PathBuf::from(format!("/dev/shm/hetrace-{SOMEBODY}"));
    let mode = |path: &Path| {
        path.symlink_metadata().map(|m| (m.uid(), m.permissions().mode() & 0o777)).expect("a file")
    };
    assert_eq!(mode(&own), (SOMEBODY, 0o700));
    for standby in fs::read_dir(&own).expect("a folder").flatten() {
        assert_eq!(mode(&standby.path()), (SOMEBODY, 0o700));
        for file in fs::read_dir(standby.path()).expect("a folder").flatten() {
            // What the service publishes they only read.
            let expected = if file.file_name() == "control" { 0o400 } else { 0o600 };
            assert_eq!(mode(&file.path()), (SOMEBODY, expected), "{file:?}");
        }
    }
    // Root has no service, and asks each user what the user's own does.
    let status = run(Command::new(hetrace()).args(["status", "--json"]));
    let status: Value = serde_json::from_str(&status.out).expect("JSON");
    assert!(status["service"].is_null(), "{status}");
    assert!(status["users"][SOMEBODY.to_string()]["service"]["session"].is_object(), "{status}");
    bench.well(&["stop"]);
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 6);
    is_whole(&bench, "trace");
    bench.end_service("TERM");
    let _ = fs::remove_dir_all(own);
}

#[test]
fn a_limit_of_disk_pauses_and_says_so() {
    let mut bench = Bench::new(None);
    bench.serve(&["--max-disk", "20K"]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:2000", "touch:1", "wait:2", "launch:1000", "touch:3"]);
    bench.wait_for("1");
    bench.until("limit", || bench.status()["service"]["session"]["limit"].is_string());
    bench.go("2");
    bench.wait_for("3");
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("limit of 20480 bytes"), "{said}");
    let launches = calls(&bench.seen("trace"), LAUNCH);
    assert!((1..=2000).contains(&launches), "{launches}: nothing of what came behind the limit");
}

#[test]
fn a_limit_of_memory_drops_and_counts() {
    let mut bench = Bench::new(None);
    // No room for a thread's ring.
    bench.serve(&["--max-memory", "4K"]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:50", "touch:1"]);
    bench.wait_for("1");
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("dropped"), "{said}");
    let lost = &bench.manifest("trace")["losses"]["calls_without_ring"];
    assert!(lost.as_u64() > Some(50), "{lost}");
}

#[test]
fn noise_in_shared_memory_and_stopped_processes_spoil_only_their_own() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    let stopped = bench.dormant(&["launch:9", "touch:a1", "wait:2"]);
    let spoilt = bench.dormant(&["launch:9", "touch:b1", "wait:2"]);
    ["a1", "b1"].iter().for_each(|name| bench.wait_for(name));
    kill(stopped, "STOP");
    let standby = PathBuf::from(format!("/dev/shm/hetrace-{}", user()));
    let arenas: Vec<PathBuf> =
        walk(&standby).into_iter().filter(|p| p.to_string_lossy().contains(&format!("-{spoilt}-"))).collect();
    assert!(!arenas.is_empty(), "the other program's arena");
    for arena in arenas {
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(arena).expect("an arena");
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .take(200 << 10)
        .collect();
        // Behind the directory: headers of rings, and their content.
        file.write_all_at(&noise, 17 * 4096).expect("noise");
    }
    bench.until("a look at it", || bench.status()["service"].is_object());
    std::thread::sleep(Duration::from_millis(500));
    bench.well(&["stop"]);
    let seen = Seen::read(&bench.path("trace"));
    let sound = seen.calls.values().filter(|calls| calls.get(LAUNCH) == Some(&9)).count();
    assert!(sound >= 1, "{seen:?}");
    kill(stopped, "CONT");
    bench.go("2");
    let codes: Vec<bool> =
        bench.programs.drain(..).map(|mut c| c.wait().expect("an end").success()).collect();
    assert!(codes[0], "the stopped one goes on");
    assert!(bench.status()["service"].is_object(), "the service lives");
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.flat_map(|e| if e.path().is_dir() { walk(&e.path()) } else { vec![e.path()] }).collect()
}

#[test]
fn what_is_installed_is_removed_and_nothing_else() {
    let root = TempDir::new().expect("a root");
    let at = root.path().display().to_string();
    let system = |what: &str| run(Command::new(hetrace()).args(["system", what, "--root", &at]));
    assert_eq!(system("remove").status, 0, "nothing to do is no failure");
    assert_eq!(system("install").status, 0);
    assert_eq!(system("install").status, 0, "twice is once");
    let shell = root.path().join("etc/profile.d/hetrace.sh");
    let unit = root.path().join("etc/systemd/user/hetrace.service");
    let text = fs::read_to_string(&unit).expect("a unit");
    assert!(
        text.contains(&format!("ExecStart={} service", hetrace().canonicalize().expect("a path").display())),
        "{text}"
    );
    assert_eq!(shell.metadata().expect("a file").permissions().mode() & 0o777, 0o644);
    // What a user's manager asks for its environment.
    let generator = root.path().join("etc/systemd/user-environment-generators/60-hetrace");
    let said = run(&mut Command::new(&generator));
    assert!(said.status == 0 && said.err.is_empty(), "{said:?}");
    let is_line = |line: &str| {
        line.split_once("=\"").is_some_and(|(name, value)| {
            name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                && value.ends_with('"')
        })
    };
    assert!(said.out.lines().all(is_line) && said.out.contains("HETRACE_SESSION=\"/"), "{}", said.out);
    // It does what it says: a shell that reads it has the variables.
    let line = format!(". {}; echo \"$HETRACE_SESSION\"", shell.display());
    let said = run(Command::new("sh").args(["-c", &line]));
    assert!(said.out.contains("/standby-"), "{said:?}");
    fs::write(&shell, "changed").expect("a change");
    let done = system("remove");
    assert!(done.status == 125 && done.err.contains("changed"), "{}", done.err);
    assert!(shell.exists() && !unit.exists() && !generator.exists());
    let done = system("install");
    assert!(done.status == 125 && !unit.exists(), "all or nothing: {}", done.err);
    assert_eq!(fs::read_to_string(&shell).expect("a file"), "changed");
    fs::remove_file(&shell).expect("a file");
    std::os::unix::fs::symlink("/dev/null", &shell).expect("a link");
    assert_eq!(system("install").status, 125, "never through a link");
}
