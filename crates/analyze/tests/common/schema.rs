//! Models to CTF classes, as the session writes them.

use hetrace_ctf::class::{
    ClockClass, EnumClass, EnumMapping, EventClass, FieldClass, FieldPath, FloatClass, IntegerClass,
    StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::write::form;
use hetrace_model::Model;
use hetrace_model::layout::{self, Int, Shape};

const KINDS: [&str; 15] = [
    "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "marker", "barrier", "native",
    "free", "acquire", "release", "other",
];

/// Stream 0 is of devices, stream n + 1 of model n.
pub fn trace(models: &[Model]) -> TraceClass {
    let clock = ClockClass { absolute: true, ..form::clock_class([7; 16], 1_700_000_000_000_000_000) };
    let mut trace = form::trace_class([9; 16], clock);
    trace.streams.push(devices());
    for (number, model) in (1..).zip(models) {
        let mut stream: StreamClass = form::stream_class(number);
        for e in layout::events(model) {
            let mut fields = StructClass::default();
            for field in &e.fields {
                fields = push(model, fields, &field.name, &field.shape);
            }
            stream.events.push(event(u64::from(e.id), &e.name, fields));
        }
        trace.streams.push(stream);
    }
    trace
}

fn event(id: u64, name: &str, fields: StructClass) -> EventClass {
    EventClass { id, name: name.into(), fields, ..EventClass::default() }
}

fn push(model: &Model, fields: StructClass, name: &str, shape: &Shape) -> StructClass {
    match shape {
        Shape::Seq(element) => counted(fields, name, 8, class(model, element)),
        Shape::Bytes => counted(fields, name, 16, IntegerClass::unsigned(8).hex().into()),
        Shape::Texts => counted(fields, name, 8, FieldClass::string()),
        shape => fields.field(name, class(model, shape)),
    }
}

fn counted(fields: StructClass, name: &str, bits: u32, element: FieldClass) -> StructClass {
    let length = format!("_{name}_length");
    fields
        .field(length.clone(), IntegerClass::unsigned(bits))
        .field(name, FieldClass::sequence(FieldPath::relative(length), element))
}

fn class(model: &Model, shape: &Shape) -> FieldClass {
    match shape {
        Shape::Int(int) => integer(model, int),
        Shape::Float(4) => FloatClass::single().into(),
        Shape::Float(_) => FloatClass::double().into(),
        Shape::Text => FieldClass::string(),
        other => panic!("the toy models have no {other:?} here"),
    }
}

fn integer(model: &Model, int: &Int) -> FieldClass {
    let mut container = IntegerClass::new(u32::from(int.size) * 8, int.signed);
    if int.hex {
        container = container.hex();
    }
    let group = int.values.as_ref().and_then(|v| model.enums.iter().find(|g| g.name == *v));
    match group.filter(|g| !g.bits) {
        None => container.into(),
        Some(group) => {
            let mapping = |(label, value): &(String, i64)| {
                let value = i128::from(*value);
                EnumMapping { label: label.clone(), start: value, end: value }
            };
            let mappings = group.values.iter().map(mapping).collect();
            EnumClass { container, mappings }.into()
        }
    }
}

fn devices() -> StreamClass {
    let mut stream = form::stream_class(0);
    let handle = || IntegerClass::unsigned(64).hex();
    let number = || IntegerClass::unsigned(64);
    let common = |fields: StructClass| {
        fields
            .field("name", FieldClass::string())
            .field("queue", handle())
            .field("context", handle())
            .field("device", handle())
            .field("cause_tid", IntegerClass::unsigned(32))
            .field("cause", number())
            .field("bytes", number())
            .field("status", IntegerClass::signed(32))
    };
    for (id, kind) in (0..).zip(KINDS) {
        let mut fields = common(StructClass::default())
            .field("queued", number())
            .field("submitted", number())
            .field("end", number());
        if kind == "kernel" {
            for row in ["offset", "global", "local"] {
                fields = counted(fields, row, 8, number().into());
            }
        }
        stream.events.push(event(id, &format!("device:{kind}"), fields));
    }
    let queue = StructClass::default()
        .field("queue", handle())
        .field("context", handle())
        .field("device", handle())
        .field("properties", handle())
        .field("name", FieldClass::string());
    stream.events.push(event(64, "device:queue", queue));
    let untimed = common(StructClass::default().field("kind", FieldClass::string()))
        .field("times_error", IntegerClass::signed(32));
    stream.events.push(event(65, "device:untimed", untimed));
    stream
}
