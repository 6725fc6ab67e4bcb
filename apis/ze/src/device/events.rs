//! Events by which commands are timed: some of ours, and those of the program that have times.
//!
//! An event keeps the times of the command that signalled it last. So each use has a number, and what was not read
//! when the next use begins is read then ([`Slot::prepare`]). Where that can't be done, because the last use may not
//! have ended, nobody can say whose the times will be: both are given up, and so are later ones until it is known that
//! nothing is in flight (`muddled`).
//!
//! ```text
//!   free ──take──► in use: a command or a list has it ──ask: ended──► reset ──► free      ours
//!   program's handle ──use──► in flight ──ask: ended, or the program resets it──► …       theirs
//! ```
//!
//! Of a list that is executed again before its times were read the device copies them ([`copies`]), in a list of ours that
//! stands between the two executions. Until that has ended, an event may show the times of the first one (`behind`).
//!
//! A slot is one holder's until the last of those who count themselves in (`holds`) gives it back, once. No model runs that.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::links::{Claim, Link, Spares};
use hetrace_interpose::commands::places::{Placed, Places};
use hetrace_interpose::table::Table;

pub use super::copies::Answer;
use super::{STORE, copies, waits};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

pub const SUCCESS: u32 = 0;
const NOT_READY: u32 = 1;
const STYPE_EVENT_POOL_DESC: u32 = 0x10;
const STYPE_EVENT_DESC: u32 = 0x11;
const HOST_VISIBLE: u32 = 1;
const KERNEL_TIMESTAMP: u32 = 1 << 2;
/// Events of ours that are made at a time.
const POOL: u32 = 128;
/// Tries to get a slot that another thread is at; it asks the driver one question.
const TRIES: u32 = 10_000;

/// A context of the program, and the free events of ours in it.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    next: Link,
    handle: AtomicU64,
    free: Spares,
    /// The driver makes no events with times.
    refused: AtomicBool,
}

// SAFETY: atomics only, for which zeros are valid.
unsafe impl Placed for Context {
    fn next(&self) -> &Link {
        &self.next
    }
}

/// An event. All zeros are a free one.
#[repr(C)]
#[derive(Debug)]
pub struct Slot {
    next: Link,
    /// Its handle; NULL if it is gone.
    event: AtomicPtr<core::ffi::c_void>,
    /// Ours: the number of the context. The program's: 0.
    context: AtomicU32,
    /// Ours: the pool that it is of, in the first event of each.
    pool: AtomicPtr<core::ffi::c_void>,
    /// The program's: it may be used again without a reset.
    counts: AtomicBool,
    /// Who has it: the program's handle, a list that has recorded it, each command in flight.
    holds: AtomicU32,
    /// Who asks, or begins a use. All below belongs to who has it.
    claim: Claim,
    /// The number of the use.
    generation: AtomicU32,
    /// The use has begun, and its times were not read.
    in_flight: AtomicBool,
    /// A use may be in flight of which the times must not be taken for another's.
    muddled: AtomicBool,
    /// Ticks that were read last: an event that still has them was not signalled anew.
    last: [AtomicU64; 2],
    /// The use whose ticks were read when the next one began, and these.
    kept_of: AtomicU32,
    kept: [AtomicU64; 2],
    /// The number of the list's command that has recorded it last.
    pub recorded: AtomicU32,
    /// Where it is used, and since when, in the host's ticks.
    queue: AtomicU64,
    since: AtomicU64,
    /// A command in flight will ask for the times of the use.
    is_wanted: AtomicBool,
    /// The copiers that copy it, by their number, and its index there.
    copiers: AtomicU32,
    index: AtomicU32,
    /// The number of a use, less the turn of the copier that copied it.
    ahead: AtomicU32,
    /// The copier before which it may have the times of the use before: [`BEHIND_ALL`] if none stands between the two.
    behind: AtomicU32,
}

/// Nobody has copied and reset an event before it was used again: what it has is of the last use when all have ended.
const BEHIND_ALL: u32 = u32::MAX;

// SAFETY: atomics only, for which zeros are valid.
unsafe impl Placed for Slot {
    fn next(&self) -> &Link {
        &self.next
    }
}

static SLOTS: Places<Slot, 4096> = Places::new();
static CONTEXTS: Places<Context, 16> = Places::new();
/// Handle → number.
static BY_CONTEXT: Table<4096> = Table::new();
/// Handles of the program's events, and of its pools: what is known of them, and the number of a slot.
static EVENTS: Table<65536> = Table::new();
static POOLS: Table<16384> = Table::new();

/// Bits of a value in these two tables.
pub mod known {
    /// It has times.
    pub const TIMED: u64 = 1 << 40;
    /// It has none.
    pub const PLAIN: u64 = 1 << 41;
    /// It may be used again without a reset.
    pub const COUNTS: u64 = 1 << 42;
    /// Of a pool: flags were added by us, and those of the program are the low bits.
    pub const ADDED: u64 = 1 << 43;
    /// It has times that the host can't see.
    pub const HIDDEN: u64 = 1 << 44;
}

/// What an event of the program is good for.
#[derive(Debug, Clone, Copy)]
pub enum Theirs {
    /// It has the times of what signals it.
    Timed(u32, &'static Slot),
    /// It has none.
    Plain,
    /// Nothing is known of it, or its times can't be seen by the host.
    Unknown,
}

/// A context of the program.
pub fn context(handle: P) -> Option<(u32, &'static Context)> {
    if let Some(number) = BY_CONTEXT.get(handle as u64) {
        return Some((number as u32, CONTEXTS.get(number as u32)?));
    }
    let (number, context) = CONTEXTS.take()?;
    context.handle.store(handle as u64, Ordering::Relaxed);
    context.refused.store(false, Ordering::Relaxed);
    BY_CONTEXT.set(handle as u64, number.into()).then_some((number, context))
}

/// The slot of a number.
pub fn slot(number: u32) -> Option<&'static Slot> {
    SLOTS.get(number)
}

/// Remembers what a pool of the program's events is like.
pub fn pool_made(pool: P, what: u64) {
    POOLS.set(pool as u64, what);
}

/// What is known of a pool: 0 if it was made by somebody else.
pub fn pool(pool: P) -> u64 {
    POOLS.get(pool as u64).unwrap_or(0)
}

pub fn pool_gone(pool: P) {
    POOLS.remove(pool as u64);
}

/// The program was given an event. Its handle may have been another's.
pub fn event_made(event: P, what: u64) {
    if what == 0 {
        EVENTS.remove(event as u64);
    } else {
        EVENTS.set(event as u64, what & (known::TIMED | known::PLAIN | known::COUNTS | known::HIDDEN));
    }
}

/// What an event of the program is good for.
pub fn theirs(event: P) -> Theirs {
    let Some(word) = EVENTS.get(event as u64) else { return Theirs::Unknown };
    if word & known::TIMED == 0 {
        return if word & known::PLAIN != 0 { Theirs::Plain } else { Theirs::Unknown };
    }
    match word as u32 {
        0 => first_use(event, word).map_or(Theirs::Unknown, |(number, slot)| Theirs::Timed(number, slot)),
        number => SLOTS.get(number).map_or(Theirs::Unknown, |slot| Theirs::Timed(number, slot)),
    }
}

#[cold]
fn first_use(event: P, word: u64) -> Option<(u32, &'static Slot)> {
    let (number, slot) = SLOTS.take()?;
    slot.begin(event, 0, word & known::COUNTS != 0);
    if EVENTS.set(event as u64, word | u64::from(number)) {
        return Some((number, slot));
    }
    slot.event.store(null_mut(), Ordering::Relaxed);
    let_go(number);
    None
}

/// Whether the times of what signals the program's event were not read yet.
pub fn is_in_flight(event: P) -> bool {
    matches!(known_slot(event), Theirs::Timed(_, slot) if slot.is_in_flight())
}

/// The program's event is about to be reset by the host. `reset` does so.
pub fn reset(event: P, reset: impl FnOnce() -> u32) -> u32 {
    let Theirs::Timed(_, slot) = known_slot(event) else { return reset() };
    slot.exclusively(|| slot.keep());
    let result = reset();
    slot.exclusively(|| {
        if result == SUCCESS && !slot.in_flight.load(Ordering::Relaxed) {
            slot.muddled.store(false, Ordering::Relaxed);
            slot.forget_last();
        }
    });
    result
}

/// The program's event is about to be destroyed.
pub fn destroyed(event: P) {
    if let Theirs::Timed(number, slot) = known_slot(event) {
        slot.exclusively(|| {
            slot.keep();
            slot.next_use();
            slot.event.store(null_mut(), Ordering::Relaxed);
        });
        let_go(number);
    }
    EVENTS.remove(event as u64);
}

/// As [`theirs`], for an event that has been used.
fn known_slot(event: P) -> Theirs {
    match EVENTS.get(event as u64) {
        Some(word) if word as u32 != 0 => theirs(event),
        _ => Theirs::Unknown,
    }
}

/// A free event of ours, which the caller holds. `None` if there is none to be had.
pub fn take((number, context): (u32, &'static Context)) -> Option<(u32, &'static Slot)> {
    let mut free = context.free.take(|n| SLOTS.get(n).map(Slot::next));
    if free == 0 {
        free = make(number, context)?;
    }
    let slot = SLOTS.get(free)?;
    slot.holds.store(1, Ordering::Relaxed);
    Some((free, slot))
}

/// Makes some events. Returns one, and keeps the others for later.
#[cold]
fn make(number: u32, context: &'static Context) -> Option<u32> {
    if context.refused.load(Ordering::Relaxed) || SLOTS.get(STORE.limit()).is_some() {
        return None;
    }
    let mut desc = [0u64; 3];
    desc[0] = STYPE_EVENT_POOL_DESC.into();
    desc[2] = u64::from(HOST_VISIBLE | KERNEL_TIMESTAMP) | u64::from(POOL) << 32;
    let mut pool = null_mut();
    let handle = context.handle.load(Ordering::Relaxed) as P;
    // SAFETY: a live context, a description of the API's own layout, and a place for the pool. No list of devices: all.
    let error =
        unsafe { real::zeEventPoolCreate(handle, desc.as_ptr().cast(), 0, null_mut(), &raw mut pool) };
    if error != SUCCESS {
        context.refused.store(true, Ordering::Relaxed);
        return None;
    }
    let mut first = None;
    for index in 0..POOL {
        // No cache is written back for it: what commands write is not ours to read.
        let desc = [u64::from(STYPE_EVENT_DESC), 0, index.into(), 0];
        let mut event = null_mut();
        // SAFETY: a live pool with room for so many events, a description as above, and a place for the event.
        let error = unsafe { real::zeEventCreate(pool, desc.as_ptr().cast(), &raw mut event) };
        let Some((free, slot)) = SLOTS.take().filter(|_| error == SUCCESS) else { break };
        slot.begin(event, number, false);
        slot.holds.store(0, Ordering::Relaxed);
        if index == 0 {
            slot.pool.store(pool, Ordering::Relaxed);
            first = Some(free);
        } else {
            context.free.give(free, &slot.next);
        }
    }
    first
}

/// One holder less: the last one gives the slot back.
pub fn let_go(number: u32) {
    let Some(slot) = SLOTS.get(number) else { return };
    if slot.holds.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    let context = slot.context.load(Ordering::Relaxed);
    slot.exclusively(|| {
        let event = slot.event();
        match CONTEXTS.get(context) {
            // It may be signalled at any time: nobody must have it again.
            Some(_) if !event.is_null() && slot.is_in_flight() => {}
            Some(context) if !event.is_null() => {
                // SAFETY: an event of ours that lives, and that no command will signal.
                if unsafe { real::zeEventHostReset(event) } == SUCCESS {
                    slot.next_use();
                    slot.muddled.store(false, Ordering::Relaxed);
                    slot.copiers.store(0, Ordering::Relaxed);
                    slot.behind.store(0, Ordering::Relaxed);
                    context.free.give(number, &slot.next);
                }
            }
            Some(_) => slot.give_to_all(number, context),
            None => SLOTS.give(number),
        }
    });
}

/// A context is about to be destroyed: so are our events in it, and what is in flight there is lost.
pub fn context_ends(handle: P) {
    let Some(number) = BY_CONTEXT.remove(handle as u64).map(|n| n as u32) else { return };
    let Some(context) = CONTEXTS.get(number) else { return };
    let ours = || SLOTS.all().filter(|(_, slot)| slot.context.load(Ordering::Relaxed) == number);
    for (_, slot) in ours() {
        slot.exclusively(|| {
            slot.keep();
            slot.next_use();
            slot.in_flight.store(false, Ordering::Relaxed);
            let event = slot.event.swap(null_mut(), Ordering::Relaxed);
            if !event.is_null() {
                // SAFETY: an event of ours; the program destroys the context, so it has no commands any more.
                unsafe { real::zeEventDestroy(event) };
            }
        });
    }
    for (_, slot) in ours() {
        let pool = slot.pool.swap(null_mut(), Ordering::Relaxed);
        if !pool.is_null() {
            // SAFETY: a pool of ours, all of whose events are destroyed.
            unsafe { real::zeEventPoolDestroy(pool) };
        }
    }
    while context.free.take(|n| SLOTS.get(n).map(Slot::next)) != 0 {}
    for (place, slot) in ours().filter(|(_, slot)| slot.holds.load(Ordering::Acquire) == 0) {
        slot.give_to_all(place, number);
    }
    CONTEXTS.give(number);
}

/// What an event says now.
fn query(event: P) -> Answer {
    if event.is_null() {
        return Answer::Gone;
    }
    // Global start and end, and those of its context.
    let mut ticks = [0u64; 4];
    // SAFETY: a live event with times, and room for the answer.
    match unsafe { real::zeEventQueryKernelTimestamp(event, ticks.as_mut_ptr().cast()) } {
        SUCCESS => Answer::Ended([ticks[0], ticks[1]]),
        NOT_READY => Answer::Waits,
        _ => Answer::Gone,
    }
}

impl Slot {
    fn begin(&self, event: P, context: u32, counts: bool) {
        self.context.store(context, Ordering::Relaxed);
        self.counts.store(counts, Ordering::Relaxed);
        self.holds.store(1, Ordering::Relaxed);
        self.in_flight.store(false, Ordering::Relaxed);
        self.muddled.store(false, Ordering::Relaxed);
        self.pool.store(null_mut(), Ordering::Relaxed);
        self.copiers.store(0, Ordering::Relaxed);
        self.behind.store(0, Ordering::Relaxed);
        self.forget_last();
        self.next_use();
        self.event.store(event, Ordering::Release);
    }

    /// The context in which it was ours is gone. Gives it back, once, whoever comes first.
    fn give_to_all(&self, number: u32, context: u32) {
        let (ours, order) = (&self.context, Ordering::AcqRel);
        if ours.compare_exchange(context, 0, order, Ordering::Relaxed).is_ok() {
            SLOTS.give(number);
        }
    }

    /// Its handle.
    pub fn event(&self) -> P {
        self.event.load(Ordering::Relaxed)
    }

    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.context.load(Ordering::Relaxed) != 0
    }

    /// One holder more.
    pub fn hold(&self) {
        self.holds.fetch_add(1, Ordering::Relaxed);
    }

    fn next_use(&self) -> u32 {
        self.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    fn forget_last(&self) {
        for word in &self.last {
            word.store(u64::MAX, Ordering::Relaxed);
        }
    }

    /// Runs `work` while no other thread asks; without that only if one does not come back from a question.
    fn exclusively<R>(&self, mut work: impl FnMut() -> R) -> R {
        for _ in 0..TRIES {
            if let Some(result) = self.claim.holding(&mut work) {
                return result;
            }
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        }
        work()
    }

    /// Whether what the event shows can't be of the use before. A copier that was seen to have ended is not asked again.
    fn is_of_this_use(&self) -> bool {
        match self.behind.load(Ordering::Relaxed) {
            0 => return true,
            BEHIND_ALL => return self.has_ended(),
            copier if !copies::has_ended(self.copiers.load(Ordering::Relaxed), copier) => return false,
            _ => self.behind.store(0, Ordering::Relaxed),
        }
        true
    }

    /// What the event says, if that is of this use.
    fn look(&self) -> Answer {
        if !self.is_of_this_use() {
            return Answer::Waits;
        }
        let answer = query(self.event());
        if let Answer::Ended(ticks) = answer {
            // Both differ, or it is being signalled just now.
            if self.shows_last(ticks) {
                return Answer::Waits;
            }
            for (word, tick) in self.last.iter().zip(ticks) {
                word.store(tick, Ordering::Relaxed);
            }
        }
        answer
    }

    /// Whether one of these ticks is that which was read last.
    fn shows_last(&self, ticks: [u64; 2]) -> bool {
        self.last.iter().zip(ticks).any(|(last, tick)| last.load(Ordering::Relaxed) == tick)
    }

    /// Keeps the ticks of the use that is in flight, if it has ended; that use is over then.
    fn keep(&self) {
        if !self.in_flight.load(Ordering::Relaxed) {
            return;
        }
        if let Answer::Ended(ticks) = self.look() {
            for (word, tick) in self.kept.iter().zip(ticks) {
                word.store(tick, Ordering::Relaxed);
            }
            self.kept_of.store(self.generation.load(Ordering::Relaxed), Ordering::Relaxed);
            self.in_flight.store(false, Ordering::Relaxed);
            self.next_use();
        }
    }

    /// Whether a use is in flight whose times were not read yet.
    pub fn is_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// A command that signals it is about to be enqueued. Returns the number of the use; `None` if its times could be
    /// another's.
    pub fn prepare(&self) -> Option<u32> {
        self.exclusively(|| {
            if !self.is_ours() && !self.is_in_flight() {
                // What signalled it last may be of a command that we have not seen.
                self.look();
            }
            self.keep();
            let was_left = self.in_flight.swap(false, Ordering::Relaxed);
            let counts = self.counts.load(Ordering::Relaxed);
            if was_left && !counts && !self.has_ended() {
                self.muddled.store(true, Ordering::Relaxed);
            }
            if self.has_ended() {
                self.muddled.store(false, Ordering::Relaxed);
            }
            self.since.store(u64::MAX, Ordering::Relaxed);
            let number = self.next_use();
            if self.muddled.load(Ordering::Relaxed) {
                return None;
            }
            // SAFETY: an event of ours that no command is about to signal.
            if self.is_ours() && unsafe { real::zeEventHostReset(self.event()) } != SUCCESS {
                return None;
            }
            if self.is_ours() {
                self.forget_last();
                self.behind.store(0, Ordering::Relaxed);
            }
            self.is_wanted.store(false, Ordering::Relaxed);
            self.in_flight.store(true, Ordering::Relaxed);
            Some(number)
        })
    }

    /// As [`Slot::prepare`], for an event of ours whose list is about to be executed again in the same queue, while its
    /// last use was not read. `copier` stands between the two, if there is one, and copies this event's times for the
    /// place with this index. `keep` gets the number of the last use if a command waits for its times.
    pub fn prepare_behind(
        &self,
        copier: Option<u32>,
        (copiers, turn): (u32, u32),
        index: u32,
        mut keep: impl FnMut(u32),
    ) {
        // If it was not clear whose times it has, perhaps it is known by now that nothing is in flight.
        if self.muddled.load(Ordering::Relaxed) && self.prepare().is_none() {
            return;
        }
        self.exclusively(|| {
            if self.is_in_flight() && self.is_wanted.swap(false, Ordering::Relaxed) {
                // Before the number changes: nobody must find it nowhere.
                keep(self.generation.load(Ordering::Relaxed));
            }
            let ahead = self.generation.load(Ordering::Relaxed).wrapping_sub(turn);
            self.ahead.store(ahead, Ordering::Relaxed);
            self.copiers.store(copiers, Ordering::Relaxed);
            self.index.store(index, Ordering::Relaxed);
            self.behind.store(copier.unwrap_or(BEHIND_ALL), Ordering::Relaxed);
            self.since.store(u64::MAX, Ordering::Relaxed);
            self.in_flight.store(true, Ordering::Relaxed);
            self.next_use();
        });
    }

    /// The copier before its use is not enqueued after all.
    pub fn is_behind_none(&self) {
        self.behind.store(BEHIND_ALL, Ordering::Relaxed);
    }

    /// Whether its last use seems to have ended, so that asking is worth it.
    pub fn seems_to_have_ended(&self) -> bool {
        let asked =
            self.claim.holding(|| self.is_of_this_use() && matches!(query(self.event()), Answer::Ended(_)));
        asked == Some(true)
    }

    /// Whether the program has waited for all that was enqueued where it is used.
    fn has_ended(&self) -> bool {
        let (queue, since) = (self.queue.load(Ordering::Relaxed), self.since.load(Ordering::Relaxed));
        waits::covers(queue, since)
    }

    /// Whether no list's command was given it after the one with this number.
    pub fn was_given_last(&self, recorded: u32) -> bool {
        self.recorded.load(Ordering::Relaxed) == recorded
    }

    /// The number of the use, if one is in flight. A command will ask for its times.
    pub fn in_use(&self) -> Option<u32> {
        self.is_in_flight().then(|| {
            self.is_wanted.store(true, Ordering::Relaxed);
            self.generation.load(Ordering::Relaxed)
        })
    }

    /// An event of ours that was just taken is given to a command.
    pub fn first_use(&self) -> u32 {
        self.in_flight.store(true, Ordering::Relaxed);
        self.generation.load(Ordering::Relaxed)
    }

    /// The command was enqueued in this queue, at this time.
    pub fn used(&self, queue: P, at: u64) {
        // One that may be signalled from two queues is nowhere.
        let before = self.queue.swap(queue as u64, Ordering::Relaxed);
        let elsewhere = before != 0 && before != queue as u64 && self.muddled.load(Ordering::Relaxed);
        self.since.store(if elsewhere { u64::MAX } else { at }, Ordering::Relaxed);
    }

    /// What signals it next is not timed, and must not be taken for what comes after that.
    pub fn passes_by(&self) {
        self.in_flight.store(false, Ordering::Relaxed);
        self.muddled.store(true, Ordering::Relaxed);
    }

    /// The command was not enqueued after all.
    pub fn not_used(&self) {
        self.in_flight.store(false, Ordering::Relaxed);
        if self.behind.load(Ordering::Relaxed) != 0 {
            // The use before it may not have ended.
            self.muddled.store(true, Ordering::Relaxed);
        }
        let since = if self.muddled.load(Ordering::Relaxed) { u64::MAX } else { 0 };
        self.since.store(since, Ordering::Relaxed);
    }

    /// Asks whether a use has ended, of the event with this number.
    pub fn ask(&self, number: u32, generation: u32) -> Answer {
        let asked = self.claim.holding(|| {
            if self.generation.load(Ordering::Relaxed) == generation {
                let answer = self.look();
                if matches!(answer, Answer::Ended(_)) {
                    self.in_flight.store(false, Ordering::Relaxed);
                }
                return answer;
            }
            if self.kept_of.load(Ordering::Relaxed) == generation {
                let [start, end] = &self.kept;
                return Answer::Ended([start.load(Ordering::Relaxed), end.load(Ordering::Relaxed)]);
            }
            let (copiers, index) = (self.copiers.load(Ordering::Relaxed), self.index.load(Ordering::Relaxed));
            let turn = generation.wrapping_sub(self.ahead.load(Ordering::Relaxed));
            match copies::ask(copiers, index, turn, number, generation) {
                // No two uses have the same times.
                Answer::Ended(ticks) if self.shows_last(ticks) => Answer::Gone,
                answer => answer,
            }
        });
        asked.unwrap_or(Answer::Waits)
    }
}
