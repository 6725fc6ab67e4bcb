//! One epoch of a device clock: all straight lines that the evidence admits.
//!
//! A line is written `host = h0 + x + a + b·x` with `x = dev − d0`: device
//! clocks count nanoseconds too, so only the residual `a + b·x` is unknown, it
//! stays small, and `f64` holds it to a fraction of a nanosecond. The line must
//! pass above every `lower` point and below every `upper` one:
//!
//! ```text
//!   host−dev │  ▾      ▾         ▾      uppers: completion seen, after the end
//!            │   ‾‾──__▾___--‾‾‾‾       their lower hull
//!            │  ═══════════════════     the line, in the middle
//!            │  __--‾‾▴‾‾──__           their upper hull
//!            │ ▴         ▴     ▴        lowers: enqueue began, before queued
//!            └───────────────────── dev
//! ```
//!
//! The admitted slopes are an interval: for every lower `l` and upper `u`,
//! `(l.y − u.y) / (l.x − u.x)` bounds the slope from below if `l` is the later
//! one, from above if it is the earlier. It only ever shrinks, so it is kept
//! incrementally, and it survives the pruning of the hulls.

use std::cell::Cell;

use super::hull::{Hull, LIMIT, Point};

/// Device clocks may be off by this much at most: four times what any crystal
/// is, and what NTP may slew the host's clock by.
const MAX_DRIFT: f64 = 500e-6;

/// One inequality about the device clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) dev: u64,
    pub(super) host: u64,
    pub(super) kind: Kind,
}

/// On which side of the evidence the clock passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `to_host(dev) ≥ host`.
    Lower,
    /// `to_host(dev) ≤ host`.
    Upper,
}

/// A device clock's relation to host time, for one epoch.
///
/// `host_time = host + (dev_time − dev) · (1 + drift)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// First observed device time, in the device's nanoseconds.
    pub dev: u64,
    /// Host nanoseconds (`CLOCK_MONOTONIC`) at `dev`.
    pub host: u64,
    /// How much more than one host nanosecond a device nanosecond lasts.
    pub drift: f64,
    /// Last observed device time.
    pub dev_end: u64,
    /// Half-width of the admitted band from `dev` to `dev_end`, nanoseconds,
    /// or `u64::MAX` while there is evidence on one side only.
    pub error_ns: u64,
    /// How far `drift` may be off; outside of the observed range the error
    /// grows by this much per nanosecond.
    pub drift_error: f64,
}

/// Bits behind the point of a drift in integers. It is below 2^-10 ([`MAX_DRIFT`]), and times 2^64 fits 128 bits.
const SCALE: u32 = 60;

impl Line {
    /// Returns the host time of `dev`, never decreasing in `dev`, saturating.
    #[must_use]
    pub fn to_host(&self, dev: u64) -> u64 {
        let elapsed = i128::from(dev) - i128::from(self.dev);
        // In integers: of numbers beyond 2^53 a float knows not each, and a step could be longer than the time that goes by.
        let drift = (self.drift * (1u64 << SCALE) as f64) as i64;
        let correction = (elapsed * i128::from(drift) + (1 << (SCALE - 1))) >> SCALE;
        let host = i128::from(self.host) + elapsed + correction;
        u64::try_from(host.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns how far [`Line::to_host`] may be off at `dev`, in nanoseconds.
    #[must_use]
    pub fn error_at(&self, dev: u64) -> u64 {
        let outside = self.dev.saturating_sub(dev) + dev.saturating_sub(self.dev_end);
        let grown = (self.drift_error * outside as f64).ceil() as u64;
        self.error_ns.saturating_add(grown)
    }

    /// Returns whether there was evidence on both sides.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.error_ns != u64::MAX
    }
}

/// The evidence did not fit: no line within ±500 ppm satisfies all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

/// The set of admitted lines.
#[derive(Clone, Debug)]
pub(super) struct Band {
    /// What `x` and `y` are relative to: the first evidence.
    origin: Option<(u64, u64)>,
    /// Evidence is loosened by this: device times are rounded.
    slack: u32,
    lowers: Hull,
    /// With `y` negated, so that its upper hull is wanted here too.
    uppers: Hull,
    /// The largest `x` of all evidence, that of which the hulls know nothing included.
    last: i64,
    slope_min: f64,
    slope_max: f64,
    /// How high the least steep line above all lowers, and that below all uppers with `y` negated, is at `x = 0`;
    /// nothing if it has not been asked for since hulls or slopes changed.
    flattest: Cell<Option<[f64; 2]>>,
    /// [`Band::fit`] of all evidence; nothing if it has not been asked for since the last.
    line: Cell<Option<Line>>,
}

impl Band {
    pub(super) fn new(slack: u32) -> Self {
        Self {
            origin: None,
            slack,
            lowers: Hull::default(),
            uppers: Hull::default(),
            last: i64::MIN,
            slope_min: -MAX_DRIFT,
            slope_max: MAX_DRIFT,
            flattest: Cell::new(None),
            line: Cell::new(None),
        }
    }

    /// Returns the best line: `None` before any evidence.
    pub(super) fn line(&self) -> Option<Line> {
        // A command is several pieces of evidence, and asks once.
        if self.line.get().is_none() {
            self.line.set(self.fit());
        }
        self.line.get()
    }

    /// Takes the evidence, or leaves everything as it was.
    pub(super) fn offer(&mut self, e: Evidence) -> Result<(), Contradiction> {
        let (p, slopes) = self.weigh(e)?;
        if p.x > self.last {
            self.last = p.x;
            self.line.set(None);
        }
        let Some((slope_min, slope_max)) = slopes else {
            return Ok(());
        };
        self.origin.get_or_insert((e.dev, e.host));
        (self.slope_min, self.slope_max) = (slope_min, slope_max);
        match e.kind {
            Kind::Lower => self.lowers.insert(p),
            Kind::Upper => self.uppers.insert(p),
        }
        self.flattest.set(None);
        self.line.set(None);
        Ok(())
    }

    /// Returns whether [`Band::offer`] would take the evidence.
    pub(super) fn admits(&self, e: Evidence) -> bool {
        self.weigh(e).is_ok()
    }

    /// Returns the evidence as a point of its hull, and the slopes admitted with it;
    /// `None` for them if it says nothing new.
    fn weigh(&self, e: Evidence) -> Result<(Point, Option<(f64, f64)>), Contradiction> {
        let (d0, h0) = self.origin.unwrap_or((e.dev, e.host));
        let x = i128::from(e.dev) - i128::from(d0);
        let y = i128::from(e.host) - i128::from(h0) - x;
        let (own, other, y) = match e.kind {
            Kind::Lower => (&self.lowers, &self.uppers, y - i128::from(self.slack)),
            Kind::Upper => (&self.uppers, &self.lowers, -y - i128::from(self.slack)),
        };
        let limit = i128::from(LIMIT);
        if x.abs() > limit || y.abs() > limit {
            return Err(Contradiction);
        }
        let p = Point { x: x as i64, y: y as i64 };
        if self.holds_anyway(e.kind, p) || own.covers(p) {
            return Ok((p, None));
        }
        let (mut low, mut high) = (self.slope_min, self.slope_max);
        for q in other.vertices() {
            // Lower minus upper in y; the one that is negated adds up.
            let dy = (p.y + q.y) as f64;
            let dx = if e.kind == Kind::Lower { p.x - q.x } else { q.x - p.x };
            match dx {
                1.. => low = low.max(dy / dx as f64),
                0 if dy > 0.0 => return Err(Contradiction),
                0 => {}
                _ => high = high.min(dy / dx as f64),
            }
        }
        if low > high { Err(Contradiction) } else { Ok((p, Some((low, high)))) }
    }

    /// Returns whether every admitted line satisfies a point that is later than all others. So it stays, for
    /// lines are only ever taken away; and most evidence is such, as few delays are the shortest so far.
    fn holds_anyway(&self, kind: Kind, p: Point) -> bool {
        if p.x < self.last {
            return false;
        }
        let [lowers, uppers] = self.flattest();
        let (at_zero, slope) = match kind {
            Kind::Lower => (lowers, self.slope_min),
            Kind::Upper => (uppers, -self.slope_max),
        };
        // A nanosecond for what is lost in rounding.
        at_zero + slope * p.x as f64 >= p.y as f64 + 1.0
    }

    /// [`Band::flattest`]: most evidence changes nothing, and asks for no more than this.
    fn flattest(&self) -> [f64; 2] {
        let known = self.flattest.get().unwrap_or_else(|| {
            let (lowers, uppers) = (self.lowers.vertices(), self.uppers.vertices());
            [reach(lowers, self.slope_min, 0), reach(uppers, -self.slope_max, 0)]
        });
        self.flattest.set(Some(known));
        known
    }

    /// Returns the line whose largest error over the observed range is least.
    ///
    /// The error of a line is convex in `x`, hence largest at an end of the
    /// range. Seen as pairs (value at the first end, at the last end), the
    /// admitted lines are a convex polygon; the middle of its bounding box has
    /// the least largest error, and lies inside (a convex set that touches all
    /// four sides of a box contains its middle). At the first end all other
    /// points are later, so the least slope reaches highest there; and so on.
    fn fit(&self) -> Option<Line> {
        let (d0, h0) = self.origin?;
        let (lowers, uppers) = (self.lowers.vertices(), self.uppers.vertices());
        let ends = [lowers, uppers].into_iter().filter(|v| !v.is_empty());
        let first = ends.clone().map(|v| v[0].x).min()?;
        let last = ends.map(|v| v[v.len() - 1].x).max()?.max(self.last);
        let floor = |slope: f64, end: i64| reach(lowers, slope, end);
        let ceiling = |slope: f64, end: i64| -reach(uppers, -slope, end);
        let (start, drift, error_ns) = if lowers.is_empty() {
            (ceiling(0.0, first), 0.0, u64::MAX)
        } else if uppers.is_empty() {
            (floor(0.0, first), 0.0, u64::MAX)
        } else {
            let (low, high) = (self.slope_min, self.slope_max);
            let at_first = (floor(high, first), ceiling(low, first));
            let at_last = (floor(low, last), ceiling(high, last));
            let middle = |(a, b): (f64, f64)| a + (b - a) / 2.0;
            let half = (at_first.1 - at_first.0).max(at_last.1 - at_last.0) / 2.0;
            let start = middle(at_first);
            let drift = match last - first {
                0 => middle((low, high)),
                range => ((middle(at_last) - start) / range as f64).clamp(low, high),
            };
            // One more for the rounding to whole nanoseconds.
            (start, drift, half.max(0.0).ceil() as u64 + 1)
        };
        let absolute =
            |base: u64, offset: i128| u64::try_from((i128::from(base) + offset).max(0)).unwrap_or(u64::MAX);
        Some(Line {
            dev: absolute(d0, first.into()),
            host: absolute(h0, i128::from(first) + start.round() as i128),
            drift,
            dev_end: absolute(d0, last.into()),
            error_ns,
            drift_error: (self.slope_max - drift).max(drift - self.slope_min),
        })
    }
}

/// Returns the value at `x` of the lowest line of this slope above all the vertices.
fn reach(vertices: &[Point], slope: f64, x: i64) -> f64 {
    let at = |p: &Point| p.y as f64 - slope * (p.x as f64 - x as f64);
    vertices.iter().map(at).fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests;
