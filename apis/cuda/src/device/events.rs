//! Commands timed by an event before and one after, on their own stream.
//!
//! Nothing is ever waited for. Events are asked when the program has
//! synchronized, and now and then while it enqueues. A stream in capture is left
//! alone: what is put there becomes part of the program's graph.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{CommandRecord, PendingRecord, command_flag, special};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{ErrnoGuard, OwnWork, count_commands, thread_id};

use super::clock;
use super::contexts::{self, Context};
use super::pending::{self, Block, Enqueued, Left, Pending, Progress};
use super::record::{Note, send};
use super::streams::{self, State, Stream};
use super::{device_key, driver, functions, memory, sampled};
use crate::generated::prelude::P;

/// Index of "kernel" in `COMMAND_KINDS`.
const KERNEL: u8 = 1;
/// A thread looks for finished commands whenever it has so many more.
const LOOK: u64 = 32;

/// Commands whose times could not be learned.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Commands that were put into captures instead of being run.
static CAPTURED: AtomicU64 = AtomicU64::new(0);

/// What is known of a command before it is enqueued.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub time: u64,
    pub queue: P,
    pub kind: u8,
    pub kernel: P,
    pub memory: [u8; 2],
    pub per_thread: bool,
}

/// A command with its first event in place.
struct Begun {
    block: &'static Block,
    stream: Stream,
    context: &'static Context,
    before: P,
    after: P,
}

/// Runs a call that enqueues a command, between two events. A function of its own, so that the code
/// of a launch that CUPTI times is short: the driver leaves little of ours in the processor's caches.
#[cold]
#[inline(never)]
pub unsafe fn around<R: Copy>(
    wanted: Wanted,
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    addresses: impl FnOnce() -> [u64; 2],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    let errno = ErrnoGuard::new();
    let handle = streams::meant(wanted.queue, wanted.per_thread);
    let mut work = OwnWork::since(wanted.time);
    let Some(block) = pending::own() else { return work.real(call).0 };
    match streams::state(handle) {
        State::Free => {}
        State::Captured => {
            CAPTURED.fetch_add(1, Ordering::Relaxed);
            return work.real(call).0;
        }
        // What fails in a question fails in the call, too.
        State::Failing => return work.real(call).0,
    }
    let function = if wanted.kernel.is_null() { None } else { functions::of(wanted.kernel) };
    let weight = function.filter(|_| wanted.kind == KERNEL).and_then(sampled::count);
    if weight == Some(0) {
        drop(errno);
        let (result, _) = work.real(call);
        if let Some(function) = function.filter(|_| !ok(result)) {
            sampled::uncount(function);
        }
        return result;
    }
    let begun = begin(block, handle, &mut work);
    // What the driver leaves in `errno` during the call is the program's.
    drop(errno);
    let (result, returned) = work.real(call);
    let _errno = ErrnoGuard::new();
    let ok = ok(result);
    // Its end comes first: all that follows takes time.
    let begun = match begun {
        Some(begun) if ok && mark_end(&begun, handle) => Some(begun),
        Some(begun) => {
            give_back(&begun);
            None
        }
        None => None,
    };
    if let Some(function) = function.filter(|_| weight.is_some()) {
        if !ok {
            sampled::uncount(function);
        } else if begun.is_some() {
            function.timed.fetch_add(1, Ordering::Relaxed);
        }
    }
    let Some(begun) = begun else {
        LOST.fetch_add(u64::from(ok), Ordering::Relaxed);
        return result;
    };
    let (bytes, shared) = sizes();
    let command = Enqueued {
        kind: wanted.kind,
        memory: memory::refine(wanted.memory, addresses()),
        flags: if weight.is_some() { command_flag::SAMPLED } else { 0 },
        cause_tid: thread_id(),
        cause: wanted.time,
        returned,
        queue: begun.stream.key,
        function: function.map_or(0, |f| f.id),
        bytes: bytes as u64,
        geometry: geometry().map(|n| n as u32),
        shared: shared as u32,
        weight: weight.unwrap_or(0),
    };
    remember(&begun, command, &mut work);
    result
}

/// Puts the first event into the stream. `None` if the command can't be timed.
#[inline]
fn begin(block: &'static Block, handle: P, work: &mut OwnWork) -> Option<Begun> {
    // SAFETY: this thread's own block, and no other reference to this part of it.
    let stream = unsafe { &mut *block.streams.get() }.find(handle)?;
    let context = stream.context().filter(|c| c.lives())?;
    if !block.has_room() {
        work.collecting(|| collect(Some(block), false));
        if !block.has_room() {
            return None;
        }
    }
    // SAFETY: the stream that the program is using lives, and so does its context.
    unsafe {
        let (before, after) = (context.pool.take(context.handle()), context.pool.take(context.handle()));
        let begun = Begun { block, stream, context, before, after };
        if before.is_null() || after.is_null() || driver::cuEventRecord(before, handle) != 0 {
            give_back(&begun);
            // What was remembered of the stream may be wrong.
            contexts::EPOCH.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(begun)
    }
}

fn give_back(begun: &Begun) {
    for event in [begun.before, begun.after].into_iter().filter(|e| !e.is_null()) {
        // SAFETY: events of this context that nothing refers to; one that is
        // still under way is simply recorded anew.
        unsafe { begun.context.pool.give(event) };
    }
}

/// Puts the second event into the stream. Answers whether that worked.
#[inline]
fn mark_end(begun: &Begun, handle: P) -> bool {
    // SAFETY: as in `begin`.
    let error = unsafe { driver::cuEventRecord(begun.after, handle) };
    if driver::stays(error) {
        begun.context.broke(error, true);
    }
    error == 0
}

/// Keeps a command until its events are complete.
#[inline]
fn remember(begun: &Begun, command: Enqueued, work: &mut OwnWork) {
    let pending = Pending {
        before: begun.before,
        after: begun.after,
        context: begun.context,
        generation: begun.stream.generation,
        command,
    };
    count_commands(1, 0);
    match begun.block.push(pending) {
        Some(under_way) if under_way % LOOK == 0 => work.collecting(|| collect(Some(begun.block), false)),
        Some(_) => {}
        None => {
            give_back(begun);
            lose(1);
        }
    }
}

/// Commands that were counted as enqueued, and of which nothing will be told.
fn lose(commands: u64) {
    LOST.fetch_add(commands, Ordering::Relaxed);
    count_commands(0, commands);
}

/// What a collector has made ready: the context it looks at is current.
struct Collector {
    context: Option<(&'static Context, u32)>,
    pushed: Option<driver::Pushed>,
    collected: u64,
}

impl Collector {
    /// Makes the context of a command current. `None` if that can't be done.
    fn turn_to(&mut self, context: &'static Context, generation: u32) -> Option<()> {
        if self.context.is_some_and(|(c, g)| std::ptr::eq(c, context) && g == generation) {
            return Some(());
        }
        self.context = None;
        // The one before is taken off first: they lie on a stack.
        self.pushed = None;
        self.pushed = Some(driver::Pushed::new(context.handle())?);
        self.context = Some((context, generation));
        if context.clock.is_due() {
            // SAFETY: it lives, for the caller is using it, and is current.
            unsafe { context.clock.renew(context) };
        }
        Some(())
    }

    /// Tells of a command if it is complete, and gives its events back.
    fn finished(&mut self, pending: &Pending) -> Progress {
        let Some(_in_use) = pending.context.enter(pending.generation) else {
            lose(1); // It ended before anybody asked.
            return Progress::Collected;
        };
        if self.turn_to(pending.context, pending.generation).is_none() {
            return Progress::QueueWaits;
        }
        // SAFETY: events of a context that lives and is current, recorded once
        // each and not given back yet.
        let times = unsafe {
            match driver::cuEventQuery(pending.after) {
                0 => match pending.context.clock.times(pending.before, pending.after) {
                    Some(times) => times,
                    None => {
                        pending.context.clock.renew(pending.context);
                        return Progress::QueueWaits;
                    }
                },
                driver::NOT_READY | driver::NOT_PERMITTED => return Progress::QueueWaits,
                error if driver::CAPTURE_ERRORS.contains(&error) => return Progress::QueueWaits,
                error => {
                    // Else it ended through a door that we do not see: no news to the program.
                    pending.context.broke(error, driver::stays(error));
                    lose(1);
                    return Progress::Collected;
                }
            }
        };
        if !send(special::COMMAND, &record(pending, times), c"") {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        count_commands(0, 1);
        self.collected += 1;
        // SAFETY: both are complete, and this was the last that knew them.
        unsafe {
            pending.context.pool.give(pending.before);
            pending.context.pool.give(pending.after);
        }
        Progress::Collected
    }
}

fn record(pending: &Pending, times: Result<(u64, u64), i32>) -> CommandRecord {
    let known = &pending.command;
    let [x, y, z, a, b, c] = known.geometry.map(u64::from);
    let has_geometry = known.geometry.iter().any(|n| *n != 0);
    let (start, end) = times.unwrap_or((0, 0));
    let [from, to] = known.memory;
    // A context that joined another's clock did so by a bracket: when its calls were
    // made says nothing about the device's clock, and the launcher is not told.
    let vouches = clock::leads(pending.context);
    CommandRecord {
        cause_tid: known.cause_tid,
        kind: known.kind,
        dimensions: if has_geometry { 3 } else { 0 },
        from,
        to,
        cause: known.cause,
        returned: if vouches { known.returned } else { 0 },
        observed: if vouches { ticks() } else { 0 },
        queue: known.queue,
        device: device_key(pending.context.device()),
        function: known.function,
        bytes: known.bytes,
        start,
        end,
        times_error: times.err().unwrap_or(0),
        geometry: [[0; 3], [x * a, y * b, z * c], [a, b, c]],
        flags: known.flags,
        shared: known.shared,
        weight: known.weight.into(),
        ..CommandRecord::default()
    }
}

/// Collects what is complete, of one thread or of all. Records since when the
/// oldest command is under way, if that is known of all.
fn collect(only: Option<&Block>, last: bool) {
    let mut collector = Collector { context: None, pushed: None, collected: 0 };
    let relaxed = driver::Relaxed::new();
    let left = pending::collect(only, |pending| collector.finished(pending));
    let collected = collector.collected;
    drop(collector);
    drop(relaxed);
    if collected > 0 || last || LOST.load(Ordering::Relaxed) > 0 {
        // Other threads may have older ones: only a look at all of them tells.
        tell_pending(if only.is_none() { left } else { Left { oldest: 1 } });
    }
    sampled::tell(last);
}

fn tell_pending(left: Left) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    send(special::PENDING, &PendingRecord { lost, oldest: left.oldest }, c"");
}

/// The program has waited for a device: collect what is finished.
pub fn synchronized() {
    let _errno = ErrnoGuard::new();
    if pending::any() {
        collect(None, false);
    } else {
        sampled::tell(false);
    }
}

/// A context or a stream is about to end, or the process.
pub fn last_look() {
    let _errno = ErrnoGuard::new();
    collect(None, true);
    static SAID: AtomicBool = AtomicBool::new(false);
    let captured = CAPTURED.load(Ordering::Relaxed);
    if captured > 0 && !SAID.swap(true, Ordering::Relaxed) {
        Note::new()
            .text(b"device times: work that streams captured is told as part of its graph, not by itself")
            .leave();
    }
}
