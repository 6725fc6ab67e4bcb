//! A [`TraceClass`] to TSDL text.

use std::fmt::Write;

use super::names::to_raw_ident;
use super::print_type::Printer;
use super::quote::quoted;
use crate::class::shared_enums;
use crate::class::{ByteOrder, ClockClass, EnvValue, EventClass, StreamClass, TraceClass};

/// Returns the metadata of a trace, as text that any CTF 1.8 reader takes.
///
/// Types are written where they are used and not named: a named type would turn
/// its name into a keyword, and fields may bear any name. Enumerations that come
/// again are the exception; their names live apart.
///
/// Classes that only CTF 2 has cannot be said here: they become the name of a
/// type that no reader knows. Roles, bit maps and identities are left out.
pub fn print(trace: &TraceClass) -> String {
    printed(trace).text
}

/// Metadata that grows: events are declared one after the other, in text that is added at the end.
///
/// Readers of CTF 1.8 take declarations in any order, as long as an event's stream is declared
/// somewhere and an enumeration before it is referred to. So the text is whole after each addition.
#[derive(Debug, Clone)]
pub struct Growing(Printer);

impl Growing {
    /// Returns the text to begin with, which describes all that is in the class.
    pub fn begin(trace: &TraceClass) -> (Self, String) {
        let mut printer = printed(trace);
        let text = std::mem::take(&mut printer.text);
        (Growing(printer), text)
    }

    /// Goes on with a text that something else has written in this way.
    pub fn resume(order: ByteOrder, text: &str) -> Self {
        // Names are numbered, and a number is never given twice.
        Growing(Printer::new(order, text.matches("\nenum ").count()))
    }

    /// Returns what is to be added to declare a stream without events.
    pub fn stream(&mut self, stream: &StreamClass) -> String {
        let Growing(printer) = self;
        stream_block(printer, stream);
        std::mem::take(&mut printer.text)
    }

    /// Returns what is to be added to declare an event of a stream.
    pub fn event(&mut self, stream_id: u64, event: &EventClass) -> String {
        let Growing(printer) = self;
        printer.name_enums(shared_enums::of_event(event));
        event_block(printer, stream_id, event);
        std::mem::take(&mut printer.text)
    }

    /// Returns how many bytes of a text are whole declarations: whoever wrote it may have been killed.
    pub fn whole(text: &str) -> usize {
        text.rfind(END).map_or(0, |at| at + END.len())
    }
}

/// The end of each declaration, and of nothing inside one.
const END: &str = "\n};\n\n";

fn printed(trace: &TraceClass) -> Printer {
    let mut p = Printer::new(trace.byte_order, 0);
    p.text.push_str("/* CTF 1.8 */\n\n");
    trace_block(&mut p, trace);
    if !trace.env.is_empty() {
        p.block("env", |p| {
            for (name, value) in &trace.env {
                let value = match value {
                    EnvValue::Int(value) => value.to_string(),
                    EnvValue::Str(text) => quoted(text),
                };
                p.line(format_args!("{} = {value};", to_raw_ident(name)));
            }
        });
    }
    p.name_enums(shared_enums::collect(trace));
    for clock in &trace.clocks {
        clock_block(&mut p, clock);
    }
    for stream in &trace.streams {
        stream_block(&mut p, stream);
        for event in &stream.events {
            event_block(&mut p, stream.id, event);
        }
    }
    p
}

fn trace_block(p: &mut Printer, trace: &TraceClass) {
    p.block("trace", |p| {
        p.line(format_args!("major = {};", trace.major));
        p.line(format_args!("minor = {};", trace.minor));
        if let Some(uuid) = &trace.uuid {
            p.line(format_args!("uuid = \"{}\";", hyphenated(uuid)));
        }
        let order = match trace.byte_order {
            ByteOrder::Little => "le",
            ByteOrder::Big => "be",
        };
        p.line(format_args!("byte_order = {order};"));
        p.assign_struct("packet.header", trace.packet_header.as_ref());
    });
}

fn clock_block(p: &mut Printer, clock: &ClockClass) {
    p.block("clock", |p| {
        p.line(format_args!("name = {};", to_raw_ident(&clock.name)));
        if let Some(uuid) = &clock.uuid {
            p.line(format_args!("uuid = \"{}\";", hyphenated(uuid)));
        }
        if let Some(description) = &clock.description {
            p.line(format_args!("description = {};", quoted(description)));
        }
        p.line(format_args!("freq = {};", clock.frequency));
        if let Some(precision) = clock.precision {
            p.line(format_args!("precision = {precision};"));
        }
        p.line(format_args!("offset_s = {};", clock.offset_seconds));
        p.line(format_args!("offset = {};", clock.offset));
        p.line(format_args!("absolute = {};", if clock.absolute { "TRUE" } else { "FALSE" }));
    });
}

fn stream_block(p: &mut Printer, stream: &StreamClass) {
    p.block("stream", |p| {
        p.line(format_args!("id = {};", stream.id));
        p.assign_struct("packet.context", stream.packet_context.as_ref());
        p.assign_struct("event.header", stream.event_header.as_ref());
        p.assign_struct("event.context", stream.event_context.as_ref());
    });
}

fn event_block(p: &mut Printer, stream_id: u64, event: &EventClass) {
    p.block("event", |p| {
        p.line(format_args!("name = {};", quoted(&event.name)));
        p.line(format_args!("id = {};", event.id));
        p.line(format_args!("stream_id = {stream_id};"));
        if let Some(level) = event.log_level {
            p.line(format_args!("loglevel = {level};"));
        }
        if let Some(uri) = &event.emf_uri {
            p.line(format_args!("model.emf.uri = {};", quoted(uri)));
        }
        p.assign_struct("context", event.context.as_ref());
        p.assign_struct("fields", Some(&event.fields));
    });
}

fn hyphenated(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{EnumClass, EnumMapping, IntegerClass, StructClass};

    fn named(labels: &[&str]) -> EnumClass {
        let mapping = |(label, at): (&&str, i128)| EnumMapping { label: (*label).into(), start: at, end: at };
        EnumClass {
            container: IntegerClass::unsigned(32),
            mappings: labels.iter().zip(0..).map(mapping).collect::<Vec<_>>().into(),
        }
    }

    fn event(id: u64, class: &EnumClass) -> EventClass {
        let fields = StructClass::default().field("f", class.clone()).field("g", class.clone());
        EventClass { id, name: format!("e{id}"), log_level: None, emf_uri: None, context: None, fields }
    }

    fn empty() -> TraceClass {
        let mut trace = TraceClass::new(ByteOrder::Little);
        trace.streams.push(StreamClass { id: 3, ..StreamClass::default() });
        trace
    }

    fn events(text: &str) -> Vec<EventClass> {
        super::super::parse(text.as_bytes()).unwrap().streams.remove(0).events
    }

    #[test]
    fn declarations_are_added_and_the_text_is_whole_after_each() {
        let (long, short) = (named(&["a", "b", "c", "d", "e"]), named(&["a", "b"]));
        let (mut growing, mut text) = Growing::begin(&empty());
        let added = [event(7, &long), event(2, &short), event(9, &long)];
        for (n, event) in added.iter().enumerate() {
            text += &growing.event(3, event);
            assert_eq!(events(&text), added[..=n]);
        }
        assert_eq!(text.matches("\"c\" = 2").count(), 1, "{text}");
        // Whoever goes on gives other names, even to the same enumeration.
        let mut resumed = Growing::resume(ByteOrder::Little, &text);
        text += &resumed.event(3, &event(11, &long));
        assert_eq!(events(&text).len(), 4);
        assert_eq!(text.matches("enum values_1 :").count(), 1, "{text}");
    }

    #[test]
    fn a_stream_comes_before_its_first_event() {
        let (mut growing, mut text) = Growing::begin(&empty());
        text += &growing.stream(&StreamClass { id: 4, ..StreamClass::default() });
        text += &growing.event(4, &event(7, &named(&["a", "b"])));
        let streams = super::super::parse(text.as_bytes()).unwrap().streams;
        let found: Vec<_> = streams.iter().map(|stream| (stream.id, stream.events.len())).collect();
        assert_eq!(found, [(3, 0), (4, 1)]);
    }

    #[test]
    fn half_a_declaration_is_known() {
        let long = named(&["a", "b", "c", "d", "e"]);
        let (mut growing, mut text) = Growing::begin(&empty());
        text += &growing.event(3, &event(7, &long));
        let whole = text.len();
        assert_eq!(Growing::whole(&text), whole);
        text += &growing.event(3, &event(9, &named(&["v", "w", "x", "y"])));
        for end in whole..text.len() {
            let known = Growing::whole(&text[..end]);
            assert!(known >= whole && known <= end, "{end}");
            assert!(super::super::parse(&text.as_bytes()[..known]).is_ok(), "{end}");
        }
    }
}
