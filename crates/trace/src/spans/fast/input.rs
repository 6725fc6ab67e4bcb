//! A stream on its way into digests.

use std::collections::VecDeque;

use hetrace_ctf::read::{EventView, Losses, Next, PacketInfo, Pause, StreamError, StreamReader};

use super::super::alike::Alike;
use super::super::calls::Why;
use super::super::commands::Command;
use super::super::stack::First;
use super::super::summary::Summary;
use super::super::walk::{At, fold_of, number_at, text_at};
use super::CallSink;
use super::digest::{Digest, Kind, Run, Special, Specials};
use super::digester::{Commands, Digester, NO_ENTRY};
use super::ends::{StreamEnd, When};
use super::slices::Slice;
use super::table::Table;
use crate::trace::{Class, Source, ThreadId, Threads, Trace};
use crate::values::{Plans, Values};

/// A stream, and its digests that were not needed yet.
#[derive(Debug)]
pub(super) struct Input<'t> {
    source: Source<'t>,
    /// Digests; those before `head` are done with.
    pub digests: Vec<Digest>,
    pub head: usize,
    /// Whose they are.
    pub runs: VecDeque<Run>,
    specials: Specials<'t>,
    /// Time of the last event read.
    pub last: u64,
    pub ended: bool,
    /// Packet and thread of the last event.
    before: Option<(u32, ThreadId)>,
    /// The thread of the first packet.
    owner: Option<ThreadId>,
    /// Events before this time are passed over.
    from: u64,
    /// Whether another slice may read the same packets, so that damage is not for this walk.
    in_slice: bool,
    /// Whether losses are not for this walk either, and where the last packet must end then.
    strict: Option<Option<u64>>,
    /// Whether more may come of it in a later step.
    goes_on: bool,
    /// The packet of the last event, how many of its events were read, and the packet before it.
    packet: Option<PacketInfo>,
    taken: u64,
    previous: Option<PacketInfo>,
    /// What of the stream's losses an earlier step has counted.
    counted: Losses,
}

/// How far a step has read a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Where the first packet begins that it has not read to its end.
    pub offset: u64,
    /// How many of its events are read.
    taken: u64,
    /// The packet before it.
    pub before: Option<PacketInfo>,
    packets: u32,
    thread: Option<ThreadId>,
    owner: Option<ThreadId>,
    last: u64,
    position: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            offset: 0,
            taken: 0,
            before: None,
            packets: 0,
            thread: None,
            owner: None,
            last: 0,
            position: usize::MAX,
        }
    }
}

/// What all inputs of a walk share.
pub(super) struct Shared<'t, 'b, B: CallSink> {
    pub trace: &'t Trace,
    pub tables: &'b [Table<'t>],
    /// The functions whose calls are shown with their values.
    pub noted: &'b Plans<'t>,
    pub threads: Threads,
    pub summary: Summary,
    pub sink: &'b mut B,
    pub alike: Alike<'t, B::Known>,
    /// Events at this time or later are somebody else's.
    pub until: u64,
}

/// A stream's time went back, or what a slice was cut by does not hold: nothing here does then.
#[derive(Debug)]
pub(super) struct Unfit;

impl<'t> Input<'t> {
    /// Of this slice of the trace.
    pub fn new(reader: StreamReader<'t>, slice: &Slice) -> Self {
        Self {
            source: Source::new(reader, None),
            digests: Vec::new(),
            head: 0,
            runs: VecDeque::new(),
            specials: Specials::default(),
            last: 0,
            ended: false,
            before: None,
            owner: None,
            from: slice.from.unwrap_or(0),
            in_slice: !slice.is_whole(),
            strict: None,
            goes_on: false,
            packet: None,
            taken: 0,
            previous: None,
            counted: Losses::default(),
        }
    }

    /// Goes to where an earlier step came to.
    pub fn resume<B: CallSink>(&mut self, place: &Place, to: &mut Shared<'t, '_, B>) {
        (self.last, self.owner, self.goes_on) = (place.last, place.owner, to.until != u64::MAX);
        let source = &mut self.source;
        (source.packets, source.position) = (place.packets, place.position);
        self.packet = place.before;
        let Some(thread) = place.thread else { return };
        for _ in 0..place.taken {
            let Some(Ok(_)) = source.advance() else { break };
            source.enter(to.trace, &mut to.threads);
        }
        self.before = Some((source.packets, thread));
        if place.taken > 0 {
            source.after_gap = false;
            self.taken = place.taken;
            self.previous = self.packet.take();
            self.packet = source.reader.packet().copied();
            self.counted = source.reader.losses();
        }
    }

    /// Where the next step goes on, and the losses that are new.
    pub fn place(&self) -> (Place, Losses) {
        let source = &self.source;
        let (next, mut losses) = (source.reader.packet(), source.reader.losses());
        losses.events = losses.events.saturating_sub(self.counted.events);
        losses.packets = losses.packets.saturating_sub(self.counted.packets);
        losses.damaged = losses.damaged.saturating_sub(self.counted.damaged);
        let offset = |packet: &PacketInfo| packet.offset;
        let same = self.taken > 0 && next.is_some() && next.map(offset) == self.packet.as_ref().map(offset);
        if let Some(next) = next.filter(|_| !same) {
            // It is read again from its begin.
            losses.events = losses.events.saturating_sub(next.discarded_before);
            losses.packets = losses.packets.saturating_sub(next.missing_before);
        }
        let place = Place {
            offset: next.map_or_else(|| source.reader.next_packet_at(), |next| next.offset),
            taken: if same { self.taken } else { 0 },
            before: if same { self.previous } else { self.packet },
            // Of a packet that is entered again, the number is given out again.
            packets: if same { source.packets.saturating_sub(1) } else { source.packets },
            thread: self.before.map(|(_, thread)| thread),
            owner: self.owner,
            last: self.last,
            position: source.position,
        };
        (place, losses)
    }

    /// From now on a loss, and packets that do not end at `limit`, end the walk.
    pub fn be_strict(&mut self, limit: Option<u64>) {
        self.strict = Some(limit);
    }

    /// What the stream says it has lost.
    pub fn losses(&self) -> hetrace_ctf::read::Losses {
        self.source.reader.losses()
    }

    /// The threads of the first and the last packet, where packets are of one thread.
    pub fn owners(&self) -> Option<(ThreadId, ThreadId)> {
        self.owner.zip(self.before.map(|(_, thread)| thread)).filter(|_| self.source.owns_packets())
    }

    /// Whether it goes on, for streams that begin; unknown in a slice.
    pub fn state(&self) -> StreamEnd {
        let end = match (self.in_slice, self.ended) {
            (true, _) => When::Unknown,
            (false, true) if self.goes_on => When::Later,
            (false, true) => When::After(self.last),
            (false, false) => When::Later,
        };
        let thread = self.before.map(|(_, thread)| thread);
        StreamEnd { of: thread.map(|thread| (self.source.position, thread)), end }
    }

    /// Reads until there are `room` digests, or the stream ends.
    pub fn fill<B: CallSink>(&mut self, room: usize, to: &mut Shared<'t, '_, B>) -> Result<(), Unfit> {
        self.compact();
        if self.last < self.from {
            self.pass_over(to)?;
        }
        while !self.ended && self.digests.len() < room {
            if self.scan(room, to) != Pause::Enough {
                self.whole(to)?;
            }
        }
        Ok(())
    }

    /// Forgets what is done with.
    fn compact(&mut self) {
        if self.head == 0 || self.head * 2 < self.digests.len() {
            return;
        }
        self.digests.drain(..self.head);
        self.runs.iter_mut().for_each(|run| run.start = run.start.saturating_sub(self.head));
        self.head = 0;
        // The last run goes on, however little of it is left.
        while self.runs.get(1).is_some_and(|next| next.start == 0) {
            self.runs.pop_front();
        }
        let numbers = self.digests.iter().filter(|d| d.kind() == Kind::Special).map(|d| d.word);
        self.specials.keep(numbers);
    }

    /// The position of the first digest that is not before `safe`.
    pub fn until(&self, safe: Option<u64>) -> usize {
        let rest = self.digests.get(self.head..).unwrap_or_default();
        self.head + safe.map_or(rest.len(), |safe| rest.partition_point(|digest| digest.time < safe))
    }

    pub fn special(&self, number: u32) -> Option<&Special<'t>> {
        self.specials.get(number)
    }

    /// The thread of the last digest.
    fn run(&mut self, thread: ThreadId) {
        if self.runs.back().is_none_or(|run| run.thread != thread) {
            self.runs.push_back(Run { thread, start: self.digests.len() });
        }
    }

    fn push_special(&mut self, time: u64, special: Special<'t>) {
        let number = self.specials.push(special);
        self.digests.push(Digest::new(Kind::Special, 0, time, number));
    }

    /// Goes over what needs no looking at.
    #[inline]
    fn scan<B: CallSink>(&mut self, room: usize, to: &mut Shared<'t, '_, B>) -> Pause {
        let source = &mut self.source;
        // Entries of a packet with losses are special, and times of other clocks are reckoned.
        let Some(table) = to.tables.get(source.position).filter(|_| !source.lossy && source.clock.is_none())
        else {
            return Pause::Whole;
        };
        let Some(scanner) = &table.scanner else { return Pause::Whole };
        let (Some((pid, tid)), Some(run)) = (source.ids, self.runs.back()) else { return Pause::Whole };
        let ids = (!source.owns_packets()).then_some([pid, tid]);
        let start = run.start.max(self.head);
        let commands = Commands {
            trace: to.trace,
            threads: &to.threads,
            thread: source.thread,
            stream: source.position,
            summary: &mut to.summary,
            sink: &mut *to.sink,
            alike: &mut to.alike,
        };
        let (specials, noted) = (&mut self.specials, to.noted);
        let digests = &mut self.digests;
        let mut digester = Digester { digests, room, entry: (NO_ENTRY, 0), specials, noted, commands };
        digester.take_back(start);
        let scanned = source.reader.scan(scanner, ids, to.until, &mut digester);
        digester.put_entry();
        if scanned.events > 0 {
            self.last = scanned.timestamp;
            source.last = Some(scanned.timestamp);
            to.summary.events += scanned.events;
            self.taken += scanned.events;
        }
        match scanned.pause {
            // Its time may be another's: it is looked at whole.
            Pause::Until => Pause::Whole,
            pause => pause,
        }
    }

    /// Goes to the first event that is not before the slice, and takes it.
    fn pass_over<B: CallSink>(&mut self, to: &mut Shared<'t, '_, B>) -> Result<(), Unfit> {
        loop {
            let table = to.tables.get(self.source.position).filter(|_| self.source.clock.is_none());
            if let Some(scanner) = table.and_then(|table| table.scanner.as_ref()) {
                self.source.reader.scan(scanner, None, self.from, &mut |_: EventView<'_>| Next::Go);
            }
            match self.source.advance() {
                Some(Ok(time)) if time < self.from => {
                    self.source.enter(to.trace, &mut to.threads);
                    let (thread, packet) = (self.source.thread, self.source.packets);
                    self.before = Some((packet, thread));
                    self.owner.get_or_insert(thread);
                }
                reached => {
                    self.last = self.from;
                    return self.take(reached, to);
                }
            }
        }
    }

    /// Takes one event with all that it has.
    fn whole<B: CallSink>(&mut self, to: &mut Shared<'t, '_, B>) -> Result<(), Unfit> {
        let next = self.source.advance();
        self.take(next, to)
    }

    fn take<B: CallSink>(
        &mut self,
        next: Option<Result<u64, StreamError>>,
        to: &mut Shared<'t, '_, B>,
    ) -> Result<(), Unfit> {
        let time = match next {
            None => return self.end(to.until),
            Some(Err(error)) => {
                if self.in_slice {
                    return Err(Unfit);
                }
                let cut = matches!(error, StreamError::Truncated { .. });
                to.summary.damage(error, self.source.last.filter(|_| cut));
                return Ok(());
            }
            Some(Ok(time)) => time,
        };
        if time >= to.until {
            return self.end(to.until);
        }
        if time < self.last {
            return Err(Unfit);
        }
        self.last = time;
        if self.source.enter(to.trace, &mut to.threads).is_none() {
            return Ok(());
        }
        self.count();
        to.summary.see(time);
        let (thread, packet) = (self.source.thread, self.source.packets);
        self.owner.get_or_insert(thread);
        if self.before != Some((packet, thread)) {
            if self.strict.is_some() && (self.source.lossy || self.source.after_gap) {
                return Err(Unfit);
            }
            self.enter_packet(time);
        }
        self.run(thread);
        self.event(time, to);
        Ok(())
    }

    /// One more event of the packet, or the first of the next.
    #[inline]
    fn count(&mut self) {
        let now = self.source.reader.packet();
        if now.map(|now| now.offset) != self.packet.map(|packet| packet.offset) || self.taken == 0 {
            self.previous = self.packet;
            (self.packet, self.taken) = (now.copied(), 0);
        }
        self.taken += 1;
    }

    /// What follows is of no slice, or of the next.
    fn end(&mut self, until: u64) -> Result<(), Unfit> {
        self.ended = true;
        let Some(Some(limit)) = self.strict else { return Ok(()) };
        let reader = &mut self.source.reader;
        while let Some(head) = reader.pass_packet() {
            let begin = head.ok().and_then(|head| head.timestamp_begin);
            if begin.is_none_or(|begin| begin < until) {
                return Err(Unfit);
            }
        }
        // Frames that begin like packets may yet lie inside of one.
        if reader.next_packet_at() == limit { Ok(()) } else { Err(Unfit) }
    }

    fn enter_packet(&mut self, time: u64) {
        let source = &mut self.source;
        let (packet, thread) = (source.packets, source.thread);
        let after_gap = std::mem::take(&mut source.after_gap);
        let (owned, lossy) = (source.owns_packets(), source.lossy);
        let now = (packet, thread);
        let before = self.before.replace(now);
        if !owned {
            return;
        }
        let begins = Why::begins(before, now);
        let before = before.unwrap_or(now);
        let why = Why::between(before, now, after_gap);
        if let Some(why) = why {
            self.run(before.1);
            self.push_special(time, Special::GiveUp(why));
        }
        self.run(thread);
        if begins && let Some(first) = self.first() {
            self.push_special(time, Special::Begins(first));
        }
        if lossy {
            self.push_special(time, Special::Doubt);
        }
    }

    /// What the event that is read says of the stream's begin.
    fn first(&self) -> Option<First> {
        let event = self.source.reader.current()?;
        First::of(self.source.classes.get(event.class_index()).unwrap_or(&Class::Other))
    }

    fn event<B: CallSink>(&mut self, time: u64, to: &mut Shared<'t, '_, B>) {
        let source = &self.source;
        let Some(event) = source.reader.current() else { return };
        let class = source.classes.get(event.class_index()).unwrap_or(&Class::Other);
        let (thread, lossy) = (source.thread, source.lossy);
        let entry = |special: Special<'t>| (Kind::Special, 0, 0, Some(special));
        let values = match class {
            Class::Entry(function) | Class::Exit(function, _) if to.noted.are_for(*function) => {
                let described = to.trace.described(*function);
                let (known, room) = ((*function, to.noted), self.specials.room());
                described.map(|described| match class {
                    Class::Entry(_) => Values::of_entry(described, &[], known, &event, room),
                    _ => Values::of_exit(described, known, &event, room),
                })
            }
            _ => None,
        };
        let (kind, function, word, special) = match (class, values) {
            (Class::Entry(function), Some(values)) => entry(Special::NotedEntry(*function, lossy, values)),
            (Class::Exit(function, verdict), Some(values)) => {
                entry(Special::NotedExit(*function, verdict.error(&event), values))
            }
            (class, _) => match class {
                Class::Entry(function) if lossy => entry(Special::Doubtful(*function)),
                Class::Entry(function) => (Kind::Entry, function.0, 0, None),
                Class::Exit(function, verdict) => match verdict.error(&event) {
                    None => (Kind::Exit, function.0, 0, None),
                    Some(code) => match i32::try_from(code) {
                        Ok(code) => (Kind::Failed, function.0, code as u32, None),
                        Err(_) => entry(Special::Failed(*function, code)),
                    },
                },
                Class::Fold(function, fields, more) => {
                    let fold = fold_of(&event, (*function, thread), fields, *more);
                    to.summary.calls = to.summary.calls.saturating_add(fold.count);
                    entry(Special::Fold(fold))
                }
                Class::Command(reader) => {
                    let at = At { time, thread, threads: &to.threads };
                    let read = reader.read(&event, time);
                    let command = Command::new(&read, to.trace.names(), at.who().pid);
                    to.summary.command(&command, time);
                    to.sink.command(at, &command, &mut B::Known::default());
                    return;
                }
                Class::Unknown(api, name) => {
                    let api = to.trace.functions().apis().get(*api).map_or("", String::as_str);
                    to.sink.unknown(api, text_at(&event, *name));
                    return;
                }
                Class::OwnWork(ns) => entry(Special::OwnWork(number_at(&event, *ns))),
                Class::Sample(_) => return,
                Class::BudgetStep | Class::Stack(..) | Class::Definition(_) | Class::Other => {
                    return to.sink.other(&event);
                }
            },
        };
        match special {
            Some(special) => self.push_special(time, special),
            None => self.digests.push(Digest::new(kind, function, time, word)),
        }
    }
}
