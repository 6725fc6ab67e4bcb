//! The six structures that an event is made of.

use super::{EventClass, Scope, StreamClass, StructClass, TraceClass};

/// The classes of all scopes as one event sees them.
#[derive(Clone, Copy)]
pub(crate) struct Scopes<'c> {
    pub trace: &'c TraceClass,
    pub stream: Option<&'c StreamClass>,
    pub event: Option<&'c EventClass>,
}

impl<'c> Scopes<'c> {
    pub fn get(&self, scope: Scope) -> Option<&'c StructClass> {
        match scope {
            Scope::PacketHeader => self.trace.packet_header.as_ref(),
            Scope::PacketContext => self.stream?.packet_context.as_ref(),
            Scope::EventHeader => self.stream?.event_header.as_ref(),
            Scope::StreamEventContext => self.stream?.event_context.as_ref(),
            Scope::EventContext => self.event?.context.as_ref(),
            Scope::EventFields => self.event.map(|e| &e.fields),
        }
    }

    /// Returns how errors name a scope.
    pub fn place(&self, scope: Scope) -> String {
        let stream = self.stream.map_or(String::new(), |s| format!("stream {}: ", s.id));
        let event = self.event.map_or(String::new(), |e| format!("event {:?}: ", e.name));
        format!("{stream}{event}{}", scope.tsdl())
    }
}
