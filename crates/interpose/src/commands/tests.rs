//! An API that ends commands when a test says so, a report that keeps what it gets, and threads that
//! take blocks without a session.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hetrace_ring::abi::{CommandRecord, PendingRecord};

use super::block::{Block, Outcome};
use super::report::{Report, record};
use super::store::{Put, Store, Thread};
use super::{Backend, Depth, Enqueued, Execution, Left, Progress, Recording, Times};

const QUEUE: u64 = 0x1000;

fn command(cause: u64) -> Enqueued {
    Enqueued {
        cause_tid: 7,
        dimensions: 1,
        cause,
        returned: cause + 1,
        queue: QUEUE,
        device: 1,
        geometry: [[0; 3], [cause, 1, 1], [1; 3]],
        in_order: true,
        ..Enqueued::of(1)
    }
}

/// Commands are ended by what `ends` says of their token.
struct Api<'e> {
    ends: Box<dyn FnMut(u64) -> bool + 'e>,
    polls: u64,
    released: BTreeSet<u64>,
}

impl<'e> Api<'e> {
    fn new(ends: impl FnMut(u64) -> bool + 'e) -> Self {
        Api { ends: Box::new(ends), polls: 0, released: BTreeSet::new() }
    }
}

impl Backend for Api<'_> {
    type Token = u64;

    fn poll(&mut self, token: u64, _: &Enqueued) -> Progress {
        self.polls += 1;
        let times = Times { start: token, end: token + 1, ..Times::default() };
        if (self.ends)(token) { Progress::Ended(times) } else { Progress::Waits }
    }

    fn release(&mut self, token: u64) {
        assert!(self.released.insert(token), "token {token} was released before");
    }
}

#[derive(Default)]
struct Kept {
    commands: Vec<CommandRecord>,
    counted: u64,
    pendings: Vec<PendingRecord>,
    /// Commands that find room; `None`: all.
    room: Option<usize>,
}

impl Report for Kept {
    fn room(&mut self) -> usize {
        // One at a time if it is short, else many.
        self.room.map_or(1 << 14, |room| usize::from(self.commands.len() < room))
    }

    fn command(&mut self, command: &Enqueued, times: &Times, _: &CStr) -> bool {
        self.commands.push(record(command, times));
        true
    }

    fn counted(&mut self, commands: u64) {
        self.counted += commands;
    }

    fn pending(&mut self, pending: &PendingRecord) -> bool {
        self.pendings.push(*pending);
        true
    }
}

impl Kept {
    fn starts(&self) -> Vec<u64> {
        self.commands.iter().map(|c| c.start).collect()
    }
}

/// A store of its own, with room for so many.
fn store(limit: u32) -> &'static Store<u64> {
    let store: &Store<u64> = Box::leak(Box::new(Store::new()));
    store.set_limit(limit);
    store
}

/// What a thread gets with its first command.
fn thread(store: &Store<u64>) -> (&'static Block<()>, Thread<u64, ()>) {
    let block = store.claim(7).expect("memory for a block");
    (block, store.part(block, None).expect("a state"))
}

fn collect(store: &Store<u64>, depth: Depth, api: &mut Api<'_>, kept: &mut Kept) -> (u32, Outcome) {
    store.collect_with(depth, api, kept)
}

#[test]
fn the_store_grows_and_gives_its_places_again() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    for round in 0..3u64 {
        let first = round * 60_000 + 1;
        let all: Vec<u64> = (first..first + 60_000).collect();
        for token in &all {
            assert_ne!(thread.put(*token, command(*token)), Put::Full);
        }
        let (mut api, mut kept) = (Api::new(|_| false), Kept::default());
        let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
        assert_eq!((api.polls, outcome.left), (1, Left { oldest: first }), "one queue: its first is asked");
        let mut api = Api::new(|_| true);
        let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
        assert_eq!(kept.starts(), all);
        assert_eq!((outcome.collected, outcome.left, kept.counted), (60_000, Left::default(), 60_000));
        assert_eq!(api.released.len(), 60_000);
        assert!(!store.any());
    }
    let made = store.nodes().expect("nodes").made();
    assert!(made <= 60_000 + 2 * 64, "{made} places for 60,000 commands at a time");
}

#[test]
fn a_thread_that_waits_over_and_over_looks_now_and_then() {
    let store = store(1 << 10);
    let (block, thread) = thread(store);
    let (mut now, mut token) = (1 << 40, 0);
    let mut iteration = |after: u64, count: u64| {
        now += after;
        for _ in 0..count {
            token += 1;
            assert_ne!(thread.put(token, command(token)), Put::Full);
        }
        let looks = block.looks_after_wait(now);
        if looks {
            let outcome = collect(store, Depth::All, &mut Api::new(|_| true), &mut Kept::default()).1;
            assert!(outcome.collected <= 32, "{outcome:?}");
            block.looks(now);
        }
        looks
    };
    // At first at each wait; then when there are as many commands as a thread looks for while it enqueues,
    assert_eq!((0..64).filter(|_| iteration(1000, 2)).count(), 64);
    assert_eq!((0..1600).filter(|_| iteration(1000, 2)).count(), 100);
    // or after a while.
    assert_eq!((0..1024).filter(|_| iteration(1 << 17, 1)).count(), 1024 / 8);
    // After a pause it does so at once, and at each wait for a while.
    assert!(iteration(1 << 20, 1));
    assert_eq!((0..63).filter(|_| iteration(1000, 1)).count(), 63);
}

#[test]
fn beyond_the_bound_commands_are_counted_and_nothing_else() {
    let store = store(100);
    let (_, first) = thread(store);
    let puts: Vec<Put> = (1..=300).map(|n| first.put(n, command(n))).collect();
    assert_eq!(puts.iter().filter(|p| **p != Put::Full).count(), 100);
    assert!(!first.has_room());
    puts.iter().filter(|p| **p == Put::Full).for_each(|_| store.lose(1));
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
    store.say(outcome, outcome.left, false, &mut kept);
    assert_eq!(kept.starts(), (1..=100).collect::<Vec<_>>());
    assert_eq!((kept.pendings[0].lost, kept.pendings[0].oldest), (200, 0));
    store.say(Outcome::default(), Left::default(), true, &mut kept);
    assert_eq!(kept.pendings[1].lost, 0, "said once");
    // What one thread does not need any more another can have.
    let (_, second) = thread(store);
    assert!((301..=364).all(|n| second.put(n, command(n)) != Put::Full));
}

#[test]
fn what_was_lost_is_said_again_if_it_could_not_be_said() {
    struct Deaf;
    impl Report for Deaf {
        fn room(&mut self) -> usize {
            1
        }
        fn command(&mut self, _: &Enqueued, _: &Times, _: &CStr) -> bool {
            false
        }
        fn counted(&mut self, _: u64) {}
        fn pending(&mut self, _: &PendingRecord) -> bool {
            false
        }
    }
    let store = store(100);
    store.lose(1);
    let (_, thread) = thread(store);
    thread.put(1, command(1));
    let outcome = store.collect_with(Depth::All, &mut Api::new(|_| true), &mut Deaf).1;
    assert_eq!((outcome.collected, outcome.lost), (0, 1), "its record found no room at the last moment");
    store.say(outcome, outcome.left, false, &mut Deaf);
    let mut kept = Kept::default();
    store.say(Outcome::default(), Left::default(), false, &mut kept);
    assert_eq!(kept.pendings[0].lost, 2);
}

#[test]
fn blocks_of_ended_threads_are_used_again_and_not_looked_at() {
    let store = store(1 << 20);
    // One after the other: each finds the block of the one before, with its command in flight.
    for n in 1..=5_000 {
        let (block, thread) = thread(store);
        thread.put(n, command(n));
        block.extra.release();
    }
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 1, "blocks looked at");
    assert_eq!(kept.starts(), (1..=5_000).collect::<Vec<_>>());
    // 3,000 at a time.
    let blocks: Vec<_> = (1..=3_000u64)
        .map(|n| {
            let (block, thread) = thread(store);
            thread.put(10_000 + n, command(n));
            block
        })
        .collect();
    blocks.iter().for_each(|b| b.extra.release());
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 3_000);
    assert_eq!(kept.commands.len(), 8_000);
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 0, "all have ended, and are empty");
    // One lives among all these.
    let (_, thread) = thread(store);
    thread.put(20_001, command(1));
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 1);
    assert_eq!(kept.commands.len(), 8_001);
}

#[test]
fn a_thread_that_has_looked_is_not_looked_at_by_others() {
    let store = store(1 << 20);
    let (block, thread) = thread(store);
    thread.put(1, command(1));
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 1);
    store.looked(block);
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 0);
    // It enqueues again, and is found again.
    let again = store.part(block, None).expect("a state");
    again.put(2, command(2));
    assert_eq!(collect(store, Depth::All, &mut api, &mut kept).0, 1);
    assert_eq!(kept.starts(), [1, 2]);
}

#[test]
fn a_forked_child_finds_nothing_and_has_its_own() {
    let store = store(1 << 20);
    let (_, parents) = thread(store);
    (1..=1_000).for_each(|n| _ = parents.put(n, command(n)));
    // SAFETY: the child calls nothing but what is tested here, and ends itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
        let mut good = !store.any() && collect(store, Depth::Last, &mut api, &mut kept).0 == 0;
        // What was interrupted goes nowhere, and does no harm.
        parents.put(5, command(5));
        good &= collect(store, Depth::Last, &mut api, &mut kept).0 == 0;
        let (_, own) = thread(store);
        (1..=100).for_each(|n| _ = own.put(n, command(n)));
        collect(store, Depth::Last, &mut api, &mut kept);
        good &= kept.starts() == (1..=100).collect::<Vec<_>>();
        // SAFETY: ends the child.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the child made above, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child found what it should");
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    collect(store, Depth::All, &mut api, &mut kept);
    assert_eq!(kept.commands.len(), 1_000);
}

#[test]
fn a_second_collector_leaves_the_block_to_the_first() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    (1..=10).for_each(|n| _ = thread.put(n, command(n)));
    let mut inner = Vec::new();
    let (mut api, mut kept) = (
        Api::new(|token| {
            // As a driver that calls back while it is asked.
            let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
            let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
            inner.push((token, api.polls, outcome.left));
            // And a command that is enqueued meanwhile.
            assert_ne!(thread.put(100 + token, command(token)), Put::Full);
            true
        }),
        Kept::default(),
    );
    collect(store, Depth::All, &mut api, &mut kept);
    drop(api);
    assert_eq!(kept.starts(), (1..=10).collect::<Vec<_>>());
    assert!(inner.iter().all(|(_, polls, left)| *polls == 0 && *left == Left::unknown()), "{inner:?}");
    collect(store, Depth::All, &mut Api::new(|_| true), &mut kept);
    assert_eq!(kept.commands.len(), 20);
}

#[test]
fn queues_do_not_wait_for_each_other() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    // 500 queues with 20 commands each; those of queue 0 never end.
    for n in 0..10_000u64 {
        thread.put(n + 1, Enqueued { queue: n % 500, ..command(n + 1) });
    }
    let ends = |token: u64| !(token - 1).is_multiple_of(500);
    let (mut api, mut kept) = (Api::new(ends), Kept::default());
    let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
    assert_eq!((kept.commands.len(), outcome.left.oldest), (9_980, 1));
    assert_eq!(api.polls, 9_981, "each once, and the first of the queue that waits");
    let mut by_queue: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    kept.commands.iter().for_each(|c| by_queue.entry(c.queue).or_default().push(c.start));
    assert!(by_queue.values().all(|starts| starts.is_sorted() && starts.len() == 20));
    // A short look asks some queues, and others the next time.
    let store = self::store(1 << 20);
    let (_, thread) = self::thread(store);
    (0..500u64).for_each(|n| _ = thread.put(n + 1, Enqueued { queue: n, ..command(n + 1) }));
    let mut asked = BTreeSet::new();
    for _ in 0..32 {
        let mut waited = 0;
        let mut api = Api::new(|token| {
            waited += u32::from(asked.insert(token));
            false
        });
        collect(store, Depth::Some, &mut api, &mut Kept::default());
        drop(api);
        assert!(waited < 100, "{waited} asked in a short look");
    }
    assert_eq!(asked.len(), 500, "all had their turn");
}

#[test]
fn commands_without_order_are_found_behind_many_that_wait() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    let unordered = |n| Enqueued { in_order: false, ..command(n) };
    (1..=10_000).for_each(|n| _ = thread.put(n, unordered(n)));
    // Only the last thousand ends; each look asks a few.
    let (mut kept, mut looks, mut polls) = (Kept::default(), 0, 0);
    while kept.commands.len() < 1_000 {
        let mut api = Api::new(|token| token > 9_000);
        let (_, outcome) = collect(store, Depth::All, &mut api, &mut kept);
        assert_eq!(outcome.left.oldest, 1);
        looks += 1;
        polls += api.polls;
        assert!(looks < 40, "some are never asked about");
    }
    assert!(polls <= 1_000 + looks * 2 * 512, "{polls} asked in {looks} looks");
    let mut starts = kept.starts();
    starts.sort_unstable();
    assert_eq!(starts, (9_001..=10_000).collect::<Vec<_>>());
    // At the end all are asked.
    let mut api = Api::new(|token| token % 2 == 0);
    collect(store, Depth::Last, &mut api, &mut kept);
    assert_eq!((api.polls, kept.commands.len()), (9_000, 5_500));
    collect(store, Depth::Last, &mut Api::new(|_| true), &mut kept);
    assert_eq!(kept.commands.len(), 10_000);
    assert!(!store.any());
}

#[test]
fn what_finds_no_room_in_the_ring_stays() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    (1..=100).for_each(|n| _ = thread.put(n, command(n)));
    let mut kept = Kept { room: Some(30), ..Kept::default() };
    let (_, outcome) = collect(store, Depth::All, &mut Api::new(|_| true), &mut kept);
    assert_eq!((kept.commands.len(), outcome.full, outcome.left.oldest), (30, true, 31));
    kept.room = None;
    collect(store, Depth::All, &mut Api::new(|_| true), &mut kept);
    assert_eq!(kept.starts(), (1..=100).collect::<Vec<_>>());
}

#[test]
fn it_is_time_to_look_after_some_commands_and_after_some_time() {
    let store = store(1 << 20);
    let (block, thread) = thread(store);
    let now = hetrace_ring::clock::ticks();
    block.looks(now);
    let due: Vec<u64> = (1..=40).filter(|n| thread.put(*n, command(now)) == Put::Due).collect();
    assert_eq!(due, (32..=40).collect::<Vec<_>>());
    block.looks(now);
    assert_eq!(thread.put(41, command(now + (1 << 20))), Put::Kept);
    assert_eq!(thread.put(42, command(now + (1 << 26))), Put::Due, "the second in a long time");
}

/// A list of commands whose times a place in memory has, which each execution overwrites: so a
/// token names the execution, too.
#[test]
fn what_is_recorded_once_is_in_flight_each_time_it_is_executed() {
    let store = store(1 << 20);
    let (_, thread) = thread(store);
    let mut list = Recording::new();
    for n in 1..=200 {
        assert!(list.append(store, n, Enqueued { bytes: n, ..command(0) }));
    }
    assert!(!store.any() && list.len() == 200, "nothing is in flight when it is recorded");
    let (mut api, mut kept) = (Api::new(|_| true), Kept::default());
    let run = |list: &Recording, run: u64, in_order| {
        let execution = Execution { cause: run * 1_000, returned: run * 1_000 + 1, queue: 9, in_order };
        // The place of the list's third command can't be read this time.
        let token = |recorded| (run != 2 || recorded != 3).then_some(run << 32 | recorded);
        list.execute(store, &thread, &execution, token);
    };
    run(&list, 1, true);
    run(&list, 2, false);
    collect(store, Depth::All, &mut api, &mut kept);
    let of = |run: u64| kept.commands.iter().filter(|c| c.cause == run * 1_000).collect::<Vec<_>>();
    assert_eq!((of(1).len(), of(2).len()), (200, 199));
    for (command, bytes) in of(1).iter().zip(1..) {
        assert_eq!((command.bytes, command.queue, command.start), (bytes, 9, 1 << 32 | bytes));
    }
    // The list is reset while an execution is in flight, and its places are used again.
    run(&list, 3, true);
    let mut forgotten = Vec::new();
    list.clear(store, |token| forgotten.push(token));
    assert_eq!(forgotten, (1..=200).collect::<Vec<_>>());
    assert!(list.is_empty() && list.append(store, 1, command(0)));
    collect(store, Depth::All, &mut api, &mut kept);
    assert_eq!(kept.commands.len(), 599);
    store.say(Outcome::default(), Left::default(), true, &mut kept);
    assert_eq!(kept.pendings[0].lost, 1, "the one that could not be read");
    let made = store.nodes().expect("nodes").made();
    list.clear(store, |_| {});
    for round in 0..100 {
        (0..200).for_each(|n| _ = list.append(store, round * 200 + n, command(0)));
        list.clear(store, |_| {});
    }
    assert!(store.nodes().expect("nodes").made() <= made + 64, "places of lists come back");
}

/// A report that several threads share.
struct Locked<'k>(&'k Mutex<Kept>);

impl Report for Locked<'_> {
    fn room(&mut self) -> usize {
        1
    }
    fn command(&mut self, command: &Enqueued, times: &Times, name: &CStr) -> bool {
        self.0.lock().expect("kept").command(command, times, name)
    }
    fn counted(&mut self, _: u64) {}
    fn pending(&mut self, _: &PendingRecord) -> bool {
        true
    }
}

/// Owners that come and go, and collectors, all at once: each command is recorded once.
#[test]
fn threads_lose_nothing_and_record_nothing_twice() {
    const OWNERS: u64 = 4;
    const EACH: u64 = 30_000;
    let store = store(1 << 20);
    let all = Mutex::new(Kept::default());
    let kept = &all;
    let (over, clock) = (AtomicBool::new(false), AtomicU64::new(0));
    // Most have ended when they are asked about.
    let look = |depth| {
        let ends = |_| clock.fetch_add(1, Ordering::Relaxed) % 5 != 0;
        store.collect_with(depth, &mut Api::new(ends), &mut Locked(kept));
    };
    std::thread::scope(|scope| {
        let owners: Vec<_> = (0..OWNERS)
            .map(|owner| {
                scope.spawn(move || {
                    for life in 0..3 {
                        let (block, thread) = self::thread(store);
                        for n in 0..EACH / 3 {
                            let token = owner * EACH + life * (EACH / 3) + n;
                            let in_order = !token.is_multiple_of(3);
                            let command = Enqueued { queue: token % 7, in_order, ..command(token + 1) };
                            if thread.put(token, command) == Put::Due {
                                store.looked(block);
                                let ends = |_| true;
                                let nodes = store.nodes().expect("nodes");
                                block.collect(nodes, &mut Api::new(ends), &mut Locked(kept), Depth::Some);
                            }
                        }
                        block.extra.release();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    look(Depth::All);
                }
            });
        }
        for owner in owners {
            owner.join().expect("an owner");
        }
        over.store(true, Ordering::Relaxed);
    });
    store.collect_with(Depth::Last, &mut Api::new(|_| true), &mut Locked(kept));
    assert!(!store.any());
    let mut starts = kept.lock().expect("kept").starts();
    starts.sort_unstable();
    assert_eq!(starts, (0..OWNERS * EACH).collect::<Vec<_>>());
}
