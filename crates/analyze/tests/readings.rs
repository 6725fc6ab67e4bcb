//! However a trace is read for a tally, the result is the same.

mod common;

use hetrace_analyze::tally::{By, Options, Query, Reading, aggregate};
use hetrace_analyze::trace::Trace;
use proptest::prelude::*;

/// All ways to read a trace must agree on its sums.
fn agree(trace: &Trace, what: &str) {
    let ways = [vec![], vec![By::Thread], vec![By::Error, By::Name], vec![By::Queue, By::Host]];
    for (by, gross) in ways.into_iter().zip([false, false, false, true]) {
        let tally = |reading| {
            let query = Query { reading, by: by.clone(), gross, ..Query::default() };
            aggregate(trace, &Options { extended: true }, &query).expect("nobody stops it").tally()
        };
        let in_order = tally(Reading::InOrder);
        for reading in [Reading::Fastest, Reading::Slices(2), Reading::Slices(7)] {
            let other = tally(reading);
            assert_eq!(in_order, other, "{reading:?} by {by:?} of {what}");
        }
    }
}

/// The golden traces that need no API's real model.
fn scripts() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let paths = std::fs::read_dir(folder).expect("the folder").flatten().map(|e| e.path());
    let scripts = paths.filter(|p| p.extension().is_some_and(|e| e == "txt")).map(|path| {
        let text = std::fs::read_to_string(&path).expect("readable");
        (path.display().to_string(), text.split("\n== ").next().unwrap_or("").to_owned())
    });
    scripts.filter(|(_, script)| !script.contains("# uses ")).collect()
}

#[test]
fn golden_traces() {
    let scripts = scripts();
    assert!(scripts.len() > 15);
    for (path, script) in &scripts {
        agree(&common::build(script), path);
    }
}

/// One step of a thread.
#[derive(Clone, Debug)]
enum Step {
    Enter(usize),
    Exit(usize),
    Poll(u8),
    Command(u8),
    Packet,
    /// The ids are another thread's from now on.
    Again,
    Lose,
    Skip,
}

const FUNCTIONS: [(&str, &str, &str); 3] =
    [("toyFinish", "queue=0x1", "result=0"), ("toyFree", "address=0x1", ""), ("baseSubmit", "", "result=0")];

fn step(lossy: bool) -> impl Strategy<Value = Step> {
    let rare = if lossy { 1 } else { 0 };
    prop_oneof![
        12 => (0..FUNCTIONS.len()).prop_map(Step::Enter),
        14 => (0..FUNCTIONS.len()).prop_map(Step::Exit),
        2 => (1u8..9).prop_map(Step::Poll),
        2 => (1u8..3).prop_map(Step::Command),
        6 => Just(Step::Packet),
        1 => Just(Step::Again),
        rare => Just(Step::Lose),
        rare => Just(Step::Skip),
    ]
}

fn lines(steps: &[(u8, u8, Step, bool)], proper: bool) -> String {
    // What recording costs, so much that it is more than some calls.
    let cost = r#"{"call_ns":9.6,"inside_ns":4.4,"fold_ns":3,"fold_inside_ns":1}"#;
    let mut script = format!("manifest {{\"schema\":2,\"exit\":{{\"code\":0}},\"cost\":{cost}}}\n");
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); 4];
    let mut files: Vec<String> = Vec::new();
    let mut again = [0; 4];
    let mut time = 0u64;
    for (thread, distance, step, fails) in steps {
        let thread = usize::from(*thread % 4);
        let (pid, tid) = (1 + thread / 2, 1 + thread % 3);
        time += u64::from(*distance);
        let api = |function: usize| if FUNCTIONS[function].0.starts_with("toy") { "toy" } else { "base" };
        let mut event = |api: &str, text: String| {
            let file = format!("{api}-{pid}-{tid}{}", ["", "-b", "-c", "-a"][again[thread] % 4]);
            if !files.contains(&file) {
                files.push(file.clone());
            }
            script += &format!("{time} {pid}.{tid}@{file} {text}\n");
        };
        match step {
            Step::Enter(function) => {
                open[thread].push(*function);
                let (name, passed, _) = FUNCTIONS[*function];
                event(api(*function), format!("> {name} {passed}"));
            }
            Step::Exit(function) => {
                let function = if proper { open[thread].pop() } else { Some(*function) };
                if let Some(function) = function {
                    let (name, _, back) = FUNCTIONS[function];
                    let back = if *fails { back.replace("=0", "=-5") } else { back.to_owned() };
                    event(api(function), format!("< {name} {back}"));
                }
            }
            Step::Poll(count) => {
                let (first, total) = (time.saturating_sub(5), time.min(3));
                event("toy", format!("~ toyPoll count={count} first={first} last={time} total={total}"));
            }
            Step::Command(queue) => {
                script += &format!("{time} {pid}.{pid} * kernel function=1 queue={queue} duration=7\n");
            }
            Step::Again => {
                again[thread] += 1;
                open[thread].clear();
            }
            Step::Packet => files.iter().for_each(|file| script += &format!("packet {file}\n")),
            Step::Lose => files.iter().take(1).for_each(|file| script += &format!("lose 2 {file}\n")),
            Step::Skip => files.iter().take(1).for_each(|file| script += &format!("skip {file}\n")),
        }
    }
    script
}

fn steps(lossy: bool) -> impl Strategy<Value = Vec<(u8, u8, Step, bool)>> {
    prop::collection::vec((any::<u8>(), 0u8..40, step(lossy), prop::bool::weighted(0.1)), 1..200)
}

fn of_script(script: &str) {
    let mut models = common::models();
    models.retain(|m| m.api == "toy" || m.api == "base");
    agree(&common::build_with(models, script, |_| {}), script);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nested_calls(steps in steps(false)) {
        of_script(&lines(&steps, true));
    }

    #[test]
    fn any_events(steps in steps(true)) {
        of_script(&lines(&steps, false));
    }

    #[test]
    fn lost_events(steps in steps(true)) {
        of_script(&lines(&steps, true));
    }
}

/// A stream of another tracer, whose events show all bits of the clock, so that its time can go
/// back within a packet.
fn full_clock(events: &[(u8, u64)]) -> Trace {
    let metadata = b"/* CTF 1.8 */
        typealias integer { size = 8; align = 8; } := u8;
        typealias integer { size = 32; align = 8; } := u32;
        typealias integer { size = 64; align = 8; } := u64;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
        clock { name = c; };
        typealias integer { size = 64; align = 8; map = clock.c.value; } := stamp;
        stream {
            packet.context := struct { u32 vpid; u32 vtid; };
            event.header := struct { u8 id; stamp timestamp; };
        };
        event { name = \"x:work_entry\"; id = 0; fields := struct { u64 pad; }; };
        event { name = \"x:work_exit\"; id = 1; fields := struct { u64 pad; }; };";
    let mut bytes = Vec::new();
    bytes.extend(0xc1fc_1fc1u32.to_le_bytes());
    bytes.extend([1u32, 2].map(u32::to_le_bytes).concat());
    for (id, time) in events {
        bytes.push(*id);
        bytes.extend(time.to_le_bytes());
        bytes.extend([0; 8]);
    }
    let ctf = hetrace_ctf::read::Trace::from_parts(metadata, vec![("x".to_owned(), bytes)]).expect("a trace");
    Trace::new(ctf, Vec::new(), hetrace_analyze::trace::Manifest::default())
}

#[test]
fn a_clock_that_steps_back_within_a_packet() {
    let call = |start: u64| [(0, start), (1, start + 5)];
    let mut events: Vec<(u8, u64)> = (1..1000u64).flat_map(|n| call(n * 10)).collect();
    assert_eq!(Summed::of(&full_clock(&events)), Summed { calls: 999, total: 999 * 5, steps: 0 });
    events.extend([(0, 20_000), (1, 300)]);
    events.extend((1..1000u64).flat_map(|n| call(n * 10)));
    let trace = full_clock(&events);
    assert_eq!(Summed::of(&trace), Summed { calls: 1999, total: 1998 * 5, steps: 2 });
    agree(&trace, "a clock that steps back");
}

#[test]
fn traces_of_others_lack_no_manifest() {
    let trace = full_clock(&[(0, 10), (1, 20)]);
    let report = hetrace_analyze::why::why(&trace, &hetrace_analyze::why::Options::default());
    assert!(!report.missing.manifest_missing);
    let sums = aggregate(&trace, &Options::default(), &Query::default()).expect("nobody stops it");
    assert!(!sums.tally().manifest_missing);
}

#[derive(Debug, PartialEq)]
struct Summed {
    calls: u64,
    total: u64,
    steps: u64,
}

impl Summed {
    fn of(trace: &Trace) -> Self {
        let sums = aggregate(trace, &Options::default(), &Query::default()).expect("nobody stops it").tally();
        let row = sums.host.first().expect("a row");
        Self { calls: row.calls, total: row.total_ns, steps: sums.steps_back }
    }
}
