//! The kernel's description of its tracepoints: the file system `tracefs`.
//!
//! It is looked for where distributions mount it. Where it is not mounted, a process that may mount it gets a
//! mount of its own that has no place in the tree of files: nothing changes for others, and it goes with
//! its descriptor.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::layout::Layout;

/// Where it is mounted, if it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The folder of tracepoints, by system.
const EVENTS: &str = "events";
/// Of a longer `format` file the rest is not read.
const LONGEST: u64 = 1 << 20;
/// Few are longer.
const COMMON: usize = 16 << 10;

/// Where tracepoints are described.
#[derive(Debug)]
pub struct Tracefs {
    events: PathBuf,
    /// Keeps our own mount.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds it, or mounts it for this process alone.
    ///
    /// # Errors
    /// With what is missing, in one sentence.
    pub fn open() -> Result<Self, String> {
        let mut denied = None;
        for place in PLACES {
            let events = Path::new(place).join(EVENTS);
            match fs::read_dir(&events) {
                Ok(_) => return Ok(Self { events, _mount: None }),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    denied = denied.or(Some(place));
                }
                Err(_) => {}
            }
        }
        match mount() {
            Ok(mount) => {
                let events = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())).join(EVENTS);
                Ok(Self { events, _mount: Some(mount) })
            }
            Err(_) if let Some(place) = denied => {
                Err(format!("this user may not read the descriptions of tracepoints in {place}"))
            }
            Err(error) => Err(format!("tracefs is not mounted, and this user cannot mount it: {error}")),
        }
    }

    /// Returns the layout of a tracepoint; none if this kernel does not have it.
    ///
    /// # Errors
    /// When its description cannot be read.
    pub fn layout(&self, system: &str, name: &str) -> Result<Option<Layout>, String> {
        let path = self.events.join(system).join(name).join("format");
        let text = match read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(format!("{system}:{name}: {e}")),
        };
        let layout = Layout::parse(&String::from_utf8_lossy(&text));
        layout.map(Some).map_err(|e| format!("{system}:{name}: format, {e}"))
    }

    /// Returns the names of all systems of tracepoints, sorted.
    pub fn systems(&self) -> Vec<String> {
        folders(&self.events)
    }

    /// Returns the names of a system's tracepoints, sorted.
    pub fn tracepoints(&self, system: &str) -> Vec<String> {
        folders(&self.events.join(system))
    }
}

/// Reads a file whose size nobody knows, most often at once.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(COMMON);
    fs::File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the command that lets ordinary users read it.
pub fn fix() -> String {
    // Its folder is there without it, too.
    match fs::read_to_string("/proc/mounts").unwrap_or_default().lines().find(|l| is_mount(l)) {
        Some(_) => format!("sudo mount -o remount,mode=750,gid=$(id -g) {}", PLACES[0]),
        None => format!("sudo mount -t tracefs -o mode=750,gid=$(id -g) nodev {}", PLACES[0]),
    }
}

fn is_mount(line: &str) -> bool {
    line.split(' ').nth(1) == Some(PLACES[0])
}

fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_folder = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    let mut names: Vec<String> =
        entries.filter(is_folder).map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Mounts it without a place in the tree of files.
fn mount() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}
