//! Parts of a stream, read by themselves, are together the stream.

mod common;

use hetrace_ctf::class::TraceClass;
use hetrace_ctf::read::{Losses, PacketReader, StreamReader, Trace};

type Seen = (Vec<(u64, Option<u64>, u64)>, usize, Losses);

fn drain<'t>(readers: impl IntoIterator<Item = impl std::ops::DerefMut<Target = StreamReader<'t>>>) -> Seen {
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
    let trace = Trace::from_class(class, vec![(name.into(), bytes)]).unwrap();
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

/// Frames of so many packets each, of a stream of nine.
fn framed(packets: usize) -> (Trace, Vec<Vec<u8>>) {
    let bytes = common::stream(0, 9, 5);
    let plain = Trace::from_class(common::class(), vec![("s".into(), bytes)]).unwrap();
    let (mut reader, mut all) = (PacketReader::new(plain.stream(0).unwrap()), Vec::new());
    while let Some(packet) = reader.next_packet() {
        packet.unwrap();
        all.push(reader.bytes().to_vec());
    }
    let frames: Vec<Vec<u8>> = all.chunks(packets).map(|several| several.concat()).collect();
    let packed = frames.iter().flat_map(|frame| zstd::bulk::compress(frame, 3).unwrap()).collect();
    (Trace::from_class(common::class(), vec![("s.zst".into(), packed)]).unwrap(), frames)
}

#[test]
fn frames_report_their_first_packets_and_their_last() {
    for packets in [1, 2, 4, 9] {
        let (trace, plain) = framed(packets);
        let mut whole = trace.stream(0).unwrap();
        let all: Vec<_> = std::iter::from_fn(|| whole.pass_packet()).map(|packet| packet.unwrap()).collect();
        assert_eq!(all.len(), 9);
        let frames = trace.frame_heads(0).expect("frames");
        assert_eq!((frames.len(), frames.bytes()), (plain.len(), plain.concat().len() as u64));
        let mut lost = 0;
        for (frame, own) in all.chunks(packets).enumerate() {
            let first = frames.head(frame).expect("a packet");
            assert_eq!((first.offset, frames.offset(frame)), (own[0].offset, Some(own[0].offset)));
            assert_eq!(first.timestamp_begin, own[0].timestamp_begin);
            let last = frames.last(frame).expect("a packet");
            assert_eq!((last.offset, last.seq_num), (own[own.len() - 1].offset, own[own.len() - 1].seq_num));
            // A reader from here on knows what was lost before it, and ends where it is asked to.
            let before = frame.checked_sub(1).and_then(|before| frames.last(before));
            let limit = frames.offset(frame + 1).unwrap_or(u64::MAX);
            let mut reader = trace.packets(0, &first, limit, before.as_ref()).expect("a reader");
            let read = std::iter::from_fn(|| reader.pass_packet()).map(|packet| packet.unwrap().offset);
            assert_eq!(read.collect::<Vec<_>>(), own.iter().map(|packet| packet.offset).collect::<Vec<_>>());
            lost += reader.losses().events;
        }
        assert_eq!(lost, whole.losses().events);
        assert!(frames.head(plain.len()).is_none());
        assert!(trace.packets(0, &all[0], u64::MAX, None).is_some());
    }
    // Where a frame begins, no packet does.
    let bytes = common::stream(0, 9, 5);
    let packed: Vec<u8> = bytes.chunks(100).flat_map(|part| zstd::bulk::compress(part, 3).unwrap()).collect();
    let trace = Trace::from_class(common::class(), vec![("s.zst".into(), packed)]).unwrap();
    let frames = trace.frame_heads(0).expect("frames");
    assert!(frames.head(0).is_some() && frames.head(1).is_none() && frames.last(0).is_none());
    // What is not compressed has no frames.
    assert!(Trace::from_class(common::class(), vec![("s".into(), bytes)]).unwrap().frame_heads(0).is_none());
}
