//! Device clocks to host time, from inequalities (the convex hull
//! method; see Couturier and Dagenais, "LTTng CLUST", 2015, §3.4).
//!
//! Few APIs report how the device's clock relates to the host's. But a command is
//! queued *after* the call that enqueues it began, and was over *before* its
//! completion was seen. Each such pair is a constraint on the device's clock;
//! together they leave a narrow band of straight lines, whose middle is used
//! and whose half-width is the error we state. This is the convex-hull method
//! of trace synchronization, streaming.
//!
//! ```text
//! clock.lower(queued, enqueue_call_begin);
//! clock.upper(end, completion_seen);
//! let start = clock.to_host(device_start);   // ± clock.error_ns()
//! ```
//!
//! No line fits for ever: wall clocks are stepped, NTP changes rates. When the
//! evidence says so three times over, a new epoch begins, with a line of its
//! own; one wrong value from a driver does not make an epoch.

use std::collections::VecDeque;

pub use super::band::Line;
use super::band::{Band, Evidence, Kind};

/// So many contradictions that agree with each other begin a new epoch.
const SUSPECTS: usize = 3;
/// How much evidence is remembered, to build a new epoch from.
const RECENT: usize = 128;
/// Evidence after which the line is remembered anew: finding it takes longer than all else.
const SNAPSHOT: usize = 16;
/// Lines of past epochs kept; earlier ones are forgotten, but counted.
const MAX_CLOSED: usize = 1024;
/// A contradiction by less than this is a clock that bends, not one that was set.
const BEND_NS: u64 = 100_000;

/// The relation of one device's clock to `CLOCK_MONOTONIC`.
///
/// Device times are nanoseconds with any base. Evidence may come in any order.
#[derive(Clone, Debug)]
pub struct DeviceClock {
    resolution_ns: u32,
    /// Past epochs, oldest first.
    closed: VecDeque<Epoch>,
    /// Device time at which the current epoch begins.
    start: u64,
    band: Band,
    /// What contradicts the current epoch agrees with this one so far.
    next: Band,
    suspects: Vec<Evidence>,
    /// Latest evidence in order of arrival, each with a line from before it.
    recent: VecDeque<(Evidence, Option<Line>)>,
    /// The line that `recent` has last, and how much evidence came since.
    remembered: (Option<Line>, usize),
    /// How many of `recent` arrived since the first of `suspects`.
    since_suspect: usize,
    epochs: usize,
    rejected: u64,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    line: Line,
}

impl Default for DeviceClock {
    fn default() -> Self {
        Self::new()
    }
}

impl DeviceClock {
    /// Returns a clock with a resolution of one nanosecond.
    #[must_use]
    pub fn new() -> Self {
        Self::with_resolution(1)
    }

    /// Returns a clock whose values are multiples of `resolution_ns` (0 counts as 1),
    /// rounded somehow: all evidence is loosened by that much.
    /// (`CL_DEVICE_PROFILING_TIMER_RESOLUTION` and the like.)
    #[must_use]
    pub fn with_resolution(resolution_ns: u32) -> Self {
        let resolution_ns = resolution_ns.max(1);
        Self {
            resolution_ns,
            closed: VecDeque::new(),
            start: 0,
            band: Band::new(resolution_ns),
            next: Band::new(resolution_ns),
            suspects: Vec::new(),
            recent: VecDeque::new(),
            remembered: (None, 0),
            since_suspect: 0,
            epochs: 1,
            rejected: 0,
        }
    }

    /// Device time `dev` was at host time `host` or later: `host` is when the
    /// enqueue call began, `dev` when the device says that it was queued.
    pub fn lower(&mut self, dev: u64, host: u64) {
        self.take(Evidence { dev, host, kind: Kind::Lower });
    }

    /// Device time `dev` was at host time `host` or earlier: `host` is when the
    /// completion was seen (or the enqueue call had returned), `dev` the end
    /// (or the queued time).
    pub fn upper(&mut self, dev: u64, host: u64) {
        self.take(Evidence { dev, host, kind: Kind::Upper });
    }

    /// Both clocks were read together (`clGetDeviceAndHostTimer`): `dev` was at
    /// `host`, give or take `uncertainty_ns`.
    pub fn direct(&mut self, dev: u64, host: u64, uncertainty_ns: u64) {
        self.lower(dev, host.saturating_sub(uncertainty_ns));
        self.upper(dev, host.saturating_add(uncertainty_ns));
    }

    /// Returns whether the current epoch has evidence on both sides. Until then
    /// [`DeviceClock::to_host`] is a guess with an unbounded error.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.band.line().is_some_and(|line| line.is_known())
    }

    /// Returns the host time of `dev`, in `CLOCK_MONOTONIC` nanoseconds, saturating.
    ///
    /// With evidence on one side only it is the tightest value that satisfies
    /// it; without any, `dev` itself.
    #[must_use]
    pub fn to_host(&self, dev: u64) -> u64 {
        self.line_at(dev).map_or(dev, |line| line.to_host(dev))
    }

    /// Returns how far [`DeviceClock::to_host`] may be off at `dev`: the half-width of
    /// the band, growing outside of the observed range. `u64::MAX` if unknown.
    #[must_use]
    pub fn error_at(&self, dev: u64) -> u64 {
        self.line_at(dev).map_or(u64::MAX, |line| line.error_at(dev))
    }

    /// Returns how far [`DeviceClock::to_host`] may be off within the observed range,
    /// in nanoseconds: the worst of all epochs that are known; `u64::MAX` if
    /// none is.
    #[must_use]
    pub fn error_ns(&self) -> u64 {
        self.lines().filter(Line::is_known).map(|line| line.error_ns).max().unwrap_or(u64::MAX)
    }

    /// Returns how many epochs there were: one more than the clock was found stepped
    /// or bent.
    #[must_use]
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// Returns how much evidence fitted nowhere and was left out; also what came with
    /// the device time 0, which stands for none.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Returns the lines of the epochs, oldest first, at most the last 1,025.
    pub fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.closed.iter().map(|epoch| epoch.line).chain(self.band.line())
    }

    /// Returns the line in force at `dev`: of the newest epoch that has begun by then.
    fn line_at(&self, dev: u64) -> Option<Line> {
        if dev >= self.start || self.closed.is_empty() {
            return self.band.line();
        }
        self.closed_at(dev).map(|epoch| epoch.line)
    }

    fn closed_at(&self, dev: u64) -> Option<&Epoch> {
        self.closed.iter().rev().find(|epoch| epoch.start <= dev).or(self.closed.front())
    }

    fn take(&mut self, e: Evidence) {
        // What drivers give for a time they do not have.
        if e.dev == 0 {
            self.rejected += 1;
            return;
        }
        let line = self.line_before();
        self.recent.push_back((e, line));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        if !self.suspects.is_empty() {
            self.since_suspect = (self.since_suspect + 1).min(self.recent.len());
        }
        // Late news from a past epoch: closed, but it may vouch for it.
        let before = e.dev < self.start;
        if before && self.closed_at(e.dev).is_some_and(|epoch| agrees(&epoch.line, e)) {
            return;
        }
        if self.band.offer(e).is_err() {
            return self.suspect(e);
        }
        if before {
            // It contradicts the epoch before, so that one was over by then.
            self.start = e.dev;
        }
        if !self.suspects.is_empty() && !self.next.admits(e) {
            // The current epoch can explain it and the suspects cannot.
            self.dismiss();
        }
    }

    /// Returns the current epoch's line, or one that is a little older: as true, and perhaps a little wider.
    fn line_before(&mut self) -> Option<Line> {
        let (line, age) = &mut self.remembered;
        *age += 1;
        if *age >= SNAPSHOT || !line.is_some_and(|line| line.is_known()) {
            self.remembered = (self.band.line(), 0);
        }
        self.remembered.0
    }

    /// Evidence against the current epoch: either it is wrong, or the epoch is over.
    fn suspect(&mut self, e: Evidence) {
        if self.next.offer(e).is_err() {
            self.dismiss();
            // A single piece of evidence contradicts nothing.
            let _ = self.next.offer(e);
        }
        if self.suspects.is_empty() {
            self.since_suspect = 1;
        }
        self.suspects.push(e);
        if self.suspects.len() >= SUSPECTS {
            self.begin_epoch();
        }
    }

    fn dismiss(&mut self) {
        self.rejected += self.suspects.len() as u64;
        self.suspects.clear();
        self.next = Band::new(self.resolution_ns);
    }

    fn begin_epoch(&mut self) {
        let mut band = std::mem::replace(&mut self.next, Band::new(self.resolution_ns));
        let suspects = std::mem::take(&mut self.suspects);
        let first = suspects.iter().map(|e| e.dev).min().unwrap_or(self.start);
        // Only what is surely from after the change may count for the new
        // epoch: older evidence, even if it does not contradict, may be false.
        let older = self.recent.len() - self.since_suspect;
        for &(e, _) in self.recent.iter().skip(older).filter(|(e, _)| e.dev >= first) {
            if band.offer(e).is_err() {
                self.rejected += 1;
            }
        }
        let start = self.change_before(first, &band);
        // Nor may evidence from after the change count for the old epoch,
        // though it was taken: go back to the line from before it.
        let changed = self.recent.iter().find(|(e, _)| e.dev >= start);
        if let Some(mut line) = changed.map_or(self.band.line(), |(_, line)| *line) {
            line.error_ns = line.error_ns.max(bend(&line, &suspects));
            self.closed.push_back(Epoch { start: self.start, line });
        }
        if self.closed.len() > MAX_CLOSED {
            self.closed.pop_front();
        }
        self.start = start;
        self.band = band;
        self.remembered = (None, 0);
        self.since_suspect = 0;
        self.epochs += 1;
    }

    /// Returns where the epoch of `band` begins, given its first proof: after the
    /// latest evidence that it cannot explain. What lies in between fits both;
    /// clocks are most likely to have changed in the longest time without any.
    fn change_before(&self, first: u64, band: &Band) -> u64 {
        let earlier = || self.recent.iter().map(|(e, _)| *e).filter(|e| e.dev <= first);
        let Some(unexplained) = earlier().filter(|&e| !band.admits(e)).map(|e| e.dev).max() else {
            return first;
        };
        let mut between: Vec<u64> = earlier().map(|e| e.dev).filter(|&d| d >= unexplained).collect();
        between.sort_unstable();
        between.windows(2).max_by_key(|w| w[1] - w[0]).map_or(first, |w| w[1])
    }
}

/// Returns whether the evidence is within the line's error.
fn agrees(line: &Line, e: Evidence) -> bool {
    line.is_known() && excess(line, e) == 0
}

/// By how much the evidence contradicts the line, beyond the line's error.
fn excess(line: &Line, e: Evidence) -> u64 {
    let host = line.to_host(e.dev);
    let by = match e.kind {
        Kind::Lower => e.host.saturating_sub(host),
        Kind::Upper => host.saturating_sub(e.host),
    };
    by.saturating_sub(line.error_at(e.dev))
}

/// Returns what a bent clock adds to the error of the epoch it ends.
///
/// Just before bending evidence becomes a contradiction, it makes the band very
/// narrow, and the error looks smaller than it is.
fn bend(line: &Line, suspects: &[Evidence]) -> u64 {
    let by = suspects.iter().map(|&e| excess(line, e).saturating_add(line.error_ns)).max().unwrap_or(0);
    if by < BEND_NS { by } else { 0 }
}

#[cfg(test)]
mod tests;
