//! Commands written, read again by their classes, and compared.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EnumMapping, EventClass, FieldClass, IntegerClass};
use proptest::prelude::*;

use super::decode::Decoder;
use super::*;

/// Reads an event's bytes as its class says, not as the encoder does.
fn decode(class: &EventClass, body: &[u8], time: u64) -> Command {
    let kind = class.name.strip_prefix(PREFIX).and_then(CommandKind::of_name).unwrap_or_default();
    let mut decoder = Decoder::new(kind);
    let mut rest = body;
    let mut read = |class: &IntegerClass| {
        let (bytes, after) = rest.split_at(class.size as usize / 8);
        rest = after;
        let unused = 64 - class.size;
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        if class.signed { ((word << unused) as i64 >> unused) as i128 } else { word.into() }
    };
    let mut lengths = std::collections::HashMap::new();
    for field in &class.fields.fields {
        let known = CommandField::of_name(&field.name);
        let mut set = |element: usize, class: &FieldClass| {
            let integer = match class {
                FieldClass::Integer(integer) => integer,
                FieldClass::Enum(names) => &names.container,
                other => panic!("{other:?}"),
            };
            let value = read(integer);
            let scalar = match class {
                FieldClass::Enum(names) => {
                    let label = names.mappings.iter().find(|m| m.start == value).map(|m| &*m.label);
                    Scalar::Enum { value, label }
                }
                _ if integer.signed => Scalar::Signed(value as i64),
                _ => Scalar::Unsigned(value as u64),
            };
            known.map_or_else(
                || value as usize,
                |known| {
                    decoder.set(known, element, scalar);
                    0
                },
            )
        };
        match &field.class {
            FieldClass::Sequence(list) => {
                for element in 0..lengths[&list.length.to_string()] {
                    set(element, &list.element);
                }
            }
            class if known.is_some() => _ = set(0, class),
            class => _ = lengths.insert(field.name.clone(), set(0, class)),
        }
    }
    assert!(rest.is_empty(), "{} bytes more than {} has", rest.len(), class.name);
    decoder.command(time, class.name == UNTIMED_EVENT)
}

fn class_of(id: u16) -> EventClass {
    let all = classes().chain([untimed_class()]);
    all.into_iter().find(|class| class.id == u64::from(id)).expect("a class")
}

fn again(command: &Command) -> Command {
    let (time, id, body) = command.encode();
    decode(&class_of(id), &body, time)
}

fn sizes(most: u64) -> impl Strategy<Value = Sizes> {
    prop::collection::vec(0..=most, 0..=3).prop_map(|sizes| Sizes::new(&sizes))
}

prop_compose! {
    fn geometry()(
        offset in sizes((1 << 48) - 1),
        global in sizes((1 << 48) - 1),
        local in sizes(u32::MAX.into()),
        cluster in sizes(u16::MAX.into()),
    ) -> Geometry {
        Geometry { offset, global, local, cluster }
    }
}

prop_compose! {
    /// Only what the event of the kind can hold.
    fn any_command()(
        kind in prop::sample::select(CommandKind::ALL),
        (from, to) in (prop::sample::select(MemoryKind::ALL), prop::sample::select(MemoryKind::ALL)),
        (queue, cause_tid, function, peer) in any::<(u32, u32, u32, u32)>(),
        (status, times_error, shared) in any::<(i32, i32, u32)>(),
        (graph, node, weight) in (any::<u32>(), any::<u64>(), 1u64..),
        bytes in 0u64..1 << 48,
        geometry in geometry(),
        start in 1u64 << 47..1 << 62,
        before in prop::collection::vec(-(1i64 << 46)..1 << 46, 4),
        (knows_cause, timed) in any::<(bool, bool)>(),
    ) -> Command {
        let at = |n: usize| start.saturating_add_signed(-before[n]);
        let times = Times { queued: at(0), submitted: at(1), start, end: at(2) };
        let kernel = kind == CommandKind::Kernel;
        let command = Command {
            kind, queue, cause_tid, status, function, seen: start,
            cause: knows_cause.then(|| at(3)),
            ..Command::default()
        };
        let command = Command { graph, node: if graph == 0 { 0 } else { node }, weight, ..command };
        match (timed, kernel) {
            (false, _) => Command { bytes, times_error, graph: 0, node: 0, weight: 1, ..command },
            (true, true) => Command { times: Some(times), shared, geometry, ..command },
            (true, false) => Command { times: Some(times), bytes, from, to, peer, ..command },
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(command in any_command()) {
        prop_assert_eq!(again(&command), command);
    }

    /// The quick way and the one field by field.
    #[test]
    fn payloads_are_read_like_their_fields(command in any_command(), others in any::<[u8; 8]>()) {
        let (time, id, mut body) = command.encode();
        let class = class_of(id);
        let reader = Reader::new(&class).expect("a command's class");
        let (expected, end) = (decode(&class, &body, time), body.len());
        body.extend(others);
        prop_assert_eq!(reader.read_payload(&body, time), Some((expected, end)));
        prop_assert_eq!(reader.read_payload(&body[..end.saturating_sub(1)], time), None);
    }
}

proptest! {
    /// One that differs from a known one in nothing but its times is read as if it were not known; one that differs in
    /// anything else is not taken for it.
    #[test]
    fn commands_that_repeat_are_read_again(
        first in any_command(),
        start in 1u64 << 48..1 << 62,
        before in prop::collection::vec(prop_oneof![4 => 0u64..1 << 46, 1 => Just(1u64 << 47)], 4),
    ) {
        let at = |n: usize| start - before[n];
        let times = Times { queued: at(0), submitted: at(1), start, end: start + before[2] };
        let second = Command {
            times: first.times.map(|_| times),
            seen: start,
            cause: first.cause.map(|_| at(3)),
            ..first
        };
        let padded = |command: &Command| {
            let (time, id, mut body) = command.encode();
            let end = body.len();
            body.extend([0xa5; 8]);
            (time, id, body, end)
        };
        let (_, id, known, _) = padded(&first);
        let reader = Reader::new(&class_of(id)).expect("a command's class");
        let pattern = reader.pattern(&known).expect("a quick way");
        let (time, _, body, end) = padded(&second);
        let (read, length) = reader.read_payload(&body, time).expect("a quick way");
        let known_again = Again { cause: read.cause, times: read.times, length };
        prop_assert_eq!(reader.read_again(&pattern, &body, time), Some(known_again));
        prop_assert_eq!((reader.common(&body), length), (reader.common(&known), end));
        let others = [
            Command { queue: first.queue ^ 1, ..second },
            Command { cause_tid: first.cause_tid ^ 1, ..second },
            Command { function: first.function ^ 1, ..second },
            Command { status: first.status ^ 1, ..second },
        ];
        for other in others {
            let (time, _, body, _) = padded(&other);
            prop_assert_eq!(reader.read_again(&pattern, &body, time), None);
        }
    }
}

#[test]
fn every_field_stands_in_an_event() {
    let classes: Vec<EventClass> = classes().chain([untimed_class()]).collect();
    for field in CommandField::ALL {
        assert!(classes.iter().any(|class| class.fields.index(field.name()).is_some()), "{field:?}");
        assert_eq!(CommandField::of_name(field.name()), Some(*field));
    }
}

#[test]
fn what_does_not_fit_is_as_large_as_can_be_or_not_known() {
    let start = 1 << 60;
    let times = Times { queued: start - (1 << 47), submitted: start, start, end: start + (1 << 47) - 1 };
    let geometry = Geometry {
        offset: Sizes::new(&[0, 0, 0]),
        global: Sizes::new(&[1 << 47, 1 << 48, 7]),
        local: Sizes::new(&[1 << 33, 2, 1]),
        cluster: Sizes::new(&[2]),
    };
    let kernel = Command {
        kind: CommandKind::Kernel,
        cause: Some(1),
        times: Some(times),
        geometry,
        ..Command::default()
    };
    let read = again(&kernel);
    assert_eq!(read.cause, None, "longer ago than 39 hours");
    let read_times = read.times.expect("times");
    assert_eq!((read_times.queued, read_times.end), (start, times.end));
    assert!(read.geometry.offset.is_empty());
    assert_eq!(read.geometry.global.as_slice(), [1 << 47, (1 << 48) - 1, 7]);
    assert_eq!(read.geometry.local.as_slice(), [u32::MAX.into(), 2, 1]);
    let copy = Command { kind: CommandKind::Copy, bytes: u64::MAX, times: Some(times), ..Command::default() };
    assert_eq!(again(&copy).bytes, (1 << 48) - 1);
}

/// An older version did not write them.
#[test]
fn fields_that_are_missing_are_not_known() {
    let command = Decoder::new(CommandKind::Kernel).command(7, false);
    let times = Times { queued: 7, submitted: 7, start: 7, end: 7 };
    let expected =
        Command { kind: CommandKind::Kernel, times: Some(times), seen: 7, weight: 1, ..Command::default() };
    assert_eq!(command, expected);
}

/// A later version may have more kinds: what one is called counts, not its number.
#[test]
fn kinds_are_known_by_their_names() {
    let set = |value| {
        let mut decoder = Decoder::new(CommandKind::Other);
        decoder.set(CommandField::From, 0, value);
        decoder.set(CommandField::Kind, 0, value);
        let command = decoder.command(1, true);
        (command.kind, command.from)
    };
    let named = |value, label| Scalar::Enum { value, label };
    assert_eq!(set(named(3, Some("write"))), (CommandKind::Write, MemoryKind::Unknown));
    assert_eq!(set(named(3, Some("device"))), (CommandKind::Other, MemoryKind::Device));
    assert_eq!(set(named(3, Some("beam"))), (CommandKind::Other, MemoryKind::Unknown));
    assert_eq!(set(named(3, None)), (CommandKind::Other, MemoryKind::Unknown));
}

/// The same for a payload of such a version.
#[test]
fn numbers_of_kinds_are_those_of_the_class() {
    let mut class = untimed_class();
    for field in &mut class.fields.fields {
        if let FieldClass::Enum(names) = &mut field.class {
            let next = |mapping: &EnumMapping| EnumMapping {
                start: mapping.start + 1,
                end: mapping.end + 1,
                ..mapping.clone()
            };
            names.mappings = names.mappings.iter().map(next).collect();
        }
    }
    let reader = Reader::new(&class).expect("a command's class");
    let (time, _, mut body) = Command { kind: CommandKind::Read, seen: 5, ..Command::default() }.encode();
    body.extend([0; 8]);
    let (command, _) = reader.read_payload(&body, time).expect("a quick way");
    let before = CommandKind::of_number(CommandKind::Read.number() - 1);
    assert_eq!(Some(command.kind), before, "the class calls that number so");
}

/// Fields with another sign than ours are read by their values.
#[test]
fn other_forms_have_no_quick_way() {
    let mut class = untimed_class();
    assert!(Reader::new(&class).is_some_and(|reader| reader.is_quick()));
    let bytes = class.fields.index("bytes").expect("a field");
    class.fields.fields[bytes].class = IntegerClass::signed(64).into();
    assert!(Reader::new(&class).is_some_and(|reader| !reader.is_quick()));
    let other = EventClass { name: "call:begin".to_owned(), ..class };
    assert_eq!(Reader::new(&other), None);
}
