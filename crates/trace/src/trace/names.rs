//! What devices, queues and functions are, by the numbers that commands give.
//!
//! Definitions stand in files of their own, which are small. They are read when
//! the trace is opened, so that one walk over the rest is enough whatever comes
//! first in it.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_format::command::{CommandKind, MemoryKind};
use hetrace_format::define;
use hetrace_model::Model;

use super::class::{Class, Classes, Definition};
use super::numbered::Numbered;
use crate::hash::QuickMap;
use crate::stacks::Stacks;

/// A device. What the API did not report is 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number in the trace.
    pub id: u32,
    /// The process that reported it.
    pub pid: i64,
    /// Its handle, or what else the API knows it by.
    pub handle: u64,
    /// The API's number of it.
    pub ordinal: u32,
    /// The API that reported it; empty in older traces.
    pub api: String,
    /// Its name.
    pub name: String,
    /// The same in every process and API that sees the device.
    pub uuid: String,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock, kHz.
    pub clock_khz: u32,
    /// Highest memory clock, kHz.
    pub memory_khz: u32,
    /// Width of the memory's bus, bits.
    pub bus_bits: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// What else was reported, as it came.
    pub properties: Vec<(String, u64)>,
}

/// A queue. One made anew at the handle of another is another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Its number in the trace.
    pub id: u32,
    /// Its process.
    pub pid: i64,
    /// Its handle.
    pub handle: u64,
    /// Handle of its context.
    pub context: u64,
    /// Number of its device.
    pub device: u32,
    /// The API that reported it.
    pub api: String,
    /// Properties as the program asked for them.
    pub properties: u64,
    /// Its priority, as the API counts; 0 is ordinary.
    pub priority: i32,
    /// The API's own small number of it; 0 if there is none.
    pub number: u32,
    /// Whether it is a default queue, by whatever value its API has for it.
    pub default: bool,
}

/// A function that devices run. What the API did not report is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its number in the trace.
    pub id: u32,
    /// Its process.
    pub pid: i64,
    /// Its name as the API reports it, mangled or not.
    pub name: String,
    /// Registers of each work-item.
    pub registers: u32,
    /// Bytes of local memory of a work-group that its code asks for.
    pub shared: u32,
    /// Bytes of private memory of a work-item.
    pub local: u32,
    /// Bytes of constant memory.
    pub constant: u32,
    /// Most work-items of a work-group.
    pub max_threads: u32,
}

impl Device {
    fn new(definition: define::Device, pid: i64) -> Self {
        let define::Device {
            device,
            handle,
            ordinal,
            name,
            uuid,
            compute_units,
            clock_khz,
            memory_khz,
            bus_bits,
            memory_bytes,
            api,
        } = definition;
        Self {
            id: device,
            pid,
            handle: handle.0,
            ordinal,
            api,
            name,
            uuid,
            compute_units,
            clock_khz,
            memory_khz,
            bus_bits,
            memory_bytes,
            properties: Vec::new(),
        }
    }
}

impl Queue {
    fn new(definition: define::Queue, pid: i64) -> Self {
        let define::Queue { queue, handle, context, device, api, properties, priority, number } = definition;
        let (handle, context, properties) = (handle.0, context.0, properties.0);
        Self { id: queue, pid, handle, context, device, api, properties, priority, number, default: false }
    }
}

impl Kernel {
    fn new(definition: define::Function, pid: i64) -> Self {
        let define::Function { function, name, registers, shared, local, constant, max_threads } = definition;
        Self { id: function, pid, name, registers, shared, local, constant, max_threads }
    }
}

/// All definitions of a trace.
#[derive(Clone, Debug, Default)]
pub struct Names {
    devices: Numbered<Device>,
    queues: Numbered<Queue>,
    kernels: Numbered<Kernel>,
    launches: QuickMap<u32, Launches>,
    stacks: Stacks,
}

/// Launches of a function, where only some are timed; of one without a name, commands of one kind that run none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// All of them.
    pub launches: u64,
    /// Those that were timed.
    pub timed: u64,
    /// Bytes that all of them moved or set; 0 for kernels, and where that was not counted.
    pub bytes: u64,
    /// Of these numbers, those of nodes of graphs of whose launches the nodes of some are timed, and stand for the others.
    pub nodes: u64,
    /// Those that were timed.
    pub nodes_timed: u64,
    /// Their bytes.
    pub nodes_bytes: u64,
    /// Of `launches`, nodes of graphs that were timed as a whole, or not at all: no time of any command is theirs.
    pub of_graphs: u64,
    /// Their bytes.
    pub of_graphs_bytes: u64,
    /// Nanoseconds that the time of a node may be off, with all others in the same way.
    pub nodes_off: u32,
    /// What the commands do; [`CommandKind::Other`] in older traces.
    pub kind: CommandKind,
    /// Where their bytes come from.
    pub from: MemoryKind,
    /// Where these go to.
    pub to: MemoryKind,
}

impl Launches {
    /// Those that were only counted.
    pub fn counted(&self) -> u64 {
        self.launches.saturating_sub(self.timed)
    }

    /// Those for which timed ones stand, nodes of graphs or all others, as if there were no more.
    pub fn part(&self, nodes: bool) -> Launches {
        let (launches, timed, bytes) = match nodes {
            true => (self.nodes, self.nodes_timed, self.nodes_bytes),
            false => (
                self.launches.saturating_sub(self.nodes).saturating_sub(self.of_graphs),
                self.timed.saturating_sub(self.nodes_timed),
                self.bytes.saturating_sub(self.nodes_bytes).saturating_sub(self.of_graphs_bytes),
            ),
        };
        let off = if nodes { self.nodes_off } else { 0 };
        Launches { launches, timed, bytes, nodes_off: off, ..Launches::default() }
    }
}

impl From<define::Launches> for Launches {
    fn from(defined: define::Launches) -> Self {
        let define::Launches { function: _, launches, timed, bytes, nodes, nodes_timed, nodes_bytes, .. } =
            defined;
        let define::Launches { of_graphs, of_graphs_bytes, nodes_off, kind, from, to, .. } = defined;
        Self {
            launches,
            timed,
            bytes,
            nodes,
            nodes_timed,
            nodes_bytes,
            of_graphs,
            of_graphs_bytes,
            nodes_off,
            kind,
            from,
            to,
        }
    }
}

impl Names {
    /// Reads the streams that begin with a definition.
    pub(super) fn read(trace: &hetrace_ctf::read::Trace, classes: &Classes, models: &[Model]) -> Self {
        let mut names = Self::default();
        names.add(trace, classes, models);
        names
    }

    /// The same of streams that go on.
    pub(super) fn add(&mut self, trace: &hetrace_ctf::read::Trace, classes: &Classes, models: &[Model]) {
        let streams = &trace.class().streams;
        for mut stream in trace.streams() {
            // Damage is reported by the walk, which comes here again.
            while let Some(event) = stream.next_event() {
                let Ok(event) = event else { continue };
                let class = event.stream_class();
                let position = streams.iter().position(|s| std::ptr::eq(s, class));
                let known = classes.of_stream(position.unwrap_or(usize::MAX)).get(event.class_index());
                let Some(Class::Definition(what)) = known else { break };
                self.define(*what, &event);
            }
        }
        self.stacks.finish();
        for queue in self.queues.all_mut() {
            let model = models.iter().find(|m| m.api == queue.api);
            queue.default = queue.handle == 0 || model.is_some_and(|m| m.is_default_queue(queue.handle));
        }
    }

    fn define(&mut self, what: Definition, event: &Event<'_, '_>) {
        let get = |name: &str| event.get(name);
        let context = |name| event.get_in(hetrace_ctf::class::Scope::PacketContext, name);
        let pid = context("vpid").and_then(Scalar::as_i64).unwrap_or(0);
        match what {
            Definition::Queue => {
                let queue = Queue::new(define::Queue::decode(get), pid);
                let place = self.queues.entry(queue.id);
                *place = queue;
            }
            Definition::Device => {
                let mut fresh = Device::new(define::Device::decode(get), pid);
                // Defined again with more, it keeps its properties.
                let device = self.devices.entry(fresh.id);
                fresh.properties = std::mem::take(&mut device.properties);
                *device = fresh;
            }
            Definition::Property => {
                let define::Property { device, name, value } = define::Property::decode(get);
                let device = self.devices.entry(device);
                match device.properties.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = value,
                    None => device.properties.push((name, value)),
                }
            }
            // Written again and again: the last one holds.
            Definition::Launches => {
                let defined = define::Launches::decode(get);
                self.launches.insert(defined.function, defined.into());
            }
            Definition::PyFrame => self.stacks.define(define::PyFrame::decode(get)),
            Definition::Module => self.stacks.define_module(&define::Module::decode(get)),
            Definition::Frame => self.stacks.define_frame(define::Frame::decode(get)),
            Definition::Symbol => self.stacks.define_symbol(define::Symbol::decode(get)),
            Definition::Code => {
                let time = event.timestamp().unwrap_or(0);
                self.stacks.define_code(pid, time, &define::Code::decode(get));
            }
            Definition::Function => {
                let kernel = Kernel::new(define::Function::decode(get), pid);
                let place = self.kernels.entry(kernel.id);
                *place = kernel;
            }
        }
    }

    /// The device of a number.
    #[inline]
    pub fn device(&self, id: u32) -> Option<&Device> {
        self.devices.get(id)
    }

    /// The queue of a number.
    #[inline]
    pub fn queue(&self, id: u32) -> Option<&Queue> {
        self.queues.get(id)
    }

    /// Forgets how often functions were launched: of a part of a trace that is not known.
    pub(super) fn forget_launches(&mut self) {
        self.launches.clear();
    }

    /// Where only some launches of a function were timed: how many there were.
    pub fn launches(&self, function: u32) -> Option<Launches> {
        self.launches.get(&function).copied()
    }

    /// The same of all functions, in no order.
    pub fn all_launches(&self) -> impl Iterator<Item = (u32, Launches)> {
        self.launches.iter().map(|(function, launches)| (*function, *launches))
    }

    /// The stacks of calls.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The function of a number.
    #[inline]
    pub fn kernel(&self, id: u32) -> Option<&Kernel> {
        self.kernels.get(id)
    }

    /// All devices, by number.
    pub fn devices(&self) -> Vec<&Device> {
        self.devices.all()
    }

    /// All queues, by number.
    pub fn queues(&self) -> Vec<&Queue> {
        self.queues.all()
    }

    /// All functions, by number.
    pub fn kernels(&self) -> Vec<&Kernel> {
        self.kernels.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_others_are_parts_of_the_whole() {
        let all = Launches {
            launches: 100,
            timed: 9,
            bytes: 1000,
            nodes: 30,
            nodes_timed: 4,
            nodes_bytes: 300,
            of_graphs: 20,
            of_graphs_bytes: 200,
            nodes_off: 7,
            ..Launches::default()
        };
        let others = Launches { launches: 50, timed: 5, bytes: 500, ..Launches::default() };
        let nodes = Launches { launches: 30, timed: 4, bytes: 300, nodes_off: 7, ..Launches::default() };
        assert_eq!((all.part(false), all.part(true), all.counted()), (others, nodes, 91));
        // Of an older trace, and a damaged one.
        let old = Launches { launches: 5, timed: 2, bytes: 10, ..Launches::default() };
        assert_eq!((old.part(false), old.part(true)), (old, Launches::default()));
        let damaged = Launches { nodes: 9, of_graphs: u64::MAX, ..old };
        assert_eq!(damaged.part(false).launches, 0);
    }
}
