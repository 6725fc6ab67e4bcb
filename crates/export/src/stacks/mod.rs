//! Call paths with weights: folded stacks, which flame graph tools read, and a flame graph.
//!
//! ```text
//! app [7];main [7];opencl:clFinish 12345
//! app [7];main [7];opencl:clEnqueueNDRangeKernel;[device] copy 990
//! ```
//!
//! A path is a process, a thread, and the calls around one another of all APIs; below the call
//! that enqueued it stands a command. A command whose call is not known stands in its process.
//! Weights are sums, so only the paths are remembered, and of the calls that enqueued the last
//! 65536 of each thread.
//!
//! Samples of processors stand below their threads by their stacks: those outside of calls beside the calls, all of them
//! where their time is the weight.
//!
//! Ranges that the program sets, those between two probes among them, are frames between a thread and its outermost calls
//! if that is asked for; a range that begins inside of a call is not, nor is one that any thread may end.
//!
//! Time of calls is what `tally` calls self: that of successful calls, outside of other recorded
//! calls. Time of calls that failed stands below them in a frame of its own. Calls without an end count as
//! calls only.

mod flame;
mod paths;
mod walk;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_trace::spans::{Summary, walk};
use hetrace_trace::trace::{Process, Trace};

use crate::{Error, Watch};
use paths::Paths;

/// What the width of a path means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Time in calls and outside of calls inside them, without what tracing took, and of samples of processors those
    /// outside of calls, ns.
    #[default]
    Time,
    /// Calls.
    Calls,
    /// Time of commands on devices, ns.
    Device,
    /// Bytes that commands moved or set.
    Bytes,
    /// Time on processors, by samples of them (`--cpu-sample`), in calls and outside, ns.
    Cpu,
}

impl Weight {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Time, Self::Calls, Self::Device, Self::Bytes, Self::Cpu];

    /// Its name: `time`, `calls`, `device`, `bytes` or `cpu`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Calls => "calls",
            Self::Device => "device",
            Self::Bytes => "bytes",
            Self::Cpu => "cpu",
        }
    }

    /// What it counts in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time | Self::Device | Self::Cpu => "ns",
            Self::Calls => "calls",
            Self::Bytes => "bytes",
        }
    }
}

impl std::str::FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|weight| weight.name() == text);
        found.ok_or_else(|| format!("`{text}`: the weight is time, calls, device, bytes or cpu"))
    }
}

/// How paths are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A line for each path.
    #[default]
    Folded,
    /// A picture of them as SVG.
    Flame,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What is summed up.
    pub weight: Weight,
    /// How it is written.
    pub form: Form,
    /// Put equal paths of all threads of a process together.
    pub merge_threads: bool,
    /// Put the ranges of a thread that are open, those between probes in its code among them, between the thread and its
    /// calls and samples.
    pub ranges: bool,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Paths with a weight.
    pub paths: u64,
    /// The sum of their weights.
    pub total: u128,
    /// Commands whose calls are not known, or not any more.
    pub lost_causes: u64,
    /// What was read.
    pub summary: Summary,
}

/// Writes the paths of a trace.
///
/// # Errors
/// Those of `out`, and when `watch` says so: then nothing is written.
pub fn write(
    trace: &Trace,
    options: &Options,
    out: &mut dyn Write,
    watch: Watch<'_>,
) -> Result<Written, Error> {
    let mut collector = walk::Collector::new(trace, *options, watch);
    let ControlFlow::Continue(summary) = walk(trace, &mut collector) else {
        return Err(Error::Stopped);
    };
    let (paths, lost_causes) = collector.finish();
    let (count, total) = paths.sum();
    let written = match options.form {
        Form::Folded => fold(&paths, out),
        Form::Flame => {
            let processes = &trace.manifest().processes;
            let title = processes.first().map_or("hetrace".to_owned(), Process::line);
            flame::draw(&paths, &title, options.weight, out)
        }
    };
    written.map_err(|source| Error::Io { path: "the stacks".to_owned(), source })?;
    Ok(Written { paths: count, total, lost_causes, summary })
}

fn fold(paths: &Paths, out: &mut dyn Write) -> io::Result<()> {
    /// Bytes gathered before they are written.
    const CHUNK: usize = 64 * 1024;
    let mut text = String::new();
    for node in paths.in_order() {
        let weight = paths.weight(node);
        if weight == 0 {
            continue;
        }
        paths.write_path(node, &mut text);
        let _ = writeln!(text, " {weight}");
        if text.len() > CHUNK {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    out.write_all(text.as_bytes())?;
    out.flush()
}
