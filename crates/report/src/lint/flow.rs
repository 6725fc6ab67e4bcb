//! How the program drives its devices: waiting, polling, launching, and doing again what is done.

use super::facts::{Facts, Knowledge};
use super::findings::{Findings, Hit, Ref};
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::passed::Passed;
use super::rules::Severity;
use super::sum::Sum;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::milestones::Milestones;
use hetrace_trace::spans::{Command, CommandKind};
use hetrace_trace::trace::FunctionId;
use hetrace_trace::values::Values;

/// Entries of each table.
const KEPT: usize = 1 << 20;
/// Fewer launches say nothing.
const LAUNCHES: u64 = 10;
/// Questions in a row from which on it is a loop.
const POLLS: u64 = 1_000;
/// A thread that asks less often has time to rest.
const POLL_PERIOD: u64 = 10_000;
/// Less time than this is not worth a word.
const POLL_TIME: u64 = 1_000_000;
/// Device time that small launches leave unused before it is worth a word.
const UNUSED: u64 = 1_000_000;
/// Of so many compute units one may be without a group.
const UNUSED_PART: u64 = 10;
/// Items from which on groups of one are not meant so.
const SINGLE_ITEMS: u64 = 64;
/// Builds of the same code again.
const BUILDS: u64 = 2;

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Process and thread.
    ids: (i64, i64),
    /// A launch that nothing has waited for.
    pending: bool,
    launches: u64,
    waited: u64,
    /// When it came back from waiting for all that it had launched; none once it has launched again.
    back: Option<u64>,
    /// How long the device had nothing of it to do then, until the next launch.
    idle_ns: u64,
    first_wait: Option<Ref>,
    polls: Option<Polls>,
}

/// Equal questions in a row.
#[derive(Clone, Copy, Debug)]
struct Polls {
    first: Ref,
    count: u64,
    since: u64,
    until: u64,
}

/// What was built last from some code.
#[derive(Clone, Copy, Debug)]
struct Build {
    launches: u64,
    /// What it made, if it makes something itself.
    product: Option<(KindId, u64)>,
    /// Of the code only the address is known.
    by_address: bool,
    again: Sum,
}

/// Work in queues of a process, by API.
#[derive(Clone, Copy, Debug)]
struct Queues {
    default: u64,
    others: u64,
    first: Ref,
}

/// All that is counted.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// By position.
    threads: Vec<Thread>,
    /// By the position of the process.
    launches: Vec<Milestones>,
    queues: QuickMap<(i64, usize), Queues>,
    small: QuickMap<(i64, u32), (Sum, u64, u64)>,
    /// Launches in groups of one item, and how many items at most.
    single: QuickMap<(i64, u32), (Sum, u64)>,
    builds: QuickMap<(i64, FunctionId, u64, u64), Build>,
}

impl Flow {
    /// How often a process has launched.
    pub fn launches(&self, process: usize) -> u64 {
        self.launches.get(process).map_or(0, Milestones::total)
    }

    /// How often a process has launched since a time.
    pub fn launches_since(&self, process: usize, time: u64) -> u64 {
        self.launches.get(process).map_or(0, |launches| launches.since(time))
    }

    fn thread(&mut self, at: usize, ids: (i64, i64)) -> &mut Thread {
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, Thread::default);
        }
        let thread = &mut self.threads[at];
        thread.ids = ids;
        thread
    }

    /// A call of the program itself has succeeded.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        end: u64,
        out: &Values<'_>,
        (lifetimes, knowledge): (&Lifetimes, &Knowledge<'_>),
        findings: &mut Findings,
    ) {
        let (pid, call) = (passed.call.pid, passed.call);
        let duration = end.saturating_sub(call.start);
        if facts.common.polls {
            self.poll(passed.by.thread, call, (1, call.start, end), knowledge, findings);
        }
        let thread = self.thread(passed.by.thread, (pid, call.tid));
        if !facts.common.polls {
            thread.end_polls(knowledge, findings);
        }
        if facts.common.launches {
            thread.pending = true;
            thread.launches += 1;
            let idle = thread.back.take().map_or(0, |back| end.saturating_sub(back));
            thread.idle_ns = thread.idle_ns.saturating_add(idle);
        }
        if passed.waits && std::mem::take(&mut thread.pending) {
            thread.waited += 1;
            thread.back = Some(end);
            thread.first_wait = thread.first_wait.or(Some(call));
        }
        if facts.common.launches {
            self.launched(passed.by.process, call.start);
        }
        if let Some(queue) = passed.queue.filter(|_| facts.common.enqueues && !facts.function.own_queue) {
            let api = usize::from(knowledge.api_of(call.function));
            let queues = self.queues.entry((pid, api));
            let queues = queues.or_insert(Queues { default: 0, others: 0, first: call });
            if queue == 0 {
                if queues.default == 0 {
                    queues.first = call;
                }
                queues.default += 1;
            } else {
                queues.others += 1;
            }
        }
        if facts.builds {
            self.build(passed, facts, duration, out, lifetimes, knowledge);
        }
    }

    /// A quiet call of the program itself has succeeded: see [`Facts::quiet`].
    #[inline]
    pub fn quiet(&mut self, thread: usize, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        if let Some(thread) = self.threads.get_mut(thread).filter(|thread| thread.polls.is_some()) {
            thread.end_polls(knowledge, findings);
        }
    }

    fn launched(&mut self, process: usize, time: u64) {
        if self.launches.len() <= process {
            self.launches.resize_with(process + 1, Milestones::default);
        }
        self.launches[process].see(time, 1);
    }

    fn build(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        duration: u64,
        out: &Values<'_>,
        lifetimes: &Lifetimes,
        knowledge: &Knowledge<'_>,
    ) {
        let (pid, function) = (passed.call.pid, passed.call.function);
        let launches = self.launches(passed.by.process);
        let product = facts.makes.first().and_then(|(place, kind)| Some((*kind, out.first(*place)?)));
        let (content, maker) = match passed.handles.first().filter(|_| product.is_none()) {
            Some((_, kind, handle)) => match lifetimes.content(pid, (*kind, *handle)) {
                Some(content) => content,
                // What is not known is not the same as anything.
                None => return,
            },
            None => (0, function),
        };
        let by_address = knowledge.of(maker).is_some_and(|maker| maker.reads_bytes);
        let context = lifetimes.context_of(passed, knowledge);
        if (product.is_none() && context == 0) || self.builds.len() > KEPT {
            return;
        }
        let key = (pid, function, context, content.rotate_left(1) ^ passed.hash);
        let new = Build { launches, product, by_address, again: Sum::new(passed.call) };
        match self.builds.get_mut(&key) {
            None => drop(self.builds.insert(key, new)),
            Some(build) => {
                let needed = build.product.is_some_and(|p| lifetimes.is_alive(pid, p)) && context == 0;
                if launches > build.launches && !needed {
                    build.again.add(duration);
                }
                (build.launches, build.product) = (launches, product);
            }
        }
    }

    /// Questions of a thread for a state: `count` of them from `since` to `until`.
    pub fn poll(
        &mut self,
        thread: usize,
        call: Ref,
        (count, since, until): (u64, u64, u64),
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        let thread = self.thread(thread, (call.pid, call.tid));
        if let Some(polls) = thread.polls.as_mut().filter(|p| p.first.function == call.function) {
            polls.count = polls.count.saturating_add(count);
            polls.until = until;
            return;
        }
        // Of what a runtime does inside of its own questions nothing is said.
        let within = |inner: (u64, u64), outer: (u64, u64)| outer.0 <= inner.0 && inner.1 <= outer.1;
        let before = thread.polls.as_ref().map(|polls| (polls.since, polls.until));
        if before.is_some_and(|before| within((since, until), before)) {
            return;
        }
        if before.is_none_or(|before| !within(before, (since, until))) {
            thread.end_polls(knowledge, findings);
        }
        thread.polls = Some(Polls { first: call, count, since, until });
    }

    /// A command of a device.
    pub fn command(&mut self, command: &Command<'_>) {
        let Some(times) = command.times else { return };
        let units = command.on_device.map_or(0, |device| u64::from(device.compute_units));
        let geometry = &command.geometry;
        if command.kind != CommandKind::Kernel || geometry.global.is_empty() {
            return;
        }
        let (items, local) = (geometry.global.product(), geometry.local.product());
        if local == 1 && !geometry.local.is_empty() && items >= SINGLE_ITEMS {
            self.single(command, times.duration(), items);
        }
        // Where the platform chooses, there are at most as many groups as items.
        let groups = items / local.max(1);
        if groups.saturating_add(units / UNUSED_PART) >= units || self.small.len() >= KEPT {
            return;
        }
        let idle = u128::from(times.duration()) * u128::from(units - groups) / u128::from(units);
        let function = command.function.map_or(0, |f| f.id);
        let call = cause(command);
        let small = self.small.entry((command.pid, function)).or_insert((Sum::new(call), groups, units));
        small.0.count = small.0.count.saturating_add(command.weight);
        small.0.ns =
            small.0.ns.saturating_add(u64::try_from(idle).unwrap_or(0).saturating_mul(command.weight));
        small.1 = small.1.max(groups);
    }

    /// A kernel runs in groups of one item.
    fn single(&mut self, command: &Command<'_>, duration: u64, items: u64) {
        let function = command.function.map_or(0, |f| f.id);
        if self.single.len() >= KEPT {
            return;
        }
        let single = self.single.entry((command.pid, function)).or_insert((Sum::new(cause(command)), items));
        single.0.count = single.0.count.saturating_add(command.weight);
        single.0.ns = single.0.ns.saturating_add(duration.saturating_mul(command.weight));
        single.1 = single.1.max(items);
    }

    fn finish_threads(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        self.threads.sort_by_key(|thread| thread.ids);
        for thread in &mut self.threads {
            thread.end_polls(knowledge, findings);
            let ids = thread.ids;
            let most = thread.waited.saturating_mul(10) >= thread.launches.saturating_mul(9);
            if let Some(first) = thread.first_wait.filter(|_| thread.waited >= LAUNCHES && most) {
                let what = format!(
                    "thread {} waits {} times for {} launches: the device has nothing to do until it comes back",
                    ids.1, thread.waited, thread.launches
                );
                let hit = Hit::new("sync-after-launch", format!("{ids:?}"), what, ("first wait", first));
                findings.add(hit.times(thread.waited).costs(thread.idle_ns));
            }
        }
    }

    /// The trace has ended.
    pub fn finish(
        &mut self,
        kernel: impl Fn(u32) -> String,
        knowledge: &Knowledge<'_>,
        findings: &mut Findings,
    ) {
        self.finish_threads(knowledge, findings);
        for (key, queues) in sorted(&self.queues) {
            if queues.default >= LAUNCHES && queues.others >= LAUNCHES {
                let what = format!(
                    "{} commands go to the default queue, {} to others: they wait for each other, unless \
                     the others were made not to",
                    queues.default, queues.others
                );
                let hit = Hit::new("default-stream", format!("{key:?}"), what, ("first", queues.first));
                findings.add(hit.times(queues.default));
            }
        }
        for ((pid, function), (sum, groups, units)) in sorted(&self.small) {
            if sum.count >= LAUNCHES && sum.ns >= UNUSED {
                let name = kernel(*function);
                let groups = hetrace_trace::text::plural(*groups, "group");
                let what = format!("{name} is launched in at most {groups} on {units} compute units");
                let hit = Hit::new("small-launch", format!("{pid} {name}"), what, ("first", sum.first));
                findings.add(hit.times(sum.count).costs(sum.ns));
            }
        }
        for ((pid, function), (sum, items)) in sorted(&self.single) {
            let name = kernel(*function);
            let what = format!("{name} is launched in groups of one work-item, up to {items} of them");
            let hit = Hit::new("local-size-one", format!("{pid} {name}"), what, ("first", sum.first));
            findings.add(hit.times(sum.count).costs(sum.ns));
        }
        for (_, build) in sorted(&self.builds) {
            let function = build.again.first.function;
            let Some(facts) = knowledge.of(function).filter(|_| build.again.count >= BUILDS) else {
                continue;
            };
            let name = &facts.function.name;
            let what = format!("{name} builds again what it has built before");
            let hit = Hit::new("build-in-loop", name, what, ("first", build.again.first));
            let hit = hit.times(build.again.count).costs(build.again.ns);
            findings.add(match build.by_address {
                true => hit.graded(Severity::Hint, Some("of the code only the address is in the trace")),
                false => hit,
            });
        }
    }
}

impl Thread {
    fn end_polls(&mut self, knowledge: &Knowledge<'_>, findings: &mut Findings) {
        let Some(polls) = self.polls.take() else { return };
        let span = polls.until.saturating_sub(polls.since);
        if polls.count < POLLS || span < POLL_TIME || span / polls.count > POLL_PERIOD {
            return;
        }
        let Some(facts) = knowledge.of(polls.first.function) else { return };
        let name = &facts.function.name;
        let what = format!("{name} is called {} times in a row without a pause", polls.count);
        findings
            .add(Hit::new("busy-poll", name, what, ("first", polls.first)).times(polls.count).costs(span));
    }
}

/// The call that enqueued a command.
fn cause(command: &Command<'_>) -> Ref {
    let function = FunctionId(u32::MAX);
    Ref { pid: command.pid, tid: command.cause_tid, start: command.cause, function }
}

/// Rows of a table in an order that does not change from run to run.
fn sorted<K: Ord, V>(table: &QuickMap<K, V>) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = table.iter().collect();
    rows.sort_by(|a, b| a.0.cmp(b.0));
    rows
}
