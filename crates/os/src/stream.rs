//! The folder of the trace: metadata that grows, and a stream file for each CPU.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ctf::class::{EventClass, StructClass, TraceClass};
use hetrace_ctf::tsdl::Growing;

use crate::form::{EXTENDED, PREAMBLE, Preamble, put_context, put_header};
use crate::perf::record::Who;

/// A packet is written when it has this many bytes.
const PACKET: usize = 256 << 10;

/// Makes a file that is not there yet.
pub type MakeFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

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
    folder: PathBuf,
    make: MakeFile,
    uuid: [u8; 16],
    metadata: File,
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
        f.debug_struct("Trace").field("folder", &self.folder).finish_non_exhaustive()
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
}

impl Trace {
    /// Writes the metadata of a trace into a folder that is there already. `time` is when recording began,
    /// before all events.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn begin(
        folder: PathBuf,
        make: MakeFile,
        class: &TraceClass,
        cpus: &[u32],
        time: u64,
    ) -> io::Result<Self> {
        let (growing, text) = Growing::begin(class);
        let metadata = make(&folder.join("metadata"))?;
        metadata.write_all_at(text.as_bytes(), 0)?;
        let channel = |cpu: &u32| Channel {
            cpu: *cpu,
            packet: vec![0; PREAMBLE],
            begin: time,
            end: time,
            ..Channel::default()
        };
        Ok(Self {
            folder,
            make,
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
        let (events, folder, make) = (channel.events, &self.folder, &self.make);
        match declared.and_then(|()| channel.write(self.uuid, folder, make)) {
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
        self.metadata.write_all_at(self.fresh.as_bytes(), self.length)?;
        self.length += self.fresh.len() as u64;
        self.fresh.clear();
        Ok(())
    }
}

impl Channel {
    fn write(&mut self, uuid: [u8; 16], folder: &Path, make: &MakeFile) -> io::Result<u64> {
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
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(make(&folder.join(format!("channel0_{}", self.cpu)))?),
        };
        if let Err(error) = file.write_all_at(&self.packet, self.length) {
            // Half a packet would hide all that follow it.
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += self.packet.len() as u64;
        self.packets += 1;
        self.known = self.discarded;
        Ok(self.packet.len() as u64)
    }
}
