//! What `hetrace run` costs before and after the program.

use std::ffi::OsString;
use std::fs;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::json;

use super::ground::Ground;
use super::numbers::Samples;
use super::overhead::Scale;
use super::report::{Report, difference, number};
use super::setting::command;

/// Measures and prints the table. Returns what `hetrace run -- true` takes
/// more than `true`, in milliseconds.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Result<f64> {
    let runs = if scale.quick { 10 } else { 30 };
    let trace = ground.work.join("trace-true");
    let traced = |options: &[&str]| {
        let mut words: Vec<OsString> = vec![ground.hetrace.clone().into(), "run".into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["-o".into(), trace.clone().into(), "--".into(), "true".into()]);
        words
    };
    let kinds: [(&str, Vec<OsString>); 4] = [
        ("true", vec!["true".into()]),
        ("hetrace run -- true", traced(&[])),
        ("hetrace run -q -- true", traced(&["-q"])),
        ("hetrace --version", vec![ground.hetrace.clone().into(), "--version".into()]),
    ];
    let mut samples = vec![Samples::default(); kinds.len()];
    for round in 0..=runs {
        for ((what, words), samples) in kinds.iter().zip(&mut samples) {
            let _ = fs::remove_dir_all(&trace);
            let mut command = command(words)?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let start = Instant::now();
            let status = command.status()?;
            let took = start.elapsed();
            if !status.success() {
                bail!("{what}: {status}");
            }
            if round > 0 {
                samples.add(took.as_secs_f64() * 1e3); // The first is for the caches.
            }
        }
    }
    report.title("Start and end: milliseconds for a program that does nothing");
    report.line(&format!("{runs} runs each, interleaved, not pinned"));
    let bare = samples[0].median();
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(&samples)
        .map(|((what, _), s)| {
            vec![
                (*what).to_owned(),
                number(s.mean(), 2),
                number(s.median(), 2),
                number(s.sd(), 2),
                number(s.min(), 2),
                difference(s.median() - bare, 2),
            ]
        })
        .collect();
    report.table(&["command", "mean", "median", "sd", "min", "added"], &rows);
    let added = samples[1].median() - bare;
    report.keep("startup", json!({ "true": samples[0].json(), "traced": samples[1].json() }));
    Ok(added)
}
