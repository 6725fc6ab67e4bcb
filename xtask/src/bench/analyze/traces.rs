//! The traces that are read: recorded once, kept under `target/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::super::ground::{Ground, make};
use super::super::report::Report;
use super::super::setting::command;
use super::Scale;
use crate::repo;

/// Threads of the program under LTTng, all processes together.
const DEMO_THREADS: u64 = 4;
/// Events of a step of the program under LTTng.
const DEMO_STEP: u64 = 24;
/// Threads of the program under hetrace.
const LOAD_THREADS: u64 = 4;
/// Events of its iterations: 24 calls and 3 commands.
const LOAD_STEP: u64 = 51;
/// Bytes of such an iteration, nearly.
const LOAD_BYTES: u64 = 1190;

/// A trace on disk.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Its name in tables.
    pub name: String,
    /// The folder with the file `metadata`.
    pub folder: PathBuf,
    /// Events in it.
    pub events: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Events that are missing.
    pub lost: u64,
}

/// All that are measured.
#[derive(Debug, Default)]
pub struct Traces {
    /// By LTTng-UST; nothing where that is not installed.
    pub lttng: Option<Trace>,
    /// By hetrace.
    pub ours: Option<Trace>,
    /// By hetrace, for memory.
    pub big: Option<Trace>,
    /// Why some are missing.
    pub notes: Vec<String>,
}

impl Traces {
    /// Finds or records the traces.
    ///
    /// # Errors
    ///
    /// If neither can be had.
    pub fn make(
        ground: &Ground,
        cache: &Path,
        scale: Scale,
        big: bool,
        fresh: bool,
        report: &Report,
    ) -> Result<Self> {
        let mut traces = Traces::default();
        let lttng = by_lttng(cache, scale.events(), fresh, report);
        let ours = by_hetrace(ground, cache, "ours", scale.events(), fresh, report);
        for (slot, made) in [(&mut traces.lttng, lttng), (&mut traces.ours, ours)] {
            match made {
                Ok(trace) => *slot = Some(trace),
                Err(error) => traces.notes.push(format!("skipped: {error:#}")),
            }
        }
        if traces.lttng.is_none() && traces.ours.is_none() {
            bail!("there is nothing to read: {}", traces.notes.join("; "));
        }
        let events = scale.big() * LOAD_STEP / LOAD_BYTES;
        let there = cache.join(format!("ours-{events}")).is_dir();
        if big || there {
            let room = if there && !fresh { Ok(()) } else { room(cache, scale.big()) };
            match room.and_then(|()| by_hetrace(ground, cache, "ours, long", events, fresh && big, report)) {
                Ok(trace) => traces.big = Some(trace),
                Err(error) => traces.notes.push(format!("the long trace is skipped: {error:#}")),
            }
        } else {
            traces.notes.push("the long trace is not there: --big records it".to_owned());
        }
        for trace in traces.all() {
            warm(&trace.folder);
        }
        Ok(traces)
    }

    /// Short ones to count instructions on: two lengths of each, to take their difference.
    pub fn pairs(ground: &Ground, cache: &Path, fresh: bool, report: &Report) -> Vec<Result<[Trace; 2]>> {
        let sizes = [60_000, 360_000];
        let both = |make: &dyn Fn(u64) -> Result<Trace>| Ok([make(sizes[0])?, make(sizes[1])?]);
        vec![
            both(&|events| by_lttng(cache, events, fresh, report)),
            both(&|events| by_hetrace(ground, cache, "ours", events, fresh, report)),
        ]
    }

    /// Those that are there.
    pub fn all(&self) -> Vec<&Trace> {
        [&self.lttng, &self.ours, &self.big].into_iter().flatten().collect()
    }
}

fn by_lttng(cache: &Path, events: u64, fresh: bool, report: &Report) -> Result<Trace> {
    let steps = events.div_ceil(DEMO_STEP * DEMO_THREADS);
    kept(cache, "LTTng-UST", &format!("lttng-{events}"), fresh, report, |folder| {
        make("bench/lttng-load", "all").context("make -C bench/lttng-load")?;
        let script = repo::root().join("bench/lttng-load/record.sh");
        let words: [OsString; 5] =
            [script.into(), folder.into(), steps.to_string().into(), "2".into(), "2".into()];
        let said = patiently(&words)?;
        let inner = leaf(folder).context("LTTng wrote no trace")?;
        let events = steps * DEMO_STEP * DEMO_THREADS;
        let counted = count(&inner)?;
        if counted > events {
            bail!("{counted} events instead of {events}");
        }
        Ok((inner, counted, (events - counted).max(value(&said, "events_discarded"))))
    })
}

fn by_hetrace(
    ground: &Ground,
    cache: &Path,
    name: &str,
    events: u64,
    fresh: bool,
    report: &Report,
) -> Result<Trace> {
    let iterations = events.div_ceil(LOAD_STEP * LOAD_THREADS);
    kept(cache, name, &format!("ours-{events}"), fresh, report, |folder| {
        make("bench/programs", "build/analyze_load").context("make -C bench/programs")?;
        let mut words: Vec<OsString> = vec![ground.hetrace.clone().into()];
        words.extend(
            ["run", "-q", "-m", "full", "--on-full", "block", "-t", "opencl", "-o"].map(OsString::from),
        );
        words.extend([folder.into(), "--".into(), ground.program("analyze_load").into()]);
        words.extend([iterations.to_string().into(), LOAD_THREADS.to_string().into()]);
        let out = command(&words)?.output().context("starting hetrace run")?;
        if !out.status.success() {
            bail!("hetrace run: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
        }
        let manifest: Value = serde_json::from_slice(&fs::read(folder.join("hetrace/manifest.json"))?)?;
        let number = |at: &str| manifest.pointer(at).and_then(Value::as_u64).unwrap_or_default();
        let lost = number("/losses/records") + number("/losses/device_commands");
        Ok((folder.to_owned(), number("/written/records"), lost))
    })
}

/// A trace of this name if it is there, else what `record` makes. A recording that did not
/// come to its end is never taken for one.
fn kept(
    cache: &Path,
    name: &str,
    file: &str,
    fresh: bool,
    report: &Report,
    record: impl FnOnce(&Path) -> Result<(PathBuf, u64, u64)>,
) -> Result<Trace> {
    let (folder, about) = (cache.join(file), cache.join(format!("{file}.json")));
    if !fresh && let Ok(text) = fs::read(&about) {
        let about: Value = serde_json::from_slice(&text)?;
        let number = |key: &str| about[key].as_u64().unwrap_or_default();
        let inner = folder.join(about["inner"].as_str().unwrap_or_default());
        if inner.join("metadata").is_file() && number("events") > 0 {
            let (events, bytes, lost) = (number("events"), number("bytes"), number("lost"));
            return Ok(Trace { name: name.to_owned(), folder: inner, events, bytes, lost });
        }
    }
    report.line(&format!("recording {file} …"));
    fs::create_dir_all(cache).with_context(|| cache.display().to_string())?;
    let making = cache.join(format!("{file}.making"));
    for old in [&making, &folder] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| old.display().to_string())?;
        }
    }
    let recorded = record(&making);
    let (inner, events, lost) = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            let _ = fs::remove_dir_all(&making);
            return Err(error.context(format!("recording {file}")));
        }
    };
    let within = inner.strip_prefix(&making)?.to_owned();
    let bytes = size(&making)?;
    fs::rename(&making, &folder)?;
    let text = json!({
        "inner": within.to_string_lossy(), "events": events, "bytes": bytes, "lost": lost,
    });
    fs::write(&about, format!("{text:#}\n"))?;
    Ok(Trace { name: name.to_owned(), folder: folder.join(within), events, bytes, lost })
}

/// Runs the script that records with LTTng. A machine has room for one session daemon of
/// root's: while another is there, it waits.
fn patiently(words: &[OsString]) -> Result<String> {
    let mut patience = 120;
    loop {
        let out = command(words)?.output().context("starting record.sh")?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        if out.status.code() != Some(125) || patience == 0 {
            bail!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
        }
        patience -= 1;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Events in a trace, by babeltrace2.
fn count(folder: &Path) -> Result<u64> {
    let out = Command::new("babeltrace2")
        .arg(folder)
        .args(["--component", "sink.utils.counter", "--params", "step=+0"])
        .output()
        .context("starting babeltrace2")?;
    event_messages(&String::from_utf8_lossy(&out.stdout)).with_context(|| {
        format!("babeltrace2 reports no number of events: {}", String::from_utf8_lossy(&out.stderr).trim())
    })
}

/// The number in the line `N Event messages` of babeltrace2's counter; the last one.
fn event_messages(text: &str) -> Option<u64> {
    let of = |line: &str| {
        let (count, what) = line.trim().split_once(' ')?;
        what.starts_with("Event message").then(|| count.replace(',', "").parse().ok())?
    };
    text.lines().filter_map(of).next_back()
}

/// The number behind a key in lines of `key value`; 0 if it is not there.
fn value(text: &str, key: &str) -> u64 {
    let of = |line: &str| line.strip_prefix(key)?.trim().parse().ok();
    text.lines().find_map(of).unwrap_or_default()
}

/// The folder with a file `metadata`, this one or below.
fn leaf(folder: &Path) -> Option<PathBuf> {
    if folder.join("metadata").is_file() {
        return Some(folder.to_owned());
    }
    let folders = fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_dir());
    folders.into_iter().find_map(|f| leaf(&f))
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        bytes += if data.is_dir() { size(&entry.path())? } else { data.len() };
    }
    Ok(bytes)
}

/// Fails if a disk has no room for twice as many bytes: others use it, too.
fn room(folder: &Path, bytes: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let out = Command::new("df").args(["-B1", "--output=avail"]).arg(folder).output().context("df")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let free: u64 = text.lines().last().and_then(|l| l.trim().parse().ok()).context("df reports nothing")?;
    if free < 2 * bytes {
        bail!(
            "{} GB are free at {}; twice {} are needed",
            free / 1_000_000_000,
            folder.display(),
            bytes / 1_000_000_000
        );
    }
    Ok(())
}

/// Reads all files once, so that none is measured with a cold cache.
fn warm(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_file()
            && let Ok(mut file) = fs::File::open(entry.path())
        {
            let _ = std::io::copy(&mut file, &mut std::io::sink());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn babeltrace2s_last_count_counts() {
        let text = "              10 Event messages\n               2 Packet beginning messages\n\
                    1,960,000 Event messages\n 4 messages (TOTAL)\n";
        assert_eq!(event_messages(text), Some(1_960_000));
        assert_eq!(event_messages(" 1 Event message\n"), Some(1));
        assert_eq!(event_messages("0 messages\n"), None);
    }

    #[test]
    fn what_the_script_says() {
        assert_eq!(value("events_discarded 7\npackets_lost 1\n", "events_discarded"), 7);
        assert_eq!(value("", "events_discarded"), 0);
    }

    #[test]
    fn a_recording_is_made_once_and_never_half() {
        let cache = std::env::temp_dir().join(format!("hetrace-kept-{}", std::process::id()));
        let report = Report::new(true);
        let record = |text: &'static str| {
            move |folder: &Path| {
                fs::create_dir_all(folder.join("in"))?;
                fs::write(folder.join("in/metadata"), text)?;
                if text.is_empty() {
                    bail!("broke off");
                }
                Ok((folder.join("in"), 5, 1))
            }
        };
        let error = kept(&cache, "t", "t-5", false, &report, record("")).unwrap_err();
        assert!(format!("{error:#}").contains("broke off"));
        let first = kept(&cache, "t", "t-5", false, &report, record("abc")).unwrap();
        assert_eq!((first.events, first.bytes, first.lost), (5, 3, 1));
        let second = kept(&cache, "t", "t-5", false, &report, record("other")).unwrap();
        assert_eq!(
            (second.bytes, fs::read_to_string(second.folder.join("metadata")).unwrap()),
            (3, "abc".into())
        );
        let third = kept(&cache, "t", "t-5", true, &report, record("other")).unwrap();
        assert_eq!(third.bytes, 5);
        fs::remove_dir_all(&cache).unwrap();
    }
}
