//! Rows of operations among ranks.
//!
//! ```text
//!  ncclAllReduce ── enqueues inside ──► its commands are its own
//!        └─ enqueues nothing ─► waits for the group's end, in which it is enqueued
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_analyze::spans::{At, Call, Open, Unfinished};
use hetrace_analyze::trace::{FunctionId, ThreadId, Trace};
use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_model::{Collective, Function, Kind, Model};

use super::super::batch::Cell;
use super::super::tables::{COLLECTIVES, COMMUNICATORS};
use super::calls::api_of;
use super::{Rows, Step};

/// Operations of a thread that wait for the end of a group; more have none.
const MOST: usize = 1 << 16;

/// What a function means here.
#[derive(Clone, Copy, Debug)]
enum Meaning<'t> {
    Nothing,
    /// Of an API without collectives: enqueues something.
    Enqueues,
    /// Enqueues what was grouped.
    Flush,
    /// Is an operation, and has the queue in this parameter.
    Operation(&'t Collective, Option<&'t str>),
}

/// An operation that was called.
#[derive(Clone, Debug)]
struct Called<'t> {
    id: i64,
    pid: i64,
    tid: i64,
    start: u64,
    function: FunctionId,
    about: &'t Collective,
    communicator: u64,
    peer: Option<u64>,
    element: Option<String>,
    count: u64,
    bytes: u64,
    queue: Option<u64>,
}

/// A thread in a call of an API with collectives.
#[derive(Debug)]
struct Inside<'t> {
    depth: u32,
    id: i64,
    /// None of the end of a group.
    operation: Option<Called<'t>>,
    enqueued: bool,
}

#[derive(Debug, Default)]
struct Thread<'t> {
    inside: Option<Inside<'t>>,
    waiting: Vec<Called<'t>>,
}

/// Follows the operations of all threads.
#[derive(Debug)]
pub(super) struct Operations<'t> {
    /// By function; empty if the trace has no calls of such an API.
    meanings: Vec<Meaning<'t>>,
    threads: HashMap<ThreadId, Thread<'t>>,
}

impl<'t> Operations<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let operates: Vec<bool> =
            trace.models().iter().map(|m| m.functions.iter().any(|f| f.collective.is_some())).collect();
        let all = trace.functions().all();
        let id = |at: usize| FunctionId(u32::try_from(at).unwrap_or(u32::MAX));
        let has = |api: usize| operates.get(api) == Some(&true);
        let active = all.iter().enumerate().any(|(at, f)| has(f.api) && trace.has_calls_of(id(at)));
        let meaning = |(at, f): (usize, &hetrace_analyze::trace::Function)| match trace
            .model_of(id(at))
            .zip(trace.described(id(at)))
            .filter(|_| has(f.api))
        {
            Some((model, function)) => match &function.collective {
                Some(about) => Meaning::Operation(about, queue(model, function, about)),
                None if function.has_role("flush") => Meaning::Flush,
                None => Meaning::Nothing,
            },
            None if f.enqueues => Meaning::Enqueues,
            None => Meaning::Nothing,
        };
        let meanings = if active { all.iter().enumerate().map(meaning).collect() } else { Vec::new() };
        Self { meanings, threads: HashMap::new() }
    }

    /// The call of an operation, or of the end of a group, that a thread is in.
    pub fn launch(&self, thread: ThreadId) -> Option<i64> {
        if self.meanings.is_empty() {
            return None;
        }
        self.threads.get(&thread)?.inside.as_ref().map(|inside| inside.id)
    }

    fn meaning(&self, function: FunctionId) -> Meaning<'t> {
        self.meanings.get(function.index()).copied().unwrap_or(Meaning::Nothing)
    }
}

/// The parameter with the queue: a handle that is not the communicator.
fn queue<'t>(model: &Model, function: &'t Function, about: &Collective) -> Option<&'t str> {
    let is_handle = |base: &str| model.types.iter().any(|t| t.name == base && t.kind == Kind::Handle);
    let queue =
        |p: &&hetrace_model::Param| p.pointers == 0 && p.name != about.communicator && is_handle(&p.base);
    function.params.iter().find(queue).map(|p| p.name.as_str())
}

fn number(event: &Event<'_, '_>, name: &str) -> Option<u64> {
    match event.get(name)? {
        Scalar::Unsigned(value) => Some(value),
        Scalar::Signed(value) => Some(value as u64),
        Scalar::Enum { value, .. } => Some(value as u64),
        _ => None,
    }
}

impl<'t> Rows<'t, '_> {
    /// A call, whose number is `id`, begins.
    pub(super) fn operates(&mut self, at: At<'_>, call: &Open, id: i64, event: &Event<'_, '_>) {
        let meaning = self.operations.meaning(call.function);
        let operation = match meaning {
            Meaning::Nothing | Meaning::Enqueues => return,
            Meaning::Flush => None,
            Meaning::Operation(about, queue) => Some((about, queue)),
        };
        let who = at.who();
        let trace = self.trace;
        let operation = operation.map(|(about, queue)| {
            let element = event.get(&about.element).and_then(Scalar::as_str);
            let count = number(event, &about.count).unwrap_or(0);
            let sizes = trace.model_of(call.function).map(|model| &model.element_sizes);
            let size = element.and_then(|name| sizes?.get(name).copied()).unwrap_or(0);
            Called {
                id,
                pid: who.pid,
                tid: who.tid,
                start: call.start,
                function: call.function,
                about,
                communicator: number(event, &about.communicator).unwrap_or(0),
                peer: about.peer.as_deref().and_then(|peer| number(event, peer)),
                element: element.map(str::to_owned),
                count,
                bytes: count.saturating_mul(size.into()),
                queue: queue.and_then(|queue| number(event, queue)),
            }
        });
        let thread = self.operations.threads.entry(call.thread).or_default();
        // What a library calls inside of its own call is a part of that.
        if thread.inside.as_ref().is_none_or(|inside| inside.depth >= call.depth) {
            thread.inside = Some(Inside { depth: call.depth, id, operation, enqueued: false });
        }
    }

    /// A call ends.
    pub(super) fn operated(&mut self, call: &Call) -> Step {
        match self.operations.meaning(call.function) {
            Meaning::Nothing => return ControlFlow::Continue(()),
            Meaning::Enqueues => {
                let thread = self.operations.threads.get_mut(&call.thread);
                if let Some(inside) = thread.and_then(|thread| thread.inside.as_mut()) {
                    inside.enqueued |= call.error.is_none();
                }
                return ControlFlow::Continue(());
            }
            Meaning::Flush | Meaning::Operation(..) => {}
        }
        self.left_operation(call.thread, call.depth, call.error.is_some())
    }

    /// A call has no end.
    pub(super) fn unfinished_operation(&mut self, call: &Unfinished) -> Step {
        match self.operations.meaning(call.function) {
            Meaning::Nothing | Meaning::Enqueues => ControlFlow::Continue(()),
            Meaning::Flush | Meaning::Operation(..) => self.left_operation(call.thread, call.depth, false),
        }
    }

    fn left_operation(&mut self, thread: ThreadId, depth: u32, failed: bool) -> Step {
        let Some(state) = self.operations.threads.get_mut(&thread) else { return ControlFlow::Continue(()) };
        let Some(inside) = state.inside.take_if(|inside| inside.depth == depth) else {
            return ControlFlow::Continue(());
        };
        let launched = inside.enqueued.then_some(inside.id);
        match inside.operation {
            Some(called) if failed || launched.is_some() || state.waiting.len() >= MOST => {
                self.operation(&called, launched)
            }
            Some(called) => {
                state.waiting.push(called);
                ControlFlow::Continue(())
            }
            // Of groups inside one another, the outermost enqueues.
            None if launched.is_none() => ControlFlow::Continue(()),
            None => {
                let waiting = std::mem::take(&mut state.waiting);
                waiting.iter().try_for_each(|called| self.operation(called, launched))
            }
        }
    }

    /// Writes what still waits, and all communicators.
    pub(super) fn finish_operations(&mut self) -> Step {
        let mut left: Vec<Called<'t>> = Vec::new();
        for thread in self.operations.threads.values_mut() {
            left.extend(thread.inside.take().and_then(|inside| inside.operation));
            left.append(&mut thread.waiting);
        }
        left.sort_by_key(|called| called.id);
        left.iter().try_for_each(|called| self.operation(called, None))?;
        for about in self.collectives.communicators() {
            let handle =
                about.handle.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let cells: [Cell<'_>; COMMUNICATORS.columns.len()] = [
                about.communicator.as_str().into(),
                about.pid.into(),
                handle.unwrap_or(0).into(),
                about.rank.into(),
                about.size.into(),
                self.job_rank(about.pid).into(),
            ];
            self.sheets.push(&COMMUNICATORS, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn operation(&mut self, called: &Called<'_>, launched: Option<i64>) -> Step {
        let known = self.collectives.communicator_of(called.pid, called.communicator);
        let handle;
        let name = match known {
            Some(known) => known.communicator.as_str(),
            None => {
                handle = format!("{:#x}", called.communicator);
                &handle
            }
        };
        let cells: [Cell<'_>; COLLECTIVES.columns.len()] = [
            called.id.into(),
            launched.into(),
            called.pid.into(),
            called.tid.into(),
            self.clock.of(called.start).into(),
            api_of(self.trace, called.function).into(),
            called.about.operation.as_str().into(),
            name.into(),
            called.communicator.into(),
            known.and_then(|known| known.rank).into(),
            known.and_then(|known| known.size).into(),
            called.peer.into(),
            called.element.as_deref().into(),
            called.count.into(),
            called.bytes.into(),
            called.queue.into(),
            self.job_rank(called.pid).into(),
        ];
        self.sheets.push(&COLLECTIVES, &cells)
    }
}
