//! Sums of commands on devices.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use super::by::{By, Group};
use super::cells::{Correction, DeviceCell, LAUNCHES, TrafficCell, merge};
use super::counted;
use super::estimate::Samples;
use super::labels::{Labels, Who};
use super::query::Query;
use super::rows::{LaunchRow, OccupancyRow};
use super::shapes::{Shape, Shapes};
use super::times::Times;
use super::ways::{Way, Ways};
use hetrace_trace::hash::Places;
use hetrace_trace::spans::{Command, CommandKind, MemoryKind};
use hetrace_trace::trace::{Names, OnlyCounted};
use hetrace_vendor::occupancy::{self, Needs};

/// What has sums of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: CommandKind,
    from: MemoryKind,
    to: MemoryKind,
    function: u32,
    queue: u32,
    pid: i64,
    /// 0 if rows are not grouped by thread.
    tid: i64,
    /// None if rows are not grouped by range.
    range: Option<u32>,
    way: Way,
    /// 0 if rows are not grouped by error.
    status: i64,
    /// A node of a graph: these are counted, and stand for each other, by themselves.
    in_graph: bool,
}

impl Hash for Key {
    /// In one word, as each command is looked up: products that do not wait for each other.
    #[inline]
    fn hash<H: Hasher>(&self, to: &mut H) {
        let [kind, from, memory] = [self.kind.number(), self.from.number(), self.to.number()].map(u64::from);
        let range = self.range.map_or(0, |range| u64::from(range) + 1);
        let queue = u64::from(self.function) << 32 | u64::from(self.queue);
        let who = (self.pid as u64) << 32 ^ self.tid as u64;
        let [layer, line] =
            [self.way.layer, self.way.line].map(|way| way.map_or(0, |way| u64::from(way) + 1));
        let what = (kind | u64::from(self.in_graph) << 7 | from << 8 | memory << 16 | range << 24)
            ^ (layer ^ line << 20).rotate_right(16);
        let mixed = queue.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ who.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(21)
            ^ (what ^ self.status as u64).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(42);
        to.write_u64(mixed);
    }
}

/// Sums of commands.
#[derive(Clone, Debug, Default)]
struct Sum {
    /// Launches, those included that only others stand for.
    calls: u64,
    /// Commands.
    seen: u64,
    untimed: u64,
    bytes: u64,
    /// Bytes of commands with times.
    timed_bytes: u64,
    /// What commands that failed were to move.
    failed_bytes: u64,
    errors: u64,
    in_graph: u64,
    /// Launches of graphs whose nodes these are, and the last one of them.
    graphs: u64,
    last_graph: (i64, u64),
    samples: Samples,
    times: Times,
    shapes: Shapes,
}

impl Sum {
    /// What it is of the launches of its function.
    fn part(&self) -> counted::Part {
        counted::Part {
            launches: self.calls,
            seen: self.seen,
            chosen: if self.graphs > 0 { self.graphs } else { self.seen },
            bytes: self.bytes.saturating_add(self.failed_bytes),
            samples: self.samples,
        }
    }

    fn add(&mut self, other: &Sum) {
        self.samples.add(&other.samples);
        self.times.merge(&other.times);
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.seen, other.seen),
            (&mut self.untimed, other.untimed),
            (&mut self.bytes, other.bytes),
            (&mut self.timed_bytes, other.timed_bytes),
            (&mut self.failed_bytes, other.failed_bytes),
            (&mut self.errors, other.errors),
            (&mut self.in_graph, other.in_graph),
            (&mut self.graphs, other.graphs),
        ] {
            *to = to.saturating_add(n);
        }
        self.shapes.merge(&other.shapes);
    }
}

/// Sums of all commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    by_key: Places<Key, Sum>,
    by_thread: bool,
    by_error: bool,
}

impl Devices {
    pub fn new(by: &[By]) -> Self {
        let (by_thread, by_error) = (by.contains(&By::Thread), by.contains(&By::Error));
        Self { by_thread, by_error, ..Self::default() }
    }

    /// Counts a command; `range` is the one in which it was enqueued, `way` how it came about.
    pub fn command(&mut self, command: &Command<'_>, range: Option<u32>, way: Way) {
        let place = self.place(command, range, way);
        self.add(place, command);
    }

    /// Returns the place of the sums that a command belongs to, and all that differ from it in nothing but their times.
    pub fn place(&mut self, command: &Command<'_>, range: Option<u32>, way: Way) -> usize {
        self.by_key.place(Key {
            kind: command.kind,
            from: command.from,
            to: command.to,
            function: command.function.map_or(0, |f| f.id),
            queue: command.on_queue.map_or(0, |q| q.id),
            pid: command.pid,
            tid: if self.by_thread { command.cause_tid } else { 0 },
            range,
            way,
            status: if self.by_error && command.failed() { command.status } else { 0 },
            in_graph: command.graph > 0,
        })
    }

    /// Counts a command whose sums are at a place.
    pub fn add(&mut self, place: usize, command: &Command<'_>) {
        let Some(sum) = self.by_key.at(place) else { return };
        let weight = command.weight;
        sum.calls = sum.calls.saturating_add(weight);
        sum.seen = sum.seen.saturating_add(1);
        if command.graph > 0 {
            sum.in_graph = sum.in_graph.saturating_add(weight);
            // Nodes of a launch are behind each other.
            let launch = (command.cause_tid, command.cause);
            if sum.last_graph != launch {
                sum.last_graph = launch;
                sum.graphs += 1;
            }
        }
        let bytes = command.bytes.saturating_mul(weight);
        if command.failed() {
            sum.errors = sum.errors.saturating_add(weight);
            sum.failed_bytes = sum.failed_bytes.saturating_add(bytes);
            return;
        }
        sum.bytes = sum.bytes.saturating_add(bytes);
        if !command.geometry.global.is_empty() {
            sum.shapes.add(&Shape::of(command), weight);
        }
        let Some(times) = command.times else {
            sum.untimed = sum.untimed.saturating_add(weight);
            return;
        };
        let time = times.duration();
        sum.samples.add_one(time, weight);
        match weight {
            1 => sum.times.add(time),
            _ => sum.times.add_many(time, weight, time.saturating_mul(weight)),
        }
        sum.timed_bytes = sum.timed_bytes.saturating_add(bytes);
    }

    /// Adds what another part of the trace has.
    pub fn merge(&mut self, other: &Devices) {
        for (key, sum) in other.by_key.iter() {
            self.by_key.entry(*key).add(sum);
        }
    }

    /// How many queues commands were on.
    pub fn queues(&self) -> u64 {
        let mut queues: Vec<_> = self.by_key.keys().map(|k| (k.pid, k.queue)).collect();
        queues.sort_unstable();
        queues.dedup();
        queues.len() as u64
    }

    /// Devices that commands were on: what makes each of them another one.
    pub fn identities(&self, names: &Names, host: &str) -> Vec<String> {
        let identity = |k: &Key| match names.queue(k.queue).and_then(|q| names.device(q.device)) {
            // One that several processes use.
            Some(device) if !device.uuid.is_empty() => device.uuid.clone(),
            // Devices of two APIs may have one handle.
            Some(device) => format!("{host}:{}:{}:{:#x}", k.pid, device.api, device.handle),
            None => format!("{host}:{}:0", k.pid),
        };
        let mut all: Vec<String> = self.by_key.keys().map(identity).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Numbers of the devices that commands were on.
    pub fn used(&self, names: &Names) -> Vec<u32> {
        let devices = self.by_key.keys().filter_map(|k| names.queue(k.queue)).map(|q| q.device);
        let mut devices: Vec<u32> = devices.collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// What rows are made of: of commands, and of what moved or set memory.
    pub fn cells(
        &self,
        labels: &Labels<'_>,
        threads: &HashMap<(i64, i64), &str>,
        query: &Query<'_>,
        range: impl Fn(u32) -> String,
        ways: &Ways<'_>,
    ) -> (Vec<DeviceCell>, Vec<TrafficCell>) {
        let names = labels.names();
        let wanted = |key: &Key| {
            let symbol = names.kernel(key.function).map_or("", |f| &f.name);
            let api = names.queue(key.queue).map_or("", |q| &q.api);
            query.has_command(key.kind.name(), symbol) && query.has_api(api)
        };
        let mut wanted: Vec<(&Key, &Sum)> = self.by_key.iter().filter(|(key, _)| wanted(key)).collect();
        // Which one of equal ones is first must not be chance.
        wanted.sort_by_key(|(key, sum)| (std::cmp::Reverse(sum.calls), **key));
        let corrections = if query.splits_functions() { HashMap::new() } else { self.corrections(names) };
        let (mut devices, mut traffic) = (Vec::new(), Vec::new());
        for (key, sum) in wanted {
            let queue = names.queue(key.queue);
            let Way { layer, line } = key.way;
            let (around, layer) = (key.range.map(&range), layer.map(|layer| ways.chain_name(layer)));
            let line = line.map(|line| ways.line_name(line));
            let status = (key.status != 0).then(|| key.status.to_string());
            let who = Who {
                pid: key.pid,
                tid: key.tid,
                thread: threads.get(&(key.pid, key.tid)).copied().unwrap_or(""),
                range: around.as_deref(),
                layer: layer.as_deref(),
                line: line.as_deref(),
                device: queue.and_then(|q| names.device(q.device)),
                queue,
                error: status.as_deref(),
            };
            let group = labels.group(&labels.commands, &who);
            let mut cell = self.device_cell(labels, key, sum, &group, queue.map_or("", |q| &q.api));
            let mut moved = self.traffic_cell(key, sum, labels.group(&labels.traffic, &who));
            if let Some(off) = corrections.get(key) {
                cell.correct(off);
                moved.iter_mut().for_each(|moved| moved.correct(off));
            }
            if key.in_graph {
                let each = names.launches(key.function).map_or(0, |all| u64::from(all.nodes_off));
                cell.off = cell.timed.saturating_mul(each);
                moved.iter_mut().for_each(|moved| moved.off = moved.timed.saturating_mul(each));
            }
            devices.push(cell);
            traffic.extend(moved);
        }
        if !query.splits_functions() {
            let (only, moved) = self.only_counted(labels, query);
            devices.extend(only);
            traffic.extend(moved);
        }
        let (mut rows, mut moved) = (Vec::new(), Vec::new());
        merge(&mut rows, devices);
        merge(&mut moved, traffic);
        (rows, moved)
    }

    fn device_cell(&self, labels: &Labels<'_>, key: &Key, sum: &Sum, group: &Group, api: &str) -> DeviceCell {
        let names = labels.names();
        let by = |by: By| labels.commands.contains(&by);
        let (kind, symbol) = match by(By::Name) {
            true => (key.kind.name(), names.kernel(key.function).map_or("", |f| &f.name)),
            false => ("", ""),
        };
        let api = if by(By::Api) { api } else { "" };
        let (launches, shapes) = sum.shapes.most_frequent(if by(By::Name) { LAUNCHES } else { 0 });
        let launches = launches.iter().map(|of_shape| launch(names, key, of_shape, shapes)).collect();
        let mut cell = DeviceCell {
            kind: kind.to_owned(),
            symbol: symbol.to_owned(),
            api: api.to_owned(),
            group: group.clone(),
            calls: sum.calls,
            untimed: sum.untimed,
            timed: sum.times.count,
            total: sum.times.total,
            bytes: sum.bytes,
            errors: sum.errors,
            in_graph: sum.in_graph,
            of_graphs: 0,
            off: 0,
            samples: sum.samples,
            times: sum.times.clone(),
            launches,
        };
        cell.sort_launches();
        cell
    }

    fn traffic_cell(&self, key: &Key, sum: &Sum, group: Group) -> Option<TrafficCell> {
        let memory = |kind: MemoryKind| Some(kind.name().to_owned()).filter(|_| kind != MemoryKind::Unknown);
        let moves = sum.bytes > 0 || sum.failed_bytes > 0;
        (key.kind.moves_memory() || (moves && key.kind != CommandKind::Kernel)).then(|| TrafficCell {
            kind: key.kind.name().to_owned(),
            from: memory(key.from),
            to: memory(key.to),
            group,
            calls: sum.calls,
            bytes: sum.bytes,
            errors: sum.errors,
            failed_bytes: sum.failed_bytes,
            timed_bytes: sum.timed_bytes,
            untimed: sum.untimed,
            timed: sum.times.count,
            total: sum.times.total,
            of_graphs: 0,
            off: 0,
            samples: sum.samples,
            times: sum.times.clone(),
        })
    }

    /// By how much the samples of each function are off what was counted, where only some of its launches were
    /// timed: the last ones have none that stands for them, or too many have.
    fn corrections(&self, names: &Names) -> HashMap<Key, Correction> {
        let mut of_function: HashMap<(u32, bool), Vec<(Key, &Sum)>> = HashMap::new();
        for (key, sum) in self.by_key.iter().filter(|(key, _)| key.function != 0) {
            let all = names.launches(key.function).filter(|all| all.counted() > 0);
            if all.is_some_and(|all| all.part(key.in_graph).launches > 0) {
                of_function.entry((key.function, key.in_graph)).or_default().push((*key, sum));
            }
        }
        let mut all = HashMap::new();
        for ((function, nodes), mut sums) in of_function {
            // Where what is left over goes must not be chance.
            sums.sort_by_key(|(key, _)| *key);
            let parts = sums.iter().map(|(_, sum)| sum.part());
            let launches = names.launches(function).unwrap_or_default().part(nodes);
            let off = counted::corrections(&launches, &parts.collect::<Vec<_>>());
            all.extend(sums.iter().map(|(key, _)| *key).zip(off));
        }
        all
    }

    /// What was counted, and of which no command is known that could stand for it. Which thread, queue and range it was of is
    /// not known.
    fn only_counted(&self, labels: &Labels<'_>, query: &Query<'_>) -> (Vec<DeviceCell>, Vec<TrafficCell>) {
        let seen: HashSet<(u32, bool)> = self.by_key.keys().map(|key| (key.function, key.in_graph)).collect();
        let all = labels.names().only_counted(|function, nodes| seen.contains(&(function, nodes)));
        let wanted = |only: &OnlyCounted<'_>| {
            query.has_process(only.pid)
                && query.has_api(only.api)
                && query.has_command(only.kind.name(), only.symbol)
        };
        let (mut devices, mut traffic) = (Vec::new(), Vec::new());
        for only in all.into_iter().filter(wanted) {
            let OnlyCounted { function, pid, from, to, commands, bytes, of_graphs, .. } = only;
            let key = Key { function, pid, from, to, in_graph: of_graphs, ..Key::of(only.kind) };
            let who = Who { pid, device: only.device, ..Who::default() };
            let nodes = if of_graphs { commands } else { 0 };
            let sum = Sum { calls: commands, untimed: commands, bytes, in_graph: nodes, ..Sum::default() };
            let group = labels.group(&labels.commands, &who);
            let cell = self.device_cell(labels, &key, &sum, &group, only.api);
            devices.push(DeviceCell { of_graphs: nodes, ..cell });
            let cell = self.traffic_cell(&key, &sum, labels.group(&labels.traffic, &who));
            traffic.extend(cell.map(|cell| TrafficCell { of_graphs: nodes, ..cell }));
        }
        (devices, traffic)
    }
}

impl Key {
    /// Of commands of a kind of which nothing else is known.
    fn of(kind: CommandKind) -> Self {
        let (from, to) = (MemoryKind::Unknown, MemoryKind::Unknown);
        let way = Way::default();
        let (function, queue, pid, tid, range, status) = (0, 0, 0, 0, None, 0);
        Self { kind, from, to, function, queue, pid, tid, range, way, status, in_graph: false }
    }
}

/// A way of launching, and what that takes.
fn launch(names: &Names, key: &Key, (shape, calls): &(Shape, u64), shapes: u64) -> LaunchRow {
    let (global, block) = (shape.global.as_slice(), shape.local.as_slice());
    let grid = global.iter().zip(block).map(|(global, local)| global.checked_div(*local).unwrap_or(0));
    let function = names.kernel(key.function);
    let of = |get: fn(&hetrace_trace::trace::Kernel) -> u32| function.map_or(0, |f| u64::from(get(f)));
    let needs = Needs {
        threads: if block.is_empty() { 0 } else { shape.local.product() },
        registers: of(|f| f.registers),
        shared: of(|f| f.shared).saturating_add(shape.shared),
    };
    let rules = names
        .queue(key.queue)
        .and_then(|q| names.device(q.device))
        .and_then(|d| occupancy::rules(&d.properties));
    let occupancy = rules.and_then(|rules| rules.occupancy(&needs)).map(|o| OccupancyRow {
        percent: o.percent(),
        limiter: o.limiter.to_string(),
        blocks: o.blocks,
        warps: o.warps,
        max_warps: o.of,
    });
    LaunchRow {
        // Without groups of a size, the program asked for items only.
        grid: if block.is_empty() { Vec::new() } else { grid.collect() },
        items: global.to_vec(),
        block: block.to_vec(),
        cluster: shape.cluster.as_slice().to_vec(),
        calls: *calls,
        shapes,
        registers: needs.registers,
        shared_static: of(|f| f.shared),
        shared_dynamic: shape.shared,
        local: of(|f| f.local),
        occupancy,
    }
}
