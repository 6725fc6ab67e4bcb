//! A writer and a reader over a real file.

use std::fs::OpenOptions;
use std::sync::atomic::Ordering;

use hetrace_ring::abi::{
    CONTROL_BYTES, Control, PAGE, REPORTED_BYTES, RING_MAGIC, Reported, RingHeader, ring_bytes, special,
    state,
};
use hetrace_ring::reader::Ring;
use hetrace_ring::writer::{FOLD_WORDS, Writer};
use hetrace_ring::{map_file, record};

const DATA: usize = 2 * PAGE;

struct Setup {
    reader: Ring,
    writer: Writer,
    control: *const Control,
    reported: *const Reported,
    base: *mut u8,
}

/// A ring of two pages in a file without a name.
fn setup() -> Setup {
    setup_of(DATA)
}

fn setup_of(data: usize) -> Setup {
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
        // Never closed, as Miri wants it.
        &*Box::leak(Box::new(file))
    };
    let length = ring_bytes(data as u64) as usize;
    let file = open(length);
    let base = map_file(file, length, true).expect("mapped").leak();
    // SAFETY: a zeroed page is a valid header, and nobody else has it yet.
    let header = unsafe { &mut *base.cast::<RingHeader>() };
    header.data_bytes = data as u64;
    header.magic.store(RING_MAGIC, Ordering::Release);
    let control = map_file(open(CONTROL_BYTES), CONTROL_BYTES, true).expect("mapped").leak();
    let reported = map_file(open(REPORTED_BYTES), REPORTED_BYTES, true).expect("mapped").leak();
    let writer = Writer::new();
    // SAFETY: both mappings were leaked, and this is the only writer.
    unsafe { writer.attach(base, data as u64, control.cast::<Control>(), reported.cast()) };
    let reader = Ring::open(file, 0, data as u64).expect("a ring");
    Setup { reader, writer, control: control.cast(), reported: reported.cast(), base }
}

/// Writes a record.
fn write(writer: &Writer, id: u16, body: &[u8]) -> bool {
    let put = |at: *mut u8| {
        // SAFETY: the record's length is that of the body and its head.
        unsafe { at.copy_from_nonoverlapping(body.as_ptr(), body.len()) }
    };
    // SAFETY: `put` fills exactly the `body.len()` bytes that are asked for behind the head.
    unsafe { writer.record(id, record::HEAD + body.len(), put) }.is_some()
}

/// Takes all records that there are.
fn read(reader: &Ring) -> Vec<(u16, Vec<u8>)> {
    let mut out = Vec::new();
    loop {
        let mut bytes = reader.published(usize::MAX);
        let all = bytes.len();
        if all == 0 {
            return out;
        }
        while let Some((head, rest)) = bytes.split_at_checked(record::HEAD) {
            let head = u64::from_le_bytes(head.try_into().expect("eight"));
            let (body, rest) = rest.split_at(record::length(head) - record::HEAD);
            out.push((record::id(head), body.to_vec()));
            bytes = rest;
        }
        reader.take(all);
        reader.release();
    }
}

impl Setup {
    fn write(&self, id: u16, body: &[u8]) -> bool {
        write(&self.writer, id, body)
    }

    fn read(&self) -> Vec<(u16, Vec<u8>)> {
        read(&self.reader)
    }
}

#[test]
fn records_arrive_whole_and_in_order_across_the_end_of_the_ring() {
    let s = setup();
    // Miri takes milliseconds for a record.
    for round in 0..if cfg!(miri) { 30 } else { 1000u32 } {
        for i in 0..5 {
            assert!(s.write(20 + i, &round.to_le_bytes().repeat(usize::from(i) * 13)));
        }
        for (i, (id, body)) in s.read().into_iter().enumerate() {
            assert_eq!(id, 20 + i as u16);
            assert_eq!(body, round.to_le_bytes().repeat(i * 13));
        }
    }
}

/// The reader takes records while they are written: what is published is whole.
#[test]
fn a_reader_beside_the_writer_gets_whole_records_in_order() {
    let s = setup();
    let most = if cfg!(miri) { 200 } else { 100_000u32 };
    let (reader, writer) = (&s.reader, &s.writer);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..most {
                let body = number.to_le_bytes().repeat(1 + number as usize % 9);
                while !write(writer, 17, &body) {
                    std::thread::yield_now(); // It is full.
                }
            }
        });
        let mut number = 0u32;
        while number < most {
            for (id, body) in read(reader) {
                assert_eq!((id, body), (17, number.to_le_bytes().repeat(1 + number as usize % 9)));
                number += 1;
            }
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_full_ring_loses_and_counts_and_goes_on() {
    let s = setup();
    let kept = (0..1000).filter(|_| s.write(16, &[7; 92])).count();
    assert_eq!(kept, DATA / 100);
    assert_eq!(s.reader.header().lost.load(Ordering::Relaxed), 1000 - kept as u64);
    assert_eq!(s.read().len(), kept);
    assert!(s.write(16, b"again"));
    assert_eq!(s.read(), [(16, b"again".to_vec())]);
}

/// What the slow path knew of the drainer's progress was old: the run must not be lost.
#[test]
fn a_run_of_polls_finds_room_that_was_made_meanwhile() {
    let s = setup();
    let kept = (0..DATA / 100).filter(|_| s.write(19, &[7; 92])).count();
    assert_eq!(s.read().len(), kept);
    let key = [3; FOLD_WORDS];
    s.writer.remember_poll(21, &key);
    assert!(s.writer.fold(&key, FOLD_WORDS - 1, 100, 110));
    assert!(s.write(16, b"other"));
    assert_eq!(s.read().iter().map(|(id, _)| *id).collect::<Vec<_>>(), [21, 16]);
    assert_eq!(s.reader.header().lost.load(Ordering::Relaxed), 0);
}

/// A second ring, twice as large, for [`Writer::set_grow`], which finds it in `extra`.
fn with_larger(s: &Setup) -> Setup {
    // SAFETY: attached to mappings that are leaked.
    let control = unsafe { &*s.control };
    control.drainer_alive.store(1, Ordering::Relaxed);
    let larger = setup_of(2 * DATA);
    let base = larger.base.cast();
    s.writer.extra.store(base, Ordering::Relaxed);
    unsafe fn grow(writer: &Writer) -> bool {
        let base = writer.extra.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if !base.is_null() {
            // SAFETY: the start of a mapping that is leaked; its own writer is not used.
            unsafe { writer.move_to(base.cast(), 2 * DATA as u64) };
        }
        !base.is_null()
    }
    s.writer.set_grow(grow);
    larger
}

#[test]
fn a_full_ring_is_left_for_a_larger_one_before_anything_is_lost() {
    let s = setup();
    let larger = with_larger(&s);
    let kept = (0..1000).filter(|_| s.write(16, &[7; 92])).count();
    // Half of so small a ring is left to signal handlers, until there is no other.
    assert_eq!(kept, DATA / 2 / 100 + 2 * DATA / 100);
    assert_eq!(s.reader.header().state.get(), state::MOVED);
    assert_eq!(s.reader.header().lost.load(Ordering::Relaxed), 0);
    assert_eq!(larger.reader.header().lost.load(Ordering::Relaxed), 1000 - kept as u64);
    assert_eq!((s.read().len(), larger.read().len()), (DATA / 2 / 100, 2 * DATA / 100));
}

#[test]
fn a_launcher_that_is_gone_gets_no_larger_ring() {
    let s = setup();
    let larger = with_larger(&s);
    // SAFETY: `setup` leaked the mapping of the control block.
    unsafe { &*s.control }.drainer_alive.store(0, Ordering::Relaxed);
    let kept = (0..1000).filter(|_| s.write(16, &[7; 92])).count();
    assert_eq!((kept, larger.read().len()), (DATA / 100, 0));
}

#[test]
fn a_run_of_polls_goes_along_to_the_larger_ring() {
    let s = setup();
    let larger = with_larger(&s);
    let key = [3; FOLD_WORDS];
    let kept = (0..DATA / 2 / 100).filter(|_| s.write(19, &[7; 92])).count();
    s.writer.remember_poll(21, &key);
    assert!(s.writer.fold(&key, FOLD_WORDS - 1, 100, 110) && s.writer.fold(&key, FOLD_WORDS - 1, 120, 150));
    assert!(s.write(16, &[8; 92]));
    assert!(s.reader.open_folds().next().is_none() && larger.reader.open_folds().next().is_none());
    let expected: Vec<u8> = [2u64, 100, 150, 40, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(s.read().len(), kept);
    assert_eq!(larger.read(), [(21, expected), (16, vec![8; 92])]);
    assert!(!s.writer.continues_poll(21, &key, FOLD_WORDS));
}

#[test]
fn the_drainer_is_woken_when_a_quarter_is_full() {
    let s = setup();
    // SAFETY: `setup` leaked the mapping.
    let wake = &unsafe { &*s.reported }.wake;
    for _ in 0..DATA / 4 / 100 {
        s.write(16, &[7; 92]);
    }
    assert_eq!(wake.load(Ordering::Relaxed), 0);
    s.write(16, &[7; 92]);
    assert_eq!(wake.load(Ordering::Relaxed), 1);
}

#[test]
fn equal_polls_become_one_record_before_the_next() {
    let s = setup();
    let key = [3; FOLD_WORDS];
    s.write(19, b"full");
    s.writer.remember_poll(21, &key);
    assert!(s.writer.continues_poll(21, &key, FOLD_WORDS));
    assert!(s.writer.fold(&key, FOLD_WORDS - 1, 100, 110) && s.writer.fold(&key, FOLD_WORDS - 1, 120, 150));
    assert!(!s.writer.fold(&[4; FOLD_WORDS], 0, 0, 0), "another answer ends the run");
    let open = s.reader.open_folds().next().expect("visible to the drainer if the program dies now");
    assert_eq!((open.id, open.words), (21, [2, 100, 150, 40, 0]));
    s.write(16, b"other");
    let records = s.read();
    let expected: Vec<u8> = [2u64, 100, 150, 40, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(records, [(19, b"full".to_vec()), (21, expected), (16, b"other".to_vec())]);
    assert!(s.reader.open_folds().next().is_none());
    assert!(!s.writer.continues_poll(21, &key, FOLD_WORDS), "something else was recorded");
}

#[test]
fn a_broken_producer_cannot_make_the_reader_leave_the_ring() {
    let s = setup();
    s.write(16, b"good");
    s.reader.header().head.publish(u64::MAX / 2);
    assert!(s.reader.published(usize::MAX).is_empty());
    assert!(s.reader.discard() > DATA as u64);
}

#[test]
fn a_writer_wiped_by_fork_writes_nothing() {
    let mut s = setup();
    s.writer = Writer::new(); // Zeros, as MADV_WIPEONFORK leaves it.
    assert!(!s.write(16, b"child"));
    assert!(!s.writer.attached());
    assert!(s.read().is_empty());
}

/// Calls it further down the stack, where handlers run.
#[inline(never)]
fn deep(call: impl FnOnce()) {
    let frame = std::hint::black_box([0u8; 4096]);
    call();
    std::hint::black_box(frame);
}

/// Leaves a record unfinished, as a signal handler does that interrupts it and jumps away;
/// before, the handler records `handlers` times.
#[inline(never)]
fn interrupted_for_ever(s: &Setup, handlers: u8) {
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let writer = &s.writer;
        let handler = |_: *mut u8| {
            for i in 0..handlers {
                let put = |at: *mut u8| {
                    // SAFETY: a record's length has room for this byte.
                    unsafe { at.write(i) }
                };
                // SAFETY: one byte, as the length says.
                deep(|| assert!(unsafe { writer.record(30, record::HEAD + 1, put) }.is_some()));
            }
            std::panic::resume_unwind(Box::new(()));
        };
        // SAFETY: the body never returns.
        unsafe { writer.record(29, record::HEAD + 50, handler) };
    }));
    assert!(unwound.is_err());
}

#[test]
#[cfg_attr(miri, ignore = "calls have no order of addresses there")]
fn a_record_that_a_handler_never_returned_to_is_given_up_and_the_rest_is_kept() {
    for handlers in [0, 1, 3] {
        let s = setup();
        assert!(s.write(20, b"before"));
        interrupted_for_ever(&s, handlers);
        assert!(s.write(21, b"after"));
        let records = s.read();
        let ids: Vec<u16> = records.iter().map(|(id, _)| *id).collect();
        let mut expected = vec![20, special::ABANDONED];
        expected.extend((0..handlers).map(|_| 30));
        expected.push(21);
        assert_eq!(ids, expected);
        assert_eq!(records[1].1.len(), 50);
        let header = s.reader.header();
        assert_eq!((header.lost.load(Ordering::Relaxed), header.lost_calls.load(Ordering::Relaxed)), (1, 1));
        assert_eq!(s.reader.unpublished(), 0);
    }
}

#[test]
#[cfg_attr(miri, ignore = "calls have no order of addresses there")]
fn what_waits_behind_a_record_that_is_never_finished_is_known() {
    let s = setup();
    assert!(s.write(20, b"before"));
    interrupted_for_ever(&s, 3);
    assert_eq!(s.read().len(), 1);
    assert_eq!(s.reader.unpublished(), 3);
}

/// Where records go does not depend on what stands in shared memory: a program that has overwritten the ring's header
/// writes into its ring as before, and nowhere else.
#[test]
fn noise_in_the_header_does_not_lead_the_writer_out_of_its_ring() {
    let s = setup();
    let larger = with_larger(&s);
    // SAFETY: the header's page of a mapping that is leaked; all of it is numbers.
    unsafe {
        s.base.write_bytes(0xa5, PAGE);
        larger.base.write_bytes(0x5a, PAGE);
    }
    for _ in 0..1000 {
        s.write(16, &[7; 92]);
    }
    // It left for the larger ring, or not; outside of the two there is nothing that it could have reached unnoticed.
    assert!([DATA as u64, 2 * DATA as u64].contains(&s.writer.data_bytes()));
}
