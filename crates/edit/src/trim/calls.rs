//! Which calls are open when the window begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hetrace_ctf::read::{Merge, Trace};

use super::kinds::{Identity, Kind, StreamKind, ids};
use crate::{Error, Watch, report};

/// Calls of one thread that are remembered; one that never returns is followed by others.
const DEPTH: usize = 1 << 12;

/// Events between two looks at the watch.
const OFTEN: u64 = 1 << 16;

/// Where events stand: by the name of their stream, in bytes of it.
pub(super) type Places<'t> = BTreeMap<&'t str, BTreeSet<u64>>;

/// A call without an end so far.
struct Open<'t> {
    function: usize,
    stream: &'t str,
    offset: u64,
}

/// Returns the entries of calls that are open at `from`, in nanoseconds from the origin.
pub(super) fn open_at<'t>(
    trace: &'t Trace,
    kinds: &[StreamKind],
    from: i64,
    watch: Watch<'_>,
) -> Result<Places<'t>, Error> {
    let calls = |kind: &StreamKind| kind.events.iter().any(|e| matches!(e.kind, Kind::Entry(_)));
    let mut places = Places::new();
    if !kinds.iter().any(calls) {
        return Ok(places);
    }
    let mut threads: HashMap<(i64, i64), Vec<Open<'t>>> = HashMap::new();
    // Where packets contain the thread: that of the last one.
    let mut of_packet = ("", 0, (0, 0));
    let (mut merge, mut seen, mut bytes) = (Merge::new(trace), 0u64, 0u64);
    while let Some(event) = merge.next_event() {
        let Ok(event) = event else { continue };
        if event.ns_from_origin().is_some_and(|time| time >= from) {
            break;
        }
        seen += 1;
        bytes += event.size_bits() / 8;
        if seen.is_multiple_of(OFTEN) {
            report(watch, std::mem::take(&mut bytes))?;
        }
        let class = event.stream_class();
        let position = trace.class().streams.iter().position(|s| std::ptr::eq(s, class));
        let Some(kind) = position.and_then(|position| kinds.get(position)) else { continue };
        let call = kind.events.get(event.class_index()).map(|e| &e.kind);
        let (function, begins) = match call {
            Some(Kind::Entry(function)) => (*function, true),
            Some(Kind::Exit(function)) => (*function, false),
            _ => continue,
        };
        let who = || match ids(kind.identity, &event) {
            [pid, Some(tid)] => Some((pid.unwrap_or(0), tid)),
            _ => None,
        };
        let thread = match kind.identity {
            Identity::Event(_) => who(),
            Identity::Packet(_) => {
                let packet = (event.stream_name(), event.packet().offset);
                if (of_packet.0, of_packet.1) != packet {
                    let Some(thread) = who() else { continue };
                    of_packet = (packet.0, packet.1, thread);
                }
                Some(of_packet.2)
            }
        };
        let Some(thread) = thread else { continue };
        let stack = threads.entry(thread).or_default();
        if begins && stack.len() < DEPTH {
            stack.push(Open { function, stream: event.stream_name(), offset: event.offset() });
        } else if !begins && let Some(at) = stack.iter().rposition(|open| open.function == function) {
            // What was called inside has ended, too, though its end was lost.
            let stream = event.stream_name();
            let mut index = 0;
            stack.retain(|open| {
                index += 1;
                index <= at || index > at + 1 && open.stream != stream
            });
        }
    }
    for open in threads.into_values().flatten() {
        places.entry(open.stream).or_default().insert(open.offset);
    }
    Ok(places)
}
