//! What is known of one run: sums, as many as there are paths and kernels.

use std::collections::BTreeMap;

use serde::Serialize;

use super::paths::Paths;
use crate::tally::{Aggregate, is_traffic};
use hetrace_trace::demangle;

/// Sums of calls, or of commands. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub calls: u64,
    pub total: u64,
    /// Outside of other recorded calls; of commands, all of it.
    pub own: u64,
    /// What of `total` and of `own` tracing took.
    pub cost: u64,
    pub own_cost: u64,
    pub bytes: u64,
}

impl Cell {
    pub fn add(&mut self, other: &Self) {
        for (to, n) in [
            (&mut self.calls, other.calls),
            (&mut self.total, other.total),
            (&mut self.own, other.own),
            (&mut self.cost, other.cost),
            (&mut self.own_cost, other.own_cost),
            (&mut self.bytes, other.bytes),
        ] {
            *to = to.saturating_add(n);
        }
    }

    /// What else tracing took in some of the calls, as the mean of all.
    pub fn add_bursts(&mut self, each: f64) {
        let all = (self.calls as f64 * each) as u64;
        self.cost = self.cost.saturating_add(all);
        self.own_cost = self.own_cost.saturating_add(all);
    }

    /// All of its time or its own, without what tracing took or with it.
    pub fn time(&self, whole: bool, net: bool) -> u64 {
        let (time, cost) = if whole { (self.total, self.cost) } else { (self.own, self.own_cost) };
        if net { time.saturating_sub(cost) } else { time }
    }
}

/// What commands have in common that are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommandKey {
    /// The device's name; none if it is not known.
    pub device: Option<String>,
    pub kind: String,
    /// The kernel as the API tells it; empty for others.
    pub symbol: String,
    /// Kinds of memory; empty if nobody said, and of what moves nothing.
    pub from: String,
    pub to: String,
}

impl CommandKey {
    /// Whether it moves or sets memory.
    pub fn is_copy(&self) -> bool {
        is_traffic(&self.kind)
    }
}

/// A kind of device, and how many of it had commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceCount {
    /// Its name; empty if nobody told it.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What a trace lacks. All of it makes its sums smaller than the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Events lost while recording.
    pub lost_events: u64,
    /// Calls that these losses concern, wholly or in part.
    pub lost_calls: u64,
    /// Commands on devices lost while recording.
    pub lost_commands: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Bytes that were damaged, or could not be written to disk.
    pub lost_bytes: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// Files that are missing, or not as they were written.
    pub differences: u64,
    /// Calls without an end: of unknown time, in no row.
    pub unfinished_calls: u64,
    /// Ends of calls without a beginning: in no row.
    pub orphaned_exits: u64,
    /// Commands without times: counted, with no time.
    pub untimed_commands: u64,
    /// Commands under way when the program ended: in no row.
    pub commands_under_way: u64,
    /// hetrace has not finished the trace: it records still, or was killed.
    pub manifest_missing: bool,
}

impl Missing {
    /// Whether anything is missing.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
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
    /// Calls whose path is told in part only: too deep, or one of too many.
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
    pub(super) commands: BTreeMap<CommandKey, Cell>,
}

/// A file of sums that is not of one whole run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumsError {
    /// Sums of several traces.
    #[error("it has the sums of {0} traces; runs are compared one by one: save each by itself")]
    Several(usize),
    /// Rows are told apart by other things.
    #[error("its rows are told apart by other things than API and name; save it without --by")]
    By,
    /// Only a part was counted.
    #[error("it has a part of the trace only ({0}); save it without filters and times")]
    Part(String),
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

    /// What a file of sums tells of a run, which is called `run`: functions,
    /// kernels and copies, but no paths and no times of devices.
    ///
    /// # Errors
    /// When the sums are not of one whole trace.
    pub fn of_sums(run: &str, sums: &Aggregate) -> Result<Self, SumsError> {
        if !sums.by().is_empty() {
            return Err(SumsError::By);
        }
        if let Some(chosen) = sums.chosen() {
            return Err(SumsError::Part(chosen.to_owned()));
        }
        let traces = sums.traces();
        if traces.len() != 1 {
            return Err(SumsError::Several(traces.len()));
        }
        let processes = traces.iter().map(|t| t.processes).sum();
        let t = sums.tally();
        let mut profile = Self::default();
        let net = t.tracing.as_ref().is_some_and(|tracing| tracing.left_out);
        for row in &t.host {
            profile.functions.push((row.api.clone(), row.name.clone()));
            let (cost, own_cost) = (row.cost_ns.saturating_add(row.error_cost_ns), row.self_cost_ns);
            let left_out = |cost: u64| if net { cost } else { 0 };
            let total = row.total_ns.saturating_add(row.error_ns).saturating_add(left_out(cost));
            let own = row.self_ns.saturating_add(left_out(own_cost));
            profile.calls.push(Cell { calls: row.calls, total, own, cost, own_cost, bytes: 0 });
        }
        // Commands have nothing inside.
        let cell = |calls, total, bytes| Cell { calls, total, own: total, bytes, ..Cell::default() };
        for row in t.device.iter().filter(|row| !is_traffic(&row.kind)) {
            let symbol = row.symbol.clone().unwrap_or_default();
            let key = CommandKey { kind: row.kind.clone(), symbol, ..CommandKey::default() };
            profile.commands.entry(key).or_default().add(&cell(row.calls, row.total_ns, row.bytes));
        }
        for row in t.traffic.iter().filter(|row| is_traffic(&row.name)) {
            let [from, to] = [&row.from, &row.to].map(|memory| memory.clone().unwrap_or_default());
            let key = CommandKey { kind: row.name.clone(), from, to, ..CommandKey::default() };
            profile.commands.entry(key).or_default().add(&cell(row.calls, row.total_ns, row.bytes));
        }
        let devices = (t.devices > 0).then(|| DeviceCount { name: String::new(), count: t.devices });
        profile.about = RunRow {
            run: run.to_owned(),
            command: t.command.clone(),
            wall_ns: t.duration_ns,
            processes,
            tracing_ns: t.tracing.as_ref().map(|_| 0),
            devices: devices.into_iter().collect(),
            sampled: t.device.iter().any(|row| row.samples.is_some()),
            sums_only: true,
            missing: Missing {
                lost_events: t.lost_events,
                lost_calls: t.lost_calls,
                lost_commands: t.lost_device_commands,
                lost_packets: t.lost_packets,
                lost_bytes: t.damaged_bytes.saturating_add(t.unwritten_bytes),
                damaged: t.damaged,
                differences: t.differences,
                unfinished_calls: t.unfinished_calls,
                orphaned_exits: t.orphaned_exits,
                untimed_commands: t.untimed_commands,
                commands_under_way: t.commands_under_way,
                manifest_missing: t.manifest_missing,
            },
            ..RunRow::default()
        };
        profile.finish();
        Ok(profile)
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
