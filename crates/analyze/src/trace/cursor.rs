//! All events in the order of time, each with its thread and its kind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{Scope, StreamClass};
use hetrace_ctf::read::{Event, Losses, StreamError, StreamReader};

use super::Trace;
use super::class::Class;
use super::names::Names;
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
    /// Whether single events of its packet, or between it and the packet
    /// before, are missing.
    pub lossy: bool,
    /// Counts the packets of the stream.
    pub packet: u32,
    /// Whether a packet of the stream is of one thread.
    pub owns_stream: bool,
    /// The threads met so far.
    pub threads: &'c Threads,
    /// What numbers of device events stand for.
    pub names: &'t Names,
    /// Names of the APIs.
    pub apis: &'t [String],
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

/// One stream.
#[derive(Debug)]
struct Source<'t> {
    reader: StreamReader<'t>,
    /// Where the packet of the last event starts.
    packet: Option<u64>,
    packets: u32,
    classes: &'t [Class],
    identity: Identity,
    thread: ThreadId,
    /// Process and thread of `thread`.
    ids: Option<(i64, i64)>,
    /// None if ticks are nanoseconds.
    clock: Option<&'t hetrace_ctf::class::ClockClass>,
    /// Time of the last event.
    last: Option<u64>,
    started: bool,
    broken: bool,
    after_gap: bool,
    lossy: bool,
}

/// Where a stream says which thread an event is of.
#[derive(Clone, Copy, Debug, Default)]
enum Identity {
    /// In the packet: hetrace.
    #[default]
    Packet,
    /// In each event: LTTng.
    Event { pid: Option<usize>, tid: usize, name: Option<usize> },
}

/// Whether the packets of a stream class are of one thread each.
pub(super) fn is_by_thread(class: &StreamClass) -> bool {
    matches!(Identity::of(class), Identity::Packet)
}

impl Identity {
    fn of(class: &StreamClass) -> Self {
        let field = |name| class.event_context.as_ref().and_then(|c| c.index(name));
        match field("vtid").or_else(|| field("tid")) {
            Some(tid) => {
                Self::Event { pid: field("vpid").or_else(|| field("pid")), tid, name: field("procname") }
            }
            None => Self::Packet,
        }
    }
}

impl<'t> Cursor<'t> {
    pub(super) fn new(trace: &'t Trace, readers: impl Iterator<Item = StreamReader<'t>>) -> Self {
        let sources: Vec<_> = readers.map(Source::new).collect();
        let count = u32::try_from(sources.len()).unwrap_or(u32::MAX);
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

    /// What the streams say they have lost so far.
    pub fn losses(&self) -> Losses {
        let all = self.sources.iter().map(|s| s.reader.losses());
        all.fold(Losses::default(), |a, b| Losses {
            events: a.events.saturating_add(b.events),
            packets: a.packets.saturating_add(b.packets),
            damaged: a.damaged.saturating_add(b.damaged),
        })
    }

    /// The next event or damage; none at the end.
    pub fn next_item(&mut self) -> Option<Item<'_, 't>> {
        let index = match self.choose()? {
            Ok(index) => index,
            Err((error, after)) => return Some(Item::Damage { error, after }),
        };
        let source = self.sources.get_mut(index as usize)?;
        let time = source.enter(self.trace, &mut self.threads)?;
        let event = source.reader.current()?;
        let (after_gap, thread) = (std::mem::take(&mut source.after_gap), source.thread);
        Some(Item::Event(Occurrence {
            event,
            time,
            thread,
            stream: index,
            class: source.classes.get(event.class_index()).unwrap_or(&Class::Other),
            after_gap,
            lossy: source.lossy,
            packet: source.packets,
            owns_stream: matches!(source.identity, Identity::Packet),
            threads: &self.threads,
            names: self.trace.names(),
            apis: self.trace.functions().apis(),
        }))
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

impl<'t> Source<'t> {
    fn new(reader: StreamReader<'t>) -> Self {
        Self {
            reader,
            packet: None,
            packets: 0,
            classes: &[],
            identity: Identity::Packet,
            thread: ThreadId(0),
            ids: None,
            clock: None,
            last: None,
            started: false,
            broken: false,
            after_gap: false,
            lossy: false,
        }
    }

    #[inline]
    fn advance(&mut self) -> Option<Result<u64, StreamError>> {
        match self.reader.next_event()? {
            Ok(event) => {
                let ticks = event.timestamp().unwrap_or(0);
                if !self.started {
                    self.started = true;
                    self.clock = event.clock().filter(|c| c.frequency != 1_000_000_000);
                }
                let time = self.ns(ticks);
                self.last = Some(time);
                Some(Ok(time))
            }
            Err(error) => {
                self.broken = true;
                Some(Err(error))
            }
        }
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        match self.clock {
            None => ticks,
            Some(clock) => {
                let ns = u128::from(ticks) * 1_000_000_000 / u128::from(clock.frequency.max(1));
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        }
    }

    /// Looks at the head of the packet if the event is the first in it; gives
    /// the event's time.
    #[inline]
    fn enter(&mut self, trace: &'t Trace, threads: &mut Threads) -> Option<u64> {
        let info = self.reader.packet()?;
        if self.packet != Some(info.offset) {
            self.packet = Some(info.offset);
            self.packets = self.packets.saturating_add(1);
            self.lossy = info.discarded_before > 0;
            self.after_gap = info.missing_before > 0 || std::mem::take(&mut self.broken);
            self.enter_packet(trace, threads);
        }
        let event = self.reader.current()?;
        if let Identity::Event { pid, tid, name } = self.identity {
            let get = |field| event.get_at(Scope::StreamEventContext, field);
            let number = |field| get(field).and_then(Scalar::as_i64);
            let ids = (pid.and_then(number).unwrap_or(0), number(tid).unwrap_or(0));
            if self.ids != Some(ids) {
                self.ids = Some(ids);
                self.thread = threads.number(ids.0, ids.1);
                if let Some(name) = name.and_then(get).and_then(Scalar::as_str) {
                    threads.rename(self.thread, name);
                }
            }
        }
        Some(self.ns(event.timestamp().unwrap_or(0)))
    }

    #[cold]
    fn enter_packet(&mut self, trace: &'t Trace, threads: &mut Threads) {
        let Some(event) = self.reader.current() else {
            return;
        };
        let class = event.stream_class();
        let streams = &trace.ctf.class().streams;
        let position = streams.iter().position(|s| std::ptr::eq(s, class));
        self.classes = trace.classes.of_stream(position.unwrap_or(usize::MAX));
        self.identity = Identity::of(class);
        if matches!(self.identity, Identity::Packet) {
            let get = |name| event.get_in(Scope::PacketContext, name);
            let number = |name| get(name).and_then(Scalar::as_i64).unwrap_or(0);
            let ids = (number("vpid"), number("vtid"));
            self.ids = Some(ids);
            self.thread = threads.number(ids.0, ids.1);
            let name = get("procname").and_then(Scalar::as_str).unwrap_or("");
            // A stream of commands has the name of the process, not of a thread.
            let calls = self.classes.iter().any(|c| matches!(c, Class::Entry(_)));
            if !name.is_empty() && (calls || threads.get(self.thread).name.is_empty()) {
                threads.rename(self.thread, name);
            }
        }
    }
}
