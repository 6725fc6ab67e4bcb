//! The walk that sums up.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::demangle;
use hetrace_trace::probes::Border;
use hetrace_trace::ranges::{Ranges, Step};
use hetrace_trace::samples::{Inside, Sample, Where};
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Orphan, Unfinished, Visitor};
use hetrace_trace::stacks::{Frame, ShortNames, StackId};
use hetrace_trace::trace::{FunctionId, Process, Thread, ThreadId, Trace};

use super::paths::{Node, Paths};
use super::{Options, Weight};
use crate::Watch;
use crate::causes::Causes;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 16;
/// The frame that has the time of failed calls, below these.
const FAILED: &str = "[failed]";
/// The frame of samples whose stack is not known.
const NOT_KNOWN: &str = "[stack not known]";

/// A thread.
#[derive(Clone, Debug)]
struct OpenCalls {
    root: Node,
    /// Paths of the open calls by depth.
    open: Vec<Node>,
    /// The code that made them.
    makers: Vec<StackId>,
    /// Ranges that are open, the innermost last: key, frame, and the path that ends with it.
    ranges: Vec<(u64, u32, Node)>,
}

impl OpenCalls {
    /// The path that outermost calls are below.
    fn base(&self) -> Node {
        self.ranges.last().map_or(self.root, |(.., node)| *node)
    }
}

pub(super) struct Collector<'t, 'o> {
    trace: &'t Trace,
    options: Options,
    watch: Watch<'o>,
    /// Events until the next question.
    left: u32,
    paths: Paths,
    /// By function, the number of its frame.
    functions: Vec<Option<u32>>,
    processes: HashMap<i64, Node>,
    threads: Vec<Option<OpenCalls>>,
    /// Paths of the calls that enqueue.
    causes: Causes<Node>,
    lost_causes: u64,
    files: ShortNames<'t>,
    /// Paths of the code's frames: by the path around, the stack, and the one that made the call around.
    code: HashMap<(Node, StackId, StackId), Node>,
    /// The calls that threads are in, if there are samples.
    inside: Option<Inside>,
    /// If ranges are to be frames.
    ranges: Option<Ranges<'t>>,
}

impl<'t, 'o> Collector<'t, 'o> {
    pub fn new(trace: &'t Trace, options: Options, watch: Watch<'o>) -> Self {
        Self {
            trace,
            options,
            watch,
            left: WATCHED,
            paths: Paths::default(),
            functions: vec![None; trace.functions().all().len()],
            processes: HashMap::new(),
            threads: Vec::new(),
            causes: Causes::default(),
            lost_causes: 0,
            files: trace.names().stacks().short_names(),
            code: HashMap::new(),
            inside: trace.has_samples().then(Inside::default),
            ranges: options.ranges.then(|| Ranges::new(trace)),
        }
    }

    /// The paths, and how many commands have no known call.
    pub fn finish(self) -> (Paths, u64) {
        (self.paths, self.lost_causes)
    }

    fn function(&mut self, id: FunctionId) -> u32 {
        if let Some(Some(frame)) = self.functions.get(id.index()) {
            return *frame;
        }
        let function = self.trace.functions().get(id);
        let api = self.trace.functions().apis().get(function.api).map_or("", String::as_str);
        let frame = self.paths.frame(&format!("{api}:{}", function.name));
        if let Some(known) = self.functions.get_mut(id.index()) {
            *known = Some(frame);
        }
        frame
    }

    fn process(&mut self, pid: i64, otherwise: &str) -> Node {
        if let Some(node) = self.processes.get(&pid) {
            return *node;
        }
        let known = self.trace.manifest().processes.iter().find(|p| p.pid == pid);
        let program = known.map(Process::program);
        let name = program.filter(|p| !p.is_empty()).unwrap_or(otherwise);
        let frame = self.paths.frame(&format!("{name} [{pid}]"));
        let node = self.paths.below(0, frame);
        self.processes.insert(pid, node);
        node
    }

    fn root(&mut self, who: &Thread) -> Node {
        let process = self.process(who.pid, &who.name);
        if self.options.merge_threads {
            return process;
        }
        let frame = self.paths.frame(&format!("{} [{}]", who.name, who.tid));
        self.paths.below(process, frame)
    }

    /// The path that a call is in: below the frames of the code that made it, but for those that made the call around it.
    fn made_by(&mut self, outer: Node, stack: StackId, around: StackId) -> Node {
        if stack == StackId::NONE {
            return outer;
        }
        if let Some(node) = self.code.get(&(outer, stack, around)) {
            return *node;
        }
        let stacks = self.trace.names().stacks();
        let (frames, known) = (stacks.frames(stack), stacks.frames(around));
        let shared =
            frames.iter().rev().zip(known.iter().rev()).take_while(|(one, other)| one == other).count();
        let mut node = outer;
        for frame in frames.iter().rev().skip(shared) {
            let frame = self.code_frame(frame);
            node = self.paths.below(node, frame);
        }
        self.code.insert((outer, stack, around), node);
        node
    }

    fn code_frame(&mut self, frame: &Frame) -> u32 {
        match frame.place(&self.files) {
            Some(place) => self.paths.frame(&format!("{} ({place})", frame.name)),
            None => self.paths.frame(&frame.name),
        }
    }

    /// What is known of a thread.
    fn thread(&mut self, number: ThreadId, who: &Thread) -> Option<&mut OpenCalls> {
        let index = number.index();
        if self.threads.len() <= index {
            self.threads.resize(index + 1, None);
        }
        if self.threads[index].is_none() {
            let root = self.root(who);
            let (open, makers, ranges) = (Vec::new(), Vec::new(), Vec::new());
            self.threads[index] = Some(OpenCalls { root, open, makers, ranges });
        }
        self.threads[index].as_mut()
    }

    /// The path that a thread is in at a depth.
    fn around(&mut self, at: At<'_>, depth: u32) -> Node {
        let Some(thread) = self.thread(at.thread, at.who()) else { return 0 };
        let outer = (depth as usize).checked_sub(1).and_then(|outer| thread.open.get(outer));
        outer.copied().unwrap_or(thread.base())
    }

    /// A range of a thread begins or ends: calls that begin from now on are below it, or no more.
    fn ranged(&mut self, at: At<'_>, step: Option<Step>) {
        match step {
            Some(Step::Begun(range)) if range.style.nests() => {
                let name = if range.message.is_empty() { "(no message)" } else { &range.message };
                let domain =
                    if range.domain.is_empty() { String::new() } else { format!("{}/", range.domain) };
                let frame = self.paths.frame(&format!("[range] {domain}{name}"));
                let Some(base) = self.thread(range.thread, at.threads.get(range.thread)).map(|t| t.base())
                else {
                    return;
                };
                let node = self.paths.below(base, frame);
                if let Some(thread) = self.thread(range.thread, at.threads.get(range.thread)) {
                    thread.ranges.push((range.key, frame, node));
                }
            }
            Some(Step::Ended { range, .. }) => self.end_range(range.thread, range.key),
            _ => {}
        }
    }

    fn end_range(&mut self, thread: ThreadId, key: u64) {
        let Self { threads, paths, .. } = self;
        let Some(Some(thread)) = threads.get_mut(thread.index()) else { return };
        let Some(place) = thread.ranges.iter().rposition(|(other, ..)| *other == key) else { return };
        let inner = thread.ranges.split_off(place);
        for (key, frame, _) in inner.into_iter().skip(1) {
            let node = paths.below(thread.base(), frame);
            thread.ranges.push((key, frame, node));
        }
    }

    fn at(&self, at: At<'_>, depth: u32) -> Node {
        let thread = self.threads.get(at.thread.index()).and_then(Option::as_ref);
        thread.and_then(|t| t.open.get(depth as usize)).copied().unwrap_or(0)
    }

    /// Where the command's call is in the tree; its process if that is not known.
    fn cause(&mut self, command: &Command<'_>, who: &Thread) -> Node {
        match self.causes.of(command) {
            Some(node) => node,
            None => {
                self.lost_causes += 1;
                self.process(command.pid, &who.name)
            }
        }
    }

    /// `own`: time as recorded, and what of it is the tracer's.
    fn count(&mut self, node: Node, own: (u64, u64), calls: u64, failed: bool) {
        match self.options.weight {
            Weight::Time => {
                let frame = failed.then(|| self.paths.frame(FAILED));
                let node = frame.map_or(node, |frame| self.paths.below(node, frame));
                self.paths.add(node, own.0);
                self.paths.take_off(node, own.1);
            }
            Weight::Calls => self.paths.add(node, calls),
            _ => {}
        }
    }
}

impl Visitor for Collector<'_, '_> {
    type Break = ();

    #[inline]
    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.left -= 1;
        if self.left > 0 {
            return ControlFlow::Continue(());
        }
        self.left = WATCHED;
        (self.watch)(WATCHED.into())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<()> {
        self.inside.iter_mut().for_each(|inside| inside.entry(at, call));
        let range = self.ranges.as_mut().and_then(|ranges| ranges.entry(at, call, event));
        // What ends here does not have this call inside.
        self.ranged(at, range);
        let frame = self.function(call.function);
        let outer = self.around(at, call.depth);
        let depth = call.depth as usize;
        let around = self.threads.get(at.thread.index()).and_then(Option::as_ref);
        let around = around.and_then(|thread| thread.makers.get(depth.checked_sub(1)?).copied());
        let within = self.made_by(outer, call.stack, around.unwrap_or_default());
        let node = self.paths.below(within, frame);
        if let Some(Some(thread)) = self.threads.get_mut(at.thread.index()) {
            thread.open.resize(depth, outer);
            thread.open.push(node);
            thread.makers.resize(depth, StackId::NONE);
            thread.makers.push(call.stack);
        }
        let commands = matches!(self.options.weight, Weight::Device | Weight::Bytes);
        if commands && self.trace.functions().get(call.function).enqueues {
            let who = at.who();
            self.causes.add(who.pid, who.tid, call.start, node);
        }
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<()> {
        self.inside.iter_mut().for_each(|inside| inside.end(at, call.depth));
        let node = self.at(at, call.depth);
        self.count(node, (call.own, call.own_cost), 1, call.error.is_some());
        let range = self.ranges.as_mut().and_then(|ranges| ranges.exit(at, call, event));
        self.ranged(at, range);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<()> {
        self.inside.iter_mut().for_each(|inside| inside.end(at, call.depth));
        let node = self.at(at, call.depth);
        self.count(node, (0, 0), 1, true);
        let range = self.ranges.as_mut().and_then(|ranges| ranges.unfinished(at, call));
        self.ranged(at, range);
        ControlFlow::Continue(())
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> ControlFlow<()> {
        let range = self.ranges.as_mut().and_then(|ranges| ranges.orphan(call));
        self.ranged(at, range);
        ControlFlow::Continue(())
    }

    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> ControlFlow<()> {
        let range = self.ranges.as_mut().and_then(|ranges| ranges.border(at, border, name));
        self.ranged(at, range);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<()> {
        let frame = self.function(fold.function);
        let outer = self.around(at, fold.depth);
        let node = self.paths.below(outer, frame);
        self.count(node, (fold.total, fold.cost), fold.count, fold.error.is_some());
        ControlFlow::Continue(())
    }

    fn sample(&mut self, at: At<'_>, sample: &Sample, _: &Event<'_, '_>) -> ControlFlow<()> {
        let stacks = self.trace.names().stacks();
        let place = self.inside.as_ref().map(|inside| inside.place(sample, stacks));
        let counts = match self.options.weight {
            Weight::Cpu => true,
            // What is in calls is in their time.
            Weight::Time => place == Some(Where::Outside),
            _ => false,
        };
        if !counts {
            return ControlFlow::Continue(());
        }
        let name = at.threads.name_of(sample.pid, sample.tid).unwrap_or("thread").to_owned();
        let root = self.root(&Thread { pid: sample.pid, tid: sample.tid, name });
        let known = at.threads.find(sample.pid, sample.tid);
        let known = known.and_then(|thread| self.threads.get(thread.index())?.as_ref());
        let root = known.filter(|thread| !thread.ranges.is_empty()).map_or(root, OpenCalls::base);
        let mut node = self.made_by(root, sample.stack, StackId::NONE);
        if stacks.frames(sample.stack).is_empty() {
            let frame = self.paths.frame(NOT_KNOWN);
            node = self.paths.below(root, frame);
        }
        self.paths.add(node, sample.period);
        ControlFlow::Continue(())
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        let weight = match self.options.weight {
            Weight::Device if !command.failed() => command.times.map_or(0, |t| t.duration()),
            Weight::Bytes if !command.failed() => command.bytes,
            _ => 0,
        };
        if weight == 0 {
            return ControlFlow::Continue(());
        }
        let outer = self.cause(command, at.who());
        let title = match command.function.filter(|f| !f.name.is_empty()) {
            Some(f) => demangle::short(&f.name),
            None => command.title().into(),
        };
        let frame = self.paths.frame(&format!("[device] {title}"));
        let node = self.paths.below(outer, frame);
        // A sampled launch stands for others.
        self.paths.add(node, weight.saturating_mul(command.weight.max(1)));
        ControlFlow::Continue(())
    }
}
