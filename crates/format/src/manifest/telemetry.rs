//! Telemetry of a run: sources, devices, and what sampling cost.

use serde::{Deserialize, Serialize};

/// Telemetry of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// The period asked for, in nanoseconds.
    pub period_ns: u64,
    /// Sources, also those that could not be opened.
    pub sources: Vec<SourceReport>,
    /// Devices, by their number in the trace.
    pub devices: Vec<TelemetryDevice>,
    /// What sampling cost.
    pub sampler: SamplerReport,
    /// Records of the telemetry streams.
    pub records: u64,
    /// Bytes of the telemetry streams.
    pub bytes: u64,
}

/// A source of telemetry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceReport {
    /// Its name: `nvml`.
    pub name: String,
    /// The driver's version.
    pub driver: String,
    /// Why it could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it can't say on this machine, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TelemetryDevice {
    /// Its number in the telemetry events.
    pub device: u32,
    /// Its source.
    pub source: String,
    /// Its number in the source.
    pub index: u32,
    /// Its identity in every API: `GPU-…`.
    pub uuid: String,
    /// The product's name.
    pub name: String,
    /// Place on the bus.
    pub pci: String,
    /// What its power readings are: `instant` or `driver`.
    pub power: String,
    /// What it was asked for.
    pub quantities: Vec<QuantityReport>,
}

/// One quantity of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuantityReport {
    /// Its name, as in `telemetry:NAME`.
    pub quantity: String,
    /// Queries that were answered.
    pub samples: u64,
    /// Queries that were not.
    pub failed: u64,
    /// It is asked for once in so many periods; 1 unless its query is slow.
    pub every: u64,
    /// Mean time of a query, in nanoseconds.
    pub query_mean_ns: u64,
    /// Longest time of a query, in nanoseconds.
    pub query_max_ns: u64,
    /// Why it is asked for no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// What sampling cost the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplerReport {
    /// From loading the sources to the end of the first sweep, before the
    /// program started; nanoseconds.
    pub opening_ns: u64,
    /// Processor time of the sampling threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Sweeps over the devices.
    pub sweeps: u64,
    /// The longest of them, without queries too slow for the period.
    pub longest_sweep_ns: u64,
    /// Sweeps that were left out because one before them took too long.
    pub missed_periods: u64,
}

impl Telemetry {
    /// Adds the telemetry of another trace, whose devices have other numbers already.
    pub fn add(&mut self, other: Self) {
        let Self { period_ns, sources, devices, sampler, records, bytes } = other;
        self.period_ns = self.period_ns.max(period_ns);
        for source in sources {
            if !self.sources.contains(&source) {
                self.sources.push(source);
            }
        }
        self.devices.extend(devices);
        self.sampler.add(&sampler);
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl SamplerReport {
    fn add(&mut self, other: &Self) {
        let Self { opening_ns, cpu_ns, sweeps, longest_sweep_ns, missed_periods } = other;
        self.opening_ns = self.opening_ns.max(*opening_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(*cpu_ns);
        self.sweeps = self.sweeps.saturating_add(*sweeps);
        self.longest_sweep_ns = self.longest_sweep_ns.max(*longest_sweep_ns);
        self.missed_periods = self.missed_periods.saturating_add(*missed_periods);
    }
}
