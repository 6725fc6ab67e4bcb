//! The tables as data; serialized, they are `tally --json`.

mod budget;
mod capture;
mod device;
mod host;
mod inside;
mod program;
mod sampled;

use serde::{Deserialize, Serialize};

pub use budget::{BudgetRow, LevelRow};
pub use capture::CaptureRow;
pub use device::{DeviceRow, DeviceUseRow, EnergyRow, LaunchRow, OccupancyRow, TrafficRow};
pub use hetrace_trace::collectives::{
    Communicator as CommunicatorRow, Row as CollectiveRow, Unfinished as UnfinishedCollectiveRow,
};
pub use hetrace_trace::memory::{MemoryProcessRow, MemoryReleases, MemoryRow};
pub use host::{ApiTotals, ErrorRow, HostRow, TracingRow, UnfinishedRow};
pub use inside::{
    InsideBlockRow, InsideLoopRow, InsideLostRow, InsideRoofline, InsideRow, InsideRows, InsideTakes,
    RefusedRow,
};
pub use program::{
    CounterRow, HostTelemetryRow, OpenRangeRow, ProbeRangeRow, ProbeRow, RangeRow, SteppedRow, TelemetryRow,
    ThrottleRow,
};

pub use sampled::{SampleRow, SampledRow};

use super::By;
use hetrace_trace::trace::Exit;

/// Version of the JSON form.
pub const SCHEMA: u32 = 4;

/// All tables of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// [`SCHEMA`].
    pub schema: u32,
    /// If it is of several traces: what each is of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceRow>,
    /// What rows are grouped by; empty for API and name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<By>,
    /// What was chosen to be counted, in words; everything if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The traced program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How it ended, if the launcher saw it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exit")]
    pub exit: Option<Exit>,
    /// From the first event to the last.
    pub duration_ns: u64,
    /// Processes that recorded calls.
    pub processes: u64,
    /// Events lost while recording.
    pub lost_events: u64,
    /// Calls that these losses concern, wholly or in part.
    pub lost_calls: u64,
    /// Commands on devices lost while recording.
    pub lost_device_commands: u64,
    /// Commands that were in flight when the program ended.
    pub commands_in_flight: u64,
    /// Bytes that could not be written to disk.
    pub unwritten_bytes: u64,
    /// Bytes of rings that made no sense.
    pub damaged_bytes: u64,
    /// Processes whose records could not be read, all or some.
    pub lost_processes: u64,
    /// Events of the operating system that the kernel dropped or that could not be written.
    pub lost_os_events: u64,
    /// Context switches that the kernel did not deliver; of those that it dropped some may be among them.
    pub unseen_switches: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// These places, in words; at most 16.
    pub damages: Vec<String>,
    /// Files that are missing, or not as they were written.
    #[serde(skip_serializing_if = "is_zero")]
    pub differences: u64,
    /// These, in words; at most 16 of a trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub different: Vec<String>,
    /// Events whose time lies before that of the event before in their stream.
    pub steps_back: u64,
    /// The streams with such events; at most 16 of a trace.
    pub stepped_streams: Vec<SteppedRow>,
    /// If streams are cut: up to when, since the first event, all are whole.
    pub cut_at_ns: Option<u64>,
    /// Calls without an end in the trace.
    pub unfinished_calls: u64,
    /// Ends of calls without a beginning; they are in no row.
    pub orphaned_exits: u64,
    /// Commands whose times are not known.
    pub untimed_commands: u64,
    /// Whether the launcher was killed before it could note what it knew.
    pub manifest_missing: bool,
    /// Largest error seen of a host's time; 0 if not known.
    pub host_clock_error_ns: f64,
    /// How well device times are known.
    pub clock_errors: Vec<ClockError>,
    /// What the tracer itself has cost; none if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<TracingRow>,
    /// How the budget for recording was kept; none if there was none, and where only a part of the trace is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetRow>,
    /// The capture windows, if the run had some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureRow>,
    /// Who called, by API.
    pub apis: Vec<ApiTotals>,
    /// Calls by function.
    pub host: Vec<HostRow>,
    /// Failed calls by function and code.
    pub errors: Vec<ErrorRow>,
    /// Calls without an end by function.
    pub unfinished: Vec<UnfinishedRow>,
    /// Calls of functions that their API's model does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownRow>,
    /// Commands whose call is not known.
    pub commands_without_call: u64,
    /// Commands that began long before their call as reported.
    pub impossible_orders: u64,
    /// Devices with commands; one that several processes use counts once if its
    /// identity is known.
    pub devices: u64,
    /// Queues with commands.
    pub queues: u64,
    /// How long each device was busy; none where only a part of the trace is counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub utilization: Vec<DeviceUseRow>,
    /// Commands by kernel name or kind; with `extended`, by device and queue too.
    pub device: Vec<DeviceRow>,
    /// Commands that move or set memory, by kind.
    pub traffic: Vec<TrafficRow>,
    /// Memory that programs asked for, by device and kind.
    pub memory: Vec<MemoryRow>,
    /// How well the end of that memory is known.
    pub memory_releases: MemoryReleases,
    /// Ranges of the program by domain and name.
    pub ranges: Vec<RangeRow>,
    /// Ranges without an end.
    pub open_ranges: Vec<OpenRangeRow>,
    /// Counters that programs keep themselves, by domain, name and process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRow>,
    /// Probes in the program's code, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeRow>,
    /// Ranges between two of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probe_ranges: Vec<ProbeRangeRow>,
    /// Ends of ranges without a beginning.
    pub unmatched_range_ends: u64,
    /// Operations among ranks, by communicator, operation and type.
    pub collectives: Vec<CollectiveRow>,
    /// Communicators as each rank has them.
    pub communicators: Vec<CommunicatorRow>,
    /// What ranks were in when the trace ends.
    pub unfinished_collectives: Vec<UnfinishedCollectiveRow>,
    /// What devices reported.
    pub telemetry: Vec<TelemetryRow>,
    /// What the host reported.
    pub host_telemetry: Vec<HostTelemetryRow>,
    /// What threads did with their CPUs, if they were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledRow>,
    /// Insides of kernels, if asked for; not in saved sums.
    #[serde(flatten, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub inside: Option<InsideRows>,
    /// Remarks of the tracer.
    pub notes: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn exit<S: serde::Serializer>(exit: &Option<Exit>, s: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let mut map = s.serialize_map(Some(1))?;
    match exit {
        Some(Exit::Code(code)) => map.serialize_entry("code", code)?,
        Some(Exit::Signal(signal)) => map.serialize_entry("signal", signal)?,
        None => {}
    }
    map.end()
}

/// A trace that is counted in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceRow {
    /// The traced program and its arguments.
    pub command: Vec<String>,
    /// The machine's name.
    pub host: String,
    /// From the first event to the last.
    pub duration_ns: u64,
    /// Processes that recorded calls.
    pub processes: u64,
}

/// The largest error of a device's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// The process.
    pub pid: i64,
    /// The device's name or handle.
    pub device: String,
    /// In nanoseconds; none if not known.
    pub error_ns: Option<f64>,
    /// Whether times came in the host's time from the API itself.
    pub host_clock: bool,
    /// Commands that began a little before their call as reported, and were moved.
    pub corrected: u64,
    /// By how much at most.
    pub largest_correction_ns: u64,
    /// The same by so much that they were left as reported.
    pub impossible_order: u64,
}

/// Calls of a function that its API's model does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownRow {
    /// The API.
    pub api: String,
    /// The function.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
}
