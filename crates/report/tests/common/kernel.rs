//! Lines of a script that are events of the kernel to a trace of their own, as LTTng's are.

use std::collections::BTreeMap;

use hetrace_ctf::Value;
use hetrace_ctf::class::{
    ByteOrder, ClockClass, EventClass, FieldClass, IntegerClass, StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::write::{Encoder, form};
use hetrace_trace::os;
use hetrace_trace::system::System;
use hetrace_trace::trace::{Manifest, Trace};

/// An event: its time, its name, and its fields as text.
pub type Event = (u64, String, Vec<(String, String)>);

/// What reports get of these events, by CPU. The program is process 1.
pub fn system(cpus: &BTreeMap<u32, Vec<Event>>) -> System {
    let trace = trace(cpus);
    let read = os::read(&trace, |pid| pid == 1, None);
    read.expect("nobody stops it").expect("it has events of the scheduler")
}

fn trace(cpus: &BTreeMap<u32, Vec<Event>>) -> Trace {
    let clock: ClockClass = form::clock_class([7; 16], 1_700_000_000_000_000_000);
    let header = StructClass::default()
        .field("id", IntegerClass::unsigned(16))
        .field("timestamp", IntegerClass::unsigned(64).clock(&clock.name));
    let context = StructClass::default().field("cpu_id", IntegerClass::unsigned(32));
    let mut stream = StreamClass {
        id: 0,
        packet_context: Some(context.clone()),
        event_header: Some(header.clone()),
        ..StreamClass::default()
    };
    for (_, name, fields) in cpus.values().flatten() {
        if !stream.events.iter().any(|class| class.name == *name) {
            let id = stream.events.len() as u64;
            stream.events.push(EventClass {
                id,
                name: name.clone(),
                fields: class(fields),
                ..EventClass::default()
            });
        }
    }
    let file = |(cpu, events): (&u32, &Vec<Event>)| {
        let mut encoder = Encoder::new();
        let number = |name: &str, value: u64| (name.to_owned(), Value::Unsigned(value));
        let mut put = |class: &StructClass, value: Value| encoder.structure(class, &value).expect("fits");
        put(&context, Value::Struct(vec![number("cpu_id", u64::from(*cpu))]));
        for (time, name, fields) in events {
            let id = stream.events.iter().position(|class| class.name == *name).expect("a class");
            put(&header, Value::Struct(vec![number("id", id as u64), number("timestamp", *time)]));
            put(&stream.events[id].fields, super::value::fields(&stream.events[id].fields, fields));
        }
        (format!("channel0_{cpu}"), encoder.into_bytes())
    };
    let files: Vec<(String, Vec<u8>)> = cpus.iter().map(file).collect();
    let class =
        TraceClass { clocks: vec![clock], streams: vec![stream], ..TraceClass::new(ByteOrder::Little) };
    let ctf = hetrace_ctf::read::Trace::from_class(class, files).expect("a trace");
    Trace::new(ctf, Vec::new(), Manifest::default())
}

/// Text in quotes is text; all else are numbers.
fn class(fields: &[(String, String)]) -> StructClass {
    fields.iter().fold(StructClass::default(), |class, (name, value)| match value.starts_with('"') {
        true => class.field(name.clone(), FieldClass::string()),
        false => class.field(name.clone(), IntegerClass::signed(64)),
    })
}
