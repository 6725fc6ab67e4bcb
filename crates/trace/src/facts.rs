//! What functions mean, decided once, by their roles and what else the models say of them. What only one report asks is
//! in that report.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_model::Function;

use crate::trace::{FunctionId, Trace};

pub mod objects;

/// What a program does in a call, for the advice about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Compiles or links.
    Build,
    /// Creates or releases objects or memory.
    Objects,
    /// Moves or sets memory.
    Move,
    /// Hands work to a device.
    Enqueue,
    /// Waits.
    Wait,
    /// Asks again and again.
    Poll,
    /// None of these.
    #[default]
    Other,
}

/// Why a call may wait for a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// It does not.
    #[default]
    Never,
    /// Each does.
    Always,
    /// If the parameter at this position is true.
    If(u16),
}

/// What a function means.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'t> {
    /// What the model says of it; none if it is unknown.
    function: Option<&'t Function>,
    /// What a program does in it.
    pub work: Work,
    /// It hands commands to a device.
    pub enqueues: bool,
    /// It asks for a state that changes by itself.
    pub polls: bool,
    /// Nobody knows what it does.
    pub unknown: bool,
    /// It hands kernels to a device, or is one of the ways to.
    pub launches: bool,
    /// It waits for what devices do.
    pub syncs: bool,
    /// It compiles or links, or asks about that.
    pub builds: bool,
    /// It asks for what does not change by itself.
    pub queries: bool,
    /// It appends to what is run later.
    pub records: bool,
    /// A range or a mark: it says something and does nothing.
    pub marks: bool,
    /// When it waits for a device.
    pub waits: Waits,
    /// The parameter with the queue.
    queue: Option<&'t str>,
    /// Values that mean the default queue, beside NULL.
    pub default_queues: &'t [u64],
}

/// Roles with what a program does in such a call; the first that fits counts.
const WORKS: [(&str, Work); 19] = [
    ("build", Work::Build),
    ("sync", Work::Wait),
    ("launch", Work::Enqueue),
    ("alloc", Work::Objects),
    ("free", Work::Objects),
    ("create", Work::Objects),
    ("release", Work::Objects),
    ("retain", Work::Objects),
    ("read", Work::Move),
    ("write", Work::Move),
    ("copy", Work::Move),
    ("fill", Work::Move),
    ("map", Work::Move),
    ("unmap", Work::Move),
    ("migrate", Work::Move),
    ("enqueue", Work::Enqueue),
    ("flush", Work::Enqueue),
    ("poll", Work::Poll),
    ("blocks", Work::Wait),
];
/// Roles of calls that say something and do nothing: they begin or end a range, mark a moment, or change a counter.
const MARKS: [&str; 8] = [
    "range-push",
    "range-pop",
    "range-start",
    "range-end",
    "mark",
    "counter-add",
    "counter-set",
    "counter-subtract",
];

/// Returns whether a function only says something: reports show that instead of the call.
pub fn is_mark(function: &Function) -> bool {
    MARKS.iter().any(|role| function.has_role(role))
}

/// All functions of a trace, by number.
pub fn facts(trace: &Trace) -> Vec<Facts<'_>> {
    let all = trace.functions().all();
    let ids = (0..all.len()).map(|i| FunctionId(u32::try_from(i).unwrap_or(u32::MAX)));
    let queues: Vec<Vec<String>> = trace.models().iter().map(objects::queue_types).collect();
    ids.zip(all)
        .zip(trace.occurring())
        .map(|((id, function), occurs)| {
            let Some(f) = trace.described(id) else {
                return Facts { unknown: true, ..Facts::default() };
            };
            let types = queues.get(function.api).map_or(&[][..], Vec::as_slice);
            // Of calls that do not occur nobody asks what they were passed.
            let params = if occurs { f.params.as_slice() } else { &[] };
            let queue = params.iter().find(|p| p.pointers == 0 && types.contains(&p.base));
            let work = WORKS.iter().find(|(role, _)| f.has_role(role));
            let work = work.map_or(Work::Other, |(_, work)| *work);
            let position = |name: &str| params.iter().position(|p| p.name == name);
            let blocking = occurs
                .then(|| f.blocking.as_deref())
                .flatten()
                .and_then(position)
                .and_then(|at| u16::try_from(at).ok());
            let waits = match blocking {
                _ if f.has_role("build") => Waits::Never,
                _ if f.has_role("sync") => Waits::Always,
                Some(at) => Waits::If(at),
                None if f.has_role("blocks") => Waits::Always,
                None => Waits::Never,
            };
            Facts {
                function: Some(f),
                work,
                enqueues: function.enqueues,
                polls: f.has_role("poll"),
                unknown: false,
                launches: f.has_role("launch"),
                syncs: f.has_role("sync"),
                builds: f.has_role("build"),
                queries: f.has_role("query"),
                records: f.has_role("record"),
                marks: is_mark(f),
                waits,
                queue: queue.map(|p| p.name.as_str()),
                default_queues: trace.models().get(function.api).map_or(&[], |m| &m.default_queues),
            }
        })
        .collect()
}

impl Facts<'_> {
    /// Whether a call that begins so waits for a device.
    pub fn is_waiting(&self, entry: &Event<'_, '_>) -> bool {
        match self.waits {
            Waits::Never => false,
            Waits::Always => true,
            Waits::If(at) => {
                let name = self.function.and_then(|f| f.params.get(usize::from(at))).map(|p| p.name.as_str());
                name.and_then(|name| entry.get(name)).and_then(Scalar::as_i64).is_some_and(|v| v != 0)
            }
        }
    }

    /// Returns a queue's handle; 0 for the default one, whichever value stands for it.
    #[inline]
    pub fn queue_of(&self, handle: u64) -> u64 {
        if self.default_queues.contains(&handle) { 0 } else { handle }
    }

    /// Returns the handle of the queue that a call names; 0 for the default one, whichever value
    /// stands for it. It is compared with [`Command::named_queue`](crate::spans::Command::named_queue).
    pub fn queue(&self, entry: &Event<'_, '_>) -> Option<u64> {
        let handle = self.queue.and_then(|queue| entry.get(queue)).and_then(Scalar::as_u64)?;
        Some(self.queue_of(handle))
    }
}
