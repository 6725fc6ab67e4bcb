//! Memory: of a recording thread, and of the launcher.
//!
//! A thread's ring is mapped twice in a row, so that the resident size (RSS)
//! counts it twice; the proportional size (PSS) divides a page by how often it
//! is mapped, so that program and launcher together show what is really used.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::ground::{Ground, Pin};
use super::iterations;
use super::report::{Report, difference, number};
use super::scale::Scale;
use super::setting::{DEFAULT, Setting, command};
use crate::repo;

const MIB: f64 = 1024.0 * 1024.0;

/// What the verdict needs, in bytes.
#[derive(Debug)]
pub struct Memory {
    /// Of a recording thread: the program's and the rings in the launcher (PSS).
    pub thread: f64,
    /// The same of a thread that also makes commands.
    pub thread_with_commands: f64,
    /// What the program's RSS grows by.
    pub thread_rss: f64,
    /// The launcher, in all runs.
    pub launcher: Launcher,
}

/// The launcher's largest sizes in all runs, in bytes.
#[derive(Debug, Default)]
pub struct Launcher {
    /// Resident, mapped files included.
    pub rss: f64,
    /// The program it ran then.
    pub program: String,
    /// Its own memory.
    pub anonymous: f64,
}

/// Measures and prints the tables.
pub fn run(ground: &Ground, scale: &Scale, report: &mut Report) -> Result<Memory> {
    report.title("Memory of a recording thread, KiB");
    let many = if scale.quick { 40 } else { 100 };
    let cases = [("1,000 calls", many, 1000, 0), ("1,000 calls and 5,000 commands", 20, 1000, 5000)];
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for (what, threads, calls, commands) in cases {
        let per_thread = |setting| -> Result<Held> {
            let few = hold(ground, setting, 1, calls, commands)?;
            Ok(hold(ground, setting, threads, calls, commands)?.less(few).over(f64::from(threads) - 1.0))
        };
        let bare = per_thread(Setting::Bare)?;
        let mut all = vec![("bare", bare)];
        for setting in [Setting::Dormant, DEFAULT] {
            all.push((setting.name(), per_thread(setting)?.less(bare)));
        }
        for (i, (name, held)) in all.iter().enumerate() {
            let cell = |v: f64| if i == 0 { number(v / 1024.0, 1) } else { difference(v / 1024.0, 1) };
            rows.push(vec![
                format!("{what}, {name}"),
                cell(held.rss),
                cell(held.pss),
                cell(held.tables),
                cell(held.rings),
                cell(held.launcher),
                cell(held.pss + held.launcher),
                cell(held.launcher_own),
            ]);
        }
        found.push(all[2].1);
    }
    report.line(&format!("{many} threads (20 with commands) less 1, per thread; settings as added to bare"));
    let head = [
        "thread",
        "RSS",
        "PSS",
        "page tables",
        "ring files",
        "rings in launcher (PSS)",
        "PSS + rings in launcher",
        "launcher's own",
    ];
    report.table(&head, &rows);
    let launcher = launchers(ground, scale, report)?;
    let [plain, with_commands] = [found[0], found[1]];
    report.keep(
        "memory",
        json!({
            "thread_pss": plain.pss + plain.launcher, "thread_rss": plain.rss,
            "thread_with_commands_pss": with_commands.pss + with_commands.launcher,
            "launcher_peak": launcher.rss, "launcher_anonymous": launcher.anonymous,
        }),
    );
    Ok(Memory {
        thread: plain.pss + plain.launcher,
        thread_with_commands: with_commands.pss + with_commands.launcher,
        thread_rss: plain.rss,
        launcher,
    })
}

/// Memory of a program whose threads have recorded and wait, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    rss: f64,
    pss: f64,
    tables: f64,
    /// The rings' share of the launcher.
    launcher: f64,
    /// The launcher's own: commands that it holds back to sort them, and such.
    launcher_own: f64,
    rings: f64,
}

impl Held {
    fn each(self, other: Held, f: impl Fn(f64, f64) -> f64) -> Held {
        Held {
            rss: f(self.rss, other.rss),
            pss: f(self.pss, other.pss),
            tables: f(self.tables, other.tables),
            launcher: f(self.launcher, other.launcher),
            launcher_own: f(self.launcher_own, other.launcher_own),
            rings: f(self.rings, other.rings),
        }
    }

    fn less(self, other: Held) -> Held {
        self.each(other, |a, b| a - b)
    }

    fn over(self, n: f64) -> Held {
        self.each(self, |a, _| a / n)
    }
}

fn hold(ground: &Ground, setting: Setting, threads: u32, calls: u32, commands: u32) -> Result<Held> {
    let mut program: Vec<OsString> = vec![ground.program("hold_threads").into()];
    program.extend([threads, calls, commands].map(|n| n.to_string().into()));
    let (words, trace) = setting.words(ground, Pin::No, &program)?;
    let mut command = command(&words)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = BufReader::new(child.stdout.take().context("its output")?);
    let held = look(&child, output, trace.is_some());
    drop(child.stdin.take()); // So that it ends.
    let status = child.wait()?;
    if let Some(trace) = trace {
        let _ = fs::remove_dir_all(trace);
    }
    if !status.success() {
        bail!("hold_threads: {status}");
    }
    held
}

fn look(child: &Child, mut output: BufReader<ChildStdout>, traced: bool) -> Result<Held> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    let pid: u32 = line.trim().strip_prefix("ready ").context("no `ready` line")?.parse()?;
    // The launcher looks at new rings every few milliseconds.
    std::thread::sleep(Duration::from_millis(300));
    let program = format!("/proc/{pid}/smaps_rollup");
    let mut held = Held {
        rss: field(&program, "Rss:")?,
        pss: field(&program, "Pss:")?,
        tables: field(&format!("/proc/{pid}/status"), "VmPTE:")?,
        ..Held::default()
    };
    if traced {
        let launcher = format!("/proc/{}/smaps_rollup", child.id());
        held.launcher = field(&launcher, "Pss_Shmem:")?;
        held.launcher_own = field(&launcher, "Pss_Anon:")?;
        held.rings = session_bytes(pid)?;
    }
    Ok(held)
}

/// A line `NAME  123 kB` of a file under /proc, in bytes.
fn field(path: &str, name: &str) -> Result<f64> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)).with_context(|| format!("{path}: {name}"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0)
}

/// Memory that the files of a traced program's session take.
fn session_bytes(pid: u32) -> Result<f64> {
    let environment = fs::read(format!("/proc/{pid}/environ"))?;
    let variables = environment.split(|b| *b == 0).map(String::from_utf8_lossy);
    let session: PathBuf = variables
        .filter_map(|v| v.strip_prefix("HETRACE_SESSION=").map(PathBuf::from))
        .next()
        .context("the program has no session")?;
    let mut blocks = 0;
    for entry in fs::read_dir(&session)? {
        blocks += entry?.metadata()?.blocks();
    }
    Ok(blocks as f64 * 512.0)
}

/// The launcher's own largest RSS, for runs short and long.
fn launchers(ground: &Ground, scale: &Scale, report: &Report) -> Result<Launcher> {
    report.line("");
    let (iterations, rounds) = if scale.quick { (1000, 5) } else { (10_000, 20) };
    let linked: OsString = repo::root().join("tests/programs/build/linked").into();
    let loops: OsString = (if scale.quick { "1000" } else { "10000" }).into();
    let long = iterations::program(ground, (10, 10, iterations), rounds);
    let threads: OsString = ground.program("hold_threads").into();
    let programs = [
        ("true".to_owned(), vec!["true".into()]),
        (format!("linked {}", loops.to_string_lossy()), vec![linked, loops]),
        (format!("{} iterations of 10x10", iterations * rounds), long),
        ("100 threads".to_owned(), vec![threads.clone(), "100".into(), "1000".into()]),
        ("20 threads, 5,000 commands each".to_owned(), vec![threads, "20".into(), "0".into(), "5000".into()]),
    ];
    let mut rows = Vec::new();
    let mut most = Launcher::default();
    for (what, words) in &programs {
        let mut row = vec![what.clone()];
        for quiet in [true, false] {
            let peak = peak(ground, quiet, words)?;
            row.extend([peak.rss, peak.anonymous, peak.rings].map(|bytes| number(bytes / MIB, 1)));
            if peak.rss > most.rss {
                most = Launcher { rss: peak.rss, program: what.clone(), ..most };
            }
            most.anonymous = most.anonymous.max(peak.anonymous);
        }
        rows.push(row);
    }
    let head = [
        "the launcher's peak, MiB",
        "-q: RSS",
        "anonymous",
        "rings",
        "with tables: RSS",
        "anonymous",
        "rings",
    ];
    report.table(&head, &rows);
    report.line("RSS: VmHWM, with mapped files (the trace, when tables are made); the parts: largest seen");
    Ok(most)
}

/// The launcher's largest sizes, in bytes.
#[derive(Debug, Default)]
struct Peak {
    /// Resident, as the kernel kept it.
    rss: f64,
    /// Of that its own memory; the largest that was seen.
    anonymous: f64,
    /// Of that rings, which the program's threads are charged for.
    rings: f64,
}

/// Runs a program and watches the launcher.
fn peak(ground: &Ground, quiet: bool, program: &[OsString]) -> Result<Peak> {
    let trace = ground.work.join("trace-peak");
    let _ = fs::remove_dir_all(&trace);
    let mut words: Vec<OsString> = vec![ground.hetrace.clone().into(), "run".into()];
    words.extend(quiet.then(|| "-q".into()));
    words.extend(["-o".into(), trace.clone().into(), "--".into()]);
    words.extend_from_slice(program);
    let mut command = command(&words)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = Peak::default();
    while child.try_wait()?.is_none() {
        // Read until it is gone: the last look has the highest mark.
        let seen = |name: &str| field(&status, name).unwrap_or(0.0);
        peak.rss = peak.rss.max(seen("VmHWM:"));
        peak.anonymous = peak.anonymous.max(seen("RssAnon:"));
        peak.rings = peak.rings.max(seen("RssShmem:"));
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = fs::remove_dir_all(&trace);
    Ok(peak)
}
