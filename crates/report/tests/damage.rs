//! No trace makes a report panic, whatever became of its bytes.

mod common;

use hetrace_report::{print, tally, timeline, why};
use hetrace_trace::trace::Trace;

struct Random(u64);

impl Random {
    /// xorshift64
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for (_, script) in scripts() {
        let whole = common::Assembled::new(common::models(), &script);
        for _ in 0..60 {
            let trace = whole.trace(|bytes| {
                for _ in 0..random.next(6) {
                    let (at, value) = (random.next(bytes.len()), random.next(256) as u8);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = value;
                    }
                }
                if random.next(4) == 0 {
                    bytes.truncate(random.next(bytes.len()));
                }
            });
            make_reports(&trace);
        }
    }
}

/// Makes all reports.
fn make_reports(trace: &Trace) {
    let extended = tally::Options { extended: true };
    let _ = tally::tally(trace, &extended).render(&tally::TextOptions::default());
    for form in [print::Form::Calls, print::Form::Events] {
        let options = print::Options { form, ..print::Options::default() };
        print::print(trace, &options, &mut std::io::sink()).expect("a sink");
    }
    timeline::timeline(trace, &timeline::Options::default(), &mut std::io::sink()).expect("a sink");
    let part = why::Options { from: Some(50), to: Some(5000), gaps: Some(0), device: None };
    for options in [why::Options::default(), part] {
        let report = why::why(trace, &options);
        let _ = report.render(&why::TextOptions::default());
        serde_json::to_writer(std::io::sink(), &report).expect("a sink");
    }
}

/// Models of APIs that nobody called make no difference.
#[test]
fn more_models_change_nothing() {
    let mut compared = 0;
    for (path, script) in scripts() {
        let alone = common::build(&script);
        if alone.models().len() > 1 {
            continue;
        }
        let more = common::build_with(common::models(), &script, |_| {});
        let options = tally::Options { extended: true };
        assert_eq!(tally::tally(&alone, &options), tally::tally(&more, &options), "{path}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

/// The golden traces.
fn scripts() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(folder).expect("the folder").flatten().map(|e| e.path());
    let mut scripts: Vec<_> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).expect("readable");
            let script = text.split("\n== ").next().unwrap_or("").to_owned();
            (p.display().to_string(), script)
        })
        .collect();
    // Those of real APIs are many and long; `lint.rs` damages them.
    scripts.retain(|(_, script)| !script.lines().any(|line| line.starts_with("# uses ")));
    scripts.sort();
    scripts
}

/// Damaged times may be centuries apart, in many threads at once.
#[test]
fn times_of_centuries_overflow_nothing() {
    let end = i64::MAX;
    let mut script = "0 1.1 * device device=1 handle=0xd name=\"Toy\"\n\
        0 1.1 * function function=1 name=\"step\"\n"
        .to_owned();
    for thread in 1..6 {
        let begin = 100 * thread;
        script += &format!("0 1.1 * queue queue={thread} handle={thread} device=1 api=\"toy\"\n");
        script += &format!(
            "{begin} 1.{thread} > toyLaunch queue={thread}\n{} 1.{thread} < toyLaunch result=0\n",
            begin + 5
        );
        for what in ["kernel function=1", "write bytes=281474976710655 from=host to=device"] {
            script += &format!(
                "{} 1.1 * {what} queue={thread} cause_tid={thread} cause_before=7 duration=5000\n",
                begin + 7
            );
        }
        script += &format!("{} 1.{thread} > toyFinish queue={thread}\n", begin + 9);
        let what = if thread == 5 {
            "kernel function=1 graph=[4] node=[2] weight=[4294967295]"
        } else {
            "kernel function=1"
        };
        script += &format!(
            "{} 1.1 * {what} queue={thread} cause_tid={thread} cause_before=3 duration=140737488355327\n",
            begin + 10
        );
    }
    for thread in 1..5 {
        script += &format!("packet toy-1-{thread}\n{end} 1.{thread} < toyFinish result=0\n");
    }
    let trace = common::build(&script);
    make_reports(&trace);
}
