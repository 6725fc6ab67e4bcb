//! Keeping what recording takes of each thread's time within a budget (`--max-overhead`).
//!
//! Each thread has a [`Meter`](hetrace_ring::writer::Meter), which says what it may record. This is where it
//! learns what its calls and commands took, and where its decisions are recorded. Nothing of it is done
//! in a session without a budget.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::{BudgetStepRecord, RingHeader, flag, option, special};
use hetrace_ring::clock;
use hetrace_ring::writer::{Meter, STEPS, Writer, add_in_one};

use crate::arena;
use crate::call::{record_on, recording};
use crate::members::Val;
use crate::own;
use crate::process::session;
use crate::put::Plain;
use crate::{native, python};

/// Ticks that recording a call takes, until the launcher has measured it.
const CALL_TICKS: u32 = 180;
/// Ticks that adding a call up takes, of which two readings of the counter are most.
const SUM_TICKS: u64 = 90;
/// Ticks that only counting it takes.
const COUNT_TICKS: u64 = 20;
/// After so many calls that were only counted it is time for a look.
const MANY: u64 = Meter::EACH as u64 / 2;
/// Ticks, about a millisecond, that a process may spend before it has earned any: its first calls.
const GRANT: u64 = 1 << 21;
/// The same for each other thread.
const GRANT_THREAD: u64 = 1 << 16;
/// Ticks that timing a command takes beside our own work: in the driver and on the device.
static BESIDE: AtomicU32 = AtomicU32::new(0);

/// A result of a call that says nothing more than that it was made: such calls may be added up. Numbers of
/// 32 bits are error codes, of which 0 is success.
pub trait Outcome: Copy {
    /// Returns whether it is such a result.
    fn is_ordinary(self) -> bool;
}

macro_rules! outcome {
    ($($ty:ty = $ordinary:expr;)*) => { $(
        impl Outcome for $ty {
            #[inline(always)]
            fn is_ordinary(self) -> bool {
                let ordinary: fn($ty) -> bool = $ordinary;
                ordinary(self)
            }
        }
    )* };
}

outcome! {
    i32 = |code| code == 0;
    u32 = |code| code == 0;
    u64 = |_| true;
    i64 = |_| true;
    i16 = |_| true;
    u16 = |_| true;
    u8 = |_| true;
    i8 = |_| true;
    f32 = |_| true;
    f64 = |_| true;
    () = |_| true;
}

impl<T> Outcome for *mut T {
    #[inline(always)]
    fn is_ordinary(self) -> bool {
        !self.is_null()
    }
}

impl<T> Outcome for *const T {
    #[inline(always)]
    fn is_ordinary(self) -> bool {
        !self.is_null()
    }
}

impl<T: Copy, const N: usize> Outcome for Val<[T; N]> {
    fn is_ordinary(self) -> bool {
        true
    }
}

/// How much of a thread's time may be spent, in parts per million; 0: as much as it takes.
fn budget() -> u32 {
    let Some(session) = session() else { return 0 };
    let all = session.control().overhead_ppm.load(Ordering::Relaxed);
    // What the process's APIs have together, the drainer divides among them.
    let ours = own::process().and_then(arena::header).map_or(0, |h| h.overhead_ppm.load(Ordering::Relaxed));
    if ours == 0 { all } else { ours.min(all) }
}

/// Whether this session has a budget.
#[inline]
pub fn is_limited() -> bool {
    session().is_some_and(|s| s.control().overhead_ppm.load(Ordering::Relaxed) != 0)
}

/// A thread has got a ring.
pub(crate) fn begin(writer: &Writer) {
    let Some(header) = writer.header().filter(|_| is_limited()) else { return };
    writer.meter.begin_counting(header.counted.load(Ordering::Relaxed));
    let grant = if header.number == 0 { GRANT } else { GRANT_THREAD };
    let now = clock::ticks();
    let (latest, step) = unpack(LATEST.load(Ordering::Relaxed));
    if step > 0 && now.wrapping_sub(latest) < REMEMBERED {
        // Others had the grant.
        writer.meter.begin(now, 0, of_commands(header));
        writer.meter.begin_at(step);
        say(writer, 0, budget());
    } else {
        writer.meter.begin(now, grant, of_commands(header));
    }
}

/// A thread ends: what it came to is where the next one begins.
pub(crate) fn end(writer: &Writer) {
    let step = writer.meter.number();
    if step > 0 {
        LATEST.store(pack(clock::ticks(), step), Ordering::Relaxed);
    }
}

/// When a thread of this process came to a step last, or ended at it, and which: threads that live for a
/// millisecond could not come down by themselves, and there may be one after the other.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// Ticks, about a quarter of a second, for which that says something of a new thread.
const REMEMBERED: u64 = 1 << 29;
/// Bits of the step in [`LATEST`].
const STEP_BITS: u32 = 4;
const _: () = assert!(STEPS.len() < 1 << STEP_BITS);

fn pack(ticks: u64, step: u32) -> u64 {
    ticks << STEP_BITS | u64::from(step)
}

fn unpack(word: u64) -> (u64, u32) {
    (word >> STEP_BITS, word as u32 & ((1 << STEP_BITS) - 1))
}

/// Records that the thread has come to its step, before which it had spent so much.
fn say(writer: &Writer, spent_ppm: u32, budget_ppm: u32) {
    let step = writer.meter.step();
    let summed = u32::from(step.summed) + u32::from(step.counted);
    let record = BudgetStepRecord { one_in: step.one_in, summed, spent_ppm, budget_ppm };
    // SAFETY: plain data without gaps.
    unsafe { record_on(writer, special::BUDGET_STEP, Plain(&record)) };
}

/// A thread goes on in another ring. In the old one timed commands had taken so many ticks.
pub(crate) fn moved(writer: &Writer, old: u64) {
    if let Some(header) = writer.header() {
        writer.meter.moved(old, of_commands(header));
        writer.meter.begin_counting(header.counted.load(Ordering::Relaxed));
    }
}

/// Ticks that timed commands took so far, in calls of all threads that had this ring.
pub(crate) fn of_commands(header: &RingHeader) -> u64 {
    let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let beside = get(&header.commands).wrapping_mul(u64::from(BESIDE.load(Ordering::Relaxed)));
    let RingHeader { timing_ticks, apart_ticks, collecting_ticks, driver_ticks, summed_ticks, .. } = header;
    let inside = [timing_ticks, apart_ticks, collecting_ticks, driver_ticks, summed_ticks].map(get);
    inside.into_iter().fold(beside, u64::wrapping_add)
}

/// Why a call is not recorded where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is added up when it has ended.
    Summed,
    /// It is counted, and its time is not to be known.
    Counted,
    /// There was no room for what must stand before it: it is counted as lost.
    Dropped,
}

/// Does what a call needs before its entry is recorded, whose number is `id`: counts it where there is a budget, and
/// records its stacks where these are wanted. Returns none if it is to be recorded.
#[cold]
#[inline(never)]
pub(crate) fn way(writer: &Writer, flags: u8, id: u16) -> Option<Way> {
    if writer.is_own_call() {
        return None; // Nothing is recorded of it.
    }
    if is_limited() {
        let counts = flags & flag::SUMMABLE != 0 && writer.meter.only_counts() && writer.count_up(id + 2);
        let adds_up = counts || adds_up(writer, flags);
        writer.meter.call(adds_up);
        if adds_up {
            return Some(if counts { Way::Counted } else { Way::Summed });
        }
    }
    let (with_native, with_python) = (native::is_on(), python::is_on());
    if !with_native && !with_python {
        return None;
    }
    // In a process that was forked the entry finds a ring for the stacks, too.
    let writer = recording()?;
    let before = clock::ticks();
    let noted = (!with_native || native::note(writer, id, before))
        && (!with_python || python::note(writer, id, before));
    if !noted {
        writer.lose_call();
        return Some(Way::Dropped);
    }
    if is_limited() {
        writer.meter.spend(clock::ticks().wrapping_sub(before));
    }
    None
}

/// Counts a call that is about to be made. Returns whether it is to be added up.
fn adds_up(writer: &Writer, flags: u8) -> bool {
    let meter = &writer.meter;
    let counted = if meter.step().counted { meter.draw() } else { 0 };
    meter.spend(counted * COUNT_TICKS);
    if meter.count() || counted >= MANY {
        look(writer);
    }
    let sums = flags & flag::SUMMABLE != 0 && meter.step().summed;
    meter.spend(if sums { SUM_TICKS } else { call_ticks() });
    sums
}

/// The counter's value before a call, as near as it is to be known: of one that is only counted that of a look before it,
/// which times of its command are later than.
#[inline(always)]
pub(crate) fn before(writer: &Writer, way: Way) -> u64 {
    if way == Way::Counted { writer.meter.looked() } else { clock::ticks() }
}

/// Whether calls of this thread may begin without anybody knowing when.
pub(crate) fn only_counts() -> bool {
    is_limited() && recording().is_some_and(|writer| writer.meter.step().counted)
}

/// A call that was to be added up was recorded after all.
pub(crate) fn was_recorded(writer: &Writer) {
    writer.meter.spend(call_ticks().saturating_sub(SUM_TICKS));
}

fn call_ticks() -> u64 {
    let measured = session().map_or(0, |s| s.control().call_ticks.load(Ordering::Relaxed));
    u64::from(if measured == 0 { CALL_TICKS } else { measured })
}

/// Decides what this thread records from now on.
fn look(writer: &Writer) {
    let Some(header) = writer.header() else { return };
    let ppm = budget();
    let now = clock::ticks();
    writer.meter.note_commands(now, ppm, header.counted.load(Ordering::Relaxed));
    let found = writer.meter.look(now, ppm, of_commands(header));
    if found.flush {
        writer.flush_sums();
    }
    if let Some(spent_ppm) = found.stepped {
        LATEST.store(pack(now, writer.meter.number()), Ordering::Relaxed);
        say(writer, spent_ppm, ppm);
    }
}

/// Of how many commands of a kind this thread times one. A command is counted as calls are: where no calls are
/// recorded there is nothing else to look at the account for. `is_known`: what the driver takes for timing such a
/// command; where that matters and is not known, some are not timed, to compare their calls with.
pub fn one_in(is_known: impl FnOnce() -> bool) -> u32 {
    let Some(writer) = recording() else { return 1 };
    if writer.meter.count() && !writer.is_own_call() {
        look(writer);
    }
    let one_in = writer.meter.step().one_in;
    if one_in == 1 && writer.meter.is_pressed() && !is_known() { LEARNING } else { one_in }
}

/// Of so many commands one is timed while it is learned what the driver takes for that.
pub(crate) const LEARNING: u32 = 4;

/// The driver took so many ticks longer for a call because its command is timed.
pub(crate) fn driver_took(ticks: u64) {
    if ticks > 0
        && let Some(header) = recording().and_then(Writer::header)
    {
        add_in_one(&header.driver_ticks, ticks);
    }
}

/// A command was counted; or was not enqueued, and is counted no more.
pub(crate) fn count(command: i64) {
    if let Some(header) = recording().and_then(Writer::header) {
        add_in_one(&header.counted, command.cast_unsigned());
    }
}

/// So many commands are in the counts that were recorded last.
pub(crate) fn reported(commands: u64) {
    if let Some(header) = own::process().and_then(arena::header) {
        header.counted_reported.store(commands, Ordering::Relaxed);
    }
}

/// A call that enqueues a command has done nothing to time it: what is done in others is divided among all that are
/// recorded. Some are where others are added up: those that wait for a device.
pub(crate) fn not_timed() {
    let Some(writer) = recording() else { return };
    if let Some(header) = writer.header().filter(|_| !writer.meter.adds_up()) {
        add_in_one(&header.timing_calls, 1);
    }
}

/// What timing a command takes beside our own work, in ticks: in the driver and on the device.
pub fn set_beside(ticks: u32) {
    BESIDE.store(ticks, Ordering::Relaxed);
}

/// Returns of how many launches of each kernel one is timed, for the whole session: 0 if it is not so.
pub fn sampled_every() -> u32 {
    let every = |s: &crate::Session| s.control().sample_every.load(Ordering::Relaxed);
    session().filter(|s| s.option(option::SAMPLED)).map_or(0, every)
}
