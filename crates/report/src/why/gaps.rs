//! A gap of a device: cut into parts, each with its cause.

use super::causes::Cause;
use super::coverage::Busy;
use super::threads::{Doing, Span, Thread};

/// A command that begins later than so long after another one's end did not
/// wait for that, in nanoseconds; errors of clocks come on top.
pub(super) const AT_ONCE: u64 = 10_000;

/// A gap, and the command that ended it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// When the last command before had ended.
    pub start: u64,
    /// When the next one began.
    pub end: u64,
    /// When the call that enqueued that began; 0 if it is not known.
    pub cause: u64,
    /// When the device had it; 0 if not known.
    pub submitted: u64,
    /// How wrong times of devices may be.
    pub slack: u64,
}

/// What is known of the time of a gap.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    /// The thread that enqueued the next command.
    pub thread: Option<&'a Thread>,
    /// The call that it was enqueued in.
    pub call: Option<Span>,
    /// When other devices of the process ran.
    pub process: Option<&'a Busy>,
    /// Commands without times, from their calls to when they were seen.
    pub untimed: Option<&'a Busy>,
    /// Commands were lost somewhere.
    pub losses: bool,
    pub sampled: bool,
}

/// A part of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub start: u64,
    pub end: u64,
    pub cause: Cause,
}

/// The parts, in order, without holes.
pub(super) fn explain(gap: Gap, scene: Scene<'_>) -> Vec<Part> {
    let whole = |cause| vec![Part { start: gap.start, end: gap.end, cause }];
    if scene.sampled {
        return whole(Cause::Sampled);
    }
    let Some((thread, call)) = scene.thread.zip(scene.call).filter(|_| gap.cause > 0) else {
        return cover(whole(Cause::NoCall), scene.untimed);
    };
    let mut parts = Parts::default();
    let called = call.start.clamp(gap.start, gap.end);
    let returned = call.end.clamp(called, gap.end);
    // Who waited for the device when it ran empty, and only then went on.
    let drained = thread.waited(gap.start, gap.slack, called).map(|s| (s.function, s.end));
    thread.during(gap.start, called, |start, end, doing| match doing {
        Doing::Forgotten => parts.add(start, end, Cause::Forgotten),
        Doing::AddedUp => parts.add(start, end, Cause::AddedUp),
        Doing::Outside => match drained {
            Some((function, since)) if since <= start => parts.add(start, end, Cause::AfterWait(function)),
            _ => parts.add(start, end, Cause::Host),
        },
        Doing::In(span) if span.lost => parts.add(start, end, Cause::EndLost(span.function)),
        Doing::In(span) if span.waits => {
            // This device had nothing, so whatever ran was another one.
            for (from, to) in scene.process.into_iter().flat_map(|p| p.pieces(start, end)) {
                parts.add(parts.at(start), from, Cause::Return(span.function));
                parts.add(from, to, Cause::Elsewhere(span.function));
            }
            parts.add(parts.at(start), end, Cause::Return(span.function));
        }
        Doing::In(span) if span.polls => parts.add(start, end, Cause::Poll(span.function)),
        Doing::In(span) => parts.add(start, end, Cause::Call(span.function)),
    });
    parts.add(called, returned, Cause::Launch(call.function));
    queued(&mut parts, gap, returned, scene.process);
    if scene.losses
        && let Some(fruitless) = thread.fruitless(gap.start, called)
    {
        parts.replace_from(fruitless.start.max(gap.start), Cause::Lost);
    }
    cover(parts.0, scene.untimed)
}

/// From when it was enqueued to when it began.
fn queued(parts: &mut Parts, gap: Gap, enqueued: u64, process: Option<&Busy>) {
    if enqueued >= gap.end {
        return;
    }
    let submitted = gap.submitted.clamp(enqueued, gap.end);
    parts.add(enqueued, submitted, Cause::Submit);
    let near = gap.slack.saturating_add(AT_ONCE);
    let last = process.and_then(|p| p.pieces(submitted, gap.end).last());
    match last {
        Some((_, end)) if gap.end - end <= near => {
            parts.add(submitted, end, Cause::Dependency);
            parts.add(end, gap.end, Cause::Latency);
        }
        _ => parts.add(submitted, gap.end, Cause::Latency),
    }
}

/// Times in which commands without times may have run are not known.
fn cover(parts: Vec<Part>, untimed: Option<&Busy>) -> Vec<Part> {
    let Some(untimed) = untimed else { return parts };
    let mut covered = Parts::default();
    for part in parts {
        let mut at = part.start;
        for (from, to) in untimed.pieces(part.start, part.end) {
            covered.add(at, from, part.cause);
            covered.add(from, to, Cause::Untimed);
            at = to;
        }
        covered.add(at, part.end, part.cause);
    }
    covered.0
}

/// What a thread did when there was no next command, or none before.
pub(super) fn outside(thread: &Thread, from: u64, to: u64) -> Vec<Part> {
    let mut parts = Parts::default();
    thread.during(from, to, |start, end, doing| {
        let cause = match doing {
            Doing::Forgotten => Cause::Forgotten,
            Doing::Outside => Cause::Host,
            Doing::AddedUp => Cause::AddedUp,
            Doing::In(span) if span.lost => Cause::EndLost(span.function),
            Doing::In(span) if span.waits => Cause::Return(span.function),
            Doing::In(span) if span.polls => Cause::Poll(span.function),
            Doing::In(span) => Cause::Call(span.function),
        };
        parts.add(start, end, cause);
    });
    parts.0
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, start: u64, end: u64, cause: Cause) {
        if end <= start {
            return;
        }
        match self.0.last_mut().filter(|last| last.cause == cause && last.end == start) {
            Some(last) => last.end = end,
            None => self.0.push(Part { start, end, cause }),
        }
    }

    /// How far it is explained, if not less than this.
    fn at(&self, least: u64) -> u64 {
        self.0.last().map_or(least, |last| last.end.max(least))
    }

    fn replace_from(&mut self, from: u64, cause: Cause) {
        let until = self.at(from);
        self.0.retain(|p| p.start < from);
        if let Some(last) = self.0.last_mut() {
            last.end = last.end.min(from);
        }
        self.add(from, until, cause);
    }
}
