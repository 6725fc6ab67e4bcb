//! The syntax tree to a [`TraceClass`].

use super::ast::{Assign, Item, Literal};
use super::attributes::{bad, boolean, byte_order, int, word};
use super::lower_type::Types;
use super::{ParseError, ParseErrorKind as Kind};
use crate::class::{
    ByteOrder, ClockClass, EnvValue, EventClass, FieldClass, StreamClass, StructClass, TraceClass,
};
use crate::metadata::budget;

type Result<T> = std::result::Result<T, ParseError>;

/// Makes the classes of a text of `text_len` bytes.
pub(super) fn trace(items: &[Item], text_len: usize) -> Result<TraceClass> {
    // The byte order and the clocks first: types may precede them.
    let mut trace = TraceClass::new(native_order(items)?);
    for (line, body) in blocks(items, "clock") {
        let clock = clock(line, body)?;
        trace.clocks.push(clock);
    }
    let mut implicit = false;
    let clocks = trace.clocks.clone();
    let mut types = Types::new(trace.byte_order, &clocks, budget(text_len));
    let mut events = Vec::new();
    for item in items {
        let Item::Block { line, kind, items } = item else {
            types.declare(item)?;
            continue;
        };
        match kind.as_str() {
            "trace" => types.scoped(|types| trace_block(types, items, &mut trace))?,
            "env" => env(items, &mut trace)?,
            "stream" => {
                let stream = types.scoped(|types| stream(types, items))?;
                if trace.stream(stream.id).is_some() {
                    let kind = Kind::DuplicateId { what: "stream", id: stream.id };
                    return Err(ParseError::new(*line, kind));
                }
                trace.streams.push(stream);
            }
            "event" => {
                let (stream, event) = types.scoped(|types| event(types, items))?;
                events.push((*line, stream, event));
            }
            _ => {}
        }
    }
    attach(&mut trace, events)?;
    for stream in &mut trace.streams {
        implicit |= map_times(stream, &clocks);
    }
    if implicit && trace.clocks.is_empty() {
        // As babeltrace2 does for time stamps in a trace without a clock.
        trace.clocks.push(ClockClass::new(IMPLICIT_CLOCK, 1_000_000_000));
    }
    Ok(trace)
}

const IMPLICIT_CLOCK: &str = "default";

fn blocks<'a>(items: &'a [Item], wanted: &'a str) -> impl Iterator<Item = (u32, &'a [Item])> {
    items.iter().filter_map(move |item| match item {
        Item::Block { line, kind, items } if kind == wanted => Some((*line, items.as_slice())),
        _ => None,
    })
}

fn assigns(items: &[Item]) -> impl Iterator<Item = &Assign> {
    items.iter().filter_map(|item| match item {
        Item::Assign(assign) => Some(assign),
        _ => None,
    })
}

fn native_order(items: &[Item]) -> Result<ByteOrder> {
    let attributes = blocks(items, "trace").flat_map(|(_, body)| assigns(body));
    match attributes.into_iter().find(|a| a.name() == "byte_order") {
        // Native to what, if this is where that is said?
        Some(a) if word(a)? == "native" => Err(bad(a)),
        Some(a) => byte_order(a, ByteOrder::Little),
        None => Ok(ByteOrder::Little),
    }
}

fn unsigned(a: &Assign) -> Result<u64> {
    u64::try_from(int(a)?).map_err(|_| bad(a))
}

fn uuid(a: &Assign) -> Result<[u8; 16]> {
    let text = word(a)?;
    let digits: Vec<u32> = text.chars().filter(|&c| c != '-').map_while(|c| c.to_digit(16)).collect();
    let hyphens = text.matches('-').count();
    if digits.len() != 32 || text.chars().count() != 32 + hyphens {
        return Err(bad(a));
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] << 4 | pair[1]) as u8;
    }
    Ok(uuid)
}

fn clock(line: u32, items: &[Item]) -> Result<ClockClass> {
    let mut clock = ClockClass::new("", 1_000_000_000);
    for a in assigns(items) {
        match &*a.name() {
            "name" => clock.name = word(a)?.into(),
            "uuid" => clock.uuid = Some(uuid(a)?),
            "description" => clock.description = Some(word(a)?.into()),
            "freq" => clock.frequency = Some(unsigned(a)?).filter(|&f| f > 0).ok_or_else(|| bad(a))?,
            "precision" => clock.precision = Some(unsigned(a)?),
            "offset_s" => clock.offset_seconds = i64::try_from(int(a)?).map_err(|_| bad(a))?,
            "offset" => match int(a)? {
                ticks if ticks >= 0 => clock.offset = unsigned(a)?,
                // Kept in the seconds below, so that ticks stay unsigned.
                _ => continue,
            },
            "absolute" => clock.absolute = boolean(a)?,
            _ => {}
        }
    }
    for a in assigns(items).filter(|a| a.name() == "offset" && matches!(a.value, Literal::Int(..0))) {
        let (ticks, frequency) = (int(a)?, i128::from(clock.frequency));
        let seconds = i64::try_from(ticks.div_euclid(frequency)).map_err(|_| bad(a))?;
        clock.offset_seconds = clock.offset_seconds.checked_add(seconds).ok_or_else(|| bad(a))?;
        clock.offset = ticks.rem_euclid(frequency) as u64;
    }
    if clock.name.is_empty() {
        return Err(ParseError::new(line, Kind::Missing("name")));
    }
    Ok(clock)
}

fn env(items: &[Item], trace: &mut TraceClass) -> Result<()> {
    for a in assigns(items) {
        let value = match &a.value {
            Literal::Int(value) => EnvValue::Int(i64::try_from(*value).map_err(|_| bad(a))?),
            _ => EnvValue::Str(word(a)?.into()),
        };
        trace.env.push((a.name().into_owned(), value));
    }
    Ok(())
}

fn trace_block(types: &mut Types<'_>, items: &[Item], trace: &mut TraceClass) -> Result<()> {
    for item in items {
        match item {
            Item::Assign(a) => match &*a.name() {
                "major" => trace.major = unsigned(a)?,
                "minor" => trace.minor = unsigned(a)?,
                "uuid" => trace.uuid = Some(uuid(a)?),
                _ => {}
            },
            Item::TypeAssign { path, spec } if path.join(".") == "packet.header" => {
                trace.packet_header = Some(types.struct_class(spec)?);
            }
            _ => types.declare(item)?,
        }
    }
    Ok(())
}

fn stream(types: &mut Types<'_>, items: &[Item]) -> Result<StreamClass> {
    let mut stream = StreamClass::default();
    for item in items {
        match item {
            Item::Assign(a) if a.name() == "id" => stream.id = unsigned(a)?,
            Item::TypeAssign { path, spec } => {
                let slot = match path.join(".").as_str() {
                    "packet.context" => &mut stream.packet_context,
                    "event.header" => &mut stream.event_header,
                    "event.context" => &mut stream.event_context,
                    _ => continue,
                };
                *slot = Some(types.struct_class(spec)?);
            }
            _ => types.declare(item)?,
        }
    }
    Ok(stream)
}

fn event(types: &mut Types<'_>, items: &[Item]) -> Result<(Option<u64>, EventClass)> {
    let mut event = EventClass::default();
    let mut stream = None;
    for item in items {
        match item {
            Item::Assign(a) => match &*a.name() {
                "name" => event.name = name(a)?,
                "id" => event.id = unsigned(a)?,
                "stream_id" => stream = Some(unsigned(a)?),
                // Names of levels are not of CTF; only numbers are kept.
                "loglevel" => event.log_level = int(a).ok().and_then(|level| i64::try_from(level).ok()),
                "model.emf.uri" => event.emf_uri = Some(word(a)?.into()),
                _ => {}
            },
            Item::TypeAssign { path, spec } => match path.join(".").as_str() {
                "context" => event.context = Some(types.struct_class(spec)?),
                "fields" => event.fields = types.struct_class(spec)?,
                _ => {}
            },
            _ => types.declare(item)?,
        }
    }
    Ok((stream, event))
}

/// Returns the name of an event, which some write without quotes.
fn name(a: &Assign) -> Result<String> {
    match &a.value {
        Literal::Path(path) => Ok(path.join(".")),
        _ => Ok(word(a)?.into()),
    }
}

/// Gives events to their streams.
fn attach(trace: &mut TraceClass, events: Vec<(u32, Option<u64>, EventClass)>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    if trace.streams.is_empty() && events.iter().any(|(_, stream, _)| stream.is_none()) {
        trace.streams.push(StreamClass::default());
    }
    for (line, stream_id, event) in events {
        let only = match trace.streams.as_slice() {
            [only] => only.id,
            _ => 0,
        };
        let id = stream_id.unwrap_or(only);
        if !seen.insert((id, event.id)) {
            let kind = Kind::DuplicateId { what: "event", id: event.id };
            return Err(ParseError::new(line, kind));
        }
        match trace.streams.iter_mut().find(|s| s.id == id) {
            Some(stream) => stream.events.push(event),
            None => return Err(ParseError::new(line, Kind::UnknownStream(id))),
        }
    }
    Ok(())
}

/// Maps the well-known time stamps that name no clock to the only clock, as
/// babeltrace2 does. Says whether there was one to map.
fn map_times(stream: &mut StreamClass, clocks: &[ClockClass]) -> bool {
    let clock = match clocks {
        [] => IMPLICIT_CLOCK,
        [only] => only.name.as_str(),
        _ => return false,
    };
    let mut mapped = false;
    let mut map = |class: &mut Option<StructClass>, names: &[&str]| {
        for field in class.iter_mut().flat_map(|c| &mut c.fields) {
            if let FieldClass::Integer(int) = &mut field.class
                && int.clock.is_none()
                && !int.signed
                && names.contains(&field.name.as_str())
            {
                int.clock = Some(clock.into());
                mapped = true;
            }
        }
    };
    map(&mut stream.packet_context, &["timestamp_begin", "timestamp_end"]);
    map(&mut stream.event_header, &["timestamp"]);
    mapped
}
