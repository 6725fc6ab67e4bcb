//! A packet with some of the events of another.

use hetrace_ctf::Value;
use hetrace_ctf::class::{
    EventClass, Field, FieldClass, IntegerClass, Role, Scope, StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::read::{Event, clock_bits};
use hetrace_ctf::write::{EncodeError, Encoder};

/// Numbers in the head of a packet that change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Time of its first and last event, in ticks; none in a packet that stays as it is.
    pub times: Option<(u64, u64)>,
    pub seq: Option<u64>,
    pub discarded: Option<u64>,
}

/// Which fields these are.
const TIME_BEGIN: (&str, Role) = ("timestamp_begin", Role::DefaultClockTimestamp);
const TIME_END: (&str, Role) = ("timestamp_end", Role::PacketEndDefaultClockTimestamp);
const SEQ: (&str, Role) = ("packet_seq_num", Role::PacketSequenceNumber);
const DISCARDED: (&str, Role) = ("events_discarded", Role::DiscardedEventRecordCounterSnapshot);
const CONTENT: (&str, Role) = ("content_size", Role::PacketContentLength);
const SIZE: (&str, Role) = ("packet_size", Role::PacketTotalLength);

/// Returns whether packet headers of a class contain sizes, without which a file is one packet.
pub(super) fn has_sizes(class: &StreamClass) -> bool {
    let fields = class.packet_context.iter().flat_map(|c| &c.fields);
    fields.into_iter().any(|f| is(f, CONTENT) || is(f, SIZE))
}

fn is(field: &Field, (name, role): (&str, Role)) -> bool {
    let FieldClass::Integer(class) = &field.class else { return false };
    class.roles.has(role) || field.name == name
}

fn set(class: Option<&StructClass>, value: &mut Value, what: (&str, Role), number: u64) {
    let (Some(class), Value::Struct(values)) = (class, value) else { return };
    for (field, (_, value)) in class.fields.iter().zip(values) {
        if is(field, what)
            && let FieldClass::Integer(class) = &field.class
        {
            // A field shows as much of a number as it has bits.
            *value = Value::Unsigned(if class.size < 64 { number & ((1 << class.size) - 1) } else { number });
        }
    }
}

/// Sets what a header has of the clock.
fn set_time(class: &StructClass, value: &mut Value, ticks: u64) {
    let Value::Struct(values) = value else { return };
    for (field, (_, value)) in class.fields.iter().zip(values) {
        set_time_of(&field.class, value, ticks);
    }
}

fn set_time_of(class: &FieldClass, value: &mut Value, ticks: u64) {
    match (class, value) {
        (FieldClass::Integer(class), value) if class.clock.is_some() => {
            *value = Value::Unsigned(if class.size < 64 { ticks & ((1 << class.size) - 1) } else { ticks });
        }
        (FieldClass::Struct(class), value) => set_time(class, value, ticks),
        (FieldClass::Variant(class), Value::Variant { option, value }) => {
            let chosen = class.options.iter().find(|field| field.name == *option);
            chosen.into_iter().for_each(|field| set_time_of(&field.class, value, ticks));
        }
        _ => {}
    }
}

/// The events of a packet in the making.
pub(super) enum Body {
    /// Their bytes, which mean the same anywhere: nothing is aligned to more than bytes.
    Bytes(Vec<u8>),
    /// The parts of each: header, contexts and fields, with the position of its class.
    Values(Vec<(usize, [Value; 4])>),
}

/// Makes packets of one stream class.
pub(super) struct Rewriter<'t> {
    trace: &'t TraceClass,
    class: &'t StreamClass,
    by_bytes: bool,
}

impl<'t> Rewriter<'t> {
    pub fn new(trace: &'t TraceClass, class: &'t StreamClass) -> Self {
        // All in bytes: then an event means the same wherever it is put.
        let over = |at, class: &Option<StructClass>| class.as_ref().map_or(Some(at), |class| end(class, at));
        let head = over(0, &trace.packet_header).and_then(|at| over(at, &class.packet_context));
        let common = over(0, &class.event_header).and_then(|at| over(at, &class.event_context));
        let event = |e: &EventClass| end(&e.fields, over(common?, &e.context)?);
        let by_bytes = head == Some(0) && class.events.iter().all(|e| event(e) == Some(0));
        Self { trace, class, by_bytes }
    }

    /// Returns a gap that the clock of event headers cannot show, in ticks.
    pub fn longest_gap(&self) -> u64 {
        clock_bits(self.class).filter(|&bits| bits < 64).map_or(u64::MAX, |bits| 1 << bits)
    }

    /// No event yet.
    pub fn body(&self) -> Body {
        if self.by_bytes { Body::Bytes(Vec::new()) } else { Body::Values(Vec::new()) }
    }

    /// Appends an event, whose bits are in `bytes`. Whether it can be decoded.
    pub fn push(&self, body: &mut Body, event: &Event<'_, '_>, bytes: &[u8]) -> bool {
        match body {
            Body::Bytes(all) => all.extend_from_slice(bytes),
            Body::Values(values) => {
                let scopes =
                    [Scope::EventHeader, Scope::StreamEventContext, Scope::EventContext, Scope::EventFields];
                let [Ok(header), Ok(common), Ok(own), Ok(fields)] = scopes.map(|scope| event.value(scope))
                else {
                    return false;
                };
                values.push((event.class_index(), [header, common, own, fields]));
            }
        }
        true
    }

    /// Appends an event with another time, in ticks, to one in [`Body::Values`]. Whether it can be decoded.
    pub fn push_at(&self, body: &mut Body, event: &Event<'_, '_>, ticks: u64) -> bool {
        if !self.push(body, event, &[]) {
            return false;
        }
        let Body::Values(values) = body else { return false };
        if let (Some((_, [header, ..])), Some(class)) = (values.last_mut(), &self.class.event_header) {
            set_time(class, header, ticks);
        }
        true
    }

    /// No event yet, and each by its values.
    pub fn values() -> Body {
        Body::Values(Vec::new())
    }

    /// Returns the packet's bytes: a head with other numbers, and these events.
    pub fn packet(
        &self,
        head: &(Value, Value),
        numbers: Numbers,
        body: &Body,
    ) -> Result<Vec<u8>, EncodeError> {
        let (header, mut context) = self.changed(head, numbers);
        let class = self.class.packet_context.as_ref();
        // The sizes are known when all is laid out; numbers of variable length may then
        // have another one.
        let mut size = 0;
        loop {
            set(class, &mut context, CONTENT, size);
            set(class, &mut context, SIZE, size.next_multiple_of(8));
            let mut encoder = self.encode_head(&header, &context)?;
            if let Body::Values(events) = body {
                events.iter().try_for_each(|event| self.event(&mut encoder, event))?;
            }
            let events = if let Body::Bytes(bytes) = body { bytes.as_slice() } else { &[] };
            let content = encoder.position() + events.len() as u64 * 8;
            if content <= size || !has_sizes(self.class) {
                let mut bytes = encoder.into_bytes();
                bytes.extend_from_slice(events);
                bytes.resize(bytes.len().max(size.div_ceil(8) as usize), 0);
                return Ok(bytes);
            }
            size = content;
        }
    }

    /// Returns a head with other numbers.
    pub fn head(&self, head: &(Value, Value), numbers: Numbers) -> Result<Vec<u8>, EncodeError> {
        let (header, context) = self.changed(head, numbers);
        self.encode_head(&header, &context).map(Encoder::into_bytes)
    }

    fn changed(&self, head: &(Value, Value), numbers: Numbers) -> (Value, Value) {
        let (mut header, mut context) = head.clone();
        let (begin, end) = numbers.times.unzip();
        let all = [(TIME_BEGIN, begin), (TIME_END, end), (SEQ, numbers.seq), (DISCARDED, numbers.discarded)];
        for (field, number) in all {
            if let Some(number) = number {
                set(self.class.packet_context.as_ref(), &mut context, field, number);
                set(self.trace.packet_header.as_ref(), &mut header, field, number);
            }
        }
        (header, context)
    }

    fn encode_head(&self, header: &Value, context: &Value) -> Result<Encoder, EncodeError> {
        let mut encoder = Encoder::new();
        if let Some(class) = &self.trace.packet_header {
            encoder.structure(class, header)?;
        }
        if let Some(class) = &self.class.packet_context {
            encoder.structure(class, context)?;
        }
        Ok(encoder)
    }

    fn event(&self, encoder: &mut Encoder, (index, values): &(usize, [Value; 4])) -> Result<(), EncodeError> {
        let Some(event) = self.class.events.get(*index) else { return Ok(()) };
        let classes = [
            self.class.event_header.as_ref(),
            self.class.event_context.as_ref(),
            event.context.as_ref(),
            Some(&event.fields),
        ];
        classes.into_iter().zip(values).try_for_each(|(class, value)| match class {
            Some(class) => encoder.structure(class, value),
            None => Ok(()),
        })
    }
}

/// At which bit of a byte a structure ends that begins at bit `at` of one; none if that
/// depends on what is in it, or on more than the bit.
fn end(class: &StructClass, at: u64) -> Option<u64> {
    let at = aligned(at, class.align())?;
    class.fields.iter().try_fold(at, |at, field| end_of(&field.class, at))
}

fn aligned(at: u64, align: u32) -> Option<u64> {
    (align <= 8).then(|| at.next_multiple_of(u64::from(align.max(1))) % 8)
}

fn end_of(class: &FieldClass, at: u64) -> Option<u64> {
    let integer = |c: &IntegerClass| match c.variable {
        true => Some(0),
        false => Some((aligned(at, c.align)? + u64::from(c.size)) % 8),
    };
    let stays = |class: &FieldClass, at: u64| (end_of(class, at)? == at).then_some(at);
    match class {
        FieldClass::Integer(c) => integer(c),
        FieldClass::Enum(c) => integer(&c.container),
        FieldClass::Float(c) => Some((aligned(at, c.align)? + u64::from(c.size())) % 8),
        FieldClass::String(_) | FieldClass::Blob(_) => Some(0),
        FieldClass::Struct(c) => end(c, at),
        FieldClass::Array(c) => stays(&c.element, aligned(at, c.element.align().max(c.min_align))?),
        FieldClass::Sequence(c) => stays(&c.element, aligned(at, c.element.align().max(c.min_align))?),
        FieldClass::Optional(c) => stays(&c.class, at),
        FieldClass::Variant(c) => {
            let mut ends = c.options.iter().map(|option| end_of(&option.class, at));
            let first = ends.next()??;
            ends.all(|end| end == Some(first)).then_some(first)
        }
    }
}
