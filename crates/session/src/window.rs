//! Capture windows, from the launcher's side.
//!
//! ```text
//!   run --delay 5s ──► Asked ──► the control file's page: first, last, glob
//!                        │                │ a program comes to the first launch or range
//!     the clock, a signal└──► Windows ◄───┘ mask and log of flips: a Switch
//!                                ├──► capture-1: an event for each flip
//!                                └──► manifest: the windows
//! ```
//! Whoever opens or closes the window stores one mask, which all programs of the session read with each call, and logs
//! it. The launcher reads the log now and then; one that finishes the trace of a killed launcher goes on where that one
//! stopped reading.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hetrace_format::window::{Capture, CaptureBegin, CaptureEnd, STREAM, Window as Recorded};
use hetrace_ring::abi::window::{Cause, GLOB, LOG, reason, trigger};
use hetrace_ring::abi::{
    CONTROL_BYTES, COUNTS_OFFSET, Counts, REPORTED_BYTES, Switch, WINDOW_OFFSET, Window, flag,
};
use hetrace_ring::{Mapping, clock};

use crate::child::toggles;
use crate::manifest::Manifest;
use crate::output::{Identity, Stream, TraceFolder};
use crate::time::HostClock;

/// Longest glob of [`Asked::Ranges`], in bytes.
pub const LONGEST_GLOB: usize = GLOB - 1;

/// What opens and closes the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Time since the program's start.
    Time {
        /// When it opens.
        delay: Duration,
        /// How long it is open; none: to the end.
        duration: Option<Duration>,
    },
    /// Launches of kernels, counted from 0 over all processes: from the begin of the first to the begin of the one
    /// behind the last.
    Launches(Range<u64>),
    /// Ranges that the programs mark, counted from 0 over all processes: from the begin of the first to the end of
    /// the last.
    Ranges {
        /// Glob of their names.
        glob: String,
        /// Which.
        numbers: Range<u64>,
    },
    /// Launches or ranges, and no longer than a time after the window opened.
    Within {
        /// Which.
        asked: Box<Asked>,
        /// How long it is open at most.
        most: Duration,
    },
    /// A signal to the launcher opens it, and the next one closes it.
    Toggle(i32),
    /// The programs themselves, by calls for that (`hetrace_capture_start`, `hetrace_capture_stop`).
    Calls,
    /// Commands of the user's to the service.
    Commands,
}

impl Asked {
    /// Prepares the pages before any program has them.
    pub(crate) fn prepare(&self, window: &mut Window, counts: &mut Counts) {
        let mask = if self.is_open_at_start() { flag::INSIDE } else { flag::OUTSIDE };
        let numbers = match self {
            Asked::Time { .. } | Asked::Toggle(_) | Asked::Commands => {
                *window.switch.mask.get_mut() = mask;
                return;
            }
            Asked::Within { asked, .. } => return asked.prepare(window, counts),
            Asked::Calls => {
                window.trigger = trigger::CALLS;
                *counts.switch.mask.get_mut() = mask;
                return;
            }
            Asked::Launches(numbers) => {
                window.trigger = trigger::LAUNCHES;
                numbers
            }
            Asked::Ranges { glob, numbers } => {
                window.trigger = trigger::RANGES;
                for (place, byte) in window.glob.iter_mut().zip(glob.bytes().take(LONGEST_GLOB)) {
                    *place.get_mut() = byte;
                }
                numbers
            }
        };
        *counts.switch.mask.get_mut() = mask;
        (window.first, window.last) = (numbers.start, numbers.end);
    }

    /// Whether it is open from the program's first call on, without anything that opens it.
    fn is_open_at_start(&self) -> bool {
        matches!(self, Asked::Time { delay: Duration::ZERO, .. })
    }

    /// Whether calls of functions that launch kernels are counted.
    pub(crate) fn counts_launches(&self) -> bool {
        match self {
            Asked::Launches(_) => true,
            Asked::Within { asked, .. } => asked.counts_launches(),
            _ => false,
        }
    }

    /// How long a window may be open that programs open; none: as long as they have it.
    fn most(&self) -> Option<Duration> {
        if let Asked::Within { most, .. } = self { Some(*most) } else { None }
    }
}

/// The pages of a capture window: what the launcher says of it, and what programs count.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'p> {
    /// In the control file.
    pub window: &'p Window,
    /// Where programs write.
    pub counts: &'p Counts,
}

impl<'p> Pages<'p> {
    /// Those of a session's two files, mapped whole.
    pub(crate) fn of(control: &'p Mapping, reported: &'p Mapping) -> Self {
        assert!(control.length() >= CONTROL_BYTES && reported.length() >= REPORTED_BYTES, "mapped whole");
        // SAFETY: the page lies inside of the mapping, as was just made sure; valid for all bit patterns, and what others
        // change are atomics.
        let window = unsafe { &*control.base().add(WINDOW_OFFSET).cast::<Window>() };
        // SAFETY: inside of this mapping by the same assertion; valid for all bit patterns, and what others change are atomics.
        let counts = unsafe { &*reported.base().add(COUNTS_OFFSET).cast::<Counts>() };
        Pages { window, counts }
    }

    /// Returns the switch that programs look at.
    pub fn switch(&self) -> &'p Switch {
        self.window.switch(self.counts)
    }
}

/// The windows of a run.
#[derive(Debug)]
pub struct Windows {
    stream: Stream,
    report: Capture,
    /// What is still to be done, with when since the program's start; none if the programs do it.
    plan: Vec<(Duration, bool)>,
    toggle: bool,
    /// How long a window is open that the programs opened; none: until they close it.
    most: Option<Duration>,
    /// Flips that were overwritten before they were read.
    missed: u64,
    /// Signals that were taken.
    toggled: u32,
    started: Instant,
}

impl Windows {
    /// Those of a program that starts now; `started` is the counter's value before it, and `report` how the user asked
    /// for them.
    pub fn new(folder: &TraceFolder, asked: &Asked, page: &Switch, started: u64, report: Capture) -> Self {
        let mut plan = Vec::new();
        if let Asked::Time { delay, duration } = asked {
            plan.push((*delay, true));
            plan.extend(duration.map(|duration| (delay.saturating_add(duration), false)));
        }
        if asked.is_open_at_start() {
            page.open_once(started, by(reason::TIME));
            plan.remove(0);
        }
        let toggle = matches!(asked, Asked::Toggle(_));
        Windows { plan, toggle, most: asked.most(), ..Self::resume(folder, report) }
    }

    /// Those of a trace whose launcher was killed: the events of what it has read are in the trace, and its manifest lacks
    /// all.
    pub fn recover(folder: &TraceFolder, page: &Switch, host: &HostClock, report: Capture) -> Self {
        let mut windows = Self::resume(folder, report);
        let read = page.drained.load(Ordering::Relaxed);
        for number in read.saturating_sub(LOG as u32)..read {
            if let Some((ticks, open, cause)) = page.flip(number) {
                windows.note(host.to_ns(ticks), open, word(cause.reason));
            }
        }
        windows
    }

    fn resume(folder: &TraceFolder, report: Capture) -> Self {
        let mut stream = Stream::new(folder, "capture-1".to_owned(), STREAM, 1);
        let pid = std::process::id();
        let mut name = [0; 16];
        name[..NAME.len()].copy_from_slice(NAME);
        stream.identify(Identity { pid, tid: pid, name });
        Windows {
            stream,
            report,
            plan: Vec::new(),
            toggle: false,
            most: None,
            toggled: 0,
            missed: 0,
            started: Instant::now(),
        }
    }

    /// Opens or closes the window if it is time, and reads the log. Returns how long there is nothing to do.
    pub fn look(&mut self, page: &Switch, host: &HostClock) -> Duration {
        let since = self.started.elapsed();
        while let Some((_, open)) = self.plan.first().filter(|(at, _)| *at <= since) {
            match open {
                true => page.open_once(clock::ticks(), by(reason::TIME)),
                false => page.close_for_good(clock::ticks(), by(reason::TIME)),
            }
            self.plan.remove(0);
        }
        let toggled = toggles();
        if self.toggle && toggled != self.toggled {
            // An even number of signals that came together leaves it as it is.
            if toggled.wrapping_sub(self.toggled) % 2 == 1 {
                page.set_open(!page.is_open(), clock::ticks(), by(reason::SIGNAL));
            }
            self.toggled = toggled;
        }
        self.drain(page, host, false);
        let left = self.plan.first().map(|(at, _)| at.saturating_sub(since));
        left.or_else(|| self.left(page, host)).unwrap_or(Duration::MAX)
    }

    /// Closes the window that programs opened if it has been open long enough. Returns how long it may still be; none if it
    /// is not open, or nothing limits it.
    fn left(&mut self, page: &Switch, host: &HostClock) -> Option<Duration> {
        let most = self.most?;
        let open = self.report.windows.last().filter(|window| window.end_ns.is_none())?;
        let ticks = clock::ticks();
        let left = most.saturating_sub(Duration::from_nanos(host.to_ns(ticks).saturating_sub(open.begin_ns)));
        if left.is_zero() {
            page.close_for_good(ticks, by(reason::TIME));
            self.drain(page, host, false);
            return None;
        }
        Some(left)
    }

    /// Takes what is in the log. At the end nothing will be completed any more.
    fn drain(&mut self, page: &Switch, host: &HostClock, at_the_end: bool) {
        let flips = page.flips.load(Ordering::Acquire);
        // A program can write anything there.
        let mut next = page.drained.load(Ordering::Relaxed);
        if flips.wrapping_sub(next) > LOG as u32 {
            let oldest = flips.wrapping_sub(LOG as u32);
            self.missed = self.missed.saturating_add(u64::from(oldest.wrapping_sub(next)));
            next = oldest;
        }
        while next != flips {
            // One that is not complete yet comes with the next look.
            let flip = page.flip(next);
            if flip.is_none() && !at_the_end {
                break;
            }
            next = next.wrapping_add(1);
            page.drained.store(next, Ordering::Relaxed);
            let Some((ticks, open, cause)) = flip else {
                self.missed = self.missed.saturating_add(1);
                continue;
            };
            self.take(host.to_ns(ticks), open, cause);
        }
    }

    /// Adds a window to the report, or its end. Returns whether that is something new.
    fn note(&mut self, time: u64, open: bool, reason: &str) -> bool {
        match (open, self.report.windows.last_mut().filter(|w| w.end_ns.is_none())) {
            (true, None) => {
                let (begin_ns, opened_by) = (time, reason.to_owned());
                self.report.windows.push(Recorded { begin_ns, opened_by, ..Recorded::default() });
            }
            (false, Some(window)) => {
                window.end_ns = Some(time.max(window.begin_ns));
                window.closed_by = Some(reason.to_owned());
            }
            _ => return false,
        }
        true
    }

    fn take(&mut self, time: u64, open: bool, cause: Cause) {
        let time = time.max(self.stream.last());
        if !self.note(time, open, word(cause.reason)) {
            return;
        }
        let reason = word(cause.reason).to_owned();
        let Cause { number, pid, tid, .. } = cause;
        let (id, body) = match open {
            true => (CaptureBegin::ID, CaptureBegin { reason, number, pid, tid }.encode()),
            false => (CaptureEnd::ID, CaptureEnd { reason, number, pid, tid }.encode()),
        };
        self.stream.record(id, time).extend_from_slice(&body);
        // A window that was open when the launcher is killed must not seem never to have been.
        self.stream.flush();
    }

    /// Returns the windows so far.
    pub fn so_far(&self) -> &Capture {
        &self.report
    }

    /// Takes what is left, and writes it into the manifest of a run.
    pub fn finish(mut self, pages: Pages<'_>, host: &HostClock, manifest: &mut Manifest) {
        self.drain(pages.switch(), host, true);
        self.stream.flush();
        let Pages { window, counts } = pages;
        self.report.launches =
            (window.trigger == trigger::LAUNCHES).then(|| counts.launches.load(Ordering::Relaxed));
        self.report.ranges =
            (window.trigger == trigger::RANGES).then(|| counts.ranges.load(Ordering::Relaxed));
        let (bytes, records, unwritten) = self.stream.counts();
        manifest.losses.unwritten_bytes += unwritten;
        manifest.written.bytes += bytes;
        manifest.written.records.iter_mut().for_each(|all| *all += records);
        if let Some(account) = &mut manifest.written.account {
            account.streams.extend(self.stream.account());
        }
        if self.missed > 0 {
            manifest.notes.push(format!(
                "capture windows began and ended so often that {} beginnings and ends are not known; what was recorded \
                 is complete",
                self.missed
            ));
        }
        manifest.capture = Some(self.report);
    }
}

/// This process, for a reason.
pub(crate) fn by(reason: u32) -> Cause {
    let pid = std::process::id();
    Cause { reason, number: 0, pid, tid: pid }
}

fn word(of: u32) -> &'static str {
    match of {
        reason::TIME => "time",
        reason::LAUNCH => "launch",
        reason::RANGE => "range",
        reason::SIGNAL => "signal",
        reason::CALL => "call",
        reason::COMMAND => "command",
        reason::LIMIT => "limit",
        _ => "unknown",
    }
}

/// The launcher's name in the stream.
const NAME: &[u8] = b"hetrace";

#[cfg(test)]
mod tests;
