//! Perfetto's own trace processor opens the files, and says of them what `tally` says of the
//! traces. What it needs, `common/perfetto/processor.rs` says.
//!
//! `HETRACE_TRACE` names a recorded trace to be looked at, too; `check_timeline.sh` records one.

use std::collections::BTreeMap;
use std::path::Path;

use hetrace_report::timeline::Options;
use hetrace_report::{tally, timeline};
use hetrace_trace::trace::Trace;
use serde_json::Value;

use super::{common, parts};
use common::perfetto::Processor;

const COUNTS: &str = "select (select count(*) from slice) as slices, (select count(*) from flow) as flows, \
    (select count(*) from counter) as 'values', \
    (select count(*) from stats where value > 0 and severity in ('error', 'data_loss')) as faults";
const CALLS: &str = "select s.name, count(*) as calls, sum(s.dur) as ns, max(s.depth) as depth, \
    sum(extract_arg(s.arg_set_id, 'debug.error') is not null) as errors, \
    sum(extract_arg(s.arg_set_id, 'debug.continued, ns since it began') is not null) as continued \
    from slice s join thread_track t on s.track_id = t.id \
    where s.name != 'command done' group by s.name order by s.name";
const COMMANDS: &str = "select sum(s.dur) as ns, count(*) as commands, \
    sum(extract_arg(s.arg_set_id, 'debug.continued, ns since it began') is not null) as continued \
    from slice s join track t on s.track_id = t.id \
    where t.type not like 'thread%' and (t.name like 'queue %' or t.name like 'stream %') \
    and extract_arg(s.arg_set_id, 'debug.times_error') is null";
const WAITS: &str = "select count(*) as ends from slice where name = 'command done'";
const INTO_WAITS: &str = "select count(*) as arrows from flow f join slice s on f.slice_in = s.id \
    where s.name = 'command done'";

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or(0)
}

#[test]
fn perfetto_finds_what_was_drawn() {
    let Some(mut processor) = Processor::find() else { return };
    let mut expected = Vec::new();
    for (name, trace) in parts::golden() {
        for part_slices in [u64::MAX, 20] {
            let options = Options { part_slices, ..Options::default() };
            for file in parts::draw(&trace, &options).1 {
                expected.push(common::perfetto::check(&common::perfetto::parse(&file)));
                processor.ask(&name, &file, &[COUNTS]);
            }
        }
    }
    let names = processor.files.clone();
    for ((answer, name), expected) in processor.answers().iter().zip(names).zip(expected) {
        let row = &answer[0][0];
        let found = ["slices", "flows", "values", "faults"].map(|column| number(row, column));
        let expected = [expected.slices, expected.flows, expected.values, 0].map(|n| n as u64);
        assert_eq!(found, expected, "{name}");
    }
}

/// Calls by name, commands, errors, depths and arrows, of one file and of several.
#[test]
fn perfetto_and_tally_agree() {
    let Some(mut processor) = Processor::find() else { return };
    // Those whose calls end properly: others are drawn shorter than they are reported.
    let of_golden = |name: &str| matches!(name, "layers" | "device" | "errors" | "threads" | "why_overlap");
    let mut traces = parts::golden();
    traces.retain(|(name, _)| of_golden(name));
    assert!(traces.len() >= 3);
    if let Some(path) = std::env::var_os("HETRACE_TRACE") {
        traces.push(("recorded".to_owned(), Trace::open(Path::new(&path)).expect("a trace")));
    }
    let mut asked = Vec::new();
    for (name, trace) in &traces {
        let large = name == "recorded";
        for part_slices in [u64::MAX, if large { 1_000 } else { 9 }] {
            let (_, files) = parts::draw(trace, &Options { part_slices, ..Options::default() });
            let first = processor.files.len();
            for file in &files {
                processor.ask(name, file, &[CALLS, COMMANDS, WAITS, INTO_WAITS, COUNTS]);
            }
            asked.push((name, trace, first..processor.files.len()));
        }
    }
    let answers = processor.answers();
    for (name, trace, files) in asked {
        compare(name, trace, &answers[files]);
    }
}

fn compare(name: &str, trace: &Trace, files: &[Value]) {
    let tally = tally::tally(trace, &tally::Options::default());
    let mut calls: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let mut commands = [0, 0];
    let mut depth = 0;
    for file in files {
        for row in file[0].as_array().expect("rows") {
            let sums = calls.entry(row["name"].as_str().unwrap_or("").to_owned()).or_default();
            sums[0] += number(row, "calls") - number(row, "continued");
            sums[1] += number(row, "ns");
            sums[2] += number(row, "errors");
            depth = depth.max(number(row, "depth"));
        }
        let row = &file[1][0];
        commands[0] += number(row, "commands") - number(row, "continued");
        commands[1] += number(row, "ns");
        // Each end of a wait has its arrow.
        assert!(number(&file[3][0], "arrows") >= number(&file[2][0], "ends"), "{name}");
        assert_eq!(number(&file[4][0], "faults"), 0, "{name}");
    }
    let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for row in tally.host.iter().filter(|row| row.folded + row.added_up == 0) {
        let sums = expected.entry(row.name.clone()).or_default();
        // Slices are as long as was recorded.
        let time = row.total_ns + row.cost_ns + row.error_ns + row.error_cost_ns;
        *sums = [sums[0] + row.calls, sums[1] + time, sums[2] + row.errors];
    }
    // The annotation of the error cannot be distinguished from that of such a parameter.
    let param = |name: &str| {
        let mut all = trace.models().iter().flat_map(|m| &m.functions);
        all.any(|f| f.name == name && f.params.iter().any(|p| p.name == "error"))
    };
    for sums in [&mut calls, &mut expected] {
        sums.iter_mut().filter(|(name, _)| param(name)).for_each(|(_, sums)| sums[2] = 0);
    }
    for row in &tally.unfinished {
        // How long they took, nobody knows.
        expected.remove(&row.name);
    }
    calls.retain(|name, _| expected.contains_key(name));
    assert_eq!(calls, expected, "{name}");
    let device = |f: fn(&tally::DeviceRow) -> u64| tally.device.iter().map(f).sum::<u64>();
    assert_eq!(commands[0], device(|row| row.calls - row.untimed), "{name}: commands");
    if tally.device.iter().all(|row| row.errors == 0) {
        assert_eq!(commands[1], device(|row| row.total_ns), "{name}: time of commands");
    }
    assert_eq!(depth, depth_of(trace), "{name}: depth");
}

/// How many calls lie inside one another, less one.
fn depth_of(trace: &Trace) -> u64 {
    let mut bytes = Vec::new();
    timeline::timeline(trace, &Options::default(), &mut bytes).expect("memory");
    let drawing = common::perfetto::parse(&bytes);
    let threads: Vec<u64> = drawing.tracks().filter(|t| t.is_thread).map(|t| t.uuid).collect();
    let (mut open, mut most) = (BTreeMap::new(), 0);
    for event in drawing.events().filter(|event| threads.contains(&event.track)) {
        let open: &mut i64 = open.entry(event.track).or_default();
        *open += match event.kind {
            1 => 1,
            2 => -1,
            _ => 0,
        };
        most = most.max(*open);
    }
    u64::try_from(most - 1).unwrap_or(0)
}
