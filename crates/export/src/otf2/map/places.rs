//! The machine, its devices, and the groups of locations on them.

use std::collections::HashMap;

use hetrace_ctf::class::EnvValue;
use hetrace_trace::spans::Command;
use hetrace_trace::telemetry::Monitored;
use hetrace_trace::titles::device_title;
use hetrace_trace::trace::{Device, Job, Process, Trace};

use super::super::definitions::{Definitions, Domain, GroupKind};

/// The machine's name, as in the trace; empty if it has none.
pub(in crate::otf2) fn host(trace: &Trace) -> &str {
    match trace.ctf().class().env("hostname") {
        Some(EnvValue::Str(name)) => name,
        _ => "",
    }
}

/// Parts of the machine, and groups of locations.
#[derive(Debug)]
pub(in crate::otf2) struct Places<'t> {
    trace: &'t Trace,
    job: Job,
    host: u32,
    processes: HashMap<i64, u32>,
    /// Devices with a part of the machine each: processes may share one that has an identity.
    devices: Vec<(Option<&'t Device>, u32)>,
    /// By process and number of the device; 0 is an unknown one.
    accelerators: HashMap<(i64, u32), u32>,
}

impl<'t> Places<'t> {
    pub fn new(definitions: &mut Definitions, trace: &'t Trace) -> Self {
        let name = Some(host(trace)).filter(|name| !name.is_empty()).unwrap_or("unknown host");
        let machine = definitions.node(name, "machine", None, Domain::Machine);
        let host = definitions.node(name, "node", Some(machine), Domain::SharedMemory);
        let job = trace.job();
        Self {
            trace,
            job,
            host,
            processes: HashMap::new(),
            devices: Vec::new(),
            accelerators: HashMap::new(),
        }
    }

    /// The group of a process; `thread` is the name of one of its threads.
    pub fn process(&mut self, definitions: &mut Definitions, pid: i64, thread: &str) -> u32 {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let process = self.trace.manifest().processes.iter().find(|p| p.pid == pid);
        let program = process.map(Process::program);
        let name = program.filter(|p| !p.is_empty()).unwrap_or(thread);
        let name = format!("{}{}", self.rank(pid), format!("{name} (process {pid})").trim_start());
        let group = definitions.location_group(&name, GroupKind::Process, self.host, None);
        self.processes.insert(pid, group);
        group
    }

    /// What stands before names of a process: its rank in its job, if that is known.
    pub fn rank(&self, pid: i64) -> String {
        self.job.rank_of(pid).map_or_else(String::new, |rank| format!("rank {}: ", rank.rank))
    }

    /// The group of a process's queues on a device; `process` is that of the process.
    pub fn accelerator(&mut self, definitions: &mut Definitions, command: &Command<'_>, process: u32) -> u32 {
        let id = command.on_device.map_or(0, |d| d.id);
        if let Some(known) = self.accelerators.get(&(command.pid, id)) {
            return *known;
        }
        let title = device_title(self.trace, command.on_device);
        // The trace's own, which lives as long as it.
        let device = self.trace.names().device(id).filter(|_| command.on_device.is_some());
        let same = |known: &&Device| {
            device.is_some_and(|d| known.id == d.id || !d.uuid.is_empty() && known.uuid == d.uuid)
        };
        let node = self.devices.iter().find(|(known, _)| known.as_ref().is_some_and(same));
        let node = node.map(|(_, node)| *node).unwrap_or_else(|| {
            let node = definitions.node(&title, "device", Some(self.host), Domain::Accelerator);
            if let Some(device) = device {
                properties(definitions, node, device);
            }
            self.devices.push((device, node));
            node
        });
        let group = definitions.location_group(&title, GroupKind::Accelerator, node, Some(process));
        self.accelerators.insert((command.pid, id), group);
        group
    }

    /// The group of a device with telemetry.
    pub fn monitored(&mut self, definitions: &mut Definitions, device: &Monitored) -> u32 {
        let name = device.label();
        if device.is_host() {
            return definitions.location_group(&name, GroupKind::Accelerator, self.host, None);
        }
        let is = |known: &Option<&Device>| known.is_some_and(|known| device.is(known));
        let node = self.devices.iter().find(|(known, _)| is(known)).map(|(_, node)| *node);
        let node = node.unwrap_or_else(|| {
            let node = definitions.node(&name, "device", Some(self.host), Domain::Accelerator);
            for (what, text) in [("uuid", &device.uuid), ("pci", &device.pci)] {
                if !text.is_empty() {
                    definitions.node_property(node, what, text);
                }
            }
            node
        });
        definitions.location_group(&name, GroupKind::Accelerator, node, None)
    }

    /// The group of ranks that are not in this trace.
    pub fn absent(&mut self, definitions: &mut Definitions) -> u32 {
        definitions.location_group("not in this trace", GroupKind::Process, self.host, None)
    }
}

fn properties(definitions: &mut Definitions, node: u32, device: &Device) {
    if !device.uuid.is_empty() {
        definitions.node_property(node, "uuid", &device.uuid);
    }
    for (name, value) in [
        ("compute units", u64::from(device.compute_units)),
        ("clock, kHz", device.clock_khz.into()),
        ("memory, bytes", device.memory_bytes),
    ] {
        if value > 0 {
            definitions.node_property(node, name, &value.to_string());
        }
    }
}
