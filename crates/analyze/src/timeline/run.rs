//! The walk that draws.

use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

use super::calls;
use super::commands;
use super::devices::Devices;
use super::flows::{Flows, Wait};
use super::kernels::Kernels;
use super::monitored;
use super::ranges::{Place, RangeRows};
use super::sheet::{Mark, Sheet};
use super::tracks::Tracks;
use super::traits::{Traits, traits};
use crate::args::{Args, Plans};
use crate::ranges::{Ranges, Step as RangeStep};
use crate::spans::{
    At, Call, Command, Fold, Open, Orphan, Summary, Unfinished, Visitor, Why, cause_id, walk,
};
use crate::trace::{Function, FunctionId, Thread, Trace};

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Arguments and results as annotations of the slices.
    pub arguments: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { arguments: true }
    }
}

/// Writes a trace for Perfetto (`.pftrace`). It ends with the first error of `out`.
///
/// # Errors
/// Those of `out`.
pub fn timeline(trace: &Trace, options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let mut drawer = Drawer {
        trace,
        sheet: Sheet::new(out),
        tracks: Tracks::default(),
        rows: Vec::new(),
        plans: options.arguments.then(|| Plans::new(trace)),
        traits: traits(trace),
        several_apis: trace.models().len() > 1,
        threads: Vec::new(),
        exit: Args::default(),
        devices: Devices::default(),
        flows: Flows::new(trace),
        kernels: Kernels::new(trace),
        ranges: Ranges::new(trace),
        range_rows: RangeRows::default(),
        arrows: Vec::new(),
    };
    match walk(trace, &mut drawer) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(summary) => {
            drawer.finish(&summary)?;
            Ok(summary)
        }
    }
}

/// Where an arrow from a command to the wait for it ends.
const WAITED: &str = "command done";

struct Drawer<'t, 'o> {
    trace: &'t Trace,
    sheet: Sheet<'o>,
    tracks: Tracks,
    /// Rows of threads by number; forgotten when the program names something.
    rows: Vec<Option<u64>>,
    /// None if arguments are left out.
    plans: Option<Plans<'t>>,
    /// By function.
    traits: Vec<Traits<'t>>,
    several_apis: bool,
    /// By thread.
    threads: Vec<calls::Thread<'t>>,
    exit: Args<'t>,
    devices: Devices,
    flows: Flows,
    kernels: Kernels,
    ranges: Ranges<'t>,
    range_rows: RangeRows,
    /// Arrows of the mark that is about to be written; kept for its room.
    arrows: Vec<u64>,
}

type Step = ControlFlow<io::Error>;

fn step(result: io::Result<()>) -> Step {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl<'t> Drawer<'t, '_> {
    /// The row of the thread.
    fn row(&mut self, at: At<'_>) -> io::Result<u64> {
        let index = at.thread.index();
        if let Some(&Some(row)) = self.rows.get(index) {
            return Ok(row);
        }
        let who = at.who();
        let called = self.ranges.name_of(who.pid, "thread_id", who.tid as u64);
        let row = self.tracks.thread(&mut self.sheet, self.trace, at, called)?;
        if self.rows.len() <= index {
            self.rows.resize(index + 1, None);
        }
        self.rows[index] = Some(row);
        Ok(row)
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
        if traits.is_range {
            return Ok(());
        }
        let row = self.row(at)?;
        let who = at.who();
        self.arrows.clear();
        if function.enqueues {
            self.arrows.push(cause_id(who.pid, who.tid, call.start));
        }
        let own = self.arrows.first().copied();
        let mut arrows = std::mem::take(&mut self.arrows);
        let thread = self.open_calls(at);
        if function.enqueues && thread.goes_on(call.depth) {
            thread.take_onward(call.depth, &mut arrows);
        }
        if traits.flushes {
            thread.take_waiting(call.depth);
        }
        self.arrows = arrows;
        let (plans, notes) = (self.plans.as_ref(), &mut self.sheet.notes);
        let slot = self.threads.get_mut(at.thread.index()).and_then(|t| t.at(call.depth));
        if let Some(slot) = slot {
            slot.drawn = true;
            if let Some(plans) = plans {
                slot.args.read(plans, e, None);
                notes.args(&slot.args);
                if let Some(collective) = traits.collective {
                    collective.annotate(notes, trace, call.function, &slot.args);
                }
            }
            if traits.collective.is_some() {
                slot.collective = true;
                slot.onward.extend(own);
            }
            if let Some(queue) = traits.waits_for {
                slot.queue = e.get(queue).and_then(Scalar::as_u64);
            }
        }
        let mark = Mark::begin(call.start, row, self.api(function), &function.name);
        self.sheet.mark(mark.flows(&self.arrows))
    }

    fn end_call(&mut self, at: At<'_>, call: &Call, e: &Event<'_, '_>) -> io::Result<()> {
        let traits = self.traits(call.function);
        if traits.is_range {
            return Ok(());
        }
        if traits.names {
            self.rows.clear();
        }
        let row = self.row(at)?;
        let Some(thread) = self.threads.get_mut(at.thread.index()) else { return Ok(()) };
        // It may be over already, together with what was around it.
        let Some(slot) = thread.at(call.depth).filter(|slot| slot.drawn) else { return Ok(()) };
        let (collective, queue) = (slot.collective, slot.queue);
        slot.drawn = false;
        let inside = thread.close_inside(call.depth);
        for _ in 0..inside {
            self.sheet.mark(Mark::end(call.end, row))?;
        }
        if collective {
            thread.wait_for_group(call.depth);
        }
        if traits.waits && call.error.is_none() {
            let who = at.who();
            let wait = Wait { pid: who.pid, tid: who.tid, start: call.start, end: call.end, queue };
            self.flows.waited(wait, &mut self.arrows);
            if !self.arrows.is_empty() {
                // Perfetto points arrows from the slice that begins first to the other, and
                // waits mostly begin before what they wait for: the end needs its own mark.
                let mark =
                    Mark::instant(call.end, row, self.api(self.trace.functions().get(call.function)), WAITED);
                self.sheet.mark(Mark { ends: &self.arrows, ..mark })?;
            }
        }
        let slot = self.threads.get_mut(at.thread.index()).and_then(|t| t.at(call.depth));
        if let (Some(plans), Some(slot)) = (&self.plans, slot) {
            self.exit.read(plans, e, Some(&slot.args));
            self.sheet.notes.args(&self.exit);
        }
        if let Some(code) = call.error {
            let name = self.trace.error_name(call.function, code);
            self.sheet.notes.text("error", &name);
        }
        self.sheet.mark(Mark::end(call.end, row))
    }

    fn give_up(&mut self, at: At<'_>, call: &Unfinished) -> io::Result<()> {
        if self.traits(call.function).is_range {
            return Ok(());
        }
        let row = self.row(at)?;
        let Some(thread) = self.threads.get_mut(at.thread.index()) else { return Ok(()) };
        let Some(slot) = thread.at(call.depth).filter(|slot| slot.drawn) else { return Ok(()) };
        slot.drawn = false;
        let inside = thread.close_inside(call.depth);
        for _ in 0..inside {
            self.sheet.mark(Mark::end(call.until, row))?;
        }
        let why = match call.why {
            Why::TraceEnds => "still running when the trace ends",
            Why::ExitLost => "its end was lost",
            Why::ThreadEnded => "its thread ended",
        };
        self.sheet.notes.text("unfinished", why);
        self.sheet.mark(Mark::end(call.until, row))
    }

    fn run(&mut self, at: At<'_>, fold: &Fold) -> io::Result<()> {
        let function = self.trace.functions().get(fold.function);
        let mut row = self.row(at)?;
        // Calls of other APIs may begin and end within the run.
        if self.several_apis {
            row = self.tracks.runs(&mut self.sheet, at.who(), row)?;
        }
        self.sheet.notes.number("calls", fold.count);
        self.sheet.notes.number("ns inside them", fold.total);
        let name = format!("{} (folded)", function.name);
        let last = fold.last.max(fold.first);
        self.sheet.mark(Mark::begin(fold.first, row, self.api(function), &name))?;
        self.sheet.mark(Mark::end(last, row))
    }

    fn ranged(&mut self, at: At<'_>, function: FunctionId, step: Option<&RangeStep>) -> io::Result<()> {
        let Some(step) = step else { return Ok(()) };
        let thread = self.row(at)?;
        let process = self.tracks.process(&mut self.sheet, self.trace, at.who())?;
        let api = self.api(self.trace.functions().get(function));
        let title = self.trace.model_of(function).map_or("", |m| m.title.as_str());
        let title = if title.is_empty() { api } else { title };
        self.range_rows.draw(&mut self.sheet, Place { api, title, process, thread }, step)
    }

    fn draw(&mut self, at: At<'_>, command: &Command<'_>) -> io::Result<()> {
        let start = command.times.map_or(at.time, |t| t.start);
        let end = command.times.map_or(start, |t| t.end.max(t.start));
        let (trace, tracks) = (self.trace, &mut self.tracks);
        let ranges = &self.ranges;
        let called = || queue_name(ranges, command);
        let queue = self.devices.queue(
            &mut self.sheet,
            trace,
            &mut self.flows,
            command,
            |sheet| tracks.process(sheet, trace, &Thread { pid: command.pid, ..at.who().clone() }),
            called,
        )?;
        let (place, streams) = self.devices.rows(queue).map_or((0, false), |q| (q.place, q.streams));
        let flow = self.flows.of_command(command, start, &mut self.arrows);
        self.kernels.meet(command);
        let title = self.kernels.title(command);
        let arguments = self.plans.is_some();
        let row = match command.times {
            Some(_) => self.devices.row(&mut self.sheet, queue, command, (start, end))?,
            None => None,
        };
        let notes = &mut self.sheet.notes;
        commands::annotate(notes, command, arguments, streams);
        if arguments {
            self.kernels.annotate(notes, command);
        }
        let flows = &self.arrows;
        match row {
            Some((row, part)) => {
                self.flows.ends(place, command, end, flow);
                self.sheet.mark(Mark::begin(start, row, command.kind, &title).flows(flows))?;
                self.sheet.mark(Mark::end(end, row))?;
                // From when the program had enqueued it, as far as anybody knows.
                let told = command.times.map_or(start, |t| t.queued).min(start);
                let enqueued = if command.cause > 0 { command.cause.min(told) } else { told };
                if !part {
                    self.devices.in_flight(&mut self.sheet, queue, enqueued, end)?;
                }
                self.devices.overview(&mut self.sheet, queue, command, &title, (start, end))
            }
            None => {
                if command.times.is_some() {
                    notes.number("ns, more than can be shown at a time", end.saturating_sub(start));
                }
                let Some(row) = self.devices.instants(&mut self.sheet, queue)? else { return Ok(()) };
                self.sheet.mark(Mark::instant(start, row, command.kind, &title).flows(flows))
            }
        }
    }

    /// A call that nobody knows more of than the name.
    fn draw_unknown(&mut self, at: At<'_>, api: &str, name: &str) -> io::Result<()> {
        let row = self.row(at)?;
        self.sheet.notes.text("unknown", "not in the model");
        self.sheet.mark(Mark::instant(at.time, row, api, name))
    }

    /// Says what is missing, and writes the rest.
    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        self.sheet.open(0, None);
        let end = summary.last.unwrap_or(0);
        for range in self.ranges.open() {
            self.sheet.notes.text("unfinished", "still open when the trace ends");
            self.range_rows.end(&mut self.sheet, range, end)?;
        }
        self.devices.finish(&mut self.sheet)?;
        monitored::draw(&mut self.sheet, self.trace, end)?;
        if !summary.is_complete() {
            let row = self.tracks.remarks(&mut self.sheet)?;
            for (what, n) in [
                ("events lost", summary.lost_events),
                ("device commands lost", summary.lost_commands),
                ("packets lost", summary.lost_packets),
                ("damaged places", summary.damaged),
                ("calls without an end", summary.unfinished),
                ("ends without a call", summary.orphans),
            ] {
                if n > 0 {
                    self.sheet.notes.number(what, n);
                }
            }
            self.sheet.mark(Mark::instant(end, row, "hetrace", "this trace is not complete"))?;
        }
        self.sheet.flush()
    }
}

/// What the program calls a queue, by the names that APIs have for the parameter.
pub fn queue_name(ranges: &Ranges<'_>, command: &Command<'_>) -> Option<String> {
    let name = |what| ranges.name_of(command.pid, what, command.queue);
    ["stream", "queue", "command_queue"].into_iter().find_map(name).map(str::to_owned)
}

impl Visitor for Drawer<'_, '_> {
    type Break = io::Error;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        self.sheet.open(at.time, self.trace.epoch_offset_ns());
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.entry(at, call, event);
        step(self.begin_call(at, call, event).and_then(|()| self.ranged(at, call.function, range.as_ref())))
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.exit(at, call, event);
        step(self.end_call(at, call, event).and_then(|()| self.ranged(at, call.function, range.as_ref())))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let range = self.ranges.unfinished(at, call);
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

    fn unknown(&mut self, at: At<'_>, api: &str, function: &str, _: &Event<'_, '_>) -> Step {
        step(self.draw_unknown(at, api, function))
    }
}
