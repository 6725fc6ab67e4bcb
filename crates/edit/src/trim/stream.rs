//! One stream file, packet by packet: copied, rewritten or left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use hetrace_ctf::Value;
use hetrace_ctf::account::{PacketFacts, StreamAccount};
use hetrace_ctf::read::{Event, Packet, PacketReader, StreamReader, Trace, clock_bits, clock_of};

use super::kinds::{Identity, Kind, StreamKind, ids, number};
use super::rewrite::{Body, Numbers, Rewriter, has_sizes};
use super::{Trimmed, Window};
use crate::stream_file::StreamFile;
use crate::{Error, Watch, report};

/// Why a stream cannot be trimmed whose packets could be read.
const UNDECODED: &str = "an event cannot be decoded";

/// A window, as the streams have it.
pub(super) struct Frame<'w> {
    pub window: &'w Window,
    /// Nanoseconds from the clocks' origin.
    pub from: i64,
    pub to: i64,
    /// The API of each queue.
    pub queues: &'w HashMap<i64, String>,
}

impl Frame<'_> {
    /// Returns whether only some threads or APIs are wanted.
    pub fn chooses(&self) -> bool {
        let w = self.window;
        !(w.pids.is_empty() && w.tids.is_empty() && w.apis.is_empty())
    }

    fn has_thread(&self, [pid, tid]: [Option<i64>; 2]) -> bool {
        let has =
            |wanted: &[i64], id: Option<i64>| wanted.is_empty() || id.is_some_and(|id| wanted.contains(&id));
        has(&self.window.pids, pid) && has(&self.window.tids, tid)
    }

    fn has_api(&self, api: &str) -> bool {
        self.window.apis.is_empty() || self.window.apis.iter().any(|wanted| wanted == api)
    }

    /// Returns whether an event is of what was chosen.
    fn has(&self, kind: &Kind, api: &str, ids: [Option<i64>; 2], event: &Event<'_, '_>) -> bool {
        match kind {
            Kind::Definition | Kind::Telemetry => true,
            Kind::Command([_, cause, queue]) => {
                let api = number(event, *queue).and_then(|queue| self.queues.get(&queue));
                let tid = number(event, *cause).filter(|&tid| tid != 0);
                self.has_thread([ids[0], tid]) && api.is_none_or(|api| self.has_api(api))
            }
            _ => self.has_thread(ids) && (api == "object" || self.has_api(api)),
        }
    }

    /// Returns whether an event from before the window outlasts its begin.
    fn outlasts(&self, kind: &Kind, time: i64, event: &Event<'_, '_>) -> bool {
        match kind {
            Kind::Definition | Kind::Step => true,
            Kind::Command([duration, ..]) => {
                number(event, *duration).is_some_and(|ns| ns > 0 && time.saturating_add(ns) > self.from)
            }
            _ => false,
        }
    }
}

/// Goes over one stream file.
pub(super) struct Cutter<'t, 'w> {
    pub trace: &'t Trace,
    pub kinds: &'w [StreamKind],
    pub frame: &'w Frame<'w>,
    /// Offsets of entries of calls that are open when the window begins.
    pub open: BTreeSet<u64>,
    /// Other times of events from before the window, by their offsets.
    pub moved: BTreeMap<u64, u64>,
    /// The last of these that is written.
    pub moved_until: Option<u64>,
    pub path: PathBuf,
    pub watch: Watch<'w>,
    pub out: StreamFile,
    pub done: Trimmed,
    /// Whether it is a file of definitions, which is needed whole; none before its first event.
    pub definitions: Option<bool>,
    /// Whether a packet has been written, and its number.
    pub written: bool,
    pub last_seq: Option<u64>,
    /// Packets that the trace lacks since then.
    pub missing: u64,
    /// Events that it lost in the window so far.
    pub discarded: u64,
}

/// Where a packet lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// All of it is wanted.
    Inside,
    /// Nothing of it is.
    Outside,
    /// That depends on the event.
    Cut,
}

impl<'t> Cutter<'t, '_> {
    /// Goes over all packets.
    pub fn run(mut self, stream: StreamReader<'t>) -> Result<(Trimmed, Option<StreamAccount>), Error> {
        let mut reader = PacketReader::new(stream);
        let mut rewriters: HashMap<usize, Rewriter<'t>> = HashMap::new();
        while let Some(packet) = reader.next_packet() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) => {
                    self.done.problems.push(error.to_string());
                    continue;
                }
            };
            report(self.watch, packet.info.size)?;
            let class = self.trace.class();
            let rewriter =
                rewriters.entry(packet.stream).or_insert_with(|| Rewriter::new(class, packet.class));
            let span = self.span(&packet);
            // What was lost before the window is not lost in it.
            if span.is_none_or(|(_, end)| end >= self.frame.from) {
                self.missing = self.missing.saturating_add(packet.info.missing_before);
                self.discarded = self.discarded.saturating_add(packet.info.discarded_before);
            }
            match self.place(&packet, span, &reader) {
                Place::Outside => {}
                Place::Inside if !packet.cut && self.definitions.is_some() => {
                    self.done.matched |= self.definitions == Some(false);
                    self.copy(&packet, &reader, rewriter, None)?;
                }
                _ => self.cut(&packet, &mut reader, rewriter)?,
            }
        }
        let account = self.out.finish()?;
        self.done.bytes = account.as_ref().map_or(0, |account| account.stored);
        Ok((self.done, account))
    }

    /// From when to when a packet is, in nanoseconds from the origin; none if it does not say.
    fn span(&self, packet: &Packet<'t>) -> Option<(i64, i64)> {
        let clock = clock_of(packet.class).and_then(|name| self.trace.class().clock(name))?;
        let (begin, end) = (packet.info.timestamp_begin?, packet.info.timestamp_end?);
        Some((clock.ns_from_origin(begin)?, clock.ns_from_origin(end)?))
    }

    fn place(&self, packet: &Packet<'t>, span: Option<(i64, i64)>, reader: &PacketReader<'t>) -> Place {
        if self.definitions == Some(true) {
            return Place::Inside;
        }
        let Some((begin, end)) = span else { return Place::Cut };
        let (kind, frame) = (&self.kinds[packet.stream], self.frame);
        let first = packet.info.offset;
        let all = first..first.saturating_add(packet.info.size);
        let open = self.open.range(all.clone()).next().is_some() || self.moved.range(all).next().is_some();
        if begin >= frame.to || end < frame.from && !kind.outlasts && !open {
            return Place::Outside;
        }
        if begin < frame.from || end >= frame.to {
            return Place::Cut;
        }
        if !frame.chooses() {
            return Place::Inside;
        }
        // Of a packet that is of one thread, all or hardly anything is wanted.
        let Identity::Packet(fields) = kind.identity else { return Place::Cut };
        let by_event = kind.events.iter().any(|e| matches!(e.kind, Kind::Command(_)));
        let Ok((_, Value::Struct(context))) = reader.head() else { return Place::Cut };
        let ids = fields.map(|field| match context.get(field?)?.1 {
            Value::Unsigned(id) => i64::try_from(id).ok(),
            Value::Signed(id) => Some(id),
            _ => None,
        });
        let all = !by_event && frame.window.apis.is_empty() && frame.has_thread(ids);
        if all { Place::Inside } else { Place::Cut }
    }

    /// Returns the number and the counter that a packet gets.
    fn numbers(&self, packet: &Packet<'t>, times: Option<(u64, u64)>) -> Numbers {
        let next = |last: u64| last.saturating_add(1).saturating_add(self.missing);
        Numbers {
            times,
            seq: packet.info.seq_num.map(|seq| self.last_seq.map_or(seq, next)),
            discarded: packet.info.events_discarded.map(|_| self.discarded),
        }
    }

    /// Copies a packet, whose events were counted or not; its number and counter may change.
    fn copy(
        &mut self,
        packet: &Packet<'t>,
        reader: &PacketReader<'t>,
        rewriter: &Rewriter<'t>,
        events: Option<u64>,
    ) -> Result<(), Error> {
        // One that begins before the window has nothing from before it, but what was moved to right before it.
        let begins = |moved: &u64| packet.info.timestamp_begin.is_some_and(|begin| begin < *moved);
        let times = self.moved_until.filter(begins).zip(packet.info.timestamp_end);
        let numbers = self.numbers(packet, times.map(|(begin, end)| (begin, end.max(begin))));
        self.done.copied += 1;
        let same = (numbers.seq, numbers.discarded) == (packet.info.seq_num, packet.info.events_discarded);
        if same && numbers.times.is_none() {
            return self.write(packet, numbers, events, reader.bytes());
        }
        let head = reader.head().map_err(|e| self.refused(e))?;
        let mut bytes = rewriter.head(&head, numbers).map_err(|e| self.refused(e))?;
        if bytes.len() as u64 * 8 != packet.events_at {
            return Err(self.refused("its packets cannot be renumbered"));
        }
        bytes.extend_from_slice(reader.bytes().get(bytes.len()..).unwrap_or(&[]));
        self.write(packet, numbers, events, &bytes)
    }

    /// Writes the wanted events of a packet; a packet of which all are wanted as it is.
    fn cut(
        &mut self,
        packet: &Packet<'t>,
        reader: &mut PacketReader<'t>,
        rewriter: &Rewriter<'t>,
    ) -> Result<(), Error> {
        let head = reader.head().map_err(|e| self.refused(e))?;
        let (kind, frame) = (&self.kinds[packet.stream], self.frame);
        let (mut part, mut moved) = (Part::new(rewriter.body()), Part::new(Rewriter::values()));
        let (mut skipped, mut changed, mut in_packet) = (false, packet.cut, None);
        loop {
            let (event, bytes) = match reader.next_event() {
                None => break,
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    self.done.problems.push(error.to_string());
                    changed = true;
                    break;
                }
            };
            let Some(class) = kind.events.get(event.class_index()) else { continue };
            let defines = matches!(class.kind, Kind::Definition) && class.api == "device";
            let whole = *self.definitions.get_or_insert(defines);
            let ids = match kind.identity {
                Identity::Packet(_) => *in_packet.get_or_insert_with(|| ids(kind.identity, &event)),
                Identity::Event(_) => ids(kind.identity, &event),
            };
            // What has no time is in any window.
            let time = event.ns_from_origin().unwrap_or(frame.from);
            if self.moves(&event, rewriter, &mut moved)? {
                (skipped, changed) = (true, true);
                continue;
            }
            let now = time >= frame.from && time < frame.to;
            let earlier = time < frame.from
                && (frame.outlasts(&class.kind, time, &event) || self.open.contains(&event.offset()));
            if !(whole || (now || earlier) && frame.has(&class.kind, &class.api, ids, &event)) {
                (skipped, changed) = (true, true);
                continue;
            }
            let ticks = event.timestamp().unwrap_or(0);
            // The next header's clock counts on from the last one that is there.
            let gap = part.times.map_or(0, |(_, last)| ticks.saturating_sub(last));
            if skipped && gap >= rewriter.longest_gap() {
                let done = std::mem::replace(&mut part, Part::new(rewriter.body()));
                self.flush_moved(packet, &head, rewriter, &mut moved)?;
                self.flush(packet, &head, rewriter, done)?;
            }
            skipped = false;
            part.count(ticks);
            self.done.before += u64::from(!now && !whole);
            self.done.matched |= !whole && class.kind.is_chosen();
            if !rewriter.push(&mut part.body, &event, bytes) {
                return Err(self.refused(UNDECODED));
            }
        }
        if !changed {
            return self.copy(packet, reader, rewriter, Some(part.events));
        }
        if clock_bits(packet.class).is_some_and(|bits| bits < 64) && !reader.stands_alone() {
            return Err(self.refused("its packets do not contain full timestamps, so it cannot be trimmed"));
        }
        self.flush_moved(packet, &head, rewriter, &mut moved)?;
        if part.events > 0 {
            self.flush(packet, &head, rewriter, part)?;
        }
        Ok(())
    }

    /// Takes an event that gets another time. Returns whether it is one.
    fn moves(
        &mut self,
        event: &Event<'_, '_>,
        rewriter: &Rewriter<'t>,
        moved: &mut Part,
    ) -> Result<bool, Error> {
        let Some(ticks) = self.moved.get(&event.offset()).copied() else { return Ok(false) };
        if !rewriter.push_at(&mut moved.body, event, ticks) {
            return Err(self.refused(UNDECODED));
        }
        moved.count(ticks);
        self.done.before += 1;
        Ok(true)
    }

    /// Writes events from before the window, which have other times.
    fn flush_moved(
        &mut self,
        packet: &Packet<'t>,
        head: &(Value, Value),
        rewriter: &Rewriter<'t>,
        moved: &mut Part,
    ) -> Result<(), Error> {
        if moved.events == 0 {
            return Ok(());
        }
        let none = Part::new(Rewriter::values());
        self.moved_until = moved.times.map(|(_, last)| last);
        self.flush(packet, head, rewriter, std::mem::replace(moved, none))
    }

    /// Writes a packet of its own.
    fn flush(
        &mut self,
        packet: &Packet<'t>,
        head: &(Value, Value),
        rewriter: &Rewriter<'t>,
        part: Part,
    ) -> Result<(), Error> {
        if self.written && !has_sizes(packet.class) {
            return Err(self.refused("its packets do not contain their sizes, so the file can have only one"));
        }
        let numbers = self.numbers(packet, part.times);
        let bytes = rewriter.packet(head, numbers, &part.body).map_err(|e| self.refused(e))?;
        self.done.rewritten += 1;
        self.write(packet, numbers, Some(part.events), &bytes)
    }

    fn write(
        &mut self,
        packet: &Packet<'t>,
        numbers: Numbers,
        events: Option<u64>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let facts = PacketFacts {
            class: packet.class.id,
            seq_num: numbers.seq.unwrap_or(0),
            discarded: numbers.discarded.unwrap_or(0),
            events,
        };
        self.out.packet(bytes, facts)?;
        (self.written, self.last_seq, self.missing) = (true, numbers.seq, 0);
        Ok(())
    }

    fn refused(&self, why: impl std::fmt::Display) -> Error {
        let stream = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Error::Refused { stream, why: why.to_string() }
    }
}

/// Events of a packet in the making.
struct Part {
    body: Body,
    times: Option<(u64, u64)>,
    events: u64,
}

impl Part {
    /// One without events.
    fn new(body: Body) -> Self {
        Part { body, times: None, events: 0 }
    }

    /// Counts an event of this time.
    fn count(&mut self, ticks: u64) {
        self.times = Some((self.times.map_or(ticks, |(first, _)| first), ticks));
        self.events += 1;
    }
}
