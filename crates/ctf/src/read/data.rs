//! A data stream file, and of a series those of all parts.

use std::sync::{Arc, OnceLock};

use super::frames::{self, Frames, Starts};
use super::map::Bytes;
use super::pending::Pending;
use super::source::Source;
use crate::archive::PACKED;

/// What is repeated at the beginning of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Bytes, as they lie in the file.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// One data stream file; of a series of traces, those of all parts.
#[derive(Debug)]
pub(super) struct DataFile {
    pub name: String,
    /// One after the other; there is at least one.
    segments: Vec<Segment>,
    /// Where its frames start, once somebody asked.
    frames: OnceLock<Starts>,
    /// Where segments start in the plain stream, once somebody asked.
    borders: OnceLock<Vec<u64>>,
}

/// What one file has of a stream.
#[derive(Debug)]
struct Segment {
    data: Bytes,
    frames: OnceLock<Starts>,
    /// Number of its first packet, if none is missing.
    first: u64,
}

/// How long a compressed segment is taken to be whose frames do not say it: longer than any.
const UNKNOWN: u64 = 1 << 40;

impl DataFile {
    pub fn new(name: String, data: Bytes) -> Self {
        let segments = vec![Segment { data, frames: OnceLock::new(), first: 0 }];
        Self { name, segments, frames: OnceLock::new(), borders: OnceLock::new() }
    }

    /// Returns it without what is repeated at its beginning; none if nothing is left.
    pub fn without(mut self, Repeated { bytes, packets }: Repeated) -> Option<Self> {
        let first = self.segments.first_mut()?;
        let (from, len) = (usize::try_from(bytes).unwrap_or(usize::MAX), first.data.len());
        if from >= len {
            return None;
        }
        first.first = packets;
        if from > 0 {
            let whole = Arc::new(std::mem::replace(&mut first.data, Bytes::Owned(Vec::new())));
            first.data = Bytes::Part { whole, range: from..len };
        }
        Some(self)
    }

    /// Returns where a byte of the plain stream lies, if a frame begins there or the last one ends.
    pub fn stored_at(&self, plain: u64) -> Option<u64> {
        let starts = self.starts();
        let at = starts.starts.binary_search_by_key(&plain, |(plain, _)| *plain).ok();
        let at = at.and_then(|at| starts.starts.get(at)).map(|(_, at)| *at as u64);
        at.or_else(|| (starts.len == Some(plain)).then(|| self.len()))
    }

    /// The stream goes on with this one.
    pub fn append(&mut self, other: Self) {
        self.segments.extend(other.segments);
        (self.frames, self.borders) = (OnceLock::new(), OnceLock::new());
    }

    /// Returns a view from its first byte on.
    pub fn source(&self) -> Source<'_> {
        match self.segments.first() {
            Some(first) => first.source(self.is_compressed(), 0, 0),
            None => Source::nothing(),
        }
    }

    /// Returns a view from an offset on, which ends where the segment does, and the segment's number; in a compressed
    /// file, from the start of a frame.
    pub fn source_at(&self, offset: u64) -> (usize, Source<'_>) {
        let borders = self.borders();
        let number = borders.partition_point(|border| *border <= offset).saturating_sub(1);
        let border = borders.get(number).copied().unwrap_or(0);
        let source = self.segments.get(number).map_or_else(Source::nothing, |segment| {
            segment.source(self.is_compressed(), border, offset - border)
        });
        (number, source)
    }

    /// Returns where a segment starts in the plain stream; none beyond the last.
    pub fn border(&self, segment: usize) -> Option<u64> {
        // Asked at the end of each stream: most have one.
        if segment >= self.segments.len() {
            return None;
        }
        self.borders().get(segment).copied()
    }

    /// Returns the number of a segment's first packet, if none is missing.
    pub fn first(&self, segment: usize) -> u64 {
        self.segments.get(segment).map_or(0, |segment| segment.first)
    }

    fn borders(&self) -> &[u64] {
        self.borders.get_or_init(|| {
            let mut at = 0u64;
            let compressed = self.is_compressed();
            let border = |segment: &Segment| {
                let begin = at;
                // Where the last one ends is asked of nobody.
                let len = if self.segments.len() > 1 { segment.plain_len(compressed) } else { None };
                at = at.saturating_add(len.unwrap_or(UNKNOWN));
                begin
            };
            self.segments.iter().map(border).collect()
        })
    }

    /// Returns whether it has to be decompressed.
    pub fn is_compressed(&self) -> bool {
        self.name.ends_with(PACKED)
    }

    /// Its size as it is.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.data.len() as u64).sum()
    }

    /// Returns where frames start, in the plain stream and in the file.
    pub fn frames(&self) -> &[(u64, usize)] {
        &self.starts().starts
    }

    /// Returns the size of the plain stream, if the frames of all of it say theirs.
    pub fn plain_len(&self) -> Option<u64> {
        self.starts().len
    }

    fn starts(&self) -> &Starts {
        match self.segments.as_slice() {
            [one] => one.starts(),
            _ => self.frames.get_or_init(|| self.all_starts()),
        }
    }

    fn all_starts(&self) -> Starts {
        let (mut all, mut stored) = (Starts { starts: Vec::new(), len: Some(0) }, 0);
        for (segment, border) in self.segments.iter().zip(self.borders()) {
            let own = segment.starts();
            all.starts.extend(own.starts.iter().map(|(plain, at)| (border + plain, stored + at)));
            all.len = all.len.zip(own.len).map(|(all, own)| all + own);
            stored += segment.data.len();
        }
        all
    }

    /// Of bytes in memory that are not compressed.
    pub fn pending(name: String, pending: Pending) -> Self {
        let segment = |(first, bytes)| Segment { data: Bytes::Owned(bytes), frames: OnceLock::new(), first };
        let segments: Vec<_> = pending.segments.into_iter().map(segment).collect();
        let nothing = Self::new(name, Bytes::Owned(Vec::new()));
        if segments.is_empty() { nothing } else { Self { segments, ..nothing } }
    }

    /// Returns these bytes again.
    pub fn into_pending(self) -> (String, Pending) {
        let owned = |segment: Segment| match segment.data {
            Bytes::Owned(bytes) => Some((segment.first, bytes)),
            _ => None,
        };
        (self.name, Pending { segments: self.segments.into_iter().filter_map(owned).collect() })
    }
}

impl Segment {
    /// Returns a view from an offset in it on; it starts at `border` in the stream.
    fn source(&self, compressed: bool, border: u64, offset: u64) -> Source<'_> {
        if !compressed {
            return Source::plain_at(&self.data, border, offset);
        }
        if offset == 0 {
            return Source::Frames(Box::new(Frames::at(&self.data, 0, border)));
        }
        let frames = &self.starts().starts;
        let at = frames.partition_point(|(plain, _)| *plain < offset);
        let (plain, at) = frames.get(at).copied().unwrap_or((offset, self.data.len()));
        Source::Frames(Box::new(Frames::at(&self.data, at, border + plain)))
    }

    fn plain_len(&self, compressed: bool) -> Option<u64> {
        if compressed { self.starts().len } else { Some(self.data.len() as u64) }
    }

    fn starts(&self) -> &Starts {
        self.frames.get_or_init(|| frames::starts(&self.data))
    }
}
