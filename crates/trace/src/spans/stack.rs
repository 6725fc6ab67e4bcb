//! The calls that are open on one thread: what an entry, an exit, a run of calls or the end of a
//! stream makes of them.
//!
//! This is the one place that decides which entry and which exit are of one call. A walk over whole
//! events ([`super::walk`]) and one over digests ([`super::fast`]) both feed it.

use std::ops::ControlFlow;

use super::calls::{Call, Fold, Open, Orphan, Unfinished, Why};
use super::deep::Deep;
use super::inside::{Inside, Times};
use crate::stacks::StackId;
use crate::trace::{CallCost, Class, FunctionId, ThreadId};

/// An open call.
#[derive(Clone, Copy, Debug)]
struct Frame {
    function: FunctionId,
    start: u64,
    depth: u32,
    /// The code that makes it.
    stack: StackId,
    /// The stream it was recorded in; an API of a thread has one at a time.
    stream: u32,
    /// What recording it costs.
    cost: CallCost,
    /// Whether what timing its command took is known of this very call.
    measured: bool,
    /// What is inside.
    inside: Inside,
    /// Whether its exit may be among lost events.
    doubtful: bool,
    /// Whether the call around ended first and has counted this one's time.
    counted: bool,
}

/// The open calls of a thread, the outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    deep: Deep,
    /// For a run of equal calls: the last call that ended.
    last: Option<(FunctionId, Option<i64>)>,
    /// Calls that were in none, since it was taken last.
    outside: Inside,
}

/// When something happens on a thread, and in which stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub thread: ThreadId,
    pub time: u64,
    pub stream: u32,
}

/// The event that a stream begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The exit of a function.
    Exit(FunctionId),
    /// What there is only inside of a call.
    Inside,
    /// Something else.
    Other,
}

impl First {
    /// Returns none for what no thread records: a device's stream begins no thread's.
    pub fn of(class: &Class) -> Option<Self> {
        match class {
            Class::Exit(function, _) => Some(Self::Exit(*function)),
            Class::OwnWork(_) => Some(Self::Inside),
            Class::Command(_) | Class::Definition(_) => None,
            _ => Some(Self::Other),
        }
    }
}

/// What an exit turns out to be.
pub(super) enum Ended {
    Call(Call),
    Orphan(Orphan),
}

impl Stack {
    #[inline]
    pub fn depth(&self) -> u32 {
        self.frames.last().map_or(0, |f| f.depth.saturating_add(1))
    }

    /// A call begins. Those that must have ended before it are given up, and shown to `gone`.
    #[inline]
    pub fn enter<B>(
        &mut self,
        at: Moment,
        function: FunctionId,
        doubtful: bool,
        cost: CallCost,
        mut gone: impl FnMut(Unfinished) -> ControlFlow<B>,
    ) -> ControlFlow<B, Open> {
        while self.top_is_doubtful(at.stream) {
            match self.give_up(at.thread, at.time, Why::ExitLost) {
                Some(call) => gone(call)?,
                None => break,
            }
        }
        ControlFlow::Continue(self.push(at, function, doubtful, cost))
    }

    #[inline]
    fn push(&mut self, at: Moment, function: FunctionId, doubtful: bool, cost: CallCost) -> Open {
        let Moment { thread, time: start, stream } = at;
        let (depth, inside) = (self.depth(), Inside::default());
        self.frames.push(Frame {
            function,
            start,
            depth,
            stack: StackId::NONE,
            stream,
            cost,
            measured: false,
            inside,
            doubtful,
            counted: false,
        });
        self.deep.pushed(self.frames.len(), self.frames.iter().map(|f| (f.stream, f.function)));
        Open { function, thread, start, depth, stack: StackId::NONE }
    }

    /// The innermost call is made by this Python code.
    pub fn made_by(&mut self, stack: StackId) {
        if let Some(top) = self.frames.last_mut() {
            top.stack = stack;
        }
    }

    /// Whether the innermost call is one of this stream that has likely ended.
    #[inline]
    fn top_is_doubtful(&self, stream: u32) -> bool {
        let top = self.frames.last();
        top.is_some_and(|f| f.doubtful && f.stream == stream)
    }

    /// From now on, exits of this stream's calls may be missing.
    pub fn doubt(&mut self, stream: u32) {
        let own = self.frames.iter_mut().filter(|f| f.stream == stream);
        own.for_each(|f| f.doubtful = true);
    }

    /// Gives up the innermost call.
    pub fn give_up(&mut self, thread: ThreadId, until: u64, why: Why) -> Option<Unfinished> {
        let at = self.frames.len().checked_sub(1)?;
        Some(self.remove(at).unfinished(thread, until, why))
    }

    /// Gives up all calls of a stream, and shows them to `gone`, the innermost first.
    pub fn give_up_stream<B>(
        &mut self,
        at: Moment,
        why: Why,
        mut gone: impl FnMut(Unfinished) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        while let Some(call) = self.give_up_of(at, why) {
            gone(call)?;
        }
        ControlFlow::Continue(())
    }

    /// Gives up the innermost call of a stream.
    fn give_up_of(&mut self, at: Moment, why: Why) -> Option<Unfinished> {
        let frame = self.frames.iter().rposition(|f| f.stream == at.stream)?;
        Some(self.remove(frame).unfinished(at.thread, at.time, why))
    }

    /// Takes out a call that is given up. Its time is not known to be inside the one around it, but
    /// what recording it and those inside has cost is.
    fn remove(&mut self, at: usize) -> Frame {
        let frame = self.take(at);
        if !frame.counted {
            self.inside_of(at).add_given_up(frame.cost, &frame.inside);
        }
        frame
    }

    fn take(&mut self, at: usize) -> Frame {
        let frame = self.frames.remove(at);
        let above = self.frames.iter().skip(at).map(|f| f.stream);
        self.deep.removed(self.frames.len(), frame.stream, above);
        frame
    }

    /// What is inside of the call that is around the one at `at`, or of none.
    fn inside_of(&mut self, at: usize) -> &mut Inside {
        match at.checked_sub(1).and_then(|around| self.frames.get_mut(around)) {
            Some(outer) => &mut outer.inside,
            None => &mut self.outside,
        }
    }

    /// The streams of the open calls, the innermost's first.
    pub fn streams(&self) -> impl Iterator<Item = u32> {
        self.frames.iter().rev().map(|frame| frame.stream)
    }

    /// Whether calls of this stream stand above the one that an exit is of:
    /// their own exits are missing.
    #[inline]
    fn is_covered(&self, function: FunctionId, stream: u32) -> bool {
        let is_it = |top: &Frame| top.function == function && top.stream == stream;
        !self.frames.last().is_some_and(is_it) && self.is_covered_below(function, stream)
    }

    /// The same where the innermost call is another one.
    fn is_covered_below(&self, function: FunctionId, stream: u32) -> bool {
        if let Some(own) = self.deep.of(self.frames.len(), stream) {
            let Some((top, below)) = own.split_last() else { return false };
            return *top != function && below.contains(&function);
        }
        let own = |f: &&Frame| f.stream == stream;
        let mut own = self.frames.iter().rev().filter(own);
        let top = own.next();
        top.is_some_and(|f| f.function != function) && own.any(|f| f.function == function)
    }

    /// Ends the innermost call of a function. Those of its stream that are above it have lost their exits:
    /// they are given up, and shown to `gone`.
    #[inline]
    pub fn exit<B>(
        &mut self,
        at: Moment,
        function: FunctionId,
        error: Option<i64>,
        mut gone: impl FnMut(Unfinished) -> ControlFlow<B>,
    ) -> ControlFlow<B, Ended> {
        while self.is_covered(function, at.stream) {
            match self.give_up_of(at, Why::ExitLost) {
                Some(call) => gone(call)?,
                None => break,
            }
        }
        ControlFlow::Continue(self.pop(at.thread, function, at.time, error))
    }

    /// Ends the innermost call of all, if it is of this function and stream, as it is nearly always; else none, and
    /// nothing is done: [`Self::exit`] knows what to do.
    // A call that is handed on through memory is written in halves and read in wholes, and the processor waits for that.
    // So this is a way of its own, on which a call is written once.
    #[inline(always)]
    pub fn exit_innermost(&mut self, at: Moment, function: FunctionId, error: Option<i64>) -> Option<Call> {
        let top = self.frames.last()?;
        if top.function != function || top.stream != at.stream || top.counted {
            return None;
        }
        self.pop_top(at.thread, function, at.time, error)
    }

    /// Ends the innermost call of all.
    #[inline(always)]
    fn pop_top(
        &mut self,
        thread: ThreadId,
        function: FunctionId,
        end: u64,
        error: Option<i64>,
    ) -> Option<Call> {
        let top = self.frames.last()?;
        self.last = Some((function, error));
        let times = top.times(end, error.is_some());
        let (call, stream, cost) = (top.call(thread, end, error, times), top.stream, top.cost);
        self.frames.pop();
        self.deep.removed(self.frames.len(), stream, std::iter::empty());
        match self.frames.last_mut() {
            Some(outer) => outer.inside.add_call(times, cost),
            None => self.outside.add_call(times, cost),
        }
        Some(call)
    }

    #[inline(always)]
    fn pop(&mut self, thread: ThreadId, function: FunctionId, end: u64, error: Option<i64>) -> Ended {
        if self.frames.last().is_some_and(|top| top.function == function && !top.counted)
            && let Some(call) = self.pop_top(thread, function, end, error)
        {
            return Ended::Call(call);
        }
        self.last = Some((function, error));
        self.exit_below(thread, function, end, error)
    }

    /// The same for a call that is not the innermost, or not there.
    #[cold]
    fn exit_below(&mut self, thread: ThreadId, function: FunctionId, end: u64, error: Option<i64>) -> Ended {
        let Some(at) = self.frames.iter().rposition(|f| f.function == function) else {
            return Ended::Orphan(Orphan { function, thread, end, error });
        };
        let mut frame = self.take(at);
        // A call of another API inside may be recorded as ending later, by a tick.
        if let Some(inner) = self.frames.get_mut(at)
            && !inner.counted
        {
            inner.counted = true;
            let (times, cost) = (inner.times(end, false), inner.cost);
            frame.inside.add_call(times, cost);
        }
        let times = frame.times(end, error.is_some());
        if !frame.counted {
            self.inside_of(at).add_call(times, frame.cost);
        }
        Ended::Call(frame.call(thread, end, error, times))
    }

    /// Timing the command of the innermost call, of this stream, took so many nanoseconds. Returns whether there is
    /// a call.
    pub fn measure(&mut self, stream: u32, ns: u64) -> bool {
        let Some(top) = self.frames.last_mut() else { return false };
        // Only calls that enqueue have such work in them: else this one's entry or exit is not here.
        if top.stream == stream && top.cost.timed {
            top.cost = top.cost.with_timing(ns);
            top.measured = true;
        }
        true
    }

    /// Whether exits of the innermost call may be missing.
    #[inline]
    pub fn is_doubtful(&self) -> bool {
        self.frames.last().is_some_and(|top| top.doubtful)
    }

    /// Calls without calls inside, of which `last` was the last, and which went well: they are
    /// inside the innermost open one, which is not doubtful.
    #[inline]
    pub fn leaves(&mut self, last: FunctionId, calls: &Inside) {
        self.enclose(calls);
        self.last = Some((last, None));
    }

    /// Whether a call of this stream is open.
    pub fn has_open(&self, stream: u32) -> bool {
        self.frames.iter().any(|frame| frame.stream == stream)
    }

    /// Whether another stream goes on with what these have left, as it begins inside of the innermost call: the tracer was
    /// killed in the middle of that, and what was left was recovered.
    pub fn goes_on(&self, streams: &[u32], first: First) -> bool {
        let Some(top) = self.frames.last().filter(|top| streams.contains(&top.stream)) else { return false };
        match first {
            First::Exit(function) => top.function == function,
            First::Inside => true,
            First::Other => false,
        }
    }

    /// Whether a call of this function is open that was recorded in this stream.
    #[inline]
    pub fn has_open_call(&self, function: FunctionId, stream: u32) -> bool {
        self.frames.iter().rev().any(|frame| frame.function == function && frame.stream == stream)
    }

    /// The function and the begin of the innermost call, and how many are open.
    pub fn innermost(&self) -> Option<(FunctionId, u64, u32)> {
        self.frames.last().map(|top| (top.function, top.start, self.depth()))
    }

    /// Functions have other numbers from here on.
    pub fn renumber(&mut self, new: impl Fn(FunctionId) -> FunctionId) {
        self.frames.iter_mut().for_each(|frame| frame.function = new(frame.function));
        self.last = self.last.map(|(function, error)| (new(function), error));
        self.deep.renumber(new);
    }

    /// Whether no call is open.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Calls that were in none, since this was asked last.
    pub fn take_outside(&mut self) -> Inside {
        std::mem::take(&mut self.outside)
    }

    /// What a later part of the thread has added on top of the calls that are open here.
    pub fn append(&mut self, mut later: Stack) {
        let outside = later.take_outside();
        self.enclose(&outside);
        let depth = self.depth();
        later.frames.iter_mut().for_each(|frame| frame.depth = frame.depth.saturating_add(depth));
        for frame in later.frames {
            self.frames.push(frame);
            self.deep.pushed(self.frames.len(), self.frames.iter().map(|f| (f.stream, f.function)));
        }
        self.last = later.last.or(self.last);
    }

    /// Calls of which all that is known is that they are inside the innermost here.
    pub fn enclose(&mut self, calls: &Inside) {
        match self.frames.last_mut() {
            Some(top) => top.inside.add(calls),
            None => self.outside.add(calls),
        }
    }

    /// The error of a run that repeats the last call: the inner one is none if that went well, or was of
    /// another function, the outer one if no call has ended.
    pub fn repeated(&self, function: FunctionId) -> Option<Option<i64>> {
        let (last, error) = self.last?;
        Some(error.filter(|_| last == function))
    }

    /// Whether the error of a record of many calls is known: those that were added up went well, and a run of polls
    /// repeats the call before it, which must be in this part of the trace.
    pub fn knows(&self, fold: &Fold) -> bool {
        fold.summed || self.last.is_some()
    }

    /// Many calls in one record, with their depth, and the error that only the calls before them show: `repeated`
    /// is that of [`Self::repeated`], if a later part of the trace knows it. `cost` is that of each.
    ///
    /// They count as inside the innermost open call that began before them. Some of those that were added up may have
    /// been in calls inside of that one, too: then these have so much more time of their own, and that one less.
    pub fn fold(&mut self, fold: Fold, repeated: Option<Option<i64>>, cost: CallCost) -> Fold {
        let error = repeated.or_else(|| self.repeated(fold.function)).flatten().filter(|_| !fold.summed);
        let around = self.frames.iter_mut().rev().find(|frame| frame.start <= fold.first);
        let depth = around.as_ref().map_or(0, |frame| frame.depth.saturating_add(1));
        let ours = match around {
            Some(frame) => frame.inside.add_fold(&fold, cost),
            None => self.outside.add_fold(&fold, cost),
        };
        Fold { error, depth, cost: ours, ..fold }
    }
}

impl Frame {
    /// Its times, if it ends then.
    #[inline(always)]
    fn times(&self, end: u64, failed: bool) -> Times {
        // A call that failed has no command to be timed.
        let enqueued = !failed || self.measured;
        let cost = if enqueued { self.cost } else { self.cost.without_timing() };
        self.inside.times(end.saturating_sub(self.start), cost)
    }

    #[inline]
    fn call(&self, thread: ThreadId, end: u64, error: Option<i64>, times: Times) -> Call {
        let &Self { function, start, depth, stack, .. } = self;
        let Times { own, cost, own_cost, .. } = times;
        Call { function, thread, start, end, own, cost, own_cost, depth, stack, error }
    }

    fn unfinished(self, thread: ThreadId, until: u64, why: Why) -> Unfinished {
        let until = until.max(self.start);
        let cost = self.times(until, false).cost;
        let Self { function, start, depth, stack, .. } = self;
        Unfinished { function, thread, start, until, cost, depth, stack, why }
    }
}
