//! One walk to all tables.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use hetrace_ctf::read::Event;

use super::device::Devices;
use super::host::Host;
use super::rows::{ClockError, SCHEMA, Tally};
use crate::spans::{At, Call, Command, Fold, NewQueue, Summary, Unfinished, Visitor, walk_part};
use crate::trace::{Cursor, Thread, Threads, Trace};

/// What to count apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Commands by device and queue, too.
    pub extended: bool,
}

/// Makes the tables of a trace.
///
/// Streams that have nothing to do with each other are read at the same time,
/// on as many threads as there are processors.
pub fn tally(trace: &Trace, options: &Options) -> Tally {
    let (collector, mut summary) = match trace.streams_are_independent() {
        true => by_stream(trace),
        false => part(trace, trace.cursor()),
    };
    summary.add_manifest(trace);
    collector.tables(trace, options, &summary)
}

fn part(trace: &Trace, cursor: Cursor<'_>) -> (Collector, Summary) {
    let mut collector = Collector { host: Host::new(trace), devices: Devices::default() };
    let ControlFlow::Continue(summary) = walk_part(cursor, &mut collector);
    (collector, summary)
}

fn by_stream(trace: &Trace) -> (Collector, Summary) {
    let streams = trace.ctf().stream_count();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    // Each takes the next stream that nobody has, until there is none.
    let work = || {
        let mut sums = Sums::new(trace);
        loop {
            let stream = next.fetch_add(1, Ordering::Relaxed);
            if stream >= streams {
                return sums;
            }
            sums.add(part(trace, trace.cursor_of(stream)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..processors.min(streams)).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for helper in helpers {
            match helper.join() {
                Ok(sums) => all.add((sums.collector, sums.summary)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    // Who was faster must not show.
    all.summary.damages.sort_by_key(ToString::to_string);
    (all.collector, all.summary)
}

/// Sums of several parts of a trace.
struct Sums {
    collector: Collector,
    summary: Summary,
    threads: Threads,
}

impl Sums {
    fn new(trace: &Trace) -> Self {
        let collector = Collector { host: Host::new(trace), devices: Devices::default() };
        Self { collector, summary: Summary::default(), threads: Threads::default() }
    }

    fn add(&mut self, (collector, summary): (Collector, Summary)) {
        let threads = &mut self.threads;
        let here = |thread: &Thread| threads.number(thread.pid, thread.tid);
        self.collector.host.merge(&collector.host, &summary.threads, here);
        self.collector.devices.merge(&collector.devices);
        self.summary.merge(summary);
        self.summary.threads = self.threads.all().to_vec();
    }
}

struct Collector {
    host: Host,
    devices: Devices,
}

impl Visitor for Collector {
    type Break = Infallible;

    #[inline]
    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<Infallible> {
        self.host.call(call);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, _: At<'_>, call: &Unfinished) -> ControlFlow<Infallible> {
        self.host.unfinished(call);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, _: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<Infallible> {
        self.host.fold(fold);
        ControlFlow::Continue(())
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Infallible> {
        self.devices.command(command);
        ControlFlow::Continue(())
    }

    fn queue(&mut self, _: At<'_>, queue: &NewQueue<'_>, _: &Event<'_, '_>) -> ControlFlow<Infallible> {
        self.devices.queue(queue);
        ControlFlow::Continue(())
    }
}

impl Collector {
    fn tables(&self, trace: &Trace, options: &Options, summary: &Summary) -> Tally {
        let manifest = trace.manifest();
        let clock_errors = manifest.device_clocks.iter().map(|c| ClockError {
            pid: c.pid,
            device: c.title().to_owned(),
            error_ns: c.error_ns,
        });
        let since_first = |time: u64| time.saturating_sub(summary.first.unwrap_or(0));
        let (devices, queues) = self.devices.counts();
        Tally {
            schema: SCHEMA,
            command: manifest.command.clone(),
            exit: manifest.exit,
            duration_ns: summary.duration(),
            lost_events: summary.lost_events,
            lost_calls: summary.lost_calls,
            lost_device_commands: summary.lost_commands,
            commands_under_way: manifest.losses.commands_under_way,
            unwritten_bytes: manifest.losses.unwritten_bytes,
            damaged_bytes: manifest.losses.damaged_bytes,
            lost_packets: summary.lost_packets,
            damaged: summary.damaged,
            damages: summary.damages.iter().map(ToString::to_string).collect(),
            cut_at_ns: summary.cut_at.map(since_first),
            unfinished_calls: summary.unfinished,
            orphaned_exits: summary.orphans,
            untimed_commands: summary.untimed,
            // Other tracers' traces have no models, and need no manifest.
            manifest_missing: !manifest.is_present() && !trace.models().is_empty(),
            host_clock_error_ns: manifest.host_clock.error_ns,
            clock_errors: clock_errors.collect(),
            apis: self.host.apis(trace, &summary.threads),
            host: self.host.rows(trace),
            errors: self.host.errors(trace),
            unfinished: self.host.unfinished_rows(trace),
            devices,
            queues,
            device: self.devices.rows(options.extended),
            traffic: self.devices.traffic(),
            notes: manifest.notes.iter().chain(trace.problems()).cloned().collect(),
        }
    }
}
