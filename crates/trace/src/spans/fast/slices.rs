//! A trace cut into slices of time.

use hetrace_ctf::read::{FrameHeads, PacketInfo, StreamReader};

use crate::trace::Trace;

/// Below this many bytes it is not worth while.
const LEAST: u64 = 8 << 20;

/// How many bytes one of a compressed file is worth.
const PACKED: u64 = 4;

/// Bytes of a compressed stream for which one packet is looked at, and the most of these packets.
const SAMPLED: u64 = 1 << 20;
const SAMPLES: usize = 16;

/// A stretch of time, over all streams.
#[derive(Debug)]
pub(super) struct Slice {
    /// Where it begins; none for the first.
    pub from: Option<u64>,
    /// The first time that is not in it.
    pub until: u64,
    /// Whether what is odd about its streams shows only when they are read.
    pub strict: bool,
    /// By stream: where its packets are; none if they are not looked for.
    parts: Option<Vec<Part>>,
}

/// The packets of a stream that may have events in a slice.
#[derive(Debug)]
struct Part {
    first: PacketInfo,
    before: Option<PacketInfo>,
    /// Offset of the first packet that has none.
    limit: u64,
}

impl Slice {
    /// All before a time.
    pub fn before(until: u64) -> Self {
        Self { until, ..WHOLE }
    }

    /// Whether it is all of a trace.
    pub fn is_whole(&self) -> bool {
        self.parts.is_none()
    }

    /// The offsets at which its streams' packets end, by stream; none where that is the end of the file.
    pub fn limits(&self) -> Vec<Option<u64>> {
        let limit = |part: &Part| Some(part.limit).filter(|limit| *limit != u64::MAX);
        self.parts.iter().flatten().map(limit).collect()
    }

    /// Its streams; none if one is not there.
    pub fn streams<'t>(&self, trace: &'t Trace) -> Option<Vec<StreamReader<'t>>> {
        let Some(parts) = &self.parts else {
            return Some(trace.ctf().streams().collect());
        };
        let part = |(index, part): (usize, &Part)| {
            trace.ctf().packets(index, &part.first, part.limit, part.before.as_ref())
        };
        parts.iter().enumerate().map(part).collect()
    }
}

/// All of it.
pub(super) const WHOLE: Slice = Slice { from: None, until: u64::MAX, strict: false, parts: None };

/// So many slices, or as many as there are processors, of about as many bytes each. None
/// where that is not worth while, or where slices could not be joined: with losses, with times that
/// go back, and where packets do not show their times.
///
/// Of compressed streams only a few packets are looked at. What the others turn out to be, the
/// slices find out: they are strict.
pub(super) fn cut(trace: &Trace, number: Option<usize>) -> Option<Vec<Slice>> {
    let ctf = trace.ctf();
    let number_of = |bytes: u64| match number {
        Some(number) => number,
        None if bytes < LEAST => 1,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    // Compressed ones have more bytes than that: then there are more slices worth while, not less.
    let bytes = (0..ctf.stream_count()).filter_map(|index| ctf.stream_len(index)).sum::<u64>();
    let packed = (0..ctf.stream_count()).any(|index| ctf.frame_heads(index).is_some());
    let slices = number_of(if packed { bytes.saturating_mul(PACKED) } else { bytes });
    if slices < 2 || ctf.class().clocks.iter().any(|c| c.frequency != 1_000_000_000) {
        return None;
    }
    let streams = (0..ctf.stream_count()).map(|index| Heads::of(trace, index)).collect::<Option<Vec<_>>>()?;
    // By the begins of the packets, as each stands for its bytes.
    let mut begins = streams.iter().map(Heads::weights).collect::<Option<Vec<_>>>()?.concat();
    begins.sort_unstable();
    let bytes = begins.iter().map(|(_, size)| *size).fold(0, u64::saturating_add);
    let (mut borders, mut sum) = (Vec::new(), 0u64);
    for (begin, size) in begins {
        let due = bytes / slices as u64 * (borders.len() as u64 + 1);
        if sum >= due && borders.len() + 1 < slices && borders.last() < Some(&begin) {
            borders.push(begin);
        }
        sum = sum.saturating_add(size);
    }
    if borders.is_empty() {
        return None;
    }
    let strict = streams.iter().any(|heads| matches!(heads, Heads::Frames(_)));
    let froms = std::iter::once(None).chain(borders.iter().copied().map(Some));
    let untils = borders.iter().copied().chain([u64::MAX]);
    let slice = |(from, until): (Option<u64>, u64)| {
        let part = |heads: &Heads<'_>| part(heads, from, until);
        let parts = Some(streams.iter().map(part).collect::<Option<_>>()?);
        Some(Slice { from, until, strict, parts })
    };
    froms.zip(untils).map(slice).collect()
}

/// The packets of a stream.
enum Heads<'t> {
    /// All of them.
    All(Vec<PacketInfo>),
    /// Those that frames begin with, when they are asked for; others may be between.
    Frames(FrameHeads<'t>),
}

impl<'t> Heads<'t> {
    /// None if anything is odd about them.
    fn of(trace: &'t Trace, index: usize) -> Option<Self> {
        match trace.ctf().frame_heads(index) {
            Some(frames) => Some(Heads::Frames(frames)),
            None => heads(trace, index).map(Heads::All),
        }
    }

    fn get(&self, index: usize) -> Option<PacketInfo> {
        match self {
            Heads::All(heads) => heads.get(index).copied(),
            Heads::Frames(frames) => frames.head(index),
        }
    }

    /// The last packet before the next that [`Self::get`] would give.
    fn last(&self, index: usize) -> Option<PacketInfo> {
        match self {
            Heads::All(heads) => heads.get(index).copied(),
            Heads::Frames(frames) => frames.last(index),
        }
    }

    /// Where a packet starts; none behind the last.
    fn offset(&self, index: usize) -> Option<u64> {
        match self {
            Heads::All(heads) => heads.get(index).map(|head| head.offset),
            Heads::Frames(frames) => frames.offset(index),
        }
    }

    /// Times at which packets begin, and the bytes that each stands for.
    fn weights(&self) -> Option<Vec<(u64, u64)>> {
        let weight = |head: &PacketInfo, bytes| Some((head.timestamp_begin?, bytes));
        match self {
            Heads::All(heads) => heads.iter().map(|head| weight(head, head.size)).collect(),
            Heads::Frames(frames) => {
                let number = usize::try_from(frames.bytes() / SAMPLED).unwrap_or(usize::MAX);
                let number = number.clamp(1, SAMPLES).min(frames.len());
                let at = |sample: usize| sample * frames.len() / number;
                let each = frames.bytes() / number as u64;
                (0..number).map(|sample| weight(&frames.head(at(sample))?, each)).collect()
            }
        }
    }

    /// How many packets begin before a time.
    fn begin_before(&self, time: u64) -> Option<usize> {
        match self {
            Heads::All(heads) => Some(heads.partition_point(|head| head.timestamp_begin < Some(time))),
            Heads::Frames(frames) => {
                let (mut below, mut above) = (0, frames.len());
                while below < above {
                    let middle = below.midpoint(above);
                    if frames.head(middle)?.timestamp_begin? < time {
                        below = middle + 1;
                    } else {
                        above = middle;
                    }
                }
                Some(below)
            }
        }
    }
}

/// The packets of a stream; none if anything is odd about them.
fn heads(trace: &Trace, index: usize) -> Option<Vec<PacketInfo>> {
    let (mut heads, mut end, mut offset) = (Vec::<PacketInfo>::new(), 0, 0);
    for head in trace.ctf().heads(index)? {
        let (begin, last) = head.timestamp_begin.zip(head.timestamp_end)?;
        let whole = head.discarded_before == 0 && head.missing_before == 0 && head.offset == offset;
        if !whole || begin < end || last < begin {
            return None;
        }
        end = last;
        offset = head.offset.checked_add(head.size)?;
        heads.push(head);
    }
    // What comes behind a damaged packet was not looked at.
    (offset == trace.ctf().stream_len(index)? && !heads.is_empty()).then_some(heads)
}

fn part(heads: &Heads<'_>, from: Option<u64>, until: u64) -> Option<Part> {
    // An event right at the border may be the last of the packet before.
    let first = match from {
        None => 0,
        Some(from) => heads.begin_before(from)?.saturating_sub(1),
    };
    let limit = match until {
        u64::MAX => u64::MAX,
        until => heads.offset(heads.begin_before(until)?.max(first)).unwrap_or(u64::MAX),
    };
    let before = match first.checked_sub(1) {
        None => None,
        Some(before) => Some(heads.last(before)?),
    };
    Some(Part { first: heads.get(first)?, before, limit })
}
