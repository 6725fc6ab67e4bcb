//! A whole small program (Tables 4 and 5 of the CLUST article): 14 calls that
//! return at once and 2 that make a command, on images of its sizes.

use std::ffi::OsString;

use serde_json::{Map, Value};

use super::ground::Ground;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::{ALL, DEFAULT, Measured, Setting};

/// Width, height, and iterations in a loop.
const SIZES: &[(u32, u32, u32)] =
    &[(1, 1, 300), (10, 1, 300), (10, 10, 300), (10, 100, 300), (100, 100, 300), (1000, 100, 50)];
const LARGE: &[(u32, u32, u32)] = &[(1280, 720, 20), (1920, 1080, 10)];
/// Those of a quick run.
const QUICK: &[(u32, u32, u32)] = &[(10, 10, 300), (100, 100, 300), (1280, 720, 20)];

/// Words that run the program of an iteration.
pub fn program(ground: &Ground, size: (u32, u32, u32), rounds: u32) -> Vec<OsString> {
    program_called(ground, "iteration", size, rounds)
}

/// Words that run a program with the options of that one.
pub fn program_called(
    ground: &Ground,
    name: &str,
    (width, height, loops): (u32, u32, u32),
    rounds: u32,
) -> Vec<OsString> {
    let mut words = vec![ground.program(name).into()];
    for (option, value) in [("-n", loops), ("-r", rounds), ("-p", 5)] {
        words.extend([OsString::from(option), value.to_string().into()]);
    }
    words.extend([width, height].map(|v| OsString::from(v.to_string())));
    words
}

/// What the default mode does to an iteration of 10x10 pixels.
#[derive(Debug)]
pub struct Small {
    /// Nanoseconds added.
    pub added: f64,
    /// Records lost in all its loops.
    pub lost: f64,
}

/// Measures and prints the table.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Small {
    let sizes: Vec<_> = if scale.quick { QUICK.to_vec() } else { [SIZES, LARGE].concat() };
    report.title("Tables 4 and 5: a whole iteration, microseconds");
    report.line(&format!(
        "13 clSetKernelArg, a launch, a blocking read, clFinish; each sample is the median of 10 loops in one \
         process, {} processes per setting, interleaved",
        scale.rounds
    ));
    let mut kept = Map::new();
    let mut rows = Vec::new();
    let mut small = Small { added: f64::NAN, lost: 0.0 };
    for size in sizes {
        let key = format!("iteration.{}x{}", size.0, size.1);
        let words = program(ground, size, 10);
        let measured = Measured::new(ground, ALL, scale.rounds, &words, std::slice::from_ref(&key));
        for setting in ALL.iter().filter(|s| s.possible(ground)) {
            let of = measured.of(*setting, &key);
            let added = measured.added(*setting, &key);
            rows.push(vec![
                format!("{}x{}, {}", size.0, size.1, setting.name()),
                number(of.mean() / 1e3, 2),
                number(of.median() / 1e3, 2),
                number(of.sd() / 1e3, 2),
                number(of.min() / 1e3, 2),
                difference(added / 1e3, 2),
                difference(100.0 * added / measured.of(Setting::Bare, &key).median(), 1),
                measured.lost(*setting).map_or_else(|| "-".to_owned(), |l| number(l, 0)),
            ]);
        }
        if (size.0, size.1) == (10, 10) {
            small = Small {
                added: measured.added(DEFAULT, &key),
                lost: measured.lost(DEFAULT).unwrap_or_default(),
            };
        }
        for (setting, why) in &measured.failed {
            report.line(&format!("{}x{}, {} failed: {why}", size.0, size.1, setting.name()));
        }
        kept.insert(key, measured.json());
    }
    report.table(&["image", "mean", "median", "sd", "min", "added", "%", "records lost"], &rows);
    report.keep("table4", Value::Object(kept));
    small
}
