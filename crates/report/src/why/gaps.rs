//! A gap of a device: cut into parts, each with its cause.

use super::causes::Cause;
use super::coverage::Busy;
use super::signals::Set;
use super::threads::{Doing, Span, Thread, Threads};
use hetrace_trace::facts::{Facts, Work};
use hetrace_trace::trace::FunctionId;

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
    pub threads: &'a Threads,
    pub facts: &'a [Facts<'a>],
    /// The place of the thread that enqueued the next command.
    pub place: Option<usize>,
    /// The call that it was enqueued in.
    pub call: Option<Span>,
    /// The last of the program's own events that the next command waited for.
    pub set: Option<Set>,
    /// The next command is the first of its kernel.
    pub fresh: bool,
    /// When other devices of the process ran.
    pub process: Option<&'a Busy>,
    /// Commands without times, from their calls to when they were seen.
    pub untimed: Option<&'a Busy>,
    /// Commands were lost somewhere.
    pub losses: bool,
    pub sampled: bool,
}

impl<'a> Scene<'a> {
    fn work(&self, function: FunctionId) -> Work {
        self.facts.get(function.index()).map_or(Work::Other, |facts| facts.work)
    }

    fn thread(&self, place: Option<usize>) -> Option<&'a Thread> {
        self.threads.get(place?)
    }
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
    let known = scene.thread(scene.place).zip(scene.call).filter(|_| gap.cause > 0);
    let Some((thread, call)) = known else {
        return cover(forgotten(gap, scene).unwrap_or_else(|| whole(Cause::NoCall)), scene.untimed);
    };
    let mut parts = Parts::default();
    let called = call.start.clamp(gap.start, gap.end);
    let returned = call.end.clamp(called, gap.end);
    // Who waited for the device when it ran empty, and only then went on.
    let drained = thread.waited(gap.start, gap.slack, called).map(|s| (s.function, s.end));
    let polled = thread.polled(gap.start, called);
    thread.during(gap.start, called, |start, end, doing| match doing {
        // Between two questions it did not look.
        Doing::Outside if polled.is_some_and(|(_, until)| end <= until) => {
            parts.add(start, end, polled.map_or(Cause::Host, |(function, _)| Cause::Poll(function)));
        }
        Doing::Outside => match drained {
            Some((function, since)) if since <= start => parts.add(start, end, Cause::AfterWait(function)),
            _ => parts.add(start, end, Cause::Host),
        },
        Doing::In(span) if span.waits && !span.lost && scene.work(span.function) != Work::Objects => {
            // This device had nothing, so whatever ran was another one.
            for (from, to) in scene.process.into_iter().flat_map(|p| p.pieces(start, end)) {
                parts.add(parts.at(start), from, Cause::Return(span.function));
                parts.add(from, to, Cause::Elsewhere(span.function));
            }
            parts.add(parts.at(start), end, Cause::Return(span.function));
        }
        Doing::Absent => before_birth(&mut parts, start, end, scene),
        other => parts.add(start, end, doing_other(other)),
    });
    let launch = if scene.fresh { Cause::First(call.function) } else { Cause::Launch(call.function) };
    parts.add(called, returned, launch);
    queued(&mut parts, gap, returned, call, scene);
    if scene.losses
        && let Some(fruitless) = thread.fruitless(gap.start, called)
    {
        parts.replace_from(fruitless.start.max(gap.start), Cause::Lost);
    }
    cover(parts.0, scene.untimed)
}

/// A gap before a command that was enqueued so long ago that the call is not remembered.
fn forgotten(gap: Gap, scene: Scene<'_>) -> Option<Vec<Part>> {
    let until = scene.thread(scene.place)?.forgotten_until();
    if gap.cause == 0 || gap.cause >= until {
        return None;
    }
    let mut parts = Parts::default();
    // It had returned by then.
    let returned = until.clamp(gap.start, gap.end);
    parts.add(gap.start, returned, Cause::Forgotten);
    let call = Span::new(FunctionId(u32::MAX), gap.cause, returned);
    queued(&mut parts, gap, returned, call, Scene { set: None, fresh: false, ..scene });
    Some(parts.0)
}

/// What needs nothing but the thread to be known.
fn doing_other(doing: Doing<'_>) -> Cause {
    match doing {
        Doing::Forgotten => Cause::Forgotten,
        Doing::AddedUp => Cause::AddedUp,
        Doing::Outside => Cause::Host,
        Doing::Absent => Cause::Absent(None),
        Doing::In(span) if span.lost => Cause::EndLost(span.function),
        Doing::In(span) if span.polls => Cause::Poll(span.function),
        Doing::In(span) => Cause::Call(span.function),
    }
}

/// A time in which the thread that went on had not made a call yet: what the one did that began it.
fn before_birth(parts: &mut Parts, start: u64, end: u64, scene: Scene<'_>) {
    let creator = scene.place.and_then(|place| scene.threads.creator(place));
    let Some((by, thread)) = creator.and_then(|by| Some((by, scene.threads.get(by)?))) else {
        parts.add(start, end, Cause::Absent(None));
        return;
    };
    let by_place = by as u32;
    thread.during(start, end, |start, end, doing| {
        let cause = match doing {
            Doing::In(span) if !span.lost && !span.polls && !span.waits => {
                Cause::Before(span.function, by_place)
            }
            Doing::Outside | Doing::In(_) => Cause::Absent(Some(by_place)),
            Doing::Absent => Cause::Absent(None),
            other => doing_other(other),
        };
        parts.add(start, end, cause);
    });
}

/// From when it was enqueued to when it began.
fn queued(parts: &mut Parts, gap: Gap, enqueued: u64, call: Span, scene: Scene<'_>) {
    if enqueued >= gap.end {
        return;
    }
    let set = scene.set.filter(|set| set.time > enqueued && set.time <= gap.end);
    let waited = set.map_or(enqueued, |set| set.time);
    if let Some(set) = set {
        let doing = |function| Cause::Signal { set: set.function, by: set.by as u32, doing: function };
        match scene.threads.get(set.by) {
            Some(thread) => thread.during(enqueued, waited, |start, end, what| {
                let inside = match what {
                    Doing::In(span) if span.start < waited => Some(span.function),
                    _ => None,
                };
                parts.add(start, end, doing(inside));
            }),
            None => parts.add(enqueued, waited, doing(None)),
        }
    }
    // What waits for others is not handed over before, whatever the program does.
    let submitted = if call.depends || set.is_some() { waited } else { gap.submitted };
    let submitted = submitted.clamp(waited, gap.end);
    let latency = if scene.fresh { Cause::First(call.function) } else { Cause::Latency };
    parts.add(waited, submitted, if scene.fresh { latency } else { Cause::Submit });
    let near = gap.slack.saturating_add(AT_ONCE);
    let last = scene.process.and_then(|p| p.pieces(submitted, gap.end).last());
    match last {
        Some((_, end)) if gap.end - end <= near => {
            parts.add(submitted, end, Cause::Dependency);
            parts.add(end, gap.end, Cause::Latency);
        }
        _ => parts.add(submitted, gap.end, latency),
    }
}

/// Cuts host work of a thread of which nothing else is known where others of its process were in long calls that
/// ended before it went on.
pub(super) fn meanwhile(parts: Vec<Part>, threads: &Threads, pid: i64, place: usize) -> Vec<Part> {
    let mut cut = Parts::default();
    for part in parts {
        let is_host = matches!(part.cause, Cause::Host | Cause::AfterWait(_) | Cause::Absent(_));
        if is_host {
            for long in threads.long(pid, part.start, part.end).filter(|long| long.place != place) {
                let start = long.start.max(cut.at(part.start));
                cut.add(cut.at(part.start), start, part.cause);
                let by = long.place as u32;
                let cause = match part.cause {
                    Cause::Absent(_) => Cause::Before(long.function, by),
                    _ => Cause::Meanwhile(long.function, by),
                };
                cut.add(start, long.end, cause);
            }
        }
        cut.add(cut.at(part.start), part.end, part.cause);
    }
    cut.0
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
            Doing::In(span) if span.waits && !span.lost => Cause::Return(span.function),
            other => doing_other(other),
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
