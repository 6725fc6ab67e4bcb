//! What the driver itself takes longer because a command is timed, learned while some commands are timed and others
//! are only counted (`--max-overhead`).
//!
//! An event makes some drivers hand a command to the device at once, or ask for an interrupt. That is done inside of
//! the program's calls, where nothing distinguishes it from the call's own work. So calls are compared: each that enqueues a
//! timed command with the last one before it that enqueued a command of the same kind which is not timed. What was
//! put off may be done by the next command's call, so that its time counts as well; if that command is timed, too, the
//! pair says nothing.
//!
//! ```text
//!   calls of a thread:   launch  read  launch* read   launch  read*       * timed
//!                        └─── a ───┘   └─── b ───┘                        b − a: what a launch's event takes
//! ```
//! The median of the last differences is what a command's timing takes, if so many are above 0 that chance does not
//! explain it; else it is nothing. What a program does between its calls is not in it, nor what a driver does later, in
//! calls that wait.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use hetrace_ring::abi::COMMAND_KINDS;

use crate::budget;
use crate::call::OwnWork;
use crate::thread::recording;

/// Differences that are kept.
const KEPT: usize = 32;
/// So many there must be.
const ENOUGH: u32 = 16;
/// They are looked through with every so many.
const EACH: u32 = 8;
/// Commands of a kind that may go without times to learn it. Where the next command is always timed there is never a
/// difference, and nothing is known for ever.
const TRIES: u32 = 256;
/// No call takes so many ticks longer for this: it waited for something else.
const MOST: i64 = 1 << 20;

/// What is known of commands of a kind.
struct Kind {
    /// Ticks of the last call whose command was not timed; 0 if there was none.
    untimed: AtomicU32,
    /// For how many commands it was asked whether some are to go without times.
    tries: AtomicU32,
    /// How many differences there were.
    seen: AtomicU32,
    /// The last ones, in ticks.
    differences: [AtomicI32; KEPT],
    /// What timing a command takes, in ticks.
    extra: AtomicU32,
}

impl Kind {
    const fn new() -> Self {
        Self {
            untimed: AtomicU32::new(0),
            tries: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            differences: [const { AtomicI32::new(0) }; KEPT],
            extra: AtomicU32::new(0),
        }
    }

    /// A call took so many ticks, with the call after it.
    fn add(&self, is_timed: bool, ticks: u64) {
        let ticks = u32::try_from(ticks).unwrap_or(u32::MAX).max(1);
        if !is_timed {
            self.untimed.store(ticks, Ordering::Relaxed);
            return;
        }
        // Taken: two in a row would be compared with the same one.
        let untimed = self.untimed.swap(0, Ordering::Relaxed);
        if untimed == 0 {
            return;
        }
        let difference = (i64::from(ticks) - i64::from(untimed)).clamp(-MOST, MOST);
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.differences.get(seen as usize % KEPT) {
            place.store(difference as i32, Ordering::Relaxed);
        }
        let seen = seen.wrapping_add(1);
        if seen.is_multiple_of(EACH) && seen >= ENOUGH {
            let mut kept = [0; KEPT];
            for (to, from) in kept.iter_mut().zip(&self.differences) {
                *to = from.load(Ordering::Relaxed);
            }
            let known = kept.get_mut(..KEPT.min(seen as usize)).unwrap_or_default();
            self.extra.store(typical(known), Ordering::Relaxed);
        }
    }

    /// Whether enough is known, or was tried.
    fn is_known(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= ENOUGH || self.tries.fetch_add(1, Ordering::Relaxed) >= TRIES
    }
}

/// The median of differences; 0 if fewer than three of four are above 0, which calls that do the same come to by chance in one
/// of 26 times with [`ENOUGH`] of them, and in one of 280 with all that are kept.
fn typical(differences: &mut [i32]) -> u32 {
    differences.sort_unstable();
    let at = |part: usize| differences.get(differences.len() * part / 4).copied().unwrap_or(0);
    if at(1) <= 0 { 0 } else { at(2).max(0).cast_unsigned() }
}

static KINDS: [Kind; COMMAND_KINDS.len()] = [const { Kind::new() }; COMMAND_KINDS.len()];

/// Whether it is known what timing commands of a kind takes, or not worth further commands without times. To be asked for
/// each command that may go without.
pub(super) fn is_known(kind: u8) -> bool {
    KINDS.get(usize::from(kind)).is_none_or(Kind::is_known)
}

/// Runs the call that enqueues a command of a kind, which is not timed.
#[inline]
pub fn untimed<R>(kind: u8, call: impl FnOnce() -> R) -> R {
    if !budget::is_limited() {
        return call();
    }
    let before = hetrace_ring::clock::ticks();
    let result = call();
    took(kind, false, hetrace_ring::clock::ticks().wrapping_sub(before));
    result
}

/// A call has enqueued a command of a kind that is timed, where not all are. Charges what that takes.
#[inline]
pub fn timed(kind: u8, work: &OwnWork) {
    if !budget::is_limited() {
        return;
    }
    took(kind, true, work.took());
    let extra = KINDS.get(usize::from(kind)).map_or(0, |known| known.extra.load(Ordering::Relaxed));
    budget::driver_took(extra.into());
}

/// A call of this thread took so many ticks; with it the one before is complete.
fn took(kind: u8, is_timed: bool, ticks: u64) {
    let Some(writer) = recording() else { return };
    let last = writer.meter.replace_last_command(pack(kind, is_timed, ticks));
    if let Some((kind, was_timed, before)) = unpack(last)
        && !is_timed
        && let Some(known) = KINDS.get(usize::from(kind))
    {
        known.add(was_timed, before.saturating_add(ticks));
    }
}

/// A call in a word: bit 0 says that there is one, bit 1 that its command is timed, eight the kind.
fn pack(kind: u8, is_timed: bool, ticks: u64) -> u64 {
    ticks.min(u32::MAX.into()) << 16 | u64::from(kind) << 8 | u64::from(is_timed) << 1 | 1
}

fn unpack(word: u64) -> Option<(u8, bool, u64)> {
    (word & 1 != 0).then_some(((word >> 8) as u8, word & 2 != 0, word >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hetrace_ring::writer::Meter;

    /// Numbers without a rhythm, below `most`.
    fn noise(state: &mut u64, most: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % most
    }

    /// A thousand calls of some 4000 ticks, of which one in four is timed and takes `extra` more.
    fn learned(extra: u64, scatter: u64) -> u32 {
        let (kind, mut state) = (Kind::new(), 7);
        for _ in 0..1000 {
            let is_timed = noise(&mut state, 4) == 0;
            // One in twenty is interrupted.
            let slice = if noise(&mut state, 20) == 0 { 5_000_000 } else { 0 };
            let ticks = 4000 + noise(&mut state, scatter) + slice + if is_timed { extra } else { 0 };
            kind.add(is_timed, ticks);
        }
        kind.extra.load(Ordering::Relaxed)
    }

    #[test]
    fn what_a_driver_takes_for_timing_is_found_beside_interruptions() {
        for extra in [2000, 20_000] {
            let found = u64::from(learned(extra, 600));
            assert!(found.abs_diff(extra) <= 400, "{found} for {extra}");
        }
    }

    #[test]
    fn nothing_is_charged_where_timed_calls_take_no_longer() {
        for scatter in [1, 600, 4000] {
            assert_eq!(learned(0, scatter), 0, "{scatter}");
        }
    }

    /// Of two phases with other calls only neighbours are compared.
    #[test]
    fn a_phase_of_longer_calls_is_no_cost_of_timing() {
        let kind = Kind::new();
        for phase in [3000, 90_000, 8000] {
            for call in 0..400u64 {
                kind.add(call % 16 == 15, phase + call % 7);
            }
            assert!(kind.extra.load(Ordering::Relaxed) < 10, "{phase}");
        }
    }

    /// What a thread under a budget of 2 % spends, in parts per million, ours and the driver's, with a driver that takes
    /// `extra` ticks longer for the call of a timed command; and how many commands were not timed.
    fn under_a_budget(apart: u64, extra: u64, is_learned: bool) -> (u64, u64) {
        const OWN: u64 = 500;
        const PPM: u32 = 20_000;
        let (meter, kind) = (Meter::new(), Kind::new());
        let (mut state, mut now, mut charged, mut spent, mut untimed, mut last) = (7, 1000, 0, 0, 0, None);
        meter.begin(now, 1 << 17, 0);
        for counted in 1..200_000 {
            if meter.count() {
                meter.note_commands(now, PPM, counted);
                meter.look(now, PPM, charged);
            }
            let one_in = match meter.step().one_in {
                1 if is_learned && meter.is_pressed() && !kind.is_known() => budget::LEARNING.into(),
                one_in => u64::from(one_in),
            };
            let is_timed = noise(&mut state, one_in) == 0;
            let ticks = 10_000 + noise(&mut state, 600) + if is_timed { extra } else { 0 };
            now += apart + ticks;
            if let Some((was_timed, before)) = last.replace((is_timed, ticks))
                && !is_timed
            {
                kind.add(was_timed, before + ticks);
            }
            if is_timed {
                now += OWN;
                spent += OWN + extra;
                charged += OWN + if is_learned { u64::from(kind.extra.load(Ordering::Relaxed)) } else { 0 };
            } else {
                untimed += 1;
            }
        }
        (spent * 1_000_000 / now, untimed)
    }

    #[test]
    fn a_budget_is_kept_by_what_was_learned() {
        // Two commands an iteration, of which a driver makes 12 µs more where both are timed.
        let (unlearned, all_timed) = under_a_budget(30_000, 18_000, false);
        assert!(unlearned > 200_000 && all_timed == 0, "what we spend alone is within it: {unlearned}");
        let (learned, _) = under_a_budget(30_000, 18_000, true);
        assert!(learned < 24_000, "{learned}");
    }

    #[test]
    fn a_driver_that_takes_nothing_costs_some_times_of_commands_once() {
        let (spent, untimed) = under_a_budget(30_000, 0, true);
        assert!(spent < 20_000 && (1..200).contains(&untimed), "{spent} {untimed}");
        assert_eq!(under_a_budget(5_000_000, 18_000, true).1, 0, "few commands are all timed");
    }

    #[test]
    fn too_few_say_nothing() {
        let kind = Kind::new();
        for _ in 0..ENOUGH - 1 {
            kind.add(false, 1000);
            kind.add(true, 9000);
        }
        assert_eq!((kind.is_known(), kind.extra.load(Ordering::Relaxed)), (false, 0));
        kind.add(false, 1000);
        kind.add(true, 9000);
        assert_eq!((kind.is_known(), kind.extra.load(Ordering::Relaxed)), (true, 8000));
        // One without a neighbour says nothing.
        kind.add(true, 900_000);
        assert_eq!(kind.seen.load(Ordering::Relaxed), ENOUGH);
    }

    #[test]
    fn what_is_never_learned_is_not_tried_for_ever() {
        let kind = Kind::new();
        // The call behind each of its calls is a timed command's, so that there is never a difference.
        let without_times = (0..100_000).filter(|_| !kind.is_known()).count();
        assert_eq!(without_times, TRIES as usize);
    }

    #[test]
    fn a_call_is_kept_in_a_word() {
        assert_eq!(unpack(pack(7, true, 1234)), Some((7, true, 1234)));
        assert_eq!(unpack(pack(0, false, u64::MAX)), Some((0, false, u32::MAX.into())));
        assert_eq!(unpack(0), None);
    }
}
