//! What a scan sees becomes digests: the loop that every event goes through.

use hetrace_ctf::read::{EventView, EventVisitor, Next};

use super::super::alike::{Alike, Origin};
use super::super::commands::Command;
use super::super::summary::Summary;
use super::super::walk::At;
use super::CallSink;
use super::digest::{Digest, Kind, Special, Specials, is, number, turned};
use crate::trace::{Class, FunctionId, ThreadId, Threads, Trace};
use crate::values::{Plans, Values};

/// What stands for no entry: that of no function, as none has this number.
pub(super) const NO_ENTRY: u32 = u32::MAX;

/// Makes digests.
pub(super) struct Digester<'d, 't, B: CallSink> {
    pub digests: &'d mut Vec<Digest>,
    /// How many there may be.
    pub room: usize,
    /// An entry whose exit may come next, which is not among the digests then: function and kind, or
    /// [`NO_ENTRY`], and its time.
    pub entry: (u32, u64),
    pub specials: &'d mut Specials<'t>,
    /// The functions whose calls are shown with their values.
    pub noted: &'d Plans<'t>,
    pub commands: Commands<'d, 't, B>,
}

/// What is taken of an event of a class that is rare. A function that is not inlined has this, and not the
/// [`EventView`], for its argument: that one would be written to memory for each event, rare or not.
#[derive(Clone, Copy)]
struct Rare<'e> {
    /// That of the class in its stream class.
    number: u32,
    time: u64,
    /// Its result.
    field: i64,
    payload: &'e [u8],
}

impl<'e> Rare<'e> {
    #[inline(always)]
    fn of(view: EventView<'e>) -> Self {
        let (time, field) = (view.timestamp, view.field);
        Self { number: number(view.mark), time, field, payload: view.own_payload() }
    }
}

/// Where commands go.
pub(super) struct Commands<'d, 't, B: CallSink> {
    pub trace: &'t Trace,
    pub threads: &'d Threads,
    /// Whose the events are.
    pub thread: ThreadId,
    /// The position of the stream class.
    pub stream: usize,
    pub summary: &'d mut Summary,
    pub sink: &'d mut B,
    pub alike: &'d mut Alike<'t, B::Known>,
}

impl<B: CallSink> EventVisitor for Digester<'_, '_, B> {
    #[inline(always)]
    fn visit(&mut self, view: EventView<'_>) -> Next {
        let (what, time) = (view.mark, view.timestamp);
        if is(what, Kind::Entry) {
            let before = std::mem::replace(&mut self.entry, (what, time));
            if before.0 != NO_ENTRY {
                self.digests.push(Digest::of(before.0, before.1, 0));
                if self.digests.len() >= self.room {
                    return Next::Enough;
                }
            }
            return Next::Go;
        }
        if is(what, Kind::Rare) {
            return self.rare(Rare::of(view));
        }
        if (view.field != 0) != is(what, Kind::NonZero) {
            // Which codes are none of failures is looked at with the event.
            let code = i32::try_from(view.field).ok().filter(|_| !is(what, Kind::State));
            let Some(code) = code else { return Next::Leave };
            self.put_entry();
            self.digests.push(Digest::of(turned(what, Kind::Failed), time, code as u32));
        } else if self.entry.0 == turned(what, Kind::Entry)
            && let Ok(took) = u32::try_from(time - self.entry.1)
        {
            self.digests.push(Digest::of(turned(what, Kind::Leaf), self.entry.1, took));
        } else {
            self.put_entry();
            self.digests.push(Digest::of(turned(what, Kind::Exit), time, 0));
        }
        self.entry.0 = NO_ENTRY;
        if self.digests.len() >= self.room { Next::Enough } else { Next::Go }
    }

    /// The entry and the exit of one call, mostly.
    #[inline(always)]
    fn pair(&mut self, entry: EventView<'_>, exit: EventView<'_>) -> Next {
        let failed = (exit.field != 0) != is(exit.mark, Kind::NonZero);
        let Ok(took) = u32::try_from(exit.timestamp - entry.timestamp) else { return Next::Leave };
        if failed {
            return Next::Leave;
        }
        self.put_entry();
        self.entry.0 = NO_ENTRY;
        self.digests.push(Digest::of(turned(exit.mark, Kind::Leaf), entry.timestamp, took));
        if self.digests.len() >= self.room { Next::Enough } else { Next::Go }
    }

    #[inline(always)]
    fn read(&mut self, view: EventView<'_>) -> Option<usize> {
        self.commands.take(number(view.mark), view.timestamp, view.payload())
    }
}

impl<'t, B: CallSink> Digester<'_, 't, B> {
    /// An event whose class has this number in its stream class.
    #[inline(never)]
    fn rare(&mut self, event: Rare<'_>) -> Next {
        let (trace, stream) = (self.commands.trace, self.commands.stream);
        match trace.classes().of_stream(stream).get(event.number as usize) {
            Some(Class::Entry(function)) => {
                self.noted(*function, event, |values| Special::NotedEntry(*function, false, values))
            }
            Some(Class::Exit(function, verdict)) => self.noted(*function, event, |values| {
                Special::NotedExit(*function, verdict.error_of(event.field), values)
            }),
            _ => Next::Leave,
        }
    }

    /// An event of a call that is shown with its values.
    fn noted(
        &mut self,
        function: FunctionId,
        event: Rare<'_>,
        special: impl FnOnce(Values<'t>) -> Special<'t>,
    ) -> Next {
        let trace = self.commands.trace;
        let class = trace.ctf().class().streams.get(self.commands.stream);
        let class = class.and_then(|stream| stream.events.get(event.number as usize));
        let Some((class, described)) = class.zip(trace.described(function)) else { return Next::Leave };
        let (room, known) = (self.specials.room(), (function, self.noted));
        match Values::of_payload(described, known, class, event.payload, room) {
            Err(room) => {
                self.specials.take_room(room);
                return Next::Leave;
            }
            Ok(values) => {
                self.put_entry();
                self.entry.0 = NO_ENTRY;
                let number = self.specials.push(special(values));
                self.digests.push(Digest::new(Kind::Special, 0, event.time, number));
            }
        }
        if self.digests.len() >= self.room { Next::Enough } else { Next::Go }
    }
}

impl<B: CallSink> Digester<'_, '_, B> {
    /// Takes the last digest, if it is an entry and not before `start`.
    pub fn take_back(&mut self, start: usize) {
        if let Some(digest) = self.digests.get(start..).and_then(<[_]>::last)
            && digest.kind() == Kind::Entry
        {
            self.entry = (digest.what(), digest.time);
            self.digests.pop();
        }
    }

    /// The entry is a digest of its own.
    #[inline(always)]
    pub fn put_entry(&mut self) {
        if self.entry.0 != NO_ENTRY {
            self.digests.push(Digest::of(self.entry.0, self.entry.1, 0));
        }
    }
}

impl<B: CallSink> Commands<'_, '_, B> {
    /// Takes one, and returns how long its payload is.
    #[inline(never)]
    fn take(&mut self, number: u32, time: u64, payload: &[u8]) -> Option<usize> {
        let class = self.trace.classes().of_stream(self.stream).get(number as usize);
        let Some(Class::Command(reader)) = class else { return None };
        let at = At { time, thread: self.thread, threads: self.threads };
        let of = Origin { stream: self.stream, class: number, thread: self.thread };
        let place = self.alike.place(of, reader, payload);
        if let Some(place) = place
            && let Some((seen, length)) = self.alike.find(place, of, reader, payload, time)
        {
            self.summary.command(&seen.command, time);
            self.sink.command(at, &seen.command, &mut seen.known);
            return Some(length);
        }
        let (read, length) = reader.read_payload(payload, time)?;
        let command = Command::new(&read, self.trace.names(), at.who().pid);
        self.summary.command(&command, time);
        let mut known = B::Known::default();
        self.sink.command(at, &command, &mut known);
        if let Some(place) = place {
            self.alike.keep(place, of, reader.pattern(payload), command, known);
        }
        Some(length)
    }
}
