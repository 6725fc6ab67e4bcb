//! `hetrace pack` and `hetrace unpack`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use hetrace_ctf::read::Files;
use hetrace_edit::{Error, PackOptions};
use hetrace_session::manifest::Manifest;
use hetrace_session::recover::{State, state};

use super::newest;
use super::outside::outside;
use super::say;
use super::watch::Watch;

/// Where the manifest is in a trace.
const MANIFEST: &str = "hetrace/manifest.json";
/// Exit status when not everything could be unpacked.
const INCOMPLETE: u8 = 1;

/// Options of `pack`.
#[derive(Debug, Args)]
pub struct Pack {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// The file to write; must not exist [default: the trace's name with .tar]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Compression level: 1 is the fastest, 19 the slowest
    #[arg(long, default_value_t = PackOptions::default().level, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: i32,
    /// Remove the folder after the file has been verified against it; not while it is recorded
    #[arg(long)]
    pub remove: bool,
}

/// Options of `unpack`.
#[derive(Debug, Args)]
pub struct Unpack {
    /// The packed trace
    pub file: PathBuf,
    /// The folder to write; must not exist [default: the file's name without .tar]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
}

/// Packs a trace.
pub fn run(args: &Pack) -> Result<ExitCode> {
    let trace = newest::trace(args.trace.as_deref())?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => beside(&trace, |name| format!("{name}.{}", newest::EXTENSION))?,
    };
    outside(&trace, &output)?;
    if is_recorded(&trace) {
        let shown = trace.display();
        if args.remove {
            bail!(
                "{shown}: still being recorded, so it can't be removed; pack it without --remove, or when it has ended"
            );
        }
        say(format_args!("{shown}: still being recorded: what comes from now on is not in the packed file"));
    }
    let options = PackOptions { level: args.level, remove: args.remove };
    let watch = Watch::of_bytes();
    let done = hetrace_edit::pack(&trace, &output, &options, &|bytes| watch.seen(bytes));
    watch.end();
    let done = match done {
        Err(Error::Stopped) => return Ok(watch.stopped()),
        done => done?,
    };
    for name in &done.left_out {
        say(format_args!("{}: left out: not a file of the trace", trace.join(name).display()));
    }
    let ratio = done.before as f64 / done.after.max(1) as f64;
    writeln!(
        std::io::stdout().lock(),
        "{}: {} files, {:.1} MB instead of {:.1} MB ({ratio:.1} times smaller)",
        output.display(),
        done.files,
        done.after as f64 / 1e6,
        done.before as f64 / 1e6,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether somebody writes into a trace: of a series, into its last part.
fn is_recorded(trace: &Path) -> bool {
    let Ok(files) = Files::open(trace) else { return false };
    let text = files.read(MANIFEST).ok().flatten();
    let manifest = text.and_then(|text| Manifest::parse(&text).ok()).unwrap_or_default();
    let session = manifest.session.as_ref().filter(|_| !manifest.is_finished());
    session.is_some_and(|session| state(session) == State::Alive)
}

/// Unpacks a trace.
pub fn unpack(args: &Unpack) -> Result<ExitCode> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => beside(&args.file, |name| {
            let stem = name.strip_suffix(&format!(".{}", newest::EXTENSION));
            stem.map_or_else(|| format!("{name}.unpacked"), str::to_owned)
        })?,
    };
    outside(&args.file, &output)?;
    let watch = Watch::of_bytes();
    let done = hetrace_edit::unpack(&args.file, &output, &|bytes| watch.seen(bytes));
    watch.end();
    let done = match done {
        Err(Error::Stopped) => return Ok(watch.stopped()),
        done => done?,
    };
    for problem in &done.problems {
        say(format_args!("{problem}"));
    }
    let (files, megabytes) = (done.files, done.bytes as f64 / 1e6);
    writeln!(std::io::stdout().lock(), "{}: {files} files, {megabytes:.1} MB", output.display())?;
    Ok(if done.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// Returns a name in this folder, derived from that of a trace.
fn beside(trace: &Path, name: impl Fn(&str) -> String) -> Result<PathBuf> {
    let real = trace.canonicalize()?;
    match real.file_name().and_then(|n| n.to_str()) {
        Some(last) => Ok(PathBuf::from(name(last))),
        None => bail!("{}: choose a name for the result with -o", trace.display()),
    }
}
