//! Round after round: digests of all streams, up to a time that all have reached.

use std::ops::ControlFlow;

use hetrace_ctf::read::{Losses, StreamReader};

use super::super::calls::{Call, Fold, Unfinished, Why};
use super::super::stack::{self, Stack};
use super::super::summary::Summary;
use super::Brief;
use super::digest::{Digest, Kind, MOST_FUNCTIONS, Special};
use super::feed::{Feed, Shared, StepsBack};
use super::table::Table;
use crate::trace::{FunctionId, ThreadId, Threads, Trace};

/// Digests of all streams together; with what is done to them they fit a cache.
const ROOM: usize = 1 << 15;
/// And of one stream.
const ROOMS: std::ops::RangeInclusive<usize> = 512..=1 << 14;

/// Why a brief walk did not come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The sums wanted no more.
    Stopped,
    /// The trace is not one for a brief walk; what was told so far does not count.
    Unfit,
}

impl From<StepsBack> for Ended {
    fn from(_: StepsBack) -> Self {
        Ended::Unfit
    }
}

/// A stretch of a stream that is of one thread.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    thread: ThreadId,
    feed: u32,
    start: usize,
    end: usize,
}

/// Tells `sink` all calls and commands of these streams.
pub(crate) fn brief<'t, B: Brief>(
    trace: &'t Trace,
    streams: impl Iterator<Item = StreamReader<'t>>,
    sink: &mut B,
) -> Result<Summary, Ended> {
    if trace.functions().all().len() >= MOST_FUNCTIONS {
        return Err(Ended::Unfit);
    }
    let tables = Table::all(trace);
    let mut feeds: Vec<_> = streams.map(Feed::new).collect();
    let mut shared = Shared {
        trace,
        tables: &tables,
        threads: Threads::default(),
        summary: Summary::default(),
        sink,
        until: u64::MAX,
    };
    let mut stacks = Stacks::default();
    rounds(&mut feeds, &mut shared, &mut stacks)?;
    let Shared { threads, mut summary, .. } = shared;
    if summary.first.is_some() {
        summary.last = summary.last.max(feeds.iter().map(|feed| feed.last).max());
    }
    stacks.finish(&threads, &mut summary, sink);
    let losses = feeds.iter().map(Feed::losses).fold(Losses::default(), |a, b| Losses {
        events: a.events.saturating_add(b.events),
        packets: a.packets.saturating_add(b.packets),
        damaged: a.damaged.saturating_add(b.damaged),
    });
    summary.finish(losses, &threads);
    Ok(summary)
}

fn rounds<'t, B: Brief>(
    feeds: &mut [Feed<'t>],
    shared: &mut Shared<'t, '_, B>,
    stacks: &mut Stacks,
) -> Result<(), Ended> {
    let mut room = (ROOM / feeds.len().max(1)).clamp(*ROOMS.start(), *ROOMS.end());
    let mut stretches = Vec::new();
    let mut told = 0;
    loop {
        let mut safe = u64::MAX;
        let mut rest = false;
        for feed in feeds.iter_mut() {
            feed.fill(room, shared)?;
            if !feed.ended {
                (safe, rest) = (safe.min(feed.last), true);
            }
        }
        if shared.sink.watch(shared.summary.events - told) == ControlFlow::Break(()) {
            return Err(Ended::Stopped);
        }
        told = shared.summary.events;
        let all = !rest;
        stretches.clear();
        for (index, feed) in (0u32..).zip(feeds.iter()) {
            collect(feed, index, (!all).then_some(safe), &mut stretches);
        }
        if stretches.is_empty() {
            if all {
                return Ok(());
            }
            // More events at one time than there is room for.
            room = room.saturating_mul(2);
            continue;
        }
        stretches.sort_unstable_by_key(|s| (s.thread, s.feed, s.start));
        let safe = if all { None } else { Some(safe) };
        for of_thread in stretches.chunk_by(|a, b| a.thread == b.thread) {
            let Some(first) = of_thread.first() else { continue };
            let thread = first.thread;
            shared.sink.thread(thread, shared.threads.get(thread));
            let stack = stacks.of(thread);
            let mut turn = Turn { thread, stack, summary: &mut shared.summary, sink: shared.sink };
            if of_thread.iter().all(|s| s.feed == first.feed) {
                of_thread.iter().for_each(|stretch| turn.alone(feeds, *stretch, safe));
            } else {
                turn.merged(feeds, of_thread, safe);
            }
        }
        for feed in feeds.iter_mut() {
            feed.head = feed.until(safe);
        }
    }
}

/// The stretches of a stream before `safe`, or all.
fn collect(feed: &Feed<'_>, index: u32, safe: Option<u64>, to: &mut Vec<Stretch>) {
    let until = feed.until(safe);
    let next = feed.runs.iter().skip(1).map(|run| run.start).chain([until]);
    for (run, next) in feed.runs.iter().zip(next) {
        let (start, end) = (run.start.max(feed.head), next.min(until));
        if start < end {
            to.push(Stretch { thread: run.thread, feed: index, start, end });
        } else if run.start >= until {
            return;
        }
    }
}

/// The open calls of all threads.
#[derive(Default)]
struct Stacks(Vec<Stack>);

impl Stacks {
    fn of(&mut self, thread: ThreadId) -> &mut Stack {
        if self.0.len() <= thread.index() {
            self.0.resize_with(thread.index() + 1, Stack::default);
        }
        &mut self.0[thread.index()]
    }

    /// Gives up what is still open.
    fn finish<B: Brief>(&mut self, threads: &Threads, summary: &mut Summary, sink: &mut B) {
        let time = summary.last.unwrap_or(0);
        for (index, stack) in (0u32..).zip(&mut self.0) {
            let thread = ThreadId(index);
            if !stack.is_empty() {
                sink.thread(thread, threads.get(thread));
            }
            while let Some(call) = stack.give_up(thread, time, Why::TraceEnds) {
                summary.unfinished += 1;
                sink.unfinished(&call);
            }
        }
    }
}

/// A thread whose digests go through its stack.
struct Turn<'r, B> {
    thread: ThreadId,
    stack: &'r mut Stack,
    summary: &'r mut Summary,
    sink: &'r mut B,
}

impl<B: Brief> Turn<'_, B> {
    /// A stretch of a thread that is in no other stream now.
    fn alone(&mut self, feeds: &mut [Feed<'_>], stretch: Stretch, safe: Option<u64>) {
        let Some(feed) = feeds.get_mut(stretch.feed as usize) else { return };
        // Of a call that ends later, other streams may have calls inside.
        let last = stretch.end - 1;
        let ends_later = safe.is_some_and(|safe| feed.digests[last].end() >= safe);
        let end = if ends_later { last } else { stretch.end };
        for digest in &feed.digests[stretch.start..end] {
            self.digest(*digest, stretch.feed, feed);
        }
        if ends_later {
            let (entry, exit) = feed.digests[last].split();
            self.digest(entry, stretch.feed, feed);
            feed.digests[last] = exit;
        }
    }

    /// Stretches of several streams, in the order of time.
    fn merged(&mut self, feeds: &mut [Feed<'_>], stretches: &[Stretch], safe: Option<u64>) {
        let mut streams: Vec<&[Stretch]> = stretches.chunk_by(|a, b| a.feed == b.feed).collect();
        let mut places: Vec<usize> = streams.iter().filter_map(|s| s.first()).map(|s| s.start).collect();
        loop {
            // The earliest, and when the next of the others is.
            let (mut first, mut other) = (None, u64::MAX);
            for (index, (stream, place)) in streams.iter_mut().zip(&mut places).enumerate() {
                let time = loop {
                    let Some(stretch) = stream.first() else { break None };
                    if *place < stretch.end {
                        break Some(feeds[stretch.feed as usize].digests[*place].time);
                    }
                    *stream = &stream[1..];
                    *place = stream.first().map_or(0, |next| next.start);
                };
                let time = time.filter(|time| safe.is_none_or(|safe| *time < safe));
                match (time, first) {
                    (None, _) => {}
                    (Some(time), Some((_, before))) if time >= before => other = other.min(time),
                    (Some(time), _) => {
                        other = first.map_or(other, |(_, before): (usize, u64)| other.min(before));
                        first = Some((index, time));
                    }
                }
            }
            let Some((index, _)) = first else { return };
            let Some(stretch) = streams[index].first().copied() else { return };
            // It goes on in this stream as long as it is surely its turn.
            loop {
                let feed = &mut feeds[stretch.feed as usize];
                let digest = feed.digests[places[index]];
                let limit = safe.map_or(other, |safe| other.min(safe));
                if digest.kind() == Kind::Leaf && digest.end() >= limit {
                    let (entry, exit) = digest.split();
                    feed.digests[places[index]] = exit;
                    self.digest(entry, stretch.feed, feed);
                } else {
                    self.digest(digest, stretch.feed, feed);
                    places[index] += 1;
                }
                let next = feed.digests.get(places[index]).filter(|_| places[index] < stretch.end);
                if next.is_none_or(|next| next.time >= limit) {
                    break;
                }
            }
        }
    }

    #[inline]
    fn digest(&mut self, digest: Digest, stream: u32, feed: &Feed<'_>) {
        let function = digest.function();
        match digest.kind() {
            Kind::Leaf => {
                let (start, time) = (digest.time, u64::from(digest.word));
                if self.stack.leaf(function, time) {
                    self.summary.calls += 1;
                    let (thread, end) = (self.thread, start + time);
                    let call = Call { function, thread, start, end, own: time, depth: 0, error: None };
                    self.sink.call(&call);
                } else {
                    self.enter(function, start, stream, false);
                    self.exit(function, start + time, stream, None);
                }
            }
            Kind::Entry => self.enter(function, digest.time, stream, false),
            Kind::Exit => self.exit(function, digest.time, stream, None),
            Kind::Failed => {
                self.exit(function, digest.time, stream, Some(i64::from(digest.word as i32)));
            }
            Kind::Special => {
                if let Some(special) = feed.special(digest.word) {
                    self.special(*special, digest.time, stream);
                }
            }
        }
    }

    #[inline]
    fn enter(&mut self, function: FunctionId, time: u64, stream: u32, doubtful: bool) {
        while self.stack.top_is_doubtful(stream) {
            let Some(call) = self.stack.give_up(self.thread, time, Why::ExitLost) else { break };
            self.unfinished(&call);
        }
        self.stack.enter(self.thread, function, time, stream, doubtful);
    }

    #[inline]
    fn exit(&mut self, function: FunctionId, time: u64, stream: u32, error: Option<i64>) {
        while self.stack.is_covered(function, stream) {
            let Some(call) = self.stack.give_up_of(stream, self.thread, time, Why::ExitLost) else { break };
            self.unfinished(&call);
        }
        match self.stack.exit(self.thread, function, time, error) {
            stack::Ended::Call(call) => {
                self.summary.calls += 1;
                self.sink.call(&call);
            }
            stack::Ended::Orphan(_) => self.summary.orphans += 1,
        }
    }

    fn unfinished(&mut self, call: &Unfinished) {
        self.summary.unfinished += 1;
        self.sink.unfinished(call);
    }

    #[cold]
    fn special(&mut self, special: Special, time: u64, stream: u32) {
        match special {
            Special::Fold(fold) => {
                let fold = Fold { thread: self.thread, ..self.stack.fold(fold) };
                self.sink.fold(&fold);
            }
            Special::Doubtful(function) => self.enter(function, time, stream, true),
            Special::Failed(function, code) => self.exit(function, time, stream, Some(code)),
            Special::Doubt => self.stack.doubt(stream),
            Special::GiveUp(why) => {
                while let Some(call) = self.stack.give_up_of(stream, self.thread, time, why) {
                    self.unfinished(&call);
                }
            }
        }
    }
}
