//! Which calls are open when the window begins: by the rule of all reports, which alone knows whose exits were lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::spans::{At, Call, Open, Unfinished, Visitor, Why, walk_as_recorded};
use hetrace_trace::trace::{ThreadId, Trace};

use crate::{Error, Watch, report};

/// Events between two looks at the watch.
const OFTEN: u64 = 1 << 16;

/// Where events stand: by the name of their stream, in bytes of it.
pub(super) type Places<'t> = BTreeMap<&'t str, BTreeSet<u64>>;

/// An open call: its depth, and the stream and the place of its entry.
type Begun = (u32, usize, u64);

/// What is open while the events from before the window pass.
struct OpenCalls<'w> {
    from: i64,
    watch: Watch<'w>,
    /// Positions of streams, by name.
    streams: HashMap<&'w str, usize>,
    /// By thread.
    open: Vec<Vec<Begun>>,
    events: u64,
    bytes: u64,
}

/// Returns the entries of calls that are open at `from`; `first` is when the trace begins. Both are in nanoseconds
/// from the origin.
pub(super) fn open_at<'t>(
    trace: &'t Trace,
    first: Option<i64>,
    from: i64,
    watch: Watch<'_>,
) -> Result<Places<'t>, Error> {
    if first.is_none_or(|first| from <= first) {
        return Ok(Places::new());
    }
    let name = |at: usize| trace.ctf().stream_name(at).unwrap_or_default();
    let streams = (0..trace.ctf().stream_count()).map(|at| (name(at), at)).collect();
    let mut calls = OpenCalls { from, watch, streams, open: Vec::new(), events: 0, bytes: 0 };
    if let ControlFlow::Break(Some(error)) = walk_as_recorded(trace, &mut calls) {
        return Err(error);
    }
    let mut places = Places::new();
    for (_, stream, offset) in calls.open.into_iter().flatten() {
        places.entry(name(stream)).or_default().insert(offset);
    }
    Ok(places)
}

impl OpenCalls<'_> {
    fn ended(&mut self, thread: ThreadId, depth: u32) {
        if let Some(open) = self.open.get_mut(thread.index())
            && let Some(at) = open.iter().rposition(|(other, ..)| *other == depth)
        {
            open.remove(at);
        }
    }
}

impl Visitor for OpenCalls<'_> {
    /// Why it was stopped; none where the window begins.
    type Break = Option<Error>;

    fn event(&mut self, _: At<'_>, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        if event.ns_from_origin().is_some_and(|time| time >= self.from) {
            return ControlFlow::Break(None);
        }
        self.events += 1;
        self.bytes += event.size_bits() / 8;
        if self.events.is_multiple_of(OFTEN)
            && let Err(error) = report(self.watch, std::mem::take(&mut self.bytes))
        {
            return ControlFlow::Break(Some(error));
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, _: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        let Some(stream) = self.streams.get(event.stream_name()) else { return ControlFlow::Continue(()) };
        if self.open.len() <= call.thread.index() {
            self.open.resize_with(call.thread.index() + 1, Vec::new);
        }
        self.open[call.thread.index()].push((call.depth, *stream, event.offset()));
        ControlFlow::Continue(())
    }

    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        self.ended(call.thread, call.depth);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, _: At<'_>, call: &Unfinished) -> ControlFlow<Self::Break> {
        // The window may begin when the trace has ended: what is open then is open in it.
        if call.why != Why::TraceEnds {
            self.ended(call.thread, call.depth);
        }
        ControlFlow::Continue(())
    }
}
