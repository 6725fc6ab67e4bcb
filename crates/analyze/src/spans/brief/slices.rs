//! A trace cut into slices of time.

use hetrace_ctf::read::{PacketInfo, StreamReader};

use crate::trace::Trace;

/// Below this many bytes it is not worth while.
const LEAST: u64 = 8 << 20;

/// A stretch of time, over all streams.
#[derive(Debug)]
pub(super) struct Slice {
    /// Where it begins; none for the first.
    pub from: Option<u64>,
    /// The first time that is not in it.
    pub until: u64,
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
    /// Whether it is all of a trace.
    pub fn is_whole(&self) -> bool {
        self.parts.is_none()
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
pub(super) const WHOLE: Slice = Slice { from: None, until: u64::MAX, parts: None };

/// So many slices, or as many as there are processors, of about as many bytes each. None
/// where that is not worth while, or where slices could not be joined: with losses, with times that
/// go back, where packets do not show their times, and in compressed streams.
pub(super) fn cut(trace: &Trace, number: Option<usize>) -> Option<Vec<Slice>> {
    let ctf = trace.ctf();
    let number_of = |bytes: u64| match number {
        Some(number) => number,
        None if bytes < LEAST => 1,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let bytes = (0..ctf.stream_count()).filter_map(|index| ctf.stream_len(index)).sum::<u64>();
    let slices = number_of(bytes);
    if slices < 2 || ctf.class().clocks.iter().any(|c| c.frequency != 1_000_000_000) {
        return None;
    }
    let streams = (0..ctf.stream_count()).map(|index| heads(trace, index)).collect::<Option<Vec<_>>>()?;
    // By the begins of the packets, as each stands for its bytes.
    let mut begins: Vec<(u64, u64)> =
        streams.iter().flatten().map(|head| (head.timestamp_begin.unwrap_or(0), head.size)).collect();
    begins.sort_unstable();
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
    let froms = std::iter::once(None).chain(borders.iter().copied().map(Some));
    let untils = borders.iter().copied().chain([u64::MAX]);
    let slice = |(from, until): (Option<u64>, u64)| {
        let part = |heads: &Vec<PacketInfo>| part(heads, from, until);
        Some(Slice { from, until, parts: Some(streams.iter().map(part).collect::<Option<_>>()?) })
    };
    froms.zip(untils).map(slice).collect()
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

fn part(heads: &[PacketInfo], from: Option<u64>, until: u64) -> Option<Part> {
    let begins_before = |time: u64| heads.partition_point(|head| head.timestamp_begin < Some(time));
    // An event right at the border may be the last of the packet before.
    let first = from.map_or(0, |from| begins_before(from).saturating_sub(1));
    let limit = heads.get(begins_before(until).max(first)).map_or(u64::MAX, |head| head.offset);
    let before = first.checked_sub(1).and_then(|before| heads.get(before)).copied();
    Some(Part { first: *heads.get(first)?, before, limit })
}
