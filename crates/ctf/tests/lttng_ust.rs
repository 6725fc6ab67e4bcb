//! A trace that LTTng-UST recorded: the reader against a foreign writer.

use std::path::Path;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Merge, Trace};
use hetrace_ctf::{Scalar, Value, tsdl};

fn open() -> Trace {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lttng-ust");
    Trace::open(&dir).unwrap()
}

#[test]
fn all_events_in_order() {
    let trace = open();
    let mut merge = Merge::new(&trace);
    let (mut calls, mut empties, mut last) = (0, 0, i64::MIN);
    let mut gap = 0;
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        let now = event.ns_from_origin().unwrap();
        assert!(now >= last);
        if last > i64::MIN {
            gap = gap.max(now - last);
        }
        last = now;
        let procname = event.get_in(Scope::StreamEventContext, "procname");
        assert_eq!(procname, Some(Scalar::Str("app")));
        match event.class().name.as_str() {
            "demo:call" => {
                check_call(&event, calls);
                calls += 1;
            }
            _ => empties += 1,
        }
    }
    assert_eq!((calls, empties), (24, 24));
    assert!(gap > 5_000_000_000, "the sleep of 5 s shows: {gap}");
}

fn check_call(event: &hetrace_ctf::read::Event<'_, '_>, n: i64) {
    assert_eq!(event.get("n"), Some(Scalar::Signed(n)));
    assert_eq!(event.get("ptr"), Some(Scalar::Unsigned(n as u64 * 0x1_2345_6789)));
    assert_eq!(event.get("s"), Some(Scalar::Str("hello world")));
    assert_eq!(event.get("d"), Some(Scalar::Float(n as f64 * 1.5)));
    assert_eq!(event.get("f"), Some(Scalar::Float(n as f64 * 1.5)));
    assert_eq!(event.get("txt"), Some(Scalar::Str("abcdefg")));
    assert_eq!(event.get("stxt"), Some(Scalar::Str(&"hello"[..n as usize % 5])));
    assert_eq!(event.get("arr"), None, "has parts");
    let label = match n % 7 {
        0 => "red",
        1..=5 => "green",
        _ => "blue",
    };
    assert_eq!(event.get("col").unwrap().as_str(), Some(label));
    let fields = event.fields().unwrap();
    let numbers = [1, 2, 3].map(Value::Unsigned).to_vec();
    assert_eq!(fields.get("arr"), Some(&Value::Array(numbers)));
    let bytes = b"hello"[..n as usize % 4].iter().map(|&b| Value::Signed(i64::from(b)));
    assert_eq!(fields.get("seq"), Some(&Value::Array(bytes.collect())));
}

#[test]
fn metadata_survives_printing() {
    let trace = open();
    let class = trace.class();
    assert_eq!(class.env("tracer_name"), Some(&hetrace_ctf::class::EnvValue::Str("lttng-ust".into())));
    assert_eq!(&tsdl::parse(tsdl::print(class).as_bytes()).unwrap(), class);
}

/// The header that LTTng's kernel tracer prefers: 5 bits of id, 27 of clock.
#[test]
fn compact_headers() {
    let metadata = r#"
        typealias integer { size = 5; align = 1; } := uint5_t;
        typealias integer { size = 32; align = 8; } := uint32_t;
        trace { major = 1; minor = 8; byte_order = le; };
        clock { name = monotonic; };
        typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := stamp27;
        typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := stamp64;
        struct event_header_compact {
            enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
            variant <id> {
                struct { stamp27 timestamp; } compact;
                struct { uint32_t id; stamp64 timestamp; } extended;
            } v;
        } align(8);
        stream { packet.context := struct { stamp64 timestamp_begin; }; event.header := struct event_header_compact; };
        event { name = few; id = 3; fields := struct { uint32_t _n; }; };
        event { name = many; id = 77; fields := struct { uint32_t _n; }; };
    "#;
    let begin = (9u64 << 27) - 2;
    let mut bytes = begin.to_le_bytes().to_vec();
    let compact = |id: u32, stamp: u64| (id | (stamp as u32) << 5).to_le_bytes();
    bytes.extend(compact(3, begin + 1));
    bytes.extend(10u32.to_le_bytes());
    bytes.extend(compact(3, begin + 5));
    bytes.extend(11u32.to_le_bytes());
    bytes.push(31);
    bytes.extend(77u32.to_le_bytes());
    bytes.extend((begin + (1 << 30)).to_le_bytes());
    bytes.extend(12u32.to_le_bytes());
    let trace = Trace::from_parts(metadata.as_bytes(), vec![("s".into(), bytes)]).unwrap();
    let mut reader = trace.stream(0).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = reader.next_event() {
        let event = event.unwrap();
        let n = event.get("n").unwrap().as_u64().unwrap();
        seen.push((event.class().name.clone(), event.timestamp().unwrap() - begin, n));
    }
    let expected = [("few", 1, 10), ("few", 5, 11), ("many", 1 << 30, 12)];
    assert_eq!(seen, expected.map(|(name, time, n)| (name.to_owned(), time, n)));
}
