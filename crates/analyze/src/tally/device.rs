//! Sums of commands on devices.

use std::collections::HashMap;

use super::host::average;
use super::rows::{DeviceRow, TrafficRow};
use crate::spans::{Command, NewQueue};

/// Kinds that move or set memory.
const TRAFFIC: [&str; 7] = ["read", "write", "copy", "fill", "map", "unmap", "migrate"];

/// What has sums of its own. Names are numbers in [`Devices::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: u32,
    name: u32,
    pid: i64,
    device: u64,
    queue: u64,
}

/// What has a row: kind, name, and if extended process, device and queue.
type RowKey = (u32, u32, Option<(i64, u64, u64)>);

/// Sums of commands.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    untimed: u64,
    timed: u64,
    total: u64,
    min: u64,
    max: u64,
    bytes: u64,
    /// Bytes of commands with times.
    timed_bytes: u64,
    errors: u64,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        if other.timed > 0 {
            self.min = if self.timed == 0 { other.min } else { self.min.min(other.min) };
            self.max = self.max.max(other.max);
        }
        let Sum { calls, untimed, timed, total, bytes, timed_bytes, errors, .. } = other;
        for (to, n) in [
            (&mut self.calls, calls),
            (&mut self.untimed, untimed),
            (&mut self.timed, timed),
            (&mut self.total, total),
            (&mut self.bytes, bytes),
            (&mut self.timed_bytes, timed_bytes),
            (&mut self.errors, errors),
        ] {
            *to = to.saturating_add(*n);
        }
    }
}

/// Sums of all commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    by_key: HashMap<Key, Sum>,
    /// Names of devices by process and handle.
    devices: HashMap<(i64, u64), String>,
}

impl Devices {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.by_name.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        number
    }

    pub fn queue(&mut self, queue: &NewQueue<'_>) {
        if !queue.name.is_empty() {
            self.devices.insert((queue.pid, queue.device), queue.name.to_owned());
        }
    }

    pub fn command(&mut self, command: &Command<'_>) {
        let key = Key {
            kind: self.name(command.kind),
            name: self.name(command.title()),
            pid: command.pid,
            device: command.device,
            queue: command.queue,
        };
        let mut one = Sum { calls: 1, ..Sum::default() };
        if command.failed() {
            one.errors = 1;
        } else {
            one.bytes = command.bytes;
            match command.times {
                Some(times) => {
                    let time = times.duration();
                    (one.timed, one.total, one.min, one.max) = (1, time, time, time);
                    one.timed_bytes = command.bytes;
                }
                None => one.untimed = 1,
            }
        }
        self.by_key.entry(key).or_default().add(&one);
    }

    /// Adds what another part of the trace has.
    pub fn merge(&mut self, other: &Devices) {
        for (key, sum) in &other.by_key {
            let (kind, name) = (self.name(other.text(key.kind)), self.name(other.text(key.name)));
            self.by_key.entry(Key { kind, name, ..*key }).or_default().add(sum);
        }
        let names = other.devices.iter().map(|(key, name)| (*key, name.clone()));
        self.devices.extend(names);
    }

    fn text(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// The name of a device, or its handle.
    fn device_name(&self, pid: i64, device: u64) -> String {
        let name = self.devices.get(&(pid, device));
        name.cloned().unwrap_or_else(|| format!("{device:#x}"))
    }

    /// Devices and queues that commands were on.
    pub fn counts(&self) -> (u64, u64) {
        let distinct = |mut all: Vec<(i64, u64)>| {
            all.sort_unstable();
            all.dedup();
            all.len() as u64
        };
        let devices = self.by_key.keys().map(|k| (k.pid, k.device)).collect();
        let queues = self.by_key.keys().map(|k| (k.pid, k.queue)).collect();
        (distinct(devices), distinct(queues))
    }

    pub fn rows(&self, extended: bool) -> Vec<DeviceRow> {
        let mut sums: HashMap<RowKey, Sum> = HashMap::new();
        for (key, sum) in &self.by_key {
            let place = extended.then_some((key.pid, key.device, key.queue));
            sums.entry((key.kind, key.name, place)).or_default().add(sum);
        }
        let row = |((kind, name, place), sum): (&RowKey, &Sum)| DeviceRow {
            name: self.text(*name).to_owned(),
            kind: self.text(*kind).to_owned(),
            device: place.map(|(pid, device, _)| self.device_name(pid, device)),
            queue: place.map(|(pid, _, queue)| format!("{pid}:{queue:#x}")),
            calls: sum.calls,
            untimed: sum.untimed,
            total_ns: sum.total,
            self_ns: sum.total,
            avg_ns: average(sum.total, sum.timed),
            min_ns: sum.min,
            max_ns: sum.max,
            bytes: sum.bytes,
            errors: sum.errors,
        };
        let mut rows: Vec<DeviceRow> = sums.iter().map(row).collect();
        rows.sort_by(|a, b| {
            let rest = |r: &DeviceRow| (r.name.clone(), r.kind.clone(), r.device.clone(), r.queue.clone());
            b.total_ns.cmp(&a.total_ns).then_with(|| rest(a).cmp(&rest(b)))
        });
        rows
    }

    pub fn traffic(&self) -> Vec<TrafficRow> {
        let mut sums: HashMap<u32, Sum> = HashMap::new();
        for (key, sum) in &self.by_key {
            let kind = self.text(key.kind);
            if TRAFFIC.contains(&kind) || (sum.bytes > 0 && kind != "kernel") {
                sums.entry(key.kind).or_default().add(sum);
            }
        }
        let mut rows: Vec<TrafficRow> = sums
            .iter()
            .map(|(kind, sum)| TrafficRow {
                name: self.text(*kind).to_owned(),
                calls: sum.calls,
                bytes: sum.bytes,
                total_ns: sum.total,
                self_ns: sum.total,
                avg_ns: average(sum.total, sum.timed),
                min_ns: sum.min,
                max_ns: sum.max,
                bytes_per_second: (sum.total > 0).then(|| sum.timed_bytes as f64 * 1e9 / sum.total as f64),
            })
            .collect();
        rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}
