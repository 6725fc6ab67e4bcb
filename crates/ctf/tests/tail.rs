//! Stream files that grow come in whole packets, whatever pieces they are written in.

mod common;

use std::fs;
use std::path::PathBuf;

use hetrace_ctf::read::{Pending, Tails, Trace};

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
