//! The call in which a program learned that a command had ended: the one rule for all reports and exports.
//!
//! ```text
//! thread   enqueue ──── other work ──── ▐ wait      ▌
//! queue         ▐ first ▌ ▐ second            ▌
//! ```
//!
//! No API records it; roles, parameters and times show it.
//!
//! **Calls that wait:**
//!
//! | | |
//! |---|---|
//! | role `sync` | always |
//! | a parameter that says whether the call blocks | if it is true |
//! | role `blocks`, without such a parameter | always |
//! | role `poll` | a run of equal calls; and the call of the same function right behind it on the thread, which got another result |
//! | role `build` | never: a compiler is no device |
//!
//! A call that waits inside of another that does is a part of that one. A call that failed, or whose end is
//! not in the trace, waited for nothing.
//!
//! **Commands that may be waited for**, of the call's process:
//!
//! | the call | its commands |
//! |---|---|
//! | names a queue | those of that queue; all default queues are one |
//! | has the role `sync`, and no handle but perhaps a context | all |
//! | any other: it names events, blocks as memory is freed, polls | those that its own thread enqueued; all, if only of others one ended within the call, or its own thread has none |
//!
//! Handles are numbers of one API, so that a call of an API that has queues or devices of its own in the trace
//! waits for commands of that API alone; a call of one that is layered on another, such as CUDA's runtime on its
//! driver, for those of any ([`Owners`]).
//!
//! Of these, a call waited for all that had ended when it returned and that no call had waited for before. The
//! last of them to end within the call, if any did, is the one that the wait ended on.
//!
//! Memory is bounded: of each thread on each queue the [`RECENT`] commands that end last are kept, and [`MOST`] in all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use hetrace_ctf::read::Event;

use crate::facts::objects::is_handle;
use crate::facts::{Facts, facts};
use crate::hash::QuickMap;
use crate::owners::{ApiIndex, Owners};
use crate::spans::{At, Call, Command, Fold, Open, Unfinished, Why};
use crate::trace::{FunctionId, ThreadId, Trace};

/// Commands of a thread on a queue that may still be waited for.
pub const RECENT: usize = 1 << 14;
/// Commands in all.
pub const MOST: usize = 1 << 16;
/// Clocks of devices are not trusted to be wrong by more than this, in nanoseconds.
const MAX_SLACK: u64 = 10_000;
/// Pairs of a queue and a thread of a process that are kept without commands.
const IDLE: usize = 1024;

/// A call that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What was called.
    pub function: FunctionId,
    /// Its process.
    pub pid: i64,
    /// Its thread.
    pub tid: i64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// What it waited for.
    pub what: What,
    /// The API that alone has the commands; none if any may.
    pub api: Option<ApiIndex>,
}

impl Wait {
    /// Returns whether it may be for commands of a queue of its process, by the queue's handle and API.
    pub fn is_for(&self, handle: u64, api: Option<ApiIndex>) -> bool {
        // Of a queue that nothing defines, no API is known.
        let may = self.api.is_none() || api.is_none() || self.api == api;
        may && match self.what {
            What::Queue(queue) => queue == handle,
            What::All | What::Some => true,
        }
    }
}

/// What a call waits for, as far as its parameters show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The queue with this handle.
    Queue(u64),
    /// All of its process.
    All,
    /// Something of its process, most likely what its own thread enqueued.
    Some,
}

/// What a wait was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited<T> {
    /// The commands: by queue and thread, those of each in the order of their ends.
    pub all: Vec<T>,
    /// The place in `all` of the one that the wait ended on; none if all had ended before.
    pub last: Option<usize>,
}

#[derive(Debug)]
struct Recent<T> {
    end: u64,
    item: T,
}

/// A queue's number and handle, and the thread that enqueued.
type Place = (u32, u64, i64);

/// Commands of one place, in the order of their ends.
#[derive(Debug)]
struct List<T>(VecDeque<Recent<T>>);

impl<T> List<T> {
    fn push(&mut self, recent: Recent<T>) {
        // They mostly end in the order in which they begin.
        let at = self.0.iter().rposition(|other| other.end <= recent.end).map_or(0, |at| at + 1);
        self.0.insert(at, recent);
    }

    /// How many had ended.
    fn ended(&self, until: u64) -> usize {
        self.0.partition_point(|recent| recent.end <= until)
    }

    fn ended_within(&self, after: u64, until: u64) -> bool {
        self.ended(after) < self.ended(until)
    }
}

/// Commands that may be waited for, each with what the caller keeps of it, and calls that wait.
#[derive(Debug)]
pub struct Waits<'t, T> {
    facts: Vec<Facts<'t>>,
    owners: Owners,
    /// By function: whether it synchronizes with all.
    all: Vec<bool>,
    /// The outermost call of a thread that waits: its depth, and for what.
    open: QuickMap<ThreadId, (u32, What)>,
    /// Threads with a run of polls behind them: of what, and when the last one ended.
    polled: QuickMap<ThreadId, (FunctionId, u64)>,
    /// By process.
    recent: QuickMap<i64, BTreeMap<Place, List<T>>>,
    kept: usize,
    slack: u64,
}

/// Whether a function synchronizes and takes no handle but perhaps a context.
fn waits_for_all(trace: &Trace, id: FunctionId) -> bool {
    let Some((model, function)) = trace.model_of(id).zip(trace.described(id)) else { return false };
    let context = |base: &str| model.context.as_deref() == Some(base);
    function.has_role("sync")
        && function.params.iter().all(|p| context(&p.base) || !is_handle(model, &p.base))
}

impl<'t, T> Waits<'t, T> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        let slack = trace.manifest().device_error_ns().unwrap_or(0).min(MAX_SLACK);
        let ids =
            (0..trace.functions().all().len()).map(|i| FunctionId(u32::try_from(i).unwrap_or(u32::MAX)));
        // Of what is not called nothing need be known.
        let all = ids.zip(trace.occurring()).map(|(id, occurs)| occurs && waits_for_all(trace, id)).collect();
        let (open, polled, recent) = (QuickMap::default(), QuickMap::default(), QuickMap::default());
        let owners = Owners::new(trace);
        Self { facts: facts(trace), owners, all, open, polled, recent, kept: 0, slack }
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, call: &Open, event: &Event<'_, '_>) {
        if !self.polled.is_empty() {
            let behind = self.polled.get(&call.thread).is_some_and(|(polled, _)| *polled == call.function);
            if behind {
                // It got another result than the run before.
                self.open.entry(call.thread).or_insert((call.depth, What::Some));
                return;
            }
            self.polled.remove(&call.thread);
        }
        let Some(facts) = self.facts.get(call.function.index()).filter(|facts| facts.is_waiting(event))
        else {
            return;
        };
        let what = match facts.queue(event) {
            Some(queue) => What::Queue(queue),
            None if self.all.get(call.function.index()) == Some(&true) => What::All,
            None => What::Some,
        };
        let open = self.open.entry(call.thread).or_insert((call.depth, what));
        if call.depth <= open.0 {
            *open = (call.depth, what);
        }
    }

    /// A call ends. Returns the wait that it was.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call) -> Option<Wait> {
        if self.open.is_empty() {
            return None;
        }
        let what = self.close(call.thread, call.depth)?;
        let polled = self.polled.remove(&call.thread).map(|(_, last)| last);
        let (who, start) = (at.who(), polled.unwrap_or(call.start).min(call.start));
        let (function, api) = (call.function, self.owners.of_calls(call.function));
        let wait = Wait { function, pid: who.pid, tid: who.tid, start, end: call.end, what, api };
        call.error.is_none().then_some(wait)
    }

    /// A call has no end. Returns the wait that it was until its thread ended or the trace did: from it, the
    /// program learned nothing. None if it may have gone on for less long.
    pub fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Option<Wait> {
        let what = self.close(call.thread, call.depth)?;
        let (who, function, api) = (at.who(), call.function, self.owners.of_calls(call.function));
        let wait =
            Wait { function, pid: who.pid, tid: who.tid, start: call.start, end: call.until, what, api };
        (call.why != Why::ExitLost).then_some(wait)
    }

    fn close(&mut self, thread: ThreadId, depth: u32) -> Option<What> {
        let (_, what) = self.open.get(&thread).copied().filter(|(open, _)| *open == depth)?;
        self.open.remove(&thread);
        Some(what)
    }

    /// Many calls in one record. Returns the wait that it was, if it is a run of equal polls.
    pub fn fold(&mut self, at: At<'_>, fold: &Fold) -> Option<Wait> {
        let polls = self.facts.get(fold.function.index()).is_some_and(|facts| facts.polls);
        let waits = polls && !fold.summed && fold.error.is_none() && !self.open.contains_key(&fold.thread);
        if !waits {
            return None;
        }
        self.polled.insert(fold.thread, (fold.function, fold.last));
        let (who, function, api) = (at.who(), fold.function, self.owners.of_calls(fold.function));
        let (start, end) = (fold.first, fold.last);
        Some(Wait { function, pid: who.pid, tid: who.tid, start, end, what: What::Some, api })
    }

    /// A command, and what to keep of it. Returns those that nobody will be said to have waited
    /// for: this one if nobody knows when it ended, else ones that are too old.
    pub fn command(&mut self, command: &Command<'_>, item: T) -> Vec<T> {
        let Some(times) = command.times else { return vec![item] };
        let lists = self.recent.entry(command.pid).or_default();
        let place = (command.on_queue.map_or(0, |q| q.id), command.named_queue(), command.cause_tid);
        if lists.len() >= IDLE && !lists.contains_key(&place) {
            lists.retain(|_, list| !list.0.is_empty());
        }
        let list = lists.entry(place).or_insert_with(|| List(VecDeque::new()));
        list.push(Recent { end: times.end.max(times.start), item });
        self.kept += 1;
        let full = if list.0.len() > RECENT {
            Some(list)
        } else if self.kept > MOST {
            // The order of processes is none, so of equal ones the longest of the smallest place goes.
            let all = self.recent.iter_mut().flat_map(|(pid, lists)| lists.iter_mut().map(move |l| (pid, l)));
            all.max_by_key(|(pid, (place, list))| (list.0.len(), Reverse((**pid, **place))))
                .map(|(_, (_, l))| l)
        } else {
            None
        };
        let Some(list) = full else { return Vec::new() };
        // Some at a time, so that they are not looked for again soon.
        let old = list.0.drain(..list.0.len().div_ceil(8));
        let old: Vec<T> = old.map(|recent| recent.item).collect();
        self.kept -= old.len();
        old
    }

    /// Returns the API of a command's queue; none if it is not known.
    pub fn api_of(&self, command: &Command<'_>) -> Option<ApiIndex> {
        self.owners.of_queue(command.on_queue.map_or(0, |q| q.id))
    }

    /// Whether of the commands that a call may wait for only its own thread's are meant.
    fn only_own(&self, wait: &Wait) -> bool {
        let until = self.until(wait);
        let lists = || {
            let all = self.recent.get(&wait.pid).into_iter().flatten();
            all.filter(|(place, _)| wait.is_for(place.1, self.owners.of_queue(place.0)))
        };
        let own = |(_, _, tid): &Place| *tid == wait.tid;
        let within = |mine: bool| {
            lists().any(|(place, list)| own(place) == mine && list.ended_within(wait.start, until))
        };
        let ended = || lists().any(|(place, list)| own(place) && list.ended(until) > 0);
        wait.what == What::Some && (within(true) || (ended() && !within(false)))
    }

    fn until(&self, wait: &Wait) -> u64 {
        wait.end.saturating_add(self.slack)
    }

    /// Returns what was waited for in a call that has ended; it is not kept any more.
    pub fn waited(&mut self, wait: &Wait) -> Waited<T> {
        let (only_own, until) = (self.only_own(wait), self.until(wait));
        let mut waited = Waited { all: Vec::new(), last: None };
        let mut latest = wait.start;
        for (place, list) in self.recent.get_mut(&wait.pid).into_iter().flatten() {
            if !wait.is_for(place.1, self.owners.of_queue(place.0)) || (only_own && place.2 != wait.tid) {
                continue;
            }
            for recent in list.0.drain(..list.ended(until)) {
                if recent.end > latest {
                    latest = recent.end;
                    waited.last = Some(waited.all.len());
                }
                waited.all.push(recent.item);
            }
        }
        self.kept -= waited.all.len();
        waited
    }

    /// Returns the last command that ended in a call, of those that it may have waited for; all are kept.
    pub fn last_within(&self, wait: &Wait) -> Option<&T> {
        let (only_own, until) = (self.only_own(wait), self.until(wait));
        let lists = self.recent.get(&wait.pid).into_iter().flatten();
        let meant = lists.filter(|(place, _)| {
            wait.is_for(place.1, self.owners.of_queue(place.0)) && (!only_own || place.2 == wait.tid)
        });
        let last = meant.filter_map(|(_, list)| list.0.get(list.ended(until).checked_sub(1)?));
        last.filter(|recent| recent.end > wait.start)
            .max_by_key(|recent| recent.end)
            .map(|recent| &recent.item)
    }

    /// Returns all that may still be waited for.
    pub fn kept_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let lists = self.recent.values_mut().flat_map(BTreeMap::values_mut);
        lists.flat_map(|list| list.0.iter_mut()).map(|recent| &mut recent.item)
    }

    /// Returns what nobody waited for, when the walk has ended.
    pub fn take_unwaited(&mut self) -> Vec<T> {
        self.kept = 0;
        let mut all: Vec<(i64, BTreeMap<Place, List<T>>)> = self.recent.drain().collect();
        all.sort_by_key(|(pid, _)| *pid);
        let lists = all.into_iter().flat_map(|(_, lists)| lists.into_values());
        lists.flat_map(|list| list.0).map(|recent| recent.item).collect()
    }
}

#[cfg(test)]
mod tests;
