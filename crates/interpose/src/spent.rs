//! What the library takes of the program's time beside its calls: to begin, for memory to record into, and in a
//! collector of device times, which works when it likes. The sums stand in the arena, one for each kind, and come into
//! the manifest.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::{ArenaHeader, PAGE};
use hetrace_ring::clock;

use crate::own;

/// Ticks that the library took to begin, until the arena has them: there may be none yet, or never one.
static LOADING: AtomicU64 = AtomicU64::new(0);

/// Runs what the library does when it is loaded, and counts it. The arena's own time counts apart.
pub fn loading(loaded: extern "C" fn()) {
    let setup = || own::process().and_then(own::header).map_or(0, |h| h.setup_ticks.load(Ordering::Relaxed));
    let (began, before) = (clock::ticks(), setup());
    loaded();
    let ticks = since(began).saturating_sub(setup().saturating_sub(before));
    LOADING.fetch_add(ticks, Ordering::Relaxed);
    say_loading();
}

/// Puts what loading took into the arena, once, if there is one by now.
pub(crate) fn say_loading() {
    if let Some(header) = own::process().and_then(own::header) {
        header.loading_ticks.fetch_add(LOADING.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Says what a collector of device times does in each call that enqueues, in nanoseconds, which can't be seen from
/// outside of it: least, about and most, as calibrated on other machines.
pub fn collector_takes(call_ns: [u16; 3]) {
    if let Some(header) = own::process().and_then(own::header) {
        let word = call_ns.iter().rev().fold(0, |word, ns| word << 16 | u64::from(*ns));
        header.collector_call_ns.store(word, Ordering::Relaxed);
    }
}

/// Says what a collector of device times does now and then in the program's own calls, or when it ends, in nanoseconds: least,
/// about and most, as calibrated on other machines. Adds to what was said before.
pub fn collector_takes_once(ns: [u64; 3]) {
    if let Some(header) = own::process().and_then(own::header) {
        for (word, ns) in header.collector_once_ns.iter().zip(ns) {
            word.fetch_add(ns, Ordering::Relaxed);
        }
    }
}

/// Says that a command of the library's own has moved or filled so many bytes on a device, and took it so long there, in
/// nanoseconds; 0 if that is not known. It is none of the program's commands.
pub fn own_device(bytes: u64, ns: u64) {
    if let Some(header) = own::process().and_then(own::header) {
        for (word, n) in header.own_device.iter().zip([1, bytes, ns]) {
            word.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// What some work usually takes: a running median, by which a thread that was interrupted, or waited for a processor, is
/// distinguished from one that worked.
#[derive(Debug)]
pub(crate) struct Usual(AtomicU64);

impl Usual {
    /// Of work in units that no thread does in more than so many of what they usually take.
    const MOST: u64 = 4;
    /// Ticks, some microseconds, for a unit of the first work, and of any.
    const LIMIT: u64 = 1 << 14;

    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Some work of so many units took so many ticks; returns how many of these were work.
    pub(crate) fn of(&self, ticks: u64, units: u64) -> u64 {
        // Counters of two processors may differ by some ticks.
        let (ticks, units) = (ticks.cast_signed().max(0).cast_unsigned(), units.max(1));
        let each = (ticks / units).clamp(1, Self::LIMIT);
        let usual = match self.0.load(Ordering::Relaxed) {
            0 => each,
            usual => usual,
        };
        // One step towards it; down at once where the first was an exception.
        let next = match each {
            less if less * Self::MOST < usual => less * Self::MOST,
            less if less < usual => usual - usual / 16,
            _ => usual + usual / 16 + 1,
        };
        self.0.store(next.min(Self::LIMIT), Ordering::Relaxed);
        ticks.min(usual.saturating_mul(Self::MOST).min(Self::LIMIT).saturating_mul(units))
    }
}

/// Makes memory to record into of so many bytes, and counts the time that it takes.
pub(crate) fn make_memory<R>(bytes: u64, make: impl FnOnce() -> R) -> R {
    static PAGES: Usual = Usual::new();
    let began = clock::ticks();
    let made = make();
    let ticks = PAGES.of(since(began), bytes / PAGE as u64);
    if let Some(header) = own::process().and_then(own::header) {
        header.setup_ticks.fetch_add(ticks, Ordering::Relaxed);
    }
    made
}

/// Ticks since then; 0 if the counter of another processor is behind.
fn since(began: u64) -> u64 {
    clock::ticks().wrapping_sub(began).cast_signed().max(0).cast_unsigned()
}

/// For what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// Beginning to collect, while the program waits.
    Start,
    /// The collector's work on threads of the program: buffers, flushing.
    Collector,
    /// The same when a context or the process ends.
    End,
    /// Its work on a thread of the library's own, for which the program does not wait.
    Apart,
}

impl Spent {
    fn word(self, header: &ArenaHeader) -> &AtomicU64 {
        match self {
            Spent::Start => &header.collector_start_ticks,
            Spent::Collector => &header.collector_ticks,
            Spent::End => &header.collector_end_ticks,
            Spent::Apart => &header.collector_apart_ticks,
        }
    }
}

/// Does some work, and counts the time that it takes. Not to be nested: that time would count twice.
pub fn spend<R>(what: Spent, work: impl FnOnce() -> R) -> R {
    let began = clock::ticks();
    let result = work();
    let ticks = since(began);
    // Not before: the work may have made the arena, or may be a fork's child by now.
    if let Some(header) = own::process().and_then(own::header) {
        what.word(header).fetch_add(ticks, Ordering::Relaxed);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_no_work() {
        let usual = Usual::new();
        // Some thirty ticks each, one in three of them waits for a processor meanwhile; the first one, too.
        let all: u64 =
            (0..300u64).map(|n| usual.of(if n % 3 == 0 { 9_000_000 } else { 28 + n % 5 }, 1)).sum();
        assert!((300 * 28..300 * 80 + Usual::LIMIT * 2).contains(&all), "{all}");
    }

    #[test]
    fn work_that_takes_longer_from_some_time_on_is_work() {
        let usual = Usual::new();
        let phase = |each: u64| (0..1000).map(|_| usual.of(each * 8, 8)).sum::<u64>();
        assert_eq!(phase(100), 800_000);
        let longer = phase(1000);
        assert!((7_000_000..=8_000_000).contains(&longer), "{longer}");
        assert_eq!(phase(100), 800_000);
    }

    #[test]
    fn a_counter_that_is_behind_is_nothing() {
        assert_eq!(Usual::new().of(5u64.wrapping_neg(), 3), 0);
    }
}
