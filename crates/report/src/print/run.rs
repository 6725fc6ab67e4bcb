//! The walk that prints.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::{Event, StreamError};

use super::beside::{Beside, Next, Probes};
use super::clock::Face;
use super::commands::{Commands, write_number};
use super::filter::{Filter, Line};
use super::line::{Who, write_call, write_duration, write_fields, write_result};
use super::nested::{self, Nested};
use super::numbers::Numbers;
use super::order::{Order, Place, Waited};
use super::shared::Shared;
use super::tree::Tree;
use super::{Form, Options};
use crate::text::Style;
use hetrace_trace::args::{Args, Plans, Role};
use hetrace_trace::budget::{BudgetStep, step_of};
use hetrace_trace::capture::flip_of;
use hetrace_trace::layers::Layers;
use hetrace_trace::samples::Sample;
use hetrace_trace::spans::{
    At, Call, Command, ErrorText, Fold, NewQueue, OWN_WORK, Open, Orphan, Summary, Unfinished, Visitor, Why,
    cause_id, walk_as_recorded,
};
use hetrace_trace::stacks::{StackId, is_definition};
use hetrace_trace::text::duration;
use hetrace_trace::trace::Fired;
use hetrace_trace::trace::{FunctionId, Thread, Trace};
use hetrace_trace::watch::{Stopped, Watch};

/// Prints what of a trace is asked for; none if `watch` has stopped it, with
/// whole lines.
///
/// # Errors
/// Those of `out`.
pub fn print_some(
    trace: &Trace,
    options: &Options,
    filter: &Filter,
    watch: Watch<'_>,
    out: &mut dyn Write,
) -> io::Result<Option<Summary>> {
    print_both(trace, None, options, filter, watch, out)
}

/// The same with the events of the operating system in between, which were recorded in a trace beside it.
///
/// # Errors
/// Those of `out`.
pub fn print_both(
    trace: &Trace,
    beside: Option<&Trace>,
    options: &Options,
    filter: &Filter,
    watch: Watch<'_>,
    out: &mut dyn Write,
) -> io::Result<Option<Summary>> {
    let shared = Shared::of(trace);
    let style = Style { colour: options.colour };
    let mut commands = Commands::new(style, options.full_names);
    let nested = match options.form {
        Form::Tree => nested_commands(trace, filter, watch, &shared, &mut commands),
        Form::Calls | Form::Events => Ok(Nested::default()),
    };
    let Ok(nested) = nested else { return Ok(None) };
    let mut printer = Printer {
        trace,
        out,
        form: options.form,
        style,
        face: Face::new(options.clock, trace.epoch_offset_ns(), options.deltas),
        plans: Plans::new(trace),
        shared,
        commands,
        nested,
        nesting: HashSet::new(),
        commands_met: 0,
        numbers: if options.form == Form::Calls { Numbers::of(trace) } else { Numbers::default() },
        layers: (options.form == Form::Calls && trace.models().len() > 1).then(|| Layers::between(trace)),
        order: Order::default(),
        open: Vec::new(),
        exit: Args::default(),
        around: Args::default(),
        maker: StackId::NONE,
        line: String::new(),
        time: 0,
        depth: 0,
        ready: String::with_capacity(2 * FULL),
        texts: HashMap::new(),
        filter,
        all: filter.is_of_all(),
        tree: Tree::default(),
        whole: String::new(),
        watch,
        left: WATCHED,
        who: Who::default(),
        first: None,
        now: 0,
        beside: beside.map(Beside::new),
        probes: Probes::new(trace),
        fired: fired(trace),
    };
    match printer.walk() {
        ControlFlow::Continue(summary) => {
            printer.out.flush()?;
            Ok(Some(summary))
        }
        ControlFlow::Break(Some(error)) => Err(error),
        // What is left would perhaps wait for a reader who does not come.
        ControlFlow::Break(None) => Ok(None),
    }
}

/// Events between two questions whether to go on; lines do not wait longer, either.
const WATCHED: u32 = 1 << 12;
/// Bytes that are written at a time, or somewhat more.
const FULL: usize = 1 << 16;

struct Printer<'t, 'o> {
    trace: &'t Trace,
    out: &'o mut dyn Write,
    form: Form,
    style: Style,
    face: Face,
    who: Who,
    plans: Plans<'t>,
    shared: Shared,
    /// What was passed to open calls, by thread and depth.
    open: Vec<Vec<Args<'t>>>,
    exit: Args<'t>,
    /// What stands beside an event's fields.
    around: Args<'t>,
    /// The code that makes the call whose entry is printed.
    maker: StackId,
    /// The line that is being made, without its time.
    line: String,
    /// Its time, and how deep in other calls it is.
    time: u64,
    depth: u32,
    /// Lines that are in order and not written yet.
    ready: String,
    /// Lines that others may come before.
    order: Order,
    commands: Commands,
    numbers: Numbers,
    /// Which calls brought commands about; none where there is one API only, or commands stand below their calls.
    layers: Option<Layers<'t>>,
    /// Commands that stand below their calls.
    nested: Nested,
    /// The calls that have such commands, of those that have begun.
    nesting: HashSet<u64>,
    /// Commands that came and may be nested.
    commands_met: usize,
    /// What APIs say of their error codes.
    texts: HashMap<String, HashMap<i64, String>>,
    filter: &'o Filter,
    /// Whether nothing is left out.
    all: bool,
    tree: Tree,
    /// An outermost call with all that is inside.
    whole: String,
    watch: Watch<'o>,
    /// Events until the next question whether to go on.
    left: u32,
    /// Time of the first event, and of the last one that came.
    first: Option<u64>,
    now: u64,
    /// Events of the operating system.
    beside: Option<Beside<'t>>,
    /// The ranges between probes that are open.
    probes: Probes,
    /// Triggers that fired, by time.
    fired: VecDeque<&'t Fired>,
}

/// Triggers that fired in a flight recording, by time.
fn fired(trace: &Trace) -> VecDeque<&Fired> {
    let mut fired: Vec<&Fired> = trace.manifest().flight.iter().flat_map(|flight| &flight.fired).collect();
    fired.sort_by_key(|fired| fired.time_ns);
    fired.into()
}

/// The commands of a trace by their calls, in words.
fn nested_commands(
    trace: &Trace,
    filter: &Filter,
    watch: Watch<'_>,
    shared: &Shared,
    commands: &mut Commands,
) -> Result<Nested, Stopped> {
    Nested::of(trace, watch, |at, command, first| {
        let line = command_line(command, at.time.saturating_sub(first));
        let mut text = String::new();
        commands.write(&mut text, shared, command, None);
        (text, filter.is_of_all() || filter.has_command(command, &line))
    })
}

/// What a filter asks for of a command; it has several names.
fn command_line<'e>(command: &Command<'e>, begin: u64) -> Line<'e> {
    Line {
        name: "",
        api: command.on_queue.map_or("", |queue| &queue.api),
        begin,
        duration: command.times.map(|t| t.duration()),
        failed: command.failed(),
    }
}

/// Ends with an error, or none if it is stopped.
type Step = ControlFlow<Option<io::Error>>;

impl<'t> Printer<'t, '_> {
    /// Begins a line.
    fn begin(&mut self, at: At<'_>, time: u64) {
        self.begin_at(time);
        self.who.write(&mut self.line, at);
    }

    /// Begins a line that is of no thread.
    fn begin_at(&mut self, time: u64) {
        self.line.clear();
        (self.time, self.depth) = (time, 0);
    }

    /// Begins the line of a call: what was passed, if that is known, and what came back, if it did.
    fn begin_call(
        &mut self,
        at: At<'_>,
        time: u64,
        function: FunctionId,
        place: Option<(usize, u32)>,
        returned: bool,
    ) {
        self.begin(at, time);
        self.call_text(function, place, returned);
    }

    fn call_text(&mut self, function: FunctionId, place: Option<Place>, returned: bool) {
        self.indent(place.map_or(0, |(_, depth)| depth));
        let name = self.shared.name(function).unwrap_or(&self.trace.functions().get(function).name);
        self.line.push_str(name);
        let entry = place.and_then(|(thread, depth)| self.open.get(thread)?.get(depth as usize));
        let exit = returned.then_some(&self.exit);
        let params = self.trace.described(function).map(|f| f.params.as_slice());
        write_call(&mut self.line, params, entry, exit);
    }

    fn indent(&mut self, depth: u32) {
        self.depth = depth;
        // A stack that deep is damage; so deep a line helps nobody.
        for _ in 0..depth.min(32) {
            self.line.push_str("  ");
        }
    }

    fn end(&mut self) -> Step {
        self.line.push('\n');
        // What comes is never earlier than what waits already, as far as it is not of a call that is open.
        if self.form == Form::Events || self.order.is_idle(self.time) {
            self.face.write(&mut self.ready, self.time);
            self.ready.push_str(&self.line);
            return self.write_if_full();
        }
        let line = std::mem::take(&mut self.line);
        self.order.push(self.time, self.depth, true, line);
        self.let_go(Some(self.now))
    }

    /// Makes lines ready that no other can come before any more, if all that comes is at `now` or later; all if that is none.
    fn let_go(&mut self, now: Option<u64>) -> Step {
        self.ready_until(now)?;
        // Which lines a filter wants is known at the end of a call only; but then few wait.
        while self.order.is_full() && self.all && self.form == Form::Calls && now.is_some() {
            let Some((start, place, call)) = self.order.cut() else { break };
            self.cut_line(start, place, &call);
            self.ready_until(now)?;
        }
        ControlFlow::Continue(())
    }

    fn ready_until(&mut self, now: Option<u64>) -> Step {
        while let Some(held) = self.order.next(now) {
            if held.timed {
                self.face.write(&mut self.ready, held.time);
            }
            self.ready.push_str(&held.text);
            self.write_if_full()?;
        }
        ControlFlow::Continue(())
    }

    /// A line for the beginning of a call that does not end soon.
    fn cut_line(&mut self, start: u64, place: Place, call: &Waited) {
        let Waited { function, pid, tid } = *call;
        self.begin_at(start);
        let _ = write!(self.line, "{pid}:{tid} ");
        self.call_text(function, Some(place), false);
        self.line.push_str(" <returns below>\n");
        let line = std::mem::take(&mut self.line);
        self.order.push(start, place.1, true, line);
    }

    /// Begins the second line of a call that has one already.
    fn resume(&mut self, at: At<'_>, end: u64, function: FunctionId, depth: u32) {
        self.begin(at, end);
        self.indent(depth);
        let name = self.shared.name(function).unwrap_or(&self.trace.functions().get(function).name);
        let _ = write!(self.line, "<{name} returned>");
    }

    /// A call begins.
    fn open_call(&mut self, at: At<'_>, call: &Open, place: Place) {
        let who = at.who();
        let cause = || cause_id(who.pid, who.tid, call.start);
        match self.form {
            Form::Events => return,
            Form::Calls => {
                self.numbers.entry(call.function, cause);
                if let Some(layers) = &mut self.layers {
                    layers.entry(at, call);
                }
            }
            Form::Tree => {
                let cause = cause();
                if self.nested.has(cause) {
                    self.nesting.insert(cause);
                }
                if call.depth > 0 {
                    return;
                }
            }
        }
        self.order.entry(call.start, place, Waited { function: call.function, pid: who.pid, tid: who.tid });
    }

    fn write_if_full(&mut self) -> Step {
        if self.ready.len() < FULL { ControlFlow::Continue(()) } else { self.write() }
    }

    #[cold]
    fn write(&mut self) -> Step {
        let written = self.out.write_all(self.ready.as_bytes());
        self.ready.clear();
        written.map_or_else(|error| ControlFlow::Break(Some(error)), ControlFlow::Continue)
    }

    /// Reads both traces, and makes lines of all that is in them.
    fn walk(&mut self) -> ControlFlow<Option<io::Error>, Summary> {
        let mut summary = walk_as_recorded(self.trace, self)?;
        self.beside_until(None)?;
        self.fired_until(None)?;
        let (damaged, packets) = self.beside.as_ref().map_or((0, 0), Beside::missing);
        summary.merge(Summary { damaged, lost_packets: packets, ..Summary::default() });
        self.finish()?;
        ControlFlow::Continue(summary)
    }

    /// Writes all that is left.
    fn finish(&mut self) -> Step {
        self.let_go(None)?;
        self.write()
    }

    /// Ends the line of a call: in a tree it waits for the outermost one.
    fn end_call(&mut self, call: &Line<'_>, start: u64, at: Place, wanted: bool) -> Step {
        if self.form != Form::Tree {
            return self.end();
        }
        self.line.push('\n');
        let mut line = String::with_capacity(self.line.len() + 24);
        self.face.write(&mut line, self.time);
        line.push_str(&self.line);
        self.whole.clear();
        self.tree.call(at.0, call.begin, at.1, &line, wanted, &mut self.whole);
        if self.whole.is_empty() {
            return ControlFlow::Continue(());
        }
        self.order.push(start, 0, false, std::mem::take(&mut self.whole));
        self.let_go(Some(self.now))
    }

    /// Puts the commands of a call below it, before the call itself comes.
    fn nest(&mut self, at: At<'_>, begin: u64, start: u64, place: Place) {
        if self.form != Form::Tree {
            return;
        }
        let who = at.who();
        let cause = cause_id(who.pid, who.tid, start);
        if !self.nesting.contains(&cause) {
            return;
        }
        for nested::Command { time, text, wanted } in self.nested.take(cause) {
            self.begin(at, time);
            self.indent(place.1.saturating_add(1));
            let mut line = String::new();
            self.face.write(&mut line, time);
            let _ = writeln!(line, "{}{text}", self.line);
            self.tree.call(place.0, begin, place.1.saturating_add(1), &line, wanted, &mut self.whole);
        }
    }

    /// A call that is not wanted has ended.
    fn skip(&mut self, call: &Line<'_>, at: (usize, u32)) -> Step {
        if self.form == Form::Tree {
            self.tree.call(at.0, call.begin, at.1, "", false, &mut self.whole);
        }
        ControlFlow::Continue(())
    }

    /// Whether a call that is not wanted may be shown for the sake of one that is.
    fn is_around(&self, (thread, depth): (usize, u32)) -> bool {
        self.form == Form::Tree && (depth > 0 || self.tree.has_wanted(thread))
    }

    /// After the first event, ns.
    fn since_first(&self, time: u64) -> u64 {
        time.saturating_sub(self.first.unwrap_or(time))
    }

    /// Whether a call is wanted.
    fn wants(&self, at: At<'_>, line: &Line<'_>, args: [Option<&Args<'_>>; 2]) -> bool {
        self.all || self.filter.has_call(at.who(), line, args)
    }

    /// What was passed to a call.
    fn passed(&self, place: (usize, u32)) -> Option<&Args<'t>> {
        self.open.get(place.0)?.get(place.1 as usize)
    }

    /// Whether an event is wanted that is neither call nor command.
    fn wants_event(&self, at: At<'_>, api: &str, name: &str) -> bool {
        let line = Line { name, api, begin: self.since_first(at.time), ..Line::default() };
        self.all || self.filter.has_event(at.who(), &line)
    }

    fn line_of(&self, function: FunctionId) -> Line<'t> {
        let function = self.trace.functions().get(function);
        let api = self.trace.functions().apis().get(function.api).map_or("", String::as_str);
        Line { name: &function.name, api, ..Line::default() }
    }

    /// What was passed to an open call.
    fn args(&mut self, call: (usize, u32)) -> &mut Args<'t> {
        let (thread, depth) = (call.0, call.1 as usize);
        if self.open.len() <= thread {
            self.open.resize_with(thread + 1, Vec::new);
        }
        let open = &mut self.open[thread];
        if open.len() <= depth {
            open.resize_with(depth + 1, Args::default);
        }
        &mut open[depth]
    }

    /// Reads what came back from a call.
    fn read_exit(&mut self, call: Option<(usize, u32)>, event: &Event<'_, '_>) {
        let open = call.and_then(|(thread, depth)| self.open.get(thread)?.get(depth as usize));
        self.exit.read(&self.plans, event, open);
    }

    /// A line for an event.
    fn event_line(&mut self, at: At<'_>, event: &Event<'_, '_>, args: &Args<'_>) -> Step {
        self.begin(at, at.time);
        self.line.push_str(&event.class().name);
        self.line.push_str(": ");
        self.contexts(event);
        let mut first = true;
        if let Some(result) = args.find(Role::Return) {
            self.line.push_str("result=");
            self.line.push_str(result);
            first = false;
        }
        write_fields(&mut self.line, args, &mut first);
        self.line.truncate(self.line.trim_end().len());
        self.made_by(self.maker);
        self.end()
    }

    /// What another tracer has written beside an event.
    fn contexts(&mut self, event: &Event<'_, '_>) {
        self.around.read_contexts(&self.plans, event);
        if self.around.pieces.is_empty() {
            return;
        }
        self.line.push('{');
        write_fields(&mut self.line, &self.around, &mut true);
        self.line.push_str("} ");
    }

    /// Lines for events of the operating system before a time, or for all that are left.
    fn beside_until(&mut self, time: Option<u64>) -> Step {
        let Some(mut beside) = self.beside.take() else { return ControlFlow::Continue(()) };
        let step = beside.until(time, |next| match next {
            Ok(event) => self.beside_line(event),
            Err(damage) => self.damage_line(damage),
        });
        self.beside = Some(beside);
        step
    }

    /// Lines for triggers that fired before a time, or for all that are left.
    fn fired_until(&mut self, time: Option<u64>) -> Step {
        while let Some(fired) = self.fired.pop_front_if(|fired| time.is_none_or(|time| fired.time_ns < time))
        {
            if self.all {
                self.begin_at(fired.time_ns);
                self.line.push_str(&self.style.red(&format!("<{fired}>")));
                self.end()?;
            }
        }
        ControlFlow::Continue(())
    }

    fn beside_line(&mut self, event: &Next<'_>) -> Step {
        self.met(event.time)?;
        let ended = self.probes.ended(event);
        let begin = self.since_first(event.time);
        let line = Line { name: event.name, api: "kernel", begin, ..Line::default() };
        if !self.all && !self.filter.has_event(&event.who, &line) {
            return ControlFlow::Continue(());
        }
        self.begin_at(event.time);
        let _ = write!(self.line, "kernel {}: {}", event.name, event.text);
        self.line.truncate(self.line.trim_end().len());
        if let Some((name, since)) = ended {
            let _ = write!(self.line, "  ({name}, {})", duration(since));
        }
        self.end()
    }

    /// An event of either trace has come: asks now and then whether to go on.
    fn met(&mut self, time: u64) -> Step {
        self.face.see(time);
        self.now = self.now.max(time);
        self.first.get_or_insert(time);
        self.left -= 1;
        if self.left > 0 {
            return ControlFlow::Continue(());
        }
        self.left = WATCHED;
        if (self.watch)(u64::from(WATCHED)).is_break() {
            return ControlFlow::Break(None);
        }
        self.let_go(Some(time))?;
        self.write()
    }

    /// A line for bytes that could not be read.
    fn damage_line(&mut self, damage: &StreamError) -> Step {
        let line = self.style.red(&format!("<damaged: {damage}>")) + "\n";
        self.order.push(self.now, 0, false, line);
        self.let_go(Some(self.now))
    }

    /// A line for a step by which a thread keeps within its budget.
    fn budget_step(&mut self, at: At<'_>, api: &str, step: &BudgetStep) -> Step {
        self.begin(at, at.time);
        let timed = match step.one_in {
            1 => "all commands are timed".to_owned(),
            many => format!("one in {many} commands of a kernel or kind is timed"),
        };
        let calls = match (step.summed, step.counted) {
            (false, _) => "all calls are recorded",
            (true, false) => "calls are added up",
            (true, true) => "calls are counted and some of them timed",
        };
        let [spent, budget] = [step.spent_ppm, step.budget_ppm].map(|ppm| f64::from(ppm) / 1e4);
        let _ = write!(
            self.line,
            "{api}: from here on {timed}, {calls}  (recording took {spent:.1}% of the time, of {budget}% allowed)"
        );
        self.end()
    }

    /// Appends the code that made a call, if that is known.
    fn made_by(&mut self, stack: StackId) {
        if let Some(frame) = self.trace.names().stacks().innermost(stack) {
            let _ = write!(self.line, "  at {frame}");
        }
    }

    /// A line for an event that is no call.
    fn plain(&mut self, at: At<'_>, event: &Event<'_, '_>) -> Step {
        let mut args = std::mem::take(&mut self.exit);
        args.read(&self.plans, event, None);
        let step = self.event_line(at, event, &args);
        self.exit = args;
        step
    }
}

impl Visitor for Printer<'_, '_> {
    type Break = Option<io::Error>;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        self.beside_until(Some(at.time))?;
        self.met(at.time)?;
        if self.fired.is_empty() { ControlFlow::Continue(()) } else { self.fired_until(Some(at.time)) }
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let place = (call.thread.index(), call.depth);
        let mut args = std::mem::take(self.args(place));
        args.read(&self.plans, event, None);
        let line = Line { begin: self.since_first(call.start), ..self.line_of(call.function) };
        let wanted = self.form == Form::Events && self.wants(at, &line, [Some(&args), None]);
        self.open_call(at, call, place);
        self.maker = call.stack;
        let step = if wanted { self.event_line(at, event, &args) } else { ControlFlow::Continue(()) };
        self.maker = StackId::NONE;
        *self.args(place) = args;
        step
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let place = (call.thread.index(), call.depth);
        let cut = self.order.exit(call.start, place);
        self.read_exit(Some(place), event);
        self.nest(at, self.since_first(call.start), call.start, place);
        let line = Line {
            begin: self.since_first(call.start),
            duration: Some(call.duration()),
            failed: call.error.is_some(),
            ..self.line_of(call.function)
        };
        let wanted = self.wants(at, &line, [self.passed(place), Some(&self.exit)]);
        if !wanted && !self.is_around(place) {
            return self.skip(&line, place);
        }
        if self.form == Form::Events {
            let args = std::mem::take(&mut self.exit);
            let step = self.event_line(at, event, &args);
            self.exit = args;
            return step;
        }
        if cut {
            self.resume(at, call.end, call.function, call.depth);
        } else {
            self.begin_call(at, call.start, call.function, Some(place), true);
        }
        write_result(&mut self.line, self.style, &self.exit, call.error.is_some());
        if let Some(code) = call.error {
            let api = self.trace.functions().get(call.function).api;
            let api = self.trace.functions().apis().get(api);
            if let Some(text) = api.and_then(|api| self.texts.get(api)?.get(&code)) {
                let _ = write!(self.line, " \"{text}\"");
            }
        }
        self.line.push_str("  ");
        let who = at.who();
        let cause = || cause_id(who.pid, who.tid, call.start);
        write_number(&mut self.line, self.numbers.of_call(call.function, cause));
        self.line.push('(');
        write_duration(&mut self.line, call.duration(), call.cost);
        self.line.push(')');
        self.made_by(call.stack);
        self.end_call(&line, call.start, place, wanted)
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let place = (call.thread.index(), call.depth);
        let cut = self.order.exit(call.start, place);
        self.nest(at, self.since_first(call.start), call.start, place);
        let why = match call.why {
            Why::TraceEnds => "no end: still running when the trace ends",
            Why::ExitLost => "no end: it was lost",
            Why::ThreadEnded => "no end: its thread ended",
        };
        let why = self.style.red(&format!("<{why}>"));
        let line = Line {
            begin: self.since_first(call.start),
            duration: Some(call.until.saturating_sub(call.start)),
            ..self.line_of(call.function)
        };
        let wanted = self.wants(at, &line, [self.passed(place), None]);
        if !wanted && !self.is_around(place) {
            return self.skip(&line, place);
        }
        if cut {
            self.resume(at, call.until, call.function, call.depth);
        } else {
            self.begin_call(at, call.start, call.function, Some(place), false);
        }
        let _ = write!(self.line, " {why}");
        self.made_by(call.stack);
        self.end_call(&line, call.start, place, wanted)
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> Step {
        self.read_exit(None, event);
        let (begin, failed) = (self.since_first(call.end), call.error.is_some());
        let line = Line { begin, failed, ..self.line_of(call.function) };
        if !self.wants(at, &line, [None, Some(&self.exit)]) {
            return ControlFlow::Continue(());
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin_call(at, call.end, call.function, None, true);
        write_result(&mut self.line, self.style, &self.exit, call.error.is_some());
        let _ = write!(self.line, "  {}", self.style.red("<no beginning: it was lost>"));
        self.end()
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, event: &Event<'_, '_>) -> Step {
        let line = Line {
            begin: self.since_first(fold.first),
            duration: Some(fold.total),
            failed: fold.error.is_some(),
            ..self.line_of(fold.function)
        };
        let place = (fold.thread.index(), fold.depth);
        let wanted = self.wants(at, &line, [None, None]);
        if !wanted && !self.is_around(place) {
            return self.skip(&line, place);
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        // They are known when the last one has ended.
        self.begin(at, at.time);
        self.indent(fold.depth);
        let _ = write!(
            self.line,
            "{}: {} {} from ",
            self.shared.name(fold.function).unwrap_or(&self.trace.functions().get(fold.function).name),
            fold.count,
            if fold.summed { "calls added up" } else { "equal calls" },
        );
        self.face.write_time(&mut self.line, fold.first);
        let _ = write!(self.line, " on in {}, inside them ", duration(fold.last.saturating_sub(fold.first)));
        write_duration(&mut self.line, fold.total, fold.cost);
        let line = Line { begin: self.since_first(at.time), ..line };
        self.end_call(&line, at.time, place, wanted)
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, event: &Event<'_, '_>) -> Step {
        if self.form == Form::Tree && nested::is_nested(command, self.commands_met) {
            self.commands_met += 1;
            if self.nesting.contains(&command.cause_id()) {
                return ControlFlow::Continue(());
            }
        }
        let line = command_line(command, self.since_first(at.time));
        if !self.all && !self.filter.has_command(command, &line) {
            return ControlFlow::Continue(());
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin_at(at.time);
        // A thread of the API may have reported it.
        let _ = match command.cause_tid {
            0 => write!(self.line, "{}:- ", command.pid),
            tid => write!(self.line, "{}:{tid} ", command.pid),
        };
        let number = self.numbers.of_command(command.cause_id());
        self.commands.write(&mut self.line, &self.shared, command, number);
        if let Some(calls) = self.layers.as_mut().and_then(|layers| layers.several(command)) {
            let _ = write!(self.line, " by {calls}");
        }
        self.end()
    }

    fn queue(&mut self, at: At<'_>, queue: &NewQueue<'_>, event: &Event<'_, '_>) -> Step {
        if !self.wants_event(at, "", &event.class().name) {
            return ControlFlow::Continue(());
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin(at, at.time);
        let _ = write!(
            self.line,
            "queue {:#x}{}: made on {} (device {:#x}, context {:#x})",
            queue.queue,
            self.shared.mark(queue.about.id),
            queue.name,
            queue.device,
            queue.context
        );
        self.end()
    }

    fn unknown(&mut self, at: At<'_>, api: &str, function: &str, event: &Event<'_, '_>) -> Step {
        if !self.wants_event(at, api, function) {
            return ControlFlow::Continue(());
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.exit.read(&self.plans, event, None);
        self.begin(at, at.time);
        let args = self.exit.pieces.iter().find(|piece| piece.name == "args");
        let args = args.map_or("", |piece| self.exit.of(piece));
        let args = args.trim_start_matches('[').trim_end_matches(']');
        let remark = self.style.red("<not in the model: what was in the registers>");
        let _ = write!(self.line, "{function}({args})  {remark}");
        self.end()
    }

    fn sample(&mut self, at: At<'_>, sample: &Sample, event: &Event<'_, '_>) -> Step {
        // Who recorded it is not whom it is of.
        let who = Thread { pid: sample.pid, tid: sample.tid, name: String::new() };
        let line = Line {
            name: &event.class().name,
            api: "cpu",
            begin: self.since_first(at.time),
            ..Line::default()
        };
        if !self.all && !self.filter.has_event(&who, &line) {
            return ControlFlow::Continue(());
        }
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin_at(at.time);
        let kernel = if sample.kernel { ", in the kernel" } else { "" };
        let _ = write!(self.line, "{}:{} on CPU {}{kernel}", sample.pid, sample.tid, sample.cpu);
        // What ran is the innermost frame, whatever is known of it.
        if let Some(frame) = self.trace.names().stacks().frames(sample.stack).first() {
            let _ = write!(self.line, "  at {frame}");
        }
        self.end()
    }

    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> Step {
        if self.form != Form::Events
            && let Some(ErrorText { api, code, text }) = ErrorText::of(event)
        {
            // It stands beside the calls that fail.
            let text = text.unwrap_or_default().to_owned();
            self.texts.entry(api.to_owned()).or_default().insert(code, text);
            return ControlFlow::Continue(());
        }
        // What recording took is no event of the program.
        let name = &event.class().name;
        // Nor is what describes calls.
        if self.form != Form::Events && (name.ends_with(OWN_WORK) || is_definition(name)) {
            return ControlFlow::Continue(());
        }
        if !self.wants_event(at, "", &event.class().name) {
            return ControlFlow::Continue(());
        }
        if let Some(flip) = flip_of(event).filter(|_| self.form != Form::Events) {
            self.begin(at, at.time);
            self.line.push_str(&flip);
            return self.end();
        }
        match step_of(event).filter(|_| self.form != Form::Events) {
            Some((api, step)) => self.budget_step(at, api, &step),
            None => self.plain(at, event),
        }
    }

    fn damage(&mut self, damage: &StreamError) -> Step {
        self.damage_line(damage)
    }
}
