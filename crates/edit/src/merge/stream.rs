//! One stream file, copied with what has to change in it.

use std::path::PathBuf;

use hetrace_ctf::account::{PacketFacts, StreamAccount};
use hetrace_ctf::read::{Packet, PacketReader, StreamReader};
use hetrace_ctf::write::HEADER_LEN;

use super::change::Change;
use super::fields::{Layout, What, set_word, word};
use super::input::Input;
use super::{DISCARDED, INSTANCE, Merged, SEQ_NUM, STREAM_ID, TIME_BEGIN, TIME_END, UUID, VPID, VTID};
use crate::stream_file::{Form, StreamFile};
use crate::{Error, Watch, account, report};

/// Where an event's header has the clock.
const EVENT_TIME: usize = 2;

/// Counters of a stream of several files, in each of which they begin anew.
#[derive(Debug, Default)]
struct GoingOn {
    segment: usize,
    /// What is added in this one.
    base: (u64, u64),
    /// The counters of the packet before.
    last: Option<(u64, u64)>,
}

impl GoingOn {
    /// Returns number and discarded events of a packet as if it were one file.
    fn count(&mut self, segment: usize, missing: u64, (seq_num, discarded): (u64, u64)) -> (u64, u64) {
        if segment != self.segment {
            self.segment = segment;
            // What is repeated in between is left out, and has numbers.
            let next = |last: u64| last.wrapping_add(1).wrapping_add(missing).wrapping_sub(seq_num);
            self.base = self.last.map_or((0, 0), |(last, discarded)| (next(last), discarded));
        }
        let all = (self.base.0.wrapping_add(seq_num), self.base.1.saturating_add(discarded));
        self.last = Some(all);
        all
    }
}

/// Copies a stream file of a trace.
pub(super) struct Copier<'i> {
    pub input: &'i Input,
    pub change: &'i Change,
    pub path: PathBuf,
    pub form: Form,
    pub watch: Watch<'i>,
    /// What the trace's own account says of the stream.
    pub original: Option<&'i StreamAccount>,
}

impl Copier<'_> {
    /// Copies all packets. Damage inside of one is copied as it is.
    pub fn run(&self, stream: StreamReader<'_>) -> Result<(Merged, Option<StreamAccount>), Error> {
        let mut done = Merged::default();
        let (mut out, mut bytes) = (StreamFile::new(&self.path, self.form), Vec::new());
        let mut reader = PacketReader::new(stream);
        let mut going_on = GoingOn::default();
        while let Some(packet) = reader.next_packet() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) => {
                    done.problems.push(format!("{}: {error}", self.input.name));
                    continue;
                }
            };
            report(self.watch, packet.info.size)?;
            bytes.clear();
            bytes.extend_from_slice(reader.bytes());
            let pid = self.head(&packet, &mut bytes);
            self.events(&packet, pid, &mut reader, &mut bytes);
            let class = self.change.streams.get(packet.stream).map_or(packet.class.id, |&id| id.into());
            let (seq_num, discarded) = (packet.info.seq_num, packet.info.events_discarded);
            let counters = (seq_num.unwrap_or(0), discarded.unwrap_or(0));
            let (seq_num, discarded) = going_on.count(reader.segment(), packet.info.missing_before, counters);
            if reader.segment() > 0 {
                for (at, number) in [(SEQ_NUM, seq_num), (DISCARDED, discarded)] {
                    bytes.get_mut(at..at + 8).into_iter().for_each(|field| set_word(field, number));
                }
            }
            out.packet(&bytes, PacketFacts { class, seq_num, discarded, events: None })?;
            done.packets += 1;
        }
        let mut account = out.finish()?;
        if let Some(account) = &mut account {
            (done.streams, done.bytes) = (1, account.stored);
            account::count_events(account, self.original);
        }
        Ok((done, account))
    }

    /// Changes the head of a packet; returns the process that it was of.
    fn head(&self, packet: &Packet<'_>, bytes: &mut [u8]) -> u32 {
        let change = self.change;
        let mut set = |at: usize, size: usize, new: &dyn Fn(u64) -> u64| {
            let field = bytes.get_mut(at..at + size)?;
            let old = word(field);
            set_word(field, new(old));
            Some(old as u32)
        };
        set(STREAM_ID, 4, &|id| change.streams.get(packet.stream).map_or(id, |&id| id.into()));
        set(INSTANCE, 8, &|id| change.instances.get(&(packet.stream, id)).copied().unwrap_or(id));
        for at in [TIME_BEGIN, TIME_END] {
            set(at, 8, &|time| time.wrapping_add(change.shift));
        }
        let pid = set(VPID, 4, &|pid| change.pid(pid as u32).into()).unwrap_or(0);
        set(VTID, 4, &|tid| change.tid(pid, tid as u32).into());
        if let Some(field) = bytes.get_mut(UUID..UUID + change.uuid.len()) {
            field.copy_from_slice(&change.uuid);
        }
        pid
    }

    /// Changes the events of a packet of a process.
    fn events(&self, packet: &Packet<'_>, pid: u32, reader: &mut PacketReader<'_>, bytes: &mut [u8]) {
        let change = self.change;
        let layouts = self.input.layouts.get(packet.stream).map_or(&[][..], Vec::as_slice);
        let numbers = change.changes_numbers() || change.pids.contains_key(&pid);
        if change.shift == 0 && !(numbers && layouts.iter().any(Layout::has_numbers)) {
            return;
        }
        // What cannot be decoded stays as it is: who reads it comes no further, either.
        while let Some(Ok((event, found))) = reader.next_event() {
            let at = event.offset().saturating_sub(packet.info.offset);
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(end) = at.checked_add(found.len()) else { return };
            let Some(bytes) = bytes.get_mut(at..end) else { return };
            let Some((header, payload)) = bytes.split_at_mut_checked(HEADER_LEN) else { return };
            if let Some(time) = header.get_mut(EVENT_TIME..HEADER_LEN) {
                set_word(time, word(time).wrapping_add(change.shift));
            }
            let Some(layout) = layouts.get(event.class_index()).filter(|layout| !layout.is_empty()) else {
                continue;
            };
            let payload_before = found.get(HEADER_LEN..).unwrap_or(&[]);
            layout.places(payload_before, |what, range| {
                let Some(field) = payload.get_mut(range) else { return };
                let old = word(field);
                let new = match what {
                    What::Number(kind) => change.number(kind, old),
                    What::Tid => change.tid(pid, old as u32).into(),
                    What::Time if old == 0 => 0,
                    What::Time => old.wrapping_add(change.shift),
                };
                set_word(field, new);
            });
        }
    }
}
