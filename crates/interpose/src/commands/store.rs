//! All commands in flight of a process and API: a block for each thread, found by a bit.
//!
//! ```text
//!   thread's word ──► Block ◄── slab 0 … ◄── Store ──► active: a bit for each block
//!                      │ put, collect                  nodes:  chunk 0 …
//!                      ▼
//!                    nodes
//! ```
//!
//! A block's bit is set when its thread puts a command in, and cleared by that thread when it looks
//! and finds the block empty: no other thread needs to be asked. Of a block whose thread has ended,
//! whoever empties it clears the bit; another thread may have it before and after. So who looks at
//! all blocks looks at those that have commands, and at those of threads that had some and did not
//! look since.
//!
//! All of it lies in memory that the kernel clears in a forked child, which so finds no commands.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hetrace_ring::abi::PendingRecord;
use hetrace_ring::clock::ticks;
use hetrace_ring::writer::Writer;

use super::block::{Block, Outcome};
use super::nodes::{Nodes, Pending};
use super::note::Note;
use super::report::{Report, Ring};
use super::{Backend, Depth, Enqueued, Left, Local, MOST};
use crate::ErrnoGuard;
use crate::call::{OwnWork, count_collecting, count_enqueued};
use crate::mapped::{map_once, own_pages};
use crate::thread::{recording, thread_extra, thread_id, with_guard};

/// Blocks that are mapped together: one for each bit of a word.
const SLAB: usize = 64;
/// Threads that can have commands in flight at a time, as many as can record.
const SLABS: usize = 128;

#[repr(C)]
#[derive(Debug)]
struct State<T, X> {
    /// Commands of which nothing will be known, and that was not said yet.
    lost: AtomicU64,
    /// Blocks that were ever made.
    made: AtomicU32,
    /// [`Store::limit`].
    limit: AtomicU32,
    /// Bits of blocks that may have commands in flight.
    active: [AtomicU64; SLABS],
    slabs: [AtomicPtr<Block<X>>; SLABS],
    nodes: Nodes<T>,
}

/// The commands in flight of an API.
pub struct Store<T, X = ()> {
    state: AtomicPtr<State<T, X>>,
    /// Lost before there was a state.
    lost: AtomicU64,
    /// Most commands; 0: what the session says.
    limit: AtomicU32,
    exits: AtomicBool,
}

impl<T, X> std::fmt::Debug for Store<T, X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// This thread's part of a [`Store`].
#[derive(Debug)]
pub struct Thread<T: 'static, X: 'static = ()> {
    block: &'static Block<X>,
    state: &'static State<T, X>,
    /// Where its commands are counted; none in tests.
    writer: Option<&'static Writer>,
    /// Only its own thread may add commands.
    _here: PhantomData<*const ()>,
}

/// What became of a command that was to be put into a [`Store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is in.
    Kept,
    /// It is in, and it is time to look for those that have ended.
    Due,
    /// There are as many as there may be. Its times will not be known: [`Store::lose`].
    Full,
}

impl<T, X> Thread<T, X>
where
    T: Copy + Send + Sync + 'static,
    X: Local,
{
    /// Returns what the API keeps for this thread.
    #[inline]
    pub fn local(&self) -> &'static X {
        &self.block.local
    }

    /// Returns the thread's id, as its records have it.
    #[inline]
    pub fn tid(&self) -> u32 {
        self.block.tid.load(Ordering::Relaxed)
    }

    /// Returns whether there is a place for one more command: [`Thread::put`] will find it.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.block.is_ready() || self.make_ready()
    }

    #[cold]
    #[inline(never)]
    fn make_ready(&self) -> bool {
        self.state.announce(self.block);
        let limit = self.state.limit.load(Ordering::Relaxed);
        self.block.make_room(&self.state.nodes, limit) || self.state.find_room(self.block)
    }

    /// Returns the place of one more command, if there is one.
    #[inline(always)]
    pub fn place(&self) -> Option<Place<'_, T, X>> {
        self.has_room().then_some(Place(self))
    }

    /// Adds a command, and counts it as enqueued.
    #[inline]
    pub fn put(&self, token: T, command: Enqueued) -> Put {
        self.place().map_or(Put::Full, |place| place.put(token, command))
    }
}

/// There is a place for one more command of a thread.
#[derive(Debug)]
pub struct Place<'t, T: 'static, X: 'static = ()>(&'t Thread<T, X>);

impl<T, X> Place<'_, T, X>
where
    T: Copy + Send + Sync + 'static,
    X: Local,
{
    /// Adds a command, and counts it as enqueued.
    #[inline(always)]
    pub fn put(self, token: T, command: Enqueued) -> Put {
        let Thread { block, state, writer, .. } = self.0;
        let Some(is_due) = block.push(&state.nodes, Pending { token, command }) else {
            return Put::Full;
        };
        if let Some(writer) = writer {
            count_enqueued(writer);
        }
        if is_due { Put::Due } else { Put::Kept }
    }
}

impl<T, X> Store<T, X>
where
    T: Copy + Send + Sync + 'static,
    X: Local,
{
    /// An empty one.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Store {
            state: AtomicPtr::new(std::ptr::null_mut()),
            lost: AtomicU64::new(0),
            limit: AtomicU32::new(0),
            exits: AtomicBool::new(false),
        }
    }

    fn state(&self) -> Option<&'static State<T, X>> {
        // SAFETY: null, or pages that are never unmapped and whose zeros are a valid state.
        unsafe { self.state.load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn make_state(&self) -> Option<&'static State<T, X>> {
        map_once(&self.state, size_of::<State<T, X>>(), own_pages).then_some(())?;
        self.state()
    }

    /// The places of commands.
    pub(super) fn nodes(&self) -> Option<&'static Nodes<T>> {
        self.make_state().map(|s| &s.nodes)
    }

    /// Returns how many commands may be in flight in this process.
    pub fn limit(&self) -> u32 {
        let known = self.limit.load(Ordering::Relaxed);
        if known != 0 { known } else { self.ask_limit() }
    }

    #[cold]
    fn ask_limit(&self) -> u32 {
        let asked = crate::session().map_or(0, |s| s.control().most_in_flight.load(Ordering::Relaxed));
        let limit = if asked == 0 { super::DEFAULT } else { asked.min(MOST) };
        self.limit.store(limit, Ordering::Relaxed);
        limit
    }

    #[cfg(test)]
    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns this thread's part, made if need be. `None` where there is no ring, or no memory.
    #[inline]
    pub fn thread(&self) -> Option<Thread<T, X>> {
        self.thread_of(recording())
    }

    /// Returns this thread's part, as [`Store::thread`] does, inside of a call whose real function
    /// has returned.
    #[inline(always)]
    pub fn thread_in(&self, work: &OwnWork) -> Option<Thread<T, X>> {
        self.thread_of(work.writer())
    }

    #[inline(always)]
    fn thread_of(&self, writer: Option<&'static Writer>) -> Option<Thread<T, X>> {
        let writer = match writer {
            Some(writer) => writer,
            // A thread of which no call was recorded yet gets its ring now.
            None => with_guard(recording).flatten()?,
        };
        // SAFETY: null, or made by `claim` and never unmapped.
        let known = unsafe { writer.extra.load(Ordering::Relaxed).cast::<Block<X>>().as_ref() };
        let block = match known {
            Some(block) => block,
            None => self.first_block(&writer.extra)?,
        };
        self.part(block, Some(writer))
    }

    #[inline]
    pub(super) fn part(
        &self,
        block: &'static Block<X>,
        writer: Option<&'static Writer>,
    ) -> Option<Thread<T, X>> {
        let state = self.state()?;
        Some(Thread { block, state, writer, _here: PhantomData })
    }

    #[cold]
    fn first_block(&self, word: &AtomicPtr<libc::c_void>) -> Option<&'static Block<X>> {
        let block = self.claim(thread_id())?;
        let own = std::ptr::from_ref(block).cast_mut().cast();
        match word.compare_exchange(std::ptr::null_mut(), own, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(block),
            Err(handlers) => {
                // A handler of this thread got one meanwhile.
                block.extra.release();
                // SAFETY: made by `claim`, and never unmapped.
                unsafe { handlers.cast::<Block<X>>().as_ref() }
            }
        }
    }

    /// A block for a thread: one of a thread that has ended, or a new one.
    #[cold]
    pub(super) fn claim(&self, tid: u32) -> Option<&'static Block<X>> {
        let (number, block) = self.make_state()?.claim()?;
        if let Some(state) = self.state() {
            state.limit.store(self.limit(), Ordering::Relaxed);
        }
        block.begin(number, tid, ticks());
        block.local.begin();
        Some(block)
    }

    /// Counts commands as lost: their times will never be known.
    pub fn lose(&self, commands: u64) {
        self.state().map_or(&self.lost, |s| &s.lost).fetch_add(commands, Ordering::Relaxed);
    }

    /// Counts a command as lost because there is no place for it, and says why once.
    #[cold]
    pub fn lose_for_room(&self) {
        self.lose(1);
        static SAID: AtomicBool = AtomicBool::new(false);
        if SAID.swap(true, Ordering::Relaxed) {
            return;
        }
        let note = Note::new();
        let are_all = self.state().is_some_and(|s| s.nodes.are_all(self.limit()));
        let note = if are_all {
            note.text(b"device times: more than ")
                .number(self.limit().into())
                .text(b" commands were in flight; those beyond have no times (--max-in-flight N allows more)")
        } else {
            note.text(b"device times: no memory for more commands in flight; those beyond have no times")
        };
        note.leave();
    }

    /// Looks for commands of this thread that have ended, and records them.
    pub fn harvest<B: Backend<Token = T>>(&self, thread: &Thread<T, X>, backend: &mut B) {
        let _errno = ErrnoGuard::new();
        let began = ticks();
        thread.block.looks(began);
        let mut report = Ring::new(Depth::Some);
        let outcome = thread.block.collect(&thread.state.nodes, backend, &mut report, Depth::Some);
        // What is known of one thread's commands says nothing of the others'.
        self.say(outcome, Left::unknown(), false, &mut report);
        count_collecting(ticks().wrapping_sub(began), outcome.collected);
    }

    /// Looks for commands of all threads that have ended, and records them.
    pub fn collect<B: Backend<Token = T>>(&self, depth: Depth, backend: &mut B) {
        let _errno = ErrnoGuard::new();
        let began = ticks();
        let mut report = Ring::new(depth);
        let outcome = self.collect_with(depth, backend, &mut report).1;
        self.say(outcome, outcome.left, depth == Depth::Last, &mut report);
        if let Some(block) = self.own_block() {
            self.looked(block);
        }
        // Of a look that finds nothing only the second reading would be left.
        if outcome.collected > 0 {
            count_collecting(ticks().wrapping_sub(began), outcome.collected);
        }
    }

    /// The program has waited for a device: as [`Store::collect`] of all queues, but for a thread that does so over and
    /// over, which looks now and then.
    pub fn collect_waited<B: Backend<Token = T>>(&self, backend: &mut B) {
        if self.own_block().is_none_or(|block| block.looks_after_wait(ticks())) {
            self.collect(Depth::All, backend);
        }
    }

    /// This thread has looked at its block.
    pub(super) fn looked(&self, block: &'static Block<X>) {
        block.looks(ticks());
        if block.is_empty()
            && let Some(state) = self.state()
        {
            state.retire(block);
        }
    }

    /// This thread's block, if it has one.
    fn own_block(&self) -> Option<&'static Block<X>> {
        let word = thread_extra()?.load(Ordering::Relaxed);
        // SAFETY: null, or made by `claim` and never unmapped.
        unsafe { word.cast::<Block<X>>().as_ref() }
    }

    /// Whether any command may be in flight.
    pub fn any(&self) -> bool {
        self.state().is_some_and(|s| s.active_blocks().any(|b| !b.is_empty()))
    }

    /// Returns how many blocks were looked at, and what came of it.
    pub(super) fn collect_with<B: Backend<Token = T>>(
        &self,
        depth: Depth,
        backend: &mut B,
        report: &mut impl Report,
    ) -> (u32, Outcome) {
        let (mut looks, mut all) = (0, Outcome::default());
        let Some(state) = self.state() else { return (looks, all) };
        for block in state.active_blocks() {
            looks += 1;
            let one = if all.full {
                // Not asked; what there is, is left.
                Outcome { left: Left { oldest: u64::from(!block.is_empty()) }, ..Outcome::default() }
            } else {
                block.collect(&state.nodes, backend, report, depth)
            };
            all.add(one);
            state.end(block);
        }
        (looks, all)
    }

    /// Says what was found, if there is anything to say.
    pub(super) fn say(&self, outcome: Outcome, left: Left, last: bool, report: &mut impl Report) {
        self.lose(outcome.lost);
        let counts = [Some(&self.lost), self.state().map(|s| &s.lost)];
        let lost = || counts.iter().flatten();
        let any_lost = lost().any(|l| l.load(Ordering::Relaxed) > 0);
        if outcome.collected == 0 && !last && !any_lost {
            return;
        }
        let lost: u64 = lost().map(|l| l.swap(0, Ordering::Relaxed)).sum();
        if !report.pending(&PendingRecord { lost, oldest: left.oldest }) {
            self.lose(lost); // Another time.
        }
    }

    /// Has a function called when the program ends. Registered after the driver was loaded, it
    /// runs before the driver's end.
    pub fn at_exit(&self, end: extern "C" fn()) {
        if !self.exits.swap(true, Ordering::Relaxed) {
            // SAFETY: a function of this library, which is never unloaded.
            unsafe { libc::atexit(end) };
        }
    }
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.left.add(other.left);
        self.collected += other.collected;
        self.lost += other.lost;
        self.full |= other.full;
    }
}

impl<T: Copy, X: Local> State<T, X> {
    fn block(&self, number: usize) -> Option<&'static Block<X>> {
        let slab = self.slabs.get(number / SLAB)?.load(Ordering::Acquire);
        if slab.is_null() {
            return None;
        }
        // SAFETY: a slab has this many blocks, is never unmapped, and zeros are a valid block.
        Some(unsafe { &*slab.add(number % SLAB) })
    }

    fn claim(&self) -> Option<(u32, &'static Block<X>)> {
        let made = self.made.load(Ordering::Acquire) as usize;
        let free = |number: &usize| self.block(*number).is_some_and(|b| b.extra.take());
        let left = (0..made.min(SLAB * SLABS)).find(free);
        let number = match left {
            Some(number) => number,
            None => self.make_block()?,
        };
        let block = self.block(number)?;
        block.announced.store(true, Ordering::Relaxed);
        self.set(number);
        Some((number as u32, block))
    }

    /// Makes a block, and takes it.
    fn make_block(&self) -> Option<usize> {
        loop {
            let number = self.made.fetch_add(1, Ordering::AcqRel) as usize;
            if number >= SLAB * SLABS {
                self.made.fetch_sub(1, Ordering::AcqRel);
                return None;
            }
            self.make_slab(number / SLAB)?;
            // Another thread, that looked for one left over, may have been quicker.
            if self.block(number)?.extra.take() {
                return Some(number);
            }
        }
    }

    fn make_slab(&self, number: usize) -> Option<()> {
        map_once(self.slabs.get(number)?, SLAB * size_of::<Block<X>>(), own_pages).then_some(())
    }

    fn set(&self, number: usize) {
        if let Some(word) = self.active.get(number / SLAB) {
            word.fetch_or(1 << (number % SLAB), Ordering::Release);
        }
    }

    fn clear(&self, number: usize) {
        if let Some(word) = self.active.get(number / SLAB) {
            word.fetch_and(!(1 << (number % SLAB)), Ordering::Release);
        }
    }

    /// Blocks whose bit is set.
    fn active_blocks(&self) -> impl Iterator<Item = &'static Block<X>> {
        let words = (self.made.load(Ordering::Acquire) as usize).div_ceil(SLAB);
        let bits = |(at, word): (usize, &AtomicU64)| {
            let word = word.load(Ordering::Acquire);
            (0..SLAB).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * SLAB + bit)
        };
        self.active.iter().take(words).enumerate().flat_map(bits).filter_map(|n| self.block(n))
    }

    /// Owner: there are as many nodes as there may be. Others may have some that they do not need.
    #[cold]
    fn find_room(&self, block: &Block<X>) -> bool {
        let made = (self.made.load(Ordering::Acquire) as usize).min(SLAB * SLABS);
        (0..made).filter_map(|n| self.block(n)).any(|other| block.take_from(other))
    }

    /// Owner: its block gets commands again.
    fn announce(&self, block: &Block<X>) {
        if block.announced.swap(true, Ordering::Relaxed) {
            return;
        }
        self.set(block.number.load(Ordering::Relaxed) as usize);
    }

    /// Owner: its block is empty.
    fn retire(&self, block: &Block<X>) {
        block.announced.store(false, Ordering::Relaxed);
        self.clear(block.number.load(Ordering::Relaxed) as usize);
    }

    /// Clears the bit of an empty block whose thread has ended, as that would have.
    fn end(&self, block: &'static Block<X>) {
        if block.is_empty() && block.extra.take() {
            // No thread can put anything in now: it had to take the block first.
            if block.is_empty() {
                self.retire(block);
                block.give_spares(&self.nodes);
            }
            block.extra.release();
        }
    }
}
