//! A trace: its classes, compiled, and its files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::compile::{Compiler, Slots};
use super::ends::Ends;
use super::error::{OpenError, PlanError};
use super::files::{Files, PACKED};
use super::frames::{self, Frames, Starts};
use super::map::Bytes;
use super::plan::Node;
use super::quick::{QuickBody, QuickHeader};
use super::scopes::Scopes;
use super::series::Repeated;
use super::source::Source;
use super::stream::StreamReader;
use super::tail::Pending;
use crate::class::{FieldClass, Scope, StreamClass, StructClass, TraceClass};
use crate::metadata;

/// An open trace.
#[derive(Debug)]
pub struct Trace {
    class: TraceClass,
    pub(super) plans: Vec<StreamPlan>,
    /// The packet header, before it is known of which stream the packet is.
    pub(super) header: Option<Node>,
    pub(super) files: Vec<DataFile>,
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
    fn pending(name: String, pending: Pending) -> Self {
        let segment = |(first, bytes)| Segment { data: Bytes::Owned(bytes), frames: OnceLock::new(), first };
        let segments: Vec<_> = pending.segments.into_iter().map(segment).collect();
        let nothing = Self::new(name, Bytes::Owned(Vec::new()));
        if segments.is_empty() { nothing } else { Self { segments, ..nothing } }
    }

    /// Returns these bytes again.
    fn into_pending(self) -> (String, Pending) {
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

/// A stream class, compiled.
#[derive(Debug)]
pub(super) struct StreamPlan {
    pub header: Option<Node>,
    pub context: Option<Node>,
    pub event_header: Option<Node>,
    pub quick_header: Option<QuickHeader>,
    pub event_context: Option<Node>,
    pub events: Vec<EventPlan>,
    /// Position in `events` by event id.
    pub by_id: EventIndex,
    /// Where events end, in a stream with a clock and the common header.
    pub ends: Option<Ends>,
    /// Position of the clock in the trace class.
    pub clock: Option<usize>,
    pub slots: usize,
}

/// An event class, compiled.
#[derive(Debug)]
pub(super) struct EventPlan {
    pub context: Option<Node>,
    pub fields: Node,
    /// The quick way past all of it.
    pub quick: Option<QuickBody>,
}

/// Ids are mostly small and dense; LTTng's and ours are.
#[derive(Debug)]
pub(super) enum EventIndex {
    Dense(Vec<Option<u32>>),
    Sparse(HashMap<u64, u32>),
}

impl EventIndex {
    fn new(stream: &StreamClass) -> Self {
        let ids = || stream.events.iter().zip(0u32..).map(|(e, i)| (e.id, i));
        let top = stream.events.iter().map(|e| e.id).max().unwrap_or(0);
        if top > 4 * stream.events.len() as u64 + 1024 {
            return EventIndex::Sparse(ids().collect());
        }
        let mut dense = vec![None; top as usize + 1];
        for (id, index) in ids() {
            dense[id as usize] = Some(index);
        }
        EventIndex::Dense(dense)
    }

    #[inline(always)]
    pub fn get(&self, id: u64) -> Option<usize> {
        let index = match self {
            EventIndex::Dense(dense) => *dense.get(usize::try_from(id).ok()?)?,
            EventIndex::Sparse(map) => map.get(&id).copied(),
        };
        index.map(|i| i as usize)
    }
}

impl Trace {
    /// Opens a trace: a folder with `metadata` and every other file in it as a data
    /// stream, such a folder packed into one file, or a folder with one trace somewhere
    /// inside (see [`Files`]).
    ///
    /// As with babeltrace2, subfolders, hidden files and empty files are passed
    /// over. Streams are in the order of their names. Those whose name ends in
    /// `.zst` are zstd frames, which are decompressed one after the other as they
    /// are read: a packet of such a file has at most 256 MiB.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::from_files(&Files::open(path)?)
    }

    /// The same for files that are open.
    pub fn from_files(files: &Files) -> Result<Self, OpenError> {
        let metadata = files.metadata()?;
        Self::new(metadata::parse(&metadata)?, files.streams()?)
    }

    /// Returns a trace from bytes in memory: the metadata, and streams by name, where
    /// `.zst` means what it means in [`Self::open`].
    pub fn from_parts(metadata: &[u8], streams: Vec<(String, Vec<u8>)>) -> Result<Self, OpenError> {
        Self::from_class(metadata::parse(metadata)?, streams)
    }

    /// The same with metadata that is already understood.
    pub fn from_class(class: TraceClass, streams: Vec<(String, Vec<u8>)>) -> Result<Self, OpenError> {
        let file = |(name, data)| DataFile::new(name, Bytes::Owned(data));
        Self::new(class, streams.into_iter().map(file).collect())
    }

    fn new(class: TraceClass, files: Vec<DataFile>) -> Result<Self, OpenError> {
        if !matches!((class.major, class.minor), (1, 8) | (2, 0)) {
            return Err(OpenError::Version { major: class.major, minor: class.minor });
        }
        let scopes = Scopes { trace: &class, stream: None, event: None };
        let mut slots = Slots::default();
        let mut compiler = Compiler { scopes, clock: None, slots: &mut slots };
        compiler.collect(Scope::PacketHeader, Scope::PacketHeader)?;
        let header = compiler.scope(Scope::PacketHeader)?;
        let plans: Result<_, _> = class.streams.iter().map(|s| StreamPlan::new(&class, s)).collect();
        Ok(Self { plans: plans?, header, files, class })
    }

    /// Puts other streams in the place of its own, from bytes in memory that are not compressed. Returns those that
    /// such a call has put there before.
    pub fn exchange(&mut self, streams: Vec<(String, Pending)>) -> Vec<(String, Pending)> {
        let files = streams.into_iter().map(|(name, pending)| DataFile::pending(name, pending)).collect();
        std::mem::replace(&mut self.files, files).into_iter().map(DataFile::into_pending).collect()
    }

    /// Returns what the metadata says.
    pub fn class(&self) -> &TraceClass {
        &self.class
    }

    /// Returns how many data stream files there are.
    pub fn stream_count(&self) -> usize {
        self.files.len()
    }

    /// Bytes of one data stream file, as it lies there; none beyond the last.
    pub fn stream_len(&self, index: usize) -> Option<u64> {
        self.files.get(index).map(DataFile::len)
    }

    /// Returns the name of one data stream file; none beyond the last.
    pub fn stream_name(&self, index: usize) -> Option<&str> {
        self.files.get(index).map(|file| file.name.as_str())
    }

    /// Bytes of one data stream, decompressed; none beyond the last, or if the frames of a compressed
    /// one do not all say theirs.
    pub fn plain_len(&self, index: usize) -> Option<u64> {
        let file = self.files.get(index)?;
        if file.is_compressed() { file.plain_len() } else { Some(file.len()) }
    }

    /// Returns a reader of one data stream file; none beyond the last.
    pub fn stream(&self, index: usize) -> Option<StreamReader<'_>> {
        self.files.get(index).map(|file| StreamReader::new(self, file))
    }

    /// Readers of all data stream files.
    pub fn streams(&self) -> impl Iterator<Item = StreamReader<'_>> {
        self.files.iter().map(|file| StreamReader::new(self, file))
    }
}

impl StreamPlan {
    fn new(trace: &TraceClass, stream: &StreamClass) -> Result<Self, PlanError> {
        use Scope::{
            EventContext, EventFields, EventHeader, PacketContext, PacketHeader, StreamEventContext,
        };
        const SHARED: [Scope; 4] = [PacketHeader, PacketContext, EventHeader, StreamEventContext];

        let clock = clock_of(stream);
        let scopes = Scopes { trace, stream: Some(stream), event: None };
        let mut shared = Slots::default();
        let mut compiler = Compiler { scopes, clock, slots: &mut shared };
        for scope in SHARED {
            compiler.collect(scope, StreamEventContext)?;
        }
        // Events may refer to what stands before them, which then needs a slot too.
        for event in &stream.events {
            compiler.scopes.event = Some(event);
            compiler.collect(EventContext, StreamEventContext)?;
            compiler.collect(EventFields, StreamEventContext)?;
        }
        compiler.scopes.event = None;
        let header = compiler.scope(PacketHeader)?;
        let context = compiler.scope(PacketContext)?;
        let event_header = compiler.scope(EventHeader)?;
        let event_context = compiler.scope(StreamEventContext)?;

        let mut most = shared.len();
        let mut events = Vec::with_capacity(stream.events.len());
        for event in &stream.events {
            let mut own = shared.clone();
            let scopes = Scopes { trace, stream: Some(stream), event: Some(event) };
            let mut compiler = Compiler { scopes, clock, slots: &mut own };
            compiler.collect(EventContext, EventFields)?;
            compiler.collect(EventFields, EventFields)?;
            let context = compiler.scope(EventContext)?;
            let fields = compiler.scope(EventFields)?;
            let fields = fields.expect("an event class has a payload, however empty");
            most = most.max(own.len());
            events.push(EventPlan {
                quick: QuickBody::of(event_context.as_ref(), context.as_ref(), &fields),
                context,
                fields,
            });
        }
        let (by_id, quick_header) =
            (EventIndex::new(stream), event_header.as_ref().and_then(QuickHeader::of));
        let clock = clock.and_then(|name| trace.clocks.iter().position(|c| c.name == name));
        let is_common = clock.is_some() && quick_header.as_ref().is_some_and(QuickHeader::is_common);
        Ok(Self {
            quick_header,
            header,
            context,
            event_header,
            event_context,
            ends: is_common.then(|| Ends::new(&by_id, &events)).flatten(),
            events,
            by_id,
            clock,
            slots: most,
        })
    }
}

/// Returns the name of a stream's clock: that of its event header, or of its packet context.
pub fn clock_of(stream: &StreamClass) -> Option<&str> {
    if stream.clock.is_some() {
        return stream.clock.as_deref();
    }
    let scopes = [&stream.event_header, &stream.packet_context];
    scopes.into_iter().flatten().find_map(clock_in)
}

fn clock_in(class: &StructClass) -> Option<&str> {
    fn of(class: &FieldClass) -> Option<&str> {
        match class {
            FieldClass::Integer(c) => c.clock.as_deref(),
            FieldClass::Enum(c) => c.container.clock.as_deref(),
            FieldClass::Struct(c) => clock_in(c),
            FieldClass::Array(c) => of(&c.element),
            FieldClass::Sequence(c) => of(&c.element),
            FieldClass::Variant(c) => c.options.iter().find_map(|o| of(&o.class)),
            FieldClass::Optional(c) => of(&c.class),
            FieldClass::Float(_) | FieldClass::String(_) | FieldClass::Blob(_) => None,
        }
    }
    class.fields.iter().find_map(|f| of(&f.class))
}
