//! The commands that read: what they promise to scripts.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, hetrace, trace};
use serde_json::Value;

fn command(arguments: &[&str], trace: &Path) -> Done {
    run(Command::new(hetrace()).args(arguments).arg(trace))
}

fn tally(trace: &Path, options: &[&str]) -> Value {
    let done = command(&[&["tally", "--json"], options].concat(), trace);
    assert_eq!(done.status, 0, "{}", done.err);
    serde_json::from_str(&done.out).expect("one JSON object")
}

fn row<'v>(table: &'v Value, name: &str) -> &'v Value {
    let rows = table.as_array().expect("a table");
    rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name} in {table}"))
}

#[test]
fn tally_has_calls_commands_and_traffic() {
    let traced = trace(Platform::Pocl, &["linked", "50", "20", "20"]);
    let tables = tally(&traced.folder, &["--extended"]);
    assert!(tables["schema"].is_u64());
    assert_eq!((&tables["lost_events"], &tables["unfinished_calls"]), (&Value::from(0), &Value::from(0)));
    let call = row(&tables["host"], "clSetKernelArg");
    assert_eq!((&call["calls"], &call["api"], &call["errors"]), (&650.into(), &"opencl".into(), &0.into()));
    for column in ["total_ns", "self_ns", "avg_ns", "min_ns", "max_ns"] {
        assert!(call[column].is_number(), "{column}: {call}");
    }
    let kernels: u64 =
        tables["device"].as_array().expect("rows").iter().filter_map(|r| r["calls"].as_u64()).sum();
    assert_eq!(kernels, 100, "a kernel and a read each time");
    let read = row(&tables["device"], "read");
    assert!(read["device"].is_string() && read["queue"].is_string(), "{read}");
    assert_eq!(row(&tables["traffic"], "read")["bytes"], 50 * 20 * 20 * 4);
}

#[test]
fn what_tracing_took_is_measured_subtracted_and_shown() {
    let traced = trace(Platform::Pocl, &["linked", "200"]);
    let cost = traced.manifest()["cost"].clone();
    let ns = |name: &str| cost[name].as_f64().unwrap_or_else(|| panic!("no {name} in {cost}"));
    for (inside, whole) in [("inside_ns", "call_ns"), ("fold_inside_ns", "fold_ns")] {
        assert!(ns(whole) > 0.0, "{cost}");
        assert!((0.0..=ns(whole)).contains(&ns(inside)), "{cost}");
    }
    // APIs that are only preloaded have a row, too.
    let rows = cost["timing"].as_array().expect("rows");
    let timing = rows.iter().find(|row| row["api"] == "opencl").expect("the API's row");
    let calls = ["calls", "apart_calls"].map(|name| timing[name].as_u64().unwrap_or(0));
    assert_eq!(calls[0] + calls[1], 400, "launches and reads: {cost}");
    assert!(calls[0] > calls[1] && timing["ns"].as_u64() > Some(0), "most are undisturbed: {cost}");

    let (net, gross) = (tally(&traced.folder, &[]), tally(&traced.folder, &["--gross"]));
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
    let rows = |tables: &Value| tables["host"].as_array().expect("rows").clone();
    for row_of in rows(&net) {
        let name = row_of["name"].as_str().expect("a name").to_owned();
        let [min, p50, max] = ["min_ns", "p50_ns", "max_ns"].map(|column| number(&row_of, column));
        let average = row_of["avg_ns"].as_f64().expect("a number");
        assert!(min <= p50 && p50 <= max && average >= min as f64 && average <= max as f64, "{row_of}");
        let recorded = row(&gross["host"], &name).clone();
        assert_eq!(
            number(&recorded, "total_ns"),
            number(&row_of, "total_ns") + number(&row_of, "cost_ns"),
            "{name}"
        );
        assert_eq!(
            number(&recorded, "self_ns"),
            number(&row_of, "self_ns") + number(&row_of, "self_cost_ns"),
            "{name}"
        );
    }
    let tracing = &net["tracing"];
    let calls: u64 = rows(&net).iter().map(|row| number(row, "calls")).sum();
    assert_eq!((&tracing["calls"], &tracing["left_out"]), (&calls.into(), &true.into()));
    assert_eq!(gross["tracing"]["left_out"], false);
    let [total, timed, inside] = ["total_ns", "timing_ns", "inside_ns"].map(|name| number(tracing, name));
    assert!(0 < inside && inside <= total && 0 < timed && timed < total, "{tracing}");
    // What could not be taken off calls that were quicker than on average is in `inside` only.
    let taken: u64 = rows(&net).iter().map(|row| number(row, "self_cost_ns")).sum();
    assert!(taken > 0 && taken <= inside, "{taken} of {tracing}");
    let text = command(&["tally"], &traced.folder).out;
    assert!(text.contains("Tracing overhead: about") && text.contains("(subtracted)"), "{text}");
}

#[test]
fn failed_calls_are_counted_apart() {
    let traced = trace(Platform::Pocl, &["transparent"]);
    let tables = tally(&traced.folder, &[]);
    let errors: u64 =
        tables["host"].as_array().expect("rows").iter().filter_map(|r| r["errors"].as_u64()).sum();
    assert!(errors > 20, "{errors} failed calls");
}

#[test]
fn a_call_without_an_end_is_shown() {
    let traced = trace(Platform::Pocl, &["ending", "hang"]);
    assert_eq!(tally(&traced.folder, &[])["unfinished_calls"], 1);
    let text = command(&["tally"], &traced.folder).out;
    assert!(text.contains("clWaitForEvents") && text.contains("UNFINISHED"), "{text}");
}

/// What a process executes has its ids, and may begin while its main thread is in a call.
#[test]
fn a_program_that_another_executed_is_not_inside_its_call() {
    let traced = trace(Platform::Pocl, &["ending", "execs"]);
    assert_eq!(traced.done.status, 7, "{}", traced.done.err);
    let text = command(&["print", "-c"], &traced.folder).out;
    let mut behind = text.lines().skip_while(|line| !line.contains("clWaitForEvents("));
    assert!(behind.next().is_some_and(|line| line.ends_with("<no end: its thread ended>")), "{text}");
    let calls: Vec<&str> = behind.filter(|line| line.contains("clGetPlatformIDs(")).collect();
    // Outermost calls are not indented.
    assert!(calls.len() >= 1000 && calls.iter().all(|line| !line.contains("  clGetPlatformIDs(")), "{text}");
}

#[test]
fn print_decodes_calls_and_commands() {
    let traced = trace(Platform::Pocl, &["linked", "1"]);
    let text = command(&["print"], &traced.folder).out;
    for part in ["clEnqueueNDRangeKernel(", "work_dim=2", "blocking_read=CL_TRUE", "= CL_SUCCESS", "kernel "]
    {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let events = command(&["print", "--events"], &traced.folder).out;
    assert!(events.lines().count() as u64 >= traced.seen().events);
}

#[test]
fn timeline_is_written_and_never_over_another_file() {
    let traced = trace(Platform::Pocl, &["linked", "20"]);
    let scratch = tempfile::tempdir().expect("scratch");
    let out = scratch.path().join("t.pftrace");
    let line = || {
        let mut command = Command::new(hetrace());
        command.arg("timeline").arg(&traced.folder).arg("-o").arg(&out);
        run(&mut command)
    };
    assert_eq!(line().status, 0);
    assert!(std::fs::metadata(&out).expect("a file").len() > 1000);
    assert_eq!(line().status, 125, "the file is there already");
}

#[test]
fn model_shows_every_parameter() {
    let done = run(Command::new(hetrace()).args(["model", "opencl", "--json"]));
    let model: Value = serde_json::from_str(&done.out).expect("JSON");
    let functions = model["functions"].as_array().expect("functions");
    assert!(functions.len() > 240);
    for f in functions {
        assert!(f["name"].is_string() && f["roles"].is_array());
        for p in f["params"].as_array().expect("params") {
            assert!(p["name"].is_string() && p["type"].is_string(), "{f}");
            assert!(["in", "out", "inout", "none"].iter().any(|d| p["direction"] == **d), "{p}");
            assert!(p["followed"].is_string() != p["waived"].is_string(), "{p}");
        }
    }
    let wrong = run(Command::new(hetrace()).args(["model", "opencl", "clNoSuch"]));
    assert_eq!(wrong.status, 125);
    assert!(wrong.err.contains("clNoSuch"));
}

#[test]
fn garbage_gets_one_clear_line() {
    let scratch = tempfile::tempdir().expect("scratch");
    let none = scratch.path().join("none");
    let file = scratch.path().join("file");
    std::fs::write(&file, "no trace").expect("a file");
    let empty = scratch.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let garbage = scratch.path().join("garbage");
    std::fs::create_dir(&garbage).expect("a folder");
    std::fs::write(garbage.join("metadata"), [0x55u8; 500]).expect("a file");
    for path in [&none, &file, &empty, &garbage] {
        for what in ["tally", "print", "timeline"] {
            let done = command(&[what], path);
            assert_eq!(done.status, 125, "{what} {path:?}: {}", done.err);
            assert_eq!(done.err.lines().count(), 1, "{what} {path:?}: {}", done.err);
            assert!(!done.err.contains("panicked"));
        }
    }
}

#[test]
fn a_trace_that_was_cut_off_opens_and_says_where_it_ends() {
    let traced = trace(Platform::Pocl, &["linked", "200"]);
    let stream = std::fs::read_dir(&traced.folder)
        .expect("a trace")
        .flatten()
        .find(|e| e.file_name().to_string_lossy().starts_with("opencl-"))
        .expect("a stream");
    let bytes = std::fs::read(stream.path()).expect("bytes");
    std::fs::write(stream.path(), &bytes[..bytes.len() * 2 / 3]).expect("written");
    std::fs::remove_file(traced.folder.join("hetrace/manifest.json")).expect("removed");
    let done = command(&["tally"], &traced.folder);
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.out.contains("clSetKernelArg"));
    assert!(done.out.contains("INCOMPLETE"), "{}", done.out);
    assert!(tally(&traced.folder, &[])["cut_at_ns"].is_number());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let traced = trace(Platform::Pocl, &["linked", "2000"]);
    let line = format!("{} print {} | head -1", hetrace().display(), traced.folder.display());
    let done = run(Command::new("bash").args(["-o", "pipefail", "-c", &line]));
    assert_eq!((done.status, done.err.as_str()), (0, ""));
    assert_eq!(done.out.lines().count(), 1);
}

#[test]
fn images_count_with_the_bytes_of_their_pixels() {
    let traced = trace(Platform::Pocl, &["images"]);
    let tables = tally(&traced.folder, &[]);
    let rows = tables["memory"].as_array().expect("rows");
    let images: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "image").collect();
    let sum = |name: &str| images.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
    // Two of 32 x 16 pixels and two of 32 x 16 x 4, of 4 bytes, on each device.
    let devices = sum("allocations") / 4;
    assert!(devices > 0, "{tables}");
    assert_eq!(sum("allocated_bytes"), devices * 2 * (32 * 16 * 4 + 32 * 16 * 4 * 4), "{images:?}");
    assert_eq!((sum("unsized_allocations"), sum("live_bytes")), (0, 0), "{images:?}");
}

#[test]
fn print_is_in_the_order_of_time_and_commands_name_their_call() {
    let traced = trace(Platform::Pocl, &["linked", "30"]);
    let text = command(&["print"], &traced.folder).out;
    let time = |line: &str| line.split(' ').next().and_then(|time| time.parse::<f64>().ok());
    let times: Vec<f64> = text.lines().filter_map(time).collect();
    assert!(times.len() > 100 && times.is_sorted(), "{text}");
    let number =
        |line: &str| line.split_once("  #").and_then(|(_, rest)| rest.split(' ').next()).map(str::to_owned);
    let who = |line: &str| line.split(' ').nth(1).expect("a thread").to_owned();
    let calls: Vec<(String, String)> = text
        .lines()
        .filter(|line| line.contains(" clEnqueue"))
        .filter_map(|line| Some((number(line)?, who(line))))
        .collect();
    let commands: Vec<&str> =
        text.lines().filter(|line| line.contains(" queue 0x") && !line.contains("made on")).collect();
    assert_eq!((calls.len(), commands.len()), (60, 60), "{text}");
    for line in commands {
        let of_call = (number(line).unwrap_or_else(|| panic!("no number: {line}")), who(line));
        assert!(calls.contains(&of_call), "{line}");
    }
    // In a tree they stand below it.
    let tree = command(&["print", "-c"], &traced.folder).out;
    let lines: Vec<&str> = tree.lines().collect();
    let launches = lines.windows(2).filter(|pair| pair[0].contains(" clEnqueueNDRangeKernel("));
    let nested = launches.filter(|pair| pair[1].contains("   queue 0x") && pair[1].contains(": kernel "));
    assert_eq!(nested.count(), 30, "{tree}");
}

#[test]
fn the_first_screen_says_what_was_traced_and_fits() {
    let traced = trace(Platform::Pocl, &["linked", "30"]);
    let with = |name: &str, value: &str, options: &[&str]| {
        run(Command::new(hetrace()).env(name, value).args(options).arg(&traced.folder)).out
    };
    let text = with("COLUMNS", "80", &["tally"]);
    let mut lines = text.lines();
    for label in ["Command:   ", "Time:      ", "Devices:   "] {
        let line = lines.next().expect("a line");
        assert!(line.starts_with(label), "{label}: {text}");
    }
    // The name of a device may be so long that the line goes on below.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("% busy | 60 commands") && words.contains("Recording: nothing lost | overhead"),
        "{text}"
    );
    // The command is a path, which has no place to break.
    let long = text.lines().skip(2).filter(|line| line.chars().count() > 80 && !line.starts_with("Next: "));
    assert_eq!(long.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("Next: hetrace ") && last.contains("trace"), "{last}");
    let narrow = with("COLUMNS", "50", &["tally"]);
    assert!(narrow.contains("(not shown in 50 columns: "), "{narrow}");
    assert!(with("LC_ALL", "C", &["tally"]).is_ascii() && with("LC_ALL", "C", &["print"]).is_ascii());
    assert!(!with("LC_ALL", "C.UTF-8", &["tally"]).is_ascii());
    assert!(serde_json::from_str::<Value>(&with("COLUMNS", "20", &["tally", "--json"])).is_ok());
    // Of a part of the calls there is no memory, and no column that all of them do not have.
    let part = with("COLUMNS", "200", &["tally", "--filter", "clSetKernelArg"]);
    assert!(
        part.contains("clSetKernelArg") && !part.contains("Memory |") && !part.contains("Tracing |"),
        "{part}"
    );
}
