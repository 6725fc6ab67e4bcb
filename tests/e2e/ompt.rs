//! OpenMP by OMPT: what LLVM's runtime reports of programs that count themselves what they use, compiled by GCC and, with
//! code for the device that is the host, by Clang; beside other tools; and by a fake runtime, what no runtime here reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake;
use hetrace_tests::openmp::{has_devices, has_runtime, libraries, programs};
use hetrace_tests::{Done, hetrace, reports};
use serde_json::Value;
use tempfile::TempDir;

/// A run under trace.
struct Ran {
    done: Done,
    folder: PathBuf,
    scratch: TempDir,
}

impl Ran {
    /// One of the programs and what it is to do, with options of `run` and variables. It must end with this status.
    fn ending(status: i32, line: &[&str], options: &[&str], variables: &[(&str, String)]) -> Ran {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path().join("trace");
        let mut command = Command::new(hetrace());
        // The runtime marks its work by ITT, too.
        command.args(["run", "-q", "--exclude", "__itt_*"]).args(options).arg("-o").arg(&folder).arg("--");
        command.arg(programs().join(line[0])).args(&line[1..]);
        let done = run(command.envs(variables.iter().map(|(name, value)| (name, value))));
        assert_eq!(done.status, status, "{line:?}: {}", done.err);
        Ran { done, folder, scratch }
    }

    fn new(line: &[&str], options: &[&str]) -> Ran {
        Ran::ending(0, line, options, &[])
    }

    fn report(&self, arguments: &[&str]) -> String {
        reports::report(&self.folder, arguments)
    }

    fn tally(&self) -> Value {
        reports::tally(&self.folder)
    }

    /// How often each function was called.
    fn calls(&self) -> Counts {
        counts(&self.tally()["host"])
    }

    /// How many ranges there are of each name.
    fn ranges(&self) -> Counts {
        counts(&self.tally()["ranges"])
    }

    /// The calls as `print` shows them, without their times, threads and addresses of code.
    fn lines(&self) -> Vec<String> {
        let text = self.report(&["print", "-c"]);
        let call = |line: &str| {
            let line = line.get(line.find("ompt_")?..)?;
            Some(line.split("  (").next()?.split(", codeptr_ra").next()?.to_owned())
        };
        text.lines().filter_map(call).collect()
    }

    /// What the program itself counted.
    fn own(&self) -> Counts {
        own(&self.done.out)
    }
}

type Counts = BTreeMap<String, i64>;

fn counts(rows: &Value) -> Counts {
    let row = |row: &Value| Some((row["name"].as_str()?.to_owned(), row["calls"].as_i64()?));
    rows.as_array().expect("rows").iter().filter_map(row).collect()
}

/// Lines of a name and a number.
fn own(text: &str) -> Counts {
    let line = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn of(counts: &Counts, name: &str) -> i64 {
    counts.get(name).copied().unwrap_or(0)
}

#[test]
fn constructs_are_counted_as_the_program_counts_them() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["constructs", "regions"], &[]);
    assert!(!ran.done.out.contains("errno"), "{}", ran.done.out);
    let (own, calls, ranges) = (ran.own(), ran.calls(), ran.ranges());
    assert_eq!(of(&ranges, "ompt_parallel"), of(&own, "parallel"));
    // GCC's code for sections is that of a loop, which each of two threads comes to.
    assert_eq!(of(&ranges, "ompt_loop_dynamic"), of(&own, "loop") + 2);
    assert_eq!(of(&calls, "ompt_acquire_critical"), of(&own, "critical"));
    assert_eq!(of(&calls, "ompt_acquire_lock"), of(&own, "lock"));
    assert_eq!(of(&calls, "ompt_wait_barrier_implementation"), of(&own, "barrier"));
    assert_eq!(of(&calls, "ompt_wait_barrier_implicit_parallel"), of(&own, "member"));
    // The runtime does not report where GCC's `single` ends: it is no range, and shifts no other one.
    assert_eq!(of(&calls, "ompt_single_executor_begin"), of(&own, "single"));
    let tally = ran.tally();
    let open = tally["open_ranges"].as_array().expect("ranges");
    assert!(open.iter().all(|range| range["name"] == "ompt_single_executor"), "{open:?}");
    assert_eq!((&tally["lost_calls"], &tally["unfinished_calls"]), (&Value::from(0), &Value::from(0)));
}

/// A number of a line of `print`.
fn number(line: &str, name: &str) -> u64 {
    let text = line.split(&format!("{name}=0x")).nth(1).expect(name);
    let digits = text.split(|c: char| !c.is_ascii_hexdigit()).next().expect(name);
    u64::from_str_radix(digits, 16).expect(name)
}

#[test]
fn addresses_of_code_lead_to_lines_of_the_source() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["constructs", "loop", "1"], &[]);
    let text = ran.report(&["print", "-c"]);
    let find = |name: &str| text.lines().find(|line| line.contains(name)).expect(name);
    let (code, region) = (find("ompt_code("), find("ompt_parallel_begin("));
    let path = code.split("path=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
    let at = number(region, "codeptr_ra");
    assert!((number(code, "start")..number(code, "end")).contains(&at), "{code}, {region}");
    // Where the call returns to is behind it.
    let offset = format!("{:#x}", at - number(code, "base") - 1);
    let found = run(Command::new("addr2line").args(["-f", "-e", path, &offset])).out;
    assert!(found.starts_with("region\n") && found.contains("/constructs.c:"), "{offset}: {found}");
}

/// By each function that `lines.c` names, the line of the source.
fn lines_of_source() -> Vec<(String, usize)> {
    let source = include_str!("../programs/ompt/lines.c");
    let named = |(line, number): (&str, usize)| {
        let (_, name) = line.split_once("/* ompt_")?;
        Some((format!("ompt_{}", name.strip_suffix(" */")?), number))
    };
    source.lines().zip(1..).filter_map(named).collect()
}

/// By each function, the places that `print` shows behind its calls.
fn places(ran: &Ran) -> BTreeMap<String, BTreeSet<String>> {
    let mut places = BTreeMap::<String, BTreeSet<String>>::new();
    for line in ran.report(&["print", "-c"]).lines() {
        let (Some(call), Some((_, place))) = (line.find("ompt_"), line.rsplit_once("  at ")) else {
            continue;
        };
        let name = line[call..].split('(').next().expect("a name");
        places.entry(name.to_owned()).or_default().insert(place.to_owned());
    }
    places
}

/// Each construct is at its line, whichever of the functions the line is in after optimization.
#[track_caller]
fn assert_lines(ran: &Ran) {
    let found = places(ran);
    for (name, line) in lines_of_source() {
        let places = found.get(&name).unwrap_or_else(|| panic!("{name}: {found:?}"));
        let function = if line < 35 { "relax" } else { "solve" };
        let [place] = &places.iter().collect::<Vec<_>>()[..] else { panic!("{name}: {places:?}") };
        let expected =
            [format!("lines.c:{line} in {function}"), format!("lines.c:{line} in solve._omp_fn.0")];
        assert!(expected.contains(place), "{name}: {place}, not {expected:?}");
    }
}

#[test]
fn each_kind_of_construct_has_its_line_of_the_source() {
    if !has_runtime() {
        return;
    }
    assert_eq!(lines_of_source().len(), 7);
    for program in ["lines", "lines_fixed"] {
        assert_lines(&Ran::new(&[program], &[]));
    }
    let library = programs().join("liblines.so").display().to_string();
    assert_lines(&Ran::new(&["lines", "dlopen", &library], &[]));
    assert_lines(&Ran::ending(128 + 9, &["lines", "killed"], &[], &[]));
    // Without the call that shows where libraries are, too.
    assert_lines(&Ran::new(&["lines"], &["--exclude", "ompt_code"]));
}

#[test]
fn reports_group_and_show_constructs_by_their_lines() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["lines"], &[]);
    let lines: BTreeMap<String, usize> = lines_of_source().into_iter().collect();
    let tally: Value = serde_json::from_str(&ran.report(&["tally", "--by", "line", "--json"])).expect("JSON");
    let text = tally.to_string();
    let parallel = lines["ompt_parallel_begin"];
    assert!(text.contains(&format!("\"ompt_parallel at lines.c:{parallel} in solve\"")), "{text}");
    let critical = tally["host"].as_array().expect("rows").iter().find(|row| {
        row["line"]
            .as_str()
            .is_some_and(|line| line.starts_with(&format!("lines.c:{} ", lines["ompt_acquire_critical"])))
    });
    assert_eq!(critical.map(|row| row["calls"].as_i64()), Some(Some(6)), "{text}");
    let folded = ran.scratch.path().join("folded");
    ran.report(&["export", "-f", "folded", "-o", folded.to_str().expect("a path")]);
    let folded = std::fs::read_to_string(&folded).expect("folded stacks");
    let barrier = format!(
        "(lines.c:{});ompt:ompt_wait_barrier_implementation",
        lines["ompt_wait_barrier_implementation"]
    );
    assert!(folded.contains(&barrier), "{folded}");
    let timeline = ran.scratch.path().join("timeline");
    ran.report(&["timeline", "-o", timeline.to_str().expect("a path")]);
    let timeline = std::fs::read(&timeline).expect("a timeline");
    let place = format!("lines.c:{parallel} in solve");
    assert!(
        timeline.windows(place.len()).any(|bytes| bytes == place.as_bytes()),
        "the region's slice has it"
    );
}

/// What `lint` finds about a construct names its line, for programs, too.
#[test]
fn findings_name_the_line_of_a_construct() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::ending(128 + 9, &["lines", "stuck"], &[], &[("KMP_BLOCKTIME", "0".to_owned())]);
    let mut source = include_str!("../programs/ompt/lines.c").lines().zip(1..);
    let (_, line) = source.find(|(line, _)| line.contains("/* stuck here */")).expect("the line");
    let lint: Value =
        serde_json::from_str(&ran.report(&["lint", "--json", "--fail-on", "never"])).expect("JSON");
    let calls = lint["findings"].as_array().expect("findings").iter().flat_map(|finding| {
        assert_eq!(finding["rule"], "unfinished-call", "{finding}");
        finding["occurrences"][0]["calls"].as_array().expect("calls")
    });
    let at: Vec<_> = calls.map(|call| (&call["function"], &call["stack"][0]["line"])).collect();
    assert_eq!(at.len(), 1, "{lint}");
    assert!(at[0].0.as_str().is_some_and(|name| name.starts_with("ompt_wait_barrier")), "{lint}");
    assert_eq!(*at[0].1, line, "{lint}");
    let sarif: Value =
        serde_json::from_str(&ran.report(&["lint", "--sarif", "--fail-on", "never"])).expect("JSON");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], line, "{sarif}");
    let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
    assert!(uri.starts_with("file:///") && uri.ends_with("/tests/programs/ompt/lines.c"), "{uri}");
}

/// The launcher is stopped before the program begins and killed after it: it has named nothing.
#[test]
fn after_recover_constructs_have_their_lines() {
    if !has_runtime() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch");
    // A memory file system of its own, so that no other launcher of the tests recovers it.
    let script = "mount -t tmpfs -o mode=1777,size=64m tmpfs /dev/shm; \
        \"$HETRACE\" run -q --exclude '__itt_*' -o trace -- \
        sh -c 'kill -STOP $PPID; \"$LINES\"; kill -KILL $PPID; touch ended' 2>/dev/null; \
        until test -e ended; do sleep 0.05; done; \"$HETRACE\" recover trace";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).current_dir(scratch.path());
    let done = run(command.env("HETRACE", hetrace()).env("LINES", programs().join("lines")));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.err.contains("trace: recovered"), "{}", done.err);
    let folder = scratch.path().join("trace");
    assert_lines(&Ran { done, folder, scratch });
}

#[test]
fn without_debug_information_places_are_functions_or_offsets_and_a_file_that_is_gone_is_said() {
    if !has_runtime() {
        return;
    }
    let bare = places(&Ran::new(&["lines_bare"], &[]));
    let of = |places: &BTreeMap<String, BTreeSet<String>>, name: &str| {
        places.get(name).and_then(|places| places.first().cloned()).unwrap_or_default()
    };
    let region = of(&bare, "ompt_parallel_begin");
    assert!(region.starts_with("solve+0x") && region.ends_with(" in lines_bare"), "{bare:?}");
    // Two constructs of one function are two places.
    assert_ne!(of(&bare, "ompt_task_create"), of(&bare, "ompt_wait_taskwait"), "{bare:?}");
    let stripped = places(&Ran::new(&["lines_stripped"], &[]));
    for (name, _) in lines_of_source() {
        assert!(of(&stripped, &name).starts_with("lines_stripped+0x"), "{name}: {stripped:?}");
    }

    let scratch = tempfile::tempdir().expect("scratch");
    let copy = scratch.path().join("goes");
    std::fs::copy(programs().join("lines"), &copy).expect("a copy");
    let path = copy.to_str().expect("a path");
    let gone = Ran::new(&[path, "remove", path], &[]);
    assert!(of(&places(&gone), "ompt_parallel_begin").starts_with("goes+0x"), "{:?}", places(&gone));
    let notes = gone.tally()["notes"].to_string();
    assert!(notes.contains(&format!("no functions and lines of {path}: its file is gone")), "{notes}");
}

#[test]
fn tasks_are_ranges_on_the_threads_that_execute_them() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["constructs", "tasks"], &[]);
    let (own, calls, ranges) = (ran.own(), ran.calls(), ran.ranges());
    assert_eq!(of(&calls, "ompt_task_create"), of(&own, "task"));
    assert_eq!(of(&ranges, "ompt_task"), of(&own, "task"));
    assert_eq!(of(&calls, "ompt_wait_taskwait"), of(&own, "taskwait"));
    assert_eq!(of(&calls, "ompt_wait_taskgroup"), 1);
    assert_eq!(of(&calls, "ompt_dependences"), of(&own, "chained"));
    let lines = ran.lines();
    let depends = |line: &&String| line.contains("dependence_type=ompt_dependence_type_inout");
    assert_eq!(lines.iter().filter(depends).count() as i64, of(&own, "chained"), "{lines:?}");
}

#[test]
fn a_forked_child_has_regions_of_its_own() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["constructs", "fork"], &[]);
    let own = ran.own();
    assert_eq!((of(&own, "status"), of(&own, "child"), of(&own, "parent")), (0, 5, 2));
    assert_eq!(of(&ran.ranges(), "ompt_parallel"), 7);
    let codes = ran.lines().iter().filter(|line| line.starts_with("ompt_code(")).count();
    assert_eq!(codes, 2, "each process says where its code is");
}

#[test]
fn what_a_killed_program_was_in_is_shown_as_unfinished() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::ending(128 + 9, &["constructs", "killed"], &[], &[]);
    let tally = ran.tally();
    let open: Vec<&str> =
        tally["open_ranges"].as_array().expect("ranges").iter().filter_map(|r| r["name"].as_str()).collect();
    assert!(open.contains(&"ompt_parallel") && open.contains(&"ompt_loop_dynamic"), "{open:?}");
    assert_eq!(run(Command::new(hetrace()).arg("check").arg(&ran.folder)).status, 0);
}

#[test]
fn options_choose_what_the_runtime_reports() {
    if !has_runtime() {
        return;
    }
    let without =
        Ran::new(&["constructs", "regions"], &["--exclude", "ompt_wait*", "--exclude", "ompt_loop*"]);
    let calls = without.calls();
    assert!(
        !calls.keys().any(|name| name.starts_with("ompt_wait") || name.starts_with("ompt_loop")),
        "{calls:?}"
    );
    assert_eq!(of(&calls, "ompt_acquire_critical"), of(&without.own(), "critical"));

    let few = Ran::new(&["constructs", "regions"], &["--mode", "minimal"]);
    assert!(few.calls().keys().all(|name| name.starts_with("ompt_target")), "{:?}", few.calls());

    let all = Ran::new(&["constructs", "regions"], &["--mode", "full"]);
    let (own, calls, ranges) = (all.own(), all.calls(), all.ranges());
    assert_eq!(of(&ranges, "ompt_implicit_task"), of(&own, "member"));
    assert_eq!(of(&ranges, "ompt_sync_region"), of(&own, "member") + of(&own, "barrier"));
    assert_eq!(of(&calls, "ompt_mutex_released"), of(&own, "critical") + of(&own, "lock"));
    let lines = all.lines();
    let answer = "ompt_tool_callback(event=ompt_callback_parallel_begin, answer=ompt_set_always)";
    assert!(lines.iter().any(|line| line == answer), "{lines:?}");
}

#[test]
fn capture_windows_begin_and_end_at_constructs_and_when_the_program_says_so() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["constructs", "control"], &["--range", "ompt_parallel@1..3"]);
    // The call that begins the window's first range comes before the window.
    let calls = ran.calls();
    assert_eq!(of(&calls, "ompt_wait_barrier_implementation"), 2 * 2, "{calls:?}");
    let ran = Ran::new(&["constructs", "control"], &["--on-calls"]);
    assert_eq!(of(&ran.ranges(), "ompt_parallel"), 2);
    assert_eq!(of(&ran.own(), "start"), 0);
}

/// The other tool's library, behind one that is not there.
fn other_tool() -> String {
    format!("/nowhere/libtool.so:{}", programs().join("libother_tool.so").display())
}

/// What the other tool counts without us.
fn counted_alone(line: &[&str], mode: &str) -> Counts {
    let mut command = Command::new(programs().join(line[0]));
    command.args(&line[1..]).env("OMP_TOOL_LIBRARIES", other_tool()).env("OTHER_TOOL", mode);
    let done = run(&mut command);
    assert_eq!(done.status, 0, "{}", done.err);
    own(&done.out)
}

#[test]
fn another_tool_of_the_list_gets_all_that_it_would_get_without_us() {
    if !has_runtime() {
        return;
    }
    let list = ("OMP_TOOL_LIBRARIES", other_tool());
    for what in ["tasks", "regions"] {
        let alone = counted_alone(&["constructs", what], "");
        let ran = Ran::ending(0, &["constructs", what], &[], std::slice::from_ref(&list));
        assert_eq!(ran.own(), alone, "{what}: and its words are its own");
        assert_eq!(of(&alone, "tool wrong"), 0);
        assert_eq!(of(&ran.ranges(), "ompt_parallel"), of(&alone, "tool parallel"));
        let start =
            ran.lines().into_iter().find(|line| line.starts_with("ompt_tool_start")).expect("a start");
        assert!(start.contains("libother_tool.so"), "{start}");
    }
    // It gets what we do not record, too, and one that does not want to be a tool is none.
    let ran =
        Ran::ending(0, &["constructs", "tasks"], &["--exclude", "ompt_task*"], std::slice::from_ref(&list));
    assert_eq!(of(&ran.own(), "tool create"), of(&ran.own(), "task"));
    assert_eq!(of(&ran.calls(), "ompt_task_create"), 0);
    let none = [list, ("OTHER_TOOL", "none".to_owned())];
    let ran = Ran::ending(0, &["constructs", "tasks"], &[], &none);
    assert_eq!(of(&ran.own(), "tool create"), 0);
    assert_eq!(of(&ran.calls(), "ompt_task_create"), of(&ran.own(), "task"));
}

#[test]
fn a_program_with_a_tool_of_its_own_keeps_it_and_the_report_says_so() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::new(&["own_tool", "tasks"], &[]);
    assert_eq!((of(&ran.own(), "tool create"), of(&ran.own(), "tool wrong")), (of(&ran.own(), "task"), 0));
    assert!(ran.calls().is_empty(), "{:?}", ran.calls());
    let notes = ran.tally()["notes"].to_string();
    assert!(notes.contains("OpenMP is not traced where") && notes.contains("own_tool"), "{notes}");
}

#[test]
fn who_wants_no_tool_is_not_traced_and_it_is_reported() {
    if !has_runtime() {
        return;
    }
    let ran = Ran::ending(0, &["constructs", "regions"], &[], &[("OMP_TOOL", "disabled".to_owned())]);
    assert!(ran.calls().is_empty());
    assert!(ran.tally()["notes"].to_string().contains("OMP_TOOL is disabled"));
    let mut doctor = Command::new(hetrace());
    let doctor = run(doctor.args(["doctor", "--json"]).env("OMP_TOOL", "disabled"));
    assert!(doctor.out.contains("OMP_TOOL is disabled"), "{}", doctor.out);
}

#[test]
fn a_runtime_without_tools_is_named() {
    let ran = Ran::new(&["of_gcc"], &[]);
    assert_eq!(of(&ran.own(), "member"), 3);
    let notes = ran.tally()["notes"].to_string();
    assert!(notes.contains("OpenMP is not traced in what libgomp.so.1 executes"), "{notes}");
}

#[test]
fn constructs_for_devices_are_calls_with_what_they_move() {
    if !has_runtime() || !has_devices() {
        return;
    }
    let ran = Ran::new(&["target"], &[]);
    let (own, calls) = (ran.own(), ran.calls());
    assert_eq!(of(&own, "value"), 8);
    let named = [
        ("target", "ompt_target_region"),
        ("target", "ompt_target_submit"),
        ("update", "ompt_target_update_region"),
    ];
    let named = named.into_iter().chain([
        ("enter", "ompt_target_enter_data_region"),
        ("exit", "ompt_target_exit_data_region"),
        ("enter", "ompt_target_data_op_alloc"),
        ("enter", "ompt_target_data_op_transfer_to_device"),
        ("exit", "ompt_target_data_op_delete"),
    ]);
    for (construct, function) in named {
        assert_eq!(of(&calls, function), of(&own, construct), "{function}");
    }
    assert_eq!(of(&calls, "ompt_target_data_op_transfer_from_device"), of(&own, "update") + of(&own, "exit"));
    let memory = &ran.tally()["memory"][0];
    assert_eq!(memory["device"], "device 0", "{memory}");
    assert_eq!(memory["allocated_bytes"].as_i64(), Some(of(&own, "bytes")), "{memory}");
    // An operation is inside the construct that needs it.
    let text = ran.report(&["print", "-c"]);
    let inside =
        |line: &&str| line.contains("  ompt_target_data_op_") || line.contains("  ompt_target_submit");
    assert_eq!(text.lines().filter(inside).count(), 8, "{text}");
}

/// libomptarget looks for the host's runtime as `libomp.so`, which packages for running programs do not have.
#[test]
fn constructs_for_devices_that_the_runtime_cannot_report_are_said() {
    let Some(libraries) = libraries().filter(|_| has_devices()) else { return };
    let folder = tempfile::tempdir().expect("scratch");
    let link = |name: &str, to: &str| {
        std::os::unix::fs::symlink(libraries.join(name), folder.path().join(to)).expect("a link");
    };
    for entry in std::fs::read_dir(&libraries).expect("libraries").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        if name.starts_with("libomptarget.so") || name == "libomp.so.5" {
            link(&name, &name);
        }
    }
    let variables = [("LD_LIBRARY_PATH", folder.path().display().to_string())];
    let said = "constructs for devices are not recorded";
    let ran = Ran::ending(0, &["target_elsewhere"], &[], &variables);
    assert_eq!((of(&ran.own(), "value"), of(&ran.calls(), "ompt_target_region")), (8, 0));
    assert!(ran.tally()["notes"].to_string().contains(said), "{}", ran.tally()["notes"]);
    link("libomp.so.5", "libomp.so");
    let ran = Ran::ending(0, &["target_elsewhere"], &[], &variables);
    assert_eq!(of(&ran.calls(), "ompt_target_region"), of(&ran.own(), "target"));
    assert!(!ran.tally()["notes"].to_string().contains(said), "{}", ran.tally()["notes"]);
    // Of a program without such constructs nothing is said.
    if has_runtime() {
        let ran = Ran::new(&["constructs", "regions"], &[]);
        assert!(!ran.tally()["notes"].to_string().contains(said), "{}", ran.tally()["notes"]);
    }
}

#[test]
fn another_tool_gets_the_events_of_devices_that_it_knows() {
    if !has_runtime() || !has_devices() {
        return;
    }
    let expected = Ran::new(&["target"], &[]).calls();
    for mode in ["older", ""] {
        let alone = counted_alone(&["target"], mode);
        let variables = [("OMP_TOOL_LIBRARIES", other_tool()), ("OTHER_TOOL", mode.to_owned())];
        let ran = Ran::ending(0, &["target"], &[], &variables);
        assert_eq!(ran.own(), alone, "{mode}");
        assert!(of(&alone, "tool operation") > 0 && of(&alone, "tool wrong") == 0, "{alone:?}");
        assert_eq!(ran.calls(), expected, "{mode}: and so do we");
    }
}

#[test]
fn a_fake_runtime_reports_devices_by_two_endpoints_or_one() {
    let ran = Ran::new(&["fake_runtime", "devices"], &[]);
    assert_eq!(ran.done.out, "errno 77\n");
    let text = ran.lines().join("\n");
    for part in [
        "ompt_device_initialize(device_num=3, type=\"fake\", documentation=\"none\", has_tracing=1)",
        "ompt_device_load(device_num=3, filename=\"file.so\", offset_in_file=16,",
        "ompt_target_data_op_alloc(",
        "ompt_target_submit(requested_num_teams=12)",
        "bytes=[8, 16], mapping_flags=[ompt_target_map_flag_to, ompt_target_map_flag_from|ompt_target_map_flag_implicit]",
        "ompt_target_update_nowait_region(device_num=3,",
        "ompt_device_unload(device_num=3, module_id=9)",
        "ompt_error(severity=ompt_fatal, message=\"out of luck\", length=11",
        "flags=ompt_cancel_loop|ompt_cancel_activated",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let memory = &ran.tally()["memory"][0];
    assert_eq!((&memory["device"], &memory["allocated_bytes"]), (&"device 3".into(), &64.into()), "{memory}");

    let ran = Ran::new(&["fake_runtime", "older"], &[]);
    assert_eq!(ran.done.out, "errno 77\n");
    let calls = ran.calls();
    for function in ["enter_data_region", "data_op_alloc", "data_op_transfer_to_device", "submit"] {
        assert_eq!(of(&calls, &format!("ompt_target_{function}")), 1, "{calls:?}");
    }
}

/// Regions over the CUDA driver: what the driver does is theirs, and what a task does is the task's, also where its thread
/// executes it while it waits.
#[test]
fn what_devices_do_is_attributed_to_regions_and_tasks_and_not_to_waits() {
    let variables = [("LD_LIBRARY_PATH", fake::driver().display().to_string())];
    let ran = Ran::ending(0, &["fake_runtime", "over"], &[], &variables);
    assert_eq!(ran.done.out, "errno 77\n");
    let layers: Value =
        serde_json::from_str(&ran.report(&["tally", "--by", "layer", "--json"])).expect("JSON");
    let row = |row: &Value| Some((row["layer"].as_str()?.to_owned(), row["calls"].as_i64()?));
    let commands: Counts = layers["device"].as_array().expect("rows").iter().filter_map(row).collect();
    let expected = [
        ("cuLaunchKernel", 1),
        ("ompt_target_nowait_region > cuLaunchKernel", 1),
        ("ompt_target_region > cuLaunchKernel", 1),
        ("ompt_target_region > cuMemcpyHtoDAsync_v2", 1),
    ];
    assert_eq!(commands, expected.map(|(chain, calls)| (chain.to_owned(), calls)).into(), "{layers}");
    let calls: Counts = layers["host"].as_array().expect("rows").iter().filter_map(row).collect();
    // The driver's: for the regions an allocation, a copy and two launches; the program's own are the task's and five of the
    // beginning, and three of the end.
    assert_eq!(of(&calls, "ompt > cuda"), 4, "{calls:?}");
    assert!(of(&calls, "cuda") >= 8, "{calls:?}");
    let tally = ran.tally();
    let notes = tally["notes"].to_string();
    assert!(!notes.contains("have no times"), "the driver has them: {notes}");
    let text = ran.report(&["tally"]);
    assert!(!text.contains("the allocation is not in the trace"), "{text}");
    assert_eq!(tally["memory"][0]["allocations"], 1, "{tally}");
    let lint = ran.report(&["lint", "--fail-on", "never"]);
    assert!(lint.contains("ompt_target_region copies asynchronously from pageable memory"), "{lint}");
    let why = ran.report(&["why"]);
    // Why a device was idle before a kernel depends on how fast the machine is; in whose call it was does not.
    assert!(why.contains(" in ompt_target_"), "{why}");
    for cause in ["launch overhead", "first launch of a kernel"] {
        assert!(!why.contains(&format!("{cause} in ompt_wait")), "{why}");
    }
}

#[test]
fn kinds_that_nobody_knows_are_named_by_their_numbers() {
    let ran = Ran::new(&["fake_runtime", "unheard"], &[]);
    let text = ran.lines().join("\n");
    for part in ["ompt_wait(kind=77,", "ompt_work_begin(work_type=78,", "ompt_acquire(kind=79,"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["ompt_target_other_region(kind=80,", "ompt_target_data_op(optype=81,"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(of(&ran.ranges(), "ompt_work"), 1);
}

#[test]
fn what_a_runtime_does_not_pair_mixes_nothing_up() {
    let ran = Ran::new(&["fake_runtime", "unpaired"], &[]);
    let tally = ran.tally();
    assert_eq!((&tally["orphaned_exits"], &tally["unfinished_calls"]), (&0.into(), &1.into()));
    let calls = ran.calls();
    assert_eq!([of(&calls, "ompt_wait_barrier_explicit"), of(&calls, "ompt_wait_taskgroup")], [1, 1]);
    let ranges = ran.ranges();
    assert_eq!((ranges.len(), of(&ranges, "ompt_loop_static")), (1, 1), "{ranges:?}");
    assert_eq!(tally["open_ranges"][0]["name"], "ompt_single_executor");
    assert_eq!(tally["unmatched_range_ends"], 1);

    // Deeper than is kept: counted as lost, and those that are kept have their own ends.
    let ran = Ran::new(&["fake_runtime", "deep"], &[]);
    let tally = ran.tally();
    let recorded: i64 = ran.calls().iter().filter(|c| c.0.starts_with("ompt_wait")).map(|c| c.1).sum();
    assert_eq!((recorded, &tally["lost_calls"]), (1023 + 1, &(1500 - 1023).into()));
    assert_eq!((&tally["orphaned_exits"], &tally["unfinished_calls"]), (&0.into(), &0.into()));

    let ran = Ran::new(&["fake_runtime", "tasks"], &[]);
    assert_eq!(of(&ran.ranges(), "ompt_task"), 3);
    let changes =
        ran.lines().into_iter().filter(|line| line.starts_with("ompt_task_schedule")).collect::<Vec<_>>();
    assert!(changes[0].contains("prior_status=ompt_task_late_fulfill"), "{changes:?}");
    assert!(changes[1].contains("prior_status=ompt_taskwait_complete"), "{changes:?}");
    assert_eq!(changes.len(), 2);
}

#[test]
fn a_runtime_that_lets_no_tool_set_callbacks_is_named() {
    let ran = Ran::new(&["fake_runtime", "dumb"], &[]);
    assert_eq!(ran.done.out, "not begun\n");
    assert!(ran.tally()["notes"].to_string().contains("lets no tool set callbacks"));
    // And without a session our library is no tool.
    let mut command = Command::new(programs().join("fake_runtime"));
    let library = hetrace().with_file_name("libhetrace_ompt.so");
    let done = run(command.arg("devices").env("OMP_TOOL_LIBRARIES", library));
    assert_eq!((done.status, &*done.out), (0, "no tool\n"));
    assert!(ran.scratch.path().exists());
}
