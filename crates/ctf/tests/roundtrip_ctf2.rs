//! Write → read → write is the identity for what only CTF 2 has, in any mixture.

use hetrace_ctf::bits::{mask, sign_extend};
use hetrace_ctf::class::{
    ArrayClass, BlobClass, BlobLength, ByteOrder, Encoding, EnumClass, EnumMapping, EventClass, Field,
    FieldClass, FieldPath, FloatClass, IntegerClass, IntegerForm, OptionRange, OptionalClass, Role, Scope,
    SequenceClass, StreamClass, StringClass, StructClass, TraceClass, VariantClass,
};
use hetrace_ctf::read::Trace;
use hetrace_ctf::write::Encoder;
use hetrace_ctf::{Value, ctf2};
use proptest::prelude::*;

/// A class, a value of it, and the field that has to stand before it.
#[derive(Clone, Debug)]
struct Sample {
    before: Option<(FieldClass, Value)>,
    class: FieldClass,
    value: Value,
}

fn plain(class: impl Into<FieldClass>, value: Value) -> Sample {
    Sample { before: None, class: class.into(), value }
}

fn order() -> impl Strategy<Value = ByteOrder> {
    any::<bool>().prop_map(|big| if big { ByteOrder::Big } else { ByteOrder::Little })
}

fn number(class: IntegerClass, raw: u64) -> Sample {
    let raw = raw & mask(class.size);
    let value = match class.signed {
        true => Value::Signed(sign_extend(raw, class.size)),
        false => Value::Unsigned(raw),
    };
    plain(class, value)
}

/// Numbers of all lengths, so that those in LEB128 have them, too.
fn raw() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(raw, shift)| ((raw as i64) >> shift) as u64)
}

fn integer() -> impl Strategy<Value = Sample> {
    // At whole bytes: bits of both orders share no byte.
    (order(), any::<[bool; 3]>(), 0u32..5, 1u32..=64, raw()).prop_map(
        |(order, [signed, reversed, variable], form, size, raw)| {
            if variable {
                return number(IntegerClass::leb128(signed), raw);
            }
            let class = IntegerClass { reversed, ..IntegerClass::new(size, signed).align(8).order(order) };
            let raw = raw & mask(size);
            match form {
                0 => {
                    let label = Some(if raw == 0 { "false" } else { "true" }.to_owned());
                    let class = IntegerClass { form: IntegerForm::Boolean, signed: false, ..class };
                    plain(class, Value::Enum { value: raw.into(), label })
                }
                1 => number(IntegerClass { form: IntegerForm::BitArray, signed: false, ..class }, raw),
                2 => {
                    let mappings = [EnumMapping { label: "flag".into(), start: 0, end: 3 }].into();
                    let container = IntegerClass { form: IntegerForm::BitMap, signed: false, ..class };
                    let value = Value::Enum { value: raw.into(), label: None };
                    plain(EnumClass { container, mappings }, value)
                }
                _ => number(class, raw),
            }
        },
    )
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        Just(Encoding::Utf8),
        Just(Encoding::Utf16Be),
        Just(Encoding::Utf16Le),
        Just(Encoding::Utf32Be),
        Just(Encoding::Utf32Le)
    ]
}

fn leaf() -> impl Strategy<Value = Sample> {
    let float = (order(), any::<bool>(), -1e6f32..1e6).prop_map(|(byte_order, reversed, v)| {
        plain(FloatClass { byte_order, reversed, ..FloatClass::single() }, Value::Float(v.into()))
    });
    let text = ("[a-zé😀]{0,5}", encoding(), 0u32..3).prop_map(|(text, encoding, kind)| {
        let bytes = encoding.encode(&text).len() as u64;
        let character = IntegerClass { encoding, ..IntegerClass::character() };
        let value = Value::Str(text);
        match kind {
            0 => plain(StringClass { encoding }, value),
            1 => plain(FieldClass::array(bytes + 4, character), value),
            _ => Sample {
                before: Some((IntegerClass::leb128(false).into(), Value::Unsigned(bytes))),
                class: FieldClass::sequence(before(), character),
                value,
            },
        }
    });
    let blob = (prop::collection::vec(any::<u8>(), 0..9), any::<bool>()).prop_map(|(bytes, fixed)| {
        let len = bytes.len() as u64;
        let value = Value::Bytes(bytes);
        if fixed {
            let media_type = "text/plain".into();
            return plain(BlobClass { media_type, ..BlobClass::new(BlobLength::Static(len)) }, value);
        }
        Sample {
            before: Some((IntegerClass::unsigned(8).into(), Value::Unsigned(len))),
            class: BlobClass::new(BlobLength::Dynamic(before())).into(),
            value,
        }
    });
    prop_oneof![4 => integer(), 1 => float, 2 => text, 1 => blob]
}

/// Stands for the field in front, whose name is not known yet.
fn before() -> FieldPath {
    FieldPath { parents: Some(0), ..FieldPath::relative("before") }
}

/// Names fields and puts what has to stand before each in front of it.
fn structure(samples: Vec<Sample>) -> (StructClass, Value) {
    let (mut class, mut values) = (StructClass::default(), Vec::new());
    for mut sample in samples {
        let name = |index: usize| format!("f{index}");
        if let Some((first, value)) = sample.before {
            values.push((name(values.len()), value));
            class = class.field(name(values.len() - 1), first);
        }
        let path = match &mut sample.class {
            FieldClass::Sequence(c) => Some(&mut c.length),
            FieldClass::Variant(c) => Some(&mut c.tag),
            FieldClass::Optional(c) => Some(&mut c.selector),
            FieldClass::Blob(BlobClass { length: BlobLength::Dynamic(path), .. }) => Some(path),
            _ => None,
        };
        if let Some(path) = path {
            path.names = vec![name(values.len() - 1)];
        }
        values.push((name(values.len()), sample.value));
        class = class.field(name(values.len() - 1), sample.class);
    }
    (class, Value::Struct(values))
}

fn any_sample() -> impl Strategy<Value = Sample> {
    leaf().prop_recursive(3, 20, 4, |inner| {
        let array =
            (inner.clone(), 0u64..4, any::<bool>(), 0u32..6).prop_map(|(sample, len, fixed, align)| {
                let (class, value) = structure(vec![sample]);
                let (element, min_align) = (Box::new(FieldClass::from(class)), 1 << align);
                let items = Value::Array(vec![value; len as usize]);
                if fixed {
                    return plain(ArrayClass { len, element, min_align }, items);
                }
                Sample {
                    before: Some((IntegerClass::leb128(false).into(), Value::Unsigned(len))),
                    class: SequenceClass { length: before(), element, min_align }.into(),
                    value: items,
                }
            });
        let optional = (inner.clone(), any::<bool>(), any::<bool>()).prop_map(|(sample, there, by_range)| {
            let (class, value) = structure(vec![sample]);
            let selector = if by_range {
                let number = if there { -3 } else { 3 };
                (IntegerClass::leb128(true).into(), Value::Signed(number))
            } else {
                let class = IntegerClass { form: IntegerForm::Boolean, ..IntegerClass::unsigned(8) };
                let label = Some(there.to_string());
                (class.into(), Value::Enum { value: there.into(), label })
            };
            let ranges = by_range.then(|| vec![(-9, -2), (40, 41)]);
            let class = OptionalClass { selector: before(), ranges, class: Box::new(class.into()) };
            let value = Value::Optional(there.then(|| Box::new(value)));
            Sample { before: Some(selector), class: class.into(), value }
        });
        let variant =
            (prop::collection::vec(inner, 1..4), any::<prop::sample::Index>()).prop_map(|(all, at)| {
                let chosen = at.index(all.len());
                let (mut options, mut ranges, mut value) = (Vec::new(), Vec::new(), None);
                for (option, sample) in all.into_iter().enumerate() {
                    let (class, v) = structure(vec![sample]);
                    let (name, start) = (format!("o{option}"), option as i128 * 10);
                    ranges.push(OptionRange { start, end: start + 4, option });
                    ranges.push(OptionRange { start: start + 7, end: start + 7, option });
                    value = if option == chosen { Some((name.clone(), v)) } else { value };
                    options.push(Field { name, class: class.into() });
                }
                let (option, value) = value.unwrap();
                let class = VariantClass { tag: before(), options, ranges: Some(ranges) };
                Sample {
                    before: Some((
                        IntegerClass::unsigned(16).into(),
                        Value::Unsigned(chosen as u64 * 10 + 7),
                    )),
                    class: class.into(),
                    value: Value::Variant { option, value: Box::new(value) },
                }
            });
        prop_oneof![array, optional, variant]
    })
}

/// A packet context that says where the content ends, to the bit.
fn sizes() -> StructClass {
    let size = |role| {
        let class = IntegerClass::unsigned(64);
        IntegerClass { roles: class.roles.with(role), ..class }
    };
    StructClass::default()
        .field("content", size(Role::PacketContentLength))
        .field("total", size(Role::PacketTotalLength))
}

fn encode(class: &StructClass, value: &Value, content: u64) -> Encoder {
    let context = [("content", content), ("total", content.next_multiple_of(8))];
    let context = context.map(|(name, size)| (name.into(), Value::Unsigned(size)));
    let mut encoder = Encoder::new();
    encoder.structure(&sizes(), &Value::Struct(context.to_vec())).unwrap();
    encoder.structure(class, value).unwrap();
    encoder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_mixture(samples in prop::collection::vec(any_sample(), 1..5)) {
        let (class, value) = structure(samples);
        let content = encode(&class, &value, 0).position();
        prop_assume!(content > 128);
        let bytes = encode(&class, &value, content).into_bytes();

        let mut trace = TraceClass::new(ByteOrder::Little);
        (trace.major, trace.minor) = (2, 0);
        let event = EventClass { name: "e".into(), fields: class.clone(), ..EventClass::default() };
        let stream = StreamClass { packet_context: Some(sizes()), events: vec![event], ..StreamClass::default() };
        trace.streams.push(stream);
        let text = ctf2::print(&trace).unwrap();
        prop_assert_eq!(&ctf2::parse(text.as_bytes()).unwrap(), &trace, "{}", text);

        let trace = Trace::from_parts(text.as_bytes(), vec![("s".into(), bytes.clone())]).unwrap();
        let mut reader = trace.stream(0).unwrap();
        let read = reader.next_event().unwrap().unwrap().value(Scope::EventFields).unwrap();
        prop_assert_eq!(&read, &value, "{}", text);
        prop_assert!(reader.next_event().is_none());
        prop_assert_eq!(encode(&class, &read, content).into_bytes(), bytes);
    }
}
