//! `hetrace/manifest.json`: what the trace is of, and what it lacks.

use std::fs;
use std::io;
use std::path::Path;

use hetrace_ctf::account::{Account, FileAccount};
use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Version of this description.
    pub schema: u32,
    /// Version of hetrace.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Name of the machine.
    pub host: String,
    /// What the environment of the launcher, this one, says of its rank in a job.
    #[serde(skip_serializing_if = "crate::job::Job::is_empty")]
    pub job: crate::job::Job,
    /// Beginning, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// End, CLOCK_MONOTONIC.
    pub end_ns: u64,
    /// Beginning, nanoseconds since 1970.
    pub start_realtime_ns: u64,
    /// How the program ended; nothing while it runs.
    pub exit: Option<Exit>,
    /// The session's folder, as long as the trace is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<std::path::PathBuf>,
    /// Options as given.
    pub options: Vec<String>,
    /// How the API was intercepted, by API.
    pub interposition: Vec<Interposition>,
    /// Processes that recorded.
    pub processes: Vec<Process>,
    /// What was lost.
    pub losses: Losses,
    /// Clocks of devices.
    pub device_clocks: Vec<DeviceClockReport>,
    /// The host's clock.
    pub host_clock: HostClockReport,
    /// What recording itself costs, if that could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<crate::cost::Cost>,
    /// Bytes and records written.
    pub written: Written,
    /// What programs had to say: functions not traced and the like.
    pub notes: Vec<String>,
    /// Telemetry, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<crate::telemetry::report::Telemetry>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// How an API was reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interposition {
    /// The API.
    pub api: String,
    /// `layer`, `preload`, `layer+preload` or `injection`; `left` to another tool,
    /// or `absent`: no program can use it here.
    pub way: String,
}

/// A process that recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// Its command line.
    pub command: Vec<String>,
    /// What its environment says of its rank in a job; nothing if that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<crate::job::Job>,
}

/// What was lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Records, of calls or else.
    pub records: u64,
    /// Calls whose entry or exit is missing.
    pub calls: u64,
    /// Calls of threads that could get no ring.
    pub calls_without_ring: u64,
    /// Commands on devices whose times are missing.
    pub device_commands: u64,
    /// Commands that were under way when a process ended, or whose times were not
    /// delivered by then; of a collector's, calls whose commands are missing.
    pub commands_under_way: u64,
    /// Commands on devices whose call is not known; they are there themselves.
    pub commands_without_call: u64,
    /// Bytes that could not be written to disk.
    pub unwritten_bytes: u64,
    /// Bytes of rings that made no sense.
    pub damaged_bytes: u64,
    /// By thread.
    pub threads: Vec<ThreadLosses>,
}

/// What one thread lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadLosses {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread's name.
    pub name: String,
    /// The API.
    pub api: String,
    /// Records.
    pub records: u64,
    /// Calls.
    pub calls: u64,
}

/// How well a device's clock is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceClockReport {
    /// Process that used it.
    pub pid: u32,
    /// The API by which it did.
    #[serde(default)]
    pub api: String,
    /// Its handle.
    pub device: String,
    /// Its name.
    pub name: String,
    /// Largest error of a time; nothing if the clock is not known at all.
    pub error_ns: Option<u64>,
    /// How often the clock began anew; 1 is normal.
    pub epochs: usize,
    /// Times came in the host's time from the API itself: there was nothing to
    /// convert, and so there are neither an error nor epochs.
    pub host_clock: bool,
    /// Commands that began before their call as told, by little: they were
    /// moved to its beginning.
    pub corrected: u64,
    /// By how much at most.
    pub largest_correction_ns: u64,
    /// The same by much: they were left as told.
    pub impossible_order: u64,
}

/// The host's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostClockReport {
    /// Largest error seen of a time.
    pub error_ns: u64,
    /// Ticks of the processor's counter per second.
    pub ticks_per_second: f64,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// What is in each file, so that readers can say what is missing; none while the program
    /// runs, and if the launcher was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// What is beside the streams in the folder of a trace: by their content, and those that are named
/// by it by their size.
///
/// # Errors
/// When a file or folder is there and can't be read.
pub fn account_of_files(trace: &Path) -> io::Result<Vec<FileAccount>> {
    let mut files = vec![FileAccount::of("metadata", &fs::read(trace.join("metadata"))?)];
    for name in names(&trace.join("hetrace/model"))? {
        let name = format!("hetrace/model/{name}");
        files.push(FileAccount::of(&name, &fs::read(trace.join(&name))?));
    }
    for name in names(&trace.join("hetrace/blobs"))? {
        let name = format!("hetrace/blobs/{name}");
        let bytes = fs::metadata(trace.join(&name))?.len();
        files.push(FileAccount { name, bytes, checksum: None });
    }
    Ok(files)
}

/// The names in a folder, sorted; none if it is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = entries.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
