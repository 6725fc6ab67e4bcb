//! A sampling thread: sweeps over its share of the queries, period after period.

use std::sync::Arc;

use hetrace_ctf::account::StreamAccount;

use super::clock::{Clock, Stop, cpu_time};
use super::schedule::Schedule;
use super::schema::{self, Body};
use crate::manifest::QuantityReport;
use crate::output::{Identity, Stream};
use crate::trigger::Feed;
use hetrace_format::telemetry::Sample;
use hetrace_vendor::telemetry::{Quantity, Reading, Refusal, Source};

/// Packets are written so often, so that a kill of the launcher loses little.
const FLUSH: u64 = 250_000_000;
/// A query that fails so often in a row is made no more.
const PATIENCE: u32 = 10;

/// One query of one device, and what has become of it.
#[derive(Debug)]
pub struct Query {
    source: Arc<dyn Source>,
    /// The device's place in its source.
    place: usize,
    /// The device's number in the trace.
    pub device: u32,
    /// What is asked for.
    pub quantity: Quantity,
    /// The reading before, and when it was made.
    before: Option<(Reading, u64)>,
    samples: u64,
    failed: u64,
    failed_in_a_row: u32,
    total_ns: u64,
    longest_ns: u64,
    last_ns: u64,
    unavailable: Option<String>,
    /// Where its samples go, too.
    feed: Option<Arc<Feed>>,
}

impl Query {
    /// Returns a query that was not made yet.
    pub fn new(source: Arc<dyn Source>, place: usize, device: u32, quantity: Quantity) -> Self {
        Query {
            source,
            place,
            device,
            quantity,
            before: None,
            samples: 0,
            failed: 0,
            failed_in_a_row: 0,
            total_ns: 0,
            longest_ns: 0,
            last_ns: 0,
            unavailable: None,
            feed: None,
        }
    }

    /// Returns whether it is to be made again.
    pub fn is_live(&self) -> bool {
        self.unavailable.is_none()
    }

    /// Returns how long it took the last time, in nanoseconds.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Makes the query. Gives the event that came of it, with its time: the middle
    /// of the query.
    pub fn make(&mut self, clock: &dyn Clock) -> Option<(u64, Body)> {
        let begin = clock.now();
        let answer = self.source.read(self.place, self.quantity);
        let took = clock.now().saturating_sub(begin);
        self.total_ns = self.total_ns.saturating_add(took);
        self.longest_ns = self.longest_ns.max(took);
        self.last_ns = took;
        let time = begin + took / 2;
        match answer {
            Ok(reading) => {
                self.samples += 1;
                self.failed_in_a_row = 0;
                let (quantity, sample) = self.sample(reading, time, took)?;
                let sample = Sample { time, ..sample };
                self.feed.iter().for_each(|feed| feed.put(self.device, quantity, sample));
                Some((time, sample.encode(quantity, self.device)))
            }
            Err(refusal) => {
                self.failed += 1;
                self.failed_in_a_row += u32::from(!matches!(refusal, Refusal::Absent(_)));
                if matches!(refusal, Refusal::Never(_)) || self.failed_in_a_row >= PATIENCE {
                    self.unavailable = Some(refusal.why().to_owned());
                }
                None
            }
        }
    }

    /// Returns a reading as a sample, if it says something new.
    fn sample(&mut self, reading: Reading, time: u64, took: u64) -> Option<(Quantity, Sample)> {
        let before = self.before.replace((reading, time));
        match (reading, before) {
            (Reading::Throttle { .. } | Reading::PerformanceState { .. }, Some((same, _)))
                if same == reading =>
            {
                None
            }
            (Reading::Nvlink { tx, rx }, before) => {
                let (Reading::Nvlink { tx: tx_before, rx: rx_before }, since) = before? else { return None };
                let interval = time.saturating_sub(since);
                let rate = |now: u64, then: u64| per_second(now.checked_sub(then)?, interval);
                // A counter that went back was reset: what went over the links meanwhile is not known.
                let rates = Reading::Nvlink { tx: rate(tx, tx_before)?, rx: rate(rx, rx_before)? };
                schema::sample(&rates, took, interval)
            }
            _ => schema::sample(&reading, took, 0),
        }
    }

    /// Returns what has become of it.
    pub fn report(&self, every: u64) -> QuantityReport {
        QuantityReport {
            quantity: self.quantity.name().to_owned(),
            samples: self.samples,
            failed: self.failed,
            every,
            query_mean_ns: self.total_ns / (self.samples + self.failed).max(1),
            query_max_ns: self.longest_ns,
            unavailable: self.unavailable.clone(),
        }
    }
}

/// Returns a rate from an amount and nanoseconds; nothing if no time has passed.
fn per_second(amount: u64, interval: u64) -> Option<u64> {
    let rate = (u128::from(amount) * 1_000_000_000).checked_div(u128::from(interval))?;
    u64::try_from(rate).ok()
}

/// Queries that are made by one thread, and the stream they go to.
#[derive(Debug)]
pub struct Lane {
    clock: Arc<dyn Clock>,
    period: u64,
    queries: Vec<Query>,
    schedule: Schedule,
    stream: Stream,
    sweeps: u64,
    longest_ns: u64,
    missed: u64,
    cpu_ns: u64,
}

/// What a lane leaves.
#[derive(Debug, Default)]
pub struct LaneReport {
    /// By device.
    pub queries: Vec<(u32, QuantityReport)>,
    /// Sweeps made.
    pub sweeps: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
    /// Sweeps left out.
    pub missed: u64,
    /// Processor time of the thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Bytes on disk, records, bytes that could not be written.
    pub written: (u64, u64, u64),
    /// What is in its stream file, if there is one.
    pub account: Option<StreamAccount>,
}

impl Lane {
    /// Returns a lane of queries that were made once. They may take `load_percent` of the
    /// thread's time.
    pub fn new(
        clock: Arc<dyn Clock>,
        period: u64,
        load_percent: u64,
        queries: Vec<Query>,
        stream: Stream,
    ) -> Self {
        let costs: Vec<u64> = queries.iter().map(Query::last_ns).collect();
        let mut schedule = Schedule::new(period, load_percent, &costs);
        for (place, query) in queries.iter().enumerate() {
            if !query.is_live() {
                schedule.drop_query(place);
            }
        }
        Lane { clock, period, queries, schedule, stream, sweeps: 0, longest_ns: 0, missed: 0, cpu_ns: 0 }
    }

    /// Samples go there, too.
    pub fn feed(&mut self, feed: &Arc<Feed>) {
        self.queries.iter_mut().for_each(|query| query.feed = Some(Arc::clone(feed)));
    }

    /// Returns whether it has nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Sweeps until the program has ended, and once more. The first of these sweeps
    /// is at once: the one before the program's start may have taken long.
    pub fn run(&mut self, stop: &Stop) {
        self.identify();
        let cpu = cpu_time();
        // When sweep 0 would have been.
        let begin = self.clock.now().saturating_sub(self.period);
        let (mut next, mut flushed) = (self.schedule.next_sweep(1), begin);
        loop {
            let until = next.map(|sweep| begin.saturating_add(sweep.saturating_mul(self.period)));
            if self.clock.wait(stop, until) {
                break;
            }
            let planned = next.unwrap_or(1);
            let paused = stop.pauses();
            let at = self.clock.now();
            // Late, after a long sweep: where the plan would be by now.
            let sweep = planned.max(at.saturating_sub(begin) / self.period.max(1));
            self.missed += if paused { 0 } else { sweep - planned };
            self.sweep(sweep, self.schedule.due(sweep));
            if at.saturating_sub(flushed) >= FLUSH {
                flushed = at;
                self.stream.flush();
            }
            next = self.schedule.next_sweep(sweep + 1);
        }
        // Energy has to cover the program's end.
        let needed = |place: usize| self.queries.get(place).is_some_and(|q| q.quantity.is_energy());
        let last = self.schedule.last(needed);
        self.sweep(u64::MAX, last);
        self.stream.flush();
        self.cpu_ns = cpu_time().saturating_sub(cpu);
    }

    fn identify(&mut self) {
        let mut name = [0; 16];
        name[..NAME.len()].copy_from_slice(NAME);
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        self.stream.identify(Identity { pid: std::process::id(), tid, name });
    }

    fn sweep(&mut self, sweep: u64, due: Vec<usize>) {
        let begin = self.clock.now();
        for place in due {
            let Some(query) = self.queries.get_mut(place) else { continue };
            if let Some((time, (id, body))) = query.make(&*self.clock) {
                let time = time.max(self.stream.last());
                self.stream.record(id, time).extend_from_slice(&body);
            }
            if query.is_live() {
                self.schedule.made(place, sweep, query.last_ns());
            } else {
                self.schedule.drop_query(place);
            }
        }
        self.sweeps += 1;
        self.longest_ns = self.longest_ns.max(self.clock.now().saturating_sub(begin));
    }

    /// Returns what became of the queries, and what they cost.
    pub fn report(&self) -> LaneReport {
        let every = |place| self.schedule.every(place);
        let queries = self.queries.iter().enumerate().map(|(i, q)| (q.device, q.report(every(i))));
        LaneReport {
            queries: queries.collect(),
            sweeps: self.sweeps,
            longest_ns: self.longest_ns,
            missed: self.missed,
            cpu_ns: self.cpu_ns,
            written: self.stream.counts(),
            account: self.stream.account(),
        }
    }
}

/// The name of sampling threads in the trace.
pub const NAME: &[u8] = b"hetrace-sample";
