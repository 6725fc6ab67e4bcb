//! One walk to all sums.

mod apart;
mod marks;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::By;
use super::aggregate::Aggregate;
use super::cells::EnergyCell;
use super::device::Devices;
use super::energy::{KernelEnergy, Meters};
use super::host::{Host, Slice};
use super::labels::Labels;
use super::makers::Makers;
use super::marked::Marked;
use super::monitor;
use super::probed;
use super::query::{Choice, Query, Reading};
use super::rows::{BudgetRow, CaptureRow, ClockError, SCHEMA, SteppedRow, Tally, TraceRow, UnknownRow};
use super::sampled::sampled;
use super::usage::Usage;
use super::ways::{Way, Ways};
use hetrace_trace::capture::Covered;
use hetrace_trace::collectives::Collectives;
use hetrace_trace::memory::{Memory, Table};
use hetrace_trace::ranges::{Ranges, Step};
use hetrace_trace::spans::fast::{self, Ended};
use hetrace_trace::spans::{
    At, Call, Command, ErrorText, Fold, Open, Orphan, Summary, Unfinished, Visitor, walk_part,
};
use hetrace_trace::stacks::Sites;
use hetrace_trace::system::System;
use hetrace_trace::telemetry::Telemetry;
use hetrace_trace::trace::{Exit, Manifest, Thread, ThreadId, Trace};
use hetrace_trace::watch::Stopped;

/// What to count apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Commands by device and queue, too.
    pub extended: bool,
}

/// Makes the tables of a trace.
pub fn tally(trace: &Trace, options: &Options) -> Tally {
    // Nobody is there to stop it.
    aggregate(trace, options, &Query::default()).unwrap_or_default().tally()
}

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 16;

/// Sums up what a query wants of a trace.
///
/// Each processor takes a slice of the time. Ranges and collectives, where there are any, have a walk of their
/// own beside that, which passes over all other calls; only what is grouped by ranges takes
/// one walk over all events. [`Reading`] says otherwise.
///
/// # Errors
/// When the query's watch says so.
pub fn aggregate(trace: &Trace, options: &Options, query: &Query<'_>) -> Result<Aggregate, Stopped> {
    let telemetry = Telemetry::read(trace);
    let meters = Meters::new(&telemetry, trace.names());
    let labels = Labels::new(trace, &query.by, options.extended);
    let choice = Choice::new(trace, query);
    let table = Table::new(trace);
    let new = || Collector::new(trace, &meters, &labels, &choice, query, &table);
    let (marked, ordered) = {
        let collector = new();
        let marked = collector.in_ranges || collector.in_collectives;
        // States of threads go by when calls began, which quick walks do not say.
        let whole = query.reading == Reading::InOrder || trace.system().is_some();
        (marked, whole || collector.by_range && collector.in_ranges || collector.ways.any())
    };
    let sum = || {
        let walked = match query.reading {
            _ if ordered => Err(Ended::Unfit),
            Reading::Slices(number) => fast::walk(trace, Some(number), table.plans(), &new),
            Reading::Fastest | Reading::InOrder => fast::walk(trace, None, table.plans(), &new),
        };
        // What it is, and whether ranges and collectives are in it.
        match walked {
            Ok((collector, summary)) => Ok((collector, summary, !marked)),
            Err(Ended::Stopped) => Err(Stopped),
            Err(Ended::Unfit) => {
                walk_all(trace, new()).map(|(collector, summary)| (collector, summary, true))
            }
        }
    };
    let (walked, marks) = match marked && !ordered {
        true => beside(sum, || marks::marks(trace, new()).map(Some)),
        false => (sum(), Ok(None)),
    };
    let (mut collector, mut summary, whole) = walked?;
    let marks = marks?;
    if !whole && !marks.is_some_and(|marks| collector.take_marks(marks, &summary)) {
        (collector, summary) = walk_all(trace, new())?;
    }
    // Who was faster must not show.
    summary.damages.sort_by_key(ToString::to_string);
    summary.add_manifest(trace);
    collector.count_late();
    collector.marked.finish();
    collector.collectives.finish();
    let mut labels = Labels::new(trace, &query.by, options.extended);
    for known in collector.collectives.communicators() {
        if let Some(rank) = known.rank {
            labels.rank(known.pid, rank);
        }
    }
    let mut sums = collector.sums(trace, &telemetry, &labels, query, &summary);
    sums.rest.sampled = sampled(trace, query)?;
    // What is held is known from all allocations and releases; of a part of the calls it would be wrong.
    if table.active && query.is_of_all() {
        let memory = collector.memory.finish();
        sums.rest.memory = memory.rows(summary.first.unwrap_or(0), &labels.host);
        sums.rest.memory_releases = memory.releases();
    }
    Ok(sums)
}

/// Both results, made at the same time where there are processors for both.
fn beside<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return (one(), other());
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        match other.join() {
            Ok(other) => (one, other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Of calls with all that they were called with, in the order of time.
fn walk_all<'t>(trace: &'t Trace, mut collector: Collector<'t>) -> Result<(Collector<'t>, Summary), Stopped> {
    match walk_part(trace.cursor(), &mut collector) {
        ControlFlow::Continue(summary) => Ok((collector, summary)),
        ControlFlow::Break(stopped) => Err(stopped),
    }
}

struct Collector<'t> {
    host: Host,
    devices: Devices,
    usage: Usage,
    meters: &'t Meters,
    energy: KernelEnergy,
    marked: Marked<'t>,
    collectives: Collectives,
    makers: Makers<'t>,
    memory: Memory<'t>,
    /// Of the thread of a fast walk.
    who: Thread,
    /// A later slice that is being joined, and which threads had calls open that concern memory.
    joining: Option<(Memory<'t>, Vec<bool>)>,
    in_ranges: bool,
    in_collectives: bool,
    by_thread: bool,
    by_range: bool,
    ways: Ways<'t>,
    choice: &'t Choice,
    query: &'t Query<'t>,
    /// The slice that was asked for last, and its place.
    slice: (Slice, usize),
    /// The same of the thread of a fast walk, and whether its calls are wanted.
    current: (usize, bool),
    /// Events until the next question whether to go on.
    left: u32,
    /// Calls of functions without a model, by API and name.
    unknown: BTreeMap<(String, String), u64>,
    /// Calls that were found to have no end before the trace ended.
    given_up: u64,
    /// The threads that `marked` knows, if these are numbered otherwise than others.
    marked_threads: Option<Vec<Thread>>,
    /// What the operating system did to threads.
    system: Option<&'t System>,
}

impl<'t> Collector<'t> {
    fn new(
        trace: &'t Trace,
        meters: &'t Meters,
        labels: &Labels<'_>,
        choice: &'t Choice,
        query: &'t Query<'t>,
        table: &'t Table<'t>,
    ) -> Self {
        let (ranges, collectives) = (Ranges::new(trace), Collectives::new(trace));
        let sites = labels.by_line.then(|| Sites::new(trace.names().stacks(), ToString::to_string));
        let mut host = Host::new(trace, labels.by_thread, query.gross);
        Self {
            slice: (Slice::of_all(), host.slice(Slice::of_all())),
            current: (0, true),
            host,
            devices: Devices::new(&labels.commands),
            usage: Usage::default(),
            meters,
            energy: KernelEnergy::default(),
            in_ranges: ranges.is_active(),
            marked: Marked::new(ranges, sites, trace.manifest().capture.as_ref()),
            in_collectives: collectives.is_active(),
            collectives,
            makers: Makers::new(trace),
            memory: Memory::new(trace, table),
            who: Thread::default(),
            joining: None,
            by_thread: labels.by_thread,
            by_range: labels.by_range && labels.calls.contains(&By::Range),
            ways: Ways::new(trace, labels),
            choice,
            query,
            left: WATCHED,
            unknown: BTreeMap::new(),
            given_up: 0,
            marked_threads: None,
            system: trace.system(),
        }
    }

    /// Where the sums are that what a thread does now belongs to.
    #[inline]
    fn slice(&mut self, thread: ThreadId) -> usize {
        self.slice_of(thread, Way::default())
    }

    /// The same of what it does by a way.
    #[inline]
    fn slice_of(&mut self, thread: ThreadId, way: Way) -> usize {
        if !self.by_thread && !self.by_range && !self.ways.any() {
            return self.slice.1;
        }
        let range = if self.by_range { self.marked.innermost(thread) } else { None };
        let thread = if self.by_thread { thread } else { ThreadId(u32::MAX) };
        let slice = Slice { thread, range, way };
        if self.slice.0 != slice {
            self.slice = (slice, self.host.slice(slice));
        }
        self.slice.1
    }

    fn step(&mut self, at: At<'_>, step: Option<Step>) {
        if let Some(step) = step {
            self.marked.step(at, self.meters, self.choice, step);
        }
    }

    #[inline]
    fn watch(&mut self) -> ControlFlow<Stopped> {
        self.left -= 1;
        if self.left == 0 { self.ask() } else { ControlFlow::Continue(()) }
    }

    #[cold]
    fn ask(&mut self) -> ControlFlow<Stopped> {
        self.left = WATCHED;
        match self.query.watch.map(|watch| watch(u64::from(WATCHED))) {
            Some(ControlFlow::Break(())) => ControlFlow::Break(Stopped),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Collector<'_> {
    type Break = Stopped;

    #[inline]
    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.watch()
    }

    #[inline]
    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.ways.entry(at, call);
        self.memory.entry(call, event);
        self.mark_entry(at, call, event);
        ControlFlow::Continue(())
    }

    #[inline]
    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        if !self.choice.any || self.choice.has_call(call.function, at.who(), call.start) {
            let (way, again) = self.ways.of_call(call);
            let slice = self.slice_of(call.thread, way);
            self.host.call(slice, call);
            if again && call.error.is_none() {
                let time = if self.query.gross { call.duration() } else { call.net_duration() };
                self.host.again(slice, call.function, 1, time);
            }
            if let Some(system) = self.system {
                let who = at.who();
                self.host.states(slice, call, &system.shares(who.pid, who.tid, call.start, call.end));
            }
        }
        self.memory.exit(at, call, event);
        self.mark_exit(at, call, event);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<Stopped> {
        if !self.choice.any || self.choice.has_call(call.function, at.who(), call.start) {
            let way = self.ways.of_unfinished(call);
            let slice = self.slice_of(call.thread, way);
            self.host.unfinished(slice, call);
        }
        self.memory.unfinished(call.thread, call.depth);
        self.mark_unfinished(at, call);
        ControlFlow::Continue(())
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        if self.in_ranges {
            let step = self.marked.ranges().orphan(call);
            self.step(at, step);
        }
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        if !self.choice.any || self.choice.has_call(fold.function, at.who(), fold.first) {
            let (way, again) = self.ways.of_fold(fold);
            let slice = self.slice_of(fold.thread, way);
            self.host.fold(slice, fold);
            if again && fold.error.is_none() {
                let time = if self.query.gross { fold.total } else { fold.total.saturating_sub(fold.cost) };
                self.host.again(slice, fold.function, fold.count, time);
            }
        }
        ControlFlow::Continue(())
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.energy.command(self.meters, command);
        self.usage.command(command);
        if !self.choice.any || self.choice.has_command(command, at.time) {
            let range = if self.by_range { self.marked.of_command(command) } else { None };
            // One that is none here is counted at the end.
            if let Some(way) = self.ways.of_command(at, command, range) {
                self.devices.command(command, range, way);
            }
        }
        self.mark_command(at, command);
        ControlFlow::Continue(())
    }

    fn other(&mut self, _: At<'_>, event: &Event<'_, '_>) -> ControlFlow<Stopped> {
        if let Some(ErrorText { api, code, text: Some(text) }) = ErrorText::of(event) {
            self.host.error_text(api, code, text);
        }
        ControlFlow::Continue(())
    }

    fn unknown(&mut self, _: At<'_>, api: &str, function: &str, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        *self.unknown.entry((api.to_owned(), function.to_owned())).or_default() += 1;
        ControlFlow::Continue(())
    }
}

impl Collector<'_> {
    /// Counts the commands whose calls came after them.
    fn count_late(&mut self) {
        for late in self.ways.late() {
            self.devices.command(&late.command, late.range, late.way);
        }
    }

    fn sums(
        &self,
        trace: &Trace,
        telemetry: &Telemetry,
        labels: &Labels<'_>,
        query: &Query<'_>,
        summary: &Summary,
    ) -> Aggregate {
        let names = trace.names();
        let range = |row: u32| self.marked.name(row);
        let threads = Labels::threads(&summary.threads);
        let (device, traffic) = self.devices.cells(labels, &threads, query, range, &self.ways);
        let mut devices = self.devices.identities(names, &labels.host);
        devices.sort();
        let mut ranks: Vec<String> = summary.threads.iter().filter_map(|t| labels.rank_of(t.pid)).collect();
        ranks.sort();
        ranks.dedup();
        let used = self.devices.used(names);
        let mut energy = Vec::new();
        // Rows of a queue, a thread and so on share the energy of a name with others.
        if labels.commands == [By::Name] && query.is_of_all() {
            let timed = device.iter().filter(|c| !c.symbol.is_empty()).map(|c| (c.symbol.as_str(), c.total));
            let times: HashMap<&str, u64> = timed.collect();
            let rows = self.energy.rows(self.meters, names, &times);
            let cell =
                |(symbol, energy): (&str, _)| EnergyCell { symbol: symbol.to_owned(), energy: Some(energy) };
            energy = rows.into_iter().map(cell).collect();
            energy.sort_by(|a: &EnergyCell, b| a.symbol.cmp(&b.symbol));
        }
        Aggregate {
            host: self.host.cells(trace, labels, &summary.threads, range, &self.ways),
            device,
            traffic,
            ranges: self.marked.cells(self.meters, &used, query),
            energy,
            devices,
            ranks,
            rest: self.facts(trace, telemetry, labels, query, summary),
        }
    }

    /// Returns what is no sum over calls or commands.
    fn facts(
        &self,
        trace: &Trace,
        telemetry: &Telemetry,
        labels: &Labels<'_>,
        query: &Query<'_>,
        summary: &Summary,
    ) -> Tally {
        let manifest = trace.manifest();
        let unknown = self.unknown.iter().map(|((api, name), calls)| UnknownRow {
            api: api.clone(),
            name: name.clone(),
            calls: *calls,
        });
        let (names, clocks) = (trace.names(), manifest.device_clocks.iter());
        let (probes, probe_ranges) = probed::rows(trace, self.system.filter(|_| query.is_of_all()));
        let used = self.devices.used(names);
        // Of a program that ended by itself nothing should be open; what seems to be was lost.
        let whole = manifest.exit == Some(Exit::Code(0)) && manifest.losses.commands_in_flight == 0;
        let mut unfinished_collectives = self.collectives.unfinished(!whole);
        for row in &mut unfinished_collectives {
            row.since_ns = since_first(summary, row.since_ns);
        }
        let marked_threads = self.marked_threads.as_deref().unwrap_or(&summary.threads);
        Tally {
            traces: vec![about(manifest, labels, summary)],
            by: query.by.clone(),
            chosen: query.chosen(),
            command: manifest.command.clone(),
            exit: manifest.exit,
            duration_ns: summary.duration(),
            // Other tracers' traces have no models, and need no manifest.
            manifest_missing: trace.lacks_manifest(),
            host_clock_error_ns: manifest.host_clock.error_ns as f64,
            clock_errors: clock_errors(manifest),
            tracing: self.host.tracing(trace, query.is_of_all()),
            capture: capture_row(trace, summary),
            budget: BudgetRow::of(trace, &summary.threads).filter(|_| query.is_of_all()),
            apis: self.host.apis(trace, &summary.threads),
            errors: self.host.errors(trace),
            unfinished: self.host.unfinished_rows(trace, self.makers.open()),
            unknown: unknown.collect(),
            impossible_orders: clocks.map(|c| c.impossible_order).fold(0, u64::saturating_add),
            queues: self.devices.queues(),
            utilization: if query.is_of_all() {
                self.usage.rows(labels, summary.duration(), summary.lost_commands > 0)
            } else {
                Vec::new()
            },
            open_ranges: self.marked.open(marked_threads, summary.first.unwrap_or(0)),
            counters: self.marked.counters(),
            probes,
            probe_ranges,
            unmatched_range_ends: self.marked.unmatched(),
            collectives: self.collectives.rows(names),
            communicators: self.collectives.communicators(),
            unfinished_collectives,
            telemetry: monitor::rows(telemetry, names, &used),
            host_telemetry: super::monitored_host::rows(telemetry),
            notes: manifest
                .notes
                .iter()
                .chain(trace.problems())
                .cloned()
                .chain(self.host.untimed(trace))
                .collect(),
            ..missing(manifest, summary)
        }
    }
}

/// What the trace covers, if it has capture windows.
fn capture_row(trace: &Trace, summary: &Summary) -> Option<CaptureRow> {
    let (first, last) = (summary.first.unwrap_or(0), summary.last.unwrap_or(0));
    let Covered { capture, asked, open_ns, whole_ns } = Covered::of(trace, first, last)?;
    let (asked, windows) = (asked.to_owned(), capture.len() as u64);
    Some(CaptureRow { asked, windows, open_ns, lifetime_ns: whole_ns })
}

/// The time since the first event.
fn since_first(summary: &Summary, time: u64) -> u64 {
    time.saturating_sub(summary.first.unwrap_or(0))
}

/// The row of the trace itself.
pub(super) fn about(manifest: &Manifest, labels: &Labels<'_>, summary: &Summary) -> TraceRow {
    let mut pids: Vec<i64> = summary.threads.iter().map(|t| t.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    TraceRow {
        command: manifest.command.clone(),
        host: labels.host.clone(),
        duration_ns: summary.duration(),
        processes: pids.len() as u64,
    }
}

fn clock_errors(manifest: &Manifest) -> Vec<ClockError> {
    let errors = manifest.device_clocks.iter().map(|c| ClockError {
        pid: c.pid,
        device: c.title().into_owned(),
        error_ns: c.error_ns.map(|ns| ns as f64),
        host_clock: c.host_clock,
        corrected: c.corrected,
        largest_correction_ns: c.largest_correction_ns,
        impossible_order: c.impossible_order,
    });
    errors.collect()
}

/// What a trace lost, what is damaged in it and what has no end; all else is empty.
pub(super) fn missing(manifest: &Manifest, summary: &Summary) -> Tally {
    let stepped = summary.stepped.iter().map(|(stream, steps)| SteppedRow {
        stream: stream.clone(),
        steps: steps.count,
        largest_ns: steps.largest,
        at_ns: since_first(summary, steps.from),
    });
    Tally {
        schema: SCHEMA,
        lost_events: summary.lost_events,
        lost_calls: summary.lost_calls,
        lost_device_commands: summary.lost_commands,
        commands_in_flight: manifest.losses.commands_in_flight,
        commands_without_call: manifest.losses.commands_without_call,
        unwritten_bytes: manifest.losses.unwritten_bytes,
        damaged_bytes: manifest.losses.damaged_bytes,
        lost_processes: summary.lost_processes,
        lost_os_events: summary.lost_os_events,
        unseen_switches: summary.unseen_switches,
        lost_packets: summary.lost_packets,
        damaged: summary.damaged,
        damages: summary.damages.iter().map(ToString::to_string).collect(),
        differences: summary.differences,
        different: summary.different.clone(),
        steps_back: summary.steps_back,
        stepped_streams: stepped.collect(),
        cut_at_ns: summary.cut_at.map(|time| since_first(summary, time)),
        unfinished_calls: summary.unfinished,
        orphaned_exits: summary.orphans,
        untimed_commands: summary.untimed,
        ..Tally::default()
    }
}
