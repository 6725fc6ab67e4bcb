//! Objects from their making to their end: leaks, uses and releases after it, contexts that
//! meet, events that nobody looks at.
//!
//! Only what the program itself made is followed: calls inside of others belong to a library,
//! and what they end or make at a handle takes it out of the table. Whatever the API hands out
//! is alive.

use std::collections::{BTreeMap, VecDeque};

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, PASSES, Ref};
use super::kinds::{Kind, KindId};
use super::objects::{Key, Memory as Contents, Object, Objects};
use super::order::Id;
use super::passed::{Passed, word};
use super::rules::Severity;
use hetrace_model::Flags;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::FunctionId;
use hetrace_trace::values::Values;

/// Objects that are followed at a time.
const KEPT: usize = 1 << 20;
/// Released objects that are remembered.
const REMEMBERED: usize = 1 << 16;
/// Events that nobody looks at, from which on it is worth a word.
const UNUSED_EVENTS: u64 = 8;

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    objects: Objects,
    dead: VecDeque<Key>,
    /// By the function that made them.
    unused: QuickMap<FunctionId, (u64, Ref)>,
    pub overflow: bool,
    /// It grows when an object with memory comes or goes.
    pub epoch: u64,
}

/// What leaked, by the process, the function that made it, and what it is.
pub(super) type Leaks = BTreeMap<(i64, FunctionId, String), Leak>;

/// Objects or allocations that were never released.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leak {
    pub count: u64,
    pub bytes: u64,
    pub first: Ref,
    /// When the last of them was made.
    pub last: u64,
}

impl Leak {
    /// With nothing in it; the first was made by a call.
    pub fn new(first: Ref) -> Self {
        Self { count: 0, bytes: 0, first, last: first.start }
    }

    /// Adds one that was made at a time.
    pub fn add(&mut self, made: u64, bytes: Option<u64>) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes.unwrap_or(0));
        self.last = self.last.max(made);
    }
}

impl Lifetimes {
    /// A call begins.
    #[inline]
    pub fn entry(&mut self, passed: &mut Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) {
        let counts = facts.gives_back.is_some() || facts.retains.is_some() || facts.obscure;
        let only_uses = passed.root && !facts.exposes && !counts;
        if !only_uses || !self.uses(passed, facts) {
            self.follow(passed, facts, knowledge);
        }
        let sets = passed.argument.as_ref().and_then(|argument| argument.value);
        if passed.root && sets.is_some_and(|value| value != 0) {
            self.argument(passed, facts, knowledge);
        }
    }

    /// A call uses its objects, and does nothing else with them. False if one of them was released: then there is more to
    /// be said.
    fn uses(&mut self, passed: &Passed, facts: &Facts<'_>) -> bool {
        for &(at, kind, handle) in &passed.handles {
            let Some(object) = self.objects.get_mut(&(passed.call.pid, kind, handle)).filter(|_| handle != 0)
            else {
                continue;
            };
            if object.dead.is_some() {
                return false;
            }
            object.used |= is_use(facts, at);
        }
        true
    }

    /// All that a call may do with its objects.
    fn follow(&mut self, passed: &mut Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) {
        let handles = std::mem::take(&mut passed.handles);
        for &(at, kind, handle) in &handles {
            let key = (passed.call.pid, kind, handle);
            let Some(object) = self.objects.get_mut(&key).filter(|_| handle != 0) else {
                // Made by an API above or below, where its type has another name.
                if facts.gives_back.is_some() {
                    self.objects.remove_all(passed.call.pid, handle);
                }
                continue;
            };
            let Some(about) = knowledge.kind(kind) else { continue };
            if facts.obscure || (!passed.root && facts.gives_back.is_some()) {
                self.objects.remove(&key);
                continue;
            }
            if facts.gives_back.is_some() {
                match object.dead {
                    Some(dead) => passed.faults.push(twice(passed, facts, about, object, dead)),
                    None => {
                        object.count = object.count.saturating_sub(1);
                        passed.ended.push((Some(kind), handle));
                        if object.count == 0 {
                            object.dead = Some(passed.call);
                            self.died(key, about);
                        }
                    }
                }
                continue;
            }
            object.memory.foreign |= about.memory && (facts.exposes || !passed.root);
            if let Some(dead) = object.dead.filter(|_| passed.root) {
                passed.faults.push(late(passed, facts, about, object, dead));
            } else if facts.retains.is_some() {
                object.count = object.count.saturating_add(1);
                passed.retained = true;
            } else {
                object.used |= is_use(facts, at);
            }
        }
        passed.handles = handles;
    }

    /// An argument is set: to an object, perhaps one that is gone.
    fn argument(&mut self, passed: &mut Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) {
        let (pid, call) = (passed.call.pid, passed.call);
        let Some(setting) = &mut passed.argument else { return };
        let Some(value) = setting.value.filter(|value| *value != 0) else { return };
        let holds = |kind: KindId| knowledge.kind(kind).filter(|kind| kind.memory);
        let mut found =
            self.objects.at(pid, value).filter_map(|(id, object)| Some((id, object, holds(*id)?)));
        let Some((id, object, kind)) = found.next() else { return };
        setting.object = Some((*id, value));
        let of =
            passed.handles.first().and_then(|(_, kind, handle)| self.objects.get(&(pid, *kind, *handle)));
        let contexts = of.filter(|of| of.dead.is_none()).map_or((0, 0), |of| (of.context, object.context));
        if contexts.0 != contexts.1 && contexts.0 != 0 && contexts.1 != 0 && object.dead.is_none() {
            let (name, index) = (&facts.function.name, setting.index);
            let what = format!(
                "{name} sets argument {index} of a kernel of context {:#x} to a {} of context {:#x}",
                contexts.0, kind.name, contexts.1
            );
            let hit = Hit::new("wrong-context", format!("{name} argument"), what, ("call", call));
            let hit = hit.with(of.map(|of| ("made", of.made))).with(Some(("made", object.made)));
            passed.faults.push(hit.graded(Severity::Warning, Some(PASSES)));
        }
        if let Some(dead) = object.dead {
            let name = &facts.function.name;
            let what =
                format!("{name} sets argument {} to a {} that was released before", setting.index, kind.name);
            let hit = Hit::new("use-after-release", format!("{name} argument"), what, ("use", call));
            let hit = hit.with(Some(("release", dead))).with(Some(("made", object.made)));
            passed.faults.push(hit);
        }
    }

    fn died(&mut self, key: Key, kind: &Kind) {
        self.epoch += u64::from(kind.memory);
        self.dead.push_back(key);
        self.count_unused(&key);
        while self.dead.len() > REMEMBERED {
            let Some(oldest) = self.dead.pop_front() else { break };
            if self.objects.get(&oldest).is_some_and(|o| o.dead.is_some()) {
                self.objects.remove(&oldest);
            }
        }
    }

    fn count_unused(&mut self, key: &Key) {
        if let Some(object) = self.objects.get(key).filter(|o| !o.used) {
            self.unused.entry(object.made.function).or_insert((0, object.made)).0 += 1;
        }
    }

    /// A call ends.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        failed: bool,
        out: &Values<'_>,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let pid = passed.call.pid;
        if failed {
            self.take_back(passed);
        }
        if passed.root && passed.handles.len() > 1 {
            self.contexts(passed, facts, failed, knowledge, findings);
        }
        if failed {
            // Some platforms hand out a handle together with an error; whose it is nobody knows.
            for (place, _) in &facts.makes {
                out.all(*place).iter().for_each(|handle| self.objects.remove_dead(pid, *handle));
            }
            return;
        }
        if facts.function.resets {
            self.objects.remove_process(pid);
            return;
        }
        let context = if facts.makes.is_empty() { 0 } else { self.context_of(passed, knowledge) };
        let flags = facts.numbers.flags.map(|bits| bits.means);
        for (place, kind) in &facts.makes {
            for &handle in out.all(*place).iter().filter(|handle| **handle != 0) {
                self.objects.remove_dead(pid, handle);
                self.made(passed, (pid, *kind, handle), (context, flags), knowledge);
            }
        }
        // An API handed it out, so it is there, also for one above or below, where its type has
        // another name.
        for (place, _) in &facts.mentions {
            out.all(*place).iter().for_each(|handle| self.objects.remove_dead(pid, *handle));
        }
        for place in &facts.answers {
            let words = out.all(*place).chunks(8).filter_map(word);
            words.for_each(|handle| self.objects.remove_dead(pid, handle));
        }
    }

    fn made(
        &mut self,
        passed: &Passed,
        key: Key,
        (context, flags): (u64, Option<&Flags>),
        knowledge: &Knowledge<'_>,
    ) {
        if !passed.root {
            self.objects.remove(&key);
            return;
        }
        if self.objects.len() >= KEPT && self.objects.get(&key).is_none() {
            self.overflow = true;
            return;
        }
        let about = knowledge.kind(key.1);
        let own = about.is_some_and(|kind| kind.context);
        let holds = |kind: KindId| knowledge.kind(kind).is_some_and(|kind| kind.memory);
        self.epoch += u64::from(holds(key.1));
        // A part of another object, or what it is made of.
        let shares = passed.handles.iter().any(|(_, kind, _)| holds(*kind));
        let bits = |mask: fn(&Flags) -> u64| flags.is_some_and(|flags| mask(flags) & passed.flags != 0);
        let memory = Contents {
            foreign: flags.is_none() || shares || bits(|flags| flags.content),
            only_read: bits(|flags| flags.only_read),
            only_written: bits(|flags| flags.only_written),
            written: (0, 0),
        };
        let object = Object {
            count: 1,
            made: passed.call,
            dead: None,
            refused: false,
            context: if own { key.2 } else { context },
            bytes: passed.size,
            content: passed.hash,
            used: false,
            command: passed.command,
            memory,
        };
        self.objects.insert(key, object);
    }

    fn take_back(&mut self, passed: &Passed) {
        for (kind, handle) in &passed.ended {
            let Some(kind) = kind else { continue };
            if let Some(object) = self.objects.get_mut(&(passed.call.pid, *kind, *handle)) {
                object.count = object.count.saturating_add(1);
                object.refused = true;
                if object.dead == Some(passed.call) {
                    object.dead = None;
                }
            }
        }
        if passed.retained {
            for (_, kind, handle) in &passed.handles {
                if let Some(object) = self.objects.get_mut(&(passed.call.pid, *kind, *handle)) {
                    object.count = object.count.saturating_sub(1).max(1);
                }
            }
        }
    }

    /// Contexts of what is passed: handle, object and where that was made.
    fn contexts_of(
        &self,
        passed: &Passed,
        knowledge: &Knowledge<'_>,
    ) -> impl Iterator<Item = (u64, u64, Option<Ref>)> {
        passed.handles.iter().filter_map(|(_, kind, handle)| {
            let object = self.objects.get(&(passed.call.pid, *kind, *handle)).filter(|o| o.dead.is_none());
            let own = knowledge.kind(*kind).is_some_and(|kind| kind.context).then_some(*handle);
            let context = own.or(object.map(|o| o.context)).unwrap_or(0);
            (context != 0).then(|| (context, *handle, object.map(|o| o.made)))
        })
    }

    /// The context that a call is about; 0 if it is not known.
    pub fn context_of(&self, passed: &Passed, knowledge: &Knowledge<'_>) -> u64 {
        self.contexts_of(passed, knowledge).next().map_or(0, |(context, ..)| context)
    }

    fn contexts(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        failed: bool,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let mut contexts = self.contexts_of(passed, knowledge);
        let Some((first, handle, made)) = contexts.next() else { return };
        let Some((other, second, other_made)) = contexts.find(|(context, ..)| *context != first) else {
            return;
        };
        let name = &facts.function.name;
        let what = format!(
            "{name} is passed {handle:#x} of context {first:#x} together with {second:#x} of context {other:#x}"
        );
        let hit = Hit::new("wrong-context", name, what, ("call", passed.call));
        let hit = hit.with(made.map(|m| ("made", m))).with(other_made.map(|m| ("made", m)));
        findings.add(match failed {
            true => hit,
            false => hit.graded(Severity::Warning, Some(PASSES)),
        });
    }

    /// How big an object is that is there.
    pub fn bytes(&self, pid: i64, object: (KindId, u64)) -> Option<(u64, Ref)> {
        let object = self.objects.get(&(pid, object.0, object.1)).filter(|o| o.dead.is_none())?;
        Some((object.bytes?, object.made))
    }

    /// What an object was made from and by what, if it is there.
    pub fn content(&self, pid: i64, object: (KindId, u64)) -> Option<(u64, FunctionId)> {
        let object = self.objects.get(&(pid, object.0, object.1)).filter(|o| o.dead.is_none())?;
        Some((object.content, object.made.function))
    }

    /// The command that an event stands for; none if it is not known.
    pub fn command_of(&self, pid: i64, event: (KindId, u64)) -> Option<Id> {
        let object = self.objects.get(&(pid, event.0, event.1))?;
        Some(object.command).filter(|id| *id > 0)
    }

    /// From now on an event stands for this command.
    pub fn stands_for(&mut self, pid: i64, event: (KindId, u64), command: Id) {
        if let Some(object) = self.objects.get_mut(&(pid, event.0, event.1)) {
            object.command = command;
        }
    }

    /// An object that is there, or was.
    pub fn object(&self, pid: i64, object: (KindId, u64)) -> Option<&Object> {
        self.objects.get(&(pid, object.0, object.1))
    }

    /// An object that is there.
    pub fn alive(&mut self, pid: i64, object: (KindId, u64)) -> Option<&mut Object> {
        self.objects.get_mut(&(pid, object.0, object.1)).filter(|object| object.dead.is_none())
    }

    /// Whether something of this handle is there, or was, of whatever kind.
    pub fn knows(&self, pid: i64, handle: u64) -> bool {
        self.objects.of_handle(pid, handle).next().is_some()
    }

    /// Whether an object is known to be there.
    pub fn is_alive(&self, pid: i64, object: (KindId, u64)) -> bool {
        self.objects.get(&(pid, object.0, object.1)).is_some_and(|o| o.dead.is_none())
    }

    /// Whether something of this handle was made since.
    pub fn is_newer(&self, pid: i64, handle: u64, since: u64) -> bool {
        self.objects.of_handle(pid, handle).any(|object| object.made.start >= since)
    }

    /// What an object was made by and its size, for whoever counts allocations.
    pub fn origin(&self, pid: i64, object: (KindId, u64)) -> Option<(FunctionId, u64)> {
        let object = self.objects.get(&(pid, object.0, object.1))?;
        Some((object.made.function, object.bytes?))
    }

    /// The trace has ended: objects that are still there, and events without a use.
    pub fn finish(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) -> Leaks {
        let mut leaks = Leaks::new();
        let mut alive: Vec<Key> =
            self.objects.iter().filter(|(_, o)| o.dead.is_none()).map(|(key, _)| key).collect();
        alive.sort_by_key(|key| self.objects.get(key).map(|o| (o.made.start, key.2, *key)));
        for key in alive {
            self.count_unused(&key);
            let (Some(object), Some(kind)) = (self.objects.get(&key), knowledge.kind(key.1)) else {
                continue;
            };
            // A release that failed is shown as such.
            if kind.leaks && !object.refused {
                let place = (key.0, object.made.function, kind.name.clone());
                let leak = leaks.entry(place).or_insert_with(|| Leak::new(object.made));
                leak.add(object.made.start, object.bytes);
            }
        }
        let mut unused: Vec<_> =
            self.unused.iter().map(|(function, (n, first))| (*function, *n, *first)).collect();
        unused.sort_by_key(|(function, ..)| *function);
        for (function, count, first) in unused {
            let Some(facts) = knowledge.of(function).filter(|_| count >= UNUSED_EVENTS) else { continue };
            let made = facts.makes.iter().filter_map(|(_, kind)| knowledge.kind(*kind));
            if !made.clone().any(|kind| kind.event) {
                continue;
            }
            let name = &facts.function.name;
            let what = format!("{name} created events that were never waited for or queried");
            findings.add(Hit::new("event-unused", name, what, ("made", first)).times(count));
        }
        leaks
    }
}

/// Whether a function looks at the object that it is passed as a parameter: to record an event is not yet that.
fn is_use(facts: &Facts<'_>, at: u16) -> bool {
    let by_value = || facts.function.params.get(usize::from(at)).is_some_and(|param| param.pointers == 0);
    !(facts.marks && by_value())
}

#[cold]
fn twice(passed: &Passed, facts: &Facts<'_>, kind: &Kind, object: &Object, dead: Ref) -> Hit {
    let name = &facts.function.name;
    let what = format!("{name} releases a {} whose last reference was released before", kind.name);
    let hit = Hit::new("double-release", name, what, ("again", passed.call));
    hit.with(Some(("first", dead))).with(Some(("made", object.made)))
}

#[cold]
fn late(passed: &Passed, facts: &Facts<'_>, kind: &Kind, object: &Object, dead: Ref) -> Hit {
    let name = &facts.function.name;
    let what = format!("{name} uses a {} that was released before", kind.name);
    let hit = Hit::new("use-after-release", name, what, ("use", passed.call));
    let hit = hit.with(Some(("release", dead))).with(Some(("made", object.made)));
    match kind.counted {
        // Another object may hold it; the walk grades it up if the call fails.
        true => hit.graded(Severity::Warning, Some("another object may still hold a reference to it")),
        false => hit,
    }
}
