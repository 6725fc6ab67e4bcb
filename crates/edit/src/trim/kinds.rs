//! What events are to a trim, by their names: found once per class.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EventClass, Scope, StreamClass, TraceClass};
use hetrace_ctf::read::Event;
use hetrace_format::command::{self, CommandField};
use hetrace_format::{lasting, sample, telemetry};

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What later events need to be understood, whenever it was recorded.
    Definition,
    /// A command on a device: the fields `duration`, `cause_tid` and `queue`.
    Command([Option<usize>; 3]),
    /// What no thread of the program did.
    Telemetry,
    /// What a thread records from then on, to keep within its budget.
    Step,
    /// Anything else.
    Other,
}

impl Kind {
    /// Returns whether such events are kept for what was chosen, and not for all.
    pub fn is_chosen(&self) -> bool {
        !matches!(self, Kind::Definition | Kind::Telemetry)
    }
}

/// An event class.
#[derive(Clone, Debug)]
pub(super) struct EventKind {
    pub kind: Kind,
    /// What stands before the name's first colon.
    pub api: String,
}

/// Where a stream contains the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// In the context of its packets: positions of process and thread.
    Packet([Option<usize>; 2]),
    /// In that of each event.
    Event([Option<usize>; 2]),
}

/// A stream class.
#[derive(Clone, Debug)]
pub(super) struct StreamKind {
    pub events: Vec<EventKind>,
    pub identity: Identity,
    /// Whether something from before the window may have to be kept, so that all its
    /// packets before it must be read.
    pub outlasts: bool,
}

/// Returns the kinds of all classes, by stream class.
pub(super) fn kinds(trace: &TraceClass) -> Vec<StreamKind> {
    trace.streams.iter().map(of_stream).collect()
}

fn of_stream(stream: &StreamClass) -> StreamKind {
    let events: Vec<_> = stream.events.iter().map(of_event).collect();
    let find = |class: Option<&hetrace_ctf::class::StructClass>, names: [&str; 2]| {
        names.into_iter().find_map(|name| class?.index(name))
    };
    let (context, packet) = (stream.event_context.as_ref(), stream.packet_context.as_ref());
    let of_event = [find(context, ["vpid", "pid"]), find(context, ["vtid", "tid"])];
    let identity = match of_event {
        [Some(_), _] | [_, Some(_)] => Identity::Event(of_event),
        [None, None] => Identity::Packet([find(packet, ["vpid", "pid"]), find(packet, ["vtid", "tid"])]),
    };
    let outlasts = events.iter().any(|e| matches!(e.kind, Kind::Definition | Kind::Command(_) | Kind::Step));
    StreamKind { events, identity, outlasts }
}

fn of_event(event: &EventClass) -> EventKind {
    let name = &event.name;
    let api = name.split(':').next().unwrap_or("").to_owned();
    let kind = if lasting::defines(name) {
        Kind::Definition
    } else if name.starts_with(telemetry::PREFIX) || name == sample::Sample::EVENT {
        Kind::Telemetry
    } else if name.starts_with(command::PREFIX) {
        let fields = [CommandField::Duration, CommandField::CauseTid, CommandField::Queue];
        Kind::Command(fields.map(|field| event.fields.index(field.name())))
    } else if lasting::is_step(name) {
        Kind::Step
    } else {
        Kind::Other
    };
    EventKind { kind, api }
}

/// Returns a field of the payload as a number.
pub(super) fn number(event: &Event<'_, '_>, field: Option<usize>) -> Option<i64> {
    let value = event.get_at(Scope::EventFields, field?)?;
    value.as_i64().or_else(|| value.as_u64().map(|v| v as i64))
}

/// Returns the process and the thread of an event, as far as its stream contains them.
pub(super) fn ids(identity: Identity, event: &Event<'_, '_>) -> [Option<i64>; 2] {
    let (scope, fields) = match identity {
        Identity::Packet(fields) => (Scope::PacketContext, fields),
        Identity::Event(fields) => (Scope::StreamEventContext, fields),
    };
    fields.map(|field| event.get_at(scope, field?).and_then(Scalar::as_i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_budget_outlast_what_is_before_the_window() {
        let class = |name: &str| EventClass { name: name.into(), ..EventClass::default() };
        assert_eq!(of_event(&class("toy:budget_step")).kind, Kind::Step);
        assert_eq!(of_event(&class("toy:toyFinish_fold")).kind, Kind::Other);
        let stream = |name| StreamClass { events: vec![class(name)], ..StreamClass::default() };
        assert!(of_stream(&stream("toy:budget_step")).outlasts);
        assert!(!of_stream(&stream("toy:toyFinish_fold")).outlasts);
    }
}
