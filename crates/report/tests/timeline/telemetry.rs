//! Telemetry as counters: a trace with nothing else.

use hetrace_ctf::Value;
use hetrace_ctf::class::{EventClass, FieldClass, IntegerClass, StreamClass, StructClass};
use hetrace_ctf::write::{Encoder, PacketWriter, StreamIdentity, form};
use hetrace_report::timeline;
use hetrace_trace::trace::{Manifest, Trace};

use crate::common::perfetto;

fn class(id: u64, name: &str, texts: &[&str], numbers: &[&str]) -> EventClass {
    let fields = StructClass::default().field("device", IntegerClass::unsigned(32));
    let fields = texts.iter().fold(fields, |all, name| all.field(*name, FieldClass::string()));
    let fields = numbers.iter().fold(fields, |all, name| all.field(*name, IntegerClass::unsigned(64)));
    EventClass { id, name: format!("telemetry:{name}"), fields, ..EventClass::default() }
}

fn stream() -> StreamClass {
    let mut stream = form::stream_class(0);
    stream.events = vec![
        class(0, "device", &["name"], &["index"]),
        class(1, "power", &[], &["milliwatts", "took"]),
        class(2, "energy", &[], &["millijoules", "took"]),
        class(3, "clocks", &[], &["sm", "memory", "graphics", "video"]),
        class(4, "throttle", &["names"], &["reasons"]),
        class(5, "nvlink", &[], &["tx", "rx", "interval"]),
        class(6, "memory", &[], &["used", "free", "reserved", "total"]),
    ];
    stream
}

/// Events of device 3: time, number of the class, text, numbers.
const EVENTS: [(u64, usize, &str, &[u64]); 12] = [
    (1_000_000, 0, "Toy GPU", &[0]),
    (1_000_000, 1, "", &[75_500, 10]),
    (1_000_000, 2, "", &[5_000, 10]),
    (1_000_000, 3, "", &[1980, 2619, 0, 0]),
    (1_000_000, 4, "GPU_IDLE", &[1]),
    (2_000_000, 1, "", &[300_000, 10]),
    (2_000_000, 2, "", &[5_250, 10]),
    (2_000_000, 4, "-", &[0]),
    (2_000_000, 5, "", &[7_000_000, 9_000_000, 500_000]),
    (3_000_000, 4, "SW_POWER_CAP|SW_THERMAL_SLOWDOWN", &[36]),
    (3_000_000, 6, "", &[1_000, 2_000, 10, 3_010]),
    (4_000_000, 2, "", &[5_000, 10]),
];

pub fn trace() -> Trace {
    let stream = stream();
    let identity =
        StreamIdentity { uuid: [9; 16], stream_id: 0, vpid: 9, vtid: 9, ..StreamIdentity::default() };
    let mut writer = PacketWriter::new(identity);
    for (time, id, text, numbers) in EVENTS {
        let class = &stream.events[id];
        let mut numbers = numbers.iter();
        let value = |field: &hetrace_ctf::class::Field| match &field.class {
            FieldClass::String(_) => Value::Str(text.to_owned()),
            _ if field.name == "device" => Value::Unsigned(3),
            _ => Value::Unsigned(*numbers.next().expect("a number")),
        };
        let names = class.fields.fields.iter().map(|f| f.name.clone());
        let values = class.fields.fields.iter().map(value).collect::<Vec<_>>();
        let mut encoder = Encoder::new();
        let body = Value::Struct(names.zip(values).collect());
        encoder.structure(&class.fields, &body).expect("fits");
        writer.event(id as u16, time, &encoder.into_bytes()).expect("fits");
    }
    let mut class = form::trace_class([9; 16], form::clock_class([7; 16], 0));
    class.streams.push(stream);
    let files = vec![("telemetry-1".to_owned(), writer.finish(8).to_vec())];
    let ctf = hetrace_ctf::read::Trace::from_class(class, files).expect("a trace");
    Trace::new(ctf, Vec::new(), Manifest { schema: 2, ..Manifest::default() })
}

#[test]
fn telemetry_becomes_counters() {
    let mut bytes = Vec::new();
    timeline::timeline(&trace(), &timeline::Options::default(), &mut bytes).expect("memory");
    let expected = "clock 3
track [GPU 0 Toy GPU]
counter [power, W] of GPU 0 Toy GPU
1000000 = [power, W] 75.5
2000000 = [power, W] 300
counter [power by energy, W] of GPU 0 Toy GPU
1000000 = [power by energy, W] 250
counter [sm clock, MHz] of GPU 0 Toy GPU
1000000 = [sm clock, MHz] 1980
counter [memory clock, MHz] of GPU 0 Toy GPU
1000000 = [memory clock, MHz] 2619
counter [memory used] of GPU 0 Toy GPU
3000000 = [memory used] 1000
counter [memory free] of GPU 0 Toy GPU
3000000 = [memory free] 2000
counter [memory reserved] of GPU 0 Toy GPU
3000000 = [memory reserved] 10
counter [memory total] of GPU 0 Toy GPU
3000000 = [memory total] 3010
track [reasons for lower clocks] of GPU 0 Toy GPU
1000000 > [reasons for lower clocks] throttle:GPU_IDLE
2000000 < [reasons for lower clocks]
3000000 > [reasons for lower clocks] throttle:SW_POWER_CAP|SW_THERMAL_SLOWDOWN
counter [NVLink tx, B/s] of GPU 0 Toy GPU
1500000 = [NVLink tx, B/s] 7000000
counter [NVLink rx, B/s] of GPU 0 Toy GPU
1500000 = [NVLink rx, B/s] 9000000
4000000 < [reasons for lower clocks]
";
    assert_eq!(perfetto::read(&bytes), expected);
}
