//! What a scan sees becomes digests: the loop that every event goes through.

use hetrace_ctf::read::{Glimpse, Next, Sight};

use super::super::commands::Command;
use super::super::summary::Summary;
use super::super::walk::At;
use super::Brief;
use super::digest::{Digest, Kind, is, number, turned};
use crate::trace::{Class, ThreadId, Threads, Trace};

/// What stands for no entry: that of no function, as none has this number.
pub(super) const NO_ENTRY: (u32, u64) = (u32::MAX, 0);

/// Makes digests.
pub(super) struct Taker<'d, 't, B> {
    pub digests: &'d mut Vec<Digest>,
    /// How many there may be.
    pub room: usize,
    /// An entry whose exit may come next; it is not among the digests then.
    pub entry: (u32, u64),
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

impl<B: Brief> Sight for Taker<'_, '_, B> {
    #[inline(always)]
    fn see(&mut self, glimpse: Glimpse<'_>) -> Next {
        let (what, time) = (glimpse.mark, glimpse.timestamp);
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
        if is(what, Kind::Command) {
            return self.commands.take(number(what), &glimpse);
        }
        if (glimpse.field != 0) != is(what, Kind::NonZero) {
            // Which codes are none of failures is looked at with the event.
            let code = i32::try_from(glimpse.field).ok().filter(|_| !is(what, Kind::State));
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

impl<B> Taker<'_, '_, B> {
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

impl<B: Brief> Commands<'_, '_, B> {
    /// One whose event class has this number in its stream class.
    #[inline(never)]
    fn take(&mut self, class: u32, glimpse: &Glimpse<'_>) -> Next {
        let class = self.trace.classes().of_stream(self.stream).get(class as usize);
        let Some(Class::Command(fields)) = class else { return Next::Leave };
        let at = At { time: glimpse.timestamp, thread: self.thread, threads: self.threads };
        let names = self.trace.names();
        let Some(command) = Command::picked(fields, names, glimpse.payload(), at.time, at.who().pid) else {
            return Next::Leave;
        };
        self.summary.command(&command, at.time);
        self.sink.command(at, &command);
        Next::Go
    }
}
