//! The bytes of a file: mapped, or owned; or a part of them. The only `unsafe` of the crate.

use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// Files of at most so many bytes are read and not mapped.
const SMALL: u64 = 16 << 10;

#[derive(Debug)]
pub(super) enum Bytes {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
    /// A member of an archive.
    Part {
        whole: Arc<Bytes>,
        range: Range<usize>,
    },
}

impl Bytes {
    /// Maps a file; none if it is empty, as an empty file cannot be mapped. A small one is read instead:
    /// that is quicker, and a process may have some 65,000 mappings only.
    pub fn map(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        if len == 0 {
            return Ok(None);
        }
        if len <= SMALL {
            let mut bytes = Vec::with_capacity(len as usize);
            file.read_to_end(&mut bytes)?;
            return Ok((!bytes.is_empty()).then_some(Bytes::Owned(bytes)));
        }
        // SAFETY: the mapping is private and only read, through `&[u8]`. Nothing
        // in this crate depends on two reads of a byte being equal for its memory
        // safety: each access is bounds-checked against the length fixed here. A
        // file that somebody truncates meanwhile raises SIGBUS; as with every
        // reader that maps, a trace that is still being written must not shrink.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Some(Bytes::Mapped(map)))
    }

    /// Says that these bytes will hardly be read again, so that a reader of a
    /// large file does not count all of it as its memory.
    pub fn forget(&self, range: Range<usize>) {
        if let Bytes::Part { whole, range: part } = self {
            if range.end <= part.len() {
                whole.forget(part.start + range.start..part.start + range.end);
            }
        } else if let Bytes::Mapped(map) = self
            && range.end <= map.len()
        {
            // SAFETY: the mapping is read-only and of a file, so pages that are
            // dropped come back from the file when they are read again.
            let advised = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
            };
            // It is a hint: if the system does not take it, nothing is wrong.
            drop(advised);
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
            Bytes::Part { whole, range } => whole.get(range.clone()).unwrap_or(&[]),
        }
    }
}
