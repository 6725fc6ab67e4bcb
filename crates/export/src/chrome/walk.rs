//! The walk that writes.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::demangle;
use hetrace_trace::facts::is_mark;
use hetrace_trace::probes::Border;
use hetrace_trace::ranges::{Range, Ranges, Step as RangeStep};
use hetrace_trace::spans::{
    At, Call, Command, Fold, MemoryKind, Open, Orphan, Summary, Unfinished, Visitor, Why,
};
use hetrace_trace::telemetry::{Quantity, Telemetry};
use hetrace_trace::text::{STILL_OPEN, STILL_RUNNING};
use hetrace_trace::trace::{FunctionId, Process, Trace};
use hetrace_trace::waits::{Wait, Waits};

use super::json::{Events, quoted};
use super::queues::Queues;
use super::{Options, Stop, arguments};
use crate::Watch;
use crate::causes::Causes;
use crate::sources::Sources;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 16;
/// The category of ranges and marks.
const RANGE: &str = "range";
/// The category of counters.
const COUNTER: &str = "counter";
/// The process of what belongs to none.
const MACHINE: i64 = 0;

pub(super) struct Writer<'t, 'o> {
    pub(super) trace: &'t Trace,
    options: Options,
    watch: Watch<'o>,
    /// Events until the next question.
    left: u32,
    pub(super) events: Events<'o>,
    /// By function: whether it is a range or mark.
    is_range: Vec<bool>,
    ranges: Ranges<'t>,
    /// Processes and threads that have names.
    processes: HashSet<i64>,
    threads: Vec<bool>,
    /// What open calls were passed, as members of JSON; by thread and depth.
    passed: Vec<Vec<String>>,
    queues: Queues,
    /// Short names of kernels by number.
    kernels: HashMap<u32, String>,
    causes: Causes<()>,
    sources: Sources<'t>,
    waits: Waits<'t, Drawn>,
    arrows: u64,
}

/// A process and a thread, or what stands for one.
type Place = (i64, u64);

/// A command that has a slice.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    place: Place,
    start: u64,
    end: u64,
}

type Step = ControlFlow<Stop>;

fn step(result: io::Result<()>) -> Step {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Stop::Io(error)),
    }
}

impl<'t, 'o> Writer<'t, 'o> {
    pub fn new(trace: &'t Trace, options: Options, out: &'o mut dyn Write, watch: Watch<'o>) -> Self {
        let ids = (0..u32::try_from(trace.functions().all().len()).unwrap_or(0)).map(FunctionId);
        let is_range = ids.map(|id| trace.described(id).is_some_and(is_mark));
        Self {
            trace,
            options,
            watch,
            left: WATCHED,
            events: Events::new(out),
            is_range: is_range.collect(),
            ranges: Ranges::new(trace),
            processes: HashSet::new(),
            threads: Vec::new(),
            passed: Vec::new(),
            queues: Queues::default(),
            kernels: HashMap::new(),
            causes: Causes::default(),
            sources: Sources::new(trace.names().stacks()),
            waits: Waits::new(trace),
            arrows: 0,
        }
    }

    fn api(&self, function: FunctionId) -> &'t str {
        let api = self.trace.functions().get(function).api;
        self.trace.functions().apis().get(api).map_or("", String::as_str)
    }

    fn is_range(&self, function: FunctionId) -> bool {
        self.is_range.get(function.index()) == Some(&true)
    }

    /// Names a process.
    pub(super) fn process(&mut self, pid: i64) -> io::Result<()> {
        if !self.processes.insert(pid) {
            return Ok(());
        }
        let known = self.trace.manifest().processes.iter().find(|p| p.pid == pid);
        let name = known.map_or("", Process::program);
        let name = if name.is_empty() { "process" } else { name };
        self.meta("process_name", (pid, 0), name)
    }

    pub(super) fn meta(&mut self, what: &str, place: Place, name: &str) -> io::Result<()> {
        self.events.add("M", place, |e| {
            e.text("name", what).object("args", |args| {
                args.text("name", name);
            });
        })
    }

    /// Names the thread, and says where it is.
    fn place(&mut self, at: At<'_>) -> io::Result<Place> {
        let who = at.who();
        let place = (who.pid, who.tid as u64);
        let index = at.thread.index();
        if self.threads.len() <= index {
            self.threads.resize(index + 1, false);
        }
        if !self.threads[index] {
            self.threads[index] = true;
            self.process(who.pid)?;
            let called = self.ranges.thread_name(who.pid, who.tid);
            let name = called.unwrap_or(&who.name).to_owned();
            self.meta("thread_name", place, &name)?;
        }
        Ok(place)
    }

    fn open(&mut self, at: At<'_>, depth: u32) -> &mut String {
        let (thread, depth) = (at.thread.index(), depth as usize);
        if self.passed.len() <= thread {
            self.passed.resize_with(thread + 1, Vec::new);
        }
        let open = &mut self.passed[thread];
        if open.len() <= depth {
            open.resize_with(depth + 1, String::new);
        }
        &mut open[depth]
    }

    /// Writes a call, with the members gathered for it.
    fn call(
        &mut self,
        at: At<'_>,
        function: FunctionId,
        (start, end): (u64, u64),
        depth: u32,
    ) -> io::Result<()> {
        let place = self.place(at)?;
        let members = std::mem::take(self.open(at, depth));
        let (name, api) = (&self.trace.functions().get(function).name, self.api(function));
        self.events.add("X", place, |e| {
            e.time("ts", start).duration(end.saturating_sub(start)).text("cat", api).text("name", name);
            if !members.is_empty() {
                e.raw("args", format_args!("{{{members}}}"));
            }
        })?;
        let kept = self.open(at, depth);
        *kept = members;
        kept.clear();
        Ok(())
    }

    fn ranged(&mut self, at: At<'_>, found: Option<RangeStep>) -> io::Result<()> {
        let Some(found) = found else { return Ok(()) };
        let place = self.place(at)?;
        match &found {
            RangeStep::Begun(range) => self.events.add("b", place, |e| {
                e.time("ts", range.begin).text("cat", RANGE).raw("id", range.key);
                e.text("name", title(range)).object("args", |args| about(args, range));
            }),
            RangeStep::Ended { range, end, .. } => self.end_range(place.0, at, range, *end),
            RangeStep::Mark(range) => self.events.add("i", place, |e| {
                e.time("ts", range.begin).text("s", "t").text("cat", RANGE);
                e.text("name", title(range)).object("args", |args| about(args, range));
            }),
            // The format has counters of processes, which it knows by name.
            RangeStep::Counted(counted) if counted.value.is_finite() => self.events.add("C", place, |e| {
                e.time("ts", counted.time).text("cat", COUNTER);
                e.text("name", &counted.title()).object("args", |args| {
                    args.raw("value", counted.value);
                });
            }),
            RangeStep::Counted(_) => Ok(()),
        }
    }

    /// The end is on the thread that began the range, which is what readers look for.
    fn end_range(&mut self, pid: i64, at: At<'_>, range: &Range, end: u64) -> io::Result<()> {
        let tid = at.threads.get(range.thread).tid as u64;
        self.events.add("e", (pid, tid), |e| {
            e.time("ts", end).text("cat", RANGE).raw("id", range.key).text("name", title(range));
        })
    }

    fn draw(&mut self, at: At<'_>, command: &Command<'_>) -> io::Result<()> {
        let start = command.times.map_or(at.time, |t| t.start);
        let end = command.times.map_or(start, |t| t.end.max(t.start));
        self.process(command.pid)?;
        let queue = self.queues.of(self.trace, command);
        let Some((row, new)) = self.queues.row(queue, start, end) else { return Ok(()) };
        let place = (command.pid, row);
        if new {
            let name = self.queues.all.get(queue).map_or(String::new(), |q| q.name.clone());
            self.meta("thread_name", place, &name)?;
            self.events.add("M", place, |e| {
                e.text("name", "thread_sort_index").object("args", |args| {
                    args.raw("sort_index", row);
                });
            })?;
        }
        let title = match command.function.filter(|f| !f.name.is_empty()) {
            None => command.title(),
            Some(f) => {
                self.kernels.entry(f.id).or_insert_with(|| demangle::short(&f.name).into_owned()).as_str()
            }
        };
        self.events.add(if command.times.is_some() { "X" } else { "i" }, place, |e| {
            e.time("ts", start).text("cat", command.kind.name()).text("name", title);
            match command.times {
                Some(_) => e.duration(end - start),
                None => e.text("s", "t"),
            };
            e.object("args", |args| annotate(args, command, title));
        })?;
        if command.graph == 0 && self.causes.of(command).is_some() {
            let from = (command.pid, command.cause_tid as u64);
            self.arrow("enqueue", (from, command.cause), (place, start))?;
        }
        // Those that nobody can be said to have waited for any more have no arrow.
        self.waits.command(command, Drawn { place, start, end });
        let queued = command.times.map_or(start, |t| t.queued).min(start);
        let enqueued = if command.cause > 0 { command.cause.min(queued) } else { queued };
        self.in_flight(queue, enqueued)?;
        if command.times.is_some()
            && let Some(queue) = self.queues.all.get_mut(queue)
        {
            queue.fly(enqueued, end);
        }
        Ok(())
    }

    /// Draws an arrow between slices that are around these times.
    fn arrow(&mut self, name: &str, from: (Place, u64), to: (Place, u64)) -> io::Result<()> {
        self.arrows += 1;
        let id = self.arrows;
        for (kind, (place, time)) in [("s", from), ("f", to)] {
            self.events.add(kind, place, |e| {
                e.time("ts", time).text("cat", name).text("name", name).raw("id", id);
                if kind == "f" {
                    // It ends at the slice that is around, not at the next.
                    e.text("bp", "e");
                }
            })?;
        }
        Ok(())
    }

    /// Draws the arrow from the command that a wait ended on to the slice of the call that waited.
    fn waited(&mut self, at: At<'_>, slice: (u64, u64), wait: Option<Wait>) -> io::Result<()> {
        let Some(waited) = wait.map(|wait| self.waits.waited(&wait)) else { return Ok(()) };
        let Some(last) = waited.last.and_then(|at| waited.all.get(at)).copied() else { return Ok(()) };
        // A slice does not have its own end.
        let inside = |(start, end): (u64, u64), time: u64| time.min(end.saturating_sub(1)).max(start);
        let place = self.place(at)?;
        let from = (last.place, inside((last.start, last.end), last.end));
        self.arrow("wait", from, (place, inside(slice, last.end)))
    }

    fn in_flight(&mut self, queue: usize, until: u64) -> io::Result<()> {
        let Some(queue) = self.queues.all.get_mut(queue) else { return Ok(()) };
        while let Some((time, level)) = queue.next_before(until) {
            let name = format!("{}: commands in flight", queue.name);
            self.events.add("C", (queue.pid, 0), |e| {
                e.time("ts", time).text("name", &name).object("args", |args| {
                    args.raw("commands", level);
                });
            })?;
        }
        Ok(())
    }

    /// Telemetry of devices.
    fn telemetry(&mut self) -> io::Result<()> {
        let telemetry = Telemetry::read(self.trace);
        if !telemetry.devices().is_empty() {
            self.meta("process_name", (MACHINE, 0), "devices of the machine")?;
        }
        for device in telemetry.devices() {
            let counted = |q: Quantity| !matches!(q, Quantity::Energy | Quantity::Throttle);
            for series in device.series.iter().filter(|s| counted(s.quantity)) {
                let quantity = series.quantity;
                let who = if device.is_host() { device.label() } else { format!("GPU {}", device.index) };
                let name = format!("{who}: {} [{}]", quantity.name(), quantity.unit());
                for sample in &series.samples {
                    self.events.add("C", (MACHINE, 0), |e| {
                        e.time("ts", sample.time).text("name", &name).object("args", |args| {
                            for (field, value) in quantity.fields().iter().zip(sample.values) {
                                args.raw(if field.is_empty() { "value" } else { field }, value);
                            }
                        });
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rest; returns how many events there are.
    pub fn finish(&mut self, summary: &Summary) -> io::Result<u64> {
        for queue in 0..self.queues.all.len() {
            self.in_flight(queue, u64::MAX)?;
        }
        let end = summary.last.unwrap_or(0);
        for range in self.ranges.open() {
            let Some(who) = summary.threads.get(range.thread.index()) else { continue };
            self.events.add("e", (who.pid, who.tid as u64), |e| {
                e.time("ts", end).text("cat", RANGE).raw("id", range.key).text("name", title(range));
                e.object("args", |args| {
                    args.text("unfinished", STILL_OPEN);
                });
            })?;
        }
        self.telemetry()?;
        self.states()?;
        self.events.end(|other| {
            for (what, n) in summary.counts() {
                other.raw(what, n);
            }
        })?;
        Ok(self.events.count)
    }
}

fn title(range: &Range) -> &str {
    if range.message.is_empty() { "(no message)" } else { &range.message }
}

fn about(args: &mut super::json::Event<'_>, range: &Range) {
    for (name, text) in [("domain", &range.domain), ("category", &range.category)] {
        if !text.is_empty() {
            args.text(name, text);
        }
    }
}

fn annotate(args: &mut super::json::Event<'_>, command: &Command<'_>, title: &str) {
    if !command.name.is_empty() && command.name != title {
        args.text("function", command.name);
    }
    if command.bytes > 0 {
        args.raw("bytes", command.bytes);
    }
    for (name, memory) in [("from", command.from), ("to", command.to)] {
        if memory != MemoryKind::Unknown {
            args.text(name, memory.name());
        }
    }
    let geometry = &command.geometry;
    for (name, sizes) in [("global", &geometry.global), ("local", &geometry.local)] {
        if !sizes.is_empty() {
            args.raw(name, format_args!("{:?}", sizes.as_slice()));
        }
    }
    if command.failed() {
        args.raw("failed with", command.status);
    }
    if command.times.is_none() {
        args.raw("times not known, error", command.times_error);
    }
    if command.graph > 0 {
        args.raw("graph", command.graph).raw("node", command.node);
    }
    if command.weight > 1 {
        args.raw("stands for launches", command.weight);
    }
}

impl Visitor for Writer<'_, '_> {
    type Break = Stop;

    #[inline]
    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        self.events.begin(at.time);
        self.left -= 1;
        if self.left == 0 {
            self.left = WATCHED;
            if (self.watch)(WATCHED.into()).is_break() {
                return ControlFlow::Break(Stop::Asked);
            }
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.entry(at, call, event);
        self.waits.entry(call, event);
        if !self.is_range(call.function) {
            let with = self.options.arguments;
            let source = self.sources.of(call.stack);
            let members = self.open(at, call.depth);
            members.clear();
            if with {
                arguments::append(members, event);
            }
            if let Some(source) = source {
                member(members, "called at", &source.at);
                member(members, "call stack", &source.stack);
            }
        }
        if self.trace.functions().get(call.function).enqueues {
            let who = at.who();
            self.causes.add(who.pid, who.tid, call.start, ());
        }
        step(self.ranged(at, range))
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.exit(at, call, event);
        let wait = self.waits.exit(at, call);
        if !self.is_range(call.function) {
            let with = self.options.arguments;
            let trace = self.trace;
            let members = self.open(at, call.depth);
            if with {
                arguments::append(members, event);
            }
            if let Some(code) = call.error {
                member(members, "error", &trace.error_name(call.function, code));
            }
            let slice = (call.start, call.end);
            step(self.call(at, call.function, slice, call.depth))?;
            step(self.waited(at, slice, wait))?;
        }
        step(self.ranged(at, range))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let range = self.ranges.unfinished(at, call);
        // It learned nothing.
        self.waits.unfinished(at, call);
        if !self.is_range(call.function) {
            let why = match call.why {
                Why::TraceEnds => STILL_RUNNING,
                Why::ExitLost => "its end was lost",
                Why::ThreadEnded => "its thread ended",
            };
            member(self.open(at, call.depth), "unfinished", why);
            step(self.call(at, call.function, (call.start, call.until), call.depth))?;
        }
        step(self.ranged(at, range))
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> Step {
        let range = self.ranges.orphan(call);
        step(self.ranged(at, range))
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        let wait = self.waits.fold(at, fold);
        let (name, api) = (&self.trace.functions().get(fold.function).name, self.api(fold.function));
        let place = match self.place(at) {
            Ok(place) => place,
            Err(error) => return ControlFlow::Break(Stop::Io(error)),
        };
        if fold.summed {
            // A slice from the first to the last would hide what lies between them.
            return step(self.events.add("i", place, |e| {
                e.time("ts", at.time).text("s", "t").text("cat", api);
                e.text("name", &format!("{name} (added up)")).object("args", |args| {
                    args.raw("calls", fold.count).raw("ns inside them", fold.total);
                });
            }));
        }
        step(self.events.add("X", place, |e| {
            e.time("ts", fold.first).duration(fold.last.saturating_sub(fold.first));
            e.text("cat", api).text("name", &format!("{name} (folded)")).object("args", |args| {
                args.raw("calls", fold.count).raw("ns inside them", fold.total);
            });
        }))?;
        step(self.waited(at, (fold.first, fold.last), wait))
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Step {
        step(self.draw(at, command))
    }

    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> Step {
        self.events.begin(at.time);
        let range = self.ranges.border(at, border, name);
        step(self.ranged(at, range))
    }
}

fn member(members: &mut String, name: &str, text: &str) {
    if !members.is_empty() {
        members.push(',');
    }
    quoted(members, name);
    members.push(':');
    quoted(members, text);
}
