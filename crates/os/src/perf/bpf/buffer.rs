//! The buffer that the programs of one CPU write into; [`super::words`] draws it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::arena::{self, Arena};
use super::kernel::{self, Map};
use super::words::{
    BESIDE, DATA_AT, DROPPED_AT, HEAD, HEAD_AT, LEAST, MASK_AT, PARTS, SHORT_WORDS, TAIL_AT, WANTED_AT,
    length,
};

/// So many bytes of data all of an arena have together at first, unless each would have less than the least. On few processors
/// that is all they can have: there whoever makes memory may wait for a thread that has no processor.
pub const FIRST_OF_ALL: usize = 8 << 20;
/// The largest one: its size and its positions are numbers in programs.
const MOST: usize = 1 << 30;

/// Makes the arrays for these CPUs, with so many bytes of data each, or half of that, or half of that: older kernels
/// refuse values of more than 4 MiB. Returns them with their size, a power of two.
///
/// # Errors
/// When the system refuses.
pub fn make(cpus: &[u32], bytes: usize) -> io::Result<(Vec<(u32, OwnedFd)>, usize)> {
    let mut size = size(bytes);
    let array = |size: usize| kernel::map(Map::Array, 4, (size + BESIDE) as u32, 1);
    let mut made = Vec::new();
    for cpu in cpus {
        let map = loop {
            match array(size) {
                Err(error)
                    if error.raw_os_error() == Some(libc::E2BIG) && made.is_empty() && size > LEAST =>
                {
                    size /= 2;
                }
                map => break map?,
            }
        };
        made.push((*cpu, map));
    }
    made.sort_unstable_by_key(|(cpu, _)| *cpu);
    Ok((made, size))
}

/// So many bytes of memory are made at once when one becomes larger.
const PIECE: usize = 256 << 10;
/// One of an arena becomes larger when it is filled to one part of so many: its reader is woken at each of [`PARTS`], wherever
/// it has begun to fill.
const GROWS: usize = 2 * PARTS;
/// So often it is looked at again for that.
const MOST_TURNS: usize = 16;

/// Returns the size of a buffer for which so many bytes were asked.
pub fn size(bytes: usize) -> usize {
    bytes.clamp(LEAST, MOST).next_power_of_two()
}

/// Returns how many bytes of data each of so many buffers of an arena has at first: a power of two.
fn first(cpus: usize) -> usize {
    let share = FIRST_OF_ALL / cpus.max(1);
    (share.max(LEAST) + 1).next_power_of_two().div_euclid(2)
}

/// A buffer, mapped.
#[derive(Debug)]
pub struct Buffer {
    map: Arc<MmapRaw>,
    /// Where it begins there.
    begin: usize,
    /// Bytes of data that it can have: a power of two.
    size: usize,
    /// Bytes of data that programs may use, likewise.
    touched: usize,
    /// Bytes behind these of which there is memory already.
    pieces: usize,
}

impl Buffer {
    /// Maps the array of a buffer with so many bytes of data.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn map(array: &OwnedFd, size: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(size + BESIDE).map_raw(array)?;
        Ok(Self::of(Arc::new(map), 0, size, size))
    }

    /// Makes the beginning of a CPU's buffer in an arena, with so many bytes of data at most.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn in_arena(arena: &Arena, cpu: u32, size: usize) -> io::Result<Self> {
        let (begin, touched) = (cpu as usize * arena.stride(), first(arena.cpus()).min(size));
        arena::touch(arena.memory(), begin, touched + BESIDE)?;
        Ok(Self::of(Arc::clone(arena.memory()), begin, size, touched))
    }

    fn of(map: Arc<MmapRaw>, begin: usize, size: usize, touched: usize) -> Self {
        let buffer = Self { map, begin, size, touched, pieces: 0 };
        buffer.number(MASK_AT).store(touched as u64 - 1, Ordering::Relaxed);
        buffer.number(WANTED_AT).store(touched as u64 - 1, Ordering::Relaxed);
        buffer
    }

    /// Makes a piece of memory more. Once there is twice as much, the next program that finds the buffer empty begins to use
    /// it. All at once would take as long as what there is takes to fill.
    fn grow(&mut self) {
        let has = self.touched + self.pieces;
        let more = PIECE.min(2 * self.touched - has);
        if self.touched == self.size || arena::touch(&self.map, self.begin + has + BESIDE, more).is_err() {
            return;
        }
        self.pieces += more;
        if self.pieces == self.touched {
            self.touched *= 2;
            self.pieces = 0;
            self.number(WANTED_AT).store(self.touched as u64 - 1, Ordering::Relaxed);
        }
    }

    /// Returns how many bytes of data are in use. It stays so while something is unread: only a program that finds the
    /// buffer empty changes it, before it stores the head.
    fn in_use(&self) -> usize {
        let mask = self.number(MASK_AT).load(Ordering::Relaxed) as usize;
        mask.saturating_add(1).min(self.touched)
    }

    /// Appends the words of all records and makes their room free. Returns how many bytes made no sense.
    pub fn take(&mut self, into: &mut Vec<u64>) -> usize {
        let mut damaged = self.take_once(into);
        // A larger one is used from when a program finds this one empty: what came meanwhile is less each time.
        for _ in 0..MOST_TURNS {
            if self.in_use() == self.touched {
                break;
            }
            damaged += self.take_once(into);
        }
        damaged
    }

    fn take_once(&mut self, into: &mut Vec<u64>) -> usize {
        // Only we write it.
        let begin = self.number(TAIL_AT).load(Ordering::Relaxed);
        // Pairs with the program's store of it behind a record.
        let end = self.number(HEAD_AT).load(Ordering::Acquire);
        let unread = end.saturating_sub(begin);
        let size = self.in_use();
        let (mut at, mut damaged) = (begin, 0);
        if unread <= size as u64 {
            // Of none more is reserved than fits into the buffer.
            into.reserve(unread as usize / size_of::<u64>());
            // What is not copied yet: records in a row, of which only the last one goes over the end.
            let mut from = begin;
            while at < end {
                let words = self.length(at, size);
                if !(HEAD..SHORT_WORDS).contains(&words) || (words * 8) as u64 > end - at {
                    break;
                }
                at += (words * 8) as u64;
                if (at ^ from) & size as u64 != 0 {
                    into.extend_from_slice(self.words((from, size), (at - from) as usize / 8));
                    from = at;
                }
            }
            into.extend_from_slice(self.words((from, size), (at - from) as usize / 8));
        }
        if at != end {
            // Where the next one begins is unknown.
            damaged = usize::try_from(end.wrapping_sub(at)).unwrap_or(usize::MAX);
            at = end;
        }
        // Pairs with the program's load of it: all was read before it may be written again.
        self.number(TAIL_AT).store(at, Ordering::Release);
        if unread >= (size / GROWS) as u64 && size == self.touched {
            self.grow();
        }
        damaged
    }

    /// Returns how many records there was no room for, so far.
    pub fn dropped(&self) -> u64 {
        self.number(DROPPED_AT).load(Ordering::Relaxed)
    }

    fn number(&self, at: i16) -> &AtomicU64 {
        // SAFETY: a buffer begins with a page, at a multiple of a page in the map, and `at` is a multiple of 8 below 128, so
        // the number is inside of it and aligned. Programs load and store it whole, and the map lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(self.begin + at as usize).cast()) }
    }

    /// Returns how many words the record at a position has, where so many bytes of data are in use.
    fn length(&self, at: u64, size: usize) -> usize {
        length(self.words((at, size), HEAD))
    }

    /// Returns words of finished records in a row, all of which begin before the end of the data in use.
    fn words(&self, (at, size): (u64, usize), words: usize) -> &[u64] {
        let offset = at as usize & (size - 1) & !7;
        assert!(size <= self.touched && offset + words * 8 <= size + BESIDE - DATA_AT as usize);
        // SAFETY: `offset` is a multiple of 8, and with the words no more than the data in use, for which there is memory,
        // and the `BESIDE - DATA_AT` bytes behind it, all of which are mapped. The kernel writes there again only when the
        // tail that we store has gone beyond it, which it has not while the caller has this.
        unsafe {
            let from = self.map.as_ptr().add(self.begin + DATA_AT as usize + offset);
            std::slice::from_raw_parts(from.cast(), words)
        }
    }
}

#[cfg(test)]
impl Buffer {
    /// Makes one of a file, of the smallest size.
    pub fn of_file() -> Self {
        let file = tempfile::tempfile().unwrap();
        file.set_len((LEAST + BESIDE) as u64).unwrap();
        Buffer::map(&file.into(), LEAST).unwrap()
    }

    /// Returns another one of the same memory.
    pub fn same(&self) -> Self {
        Buffer { map: Arc::clone(&self.map), ..*self }
    }

    /// Returns how many bytes are not read yet.
    pub fn unread(&self) -> u64 {
        self.number(HEAD_AT).load(Ordering::Relaxed) - self.number(TAIL_AT).load(Ordering::Relaxed)
    }

    /// Writes as a program does: a record at the head, which moves behind it.
    pub fn write(&self, words: &[u64]) {
        let head = self.number(HEAD_AT);
        let at = head.load(Ordering::Relaxed) as usize & (self.in_use() - 1);
        for (n, word) in words.iter().enumerate() {
            // SAFETY: the place is inside of the map, as the test's records are short, and nobody else writes it.
            unsafe { self.map.as_mut_ptr().add(DATA_AT as usize + at).cast::<u64>().add(n).write(*word) };
        }
        head.fetch_add(words.len() as u64 * 8, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(buffer: &mut Buffer) -> (Vec<u64>, usize) {
        let mut words = Vec::new();
        let damaged = buffer.take(&mut words);
        let (mut times, mut rest) = (Vec::new(), words.as_slice());
        while let Some(time) = rest.first() {
            times.push(*time);
            let (record, behind) = rest.split_at(length(rest));
            assert!(record.iter().skip(HEAD).all(|word| word == time), "{record:?}");
            rest = behind;
        }
        (times, damaged)
    }

    fn record(time: u64, words: u8) -> Vec<u64> {
        [&[time, 0, u64::from(words) << 8][..], &vec![time; usize::from(words) - HEAD]].concat()
    }

    #[test]
    fn memory_at_first_does_not_grow_with_the_cpus() {
        let each = [1, 2, 16, 32, 48, 64, 128].map(first);
        assert_eq!(each, [8192, 4096, 512, 256, 128, 128, 64].map(|kib| kib << 10));
        assert!([32, 100, 128].iter().all(|cpus| cpus * first(*cpus) <= FIRST_OF_ALL));
    }

    #[test]
    fn a_buffer_that_fills_grows_once_it_was_empty() {
        let file = tempfile::tempfile().unwrap();
        file.set_len((8 * LEAST + BESIDE) as u64).unwrap();
        let map = Arc::new(MmapOptions::new().map_raw(&file).unwrap());
        let mut buffer = Buffer::of(map, 0, 8 * LEAST, LEAST);
        // A program that finds it empty takes the mask that is wanted.
        let adopt = |buffer: &Buffer| {
            assert_eq!(buffer.unread(), 0);
            buffer.number(MASK_AT).store(buffer.number(WANTED_AT).load(Ordering::Relaxed), Ordering::Relaxed);
        };
        let mut time = 0;
        for expected in [1, 2, 4, 8, 8, 8].map(|times| times * LEAST) {
            adopt(&buffer);
            assert_eq!(buffer.in_use(), expected);
            let times: Vec<u64> = (time..).take(expected / GROWS / 32).collect();
            times.iter().for_each(|time| buffer.write(&record(*time, 4)));
            time += times.len() as u64;
            assert_eq!(taken(&mut buffer), (times, 0));
        }
        // One that does not fill stays as it is.
        let mut small = Buffer::of(Arc::clone(&buffer.map), 0, 4 * LEAST, LEAST);
        adopt(&small);
        small.write(&record(1, 4));
        taken(&mut small);
        assert_eq!((small.touched, small.pieces), (LEAST, 0));
    }

    #[test]
    fn records_come_whole_also_over_the_end() {
        let mut buffer = Buffer::of_file();
        assert_eq!(taken(&mut buffer), (vec![], 0));
        let mut time = 0;
        for round in 0..4000 {
            let words = [4, 8, 6][round % 3];
            let mut expected = Vec::new();
            for _ in 0..round % 5 {
                time += 1;
                buffer.write(&record(time, words));
                expected.push(time);
            }
            assert_eq!(taken(&mut buffer), (expected, 0));
        }
        assert!(buffer.number(HEAD_AT).load(Ordering::Relaxed) > 2 * LEAST as u64);
    }

    #[test]
    fn what_makes_no_sense_is_counted_and_passed_over() {
        let mut buffer = Buffer::of_file();
        buffer.write(&record(1, 4));
        // One that says that it is longer than what is written, and one without a length.
        buffer.write(&[2, 0, 200 << 8]);
        assert_eq!(taken(&mut buffer), (vec![1], 24));
        buffer.write(&[3, 0, 0]);
        assert_eq!(taken(&mut buffer), (vec![], 24));
        // A head beyond all that there can be.
        buffer.number(HEAD_AT).fetch_add(LEAST as u64 + 8, Ordering::Relaxed);
        assert_eq!(taken(&mut buffer), (vec![], LEAST + 8));
        buffer.write(&record(4, 5));
        assert_eq!(taken(&mut buffer), (vec![4], 0));
    }
}
