//! The walk that looks for causes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::device::{Device, Evidence, Explained, Place, Ran, Title};
use super::gaps::{Gap, Part as GapPart, Scene, explain, outside};
use super::host::Host;
use super::independent::{Free, Independence};
use super::path::{NodeId, Paths, ROOT, Step, UNSET};
use super::sampled::Sampled;
use super::signals::Signals;
use super::states::by_states;
use super::steps::Steps;
use super::sweep::Part;
use super::threads::{Long, Span, Threads};
use super::waits::{Recent, Waits};
use super::wakes::{Wake, Wakes};
use super::{Options, Window};
use hetrace_trace::budget;
use hetrace_trace::capture::Covered;
use hetrace_trace::facts::{Facts, Work, facts};
use hetrace_trace::hash::QuickMap;
use hetrace_trace::outermost::Outermost;
use hetrace_trace::probes::Border;
use hetrace_trace::spans::{
    At, Call, Command, CommandKind, Fold, Open, Orphan, Times, Unfinished, Visitor, Why,
};
use hetrace_trace::stacks::Sites;
use hetrace_trace::system::{Life, State};
use hetrace_trace::trace::{FunctionId, ThreadId, Trace};
use hetrace_trace::waits::Wait;
use hetrace_trace::watch::{Pace, Stopped};

/// Clocks of devices are not trusted to be wrong by more than this, in nanoseconds.
const MAX_SLACK: u64 = 10_000;
/// Compute units of a device of which it is not known how many it has: at least so many.
const UNITS: f64 = 2.0;
/// Calls of other threads that take so long may be what a thread waits for, in nanoseconds.
const LONG: u64 = 20_000;
/// Threads that were woken and have made no call yet, of which is remembered by whom.
const EARLY: usize = 1 << 16;

/// All that is found out.
pub(super) struct Collector<'t> {
    pace: Pace<'t>,
    pub trace: &'t Trace,
    pub options: &'t Options,
    pub facts: Vec<Facts<'t>>,
    /// The times asked for, once the first event is known.
    pub window: Window,
    pub first: Option<u64>,
    /// When the trace ends.
    pub last: u64,
    pub threads: Threads,
    pub devices: Vec<Device>,
    by_number: QuickMap<u32, usize>,
    by_uuid: HashMap<&'t str, usize>,
    /// All devices as if they were one; none while there is only one.
    pub all: Option<Device>,
    pub steps: Steps<'t>,
    signals: Signals<'t>,
    independence: Independence<'t>,
    pub waits: Waits<'t>,
    pub paths: Paths,
    /// By process and queue: the end of the last command, and the path to it.
    queues: QuickMap<(i64, u32), (u64, NodeId)>,
    wakes: Wakes,
    /// Threads that have been woken and made no call yet: when, and the path to there.
    early: QuickMap<(i64, i64), (u64, NodeId)>,
    /// What calls took, whatever devices did.
    pub host: Host,
    /// The command that ended last, and the path to it.
    pub end: (u64, NodeId),
    /// Only some launches were timed.
    pub sampled: bool,
    /// Commands lost while recording.
    pub lost: u64,
    /// What threads did outside of calls.
    pub samples: Sampled,
    /// The code that makes calls.
    pub sites: Sites<'t>,
    outermost: Outermost,
    slack: u64,
}

impl<'t> Collector<'t> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace, options: &'t Options, samples: Sampled, pace: Pace<'t>) -> Self {
        let slack = trace.manifest().device_error_ns().unwrap_or(0).min(MAX_SLACK);
        let names = trace.names();
        let losses = &trace.manifest().losses;
        let stepped = budget::read(trace);
        Self {
            pace,
            trace,
            options,
            facts: facts(trace),
            window: Window { from: 0, to: u64::MAX },
            first: None,
            last: 0,
            threads: Threads::new(&stepped),
            devices: Vec::new(),
            all: None,
            steps: Steps::new(trace),
            signals: Signals::new(trace),
            independence: Independence::new(trace),
            by_number: QuickMap::default(),
            by_uuid: HashMap::new(),
            waits: Waits::new(trace),
            paths: Paths::default(),
            queues: QuickMap::default(),
            wakes: Wakes::new(trace.system()),
            early: QuickMap::default(),
            host: Host::default(),
            end: (0, ROOT),
            sampled: names.all_launches().any(|(_, all)| all.counted() > 0),
            lost: losses.device_commands,
            samples,
            sites: Sites::new(trace.names().stacks(), ToString::to_string),
            outermost: Outermost::new(trace.functions()),
            slack,
        }
    }

    fn facts(&self, function: FunctionId) -> Facts<'t> {
        self.facts.get(function.index()).copied().unwrap_or_default()
    }

    /// The place of a thread; a new one was outside of calls since the beginning.
    fn thread(&mut self, at: At<'_>) -> usize {
        let (who, first) = (at.who(), self.first.unwrap_or(at.time));
        let known = self.threads.len();
        let place = self.threads.place(at.thread, (who.pid, who.tid), first, at.time);
        if place == known
            && let Some(creator) = self.threads.creator(place)
            && let Some(creator) = self.threads.get_mut(creator)
        {
            // What it waited for is what was done until it was there.
            let (tip, last) = (self.paths.tip(&mut creator.strand), creator.last);
            if let Some(new) = self.threads.get_mut(place) {
                new.strand.rebase(tip);
                new.last = last;
            }
        }
        if place == known {
            self.goes_on(place, (who.pid, who.tid));
        }
        place
    }

    /// A thread that is new here may have been woken before it was: it goes on from there.
    fn goes_on(&mut self, place: usize, who: (i64, i64)) {
        if let Some((time, node)) = self.early.remove(&who)
            && let Some(new) = self.threads.get_mut(place)
        {
            new.strand.rebase(node);
            new.last = time;
        }
    }

    /// A thread was outside of calls until now.
    fn outside_until(&mut self, place: usize, now: u64) {
        let window = self.window;
        let Some(thread) = self.threads.get_mut(place) else { return };
        let (from, whole) = (thread.last, window.of(thread.last, now));
        let blocked = match self.trace.system() {
            Some(system) if whole > 0 => {
                let pieces = system.within(thread.pid, thread.tid, from, now);
                let blocked = pieces.filter(|piece| matches!(piece.state, State::Blocked(_)));
                blocked.map(|piece| window.of(piece.start, piece.end)).fold(0, u64::saturating_add)
            }
            _ => 0,
        };
        thread.strand.spend(Step::Blocked(place as u32), blocked.min(whole));
        thread.strand.spend(Step::Host(place as u32), whole.saturating_sub(blocked));
        thread.last = thread.last.max(now);
    }

    /// The place of a thread that wakes another one, and has made no call. It goes on from where the thread was that began
    /// it; where that one went on since, all before was that one's.
    fn without_calls(&mut self, wake: Wake) -> usize {
        let first = self.first.unwrap_or(wake.time);
        let place = self.threads.other(wake.by, first, wake.time);
        let life = self.trace.system().and_then(|system| system.life(wake.by.0, wake.by.1, wake.time));
        let begun = life.map_or(first, Life::start).clamp(first.min(wake.time), wake.time);
        let creator = self.threads.creator(place);
        if let Some((creator, was)) = creator.and_then(|place| Some((place, self.threads.get_mut(place)?))) {
            let (tip, last) = (self.paths.tip(&mut was.strand), was.last);
            let before = self.window.of(first, begun);
            let Some(new) = self.threads.get_mut(place) else { return place };
            if last <= begun {
                new.strand.rebase(tip);
                new.last = last;
            } else {
                new.strand.spend(Step::Host(creator as u32), before);
                new.last = begun;
            }
        }
        self.goes_on(place, wake.by);
        place
    }

    /// A thread of the program has woken another one, which goes on from there.
    fn woken(&mut self, wake: Wake) {
        let waits = |span: &Span| span.waits || span.polls;
        let waiter = self.threads.find(wake.who.0, wake.who.1);
        let waiting = waiter.and_then(|place| self.threads.get(place)).and_then(|thread| thread.open);
        // What ends a wait for a device is a command.
        if waiting.as_ref().is_some_and(waits) {
            return;
        }
        let by = match self.threads.find(wake.by.0, wake.by.1) {
            Some(by) => by,
            // One of the program's own that has made no call.
            None if wake.by.0 == wake.who.0 && self.threads.len() < EARLY => self.without_calls(wake),
            None => return,
        };
        let window = self.window;
        let open = self.threads.get(by).and_then(|thread| thread.open);
        match (open, self.threads.get_mut(by)) {
            (Some(open), Some(thread)) => {
                let since = open.start.max(thread.last);
                thread.strand.spend(Step::Call(open.function.0), window.of(since, wake.time));
                thread.last = thread.last.max(wake.time);
            }
            _ => self.outside_until(by, wake.time),
        }
        let Some(thread) = self.threads.get_mut(by) else { return };
        let tip = self.paths.tip(&mut thread.strand);
        match waiter.and_then(|place| self.threads.get_mut(place)) {
            Some(thread) if thread.last <= wake.time => {
                thread.strand.rebase(tip);
                thread.last = wake.time;
            }
            Some(_) => {}
            None if self.early.len() < EARLY => {
                self.early.insert(wake.who, (wake.time, tip));
            }
            None => {}
        }
    }

    fn begin(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        let facts = self.facts(call.function);
        if facts.marks {
            return;
        }
        let place = self.thread(at);
        let who = (at.who().pid, call.thread, place);
        let (depends, signals) = self.signals.entry(who, (call.function, call.start), &facts, event);
        if self.signals.has_set() {
            self.path_to_set(place, call.start);
        }
        let free = self.independence.entry((who.0, who.1), call.function, (&facts, depends), event);
        let host = self.outermost.host(call.thread);
        let own = self.outermost.entry(call, self.trace.functions());
        if own {
            // What ran until now goes on when this has ended.
            if let Some(open) =
                self.threads.get_mut(place).and_then(|thread| thread.open).filter(|_| host.is_some())
            {
                self.end_call(at, Span { end: call.start, ..open });
            }
            self.outside_until(place, call.start);
        }
        let site = self.sites.number(call.stack);
        let Some(thread) = self.threads.get_mut(place) else { return };
        if own {
            let waits = facts.is_waiting(event);
            thread.open = Some(Span {
                enqueues: facts.enqueues,
                waits,
                polls: facts.polls,
                site,
                ..Span::new(call.function, call.start, u64::MAX)
            });
        }
        if let Some(open) = thread.open.as_mut().filter(|_| depends || signals > 0) {
            open.depends = true;
            open.signals = signals.max(open.signals);
        }
        if let Some(open) = thread.open.as_mut().filter(|_| free != Free::Unknown) {
            open.free = free;
        }
        if let Some(open) = &mut thread.open
            && open.node == UNSET
            && (facts.enqueues || facts.unknown)
        {
            // Commands will ask for the path to this call.
            open.node = self.paths.tip(&mut thread.strand);
        }
        self.tidy();
    }

    /// An event has been completed: what waits for it waits for all that the thread did until now.
    fn path_to_set(&mut self, place: usize, now: u64) {
        if self.threads.get(place).is_some_and(|thread| thread.open.is_none()) {
            self.outside_until(place, now);
        }
        let Some(thread) = self.threads.get_mut(place) else { return };
        let tip = self.paths.tip(&mut thread.strand);
        self.signals.set_at(tip);
    }

    fn end_call(&mut self, at: At<'_>, span: Span) {
        let (place, room, window) = (self.thread(at), self.threads.room(), self.window);
        let Some(thread) = self.threads.get_mut(place) else { return };
        let open = thread.open.take().filter(|o| o.start == span.start);
        let mut span = match open {
            Some(open) => Span { end: span.end, failed: span.failed, lost: span.lost, ..open },
            None => span,
        };
        if let Some((end, node)) = thread.woken.take() {
            thread.strand.rebase(node);
            thread.last = thread.last.max(end);
        }
        self.host.call(&span, window, self.facts.len());
        let step = Step::Call(span.function.0);
        thread.strand.spend(step, window.of(span.start.max(thread.last), span.end));
        thread.last = thread.last.max(span.end);
        if span.failed || span.lost {
            span.waits = false;
        }
        thread.push(span, room);
        let works = matches!(self.facts(span.function).work, Work::Build | Work::Objects | Work::Other);
        if works && !span.waits && !span.polls && !span.lost && span.end.saturating_sub(span.start) >= LONG {
            let long = Long { start: span.start, end: span.end, function: span.function, place };
            self.threads.remember(at.who().pid, long);
        }
    }

    /// Whether a call of the program's own has ended that takes its time.
    fn ends(&mut self, thread: ThreadId, depth: u32, function: FunctionId) -> bool {
        !self.facts(function).marks && self.outermost.exit(thread, depth)
    }

    /// A call of the program's own has ended. Where it lay inside of one that hosts, that one goes on.
    fn end_own(&mut self, at: At<'_>, who: ThreadId, span: Span) {
        let (place, end) = (self.thread(at), span.end);
        // Of a call that hosted others, the rest.
        let rest = self.threads.get_mut(place).and_then(|thread| thread.open);
        let rest = rest.filter(|open| open.function == span.function && open.start > span.start);
        let start = rest.map_or(span.start, |open| open.start);
        self.end_call(at, Span { start, ..span });
        let host = self.outermost.host(who);
        if let (Some(host), Some(thread)) = (host, self.threads.get_mut(place)) {
            thread.open = Some(Span::new(host.function, end, u64::MAX));
        }
    }

    /// A thread goes on from what it waited for; that counts when its outermost call ends.
    fn waited(&mut self, place: usize, wait: &Wait) {
        let polls = self.facts(wait.function).polls;
        let Some(last) = self.waits.ended(wait, polls, self.window) else { return };
        let woken = self.window.of(last.end, wait.end);
        let tip = self.paths.add(last.node, Step::WakeUp(wait.function.0), woken);
        if let Some(thread) = self.threads.get_mut(place) {
            thread.woken = Some((wait.end, tip));
        }
    }

    fn run(&mut self, at: At<'_>, fold: &Fold) {
        let facts = self.facts(fold.function);
        let place = self.thread(at);
        let wait = self.waits.matcher.fold(at, fold);
        // Calls that were added up have no place in time.
        if fold.summed || !self.outermost.would_be(fold.thread, fold.depth) || facts.marks {
            if let Some(wait) = wait {
                self.waited(place, &wait);
            }
            return;
        }
        let Some(thread) = self.threads.get_mut(place) else { return };
        let start = fold.first.max(thread.last);
        let end = fold.last.max(start);
        self.outside_until(place, start);
        let span =
            Span { failed: fold.error.is_some(), polls: facts.polls, ..Span::new(fold.function, start, end) };
        if let Some(wait) = wait {
            self.waited(place, &wait);
        }
        self.end_call(at, span);
    }

    /// The place of a command's device: one for all processes that see it.
    fn device(&mut self, number: u32) -> usize {
        if let Some(&place) = self.by_number.get(&number) {
            return place;
        }
        let uuid = self.trace.names().device(number).map_or("", |d| d.uuid.as_str());
        let new = self.devices.len();
        let place = if uuid.is_empty() { new } else { *self.by_uuid.entry(uuid).or_insert(new) };
        if place == new {
            self.devices.push(Device::default());
            if new == 1 {
                // Until now all was the one.
                self.all = self.devices.first().cloned();
            }
        }
        self.by_number.insert(number, place);
        if let Some(device) = self.devices.get_mut(place) {
            device.numbers.push(number);
        }
        place
    }

    fn ran(&mut self, at: At<'_>, command: &Command<'_>) {
        let kind = command.kind;
        let Some(part) = Part::of(kind, command.direction()) else { return };
        let place = self.device(command.on_device.map_or(0, |d| d.id));
        self.sampled |= command.weight > 1;
        let thread = self.threads.find(command.pid, command.cause_tid).filter(|_| command.cause > 0);
        let call = thread.and_then(|t| self.threads.get_mut(t)).and_then(|t| t.call_at(command.cause));
        let call = call.map(|call| {
            call.produced = true;
            *call
        });
        let Some(times) = command.times else {
            let since = if command.cause > 0 { command.cause } else { at.time };
            if let Some(device) = self.devices.get_mut(place) {
                device.untimed += 1;
                device.untimed_busy.add(since.min(at.time), at.time);
            }
            return;
        };
        if !self.sampled {
            self.host.stop();
        }
        let queue = command.on_queue.map_or(0, |q| q.id);
        let end = times.end.max(times.start);
        let title = Title {
            kind,
            function: command.function.map_or(0, |f| f.id),
            pid: command.pid,
            queue: command.queue,
            queue_number: queue,
        };
        // Enqueued, handed to the device as far as that is known, and next on its queue.
        let before = self.queues.get(&(command.pid, queue)).map_or(0, |(end, _)| *end);
        let submitted = if times.submitted < times.start { times.submitted } else { 0 };
        let ready = (command.cause > 0).then(|| command.cause.max(submitted).max(before));
        let fresh = self.steps.command((place, command.pid, kind, title.function), times.start, end);
        let (start, cause, fill) = (times.start, command.cause, fill(command));
        let free = call.map_or(Free::Unknown, |call| call.free);
        let ran = Ran { title, part, queue, start, end, cause, ready, thread, fresh, fill, free };
        let of_one = self.devices.get(place).and_then(|device| self.between(device, &ran, call, &times));
        let of_all = self.all.as_ref().and_then(|all| self.between(all, &ran, call, &times));
        let node = self.node(&ran, call);
        let least = self.options.gaps;
        if let Some(device) = self.devices.get_mut(place) {
            device.witness(of_one.as_ref(), &self.samples, &self.threads, self.window);
            device.ran(&ran, of_one, self.window, least);
        }
        if let Some(all) = &mut self.all {
            all.witness(of_all.as_ref(), &self.samples, &self.threads, self.window);
            all.ran(&ran, of_all, self.window, None);
        }
        let recent = Recent {
            start: ran.start,
            end,
            node,
            cause: command.cause,
            bytes: command.bytes,
            copies: (part != Part::Compute && command.bytes > 0).then_some(kind),
        };
        self.waits.command(command, recent);
        self.tidy();
    }

    /// Parts of which a thread is the cause, by what it did.
    fn by_states(&self, parts: Vec<GapPart>, thread: Option<usize>) -> Vec<GapPart> {
        match thread {
            Some(place) => by_states(parts, self.trace.system(), &self.threads, place),
            None => parts,
        }
    }

    /// Explains the gap that a command ends, or what was before the first one.
    fn between(&self, device: &Device, ran: &Ran, call: Option<Span>, times: &Times) -> Option<Explained> {
        let (place, (start, end)) = match device.gap(ran.start) {
            Some(gap) => (Place::Between, gap),
            None if device.first.is_none() => {
                (Place::Before, (self.first.unwrap_or(ran.start).min(ran.start), ran.start))
            }
            None => return None,
        };
        // A time that equals the start was not reported.
        let submitted = if times.submitted < times.start { times.submitted } else { 0 };
        let gap = Gap { start, end, cause: ran.cause, submitted, slack: self.slack };
        let set = call.filter(|call| call.signals > 0);
        let set = set.and_then(|call| self.signals.last(call.signals, ran.start));
        let scene = Scene {
            threads: &self.threads,
            facts: &self.facts,
            place: ran.thread,
            call,
            set,
            fresh: ran.fresh,
            process: self.waits.process(ran.title.pid),
            untimed: (device.untimed > 0).then_some(&device.untimed_busy),
            losses: self.lost > 0,
            sampled: self.sampled,
        };
        let parts = self.by_states(explain(gap, scene), ran.thread);
        let evidence =
            Evidence { start, end, before: device.last, after: Some(ran.title), thread: ran.thread };
        Some(Explained { place, evidence, parts })
    }

    /// The path to the end of a command, by what it had to wait for last.
    fn node(&mut self, ran: &Ran, call: Option<Span>) -> NodeId {
        // Of a call that nobody takes for an enqueuing one, the path is not kept.
        let call = call.filter(|call| call.node != UNSET);
        let key = (ran.title.pid, ran.queue);
        let before = self.queues.get(&key).copied().filter(|(end, _)| *end <= ran.start + self.slack);
        let near = self.slack.saturating_add(super::gaps::AT_ONCE);
        let since = before.map(|b| b.0).max(call.map(|c| c.start));
        let other = since.filter(|since| ran.start.saturating_sub(*since) > near).and_then(|_| {
            let recent = ran.start.saturating_sub(near);
            self.waits.ended_within(ran.title.pid, recent, ran.start.saturating_add(self.slack))
        });
        let window = self.window;
        let set = call.filter(|call| call.signals > 0);
        let set = set.and_then(|call| self.signals.last(call.signals, ran.start));
        let least = before.map(|b| b.0).max(call.map(|c| c.start));
        let set = set.filter(|set| least.is_none_or(|least| set.time > least));
        let (parent, step, from) = match (other, before, call) {
            _ if set.is_some() => {
                set.map_or((ROOT, Step::Unknown, 0), |set| (set.node, Step::Latency, set.time))
            }
            (Some(other), ..) => (other.node, Step::Latency, other.end),
            (None, Some((end, node)), Some(call)) if end > call.start => (node, Step::Latency, end),
            (None, _, Some(call)) => (call.node, Step::Launch(call.function.0), call.start),
            (None, Some((end, node)), None) => (node, Step::Latency, end),
            (None, None, None) => (ROOT, Step::Unknown, self.first.unwrap_or(ran.start)),
        };
        let begun = self.paths.add(parent, step, window.of(from, ran.start));
        let what = match (ran.part, ran.title.function) {
            (Part::Compute, function) if function > 0 => Step::Kernel(function),
            _ => Step::Command(ran.title.kind),
        };
        let node = self.paths.add(begun, what, window.of(ran.start.max(from), ran.end));
        let last = self.queues.entry(key).or_insert((0, ROOT));
        if ran.end >= last.0 {
            *last = (ran.end, node);
        }
        if ran.end >= self.end.0 && ran.start <= window.to {
            self.end = (ran.end, node);
        }
        node
    }

    /// Keeps memory bounded.
    fn tidy(&mut self) {
        if !self.paths.is_full() {
            return;
        }
        let (threads, waits, signals) = (&mut self.threads, &mut self.waits, &mut self.signals);
        let (queues, early, end) = (&mut self.queues, &mut self.early, &mut self.end);
        self.paths.clear_up(|visit| {
            threads.all_mut().flat_map(|t| t.nodes()).for_each(&mut *visit);
            waits.nodes().for_each(&mut *visit);
            signals.nodes().for_each(&mut *visit);
            queues.values_mut().for_each(|(_, node)| visit(node));
            early.values_mut().for_each(|(_, node)| visit(node));
            visit(&mut end.1);
        });
    }

    /// No command ran: the path leads to what a thread did last.
    fn end_of_host(&mut self) {
        let Some(thread) = self.threads.all_mut().max_by_key(|thread| thread.last) else { return };
        self.end = (thread.last, self.paths.tip(&mut thread.strand));
    }

    /// From when to when capture windows were open, if the trace has some.
    fn reach(&self) -> Option<(u64, u64)> {
        Covered::of(self.trace, 0, 0).and_then(|covered| covered.reach())
    }

    /// What came after the last command of each device. Commands of a capture window may end behind it.
    pub fn finish(&mut self, last: u64) {
        self.last = last;
        let last = self.reach().map_or(last, |(_, end)| last.min(end));
        if self.end.0 == 0 {
            self.end_of_host();
        }
        for device in self.devices.iter_mut().chain(&mut self.all) {
            device.sweep.finish(self.window);
            device.ledger.finish(device.last_end.min(self.window.to), device.totals());
            let thread = device.last_thread.and_then(|t| Some((t, self.threads.get(t)?)));
            let (Some((place, thread)), Some(_)) = (thread, device.first) else { continue };
            let last = last.max(device.last_end);
            let parts: Vec<GapPart> = outside(thread, device.last_end, last);
            let parts = match self.trace.system() {
                Some(system) => by_states(parts, Some(system), &self.threads, place),
                None => parts,
            };
            let evidence = Evidence {
                start: device.last_end,
                end: last,
                before: device.last,
                after: None,
                thread: device.last_thread,
            };
            let gap = Explained { place: Place::After, evidence, parts };
            device.witness(Some(&gap), &self.samples, &self.threads, self.window);
            device.explained(Place::After, evidence, &gap.parts, self.window, None);
        }
    }
}

type Flow = ControlFlow<Stopped>;

impl Visitor for Collector<'_> {
    type Break = Stopped;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Flow {
        if self.first.is_none() {
            self.first = Some(at.time);
            let after = |ns: Option<u64>| ns.map(|ns| at.time.saturating_add(ns));
            self.window.from = after(self.options.from).unwrap_or(0);
            self.window.to = after(self.options.to).unwrap_or(u64::MAX).max(self.window.from);
            // Outside of capture windows nothing is known: what seems to be idle there is not.
            if let Some((from, _)) = self.reach() {
                self.window.from = self.window.from.max(from);
                self.window.to = self.window.to.max(from);
            }
        }
        while let Some(wake) = self.wakes.until(at.time) {
            self.woken(wake);
        }
        self.pace.step()
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Flow {
        self.waits.matcher.entry(call, event);
        self.steps.entry(at, call, event);
        self.begin(at, call, event);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Flow {
        self.signals.exit(at.who().pid, call, event);
        self.independence.exit(at.who().pid, call, event);
        self.steps.exit(at, call, event);
        if let Some(wait) = self.waits.matcher.exit(at, call) {
            let place = self.thread(at);
            self.waited(place, &wait);
        }
        if self.ends(call.thread, call.depth, call.function) {
            let failed = call.error.is_some();
            self.end_own(at, call.thread, span(call.function, call.start, call.end, failed, false));
        }
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Flow {
        self.steps.unfinished(at, call);
        if let Some(wait) = self.waits.matcher.unfinished(at, call) {
            let polls = self.facts(wait.function).polls;
            self.waits.unfinished(&wait, polls, self.window);
        }
        if self.ends(call.thread, call.depth, call.function) {
            let lost = call.why == Why::ExitLost;
            self.end_own(at, call.thread, span(call.function, call.start, call.until, false, lost));
        }
        ControlFlow::Continue(())
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> Flow {
        self.steps.orphan(call);
        let (place, window) = (self.thread(at), self.window);
        if let Some(thread) = self.threads.get_mut(place).filter(|t| t.open.is_none()) {
            thread.strand.spend(Step::Unknown, window.of(thread.last, call.end));
            thread.last = thread.last.max(call.end);
        }
        ControlFlow::Continue(())
    }

    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> Flow {
        self.steps.border(at, border, name);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Flow {
        self.run(at, fold);
        ControlFlow::Continue(())
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Flow {
        self.ran(at, command);
        ControlFlow::Continue(())
    }
}

/// How much of its device a command can keep busy: a kernel of fewer work-groups than there are compute units leaves
/// the others idle.
fn fill(command: &Command<'_>) -> f64 {
    let units = f64::from(command.on_device.map_or(0, |device| device.compute_units));
    let (global, local) = (command.geometry.global.as_slice(), command.geometry.local.as_slice());
    let groups = global.iter().enumerate().map(|(n, size)| match local.get(n) {
        Some(local) if *local > 0 => size.div_ceil(*local) as f64,
        _ => *size as f64,
    });
    let is_known = command.kind == CommandKind::Kernel && !global.is_empty();
    if is_known { (groups.product::<f64>() / if units > 0.0 { units } else { UNITS }).min(1.0) } else { 1.0 }
}

/// An outermost call of which no beginning was kept.
fn span(function: FunctionId, start: u64, end: u64, failed: bool, lost: bool) -> Span {
    Span { failed, lost, ..Span::new(function, start, end) }
}
