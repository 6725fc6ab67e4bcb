//! ITT: what its functions return to programs, and what of their tasks, regions, frames, counters and names is
//! recorded. `tests/programs/itt_calls.py` calls all of them by a real static part of ITT: that inside Intel's module
//! for Python, which `scripts/install-deps.sh` brings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::counts::manifest;
use hetrace_tests::{Done, hetrace, reports};
use serde_json::Value;

/// The Python that has the module. Without one the test ends there, and says so.
fn python() -> Option<PathBuf> {
    let installed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python/bin/python"));
    let python = std::env::var_os("HETRACE_PYTHON").map_or_else(|| installed.to_owned(), PathBuf::from);
    let has =
        Command::new(&python).args(["-c", "import ittapi"]).output().is_ok_and(|done| done.status.success());
    if !has {
        eprintln!("not tested: {} has no module ittapi (scripts/install-deps.sh)", python.display());
    }
    has.then_some(python)
}

/// A part of the program, or all of it, under `hetrace run` with these options.
struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: tempfile::TempDir,
}

fn traced(options: &[&str], part: &[&str]) -> Option<Ran> {
    let python = python()?;
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q"]).args(options).arg("-o").arg(&folder).arg("--").arg(python);
    let done = run(line.arg(program("itt_calls.py")).args(part).env_remove("INTEL_LIBITTNOTIFY64"));
    assert_eq!(done.status, 0, "{}", done.err);
    Some(Ran { done, folder, _scratch: scratch })
}

impl Ran {
    fn report(&self, arguments: &[&str]) -> String {
        reports::report(&self.folder, arguments)
    }

    fn manifest(&self) -> Value {
        manifest(&self.folder)
    }

    /// The calls as `print` shows them, without their times.
    fn calls(&self) -> Vec<String> {
        let text = self.report(&["print", "-c"]);
        text.lines().filter_map(|l| Some(l.get(l.find("__itt_")?..)?.to_owned())).collect()
    }

    /// Rows of a table of the tally.
    fn rows(&self, table: &str) -> Vec<Value> {
        let tally: Value = serde_json::from_str(&self.report(&["tally", "--json"])).expect("JSON");
        tally[table].as_array().unwrap_or_else(|| panic!("{table} in {tally}")).clone()
    }

    /// `DOMAIN NAME CALLS` of all ranges, sorted.
    fn ranges(&self) -> Vec<String> {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let line = |row: &Value| format!("{} {} {}", text(row, "domain"), text(row, "name"), row["calls"]);
        let mut lines: Vec<String> = self.rows("ranges").iter().map(line).collect();
        lines.sort();
        lines
    }
}

/// What every run of the whole program prints.
const RESULTS: &str =
    "known b'app'\nsame True True True\nlate True True\nevent True 0 0\nmark True 0\ntime True\nerrno 77\n";

#[test]
fn everything_returns_its_result_and_is_recorded() {
    let Some(ran) = traced(&[], &[]) else { return };
    assert_eq!(ran.done.out, RESULTS);
    let model = run(Command::new(hetrace()).args(["model", "itt"]));
    let functions = model.out.split_whitespace().filter(|w| w.starts_with("__itt_")).collect::<BTreeSet<_>>();
    let calls = ran.rows("host");
    let called: BTreeSet<&str> = calls.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(called, functions, "every function of the model is called, by the static part's own list");
    assert!(functions.len() > 80, "{}", model.out);
    let count = |name: &str| calls.iter().find(|row| row["name"] == name).map(|row| row["calls"].clone());
    // Those of the group `fsync` are listed by the names of others.
    assert_eq!(count("__itt_sync_acquired"), count("__itt_fsync_acquired"));
    // What the static part had made before it asked for us has its name; what came then, too.
    assert_eq!(
        ran.ranges(),
        [
            " event 1",
            " old frame 1",
            "app 0x1234 1",
            "app a 1",
            "app b 1",
            "app inner 2",
            "app outer 1",
            "app region 1",
            "frames frames 2",
            "other late 1",
        ]
    );
    let tally = ran.report(&["tally"]);
    assert!(tally.contains("1 range without an end: late/outer"), "{tally}");
}

#[test]
fn arguments_are_decoded() {
    let Some(ran) = traced(&[], &[]) else { return };
    let calls = ran.calls();
    let handle = |create: &str| {
        let call = calls.iter().find(|call| call.starts_with(create)).unwrap_or_else(|| panic!("{create}"));
        call.split(" = ").nth(1).and_then(|end| end.split(' ').next()).expect("a result").to_owned()
    };
    let inner = handle("__itt_string_handle_create(string=\"inner\")");
    let app = handle("__itt_domain_create(name=\"app\")");
    let late = handle("__itt_string_handle_create(string=\"late\")");
    let other = handle("__itt_domain_create(name=\"other\")");
    for expected in [
        format!(
            "__itt_task_begin(domain={app}, task=7, extra=1, parent=0, parent_extra=0, registered={inner}) = 1 "
        ),
        format!(
            "__itt_task_begin(domain={other}, task=0, extra=0, parent=7, parent_extra=1, registered={late}) = 0 "
        ),
        "scope=__itt_scope_task)".to_owned(),
        "__itt_event_create(name=\"event\") ".to_owned(),
        "parameter=\"with this\") = 0 ".to_owned(),
        "value_type=__itt_metadata_s32, count=3, data=[01 00 00 00 fe ff ff ff 03 00 00 00], size=12)"
            .to_owned(),
        "data=\"input.txt\", length=9)".to_owned(),
        "data=\"whole\", length=0)".to_owned(),
        "x_type=__itt_metadata_u32, y_type=__itt_metadata_double, length=2, x_data=[0a 00 00 00 14 00 00 00], x_size=8, \
         y_data=[00 00 00 00 00 00 e0 3f 00 00 00 00 00 00 f8 3f], y_size=16)"
            .to_owned(),
        "x_data=[], x_size=0, y_data=[00 00 00 00 00 00 e0 3f ".to_owned(),
        format!(", registered={}) ", handle("__itt_string_handle_create(string=\"%llu of %s\")")),
        format!(
            "__itt_track_create(group={}, registered={}, kind=__itt_track_type_normal) = {} ",
            handle("__itt_track_group_create("),
            handle("__itt_string_handle_create(string=\"a track\")"),
            handle("__itt_track_create(")
        ),
        format!("__itt_set_track(track={}) ", handle("__itt_track_create(")),
        "relation=__itt_relation_is_dependent_on, tail=6, tail_extra=0)".to_owned(),
        "object_type=\"Spin Lock\", name=\"a lock\", kind=__itt_sync_mutex)".to_owned(),
        "address=0x2000, moved=0x3000, size=128, initialized=0)".to_owned(),
        "__itt_module_load(start=0x4000, end=0x5000, path=\"/made/at/run.time\") ".to_owned(),
        "value_type=__itt_metadata_u16, value=65535)".to_owned(),
        "name=\"main of ITT\") ".to_owned(),
    ] {
        assert!(calls.iter().any(|call| call.contains(&expected)), "{expected}\n{}", calls.join("\n"));
    }
}

#[test]
fn counters_have_their_values_and_threads_their_names() {
    let Some(ran) = traced(&[], &[]) else { return };
    let out = ran.folder.with_extension("json");
    let done = run(Command::new(hetrace()).args(["export", "-f", "chrome", "-o"]).arg(&out).arg(&ran.folder));
    assert_eq!(done.status, 0, "{}", done.err);
    let text = std::fs::read_to_string(&out).expect("written");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let values = |name: &str| -> Vec<f64> {
        let counted = events.iter().filter(|e| e["ph"] == "C" && e["name"] == name);
        counted.map(|e| e["args"]["value"].as_f64().expect("a number")).collect()
    };
    assert_eq!(values("early"), [1.0, 6.0, 5.0, 3.0]);
    assert_eq!(values("typed"), [0.5]);
    assert_eq!(values("late"), [65535.0]);
    assert_eq!(values("app: queue"), [1.0, 4.0, 3.0, 1.0]);
    let named: BTreeSet<&str> = events.iter().filter_map(|e| e["args"]["name"].as_str()).collect();
    assert!(named.iter().any(|name| name.contains("main of ITT")), "{named:?}");
    assert!(named.iter().any(|name| name.contains("worker")), "{named:?}");
}

#[test]
fn ranges_by_name_are_capture_windows() {
    // The first text is the static part's own, made before it knew us; the last one is ours.
    for name in ["one", "three"] {
        let Some(ran) = traced(&["--range", &format!("{name}@0..1")], &["named", "one", "two", "three"])
        else {
            return;
        };
        let markers: Vec<String> = ran.calls().into_iter().filter(|c| c.contains("__itt_marker(")).collect();
        assert_eq!(markers.len(), 1, "{name}: {markers:?}");
        let windows = ran.manifest()["capture"]["windows"].clone();
        assert_eq!(windows.as_array().map(Vec::len), Some(1), "{windows}");
    }
}

#[test]
fn pause_and_resume_are_capture_windows() {
    let Some(ran) = traced(&["--on-calls"], &["paused"]) else { return };
    let calls = ran.calls();
    let markers = calls.iter().filter(|call| call.contains("__itt_marker(")).count();
    assert_eq!(markers, 1, "{calls:?}");
    // Without the option they say nothing.
    let Some(ran) = traced(&[], &["paused"]) else { return };
    assert_eq!(ran.calls().iter().filter(|call| call.contains("__itt_marker(")).count(), 3);
}

#[test]
fn static_parts_of_several_libraries_begin_together() {
    let Some(ran) = traced(&[], &["copies"]) else { return };
    let expected: Vec<String> = (0..8).map(|number| format!("shared of {number} 10")).collect();
    assert_eq!(ran.ranges(), expected);
}

#[test]
fn a_forked_child_goes_on_where_it_was() {
    let Some(ran) = traced(&[], &["fork"]) else { return };
    assert_eq!(ran.done.out, "child 0\n");
    assert_eq!(ran.ranges(), ["app child 1", "app in both 1", "app parent 1"]);
}

#[test]
fn what_is_not_recorded_returns_its_result_all_the_same() {
    let Some(ran) = traced(&["--exclude", "__itt_*"], &[]) else { return };
    assert_eq!(ran.done.out, RESULTS);
    assert_eq!(ran.calls(), Vec::<String>::new());
}

#[test]
fn a_collector_of_the_user_stays() {
    let scratch = tempfile::tempdir().expect("scratch");
    let out = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-o"]).arg(&out).args(["--", "sh", "-c", "echo $INTEL_LIBITTNOTIFY64"]);
    let done = run(line.env("INTEL_LIBITTNOTIFY64", "/nowhere/collector.so"));
    assert_eq!(done.out.lines().next(), Some("/nowhere/collector.so"));
    let note = "ITT is not traced: INTEL_LIBITTNOTIFY64 is already set to /nowhere/collector.so";
    assert!(done.err.contains(note), "{}", done.err);
}

/// Intel's own module for Python, as its users use it.
#[test]
fn the_module_for_python_is_traced() {
    let Some(python) = python() else { return };
    let scratch = tempfile::tempdir().expect("scratch");
    let script = "
import ittapi
ittapi.thread_set_name('the main one')
@ittapi.task
def work(): pass
for _ in range(3): work()
with ittapi.task('block', domain='my domain'): work()
a = ittapi.overlapped_task('overlapping'); b = ittapi.overlapped_task('overlapped')
a.begin(); b.begin(); a.end(); b.end()
with ittapi.Event('an event'): pass
";
    let folder = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "-o"]).arg(&folder).arg("--").arg(python).args(["-c", script]);
    let done = run(line.env_remove("INTEL_LIBITTNOTIFY64"));
    assert_eq!((done.status, &*done.out), (0, ""), "{}", done.err);
    let ran = Ran { done, folder, _scratch: scratch };
    let ranges: Vec<String> = ran.ranges();
    let has = |end: &str| ranges.iter().any(|range| range.ends_with(end));
    for end in [" work 4", "my domain block 1", " overlapping 1", " overlapped 1", " an event 1"] {
        assert!(has(end), "{end}: {ranges:?}");
    }
}
