//! The folder of the trace: metadata that grows, and a stream file for each CPU.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use hetrace_ctf::account::{Account, Counter, FileAccount, PacketFacts};
use hetrace_ctf::class::{EventClass, StructClass, TraceClass};
use hetrace_ctf::read::{Part, Repeated};
use hetrace_ctf::tsdl::Growing;

use crate::clock::now;
use crate::files::{METADATA, MakeFile, file_name, stored};
use crate::form::{EXTENDED, PREAMBLE, Preamble, STREAM, put_context, put_header};
use crate::keep::Keep;
use crate::perf::record::Who;

/// A packet is written when it has this many bytes.
const PACKET: usize = 256 << 10;

/// Where bytes on disk are accounted for, of a trace that may have parts.
pub trait Room: Send + Sync + std::fmt::Debug {
    /// Takes room for bytes of a part.
    ///
    /// # Errors
    /// When there is none; of kind `NotFound` if the part was removed meanwhile.
    fn take(&self, part: u32, bytes: u64) -> io::Result<()>;
    /// Notes bytes of a part that are on disk, whether there is room or not.
    fn charge(&self, part: u32, bytes: u64);
    /// Notes that bytes of a part are not on disk.
    fn give_back(&self, part: u32, bytes: u64);
    /// Removes something, as the disk is full. Returns whether there is room now, perhaps.
    fn make(&self) -> bool;
}

/// What was written, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Events in the files.
    pub events: u64,
    /// Bytes of the files of streams.
    pub bytes: u64,
    /// Events that the kernel dropped because a buffer was full.
    pub dropped: u64,
    /// Events in packets that could not be written.
    pub unwritten: u64,
    /// Why, in the system's words: the first reason.
    pub error: Option<String>,
}

/// The trace that is being written.
pub struct Trace {
    to: Target,
    uuid: [u8; 16],
    /// None if all is kept in memory, or while it can't be made.
    metadata: Option<File>,
    /// Bytes of the metadata that are written.
    length: u64,
    growing: Growing,
    /// All of the metadata, for the parts to come; empty if there is one only.
    text: String,
    /// Declarations that are not written yet.
    fresh: String,
    /// What is to be written of the part: what it is, and what it repeats.
    part: Option<Part>,
    /// The next event's number.
    next: u16,
    /// What is declared, by name: tracepoints that are opened again declare again.
    declared: HashMap<String, (u16, StructClass)>,
    channels: Vec<Channel>,
    written: Written,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("folder", &self.to.folder).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The stream of one CPU.
#[derive(Debug, Default)]
struct Channel {
    cpu: u32,
    file: Option<File>,
    /// Bytes of whole packets in the file.
    length: u64,
    packet: Vec<u8>,
    begin: u64,
    end: u64,
    events: u64,
    packets: u64,
    discarded: u64,
    /// [`Channel::discarded`] when the last packet was written.
    known: u64,
    /// The next packet is the last.
    last: bool,
    /// The next packet is needed as long as there are later ones.
    lasting: bool,
    /// What is in the file.
    counter: Counter,
}

/// Where packets go.
#[derive(Clone)]
pub struct Target {
    /// The folder, which is there already.
    pub folder: PathBuf,
    /// Makes files in it.
    pub make: MakeFile,
    /// Packets are compressed.
    pub compress: bool,
    /// Where all is kept instead, if it is not written.
    pub keep: Option<Arc<Keep>>,
    /// Where bytes are accounted for.
    pub room: Option<Arc<dyn Room>>,
    /// The number of the part that is written, from 1; none if the trace is not divided.
    pub part: Option<u32>,
}

impl Target {
    /// Of a trace that is written into this folder, as one.
    pub fn new(folder: PathBuf, make: MakeFile, compress: bool) -> Self {
        Self { folder, make, compress, keep: None, room: None, part: None }
    }

    /// Whether it is a part that is there no more, with all that is beside it.
    fn is_removed(&self) -> bool {
        self.part.is_some() && self.folder.parent().is_some_and(|part| !part.exists())
    }

    fn number(&self) -> u32 {
        self.part.unwrap_or(1)
    }

    fn charge(&self, bytes: u64) {
        self.room.iter().for_each(|room| room.charge(self.number(), bytes));
    }

    fn give_back(&self, bytes: u64) {
        self.room.iter().for_each(|room| room.give_back(self.number(), bytes));
    }
}

impl Trace {
    /// Writes the metadata of a trace into a folder that is there already. `time` is when recording began,
    /// before all events.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn begin(to: Target, class: &TraceClass, cpus: &[u32], time: u64) -> io::Result<Self> {
        let (growing, text) = Growing::begin(class);
        let metadata = match &to.keep {
            Some(keep) => {
                keep.declare(&text);
                None
            }
            None => {
                let metadata = (to.make)(&to.folder.join(METADATA))?;
                metadata.write_all_at(text.as_bytes(), 0)?;
                to.charge(text.len() as u64);
                Some(metadata)
            }
        };
        let part = to.part.map(|number| Part { number, ..Part::default() });
        let channel = |cpu: &u32| Channel {
            cpu: *cpu,
            packet: vec![0; PREAMBLE],
            begin: time,
            end: time,
            ..Channel::default()
        };
        let mut trace = Self {
            to,
            uuid: class.uuid.unwrap_or_default(),
            metadata,
            length: text.len() as u64,
            growing,
            text: if part.is_some() { text } else { String::new() },
            fresh: String::new(),
            part,
            next: 0,
            declared: HashMap::new(),
            channels: cpus.iter().map(channel).collect(),
            written: Written::default(),
        };
        trace.name_part();
        Ok(trace)
    }

    /// Declares a kind of event, unless it is declared already. Returns its number; none if there are no more.
    pub fn declare(&mut self, name: &str, fields: &StructClass) -> Option<u16> {
        if let Some((id, _)) = self.declared.get(name).filter(|(_, known)| known == fields) {
            return Some(*id);
        }
        let id = self.next;
        self.next = id.checked_add(1).filter(|next| *next < EXTENDED)?;
        let class = EventClass {
            id: id.into(),
            name: name.to_owned(),
            fields: fields.clone(),
            ..EventClass::default()
        };
        let text = self.growing.event(0, &class);
        self.fresh.push_str(&text);
        if self.to.part.is_some() {
            self.text.push_str(&text);
        }
        self.declared.insert(name.to_owned(), (id, class.fields));
        Some(id)
    }

    /// Appends an event to the stream of a CPU, by its place among the CPUs, where `who` ran. `body` appends the event's
    /// fields, and returns whether there is an event; without one nothing is appended. Time does not go
    /// back: an event that is earlier than the one before it gets that one's time. Returns whether it had
    /// to.
    pub fn event(
        &mut self,
        cpu: usize,
        id: u16,
        time: u64,
        who: Who,
        body: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let Some(channel) = self.channels.get_mut(cpu) else { return false };
        let late = time < channel.end;
        let time = time.max(channel.end);
        let at = channel.packet.len();
        put_header(&mut channel.packet, id, time, channel.end);
        put_context(&mut channel.packet, who);
        if !body(&mut channel.packet) {
            channel.packet.truncate(at);
            return false;
        }
        channel.end = time;
        channel.events += 1;
        if channel.packet.len() >= PACKET {
            self.flush(cpu);
        }
        late
    }

    /// Counts events of a CPU that the kernel dropped.
    pub fn discard(&mut self, cpu: usize, events: u64) {
        // What came before does not lack them.
        self.flush(cpu);
        let Some(channel) = self.channels.get_mut(cpu) else { return };
        channel.discarded = channel.discarded.saturating_add(events);
        self.written.dropped = self.written.dropped.saturating_add(events);
    }

    /// Writes the last packet of each CPU, which says until when it was recorded: readers that look at what
    /// all streams have in common would leave out what comes after the last event of the quietest.
    pub fn finish(&mut self, time: u64) {
        for cpu in 0..self.channels.len() {
            let Some(channel) = self.channels.get_mut(cpu) else { continue };
            channel.end = channel.end.max(time);
            channel.last = true;
            self.flush(cpu);
        }
    }

    /// Finishes the part, in which all is that happened before `time`. Returns what was written of it, and what is in its
    /// files.
    pub fn leave(&mut self, time: u64) -> (Written, Option<Account>) {
        self.finish(time);
        let account = self.account();
        (std::mem::take(&mut self.written), account)
    }

    /// Goes on in another folder, with what happened from `time` on. Nothing is written yet.
    pub fn go_over(&mut self, folder: PathBuf, number: u32, time: u64) {
        self.to = Target { folder, part: Some(number), ..self.to.clone() };
        (self.metadata, self.length) = (None, 0);
        self.fresh = self.text.clone();
        // What it repeats is to be known first.
        self.part = None;
        for channel in &mut self.channels {
            let begin = channel.end.max(time);
            *channel = Channel {
                cpu: channel.cpu,
                packet: std::mem::take(&mut channel.packet),
                begin,
                end: begin,
                ..Channel::default()
            };
        }
    }

    /// What is in the part so far repeats what those before have.
    pub fn repeated(&mut self) {
        self.flush_all();
        let streams = self.channels.iter().filter(|channel| channel.packets > 0);
        let repeated = |channel: &Channel| {
            (file_name(channel.cpu), Repeated { bytes: channel.length, packets: channel.packets })
        };
        let earlier = streams.map(repeated).collect();
        self.part = Some(Part { number: self.to.number(), earlier });
        // It was counted in the part before.
        self.written.events = 0;
        self.name_part();
    }

    /// Writes which part it is, and what it repeats, over what says that it repeats nothing: on a full disk that is possible.
    fn name_part(&mut self) {
        let Some(part) = &self.part else { return };
        let (path, text) = (self.to.folder.join(Part::FILE), part.to_text());
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = File::options().write(true).custom_flags(flags).open(path);
        if file.and_then(|file| file.write_all_at(text.as_bytes(), 0)).is_ok() {
            self.to.charge(text.len() as u64);
            self.part = None;
        }
    }

    /// Writes all packets that have something to say.
    pub fn flush_all(&mut self) {
        for cpu in 0..self.channels.len() {
            self.flush(cpu);
        }
    }

    /// Returns the numbers of the CPUs.
    pub fn cpus(&self) -> Vec<u32> {
        self.channels.iter().map(|channel| channel.cpu).collect()
    }

    /// What the stream of a CPU has since the last packet is needed as long as there are later events.
    pub fn lasting(&mut self, cpu: usize) {
        self.channels.get_mut(cpu).into_iter().for_each(|channel| channel.lasting = true);
        self.flush(cpu);
        self.channels.get_mut(cpu).into_iter().for_each(|channel| channel.lasting = false);
    }

    /// Returns where packets are kept, if they are not written.
    pub fn keep(&self) -> Option<&Keep> {
        self.to.keep.as_deref()
    }

    /// Returns what is in the files; none if they can't be read.
    pub fn account(&self) -> Option<Account> {
        if self.to.keep.is_some() {
            return None;
        }
        let read = |name: &str| std::fs::read(self.to.folder.join(name)).ok();
        let file = |name: &str, text: Vec<u8>| FileAccount::of(name, &text);
        let mut files = vec![file(METADATA, read(METADATA)?)];
        if self.to.part.is_some() {
            files.push(file(Part::FILE, read(Part::FILE)?));
        }
        let streams = self.channels.iter().filter_map(|c| c.counter.account(&file_name(c.cpu), c.length));
        Some(Account { streams: streams.collect(), files })
    }

    /// Returns what was written so far.
    pub fn written(&self) -> &Written {
        &self.written
    }

    fn flush(&mut self, cpu: usize) {
        let declared = self.write_declarations();
        let Some(channel) = self.channels.get_mut(cpu) else { return };
        if channel.events == 0 && channel.discarded == channel.known && !channel.last {
            return;
        }
        let events = channel.events;
        match declared.and_then(|()| channel.write(self.uuid, &self.to)) {
            Ok(bytes) => {
                self.written.events += events;
                self.written.bytes += bytes;
            }
            // They went as all of their part did.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.to.is_removed() => {
                self.written.events += events;
            }
            Err(error) => {
                self.written.unwritten += events;
                channel.discarded = channel.discarded.saturating_add(events);
                self.written.error.get_or_insert_with(|| error.to_string());
            }
        }
        channel.packet.truncate(PREAMBLE);
        channel.begin = channel.end;
        channel.events = 0;
        // It may have failed before.
        if self.part.is_some() {
            self.name_part();
        }
    }

    /// What is not declared can't be read, so it is declared before it is written.
    fn write_declarations(&mut self) -> io::Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        match &self.to.keep {
            Some(keep) => keep.declare(&self.fresh),
            None => self.append_metadata()?,
        }
        self.length += self.fresh.len() as u64;
        self.fresh.clear();
        Ok(())
    }

    /// Appends all declarations or none: with half of one nothing of the trace can be read.
    fn append_metadata(&mut self) -> io::Result<()> {
        let path = self.to.folder.join(METADATA);
        let metadata = match &self.metadata {
            Some(metadata) => metadata,
            None => self.metadata.insert((self.to.make)(&path)?),
        };
        let (text, at, room) = (self.fresh.as_bytes(), self.length, self.to.room.as_deref());
        if let Err(error) = insist(room, || metadata.write_all_at(text, at)) {
            if at > 0 {
                metadata.set_len(at)?;
            } else {
                self.metadata = None;
                std::fs::remove_file(path)?;
            }
            return Err(error);
        }
        self.to.charge(text.len() as u64);
        Ok(())
    }
}

impl Channel {
    fn write(&mut self, uuid: [u8; 16], to: &Target) -> io::Result<u64> {
        let preamble = Preamble {
            uuid,
            begin: self.begin,
            end: self.end,
            bytes: self.packet.len() as u64,
            number: self.packets,
            discarded: self.discarded,
            cpu: self.cpu,
        };
        self.packet[..PREAMBLE].copy_from_slice(&preamble.pack());
        let bytes = match &to.keep {
            Some(keep) => {
                keep.put(preamble, &self.packet, self.events, self.lasting, now());
                self.packet.len() as u64
            }
            None => self.append(to, preamble)?,
        };
        self.packets += 1;
        self.known = self.discarded;
        Ok(bytes)
    }

    fn append(&mut self, to: &Target, preamble: Preamble) -> io::Result<u64> {
        let compressed = to.compress.then(|| zstd::bulk::compress(&self.packet, 3)).transpose()?;
        let bytes = compressed.as_ref().unwrap_or(&self.packet);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let path = to.folder.join(stored(&file_name(self.cpu), to.compress));
                none.insert(insist(to.room.as_deref(), || (to.make)(&path))?)
            }
        };
        to.room.iter().try_for_each(|room| room.take(to.number(), bytes.len() as u64))?;
        let (at, room) = (self.length, to.room.as_deref());
        if let Err(error) = insist(room, || file.write_all_at(bytes, at)) {
            to.give_back(bytes.len() as u64);
            // Half a packet would hide all that follow it.
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        let Preamble { number: seq_num, discarded, .. } = preamble;
        let facts = PacketFacts { class: STREAM, seq_num, discarded, events: Some(self.events) };
        self.counter.packet(&self.packet, facts);
        Ok(bytes.len() as u64)
    }
}

/// Writes, and again as long as there is something to remove that makes room on a full disk.
fn insist<T>(room: Option<&dyn Room>, write: impl Fn() -> io::Result<T>) -> io::Result<T> {
    loop {
        match write() {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
                    && room.is_some_and(Room::make) => {}
            done => return done,
        }
    }
}
