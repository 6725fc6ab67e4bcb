//! Stream files that grow come in whole packets, whatever pieces they are written in.

mod common;

use std::fs;
use std::path::PathBuf;

use hetrace_ctf::read::{Gone, Part, Pending, Repeated, Tails, Trace};
use hetrace_ctf::tsdl;

struct Folder(PathBuf);

impl Folder {
    fn make(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hetrace-tail-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn trace() -> Trace {
    Trace::from_class(common::class(), Vec::new()).expect("a trace")
}

/// Writes more and more of a file, and reads it each time. Returns what was read, which is whole packets each time.
fn read(name: &str, bytes: &[u8], step: usize, plain: &[usize]) -> Vec<u8> {
    let folder = Folder::make(&format!("{name}-{step}"));
    let trace = trace();
    let mut tails = Tails::new(&folder.0);
    let mut all = Pending::default();
    for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
        fs::write(folder.0.join(name), &bytes[..end]).expect("a file");
        tails.look().expect("a folder");
        for tail in tails.all_mut() {
            tail.read(&trace, 1 << 20, &mut all);
            assert_eq!(tail.broken(), None, "{name} at {end}");
        }
        assert!(all.is_empty() || plain.contains(&all.len()), "{} at {end}", all.len());
    }
    all.concat()
}

#[test]
fn pieces_of_any_size_give_whole_packets() {
    let packet = |n| common::stream(n, 1, 3);
    let packets: Vec<Vec<u8>> = (0..5).map(packet).collect();
    let whole = packets.concat();
    let mut ends = Vec::new();
    packets.iter().fold(0, |end, packet| {
        ends.push(end + packet.len());
        end + packet.len()
    });
    for step in [1, 7, 100, 1000, whole.len()] {
        assert_eq!(read("plain", &whole, step, &ends), whole, "{step}");
    }
    let frames: Vec<u8> =
        packets.iter().flat_map(|packet| zstd::bulk::compress(packet, 1).expect("a frame")).collect();
    for step in [1, 7, 100, frames.len()] {
        assert_eq!(read("packed.zst", &frames, step, &ends), whole, "{step}");
    }
}

#[test]
fn a_look_takes_no_more_than_it_may_and_at_least_a_packet() {
    let folder = Folder::make("some");
    let packets: Vec<Vec<u8>> = (0..5).map(|n| common::stream(n, 1, 20)).collect();
    fs::write(folder.0.join("s"), packets.concat()).expect("a file");
    let (trace, mut tails) = (trace(), Tails::new(&folder.0));
    tails.look().expect("a folder");
    for (at, packet) in packets.iter().enumerate() {
        let mut bytes = Pending::default();
        let grown = tails.all_mut()[0].read(&trace, 10, &mut bytes);
        assert_eq!((&bytes.concat(), grown.more.is_some()), (packet, at < 4), "{at}");
    }
}

#[test]
fn what_is_no_packet_breaks_the_stream_and_says_why() {
    let folder = Folder::make("broken");
    let good = common::stream(0, 2, 3);
    let mut other = good.clone();
    // The uuid of another trace, behind the magic number.
    other[4..20].fill(0x77);
    let half = zstd::bulk::compress(&good[..good.len() - 1], 1).expect("a frame");
    for (name, bytes) in
        [("noise", vec![0xa5; 100]), ("zeros", vec![0; 100]), ("other", other), ("half.zst", half)]
    {
        fs::write(folder.0.join(name), bytes).expect("a file");
    }
    let (trace, mut tails) = (trace(), Tails::new(&folder.0));
    tails.look().expect("a folder");
    let mut bytes = Pending::default();
    for tail in tails.all_mut() {
        tail.read(&trace, 1 << 20, &mut bytes);
        assert!(tail.broken().is_some(), "{}", tail.name());
    }
    fs::write(folder.0.join("zz"), &good).expect("a file");
    tails.look().expect("a folder");
    let last = &mut tails.all_mut()[4];
    last.read(&trace, 1 << 20, &mut bytes);
    assert_eq!(last.broken(), None);
    fs::write(folder.0.join("zz"), &good[..10]).expect("a file");
    last.read(&trace, 1 << 20, &mut bytes);
    assert_eq!(last.broken(), Some("it became shorter"));
    assert!(bytes.concat().ends_with(&good));
}

/// Packets of a stream of so many.
fn packets(count: u64) -> Vec<Vec<u8>> {
    let bytes = common::stream(0, count, 3);
    let trace = Trace::from_class(common::class(), vec![("s".into(), bytes.clone())]).expect("a trace");
    let heads = trace.heads(0).expect("heads").map(|head| (head.offset, head.size));
    heads.map(|(at, size)| bytes[at as usize..(at + size) as usize].to_vec()).collect()
}

/// Writes a part with packets, of which the first is repeated unless it is the first part. Returns what is new.
fn part(folder: &Folder, number: u32, count: u64, compressed: bool) -> Vec<u8> {
    let path = folder.0.join(Part::name(number));
    fs::create_dir_all(path.join("hetrace")).expect("a folder");
    fs::write(path.join("metadata"), tsdl::print(&common::class())).expect("metadata");
    let packets = packets(count);
    let stored = |packet: &Vec<u8>| match compressed {
        true => zstd::bulk::compress(packet, 1).expect("a frame"),
        false => packet.clone(),
    };
    let all: Vec<Vec<u8>> = packets.iter().map(stored).collect();
    let earlier = usize::from(number > 1);
    let repeated = Repeated { bytes: all[..earlier].concat().len() as u64, packets: earlier as u64 };
    let part = Part { number, earlier: [("s".to_owned(), repeated)].into() };
    fs::write(path.join(Part::FILE), part.to_text()).expect("what it repeats");
    fs::write(path.join(if compressed { "s.zst" } else { "s" }), all.concat()).expect("a stream");
    packets[earlier..].concat()
}

#[test]
fn a_stream_goes_on_in_the_next_parts_without_what_they_repeat() {
    for compressed in [false, true] {
        let folder = Folder::make(&format!("parts-{compressed}"));
        let mut expected = part(&folder, 1, 4, compressed);
        let (trace, mut tails, mut all) = (trace(), Tails::new(&folder.0), Pending::default());
        let mut take = |tails: &mut Tails, most| {
            let fresh = tails.look().expect("a folder");
            let tail = &mut tails.all_mut()[0];
            let mut looks = 1;
            while tail.read(&trace, most, &mut all).more.is_some() {
                looks += 1;
            }
            assert_eq!(tail.broken(), None);
            (fresh, looks, all.concat())
        };
        assert_eq!(take(&mut tails, 1 << 20), (true, 1, expected.clone()));
        assert_eq!(take(&mut tails, 1 << 20), (false, 1, expected.clone()));
        // One, and then two between two looks.
        expected.extend(part(&folder, 2, 3, compressed));
        assert_eq!(take(&mut tails, 1 << 20), (true, 1, expected.clone()));
        expected.extend(part(&folder, 3, 5, compressed));
        expected.extend(part(&folder, 4, 2, compressed));
        let (fresh, looks, bytes) = take(&mut tails, 10);
        assert!(fresh && looks > 4 && bytes == expected, "{looks}");
        assert_eq!((tails.all().len(), tails.gone(), tails.are_there()), (1, Gone::default(), true));
        fs::remove_dir_all(folder.0.join("0001")).expect("removed");
        assert!(!tails.are_there());
    }
}

#[test]
fn parts_that_are_removed_before_they_are_read_are_counted() {
    let folder = Folder::make("removed");
    let first = part(&folder, 3, 4, false);
    let (trace, mut tails) = (trace(), Tails::new(&folder.0));
    let mut all = [Pending::default(), Pending::default()];
    let mut take = |tails: &mut Tails| {
        tails.look().expect("a folder");
        for (tail, pending) in tails.all_mut().iter_mut().zip(&mut all) {
            tail.read(&trace, 1 << 20, pending);
            assert_eq!(tail.broken(), None);
        }
        [all[0].concat(), all[1].concat()]
    };
    // Two were gone before anybody looked; what the first one that is there repeats is new.
    let repeated = packets(4)[0].clone();
    let first = [repeated, first].concat();
    assert_eq!(take(&mut tails), [first.clone(), Vec::new()]);
    assert_eq!(tails.gone(), Gone { whole: 2, partly: 0 });
    // One more is missed, and the one before removed: the stream is another, with what is repeated there.
    fs::remove_dir_all(folder.0.join("0003")).expect("removed");
    let later = part(&folder, 5, 3, false);
    let last = part(&folder, 6, 2, false);
    let second = [packets(3)[0].clone(), later, last].concat();
    assert_eq!(take(&mut tails), [first.clone(), second.clone()]);
    assert_eq!(tails.gone(), Gone { whole: 3, partly: 1 });
    // A file that is gone when it is to be read.
    part(&folder, 7, 3, false);
    tails.look().expect("a folder");
    fs::remove_dir_all(folder.0.join("0007")).expect("removed");
    assert_eq!(take(&mut tails), [first, second]);
    assert_eq!(tails.gone(), Gone { whole: 3, partly: 2 });
}

#[test]
fn a_part_that_ends_inside_of_a_packet_breaks_its_stream() {
    let folder = Folder::make("cut");
    part(&folder, 1, 4, false);
    let path = folder.0.join("0001/s");
    let bytes = fs::read(&path).expect("a stream");
    fs::write(&path, &bytes[..bytes.len() - 9]).expect("a stream");
    let (trace, mut tails, mut all) = (trace(), Tails::new(&folder.0), Pending::default());
    for broken in [None, Some("a part of it ends inside of a packet")] {
        tails.look().expect("a folder");
        tails.all_mut()[0].read(&trace, 1 << 20, &mut all);
        assert_eq!(tails.all()[0].broken(), broken);
        part(&folder, 2, 4, false);
    }
    assert_eq!(all.concat(), packets(4)[..3].concat());
}
