//! The sessions of this user that are being recorded, for commands that ask something of their launchers.
//!
//! ```text
//!   hetrace snapshot ──► live() ──► /dev/shm/hetrace-UID/RANDOM/{lock, control, trace}
//!                          │
//!                          └──► Session ──► snapshot_asked in the file `reported` ──► the launcher
//! ```
//! Traced programs can write into these folders. So nothing there is believed: what is no plain file of this user,
//! has another size, or is a link, is refused by name, and what is read is used as a label or a number only.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hetrace_ctf::read::Part;
use hetrace_format::files;
use hetrace_ring::abi::{
    self, ABI_VERSION, ARENA_PREFIX, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, REPORTED_BYTES,
    REPORTED_FILE, flag, option,
};
use hetrace_ring::writer::wake;
use hetrace_ring::{MapError, Mapping, map_file, survive};

use crate::control;
use crate::flight::Answer;
use crate::folder;
use crate::manifest::Manifest;
use crate::recover::ticket::Ticket;
use crate::service::protocol::{self, Reply, Request};
use crate::window::Pages;

/// Largest manifest that is read for the command line in it, in bytes.
const LONGEST_MANIFEST: u64 = 16 << 20;
/// How far up a process is followed to the launcher that started it.
const GENERATIONS: usize = 64;

/// What a session does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It records.
    Recording,
    /// Its capture window is closed.
    Waiting,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Recording => "recording",
            State::Waiting => "outside of its capture window",
        })
    }
}

/// A session whose launcher lives, or that a service records.
#[derive(Debug)]
pub struct Session {
    folder: PathBuf,
    /// What its launcher says, to read.
    control: Mapping,
    /// Where it is asked.
    reported: Mapping,
    /// Process id of the service that records it; none if it is a run's.
    service: Option<u32>,
    /// Folder of its trace, or of all its parts; none if the launcher could not leave a note of it.
    pub trace: Option<PathBuf>,
    /// When it began, in nanoseconds since 1970; none as for `trace`.
    pub start_realtime_ns: Option<u64>,
    /// The program and its arguments; empty as long as the trace has no manifest.
    pub command: Vec<String>,
}

/// A folder that looks like a session, and why it is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The folder.
    pub folder: PathBuf,
    /// Why.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.folder.display(), self.why)
    }
}

/// Why no session was chosen.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unchosen {
    /// Nothing is being recorded.
    None(Vec<Refused>),
    /// Nothing that fits what was asked for is.
    NoSuch(String, Vec<Session>),
    /// More than one is, and it was not said which.
    Several(Vec<Session>),
}

impl std::error::Error for Unchosen {}

impl fmt::Display for Unchosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Session]| {
            all.iter().try_for_each(|session| write!(f, "\n  {session}"))
        };
        match self {
            Unchosen::None(refused) => {
                f.write_str("no program of this user is being recorded: start one with `hetrace run`, or `hetrace start` where a service runs")?;
                refused.iter().try_for_each(|refused| write!(f, "\n  not used: {refused}"))
            }
            Unchosen::NoSuch(asked, all) => {
                write!(f, "nothing that is being recorded belongs to {asked}; there is:")?;
                list(f, all)
            }
            Unchosen::Several(all) => {
                write!(f, "{} sessions are being recorded; say which by its number:", all.len())?;
                list(f, all)
            }
        }
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.launcher(), self.state())?;
        if !self.command.is_empty() {
            // A command can hold what would move the cursor.
            let shown = self.command.join(" ");
            write!(f, "  {}", shown.escape_debug())?;
        }
        self.trace.iter().try_for_each(|trace| write!(f, "  into {}", trace.display()))
    }
}

/// Returns the sessions of this user whose launchers live, the oldest first, and what looks like one and is not used.
pub fn live() -> (Vec<Session>, Vec<Refused>) {
    // A service's folder is there for programs to come, too.
    let is_recorded = |(folder, _): &(PathBuf, _)| Ticket::of(folder).is_some();
    let services = folder::standing().into_iter().filter(is_recorded);
    sort(folder::all().into_iter().chain(services).collect())
}

fn sort(found: Vec<(PathBuf, Result<(), String>)>) -> (Vec<Session>, Vec<Refused>) {
    let (mut sessions, mut refused) = (Vec::new(), Vec::new());
    for (folder, ours) in found {
        match ours.and_then(|()| Session::open(&folder)) {
            Ok(session) => sessions.extend(session),
            Err(why) => refused.push(Refused { folder, why }),
        }
    }
    sessions.sort_by(|a, b| (a.start_realtime_ns, &a.folder).cmp(&(b.start_realtime_ns, &b.folder)));
    (sessions, refused)
}

/// Returns the session that is meant: by the process id of its launcher or of a program that this started, by the
/// name or path of its folder in shared memory; the only one if nothing was said.
///
/// # Errors
/// When there is none, or several that may be meant.
pub fn choose(asked: Option<&str>) -> Result<Session, Unchosen> {
    let (sessions, refused) = live();
    choose_from(sessions, refused, asked)
}

fn choose_from(
    mut all: Vec<Session>,
    refused: Vec<Refused>,
    asked: Option<&str>,
) -> Result<Session, Unchosen> {
    if all.is_empty() {
        return Err(Unchosen::None(refused));
    }
    let fits: Vec<usize> = match asked {
        None => (0..all.len()).collect(),
        Some(asked) => (0..all.len()).filter(|n| all.get(*n).is_some_and(|s| s.is(asked))).collect(),
    };
    match (fits.as_slice(), asked) {
        ([one], _) => Ok(all.swap_remove(*one)),
        ([], Some(asked)) => Err(Unchosen::NoSuch(asked.to_owned(), all)),
        _ => Err(Unchosen::Several(all)),
    }
}

impl Session {
    /// Opens one; none if its launcher is gone or has not got ready.
    fn open(folder: &Path) -> Result<Option<Self>, String> {
        if folder::is_alive(folder) != Some(true) {
            return Ok(None);
        }
        let Some(control) = open_control(&folder.join(CONTROL_FILE))? else { return Ok(None) };
        let reported = open_reported(&folder.join(REPORTED_FILE))?;
        let ticket = Ticket::of(folder);
        let service = service_of(&control, folder);
        let command = ticket.as_ref().and_then(|ticket| command_of(&ticket.trace)).unwrap_or_default();
        let trace = ticket.as_ref().map(|ticket| whole(&ticket.trace));
        let start_realtime_ns = ticket.map(|ticket| ticket.started().realtime_ns);
        Ok(Some(Session {
            folder: folder.to_owned(),
            control,
            reported,
            service,
            trace,
            start_realtime_ns,
            command,
        }))
    }

    fn page(&self) -> &abi::Control {
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns; what others change are atomics.
        unsafe { &*self.control.base().cast::<abi::Control>() }
    }

    fn reported(&self) -> &abi::Reported {
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns, and made of atomics.
        unsafe { &*self.reported.base().cast::<abi::Reported>() }
    }

    /// Returns its folder in shared memory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the process id of its launcher, in the launcher's own PID namespace, or of the service.
    pub fn launcher(&self) -> u32 {
        self.service.unwrap_or(self.page().launcher)
    }

    /// Returns what it does.
    pub fn state(&self) -> State {
        let switch = Pages::of(&self.control, &self.reported).switch();
        match switch.mask.load(Ordering::Relaxed) == flag::INSIDE {
            true => State::Recording,
            false => State::Waiting,
        }
    }

    /// Returns whether its launcher still lives; of a service, whether it still records this session.
    pub fn is_alive(&self) -> bool {
        let is_ours = || Ticket::of(&self.folder).map(|ticket| whole(&ticket.trace)) == self.trace;
        folder::is_alive(&self.folder) == Some(true) && (self.service.is_none() || is_ours())
    }

    /// Asks for a snapshot. Returns the number to ask [`Session::answered`] about.
    pub fn ask_snapshot(&self) -> u32 {
        let number = self.reported().snapshot_asked.increase();
        wake(&self.reported().wake);
        number
    }

    /// Returns whether the snapshot with this number was taken, or a later one.
    pub fn answered(&self, number: u32) -> bool {
        is_done(self.page().snapshot_done.load(Ordering::Acquire), number)
    }

    /// Returns whether it is a flight recording: each request makes a snapshot, and no file grows.
    pub fn is_flight(&self) -> bool {
        Answer::is_given(&self.folder)
    }

    /// Returns what became of a request: of a flight recording, whose snapshots are folders of their own.
    pub fn answer(&self, number: u32) -> Option<Answer> {
        Answer::of(&self.folder, number)
    }

    fn is(&self, asked: &str) -> bool {
        match asked.parse::<u32>() {
            Ok(pid) => {
                descends(pid, self.launcher()) || (self.service.is_some() && records(&self.folder, pid))
            }
            Err(_) => {
                self.folder.file_name().is_some_and(|name| name == asked) || self.folder == Path::new(asked)
            }
        }
    }
}

/// Returns the folder of all parts, if a trace is one of them, and else that of the trace. A part may be removed while
/// somebody asks: then it is known by its name.
fn whole(trace: &Path) -> PathBuf {
    let number = |folder: &Path| Part::number(folder.file_name()?.to_str()?);
    let is_inner = number(trace).is_none() && trace.file_name().is_some_and(|name| name == files::OWN);
    let folder = if is_inner { trace.parent().unwrap_or(trace) } else { trace };
    let is_part = number(folder).is_some() && (trace.join(files::PART).is_file() || !folder.exists());
    folder.parent().filter(|_| is_part).unwrap_or(trace).to_owned()
}

/// Returns the process id of the service that records into a folder; 0 if it does not answer, none if a run does.
fn service_of(control: &Mapping, folder: &Path) -> Option<u32> {
    // SAFETY: all of the page is mapped, and all bit patterns of it are valid.
    let page = unsafe { &*control.base().cast::<abi::Control>() };
    if page.options.load(Ordering::Relaxed) & option::STANDBY == 0 {
        return None;
    }
    match protocol::ask(folder, &Request::Status) {
        Ok(Some(Reply::Status(status))) => Some(status.pid),
        _ => Some(0),
    }
}

/// Returns whether a process has memory in a folder into which it records.
fn records(folder: &Path, pid: u32) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pid = pid.to_string();
    let is_its = |name: &str| name.strip_prefix(ARENA_PREFIX).and_then(|n| n.split('-').nth(1)) == Some(&pid);
    names.into_iter().any(|name| name.to_str().is_some_and(is_its))
}

/// Numbers wrap: `done` has come up to `number` if it is not more than half of all numbers behind.
fn is_done(done: u32, number: u32) -> bool {
    done.wrapping_sub(number) < 1 << 31
}

fn unopened(file: &str, error: &io::Error) -> String {
    format!("cannot open {file}: {error}")
}

fn wrong_size(file: &str, found: u64, expected: usize) -> String {
    format!("{file} has {found} bytes, not {expected}")
}

/// Maps what a session's programs write.
fn open_reported(path: &Path) -> Result<Mapping, String> {
    let say = |error: io::Error| unopened(REPORTED_FILE, &error);
    let file = control::open_reported(path).map_err(say)?;
    map_file(&file, REPORTED_BYTES, true).map_err(|error| match error {
        MapError::Size(size) => wrong_size(REPORTED_FILE, size, REPORTED_BYTES),
        MapError::Os(error) => say(error),
    })
}

/// Maps a control file; none if its maker has not finished it.
fn open_control(path: &Path) -> Result<Option<Mapping>, String> {
    let say = |error: io::Error| unopened(CONTROL_FILE, &error);
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(say(error)),
    };
    let found = file.metadata().map_err(say)?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(control::not_plain(CONTROL_FILE));
    }
    // Whoever shares it may cut it short at any time.
    survive::install();
    let mapping = match map_file(&file, CONTROL_BYTES, false) {
        Ok(mapping) => mapping,
        Err(MapError::Size(0)) => return Ok(None),
        Err(MapError::Size(size)) => {
            return Err(wrong_size(CONTROL_FILE, size, CONTROL_BYTES));
        }
        Err(MapError::Os(error)) => return Err(say(error)),
    };
    // SAFETY: all of the page is mapped, and all bit patterns of it are valid.
    let page = unsafe { &*mapping.base().cast::<abi::Control>() };
    match page.magic.load(Ordering::Acquire) {
        0 => return Ok(None),
        CONTROL_MAGIC => {}
        _ => return Err(format!("{CONTROL_FILE} is no control file of hetrace")),
    }
    match page.version {
        ABI_VERSION => Ok(Some(mapping)),
        other => Err(format!(
            "it belongs to another version of hetrace (shared memory version {other}, not {ABI_VERSION}): use that one"
        )),
    }
}

/// Returns the command line that a trace's manifest has.
fn command_of(trace: &Path) -> Option<Vec<String>> {
    let path = trace.join(files::MANIFEST);
    let found = fs::symlink_metadata(&path).ok()?;
    let text = (found.is_file() && found.len() <= LONGEST_MANIFEST).then(|| fs::read(&path))?;
    Some(Manifest::parse(&text.ok()?).ok()?.command)
}

/// Returns whether a process is another one or was started by it, at any remove.
fn descends(pid: u32, ancestor: u32) -> bool {
    let parents = std::iter::successors(Some(pid), |pid| parent_of(*pid));
    parents.take(GENERATIONS).take_while(|pid| *pid > 0).any(|pid| pid == ancestor)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses.
    let behind = stat.get(stat.iter().rposition(|b| *b == b')')? + 1..)?;
    std::str::from_utf8(behind).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
