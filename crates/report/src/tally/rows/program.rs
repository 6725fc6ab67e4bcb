//! Rows of what the program marked, and of what devices reported.

use serde::{Deserialize, Serialize};

use super::EnergyRow;

/// Ranges of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeRow {
    /// The domain; empty for the default one.
    pub domain: String,
    /// The message.
    pub name: String,
    /// The category; empty if there is none.
    pub category: String,
    /// `pushed` on one thread, or `started`, to be ended by any.
    pub style: String,
    /// Ranges that have ended.
    pub calls: u64,
    /// From beginning to end, ns. Ranges inside each other count more than once.
    pub total_ns: u64,
    /// Average.
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
    /// Commands enqueued inside of them, by the thread that began them.
    pub commands: u64,
    /// Time of these commands on their devices, whenever that was, ns.
    pub device_ns: u64,
    /// What devices took from beginning to end, whoever made them, if that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRow>,
}

/// A range without an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRangeRow {
    /// The domain; empty for the default one.
    pub domain: String,
    /// The message.
    pub name: String,
    /// The process.
    pub pid: i64,
    /// The thread that began it.
    pub tid: i64,
    /// When it began, ns after the first event.
    pub since_ns: u64,
}

/// A counter that a program keeps itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterRow {
    /// The domain; empty for the default one.
    pub domain: String,
    /// Its name, or its handle if it has none.
    pub name: String,
    /// The process.
    pub pid: i64,
    /// How many values it got.
    pub values: u64,
    /// How many of which the type is not known, or that are no numbers: they are not in what follows.
    pub unknown: u64,
    /// The first value, in whatever unit the program has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    /// The last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// The smallest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Average of the values, however long the counter had each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
}

/// A stream whose time goes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteppedRow {
    /// Its file.
    pub stream: String,
    /// How many times.
    pub steps: u64,
    /// The farthest.
    pub largest_ns: u64,
    /// From when that was, ns after the first event.
    pub at_ns: u64,
}

/// A probe in the program's code (USDT).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRow {
    /// `PROVIDER:PROBE`.
    pub name: String,
    /// How often threads of the program passed it.
    pub hits: u64,
    /// How many threads did.
    pub threads: u64,
}

/// Ranges between two probes in the program's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRangeRow {
    /// `PROVIDER:NAME (BEGIN..END)`.
    pub name: String,
    /// How many ended.
    pub ranges: u64,
    /// How many did not.
    pub open: u64,
    /// Threads that had some.
    pub threads: u64,
    /// Time in those that ended, of ranges in each other each, in nanoseconds.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl ProbeRangeRow {
    /// Adds those of another trace.
    pub(crate) fn add(&mut self, other: &Self) {
        self.min_ns = match (self.ranges, other.ranges) {
            (_, 0) => self.min_ns,
            (0, _) => other.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        for (all, more) in [
            (&mut self.ranges, other.ranges),
            (&mut self.open, other.open),
            (&mut self.threads, other.threads),
            (&mut self.total_ns, other.total_ns),
        ] {
            *all = all.saturating_add(more);
        }
    }
}

/// One value of what the host reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostTelemetryRow {
    /// `host` for all of it, `CPU 0`, `disk sda`, `network eth0`, `power package-0`.
    pub device: String,
    /// The quantity, as in `telemetry:QUANTITY`.
    pub quantity: String,
    /// Which of its values; `busy` is `user` and `system` of `cpu` together, `milliwatts` is from the counter of `energy`.
    pub value: String,
    /// The unit of `mean`, `min` and `max`.
    pub unit: String,
    /// Samples; of rates and of energy the intervals between them.
    pub samples: u64,
    /// Average: of rates over the time that the samples cover, else of the samples.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Of traffic the bytes, of energy the mJ, that the samples cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// What a device reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TelemetryRow {
    /// The driver's number of it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `GPU-…`.
    pub uuid: String,
    /// Whether the program had commands on it.
    pub used: bool,
    /// Samples of its power.
    pub power_samples: u64,
    /// Average power over time, mW.
    pub mean_power_mw: Option<f64>,
    /// Highest power, mW.
    pub max_power_mw: Option<u64>,
    /// Its limit, mW; 0 if not known.
    pub power_limit_mw: u64,
    /// Energy from the first reading to the last, mJ.
    pub energy_mj: Option<f64>,
    /// Where that is from: `counter`, or `power` added up.
    pub energy_source: Option<String>,
    /// From the first reading of energy to the last, ns.
    pub energy_over_ns: u64,
    /// Average of what the driver says, percent of time in which a kernel ran.
    pub mean_gpu_percent: Option<f64>,
    /// The same for accesses to its memory.
    pub mean_memory_percent: Option<f64>,
    /// Most memory in use, by whomever, bytes.
    pub max_memory_used: Option<u64>,
    /// All its memory, bytes; 0 if not known.
    pub memory_bytes: u64,
    /// Highest temperature.
    pub max_celsius: Option<i64>,
    /// Why clocks were not higher.
    pub throttle: Vec<ThrottleRow>,
}

/// A reason for lower clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThrottleRow {
    /// The reason.
    pub reason: String,
    /// Part of the time in which it held, percent.
    pub percent: f64,
}
