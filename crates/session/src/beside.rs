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
use crate::manifest::{Interposition, Manifest};
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
    let text = text(manifest).map_err(io::Error::other)?;
    let fresh = trace.path().join(FRESH_MANIFEST);
    let file = open(trace, &fresh)?;
    file.write_all_at(&text, 0)?;
    // Gives back what was kept and not needed.
    file.set_len(text.len() as u64)?;
    fs::rename(fresh, trace.path().join(MANIFEST))
}

/// The manifest's member of which each API has an element, without any, as it stands in a manifest's text: no text of
/// another member has a line's end in it.
const WITHOUT_WAYS: &str = "\n  \"interposition\": []";

/// Returns a manifest as it stands in its file. A machine may have many APIs, and the program waits, so their lines are put
/// together here: a list of plain words.
fn text(manifest: &Manifest) -> serde_json::Result<Vec<u8>> {
    let mut rest = manifest.clone();
    let ways = std::mem::take(&mut rest.interposition);
    let mut text = rest.to_json()?;
    let Some(at) = memchr::memmem::find(&text, WITHOUT_WAYS.as_bytes()).filter(|_| !ways.is_empty()) else {
        return manifest.to_json();
    };
    let mut lines = String::with_capacity(64 * ways.len());
    for Interposition { api, way } in &ways {
        if !is_plain(api) || !is_plain(way) {
            return manifest.to_json();
        }
        lines.push_str(if lines.is_empty() { "\n    { \"api\": \"" } else { ",\n    { \"api\": \"" });
        lines.push_str(api);
        lines.push_str("\", \"way\": \"");
        lines.push_str(way);
        lines.push_str("\" }");
    }
    lines.push_str("\n  ");
    let end = at + WITHOUT_WAYS.len() - 1;
    text.splice(end..end, lines.into_bytes());
    Ok(text)
}

/// Returns whether a text stands in JSON as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_apis_say_what_the_serializer_says() {
        let of = |ways: &[(&'static str, &'static str)]| {
            let way = |(api, way): &(&'static str, &'static str)| Interposition {
                api: (*api).into(),
                way: (*way).into(),
            };
            Manifest {
                command: vec!["a\n  \"interposition\": []".to_owned()],
                interposition: ways.iter().map(way).collect(),
                ..Manifest::default()
            }
        };
        for manifest in [
            of(&[]),
            of(&[("toy", "preload")]),
            of(&[("toy", "layer+preload"), ("other_toy", "absent"), ("third", "left")]),
            of(&[("a \"toy\"", "preload"), ("b", "absent")]),
        ] {
            let text = text(&manifest).expect("a manifest");
            assert_eq!(Manifest::parse(&text).expect("it is one"), manifest);
            let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
            assert_eq!(value(&text), value(&manifest.to_json().expect("a manifest")));
        }
        let two = text(&of(&[("toy", "preload"), ("other", "absent")])).expect("a manifest");
        let two = String::from_utf8(two).expect("a text");
        assert!(two.contains("\n    { \"api\": \"toy\", \"way\": \"preload\" },\n"), "{two}");
    }
}
