//! A [`TraceClass`] to the fragments of CTF 2.

use super::SEPARATOR;
use super::json::Json;
use super::object::Object;
use super::print_field::Printer;
use super::upgrade::upgrade;
use crate::class::{ClockClass, EnvValue, EventClass, Identity, PlanError, StreamClass, TraceClass};

/// Returns the metadata of a trace, as fragments that any CTF 2 reader takes; one of CTF
/// 1.8 as [`upgrade`] makes it.
///
/// # Errors
///
/// A length or tag of a CTF 1.8 trace that is not there.
pub fn print(trace: &TraceClass) -> Result<String, PlanError> {
    let trace = &upgrade(trace)?;
    let mut text = String::new();
    let mut add = |object: Object| {
        text.push(char::from(SEPARATOR));
        text.push_str(&Json::from(object).to_string());
        text.push('\n');
    };
    let uuid = trace.uuid.map(|uuid| Json::Array(uuid.into_iter().map(Json::from).collect()));
    add(Object::new("preamble").with("version", 2u8).maybe("uuid", uuid));
    let printer = Printer::of(trace);
    for alias in printer.aliases() {
        add(alias);
    }
    let environment = trace.env.iter().map(|(name, value)| match value {
        EnvValue::Int(value) => (name.clone(), Json::from(*value)),
        EnvValue::Str(text) => (name.clone(), Json::from(text.as_str())),
    });
    let environment = Some(Json::Object(environment.collect())).filter(|_| !trace.env.is_empty());
    let header = trace.packet_header.as_ref().map(|c| printer.structure(c));
    add(Object::new("trace-class")
        .identity(&trace.identity)
        .maybe("environment", environment)
        .maybe("packet-header-field-class", header));
    for clock in &trace.clocks {
        add(clock_class(clock));
    }
    for stream in &trace.streams {
        add(stream_class(&printer, trace, stream));
        for event in &stream.events {
            add(event_class(&printer, stream, event));
        }
    }
    Ok(text)
}

fn clock_class(clock: &ClockClass) -> Object {
    let identity = Identity { name: Some(clock.name.clone()), ..clock.more.identity.clone() };
    let origin = match &clock.more.origin {
        Some(origin) => Some(Object::default().identity(origin).into()),
        None => clock.absolute.then(|| Json::from("unix-epoch")),
    };
    Object::new("clock-class")
        .with("id", clock_id(clock))
        .identity(&identity)
        .with("frequency", clock.frequency)
        .maybe("precision", clock.precision)
        .maybe("accuracy", clock.more.accuracy)
        .maybe("description", clock.description.as_deref())
        .maybe("origin", origin)
        .with(
            "offset-from-origin",
            Object::default().with("seconds", clock.offset_seconds).with("cycles", clock.offset),
        )
}

fn clock_id(clock: &ClockClass) -> &str {
    clock.more.id.as_deref().unwrap_or(&clock.name)
}

fn stream_class(printer: &Printer<'_>, trace: &TraceClass, stream: &StreamClass) -> Object {
    let clock = stream.clock.as_deref().and_then(|name| trace.clock(name)).map(clock_id);
    let field = |class: &Option<_>| class.as_ref().map(|c| printer.structure(c));
    Object::new("data-stream-class")
        .with("id", stream.id)
        .identity(&stream.identity)
        .maybe("default-clock-class-id", clock)
        .maybe("packet-context-field-class", field(&stream.packet_context))
        .maybe("event-record-header-field-class", field(&stream.event_header))
        .maybe("event-record-common-context-field-class", field(&stream.event_context))
}

fn event_class(printer: &Printer<'_>, stream: &StreamClass, event: &EventClass) -> Object {
    let identity = stream.event_identities.get(&event.id).cloned().unwrap_or_default();
    let name = Some(event.name.clone()).filter(|name| !name.is_empty());
    let attributes =
        Object::default().maybe("log-level", event.log_level).maybe("emf-uri", event.emf_uri.as_deref());
    let attributes = Some(attributes).filter(|a| !a.is_empty());
    Object::new("event-record-class")
        .with("id", event.id)
        .with("data-stream-class-id", stream.id)
        .identity(&Identity { name, ..identity })
        .maybe("attributes", attributes.map(|a| Object::default().with("babeltrace.org,2020", a)))
        .maybe("specific-context-field-class", event.context.as_ref().map(|c| printer.structure(c)))
        .with("payload-field-class", printer.structure(&event.fields))
}
