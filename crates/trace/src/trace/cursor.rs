//! All events in the order of time, each with its thread and its kind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Losses, StreamError};

use super::Trace;
use super::class::Class;
use super::cost::Costs;
use super::functions::FunctionId;
use super::names::Names;
use super::source::{Source, StepsBack};
use super::threads::{ThreadId, Threads};

/// One step of a [`Cursor`].
#[derive(Debug)]
pub enum Item<'c, 't> {
    /// An event.
    Event(Occurrence<'c, 't>),
    /// Bytes that could not be read. It comes when the stream is read ahead
    /// over them, so somewhat before its time.
    Damage {
        /// What is wrong.
        error: StreamError,
        /// The time of the last event before, if there is one.
        after: Option<u64>,
    },
}

/// An event and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence<'c, 't> {
    /// The event.
    pub event: Event<'c, 't>,
    /// Nanoseconds on the trace's clock.
    pub time: u64,
    /// Its thread.
    pub thread: ThreadId,
    /// The number of its stream.
    pub stream: u32,
    /// Its kind.
    pub class: &'t Class,
    /// Whether a part of the stream is missing right before it.
    pub after_gap: bool,
    source: &'c Source<'t>,
    cursor: &'c Cursor<'t>,
}

/// What few events are asked for is looked up then, so that each carries little.
impl<'c, 't> Occurrence<'c, 't> {
    /// Whether single events of its packet, or between it and the packet
    /// before, are missing.
    #[inline]
    pub fn lossy(&self) -> bool {
        self.source.lossy
    }

    /// Counts the packets of the stream.
    #[inline]
    pub fn packet(&self) -> u32 {
        self.source.packets
    }

    /// Whether a packet of the stream is of one thread.
    pub fn owns_stream(&self) -> bool {
        self.source.owns_packets()
    }

    /// The position of its stream's class.
    pub(crate) fn stream_class(&self) -> usize {
        self.source.position
    }

    /// The threads met so far.
    #[inline]
    pub fn threads(&self) -> &'c Threads {
        &self.cursor.threads
    }

    /// What numbers of device events stand for.
    pub fn names(&self) -> &'t Names {
        self.cursor.trace.names()
    }

    /// The code that makes the call which the event begins, if the event says so.
    #[inline]
    pub fn code(&self, function: FunctionId) -> Option<u64> {
        let field = self.cursor.trace.functions().code_field(function)?;
        let address = self.event.integer_at(Scope::EventFields, field)? as u64;
        self.names().stacks().of_code(self.cursor.threads.get(self.thread).pid, address, self.time)
    }

    /// Names of the APIs.
    pub fn apis(&self) -> &'t [String] {
        self.cursor.trace.functions().apis()
    }

    /// What recording calls has cost.
    #[inline]
    pub fn costs(&self) -> &'t Costs {
        self.cursor.trace.costs()
    }

    /// Whether a stream has no more events.
    pub fn is_over(&self, stream: u32) -> bool {
        self.cursor.sources.get(stream as usize).is_some_and(|source| source.ended)
    }

    /// Whether a stream that is over was of the same thread and class as the event's.
    pub fn has_predecessor(&self) -> bool {
        let now = self.source;
        let alike = |before: &Source<'_>| (before.position, before.thread) == (now.position, now.thread);
        self.cursor.sources.iter().any(|before| before.ended && before.started && alike(before))
    }
}

/// Walks over all streams.
///
/// It stays in a stream as long as no other has an earlier event, so that
/// bursts of one thread cost no search.
#[derive(Debug)]
pub struct Cursor<'t> {
    trace: &'t Trace,
    sources: Vec<Source<'t>>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// Streams to advance before the next event can be chosen; the last first.
    pending: Vec<u32>,
    threads: Threads,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(trace: &'t Trace, sources: Vec<Source<'t>>) -> Self {
        let count = u32::try_from(sources.len()).unwrap_or(u32::MAX);
        let sources: Vec<_> = sources.into_iter().map(Source::reading_ahead).collect();
        Self {
            trace,
            heap: BinaryHeap::with_capacity(sources.len()),
            pending: (0..count).rev().collect(),
            sources,
            threads: Threads::default(),
        }
    }

    /// The threads met so far.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Knows a thread by its process and id from now on; a name of its own counts until the trace gives it one.
    pub(crate) fn meet(&mut self, (pid, tid): (i64, i64), name: &str) -> ThreadId {
        let id = self.threads.number(pid, tid);
        self.threads.name_anew(id, name);
        id
    }

    /// What the streams say they have lost so far.
    pub fn losses(&self) -> Losses {
        let all = self.sources.iter().map(|s| s.reader.losses());
        all.fold(Losses::default(), |a, b| Losses {
            events: a.events.saturating_add(b.events),
            packets: a.packets.saturating_add(b.packets),
            damaged: a.damaged.saturating_add(b.damaged),
        })
    }

    /// The streams whose time has gone back so far, and how.
    pub fn steps_back(&self) -> impl Iterator<Item = (&'t str, StepsBack)> {
        let stepped = self.sources.iter().filter(|source| source.steps.count > 0);
        stepped.map(|source| (source.reader.name(), source.steps))
    }

    /// The next event or damage; none at the end.
    // An item is large, and made for each event: where it is used at once, it need not be in memory.
    #[inline(always)]
    pub fn next_item(&mut self) -> Option<Item<'_, 't>> {
        let (index, time, after_gap) = match self.goes_on() {
            Some((same, time)) => (same, time, false),
            None => match self.choose()? {
                Ok(index) => {
                    let source = self.sources.get_mut(index as usize)?;
                    let time = source.enter(self.trace, &mut self.threads)?;
                    (index, time, std::mem::take(&mut source.after_gap))
                }
                Err((error, after)) => return Some(Item::Damage { error, after }),
            },
        };
        let source = self.sources.get(index as usize)?;
        let event = source.reader.current()?;
        Some(Item::Event(Occurrence {
            event,
            time,
            thread: source.thread,
            stream: index,
            class: source.classes.get(event.class_index()).unwrap_or(&Class::Other),
            after_gap,
            source,
            cursor: self,
        }))
    }

    /// The stream of the last event, if it has the next one, too, in the same packet: nothing but the time is new then.
    #[inline(always)]
    fn goes_on(&mut self) -> Option<(u32, u64)> {
        let [index] = *self.pending.as_slice() else { return None };
        let source = self.sources.get_mut(index as usize)?;
        let time = source.time_ahead()?;
        if self.heap.peek().is_some_and(|top| (time, index) >= top.0) {
            return None;
        }
        source.go_ahead(time);
        Some((index, time))
    }

    fn choose(&mut self) -> Option<Result<u32, (StreamError, Option<u64>)>> {
        while let Some(&index) = self.pending.last() {
            let source = self.sources.get_mut(index as usize)?;
            match source.advance() {
                Some(Err(error)) => return Some(Err((error, source.last))),
                None => {}
                Some(Ok(time)) => {
                    let only = self.pending.len() == 1;
                    let first = self.heap.peek().is_none_or(|top| (time, index) < top.0);
                    if only && first {
                        // Still pending: it is advanced when the caller has seen the event.
                        return Some(Ok(index));
                    }
                    if only && let Some(mut top) = self.heap.peek_mut() {
                        // The stream that is next takes its place, and it that of the other: the heap is ordered once.
                        let Reverse((_, next)) = std::mem::replace(&mut *top, Reverse((time, index)));
                        drop(top);
                        self.pending.clear();
                        self.pending.push(next);
                        return Some(Ok(next));
                    }
                    self.heap.push(Reverse((time, index)));
                }
            }
            self.pending.pop();
        }
        let Reverse((_, index)) = self.heap.pop()?;
        self.pending.push(index);
        Some(Ok(index))
    }
}
