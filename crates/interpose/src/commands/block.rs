//! The commands that one thread has in flight: what it puts in, and what a collector takes out.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

use super::lanes::{Lanes, Place};
use super::links::{Claim, Inbox, Link, Returned};
use super::loops::{Loops, PUT_OFF};
use super::nodes::{BATCH, Node, Nodes, Pending};
use super::report::{MOST_BUT_NAME, Report, text};
use super::{Backend, Depth, Left, Progress};
use crate::extra::Extra;

/// A thread looks for finished commands after so many more,
const HARVEST_COMMANDS: u64 = 32;
/// and after so many ticks: some ten milliseconds.
const HARVEST_TICKS: u64 = 1 << 25;
/// Free nodes that an owner gets back; more are for all.
const KEPT: u32 = 2 * BATCH;

/// The commands of one thread, and of those that had the block before it. All zeros are a block
/// of nobody without commands.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Block<X> {
    /// Whether it is some thread's. First, as `thread_extra` wants it.
    pub(super) extra: Extra,
    /// The owner's thread id.
    pub(super) tid: AtomicU32,
    /// Owner: its number in the directory.
    pub(super) number: AtomicU32,
    /// Owner: it is adding a command; a handler that interrupts it must not.
    entered: AtomicBool,
    /// Owner: the bit of the block is set.
    pub(super) announced: AtomicBool,
    /// Owner: free nodes.
    spare: Link,
    /// Owner: commands that were ever put in.
    put: AtomicU64,
    /// Owner: it looks for finished commands when `put` is so much, or at this counter value.
    look_at_put: AtomicU64,
    look_at: AtomicU64,
    /// Owner: its waits for devices.
    loops: Loops,
    inbox: Inbox,
    returned: Returned,
    /// Free nodes that were returned and not taken yet, or a few more.
    given: AtomicU32,
    /// Who collects.
    claim: Claim,
    /// Collector: commands that were ever taken out and are not in flight any more.
    done: AtomicU64,
    /// Collector: the node that the inbox keeps is free but for that.
    kept_is_free: AtomicBool,
    lanes: Lanes,
    /// The API's own, for the owner.
    pub(super) local: X,
}

/// What came of collecting from a block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) left: Left,
    /// Commands that were recorded.
    pub(super) collected: u64,
    /// Commands of which nothing will be known.
    pub(super) lost: u64,
    /// The ring is full: no more now.
    pub(super) full: bool,
}

impl<X> Block<X> {
    /// Whether no command is in flight. One that is being added is not complete, and its call
    /// has not returned.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // `done` first: it never overtakes `put`, which so is at least as new.
        let done = self.done.load(Ordering::Acquire);
        self.put.load(Ordering::Acquire) == done
    }

    /// Owner: the block has become this thread's.
    pub(super) fn begin(&self, number: u32, tid: u32, now: u64) {
        self.number.store(number, Ordering::Relaxed);
        self.tid.store(tid, Ordering::Relaxed);
        self.entered.store(false, Ordering::Relaxed);
        self.looks(now);
    }

    /// Owner: whether a command can be added as it is: there is a free node, the bit is set, and
    /// this is no handler that interrupted [`Block::push`].
    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        self.spare.get() != 0
            && self.announced.load(Ordering::Relaxed)
            && !self.entered.load(Ordering::Relaxed)
    }

    /// Owner: sees to it that there is a free node. Returns whether there is.
    #[cold]
    pub(super) fn make_room<T: Copy>(&self, nodes: &Nodes<T>, limit: u32) -> bool {
        // A handler that interrupted `push` must not touch what that is about to change.
        !self.is_entered() && (self.spare.get() != 0 || self.fetch(nodes, limit) != 0)
    }

    fn fetch<T: Copy>(&self, nodes: &Nodes<T>, limit: u32) -> u32 {
        let mut first = self.returned.take();
        if first == 0 {
            first = nodes.take(limit);
        } else {
            self.given.store(0, Ordering::Relaxed);
        }
        self.spare.set(first);
        first
    }

    /// Owner: whether this is a handler that interrupted it while it added a command.
    #[inline(always)]
    fn is_entered(&self) -> bool {
        self.entered.load(Ordering::Relaxed)
    }

    /// Owner: takes the free nodes that another has not taken back yet.
    pub(super) fn take_from(&self, other: &Block<X>) -> bool {
        let first = if self.is_entered() { 0 } else { other.returned.take() };
        if first != 0 {
            self.spare.set(first);
        }
        first != 0
    }

    /// Owner that is ready: adds a command. Returns whether it is time to look for finished ones;
    /// `None` if it is not in.
    #[inline(always)]
    pub(super) fn push<T: Copy>(&self, nodes: &Nodes<T>, pending: Pending<T>) -> Option<bool> {
        self.entered.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let returned = pending.command.returned;
        let number = self.spare.get();
        let Some(node) = nodes.get(number) else {
            self.entered.store(false, Ordering::Relaxed);
            return None;
        };
        self.spare.set(node.next.get());
        // SAFETY: the node was among the free ones, which are the owner's alone; `entered` keeps
        // handlers of this thread out.
        unsafe { node.write(pending) };
        // SAFETY: nodes stay for ever. A forked child finds neither this one nor the inbox's last.
        unsafe { self.inbox.put(number, &node.arrival) };
        let put = self.put.load(Ordering::Relaxed).wrapping_add(1);
        // Pairs with the Acquire load in `is_empty`.
        self.put.store(put, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        self.entered.store(false, Ordering::Relaxed);
        let many = put >= self.look_at_put.load(Ordering::Relaxed);
        Some(many | (returned >= self.look_at.load(Ordering::Relaxed)))
    }

    /// Owner: it looks for finished commands now.
    pub(super) fn looks(&self, now: u64) {
        let put = self.put.load(Ordering::Relaxed);
        self.look_at_put.store(put.saturating_add(HARVEST_COMMANDS), Ordering::Relaxed);
        self.look_at.store(now.saturating_add(HARVEST_TICKS), Ordering::Relaxed);
    }

    /// Owner: it has waited for a device. Returns whether it is time to look for finished commands.
    #[inline]
    pub(super) fn looks_after_wait(&self, now: u64) -> bool {
        let looked_lately =
            now.saturating_add(HARVEST_TICKS - PUT_OFF) < self.look_at.load(Ordering::Relaxed);
        let has_few = self.put.load(Ordering::Relaxed) < self.look_at_put.load(Ordering::Relaxed);
        !(self.loops.waits(now) && looked_lately && has_few)
    }

    /// Owner that has ended, or takes its place: gives all free nodes to whoever needs some.
    pub(super) fn give_spares<T: Copy>(&self, nodes: &Nodes<T>) {
        for first in [self.spare.get(), self.returned.take()] {
            nodes.give(first);
        }
        self.spare.set(0);
        self.given.store(0, Ordering::Relaxed);
    }

    /// Asks about commands in flight, and records those that have ended. A block that another
    /// thread, or an interrupted part of this one, collects from is left to it.
    pub(super) fn collect<B: Backend>(
        &self,
        nodes: &Nodes<B::Token>,
        backend: &mut B,
        report: &mut impl Report,
        depth: Depth,
    ) -> Outcome {
        if self.is_empty() {
            return Outcome::default();
        }
        let all = self.claim.holding(|| {
            let mut round = Round {
                block: self,
                nodes,
                backend,
                report,
                depth,
                waits: 0,
                room: 0,
                ended: 0,
                all_ended: 0,
                free: Free::default(),
                outcome: Outcome::default(),
            };
            round.ask(true);
            round.take_in();
            round.waits = 0;
            round.ask(false);
            round.count_ended();
            round.outcome.collected = round.all_ended.saturating_sub(round.outcome.lost);
            round.outcome.left = round.oldest();
            round.free.give_back(self, nodes);
            round.outcome
        });
        // The other one will say what is left; until then nothing is certain.
        all.unwrap_or(Outcome { left: Left::unknown(), ..Outcome::default() })
    }
}

/// Nodes that have become free.
#[derive(Debug, Default)]
struct Free {
    first: u32,
    last: u32,
    count: u32,
}

impl Free {
    fn add<T: Copy, X>(&mut self, number: u32, node: &Node<T>, block: &Block<X>, nodes: &Nodes<T>) {
        node.next.set(self.first);
        self.first = number;
        if self.count == 0 {
            self.last = number;
        }
        self.count += 1;
        if self.count == BATCH {
            if block.given.load(Ordering::Relaxed) < KEPT {
                self.give_back(block, nodes);
            } else {
                nodes.give(self.first);
                *self = Free::default();
            }
        }
    }

    /// Gives them to the block's owner.
    fn give_back<T: Copy, X>(&mut self, block: &Block<X>, nodes: &Nodes<T>) {
        if let Some(last) = nodes.get(self.last) {
            let given = block.given.load(Ordering::Relaxed);
            block.given.store(given.saturating_add(self.count), Ordering::Relaxed);
            block.returned.give(self.first, &last.next);
        }
        *self = Free::default();
    }
}

/// One look at a block, by who has its claim.
struct Round<'r, B: Backend, R, X> {
    block: &'r Block<X>,
    nodes: &'r Nodes<B::Token>,
    backend: &'r mut B,
    report: &'r mut R,
    depth: Depth,
    /// Queues whose first command waits, of those that were asked about.
    waits: u32,
    /// Bytes of records before the next look for room in the ring.
    room: usize,
    /// Commands that have ended and were not counted yet, and those that were.
    ended: u64,
    all_ended: u64,
    free: Free,
    outcome: Outcome,
}

/// What became of a command.
#[derive(PartialEq, Eq)]
enum Asked {
    /// It was recorded, or given up.
    Ended,
    Waits,
    /// It was not asked about: there is no room for its record.
    Full,
}

/// How far a look at the commands of a queue without order came.
enum Pass {
    /// None is left.
    Emptied,
    /// To the last.
    End,
    /// To this one, which waits; 0: not even to the first.
    Stopped(u32),
}

impl<B: Backend, R: Report, X> Round<'_, B, R, X> {
    /// Takes what the owner has put in, and asks about commands of queues in order that have none
    /// before them: most have ended, and need no lane.
    fn take_in(&mut self) {
        let (block, nodes) = (self.block, self.nodes);
        // As many as there were at first, or a few more: the API may enqueue while it is asked.
        let done = block.done.load(Ordering::Relaxed);
        let most = block.put.load(Ordering::Acquire).wrapping_sub(done);
        let mut kept = block.inbox.kept();
        let mut kept_node = nodes.get(kept);
        // The node that the inbox keeps has a link that leads to the next one, and is the owner's.
        let mut kept_is_free = block.kept_is_free.load(Ordering::Relaxed);
        for _ in 0..most {
            let Some(number) = block.inbox.take(|_| kept_node.map(|n| &n.arrival)) else { break };
            if let Some(node) = kept_node.filter(|_| kept_is_free) {
                self.free.add(kept, node, block, nodes);
            }
            let Some(node) = nodes.get(number) else { break };
            kept_is_free = self.ends_at_once(node);
            if !kept_is_free {
                // SAFETY: just taken by who has the claim; the owner wrote it before it put it in.
                unsafe { block.lanes.add(nodes, number, node) };
            }
            (kept, kept_node) = (number, Some(node));
        }
        block.kept_is_free.store(kept_is_free, Ordering::Relaxed);
    }

    /// Asks about a command that was just taken in, if that can be done now. Returns whether it
    /// has ended.
    #[inline]
    fn ends_at_once(&mut self, node: &Node<B::Token>) -> bool {
        // SAFETY: it was just taken in by who has the claim, and was written before.
        let Pending { command, .. } = unsafe { node.read() };
        let may_ask = command.in_order && !self.outcome.full && self.waits < self.depth.queues();
        if !may_ask || !self.block.lanes.has_none(self.nodes, command.queue) {
            return false;
        }
        let has_ended = self.ask_one(node) == Asked::Ended;
        self.waits += u32::from(!has_ended);
        has_ended
    }

    /// Asks about the commands of all queues that are in order, or of all that are not; or of some:
    /// then the next look begins behind them.
    fn ask(&mut self, in_order: bool) {
        let (block, nodes) = (self.block, self.nodes);
        for (bucket, mut place) in block.lanes.places(in_order) {
            if self.waits >= self.depth.queues() || self.outcome.full {
                return block.lanes.stop_at(in_order, bucket);
            }
            while let Some((number, first)) = place.first(nodes) {
                // SAFETY: it is in a lane, so it has a command, and the claim makes it ours.
                if unsafe { first.read() }.command.in_order != in_order {
                    place = place.after(first);
                    continue;
                }
                let left = if in_order { self.ask_first(place, number, first) } else { self.ask_each(place) };
                if self.outcome.full {
                    break;
                }
                // A lane that is over has made room for the next.
                if left && let Some((_, first)) = place.first(nodes) {
                    self.waits += 1;
                    place = place.after(first);
                }
            }
        }
    }

    /// Asks about commands that end one after the other. Returns whether some are left.
    fn ask_first<'r>(&mut self, place: Place<'r>, mut number: u32, mut node: &'r Node<B::Token>) -> bool
    where
        Self: 'r,
    {
        loop {
            if self.one(node) != Asked::Ended {
                return true;
            }
            let next = place.remove_first(self.nodes, number, node);
            self.is_free(number, node);
            let Some(next) = next else { return false };
            (number, node) = next;
        }
    }

    /// Asks about commands that end in any order: from the first, and from where the last look
    /// stopped, so that none waits for ever behind those that do. Returns whether some are left.
    fn ask_each(&mut self, place: Place<'_>) -> bool {
        let begun = self.pass(place, 0);
        let Some((_, first)) = place.first(self.nodes) else { return false };
        let resume = first.resume.get();
        let next = match begun {
            Pass::Emptied => return false,
            Pass::End => 0,
            Pass::Stopped(at) if resume == 0 || self.outcome.full => at,
            Pass::Stopped(_) => match self.pass(place, resume) {
                Pass::Stopped(at) => at,
                _ => 0,
            },
        };
        // It is another one if the first has ended.
        if let Some((_, first)) = place.first(self.nodes) {
            first.resume.set(next);
        }
        true
    }

    /// Asks about the commands behind `before`, or all if that is 0.
    fn pass(&mut self, place: Place<'_>, mut before: u32) -> Pass {
        let mut misses = 0;
        loop {
            let Some((first, _)) = place.first(self.nodes) else { return Pass::Emptied };
            let number = self.nodes.get(before).map_or(first, |b| b.next.get());
            let Some(node) = self.nodes.get(number) else { return Pass::End };
            let is_only = before == 0 && node.next.get() == 0;
            match self.one(node) {
                Asked::Full => return Pass::Stopped(before),
                Asked::Waits => {
                    misses += 1;
                    before = number;
                    if misses >= self.depth.misses() {
                        return Pass::Stopped(number);
                    }
                }
                Asked::Ended => {
                    place.remove(self.nodes, Some(before));
                    self.is_free(number, node);
                    if is_only {
                        return Pass::Emptied;
                    }
                }
            }
        }
    }

    /// Asks about a command of a lane.
    #[inline(never)]
    fn one(&mut self, node: &Node<B::Token>) -> Asked {
        self.ask_one(node)
    }

    /// Asks about a command, and records it if it has ended.
    #[inline(always)]
    fn ask_one(&mut self, node: &Node<B::Token>) -> Asked {
        if self.room == 0 && !self.find_room() {
            return Asked::Full;
        }
        // SAFETY: it was taken out of the inbox, so it has a command, and the claim makes it ours.
        let Pending { token, command } = unsafe { node.read() };
        match self.backend.poll(*token, command) {
            Progress::Waits => return Asked::Waits,
            Progress::Gone => self.outcome.lost += 1,
            Progress::Ended(times) => {
                // SAFETY: NULL, or a text that stays until the command was recorded: `Enqueued::name`.
                let name = unsafe { text(command.name) };
                self.room = self.room.saturating_sub(MOST_BUT_NAME + name.count_bytes());
                if !self.report.command(command, &times, name) {
                    self.outcome.lost += 1;
                }
            }
        }
        self.ended += 1;
        self.backend.release(*token);
        Asked::Ended
    }

    /// Looks for room in the ring, for some commands at a time. Returns whether there is any.
    #[cold]
    #[inline(never)]
    fn find_room(&mut self) -> bool {
        self.count_ended();
        self.room = self.report.room();
        self.outcome.full = self.room == 0;
        !self.outcome.full
    }

    /// Counts commands that are not in flight any more.
    fn count_ended(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        if ended == 0 {
            return;
        }
        self.all_ended += ended;
        let done = self.block.done.load(Ordering::Relaxed).wrapping_add(ended);
        // Pairs with the Acquire load in `is_empty`.
        self.block.done.store(done, Ordering::Release);
        self.report.counted(ended);
    }

    /// A node that is in the inbox and in its lane no more.
    fn is_free(&mut self, number: u32, node: &Node<B::Token>) {
        if self.block.inbox.kept() == number {
            // Its link leads to the next one, and is the owner's.
            self.block.kept_is_free.store(true, Ordering::Relaxed);
        } else {
            self.free.add(number, node, self.block, self.nodes);
        }
    }

    /// Since when the oldest command is in flight.
    fn oldest(&self) -> Left {
        let mut left = Left::default();
        for (bucket, mut place) in self.block.lanes.places(true) {
            if place.first(self.nodes).is_none() {
                self.block.lanes.is_unused(bucket);
            }
            while let Some((_, first)) = place.first(self.nodes) {
                // SAFETY: it is in a lane, so it has a command, and the claim makes it ours.
                left.add(Left { oldest: unsafe { first.read() }.command.cause });
                place = place.after(first);
            }
        }
        left
    }
}
