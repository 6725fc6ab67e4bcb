//! The walk.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, StreamError};
use hetrace_format::command::Reader;

use super::alike::{Alike, Origin};
use super::announced::Announced;
use super::calls::{Call, Fold, Open, Orphan, Unfinished, Why};
use super::commands::{Command, NewQueue};
use super::stack::{Ended, First, Moment, Stack};
use super::summary::Summary;
use crate::probes::{Border, Borders};
use crate::stacks::StackId;
use crate::trace::{
    Class, Cursor, Definition, FunctionId, Item, Occurrence, Sample, Thread, ThreadId, Threads, Trace,
};

/// Where in the trace something is.
#[derive(Clone, Copy, Debug)]
pub struct At<'w> {
    /// Nanoseconds on the trace's clock.
    pub time: u64,
    /// The thread; of a command, the drainer's idea of one.
    pub thread: ThreadId,
    /// All threads met so far.
    pub threads: &'w Threads,
}

impl<'w> At<'w> {
    /// The thread's ids and name.
    pub fn who(&self) -> &'w Thread {
        self.threads.get(self.thread)
    }
}

/// Receives what a walk finds. Methods that a visitor does not need have defaults;
/// [`ControlFlow::Break`] ends the walk.
///
/// The calls of one API on one thread come properly nested. Each
/// [`Visitor::entry`] is followed by either [`Visitor::exit`] or
/// [`Visitor::unfinished`] with its depth, which no other call of the thread
/// has in between.
#[allow(unused_variables, reason = "names in a trait's default methods are documentation")]
pub trait Visitor {
    /// What a walk that is ended early yields.
    type Break;

    /// Every event, before what it means.
    fn event(&mut self, at: At<'_>, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A call begins; `event` has what was passed.
    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A call ends; `event` has what came back.
    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A call will have no end.
    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// An exit has no entry.
    fn orphan(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A run of equal calls, or calls that were added up: see [`Fold::summed`].
    fn fold(&mut self, at: At<'_>, fold: &Fold, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A command on a device.
    fn command(
        &mut self,
        at: At<'_>,
        command: &Command<'_>,
        event: &Event<'_, '_>,
    ) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A queue was made.
    fn queue(&mut self, at: At<'_>, queue: &NewQueue<'_>, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A call of a function that the API's model does not have: nobody knows
    /// what it did, and there is no end of it.
    fn unknown(
        &mut self,
        at: At<'_>,
        api: &str,
        function: &str,
        event: &Event<'_, '_>,
    ) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A thread of the program had a CPU. `at` is of who recorded it.
    fn sample(&mut self, at: At<'_>, sample: &Sample, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// A range between two probes in the program's code begins or ends, where a kernel trace with them is joined. `at` is
    /// of the thread that passed the probe; [`Ranges::border`](crate::ranges::Ranges::border) makes of it what calls make
    /// of other ranges.
    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// An event of another kind; definitions of devices and functions, too.
    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }

    /// Bytes that could not be read.
    fn damage(&mut self, damage: &StreamError) -> ControlFlow<Self::Break> {
        ControlFlow::Continue(())
    }
}

/// Goes over a whole trace.
pub fn walk<V: Visitor>(trace: &Trace, visitor: &mut V) -> ControlFlow<V::Break, Summary> {
    let mut summary =
        walk_between(trace.cursor(), Borders::of(trace.system(), &trace.probe_pairs()), visitor)?;
    summary.add_manifest(trace);
    ControlFlow::Continue(summary)
}

/// The same, and it begins at once: see [`Trace::cursor_as_recorded`].
pub fn walk_as_recorded<V: Visitor>(trace: &Trace, visitor: &mut V) -> ControlFlow<V::Break, Summary> {
    let mut summary =
        walk_between(trace.cursor_as_recorded(), Borders::of(trace.system(), &trace.probe_pairs()), visitor)?;
    summary.add_manifest(trace);
    ControlFlow::Continue(summary)
}

/// Goes over a part of a trace, of which the summary then is. There are no [borders](Visitor::border).
pub fn walk_part<V: Visitor>(cursor: Cursor<'_>, visitor: &mut V) -> ControlFlow<V::Break, Summary> {
    walk_between(cursor, Borders::default(), visitor)
}

/// Goes over what a cursor has, with borders in between by their times.
fn walk_between<V: Visitor>(
    mut cursor: Cursor<'_>,
    mut borders: Borders<'_>,
    visitor: &mut V,
) -> ControlFlow<V::Break, Summary> {
    let mut walker = Walker::default();
    let people: HashMap<u32, ThreadId> =
        borders.threads().map(|(life, ids, name)| (life, cursor.meet(ids, name))).collect();
    while let Some(item) = cursor.next_item() {
        match item {
            Item::Damage { error, after } => {
                visitor.damage(&error)?;
                let cut = matches!(error, StreamError::Truncated { .. });
                walker.summary.damage(error, after.filter(|_| cut));
            }
            Item::Event(occurrence) => {
                if borders.next_time() <= occurrence.time {
                    pass(&mut borders, occurrence.time, &people, occurrence.threads(), visitor)?;
                }
                walker.event(&occurrence, visitor)?;
            }
        }
    }
    pass(&mut borders, u64::MAX, &people, cursor.threads(), visitor)?;
    walker.finish(cursor.threads(), visitor)?;
    let mut summary = walker.summary;
    summary.finish(&cursor);
    ControlFlow::Continue(summary)
}

/// Hands out the borders up to a time.
#[cold]
fn pass<V: Visitor>(
    borders: &mut Borders<'_>,
    until: u64,
    people: &HashMap<u32, ThreadId>,
    threads: &Threads,
    visitor: &mut V,
) -> ControlFlow<V::Break> {
    while borders.next_time() <= until
        && let Some((border, life, name)) = borders.take()
    {
        if let Some(thread) = people.get(&life) {
            visitor.border(At { time: border.time, thread: *thread, threads }, border, name)?;
        }
    }
    ControlFlow::Continue(())
}

#[derive(Default)]
struct Walker<'t> {
    /// By thread.
    stacks: Vec<Stack>,
    /// By stream: the packet and the thread of its last event.
    streams: Vec<Option<(u32, ThreadId)>>,
    announced: Announced,
    summary: Summary,
    alike: Alike<'t, ()>,
}

impl<'t> Walker<'t> {
    #[inline]
    fn event<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, 't>,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let &Occurrence { ref event, time, thread, stream, class, .. } = occurrence;
        let at = At { time, thread, threads: occurrence.threads() };
        self.summary.see(time);
        if self.streams.get(stream as usize).copied().flatten() != Some((occurrence.packet(), thread)) {
            self.enter_packet(occurrence, visitor)?;
        }
        visitor.event(at, event)?;
        match class {
            Class::Entry(function) => {
                let mut open = self.entry(occurrence, *function, visitor)?;
                let announced = self.announced.of_entry(thread, event);
                // The whole stack says more than where the innermost frame is.
                let code = || Some(StackId { native: occurrence.code(*function)?, python: 0 });
                if let Some(stack) = announced.or_else(code) {
                    open.stack = stack;
                    self.stack(thread).made_by(stack);
                }
                visitor.entry(at, &open, event)
            }
            Class::Exit(function, verdict) => {
                let error = verdict.error(event);
                self.exit(occurrence, *function, error, visitor)
            }
            Class::Fold(function, fields, more) => {
                let fold = self.fold(occurrence, *function, fields, *more);
                visitor.fold(at, &fold, event)
            }
            Class::Command(reader) => self.command(occurrence, reader, visitor),
            Class::Definition(Definition::Queue) => match NewQueue::read(occurrence.names(), event) {
                Some(queue) => visitor.queue(at, &queue, event),
                None => visitor.other(at, event),
            },
            Class::Unknown(api, name) => {
                let api = occurrence.apis().get(*api).map_or("", String::as_str);
                visitor.unknown(at, api, text_at(event, *name), event)
            }
            Class::OwnWork(ns) => {
                self.stack(thread).measure(stream, number_at(event, *ns));
                visitor.other(at, event)
            }
            // It is a part of the call.
            Class::Stack(kind, [stack, entry]) => {
                let (stack, entry) = (number_at(event, *stack), number_at(event, *entry));
                self.announced.announce(thread, event, *kind, (stack, entry));
                ControlFlow::Continue(())
            }
            Class::Sample(fields) => visitor.sample(at, &fields.read(event), event),
            Class::BudgetStep | Class::Definition(_) | Class::Other => visitor.other(at, event),
        }
    }

    fn command<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, 't>,
        reader: &Reader,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let &Occurrence { ref event, time, thread, .. } = occurrence;
        let at = At { time, thread, threads: occurrence.threads() };
        let class = u32::try_from(event.class_index()).unwrap_or(u32::MAX);
        let of = Origin { stream: occurrence.stream_class(), class, thread };
        let data = event.payload().unwrap_or_default();
        let place = self.alike.place(of, reader, data);
        if let Some(place) = place
            && let Some((seen, _)) = self.alike.find(place, of, reader, data, time)
        {
            self.summary.command(&seen.command, time);
            return visitor.command(at, &seen.command, event);
        }
        let command = Command::new(&reader.read(event, time), occurrence.names(), at.who().pid);
        self.summary.command(&command, time);
        if let Some(place) = place {
            self.alike.keep(place, of, reader.pattern(data), command, ());
        }
        visitor.command(at, &command, event)
    }

    fn stack(&mut self, thread: ThreadId) -> &mut Stack {
        self.parts(thread).0
    }

    /// The stack of a thread, and the summary.
    #[inline]
    fn parts(&mut self, thread: ThreadId) -> (&mut Stack, &mut Summary) {
        if self.stacks.len() <= thread.index() {
            self.stacks.resize_with(thread.index() + 1, Stack::default);
        }
        (&mut self.stacks[thread.index()], &mut self.summary)
    }

    #[cold]
    fn enter_packet<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let (stream, thread) = (occurrence.stream, occurrence.thread);
        let slot = stream as usize;
        if self.streams.len() <= slot {
            self.streams.resize(slot + 1, None);
        }
        let now = (occurrence.packet(), thread);
        let before = self.streams[slot].replace(now);
        if !occurrence.owns_stream() {
            return ControlFlow::Continue(());
        }
        if Why::begins(before, now)
            && let Some(first) = First::of(occurrence.class)
        {
            self.give_up_namesake(occurrence, first, visitor)?;
        }
        let before = before.unwrap_or(now);
        if let Some(why) = Why::between(before, now, occurrence.after_gap) {
            self.give_up_stream(occurrence, stream, before.1, why, visitor)?;
        }
        if occurrence.lossy() {
            self.stack(thread).doubt(stream);
        }
        ControlFlow::Continue(())
    }

    /// Gives up the calls of a thread that had the ids before, if one had.
    fn give_up_namesake<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        first: First,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let thread = occurrence.thread;
        let stack = &*self.stack(thread);
        let over = |open: &u32| occurrence.is_over(*open);
        let mut gone: Vec<u32> = stack.streams().filter(over).collect();
        if !gone.is_empty() && (stack.goes_on(&gone, first) || !occurrence.has_predecessor()) {
            gone.clear();
        }
        let mut gone = gone.into_iter();
        gone.try_for_each(|gone| self.give_up_stream(occurrence, gone, thread, Why::ThreadEnded, visitor))
    }

    fn give_up_stream<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        stream: u32,
        thread: ThreadId,
        why: Why,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let (time, threads) = (occurrence.time, occurrence.threads());
        let at = At { time, thread, threads };
        let (stack, summary) = self.parts(thread);
        stack.give_up_stream(Moment { thread, time, stream }, why, |call| {
            summary.unfinished += 1;
            visitor.unfinished(at, &call)
        })
    }

    #[inline]
    fn entry<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        function: FunctionId,
        visitor: &mut V,
    ) -> ControlFlow<V::Break, Open> {
        let &Occurrence { time, thread, stream, .. } = occurrence;
        let (lossy, cost) = (occurrence.lossy(), occurrence.costs().of(function));
        let (stack, summary) = self.parts(thread);
        stack.enter(Moment { thread, time, stream }, function, lossy, cost, |call| {
            summary.unfinished += 1;
            visitor.unfinished(At { time, thread, threads: occurrence.threads() }, &call)
        })
    }

    #[inline]
    fn exit<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        function: FunctionId,
        error: Option<i64>,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let &Occurrence { time, thread, stream, .. } = occurrence;
        let at = At { time, thread, threads: occurrence.threads() };
        let (stack, summary) = self.parts(thread);
        if let Some(call) = stack.exit_innermost(Moment { thread, time, stream }, function, error) {
            summary.calls = summary.calls.saturating_add(1);
            return visitor.exit(at, &call, &occurrence.event);
        }
        self.exit_below(occurrence, function, error, visitor)
    }

    /// The same where the call is not the innermost, or not there.
    #[cold]
    fn exit_below<V: Visitor>(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        function: FunctionId,
        error: Option<i64>,
        visitor: &mut V,
    ) -> ControlFlow<V::Break> {
        let &Occurrence { time, thread, stream, .. } = occurrence;
        let at = At { time, thread, threads: occurrence.threads() };
        let (stack, summary) = self.parts(thread);
        let ended = stack.exit(Moment { thread, time, stream }, function, error, |call| {
            summary.unfinished += 1;
            visitor.unfinished(at, &call)
        })?;
        match ended {
            Ended::Call(call) => {
                self.summary.calls = self.summary.calls.saturating_add(1);
                visitor.exit(at, &call, &occurrence.event)
            }
            Ended::Orphan(orphan) => {
                self.summary.orphans += 1;
                visitor.orphan(at, &orphan, &occurrence.event)
            }
        }
    }

    fn fold(
        &mut self,
        occurrence: &Occurrence<'_, '_>,
        function: FunctionId,
        fields: &[usize; 4],
        more: [Option<usize>; 2],
    ) -> Fold {
        let thread = occurrence.thread;
        let fold = fold_of(&occurrence.event, (function, thread), fields, more);
        self.summary.calls = self.summary.calls.saturating_add(fold.count);
        self.stack(thread).fold(fold, None, occurrence.costs().of_folded())
    }

    /// Gives up what is still open.
    fn finish<V: Visitor>(&mut self, threads: &Threads, visitor: &mut V) -> ControlFlow<V::Break> {
        let time = self.summary.last.unwrap_or(0);
        for (index, stack) in self.stacks.iter_mut().enumerate() {
            let thread = ThreadId(u32::try_from(index).unwrap_or(u32::MAX));
            let at = At { time, thread, threads };
            while let Some(call) = stack.give_up(thread, time, Why::TraceEnds) {
                self.summary.unfinished += 1;
                visitor.unfinished(at, &call)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Many calls in one event, as its class has the fields; their place among others is found later.
pub(super) fn fold_of(
    event: &Event<'_, '_>,
    (function, thread): (FunctionId, ThreadId),
    fields: &[usize; 4],
    more: [Option<usize>; 2],
) -> Fold {
    let [count, first, last, total] = fields.map(|field| number_at(event, field));
    // Older traces do not have these.
    let [added_up, total_error] = more.map(|field| field.map_or(0, |field| number_at(event, field)));
    let summed = added_up != 0;
    Fold { function, thread, count, first, last, total, total_error, cost: 0, depth: 0, error: None, summed }
}

/// The number in a field of an event; 0 if there is none.
pub(super) fn number_at(event: &Event<'_, '_>, field: usize) -> u64 {
    event.get_at(Scope::EventFields, field).and_then(Scalar::as_u64).unwrap_or(0)
}

/// The text in a field of an event; empty if there is none.
pub(super) fn text_at<'e>(event: &'e Event<'_, '_>, field: usize) -> &'e str {
    event.get_at(Scope::EventFields, field).and_then(Scalar::as_str).unwrap_or("")
}
