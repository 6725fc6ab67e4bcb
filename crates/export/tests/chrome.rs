//! Chrome's trace events: that they are JSON, what is in them, and that Perfetto reads them.

#[path = "../../report/tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use common::perfetto::Processor;
use hetrace_export::Error;
use hetrace_export::chrome::{Options, STATES, write};
use hetrace_report::tally;
use hetrace_trace::system::State;
use hetrace_trace::trace::Trace;
use serde_json::Value;

fn golden() -> Vec<(String, Trace)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "txt") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, common::build(text.split("\n== ").next().unwrap_or(""))));
        }
    }
    all
}

fn written(trace: &Trace) -> (String, Vec<Value>) {
    let mut bytes = Vec::new();
    let written = write(trace, &Options::default(), &mut bytes, &|_| ControlFlow::Continue(()));
    let text = String::from_utf8(bytes).expect("UTF-8");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events").clone();
    assert_eq!(written.expect("memory takes it").events, events.len() as u64);
    (text, events)
}

#[test]
fn calls_say_where_they_were_made() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/stacks.txt");
    let text = std::fs::read_to_string(path).expect("readable");
    let (_, events) = written(&common::build(text.split("\n== ").next().unwrap_or("")));
    let launch = events.iter().find(|e| e["name"] == "toyLaunch").expect("a call");
    assert_eq!(launch["args"]["called at"], "inner.h:7 in app::inner");
    let stack = "inner.h:7 in app::inner;run.cpp:20 in app::run;main.cpp:90 in main";
    assert_eq!(launch["args"]["call stack"], stack);
}

/// Every call and command is there once, every arrow has two ends, and every row a name.
#[test]
fn all_is_there() {
    for (name, trace) in golden() {
        let (_, events) = written(&trace);
        let of = |kind: &str| events.iter().filter(|e| e["ph"] == kind).collect::<Vec<_>>();
        let tables = tally::tally(&trace, &tally::Options::default());
        let is_range = |name: &str| {
            let mut all = trace.models().iter().flat_map(|m| &m.functions);
            let f = all.find(|f| f.name == name);
            f.is_some_and(|f| {
                f.roles.iter().any(|r| r.starts_with("range-") || r.starts_with("counter-") || r == "mark")
            })
        };
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for row in tables.host.iter().filter(|row| !is_range(&row.name)) {
            *calls.entry(row.name.clone()).or_default() += row.calls - row.folded - row.added_up;
        }
        for row in tables.unfinished.iter().filter(|row| !is_range(&row.name)) {
            *calls.entry(row.name.clone()).or_default() += row.calls;
        }
        calls.retain(|_, calls| *calls > 0);
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let on_thread = |e: &&&Value| e["tid"].as_u64() < Some(hetrace_export::chrome::QUEUES);
        let folded = |e: &&&Value| e["args"]["ns inside them"].is_null();
        for event in of("X").iter().filter(on_thread).filter(folded) {
            *found.entry(event["name"].as_str().unwrap_or("").to_owned()).or_default() += 1;
        }
        assert_eq!(found, calls, "{name}");
        // Nodes of graphs that are only counted are no samples, and have no slices.
        let samples = |r: &tally::DeviceRow| r.samples.unwrap_or(r.calls - r.of_graphs);
        let timed: u64 = tables.device.iter().map(|r| samples(r) - (r.untimed - r.of_graphs)).sum();
        let (states, commands): (Vec<&Value>, Vec<&Value>) =
            of("X").into_iter().filter(|e| !on_thread(&e)).partition(|e| e["cat"] == "os");
        assert_eq!(commands.len() as u64, timed, "{name}");
        let stretches = trace.system().map_or(&[][..], |s| &s.lives).iter().flat_map(|l| &l.stretches);
        assert_eq!(states.len(), stretches.filter(|s| s.state != State::Unknown).count(), "{name}");
        let ids = |kind| of(kind).iter().map(|e| e["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids("s"), ids("f"), "{name}");
        let named = |e: &Value| of("M").iter().any(|m| m["pid"] == e["pid"] && m["tid"] == e["tid"]);
        assert!(of("X").iter().all(|e| named(e)), "{name}");
        let (begun, ended) = (of("b"), of("e"));
        assert!(
            ended.iter().all(|e| begun.iter().any(|b| b["id"] == e["id"] && b["cat"] == e["cat"])),
            "{name}"
        );
        assert_eq!(begun.len(), ended.len(), "{name}");
    }
}

#[test]
fn events_are_as_the_format_has_them() {
    let script = "
1000 1.1 * device device=1 handle=0xd name=\"Toy GPU\"
1000 1.1 * queue queue=1 handle=0x10 context=0x1 device=1 api=\"toy\"
1100 1.1 > toyWrite queue=0x10 buffer=0xb size=4096 data=0x7fff
1150 1.1 < toyWrite result=-5
2000 1.1 * write queue=1 cause_tid=1 cause_before=900 bytes=4096 duration=1000
";
    let (text, _) = written(&common::build(script));
    let expected = r#"{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"process"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"app"}},
"#;
    assert!(text.starts_with(expected), "{text}");
    for line in [
        r#""ts":0.100,"dur":0.050,"cat":"toy","name":"toyWrite","args":{"queue":"0x10","#,
        r#""error":"#,
        r#"{"ph":"X","pid":1,"tid":8388608,"ts":1.000,"cat":"write","name":"write","dur":1.000,"args":{"bytes":4096}}"#,
        r#"{"ph":"s","pid":1,"tid":1,"ts":0.100,"cat":"enqueue","name":"enqueue","id":1}"#,
        r#"{"ph":"f","pid":1,"tid":8388608,"ts":1.000,"cat":"enqueue","name":"enqueue","id":1,"bp":"e"}"#,
        r#"{"ph":"C","pid":1,"tid":0,"ts":0.100,"name":"Toy GPU: queue 1 of context 1 (0x10): commands in flight","args":{"commands":1}}"#,
        r#"],"otherData":{"tool":"hetrace"}}"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// From the command that a wait ended on to the call that waited, by the rule of all reports.
#[test]
fn waits_have_arrows() {
    let script = "
1000 1.1 * device device=1 handle=0xd name=\"Toy GPU\"
1000 1.1 * queue queue=1 handle=0x10 context=0x1 device=1 api=\"toy\"
1100 1.1 > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]
1150 1.1 < toyLaunch result=0
1200 1.1 > toyFinish queue=0x10
1300 1.1 * kernel queue=1 cause_tid=1 cause_before=200 duration=100
1500 1.1 * kernel queue=1 cause_tid=1 cause_before=400 duration=1000
3000 1.1 < toyFinish result=0
3100 1.1 > toyFinish queue=0x10
3200 1.1 < toyFinish result=0
";
    let (_, events) = written(&common::build(script));
    let ends: Vec<&Value> = events.iter().filter(|e| e["cat"] == "wait").collect();
    let [from, to] = ends[..] else { panic!("{ends:?}") };
    assert!(from["ph"] == "s" && from["tid"] == hetrace_export::chrome::QUEUES, "{ends:?}");
    assert!(to["ph"] == "f" && to["tid"] == 1, "{ends:?}");
    let time = |e: &Value| (e["ts"].as_f64().expect("a time") * 1e3).round() as u64;
    // Within the second kernel, which ends at 2500, and within the first wait.
    assert_eq!((time(from), time(to)), (1499, 1500), "{ends:?}");
}

/// Ranges between probes in the program's code are there as others are, of a thread without calls, too.
#[test]
fn ranges_between_probes_are_there() {
    let (_, trace) = golden().into_iter().find(|(name, _)| name == "probe_ranges").expect("a golden trace");
    let (_, events) = written(&trace);
    let of = |kind: &str, tid: u64| {
        let all = events.iter().filter(|e| e["ph"] == kind && e["cat"] == "range" && e["tid"] == tid);
        all.map(|e| {
            (e["name"].as_str().unwrap_or(""), (e["ts"].as_f64().unwrap_or(0.0) * 1e3).round() as u64)
        })
        .collect::<Vec<_>>()
    };
    let (begun, ended) = (of("b", 1), of("e", 1));
    assert_eq!((begun.len(), ended.len()), (13, 13));
    assert_eq!(
        (begun[0], ended[0]),
        (("app:step (entry..return)", 10_000), ("app:step (entry..return)", 100_000))
    );
    let open = events.iter().filter(|e| e["ph"] == "e" && e["args"]["unfinished"].is_string()).count();
    assert_eq!(open, 1);
    assert_eq!(of("b", 7), [("io:read (start..done)", 5_000)]);
    assert_eq!(of("e", 7), [("io:read (start..done)", 1_150_000)]);
}

#[test]
fn damaged_traces_are_json() {
    let text = include_str!("../../report/tests/golden/arguments.txt");
    let script = text.split("\n== ").next().unwrap_or("");
    for seed in 0..60_usize {
        let mut at = seed;
        let trace = common::build_with(common::models_of(script), script, |bytes| {
            at = at.wrapping_mul(25_214_903_917).wrapping_add(11) >> 3;
            let behind = bytes.len().saturating_sub(104).max(1);
            if let Some(byte) = bytes.get_mut(104 + at % behind) {
                *byte = (at >> 8) as u8;
            }
        });
        written(&trace);
    }
}

#[test]
fn it_can_be_stopped() {
    let mut script = String::new();
    for i in 0..40_000 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
    }
    let stopped =
        write(&common::build(&script), &Options::default(), &mut Vec::new(), &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Stopped)));
}

#[test]
fn perfetto_reads_it() {
    let Some(mut processor) = Processor::find() else { return };
    const FOUND: &str = "select (select count(*) from slice s join thread_track t on s.track_id = t.id \
        where s.dur >= 0) as slices, (select count(*) from flow) as flows, \
        (select count(*) from counter) as 'values', \
        (select count(*) from stats where value > 0 and severity in ('error', 'data_loss')) as faults";
    let mut expected = Vec::new();
    for (name, trace) in golden() {
        if !matches!(name.as_str(), "arguments" | "device" | "errors" | "layers" | "threads" | "telemetry") {
            continue;
        }
        let (text, events) = written(&trace);
        let count = |kind: &[&str]| {
            events.iter().filter(|e| e["ph"].as_str().is_some_and(|ph| kind.contains(&ph))).count()
        };
        let counters: usize = events
            .iter()
            .filter(|e| e["ph"] == "C")
            .map(|e| e["args"].as_object().map_or(0, serde_json::Map::len))
            .sum();
        expected.push([count(&["X", "i"]), count(&["f"]), counters, 0]);
        processor.ask(&format!("{name}.json"), text.as_bytes(), &[FOUND]);
    }
    assert!(expected.len() > 3);
    let names = processor.files.clone();
    for ((answer, name), expected) in processor.answers().iter().zip(names).zip(expected) {
        let found = ["slices", "flows", "values", "faults"].map(|column| answer[0][0][column].as_u64());
        assert_eq!(found, expected.map(|n| Some(n as u64)), "{name}");
    }
}

#[test]
fn states_of_threads_are_a_strip_for_each() {
    let trace = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
        let text = std::fs::read_to_string(folder.join(name)).expect("readable");
        common::build(text.split("\n== ").next().unwrap_or(""))
    };
    let (_, without) = written(&trace("stacks.txt"));
    assert!(without.iter().all(|e| e["cat"] != "os"));
    let (_, events) = written(&trace("system.txt"));
    let states: Vec<&Value> = events.iter().filter(|e| e["cat"] == "os").collect();
    let of = |name: &str| *states.iter().find(|e| e["name"] == name).expect("such a state");
    let lock = of("blocked: lock");
    assert_eq!((&lock["ts"], &lock["dur"]), (&2.0.into(), &6.0.into()));
    assert_eq!(lock["args"]["lock"], "0xabc");
    assert_eq!(lock["args"]["held by"], "builder (2)");
    let ready = states.iter().filter(|e| e["name"] == "waiting for a CPU");
    let behind: Vec<&str> = ready.filter_map(|e| e["args"]["who has it"].as_str()).collect();
    assert_eq!(behind, ["hog (70)", "hog (71)"]);
    assert_eq!(of("interrupted: disk")["args"]["CPU"], 0);
    let row = STATES + 1;
    assert_eq!((&lock["pid"], &lock["tid"]), (&1.into(), &row.into()));
    let named = events.iter().find(|e| e["name"] == "thread_name" && e["tid"] == row).expect("a name");
    assert_eq!(named["args"]["name"], "app (1): state");
    assert!(states.iter().any(|e| e["tid"] == row + 1), "the other thread has none");
}
