//! An API is one folder: `tests/invented/gizmo` is all that is added to the tree. Recorded with
//! OpenCL in one process, and with CUDA's driver, everything is distinguished, though handles are
//! equal and one function has a name of CUDA's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Trace;
use hetrace_tests::bed::run;
use hetrace_tests::invented::{NAME, built, xtask};
use hetrace_tests::seen::Command as OnDevice;
use hetrace_tests::{Done, Platform, Seen, fake};
use tempfile::TempDir;

#[test]
fn the_folder_is_made_by_the_tools_of_the_tree() {
    for arguments in [&["extract", NAME, "--check"][..], &["model", NAME], &["codegen", NAME, "--check"]] {
        let done = xtask(arguments);
        assert_eq!(done.status, 0, "{arguments:?}: {}{}", done.out, done.err);
    }
}

#[test]
fn nothing_else_in_the_tree_knows_it() {
    fn search(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                search(&path, found);
            } else if std::fs::read_to_string(&path).is_ok_and(|t| t.to_lowercase().contains(NAME)) {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root");
    let mut found = Vec::new();
    for folder in ["apis", "crates", "xtask"] {
        search(&root.join(folder), &mut found);
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the workspace");
    assert!(found.is_empty() && !manifest.contains(NAME), "{found:?}");
}

/// A run of the program under trace.
struct Run {
    done: Done,
    scratch: TempDir,
}

impl Run {
    fn new(arguments: &[&str]) -> Run {
        let scratch = TempDir::new().expect("a scratch folder");
        let mut libraries = built().library.display().to_string();
        let mut line = Command::new(&built().hetrace);
        line.args(["run", "--buffer", "8192", "-o"]).arg(scratch.path().join("trace"));
        if arguments.contains(&"cuda") {
            // CUDA's library of ours comes first in the global scope.
            libraries = format!("{libraries}:{}", fake::driver().display());
            line.args(["--device-times", "events"]).env("FAKE_CUDA_DEVICES", "2");
        }
        line.arg("--").arg(&built().program).args(arguments);
        line.envs(Platform::Pocl.environment(scratch.path())).env("LD_LIBRARY_PATH", libraries);
        let done = run(&mut line);
        assert_eq!(done.status, 0, "{}", done.err);
        Run { done, scratch }
    }

    fn trace(&self) -> PathBuf {
        self.scratch.path().join("trace")
    }

    /// What a report says of the trace.
    fn report(&self, arguments: &[&str]) -> String {
        let (command, rest) = arguments.split_first().expect("a command");
        let done = run(Command::new(&built().hetrace).arg(command).arg(self.trace()).args(rest));
        assert_eq!(done.status, 0, "{arguments:?}: {}", done.err);
        done.out
    }

    /// Calls by API and function, as the program counted them.
    fn counted(&self) -> BTreeMap<String, u64> {
        let line = self.done.out.lines().find_map(|l| l.strip_prefix("EXPECT ")).expect("counts");
        let pairs = line.split(' ').filter_map(|p| p.split_once('='));
        let full = |name: &str| if name.contains(':') { name.into() } else { format!("opencl:{name}") };
        pairs.map(|(name, count)| (full(name), count.parse().expect("a number"))).collect()
    }

    /// The same, as the trace has them; also of functions that the model does not have.
    fn recorded(&self) -> BTreeMap<String, u64> {
        let trace = Trace::open(&self.trace()).expect("a trace that opens");
        let mut calls = BTreeMap::new();
        for mut stream in trace.streams() {
            while let Some(event) = stream.next_event() {
                let event = event.expect("an event");
                let name = event.class().name.as_str();
                let count = event.get("count").and_then(Scalar::as_u64).unwrap_or(0);
                let (function, count) = if let Some(function) = name.strip_suffix("_entry") {
                    (function.to_owned(), 1)
                } else if let Some(function) = name.strip_suffix("_fold") {
                    (function.to_owned(), count)
                } else if let (Some(api), Some(Scalar::Str(name))) =
                    (name.strip_suffix(":unknown"), event.get("name"))
                {
                    (format!("{api}:{name}"), 1)
                } else {
                    continue;
                };
                *calls.entry(function).or_default() += count;
            }
        }
        calls
    }

    /// What the program says of each command of a device, in order.
    fn ran(&self, device: &str) -> Vec<BTreeMap<String, String>> {
        let lines = self.done.out.lines().filter_map(|l| l.strip_prefix("RAN "));
        let pairs = |line: &str| {
            let pairs = line.split(' ').filter_map(|p| p.split_once('='));
            pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<BTreeMap<_, _>>()
        };
        lines.map(pairs).filter(|c| c["device"] == device).collect()
    }
}

/// Commands of a device by its name, as the trace has them, in the order of their starts.
fn commands<'s>(seen: &'s Seen, device: &str) -> Vec<&'s OnDevice> {
    let mut commands: Vec<_> = seen.commands.iter().filter(|c| c.device_name == device).collect();
    commands.sort_by_key(|c| c.start);
    commands
}

/// Whether the commands of an invented device are those that the program says have run.
fn check_device(run: &Run, seen: &Seen, letter: &str, unseen: usize) {
    let (said, commands) = (run.ran(letter), commands(seen, &format!("Gizmo {letter}")));
    assert_eq!(commands.len(), said.len() + unseen, "device {letter}");
    for (said, command) in said.iter().zip(&commands) {
        let name = if said["kernel"] == "-" { "" } else { &said["kernel"] };
        assert_eq!((command.kind.as_str(), command.name.as_str()), (said["kind"].as_str(), name), "{said:?}");
        assert_eq!(command.bytes.to_string(), said["bytes"], "{said:?}");
        // The clocks go apart by less than a ten-thousandth, and are compared to within so much.
        let near = |here: u64, there: &str| {
            let there: u64 = there.parse().expect("a number");
            here.abs_diff(there) <= there / 5_000 + 2_000
        };
        assert!(near(command.end - command.start, &said["took"]), "{command:?} {said:?}");
        assert!(near(command.start - command.queued, &said["waited"]), "{command:?} {said:?}");
    }
}

/// Whether each command was enqueued by a call of its own API, and none before its call.
fn check_causes(seen: &Seen) {
    let all: BTreeMap<u64, &str> =
        seen.entries.values().flatten().map(|(time, name)| (*time, name.as_str())).collect();
    for command in &seen.commands {
        let call = all.get(&command.cause).unwrap_or_else(|| panic!("no call: {command:?}"));
        let invented = command.device_name.starts_with("Gizmo");
        assert_eq!(call.starts_with("gizmo"), invented, "{call} {command:?}");
        let fits = match command.kind.as_str() {
            "kernel" => call.ends_with("Run") || call.ends_with("NDRangeKernel"),
            "read" => call.contains("Read"),
            "write" => call.contains("Write"),
            _ => false,
        };
        assert!(fits && command.start + 100_000 >= command.cause, "{call} {command:?}");
    }
}

fn check(arguments: &[&str]) -> Run {
    let run = Run::new(arguments);
    assert_eq!(run.recorded(), run.counted());
    let seen = Seen::read(&run.trace());
    assert!(seen.damage.is_empty() && seen.disorder == 0 && seen.discarded == 0, "{seen:?}");
    check_device(&run, &seen, "A", 100);
    check_device(&run, &seen, "B", 0);
    check_causes(&seen);
    let others: Vec<_> = seen.commands.iter().filter(|c| !c.device_name.starts_with("Gizmo")).collect();
    let kernels = others.iter().filter(|c| c.name == "twice").count();
    assert_eq!((others.len(), kernels), (10, 8), "{others:?}");
    // The handles are equal indeed.
    let handles = |name: &str| {
        let of = seen.commands.iter().find(|c| c.name == name).expect("a command");
        (of.queue, of.device)
    };
    assert_eq!(handles("spin"), handles("twice"));
    run
}

#[test]
fn recorded_with_opencl_everything_is_distinguished() {
    let run = check(&[]);
    let tally = run.report(&["tally"]);
    let rows = ["gizmoRun ", "clFinish ", "spin ", "turn ", "twice ", "gizmoQueueFinish "];
    for row in rows {
        assert!(tally.lines().any(|l| l.starts_with(row)), "{row}: {tally}");
    }
    assert!(tally.contains("Gizmo API calls") && tally.contains("OpenCL API calls"), "{tally}");
    assert!(tally.contains("gizmoTune (7 calls)"), "{tally}");
    assert!(tally.contains("GIZMO_INVALID_HANDLE") && tally.contains("no such object"), "{tally}");
    assert!(tally.contains("Device commands | 3 devices | 3 queues"), "{tally}");
    // Of memory on devices with equal handles, too.
    let memory = tally.lines().skip_while(|l| !l.starts_with("Memory | ")).take_while(|l| !l.is_empty());
    let (invented, opencl): (Vec<_>, Vec<_>) = memory
        .skip(3)
        .map(|l| l.split('|').map(str::trim).collect::<Vec<_>>())
        .partition(|l| l[0] == "Gizmo A");
    let peaks = |rows: &[Vec<&str>]| rows.iter().map(|row| row[2].to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (peaks(&invented), peaks(&opencl)),
        (vec!["4.10 kB".into()], vec!["1.02 kB".into()]),
        "{tally}"
    );
    let print = run.report(&["print"]);
    for part in ["gizmo queue 0x", ": kernel spin(", "opencl queue 0x", ": kernel twice(", " gizmoRun(queue="]
    {
        assert!(print.contains(part), "{part}: {print}");
    }
    let timeline = run.scratch.path().join("timeline");
    run.report(&["timeline", "-o", &timeline.display().to_string()]);
    let bytes = std::fs::read(&timeline).expect("a timeline");
    let text = String::from_utf8_lossy(&bytes);
    for name in ["Gizmo A", "Gizmo B", "spin", "turn", "twice", "gizmoTune"] {
        assert!(text.contains(name), "the timeline lacks {name}");
    }
}

#[test]
fn a_name_that_cuda_has_too_goes_where_it_is_meant_to() {
    let run = check(&["cuda"]);
    let recorded = run.recorded();
    assert_eq!((recorded["cuda:cuCtxSynchronize"], recorded["gizmo:cuCtxSynchronize"]), (3, 8));
    let tally = run.report(&["tally"]);
    assert_eq!(tally.lines().filter(|l| l.starts_with("cuCtxSynchronize ")).count(), 2, "{tally}");
    let print = run.report(&["print"]);
    let lines = |part| print.lines().filter(|l| l.contains(part)).count();
    assert_eq!(
        (lines(" cuda:cuCtxSynchronize()"), lines(" gizmo:cuCtxSynchronize(queue=")),
        (3, 8),
        "{print}"
    );
    assert!(!run.done.err.contains("several copies"), "{}", run.done.err);
}
