//! Noticing that a second copy of the library was loaded, before anyone can
//! call it through us.
//!
//! A linked call of a second copy comes from a library that was loaded with it
//! or after it, by `dlopen`. Our hook on that says so before the real one
//! begins ([`Library::opening`]): all wrappers go through jumps from then on,
//! which look at each caller ([`callers`]) that was not there before: if libraries
//! were loaded since the copies were counted last, they are counted again. What a
//! library does while it is being opened comes after it was entered into the list,
//! so nothing is missed. A caller that was looked at has its library, and all that
//! this needs, loaded already, and is not asked again before the next `dlopen`: so
//! most calls during a watch take no lock.
//!
//! Nothing says when a `dlopen` ends: the hook has jumped there and is gone,
//! because the real one must see who calls it. But whatever a thread calls while
//! it is inside comes from a library that starts, when all are mapped and count.
//! Once each thread that began one has called us again, the watch ends. One that
//! does not come is waited for one or two minutes: mapping takes less than that.
//!
//! Programs that never open anything never pay.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::seen::Seen;
use super::started::remember;
use super::{Library, P, callers, hint};
use crate::dlsym::{Asked, Lookup};
use crate::early::{self, set_several, several};
use crate::elf::generation;
use crate::errno::ErrnoGuard;
use crate::held::hold;
use crate::ring::clock;

/// Counter values for which one `dlopen` is watched: 60 seconds at 4.5 GHz.
const LONG: u64 = 1 << 38;

/// A thread that may be inside of `dlopen`.
struct Inside {
    /// The thread; 0 if there is none.
    thread: AtomicUsize,
    /// Until when it is waited for.
    until: AtomicU64,
}

static INSIDE: [Inside; 16] =
    [const { Inside { thread: AtomicUsize::new(0), until: AtomicU64::new(0) } }; 16];
/// More threads than that were inside: until when only time shows.
static CROWDED: AtomicU64 = AtomicU64::new(0);

/// This thread is about to enter `dlopen`.
fn enters(until: u64) {
    // Said first: a handler that jumps away from here leaves nothing that nobody would look for.
    hint::set_inside(true);
    let (me, now) = (hint::thread(), clock::ticks());
    for place in &INSIDE {
        let there = place.thread.load(Ordering::SeqCst);
        let free = there == 0 || there == me || place.until.load(Ordering::SeqCst) <= now;
        if free && place.thread.compare_exchange(there, me, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return place.until.store(until, Ordering::SeqCst);
        }
    }
    CROWDED.store(until, Ordering::SeqCst);
}

/// This thread has called us. Returns whether it had been inside.
fn has_left() -> bool {
    if !hint::is_inside() {
        return false;
    }
    hint::set_inside(false);
    let me = hint::thread();
    // More than one, if it began another `dlopen` inside of the first.
    let places = INSIDE.iter().filter(|p| p.thread.load(Ordering::SeqCst) == me);
    places.inspect(|p| p.thread.store(0, Ordering::SeqCst)).count() > 0
}

fn nobody_inside() -> bool {
    let now = clock::ticks();
    let is_inside = |p: &Inside| p.thread.load(Ordering::SeqCst) != 0 && p.until.load(Ordering::SeqCst) > now;
    CROWDED.load(Ordering::SeqCst) <= now && !INSIDE.iter().any(is_inside)
}

/// Until when a library may be on its way; `u64::MAX` if for ever.
static UNTIL: AtomicU64 = AtomicU64::new(0);
/// All wrappers go through the jumps that choose.
static SEALED: AtomicBool = AtomicBool::new(false);
/// Somebody ends the watch.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The number of loads when the copies were last counted.
static COUNTED: AtomicU64 = AtomicU64::new(u64::MAX);
/// Libraries opened or closed: each begins an age in which no caller was looked at.
static AGE: AtomicU64 = AtomicU64::new(0);
/// Changes of what lies where: libraries closed, and the first opened after each.
static MOVES: AtomicU64 = AtomicU64::new(0);
/// A library was closed, and none was opened since.
static IS_ROOM: AtomicBool = AtomicBool::new(false);
/// Where calls come from that were looked at, as return addresses.
static CALLERS: Seen<256> = Seen::new();

/// How often something else may have come to lie at an address. Closings alone do not show that: a library that
/// is being closed calls until it is gone, and the next one comes where it was.
pub(super) fn moves() -> u64 {
    MOVES.load(Ordering::SeqCst)
}

/// How often libraries were opened or closed.
pub(super) fn age() -> u64 {
    AGE.load(Ordering::SeqCst)
}

impl Library {
    /// A library is about to be opened.
    pub fn opening(&self, lookup: &Lookup, asked: &mut Asked) -> P {
        let real = lookup.real();
        let flags = asked.name as usize as c_int;
        let loads = !asked.handle.is_null() && flags & libc::RTLD_NOLOAD == 0;
        early::start_and_wait(self.loaded);
        // What was there before the first of them is the global scope.
        remember();
        if loads {
            if IS_ROOM.swap(false, Ordering::SeqCst) {
                MOVES.fetch_add(1, Ordering::SeqCst);
            }
            AGE.fetch_add(1, Ordering::SeqCst);
            self.may_load();
        }
        if real.is_null() {
            asked.handle = real;
        }
        real
    }

    /// A library is about to be closed.
    pub fn closing(&self, lookup: &Lookup, asked: &mut Asked) -> P {
        let _errno = ErrnoGuard::new();
        self.keep_copies();
        IS_ROOM.store(true, Ordering::SeqCst);
        MOVES.fetch_add(1, Ordering::SeqCst);
        AGE.fetch_add(1, Ordering::SeqCst);
        let real = lookup.real();
        if real.is_null() {
            asked.handle = real;
        }
        real
    }

    fn may_load(&self) {
        if !self.traits.several || self.takes_all_linked() {
            return;
        }
        if UNTIL.load(Ordering::Relaxed) != u64::MAX {
            let until = clock::ticks().saturating_add(LONG);
            // Said first: who ends the watch sees it, or does not see the new time.
            enters(until);
            UNTIL.store(until, Ordering::SeqCst);
            self.seal();
        }
    }

    /// Returns whether every linked call goes to one loader for ever, whatever is loaded later: the one in
    /// the global scope. A watch would show nothing.
    fn takes_all_linked(&self) -> bool {
        self.traits.loader.is_some()
            && !self.traits.versioned
            && self.number(self.traits.signature).and_then(|number| self.first(number)).is_some()
    }

    /// Sends all wrappers through the jumps.
    pub(super) fn seal(&self) {
        // Either who ends the watch has seen the new time, or we see them at
        // it and wait for the few stores that this takes. Not for ever: a
        // signal handler may have interrupted them, or they have no processor.
        let has_ended = (0..100_000).any(|_| {
            std::hint::spin_loop();
            !ENDING.load(Ordering::SeqCst)
        });
        // Otherwise the wrappers may not be sealed any more. Those that they take from us yet are looked up.
        if has_ended && SEALED.load(Ordering::Acquire) {
            return;
        }
        for (number, real) in self.real.iter().enumerate() {
            if let Some(thunk) = (self.choosing)(number) {
                real.replace(thunk);
            }
        }
        SEALED.store(true, Ordering::Release);
    }

    /// Ends the watch, if it is time.
    #[cold]
    pub(super) fn end_watch(&self) {
        if ENDING.swap(true, Ordering::SeqCst) {
            return;
        }
        let until = UNTIL.load(Ordering::SeqCst);
        let over = until != u64::MAX
            && (clock::ticks() >= until || nobody_inside())
            && UNTIL.compare_exchange(until, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if over {
            for real in self.real {
                // Looked up again when somebody calls it.
                real.replace(std::ptr::null_mut());
            }
            SEALED.store(false, Ordering::Release);
        }
        ENDING.store(false, Ordering::SeqCst);
    }

    /// A call has come, whose return address lies at `stack`: counts the copies, if
    /// there may be more for its caller than when that was done last.
    ///
    /// # Safety
    /// At `stack` lies the return address of a call that has not returned yet.
    pub(super) unsafe fn notice(&self, stack: *const *const c_void) {
        if !self.traits.several || several() {
            return;
        }
        let (left, age) = (has_left(), age());
        // SAFETY: contract: a call that has not returned yet.
        let call = unsafe { callers::call_at(stack) };
        let is_known = call.is_some_and(|(caller, _)| CALLERS.holds(caller, age));
        // Reading the clock takes longer than all of this, and can wait.
        if is_known && !left && !hint::is_turn() {
            return;
        }
        let watching = self.watching();
        if watching {
            self.look_at(stack, age);
        }
        if left || !watching {
            self.end_watch();
        }
    }

    /// Looks at a caller for the first time in this age.
    #[cold]
    fn look_at(&self, stack: *const *const c_void, age: u64) {
        // A handler that jumped away would leave a count without its consequences.
        let _held = hold();
        self.look_again();
        let (caller, _) = callers::learn(stack);
        if !caller.is_null() && !several() {
            CALLERS.add(caller, age);
        }
    }

    /// Whether a library may be on its way.
    pub(super) fn watching(&self) -> bool {
        clock::ticks() < UNTIL.load(Ordering::SeqCst)
    }

    /// Counts the copies again if libraries have come or gone.
    pub(super) fn look_again(&self) {
        let now = generation();
        if COUNTED.load(Ordering::Acquire) == now {
            return;
        }
        if self.count() > 1 {
            self.ask_each_time();
        } else {
            COUNTED.store(now, Ordering::Release);
        }
    }

    /// From now on each call goes to the copy that it means.
    pub(super) fn ask_each_time(&self) {
        if several() {
            return;
        }
        UNTIL.store(u64::MAX, Ordering::SeqCst);
        self.seal();
        // Only now do entries leave hints: every one of them is taken up.
        if !set_several() {
            self.say(
                b"several copies, tables of functions or another interposer: each call goes where it was made for",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// All that depends on who is inside: one step after the other.
    #[test]
    fn a_thread_leaves_all_that_it_began() {
        let until = clock::ticks() + LONG;
        let (both, entered, left) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                enters(until);
                both.wait();
                entered.wait();
                assert!(has_left() && !has_left());
                left.wait();
            });
            both.wait();
            // While the other one has the first place.
            enters(until);
            entered.wait();
            left.wait();
            assert!(!nobody_inside());
            enters(until);
            assert!(has_left() && nobody_inside(), "the inner one began in another place");
        });
    }
}
