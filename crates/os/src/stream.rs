//! The folder of the trace: metadata that grows, and a stream file for each CPU.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ctf::account::{Account, Counter, FileAccount, PacketFacts};
use hetrace_ctf::class::{EventClass, StructClass, TraceClass};
use hetrace_ctf::tsdl::Growing;

use crate::form::{EXTENDED, PREAMBLE, Preamble, STREAM, put_context, put_header};
use crate::keep::Keep;
use crate::perf::record::Who;
use crate::worker::now;

/// A packet is written when it has this many bytes.
const PACKET: usize = 256 << 10;

/// Makes a file that is not there yet.
pub type MakeFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// The file of the metadata.
pub(crate) const METADATA: &str = "metadata";

/// Returns the name of the stream of a CPU.
pub(crate) fn file_name(cpu: u32) -> String {
    format!("channel0_{cpu}")
}

/// Returns the name of a stream's file.
pub(crate) fn stored(name: &str, compress: bool) -> String {
    let suffix = if compress { ".zst" } else { "" };
    format!("{name}{suffix}")
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
    /// None if all is kept in memory.
    metadata: Option<File>,
    /// Bytes of the metadata that are written.
    length: u64,
    growing: Growing,
    /// Declarations that are not written yet.
    fresh: String,
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
                Some(metadata)
            }
        };
        let channel = |cpu: &u32| Channel {
            cpu: *cpu,
            packet: vec![0; PREAMBLE],
            begin: time,
            end: time,
            ..Channel::default()
        };
        Ok(Self {
            to,
            uuid: class.uuid.unwrap_or_default(),
            metadata,
            length: text.len() as u64,
            growing,
            fresh: String::new(),
            next: 0,
            declared: HashMap::new(),
            channels: cpus.iter().map(channel).collect(),
            written: Written::default(),
        })
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
        self.fresh.push_str(&self.growing.event(0, &class));
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
        let text = self.to.keep.is_none().then(|| std::fs::read(self.to.folder.join(METADATA)).ok())??;
        let streams = self.channels.iter().filter_map(|c| c.counter.account(&file_name(c.cpu), c.length));
        Some(Account { streams: streams.collect(), files: vec![FileAccount::of(METADATA, &text)] })
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
            Err(error) => {
                self.written.unwritten += events;
                channel.discarded = channel.discarded.saturating_add(events);
                self.written.error.get_or_insert_with(|| error.to_string());
            }
        }
        channel.packet.truncate(PREAMBLE);
        channel.begin = channel.end;
        channel.events = 0;
    }

    /// What is not declared can't be read, so it is declared before it is written.
    fn write_declarations(&mut self) -> io::Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        match (&self.metadata, &self.to.keep) {
            (Some(metadata), _) => metadata.write_all_at(self.fresh.as_bytes(), self.length)?,
            (None, keep) => keep.iter().for_each(|keep| keep.declare(&self.fresh)),
        }
        self.length += self.fresh.len() as u64;
        self.fresh.clear();
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
            none => none.insert((to.make)(&to.folder.join(stored(&file_name(self.cpu), to.compress)))?),
        };
        if let Err(error) = file.write_all_at(bytes, self.length) {
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
