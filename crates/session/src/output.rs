//! Stream files of a trace: packets of records, appended.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ctf::account::{Counter, PacketFacts, StreamAccount};
use hetrace_ctf::write::{PREAMBLE_LEN, PacketPreamble, stream_preamble};
use hetrace_os::Room;

use crate::access::Access;
use crate::declare::Declarations;
use crate::sink::{Kept, Series, Sink};
use crate::stream_files::{Before, Files, Refused, StreamFile};

mod ids;

use ids::Ids;

/// A packet is written when it has this many bytes.
const PACKET: usize = 256 * 1024;
/// A packet of a stream in pages.
const PAGE: usize = 4096;
/// The longest record of such a stream, in bytes, with its head.
const PAGE_RECORD: usize = 512;
/// Records of one packet lie less than this apart, so that their 32 bits of
/// time are clear.
const REACH: u64 = 1 << 31;

/// What all files of a trace share.
#[derive(Debug, Clone)]
pub struct TraceFolder {
    path: PathBuf,
    uuid: [u8; 16],
    compress: bool,
    access: Access,
    files: Arc<Files>,
    /// Where events are declared when they come; none if the metadata has all of them.
    declarations: Option<Arc<Declarations>>,
    /// Where packets go instead of into files right here.
    sink: Option<Sink>,
}

impl TraceFolder {
    /// Names a folder that is there already.
    pub fn new(path: PathBuf, uuid: [u8; 16], compress: bool) -> Self {
        let (access, files) = (Access::default(), Arc::default());
        TraceFolder { path, uuid, compress, access, files, declarations: None, sink: None }
    }

    /// Declares events when they come.
    pub fn declaring(self, declarations: Declarations) -> Self {
        TraceFolder { declarations: Some(Arc::new(declarations)), ..self }
    }

    /// Writes so many bytes of streams at most.
    pub fn limited(self, most: Option<u64>) -> Self {
        TraceFolder { files: Arc::new(Files::limited(most)), ..self }
    }

    /// Returns the same of another folder.
    pub fn elsewhere(&self, path: PathBuf) -> Self {
        TraceFolder { path, ..self.clone() }
    }

    /// Returns where events are declared when they come, if they are.
    pub fn declarations(&self) -> Option<&Declarations> {
        self.declarations.as_deref()
    }

    /// Makes its files accessible to others than their owner.
    pub fn accessible(self, access: Access) -> Self {
        TraceFolder { access, ..self }
    }

    /// Gives packets to somebody else instead of writing them.
    pub fn giving(self, sink: Option<Sink>) -> Self {
        TraceFolder { sink, ..self }
    }

    /// Returns the parts that its streams go to, if there are some.
    pub fn series(&self) -> Option<&Arc<Series>> {
        match &self.sink {
            Some(Sink::Series(series)) => Some(series),
            _ => None,
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the trace's identity.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Returns whether packets are compressed.
    pub fn compress(&self) -> bool {
        self.compress
    }

    /// Returns who may read its files.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns what the system refused to write so far, in all streams of all copies of this.
    pub fn refused(&self) -> Vec<Refused> {
        self.files().refused()
    }

    /// Counts what is beside the streams for the limit of what it may take.
    pub fn weigh(&self) {
        match self.series() {
            Some(series) => series.weigh(),
            None => self.files.weigh(&self.path),
        }
    }

    /// Returns where bytes beside its streams are accounted for.
    pub fn room(&self) -> Arc<dyn Room> {
        match self.series() {
            Some(series) => Arc::clone(series) as Arc<dyn Room>,
            None => Arc::clone(&self.files) as Arc<dyn Room>,
        }
    }

    fn files(&self) -> &Files {
        self.series().map_or(&self.files, |series| series.files())
    }
}

/// Who recorded a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread.
    pub name: [u8; 16],
}

/// One stream file. It appears with its first packet.
#[derive(Debug)]
pub struct Stream {
    folder: TraceFolder,
    name: String,
    file: Option<StreamFile>,
    class: u32,
    instance: u64,
    identity: Identity,
    packet: Vec<u8>,
    begin: u64,
    end: u64,
    packets: u64,
    discarded: u64,
    /// Bytes that could not be written: the disk is full, say.
    lost: u64,
    written: u64,
    records: u64,
    /// Records of all packets, written or not, at the end of the last one.
    records_before: u64,
    /// What is in the file.
    counter: Counter,
    /// Its events so far.
    ids: Ids,
    /// What is kept of it, if it is not written.
    kept: Option<Kept>,
    /// Packets are pages of the file.
    pages: bool,
}

impl Stream {
    /// Returns a stream of a class; `instance` distinguishes it from others of the class.
    pub fn new(folder: &TraceFolder, name: String, class: u32, instance: u64) -> Self {
        Stream {
            folder: folder.clone(),
            name,
            file: None,
            class,
            instance,
            identity: Identity::default(),
            packet: vec![0; PREAMBLE_LEN],
            begin: 0,
            end: 0,
            packets: 0,
            discarded: 0,
            lost: 0,
            written: 0,
            records: 0,
            records_before: 0,
            counter: Counter::default(),
            ids: Ids::default(),
            kept: folder.sink.as_ref().map(|sink| Kept::new(sink, class)),
            pages: false,
        }
    }

    /// Makes each packet a page of the file, filled up with zeros, if its records are at most 512 bytes long. The
    /// system writes a page whole or not at all, also for a process that is killed while it writes; of a larger packet
    /// it may write the beginning, which other readers refuse with the whole trace.
    pub fn in_pages(mut self) -> Self {
        self.pages = self.kept.is_none() && !self.folder.compress;
        self
    }

    /// How large a packet may be before it is written.
    fn limit(&self) -> usize {
        if self.pages { PAGE - PAGE_RECORD } else { PACKET }
    }

    /// Who records from now on.
    pub fn identify(&mut self, identity: Identity) {
        if identity != self.identity {
            self.flush();
            self.identity = identity;
        }
    }

    /// Records lost so far in all; written with the next packet.
    pub fn set_discarded(&mut self, discarded: u64) {
        self.discarded = discarded;
    }

    /// Appends the head of a record (`id : 16, timestamp : 32`), and gives the
    /// place to append its fields to.
    #[inline]
    pub fn record(&mut self, id: u16, time: u64) -> &mut Vec<u8> {
        if self.packet.len() >= self.limit() || self.is_far(time) {
            self.flush();
        }
        if self.packet.len() == PREAMBLE_LEN {
            self.begin = time;
        }
        self.end = time;
        self.records += 1;
        self.ids.note(id);
        if let Some(kept) = &mut self.kept {
            kept.record(id, time, self.packet.len());
        }
        let [t0, t1, t2, t3, ..] = time.to_le_bytes();
        let [i0, i1] = id.to_le_bytes();
        self.packet.extend_from_slice(&[i0, i1, t0, t1, t2, t3]);
        &mut self.packet
    }

    /// Whether so many bytes more may fill the packet: it would be written in between.
    pub fn fills_up(&self, bytes: usize) -> bool {
        self.packet.len().saturating_add(bytes) >= self.limit()
    }

    /// Whether a record of this time can't be in the packet with those that are there: it would be written before.
    pub fn is_far(&self, time: u64) -> bool {
        self.packet.len() > PREAMBLE_LEN && time.saturating_sub(self.end) >= REACH
    }

    /// Whether the records are of this thread.
    pub fn is_of(&self, identity: &Identity) -> bool {
        self.identity == *identity
    }

    /// Goes on with records that are not before this time.
    pub fn go_on_from(&mut self, time: u64) {
        self.end = self.end.max(time);
    }

    /// Time of the last record.
    pub fn last(&self) -> u64 {
        self.end
    }

    /// Bytes on disk, records, and bytes that could not be written.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.written, self.records, self.lost)
    }

    /// Returns what is in the file, for the manifest; none if there is no file.
    pub fn account(&self) -> Option<StreamAccount> {
        self.counter.account(self.file.as_ref().map_or(&*self.name, StreamFile::name), self.written)
    }

    /// Writes the packet, if it has records.
    pub fn flush(&mut self) {
        self.flush_saying(&mut |_| {});
    }

    /// The same; `before` learns where the packet will be before it is written. It is not called for packets that are kept
    /// in memory.
    pub fn flush_saying(&mut self, before: Before<'_>) {
        if self.packet.len() == PREAMBLE_LEN {
            return;
        }
        let content = self.packet.len();
        if self.pages {
            self.packet.resize(content.next_multiple_of(PAGE), 0);
        }
        let preamble = PacketPreamble {
            uuid: self.folder.uuid,
            stream_id: self.class,
            stream_instance_id: self.instance,
            timestamp_begin: self.begin,
            timestamp_end: self.end,
            content_bits: content as u64 * 8,
            packet_bits: self.packet.len() as u64 * 8,
            seq_num: self.packets,
            events_discarded: self.discarded,
            vpid: self.identity.pid as i32,
            vtid: self.identity.tid as i32,
            procname: self.identity.name,
        };
        let facts = PacketFacts {
            class: self.class.into(),
            seq_num: self.packets,
            discarded: self.discarded,
            events: Some(self.records - self.records_before),
        };
        if let Some(head) = self.packet.get_mut(..PREAMBLE_LEN) {
            head.copy_from_slice(&stream_preamble(&preamble));
        }
        self.packets += 1;
        match self.write(&preamble, before) {
            Ok(bytes) => {
                self.written += bytes;
                // What is in no file of this stream's own is counted where it goes.
                if self.kept.is_none() {
                    self.counter.packet(&self.packet, facts);
                }
            }
            Err(error) => {
                self.lost += self.packet.len() as u64;
                self.folder.files().refuse(&error, self.packet.len() as u64);
            }
        }
        self.records_before = self.records;
        self.packet.truncate(PREAMBLE_LEN);
    }

    fn write(&mut self, preamble: &PacketPreamble, before: Before<'_>) -> io::Result<u64> {
        let (files, folder) = (&self.folder.files, &self.folder);
        if let Some(declarations) = folder.declarations().filter(|_| !self.ids.fresh().is_empty()) {
            // What is not declared can't be read, so it is written afterwards.
            declarations.declare(self.class, self.ids.fresh())?;
            self.ids.settle();
        }
        if let Some(kept) = &mut self.kept {
            let events = self.records - self.records_before;
            return kept.keep(&self.name, *preamble, (&mut self.packet, events), before);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let suffix = if folder.compress { ".zst" } else { "" };
                none.insert(files.create(&folder.path, &self.name, suffix, folder.access)?)
            }
        };
        if folder.compress {
            // One frame per packet: what was written before a crash is whole,
            // and `zstd -d` gives the plain stream.
            let frame = zstd::bulk::compress(&self.packet, 3)?;
            file.append(files, &frame, before)
        } else {
            file.append(files, &self.packet, before)
        }
    }
}

#[cfg(test)]
mod tests;
