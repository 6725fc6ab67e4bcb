//! The session's folder: shared memory that only its owner can reach.
//!
//! ```text
//!   /dev/shm/                 everybody's: any name in it may be somebody else's trap
//!     hetrace-UID/            ours, 0700, found so by `lstat`; else hetrace-UID-RANDOM/
//!       RANDOM/               a session
//!         lock                locked while the session's launcher lives
//! ```
//! A session is its launcher's from when it has the lock *and* the lock's file is still in
//! its folder: who clears away after launchers that were killed takes the lock first, so one of
//! the two finds out. The launcher's is exclusive. Who clears away shares it, so that nobody takes that for a launcher that
//! lives, and has the folder itself locked, so that no two do.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::budget;

/// First part of the names of folders that hold sessions.
const PREFIX: &str = "hetrace-";
/// First part of the names of folders that outlive sessions.
pub const STANDING: &str = "standby-";
/// The file that its launcher keeps locked.
const LOCK: &str = "lock";
/// Tries to make a folder that others remove meanwhile, or have made before.
const TRIES: u32 = 1000;
/// Others may create entries in a folder, but remove only their own.
const STICKY: u32 = 0o1000;

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held locked for as long as the session lives.
    _lock: File,
    /// The folder, of who clears away.
    _claim: Option<File>,
}

impl Folder {
    /// Makes a folder for this process.
    ///
    /// # Errors
    /// When no memory file system lets us make one.
    pub fn make() -> io::Result<Folder> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for base in roomy(bases(), budget::file_system)? {
            match make_in(&base) {
                // Programs have a fixed place for it.
                Ok(folder) if folder.path.as_os_str().len() > LONGEST => {
                    let path = folder.path.display();
                    let text = format!("the path {path} is longer than {LONGEST} bytes");
                    last = io::Error::new(io::ErrorKind::InvalidFilename, text);
                }
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sessions of this user whose launcher is gone, each locked: nobody else takes them.
    pub fn abandoned() -> Vec<Folder> {
        bases().iter().flat_map(|base| abandoned_in(base)).collect()
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder where it is.
    pub fn leave(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(parent) = self.path.parent() else { return };
        let _ = fs::remove_dir_all(&self.path);
        // With the last session of this user; whoever needs it meanwhile makes it again.
        let _ = fs::remove_dir(parent);
    }
}

/// Returns whether the launcher of the session with this folder lives; none if there is no session of
/// this user's.
pub fn is_alive(session: &Path) -> Option<bool> {
    let lock = open_lock(session)?;
    Some(matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// Folders that have the names of this user's sessions, in all places where they are made. Each is ours, or why it
/// must not be used.
pub fn all() -> Vec<(PathBuf, Result<(), String>)> {
    bases().iter().flat_map(|base| all_in(base, is_random)).collect()
}

/// Folders that outlive sessions, as [`all`] has the others.
pub fn standing() -> Vec<(PathBuf, Result<(), String>)> {
    let is_standing = |name: &[u8]| name.starts_with(STANDING.as_bytes());
    bases().iter().flat_map(|base| all_in(base, is_standing)).collect()
}

fn all_in(base: &Path, is_session: fn(&[u8]) -> bool) -> Vec<(PathBuf, Result<(), String>)> {
    let mut found = Vec::new();
    let children = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    for parent in children(base).filter(|e| is_parent(e.file_name().as_bytes())).map(|e| e.path()) {
        if !is_ours(&parent) {
            found.push((parent, Err(NOT_OURS.to_owned())));
            continue;
        }
        for session in children(&parent).filter(|e| is_session(e.file_name().as_bytes())).map(|e| e.path()) {
            let ours = if is_ours(&session) { Ok(()) } else { Err(NOT_OURS.to_owned()) };
            found.push((session, ours));
        }
    }
    found
}

/// Why a folder must not be used.
const NOT_OURS: &str = "it is no folder of this user, or a link to one";

/// Returns this user's folder for sessions at the place that programs find without being started by us, made if need be.
///
/// # Errors
/// When somebody else has its name, or the system refuses.
pub fn fixed_parent() -> io::Result<PathBuf> {
    let base = bases().into_iter().find(|base| base.is_dir()).ok_or(io::ErrorKind::NotFound)?;
    let parent = parent_in(&base)?;
    let usual = base.join(format!("{PREFIX}{}", user()));
    if parent == usual {
        return Ok(parent);
    }
    let _ = fs::remove_dir(&parent);
    let text = format!("{} is somebody else's", usual.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Takes the lock of a folder that outlives sessions; none if somebody has it.
///
/// # Errors
/// When it is not there, or not ours.
pub fn lock_standing(folder: &Path) -> io::Result<Option<File>> {
    let lock = open_lock(folder).ok_or(io::ErrorKind::PermissionDenied)?;
    Ok(lock.try_lock().is_ok().then_some(lock))
}

/// Makes a folder that outlives sessions, with what `fill` puts there: whole, or not at all. Does nothing if it is there.
///
/// # Errors
/// When it can't be made, or what has its name is not ours.
pub fn make_standing(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if !is_ours(path) {
        let fresh = path.with_file_name(format!("new-{}", random()));
        make_own(&fresh)?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh.join(LOCK));
        // Another may be quicker: a folder with something in it is not replaced.
        let made = made.and_then(|_| fill(&fresh)).and_then(|()| fs::rename(&fresh, path));
        if made.is_err() {
            let _ = fs::remove_dir_all(&fresh);
        }
        if !is_ours(path) {
            return made.and(Err(io::ErrorKind::AlreadyExists.into()));
        }
    }
    Ok(())
}

/// Returns the folders of sessions of this user whose launchers live.
pub fn live() -> Vec<PathBuf> {
    let ours = all().into_iter().filter_map(|(path, ours)| ours.ok().map(|()| path));
    let mut found: Vec<PathBuf> = ours.filter(|path| is_alive(path) == Some(true)).collect();
    found.sort_unstable();
    found
}

/// Memory file systems, best first; then whatever holds temporary files.
fn bases() -> Vec<PathBuf> {
    let mut bases = vec![PathBuf::from("/dev/shm")];
    bases.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    bases.push(std::env::temp_dir());
    bases.dedup();
    bases
}

/// Room that is enough for a session without looking further.
const ENOUGH: u64 = 4 << 20;
/// Room below which nothing could be recorded.
const LEAST: u64 = 256 << 10;
/// Longest path of a session's folder.
const LONGEST: usize = 199;

/// Those with enough room, in their order; then the others, the largest first.
fn roomy(bases: Vec<PathBuf>, room: impl Fn(&Path) -> Option<u64>) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<(u64, PathBuf)> = bases
        .into_iter()
        .filter_map(|base| Some((room(&base)?, base)))
        .filter(|(r, _)| *r >= LEAST)
        .collect();
    found.sort_by_key(|(room, _)| std::cmp::Reverse((*room).min(ENOUGH)));
    if found.is_empty() {
        let text = "neither /dev/shm nor another folder for temporary files has 256 KiB free";
        return Err(io::Error::new(io::ErrorKind::StorageFull, text));
    }
    Ok(found.into_iter().map(|(_, base)| base).collect())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns whether a path is a folder of this user, and no link to one.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user())
}

/// Makes a folder of our own, if the name is free.
fn make_own(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    // The umask may take away even our own rights.
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// This user's folder for sessions. If somebody else has its name, it gets one that
/// nobody can foresee.
fn parent_in(base: &Path) -> io::Result<PathBuf> {
    let mode = fs::metadata(base)?.permissions().mode();
    if mode & 0o022 != 0 && mode & STICKY == 0 {
        // Anybody could exchange what we make there.
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{}: other users could remove our files there (the sticky bit is missing)",
                base.display()
            ),
        ));
    }
    let usual = base.join(format!("{PREFIX}{}", user()));
    match make_own(&usual) {
        Ok(()) => return Ok(usual),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    if is_ours(&usual) {
        if fs::symlink_metadata(&usual)?.permissions().mode() & 0o777 != 0o700 {
            fs::set_permissions(&usual, Permissions::from_mode(0o700))?;
        }
        return Ok(usual);
    }
    let other = base.join(format!("{PREFIX}{}-{}", user(), random()));
    make_own(&other)?;
    Ok(other)
}

fn make_in(base: &Path) -> io::Result<Folder> {
    let again = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..TRIES {
        match try_make(base) {
            Ok(Some(folder)) => return Ok(folder),
            Ok(None) => {}
            // The base itself is missing, or one that clears away was quicker.
            Err(error) if again(&error) && base.is_dir() => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Makes one session. Returns none if another launcher that clears away took it for
/// abandoned before it was locked.
fn try_make(base: &Path) -> io::Result<Option<Folder>> {
    let path = parent_in(base)?.join(random());
    make_own(&path)?;
    let file = path.join(LOCK);
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    lock.set_permissions(Permissions::from_mode(0o600))?;
    let locked = lock.try_lock().is_ok() && lock.metadata()?.nlink() > 0;
    Ok(locked.then_some(Folder { path, _lock: lock, _claim: None }))
}

/// Returns the lock of a session, if it is one that we may use: a plain file of our own, and
/// neither a link nor a pipe that never opens.
fn open_lock(session: &Path) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let lock = OpenOptions::new().read(true).custom_flags(flags).open(session.join(LOCK)).ok()?;
    let found = lock.metadata().ok()?;
    (found.is_file() && found.uid() == user()).then_some(lock)
}

/// Takes the lock of a folder itself; none if somebody has it, or it is gone.
fn claim(session: &Path) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(session).ok()?;
    let is_there =
        || fs::metadata(session).is_ok_and(|found| folder.metadata().is_ok_and(|f| f.ino() == found.ino()));
    (folder.try_lock().is_ok() && is_there()).then_some(folder)
}

/// Returns whether somebody clears away a session whose launcher is gone.
pub fn is_being_cleared(session: &Path) -> bool {
    is_alive(session) == Some(false) && claim(session).is_none() && session.is_dir()
}

/// Returns whether a name is one that [`parent_in`] makes: other folders that begin alike are not ours
/// to clear away.
fn is_parent(name: &[u8]) -> bool {
    let own = format!("{PREFIX}{}", user());
    name.strip_prefix(own.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest.strip_prefix(b"-").is_some_and(is_random))
}

/// Returns whether a name is one that [`random`] makes.
fn is_random(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn abandoned_in(base: &Path) -> Vec<Folder> {
    let ours = |name: &OsStr| is_parent(name.as_bytes());
    let parents = fs::read_dir(base).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for parent in parents.filter(|e| ours(&e.file_name())).map(|e| e.path()).filter(|p| is_ours(p)) {
        for session in fs::read_dir(&parent).into_iter().flatten().flatten() {
            let path = session.path();
            if !is_random(session.file_name().as_bytes()) || !is_ours(&path) {
                continue;
            }
            match open_lock(&path) {
                Some(lock) => {
                    if lock.try_lock_shared().is_ok()
                        && let Some(claim) = claim(&path)
                    {
                        found.push(Folder { path, _lock: lock, _claim: Some(claim) });
                    }
                }
                // Without a lock, and anything else in it: just made, or its maker was killed
                // right then. In the first case the maker sees that it is gone, and makes another.
                None => drop(fs::remove_dir(&path)),
            }
        }
        let _ = fs::remove_dir(&parent);
    }
    found
}

#[cfg(test)]
mod tests;
