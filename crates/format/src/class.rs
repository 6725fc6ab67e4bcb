//! The whole trace as classes: what its metadata says.

use hetrace_ctf::class::{ClockClass, EnvValue, EventClass, StreamClass, TraceClass};
use hetrace_ctf::write::form;
use hetrace_model::Model;

use crate::define::Definition;
use crate::{calls, command, object};

/// Stream class of devices: commands, definitions, objects.
pub const DEVICE_STREAM: u32 = 0;

/// Stream class of the calls of an API, by its number in the session.
pub fn api_stream(api: usize) -> u32 {
    api as u32 + 1
}

/// The environment of a trace: the fields by which tools know an LTTng user-space trace. The
/// tracer is named as what it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// First and second part of hetrace's version.
    pub version: [i64; 2],
    /// Name of the machine.
    pub host: String,
    /// The program as it was typed.
    pub program: String,
}

/// Name of the tracer in the environment.
pub const TRACER: &str = "hetrace";
/// The variable that has it.
pub const TRACER_VARIABLE: &str = "tracer_name";
/// The variable with the machine's name; of a merged trace several, with commas between them.
pub const HOST_VARIABLE: &str = "hostname";

impl Environment {
    /// As it stands in the metadata.
    pub fn variables(&self) -> Vec<(String, EnvValue)> {
        let Self { version: [major, minor], host, program } = self;
        let text = |v: &str| EnvValue::Str(v.to_owned());
        [
            ("domain", text("ust")),
            (TRACER_VARIABLE, text(TRACER)),
            ("tracer_major", EnvValue::Int(*major)),
            ("tracer_minor", EnvValue::Int(*minor)),
            (HOST_VARIABLE, text(host)),
            ("procname", text(program)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// Returns whether a trace says that hetrace made it.
pub fn is_of_hetrace(class: &TraceClass) -> bool {
    match class.env(TRACER_VARIABLE) {
        Some(EnvValue::Str(names)) => names.split(',').any(|name| name == TRACER),
        _ => false,
    }
}

/// Returns the stream class of devices.
pub fn device_stream(models: &[&Model]) -> StreamClass {
    let mut stream = form::stream_class(u64::from(DEVICE_STREAM));
    stream.events.extend(command::classes());
    let [queue, others @ ..] = Definition::ALL;
    stream.events.push(queue.class());
    stream.events.push(command::untimed_class());
    stream.events.extend(others.map(Definition::class));
    stream.events.extend(object::classes(models));
    stream
}

/// Returns the event of a number in the stream of devices, with the names in these models; none if there is none.
pub fn device_event(id: u16, models: &[&Model]) -> Option<EventClass> {
    let own = || {
        command::class_of(id)
            .or_else(|| Definition::ALL.map(Definition::class).into_iter().find(|c| c.id == u64::from(id)))
    };
    object::class_of(id, models).or_else(own)
}

/// Returns a trace without events, and with the stream of devices alone: events and the streams of APIs are declared when
/// they come.
pub fn frame(uuid: [u8; 16], clock: ClockClass, env: Vec<(String, EnvValue)>) -> TraceClass {
    let mut trace = form::trace_class(uuid, clock);
    trace.env = env;
    trace.streams.push(form::stream_class(DEVICE_STREAM.into()));
    trace
}

/// Returns the whole trace, without telemetry.
pub fn trace(
    uuid: [u8; 16],
    clock: ClockClass,
    env: Vec<(String, EnvValue)>,
    models: &[&Model],
) -> TraceClass {
    let mut trace = form::trace_class(uuid, clock);
    trace.env = env;
    trace.streams.push(device_stream(models));
    for (number, model) in models.iter().enumerate() {
        let mut stream: StreamClass = form::stream_class(u64::from(api_stream(number)));
        stream.events = calls::classes(model);
        trace.streams.push(stream);
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_hetrace_is_known_by_its_environment() {
        let class = |names: &str| {
            let mut class = trace([1; 16], form::clock_class([2; 16], 0), Vec::new(), &[]);
            class.env = vec![(TRACER_VARIABLE.to_owned(), EnvValue::Str(names.to_owned()))];
            class
        };
        let own = Environment::default().variables();
        assert!(is_of_hetrace(&trace([1; 16], form::clock_class([2; 16], 0), own, &[])));
        assert!(is_of_hetrace(&class("other,hetrace")));
        assert!(!is_of_hetrace(&class("lttng-ust")));
    }

    /// What is declared one by one is what is declared at once.
    #[test]
    fn each_event_is_found_by_its_number() {
        let all = device_stream(&[]).events;
        for id in 0..=u16::MAX {
            let known = all.iter().find(|event| event.id == u64::from(id));
            assert_eq!(device_event(id, &[]).as_ref(), known, "{id}");
        }
    }

    #[test]
    fn no_two_events_of_a_stream_have_a_number() {
        let stream = device_stream(&[]);
        let mut ids: Vec<u64> = stream.events.iter().map(|event| event.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), stream.events.len());
    }
}
