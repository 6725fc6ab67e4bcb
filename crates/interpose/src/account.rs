//! A thread's account of what recording takes of its time, where that has a budget: it begins with the thread's ring, goes
//! with the thread into another, and what it came to is where the next thread begins.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::{BudgetStepRecord, RingHeader, special};
use hetrace_ring::clock;
use hetrace_ring::writer::{STEPS, Writer};

use crate::own;
use crate::process::session;
use crate::put::Plain;
use crate::write::record_on;

/// Ticks, about a millisecond, that a process may spend before it has earned any: its first calls.
const GRANT: u64 = 1 << 21;
/// The same for each other thread.
const GRANT_THREAD: u64 = 1 << 16;
/// Ticks that timing a command takes beside our own work: in the driver and on the device.
static BESIDE: AtomicU32 = AtomicU32::new(0);

/// How much of a thread's time may be spent, in parts per million; 0: as much as it takes.
pub(crate) fn limit() -> u32 {
    let Some(session) = session() else { return 0 };
    let all = session.control().overhead_ppm.load(Ordering::Relaxed);
    // What the process's APIs have together, the drainer divides among them.
    let ours = own::process().and_then(own::header).map_or(0, |h| h.overhead_ppm.load(Ordering::Relaxed));
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
        say(writer, 0, limit());
    } else {
        writer.meter.begin(now, grant, of_commands(header));
    }
}

/// The thread has come to its step: where the next one begins.
pub(crate) fn stepped(writer: &Writer, now: u64) {
    LATEST.store(pack(now, writer.meter.number()), Ordering::Relaxed);
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
pub(crate) fn say(writer: &Writer, spent_ppm: u32, budget_ppm: u32) {
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

/// What timing a command takes beside our own work, in ticks: in the driver and on the device.
pub fn set_beside(ticks: u32) {
    BESIDE.store(ticks, Ordering::Relaxed);
}
