//! A command as the program reports it to one that can be written: which call
//! caused it, when it ran in the host's time, on which queue, in which function.

use hetrace_format::command::{Command, Times};
use hetrace_ring::abi::{CommandRecord, QueueRecord, command_flag};

use super::convert;
use super::key::Key;
use super::links::Call;
use super::{Devices, Ready};
use crate::time::HostClock;
use crate::trigger::Ran;

/// Rings are drained one after the other, so a command may be seen before its
/// call, or before its queue was defined. So many times it is looked at again.
const ROUNDS: u8 = 2;
/// A collector converts the device's time to the host's, and is off by less
/// than this when it says that a command began before its call.
const CORRECTED: u64 = 5_000;

/// A command that waits to be resolved.
#[derive(Debug)]
pub struct Raw {
    record: CommandRecord,
    name: Vec<u8>,
    api: usize,
    /// When it was recorded.
    time: u64,
    /// How often it was not ready.
    rounds: u8,
}

/// Commands of a device that began before their call, as reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct Order {
    /// Those that were moved to the beginning of their call.
    pub corrected: u64,
    /// By how much at most, in nanoseconds.
    pub largest_ns: u64,
    /// Those that were left where they are: it is too much to be inaccuracy.
    pub impossible: u64,
}

impl Raw {
    /// Returns a command reported in the ring of that API at that time.
    pub fn new(record: CommandRecord, name: &[u8], api: usize, time: u64) -> Self {
        Raw { record, name: name.to_vec(), api, time, rounds: 0 }
    }

    /// Returns what its API names by this number.
    fn key(&self, value: u64) -> Key {
        Key { api: self.api, value }
    }

    /// Its device.
    fn device(&self) -> Key {
        self.key(self.record.device)
    }
}

/// Returns where a command with these times stands in the order: where it started, or was seen.
fn place(times: Option<[u64; 4]>, raw: &Raw, host: &HostClock) -> u64 {
    let seen = || if raw.record.observed == 0 { raw.time } else { host.to_ns(raw.record.observed) };
    times.map_or_else(seen, |[_, _, start, _]| start)
}

impl Devices {
    pub(super) fn command(&mut self, raw: Raw, host: &HostClock) {
        let command = &raw.record;
        let in_host_time = command.flags & command_flag::HOST_CLOCK != 0;
        *self.used.entry(raw.device()).or_insert(true) &= in_host_time;
        if in_host_time {
            // There is nothing to learn of a clock first.
            self.resolve_or_keep(raw, false, host);
            return;
        }
        let clock = self.clocks.entry(raw.device()).or_default();
        if command.times_error == 0 && command.queued.max(command.start) != 0 {
            // The command entered its queue during the call that enqueued it, or at
            // least started after that call began, and had ended when it was seen to be
            // complete. Who says neither when the call returned nor when it was seen
            // leaves it open whether its times are the device's to the last.
            let knows = command.queued != 0 || command.returned != 0;
            if command.cause != 0 && knows {
                let first = if command.queued == 0 { command.start } else { command.queued };
                clock.lower(first, host.to_ns(command.cause));
            }
            if command.returned != 0 && command.queued != 0 {
                clock.upper(command.queued, host.to_ns(command.returned));
            }
            if command.end != 0 && command.observed != 0 {
                clock.upper(command.end, host.to_ns(command.observed));
            }
        }
        self.raw.push(raw);
    }

    /// Resolves what can be resolved, or all.
    pub(super) fn convert(&mut self, all: bool, host: &HostClock) {
        for raw in std::mem::take(&mut self.raw) {
            self.resolve_or_keep(raw, all, host);
        }
        for (device, clock) in self.clocks.iter().filter(|(_, c)| c.is_known()) {
            let worst = self.worst.entry(*device).or_default();
            *worst = clock.error_ns().max(*worst);
        }
    }

    fn resolve_or_keep(&mut self, mut raw: Raw, force: bool, host: &HostClock) {
        match self.resolve(&raw, force || raw.rounds >= ROUNDS, host) {
            Some((time, ready)) => {
                self.ordering += 1;
                self.order.push(time, ready);
            }
            None => {
                raw.rounds += 1;
                self.raw.push(raw);
            }
        }
    }

    /// Queued, submitted, started and ended in the host's time.
    fn times(&self, raw: &Raw) -> Option<[u64; 4]> {
        let command = &raw.record;
        // A command that failed before it ran has no end, whatever it has else.
        if command.times_error != 0 || command.end == 0 {
            return None;
        }
        let clock = match command.flags & command_flag::HOST_CLOCK {
            0 => Some(self.clocks.get(&raw.device())?),
            _ => None,
        };
        let host = |time: u64| clock.map_or(time, |clock| clock.to_host(time));
        // A time that is not reported is 0: it counts as the next.
        let end = host(command.end);
        let start = if command.start == 0 { end } else { host(command.start) };
        let submitted = if command.submitted == 0 { start } else { host(command.submitted) };
        let queued = if command.queued == 0 { submitted } else { host(command.queued) };
        Some([queued, submitted, start, end])
    }

    /// Returns when a command will be in the order, as far as is known.
    pub(super) fn time_of(&self, raw: &Raw, host: &HostClock) -> u64 {
        place(self.times(raw), raw, host)
    }

    /// None if something is missing that may come, unless `force`.
    fn resolve(&mut self, raw: &Raw, force: bool, host: &HostClock) -> Option<(u64, Ready)> {
        let record = &raw.record;
        let call = match record.correlation {
            0 => (record.cause != 0).then(|| Call { tid: record.cause_tid, entry: host.to_ns(record.cause) }),
            id => self.links.get(raw.key(id)),
        };
        let joined = call.is_some() || record.correlation == 0;
        let mut times = self.times(raw);
        let seen = place(times, raw, host);
        // What had a handle when the call was made is meant.
        let made = call.map_or(times.map_or(seen, |[queued, ..]| queued), |call| call.entry);
        let queue = self.names.queue(raw.key(record.queue), record.device, made);
        let function = match record.function {
            0 => Some(0),
            id => self.names.function(raw.key(id), made),
        };
        let complete = joined && queue.is_some() && function.is_some();
        if !(complete || force) {
            return None;
        }
        self.without_call += u64::from(!joined);
        if record.flags & command_flag::HOST_CLOCK == 0 {
            self.doubt(raw);
        } else if let (Some(call), Some(times)) = (call, &mut times) {
            self.correct(raw.device(), call.entry, times);
        }
        let (shared, names) = (&*self.shared, &mut self.names);
        let queue = queue.unwrap_or_else(|| {
            let queue = QueueRecord { queue: record.queue, device: record.device, ..QueueRecord::default() };
            names.guess_queue(shared, raw.api, &queue, made)
        });
        let function = match function {
            Some(0) if raw.name.is_empty() => 0,
            Some(0) => names.function_named(shared, raw.api, &raw.name, made),
            Some(number) => number,
            None => names.guess_function(shared, raw.key(record.function), made),
        };
        let peer = if record.peer == 0 { 0 } else { names.device(shared, raw.key(record.peer), made) };
        let command = command(record, call, times, seen);
        self.note(raw, function, &command);
        let (time, id, body) = Command { queue, function, peer, ..command }.encode();
        Some((time, (id, body)))
    }

    /// Notes a command for triggers.
    fn note(&mut self, raw: &Raw, function: u32, command: &Command) {
        let Some(ran) = &mut self.ran else { return };
        let named = self.names.function_name(raw.key(raw.record.function), function);
        let name = if raw.name.is_empty() { named.unwrap_or_default() } else { &raw.name };
        ran.push(Ran {
            kind: command.kind,
            function: convert::owned(name),
            times: command.times.map(|times| (times.start, times.end)),
            cause: command.cause,
            bytes: command.bytes,
            pid: self.identity.pid,
            tid: command.cause_tid,
        });
    }

    /// Notes how far the times of a command may be off, which is more where the clock
    /// was not observed.
    fn doubt(&mut self, raw: &Raw) {
        let command = &raw.record;
        let Some(clock) = self.clocks.get(&raw.device()).filter(|c| c.is_known()) else { return };
        let times = [command.queued, command.start, command.end].into_iter().filter(|time| *time != 0);
        if let Some(error) = times.map(|time| clock.error_at(time)).max() {
            let worst = self.worst.entry(raw.device()).or_default();
            *worst = error.max(*worst);
        }
    }

    /// No command begins before the call that enqueues it.
    fn correct(&mut self, device: Key, entry: u64, times: &mut [u64; 4]) {
        let [queued, submitted, start, end] = times;
        let early = entry.saturating_sub(*start);
        if early == 0 {
            return;
        }
        let order = self.orders.entry(device).or_default();
        if early > CORRECTED {
            order.impossible += 1;
            return;
        }
        order.corrected += 1;
        order.largest_ns = order.largest_ns.max(early);
        *start = entry;
        *end = (*end).max(entry);
        // Times that were not reported are the start's, and follow it.
        *submitted = (*submitted).max(entry);
        *queued = (*queued).max(entry);
    }
}

/// Returns a command as its record has it; queue, function and peer are not filled in.
fn command(record: &CommandRecord, call: Option<Call>, times: Option<[u64; 4]>, seen: u64) -> Command {
    let (cause_tid, cause) = match call {
        Some(call) => (call.tid, Some(call.entry)),
        None => (record.cause_tid, None),
    };
    Command {
        kind: convert::kind(record.kind),
        queue: 0,
        cause_tid,
        cause,
        times: times.map(|[queued, submitted, start, end]| Times { queued, submitted, start, end }),
        seen,
        times_error: record.times_error,
        function: 0,
        bytes: record.bytes,
        from: convert::memory(record.from),
        to: convert::memory(record.to),
        peer: 0,
        status: record.status,
        shared: record.shared,
        geometry: convert::geometry(record),
        graph: record.graph,
        node: record.node,
        weight: record.weight,
    }
}
