//! Calls that make a command (Table 3 of the CLUST article).

use std::ffi::OsString;

use super::ground::Ground;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::{ALL, Measured};

const SIZES: &[u32] = &[4, 40, 400, 4_000, 40_000, 400_000];

/// Measures and prints the table.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) {
    let mut keys: Vec<String> = ["kernel_enqueue", "kernel_batch", "kernel_finish"].map(String::from).into();
    for read in ["read_blocking", "read_finish"] {
        keys.extend(SIZES.iter().map(|s| format!("{read}.{s}")));
    }
    let mut program: Vec<OsString> = vec![ground.program("async_loop").into()];
    program.extend(["-n", "500", "-r", "5", "-p", "10"].map(OsString::from));
    let measured = Measured::new(ground, ALL, scale.rounds, &program, &keys);

    report.title("Table 3: calls that make a command, ns per command");
    report.line(&format!(
        "loops of 500; each sample is the median of 5 loops in one process, {} processes per setting, interleaved",
        scale.rounds
    ));
    let mut rows = Vec::new();
    for key in &keys {
        for setting in ALL.iter().filter(|s| s.possible(ground)) {
            let of = measured.of(*setting, key);
            rows.push(vec![
                format!("{key}, {}", setting.name()),
                number(of.mean(), 0),
                number(of.median(), 0),
                number(of.sd(), 0),
                number(of.min(), 0),
                difference(measured.added(*setting, key), 0),
                measured.lost(*setting).map_or_else(|| "-".to_owned(), |l| number(l, 0)),
            ]);
        }
    }
    report.table(&["command", "mean", "median", "sd", "min", "added", "records lost"], &rows);
    for (setting, why) in &measured.failed {
        report.line(&format!("{} failed: {why}", setting.name()));
    }
    report.keep("table3", measured.json());
}
