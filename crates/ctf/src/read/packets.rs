//! One data stream file, packet by packet: for those who copy packets as they are.

use super::decode::Decoder;
use super::error::{DecodeError, StreamError};
use super::packet::{Head, PacketInfo};
use super::stream::{Event, Losses, StreamReader};
use super::trace::Trace;

use super::visit::TreeBuilder;
use crate::class::StreamClass;
use crate::value::Value;

/// Reads one data stream file by packets, and the events of those that are asked for.
///
/// Packets whose events nobody asks for cost no more than their heads.
#[derive(Debug)]
pub struct PacketReader<'t> {
    reader: StreamReader<'t>,
    /// Where the next packet starts, while the reader must not go there by itself.
    next: u64,
    /// The packet, which the reader forgets at its end.
    head: Option<Head>,
}

/// A packet, before its events.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'t> {
    /// What its head says.
    pub info: PacketInfo,
    /// What it is a packet of.
    pub class: &'t StreamClass,
    /// The position of that class in the trace's.
    pub stream: usize,
    /// Where its events start, in bits.
    pub events_at: u64,
    /// Whether the file ends before the packet.
    pub cut: bool,
}

/// An offset that no reader reaches.
const NOWHERE: u64 = u64::MAX;

impl<'t> PacketReader<'t> {
    /// Returns the packets of a data stream file.
    pub fn new(reader: StreamReader<'t>) -> Self {
        let next = reader.next;
        Self { reader, next, head: None }
    }

    /// Returns which of the files of a stream the packet is of: see [`StreamReader::segment`].
    pub fn segment(&self) -> usize {
        self.reader.segment()
    }

    /// Returns the next packet; none at the end. Events of the one before that were not asked for
    /// are passed over.
    pub fn next_packet(&mut self) -> Option<Result<Packet<'t>, StreamError>> {
        // Damage may have moved it elsewhere.
        if self.reader.next == NOWHERE {
            self.reader.next = self.next;
        }
        self.reader.leave_packet();
        self.head = None;
        if let Err(error) = self.reader.open_packet()? {
            return Some(Err(error));
        }
        self.next = std::mem::replace(&mut self.reader.next, NOWHERE);
        let head = self.reader.packet?;
        self.head = Some(head);
        let class = &self.reader.trace.class().streams[head.stream];
        let (info, stream, events_at, cut) = (head.info, head.stream, head.events_at, head.cut);
        Some(Ok(Packet { info, class, stream, events_at, cut }))
    }

    /// Returns the next event of the packet, and the bytes in which its bits are; none at its end.
    #[inline]
    pub fn next_event(&mut self) -> Option<Result<(Event<'_, 't>, &[u8]), StreamError>> {
        if let Err(error) = self.reader.advance()? {
            return Some(Err(error));
        }
        let at = *self.reader.position()?;
        let byte = |bits: u64| usize::try_from(bits).unwrap_or(usize::MAX);
        let bytes = self.reader.data().get(byte(at.header_at / 8)..byte(at.end.div_ceil(8)));
        self.reader.current().map(|event| Ok((event, bytes.unwrap_or(&[]))))
    }

    /// Returns the bytes of the packet, as far as they are there; none without one.
    pub fn bytes(&self) -> &[u8] {
        let Some(head) = &self.head else { return &[] };
        let data = self.reader.data();
        let size = usize::try_from(head.info.size).unwrap_or(usize::MAX);
        data.get(..size).unwrap_or(data)
    }

    /// Header and context of the packet, as trees; empty where there is none.
    ///
    /// # Errors
    /// None that [`Self::next_packet`] would not have given.
    pub fn head(&self) -> Result<(Value, Value), DecodeError> {
        let trace: &Trace = self.reader.trace;
        let Some(head) = &self.head else {
            return Ok((Value::Struct(Vec::new()), Value::Struct(Vec::new())));
        };
        let (class, plan) = (trace.class(), &trace.plans[head.stream]);
        let part = |pos, class: Option<_>, node: Option<_>| {
            let mut builder = TreeBuilder::default();
            if let (Some(class), Some(node)) = (class, node) {
                let (data, end) = (self.reader.data(), head.events_at);
                let state = &self.reader.state;
                Decoder { data, pos, end, state, live: false, empty: 0 }.visit_fields(
                    class,
                    node,
                    &mut builder,
                )?;
            }
            Ok(builder.finish())
        };
        let context = class.streams[head.stream].packet_context.as_ref();
        Ok((
            part(0, class.packet_header.as_ref(), plan.header.as_ref())?,
            part(head.context_at, context, plan.context.as_ref())?,
        ))
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &'t str {
        self.reader.name()
    }

    /// Returns what is lost so far, as far as packet headers show.
    pub fn losses(&self) -> Losses {
        self.reader.losses()
    }

    /// Returns whether packets of a class can be read without those before them.
    pub fn stands_alone(&self) -> bool {
        self.reader.stands_alone()
    }
}

/// Returns the smallest number of bits in which event headers of a class may show the clock;
/// none if they do not.
pub fn clock_bits(class: &StreamClass) -> Option<u32> {
    use crate::class::FieldClass;
    fn least(class: &FieldClass) -> Option<u32> {
        match class {
            FieldClass::Integer(c) => c.clock.is_some().then_some(c.size),
            FieldClass::Enum(c) => c.container.clock.is_some().then_some(c.container.size),
            FieldClass::Struct(c) => c.fields.iter().filter_map(|f| least(&f.class)).min(),
            FieldClass::Variant(c) => c.options.iter().filter_map(|o| least(&o.class)).min(),
            FieldClass::Optional(c) => least(&c.class),
            _ => None,
        }
    }
    class.event_header.as_ref()?.fields.iter().filter_map(|f| least(&f.class)).min()
}
