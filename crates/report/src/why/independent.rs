//! Which kernels could run beside each other: launches of one queue, one behind the other, that share no memory which
//! one of them may write.
//!
//! ```text
//! arguments   k(a, b)   k(c, d)   k(e, a)   k(f, a)       a is made to be read only
//! before it             1 free    2 free    3 free
//! arguments   k(a, b)   k(c, b)                           b may be written
//! before it             0 free
//! ```
//!
//! What a kernel does to its arguments is known of memory that is made for reading only; it may write all else. A launch
//! with a wait list waits for what is before it. Of launches whose arguments are not set by calls of their own, nothing is
//! known.

use hetrace_ctf::read::Event;
use hetrace_model::{Flags, Follow, Function, Model, Param};
use hetrace_trace::facts::{Facts, objects};
use hetrace_trace::hash::QuickMap;
use hetrace_trace::spans::Call;
use hetrace_trace::trace::{FunctionId, ThreadId, Trace};
use hetrace_trace::values::{Place, Plans, Values};

/// Kernels, objects of memory and their last uses that are remembered.
const KEPT: usize = 1 << 16;
/// Launches before one that are counted.
const MOST: u64 = 15;
/// Memory of which only an address is known: all of it may be the same.
const SOMEWHERE: u64 = u64::MAX;
/// Arguments of a kernel that are remembered.
const ARGUMENTS: u64 = 256;

/// How many launches right before one, on its queue, share no memory with it that one of them may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Free {
    /// What they use is not known.
    #[default]
    Unknown,
    /// So many; as many as are counted, if more.
    Launches(u8),
}

/// What a function has to do with it.
#[derive(Clone, Copy, Debug, Default)]
enum Does<'t> {
    #[default]
    Nothing,
    /// It makes memory; the parameter with its flags, and what they mean.
    Memory(Option<(u16, &'t Flags)>),
    /// It makes a queue; the same.
    Queue(u16, &'t Flags),
    /// It copies the kernel in this parameter.
    Copies(u16),
    /// It sets an argument: of which kernel, which one, to what; none if that is memory at an address.
    Sets { of: u16, index: u16, value: Option<u16> },
    /// It launches the kernel in this parameter.
    Launches(u16),
}

/// The last launches of a queue that used something.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    any: u64,
    writing: u64,
}

/// A queue.
#[derive(Debug, Default)]
struct Queue {
    /// Its launches so far.
    count: u64,
    /// The last one that what comes later waits for.
    barrier: u64,
    /// By handle of the memory.
    uses: QuickMap<u64, Uses>,
}

/// What is known of kernels, memory and queues.
pub(super) struct Independence<'t> {
    does: Vec<Does<'t>>,
    functions: Vec<Option<&'t Function>>,
    plans: Plans<'t>,
    values: Values<'t>,
    /// By process and handle: whether a kernel only reads it.
    memory: QuickMap<(i64, u64), bool>,
    /// By process and kernel: the memory that its arguments are, by their numbers; none of what is not known.
    kernels: QuickMap<(i64, u64), Vec<Option<u64>>>,
    queues: QuickMap<(i64, u64), Queue>,
    /// Queues whose commands may overtake each other.
    unordered: QuickMap<(i64, u64), ()>,
    /// What calls make that have not returned: bits of their flags, or the kernel that they copy.
    pending: QuickMap<ThreadId, u64>,
}

fn position(function: &Function, name: &str) -> Option<u16> {
    u16::try_from(function.params.iter().position(|p| p.name == name)?).ok()
}

/// The types of memory, of queues, and of kernels whose arguments are set by calls of their own.
fn types_of(model: &Model) -> (Vec<&str>, Vec<String>, Vec<&str>) {
    (objects::memory_types(model), objects::queue_types(model), objects::kernel_types(model))
}

fn does<'t>(function: &'t Function, types: &(Vec<&str>, Vec<String>, Vec<&str>)) -> Does<'t> {
    let (memory, queues, kernels) = types;
    let of = |name: &str| function.params.iter().position(|p| p.base == name && p.pointers == 0);
    let kernel = kernels.iter().find_map(|name| of(name)).and_then(|at| u16::try_from(at).ok());
    if function.has_role("set-arg") {
        let index = function.params.iter().skip(1).position(|p| p.pointers == 0).map(|at| at + 1);
        let last = function.params.len().checked_sub(1);
        let index = index.and_then(|at| u16::try_from(at).ok());
        let is_data = |p: &Param| matches!(p.follow, Follow::Bytes { .. });
        let value = last.filter(|at| function.params.get(*at).is_some_and(is_data));
        let value = value.and_then(|at| u16::try_from(at).ok());
        return kernel.zip(index).map_or(Does::Nothing, |(of, index)| Does::Sets { of, index, value });
    }
    if function.has_role("launch") && function.has_role("enqueue") {
        return kernel.map_or(Does::Nothing, Does::Launches);
    }
    let flags = function.flags.as_ref().and_then(|flags| Some((position(function, &flags.param)?, flags)));
    match function.creates.as_deref().filter(|_| function.has_role("create")) {
        Some(made) if memory.contains(&made) => Does::Memory(flags),
        Some(made) if queues.iter().any(|queue| queue == made) => {
            flags.map_or(Does::Nothing, |(at, flags)| Does::Queue(at, flags))
        }
        Some(made) if kernels.contains(&made) => kernel.map_or(Does::Nothing, Does::Copies),
        _ => Does::Nothing,
    }
}

/// A number that stands in eight bytes.
fn word(bytes: &[u64]) -> Option<u64> {
    match bytes {
        [one] => Some(*one),
        bytes if bytes.len() == 8 => {
            Some(bytes.iter().rev().fold(0, |word, byte| (word << 8) | (byte & 0xff)))
        }
        _ => None,
    }
}

/// The bits that a call is passed: a number, or the value behind a name in a list.
fn bits(values: &Values<'_>, at: u16, flags: &Flags) -> u64 {
    let all = values.all(Place::Param(at));
    match flags.key {
        None => all.first().copied().unwrap_or(0),
        Some(key) => {
            let pair = all.chunks_exact(2).find(|pair| pair.first() == Some(&key));
            pair.and_then(|pair| pair.get(1)).copied().unwrap_or(0)
        }
    }
}

impl Queue {
    /// A launch that uses this memory; each with whether it only reads it.
    fn launch(&mut self, used: impl Iterator<Item = (u64, bool)>, depends: bool) -> Free {
        self.count += 1;
        let now = self.count;
        if depends {
            self.barrier = now - 1;
        }
        let mut last = self.barrier;
        if self.uses.len() > KEPT {
            self.uses.clear();
            last = now - 1;
        }
        for (memory, reads) in used {
            let uses = self.uses.entry(memory).or_default();
            // Twice in one launch is no conflict.
            let before = if reads { uses.writing } else { uses.any };
            last = last.max(if before == now { last } else { before });
            uses.any = now;
            if !reads {
                uses.writing = now;
            }
        }
        Free::Launches((now - 1 - last).min(MOST) as u8)
    }
}

impl<'t> Independence<'t> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        let types: Vec<_> = trace.models().iter().map(types_of).collect();
        let all = trace.functions().all();
        let ids = || (0u32..).map(FunctionId).take(all.len());
        let functions: Vec<Option<&Function>> = ids().map(|id| trace.described(id)).collect();
        let occurring = trace.occurring();
        let of = |id: FunctionId| {
            occurring.get(id.index()).filter(|occurs| **occurs)?;
            let types = types.get(all.get(id.index())?.api)?;
            Some(does(trace.described(id)?, types))
        };
        let does: Vec<Does<'_>> = ids().map(|id| of(id).unwrap_or_default()).collect();
        let wanted = |id: FunctionId| !matches!(does.get(id.index()), None | Some(Does::Nothing));
        let plans = Plans::new(trace, wanted);
        Self {
            does,
            functions,
            plans,
            values: Values::default(),
            memory: QuickMap::default(),
            kernels: QuickMap::default(),
            queues: QuickMap::default(),
            unordered: QuickMap::default(),
            pending: QuickMap::default(),
        }
    }

    fn does(&self, function: FunctionId) -> Does<'t> {
        self.does.get(function.index()).copied().unwrap_or_default()
    }

    /// A call begins; its command `depends` on others if it has a wait list. Of a launch, returns what is free before it.
    pub fn entry(
        &mut self,
        (pid, thread): (i64, ThreadId),
        function: FunctionId,
        (facts, depends): (&Facts<'_>, bool),
        event: &Event<'_, '_>,
    ) -> Free {
        let does = self.does(function);
        if matches!(does, Does::Nothing) {
            return Free::Unknown;
        }
        let Some(described) = self.functions.get(function.index()).copied().flatten() else {
            return Free::Unknown;
        };
        self.values.read_entry(described, &[], (function, &self.plans), event);
        let values = &self.values;
        let first = |at: u16| values.first(Place::Param(at));
        match does {
            Does::Memory(Some((at, flags))) | Does::Queue(at, flags) => {
                self.pending.insert(thread, bits(values, at, flags));
            }
            Does::Copies(kernel) => {
                self.pending.insert(thread, first(kernel).unwrap_or(0));
            }
            Does::Sets { of, index, value } => {
                if let Some((kernel, index)) = first(of).zip(first(index)) {
                    let value = value.map_or(Some(SOMEWHERE), |at| word(values.all(Place::Param(at))));
                    self.set(pid, kernel, index, value);
                }
            }
            Does::Launches(kernel) => {
                let kernel = first(kernel).unwrap_or(0);
                let queue = facts.queue(event).unwrap_or(0);
                return self.launch(pid, kernel, queue, depends);
            }
            Does::Nothing | Does::Memory(None) => {}
        }
        Free::Unknown
    }

    fn set(&mut self, pid: i64, kernel: u64, index: u64, value: Option<u64>) {
        let is_memory = |value: &u64| *value == SOMEWHERE || self.memory.contains_key(&(pid, *value));
        let object = value.filter(is_memory);
        if self.kernels.len() > KEPT {
            self.kernels.clear();
        }
        let arguments = self.kernels.entry((pid, kernel)).or_default();
        let Some(at) = usize::try_from(index.min(ARGUMENTS)).ok() else { return };
        if arguments.len() <= at {
            arguments.resize(at + 1, None);
        }
        arguments[at] = object;
    }

    fn launch(&mut self, pid: i64, kernel: u64, queue: u64, depends: bool) -> Free {
        // Nothing of it can be begun earlier by another queue.
        if self.unordered.contains_key(&(pid, queue)) {
            return Free::Launches(0);
        }
        let state = self.queues.entry((pid, queue)).or_default();
        let arguments = self.kernels.get(&(pid, kernel)).filter(|all| all.iter().any(Option::is_some));
        let Some(arguments) = arguments else {
            state.count += 1;
            state.barrier = state.count;
            return Free::Unknown;
        };
        let memory = &self.memory;
        let used = arguments.iter().flatten();
        let used = used.map(|handle| (*handle, memory.get(&(pid, *handle)).copied().unwrap_or(false)));
        state.launch(used, depends)
    }

    /// A call has ended.
    pub fn exit(&mut self, pid: i64, call: &Call, event: &Event<'_, '_>) {
        let does = self.does(call.function);
        if matches!(does, Does::Nothing | Does::Sets { .. } | Does::Launches(_)) {
            return;
        }
        let was = self.pending.remove(&call.thread).unwrap_or(0);
        let Some(described) = self.functions.get(call.function.index()).copied().flatten() else { return };
        self.values.read_exit(described, (call.function, &self.plans), event);
        let made = self.values.first(Place::Result).filter(|made| *made != 0 && call.error.is_none());
        let Some(key) = made.map(|made| (pid, made)) else { return };
        match does {
            Does::Memory(flags) => {
                if self.memory.len() > KEPT {
                    self.memory.clear();
                }
                self.memory.insert(key, flags.is_some_and(|(_, flags)| flags.only_read & was != 0));
            }
            Does::Queue(_, flags) => {
                self.queues.remove(&key);
                match flags.unordered & was {
                    0 => self.unordered.remove(&key),
                    _ => self.unordered.insert(key, ()),
                };
            }
            Does::Copies(_) => {
                if let Some(arguments) = self.kernels.get(&(pid, was)).cloned() {
                    self.kernels.insert(key, arguments);
                }
            }
            Does::Nothing | Does::Sets { .. } | Does::Launches(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches on one queue, each with the memory that it writes and that it reads; what is free before each.
    fn free(launches: &[(&[u64], &[u64])]) -> Vec<u8> {
        let mut queue = Queue::default();
        let of = |(writes, reads): &(&[u64], &[u64])| {
            let used = writes.iter().map(|m| (*m, false)).chain(reads.iter().map(|m| (*m, true)));
            match queue.launch(used, false) {
                Free::Launches(n) => n,
                Free::Unknown => unreachable!("all is known"),
            }
        };
        launches.iter().map(of).collect()
    }

    #[test]
    fn launches_that_share_what_they_write_wait_for_each_other() {
        assert_eq!(free(&[(&[1], &[]), (&[1], &[]), (&[1], &[])]), [0, 0, 0]);
        // One reads what the one before has written.
        assert_eq!(free(&[(&[1], &[]), (&[2], &[1]), (&[3], &[2])]), [0, 0, 0]);
    }

    #[test]
    fn launches_that_share_nothing_or_only_read_it_could_run_beside_each_other() {
        assert_eq!(free(&[(&[1], &[9]), (&[2], &[9]), (&[3], &[9]), (&[1], &[9])]), [0, 1, 2, 2]);
        assert_eq!(free(&[(&[1, 1], &[]), (&[2], &[]), (&[2], &[])]), [0, 1, 0]);
    }

    #[test]
    fn a_wait_list_holds_back_and_what_is_long_ago_does_not_count() {
        let mut queue = Queue::default();
        let one =
            |queue: &mut Queue, memory, depends| queue.launch(std::iter::once((memory, false)), depends);
        assert_eq!(one(&mut queue, 1, false), Free::Launches(0));
        assert_eq!(one(&mut queue, 2, true), Free::Launches(0));
        assert_eq!(one(&mut queue, 3, false), Free::Launches(1));
        for memory in 10..40 {
            one(&mut queue, memory, false);
        }
        assert_eq!(one(&mut queue, 99, false), Free::Launches(15));
    }
}
