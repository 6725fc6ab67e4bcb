//! Threads that outgrow their rings, in every order with the drainer's passes.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_ctf::write::PREAMBLE_LEN;
use std::fs::File;

use hetrace_ring::abi::directory::Entry;
use hetrace_ring::abi::{
    ABI_VERSION, ARENA_MAGIC, ArenaHeader, CONTROL_BYTES, CommandRecord, Control, PAGE, PendingRecord,
    RING_MAGIC, RingHeader, ThreadRecord, command_flag, ring_bytes, special,
};
use hetrace_ring::writer::Writer;
use hetrace_ring::{clock, map_file, record};
use proptest::prelude::*;
use rustix::fs::FlockOperation;
use tempfile::TempDir;

use super::records::word;
use super::*;
use crate::stream_files::numbered;
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
    arena: *mut u8,
    /// Holds the lock.
    _file: File,
    rings: Vec<*mut u8>,
    largest: usize,
}

/// Bytes of the arena.
const ARENA: usize = 4 << 20;

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
        let name = format!("{ARENA_PREFIX}0-{}-0", std::process::id());
        let file = File::options().read(true).write(true).create_new(true).open(session.path().join(name));
        let file = file.expect("a file");
        file.set_len(ARENA as u64).expect("room");
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).expect("a lock");
        let arena = map_file(&file, ARENA, true).expect("mapped").leak();
        // SAFETY: a zeroed page of a file that nobody reads before its magic is there.
        let header = unsafe { &mut *arena.cast::<ArenaHeader>() };
        header.version = ABI_VERSION;
        header.pid = std::process::id();
        header.locked = 1;
        header.used.begin();
        header.magic.store(ARENA_MAGIC, Ordering::Release);
        Program { session, control, arena, _file: file, rings: Vec::new(), largest }
    }

    /// Returns a free ring of at least so many data bytes, or a new one.
    fn ring(&mut self, data: usize) -> *mut u8 {
        for base in &self.rings {
            // SAFETY: a ring made below, which stays mapped.
            let header = unsafe { &*base.cast::<RingHeader>() };
            let state = &header.state;
            let fits = header.data_bytes >= data as u64;
            if fits && state.claim(&header.head, &header.tail, header.data_bytes) {
                return *base;
            }
        }
        let number = self.rings.len();
        // SAFETY: a header and a directory of atomics.
        let (arena, entry) = unsafe {
            let entry = &*self.arena.add(PAGE).cast::<Entry>().add(number);
            (&*self.arena.cast::<ArenaHeader>(), entry)
        };
        let offset = arena.used.take(ring_bytes(data as u64), ARENA as u64);
        let offset = offset.expect("a larger arena is needed");
        // SAFETY: in the arena, and nobody else's.
        let base = unsafe { self.arena.add(offset as usize) };
        // SAFETY: zeroed, which is a valid header.
        let header = unsafe { &mut *base.cast::<RingHeader>() };
        header.data_bytes = data as u64;
        header.number = number as u32;
        header.magic.store(RING_MAGIC, Ordering::Relaxed);
        entry.publish(offset, data as u64);
        arena.rings.fetch_add(1, Ordering::Release);
        self.rings.push(base);
        base
    }

    fn open(base: *mut u8, thread: u32, follows: u32) {
        // SAFETY: a ring made by `ring`.
        let header = unsafe { &*base.cast::<RingHeader>() };
        let thread = ThreadRecord {
            tid: thread,
            follows,
            claimed_at: clock::ticks(),
            lost: header.lost.load(Ordering::Relaxed),
            lost_calls: header.lost_calls.load(Ordering::Relaxed),
        };
        let (at, length) = (header.head.own(), record::HEAD + size_of::<ThreadRecord>());
        // SAFETY: half of the ring is free, and the page behind its data takes a record's end.
        unsafe {
            let place = base.add(PAGE + (at & (header.data_bytes - 1)) as usize);
            place.cast::<u64>().write_unaligned(record::pack(special::THREAD, length, thread.claimed_at));
            place.add(record::HEAD).cast::<ThreadRecord>().write_unaligned(thread);
        }
        header.head.publish(at + length as u64);
        header.state.begin();
    }
}

/// Data bytes of a ring that was made here.
fn data_of(base: *mut u8) -> u64 {
    // SAFETY: a ring made by `ring`.
    unsafe { (*base.cast::<RingHeader>()).data_bytes }
}

unsafe fn grow(writer: &Writer) -> bool {
    // SAFETY: set by `Thread::start`; nobody else uses the program meanwhile.
    let program = unsafe { &mut *writer.extra.load(Ordering::Relaxed).cast::<Program>() };
    let (size, number, thread) = {
        let header = writer.header().expect("attached");
        (header.data_bytes as usize, header.number, writer.tid())
    };
    if size * 4 > program.largest {
        return false;
    }
    let base = program.ring(size * 4);
    Program::open(base, thread, number + 1);
    // SAFETY: leaked, claimed, and there are no signal handlers here.
    unsafe { writer.move_to(base, data_of(base)) };
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
        Self::start_behind(program, number, 0)
    }

    fn start_behind(program: &mut Program, number: u32, follows: u32) -> Thread {
        let base = program.ring(FIRST);
        Program::open(base, number, follows);
        let writer = Writer::new();
        // SAFETY: both are leaked, and the ring was claimed for this writer.
        unsafe { writer.attach(base, data_of(base), program.control, std::ptr::null()) };
        writer.extra.store(std::ptr::from_mut(program).cast(), Ordering::Relaxed);
        writer.set_tid(number);
        writer.set_grow(grow);
        Thread { writer, number, written: Vec::new(), tried: 0 }
    }

    fn write(&mut self) {
        let word = u64::from(self.number) << 32 | u64::from(self.tried);
        // SAFETY: eight bytes, as the length says.
        let put = |at: *mut u8| unsafe { at.cast::<u64>().write_unaligned(word.to_le()) };
        // SAFETY: `put` writes the eight bytes behind the head that the length says.
        if unsafe { self.writer.record(ID, record::HEAD + 8, put) }.is_some() {
            self.written.push(self.tried);
        }
        self.tried += 1;
    }

    fn end(&self) {
        let header = self.writer.header().expect("attached");
        header.state.end();
    }
}

/// By thread: the file and the number of each record, in order.
type Records = BTreeMap<u32, Vec<(String, u32)>>;

/// Returns what the files of a trace have, and how many records each file says were lost.
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

/// A program whose two threads do what happens next, and those that have ended.
struct Cast<'p> {
    /// Its threads know where it is: it must not move.
    program: &'p mut Program,
    threads: Vec<Thread>,
    ended: Vec<Thread>,
}

impl<'p> Cast<'p> {
    fn new(program: &'p mut Program) -> Self {
        // No thread has the number 0.
        let threads = (1..3).map(|number| Thread::start(program, number)).collect();
        Cast { program, threads, ended: Vec::new() }
    }

    fn act(&mut self, step: &Step, drainer: &mut Drainer, host: &HostClock) {
        match *step {
            Step::Write(thread, records) => (0..records).for_each(|_| self.threads[thread].write()),
            Step::End(thread) => {
                self.threads[thread].end();
                let next = (self.threads.len() + self.ended.len()) as u32 + 1;
                let fresh = Thread::start(self.program, next);
                self.ended.push(std::mem::replace(&mut self.threads[thread], fresh));
            }
            Step::Pass => {
                drainer.discover();
                drainer.pass(host);
            }
            Step::Flush => drainer.flush(1 << 40, host),
        }
    }

    /// All threads that there were.
    fn threads(&self) -> Vec<&Thread> {
        self.ended.iter().chain(&self.threads).collect()
    }
}

/// Does it, and returns how many records were lost.
fn play(steps: &[Step], largest: usize) -> u64 {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(largest);
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".into()]);
    let (tsc, monotonic_ns) = (clock::ticks(), 1 << 40);
    let start = ReferencePoint { tsc, monotonic_ns, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    let mut cast = Cast::new(&mut program);
    steps.iter().for_each(|step| cast.act(step, &mut drainer, &host));
    drainer.finish(&host);
    let ended = cast.threads();

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
    assert!(lost.values().sum::<u64>() <= losses.records, "{lost:?}, {losses:?}");
    losses.records
}

/// Records of 16 bytes that fill a ring, behind the one that says whose they are.
const fn full(ring: usize) -> u32 {
    ((ring - record::HEAD - size_of::<ThreadRecord>()) / 16) as u32
}

/// Those of a first ring.
const FULL: u32 = full(FIRST);
/// Those after which a thread leaves the first ring and the second, and those of the last.
const BURST: u32 = full(FIRST / 2) + full(4 * FIRST - 2 * record::MAX_RECORD) + full(16 * FIRST);

#[test]
fn a_burst_before_the_first_pass_loses_nothing_while_larger_rings_can_be_had() {
    let burst = [Step::Write(0, BURST)];
    assert_eq!(play(&burst, LARGEST), 0);
    assert_eq!(play(&burst, FIRST), u64::from(BURST - FULL), "without them all but one ring is lost");
}

#[test]
fn what_no_ring_holds_is_counted() {
    assert_eq!(play(&[Step::Write(0, BURST + 5)], LARGEST), 5);
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

/// Where a drainer is killed, if it is.
#[derive(Debug, Clone, Copy)]
enum Kill {
    Not,
    /// Between two steps.
    Between,
    /// A packet of each ring is in its file, and the rings do not say so yet.
    Written,
    /// A packet of each ring was begun and is not whole.
    Half,
}

/// As [`play`], but each time that the drainer is killed another one goes on. What one has written and what the next one
/// finds are all records, each once.
fn play_with_kills(steps: &[(Step, Kill)]) {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(LARGEST);
    let (mut drainer, _) = drainer_of(&program, trace.path());
    let tsc = clock::ticks();
    // Clocks of two drainers differ a little.
    let clock_of = |kills: u64| {
        let monotonic_ns = (1 << 40) - kills * 1000;
        let start = ReferencePoint { tsc, monotonic_ns, realtime_ns: 0, uncertainty_ns: 0 };
        HostClock::new(start, start)
    };
    let (mut kills, mut host) = (0, clock_of(0));
    let mut cast = Cast::new(&mut program);
    for (step, kill) in steps {
        cast.act(step, &mut drainer, &host);
        let before: BTreeMap<u64, u64> =
            numbered(trace.path()).map(|(number, (_, length))| (number, length)).collect();
        match kill {
            Kill::Not => continue,
            Kill::Between => {}
            Kill::Written => drainer.sources.iter_mut().for_each(|source| _ = source.write_packet()),
            Kill::Half => {
                drainer.sources.iter_mut().for_each(|source| _ = source.write_packet());
                for (number, (path, length)) in numbered(trace.path()) {
                    let begin = before.get(&number).copied().unwrap_or(0);
                    let file = File::options().write(true).open(path).expect("a file");
                    file.set_len(begin + (length - begin) / 2).expect("shorter");
                }
            }
        }
        let (after, _) = drainer_of(cast.program, trace.path());
        // Nothing of it is written when it goes.
        drainer = after;
        kills += 1;
        host = clock_of(kills);
    }
    drainer.finish(&host);
    let mut records = read(trace.path()).0;
    for thread in cast.threads() {
        let mut seen: Vec<u32> =
            records.remove(&thread.number).into_iter().flatten().map(|(_, record)| record).collect();
        // Files come in any order.
        seen.sort_unstable();
        assert_eq!(seen, thread.written, "thread {}", thread.number);
    }
    follow_each_other(trace.path());
}

/// What goes on in another file does so later, by the files' own times: readers have nothing else to go by.
fn follow_each_other(trace: &Path) {
    let mut packets: BTreeMap<u64, Vec<(u64, u64, PathBuf)>> = BTreeMap::new();
    for (_, (path, _)) in numbered(trace) {
        let bytes = fs::read(&path).expect("a file");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let number = |at: usize| word(rest, at / 8);
            let (begin, end, thread) = (number(32), number(40), number(80) >> 32);
            packets.entry(thread).or_default().push((begin, end, path.clone()));
            rest = &rest[number(48) as usize / 8..];
        }
    }
    for (thread, mut packets) in packets {
        packets.sort();
        for pair in packets.windows(2) {
            let [(_, end, before), (begin, _, file)] = pair else { continue };
            assert!(
                before == file || begin > end,
                "thread {thread}: {begin} in {file:?} after {end} in {before:?}"
            );
        }
    }
}

#[test]
fn what_a_killed_drainer_has_taken_and_not_written_is_found_by_the_next_one() {
    let write = || (Step::Write(0, 20), Kill::Not);
    for kill in [Kill::Between, Kill::Written, Kill::Half] {
        play_with_kills(&[
            write(),
            (Step::Pass, kill),
            write(),
            (Step::Pass, Kill::Not),
            (Step::Flush, kill),
            write(),
        ]);
        // In the middle of going over to a larger ring.
        let steps = [
            (Step::Write(0, FULL + 5), Kill::Not),
            (Step::Pass, kill),
            (Step::Write(0, 3), kill),
            (Step::Pass, Kill::Not),
        ];
        play_with_kills(&steps);
    }
}

/// A drainer of a program into a folder, and the clock.
fn drainer_of(program: &Program, trace: &Path) -> (Drainer, HostClock) {
    let folder = TraceFolder::new(trace.to_owned(), [0; 16], false);
    let drainer = Drainer::new(program.session.path(), folder, vec!["api".into()]);
    let start =
        ReferencePoint { tsc: clock::ticks(), monotonic_ns: 1 << 40, realtime_ns: 0, uncertainty_ns: 0 };
    (drainer, HostClock::new(start, start))
}

#[test]
fn a_thread_that_is_stopped_in_the_middle_of_a_record_holds_nobody_up() {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(FIRST);
    let (mut drainer, host) = drainer_of(&program, trace.path());
    let (mut stopped, mut other) = (Thread::start(&mut program, 0), Thread::start(&mut program, 1));
    stopped.write();
    drainer.discover();
    let put = |at: *mut u8| {
        // SAFETY: four of the eight bytes that the length says.
        unsafe { at.cast::<u32>().write_unaligned(1) };
        // It stands here for as long as one likes.
        for _ in 0..3 {
            other.write();
            drainer.pass(&host);
            drainer.flush(1 << 40, &host);
        }
        let (seen, _) = read(trace.path());
        assert_eq!((seen[&0].len(), seen[&1].len()), (1, 3), "all but what is not whole");
        // SAFETY: the other four.
        unsafe { at.cast::<u32>().add(1).write_unaligned(0) };
    };
    // SAFETY: `put` writes the eight bytes behind the head that the length says.
    unsafe { stopped.writer.record(ID, record::HEAD + 8, put) }.expect("room");
    stopped.tried += 1;
    stopped.written.push(1);
    stopped.write();
    drainer.finish(&host);
    let (seen, _) = read(trace.path());
    let numbers: Vec<u32> = seen[&0].iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, stopped.written, "it goes on");
    assert_eq!((drainer.losses().records, drainer.losses().damaged_bytes), (0, 0));
}

#[test]
fn what_threads_beyond_the_limit_record_is_dropped_and_counted() {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(LARGEST);
    let (drainer, host) = drainer_of(&program, trace.path());
    let mut drainer = drainer.within(Limits::new(None, Some(2)));
    let mut threads: Vec<Thread> = (1..4).map(|i| Thread::start(&mut program, i)).collect();
    drainer.discover();
    // Larger rings are the same threads'.
    for thread in &mut threads {
        (0..FULL + 5).for_each(|_| thread.write());
        drainer.discover();
        drainer.pass(&host);
    }
    drainer.discover();
    while drainer.pass(&host).bytes > 0 {}
    assert_eq!(drainer.limits().refused(), (0, 1));
    assert_eq!(drainer.lost().0, u64::from(FULL + 5));
    // One ends: another has room.
    threads[0].end();
    let mut next = Thread::start(&mut program, 4);
    (0..7).for_each(|_| next.write());
    drainer.finish(&host);
    let (seen, _) = read(trace.path());
    let counts: Vec<(u32, usize)> = seen.iter().map(|(thread, records)| (*thread, records.len())).collect();
    let all = FULL as usize + 5;
    assert_eq!(counts, [(1, all), (2, all), (4, 7)]);
    let losses = drainer.losses();
    assert_eq!((losses.records, losses.damaged_bytes), (u64::from(FULL + 5), 0));
    assert_eq!(losses.threads.iter().map(|thread| thread.tid).collect::<BTreeSet<_>>().len(), 1);
    assert!(drainer.limits().notes().any(|note| note.contains("--max-threads")));
}

#[test]
fn rings_that_follow_each_other_in_a_circle_are_damage_and_nothing_hangs() {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(FIRST);
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".into()]);
    let start = ReferencePoint { tsc: 0, monotonic_ns: 0, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    // The first two each other, the third itself.
    let follow = [2, 1, 3].into_iter().zip(0..);
    let mut threads: Vec<Thread> =
        follow.map(|(follows, i)| Thread::start_behind(&mut program, i, follows)).collect();
    threads.iter_mut().for_each(Thread::write);
    drainer.discover();
    drainer.pass(&host);
    drainer.finish(&host);
    assert_eq!(drainer.losses().damaged_bytes, 2 * 16);
    assert_eq!(drainer.written().0, 1, "what follows itself follows nothing");
}

#[test]
fn what_another_left_long_ago_has_the_times_of_then() {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(FIRST);
    let base = program.ring(FIRST);
    // Three periods of the low bits of time before now.
    let then = clock::ticks() - (3 << record::TIME_BITS);
    let writer = Writer::new();
    // SAFETY: a ring made by `ring`; it and the control file are leaked, and nobody else uses the ring.
    unsafe { writer.attach(base, data_of(base), program.control, std::ptr::null()) };
    let reader = &writer.header().expect("attached").reader;
    reader.tid.store(1, Ordering::Relaxed);
    reader.time.store(then, Ordering::Relaxed);
    // SAFETY: eight bytes, as the length says.
    let put = |at: *mut u8| unsafe { at.cast::<u64>().write_unaligned(0) };
    // SAFETY: `put` writes the eight bytes behind the head that the length says.
    unsafe { writer.record_at(ID, record::HEAD + 8, then + 1000, put) }.expect("room");
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".into()]);
    drainer.since(then);
    let start = ReferencePoint { tsc: then, monotonic_ns: 1 << 40, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    drainer.finish(&host);
    let file = fs::read_dir(trace.path()).expect("a folder").flatten().next().expect("a stream");
    let begin = word(&fs::read(file.path()).expect("a file"), 32 / 8);
    assert_eq!(begin, host.to_ns(then + 1000));
}

/// Writes a record of a time: of four words, the third of which is that time, as of the last of a fold.
fn write_at(writer: &Writer, id: u16, time: u64) {
    let put = |at: *mut u8| {
        for (i, word) in [time, 0, time, 0].into_iter().enumerate() {
            // SAFETY: four words, as the length says.
            unsafe { at.cast::<u64>().add(i).write_unaligned(word.to_le()) };
        }
    };
    // SAFETY: `put` writes the 32 bytes behind the head that the length says.
    unsafe { writer.record_at(id, record::HEAD + 32, time, put) }.expect("room");
}

/// Times of the first record and of the last, of a thread that was quiet for more than a period.
fn times_of(write: impl FnOnce(&Writer, u64, u64)) -> [u64; 2] {
    let trace = TempDir::new().expect("a scratch folder");
    let mut program = Program::new(FIRST);
    let thread = Thread::start(&mut program, 1);
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let mut drainer = Drainer::new(program.session.path(), folder, vec!["api".into()]);
    let now = clock::ticks();
    let then = now - (3 << (record::TIME_BITS - 1));
    let start = ReferencePoint { tsc: then - 100, monotonic_ns: 1 << 40, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    // As if it had begun before that.
    drainer.discover();
    drainer.sources[0].ring.take(record::HEAD + size_of::<ThreadRecord>());
    drainer.pass(&host);
    write(&thread.writer, then, now);
    drainer.finish(&host);
    let file = fs::read_dir(trace.path()).expect("a folder").flatten().next().expect("a stream");
    let bytes = fs::read(file.path()).expect("a file");
    let of = |ns: u64| [then, then + 10, now].into_iter().find(|t| host.to_ns(*t) == ns).unwrap_or(ns);
    let (begin, mut end, mut rest) = (word(&bytes, 32 / 8), 0, &bytes[..]);
    while !rest.is_empty() {
        end = word(rest, 40 / 8);
        rest = &rest[word(rest, 48 / 8) as usize / 8..];
    }
    [begin, end].map(|ns| now - of(ns))
}

#[test]
fn calls_of_minutes_that_fail_have_their_times() {
    let length = 3 << (record::TIME_BITS - 1);
    let found = times_of(|writer, then, now| {
        write_at(writer, special::EARLIER, then);
        // A handler's record in between.
        write_at(writer, ID + 1, now - 10);
        write_at(writer, ID, then);
        write_at(writer, ID + 1, now);
    });
    assert_eq!(found[1], 0, "the handler's is the first");
    let found = times_of(|writer, then, now| {
        write_at(writer, special::EARLIER, then);
        write_at(writer, ID, then);
        write_at(writer, ID + 1, now);
    });
    assert_eq!(found, [length, 0]);
}

#[test]
fn polls_of_long_ago_have_their_times() {
    let found = times_of(|writer, then, now| {
        write_at(writer, ID + 2, then);
        write_at(writer, ID, now);
    });
    assert_eq!(found, [3 << (record::TIME_BITS - 1), 0]);
}

#[test]
fn a_time_of_the_future_is_not_believed() {
    let found = times_of(|writer, then, now| {
        write_at(writer, special::EARLIER, then + (100 << record::TIME_BITS));
        write_at(writer, ID + 2, now + (100 << record::TIME_BITS));
        write_at(writer, ID, now);
    });
    assert!(found[1] == 0, "{found:?}");
}

/// A command that ran at a time, in nanoseconds, and that nothing before another time can come any more, in ticks.
fn write_command(writer: &Writer, at: u64, oldest: u64) {
    fn put<T: Copy>(writer: &Writer, id: u16, body: T) {
        // SAFETY: `T` as a whole, as the length says; records of the ABI have no padding.
        let put = |at: *mut u8| unsafe { at.cast::<T>().write_unaligned(body) };
        let length = record::HEAD + size_of::<T>().next_multiple_of(8);
        // SAFETY: `put` writes what the length says.
        unsafe { writer.record(id, length, put) }.expect("room");
    }
    let command = CommandRecord {
        kind: 1,
        queue: 5,
        device: 7,
        queued: at,
        submitted: at,
        start: at,
        end: at + 10,
        flags: command_flag::HOST_CLOCK,
        ..CommandRecord::default()
    };
    put(writer, special::COMMAND, command);
    put(writer, special::PENDING, PendingRecord { oldest, ..PendingRecord::default() });
}

#[test]
fn commands_that_a_killed_drainer_had_not_put_in_order_are_counted() {
    let mut program = Program::new(LARGEST);
    // SAFETY: as in `Program::new`, and nobody else looks at it yet.
    let page = unsafe { &mut *program.control.cast_mut() };
    page.version = ABI_VERSION;
    page.magic.store(hetrace_ring::abi::CONTROL_MAGIC, Ordering::Release);
    let thread = Thread::start(&mut program, 1);
    let counts = |drainer: &Drainer| {
        (drainer.devices.values().map(Devices::waiting).sum(), drainer.losses().device_commands)
    };
    // One is in flight since `now`: of 20 commands those before it are written.
    let trace = TempDir::new().expect("a scratch folder");
    let (mut drainer, host) = drainer_of(&program, trace.path());
    let ticks = clock::ticks();
    let now = host.to_ns(ticks);
    (0..20).for_each(|i| write_command(&thread.writer, now - 7_000 + 1_000 * i, ticks));
    drainer.discover();
    drainer.pass(&host);
    // Killed between two looks, all that was taken may be lost.
    assert_eq!(page.commands_waiting.load(Ordering::Relaxed), 20);
    // Several looks: their calls may come later.
    (0..8).for_each(|_| drainer.flush(now, &host));
    let waiting = page.commands_waiting.load(Ordering::Relaxed);
    assert_eq!(counts(&drainer), (waiting as usize, 0));
    assert_eq!(waiting, 13);
    // As if it were killed: what it has in memory is not written.
    std::mem::forget(drainer);
    let other = TempDir::new().expect("a scratch folder");
    let (mut next, _) = drainer_of(&program, other.path());
    write_command(&thread.writer, now + 100_000, 0);
    next.finish(&host);
    assert_eq!(counts(&next), (0, u64::from(waiting)));
    assert_eq!(page.commands_waiting.load(Ordering::Relaxed), 0, "and it leaves none");
}

#[test]
fn what_is_known_of_a_process_stays_when_it_is_done_with() {
    let mut program = Program::new(FIRST);
    let thread = Thread::start(&mut program, 1);
    let trace = TempDir::new().expect("a scratch folder");
    let (mut drainer, host) = drainer_of(&program, trace.path());
    let ticks = clock::ticks();
    let now = host.to_ns(ticks);
    (0..2).for_each(|i| write_command(&thread.writer, now - 7_000 + 1_000 * i, ticks));
    drainer.discover();
    drainer.pass(&host);
    drainer.press(now, &host);
    let known = |drainer: &Drainer| {
        let clocks = drainer.device_clocks().expect("clocks").len();
        (clocks, drainer.losses().commands_without_call, drainer.processes().expect("processes").len())
    };
    let before = known(&drainer);
    assert_eq!((before.0, before.2, drainer.images.len()), (1, 1, 1));
    drainer.finish(&host);
    assert!(drainer.images.is_empty() && drainer.devices.is_empty());
    assert_eq!(known(&drainer), before);
    let accounts = drainer.accounts().expect("accounts");
    assert_eq!(accounts.iter().filter_map(|account| account.events).sum::<u64>(), drainer.written().0);
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2usize, 1..3 * FULL).prop_map(|(thread, records)| Step::Write(thread, records)),
        1 => (0..2usize).prop_map(Step::End),
        3 => Just(Step::Pass),
        1 => Just(Step::Flush),
    ]
}

fn kill() -> impl Strategy<Value = Kill> {
    prop_oneof![
        8 => Just(Kill::Not),
        1 => Just(Kill::Between),
        1 => Just(Kill::Written),
        1 => Just(Kill::Half),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the order: one stream a thread, all that was written, in order.
    #[test]
    fn streams_follow_their_threads(steps in proptest::collection::vec(step(), 1..40)) {
        play(&steps, LARGEST);
    }

    /// However often the drainer is killed.
    #[test]
    fn killed_drainers_lose_nothing(
        steps in proptest::collection::vec((step(), kill()), 1..40)
    ) {
        play_with_kills(&steps);
    }
}
