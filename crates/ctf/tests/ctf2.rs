//! CTF 2: a trace made by a writer of its own, what must be refused, and our own
//! form of a trace described in JSON.

mod common;

use std::path::{Path, PathBuf};

use hetrace_ctf::class::{EnvValue, FieldClass, IntegerForm, Role, Scope, TraceClass};
use hetrace_ctf::ctf2::{self, JsonErrorKind};
use hetrace_ctf::metadata::{self, MetadataError};
use hetrace_ctf::read::{Merge, Trace};
use hetrace_ctf::write::Encoder;
use hetrace_ctf::{Value, tsdl};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ctf2")
}

/// A value as `make.py` writes it.
fn show(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::Unsigned(v) => v.to_string(),
        Value::Signed(v) => v.to_string(),
        Value::Float(v) => format!("{v:?}"),
        Value::Enum { value, label: Some(label) } => format!("{label}:{value}"),
        Value::Enum { value, label: None } => value.to_string(),
        Value::Str(text) => format!("\"{text}\""),
        Value::Bytes(bytes) => {
            format!("x'{}'", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
        }
        Value::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, v)| format!("{name}={}", show(v))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", list(items)),
        Value::Variant { option, value } => format!("{option}:{}", show(value)),
        Value::Optional(None) => "none".into(),
        Value::Optional(Some(value)) => format!("some {}", show(value)),
    }
}

#[test]
fn every_class_as_another_writer_has_it() {
    let trace = Trace::open(&without_notes()).unwrap();
    let mut lines = Vec::new();
    let mut merge = Merge::new(&trace);
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        let (ticks, ns) = (event.timestamp().unwrap(), event.ns_from_origin().unwrap());
        lines.push(format!("{ticks} {ns} {} {}", event.class().name, show(&event.fields().unwrap())));
        if event.stream_class().id == 3 {
            assert_eq!(
                event.get_in(Scope::StreamEventContext, "common").unwrap().as_u64(),
                Some(event.class().id - 200)
            );
            assert_eq!(event.packet().stream_instance_id, Some(300));
            assert_eq!(event.packet().timestamp_end, Some(99_999_999));
        }
        if event.class().name == "choices" {
            assert_eq!(event.get_in(Scope::EventContext, "depth").unwrap().as_u64(), Some(42));
            assert_eq!(event.packet().cpu_id, Some(10));
        }
        // A field by itself is what it is among the others.
        for (name, value) in match event.fields().unwrap() {
            Value::Struct(fields) => fields,
            other => panic!("{other:?}"),
        } {
            let scalar = event.get(&name).map(Value::from);
            assert!(scalar.is_none() || matches!(value, Value::Str(_)) || scalar == Some(value), "{name}");
        }
    }
    let expected = std::fs::read_to_string(data().join("expected.txt")).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    for (ours, theirs) in lines.iter().zip(&expected) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(lines.len(), expected.len());
    assert_eq!((merge.losses().events, merge.losses().packets), (5, 1));
}

/// The trace alone, in a folder: every file but the metadata is a stream.
fn without_notes() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ctf2");
    std::fs::create_dir_all(&dir).unwrap();
    for name in ["metadata", "stream-0", "stream-1"] {
        std::fs::copy(data().join(name), dir.join(name)).unwrap();
    }
    dir
}

fn class() -> TraceClass {
    metadata::parse(&std::fs::read(data().join("metadata")).unwrap()).unwrap()
}

#[test]
fn what_the_classes_say() {
    let class = class();
    assert_eq!((class.major, class.minor), (2, 0));
    assert_eq!(class.uuid.unwrap()[15], 15);
    assert_eq!(class.identity.namespace.as_deref(), Some("hetrace.test"));
    assert_eq!(class.env("domain"), Some(&EnvValue::Str("te\"st".into())));
    assert_eq!(class.env("minus"), Some(&EnvValue::Int(-1)));
    let clock = class.clock("ticks").unwrap();
    assert_eq!((clock.frequency, clock.offset_seconds, clock.offset, clock.absolute), (1000, 5, 250, true));
    assert_eq!(
        (clock.precision, clock.more.accuracy, clock.more.id.as_deref()),
        (Some(3), Some(4), Some("c"))
    );
    let other = class.clock("other").unwrap().more.origin.as_ref();
    assert_eq!(other.unwrap().name.as_deref(), Some("boot"));
    let stream = class.stream(3).unwrap();
    assert_eq!((stream.clock.as_deref(), stream.identity.name.as_deref()), (Some("ticks"), Some("first")));
    assert_eq!(stream.events[2].log_level, Some(2));
    let FieldClass::Integer(begin) = &stream.packet_context.as_ref().unwrap().fields[0].class else {
        panic!()
    };
    assert!(begin.roles.has(Role::DefaultClockTimestamp) && begin.clock.as_deref() == Some("ticks"));
    let FieldClass::Enum(map) = &stream.events[0].fields.fields[10].class else { panic!() };
    assert_eq!(map.container.form, IntegerForm::BitMap);
    assert_eq!(map.labels(0b101001).collect::<Vec<_>>(), ["low", "three"]);
    let FieldClass::Enum(named) = &stream.events[0].fields.fields[11].class else { panic!() };
    assert_eq!([5, 155, 100].map(|v| named.label(v)), [Some("small"), Some("large"), None]);
    let lttng = class.stream(4).unwrap();
    assert_eq!(lttng.event_identities[&77].uid.as_deref(), Some("x"));
}

#[test]
fn printing_and_reading_again_changes_nothing() {
    let class = class();
    let text = ctf2::print(&class).unwrap();
    assert_eq!(ctf2::parse(text.as_bytes()).unwrap(), class);
    // What was read can be written again, bit by bit.
    let trace = Trace::open(&without_notes()).unwrap();
    let mut reader = trace.stream(0).unwrap();
    let bytes = std::fs::read(data().join("stream-0")).unwrap();
    while let Some(event) = reader.next_event() {
        let event = event.unwrap();
        if matches!(event.class().name.as_str(), "bits" | "arrays" | "lebs" | "garbage") {
            // Aligned by more than a byte, not written in the shortest way, or with
            // something behind the end.
            continue;
        }
        let mut encoder = Encoder::new();
        encoder.structure(&event.class().fields, &event.fields().unwrap()).unwrap();
        let written = encoder.into_bytes();
        let end = (event.packet().offset + event.offset() - event.packet().offset) as usize
            + (event.size_bits() / 8) as usize;
        assert_eq!(bytes[end - written.len()..end], written, "{}", event.class().name);
    }
}

type Seen = Vec<(Option<i64>, String, [Value; 3])>;

fn events(trace: &Trace) -> (Seen, Vec<hetrace_ctf::read::PacketInfo>) {
    let (mut seen, mut packets) = (Vec::new(), Vec::new());
    let mut merge = Merge::new(trace);
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        let scopes = [Scope::PacketContext, Scope::StreamEventContext, Scope::EventFields];
        let values = scopes.map(|scope| event.value(scope).unwrap());
        seen.push((event.ns_from_origin(), event.class().name.clone(), values));
        packets.push(event.packet());
    }
    (seen, packets)
}

/// The same streams, once with TSDL and once with JSON.
fn same_in_both(class: &TraceClass, streams: &[(String, Vec<u8>)]) {
    let text = ctf2::print(class).unwrap();
    let new = metadata::parse(text.as_bytes()).unwrap();
    assert_eq!(new, ctf2::upgrade(class).unwrap());
    assert_eq!(ctf2::print(&new).unwrap(), text);
    let old = Trace::from_class(class.clone(), streams.to_vec()).unwrap();
    let new = Trace::from_class(new, streams.to_vec()).unwrap();
    assert_eq!(events(&new), events(&old));
}

#[test]
fn our_own_traces_in_json() {
    let streams: Vec<_> = (0..2).map(|i| (format!("s{i}"), common::stream(i, 3, 5))).collect();
    same_in_both(&common::class(), &streams);
}

#[test]
fn a_trace_of_lttng_in_json() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lttng-ust");
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let class = tsdl::parse(&read("metadata")).unwrap();
    same_in_both(&class, &["ch_0", "ch_1"].map(|name| (name.to_owned(), read(name))));
}

/// Fragments behind a preamble.
fn text(fragments: &[&str]) -> Vec<u8> {
    let all = [r#"{"type": "preamble", "version": 2}"#].iter().chain(fragments);
    all.flat_map(|f| ["\x1e", f, "\n"]).collect::<String>().into_bytes()
}

fn refused(fragments: &[&str]) -> JsonErrorKind {
    match metadata::parse(&text(fragments)) {
        Err(MetadataError::Json(error)) => {
            assert_eq!(error.fragment, fragments.len() + 1);
            error.kind
        }
        other => panic!("{fragments:?}: {other:?}"),
    }
}

#[test]
fn mistakes_are_named() {
    use JsonErrorKind::*;
    let alias =
        |class: &str| format!(r#"{{"type": "field-class-alias", "name": "x", "field-class": {class}}}"#);
    let class = |class: &str| refused(&[&alias(class)]);
    let integer = |more: &str| class(&format!(r#"{{"type": "fixed-length-unsigned-integer", {more}}}"#));
    let bad = |kind, name: &str| matches!(kind, BadValue { property, .. } if property == name);
    assert!(matches!(integer(r#""byte-order": "big-endian""#), Missing("length")));
    assert!(matches!(integer(r#""length": 8"#), Missing("byte-order")));
    assert!(bad(integer(r#""byte-order": "big-endian", "length": 65"#), "length"));
    assert!(bad(integer(r#""byte-order": "be", "length": 6"#), "byte-order"));
    assert!(bad(integer(r#""byte-order": "big-endian", "length": 6, "alignment": 3"#), "alignment"));
    assert!(bad(
        integer(r#""byte-order": "big-endian", "length": 6, "mappings": {"a": [[2, 1]]}"#),
        "mappings"
    ));
    assert!(bad(class(r#"{"type": "octopus"}"#), "type"));
    assert!(bad(class(r#"{"type": "static-length-blob", "length": -1}"#), "length"));
    assert!(matches!(class("\"y\""), Unknown { .. }));
    assert!(matches!(class("7"), Missing("type")));
    assert!(matches!(refused(&["{"]), Syntax { .. }));
    assert!(matches!(refused(&[r#"{"type": "preamble", "version": 2}"#]), Preamble));
    let event = r#"{"type": "event-record-class", "data-stream-class-id": 4}"#;
    assert!(matches!(refused(&[event]), Unknown { .. }));
    let stream = r#"{"type": "data-stream-class", "default-clock-class-id": "c"}"#;
    assert!(matches!(refused(&[stream]), Unknown { .. }));
    let stream = r#"{"type": "data-stream-class"}"#;
    assert!(matches!(refused(&[stream, stream]), Redefined { .. }));
    // A property that is not known may change what the others mean.
    let unknown = |kind, name: &str| matches!(kind, Unknown { what: "property", name: n } if n == name);
    assert!(unknown(integer(r#""byte-order": "big-endian", "length": 8, "align": 8"#), "align"));
    let member = r#"{"name": "a", "field-class": {"type": "structure"}, "length": 1}"#;
    assert!(unknown(class(&format!(r#"{{"type": "structure", "member-classes": [{member}]}}"#)), "length"));
    assert!(unknown(refused(&[r#"{"type": "data-stream-class", "clock": "c"}"#]), "clock"));
    let clock = |origin: &str| {
        refused(&[&format!(r#"{{"type": "clock-class", "id": "c", "frequency": 1, "origin": {origin}}}"#)])
    };
    assert!(matches!(clock(r#"{"uid": "u"}"#), Missing("name")));
    assert!(matches!(clock(r#"{"name": "n"}"#), Missing("uid")));
    assert!(unknown(clock(r#"{"name": "n", "uid": "u", "id": "i"}"#), "id"));
    // What is no object has no members to read: an offset of a clock would silently be none.
    let clock = r#"{"type": "clock-class", "id": "c", "frequency": 1, "offset-from-origin": 5}"#;
    assert!(bad(refused(&[clock]), "offset-from-origin"));
    let attributes = r#"{"type": "trace-class", "attributes": ["a"]}"#;
    assert!(bad(refused(&[attributes]), "attributes"));
    for extensions in ["7", r#"{"a": "b"}"#] {
        let text = format!("\x1e{{\"type\": \"preamble\", \"version\": 2, \"extensions\": {extensions}}}");
        let error = metadata::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, MetadataError::Json(e) if bad(e.kind.clone(), "extensions")));
    }
    let text = "\x1e{\"type\": \"preamble\", \"version\": 2, \"extensions\": {\"a\": {\"b\": true}}}";
    let error = metadata::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(error, MetadataError::Json(e) if e.kind == Extension("a:b".into())));
    assert!(metadata::parse(b"\x1e{\"type\": \"preamble\", \"version\": 3}").is_err());
    assert!(metadata::parse(b"\x1e").is_err());
}

#[test]
fn nesting_and_unfolding_are_bounded() {
    let deep = |n: usize| {
        let open = r#"{"type": "static-length-array", "length": 1, "element-field-class": "#.repeat(n);
        let class = format!(r#"{open}{{"type": "null-terminated-string"}}{}"#, "}".repeat(n));
        format!(r#"{{"type": "field-class-alias", "name": "x", "field-class": {class}}}"#)
    };
    assert!(metadata::parse(&text(&[&deep(60)])).is_ok());
    assert!(matches!(refused(&[&deep(64)]), JsonErrorKind::TooDeep(_)));
    assert!(matches!(refused(&[&deep(10_000)]), JsonErrorKind::TooDeep(_)));
    let alias = |name: usize, class: &str| {
        format!(r#"{{"type": "field-class-alias", "name": "a{name}", "field-class": {class}}}"#)
    };
    let unfold = |class: &dyn Fn(usize) -> String| {
        let mut fragments = vec![alias(0, r#"{"type": "null-terminated-string"}"#)];
        fragments.extend((0..80).map(|n| alias(n + 1, &class(n))));
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        match metadata::parse(&text(&fragments)) {
            Err(MetadataError::Json(error)) => error.kind,
            other => panic!("{other:?}"),
        }
    };
    let chain = |n: usize| {
        format!(r#"{{"type": "static-length-array", "length": 2, "element-field-class": "a{n}"}}"#)
    };
    assert!(matches!(unfold(&chain), JsonErrorKind::TooDeep(_)));
    let member = |n: usize, name: &str| format!(r#"{{"name": "{name}", "field-class": "a{n}"}}"#);
    let doubled = |n: usize| {
        format!(r#"{{"type": "structure", "member-classes": [{}, {}]}}"#, member(n, "a"), member(n, "b"))
    };
    assert!(matches!(unfold(&doubled), JsonErrorKind::TooLarge(_)));
}
