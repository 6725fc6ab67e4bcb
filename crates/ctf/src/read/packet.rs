//! The head of a packet: its header and its context.

use super::clock;
use super::decode::{Decoder, State};
use super::error::{DecodeError, PacketDamage};
use super::plan::Node;
use super::trace::Trace;
use super::visit::{FieldRef, FieldVisitor};
use crate::class::{FieldClass, PACKET_MAGIC, Role, StructClass};
use crate::value::Scalar;

/// What the head of a packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInfo {
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// Its size in bytes, with the padding at its end.
    pub size: u64,
    /// Its content in bits, with header and context.
    pub content_bits: u64,
    /// The clock at its begin.
    pub timestamp_begin: Option<u64>,
    /// The clock at its end.
    pub timestamp_end: Option<u64>,
    /// The counter of discarded events, as it stands in the packet.
    pub events_discarded: Option<u64>,
    /// The most that it was so far, this packet included: some tracers' counters go back and forth.
    pub most_discarded: Option<u64>,
    /// By how much that grew since the packet before; it is not known when.
    pub discarded_before: u64,
    /// The number of the packet.
    pub seq_num: Option<u64>,
    /// How many packets are missing between the one before and this.
    pub missing_before: u64,
    /// Which of the streams of this class it belongs to.
    pub stream_instance_id: Option<u64>,
    /// The CPU it was recorded on.
    pub cpu_id: Option<u64>,
}

/// A packet whose head has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub info: PacketInfo,
    /// Position of the stream class.
    pub stream: usize,
    /// Where the context starts, in bits.
    pub context_at: u64,
    /// Where the first event starts.
    pub events_at: u64,
    /// Where decoding ends: the content's end, or the file's.
    pub end: u64,
    /// Whether the file ends before the packet.
    pub cut: bool,
    /// The uuid that it has in place of the trace's.
    pub foreign: Option<[u8; 16]>,
}

/// A head that is damaged, and what could still be read.
#[derive(Debug)]
pub(super) struct BadHead {
    pub damage: PacketDamage,
    /// Whether the file may just end here.
    pub cut: bool,
    /// Bytes, if it says so.
    pub size: Option<u64>,
}

/// The fields with a meaning of their own.
#[derive(Default)]
struct Facts {
    /// Whether names determine the meaning, as in CTF 1.8, or roles.
    by_name: bool,
    numbers: Vec<(&'static str, u64, u32)>,
    uuid: Vec<u8>,
    in_uuid: bool,
    depth: u32,
}

const KNOWN: [&str; 11] = [
    "magic",
    "stream_id",
    "stream_instance_id",
    "content_size",
    "packet_size",
    "timestamp_begin",
    "timestamp_end",
    "events_discarded",
    "packet_seq_num",
    "cpu_id",
    "uuid",
];

/// Returns what CTF 1.8 calls the field with a role.
fn name_of(role: Role) -> Option<&'static str> {
    Some(match role {
        Role::PacketMagicNumber => "magic",
        Role::DataStreamClassId => "stream_id",
        Role::DataStreamId => "stream_instance_id",
        Role::PacketTotalLength => "packet_size",
        Role::PacketContentLength => "content_size",
        Role::DefaultClockTimestamp => "timestamp_begin",
        Role::PacketEndDefaultClockTimestamp => "timestamp_end",
        Role::DiscardedEventRecordCounterSnapshot => "events_discarded",
        Role::PacketSequenceNumber => "packet_seq_num",
        Role::MetadataStreamUuid | Role::EventRecordClassId => return None,
    })
}

impl Facts {
    /// Returns the value of a field and its size in bits.
    fn sized(&self, name: &str) -> Option<(u64, u32)> {
        self.numbers.iter().find(|(n, ..)| *n == name).map(|&(_, value, bits)| (value, bits))
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.sized(name).map(|(value, _)| value)
    }

    /// Returns what the fields say of a packet that starts at `begin`, whose clock is at `now` then;
    /// place and sizes are not filled in.
    fn info(&self, begin: Option<u64>, now: u64) -> PacketInfo {
        PacketInfo {
            timestamp_begin: begin,
            timestamp_end: self.sized("timestamp_end").map(|(end, bits)| clock::update(now, end, bits)),
            events_discarded: self.get("events_discarded"),
            seq_num: self.get("packet_seq_num"),
            stream_instance_id: self.get("stream_instance_id"),
            cpu_id: self.get("cpu_id"),
            ..PacketInfo::default()
        }
    }
}

impl<'t> FieldVisitor<'t> for Facts {
    fn scalar(&mut self, field: FieldRef<'t>, value: Scalar<'t>) {
        if let (FieldClass::Blob(class), Scalar::Bytes(bytes)) = (field.class, value)
            && class.roles.has(Role::MetadataStreamUuid)
        {
            self.uuid = bytes.to_vec();
        }
        let Some(value) = value.as_u64() else { return };
        let class = match field.class {
            FieldClass::Integer(c) => c,
            FieldClass::Enum(c) => &c.container,
            _ => return,
        };
        if !self.by_name {
            let names = class.roles.iter().filter_map(name_of);
            self.numbers.extend(names.map(|name| (name, value, class.size)));
            if field.name == "cpu_id" && self.depth == 0 {
                self.numbers.push(("cpu_id", value, class.size));
            }
        } else if self.in_uuid {
            self.uuid.push(value as u8);
        } else if self.depth == 0
            && let Some(name) = KNOWN.into_iter().find(|n| *n == field.name)
        {
            self.numbers.push((name, value, class.size));
        }
    }

    fn begin_struct(&mut self, _: FieldRef<'t>) {
        self.depth += 1;
    }

    fn end_struct(&mut self, _: FieldRef<'t>) {
        self.depth -= 1;
    }

    fn begin_array(&mut self, field: FieldRef<'t>, len: u64) {
        self.in_uuid = self.depth == 0 && field.name == "uuid" && len == 16;
        self.depth += 1;
    }

    fn end_array(&mut self, _: FieldRef<'t>) {
        self.depth -= 1;
        self.in_uuid = false;
    }
}

/// Decodes a structure of the head and collects what it says.
fn decode<'t>(
    decoder: &mut Decoder<'t, '_>,
    class: Option<&'t StructClass>,
    node: Option<&Node>,
    facts: &mut Facts,
) -> Result<(), DecodeError> {
    let (Some(class), Some(node)) = (class, node) else {
        return Ok(());
    };
    let start = decoder.pos;
    decoder.skip(node)?;
    let end = std::mem::replace(&mut decoder.pos, start);
    let live = std::mem::replace(&mut decoder.live, false);
    decoder.visit_fields(class, node, facts)?;
    decoder.pos = end;
    decoder.live = live;
    Ok(())
}

/// Returns whether a header is not one of this trace.
fn foreign(uuid: Option<[u8; 16]>, facts: &Facts) -> Option<PacketDamage> {
    if let Some(found) = facts.get("magic").filter(|&m| m != u64::from(PACKET_MAGIC)) {
        return Some(PacketDamage::Magic { found });
    }
    let found = <[u8; 16]>::try_from(facts.uuid.as_slice()).ok()?;
    uuid.filter(|expected| *expected != found).map(|_| PacketDamage::Uuid { found })
}

/// Reads the head of the packet that `data` starts with, at `offset` of the
/// stream. `complete` is whether `data` is all that follows.
pub(super) fn head(
    trace: &Trace,
    data: &[u8],
    offset: u64,
    complete: bool,
    state: &mut State,
) -> Result<Head, BadHead> {
    let available = (data.len() as u64).saturating_mul(8);
    let short = |error| BadHead {
        damage: PacketDamage::Decode(error),
        cut: matches!(error, DecodeError::PastEnd { .. } | DecodeError::Unterminated { .. }),
        size: None,
    };
    // Room for any stream's slots: which one it is comes out on the way.
    let most = trace.plans.iter().map(|p| p.slots).max().unwrap_or(0);
    state.slots.resize_with(most, Default::default);
    state.slots.iter().for_each(|slot| slot.set(None));

    let class = trace.class();
    let mut facts = Facts { by_name: class.major < 2, ..Facts::default() };
    let first = |live| Decoder { data, pos: 0, end: available, state, live, empty: 0 };
    decode(&mut first(false), class.packet_header.as_ref(), trace.header.as_ref(), &mut facts)
        .map_err(short)?;
    // A header of somebody else is not the end: its size may still lead on.
    let foreign = foreign(class.uuid, &facts);
    let short = |error| match foreign {
        Some(damage) => BadHead { damage, cut: false, size: None },
        None => short(error),
    };
    let id = facts.get("stream_id");
    let stream = match id {
        Some(id) => class.streams.iter().position(|s| s.id == id),
        None => (class.streams.len() == 1).then_some(0),
    };
    let Some(stream) = stream else {
        let damage = foreign.unwrap_or(PacketDamage::UnknownStream { id: id.unwrap_or(0) });
        return Err(BadHead { damage, cut: false, size: None });
    };
    let (plan, stream_class) = (&trace.plans[stream], &class.streams[stream]);

    // Once more with the slots of the stream, now that it is known.
    let mut decoder = first(true);
    if let Some(header) = &plan.header {
        decoder.skip(header).map_err(short)?;
    }
    let context_at = decoder.pos;
    decode(&mut decoder, stream_class.packet_context.as_ref(), plan.context.as_ref(), &mut facts)
        .map_err(short)?;
    let events_at = decoder.pos;

    let sizes = (facts.get("content_size"), facts.get("packet_size"));
    let (content, packet) = match sizes {
        (Some(content), Some(packet)) => (content, packet),
        (Some(one), None) | (None, Some(one)) => (one, one),
        // Without sizes the file is one packet.
        (None, None) if complete => (available, available),
        (None, None) => return Err(short(decoder.past_end(u64::MAX))),
    };
    let size = Some(packet / 8).filter(|&size| size > 0 && packet.is_multiple_of(8));
    let Some(bytes) = size.filter(|_| content <= packet && events_at <= content) else {
        let damage = PacketDamage::Sizes { content, packet, head: events_at };
        let damage = foreign.unwrap_or(damage);
        return Err(BadHead { damage, cut: false, size });
    };
    // What else the header says fits this trace: a uuid alone is no reason to lose the events.
    let foreign = match foreign {
        Some(PacketDamage::Uuid { found }) => Some(found),
        Some(damage) => return Err(BadHead { damage, cut: false, size }),
        None => None,
    };
    let now = state.clock.get();
    let begin = facts.get("timestamp_begin").map(|begin| if plan.clock.is_some() { now } else { begin });
    let info = PacketInfo { offset, size: bytes, content_bits: content, ..facts.info(begin, now) };
    let cut = bytes > data.len() as u64;
    Ok(Head { info, stream, context_at, events_at, end: content.min(available), cut, foreign })
}
