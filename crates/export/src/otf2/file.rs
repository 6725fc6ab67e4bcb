//! A file of chunks: definitions, or the events of one location.
//!
//! ```text
//! chunk    03 42                     header; 42: the lowest byte first
//!          number of the first event, number of the last (8 bytes each; 1 and 0 of definitions)
//!          05 time                   before an event that is later than the one before it,
//!          record …                  and before the first of each chunk
//!          00 …                      up to the chunk's size, which is in the anchor file
//! last     … 02 01                   and no filling
//! ```
//!
//! The number of the last event is known when the chunk is full, and most of it has been
//! written by then: it is put in place later.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::encode::Encode;

/// Chunks of events, in bytes: what the OTF2 library takes by itself.
pub(super) const EVENT_CHUNK: u64 = 1 << 20;
/// The same of definitions; no record may be longer.
pub(super) const DEFINITION_CHUNK: u64 = 4 << 20;

const CHUNK_HEADER: u8 = 3;
const LITTLE_ENDIAN: u8 = 0x42;
const TIMESTAMP: u8 = 5;
const END_OF_FILE: u8 = 2;
const END_OF_BUFFER: u8 = 1;
/// A timestamp's record, and the end of the file.
const TIMESTAMP_SIZE: u64 = 9;
const END_SIZE: u64 = 2;
/// Where the number of the last event is in a chunk.
const LAST_EVENT: u64 = 10;

/// One file. It is open only while bytes go out, since there may be more locations than a
/// process may have files.
#[derive(Debug)]
pub(super) struct ChunkedFile {
    path: PathBuf,
    chunk: u64,
    /// What has not gone out.
    buffer: Vec<u8>,
    /// How much has.
    written: u64,
    /// Where the current chunk begins.
    chunk_start: u64,
    events: u64,
    /// Of the last event.
    time: u64,
    /// Whether the next event needs its time written.
    needs_time: bool,
    /// Numbers to be put where bytes have gone out already.
    patches: Vec<(u64, u64)>,
}

impl ChunkedFile {
    /// A file that does not exist until it is flushed.
    pub fn new(path: PathBuf, chunk: u64) -> Self {
        let mut file = Self {
            path,
            chunk,
            buffer: Vec::new(),
            written: 0,
            chunk_start: 0,
            events: 0,
            time: 0,
            needs_time: true,
            patches: Vec::new(),
        };
        file.header();
        file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many events there are.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The time of the last event; 0 if there is none.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Memory that it holds.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes that wait to go out.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Adds an event; one earlier than the last is taken to be at the same time.
    #[inline]
    pub fn event(&mut self, time: u64, record: &[u8]) {
        let time = time.max(self.time);
        self.make_room(TIMESTAMP_SIZE + record.len() as u64);
        if self.needs_time || time > self.time {
            self.buffer.push(TIMESTAMP);
            self.buffer.full_u64(time);
            self.needs_time = false;
            self.time = time;
        }
        self.events += 1;
        self.buffer.extend_from_slice(record);
    }

    /// Adds a definition.
    pub fn definition(&mut self, record: &[u8]) {
        self.make_room(record.len() as u64);
        self.buffer.extend_from_slice(record);
    }

    #[inline]
    fn make_room(&mut self, bytes: u64) {
        let end = self.chunk_start + self.chunk;
        if self.position() + bytes + END_SIZE > end {
            self.next_chunk(end);
        }
    }

    #[cold]
    fn next_chunk(&mut self, end: u64) {
        self.put_last_event();
        let filling = end.saturating_sub(self.position());
        self.buffer.resize(self.buffer.len() + filling as usize, 0);
        self.chunk_start = self.position();
        self.needs_time = true;
        self.header();
    }

    fn header(&mut self) {
        self.buffer.byte(CHUNK_HEADER);
        self.buffer.byte(LITTLE_ENDIAN);
        self.buffer.full_u64(self.events + 1);
        self.buffer.full_u64(0);
    }

    fn put_last_event(&mut self) {
        let place = self.chunk_start + LAST_EVENT;
        match place.checked_sub(self.written) {
            None => self.patches.push((place, self.events)),
            Some(at) => {
                let at = at as usize;
                if let Some(bytes) = self.buffer.get_mut(at..at + 8) {
                    bytes.copy_from_slice(&self.events.to_le_bytes());
                }
            }
        }
    }

    /// Sends out what waits; `release` gives the memory back as well.
    ///
    /// # Errors
    /// Those of the system.
    pub fn flush(&mut self, release: bool) -> io::Result<()> {
        let file = if self.written == 0 {
            File::create_new(&self.path)?
        } else {
            OpenOptions::new().write(true).open(&self.path)?
        };
        // A chunk's header of 18 bytes lies in one piece: it came into the buffer at once.
        file.write_all_at(&self.buffer, self.written)?;
        for (place, number) in self.patches.drain(..) {
            file.write_all_at(&number.to_le_bytes(), place)?;
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        if release {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Ends the file and sends it out: its size in bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(&mut self) -> io::Result<u64> {
        self.put_last_event();
        self.buffer.byte(END_OF_FILE);
        self.buffer.byte(END_OF_BUFFER);
        self.flush(true)?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::super::events;
    use super::*;

    fn written(chunk: u64, flush_each: bool, fill: impl FnOnce(&mut dyn FnMut(u64, u32, bool))) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ChunkedFile::new(folder.path().join("0.evt"), chunk);
        fill(&mut |time, region, enters| {
            let mut record = Vec::new();
            if enters {
                events::enter(&mut record, region, &[]);
            } else {
                events::leave(&mut record, region, &[]);
            }
            file.event(time, &record);
            if flush_each {
                file.flush(false).unwrap();
            }
        });
        file.finish().unwrap();
        std::fs::read(file.path()).unwrap()
    }

    /// The file that the OTF2 library 3.0.2 wrote for two events at time 0, but for the
    /// time, which it repeats there.
    #[test]
    fn a_small_file_is_that_of_the_library() {
        let bytes = written(EVENT_CHUNK, false, |event| {
            event(0, 1, true);
            event(0, 1, false);
        });
        let head = [&[3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 7]].concat();
        assert_eq!(bytes, [&head[..], &[5, 0, 0, 0, 0, 0, 0, 0, 0, 12, 1, 1, 13, 1, 1, 2, 1]].concat());
    }

    /// As the library ends a chunk and begins the next one: room for a time is wanted even
    /// where none is written, so the last pair is torn apart.
    #[test]
    fn chunks_are_filled_and_begin_with_a_time() {
        let many = |event: &mut dyn FnMut(u64, u32, bool)| {
            for i in 0..40_000 {
                event(2000 + i * 2, 1, true);
                event(2000 + i * 2, 1, false);
            }
        };
        let chunk = 256 << 10;
        let bytes = written(chunk, false, many);
        let (first, rest) = bytes.split_at(chunk as usize);
        let pairs = 17_474;
        assert_eq!(first[10..18], (pairs * 2u64 + 1).to_le_bytes());
        assert_eq!(first[18 + pairs as usize * 15 + 9..], [12, 1, 1, 0, 0, 0, 0]);
        assert_eq!(rest[..2], [3, 0x42]);
        assert_eq!(rest[2..10], (pairs * 2 + 2).to_le_bytes());
        assert_eq!(rest[18], 5);
        assert_eq!(rest[19..27], (2000 + pairs * 2).to_le_bytes());
        assert_eq!(rest[27..31], [13, 1, 1, 5]);
        assert_eq!(bytes[bytes.len() - 2..], [2, 1]);
        // However it goes out.
        assert!(written(chunk, true, many) == bytes);
    }

    #[test]
    fn time_does_not_run_backwards() {
        let bytes = written(EVENT_CHUNK, false, |event| {
            event(9, 1, true);
            event(7, 1, false);
        });
        assert_eq!(bytes[18..], [5, 9, 0, 0, 0, 0, 0, 0, 0, 12, 1, 1, 13, 1, 1, 2, 1]);
    }
}
