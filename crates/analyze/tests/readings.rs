//! However a trace is read for a tally, the result is the same.

mod common;

use hetrace_analyze::tally::{By, Options, Query, Reading, aggregate};
use hetrace_analyze::trace::Trace;
use proptest::prelude::*;

/// All ways to read a trace must agree on its sums.
fn agree(trace: &Trace, what: &str) {
    let ways = [vec![], vec![By::Thread], vec![By::Error, By::Name], vec![By::Queue]];
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
    let mut time = 0u64;
    for (thread, distance, step, fails) in steps {
        let thread = usize::from(*thread % 4);
        let (pid, tid) = (1 + thread / 2, 1 + thread % 3);
        time += u64::from(*distance);
        let api = |function: usize| if FUNCTIONS[function].0.starts_with("toy") { "toy" } else { "base" };
        let mut event = |api: &str, text: String| {
            let file = format!("{api}-{pid}-{tid}");
            if !files.contains(&file) {
                files.push(file);
            }
            script += &format!("{time} {pid}.{tid} {text}\n");
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
