//! Finishing traces whose launcher was killed: what it had not taken from the rings is in
//! shared memory still.
//!
//! The session's folder says which trace it belongs to ([`ticket`]), the trace's manifest
//! which session. The drainer does the rest, as it would have done then: streams go on in files
//! of their own. What was lost before, and how the program ended, nobody knows.

mod kernel;
mod parts;
pub mod ticket;

pub(crate) use parts::last as last_part;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hetrace_format::files;
use hetrace_ring::abi::ABI_VERSION;
use hetrace_ring::clock;

use crate::beside::write_manifest;
use crate::contents::Contents;
use crate::control::{LeftWindow, foreign_version};
use crate::drain::{Drainer, read_back};
use crate::folder::{self, Folder};
use crate::inside;
use crate::job;
use crate::layout::above_program;
use crate::manifest::Manifest;
use crate::output::TraceFolder;
use crate::reference::reference;
use crate::time::HostClock;
use crate::window::Windows;
use ticket::Ticket;

/// How long another that recovers the same is waited for, and how long between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// What was recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The trace it was added to.
    pub trace: PathBuf,
    /// Records.
    pub records: u64,
    /// Their bytes in the trace.
    pub bytes: u64,
    /// Processes that run still: what they do from now on is in no trace.
    pub living: usize,
}

impl std::fmt::Display for Recovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Recovered { trace, records, bytes, living } = self;
        write!(f, "{}: recovered {records} records, {bytes} bytes", trace.display())?;
        match living {
            0 => Ok(()),
            n => write!(f, "; {n} traced processes are still running and no longer recorded"),
        }
    }
}

/// What became of a session whose trace is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its launcher records.
    Alive,
    /// Its launcher was killed, and [`recover`] can add what is left.
    Left,
    /// It is gone, or not this user's or this machine's.
    Gone,
}

/// Looks at the session's folder that a trace's manifest names.
pub fn state(session: &Path) -> State {
    match folder::is_alive(session) {
        Some(true) => State::Alive,
        Some(false) => State::Left,
        None => State::Gone,
    }
}

/// Recovers what launchers left behind that were killed: of one trace, or of all of this user's
/// whose programs have ended as well. What belongs to no trace any more is removed.
///
/// # Errors
/// Those of writing a trace; its session stays then.
pub fn recover(only: Option<&Path>) -> Vec<Result<Recovered, (PathBuf, io::Error)>> {
    let mut done = Vec::new();
    only.into_iter().for_each(wait_for_others);
    for session in Folder::abandoned() {
        let ticket = Ticket::of(session.path()).and_then(|ticket| parts::last(ticket, session.path()));
        if let (Some((_, ticket)), Some(version)) = (&ticket, foreign_version(session.path())) {
            // Its own build finds more than nothing there.
            if only.is_some_and(|only| is_same(&ticket.trace, only)) {
                done.push(Err((ticket.trace.clone(), foreign(version))));
            }
            session.leave();
            continue;
        }
        match (ticket, only) {
            (Some((manifest, ticket)), Some(only)) if is_same(&ticket.trace, only) => {
                done.extend(one(session, ticket, manifest, true));
            }
            (_, Some(_)) => session.leave(),
            (Some((manifest, ticket)), None) => done.extend(one(session, ticket, manifest, false)),
            (None, None) => drop(session),
        }
    }
    done
}

fn foreign(version: u32) -> io::Error {
    io::Error::other(format!(
        "another build of hetrace recorded it (shared memory version {version}, not {ABI_VERSION}): use the `hetrace recover` of that build"
    ))
}

/// Waits, but not for ever, while somebody else recovers a trace: each `hetrace run` does it for all that programs left that
/// have ended.
fn wait_for_others(trace: &Path) {
    let wanted = |session: &PathBuf| Ticket::of(session).is_some_and(|ticket| is_same(&ticket.trace, trace));
    let begin = Instant::now();
    for session in folder::all().into_iter().filter_map(|(path, own)| own.ok().map(|()| path)).filter(wanted)
    {
        while folder::is_being_cleared(&session) && begin.elapsed() < PATIENCE {
            thread::sleep(PAUSE);
        }
    }
}

/// Returns whether a trace is the one at a path, or a part of the series there.
fn is_same(trace: &Path, path: &Path) -> bool {
    let whole = |p: &Path| p.canonicalize().ok();
    let Some(path) = whole(path) else { return false };
    // With events of the operating system the program's trace is one of two in a folder, which may be a part.
    let folder = above_program(trace).unwrap_or(trace);
    let series = folder.parent().filter(|_| trace.join(files::PART).is_file());
    [Some(trace), Some(folder), series].into_iter().flatten().any(|of| whole(of).is_some_and(|of| of == path))
}

/// Returns the manifest of a ticket's trace, if that is unfinished and of this session.
pub(crate) fn belonging(ticket: &Ticket, session: &Path) -> Option<Manifest> {
    let text = fs::read(ticket.trace.join(files::MANIFEST)).ok()?;
    let manifest: Manifest = Manifest::parse(&text).ok()?;
    let unfinished = !manifest.is_finished() && manifest.session.as_deref() == Some(session);
    unfinished.then_some(manifest)
}

/// Recovers one session. Unless `living` ones are wanted, too, one whose programs still run is
/// left where it is: it takes no memory that they would not take without it.
fn one(
    session: Folder,
    ticket: Ticket,
    mut manifest: Manifest,
    living: bool,
) -> Option<Result<Recovered, (PathBuf, io::Error)>> {
    let trace = match ticket.folder() {
        Ok(trace) => trace,
        Err(error) => {
            session.leave();
            return Some(Err((ticket.trace, error)));
        }
    };
    let mut drainer = Drainer::new(session.path(), trace.clone(), ticket.apis());
    drainer.since(ticket.looked(session.path()));
    drainer.discover();
    if drainer.living() > 0 && !living {
        session.leave();
        return None;
    }
    let host = HostClock::new(ticket.started(), reference());
    drainer.pass(&host);
    let alive = drainer.living();
    drainer.finish(&host);
    let mut contents = Contents::new(session.path(), trace.path(), trace.access());
    contents.move_all(&drainer);
    let (records, bytes) = drainer.written();
    manifest.notes.extend(contents.notes(&drainer));
    manifest.notes.extend(inside::collect(session.path(), trace.path(), trace.access()));
    complete(&mut manifest, &drainer, &trace, records);
    parts::complete(&trace, session.path());
    kernel::complete(&mut manifest, &trace);
    if let Some((left, report)) = LeftWindow::open(session.path()).zip(manifest.capture.clone()) {
        let pages = left.pages();
        Windows::recover(&trace, pages.switch(), &host, report).finish(pages, &host, &mut manifest);
    }
    if let Err(error) = write_manifest(&trace, &manifest) {
        // The rings are read and stay; a second time their records come again, in other files.
        session.leave();
        return Some(Err((ticket.trace, error)));
    }
    Some(Ok(Recovered { trace: ticket.trace, records, bytes, living: alive }))
}

fn complete(manifest: &mut Manifest, drainer: &Drainer, trace: &TraceFolder, records: u64) {
    manifest.end_ns = Some(clock::nanoseconds(libc::CLOCK_MONOTONIC));
    manifest.processes = read_back(drainer.processes(), &mut manifest.notes);
    let _ = job::inherit(&mut manifest.processes, &manifest.job);
    // A ring's losses are booked when its process ends: parts before have none of those that are left.
    manifest.losses = drainer.losses();
    manifest.device_clocks = read_back(drainer.device_clocks(), &mut manifest.notes);
    manifest.session = None;
    manifest.notes.push(format!(
        "hetrace was killed while it recorded; {records} records that were left in shared memory were recovered \
         afterwards. What could not be written before, and how the program ended, is not known"
    ));
    manifest.notes.append(&mut drainer.reported().notes);
    manifest.notes.extend(trace.refused().iter().map(ToString::to_string));
    manifest.notes.extend(drainer.unmodelled());
}
