//! Running a program under trace.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hetrace_ctf::account::Account;
use hetrace_ctf::read::Part;
use hetrace_format::files::MANIFEST;
use hetrace_os::Keep;
use hetrace_ring::abi;
use hetrace_ring::{clock, survive};

use crate::access::Access;
use crate::account::account_of_files;
use crate::apis::{self, Candidate, Found, LibraryError, Name, Sorted};
use crate::beside::{host_name, prepare, renew_manifest};
use crate::child::{self, Child, Ending, Event, Inherited, guard};
use crate::contents::Contents;
use crate::control::{Control, refused};
use crate::declare::Declarations;
use crate::drain::{Drainer, Pass, read_back};
use crate::flight::{self, Recorder, Rotating, last_manifest};
use crate::folder::Folder;
use crate::inject;
use crate::inside;
use crate::job;
use crate::layout;
use crate::lifetime::Lifetime;
use crate::manifest::{self, Exit, HostClock as HostClockReport, Interposition, Losses, Manifest, Written};
use crate::measuring::Measuring;
use crate::options::Capture;
use crate::os::{self, Kernel};
use crate::output::TraceFolder;
use crate::place::Place;
use crate::recorders::Recorders;
use crate::recover::ticket::{Looked, Ticket};
use crate::recover::{self, Recovered};
use crate::reference::reference;
use crate::run_options::RunOptions;
use crate::settings;
use crate::sink::{Series, Sink, Store};
use crate::time::{HostClock, ReferencePoint};
use crate::trigger::TriggerError;
use crate::window::{Asked, Windows};

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Folder of the trace; of a flight recording nothing is left there.
    pub trace: PathBuf,
    /// What a flight recording left; none if the run was none.
    pub flight: Option<flight::Finished>,
    /// What goes into the manifest.
    pub manifest: Manifest,
    /// What the user should know: the program could not be traced, say.
    pub remarks: Vec<String>,
    /// What was recovered of others' sessions.
    pub recovered: Vec<String>,
    /// Traced processes that live on.
    pub living: usize,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program can't be started.
    #[error("{program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        error: io::Error,
    },
    /// The shared memory can't be made.
    #[error("cannot create shared memory for the session; the program was not started: {0}")]
    Session(io::Error),
    /// The trace's folder can't be made or written.
    #[error("{path}: {error}")]
    Output {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// An API's library can't be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A trigger can't become true here.
    #[error("--trigger: {0}")]
    Trigger(#[from] TriggerError),
}

/// How often the clocks are compared, and packets written.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// How far back times can be converted, in ticks: a quarter of an hour and more.
const MEMORY: u64 = 1 << 42;
/// Longest sleep between two looks at the rings.
pub(crate) const NAP: Duration = Duration::from_millis(25);

/// What a run begins with, before anything else is known of it.
#[derive(Debug)]
pub struct Early {
    inherited: Inherited,
    opening: Option<os::Opening>,
}

impl Early {
    /// Takes note of what the caller handed down, and begins to open the operating system's events: it takes the
    /// kernel a while, in which all else is prepared. The calling thread is the one that calls [`run`].
    pub fn begin(os: Option<&os::Options>) -> Self {
        // Limits are raised by it, also that of descriptors.
        let inherited = Inherited::take();
        Self { inherited, opening: os.map(os::Opening::begin) }
    }
}

/// Runs a program, records it, and writes the trace.
///
/// # Errors
/// When the program could not be started or nothing could be written. An end
/// of the program by a signal or with a status is no error.
pub fn run(options: &RunOptions, candidates: &[Candidate], early: Early) -> Result<Outcome, RunError> {
    let Early { inherited, opening } = early;
    let started = reference();
    // A program may cut short what it shares with us.
    survive::install();
    // What no program can use here would only make the start longer.
    let program = find_program(&options.command);
    let linked = program.as_deref().map(|file| inject::needed(&inject::executed(file))).unwrap_or_default();
    let Sorted { present, absent } = apis::sort(candidates, &linked)?;
    let recovered = recover_others();
    let folder = Folder::make().map_err(RunError::Session)?;
    let control = shared(options, folder.path(), &present).map_err(RunError::Session)?;
    let output = |error| RunError::Output { path: options.output.path().to_owned(), error };
    let Places { fresh, first, trace, kernel, store, keep } =
        Places::make(options, folder.path()).map_err(output)?;
    let mut manifest = first_manifest(options, started, folder.path());
    let mut injection = inject::plan(&present, folder.path(), options.way, program.as_deref());
    injection.notes.extend(uncounted_stacks(&options.capture));
    manifest.interposition = ways(std::mem::take(&mut injection.ways), absent);
    let mut remarks: Vec<String> = untraceable(options, program.as_deref()).into_iter().collect();
    let borders = kernel.as_ref().and_then(|kernel| kernel.borders.clone());
    let mut recorders = Recorders::open(options, folder.path(), opening, &trace, kernel, &mut manifest);
    let names: Vec<Name> = present.iter().map(|l| l.api.clone()).collect();
    let watch = recorders.watch(options, &names, &manifest)?;
    let declarations = prepare(&trace, started, &manifest, &present).map_err(output)?;
    let trace = trace.declaring(declarations);
    trace.series().map_or(Ok(()), |series| series.first()).map_err(output)?;
    let looked = Ticket::try_leave(&trace, &present, started, folder.path());
    let mut lifetime = Lifetime::default();
    let ending = ending(&lifetime, &control);
    recorders.ready_os(&mut manifest);
    let child = start(options, &injection.variables, &inherited)?;
    lifetime.begin();
    ending.of(child.pid());
    guard::while_it_runs(child.pid(), &control.page().drainer_alive);
    fresh.keep();
    recorders.start(child.pid(), &trace, started);

    // From here on the program runs, and nothing but its end ends this.
    let windows = windows(options, &trace, control.switch(), started, &manifest);
    let drainer = Drainer::new(folder.path(), trace.clone(), names).watching(watch);
    let drainer = drainer.dividing(settings::overhead_ppm(options));
    let recording = Recording::new(drainer, &trace, looked, windows, started);
    let flight = recorder(options, store.zip(first), &trace, folder.path(), started).map(|f| f.with(keep));
    let rotating = Rotating::new(&trace, folder.path(), &present, started).map(|r| r.with(borders));
    let mut running = Running { child, recording, flight, rotating, base: Manifest::default() };
    running.recording.begin(&control, &trace, &mut manifest);
    running.base = Manifest { notes: injection.notes.clone(), ..manifest.clone() };
    manifest.exit = running.drain_until_end(&control);
    lifetime.complete(&mut manifest);
    let recorded = recorders.finish();
    let living = running.recording.finish();
    let trace = running.rotating.as_ref().map_or(&trace, Rotating::trace).clone();
    running.recording.complete(&mut manifest, &control, &trace, injection.notes);
    recorded.complete(&mut manifest);
    let watch = running.recording.drainer.watch();
    let flight = running.flight.map(|flight| flight.finish(&manifest, &control, watch));
    if let Some(rotating) = running.rotating {
        let (last, of_last) = rotating.finish(&mut manifest);
        remarks.extend(finish_manifest(&last, &fresh, &of_last));
    } else if flight.is_none() {
        remarks.extend(finish_manifest(&trace, &fresh, &manifest));
    }
    Ok(Outcome { trace: fresh.path.clone(), flight, manifest, remarks, recovered, living })
}

/// Makes what the program's processes share with the launcher.
fn shared(options: &RunOptions, session: &Path, libraries: &[Found]) -> io::Result<Control> {
    let flags = libraries.iter().map(|library| settings::of_library(options, library));
    let apis = flags.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let control = Control::make(session, &settings::settings(options, apis))?;
    options.capture.choose(control.page());
    if let Some(wanted) = &options.inside {
        wanted.choose(control.page());
        inside::make(session, wanted)?;
    }
    Ok(control)
}

/// Where a run is written.
struct Places {
    fresh: Fresh,
    /// That of the first snapshot of a flight recording.
    first: Option<Fresh>,
    trace: TraceFolder,
    /// Of the operating system's events.
    kernel: Option<Kernel>,
    /// What keeps packets of a flight recording,
    store: Option<Arc<Store>>,
    /// and those of the operating system's events.
    keep: Option<Arc<Keep>>,
}

impl Places {
    /// Makes the folders.
    fn make(options: &RunOptions, session: &Path) -> io::Result<Places> {
        let Folders { fresh, first } = Folders::make(options)?;
        let uuid = *uuid::Uuid::new_v4().as_bytes();
        let keep = options.flight.as_ref().filter(|_| options.os.is_some());
        let keep = keep.map(|asked| Arc::new(asked.keep(options.compress)));
        let (folder, kernel) = folders(options, &fresh, keep.as_ref())?;
        let store =
            options.flight.as_ref().map(|asked| asked.store(options.os.is_some(), options.compress, session));
        let trace = TraceFolder::new(folder, uuid, options.compress)
            .accessible(options.access)
            .limited(options.max_disk)
            .giving(sink(options, store.as_ref(), &fresh.path));
        let kernel = kernel.map(|kernel| kernel.within(trace.room()));
        Ok(Places { fresh, first, trace, kernel, store, keep })
    }
}

/// Returns where packets go, if it is not into one file for each stream.
pub(crate) fn sink(options: &RunOptions, store: Option<&Arc<Store>>, folder: &Path) -> Option<Sink> {
    let (access, compress, most) = (options.access, options.compress, options.max_disk);
    let series = |rotate| {
        let series = Series::new(folder, rotate, access, compress, most).with_kernel(options.os.is_some());
        Sink::Series(Arc::new(series))
    };
    store.map(|store| Sink::Store(Arc::clone(store))).or_else(|| options.rotate.map(series))
}

/// Returns what notes when the program ends, and wakes this launcher.
fn ending(lifetime: &Lifetime, control: &Control) -> Ending {
    let (ended, wake) = (lifetime.clone(), control.waker());
    Ending::new(move || {
        ended.end();
        wake();
    })
}

/// Returns how each API is reached, also those that are not.
fn ways(mut injected: Vec<Interposition>, absent: Vec<Name>) -> Vec<Interposition> {
    injected.extend(absent.into_iter().map(|api| Interposition { api, way: "absent".into() }));
    injected
}

/// Returns what writes snapshots, if the run is a flight recording.
pub(crate) fn recorder(
    options: &RunOptions,
    made: Option<(Arc<Store>, Fresh)>,
    trace: &TraceFolder,
    session: &Path,
    started: ReferencePoint,
) -> Option<Recorder> {
    let (asked, (store, first)) = options.flight.as_ref().zip(made)?;
    // It is the user's as soon as the program runs.
    first.keep();
    Some(Recorder::new(asked, store, trace, &first.path, session, started.monotonic_ns))
}

/// The folders that a run begins with.
pub(crate) struct Folders {
    /// Where is written what is recorded.
    pub fresh: Fresh,
    /// That of the first snapshot of a flight recording.
    pub first: Option<Fresh>,
}

impl Folders {
    pub fn make(options: &RunOptions) -> io::Result<Self> {
        let fresh = Fresh::make(&options.output, options.access)?;
        if options.flight.is_none() {
            return Ok(Folders { fresh, first: None });
        }
        let work = Place::Named(flight::work_folder(&fresh.path));
        Ok(Folders { first: Some(fresh), fresh: Fresh::make(&work, options.access)? })
    }
}

/// Returns the folder of the trace and, if there is one, that of the operating system's: with these events
/// the user's folder has both in it.
pub(crate) fn folders(
    options: &RunOptions,
    fresh: &Fresh,
    keep: Option<&Arc<Keep>>,
) -> io::Result<(PathBuf, Option<Kernel>)> {
    let kernel = |folder| Kernel::new(folder, options.access, options.compress, keep.cloned());
    let whole = match options.rotate {
        Some(_) => fresh.path.join(Part::name(1)),
        None => fresh.path.clone(),
    };
    if options.rotate.is_some() {
        options.access.make_folder(&whole)?;
    }
    if options.os.is_none() || keep.is_some() {
        return Ok((whole, keep.map(|_| kernel(PathBuf::new()))));
    }
    let (program, folder) = layout::folders(&whole);
    options.access.make_folder(&program)?;
    let kernel = kernel(folder);
    Ok((program, Some(if options.rotate.is_some() { kernel.divided()? } else { kernel })))
}

/// Recovers what killed launchers left in shared memory into their traces.
fn recover_others() -> Vec<String> {
    let say = |done: Result<Recovered, (PathBuf, io::Error)>| match done {
        Ok(done) => format!("{done} left in shared memory by a killed hetrace"),
        Err((trace, error)) => format!("{}: not recovered: {error}", trace.display()),
    };
    recover::recover(None).into_iter().map(say).collect()
}

/// Returns what is known before the program starts.
pub(crate) fn first_manifest(options: &RunOptions, started: ReferencePoint, session: &Path) -> Manifest {
    Manifest {
        schema: hetrace_format::SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        host: host_name(),
        job: job::own(),
        start_ns: Some(started.monotonic_ns),
        start_realtime_ns: Some(started.realtime_ns),
        // Not known yet.
        end_ns: Some(0),
        session: Some(session.to_owned()),
        options: options.shown.clone(),
        max_overhead: options.max_overhead,
        capture: options.window.as_ref().map(|_| manifest::Capture {
            asked: options.window_shown.clone(),
            ..manifest::Capture::default()
        }),
        ..Manifest::default()
    }
}

/// Returns why the program runs untraced, if it does.
fn untraceable(options: &RunOptions, program: Option<&Path>) -> Option<String> {
    let what = program.and_then(inject::obstacle)?;
    let name = options.command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    Some(format!("{name} runs untraced: {what}"))
}

/// The trace's folder: made anew, and removed again if nothing comes to run.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub path: PathBuf,
    /// Open, so that no other folder gets its inode.
    folder: fs::File,
    kept: std::cell::Cell<bool>,
}

impl Fresh {
    pub fn make(place: &Place, access: Access) -> io::Result<Self> {
        let path = place.make(access)?;
        let folder = fs::File::open(&path)?;
        Ok(Fresh { path, folder, kept: false.into() })
    }

    /// Returns that of a trace that is gone on with.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (path, folder) = (path.to_owned(), fs::File::open(path)?);
        Ok(Fresh { path, folder, kept: true.into() })
    }

    pub fn keep(&self) {
        self.kept.set(true);
    }

    /// Returns whether the folder is still the one that was made.
    fn is_there(&self) -> bool {
        let inode = |m: io::Result<fs::Metadata>| m.ok().map(|m| (m.dev(), m.ino()));
        inode(fs::symlink_metadata(&self.path)) == inode(self.folder.metadata())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.kept.get() && self.is_there() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Writes the last manifest. Returns what the user must know if that fails.
pub(crate) fn finish_manifest(trace: &TraceFolder, fresh: &Fresh, manifest: &Manifest) -> Option<String> {
    let path = trace.path().display();
    if !fresh.is_there() {
        return Some(format!("{path} was removed during recording: the trace is lost"));
    }
    let error = last_manifest(trace, manifest).err()?;
    Some(format!("cannot write {path}/{MANIFEST} ({error}): the trace does not show dropped events"))
}

fn start(
    options: &RunOptions,
    variables: &[(OsString, OsString)],
    inherited: &Inherited,
) -> Result<Child, RunError> {
    let snapshot = options.flight.as_ref().and_then(|flight| flight.signal);
    if let (Some(Asked::Toggle(signal)), _) | (_, Some(signal)) = (options.window.clone(), snapshot) {
        child::toggle_on(signal);
    }
    let command = &options.command;
    let name = || command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    Child::start(command, variables, inherited).map_err(|error| RunError::Start { program: name(), error })
}

/// Returns the capture windows of a run that has begun, if it has some.
fn windows(
    options: &RunOptions,
    trace: &TraceFolder,
    page: &abi::Switch,
    started: ReferencePoint,
    manifest: &Manifest,
) -> Option<Windows> {
    let report = manifest.capture.clone().unwrap_or_default();
    options.window.as_ref().map(|asked| Windows::new(trace, asked, page, started.tsc, report))
}

/// What becomes of what programs record.
pub(crate) struct Recording {
    pub drainer: Drainer,
    pub host: HostClock,
    pub contents: Contents,
    pub looked: Looked,
    pub measuring: Measuring,
    pub windows: Option<Windows>,
}

/// A program that runs, and what it records.
struct Running {
    child: Child,
    recording: Recording,
    flight: Option<Recorder>,
    rotating: Option<Rotating>,
    /// What was known of the run when the program began.
    base: Manifest,
}

impl Running {
    /// Drains until the program ends. Returns how it ended, if that can be known.
    fn drain_until_end(&mut self, control: &Control) -> Option<Exit> {
        let mut rings = 0;
        let mut ticked = Instant::now();
        let mut answered = ticked;
        let mut nap = Duration::from_millis(1);
        loop {
            let (pass, due) = self.recording.look(control, &mut rings);
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.recording.tick(control);
            }
            match &mut self.flight {
                Some(flight) => {
                    let mut watch = self.recording.drainer.watch();
                    watch.iter_mut().for_each(|watch| watch.tick(reference().monotonic_ns));
                    if let Some(request) = flight.wanted(control, watch) {
                        let manifest = self.recording.so_far(control, &self.base, true);
                        flight.begin(request, manifest, control);
                    }
                }
                None => self.recording.answer(control, &mut answered),
            }
            self.rotating.iter_mut().for_each(|rotating| _ = rotating.settle());
            if let Some(rotating) = self.rotating.as_mut().filter(|rotating| rotating.is_due()) {
                let manifest = self.recording.so_far(control, &self.base, false);
                if let Some(part) = rotating.go_over(manifest, &self.base) {
                    self.recording.contents.go_on(&part);
                }
            }
            match self.child.look() {
                Ok(Event::None) => {}
                Ok(Event::Stopped(signal)) => {
                    // Nothing may happen for long: what there is, is written before.
                    let Recording { drainer, host, .. } = &mut self.recording;
                    drainer.pass(host);
                    drainer.flush(reference().monotonic_ns, host);
                    self.child.stop_with_it(signal);
                }
                Ok(Event::Ended(exit)) => {
                    guard::end(exit);
                    let end = reference();
                    self.recording.host.add(end);
                    let Recording { drainer, host, .. } = &mut self.recording;
                    // Triggers compare the end with calls that are open, so it comes behind all of them.
                    drainer.discover();
                    drainer.pass(host);
                    let pid = self.child.pid().cast_unsigned();
                    drainer.watch().into_iter().for_each(|watch| watch.end(exit, pid, end.monotonic_ns));
                    return Some(exit);
                }
                Err(_) => {
                    self.child.outlast();
                    return None;
                }
            }
            // Full rings and the program's end wake us; otherwise look rarely, to leave the program alone.
            nap = if pass.fullest >= 25 { Duration::from_millis(1) } else { (nap * 2).min(NAP) };
            if nap == NAP {
                self.recording.measure(control);
            }
            control.wait(due.map_or(nap, |due| nap.min(due)));
        }
    }
}

impl Recording {
    /// That of programs that start now.
    fn new(
        drainer: Drainer,
        trace: &TraceFolder,
        looked: Looked,
        windows: Option<Windows>,
        started: ReferencePoint,
    ) -> Self {
        let contents = Contents::new(drainer.session(), trace.path(), trace.access());
        let host = HostClock::new(started, reference());
        Recording { drainer, host, contents, looked, measuring: Measuring::default(), windows }
    }

    /// Does what need not be done before the program starts.
    pub fn begin(&mut self, control: &Control, trace: &TraceFolder, manifest: &mut Manifest) {
        self.measure(control);
        // For whoever finishes the trace if this launcher is killed. If it can't be written, the one that is
        // there stays.
        manifest.cost = self.measuring.least();
        let _ = renew_manifest(trace, manifest);
    }

    /// Measures what recording takes. Programs that have a budget learn it, too.
    pub fn measure(&mut self, control: &Control) {
        if !self.measuring.again() {
            return;
        }
        let per_tick = self.host.segments().last().map_or(0.0, |s| s.ns_per_tick());
        if let Some(cost) = self.measuring.least().filter(|_| per_tick > 0.0) {
            control.set_call_ticks(cost.call_ns / per_tick);
        }
    }

    /// Takes what there is. `rings` is how many there were the last time. Returns what it found, and when the windows
    /// have something to do.
    pub fn look(&mut self, control: &Control, rings: &mut u32) -> (Pass, Option<Duration>) {
        control.hear();
        let made = control.reported().made.load(Ordering::Acquire);
        if made != *rings {
            *rings = made;
            self.drainer.discover();
            self.renew_budget(control);
        }
        let pass = self.drainer.pass(&self.host);
        (pass, self.windows.as_mut().map(|windows| windows.look(control.switch(), &self.host)))
    }

    /// Writes all that is in the rings by now, if somebody asked for a snapshot, so that the trace can be read.
    /// `last` is when it did so before.
    pub fn answer(&mut self, control: &Control, last: &mut Instant) {
        let page = control.page();
        let asked = control.snapshot_asked();
        // A program can ask all the time; each answer costs packets that are shorter.
        if asked == page.snapshot_done.load(Ordering::Relaxed) || last.elapsed() < NAP {
            return;
        }
        self.drainer.discover();
        self.drainer.pass(&self.host);
        self.drainer.flush(reference().monotonic_ns, &self.host);
        self.contents.move_some(&self.drainer);
        *last = Instant::now();
        page.snapshot_done.store(asked, Ordering::Release);
    }

    /// Takes and seals all that there is by now; `pressed`: also commands that others may have to be put before. Returns
    /// what is known of the run, whose `base` was known at its begin.
    pub(crate) fn so_far(&mut self, control: &Control, base: &Manifest, pressed: bool) -> Manifest {
        let now = reference();
        self.host.add(now);
        self.drainer.discover();
        self.drainer.pass(&self.host);
        match pressed {
            true => self.drainer.press(now.monotonic_ns, &self.host),
            false => self.drainer.flush(now.monotonic_ns, &self.host),
        }
        self.contents.move_some(&self.drainer);
        let mut manifest = base.clone();
        manifest.cost = self.measuring.least();
        complete(&mut manifest, &self.drainer, control, &self.host);
        manifest.notes.extend(base.notes.iter().cloned());
        manifest.notes.extend(self.drainer.unmodelled());
        manifest
    }

    /// What is done now and then.
    pub fn tick(&mut self, control: &Control) {
        let now = reference();
        self.looked.note(now.tsc);
        self.host.add(now);
        // Long runs: nothing older than this is converted any more.
        self.host.forget_before(now.tsc.saturating_sub(MEMORY));
        self.drainer.folder().weigh();
        self.drainer.flush(now.monotonic_ns, &self.host);
        self.drainer.discover();
        self.renew_budget(control);
        self.contents.move_some(&self.drainer);
        self.measure(control);
    }

    /// Lets programs take what there is for rings.
    pub fn renew_budget(&self, control: &Control) {
        control.renew_budget(self.drainer.session(), self.drainer.memory(), self.drainer.arenas());
    }

    /// Takes what is left. Returns how many processes live on.
    pub fn finish(&mut self) -> usize {
        let living = self.drainer.living();
        self.drainer.discover();
        self.drainer.pass(&self.host);
        self.drainer.finish(&self.host);
        living
    }

    /// Writes what is known by now into the manifest.
    pub fn complete(
        &mut self,
        manifest: &mut Manifest,
        control: &Control,
        trace: &TraceFolder,
        injected: Vec<String>,
    ) {
        manifest.cost = self.measuring.least();
        complete(manifest, &self.drainer, control, &self.host);
        manifest.notes.extend(injected);
        self.contents.move_all(&self.drainer);
        manifest.notes.extend(self.contents.notes(&self.drainer));
        manifest.notes.extend(trace.refused().iter().map(ToString::to_string));
        manifest.notes.extend(self.drainer.unmodelled());
        let models = trace.declarations().map(Declarations::models).unwrap_or_default();
        match account_of_files(trace.path(), &models) {
            Ok(files) => {
                manifest.written.account.iter_mut().for_each(|account| account.files.clone_from(&files));
            }
            // An account that lacks something would make it seem not to belong there.
            Err(_) => manifest.written.account = None,
        }
        if let Some(windows) = self.windows.take() {
            windows.finish(control.pages(), &self.host, manifest);
        }
    }
}

/// What is said of a run with stacks.
fn uncounted_stacks(capture: &Capture) -> Option<String> {
    let what = match (capture.py_stacks, capture.stack_depth > 0) {
        (true, false) => "Python stacks",
        (false, true) => "native stacks",
        (true, true) => "native and Python stacks",
        (false, false) => return None,
    };
    Some(format!(
        "reading {what}, about 1 µs for each call, is not in the tracing overhead, and not subtracted"
    ))
}

fn complete(manifest: &mut Manifest, drainer: &Drainer, control: &Control, host: &HostClock) {
    control.hear();
    manifest.session = None;
    manifest.end_ns = Some(clock::nanoseconds(libc::CLOCK_MONOTONIC));
    let mut unread = Vec::new();
    manifest.processes = read_back(drainer.processes(), &mut unread);
    unread.extend(job::inherit(&mut manifest.processes, &manifest.job));
    manifest.losses = drainer.losses();
    let without = &mut manifest.losses.calls_without_ring;
    *without = without.saturating_add(control.calls_without_arena());
    // Where some of a process's memory could not be read, it is one at least.
    let some = u64::from(!drainer.unread().is_empty());
    manifest.losses.processes = unopened(drainer, control).max(some);
    manifest.device_clocks = read_back(drainer.device_clocks(), &mut unread);
    let per_tick = host.segments().last().map_or(0.0, |s| s.ns_per_tick());
    manifest.host_clock = HostClockReport {
        error_ns: host.error_ns(),
        ticks_per_second: if per_tick > 0.0 { 1e9 / per_tick } else { 0.0 },
    };
    if let Some(cost) = &mut manifest.cost {
        cost.timing = drainer.timing(per_tick);
    }
    let (records, bytes) = drainer.written();
    let account = Account { streams: read_back(drainer.accounts(), &mut unread), ..Account::default() };
    manifest.written = Written { records: Some(records), bytes, account: Some(account) };
    manifest.notes = said(drainer, control, &manifest.losses);
    manifest.notes.extend(unread);
}

/// What programs left for the report, and what is to be said of what they share with us.
fn said(drainer: &Drainer, control: &Control, losses: &Losses) -> Vec<String> {
    let mut reported = drainer.reported();
    let others = control.notes();
    reported.take(others.texts);
    let lost = reported.notes_lost.saturating_add(others.lost.into());
    let mut notes = std::mem::take(&mut reported.notes);
    if lost > 0 {
        notes.push(format!("{lost} more notes did not fit"));
    }
    let mut versions: Vec<String> = refused(drainer.session())
        .into_iter()
        .map(|(api, version)| {
            format!(
                "a program loaded the {api} library of another build of hetrace (shared memory version {version}, not \
                 {}): its calls are not recorded",
                abi::ABI_VERSION
            )
        })
        .collect();
    notes.append(&mut versions);
    if let Some(version) = drainer.foreign() {
        notes.push(format!(
            "a program loaded an API library of another hetrace version (memory layout {version}): it is not recorded"
        ));
    }
    notes.extend(unreadable(drainer, control));
    notes.extend(control.overwritten());
    notes.extend(reported.damaged.iter().map(|pid| {
        format!(
            "process {pid} has overwritten the memory in which it says what was dropped of it: that may be more than \
             is counted"
        )
    }));
    notes.extend(without_ring(reported.failed, losses));
    notes
}

/// Calls whose threads got no memory to record into.
fn without_ring(failed: u64, losses: &Losses) -> Option<String> {
    let calls = losses.calls_without_ring;
    let what = match calls {
        0 => "calls may have been dropped".to_owned(),
        1 => "1 call was dropped".to_owned(),
        many => format!("{many} calls were dropped"),
    };
    (calls > 0 || failed > 0).then(|| {
        format!(
            "{what} because their threads got no ring buffer: there is too little shared memory, or \
             limits of the process leave none. Make room in /dev/shm (in a container: --shm-size), or use a smaller --buffer"
        )
    })
}

/// How many processes made memory to record into that could not be read.
fn unopened(drainer: &Drainer, control: &Control) -> u64 {
    control.arenas_made().saturating_sub(drainer.opened().into())
}

/// Shared memory of programs that could not be read.
fn unreadable(drainer: &Drainer, control: &Control) -> Vec<String> {
    let mut notes = Vec::new();
    let missing = unopened(drainer, control);
    let why = drainer.unread().join("; ");
    if missing > 0 {
        let whose = if missing == 1 { "1 process".to_owned() } else { format!("{missing} processes") };
        notes.push(format!("cannot read the shared memory of {whose}; the records there are lost: {why}"));
    } else if !why.is_empty() {
        notes.push(format!("cannot read some shared memory; the records there are lost: {why}"));
    }
    let pages = survive::missing_pages();
    if pages > 0 {
        notes.push(format!(
            "a program truncated memory that it shares with hetrace ({pages} pages); the records there are lost"
        ));
    }
    notes
}

/// Returns the program's file, as a shell would find it.
pub fn find_program(command: &[OsString]) -> Option<PathBuf> {
    let file = child::find(command.first()?)?;
    file.canonicalize().ok()
}
