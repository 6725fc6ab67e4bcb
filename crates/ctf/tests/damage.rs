//! Damaged streams: what is lost is said, and the rest is read.

mod common;

use hetrace_ctf::class::{
    ByteOrder, EventClass, FieldClass, FieldPath, IntegerClass, StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::read::{DecodeError, PacketDamage, StreamError, StreamReader, Trace};

fn trace(bytes: Vec<u8>) -> Trace {
    Trace::from_class(common::class(), vec![("s".into(), bytes)]).unwrap()
}

/// How many events, and the errors.
fn drain(reader: &mut StreamReader<'_>) -> (usize, Vec<StreamError>) {
    let (mut events, mut errors) = (0, Vec::new());
    while let Some(event) = reader.next_event() {
        match event {
            Ok(_) => events += 1,
            Err(error) => errors.push(error),
        }
    }
    (events, errors)
}

fn packet_size(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[56..64].try_into().unwrap()) as usize / 8
}

#[test]
fn cut_off_anywhere() {
    let whole = common::stream(0, 2, 2);
    let size = packet_size(&whole);
    for len in 1..whole.len() {
        let trace = trace(whole[..len].to_vec());
        let (events, errors) = drain(&mut trace.stream(0).unwrap());
        assert!(events <= 8);
        assert!(len < size || events >= 4);
        if len == size {
            assert_eq!((events, errors.len()), (4, 0));
        } else {
            assert!(matches!(errors[..], [StreamError::Truncated { .. }]), "{len}: {errors:?}");
        }
    }
}

#[test]
fn bad_magic_skips_one_packet() {
    let mut bytes = common::stream(0, 3, 2);
    let size = packet_size(&bytes);
    bytes[size] ^= 1;
    let trace = trace(bytes);
    let mut reader = trace.stream(0).unwrap();
    let (events, errors) = drain(&mut reader);
    assert!(
        matches!(errors[..], [StreamError::Packet { offset, damage: PacketDamage::Magic { .. }, resume: Some(_), .. }]
        if offset == size as u64),
        "{errors:?}"
    );
    assert_eq!(events, 8);
    assert_eq!(reader.losses().packets, 1);
}

#[test]
fn a_bad_uuid_is_said_and_its_packet_read() {
    let mut bytes = common::stream(0, 3, 2);
    bytes[4] ^= 1;
    let trace = trace(bytes);
    let (events, errors) = drain(&mut trace.stream(0).unwrap());
    assert!(matches!(errors[..], [StreamError::Packet { damage: PacketDamage::Uuid { .. }, .. }]));
    assert_eq!(events, 12);
}

#[test]
fn unknown_event_loses_the_rest_of_its_packet() {
    let mut bytes = common::stream(0, 2, 2);
    bytes[104] = 9;
    let trace = trace(bytes);
    let (events, errors) = drain(&mut trace.stream(0).unwrap());
    assert!(matches!(
        errors[..],
        [StreamError::Event { offset: 104, source: DecodeError::UnknownEvent { id: 9 }, .. }]
    ));
    assert_eq!(events, 4);
}

#[test]
fn zero_sizes_end_the_file() {
    for size in [0u64, 7, 800] {
        let mut bytes = common::stream(0, 2, 2);
        bytes[56..64].copy_from_slice(&size.to_le_bytes());
        let trace = trace(bytes);
        let (events, errors) = drain(&mut trace.stream(0).unwrap());
        assert!(
            matches!(errors[..], [StreamError::Packet { damage: PacketDamage::Sizes { packet, .. }, resume: None, .. }]
            if packet == size)
        );
        assert_eq!(events, 0);
    }
}

#[test]
fn discarded_events_and_missing_packets_are_counted() {
    let whole = common::stream(0, 4, 2);
    let size = packet_size(&whole);
    let second = packet_size(&whole[size..]);
    let bytes = [&whole[..size], &whole[size + second..]].concat();
    let trace = trace(bytes);
    let mut reader = trace.stream(0).unwrap();
    let (events, errors) = drain(&mut reader);
    assert_eq!((events, errors.len()), (12, 0));
    assert_eq!(reader.losses().events, 7);
    assert_eq!(reader.losses().packets, 1);
}

/// Packets whose counters of discarded events are these, and whose numbers are those.
fn counted(counters: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = common::stream(0, counters.len() as u64, 2);
    let mut at = 0;
    for (number, discarded) in counters {
        bytes[at + 64..at + 72].copy_from_slice(&number.to_le_bytes());
        bytes[at + 72..at + 80].copy_from_slice(&discarded.to_le_bytes());
        at += packet_size(&bytes[at..]);
    }
    bytes
}

#[test]
fn a_counter_that_goes_back_and_forth_counts_its_most() {
    let events = |counters: &[(u64, u64)]| {
        let trace = trace(counted(counters));
        let mut reader = trace.stream(0).unwrap();
        drain(&mut reader);
        (reader.losses().events, reader.losses().packets)
    };
    assert_eq!(events(&[(0, 10), (1, 8), (2, 10), (3, 7), (4, 12)]), (12, 0));
    // Where the numbers of packets begin anew, so does the counter.
    assert_eq!(events(&[(0, 10), (1, 10), (0, 3), (1, 4)]), (14, 0));
    assert_eq!(events(&[(5, 10), (6, 0)]), (10, 0));
}

fn one_event(fields: StructClass, bytes: &[u8]) -> Vec<StreamError> {
    let mut class = TraceClass::new(ByteOrder::Little);
    let event = EventClass { name: "e".into(), fields, ..EventClass::default() };
    class.streams.push(StreamClass { events: vec![event], ..StreamClass::default() });
    let trace = Trace::from_class(class, vec![("s".into(), bytes.to_vec())]).unwrap();
    let mut reader = trace.stream(0).unwrap();
    drain(&mut reader).1
}

#[test]
fn endless_things_end() {
    let huge = StructClass::default()
        .field("len", IntegerClass::unsigned(64))
        .field("items", FieldClass::sequence(FieldPath::relative("len"), IntegerClass::unsigned(64)));
    let errors = one_event(huge, &[0xFF; 16]);
    assert!(matches!(errors[..], [StreamError::Event { source: DecodeError::PastEnd { .. }, .. }]));

    // An event without a bit.
    let errors = one_event(StructClass::default(), &[0; 4]);
    assert!(matches!(errors[..], [StreamError::Event { source: DecodeError::EmptyEvent { .. }, .. }]));

    // Very many elements without a bit, each of which has to be looked at.
    let inner = StructClass::default().field("none", FieldClass::array(0, FieldClass::string()));
    let empties = StructClass::default().field("len", IntegerClass::unsigned(64)).field(
        "items",
        FieldClass::sequence(
            FieldPath::relative("len"),
            FieldClass::sequence(FieldPath::relative("len"), inner),
        ),
    );
    let errors = one_event(empties, &[0xFF; 8]);
    assert!(errors.len() <= 1, "{errors:?}");
}
