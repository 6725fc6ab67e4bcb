//! Where the time of a traced iteration goes: the same iteration with more and
//! more of what tracing does.

use std::collections::BTreeMap;

use serde_json::json;

use super::ground::Ground;
use super::iterations::program;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::{DEFAULT, FULL, Measured, Setting};

const LOOPS: u32 = 300;
const ROUNDS: u32 = 20;
const KEY: &str = "iteration.10x10";

const STEPS: &[Setting] = &[
    Setting::Bare,
    Setting::Dormant,
    Setting::Hetrace("minimal, no device", &["-m", "minimal", "--no-device"]),
    Setting::Hetrace("default, no device", &["-m", "default", "--no-device"]),
    Setting::Hetrace("full, no device", &["-m", "full", "--no-device"]),
    Setting::Hetrace("minimal", &["-m", "minimal"]),
    DEFAULT,
    FULL,
];

/// Measures and prints the table.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) {
    let words = program(ground, (10, 10, LOOPS), ROUNDS);
    let measured = Measured::new(ground, STEPS, scale.rounds, &words, &[KEY.to_owned()]);
    // The iterations before each loop count, too; the program's first calls are few.
    let iterations = f64::from((LOOPS + 1) * ROUNDS) * scale.rounds as f64;
    report.title("Where the time of a 10x10 iteration goes");
    let mut rows = Vec::new();
    let mut kept = BTreeMap::new();
    for setting in STEPS {
        let added = measured.added(*setting, KEY);
        let records = measured.records(*setting) / iterations;
        let recording = measured.lost(*setting).is_some();
        rows.push(vec![
            setting.name().to_owned(),
            number(measured.of(*setting, KEY).median(), 0),
            difference(added, 0),
            if recording { number(records, 1) } else { "-".to_owned() },
            if recording { number(added / records, 0) } else { "-".to_owned() },
        ]);
        kept.insert(setting.name(), json!({ "added_ns": added, "records": records }));
    }
    report.table(&["setting", "ns", "added", "records", "added ns per record"], &rows);
    let step = |a: usize, b: usize| measured.added(STEPS[b], KEY) - measured.added(STEPS[a], KEY);
    let part = |what: &str, ns: f64| vec![what.to_owned(), difference(ns, 0)];
    let parts = [
        part("the library is there (dormant)", step(0, 1)),
        part("two commands and the wait, recorded as calls", step(1, 2)),
        part("13 clSetKernelArg, recorded", step(2, 3)),
        part("the two commands timed: events, profiling, records", step(3, 6)),
        part("the same, seen from minimal mode", step(2, 5)),
    ];
    report.line("");
    report.table(&["part of default mode", "ns"], &parts);
    for (setting, why) in &measured.failed {
        report.line(&format!("{} failed: {why}", setting.name()));
    }
    report.keep("parts", json!(kept));
}
