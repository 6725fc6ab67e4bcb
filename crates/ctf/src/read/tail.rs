//! Data stream files that grow: the whole packets that came since the last look.
//!
//! ```text
//!  file    | packet | packet | packet | pac…      whoever writes it is here
//!          └── read before ──┘└ new ──┘└ not whole: left for the next look
//! ```
//! Files are read, not mapped: one that becomes shorter meanwhile does no harm.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use super::decode::State;
use super::files::{METADATA, PACKED};
use super::frames::MAX_PACKET;
use super::packet::head;
use super::trace::Trace;

/// The stream files in a folder, in the order in which they were found. That is their number for good.
#[derive(Debug)]
pub struct Tails {
    folder: PathBuf,
    tails: Vec<Tail>,
}

/// A stream file, and how far it has been read.
#[derive(Debug)]
pub struct Tail {
    file: Option<File>,
    path: PathBuf,
    name: String,
    compressed: bool,
    /// Bytes of the file that were given out.
    at: u64,
    /// Why it is not read any further.
    broken: Option<String>,
}

/// What a look at a file has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Bytes that were read from the file.
    pub bytes: u64,
    /// Whether there is more than was asked for; then, when the last packet that was read ends, if it says so.
    pub more: Option<Option<u64>>,
}

impl Tails {
    /// Those of the trace in a folder, of which nothing is read yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.into(), tails: Vec::new() }
    }

    /// Finds files that are new.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn look(&mut self) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let plain = name.strip_suffix(PACKED).unwrap_or(&name);
            let is_new = !self.tails.iter().any(|tail| tail.name == plain);
            // A pipe or a link is nothing that a tracer leaves there.
            if plain != METADATA && !name.starts_with('.') && is_new && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        names.sort();
        self.tails.extend(names.iter().map(|name| Tail::new(&self.folder, name)));
        Ok(())
    }

    /// Returns them, by number.
    pub fn all(&self) -> &[Tail] {
        &self.tails
    }

    /// The same, to read them.
    pub fn all_mut(&mut self) -> &mut [Tail] {
        &mut self.tails
    }
}

impl Tail {
    fn new(folder: &Path, name: &str) -> Self {
        let plain = name.strip_suffix(PACKED);
        Self {
            file: None,
            path: folder.join(name),
            name: plain.unwrap_or(name).to_owned(),
            compressed: plain.is_some(),
            at: 0,
            broken: None,
        }
    }

    /// Returns the name of the file, without `.zst`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns why it is not read any further, if that is so.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Returns the bytes of the file that were given out so far.
    pub fn read_bytes(&self) -> u64 {
        self.at
    }

    /// Appends new packets to `to`, decompressed, which end before `most` bytes of the file; at least one if it
    /// is there. `trace` says what a packet looks like.
    ///
    /// What cannot be a packet breaks the stream: see [`Self::broken`].
    pub fn read(&mut self, trace: &Trace, most: usize, to: &mut Vec<u8>) -> Grown {
        if self.broken.is_some() {
            return Grown::default();
        }
        match self.try_read(trace, most, to) {
            Ok(grown) => grown,
            Err(error) => {
                self.broken = Some(error.to_string());
                Grown::default()
            }
        }
    }

    fn try_read(&mut self, trace: &Trace, most: usize, to: &mut Vec<u8>) -> io::Result<Grown> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let file = self.file.insert(file);
        let size = file.metadata()?.len();
        let new = size.checked_sub(self.at).ok_or_else(|| invalid("it became shorter"))?;
        let mut most = most;
        loop {
            let wanted = usize::try_from(new).unwrap_or(usize::MAX).min(most);
            let mut bytes = vec![0; wanted];
            let got = read_at(file, &mut bytes, self.at)?;
            bytes.truncate(got);
            let before = to.len();
            let whole = match self.compressed {
                true => frames(trace, &bytes, to)?,
                false => packets(trace, &bytes, to)?,
            };
            let Whole { taken, end, needs } = whole;
            let rest = (got as u64) < new;
            if taken == 0 && rest && got == wanted {
                // One that is longer than that.
                to.truncate(before);
                if most >= MAX_PACKET {
                    return Err(invalid("a packet of more than 256 MiB"));
                }
                most = most.saturating_mul(2).max(needs).min(MAX_PACKET);
                continue;
            }
            self.at += taken as u64;
            return Ok(Grown { bytes: taken as u64, more: rest.then_some(end) });
        }
    }
}

/// What of some bytes are whole packets.
#[derive(Default)]
struct Whole {
    /// Bytes of the file.
    taken: usize,
    /// When the last packet ends.
    end: Option<u64>,
    /// Bytes that the first packet needs, as far as it says so.
    needs: usize,
}

/// Appends the whole packets that `bytes` begin with.
fn packets(trace: &Trace, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<Whole> {
    let mut whole = Whole::default();
    let mut state = State::default();
    while let Some(rest) = bytes.get(whole.taken..).filter(|rest| !rest.is_empty()) {
        let size = match head(trace, rest, 0, false, &mut state) {
            Ok(head) if head.foreign.is_some() => return Err(invalid("a packet of another trace")),
            Ok(head) => {
                let size = usize::try_from(head.info.size).unwrap_or(usize::MAX);
                if size > MAX_PACKET {
                    return Err(invalid("a packet of more than 256 MiB"));
                }
                if size <= rest.len() {
                    whole.end = head.info.timestamp_end.or(whole.end);
                }
                size
            }
            Err(bad) if bad.cut => break,
            Err(bad) => return Err(invalid(&bad.damage.to_string())),
        };
        if size > rest.len() {
            whole.needs = size;
            break;
        }
        whole.taken += size;
    }
    to.extend_from_slice(&bytes[..whole.taken]);
    Ok(whole)
}

/// Appends the packets of whole frames that `bytes` begin with.
fn frames(trace: &Trace, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<Whole> {
    let mut whole = Whole::default();
    while let Some(rest) = bytes.get(whole.taken..).filter(|rest| !rest.is_empty()) {
        let Ok(size) = find_frame_compressed_size(rest) else { break };
        let Some(frame) = rest.get(..size).filter(|frame| !frame.is_empty()) else { break };
        let content = get_frame_content_size(frame).ok().flatten();
        let content = content.and_then(|content| usize::try_from(content).ok());
        let content = content.filter(|content| *content <= MAX_PACKET);
        let content =
            content.ok_or_else(|| invalid("a frame that does not say its size, or of more than 256 MiB"))?;
        let plain = zstd::bulk::decompress(frame, content)?;
        let inside = packets(trace, &plain, to)?;
        if inside.taken != plain.len() {
            return Err(invalid("a frame ends inside of a packet"));
        }
        whole.end = inside.end.or(whole.end);
        whole.taken += size;
    }
    Ok(whole)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads as much as there is.
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = to.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
