//! Programs of several processes that use CUDA: workers, children of children, daemons;
//! and real runtimes, as far as they go on a driver that is none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hetrace_tests::counts::{complete, manifest};
use hetrace_tests::{Done, Expected, Seen, fake, hetrace};
use serde_json::Value;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/processes/cuda_processes.py");

/// Nothing, events, a collector: each has its own way with processes.
const SOURCES: [&str; 3] = ["off", "events", "auto"];

/// A run of `tests/programs/processes/cuda_processes.py` under trace.
struct Run {
    done: Done,
    scratch: TempDir,
}

fn script(source: &str, arguments: &[&str]) -> Run {
    python(source, &[&[SCRIPT], arguments].concat())
}

fn python(source: &str, arguments: &[&str]) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let mut line = Command::new(hetrace());
    line.args(["run", "--buffer", "8192", "--device-times", source, "-o"]).arg(scratch.path().join("trace"));
    line.args(["--", "python3"]).args(arguments).current_dir(scratch.path());
    line.env("LD_LIBRARY_PATH", fake::driver()).env_remove("PYTHONPATH");
    line.env("HETRACE_CUPTI", fake::driver().join("libcupti.so.13"));
    let done = hetrace_tests::bed::run(&mut line);
    assert_eq!(done.status, 0, "{source} {arguments:?}: {}{}", done.out, done.err);
    Run { done, scratch }
}

impl Run {
    fn trace(&self) -> PathBuf {
        self.scratch.path().join("trace")
    }

    /// Every call of every process is there, and every kernel that ran.
    fn check(&self, source: &str, what: &[&str]) -> Seen {
        if let Err(error) = complete(&self.trace(), &self.done.out) {
            panic!("{source} {what:?}: {error}\n{}", self.done.err);
        }
        let seen = Seen::read(&self.trace());
        let total = Expected::parse(&self.done.out).total();
        let launched = total["cuLaunchKernel"] - failed(&self.done.out);
        let kernels = seen.commands.iter().filter(|c| c.kind == "kernel").count() as u64;
        let losses = &manifest(&self.trace())["losses"];
        let count = |name: &str| losses[name].as_u64().expect("a count");
        let (lost, in_flight) = (count("device_commands"), count("commands_in_flight"));
        match (source, ends_well(what)) {
            ("off", _) => assert_eq!(kernels + lost + in_flight, 0, "{what:?}"),
            // What the collector still had is gone, but not silently.
            ("auto", false) => assert_eq!(kernels + lost + in_flight, launched, "{what:?}"),
            _ => {
                assert_eq!(kernels + lost + in_flight, launched, "{source} {what:?}");
                // Nobody waits for ever at the end, and machines for tests are busy.
                assert!(in_flight <= launched / 10, "{source} {what:?}: {in_flight} of {launched}");
            }
        }
        seen
    }
}

/// Whether all processes end by themselves, be it by `_exit`, as forked workers of Python
/// do, or by becoming another program; and before the trace does.
fn ends_well(what: &[&str]) -> bool {
    !matches!(what[0], "killed" | "daemon")
}

/// Launches that the driver has refused, as the program says.
fn failed(out: &str) -> u64 {
    out.lines().filter_map(|l| l.strip_prefix("refused ")).map(|n| n.parse::<u64>().expect("a count")).sum()
}

fn each_source(what: &[&str], processes: usize) {
    for source in SOURCES {
        let run = script(source, what);
        let seen = run.check(source, what);
        assert_eq!(seen.calls.len(), processes, "{source} {what:?}");
    }
}

#[test]
fn workers_that_are_forked_before_anybody_uses_cuda() {
    each_source(&["fork_first"], 5);
}

#[test]
fn a_child_that_goes_on_with_its_parents_cuda_gets_errors_and_no_more() {
    each_source(&["fork_after"], 2);
}

#[test]
fn pools_of_workers() {
    for how in ["fork", "spawn", "forkserver"] {
        for source in ["events", "auto"] {
            let seen = script(source, &[how]).check(source, &[how]);
            // Which of them got work is not ours to say.
            assert!((1..=3).contains(&seen.calls.len()), "{how}: {}", seen.calls.len());
        }
    }
}

#[test]
fn processes_that_start_processes_through_shells() {
    each_source(&["chain", "3"], 4);
}

#[test]
fn a_process_that_goes_on_as_another_program() {
    each_source(&["replaced"], 1);
}

/// What must be so after an `exec` that fails: all goes on, and `errno` is its own. Then
/// a signal handler ends the process.
#[test]
fn a_process_that_fails_to_become_another() {
    let program = "import errno, os, signal, sys
sys.path.insert(0, sys.argv[1])
from cuda_processes import Work, say
work = Work().start()
for end in (os.execv, os.execvp, lambda *a: os.execve(*a, {}), lambda *a: os.execvpe(*a, {})):
    work.launch(5).wait()
    try:
        end('/no/such/program', ['x', 'y'])
    except OSError as error:
        assert error.errno == errno.ENOENT, error
work.launch(5).wait()
say(work.summary())
signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))
os.kill(os.getpid(), signal.SIGUSR1)
signal.pause()";
    let folder = Path::new(SCRIPT).parent().expect("a folder").display().to_string();
    for source in SOURCES {
        let run = python(source, &["-c", program, &folder]);
        run.check(source, &["fails"]);
    }
}

#[test]
fn fifty_short_lives() {
    each_source(&["fifty"], 50);
}

#[test]
fn a_child_that_is_killed() {
    each_source(&["killed"], 1);
}

#[test]
fn two_processes_with_the_same_id() {
    let run = script("events", &["same_id"]);
    // Only an administrator may choose ids; then nobody else must have got it first.
    run.check("events", &["same_id"]);
    let known = ["the same id", "another id", "not allowed"];
    assert!(known.iter().any(|k| run.done.out.contains(k)), "{}", run.done.out);
}

/// Nothing of ours reaches a process that is started without its parent's environment:
/// it must run as ever, and what its parent did must be there.
#[test]
fn a_process_without_its_parents_environment() {
    let run = script("events", &["cleared"]);
    let called = Expected::parse(&run.done.out);
    assert_eq!(called.0.len(), 2, "both have run: {}", run.done.out);
    let seen = Seen::read(&run.trace());
    assert!(seen.damage.is_empty(), "{:?}", seen.damage);
    let whole = called.0.iter().filter(|(pid, calls)| seen.calls.get(pid) == Some(calls)).count();
    assert!(whole >= 1 && whole == seen.calls.len(), "{:?}, recorded {:?}", called.0, seen.calls);
}

/// The trace ends with the program that was launched; who stays behind goes on untouched.
#[test]
fn a_daemon_outlives_its_trace() {
    for source in SOURCES {
        let shared = TempDir::new().expect("a scratch folder");
        let (go, done) = (shared.path().join("go"), shared.path().join("done"));
        let text = |path: &Path| path.display().to_string();
        let run = script(source, &["daemon", &text(&go), &text(&done)]);
        run.check(source, &["daemon"]);
        std::fs::write(&go, "").expect("a file");
        let started = Instant::now();
        while !done.exists() {
            assert!(started.elapsed() < Duration::from_secs(600), "{source}: the daemon has died");
            std::thread::sleep(Duration::from_millis(5));
        }
        let later = Expected::parse(&std::fs::read_to_string(&done).expect("its words")).total();
        assert_eq!(later["cuLaunchKernel"], 1010, "{source}");
    }
}

/// What each layer takes, and by which calls kernels came to the device.
#[test]
fn layers_of_a_runtime_and_its_driver() {
    let scratch = TempDir::new().expect("a scratch folder");
    let trace = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "--device-times", "events", "-o"]).arg(&trace);
    line.arg("--").arg(fake::program("layers")).env("LD_LIBRARY_PATH", fake::with_runtime());
    let done = hetrace_tests::bed::run(&mut line);
    assert_eq!((done.status, done.out.as_str()), (0, "result 0\n"), "{}", done.err);
    let tally = |by: &str| {
        let mut line = Command::new(hetrace());
        let done = hetrace_tests::bed::run(line.args(["tally", "--json", "--by", by]).arg(&trace));
        assert_eq!(done.status, 0, "{}", done.err);
        serde_json::from_str::<Value>(&done.out).expect("JSON")
    };
    let rows = |tally: &Value, table: &str, key: &str| -> BTreeMap<String, u64> {
        let rows = tally[table].as_array().expect("rows").iter();
        rows.map(|row| (row[key].as_str().unwrap_or("").to_owned(), row["calls"].as_u64().unwrap_or(0)))
            .collect()
    };
    let of = |all: &[(&str, u64)]| all.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let by_layer = tally("layer");
    let expected = of(&[("cuda", 15), ("cudart", 31), ("cudart > cuda", 61)]);
    assert_eq!(rows(&by_layer, "host", "layer"), expected, "{by_layer:#}");
    let expected = of(&[("cuLaunchKernel", 10), ("cudaLaunchKernel > cuLaunchKernel", 30)]);
    assert_eq!(rows(&by_layer, "device", "layer"), expected, "{by_layer:#}");
    // The taxes of the layers are all the time there was in calls.
    let sum = |tally: &Value, member: &str| -> u64 {
        tally["host"].as_array().expect("rows").iter().filter_map(|row| row[member].as_u64()).sum()
    };
    assert_eq!(sum(&by_layer, "self_ns"), sum(&tally("name"), "self_ns"));
}

/// Wheels with runtimes: versions that differ in what they ask the driver for.
const WHEELS: [(&str, &str); 2] = [
    ("nvidia-cuda-runtime-cu12==12.9.79", "libcudart.so.12"),
    ("nvidia-cuda-runtime==13.0.96", "libcudart.so.13"),
];

/// The folders with the libraries of the wheels, unpacked.
fn runtimes(scratch: &Path) -> Vec<PathBuf> {
    let unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    let good = |command: &mut Command| {
        let done = hetrace_tests::bed::run(command);
        assert_eq!(done.status, 0, "{command:?} (needs pip and a network): {}{}", done.out, done.err);
        done.out
    };
    let folder = |(wheel, library): &(&str, &str)| {
        let at = scratch.join(format!("wheel-{library}"));
        let pip = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d"];
        good(Command::new("python3").args(pip).arg(&at).arg(wheel));
        let file =
            std::fs::read_dir(&at).expect("a folder").next().expect("a wheel").expect("an entry").path();
        good(Command::new("python3").args(["-c", unpack]).arg(file).arg(&at));
        let found = good(Command::new("find").arg(&at).args(["-name", library, "-type", "f"]));
        Path::new(found.trim()).parent().expect("a folder").to_owned()
    };
    WHEELS.iter().map(folder).collect()
}

/// Runs a program on the fake driver, bare and under trace: the same answers, and exactly
/// the calls that the driver has counted.
fn on_a_fake_driver(program: &Path, arguments: &[String]) -> (Done, Seen) {
    let scratch = TempDir::new().expect("a scratch folder");
    let with = |command: &mut Command| {
        command.env("LD_LIBRARY_PATH", fake::driver()).env("FAKE_CUDA_COUNTS", scratch.path().join("counts"));
        hetrace_tests::bed::run(command)
    };
    let bare = with(Command::new(program).args(arguments));
    assert_eq!(bare.status, 0, "{program:?}: {}{}", bare.out, bare.err);
    let trace = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "--buffer", "8192", "--device-times", "off", "-o"]).arg(&trace);
    let traced = with(line.arg("--").arg(program).args(arguments));
    assert_eq!((traced.status, &traced.out), (bare.status, &bare.out), "{}", traced.err);
    let seen = Seen::read(&trace);
    assert!(seen.damage.is_empty() && seen.discarded == 0, "{:?}", seen.damage);
    let total = seen.total();
    // What the driver has counted; a runtime that gives up closes it, and the bare
    // program's counts would be those since it was opened last.
    let path = scratch.path().join(format!("counts.{}", seen.calls.keys().next().expect("a process")));
    let text = std::fs::read_to_string(path).expect("counts");
    let pairs = text.lines().filter_map(|l| l.split_once(' '));
    // The tracer asks for the texts of errors, too.
    let pairs = pairs.filter(|(name, _)| !name.starts_with("misuse") && *name != "cuGetErrorString");
    for (name, count) in pairs {
        assert_eq!(total.get(name).map(u64::to_string).as_deref(), Some(count), "{name}");
    }
    (traced, seen)
}

/// Real runtimes go as far as reading the driver's version, `cuInit`, and looking up some 400
/// functions. Then they ask `cuGetExportTable` for private tables, one of which has to
/// prove that the driver is NVIDIA's own; here they get none, and every call that needs a
/// device returns an error from then on. What is behind that, only a real driver can show
/// (tests/h200).
#[test]
#[ignore = "downloads two wheels; `cargo xtask test --full`"]
fn real_runtimes_on_a_driver_that_is_none() {
    let scratch = TempDir::new().expect("a scratch folder");
    let folders = runtimes(scratch.path());
    let script = Path::new(SCRIPT).with_file_name("runtimes.py").display().to_string();
    let mut arguments = vec![script];
    arguments.extend(folders.iter().zip(WHEELS).map(|(f, (_, name))| f.join(name).display().to_string()));
    let (done, seen) = on_a_fake_driver(Path::new("python3"), &arguments);
    assert!(done.out.contains("named symbol not found"), "{}", done.out);
    let total = seen.total();
    for (name, count) in Expected::parse(&done.out).total() {
        assert_eq!(total.get(&name), Some(&count), "{name}");
    }
    for folder in folders {
        let program = scratch.path().join("static_runtime");
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(Path::new(SCRIPT).with_file_name("static_runtime.c"));
        cc.arg(folder.join("libcudart_static.a"));
        // Older ones keep a part of it in a library of its own.
        cc.args(["libculibos.a"].iter().map(|n| folder.join(n)).filter(|p| p.exists()));
        let done = hetrace_tests::bed::run(cc.args(["-ldl", "-lrt", "-lpthread"]));
        assert_eq!(done.status, 0, "{}", done.err);
        let (done, _) = on_a_fake_driver(&program, &[]);
        assert!(done.out.contains("malloc 500 named symbol not found, then 500"), "{}", done.out);
    }
}
