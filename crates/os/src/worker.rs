//! The reader: sleeps until a ring buffer is filled to its mark, and writes what concerns the program.

mod parts;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ctf::class::TraceClass;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec};

use crate::border::Passed;
use crate::clock::{nanoseconds, now};
use crate::emptier::{Feed, READER_ENDED};
use crate::form::{self, Environment};
use crate::hash::NumberSet;
use crate::intake::Batch;
use crate::keep::Keep;
use crate::order::{Order, PATIENCE, Piece};
use crate::perf::bpf::Own;
use crate::perf::bpf::direct::{self, Call};
use crate::perf::record::{Records, What, Who};
use crate::sources::Sources;
use crate::statistics::Statistics;
use crate::stream::{Trace, Written};
use crate::tracefs::Tracefs;
use crate::writer::Writer;
use crate::{Options, Place, Report, Scope, Way};
use parts::Parts;

/// Longest sleep, in nanoseconds: what the buffers hold is lost with this process.
const NAP: i64 = 250_000_000;
/// While the program runs, writing takes one part of so many of a processor's time, unless much waits.
const SHARE: u64 = 8;
/// Records that are written before what was taken meanwhile is looked at again.
const BATCH: usize = 4096;
/// How often packets are written that are not full, in nanoseconds.
const FLUSH: u64 = 1_000_000_000;

/// Where events come from.
#[derive(Debug)]
pub enum Source {
    /// See [`Way::Tracepoints`].
    Tracepoints {
        /// Open tracepoints.
        sources: Box<Sources>,
        /// Their descriptions.
        tracefs: Tracefs,
        /// Numbers and names of disks.
        disks: Vec<(u32, String)>,
    },
    /// See [`Way::Switches`].
    Switches(Box<Sources>),
    /// See [`Way::Statistics`].
    Statistics,
    /// Nothing is recorded at the moment.
    Paused,
}

impl Source {
    fn way(&self) -> Way {
        match self {
            Source::Tracepoints { .. } => Way::Tracepoints,
            Source::Switches(_) => Way::Switches,
            Source::Statistics | Source::Paused => Way::Statistics,
        }
    }

    /// What is open of the kernel.
    pub fn sources(&self) -> Option<&Sources> {
        match self {
            Source::Tracepoints { sources, .. } | Source::Switches(sources) => Some(sources),
            Source::Statistics | Source::Paused => None,
        }
    }

    /// See [`Source::sources`].
    pub fn sources_mut(&mut self) -> Option<&mut Sources> {
        match self {
            Source::Tracepoints { sources, .. } | Source::Switches(sources) => Some(sources),
            Source::Statistics | Source::Paused => None,
        }
    }
}

/// When the reader did what it does now and then.
#[derive(Debug)]
pub struct Pace {
    passed: u64,
    flushed: u64,
}

impl Default for Pace {
    fn default() -> Self {
        let now = now();
        Self { passed: now, flushed: now }
    }
}

/// The reader's state.
#[derive(Debug)]
pub struct Worker {
    /// Where events come from.
    pub source: Source,
    order: Order,
    /// Where they go.
    pub writer: Writer,
    /// What is sampled where there are none.
    pub statistics: Statistics,
    way: Way,
    /// Processes whose switches are recorded, also because they were inherited; of [`Source::Switches`].
    pub known: NumberSet<u32>,
    program: Option<u32>,
    stop: Arc<OwnedFd>,
    /// A record that is being made.
    scratch: Vec<u8>,
    /// Of a trace with parts.
    parts: Option<Parts>,
    /// What could not be recorded by sources that are closed.
    pub missed: Vec<String>,
    /// Processor time of the threads that empty what the kernel writes into, in nanoseconds.
    taking_ns: Arc<AtomicU64>,
}

impl Worker {
    /// Writes the beginning of the trace, of which the source was opened at a time in nanoseconds.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn begin(
        (mut source, opened): (Source, u64),
        options: &Options,
        pid: Option<u32>,
        place: Place,
        stop: Arc<OwnedFd>,
    ) -> io::Result<Self> {
        let cpus = source.sources().map_or_else(|| vec![0], |s| s.cpus.clone());
        let class = class(&place, source.way(), options.scope);
        let first = place.to.part.unwrap_or(1);
        let parts = place.borders.clone().map(|borders| Parts::new(borders, first));
        let trace = Trace::begin(place.to, &class, &cpus, opened)?;
        let way = source.way();
        let writer = Writer::new(trace, options, pid, way);
        let (waiting, taking_ns) = source.sources_mut().map(Sources::begun).unwrap_or_default();
        let mut worker = Self {
            source,
            way,
            known: NumberSet::default(),
            order: Order::with(waiting),
            writer,
            statistics: Statistics::of(pid),
            program: pid,
            stop,
            scratch: Vec::new(),
            parts,
            missed: Vec::new(),
            taking_ns,
        };
        worker.begin_taking();
        Ok(worker)
    }

    /// Has what the kernel writes into be emptied from now on.
    pub fn begin_taking(&mut self) {
        if let Some(sources) = self.source.sources_mut() {
            sources.feed.begin(self.order.waiting(), &self.taking_ns);
        }
    }

    /// Reads until the program has ended, and then all that is left.
    pub fn run(&mut self) -> Report {
        self.look();
        let mut pace = Pace::default();
        loop {
            let ended = self.wait();
            if ended && let Some(sources) = self.source.sources() {
                sources.disable();
            }
            // What others do after the program's end is nobody's concern, and may go on for ever.
            if ended {
                let at = now();
                self.pass(at, at, None);
                self.count_skipped();
                break;
            }
            self.step(&mut pace);
        }
        // Perhaps nothing came after it.
        self.writer.dump_before(u64::MAX);
        self.end()
    }

    /// Finishes the trace, of which all is written. Returns what was recorded, in all parts.
    pub fn end(&mut self) -> Report {
        let at = now();
        let last = self.parts.is_some().then(|| self.leave(at));
        let report = match (last, &mut self.parts) {
            (Some(report), Some(Parts { borders, number, sum, .. })) => {
                borders.pass(Passed { number: *number, report });
                std::mem::take(sum)
            }
            _ => {
                self.writer.trace.finish(at);
                self.report()
            }
        };
        self.writer.trace.keep().into_iter().for_each(|keep| keep.seal(u64::MAX));
        report
    }

    /// Looks at what there is when tracepoints begin to be recorded, for the state dump.
    pub fn look(&mut self) {
        if let Source::Tracepoints { disks, .. } = &mut self.source {
            self.writer.look(self.program, std::mem::take(disks));
        }
    }

    /// Reads and writes while it is recorded. What is kept for a snapshot is all read, and sealed, when one is asked for.
    pub fn step(&mut self, pace: &mut Pace) {
        let at = now();
        let pressed = self.writer.trace.keep().is_some_and(Keep::is_pressed);
        let share = at.saturating_sub(pace.passed) / SHARE;
        pace.passed = at;
        let Self { source, order, writer, .. } = self;
        let emptied = source.sources_mut().map(|sources| {
            take(sources, order, writer);
            sources.feed.emptied()
        });
        // Where nothing more is taken before something is written, all is written that is old enough.
        let all = pressed || order.waiting().is_full();
        let until = emptied.filter(|_| !all).map_or(at, |emptied| emptied.min(at));
        self.pass(until.saturating_sub(PATIENCE), until, Some(share).filter(|_| !pressed));
        if pressed || at.saturating_sub(pace.flushed) >= FLUSH {
            pace.flushed = at;
            self.count_skipped();
            self.writer.trace.flush_all();
        }
        if pressed && let Some(keep) = self.writer.trace.keep() {
            keep.seal(at.saturating_sub(PATIENCE));
        }
    }

    /// Counts what programs in the kernel were not run for.
    fn count_skipped(&mut self) {
        let own = self.source.sources_mut().and_then(|sources| sources.own.as_mut());
        let skipped = own.map_or(0, Own::skipped);
        if skipped > 0 {
            self.writer.dropped(0, skipped);
        }
    }

    /// Forgets that somebody woke it.
    pub fn heard(&self) {
        let mut number = [0; 8];
        let _ = rustix::io::read(&*self.stop, &mut number);
    }

    /// Forgets what waits: nothing of it is to be written.
    pub fn forget(&mut self) {
        self.writer.damaged += self.order.damaged();
        self.order = Order::default();
    }

    /// Returns whether what another source records belongs into this trace.
    pub fn continues(&self, source: &Source) -> bool {
        let cpus = source.sources().map_or_else(|| vec![0], |sources| sources.cpus.clone());
        source.way() == self.way && cpus == self.writer.trace.cpus()
    }

    /// Returns what was not recorded, and why.
    pub fn missing(&self) -> Vec<String> {
        let open = self.source.sources().map(missing).unwrap_or_default();
        self.missed.iter().cloned().chain(open).collect()
    }

    /// Bytes that were written so far, of all parts.
    pub fn bytes(&self) -> u64 {
        let before = self.parts.as_ref().map_or(0, |parts| parts.sum.bytes);
        before + self.writer.trace.written().bytes
    }

    /// Returns the tracepoints that are still open.
    pub fn into_sources(self) -> Option<Box<Sources>> {
        match self.source {
            Source::Tracepoints { sources, .. } => Some(sources),
            Source::Switches(_) | Source::Statistics | Source::Paused => None,
        }
    }

    /// Sleeps. Returns whether the program has ended, or somebody woke it.
    pub fn wait(&self) -> bool {
        let feed = self.source.sources().map(|sources| &sources.feed);
        let mut waited: Vec<PollFd> = vec![PollFd::new(&*self.stop, PollFlags::IN)];
        waited.extend(self.parts.iter().map(|parts| PollFd::new(parts.borders.wake(), PollFlags::IN)));
        let wakes = feed.map(Feed::wakes).unwrap_or_default();
        waited.extend(wakes.into_iter().map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)));
        let nap = Timespec { tv_sec: 0, tv_nsec: NAP };
        // An interrupted sleep is a short one.
        let _ = poll(&mut waited, Some(&nap));
        feed.into_iter().for_each(Feed::awake);
        waited.first().is_some_and(|stop| stop.revents().contains(PollFlags::IN))
    }

    /// Takes all that came until `at`, and writes what is older than `before`. With a budget in nanoseconds the rest is put
    /// off, as long as memory allows: the processor is the program's.
    pub fn pass(&mut self, before: u64, at: u64, budget: Option<u64>) {
        let begun = now();
        self.hear_borders();
        self.catch_up(before, at);
        while let Some(border) = self.next_border().filter(|border| *border <= before) {
            if !self.write_until(border, begun, budget) {
                return;
            }
            self.cross();
        }
        if matches!(self.source, Source::Statistics) {
            self.writer.statistics(at, self.statistics.sample());
        }
        self.write_until(before, begun, budget);
    }

    /// Takes all that came until `at`. Where too much waits some of it is written first.
    fn catch_up(&mut self, before: u64, at: u64) {
        loop {
            let Self { source, order, writer, .. } = self;
            let Some(sources) = source.sources_mut() else { return };
            if sources.feed.emptied() >= at {
                return;
            }
            take_all(sources, order, writer);
            // Of what is younger than that nothing can be written, so no more comes.
            if order.waiting().is_full() && !self.write(before, BATCH) {
                return;
            }
        }
    }

    /// Writes what is older than `before`, and takes what has come meanwhile. Returns whether that is all, within the budget
    /// that began at a time.
    fn write_until(&mut self, before: u64, begun: u64, budget: Option<u64>) -> bool {
        loop {
            let Self { source, order, writer, .. } = self;
            if let Some(sources) = source.sources_mut() {
                take(sources, order, writer);
            }
            if !self.write(before, BATCH) {
                return true;
            }
            if budget.is_some_and(|budget| now().saturating_sub(begun) > budget) && !self.order.presses() {
                return false;
            }
        }
    }

    /// Writes at most so many records that are older than `before`. Returns whether there are more.
    fn write(&mut self, before: u64, most: usize) -> bool {
        let Self { source, order, writer, scratch, known, .. } = self;
        match source {
            Source::Paused | Source::Statistics => false,
            Source::Switches(_) => order.release(before, most, |cpu, piece| {
                if let Piece::Record(record) = piece {
                    note(known, record.who, &record.what);
                    writer.own(cpu, &record);
                }
            }),
            Source::Tracepoints { sources, tracefs, .. } => {
                order.release(before, most, |cpu, piece| match piece {
                    Piece::Record(record) => writer.record(cpu, &record, sources, tracefs),
                    Piece::Words(words) => words_of_ours(words, cpu, scratch, (writer, sources, tracefs)),
                })
            }
        }
    }

    /// Returns what was recorded so far.
    pub fn report(&self) -> Report {
        let counted = Report {
            late: self.writer.late,
            unseen: self.writer.unseen,
            damaged: self.order.damaged() + self.writer.damaged,
            cpu_ns: nanoseconds(ClockId::ThreadCPUTime) + self.taking_ns.load(Ordering::Relaxed),
            account: self.parts.is_none().then(|| self.writer.trace.account()).flatten(),
            missing: self.missing(),
            ..Report::default()
        };
        with(counted, self.writer.trace.written())
    }
}

/// Returns a report with what was written.
fn with(report: Report, written: &Written) -> Report {
    let Written { events, bytes, dropped, unwritten, error } = written.clone();
    Report { events, bytes, dropped, unwritten, error, ..report }
}

/// Takes a record of our programs: what comes most often directly, all else as perf's of the same tracepoint.
fn words_of_ours(
    words: &[u64],
    cpu: usize,
    scratch: &mut Vec<u8>,
    (writer, sources, tracefs): (&mut Writer, &mut Sources, &Tracefs),
) {
    let number = sources.cpus.get(cpu).copied().unwrap_or(0);
    if let Some((decoder, direct)) = sources.scheduled(words) {
        return writer.scheduled((cpu, number), words, direct, decoder);
    }
    if let (Some(call), Some(head)) = (Call::of(words), direct::head(words)) {
        return writer.called(cpu, head, call, tracefs);
    }
    scratch.clear();
    let made = sources.own.as_ref().and_then(|own| own.record(words, scratch));
    match made.and_then(|()| Records::new(scratch).next()) {
        Some(record) => writer.record(cpu, &record, sources, tracefs),
        None => writer.damaged += size_of_val(words) as u64,
    }
}

/// Returns what was not recorded, and why.
fn missing(sources: &Sources) -> Vec<String> {
    let mut missing = sources.missing.clone();
    if sources.feed.is_gone() {
        missing.push(format!("events up to the end: {READER_ENDED}"));
    }
    let forgotten = sources.own.as_ref().map_or(0, Own::forgotten);
    if forgotten > 0 {
        missing.push(format!(
            "system calls and page faults of {forgotten} threads: their numbers are beyond kernel.pid_max as it was when recording began"
        ));
    }
    let unfollowed = sources.unfollowed();
    if unfollowed > 0 {
        missing.push(format!(
            "{unfollowed} threads that ran already: their numbers are beyond kernel.pid_max, or too few descriptors (ulimit -n)"
        ));
    }
    missing
}

/// Takes what has been copied out of ring buffers.
fn take(sources: &mut Sources, order: &mut Order, writer: &mut Writer) {
    let waiting = Arc::clone(order.waiting());
    sources.feed.take(&waiting, |batch| add(batch, order, writer));
}

/// Takes all that is in ring buffers now.
fn take_all(sources: &mut Sources, order: &mut Order, writer: &mut Writer) {
    let waiting = Arc::clone(order.waiting());
    sources.feed.take_all(&waiting, |batch| add(batch, order, writer));
}

fn add(batch: Batch, order: &mut Order, writer: &mut Writer) {
    let Batch { taken, dropped, damaged } = batch;
    taken.into_iter().for_each(|taken| order.add(taken));
    dropped.into_iter().for_each(|(cpu, dropped)| writer.dropped(cpu, dropped));
    writer.damaged += damaged;
}

/// Returns the trace's class, without events.
fn class(place: &Place, way: Way, scope: Scope) -> TraceClass {
    let name = rustix::system::uname();
    let environment = Environment {
        host: place.host.clone(),
        release: name.release().to_string_lossy().into_owned(),
        version: name.version().to_string_lossy().into_owned(),
        recorded_by: place.recorder.clone(),
        recorded_with: way.name().to_owned(),
        scope: scope.name().to_owned(),
    };
    form::trace_class(place.uuid, place.clock.clone(), &environment)
}

/// Keeps which processes inherit what is opened of their parents.
fn note(known: &mut NumberSet<u32>, who: Who, what: &What<'_>) {
    match what {
        What::Fork { child } => _ = known.insert(child.pid),
        What::Exit if who.pid == who.tid => _ = known.remove(&who.pid),
        _ => {}
    }
}
