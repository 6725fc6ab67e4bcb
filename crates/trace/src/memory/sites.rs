//! Where memory is: devices, as calls name them and as people do.

use std::collections::HashMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_model::Model;

use super::step::{Holder, Owner};
use crate::hash::QuickMap;
use crate::owners::ApiIndex;
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
    known: QuickMap<(i64, Owner), usize>,
    /// Devices of contexts, by process, API and handle.
    contexts: HashMap<(i64, Option<ApiIndex>, u64), Box<[u64]>>,
}

impl<'t> Sites<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        Self { trace, all: Vec::new(), known: QuickMap::default(), contexts: HashMap::new() }
    }

    /// A context is made.
    pub fn context(&mut self, pid: i64, api: Option<ApiIndex>, context: u64, devices: &[u64]) {
        if self.contexts.len() < KEPT {
            self.contexts.insert((pid, api, context), devices.into());
            self.known.remove(&(pid, Owner { api, holder: Some(Holder::Context(context)) }));
        }
    }

    /// The host.
    pub fn host(&mut self) -> usize {
        self.number("host".to_owned(), String::new())
    }

    /// Where something is that belongs to this.
    pub fn of(&mut self, pid: i64, owner: Owner) -> usize {
        if let Some(site) = self.known.get(&(pid, owner)) {
            return *site;
        }
        let (label, uuid) = self.describe(pid, owner);
        let site = self.number(label, uuid);
        if self.known.len() < KEPT {
            self.known.insert((pid, owner), site);
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

    /// Whether what an API has defined may be named by a call.
    fn may_mean(&self, owner: Owner, defined_by: &str) -> bool {
        let apis = self.trace.functions().apis();
        let only = owner.api.and_then(|api| apis.get(api.0 as usize));
        // Older traces do not say which API has defined a device.
        defined_by.is_empty() || only.is_none_or(|api| api == defined_by)
    }

    fn describe(&self, pid: i64, owner: Owner) -> (String, String) {
        let mut devices = self.trace.names().devices();
        devices.retain(|d| d.pid == pid && self.may_mean(owner, &d.api));
        let mut all: Vec<(String, String)> = match owner.holder {
            Some(Holder::Device(device)) => vec![one(self.trace, &devices, device)],
            Some(Holder::Context(context)) => self.of_context(pid, owner, context, &devices),
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

    /// The devices of a context: those it was made for, or else those of its queues.
    fn of_context(&self, pid: i64, owner: Owner, context: u64, devices: &[&Device]) -> Vec<(String, String)> {
        if let Some(made_for) = self.contexts.get(&(pid, owner.api, context)) {
            return made_for.iter().map(|device| one(self.trace, devices, *device)).collect();
        }
        let names = self.trace.names();
        let mut queues = names.queues();
        queues.retain(|q| q.pid == pid && q.context == context && self.may_mean(owner, &q.api));
        queues.into_iter().filter_map(|q| names.device(q.device)).map(identity).collect()
    }

    /// When processes were heard of last, the earliest last.
    pub fn ends(&self) -> Vec<(u64, i64)> {
        let mut ends: HashMap<i64, u64> = HashMap::new();
        let ctf = self.trace.ctf();
        for stream in 0..ctf.stream_count() {
            // Its packets one by one; the last one's size is in its head.
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

/// A device of these, by what calls name it by: its number, or its handle.
fn one(trace: &Trace, devices: &[&Device], value: u64) -> (String, String) {
    let mut meant = devices.iter().filter(|d| value == called(trace, d));
    let first = meant.next();
    // Of two APIs' devices that are called alike it is not known which is meant.
    let several = first.is_some_and(|first| meant.any(|d| d.api != first.api));
    match first.filter(|_| !several) {
        Some(device) => identity(device),
        None if value < NUMBERS => (format!("device {value}"), String::new()),
        None => (format!("{value:#x}"), String::new()),
    }
}

/// What calls name a device by. Where that is its number, its handle is one of the recorder's, which may be the
/// number of another device.
fn called(trace: &Trace, device: &Device) -> u64 {
    let of_it = |model: &&Model| model.api == device.api || device.api.is_empty();
    let numbered = trace.models().iter().filter(of_it).any(|model| model.numbers_devices() == Some(true));
    // An older trace does not say whose a device is; what is a pointer is larger than any number.
    let by_number = numbered && (!device.api.is_empty() || device.handle < NUMBERS);
    if by_number { device.ordinal.into() } else { device.handle }
}

fn identity(device: &Device) -> (String, String) {
    (device_label(device), device.uuid.clone())
}
