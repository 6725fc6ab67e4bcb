//! The fixed part of the streams: as LTTng's kernel tracer writes them, classes and bytes side by side.
//!
//! ```text
//! packet header     0 magic u32   4 uuid [u8; 16]   20 stream_id u32   24 stream_instance_id u64
//! packet context   32 timestamp_begin u64         40 timestamp_end u64
//!                  48 content_size u64, bits      56 packet_size u64, bits
//!                  64 packet_seq_num u64          72 events_discarded u64      80 cpu_id u32
//! event header      0 id u16        2 timestamp u32
//!               or  0 65535 u16     2 id u32    6 timestamp u64
//! event context     0 pid i32         4 tid i32       who ran on the CPU; 0 where that is nobody's
//! ```
//! All little-endian and at bytes. The short form of an event's header has the low 32 bits of the clock;
//! the long one comes where these have gone around since the event before.

use std::sync::Arc;

use crate::perf::record::Who;

use hetrace_ctf::class::{
    ByteOrder, ClockClass, EnumClass, EnumMapping, EnvValue, Field, FieldClass, FieldPath, IntegerClass,
    PACKET_MAGIC, StreamClass, StructClass, TraceClass, VariantClass,
};

/// Bytes before the first event of a packet.
pub const PREAMBLE: usize = 84;
/// The id in the short header by which the long one is known.
pub const EXTENDED: u16 = u16::MAX;
/// The only stream class.
pub(crate) const STREAM: u64 = 0;
/// The version of LTTng's tracer whose events these are like: readers look at it for names of events.
const LIKE: [i64; 3] = [2, 13, 0];

/// Where and with what a trace is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The machine's name.
    pub host: String,
    /// Its kernel's release.
    pub release: String,
    /// Its kernel's version.
    pub version: String,
    /// What recorded it; `hetrace 0.1.0`.
    pub recorded_by: String,
    /// By which means.
    pub recorded_with: String,
    /// Whose events: `tree` or `system`.
    pub scope: String,
}

/// Returns the trace's class, without events.
pub fn trace_class(uuid: [u8; 16], clock: ClockClass, environment: &Environment) -> TraceClass {
    let name = clock.name.clone();
    let mut trace = TraceClass {
        uuid: Some(uuid),
        packet_header: Some(packet_header()),
        clocks: vec![clock],
        ..TraceClass::new(ByteOrder::Little)
    };
    let text = |v: &str| EnvValue::Str(v.to_owned());
    let [major, minor, patch] = LIKE.map(EnvValue::Int);
    trace.env = [
        ("hostname", text(&environment.host)),
        ("domain", text("kernel")),
        ("sysname", text("Linux")),
        ("kernel_release", text(&environment.release)),
        ("kernel_version", text(&environment.version)),
        ("tracer_name", text("lttng-modules")),
        ("tracer_major", major),
        ("tracer_minor", minor),
        ("tracer_patchlevel", patch),
        ("trace_buffering_scheme", text("global")),
        // What readers of LTTng's traces know it by stands above; this is who wrote it.
        ("recorded_by", text(&environment.recorded_by)),
        ("recorded_with", text(&environment.recorded_with)),
        ("recorded_scope", text(&environment.scope)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    trace.streams.push(StreamClass {
        id: STREAM,
        packet_context: Some(packet_context(&name)),
        event_header: Some(event_header(&name)),
        event_context: Some(event_context()),
        ..StreamClass::default()
    });
    trace
}

fn packet_header() -> StructClass {
    StructClass::default()
        .field("magic", IntegerClass::unsigned(32).hex())
        .field("uuid", FieldClass::array(16, IntegerClass::unsigned(8)))
        .field("stream_id", IntegerClass::unsigned(32))
        .field("stream_instance_id", IntegerClass::unsigned(64))
}

fn packet_context(clock: &str) -> StructClass {
    StructClass::default()
        .field("timestamp_begin", IntegerClass::unsigned(64).clock(clock))
        .field("timestamp_end", IntegerClass::unsigned(64).clock(clock))
        .field("content_size", IntegerClass::unsigned(64))
        .field("packet_size", IntegerClass::unsigned(64))
        .field("packet_seq_num", IntegerClass::unsigned(64))
        .field("events_discarded", IntegerClass::unsigned(64))
        .field("cpu_id", IntegerClass::unsigned(32))
}

/// As LTTng's users add it by `lttng add-context --kernel --type=pid --type=tid`.
fn event_context() -> StructClass {
    StructClass::default().field("pid", IntegerClass::signed(32)).field("tid", IntegerClass::signed(32))
}

fn event_header(clock: &str) -> StructClass {
    let mapping = |label: &str, start: u16, end: u16| EnumMapping {
        label: label.to_owned(),
        start: start.into(),
        end: end.into(),
    };
    let mappings: Arc<[_]> =
        [mapping("compact", 0, EXTENDED - 1), mapping("extended", EXTENDED, EXTENDED)].into();
    let short = StructClass::default().field("timestamp", IntegerClass::unsigned(32).clock(clock));
    let long = StructClass::default()
        .field("id", IntegerClass::unsigned(32))
        .field("timestamp", IntegerClass::unsigned(64).clock(clock));
    let option = |name: &str, class: StructClass| Field { name: name.to_owned(), class: class.into() };
    let options = vec![option("compact", short), option("extended", long)];
    let header = StructClass { min_align: 8, ..StructClass::default() };
    header.field("id", FieldClass::Enum(EnumClass { container: IntegerClass::unsigned(16), mappings })).field(
        "v",
        FieldClass::Variant(VariantClass { tag: FieldPath::relative("id"), options, ranges: None }),
    )
}

/// Values of a packet's header and context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preamble {
    /// Identity of the trace.
    pub uuid: [u8; 16],
    /// The clock not after the first event.
    pub begin: u64,
    /// The clock not before the last event.
    pub end: u64,
    /// Bytes of the packet.
    pub bytes: u64,
    /// Counts the packets of the stream.
    pub number: u64,
    /// Counts the events dropped since the stream began.
    pub discarded: u64,
    /// The CPU.
    pub cpu: u32,
}

impl Preamble {
    /// Returns its bytes.
    pub fn pack(&self) -> [u8; PREAMBLE] {
        let mut bytes = [0; PREAMBLE];
        let bits = self.bytes.saturating_mul(8);
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&PACKET_MAGIC.to_le_bytes());
        put(&self.uuid);
        put(&(STREAM as u32).to_le_bytes());
        put(&u64::from(self.cpu).to_le_bytes());
        for number in [self.begin, self.end, bits, bits, self.number, self.discarded] {
            put(&number.to_le_bytes());
        }
        put(&self.cpu.to_le_bytes());
        bytes
    }
}

/// Appends an event's context: the thread that ran.
pub fn put_context(into: &mut Vec<u8>, who: Who) {
    // One copy, as it is for each event.
    let context = u64::from(who.pid) | u64::from(who.tid) << 32;
    into.extend_from_slice(&context.to_le_bytes());
}

/// Appends an event's header. `last` is the time of the event before it in its packet, or at which the
/// packet begins.
pub fn put_header(into: &mut Vec<u8>, id: u16, time: u64, last: u64) {
    let low = (time as u32).to_le_bytes();
    if time.wrapping_sub(last) < 1 << 32 {
        let ([a, b], [c, d, e, f]) = (id.to_le_bytes(), low);
        into.extend_from_slice(&[a, b, c, d, e, f]);
    } else {
        into.extend_from_slice(&EXTENDED.to_le_bytes());
        into.extend_from_slice(&u32::from(id).to_le_bytes());
        into.extend_from_slice(&time.to_le_bytes());
    }
}
