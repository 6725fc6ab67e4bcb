//! Signal handlers that record between any two instructions of the writer.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod stepping;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_ring::abi::{
    ADDED_UP, CONTROL_BYTES, Control, PAGE, RING_MAGIC, RingHeader, SUMS, ring_bytes, special, state,
};
use hetrace_ring::reader::Ring;
use hetrace_ring::writer::{FOLD_WORDS, Writer};
use hetrace_ring::{map_file, record};
use stepping::{EVERY, How, Stepping, some_of};

/// Ids of the thread's records, of its runs of polls, and of handlers' records.
const MAIN: u16 = 20;
const FOLD: u16 = 21;
const HANDLER: u16 = 30;
/// Of calls that are added up.
const SUM: u16 = 34;
/// Records of handlers in one run. If one came at each step for ever, what it interrupts would
/// publish for ever.
const MOST: u64 = 1500;

/// What handlers use.
static WRITER: AtomicPtr<Writer> = AtomicPtr::new(std::ptr::null_mut());
/// Handlers add a call up instead of recording.
static ADDS: AtomicBool = AtomicBool::new(false);
static NUMBER: AtomicU64 = AtomicU64::new(0);
static KEPT: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

const RELAXED: Ordering = Ordering::Relaxed;

/// Handlers record by this writer from now on.
fn stepping(writer: &Writer, how: How) -> Stepping {
    let stepping = Stepping::new(how, write_as_handler);
    WRITER.store(std::ptr::from_ref(writer).cast_mut(), RELAXED);
    for word in [&NUMBER, &KEPT, &LOST] {
        word.store(0, RELAXED);
    }
    stepping
}

/// Makes a record whose body is the number of the attempt.
fn write_as_handler() {
    if NUMBER.load(RELAXED) == MOST {
        return;
    }
    let number = NUMBER.fetch_add(1, RELAXED);
    // SAFETY: the writer of the world that is being tested, which lives until `Stepping` is dropped.
    let writer = unsafe { &*WRITER.load(RELAXED) };
    // SAFETY: eight bytes, as the length says.
    let put = |at: *mut u8| unsafe { at.cast::<u64>().write_unaligned(number.to_le()) };
    if ADDS.load(RELAXED) {
        assert!(writer.add_up(SUM, 1, 2), "there is a place");
        return;
    }
    // SAFETY: eight bytes, as the length says.
    let done = unsafe { writer.record(HANDLER, record::HEAD + 8, put) };
    (if done.is_some() { &KEPT } else { &LOST }).fetch_add(1, RELAXED);
}

/// A ring, its reader and its writer.
struct World {
    reader: Ring,
    writer: Writer,
    control: *const Control,
    base: *mut u8,
    /// Where the writer goes on when this one is full.
    larger: Option<Box<World>>,
    /// What was lost before.
    lost_before: u64,
}

impl World {
    fn new(data: usize) -> World {
        let open = |size: usize| {
            let name = format!("hetrace-steps-{}-{:?}", std::process::id(), std::thread::current().id());
            let path = std::env::temp_dir().join(name);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
            let file = file.expect("a temporary file");
            std::fs::remove_file(&path).expect("just made");
            file.set_len(size as u64).expect("room");
            file
        };
        let length = ring_bytes(data as u64) as usize;
        let file = open(length);
        let base = map_file(&file, length, true).expect("mapped").leak();
        // SAFETY: a fresh file is zeros, which are a valid header, and nobody else has it yet.
        unsafe {
            (&raw mut (*base.cast::<RingHeader>()).data_bytes).write(data as u64);
            (*base.cast::<RingHeader>()).magic.store(RING_MAGIC, Ordering::Release);
        }
        let control = map_file(&open(CONTROL_BYTES), CONTROL_BYTES, true).expect("mapped").leak();
        let control: *const Control = control.cast();
        // SAFETY: a mapping of zeros, which is never unmapped.
        unsafe { (*control).drainer_alive.store(1, RELAXED) };
        let reader = Ring::open(&file, 0, data as u64).expect("a ring");
        World { reader, writer: Writer::new(), control, base, larger: None, lost_before: 0 }
    }

    /// The same ring, and a writer that knows nothing yet.
    fn renew(&mut self) {
        self.read();
        self.lost_before = self.reader.header().lost.load(RELAXED);
        self.reader.header().state.free();
        self.writer = Writer::new();
        // SAFETY: both mappings were leaked, and this is the only writer.
        unsafe { self.writer.attach(self.base, data_of(self.base), self.control, std::ptr::null()) };
        if let Some(larger) = &mut self.larger {
            larger.renew();
            self.writer.extra.store(larger.base.cast(), RELAXED);
            self.writer.set_grow(grow);
        }
    }

    fn write(&self, body: u64) -> bool {
        // SAFETY: eight bytes, as the length says.
        let put = |at: *mut u8| unsafe { at.cast::<u64>().write_unaligned(body.to_le()) };
        // SAFETY: eight bytes, as the length says.
        unsafe { self.writer.record(MAIN, record::HEAD + 8, put) }.is_some()
    }

    /// All records that are published: id and the first word of the body.
    fn read(&self) -> Vec<(u16, u64)> {
        let mut out = Vec::new();
        loop {
            let mut bytes = self.reader.published(usize::MAX);
            let all = bytes.len();
            if all == 0 {
                break;
            }
            while let Some((head, rest)) = bytes.split_at_checked(record::HEAD) {
                let head = u64::from_le_bytes(head.try_into().expect("eight"));
                let length = record::length(head).checked_sub(record::HEAD).expect("a whole record");
                let (body, rest) = rest.split_at_checked(length).expect("a whole record");
                let word = body.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
                out.push((record::id(head), word));
                bytes = rest;
            }
            self.reader.take(all);
            self.reader.release();
        }
        out.extend(self.larger.iter().flat_map(|larger| larger.read()));
        out
    }

    fn lost(&self) -> u64 {
        let here = self.reader.header().lost.load(RELAXED) - self.lost_before;
        here + self.larger.as_ref().map_or(0, |larger| larger.lost())
    }
}

/// Data bytes of a ring that was made here.
fn data_of(base: *mut u8) -> u64 {
    // SAFETY: the start of a mapping that is leaked, with a header.
    unsafe { (*base.cast::<RingHeader>()).data_bytes }
}

/// For [`Writer::set_grow`]: the larger ring is in `extra`.
unsafe fn grow(writer: &Writer) -> bool {
    let base = writer.extra.load(RELAXED).cast::<u8>();
    if writer.next().is_none() {
        if base.is_null() {
            return false;
        }
        // SAFETY: the start of a mapping that is leaked; no other writer uses the ring.
        unsafe { writer.set_next(base, data_of(base)) };
    }
    writer.extra.store(std::ptr::null_mut(), RELAXED);
    let Some(next) = writer.next() else { return false };
    next.state.begin();
    // SAFETY: the ring of `set_next`, above or before a handler jumped.
    unsafe { writer.move_to(std::ptr::from_ref(next).cast_mut().cast(), next.data_bytes) };
    true
}

/// An operation of the writer, and what it needs before.
struct Operation {
    name: &'static str,
    /// Prepares a ring, and says how many records and polls it made.
    before: fn(&World) -> (u64, u64),
    operation: fn(&World),
    /// Records and polls that the operation makes.
    makes: (u64, u64),
}

const BIG: usize = 64 * PAGE;
const KEY: [u64; FOLD_WORDS] = [3; FOLD_WORDS];
const KNOWN: usize = FOLD_WORDS - 1;

/// A handler that comes while the thread changes rings finds no room.
const MOVES: &str = "a record that moves to a larger ring";

/// Nobody has looked yet how much room there is, so handlers' records may find none.
const FIRST: &str = "a thread's first record";

fn one_record(world: &World) -> (u64, u64) {
    assert!(world.write(6));
    (1, 0)
}

fn write_one(world: &World) {
    world.write(7);
}

/// A poll was recorded, and twice more the same.
fn a_run(world: &World) -> (u64, u64) {
    world.write(6);
    world.writer.remember_poll(FOLD, &KEY);
    assert!(world.writer.fold(&KEY, KNOWN, 100, 110) && world.writer.fold(&KEY, KNOWN, 120, 150));
    (1, 2)
}

const OPERATIONS: &[Operation] = &[
    Operation { name: "a record that finds room", before: one_record, operation: write_one, makes: (1, 0) },
    Operation { name: FIRST, before: |_| (0, 0), operation: write_one, makes: (1, 0) },
    Operation {
        name: "a record after the tracer's own calls",
        before: |world| {
            world.writer.enter();
            world.writer.leave();
            one_record(world)
        },
        operation: |world| {
            world.writer.leave();
            world.write(7);
        },
        makes: (1, 0),
    },
    Operation {
        name: "a record that wakes the drainer",
        before: |world| {
            (0..BIG as u64 / 64 + 1).for_each(|i| assert!(world.write(i)));
            world.writer.enter();
            world.writer.leave();
            (BIG as u64 / 64 + 1, 0)
        },
        operation: write_one,
        makes: (1, 0),
    },
    Operation {
        name: MOVES,
        before: |world| {
            // So much is left to handlers.
            let records = (BIG - BIG / 4) as u64 / 16;
            (0..records).for_each(|i| assert!(world.write(i)));
            (records, 0)
        },
        operation: write_one,
        makes: (1, 0),
    },
    Operation { name: "a record that ends a run", before: a_run, operation: write_one, makes: (1, 0) },
    Operation {
        name: "the first poll of a run",
        before: |world| {
            world.write(6);
            world.writer.remember_poll(FOLD, &KEY);
            (1, 0)
        },
        operation: poll,
        makes: (0, 1),
    },
    Operation { name: "a poll that goes on with a run", before: a_run, operation: poll, makes: (0, 1) },
    Operation {
        name: "a thread's end",
        before: a_run,
        operation: |world| world.writer.flush(),
        makes: (0, 0),
    },
    Operation {
        name: "a record that makes and ends runs",
        before: one_record,
        operation: |world| {
            world.write(7);
            world.writer.remember_poll(FOLD, &KEY);
            poll(world);
            poll(world);
            world.write(8);
        },
        makes: (2, 2),
    },
];

/// As `hetrace_interpose::poll`: what can't be folded is recorded.
fn poll(world: &World) {
    let folds = world.writer.continues_poll(FOLD, &KEY, KNOWN) && world.writer.fold(&KEY, KNOWN, 160, 170);
    if !folds {
        // Stands for one poll.
        // SAFETY: a word of count and three more, as the length says.
        let put = |at: *mut u8| unsafe {
            for (i, word) in [1u64, 160, 170, 10].into_iter().enumerate() {
                at.cast::<u64>().add(i).write_unaligned(word.to_le());
            }
        };
        // SAFETY: 32 bytes, as the length says.
        assert!(unsafe { world.writer.record(FOLD, record::HEAD + 32, put) }.is_some());
    }
}

/// Checks that all is there that should be. Polls may be missing that a handler came into.
fn check(what: &str, found: &[(u16, u64)], main: u64, polls: u64, missing: u64) {
    let of = |id: u16| found.iter().filter(move |(i, _)| *i == id).map(|(_, word)| *word);
    assert_eq!(of(MAIN).count() as u64, main, "{what}: the thread's records");
    let folded: u64 = of(FOLD).sum();
    assert!(folded <= polls && folded + missing >= polls, "{what}: {folded} of {polls} polls");
    let handlers: BTreeSet<u64> = of(HANDLER).collect();
    assert_eq!(handlers.len(), of(HANDLER).count(), "{what}: a handler's record twice");
    assert_eq!(handlers.len() as u64, KEPT.load(RELAXED), "{what}: handlers' records");
    assert!(handlers.iter().all(|n| *n < NUMBER.load(RELAXED)), "{what}: what handlers wrote");
    let known = [MAIN, FOLD, HANDLER];
    assert!(found.iter().all(|(id, _)| known.contains(id)), "{what}: a record of nobody");
}

/// At how many steps handlers could come, and how many records they made.
struct Tried {
    steps: u64,
    kept: u64,
}

/// Does an operation with handlers, and looks at what was recorded.
fn try_at(world: &mut World, operation: &Operation, at: u64, how: How) -> Tried {
    world.renew();
    let world = &*world;
    let stepping = stepping(&world.writer, how);
    let (records, polls) = (operation.before)(world);
    let steps = stepping.run(at, || (operation.operation)(world));
    let what = format!("{} ({at} of {steps}, {how:?})", operation.name);
    assert!(!world.writer.is_busy(), "{what}: still busy");
    // What comes next is recorded as ever, and ends a run.
    assert!(world.write(9), "{what}: afterwards");
    let found = world.read();
    let (made, polled) = operation.makes;
    let missing = if polled > 0 { polled.min(NUMBER.load(RELAXED)) } else { 0 };
    check(&what, &found, records + made + 1, polls + polled, missing);
    assert_eq!(world.lost(), LOST.load(RELAXED), "{what}: lost");
    assert!(LOST.load(RELAXED) == 0 || operation.may_lose(), "{what}: there was room for all");
    if operation.name == MOVES {
        let left = world.reader.header().state.get() == state::MOVED;
        assert!(left && world.writer.extra.load(RELAXED).is_null(), "{what}: the larger ring");
    }
    Tried { steps, kept: KEPT.load(RELAXED) }
}

/// At how many steps of it a handler can come.
fn steps_of(world: &mut World, operation: &Operation) -> u64 {
    try_at(world, operation, EVERY - 1, How::default()).steps
}

impl Operation {
    /// Whether handlers may find no room though there is some.
    fn may_lose(&self) -> bool {
        [FIRST, MOVES].contains(&self.name)
    }

    /// The rings for it.
    fn world(&self) -> World {
        let mut world = World::new(BIG);
        world.larger = (self.name == MOVES).then(|| Box::new(World::new(2 * BIG)));
        world
    }
}

#[test]
fn handlers_record_at_every_step() {
    for operation in OPERATIONS {
        let mut world = operation.world();
        for other_stack in [false, true] {
            let tried = try_at(&mut world, operation, EVERY, How { other_stack, ..How::default() });
            println!("{}: {} steps", operation.name, tried.steps);
            assert!(
                tried.steps > 5 && tried.kept >= tried.steps.min(MOST) / 2,
                "{}: {}",
                operation.name,
                tried.kept
            );
        }
    }
}

#[test]
fn a_handler_records_at_one_step_after_the_other() {
    for operation in OPERATIONS {
        let mut world = operation.world();
        for other_stack in [false, true] {
            let how = How { other_stack, ..How::default() };
            for at in some_of(steps_of(&mut world, operation)).step_by(1 + 3 * usize::from(other_stack)) {
                let kept = try_at(&mut world, operation, at, how).kept;
                assert!(kept == 1 || operation.may_lose(), "{} at {at}", operation.name);
            }
        }
    }
}

#[test]
fn handlers_that_are_interrupted_at_every_step() {
    let how = How { deeper: true, ..How::default() };
    for operation in OPERATIONS {
        let mut world = operation.world();
        for at in some_of(steps_of(&mut world, operation)).step_by(16) {
            let tried = try_at(&mut world, operation, at, how);
            let enough = tried.kept > 20 || operation.may_lose();
            assert!(enough, "{}: {} records", operation.name, tried.kept);
        }
    }
}

/// What the handler jumped out of is whole, or given up and counted; nothing else is lost.
#[test]
fn a_handler_jumps_away_at_one_step_after_the_other() {
    for operation in OPERATIONS {
        let mut world = operation.world();
        for other_stack in [false, true] {
            let how = How { other_stack, jumps: true, ..How::default() };
            for at in some_of(steps_of(&mut world, operation)).step_by(1 + 3 * usize::from(other_stack)) {
                jump_at(&mut world, operation, at, how);
            }
        }
    }
}

fn jump_at(world: &mut World, operation: &Operation, at: u64, how: How) {
    world.renew();
    let world = &*world;
    let stepping = stepping(&world.writer, how);
    let (records, _) = (operation.before)(world);
    stepping.run(at, || (operation.operation)(world));
    assert!(world.write(9), "{} at {at}: afterwards", operation.name);
    let found = world.read();
    let count = |id: u16| found.iter().filter(|(i, _)| *i == id).count() as u64;
    let what = format!("{} ({at}, {how:?}): {found:?}", operation.name);
    assert!(!world.writer.is_busy() && world.reader.unpublished() == 0, "{what}: all is published");
    if let Some(larger) = &world.larger {
        assert_eq!(world.reader.header().state.get(), state::MOVED, "{what}: the ring is left");
        assert!(
            larger.base.cast()
                == world.writer.header().map_or(std::ptr::null(), std::ptr::from_ref).cast_mut(),
            "{what}"
        );
        assert!(world.writer.next().is_none(), "{what}: it has moved");
    }
    assert_eq!(found.iter().rfind(|(id, _)| *id == MAIN), Some(&(MAIN, 9)), "{what}: the next record");
    assert_eq!(count(HANDLER), KEPT.load(RELAXED), "{what}: handlers' records");
    let known = [MAIN, FOLD, HANDLER, special::ABANDONED];
    assert!(found.iter().all(|(id, _)| known.contains(id)), "{what}: a record of nobody");
    let (made, _) = operation.makes;
    assert!((records + 1..=records + made + 1).contains(&count(MAIN)), "{what}: the thread's records");
    // The one that was jumped out of; a handler's that found no room.
    assert!(world.lost() <= 1 + LOST.load(RELAXED), "{what}: {} lost", world.lost());
    assert!(count(special::ABANDONED) <= world.lost(), "{what}: what was given up is counted");
}

/// Handlers' calls are added up, too: to the sums of the same function, while these are made or become a record.
#[test]
fn what_handlers_add_up_at_any_step_is_not_lost() {
    let mut world = World::new(BIG);
    let steps = add_up_at(&mut world, EVERY - 1, 0);
    assert!(steps > 50, "{steps} steps");
    for at in some_of(steps) {
        add_up_at(&mut world, at, 1);
    }
}

/// Adds calls up with a handler at a step of it. Returns at how many it could come.
fn add_up_at(world: &mut World, at: u64, handlers: u64) -> u64 {
    world.renew();
    let stepping = stepping(&world.writer, How::default());
    ADDS.store(true, RELAXED);
    let steps = stepping.run(at, || {
        for _ in 0..3 {
            world.writer.add_up(SUM, 10, 20);
        }
        world.writer.flush_sums();
        world.writer.add_up(SUM, 30, 40);
    });
    ADDS.store(false, RELAXED);
    let open: u64 = world.reader.open_folds().map(|run| run.words[0] & !ADDED_UP).sum();
    let found = world.read();
    let recorded: u64 = found.iter().filter(|(id, _)| *id == SUM).map(|(_, word)| word & !ADDED_UP).sum();
    assert_eq!(recorded + open, 4 + handlers, "{at} of {steps}: {found:?}");
    assert!(found.iter().all(|(id, word)| *id == SUM && word & ADDED_UP != 0), "{found:?}");
    assert_eq!((NUMBER.load(RELAXED), world.lost()), (handlers, 0), "{at} of {steps}");
    steps
}

/// While the thread goes to another ring, too.
#[test]
fn what_handlers_add_up_at_any_step_of_a_move_is_not_lost() {
    let (mut world, mut larger) = (World::new(BIG), World::new(2 * BIG));
    let steps = move_at(&mut world, &mut larger, EVERY - 1, 0);
    assert!(steps > 50, "{steps} steps");
    for at in some_of(steps) {
        move_at(&mut world, &mut larger, at, 1);
    }
}

/// Moves to another ring with a handler at a step of it. Returns at how many it could come.
fn move_at(world: &mut World, larger: &mut World, at: u64, handlers: u64) -> u64 {
    larger.renew();
    world.renew();
    for _ in 0..3 {
        world.writer.add_up(SUM, 10, 20);
    }
    let stepping = stepping(&world.writer, How::default());
    ADDS.store(true, RELAXED);
    // SAFETY: a mapping that is leaked; the other writer is not used meanwhile.
    let steps = stepping.run(at, || unsafe { world.writer.move_to(larger.base, data_of(larger.base)) });
    ADDS.store(false, RELAXED);
    let sums: Vec<[u64; 5]> = larger.reader.open_folds().map(|run| run.words).collect();
    assert_eq!(sums.iter().map(|words| words[0] & !ADDED_UP).sum::<u64>(), 3 + handlers, "{at} of {steps}");
    // A handler's call is from 1 to 2.
    assert!([1, 10].contains(&sums[0][1]) && [2, 20].contains(&sums[0][2]), "{at} of {steps}: {sums:?}");
    assert_eq!(sums[0][3], 30 + handlers, "{at} of {steps}");
    assert_eq!(world.reader.open_folds().count(), 0, "{at} of {steps}");
    assert_eq!(NUMBER.load(RELAXED), handlers, "{at} of {steps}");
    steps
}

/// A call that is only counted has the time of those that were timed; the first of each record is always timed.
#[test]
fn calls_that_are_only_counted_come_into_the_record() {
    let mut world = World::new(BIG);
    world.renew();
    assert!(!world.writer.count_up(SUM), "of none of them a time is known");
    assert!(world.writer.add_up(SUM, 100, 140) && world.writer.add_up(SUM, 200, 260));
    for _ in 0..6 {
        assert!(world.writer.count_up(SUM));
    }
    // Two of eight, of 40 and 60: 8 × √(200/2 × 6/8).
    let open = |world: &World| world.reader.open_folds().map(|run| run.words).collect::<Vec<_>>();
    assert_eq!(open(&world), [[8 | ADDED_UP, 100, 260, 400, 69]]);
    world.writer.count_down(SUM);
    assert_eq!(open(&world)[0][0], 7 | ADDED_UP, "one of them was recorded after all");
    world.writer.flush_sums();
    assert!(!world.writer.count_up(SUM), "of those that come next no time is known");
    world.writer.count_down(SUM);
    assert_eq!((open(&world).len(), world.read()), (0, vec![(SUM, 7 | ADDED_UP)]));
}

/// Where there is no room for a record, what was added up stays; it is lost with the thread.
#[test]
fn sums_without_room_wait_for_it() {
    let mut world = World::new(hetrace_ring::abi::PAGE);
    world.renew();
    assert!(world.writer.add_up(SUM, 10, 20));
    // Within the tracer's own work there is none.
    world.writer.enter();
    world.writer.flush_sums();
    world.writer.leave();
    while world.write(1) {}
    world.writer.flush_sums();
    let sums = |world: &World| world.reader.open_folds().map(|run| run.words[0]).collect::<Vec<_>>();
    assert_eq!(sums(&world), [1 | ADDED_UP]);
    assert_eq!(world.reader.header().lost_calls.load(RELAXED), 0);
    world.read();
    world.writer.flush_sums();
    assert_eq!(world.read(), [(SUM, 1 | ADDED_UP)]);
    assert!(world.writer.add_up(SUM, 30, 40));
    while world.write(1) {}
    world.writer.flush();
    assert_eq!(world.reader.header().lost_calls.load(RELAXED), 1);
}

/// A ring has places for so many functions; others are recorded one by one.
#[test]
fn places_for_sums_are_few_and_move_with_the_thread() {
    let mut world = World::new(BIG);
    world.renew();
    let larger = World::new(2 * BIG);
    let id = |function: usize| record::FIRST_CALL_ID + record::IDS_PER_CALL * function as u16 + 2;
    let added = (0..SUMS + 4).filter(|function| world.writer.add_up(id(function * 7), 100, 103)).count();
    assert_eq!(added, SUMS);
    assert!(world.writer.add_up(id(0), 200, 210));
    // SAFETY: a mapping that is leaked; no other writer uses the ring.
    unsafe { world.writer.move_to(larger.base, data_of(larger.base)) };
    assert_eq!(world.reader.open_folds().count(), 0);
    let mut moved: Vec<(u16, [u64; 5])> = larger.reader.open_folds().map(|run| (run.id, run.words)).collect();
    moved.sort_unstable();
    assert_eq!(moved.len(), SUMS);
    assert_eq!(moved[0], (id(0), [2 | ADDED_UP, 100, 210, 13, 0]));
    assert_eq!(moved[1], (id(7), [1 | ADDED_UP, 100, 103, 3, 0]));
}
