//! Where memory is: devices, as calls name them and as people do.

use std::collections::HashMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;

use super::ledger::Holder;
use crate::hash::QuickMap;
use crate::titles::device_label;
use crate::trace::{Device, Trace};

/// Contexts that are remembered.
const KEPT: usize = 1 << 16;
/// Numbers of devices are smaller, handles are not.
const NUMBERS: u64 = 1 << 12;

/// The places of a trace, numbered as they are met.
#[derive(Debug)]
pub(super) struct Sites<'t> {
    trace: &'t Trace,
    /// Name and identity.
    all: Vec<(String, String)>,
    /// By process and what a call named.
    known: QuickMap<(i64, Option<Holder>), usize>,
    /// Devices of contexts, by process and handle.
    contexts: HashMap<(i64, u64), Box<[u64]>>,
}

impl<'t> Sites<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, all: Vec::new(), known: QuickMap::default(), contexts: HashMap::new() }
    }

    /// A context is made.
    pub fn context(&mut self, pid: i64, context: u64, devices: &[u64]) {
        if self.contexts.len() < KEPT {
            self.contexts.insert((pid, context), devices.into());
            self.known.remove(&(pid, Some(Holder::Context(context))));
        }
    }

    /// The host.
    pub fn host(&mut self) -> usize {
        self.number("host".to_owned(), String::new())
    }

    /// Where something is that belongs to this.
    pub fn of(&mut self, pid: i64, holder: Option<Holder>) -> usize {
        if let Some(site) = self.known.get(&(pid, holder)) {
            return *site;
        }
        let (label, uuid) = self.describe(pid, holder);
        let site = self.number(label, uuid);
        if self.known.len() < KEPT {
            self.known.insert((pid, holder), site);
        }
        site
    }

    /// Name and identity.
    pub fn name(&self, site: usize) -> (String, String) {
        self.all.get(site).cloned().unwrap_or_default()
    }

    fn number(&mut self, label: String, uuid: String) -> usize {
        let known = self.all.iter().position(|one| one.0 == label && one.1 == uuid);
        known.unwrap_or_else(|| {
            self.all.push((label, uuid));
            self.all.len() - 1
        })
    }

    fn describe(&self, pid: i64, holder: Option<Holder>) -> (String, String) {
        let names = self.trace.names();
        let devices: Vec<&Device> = names.devices().into_iter().filter(|d| d.pid == pid).collect();
        let find = |value: u64| {
            let handle = devices.iter().find(|d| d.handle == value);
            // Of two APIs' devices with one handle it is not known which is meant.
            if handle.is_some_and(|h| devices.iter().any(|d| d.handle == value && d.api != h.api)) {
                return None;
            }
            let number = || devices.iter().find(|d| value < NUMBERS && u64::from(d.ordinal) == value);
            handle.or_else(number).copied()
        };
        let one = |value: u64| match find(value) {
            Some(device) => identity(device),
            None if value < NUMBERS => (format!("device {value}"), String::new()),
            None => (format!("{value:#x}"), String::new()),
        };
        let mut all: Vec<(String, String)> = match holder {
            Some(Holder::Device(device)) => vec![one(device)],
            Some(Holder::Context(context)) => match self.contexts.get(&(pid, context)) {
                Some(devices) => devices.iter().map(|device| one(*device)).collect(),
                None => {
                    let queues = names.queues().into_iter().filter(|q| q.pid == pid && q.context == context);
                    queues.filter_map(|q| names.device(q.device)).map(identity).collect()
                }
            },
            None => Vec::new(),
        };
        all.sort();
        all.dedup();
        if all.is_empty() {
            let mut seen: Vec<_> = devices.iter().map(|d| identity(d)).collect();
            seen.sort();
            seen.dedup();
            // There is no other.
            all = if seen.len() == 1 { seen } else { vec![("not known".to_owned(), String::new())] };
        }
        let (labels, uuids): (Vec<String>, Vec<String>) = all.into_iter().unzip();
        (labels.join(" + "), uuids.join(" + "))
    }

    /// When processes were heard of last, the earliest last.
    pub fn ends(&self) -> Vec<(u64, i64)> {
        let mut ends: HashMap<i64, u64> = HashMap::new();
        let ctf = self.trace.ctf();
        for stream in 0..ctf.stream_count() {
            // Its packets one by one; of the last one the head tells.
            let Some(mut last) = ctf.parts(stream, usize::MAX).pop() else { continue };
            let mut found = None;
            while let Some(event) = last.next_event() {
                let Ok(event) = event else { continue };
                let pid = event.get_in(Scope::PacketContext, "vpid").and_then(Scalar::as_i64);
                let Some(pid) = pid else { break };
                let frequency = event.clock().map_or(1_000_000_000, |c| c.frequency.max(1));
                let ticks = event.packet().timestamp_end.max(event.timestamp()).unwrap_or(u64::MAX);
                let ns = u128::from(ticks) * 1_000_000_000 / u128::from(frequency);
                found = Some((pid, u64::try_from(ns).unwrap_or(u64::MAX)));
            }
            if let Some((pid, time)) = found {
                let end = ends.entry(pid).or_default();
                *end = (*end).max(time);
            }
        }
        let mut ends: Vec<(u64, i64)> = ends.into_iter().map(|(pid, time)| (time, pid)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends
    }
}

fn identity(device: &Device) -> (String, String) {
    (device_label(device), device.uuid.clone())
}
