//! Running a program under trace.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use hetrace_ctf::account::Account;
use hetrace_ctf::class::EnvValue;
use hetrace_ctf::write;
use hetrace_ring::abi::{self, BLOB_PREFIX};
use hetrace_ring::{clock, survive};

use crate::apis::{self, Found, Library, LibraryError};
use crate::control::Control;
use crate::cost;
use crate::drain::Drainer;
use crate::folder::Folder;
use crate::inject::{self, Way};
use crate::job;
use crate::manifest::{Exit, HostClockReport, Interposition, Manifest, Written, account_of_files};
use crate::output::TraceFolder;
use crate::schema;
use crate::select::Selection;
use crate::settings::{self, DeviceTimes};
use crate::telemetry::{self, Telemetry};
use crate::time::{HostClock, ReferencePoint};

/// What to run and how.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Folder of the trace; must not exist.
    pub output: PathBuf,
    /// What is recorded.
    pub selection: Selection,
    /// Where times of commands come from, if [`Selection::devices`].
    pub device_times: DeviceTimes,
    /// How the API is reached.
    pub way: Way,
    /// A full ring makes the program wait.
    pub block: bool,
    /// Data bytes of a ring; rounded up to a power of two.
    pub ring_bytes: u32,
    /// Bits of [`hetrace_ring::abi::option`] for what is stored besides.
    pub capture: u32,
    /// Kernels (as globs) and numbers of their launches whose buffers are
    /// stored, with `option::BUFFERS`; the first eight count.
    pub buffers: Vec<(String, RangeInclusive<u64>)>,
    /// Most bytes stored of one buffer.
    pub buffer_cap: u64,
    /// Packets are compressed.
    pub compress: bool,
    /// What devices say of themselves is sampled.
    pub sample: Option<telemetry::Options>,
    /// Options as the user gave them, for the manifest.
    pub shown: Vec<String>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// What goes into the manifest.
    pub manifest: Manifest,
    /// What the user should know: the program could not be traced, say.
    pub remarks: Vec<String>,
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
    #[error("no shared memory for the session: {0} (is /dev/shm writable and not full?)")]
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
    /// The program can't be waited for.
    #[error("waiting for the program: {0}")]
    Wait(io::Error),
}

/// How often the clocks are compared, and packets written.
const TICK: Duration = Duration::from_millis(250);
/// How far back times can be converted, in ticks: a quarter of an hour and more.
const MEMORY: u64 = 1 << 42;
/// Longest sleep between two looks at the rings.
const NAP: Duration = Duration::from_millis(25);

/// Runs a program, records it, and writes the trace.
///
/// # Errors
/// When the program could not be started or nothing could be written. An end
/// of the program by a signal or with a status is no error.
pub fn run(options: &RunOptions, libraries: Vec<Found>) -> Result<Outcome, RunError> {
    let started = reference();
    // A program may cut short what it shares with us.
    survive::install();
    // What no program can use here would only make the start longer.
    let (absent, present): (Vec<Found>, Vec<Found>) =
        libraries.into_iter().partition(|l| options.way == Way::Auto && inject::is_absent(l));
    let libraries = apis::load(present)?;
    let output = |error| RunError::Output { path: options.output.clone(), error };
    let folder = Folder::make().map_err(RunError::Session)?;
    let libraries: Vec<&Library> = libraries.iter().collect();
    let apis: Vec<(String, Vec<u8>)> =
        libraries.iter().map(|l| (l.model.api.clone(), settings::flags(options, &l.model))).collect();
    let names: Vec<String> = apis.iter().map(|(n, _)| n.clone()).collect();
    let control =
        Control::make(folder.path(), &settings::settings(options, apis)).map_err(RunError::Session)?;
    settings::choose_buffers(control.page(), options);

    fs::create_dir(&options.output).map_err(output)?;
    let uuid = *uuid::Uuid::new_v4().as_bytes();
    let trace = TraceFolder::new(options.output.clone(), uuid, options.compress);
    let mut manifest = Manifest {
        schema: 2,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        host: host_name(),
        job: job::own(),
        start_ns: started.monotonic_ns,
        start_realtime_ns: started.realtime_ns,
        options: options.shown.clone(),
        cost: cost::measure(),
        ..Manifest::default()
    };
    let program = find_program(&options.command);
    let injection = inject::plan(&libraries, folder.path(), options.way, program.as_deref());
    manifest.interposition = injection.ways.clone();
    let left_out = |l: &Found| Interposition { api: l.api.clone(), way: "absent".to_owned() };
    manifest.interposition.extend(absent.iter().map(left_out));
    let told = injection.notes.clone();
    let mut remarks = Vec::new();
    if let Some(what) = program.as_deref().and_then(inject::obstacle) {
        let name = options.command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        remarks.push(format!("{name} runs untraced: {what}"));
    }
    // Counters of devices are read before the program can change them.
    let mut telemetry = options.sample.as_ref().map(|o| Telemetry::open(o, &trace));
    manifest.telemetry = telemetry.as_ref().map(Telemetry::report);
    let mut child = start(&options.command, injection).inspect_err(|_| {
        // Nothing ran, so nothing is left behind.
        let _ = fs::remove_dir_all(&options.output);
    })?;
    telemetry.iter_mut().for_each(Telemetry::start);
    // While the program loads: what its records will mean.
    write_metadata(&options.output, uuid, started, &manifest, &libraries).map_err(output)?;

    let mut drainer = Drainer::new(folder.path(), trace, names);
    let mut host = HostClock::new(started, reference());
    let move_some = |drainer: &Drainer| move_contents(folder.path(), &options.output, drainer, PORTION);
    let status = drain_until_end(&mut child, &control, &mut drainer, &mut host, &move_some)?;
    let sampled = telemetry.map(Telemetry::finish);
    let living = drainer.living();
    drainer.discover();
    drainer.pass(&host);
    drainer.finish(&host);

    manifest.exit = Some(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(0),
    });
    complete(&mut manifest, &drainer, &control, &host);
    manifest.notes.extend(told);
    if let Some(sampled) = sampled {
        sampled.complete(&mut manifest);
    }
    move_contents(folder.path(), &options.output, &drainer, u64::MAX).map_err(output)?;
    manifest.notes.extend(missing_contents(&options.output, &drainer));
    match account_of_files(&options.output) {
        Ok(files) => manifest.written.account.iter_mut().for_each(|account| account.files.clone_from(&files)),
        // An account that lacks something would make it seem not to belong there.
        Err(_) => manifest.written.account = None,
    }
    write_manifest(&options.output, &manifest).map_err(output)?;
    Ok(Outcome { manifest, remarks, living })
}

/// The three clocks at one moment: the best of a few readings.
fn reference() -> ReferencePoint {
    let read = || {
        let before = clock::ticks();
        let monotonic_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let after = clock::ticks();
        let realtime_ns = clock::nanoseconds(libc::CLOCK_REALTIME);
        let width = after.wrapping_sub(before);
        // Ticks are at most a nanosecond or so; as a doubt that is near enough.
        let uncertainty_ns = u32::try_from(width / 2).unwrap_or(u32::MAX);
        ReferencePoint { tsc: before.wrapping_add(width / 2), monotonic_ns, realtime_ns, uncertainty_ns }
    };
    let first = read();
    (0..4)
        .map(|_| read())
        .fold(first, |best, p| if p.uncertainty_ns < best.uncertainty_ns { p } else { best })
}

fn start(command: &[OsString], injection: inject::Injection) -> Result<Child, RunError> {
    let (program, arguments) = command.split_first().ok_or_else(|| RunError::Start {
        program: String::new(),
        error: io::ErrorKind::InvalidInput.into(),
    })?;
    let mut command = Command::new(program);
    command.args(arguments).envs(injection.variables);
    // Caught signals are the default's again in the program, ignored ones stay ignored.
    forward_signals();
    let start_error = |error| RunError::Start { program: program.to_string_lossy().into_owned(), error };
    let child = command.spawn().map_err(start_error)?;
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    // The drainer works little but must not be late. Only root may ask for
    // this; without it a busy machine loses records a little sooner.
    let _ = rustix::process::setpriority_process(None, -10);
    Ok(child)
}

/// Signals that are the program's business. A terminal sends its own to the
/// whole group, so these two are merely survived.
const FORWARDED: &[libc::c_int] =
    &[libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGINT, libc::SIGQUIT];
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 && signal != libc::SIGINT && signal != libc::SIGQUIT {
        // SAFETY: async-signal-safe; the child is ours and not yet buried.
        unsafe { libc::kill(child, signal) };
    }
}

fn forward_signals() {
    for signal in FORWARDED {
        // SAFETY: a handler that only does what a handler may.
        unsafe {
            if libc::signal(*signal, forward as *const () as libc::sighandler_t) == libc::SIG_IGN {
                // Ignored for us (nohup): it stays ignored for the program.
                libc::signal(*signal, libc::SIG_IGN);
            }
        }
    }
}

fn drain_until_end(
    child: &mut Child,
    control: &Control,
    drainer: &mut Drainer,
    host: &mut HostClock,
    move_some: &dyn Fn(&Drainer) -> io::Result<()>,
) -> Result<std::process::ExitStatus, RunError> {
    let mut rings = 0;
    let mut ticked = Instant::now();
    let mut nap = Duration::from_millis(1);
    loop {
        let made = control.page().rings_made.load(Ordering::Acquire);
        if made != rings {
            rings = made;
            drainer.discover();
        }
        let pass = drainer.pass(host);
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            let now = reference();
            host.add(now);
            // Long runs: nothing older than this is converted any more.
            host.forget_before(now.tsc.saturating_sub(MEMORY));
            drainer.flush(now.monotonic_ns, host);
            drainer.discover();
            control.renew_budget(drainer.session(), drainer.memory());
            // What can't be moved now is tried again, and told at the end.
            let _ = move_some(drainer);
        }
        if let Some(status) = child.try_wait().map_err(RunError::Wait)? {
            host.add(reference());
            return Ok(status);
        }
        // Full rings wake us; otherwise look rarely, to leave the program alone.
        nap = if pass.fullest >= 25 { Duration::from_millis(1) } else { (nap * 2).min(NAP) };
        control.wait(nap);
    }
}

fn complete(manifest: &mut Manifest, drainer: &Drainer, control: &Control, host: &HostClock) {
    let page = control.page();
    manifest.end_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
    manifest.processes = drainer.processes();
    let unread = job::inherit(&mut manifest.processes, &manifest.job);
    manifest.losses = drainer.losses();
    manifest.losses.calls_without_ring = page.calls_without_ring.load(Ordering::Relaxed);
    manifest.device_clocks = drainer.devices().flat_map(|d| d.reports()).collect();
    let per_tick = host.segments().last().map_or(0.0, |s| s.ns_per_tick());
    manifest.host_clock = HostClockReport {
        error_ns: host.error_ns(),
        ticks_per_second: if per_tick > 0.0 { 1e9 / per_tick } else { 0.0 },
    };
    if let Some(cost) = &mut manifest.cost {
        // The program has ended: the time is ours.
        cost.at_most(cost::measure());
        cost.timing = drainer.timing(per_tick);
    }
    let (records, bytes) = drainer.written();
    let account = Account { streams: drainer.accounts().to_vec(), ..Account::default() };
    manifest.written = Written { records, bytes, account: Some(account) };
    manifest.notes = control.notes();
    manifest.notes.extend(unread);
    let lost = page.notes_lost.load(Ordering::Relaxed);
    if lost > 0 {
        manifest.notes.push(format!("{lost} more notes found no room"));
    }
    if let Some(version) = drainer.foreign() {
        manifest.notes.push(format!(
            "a program has loaded an API library of another version (its memory layout is {version}): it is not recorded"
        ));
    }
    manifest.notes.extend(unreadable(drainer, page));
    let failed = page.rings_failed.load(Ordering::Relaxed);
    if failed > 0 {
        manifest.notes.push(format!("{failed} threads could get no ring (is the memory file system full?)"));
    }
}

/// Shared memory of programs that could not be read.
fn unreadable(drainer: &Drainer, page: &abi::Control) -> Vec<String> {
    let mut notes = Vec::new();
    let made = page.arenas_made.load(Ordering::Relaxed);
    let missing = made.saturating_sub(drainer.opened());
    let why = drainer.unread().join("; ");
    if missing > 0 {
        notes.push(format!("shared memory of {missing} processes could not be read, so what they recorded is lost: {why}"));
    } else if !why.is_empty() {
        notes.push(format!("some shared memory could not be read, so what was recorded there is lost: {why}"));
    }
    let pages = survive::missing_pages();
    if pages > 0 {
        notes.push(format!(
            "a program cut short memory that it shares with hetrace ({pages} pages): what was recorded there is lost"
        ));
    }
    notes
}

fn write_metadata(
    folder: &Path,
    uuid: [u8; 16],
    started: ReferencePoint,
    manifest: &Manifest,
    libraries: &[&Library],
) -> io::Result<()> {
    let offset =
        i64::try_from(i128::from(started.realtime_ns) - i128::from(started.monotonic_ns)).unwrap_or(0);
    let clock = write::form::clock_class(boot_id().unwrap_or([0; 16]), offset);
    let text = |v: &str| EnvValue::Str(v.to_owned());
    // The fields by which tools know an LTTng user-space trace; the tracer is
    // named as what it is.
    let env = vec![
        ("domain".to_owned(), text("ust")),
        ("tracer_name".to_owned(), text("hetrace")),
        ("tracer_major".to_owned(), EnvValue::Int(version_part(0))),
        ("tracer_minor".to_owned(), EnvValue::Int(version_part(1))),
        ("hostname".to_owned(), text(&manifest.host)),
        ("procname".to_owned(), text(manifest.command.first().map_or("", |c| c))),
    ];
    let models: Vec<_> = libraries.iter().map(|l| &l.model).collect();
    let mut class = schema::trace(uuid, clock, env, &models);
    class.streams.extend(manifest.telemetry.is_some().then(telemetry::schema::stream));
    fs::write(folder.join("metadata"), hetrace_ctf::tsdl::print(&class))?;
    let own = folder.join("hetrace");
    fs::create_dir_all(own.join("model"))?;
    for library in libraries {
        let path = own.join("model").join(format!("{}.json", library.model.api));
        fs::write(path, &library.model_json)?;
    }
    // A first manifest, in case this launcher is killed.
    write_manifest(folder, manifest)
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = serde_json::to_string_pretty(manifest).map_err(io::Error::other)?;
    let path = folder.join("hetrace/manifest.json");
    let fresh = folder.join("hetrace/manifest.json.new");
    fs::write(&fresh, text + "\n")?;
    fs::rename(fresh, path)
}

/// Bytes of stored contents that are moved at a time.
const PORTION: u64 = 256 << 20;

/// Moves what programs stored from the session's folder, which is memory, into
/// the trace: a content is complete when it is as long as the program says.
fn move_contents(session: &Path, trace: &Path, drainer: &Drainer, most: u64) -> io::Result<()> {
    let blobs = trace.join("hetrace/blobs");
    let mut moved = 0;
    for entry in fs::read_dir(session)?.flatten() {
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|n| n.strip_prefix(BLOB_PREFIX)) else { continue };
        let said = u64::from_str_radix(name, 16)
            .ok()
            .and_then(|hash| drainer.devices().find_map(|d| d.contents().get(&hash).copied()));
        let size = entry.metadata()?.len();
        // At the end, what a killed program has stored and not told is kept too.
        if said.is_some_and(|said| said == size) || most == u64::MAX {
            fs::create_dir_all(&blobs)?;
            // The same content may have come before, and this one be cut short.
            if fs::metadata(blobs.join(name)).map_or(0, |m| m.len()) < size || size == 0 {
                let part = blobs.join(format!("{name}.part"));
                fs::copy(entry.path(), &part)?;
                fs::rename(part, blobs.join(name))?;
            }
            fs::remove_file(entry.path())?;
            moved += size;
            if moved >= most {
                break;
            }
        }
    }
    Ok(())
}

/// What programs could not store: their memory file system was full, say.
fn missing_contents(trace: &Path, drainer: &Drainer) -> Option<String> {
    let blobs = trace.join("hetrace/blobs");
    let there = |hash: &u64, size: u64| {
        fs::metadata(blobs.join(format!("{hash:016x}"))).is_ok_and(|m| m.len() == size)
    };
    let missing = drainer.devices().flat_map(|d| d.contents()).filter(|(h, s)| !there(h, **s)).count();
    (missing > 0).then(|| {
        format!("{missing} stored contents are missing or incomplete (was the memory file system full?)")
    })
}

fn version_part(index: usize) -> i64 {
    env!("CARGO_PKG_VERSION").split('.').nth(index).and_then(|p| p.parse().ok()).unwrap_or(0)
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's identity of this boot: LTTng names its clock by it, too.
fn boot_id() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(*uuid::Uuid::parse_str(text.trim()).ok()?.as_bytes())
}

/// The program's file, as a shell would find it.
fn find_program(command: &[OsString]) -> Option<PathBuf> {
    let name = Path::new(command.first()?);
    if name.components().count() > 1 {
        return name.canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|f| f.join(name)).find(|p| p.is_file())
}
