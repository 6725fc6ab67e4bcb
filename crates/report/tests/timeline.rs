//! The time line: what is written, and in `timeline/processor.rs` what Perfetto itself sees.

#[path = "common/mod.rs"]
mod common;
#[path = "timeline/parts.rs"]
mod parts;
#[path = "timeline/processor.rs"]
mod processor;
#[path = "timeline/telemetry.rs"]
mod telemetry;

use std::collections::HashMap;
use std::path::Path;

use common::perfetto::{Drawing, Event, Track};
use hetrace_model::Model;
use hetrace_report::{tally, timeline};
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;

#[test]
fn every_golden_trace_can_be_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let script = text.split("\n== ").next().unwrap_or("");
        let trace = common::build_with(common::models_that_occur(script), script, |_| {});
        let mut bytes = Vec::new();
        let options = timeline::Options::default();
        let summary = timeline::timeline(&trace, &options, &mut bytes).expect("memory takes it");
        let drawing = common::perfetto::parse(&bytes);
        common::perfetto::check(&drawing);
        calls_and_commands(&path, &trace, &summary, &drawing);
    }
}

/// All calls and commands are there, once.
fn calls_and_commands(path: &Path, trace: &Trace, summary: &Summary, drawing: &Drawing) {
    let rows: HashMap<u64, &Track> = drawing.tracks().map(|track| (track.uuid, track)).collect();
    let above = |event: &Event| rows[&event.track].parent.and_then(|parent| rows.get(&parent));
    let on_thread =
        |event: &&Event| rows[&event.track].is_thread || rows[&event.track].name.starts_with("runs");
    let begun = || drawing.events().filter(|event| event.kind == 1);
    let host = tally::tally(trace, &tally::Options::default()).host;
    let folded: u64 = host.iter().map(|r| r.folded + r.added_up).sum();
    let runs = begun().filter(|event| event.name.ends_with("(folded)")).count() as u64;
    let ranges: u64 = host.iter().filter(|r| is_range(trace, &r.name)).map(|r| r.calls).sum();
    let calls = summary.calls - folded + runs + summary.unfinished - ranges;
    assert_eq!(begun().filter(on_thread).count() as u64, calls, "{}", path.display());
    // Rows that only repeat commands have no arrows.
    let on_queue = |event: &&Event| !event.flows.is_empty() && above(event).is_some_and(|p| !p.is_thread);
    let commands = begun().filter(|event| !on_thread(event)).filter(on_queue).count() as u64;
    assert_eq!(commands, summary.commands - summary.untimed, "{}", path.display());
}

fn is_range(trace: &Trace, function: &str) -> bool {
    let mut functions = trace.models().iter().flat_map(|m| &m.functions);
    let roles = functions.find(|f| f.name == function).map(|f| &f.roles[..]).unwrap_or_default();
    roles.iter().any(|role| role.starts_with("range-") || role.starts_with("counter-") || role == "mark")
}

/// Those of the other tests, and of `timeline/models.json`: `flow`, whose queues
/// are streams, and `say`, whose ranges have payloads and colours.
fn all_models() -> Vec<Model> {
    let models: Vec<Model> = serde_json::from_str(include_str!("timeline/models.json")).expect("models");
    common::models().into_iter().chain(models).collect()
}

/// `timeline/NAME.txt` is a script, and below `== timeline` what is drawn of it.
/// `BLESS=1` writes it anew.
#[test]
fn a_program_with_everything() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timeline/program.txt");
    let text = std::fs::read_to_string(&path).expect("readable");
    let script = text.split("\n== ").next().unwrap_or("");
    let trace = common::build_with(all_models(), script, |_| {});
    let mut bytes = Vec::new();
    let summary = timeline::timeline(&trace, &timeline::Options::default(), &mut bytes).expect("memory");
    calls_and_commands(&path, &trace, &summary, &common::perfetto::parse(&bytes));
    let made = format!("{}\n\n== timeline\n{}", script.trim_end(), common::perfetto::read(&bytes));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("writable");
    } else {
        assert_eq!(made, text, "BLESS=1 to accept");
    }
}

/// Rows of the process, with what each counts when.
#[test]
fn counters_of_a_program_are_drawn() {
    let text = include_str!("golden/ranges_itt.txt");
    let trace = common::build(text.split("\n== ").next().unwrap_or(""));
    let mut bytes = Vec::new();
    timeline::timeline(&trace, &timeline::Options::default(), &mut bytes).expect("memory");
    let drawing = common::perfetto::parse(&bytes);
    let counts = |name: &str| -> Vec<(u64, f64)> {
        let row = drawing.tracks().find(|t| t.name == name && t.counter).expect(name).uuid;
        let counted = drawing.events().filter(|e| e.kind == 4 && e.track == row);
        counted.map(|e| (e.time, e.value)).collect()
    };
    assert_eq!(counts("bytes"), [(1020, 40.0), (1040, 45.0), (1060, 44.0)]);
    assert_eq!(counts("degrees"), [(1100, -5.0)]);
    assert_eq!(counts("app: step"), [(1120, 1.0), (1140, -2.0)]);
    assert!(!drawing.events().any(|e| e.name.contains("__itt_counter_set")), "shown as a call, too");
}

/// Instants below the thread, also of one that makes no calls, with stacks.
#[test]
fn samples_of_processors_are_drawn_below_their_threads() {
    let text = include_str!("golden/cpu_samples.txt");
    let trace = common::build(text.split("\n== ").next().unwrap_or(""));
    let drawn = |options: &timeline::Options| {
        let mut bytes = Vec::new();
        timeline::timeline(&trace, options, &mut bytes).expect("memory");
        common::perfetto::parse(&bytes)
    };
    let drawing = drawn(&timeline::Options::default());
    let rows: Vec<&Track> = drawing.tracks().filter(|track| track.name == "CPU samples").collect();
    let on_thread = |row: &&Track| drawing.tracks().any(|t| Some(t.uuid) == row.parent && t.is_thread);
    assert!(rows.len() == 2 && rows.iter().all(on_thread), "{rows:?}");
    let of = |row: &Track| {
        let events = drawing.events().filter(|event| event.track == row.uuid && event.kind == 3);
        events.map(|event| (event.time, event.name.as_str())).collect::<Vec<_>>()
    };
    let (prepare, spin) = ("sample:app::prepare (prepare.cpp)", "sample:spin (libsolve.so.2)");
    let calling = [
        (1_500_000, prepare),
        (2_500_000, prepare),
        (3_500_000, "sample:main (main.cpp)"),
        (4_500_000, spin),
        (6_500_000, spin),
    ];
    assert_eq!(of(rows[0]), calling);
    assert_eq!(
        of(rows[1]),
        [(3_600_000, "sample:libsolve.so.2+0x5678"), (4_600_000, "sample:[stack not known]")]
    );
    let at = |time| drawing.events().find(|e| e.time == time && e.name.starts_with("sample:")).expect("one");
    let notes = &at(2_500_000).notes;
    for note in ["CPU=2", "stands for ns=1000000", "at prepare.cpp:20 in app::prepare", "main.cpp:90 in main"]
    {
        assert!(notes.contains(note.trim_start_matches("at ")), "{note} in {notes}");
    }
    assert!(!notes.contains("the kernel") && at(6_500_000).notes.contains("in=the kernel"), "{notes}");
    let others = drawn(&timeline::Options { pids: vec![8], ..timeline::Options::default() });
    assert!(!others.events().any(|event| event.name.starts_with("sample:")), "of another process");
}

/// Whatever the bytes are, there is an answer.
#[test]
fn damaged_programs_are_drawn() {
    let text = include_str!("timeline/program.txt");
    let script = text.split("\n== ").next().unwrap_or("");
    let whole = common::Assembled::new(all_models(), script);
    for seed in 0..200usize {
        let mut at = seed;
        let trace = whole.trace(|bytes| {
            // Packet headers of 104 bytes stay: what is behind them is what gets far.
            for step in 1..4 {
                at = at.wrapping_mul(25_214_903_917).wrapping_add(11) >> 3;
                let behind = bytes.len().saturating_sub(104).max(1);
                if let Some(byte) = bytes.get_mut(104 + at % behind) {
                    *byte = (at >> 8) as u8 ^ step;
                }
            }
        });
        let mut bytes = Vec::new();
        timeline::timeline(&trace, &timeline::Options::default(), &mut bytes).expect("memory");
        common::perfetto::check(&common::perfetto::parse(&bytes));
    }
}

/// A writer whose other end is closed after some bytes.
struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_it() {
    let mut script = String::new();
    for i in 0..10_000 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
    }
    let trace = common::build(&script);
    let kind = |result: std::io::Result<_>| result.map(|_| ()).expect_err("it is closed").kind();
    let drawn = timeline::timeline(&trace, &timeline::Options::default(), &mut Closed(100_000));
    assert_eq!(kind(drawn), std::io::ErrorKind::BrokenPipe);
    let options = hetrace_report::print::Options::default();
    let printed = hetrace_report::print::print(&trace, &options, &mut Closed(1000));
    assert_eq!(kind(printed), std::io::ErrorKind::BrokenPipe);
}
