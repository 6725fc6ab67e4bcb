//! `hetrace run`.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use hetrace_report::tally::{NextStep, Options, TextOptions, tally};
use hetrace_session::apis::Candidate;
use hetrace_session::manifest::{Capture as CaptureWindows, Exit};
use hetrace_session::trigger::Account;
use hetrace_session::{
    Access, BUFFER_CHOICES, Capture, Early, FlightFinished, Found, Launches, OsAsked, OsOptions, Outcome,
    Place, RunError, RunOptions, Selection, Way, apis, end_by, ended, is_syscall, run as session_run,
    telemetry, usdt,
};

use hetrace_trace::telemetry::HOST;
use hetrace_trace::text::plural;

use super::live::Shown;
use super::{OWN_FAILURE, failure, not_taken, output, say, terminal, wrong_value};
use crate::args::{DeviceTimes, Interpose, Mode, OnFull, Os, Run, Share};
use crate::memory;

/// Returns the options of what is captured.
fn captures(args: &Run) -> Capture {
    let buffers = args.capture_buffers.iter();
    Capture {
        sources: args.sources,
        build_logs: args.build_logs,
        kernel_args: args.kernel_args,
        properties: args.properties,
        buffers: buffers.map(|l| Launches { kernel: l.kernel.clone(), numbers: l.numbers.clone() }).collect(),
        buffer_cap: args.capture_size,
        hash_copies: args.hash_copies,
        no_migrations: args.no_migrations,
        py_stacks: args.py_stacks,
        stack_depth: args.stacks.unwrap_or(0),
    }
}

/// Returns the options of events of the operating system; none if they are off. A glob that matches no system
/// call is an error: nothing would be recorded by it, and nothing would say so.
pub(super) fn os(os: Os, syscalls: &[String], buffer: u32) -> Result<Option<OsOptions>> {
    let asked = match os {
        Os::Off => return Ok(None),
        Os::Auto => OsAsked::Auto,
        Os::Tree => OsAsked::Tree,
        Os::System => OsAsked::System,
    };
    let syscalls: Vec<String> = syscalls.iter().filter(|glob| *glob != "none").cloned().collect();
    if let Some(glob) = syscalls.iter().find(|glob| !is_syscall(glob)) {
        bail!(
            "--os-syscalls: no system call matches `{glob}`; names are the kernel's, such as openat or newfstat"
        );
    }
    let ring_bytes = (buffer as usize) << 10;
    Ok(Some(OsOptions { asked, syscalls, ring_bytes, probes: Vec::new(), pairs: Vec::new() }))
}

/// Returns the options of events of the operating system, with the probes that the user has named: they are such events, so
/// these are recorded, too.
fn with_probes(args: &Run) -> Result<Option<OsOptions>> {
    let asked = os(args.os, &args.os_syscalls, args.os_buffer).map_err(wrong_value)?;
    if args.usdt.is_empty() {
        if asked.is_none() && args.os_syscalls != ["*"] {
            say(format_args!("--os-syscalls: no system calls are recorded without --os: add --os tree"));
        }
        return Ok(asked);
    }
    let possible = hetrace_session::os_probe();
    if let Some((why, fix)) = possible.why.zip(possible.fix) {
        bail!("--usdt needs root or CAP_PERFMON: {why}. To allow it: {fix}");
    }
    let program = hetrace_session::program(&args.command);
    let probes = usdt::find(program.as_deref(), &args.usdt);
    let usdt::Found { probes, pairs } =
        probes.map_err(|error| wrong_value(anyhow::Error::new(error).context("--usdt")))?;
    let options = match asked {
        Some(options) => options,
        None => os(Os::Tree, &args.os_syscalls, args.os_buffer)?.context("events of the system")?,
    };
    Ok(Some(OsOptions { probes, pairs, ..options }))
}

/// Runs a program under trace. Returns its status, whatever becomes of the report; 125 only
/// if the program was not started.
pub fn run(args: Run) -> ExitCode {
    let live = args.live.then(Shown::begin);
    let outcome = record(&args);
    if let Some(live) = live {
        live.end();
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            say(format_args!("{error:#}"));
            return ExitCode::from(not_started(&error));
        }
    };
    if let Some(exit) = outcome.manifest.exit {
        ended(exit);
    }
    let mut stderr = std::io::stderr().lock();
    // stderr may be closed, or the disk behind it full.
    let _ = match &outcome.flight {
        Some(flight) => report_flight(&mut stderr, &outcome, flight, args.quiet),
        None => report(&mut stderr, &outcome, args.quiet),
    };
    drop(stderr);
    status(outcome.manifest.exit)
}

/// Returns the status for a program that did not start, as a shell has it: 127 not found, 126 not to be
/// run; 2 for a wrong command line; 125 if it was our failure.
fn not_started(error: &anyhow::Error) -> u8 {
    match error.downcast_ref() {
        Some(RunError::Start { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => 127,
        Some(RunError::Start { .. }) => 126,
        _ => failure(error),
    }
}

fn access(share: Share) -> Access {
    match share {
        Share::Owner => Access::Owner,
        Share::Group => Access::Group,
    }
}

/// Stacks are unwound on one kind of processor only.
fn on_this_processor(args: &Run) -> Result<()> {
    let wanted = [(args.stacks.is_some(), "--stacks"), (args.cpu_sample.is_some(), "--cpu-sample")];
    match wanted.into_iter().find(|(wanted, _)| *wanted && !cfg!(target_arch = "x86_64")) {
        Some((_, option)) => bail!("{option}: native stacks are unwound on x86-64 only"),
        None => Ok(()),
    }
}

fn record(args: &Run) -> Result<Outcome> {
    if args.capture_buffers.len() > BUFFER_CHOICES {
        return Err(wrong_value(anyhow!("--capture-buffers accepts at most {BUFFER_CHOICES} globs")));
    }
    on_this_processor(args).map_err(wrong_value)?;
    let output = match &args.output {
        Some(path) => {
            not_taken(path)?;
            Place::Named(path.clone())
        }
        None => Place::Numbered(stem(&args.command[0].to_string_lossy())),
    };
    let window = args.window.asked().map_err(wrong_value)?;
    let (window, window_shown) =
        window.map_or((None, String::new()), |(window, shown)| (Some(window), shown));
    let flight = args.flight.asked().map_err(wrong_value)?;
    let rotate = args.long.asked().map_err(wrong_value)?;
    let os = with_probes(args)?;
    let early = Early::begin(os.as_ref());
    let candidates = candidates(&args.trace)?;
    let selection = selection(args);
    let triggers =
        args.flight.triggers(&candidates, &selection, args.sample.is_some()).map_err(wrong_value)?;
    let options = RunOptions {
        device_times: match args.device_times {
            DeviceTimes::Events => hetrace_session::DeviceTimes::Events,
            DeviceTimes::Sampled(every) => hetrace_session::DeviceTimes::Sampled(every),
            DeviceTimes::Auto | DeviceTimes::Off => hetrace_session::DeviceTimes::Auto,
        },
        most_in_flight: args.max_in_flight,
        max_overhead: args.max_overhead,
        window,
        window_shown,
        flight,
        triggers,
        rotate,
        max_disk: args.long.max_disk,
        command: args.command.clone(),
        output,
        access: access(args.share),
        selection,
        way: match args.interpose {
            Interpose::Auto => Way::Auto,
            Interpose::Layer => Way::Layer,
            Interpose::Preload => Way::Preload,
        },
        block: args.on_full == OnFull::Block,
        ring_bytes: args.buffer.clamp(4, 1 << 20) << 10,
        capture: captures(args),
        inside: args.inside.asked().map_err(wrong_value)?,
        compress: args.compress,
        sample: args.sample.map(|period| {
            let given = [("nvml", &args.nvml), ("rocm-smi", &args.rocm_smi), ("sysman", &args.sysman)];
            let given = given.into_iter().filter_map(|(name, file)| Some((name.to_owned(), file.clone()?)));
            telemetry::Options { period, libraries: given.collect() }
        }),
        os,
        cpu_sample: args.cpu_sample,
        shown: std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect(),
    };
    Ok(session_run(&options, &candidates, early)?)
}

/// Returns which functions are recorded.
fn selection(args: &Run) -> Selection {
    Selection {
        mode: match args.mode {
            Mode::Minimal => hetrace_session::Mode::Minimal,
            Mode::Default => hetrace_session::Mode::Default,
            Mode::Full => hetrace_session::Mode::Full,
        },
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        devices: !args.no_device && args.device_times != DeviceTimes::Off,
    }
}

/// The libraries of APIs that are wanted, opened.
pub(super) fn chosen(wanted: &[String]) -> Result<Vec<Found>> {
    let mut found = candidates(wanted)?.iter().map(Candidate::open).collect::<Result<Vec<_>, _>>()?;
    found.sort_by(|a, b| a.api.cmp(&b.api));
    Ok(found)
}

/// The libraries of APIs that are wanted.
fn candidates(wanted: &[String]) -> Result<Vec<Candidate>> {
    let all = apis::candidates()?;
    if all.is_empty() {
        bail!(
            "no API library (libhetrace_*.so) next to the hetrace binary or in ../lib/hetrace; \
             build with `cargo build --release`, or set HETRACE_LIBRARIES"
        );
    }
    if wanted.iter().any(|w| w == "auto") {
        return Ok(all);
    }
    for name in wanted {
        if !all.iter().any(|l| l.api == *name) {
            let names: Vec<&str> = all.iter().map(|l| &*l.api).collect();
            bail!("unknown API `{name}`; available: {}", names.join(", "));
        }
    }
    Ok(all.into_iter().filter(|l| wanted.iter().any(|w| *w == l.api)).collect())
}

/// `hetrace-<program>`, to which a number is added.
fn stem(program: &str) -> PathBuf {
    let base = Path::new(program).file_name().map_or("trace".into(), |n| n.to_string_lossy().into_owned());
    let safe: String =
        base.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    PathBuf::from(format!("hetrace-{safe}"))
}

/// Ends as the program ended. One that a signal ended can't be distinguished from a launcher that it
/// ended; where that is not possible the status is a shell's.
fn status(exit: Option<Exit>) -> ExitCode {
    match exit {
        Some(Exit::Code(code)) => ExitCode::from(code as u8),
        Some(Exit::Signal(signal)) => {
            end_by(signal);
            ExitCode::from(128u8.wrapping_add(signal as u8))
        }
        None => {
            say(format_args!("the program's exit status is unknown: another process collected it"));
            ExitCode::from(OWN_FAILURE)
        }
    }
}

/// Writes the report. An error is that of where it is written to.
fn report(out: &mut (impl Write + IsTerminal + AsFd), outcome: &Outcome, quiet: bool) -> std::io::Result<()> {
    let Outcome { trace, manifest, remarks, recovered, living, .. } = outcome;
    for remark in remarks {
        writeln!(out, "hetrace: {remark}")?;
    }
    for recovered in recovered {
        writeln!(out, "hetrace: {recovered}")?;
    }
    for note in &manifest.notes {
        writeln!(out, "hetrace: {note}")?;
    }
    if *living > 0 {
        let are = if *living == 1 { "is" } else { "are" };
        let processes = plural(*living as u64, "traced process");
        writeln!(out, "hetrace: {processes} {are} still running; the trace ends here")?;
    }
    if let Some(missed) = manifest.capture.as_ref().and_then(missed_window) {
        writeln!(out, "hetrace: {missed}")?;
    }
    let records = manifest.written.records.unwrap_or(0);
    let next = if !quiet && records > 0 { tables(out, trace)? } else { None };
    let losses = &manifest.losses;
    if quiet && losses.device_commands > 0 {
        // Otherwise the tables show it.
        writeln!(out, "hetrace: LOST: {} device commands without times", losses.device_commands)?;
    }
    let dropped = losses.calls_without_ring.saturating_add(losses.calls).saturating_add(losses.records);
    if records == 0 && dropped > 0 {
        writeln!(out, "hetrace: nothing was recorded: all traced calls were dropped")?;
    } else if records == 0 && remarks.is_empty() {
        writeln!(out, "hetrace: the program made no traced calls (see `hetrace doctor`)")?;
    }
    let name = trace.display();
    writeln!(out, "hetrace: {records} records, {} bytes in {name}", manifest.written.bytes)?;
    if let Some(telemetry) = manifest.telemetry.as_ref().filter(|t| t.records > 0) {
        let records = telemetry.records;
        let (host, devices): (Vec<_>, Vec<_>) = telemetry.devices.iter().partition(|d| d.source == HOST);
        let of = match (devices.len(), host.is_empty()) {
            (0, _) => "the host".to_owned(),
            (devices, true) => plural(devices as u64, "device"),
            (devices, false) => format!("{} and the host", plural(devices as u64, "device")),
        };
        writeln!(out, "hetrace: telemetry: {records} records of {of}")?;
    }
    if let Some(samples) = manifest.samples.as_ref().filter(|samples| samples.refused.is_none()) {
        let number = plural(samples.samples, "sample");
        writeln!(out, "hetrace: CPU samples: {number} at {} Hz of each thread", samples.hz)?;
    }
    if let Some(os) = &manifest.os {
        report_os(out, os)?;
    }
    if let Some(NextStep { command, reason }) = next {
        let died = matches!(manifest.exit, Some(Exit::Signal(_)));
        let why = reason.filter(|_| !died).map_or_else(String::new, |reason| format!("  ({reason})"));
        let command = if died { "postmortem" } else { command };
        writeln!(out, "hetrace: next: hetrace {command} {name}{why}")?;
    }
    Ok(())
}

/// Writes what a flight recording left.
fn report_flight(
    out: &mut impl Write,
    outcome: &Outcome,
    flight: &FlightFinished,
    quiet: bool,
) -> std::io::Result<()> {
    let Outcome { manifest, remarks, recovered, living, .. } = outcome;
    for line in remarks.iter().chain(recovered).chain(&manifest.notes) {
        writeln!(out, "hetrace: {line}")?;
    }
    if *living > 0 {
        writeln!(out, "hetrace: {living} traced processes are still running and no longer recorded")?;
    }
    for why in &flight.failed {
        writeln!(out, "hetrace: a snapshot was not written: {why}")?;
    }
    for snapshot in &flight.snapshots {
        writeln!(out, "hetrace: snapshot ({}) {snapshot}", snapshot.flight.reason)?;
        for fired in &snapshot.flight.fired {
            writeln!(out, "hetrace:   {fired}")?;
        }
    }
    for note in flight.triggers.iter().filter_map(Account::note) {
        writeln!(out, "hetrace: {note}")?;
    }
    match flight.snapshots.last() {
        Some(last) if !quiet => {
            let command = next(manifest.exit, &last.flight.reason);
            writeln!(out, "hetrace: next: hetrace {command} {}", last.path.display())
        }
        Some(_) => Ok(()),
        None => writeln!(
            out,
            "hetrace: flight recording: no snapshot was written; ask for one by `hetrace snapshot` while the program \
             runs, or use --flight-at-end"
        ),
    }
}

/// Returns the command that says most of a trace: of a program that did not end by itself, or of a trigger that fired, how
/// it ends.
fn next(exit: Option<Exit>, reason: &str) -> &'static str {
    match (exit, reason) {
        (Some(Exit::Signal(_)), _) | (_, "trigger") => "postmortem",
        _ => "timeline",
    }
}

/// Returns what is to be said of a window that never opened: what there was instead, and what to do.
fn missed_window(capture: &CaptureWindows) -> Option<String> {
    if !capture.windows.is_empty() {
        return None;
    }
    let asked = &capture.asked;
    Some(match (capture.launches, capture.ranges) {
        (Some(0), _) => format!(
            "the capture window never opened ({asked}): the program launched no kernel that hetrace sees"
        ),
        (Some(n), _) => format!(
            "the capture window never opened ({asked}): the program launched {n} kernels, numbers 0 to {}",
            n - 1
        ),
        (_, Some(0)) => format!(
            "the capture window never opened ({asked}): no range has such a name; `hetrace tally` shows the names of all"
        ),
        (_, Some(n)) => format!(
            "the capture window never opened ({asked}): there were {n} such ranges, numbers 0 to {}",
            n - 1
        ),
        _ => format!("the capture window never opened ({asked}): the program ended before"),
    })
}

/// Writes what was recorded of the operating system, and what was dropped.
fn report_os(out: &mut impl Write, os: &hetrace_session::manifest::Os) -> std::io::Result<()> {
    let (events, bytes) = (os.events, os.bytes);
    writeln!(out, "hetrace: operating system: {events} events, {bytes} bytes, by {} ({})", os.way, os.scope)?;
    if os.dropped > 0 {
        let dropped = os.dropped;
        writeln!(
            out,
            "hetrace: LOST: {dropped} events of the operating system: the kernel's ring buffers were full; {}",
            match os.way.as_str() {
                "switches" => "they are as large as this user may have them",
                _ => "use a larger --os-buffer, or record fewer system calls by --os-syscalls",
            }
        )?;
    }
    if os.unseen_switches > 0 {
        let switches = plural(os.unseen_switches, "context switch");
        writeln!(out, "hetrace: LOST: {switches} that the kernel did not deliver")?;
    }
    for missing in &os.missing {
        writeln!(out, "hetrace: not recorded: {missing}")?;
    }
    Ok(())
}

/// Writes the tables of a trace; returns what to look at next.
fn tables(out: &mut (impl Write + IsTerminal + AsFd), trace: &Path) -> std::io::Result<Option<NextStep>> {
    memory::in_large_pieces();
    let opened = match super::open(trace) {
        Ok(opened) => opened,
        Err(error) => {
            writeln!(out, "hetrace: no tables: {error:#}")?;
            return Ok(None);
        }
    };
    let tables = tally(&opened, &Options { extended: false });
    let options = TextOptions {
        colour: terminal::colour(out),
        extended: false,
        width: terminal::columns(out),
        ..TextOptions::default()
    };
    let text = tables.render(&options);
    let text = if terminal::is_ascii() { output::ascii(&text) } else { text };
    write!(out, "{text}")?;
    Ok(Some(tables.next_step()))
}
