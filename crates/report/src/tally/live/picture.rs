//! What a trace has come to at one moment.

use serde::Serialize;

use hetrace_trace::follow::Follower;
use hetrace_trace::titles::device_label;
use hetrace_trace::trace::{Thread, Trace};

use super::super::aggregate::Aggregate;
use super::super::collect::{about, missing};
use super::super::labels::Labels;
use super::super::query::Query;
use super::super::rows::{Tally, UnknownRow};
use super::super::ways::Ways;
use super::{Key, Live};

/// The form of a picture in JSON.
pub const LIVE_SCHEMA: u32 = 1;

/// A trace at one moment. Rates and shares are those since the picture before, and there are none in the first.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// [`LIVE_SCHEMA`].
    pub schema: u32,
    /// Whether nothing more comes.
    pub ended: bool,
    /// From when recording began to this moment.
    pub elapsed_ns: u64,
    /// Since the picture before.
    pub interval_ns: Option<u64>,
    /// Events read.
    pub events: u64,
    /// Events each second.
    pub events_per_second: Option<f64>,
    /// Bytes read of the stream files.
    pub bytes: u64,
    /// Calls each second, by row of `tally.host`.
    pub calls_per_second: Vec<f64>,
    /// Commands each second, by row of `tally.device`.
    pub commands_per_second: Vec<f64>,
    /// Devices that commands ran on.
    pub busy: Vec<Busy>,
    /// Calls that have not ended, the oldest first.
    pub open_calls: Vec<Calling>,
    /// Streams that could not be read any further, and why.
    pub unreadable: Vec<String>,
    /// Parts of a series that were removed before they were read: what they had is not in the sums.
    pub unread_parts: u64,
    /// And those that were removed between two looks: the sums may lack what they had last.
    pub cut_parts: u64,
    /// Calls and commands, as in the tally of a finished trace.
    pub tally: Tally,
}

/// How busy a device was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Busy {
    /// What it is called.
    pub device: String,
    /// The process that uses it.
    pub pid: i64,
    /// Nanoseconds in which commands ran, of those that were reported since the picture before.
    pub busy_ns: u64,
    /// The same as a part of that time, at most 100.
    pub percent: Option<f64>,
}

/// A call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calling {
    /// Its process.
    pub pid: i64,
    /// Its thread.
    pub tid: i64,
    /// The thread's name.
    pub thread: String,
    /// The API.
    pub api: String,
    /// The function.
    pub name: String,
    /// For how long it has been open.
    pub for_ns: u64,
    /// How many calls of the thread are open, this one included.
    pub open: u32,
}

impl Live {
    /// Returns what there is now, at the time `now` of the trace's clock; that of the last event if there is none.
    /// `ended`: nothing more comes.
    pub fn picture(&mut self, follower: &Follower, now: Option<u64>, ended: bool) -> Picture {
        let (trace, steps) = (follower.trace(), follower.steps());
        let summary = steps.summary();
        let now = now.or(summary.last).unwrap_or(0);
        let interval = self.taken.replace(now).map(|before| now.saturating_sub(before)).filter(|ns| *ns > 0);
        let tally = self.tally(follower, ended);
        let host = tally.host.iter().map(|r| ((r.api.clone(), r.name.clone(), r.group.clone()), r.calls));
        let calls_per_second = rates(&mut self.calls, host, interval);
        let device = tally.device.iter().map(|r| {
            let name = r.symbol.clone().unwrap_or_default();
            ((r.kind.clone(), name, r.group.clone()), r.calls)
        });
        let commands_per_second = rates(&mut self.commands, device, interval);
        let events = summary.events;
        let new = events.saturating_sub(std::mem::replace(&mut self.events, events));
        let began = trace.manifest().start_ns.or(summary.first).unwrap_or(now);
        let unreadable = follower.broken().map(|(name, why)| format!("{name}: {why}"));
        Picture {
            schema: LIVE_SCHEMA,
            ended,
            elapsed_ns: now.saturating_sub(began),
            interval_ns: interval,
            events,
            events_per_second: interval.map(|ns| per_second(new, ns)),
            bytes: follower.read_bytes(),
            calls_per_second,
            commands_per_second,
            busy: self.busy(trace, interval),
            open_calls: open_calls(follower, now),
            unreadable: unreadable.collect(),
            unread_parts: follower.gone().whole,
            cut_parts: follower.gone().partly,
            tally,
        }
    }

    /// The tables, as far as they are sums.
    fn tally(&self, follower: &Follower, ended: bool) -> Tally {
        let (trace, steps) = (follower.trace(), follower.steps());
        let (mut summary, threads) = (steps.summary().clone(), steps.threads());
        if ended {
            // Before, the launcher has noted nothing.
            summary.add_manifest(trace);
        }
        let labels = Labels::new(trace, &self.by, false);
        let query = Query { by: self.by.clone(), ..Query::default() };
        let none = |_: u32| String::new();
        let ways = Ways::new(trace, &labels);
        let (device, traffic) = self.devices.cells(&labels, &Labels::threads(threads), &query, none, &ways);
        let unknown = self.unknown.iter().map(|((api, name), calls)| UnknownRow {
            api: api.clone(),
            name: name.clone(),
            calls: *calls,
        });
        // As in a trace that is opened: those with a model first, by name.
        let mut apis = self.host.apis(trace, threads);
        apis.sort_by_cached_key(|row| (!trace.models().iter().any(|m| m.api == row.api), row.api.clone()));
        let rest = Tally {
            traces: vec![about(trace.manifest(), &labels, &summary)],
            by: self.by.clone(),
            command: trace.manifest().command.clone(),
            exit: trace.manifest().exit,
            duration_ns: summary.duration(),
            tracing: self.host.tracing(trace, true),
            apis,
            errors: self.host.errors(trace),
            unfinished: self.host.unfinished_rows(trace, &[]),
            unknown: unknown.collect(),
            queues: self.devices.queues(),
            ..missing(trace.manifest(), &summary)
        };
        let sums = Aggregate {
            host: self.host.cells(trace, &labels, threads, none, &ways),
            device,
            traffic,
            devices: self.devices.identities(trace.names(), &labels.host),
            rest,
            ..Aggregate::default()
        };
        sums.tally()
    }

    fn busy(&mut self, trace: &Trace, interval: Option<u64>) -> Vec<Busy> {
        let row = |(id, busy_ns): (u32, u64)| {
            let device = trace.names().device(id);
            Busy {
                device: device.map_or_else(|| format!("device {id}"), device_label),
                pid: device.map_or(0, |device| device.pid),
                busy_ns,
                percent: interval.map(|ns| (busy_ns as f64 / ns as f64 * 100.0).min(100.0)),
            }
        };
        self.covered.take().into_iter().map(row).collect()
    }
}

fn open_calls(follower: &Follower, now: u64) -> Vec<Calling> {
    let (functions, steps) = (follower.trace().functions(), follower.steps());
    let none = Thread::default();
    let mut calls: Vec<Calling> = steps
        .open()
        .map(|call| {
            let thread = steps.threads().get(call.thread.index()).unwrap_or(&none);
            let function = functions.get(call.function);
            Calling {
                pid: thread.pid,
                tid: thread.tid,
                thread: thread.name.clone(),
                api: functions.apis().get(function.api).cloned().unwrap_or_default(),
                name: function.name.clone(),
                for_ns: now.saturating_sub(call.start),
                open: call.open,
            }
        })
        .collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.for_ns), call.pid, call.tid));
    calls
}

fn per_second(n: u64, ns: u64) -> f64 {
    n as f64 * 1e9 / ns as f64
}

/// Returns the rate of each row, if there is an interval, and keeps what there is now.
fn rates(
    known: &mut std::collections::HashMap<Key, u64>,
    rows: impl Iterator<Item = (Key, u64)>,
    interval: Option<u64>,
) -> Vec<f64> {
    let mut rates = Vec::new();
    for (key, now) in rows {
        let before = known.insert(key, now).unwrap_or(0);
        rates.extend(interval.map(|ns| per_second(now.saturating_sub(before), ns)));
    }
    rates
}
