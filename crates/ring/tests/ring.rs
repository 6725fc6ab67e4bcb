//! A writer and a reader over a real file.

use std::fs::OpenOptions;
use std::sync::atomic::Ordering;

use hetrace_ring::abi::{ABI_VERSION, CONTROL_BYTES, Control, PAGE, RING_MAGIC, RingHeader};
use hetrace_ring::reader::Ring;
use hetrace_ring::writer::{FOLD_WORDS, Writer};
use hetrace_ring::{map_file, map_mirrored, record};

const DATA: usize = 2 * PAGE;

struct Setup {
    reader: Ring,
    writer: Writer,
}

/// A ring of two pages in a file without a name.
fn setup() -> Setup {
    let open = |size: usize| {
        let path = std::env::temp_dir().join(format!(
            "hetrace-ring-test-{}-{:?}-{size}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("a temporary file");
        std::fs::remove_file(&path).expect("just made");
        file.set_len(size as u64).expect("room");
        file
    };
    let file = open(PAGE + DATA);
    let base = map_mirrored(&file, DATA).expect("mapped").leak();
    // SAFETY: a zeroed page is a valid header, and nobody else has it yet.
    let header = unsafe { &mut *base.cast::<RingHeader>() };
    header.version = ABI_VERSION;
    header.data_bytes = DATA as u64;
    header.magic.store(RING_MAGIC, Ordering::Release);
    let control = map_file(&open(CONTROL_BYTES), CONTROL_BYTES, true).expect("mapped").leak();
    // SAFETY: all members of a writer are valid when zero.
    let mut writer: Writer = unsafe { std::mem::zeroed() };
    // SAFETY: both mappings were leaked, and this is the only writer.
    unsafe { writer.attach(base, control.cast::<Control>()) };
    Setup { reader: Ring::open(&file).expect("a ring"), writer }
}

impl Setup {
    fn write(&mut self, id: u16, body: &[u8]) -> bool {
        let put = |at: *mut u8| {
            // SAFETY: the record's length is that of the body and its head.
            unsafe { at.copy_from_nonoverlapping(body.as_ptr(), body.len()) }
        };
        // SAFETY: as above.
        unsafe { self.writer.record(id, record::HEAD + body.len(), put) }.is_some()
    }

    fn read(&self) -> Vec<(u16, Vec<u8>)> {
        let (mut bytes, mut out) = (self.reader.published(usize::MAX), Vec::new());
        let all = bytes.len();
        while let Some((head, rest)) = bytes.split_at_checked(record::HEAD) {
            let head = u64::from_le_bytes(head.try_into().expect("eight"));
            let (body, rest) = rest.split_at(record::length(head) - record::HEAD);
            out.push((record::id(head), body.to_vec()));
            bytes = rest;
        }
        self.reader.release(all);
        out
    }
}

#[test]
fn records_arrive_whole_and_in_order_across_the_end_of_the_ring() {
    let mut s = setup();
    for round in 0..1000u32 {
        for i in 0..5 {
            assert!(s.write(20 + i, &round.to_le_bytes().repeat(usize::from(i) * 13)));
        }
        for (i, (id, body)) in s.read().into_iter().enumerate() {
            assert_eq!(id, 20 + i as u16);
            assert_eq!(body, round.to_le_bytes().repeat(i * 13));
        }
    }
}

#[test]
fn a_full_ring_loses_and_counts_and_goes_on() {
    let mut s = setup();
    let kept = (0..1000).filter(|_| s.write(16, &[7; 92])).count();
    assert_eq!(kept, DATA / 100);
    assert_eq!(s.reader.header().lost.load(Ordering::Relaxed), 1000 - kept as u64);
    assert_eq!(s.read().len(), kept);
    assert!(s.write(16, b"again"));
    assert_eq!(s.read(), [(16, b"again".to_vec())]);
}

#[test]
fn equal_polls_become_one_record_before_the_next() {
    let mut s = setup();
    let key = [3; FOLD_WORDS];
    s.write(19, b"full");
    s.writer.remember_poll(21, &key);
    assert!(s.writer.continues_poll(21, &key, FOLD_WORDS));
    assert!(s.writer.fold(&key, FOLD_WORDS - 1, 100, 110) && s.writer.fold(&key, FOLD_WORDS - 1, 120, 150));
    assert!(!s.writer.fold(&[4; FOLD_WORDS], 0, 0, 0), "another answer ends the run");
    let open = s.reader.open_fold().expect("visible to the drainer if the program dies now");
    assert_eq!((open.id, open.words), (21, [2, 100, 150, 40]));
    s.write(16, b"other");
    let records = s.read();
    let expected: Vec<u8> = [2u64, 100, 150, 40].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(records, [(19, b"full".to_vec()), (21, expected), (16, b"other".to_vec())]);
    assert!(s.reader.open_fold().is_none());
    assert!(!s.writer.continues_poll(21, &key, FOLD_WORDS), "something else was recorded");
}

#[test]
fn a_broken_producer_cannot_make_the_reader_leave_the_ring() {
    let mut s = setup();
    s.write(16, b"good");
    s.reader.header().head.publish(u64::MAX / 2);
    assert!(s.reader.published(usize::MAX).is_empty());
    assert!(s.reader.discard() > DATA as u64);
}

#[test]
fn a_writer_wiped_by_fork_writes_nothing() {
    let mut s = setup();
    // SAFETY: what MADV_WIPEONFORK leaves: all members are valid when zero.
    s.writer = unsafe { std::mem::zeroed() };
    assert!(!s.write(16, b"child"));
    assert!(!s.writer.attached());
    assert!(s.read().is_empty());
}
