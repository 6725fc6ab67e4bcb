//! Times of an execution of a list that is executed again before they were read: copied by the device.
//!
//! A list of the program's that is executed again signals the same events of ours, and what they hold is gone. Who
//! executes it so has a list of ours put before it, in the same call and the same queue:
//!
//! ```text
//!   queue:  … program's list │ barrier, copy the times of its events, barrier, reset them, barrier │ program's list …
//!           execution 1        a copier, a list of ours                                              execution 2
//! ```
//! A barrier without waits begins when all that was enqueued in its queue before has ended, and nothing behind it
//! begins earlier. So the times are those of execution 1, the events are as new for execution 2, and whoever has waited
//! for execution 2, in whichever way, has waited for ours: what the program may destroy then, we do not use any more.
//! Events of the program's are not copied: it may reset them meanwhile, and a copy would be undefined.
//!
//! A copier is one list's. It is used again when all that it has copied was read. All that belongs to the copiers of a
//! list is touched by who has the claim of these ([`Copiers`]); no model runs that.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::links::{Claim, Link};
use hetrace_interpose::commands::places::{Placed, Places};

use super::Why;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Executions of a list that may be copied at a time: the driver has a list and memory for each.
pub const MOST: u32 = 64;
const SUCCESS: u32 = 0;
/// `ze_structure_type_t`.
const STYPE_COMMAND_LIST_DESC: u64 = 0xf;
const STYPE_EVENT_POOL_DESC: u64 = 0x10;
const STYPE_EVENT_DESC: u64 = 0x11;
const STYPE_HOST_MEM_ALLOC_DESC: u64 = 0x16;
const HOST_VISIBLE: u64 = 1;
/// `ZE_EVENT_SCOPE_FLAG_HOST`: what the device has written is there when the event is signalled.
const FOR_HOST: u64 = 1 << 2;
const STYPE_QUEUE_GROUP_PROPERTIES: u64 = 0x6;
/// `ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE`.
const COMPUTE: u64 = 1;
/// Groups of queues that are asked about.
const GROUPS: usize = 16;
/// Words of a `ze_kernel_timestamp_result_t`: global start and end, and those of the context.
const WORDS: usize = 4;
const ALIGNMENT: u64 = 64;
/// A tick that nobody has copied.
const NOTHING: u64 = u64::MAX;
/// Tries to get the claim of a list's copiers, which others have for as long as one look takes.
const TRIES: u32 = 10_000;

/// What was asked of an event, or of a copy of its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was signalled: start and end in ticks.
    Ended([u64; 2]),
    Waits,
    /// The times of this use will never be known.
    Gone,
}

/// What a copier is made for.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The program's context and device.
    pub context: P,
    pub device: P,
    /// The group of queues.
    pub group: u32,
    /// That and the flags, as the description of a list has them.
    pub description: u64,
    /// How many events there are.
    pub events: u32,
}

/// The copiers of a list.
#[repr(C)]
#[derive(Debug)]
pub struct Copiers {
    next: Link,
    claim: Claim,
    /// The first one, and how many there are. Some may be of what the list was before it was reset.
    first: AtomicU32,
    count: AtomicU32,
    /// Those that are not used again.
    retired: AtomicU32,
    /// How often one was put before the list, and which, of the last ones.
    turn: AtomicU32,
    turns: [AtomicU32; MOST as usize],
    /// The driver does not copy for this list.
    refused: AtomicBool,
    /// Executions beside which others were going on: what their copies hold may be another's.
    disturbances: AtomicU32,
}

/// A list of ours that copies the times of one execution of a list of the program's. All zeros are a free one.
#[repr(C)]
#[derive(Debug)]
pub struct Copier {
    next: Link,
    /// The next one of the same list.
    sibling: AtomicU32,
    /// The handle of the program's context; NULL if it has no objects of the driver's.
    context: AtomicPtr<core::ffi::c_void>,
    list: AtomicPtr<core::ffi::c_void>,
    /// Signalled at its end.
    done: AtomicPtr<core::ffi::c_void>,
    pool: AtomicPtr<core::ffi::c_void>,
    /// Of each event what is copied, and behind that by whom it is wanted: see [`wanted_by`].
    memory: AtomicPtr<u64>,
    events: AtomicU32,
    /// Commands whose times it has, or will have, and that have not read them.
    left: AtomicU32,
    /// It was seen to have ended.
    has_ended: AtomicBool,
    /// It is not used again.
    retired: AtomicBool,
    /// [`Copiers::turn`] and [`Copiers::disturbances`] when it was enqueued.
    turn: AtomicU32,
    disturbances: AtomicU32,
}

// SAFETY: atomics only, for which zeros are valid.
unsafe impl Placed for Copier {
    fn next(&self) -> &Link {
        &self.next
    }
}

// SAFETY: atomics and a claim that is free, for which zeros are valid.
unsafe impl Placed for Copiers {
    fn next(&self) -> &Link {
        &self.next
    }
}

static COPIERS: Places<Copier, 8> = Places::new();
/// Those of each list that was ever executed again so; they stay that list's place's.
static OF_LISTS: Places<Copiers, 64> = Places::new();

/// The copiers with this number.
pub fn of(number: u32) -> Option<&'static Copiers> {
    OF_LISTS.get(number)
}

/// Copiers for a list, of which there are none yet. Returns their number, or 0 if there are too many.
pub fn none_yet() -> u32 {
    OF_LISTS.take().map_or(0, |(number, _)| number)
}

/// The use of an event that a command in flight waits for; never 0.
fn wanted_by(slot: u32, generation: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(generation)
}

impl Copiers {
    fn all(&self) -> impl Iterator<Item = (u32, &'static Copier)> {
        let mut number = self.first.load(Ordering::Relaxed);
        std::iter::from_fn(move || {
            let copier = COPIERS.get(number)?;
            let this = number;
            number = copier.sibling.load(Ordering::Relaxed);
            Some((this, copier))
        })
    }

    /// Runs `work` while nobody else is at them; without that only if somebody does not come back from a question.
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

    /// The list is another's from here on.
    pub fn begin(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// Whether the driver may copy for it.
    pub fn may_be(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// The driver does not do it.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Another thread executes the list at the same time: what is being copied may be of either execution.
    pub fn disturb(&self) {
        self.disturbances.fetch_add(1, Ordering::Release);
    }

    /// It is not used again.
    fn retire(&self, copier: &Copier) {
        if !copier.retired.swap(true, Ordering::Relaxed) {
            self.retired.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The copier that was put there at this turn, if that is not long ago.
    fn at(&self, turn: u32) -> Option<&'static Copier> {
        COPIERS.get(self.turns.get((turn % MOST) as usize)?.load(Ordering::Relaxed))
    }

    /// How often one was put before the list, with the next one.
    pub fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// There is none for this turn.
    pub fn skip(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether one could be used again if what it has copied were read: the oldest, if not all wait for it.
    pub fn has_unread(&self) -> bool {
        let asked = self.claim.holding(|| {
            let now = self.turn();
            let used = self.all().filter(|(_, copier)| !copier.is_unused());
            let oldest = used.max_by_key(|(_, copier)| now.wrapping_sub(copier.turn.load(Ordering::Relaxed)));
            oldest.is_some_and(|(_, copier)| copier.is_done())
        });
        asked == Some(true)
    }

    /// Gives back what nobody needs any more, of those that are not used again.
    fn sweep(&self) {
        if self.retired.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut before: Option<&Copier> = None;
        for (number, copier) in self.all() {
            let is_over = copier.retired.load(Ordering::Relaxed) && copier.is_unused() && copier.is_done();
            if !is_over {
                before = Some(copier);
                continue;
            }
            let after = copier.sibling.load(Ordering::Relaxed);
            before.map_or(&self.first, |b| &b.sibling).store(after, Ordering::Relaxed);
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.retired.fetch_sub(1, Ordering::Relaxed);
            copier.destroy();
            COPIERS.give(number);
        }
    }
}

impl Copier {
    /// The list of ours.
    pub fn list(&self) -> P {
        self.list.load(Ordering::Relaxed)
    }

    fn is_unused(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Whether it has ended. Who asks has the claim of the list's copiers.
    fn is_done(&self) -> bool {
        if self.has_ended.load(Ordering::Relaxed) {
            return true;
        }
        let done = self.done.load(Ordering::Relaxed);
        // SAFETY: an event of ours, which lives while this has it.
        let has_ended = !done.is_null() && unsafe { real::zeEventQueryStatus(done) } == SUCCESS;
        if has_ended {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        has_ended
    }

    /// What is copied of the event with this index, and who wants it.
    fn words(&self, index: u32) -> Option<(*mut u64, &AtomicU64)> {
        let (memory, events) = (self.memory.load(Ordering::Relaxed), self.events.load(Ordering::Relaxed));
        if memory.is_null() || index >= events {
            return None;
        }
        let (index, events) = (index as usize, events as usize);
        // SAFETY: memory of ours with five words for each of the events, of which this is one; it stays while who has
        // the claim looks at it, and the last ones are touched as atomics alone.
        unsafe { Some((memory.add(index * WORDS), AtomicU64::from_ptr(memory.add(events * WORDS + index)))) }
    }

    /// A command that has not read its times yet waits for this copy of them.
    pub fn keeps(&self, index: u32, slot: u32, generation: u32) {
        let Some((_, wanted)) = self.words(index) else { return };
        self.left.fetch_add(1, Ordering::Relaxed);
        wanted.store(wanted_by(slot, generation), Ordering::Relaxed);
    }

    /// Destroys what the driver has for it. It has ended, or the program has ended its context.
    fn destroy(&self) {
        let take = |place: &AtomicPtr<core::ffi::c_void>| place.swap(null_mut(), Ordering::Relaxed);
        let context = take(&self.context);
        let memory = self.memory.swap(std::ptr::null_mut(), Ordering::Relaxed);
        let (list, done, pool) = (take(&self.list), take(&self.done), take(&self.pool));
        self.left.store(0, Ordering::Relaxed);
        // SAFETY: objects of ours that nobody else has, in a live context, and that the device does not use.
        unsafe {
            if !list.is_null() {
                real::zeCommandListDestroy(list);
            }
            if !done.is_null() {
                real::zeEventDestroy(done);
            }
            if !pool.is_null() {
                real::zeEventPoolDestroy(pool);
            }
            if !memory.is_null() {
                real::zeMemFree(context, memory.cast());
            }
        }
    }

    /// Has the driver make it for a list: it copies and resets the events that `events` shows.
    fn make(&self, kind: &Kind, events: impl FnOnce(&mut dyn FnMut(P))) -> bool {
        let place = |word: &AtomicPtr<core::ffi::c_void>, handle: P| word.store(handle, Ordering::Relaxed);
        let (context, count) = (kind.context, kind.events);
        if count == 0 || !computes(kind.device, kind.group) {
            return false;
        }
        place(&self.context, context);
        self.left.store(0, Ordering::Relaxed);
        self.retired.store(false, Ordering::Relaxed);
        self.has_ended.store(true, Ordering::Relaxed);
        self.events.store(count, Ordering::Relaxed);
        let own = |desc: [u64; 3]| desc.map(u64::to_ne_bytes);
        let pool_desc = own([STYPE_EVENT_POOL_DESC, 0, HOST_VISIBLE | 1 << 32]);
        let list_desc = own([STYPE_COMMAND_LIST_DESC, 0, kind.description]);
        let memory_desc = own([STYPE_HOST_MEM_ALLOC_DESC, 0, 0]);
        let event_desc = [STYPE_EVENT_DESC, 0, FOR_HOST << 32, FOR_HOST];
        let bytes = u64::from(count) * (WORDS as u64 + 1) * 8;
        let (mut pool, mut done, mut copies, mut memory) = (null_mut(), null_mut(), null_mut(), null_mut());
        // SAFETY: a live context and device, descriptions of the API's own layouts, and places for what is made.
        unsafe {
            if real::zeMemAllocHost(context, memory_desc.as_ptr().cast(), bytes, ALIGNMENT, &raw mut memory)
                != SUCCESS
            {
                return false;
            }
            self.memory.store(memory.cast(), Ordering::Relaxed);
            if real::zeEventPoolCreate(context, pool_desc.as_ptr().cast(), 0, null_mut(), &raw mut pool)
                != SUCCESS
            {
                return false;
            }
            place(&self.pool, pool);
            if real::zeEventCreate(pool, event_desc.as_ptr().cast(), &raw mut done) != SUCCESS {
                return false;
            }
            place(&self.done, done);
            if real::zeCommandListCreate(context, kind.device, list_desc.as_ptr().cast(), &raw mut copies)
                != SUCCESS
            {
                return false;
            }
            place(&self.list, copies);
        }
        self.append(copies, done, count, events)
    }

    fn append(&self, copies: P, done: P, count: u32, events: impl FnOnce(&mut dyn FnMut(P))) -> bool {
        let Some((results, wanted)) = self.words(0) else { return false };
        let handles = wanted.as_ptr();
        // Where it will stand who wants the copies there is room for the events, which the API takes as an array.
        let mut shown = 0;
        events(&mut |event| {
            if shown < count {
                // SAFETY: memory of ours with a word for each of so many.
                unsafe { handles.add(shown as usize).write(event as u64) };
                shown += 1;
            }
        });
        if shown != count {
            return false;
        }
        let (none, nobody) = (null_mut(), null_mut());
        // SAFETY: a list of ours in its open state, live events of its context, and memory that its device writes to,
        // with room for as many results. The API keeps no reference to the array.
        unsafe {
            let mut error = real::zeCommandListAppendBarrier(copies, none, 0, nobody);
            error |= real::zeCommandListAppendQueryKernelTimestamps(
                copies,
                count,
                handles.cast(),
                results.cast(),
                std::ptr::null(),
                none,
                0,
                nobody,
            );
            error |= real::zeCommandListAppendBarrier(copies, none, 0, nobody);
            for index in 0..count as usize {
                if error != SUCCESS {
                    return false;
                }
                let event = handles.add(index).read() as P;
                error |= real::zeCommandListAppendEventReset(copies, event);
                handles.add(index).write(0);
            }
            error |= real::zeCommandListAppendBarrier(copies, done, 0, nobody);
            error == SUCCESS && real::zeCommandListClose(copies) == SUCCESS
        }
    }

    /// It will be enqueued: nothing is copied yet.
    fn begin(&self, disturbances: u32) -> bool {
        let done = self.done.load(Ordering::Relaxed);
        // SAFETY: an event of ours whose list has ended, or was not executed yet.
        if unsafe { real::zeEventHostReset(done) } != SUCCESS {
            return false;
        }
        for index in 0..self.events.load(Ordering::Relaxed) {
            let Some((results, wanted)) = self.words(index) else { return false };
            wanted.store(0, Ordering::Relaxed);
            // SAFETY: memory of ours that no device writes to now; who has the claim touches it.
            unsafe {
                results.write_volatile(NOTHING);
                results.add(1).write_volatile(NOTHING);
            }
        }
        self.disturbances.store(disturbances, Ordering::Relaxed);
        self.has_ended.store(false, Ordering::Relaxed);
        true
    }

    /// Takes the ticks that were copied for a use of an event, if they are there.
    fn read(&self, index: u32, wanted: u64) -> Option<Option<[u64; 2]>> {
        let (results, place) = self.words(index)?;
        if place.load(Ordering::Relaxed) != wanted {
            return None;
        }
        if !self.is_done() {
            return Some(None);
        }
        place.store(0, Ordering::Relaxed);
        self.left.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: memory of ours, where the device has written the results; its event has made them visible.
        unsafe { Some(Some([results.read_volatile(), results.add(1).read_volatile()])) }
    }
}

/// Whether queues of a group compute. In others, which only copy, drivers may not have what copies times.
#[cold]
fn computes(device: P, group: u32) -> bool {
    let mut groups = [[0u64; 5]; GROUPS];
    for group in &mut groups {
        group[0] = STYPE_QUEUE_GROUP_PROPERTIES;
    }
    let mut count = GROUPS as u32;
    // SAFETY: a live device, and room for as many answers as we say, in the API's own layout.
    let error = unsafe {
        real::zeDeviceGetCommandQueueGroupProperties(device, &raw mut count, groups.as_mut_ptr().cast())
    };
    let known = groups.get(..count as usize).unwrap_or_default();
    error == SUCCESS && known.get(group as usize).is_some_and(|group| group[2] & COMPUTE != 0)
}

/// A copier that is to be put before the next execution of a list. `events` shows the events of its commands.
pub fn take(
    copiers: &'static Copiers,
    kind: &Kind,
    mut events: impl FnMut(&mut dyn FnMut(P)),
) -> Result<(u32, &'static Copier), Why> {
    copiers.exclusively(|| {
        copiers.sweep();
        let disturbances = copiers.disturbances.load(Ordering::Acquire);
        let is_free = |copier: &Copier| {
            !copier.retired.load(Ordering::Relaxed) && copier.is_unused() && copier.is_done()
        };
        let (number, copier) = match copiers.all().find(|(_, copier)| is_free(copier)) {
            Some(free) => free,
            None if copiers.count.load(Ordering::Relaxed) >= MOST => return Err(Why::Copies),
            None => {
                let (number, copier) = COPIERS.take().ok_or(Why::Copies)?;
                if !copier.make(kind, &mut events) {
                    copier.destroy();
                    COPIERS.give(number);
                    return Err(Why::Uncopied);
                }
                copier.sibling.store(copiers.first.load(Ordering::Relaxed), Ordering::Relaxed);
                copiers.first.store(number, Ordering::Relaxed);
                copiers.count.fetch_add(1, Ordering::Relaxed);
                (number, copier)
            }
        };
        if !copier.begin(disturbances) {
            return Err(Why::Uncopied);
        }
        let turn = copiers.turn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        copier.turn.store(turn, Ordering::Relaxed);
        if let Some(place) = copiers.turns.get((turn % MOST) as usize) {
            place.store(number, Ordering::Relaxed);
        }
        Ok((number, copier))
    })
}

/// The driver did not take it: nobody knows whether it will run. It is not used again, nor what it would copy.
pub fn failed(copiers: &Copiers, copier: &Copier) {
    copiers.refuse();
    copiers.exclusively(|| {
        copiers.retire(copier);
        for index in 0..copier.events.load(Ordering::Relaxed) {
            if let Some((_, wanted)) = copier.words(index) {
                wanted.store(0, Ordering::Relaxed);
            }
        }
        copier.left.store(0, Ordering::Relaxed);
    });
}

/// Whether one of these copiers has ended. `false` if that can't be asked now.
pub fn has_ended(copiers: u32, copier: u32) -> bool {
    let Some(copiers) = of(copiers) else { return false };
    let asked = copiers.claim.holding(|| COPIERS.get(copier).is_some_and(Copier::is_done));
    asked == Some(true)
}

/// What was copied for a use of an event, which a copier of this turn should have.
pub fn ask(copiers: u32, index: u32, turn: u32, slot: u32, generation: u32) -> Answer {
    let Some(copiers) = of(copiers) else { return Answer::Gone };
    let wanted = wanted_by(slot, generation);
    let asked = copiers.claim.holding(|| {
        let read = |copier: &'static Copier| Some((copier, copier.read(index, wanted)?));
        let likely = copiers.at(turn).and_then(read);
        let found = likely.or_else(|| copiers.all().find_map(|(_, copier)| read(copier)));
        match found {
            None => Answer::Gone,
            Some((_, None)) => Answer::Waits,
            // Read after the device has ended: who disturbed it has said so before.
            Some((copier, Some(ticks))) => {
                let now = copiers.disturbances.load(Ordering::Acquire);
                let is_certain = copier.disturbances.load(Ordering::Relaxed) == now;
                if is_certain && !ticks.contains(&NOTHING) { Answer::Ended(ticks) } else { Answer::Gone }
            }
        }
    });
    asked.unwrap_or(Answer::Waits)
}

/// The program resets or destroys a list, whose last execution has ended then, and with it what stood before. Returns
/// whether that is so: else its events must never be anybody's again.
pub fn retire(copiers: &Copiers) -> bool {
    if copiers.first.load(Ordering::Relaxed) == 0 {
        return true;
    }
    copiers.exclusively(|| {
        let mut have_ended = true;
        for (_, copier) in copiers.all() {
            copiers.retire(copier);
            have_ended &= copier.is_done();
        }
        copiers.sweep();
        have_ended
    })
}

/// Whether there are copies of a list's that were not read.
pub fn are_left(copiers: &Copiers) -> bool {
    copiers.all().any(|(_, copier)| !copier.is_unused())
}

/// A context is about to be destroyed: so is what we have in it.
pub fn context_ends(context: P) {
    let is_of = |(_, copier): &(u32, &Copier)| copier.context.load(Ordering::Relaxed) == context;
    for copiers in
        OF_LISTS.all().map(|(_, copiers)| copiers).filter(|copiers| copiers.all().any(|c| is_of(&c)))
    {
        copiers.exclusively(|| {
            for (_, copier) in copiers.all().filter(is_of) {
                copier.destroy();
                copiers.retire(copier);
                copier.has_ended.store(true, Ordering::Relaxed);
            }
            copiers.sweep();
        });
    }
}
