//! Traces from text, exported and read back by the format's own reader: the same
//! values as a walk finds; whatever becomes of a trace's bytes.

#[path = "../../../report/tests/common/mod.rs"]
mod common;
mod cost;
mod document;
mod foreign;
mod inside;
mod joins;
mod read;
mod seen;
mod states;
mod waits;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use hetrace_export::parquet::{Options, SCHEMA, TABLES, export};
use hetrace_export::{Error, Watch};
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

use self::read::{Row, path, rows, table, text};

const GO_ON: Watch<'static> = &|_| ControlFlow::Continue(());
const ALL: Options = Options { arguments: true, rank: Some(0) };

/// Names and scripts of the golden traces.
fn scripts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    let entries = std::fs::read_dir(folder).expect("the folder").flatten().map(|e| e.path());
    let mut scripts: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).expect("readable");
            let name = p.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, text.split("\n== ").next().unwrap_or("").to_owned())
        })
        .collect();
    // Those of real APIs are many and long.
    scripts.retain(|(_, script)| !script.contains("\n# uses "));
    scripts.sort();
    assert!(scripts.len() > 20);
    scripts
}

fn script(name: &str) -> Trace {
    let all = scripts();
    let (_, script) = all.iter().find(|(n, _)| n == name).expect("a golden trace");
    common::build(script)
}

/// A trace as tables, by name.
fn tables(trace: &Trace) -> (Summary, BTreeMap<&'static str, Vec<Row>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let summary = export(trace, &ALL, GO_ON, folder.path()).expect("an export");
    let all = TABLES.iter().map(|t| (t.name, table(folder.path(), t.name)));
    (summary, all.collect())
}

#[test]
fn rows_are_what_a_walk_finds() {
    let mut rows = 0;
    for (name, script) in scripts() {
        let trace = common::build(&script);
        let (summary, tables) = tables(&trace);
        let seen = seen::seen(&trace);
        assert_eq!(seen::calls(&tables["calls"]), seen.calls, "{name}");
        assert_eq!(seen::commands(&tables["commands"], &tables["calls"]), seen.commands, "{name}");
        rows += seen.calls.len() + seen.commands.len();
        sorted_and_unique(&name, &tables);
        check_trace(&name, &summary, &tables["trace"]);
    }
    assert!(rows > 200, "{rows} rows compared");
}

#[test]
fn calls_say_where_they_were_made() {
    let (_, tables) = tables(&script("stacks"));
    let shown = |row: &Row| {
        let [file, function, stack] = ["source_file", "source_function", "stack"].map(|name| text(row, name));
        format!("{file}|{}|{function}|{stack}", read::number(row, "source_line"))
    };
    let all: Vec<String> = tables["calls"].iter().map(shown).collect();
    let inner = "inner.h:7 in app::inner;run.cpp:20 in app::run;main.cpp:90 in main";
    assert_eq!(all[0], format!("/src/app/inner.h|7|app::inner|{inner}"));
    // Of one stack only library and place are known, of another nothing.
    assert!(
        all.contains(
            &"|-|libsolve.so.2+0x5678|libsolve.so.2+0x5678;[could not be unwound further]".to_owned()
        ),
        "{all:#?}"
    );
    assert!(all.contains(&"|-||".to_owned()), "{all:#?}");
}

#[test]
fn samples_say_where_threads_were() {
    let (_, tables) = tables(&script("cpu_samples"));
    let samples = &tables["samples"];
    let times = rows(samples, "time_ns");
    assert!(times.len() == 7 && times.is_sorted(), "{times:?}");
    let shown = |row: &Row| {
        let [kind, function] = ["kind", "source_function"].map(|name| text(row, name));
        let [tid, cpu, call] = ["tid", "cpu", "call_id"].map(|name| read::number(row, name));
        let inside = &row["in_call"];
        format!("{tid} {cpu} {kind} {inside} {call} {function}")
    };
    let all: Vec<String> = samples.iter().map(shown).collect();
    let expected = [
        "1 2 user false - app::prepare",
        "1 2 user false - app::prepare",
        "1 3 kernel false - main",
        "2 1 user false - libsolve.so.2+0x5678",
        // Through a wrapper of ours: in a call that has no time of its own.
        "1 2 user true - spin",
        "2 1 user false - ",
        "1 2 kernel true 4 spin",
    ];
    assert_eq!(all, expected);
    let finish = tables["calls"].iter().find(|row| read::number(row, "call_id") == "4").expect("the call");
    assert_eq!(text(finish, "name"), "toyFinish");
    assert_eq!(rows(samples, "duration_ns"), [1_000_000; 7]);
    assert_eq!(text(&samples[0], "stack"), "prepare.cpp:20 in app::prepare;main.cpp:90 in main");
}

fn sorted_and_unique(name: &str, tables: &BTreeMap<&str, Vec<Row>>) {
    for (table, id) in [("calls", "call_id"), ("commands", "command_id"), ("ranges", "range_id")] {
        assert!(rows(&tables[table], "start_ns").is_sorted(), "{name}: {table}");
        let mut ids: Vec<i64> = rows(&tables[table], id);
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{name}: {table}");
    }
}

/// The row of the trace says what is missing.
fn check_trace(name: &str, summary: &Summary, rows: &[Row]) {
    let [row] = rows else { panic!("{name}: one row") };
    let number = |column: &str| read::long(&row[column]).expect("a number") as u64;
    assert_eq!(number("schema"), SCHEMA as u64);
    for (column, value) in [
        ("events", summary.events),
        ("calls", summary.calls),
        ("unfinished", summary.unfinished),
        ("orphans", summary.orphans),
        ("commands", summary.commands),
        ("untimed", summary.untimed),
        ("lost_events", summary.lost_events),
        ("lost_packets", summary.lost_packets),
        ("damaged", summary.damaged),
    ] {
        assert_eq!(number(column), value, "{name}: {column}");
    }
}

#[test]
fn calls_that_cause_commands_are_known() {
    let (_, tables) = tables(&script("device"));
    let causes: Vec<(String, Option<i64>)> = tables["commands"]
        .iter()
        .map(|c| (text(c, "kind"), c.get("cause_call_id").and_then(read::long)))
        .collect();
    let names: BTreeMap<i64, String> = tables["calls"]
        .iter()
        .map(|c| (read::long(&c["call_id"]).expect("an id"), text(c, "name")))
        .collect();
    let of: Vec<(&str, &str)> =
        causes.iter().map(|(kind, id)| (kind.as_str(), id.map_or("", |id| names[&id].as_str()))).collect();
    let expected = [
        ("write", "toyWrite"),
        ("kernel", "toyLaunch"),
        ("kernel", "toyLaunch"),
        ("kernel", ""),
        ("kernel", ""),
        ("fill", ""),
        ("copy", ""),
        ("marker", ""),
    ];
    assert_eq!(of, expected);
}

#[test]
fn telemetry_ranges_and_texts_are_there() {
    let (_, telemetry) = tables(&script("telemetry"));
    let samples = hetrace_trace::telemetry::Telemetry::read(&script("telemetry"));
    let values: usize = samples
        .devices()
        .iter()
        .flat_map(|d| &d.series)
        .map(|s| s.samples.len() * s.quantity.fields().len())
        .sum();
    assert!(values > 0);
    assert_eq!(telemetry["telemetry"].len(), values);
    let (_, ranged) = tables(&script("ranges"));
    assert!(!ranged["ranges"].is_empty());
    assert!(ranged["calls"].iter().any(|c| !text(c, "range").is_empty()));
    let (_, layers) = tables(&script("layers"));
    assert!(layers["errors"].iter().any(|e| !text(e, "text").is_empty()));
    for range in &ranged["ranges"] {
        let (start, end) = (read::long(&range["start_ns"]), range.get("end_ns").and_then(read::long));
        let between = start.zip(end).map(|(start, end)| end - start);
        assert_eq!(range.get("duration_ns").and_then(read::long), between);
    }
}

#[test]
fn arguments_can_be_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { arguments: false, rank: Some(3) };
    export(&script("arguments"), &options, GO_ON, folder.path()).expect("an export");
    let calls = read::table_of(folder.path(), "calls", 3);
    assert!(!calls.is_empty());
    for column in ["arguments", "returned", "result"] {
        assert!(calls.iter().all(|c| !c.contains_key(column)), "{column}");
    }
}

/// Row groups are of bounded size, in order, and have what a reader needs to skip them.
#[test]
fn long_traces_have_many_row_groups() {
    let trace = common::long(common::models(), 2, 70_000);
    let folder = tempfile::tempdir().expect("a folder");
    let summary = export(&trace, &ALL, GO_ON, folder.path()).expect("an export");
    let file = std::fs::File::open(path(folder.path(), "calls", 0)).expect("a file");
    let options = parquet::file::serialized_reader::ReadOptionsBuilder::new().with_page_index().build();
    let reader = SerializedFileReader::new_with_options(file, options).expect("a Parquet file");
    let about = reader.metadata();
    assert_eq!(about.file_metadata().num_rows(), summary.calls as i64);
    assert_eq!(about.num_row_groups(), 2);
    assert!(about.offset_index().is_some() && about.column_index().is_some());
    let start = TABLES[0].position("start_ns").expect("a column");
    let mut last = i64::MIN;
    for group in about.row_groups() {
        assert!(group.num_rows() <= 1 << 17);
        assert_eq!(group.sorting_columns().expect("sorted")[0].column_idx as usize, start);
        let statistics = group.column(start).statistics().expect("statistics");
        let bytes = |b: Option<&[u8]>| i64::from_le_bytes(b.expect("a bound").try_into().expect("8 bytes"));
        let (least, most) = (bytes(statistics.min_bytes_opt()), bytes(statistics.max_bytes_opt()));
        assert!(last <= least && least < most);
        last = most;
    }
}

/// What is not whole cannot be read, and what is there is not overwritten.
#[test]
fn a_stop_leaves_nothing_that_looks_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = common::long(common::models(), 1, 20_000);
    let stop: Watch<'_> = &|_| ControlFlow::Break(());
    assert!(matches!(export(&trace, &ALL, stop, folder.path()), Err(Error::Stopped)));
    let file = std::fs::File::open(path(folder.path(), "calls", 0)).expect("a file");
    assert!(SerializedFileReader::new(file).is_err());
    let error = export(&trace, &ALL, GO_ON, folder.path()).expect_err("it is there");
    assert!(error.to_string().contains("calls.parquet"), "{error}");
}

#[derive(Clone, Debug)]
struct Damage {
    script: usize,
    bytes: Vec<(prop::sample::Index, u8)>,
    cut: Option<prop::sample::Index>,
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = (any::<prop::sample::Index>(), any::<u8>());
    let bytes = prop::collection::vec(byte, 0..8);
    (any::<usize>(), bytes, any::<Option<prop::sample::Index>>()).prop_map(|(script, bytes, cut)| Damage {
        script,
        bytes,
        cut,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// No trace makes the export panic; all that a walk counts has rows.
    #[test]
    fn damaged_traces_are_exported(damage in damage()) {
        let scripts = scripts();
        let (_, script) = &scripts[damage.script % scripts.len()];
        let trace = common::build_with(common::models_of(script), script, |bytes| {
            for (at, value) in &damage.bytes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
            }
            if let Some(cut) = &damage.cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
        });
        let (summary, tables) = tables(&trace);
        let of = |state: &str| tables["calls"].iter().filter(|c| text(c, "state") == state).count() as u64;
        prop_assert_eq!(of("unfinished"), summary.unfinished);
        prop_assert_eq!(of("orphan"), summary.orphans);
        prop_assert_eq!(tables["commands"].len() as u64, summary.commands);
        let whole = tables["calls"].iter().filter(|c| ["finished", "folded", "added up"].contains(&text(c, "state").as_str()));
        let counts = whole.map(|c| read::long(&c["count"]).unwrap_or(0) as u64);
        let calls = counts.fold(0u64, u64::saturating_add);
        prop_assert_eq!(calls.min(i64::MAX as u64), summary.calls.min(i64::MAX as u64));
        let starts: Vec<i64> = rows(&tables["calls"], "start_ns");
        prop_assert!(starts.is_sorted());
    }
}
