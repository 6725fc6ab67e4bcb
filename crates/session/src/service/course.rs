//! One session of the service: from `start` to `stop`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hetrace_ring::abi::REFUSED_PREFIX;
use hetrace_ring::abi::window::reason;
use hetrace_ring::clock;

use super::beside::Beside;
use super::protocol::{Session, Start, Stopped};
use crate::access::Access;
use crate::apis::{Found, Name};
use crate::beside::prepare;
use crate::contents::Contents;
use crate::control::{Control, Flags, LeftWindow, refused};
use crate::drain::{self, Drainer, Past};
use crate::flight::{self, Answer, Recorder, Rotating};
use crate::layout::above_program;
use crate::manifest::{Interposition, Manifest};
use crate::measuring::Measuring;
use crate::output::TraceFolder;
use crate::place::Place;
use crate::recover::last_part;
use crate::recover::ticket::{Looked, Ticket};
use crate::reference::reference;
use crate::run::{
    Folders, Fresh, NAP, Recording, TICK, finish_manifest, first_manifest, folders, recorder, sink,
};
use crate::run_options::RunOptions;
use crate::select::{Mode, Selection};
use crate::settings;
use crate::telemetry;
use crate::time::HostClock;
use crate::trigger::{Account, Bound, TriggerError, Watch};
use crate::window::{Asked, Windows, by};

/// How long commands that were begun before a session's end may take to be reported.
const SETTLING: Duration = Duration::from_millis(300);

/// What a session may take; what is more is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Processes that are recorded at a time.
    pub processes: Option<u32>,
    /// Threads of all of them.
    pub threads: Option<u32>,
    /// Bytes of shared memory for rings; none: a share of what there is.
    pub memory: Option<u64>,
    /// Bytes of a trace: then recording pauses.
    pub disk: Option<u64>,
}

impl Limits {
    fn most(&self) -> drain::Limits {
        drain::Limits::new(self.processes, self.threads)
    }
}

/// A session that is recorded.
pub(super) struct Course {
    recording: Recording,
    folder: TraceFolder,
    fresh: Fresh,
    manifest: Manifest,
    limits: Limits,
    /// Which limit was reached.
    limit: Option<String>,
    /// The oldest parts are removed before the limit of the disk is reached.
    makes_room: bool,
    /// What is recorded besides.
    beside: Beside,
    /// Writes snapshots, if that is all that is written.
    flight: Option<Recorder>,
    /// Divides the session into parts.
    rotating: Option<Rotating>,
    session: PathBuf,
    /// Another service began it, and was killed.
    resumed: bool,
    rings: u32,
    nap: Duration,
    ticked: Instant,
    /// When a snapshot that a program asked for was written last.
    answered: Instant,
}

impl std::fmt::Debug for Course {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Course").field("trace", &self.trace()).finish_non_exhaustive()
    }
}

/// Refuses what makes no sense.
fn check(asked: &Start, libraries: &[Found]) -> Result<(), String> {
    asked.whom.check()?;
    match asked.apis.iter().find(|api| !libraries.iter().any(|l| l.api == **api)) {
        Some(api) => Err(format!("unknown API `{api}`")),
        None => Ok(()),
    }
}

/// Returns what is recorded as a run would say it.
fn options(asked: &Start, limits: Limits) -> RunOptions {
    let place = if asked.numbered { Place::Numbered } else { Place::Named };
    RunOptions {
        output: place(asked.output.clone()),
        access: if asked.group { Access::Group } else { Access::Owner },
        selection: Selection {
            mode: if asked.minimal { Mode::Minimal } else { Mode::Default },
            include: asked.include.clone(),
            exclude: asked.exclude.clone(),
            devices: asked.devices,
        },
        max_overhead: asked.max_overhead,
        window: Some(Asked::Commands),
        window_shown: asked.shown.join(" "),
        compress: asked.compress,
        sample: asked.sample.map(|period| telemetry::Options { period, libraries: Default::default() }),
        os: asked.os.clone(),
        flight: asked.flight.map(|(window, memory)| flight::Asked {
            window,
            memory,
            signal: None,
            at_end: false,
        }),
        rotate: asked.rotate,
        // With retention the oldest parts make room; else recording pauses, see `limit_disk`.
        max_disk: limits.disk.filter(|_| asked.rotate.is_some_and(|rotate| rotate.has_retention())),
        shown: asked.shown.clone(),
        ..RunOptions::default()
    }
}

/// Returns the triggers of a flight recording, if it has some.
fn triggers(asked: &Start, options: &RunOptions, libraries: &[Found]) -> Result<Option<Arc<Bound>>, String> {
    let (texts, most) = &asked.triggers;
    if texts.is_empty() {
        return Ok(None);
    }
    if options.flight.is_none() {
        return Err("--trigger: a trigger writes a snapshot: add --flight".to_owned());
    }
    let bind = || {
        let triggers = texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
        let bound = Bound::new(&triggers, libraries, &options.selection, options.sample.is_some(), *most)?;
        bound.without_ends()?;
        Ok(Some(Arc::new(bound)))
    };
    bind().map_err(|error: TriggerError| format!("--trigger: {error}"))
}

/// Whether an API is to be recorded.
fn wants(asked: &Start, library: &Found) -> bool {
    asked.apis.is_empty() || asked.apis.iter().any(|api| *api == library.api)
}

/// What is recorded of each API's functions: of those that are not wanted none.
fn flags(asked: &Start, options: &RunOptions, libraries: &[Found]) -> Result<Vec<Flags>, String> {
    let of = |library: &Found| match wants(asked, library) {
        true => settings::of_library(options, library),
        false => Ok(Flags::none(library.api.clone())),
    };
    libraries.iter().map(of).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

impl Course {
    /// Begins one.
    pub fn begin(
        session: &Path,
        control: &Control,
        libraries: &[Found],
        limits: Limits,
        asked: &Start,
    ) -> Result<Self, String> {
        check(asked, libraries)?;
        let mut options = options(asked, limits);
        options.triggers = triggers(asked, &options, libraries)?;
        let started = reference();
        let settings = settings::settings(&options, flags(asked, &options, libraries)?);
        let wrong = |error: io::Error| format!("{}: {error}", options.output.path().display());
        let Folders { fresh, first } = Folders::make(&options).map_err(wrong)?;
        let uuid = *uuid::Uuid::new_v4().as_bytes();
        let keep = options.flight.as_ref().filter(|_| options.os.is_some());
        let keep = keep.map(|asked| Arc::new(asked.keep(options.compress)));
        let (program, kernel) = folders(&options, &fresh, keep.as_ref()).map_err(wrong)?;
        let store =
            options.flight.as_ref().map(|asked| asked.store(options.os.is_some(), options.compress, session));
        let folder = TraceFolder::new(program, uuid, options.compress)
            .accessible(options.access)
            .giving(sink(&options, store.as_ref(), &fresh.path));
        let kernel = kernel.map(|kernel| kernel.within(folder.room()));
        let borders = kernel.as_ref().and_then(|kernel| kernel.borders.clone());
        let mut manifest = first_manifest(&options, started, session);
        let way = |l: &Found| Interposition { api: l.api.clone(), way: "standby".into() };
        manifest.interposition = libraries.iter().filter(|l| wants(asked, l)).map(way).collect();
        let mut beside = Beside::begin(&options, (&folder, kernel), started, &mut manifest).map_err(wrong)?;
        let declarations = prepare(&folder, started, &manifest, libraries).map_err(wrong)?;
        let folder = folder.declaring(declarations);
        folder.series().map_or(Ok(()), |series| series.first()).map_err(wrong)?;
        Ticket::withdraw(session);
        let looked = Ticket::try_leave(&folder, libraries, started, session);
        let names: Vec<_> = libraries.iter().map(|l| l.api.clone()).collect();
        let watch = watch(&options, &names, &manifest, &mut beside)?;
        skip(session, &names, started);
        beside.start(session, &asked.whom);
        let report = manifest.capture.clone().unwrap_or_default();
        let recording = Recording {
            drainer: Drainer::new(session, folder.clone(), names)
                .watching(watch)
                .dividing(settings::overhead_ppm(&options))
                .within(limits.most())
                .after(Past::OfOthers),
            host: HostClock::new(started, reference()),
            contents: Contents::new(session, folder.path(), options.access),
            looked,
            measuring: Measuring::default(),
            windows: Some(Windows::new(&folder, &Asked::Commands, control.switch(), started.tsc, report)),
        };
        let flight = recorder(&options, store.zip(first), &folder, session, started).map(|f| f.with(keep));
        let rotating = Rotating::new(&folder, session, libraries, started).map(|r| r.with(borders));
        fresh.keep();
        let parts = (folder, fresh, manifest);
        let makes_room = options.max_disk.is_some();
        let mut course =
            Course { beside, flight, rotating, makes_room, ..Self::of(recording, parts, limits, session) };
        course.recording.drainer.discover();
        course.recording.begin(control, &course.folder, &mut course.manifest);
        // The session before may have had another limit.
        control.limit_budget(limits.memory);
        course.recording.renew_budget(control);
        control.begin(&settings, &asked.whom);
        Ok(course)
    }

    /// Goes on with the session of a service that was killed; none if there is none.
    pub fn resume(
        session: &Path,
        control: &Control,
        limits: Limits,
    ) -> Option<Result<Self, (PathBuf, io::Error)>> {
        let (manifest, ticket) = last_part(Ticket::of(session)?, session)?;
        let made = Self::go_on(session, control, limits, &ticket, manifest);
        Some(made.map_err(|error| (ticket.trace, error)))
    }

    fn go_on(
        session: &Path,
        control: &Control,
        limits: Limits,
        ticket: &Ticket,
        mut manifest: Manifest,
    ) -> io::Result<Self> {
        let folder = ticket.folder()?;
        let fresh = Fresh::of(&outer(&ticket.trace))?;
        let host = HostClock::new(ticket.started(), reference());
        let mut drainer =
            Drainer::new(session, folder.clone(), ticket.apis()).within(limits.most()).after(Past::Ours);
        drainer.since(ticket.looked(session));
        drainer.discover();
        let report = manifest.capture.clone().unwrap_or_default();
        let left = LeftWindow::open(session).ok_or(io::ErrorKind::InvalidData)?;
        let windows = Some(Windows::recover(&folder, left.pages().switch(), &host, report));
        manifest.notes.push(
            "the service was killed while it recorded, and another went on: commands on devices that the killed one had \
             taken and not put in order are missing, and counted as lost"
                .to_owned(),
        );
        if manifest.rotation.is_some() {
            manifest.notes.push("the session is not divided into parts any more since then".to_owned());
        }
        if manifest.os.is_some() || manifest.telemetry.is_some() {
            manifest.notes.push(
                "events of the operating system and telemetry end where the service was killed".to_owned(),
            );
        }
        let contents = Contents::new(session, folder.path(), folder.access());
        let looked: Looked = Ticket::resume(session);
        let measuring = Measuring::default();
        let recording = Recording { drainer, host, contents, looked, measuring, windows };
        let parts = (folder, fresh, manifest);
        let mut course = Course { resumed: true, ..Self::of(recording, parts, limits, session) };
        course.recording.begin(control, &course.folder, &mut course.manifest);
        control.limit_budget(limits.memory);
        control.renumber();
        Ok(course)
    }

    /// One that records calls, and begins now.
    fn of(
        recording: Recording,
        (folder, fresh, manifest): (TraceFolder, Fresh, Manifest),
        limits: Limits,
        session: &Path,
    ) -> Self {
        Course {
            recording,
            folder,
            fresh,
            manifest,
            limits,
            limit: None,
            makes_room: false,
            beside: Beside::default(),
            flight: None,
            rotating: None,
            session: session.to_owned(),
            resumed: false,
            rings: 0,
            nap: NAP,
            ticked: Instant::now(),
            answered: Instant::now(),
        }
    }

    /// Folder of the trace; of a flight recording that of its first snapshot.
    pub fn trace(&self) -> &Path {
        self.flight.as_ref().map_or(&*self.fresh.path, Recorder::first)
    }

    /// Returns what the user should know from the beginning.
    pub fn notes(&self) -> Vec<String> {
        self.beside.notes()
    }

    /// Takes what there is, and sleeps a moment.
    pub fn look(&mut self, control: &Control) {
        let rings = self.rings;
        let (pass, _) = self.recording.look(control, &mut self.rings);
        // A process that was just found has recorded something, most often.
        let found = rings != self.rings;
        if self.ticked.elapsed() >= TICK {
            self.ticked = Instant::now();
            self.recording.tick(control);
            self.beside.look(&self.recording.drainer);
            self.limit_disk(control);
        }
        if found {
            self.beside.look(&self.recording.drainer);
        }
        self.answer(control);
        self.divide(control);
        self.nap = if pass.fullest >= 25 { Duration::from_millis(1) } else { (self.nap * 2).min(NAP) };
        control.wait(self.nap);
    }

    /// Writes what is asked for: what is recorded by now, or a snapshot.
    fn answer(&mut self, control: &Control) {
        let Some(flight) = &mut self.flight else {
            return self.recording.answer(control, &mut self.answered);
        };
        let mut watch = self.recording.drainer.watch();
        watch.iter_mut().for_each(|watch| watch.tick(reference().monotonic_ns));
        if let Some(request) = flight.wanted(control, watch) {
            let manifest = self.recording.so_far(control, &self.manifest, true);
            flight.begin(request, manifest, control);
        }
    }

    /// Goes over to the next part, if it is time.
    fn divide(&mut self, control: &Control) {
        let Some(rotating) = &mut self.rotating else { return };
        rotating.settle();
        if !rotating.is_due() {
            return;
        }
        let mut manifest = self.recording.so_far(control, &self.manifest, false);
        if let Some(windows) = &self.recording.windows {
            manifest.capture = Some(windows.so_far().clone());
        }
        if let Some(part) = rotating.go_over(manifest, &self.manifest) {
            self.recording.contents.go_on(&part);
            self.folder = rotating.trace().clone();
        }
    }

    fn limit_disk(&mut self, control: &Control) {
        let bytes = self.recording.drainer.so_far().1.saturating_add(self.beside.bytes());
        // A flight recording is in memory, which has a limit of its own.
        let most = self.limits.disk.filter(|_| self.flight.is_none() && !self.makes_room);
        if let Some(most) = most.filter(|most| bytes >= *most && self.limit.is_none()) {
            control.switch().set_open(false, clock::ticks(), by(reason::LIMIT));
            self.beside.set_open(false);
            let text =
                format!("recording paused for good: the trace reached the service's limit of {most} bytes");
            self.manifest.notes.push(text.clone());
            self.limit = Some(text);
        }
    }

    /// Pauses or resumes. Returns whether that was a change.
    pub fn set_open(&mut self, control: &Control, open: bool) -> bool {
        let window = control.switch();
        if window.is_open() == open || (open && self.limit.is_some()) {
            return false;
        }
        // Opening them takes a moment: they are there when the first call is.
        if open {
            self.beside.set_open(true);
        }
        window.set_open(open, clock::ticks(), by(reason::COMMAND));
        if !open {
            self.beside.set_open(false);
        }
        true
    }

    /// What is known now.
    pub fn status(&self, control: &Control) -> Session {
        let drainer = &self.recording.drainer;
        let (records, bytes) = drainer.so_far();
        Session {
            trace: self.trace().to_owned(),
            paused: !control.switch().is_open(),
            limit: self.limit.clone(),
            processes: drainer.living(),
            records,
            bytes,
            lost: drainer.lost().0,
            memory: drainer.memory(),
            refused: drainer.limits().refused(),
            os: self.beside.what().0,
            sampled: self.beside.what().1,
            flight: self.flight.is_some(),
        }
    }

    /// Finishes the trace, and makes programs dormant.
    pub fn stop(mut self, control: &Control) -> Stopped {
        control.switch().set_open(false, clock::ticks(), by(reason::COMMAND));
        let closed = Instant::now();
        while closed.elapsed() < SETTLING {
            self.look(control);
        }
        control.end();
        let Course {
            mut recording,
            folder,
            fresh,
            mut manifest,
            session,
            resumed,
            beside,
            flight,
            rotating,
            ..
        } = self;
        let beside = beside.finish();
        recording.host.add(reference());
        recording.finish();
        let mut known = std::mem::take(&mut manifest.notes);
        known.extend(recording.drainer.limits().notes());
        recording.complete(&mut manifest, control, &folder, known);
        beside.complete(&mut manifest);
        let records = manifest.written.records.unwrap_or(0);
        if resumed {
            // What is known is what came since.
            manifest.written.account = None;
            manifest.written.records = None;
        }
        manifest.stopped = true;
        let mut notes = Vec::new();
        let trace = flight.as_ref().map_or(&*fresh.path, Recorder::first).to_owned();
        let snapshots = flight.map(|flight| {
            let finished = flight.finish(&manifest, control, recording.drainer.watch());
            notes.extend(finished.failed);
            notes.extend(finished.triggers.iter().filter_map(Account::note));
            finished.snapshots.iter().map(ToString::to_string).collect()
        });
        if let Some(rotating) = rotating {
            let (last, of_last) = rotating.finish(&mut manifest);
            notes.extend(finish_manifest(&last, &fresh, &of_last));
        } else if snapshots.is_none() {
            notes.extend(finish_manifest(&folder, &fresh, &manifest));
        }
        Ticket::withdraw(&session);
        Answer::withdraw(&session);
        notes.extend(manifest.notes.iter().cloned());
        let losses = &manifest.losses;
        Stopped {
            trace,
            records,
            resumed,
            bytes: manifest.written.bytes,
            processes: manifest.processes.len(),
            lost: losses.records.saturating_add(losses.calls_without_ring),
            notes,
            snapshots,
        }
    }
}

/// Returns what watches for the triggers of a flight recording, also in samples.
fn watch(
    options: &RunOptions,
    names: &[Name],
    manifest: &Manifest,
    beside: &mut Beside,
) -> Result<Option<Watch>, String> {
    let Some((bound, flight)) = options.triggers.as_ref().zip(options.flight.as_ref()) else {
        return Ok(None);
    };
    let mut watch = Watch::new(bound, names, flight.window);
    watch.devices(manifest.telemetry.as_ref()).map_err(|error| format!("--trigger: {error}"))?;
    beside.feed(&watch);
    Ok(Some(watch))
}

/// Returns the user's folder of a trace: with events of the operating system the program's trace is one of two in it.
fn outer(trace: &Path) -> PathBuf {
    above_program(trace).unwrap_or(trace).to_owned()
}

/// Takes out of the rings what came after the session before, and removes those of processes that are gone: it belongs
/// to no trace. Who the records are of is noted in the rings.
fn skip(session: &Path, names: &[Name], started: crate::time::ReferencePoint) {
    let nowhere = TraceFolder::new(session.join("nowhere"), [0; 16], false);
    let mut drainer = Drainer::new(session, nowhere, names.to_vec()).after(Past::OfOthers);
    let host = HostClock::new(started, reference());
    drainer.discover();
    drainer.pass(&host);
    drainer.flush(reference().monotonic_ns, &host);
    drainer.forget();
    for (api, version) in refused(session) {
        let _ = std::fs::remove_dir(session.join(format!("{REFUSED_PREFIX}{api}-{version}")));
    }
}
