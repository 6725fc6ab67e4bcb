//! What objects go through, and what breaks it: rules of APIs whose model has such roles (`submit`, `reset`, `owner`, …) and
//! tables (`made`, `engines`).
//!
//! ```text
//!  duties     what each function does to states, once per trace
//!    ├── headers     wrong-tag, uninitialized-next
//!    ├── exclusive   concurrent-use
//!    ├── owners      outlives-owner, slot-in-use, wrong-queue
//!    ├── engines     wrong-engine, engines-not-asked
//!    ├── homes       wrong-context of memory, overlapping-allocation
//!    ├── lists       list-state
//!    ├── flights     event-not-reset, released-in-use: by `lanes`
//!    ├── deadlocks   deadlock, event-never-set
//!    └── failed      null-argument, unknown-object, not-initialized
//! ```

mod deadlocks;
mod engines;
mod exclusive;
mod failed;
mod flights;
mod headers;
mod homes;
mod lanes;
mod lists;
mod owners;

use hetrace_ctf::read::Event;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::values::Values;

use self::engines::{EngineGroups, On};
use self::exclusive::Exclusive;
use self::failed::Failed;
use self::flights::{Flights, Launch};
use self::homes::Homes;
use self::lanes::Op;
use self::lists::{List, Lists};
use self::owners::Owners;
use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit};
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::passed::Passed;
use super::span::Span;
use crate::lint::duties::{Duties, MadeNow, handles_of, number};

/// What is followed of states.
#[derive(Debug, Default)]
pub(super) struct States {
    exclusive: Exclusive,
    owners: Owners,
    engines: EngineGroups,
    homes: Homes,
    failed: Failed,
    lists: Lists,
    /// What queues were made for, and whether calls that hand them something wait.
    queues: QuickMap<(i64, u64), (Option<On>, bool)>,
    /// Pools whose events do not stay signalled, or are signalled elsewhere.
    others: QuickMap<(i64, u64), ()>,
    flights: QuickMap<i64, Flights>,
    /// Addresses that kernels were passed, by process and kernel: which argument, and its value.
    arguments: QuickMap<(i64, u64), Vec<(u64, u64)>>,
}

impl States {
    /// A call begins.
    #[inline]
    pub fn entry(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (values, event): (&Values<'_>, &Event<'_, '_>),
        knowledge: &Knowledge<'_>,
    ) {
        if let Some(duties) = &facts.duties {
            self.begins(passed, facts, duties, (values, event), knowledge);
        }
    }

    fn begins(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        (values, event): (&Values<'_>, &Event<'_, '_>),
        knowledge: &Knowledge<'_>,
    ) {
        passed.made = duties.made.as_ref().map(|made| made.of(values)).unwrap_or_default();
        passed.device = duties.engines.and_then(|(of, ..)| number(values, of));
        if duties.made.is_some() {
            // Devices are made by nobody: they are no kind of object.
            let device =
                |p: &hetrace_model::Param| Some(&p.base) == knowledge.device_of(passed.call.function);
            let at = facts.function.params.iter().position(device).and_then(|at| u16::try_from(at).ok());
            passed.device = at.and_then(|at| number(values, at));
        }
        if !passed.root {
            return;
        }
        if !duties.headers.is_empty() {
            headers::faults(passed, facts, &duties.headers, event);
        }
        if duties.exclusive {
            passed.faults.extend(self.exclusive.entry(passed, facts, knowledge));
        }
        if duties.owner {
            passed.faults.extend(self.owners.ends(passed, facts, knowledge));
        }
        if duties.idle {
            passed.faults.extend(self.in_use(passed, facts, duties, knowledge));
        }
        let flights = self.flights.get(&passed.call.pid);
        passed.faults.extend(lists::faults(passed, facts, duties, (&self.lists, flights), knowledge));
        if duties.submit {
            self.submits(passed, facts, duties, knowledge);
        }
        if duties.appends {
            self.on_engine(passed, facts, duties, knowledge);
        }
    }

    /// What a call ends is in use by a command.
    fn in_use(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        knowledge: &Knowledge<'_>,
    ) -> Option<Hit> {
        let pid = passed.call.pid;
        let flights = self.flights.get(&pid)?;
        let name = &facts.function.name;
        let freed = passed.freed.iter().find_map(|address| {
            let home = self.homes.around(pid, *address).filter(|home| home.start == *address)?;
            let span = Span { object: None, start: home.start, bytes: home.bytes };
            Some((format!("{name} frees {address:#x}"), flights.using(&span)?))
        });
        let object = || {
            let (_, kind, handle) = *passed.handles.first().filter(|_| facts.gives_back.is_some())?;
            let about = knowledge.kind(kind)?;
            let flying = flights.find(|lane, flying| {
                (about.queue && (lane == handle || flying.list == handle)) || flying.op.uses(kind, handle)
            })?;
            Some((format!("{name} ends a {}", about.name), flying))
        };
        let (what, flying) = freed.or_else(object).filter(|_| !duties.reopen)?;
        let user = knowledge.of(flying.op.call.function).map_or("a command", |facts| &facts.function.name);
        let what = format!("{what} that {user} uses, whose command may not be over");
        let hit = Hit::new("released-in-use", format!("{name} {user}"), what, ("ends", passed.call));
        let hit = hit.with(Some(("uses", flying.op.call)));
        Some(hit.with((flying.by != flying.op.call).then_some(("submitted", flying.by))))
    }

    /// Command buffers are submitted: to the right queue, by the right fence, on the right engines.
    fn submits(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        knowledge: &Knowledge<'_>,
    ) {
        let (pid, name) = (passed.call.pid, &facts.function.name);
        let lists: Vec<(KindId, u64)> =
            duties.list.into_iter().flat_map(|at| handles_of(&passed.handles, at)).collect();
        if lists.is_empty() {
            let what = format!("{name} is passed nothing to submit");
            passed.faults.push(Hit::new(
                "null-argument",
                format!("{name} nothing"),
                what,
                ("call", passed.call),
            ));
        }
        let queue = passed.queue.unwrap_or(0);
        let queues = passed.handles.iter().find(|(_, _, handle)| *handle == queue).map(|(_, kind, _)| *kind);
        let fence = duties.event.and_then(|at| handles_of(&passed.handles, at).next());
        if let Some(((kind, fence), queues)) = fence.zip(queues)
            && let Some((own, made)) = self.owners.parent((pid, kind, fence), queues)
            && own != queue
        {
            let kind = knowledge.kind(kind).map_or("fence", |kind| &kind.name);
            let what = format!("{name} is passed a {kind} of queue {own:#x} together with queue {queue:#x}");
            let hit = Hit::new("wrong-queue", &**name, what, ("call", passed.call));
            passed.faults.push(hit.with(Some(("made", made))));
        }
        let on = self.queues.get(&(pid, queue)).and_then(|(on, _)| *on);
        let asked = on.and_then(|on| Some((on, self.engines.only_copies(pid, &on)?)));
        for (_, handle) in lists {
            let launch = self.lists.get(&(pid, handle)).and_then(|list| list.ops.iter().find(|op| op.launch));
            if let Some(((on, asked), op)) = asked.zip(launch) {
                let what = format!("{name} submits kernels to engines that only copy");
                let hit = Hit::new("wrong-engine", format!("{name} copies"), what, ("call", passed.call));
                let hit = hit.with(Some(("launch", op.call))).with(Some(("queue", on.made)));
                passed.faults.push(hit.with(Some(("asked", asked))));
            }
        }
    }

    /// A kernel is appended to what runs where there are none.
    fn on_engine(&mut self, passed: &mut Passed, facts: &Facts<'_>, duties: &Duties<'_>, _: &Knowledge<'_>) {
        if !facts.common.launches {
            return;
        }
        let pid = passed.call.pid;
        let lists = duties.list.into_iter().flat_map(|at| handles_of(&passed.handles, at));
        let on = lists.filter_map(|(_, handle)| self.lists.get(&(pid, handle))?.on).next();
        let Some((on, asked)) = on.and_then(|on| Some((on, self.engines.only_copies(pid, &on)?))) else {
            return;
        };
        let name = &facts.function.name;
        let what = format!("{name} launches a kernel on engines that only copy");
        let hit = Hit::new("wrong-engine", format!("{name} launch"), what, ("call", passed.call));
        passed.faults.push(hit.with(Some(("list", on.made))).with(Some(("asked", asked))));
    }

    /// A call never returned, and the program ended: what it was passed as NULL.
    pub fn ended_in(passed: &Passed, facts: &Facts<'_>, knowledge: &Knowledge<'_>) -> Option<Hit> {
        failed::null(passed, facts, knowledge)
    }

    /// A call ends.
    #[inline]
    pub fn exit(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        (failed, out): (bool, &Values<'_>),
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        if failed {
            if passed.root {
                self.failed.failed(passed, facts, (lifetimes, &self.homes), knowledge, findings);
            }
        } else if !facts.mentions.is_empty() || !passed.root || facts.duties.is_some() {
            self.failed.succeeded(passed, facts, out, knowledge.api_of(passed.call.function));
        }
        if let Some(duties) = &facts.duties {
            self.ends(passed, facts, duties, (failed, out), (lifetimes, knowledge, findings));
        } else if !failed && facts.function.resets {
            self.homes.reset(passed.call.pid);
        }
    }

    fn ends(
        &mut self,
        passed: &mut Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        (failed, out): (bool, &Values<'_>),
        (lifetimes, knowledge, findings): (&Lifetimes, &Knowledge<'_>, &mut Findings),
    ) {
        let pid = passed.call.pid;
        if duties.exclusive {
            self.exclusive.exit(passed);
        }
        if passed.root && (facts.transfers || duties.appends) {
            self.moved(passed, facts, duties, (failed, lifetimes), (knowledge, findings));
        }
        if let (Some(device), Some(engine), true) = (passed.device, passed.made.engine, passed.root) {
            let hit = self.engines.chosen(passed, facts, (device, engine), passed.made.index);
            hit.into_iter().for_each(|hit| findings.add(hit));
        }
        if failed {
            return;
        }
        if let Some((of, list, means)) = duties.engines {
            let _ = of;
            if let Some(device) = passed.device {
                self.engines.answered(passed, device, (list, means), out);
            }
        }
        self.gone(passed, lifetimes);
        if facts.allocation.is_some() {
            let hit = self.homes.allocated(passed, facts, out, duties.context);
            hit.into_iter().for_each(|hit| findings.add(hit));
        }
        for (place, kind) in &facts.makes {
            if facts.common.enqueues {
                continue;
            }
            for handle in out.all(*place).iter().filter(|handle| **handle != 0) {
                self.made(passed, facts, duties, (*kind, *handle), (knowledge, findings));
            }
        }
        if duties.sets
            && let Some(setting) = passed.argument
        {
            let set = self.arguments.entry((pid, setting.of)).or_default();
            set.retain(|(index, _)| *index != setting.index);
            set.extend(setting.value.map(|value| (setting.index, value)));
        }
        self.listed(passed, facts, duties, (knowledge, findings));
        // States that are no failure are no success of waiting, either.
        if duties.waits && out.first(hetrace_trace::values::Place::Result) == Some(0) {
            self.waited(passed, facts, (knowledge, findings));
        }
    }

    /// Objects and memory that a call has ended.
    fn gone(&mut self, passed: &Passed, lifetimes: &Lifetimes) {
        let pid = passed.call.pid;
        for address in &passed.freed {
            self.homes.ended(pid, *address);
        }
        for (kind, handle) in &passed.ended {
            let Some(kind) = kind.filter(|kind| !lifetimes.is_alive(pid, (*kind, *handle))) else { continue };
            self.owners.gone((pid, kind, *handle));
            self.lists.remove(&(pid, *handle));
            self.queues.remove(&(pid, *handle));
            self.arguments.remove(&(pid, *handle));
            if let Some(flights) = self.flights.get_mut(&pid) {
                flights.gone(*handle);
            }
        }
    }

    /// An object was made.
    fn made(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        (kind, handle): (KindId, u64),
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        let (pid, now): (i64, &MadeNow) = (passed.call.pid, &passed.made);
        let hit = self.owners.made(passed, duties, now, (kind, handle), (facts, knowledge));
        hit.into_iter().for_each(|hit| findings.add(hit));
        self.others.remove(&(pid, handle));
        self.lists.remove(&(pid, handle));
        let Some(by) = &duties.made else {
            // From where it comes others may signal it.
            self.others.insert((pid, handle), ());
            return;
        };
        let on = passed.device.zip(now.engine);
        let on = on.map(|(device, engine)| On { device, engine, made: passed.call });
        if let Some(list) = List::new(passed.call, duties, now, on) {
            self.lists.insert((pid, handle), list);
        } else if by.means.engine.is_some() {
            self.queues.insert((pid, handle), (on, now.waits));
        }
        if now.shared || now.more {
            self.others.insert((pid, handle), ());
        }
        let mut owners = duties.parents.iter().flat_map(|at| handles_of(&passed.handles, *at));
        if by.means.stays && !owners.any(|(_, owner)| self.others.contains_key(&(pid, owner))) {
            let event = flights::Event { kind, made: passed.call, set: None, seen: false, last: None };
            self.flights.entry(pid).or_default().events.insert(handle, event);
        }
    }

    /// Memory of one context in a command buffer of another, and NULL.
    fn moved(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        (failed, lifetimes): (bool, &Lifetimes),
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        let context = lifetimes.context_of(passed, knowledge);
        if context != 0 && !duties.has_two_contexts {
            let hit = self.homes.strange(passed, facts, context, failed);
            hit.into_iter().for_each(|hit| findings.add(hit));
        }
        if !failed
            && [passed.source, passed.target]
                .into_iter()
                .flatten()
                .any(|s| s.object.is_none() && s.start == 0)
        {
            failed::null(passed, facts, knowledge).into_iter().for_each(|hit| findings.add(hit));
        }
    }

    /// A call has closed, emptied, appended to or submitted a command buffer, or reset or signalled an event.
    fn listed(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duties: &Duties<'_>,
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        let pid = passed.call.pid;
        let event =
            duties.event.and_then(|at| handles_of(&passed.handles, at).next()).map(|(_, event)| event);
        if duties.list.is_none() {
            let flights = self.flights.entry(pid).or_default();
            if let Some(event) = event.filter(|_| duties.reset) {
                flights.reset(event);
            } else if let Some(event) = event.filter(|_| duties.signal) {
                flights.signalled(event, passed.call, (knowledge, findings));
            }
            return;
        }
        let handles = duties.list.into_iter().flat_map(|at| handles_of(&passed.handles, at)).map(|(_, h)| h);
        let handles: Vec<u64> = handles.collect();
        if duties.submit {
            return self.submitted(passed, &handles, event, (knowledge, findings));
        }
        for handle in handles {
            let op = if duties.appends { Some(self.op(passed, facts, duties, event)) } else { None };
            let Some(list) = self.lists.get_mut(&(pid, handle)) else { continue };
            match op {
                Some(op) if list.immediate => {
                    let (to, waits) = (lists::launch_of(list, handle, passed.call), list.waits);
                    let flights = self.flights.entry(pid).or_default();
                    let unit = handle;
                    flights.fly(op, to, unit, (knowledge, findings));
                    if waits {
                        flights.all_over(handle, (knowledge, findings));
                    }
                }
                Some(op) => list.append(op),
                None if duties.close => list.closed = Some(passed.call),
                None if duties.reopen => (list.closed, list.partial) = (None, false),
                // What changes it otherwise is not followed.
                None if !facts.asks && !facts.common.syncs && facts.gives_back.is_none() => {
                    self.lists.remove(&(pid, handle));
                    continue;
                }
                None => {}
            }
            if duties.reopen
                && let Some(list) = self.lists.get_mut(&(pid, handle))
            {
                list.ops.clear();
            }
        }
    }

    /// What an appended command does.
    fn op(&self, passed: &Passed, facts: &Facts<'_>, duties: &Duties<'_>, event: Option<u64>) -> Op {
        let pid = passed.call.pid;
        let mut spans: Vec<Span> = Vec::new();
        spans.extend(
            [passed.source, passed.target].into_iter().flatten().filter(|span| span.object.is_none()),
        );
        let set = passed.kernel.and_then(|kernel| self.arguments.get(&(pid, kernel)));
        let values = set.into_iter().flatten().filter_map(|(_, value)| self.homes.around(pid, *value));
        spans.extend(values.map(|home| Span { object: None, start: home.start, bytes: home.bytes }));
        let awaits =
            duties.awaits.iter().flat_map(|at| handles_of(&passed.handles, *at)).map(|(_, event)| event);
        let objects =
            passed.handles.iter().filter(|(at, _, handle)| *handle != 0 && Some(*at) != duties.list);
        Op {
            call: passed.call,
            waits: awaits.collect(),
            event: event.unwrap_or(0),
            resets: duties.reset,
            barrier: facts.barrier,
            launch: facts.common.launches,
            spans,
            objects: objects.map(|(_, kind, handle)| (*kind, *handle)).collect(),
        }
    }

    /// Command buffers were handed to a queue.
    fn submitted(
        &mut self,
        passed: &Passed,
        lists: &[u64],
        signals: Option<u64>,
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        let (pid, by) = (passed.call.pid, passed.call);
        let Some(lane) = passed.queue.filter(|queue| *queue != 0) else { return };
        let flights = self.flights.entry(pid).or_default();
        for handle in lists {
            let Some(list) = self.lists.get(&(pid, *handle)).filter(|list| !list.immediate) else { continue };
            let unit = flights.unit();
            let to = Launch { lane, list: *handle, by, in_order: list.in_order };
            for op in &list.ops {
                flights.fly(op.clone(), to, unit, (knowledge, findings));
            }
        }
        if let Some(event) = signals {
            let unit = flights.unit();
            let op = Op {
                call: by,
                waits: Vec::new(),
                event,
                resets: false,
                barrier: true,
                launch: false,
                spans: Vec::new(),
                objects: passed
                    .handles
                    .iter()
                    .filter(|(.., h)| *h == event)
                    .map(|(_, k, h)| (*k, *h))
                    .collect(),
            };
            flights.fly(op, Launch { lane, list: 0, by, in_order: true }, unit, (knowledge, findings));
        }
        let immediate = self.lists.get(&(pid, lane)).is_some_and(|list| list.waits);
        if immediate || self.queues.get(&(pid, lane)).is_some_and(|(_, waits)| *waits) {
            flights.all_over(lane, (knowledge, findings));
        }
    }

    /// The program has waited, or seen that something is over.
    fn waited(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        (knowledge, findings): (&Knowledge<'_>, &mut Findings),
    ) {
        let Some(flights) = self.flights.get_mut(&passed.call.pid) else { return };
        let Some((_, kind, handle)) = passed.handles.first().copied() else {
            if facts.common.syncs {
                flights.everything_over((knowledge, findings));
            }
            return;
        };
        match knowledge.kind(kind) {
            Some(about) if about.event => flights.seen(handle, passed.call, (knowledge, findings)),
            Some(about) if about.queue => flights.all_over(handle, (knowledge, findings)),
            _ if facts.common.syncs => flights.everything_over((knowledge, findings)),
            _ => {}
        }
    }

    /// The trace has ended.
    pub fn finish(&self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let mut all: Vec<_> = self.flights.iter().collect();
        all.sort_by_key(|(pid, _)| **pid);
        for (_, flights) in all {
            deadlocks::finish(flights, knowledge, findings);
        }
    }
}
