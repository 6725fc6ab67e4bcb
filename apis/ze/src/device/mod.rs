//! How commands on devices are timed: by events with kernel timestamps.
//!
//! A command that is appended has the program's event if that has times, and one of ours if the program has none
//! ([`choose`]). In an immediate list it is in flight then. In a regular list it is recorded, and in flight each time
//! that the list is executed ([`executions`]). [`hetrace_interpose::commands`] keeps what is in flight and says when to
//! ask.
//!
//! * [`events`]: whose times an event has; * [`lists`]: what is appended where; * [`clock`]: what ticks mean;
//! * [`waits`]: what has ended for certain; * [`copies`]: times of lists that are executed again before they were read.

use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_interpose::commands::named::{self, Function};
use hetrace_interpose::commands::sample::{self, Choice, Counted};
use hetrace_interpose::commands::{
    self, Backend, Depth, Enqueued, Note, Once, Progress, Put, Store, Times, Timing,
};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{ErrnoGuard, OwnWork, in_window};

use crate::generated::prelude::P;
use crate::generated::real;

pub mod clock;
mod copies;
pub mod events;
mod executions;
pub mod kernels;
pub mod lists;
pub mod queues;
pub mod waits;

use events::{Answer, Slot, Theirs};
pub use executions::execute;
use lists::List;

const QUERY_TRUE: u32 = 0x7800_0022;

/// Groups of a launch, in three dimensions.
pub type Geometry = Option<[u64; 3]>;
/// Of a command that has none.
pub const NO_GEOMETRY: Geometry = None;

/// Returns the groups of a launch; how large they are only the kernel knows.
pub fn geometry(sizes: [usize; 6]) -> Geometry {
    let [x, y, z, ..] = sizes.map(|size| size as u64);
    Some([x, y, z])
}

/// Commands in flight.
static STORE: Store<Token> = Store::new();
type Thread = commands::Thread<Token>;

/// By what a command is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// The number of the event's slot.
    slot: u32,
    /// Of a command in flight, the number of the event's use; of one that is recorded, the number by which it is the
    /// last one of its list that the event was given to.
    generation: u32,
    /// The host's clock when it was enqueued, in nanoseconds.
    enqueued: u64,
}

/// Why a command has no times.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub enum Why {
    /// Its event has none, and the list no order by which another could stand before it.
    Plain,
    Unknown,
    Muddled,
    Spoiled,
    Before,
    Wrapped,
    Refused,
    Captured,
    Uncopied,
    Copies,
}

/// What is said of each, once.
const REASONS: [(Why, &[u8]); 10] = [
    (Why::Plain, b"commands that signal shared or counter-based events without timestamps in lists that are not in order"),
    (Why::Unknown, b"commands that signal events of which nothing is known"),
    (Why::Muddled, b"commands whose event or list was used again before its last use was known to have ended"),
    (Why::Spoiled, b"commands of lists that were cloned or changed"),
    (Why::Before, b"commands of lists that were recorded outside of what is traced (each counts as one)"),
    (Why::Wrapped, b"commands of which nobody asked before the device's counter began anew"),
    (Why::Refused, b"commands for which the driver gives no event with timestamps"),
    (Why::Captured, b"commands that are captured into graphs"),
    (Why::Uncopied, b"commands of lists that were executed again before their times were read, in queues where the driver copies none"),
    (Why::Copies, b"commands of lists that were executed again while their times of 64 executions were not read"),
];

/// Commands without times are counted, and the reason is said once.
#[cold]
fn lose(why: Why, commands: u64) {
    STORE.lose(commands);
    say(why);
}

#[cold]
fn say(why: Why) {
    static SAID: Once = Once::new();
    if SAID.is_first(why as u32)
        && let Some((_, reason)) = REASONS.get(why as usize)
    {
        Note::new().text(b"device times: ").text(reason).text(b" have none").leave();
    }
}

static TIMING: Timing = Timing::new();

/// Whether commands of this process are timed.
pub fn timing() -> bool {
    TIMING.is_on()
}

/// Lists that commands are captured from, in this process.
static CAPTURES: AtomicU32 = AtomicU32::new(0);

/// The program begins or ends a capture.
pub fn captures(begins: bool) {
    let change = |n: u32| Some(if begins { n.saturating_add(1) } else { n.saturating_sub(1) });
    let _ = CAPTURES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
}

/// Whether what is appended to a list becomes part of a graph. An event spreads a capture to other lists.
fn is_captured(list: P) -> bool {
    // SAFETY: the handle that the program appends to.
    CAPTURES.load(Ordering::Relaxed) > 0
        && unsafe { real::zeCommandListIsGraphCaptureEnabledExt(list) } == QUERY_TRUE
}

/// An event for a command.
#[derive(Clone, Copy)]
struct Use {
    number: u32,
    slot: &'static Slot,
    generation: u32,
    /// The program's own event has no times: a barrier behind the command signals it.
    behind: bool,
}

/// What is known of a command before it is enqueued.
struct Wanted {
    time: u64,
    handle: P,
    list: &'static List,
    kind: u8,
    kernel: P,
    event: P,
    groups: Geometry,
}

/// Runs a call that appends a command to a list, and sees to it that its times become known.
///
/// # Safety
/// `list`, `kernel` and `event` are those that `call` passes to the API: live handles or NULL. `call` makes the call
/// with the event that it gets instead of `event`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn enqueue(
    time: u64,
    list: P,
    kind: u8,
    kernel: P,
    bytes: impl FnOnce() -> usize,
    groups: Geometry,
    event: P,
    call: impl Fn(P) -> u32,
    succeeded: impl Fn(u32) -> bool,
) -> u32 {
    if !timing() {
        return call(event);
    }
    let Some(known) = lists::of(list) else {
        // A regular one, or more than we can keep.
        say(Why::Before);
        return call(event);
    };
    let wanted = Wanted { time, handle: list, list: known, kind, kernel, event, groups };
    if time == 0 || !in_window() || is_captured(list) {
        return left_alone(&wanted, call, succeeded);
    }
    if known.is_immediate() {
        enqueue_now(&wanted, bytes, call, succeeded)
    } else {
        append(&wanted, bytes, call, succeeded)
    }
}

/// Outside of a capture window, and in the capture of a graph.
#[cold]
fn left_alone(wanted: &Wanted, call: impl Fn(P) -> u32, succeeded: impl Fn(u32) -> bool) -> u32 {
    if wanted.time != 0 && in_window() {
        say(Why::Captured);
    }
    let result = call(wanted.event);
    if succeeded(result) && !wanted.list.is_immediate() {
        wanted.list.append_untimed();
    }
    result
}

/// An immediate list executes it.
fn enqueue_now(
    wanted: &Wanted,
    bytes: impl FnOnce() -> usize,
    call: impl Fn(P) -> u32,
    succeeded: impl Fn(u32) -> bool,
) -> u32 {
    let mut work = OwnWork::begun(wanted.time);
    let Some(thread) = STORE.thread() else { return call(wanted.event) };
    let errno = ErrnoGuard::new();
    queues::used(wanted.handle, wanted.list.context_handle(), wanted.list.device_handle());
    let function = kernels::of(wanted.kernel);
    let counted = if sample::is_on() { counted(wanted.kind, function) } else { None };
    let bytes = bytes() as u64;
    let choice =
        counted.map_or(Choice::All, |(id, counted)| counted.choose(id, !wanted.kernel.is_null(), bytes));
    if let Some((_, counted)) = counted
        && choice == Choice::Counted
    {
        drop(errno);
        return counted.only_count(bytes, || call(wanted.event), succeeded, || 0);
    }
    let chosen = match has_room(&thread, &mut work) {
        true => choose(wanted).map_err(Some),
        false => Err(None),
    };
    drop(errno);
    let (result, returned) = run(&mut work, wanted, &chosen, &call, &succeeded);
    let _errno = ErrnoGuard::new();
    if !succeeded(result) {
        if let Some((_, counted)) = counted {
            counted.failed(choice, bytes);
        }
        return without(work, wanted, &chosen, result, &call, &succeeded);
    }
    match chosen {
        Ok(using) => {
            using.slot.used(wanted.handle, ticks());
            let command = Enqueued {
                cause_tid: thread.tid(),
                cause: wanted.time,
                returned,
                queue: wanted.handle as u64,
                weight: choice.weight(),
                flags: choice.flags(),
                in_order: wanted.list.is_in_order(),
                ..described(wanted, function, counted.map(|(id, _)| id), bytes)
            };
            keep(&thread, using, command, &mut work);
        }
        Err(why) => {
            if let Some((_, counted)) = counted {
                counted.untimed(choice);
            }
            if let Theirs::Timed(_, slot) = events::theirs(wanted.event) {
                slot.used(wanted.handle, ticks());
            }
            why.map_or_else(|| STORE.lose_for_room(), |why| lose(why, 1));
        }
    }
    result
}

/// Whether one more command may be in flight; perhaps there is room when those that have ended are gone.
fn has_room(thread: &Thread, work: &mut OwnWork) -> bool {
    if !thread.has_room() {
        work.collecting(|| STORE.harvest(thread, &mut Asking));
    }
    thread.has_room()
}

/// A command is in flight.
fn keep(thread: &Thread, using: Use, command: Enqueued, work: &mut OwnWork) {
    let token = Token { slot: using.number, generation: using.generation, enqueued: clock::now() };
    match thread.put(token, command) {
        Put::Kept => {}
        Put::Due => work.collecting(|| {
            STORE.harvest(thread, &mut Asking);
            sample::report_counts(false, named::all());
        }),
        Put::Full => {
            STORE.lose_for_room();
            events::let_go(using.number);
        }
    }
}

/// A regular list keeps it.
fn append(
    wanted: &Wanted,
    bytes: impl FnOnce() -> usize,
    call: impl Fn(P) -> u32,
    succeeded: impl Fn(u32) -> bool,
) -> u32 {
    let errno = ErrnoGuard::new();
    let mut work = OwnWork::begun(wanted.time);
    let chosen = choose(wanted).map_err(Some);
    let bytes = bytes() as u64;
    drop(errno);
    let (result, _) = run(&mut work, wanted, &chosen, &call, &succeeded);
    let _errno = ErrnoGuard::new();
    if !succeeded(result) {
        return without(work, wanted, &chosen, result, &call, &succeeded);
    }
    let kept = chosen.is_ok_and(|using| {
        let token = Token { slot: using.number, generation: using.generation, enqueued: 0 };
        let command = described(wanted, kernels::of(wanted.kernel), None, bytes);
        let kept = wanted.list.recorded(|recording| recording.append(&STORE, token, command));
        if kept != Some(true) {
            events::let_go(using.number);
        }
        kept == Some(true)
    });
    if !kept {
        wanted.list.append_untimed();
        if let Err(Some(why)) = chosen {
            say(why);
        }
    }
    result
}

/// Makes the call with the event that was chosen; returns its result and when it returned.
fn run(
    work: &mut OwnWork,
    wanted: &Wanted,
    chosen: &Result<Use, Option<Why>>,
    call: &impl Fn(P) -> u32,
    succeeded: &impl Fn(u32) -> bool,
) -> (u32, u64) {
    work.real(|| {
        let Ok(using) = chosen else { return call(wanted.event) };
        let result = call(using.slot.event());
        if !using.behind || !succeeded(result) {
            return result;
        }
        // In an in-order list it comes after the command, without waiting for anything else.
        // SAFETY: the program's live list and event, and no list of events to wait for.
        unsafe { real::zeCommandListAppendBarrier(wanted.handle, wanted.event, 0, std::ptr::null_mut()) }
    })
}

/// The call failed. If that was with an event of ours, it is made as the program made it: the result is the program's.
#[cold]
fn without(
    work: OwnWork,
    wanted: &Wanted,
    chosen: &Result<Use, Option<Why>>,
    result: u32,
    call: &impl Fn(P) -> u32,
    succeeded: &impl Fn(u32) -> bool,
) -> u32 {
    work.failed();
    let Ok(using) = chosen else { return result };
    if wanted.list.is_immediate() {
        using.slot.not_used();
    }
    let ours = using.slot.is_ours();
    events::let_go(using.number);
    if !ours {
        return result;
    }
    let result = call(wanted.event);
    if succeeded(result) {
        if wanted.list.is_immediate() {
            lose(Why::Refused, 1);
        } else {
            wanted.list.append_untimed();
            say(Why::Refused);
        }
    }
    result
}

/// Returns the event by which a command is timed. It is held.
fn choose(wanted: &Wanted) -> Result<Use, Why> {
    let immediate = wanted.list.is_immediate();
    let behind = match wanted.event.is_null() {
        true => false,
        false => match events::theirs(wanted.event) {
            Theirs::Timed(number, slot) => {
                // In a regular list the use begins when that is executed.
                let generation = match immediate {
                    true => slot.prepare().ok_or(Why::Muddled)?,
                    false => slot.recorded.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
                };
                slot.hold();
                return Ok(Use { number, slot, generation, behind: false });
            }
            Theirs::Plain if wanted.list.is_in_order() => true,
            Theirs::Plain => return Err(Why::Plain),
            Theirs::Unknown => return Err(Why::Unknown),
        },
    };
    let (number, slot) = wanted.list.context().and_then(events::take).ok_or(Why::Refused)?;
    let generation = match immediate {
        true => slot.first_use(),
        false => slot.recorded.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
    };
    Ok(Use { number, slot, generation, behind })
}

/// What counts a command where not all are timed: the id of its function, or of its kind.
fn counted(kind: u8, function: Option<&'static Function>) -> Option<(u64, &'static Counted)> {
    function.map_or_else(|| sample::of_kind(kind, [0; 2]), |function| Some(function.counted()))
}

/// What is known of a command by itself.
fn described(
    wanted: &Wanted,
    function: Option<&'static Function>,
    counted: Option<u64>,
    bytes: u64,
) -> Enqueued {
    let (dimensions, geometry) = sizes(wanted.groups, kernels::group(wanted.kernel));
    Enqueued {
        dimensions,
        device: wanted.list.device().map_or(0, clock::Device::key),
        function: counted.unwrap_or(0),
        name: match (function, counted) {
            (Some(function), None) => function.name(),
            _ => std::ptr::null(),
        },
        bytes,
        geometry,
        ..Enqueued::of(wanted.kind)
    }
}

/// Offset, global and local size of a launch of so many groups, of so many work-items each.
fn sizes(groups: Geometry, local: [u64; 3]) -> (u8, [[u64; 3]; 3]) {
    let Some(groups) = groups else { return (0, [[0; 3]; 3]) };
    let mut global = [0; 3];
    for ((to, group), size) in global.iter_mut().zip(groups).zip(local) {
        *to = group.saturating_mul(size.max(1));
    }
    let dimensions = match global {
        [_, 0..=1, 0..=1] => 1,
        [_, _, 0..=1] => 2,
        _ => 3,
    };
    (dimensions, [[0; 3], global, local])
}

/// A context of the program's is about to be destroyed.
pub fn context_ends(context: P) {
    events::context_ends(context);
    copies::context_ends(context);
}

struct Asking;

impl Backend for Asking {
    type Token = Token;

    fn poll(&mut self, token: Token, command: &Enqueued) -> Progress {
        let Some(slot) = events::slot(token.slot) else { return Progress::Gone };
        let ticks = match slot.ask(token.slot, token.generation) {
            Answer::Waits => return Progress::Waits,
            Answer::Gone => return Progress::Gone,
            Answer::Ended(ticks) => ticks,
        };
        let Some(device) = clock::of(command.device as P) else { return Progress::Gone };
        device.compare();
        match device.times(ticks, token.enqueued) {
            Ok([start, end]) => Progress::Ended(Times { start, end, ..Times::default() }),
            Err(clock::Wrapped) => {
                say(Why::Wrapped);
                Progress::Gone
            }
        }
    }

    fn release(&mut self, token: Token) {
        events::let_go(token.slot);
    }
}

/// The program has waited: what has ended is recorded.
pub fn synchronized() {
    if timing() {
        STORE.collect(Depth::All, &mut Asking);
        sample::report_counts(false, named::all());
    }
}

/// Has what is complete when the program ends recorded; nothing is waited for.
pub fn ends_with_the_program() {
    STORE.at_exit(at_exit);
}

extern "C" fn at_exit() {
    if timing() {
        clock::compare_all();
        STORE.collect(Depth::Last, &mut Asking);
        sample::report_counts(true, named::all());
    }
}
