//! Command lists: which are queues themselves, and the commands of those that are executed later.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::links::{Claim, Link};
use hetrace_interpose::commands::places::{Placed, Places};
use hetrace_interpose::commands::{Depth, Recording};
use hetrace_interpose::table::Table;

use super::clock::{self, Device};
use super::copies::{self, Copiers};
use super::events::{self, SUCCESS, Slot};
use super::{Asking, STORE, queues};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// `ZE_COMMAND_LIST_FLAG_IN_ORDER` and `ZE_COMMAND_QUEUE_FLAG_IN_ORDER`.
const LIST_IN_ORDER: u32 = 1 << 3;
const QUEUE_IN_ORDER: u32 = 1 << 1;

/// Tries to get a recording that another thread is at, which the API forbids.
const TRIES: u32 = 1000;

/// A command list. All zeros are a free one.
#[repr(C)]
#[derive(Debug)]
pub struct List {
    next: Link,
    handle: AtomicU64,
    context: AtomicU64,
    device: AtomicU64,
    /// The group of queues that it is for.
    ordinal: AtomicU32,
    immediate: AtomicBool,
    in_order: AtomicBool,
    /// A clone signals the same events, or its commands were changed: none of them has times.
    spoiled: AtomicBool,
    /// It was closed outside of a capture window: what is appended there we do not see.
    outside: AtomicBool,
    /// Commands of it that have no times, and those that were recorded.
    untimed: AtomicU32,
    commands: AtomicU32,
    /// A thread is about to execute it.
    entered: AtomicBool,
    /// The queue in which it was executed last.
    queue: AtomicU64,
    /// The number of its copiers; 0 if it never had any.
    copiers: AtomicU32,
    /// Who has the recording: the API lets one thread at a time use a list, and programs may do as they like.
    claim: Claim,
    recording: UnsafeCell<Recording>,
}

// SAFETY: atomics, and a recording that only who has the claim touches; zeros are valid, and an empty recording.
unsafe impl Sync for List {}
// SAFETY: zeros are a list that nobody has: atomics, a claim that is free, and an empty recording.
unsafe impl Placed for List {
    fn next(&self) -> &Link {
        &self.next
    }
}

static LISTS: Places<List, 1024> = Places::new();
/// Handle → number.
static BY_HANDLE: Table<65536> = Table::new();

/// The list of a handle, if it was made since we look. An immediate one that was there before is asked for.
pub fn of(handle: P) -> Option<&'static List> {
    match BY_HANDLE.get(handle as u64) {
        Some(number) => LISTS.get(number as u32),
        None => meet(handle),
    }
}

/// The list of a handle, if it is known.
pub fn known(handle: P) -> Option<&'static List> {
    LISTS.get(BY_HANDLE.get(handle as u64)? as u32)
}

/// Since 1.9 lists can be asked what they are.
#[cold]
fn meet(handle: P) -> Option<&'static List> {
    let (mut immediate, mut flags, mut device, mut context) = (0u8, 0u32, null_mut(), null_mut());
    // SAFETY: the handle that the program appends to, and room for each answer.
    let errors = unsafe {
        real::zeCommandListIsImmediate(handle, &raw mut immediate)
            | real::zeCommandListImmediateGetFlags(handle, &raw mut flags)
            | real::zeCommandListGetDeviceHandle(handle, &raw mut device)
            | real::zeCommandListGetContextHandle(handle, &raw mut context)
    };
    if errors != SUCCESS || immediate == 0 {
        return None;
    }
    immediate_made(handle, context, device, flags);
    known(handle)
}

/// The program was given an immediate list, which is a queue as well.
pub fn immediate_made(handle: P, context: P, device: P, flags: u32) {
    made(handle, context, device, 0, true, flags & QUEUE_IN_ORDER != 0);
    queues::made(handle, context, device, 0);
}

/// The program was given a list that is executed later.
pub fn regular_made(handle: P, context: P, device: P, ordinal: u32, flags: u32) {
    made(handle, context, device, ordinal, false, flags & LIST_IN_ORDER != 0);
}

fn made(handle: P, context: P, device: P, ordinal: u32, immediate: bool, in_order: bool) {
    gone(handle);
    let Some((number, list)) = LISTS.take() else { return };
    list.handle.store(handle as u64, Ordering::Relaxed);
    list.context.store(context as u64, Ordering::Relaxed);
    list.device.store(device as u64, Ordering::Relaxed);
    list.ordinal.store(ordinal, Ordering::Relaxed);
    list.entered.store(false, Ordering::Relaxed);
    list.queue.store(0, Ordering::Relaxed);
    if let Some(copiers) = list.copiers() {
        copiers.begin();
    }
    list.immediate.store(immediate, Ordering::Relaxed);
    list.in_order.store(in_order, Ordering::Relaxed);
    list.spoiled.store(false, Ordering::Relaxed);
    list.outside.store(false, Ordering::Relaxed);
    list.untimed.store(0, Ordering::Relaxed);
    BY_HANDLE.set(handle as u64, number.into());
}

/// A list is about to be destroyed.
pub fn gone(handle: P) {
    if let Some(number) = BY_HANDLE.remove(handle as u64).map(|n| n as u32) {
        // Of one that another thread uses the places are lost.
        if LISTS.get(number).is_some_and(List::clear) {
            LISTS.give(number);
        }
    }
}

/// A list was cloned: both have the same events.
pub fn cloned(list: P, clone: P) {
    if let Some(list) = known(list) {
        list.spoil();
        let (context, device) = (list.context.load(Ordering::Relaxed), list.device.load(Ordering::Relaxed));
        made(clone, context as P, device as P, 0, false, list.is_in_order());
        if let Some(clone) = known(clone) {
            clone.spoil();
            clone.untimed.store(list.len(), Ordering::Relaxed);
        }
    }
}

impl List {
    /// Whether commands are enqueued as they are appended.
    pub fn is_immediate(&self) -> bool {
        self.immediate.load(Ordering::Relaxed)
    }

    /// Whether its commands end in the order in which they were appended.
    pub fn is_in_order(&self) -> bool {
        self.in_order.load(Ordering::Relaxed)
    }

    /// The program's context, for events of ours.
    pub fn context(&self) -> Option<(u32, &'static events::Context)> {
        events::context(self.context.load(Ordering::Relaxed) as P)
    }

    /// The handle of the context.
    pub fn context_handle(&self) -> P {
        self.context.load(Ordering::Relaxed) as P
    }

    /// The device that its commands run on.
    pub fn device(&self) -> Option<&'static Device> {
        clock::of(self.device_handle())
    }

    /// The handle of the device.
    pub fn device_handle(&self) -> P {
        self.device.load(Ordering::Relaxed) as P
    }

    /// Lists of ours that copy its times, if it ever had any.
    pub fn copiers(&self) -> Option<&'static Copiers> {
        copies::of(self.copiers.load(Ordering::Relaxed))
    }

    /// The same, by their number, for the thread that has entered.
    pub fn own_copiers(&self) -> Option<(u32, &'static Copiers)> {
        if self.copiers.load(Ordering::Relaxed) == 0 {
            self.copiers.store(copies::none_yet(), Ordering::Relaxed);
        }
        self.copiers().map(|copiers| (self.copiers.load(Ordering::Relaxed), copiers))
    }

    /// What copiers of so many events are made for: the same queues, and the same order.
    pub fn kind(&self, events: u32) -> copies::Kind {
        let (group, flags) = (self.ordinal.load(Ordering::Relaxed), self.is_in_order());
        let flags = if flags { LIST_IN_ORDER } else { 0 };
        copies::Kind {
            context: self.context_handle(),
            device: self.device_handle(),
            group,
            description: u64::from(group) | u64::from(flags) << 32,
            events,
        }
    }

    /// Shows the slots of its commands that have events of ours, in order, with their numbers.
    pub fn own_slots(&self, mut work: impl FnMut(u32, &'static Slot)) {
        self.recorded(|recording| {
            recording.tokens(&STORE, |token| {
                if let Some(slot) = events::slot(token.slot).filter(|slot| slot.is_ours()) {
                    work(token.slot, slot);
                }
            });
        });
    }

    /// What is being copied may be another execution's.
    fn disturb(&self) {
        if let Some(copiers) = self.copiers() {
            copiers.disturb();
        }
    }

    /// A thread is about to execute it. Returns false if another one is, too: nobody can say then in which order.
    pub fn enter(&self) -> bool {
        let (entered, order) = (&self.entered, Ordering::Acquire);
        let is_first = entered.compare_exchange(false, true, order, Ordering::Relaxed).is_ok();
        if !is_first {
            self.disturb();
        }
        is_first
    }

    /// The thread that has entered has executed it.
    pub fn leave(&self) {
        self.entered.store(false, Ordering::Release);
    }

    /// Where it was executed last; NULL if it was not.
    pub fn queue(&self) -> P {
        self.queue.load(Ordering::Relaxed) as P
    }

    /// It was executed there.
    pub fn executed(&self, queue: P) {
        self.queue.store(queue as u64, Ordering::Relaxed);
    }

    /// None of its commands has times from here on.
    pub fn spoil(&self) {
        // What is being copied may be the other's.
        self.disturb();
        self.spoiled.store(true, Ordering::Relaxed);
    }

    /// Whether none of its commands has times.
    pub fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Relaxed)
    }

    /// It was closed outside of a capture window.
    pub fn is_closed_outside(&self) {
        self.outside.store(true, Ordering::Relaxed);
    }

    /// Whether it may have commands that we have not seen.
    pub fn is_from_outside(&self) -> bool {
        self.outside.load(Ordering::Relaxed)
    }

    /// A command was appended that will have no times.
    pub fn append_untimed(&self) {
        self.untimed.fetch_add(1, Ordering::Relaxed);
    }

    /// Commands of it that have no times.
    pub fn untimed(&self) -> u32 {
        self.untimed.load(Ordering::Relaxed)
    }

    /// All its commands.
    pub fn len(&self) -> u32 {
        self.untimed() + self.commands.load(Ordering::Relaxed)
    }

    /// Looks at the recording, or adds to it. `None` if another thread is at it and does not come back.
    pub fn recorded<R>(&self, work: impl FnOnce(&mut Recording) -> R) -> Option<R> {
        let mut work = Some(work);
        for _ in 0..TRIES {
            let result = self.claim.holding(|| {
                let place = self.recording.get();
                // SAFETY: the claim makes it this thread's, and keeps out a handler that interrupts it. It is plain
                // data.
                let mut recording = unsafe { place.read() };
                let result = work.take().map(|work| work(&mut recording));
                self.commands.store(recording.len(), Ordering::Relaxed);
                // SAFETY: still this thread's by the claim, and whole: `work` had a copy of it.
                unsafe { place.write(recording) };
                result
            });
            if let Some(result) = result {
                return result;
            }
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        }
        None
    }

    /// It is reset or destroyed: its commands hold their events no more. Returns whether nobody else was at it.
    pub fn clear(&self) -> bool {
        self.spoiled.store(false, Ordering::Relaxed);
        self.outside.store(false, Ordering::Relaxed);
        self.untimed.store(0, Ordering::Relaxed);
        self.queue.store(0, Ordering::Relaxed);
        if let Some(copiers) = self.copiers() {
            if copies::are_left(copiers) {
                STORE.collect(Depth::All, &mut Asking);
            }
            if !copies::retire(copiers) {
                // Something of ours may still reset its events.
                self.own_slots(|_, slot| slot.hold());
            }
            copiers.begin();
        }
        self.recorded(|recording| recording.clear(&STORE, |token| events::let_go(token.slot))).is_some()
    }
}
