//! Events that the program completes itself, and the commands that cannot begin before.
//!
//! ```text
//! thread A   make event ── enqueue(wait list: event) ─────────────────────────╮
//! thread B                                      ── host work ── complete event │
//! queue                                                                       ▐ command
//! ```
//!
//! What a command waits for is known when it is enqueued: the events of its wait list, what the commands behind those
//! wait for, and what the commands before it on its queue wait for. Which functions do what, the model says: one that
//! creates an object of the type of wait lists and enqueues nothing makes such an event, one with the role `state`
//! that takes one completes it.

use std::collections::VecDeque;

use super::path::{NodeId, UNSET};
use hetrace_ctf::read::Event;
use hetrace_model::{Direction, Follow, Function, Model};
use hetrace_trace::facts::Facts;
use hetrace_trace::facts::objects::event_types;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::Call;
use hetrace_trace::trace::{FunctionId, ThreadId, Trace};
use hetrace_trace::values::{Place, Plans, Values};

/// Events, and lists of them, that are remembered.
const KEPT: usize = 1 << 16;
/// Open events that are remembered of one command.
const OF_ONE: usize = 16;

/// What a function has to do with such events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Does {
    #[default]
    Nothing,
    /// It makes one, which it returns.
    Makes,
    /// It completes the one in this parameter.
    Completes(u16),
    /// It enqueues; which parameters are the wait list and the event that it yields.
    Enqueues { waits: u16, yields: Option<u16> },
}

/// Who completed an event, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set {
    pub time: u64,
    /// The place of the thread.
    pub by: usize,
    pub function: FunctionId,
    /// The path to there.
    pub node: NodeId,
}

/// What a handle of an event stands for.
#[derive(Clone, Debug)]
enum Known {
    Own(u64),
    /// A command, which waits for these.
    Command(Vec<u64>),
}

/// A number of a list of events; 0 of none.
pub(super) type ListId = u64;

/// All such events.
pub(super) struct Signals<'t> {
    does: Vec<Does>,
    functions: Vec<Option<&'t Function>>,
    plans: Plans<'t>,
    values: Values<'t>,
    /// Whether the program has made such an event.
    active: bool,
    known: QuickMap<(i64, u64), Known>,
    /// By process and queue: what commands on it wait for.
    queues: QuickMap<(i64, u64), Vec<u64>>,
    /// By number of the event, from `first_event` on: who completed it.
    events: VecDeque<Option<Set>>,
    first_event: u64,
    /// The place in `events` of the one that has just been completed.
    just_set: Option<usize>,
    /// By number, from `first_list` on.
    lists: VecDeque<Vec<u64>>,
    first_list: u64,
    /// Calls that yield an event when they return, and what their command waits for.
    pending: QuickMap<ThreadId, (u64, Vec<u64>)>,
}

fn does(function: &Function, model: &Model, types: &[&str]) -> Does {
    let is_event = |base: &str| types.contains(&base);
    let position = |found: &dyn Fn(&hetrace_model::Param) -> bool| {
        function.params.iter().position(found).and_then(|at| u16::try_from(at).ok())
    };
    if function.has_role("enqueue") {
        let waits = position(&|p| {
            is_event(&p.base) && p.direction == Direction::In && matches!(p.follow, Follow::Array { .. })
        });
        let yields = position(&|p| {
            is_event(&p.base) && p.direction == Direction::Out && Some(&p.name) == model.event.as_ref()
        });
        return waits.map_or(Does::Nothing, |waits| Does::Enqueues { waits, yields });
    }
    if function.has_role("create") && function.creates.as_deref().is_some_and(is_event) {
        return Does::Makes;
    }
    let single = position(&|p| is_event(&p.base) && p.pointers == 0);
    single.filter(|_| function.has_role("state")).map_or(Does::Nothing, Does::Completes)
}

impl<'t> Signals<'t> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        let types: Vec<Vec<&str>> = trace.models().iter().map(event_types).collect();
        let all = trace.functions().all();
        let ids = || (0u32..).map(FunctionId).take(all.len());
        let functions: Vec<Option<&Function>> = ids().map(|id| trace.described(id)).collect();
        let occurring = trace.occurring();
        let of = |id: FunctionId| {
            occurring.get(id.index()).filter(|occurs| **occurs)?;
            let (model, function) = trace.model_of(id).zip(trace.described(id))?;
            let types = types.get(all.get(id.index())?.api)?;
            Some(does(function, model, types))
        };
        let does: Vec<Does> = ids().map(|id| of(id).unwrap_or_default()).collect();
        let wanted = |id: FunctionId| does.get(id.index()).is_some_and(|does| *does != Does::Nothing);
        let plans = Plans::new(trace, wanted);
        Self {
            does,
            functions,
            plans,
            values: Values::default(),
            active: false,
            known: QuickMap::default(),
            queues: QuickMap::default(),
            events: VecDeque::new(),
            first_event: 1,
            just_set: None,
            lists: VecDeque::new(),
            first_list: 1,
            pending: QuickMap::default(),
        }
    }

    fn does(&self, function: FunctionId) -> Does {
        self.does.get(function.index()).copied().unwrap_or_default()
    }

    fn read_entry(&mut self, function: FunctionId, event: &Event<'_, '_>) {
        if let Some(described) = self.functions.get(function.index()).copied().flatten() {
            self.values.read_entry(described, &[], (function, &self.plans), event);
        }
    }

    /// A call begins, on the thread at a place. Returns whether its command has a wait list, and the events
    /// of the program that it waits for.
    pub fn entry(
        &mut self,
        (pid, thread, place): (i64, ThreadId, usize),
        (function, start): (FunctionId, u64),
        facts: &Facts<'_>,
        event: &Event<'_, '_>,
    ) -> (bool, ListId) {
        match self.does(function) {
            Does::Nothing | Does::Makes => (false, 0),
            Does::Completes(at) => {
                self.read_entry(function, event);
                let handle = self.values.first(Place::Param(at));
                if let Some(Known::Own(id)) = handle.and_then(|handle| self.known.get(&(pid, handle))) {
                    let set = Set { time: start, by: place, function, node: UNSET };
                    let at = id.checked_sub(self.first_event).and_then(|at| usize::try_from(at).ok());
                    if let Some((at, slot @ None)) = at.and_then(|at| Some((at, self.events.get_mut(at)?))) {
                        *slot = Some(set);
                        self.just_set = Some(at);
                    }
                }
                (false, 0)
            }
            Does::Enqueues { waits, yields } => {
                self.read_entry(function, event);
                let handles = self.values.all(Place::Param(waits));
                let depends = !handles.is_empty();
                if !self.active {
                    return (depends, 0);
                }
                let mut open: Vec<u64> = Vec::new();
                for handle in handles {
                    match self.known.get(&(pid, *handle)) {
                        Some(Known::Own(id)) => open.push(*id),
                        Some(Known::Command(ids)) => open.extend(ids),
                        None => {}
                    }
                }
                let queue = (pid, facts.queue(event).unwrap_or(0));
                open.extend(self.queues.get(&queue).into_iter().flatten());
                open.sort_unstable();
                open.dedup();
                open.retain(|id| self.set(*id).is_none());
                open.truncate(OF_ONE);
                if yields.is_some() && (!open.is_empty() || !self.known.is_empty()) {
                    self.pending.insert(thread, (start, open.clone()));
                }
                if open.is_empty() {
                    self.queues.remove(&queue);
                    return (depends, 0);
                }
                self.queues.insert(queue, open.clone());
                (depends, self.list(open))
            }
        }
    }

    /// A call has ended.
    pub fn exit(&mut self, pid: i64, call: &Call, event: &Event<'_, '_>) {
        let does = self.does(call.function);
        self.active |= does == Does::Makes;
        if !self.active {
            return;
        }
        let at = match does {
            Does::Makes => Place::Result,
            Does::Enqueues { yields: Some(yields), .. } => Place::Param(yields),
            _ => return,
        };
        let waits = match at {
            Place::Result => Vec::new(),
            Place::Param(_) => match self.pending.remove(&call.thread) {
                Some((start, waits)) if start == call.start => waits,
                _ => return,
            },
        };
        let Some(described) = self.functions.get(call.function.index()).copied().flatten() else { return };
        self.values.read_exit(described, (call.function, &self.plans), event);
        let handle = self.values.first(at).filter(|handle| *handle != 0 && call.error.is_none());
        let Some(handle) = handle else { return };
        if self.known.len() >= KEPT {
            // What is left of events that nobody waits for any more.
            self.known.clear();
        }
        if at == Place::Result {
            let id = self.first_event + self.events.len() as u64;
            self.events.push_back(None);
            self.known.insert((pid, handle), Known::Own(id));
            if self.events.len() > KEPT {
                self.events.pop_front();
                self.first_event += 1;
            }
        } else if waits.is_empty() {
            self.known.remove(&(pid, handle));
        } else {
            self.known.insert((pid, handle), Known::Command(waits));
        }
    }

    /// Whether the last call that began completes an event.
    pub fn has_set(&self) -> bool {
        self.just_set.is_some()
    }

    /// The path to there.
    pub fn set_at(&mut self, node: NodeId) {
        let just = self.just_set.take();
        if let Some(Some(set)) = just.and_then(|at| self.events.get_mut(at)) {
            set.node = node;
        }
    }

    /// Every place that knows a point of the critical path.
    pub fn nodes(&mut self) -> impl Iterator<Item = &mut NodeId> {
        self.events.iter_mut().flatten().map(|set| &mut set.node)
    }

    fn list(&mut self, list: Vec<u64>) -> ListId {
        self.lists.push_back(list);
        if self.lists.len() > KEPT {
            self.lists.pop_front();
            self.first_list += 1;
        }
        self.first_list + self.lists.len() as u64 - 1
    }

    fn set(&self, id: u64) -> Option<Set> {
        let at = usize::try_from(id.checked_sub(self.first_event)?).ok()?;
        self.events.get(at).copied().flatten()
    }

    /// The last of the events of a list to be completed by a time.
    pub fn last(&self, list: ListId, by: u64) -> Option<Set> {
        let at = usize::try_from(list.checked_sub(self.first_list)?).ok()?;
        let sets = self.lists.get(at)?.iter().filter_map(|id| self.set(*id));
        sets.filter(|set| set.time <= by).max_by_key(|set| set.time)
    }
}
