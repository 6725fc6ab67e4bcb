//! The commands that are measured, ours and the peer's, and their tables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};

use anyhow::Result;
use serde_json::{Value, json};

use super::super::ground::Pin;
use super::super::ground::{Ground, succeeds};
use super::super::numbers::Samples;
use super::super::report::{Report, number};
use super::process::{self, Peak, Took};
use super::traces::{Trace, Traces};

/// Bytes of a mebibyte.
pub const MIB: f64 = 1024.0 * 1024.0;
/// Runs for each first line in a round: they are short.
const FIRST_LINES: u32 = 4;

/// A command that reads a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Its name in tables.
    pub name: &'static str,
    /// Whose it is.
    pub tool: Tool,
    /// What stands before the trace.
    arguments: &'static [&'static str],
    /// What stands before it when the trace becomes text line by line.
    pub lines: bool,
}

/// Whose a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// babeltrace2, on one core: it has no threads.
    Peer,
    /// hetrace, on one core and on all.
    Ours,
    /// hetrace, on all cores only: for information.
    OursOnAll,
}

/// babeltrace2 that decodes and drops.
pub const DUMMY: Way = Way::new("babeltrace2 -o dummy", Tool::Peer, &["-o", "dummy"], false);
/// babeltrace2 that prints.
pub const TEXT: Way = Way::new("babeltrace2 (text)", Tool::Peer, &[], true);
/// Our tables.
pub const TALLY: Way = Way::new("hetrace tally", Tool::Ours, &["tally"], false);
/// A line for each call.
pub const PRINT: Way = Way::new("hetrace print", Tool::Ours, &["print"], true);
/// A line for each event, as babeltrace2 has them.
pub const EVENTS: Way = Way::new("hetrace print --events", Tool::Ours, &["print", "--events"], true);
/// The Perfetto file.
pub const TIMELINE: Way = Way::new("hetrace timeline", Tool::Ours, &["timeline", "-o", "-"], false);
const LINT: Way = Way::new("hetrace lint", Tool::Ours, &["lint", "--fail-on", "never"], false);
const WHY: Way = Way::new("hetrace why", Tool::OursOnAll, &["why"], false);

const WAYS: &[Way] = &[DUMMY, TEXT, TALLY, PRINT, EVENTS, TIMELINE, LINT, WHY];
/// What is run to look at its memory.
pub const FOR_MEMORY: &[Way] = &[DUMMY, TALLY, PRINT, EVENTS, TIMELINE, LINT, WHY];

impl Way {
    const fn new(name: &'static str, tool: Tool, arguments: &'static [&'static str], lines: bool) -> Self {
        Way { name, tool, arguments, lines }
    }

    /// The numbers of cores that it is measured on.
    fn cores(self) -> &'static [Cores] {
        match self.tool {
            Tool::Peer => &[Cores::One],
            Tool::Ours => &[Cores::One, Cores::All],
            Tool::OursOnAll => &[Cores::All],
        }
    }

    /// The words that run it, not pinned.
    pub fn words(self, ground: &Ground, trace: &Trace) -> Vec<OsString> {
        let program = match self.tool {
            Tool::Peer => "babeltrace2".into(),
            Tool::Ours | Tool::OursOnAll => ground.hetrace.clone().into(),
        };
        let mut words: Vec<OsString> = vec![program];
        words.extend(self.arguments.iter().map(OsString::from));
        words.push(trace.folder.clone().into());
        words
    }

    /// Whether its program is there.
    pub fn possible(self) -> bool {
        self.tool != Tool::Peer || succeeds("babeltrace2", &["--version"])
    }
}

/// Where a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cores {
    /// On the last core only.
    One,
    /// On all.
    All,
}

impl Cores {
    fn name(self) -> &'static str {
        match self {
            Cores::One => "1",
            Cores::All => "all",
        }
    }
}

/// Everything that was measured; by command, cores and trace.
#[derive(Debug, Default)]
pub struct Found {
    wall: BTreeMap<(&'static str, Cores, String), Samples>,
    cpu: BTreeMap<(&'static str, Cores, String), Samples>,
    rate: BTreeMap<(&'static str, Cores, String), f64>,
    /// Seconds to the first line, by command and trace.
    pub first: BTreeMap<(&'static str, String), Samples>,
    /// Memory, by command, on the long trace.
    pub peak: BTreeMap<&'static str, Peak>,
}

impl Found {
    fn add(&mut self, way: Way, cores: Cores, trace: &Trace, took: Took) {
        let key = (way.name, cores, trace.name.clone());
        let wall = self.wall.entry(key.clone()).or_default();
        wall.add(took.wall);
        self.rate.insert(key.clone(), trace.events as f64 / wall.median());
        self.cpu.entry(key).or_default().add(took.cpu);
    }

    /// Events per second; not a number if it was not measured.
    pub fn rate(&self, way: Way, cores: Cores, trace: &str) -> f64 {
        self.rate.get(&(way.name, cores, trace.to_owned())).copied().unwrap_or(f64::NAN)
    }
}

/// Runs all commands on the two traces, interleaved, and prints the table.
pub fn times(
    ground: &Ground,
    traces: &Traces,
    rounds: u32,
    chosen: &dyn Fn(&Way) -> bool,
    found: &mut Found,
    report: &mut Report,
) {
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let both: Vec<&Trace> = [&traces.lttng, &traces.ours].into_iter().flatten().collect();
    let ways: Vec<Way> = WAYS.iter().copied().filter(|w| w.possible() && chosen(w)).collect();
    for round in 1..=rounds {
        for trace in &both {
            for way in &ways {
                for cores in way.cores() {
                    progress(&format!("round {round} of {rounds}: {} of {}", way.name, trace.name));
                    match once(ground, *way, *cores, trace) {
                        Ok(took) => found.add(*way, *cores, trace, took),
                        Err(error) => {
                            failed.insert(format!("{} of {}", way.name, trace.name), format!("{error:#}"));
                        }
                    }
                }
            }
        }
    }
    progress("");
    report.title("Time to read a trace, output to /dev/null");
    report.line(&format!(
        "medians of {rounds} runs interleaved; ratios to babeltrace2 on one core on the same trace"
    ));
    let mut kept = Vec::new();
    for trace in both {
        let mut rows = Vec::new();
        for way in &ways {
            for cores in way.cores() {
                rows.extend(row(found, *way, *cores, trace, &mut kept));
            }
        }
        report.line("");
        let head = format!("{}, {} million events", trace.name, number(trace.events as f64 / 1e6, 1));
        let head = [
            head.as_str(),
            "cores",
            "s",
            "min s",
            "cpu s",
            "M events/s",
            "MB/s",
            "ns/event",
            "cpu ns/event",
            "/ dummy",
            "/ text",
        ];
        report.table(&head, &rows);
    }
    for (what, why) in failed {
        report.line(&format!("{what} failed: {why}"));
    }
    report.keep("times", json!(kept));
}

/// Shows what runs if stderr is a terminal.
fn progress(what: &str) {
    let mut screen = std::io::stderr();
    if screen.is_terminal() {
        let _ = write!(screen, "\r\x1b[K{what}");
        let _ = screen.flush();
    }
}

fn once(ground: &Ground, way: Way, cores: Cores, trace: &Trace) -> Result<Took> {
    let mut words = if cores == Cores::One { ground.pinned(Pin::Undisturbed) } else { ground.undisturbed() };
    words.extend(way.words(ground, trace));
    process::time(&words)
}

fn row(found: &Found, way: Way, cores: Cores, trace: &Trace, kept: &mut Vec<Value>) -> Option<Vec<String>> {
    let key = (way.name, cores, trace.name.clone());
    let (wall, cpu) = (found.wall.get(&key)?, found.cpu.get(&key)?);
    let rate = found.rate(way, cores, &trace.name);
    let events = trace.events as f64;
    let to = |peer| rate / found.rate(peer, Cores::One, &trace.name);
    kept.push(json!({
        "command": way.name, "trace": trace.name, "cores": cores.name(), "wall": wall.json(),
        "cpu": cpu.json(), "events_per_second": rate, "bytes_per_second": trace.bytes as f64 / wall.median(),
        "to_dummy": to(DUMMY), "to_text": to(TEXT),
    }));
    Some(vec![
        way.name.to_owned(),
        cores.name().to_owned(),
        number(wall.median(), 3),
        number(wall.min(), 3),
        number(cpu.median(), 2),
        number(rate / 1e6, 2),
        number(trace.bytes as f64 / wall.median() / 1e6, 0),
        number(wall.median() / events * 1e9, 1),
        number(cpu.median() / events * 1e9, 1),
        number(to(DUMMY), 2),
        number(to(TEXT), 2),
    ])
}

/// Times to the first line of text, through a pipe.
pub fn first_lines(
    ground: &Ground,
    traces: &Traces,
    rounds: u32,
    chosen: &dyn Fn(&Way) -> bool,
    found: &mut Found,
    report: &mut Report,
) {
    report.title("Time to the first line, through a pipe, with the start of the program, ms");
    let mut rows = Vec::new();
    let mut kept = Vec::new();
    let ways: Vec<Way> = WAYS.iter().copied().filter(|w| w.lines && w.possible() && chosen(w)).collect();
    for _ in 0..rounds * FIRST_LINES {
        for trace in traces.all() {
            for way in &ways {
                let mut words = ground.undisturbed();
                words.extend(way.words(ground, trace));
                match process::first_line(&words) {
                    Ok(s) => found.first.entry((way.name, trace.name.clone())).or_default().add(s),
                    Err(error) => report.line(&format!("{} of {} failed: {error:#}", way.name, trace.name)),
                }
            }
        }
    }
    for ((way, trace), samples) in &found.first {
        rows.push(vec![
            format!("{way}: {trace}"),
            number(samples.median() * 1e3, 1),
            number(samples.min() * 1e3, 1),
            samples.count().to_string(),
        ]);
        kept.push(json!({ "command": way, "trace": trace, "seconds": samples.json() }));
    }
    report.table(&["", "median", "min", "runs"], &rows);
    report.keep("first_line", json!(kept));
}

/// Memory on the long trace, or the longest there is.
pub fn memory(
    ground: &Ground,
    traces: &Traces,
    chosen: &dyn Fn(&Way) -> bool,
    found: &mut Found,
    report: &mut Report,
) {
    let Some(trace) = traces.big.as_ref().or(traces.ours.as_ref()) else { return };
    report.title(&format!(
        "Peak memory, MiB: {}, {} GB, {} million events",
        trace.name,
        number(trace.bytes as f64 / 1e9, 2),
        number(trace.events as f64 / 1e6, 1)
    ));
    let mut rows = Vec::new();
    let mut kept = Vec::new();
    for way in FOR_MEMORY.iter().filter(|w| w.possible() && chosen(w)) {
        progress(way.name);
        let mut words = ground.undisturbed();
        words.extend(way.words(ground, trace));
        let peak = process::peak(&words);
        progress("");
        match peak {
            Ok(peak) => {
                rows.push(vec![
                    way.name.to_owned(),
                    number(peak.rss / MIB, 1),
                    number(peak.anonymous / MIB, 1),
                    number(peak.wall, 2),
                    number(trace.events as f64 / peak.wall / 1e6, 2),
                ]);
                kept.push(json!({ "command": way.name, "rss": peak.rss, "anonymous": peak.anonymous, "wall": peak.wall }));
                if traces.big.is_some() {
                    found.peak.insert(way.name, peak);
                }
            }
            Err(error) => report.line(&format!("{} failed: {error:#}", way.name)),
        }
    }
    report.table(&["command, on all cores", "RSS", "anonymous", "s", "M events/s"], &rows);
    report.line(
        "RSS (VmHWM) counts pages of the mapped trace that happen to be in memory, which the kernel takes \
         back when others need them; anonymous is the program's own",
    );
    report.keep("memory", json!({ "trace": trace.name, "bytes": trace.bytes, "commands": kept }));
}
