//! One walk over a trace to what is known of a run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::cell::Cell;
use super::paths::{Paths, ROOT};
use super::profile::{CommandKey, DeviceCount, Profile, RunRow};
use hetrace_trace::samples::function_of;
use hetrace_trace::spans::{At, Call, Command, Fold, MemoryKind, Open, Summary, Unfinished, Visitor, walk};
use hetrace_trace::stacks::Sites;
use hetrace_trace::sums::Missing;
use hetrace_trace::trace::{Function, FunctionId, OnlyCounted, ThreadId, Trace};
use hetrace_trace::watch::Stopped;

/// What is called now and then while a trace is read, with how many events have
/// been read since the last time; [`ControlFlow::Break`] stops the reading.
pub type Watch<'w> = &'w dyn Fn(u64) -> ControlFlow<()>;

/// Events between two questions whether to go on.
const WATCHED: u32 = 1 << 16;

impl Profile {
    /// Sums up a trace, which is called `run`.
    ///
    /// Memory grows with functions, paths (of which so many are distinguished), kernels
    /// and open calls.
    ///
    /// # Errors
    /// When `watch` says so.
    pub fn of_trace(run: &str, trace: &Trace, watch: Option<Watch<'_>>) -> Result<Self, Stopped> {
        let mut gatherer = Gatherer::new(trace, watch);
        match walk(trace, &mut gatherer) {
            ControlFlow::Continue(summary) => Ok(gatherer.profile(run, &summary)),
            ControlFlow::Break(Stopped) => Err(Stopped),
        }
    }
}

/// A command's kind, kernel, device and kinds of memory, by their numbers in the trace, and whether it is a node of a graph.
type Numbers = (u16, u32, u32, u16, u16, bool);

struct Gatherer<'t> {
    trace: &'t Trace,
    watch: Option<Watch<'t>>,
    /// Events until the next question whether to go on.
    left: u32,
    /// By function.
    calls: Vec<Cell>,
    paths: Paths,
    /// By thread: the open calls.
    threads: Vec<Vec<OpenCall>>,
    /// The code that makes calls.
    sites: Sites<'t>,
    /// By function and that.
    by_site: HashMap<(usize, u32), Cell>,
    /// Kinds of commands and of memory.
    words: Vec<String>,
    commands: HashMap<Numbers, Cell>,
    /// Of these, launches that samples stand for, and their time, ns.
    shared: HashMap<Numbers, (u64, u64)>,
    /// By device, identified by a UUID, or by the process and its handle.
    busy: HashMap<DeviceId, Busy>,
    pids: HashSet<i64>,
    sampled: bool,
}

/// An open call.
#[derive(Clone, Copy, Debug)]
struct OpenCall {
    depth: u32,
    path: u32,
    /// The code that made it.
    site: u32,
}

/// A device's UUID, or its process and handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum DeviceId {
    Uuid(String),
    Handle(i64, u64),
}

/// When a device was busy. Commands come in the order of their starts; what comes
/// later than it should counts only as far as it goes on.
#[derive(Clone, Debug, Default)]
struct Busy {
    name: String,
    until: u64,
    total: u64,
}

impl Busy {
    fn add(&mut self, start: u64, end: u64) {
        self.total = self.total.saturating_add(end.saturating_sub(start.max(self.until)));
        self.until = self.until.max(end);
    }
}

impl<'t> Gatherer<'t> {
    fn new(trace: &'t Trace, watch: Option<Watch<'t>>) -> Self {
        Self {
            trace,
            watch,
            left: WATCHED,
            calls: vec![Cell::default(); trace.functions().all().len()],
            paths: Paths::default(),
            threads: Vec::new(),
            sites: Sites::new(trace.names().stacks(), function_of),
            by_site: HashMap::new(),
            words: Vec::new(),
            commands: HashMap::new(),
            shared: HashMap::new(),
            busy: HashMap::new(),
            pids: HashSet::new(),
            sampled: false,
        }
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Vec<OpenCall> {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Vec::new);
        }
        &mut self.threads[thread.index()]
    }

    /// The call of this depth, which ends.
    fn leave(&mut self, thread: ThreadId, depth: u32) -> Option<OpenCall> {
        let open = self.thread(thread);
        let at = open.iter().rposition(|known| known.depth == depth)?;
        Some(open.remove(at))
    }

    fn count(&mut self, function: FunctionId, path: Option<u32>, site: u32, cell: &Cell) {
        self.by_site.entry((function.index(), site)).or_default().add(cell);
        if let Some(sum) = self.calls.get_mut(function.index()) {
            sum.add(cell);
        }
        if let Some(path) = path {
            self.paths.add(path, cell);
        }
    }

    fn word(&mut self, word: &str) -> u16 {
        let at = self.words.iter().position(|known| known == word).unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn text(&self, word: u16) -> String {
        let known = self.words.get(usize::from(word));
        known.filter(|word| *word != "unknown").cloned().unwrap_or_default()
    }

    #[cold]
    fn ask(&mut self) -> ControlFlow<Stopped> {
        self.left = WATCHED;
        match self.watch.map(|watch| watch(u64::from(WATCHED))) {
            Some(ControlFlow::Break(())) => ControlFlow::Break(Stopped),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Numbers of commands and bytes are those that were counted, where only some commands were timed: what is
    /// missing, or too much, goes to the commands of a function of which there are most. Times stay estimates.
    fn correct(&mut self) {
        let mut of_function: BTreeMap<(u32, bool), (Numbers, Cell)> = BTreeMap::new();
        for (numbers, cell) in &self.commands {
            let (most, sum) =
                of_function.entry((numbers.1, numbers.5)).or_insert((*numbers, Cell::default()));
            let place = |at: &Numbers| (self.commands.get(at).map_or(0, |cell| cell.calls), *at);
            *most = std::cmp::max_by_key(*most, *numbers, place);
            sum.add(cell);
        }
        for ((function, nodes), (most, sum)) in of_function {
            let all = self.trace.names().launches(function).filter(|all| all.counted() > 0);
            let all = all.map(|all| all.part(nodes)).filter(|part| part.launches > 0);
            let Some((all, cell)) = all.zip(self.commands.get_mut(&most)) else { continue };
            self.sampled = true;
            let others = sum.calls.saturating_sub(cell.calls);
            let calls = all.launches.saturating_sub(others).max(1);
            // What stands for itself only is known; if nothing else was timed, all are taken to be alike.
            let (shared, ns) = self.shared.get(&most).copied().unwrap_or((cell.calls, cell.total));
            let launches = calls.saturating_sub(cell.calls.saturating_sub(shared));
            let scaled = (ns as f64 * (launches as f64 / shared.max(1) as f64)) as u64;
            cell.total = cell.total.saturating_sub(ns).saturating_add(scaled);
            cell.own = cell.total;
            if all.bytes > 0 {
                cell.bytes = all.bytes.saturating_sub(sum.bytes.saturating_sub(cell.bytes));
            }
            cell.calls = calls;
        }
    }

    /// Calls by function and the code that makes them; none if the trace has no stacks.
    fn by_sites(&self) -> Option<BTreeMap<(usize, String), Cell>> {
        if self.trace.names().stacks().is_empty() {
            return None;
        }
        let mut sites: BTreeMap<(usize, String), Cell> = BTreeMap::new();
        for ((function, site), cell) in &self.by_site {
            sites.entry((*function, self.sites.name(*site).to_owned())).or_default().add(cell);
        }
        Some(sites)
    }

    /// Commands by what they did and where, those that were only counted among them.
    fn by_command(&mut self) -> BTreeMap<CommandKey, Cell> {
        let trace = self.trace;
        let mut commands: BTreeMap<CommandKey, Cell> = BTreeMap::new();
        for (&(kind, function, device, from, to, _), cell) in &self.commands {
            let device = trace.names().device(device).map(|d| d.name.clone());
            let symbol = trace.names().kernel(function).map_or_else(String::new, |f| f.name.clone());
            let mut key = CommandKey { device, kind: self.text(kind), symbol, ..CommandKey::default() };
            if key.is_copy() {
                (key.from, key.to) = (self.text(from), self.text(to));
            }
            commands.entry(key).or_default().add(cell);
        }
        let seen: HashSet<(u32, bool)> = self.commands.keys().map(|of| (of.1, of.5)).collect();
        for only in trace.names().only_counted(|function, nodes| seen.contains(&(function, nodes))) {
            self.sampled = true;
            let (key, cell) = only_counted(&only);
            commands.entry(key).or_default().add(&cell);
        }
        commands
    }

    fn profile(mut self, run: &str, summary: &Summary) -> Profile {
        self.correct();
        let (trace, manifest) = (self.trace, self.trace.manifest());
        let apis = trace.functions().apis();
        let named = |f: &Function| (apis.get(f.api).cloned().unwrap_or_default(), f.name.clone());
        let commands = self.by_command();
        let mut devices: BTreeMap<&str, u64> = BTreeMap::new();
        for device in self.busy.values() {
            *devices.entry(&device.name).or_default() += 1;
        }
        let devices = devices.into_iter();
        let losses = &manifest.losses;
        let about = RunRow {
            run: run.to_owned(),
            command: manifest.command.clone(),
            wall_ns: summary.duration(),
            busy_ns: Some(self.busy.values().map(|b| b.total).fold(0, u64::saturating_add)),
            processes: self.pids.len() as u64,
            tracing_ns: trace.costs().is_known().then_some(0),
            devices: devices.map(|(name, count)| DeviceCount { name: name.to_owned(), count }).collect(),
            sampled: self.sampled,
            missing: Missing {
                lost_events: summary.lost_events,
                lost_calls: summary.lost_calls,
                lost_commands: summary.lost_commands,
                lost_processes: summary.lost_processes,
                lost_packets: summary.lost_packets,
                lost_bytes: losses.unwritten_bytes.saturating_add(losses.damaged_bytes),
                damaged: summary.damaged,
                differences: summary.differences,
                unfinished_calls: summary.unfinished,
                orphaned_exits: summary.orphans,
                untimed_commands: summary.untimed,
                commands_in_flight: losses.commands_in_flight,
                // Other tracers' traces have no models, and need no manifest.
                manifest_missing: trace.lacks_manifest(),
            },
            ..RunRow::default()
        };
        let sites = self.by_sites();
        let (calls, paths) = (self.calls, self.paths);
        let mut profile = Profile {
            about,
            functions: trace.functions().all().iter().map(named).collect(),
            calls,
            paths: Some(paths),
            sites,
            commands,
        };
        profile.finish();
        profile
    }
}

/// What commands are that were only counted, and their number.
fn only_counted(only: &OnlyCounted<'_>) -> (CommandKey, Cell) {
    let memory = |kind: MemoryKind| if kind == MemoryKind::Unknown { "" } else { kind.name() };
    let device = only.device.map(|device| device.name.clone());
    let (kind, symbol) = (only.kind.name().to_owned(), only.symbol.to_owned());
    let mut key = CommandKey { device, kind, symbol, ..CommandKey::default() };
    if key.is_copy() {
        (key.from, key.to) = (memory(only.from).to_owned(), memory(only.to).to_owned());
    }
    let of_graphs = if only.of_graphs { only.commands } else { 0 };
    (key, Cell { calls: only.commands, bytes: only.bytes, of_graphs, ..Cell::default() })
}

impl Visitor for Gatherer<'_> {
    type Break = Stopped;

    #[inline]
    fn event(&mut self, _: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.left -= 1;
        if self.left == 0 { self.ask() } else { ControlFlow::Continue(()) }
    }

    #[inline]
    fn entry(&mut self, at: At<'_>, call: &Open, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let parent = self.thread(call.thread).last().map(|open| open.path);
        if parent.is_none() {
            self.pids.insert(at.who().pid);
        }
        let path = self.paths.child(parent.unwrap_or(ROOT), call.function.0);
        let site = self.sites.number(call.stack);
        self.thread(call.thread).push(OpenCall { depth: call.depth, path, site });
        ControlFlow::Continue(())
    }

    #[inline]
    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let open = self.leave(call.thread, call.depth);
        let (total, own) = (call.duration(), call.own);
        let cell = Cell { calls: 1, total, own, cost: call.cost, own_cost: call.own_cost, ..Cell::default() };
        self.count(call.function, open.map(|open| open.path), open.map_or(0, |open| open.site), &cell);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, _: At<'_>, call: &Unfinished) -> ControlFlow<Stopped> {
        self.leave(call.thread, call.depth);
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.pids.insert(at.who().pid);
        let around = self.thread(fold.thread).iter().rfind(|open| open.depth < fold.depth);
        let parent = around.map_or(ROOT, |open| open.path);
        let path = self.paths.child(parent, fold.function.0);
        let (calls, time, cost) = (fold.count, fold.total, fold.cost);
        let cell = Cell { calls, total: time, own: time, cost, own_cost: cost, ..Cell::default() };
        self.count(fold.function, Some(path), 0, &cell);
        ControlFlow::Continue(())
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let device = command.on_device.map_or(0, |d| d.id);
        let function = command.function.map_or(0, |f| f.id);
        let [kind, from, to] =
            [command.kind.name(), command.from.name(), command.to.name()].map(|word| self.word(word));
        let numbers = (kind, function, device, from, to, command.graph > 0);
        let weight = command.weight;
        self.sampled |= weight > 1;
        self.pids.insert(command.pid);
        // What failed has no time that says anything.
        let times = command.times.filter(|_| !command.failed());
        let time = times.map_or(0, |t| t.duration()).saturating_mul(weight);
        if weight > 1 && times.is_some() {
            let shared = self.shared.entry(numbers).or_default();
            *shared = (shared.0.saturating_add(weight), shared.1.saturating_add(time));
        }
        let bytes = if command.failed() { 0 } else { command.bytes.saturating_mul(weight) };
        let cell = Cell { calls: weight, total: time, own: time, bytes, ..Cell::default() };
        self.commands.entry(numbers).or_default().add(&cell);
        let id = match command.on_device {
            Some(device) if !device.uuid.is_empty() => DeviceId::Uuid(device.uuid.clone()),
            _ => DeviceId::Handle(command.pid, command.device),
        };
        let busy = self.busy.entry(id).or_default();
        if busy.name.is_empty() {
            command.device_name().clone_into(&mut busy.name);
        }
        if let Some(times) = times.filter(|_| command.kind.keeps_busy()) {
            busy.add(times.start, times.end);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_commands_are_busy_once() {
        let mut busy = Busy::default();
        for (start, end) in [(0, 10), (5, 8), (8, 20), (30, 40), (32, 31)] {
            busy.add(start, end);
        }
        assert_eq!(busy.total, 30);
    }
}
