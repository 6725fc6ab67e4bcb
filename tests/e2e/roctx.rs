//! ROCTX: what its functions return to programs, and what of their marks, ranges and names is recorded. The programs of
//! `tests/programs/roctx` call roctracer's real library, which `scripts/install-deps.sh` brings, and one that stands
//! for rocprofiler-sdk's: linked, opened late, both at once, and from Python.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::counts::manifest;
use hetrace_tests::fake_roctx::{programs, roctracer};
use hetrace_tests::{Done, hetrace, reports};
use serde_json::Value;
use tempfile::TempDir;

const ROCTRACER: &str = "libroctx64.so.4";
const SDK: &str = "librocprofiler-sdk-roctx.so.1";

/// What `all` prints where each library is, and rest that all print.
const OF_ROCTRACER: &str = "major 4\nminor 1\n";
const OF_SDK: &str =
    "name thread 0\nname agent -1\nname device 0\nname stream 0\nthread id 0\nits own 1\npause 0\nresume 0\n";
const OF_BOTH: &str = "push 0\npush 1\nother push 0\nother pop 0\nother pop of nothing -1\npop 1\npop 0\npop of nothing -1\nids 1\nerrno 77\n";

/// How a program comes to ROCTX.
struct Way {
    /// The program and its first arguments.
    line: Vec<String>,
    has_roctracer: bool,
    has_sdk: bool,
}

impl Way {
    fn new(line: &[&str], has_roctracer: bool, has_sdk: bool) -> Way {
        let mut line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        line[0] = programs().join(&line[0]).display().to_string();
        Way { line, has_roctracer, has_sdk }
    }

    /// What `all` prints.
    fn answers(&self) -> String {
        let part = |has: bool, text: &'static str| if has { text } else { "" };
        [part(self.has_roctracer, OF_ROCTRACER), part(self.has_sdk, OF_SDK), OF_BOTH].concat()
    }

    fn bare(&self, part: &[&str]) -> Done {
        run(Command::new(&self.line[0]).args(&self.line[1..]).args(part).env("LD_LIBRARY_PATH", folders()))
    }

    /// The program under `hetrace run` with these options. It must end well.
    fn traced(&self, options: &[&str], part: &[&str]) -> Ran {
        let line: Vec<&str> = self.line.iter().map(String::as_str).chain(part.iter().copied()).collect();
        Ran::new(options, &line)
    }
}

/// Where the libraries are.
fn folders() -> String {
    let folders = roctracer().into_iter().chain([programs().to_owned()]);
    folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")
}

/// All ways that this machine has.
fn ways() -> Vec<Way> {
    let mut ways = vec![Way::new(&["sdk"], false, true), Way::new(&["late", SDK], false, true)];
    if roctracer().is_some() {
        ways.push(Way::new(&["roctracer"], true, false));
        ways.push(Way::new(&["late", ROCTRACER], true, false));
        ways.push(Way::new(&["both"], true, true));
    }
    ways
}

/// A run under trace.
struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

impl Ran {
    fn new(options: &[&str], line: &[&str]) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path().join("trace");
        let mut command = Command::new(hetrace());
        command
            .args(["run", "-q", "--buffer", "8192"])
            .args(options)
            .arg("-o")
            .arg(&folder)
            .arg("--")
            .args(line);
        let done = run(command.env("LD_LIBRARY_PATH", folders()));
        assert_eq!(done.status, 0, "{line:?}: {}", done.err);
        Ran { done, folder, _scratch: scratch }
    }

    fn report(&self, arguments: &[&str]) -> String {
        reports::report(&self.folder, arguments)
    }

    fn manifest(&self) -> Value {
        manifest(&self.folder)
    }

    fn windows(&self) -> usize {
        self.manifest()["capture"]["windows"].as_array().map_or(0, Vec::len)
    }

    /// The calls as `print` shows them, without their times.
    fn calls(&self) -> Vec<String> {
        let text = self.report(&["print", "-c"]);
        text.lines().filter_map(|l| Some(l.get(l.find("roctx")?..)?.to_owned())).collect()
    }

    /// The messages of marks, in their order.
    fn marks(&self) -> Vec<String> {
        let message = |call: &String| {
            let text = call.strip_prefix("roctxMarkA(message=\"")?;
            Some(text.split('"').next()?.to_owned())
        };
        self.calls().iter().filter_map(message).collect()
    }

    fn tally(&self) -> Value {
        reports::tally(&self.folder)
    }

    /// `STYLE NAME CALLS` of all ranges, sorted.
    fn ranges(&self) -> Vec<String> {
        let tally = self.tally();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let line = |row: &Value| format!("{} {} {}", text(row, "style"), text(row, "name"), row["calls"]);
        let mut lines: Vec<String> = tally["ranges"].as_array().expect("ranges").iter().map(line).collect();
        lines.sort();
        lines
    }
}

#[test]
fn everything_returns_its_result_and_is_recorded_once() {
    let mut called = BTreeSet::new();
    for way in ways() {
        assert_eq!(way.bare(&["all"]).out, way.answers(), "{:?}", way.line);
        let ran = way.traced(&[], &["all"]);
        assert_eq!(ran.done.out, way.answers(), "{:?}", way.line);
        assert_eq!(
            ran.ranges(),
            [
                "pushed inner 1",
                "pushed other 1",
                "pushed outer 1",
                "started across threads 1",
                "started overlapping 1"
            ],
            "{:?}",
            way.line
        );
        assert_eq!(ran.marks(), ["a mark", "", "über"], "{:?}", way.line);
        let tally = ran.tally();
        let rows = tally["host"].as_array().expect("rows");
        let count = |name: &str| rows.iter().find(|row| row["name"] == name).map(|row| row["calls"].clone());
        assert_eq!(count("roctxRangePushA"), Some(4.into()), "{:?}", way.line);
        assert_eq!(count("roctxRangePop"), Some(5.into()), "{:?}", way.line);
        called.extend(rows.iter().filter_map(|row| Some(row["name"].as_str()?.to_owned())));
        let text = ran.report(&["tally"]);
        assert!(text.contains("1 range without an end: never popped"), "{text}");
        assert_eq!(text.contains("roctxNameHsaAgent"), way.has_sdk, "{text}");
    }
    let model = run(Command::new(hetrace()).args(["model", "roctx"]));
    if roctracer().is_some() {
        let functions = model.out.lines().filter_map(|line| line.split_whitespace().nth(1));
        let missed: Vec<&str> = functions.filter(|name| !called.contains(*name)).collect();
        assert_eq!(missed, ["roctxRegisterTracerCallback"], "{}", model.out);
    }
}

#[test]
fn names_and_failures_are_there() {
    let ran = Way::new(&["sdk"], false, true).traced(&[], &["all"]);
    let calls = ran.calls();
    for expected in [
        "roctxNameOsThread(name=\"main of it\") = ROCTX_SUCCESS",
        "roctxNameHsaAgent(name=\"an agent\", agent=[{handle=119}]) = ROCTX_FAILED",
        "roctxNameHipDevice(name=\"a device\", device_id=3) = ROCTX_SUCCESS",
        "roctxNameHipStream(name=\"a stream\", stream=0x",
        "roctxRangePushA(message=\"inner\") = 1",
        "roctxRangePop() = -1",
    ] {
        assert!(calls.iter().any(|call| call.starts_with(expected)), "{expected}\n{}", calls.join("\n"));
    }
    let out = ran.folder.with_extension("json");
    let done = run(Command::new(hetrace()).args(["export", "-f", "chrome", "-o"]).arg(&out).arg(&ran.folder));
    assert_eq!(done.status, 0, "{}", done.err);
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&out).expect("written")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let named: BTreeSet<&str> = events.iter().filter_map(|e| e["args"]["name"].as_str()).collect();
    assert!(named.iter().any(|name| name.contains("main of it")), "the thread that called: {named:?}");
    assert!(
        events.iter().any(|e| e["name"] == "outer") && events.iter().any(|e| e["name"] == "across threads")
    );
}

#[test]
fn ranges_by_name_are_capture_windows() {
    for way in ways() {
        for part in ["steps", "started"] {
            // Also where the ranges themselves are not recorded.
            for (options, marks) in [
                (&[][..], vec!["inside", "between", "inside"]),
                (&["--exclude", "*Range*"], vec!["inside", "between", "inside"]),
            ] {
                let options: Vec<&str> = ["--range", "step ?@1..3"].iter().chain(options).copied().collect();
                let ran = way.traced(&options, &[part]);
                assert_eq!(ran.marks(), marks, "{:?} {options:?} {part}", way.line);
                assert_eq!(ran.windows(), 1, "{:?} {part}", way.line);
            }
        }
        let ran = way.traced(&["--range", "step of a thread@0..1"], &["steps"]);
        assert_eq!(ran.marks(), ["inside"], "{:?}", way.line);
    }
}

#[test]
fn pause_and_resume_are_capture_windows() {
    for way in ways().into_iter().filter(|way| way.has_sdk) {
        let ran = way.traced(&["--on-calls"], &["paused"]);
        assert_eq!(ran.marks(), ["recorded", "recorded, too"], "{:?}", way.line);
        assert_eq!(ran.windows(), 1);
        // Without the option they say nothing.
        let ran = way.traced(&[], &["paused"]);
        assert_eq!(ran.marks(), ["before", "recorded", "recorded, too", "behind"], "{:?}", way.line);
    }
}

#[test]
fn threads_and_forked_children_have_their_own_ranges() {
    for way in ways() {
        let ran = way.traced(&[], &["threads"]);
        let expected: Vec<String> = (0..8).map(|number| format!("pushed thread {number} 100")).collect();
        assert_eq!(ran.ranges(), expected, "{:?}", way.line);
        let ran = way.traced(&[], &["fork"]);
        assert_eq!(ran.done.out, way.bare(&["fork"]).out, "{:?}", way.line);
        assert_eq!(ran.done.out, "child pop 1\nchild pop 0\nchild 0\npop 1\npop 0\n");
        assert_eq!(ran.ranges(), ["pushed after 1", "pushed before 1", "pushed child 1"], "{:?}", way.line);
    }
}

#[test]
fn what_is_not_recorded_returns_its_result_all_the_same() {
    for way in ways() {
        let ran = way.traced(&["--exclude", "roctx*"], &["all"]);
        assert_eq!((ran.done.out.clone(), ran.calls()), (way.answers(), vec![]), "{:?}", way.line);
    }
}

#[test]
fn work_of_devices_is_counted_in_ranges() {
    if roctracer().is_none() {
        return;
    }
    let ran = Way::new(&["device"], true, false).traced(&[], &["device"]);
    let tally = ran.tally();
    let rows: Vec<&Value> = tally["ranges"].as_array().expect("ranges").iter().collect();
    let steps: Vec<_> =
        rows.iter().filter(|row| row["name"].as_str().is_some_and(|n| n.starts_with("step "))).collect();
    assert_eq!(steps.len(), 12, "{rows:?}");
    assert!(steps.iter().all(|row| row["device_ns"].as_u64().is_some_and(|ns| ns > 0)), "{rows:?}");
}

#[test]
fn programs_in_python_are_traced() {
    let libraries = roctracer().map(|_| ROCTRACER).into_iter().chain([SDK]);
    for library in libraries {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/roctx/calls.py").display().to_string();
        let ran = Ran::new(&[], &["python3", &script, library]);
        assert_eq!(ran.done.out, "0 0\n0 0\n0 0\n1 -1\n", "{library}");
        let ranges = ["pushed epoch 0 1", "pushed epoch 1 1", "pushed epoch 2 1", "started whole 1"];
        assert_eq!(ran.ranges(), ranges, "{library}");
        assert_eq!(ran.marks(), ["batch"; 3]);
    }
}

/// Where none of its libraries is, and no driver of AMD's, nobody pays for it.
#[test]
fn it_stays_away_where_no_program_can_use_it() {
    let scratch = tempfile::tempdir().expect("scratch");
    let preloaded = |folders: &str| {
        let out = scratch.path().join(format!("trace{}", folders.len()));
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "-o"]).arg(&out).args(["--", "sh", "-c", "echo $LD_PRELOAD"]);
        let done = run(line.env("LD_LIBRARY_PATH", folders));
        assert_eq!(done.status, 0, "{}", done.err);
        done.out.contains("libhetrace_roctx.so")
    };
    assert!(preloaded(&folders()));
    let doctor = run(Command::new(hetrace()).args(["doctor", "--json"]).env("LD_LIBRARY_PATH", "")).out;
    let findings: Value = serde_json::from_str(&doctor).expect("JSON");
    let own = findings.as_array().expect("a list").iter().find(|f| f["what"] == "roctx").expect("a finding");
    let says = own["says"].as_str().expect("text");
    if says.contains("injected") {
        eprintln!("not tested: this machine has ROCTX: {says}");
        return;
    }
    assert!(
        says.contains("none of libroctx64.so.4, librocprofiler-sdk-roctx.so.1, ")
            && says.contains("/dev/kfd")
    );
    assert!(!preloaded(""));
}

/// AMD's own module for Python, as its users use it.
#[test]
#[ignore = "downloads AMD's module for Python"]
fn the_module_for_python_is_traced() {
    let Some(library) = roctracer() else { return };
    let scratch = tempfile::tempdir().expect("scratch");
    let pip = ["-m", "pip", "install", "-q", "--target"];
    let wanted = ["rocm-bindings-systems==10.0.0.0.1.2", "rocm-bindings-core==10.0.0.0.1.2"];
    let done = run(Command::new("python3").args(pip).arg(scratch.path()).args(wanted));
    assert_eq!(done.status, 0, "{}", done.err);
    // It wants the name that a compiler's linker does, as ROCm's own packages have it.
    let rocm = scratch.path().join("rocm");
    std::fs::create_dir_all(rocm.join("lib")).expect("a folder");
    std::os::unix::fs::symlink(library.join(ROCTRACER), rocm.join("lib/libroctx64.so")).expect("a link");
    let script = format!(
        "import sys, os; sys.path.insert(0, {:?}); os.environ['ROCM_PATH'] = {:?}\n\
         from rocm.bindings import roctx\n\
         print(roctx.roctxRangePushA(b'of the module'), roctx.roctxRangePop())",
        scratch.path().display().to_string(),
        rocm.display().to_string(),
    );
    let ran = Ran::new(&[], &["python3", "-c", &script]);
    assert_eq!(ran.ranges(), ["pushed of the module 1"], "{}", ran.done.out);
}
