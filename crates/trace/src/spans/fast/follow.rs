//! A walk in steps: over streams that grow.
//!
//! ```text
//!  step 1   stream 1  |■■■■■■■■■|■■■■□□|           ■ before `until`: walked
//!           stream 2  |■■■■■■■|                    □ not yet: the next step begins with its packet,
//!                          until ┘                   and passes over what was walked of it
//! ```
//! Between steps there are the open calls of each thread, and where each stream goes on: as much as
//! there are threads and streams, however long they are.
//!
//! Calls of one thread in several streams are in each other by their times. So a step must have all events before
//! `until`; an event of an earlier time that comes later is walked when it comes.

use hetrace_ctf::read::PacketInfo;

use super::super::alike::Alike;
use super::super::calls::Why;
use super::super::summary::Summary;
use super::digest::MOST_FUNCTIONS;
use super::input::{Input, Place, Shared};
use super::rounds::rounds;
use super::slices::Slice;
use super::table::Table;
use super::thread::Track;
use super::{CallSink, Ended};
use crate::trace::{FunctionId, Thread, ThreadId, Threads, Trace};
use crate::values::Plans;

/// What a walk in steps keeps between them.
#[derive(Debug, Default)]
pub struct Steps {
    threads: Threads,
    summary: Summary,
    /// By thread.
    tracks: Vec<Track<'static>>,
    /// By stream.
    places: Vec<Place>,
}

/// A call that has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Its thread.
    pub thread: ThreadId,
    /// What was called.
    pub function: FunctionId,
    /// When, in nanoseconds of the trace's clock.
    pub start: u64,
    /// How many calls of the thread are open, this one included.
    pub open: u32,
}

impl Steps {
    /// Walks over what the streams of a trace have before the time `until`, or over all of it. They are in the order
    /// of the step before, new ones behind them, and each begins where [`Self::offsets`] said then.
    ///
    /// # Errors
    /// When the sums want no more, or the time of a stream goes back: no step can follow then.
    pub fn step<B: CallSink>(
        &mut self,
        trace: &Trace,
        until: Option<u64>,
        sums: &mut B,
    ) -> Result<(), Ended> {
        if trace.functions().all().len() >= MOST_FUNCTIONS {
            return Err(Ended::Unfit);
        }
        let noted = Plans::default();
        let tables = Table::all(trace, &noted);
        let slice = Slice::before(until.unwrap_or(u64::MAX));
        self.places.resize_with(self.places.len().max(trace.ctf().stream_count()), Place::default);
        let mut shared = Shared {
            trace,
            tables: &tables,
            noted: &noted,
            threads: std::mem::take(&mut self.threads),
            summary: std::mem::take(&mut self.summary),
            sink: sums,
            alike: Alike::default(),
            until: slice.until,
        };
        let mut inputs = Vec::with_capacity(self.places.len());
        for (index, place) in self.places.iter().enumerate() {
            let begin = PacketInfo::default();
            let reader = trace.ctf().packets(index, &begin, u64::MAX, place.before.as_ref());
            let mut input = Input::new(reader.ok_or(Ended::Unfit)?, &slice);
            input.resume(place, &mut shared);
            inputs.push(input);
        }
        // Nothing is left undecided, and no values are kept, in a walk from the begin on.
        let mut tracks: Vec<Track<'_>> = std::mem::take(&mut self.tracks);
        let done = rounds(&mut inputs, &mut shared, &mut tracks, &slice);
        self.tracks =
            tracks.into_iter().map(|track| Track { stack: track.stack, ..Track::default() }).collect();
        let Shared { threads, mut summary, .. } = shared;
        if summary.first.is_some() {
            summary.last = summary.last.max(inputs.iter().map(|input| input.last).max());
        }
        for (input, to) in inputs.iter().zip(&mut self.places) {
            let (place, losses) = input.place();
            *to = place;
            summary.lost_events = summary.lost_events.saturating_add(losses.events);
            summary.lost_packets = summary.lost_packets.saturating_add(losses.packets);
            summary.damaged = summary.damaged.saturating_add(losses.damaged);
        }
        (self.threads, self.summary) = (threads, summary);
        done
    }

    /// By stream: where the packets begin that the next step needs.
    pub fn offsets(&self) -> impl Iterator<Item = u64> {
        self.places.iter().map(|place| place.offset)
    }

    /// Gives up what is still open: nothing more comes.
    pub fn finish<B: CallSink>(&mut self, sums: &mut B) {
        let time = self.summary.last.unwrap_or(0);
        for (index, track) in (0u32..).zip(&mut self.tracks) {
            let thread = ThreadId(index);
            if !track.stack.is_empty() {
                sums.thread(thread, self.threads.get(thread));
            }
            while let Some(call) = track.stack.give_up(thread, time, Why::TraceEnds) {
                self.summary.unfinished += 1;
                sums.unfinished(&call);
            }
        }
    }

    /// Functions have other numbers from here on.
    pub fn renumber(&mut self, new: impl Fn(FunctionId) -> FunctionId) {
        self.tracks.iter_mut().for_each(|track| track.stack.renumber(&new));
    }

    /// What was seen so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The threads so far, by number.
    pub fn threads(&self) -> &[Thread] {
        self.threads.all()
    }

    /// The innermost open call of each thread that has one.
    pub fn open(&self) -> impl Iterator<Item = Ahead> {
        let tracks = (0u32..).zip(&self.tracks);
        tracks.filter_map(|(thread, track)| {
            let (function, start, open) = track.stack.innermost()?;
            Some(Ahead { thread: ThreadId(thread), function, start, open })
        })
    }
}
