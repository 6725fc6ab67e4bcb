//! Stream classes compiled for decoding.

use super::compile::{Compiler, Slots};
use super::ends::Ends;
use super::event_plan::{EventIndex, EventPlan};
use super::plan::Node;
use super::quick::{QuickBody, QuickHeader};
use crate::class::scopes::Scopes;
use crate::class::{PlanError, Scope, StreamClass, TraceClass, clock_of};

/// A stream class, compiled.
#[derive(Debug)]
pub(super) struct StreamPlan {
    pub header: Option<Node>,
    pub context: Option<Node>,
    pub event_header: Option<Node>,
    pub quick_header: Option<QuickHeader>,
    pub event_context: Option<Node>,
    pub events: Vec<EventPlan>,
    /// Position in `events` by event id.
    pub by_id: EventIndex,
    /// Where events end, in a stream with a clock and the common header.
    pub ends: Option<Ends>,
    /// Position of the clock in the trace class.
    pub clock: Option<usize>,
    pub slots: usize,
}

impl StreamPlan {
    pub fn new(trace: &TraceClass, stream: &StreamClass) -> Result<Self, PlanError> {
        use Scope::{
            EventContext, EventFields, EventHeader, PacketContext, PacketHeader, StreamEventContext,
        };
        const SHARED: [Scope; 4] = [PacketHeader, PacketContext, EventHeader, StreamEventContext];

        let clock = clock_of(stream);
        let scopes = Scopes { trace, stream: Some(stream), event: None };
        let mut shared = Slots::default();
        let mut compiler = Compiler { scopes, clock, slots: &mut shared };
        for scope in SHARED {
            compiler.collect(scope, StreamEventContext)?;
        }
        // Events may refer to what stands before them, which then needs a slot too.
        for event in &stream.events {
            compiler.scopes.event = Some(event);
            compiler.collect(EventContext, StreamEventContext)?;
            compiler.collect(EventFields, StreamEventContext)?;
        }
        compiler.scopes.event = None;
        let header = compiler.scope(PacketHeader)?;
        let context = compiler.scope(PacketContext)?;
        let event_header = compiler.scope(EventHeader)?;
        let event_context = compiler.scope(StreamEventContext)?;

        let mut most = shared.len();
        let mut events = Vec::with_capacity(stream.events.len());
        for event in &stream.events {
            let mut own = shared.clone();
            let scopes = Scopes { trace, stream: Some(stream), event: Some(event) };
            let mut compiler = Compiler { scopes, clock, slots: &mut own };
            compiler.collect(EventContext, EventFields)?;
            compiler.collect(EventFields, EventFields)?;
            let context = compiler.scope(EventContext)?;
            let fields = compiler.scope(EventFields)?;
            let fields = fields.expect("an event class has a payload, however empty");
            most = most.max(own.len());
            events.push(EventPlan {
                quick: QuickBody::of(event_context.as_ref(), context.as_ref(), &fields),
                context,
                fields,
            });
        }
        let (by_id, quick_header) =
            (EventIndex::new(stream), event_header.as_ref().and_then(QuickHeader::of));
        let clock = clock.and_then(|name| trace.clocks.iter().position(|c| c.name == name));
        let is_common = clock.is_some() && quick_header.as_ref().is_some_and(QuickHeader::is_common);
        Ok(Self {
            quick_header,
            header,
            context,
            event_header,
            event_context,
            ends: is_common.then(|| Ends::new(&by_id, &events)).flatten(),
            events,
            by_id,
            clock,
            slots: most,
        })
    }
}
