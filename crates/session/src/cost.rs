//! What recording a call costs on this machine.
//!
//! Before the program starts, a loop records calls of a function that does little, with the
//! program's own [`Writer`] on a ring of the launcher's own, beside a loop that only calls it.
//!
//! ```text
//!  the program ─► wrapper ─► entry ─┊─► the real function ─┊─► exit ─► back
//!                              time stamp             time stamp
//!                 └──── call_ns, less the real function ────────┘
//!                                   └───── inside_ns ──────┘
//! ```
//! The same once more with calls between which the nearest caches are filled with other things, as they are behind a
//! call in which a driver works, and with as many lines of code as a real wrapper has: `cold_ns`. What else is around it in
//! a real program is not in it: caches that the ring's lines push other data out of, larger arguments, hooks of some functions ([decision 0030], [0084]).
//!
//! [decision 0030]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0030-own-cost.md
//! [0084]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0084-statement.md

use std::fs::File;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::{ArenaHeader, Control, MAX_APIS, PAGE, RingHeader, ring_bytes};
use hetrace_ring::record::{FIRST_CALL_ID, HEAD};
use hetrace_ring::writer::{FOLD_WORDS, Writer};
use hetrace_ring::{Mapping, clock, map_file};
use rustix::fs::{MemfdFlags, memfd_create};

use self::cold::Others;
use crate::manifest::{Cost, Timing};

mod cold;

/// What rings and arenas report of the tracer's work, by API.
#[derive(Debug, Default)]
pub(crate) struct TimingSums(Vec<Ticks>);

/// Ticks, and calls; the members are those of [`Timing`].
#[derive(Debug, Clone, Copy, Default)]
struct Ticks {
    calls: u64,
    timing: u64,
    apart_calls: u64,
    apart: u64,
    collecting: u64,
    driver: u64,
    summed: u64,
    loading: u64,
    setup: u64,
    collector_start: u64,
    collector: u64,
    collector_end: u64,
    collector_apart: u64,
    /// Commands, and what a collector does in the call of each: least, about and most, ns.
    commands: u64,
    collector_call: [u64; 3],
    /// What it does beside, ns, likewise.
    collector_once: [u64; 3],
    /// The library's own commands on devices, their bytes, and their nanoseconds there.
    own_device: [u64; 3],
}

impl TimingSums {
    fn of(&mut self, api: usize) -> Option<&mut Ticks> {
        self.0.resize(self.0.len().max(api.saturating_add(1)).min(MAX_APIS), Ticks::default());
        self.0.get_mut(api)
    }

    /// Adds what a ring has that is done; `api` is the number of its API.
    pub fn add(&mut self, api: usize, header: &RingHeader) {
        let Some(sums) = self.of(api) else { return };
        sum([
            (&mut sums.calls, &header.timing_calls),
            (&mut sums.timing, &header.timing_ticks),
            (&mut sums.apart_calls, &header.apart_calls),
            (&mut sums.apart, &header.apart_ticks),
            (&mut sums.collecting, &header.collecting_ticks),
            (&mut sums.driver, &header.driver_ticks),
            (&mut sums.summed, &header.summed_ticks),
            (&mut sums.commands, &header.commands),
        ]);
    }

    /// The same of an arena.
    pub fn add_arena(&mut self, api: usize, header: &ArenaHeader) {
        let Some(sums) = self.of(api) else { return };
        let word = header.collector_call_ns.load(Ordering::Relaxed);
        for (ns, shift) in sums.collector_call.iter_mut().zip([0, 16, 32]) {
            *ns = (*ns).max(word >> shift & 0xffff);
        }
        for (ns, word) in sums.collector_once.iter_mut().zip(&header.collector_once_ns) {
            sum([(ns, word)]);
        }
        for (to, word) in sums.own_device.iter_mut().zip(&header.own_device) {
            sum([(to, word)]);
        }
        sum([
            (&mut sums.loading, &header.loading_ticks),
            (&mut sums.setup, &header.setup_ticks),
            (&mut sums.collector_start, &header.collector_start_ticks),
            (&mut sums.collector, &header.collector_ticks),
            (&mut sums.collector_end, &header.collector_end_ticks),
            (&mut sums.collector_apart, &header.collector_apart_ticks),
        ]);
    }

    /// By the names of the APIs, those in which something was done.
    pub fn rows(&self, apis: &[crate::apis::Name], ns_per_tick: f64) -> Vec<Timing> {
        let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
        let row = |(api, ticks): (&crate::apis::Name, &Ticks)| Timing {
            api: api.to_string(),
            collector_calls_ns: ticks.collector_call.map(|ns| ns.saturating_mul(ticks.commands)),
            collector_once_ns: ticks.collector_once,
            calls: ticks.calls,
            ns: ns(ticks.timing),
            apart_calls: ticks.apart_calls,
            apart_ns: ns(ticks.apart),
            collecting_ns: ns(ticks.collecting),
            driver_ns: ns(ticks.driver),
            summed_ns: ns(ticks.summed),
            loading_ns: ns(ticks.loading),
            setup_ns: ns(ticks.setup),
            collector_start_ns: ns(ticks.collector_start),
            collector_ns: ns(ticks.collector),
            collector_end_ns: ns(ticks.collector_end),
            collector_apart_ns: ns(ticks.collector_apart),
            own_commands: ticks.own_device[0],
            own_bytes: ticks.own_device[1],
            own_device_ns: ticks.own_device[2],
        };
        let nothing = |row: &Timing| *row == Timing { api: row.api.clone(), ..Timing::default() };
        apis.iter().zip(&self.0).map(row).filter(|row| !nothing(row)).collect()
    }
}

/// Adds words, whatever a program may have written there.
fn sum<const N: usize>(pairs: [(&mut u64, &AtomicU64); N]) {
    for (to, word) in pairs {
        *to = to.saturating_add(word.load(Ordering::Relaxed));
    }
}

/// Data bytes of the ring: more than the nearest cache has, as in programs.
const RING: usize = 16 * PAGE;
/// Calls of a batch: few enough that most batches pass undisturbed.
const BATCH: u64 = 96;
/// Batches, if the time suffices.
const BATCHES: usize = 32;
/// Batches at least, however long they take: one alone, during which this thread was not
/// running for a while, would make a call cost nothing, or many times as much.
const FEWEST: usize = RANK + 1;
/// Batches in which caches and branches become what they stay.
const WARM: usize = 4;
/// Of batches from the best to the worst, the one that counts, as a part of them. The best of all
/// would be one that the counter's steps favoured.
const RANK: usize = 4;
/// No longer than this, in nanoseconds: the program waits. Where the counter is slow to read, the
/// fewest batches are enough.
const MOST: u64 = 600_000;

/// Calls behind other work: some microseconds each.
const COLD: usize = 48;

/// Measures it; nothing if there is no memory to be had. Takes some tenths of a millisecond.
pub fn measure() -> Option<Cost> {
    let scratch = Scratch::new()?;
    let began = (clock::ticks(), clock::nanoseconds(libc::CLOCK_MONOTONIC));
    let elapsed = || clock::nanoseconds(libc::CLOCK_MONOTONIC).saturating_sub(began.1);
    let mut batches = collect(|| scratch.batch(), elapsed)?;
    let ticks = clock::ticks().wrapping_sub(began.0);
    let ns = elapsed();
    let ns_per_tick = (ticks > 0 && ns > 0).then(|| ns as f64 / ticks as f64)?;
    let mut cost = estimate(&mut batches, ns_per_tick);
    cost.cold_ns = tenths(scratch.cold() * ns_per_tick).max(cost.call_ns);
    Some(cost)
}

/// Whole tenths, and never less than nothing.
fn tenths(ns: f64) -> f64 {
    (ns.max(0.0) * 10.0).round() / 10.0
}

/// Returns the batches that count; `elapsed` is in nanoseconds. Nothing if one could not be had.
fn collect(batch: impl Fn() -> Option<Batch>, elapsed: impl Fn() -> u64) -> Option<Vec<Batch>> {
    for _ in 0..WARM {
        batch()?;
    }
    let mut batches = Vec::with_capacity(BATCHES);
    while batches.len() < FEWEST || (batches.len() < BATCHES && elapsed() <= MOST) {
        batches.push(batch()?);
    }
    Some(batches)
}

/// Ticks that each loop of a batch took, and those between time stamps.
#[derive(Debug, Clone, Copy)]
struct Batch {
    nothing: u64,
    bare: u64,
    calls: u64,
    inside_calls: u64,
    folds: u64,
    inside_folds: u64,
}

/// Returns the result of the batches; there is one at least.
fn estimate(batches: &mut [Batch], ns_per_tick: f64) -> Cost {
    let mut good = |of: fn(&Batch) -> u64| {
        batches.sort_unstable_by_key(of);
        let ticks = batches.get(batches.len() / RANK).map_or(0, of);
        ticks as f64 * ns_per_tick / BATCH as f64
    };
    let (nothing, bare) = (good(|b| b.nothing), good(|b| b.bare));
    let call_ns = tenths(good(|b| b.calls) - bare);
    let fold_ns = tenths(good(|b| b.folds) - bare);
    Cost {
        call_ns,
        inside_ns: tenths(good(|b| b.inside_calls) - bare).min(call_ns),
        fold_ns,
        fold_inside_ns: tenths(good(|b| b.inside_folds) - bare).min(fold_ns),
        least_ns: tenths(nothing),
        ..Cost::default()
    }
}

/// A function as a program calls it: through a pointer.
type Real = fn(&Arguments) -> i32;
/// What it is called with, and what is recorded of it: what CUDA's and OpenCL's calls have on average.
type Arguments = [u64; 3];

static LOCK: AtomicU64 = AtomicU64::new(0);

/// Takes and releases an uncontended lock, as nearly every call of an API does.
///
/// Processors read their counter beside other work. Of a function that does nothing at all the
/// cost would be all that the readings take, which is twice of what calls that do something wait
/// for them.
#[inline(never)]
fn little(arguments: &Arguments) -> i32 {
    let [step, ..] = *black_box(arguments);
    LOCK.fetch_add(step, Ordering::SeqCst);
    LOCK.fetch_sub(step, Ordering::SeqCst);
    0
}

/// Does nothing: no call takes less.
#[inline(never)]
fn nothing(_: &Arguments) -> i32 {
    0
}

/// A ring that nobody reads, and its writer.
struct Scratch {
    writer: Box<Writer>,
    // Their memory is the writer's.
    ring: Mapping,
    _control: Box<Control>,
}

impl Scratch {
    fn new() -> Option<Self> {
        let file = File::from(memfd_create("hetrace-cost", MemfdFlags::CLOEXEC).ok()?);
        file.set_len(ring_bytes(RING as u64)).ok()?;
        let ring = map_file(&file, ring_bytes(RING as u64) as usize, true).ok()?;
        // SAFETY: a fresh file is zeros, which are a valid header, and nobody else has it.
        unsafe { (*ring.base().cast::<RingHeader>()).data_bytes = RING as u64 };
        // SAFETY: a control file begins as zeros, too.
        let control = Box::new(unsafe { MaybeUninit::<Control>::zeroed().assume_init() });
        let writer = Box::new(Writer::new());
        // SAFETY: both live as long as the writer, and no other uses the ring. Nobody is to be woken when a quarter of
        // the ring is full.
        unsafe { writer.attach(ring.base(), RING as u64, &raw const *control, std::ptr::null()) };
        Some(Self { writer, ring, _control: control })
    }

    /// All that was written is read, as it were.
    fn release(&self) {
        // SAFETY: the header that `new` laid there.
        let header = unsafe { &*self.ring.base().cast::<RingHeader>() };
        header.tail.release(header.head.own());
    }

    /// Ticks that a recorded call takes longer behind other work: the difference of medians. 0 if the ring was full,
    /// which it can't be.
    fn cold(&self) -> f64 {
        let others = Others::new();
        let real: Real = black_box(little);
        let arguments: Arguments = black_box([1, 2, 3]);
        let (mut bare, mut calls) = ([0; COLD], [0; COLD]);
        for (bare, call) in bare.iter_mut().zip(&mut calls) {
            self.release();
            others.work();
            let start = clock::ticks();
            black_box(real(&arguments));
            *bare = clock::ticks().wrapping_sub(start);
            others.work();
            let start = clock::ticks();
            cold::wrapper();
            if recorded(&self.writer, real, &arguments).is_none() {
                return 0.0;
            }
            *call = clock::ticks().wrapping_sub(start);
        }
        let median = |ticks: &mut [u64; COLD]| {
            ticks.sort_unstable();
            ticks[COLD / 2] as f64
        };
        median(&mut calls) - median(&mut bare)
    }

    /// Nothing if the ring was full, which it can't be.
    fn batch(&self) -> Option<Batch> {
        let (real, least): (Real, Real) = (black_box(little), black_box(nothing));
        let arguments: Arguments = black_box([1, 2, 3]);
        let start = clock::ticks();
        for _ in 0..BATCH {
            black_box(least(&arguments));
        }
        let nothing = clock::ticks().wrapping_sub(start);
        let start = clock::ticks();
        for _ in 0..BATCH {
            black_box(real(&arguments));
        }
        let bare = clock::ticks().wrapping_sub(start);

        self.release();
        let mut inside_calls = 0u64;
        let start = clock::ticks();
        for _ in 0..BATCH {
            let (_, time) = recorded(&self.writer, real, &arguments)?;
            inside_calls = inside_calls.wrapping_add(time);
        }
        let calls = clock::ticks().wrapping_sub(start);

        let key = [7; FOLD_WORDS];
        self.writer.remember_poll(FOLD_ID, &key);
        let mut inside_folds = 0u64;
        let start = clock::ticks();
        for _ in 0..BATCH {
            let (_, time) = folded(&self.writer, real, &arguments, key)?;
            inside_folds = inside_folds.wrapping_add(time);
        }
        let folds = clock::ticks().wrapping_sub(start);
        self.release();
        self.writer.flush();
        Some(Batch { nothing, bare, calls, inside_calls, folds, inside_folds })
    }
}

const ENTRY_ID: u16 = FIRST_CALL_ID;
const EXIT_ID: u16 = FIRST_CALL_ID + 1;
const FOLD_ID: u16 = FIRST_CALL_ID + 2;

/// Returns what `hetrace_interpose::call` does around a function: what it returned, and the ticks
/// between the time stamps.
#[inline(never)]
fn recorded(writer: &Writer, real: Real, arguments: &Arguments) -> Option<(i32, u64)> {
    let writer = black_box(writer);
    let entry = |at: *mut u8| {
        // SAFETY: `record` gives room for the length it was asked for, which is `Arguments`.
        unsafe { at.cast::<Arguments>().write_unaligned(*arguments) };
    };
    // SAFETY: `entry` writes what the length says.
    let before = unsafe { writer.record(ENTRY_ID, HEAD + size_of::<Arguments>(), entry) }?;
    let result = real(arguments);
    let writer = black_box(writer);
    let exit = |at: *mut u8| {
        // SAFETY: `record` gives room for the length it was asked for, which is an `i32`.
        unsafe { at.cast::<i32>().write_unaligned(result) };
    };
    // SAFETY: `exit` writes what the length says.
    let after = unsafe { writer.record(EXIT_ID, HEAD + size_of::<i32>(), exit) }?;
    Some((result, after.wrapping_sub(before)))
}

/// Returns what `hetrace_interpose::poll` does around a function that answers as before.
#[inline(never)]
fn folded(writer: &Writer, real: Real, arguments: &Arguments, key: [u64; FOLD_WORDS]) -> Option<(i32, u64)> {
    let (writer, mut key) = (black_box(writer), black_box(key));
    let known = arguments.len();
    if !writer.continues_poll(FOLD_ID, &key, known) {
        return None;
    }
    let before = clock::ticks();
    let result = real(arguments);
    let after = clock::ticks();
    key[known] = black_box(key[known]);
    writer.fold(&key, known, before, after).then(|| (result, after.wrapping_sub(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_two_measurements_counts() {
        let cost = |call_ns, inside_ns| Cost { call_ns, inside_ns, ..Cost::default() };
        let mut both = cost(58.0, 24.0);
        both.at_most(&cost(44.0, 28.0));
        assert_eq!(both, cost(44.0, 24.0));
    }

    #[test]
    fn a_collectors_part_in_calls_is_by_its_calibration() {
        let mut sums = TimingSums::default();
        let ticks = sums.of(1).expect("an API");
        (ticks.commands, ticks.collector_call) = (1000, [600, 1000, 1500]);
        let rows = sums.rows(&["none".into(), "toy".into()], 0.5);
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0].api, rows[0].collector_calls_ns), ("toy", [600_000, 1_000_000, 1_500_000]));
        // Commands that no collector reports cost it nothing.
        sums.of(1).expect("an API").collector_call = [0; 3];
        assert_eq!(sums.rows(&["none".into(), "toy".into()], 0.5), []);
    }

    fn batch(bare: u64, calls: u64, inside_calls: u64) -> Batch {
        let [bare, calls, inside] = [bare, calls, inside_calls].map(|ticks| ticks * BATCH);
        Batch { nothing: BATCH, bare, calls, inside_calls: inside, folds: calls, inside_folds: inside }
    }

    #[test]
    fn it_can_be_measured_again_and_again() {
        for _ in 0..20 {
            let cost = measure().expect("memory");
            // Any machine needs some time for it; where the counter is emulated, microseconds.
            assert!(cost.call_ns > 0.0 && cost.call_ns < 1e6, "{cost:?}");
            assert!(cost.inside_ns <= cost.call_ns && cost.least_ns < 1e6, "{cost:?}");
            assert!(cost.fold_inside_ns <= cost.fold_ns && cost.fold_ns < 1e6, "{cost:?}");
            assert!(cost.cold_ns >= cost.call_ns && cost.cold_ns < 1e6, "{cost:?}");
        }
    }

    /// While a batch's loop without recording was interrupted, all the time there was went by.
    #[test]
    fn one_batch_that_took_all_the_time_does_not_decide() {
        let number = std::cell::Cell::new(0);
        let next = || {
            number.set(number.get() + 1);
            Some(batch(if number.get() == WARM + 1 { 9_000 } else { 4 }, 64, 40))
        };
        let mut batches = collect(next, || u64::MAX).expect("batches");
        let cost = estimate(&mut batches, 0.5);
        assert_eq!((cost.call_ns, cost.inside_ns), (30.0, 18.0));
    }

    #[test]
    fn disturbed_batches_do_not_count() {
        let quiet = (0..10).map(|_| batch(4, 64, 40));
        let disturbed = (0..20).map(|n| batch(90 + n, 9_000 + n, 5_000));
        let mut batches: Vec<Batch> = disturbed.chain(quiet).collect();
        let cost = estimate(&mut batches, 0.5);
        assert_eq!((cost.call_ns, cost.inside_ns), (30.0, 18.0));
        assert_eq!((cost.fold_ns, cost.fold_inside_ns), (30.0, 18.0));
    }

    #[test]
    fn nothing_is_less_than_nothing() {
        let cost = estimate(&mut [batch(10, 9, 40)], 1.0);
        assert_eq!(cost, Cost { least_ns: 1.0, ..Cost::default() });
    }
}
