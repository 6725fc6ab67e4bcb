//! Round after round: digests of all streams, up to a time that all have reached.

use std::ops::ControlFlow;

use super::super::summary::Summary;
use super::feed::{Feed, Shared, Unfit};
use super::slices::Slice;
use super::table::Table;
use super::turn::{State, Stretch, Track, Turn};
use super::{Brief, Ended};
use crate::trace::{ThreadId, Threads, Trace};
use crate::values::Plans;

/// Digests of all streams together; with what is done to them they fit a cache.
const ROOM: usize = 1 << 15;
/// And of one stream.
const ROOMS: std::ops::RangeInclusive<usize> = 512..=1 << 14;

impl From<Unfit> for Ended {
    fn from(_: Unfit) -> Self {
        Ended::Unfit
    }
}

/// What was found in a slice.
pub(super) struct Found<'t, B> {
    pub sums: B,
    pub summary: Summary,
    pub threads: Threads,
    pub tracks: Vec<Track<'t>>,
    /// By stream whose packets are of one thread each: that of the first packet and of the last.
    pub owners: Vec<Option<(ThreadId, ThreadId)>>,
    /// By stream.
    pub states: Vec<State>,
}

/// Goes over a slice. `joins` is whether calls may be open when it begins.
pub(super) fn slice<'t, B: Brief>(
    trace: &'t Trace,
    (tables, noted): (&[Table<'t>], &Plans<'t>),
    slice: &Slice,
    mut sums: B,
) -> Result<Found<'t, B>, Ended> {
    if slice.from.is_some() {
        sums.begin_later();
    }
    let streams = slice.streams(trace).ok_or(Ended::Unfit)?;
    let mut feeds: Vec<_> = streams.into_iter().map(|reader| Feed::new(reader, slice.from)).collect();
    if slice.strict {
        let limits = slice.limits();
        feeds.iter_mut().zip(limits).for_each(|(feed, limit)| feed.be_strict(limit));
    }
    let mut shared = Shared {
        trace,
        tables,
        noted,
        threads: Threads::default(),
        summary: Summary::default(),
        sink: &mut sums,
        until: slice.until,
    };
    let mut tracks = Vec::new();
    rounds(&mut feeds, &mut shared, &mut tracks, slice)?;
    let Shared { threads, mut summary, .. } = shared;
    if summary.first.is_some() {
        summary.last = summary.last.max(feeds.iter().map(|feed| feed.last).max());
    }
    for losses in feeds.iter().map(Feed::losses) {
        summary.lost_events = summary.lost_events.saturating_add(losses.events);
        summary.lost_packets = summary.lost_packets.saturating_add(losses.packets);
        summary.damaged = summary.damaged.saturating_add(losses.damaged);
    }
    let owners = feeds.iter().map(Feed::owners).collect();
    let states = feeds.iter().map(|feed| feed.state(true)).collect();
    Ok(Found { sums, summary, threads, tracks, owners, states })
}

fn rounds<'t, B: Brief>(
    feeds: &mut [Feed<'t>],
    shared: &mut Shared<'t, '_, B>,
    tracks: &mut Vec<Track<'t>>,
    slice: &Slice,
) -> Result<(), Ended> {
    let (from, in_slice) = (slice.from, !slice.is_whole());
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
        let states: Vec<State> = feeds.iter().map(|feed| feed.state(in_slice)).collect();
        stretches.sort_unstable_by_key(|s| (s.thread, s.feed, s.start));
        let safe = if all { None } else { Some(safe) };
        for of_thread in stretches.chunk_by(|a, b| a.thread == b.thread) {
            let Some(first) = of_thread.first() else { continue };
            let thread = first.thread;
            shared.sink.thread(thread, shared.threads.get(thread));
            let track = Track::of(tracks, thread);
            let (costs, summary, states) = (shared.trace.costs(), &mut shared.summary, &states[..]);
            let mut turn = Turn { thread, track, from, states, costs, summary, sink: shared.sink };
            if of_thread.iter().all(|s| s.feed == first.feed) {
                of_thread.iter().for_each(|stretch| turn.alone(feeds, *stretch, safe));
            } else {
                turn.merged(feeds, of_thread, safe);
            }
        }
        for feed in feeds.iter_mut() {
            feed.head = feed.until(safe);
        }
        if tracks.iter().any(|track| track.unfit) {
            return Err(Ended::Unfit);
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
