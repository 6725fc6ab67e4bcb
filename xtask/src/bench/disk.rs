//! Bytes on disk per event.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::ground::{Ground, Pin, succeeds};
use super::report::{Report, number};
use super::scale::Scale;
use super::setting::{Setting, run as run_in};
use crate::repo;

const PLAIN: Setting = Setting::Hetrace("plain", &[]);
const COMPRESSED: Setting = Setting::Hetrace("compressed", &["--compress"]);

/// Bytes per event of a program.
#[derive(Debug)]
pub struct PerEvent {
    /// The program.
    pub name: String,
    /// As written by default.
    pub plain: f64,
    /// With `--compress`.
    pub compressed: f64,
}

/// Measures and prints the table.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Vec<PerEvent> {
    report.title("Bytes on disk");
    let count = if scale.quick { "1000" } else { "10000" };
    let linked = repo::root().join("tests/programs/build/linked");
    let mut programs: Vec<(String, Vec<OsString>)> =
        vec![(format!("linked {count}"), vec![linked.into(), count.into()])];
    if succeeds("clpeak", &["--version"]) || succeeds("clpeak", &["--help"]) {
        programs
            .push(("clpeak --kernel-latency".to_owned(), vec!["clpeak".into(), "--kernel-latency".into()]));
    } else {
        report.line("clpeak skipped: it is not installed");
    }
    let mut rows = Vec::new();
    let mut kept = Vec::new();
    let mut found = Vec::new();
    for (name, words) in &programs {
        let mut of = PerEvent { name: name.clone(), plain: f64::NAN, compressed: f64::NAN };
        for setting in [PLAIN, COMPRESSED] {
            let mut streams = 0u64;
            let ran = run_in(ground, setting, Pin::No, words, |trace| {
                streams = stream_bytes(trace)?;
                Ok(())
            });
            let ran = match ran {
                Ok(ran) => ran,
                Err(error) => {
                    report.line(&format!("{name} failed: {error:#}"));
                    continue;
                }
            };
            let per_event = streams as f64 / ran.records;
            *(if setting == PLAIN { &mut of.plain } else { &mut of.compressed }) = per_event;
            rows.push(vec![
                format!("{name}, {}", setting.name()),
                number(ran.records, 0),
                number(ran.lost, 0),
                streams.to_string(),
                number(per_event, 2),
            ]);
            kept.push(json!({ "program": name, "setting": setting.name(), "per_event": per_event }));
        }
        found.push(of);
    }
    report.table(&["program", "events", "lost", "bytes of streams", "bytes per event"], &rows);
    report.line("the metadata and the model, the same for every trace, are not counted");
    report.keep("disk", json!(kept));
    found
}

/// Bytes of the data streams: the files beside `metadata`.
fn stream_bytes(trace: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(trace)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() && entry.file_name() != "metadata" {
            sum += about.len();
        }
    }
    Ok(sum)
}
