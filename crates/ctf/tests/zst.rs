//! Compressed stream files.

mod common;

use std::io::Write;
use std::path::Path;

use hetrace_ctf::Value;
use hetrace_ctf::read::{Merge, StreamError, StreamReader, Trace};
use hetrace_ctf::tsdl;
use hetrace_ctf::write::{PacketPreamble, PacketWriter, StreamIdentity, form, stream_preamble};

fn packets(stream: &[u8]) -> Vec<&[u8]> {
    let (mut packets, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let bits = u64::from_le_bytes(rest[56..64].try_into().unwrap());
        let (packet, next) = rest.split_at(bits as usize / 8);
        packets.push(packet);
        rest = next;
    }
    packets
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).unwrap()
}

/// A frame that does not say its size.
fn unsized_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn trace(bytes: Vec<u8>) -> Trace {
    Trace::from_class(common::class(), vec![("s.zst".into(), bytes)]).unwrap()
}

type Seen = (Option<u64>, u64, u64, Value);

fn drain(reader: &mut StreamReader<'_>) -> (Vec<Seen>, Vec<StreamError>) {
    let (mut events, mut errors) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event() {
        match event {
            Ok(event) => events.push((
                event.timestamp(),
                event.offset(),
                event.packet().seq_num.unwrap(),
                event.fields().unwrap(),
            )),
            Err(error) => errors.push(error),
        }
    }
    (events, errors)
}

fn read(bytes: Vec<u8>) -> (Vec<Seen>, Vec<StreamError>) {
    drain(&mut trace(bytes).stream(0).unwrap())
}

fn plain(stream: &[u8]) -> Vec<Seen> {
    let trace = Trace::from_class(common::class(), vec![("s".into(), stream.to_vec())]).unwrap();
    let (events, errors) = drain(&mut trace.stream(0).unwrap());
    assert!(errors.is_empty());
    events
}

#[test]
fn any_partition_reads_as_the_plain_stream() {
    let stream = common::stream(0, 5, 40);
    let plain = plain(&stream);
    assert_eq!(plain.len(), 400);
    let by = |n: usize| stream.chunks(n).flat_map(frame).collect::<Vec<u8>>();
    let skippable = [&0x184D_2A50u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"abc"].concat();
    let partitions = [
        packets(&stream).into_iter().flat_map(frame).collect(),
        packets(&stream).into_iter().flat_map(unsized_frame).collect(),
        frame(&stream),
        unsized_frame(&stream),
        by(1),
        by(100),
        by(7001),
        [&skippable, &frame(&[])[..], &frame(&stream), &skippable].concat(),
    ];
    for (index, bytes) in partitions.into_iter().enumerate() {
        let (events, errors) = read(bytes);
        assert_eq!(errors, [], "{index}");
        assert_eq!(events, plain, "{index}");
    }
}

#[test]
fn a_folder_may_have_both() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("zst");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("metadata"), tsdl::print(&common::class())).unwrap();
    let streams = [common::stream(0, 3, 5), common::stream(1, 3, 5)];
    std::fs::write(dir.join("a"), &streams[0]).unwrap();
    let frames: Vec<u8> = packets(&streams[1]).into_iter().flat_map(frame).collect();
    std::fs::write(dir.join("b.zst"), frames).unwrap();
    let trace = Trace::open(&dir).unwrap();
    let (mut merge, mut last, mut counts) = (Merge::new(&trace), None, [0; 2]);
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        assert!(event.timestamp() >= last);
        last = event.timestamp();
        let instance = event.packet().stream_instance_id.unwrap() as usize;
        assert_eq!(event.stream_name(), ["a", "b.zst"][instance]);
        counts[instance] += 1;
    }
    assert_eq!(counts, [30, 30]);
}

#[test]
fn cut_off_anywhere() {
    let stream = common::stream(0, 3, 2);
    let frames: Vec<_> = packets(&stream).into_iter().map(frame).collect();
    let ends: Vec<usize> = frames
        .iter()
        .scan(0, |end, frame| {
            *end += frame.len();
            Some(*end)
        })
        .collect();
    let whole = frames.concat();
    let plain = plain(&stream);
    for len in 1..=whole.len() {
        let (events, errors) = read(whole[..len].to_vec());
        let complete = ends.iter().filter(|&&end| end <= len).count();
        assert_eq!(events, plain[..complete * 4], "{len}");
        if ends.contains(&len) {
            assert_eq!(errors, [], "{len}");
        } else {
            let offset: usize = packets(&stream)[..complete].iter().map(|p| p.len()).sum();
            assert!(
                matches!(errors[..], [StreamError::Truncated { offset: at, .. }] if at == offset as u64),
                "{len}: {errors:?}"
            );
        }
    }
}

#[test]
fn what_a_cut_frame_still_gives_is_read() {
    // More than a block of a frame, which is 128 KiB.
    let mut writer = PacketWriter::new(StreamIdentity { uuid: common::UUID, ..StreamIdentity::default() });
    let (mut stream, mut bytes) = (Vec::new(), Vec::new());
    for packet in 0..2u64 {
        for n in 0..30_000 {
            let now = packet * 1_000_000_000 + n * n;
            writer.event(0, now, &[]).unwrap();
        }
        let packet = writer.finish(1);
        stream.extend_from_slice(packet);
        bytes.extend(frame(packet));
    }
    let (events, errors) = read(bytes[..bytes.len() - 10].to_vec());
    assert!((30_001..60_000).contains(&events.len()), "{}", events.len());
    assert_eq!(events, plain(&stream)[..events.len()]);
    assert!(matches!(errors[..], [StreamError::Truncated { have, size, .. }] if 0 < have && have < size));
}

#[test]
fn a_broken_frame_loses_its_packet() {
    let stream = common::stream(0, 3, 2);
    let mut frames: Vec<_> = packets(&stream).into_iter().map(unsized_frame).collect();
    // The checksum comes last; by it everything is noticed.
    *frames[1].last_mut().unwrap() ^= 1;
    let trace = trace(frames.concat());
    let mut reader = trace.stream(0).unwrap();
    let (events, errors) = drain(&mut reader);
    let [first, second] = [&frames[0], &frames[1]].map(|frame| frame.len() as u64);
    assert!(
        matches!(errors[..], [StreamError::Frame { offset, resume: Some(resume), .. }]
            if offset == first && resume == first + second),
        "{errors:?}"
    );
    assert_eq!(reader.losses().damaged, 1);
    let packets: Vec<u64> = events.iter().map(|event| event.2).collect();
    assert!(packets.starts_with(&[0; 4]) && packets.ends_with(&[2; 4]));

    // What follows is no frame.
    let bytes = [&frames[0][..], b"no frame, but some text"].concat();
    let (events, errors) = read(bytes);
    assert_eq!(events.len(), 4);
    assert!(matches!(errors[..], [StreamError::Frame { resume: None, .. }]));
}

#[test]
fn a_bad_packet_is_left_at_the_end_of_its_frame() {
    let mut stream = common::stream(0, 3, 2);
    let size = packets(&stream)[0].len();
    // Neither magic nor size.
    stream[..4].fill(0);
    stream[56..64].fill(0xEE);
    let frames = [frame(&stream[..size]), frame(&stream[size..])].concat();
    let (events, errors) = read(frames);
    assert!(
        matches!(errors[..], [StreamError::Packet { resume: Some(resume), .. }] if resume == size as u64),
        "{errors:?}"
    );
    assert_eq!(events.len(), 8);
}

#[test]
fn endless_packets_end() {
    let bytes: u64 = 300 << 20;
    let head = stream_preamble(&PacketPreamble {
        uuid: common::UUID,
        content_bits: form::PREAMBLE_LEN as u64 * 8,
        packet_bits: (form::PREAMBLE_LEN as u64 + bytes) * 8,
        ..PacketPreamble::default()
    });
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&head).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), bytes), &mut encoder).unwrap();
    let (events, errors) = read(encoder.finish().unwrap());
    assert_eq!(events, []);
    assert!(matches!(errors[..], [StreamError::Frame { resume: None, .. }]));
}
