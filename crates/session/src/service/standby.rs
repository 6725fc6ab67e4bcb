//! The folder in shared memory that programs join when they begin dormant. It outlives sessions and services: programs
//! have its control file mapped.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hetrace_ctf::account::Checksum;
use hetrace_ring::abi::{ABI_VERSION, CONTROL_FILE};

use super::protocol::SOCKET;
use crate::apis::Found;
use crate::control::{Control, Flags};
use crate::folder::{self, STANDING};
use crate::run_options::RunOptions;
use crate::settings;

/// Data bytes up to which rings grow.
const RING_BYTES: u32 = 1 << 20;

/// Command of `fcntl`: which signal is sent (`linux/fcntl.h`).
const F_SETSIG: libc::c_int = 10;

/// The folder, owned by its lock.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    _lock: File,
}

impl Held {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nobody answers there any more.
    pub fn forget_socket(&self) {
        let _ = fs::remove_file(self.path.join(SOCKET));
    }
}

/// Returns the folder's path for these libraries: programs with others have another folder, as functions have other
/// numbers there.
///
/// # Errors
/// When this user's folder for sessions can't be had.
pub fn path(libraries: &[Found]) -> io::Result<PathBuf> {
    let mut build = String::new();
    for library in libraries {
        build.push_str(&format!("{}:{:x};", library.api, library.mark.0));
    }
    let Checksum(build) = Checksum::of(build.as_bytes());
    Ok(folder::fixed_parent()?.join(format!("{STANDING}{ABI_VERSION}-{build:016x}")))
}

/// Returns the folder, made if need be.
///
/// # Errors
/// When it can't be had.
pub fn make(libraries: &[Found]) -> io::Result<PathBuf> {
    let path = path(libraries)?;
    make_at(&path, libraries)?;
    Ok(path)
}

fn make_at(path: &Path, libraries: &[Found]) -> io::Result<()> {
    let options = RunOptions { ring_bytes: RING_BYTES, ..RunOptions::default() };
    let apis = libraries.iter().map(|l| Flags::none(l.api.clone())).collect();
    folder::make_standing(path, |fresh| Control::make_standby(fresh, &settings::settings(&options, apis)))
}

/// Returns the folders of other builds, in which programs may be dormant that this build can't record.
pub fn others(own: &Path) -> Vec<PathBuf> {
    let entries = own.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let is_standby =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(STANDING));
    entries.map(|entry| entry.path()).filter(|path| path != own && is_standby(path)).collect()
}

/// Removes the folders of other builds that no process uses: none has the control file open or mapped. Returns which.
pub fn clean(own: &Path) -> Vec<PathBuf> {
    let mut removed = others(own);
    removed.retain(|path| {
        // A service of that build would have the lock.
        let Ok(Some(_lock)) = folder::lock_standing(path) else { return false };
        let Some(_alone) = Alone::with(&path.join(CONTROL_FILE)) else { return false };
        fs::remove_dir_all(path).is_ok()
    });
    removed
}

/// A file that nobody else has open or mapped: who opens it waits until this is dropped.
#[derive(Debug)]
struct Alone(File);

impl Alone {
    /// Takes it, if nobody else has it.
    fn with(path: &Path) -> Option<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        // The kernel grants a write lease only if this is the one place where the file is open, and a mapping keeps it
        // open. Who opens it meanwhile makes the kernel send a signal: one that does nothing.
        // SAFETY: system calls on a descriptor that is open, and numbers.
        let leased = unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
        };
        leased.then_some(Self(file))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // SAFETY: a system call on a descriptor that is open, and a number.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// Takes the folder over; none if another service has it. One whose control file a program has overwritten is made
/// anew, if no process uses it any more.
///
/// # Errors
/// When it can't be had.
pub(super) fn take(path: &Path, libraries: &[Found]) -> io::Result<Option<(Held, Control)>> {
    let Some(held) = hold(path)? else { return Ok(None) };
    let names: Vec<_> = libraries.iter().map(|l| l.api.clone()).collect();
    match Control::adopt(path, &names) {
        Ok(control) => return Ok(Some((held, control))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => remove_damaged(path)?,
        Err(error) => return Err(error),
    }
    drop(held);
    make_at(path, libraries)?;
    let Some(held) = hold(path)? else { return Ok(None) };
    Ok(Some((held, Control::adopt(path, &names)?)))
}

/// Removes a folder that no program uses.
fn remove_damaged(path: &Path) -> io::Result<()> {
    let control = path.join(CONTROL_FILE);
    let alone = Alone::with(&control);
    // Where it was removed, programs that have it can't be reached there either.
    if alone.is_none() && control.symlink_metadata().is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a program has overwritten its control file, and programs that were started dormant use it: end those \
             (or log out), then begin the service again",
        ));
    }
    fs::remove_dir_all(path)
}

fn hold(path: &Path) -> io::Result<Option<Held>> {
    Ok(folder::lock_standing(path)?.map(|lock| Held { path: path.to_owned(), _lock: lock }))
}

#[cfg(test)]
mod tests {
    use hetrace_ring::map_file;

    use super::*;

    #[test]
    fn a_control_file_that_was_overwritten_is_made_anew_when_nobody_uses_it() {
        use std::os::unix::fs::FileExt;

        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("standby-2-a");
        let control = path.join(CONTROL_FILE);
        // Who makes one has it mapped until it ends: another process did.
        folder::make_standing(&path, |fresh| fs::write(fresh.join(CONTROL_FILE), [0; 8192])).expect("made");
        let file = fs::OpenOptions::new().read(true).write(true).open(&control).expect("open");
        file.write_all_at(&[0xa5; 4096], 0).expect("noise");
        let mapping = map_file(&file, 4096, true).expect("mapped");
        drop(file);
        let said = take(&path, &[]).expect_err("in use").to_string();
        assert!(said.contains("end those"), "{said}");
        assert_eq!(fs::read(&control).expect("as it was")[..8], [0xa5; 8]);
        drop(mapping);
        let taken = take(&path, &[]).expect("made anew").expect("free");
        assert!(take(&path, &[]).expect("a lock").is_none(), "two services");
        drop(taken);
        fs::remove_file(&control).expect("removed");
        take(&path, &[]).expect("made anew").expect("free");
    }

    #[test]
    fn a_folder_goes_when_nobody_has_its_control_file() {
        let scratch = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let path = scratch.path().join(name);
            fs::create_dir(&path).expect("a folder");
            fs::write(path.join("lock"), "").expect("a lock");
            fs::write(path.join(CONTROL_FILE), [0; 4096]).expect("a control file");
            path
        };
        let (own, used) = (make("standby-2-a"), make("standby-2-b"));
        let (served, left) = (make("standby-2-c"), make("standby-1-a"));
        let open = fs::OpenOptions::new().read(true).write(true).open(used.join(CONTROL_FILE)).expect("open");
        let mapping = map_file(&open, 4096, true).expect("mapped");
        drop(open);
        let lock = folder::lock_standing(&served).expect("ours").expect("free");
        assert_eq!(clean(&own), std::slice::from_ref(&left));
        assert!(own.exists() && used.exists() && served.exists() && !left.exists());
        drop((mapping, lock));
        let mut removed = clean(&own);
        removed.sort();
        assert_eq!(removed, [used, served]);
        assert!(clean(&own).is_empty() && own.exists());
    }
}
