//! What a scan sees becomes digests: the loop that every event goes through.

use hetrace_ctf::read::{EventView, EventVisitor, Next};
use hetrace_format::command::Reader;

use super::super::commands::Command;
use super::super::summary::Summary;
use super::super::walk::At;
use super::CallSink;
use super::digest::{Digest, Kind, Special, Specials, is, number, turned};
use crate::trace::{Class, FunctionId, ThreadId, Threads, Trace};
use crate::values::{Plans, Values};

/// What stands for no entry: that of no function, as none has this number.
pub(super) const NO_ENTRY: (u32, u64) = (u32::MAX, 0);

/// Makes digests.
pub(super) struct Digester<'d, 't, B> {
    pub digests: &'d mut Vec<Digest>,
    /// How many there may be.
    pub room: usize,
    /// An entry whose exit may come next; it is not among the digests then.
    pub entry: (u32, u64),
    pub specials: &'d mut Specials<'t>,
    /// The functions whose calls are shown with their values.
    pub noted: &'d Plans<'t>,
    pub commands: Commands<'d, 't, B>,
}

/// Where commands go.
pub(super) struct Commands<'d, 't, B> {
    pub trace: &'t Trace,
    pub threads: &'d Threads,
    /// Whose the events are.
    pub thread: ThreadId,
    /// The position of the stream class.
    pub stream: usize,
    pub summary: &'d mut Summary,
    pub sink: &'d mut B,
}

impl<B: CallSink> EventVisitor for Digester<'_, '_, B> {
    const FINDS_ENDS: bool = true;

    #[inline(always)]
    fn visit(&mut self, view: EventView<'_>) -> Next {
        let (what, time) = (view.mark, view.timestamp);
        if is(what, Kind::Entry) {
            let before = std::mem::replace(&mut self.entry, (what, time));
            if before != NO_ENTRY {
                self.digests.push(Digest::of(before.0, before.1, 0));
                if self.digests.len() >= self.room {
                    return Next::Enough;
                }
            }
            return Next::Go;
        }
        if is(what, Kind::Rare) {
            return self.rare(number(what), view);
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
        self.entry = NO_ENTRY;
        if self.digests.len() >= self.room { Next::Enough } else { Next::Go }
    }
}

impl<'t, B: CallSink> Digester<'_, 't, B> {
    /// An event whose class has this number in its stream class.
    #[inline(never)]
    fn rare(&mut self, number: u32, view: EventView<'_>) -> Next {
        let (trace, stream) = (self.commands.trace, self.commands.stream);
        match trace.classes().of_stream(stream).get(number as usize) {
            Some(Class::Command(reader)) => self.commands.take(reader, &view),
            Some(Class::Entry(function)) => {
                self.noted(*function, number, &view, |values| Special::NotedEntry(*function, false, values))
            }
            Some(Class::Exit(function, verdict)) => self.noted(*function, number, &view, |values| {
                Special::NotedExit(*function, verdict.error_of(view.field), values)
            }),
            _ => Next::Leave,
        }
    }

    /// An event of a call that is shown with its values.
    fn noted(
        &mut self,
        function: FunctionId,
        number: u32,
        view: &EventView<'_>,
        special: impl FnOnce(Values<'t>) -> Special<'t>,
    ) -> Next {
        let trace = self.commands.trace;
        let class = trace.ctf().class().streams.get(self.commands.stream);
        let class = class.and_then(|stream| stream.events.get(number as usize));
        let Some((class, described)) = class.zip(trace.described(function)) else { return Next::Leave };
        let (room, payload) = (self.specials.room(), view.own_payload());
        let known = (function, self.noted);
        match Values::of_payload(described, known, class, payload, room) {
            Err(room) => {
                self.specials.take_room(room);
                return Next::Leave;
            }
            Ok(values) => {
                self.put_entry();
                self.entry = NO_ENTRY;
                let number = self.specials.push(special(values));
                self.digests.push(Digest::new(Kind::Special, 0, view.timestamp, number));
            }
        }
        if self.digests.len() >= self.room { Next::Enough } else { Next::Go }
    }
}

impl<B> Digester<'_, '_, B> {
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
        if self.entry != NO_ENTRY {
            self.digests.push(Digest::of(self.entry.0, self.entry.1, 0));
        }
    }
}

impl<B: CallSink> Commands<'_, '_, B> {
    fn take(&mut self, reader: &Reader, view: &EventView<'_>) -> Next {
        let at = At { time: view.timestamp, thread: self.thread, threads: self.threads };
        let Some((read, length)) = reader.read_payload(view.payload(), at.time) else {
            return Next::Leave;
        };
        let command = Command::new(&read, self.trace.names(), at.who().pid);
        self.summary.command(&command, at.time);
        self.sink.command(at, &command);
        Next::Past(length)
    }
}
