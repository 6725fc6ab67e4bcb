//! `hetrace timeline`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use hetrace_report::timeline::{
    Drawn, Error, INSIDE_SLICES, Options, PART_BYTES, PART_SLICES, Part, Parts, timeline_in_parts,
};

use super::newest;
use super::output::Output;
use super::outside::outside;
use super::say;
use super::watch::Watch;
use crate::args::{Kernel, time};

/// Options of `timeline`.
#[derive(Debug, Args)]
pub struct Timeline {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: Kernel,
    /// The file to write, `-` for stdout [default: the trace's name with .pftrace]
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Leave out the arguments of calls
    #[arg(long)]
    pub no_arguments: bool,
    /// Draw only this process (may be repeated)
    #[arg(long, value_delimiter = ',')]
    pub pid: Vec<i64>,
    /// Draw from this time since the first event, such as 1.5s, 20ms or 300us; in seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Draw until this time since the first event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Start another file (NAME.0002.pftrace, …) after this many bytes, such as 500M or 2G, or ten
    /// million slices; `all`: one file, whatever its size. stdout is never split [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub part_size: Option<u64>,
    /// Draw at most this many thread blocks and warps of kernels that were recorded inside (run --inside); no more than
    /// 20000 of a launch
    #[arg(long, value_name = "N", default_value_t = INSIDE_SLICES)]
    pub inside_slices: u64,
}

/// Writes the timeline.
pub fn run(args: &Timeline) -> Result<ExitCode> {
    let path = newest::trace(args.trace.as_deref())?;
    let mut trace = super::open(&path)?;
    super::report_problems(&trace);
    let to_stdout = args.output.as_ref().is_some_and(|o| o.as_os_str() == "-");
    let options = options(args, to_stdout || args.part_size == Some(u64::MAX));
    let watch = Watch::new(false);
    watch.expect(super::events(&trace));
    let seen = |events| watch.seen(events);
    if args.kernel.join(&path, &mut trace, Some(&seen))?.is_err() {
        return Ok(watch.stopped());
    }
    super::inside::join(&path, &mut trace)?;
    if to_stdout {
        let mut out = Output::new()?;
        return match timeline_in_parts(&trace, &options, &mut out, &seen) {
            Ok(drawn) => {
                watch.end();
                left_out(&drawn);
                super::report_missing(&drawn.summary);
                Ok(ExitCode::SUCCESS)
            }
            Err(Error::Stopped) => Ok(watch.stopped()),
            Err(Error::Io(error)) => Err(error.into()),
        };
    }
    let output = args.output.clone().unwrap_or_else(|| usual_name(&path));
    outside(&path, &output)?;
    let mut files = Files::new(output)?;
    let drawn = match timeline_in_parts(&trace, &options, &mut files, &seen) {
        Ok(drawn) => drawn,
        Err(Error::Stopped) => {
            let code = watch.stopped();
            if let Some((last, rest)) = files.whole.split_last() {
                let more =
                    if rest.is_empty() { String::new() } else { format!(" and {} before", rest.len()) };
                say(format_args!("{}{more} are complete; the rest was not written", last.display()));
            }
            return Ok(code);
        }
        Err(Error::Io(error)) => return Err(error).with_context(|| files.output.display().to_string()),
    };
    watch.end();
    if drawn.parts.is_empty() && (args.from.is_some() || args.to.is_some()) {
        bail!("the trace has no events in this time window");
    }
    report(&files.finish()?, &drawn)?;
    let wanted = |pid: i64| args.pid.is_empty() || args.pid.contains(&pid);
    let is_blank = drawn.parts.iter().all(|part| part.slices == 0);
    if is_blank && !drawn.summary.threads.iter().any(|thread| wanted(thread.pid)) {
        super::report_no_match();
    }
    left_out(&drawn);
    super::report_missing(&drawn.summary);
    Ok(ExitCode::SUCCESS)
}

/// Returns what to draw, in one file or in parts.
fn options(args: &Timeline, whole: bool) -> Options {
    Options {
        arguments: !args.no_arguments,
        pids: args.pid.clone(),
        from: args.from,
        to: args.to,
        part_bytes: if whole { u64::MAX } else { args.part_size.unwrap_or(PART_BYTES) },
        part_slices: if whole { u64::MAX } else { PART_SLICES },
        inside_slices: args.inside_slices,
    }
}

/// Says what of the insides of kernels is not in the timeline.
fn left_out(drawn: &Drawn) {
    if drawn.inside_left_out > 0 {
        say(format_args!(
            "{} thread blocks and warps inside of kernels were not drawn: --inside-slices, --from and --to",
            drawn.inside_left_out
        ));
    }
    if drawn.inside_unplaced > 0 {
        say(format_args!(
            "{} launches that were recorded inside were not drawn: their times on the device are not known",
            drawn.inside_unplaced
        ));
    }
}

/// The trace's name with another ending.
fn usual_name(trace: &Path) -> PathBuf {
    let mut name = trace.file_name().unwrap_or_default().to_owned();
    name.push(".pftrace");
    PathBuf::from(name)
}

/// One line for each file.
fn report(names: &[PathBuf], drawn: &Drawn) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (name, part) in names.iter().zip(&drawn.parts) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        writeln!(
            out,
            "{}: {:.6} s to {:.6} s, {} slices, {:.1} MB",
            name.display(),
            seconds(part.from),
            seconds(part.to),
            part.slices,
            part.bytes as f64 / 1e6
        )?;
    }
    let them = if names.len() == 1 { "it" } else { "one of them at a time" };
    writeln!(out, "open {them} at https://ui.perfetto.dev")
}

/// Returns a number of bytes with K, M or G, or `all`.
fn size(text: &str) -> Result<u64, String> {
    if text == "all" {
        return Ok(u64::MAX);
    }
    let number = text.trim_end_matches(['k', 'K', 'M', 'G', 'B']);
    let unit = match text[number.len()..].trim_end_matches('B') {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err("unknown unit; use K, M or G".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size such as 500M or 2G, or `all`".to_owned())
}

impl Parts for Output {
    fn next(&mut self, _: &Part) -> io::Result<()> {
        Ok(())
    }
}

/// Files of a timeline. An incomplete one has another name, and is removed.
struct Files {
    output: PathBuf,
    unfinished: PathBuf,
    file: Option<File>,
    /// The complete ones.
    whole: Vec<PathBuf>,
}

impl Files {
    fn new(output: PathBuf) -> Result<Self> {
        for name in [&output, &numbered(&output, 1)] {
            if name.exists() {
                bail!("{}: already exists; choose another file with -o", name.display());
            }
        }
        let mut unfinished = output.clone().into_os_string();
        unfinished.push(format!(".{}.unfinished", std::process::id()));
        let unfinished = PathBuf::from(unfinished);
        let file = OpenOptions::new().write(true).create_new(true).open(&unfinished);
        let file = file.with_context(|| output.display().to_string())?;
        Ok(Self { output, unfinished, file: Some(file), whole: Vec::new() })
    }

    /// Renames the last file to its final name.
    fn finish(mut self) -> io::Result<Vec<PathBuf>> {
        self.file = None;
        let name = match self.whole.len() {
            0 => self.output.clone(),
            before => numbered(&self.output, before + 1),
        };
        std::fs::rename(&self.unfinished, &name)?;
        self.whole.push(name);
        Ok(std::mem::take(&mut self.whole))
    }
}

impl Write for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Err(io::ErrorKind::NotFound.into()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Parts for Files {
    fn next(&mut self, _: &Part) -> io::Result<()> {
        self.file = None;
        let name = numbered(&self.output, self.whole.len() + 1);
        std::fs::rename(&self.unfinished, &name)?;
        self.whole.push(name);
        self.file = Some(OpenOptions::new().write(true).create_new(true).open(&self.unfinished)?);
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // There is none any more if all went well.
        let _ = std::fs::remove_file(&self.unfinished);
    }
}

/// `a/NAME.0001.pftrace` for `a/NAME.pftrace`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number:04}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("500M"), Ok(500_000_000));
        assert_eq!(size("2GB"), Ok(2_000_000_000));
        assert_eq!(size("7"), Ok(7));
        assert_eq!(size("all"), Ok(u64::MAX));
        for wrong in ["", "M", "-1", "1T", "0", "1.5G", "99999999999G", "1MM"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_have_numbers_before_the_extension() {
        assert_eq!(numbered(Path::new("a/b.pftrace"), 1), Path::new("a/b.0001.pftrace"));
        assert_eq!(numbered(Path::new("b"), 12), Path::new("b.0012"));
    }
}
