//! Sums of one whole run, for reports that compare runs.

use super::aggregate::Aggregate;
use super::rows::Tally;
use hetrace_trace::spans::CommandKind;
use hetrace_trace::sums::{CommandSum, FunctionSum, Missing, RunSums};

/// Why sums are not of one whole run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SumsError {
    /// Sums of several traces.
    #[error("it has the sums of {0} traces; runs are compared one by one: save each by itself")]
    Several(usize),
    /// Rows are grouped by other things.
    #[error("its rows are grouped by other things than API and name; save it without --by")]
    By,
    /// Only a part was counted.
    #[error("it has a part of the trace only ({0}); save it without filters and times")]
    Part(String),
}

impl Aggregate {
    /// Returns what it says of the run that it is of.
    ///
    /// # Errors
    /// When the sums are not of one whole trace, or rows are grouped by more than API and name.
    pub fn whole_run(&self) -> Result<RunSums, SumsError> {
        if !self.by().is_empty() {
            return Err(SumsError::By);
        }
        if let Some(chosen) = self.chosen() {
            return Err(SumsError::Part(chosen.to_owned()));
        }
        let traces = self.traces();
        if traces.len() != 1 {
            return Err(SumsError::Several(traces.len()));
        }
        let t = self.tally();
        Ok(RunSums {
            wall_ns: t.duration_ns,
            processes: traces.iter().map(|t| t.processes).sum(),
            devices: t.devices,
            sampled: t.device.iter().any(|row| row.samples.is_some()),
            cost_known: t.tracing.is_some(),
            missing: missing(&t),
            functions: functions(&t),
            commands: commands(&t),
            command: t.command,
        })
    }
}

fn missing(t: &Tally) -> Missing {
    Missing {
        lost_events: t.lost_events,
        lost_calls: t.lost_calls,
        lost_commands: t.lost_device_commands,
        lost_processes: t.lost_processes,
        lost_packets: t.lost_packets,
        lost_bytes: t.damaged_bytes.saturating_add(t.unwritten_bytes),
        damaged: t.damaged,
        differences: t.differences,
        unfinished_calls: t.unfinished_calls,
        orphaned_exits: t.orphaned_exits,
        untimed_commands: t.untimed_commands,
        commands_in_flight: t.commands_in_flight,
        manifest_missing: t.manifest_missing,
    }
}

fn functions(t: &Tally) -> Vec<FunctionSum> {
    let net = t.tracing.as_ref().is_some_and(|tracing| tracing.left_out);
    let left_out = |cost: u64| if net { cost } else { 0 };
    let sum = |row: &super::HostRow| {
        let cost_ns = row.cost_ns.saturating_add(row.error_cost_ns);
        FunctionSum {
            api: row.api.clone(),
            name: row.name.clone(),
            calls: row.calls,
            total_ns: row.total_ns.saturating_add(row.error_ns).saturating_add(left_out(cost_ns)),
            self_ns: row.self_ns.saturating_add(left_out(row.self_cost_ns)),
            cost_ns,
            self_cost_ns: row.self_cost_ns,
        }
    };
    t.host.iter().map(sum).collect()
}

/// What moves memory is in the table of traffic, by kinds of memory; all else in that of devices.
fn commands(t: &Tally) -> Vec<CommandSum> {
    let device =
        t.device.iter().filter(|row| !CommandKind::name_moves_memory(&row.kind)).map(|row| CommandSum {
            kind: row.kind.clone(),
            symbol: row.symbol.clone().unwrap_or_default(),
            calls: row.calls,
            of_graphs: row.of_graphs,
            total_ns: row.total_ns,
            bytes: row.bytes,
            ..CommandSum::default()
        });
    let traffic =
        t.traffic.iter().filter(|row| CommandKind::name_moves_memory(&row.name)).map(|row| CommandSum {
            kind: row.name.clone(),
            from: row.from.clone().unwrap_or_default(),
            to: row.to.clone().unwrap_or_default(),
            calls: row.calls,
            of_graphs: row.of_graphs,
            total_ns: row.total_ns,
            bytes: row.bytes,
            ..CommandSum::default()
        });
    device.chain(traffic).collect()
}
