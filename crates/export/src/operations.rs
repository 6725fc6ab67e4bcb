//! Operations among ranks: which call has a library enqueue what they do.
//!
//! ```text
//!  ncclAllReduce ── enqueues inside ──► it launches itself
//!        └─ enqueues nothing ─► waits for the end of its group, which launches it
//! ```

use std::collections::HashMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_model::{Collective, Model};
use hetrace_trace::facts::objects::queues_of_collective;
use hetrace_trace::spans::{Call, Open};
use hetrace_trace::trace::{Function, FunctionId, ThreadId, Trace};

/// Operations of a thread that wait for the end of a group; more have none.
const MOST: usize = 1 << 16;

/// What a function means here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning<'t> {
    Nothing,
    /// Of an API without collectives: enqueues something.
    Enqueues,
    /// Enqueues what was grouped.
    Flush,
    /// Is an operation, and has the queue in this parameter.
    Operation(&'t Collective, Option<&'t str>),
}

/// A thread in a call of an API with collectives.
#[derive(Debug)]
struct Inside<T> {
    depth: u32,
    id: i64,
    /// None of the end of a group.
    operation: Option<T>,
    enqueued: bool,
}

#[derive(Debug)]
struct Thread<T> {
    inside: Option<Inside<T>>,
    waiting: Vec<T>,
}

/// Follows the operations of all threads, each with what the caller keeps of it.
#[derive(Debug)]
pub(crate) struct Operations<'t, T> {
    /// By function; empty if the trace has no calls of such an API.
    meanings: Vec<Meaning<'t>>,
    threads: HashMap<ThreadId, Thread<T>>,
}

impl<'t, T> Operations<'t, T> {
    pub fn new(trace: &'t Trace) -> Self {
        let operates = |m: &Model| m.functions.iter().any(|f| f.collective().is_some());
        let operates: Vec<bool> = trace.models().iter().map(operates).collect();
        let all = trace.functions().all();
        let id = |at: usize| FunctionId(u32::try_from(at).unwrap_or(u32::MAX));
        let has = |api: usize| operates.get(api) == Some(&true);
        let active = all.iter().enumerate().any(|(at, f)| has(f.api) && trace.has_calls_of(id(at)));
        let meaning = |(at, f): (usize, &Function)| match trace
            .model_of(id(at))
            .zip(trace.described(id(at)))
            .filter(|_| has(f.api))
        {
            Some((model, function)) => match function.collective() {
                Some(about) => Meaning::Operation(about, queues_of_collective(model, function, about).next()),
                None if function.has_role("flush") => Meaning::Flush,
                None => Meaning::Nothing,
            },
            None if f.enqueues => Meaning::Enqueues,
            None => Meaning::Nothing,
        };
        let meanings = if active { all.iter().enumerate().map(meaning).collect() } else { Vec::new() };
        Self { meanings, threads: HashMap::new() }
    }

    pub fn meaning(&self, function: FunctionId) -> Meaning<'t> {
        self.meanings.get(function.index()).copied().unwrap_or(Meaning::Nothing)
    }

    /// A call that is an operation, or the end of a group, begins; `id` is the caller's number of
    /// it. What a library calls inside of its own call is a part of that, and is not kept.
    pub fn enter(&mut self, call: &Open, id: i64, operation: Option<T>) {
        let new = || Thread { inside: None, waiting: Vec::new() };
        let thread = self.threads.entry(call.thread).or_insert_with(new);
        if thread.inside.as_ref().is_none_or(|inside| inside.depth >= call.depth) {
            thread.inside = Some(Inside { depth: call.depth, id, operation, enqueued: false });
        }
    }

    /// The number of the call that a thread is in.
    pub fn launch(&self, thread: ThreadId) -> Option<i64> {
        if self.meanings.is_empty() {
            return None;
        }
        self.threads.get(&thread)?.inside.as_ref().map(|inside| inside.id)
    }

    /// A call ends: the operations of which it is now known what launched them, if anything did.
    pub fn exit(&mut self, call: &Call) -> Vec<(T, Option<i64>)> {
        match self.meaning(call.function) {
            Meaning::Nothing => Vec::new(),
            Meaning::Enqueues => {
                let thread = self.threads.get_mut(&call.thread);
                if let Some(inside) = thread.and_then(|thread| thread.inside.as_mut()) {
                    inside.enqueued |= call.error.is_none();
                }
                Vec::new()
            }
            Meaning::Flush | Meaning::Operation(..) => {
                self.leave(call.thread, call.depth, call.error.is_some())
            }
        }
    }

    /// The same for a call that ends, or has no end.
    pub fn leave(&mut self, thread: ThreadId, depth: u32, failed: bool) -> Vec<(T, Option<i64>)> {
        let Some(state) = self.threads.get_mut(&thread) else { return Vec::new() };
        let Some(inside) = state.inside.take_if(|inside| inside.depth == depth) else { return Vec::new() };
        let launched = inside.enqueued.then_some(inside.id);
        match inside.operation {
            Some(one) if failed || launched.is_some() || state.waiting.len() >= MOST => vec![(one, launched)],
            Some(one) => {
                state.waiting.push(one);
                Vec::new()
            }
            // Of groups inside one another, the outermost enqueues.
            None if launched.is_none() => Vec::new(),
            None => std::mem::take(&mut state.waiting).into_iter().map(|one| (one, launched)).collect(),
        }
    }

    /// Returns those that nothing has launched, when the walk has ended.
    pub fn take_unlaunched(&mut self) -> Vec<T> {
        let mut threads: Vec<(ThreadId, Thread<T>)> = self.threads.drain().collect();
        threads.sort_by_key(|(thread, _)| thread.index());
        let all = threads.into_iter().flat_map(|(_, thread)| {
            thread.waiting.into_iter().chain(thread.inside.and_then(|inside| inside.operation))
        });
        all.collect()
    }
}

/// How much an operation is of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount<'e> {
    pub element: Option<&'e str>,
    pub count: u64,
    /// The count in bytes; 0 if the type's size is not known.
    pub bytes: u64,
}

impl<'e> Amount<'e> {
    pub fn of(trace: &Trace, function: FunctionId, about: &'e Collective, entry: &'e Event<'_, '_>) -> Self {
        let element = entry.get(&about.element).and_then(Scalar::as_str).or(about.of.as_deref());
        let count = if about.count.is_empty() { 1 } else { number(entry, &about.count).unwrap_or(0) };
        let sizes = trace.model_of(function).map(|model| &model.element_sizes);
        let size = element.and_then(|name| sizes?.get(name).copied()).unwrap_or(0);
        Self { element, count, bytes: count.saturating_mul(size.into()) }
    }
}

/// The bits of a parameter that is a number.
pub(crate) fn number(event: &Event<'_, '_>, name: &str) -> Option<u64> {
    event.get(name)?.bits()
}
