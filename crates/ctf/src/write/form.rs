//! The fixed part of the streams that hetrace writes: classes and bytes side by side.
//!
//! ```text
//! packet header           0 magic u32   4 uuid [u8; 16]   20 stream_id u32   24 stream_instance_id u64
//! packet context         32 timestamp_begin u64         40 timestamp_end u64
//!                        48 content_size u64, bits      56 packet_size u64, bits
//!                        64 packet_seq_num u64          72 events_discarded u64
//!                        80 vpid i32    84 vtid i32     88 procname [u8; 16]
//! event header            0 id u16        2 timestamp u32
//! ```
//! All little-endian and at bytes. A `timestamp` is the low 32 bits of the clock,
//! which wrap after 4.29 s, so a packet ends before a gap of [`MAX_GAP`]: the next
//! one's `timestamp_begin` shows all bits.

use crate::class::{
    ByteOrder, ClockClass, FieldClass, IntegerClass, PACKET_MAGIC, StreamClass, StructClass, TraceClass,
};

/// The name of the clock: LTTng's, so that readers merge both.
pub const CLOCK: &str = "monotonic";

/// Bytes before the first event of a packet.
pub const PREAMBLE_LEN: usize = 104;

/// Bits of the event id.
pub const ID_BITS: u32 = 16;

/// Bits of the clock in an event header: 4.29 seconds of nanoseconds.
pub const TIMESTAMP_BITS: u32 = 32;

/// Bytes of an event header.
pub const HEADER_LEN: usize = 6;

/// Nanoseconds that an event has to come less after the one before it in its
/// packet: half of what the bits show, so that a reader can distinguish late from early.
pub const MAX_GAP: u64 = 1 << (TIMESTAMP_BITS - 1);

/// Length of the name of a process with its NULs.
pub const PROCNAME_LEN: usize = 16;

const NS: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC of a boot. `offset_ns` is what has to be added for the time
/// since the Unix epoch.
pub fn clock_class(boot_id: [u8; 16], offset_ns: i64) -> ClockClass {
    ClockClass {
        uuid: Some(boot_id),
        description: Some("Monotonic Clock".into()),
        // What LTTng's clocks are taken for; readers merge only clocks that agree.
        absolute: true,
        offset_seconds: offset_ns.div_euclid(NS),
        offset: offset_ns.rem_euclid(NS) as u64,
        ..ClockClass::new(CLOCK, NS as u64)
    }
}

/// Returns what each packet starts with.
pub fn packet_header_class() -> StructClass {
    StructClass::default()
        .field("magic", IntegerClass::unsigned(32).hex())
        .field("uuid", FieldClass::array(16, IntegerClass::unsigned(8)))
        .field("stream_id", IntegerClass::unsigned(32))
        .field("stream_instance_id", IntegerClass::unsigned(64))
}

/// Returns what follows the packet header.
pub fn packet_context_class() -> StructClass {
    StructClass::default()
        .field("timestamp_begin", IntegerClass::unsigned(64).clock(CLOCK))
        .field("timestamp_end", IntegerClass::unsigned(64).clock(CLOCK))
        .field("content_size", IntegerClass::unsigned(64))
        .field("packet_size", IntegerClass::unsigned(64))
        .field("packet_seq_num", IntegerClass::unsigned(64))
        .field("events_discarded", IntegerClass::unsigned(64))
        .field("vpid", IntegerClass::signed(32))
        .field("vtid", IntegerClass::signed(32))
        .field("procname", FieldClass::array(PROCNAME_LEN as u64, IntegerClass::character()))
}

/// Returns what each event starts with.
pub fn event_header_class() -> StructClass {
    StructClass::default()
        .field("id", IntegerClass::unsigned(ID_BITS))
        .field("timestamp", IntegerClass::unsigned(TIMESTAMP_BITS).clock(CLOCK))
}

/// Returns a stream of this form without events.
pub fn stream_class(id: u64) -> StreamClass {
    StreamClass {
        id,
        packet_context: Some(packet_context_class()),
        event_header: Some(event_header_class()),
        ..StreamClass::default()
    }
}

/// Returns a trace of this form without streams.
pub fn trace_class(uuid: [u8; 16], clock: ClockClass) -> TraceClass {
    TraceClass {
        uuid: Some(uuid),
        packet_header: Some(packet_header_class()),
        clocks: vec![clock],
        ..TraceClass::new(ByteOrder::Little)
    }
}

/// Values of a packet's header and context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketPreamble {
    /// Identity of the trace.
    pub uuid: [u8; 16],
    /// The stream class.
    pub stream_id: u32,
    /// Which stream of that class.
    pub stream_instance_id: u64,
    /// The clock not after the first event.
    pub timestamp_begin: u64,
    /// The clock not before the last event.
    pub timestamp_end: u64,
    /// Bits up to the end of the last event.
    pub content_bits: u64,
    /// Bits up to the next packet.
    pub packet_bits: u64,
    /// Counts the packets of the stream.
    pub seq_num: u64,
    /// Counts the events discarded since the stream began.
    pub events_discarded: u64,
    /// Process id.
    pub vpid: i32,
    /// Thread id.
    pub vtid: i32,
    /// Name of the process, filled up with NULs.
    pub procname: [u8; PROCNAME_LEN],
}

/// Returns the bytes of a packet's header and context, as [`packet_header_class`] and
/// [`packet_context_class`] describe them.
pub fn stream_preamble(p: &PacketPreamble) -> [u8; PREAMBLE_LEN] {
    let mut bytes = [0; PREAMBLE_LEN];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &PACKET_MAGIC.to_le_bytes());
    put(4, &p.uuid);
    put(20, &p.stream_id.to_le_bytes());
    put(24, &p.stream_instance_id.to_le_bytes());
    put(32, &p.timestamp_begin.to_le_bytes());
    put(40, &p.timestamp_end.to_le_bytes());
    put(48, &p.content_bits.to_le_bytes());
    put(56, &p.packet_bits.to_le_bytes());
    put(64, &p.seq_num.to_le_bytes());
    put(72, &p.events_discarded.to_le_bytes());
    put(80, &p.vpid.to_le_bytes());
    put(84, &p.vtid.to_le_bytes());
    put(88, &p.procname);
    bytes
}

/// An event header, as [`event_header_class`] describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// The event class.
    pub id: u16,
    /// The clock; only its low 32 bits are kept.
    pub timestamp: u64,
}

impl EventHeader {
    /// Bytes of a header.
    pub const LEN: usize = HEADER_LEN;

    /// Returns the bytes of the header.
    #[inline]
    pub fn pack(self) -> [u8; HEADER_LEN] {
        let [i0, i1] = self.id.to_le_bytes();
        let [t0, t1, t2, t3, ..] = self.timestamp.to_le_bytes();
        [i0, i1, t0, t1, t2, t3]
    }

    /// Returns the header of these bytes, with the low 32 bits of the clock.
    #[inline]
    pub fn unpack([i0, i1, t0, t1, t2, t3]: [u8; HEADER_LEN]) -> Self {
        Self { id: u16::from_le_bytes([i0, i1]), timestamp: u32::from_le_bytes([t0, t1, t2, t3]).into() }
    }
}
