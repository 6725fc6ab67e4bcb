//! A trace of hetrace's form with every kind of field, and a printer of events
//! in the words of babeltrace2.
#![allow(dead_code, reason = "each test file uses some of it")]

use hetrace_ctf::Scalar;
use hetrace_ctf::Value;
use hetrace_ctf::class::{
    Base, ClockClass, EnumClass, EnumMapping, EnvValue, EventClass, Field, FieldClass, FieldPath, FloatClass,
    IntegerClass, Scope, StructClass, TraceClass, VariantClass,
};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};
use hetrace_ctf::write::{Encoder, PacketWriter, StreamIdentity, form};

pub const UUID: [u8; 16] = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x10\x32\x54\x76\x98\xba\xdc\xfe";

/// Where the demo's clock starts: shortly before its low 32 bits wrap.
pub const START: u64 = (5 << 32) - 1000;

pub fn clock() -> ClockClass {
    form::clock_class([7; 16], 1_700_000_000_123_456_789)
}

fn mapping(label: &str, start: i128, end: i128) -> EnumMapping {
    EnumMapping { label: label.into(), start, end }
}

/// A payload with every kind of field, in awkward bits and orders.
pub fn all_kinds() -> StructClass {
    let color = EnumClass {
        container: IntegerClass::signed(32),
        mappings: vec![mapping("red", -1, -1), mapping("green", 0, 5), mapping("blue \"x\"", 6, 6)].into(),
    };
    let tag = EnumClass {
        container: IntegerClass::unsigned(8),
        mappings: vec![mapping("number", 0, 3), mapping("text", 4, 4)].into(),
    };
    let inner = StructClass::default()
        .field("a", IntegerClass::unsigned(8))
        .field("count", IntegerClass::unsigned(16))
        .field("items", FieldClass::sequence(FieldPath::relative("count"), IntegerClass::signed(16)));
    let number = StructClass::default().field("n", IntegerClass::signed(64));
    let be = hetrace_ctf::class::ByteOrder::Big;
    StructClass::default()
        .field("string", FieldClass::string())
        .field("_u3", IntegerClass::unsigned(3))
        .field("s13", IntegerClass::signed(13))
        .field("ptr", IntegerClass { base: Base::Hexadecimal, ..IntegerClass::unsigned(64) })
        .field("be", IntegerClass::unsigned(32).order(be))
        .field("f", FloatClass::single())
        .field("d", FloatClass { byte_order: be, ..FloatClass::double() })
        .field("color", color)
        .field("name", FieldClass::array(8, IntegerClass::character()))
        .field("matrix", FieldClass::array(2, FieldClass::array(2, IntegerClass::unsigned(8))))
        .field("inner", inner)
        .field("len", IntegerClass::unsigned(32))
        .field(
            "blob",
            FieldClass::sequence(FieldPath::absolute(Scope::EventFields, ["len"]), IntegerClass::unsigned(8)),
        )
        .field("text", FieldClass::sequence(FieldPath::relative("len"), IntegerClass::character()))
        .field("tag", tag)
        .field(
            "choice",
            VariantClass {
                tag: FieldPath::relative("tag"),
                options: vec![
                    Field { name: "number".into(), class: number.into() },
                    Field { name: "text".into(), class: FieldClass::string() },
                ],
                ranges: None,
            },
        )
}

fn named(fields: Vec<(&str, Value)>) -> Value {
    Value::Struct(fields.into_iter().map(|(n, v)| (n.into(), v)).collect())
}

/// The `n`th value of [`all_kinds`].
pub fn all_kinds_value(n: u64) -> Value {
    let color = (n as i128 % 8) - 1;
    let label = match color {
        -1 => "red",
        0..=5 => "green",
        _ => "blue \"x\"",
    };
    // Never 0: babeltrace2 2.0.4 shows an empty text sequence as the one before.
    let len = n % 4 + 1;
    let (tag, choice) = if n.is_multiple_of(2) {
        let number = named(vec![("n", Value::Signed(-(n as i64)))]);
        (Value::Enum { value: 2, label: Some("number".into()) }, ("number", number))
    } else {
        (Value::Enum { value: 4, label: Some("text".into()) }, ("text", Value::Str("é\t".into())))
    };
    let row = |a| Value::Array(vec![Value::Unsigned(a), Value::Unsigned(a + 1)]);
    named(vec![
        ("string", Value::Str(format!("call {n}"))),
        ("_u3", Value::Unsigned(n % 8)),
        ("s13", Value::Signed(-(n as i64))),
        ("ptr", Value::Unsigned(u64::MAX - n)),
        ("be", Value::Unsigned(n << 16)),
        ("f", Value::Float(n as f64 / 4.0)),
        ("d", Value::Float(-(n as f64))),
        ("color", Value::Enum { value: color, label: Some(label.into()) }),
        ("name", Value::Str("abc".into())),
        ("matrix", Value::Array(vec![row(n), row(n + 1)])),
        (
            "inner",
            named(vec![
                ("a", Value::Unsigned(1)),
                ("count", Value::Unsigned(n % 3)),
                ("items", Value::Array((0..n % 3).map(|i| Value::Signed(-(i as i64))).collect())),
            ]),
        ),
        ("len", Value::Unsigned(len)),
        ("blob", Value::Array((0..len).map(Value::Unsigned).collect())),
        ("text", Value::Str("abcd"[..len as usize].into())),
        ("tag", tag),
        ("choice", Value::Variant { option: choice.0.into(), value: Box::new(choice.1) }),
    ])
}

/// The classes of the demo.
pub fn class() -> TraceClass {
    let mut trace = form::trace_class(UUID, clock());
    trace.env.push(("hostname".into(), EnvValue::Str("a \"host\"".into())));
    trace.env.push(("tracer_major".into(), EnvValue::Int(-2)));
    let mut stream = form::stream_class(0);
    stream.events.push(EventClass {
        id: 0,
        name: "demo:empty".into(),
        log_level: Some(4),
        ..EventClass::default()
    });
    stream.events.push(EventClass {
        id: 65535,
        name: "demo:all".into(),
        fields: all_kinds(),
        ..EventClass::default()
    });
    trace.streams.push(stream);
    trace
}

/// One stream of the demo: `packets` packets of `events` pairs of events.
pub fn stream(instance: u64, packets: u64, events: u64) -> Vec<u8> {
    let mut procname = [0; 16];
    procname[..4].copy_from_slice(b"demo");
    let mut writer = PacketWriter::new(StreamIdentity {
        uuid: UUID,
        stream_id: 0,
        stream_instance_id: instance,
        vpid: 100,
        vtid: 100 + instance as i32,
        procname,
    });
    let (mut bytes, mut n) = (Vec::new(), 0);
    for packet in 0..packets {
        for _ in 0..events {
            let mut encoder = Encoder::new();
            encoder.structure(&all_kinds(), &all_kinds_value(n)).unwrap();
            let now = START + packet * 3000 + n * 100 + instance * 7;
            writer.event(0, now, &[]).unwrap();
            writer.event(65535, now + 50, &encoder.into_bytes()).unwrap();
            n += 1;
        }
        if packet == 1 {
            writer.discard(7);
        }
        bytes.extend_from_slice(writer.finish(64));
    }
    bytes
}

/// An event as `babeltrace2 --no-delta --clock-cycles --names=payload,context` prints it.
pub fn pretty(event: &Event<'_, '_>) -> String {
    let mut line = format!("[{:020}] {}: ", event.timestamp().unwrap(), event.class().name);
    let mut first = true;
    for scope in [Scope::PacketContext, Scope::StreamEventContext, Scope::EventContext, Scope::EventFields] {
        if !event.has(scope) {
            continue;
        }
        let consumed = scope == Scope::PacketContext;
        let mut printer = Pretty { text: String::new(), open: vec![(Open::Struct, 0)], consumed };
        event.visit(scope, &mut printer).unwrap();
        if consumed && printer.text.is_empty() {
            continue;
        }
        if !first {
            line.push_str(", ");
        }
        first = false;
        line.push_str(&format!("{{{} }}", printer.text));
    }
    line
}

struct Pretty {
    text: String,
    /// What is open, the innermost last, and how many parts it has had.
    open: Vec<(Open, u64)>,
    /// Whether babeltrace2 keeps some fields for itself.
    consumed: bool,
}

/// The fields of packet contexts that babeltrace2 consumes.
const CONSUMED: [&str; 6] =
    ["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"];

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Struct,
    Array,
    Variant,
}

impl Pretty {
    fn name(&mut self, field: FieldRef<'_>) {
        let (open, parts) = self.open.last_mut().unwrap();
        self.text.push_str(if *parts > 0 { ", " } else { " " });
        match open {
            Open::Struct => self.text.push_str(&format!("{} = ", field.name)),
            Open::Array => self.text.push_str(&format!("[{parts}] = ")),
            Open::Variant => {}
        }
        *parts += 1;
    }

    fn open(&mut self, bracket: char, open: Open) {
        self.text.push(bracket);
        self.open.push((open, 0));
    }

    fn close(&mut self, bracket: &str) {
        self.text.push_str(bracket);
        self.open.pop();
    }
}

impl<'t> FieldVisitor<'t> for Pretty {
    fn scalar(&mut self, field: FieldRef<'t>, value: Scalar<'t>) {
        if self.consumed && self.open.len() == 1 && CONSUMED.contains(&field.name) {
            return;
        }
        self.name(field);
        let text = match (value, field.class) {
            (Scalar::Unsigned(v), FieldClass::Integer(c)) => based(v, c),
            (Scalar::Signed(v), FieldClass::Integer(c)) if c.base == Base::Decimal => v.to_string(),
            (Scalar::Signed(v), FieldClass::Integer(c)) => based(v as u64, c),
            (Scalar::Float(v), _) => general(v),
            (Scalar::Enum { value, .. }, FieldClass::Enum(c)) => {
                let labels: Vec<_> = c.labels(value).map(quoted).collect();
                let labels = if labels.is_empty() { "<unknown>".into() } else { labels.join(", ") };
                format!("( {labels} : container = {value} )")
            }
            (Scalar::Str(text), _) => quoted(text),
            (value, _) => format!("{value:?}"),
        };
        self.text.push_str(&text);
    }

    fn begin_struct(&mut self, field: FieldRef<'t>) {
        self.name(field);
        self.open('{', Open::Struct);
    }

    fn end_struct(&mut self, _: FieldRef<'t>) {
        self.close(" }");
    }

    fn begin_array(&mut self, field: FieldRef<'t>, _: u64) {
        self.name(field);
        self.open('[', Open::Array);
    }

    fn end_array(&mut self, _: FieldRef<'t>) {
        self.close(" ]");
    }

    fn begin_variant(&mut self, field: FieldRef<'t>, _: &'t str) {
        self.name(field);
        self.open('{', Open::Variant);
    }

    fn end_variant(&mut self, _: FieldRef<'t>) {
        self.close(" }");
    }
}

/// A number in its base; a negative one as the bits that it fills.
fn based(value: u64, class: &IntegerClass) -> String {
    let bits = |of: u32| if class.signed { class.size.next_multiple_of(of).min(64) } else { 64 };
    let mask = hetrace_ctf::bits::mask;
    match class.base {
        Base::Decimal => value.to_string(),
        Base::Hexadecimal => format!("0x{:X}", value & mask(bits(4))),
        Base::Octal => format!("0{:o}", value & mask(bits(3))),
        Base::Binary => {
            let width = class.size as usize;
            format!("0b{:0width$b}", value & mask(class.size))
        }
    }
}

/// A number as C's `%g` prints it.
fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 && value.is_sign_negative() { "-0".into() } else { value.to_string() };
    }
    let exact = format!("{value:.5e}");
    let (digits, exponent) = exact.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        return short(&format!("{value:.*}", (5 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), exponent.abs())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t"))
}
