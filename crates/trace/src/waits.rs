//! The call in which a program learned that a command had ended.
//!
//! ```text
//! thread   enqueue ──── other work ──── ▐ wait      ▌
//! queue         ▐ first ▌ ▐ second            ▌
//! ```
//!
//! No API tells it; time and roles do. A call that waits ends the waiting for all commands
//! that had ended when it returned and that nobody had waited for before: of the queue that it
//! names; of its process if it synchronizes and names nothing but perhaps a context; else (it names
//! events, say, or blocks as memory is freed) those that its own thread enqueued, and if there are
//! none, those of its process.
//! It ended on the last of them that ended within it. A call that waits inside of another that
//! does is a part of that one; a call that failed waited for nothing; a run of polls is a wait.
//!
//! Memory is bounded: of each queue the last [`RECENT`] commands are kept, and [`MOST`] in all.

use std::collections::{HashMap, VecDeque};

use hetrace_ctf::read::Event;
use hetrace_model::Kind;

use crate::facts::{Facts, facts};
use crate::spans::{At, Call, Command, Fold, Open, Unfinished};
use crate::trace::{FunctionId, ThreadId, Trace};

/// Commands of a queue that may still be waited for.
pub const RECENT: usize = 1 << 14;
/// Commands in all.
pub const MOST: usize = 1 << 16;
/// Clocks of devices are not trusted to be wrong by more than this, in nanoseconds.
const MAX_SLACK: u64 = 10_000;
/// Queues of a process that are kept without commands.
const IDLE: usize = 1024;

/// A call that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
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
}

/// What a call waits for, as far as its parameters tell.
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
    /// The commands, in the order of their queues.
    pub all: Vec<T>,
    /// The place in `all` of the one that the wait ended on; none if all had ended before.
    pub last: Option<usize>,
}

#[derive(Debug)]
struct Recent<T> {
    end: u64,
    tid: i64,
    item: T,
}

#[derive(Debug)]
struct Queue<T> {
    number: u32,
    handle: u64,
    recent: VecDeque<Recent<T>>,
}

/// Commands that may be waited for, each with what the caller keeps of it, and calls that wait.
#[derive(Debug)]
pub struct Waits<'t, T> {
    facts: Vec<Facts<'t>>,
    /// By function: whether it synchronizes with all.
    all: Vec<bool>,
    /// The outermost call of a thread that waits: its depth, and for what.
    open: HashMap<ThreadId, (u32, What)>,
    /// By process.
    queues: HashMap<i64, Vec<Queue<T>>>,
    kept: usize,
    slack: u64,
}

/// Whether a function synchronizes and is told of nothing but perhaps a context.
fn waits_for_all(trace: &Trace, id: FunctionId) -> bool {
    let Some((model, function)) = trace.model_of(id).zip(trace.described(id)) else { return false };
    let is_handle = |base: &str| model.types.iter().any(|t| t.name == base && t.kind == Kind::Handle);
    let context = |base: &str| model.context.as_deref() == Some(base);
    function.has_role("sync") && function.params.iter().all(|p| context(&p.base) || !is_handle(&p.base))
}

impl<'t, T> Waits<'t, T> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        let slack = trace.manifest().device_error_ns().unwrap_or(0).min(MAX_SLACK);
        let ids =
            (0..trace.functions().all().len()).map(|i| FunctionId(u32::try_from(i).unwrap_or(u32::MAX)));
        let all = ids.map(|id| waits_for_all(trace, id)).collect();
        Self { facts: facts(trace), all, open: HashMap::new(), queues: HashMap::new(), kept: 0, slack }
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, call: &Open, event: &Event<'_, '_>) {
        let Some(facts) = self.facts.get(call.function.index()).filter(|facts| facts.waits(event)) else {
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

    /// A call ends: the wait that it was.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call) -> Option<Wait> {
        if self.open.is_empty() {
            return None;
        }
        let what = self.close(call.thread, call.depth)?;
        let who = at.who();
        let wait = Wait { pid: who.pid, tid: who.tid, start: call.start, end: call.end, what };
        call.error.is_none().then_some(wait)
    }

    /// A call has no end.
    pub fn unfinished(&mut self, call: &Unfinished) {
        self.close(call.thread, call.depth);
    }

    fn close(&mut self, thread: ThreadId, depth: u32) -> Option<What> {
        let (_, what) = self.open.get(&thread).copied().filter(|(open, _)| *open == depth)?;
        self.open.remove(&thread);
        Some(what)
    }

    /// A run of equal calls: the wait that it was.
    pub fn fold(&self, at: At<'_>, fold: &Fold) -> Option<Wait> {
        let polls = self.facts.get(fold.function.index()).is_some_and(|facts| facts.polls);
        let waits = polls && fold.error.is_none() && !self.open.contains_key(&fold.thread);
        let who = at.who();
        waits.then_some(Wait {
            pid: who.pid,
            tid: who.tid,
            start: fold.first,
            end: fold.last,
            what: What::Some,
        })
    }

    /// A command, and what to keep of it. Answers with those that nobody will be said to have waited
    /// for: this one if nobody knows when it ended, else ones that are too old.
    pub fn command(&mut self, command: &Command<'_>, item: T) -> Vec<T> {
        let Some(times) = command.times else { return vec![item] };
        let queues = self.queues.entry(command.pid).or_default();
        let (number, handle) = (command.on_queue.map_or(0, |q| q.id), command.named_queue());
        let same = |q: &Queue<T>| q.number == number && q.handle == handle;
        let at = queues.iter().rposition(same).unwrap_or_else(|| {
            if queues.len() >= IDLE {
                queues.retain(|q| !q.recent.is_empty());
            }
            queues.push(Queue { number, handle, recent: VecDeque::new() });
            queues.len() - 1
        });
        let Some(queue) = queues.get_mut(at) else { return vec![item] };
        queue.recent.push_back(Recent { end: times.end.max(times.start), tid: command.cause_tid, item });
        self.kept += 1;
        let full = if queue.recent.len() > RECENT {
            Some(queue)
        } else if self.kept > MOST {
            self.queues.values_mut().flatten().max_by_key(|queue| queue.recent.len())
        } else {
            None
        };
        let Some(queue) = full else { return Vec::new() };
        // Some at a time, so that nobody has to look for them again soon.
        let old = queue.recent.drain(..queue.recent.len().div_ceil(8));
        let old: Vec<T> = old.map(|recent| recent.item).collect();
        self.kept -= old.len();
        old
    }

    /// What was waited for in a call that has ended; it is not kept any more.
    pub fn waited(&mut self, wait: &Wait) -> Waited<T> {
        let mut waited = Waited { all: Vec::new(), last: None };
        let until = wait.end.saturating_add(self.slack);
        let Some(queues) = self.queues.get_mut(&wait.pid) else { return waited };
        let named = |q: &&mut Queue<T>| match wait.what {
            What::Queue(handle) => q.handle == handle,
            What::All | What::Some => true,
        };
        let own = |q: &Queue<T>| q.recent.iter().any(|c| c.tid == wait.tid && c.end <= until);
        let only_own = wait.what == What::Some && queues.iter().any(own);
        let mut latest = wait.start;
        for queue in queues.iter_mut().filter(named) {
            let meant = |c: &Recent<T>| c.end <= until && (!only_own || c.tid == wait.tid);
            if !queue.recent.iter().any(meant) {
                continue;
            }
            let (gone, kept) = std::mem::take(&mut queue.recent).into_iter().partition(meant);
            queue.recent = kept;
            let gone: VecDeque<Recent<T>> = gone;
            for recent in gone {
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

    /// What nobody waited for, when the walk has ended.
    pub fn rest(&mut self) -> Vec<T> {
        self.kept = 0;
        let mut all: Vec<(i64, Vec<Queue<T>>)> = self.queues.drain().collect();
        all.sort_by_key(|(pid, _)| *pid);
        all.into_iter()
            .flat_map(|(_, queues)| queues)
            .flat_map(|q| q.recent)
            .map(|recent| recent.item)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::{CommandKind, Geometry, MemoryKind, Times};

    fn waits() -> Waits<'static, u32> {
        Waits {
            facts: Vec::new(),
            all: Vec::new(),
            open: HashMap::new(),
            queues: HashMap::new(),
            kept: 0,
            slack: 0,
        }
    }

    fn command(queue: u64, tid: i64, end: u64) -> Command<'static> {
        Command {
            kind: CommandKind::Kernel,
            name: "",
            function: None,
            pid: 1,
            queue,
            on_queue: None,
            context: 0,
            device: 0,
            on_device: None,
            peer: None,
            cause_tid: tid,
            cause: 1,
            times: Some(Times { queued: 0, submitted: 0, start: 1, end }),
            times_error: 0,
            bytes: 0,
            from: MemoryKind::Unknown,
            to: MemoryKind::Unknown,
            status: 0,
            geometry: Geometry::default(),
            shared: 0,
            graph: 0,
            node: 0,
            weight: 1,
        }
    }

    fn wait(tid: i64, start: u64, end: u64, what: What) -> Wait {
        Wait { pid: 1, tid, start, end, what }
    }

    #[test]
    fn a_wait_is_for_what_had_ended_and_ends_on_the_last() {
        let mut waits = waits();
        for (item, (queue, end)) in
            (1..).zip([(0x10, 50), (0x10, 120), (0x10, 110), (0x10, 300), (0x20, 100)])
        {
            assert!(waits.command(&command(queue, 7, end), item).is_empty());
        }
        // The first had ended before, the fourth has not ended, the fifth is of another queue.
        let waited = waits.waited(&wait(7, 60, 200, What::Queue(0x10)));
        assert_eq!(waited, Waited { all: vec![1, 2, 3], last: Some(1) });
        // Once is enough.
        let none = Waited { all: vec![], last: None };
        assert_eq!(waits.waited(&wait(7, 60, 200, What::Queue(0x10))), none);
        assert_eq!(waits.waited(&Wait { pid: 2, ..wait(7, 0, 900, What::Some) }), none);
        assert_eq!(waits.rest(), [4, 5]);
        assert_eq!(waits.kept, 0);
    }

    #[test]
    fn who_names_no_queue_waits_for_his_own_or_for_all() {
        let mut all = waits();
        for (item, tid) in (1..).zip([7, 8]) {
            all.command(&command(0x10, tid, 100), item);
        }
        assert_eq!(all.waited(&wait(7, 50, 200, What::All)), Waited { all: vec![1, 2], last: Some(0) });
        let mut waits = waits();
        for (item, (queue, tid)) in (1..).zip([(0x10, 7), (0x20, 8), (0x30, 7)]) {
            waits.command(&command(queue, tid, 100), item);
        }
        assert_eq!(waits.waited(&wait(7, 150, 200, What::Some)), Waited { all: vec![1, 3], last: None });
        // Of his own, nothing is left.
        assert_eq!(waits.waited(&wait(7, 50, 200, What::Some)), Waited { all: vec![2], last: Some(0) });
    }

    #[test]
    fn a_bounded_number_is_kept() {
        let mut waits = waits();
        let mut gone = Vec::new();
        let queues = 2 + MOST / RECENT;
        for item in 0..(queues * RECENT) as u32 {
            gone.extend(waits.command(&command(u64::from(item) % queues as u64, 7, 100), item));
            assert!(waits.kept <= MOST);
        }
        let mut all = waits.rest();
        all.extend(&gone);
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..(queues * RECENT) as u32), "each comes out once");
        // One queue alone.
        let few = (0..=RECENT as u32).flat_map(|item| waits.command(&command(5, 7, 100), item)).count();
        assert_eq!((few, waits.kept), ((RECENT + 1).div_ceil(8), RECENT + 1 - (RECENT + 1).div_ceil(8)));
    }
}
