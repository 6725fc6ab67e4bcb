//! From a walk over a trace to an archive.

mod communicators;
mod counters;
mod messages;
mod metrics;
mod output;
mod paradigms;
mod places;
mod queues;
mod ranges;
mod ranks;
mod regions;
mod threads;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_model::Expr;
use hetrace_trace::collectives::Collectives;
use hetrace_trace::probes::Border;
use hetrace_trace::ranges::{Ranges, Step as RangeStep};
use hetrace_trace::samples::Sample;
use hetrace_trace::spans::{
    At, Call, Command, Fold, NewQueue, Open as OpenCall, Orphan, Summary, Unfinished, Visitor, Why, walk,
};
use hetrace_trace::telemetry::Telemetry;
use hetrace_trace::text::{STILL_OPEN, STILL_RUNNING};
use hetrace_trace::trace::{FunctionId, Trace};

use super::archive::{About, Archive};
use super::definitions::LocationKind;
use super::events::Value;
use super::{Left, Written};
use crate::operations::{Amount, number};
use crate::sources::Sources;
use crate::{Error, Watch};
use messages::Plan;
use output::{Attribute, NOTHING, Output, With};
use places::Places;
use queues::{Around, Queues};
use ranges::Started;
use ranks::{Communicators, Operation, Windows};
use regions::Regions;
use threads::{Ended, Open, Threads};

/// Events after which somebody is asked whether to go on.
const WATCHED: u64 = 1 << 14;
/// Telemetry has a place of its own, and definitions are no events.
const PLACED: [&str; 2] = ["telemetry:", "device:"];

/// What ranges between probes in programs' code are called together.
const PROBES: &str = "USDT";

/// Writes a trace into an archive.
pub(super) fn export(trace: &Trace, archive: Archive, watch: Watch<'_>) -> Result<Written, Error> {
    let mut output = Output::new(archive);
    let places = Places::new(&mut output.archive.definitions, trace);
    let mut exporter = Exporter {
        trace,
        watch,
        read: 0,
        places,
        output,
        regions: Regions::new(trace),
        threads: Threads::default(),
        queues: Queues::default(),
        windows: Windows::default(),
        collectives: Collectives::new(trace),
        communicators: Communicators::default(),
        messages: messages::plan(trace, watch)?,
        ranges: Ranges::new(trace),
        started: Started::default(),
        sources: Sources::new(trace.names().stacks()),
        with: With::default(),
        unplaced: 0,
    };
    match walk(trace, &mut exporter) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(summary) => exporter.finish(summary),
    }
}

struct Exporter<'t, 'w> {
    trace: &'t Trace,
    watch: Watch<'w>,
    /// Events since somebody was asked.
    read: u64,
    output: Output,
    places: Places<'t>,
    regions: Regions<'t>,
    threads: Threads,
    queues: Queues,
    windows: Windows,
    collectives: Collectives,
    communicators: Communicators,
    messages: Plan,
    ranges: Ranges<'t>,
    started: Started,
    sources: Sources<'t>,
    /// Attributes of the event that is being made; kept for its room.
    with: With,
    /// Events that nothing in the archive stands for.
    unplaced: u64,
}

type Step = ControlFlow<Error>;

fn step(result: Result<(), Error>) -> Step {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl Exporter<'_, '_> {
    fn begin(&mut self, at: At<'_>, call: &OpenCall, event: &Event<'_, '_>) -> Result<(), Error> {
        let traits = self.regions.traits(call.function);
        if traits.is_range {
            return Ok(());
        }
        let region = self.regions.function(&mut self.output.archive.definitions, call.function);
        self.with.clear();
        if let Some(bytes) = traits.bytes.and_then(|bytes| value(bytes, event)) {
            self.with.add(Attribute::Bytes, Value::Unsigned(bytes));
        }
        if let Some(source) = self.sources.of(call.stack) {
            let [at, stack] = [&source.at, &source.stack].map(|text| self.output.text(text));
            self.with.add(Attribute::CalledAt, at);
            self.with.add(Attribute::CallStack, stack);
        }
        let what = (Open::Call(call.depth), call.start, region);
        let Some(about) = traits.collective else {
            return self.threads.enter(&mut self.output, &mut self.places, at, what, &self.with, None);
        };
        // Each is asked for once, in the order of the plan.
        let planned = messages::is_send(&about.operation).and_then(|_| self.messages.next());
        let amount = Amount::of(self.trace, call.function, about, event);
        self.with.add(Attribute::Bytes, Value::Unsigned(amount.bytes));
        let location = self.threads.location(&mut self.output, &mut self.places, at);
        let api = self.trace.model_of(call.function).map_or("", |model| model.api.as_str());
        let paradigm = self.regions.paradigm(api).number;
        let handle = number(event, &about.communicator).unwrap_or(0);
        let communicator = self.collectives.communicator_of(at.who().pid, call.function, handle);
        let operation = communicator.map(|communicator| Operation {
            name: &about.operation,
            communicator,
            paradigm,
            root: about.peer.as_deref().and_then(|peer| number(event, peer)),
            bytes: amount.bytes,
        });
        let communicators = &mut self.communicators;
        let collective = operation.as_ref().and_then(|o| communicators.collective(o, location));
        let message = operation.as_ref().and_then(|o| communicators.message(o, location, planned));
        self.threads.enter(&mut self.output, &mut self.places, at, what, &self.with, collective)?;
        match message.zip(planned) {
            Some((message, planned)) => {
                self.threads.message(&mut self.output, at, (call.start, planned.until), message)
            }
            None => Ok(()),
        }
    }

    fn end(&mut self, ended: Ended) -> Result<(), Error> {
        if self.regions.traits(ended.function).is_range {
            return Ok(());
        }
        let what = (Open::Call(ended.depth), ended.time);
        self.threads.leave(&mut self.output, ended.thread, what, &self.with).map(|_| ())
    }

    fn failed(&mut self, function: FunctionId, error: Option<i64>) {
        self.with.clear();
        if let Some(code) = error {
            let value = self.output.text(&self.trace.error_name(function, code));
            self.with.add(Attribute::Error, value);
        }
    }

    fn ranged(&mut self, at: At<'_>, function: FunctionId, step: Option<RangeStep>) -> Result<(), Error> {
        let Some(step) = step else { return Ok(()) };
        let title = self.regions.title_of(function);
        self.titled(at, title, &step)
    }

    fn titled(&mut self, at: At<'_>, title: &str, step: &RangeStep) -> Result<(), Error> {
        let around = ranges::Around {
            out: &mut self.output,
            places: &mut self.places,
            regions: &mut self.regions,
            threads: &mut self.threads,
        };
        self.started.step(around, at, title, step)
    }

    fn finish(mut self, summary: Summary) -> Result<Written, Error> {
        let end = summary.last.unwrap_or(0);
        let open = self.ranges.open().into_iter().cloned();
        let open: Vec<_> = open.collect();
        let mut unended = open.len() as u64;
        for range in open {
            let around = ranges::Around {
                out: &mut self.output,
                places: &mut self.places,
                regions: &mut self.regions,
                threads: &mut self.threads,
            };
            self.started.end(around, &range, end, Some(STILL_OPEN))?;
        }
        unended += self.started.finish(&mut self.output, end)?;
        self.threads.finish(&mut self.output, end)?;
        self.queues.finish(&mut self.output)?;
        let counters = std::mem::take(&mut self.started.counters);
        let telemetry = Telemetry::read(self.trace);
        let samples = metrics::write(&mut self.output, &mut self.places, &telemetry, counters)?;
        let archive = &mut self.output.archive;
        ranks::define(archive, &mut self.places, self.communicators, &self.windows);
        for paradigm in self.regions.paradigms() {
            archive.definitions.paradigm(paradigm.number, paradigm.name, paradigm.class);
        }
        let left = Left {
            orphans: summary.orphans,
            unfinished: summary.unfinished,
            unended,
            shortened: self.threads.shortened,
            moved: archive.moved(),
            crowded: self.threads.crowded + self.queues.crowded + self.started.crowded,
            untimed: self.queues.untimed,
            alone: self.windows.alone,
            unplaced: self.unplaced,
            unmatched: self.messages.unmatched,
        };
        let (ranges, threads, places) = (&self.ranges, &summary.threads, &self.places);
        self.threads.name(&mut self.output, |number, pid, tid| {
            let own = threads.get(number.index()).map_or("", |t| &t.name);
            let name = ranges.thread_name(pid, tid).unwrap_or(own);
            format!("{}{}", places.rank(pid), format!("{name} (thread {tid})").trim_start())
        });
        let mut archive = self.output.archive;
        if archive.locations() == 0 {
            // Readers want one.
            let group = self.places.absent(&mut archive.definitions);
            archive.location("nothing was recorded", LocationKind::Thread, group);
        }
        let (first, last) = archive.span().unwrap_or((summary.first.unwrap_or(0), end));
        let (first, last) = (summary.first.map_or(first, |f| f.min(first)), last.max(end));
        let epoch = self.trace.epoch_offset_ns().and_then(|ns| first.checked_add_signed(ns));
        archive.definitions.clock(first, last.saturating_sub(first), epoch);
        let locations = archive.locations();
        let mut written = Written { events: 0, locations, definitions: 0, samples, bytes: 0, left, summary };
        let about = about(self.trace, &written, (first, last));
        (written.events, written.definitions, written.bytes) = archive.finish(&about)?;
        Ok(written)
    }
}

/// What the anchor file says.
fn about(trace: &Trace, written: &Written, (first, last): (u64, u64)) -> About {
    let manifest = trace.manifest();
    let lost = written.missing().into_iter().map(|(name, _, n)| (format!("HETRACE::{name}"), n.to_string()));
    let uuid = trace.ctf().class().uuid.unwrap_or_default();
    let half = |at: usize| uuid.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let id = hetrace_trace::spans::cause_id(first as i64, last as i64, half(0) ^ half(8));
    About {
        machine: places::host(trace).to_owned(),
        creator: format!("hetrace {}", env!("CARGO_PKG_VERSION")),
        description: manifest.command.join(" "),
        properties: lost.collect(),
        id,
    }
}

/// Returns the value of an expression of parameters, if the numbers in it were recorded.
fn value(expr: &Expr, event: &Event<'_, '_>) -> Option<u64> {
    expr.value(&|leaf| match leaf {
        Expr::Name(name) => number(event, name),
        // What stands behind a pointer is not looked at.
        _ => None,
    })
}

impl Visitor for Exporter<'_, '_> {
    type Break = Error;

    #[inline]
    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> Step {
        self.read += 1;
        if self.read >= WATCHED {
            let read = std::mem::take(&mut self.read);
            if (self.watch)(read).is_break() {
                return ControlFlow::Break(Error::Stopped);
            }
        }
        ControlFlow::Continue(())
    }

    fn entry(&mut self, at: At<'_>, call: &OpenCall, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.entry(at, call, event);
        self.collectives.entry(at, call, event);
        step(self.begin(at, call, event).and_then(|()| self.ranged(at, call.function, range)))
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let range = self.ranges.exit(at, call, event);
        self.collectives.exit(at, call, event);
        self.failed(call.function, call.error);
        let Call { function, thread, depth, end: time, .. } = *call;
        let ended = Ended { function, thread, depth, time };
        step(self.end(ended).and_then(|()| self.ranged(at, function, range)))
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let range = self.ranges.unfinished(at, call);
        let why = match call.why {
            Why::TraceEnds => STILL_RUNNING,
            Why::ExitLost => "its end was lost",
            Why::ThreadEnded => "its thread ended",
        };
        let why = self.output.text(why);
        self.with.clear();
        self.with.add(Attribute::Unfinished, why);
        let Unfinished { function, thread, depth, until: time, .. } = *call;
        let ended = Ended { function, thread, depth, time };
        step(self.end(ended).and_then(|()| self.ranged(at, function, range)))
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> Step {
        let range = self.ranges.orphan(call);
        step(self.ranged(at, call.function, range))
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        let region = self.regions.function(&mut self.output.archive.definitions, fold.function);
        self.failed(fold.function, fold.error);
        step(self.threads.run(&mut self.output, &mut self.places, at, fold, region, &mut self.with))
    }

    fn command(&mut self, at: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> Step {
        let around = Around {
            trace: self.trace,
            ranges: &self.ranges,
            regions: &mut self.regions,
            places: &mut self.places,
            threads: &self.threads,
            windows: &mut self.windows,
        };
        step(self.queues.command(&mut self.output, around, at, command))
    }

    fn queue(&mut self, _: At<'_>, _: &NewQueue<'_>, _: &Event<'_, '_>) -> Step {
        // A queue without commands has no place: nobody would look at an empty row.
        ControlFlow::Continue(())
    }

    fn border(&mut self, at: At<'_>, border: &Border, name: &str) -> Step {
        let range = self.ranges.border(at, border, name);
        step(range.map_or(Ok(()), |range| self.titled(at, PROBES, &range)))
    }

    fn unknown(&mut self, at: At<'_>, api: &str, function: &str, _: &Event<'_, '_>) -> Step {
        let region = self.regions.unknown(&mut self.output.archive.definitions, api, function);
        step(self.threads.instant(&mut self.output, &mut self.places, at, region, &NOTHING))
    }

    fn sample(&mut self, _: At<'_>, _: &Sample, _: &Event<'_, '_>) -> Step {
        self.unplaced += 1;
        ControlFlow::Continue(())
    }

    fn other(&mut self, _: At<'_>, event: &Event<'_, '_>) -> Step {
        let name = &event.class().name;
        self.unplaced += u64::from(!PLACED.iter().any(|prefix| name.starts_with(prefix)));
        ControlFlow::Continue(())
    }
}
