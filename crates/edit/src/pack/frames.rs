//! Frames of zstd: made by several threads, and read one by one.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use hetrace_ctf::read::PacketReader;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{self, CParameter};

use crate::Error;

/// How much plain data a frame has, if packets are not longer.
pub(super) const FRAME: usize = 1 << 20;

/// Frames that each thread has to make before all are written.
const EACH: usize = 4;

/// The largest content of a frame that is decompressed in one piece.
const MAX_PIECE: u64 = 64 << 20;

/// Returns where frames of a file of `len` bytes end: at packets, as far as these can be read, and at `first`.
pub(super) fn borders(len: usize, first: usize, packets: Option<PacketReader<'_>>) -> Vec<usize> {
    let (mut borders, mut last, mut end) = (Vec::new(), 0, 0);
    let mut packets = packets;
    while let Some(Ok(packet)) = packets.as_mut().and_then(PacketReader::next_packet) {
        let offset = usize::try_from(packet.info.offset).unwrap_or(usize::MAX);
        let next = offset.saturating_add(usize::try_from(packet.info.size).unwrap_or(usize::MAX));
        if packet.cut || next > len {
            break;
        }
        if end > last && next - last > FRAME {
            borders.push(end);
            last = end;
        }
        end = next;
    }
    if end > last {
        borders.push(end);
        last = end;
    }
    // What is no packet is kept, too.
    while last < len {
        last = len.min(last + FRAME);
        borders.push(last);
    }
    let at = borders.partition_point(|border| *border < first);
    if first > 0 && borders.get(at).is_some_and(|border| *border > first) {
        borders.insert(at, first);
    }
    borders
}

/// Compresses with as many threads as there are processors.
pub(super) struct Squeezer {
    level: i32,
    threads: usize,
}

impl Squeezer {
    pub fn new(level: i32) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        Self { level, threads }
    }

    /// Returns how many parts to hand in at a time.
    pub fn at_once(&self) -> usize {
        self.threads * EACH
    }

    /// Returns a frame of each part, with its size and a checksum.
    pub fn squeeze(&self, parts: &[&[u8]]) -> io::Result<Vec<Vec<u8>>> {
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<Vec<(usize, Vec<u8>)>> {
            let mut compressor = Compressor::new(self.level)?;
            compressor.set_parameter(CParameter::ChecksumFlag(true))?;
            let mut made = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(index) else { return Ok(made) };
                made.push((index, compressor.compress(part)?));
            }
        };
        let mut frames = std::thread::scope(|scope| -> io::Result<Vec<_>> {
            let threads = self.threads.min(parts.len());
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut made = work()?;
            for other in others {
                let theirs =
                    other.join().map_err(|_| io::Error::other("a thread of the compressor ended"))?;
                made.extend(theirs?);
            }
            Ok(made)
        })?;
        frames.sort_by_key(|(index, _)| *index);
        Ok(frames.into_iter().map(|(_, frame)| frame).collect())
    }
}

/// A frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'f> {
    /// Its bytes.
    Whole(&'f [u8]),
    /// The file ends in it.
    Cut(&'f [u8]),
    /// These bytes are none.
    None(&'f [u8]),
}

/// Returns the frames of a file.
pub(super) fn split(mut file: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        if file.is_empty() {
            return None;
        }
        let size = zstd_safe::find_frame_compressed_size(file).ok().filter(|&n| n > 0);
        let is_frame = file.starts_with(&zstd_safe::MAGICNUMBER.to_le_bytes());
        let frame = match size.filter(|&n| n <= file.len()) {
            Some(size) => {
                let (frame, rest) = file.split_at(size);
                file = rest;
                return Some(Frame::Whole(frame));
            }
            None if is_frame => Frame::Cut(file),
            None => Frame::None(file),
        };
        file = &[];
        Some(frame)
    })
}

/// Gives what is in a frame, piece by piece. Whether that was all of it.
pub(super) fn plain(frame: &[u8], mut piece: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<bool, Error> {
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
    // Nothing that cannot be checked is given, where that is possible.
    if let Some(size) = size.filter(|&size| size <= MAX_PIECE) {
        let whole = zstd::bulk::decompress(frame, size as usize);
        if let Ok(bytes) = whole {
            piece(&bytes)?;
            return Ok(true);
        }
        let complete = zstd_safe::find_frame_compressed_size(frame).is_ok_and(|n| n <= frame.len());
        if complete {
            return Ok(false);
        }
    }
    let Ok(decoder) = zstd::Decoder::with_buffer(frame) else { return Ok(false) };
    let mut decoder = decoder.single_frame();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match io::Read::read(&mut decoder, &mut buffer) {
            Ok(0) => return Ok(true),
            Ok(n) => piece(&buffer[..n])?,
            Err(_) => return Ok(false),
        }
    }
}

/// Returns whether all frames of a file are whole and `same` says yes to all that is in them.
pub(super) fn all_plain(
    file: &[u8],
    mut same: impl FnMut(&[u8]) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut all = true;
    for frame in split(file) {
        let Frame::Whole(frame) = frame else { return Ok(false) };
        let whole = plain(frame, |piece| {
            all &= same(piece)?;
            Ok(())
        })?;
        if !(whole && all) {
            return Ok(false);
        }
    }
    Ok(all)
}
