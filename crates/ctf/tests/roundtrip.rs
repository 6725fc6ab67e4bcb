//! Write → read → write is the identity, for any class and any value of it.

mod common;

use hetrace_ctf::class::{
    ArrayClass, ByteOrder, EnumClass, EnumMapping, EventClass, Field, FieldClass, FieldPath, FloatClass,
    IntegerClass, Scope, StreamClass, StructClass, TraceClass, VariantClass,
};
use hetrace_ctf::read::{Merge, Trace};
use hetrace_ctf::write::Encoder;
use hetrace_ctf::{Value, tsdl};
use proptest::prelude::*;

/// A class, a value of it, and fields that have to stand before it.
#[derive(Clone, Debug)]
struct Sample {
    before: Vec<(FieldClass, Value)>,
    class: FieldClass,
    value: Value,
}

fn plain(class: impl Into<FieldClass>, value: Value) -> Sample {
    Sample { before: Vec::new(), class: class.into(), value }
}

fn integer(order: ByteOrder) -> impl Strategy<Value = Sample> {
    (1u32..=64, any::<bool>(), 0u32..=6, any::<u64>()).prop_map(move |(size, signed, align, raw)| {
        let class = IntegerClass::new(size, signed).align(1 << align).order(order);
        let raw = raw & hetrace_ctf::bits::mask(size);
        let value = match signed {
            true => Value::Signed(hetrace_ctf::bits::sign_extend(raw, size)),
            false => Value::Unsigned(raw),
        };
        plain(class, value)
    })
}

fn leaf(order: ByteOrder) -> impl Strategy<Value = Sample> {
    let float = (any::<bool>(), -1e6f32..1e6).prop_map(move |(double, v)| {
        let class = if double { FloatClass::double() } else { FloatClass::single() };
        plain(FloatClass { byte_order: order, ..class }, Value::Float(f64::from(v)))
    });
    let string = "[a-zé]{0,9}".prop_map(|s| plain(FieldClass::string(), Value::Str(s)));
    let text = ("[a-z]{0,5}", 5u64..8)
        .prop_map(|(s, len)| plain(FieldClass::array(len, IntegerClass::character()), Value::Str(s)));
    prop_oneof![4 => integer(order), 1 => float, 1 => string, 1 => text]
}

/// Names fields and puts what has to stand before each in front of it.
fn structure(samples: Vec<Sample>, min_align: u32) -> (StructClass, Value) {
    let (mut class, mut values) = (StructClass { min_align, fields: Vec::new() }, Vec::new());
    for sample in samples {
        for (before, value) in sample.before.into_iter().chain([(sample.class, sample.value)]) {
            let name = format!("f{}", class.fields.len());
            let before = rename(before, class.fields.len());
            values.push((name.clone(), value));
            class.fields.push(Field { name, class: before });
        }
    }
    (class, Value::Struct(values))
}

/// Lets a length or tag named `before` refer to the field in front.
fn rename(mut class: FieldClass, index: usize) -> FieldClass {
    let path = match &mut class {
        FieldClass::Sequence(c) => &mut c.length,
        FieldClass::Variant(c) => &mut c.tag,
        _ => return class,
    };
    if path.names == ["before"] {
        *path = FieldPath::relative(format!("f{}", index - 1));
    }
    class
}

fn any_sample(order: ByteOrder) -> impl Strategy<Value = Sample> {
    leaf(order).prop_recursive(3, 24, 4, move |inner| {
        let nested = (prop::collection::vec(inner.clone(), 0..4), 0u32..5).prop_map(|(s, align)| {
            let (class, value) = structure(s, 1 << align);
            plain(class, value)
        });
        let array = (inner.clone(), 0usize..4, any::<bool>()).prop_map(move |(s, len, sequence)| {
            // One value repeated: all elements have one class. Those that need
            // a field before them get a structure around.
            let (class, value) = structure(vec![s], 1);
            let items = Value::Array(vec![value; len]);
            let element = Box::new(FieldClass::from(class));
            if !sequence {
                return plain(ArrayClass { len: len as u64, element, min_align: 1 }, items);
            }
            let length = (IntegerClass::unsigned(7).order(order).into(), Value::Unsigned(len as u64));
            let class = FieldClass::sequence(FieldPath::relative("before"), *element);
            Sample { before: vec![length], class, value: items }
        });
        let variant = (prop::collection::vec(inner, 1..4), any::<prop::sample::Index>()).prop_map(
            move |(samples, index)| {
                let chosen = index.index(samples.len());
                let mappings = (0..samples.len()).map(|i| {
                    let start = i as i128 * 10 - 5;
                    EnumMapping { label: format!("o{i}"), start, end: start + 9 }
                });
                let container = IntegerClass::signed(9).order(order);
                let tag = EnumClass { container, mappings: mappings.collect() };
                let number =
                    Value::Enum { value: chosen as i128 * 10 - 2, label: Some(format!("o{chosen}")) };
                let (mut options, mut value) = (Vec::new(), None);
                for (i, sample) in samples.into_iter().enumerate() {
                    let (class, v) = structure(vec![sample], 1);
                    options.push(Field { name: format!("o{i}"), class: class.into() });
                    value = if i == chosen { Some(v) } else { value };
                }
                let class = VariantClass { tag: FieldPath::relative("before"), options, ranges: None };
                let value = Value::Variant { option: format!("o{chosen}"), value: Box::new(value.unwrap()) };
                Sample { before: vec![(tag.into(), number)], class: class.into(), value }
            },
        );
        prop_oneof![nested, array, variant]
    })
}

fn trace_of(fields: StructClass, byte_order: ByteOrder) -> TraceClass {
    let mut trace = TraceClass::new(byte_order);
    trace.streams.push(StreamClass {
        packet_context: Some(sizes(byte_order)),
        events: vec![EventClass { name: "e".into(), fields, ..EventClass::default() }],
        ..StreamClass::default()
    });
    trace
}

/// A packet context that says where the content ends, to the bit.
fn sizes(byte_order: ByteOrder) -> StructClass {
    StructClass::default()
        .field("content_size", IntegerClass::unsigned(64).order(byte_order))
        .field("packet_size", IntegerClass::unsigned(64).order(byte_order))
}

fn encode(class: &StructClass, value: &Value, order: ByteOrder, content: u64) -> Encoder {
    let packet = content.next_multiple_of(8);
    let context = [("content_size", content), ("packet_size", packet)];
    let context = context.map(|(name, size)| (name.into(), Value::Unsigned(size)));
    let mut encoder = Encoder::new();
    encoder.structure(&sizes(order), &Value::Struct(context.to_vec())).unwrap();
    encoder.structure(class, value).unwrap();
    encoder
}

fn check(samples: Vec<Sample>, byte_order: ByteOrder) -> Result<(), TestCaseError> {
    let (class, value) = structure(samples, 8);
    let content = encode(&class, &value, byte_order, 0).position();
    prop_assume!(content > 128);
    let bytes = encode(&class, &value, byte_order, content).into_bytes();

    let trace = trace_of(class.clone(), byte_order);
    let text = tsdl::print(&trace);
    let parsed = tsdl::parse(text.as_bytes()).unwrap();
    prop_assert_eq!(&parsed, &trace, "{}", text);

    let trace = Trace::from_parts(text.as_bytes(), vec![("s".into(), bytes.clone())]).unwrap();
    let mut reader = trace.stream(0).unwrap();
    let event = reader.next_event().unwrap().unwrap();
    let read = event.fields().unwrap();
    prop_assert_eq!(&read, &value);
    for (name, part) in match &value {
        Value::Struct(parts) => parts,
        _ => unreachable!(),
    } {
        if let Some(scalar) = event.get(name) {
            prop_assert_eq!(&Value::from(scalar), part);
        }
    }
    prop_assert!(reader.next_event().is_none());

    prop_assert_eq!(encode(&class, &read, byte_order, content).into_bytes(), bytes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn little(samples in prop::collection::vec(any_sample(ByteOrder::Little), 1..5)) {
        check(samples, ByteOrder::Little)?;
    }

    #[test]
    fn big(samples in prop::collection::vec(any_sample(ByteOrder::Big), 1..5)) {
        check(samples, ByteOrder::Big)?;
    }
}

#[test]
fn the_demo_reads_back() {
    let class = common::class();
    assert_eq!(tsdl::parse(tsdl::print(&class).as_bytes()).unwrap(), class);
    let streams = (0..2).map(|i| (format!("s{i}"), common::stream(i, 3, 5))).collect();
    let trace = Trace::from_class(class, streams).unwrap();
    let mut merge = Merge::new(&trace);
    let (mut last, mut counts) = (0, [0; 2]);
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        let now = event.timestamp().unwrap();
        assert!(now >= last && now > common::START - 1, "time goes on over the wrap of 32 bits");
        last = now;
        let instance = event.packet().stream_instance_id.unwrap() as usize;
        assert_eq!(event.packet().timestamp_end.map(|end| end >= now), Some(true));
        assert_eq!(event.get_in(Scope::PacketContext, "vtid").unwrap().as_i64(), Some(100 + instance as i64));
        if event.class().id == 65535 {
            assert_eq!(event.fields().unwrap(), common::all_kinds_value(counts[instance]));
            counts[instance] += 1;
        }
    }
    assert_eq!(counts, [15, 15]);
    assert!(last >= 5 << 32);
    assert_eq!(merge.losses().events, 14);
}
