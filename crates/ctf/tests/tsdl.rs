//! The language: what other tracers write, and what must be refused.

use hetrace_ctf::class::{Base, ByteOrder, Encoding, EnvValue, FieldClass, FieldPath, Scope};
use hetrace_ctf::read::Trace;
use hetrace_ctf::tsdl::{self, MetadataError, ParseErrorKind};

const MIXED: &str = r#"
/* CTF 1.8 */
typealias integer { size = 8; } := uint8_t;
typealias integer { size = 32; signed = true; } := int;
typealias integer { size = 64; align = 8; } := unsigned long;
typedef uint8_t small, pair[2];
struct point { int x, y; } align(64);
variant shape { uint8_t _none; struct point point; string string_; };
enum kind : uint8_t { "_none", point, string_ = 7, "rest" = 8 ... 255 };
trace {
    major = 1; minor = 0x8; byte_order = be; uuid = "01234567-89ab-cdef-0123-456789abcdef";
    packet.header := struct { unsigned long magic; uint8_t uuid[16]; };
    some.unknown = "attribute";
};
env { domain = "kernel"; version = -3; };
clock { name = "mono"; freq = 1000; offset_s = 2; offset = 500; absolute = TRUE; };
callsite { name = "x"; func = "f"; ip = 0x12; };
stream {
    id = 3;
    typealias integer { size = 40; align = 1; map = clock.mono.value; byte_order = le; } := stamp;
    packet.context := struct { unsigned long len; };
    event.header := struct { uint8_t id; stamp timestamp; };
};
event {
    name = outer:inner; id = 1; stream_id = 3; loglevel = 7; model.emf.uri = "http://x";
};
event {
    name = "all"; id = 0x2; stream_id = 3;
    context := struct { uint8_t which; };
    fields := struct {
        typedef enum kind local;
        local __tag;
        variant shape <__tag> v;
        enum : int { A, B = 5, C, } autos;
        integer { size = 8; encoding = UTF8; base = hex; } text[stream.packet.context.len];
        floating_point { exp_dig = 8; mant_dig = 24; byte_order = le; } f;
        uint8_t grid[2][3];
        const unsigned long _end;
    };
};
"#;

#[test]
fn a_text_with_everything() {
    // Unquoted names have no colons; everything else is as LTTng and others write it.
    let text = MIXED.replace("outer:inner", "outer.inner");
    let trace = tsdl::parse(text.as_bytes()).unwrap();
    assert_eq!((trace.major, trace.minor, trace.byte_order), (1, 8, ByteOrder::Big));
    assert_eq!(trace.uuid.unwrap()[..3], [0x01, 0x23, 0x45]);
    assert_eq!(trace.env("version"), Some(&EnvValue::Int(-3)));
    let clock = trace.clock("mono").unwrap();
    assert_eq!(clock.ns_from_origin(250), Some(2_750_000_000));
    assert!(clock.absolute);
    let stream = trace.stream(3).unwrap();
    assert_eq!(stream.events[0].name, "outer.inner");
    assert_eq!(stream.events[0].log_level, Some(7));
    assert_eq!(stream.events[0].emf_uri.as_deref(), Some("http://x"));

    let fields = &stream.events[1].fields;
    let names: Vec<_> = fields.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["_tag", "v", "autos", "text", "f", "grid", "end"]);
    let FieldClass::Variant(v) = &fields.fields[1].class else { panic!() };
    assert_eq!(v.tag, FieldPath::relative("_tag"));
    assert_eq!(v.options[1].class.align(), 64);
    let FieldClass::Enum(autos) = &fields.fields[2].class else { panic!() };
    assert_eq!([0, 5, 6].map(|n| autos.label(n)), [Some("A"), Some("B"), Some("C")]);
    let FieldClass::Sequence(text) = &fields.fields[3].class else { panic!() };
    assert_eq!(text.length, FieldPath::absolute(Scope::PacketContext, ["len"]));
    let FieldClass::Integer(character) = &*text.element else { panic!() };
    assert_eq!((character.base, character.encoding), (Base::Hexadecimal, Encoding::Utf8));
    let FieldClass::Array(grid) = &fields.fields[5].class else { panic!() };
    let FieldClass::Array(row) = &*grid.element else { panic!() };
    assert_eq!((grid.len, row.len), (2, 3));

    assert_eq!(tsdl::parse(tsdl::print(&trace).as_bytes()).unwrap(), trace);
    Trace::from_class(trace, Vec::new()).unwrap();
}

/// A metadata packet, as LTTng writes it.
fn packet(text: &str, order: ByteOrder, padding: usize) -> Vec<u8> {
    let word = |value: u32| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let content = 37 + text.len();
    let mut bytes = word(0x75D1_1D57).to_vec();
    bytes.extend([0; 16]);
    bytes.extend(word(0));
    bytes.extend(word(content as u32 * 8));
    bytes.extend(word((content + padding) as u32 * 8));
    bytes.extend([0, 0, 0, 1, 8]);
    bytes.extend(text.as_bytes());
    bytes.resize(content + padding, 0);
    bytes
}

#[test]
fn packets_in_both_orders() {
    let text = MIXED.replace("outer:inner", "outer");
    let plain = tsdl::parse(text.as_bytes()).unwrap();
    let (a, b) = text.split_at(700);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut bytes = packet(a, order, 11);
        bytes.extend(packet(b, order, 0));
        assert_eq!(tsdl::parse(&bytes).unwrap(), plain);
        bytes.truncate(bytes.len() - 1);
        assert!(matches!(tsdl::parse(&bytes), Err(MetadataError::BadPacket { .. })));
    }
}

fn refused(text: &str) -> ParseErrorKind {
    match tsdl::parse(text.as_bytes()) {
        Err(MetadataError::Parse(error)) => error.kind,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn mistakes_are_named() {
    use ParseErrorKind::*;
    assert!(matches!(refused("typealias nothing := x;"), UnknownType(_)));
    assert!(matches!(refused("event { name = \"e\"; id = 1; stream_id = 4; };"), UnknownStream(4)));
    assert!(matches!(refused("typealias integer { size = 65; } := x;"), BadValue { .. }));
    assert!(matches!(refused("typealias integer { size = 8; align = 3; } := x;"), BadValue { .. }));
    assert!(matches!(refused("typealias integer { signed = 1; } := x;"), Missing("size")));
    assert!(matches!(refused("stream { id = 1; }; stream { id = 1; };"), DuplicateId { id: 1, .. }));
    assert!(matches!(refused("typealias integer { size = 8; map = clock.c.value; } := x;"), UnknownClock(_)));
    assert!(matches!(refused("clock { freq = 0; name = c; };"), BadValue { .. }));
    assert!(matches!(refused("struct a { string s; }; struct a { string s; };"), Redefined(_)));
    assert!(matches!(refused("event {"), Expected { .. }));
    assert!(matches!(refused("clock { name = \"x"), Unterminated(_)));
}

#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!("{}string s;{}", "struct { ".repeat(n), " } x;".repeat(n));
    assert!(matches!(refused(&deep(100_000)), ParseErrorKind::TooDeep(_)));
    let names = |n: usize| "{ a ".repeat(n);
    assert!(matches!(refused(&names(100_000)), ParseErrorKind::Expected { .. }));
    let mut text = String::from("typealias integer { size = 8; } := t0;");
    for i in 0..200 {
        text.push_str(&format!("typedef t{i} t{}[2];", i + 1));
    }
    assert!(matches!(refused(&text), ParseErrorKind::TooDeep(_)));
    // Doubles with each line.
    let mut text = String::from("struct s0 { string a; };");
    for i in 0..50 {
        text.push_str(&format!("struct s{} {{ struct s{i} a, b; }};", i + 1));
    }
    assert!(matches!(refused(&text), ParseErrorKind::TooLarge(_)));
    let many = format!("struct {{ string s; }} {};", "a, ".repeat(20_000) + "b");
    assert!(tsdl::parse(format!("stream {{ event.context := struct {{ {many} }}; }};").as_bytes()).is_ok());
}

#[test]
fn references_have_to_precede() {
    let event = |fields: &str| {
        format!(
            "typealias integer {{ size = 8; }} := u; trace {{ major = 1; minor = 8; byte_order = le; }};
             stream {{ packet.context := struct {{ u n; }}; }};
             event {{ name = e; fields := struct {{ {fields} }}; }};"
        )
    };
    let open = |fields: &str| Trace::from_parts(event(fields).as_bytes(), Vec::new()).map(drop);
    assert!(open("u n; u a[n];").is_ok());
    assert!(open("u a[n];").is_ok(), "of an earlier scope");
    assert!(open("u a[m]; u m;").is_err());
    assert!(open("u a[event.fields.m]; u m;").is_err());
    assert!(open("string m; u a[m];").is_err());
    assert!(open("u m; variant <m> { u a; } v;").is_err());
    assert!(open("struct { u m; } s; u a[s.m];").is_ok());
}
