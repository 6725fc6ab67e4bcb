//! Telemetry: what devices and the host say of themselves, sampled by the launcher while the
//! program runs, into streams of their own.
//!
//! ```text
//!   Source ──► first sweep ──► Lane (quick queries)  ──► telemetry-1
//!              before the      Lane (slow queries)   ──► telemetry-2
//!              program starts
//! ```
//! The first sweep makes every query once. It shows what a device refuses, how
//! long each query takes, and what its counters were before the program. From then on each
//! lane, a thread, sweeps by its [`schedule`]. A query that takes more than a
//! quarter of a period is left to the second lane, where nothing waits for it.
//! When the program has ended the lanes sweep once more.

mod clock;
mod lane;
pub mod schedule;
pub mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use hetrace_ctf::account::StreamAccount;
use hetrace_format::telemetry::HOST;
use hetrace_vendor::telemetry::{Device, Libraries, Missing, Opened, Quantity, Source};

use crate::manifest::{self, Manifest, QuantityReport, SourceReport, TelemetryDevice};
use crate::output::{Identity, Stream, TraceFolder};
use crate::trigger::Feed;
use clock::{Clock, Monotonic, Stop, cpu_time};
use lane::{Lane, LaneReport, Query};

/// Share of the period that a query may take and still be among the quick ones.
const QUICK: u64 = 4;
/// Percent of their time that the lanes of quick and of slow queries may spend.
const LOADS: [u64; 2] = [50, 25];
/// How long a driver may take for the last sweep before it counts as hanging.
const LAST_SWEEP: Duration = Duration::from_secs(5);

/// What to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Time between two samples.
    pub period: Duration,
    /// Libraries that sources load, if not those that the loader finds.
    pub libraries: Libraries,
}

/// A run's telemetry. It never fails: what is missing stands in the report.
#[derive(Debug)]
pub struct Telemetry {
    clock: Arc<dyn Clock>,
    report: manifest::Telemetry,
    /// For the user: what is missing and how to fix it.
    notes: Vec<String>,
    /// When the first sweep began.
    begin: u64,
    sources: Vec<Arc<dyn Source>>,
    /// Those that lanes own.
    started: Vec<Weak<dyn Source>>,
    waiting: Vec<Lane>,
    running: Vec<Receiver<LaneReport>>,
    stop: Arc<Stop>,
    unwritten: u64,
    /// Of the stream files of lanes that have ended.
    accounts: Vec<StreamAccount>,
    /// Sampling threads whose stream files are unknown.
    unknown: usize,
}

impl Telemetry {
    /// Opens all sources and makes the first sweep, which nothing is written of yet.
    pub fn open(options: &Options, folder: &TraceFolder) -> Self {
        let clock = Arc::new(Monotonic);
        let started = clock.now();
        let sources = hetrace_vendor::telemetry::open(&options.libraries);
        let mut telemetry = Self::with(clock.clone(), options.period, sources, folder);
        telemetry.report.sampler.opening_ns = clock.now().saturating_sub(started);
        telemetry
    }

    /// Takes sources, or what is missing for them, and makes the first sweep.
    fn with(clock: Arc<dyn Clock>, period: Duration, sources: Vec<Opened>, folder: &TraceFolder) -> Self {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mut telemetry = Telemetry {
            report: manifest::Telemetry { period_ns: period, ..manifest::Telemetry::default() },
            notes: Vec::new(),
            begin: clock.now(),
            clock,
            sources: Vec::new(),
            started: Vec::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            stop: Arc::default(),
            unwritten: 0,
            accounts: Vec::new(),
            unknown: 0,
        };
        let mut opened = Vec::new();
        for source in sources {
            let report = match source {
                Ok(source) => {
                    let (name, driver) = (source.name().to_owned(), source.driver().to_owned());
                    let missing = source.missing().to_vec();
                    opened.push(source);
                    SourceReport { name, driver, error: None, missing }
                }
                Err(Missing { name, why }) => {
                    telemetry.notes.push(why.clone());
                    SourceReport { name: name.to_owned(), error: Some(why), ..SourceReport::default() }
                }
            };
            telemetry.report.sources.push(report);
        }
        telemetry.first_sweep(&opened, folder);
        telemetry
    }

    /// Makes every query once, and deals them out to the lanes.
    fn first_sweep(&mut self, sources: &[Arc<dyn Source>], folder: &TraceFolder) {
        let cpu = cpu_time();
        let places = sources.iter().flat_map(|s| (0..s.devices().len()).map(move |place| (s, place)));
        let devices: Vec<_> =
            places.zip(0u32..).map(|((source, place), number)| (number, source, place)).collect();
        if devices.is_empty() {
            return;
        }
        let mut lanes: [Vec<Query>; 2] = Default::default();
        let mut samples = Vec::new();
        for quantity in Quantity::ALL {
            for (number, source, place) in &devices {
                if !source.quantities(*place).contains(&quantity) {
                    continue;
                }
                let mut query = Query::new(Arc::clone(source), *place, *number, quantity);
                samples.extend(query.make(&*self.clock));
                let slow = |query: &Query| query.last_ns() > self.report.period_ns / QUICK;
                // The first query of a driver may do more than that; energy belongs to the quick ones.
                if quantity.is_energy() && query.is_live() && slow(&query) {
                    samples.extend(query.make(&*self.clock));
                }
                let slow = slow(&query);
                lanes[usize::from(slow)].push(query);
            }
        }
        let mut streams: Vec<Stream> = (1..).take(lanes.len()).map(|n| stream(folder, n)).collect();
        for (number, source, place) in &devices {
            let Some(device) = source.devices().get(*place) else { continue };
            let live = lanes.iter().flatten().filter(|q| q.device == *number && q.is_live());
            let mut available: Vec<Quantity> = live.map(|q| q.quantity).collect();
            available.sort_by_key(|q| Quantity::ALL.iter().position(|a| a == q));
            let names: Vec<&str> = available.iter().map(|q| q.name()).collect();
            let (id, body) =
                schema::device_body(*number, source.name(), source.driver(), device, &names.join(" "));
            streams[0].record(id, self.begin).extend_from_slice(&body);
            self.report.devices.push(reported(*number, source.name(), device));
            if names.is_empty() && source.name() != HOST {
                let name = if device.name.is_empty() { &device.pci } else { &device.name };
                self.notes.push(format!("no telemetry of {name}: it supports none of the queries"));
            }
        }
        for (time, (id, body)) in samples {
            streams[0].record(id, time).extend_from_slice(&body);
        }
        self.sources = sources.to_vec();
        self.note_queries(lanes.iter().flatten().map(|q| (q.device, q.report(1))).collect());
        self.report.sampler.sweeps = 1;
        self.report.sampler.longest_sweep_ns = lanes[0].iter().map(Query::last_ns).sum();
        self.report.sampler.cpu_ns = cpu_time().saturating_sub(cpu);
        for ((queries, load), stream) in lanes.into_iter().zip(LOADS).zip(streams) {
            self.waiting.push(Lane::new(
                Arc::clone(&self.clock),
                self.report.period_ns,
                load,
                queries,
                stream,
            ));
        }
    }

    /// Samples that are taken from now on go there, too.
    pub(crate) fn feed(&mut self, feed: &Arc<Feed>) {
        self.waiting.iter_mut().for_each(|lane| lane.feed(feed));
    }

    /// Returns what is known so far, for the manifest.
    pub fn report(&self) -> manifest::Telemetry {
        self.report.clone()
    }

    /// Begins to sample, now that the program runs as these processes.
    pub fn start(&mut self, programs: impl IntoIterator<Item = u32>) {
        // The lanes own the sources from here on: the last of them closes a driver.
        self.started = self.sources.drain(..).map(|source| Arc::downgrade(&source)).collect();
        programs.into_iter().for_each(|program| self.follow(program));
        for mut lane in self.waiting.drain(..).filter(|l| !l.is_empty()) {
            let (sender, receiver) = mpsc::channel();
            let stop = Arc::clone(&self.stop);
            let work = move || {
                lane.run(&stop);
                let report = lane.report();
                // The last lane closes the source, before the process may end.
                drop(lane);
                let _ = sender.send(report);
            };
            match thread::Builder::new().name("hetrace-sample".to_owned()).spawn(work) {
                Ok(_) => self.running.push(receiver),
                Err(error) => self.notes.push(format!("no telemetry: cannot start a thread ({error})")),
            }
        }
    }

    /// One more process belongs to the program.
    pub fn follow(&self, program: u32) {
        self.started.iter().filter_map(Weak::upgrade).for_each(|source| source.follow(program));
    }

    /// Samples nothing for a while, or again.
    pub fn set_open(&self, open: bool) {
        self.stop.set_paused(!open);
    }

    /// Takes the last samples, now that the program has ended. Gives what the
    /// manifest shall say, and what the user should know.
    pub fn finish(self) -> Finished {
        self.finish_within(LAST_SWEEP)
    }

    fn finish_within(mut self, patience: Duration) -> Finished {
        self.stop.set();
        let until = Instant::now() + patience;
        let running = std::mem::take(&mut self.running);
        self.unknown += running.len();
        for (number, receiver) in running.into_iter().enumerate() {
            match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(lane) => self.note_lane(lane, number == 0),
                Err(RecvTimeoutError::Timeout) => self
                    .notes
                    .push("telemetry is incomplete: a query of the driver did not return".to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.notes.push("telemetry is incomplete: a sampling thread ended early".to_owned());
                }
            }
        }
        Finished {
            report: std::mem::take(&mut self.report),
            notes: std::mem::take(&mut self.notes),
            unwritten: self.unwritten,
            accounts: (self.unknown == 0).then(|| std::mem::take(&mut self.accounts)),
        }
    }

    fn note_lane(&mut self, lane: LaneReport, quick: bool) {
        let sampler = &mut self.report.sampler;
        sampler.cpu_ns += lane.cpu_ns;
        if quick {
            // Slow queries have their own rhythm, and may be longer than a period.
            sampler.sweeps += lane.sweeps;
            sampler.missed_periods += lane.missed;
            sampler.longest_sweep_ns = sampler.longest_sweep_ns.max(lane.longest_ns);
        }
        let (bytes, records, unwritten) = lane.written;
        self.report.bytes += bytes;
        self.report.records += records;
        self.unwritten += unwritten;
        self.unknown -= 1;
        self.accounts.extend(lane.account);
        self.note_queries(lane.queries);
    }

    /// Replaces what is known of these queries.
    fn note_queries(&mut self, queries: Vec<(u32, QuantityReport)>) {
        let mut by_device: HashMap<u32, Vec<QuantityReport>> = HashMap::new();
        for (device, query) in queries {
            by_device.entry(device).or_default().push(query);
        }
        for device in &mut self.report.devices {
            let fresh = by_device.remove(&device.device).unwrap_or_default();
            device.quantities.retain(|q| fresh.iter().all(|f| f.quantity != q.quantity));
            device.quantities.extend(fresh);
            device.quantities.sort_by_key(|q| Quantity::ALL.iter().position(|a| a.name() == q.quantity));
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        // Whoever gave up on the run does not want samples any more.
        self.stop.set();
    }
}

/// What telemetry leaves when the run is over.
#[derive(Debug, Default)]
pub struct Finished {
    /// For the manifest.
    pub report: manifest::Telemetry,
    /// For the user.
    pub notes: Vec<String>,
    /// Bytes that could not be written.
    pub unwritten: u64,
    /// What is in the stream files; none if a sampling thread did not return, which may still write.
    pub accounts: Option<Vec<StreamAccount>>,
}

impl Finished {
    /// Completes the manifest of a run.
    pub fn complete(self, manifest: &mut Manifest) {
        manifest.losses.unwritten_bytes += self.unwritten;
        manifest.notes.extend(self.notes);
        match (&mut manifest.written.account, self.accounts) {
            (Some(account), Some(accounts)) => account.streams.extend(accounts),
            (account, _) => *account = None,
        }
        manifest.telemetry = Some(self.report);
    }
}

/// Returns a device in the manifest, without its quantities.
fn reported(number: u32, source: &str, device: &Device) -> TelemetryDevice {
    TelemetryDevice {
        device: number,
        source: source.to_owned(),
        index: device.index,
        uuid: device.uuid.clone(),
        name: device.name.clone(),
        pci: device.pci.clone(),
        power: device.power.clone(),
        quantities: Vec::new(),
    }
}

/// Returns the stream of a lane. Its first packet is the main thread's.
fn stream(folder: &TraceFolder, number: u64) -> Stream {
    let mut stream =
        Stream::new(folder, format!("telemetry-{number}"), hetrace_format::telemetry::STREAM, number)
            .in_pages();
    let pid = std::process::id();
    let mut name = [0; 16];
    name[..lane::NAME.len()].copy_from_slice(lane::NAME);
    stream.identify(Identity { pid, tid: pid, name });
    stream
}
