//! The digests of one thread, through its stack of open calls.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;

use super::super::calls::{Fold, Open, Unfinished, Why};
use super::super::inside::Inside;
use super::super::stack::{Ended, First, Moment, Stack};
use super::super::summary::Summary;
use super::digest::{Digest, Kind, Special};
use super::ends::{StreamEnd, When};
use super::input::Input;
use super::{CallSink, Leaf, Leaves};
use crate::trace::{Costs, FunctionId, ThreadId};
use crate::values::Values;

/// What may be left undecided of a thread in one slice. More than that is no trace for slices.
const MOST_UNDECIDED: usize = 1 << 16;

/// A stretch of a stream that is of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub thread: ThreadId,
    pub input: u32,
    pub start: usize,
    pub end: usize,
}

/// A thread in a slice.
#[derive(Debug, Default)]
pub(super) struct Track<'t> {
    pub stack: Stack,
    /// What concerns calls that were open when the slice began, in order.
    pub undecided: Vec<(Undecided<'t>, At)>,
    /// Functions with exits that ended a call of another stream, the streams of these exits, and when the first was:
    /// where such a call of theirs, of an earlier slice, was open then, it may have shown that calls in it have no end.
    pub crossed: HashMap<(FunctionId, u32), u64>,
    /// Whether only a walk without slices can decide.
    pub unfit: bool,
}

/// Something that concerns calls of earlier slices.
#[derive(Clone, Debug)]
pub(super) enum Undecided<'t> {
    /// The exit of one, or an orphan.
    Exit(FunctionId, Option<i64>),
    /// The same of one whose values are shown.
    NotedExit(FunctionId, Option<i64>, Box<Values<'t>>),
    /// Many calls in one record, and what the slice knows of the call before.
    Fold(Fold, Option<Option<i64>>),
    /// What the tracer did inside of the innermost, ns.
    OwnWork(u64),
    /// Those of the stream will have no end.
    GiveUp(Why),
    /// The stream is the thread's from here on, and begins so.
    Begins(First),
}

/// When and in which stream that was.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub time: u64,
    pub stream: u32,
    /// Calls since the one before that were in none of the slice.
    pub outside: Inside,
}

impl<'t> Track<'t> {
    /// That of a thread.
    pub fn of(tracks: &mut Vec<Self>, thread: ThreadId) -> &mut Self {
        if tracks.len() <= thread.index() {
            tracks.resize_with(thread.index() + 1, Track::default);
        }
        &mut tracks[thread.index()]
    }

    /// Leaves something to be decided later.
    #[cold]
    fn leave(&mut self, what: Undecided<'t>, time: u64, stream: u32) {
        let outside = self.stack.take_outside();
        self.undecided.push((what, At { time, stream, outside }));
        self.unfit |= self.undecided.len() > MOST_UNDECIDED;
    }
}

/// The stretches of one stream that are of a thread, on their way through.
struct Lane<'s> {
    rest: &'s [Stretch],
    /// The next digest of the first of them.
    place: usize,
}

impl<'s> Lane<'s> {
    fn new(rest: &'s [Stretch]) -> Self {
        Self { rest, place: rest.first().map_or(0, |first| first.start) }
    }

    /// The time of its next digest, if that is before `safe`.
    fn next(&mut self, inputs: &[Input<'_>], safe: Option<u64>) -> Option<u64> {
        loop {
            let stretch = self.rest.first()?;
            if self.place < stretch.end {
                let time = inputs.get(stretch.input as usize)?.digests.get(self.place)?.time;
                return Some(time).filter(|time| safe.is_none_or(|safe| *time < safe));
            }
            self.rest = self.rest.get(1..)?;
            self.place = self.rest.first().map_or(0, |next| next.start);
        }
    }
}

/// A thread whose digests go through its stack.
pub(super) struct ThreadWalk<'r, 't, B> {
    pub thread: ThreadId,
    pub track: &'r mut Track<'t>,
    /// Where the slice begins, if others are before.
    pub from: Option<u64>,
    /// By stream.
    pub states: &'r [StreamEnd],
    pub costs: &'r Costs,
    pub summary: &'r mut Summary,
    pub sink: &'r mut B,
}

impl<'t, B: CallSink> ThreadWalk<'_, 't, B> {
    /// A stretch of a thread that is in no other stream now.
    pub fn alone(&mut self, inputs: &mut [Input<'t>], stretch: Stretch, safe: Option<u64>) {
        let Some(input) = inputs.get_mut(stretch.input as usize) else { return };
        // Of a call that ends later, other streams may have calls inside.
        let last = stretch.end - 1;
        let ends_later = safe.is_some_and(|safe| input.digests[last].end() >= safe);
        let end = if ends_later { last } else { stretch.end };
        let mut rest = input.digests[stretch.start..end].iter().as_slice();
        while let Some(first) = rest.first() {
            if first.kind() == Kind::Leaf && !self.track.stack.is_doubtful() {
                rest = self.leaves(rest);
            } else {
                self.digest(*first, stretch.input, input);
                rest = &rest[1..];
            }
        }
        if ends_later {
            let (entry, exit) = input.digests[last].split();
            self.digest(entry, stretch.input, input);
            input.digests[last] = exit;
        }
    }

    /// Stretches of several streams, in the order of time.
    pub fn merged(&mut self, inputs: &mut [Input<'t>], stretches: &[Stretch], safe: Option<u64>) {
        let mut lanes: Vec<Lane<'_>> = stretches.chunk_by(|a, b| a.input == b.input).map(Lane::new).collect();
        // The earliest first; of one time, in the order of the streams.
        let mut heads = BinaryHeap::with_capacity(lanes.len());
        for (index, lane) in lanes.iter_mut().enumerate() {
            heads.extend(lane.next(inputs, safe).map(|time| Reverse((time, index))));
        }
        let mut now = heads.pop();
        while let Some(Reverse((_, index))) = now {
            // When the next of the others is.
            let other = heads.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
            let Some(lane) = lanes.get_mut(index) else { return };
            self.stretch(inputs, lane, safe.map_or(other, |safe| other.min(safe)));
            now = match lane.next(inputs, safe).map(|time| Reverse((time, index))) {
                None => heads.pop(),
                Some(mut next) => {
                    if let Some(mut first) = heads.peek_mut()
                        && *first > next
                    {
                        std::mem::swap(&mut *first, &mut next);
                    }
                    Some(next)
                }
            };
        }
    }

    /// Goes on in a stretch of a stream as long as nothing of another stream can come before.
    fn stretch(&mut self, inputs: &mut [Input<'t>], lane: &mut Lane<'_>, limit: u64) {
        let Some(stretch) = lane.rest.first().copied() else { return };
        loop {
            let input = &mut inputs[stretch.input as usize];
            let digest = input.digests[lane.place];
            if digest.kind() == Kind::Leaf && digest.end() >= limit {
                let (entry, exit) = digest.split();
                input.digests[lane.place] = exit;
                self.digest(entry, stretch.input, input);
            } else {
                self.digest(digest, stretch.input, input);
                lane.place += 1;
            }
            let next = input.digests.get(lane.place).filter(|_| lane.place < stretch.end);
            if next.is_none_or(|next| next.time >= limit) {
                break;
            }
        }
    }

    /// Takes all calls without calls inside that come first; gives what follows.
    fn leaves<'d>(&mut self, digests: &'d [Digest]) -> &'d [Digest] {
        let (mut sum, mut taken, mut around, mut calls) = (0u64, 0u64, 0u64, 0);
        let costs = self.costs.of_leaves();
        let mut take = self.sink.leaves(self.thread);
        for digest in digests {
            if digest.kind() != Kind::Leaf {
                break;
            }
            let (function, start, time) = (digest.function(), digest.time, digest.word);
            let each = costs.get(function.index()).copied().unwrap_or_default();
            let cost = each.in_time(time);
            take.take(Leaf { function, start, time, cost });
            sum += u64::from(time);
            taken += u64::from(cost);
            around += u64::from(each.around);
            calls += 1;
        }
        drop(take);
        let (leaves, rest) = digests.split_at(calls);
        if let Some(last) = leaves.last() {
            self.track.stack.leaves(last.function(), &Inside::of_leaves(sum, taken, around));
        }
        self.summary.calls = self.summary.calls.saturating_add(calls as u64);
        rest
    }

    fn leaf(&mut self, digest: Digest, stream: u32) {
        if self.track.stack.is_doubtful() {
            let (entry, exit) = digest.split();
            self.enter(entry.function(), entry.time, stream, false);
            self.exit(exit.function(), exit.time, stream, None);
        } else {
            self.leaves(&[digest]);
        }
    }

    fn digest(&mut self, digest: Digest, stream: u32, input: &Input<'t>) {
        let function = digest.function();
        match digest.kind() {
            Kind::Leaf => self.leaf(digest, stream),
            Kind::Entry => {
                self.enter(function, digest.time, stream, false);
            }
            Kind::Exit => self.exit(function, digest.time, stream, None),
            Kind::Failed => {
                self.exit(function, digest.time, stream, Some(i64::from(digest.word as i32)));
            }
            Kind::Special | Kind::NonZero | Kind::State | Kind::Rare => {
                if let Some(special) = input.special(digest.word) {
                    self.special(special, digest.time, stream);
                }
            }
        }
    }

    #[inline]
    fn enter(&mut self, function: FunctionId, time: u64, stream: u32, doubtful: bool) -> Open {
        let (at, cost) = (Moment { thread: self.thread, time, stream }, self.costs.of(function));
        let (summary, sink) = (&mut *self.summary, &mut *self.sink);
        let ControlFlow::Continue(call) =
            self.track.stack.enter(at, function, doubtful, cost, |call| unfinished(summary, sink, &call));
        call
    }

    /// An exit.
    #[inline]
    pub fn exit(&mut self, function: FunctionId, time: u64, stream: u32, error: Option<i64>) {
        if !self.try_exit(function, time, stream, error, None) {
            self.track.leave(Undecided::Exit(function, error), time, stream);
        }
    }

    /// The same of one whose values are shown.
    pub fn noted_exit(
        &mut self,
        function: FunctionId,
        time: u64,
        stream: u32,
        error: Option<i64>,
        values: &Values<'t>,
    ) {
        if !self.try_exit(function, time, stream, error, Some(values)) {
            self.sink.noted_undecided(self.thread);
            let values = Box::new(values.clone());
            self.track.leave(Undecided::NotedExit(function, error, values), time, stream);
        }
    }

    /// False if it may be of a call of an earlier slice.
    #[inline(always)]
    fn try_exit(
        &mut self,
        function: FunctionId,
        time: u64,
        stream: u32,
        error: Option<i64>,
        values: Option<&Values<'t>>,
    ) -> bool {
        let at = Moment { thread: self.thread, time, stream };
        let crosses = self.from.is_some() && !self.track.stack.has_open_call(function, stream);
        let (summary, sink) = (&mut *self.summary, &mut *self.sink);
        let ControlFlow::Continue(ended) =
            self.track.stack.exit(at, function, error, |call| unfinished(summary, sink, &call));
        match ended {
            Ended::Call(call) => {
                if crosses {
                    self.track.crossed.entry((function, stream)).or_insert(time);
                }
                self.summary.calls = self.summary.calls.saturating_add(1);
                self.sink.call(&call);
                if let Some(values) = values {
                    self.sink.noted_exit(&call, values);
                }
            }
            Ended::Orphan(_) if self.from.is_none() => self.summary.orphans += 1,
            // With calls around it that are known to be open, it could be of one below them.
            Ended::Orphan(_) if !self.track.stack.is_empty() => self.track.unfit = true,
            Ended::Orphan(_) => return false,
        }
        true
    }

    #[cold]
    fn special(&mut self, special: &Special<'t>, time: u64, stream: u32) {
        match special {
            Special::Fold(fold) => self.fold(*fold, None, time, stream),
            Special::Doubtful(function) => {
                self.enter(*function, time, stream, true);
            }
            Special::NotedEntry(function, doubtful, values) => {
                let call = self.enter(*function, time, stream, *doubtful);
                self.sink.noted_entry(&call, values);
            }
            Special::NotedExit(function, error, values) => {
                self.noted_exit(*function, time, stream, *error, values);
            }
            Special::OwnWork(ns) => self.own_work(*ns, time, stream),
            Special::Failed(function, code) => self.exit(*function, time, stream, Some(*code)),
            Special::Doubt => self.track.stack.doubt(stream),
            Special::Begins(first) => {
                self.begin(time, stream, *first);
                if self.from.is_some() {
                    self.track.leave(Undecided::Begins(*first), time, stream);
                }
            }
            Special::GiveUp(why) => {
                self.give_up(*why, time, stream);
                if self.from.is_some() {
                    self.track.leave(Undecided::GiveUp(*why), time, stream);
                }
            }
        }
    }

    /// Many calls in one record; `repeated` is what a slice knows of the call before.
    pub fn fold(&mut self, fold: Fold, repeated: Option<Option<i64>>, time: u64, stream: u32) {
        let fold = Fold { thread: self.thread, ..fold };
        let stack = &mut self.track.stack;
        let first = self.from.unwrap_or(0);
        if self.from.is_none() || (fold.first >= first && stack.knows(&fold)) {
            let fold = stack.fold(fold, repeated, self.costs.of_folded());
            self.sink.fold(&fold);
        } else if fold.first < first || stack.is_empty() {
            // Calls that are open here began later, and are not around it.
            let repeated = stack.repeated(fold.function);
            self.track.leave(Undecided::Fold(fold, repeated), time, stream);
        } else {
            self.track.unfit = true;
        }
    }

    /// What the tracer did inside of the innermost call.
    pub fn own_work(&mut self, ns: u64, time: u64, stream: u32) {
        if !self.track.stack.measure(stream, ns) && self.from.is_some() {
            self.track.leave(Undecided::OwnWork(ns), time, stream);
        }
    }

    /// A stream is the thread's from here on: see [`Why::begins`].
    pub fn begin(&mut self, time: u64, stream: u32, first: First) {
        if self.track.stack.streams().all(|open| open == stream) {
            return;
        }
        let class = |state: &StreamEnd| state.of.filter(|of| of.1 == self.thread).map(|of| of.0);
        let Some(own) = self.states.get(stream as usize).and_then(class) else { return };
        let is_over = |before: u32| match self.states.get(before as usize)?.end {
            When::After(last) => Some((last, before) < (time, stream)),
            When::Later => Some(false),
            When::Unknown => None,
        };
        let alike = |(before, state): &(u32, &StreamEnd)| *before != stream && class(state) == Some(own);
        let predecessors = || (0u32..).zip(self.states).filter(alike).map(|(before, _)| is_over(before));
        if predecessors().any(|over| over.is_none()) {
            self.track.unfit = true;
        } else if predecessors().any(|over| over == Some(true)) {
            let stack = &self.track.stack;
            let mut gone: Vec<u32> = stack.streams().filter(|open| is_over(*open) == Some(true)).collect();
            if stack.goes_on(&gone, first) {
                gone.clear();
            }
            gone.into_iter().for_each(|gone| self.give_up(Why::ThreadEnded, time, gone));
        }
    }

    /// The calls of a stream will have no end.
    pub fn give_up(&mut self, why: Why, time: u64, stream: u32) {
        let at = Moment { thread: self.thread, time, stream };
        let (summary, sink) = (&mut *self.summary, &mut *self.sink);
        let ControlFlow::Continue(()) =
            self.track.stack.give_up_stream(at, why, |call| unfinished(summary, sink, &call));
    }
}

/// A call will have no end. Nothing ends a fast walk there.
fn unfinished<B: CallSink>(
    summary: &mut Summary,
    sink: &mut B,
    call: &Unfinished,
) -> ControlFlow<Infallible> {
    summary.unfinished += 1;
    sink.unfinished(call);
    ControlFlow::Continue(())
}
