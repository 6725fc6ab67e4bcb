//! What is known of one run: sums, as many as there are paths and kernels.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cell::Cell;
use super::paths::Paths;
use hetrace_trace::demangle;
use hetrace_trace::spans::CommandKind;
use hetrace_trace::sums::{Missing, RunSums};

/// What commands have in common that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommandKey {
    /// The device's name; none if it is not known.
    pub device: Option<String>,
    pub kind: String,
    /// The kernel as the API reports it; empty for others.
    pub symbol: String,
    /// Kinds of memory; empty if not known, and of what moves nothing.
    pub from: String,
    pub to: String,
}

impl CommandKey {
    /// Whether it moves or sets memory.
    pub fn is_copy(&self) -> bool {
        CommandKind::name_moves_memory(&self.kind)
    }
}

/// A kind of device, and how many of it had commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceCount {
    /// Its name; empty if it is not known.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What a run was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunRow {
    /// How it is called here: where it was read.
    pub run: String,
    /// The traced program and its arguments.
    pub command: Vec<String>,
    /// From the first event to the last.
    pub wall_ns: u64,
    /// Time in which a device was busy, of all devices together; none if it is not known.
    pub busy_ns: Option<u64>,
    /// Time in recorded calls, each counted once; in a report without what tracing took, if that is known
    /// of all runs.
    pub host_ns: u64,
    /// What tracing took of it; none if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing_ns: Option<u64>,
    /// Time of all commands, one after the other.
    pub commands_ns: u64,
    /// Calls that ended.
    pub calls: u64,
    /// Commands on devices.
    pub commands: u64,
    /// Processes that recorded anything.
    pub processes: u64,
    /// Devices that had commands.
    pub devices: Vec<DeviceCount>,
    /// Only some launches were timed: times of commands are estimates.
    pub sampled: bool,
    /// It was read from a file of sums, which has no paths.
    pub sums_only: bool,
    /// Calls whose path is known in part only: too deep, or one of too many.
    pub cut_paths: u64,
    /// What is missing.
    pub missing: Missing,
}

/// What is known of one run.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(super) about: RunRow,
    /// API and name; numbers of functions are places in this.
    pub(super) functions: Vec<(String, String)>,
    /// By function.
    pub(super) calls: Vec<Cell>,
    /// None if they are not known.
    pub(super) paths: Option<Paths>,
    /// By function and the code that calls it, empty if that is not known; none of runs without stacks.
    pub(super) sites: Option<BTreeMap<(usize, String), Cell>>,
    pub(super) commands: BTreeMap<CommandKey, Cell>,
}

impl Profile {
    /// What the run was.
    pub fn about(&self) -> &RunRow {
        &self.about
    }

    /// Adds what is known of all of them.
    pub(super) fn finish(&mut self) {
        let sum = |of: &dyn Fn(&Cell) -> u64, cells: &mut dyn Iterator<Item = &Cell>| {
            cells.map(of).fold(0, u64::saturating_add)
        };
        self.about.host_ns = sum(&|c| c.own, &mut self.calls.iter());
        let tracing = sum(&|c| c.own_cost.min(c.own), &mut self.calls.iter());
        self.about.tracing_ns = self.about.tracing_ns.map(|_| tracing);
        self.about.calls = sum(&|c| c.calls, &mut self.calls.iter());
        self.about.commands_ns = sum(&|c| c.total, &mut self.commands.values());
        self.about.commands = sum(&|c| c.calls, &mut self.commands.values());
        self.about.cut_paths = self.paths.as_ref().map_or(0, |paths| paths.cut);
    }

    /// Returns what sums say of a run, which is called `run`: functions,
    /// kernels and copies, but no paths and no times of devices.
    pub fn of_sums(run: &str, sums: &RunSums) -> Self {
        let mut profile = Self::default();
        for f in &sums.functions {
            profile.functions.push((f.api.clone(), f.name.clone()));
            let (cost, own_cost) = (f.cost_ns, f.self_cost_ns);
            let (total, own) = (f.total_ns, f.self_ns);
            profile.calls.push(Cell { calls: f.calls, total, own, cost, own_cost, ..Cell::default() });
        }
        for c in &sums.commands {
            let [kind, symbol, from, to] = [&c.kind, &c.symbol, &c.from, &c.to].map(String::clone);
            let key = CommandKey { device: None, kind, symbol, from, to };
            // Commands have nothing inside.
            let cell = Cell {
                calls: c.calls,
                total: c.total_ns,
                own: c.total_ns,
                bytes: c.bytes,
                of_graphs: c.of_graphs,
                ..Cell::default()
            };
            profile.commands.entry(key).or_default().add(&cell);
        }
        let devices = (sums.devices > 0).then(|| DeviceCount { name: String::new(), count: sums.devices });
        profile.about = RunRow {
            run: run.to_owned(),
            command: sums.command.clone(),
            wall_ns: sums.wall_ns,
            processes: sums.processes,
            tracing_ns: sums.cost_known.then_some(0),
            devices: devices.into_iter().collect(),
            sampled: sums.sampled,
            sums_only: true,
            missing: sums.missing,
            ..RunRow::default()
        };
        profile.finish();
        profile
    }
}

/// Whether one of the names of a command is wanted.
pub(super) fn command_matches(globs: &[String], key: &CommandKey) -> bool {
    let matches = |name: &str| globs.iter().any(|glob| hetrace_model::glob_matches(glob, name));
    let symbol = key.symbol.as_str();
    matches(&key.kind)
        || (!symbol.is_empty()
            && (matches(symbol) || matches(&demangle::full(symbol)) || matches(&demangle::short(symbol))))
}
