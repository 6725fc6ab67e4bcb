//! Raw TSC counts to `CLOCK_MONOTONIC` nanoseconds.
//!
//! Traced threads read only the TSC. The drainer reads TSC and
//! `CLOCK_MONOTONIC` together a few times a second, and [`HostClock`] strings
//! these [`ReferencePoint`]s into one piecewise-linear function. What binds it:
//!
//! * **Continuous and never decreasing**, so events keep their order.
//! * **Stable.** [`HostClock::add`] changes nothing at or before the TSC of the
//!   point it is given. An event converted before the next point was read
//!   keeps its time for ever, because that point's TSC is later.
//! * **No jump.** The error found at a point is worked off by a slightly
//!   different slope over the following period. That correction ends at a
//!   place fixed in advance: a drainer that comes late does not overshoot.
//!
//! A counter that runs backwards (reset by a deep suspend) cannot be
//! represented; such points are ignored and counted.

use std::collections::VecDeque;

/// Fraction bits of [`Segment::mult`]: 2⁻⁴⁸ ns per tick is 4 ps over an hour at
/// 4 GHz, and the 16 bits that remain still hold the ticks of a 16 kHz counter.
pub const MULT_SHIFT: u32 = 48;

/// Slope changes for correction stay within this, so that durations stay true.
const CORRECTION_PPM: i128 = 500;
/// A deviation beyond this is a step (suspend, migration), not drift.
const STEP_NS: u128 = 1_000_000;
/// While the segment in force stays this close, it is kept: fewer segments.
const KEEP_NS: i128 = 100;
/// The frequency is measured over this span: at 300 ns per reading that is
/// 0.6 ppm of noise, 60 ns until the next point.
const WINDOW_NS: u64 = 1_000_000_000;
/// Below this span a measured frequency would be mostly noise.
const MIN_SPAN_NS: u64 = 10_000_000;
/// A reading this certain is always worth taking.
const GOOD_READING_NS: u64 = 500;

/// One simultaneous reading of the counter and of the system's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferencePoint {
    /// The counter, in ticks.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC` at that count, in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` at that count, in nanoseconds since 1970.
    pub realtime_ns: u64,
    /// How far `monotonic_ns` may be from the truth at `tsc`: half the time
    /// between the two TSC reads around the clock read. Large when the reader
    /// was preempted in between.
    pub uncertainty_ns: u32,
}

/// One straight piece: from `tsc` until the next segment's `tsc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First count of the segment.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC` nanoseconds at `tsc`.
    pub ns: u64,
    /// Nanoseconds per tick, times 2^[`MULT_SHIFT`].
    pub mult: u64,
}

impl Segment {
    /// Returns the slope, in nanoseconds per tick.
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        self.mult as f64 / (1u64 << MULT_SHIFT) as f64
    }

    /// This segment's line at `tsc`, also outside of the segment.
    #[inline]
    fn at(&self, tsc: u64) -> u64 {
        if tsc >= self.tsc {
            self.ns.saturating_add(scale(tsc - self.tsc, self.mult))
        } else {
            self.ns.saturating_sub(scale(self.tsc - tsc, self.mult))
        }
    }
}

/// What [`HostClock::add`] made of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The clock agrees with the point within 100 ns and will for another
    /// period: no new segment.
    Kept,
    /// A new segment begins at the point.
    Steered,
    /// More than a millisecond off: the clock now catches up, fast if it is
    /// behind, by running at a sixteenth of its speed if it is ahead.
    Stepped,
    /// Too uncertain, or not later than the point before.
    Ignored,
}

/// A stable, continuous, never decreasing map from TSC to `CLOCK_MONOTONIC`.
#[derive(Clone, Debug)]
pub struct HostClock {
    /// Ascending by `tsc`, never empty. The last one may begin in the future:
    /// there the pending correction ends.
    segments: Vec<Segment>,
    /// Measured nanoseconds per tick, scaled like [`Segment::mult`].
    rate: u64,
    /// `(tsc, ns)` of recent points, oldest first; the rate is measured from it.
    window: VecDeque<(u64, u64)>,
    last: ReferencePoint,
    error_ns: u64,
    ignored: u64,
    steps: u64,
}

impl HostClock {
    /// Returns a clock through two points, in either order. The further apart they are
    /// the better its first rate: with readings good to 300 ns, points 100 ms
    /// apart leave up to 6 ppm. Counts before the first point are extrapolated
    /// back. Two points at the same count give 1 ns per tick.
    #[must_use]
    pub fn new(p0: ReferencePoint, p1: ReferencePoint) -> Self {
        let (p0, p1) = if p0.tsc <= p1.tsc { (p0, p1) } else { (p1, p0) };
        let rate =
            rate_between((p0.tsc, p0.monotonic_ns), (p1.tsc, p1.monotonic_ns)).unwrap_or(1 << MULT_SHIFT);
        Self {
            segments: vec![Segment { tsc: p0.tsc, ns: p0.monotonic_ns, mult: rate }],
            rate,
            window: VecDeque::from([(p0.tsc, p0.monotonic_ns), (p1.tsc, p1.monotonic_ns)]),
            last: p1,
            error_ns: u64::from(p0.uncertainty_ns.max(p1.uncertainty_ns)),
            ignored: 0,
            steps: 0,
        }
    }

    /// Takes a newer reading. Times at or before `p.tsc` do not change.
    ///
    /// A point is worth taking only if it says more than the running clock
    /// already knows: it is ignored when its uncertainty exceeds 500 ns plus
    /// what the clock may have wandered since the last point (20 ppm). A
    /// machine that never gives good readings thus still gets some, rarely.
    pub fn add(&mut self, p: ReferencePoint) -> Added {
        if p.tsc <= self.last.tsc || p.monotonic_ns < self.last.monotonic_ns {
            self.ignored += 1;
            return Added::Ignored;
        }
        let elapsed = p.monotonic_ns - self.last.monotonic_ns;
        if u64::from(p.uncertainty_ns) > GOOD_READING_NS + elapsed / 50_000 {
            self.ignored += 1;
            return Added::Ignored;
        }
        self.last = p;
        let at = self.to_ns(p.tsc);
        let error = i128::from(p.monotonic_ns) - i128::from(at);
        let deviation = u64::try_from(error.unsigned_abs()).unwrap_or(u64::MAX);
        let honest = deviation.saturating_add(u64::from(p.uncertainty_ns));
        self.error_ns = self.error_ns.max(honest);

        let step = error.unsigned_abs() > STEP_NS;
        // Still on the way after a step: that is not another one.
        self.steps += u64::from(step && self.window.len() > 1);
        self.measure_rate(p, step);
        // The next point is expected as late as this one was.
        let period_ns = elapsed.clamp(MIN_SPAN_NS, WINDOW_NS);
        if !step && error.abs() <= KEEP_NS && self.stays_close(p, period_ns) {
            return Added::Kept;
        }
        self.steer(p.tsc, at, error, period_ns);
        if step { Added::Stepped } else { Added::Steered }
    }

    /// `CLOCK_MONOTONIC` nanoseconds at `tsc`; one multiplication when `tsc`
    /// lies in the newest segments. Saturates at both ends of the range.
    #[inline]
    #[must_use]
    pub fn to_ns(&self, tsc: u64) -> u64 {
        // The newest may begin in the future, so the two newest are "current".
        for segment in self.segments.iter().rev().take(2) {
            if tsc >= segment.tsc {
                return segment.at(tsc);
            }
        }
        let after = self.segments.partition_point(|s| s.tsc <= tsc);
        self.segments[after.saturating_sub(1)].at(tsc)
    }

    /// Returns the largest distance between this clock and a reading of the real one
    /// so far, the reading's own uncertainty included, in nanoseconds.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// Returns the pieces held, oldest first: with them anyone can convert again. The
    /// last one may begin later than the newest point.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Drops segments that end at or before `tsc`, to bound memory in endless
    /// sessions; says how many. Earlier counts are extrapolated from then on,
    /// so promise that none will come.
    pub fn forget_before(&mut self, tsc: u64) -> usize {
        let after = self.segments.partition_point(|s| s.tsc <= tsc);
        self.segments.drain(..after.saturating_sub(1)).count()
    }

    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` at the newest point taken, in
    /// nanoseconds: add it to a converted time for wall time. It changes when
    /// somebody sets the clock.
    #[must_use]
    pub fn wall_offset_ns(&self) -> i64 {
        // Wraps only for clocks more than 292 years apart.
        self.last.realtime_ns.wrapping_sub(self.last.monotonic_ns) as i64
    }

    /// Returns how many points were ignored.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns how many steps (deviations of more than a millisecond) were seen.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn measure_rate(&mut self, p: ReferencePoint, step: bool) {
        let now = (p.tsc, p.monotonic_ns);
        let oldest = self.window[0];
        // Across a step the mean rate means nothing. But two steps in a row
        // with nothing between them are a new rate (a fast slew by chrony).
        let usable = !step || self.window.len() == 1;
        if usable && now.1 - oldest.1 >= MIN_SPAN_NS {
            self.rate = rate_between(oldest, now).unwrap_or(self.rate);
        }
        if step {
            self.window.clear();
        }
        // A sparse window: callers may add as often as they like.
        if self.window.back().is_none_or(|b| now.1 - b.1 >= WINDOW_NS / 32) {
            self.window.push_back(now);
        }
        while self.window.len() > 1 && now.1 - self.window[1].1 >= WINDOW_NS {
            self.window.pop_front();
        }
    }

    /// Returns whether what is planned already will still agree one period later.
    fn stays_close(&self, p: ReferencePoint, period_ns: u64) -> bool {
        let ticks = ticks(period_ns, self.rate);
        let truth = i128::from(p.monotonic_ns) + i128::from(scale(ticks, self.rate));
        let planned = i128::from(self.to_ns(p.tsc.saturating_add(ticks)));
        (truth - planned).abs() <= KEEP_NS
    }

    /// From `(tsc, at)` on, works off `error`, then goes on at the measured rate.
    fn steer(&mut self, tsc: u64, at: u64, error: i128, period_ns: u64) {
        let rate = i128::from(self.rate);
        let scaled = error << MULT_SHIFT;
        let extra = if error.unsigned_abs() <= STEP_NS {
            let limit = rate * CORRECTION_PPM / 1_000_000;
            (scaled / i128::from(ticks(period_ns, self.rate))).clamp(-limit, limit)
        } else if error > 0 {
            (scaled / i128::from(ticks(1_000_000, self.rate))).min(rate * 999)
        } else {
            // Time cannot run backwards; it can wait, without losing the order.
            -(rate * 15 / 16)
        };
        let mult = u64::try_from((rate + extra).max(1)).unwrap_or(u64::MAX);
        // An end still to come of the correction before is void now.
        while self.segments.last().is_some_and(|s| s.tsc >= tsc) {
            self.segments.pop();
        }
        let correction = Segment { tsc, ns: at, mult };
        self.segments.push(correction);
        let extra = i128::from(mult) - rate;
        if extra != 0 {
            let length = u64::try_from((scaled / extra).max(1)).unwrap_or(u64::MAX);
            let end = tsc.saturating_add(length);
            self.segments.push(Segment { tsc: end, ns: correction.at(end), mult: self.rate });
        }
    }
}

/// `ticks × mult`, in nanoseconds rounded down, saturating.
#[inline]
fn scale(ticks: u64, mult: u64) -> u64 {
    let ns = (u128::from(ticks) * u128::from(mult)) >> MULT_SHIFT;
    if ns > u128::from(u64::MAX) { u64::MAX } else { ns as u64 }
}

/// Returns how many ticks of `rate` make `ns`; at least one.
fn ticks(ns: u64, rate: u64) -> u64 {
    u64::try_from((u128::from(ns) << MULT_SHIFT) / u128::from(rate.max(1))).map_or(u64::MAX, |t| t.max(1))
}

/// Returns the scaled rate from one `(tsc, ns)` to a later one; `None` if it has none.
fn rate_between(from: (u64, u64), to: (u64, u64)) -> Option<u64> {
    let ticks = to.0.checked_sub(from.0).filter(|&t| t > 0)?;
    let ns = to.1.checked_sub(from.1).filter(|&n| n > 0)?;
    let rate = (u128::from(ns) << MULT_SHIFT) / u128::from(ticks);
    Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests;
