//! Parts of a stream, read by themselves, are together the stream.

mod common;

use hetrace_ctf::class::TraceClass;
use hetrace_ctf::read::{Losses, StreamReader, Trace};

type Seen = (Vec<(u64, Option<u64>, u64)>, usize, Losses);

fn drain(readers: impl IntoIterator<Item = impl std::ops::DerefMut<Target = StreamReader<'static>>>) -> Seen {
    let (mut events, mut errors, mut losses) = (Vec::new(), 0, Losses::default());
    for mut reader in readers {
        while let Some(event) = reader.next_event() {
            match event {
                Ok(event) => events.push((event.class().id, event.timestamp(), event.offset())),
                Err(_) => errors += 1,
            }
        }
        losses.events += reader.losses().events;
        losses.packets += reader.losses().packets;
        losses.damaged += reader.losses().damaged;
    }
    (events, errors, losses)
}

/// Reads as one and as parts; gives how many parts there were.
fn compare(class: TraceClass, name: &str, bytes: Vec<u8>, most: usize) -> usize {
    let trace: &'static Trace =
        Box::leak(Box::new(Trace::from_class(class, vec![(name.into(), bytes)]).unwrap()));
    let parts = trace.parts(0, most);
    let count = parts.len();
    assert!(count <= most.max(1));
    let whole = drain([Box::new(trace.stream(0).unwrap())]);
    assert_eq!(drain(parts.into_iter().map(Box::new)), whole);
    count
}

#[test]
fn parts_are_the_whole() {
    let bytes = common::stream(0, 9, 5);
    for most in 0..20 {
        let count = compare(common::class(), "s", bytes.clone(), most);
        // Packets are of about one size, but not quite.
        assert!(count == most.max(1) || most > 6 && (6..=9).contains(&count), "{most}: {count}");
    }
    assert!(Trace::from_class(common::class(), Vec::new()).unwrap().parts(0, 2).is_empty());
}

#[test]
fn damage_is_in_the_last_part() {
    let whole = common::stream(0, 9, 5);
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        compare(common::class(), "s", bytes, 4);
        compare(common::class(), "s", whole[..at].to_vec(), 4);
    }
}

#[test]
fn what_cannot_be_split_is_one() {
    let bytes = common::stream(0, 9, 5);
    let packed = zstd::bulk::compress(&bytes, 3).unwrap();
    assert_eq!(compare(common::class(), "s.zst", packed, 4), 1);
    // Without all bits of the clock at its begin, a packet depends on the one before.
    let mut class = common::class();
    let context = class.streams[0].packet_context.as_mut().unwrap();
    let hetrace_ctf::class::FieldClass::Integer(begin) = &mut context.fields[0].class else { panic!() };
    begin.clock = None;
    assert_eq!(compare(class, "s", bytes, 4), 1);
}
