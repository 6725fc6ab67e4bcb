//! What a trace has beside its streams: metadata, models, manifest.
//!
//! A trace can't do without them. So the metadata and a manifest are there, and room for the last one, before the
//! program starts, or it does not start; what is added to the metadata while it runs is what streams need, see
//! [`crate::declare`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use hetrace_ctf::class::{ClockClass, TraceClass};
use hetrace_ctf::write::form;
use hetrace_format::class::{self, Environment};
use hetrace_format::files::{FRESH_MANIFEST, MANIFEST, MODELS, OWN};
use rustix::fs::{FallocateFlags, fallocate};

use crate::apis::Found;
use crate::declare::Declarations;
use crate::manifest::Manifest;
use crate::output::TraceFolder;
use crate::time::ReferencePoint;

/// Room kept for the last manifest.
const MANIFEST_ROOM: u64 = 64 << 10;

/// Writes metadata and a first manifest, in case this launcher is killed. Returns who declares more.
///
/// # Errors
/// When there is no room, or the folder can't be written to.
pub fn prepare(
    trace: &TraceFolder,
    started: ReferencePoint,
    manifest: &Manifest,
    libraries: &[Found],
) -> io::Result<Declarations> {
    let (folder, access) = (trace.path(), trace.access());
    let class = class(trace, started, manifest);
    access.make_folder(&folder.join(OWN))?;
    access.make_folder(&folder.join(MODELS))?;
    let declarations = Declarations::begin(folder.to_owned(), access, &class, libraries)?;
    renew_manifest(trace, manifest)?;
    Ok(declarations)
}

/// Writes the manifest, and keeps room for the next one.
///
/// # Errors
/// When that is not possible.
pub fn renew_manifest(trace: &TraceFolder, manifest: &Manifest) -> io::Result<()> {
    write_manifest(trace, manifest)?;
    reserve(&trace.access().make_file(&trace.path().join(FRESH_MANIFEST))?, MANIFEST_ROOM)
}

/// Keeps room for a file on its disk, where the file system can. Its length stays.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(error) if error != rustix::io::Errno::OPNOTSUPP => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns a file of the trace to be written anew: the one that [`prepare`] made, if it is still there.
/// A program may have put a pipe in its place.
fn open(trace: &TraceFolder, path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => trace.access().make_file(path),
        Err(error) => Err(error),
    }
}

/// Returns the streams to begin with, those of APIs not among them. Of events only those of telemetry, samples and capture windows are in it; the
/// others are declared when they come.
fn class(trace: &TraceFolder, started: ReferencePoint, manifest: &Manifest) -> TraceClass {
    let clock = clock(started);
    let environment = Environment {
        version: [version_part(0), version_part(1)],
        host: manifest.host.clone(),
        program: manifest.command.first().cloned().unwrap_or_default(),
    };
    let mut class = class::frame(trace.uuid(), clock, environment.variables());
    class.streams.extend(manifest.telemetry.is_some().then(hetrace_format::telemetry::stream));
    class.streams.extend(manifest.samples.is_some().then(hetrace_format::sample::stream));
    class.streams.extend(manifest.capture.is_some().then(hetrace_format::window::stream));
    class
}

/// Returns the clock of all that is recorded in a run.
pub fn clock(started: ReferencePoint) -> ClockClass {
    let offset =
        i64::try_from(i128::from(started.realtime_ns) - i128::from(started.monotonic_ns)).unwrap_or(0);
    form::clock_class(boot_id().unwrap_or([0; 16]), offset)
}

/// Writes the manifest, and replaces the one before.
///
/// # Errors
/// When that is not possible.
pub fn write_manifest(trace: &TraceFolder, manifest: &Manifest) -> io::Result<()> {
    let text = manifest.to_json().map_err(io::Error::other)?;
    let fresh = trace.path().join(FRESH_MANIFEST);
    let file = open(trace, &fresh)?;
    file.write_all_at(&text, 0)?;
    // Gives back what was kept and not needed.
    file.set_len(text.len() as u64)?;
    fs::rename(fresh, trace.path().join(MANIFEST))
}

fn version_part(index: usize) -> i64 {
    env!("CARGO_PKG_VERSION").split('.').nth(index).and_then(|p| p.parse().ok()).unwrap_or(0)
}

/// This machine's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the kernel's identity of this boot: LTTng names its clock by it, too.
fn boot_id() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(*uuid::Uuid::parse_str(text.trim()).ok()?.as_bytes())
}
