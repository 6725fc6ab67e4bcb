//! What a trace has beside its streams: metadata, models, manifest.
//!
//! A trace can't do without them, so they are there, and room for the last manifest, before the
//! program starts, or it does not start. A disk that gets full later takes only streams.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use hetrace_ctf::write::form;
use hetrace_format::class::{self, Environment};
use hetrace_format::files::{self, MANIFEST, METADATA, MODELS, OWN};
use rustix::fs::{FallocateFlags, fallocate};

use crate::apis::Library;
use crate::manifest::Manifest;
use crate::output::TraceFolder;
use crate::time::ReferencePoint;

/// The next manifest, until it is whole.
const FRESH_MANIFEST: &str = "hetrace/manifest.json.new";
/// Room kept for the last manifest.
const MANIFEST_ROOM: u64 = 64 << 10;

/// Writes metadata, models and a first manifest, in case this launcher is killed.
///
/// # Errors
/// When there is no room, or the folder can't be written to.
pub fn prepare(
    trace: &TraceFolder,
    started: ReferencePoint,
    manifest: &Manifest,
    libraries: &[&Library],
) -> io::Result<()> {
    let (folder, access) = (trace.path(), trace.access());
    access.write(&folder.join(METADATA), metadata(trace, started, manifest, libraries).as_bytes())?;
    access.make_folder(&folder.join(OWN))?;
    let models = folder.join(MODELS);
    access.make_folder(&models)?;
    for library in libraries {
        access.write(&folder.join(files::model(&library.model.api)), &library.model_json)?;
    }
    write_manifest(trace, manifest)?;
    reserve(&access.make_file(&folder.join(FRESH_MANIFEST))?, MANIFEST_ROOM)
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

/// Returns what the streams' records mean.
fn metadata(
    trace: &TraceFolder,
    started: ReferencePoint,
    manifest: &Manifest,
    libraries: &[&Library],
) -> String {
    let offset =
        i64::try_from(i128::from(started.realtime_ns) - i128::from(started.monotonic_ns)).unwrap_or(0);
    let clock = form::clock_class(boot_id().unwrap_or([0; 16]), offset);
    let environment = Environment {
        version: [version_part(0), version_part(1)],
        host: manifest.host.clone(),
        program: manifest.command.first().cloned().unwrap_or_default(),
    };
    let models: Vec<_> = libraries.iter().map(|l| &l.model).collect();
    let mut class = class::trace(trace.uuid(), clock, environment.variables(), &models);
    class.streams.extend(manifest.telemetry.is_some().then(hetrace_format::telemetry::stream));
    hetrace_ctf::tsdl::print(&class)
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
