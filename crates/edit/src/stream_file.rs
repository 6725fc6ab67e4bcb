//! A stream file in the making: packets as they are, or in zstd frames of whole packets.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hetrace_ctf::account::{Counter, PacketFacts, StreamAccount};
use hetrace_ctf::read::PACKED;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use crate::Error;

/// How stream files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Packets as they are, which all readers of CTF read.
    #[default]
    Plain,
    /// As `NAME.zst`: what `zstd -d` makes plain.
    Compressed,
}

/// How much plain data a frame has, if packets are not longer.
const FRAME: usize = 1 << 20;
/// As hard as `hetrace run --compress` does.
const LEVEL: i32 = 3;

/// The file; it is made as the first packet comes.
pub(crate) struct StreamFile {
    path: PathBuf,
    form: Form,
    out: Option<BufWriter<File>>,
    /// Packets of the next frame.
    waiting: Vec<u8>,
    compressor: Option<Compressor<'static>>,
    bytes: u64,
    /// Its name without the ending of a compressed one.
    name: String,
    counter: Counter,
}

impl StreamFile {
    /// Returns a file of this name, to which a compressed one adds its own ending.
    pub fn new(path: &Path, form: Form) -> Self {
        let plain = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut name = OsString::from(path);
        if form == Form::Compressed {
            name.push(PACKED);
        }
        let path = PathBuf::from(name);
        Self {
            path,
            form,
            out: None,
            waiting: Vec::new(),
            compressor: None,
            bytes: 0,
            name: plain,
            counter: Counter::default(),
        }
    }

    /// Adds a packet.
    pub fn packet(&mut self, bytes: &[u8], facts: PacketFacts) -> Result<(), Error> {
        self.counter.packet(bytes, facts);
        if self.form == Form::Plain {
            return self.put(bytes);
        }
        if !self.waiting.is_empty() && self.waiting.len().saturating_add(bytes.len()) > FRAME {
            self.frame()?;
        }
        self.waiting.extend_from_slice(bytes);
        // There is a file even if it is cut short.
        if self.out.is_none() { self.put(&[]) } else { Ok(()) }
    }

    fn frame(&mut self) -> Result<(), Error> {
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(compressor().map_err(Error::io(&self.path))?),
        };
        let frame = compressor.compress(&self.waiting).map_err(Error::io(&self.path))?;
        self.waiting.clear();
        self.put(&frame)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                let file = File::create_new(&self.path).map_err(Error::io(&self.path))?;
                none.insert(BufWriter::with_capacity(1 << 18, file))
            }
        };
        self.bytes += bytes.len() as u64;
        out.write_all(bytes).map_err(Error::io(&self.path))
    }

    /// Writes the rest: what is in the file; none if there was no packet and so there is no file.
    pub fn finish(mut self) -> Result<Option<StreamAccount>, Error> {
        if !self.waiting.is_empty() {
            self.frame()?;
        }
        let Some(out) = &mut self.out else { return Ok(None) };
        out.flush().map_err(Error::io(&self.path))?;
        Ok(self.counter.account(&self.name, self.bytes))
    }
}

fn compressor() -> std::io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}
