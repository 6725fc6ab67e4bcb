//! Sends and receives: which belong together, and when each was done.
//!
//! A library enqueues them, so they are OTF2's non-blocking ones. Nobody numbers them: the
//! first send of a rank of a communicator to another is what that receives first from it, and so
//! on. A first walk counts them, so that only what has its counterpart becomes a message:
//!
//! ```text
//! sender     ▐ send: ISEND ▌ ... group's end ...        ISEND_COMPLETE
//! its queue                        ▐ kernel            ▌
//! receiver      ▐ receive: IRECV_REQUEST ▌ ...              IRECV
//! its queue                            ▐ kernel            ▌
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::collectives::Collectives;
use hetrace_trace::spans::{At, Call, Command, Open, Summary, Unfinished, Visitor, walk};
use hetrace_trace::trace::{FunctionId, ThreadId, Trace};

use super::communicators::{MAX_RANKS, name_of};
use crate::causes::Causes;
use crate::operations::{Amount, Meaning, Operations, number};
use crate::{Error, Watch};

/// Sends and receives that are remembered; more are no messages.
const MOST: usize = 1 << 20;
/// Events after which somebody is asked whether to go on.
const WATCHED: u32 = 1 << 14;

/// A send or receive that has its counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::otf2) struct Planned {
    pub request: u64,
    /// When it was done.
    pub until: u64,
}

/// All sends and receives of a trace in the order of their calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::otf2) struct Plan {
    all: Vec<Option<Planned>>,
    next: usize,
    /// Those that went well and are no messages.
    pub unmatched: u64,
}

impl Plan {
    /// The next one, in the same order.
    pub fn next(&mut self) -> Option<Planned> {
        self.next += 1;
        self.all.get(self.next - 1).copied().flatten()
    }
}

/// Whether an operation is a send (or else a receive); none if it is among all ranks.
pub(in crate::otf2) fn is_send(operation: &str) -> Option<bool> {
    match operation {
        "send" => Some(true),
        "receive" => Some(false),
        _ => None,
    }
}

/// A send or a receive.
#[derive(Clone, Copy, Debug)]
struct One {
    sends: bool,
    communicator: u32,
    rank: u64,
    peer: u64,
    bytes: u64,
    thread: (i64, i64),
    start: u64,
    /// When its call ended, or its launch; none if that has no end.
    ended: Option<u64>,
    launch: Option<i64>,
    failed: bool,
    /// A call inside of another operation.
    inner: bool,
}

/// The first walk.
struct Scout<'t, 'w> {
    trace: &'t Trace,
    watch: Watch<'w>,
    left: u32,
    collectives: Collectives,
    operations: Operations<'t, Option<usize>>,
    /// Names of communicators to their numbers; those without are of no use here.
    names: HashMap<String, u32>,
    ones: Vec<One>,
    /// Of threads that are in one: its depth and number.
    open: HashMap<ThreadId, (u32, usize)>,
    /// More than are remembered.
    more: u64,
    calls: i64,
    causes: Causes<i64>,
    /// When launches returned, and when their last commands ended.
    returned: HashMap<i64, u64>,
    done: HashMap<i64, u64>,
    /// The thread that stands for a rank: the first that called for it.
    threads: HashMap<(u32, u64), (i64, i64)>,
}

/// Finds what belongs together.
///
/// # Errors
/// When the watch says so.
pub(in crate::otf2) fn plan(trace: &Trace, watch: Watch<'_>) -> Result<Plan, Error> {
    let id = |at: usize| FunctionId(u32::try_from(at).unwrap_or(u32::MAX));
    let functions = (0..trace.functions().all().len()).map(id);
    let is_one = |f: &FunctionId| {
        let about = trace.described(*f).and_then(|f| f.collective());
        about.is_some_and(|about| is_send(&about.operation).is_some())
    };
    if !functions.filter(is_one).any(|f| trace.has_calls_of(f)) {
        return Ok(Plan::default());
    }
    let mut scout = Scout {
        trace,
        watch,
        left: WATCHED,
        collectives: Collectives::new(trace),
        operations: Operations::new(trace),
        names: HashMap::new(),
        ones: Vec::new(),
        open: HashMap::new(),
        more: 0,
        calls: 0,
        causes: Causes::default(),
        returned: HashMap::new(),
        done: HashMap::new(),
        threads: HashMap::new(),
    };
    match walk(trace, &mut scout) {
        ControlFlow::Break(()) => Err(Error::Stopped),
        ControlFlow::Continue(summary) => Ok(scout.matched(&summary)),
    }
}

impl Scout<'_, '_> {
    /// A call that is an operation begins: the number of the send or receive that it is.
    fn operation(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Option<Option<usize>> {
        let Meaning::Operation(about, _) = self.operations.meaning(call.function) else { return None };
        let who = at.who();
        let handle = number(event, &about.communicator).unwrap_or(0);
        let known = self.collectives.communicator_of(who.pid, call.function, handle);
        let known = known.filter(|known| known.size.is_some_and(|size| size <= MAX_RANKS));
        let place = known.and_then(|known| Some((name_of(known), known.rank?)));
        let place = place.map(|(name, rank)| {
            let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            (*self.names.entry(name).or_insert(next), rank)
        });
        let thread = (who.pid, who.tid);
        let inner = self.operations.launch(call.thread).is_some();
        if let Some(place) = place.filter(|_| !inner) {
            self.threads.entry(place).or_insert(thread);
        }
        let sends = is_send(&about.operation)?;
        if self.ones.len() >= MOST {
            self.more += 1;
            return Some(None);
        }
        let (communicator, rank) = place.unwrap_or((u32::MAX, u64::MAX));
        self.ones.push(One {
            sends,
            communicator,
            rank,
            peer: about.peer.as_deref().and_then(|peer| number(event, peer)).unwrap_or(u64::MAX),
            bytes: Amount::of(self.trace, call.function, about, event).bytes,
            thread,
            start: call.start,
            ended: None,
            launch: None,
            failed: false,
            inner,
        });
        let one = self.ones.len() - 1;
        if !inner {
            self.open.insert(call.thread, (call.depth, one));
        }
        Some(Some(one))
    }

    fn launched(&mut self, known: Vec<(Option<usize>, Option<i64>)>) {
        for (one, launch) in known {
            if let Some(one) = one.and_then(|one| self.ones.get_mut(one)) {
                one.launch = launch;
            }
        }
    }

    /// The process's streams have all that it called.
    fn whole(&self, summary: &Summary) -> impl Fn(i64) -> bool {
        let losses = &self.trace.manifest().losses;
        let lossy: HashSet<i64> =
            losses.threads.iter().filter(|t| t.records + t.calls > 0).map(|t| t.pid).collect();
        // Losses of which the process is unknown may be of any.
        let unknown =
            summary.lost_packets + summary.damaged + summary.differences + losses.calls_without_ring > 0
                || summary.lost_events > 0 && lossy.is_empty();
        move |pid| !unknown && !lossy.contains(&pid)
    }

    fn matched(&self, summary: &Summary) -> Plan {
        let whole = self.whole(summary);
        // Where commands are known, what has none was not done.
        let timed: HashSet<i64> =
            self.ones.iter().filter_map(|one| self.device(one).map(|_| one.thread.0)).collect();
        let until = |one: &One| {
            let host = one.launch.and_then(|launch| self.returned.get(&launch).copied()).or(one.ended);
            self.device(one).or(host.filter(|_| !timed.contains(&one.thread.0)))
        };
        // One thread may call for several ranks: it stands for the first.
        let mut stands: BTreeMap<(u32, (i64, i64)), u64> = BTreeMap::new();
        for ((communicator, rank), thread) in &self.threads {
            let first = stands.entry((*communicator, *thread)).or_insert(*rank);
            *first = (*first).min(*rank);
        }
        let shown = |one: &One| {
            let place = (one.communicator, one.rank);
            self.threads.get(&place) == Some(&one.thread)
                && stands.get(&(one.communicator, one.thread)) == Some(&one.rank)
        };
        type Channel = (u32, u64, u64);
        let mut channels: BTreeMap<Channel, [Vec<usize>; 2]> = BTreeMap::new();
        for (at, one) in self.ones.iter().enumerate().filter(|(_, one)| !one.failed && !one.inner) {
            let (from, to) = if one.sends { (one.rank, one.peer) } else { (one.peer, one.rank) };
            let place =
                &mut channels.entry((one.communicator, from, to)).or_default()[usize::from(one.sends)];
            place.push(at);
        }
        let mut plan = Plan { all: vec![None; self.ones.len()], next: 0, unmatched: self.more };
        let mut request = 0;
        for ((communicator, ..), [received, sent]) in channels {
            let pairs = sent.iter().zip(&received);
            let pairs = pairs.filter_map(|(s, r)| Some(((*s, self.ones.get(*s)?), (*r, self.ones.get(*r)?))));
            // From where the sizes differ, something is missing, and it is not known what belongs together.
            let pairs = pairs.take_while(|((_, sent), (_, received))| sent.bytes == received.bytes);
            let mut messages = 0;
            for ((s, sent), (r, received)) in pairs.filter(|_| communicator != u32::MAX) {
                let both = [sent, received];
                let Some((gone, come)) = until(sent).zip(until(received)) else { continue };
                if !both.iter().all(|one| shown(one) && whole(one.thread.0)) {
                    continue;
                }
                let planned =
                    |request, one: &One, until: u64| Some(Planned { request, until: until.max(one.start) });
                // Nothing comes before it is sent, as clocks or calls may have it.
                let parts = [
                    (s, planned(request, sent, gone)),
                    (r, planned(request + 1, received, come.max(sent.start))),
                ];
                for (at, part) in parts {
                    if let Some(place) = plan.all.get_mut(at) {
                        *place = part;
                    }
                }
                request += 2;
                messages += 1;
            }
            plan.unmatched += (sent.len() + received.len() - 2 * messages) as u64;
        }
        plan
    }

    /// When the last command of what launched it ended.
    fn device(&self, one: &One) -> Option<u64> {
        self.done.get(&one.launch?).copied()
    }
}

impl Visitor for Scout<'_, '_> {
    type Break = ();

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = WATCHED;
            // These events will be read once more, and be counted then.
            return (self.watch)(0);
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<()> {
        self.collectives.entry(at, call, event);
        if let Meaning::Operation(..) | Meaning::Flush = self.operations.meaning(call.function) {
            let operation = self.operation(at, call, event);
            self.calls += 1;
            let is_flush = matches!(self.operations.meaning(call.function), Meaning::Flush);
            self.operations.enter(call, self.calls, (!is_flush).then(|| operation.flatten()));
        }
        if self.trace.functions().get(call.function).enqueues
            && let Some(launch) = self.operations.launch(call.thread)
        {
            let who = at.who();
            self.causes.add(who.pid, who.tid, call.start, launch);
        }
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<()> {
        self.collectives.exit(at, call, event);
        if let Some((_, one)) = self.open.get(&call.thread).copied().filter(|(depth, _)| *depth == call.depth)
        {
            self.open.remove(&call.thread);
            if let Some(one) = self.ones.get_mut(one) {
                (one.ended, one.failed) = (Some(call.end), call.error.is_some());
            }
        }
        let launch = self.operations.launch(call.thread);
        let known = self.operations.exit(call);
        if let Some(launch) = launch.filter(|_| known.iter().any(|(one, by)| one.is_some() && by.is_some())) {
            self.returned.insert(launch, call.end);
        }
        self.launched(known);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, _: At<'_>, call: &Unfinished) -> ControlFlow<()> {
        if let Meaning::Operation(..) | Meaning::Flush = self.operations.meaning(call.function) {
            let known = self.operations.leave(call.thread, call.depth, false);
            self.launched(known);
        }
        ControlFlow::Continue(())
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        if let (Some(launch), Some(times)) = (self.causes.of(command), command.times)
            && (self.done.len() < MOST || self.done.contains_key(&launch))
        {
            let done = self.done.entry(launch).or_default();
            *done = times.end.max(*done);
        }
        ControlFlow::Continue(())
    }
}
