//! What threads were in when a trace ends, and what they did last: for programs that crashed or hang.
//!
//! ```text
//!   first walk   counts calls of each thread
//!   second walk  keeps the last of them as lines, and calls and commands that have no end
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::args::{Args, Plans};
use hetrace_trace::facts::{Facts, facts};
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Summary, Unfinished, Visitor, Why, walk};
use hetrace_trace::text::{duration, ended_by, plural};
use hetrace_trace::titles::{device_title, queue_title};
use hetrace_trace::trace::{Exit, FunctionId, Queue, Thread, ThreadId, Trace};
use hetrace_trace::watch::Watch;

use super::clock::{Clock, Face};
use super::line::{write_call, write_duration, write_result};
use super::shared::Shared;
use crate::text::Style;

/// Events between two questions whether to go on.
const WATCHED: u64 = 1 << 12;
/// Commands without an end that are kept; of more, the first are forgotten.
const MOST: usize = 1 << 16;

/// How the end of a trace is shown.
#[derive(Clone, Copy, Debug)]
pub struct LastOptions {
    /// Calls of each thread, and commands of each queue.
    pub count: usize,
    /// What times count from.
    pub clock: Clock,
    /// ANSI colours.
    pub colour: bool,
}

/// Prints the end of a trace; none if `watch` has stopped it.
///
/// # Errors
/// Those of `out`.
pub fn print_last(
    trace: &Trace,
    options: &LastOptions,
    watch: Watch<'_>,
    out: &mut dyn Write,
) -> io::Result<Option<Summary>> {
    let mut counter = Counter { calls: Vec::new(), watched: Watched { watch, left: WATCHED } };
    let ControlFlow::Continue(_) = walk(trace, &mut counter) else { return Ok(None) };
    let mut last = Last {
        trace,
        options,
        calls: counter.calls,
        plans: Plans::new(trace),
        facts: facts(trace),
        timed: timed(trace),
        shared: Shared::of(trace),
        style: Style { colour: options.colour },
        face: Face::new(options.clock, trace.epoch_offset_ns(), false),
        watched: Watched { watch, left: WATCHED },
        open: Vec::new(),
        exit: Args::default(),
        threads: BTreeMap::new(),
        enqueued: BTreeMap::new(),
        number: 0,
        by_cause: HashMap::new(),
        end: 0,
    };
    let ControlFlow::Continue(summary) = walk(trace, &mut last) else { return Ok(None) };
    last.end = trace.manifest().end_ns.unwrap_or(0).max(last.end);
    let mut text = String::new();
    last.head(&mut text);
    last.threads_text(&mut text);
    last.queues_text(&mut text);
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Some(summary))
}

/// Asks now and then whether to go on.
struct Watched<'w> {
    watch: Watch<'w>,
    left: u64,
}

impl Watched<'_> {
    fn event(&mut self) -> ControlFlow<()> {
        self.left -= 1;
        if self.left > 0 {
            return ControlFlow::Continue(());
        }
        self.left = WATCHED;
        (self.watch)(WATCHED)
    }
}

/// Counts calls of each thread that have an end.
struct Counter<'w> {
    calls: Vec<u64>,
    watched: Watched<'w>,
}

impl Counter<'_> {
    fn count(&mut self, thread: ThreadId) {
        if self.calls.len() <= thread.index() {
            self.calls.resize(thread.index() + 1, 0);
        }
        if let Some(calls) = self.calls.get_mut(thread.index()) {
            *calls += 1;
        }
    }
}

impl Visitor for Counter<'_> {
    type Break = ();

    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.watched.event()
    }

    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.count(call.thread);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, _: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.count(fold.thread);
        ControlFlow::Continue(())
    }
}

/// A call that is open, with what was passed to it.
#[derive(Default)]
struct Passed<'t> {
    args: Args<'t>,
    /// The commands that it enqueued, by number.
    enqueued: Option<u64>,
}

/// What is known of a thread.
#[derive(Default)]
struct Seen {
    /// Calls that never returned, the outermost first: depth, begin, and their lines.
    inside: Vec<(u32, u64, String)>,
    /// Lines of its last calls.
    last: VecDeque<String>,
    ended: u64,
    /// When it ended a call last.
    active: u64,
    who: Thread,
}

/// A call that enqueued a command whose end is not known.
struct Enqueued {
    cause: (i64, i64, u64),
    api: usize,
    queue: Option<u64>,
    line: String,
}

struct Last<'t, 'w> {
    trace: &'t Trace,
    options: &'w LastOptions,
    /// How many calls each thread has.
    calls: Vec<u64>,
    plans: Plans<'t>,
    facts: Vec<Facts<'t>>,
    /// By API: whether it reports commands.
    timed: Vec<bool>,
    shared: Shared,
    style: Style,
    face: Face,
    watched: Watched<'w>,
    /// By thread and depth.
    open: Vec<Vec<Passed<'t>>>,
    exit: Args<'t>,
    threads: BTreeMap<usize, Seen>,
    /// In their order.
    enqueued: BTreeMap<u64, Enqueued>,
    number: u64,
    by_cause: HashMap<(i64, i64, u64), u64>,
    end: u64,
}

impl<'t> Last<'t, '_> {
    fn passed(&mut self, thread: ThreadId, depth: u32) -> &mut Passed<'t> {
        let (thread, depth) = (thread.index(), depth as usize);
        if self.open.len() <= thread {
            self.open.resize_with(thread + 1, Vec::new);
        }
        let open = &mut self.open[thread];
        if open.len() <= depth {
            open.resize_with(depth + 1, Passed::default);
        }
        &mut open[depth]
    }

    /// A time, with a space behind it.
    fn time(&self, time: u64) -> String {
        let (mut text, mut face) = (String::new(), self.face);
        face.write(&mut text, time);
        text
    }

    fn name(&self, function: FunctionId) -> &str {
        self.shared.name(function).unwrap_or(&self.trace.functions().get(function).name)
    }

    /// A call as a line; its exit was read if it has returned.
    fn line(
        &self,
        begin: u64,
        function: FunctionId,
        (thread, depth): (ThreadId, u32),
        returned: bool,
    ) -> String {
        let mut line = self.time(begin);
        for _ in 0..depth.min(32) {
            line.push_str("  ");
        }
        line.push_str(self.name(function));
        let passed = self.open.get(thread.index()).and_then(|open| open.get(depth as usize));
        let params = self.trace.described(function).map(|f| f.params.as_slice());
        write_call(&mut line, params, passed.map(|passed| &passed.args), returned.then_some(&self.exit));
        line
    }

    /// Whether the next call of a thread to end is one of its last.
    fn is_last(&mut self, at: At<'_>, thread: ThreadId) -> bool {
        let all = self.calls.get(thread.index()).copied().unwrap_or(0);
        let seen = self.threads.entry(thread.index()).or_default();
        seen.ended += 1;
        seen.active = at.time;
        let is_last = all.saturating_sub(seen.ended) < self.options.count.max(1) as u64;
        if is_last {
            seen.who.clone_from(at.threads.get(thread));
        }
        is_last && self.options.count > 0
    }

    fn forget(&mut self, number: Option<u64>) {
        if let Some(gone) = number.and_then(|number| self.enqueued.remove(&number)) {
            self.by_cause.remove(&gone.cause);
        }
    }

    /// A call that enqueues has begun: its command has no end yet. Of calls inside of each other the innermost counts.
    fn enqueue(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        for depth in 0..call.depth {
            let outer = self.passed(call.thread, depth).enqueued.take();
            self.forget(outer);
        }
        let facts = self.facts.get(call.function.index()).copied().unwrap_or_default();
        let api = self.trace.functions().get(call.function).api;
        if !facts.enqueues || !self.timed.get(api).copied().unwrap_or(false) {
            return;
        }
        let who = at.who();
        let cause = (who.pid, who.tid, call.start);
        let queue = facts.queue(event);
        let line =
            self.line(call.start, call.function, (call.thread, call.depth), false).trim_end().to_owned();
        self.number += 1;
        self.enqueued.insert(self.number, Enqueued { cause, api, queue, line });
        self.by_cause.insert(cause, self.number);
        self.passed(call.thread, call.depth).enqueued = Some(self.number);
        if self.enqueued.len() > MOST {
            let first = self.enqueued.keys().next().copied();
            self.forget(first);
        }
    }
}

impl Visitor for Last<'_, '_> {
    type Break = ();

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        self.face.see(at.time);
        self.end = self.end.max(at.time);
        self.watched.event()
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<()> {
        let mut args = std::mem::take(&mut self.passed(call.thread, call.depth).args);
        args.read(&self.plans, event, None);
        *self.passed(call.thread, call.depth) = Passed { args, enqueued: None };
        self.enqueue(at, call, event);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<()> {
        let enqueued = self.passed(call.thread, call.depth).enqueued.take();
        if call.error.is_some() {
            self.forget(enqueued);
        }
        if !self.is_last(at, call.thread) {
            return ControlFlow::Continue(());
        }
        let mut exit = std::mem::take(&mut self.exit);
        let open = self.open.get(call.thread.index()).and_then(|open| open.get(call.depth as usize));
        exit.read(&self.plans, event, open.map(|passed| &passed.args));
        self.exit = exit;
        let mut line = self.line(call.start, call.function, (call.thread, call.depth), true);
        write_result(&mut line, self.style, &self.exit, call.error.is_some());
        line.push_str("  (");
        write_duration(&mut line, call.duration(), call.cost);
        line.push(')');
        self.threads.entry(call.thread.index()).or_default().last.push_back(line);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<()> {
        if self.is_last(at, fold.thread) {
            let mut line = self.time(fold.first);
            let _ =
                write!(line, "{} {} times  ({})", self.name(fold.function), fold.count, duration(fold.total));
            self.threads.entry(fold.thread.index()).or_default().last.push_back(line);
        }
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<()> {
        let line = self.line(call.start, call.function, (call.thread, call.depth), false);
        let who = at.threads.get(call.thread).clone();
        let seen = self.threads.entry(call.thread.index()).or_default();
        seen.who = who;
        match call.why {
            Why::TraceEnds => seen.inside.push((call.depth, call.start, line)),
            // The thread is gone, or went on: no more than one of its calls.
            Why::ThreadEnded | Why::ExitLost => seen.last.push_back(format!("{line}  <no end>")),
        }
        ControlFlow::Continue(())
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<()> {
        let cause = (command.pid, command.cause_tid, command.cause);
        let known = self.by_cause.get(&cause).copied();
        self.forget(known);
        ControlFlow::Continue(())
    }
}

/// By API: whether it reports commands.
fn timed(trace: &Trace) -> Vec<bool> {
    let queues = trace.names().queues();
    trace.functions().apis().iter().map(|api| queues.iter().any(|queue| queue.api == *api)).collect()
}

/// Names of signals that end programs.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];

impl Last<'_, '_> {
    /// How the program ended, and what asked for the snapshot.
    fn head(&self, text: &mut String) {
        let manifest = self.trace.manifest();
        let command = match manifest.command.join(" ") {
            none if none.is_empty() => "the program".to_owned(),
            command => command,
        };
        let how = match manifest.exit {
            Some(Exit::Code(code)) => format!("ended with status {code}"),
            Some(Exit::Signal(signal)) => match SIGNALS.iter().find(|(known, _)| *known == signal) {
                Some((_, name)) => format!("was ended by {name}"),
                None => ended_by(signal),
            },
            None if manifest.stopped => "was running still when this was written".to_owned(),
            None => "how it ended is not known".to_owned(),
        };
        let _ = writeln!(text, "{command}: {how}");
        let Some(flight) = &manifest.flight else { return };
        let what = match flight.since_ns {
            Some(since) => format!("the last {}", duration(self.end.saturating_sub(since))),
            None => "all since the start".to_owned(),
        };
        let _ = writeln!(text, "snapshot of a flight recording: {what} (asked for by: {})", flight.reason);
        for fired in &flight.fired {
            let line = self.time(fired.time_ns);
            let _ = writeln!(text, "{line}{}", self.style.red(&fired.to_string()));
        }
    }

    fn threads_text(&self, text: &mut String) {
        let mut threads: Vec<&Seen> = self.threads.values().collect();
        // Those that hang first, the longest one before; then those that did something last.
        threads.sort_by_key(|seen| {
            let oldest = seen.inside.iter().map(|(_, begin, _)| *begin).min();
            (oldest.is_none(), oldest, std::cmp::Reverse(seen.active), seen.who.pid, seen.who.tid)
        });
        if threads.is_empty() {
            text.push_str("\nno calls were recorded\n");
        }
        for seen in threads {
            let Thread { pid, tid, name } = &seen.who;
            let name = if name.is_empty() { String::new() } else { format!(" {name}") };
            let _ = writeln!(text, "\nprocess {pid}, thread {tid}{name}");
            let mut inside: Vec<&(u32, u64, String)> = seen.inside.iter().collect();
            inside.sort_by_key(|(depth, begin, _)| (*depth, *begin));
            if inside.is_empty() {
                let ago = duration(self.end.saturating_sub(seen.active));
                let _ = writeln!(text, "  in no recorded call for {ago}");
            }
            for (_, begin, line) in inside {
                let since = duration(self.end.saturating_sub(*begin));
                let open = self.style.red(&format!("<not returned for {since}>"));
                let _ = writeln!(text, "  in   {line} {open}");
            }
            let skip = seen.last.len().saturating_sub(self.options.count);
            for line in seen.last.iter().skip(skip) {
                let _ = writeln!(text, "       {line}");
            }
        }
    }

    /// Commands of each queue that were enqueued and have no end.
    fn queues_text(&self, text: &mut String) {
        if !self.timed.contains(&true) {
            return;
        }
        if self.trace.names().all_launches().any(|(_, launches)| launches.counted() > 0)
            || self.trace.has_budget_steps()
        {
            text.push_str("\nsome commands are counted only: those that did not end are not known\n");
            return;
        }
        let mut queues: BTreeMap<(i64, usize, Option<u64>), Vec<&str>> = BTreeMap::new();
        for Enqueued { cause, api, queue, line } in self.enqueued.values() {
            queues.entry((cause.0, *api, *queue)).or_default().push(line);
        }
        if queues.is_empty() {
            let line = match self.trace.manifest().losses.commands_in_flight {
                0 => "all commands that were enqueued have ended".to_owned(),
                n => format!(
                    "{} in flight when the program ended, of calls that are not known",
                    plural(n, "command")
                ),
            };
            let _ = writeln!(text, "\n{line}");
        }
        let several = self.trace.manifest().processes.len() > 1;
        for ((pid, api, handle), lines) in queues {
            let (name, device) = self.queue_name(pid, api, handle);
            let of = if several { format!(" of process {pid}") } else { String::new() };
            let count = plural(lines.len() as u64, "command");
            let _ = writeln!(text, "\n{name}{of}{device}: {count} enqueued and not known to have ended");
            let skip = lines.len().saturating_sub(self.options.count.max(1));
            if skip > 0 {
                let _ = writeln!(text, "       {skip} before these");
            }
            for line in lines.iter().skip(skip) {
                let _ = writeln!(text, "       {line}");
            }
        }
    }

    /// Returns what a queue is called, and its device.
    fn queue_name(&self, pid: i64, api: usize, handle: Option<u64>) -> (String, String) {
        let api = self.trace.functions().apis().get(api).map_or("", String::as_str);
        let is_it = |queue: &&&Queue| {
            let named = if queue.default { 0 } else { queue.handle };
            queue.pid == pid && queue.api == api && Some(named) == handle
        };
        let queues = self.trace.names().queues();
        // Of those with a handle the last is the one that is there.
        match (queues.iter().rfind(is_it), handle) {
            (Some(queue), _) => {
                let device = device_title(self.trace, self.trace.names().device(queue.device));
                (queue_title(self.trace, Some(queue), None), format!(" on {device}"))
            }
            (None, Some(handle)) => (format!("queue {handle:#x}"), String::new()),
            (None, None) => ("unknown queue".to_owned(), String::new()),
        }
    }
}
