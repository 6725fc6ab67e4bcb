//! Threads that outgrow their rings, in every order with the drainer's passes.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_ctf::write::PREAMBLE_LEN;
use hetrace_ring::abi::{ABI_VERSION, CONTROL_BYTES, Control, PAGE, RING_MAGIC, RingHeader};
use hetrace_ring::writer::Writer;
use hetrace_ring::{map_file, map_mirrored};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::time::ReferencePoint;

/// Data bytes of a first ring, and the largest.
const FIRST: usize = PAGE;
const LARGEST: usize = 16 * PAGE;
/// The only event of these tests: 8 bytes, whose thread and which of its records.
const ID: u16 = record::FIRST_CALL_ID;

/// The rings of a program, as `hetrace_interpose` makes them.
struct Program {
    session: TempDir,
    control: *const Control,
    rings: Vec<*mut u8>,
    largest: usize,
}

impl Program {
    fn new(largest: usize) -> Program {
        let session = TempDir::new().expect("a scratch folder");
        let file =
            File::options().read(true).write(true).create_new(true).open(session.path().join("control"));
        let file = file.expect("a file");
        file.set_len(CONTROL_BYTES as u64).expect("room");
        let control = map_file(&file, CONTROL_BYTES, true).expect("mapped").leak().cast::<Control>();
        // SAFETY: a zeroed page of a file that nobody else knows.
        let page = unsafe { &mut *control };
        page.launcher = std::process::id();
        page.drainer_alive.store(1, Ordering::Relaxed);
        Program { session, control, rings: Vec::new(), largest }
    }

    /// A free ring of at least so many data bytes, or a new one.
    fn ring(&mut self, data: usize) -> *mut u8 {
        for base in &self.rings {
            // SAFETY: a ring made below, which stays mapped.
            let header = unsafe { &*base.cast::<RingHeader>() };
            let state = &header.state;
            let (free, claimed) = (state::FREE, state::CLAIMED);
            let fits = header.data_bytes >= data as u64;
            if fits && state.compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return *base;
            }
        }
        let number = self.rings.len();
        let name = format!("{RING_PREFIX}{}-0-{number}", std::process::id());
        let file =
            File::options().read(true).write(true).create_new(true).open(self.session.path().join(name));
        let file = file.expect("a file");
        file.set_len((PAGE + data) as u64).expect("room");
        let base = map_mirrored(&file, data).expect("mapped").leak();
        // SAFETY: a zeroed page of a file that nobody reads before its magic is there.
        let header = unsafe { &mut *base.cast::<RingHeader>() };
        header.version = ABI_VERSION;
        header.data_bytes = data as u64;
        header.pid = std::process::id();
        header.number = number as u32;
        self.rings.push(base);
        base
    }

    fn open(base: *mut u8, thread: u32, follows: u32) {
        // SAFETY: a ring made by `ring`.
        let header = unsafe { &*base.cast::<RingHeader>() };
        header.follows.store(follows, Ordering::Relaxed);
        header.tid.store(thread, Ordering::Relaxed);
        header.claimed_at.store(clock::ticks(), Ordering::Relaxed);
        header.incarnation.fetch_add(1, Ordering::Relaxed);
        header.state.store(state::ACTIVE, Ordering::Release);
        header.magic.store(RING_MAGIC, Ordering::Release);
    }
}

unsafe fn grow(writer: &mut Writer) -> bool {
    // SAFETY: set by `Thread::start`; nobody else uses the program meanwhile.
    let program = unsafe { &mut *writer.extra.cast::<Program>() };
    let (size, number, thread) = {
        let header = writer.header().expect("attached");
        (header.data_bytes as usize, header.number, header.tid.load(Ordering::Relaxed))
    };
    if size * 4 > program.largest {
        return false;
    }
    let base = program.ring(size * 4);
    Program::open(base, thread, number + 1);
    // SAFETY: leaked, claimed, and there are no signal handlers here.
    unsafe { writer.move_to(base) };
    true
}

struct Thread {
    writer: Writer,
    number: u32,
    written: Vec<u32>,
    tried: u32,
}

impl Thread {
    fn start(program: &mut Program, number: u32) -> Thread {
        let base = program.ring(FIRST);
        Program::open(base, number, 0);
        // SAFETY: all members of a writer are valid when zero.
        let mut writer: Writer = unsafe { std::mem::zeroed() };
        // SAFETY: both are leaked, and the ring was claimed for this writer.
        unsafe { writer.attach(base, program.control) };
        writer.extra = std::ptr::from_mut(program).cast();
        writer.grow = Some(grow);
        Thread { writer, number, written: Vec::new(), tried: 0 }
    }

    fn write(&mut self) {
        let word = u64::from(self.number) << 32 | u64::from(self.tried);
        // SAFETY: eight bytes, as the length says.
        let put = |at: *mut u8| unsafe { at.cast::<u64>().write_unaligned(word.to_le()) };
        // SAFETY: as above.
        if unsafe { self.writer.record(ID, record::HEAD + 8, put) }.is_some() {
            self.written.push(self.tried);
        }
        self.tried += 1;
    }

    fn end(&self) {
        let header = self.writer.header().expect("attached");
        header.state.store(state::ENDED, Ordering::Release);
    }
}

/// By thread: the file and the number of each record, in order.
type Records = BTreeMap<u32, Vec<(String, u32)>>;

/// What the files of a trace have, and how many records each file says were lost.
fn read(trace: &Path) -> (Records, BTreeMap<String, u64>) {
    let (mut records, mut lost) = (Records::new(), BTreeMap::new());
    for entry in fs::read_dir(trace).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("text");
        let bytes = fs::read(entry.path()).expect("a file");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let number = |at: usize| word(rest, at / 8);
            let (bits, discarded, thread) = (number(48), number(72), number(80) >> 32);
            let before = lost.insert(name.clone(), discarded).unwrap_or(0);
            assert!(discarded >= before, "{name}: {before} lost, then {discarded}");
            let (packet, next) = rest.split_at(bits as usize / 8);
            for record in packet[PREAMBLE_LEN..].chunks(6 + 8) {
                let word = word(&record[6..], 0);
                assert_eq!(word >> 32, thread, "the packet's thread");
                records.entry(thread as u32).or_default().push((name.clone(), word as u32));
            }
            rest = next;
        }
    }
    (records, lost)
}

/// What happens next: so many records of a thread, a thread's end (another begins in its
/// place), a pass of the drainer, a flush.
#[derive(Debug, Clone)]
enum Step {
    Write(usize, u32),
    End(usize),
    Pass,
    Flush,
}

/// Does it, and answers how many records were lost.
fn play(steps: &[Step], largest: usize) -> u64 {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(largest);
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".to_owned()]);
    let (tsc, monotonic_ns) = (clock::ticks(), 1 << 40);
    let start = ReferencePoint { tsc, monotonic_ns, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    let mut threads: Vec<Thread> = (0..2).map(|i| Thread::start(&mut program, i)).collect();
    let (mut ended, mut next) = (Vec::new(), 2);
    for step in steps {
        match *step {
            Step::Write(thread, records) => (0..records).for_each(|_| threads[thread].write()),
            Step::End(thread) => {
                threads[thread].end();
                let fresh = Thread::start(&mut program, next);
                ended.push(std::mem::replace(&mut threads[thread], fresh));
                next += 1;
            }
            Step::Pass => {
                drainer.discover();
                drainer.pass(&host);
            }
            Step::Flush => drainer.flush(monotonic_ns, &host),
        }
    }
    drainer.finish(&host);
    ended.append(&mut threads);

    let (records, lost) = read(trace.path());
    for thread in &ended {
        let seen = records.get(&thread.number).map_or(&[][..], |r| r);
        let files: BTreeSet<&String> = seen.iter().map(|(file, _)| file).collect();
        assert!(files.len() <= 1, "thread {} is in {files:?}", thread.number);
        let seen: Vec<u32> = seen.iter().map(|(_, record)| *record).collect();
        assert_eq!(seen, thread.written, "thread {}", thread.number);
    }
    let tried: u64 = ended.iter().map(|t| u64::from(t.tried)).sum();
    let written: u64 = ended.iter().map(|t| t.written.len() as u64).sum();
    assert_eq!(drainer.written().0, written);
    let losses = drainer.losses();
    assert_eq!((losses.records, losses.damaged_bytes), (tried - written, 0));
    // A stream says so with its next packet, if there is one.
    assert!(lost.values().sum::<u64>() <= losses.records);
    losses.records
}

/// Records of 16 bytes that fill a first ring.
const FULL: u32 = (FIRST / 16) as u32;

#[test]
fn a_burst_before_the_first_pass_loses_nothing_while_larger_rings_can_be_had() {
    let burst = [Step::Write(0, FULL * (1 + 4 + 16))];
    assert_eq!(play(&burst, LARGEST), 0);
    assert_eq!(play(&burst, FIRST), u64::from(FULL * (4 + 16)), "without them all but one ring is lost");
}

#[test]
fn what_no_ring_holds_is_counted() {
    assert_eq!(play(&[Step::Write(0, FULL * (1 + 4 + 16) + 5)], LARGEST), 5);
}

#[test]
fn a_ring_that_was_left_serves_other_threads() {
    let steps = [
        Step::Write(0, FULL + 1),
        Step::Pass,
        Step::Pass,
        Step::End(1),
        Step::Write(1, FULL + 2),
        Step::Write(0, 1),
        Step::Pass,
        Step::Write(1, 3),
        Step::Flush,
        Step::End(0),
    ];
    assert_eq!(play(&steps, LARGEST), 0);
}

#[test]
fn rings_that_follow_each_other_in_a_circle_are_damage_and_nothing_hangs() {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(FIRST);
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".to_owned()]);
    let start = ReferencePoint { tsc: 0, monotonic_ns: 0, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    let mut threads: Vec<Thread> = (0..3).map(|i| Thread::start(&mut program, i)).collect();
    // The first two each other, the third itself.
    for (thread, follows) in threads.iter_mut().zip([2, 1, 3]) {
        thread.write();
        thread.writer.header().expect("attached").follows.store(follows, Ordering::Relaxed);
    }
    drainer.discover();
    drainer.pass(&host);
    drainer.finish(&host);
    assert_eq!(drainer.losses().damaged_bytes, 2 * 16);
    assert_eq!(drainer.written().0, 1, "what follows itself follows nothing");
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2usize, 1..3 * FULL).prop_map(|(thread, records)| Step::Write(thread, records)),
        1 => (0..2usize).prop_map(Step::End),
        3 => Just(Step::Pass),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the order: one stream a thread, all that was written, in order.
    #[test]
    fn streams_follow_their_threads(steps in proptest::collection::vec(step(), 1..40)) {
        play(&steps, LARGEST);
    }
}
