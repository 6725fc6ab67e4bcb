//! The walk that draws.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::calls;
use super::commands;
use super::devices::Devices;
use super::flows::{Flows, Onward};
use super::inside::Insides;
use super::kernels::Kernels;
use super::memory::Live;
use super::monitored::Monitor;
use super::part::{Drawn, Error, Options, Part, Parts, Watch, Whole};
use super::ranges::{Place, RangeRows};
use super::remarks::{Remark, remarks};
use super::samples;
use super::sheet::{CONTINUED, Mark, Sheet};
use super::states::States;
use super::tracks::Tracks;
use super::traits::{Traits, traits};
use hetrace_trace::args::{Args, Plans};
use hetrace_trace::budget::step_of;
use hetrace_trace::capture::flip_of;
use hetrace_trace::layers::Layers;
use hetrace_trace::memory::Table;
use hetrace_trace::placed::Placed;
use hetrace_trace::ranges::{Ranges, Step as RangeStep};
use hetrace_trace::samples::Sample;
use hetrace_trace::spans::{
    At, Call, Command, Fold, Open, Orphan, Summary, Unfinished, Visitor, Why, cause_id, walk,
};
use hetrace_trace::text::{STILL_OPEN, STILL_RUNNING};
use hetrace_trace::titles::queue_name;
use hetrace_trace::trace::{Function, FunctionId, Thread, Trace};

/// Writes one file for Perfetto (`.pftrace`), whatever its size. It ends with the first error of
/// `out`.
///
/// # Errors
/// Those of `out`.
pub fn timeline(trace: &Trace, options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let options = Options { part_bytes: u64::MAX, part_slices: u64::MAX, ..options.clone() };
    match timeline_in_parts(trace, &options, &mut Whole(out), &|_| ControlFlow::Continue(())) {
        Ok(drawn) => Ok(drawn.summary),
        Err(Error::Io(error)) => Err(error),
        Err(Error::Stopped) => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Writes files for Perfetto, a new one whenever one is large enough.
///
/// # Errors
/// Those of `out`, and when `watch` says so. The last file is not whole then.
pub fn timeline_in_parts(
    trace: &Trace,
    options: &Options,
    out: &mut dyn Parts,
    watch: Watch<'_>,
) -> Result<Drawn, Error> {
    let table = Table::new(trace);
    let placed = Placed::new(trace, Some(watch)).map_err(|_| Error::Stopped)?;
    let mut drawer = Drawer {
        trace,
        options,
        watch,
        left: WATCHED,
        turn_at: 0,
        first: None,
        parts: Vec::new(),
        sheet: Sheet::new(out),
        tracks: Tracks::default(),
        rows: Vec::new(),
        plans: options.arguments.then(|| Plans::new(trace)),
        traits: traits(trace),
        several_apis: trace.models().len() > 1,
        layers: (trace.models().len() > 1).then(|| Layers::between(trace)),
        threads: Vec::new(),
        exit: Args::default(),
        devices: Devices::default(),
        flows: Flows::new(trace),
        kernels: Kernels::new(trace),
        ranges: Ranges::new(trace),
        range_rows: RangeRows::default(),
        monitor: Monitor::new(trace),
        live: Live::new(trace, &table),
        states: States::new(trace, &options.pids),
        insides: Insides::new(placed, &options.pids, options.inside_slices),
        arrows: Vec::new(),
        remarks: remarks(trace),
    };
    let summary = match walk(trace, &mut drawer) {
        ControlFlow::Continue(summary) => summary,
        ControlFlow::Break(Stop::Io(error)) => return Err(error.into()),
        ControlFlow::Break(Stop::Asked) => return Err(Error::Stopped),
        ControlFlow::Break(Stop::WindowEnds) => {
            let mut summary = Summary::default();
            summary.add_manifest(trace);
            summary
        }
    };
    drawer.remarks_until(u64::MAX)?;
    drawer.finish(&summary)?;
    let Insides { left_out, unplaced, .. } = drawer.insides;
    Ok(Drawn { summary, parts: drawer.parts, inside_left_out: left_out, inside_unplaced: unplaced })
}

/// Events between two questions whether to go on.
pub(super) const WATCHED: u32 = 1 << 16;

/// Where an arrow from a command to the wait for it ends.
const WAITED: &str = "command done";

/// Why the walk ended early.
pub(super) enum Stop {
    Io(io::Error),
    Asked,
    WindowEnds,
}

pub(super) struct Drawer<'t, 'o> {
    pub trace: &'t Trace,
    pub options: &'o Options,
    pub watch: Watch<'o>,
    /// Events until the next question whether to go on.
    pub left: u32,
    /// When the window begins or ends next.
    pub turn_at: u64,
    /// Time of the first event.
    pub first: Option<u64>,
    /// Files that are whole.
    pub parts: Vec<Part>,
    pub sheet: Sheet<'o>,
    pub tracks: Tracks,
    /// Rows of threads by number; forgotten when the program names something.
    rows: Vec<Option<u64>>,
    /// None if arguments are left out.
    plans: Option<Plans<'t>>,
    /// By function.
    traits: Vec<Traits<'t>>,
    several_apis: bool,
    /// Which calls brought commands about; none where there is one API only.
    layers: Option<Layers<'t>>,
    /// By thread.
    pub threads: Vec<calls::Thread<'t>>,
    exit: Args<'t>,
    pub devices: Devices,
    pub flows: Flows<'t>,
    kernels: Kernels,
    ranges: Ranges<'t>,
    range_rows: RangeRows,
    pub monitor: Monitor,
    pub live: Live<'t>,
    pub states: States<'t>,
    insides: Insides<'t>,
    /// Arrows of the mark that is about to be written; kept for its room.
    arrows: Vec<u64>,
    /// What is to be said of moments that are to come.
    remarks: VecDeque<Remark>,
}

pub(super) type Step = ControlFlow<Stop>;

pub(super) fn step(result: io::Result<()>) -> Step {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Stop::Io(error)),
    }
}

impl<'t> Drawer<'t, '_> {
    /// Draws what is to be said of moments up to a time.
    fn remarks_until(&mut self, until: u64) -> io::Result<()> {
        while let Some(remark) = self.remarks.pop_front_if(|r| r.time <= until) {
            let Remark { time, until, category, text } = remark;
            let row = self.tracks.remarks(&mut self.sheet);
            match until {
                Some(end) => self.sheet.slice(Mark::begin(time, row, category, &text), end)?,
                None => self.sheet.mark(Mark::instant(time, row, category, &text))?,
            }
        }
        Ok(())
    }

    /// The row of the thread.
    fn row(&mut self, at: At<'_>) -> u64 {
        let index = at.thread.index();
        if let Some(&Some(row)) = self.rows.get(index) {
            return row;
        }
        let who = at.who();
        let called = self.ranges.thread_name(who.pid, who.tid);
        let row = self.tracks.thread(&mut self.sheet, self.trace, at, called);
        if self.rows.len() <= index {
            self.rows.resize(index + 1, None);
        }
        self.rows[index] = Some(row);
        row
    }

    /// Whether a process is wanted.
    fn wants(&self, pid: i64) -> bool {
        self.options.pids.is_empty() || self.options.pids.contains(&pid)
    }

    fn open_calls(&mut self, at: At<'_>) -> &mut calls::Thread<'t> {
        let index = at.thread.index();
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, calls::Thread::default);
        }
        &mut self.threads[index]
    }

    fn traits(&self, function: FunctionId) -> Traits<'t> {
        self.traits.get(function.index()).copied().unwrap_or_default()
    }

    fn api(&self, function: &Function) -> &'t str {
        self.trace.functions().apis().get(function.api).map_or("", String::as_str)
    }

    fn begin_call(&mut self, at: At<'_>, call: &Open, e: &Event<'_, '_>) -> io::Result<()> {
        let trace = self.trace;
        let (function, traits) = (trace.functions().get(call.function), self.traits(call.function));
        self.open_calls(at).enter(call.depth);
        let who = at.who();
        if traits.is_range || !self.wants(who.pid) {
            return Ok(());
        }
        let row = self.row(at);
        self.arrows.clear();
        if function.enqueues {
            self.arrows.push(cause_id(who.pid, who.tid, call.start));
        }
        let own = self.arrows.first().copied();
        let mut arrows = std::mem::take(&mut self.arrows);
        let thread = self.open_calls(at);
        let start = thread.forward(call.start);
        if function.enqueues && thread.goes_on(call.depth) {
            thread.take_onward(call.depth, &mut arrows);
        }
        if traits.flushes {
            thread.take_waiting(call.depth);
        }
        self.arrows = arrows;
        let active = self.sheet.is_active();
        let (plans, notes) = (self.plans.as_ref().filter(|_| active), &mut self.sheet.notes);
        let slot = self.threads.get_mut(at.thread.index()).and_then(|t| t.at(call.depth));
        if let Some(slot) = slot {
            slot.drawn = true;
            if let Some(plans) = plans {
                slot.args.read(plans, e, None);
                notes.args(&slot.args);
                if let Some(collective) = traits.collective {
                    collective.annotate(notes, trace, call.function, &slot.args);
                }
                notes.stack(trace.names().stacks(), call.stack);
            }
            if traits.collective.is_some() {
                slot.collective = true;
                slot.onward.extend(own);
            }
        }
        let mark = Mark::begin(start, row, self.api(function), &function.name);
        self.sheet.mark(mark.flows(&self.arrows, own.unwrap_or(0)))
    }

    /// The arrows from what a call waited for, to where the wait ended.
    fn end_wait(&mut self, function: FunctionId, end: u64, row: u64) -> io::Result<()> {
        if self.arrows.is_empty() {
            return Ok(());
        }
        // Perfetto points arrows from the slice that begins first to the other, and
        // waits mostly begin before what they wait for: the end needs its own mark.
        let mark = Mark::instant(end, row, self.api(self.trace.functions().get(function)), WAITED);
        self.sheet.mark(Mark { ends: &self.arrows, ..mark })
    }

    fn end_call(&mut self, at: At<'_>, call: &Call, e: &Event<'_, '_>) -> io::Result<()> {
        let wait = self.flows.waits.exit(at, call);
        self.flows.waited(wait.as_ref(), &mut self.arrows);
        let traits = self.traits(call.function);
        if traits.is_range {
            return Ok(());
        }
        if traits.names {
            self.rows.clear();
        }
        let row = self.row(at);
        let Some(thread) = self.threads.get_mut(at.thread.index()) else { return Ok(()) };
        // It may be over already, together with what was around it.
        let Some(slot) = thread.at(call.depth).filter(|slot| slot.drawn) else { return Ok(()) };
        let collective = slot.collective;
        slot.drawn = false;
        let (inside, end) = (thread.close_inside(call.depth), thread.forward(call.end));
        for _ in 0..inside {
            self.sheet.mark(Mark::end(end, row))?;
        }
        if collective {
            thread.wait_for_group(call.depth);
        }
        self.end_wait(call.function, end, row)?;
        let slot = self.threads.get_mut(at.thread.index()).and_then(|t| t.at(call.depth));
        let plans = self.plans.as_ref().filter(|_| self.sheet.is_active());
        if let (Some(plans), Some(slot)) = (plans, slot) {
            self.exit.read(plans, e, Some(&slot.args));
            self.sheet.notes.args(&self.exit);
        }
        if let Some(code) = call.error {
            let name = self.trace.error_name(call.function, code);
            self.sheet.notes.text("error", &name);
        }
        self.sheet.notes.tracing(call.cost, call.duration());
        self.sheet.mark(Mark::end(end, row))
    }

    fn give_up(&mut self, at: At<'_>, call: &Unfinished) -> io::Result<()> {
        if self.traits(call.function).is_range {
            return Ok(());
        }
        let row = self.row(at);
        let Some(thread) = self.threads.get_mut(at.thread.index()) else { return Ok(()) };
        let Some(slot) = thread.at(call.depth).filter(|slot| slot.drawn) else { return Ok(()) };
        slot.drawn = false;
        let (inside, until) = (thread.close_inside(call.depth), thread.forward(call.until));
        for _ in 0..inside {
            self.sheet.mark(Mark::end(until, row))?;
        }
        let why = match call.why {
            Why::TraceEnds => STILL_RUNNING,
            Why::ExitLost => "its end was lost",
            Why::ThreadEnded => "its thread ended",
        };
        self.sheet.notes.text("unfinished", why);
        self.sheet.notes.tracing(call.cost, call.until - call.start);
        self.sheet.mark(Mark::end(until, row))
    }

    fn run(&mut self, at: At<'_>, fold: &Fold) -> io::Result<()> {
        let wait = self.flows.waits.fold(at, fold);
        self.flows.waited(wait.as_ref(), &mut self.arrows);
        if !self.wants(at.who().pid) {
            return Ok(());
        }
        let function = self.trace.functions().get(fold.function);
        let mut row = self.row(at);
        self.sheet.notes.number("calls", fold.count);
        self.sheet.notes.number("ns inside them", fold.total);
        if fold.summed {
            // A slice from the first to the last would hide what lies between them.
            let name = format!("{} (added up)", function.name);
            let row = self.tracks.less(&mut self.sheet, at.who(), row);
            return self.sheet.mark(Mark::instant(at.time, row, self.api(function), &name));
        }
        // What is before the file may be inside of what goes on from there.
        let first = fold.first.max(self.sheet.from());
        let (mut first, mut last) = (first, fold.last.max(first));
        // Calls of other APIs may begin and end within the run.
        if self.several_apis {
            row = self.tracks.runs(&mut self.sheet, at.who(), row);
        } else {
            let thread = self.open_calls(at);
            (first, last) = (thread.forward(first), thread.forward(last));
        }
        let name = format!("{} (folded)", function.name);
        self.sheet.mark(Mark::begin(first, row, self.api(function), &name))?;
        self.end_wait(fold.function, last, row)?;
        self.sheet.mark(Mark::end(last, row))
    }

    /// A thread records less from here on, or all again.
    fn step_of_budget(&mut self, at: At<'_>, event: &Event<'_, '_>) -> io::Result<()> {
        let Some((api, step)) = step_of(event).filter(|_| self.wants(at.who().pid)) else { return Ok(()) };
        let row = self.row(at);
        let row = self.tracks.less(&mut self.sheet, at.who(), row);
        let name = match (step.one_in, step.summed) {
            (1, false) => "all is recorded".to_owned(),
            (1, true) => "calls are added up".to_owned(),
            (many, false) => format!("one in {many} commands timed"),
            (many, true) if step.counted => format!("one in {many} commands timed, calls are counted"),
            (many, true) => format!("one in {many} commands timed, calls are added up"),
        };
        self.sheet.notes.number("spent, parts per million", step.spent_ppm.into());
        self.sheet.notes.number("budget, parts per million", step.budget_ppm.into());
        self.sheet.mark(Mark::instant(at.time, row, api, &name))
    }

    /// Writes what is certain of memory before a time.
    #[inline]
    pub fn draw_memory(&mut self, until: u64) -> io::Result<()> {
        let (sheet, tracks) = (&mut self.sheet, &mut self.tracks);
        self.live.draw(sheet, tracks, self.trace, &self.options.pids, until)
    }

    /// Writes what the operating system did to threads before a time, and what went on inside of kernels.
    #[cold]
    pub fn draw_states(&mut self, until: u64) -> io::Result<()> {
        self.insides.draw(&mut self.sheet, &mut self.tracks, self.trace, until)?;
        self.states.draw(&mut self.sheet, &mut self.tracks, self.trace, until)
    }

    fn ranged(&mut self, at: At<'_>, function: FunctionId, step: Option<&RangeStep>) -> io::Result<()> {
        let Some(step) = step.filter(|_| self.wants(at.who().pid)) else { return Ok(()) };
        let thread = self.row(at);
        let process = self.tracks.process(&mut self.sheet, self.trace, at.who());
        let api = self.api(self.trace.functions().get(function));
        let title = self.trace.model_of(function).map_or("", |m| m.title.as_str());
        let title = if title.is_empty() { api } else { title };
        let stacks = self.trace.names().stacks();
        self.range_rows.draw(&mut self.sheet, Place { api, title, process, thread, stacks }, step)
    }

    fn draw(&mut self, at: At<'_>, command: &Command<'_>) -> io::Result<()> {
        let start = command.times.map_or(at.time, |t| t.start);
        let end = command.times.map_or(start, |t| t.end.max(t.start));
        let (began, from) = (start, self.sheet.from());
        if !self.wants(command.pid) {
            return Ok(());
        }
        // It lies before the window.
        if end <= from && self.parts.is_empty() && self.options.from.is_some() {
            self.flows.waits.command(command, None);
            return Ok(());
        }
        // What comes late may have begun before the file; what was all before it stays as it is.
        let start = if end > from { start.max(from) } else { start };
        let (trace, tracks) = (self.trace, &mut self.tracks);
        let ranges = &self.ranges;
        let queue = self.devices.queue(
            &mut self.sheet,
            trace,
            command,
            |sheet| tracks.process(sheet, trace, &Thread { pid: command.pid, ..at.who().clone() }),
            || queue_name(ranges, command),
        );
        let streams = self.devices.rows(queue).is_some_and(|q| q.streams);
        let flow = self.flows.of_command(command, began, &mut self.arrows);
        self.kernels.meet(command);
        let title = self.kernels.title(command);
        let arguments = self.plans.is_some();
        let row = command.times.and_then(|_| self.devices.row(&mut self.sheet, queue, command, (start, end)));
        let calls = self.layers.as_mut().and_then(|layers| layers.several(command));
        let notes = &mut self.sheet.notes;
        if began < start {
            notes.number(CONTINUED, start.saturating_sub(began));
        }
        commands::annotate(notes, command, calls, arguments, streams);
        if arguments {
            self.kernels.annotate(notes, command);
        }
        let flows = &self.arrows;
        match row {
            Some((row, part)) => {
                let number = command.on_queue.map_or(0, |q| q.id);
                self.flows.waits.command(command, Some(Onward { queue: number, end, flow }));
                let mark = Mark::begin(start, row, command.kind.name(), &title).flows(flows, flow);
                self.sheet.slice(mark, end)?;
                // From when the program had enqueued it, as far as anybody knows.
                let queued = command.times.map_or(start, |t| t.queued).min(start);
                let enqueued = if command.cause > 0 { command.cause.min(queued) } else { queued };
                if !part {
                    self.devices.in_flight(&mut self.sheet, queue, enqueued, end)?;
                }
                self.devices.overview(&mut self.sheet, queue, command, (start, end))
            }
            None => {
                self.flows.waits.command(command, None);
                if command.times.is_some() {
                    notes.number("ns, more than can be shown at a time", end.saturating_sub(start));
                }
                let Some(row) = self.devices.instants(&mut self.sheet, queue) else { return Ok(()) };
                self.sheet.mark(Mark::instant(start, row, command.kind.name(), &title).flows(flows, 0))
            }
        }
    }

    /// A call that nobody knows more of than the name.
    fn draw_unknown(&mut self, at: At<'_>, api: &str, name: &str) -> io::Result<()> {
        if !self.wants(at.who().pid) {
            return Ok(());
        }
        let row = self.row(at);
        self.sheet.notes.text("unknown", "not in the model");
        self.sheet.mark(Mark::instant(at.time, row, api, name))
    }

    /// Ranges that are open end with the trace.
    pub fn end_ranges(&mut self, end: u64) -> io::Result<()> {
        for range in self.ranges.open() {
            self.sheet.notes.text("unfinished", STILL_OPEN);
            self.range_rows.end(&mut self.sheet, range, end)?;
        }
        Ok(())
    }

    /// Says what is missing.
    pub fn remark(&mut self, summary: &Summary, end: u64) -> io::Result<()> {
        let inside = self.insides.left_out + self.insides.unplaced + self.insides.untimed;
        if summary.is_complete() && self.live.missed() == 0 && inside == 0 {
            return Ok(());
        }
        let row = self.tracks.remarks(&mut self.sheet);
        let more = [
            ("allocations that are not counted", self.live.missed()),
            ("thread blocks and warps not drawn", self.insides.left_out),
            ("launches recorded inside, of no known command", self.insides.unplaced),
            ("launches recorded inside, without times", self.insides.untimed),
        ];
        for (what, n) in summary.counts().chain(more.into_iter().filter(|(_, n)| *n > 0)) {
            self.sheet.notes.number(what, n);
        }
        self.sheet.mark(Mark::instant(end, row, "hetrace", "this trace is not complete"))
    }
}

impl Visitor for Drawer<'_, '_> {
    type Break = Stop;

    #[inline]
    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        self.left -= 1;
        let (bytes, slices) = self.sheet.size();
        let full = bytes >= self.options.part_bytes || slices >= self.options.part_slices;
        if self.left == 0 || at.time >= self.turn_at || full {
            self.turn(at.time)?;
        }
        if !self.remarks.is_empty() {
            step(self.remarks_until(at.time))?;
        }
        let due = self.states.is_due(at.time) || self.insides.is_due(at.time);
        if due { step(self.draw_states(at.time)) } else { Step::Continue(()) }
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        if let Some(layers) = &mut self.layers {
            layers.entry(at, call);
        }
        let range = self.ranges.entry(at, call, event);
        self.live.entry(call, event);
        self.flows.waits.entry(call, event);
        step(self.begin_call(at, call, event).and_then(|()| self.ranged(at, call.function, range.as_ref())))
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.exit(at, call, event);
        let drawn = self.end_call(at, call, event);
        self.live.exit(at, call, event);
        let drawn = drawn.and_then(|()| self.draw_memory(u64::MAX));
        step(drawn.and_then(|()| self.ranged(at, call.function, range.as_ref())))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let range = self.ranges.unfinished(at, call);
        self.live.unfinished(call);
        self.flows.waits.unfinished(at, call);
        step(self.give_up(at, call).and_then(|()| self.ranged(at, call.function, range.as_ref())))
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> Step {
        let range = self.ranges.orphan(call);
        step(self.ranged(at, call.function, range.as_ref()))
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        step(self.run(at, fold))
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Step {
        step(self.draw(at, command))
    }

    fn sample(&mut self, at: At<'_>, sample: &Sample, _: &Event<'_, '_>) -> Step {
        if !self.wants(sample.pid) {
            return Step::Continue(());
        }
        let called = self.ranges.thread_name(sample.pid, sample.tid);
        step(samples::draw(&mut self.sheet, &mut self.tracks, self.trace, at, called, sample))
    }

    fn unknown(&mut self, at: At<'_>, api: &str, function: &str, _: &Event<'_, '_>) -> Step {
        step(self.draw_unknown(at, api, function))
    }

    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> Step {
        if let Some(flip) = flip_of(event) {
            let row = self.tracks.remarks(&mut self.sheet);
            return step(self.sheet.mark(Mark::instant(at.time, row, "capture", &flip)));
        }
        step(self.step_of_budget(at, event))
    }
}
