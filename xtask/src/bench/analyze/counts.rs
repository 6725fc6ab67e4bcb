//! Instructions per event, counted by callgrind: unlike time they do not depend on what
//! else the machine does.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::super::ground::{Ground, succeeds};
use super::super::report::{Report, number};
use super::rows::{DUMMY, EVENTS, PRINT, TALLY, TEXT, TIMELINE, Way};
use super::traces::{Trace, Traces};

const WAYS: &[Way] = &[DUMMY, TEXT, TALLY, PRINT, EVENTS, TIMELINE];

/// Counts and prints the table.
pub fn run(ground: &Ground, cache: &Path, fresh: bool, chosen: &dyn Fn(&Way) -> bool, report: &mut Report) {
    report.title("Instructions per event (callgrind)");
    if !succeeds("valgrind", &["--version"]) {
        report.line("skipped: valgrind is not installed");
        return;
    }
    let mut kept = Vec::new();
    for pair in Traces::pairs(ground, cache, fresh, report) {
        let [short, long] = match pair {
            Ok(pair) => pair,
            Err(error) => {
                report.line(&format!("skipped: {error:#}"));
                continue;
            }
        };
        let mut rows = Vec::new();
        let mut dummy = f64::NAN;
        for way in WAYS.iter().filter(|w| w.possible() && chosen(w)) {
            match per_event(ground, *way, &short, &long) {
                Ok((event, start)) => {
                    if *way == DUMMY {
                        dummy = event;
                    }
                    rows.push(vec![
                        way.name.to_owned(),
                        number(event, 1),
                        number(start / 1e6, 2),
                        number(dummy / event, 2),
                    ]);
                    kept.push(json!({
                        "command": way.name, "trace": long.name, "per_event": event, "start": start,
                    }));
                }
                Err(error) => report.line(&format!("{} failed: {error:#}", way.name)),
            }
        }
        report.line("");
        let head = format!(
            "{}: {} and {} thousand events, the difference",
            long.name,
            number(short.events as f64 / 1e3, 0),
            number(long.events as f64 / 1e3, 0)
        );
        report.table(&[&head, "per event", "millions at start", "/ dummy"], &rows);
    }
    report.keep("instructions", json!(kept));
}

/// Instructions per event, and those that do not depend on the trace's length.
fn per_event(ground: &Ground, way: Way, short: &Trace, long: &Trace) -> Result<(f64, f64)> {
    let (a, b) = (count(ground, way, short)?, count(ground, way, long)?);
    let (x, y) = (short.events as f64, long.events as f64);
    Ok(line((x, a), (y, b)))
}

/// Slope and start of the line through two points.
fn line((x, a): (f64, f64), (y, b): (f64, f64)) -> (f64, f64) {
    let slope = (b - a) / (y - x);
    (slope, a - slope * x)
}

fn count(ground: &Ground, way: Way, trace: &Trace) -> Result<f64> {
    // On one core, so that there is one thread where the program asks how many there are.
    let mut words: Vec<OsString> =
        ["taskset", "-c", "0", "valgrind", "--tool=callgrind"].map(OsString::from).into();
    words.push("--callgrind-out-file=/dev/null".into());
    words.extend(way.words(ground, trace));
    let out = Command::new(&words[0])
        .args(&words[1..])
        .stdout(std::process::Stdio::null())
        .output()
        .context("starting valgrind")?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("{}: {}", out.status, said.trim());
    }
    collected(&said).context("callgrind reports no count")
}

/// The number in callgrind's line `==PID== Collected : N`.
fn collected(text: &str) -> Option<f64> {
    let of = |line: &str| line.split_once("Collected :")?.1.trim().parse().ok();
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_count() {
        let text = "==12== Callgrind, a call-graph\n==12== \n==12== Events    : Ir\n\
                    ==12== Collected : 1234567\n==12== \n";
        assert_eq!(collected(text), Some(1234567.0));
        assert_eq!(collected("==12== Events    : Ir\n"), None);
    }

    #[test]
    fn the_start_is_no_part_of_an_event() {
        assert_eq!(line((10.0, 150.0), (110.0, 650.0)), (5.0, 100.0));
    }
}
