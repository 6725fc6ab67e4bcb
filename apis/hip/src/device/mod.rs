//! How commands on devices are timed: by AMD's collector where it is there ([`profiler`]), else by an event before and one
//! after, in their own stream.
//!
//! [`hetrace_interpose::commands`] keeps them and says when to ask. A stream in capture is left alone: what is put
//! there becomes part of the program's graph, and a graph is timed as a whole. HIP keeps the last error of each thread
//! for the program: what our own calls leave there is taken away again ([`Quiet`]).

use std::ffi::c_void;

use hetrace_interpose::commands::named::{self, Function};
use hetrace_interpose::commands::sample::{self, Choice, Counted};
use hetrace_interpose::commands::{
    self, Backend, Depth, Enqueued, Note, Once, Progress, Put, Store, Times, Timing,
};
use hetrace_interpose::{ErrnoGuard, OwnWork, early};

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

pub mod devices;
pub mod kernels;
mod maker;
pub mod profiler;
pub mod streams;

use streams::{State, Stream};

/// Index of "kernel" in `COMMAND_KINDS`.
const KERNEL: u8 = 1;
const SUCCESS: u32 = 0;
const NOT_READY: i32 = 600;
/// `hipStreamCaptureModeRelaxed`.
const RELAXED: u32 = 2;
/// First and last of the errors that streams in capture give.
const CAPTURE_ERRORS: std::ops::RangeInclusive<i32> = 900..=910;

/// Commands in flight.
static STORE: Store<Token> = Store::new();
type Thread = commands::Thread<Token>;

/// By what a command is timed.
#[derive(Debug, Clone, Copy)]
pub enum Token {
    /// The id under which the collector knows it.
    Collected(u64),
    Events(Pair),
}

/// The events around a command, and where they are at home.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    before: P,
    after: P,
    device: u32,
    generation: u32,
}

// SAFETY: HIP's functions may be called with an event from any thread.
unsafe impl Send for Pair {}
// SAFETY: a shared reference gives handles only, which HIP takes from several threads at once.
unsafe impl Sync for Pair {}

/// Why a command has no times.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum Why {
    Captured,
    Copies,
    Refused,
    Maker,
}

const REASONS: [(Why, &[u8]); 4] = [
    (Why::Captured, b"captured commands are timed as part of their graph, not individually"),
    (Why::Copies, b"several copies of HIP's library are in use, and their commands have none"),
    (Why::Refused, b"commands around which HIP takes no events have none"),
    (Why::Maker, b"HIP's library is not AMD's (libamdhip64), so its commands have none"),
];

/// A reason is said once.
#[cold]
fn say(why: Why) {
    static SAID: Once = Once::new();
    if SAID.is_first(why as u32)
        && let Some((_, text)) = REASONS.get(why as usize)
    {
        Note::new().text(b"device times: ").text(text).leave();
    }
}

static TIMING: Timing = Timing::new();

/// Whether commands of this process are timed.
pub fn timing() -> bool {
    TIMING.is_on() && maker::is_amd()
}

/// As long as this lives, calls of ours are nobody else's business: `errno` and the thread's last error stay, and a
/// capture somewhere in the process does not forbid them.
struct Quiet {
    error: u32,
    mode: Option<u32>,
    _errno: ErrnoGuard,
}

impl Quiet {
    fn new() -> Quiet {
        let _errno = ErrnoGuard::new();
        // SAFETY: no preconditions.
        let error = unsafe { real::hipPeekAtLastError() };
        let mut mode = RELAXED;
        // SAFETY: a place that is read and written.
        let relaxed = unsafe { real::hipThreadExchangeStreamCaptureMode(&raw mut mode) } == SUCCESS;
        Quiet { error, mode: relaxed.then_some(mode), _errno }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: a local that is read and written: what `new` got in exchange. The others have no preconditions.
        unsafe {
            if let Some(mut mode) = self.mode {
                real::hipThreadExchangeStreamCaptureMode(&raw mut mode);
            }
            if real::hipPeekAtLastError() != self.error {
                real::hipGetLastError();
            }
        }
    }
}

/// What is known of a command before it is enqueued.
struct Wanted {
    time: u64,
    queue: P,
    kind: u8,
    kernel: *const c_void,
    memory: [u8; 2],
    per_thread: bool,
}

/// Runs a call that enqueues a command, and sees to it that its times become known. The arguments are in the order of
/// the generated calls.
///
/// # Safety
/// `queue` and `kernel` are what `call` passes to the API, or NULL.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn command<R: Copy>(
    time: u64,
    queue: P,
    kind: u8,
    kernel: *const c_void,
    memory: [u8; 2],
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
    per_thread: bool,
) -> R {
    if time == 0 || !timing() {
        return call();
    }
    around(&Wanted { time, queue, kind, kernel, memory, per_thread }, sizes, geometry, call, ok)
}

fn around<R: Copy>(
    wanted: &Wanted,
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    if early::unusual() {
        return untimed(Why::Copies, call, ok);
    }
    let work = OwnWork::begun(wanted.time);
    let Some(thread) = STORE.thread() else { return call() };
    let quiet = Quiet::new();
    STORE.at_exit(at_exit);
    profiler::say();
    let handle = streams::meant(wanted.queue, wanted.per_thread);
    match streams::state(handle) {
        State::Free => {}
        State::Captured => {
            say(Why::Captured);
            drop(quiet);
            return call();
        }
        State::Unknown => {
            drop(quiet);
            return untimed(Why::Refused, call, ok);
        }
    }
    between(wanted, &thread, quiet, handle, work, (sizes, geometry), call, ok)
}

/// What counts a command where not all are timed, and whether this one is.
#[derive(Clone, Copy)]
struct Chosen {
    function: Option<&'static Function>,
    counted: Option<(u64, &'static Counted)>,
    choice: Choice,
}

impl Chosen {
    fn new(wanted: &Wanted, bytes: u64) -> Chosen {
        let function = kernels::of(wanted.kernel);
        let counted = if sample::is_on() { counted(wanted, function) } else { None };
        let choice =
            counted.map_or(Choice::All, |(id, counted)| counted.choose(id, wanted.kind == KERNEL, bytes));
        Chosen { function, counted, choice }
    }

    /// The command that was enqueued.
    fn command(&self, described: Enqueued, stream: &Stream, thread: &Thread, returned: u64) -> Enqueued {
        Enqueued {
            cause_tid: thread.tid(),
            returned,
            queue: stream.key,
            device: devices::key(stream.device),
            function: self.counted.map_or(0, |(id, _)| id),
            name: match (self.function, self.counted) {
                (Some(function), None) => function.name(),
                _ => std::ptr::null(),
            },
            weight: self.choice.weight(),
            flags: self.choice.flags(),
            ..described
        }
    }
}

/// The stream runs what it is given.
#[allow(clippy::too_many_arguments)]
fn between<R: Copy>(
    wanted: &Wanted,
    thread: &Thread,
    quiet: Quiet,
    handle: P,
    mut work: OwnWork,
    (sizes, geometry): (impl FnOnce() -> (usize, usize), impl FnOnce() -> [usize; 6]),
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    let sizes = sizes();
    let bytes = if wanted.kind == KERNEL { 0 } else { sizes.0 as u64 };
    let chosen = Chosen::new(wanted, bytes);
    if let Some((_, counted)) = chosen.counted
        && chosen.choice == Choice::Counted
    {
        drop(quiet);
        return counted.only_count(bytes, call, ok, || 0);
    }
    let begun = begin(thread, handle, &mut work);
    drop(quiet);
    let (result, returned) = work.real(call);
    if !ok(result) {
        // The error is the program's: nothing of HIP's is called here.
        if let Some((_, counted)) = chosen.counted {
            counted.failed(chosen.choice, bytes);
        }
        if let Ok((_, token)) = begun {
            match token {
                Token::Collected(id) => profiler::end(id, false),
                Token::Events(pair) => give_back(pair),
            }
        }
        work.failed();
        return result;
    }
    let _quiet = Quiet::new();
    match begun.and_then(|(stream, token)| end(stream, token)) {
        Ok((stream, token)) => {
            let described = described(wanted, sizes, geometry());
            keep(thread, token, chosen.command(described, &stream, thread, returned), &mut work);
        }
        Err(why) => {
            if let Some((_, counted)) = chosen.counted {
                counted.untimed(chosen.choice);
            }
            lose(why);
        }
    }
    result
}

/// Runs a call whose command will have no times.
#[cold]
fn untimed<R: Copy>(why: Why, call: impl FnOnce() -> R, ok: impl FnOnce(R) -> bool) -> R {
    let result = call();
    if ok(result) {
        lose(Some(why));
    }
    result
}

/// A command that was enqueued has no times.
#[cold]
fn lose(why: Option<Why>) {
    match why {
        Some(why) => {
            STORE.lose(1);
            say(why);
        }
        None => STORE.lose_for_room(),
    }
}

/// Puts the first event into the stream, or gives the command an id. No reason: there is no room for another command.
fn begin(thread: &Thread, handle: P, work: &mut OwnWork) -> Result<(Stream, Token), Option<Why>> {
    if !thread.has_room() {
        work.collecting(|| harvest(thread));
    }
    if !thread.has_room() {
        return Err(None);
    }
    let stream = streams::find(handle).ok_or(Some(Why::Refused))?;
    let device = devices::enter(stream.device, None).ok_or(Some(Why::Refused))?;
    device.see();
    stream.see();
    if profiler::is_on() {
        return profiler::begin(stream.key).map(|id| (stream, Token::Collected(id))).ok_or(None);
    }
    let (before, after) = (device.event(), device.event());
    let pair = Pair { before, after, device: stream.device, generation: device.generation() };
    if before.is_null() || after.is_null() || !device.mark(before, handle) {
        device.give([before, after]);
        return Err(Some(Why::Refused));
    }
    Ok((stream, Token::Events(pair)))
}

/// Puts the second event behind the command.
fn end(stream: Stream, token: Token) -> Result<(Stream, Token), Option<Why>> {
    let pair = match token {
        Token::Collected(id) => {
            profiler::end(id, true);
            return Ok((stream, token));
        }
        Token::Events(pair) => pair,
    };
    let device = devices::enter(pair.device, Some(pair.generation)).ok_or(Some(Why::Refused))?;
    if device.mark(pair.after, stream.handle) {
        return Ok((stream, token));
    }
    device.give([pair.before, pair.after]);
    Err(Some(Why::Refused))
}

fn give_back(pair: Pair) {
    // Of a device that was reset, the events are gone.
    if let Some(device) = devices::enter(pair.device, Some(pair.generation)) {
        device.give([pair.before, pair.after]);
    }
}

/// A command is in flight.
fn keep(thread: &Thread, token: Token, command: Enqueued, work: &mut OwnWork) {
    match thread.put(token, command) {
        Put::Kept => {}
        Put::Due => work.collecting(|| {
            harvest(thread);
            sample::report_counts(false, named::all());
        }),
        Put::Full => {
            Asking { last: false }.release(token);
            STORE.lose_for_room();
        }
    }
}

/// What of a thread's commands has ended is recorded.
fn harvest(thread: &Thread) {
    profiler::flush(false);
    STORE.harvest(thread, &mut Asking { last: false });
}

/// What counts a command where not all are timed: the id of its function, or of its kind.
fn counted(wanted: &Wanted, function: Option<&'static Function>) -> Option<(u64, &'static Counted)> {
    function.map_or_else(|| sample::of_kind(wanted.kind, wanted.memory), |function| Some(function.counted()))
}

/// A command as its call's parameters describe it; the rest of it is empty.
fn described(wanted: &Wanted, (bytes, shared): (usize, usize), geometry: [usize; 6]) -> Enqueued {
    Enqueued {
        memory: wanted.memory,
        cause: wanted.time,
        bytes: bytes as u64,
        shared: shared as u32,
        in_order: true,
        ..Enqueued::of(wanted.kind).launched(geometry)
    }
}

struct Asking {
    /// Nobody asks again.
    last: bool,
}

impl Backend for Asking {
    type Token = Token;

    fn poll(&mut self, token: Token, command: &Enqueued) -> Progress {
        match token {
            Token::Collected(id) => profiler::progress(id, command.kind == KERNEL, command.bytes, self.last),
            Token::Events(pair) => by_events(pair),
        }
    }

    fn release(&mut self, token: Token) {
        match token {
            Token::Collected(id) => profiler::release(id),
            Token::Events(pair) => give_back(pair),
        }
    }
}

/// What is known of a command between two events.
fn by_events(pair: Pair) -> Progress {
    let Some(device) = devices::enter(pair.device, Some(pair.generation)) else { return Progress::Gone };
    if early::unusual() {
        // Whose event it is can't be said any more.
        return Progress::Gone;
    }
    match device.query(pair.after) {
        0 => {}
        NOT_READY => return Progress::Waits,
        error if CAPTURE_ERRORS.contains(&error) => return Progress::Waits,
        _ => return Progress::Gone,
    }
    let Some(times) = device.times([pair.before, pair.after]) else {
        device.see();
        return Progress::Waits;
    };
    let (start, end) = times.unwrap_or((0, 0));
    Progress::Ended(Times { start, end, error: times.err().unwrap_or(0), ..Times::default() })
}

/// The program has waited for a device: what has ended is recorded.
pub fn synchronized() {
    if !timing() || !STORE.any() {
        return;
    }
    // SAFETY: no preconditions.
    if unsafe { real::hipPeekAtLastError() } != SUCCESS {
        // The error is the program's, which has not asked for it yet.
        return;
    }
    let _quiet = Quiet::new();
    if let Some(device) = devices::current().and_then(|ordinal| devices::enter(ordinal, None)) {
        device.see();
    }
    profiler::flush(false);
    STORE.collect(Depth::All, &mut Asking { last: false });
    sample::report_counts(false, named::all());
}

/// A device is about to be reset: what has ended there is recorded before.
pub fn resets() {
    if timing() {
        let _quiet = Quiet::new();
        profiler::flush(false);
        STORE.collect(Depth::All, &mut Asking { last: false });
        if let Some(ordinal) = devices::current() {
            devices::reset(ordinal);
        }
    }
}

/// What is complete when the program ends is recorded; nothing is waited for.
extern "C" fn at_exit() {
    if timing() {
        let _quiet = Quiet::new();
        profiler::flush(true);
        STORE.collect(Depth::Last, &mut Asking { last: true });
        sample::report_counts(true, named::all());
    }
}

/// The program was given a stream.
pub fn stream_made(stream: P) {
    if timing() {
        let _quiet = Quiet::new();
        streams::made(stream);
    }
}

/// A place for a handle that a call has filled in.
///
/// # Safety
/// NULL, or filled in if the call succeeded.
pub unsafe fn filled(error: u32, place: *const P) -> P {
    // SAFETY: by the contract.
    if error != SUCCESS || place.is_null() { null_mut() } else { unsafe { *place } }
}
