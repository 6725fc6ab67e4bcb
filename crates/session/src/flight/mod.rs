//! The flight recorder: what was recorded last is kept in memory, and written when somebody asks, a signal comes or the
//! program fails ([decision 0052]).
//!
//! ```text
//!   rings ──► Drainer ──► Stream ──► Store            NAME.flight: metadata, models, stored contents
//!                                      │ view                        │
//!            asked, signal, crash ──► Recorder ──► Material::write ◄─┘ ──► NAME, NAME-2, …
//! ```
//! Rings are drained as ever, so their size is no limit. A snapshot is written by a thread of its own while the rings are
//! drained on.
//!
//! [decision 0052]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0052-flight-recorder.md

mod rotating;
mod write;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hetrace_format::files::METADATA;
use hetrace_format::manifest::{Capture, Fired, Flight, Part, Window};
use hetrace_os::Keep;
use hetrace_ring::clock;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::child::toggles;
use crate::control::Control;
use crate::declare::Declarations;
use crate::manifest::{Exit, Manifest};
use crate::output::TraceFolder;
use crate::sink::{Store, View};
use crate::trigger::{Account, Watch};
pub use rotating::Rotating;
pub(crate) use rotating::last_manifest;
use write::Material;

/// Time between two snapshots: a program can ask all the time.
const PAUSE: Duration = Duration::from_secs(1);
/// Snapshots of a run.
const MOST: u32 = 100;
/// The session's file with what became of the last request.
const ANSWER: &str = "snapshot";

/// What a flight recording is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// How far back a snapshot reaches.
    pub window: Duration,
    /// Bytes of memory for it.
    pub memory: u64,
    /// The signal to the launcher that asks for a snapshot.
    pub signal: Option<i32>,
    /// A last snapshot is written even if the program ends well.
    pub at_end: bool,
}

impl Asked {
    /// Returns the store for it, and notes in the session that its packets are not written.
    ///
    /// Events of the operating system get half of the memory, if they are recorded.
    pub(crate) fn store(&self, has_os: bool, compress: bool, session: &Path) -> Arc<Store> {
        Answer::default().leave(session);
        let memory = if has_os { self.memory / 2 } else { self.memory };
        Arc::new(Store::new(self.window, memory, compress))
    }

    /// Returns the store for events of the operating system, which have half of the memory.
    pub(crate) fn keep(&self, compress: bool) -> Keep {
        Keep::new(self.window, self.memory / 2, compress)
    }
}

/// Returns the folder for what a recording writes before anybody asks, beside the one for its first snapshot.
pub fn work_folder(first: &Path) -> PathBuf {
    let mut name = OsString::from(first);
    name.push(".flight");
    PathBuf::from(name)
}

/// A snapshot that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its folder.
    pub path: PathBuf,
    /// What it has.
    pub flight: Flight,
    /// How far back it reaches, in nanoseconds before it was asked for.
    pub reach_ns: u64,
}

impl std::fmt::Display for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.reach_ns as f64 / 1e9;
        let path = self.path.display();
        match (self.flight.short, self.flight.since_ns) {
            (true, _) => write!(
                f,
                "{path}: the last {seconds:.2} s, not {:.2} s: memory for {} bytes was full (--flight-memory)",
                self.flight.window_ns as f64 / 1e9,
                self.flight.memory
            ),
            (false, Some(_)) => write!(f, "{path}: the last {seconds:.2} s"),
            (false, None) => write!(f, "{path}: all {seconds:.2} s since the start"),
        }
    }
}

/// What became of a request, for the command that asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The request's number: this and all before it are answered.
    pub number: u32,
    /// Folder of the snapshot.
    pub path: Option<PathBuf>,
    /// What it has, in words; why there is none.
    pub words: String,
}

impl Answer {
    fn leave(&self, session: &Path) {
        if let Ok(text) = serde_json::to_vec(self) {
            // Without it the command says less.
            let _ = Access::Owner.write(&session.join(ANSWER), &text);
        }
    }

    /// Removes that of a session whose folder stays.
    pub(crate) fn withdraw(session: &Path) {
        let _ = fs::remove_file(session.join(ANSWER));
    }

    /// Returns whether a session is a flight recording.
    pub fn is_given(session: &Path) -> bool {
        fs::symlink_metadata(session.join(ANSWER)).is_ok()
    }

    /// Reads that of a session, if it is of this request or a later one.
    pub fn of(session: &Path, number: u32) -> Option<Self> {
        let path = session.join(ANSWER);
        let found = fs::symlink_metadata(&path).ok()?;
        let text = (found.is_file() && found.len() < 64 << 10).then(|| fs::read(&path))?.ok()?;
        let answer: Answer = serde_json::from_slice(&text).ok()?;
        (answer.number.wrapping_sub(number) < 1 << 31).then_some(answer)
    }
}

/// What a flight recording left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Its snapshots, the first one first.
    pub snapshots: Vec<Snapshot>,
    /// Why others are missing.
    pub failed: Vec<String>,
    /// What its triggers did.
    pub triggers: Vec<Account>,
}

/// A snapshot that is being written.
#[derive(Debug)]
struct Writing {
    thread: JoinHandle<Result<Snapshot, String>>,
    /// The request that it answers.
    number: u32,
}

/// Writes snapshots of a run.
#[derive(Debug)]
pub struct Recorder {
    asked: Asked,
    store: Arc<Store>,
    /// Events of the operating system, if they are recorded.
    kernel: Option<Arc<Keep>>,
    folder: TraceFolder,
    session: PathBuf,
    /// Folder of the first snapshot, which is there and empty.
    first: PathBuf,
    started: u64,
    writing: Option<Writing>,
    begun: Option<Instant>,
    count: u32,
    signals: u32,
    done: Finished,
}

/// What is asked of a [`Recorder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    number: u32,
    reason: &'static str,
    /// Triggers that became true since the last one.
    fired: Vec<Fired>,
}

impl Recorder {
    /// For a run whose trace's own folder is `folder`; the first snapshot gets the name `first`.
    pub fn new(
        asked: &Asked,
        store: Arc<Store>,
        folder: &TraceFolder,
        first: &Path,
        session: &Path,
        started: u64,
    ) -> Self {
        Recorder {
            asked: asked.clone(),
            store,
            kernel: None,
            folder: folder.clone(),
            session: session.to_owned(),
            first: first.to_owned(),
            started,
            writing: None,
            begun: None,
            count: 0,
            signals: 0,
            done: Finished::default(),
        }
    }

    /// Folder of the first snapshot.
    pub fn first(&self) -> &Path {
        &self.first
    }

    /// Writes events of the operating system, too.
    pub fn with(self, kernel: Option<Arc<Keep>>) -> Self {
        Self { kernel, ..self }
    }

    /// Returns what is asked for now, also by triggers, if a snapshot can be begun.
    pub fn wanted(&mut self, control: &Control, watch: Option<&mut Watch>) -> Option<Request> {
        self.settle(control, false);
        let page = control.page();
        let number = control.snapshot_asked();
        let asked = number != page.snapshot_done.load(Ordering::Relaxed);
        let signals = self.signals_now();
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let fired = watch.as_ref().is_some_and(|watch| watch.is_due(now));
        if self.writing.is_some() || !asked && signals == self.signals && !fired {
            return None;
        }
        if self.begun.is_some_and(|begun| begun.elapsed() < PAUSE) {
            return None;
        }
        let reason = match (asked, signals == self.signals) {
            (true, _) => "asked",
            (false, false) => "signal",
            (false, true) => "trigger",
        };
        self.signals = signals;
        let fired = watch.map(|watch| watch.take(now)).unwrap_or_default();
        Some(Request { number, reason, fired })
    }

    /// Returns how often the signal came that asks for one.
    fn signals_now(&self) -> u32 {
        if self.asked.signal.is_some() { toggles() } else { 0 }
    }

    /// Begins a snapshot of all that is sealed. `manifest` is what is known of the run.
    pub fn begin(&mut self, request: Request, manifest: Manifest, control: &Control) {
        self.begun = Some(Instant::now());
        let Request { number, reason, fired } = request;
        match self.prepare(reason, fired, manifest) {
            Ok((material, flight, now)) => {
                let (count, first, access) = (self.count, self.first.clone(), self.folder.access());
                let reach_ns = now.saturating_sub(flight.since_ns.unwrap_or(self.started));
                let write = move || {
                    put(material, &first, count, access).map(|path| Snapshot { path, flight, reach_ns })
                };
                match std::thread::Builder::new().name("snapshot".to_owned()).spawn(write) {
                    Ok(thread) => self.writing = Some(Writing { thread, number }),
                    Err(error) => self.answer(control, number, Err(error.to_string())),
                }
            }
            Err(why) => self.answer(control, number, Err(why)),
        }
    }

    fn prepare(
        &self,
        reason: &str,
        fired: Vec<Fired>,
        mut manifest: Manifest,
    ) -> Result<(Material, Flight, u64), String> {
        if self.count >= MOST {
            return Err(format!("this run has {MOST} snapshots already"));
        }
        let metadata = self.folder.path().join(METADATA);
        let metadata = fs::read(&metadata).map_err(|error| format!("{}: {error}", metadata.display()))?;
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let view = self.store.view(now);
        let flight = self.describe(&view, reason, fired, &mut manifest);
        self.kernel.iter().for_each(|kernel| kernel.press(now));
        let material = Material {
            view,
            kernel: self.kernel.clone().map(|kernel| (kernel, now)),
            metadata,
            models: self.folder.declarations().map(Declarations::models).unwrap_or_default(),
            work: self.folder.path().to_owned(),
            manifest,
            access: self.folder.access(),
            compress: self.folder.compress(),
        };
        Ok((material, flight, now))
    }

    /// Says in a manifest what the snapshot has.
    fn describe(&self, view: &View, reason: &str, fired: Vec<Fired>, manifest: &mut Manifest) -> Flight {
        let flight = Flight {
            window_ns: u64::try_from(self.asked.window.as_nanos()).unwrap_or(u64::MAX),
            memory: self.asked.memory,
            since_ns: view.since,
            short: view.short,
            unkept: view.unkept,
            reason: reason.to_owned(),
            fired,
        };
        manifest.session = None;
        // It is whole, though the program may live on.
        manifest.stopped = manifest.exit.is_none();
        manifest.flight = Some(flight.clone());
        if let Some(since) = view.since {
            manifest.trimmed.push(Part { from_ns: i64::try_from(since).ok(), ..Part::default() });
            // Reports take what was before for what they do not know, not for idle.
            let window = Window {
                begin_ns: since,
                end_ns: manifest.end_ns,
                opened_by: "time".to_owned(),
                closed_by: None,
            };
            let asked = format!("{} {:?}", Capture::FLIGHT, self.asked.window);
            manifest.capture = Some(Capture { asked, windows: vec![window], ..Capture::default() });
            manifest.notes.push(
                "this is a snapshot of a flight recording: the losses in the manifest are those of the whole run"
                    .to_owned(),
            );
        }
        manifest.notes.extend(flight.fired.iter().map(Fired::to_string));
        if view.short {
            manifest.notes.push(format!(
                "the snapshot reaches back less far than was asked for: {} bytes of memory were full; use a larger \
                 --flight-memory",
                self.asked.memory
            ));
        }
        if view.unkept > 0 {
            manifest.notes.push(format!(
                "{} records from before the snapshot, such as definitions, found no room in memory; use a larger \
                 --flight-memory",
                view.unkept
            ));
        }
        flight
    }

    /// Takes what became of the snapshot that is being written, or waits for it.
    fn settle(&mut self, control: &Control, wait: bool) {
        if let Some(writing) = self.writing.take_if(|writing| wait || writing.thread.is_finished()) {
            let result = writing.thread.join().unwrap_or_else(|_| Err("it could not be written".to_owned()));
            self.answer(control, writing.number, result);
        }
    }

    fn answer(&mut self, control: &Control, number: u32, result: Result<Snapshot, String>) {
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let answer = match &result {
            Ok(snapshot) => {
                // Whoever asked may be in another folder.
                let snapshot = Snapshot { path: whole(&snapshot.path), ..snapshot.clone() };
                Answer { number, words: snapshot.to_string(), path: Some(snapshot.path) }
            }
            Err(why) => Answer { number, path: None, words: why.clone() },
        };
        answer.leave(&self.session);
        match result {
            Ok(snapshot) => {
                self.count += 1;
                self.done.snapshots.push(snapshot);
            }
            Err(why) if self.done.failed.len() < MOST as usize => self.done.failed.push(why),
            Err(_) => {}
        }
        control.page().snapshot_done.store(number, Ordering::Release);
    }

    /// The program has ended: writes what is asked for still, or what its end asks for. `manifest` is that of the run.
    pub fn finish(mut self, manifest: &Manifest, control: &Control, watch: Option<&mut Watch>) -> Finished {
        self.settle(control, true);
        let page = control.page();
        let number = control.snapshot_asked();
        let asked = number != page.snapshot_done.load(Ordering::Relaxed);
        let reason = match manifest.exit {
            Some(Exit::Signal(_)) => Some("crash"),
            Some(Exit::Code(0)) if self.asked.at_end => Some("end"),
            Some(Exit::Code(0)) if asked => Some("asked"),
            Some(Exit::Code(0)) if self.signals_now() != self.signals => Some("signal"),
            Some(Exit::Code(0)) => {
                watch.as_ref().is_some_and(|watch| watch.is_pending()).then_some("trigger")
            }
            // A session of the service that was stopped.
            None if manifest.stopped && asked => Some("asked"),
            None if manifest.stopped => self.asked.at_end.then_some("end"),
            Some(Exit::Code(_)) | None => Some("failure"),
        };
        let mut watch = watch;
        if let Some(reason) = reason {
            let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
            let fired = watch.as_mut().map(|watch| watch.take(now)).unwrap_or_default();
            self.begin(Request { number, reason, fired }, manifest.clone(), control);
            self.settle(control, true);
        }
        self.done.triggers = watch.map(|watch| watch.accounts()).unwrap_or_default();
        // What nobody asked for is in no folder.
        let _ = fs::remove_dir_all(self.folder.path());
        if self.done.snapshots.is_empty() {
            let _ = fs::remove_dir(&self.first);
        }
        self.done
    }
}

/// Writes a snapshot under a hidden name, and gives it its own when it is whole.
fn put(material: Material, first: &Path, count: u32, access: Access) -> Result<PathBuf, String> {
    let mut hidden = OsString::from(".");
    hidden.push(first.file_name().unwrap_or_default());
    hidden.push(format!(".{}.tmp", std::process::id()));
    let scratch = first.with_file_name(hidden);
    let say = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    access.make_folder(&scratch).map_err(|error| say(&scratch, error))?;
    let named = material.write(&scratch).map_err(|error| say(first, error)).and_then(|_| {
        let place = free(first, count, access)?;
        // Over a folder that is empty: what somebody has put there stays.
        fs::rename(&scratch, &place).map_err(|error| say(&place, error)).map(|()| place)
    });
    if named.is_err() {
        let _ = fs::remove_dir_all(&scratch);
    }
    named
}

/// Returns an empty folder for the snapshot with this number.
fn free(first: &Path, count: u32, access: Access) -> Result<PathBuf, String> {
    if count == 0 {
        return Ok(first.to_owned());
    }
    for number in count + 1..count + 1 + 10 * MOST {
        let mut name = OsString::from(first);
        name.push(format!("-{number}"));
        let path = PathBuf::from(name);
        match access.make_folder(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
    Err(format!("{}: no free number for a snapshot", first.display()))
}
