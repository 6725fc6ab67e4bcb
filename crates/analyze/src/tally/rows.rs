//! The tables as data; serialized, they are `tally --json`.

use serde::Serialize;

use crate::trace::Exit;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// All tables of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The traced program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How it ended, if the launcher saw it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exit")]
    pub exit: Option<Exit>,
    /// From the first event to the last.
    pub duration_ns: u64,
    /// Events lost while recording.
    pub lost_events: u64,
    /// Calls that these losses concern, wholly or in part.
    pub lost_calls: u64,
    /// Commands on devices lost while recording.
    pub lost_device_commands: u64,
    /// Commands that were under way when the program ended.
    pub commands_under_way: u64,
    /// Bytes that could not be written to disk.
    pub unwritten_bytes: u64,
    /// Bytes of rings that made no sense.
    pub damaged_bytes: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// These places, in words; at most 16.
    pub damages: Vec<String>,
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
    /// Who called, by API.
    pub apis: Vec<ApiTotals>,
    /// Calls by function.
    pub host: Vec<HostRow>,
    /// Failed calls by function and code.
    pub errors: Vec<ErrorRow>,
    /// Calls without an end by function.
    pub unfinished: Vec<UnfinishedRow>,
    /// Devices with commands.
    pub devices: u64,
    /// Queues with commands.
    pub queues: u64,
    /// Commands by kernel name or kind; with `extended`, by device and queue too.
    pub device: Vec<DeviceRow>,
    /// Commands that move or set memory, by kind.
    pub traffic: Vec<TrafficRow>,
    /// Remarks of the tracer.
    pub notes: Vec<String>,
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

/// The largest error of a device's times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockError {
    /// The process.
    pub pid: i64,
    /// The device's name or handle.
    pub device: String,
    /// In nanoseconds; none if not known.
    pub error_ns: Option<f64>,
}

/// Who called an API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiTotals {
    /// The API.
    pub api: String,
    /// How people spell it; its name where the model does not say.
    pub title: String,
    /// Processes with a call of it.
    pub processes: u64,
    /// Threads with a call of it.
    pub threads: u64,
    /// All calls.
    pub calls: u64,
    /// Time in successful calls outside of other recorded calls.
    pub self_ns: u64,
}

/// The calls of a function. Times are those of successful calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRow {
    /// The function.
    pub name: String,
    /// Its API.
    pub api: String,
    /// All calls that ended.
    pub calls: u64,
    /// Of these, calls that were recorded as a run of equal ones.
    pub folded: u64,
    /// Time in them.
    pub total_ns: u64,
    /// Time in them outside of other recorded calls.
    pub self_ns: u64,
    /// Average of the successful ones.
    pub avg_ns: f64,
    /// The shortest; of a run of equal calls, their average.
    pub min_ns: u64,
    /// The longest; of a run of equal calls, their average.
    pub max_ns: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in calls that failed.
    pub error_ns: u64,
}

/// Calls of a function that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorRow {
    /// The function.
    pub name: String,
    /// Its API.
    pub api: String,
    /// The code's name, or the code.
    pub error: String,
    /// The code.
    pub code: i64,
    /// How often.
    pub calls: u64,
}

/// Calls of a function that have no end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnfinishedRow {
    /// The function.
    pub name: String,
    /// Its API.
    pub api: String,
    /// How many.
    pub calls: u64,
    /// Of these, how many were still running when the trace ends.
    pub running: u64,
    /// Of these, how many are missing their end because it was lost.
    pub lost: u64,
}

/// Commands of one name. Times are those of successful commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRow {
    /// The kernel's name, or the kind of command.
    pub name: String,
    /// The kind of command.
    pub kind: String,
    /// The device's name; only if extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The queue's process and handle; only if extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// All commands.
    pub calls: u64,
    /// Of these, commands whose times are not known.
    pub untimed: u64,
    /// Time on the device.
    pub total_ns: u64,
    /// The same: commands do not nest.
    pub self_ns: u64,
    /// Average of those with times.
    pub avg_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Bytes moved or set.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
}

/// Commands of one kind that move or set memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficRow {
    /// The kind.
    pub name: String,
    /// All commands.
    pub calls: u64,
    /// Bytes of the successful ones.
    pub bytes: u64,
    /// Time on the device.
    pub total_ns: u64,
    /// The same: commands do not nest.
    pub self_ns: u64,
    /// Average of those with times.
    pub avg_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Bytes per second of the commands with times; none without a time.
    pub bytes_per_second: Option<f64>,
}
