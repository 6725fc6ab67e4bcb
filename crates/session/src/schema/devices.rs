//! Events of devices: their classes, and their bytes beside them.
//!
//! Commands and what they refer to are in two files. `device-PID` has the
//! commands, which name queue and function by a number; `device-PID-names` has
//! the definitions of these numbers. Numbers are never given twice in a trace.
//!
//! Times of a command are told as distances to its start, which is the event's
//! own time. They have 48 bits with a sign, that is 39 hours either way.

use hetrace_ctf::class::{
    EnumClass, EnumMapping, FieldClass, FieldPath, IntegerClass, StreamClass, StructClass,
};
use hetrace_ctf::write::form;
use hetrace_model::Model;
use hetrace_ring::abi::{COMMAND_KINDS, DeviceRecord, FunctionRecord, MEMORY_KINDS, QueueRecord};

use super::{DEVICE_STREAM, event, objects};

/// Event of a queue: the first definition.
pub const QUEUE_EVENT: u16 = 64;
/// Event of a command without times.
pub const UNTIMED_EVENT: u16 = 65;
/// Event of a device.
pub const DEVICE_EVENT: u16 = 66;
/// Event of a device's property.
pub const PROPERTY_EVENT: u16 = 67;
/// Event of a function that devices run.
pub const FUNCTION_EVENT: u16 = 68;
/// Event of how often a function was launched.
pub const LAUNCHES_EVENT: u16 = 69;

/// The kind whose events have a function and a geometry.
const KERNEL: &str = "kernel";
/// A distance that is not known, or too long for 48 bits.
const UNKNOWN: i64 = -(1 << 47);
/// A number too large for 48 bits.
const TOO_LARGE: u64 = (1 << 48) - 1;

/// The stream class of commands, objects and definitions.
pub fn stream(models: &[&Model]) -> StreamClass {
    let mut stream: StreamClass = form::stream_class(u64::from(DEVICE_STREAM));
    for (id, kind) in COMMAND_KINDS.iter().enumerate() {
        let fields = if *kind == KERNEL { kernel_class() } else { transfer_class() };
        stream.events.push(event(id as u16, &format!("device:{kind}"), fields));
    }
    for (id, name, fields) in [
        (QUEUE_EVENT, "queue", queue_class()),
        (UNTIMED_EVENT, "untimed", untimed_class()),
        (DEVICE_EVENT, "device", device_class()),
        (PROPERTY_EVENT, "property", property_class()),
        (FUNCTION_EVENT, "function", function_class()),
        (LAUNCHES_EVENT, "launches", launches_class()),
    ] {
        stream.events.push(event(id, &format!("device:{name}"), fields));
    }
    stream.events.extend(objects::classes(models));
    stream
}

fn uint(bits: u32) -> IntegerClass {
    IntegerClass::unsigned(bits)
}

/// Adds a field of as many elements as the 8 bits before it say.
fn counted(fields: StructClass, name: &str, element: IntegerClass) -> StructClass {
    let length = format!("_{name}_length");
    fields
        .field(length.clone(), uint(8))
        .field(name, FieldClass::sequence(FieldPath::relative(length), element))
}

fn names(names: &[&str]) -> FieldClass {
    let mapping = |(value, label): (usize, &&str)| {
        let value = value as i128;
        EnumMapping { label: (*label).to_owned(), start: value, end: value }
    };
    let mappings = names.iter().enumerate().map(mapping).collect();
    FieldClass::Enum(EnumClass { container: uint(8), mappings })
}

fn cause_class() -> StructClass {
    StructClass::default()
        .field("queue", uint(32))
        .field("cause_tid", uint(32))
        .field("cause_before", IntegerClass::signed(48))
}

fn timed_class() -> StructClass {
    cause_class()
        .field("queued_before", IntegerClass::signed(48))
        .field("submitted_before", IntegerClass::signed(48))
        .field("duration", IntegerClass::signed(48))
}

/// What few commands have: a byte if they do not.
fn rare_class(fields: StructClass) -> StructClass {
    let fields = counted(fields, "graph", uint(32));
    // A node belongs to a graph: both are there or none.
    let length = FieldPath::relative("_graph_length".to_owned());
    let fields = fields.field("node", FieldClass::sequence(length, uint(64)));
    counted(fields, "weight", uint(64))
}

fn kernel_class() -> StructClass {
    let fields = timed_class().field("function", uint(32));
    let fields = counted(fields, "status", IntegerClass::signed(32));
    let fields = counted(fields, "shared", uint(32));
    let fields = counted(fields, "offset", uint(48));
    let fields = counted(fields, "global", uint(48));
    let fields = counted(fields, "local", uint(32));
    let fields = counted(fields, "cluster", uint(16));
    rare_class(fields)
}

fn transfer_class() -> StructClass {
    let fields = timed_class()
        .field("bytes", uint(48))
        .field("from", names(MEMORY_KINDS))
        .field("to", names(MEMORY_KINDS));
    let fields = counted(fields, "status", IntegerClass::signed(32));
    let fields = counted(fields, "function", uint(32));
    let fields = counted(fields, "peer", uint(32));
    rare_class(fields)
}

fn untimed_class() -> StructClass {
    let fields = StructClass::default().field("kind", names(COMMAND_KINDS));
    let mut fields = cause_class().fields.into_iter().fold(fields, |all, f| all.field(f.name, f.class));
    fields = fields.field("bytes", uint(48)).field("times_error", IntegerClass::signed(32));
    let fields = counted(fields, "status", IntegerClass::signed(32));
    counted(fields, "function", uint(32))
}

fn queue_class() -> StructClass {
    StructClass::default()
        .field("queue", uint(32))
        .field("handle", uint(64).hex())
        .field("context", uint(64).hex())
        .field("device", uint(32))
        .field("api", FieldClass::string())
        .field("properties", uint(64).hex())
        .field("priority", IntegerClass::signed(32))
        .field("number", uint(32))
}

fn device_class() -> StructClass {
    StructClass::default()
        .field("device", uint(32))
        .field("handle", uint(64).hex())
        .field("ordinal", uint(32))
        .field("name", FieldClass::string())
        .field("uuid", FieldClass::string())
        .field("compute_units", uint(32))
        .field("clock_khz", uint(32))
        .field("memory_khz", uint(32))
        .field("bus_bits", uint(32))
        .field("memory_bytes", uint(64))
        .field("api", FieldClass::string())
}

fn property_class() -> StructClass {
    StructClass::default()
        .field("device", uint(32))
        .field("name", FieldClass::string())
        .field("value", uint(64))
}

fn function_class() -> StructClass {
    StructClass::default()
        .field("function", uint(32))
        .field("name", FieldClass::string())
        .field("registers", uint(32))
        .field("shared", uint(32))
        .field("local", uint(32))
        .field("constant", uint(32))
        .field("max_threads", uint(32))
}

fn launches_class() -> StructClass {
    StructClass::default().field("function", uint(32)).field("launches", uint(64)).field("timed", uint(64))
}

/// A command as it is written: times of the host, numbers instead of handles.
#[derive(Debug, Clone, Copy, Default)]
pub struct Command {
    /// Index into [`COMMAND_KINDS`]; what is beyond is `other`.
    pub kind: u8,
    /// Number of its queue.
    pub queue: u32,
    /// Number of its function; 0 if it has none.
    pub function: u32,
    /// Number of the other device; 0 if there is none.
    pub peer: u32,
    /// Thread that enqueued it; 0 if it is not known.
    pub cause_tid: u32,
    /// When the call began, in nanoseconds; none if it is not known.
    pub cause: Option<u64>,
    /// Queued, submitted, started, ended, in nanoseconds.
    pub times: Option<[u64; 4]>,
    /// Its time if it has no others.
    pub seen: u64,
}

/// What of a record goes into the event as it is.
type Record = hetrace_ring::abi::CommandRecord;

impl Command {
    /// The event's time, number and fields.
    pub fn event(&self, record: &Record) -> (u64, u16, Vec<u8>) {
        let known = usize::from(self.kind) < COMMAND_KINDS.len();
        let kind = if known { self.kind } else { 0 };
        let mut body = Vec::with_capacity(96);
        let Some([queued, submitted, start, end]) = self.times else {
            body.push(kind);
            self.put_cause(&mut body, self.seen);
            put48(&mut body, record.bytes);
            body.extend_from_slice(&record.times_error.to_le_bytes());
            put_one(&mut body, record.status != 0, &record.status.to_le_bytes());
            put_one(&mut body, self.function != 0, &self.function.to_le_bytes());
            return (self.seen, UNTIMED_EVENT, body);
        };
        self.put_cause(&mut body, start);
        put_distance(&mut body, start, Some(queued));
        put_distance(&mut body, start, Some(submitted));
        put_distance(&mut body, end, Some(start));
        let function = self.function.to_le_bytes();
        let kernel = COMMAND_KINDS.get(usize::from(kind)) == Some(&KERNEL);
        if kernel {
            body.extend_from_slice(&function);
        } else {
            put48(&mut body, record.bytes);
            // A kind of memory that has no name yet is an unknown one.
            let memory = |kind: u8| if usize::from(kind) < MEMORY_KINDS.len() { kind } else { 0 };
            body.extend_from_slice(&[memory(record.from), memory(record.to)]);
        }
        put_one(&mut body, record.status != 0, &record.status.to_le_bytes());
        if kernel {
            put_one(&mut body, record.shared != 0, &record.shared.to_le_bytes());
            put_geometry(&mut body, record);
        } else {
            put_one(&mut body, self.function != 0, &function);
            put_one(&mut body, self.peer != 0, &self.peer.to_le_bytes());
        }
        let in_graph = record.graph != 0 || record.node != 0;
        put_one(&mut body, in_graph, &record.graph.to_le_bytes());
        if in_graph {
            body.extend_from_slice(&record.node.to_le_bytes());
        }
        put_one(&mut body, record.weight > 1, &record.weight.to_le_bytes());
        (start, u16::from(kind), body)
    }

    fn put_cause(&self, body: &mut Vec<u8>, start: u64) {
        body.extend_from_slice(&self.queue.to_le_bytes());
        body.extend_from_slice(&self.cause_tid.to_le_bytes());
        put_distance(body, start, self.cause);
    }
}

/// A sequence of one element, or of none.
fn put_one(body: &mut Vec<u8>, there: bool, bytes: &[u8]) {
    body.push(u8::from(there));
    if there {
        body.extend_from_slice(bytes);
    }
}

fn put_geometry(body: &mut Vec<u8>, record: &Record) {
    let dimensions = usize::from(record.dimensions).min(3);
    let [offset, global, local] = &record.geometry;
    for (row, is_local) in [(offset, false), (global, false), (local, true)] {
        // No offset and no local size are as good as none given.
        let shown = if row.iter().all(|n| *n == 0) { 0 } else { dimensions };
        body.push(shown as u8);
        for size in row.iter().take(shown) {
            if is_local {
                let size = u32::try_from(*size).unwrap_or(u32::MAX);
                body.extend_from_slice(&size.to_le_bytes());
            } else {
                put48(body, *size);
            }
        }
    }
    let shown = if record.cluster == [0; 3] { 0 } else { dimensions };
    body.push(shown as u8);
    for size in record.cluster.iter().take(shown) {
        body.extend_from_slice(&size.to_le_bytes());
    }
}

fn put48(body: &mut Vec<u8>, value: u64) {
    body.extend_from_slice(&value.min(TOO_LARGE).to_le_bytes()[..6]);
}

/// How long `before` is before `time`.
fn put_distance(body: &mut Vec<u8>, time: u64, before: Option<u64>) {
    let distance = before.map(|before| i128::from(time) - i128::from(before));
    let distance = distance.and_then(|d| i64::try_from(d).ok()).filter(|d| d.abs() < -UNKNOWN);
    body.extend_from_slice(&distance.unwrap_or(UNKNOWN).to_le_bytes()[..6]);
}

/// The fields of a queue's definition.
pub fn queue(number: u32, device: u32, api: &str, record: &QueueRecord) -> Vec<u8> {
    let mut body = Vec::with_capacity(64);
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&record.queue.to_le_bytes());
    body.extend_from_slice(&record.context.to_le_bytes());
    body.extend_from_slice(&device.to_le_bytes());
    objects::text(&mut body, api.as_bytes());
    body.extend_from_slice(&record.properties.to_le_bytes());
    body.extend_from_slice(&record.priority.to_le_bytes());
    body.extend_from_slice(&record.number.to_le_bytes());
    body
}

/// The fields of a device's definition.
pub fn device(number: u32, name: &[u8], api: &str, record: &DeviceRecord) -> Vec<u8> {
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&record.device.to_le_bytes());
    body.extend_from_slice(&record.ordinal.to_le_bytes());
    objects::text(&mut body, name);
    let uuid = uuid::Uuid::from_bytes(record.uuid);
    let uuid = if uuid.is_nil() { String::new() } else { uuid.to_string() };
    objects::text(&mut body, uuid.as_bytes());
    for word in [record.compute_units, record.clock_khz, record.memory_khz, record.bus_bits] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&record.memory_bytes.to_le_bytes());
    objects::text(&mut body, api.as_bytes());
    body
}

/// The fields of a property.
pub fn property(device: u32, name: &[u8], value: u64) -> Vec<u8> {
    let mut body = device.to_le_bytes().to_vec();
    objects::text(&mut body, name);
    body.extend_from_slice(&value.to_le_bytes());
    body
}

/// How often a function was launched, and how often that was timed.
pub fn launches(function: u32, launches: u64, timed: u64) -> Vec<u8> {
    let mut body = function.to_le_bytes().to_vec();
    body.extend_from_slice(&launches.to_le_bytes());
    body.extend_from_slice(&timed.to_le_bytes());
    body
}

/// The fields of a function's definition.
pub fn function(number: u32, name: &[u8], record: &FunctionRecord) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    objects::text(&mut body, name);
    let FunctionRecord { registers, shared, local, constant, max_threads, .. } = *record;
    for word in [registers, shared, local, constant, max_threads] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body
}
