//! One stream, and what of its packets an event needs: its thread, its kind, its losses.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EnvValue, Scope};
use hetrace_ctf::read::{EventView, Next, StreamError, StreamReader};

use super::Trace;
use super::class::Class;
use super::identity::Identity;
use super::only::Only;
use super::threads::{ThreadId, Threads};

/// One stream.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    pub reader: StreamReader<'t>,
    /// If not all events are looked for.
    only: Option<&'t Only<'t>>,
    /// Where the packet of the last event starts.
    pub packet: Option<u64>,
    pub packets: u32,
    pub classes: &'t [Class],
    /// The position of the stream class.
    pub position: usize,
    pub identity: Identity,
    /// The process of events that do not say theirs: that of the whole trace, where LTTng has one for each.
    process: i64,
    pub thread: ThreadId,
    /// Process and thread of `thread`.
    pub ids: Option<(i64, i64)>,
    /// None if ticks are nanoseconds.
    pub clock: Option<&'t hetrace_ctf::class::ClockClass>,
    /// Time of the last event.
    pub last: Option<u64>,
    /// How often that was after the next one.
    pub steps: StepsBack,
    pub started: bool,
    /// Whether nothing more comes.
    pub ended: bool,
    pub broken: bool,
    pub after_gap: bool,
    pub lossy: bool,
    /// Whether of the events of the packet nothing is looked at but their times, which are in nanoseconds.
    uniform: bool,
}

/// How often a stream's time went back. Ours never does; a clock that was set, or another
/// tracer, may have made it so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepsBack {
    /// How many times.
    pub count: u64,
    /// The farthest, in nanoseconds.
    pub largest: u64,
    /// From when that was.
    pub from: u64,
}

impl StepsBack {
    #[cold]
    pub(super) fn see(&mut self, from: u64, to: u64) {
        self.count += 1;
        let step = from.saturating_sub(to);
        if step > self.largest {
            (self.largest, self.from) = (step, from);
        }
    }
}

impl<'t> Source<'t> {
    pub fn new(reader: StreamReader<'t>, only: Option<&'t Only<'t>>) -> Self {
        Self {
            reader,
            only,
            packet: None,
            packets: 0,
            classes: &[],
            position: usize::MAX,
            identity: Identity::Packet,
            process: 0,
            thread: ThreadId(0),
            ids: None,
            clock: None,
            last: None,
            steps: StepsBack::default(),
            started: false,
            ended: false,
            broken: false,
            after_gap: false,
            lossy: false,
            uniform: false,
        }
    }

    /// The same stream for who goes over all of its events, or those that are looked for.
    pub fn reading_ahead(self) -> Self {
        match self.only {
            None => Self { reader: self.reader.reading_ahead(), ..self },
            Some(_) => self,
        }
    }

    /// The same stream, of which these steps are known.
    pub fn with(self, steps: StepsBack) -> Self {
        Self { steps, ..self }
    }

    /// Whether a packet is of one thread.
    pub fn owns_packets(&self) -> bool {
        matches!(self.identity, Identity::Packet)
    }

    /// Returns the time of the next event if that is known already, and all else that is to be known of it is as
    /// it was for the last one.
    #[inline(always)]
    pub fn time_ahead(&self) -> Option<u64> {
        let time = self.reader.time_ahead().filter(|_| self.uniform)?;
        (self.last? <= time).then_some(time)
    }

    /// Goes to that event.
    #[inline(always)]
    pub fn go_ahead(&mut self, time: u64) {
        self.reader.go_ahead();
        self.last = Some(time);
    }

    /// Goes to the next event; gives its time.
    #[inline]
    pub fn advance(&mut self) -> Option<Result<u64, StreamError>> {
        if let Some(scanner) = self.only.and_then(|only| only.scanner(self.position)) {
            self.reader.scan(scanner, None, u64::MAX, &mut |_: EventView<'_>| Next::Go);
        }
        let Some(next) = self.reader.next_event() else {
            self.ended = true;
            return None;
        };
        match next {
            Ok(event) => {
                let ticks = event.timestamp().unwrap_or(0);
                if !self.started {
                    self.started = true;
                    self.clock = event.clock().filter(|c| c.frequency != 1_000_000_000);
                }
                let time = self.ns(ticks);
                if let Some(last) = self.last.replace(time)
                    && time < last
                {
                    self.steps.see(last, time);
                }
                Some(Ok(time))
            }
            Err(error) => {
                self.broken = true;
                Some(Err(error))
            }
        }
    }

    /// Ticks in nanoseconds.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
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
    pub fn enter(&mut self, trace: &'t Trace, threads: &mut Threads) -> Option<u64> {
        let info = self.reader.packet()?;
        if self.packet != Some(info.offset) {
            self.packet = Some(info.offset);
            self.packets = self.packets.saturating_add(1);
            self.lossy = info.discarded_before > 0;
            self.after_gap = info.missing_before > 0 || std::mem::take(&mut self.broken);
            self.enter_packet(trace, threads);
        }
        let time = self.last?;
        if let Identity::Event { pid, tid, name } = self.identity {
            let event = self.reader.current()?;
            let get = |field| event.get_at(Scope::StreamEventContext, field);
            let number = |field| get(field).and_then(Scalar::as_i64);
            let ids = (pid.and_then(number).unwrap_or(self.process), tid.and_then(number).unwrap_or(0));
            if self.ids != Some(ids) {
                self.ids = Some(ids);
                self.thread = threads.number(ids.0, ids.1);
                if let Some(name) = name.and_then(get).and_then(Scalar::as_str) {
                    threads.rename(self.thread, name, time);
                }
            }
        }
        Some(time)
    }

    #[cold]
    fn enter_packet(&mut self, trace: &'t Trace, threads: &mut Threads) {
        let Some(event) = self.reader.current() else {
            return;
        };
        let time = self.ns(event.timestamp().unwrap_or(0));
        let class = event.stream_class();
        let streams = &trace.ctf.class().streams;
        let position = streams.iter().position(|s| std::ptr::eq(s, class));
        self.position = position.unwrap_or(usize::MAX);
        self.classes = self.only.map_or(&trace.classes, Only::classes).of_stream(self.position);
        self.identity = Identity::of(class);
        self.uniform = self.owns_packets() && self.clock.is_none() && self.only.is_none();
        let environment = trace.ctf.class();
        self.process = environment.env("vpid").and_then(EnvValue::as_i64).unwrap_or(0);
        if matches!(self.identity, Identity::Packet) {
            let get = |name| event.get_in(Scope::PacketContext, name);
            let number = |name| get(name).and_then(Scalar::as_i64);
            let ids = (number("vpid").unwrap_or(self.process), number("vtid").unwrap_or(0));
            self.ids = Some(ids);
            self.thread = threads.number(ids.0, ids.1);
            let name = get("procname").and_then(Scalar::as_str).unwrap_or("");
            // A stream of commands has the name of the process, not of a thread.
            let calls = self.classes.iter().any(|c| matches!(c, Class::Entry(_)));
            if calls {
                threads.rename(self.thread, name, time);
            } else {
                threads.name_anew(self.thread, name);
            }
        }
    }
}
