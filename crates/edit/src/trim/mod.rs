//! A part of a trace: a window of time, some threads, some APIs.
//!
//! ```text
//!              from                 to
//! packets  |....[..|........|........|.]......|
//!           drop cut  copy     copy  cut drop
//! kept, too:  entries of calls that are open at `from`, commands that run at `from`,
//!             and definitions from before `to`; files of definitions whole
//! ```
//! Packets that are cut get new heads: times, sizes, number and loss counter. What the
//! trace lost in the window stays counted, what the trim leaves out is no loss. A trace of the operating system beside
//! the program's is cut to the same time ([`state`]).

mod calls;
mod kinds;
mod rewrite;
mod state;
mod stream;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use hetrace_ctf::account::{Account, StreamAccount};
use hetrace_ctf::read::{Files, PACKED, Trace};
use hetrace_format::Manifest;
use hetrace_format::files::{INSIDE, KERNEL, MANIFEST, PART, PROGRAM};
use hetrace_format::manifest::{Part, Written};

use crate::account;
use crate::output::Output;
use crate::parallel::in_parallel;
use crate::stream_file::StreamFile;
use crate::{Error, Form, Watch};
use kinds::{Kind, StreamKind, kinds, number};
use stream::{Cutter, Frame};

/// What to keep. An empty list means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From so many nanoseconds after the first event on.
    pub from: Option<u64>,
    /// Up to so many, without what is at that time.
    pub to: Option<u64>,
    /// These processes.
    pub pids: Vec<i64>,
    /// These threads.
    pub tids: Vec<i64>,
    /// These APIs.
    pub apis: Vec<String>,
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Packets copied.
    pub copied: u64,
    /// Packets written anew.
    pub rewritten: u64,
    /// Events from before the window that what is inside needs.
    pub before: u64,
    /// Whether any event is of what was chosen; definitions and telemetry are kept for any choice.
    pub matched: bool,
    /// Bytes of the streams.
    pub bytes: u64,
    /// Damage of the trace, a sentence each.
    pub problems: Vec<String>,
}

/// Makes a trace of a part of another, in a folder that must not exist.
///
/// # Errors
/// When there is no trace, something cannot be read or written, a stream is of a form in
/// which nothing can be cut, or `watch` says to stop; then there is no folder.
pub fn trim(
    path: &Path,
    folder: &Path,
    window: &Window,
    form: Form,
    watch: Watch<'_>,
) -> Result<Trimmed, Error> {
    let files = Files::open(path)?;
    // Which calls are open, names say alone: what is cut need not have models that can be read.
    let whole = hetrace_trace::trace::Trace::new(Trace::from_files(&files)?, Vec::new(), Manifest::default());
    let trace = whole.ctf();
    let (of_kernel, unreadable) = kernel_of(&files);
    // A program that recorded nothing has events of the operating system, perhaps.
    let first = first(trace).or_else(|| self::first(&of_kernel.as_ref()?.1));
    let (from, to) = limits(window, first);
    let queues = queues(trace, &kinds(trace.class()));
    let open = calls::open_at(&whole, first, from, watch)?;
    let open = open.into_iter().map(|(name, offsets)| (name.to_owned(), offsets)).collect();
    let output = Output::new(folder)?;
    output.folder()?;
    let frame = Frame { window, from, to, queues: &queues };
    let old = hetrace_format::manifest::read(&files).map_err(Error::io(path))?;
    let known = old.as_ref().and_then(|bytes| Manifest::parse(bytes).ok()).unwrap_or_default();
    // With events of the operating system it is a folder of two traces.
    let program = match of_kernel {
        Some(_) => output.scratch().join(PROGRAM),
        None => output.scratch().to_owned(),
    };
    let cutting = Cutting {
        frame: &frame,
        open,
        moved: state::Moved::new(),
        original: known.written.account,
        form,
        watch,
    };
    let (mut done, mut account) = cutting.trace(trace, &program)?;
    let lacks = account::lacks(&files, trace, cutting.original.as_ref());
    done.problems.splice(0..0, files.problems().iter().chain(&lacks).cloned());
    copy_files(&files, &program, &mut account)?;
    let to_kernel = output.scratch().join(KERNEL);
    let original = known.os.and_then(|os| os.account);
    done.problems.extend(unreadable);
    let kernel = match of_kernel {
        Some(of) => Some(kernel(&of, &to_kernel, (from, to), original, (form, watch), &mut done)?),
        None => None,
    };
    let part = part(trace, path, &frame);
    let manifest = Manifest::rewrite(old.as_deref(), |manifest| {
        describe(manifest, lacks);
        if !files.list(INSIDE).is_empty() {
            manifest.notes.push(format!("what went on inside of kernels: {}", account::LEFT_OUT));
        }
        manifest.trimmed.push(part);
        manifest.rotation = None;
        manifest.written = Written::of(account);
        describe_kernel(manifest, kernel);
    });
    put(&program, MANIFEST, &manifest.map_err(io::Error::other).map_err(Error::io(path))?)?;
    output.finish()?;
    Ok(done)
}

/// Opens the trace of the operating system beside a program's. One that can't be read is left out, and the second says why.
pub(crate) fn kernel_of(files: &Files) -> (Option<(&Files, Trace)>, Option<String>) {
    let Some(kernel) = files.kernel() else { return (None, None) };
    match Trace::from_files(kernel) {
        Ok(trace) => (Some((kernel, trace)), None),
        Err(error) => (None, Some(format!("{KERNEL}: left out: {error}"))),
    }
}

/// Cuts the trace of the operating system to the same time; which threads and APIs were chosen says nothing of it. What
/// was before stays as far as it says what each thread does when the window begins. Returns what is in it.
fn kernel(
    (files, trace): &(&Files, Trace),
    folder: &Path,
    (from, to): (i64, i64),
    original: Option<Account>,
    (form, watch): (Form, Watch<'_>),
    done: &mut Trimmed,
) -> Result<Account, Error> {
    let moved = if from == i64::MIN { state::Moved::new() } else { state::before(trace, from, watch)? };
    let frame = Frame { window: &Window::default(), from, to, queues: &HashMap::new() };
    let cutting = Cutting { frame: &frame, open: HashMap::new(), moved, original, form, watch };
    let (cut, mut account) = cutting.trace(trace, folder)?;
    let lacks = account::lacks(files, trace, cutting.original.as_ref());
    done.problems.extend(lacks.into_iter().map(|lack| format!("{KERNEL}: {lack}")));
    // Whether something is of what was chosen, the program's events say.
    let matched = done.matched;
    done.add(cut);
    done.matched = matched;
    copy_files(files, folder, &mut account)?;
    Ok(account)
}

/// Copies a trace of the operating system, of a series all parts as one. Returns what is in it.
pub(crate) fn whole(
    of: &(&Files, Trace),
    folder: &Path,
    original: Option<Account>,
    (form, watch): (Form, Watch<'_>),
) -> Result<(Trimmed, Account), Error> {
    let mut done = Trimmed::default();
    let account = kernel(of, folder, (i64::MIN, i64::MAX), original, (form, watch), &mut done)?;
    Ok((done, account))
}

/// How all streams of a trace are cut.
struct Cutting<'w> {
    frame: &'w Frame<'w>,
    /// Entries of calls that are open when the window begins, by stream.
    open: HashMap<String, BTreeSet<u64>>,
    /// Other times of events from before it, by stream.
    moved: state::Moved,
    /// What was in the streams.
    original: Option<Account>,
    form: Form,
    watch: Watch<'w>,
}

impl Cutting<'_> {
    /// Writes the streams into a folder, which it makes if need be.
    fn trace(&self, trace: &Trace, folder: &Path) -> Result<(Trimmed, Account), Error> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let kinds = kinds(trace.class());
        let cut = |index: usize| -> Result<(Trimmed, Option<StreamAccount>), Error> {
            let Some(stream) = trace.stream(index) else { return Ok((Trimmed::default(), None)) };
            let name = stream.name();
            let path = folder.join(name.strip_suffix(PACKED).unwrap_or(name));
            let cutter = Cutter {
                trace,
                kinds: &kinds,
                frame: self.frame,
                open: self.open.get(name).cloned().unwrap_or_default(),
                moved: self.moved.get(name).cloned().unwrap_or_default(),
                moved_until: None,
                out: StreamFile::new(&path, self.form),
                path,
                watch: self.watch,
                done: Trimmed::default(),
                definitions: None,
                written: false,
                last_seq: None,
                missing: 0,
                discarded: 0,
            };
            cutter.run(stream)
        };
        let by_name = |a: &StreamAccount| (a.name.clone(), a.clone());
        let originals: HashMap<_, _> =
            self.original.iter().flat_map(|a| a.streams.iter().map(by_name)).collect();
        let (mut done, mut account) = (Trimmed::default(), Account::default());
        for (part, stream) in in_parallel(trace.stream_count(), &cut)? {
            done.add(part);
            account.streams.extend(stream.map(|mut stream| {
                let original = originals.get(&stream.name);
                account::count_events(&mut stream, original);
                stream
            }));
        }
        Ok((done, account))
    }
}

/// Notes in the manifest what is in the trace of the operating system.
fn describe_kernel(manifest: &mut Manifest, account: Option<Account>) {
    let Some(account) = account else {
        manifest.os = None;
        return;
    };
    if let Some(os) = &mut manifest.os {
        os.events = account.streams.iter().filter_map(|stream| stream.events).sum();
        os.bytes = account.streams.iter().map(|stream| stream.stored).sum();
        os.account = Some(account);
    }
}

/// Returns the first and the last time to keep, in nanoseconds from the clocks' origin.
fn limits(window: &Window, first: Option<i64>) -> (i64, i64) {
    let after = |ns: Option<u64>, otherwise: i64| match (first, ns) {
        (Some(first), Some(ns)) => first.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX)),
        _ => otherwise,
    };
    (after(window.from, i64::MIN), after(window.to, i64::MAX))
}

/// Notes in the manifest that this is a part of a trace, and what the whole trace lacks.
fn describe(manifest: &mut Manifest, lacks: Vec<String>) {
    let note = "this is a part of a trace; the losses in the manifest are those of the whole trace";
    manifest.notes.push(note.into());
    manifest.notes.extend(lacks.into_iter().map(|lack| format!("missing in the whole trace: {lack}")));
}

/// Reads a file of the trace; `None` if there is none.
fn read(files: &Files, name: &str) -> Result<Option<Vec<u8>>, Error> {
    files.read(name).map_err(Error::io(&files.path().join(name)))
}

/// Copies the files beside the streams, except the manifest, and adds them to the account.
fn copy_files(files: &Files, folder: &Path, account: &mut Account) -> Result<(), Error> {
    let (all, _) = files.all().map_err(Error::io(files.path()))?;
    let beside = all.iter().filter(|name| name.starts_with("hetrace/"));
    let beside = beside.map(|name| name.strip_suffix(PACKED).unwrap_or(name));
    let beside = beside.filter(|name| ![MANIFEST, PART, hetrace_ctf::archive::List::NAME].contains(name));
    for name in std::iter::once("metadata").chain(beside) {
        let bytes = read(files, name)?.unwrap_or_default();
        account.files.push(account::file(name, &bytes));
        put(folder, name, &bytes)?;
    }
    Ok(())
}

/// Writes a file of the result.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = folder.join(name);
    let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
    parent.and_then(|()| fs::write(&path, bytes)).map_err(Error::io(&path))
}

/// Returns the time of the first event, in nanoseconds from the clocks' origin.
fn first(trace: &Trace) -> Option<i64> {
    let of = |mut stream: hetrace_ctf::read::StreamReader<'_>| loop {
        if let Ok(event) = stream.next_event()? {
            return event.ns_from_origin();
        }
    };
    trace.streams().filter_map(of).min()
}

/// Returns the API of each queue, from the files of definitions.
fn queues(trace: &Trace, kinds: &[StreamKind]) -> HashMap<i64, String> {
    let mut queues = HashMap::new();
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let Ok(event) = event else { continue };
            let class = event.stream_class();
            let position = trace.class().streams.iter().position(|s| std::ptr::eq(s, class));
            let kind = position.and_then(|p| kinds.get(p)?.events.get(event.class_index()));
            if !kind.is_some_and(|kind| kind.kind == Kind::Definition && kind.api == "device") {
                break;
            }
            let api = event.get("api").and_then(hetrace_ctf::Scalar::as_str);
            if let (Some(queue), Some(api)) = (number(&event, event.class().fields.index("queue")), api) {
                queues.insert(queue, api.to_owned());
            }
        }
    }
    queues
}

impl Trimmed {
    fn add(&mut self, other: Self) {
        self.copied += other.copied;
        self.rewritten += other.rewritten;
        self.before += other.before;
        self.matched |= other.matched;
        self.bytes += other.bytes;
        self.problems.extend(other.problems);
    }
}

/// Returns what is kept of the trace.
fn part(trace: &Trace, path: &Path, frame: &Frame<'_>) -> Part {
    // Times as the trace's clock has them.
    let offset = trace.class().clocks.first().and_then(|clock| clock.ns_from_origin(0)).unwrap_or(0);
    let time = |ns: i64| (ns != i64::MIN && ns != i64::MAX).then(|| ns.saturating_sub(offset));
    let name = path.canonicalize().ok().and_then(|p| p.file_name().map(|n| n.to_string_lossy().into_owned()));
    let window = frame.window;
    Part {
        of: name,
        from_ns: time(frame.from),
        to_ns: time(frame.to),
        pids: window.pids.clone(),
        tids: window.tids.clone(),
        apis: window.apis.clone(),
    }
}
