//! The walk that draws.

use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::annotations::Annotations;
use super::names::{Names, Of};
use super::packets::Packets;
use super::packets::field::{event, packet};
use super::tracks::Tracks;
use crate::args::{Args, Plans};
use crate::spans::{
    At, Call, Command, Fold, NewQueue, Open, Summary, Unfinished, Visitor, Why, cause_id, walk,
};
use crate::trace::{Function, Trace};

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
        out: Some(out),
        packets: None,
        tracks: Tracks::default(),
        names: Names::default(),
        plans: options.arguments.then(|| Plans::new(trace)),
        several_apis: trace.models().len() > 1,
        open: Vec::new(),
        exit: Args::default(),
        annotations: Annotations::default(),
    };
    match walk(trace, &mut drawer) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(summary) => {
            drawer.finish(&summary)?;
            Ok(summary)
        }
    }
}

struct Drawer<'t, 'o> {
    trace: &'t Trace,
    /// Taken by `packets` at the first event, whose time the file begins with.
    out: Option<&'o mut dyn Write>,
    packets: Option<Packets<'o>>,
    tracks: Tracks,
    names: Names,
    /// None if arguments are left out.
    plans: Option<Plans<'t>>,
    several_apis: bool,
    /// What was passed to open calls, by thread and depth: it says which query
    /// a value is of.
    open: Vec<Vec<Args<'t>>>,
    exit: Args<'t>,
    annotations: Annotations,
}

type Step = ControlFlow<io::Error>;

fn step(result: io::Result<()>) -> Step {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// A beginning, an end, or an instant.
#[derive(Clone, Copy)]
struct Mark<'a> {
    kind: u64,
    time: u64,
    track: u64,
    /// Category and name; an end has none.
    name: Option<(&'a str, &'a str)>,
    flow: Option<u64>,
}

impl<'t> Drawer<'t, '_> {
    /// Writes a mark with the annotations gathered, and forgets them.
    fn mark(&mut self, mark: Mark<'_>) -> io::Result<()> {
        let Some(packets) = &mut self.packets else { return Ok(()) };
        let names = &mut self.names;
        let numbers = mark
            .name
            .map(|(category, name)| (names.number(Of::Category, category), names.number(Of::Event, name)));
        let annotations = &self.annotations;
        packets.add(|p| {
            p.varint(packet::TIMESTAMP, mark.time);
            if names.has_fresh() {
                p.message(packet::INTERNED_DATA, |data| names.write_fresh(data));
            }
            p.message(packet::TRACK_EVENT, |e| {
                e.varint(event::TYPE, mark.kind);
                e.varint(event::TRACK, mark.track);
                if let Some((category, name)) = numbers {
                    e.varint(event::CATEGORY, category);
                    e.varint(event::NAME, name);
                }
                if let Some(flow) = mark.flow {
                    e.fixed64(event::FLOW, flow);
                }
                e.append(annotations.bytes());
            });
        })?;
        self.annotations.clear();
        Ok(())
    }

    fn thread(&mut self, at: At<'_>) -> io::Result<u64> {
        let Some(packets) = &mut self.packets else { return Ok(0) };
        self.tracks.thread(packets, self.trace, at)
    }

    fn api(&self, function: &Function) -> &'t str {
        self.trace.functions().apis().get(function.api).map_or("", String::as_str)
    }

    fn begin_call(&mut self, at: At<'_>, call: &Open, e: &Event<'_, '_>) -> io::Result<()> {
        let trace = self.trace;
        let function = trace.functions().get(call.function);
        if let Some(plans) = &self.plans {
            let args = slot(&mut self.open, (call.thread.index(), call.depth));
            args.read(plans, e, None);
            self.annotations.args(&mut self.names, args);
        }
        let who = at.who();
        let flow = function.enqueues.then(|| cause_id(who.pid, who.tid, call.start));
        let track = self.thread(at)?;
        let name = Some((self.api(function), function.name.as_str()));
        self.mark(Mark { kind: event::BEGIN, time: call.start, track, name, flow })
    }

    fn end_call(&mut self, at: At<'_>, call: &Call, e: &Event<'_, '_>) -> io::Result<()> {
        if let Some(plans) = &self.plans {
            let entry = slot(&mut self.open, (call.thread.index(), call.depth));
            self.exit.read(plans, e, Some(entry));
            self.annotations.args(&mut self.names, &self.exit);
        }
        if let Some(code) = call.error {
            let name = self.trace.error_name(call.function, code);
            self.annotations.text(&mut self.names, "error", &name);
        }
        let track = self.thread(at)?;
        self.mark(Mark { kind: event::END, time: call.end, track, name: None, flow: None })
    }

    fn give_up(&mut self, at: At<'_>, call: &Unfinished) -> io::Result<()> {
        let why = match call.why {
            Why::TraceEnds => "still running when the trace ends",
            Why::ExitLost => "its end was lost",
            Why::ThreadEnded => "its thread ended",
        };
        self.annotations.text(&mut self.names, "unfinished", why);
        let track = self.thread(at)?;
        self.mark(Mark { kind: event::END, time: call.until, track, name: None, flow: None })
    }

    fn run(&mut self, at: At<'_>, fold: &Fold) -> io::Result<()> {
        let trace = self.trace;
        let function = trace.functions().get(fold.function);
        // Calls of other APIs may begin and end within the run.
        let track = match &mut self.packets {
            Some(packets) if self.several_apis => self.tracks.runs(packets, trace, at)?,
            _ => self.thread(at)?,
        };
        self.annotations.number(&mut self.names, "calls", fold.count);
        self.annotations.number(&mut self.names, "ns inside them", fold.total);
        let name = format!("{} (folded)", function.name);
        let last = fold.last.max(fold.first);
        let name = Some((self.api(function), name.as_str()));
        let kind = event::BEGIN;
        self.mark(Mark { kind, time: fold.first, track, name, flow: None })?;
        self.mark(Mark { kind: event::END, time: last, track, name: None, flow: None })
    }

    fn draw(&mut self, at: At<'_>, command: &Command<'_>, e: &Event<'_, '_>) -> io::Result<()> {
        let start = command.times.map_or(at.time, |t| t.start);
        let end = command.times.map_or(start, |t| t.end.max(t.start));
        let trace = self.trace;
        let Some(packets) = &mut self.packets else { return Ok(()) };
        let track = self.tracks.queue(packets, trace, at, command.queue, (start, end))?;
        self.annotate(command, e);
        // A command that no recorded call caused has no arrow.
        let flow = (command.cause > 0).then(|| command.cause_id());
        let name = Some((command.kind, command.title()));
        if command.times.is_none() {
            return self.mark(Mark { kind: event::INSTANT, time: start, track, name, flow });
        }
        self.mark(Mark { kind: event::BEGIN, time: start, track, name, flow })?;
        self.mark(Mark { kind: event::END, time: end, track, name: None, flow: None })
    }

    fn annotate(&mut self, command: &Command<'_>, e: &Event<'_, '_>) {
        let (names, notes) = (&mut self.names, &mut self.annotations);
        if command.bytes > 0 {
            notes.number(names, "bytes", command.bytes);
        }
        if command.failed() {
            notes.signed(names, "failed with", command.status);
        }
        match command.times {
            Some(times) => {
                let waited = |since: u64| times.start.saturating_sub(since);
                notes.number(names, "ns from queued to start", waited(times.queued));
                notes.number(names, "ns from submitted to start", waited(times.submitted));
            }
            None => notes.signed(names, "times not known, error", command.times_error),
        }
        if let Some(plans) = &self.plans {
            self.exit.read(plans, e, None);
            for piece in &self.exit.pieces {
                let shape = matches!(piece.name, "offset" | "global" | "local");
                if shape && self.exit.of(piece) != "[]" {
                    notes.text(names, piece.name, self.exit.of(piece));
                }
            }
        }
    }

    /// Says what is missing, and writes the rest.
    fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        if let Some(out) = self.out.take() {
            self.packets = Some(Packets::new(out, 0, None));
        }
        let Some(packets) = &mut self.packets else { return Ok(()) };
        if !summary.is_complete() {
            let track = self.tracks.remarks(packets)?;
            for (what, n) in [
                ("events lost", summary.lost_events),
                ("device commands lost", summary.lost_commands),
                ("packets lost", summary.lost_packets),
                ("damaged places", summary.damaged),
                ("calls without an end", summary.unfinished),
                ("ends without a call", summary.orphans),
            ] {
                if n > 0 {
                    self.annotations.number(&mut self.names, what, n);
                }
            }
            let time = summary.last.unwrap_or(0);
            let name = Some(("hetrace", "this trace is not complete"));
            self.mark(Mark { kind: event::INSTANT, time, track, name, flow: None })?;
        }
        match &mut self.packets {
            Some(packets) => packets.flush(),
            None => Ok(()),
        }
    }
}

/// What was passed to an open call.
fn slot<'a, 't>(open: &'a mut Vec<Vec<Args<'t>>>, place: (usize, u32)) -> &'a mut Args<'t> {
    let (thread, depth) = (place.0, place.1 as usize);
    if open.len() <= thread {
        open.resize_with(thread + 1, Vec::new);
    }
    if open[thread].len() <= depth {
        open[thread].resize_with(depth + 1, Args::default);
    }
    &mut open[thread][depth]
}

impl Visitor for Drawer<'_, '_> {
    type Break = io::Error;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        if let Some(out) = self.out.take() {
            self.packets = Some(Packets::new(out, at.time, self.trace.epoch_offset_ns()));
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        step(self.begin_call(at, call, event))
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        step(self.end_call(at, call, event))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        step(self.give_up(at, call))
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        step(self.run(at, fold))
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, event: &Event<'_, '_>) -> Step {
        step(self.draw(at, command, event))
    }

    fn queue(&mut self, _: At<'_>, queue: &NewQueue<'_>, _: &Event<'_, '_>) -> Step {
        self.tracks.name_queue(queue);
        ControlFlow::Continue(())
    }
}
