//! A series of traces is read as one, without what its parts repeat.

mod common;

use std::fs;
use std::path::Path;

use hetrace_ctf::read::{Files, Losses, Part, Repeated, StreamReader, Trace};
use hetrace_ctf::tsdl;

/// Events of a packet: two of each round.
const EVENTS: usize = 6;

/// Events by time and offset, errors, losses.
type Seen = (Vec<(Option<u64>, u64)>, usize, Losses);

fn drain(readers: Vec<StreamReader<'_>>) -> Seen {
    let (mut events, mut errors, mut losses) = (Vec::new(), 0, Losses::default());
    for mut reader in readers {
        while let Some(event) = reader.next_event() {
            match event {
                Ok(event) => events.push((event.timestamp(), event.offset())),
                Err(_) => errors += 1,
            }
            assert!(errors < 100, "the same again and again");
        }
        losses.events += reader.losses().events;
        losses.packets += reader.losses().packets;
        losses.damaged += reader.losses().damaged;
    }
    (events, errors, losses)
}

/// Packets of the demo, each by itself.
fn packets(count: u64) -> Vec<Vec<u8>> {
    let bytes = common::stream(0, count, 3);
    let trace = Trace::from_class(common::class(), vec![("s".into(), bytes.clone())]).unwrap();
    let heads: Vec<_> = trace.heads(0).unwrap().map(|head| (head.offset, head.size)).collect();
    heads.iter().map(|(at, size)| bytes[*at as usize..(at + size) as usize].to_vec()).collect()
}

/// Writes a part whose first packets are repeated.
fn part(folder: &Path, number: u32, packets: &[Vec<u8>], repeated: usize, compressed: bool) {
    let folder = folder.join(Part::name(number));
    fs::create_dir_all(folder.join("hetrace")).unwrap();
    fs::write(folder.join("metadata"), tsdl::print(&common::class())).unwrap();
    let stored = |packet: &Vec<u8>| match compressed {
        true => zstd::bulk::compress(packet, 3).unwrap(),
        false => packet.clone(),
    };
    let all: Vec<Vec<u8>> = packets.iter().map(stored).collect();
    let name = if compressed { "s.zst" } else { "s" };
    fs::write(folder.join(name), all.concat()).unwrap();
    let bytes = all[..repeated].concat().len() as u64;
    let part =
        Part { number, earlier: [("s".to_owned(), Repeated { bytes, packets: repeated as u64 })].into() };
    fs::write(folder.join(Part::FILE), part.to_text()).unwrap();
}

/// 4 packets, 2 new ones of 3, 4 new ones of 5.
fn series(folder: &Path, compressed: bool) {
    for (number, count, repeated) in [(1, 4, 0), (2, 3, 1), (3, 5, 1)] {
        part(folder, number, &packets(count), repeated, compressed);
    }
}

#[test]
fn parts_follow_each_other() {
    for compressed in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        series(scratch.path(), compressed);
        let files = Files::open(scratch.path()).unwrap();
        assert_eq!(files.parts().count(), 3);
        assert_eq!(files.path(), scratch.path().join("0003"));
        let trace = Trace::from_files(&files).unwrap();
        assert_eq!(trace.stream_count(), 1);
        let whole = drain(vec![trace.stream(0).unwrap()]);
        assert_eq!((whole.0.len(), whole.1, whole.2.packets), (10 * EVENTS, 0, 0));
        // Offsets go on.
        assert!(whole.0.windows(2).all(|two| two[0].1 < two[1].1));
        let plain: u64 = packets(4).concat().len() as u64
            + packets(3)[1..].concat().len() as u64
            + packets(5)[1..].concat().len() as u64;
        assert_eq!(trace.plain_len(0), Some(plain));
        for most in 1..12 {
            assert_eq!(drain(trace.parts(0, most)), whole, "{most} parts, compressed: {compressed}");
        }
        let one = Trace::open(&scratch.path().join("0002")).unwrap();
        assert_eq!(drain(vec![one.stream(0).unwrap()]).0.len(), 3 * EVENTS);
        // The first that is there has what it repeats.
        fs::remove_dir_all(scratch.path().join("0001")).unwrap();
        let rest = Trace::open(scratch.path()).unwrap();
        assert_eq!(drain(vec![rest.stream(0).unwrap()]).0.len(), (3 + 4) * EVENTS);
    }
}

#[test]
fn damage_ends_with_its_part() {
    for compressed in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        series(scratch.path(), compressed);
        let stream = scratch.path().join("0002").join(if compressed { "s.zst" } else { "s" });
        let bytes = fs::read(&stream).unwrap();
        fs::write(&stream, &bytes[..bytes.len() - 10]).unwrap();
        let trace = Trace::open(scratch.path()).unwrap();
        let (events, errors, losses) = drain(vec![trace.stream(0).unwrap()]);
        assert!(errors > 0 && losses.damaged > 0, "{errors} {losses:?}");
        // All of the first and the last part, and the packet before the one that is cut.
        assert!(events.len() >= (4 + 1 + 4) * EVENTS, "{} events, compressed: {compressed}", events.len());
        // A part that repeats more than it has is as if it had nothing.
        part(scratch.path(), 2, &packets(1), 1, compressed);
        let trace = Trace::open(scratch.path()).unwrap();
        assert_eq!(drain(vec![trace.stream(0).unwrap()]).0.len(), (4 + 4) * EVENTS);
    }
}

#[test]
fn packets_that_are_missing_where_a_part_begins_are_counted() {
    let scratch = tempfile::tempdir().unwrap();
    series(scratch.path(), false);
    let stream = scratch.path().join("0002/s");
    let all = packets(3);
    // The first one that is not repeated was not written.
    fs::write(&stream, [all[0].clone(), all[2].clone()].concat()).unwrap();
    let trace = Trace::open(scratch.path()).unwrap();
    for most in [1, 3, 9] {
        let (events, errors, losses) = drain(trace.parts(0, most));
        assert_eq!((events.len(), errors, losses.packets), ((4 + 1 + 4) * EVENTS, 0, 1));
    }
}

#[test]
fn other_folders_of_numbers_are_no_series() {
    let scratch = tempfile::tempdir().unwrap();
    series(scratch.path(), false);
    fs::remove_file(scratch.path().join("0002").join(Part::FILE)).unwrap();
    // What does not say that it is a part is none.
    assert_eq!(Files::open(scratch.path()).unwrap().parts().count(), 2);
    for number in [1, 3] {
        fs::remove_file(scratch.path().join(Part::name(number)).join(Part::FILE)).unwrap();
    }
    assert!(Files::open(scratch.path()).is_err());
}
