//! Commands timed by an event before and one after, on their own stream.
//!
//! [`hetrace_interpose::commands`] keeps them and says when to ask about them. A
//! stream in capture is left alone: what is put there becomes part of the
//! program's graph.

mod asking;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hetrace_interpose::commands::sample::{self, Choice, Counted};
use hetrace_interpose::commands::{self, Depth, Enqueued, Put, Store};
use hetrace_interpose::ring::abi::command_flag;
use hetrace_interpose::{ErrnoGuard, OwnWork, budget, pid};

use super::contexts::{self, Context};
use super::functions::Function;
use super::graphs::{self, Launching, Ready, Twin, Way};
use super::record::Note;
use super::streams::{self, Cache, State, Stream};
use super::{device_key, driver, functions, memory, quick};
use crate::generated::prelude::P;
use asking::Asking;

/// Indexes of "kernel" and "graph" in `COMMAND_KINDS`.
const KERNEL: u8 = 1;
pub const GRAPH: u8 = 15;

/// Commands in flight.
static COMMANDS: Store<Pair, Cache> = Store::new();
/// Commands that were put into captures instead of being run.
static CAPTURED: AtomicU64 = AtomicU64::new(0);

type Thread = commands::Thread<Pair, Cache>;

/// The events around a command.
#[derive(Debug, Clone, Copy)]
struct Pair {
    before: P,
    after: P,
    /// Where both belong.
    context: &'static Context,
    generation: u32,
    /// The twin of a graph that the events are in, and stay in.
    twin: Option<&'static Twin>,
}

// SAFETY: the driver's functions may be called with an event from any thread.
unsafe impl Send for Pair {}
// SAFETY: a shared reference gives handles only, which the driver takes from several threads at once.
unsafe impl Sync for Pair {}

/// What is known of a command before it is enqueued.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub time: u64,
    pub queue: P,
    pub kind: u8,
    /// The kernel; the executable of a graph.
    pub kernel: P,
    pub memory: [u8; 2],
    pub per_thread: bool,
}

/// A command with its first event in place.
struct Begun {
    stream: Stream,
    events: Pair,
}

/// Why a command is not timed.
enum Untimed {
    /// Too many are in flight.
    Full,
    /// The driver does not want to.
    Refused,
}

/// As [`around`], for a launch that is only counted, if that is known without looking anything up.
///
/// # Safety
/// `wanted` has the handles that `call` passes to the driver, the queue's and the kernel's: live ones or NULL.
#[inline(always)]
pub unsafe fn quickly<R: Copy>(
    wanted: &Wanted,
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> Result<R, (impl FnOnce() -> R, impl FnOnce(R) -> bool)> {
    if wanted.kind == KERNEL
        && quick::may(wanted.kernel)
        && is_free(wanted)
        && let Some(counted) = quick::count(wanted.kernel)
    {
        return Ok(counted.only_count(0, call, ok, || 0));
    }
    Err((call, ok))
}

/// A graph is launched outside of a capture window: what is not recorded of it has to wait for its twin nevertheless.
#[cold]
#[inline(never)]
pub fn unseen(wanted: &Wanted) {
    if graphs::is_known(wanted.kernel) && is_free(wanted) {
        let _errno = ErrnoGuard::new();
        graphs::unseen(wanted.kernel, streams::meant(wanted.queue, wanted.per_thread));
    }
}

/// Whether the stream of a command is not in capture.
#[inline(never)]
fn is_free(wanted: &Wanted) -> bool {
    let _errno = ErrnoGuard::new();
    streams::state(streams::meant(wanted.queue, wanted.per_thread)) == State::Free
}

/// Runs a call that enqueues a command, between two events. A function of its own, so that the code
/// of a launch that CUPTI times is short: the driver leaves little of ours in the processor's caches.
///
/// # Safety
/// `wanted` has the handles that `call` passes to the driver, the queue's and the kernel's: live ones or NULL.
#[cold]
#[inline(never)]
pub unsafe fn around<R: Copy + From<u32>>(
    wanted: Wanted,
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    addresses: impl Fn() -> [u64; 2],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    let errno = ErrnoGuard::new();
    let handle = streams::meant(wanted.queue, wanted.per_thread);
    // Not before it is known whether the command is timed: where most calls are only counted it reads the counter.
    let work = || OwnWork::begun(wanted.time);
    // To a forked child the driver is dead.
    let Some(thread) = super::is_owner(pid()).then(|| COMMANDS.thread()).flatten() else {
        return work().real(call).0;
    };
    super::look_at_session();
    match streams::state(handle) {
        State::Free => {}
        State::Captured => {
            CAPTURED.fetch_add(1, Ordering::Relaxed);
            return work().real(call).0;
        }
        // What fails in a question fails in the call, too.
        State::Failing => return work().real(call).0,
    }
    if wanted.kind != GRAPH {
        return command(&wanted, handle, &thread, errno, sizes, geometry, addresses, call, ok);
    }
    let stream = thread.local().find(handle);
    let context = stream.and_then(|stream| Some((stream.context()?, stream.generation)));
    let here = graphs::Here { stream: handle, context, now: wanted.time };
    let (launching, way) = match graphs::launching(wanted.kernel, &here) {
        Some((launching, way)) => (Some(launching), way),
        None => (None, Way::Whole),
    };
    let ok = |result| {
        let is_good = ok(result);
        if !is_good {
            launching.into_iter().for_each(Launching::failed);
        }
        is_good
    };
    match (way, launching, stream) {
        (Way::Twin(ready), Some(launching), Some(stream)) => {
            twin(&wanted, (launching, ready), (handle, stream), &thread, errno, call, ok)
        }
        (Way::Counted(asks), ..) => {
            if asks {
                harvest(&thread);
            }
            drop(errno);
            let result = call();
            ok(result);
            result
        }
        _ => command(&wanted, handle, &thread, errno, sizes, geometry, addresses, call, ok),
    }
}

/// Launches the twin of a graph in its place; the graph itself if the driver does not want that.
fn twin<R: Copy + From<u32>>(
    wanted: &Wanted,
    (launching, ready): (Launching, Ready),
    (handle, stream): (P, Stream),
    thread: &Thread,
    errno: ErrnoGuard,
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    let twin = ready.twin;
    let mut work = OwnWork::begun(wanted.time);
    drop(errno);
    let (error, returned) = work.real(|| twin.launch(handle));
    let errno = ErrnoGuard::new();
    if error != 0 {
        launching.refused(ready);
        work.failed();
        drop(errno);
        let result = call();
        ok(result);
        return result;
    }
    // SAFETY: the stream that the program launches in, and an event of its context, which lives.
    if unsafe { driver::cuEventRecord(twin.end(), handle) } != 0 {
        // When it has ended is not known, so nobody may use it again: one user more than there are never leaves.
        twin.join();
        launching.refused(ready);
        return R::from(0);
    }
    let mut is_due = false;
    launching.each(ready, |graph, node, does, [before, after]| {
        twin.join();
        let Twin { context, generation, .. } = *twin;
        let events = Pair { before, after, context, generation, twin: Some(twin) };
        let command = Enqueued {
            cause_tid: thread.tid(),
            cause: wanted.time,
            returned,
            queue: stream.key,
            device: device_key(context.device()),
            function: does.function,
            memory: does.memory,
            bytes: does.bytes,
            shared: does.shared,
            weight: ready.weight,
            flags: command_flag::SAMPLED,
            in_order: true,
            graph,
            node,
            ..Enqueued::of(does.kind).launched(does.geometry)
        };
        match thread.put(events, command) {
            Put::Kept => {}
            Put::Due => is_due = true,
            Put::Full => {
                give_back(&events);
                COMMANDS.lose_for_room();
            }
        }
    });
    if is_due {
        work.collecting(|| harvest(thread));
    }
    R::from(0)
}

/// Runs a call that enqueues a command of which the stream is not in capture.
#[allow(clippy::too_many_arguments)]
fn command<R: Copy>(
    wanted: &Wanted,
    handle: P,
    thread: &Thread,
    errno: ErrnoGuard,
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    addresses: impl Fn() -> [u64; 2],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    let is_launch = wanted.kind == KERNEL;
    let function = if is_launch && !wanted.kernel.is_null() { functions::of(wanted.kernel) } else { None };
    let counted = counted(wanted, function, &addresses);
    let sizes = sizes();
    let bytes = if is_launch { 0 } else { sizes.0 as u64 };
    let choice = counted.map_or(Choice::All, |(id, counted)| counted.choose(id, is_launch, bytes));
    if let Some((id, counted)) = counted
        && choice == Choice::Counted
    {
        if is_launch && budget::is_limited() && budget::sampled_every() <= 1 {
            quick::remember(wanted.kernel, counted, counted.next_timed(id, budget::step_one_in()));
        }
        drop(errno);
        return counted.only_count(bytes, call, ok, || 0);
    }
    let mut work = OwnWork::begun(wanted.time);
    let begun = begin(thread, handle, &mut work);
    // What the driver leaves in `errno` during the call is the program's.
    drop(errno);
    let (result, returned) = work.real(call);
    let _errno = ErrnoGuard::new();
    let ok = ok(result);
    // Its end comes first: all that follows takes time.
    let begun = finish(begun, handle, ok);
    if let Some((_, counted)) = counted {
        match (ok, &begun) {
            (false, _) => counted.failed(choice, bytes),
            (true, Ok(_)) => {}
            (true, Err(_)) => counted.untimed(choice),
        }
    }
    let begun = match begun {
        Ok(begun) => begun,
        Err(untimed) => {
            lose(untimed, ok);
            return result;
        }
    };
    let command = Enqueued {
        cause_tid: thread.tid(),
        returned,
        function: counted.map_or(function.map_or(0, |f| f.id), |(id, _)| id),
        weight: choice.weight(),
        flags: choice.flags(),
        ..described(wanted, &begun, sizes, geometry(), addresses())
    };
    keep(thread, begun.events, command, &mut work);
    result
}

/// A command, if it was enqueued, will have no times.
#[cold]
fn lose(why: Untimed, enqueued: bool) {
    match why {
        Untimed::Full if enqueued => COMMANDS.lose_for_room(),
        _ => COMMANDS.lose(u64::from(enqueued)),
    }
}

/// What counts a command where not all are timed: the id of its function, or of its kind.
#[inline]
fn counted(
    wanted: &Wanted,
    function: Option<&'static Function>,
    addresses: &impl Fn() -> [u64; 2],
) -> Option<(u64, &'static Counted)> {
    if !sample::is_on() {
        return None;
    }
    match function {
        Some(function) => Some((function.id, &function.counted)),
        None => sample::of_kind(wanted.kind, memory::refine(wanted.memory, addresses())),
    }
}

/// Puts the second event behind a command that was enqueued; returns the events if both are in place.
#[inline]
fn finish(begun: Result<Begun, Untimed>, handle: P, ok: bool) -> Result<Begun, Untimed> {
    let begun = begun?;
    if ok && mark_end(&begun, handle) {
        return Ok(begun);
    }
    give_back(&begun.events);
    Err(Untimed::Refused)
}

/// A command as its call's parameters describe it; the rest of it is empty.
#[inline]
fn described(
    wanted: &Wanted,
    begun: &Begun,
    (bytes, shared): (usize, usize),
    geometry: [usize; 6],
    addresses: [u64; 2],
) -> Enqueued {
    Enqueued {
        memory: memory::refine(wanted.memory, addresses),
        cause: wanted.time,
        queue: begun.stream.key,
        device: device_key(begun.events.context.device()),
        bytes: bytes as u64,
        shared: shared as u32,
        in_order: true,
        ..Enqueued::of(wanted.kind).launched(geometry)
    }
}

/// Keeps a command until its events are complete.
#[inline]
fn keep(thread: &Thread, events: Pair, command: Enqueued, work: &mut OwnWork) {
    match thread.put(events, command) {
        Put::Kept => {}
        Put::Due => work.collecting(|| harvest(thread)),
        Put::Full => {
            give_back(&events);
            COMMANDS.lose_for_room();
        }
    }
}

/// Puts the first event into the stream.
#[inline]
fn begin(thread: &Thread, handle: P, work: &mut OwnWork) -> Result<Begun, Untimed> {
    let stream = thread.local().find(handle).ok_or(Untimed::Refused)?;
    let context = stream.context().filter(|c| c.lives()).ok_or(Untimed::Refused)?;
    if !thread.has_room() {
        work.collecting(|| harvest(thread));
        if !thread.has_room() {
            return Err(Untimed::Full);
        }
    }
    // SAFETY: the stream that the program is using lives, and so does its context.
    unsafe {
        let (before, after) = (context.pool.take(context.handle()), context.pool.take(context.handle()));
        let events = Pair { before, after, context, generation: stream.generation, twin: None };
        if before.is_null() || after.is_null() || driver::cuEventRecord(before, handle) != 0 {
            give_back(&events);
            // What was remembered of the stream may be wrong.
            contexts::EPOCH.fetch_add(1, Ordering::Relaxed);
            return Err(Untimed::Refused);
        }
        Ok(Begun { stream, events })
    }
}

fn give_back(events: &Pair) {
    if let Some(twin) = events.twin {
        return twin.leave();
    }
    for event in [events.before, events.after].into_iter().filter(|e| !e.is_null()) {
        // SAFETY: events of this context that nothing refers to; one that is
        // still in flight is simply recorded anew.
        unsafe { events.context.pool.give(event) };
    }
}

/// Puts the second event into the stream. Returns whether that worked.
#[inline]
fn mark_end(begun: &Begun, handle: P) -> bool {
    // SAFETY: `begin` took the event from the pool of the stream's context; both live, as the program's call
    // that uses the stream has not returned to it.
    let error = unsafe { driver::cuEventRecord(begun.events.after, handle) };
    if driver::stays(error) {
        begun.events.context.broke(error, true);
    }
    error == 0
}

/// Looks for commands of this thread that have ended.
#[cold]
fn harvest(thread: &Thread) {
    COMMANDS.harvest(thread, &mut Asking::new());
    report_counts(false);
}

/// Reports how many commands there were, if it is time, or the `last` one.
fn report_counts(last: bool) {
    graphs::count_all();
    sample::report_counts(last, functions::all());
}

/// The program has waited for a device: collect what is finished.
pub fn synchronized() {
    let _errno = ErrnoGuard::new();
    if COMMANDS.any() {
        COMMANDS.collect(Depth::All, &mut Asking::new());
    }
    report_counts(false);
}

/// A context or a stream is about to end, or the process.
pub fn last_look() {
    let _errno = ErrnoGuard::new();
    COMMANDS.collect(Depth::Last, &mut Asking::new());
    report_counts(true);
    static SAID: AtomicBool = AtomicBool::new(false);
    let captured = CAPTURED.load(Ordering::Relaxed);
    if captured > 0 && !SAID.swap(true, Ordering::Relaxed) {
        Note::new()
            .text(b"device times: captured commands are timed as part of their graph, not individually")
            .leave();
    }
}
