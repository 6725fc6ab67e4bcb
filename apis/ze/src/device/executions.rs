//! Executions of lists: each of their commands is in flight then.
//!
//! What the last execution of a list left unread is read before its events are used again. Where it has not ended, and
//! both are in the same queue, lists of ours that copy its times are put before the program's, in the same call
//! ([`copies`]). All other commands that are executed again so have no times.

use hetrace_interpose::commands::{Depth, Execution};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{ErrnoGuard, OwnWork, in_window};

use super::copies::{self, Copier, Copiers};
use super::events::{self, SUCCESS, Slot};
use super::lists::{self, List};
use super::{Asking, STORE, Thread, Token, Why, clock, is_captured, lose, queues, say, timing};
use crate::generated::prelude::{P, null_mut};

/// Lists of a call of which each may have one of ours before it. Of longer calls none has.
const MOST: usize = 16;

/// A list of the program's, its copiers, and the one that is put before it.
type Before = (&'static List, &'static Copiers, &'static Copier);

/// One call that executes lists.
struct Call<'c> {
    queue: P,
    handles: &'c [P],
    /// Whether its commands get times.
    is_timed: bool,
    /// A bit for each list that no other thread executes, and that is not in the call before.
    entered: u32,
    /// What the driver gets: our lists, and then the program's.
    all: [P; 2 * MOST],
    /// Our lists, and the numbers of those that they are of.
    copiers: [Option<Before>; MOST],
    ours: usize,
}

/// Runs a call that executes lists in a queue, or in an immediate list: each of their commands is in flight then. It is
/// made with our lists and the program's.
///
/// # Safety
/// `queue` and the `count` handles at `lists` are those that `call` is to pass to the API.
pub unsafe fn execute(
    time: u64,
    queue: P,
    count: u32,
    lists: *mut P,
    call: impl Fn(u32, *mut P) -> u32,
) -> u32 {
    if !timing() || lists.is_null() {
        return call(count, lists);
    }
    let errno = ErrnoGuard::new();
    let mut work = OwnWork::begun(time);
    let captured = lists::known(queue).is_some() && is_captured(queue);
    if captured {
        say(Why::Captured);
    }
    let thread = if time == 0 || !in_window() || captured { None } else { STORE.thread() };
    // SAFETY: by the contract, as many handles as the count says.
    let handles = unsafe { std::slice::from_raw_parts(lists, count as usize) };
    let mut own = Call::new(queue, handles, thread.is_some());
    own.prepare(&mut work);
    drop(errno);
    let (result, returned) = work.real(|| match own.with_ours() {
        Some((all, lists)) => {
            let result = call(all, lists);
            if result == SUCCESS { result } else { own.without_ours(|| call(count, lists_of(handles))) }
        }
        None => call(count, lists),
    });
    let _errno = ErrnoGuard::new();
    if result != SUCCESS {
        own.known().for_each(|list| each_slot(list, Slot::not_used));
        own.leave();
        work.failed();
        return result;
    }
    let at = ticks();
    for list in own.known() {
        each_slot(list, |slot| slot.used(queue, at));
        list.executed(queue);
    }
    if let Some(thread) = thread {
        own.put(time, returned, &thread, &mut work);
    }
    own.leave();
    result
}

/// The program's own array, as the API takes it.
fn lists_of(handles: &[P]) -> *mut P {
    handles.as_ptr().cast_mut()
}

impl<'c> Call<'c> {
    fn new(queue: P, handles: &'c [P], is_timed: bool) -> Self {
        Call {
            queue,
            handles,
            is_timed,
            entered: 0,
            all: [null_mut(); 2 * MOST],
            copiers: [None; MOST],
            ours: 0,
        }
    }

    fn known(&self) -> impl Iterator<Item = &'static List> + use<'c> {
        self.handles.iter().filter_map(|handle| lists::known(*handle))
    }

    /// Makes the events of all lists ready, and finds out which lists of ours are to be put before them.
    fn prepare(&mut self, work: &mut OwnWork) {
        for (at, handle) in self.handles.iter().enumerate() {
            let Some(list) = lists::known(*handle) else { continue };
            let may_be_alone = at < MOST && self.handles.len() <= MOST;
            let is_again = self.handles.get(..at).is_some_and(|before| before.contains(handle));
            if is_again || !list.enter() {
                prepare(list, self.is_timed, work);
                continue;
            }
            if may_be_alone {
                self.entered |= 1 << at;
            } else {
                list.leave();
            }
            let is_twice = self.handles.iter().filter(|other| *other == handle).count() > 1;
            let may_copy = may_be_alone && !is_twice && self.is_timed && self.may_copy(list);
            match may_copy {
                true => self.prepare_again(list, work),
                false => prepare(list, self.is_timed, work),
            }
        }
    }

    /// Whether it was executed in the same queue before, and the driver may copy what that left.
    fn may_copy(&self, list: &List) -> bool {
        list.queue() == self.queue && !list.is_spoiled() && list.copiers().is_none_or(Copiers::may_be)
    }

    /// As [`prepare`], for a list that was executed in this queue before.
    fn prepare_again(&mut self, list: &'static List, work: &mut OwnWork) {
        let Some(last) = last_unread(list) else { return prepare(list, true, work) };
        if last.seems_to_have_ended() {
            collect(work);
            if last_unread(list).is_none() {
                return prepare(list, true, work);
            }
        }
        let mut count = 0;
        list.own_slots(|_, _| count += 1);
        let Some((number, copiers)) = list.own_copiers() else { return prepare(list, true, work) };
        let kind = list.kind(count);
        let take = || copies::take(copiers, &kind, |show| list.own_slots(|_, slot| show(slot.event())));
        let taken = match take() {
            Err(Why::Copies) if copiers.has_unread() => {
                collect(work);
                take()
            }
            taken => taken,
        };
        let copier = match taken {
            Ok((number, copier)) => {
                if let Some(place) = self.copiers.get_mut(self.ours) {
                    *place = Some((list, copiers, copier));
                    self.ours += 1;
                }
                Some((number, copier))
            }
            Err(Why::Copies) => {
                say(Why::Copies);
                copiers.skip();
                None
            }
            Err(why) => {
                copiers.refuse();
                say(why);
                return prepare(list, true, work);
            }
        };
        let (place, mut index) = ((number, copiers.turn()), 0);
        for_each_use(list, |number, slot| {
            if !slot.is_ours() {
                slot.prepare();
                return;
            }
            slot.prepare_behind(copier.map(|(number, _)| number), place, index, |last| {
                if let Some((_, copier)) = copier {
                    copier.keeps(index, number, last);
                }
            });
            index += 1;
        });
    }

    /// What the driver is to get, if that is more than what the program gives it.
    fn with_ours(&mut self) -> Option<(u32, *mut P)> {
        if self.ours == 0 {
            return None;
        }
        let ours = self.copiers.iter().flatten().map(|(_, _, copier)| copier.list());
        for (place, list) in self.all.iter_mut().zip(ours.chain(self.handles.iter().copied())) {
            *place = list;
        }
        Some(((self.ours + self.handles.len()) as u32, self.all.as_mut_ptr()))
    }

    /// The driver did not take our lists, or the program's: the call is made as the program made it.
    #[cold]
    fn without_ours(&self, call: impl FnOnce() -> u32) -> u32 {
        for (list, copiers, copier) in self.copiers.iter().flatten() {
            copies::failed(copiers, copier);
            say(Why::Uncopied);
            list.own_slots(|_, slot| slot.is_behind_none());
        }
        call()
    }

    /// The lists were executed.
    fn put(&self, time: u64, returned: u64, thread: &Thread, work: &mut OwnWork) {
        if self.handles.len() != self.known().count() {
            say(Why::Before);
        }
        for list in self.known() {
            queues::used(self.queue, list.context_handle(), list.device_handle());
            let execution = Execution { cause: time, returned, queue: self.queue as u64, in_order: false };
            if put(list, thread, &execution) {
                work.collecting(|| STORE.harvest(thread, &mut Asking));
            }
        }
    }

    fn leave(&self) {
        for (at, handle) in self.handles.iter().enumerate().take(MOST) {
            if self.entered >> at & 1 == 1
                && let Some(list) = lists::known(*handle)
            {
                list.leave();
            }
        }
    }
}

fn collect(work: &mut OwnWork) {
    work.collecting(|| STORE.collect(Depth::All, &mut Asking));
}

/// Has work done for the event of each command that a list has recorded.
fn each_slot(list: &List, work: impl Fn(&Slot)) {
    list.recorded(|recording| {
        recording.tokens(&STORE, |token| {
            if let Some(slot) = events::slot(token.slot) {
                work(slot);
            }
        });
    });
}

/// As [`each_slot`], for commands that are the last of the list that their event was given to.
fn for_each_use(list: &List, mut work: impl FnMut(u32, &'static Slot)) {
    list.recorded(|recording| {
        recording.tokens(&STORE, |token| {
            if let Some(slot) = events::slot(token.slot).filter(|slot| slot.was_given_last(token.generation))
            {
                work(token.slot, slot);
            }
        });
    });
}

/// The last event of ours that has times of its last execution which were not read.
fn last_unread(list: &List) -> Option<&'static Slot> {
    let mut last = None;
    list.own_slots(|_, slot| {
        if slot.is_in_flight() {
            last = Some(slot);
        }
    });
    last
}

/// A list is about to be executed: what its last execution left is read, and its events are made ready.
fn prepare(list: &List, is_timed: bool, work: &mut OwnWork) {
    let left = std::cell::Cell::new(false);
    each_slot(list, |slot| left.set(left.get() | slot.is_in_flight()));
    if left.get() {
        collect(work);
    }
    let is_timed = is_timed && !list.is_spoiled();
    for_each_use(list, |_, slot| {
        slot.prepare();
        if !is_timed {
            slot.passes_by();
        }
    });
}

/// A list was executed. Returns whether it is time to look for commands that have ended.
fn put(list: &List, thread: &Thread, execution: &Execution) -> bool {
    if list.is_spoiled() {
        lose(Why::Spoiled, list.len().into());
        return false;
    }
    let untimed = list.untimed();
    if untimed > 0 {
        STORE.lose(untimed.into());
    }
    if list.is_from_outside() {
        // At least one; they are not counted.
        lose(Why::Before, 1);
    }
    let enqueued = clock::now();
    let due = list.recorded(|recording| {
        recording.execute(&STORE, thread, execution, |recorded| {
            let slot = events::slot(recorded.slot)?;
            let Some(generation) = slot.in_use().filter(|_| slot.was_given_last(recorded.generation)) else {
                say(Why::Muddled);
                return None;
            };
            slot.hold();
            Some(Token { slot: recorded.slot, generation, enqueued })
        })
    });
    if due.is_none() {
        // Another thread does not come back from it.
        lose(Why::Muddled, list.len().into());
    }
    due == Some(true)
}
