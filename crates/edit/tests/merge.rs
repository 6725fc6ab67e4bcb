//! Merging traces: nothing is lost, nothing is doubled, and nobody is taken for another.

mod common;
#[path = "common/machine.rs"]
mod machine;
#[path = "../../report/tests/common/mod.rs"]
mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::{babeltrace, files, go_on};
use hetrace_ctf::Value;
use hetrace_ctf::class::{EnvValue, Scope};
use hetrace_ctf::read::Trace;
use hetrace_edit::{Error, Form, Merged, PackOptions, merge, pack};
use hetrace_report::tally::{Aggregate, By, Options, Query, Tally, aggregate};
use hetrace_trace::telemetry::Telemetry;
use machine::{HERE, Machine, ORIGIN, write};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn manifest(folder: &Path) -> Json {
    serde_json::from_slice(&fs::read(folder.join("hetrace/manifest.json")).unwrap()).unwrap()
}

fn merged(paths: &[&Path], folder: &Path) -> Merged {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    merge(&paths, folder, Form::Plain, &go_on).unwrap()
}

fn tally(path: &Path, by: &[By]) -> Aggregate {
    let trace = hetrace_trace::trace::Trace::open(path).unwrap();
    assert_eq!(trace.problems(), [""; 0]);
    let query = Query { by: by.to_vec(), ..Query::default() };
    aggregate(&trace, &Options::default(), &query).expect("nobody stops it")
}

/// Without what is of each trace.
fn plain(aggregate: &Aggregate) -> Tally {
    let mut tally = aggregate.tally();
    tally.traces.clear();
    tally.command.clear();
    tally.notes.clear();
    // They stand in the order in which they appear.
    tally.apis.sort_by(|a, b| a.api.cmp(&b.api));
    tally.duration_ns = 0;
    // How busy a device was is a share of each trace's own time, in which it has a row of its own.
    let rows = &mut tally.utilization;
    rows.iter_mut().for_each(|row| (row.busy_ns, row.percent, row.processes) = (0, 0.0, 0));
    rows.sort_by(|a, b| a.device.cmp(&b.device));
    rows.dedup_by(|row, first| {
        let same = row.device == first.device;
        first.commands += if same { row.commands } else { 0 };
        same
    });
    tally
}

/// What an event says, apart from what depends on the trace it is in: times are of UTC,
/// ids and numbers are left out.
fn said(event: &hetrace_ctf::read::Event<'_, '_>, numbers: bool) -> String {
    let Value::Struct(mut fields) = event.value(Scope::EventFields).unwrap() else { unreachable!() };
    let origin = event.clock().unwrap().ns_from_origin(0).unwrap();
    let device = !event.class().name.starts_with("toy");
    for (name, value) in &mut fields {
        match (name.as_str(), &*value) {
            ("first" | "last", Value::Unsigned(time)) => *value = Value::Signed(*time as i64 + origin),
            ("cause_tid", _) => *value = Value::Unsigned(0),
            ("queue" | "function" | "peer" | "device", _) if device && !numbers => {
                *value = Value::Unsigned(0);
            }
            _ => {}
        }
    }
    format!("{} {} {fields:?}", event.ns_from_origin().unwrap(), event.class().name)
}

/// What each thread did, in order, without who it was; sorted.
fn threads(path: &Path, numbers: bool) -> Vec<Vec<String>> {
    let trace = Trace::open(path).unwrap();
    let mut all: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.expect("no damage");
            let id = |name| event.get_in(Scope::PacketContext, name).unwrap().as_i64().unwrap();
            let cause = event.get("cause_tid").and_then(|v| v.as_u64()).unwrap_or(0) as i64;
            let thread = if cause == 0 { id("vtid") } else { cause };
            all.entry((id("vpid"), thread)).or_default().push(said(&event, numbers));
        }
        assert_eq!(stream.losses().packets, 0);
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.iter_mut().for_each(|events| events.sort());
    all.sort();
    all
}

/// Calls and commands of one process: how long each takes, and whether it fails.
#[derive(Clone, Debug)]
struct Process {
    pid: u32,
    begin: u64,
    calls: Vec<(u64, u64, bool)>,
    base: bool,
}

fn text(processes: &[Process]) -> String {
    let mut text = String::new();
    for (n, process) in (1..).zip(processes) {
        let (pid, mut time) = (process.pid, process.begin);
        let tid = pid + 1;
        let mut line = |time: u64, rest: &str| writeln!(text, "{time} {pid}.{rest}").unwrap();
        line(0, &format!("{tid} * device device={n} handle=0xd{pid} name=\"Toy GPU\" uuid=\"GPU-{pid}\""));
        line(0, &format!("{tid} * queue queue={n} handle=0x10 device={n} api=\"toy\""));
        line(0, &format!("{tid} * function function={n} name=\"_Z{pid}stepPf\" registers=32"));
        for (call, command, fails) in &process.calls {
            line(time, &format!("{tid} > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]"));
            if process.base {
                line(time, &format!("{tid} > baseWait"));
                line(time + call, &format!("{tid} < baseWait"));
            }
            let start = time;
            time += call;
            line(time, &format!("{tid} < toyLaunch result={}", if *fails { -5 } else { 0 }));
            let common = format!("queue={n} cause_tid={tid} cause_before={call} duration={command}");
            line(start + call, &format!("{pid} * kernel function={n} {common} global=[64]"));
            let peer = if *fails { format!("status=[-5] peer=[{n}]") } else { "bytes=4096".to_owned() };
            line(start + call, &format!("{pid} * copy {common} {peer} to=device"));
            let (first, last) = (time, time + 1);
            line(time + 1, &format!("{tid} ~ toyPoll count=9 first={first} last={last} total=1"));
            time += 2 + command;
        }
    }
    text
}

fn process() -> impl Strategy<Value = Process> {
    let call = (1u64..1 << 29, 0u64..1 << 29, any::<bool>());
    let calls = prop::collection::vec(call, 1..8);
    // Few ids, so that they clash; now and then later than the clock of a header goes.
    (100u32..104, 1u64..6_000_000_000, calls, prop::bool::weighted(0.2))
        .prop_map(|(pid, begin, calls, base)| Process { pid: 2 * pid, begin, calls, base })
}

fn processes() -> impl Strategy<Value = Vec<Process>> {
    prop::collection::vec(process(), 1..4).prop_map(|mut all| {
        let mut seen = BTreeSet::new();
        all.retain(|process| seen.insert(process.pid));
        all
    })
}

fn machine() -> impl Strategy<Value = Machine> {
    let other = (8u8..10, prop_oneof![-20_000_000_000i64..20_000_000_000, Just(3 << 32)])
        .prop_map(|(boot, offset)| Machine { boot, offset });
    prop_oneof![Just(HERE), other]
}

/// Three, of which each boot has one offset: else the last trace of three can only keep its
/// distance to one of the others.
fn machines() -> impl Strategy<Value = [Machine; 3]> {
    ([7u8..10, 7u8..10, 7u8..10], [-20_000_000_000i64..20_000_000_000, -9i64..9]).prop_map(
        |(boots, offsets)| {
            let offset = |boot| offsets.get(usize::from(boot - 7)).copied().unwrap_or(0);
            boots.map(|boot| Machine { boot, offset: offset(boot) })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tallies_add_up(a in processes(), b in processes(), there in machine(), itself in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let [pa, pb, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
        write(&pa, &text(&a), &HERE);
        let b = if itself { a } else { b };
        write(&pb, &text(&b), &there);
        let done = merged(&[&pa, &pb], &all);
        prop_assert_eq!(&done.problems, &[""; 0]);
        for by in [&[][..], &[By::Device, By::Name], &[By::Error]] {
            let mut sum = tally(&pa, by);
            sum.merge(tally(&pb, by)).expect("alike");
            prop_assert_eq!(plain(&tally(&all, by)), plain(&sum));
        }
        // The same that each thread did in either.
        let mut expected = threads(&pa, false);
        expected.extend(threads(&pb, false));
        expected.sort();
        prop_assert_eq!(threads(&all, false), expected);
    }

    #[test]
    fn merging_is_associative(
        traces in [processes(), processes(), processes()],
        machines in machines(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c, ab, bc, left, right, flat] =
            ["a", "b", "c", "ab", "bc", "left", "right", "flat"].map(|name| dir.path().join(name));
        for ((path, processes), machine) in [&a, &b, &c].into_iter().zip(&traces).zip(&machines) {
            write(path, &text(processes), machine);
        }
        merged(&[&a, &b], &ab);
        merged(&[&b, &c], &bc);
        merged(&[&ab, &c], &left);
        merged(&[&a, &bc], &right);
        merged(&[&a, &b, &c], &flat);
        let expected = threads(&flat, true);
        for other in [&left, &right] {
            prop_assert_eq!(&threads(other, true), &expected);
            prop_assert_eq!(plain(&tally(other, &[])), plain(&tally(&flat, &[])));
            let (one, all) = (manifest(other), manifest(&flat));
            // Each process by what it was called, on which machine.
            let ids = |manifest: &Json| -> Vec<Vec<u64>> {
                let entries = manifest["merged"].as_array().unwrap().iter();
                let own = |entry: &Json| entry["pids"].as_array().unwrap().iter()
                    .map(|pair| pair[1].as_u64().unwrap()).collect();
                entries.map(own).collect()
            };
            prop_assert_eq!(ids(&one), ids(&all));
            let news: Vec<u64> = one["merged"].as_array().unwrap().iter()
                .flat_map(|entry| entry["pids"].as_array().unwrap())
                .map(|pair| pair[0].as_u64().unwrap()).collect();
            let there: BTreeSet<u64> = news.iter().copied().collect();
            prop_assert_eq!(there.len(), news.len(), "an id is two processes'");
            for name in ["clocks", "exit", "command", "host"] {
                prop_assert_eq!(&one[name], &all[name]);
            }
        }
    }

    #[test]
    fn damage_stays_damage(a in processes(), at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let dir = tempfile::tempdir().unwrap();
        let [pa, pb, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
        write(&pa, &text(&a), &HERE);
        write(&pb, &text(&a), &Machine { boot: 8, offset: -1 });
        let victims: Vec<_> = files(&pa).into_iter().filter(|(name, _)| !name.contains('/')).collect();
        let (name, mut bytes) = victims[at.index(victims.len())].clone();
        let place = at.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        fs::write(pa.join(name), bytes).unwrap();
        match merge(&[pb.clone(), pa.clone()], &all, Form::Plain, &go_on) {
            Ok(_) => {
                hetrace_trace::trace::Trace::open(&all).unwrap();
            }
            Err(_) => prop_assert!(!all.exists()),
        }
    }
}

const SMALL: &str = r#"
    0  200.200 * queue queue=1 handle=0x10 device=1 api="toy"
    10 200.201 > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]
    20 200.201 < toyLaunch result=0
    20 200.200 * kernel queue=1 cause_tid=201 cause_before=10 duration=5
    0  9.9 ^ device device=0 index=0 source="fake" uuid="GPU-1" name="Toy GPU"
    1  9.9 ^ power device=0 milliwatts=100
    manifest {"command":["./app"],"version":"1","end_ns":100,"job":{"PMI_RANK":3},"processes":[{"pid":200,"parent":9,"command":["./app"],"job":{"PMI_RANK":3}}],"losses":{"records":3,"calls":2,"threads":[{"pid":200,"tid":202,"name":"w","api":"toy","records":3,"calls":2}]},"device_clocks":[{"pid":200,"device":"0xd","name":"Toy GPU","error_ns":7}],"notes":["something"],"telemetry":{"period_ns":10,"devices":[{"device":0,"uuid":"GPU-1"}],"records":2}}
"#;

#[test]
fn the_least_that_recording_took_counts() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c, ab, abc] = ["a", "b", "c", "ab", "abc"].map(|name| dir.path().join(name));
    let with = |cost: &str| SMALL.replace(r#""version":"1""#, &format!(r#""version":"1"{cost}"#));
    write(&a, &with(r#","cost":{"call_ns":30.5,"inside_ns":9.5,"fold_ns":20.5}"#), &HERE);
    write(&b, &with(r#","cost":{"call_ns":25.5,"inside_ns":11.5,"fold_ns":20.5}"#), &HERE);
    write(&c, SMALL, &HERE);
    let notes = merged(&[&a, &b], &ab).notes;
    assert!(notes.iter().any(|note| note.contains("the smallest is subtracted")), "{notes:?}");
    let least =
        json!({"call_ns": 25.5, "inside_ns": 9.5, "fold_ns": 20.5, "fold_inside_ns": 0.0, "least_ns": 0.0});
    assert_eq!(manifest(&ab)["cost"], least);
    assert!(merged(&[&a, &c], &abc).notes.iter().any(|note| note.contains("none is subtracted")));
    assert!(manifest(&abc)["cost"].is_null());
}

#[test]
fn a_trace_and_itself_have_one_cost() {
    let dir = tempfile::tempdir().unwrap();
    let [a, twice] = ["a", "twice"].map(|name| dir.path().join(name));
    let cost = r#","cost":{"call_ns":30.5,"inside_ns":9.5,"timing":[{"api":"toy","calls":2,"ns":70}]}"#;
    write(&a, &SMALL.replace(r#""version":"1""#, &format!(r#""version":"1"{cost}"#)), &HERE);
    let notes = merged(&[&a, &a], &twice).notes;
    assert!(notes.iter().all(|note| !note.contains("overhead per call")), "{notes:?}");
    // What timing took is the sum of both.
    assert_eq!(manifest(&twice)["cost"]["timing"][0]["ns"], 140);
}

/// A later version may have written them: how they are to be joined is not known.
#[test]
fn members_of_a_later_version_are_left_out_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
    let later = SMALL.replace(r#""version":"1""#, r#""version":"9","weather":{"sun":1}"#);
    let later = later.replace(r#""losses":{"#, r#""losses":{"lemons":2,"#);
    write(&a, &later, &HERE);
    write(&b, SMALL, &Machine { boot: 8, offset: 0 });
    let notes = merged(&[&a, &b], &all).notes;
    assert!(
        notes.iter().any(|n| n.contains("of a has") && n.ends_with("losses.lemons, weather")),
        "{notes:?}"
    );
    let written = manifest(&all);
    assert_eq!((&written["weather"], &written["losses"]["lemons"]), (&Json::Null, &Json::Null));
    assert_eq!(written["version"], "9,1");
    assert!(written["notes"].as_array().unwrap().iter().any(|n| n.as_str().unwrap().contains("weather")));
}

#[test]
fn insides_of_kernels_are_left_out_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
    write(&a, SMALL, &HERE);
    write(&b, SMALL, &Machine { boot: 8, offset: 0 });
    std::fs::create_dir(b.join("inside")).unwrap();
    std::fs::write(b.join("inside/7-0.pool"), "").unwrap();
    let notes = merged(&[&a, &b], &all).notes;
    let said: Vec<&String> = notes.iter().filter(|note| note.contains("inside of kernels")).collect();
    assert!(matches!(&said[..], [one] if one.contains("kernels of b: left out")), "{notes:?}");
}

#[test]
fn equal_ids_stay_apart_and_the_manifest_lists_them() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
    write(&a, SMALL, &HERE);
    write(&b, SMALL, &Machine { boot: 8, offset: 1000 });
    let done = merged(&[&a, &b], &all);
    assert!(done.notes.iter().any(|note| note.contains("200 → ")), "{:?}", done.notes);
    assert!(done.notes.iter().any(|note| note.contains("wall clocks")), "{:?}", done.notes);

    let trace = Trace::open(&all).unwrap();
    let (mut tids, mut causes, mut queues) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut streams = BTreeMap::new();
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.unwrap();
            let id = |name| event.get_in(Scope::PacketContext, name).unwrap().as_i64().unwrap();
            tids.insert((id("vpid"), id("vtid")));
            let stream = (event.stream_class().id, event.packet().stream_instance_id);
            let name = event.stream_name();
            assert_eq!(*streams.entry(stream).or_insert(name), name, "two files are one stream: {stream:?}");
            if event.class().name == "device:kernel" {
                let get = |name| event.get(name).unwrap().as_u64().unwrap();
                causes.insert((id("vpid"), get("cause_tid") as i64));
                queues.insert(get("queue"));
            }
        }
    }
    assert_eq!(tids.len(), 6, "three threads of each: {tids:?}");
    assert!(causes.is_subset(&tids) && causes.len() == 2, "{causes:?} in {tids:?}");
    assert!(tids.iter().all(|&(pid, tid)| (pid < 1 << 22) == (tid < 1 << 22)), "{tids:?}");
    assert_eq!(queues, BTreeSet::from([1, 2]));
    assert_eq!(trace.class().env("hostname"), Some(&EnvValue::Str("host7,host8".into())));

    let written = manifest(&all);
    assert_eq!((&written["losses"]["records"], &written["losses"]["calls"]), (&json!(6), &json!(4)));
    assert_eq!(written["command"], json!(["./app"]));
    assert_eq!((&written["start_ns"], &written["end_ns"]), (&json!(5), &json!(1100)));
    let new = written["processes"][1]["pid"].clone();
    assert!(new.as_u64().unwrap() >= 1 << 22);
    assert_eq!(written["processes"][1]["host"], "host8");
    assert_eq!(written["processes"][1]["parent"], written["merged"][1]["pids"][0][0], "the launcher, 9");
    assert_eq!(written["device_clocks"][1]["pid"], new);
    assert_eq!(written["losses"]["threads"][1]["pid"], new);
    let (of, thread) = (&written["merged"][1], &written["losses"]["threads"][1]["tid"]);
    assert_eq!((&of["of"], &of["host"], &of["shift_ns"]), (&json!("b"), &json!("host8"), &json!(1000)));
    assert_eq!((&written["merged"][0]["clock_error_ns"], &of["clock_error_ns"]), (&json!(0), &Json::Null));
    assert!(of["pids"].as_array().unwrap().contains(&json!([new, 200])));
    assert!(of["tids"].as_array().unwrap().contains(&json!([thread, 202])), "{of}");
    // Ranks are of processes and of launchers, and not summed.
    assert_eq!(
        (&written["processes"][1]["job"], &of["job"]),
        (&json!({"PMI_RANK": 3}), &json!({"PMI_RANK": 3}))
    );
    assert_eq!(written["job"], Json::Null);
    assert_eq!(written["telemetry"]["devices"][1]["device"], 1);
    assert_eq!(
        (&written["telemetry"]["period_ns"], &written["telemetry"]["records"]),
        (&json!(10), &json!(4))
    );
    assert_eq!(written["notes"].as_array().unwrap().len(), 3, "{}", written["notes"]);

    let trace = hetrace_trace::trace::Trace::open(&all).unwrap();
    assert_eq!(Telemetry::read(&trace).devices().len(), 2);
    assert!(trace.manifest().is_present());
}

#[test]
fn one_boot_has_one_clock() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c, ab, abc] = ["a", "b", "c", "ab", "abc"].map(|name| dir.path().join(name));
    write(&a, SMALL, &Machine { boot: 8, offset: 5_000 });
    // The wall clock was set meanwhile.
    write(&b, SMALL, &Machine { boot: 8, offset: 9_000 });
    write(&c, SMALL, &Machine { boot: 7, offset: 1_000 });
    let notes = merged(&[&a, &b], &ab).notes;
    assert!(!notes.iter().any(|note| note.contains("wall clock")), "{notes:?}");
    // Booted before the others, so that these are shifted; b goes with a.
    let paths = [&a, &c, &b].map(|path| path.as_path());
    merged(&paths, &abc);
    let written = manifest(&abc);
    let shifts: Vec<_> = (0..3).map(|n| written["merged"][n]["shift_ns"].as_u64().unwrap()).collect();
    assert_eq!(shifts, [4_000, 0, 4_000]);
    let trace = Trace::open(&abc).unwrap();
    let clock = &trace.class().clocks[0];
    assert_eq!((clock.uuid, clock.ns_from_origin(0)), (Some([7; 16]), Some(ORIGIN + 1_000)));
}

#[test]
fn babeltrace2_sees_what_it_saw() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, all] = ["a", "b", "all"].map(|name| dir.path().join(name));
    let process = |pid, begin, base| Process { pid, begin, calls: vec![(700, 300, false); 40], base };
    write(&a, &text(&[process(10, 100, false), process(20, 400, false)]), &HERE);
    write(&b, &text(&[process(30, 5_000_000_000, true), process(40, 50, false)]), &HERE);
    merged(&[&a, &b], &all);
    let Some(seen) = babeltrace(&all) else { return };
    let mut expected = [babeltrace(&a).unwrap(), babeltrace(&b).unwrap()].concat();
    assert_eq!(seen.len(), expected.len());
    // Numbers of devices are others; who did what when is not.
    let of_calls = |lines: &mut Vec<String>| {
        lines.retain(|line| line.contains(" toy:") || line.contains(" base:"));
        // The host is that of one, or of both.
        lines.iter_mut().for_each(|line| *line = line.replace("host7 ", ""));
        lines.sort();
    };
    let mut seen_calls = seen.clone();
    of_calls(&mut seen_calls);
    of_calls(&mut expected);
    assert!(seen_calls.len() > 400);
    assert_eq!(seen_calls, expected);
    // Of different boots, in the order of UTC.
    let [c, later] = ["c", "later"].map(|name| dir.path().join(name));
    write(&c, &text(&[process(10, 100, false)]), &Machine { boot: 8, offset: 1 << 40 });
    merged(&[&c, &all], &later);
    assert_eq!(babeltrace(&later).unwrap().len(), seen.len() + babeltrace(&c).unwrap().len());
}

#[test]
fn apis_that_one_has_are_there_and_others_must_be_alike() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, all, none] = ["a", "b", "all", "none"].map(|name| dir.path().join(name));
    let process = |pid, base| Process { pid, begin: 100, calls: vec![(700, 300, false); 4], base };
    write(&a, &text(&[process(10, false)]), &HERE);
    write(&b, &text(&[process(20, true)]), &HERE);
    merged(&[&a, &b], &all);
    let names = |path: &Path| -> BTreeSet<String> { files(path).into_keys().collect() };
    assert!(!names(&a).contains("hetrace/model/base.json"));
    assert!(names(&all).contains("hetrace/model/base.json"));
    let classes = |path: &Path| Trace::open(path).unwrap().class().streams.len();
    assert_eq!((classes(&a), classes(&b), classes(&all)), (3, 4, 4));

    let model = b.join("hetrace/model/toy.json");
    let mut other: Json = serde_json::from_slice(&fs::read(&model).unwrap()).unwrap();
    other["functions"].as_array_mut().unwrap().pop();
    fs::write(&model, other.to_string()).unwrap();
    let error = merge(&[a.clone(), b.clone()], &none, Form::Plain, &go_on).unwrap_err().to_string();
    assert!(error.contains("model of toy") && error.contains("same hetrace"), "{error}");
    fs::write(b.join("hetrace/manifest.json"), r#"{"schema":1}"#).unwrap();
    fs::copy(a.join("hetrace/model/toy.json"), &model).unwrap();
    let error = merge(&[a, b], &none, Form::Plain, &go_on).unwrap_err().to_string();
    assert!(error.contains("form 1") && error.contains("form 2"), "{error}");
    assert!(!none.exists());
}

#[test]
fn what_is_no_trace_of_hetrace_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [a, all] = ["a", "all"].map(|name| dir.path().join(name));
    write(&a, SMALL, &HERE);
    for name in ["lttng-ust", "barectf/trace-le", "ctf2"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data").join(name);
        let error = merge(&[a.clone(), data], &all, Form::Plain, &go_on).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("babeltrace2"), "{error}");
    }
    let stop = |_| ControlFlow::Break(());
    assert!(matches!(merge(&[a.clone(), a.clone()], &all, Form::Plain, &stop), Err(Error::Stopped)));
    assert!(matches!(merge(&[a.clone(), a.clone()], &a, Form::Plain, &go_on), Err(Error::Exists { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn packed_traces_and_all_files_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, tar, plain, packed] = ["a", "b", "a.tar", "plain", "packed"].map(|n| dir.path().join(n));
    write(&a, SMALL, &HERE);
    write(&b, SMALL, &HERE);
    for (folder, name, content) in [
        (&a, "0123", "same"),
        (&b, "0123", "same"),
        (&a, "4567", "one"),
        (&b, "89ab", "other"),
        (&b, "4567", "two"),
    ] {
        fs::create_dir_all(folder.join("hetrace/blobs")).unwrap();
        fs::write(folder.join("hetrace/blobs").join(name), content).unwrap();
    }
    pack(&a, &tar, &PackOptions::default(), &go_on).unwrap();
    let done = merged(&[&a, &b], &plain);
    assert_eq!(done.problems.len(), 1, "{:?}", done.problems);
    merged(&[&tar, &b], &packed);
    assert_eq!(threads(&packed, true), threads(&plain, true));
    let small = dir.path().join("small");
    merge(&[tar, b], &small, Form::Compressed, &go_on).unwrap();
    assert_eq!(threads(&small, true), threads(&plain, true));
    let of_streams = |name: &String| !name.contains('/') && name != "metadata";
    assert!(files(&small).into_keys().filter(of_streams).all(|name| name.ends_with(".zst")));
    let mut all = files(&packed);
    assert_eq!(all.remove("hetrace/blobs/4567").unwrap(), b"one");
    assert_eq!(all.remove("hetrace/blobs/89ab").unwrap(), b"other");
    assert_eq!(files(&plain).into_keys().filter(|name| !all.contains_key(name)).count(), 2);
}
