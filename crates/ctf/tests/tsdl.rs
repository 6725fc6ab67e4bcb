//! The language: what other tracers write, and what must be refused.

use hetrace_ctf::class::{Base, ByteOrder, Encoding, EnvValue, FieldClass, FieldPath, Scope};
use hetrace_ctf::metadata;
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
        assert_eq!(metadata::unread(&bytes), 0);
        // A packet that was only begun, as of a writer that was killed.
        let mut begun = bytes.clone();
        begun.extend(packet(b, order, 0).into_iter().take(36));
        assert_eq!(tsdl::parse(&begun).unwrap(), plain);
        assert_eq!(metadata::unread(&begun), 36);
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

/// Opens a trace of one packet, and shows the payloads.
fn payloads(metadata: &str, bytes: &[u8]) -> Vec<String> {
    let trace = Trace::from_parts(metadata.as_bytes(), vec![("s".into(), bytes.to_vec())]).unwrap();
    let mut reader = trace.stream(0).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = reader.next_event() {
        seen.push(format!("{:?}", event.unwrap().fields().unwrap()));
    }
    seen
}

const HEAD: &str = "typealias integer { size = 8; } := u8; typealias integer { size = 16; } := u16;
    typealias integer { size = 8; signed = true; } := s8;
    trace { major = 1; minor = 8; byte_order = be; };";

#[test]
fn tags_of_every_kind_and_scope() {
    // Relative, absolute, in another scope, of an enclosing structure, through a
    // structure, signed, with ranges; variants in variants.
    let metadata = format!(
        "{HEAD}
        stream {{
            packet.context := struct {{ enum : u8 {{ one = 1, two }} which; }};
            event.header := struct {{ u8 id; struct {{ enum : s8 {{ minus = -5 ... -1, plus = 0 ... 5 }} sign; }} deep; }};
            event.context := struct {{ enum kind : u8 {{ a, b = (+7) ... 9, c = 'x' }} common; }};
        }};
        event {{
            name = \"e\"; id = 0; loglevel = \"none\";
            context := struct {{ variant <stream.event.context.common> {{ u8 a; u16 b; string c; }} own; }};
            fields := struct {{
                enum kind {{ a, b = 7 ... 9, c }} : u8 x;
            }};
        }};"
    )
    .replace("enum kind {{ a, b = 7 ... 9, c }} : u8 x;", "")
    .replace("enum kind { a, b = 7 ... 9, c } : u8 x;", "
        enum : u8 { a, b = 7 ... 9, c = 120 } _tag;
        variant <stream.packet.context.which> { u8 one; u16 two; } p;
        variant <stream.event.header.deep.sign> { s8 minus; struct { u8 y; } plus; } h;
        variant <event.context.own> { u8 q; } none[0];
        struct {
            enum : u8 { in, out } inner;
            variant <inner> {
                variant <_tag> { u8 a; u16 b; string c; } in;
                variant <event.fields._tag> { u8 a; u8 b[2]; string c; } out;
            } v;
        } rows[2];")
    .replace("variant <event.context.own> { u8 q; } none[0];", "");
    let bytes = [
        2, // which = two
        0, 0xFD, // id, sign = minus
        8, 0x12, 0x34, // common = b, own = 0x1234
        9, 0xAB, 0xCD, 0xFF, // _tag = b, p = two, h = minus -1
        0, 0x01, 0x02, // rows[0]: in, b
        1, 3, 4, // rows[1]: out, b
    ];
    let seen = payloads(&metadata, &bytes);
    assert_eq!(seen.len(), 1);
    for part in [
        "(\"tag\", Enum { value: 9, label: Some(\"b\") })",
        "(\"p\", Variant { option: \"two\", value: Unsigned(43981) })",
        "(\"h\", Variant { option: \"minus\", value: Signed(-1) })",
        "Variant { option: \"in\", value: Variant { option: \"b\", value: Unsigned(258) } }",
        "Variant { option: \"out\", value: Variant { option: \"b\", value: Array([Unsigned(3), Unsigned(4)]) } }",
    ] {
        assert!(seen[0].contains(part), "{part} in {}", seen[0]);
    }
}

#[test]
fn sequences_of_structures_and_of_sequences() {
    let metadata = format!(
        "{HEAD} event {{ name = e; fields := struct {{
            u8 n; struct {{ u8 m; u16 items[m]; string names[2]; }} rows[n]; u8 grid[n][2];
            integer {{ size = 4; align = 1; byte_order = le; }} nibbles[n];
        }}; }};"
    );
    let bytes = [2, 1, 0, 7, b'a', 0, 0, 0, b'b', 0, b'c', 0, 1, 2, 3, 4, 0x21];
    let seen = payloads(&metadata, &bytes);
    let expected = "Struct([(\"n\", Unsigned(2)), (\"rows\", Array([\
        Struct([(\"m\", Unsigned(1)), (\"items\", Array([Unsigned(7)])), (\"names\", Array([Str(\"a\"), Str(\"\")]))]), \
        Struct([(\"m\", Unsigned(0)), (\"items\", Array([])), (\"names\", Array([Str(\"b\"), Str(\"c\")]))])])), \
        (\"grid\", Array([Array([Unsigned(1), Unsigned(2)]), Array([Unsigned(3), Unsigned(4)])])), \
        (\"nibbles\", Array([Unsigned(1), Unsigned(2)]))])";
    assert_eq!(seen, [expected]);
}

#[test]
fn several_clocks_and_offsets() {
    let metadata = format!(
        "{HEAD}
        clock {{ name = slow; freq = 1000; offset_s = 3; offset = 500; }};
        clock {{ name = fast; freq = 2000000000; offset = -1; }};
        trace {{ packet.header := struct {{ u8 stream_id; }}; }};
        stream {{ id = 0; event.header := struct {{ u8 id; integer {{ size = 8; map = clock.slow.value; }} timestamp; }}; }};
        stream {{ id = 1; event.header := struct {{ u8 id; integer {{ size = 16; map = clock.fast.value; }} timestamp; }}; }};
        event {{ name = s; stream_id = 0; }}; event {{ name = f; stream_id = 1; }};"
    );
    let streams = vec![("a".into(), vec![0, 0, 250, 0, 4, 0, 4]), ("b".into(), vec![1, 0, 0, 5, 0, 0, 4])];
    let trace = Trace::from_parts(metadata.as_bytes(), streams).unwrap();
    let times = |index| {
        let mut reader = trace.stream(index).unwrap();
        let mut times = Vec::new();
        while let Some(event) = reader.next_event() {
            times.push(event.unwrap().ns_from_origin().unwrap());
        }
        times
    };
    // 250, then 260 and the same again; the clocks start at 3.5 s and at -0.5 ns.
    assert_eq!(times(0), [3_750_000_000, 3_760_000_000, 3_760_000_000]);
    // 5, then 65540: the low 16 bits have wrapped.
    assert_eq!(times(1), [2, 32769]);
}
