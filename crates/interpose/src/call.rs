//! The recording of one call.

use std::sync::atomic::Ordering;

use hetrace_ring::abi::{OwnWorkRecord, RingHeader, flag, special};
use hetrace_ring::clock;
use hetrace_ring::writer::{FOLD_WORDS, Writer, add_in_one as add};

use crate::attach::lose_call;
use crate::budget::{self, Outcome, Way};
use crate::put::{Plain, Put};
use crate::record::{put, put_at, put_exit, record_extra_at};
use crate::spent::Usual;
use crate::thread::{again, recording, writer};
use crate::write::write_at;
use crate::{native, python};

/// Records a call: its entry, the real function, its exit.
///
/// `real` gets the entry's time, by which a command on a device names the call
/// that caused it; 0 if a command is not to be timed, outside of a capture window. `after` runs when the exit is recorded, for work that must
/// not be counted as the call's time.
///
/// # Safety
/// What `entry` and `exit` answer may be read as [`Put::put`] says.
#[inline(always)]
pub unsafe fn call<R: Outcome, E: Put + Copy, X: Put + Copy>(
    flags: u8,
    id: u16,
    entry: impl FnOnce() -> E + Copy,
    real: impl FnOnce(u64) -> R,
    exit: impl FnOnce(R) -> X,
    after: impl FnOnce(),
) -> R {
    if flags & flag::RECORD == 0 {
        let result = real(clock::ticks());
        after();
        return result;
    }
    let Some(writer) = writer() else {
        lose_call();
        return real(clock::ticks());
    };
    let is_timed = flags & TIMED != 0;
    // Nothing here reads the counter, or is another function: where a driver's work lies between two calls, code and data that
    // have to come from afar are what a call pays for.
    if flags & flag::SUMMABLE != 0 && writer.counts_only(id + 2) {
        let result = real(if is_timed { writer.meter.looked() } else { 0 });
        if !result.is_ordinary()
            && let Some(writer) = again(writer)
            && let Some(times) = not_added_up(writer, Way::Counted, id, 0, false)
        {
            // SAFETY: contract: what `entry` and `exit` return may be read as `Put::put` says.
            unsafe { put_late(writer, id, times, entry(), exit(result)) };
        }
        after();
        return result;
    }
    if flags & flag::METERED != 0
        && let Some(way) = budget::way(writer, flags, id)
    {
        let before = budget::before(writer, way);
        let result = real(if is_timed { before } else { 0 });
        if (way != Way::Counted || !result.is_ordinary())
            && let Some(writer) = again(writer)
            && let Some(times) = not_added_up(writer, way, id, before, result.is_ordinary())
        {
            // SAFETY: contract: what `entry` and `exit` return may be read as `Put::put` says.
            unsafe { put_late(writer, id, times, entry(), exit(result)) };
        }
        after();
        return result;
    }
    // SAFETY: contract: what `entry` returns may be read as `Put::put` says.
    let time = unsafe { put(writer, id, entry()) };
    let result = real(if is_timed { time.unwrap_or_else(clock::ticks) } else { 0 });
    if time.is_some()
        && let Some(writer) = again(writer)
    {
        // SAFETY: contract: what `exit` returns may be read as `Put::put` says.
        unsafe { put_exit(writer, id + 1, exit(result)) };
    }
    after();
    result
}

/// With any of these bits commands of a call are timed: with others alone it is recorded outside of a capture window,
/// because of the objects that it makes or frees.
const TIMED: u8 = flag::RECORD & flag::INSIDE | flag::HOOK;

/// Ticks, about half a minute, after which the low bits of a record's time say too little.
const LONG: u64 = 1 << 36;

/// Adds a call up that has ended. Returns from when until when it was if it must be recorded after all, as its result is not
/// that of others.
#[cold]
#[inline(never)]
fn not_added_up(writer: &Writer, way: Way, id: u16, before: u64, is_ordinary: bool) -> Option<[u64; 2]> {
    let now = match way {
        Way::Dropped => return None,
        Way::Counted | Way::Summed => clock::ticks(),
    };
    if way == Way::Counted {
        writer.count_down(id + 2);
        return Some([now; 2]); // How long it took is not known.
    }
    (!is_ordinary || !writer.add_up(id + 2, before, now)).then_some([before, now])
}

/// Records a call that has ended, from the first of the times to the second. It gets what was read of arguments and
/// results, not the closures that read it: these would have to be in memory then, for every call.
///
/// # Safety
/// As [`Put::put`] for `entry` and `exit`.
#[cold]
#[inline(never)]
unsafe fn put_late(
    writer: &Writer,
    id: u16,
    [before, now]: [u64; 2],
    entry: impl Put + Copy,
    exit: impl Put + Copy,
) {
    budget::was_recorded(writer);
    let is_long = now.wrapping_sub(before) > LONG;
    let say_earlier = || {
        if is_long {
            // SAFETY: plain data without gaps.
            unsafe { write_at(writer, special::EARLIER, Plain(&before), now) };
        }
    };
    if native::is_on() {
        say_earlier();
        let noted =
            if is_long { native::note_none(writer, id, before) } else { native::note(writer, id, before) };
        if !noted {
            writer.lose_call();
            return;
        }
    }
    if python::is_on() {
        say_earlier();
        // Of such a long call the one record says that its stack is not known: each would need its time said.
        let noted =
            if is_long { python::note_none(writer, id, before) } else { python::note(writer, id, before) };
        if !noted {
            writer.lose_call();
            return;
        }
    }
    say_earlier();
    // SAFETY: what `entry` refers to are the call's arguments, which stay readable until its wrapper returns.
    if unsafe { put_at(writer, id, entry, before) } {
        // SAFETY: what `exit` refers to are the call's results, which stay readable until its wrapper returns.
        unsafe { put_at(writer, id + 1, exit, now) };
    }
}

/// As [`call()`], for a function that programs ask again and again: equal
/// questions with equal answers, and nothing recorded in between, become one
/// record. `key` is filled with the arguments before and the answer after;
/// `arguments` of its words are known before.
///
/// # Safety
/// As [`call()`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn poll<R: Outcome, E: Put + Copy, X: Put + Copy>(
    flags: u8,
    id: u16,
    arguments: usize,
    mut key: [u64; FOLD_WORDS],
    entry: impl FnOnce() -> E + Copy,
    real: impl FnOnce(u64) -> R,
    answer: impl FnOnce(R, &mut [u64; FOLD_WORDS]),
    exit: impl FnOnce(R) -> X,
    after: impl FnOnce(),
) -> R {
    if flags & flag::RECORD == 0 {
        let result = real(clock::ticks());
        after();
        return result;
    }
    let Some(writer) = writer() else {
        lose_call();
        return real(clock::ticks());
    };
    if writer.continues_poll(id + 2, &key, arguments) {
        let before = clock::ticks();
        let result = real(before);
        let after_call = clock::ticks();
        answer(result, &mut key);
        if writer.fold(&key, arguments, before, after_call) {
            after();
            return result;
        }
        // Another answer: the run ends, and this call is recorded in full.
        // SAFETY: contract: what `entry` returns may be read as `Put::put` says.
        if unsafe { put_at(writer, id, entry(), before) } {
            // SAFETY: contract: what `exit` returns may be read as `Put::put` says.
            unsafe { put_at(writer, id + 1, exit(result), after_call) };
            remember(writer, id, &key);
        }
        after();
        return result;
    }
    if flags & flag::METERED != 0
        && let Some(way) = budget::way(writer, flags, id)
    {
        let before = budget::before(writer, way);
        let result = real(before);
        if (way != Way::Counted || !result.is_ordinary())
            && let Some(writer) = again(writer)
            && let Some(times) = not_added_up(writer, way, id, before, result.is_ordinary())
        {
            // SAFETY: contract: what `entry` and `exit` return may be read as `Put::put` says.
            unsafe { put_late(writer, id, times, entry(), exit(result)) };
        }
        after();
        return result;
    }
    // SAFETY: contract: what `entry` returns may be read as `Put::put` says.
    let time = unsafe { put(writer, id, entry()) };
    let result = real(time.unwrap_or_else(clock::ticks));
    answer(result, &mut key);
    if time.is_some() {
        // SAFETY: contract: what `exit` returns may be read as `Put::put` says.
        unsafe { put(writer, id + 1, exit(result)) };
        remember(writer, id, &key);
    }
    after();
    result
}

#[inline(always)]
fn remember(writer: &Writer, id: u16, key: &[u64; FOLD_WORDS]) {
    if crate::session().is_some_and(|s| s.option(hetrace_ring::abi::option::FOLD)) {
        writer.remember_poll(id + 2, key);
    }
}

/// Counts commands that this thread has enqueued and will be asked about, and
/// commands it has reported: the difference over all threads is what the
/// report must call "in flight" when the program is killed.
pub fn count_commands(enqueued: u64, reported: u64) {
    let Some(header) = recording().and_then(|w| w.header()) else { return };
    add(&header.commands, enqueued);
    add(&header.reported, reported);
}

/// Counts a command that this writer's thread has enqueued.
#[inline(always)]
pub(crate) fn count_enqueued(writer: &Writer) {
    if let Some(header) = writer.header() {
        add(&header.commands, 1);
    }
}

/// Measures the tracer's own work inside of a call that enqueues a command: all from the call's
/// entry until this is dropped, but for the real function. The sum goes into the thread's ring.
///
/// Most calls take about the same, and the mean of these stands for each. One that takes much more, because it
/// was interrupted or collected commands for many, counts apart: its record says what it took.
#[derive(Debug)]
pub struct OwnWork {
    /// When the call was entered; later by as much as the real function took.
    since: u64,
    /// Ticks in which commands were collected.
    collecting: u64,
    /// Ticks that the real function took.
    took: u64,
    /// This task's, since the real function has returned.
    writer: Option<&'static Writer>,
}

impl OwnWork {
    /// `entry` is the counter value of the call's entry record.
    #[inline(always)]
    pub fn since(entry: u64) -> Self {
        Self { since: entry, collecting: 0, took: 0, writer: None }
    }

    /// As [`Self::since`], where the call's entry may be later than `entry`: a call that is [only
    /// counted](crate::budget) has none of its own.
    #[inline]
    pub fn begun(entry: u64) -> Self {
        Self::since(if budget::only_counts() { clock::ticks() } else { entry })
    }

    /// Calls the real function; returns its result and the counter value after it.
    #[inline(always)]
    pub fn real<R>(&mut self, call: impl FnOnce() -> R) -> (R, u64) {
        let before = clock::ticks();
        let result = call();
        let returned = clock::ticks();
        self.took = returned.wrapping_sub(before);
        self.since = self.since.wrapping_add(self.took);
        // Not before: the real function may fork, or end the thread's ring.
        self.writer = recording();
        (result, returned)
    }

    /// Ticks that the real function took.
    #[inline(always)]
    pub(crate) fn took(&self) -> u64 {
        self.took
    }

    /// Returns the writer that the thread had when the real function returned, if it had a ring.
    #[inline(always)]
    pub(crate) fn writer(&self) -> Option<&'static Writer> {
        self.writer
    }

    /// Collects commands that have finished, which the [`Store`](crate::commands::Store) counts: it is done in a few
    /// calls for many, and not what timing this call's command takes.
    pub fn collecting(&mut self, collect: impl FnOnce()) {
        let before = clock::ticks();
        collect();
        self.collecting = self.collecting.wrapping_add(clock::ticks().wrapping_sub(before));
    }

    /// The call failed: what was done for it is not what timing a command takes, and is not counted.
    #[inline(always)]
    pub fn failed(mut self) {
        self.writer = None;
    }
}

impl Drop for OwnWork {
    #[inline(always)]
    fn drop(&mut self) {
        // A writer of a process that was forked since has no ring.
        let Some(writer) = self.writer else { return };
        let Some(header) = writer.header() else { return };
        let ticks = clock::ticks().wrapping_sub(self.since);
        if writer.meter.adds_up() {
            count_summed(header, ticks.wrapping_sub(self.collecting));
        } else if ticks <= header.timing_limit.load(Ordering::Relaxed) {
            add(&header.timing_ticks, ticks);
            add(&header.timing_calls, 1);
        } else {
            count_apart(header, ticks, self.collecting);
        }
    }
}

/// The first limit of a thread, in ticks.
const LEAST_LIMIT: u64 = 256;
/// The greatest: some microseconds, less than what an interruption takes.
const MOST_LIMIT: u64 = 1 << 14;
/// Of so many calls one may count apart before the limit rises: it comes to lie above nearly all that is not disturbed.
const RARE: u64 = 16;
/// So many calls may do so at first.
const FIRST: u64 = 4;

/// A call that was added up, in whose time this is: no single one of them is shown.
#[cold]
#[inline(never)]
fn count_summed(header: &RingHeader, ticks: u64) {
    // Counters of two processors may differ by some ticks; and an interruption is not the tracer's work.
    add(&header.summed_ticks, ticks.cast_signed().clamp(0, MOST_LIMIT as i64).cast_unsigned());
}

/// A call in which the tracer worked for longer than in most. It gets a record of its own.
#[cold]
#[inline(never)]
fn count_apart(header: &RingHeader, ticks: u64, collecting: u64) {
    // Counters of two processors may differ by some ticks.
    let ticks = ticks.cast_signed().max(0).cast_unsigned();
    let own = ticks.saturating_sub(collecting);
    // An interruption is not the tracer's work. What is inside of the call's own time is said by the record below, whole.
    add(&header.apart_ticks, own.min(MOST_LIMIT));
    add(&header.apart_calls, 1);
    let (limit, apart) = (&header.timing_limit, header.apart_calls.load(Ordering::Relaxed));
    let most = apart.saturating_mul(RARE) > header.timing_calls.load(Ordering::Relaxed) + RARE * FIRST;
    let now = limit.load(Ordering::Relaxed);
    if now < LEAST_LIMIT {
        limit.store(LEAST_LIMIT, Ordering::Relaxed);
    } else if most && own > now {
        limit.store((now * 2).min(MOST_LIMIT), Ordering::Relaxed);
    }
    // SAFETY: plain data without gaps.
    unsafe { record_extra_at(special::OWN_WORK, Plain(&OwnWorkRecord { ticks }), clock::ticks()) };
}

/// Counts what a look for commands that have ended took, which found so many.
pub(crate) fn count_collecting(ticks: u64, found: u64) {
    static COLLECTING: Usual = Usual::new();
    if let Some(header) = recording().and_then(|w| w.header()) {
        add(&header.collecting_ticks, COLLECTING.of(ticks, found));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    static COUNTER: AtomicU64 = AtomicU64::new(0);
    static HANDLED: AtomicU64 = AtomicU64::new(0);

    extern "C" fn on_signal(_: libc::c_int) {
        add(&COUNTER, 1);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn what_a_handler_counts_is_not_lost() {
        const SIGNALS: u64 = 2000;
        let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: a handler that only counts, for a signal that nobody else uses here.
        let before = unsafe { libc::signal(libc::SIGWINCH, handler) };
        // SAFETY: no preconditions.
        let here = unsafe { libc::pthread_self() };
        let sender = std::thread::spawn(move || {
            while HANDLED.load(Ordering::Relaxed) < SIGNALS {
                // SAFETY: the thread waits for this one.
                unsafe { libc::pthread_kill(here, libc::SIGWINCH) };
                std::thread::yield_now();
            }
        });
        let mut own = 0;
        while !sender.is_finished() {
            for _ in 0..100 {
                add(&COUNTER, 1);
            }
            own += 100;
        }
        sender.join().expect("the sender");
        // SAFETY: what was there before.
        unsafe { libc::signal(libc::SIGWINCH, before) };
        assert_eq!(COUNTER.load(Ordering::Relaxed), own + HANDLED.load(Ordering::Relaxed));
    }
}
