//! Capture windows, as a program comes to where they begin and end.
//!
//! A wrapper reads [`flags`](crate::flags), which depend on the window already. What is here is done in addition where
//! launches of kernels are counted (`--launches`), or ranges (`--range`), in all processes of the session together: the
//! one that comes to the first or last of them opens or closes the window, for all. Or the program asks for it itself
//! (`--on-calls`).

use std::sync::atomic::Ordering;

use hetrace_ring::abi::flag;
use hetrace_ring::abi::window::{Cause, Counts, Window, reason, trigger};
use hetrace_ring::clock;

use crate::flags::{all_flags, flags, mask};
use crate::process::session;
use crate::{glob, own, selection, thread};

/// The flags of a function that is called now; calls that are counted are counted here.
#[inline(always)]
pub fn entering(function: usize) -> u8 {
    let on = flags(function);
    // One comparison for both of what is rare: nothing counts, or the call is counted.
    if on.wrapping_sub(1) < LOWEST_COUNTED - 1 { on } else { rare(function, on) }
}

/// Whether the capture window is open, for this process; always so in a session without windows that is for all.
#[inline]
pub fn in_window() -> bool {
    mask() & flag::INSIDE & !flag::COUNTED != 0 && selection::is_recorded()
}

/// The lowest bit of [`flag::COUNTED`], which are the highest of all.
const LOWEST_COUNTED: u8 = flag::COUNTED & flag::COUNTED.wrapping_neg();
const _: () = assert!(flag::COUNTED.leading_ones() + flag::COUNTED.trailing_zeros() == u8::BITS);

#[cold]
#[inline(never)]
fn rare(function: usize, on: u8) -> u8 {
    if on == 0 { 0 } else { counted(function) }
}

/// Counts a launch. Whether it belongs to the window its number says, however threads overtake each other.
fn counted(function: usize) -> u8 {
    let Some(window) = window() else { return 0 };
    if window.selects.load(Ordering::Relaxed) != 0 {
        return if selection::is_selected(window) { flags(function) & !flag::COUNTED } else { 0 };
    }
    if thread::is_own() {
        return 0;
    }
    let Some(counts) = counts() else { return 0 };
    let number = counts.launches.fetch_add(1, Ordering::Relaxed);
    if number == window.first {
        counts.switch.open_once(clock::ticks(), cause(reason::LAUNCH, number));
    } else if number == window.last {
        counts.switch.close_for_good(clock::ticks(), cause(reason::LAUNCH, number));
    }
    let bits = if window.has(number) { flag::INSIDE } else { flag::OUTSIDE };
    all_flags(function) & bits & !flag::COUNTED
}

/// Whether ranges open and close the window, so that an API has to say which begin and end.
#[inline]
pub fn has_ranges() -> bool {
    window().is_some_and(|w| w.trigger == trigger::RANGES)
}

/// Whether a range of this name may belong to the window.
pub fn is_range(name: &[u8]) -> bool {
    window().is_some_and(|w| w.trigger == trigger::RANGES && glob::matches(&w.glob, name))
}

/// A range of such a name begins. Returns whether it belongs to the window: its end must be reported, too.
#[cold]
pub fn range_begins() -> bool {
    let Some((window, counts)) = window().zip(counts()) else { return false };
    let number = counts.ranges.fetch_add(1, Ordering::Relaxed);
    // Others' ranges may come while the window's are still open. But one whose end was not seen must not keep it open.
    if number >= window.last && (has_opened(counts) || number - window.last >= MANY) {
        counts.switch.close_for_good(clock::ticks(), cause(reason::RANGE, number));
    }
    if !window.has(number) {
        return false;
    }
    counts.open_ranges.fetch_add(1, Ordering::Relaxed);
    if number == window.first {
        counts.switch.open_once(clock::ticks(), cause(reason::RANGE, number));
    }
    true
}

/// Ranges behind those of a window, after which it is not waited any more for the window's to end: a process may have ended
/// inside of one.
const MANY: u64 = 64;

/// Whether this thread has opened the window, and so is in no range of it any more if it begins another.
fn has_opened(counts: &Counts) -> bool {
    counts.switch.flip(0).is_some_and(|(_, _, cause)| (cause.pid, cause.tid) == (own::pid(), own::tid()))
}

/// A range of the window ends.
#[cold]
pub fn range_ends() {
    let Some((window, counts)) = window().zip(counts()) else { return };
    let open = counts.open_ranges.fetch_sub(1, Ordering::Relaxed);
    let begun = counts.ranges.load(Ordering::Relaxed);
    if open == 1 && begun >= window.last {
        counts.switch.close_for_good(clock::ticks(), cause(reason::RANGE, begun.saturating_sub(1)));
    }
}

/// The program itself says that the window begins, or that it ends. In a session that did not ask for that, nothing
/// happens.
#[cold]
pub fn asked(open: bool) {
    let by_calls = window().is_some_and(|window| window.trigger == trigger::CALLS);
    if let Some(counts) = counts().filter(|_| by_calls) {
        counts.switch.set_open_by_call(open, clock::ticks(), cause(reason::CALL, 0));
    }
}

/// The program asks for a snapshot of what was recorded last. A session that keeps no such record takes no notice.
#[cold]
pub fn snapshot() {
    if let Some(session) = session() {
        let reported = session.reported();
        reported.snapshot_asked.increase();
        hetrace_ring::writer::wake(&reported.wake);
    }
}

/// The number of the session in a control file that outlives sessions; 0 in any other. What a drainer must know once
/// is reported anew where it changes.
#[inline]
pub fn session_number() -> u32 {
    window().map_or(0, |window| window.generation.load(Ordering::Relaxed))
}

/// Distinguishes the sessions in which devices and queues have to be described; never 0.
#[inline]
pub fn session_key() -> u64 {
    u64::from(session_number()) + 1
}

fn cause(reason: u32, number: u64) -> Cause {
    Cause { reason, number, pid: own::pid(), tid: own::tid() }
}

#[inline]
fn window() -> Option<&'static Window> {
    session().map(|session| session.window())
}

fn counts() -> Option<&'static Counts> {
    session().map(|session| session.counts())
}
