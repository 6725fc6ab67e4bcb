//! Models to CTF classes, as the session writes them.

use hetrace_ctf::class::{
    ClockClass, EnumClass, EnumMapping, EventClass, FieldClass, FieldPath, FloatClass, IntegerClass,
    StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::write::form;
use hetrace_model::layout::{self, Int, Shape};
use hetrace_model::{Kind, Model, Type};

const KINDS: [&str; 16] = [
    "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "marker", "barrier", "native",
    "free", "acquire", "release", "other", "graph",
];
const MEMORY: [&str; 8] = ["unknown", "pageable", "pinned", "device", "array", "managed", "peer", "host"];

/// Quantities of telemetry with their fields.
const QUANTITIES: [(&str, &[&str]); 13] = [
    ("power", &["milliwatts", "took"]),
    ("energy", &["millijoules", "took"]),
    ("clocks", &["sm", "memory", "graphics", "video"]),
    ("utilization", &["gpu", "memory"]),
    ("memory", &["used", "free", "reserved", "total"]),
    ("temperature", &["celsius"]),
    ("cpu", &["user", "system", "iowait", "steal", "interval"]),
    ("frequency", &["kilohertz"]),
    ("host_memory", &["used", "available", "total", "swap"]),
    ("resident", &["bytes"]),
    ("pressure", &["cpu", "memory", "io"]),
    ("disk", &["read", "written", "interval"]),
    ("network", &["tx", "rx", "interval"]),
];

/// Stream 0 is of devices, stream n + 1 of model n, stream 64 of telemetry. Of functions that do not occur nothing is
/// declared, as in traces.
pub fn trace(models: &[Model], occurs: impl Fn(&str) -> bool) -> TraceClass {
    let clock = ClockClass { absolute: true, ..form::clock_class([7; 16], 1_700_000_000_000_000_000) };
    let mut trace = form::trace_class([9; 16], clock);
    trace.streams.push(devices());
    for (number, model) in (1..).zip(models) {
        let mut stream: StreamClass = form::stream_class(number);
        let functions = model.functions.iter().enumerate().filter(|(_, function)| occurs(&function.name));
        for e in functions.flat_map(|(index, _)| layout::function_events(model, index)) {
            let mut fields = StructClass::default();
            for field in &e.fields {
                fields = push(model, fields, &field.name, &field.shape);
            }
            stream.events.push(event(u64::from(e.id), &e.name, fields));
        }
        let unknown = StructClass::default()
            .field("name", FieldClass::string())
            .field("args", FieldClass::array(6, IntegerClass::unsigned(64).hex()));
        stream.events.push(event(6, &format!("{}:unknown", model.api), unknown));
        let text = StructClass::default()
            .field("code", IntegerClass::signed(32))
            .field("text", FieldClass::string());
        stream.events.push(event(7, &format!("{}:error_text", model.api), text));
        let work = StructClass::default().field("ns", uint(64));
        stream.events.push(event(8, &format!("{}:own_work", model.api), work));
        let steps = ["one_in", "summed", "spent_ppm", "budget_ppm"];
        let step = steps.iter().fold(StructClass::default(), |f, name| f.field(*name, uint(32)));
        stream.events.push(event(9, &format!("{}:budget_step", model.api), step));
        for (id, name) in [(18, "py_stack"), (20, "stack")] {
            let fields = StructClass::default().field("stack", uint(64).hex()).field("entry", uint(16));
            stream.events.push(event(id, &format!("{}:{name}", model.api), fields));
        }
        trace.streams.push(stream);
    }
    trace.streams.push(telemetry());
    trace.streams.push(samples());
    trace
}

fn samples() -> StreamClass {
    let mut stream = form::stream_class(66);
    let fields =
        ["pid", "tid", "cpu", "kernel"].iter().fold(StructClass::default(), |f, n| f.field(*n, uint(32)));
    let fields = fields.field("period", uint(64)).field("stack", uint(64).hex());
    stream.events.push(event(0, "cpu:sample", fields));
    stream
}

fn telemetry() -> StreamClass {
    let mut stream = form::stream_class(64);
    let numbered = || StructClass::default().field("device", uint(32));
    let texts = ["source", "uuid", "name", "pci", "driver", "power", "available"].iter();
    let device = texts.fold(numbered().field("index", uint(32)), |f, t| f.field(*t, FieldClass::string()));
    stream.events.push(event(0, "telemetry:device", device.field("power_limit", uint(64))));
    for (id, (name, values)) in (1..).zip(QUANTITIES) {
        let fields = values.iter().fold(numbered(), |f, v| f.field(*v, uint(64)));
        stream.events.push(event(id, &format!("telemetry:{name}"), fields));
    }
    let throttle = numbered().field("reasons", uint(64).hex()).field("names", FieldClass::string());
    stream.events.push(event(32, "telemetry:throttle", throttle));
    stream
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
        Shape::Struct(name) => match model.types.iter().find(|t| t.name == *name) {
            Some(t) if t.kind == Kind::Union => {
                FieldClass::array(t.size.into(), IntegerClass::unsigned(8).hex())
            }
            Some(t) => FieldClass::Struct(structure(model, t)),
            None => panic!("no type {name}"),
        },
        other => panic!("the toy models have no {other:?} here"),
    }
}

/// A struct as C lays it out, with gaps.
fn structure(model: &Model, ty: &Type) -> StructClass {
    let (mut fields, mut at, mut gaps) = (StructClass::default(), 0, 0);
    let mut gap = |fields: StructClass, bytes: u32| {
        gaps += 1;
        fields.field(format!("_padding_{gaps}"), FieldClass::array(bytes.into(), IntegerClass::unsigned(8)))
    };
    for m in &ty.members {
        if m.offset > at {
            fields = gap(fields, m.offset - at);
        }
        let inner = model.types.iter().find(|t| t.name == m.ty).filter(|_| m.pointers == 0);
        let size = inner.map_or(8, |t| t.size);
        let element = match inner {
            Some(t) if m.count > 1 && t.size == 1 => IntegerClass::character().into(),
            Some(t) if matches!(t.kind, Kind::Struct | Kind::Union) => {
                class(model, &Shape::Struct(t.name.clone()))
            }
            Some(t) if matches!(t.kind, Kind::Int | Kind::Uint) => {
                let signed = t.kind == Kind::Int;
                integer(model, &Int { size: t.size as u8, signed, hex: t.hex, values: t.values.clone() })
            }
            _ => IntegerClass::unsigned(64).hex().into(),
        };
        let member = if m.count > 1 { FieldClass::array(m.count.into(), element) } else { element };
        fields = fields.field(&*m.name, member);
        at = m.offset + size * m.count;
    }
    if ty.size > at { gap(fields, ty.size - at) } else { fields }
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

fn uint(bits: u32) -> IntegerClass {
    IntegerClass::unsigned(bits)
}

fn names(names: &[&str]) -> FieldClass {
    let mapping =
        |(value, label): (i128, &&str)| EnumMapping { label: (*label).to_owned(), start: value, end: value };
    EnumClass { container: uint(8), mappings: (0..).zip(names).map(mapping).collect() }.into()
}

/// What a call sends, by its hash.
fn sent() -> EventClass {
    let cause = StructClass::default().field("cause_tid", uint(32)).field("cause", uint(64));
    let numbers = ["source", "length", "hashed", "content_hash"];
    let fields = numbers.iter().fold(cause, |fields, name| fields.field(*name, uint(64)));
    event(92, "object:sent", fields.field("error", IntegerClass::signed(32)))
}

fn devices() -> StreamClass {
    let mut stream = form::stream_class(0);
    let distance = || IntegerClass::signed(48);
    let cause = |fields: StructClass| {
        fields.field("queue", uint(32)).field("cause_tid", uint(32)).field("cause_before", distance())
    };
    let one = |fields: StructClass, name: &str, class: IntegerClass| counted(fields, name, 8, class.into());
    let status = |fields| one(fields, "status", IntegerClass::signed(32));
    for (id, kind) in (0..).zip(KINDS) {
        let mut fields = cause(StructClass::default())
            .field("queued_before", distance())
            .field("submitted_before", distance())
            .field("duration", distance());
        if kind == "kernel" {
            fields = status(fields.field("function", uint(32)));
            for (name, bits) in
                [("shared", 32), ("offset", 48), ("global", 48), ("local", 32), ("cluster", 16)]
            {
                fields = one(fields, name, uint(bits));
            }
        } else {
            let fields_ =
                fields.field("bytes", uint(48)).field("from", names(&MEMORY)).field("to", names(&MEMORY));
            fields = one(one(status(fields_), "function", uint(32)), "peer", uint(32));
        }
        let length = FieldPath::relative("_graph_length".to_owned());
        fields = one(fields, "graph", uint(32)).field("node", FieldClass::sequence(length, uint(64)));
        stream.events.push(event(id, &format!("device:{kind}"), one(fields, "weight", uint(64))));
    }
    stream.events.push(sent());
    let text = FieldClass::string;
    let queue = StructClass::default()
        .field("queue", uint(32))
        .field("handle", uint(64).hex())
        .field("context", uint(64).hex())
        .field("device", uint(32))
        .field("api", text())
        .field("properties", uint(64).hex())
        .field("priority", IntegerClass::signed(32))
        .field("number", uint(32));
    stream.events.push(event(64, "device:queue", queue));
    let untimed = cause(StructClass::default().field("kind", names(&KINDS)))
        .field("bytes", uint(48))
        .field("times_error", IntegerClass::signed(32));
    let untimed = one(status(untimed), "function", uint(32));
    stream.events.push(event(65, "device:untimed", untimed));
    let device = StructClass::default().field("device", uint(32)).field("handle", uint(64).hex());
    let device = device.field("ordinal", uint(32)).field("name", text()).field("uuid", text());
    let device = device.field("compute_units", uint(32)).field("api", text());
    stream.events.push(event(66, "device:device", device));
    let property =
        StructClass::default().field("device", uint(32)).field("name", text()).field("value", uint(64));
    stream.events.push(event(67, "device:property", property));
    let function =
        StructClass::default().field("function", uint(32)).field("name", text()).field("registers", uint(32));
    let function = ["shared", "local"].iter().fold(function, |f, name| f.field(*name, uint(32)));
    stream.events.push(event(68, "device:function", function));
    stream.events.push(launches());
    stream.events.extend(frames());
    stream
}

/// What stacks are: Python's, and native ones, those of one frame that addresses in calls stand for among them.
fn frames() -> [EventClass; 5] {
    let ids =
        |names: &[&str]| names.iter().fold(StructClass::default(), |f, name| f.field(*name, uint(64).hex()));
    let text = FieldClass::string;
    let python = ids(&["stack", "around"]).field("line", uint(32)).field("first_line", uint(32));
    let python = python.field("file", text()).field("name", text());
    let module =
        ids(&["module", "base"]).field("bytes", uint(64)).field("build_id", text()).field("path", text());
    let symbol = ids(&["module", "address"]).field("level", uint(32)).field("function", text());
    let symbol = symbol.field("file", text()).field("line", uint(32));
    [
        event(70, "python:frame", python),
        event(71, "native:module", module),
        event(72, "native:frame", ids(&["stack", "around", "module", "address"])),
        event(73, "native:symbol", symbol),
        event(74, "native:code", ids(&["code", "stack"])),
    ]
}

/// How often a function was launched.
fn launches() -> EventClass {
    let counts =
        ["launches", "timed", "bytes", "nodes", "nodes_timed", "nodes_bytes", "of_graphs", "of_graphs_bytes"];
    let function = StructClass::default().field("function", uint(32));
    let counts = counts.iter().fold(function, |f, name| f.field(*name, uint(64)));
    let counts = counts.field("nodes_off", uint(32)).field("kind", names(&KINDS));
    event(69, "device:launches", counts.field("from", names(&MEMORY)).field("to", names(&MEMORY)))
}
