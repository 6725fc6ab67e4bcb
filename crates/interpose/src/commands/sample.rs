//! Timing some commands of each kind and counting all of them.
//!
//! A kind is a function that devices run, or, of commands that run none, what they do and between which kinds
//! of memory ([`of_kind`]). The first command of a kind is timed and stands for itself: it often pays for what
//! is made ready once, and no other is like it. Of those after it one in so many is timed, and stands for so
//! many: as the session says (`--device-times sampled=N`), or as the thread can afford (`--max-overhead`).
//! Which ones is left to chance, so that a program's own rhythm can't hide some for ever.
//! [`CountRecord`]s have the true numbers.
//!
//! Threads add to the same counts, each by one operation, and hand nothing over; but for whose the counts are in a forked
//! child ([`Owner`]).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::{COMMAND_KINDS, CountRecord, FunctionRecord, MEMORY_KINDS, command_flag, special};
use hetrace_ring::clock::ticks;

use super::driver;
use super::owner::Owner;
use crate::record::record_with_text;
use crate::{budget, own};

/// Ticks between two reports: some hundred milliseconds.
const PERIOD: u64 = 1 << 29;
/// When counts were last reported.
static REPORTED: AtomicU64 = AtomicU64::new(0);

/// Commands of a kind.
#[derive(Debug, Default)]
pub struct Counted {
    /// How many.
    commands: AtomicU64,
    /// How many of them were timed.
    timed: AtomicU64,
    /// Bytes that all of them moved or set.
    bytes: AtomicU64,
    /// Of these numbers, nodes of graphs of which some stand for the others.
    nodes: AtomicU64,
    nodes_timed: AtomicU64,
    nodes_bytes: AtomicU64,
    /// Nodes of graphs without a time of their own, and their bytes.
    of_graphs: AtomicU64,
    of_graphs_bytes: AtomicU64,
    /// Nanoseconds that times of nodes may be off.
    nodes_off: AtomicU32,
    /// There is more to be said than another number of commands.
    says_more: AtomicBool,
    /// `commands` at the last [`CountRecord`].
    reported: AtomicU64,
    /// The process that counts: a forked child begins with its parent's numbers, and must not report them.
    owner: Owner,
}

/// How a command is to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// All commands are timed, and none is counted.
    All,
    /// It is timed, and stands for so many.
    Timed(u32),
    /// It is only counted.
    Counted,
}

impl Choice {
    /// Returns whether the command is to be timed.
    #[inline]
    pub fn is_timed(self) -> bool {
        self != Choice::Counted
    }

    /// Returns [`Enqueued::weight`](super::Enqueued::weight).
    #[inline]
    pub fn weight(self) -> u32 {
        match self {
            Choice::Timed(weight) => weight,
            _ => 0,
        }
    }

    /// Returns [`Enqueued::flags`](super::Enqueued::flags).
    #[inline]
    pub fn flags(self) -> u16 {
        if self == Choice::All { 0 } else { command_flag::SAMPLED }
    }
}

/// How nodes of graphs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// Of the graph's launches the nodes of some are timed, and stand for these.
    Sampled,
    /// The graph is timed as a whole, or not at all.
    OfGraphs,
}

/// Returns whether this session times some commands only.
#[inline]
pub fn is_on() -> bool {
    budget::is_limited() || budget::sampled_every() > 1
}

impl Counted {
    /// None.
    pub const fn new() -> Self {
        Counted {
            commands: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            nodes: AtomicU64::new(0),
            nodes_timed: AtomicU64::new(0),
            nodes_bytes: AtomicU64::new(0),
            of_graphs: AtomicU64::new(0),
            of_graphs_bytes: AtomicU64::new(0),
            nodes_off: AtomicU32::new(0),
            says_more: AtomicBool::new(false),
            reported: AtomicU64::new(0),
            owner: Owner::new(),
        }
    }

    /// Returns whether this process has counted none before. What its parent counted is forgotten then.
    #[inline]
    pub fn is_new(&self) -> bool {
        let pid = own::pid();
        !self.owner.is(pid)
            && self.owner.take(pid, || {
                let own = [&self.commands, &self.timed, &self.bytes, &self.reported];
                let nodes = [&self.nodes, &self.nodes_timed, &self.nodes_bytes];
                let graphs = [&self.of_graphs, &self.of_graphs_bytes];
                for word in own.into_iter().chain(nodes).chain(graphs) {
                    word.store(0, Ordering::Relaxed);
                }
            })
    }

    /// Counts a command of so many bytes that is about to be enqueued, and chooses how to record it. `id` is that
    /// of its kind; launches of kernels may be sampled at the user's request, others are not.
    ///
    /// What can be is counted before the call: an instruction that locks would wait, after it, for what the driver has
    /// written to the device, some hundred nanoseconds.
    pub fn choose(&self, id: u64, is_launch: bool, bytes: u64) -> Choice {
        self.choose_learning(id, is_launch, bytes, || true)
    }

    /// As [`Counted::choose`], for an API that compares its calls with and without timing ([`driver`](super::driver)):
    /// of a kind of commands of which it is not known what the driver takes for that, some are not timed if it matters.
    pub fn choose_compared(&self, kind: u8, id: u64, is_launch: bool, bytes: u64) -> Choice {
        self.choose_learning(id, is_launch, bytes, || driver::is_known(kind))
    }

    fn choose_learning(
        &self,
        id: u64,
        is_launch: bool,
        bytes: u64,
        is_known: impl FnOnce() -> bool,
    ) -> Choice {
        let (limited, sampled) = (budget::is_limited(), budget::sampled_every().max(1));
        if !limited && (!is_launch || sampled == 1) {
            return Choice::All;
        }
        self.is_new();
        let one_in = if limited { budget::one_in(is_known) } else { 1 };
        let every = one_in.saturating_mul(if is_launch { sampled } else { 1 });
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        budget::count(1);
        self.moved(bytes);
        let choice = choice(id, number, every);
        if choice.is_timed() {
            self.timed.fetch_add(1, Ordering::Relaxed);
        }
        choice
    }

    /// The number of the next command that is timed, if one in `every` is, and that of commands so far is not behind it.
    pub fn next_timed(&self, id: u64, every: u32) -> u64 {
        next_timed(id, self.commands.load(Ordering::Relaxed), every)
    }

    /// Counts a command without bytes that is about to be enqueued and only counted, if it has a number below `next`: this thread
    /// has found before that none of these is timed, and whose count it is. Returns whether it is counted.
    #[inline]
    pub fn count_before(&self, next: u64) -> bool {
        let counts = self.commands.fetch_add(1, Ordering::Relaxed) < next;
        if counts {
            budget::count(1);
        } else {
            self.commands.fetch_sub(1, Ordering::Relaxed);
        }
        counts
    }

    /// Runs a call that enqueues a command which is [only counted](Choice::Counted), with so many bytes until now.
    /// `more` says how many it moves beside these, if that is not known before the call has succeeded.
    pub fn only_count<R: Copy>(
        &self,
        bytes: u64,
        call: impl FnOnce() -> R,
        succeeded: impl FnOnce(R) -> bool,
        more: impl FnOnce() -> u64,
    ) -> R {
        let result = call();
        if succeeded(result) {
            self.moved(more());
            budget::not_timed();
        } else {
            self.failed(Choice::Counted, bytes);
        }
        result
    }

    /// The command was enqueued, and moves so many bytes beside those that it was counted with.
    #[inline]
    pub fn moved(&self, bytes: u64) {
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The command was enqueued, and there is no way to time it.
    #[cold]
    pub fn untimed(&self, choice: Choice) {
        if let Choice::Timed(_) = choice {
            self.timed.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes back what [`Counted::choose`] counted: the call failed.
    #[cold]
    pub fn failed(&self, choice: Choice, bytes: u64) {
        if choice != Choice::All {
            self.untimed(choice);
            self.commands.fetch_sub(1, Ordering::Relaxed);
            budget::count(-1);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Counts so many commands that were enqueued as nodes of graphs, of so many bytes together. The thread has counted them
    /// before ([`count`]).
    pub fn add(&self, nodes: Nodes, commands: u64, bytes: u64) {
        self.is_new();
        let (number, moved) = match nodes {
            Nodes::Sampled => (&self.nodes, &self.nodes_bytes),
            Nodes::OfGraphs => (&self.of_graphs, &self.of_graphs_bytes),
        };
        number.fetch_add(commands, Ordering::Relaxed);
        moved.fetch_add(bytes, Ordering::Relaxed);
        self.commands.fetch_add(commands, Ordering::Relaxed);
        self.moved(bytes);
    }

    /// A node that is [sampled](Nodes::Sampled) is timed.
    pub fn add_timed(&self) {
        self.is_new();
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.nodes_timed.fetch_add(1, Ordering::Relaxed);
    }

    /// Times of nodes may be off so many nanoseconds, all in the same way.
    pub fn may_be_off(&self, nanoseconds: u32) {
        if self.nodes_off.fetch_max(nanoseconds, Ordering::Relaxed) < nanoseconds {
            self.says_more.store(true, Ordering::Relaxed);
        }
    }

    /// Says how many there were, if that has changed. `function` is the id of the kind, and `kind` and `memory` what it is of.
    /// Returns how many were said.
    fn report(&self, function: u64, kind: u8, memory: [u8; 2]) -> u64 {
        let launches = self.commands.load(Ordering::Relaxed);
        if !self.owner.is(own::pid()) {
            return 0;
        }
        let reported = self.reported.load(Ordering::Relaxed);
        let says_more = self.says_more.swap(false, Ordering::Relaxed);
        if reported == launches && !says_more {
            return launches;
        }
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let record = CountRecord {
            function,
            launches,
            timed: of(&self.timed),
            bytes: of(&self.bytes),
            nodes: of(&self.nodes),
            nodes_timed: of(&self.nodes_timed),
            nodes_bytes: of(&self.nodes_bytes),
            of_graphs: of(&self.of_graphs),
            of_graphs_bytes: of(&self.of_graphs_bytes),
            nodes_off: self.nodes_off.load(Ordering::Relaxed),
            kind,
            memory,
            reserved: 0,
        };
        if !record_with_text(special::COUNT, &record, c"") {
            self.says_more.store(says_more, Ordering::Relaxed);
            return reported;
        }
        self.reported.store(launches, Ordering::Relaxed);
        launches
    }
}

/// This thread has enqueued so many commands that are counted later ([`Counted::add`]); a negative number takes some back.
pub fn count(commands: i64) {
    budget::count(commands);
}

/// How the command of a number is recorded, of whose kind one in `every` is timed: the first one, and of those
/// after it one in each row of so many, at a place that is another in each row.
pub fn choice(id: u64, number: u64, every: u32) -> Choice {
    let Some(later) = number.checked_sub(1).filter(|_| every > 1) else { return Choice::Timed(1) };
    let (row, place) = (later / u64::from(every), later % u64::from(every));
    if mixed(row ^ id << 40) % u64::from(every) == place { Choice::Timed(every) } else { Choice::Counted }
}

/// The first number, of `number` and those after it, whose command is timed.
fn next_timed(id: u64, number: u64, every: u32) -> u64 {
    let Some(later) = number.checked_sub(1).filter(|_| every > 1) else { return number };
    let every = u64::from(every);
    let timed = |row: u64| row * every + mixed(row ^ id << 40) % every;
    let here = timed(later / every);
    1 + if here >= later { here } else { timed(later / every + 1) }
}

/// A number without any rhythm.
pub fn mixed(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Index of "kernel" in [`COMMAND_KINDS`].
const KERNEL: u8 = 1;
const MEMORIES: usize = MEMORY_KINDS.len();
const KINDS: usize = COMMAND_KINDS.len() * MEMORIES * MEMORIES;
static OF_KIND: [Counted; KINDS] = [const { Counted::new() }; KINDS];
/// Ids of functions that stand for kinds; those of functions that devices run are smaller.
const FIRST_ID: u64 = 1 << 40;

/// What stands for commands that run no function, by [`Enqueued::kind`](super::Enqueued::kind) and
/// [`Enqueued::memory`](super::Enqueued::memory): the id to record them with, and their count.
pub fn of_kind(kind: u8, [from, to]: [u8; 2]) -> Option<(u64, &'static Counted)> {
    let place = (usize::from(kind) * MEMORIES + usize::from(from)) * MEMORIES + usize::from(to);
    Some((FIRST_ID + place as u64, OF_KIND.get(place)?))
}

/// Says how many commands of each kind there were: once per period, or at once if it is the last time.
/// `functions` are those that devices run, with their ids. What is counted later and not said is lost: the launcher
/// knows how much that is.
pub fn report_counts<'c>(last: bool, functions: impl Iterator<Item = (u64, &'c Counted)>) {
    if !is_on() {
        return;
    }
    let (now, then) = (ticks(), REPORTED.load(Ordering::Relaxed));
    if !last && now.wrapping_sub(then) < PERIOD {
        return;
    }
    let mine = REPORTED.compare_exchange(then, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !mine && !last {
        return;
    }
    let mut said =
        functions.map(|(id, counted)| counted.report(id, KERNEL, [0; 2])).fold(0, u64::wrapping_add);
    for (place, counted) in OF_KIND.iter().enumerate() {
        let mine = counted.owner.is(own::pid());
        let some = counted.commands.load(Ordering::Relaxed) > 0;
        if mine && some && counted.reported.load(Ordering::Relaxed) == 0 {
            let record = FunctionRecord { function: FIRST_ID + place as u64, ..FunctionRecord::default() };
            record_with_text(special::FUNCTION, &record, c"");
        }
        let (kind, memory) = (place / (MEMORIES * MEMORIES), [place / MEMORIES % MEMORIES, place % MEMORIES]);
        said =
            said.wrapping_add(counted.report(FIRST_ID + place as u64, kind as u8, memory.map(|m| m as u8)));
    }
    budget::reported(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_each_row_is_timed_without_a_rhythm() {
        for (id, every) in [(1, 4), (2, 16), (77, 64)] {
            let chosen: Vec<u64> =
                (1..=6400u64).filter(|n| choice(id, *n, every) == Choice::Timed(every)).collect();
            assert_eq!(chosen.len(), 6400 / every as usize);
            // About as many at even places as at odd ones.
            let even = chosen.iter().filter(|n| *n % 2 == 0).count();
            assert!(even * 10 > chosen.len() * 3 && even * 10 < chosen.len() * 7, "{even}");
        }
        assert_eq!([choice(1, 0, 64), choice(1, 5, 1)], [Choice::Timed(1); 2]);
    }

    #[test]
    fn the_next_one_that_is_timed_is_known() {
        for (id, every) in [(1, 1), (1, 4), (2, 16), (77, 64), (3, 1 << 16)] {
            for number in [0, 1, 2, 3, 17, 63, 64, 65, 1000, 65_536, 65_537] {
                let next = next_timed(id, number, every);
                assert!(choice(id, next, every).is_timed(), "{id} {number} {every}: {next}");
                let before = (number..next).take(500).chain((number.max(next.saturating_sub(500)))..next);
                assert!(
                    before.into_iter().all(|n| !choice(id, n, every).is_timed()),
                    "{id} {number} {every}: {next}"
                );
            }
        }
    }

    #[test]
    fn a_child_begins_with_none() {
        static COUNTED: Counted = Counted::new();
        assert!(COUNTED.is_new() && !COUNTED.is_new());
        COUNTED.commands.fetch_add(3, Ordering::Relaxed);
        COUNTED.owner.set(own::pid() + 1);
        assert!(COUNTED.is_new() && !COUNTED.is_new());
        assert_eq!(COUNTED.commands.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn parts_of_others_are_counted_together() {
        static COUNTED: Counted = Counted::new();
        COUNTED.add(Nodes::Sampled, 300, 1200);
        COUNTED.add_timed();
        COUNTED.add(Nodes::OfGraphs, 3, 40);
        let numbers = || {
            let all =
                [&COUNTED.commands, &COUNTED.timed, &COUNTED.bytes, &COUNTED.nodes, &COUNTED.nodes_timed];
            let more = [&COUNTED.nodes_bytes, &COUNTED.of_graphs, &COUNTED.of_graphs_bytes];
            all.into_iter().chain(more).map(|n| n.load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(), [303, 1, 1240, 300, 1, 1200, 3, 40]);
        // A child counts its own only.
        COUNTED.owner.set(own::pid() + 1);
        COUNTED.add(Nodes::OfGraphs, 7, 8);
        assert_eq!(numbers(), [7, 0, 8, 0, 0, 0, 7, 8]);
    }

    #[test]
    fn kinds_do_not_meet() {
        let mut ids: Vec<u64> = Vec::new();
        for kind in 0..COMMAND_KINDS.len() as u8 {
            for from in 0..MEMORIES as u8 {
                ids.extend((0..MEMORIES as u8).filter_map(|to| of_kind(kind, [from, to])).map(|(id, _)| id));
            }
        }
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((all, ids.len()), (KINDS, KINDS));
        assert!(of_kind(COMMAND_KINDS.len() as u8, [0, 0]).is_none());
    }
}
