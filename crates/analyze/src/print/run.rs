//! The walk that prints.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::{Event, StreamError};

use super::clock::{Clock, Face};
use super::line::{write_call, write_fields};
use crate::args::{Args, Plans, Role};
use crate::spans::{
    At, Call, Command, Fold, NewQueue, Open, Orphan, Summary, Unfinished, Visitor, Why, walk,
};
use crate::text::{Style, duration};
use crate::trace::{FunctionId, Trace};

/// What is a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A call, when it ends: calls inside of it stand before it, deeper to the
    /// right. Its time is when it began.
    #[default]
    Calls,
    /// An event.
    Events,
}

/// How lines look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What is a line.
    pub form: Form,
    /// What times count from.
    pub clock: Clock,
    /// Also the time since the line before.
    pub deltas: bool,
    /// ANSI colours.
    pub colour: bool,
}

/// Prints a trace. It ends with the first error of `out`, so that a pipe which
/// nobody reads any more ends it.
///
/// # Errors
/// Those of `out`.
pub fn print(trace: &Trace, options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let mut printer = Printer {
        trace,
        out,
        form: options.form,
        style: Style { colour: options.colour },
        face: Face::new(options.clock, trace.epoch_offset_ns(), options.deltas),
        plans: Plans::new(trace),
        open: Vec::new(),
        exit: Args::default(),
        line: String::new(),
    };
    match walk(trace, &mut printer) {
        ControlFlow::Continue(summary) => Ok(summary),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Printer<'t, 'o> {
    trace: &'t Trace,
    out: &'o mut dyn Write,
    form: Form,
    style: Style,
    face: Face,
    plans: Plans<'t>,
    /// What was passed to open calls, by thread and depth.
    open: Vec<Vec<Args<'t>>>,
    exit: Args<'t>,
    line: String,
}

type Step = ControlFlow<io::Error>;

impl<'t> Printer<'t, '_> {
    /// Begins a line.
    fn begin(&mut self, at: At<'_>, time: u64) {
        self.line.clear();
        self.face.write(&mut self.line, time);
        let who = at.who();
        let _ = write!(self.line, "{}:{} ", who.pid, who.tid);
    }

    fn indent(&mut self, depth: u32) {
        // A stack that deep is damage; so deep a line helps nobody.
        for _ in 0..depth.min(32) {
            self.line.push_str("  ");
        }
    }

    fn end(&mut self) -> Step {
        self.line.push('\n');
        match self.out.write_all(self.line.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn name(&self, function: FunctionId) -> &'t str {
        &self.trace.functions().get(function).name
    }

    fn params(&self, function: FunctionId) -> Option<&'t [hetrace_model::Param]> {
        self.trace.described(function).map(|f| f.params.as_slice())
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
        let name = &event.class().name;
        let _ = write!(self.line, "{name}: ");
        let mut first = true;
        if let Some(result) = args.find(Role::Return) {
            let _ = write!(self.line, "result={result}");
            first = false;
        }
        write_fields(&mut self.line, args, &mut first);
        self.line.truncate(self.line.trim_end().len());
        self.end()
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
    type Break = io::Error;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        self.face.see(at.time);
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let place = (call.thread.index(), call.depth);
        let mut args = std::mem::take(self.args(place));
        args.read(&self.plans, event, None);
        let step = match self.form {
            Form::Calls => ControlFlow::Continue(()),
            Form::Events => self.event_line(at, event, &args),
        };
        *self.args(place) = args;
        step
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let place = (call.thread.index(), call.depth);
        self.read_exit(Some(place), event);
        if self.form == Form::Events {
            let args = std::mem::take(&mut self.exit);
            let step = self.event_line(at, event, &args);
            self.exit = args;
            return step;
        }
        self.begin(at, call.start);
        self.indent(call.depth);
        self.line.push_str(self.name(call.function));
        let params = self.params(call.function);
        let entry = self.open.get(place.0).and_then(|open| open.get(place.1 as usize));
        write_call(&mut self.line, params, entry, Some(&self.exit));
        write_result(&mut self.line, self.style, &self.exit, call.error.is_some());
        let _ = write!(self.line, "  ({})", duration(call.duration()));
        self.end()
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let place = (call.thread.index(), call.depth);
        let why = match call.why {
            Why::TraceEnds => "no end: still running when the trace ends",
            Why::ExitLost => "no end: it was lost",
            Why::ThreadEnded => "no end: its thread ended",
        };
        let why = self.style.red(&format!("<{why}>"));
        self.begin(at, call.start);
        self.indent(call.depth);
        self.line.push_str(self.name(call.function));
        let params = self.params(call.function);
        let entry = self.open.get(place.0).and_then(|open| open.get(place.1 as usize));
        write_call(&mut self.line, params, entry, None);
        let _ = write!(self.line, " {why}");
        self.end()
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, event: &Event<'_, '_>) -> Step {
        self.read_exit(None, event);
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin(at, call.end);
        self.line.push_str(self.name(call.function));
        let params = self.params(call.function);
        write_call(&mut self.line, params, None, Some(&self.exit));
        write_result(&mut self.line, self.style, &self.exit, call.error.is_some());
        let _ = write!(self.line, "  {}", self.style.red("<no beginning: it was lost>"));
        self.end()
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, event: &Event<'_, '_>) -> Step {
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin(at, fold.first);
        self.indent(fold.depth);
        let _ = write!(
            self.line,
            "{}: {} equal calls in {}, {} inside them",
            self.name(fold.function),
            fold.count,
            duration(fold.last.saturating_sub(fold.first)),
            duration(fold.total)
        );
        self.end()
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, event: &Event<'_, '_>) -> Step {
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.exit.read(&self.plans, event, None);
        self.begin(at, at.time);
        let _ = write!(self.line, "queue {:#x}: {}", command.queue, command.kind);
        if !command.name.is_empty() {
            let _ = write!(self.line, " {}", command.name);
        }
        self.line.push('(');
        let mut first = true;
        for piece in &self.exit.pieces {
            let shown = match piece.name {
                "bytes" => command.bytes > 0,
                "offset" | "global" | "local" => self.exit.of(piece) != "[]",
                _ => false,
            };
            if shown {
                self.line.push_str(if std::mem::take(&mut first) { "" } else { ", " });
                let _ = write!(self.line, "{}={}", piece.name, self.exit.of(piece));
            }
        }
        self.line.push(')');
        if command.failed() {
            let failed = self.style.red(&format!("failed: {}", command.status));
            let _ = write!(self.line, " = {failed}");
        }
        let _ = match command.times {
            Some(times) => write!(
                self.line,
                "  ({}, queued {} before)",
                duration(times.duration()),
                duration(times.start.saturating_sub(times.queued))
            ),
            None => write!(self.line, "  (times not known: {})", command.times_error),
        };
        self.end()
    }

    fn queue(&mut self, at: At<'_>, queue: &NewQueue<'_>, event: &Event<'_, '_>) -> Step {
        if self.form == Form::Events {
            return self.plain(at, event);
        }
        self.begin(at, at.time);
        let _ = write!(
            self.line,
            "queue {:#x}: made on {} (device {:#x}, context {:#x})",
            queue.queue, queue.name, queue.device, queue.context
        );
        self.end()
    }

    fn other(&mut self, at: At<'_>, event: &Event<'_, '_>) -> Step {
        self.plain(at, event)
    }

    fn damage(&mut self, damage: &StreamError) -> Step {
        self.line.clear();
        self.line.push_str(&self.style.red(&format!("<damaged: {damage}>")));
        self.end()
    }
}

fn write_result(out: &mut String, style: Style, exit: &Args<'_>, failed: bool) {
    if let Some(result) = exit.find(Role::Return) {
        let shown = if failed { style.red(result) } else { result.to_owned() };
        let _ = write!(out, " = {shown}");
    }
}
