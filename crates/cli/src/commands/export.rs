//! `hetrace export`.
//!
//! A new format is a variant of [`Format`], an arm in [`Format::form`] and a
//! function that calls `hetrace-export`; where its bytes go, and what becomes of
//! them when the work is stopped, is done here for all.

mod place;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use hetrace_export::{Error, Watch as Ask, chrome, inside, otf2, parquet, stacks};
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::Stopped;

use self::place::Place;
use super::newest;
use super::output::Output;
use super::outside::outside;
use super::say;
use super::watch::Watch;
use crate::args::Kernel;

/// Options of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// The format to write
    #[arg(short, long, value_enum)]
    pub format: Format,
    /// The file or folder to write; `-` writes a file to stdout [default: the trace's name with the
    /// extension of the format, in this folder]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Leave out the arguments of calls
    #[arg(long)]
    pub no_arguments: bool,
    /// Parquet: the rank of this trace [default: as set by the job launcher (OMPI_COMM_WORLD_RANK,
    /// SLURM_PROCID, torchrun's RANK, ...); 0 in file names if there is none]
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Folded stacks and flame graphs: the weight of a call: time, calls, device or bytes; cpu: samples of
    /// processors (run --cpu-sample)
    #[arg(long, default_value = "time")]
    pub weight: stacks::Weight,
    /// Folded stacks and flame graphs: the program's ranges (NVTX, ITT, ROCTX, OpenMP, marks, pairs of probes) as frames
    /// around the calls and samples inside them
    #[arg(long)]
    pub ranges: bool,
    #[command(flatten)]
    pub kernel: Kernel,
}

/// What can be written.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Format {
    /// A folder of tables for DuckDB, pyarrow and others; several hosts and ranks can share it
    Parquet,
    /// An OTF2 archive, for Vampir, Scalasca and otf2-print
    Otf2,
    /// Chrome trace events (JSON), for speedscope, Perfetto and chrome://tracing
    Chrome,
    /// Folded stacks, for flamegraph.pl and speedscope
    Folded,
    /// A flame graph (SVG)
    Flame,
    /// What was recorded inside of kernels (run --inside), as a CTF 1.8 trace of its own with a stream for each
    /// multiprocessor, for babeltrace2 and Trace Compass
    CtfInside,
}

/// What was read, and what the format cannot represent.
type Written = (Summary, Vec<String>);
/// Writes one file.
type ToFile = fn(&Trace, &Export, Ask<'_>, &mut dyn Write) -> Result<Written, Error>;
/// Writes into an empty folder.
type ToFolder = fn(&Trace, &Export, Ask<'_>, &Path) -> Result<Written, Error>;

/// What a format's function writes to.
#[derive(Clone, Copy)]
enum To {
    /// One file.
    File(ToFile),
    /// A folder that must not be there.
    Folder(ToFolder),
    /// A folder that others may have written into before: only the same files must not be there.
    Shared(ToFolder),
}

/// All that is to be known of a format.
struct Form {
    /// What the trace's name gets at its end.
    ending: &'static str,
    to: To,
    /// What to do with it, which is called OUT.
    then: &'static str,
}

impl Format {
    fn form(self) -> Form {
        match self {
            Self::Parquet => Form {
                ending: ".parquet",
                to: To::Shared(to_parquet),
                then: "one folder per table, such as calls and commands; in DuckDB: SELECT name, sum(duration_ns) FROM \
                       read_parquet('OUT/calls/**/*.parquet', hive_partitioning = true) GROUP BY name ORDER BY 2 \
                       DESC; see docs/export-parquet.md",
            },
            Self::Otf2 => Form {
                ending: ".otf2",
                to: To::Folder(to_otf2),
                then: "the anchor file is traces.otf2; `otf2-print` shows the content",
            },
            Self::Chrome => Form {
                ending: ".json",
                to: To::File(to_chrome),
                then: "open it at https://www.speedscope.app or https://ui.perfetto.dev",
            },
            Self::Folded => Form {
                ending: ".folded",
                to: To::File(|trace, args, watch, out| {
                    to_stacks(trace, args, watch, out, stacks::Form::Folded)
                }),
                then: "one line per call path",
            },
            Self::Flame => Form {
                ending: ".svg",
                to: To::File(|trace, args, watch, out| {
                    to_stacks(trace, args, watch, out, stacks::Form::Flame)
                }),
                then: "open it in a browser",
            },
            Self::CtfInside => Form {
                ending: ".inside",
                to: To::Folder(to_ctf_inside),
                then: "`babeltrace2 OUT` shows the records, together with the trace's own events if that is named, too; see \
                       docs/inside.md",
            },
        }
    }
}

fn to_parquet(trace: &Trace, args: &Export, watch: Ask<'_>, folder: &Path) -> Result<Written, Error> {
    let options = parquet::Options { arguments: !args.no_arguments, rank: args.rank };
    parquet::export(trace, &options, watch, folder).map(|summary| (summary, Vec::new()))
}

fn to_ctf_inside(trace: &Trace, _: &Export, watch: Ask<'_>, folder: &Path) -> Result<Written, Error> {
    let written = inside::write(trace, folder, watch)?;
    let mut summary = Summary::default();
    summary.add_manifest(trace);
    let mut left = Vec::new();
    if written.unplaced > 0 {
        left.push(format!("{} launches whose times on the device are not known", written.unplaced));
    }
    Ok((summary, left))
}

fn to_otf2(trace: &Trace, _: &Export, watch: Ask<'_>, folder: &Path) -> Result<Written, Error> {
    let written = otf2::write(trace, folder, watch)?;
    // Dropped events are reported for all formats.
    let own = |(name, ..): &(&str, &str, u64)| !name.starts_with("LOST") && !name.starts_with("DAMAGED");
    let left = written.missing().into_iter().filter(own).map(|(_, what, n)| format!("{n} {what}")).collect();
    Ok((written.summary, left))
}

fn to_chrome(trace: &Trace, args: &Export, watch: Ask<'_>, out: &mut dyn Write) -> Result<Written, Error> {
    let options = chrome::Options { arguments: !args.no_arguments };
    chrome::write(trace, &options, out, watch).map(|written| (written.summary, Vec::new()))
}

fn to_stacks(
    trace: &Trace,
    args: &Export,
    watch: Ask<'_>,
    out: &mut dyn Write,
    form: stacks::Form,
) -> Result<Written, Error> {
    let options = stacks::Options { weight: args.weight, form, merge_threads: false, ranges: args.ranges };
    let written = stacks::write(trace, &options, out, watch)?;
    let left = match written.lost_causes {
        0 => Vec::new(),
        n => vec![format!("{n} commands whose calls are unknown")],
    };
    Ok((written.summary, left))
}

/// Writes a trace in the format of another tool.
pub fn run(args: &Export) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let form = args.format.form();
    let output = args.output.clone().unwrap_or_else(|| {
        // Of `.` and `a/..`, too, the name that it has.
        let named = path.canonicalize().ok();
        let named = named.as_deref();
        // A packed trace is called as the folder was.
        let packed = named.is_some_and(|path| path.is_file() && path.extension().is_some_and(|e| e == "tar"));
        let name = if packed { named.and_then(Path::file_stem) } else { named.and_then(Path::file_name) };
        let mut name = name.unwrap_or_default().to_owned();
        name.push(form.ending);
        PathBuf::from(name)
    });
    if let To::File(write) = form.to
        && output.as_os_str() == "-"
    {
        let mut trace = open(&path)?;
        let watch = Watch::new(false);
        watch.expect(super::events(&trace));
        if join(&path, &mut trace, args, &watch)?.is_err() {
            return Ok(watch.stopped());
        }
        let mut out = BufWriter::new(Output::new()?);
        let written = write(&trace, args, &|events| watch.seen(events), &mut out);
        return end(&watch, written, || Ok(out.flush()?));
    }
    outside(&path, &output)?;
    let place = Place::new(&output, matches!(form.to, To::Shared(_)))?;
    let mut trace = open(&path)?;
    let watch = Watch::new(false);
    watch.expect(super::events(&trace));
    if join(&path, &mut trace, args, &watch)?.is_err() {
        return Ok(watch.stopped());
    }
    let ask = |events| watch.seen(events);
    let written = match form.to {
        To::File(write) => place.file().and_then(|mut file| {
            let summary = write(&trace, args, &ask, &mut file)?;
            file.flush().map_err(|source| place.failed(source))?;
            Ok(summary)
        }),
        To::Folder(write) | To::Shared(write) => {
            place.folder().and_then(|folder| write(&trace, args, &ask, folder))
        }
    };
    end(&watch, written, || {
        place.keep()?;
        let output = output.display().to_string();
        writeln!(io::stdout().lock(), "{output}: {}", form.then.replace("OUT", &output))?;
        Ok(())
    })
}

fn open(path: &Path) -> Result<Trace> {
    let mut trace = Trace::open(path)?;
    super::report_problems(&trace);
    super::inside::join(path, &mut trace)?;
    Ok(trace)
}

/// Joins what the operating system did to the program's threads, for formats that show it; else the hits of probes in the
/// program's code, of which ranges are made, if there are any.
fn join(path: &Path, trace: &mut Trace, args: &Export, watch: &Watch) -> Result<Result<(), Stopped>> {
    let watch: hetrace_trace::watch::Watch<'_> = &|events| watch.seen(events);
    match args.format {
        Format::Parquet | Format::Chrome => args.kernel.join(path, trace, Some(watch)),
        _ => args.kernel.join_probes(path, trace, Some(watch)),
    }
}

/// Does what is left to do if all was written, and says what the trace lacks.
fn end(
    watch: &Watch,
    written: Result<Written, Error>,
    done: impl FnOnce() -> Result<()>,
) -> Result<ExitCode> {
    watch.end();
    let (summary, left) = match written {
        Ok(written) => written,
        Err(Error::Stopped) => return Ok(watch.stopped()),
        Err(error) => return Err(error.into()),
    };
    done()?;
    super::report_missing(&summary);
    for left in left {
        say(format_args!("not exported: {left}"));
    }
    Ok(ExitCode::SUCCESS)
}
