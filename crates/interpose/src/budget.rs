//! Keeping what recording takes of each thread's time within a budget (`--max-overhead`).
//!
//! Each thread has a [`Meter`](hetrace_ring::writer::Meter), which says what it may record. This is where it
//! learns what its calls and commands took, and where its decisions are recorded. Nothing of it is done
//! in a session without a budget.

use std::sync::atomic::Ordering;

use hetrace_ring::abi::{flag, option};
use hetrace_ring::clock;
use hetrace_ring::writer::{Meter, Writer, add_in_one};

use crate::account::{self, limit, of_commands};
use crate::members::Val;
use crate::process::session;
use crate::thread::recording;
use crate::{native, own, python, thread};

pub use crate::account::{is_limited, set_beside};

/// Ticks that recording a call takes, until the launcher has measured it.
const CALL_TICKS: u32 = 180;
/// Ticks that adding a call up takes, of which two readings of the counter are most.
const SUM_TICKS: u64 = 90;
/// Ticks that only counting it takes.
const COUNT_TICKS: u64 = 20;
/// After so many calls that were only counted it is time for a look.
const MANY: u64 = Meter::EACH as u64 / 2;

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
    if thread::is_own_call(writer) {
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

/// As [`look`], within a call. One that is counted may have to be taken out of the sums again, if it fails: no record is made of
/// these before it has ended, so the look is due at the next call that is not.
fn look_within(writer: &Writer) {
    if writer.meter.adds_up() {
        writer.meter.look_soon();
    } else {
        look(writer);
    }
}

/// Decides what this thread records from now on.
fn look(writer: &Writer) {
    let Some(header) = writer.header() else { return };
    let ppm = limit();
    let now = clock::ticks();
    writer.meter.note_commands(now, ppm, header.counted.load(Ordering::Relaxed));
    let found = writer.meter.look(now, ppm, of_commands(header));
    if found.flush {
        writer.flush_sums();
    }
    if let Some(spent_ppm) = found.stepped {
        account::stepped(writer, now);
        account::say(writer, spent_ppm, ppm);
    }
}

/// Of how many commands of a kind this thread times one. A command is counted as calls are: where no calls are
/// recorded there is nothing else to look at the account for. `is_known`: what the driver takes for timing such a
/// command; where that matters and is not known, some are not timed, to compare their calls with.
pub fn one_in(is_known: impl FnOnce() -> bool) -> u32 {
    let Some(writer) = recording() else { return 1 };
    if writer.meter.count() && !thread::is_own_call(writer) {
        look_within(writer);
    }
    let one_in = writer.meter.step().one_in;
    if one_in == 1 && writer.meter.is_pressed() && !is_known() { LEARNING } else { one_in }
}

/// How much of a thread's time recording may take, in parts per million; 0: as much as it takes.
pub fn parts_per_million() -> u32 {
    limit()
}

/// Whether this thread can afford some work of so many ticks that is to be done once: it has saved them, or earns what
/// lacks within the time that saving may take. Without a budget there is nothing that it can't.
pub fn affords(ticks: u64) -> bool {
    if !is_limited() {
        return true;
    }
    let Some(writer) = recording() else { return false };
    look_within(writer);
    writer.meter.affords(limit(), ticks)
}

/// Spends so many ticks of this thread's budget, which are in no sum that it is charged for.
pub fn charge(ticks: u64) {
    if is_limited()
        && let Some(writer) = recording()
    {
        writer.meter.spend(ticks);
        look_within(writer);
    }
}

/// The same as this thread's step has it, without counting a command.
pub fn step_one_in() -> u32 {
    recording().map_or(1, |writer| writer.meter.step().one_in)
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
    if let Some(header) = own::process().and_then(own::header) {
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

/// Returns of how many launches of each kernel one is timed, for the whole session: 0 if it is not so.
pub fn sampled_every() -> u32 {
    let every = |s: &crate::Session| s.control().sample_every.load(Ordering::Relaxed);
    session().filter(|s| s.option(option::SAMPLED)).map_or(0, every)
}
