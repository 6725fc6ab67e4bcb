//! A snapshot: the folder of a whole trace out of what is kept.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hetrace_ctf::account::{Account, Counter, FileAccount, PacketFacts, StreamAccount};
use hetrace_ctf::read::PACKED;
use hetrace_ctf::write::{PREAMBLE_LEN, PacketPreamble, stream_preamble};
use hetrace_format::files::{BLOBS, KERNEL, MANIFEST, METADATA, MODELS, OWN, PROGRAM};
use hetrace_os::Keep;

use crate::access::Access;
use crate::account::account_of_files;
use crate::manifest::{Manifest, Written};
use crate::os;
use crate::sink::{StreamView, View, before};

/// How long events of the operating system are waited for: they are read four times a second, and wait for their order.
const SEALING: Duration = Duration::from_secs(3);
/// Streams of one name: process ids come again.
const NAMESAKES: u32 = 10_000;

/// What a snapshot is made of.
#[derive(Debug)]
pub struct Material {
    /// The streams.
    pub view: View,
    /// Events of the operating system until a time, if they are recorded.
    pub kernel: Option<(Arc<Keep>, u64)>,
    /// The metadata at that moment.
    pub metadata: Vec<u8>,
    /// Models that were complete then.
    pub models: Vec<FileAccount>,
    /// The folder that has these and the stored contents.
    pub work: PathBuf,
    /// All of the manifest but what was written.
    pub manifest: Manifest,
    /// Who may read it.
    pub access: Access,
    /// Streams are compressed.
    pub compress: bool,
}

impl Material {
    /// Writes all of it into a folder that is there and empty. Returns the manifest.
    ///
    /// # Errors
    /// When that is not possible; the folder has a part of it then.
    pub fn write(mut self, folder: &Path) -> io::Result<Manifest> {
        let access = self.access;
        let program = folder.join(PROGRAM);
        let folder = match self.kernel.take() {
            Some((keep, until)) => {
                access.make_folder(&program)?;
                self.write_kernel(&folder.join(KERNEL), &keep, until)?;
                &program
            }
            None => folder,
        };
        access.make_folder(&folder.join(OWN))?;
        access.make_folder(&folder.join(MODELS))?;
        access.write(&folder.join(METADATA), &self.metadata)?;
        for model in &self.models {
            copy(&self.work.join(&model.name), &folder.join(&model.name), access)?;
        }
        self.copy_contents(folder)?;
        let mut account = Account::default();
        for stream in &self.view.streams {
            account.streams.extend(self.stream(folder, stream)?);
        }
        account.files = account_of_files(folder, &self.models)?;
        self.manifest.written = Written::of(account);
        let text = self.manifest.to_json().map_err(io::Error::other)?;
        access.write(&folder.join(MANIFEST), &text)?;
        Ok(self.manifest)
    }

    /// Writes the trace of the operating system. What is read only now is waited for, but not for long.
    fn write_kernel(&mut self, folder: &Path, keep: &Keep, until: u64) -> io::Result<()> {
        let asked = Instant::now();
        while !keep.is_sealed(until) && asked.elapsed() < SEALING {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.access.make_folder(folder)?;
        let kept = keep.write(folder, &os::make(self.access), until)?;
        if let Some(os) = &mut self.manifest.os {
            (os.events, os.bytes, os.dropped) = (kept.events, kept.bytes, kept.dropped);
            (os.since_ns, os.account) = (kept.since, Some(kept.account));
        }
        if !keep.is_sealed(until) {
            self.manifest.notes.push(
                "events of the operating system were behind when the snapshot was written: its last moments lack some"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn copy_contents(&self, folder: &Path) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(self.work.join(BLOBS)) else { return Ok(()) };
        self.access.make_folder(&folder.join(BLOBS))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let whole = name.to_str().is_some_and(|name| hetrace_format::files::blob_hash(name).is_some());
            if whole && entry.file_type()?.is_file() {
                copy(&entry.path(), &folder.join(BLOBS).join(name), self.access)?;
            }
        }
        Ok(())
    }

    fn stream(&self, folder: &Path, stream: &StreamView) -> io::Result<Option<StreamAccount>> {
        let mut out = Out::make(folder, &stream.name, self.access, self.compress)?;
        before(|preamble, body, events| out.packet(preamble, body, events), &stream.earlier)?;
        for packet in &stream.packets {
            let mut preamble = packet.preamble;
            preamble.events_discarded = preamble.events_discarded.saturating_sub(stream.discarded_before);
            out.packet(preamble, &packet.body()?, packet.events)?;
        }
        out.finish()
    }
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path, access: Access) -> io::Result<()> {
    let mut source = File::open(from)?;
    io::copy(&mut source, &mut access.make_file(to)?).map(drop)
}

/// A stream file in the making.
struct Out {
    file: BufWriter<File>,
    name: String,
    compress: bool,
    counter: Counter,
    packets: u64,
    stored: u64,
}

impl Out {
    fn make(folder: &Path, name: &str, access: Access, compress: bool) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for n in 0..NAMESAKES {
            let again = if n == 0 { String::new() } else { format!("-again-{n}") };
            let name = format!("{name}{again}");
            let suffix = if compress { PACKED } else { "" };
            match access.make_file(&folder.join(format!("{name}{suffix}"))) {
                Ok(file) => {
                    let (file, counter) = (BufWriter::new(file), Counter::default());
                    return Ok(Out { file, name, compress, counter, packets: 0, stored: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn packet(&mut self, preamble: PacketPreamble, body: &[u8], events: u64) -> io::Result<()> {
        let bits = (PREAMBLE_LEN + body.len()) as u64 * 8;
        let preamble =
            PacketPreamble { seq_num: self.packets, content_bits: bits, packet_bits: bits, ..preamble };
        let mut packet = Vec::with_capacity(PREAMBLE_LEN + body.len());
        packet.extend_from_slice(&stream_preamble(&preamble));
        packet.extend_from_slice(body);
        let facts = PacketFacts {
            class: preamble.stream_id.into(),
            seq_num: preamble.seq_num,
            discarded: preamble.events_discarded,
            events: Some(events),
        };
        self.counter.packet(&packet, facts);
        self.packets += 1;
        let bytes = if self.compress { zstd::bulk::compress(&packet, 3)? } else { packet };
        self.stored += bytes.len() as u64;
        self.file.write_all(&bytes)
    }

    fn finish(mut self) -> io::Result<Option<StreamAccount>> {
        self.file.flush()?;
        Ok(self.counter.account(&self.name, self.stored))
    }
}
