//! Calls that return at once (Table 2 of the CLUST article), beside the floor.

use std::ffi::OsString;

use serde_json::json;

use super::ground::Ground;
use super::numbers::Samples;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::{ALL, DEFAULT, FULL, Measured, Setting};

/// The functions that sync_loop calls.
pub const CALLS: &[&str] = &["clGetPlatformIDs", "clSetKernelArg", "clGetEventInfo", "clGetKernelInfo"];
/// Of these, the one that the default mode folds: as a run of equal polls.
pub const FOLDED: &str = "clGetEventInfo";
/// Calls in a loop whose records fit into the smallest ring, so that none is
/// lost whatever the rest of the machine does.
const FITS: u32 = 10_000;
/// Loop sizes beyond that.
const LONG: &[u32] = &[100_000, 1_000_000];

/// What the verdict needs.
#[derive(Debug)]
pub struct Calls {
    measured: Measured,
    /// Two time stamps and the stores, in this run.
    pub floor: Samples,
}

impl Calls {
    /// The median that a setting adds to a call.
    pub fn added(&self, setting: Setting, call: &str) -> f64 {
        self.measured.added(setting, &key(call, FITS))
    }

    /// Records lost in a setting.
    pub fn lost(&self, setting: Setting) -> Option<f64> {
        self.measured.lost(setting)
    }
}

fn key(call: &str, size: u32) -> String {
    format!("{call}.{size}")
}

fn program(ground: &Ground, most: u32, rounds: u32, pause: u32) -> Vec<OsString> {
    let mut words = vec![ground.program("sync_loop").into()];
    for (option, value) in [("-n", most), ("-r", rounds), ("-p", pause)] {
        words.extend([OsString::from(option), value.to_string().into()]);
    }
    words
}

/// Measures and prints the table.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Calls {
    let mut keys: Vec<String> = CALLS.iter().map(|c| key(c, FITS)).collect();
    keys.extend([key("floor", FITS), key("two_rdtsc", FITS)]);
    let program = program(ground, FITS, 10, 10);
    let measured = Measured::new(ground, ALL, scale.rounds, &program, &keys);
    let floor = measured.of(Setting::Bare, &key("floor", FITS));
    let stamps = measured.of(Setting::Bare, &key("two_rdtsc", FITS));

    report.title("Table 2: calls that return at once, ns per call");
    report.line(&format!(
        "loops of {FITS} calls; each sample is the median of 10 loops in one process, {} processes per \
         setting, interleaved",
        scale.rounds
    ));
    report.line(&format!(
        "floor (two time stamps and 72 bytes stored): {} ns, least {}; the two time stamps alone: {} ns",
        number(floor.median(), 2),
        number(floor.min(), 2),
        number(stamps.median(), 2)
    ));
    report.line(&format!("{FOLDED} is folded into one record in default mode, and recorded in full mode"));
    let mut rows = Vec::new();
    for call in CALLS {
        let key = key(call, FITS);
        for setting in ALL.iter().filter(|s| s.possible(ground)) {
            let of = measured.of(*setting, &key);
            let added = measured.added(*setting, &key);
            rows.push(vec![
                format!("{call}, {}", setting.name()),
                number(of.mean(), 2),
                number(of.median(), 2),
                number(of.sd(), 2),
                number(of.min(), 2),
                difference(added, 2),
                number(added / floor.median(), 2),
                number(of.median() / floor.median(), 2),
                measured.lost(*setting).map_or_else(|| "-".to_owned(), |l| number(l, 0)),
            ]);
        }
    }
    let head = ["call", "mean", "median", "sd", "min", "added", "added/floor", "whole/floor", "records lost"];
    report.table(&head, &rows);
    for (setting, why) in &measured.failed {
        report.line(&format!("{} failed: {why}", setting.name()));
    }
    report.keep("table2", json!({ "floor": floor.json(), "calls": measured.json() }));
    Calls { measured, floor }
}

/// Long loops: what happens when records are made faster than they are written.
pub fn run_long(ground: &Ground, scale: &Scale, report: &mut Report) {
    let most = if scale.quick { LONG[0] } else { LONG[LONG.len() - 1] };
    let sizes: Vec<u32> = LONG.iter().copied().filter(|s| *s <= most).collect();
    let keys: Vec<String> = CALLS.iter().flat_map(|c| sizes.iter().map(|s| key(c, *s))).collect();
    let measured = Measured::new(ground, ALL, 1, &program(ground, most, 2, 20), &keys);
    let settings: Vec<Setting> = ALL.iter().copied().filter(|s| s.possible(ground)).collect();

    report.title("Table 2, long loops: median ns per call, and what got lost");
    let mut head = vec!["call and loop size"];
    head.extend(settings.iter().map(|s| s.name()));
    let mut rows = Vec::new();
    for call in CALLS {
        for size in &sizes {
            let mut row = vec![format!("{call} {size}")];
            row.extend(settings.iter().map(|s| number(measured.of(*s, &key(call, *size)).median(), 2)));
            rows.push(row);
        }
    }
    let of_all = |what: &dyn Fn(Setting) -> Option<f64>| -> Vec<String> {
        settings.iter().map(|s| what(*s).map_or_else(|| "-".to_owned(), |v| number(v, 0))).collect()
    };
    let lost = of_all(&|s| measured.lost(s));
    let kept = of_all(&|s| measured.lost(s).map(|_| measured.records(s)));
    rows.push([vec!["records written, all loops".to_owned()], kept].concat());
    rows.push([vec!["records lost, all loops".to_owned()], lost].concat());
    report.table(&head, &rows);
    for (setting, why) in &measured.failed {
        report.line(&format!("{} failed: {why}", setting.name()));
    }
    report.keep("table2_long", measured.json());
}

/// The settings in which each call is recorded by itself.
pub fn recorded(call: &str) -> Setting {
    if call == FOLDED { FULL } else { DEFAULT }
}
