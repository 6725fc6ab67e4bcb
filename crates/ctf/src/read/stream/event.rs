//! An event, as the reader shows it.

use super::super::decode::Decoder;
use super::super::error::DecodeError;
use super::super::packet::{Head, PacketInfo};
use super::super::plan::{Int, Kind, Node};
use super::super::position::Position;
use super::super::visit::{FieldVisitor, TreeBuilder};
use super::{Kinds, StreamReader};
use crate::bits::word;
use crate::class::{ByteOrder, ClockClass, EventClass, FieldClass, Scope, StreamClass, StructClass};
use crate::value::{Scalar, Value};

/// An event. Its parts are decoded when asked for; text borrows the reader,
/// whose packet may have been decompressed.
#[derive(Clone, Copy, Debug)]
pub struct Event<'e, 't> {
    reader: &'e StreamReader<'t>,
    kind: Kinds<'t>,
    at: &'e Position,
}

impl<'e, 't> Event<'e, 't> {
    #[inline]
    pub(super) fn new(reader: &'e StreamReader<'t>, kind: Kinds<'t>, at: &'e Position) -> Self {
        Self { reader, kind, at }
    }

    /// Returns the packet: an event is only made while there is one.
    fn head(&self) -> Option<&'e Head> {
        self.reader.packet.as_ref()
    }

    /// Its class.
    #[inline]
    pub fn class(&self) -> &'t EventClass {
        &self.stream_class().events[self.at.index]
    }

    /// Returns the position of its class in [`StreamClass::events`]: an index for tables.
    #[inline]
    pub fn class_index(&self) -> usize {
        self.at.index
    }

    /// Returns the class of its stream.
    #[inline]
    pub fn stream_class(&self) -> &'t StreamClass {
        self.kind.class
    }

    /// Returns the name of the file it is in.
    pub fn stream_name(&self) -> &'t str {
        self.reader.name()
    }

    /// Its packet.
    pub fn packet(&self) -> PacketInfo {
        self.head().map(|p| p.info).unwrap_or_default()
    }

    /// Returns where it starts in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.packet().offset + self.at.header_at / 8
    }

    /// Its size in bits, with its header and the padding before it.
    pub fn size_bits(&self) -> u64 {
        self.at.end - self.at.header_at
    }

    /// Its time in ticks of [`Self::clock`]; none in a stream without a clock.
    #[inline]
    pub fn timestamp(&self) -> Option<u64> {
        self.at.timestamp
    }

    /// Returns the clock of its stream.
    #[inline]
    pub fn clock(&self) -> Option<&'t ClockClass> {
        let clocks = &self.reader.trace.class().clocks;
        self.kind.plan.clock.map(|index| &clocks[index])
    }

    /// Its time in nanoseconds from the clock's origin.
    #[inline]
    pub fn ns_from_origin(&self) -> Option<i64> {
        self.clock()?.ns_from_origin(self.at.timestamp?)
    }

    /// Returns the class, the plan and the start of a scope.
    fn scope(&self, scope: Scope) -> Option<(&'t StructClass, &'t Node, u64)> {
        let trace = self.reader.trace;
        let plan = self.kind.plan;
        let stream = self.stream_class();
        let event = &plan.events[self.at.index];
        let (class, node, at) = match scope {
            Scope::PacketHeader => (trace.class().packet_header.as_ref(), plan.header.as_ref(), 0),
            Scope::PacketContext => {
                (stream.packet_context.as_ref(), plan.context.as_ref(), self.head()?.context_at)
            }
            Scope::EventHeader => {
                (stream.event_header.as_ref(), plan.event_header.as_ref(), self.at.header_at)
            }
            Scope::StreamEventContext => {
                (stream.event_context.as_ref(), plan.event_context.as_ref(), self.at.common_at)
            }
            Scope::EventContext => {
                (self.class().context.as_ref(), event.context.as_ref(), self.at.context_at)
            }
            Scope::EventFields => (Some(&self.class().fields), Some(&event.fields), self.at.fields_at),
        };
        Some((class?, node?, at))
    }

    fn decoder(&self, pos: u64) -> Decoder<'e, 'e> {
        let end = self.head().map_or(0, |p| p.end);
        Decoder { data: self.reader.data(), pos, end, state: &self.reader.state, live: false, empty: 0 }
    }

    /// Returns whether the metadata has this scope for the event.
    pub fn has(&self, scope: Scope) -> bool {
        self.scope(scope).is_some()
    }

    /// Shows the fields of a scope to `visitor`; none if there is no such scope.
    ///
    /// What [`StreamReader::next_event`] has gone over decodes without an error,
    /// with one exception: an array of very many elements without a bit.
    pub fn visit(&self, scope: Scope, visitor: &mut dyn FieldVisitor<'e>) -> Result<(), DecodeError> {
        match self.scope(scope) {
            Some((class, node, at)) => self.decoder(at).visit_fields(class, node, visitor),
            None => Ok(()),
        }
    }

    /// Returns the bytes of the packet from the payload on, for a [`Picker`](crate::read::Picker) of the
    /// class; none if it does not start at a byte.
    #[inline]
    pub fn payload(&self) -> Option<&'e [u8]> {
        let end = usize::try_from(self.head()?.end / 8).ok()?;
        let at = usize::try_from(self.at.fields_at / 8).ok()?;
        self.reader.data().get(at..end).filter(|_| self.at.fields_at.is_multiple_of(8))
    }

    /// Returns a scope as a tree: a [`Value::Struct`], empty if there is no such scope.
    pub fn value(&self, scope: Scope) -> Result<Value, DecodeError> {
        let mut builder = TreeBuilder::default();
        self.visit(scope, &mut builder)?;
        Ok(builder.finish())
    }

    /// Returns the payload as a tree.
    pub fn fields(&self) -> Result<Value, DecodeError> {
        self.value(Scope::EventFields)
    }

    /// Returns a field of the payload; none if there is none of that name, or if it has parts.
    pub fn get(&self, name: &str) -> Option<Scalar<'e>> {
        self.get_in(Scope::EventFields, name)
    }

    /// Returns a field of a scope; none if there is none of that name, or if it has parts.
    pub fn get_in(&self, scope: Scope, name: &str) -> Option<Scalar<'e>> {
        let index = self.scope(scope)?.0.index(name)?;
        self.get_at(scope, index)
    }

    /// Returns an integer of a scope by its position, whatever its values are called; the bits of one that is
    /// unsigned. None if there is none, or if the field is something else.
    #[inline]
    pub fn integer_at(&self, scope: Scope, index: usize) -> Option<i64> {
        match self.leading(index).filter(|_| scope == Scope::EventFields) {
            Some(value) => Some(value),
            None => self.any_integer_at(scope, index),
        }
    }

    /// Returns one of the payload's first fields, if it is a plain integer at a place that is always the same.
    #[inline]
    fn leading(&self, index: usize) -> Option<i64> {
        let body = self.kind.plan.events.get(self.at.index)?.quick.as_ref()?;
        let whole = (*body.leading.get(index)?)?;
        let at = usize::try_from(self.at.fields_at / 8).ok()?;
        // It is a part of an event whose end was found.
        whole.get(self.reader.data(), at).filter(|_| self.at.fields_at.is_multiple_of(8))
    }

    /// The same for any integer.
    fn any_integer_at(&self, scope: Scope, index: usize) -> Option<i64> {
        let (_, node, at) = self.scope(scope)?;
        let Kind::Struct { nodes, offsets } = &node.kind else { return None };
        if let (Some(Node { kind: Kind::Int(int), .. }), Some(Some(offset))) =
            (nodes.get(index), offsets.get(index))
            && node.align <= 8
            && at.is_multiple_of(8)
            && int.order == ByteOrder::Little
            && !int.reversed
        {
            let at = at.checked_add(*offset)?;
            if let Some(value) = self.whole_bytes(int, at) {
                return Some(value);
            }
            let mut decoder = self.decoder(at);
            return Some(decoder.int(int).ok()? as i64);
        }
        let value = self.get_at(scope, index)?;
        value.as_i64().or_else(|| value.as_u64().map(|v| v as i64))
    }

    /// Returns a little-endian integer of whole bytes that nothing depends on; none where the long way has to
    /// find out more.
    #[inline]
    fn whole_bytes(&self, int: &Int, at: u64) -> Option<i64> {
        let plain = int.slot.is_none() && int.bits.is_multiple_of(8) && at.is_multiple_of(8);
        let end = at.checked_add(int.bits.into())?;
        if !plain || end > self.head()?.end {
            return None;
        }
        let unused = 64u32.checked_sub(int.bits).filter(|unused| *unused < 64)?;
        let high = word(self.reader.data(), usize::try_from(at / 8).ok()?)? << unused;
        Some(if int.signed { (high as i64) >> unused } else { (high >> unused) as i64 })
    }

    /// Returns a field of a scope by its position: for those who look names up once per class.
    pub fn get_at(&self, scope: Scope, index: usize) -> Option<Scalar<'e>> {
        let (class, node, at) = self.scope(scope)?;
        let field = class.fields.get(index)?;
        let Kind::Struct { nodes, offsets } = &node.kind else {
            return None;
        };
        let mut decoder = self.decoder(at);
        decoder.align(node.align).ok()?;
        let known = (0..=index).rev().find(|&i| offsets[i].is_some()).unwrap_or(0);
        // Lengths and tags are of the event that was read last, unless they are read again.
        let known = if nodes[known..=index].iter().any(Node::needs_slot) { 0 } else { known };
        decoder.pos = decoder.pos.checked_add(offsets[known].unwrap_or(0))?;
        for node in &nodes[known..index] {
            decoder.skip(node).ok()?;
        }
        match field.class {
            FieldClass::Struct(_) | FieldClass::Variant(_) => None,
            _ => decoder.scalar(&field.class, &nodes[index]).ok()?,
        }
    }
}
