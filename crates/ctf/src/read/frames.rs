//! A zstd-compressed stream file, decompressed as it is read.
//!
//! ```text
//! file      | frame | frame | frame ...                 any partition of the plain
//! plain     | packet | packet | packet ...              stream; hetrace writes one
//! window             [ packet | rest of its frame )     frame per packet
//! ```

use std::fmt;

use zstd::zstd_safe::{
    DCtx, InBuffer, OutBuffer, ResetDirective, find_frame_compressed_size, get_error_name,
    get_frame_content_size,
};

use super::map::Bytes;

/// The longest packet of a compressed file, so that no file, however it claims
/// to decompress, takes all memory.
pub(super) const MAX_PACKET: usize = 256 << 20;
/// What is said of one that is longer.
pub(super) const TOO_LONG: &str = "a packet of more than 256 MiB";

/// What is decompressed at a time, except for frames that say their size.
const CHUNK: usize = 128 << 10;

/// Up to which size a frame that says its size is decompressed at a time.
const MAX_FRAME: u64 = 4 << 20;

/// The largest content of a frame that is believed.
const MAX_CONTENT: u64 = 1 << 40;

/// Compressed bytes that may lie behind before they are given back.
const KEEP: usize = 8 << 20;

/// The first bytes of a frame.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Why there are no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The file's end.
    End,
    /// The file's end, within a frame.
    Cut,
    /// A frame that cannot be decompressed.
    Broken(&'static str),
    /// The window would exceed [`MAX_PACKET`].
    TooLong,
}

/// The window on a compressed file.
pub(super) struct Frames<'t> {
    file: &'t Bytes,
    /// Up to where the file was given back to the system.
    forgotten: usize,
    /// The frame that is being decompressed, and how far it is.
    frame: usize,
    at: usize,
    frame_end: usize,
    /// Whether the file has the frame's end.
    whole: bool,
    /// Whether not all of the frame is decompressed.
    open: bool,
    /// Where its content ends in the plain stream, if it says so.
    content_end: Option<u64>,
    context: DCtx<'static>,
    buffer: Vec<u8>,
    /// Where the window starts in `buffer`, and in the plain stream.
    start: usize,
    offset: u64,
    stop: Option<Stop>,
}

impl<'t> Frames<'t> {
    /// From a frame on that begins at a byte of the file, and of the plain stream.
    pub fn at(file: &'t Bytes, at: usize, offset: u64) -> Self {
        Self {
            file,
            forgotten: at,
            frame: at,
            at,
            frame_end: at,
            whole: true,
            open: false,
            content_end: None,
            context: DCtx::create(),
            buffer: Vec::new(),
            start: 0,
            offset,
            stop: None,
        }
    }

    #[inline]
    pub fn window(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or(&[])
    }

    /// Returns where the window starts in the plain stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns where the last frame starts in the file.
    pub fn frame(&self) -> u64 {
        self.frame as u64
    }

    /// Returns whether the window ends where a frame ends.
    pub fn between(&self) -> bool {
        !self.open
    }

    /// Returns why the window cannot grow; none if it can.
    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// Lets the window start at an offset inside it.
    pub fn seek(&mut self, offset: u64) {
        let forward = offset.saturating_sub(self.offset);
        let forward = usize::try_from(forward).map_or(usize::MAX, |n| n.min(self.window().len()));
        self.start += forward;
        self.offset += forward as u64;
    }

    /// Decompresses until the window has `need` bytes, or cannot grow.
    pub fn fill(&mut self, need: usize) {
        if self.window().len() >= need {
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        while self.stop.is_none() && self.buffer.len() < need {
            if self.buffer.len() >= MAX_PACKET {
                self.stop = Some(Stop::TooLong);
            } else if !self.between() {
                self.decompress(CHUNK);
            } else if self.at == self.file.len() {
                self.stop = Some(Stop::End);
            } else {
                self.begin();
            }
        }
    }

    /// Drops the window and goes on behind the frame that stopped it; gives the
    /// byte of the file, or none at the end.
    pub fn resume(&mut self) -> Option<u64> {
        let on = matches!(self.stop, Some(Stop::Broken(_))) && self.frame_end < self.file.len();
        self.at = if on { self.frame_end } else { self.file.len() };
        self.open = false;
        self.stop = (!on).then_some(Stop::End);
        self.offset += self.window().len() as u64;
        if on && let Some(end) = self.content_end {
            self.offset = self.offset.max(end);
        }
        self.start = self.buffer.len();
        on.then_some(self.at as u64)
    }

    /// Finds the end of the next frame and starts with it.
    fn begin(&mut self) {
        if self.at - self.forgotten >= KEEP {
            self.file.forget(self.forgotten..self.at);
            self.forgotten = self.at;
        }
        let rest = &self.file[self.at..];
        self.frame = self.at;
        let size = find_frame_compressed_size(rest).ok().filter(|&n| n > 0);
        self.whole = size.is_some_and(|n| n <= rest.len());
        self.frame_end = self.at + size.filter(|_| self.whole).unwrap_or(rest.len());
        let plain = self.offset + self.window().len() as u64;
        self.content_end = content_size(rest).and_then(|size| plain.checked_add(size));
        if !self.whole && !rest.iter().zip(MAGIC).all(|(&a, b)| a == b) {
            return self.broken("no frame begins here");
        }
        if let Err(code) = self.context.reset(ResetDirective::SessionOnly) {
            return self.broken(get_error_name(code));
        }
        self.open = true;
        let content = get_frame_content_size(rest).ok().flatten();
        // One byte at least, as without room nothing goes on.
        let room = content.filter(|&n| self.whole && n <= MAX_FRAME);
        self.decompress(room.map_or(CHUNK, |n| n as usize).max(1));
    }

    fn decompress(&mut self, room: usize) {
        self.buffer.reserve(room);
        let before = self.buffer.len();
        let mut input = InBuffer::around(&self.file[self.at..self.frame_end]);
        let mut output = OutBuffer::around_pos(&mut self.buffer, before);
        let result = self.context.decompress_stream(&mut output, &mut input);
        let stuck = input.pos() == 0 && output.pos() == before;
        self.at += input.pos();
        match result {
            Err(code) => self.broken(get_error_name(code)),
            // All of the frame is in the buffer.
            Ok(0) => {
                self.at = self.frame_end;
                self.open = false;
            }
            Ok(_) if !stuck => {}
            Ok(_) if self.whole => self.broken("the frame does not end"),
            Ok(_) => self.stop = Some(Stop::Cut),
        }
    }

    fn broken(&mut self, reason: &'static str) {
        self.stop = Some(Stop::Broken(reason));
    }
}

/// Returns how much plain data a frame says it has.
fn content_size(frame: &[u8]) -> Option<u64> {
    get_frame_content_size(frame).ok().flatten().filter(|&size| size <= MAX_CONTENT)
}

/// The frames of a file, as far as they say their sizes.
#[derive(Debug)]
pub(super) struct Starts {
    /// Where they start, in the plain stream and in the file.
    pub starts: Vec<(u64, usize)>,
    /// The size of the plain stream, if that is all of it.
    pub len: Option<u64>,
}

/// Returns where frames start.
pub(super) fn starts(file: &[u8]) -> Starts {
    let (mut starts, mut at, mut plain) = (Vec::new(), 0, 0u64);
    while at < file.len() {
        starts.push((plain, at));
        let rest = &file[at..];
        let size = find_frame_compressed_size(rest).ok().filter(|&n| n > 0 && n <= rest.len());
        let (Some(size), Some(content)) = (size, content_size(rest)) else { break };
        let Some(end) = plain.checked_add(content) else { break };
        (at, plain) = (at + size, end);
    }
    Starts { starts, len: (at == file.len()).then_some(plain) }
}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("frame", &self.frame)
            .field("offset", &self.offset)
            .field("window", &self.window().len())
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
