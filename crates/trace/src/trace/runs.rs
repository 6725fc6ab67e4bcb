//! Streams of commands whose time goes back, as runs in which it does not.
//!
//! Calls mean something in the order in which they were recorded only. Commands know
//! their times, and reports want them in the order of these.

use hetrace_ctf::read::{PacketInfo, StreamReader};

use super::Trace;
use super::class::Class;
use super::source::StepsBack;

/// More runs of one stream are not distinguished: each has a reader of its own.
const MOST: usize = 1024;

/// Readers of a stream: of its runs if there are several, and how its time went back between them.
pub(super) fn readers(trace: &Trace, index: usize) -> (Vec<StreamReader<'_>>, StepsBack) {
    let whole = || (trace.ctf.stream(index).into_iter().collect(), StepsBack::default());
    if !is_of_commands(trace, index) {
        return whole();
    }
    runs(trace, index).unwrap_or_else(whole)
}

/// Whether a stream has commands and no calls: as its first packet is.
fn is_of_commands(trace: &Trace, index: usize) -> bool {
    let Some(mut reader) = trace.ctf.stream(index) else { return false };
    let Some(Ok(event)) = reader.next_event() else { return false };
    let class = event.stream_class();
    let position = trace.ctf.class().streams.iter().position(|known| std::ptr::eq(known, class));
    let classes = trace.classes.of_stream(position.unwrap_or(usize::MAX));
    let calls = |class: &Class| matches!(class, Class::Entry(_) | Class::Exit(..) | Class::Fold(..));
    classes.iter().any(|class| matches!(class, Class::Command(_))) && !classes.iter().any(calls)
}

/// The runs of a stream; none if it is one, or if anything else is odd about its packets.
fn runs(trace: &Trace, index: usize) -> Option<(Vec<StreamReader<'_>>, StepsBack)> {
    let mut starts: Vec<(PacketInfo, Option<PacketInfo>)> = Vec::new();
    let (mut steps, mut before, mut offset) = (StepsBack::default(), None::<PacketInfo>, 0);
    for head in trace.ctf.heads(index)? {
        let end = before.map_or(Some(0), |before| before.timestamp_end)?;
        let begin = head.timestamp_begin?;
        if begin < end {
            steps.see(end, begin);
        }
        if before.is_none() || begin < end {
            starts.push((head, before));
        }
        if head.offset != offset || starts.len() > MOST {
            return None;
        }
        offset = head.offset.checked_add(head.size)?;
        before = Some(head);
    }
    if starts.len() < 2 || offset != trace.ctf.stream_len(index)? {
        return None;
    }
    let limits = starts.iter().skip(1).map(|(first, _)| first.offset).chain([u64::MAX]);
    let reader = |((first, before), limit): (&(PacketInfo, Option<PacketInfo>), u64)| {
        trace.ctf.packets(index, first, limit, before.as_ref())
    };
    Some((starts.iter().zip(limits).map(reader).collect::<Option<_>>()?, steps))
}
