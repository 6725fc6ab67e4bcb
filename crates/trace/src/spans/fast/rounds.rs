//! Round after round: digests of all streams, up to a time that all have reached.

use std::ops::ControlFlow;

use super::super::alike::Alike;
use super::super::summary::Summary;
use super::ends::StreamEnd;
use super::input::{Input, Shared, Unfit};
use super::slices::Slice;
use super::table::Table;
use super::thread::{Stretch, ThreadWalk, Track};
use super::{CallSink, Ended};
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
    pub states: Vec<StreamEnd>,
}

/// Goes over a slice. `joins` is whether calls may be open when it begins.
pub(super) fn slice<'t, B: CallSink>(
    trace: &'t Trace,
    (tables, noted): (&[Table<'t>], &Plans<'t>),
    slice: &Slice,
    mut sums: B,
) -> Result<Found<'t, B>, Ended> {
    if slice.from.is_some() {
        sums.begin_later();
    }
    let streams = slice.streams(trace).ok_or(Ended::Unfit)?;
    let mut inputs: Vec<_> = streams.into_iter().map(|reader| Input::new(reader, slice)).collect();
    if slice.strict {
        let limits = slice.limits();
        inputs.iter_mut().zip(limits).for_each(|(input, limit)| input.be_strict(limit));
    }
    let mut shared = Shared {
        trace,
        tables,
        noted,
        threads: Threads::default(),
        summary: Summary::default(),
        sink: &mut sums,
        alike: Alike::default(),
        until: slice.until,
    };
    let mut tracks = Vec::new();
    rounds(&mut inputs, &mut shared, &mut tracks, slice)?;
    let Shared { threads, mut summary, .. } = shared;
    if summary.first.is_some() {
        summary.last = summary.last.max(inputs.iter().map(|input| input.last).max());
    }
    for losses in inputs.iter().map(Input::losses) {
        summary.lost_events = summary.lost_events.saturating_add(losses.events);
        summary.lost_packets = summary.lost_packets.saturating_add(losses.packets);
        summary.damaged = summary.damaged.saturating_add(losses.damaged);
    }
    let owners = inputs.iter().map(Input::owners).collect();
    let states = inputs.iter().map(Input::state).collect();
    Ok(Found { sums, summary, threads, tracks, owners, states })
}

/// Round after round, until all inputs have ended.
pub(super) fn rounds<'t, B: CallSink>(
    inputs: &mut [Input<'t>],
    shared: &mut Shared<'t, '_, B>,
    tracks: &mut Vec<Track<'t>>,
    slice: &Slice,
) -> Result<(), Ended> {
    let from = slice.from;
    let mut room = (ROOM / inputs.len().max(1)).clamp(*ROOMS.start(), *ROOMS.end());
    let mut stretches = Vec::new();
    let mut watched = 0;
    loop {
        let mut safe = u64::MAX;
        let mut rest = false;
        for input in inputs.iter_mut() {
            input.fill(room, shared)?;
            if !input.ended {
                (safe, rest) = (safe.min(input.last), true);
            }
        }
        if shared.sink.watch(shared.summary.events - watched) == ControlFlow::Break(()) {
            return Err(Ended::Stopped);
        }
        watched = shared.summary.events;
        let all = !rest;
        stretches.clear();
        for (index, input) in (0u32..).zip(inputs.iter()) {
            collect(input, index, (!all).then_some(safe), &mut stretches);
        }
        if stretches.is_empty() {
            if all {
                return Ok(());
            }
            // More events at one time than there is room for.
            room = room.saturating_mul(2);
            continue;
        }
        let states: Vec<StreamEnd> = inputs.iter().map(Input::state).collect();
        stretches.sort_unstable_by_key(|s| (s.thread, s.input, s.start));
        let safe = if all { None } else { Some(safe) };
        for of_thread in stretches.chunk_by(|a, b| a.thread == b.thread) {
            let Some(first) = of_thread.first() else { continue };
            let thread = first.thread;
            shared.sink.thread(thread, shared.threads.get(thread));
            let track = Track::of(tracks, thread);
            let (costs, summary, states) = (shared.trace.costs(), &mut shared.summary, &states[..]);
            let mut walk = ThreadWalk { thread, track, from, states, costs, summary, sink: shared.sink };
            if of_thread.iter().all(|s| s.input == first.input) {
                of_thread.iter().for_each(|stretch| walk.alone(inputs, *stretch, safe));
            } else {
                walk.merged(inputs, of_thread, safe);
            }
        }
        for input in inputs.iter_mut() {
            input.head = input.until(safe);
        }
        if tracks.iter().any(|track| track.unfit) {
            return Err(Ended::Unfit);
        }
    }
}

/// The stretches of a stream before `safe`, or all.
fn collect(input: &Input<'_>, index: u32, safe: Option<u64>, to: &mut Vec<Stretch>) {
    let until = input.until(safe);
    let next = input.runs.iter().skip(1).map(|run| run.start).chain([until]);
    for (run, next) in input.runs.iter().zip(next) {
        let (start, end) = (run.start.max(input.head), next.min(until));
        if start < end {
            to.push(Stretch { thread: run.thread, input: index, start, end });
        } else if run.start >= until {
            return;
        }
    }
}
