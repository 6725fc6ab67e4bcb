//! What kernels' arguments are set to.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::passed::{Launched, Passed, Setting, Used};
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::FunctionId;

/// Kernels that are followed at a time.
const KEPT: usize = 1 << 20;
/// Arguments of a kernel that need no table.
const DIRECT: usize = 64;
/// Arguments set again from which on it is worth a word.
const AGAIN: u64 = 16;
/// Launches with what another thread set, from which on it is no handing over.
const SHARED: u64 = 2;

/// What an argument is set to.
#[derive(Clone, Copy, Debug)]
struct Set {
    hash: u64,
    call: Ref,
    /// Its size, if it has a value.
    bytes: usize,
    object: Option<(KindId, u64)>,
}

/// The arguments of a kernel.
#[derive(Clone, Debug, Default)]
struct Arguments {
    /// By number.
    first: Vec<Option<Set>>,
    /// Those of greater numbers.
    others: QuickMap<u64, Set>,
    /// What could not be set.
    failed: Vec<(u64, Ref)>,
    /// When a launch was looked at last, as [`Lifetimes::epoch`] has it.
    seen: u64,
    /// When it was launched last.
    launched: u64,
    /// A value that no launch has seen, and what another thread set in its place.
    lost: Option<(Ref, Ref)>,
}

impl Arguments {
    /// Sets one; returns what it was before.
    fn set(&mut self, index: u64, value: Set) -> Option<Set> {
        match usize::try_from(index).ok().filter(|at| *at < DIRECT) {
            Some(at) => {
                if self.first.len() <= at {
                    self.first.resize(at + 1, None);
                }
                self.first[at].replace(value)
            }
            None => self.others.insert(index, value),
        }
    }

    fn objects(&self) -> impl Iterator<Item = (KindId, u64)> {
        let others = (!self.others.is_empty()).then(|| self.others.values()).into_iter().flatten();
        self.first.iter().flatten().chain(others).filter_map(|set| set.object)
    }
}

/// The arguments of all kernels.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    /// By process and kernel's handle.
    by_handle: QuickMap<(i64, u64), Arguments>,
    redundant: QuickMap<(i64, FunctionId), Sum>,
    /// Launches by a thread of whose values another one had set some anew; with the first one's calls.
    shared: QuickMap<(i64, FunctionId), (u64, [Ref; 3])>,
}

impl Kernels {
    /// A launch begins: what its kernel is passed, if that is to be looked at again or `all` are.
    pub fn entry(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (lifetimes, all): (&Lifetimes, bool),
        knowledge: &Knowledge<'_>,
    ) {
        let (pid, call) = (passed.call.pid, passed.call);
        let Some(kernel) = passed.kernel.filter(|kernel| *kernel != 0) else { return };
        let Some(arguments) = self.by_handle.get_mut(&(pid, kernel)) else {
            // A kernel of this trace without arguments, or one of which nothing is known.
            let is_made = |(_, kind, handle): &(u16, KindId, u64)| {
                *handle == kernel && lifetimes.is_alive(pid, (*kind, kernel))
            };
            if passed.handles.iter().any(is_made) {
                passed.launched = Launched::Objects;
            }
            return;
        };
        arguments.launched = call.start;
        if let Some((set, other)) = arguments.lost.take_if(|(set, _)| set.tid == call.tid) {
            let first = [call, set, other];
            self.shared.entry((pid, call.function)).or_insert((0, first)).0 += 1;
        }
        let name = &facts.function.name;
        for (index, failed) in &arguments.failed {
            let what = format!("{name} launches a kernel whose argument {index} could not be set");
            let hit = Hit::new("ignored-error", format!("{name} argument"), what, ("failed", *failed));
            passed.faults.push(hit.with(Some(("then", call))));
        }
        if std::mem::replace(&mut arguments.seen, lifetimes.epoch) == lifetimes.epoch && !all {
            passed.launched = Launched::Same;
            return;
        }
        passed.launched = Launched::Objects;
        for object in arguments.objects() {
            let Some(known) = lifetimes.object(pid, object) else { continue };
            let Some(dead) = known.dead else {
                passed.used.push(Used { object, memory: known.memory, bytes: known.bytes });
                continue;
            };
            let kind = knowledge.kind(object.0).map_or("object", |kind| &kind.name);
            let what =
                format!("{name} launches a kernel of which an argument is a {kind} that was released before");
            let hit = Hit::new("use-after-release", format!("{name} argument"), what, ("use", call));
            passed.faults.push(hit.with(Some(("release", dead))).with(Some(("made", known.made))));
        }
    }

    /// An object was made at this handle, from another of its type if it is a copy.
    pub fn made(&mut self, pid: i64, handle: u64, of: Option<u64>) {
        self.by_handle.remove(&(pid, handle));
        let copied = of.and_then(|of| self.by_handle.get(&(pid, of))).cloned();
        if let Some(arguments) = copied {
            self.by_handle.insert((pid, handle), arguments);
        }
    }

    /// A call that sets an argument ends.
    pub fn set(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        (duration, failed): (u64, bool),
        lifetimes: &Lifetimes,
        findings: &mut Findings,
    ) {
        let (pid, call) = (passed.call.pid, passed.call);
        let Some(Setting { of, index, value, bytes, object }) = passed.argument else { return };
        if self.by_handle.len() > KEPT {
            self.by_handle.clear();
        }
        let arguments = match self.by_handle.get_mut(&(pid, of)) {
            // Nearly always, and for less than an entry takes.
            Some(arguments) => arguments,
            None => self.by_handle.entry((pid, of)).or_default(),
        };
        if !arguments.failed.is_empty() {
            arguments.failed.retain(|(known, _)| *known != index);
        }
        if failed {
            if arguments.failed.len() < DIRECT {
                arguments.failed.push((index, call));
            }
            return;
        }
        let before = arguments.set(index, Set { hash: passed.hash, call, bytes, object });
        let Some(before) = before.filter(|before| before.hash == passed.hash) else {
            // A number is of no interest to a launch.
            if object.is_some() || before.is_some_and(|before| before.object.is_some()) {
                arguments.seen = 0;
            }
            if let Some(before) = &before
                && before.call.tid != call.tid
                && before.call.start > arguments.launched
            {
                arguments.lost = Some((before.call, call));
            }
            if let Some(before) = before.filter(|b| b.bytes != bytes && b.bytes > 0 && bytes > 0) {
                findings.add(other_size(facts, (index, bytes, call), &before));
            }
            return;
        };
        let renewed = |since| value.is_some_and(|v| lifetimes.is_newer(pid, v, since));
        if renewed(before.call.start) {
            arguments.seen = 0;
        } else {
            self.redundant.entry((pid, call.function)).or_insert(Sum::new(call)).add(duration);
        }
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let mut rows: Vec<_> = self.redundant.iter().filter(|(_, sum)| sum.count >= AGAIN).collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, function), sum) in rows {
            let Some(facts) = knowledge.of(*function) else { continue };
            let name = &facts.function.name;
            let what = format!("{name} sets arguments to the values that they have");
            let hit = Hit::new("redundant-set-arg", format!("{pid} {name}"), what, ("first", sum.first));
            findings.add(hit.times(sum.count).costs(sum.ns));
        }
        let mut rows: Vec<_> = self.shared.iter().filter(|(_, (count, _))| *count >= SHARED).collect();
        rows.sort_by_key(|(key, _)| **key);
        for ((pid, function), (count, [launch, set, other])) in rows {
            let Some(facts) = knowledge.of(*function) else { continue };
            let name = &facts.function.name;
            let what =
                format!("{name} launches a kernel with arguments that another thread has set meanwhile");
            let hit = Hit::new("shared-kernel", format!("{pid} {name}"), what, ("launch", *launch));
            let hit = hit.with(Some(("own", *set))).with(Some(("other", *other)));
            findings.add(hit.times(*count));
        }
    }
}

/// An argument has one type, and so one size.
fn other_size(facts: &Facts<'_>, (index, bytes, call): (u64, usize, Ref), before: &Set) -> Hit {
    let name = &facts.function.name;
    let what = format!(
        "{name} sets argument {index} of a kernel to {bytes} bytes, and to {} bytes before",
        before.bytes
    );
    Hit::new("argument-size", name, what, ("call", call)).with(Some(("before", before.call)))
}
