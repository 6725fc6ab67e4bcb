//! A [`TraceClass`] to TSDL text.

use std::fmt::Write;

use super::names::to_raw_ident;
use super::print_type::Printer;
use super::shared_enums;
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
    let mut p = Printer::new(trace.byte_order);
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
    p.text
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

/// Returns a text between quotes, with what would end it or the line escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Always three digits, so that a digit behind is not taken for one.
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\{:03o}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
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
