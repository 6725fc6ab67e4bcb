//! What programs mark by `include/hetrace.h` and the Rust crate: recorded when traced, nothing otherwise.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hetrace_tests::bed::run;
use hetrace_tests::{Done, hetrace};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a root")
}

/// A program of `tests/programs/marks`.
fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/marks");
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/marks"))
            .arg(format!("OUT={}", out.display()));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    });
    folder.join(name)
}

/// Runs a program, bare.
fn bare(name: &str, arguments: &[&str]) -> Done {
    run(Command::new(program(name)).args(arguments).env_remove("HETRACE_MARKS"))
}

/// Records a program.
fn record(folder: &Path, options: &[&str], name: &str, arguments: &[&str]) -> Done {
    let mut command = Command::new(hetrace());
    command
        .args(["run", "-q"])
        .args(options)
        .arg("-o")
        .arg(folder)
        .arg("--")
        .arg(program(name))
        .args(arguments);
    run(&mut command)
}

fn report(name: &str, folder: &Path) -> String {
    let done = run(Command::new(hetrace()).arg(name).arg(folder));
    assert_eq!(done.status, 0, "{}", done.err);
    done.out
}

fn tally(folder: &Path) -> Value {
    let done = run(Command::new(hetrace()).args(["tally", "--json"]).arg(folder));
    serde_json::from_str(&done.out).expect("JSON")
}

/// Calls as `print` shows them, without times and threads.
fn calls(folder: &Path) -> Vec<String> {
    let call = |line: &str| {
        let call = line.split_once(" hetrace_").map(|(_, call)| call.to_owned())?;
        Some(call.rsplit_once("  (").map_or(call.clone(), |(call, _)| call.to_owned()))
    };
    report("print", folder).lines().filter_map(call).collect()
}

/// Ranges of the tally: name, style, how many.
fn ranges(tally: &Value) -> Vec<(String, String, u64)> {
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().expect("a text").to_owned();
        (text("name"), text("style"), row["calls"].as_u64().expect("a number"))
    };
    let mut rows: Vec<_> = tally["ranges"].as_array().expect("ranges").iter().map(row).collect();
    rows.sort();
    rows
}

fn row(name: &str, style: &str, calls: u64) -> (String, String, u64) {
    (name.to_owned(), style.to_owned(), calls)
}

#[test]
fn c_and_cpp_programs_mark_ranges_of_one_thread_and_of_several() {
    let scratch = tempfile::tempdir().expect("scratch");
    for name in ["c99", "c++", "nopie"] {
        let folder = scratch.path().join(name);
        assert_eq!(bare(name, &[]).out, "errno 4711\nnot traced\n");
        let done = record(&folder, &[], name, &[]);
        assert_eq!((done.status, &*done.out), (0, "errno 4711\ntraced\n"), "{}", done.err);
        let tally = tally(&folder);
        let expected = [
            row("handed over", "started", 1),
            row("inner", "pushed", 1),
            row("inner of a thread", "pushed", 1),
            row("outer", "pushed", 1),
        ];
        assert_eq!(ranges(&tally), expected, "{name}");
        assert_eq!(tally["lost_events"], 0);
        assert_eq!(tally["unmatched_range_ends"], 0);
        let calls = calls(&folder);
        for call in [
            "mark(message=\"a moment\", value=17)",
            "mark(message=\"\", value=18446744073709551615)",
            "snapshot()",
        ] {
            assert!(calls.iter().any(|c| c == call), "{call}: {calls:?}");
        }
        let named = calls.iter().filter(|c| c.starts_with("name_thread(thread_id=")).count();
        assert_eq!(named, 2, "{calls:?}");
        // The time line has the names, as texts among its bytes.
        let file = scratch.path().join(format!("{name}.timeline"));
        let done = run(Command::new(hetrace()).arg("timeline").arg(&folder).arg("-o").arg(&file));
        assert_eq!(done.status, 0, "{}", done.err);
        let bytes = std::fs::read(&file).expect("a time line");
        for text in ["the main one", "the other one", "handed over", "a moment"] {
            assert!(bytes.windows(text.len()).any(|w| w == text.as_bytes()), "{text}");
        }
    }
}

#[test]
fn a_rust_program_ends_its_ranges_on_every_way_out() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    assert_eq!(bare("rust", &[]).out, "not traced\n");
    let done = record(&folder, &[], "rust", &[]);
    assert_eq!((done.status, &*done.out), (0, "traced\n"), "{}", done.err);
    let tally = tally(&folder);
    let expected = [
        row("handed over", "started", 1),
        row("outer", "pushed", 1),
        row("recursion", "pushed", 3),
        row("unwound", "pushed", 1),
    ];
    assert_eq!(ranges(&tally), expected);
    assert_eq!(
        (&tally["unmatched_range_ends"], &tally["open_ranges"]),
        (&Value::from(0), &Value::from(Vec::<u8>::new()))
    );
    assert!(calls(&folder).iter().any(|c| c == "mark(message=\"made of 2\", value=2)"));
}

#[test]
fn wrong_nesting_and_huge_texts_are_counted_and_do_no_harm() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    assert_eq!(bare("c99", &["wrongly"]).out, "not traced\n");
    let done = record(&folder, &[], "c99", &["wrongly"]);
    assert_eq!((done.status, &*done.out), (0, "traced\n"), "{}", done.err);
    let tally = tally(&folder);
    // Two pops without a push, and an end of an id that nobody was given; an end of 0 is none.
    assert_eq!(tally["unmatched_range_ends"], 3, "{tally}");
    let open: Vec<&str> =
        tally["open_ranges"].as_array().expect("ranges").iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(open.len(), 2, "{open:?}");
    assert!(open.contains(&"left open") && open.contains(&"left open, too"), "{open:?}");
    let [(name, _, 1)] = &ranges(&tally)[..] else { panic!("one range: {tally}") };
    assert!(name.len() > 100 && name.len() < 100_000 && name.starts_with("hhhh"), "{}", name.len());
    assert_eq!(tally["lost_events"], 0);
}

#[test]
fn threads_that_begin_at_once_are_all_recorded() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = record(&folder, &["--on-full", "block"], "c99", &["threads"]);
    assert_eq!((done.status, &*done.out), (0, "traced\n"), "{}", done.err);
    let tally = tally(&folder);
    assert_eq!(ranges(&tally), [row("of many", "pushed", 8000)]);
    assert_eq!((&tally["lost_events"], &tally["unmatched_range_ends"]), (&Value::from(0), &Value::from(0)));
}

#[test]
fn children_of_fork_are_recorded() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    assert_eq!(bare("c99", &["forks"]).out, "child 0\nnot traced\n");
    let done = record(&folder, &[], "c99", &["forks"]);
    assert_eq!(done.out, "child 1\ntraced\n", "{}", done.err);
    assert_eq!(ranges(&tally(&folder)), [row("child", "pushed", 1), row("parent", "pushed", 1)]);
}

#[test]
fn a_plugin_that_is_opened_and_closed_marks_by_its_own_copy() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let plugin = program("plugin.so");
    let plugin = plugin.to_str().expect("UTF-8");
    assert_eq!(bare("host", &[plugin]).out, "not traced\n");
    let done = record(&folder, &[], "host", &[plugin]);
    assert_eq!((done.status, &*done.out), (0, "traced\n"), "{}", done.err);
    assert_eq!(ranges(&tally(&folder)), [row("host", "pushed", 1), row("plug-in", "pushed", 2)]);
}

#[test]
fn static_and_disabled_programs_run_as_without_it() {
    let scratch = tempfile::tempdir().expect("scratch");
    for name in ["static", "disabled"] {
        for what in ["everything", "wrongly", "threads", "captures"] {
            let done = record(&scratch.path().join(format!("{name}-{what}")), &[], name, &[what]);
            assert_eq!(
                (done.status, &done.out),
                (0, &bare(name, &[what]).out),
                "{name} {what}: {}",
                done.err
            );
            assert!(done.out.ends_with("not traced\n"));
        }
    }
}

#[test]
fn a_library_that_is_none_of_ours_is_left_alone() {
    let ends = |library: &str| {
        let done = run(Command::new(program("c99")).env("HETRACE_MARKS", library));
        assert_eq!((done.status, &*done.out), (0, "errno 4711\nnot traced\n"), "{library}");
    };
    ends("");
    ends("/does/not/exist.so");
    ends("/dev/null");
    ends("libm.so.6");
    // A library without our function, and ours in a process that no launcher started.
    let plugin = program("plugin.so");
    ends(plugin.to_str().expect("UTF-8"));
    let ours = hetrace().with_file_name("libhetrace_hetmarks.so");
    assert!(ours.exists());
    ends(ours.to_str().expect("UTF-8"));
}

#[test]
fn programs_say_from_where_to_where_they_are_recorded() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = record(&folder, &["--on-calls"], "c99", &["captures"]);
    assert_eq!((done.status, &*done.out), (0, "traced\n"), "{}", done.err);
    let manifest = std::fs::read_to_string(folder.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let windows = manifest["capture"]["windows"].as_array().expect("windows");
    // A second start inside a window is none; the last window ends with the program.
    assert_eq!(windows.len(), 3, "{windows:?}");
    for (number, window) in windows.iter().enumerate() {
        assert_eq!(window["opened_by"], "call");
        assert_eq!(window["closed_by"].as_str(), (number < 2).then_some("call"), "{windows:?}");
    }
    let calls = calls(&folder);
    let count = |call: &str| calls.iter().filter(|c| c.starts_with(call)).count();
    assert_eq!(
        (count("mark(message=\"mark inside\""), count("mark(message=\"mark outside\"")),
        (3, 0),
        "{calls:?}"
    );
    // Ranges are marked all the same.
    assert_eq!((count("push(message=\"inside\""), count("push(message=\"outside\"")), (3, 3), "{calls:?}");
}

#[test]
fn without_on_calls_all_is_recorded() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    record(&folder, &[], "c99", &["captures"]);
    let calls = calls(&folder);
    let count = |call: &str| calls.iter().filter(|c| c.starts_with(call)).count();
    assert_eq!((count("mark("), count("capture_start()"), count("capture_stop()")), (6, 6, 3), "{calls:?}");
}

#[test]
fn windows_of_ranges_know_them() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = record(&folder, &["--range", "insid*@1..2"], "c99", &["captures"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let marks: Vec<String> = calls(&folder).into_iter().filter(|c| c.starts_with("mark(")).collect();
    assert_eq!(marks, ["mark(message=\"mark inside\", value=3)"]);
    let threads = scratch.path().join("threads");
    record(&threads, &["--range", "of many@0..10", "--on-full", "block"], "c99", &["threads"]);
    let begun = calls(&threads).iter().filter(|c| c.starts_with("mark(")).count();
    // The window ends with the last of 11 ranges. Of 8 threads each of the other 7 can be between its range's begin and its mark then.
    assert!(begun >= 11 - 7, "{begun}");
}
