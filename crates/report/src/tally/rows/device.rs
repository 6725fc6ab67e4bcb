//! Rows of the devices' tables.

use serde::{Deserialize, Serialize};

use super::host::is_zero;
use crate::tally::Group;

/// Commands of one name. Times are those of successful commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRow {
    /// The kernel's name, demangled, or the kind of command; empty if rows are not
    /// grouped by it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kernel's name as the API reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// The kind of command; empty if rows are not grouped by name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The API of the queue; only if asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// What else the row is of; if extended, `device` and `queue`.
    #[serde(flatten)]
    pub group: Group,
    /// All commands; of a sample, as many as it stands for.
    pub calls: u64,
    /// If only some commands were looked at: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Of all commands, those that were only counted, and that no sample stands for: their time is taken to be that of
    /// those that were timed, with an error that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Of all commands, those whose times are not known.
    pub untimed: u64,
    /// Of these, nodes of graphs that were timed as a whole, or not at all: they are counted, and the time of their graphs is in
    /// the row of these (kind `graph`).
    #[serde(skip_serializing_if = "is_zero")]
    pub of_graphs: u64,
    /// Time on the device; of samples, an estimate for all launches.
    pub total_ns: u64,
    /// Of an estimate: the truth is not farther away, in nanoseconds, with 95 %
    /// probability; none if that cannot be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_error_ns: Option<f64>,
    /// The same: commands do not nest.
    pub self_ns: u64,
    /// Average of those with times.
    pub avg_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Half of them took no longer, within 1/128 of the value.
    pub p50_ns: u64,
    /// 99 of 100 took no longer, within 1/128 of the value.
    pub p99_ns: u64,
    /// Standard deviation.
    pub dev_ns: f64,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Commands that were launched with a graph.
    pub in_graph: u64,
    /// Commands that failed.
    pub errors: u64,
    /// How most of them were launched; kernels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchRow>,
    /// What they took, if that can be said; kernels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRow>,
}

/// How long a device was busy: at least one command ran on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceUseRow {
    /// The device's name, and its identity or number.
    pub device: String,
    /// How long; if several processes used it, the sum of theirs, but no more than the trace's duration.
    pub busy_ns: u64,
    /// The same in percent of the trace's duration.
    pub percent: f64,
    /// Commands on it.
    pub commands: u64,
    /// Processes that used it.
    pub processes: u64,
    /// Times of some of the commands are not known: it may have been busy for longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
}

/// The most frequent launch configuration of a kernel, and what it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchRow {
    /// Blocks in each dimension; empty if the program gave no size of blocks.
    pub grid: Vec<u64>,
    /// Threads in each dimension.
    pub items: Vec<u64>,
    /// Threads of a block in each dimension.
    pub block: Vec<u64>,
    /// Blocks of a cluster in each dimension; empty if there are none.
    pub cluster: Vec<u64>,
    /// Launches like this.
    pub calls: u64,
    /// How many ways of launching there were; at most 1024 are distinguished.
    pub shapes: u64,
    /// Registers of a thread; 0 if not known.
    pub registers: u64,
    /// Bytes of shared memory of a block that the code asks for.
    pub shared_static: u64,
    /// Bytes of shared memory of a block that the launch asked for.
    pub shared_dynamic: u64,
    /// Bytes of local memory of a thread.
    pub local: u64,
    /// How full a multiprocessor can be; none if the device is not known well enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<OccupancyRow>,
}

/// Theoretical occupancy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OccupancyRow {
    /// Warps at once, percent of what there could be.
    pub percent: f64,
    /// What keeps more out: `threads`, `blocks`, `registers`, `shared memory`.
    pub limiter: String,
    /// Blocks of a multiprocessor at once.
    pub blocks: u64,
    /// Warps of a multiprocessor at once.
    pub warps: u64,
    /// Warps that there could be.
    pub max_warps: u64,
}

/// Energy as telemetry reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyRow {
    /// What the devices took meanwhile, mJ.
    pub millijoules: f64,
    /// The truth is not farther away, in mJ, with 95 % probability: of kernels by
    /// the scatter of readings, of ranges by what is not known of the readings at
    /// the ends. The device's own error is not in it.
    pub error_mj: f64,
    /// Readings of telemetry that this is from; at least 10.
    pub readings: u64,
}

/// Commands of one kind that move or set memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficRow {
    /// The kind.
    pub name: String,
    /// The kind of memory that was read, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The kind of memory that was written, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What else the row is of.
    #[serde(flatten)]
    pub group: Group,
    /// All commands.
    pub calls: u64,
    /// Bytes of the successful ones.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Bytes that those were to move or set.
    pub failed_bytes: u64,
    /// If only some commands were looked at: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// As [`DeviceRow::unseen`].
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// As [`DeviceRow::of_graphs`].
    #[serde(skip_serializing_if = "is_zero")]
    pub of_graphs: u64,
    /// Time on the device; of samples, an estimate for all commands.
    pub total_ns: u64,
    /// As [`DeviceRow::total_error_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_error_ns: Option<f64>,
    /// The same: commands do not nest.
    pub self_ns: u64,
    /// Average of those with times.
    pub avg_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Half of them took no longer, within 1/128 of the value.
    pub p50_ns: u64,
    /// 99 of 100 took no longer, within 1/128 of the value.
    pub p99_ns: u64,
    /// Standard deviation.
    pub dev_ns: f64,
    /// Bytes per second of the commands with times; none without a time.
    pub bytes_per_second: Option<f64>,
}
