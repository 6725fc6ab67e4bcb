//! `hetrace check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hetrace_edit::{Checked, Error};
use serde_json::json;

use super::say;
use super::watch::Watch;
use super::{newest, output};

/// Exit status when something is missing, changed or damaged.
const DIFFERENT: u8 = 1;
/// Exit status when it is not a readable trace.
const UNUSABLE: u8 = 2;
/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Options of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if the trace is complete and undamaged, 1 if something is missing, changed or \
                        damaged, 2 if it is not a readable trace, 125 if hetrace itself failed."
)]
pub struct Check {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Verifies a trace.
pub fn run(args: &Check) -> Result<ExitCode> {
    let path = match newest::trace(args.trace.as_deref()) {
        Ok(path) => path,
        Err(error) => return Ok(unusable(&error)),
    };
    let watch = Watch::of_bytes();
    let done = hetrace_edit::check(&path, &|bytes| watch.seen(bytes));
    watch.end();
    let done = match done {
        Ok(done) => done,
        Err(Error::Stopped) => return Ok(watch.stopped()),
        Err(Error::Open(error)) => return Ok(unusable(&error.into())),
        Err(error) => return Err(error.into()),
    };
    let text = if args.json { json(&path, &done)? } else { text(&path, &done) };
    output::write_report(&text, args.json)?;
    Ok(match (&done.unusable, done.is_sound()) {
        (Some(_), _) => ExitCode::from(UNUSABLE),
        (None, false) => ExitCode::from(DIFFERENT),
        (None, true) => ExitCode::SUCCESS,
    })
}

fn unusable(error: &anyhow::Error) -> ExitCode {
    say(format_args!("{error:#}"));
    ExitCode::from(UNUSABLE)
}

fn text(path: &Path, done: &Checked) -> String {
    let mut text = String::new();
    for finding in &done.findings {
        let _ = writeln!(text, "{}", finding.text);
    }
    for note in &done.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let path = path.display();
    if let Some(error) = &done.unusable {
        let _ = writeln!(text, "{path}: the streams cannot be read: {error}");
        return text;
    }
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let Checked { streams, packets, events, .. } = *done;
    let megabytes = done.bytes as f64 / 1e6;
    let _ = write!(
        text,
        "{path}: {streams} stream{}, {packets} packet{}, {events} event{}, {megabytes:.1} MB read",
        s(streams),
        s(packets),
        s(events),
    );
    if done.dropped > 0 {
        let _ = write!(text, "; {} event{} dropped while recording", done.dropped, s(done.dropped));
    }
    let findings = done.findings.len() as u64;
    let _ = match (findings, done.verifiable) {
        (0, true) => writeln!(text, ": complete and unchanged"),
        (0, false) => writeln!(text, ": undamaged; completeness cannot be verified"),
        (n, _) => writeln!(text, ": {n} finding{}", s(n)),
    };
    text
}

fn json(path: &Path, done: &Checked) -> Result<String> {
    let finding = |f: &hetrace_edit::Finding| json!({ "kind": f.kind, "file": f.file, "text": f.text });
    let report = json!({
        "schema": SCHEMA,
        "trace": path.display().to_string(),
        "sound": done.is_sound(),
        "complete": done.verifiable.then(|| done.is_sound()),
        "unusable": done.unusable,
        "findings": done.findings.iter().map(finding).collect::<Vec<_>>(),
        "notes": done.notes,
        "streams": done.streams,
        "packets": done.packets,
        "events": done.events,
        "bytes": done.bytes,
        "dropped_events": done.dropped,
    });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
