//! Data stream files that grow: the whole packets that came since the last look.
//!
//! ```text
//!  file    | packet | packet | packet | pac…      whoever writes it is here
//!          └── read before ──┘└ new ──┘└ not whole: left for the next look
//! ```
//! Files are read, not mapped: one that becomes shorter meanwhile does no harm.
//!
//! Of a series ([`Part`]) a stream goes on in the files of the next parts, behind what these repeat. Parts are removed while
//! they are read: files that are open are read to their end, and what is gone before is counted.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use super::data::Repeated;
use super::decode::State;
use super::files::{METADATA, OWN, Part, has_metadata, numbers};
use super::frames::{MAX_PACKET, TOO_LONG};
use super::packet::head;
use super::pending::Pending;
use super::trace::Trace;
use crate::archive::PACKED;

/// The stream files in a folder, in the order in which they were found. That is their number for good.
#[derive(Debug)]
pub struct Tails {
    folder: PathBuf,
    /// Whether it is the folder of a series.
    in_parts: bool,
    tails: Vec<Tail>,
    /// By the names of streams that go on.
    known: HashMap<String, usize>,
    /// The first part that was found, and the last one, whose files are looked for again.
    first: u32,
    last: u32,
    /// Parts that were never there when somebody looked, and those that were removed since.
    missed: u64,
    removed: BTreeSet<u32>,
}

/// Parts of a series that were removed before they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Of which nothing was read.
    pub whole: u64,
    /// Of which something may be missing: they were removed between two looks.
    pub partly: u64,
}

/// A stream file, and how far it has been read.
#[derive(Debug)]
pub struct Tail {
    name: String,
    compressed: bool,
    file: Option<Open>,
    /// Those of the next parts.
    next: VecDeque<Next>,
    /// The last part that has a file of it.
    part: u32,
    /// Bytes that were given out.
    given: u64,
    /// Parts whose files were gone when they were to be read.
    gone: BTreeSet<u32>,
    /// Why it is not read any further.
    broken: Option<String>,
}

/// A file that is read.
#[derive(Debug)]
struct Open {
    file: File,
    /// Bytes of it that were given out, or are repeated.
    at: u64,
}

/// A file that will be read.
#[derive(Debug)]
struct Next {
    path: PathBuf,
    part: u32,
    repeated: Repeated,
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
    /// Those of the trace in a folder, or of the series there, of which nothing is read yet.
    pub fn new(folder: &Path) -> Self {
        let (tails, known, removed) = (Vec::new(), HashMap::new(), BTreeSet::new());
        let in_parts = !has_metadata(folder) && !numbers(folder).is_empty();
        Self { folder: folder.into(), in_parts, tails, known, first: 0, last: 0, missed: 0, removed }
    }

    /// Finds files that are new. Returns whether there are new parts.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn look(&mut self) -> io::Result<bool> {
        if !self.in_parts {
            let folder = self.folder.clone();
            self.add(&folder, &Part::default()).map(|()| false)?;
            return Ok(false);
        }
        let before = self.last;
        let numbers = numbers(&self.folder);
        // Files that it got since then may be gone.
        self.removed.extend((before > 0 && !numbers.contains(&before)).then_some(before));
        for number in numbers.into_iter().filter(|number| *number >= before) {
            let part = self.folder.join(Part::name(number));
            let folder = if has_metadata(&part) { part } else { part.join(OWN) };
            let Some(of) = Part::of(&folder).filter(|part| part.number == number) else { continue };
            let missing = number.saturating_sub(self.last + 1);
            if missing > 0 {
                // Where streams go on nobody knows: they are others, with all that the part repeats.
                self.known.clear();
                self.missed += u64::from(missing);
            }
            self.first = if self.first == 0 { number } else { self.first };
            self.last = number;
            match self.add(&folder, &of) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => _ = self.removed.insert(number),
                done => done?,
            }
        }
        Ok(self.last != before)
    }

    /// Adds the files of a folder that are new.
    fn add(&mut self, folder: &Path, part: &Part) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let plain = name.strip_suffix(PACKED).unwrap_or(&name);
            let is_new = self.known.get(plain).is_none_or(|at| self.tails[*at].part < part.number);
            // A pipe or a link is nothing that a tracer leaves there.
            if plain != METADATA && !name.starts_with('.') && is_new && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let plain = name.strip_suffix(PACKED).unwrap_or(&name);
            let (path, number) = (folder.join(&name), part.number);
            if let Some(tail) = self.known.get(plain).and_then(|at| self.tails.get_mut(*at)) {
                let repeated = part.earlier.get(plain).copied().unwrap_or_default();
                tail.part = number;
                tail.next.push_back(Next { path, part: number, repeated });
                continue;
            }
            self.known.insert(plain.to_owned(), self.tails.len());
            let next = Next { path, part: number, repeated: Repeated::default() };
            self.tails.push(Tail::new(&name, next));
        }
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

    /// Returns the parts that were removed before they were read.
    pub fn gone(&self) -> Gone {
        let unread = self.tails.iter().flat_map(|tail| tail.gone.iter().copied());
        let partly: BTreeSet<u32> = unread.chain(self.removed.iter().copied()).collect();
        Gone { whole: self.missed, partly: partly.len() as u64 }
    }

    /// Returns whether all that was read is there still: of a series no part was removed since the first look.
    pub fn are_there(&self) -> bool {
        !self.in_parts || numbers(&self.folder).contains(&self.first) && self.gone() == Gone::default()
    }
}

impl Tail {
    fn new(name: &str, next: Next) -> Self {
        let plain = name.strip_suffix(PACKED);
        Self {
            name: plain.unwrap_or(name).to_owned(),
            compressed: plain.is_some(),
            file: None,
            part: next.part,
            next: [next].into(),
            given: 0,
            gone: BTreeSet::new(),
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
        self.given
    }

    /// Appends new packets to `to`, decompressed, which end before `most` bytes of the file; at least one if it
    /// is there. `trace` says what a packet looks like.
    ///
    /// What cannot be a packet breaks the stream: see [`Self::broken`].
    pub fn read(&mut self, trace: &Trace, most: usize, to: &mut Pending) -> Grown {
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

    /// Reads one file after the other, as far as there are parts.
    fn try_read(&mut self, trace: &Trace, most: usize, to: &mut Pending) -> io::Result<Grown> {
        let (mut all, mut end) = (0, None);
        loop {
            let Some(open) = &mut self.file else {
                match self.next.pop_front() {
                    Some(next) => self.open(next, to)?,
                    None => return Ok(Grown { bytes: all, more: None }),
                }
                continue;
            };
            let left = most.saturating_sub(usize::try_from(all).unwrap_or(usize::MAX)).max(1);
            let whole = open.read(trace, self.compressed, left, to.last())?;
            self.given += whole.taken as u64;
            all += whole.taken as u64;
            end = whole.end.or(end);
            if whole.rest {
                return Ok(Grown { bytes: all, more: Some(end) });
            }
            if self.next.is_empty() {
                return Ok(Grown { bytes: all, more: None });
            }
            // A part that another follows is finished.
            if open.is_cut()? {
                return Err(invalid("a part of it ends inside of a packet"));
            }
            self.file = None;
            if all >= most as u64 {
                return Ok(Grown { bytes: all, more: Some(end) });
            }
        }
    }

    fn open(&mut self, next: Next, to: &mut Pending) -> io::Result<()> {
        let Next { path, part, repeated } = next;
        match File::open(&path) {
            Ok(file) => self.file = Some(Open { file, at: repeated.bytes }),
            Err(error) if error.kind() == io::ErrorKind::NotFound && part > 0 => {
                self.gone.insert(part);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        to.begin(repeated.packets);
        Ok(())
    }
}

impl Open {
    /// Appends whole packets that begin where the last ones ended.
    fn read(&mut self, trace: &Trace, compressed: bool, most: usize, to: &mut Vec<u8>) -> io::Result<Whole> {
        let size = self.file.metadata()?.len();
        let new = size.checked_sub(self.at).ok_or_else(|| invalid("it became shorter"))?;
        let mut most = most;
        loop {
            let wanted = usize::try_from(new).unwrap_or(usize::MAX).min(most);
            let mut bytes = vec![0; wanted];
            let got = read_at(&self.file, &mut bytes, self.at)?;
            bytes.truncate(got);
            let before = to.len();
            let whole = match compressed {
                true => frames(trace, &bytes, to)?,
                false => packets(trace, &bytes, to)?,
            };
            let rest = (got as u64) < new;
            if whole.taken == 0 && rest && got == wanted {
                // One that is longer than that.
                to.truncate(before);
                if most >= MAX_PACKET {
                    return Err(invalid(TOO_LONG));
                }
                most = most.saturating_mul(2).max(whole.needs).min(MAX_PACKET);
                continue;
            }
            self.at += whole.taken as u64;
            return Ok(Whole { rest, ..whole });
        }
    }

    /// Returns whether there is something behind the last whole packet.
    fn is_cut(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > self.at)
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
    /// Whether the file has more bytes than were looked at.
    rest: bool,
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
                    return Err(invalid(TOO_LONG));
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
