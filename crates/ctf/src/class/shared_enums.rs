//! Enumerations that a trace uses again and again, which get a name so that
//! they are written once.

use super::{EnumClass, EventClass, FieldClass, StructClass, TraceClass};

/// An enumeration with fewer names is as short as a reference to it.
const WORTH_A_NAME: usize = 4;

/// Returns the enumerations of a trace that are used more than once, in the order of
/// their first use.
pub(crate) fn collect(trace: &TraceClass) -> Vec<&EnumClass> {
    let mut seen: Vec<(&EnumClass, usize)> = Vec::new();
    for structure in structures(trace) {
        visit(structure, &mut seen);
    }
    seen.into_iter().filter(|(_, uses)| *uses > 1).map(|(class, _)| class).collect()
}

/// Returns the enumerations of an event that are long enough for a name, each once.
pub(crate) fn of_event(event: &EventClass) -> Vec<&EnumClass> {
    let mut seen = Vec::new();
    event.context.iter().chain([&event.fields]).for_each(|structure| visit(structure, &mut seen));
    seen.into_iter().map(|(class, _)| class).collect()
}

fn structures(trace: &TraceClass) -> impl Iterator<Item = &StructClass> {
    let streams = trace.streams.iter().flat_map(|stream| {
        let own = [&stream.packet_context, &stream.event_header, &stream.event_context];
        let events = stream.events.iter().flat_map(|e| e.context.iter().chain([&e.fields]));
        own.into_iter().flatten().chain(events)
    });
    trace.packet_header.iter().chain(streams)
}

fn visit<'c>(structure: &'c StructClass, seen: &mut Vec<(&'c EnumClass, usize)>) {
    for field in &structure.fields {
        class(&field.class, seen);
    }
}

fn class<'c>(of: &'c FieldClass, seen: &mut Vec<(&'c EnumClass, usize)>) {
    match of {
        FieldClass::Enum(e) if e.mappings.len() >= WORTH_A_NAME => {
            match seen.iter_mut().find(|(known, _)| *known == e) {
                Some((_, uses)) => *uses += 1,
                None => seen.push((e, 1)),
            }
        }
        FieldClass::Struct(s) => visit(s, seen),
        FieldClass::Array(a) => class(&a.element, seen),
        FieldClass::Sequence(s) => class(&s.element, seen),
        FieldClass::Optional(o) => class(&o.class, seen),
        FieldClass::Variant(v) => v.options.iter().for_each(|o| class(&o.class, seen)),
        _ => {}
    }
}
