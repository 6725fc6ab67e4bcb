//! Streams on disks that are full and with few descriptors.

use std::fs;

use super::*;

fn stream(folder: &TraceFolder, number: u64) -> Stream {
    Stream::new(folder, format!("s-{number}"), 0, number)
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

#[test]
fn many_streams_hold_few_descriptors() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = TraceFolder::new(scratch.path().to_owned(), [1; 16], false);
    let mut streams: Vec<Stream> = (0..1000).map(|n| stream(&folder, n)).collect();
    for round in 0..3u64 {
        for stream in &mut streams {
            stream.record(1, 10 + round).extend_from_slice(&[7; 8]);
            stream.flush();
        }
    }
    // Other tests of this process have files open, too; a descriptor for each stream shows.
    assert!(open_files() < 600, "{} descriptors", open_files());
    for stream in &streams {
        let (written, records, lost) = stream.counts();
        assert_eq!((written, records, lost), (3 * (PREAMBLE_LEN as u64 + 14), 3, 0));
        let path = scratch.path().join(&stream.name);
        assert_eq!(fs::metadata(path).unwrap().len(), written);
    }
    assert!(folder.refused().is_empty());
}

#[test]
fn what_is_removed_meanwhile_is_not_counted_as_written() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = TraceFolder::new(scratch.path().to_owned(), [1; 16], false);
    let mut stream = stream(&folder, 0);
    stream.record(1, 10).extend_from_slice(&[7; 8]);
    stream.flush();
    fs::remove_file(scratch.path().join("s-0")).unwrap();
    stream.record(1, 11).extend_from_slice(&[7; 8]);
    stream.flush();
    let packet = PREAMBLE_LEN as u64 + 14;
    assert_eq!(stream.counts(), (packet, 2, packet));
    let refused = folder.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].bytes, &*refused[0].why), (packet, "the stream's file was removed"));
}

#[test]
fn files_are_their_owners_alone_unless_shared() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    for (access, folder_mode, file_mode) in [(Access::Owner, 0o700, 0o600), (Access::Group, 0o750, 0o640)] {
        let path = scratch.path().join(format!("{access:?}"));
        access.make_folder(&path).unwrap();
        let folder = TraceFolder::new(path.clone(), [1; 16], true).accessible(access);
        let mut stream = stream(&folder, 0);
        stream.record(1, 10);
        stream.flush();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(path.clone()), mode(path.join("s-0.zst"))), (folder_mode, file_mode));
    }
}

#[test]
fn a_stream_in_pages_is_whole_pages_each_a_packet_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = TraceFolder::new(scratch.path().to_owned(), [1; 16], false);
    let mut stream = stream(&folder, 0).in_pages();
    // Written when they are full, and when somebody asks; the longest records that are promised to fit.
    for time in 0..40 {
        stream.record(1, time).extend_from_slice(&[7; PAGE_RECORD - 6]);
        if time == 3 {
            stream.flush();
        }
    }
    stream.flush();
    let bytes = fs::read(scratch.path().join("s-0")).unwrap();
    assert_eq!((bytes.len() % PAGE, stream.counts()), (0, (bytes.len() as u64, 40, 0)));
    let packets: Vec<&[u8]> = bytes.chunks(PAGE).collect();
    assert!(packets.len() >= 6, "{}", packets.len());
    let mut records = 0;
    for (number, packet) in packets.iter().enumerate() {
        // As form.rs has it: content_size and packet_size in bits, packet_seq_num.
        let at = |place: usize| u64::from_le_bytes(packet[place..place + 8].try_into().unwrap());
        let (content, size) = (at(48) / 8, at(56) / 8);
        assert_eq!((size, at(64)), (PAGE as u64, number as u64), "each begins with its own head");
        assert!(packet[content as usize..].iter().all(|byte| *byte == 0));
        records += (content as usize - PREAMBLE_LEN) / PAGE_RECORD;
    }
    assert_eq!(records, 40);
}
