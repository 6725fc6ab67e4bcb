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
//!
//! Where two threads meet here, each thing is a type of its own, of which loom explores the interleavings: who is inside
//! ([`super::openers`]), who begins and who ends the watch ([`super::seal`]), which callers were looked at
//! ([`super::seen`]), and what may lie elsewhere ([`super::moves`]). The number of loads for which the copies were counted
//! is stored when that was done, and two that count at once find the same.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use super::moves::Moves;
use super::openers::Openers;
use super::seal::Seal;
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

/// Threads that may be inside of `dlopen`.
static INSIDE: Openers<16> = Openers::new();
/// Until when a library may be on its way, and whether the wrappers are sealed.
static SEAL: Seal = Seal::new();
/// The number of loads when the copies were last counted.
static COUNTED: AtomicU64 = AtomicU64::new(u64::MAX);
/// Libraries opened or closed: each begins an age in which no caller was looked at.
static AGE: AtomicU64 = AtomicU64::new(0);
/// Changes of what lies where.
static MOVES: Moves = Moves::new();
/// Where calls come from that were looked at, as return addresses.
static CALLERS: Seen<256> = Seen::new();

/// This thread is about to enter `dlopen`.
fn enters(until: u64) {
    // Said first: a handler that jumps away from here leaves nothing that nobody would look for.
    hint::set_inside(true);
    INSIDE.enters(hint::thread() as u64, clock::ticks(), until);
}

/// This thread has called us. Returns whether it had been inside.
fn has_left() -> bool {
    if !hint::is_inside() {
        return false;
    }
    hint::set_inside(false);
    INSIDE.has_left(hint::thread() as u64)
}

/// How often something else may have come to lie at an address.
pub(super) fn moves() -> u64 {
    MOVES.count()
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
            MOVES.opening();
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
        MOVES.closing();
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
        if SEAL.until() != u64::MAX {
            let until = clock::ticks().saturating_add(LONG);
            // First: who ends the watch and finds the new time finds this thread, too.
            enters(until);
            if SEAL.extend(until) {
                self.seal();
            }
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
        SEAL.seal(|| {
            for (number, real) in self.real.iter().enumerate() {
                if let Some(thunk) = (self.choosing)(number) {
                    real.replace(thunk);
                }
            }
        });
    }

    /// Ends the watch, if it is time.
    #[cold]
    pub(super) fn end_watch(&self) {
        let is_over = |until| {
            let now = clock::ticks();
            now >= until || INSIDE.are_none(now)
        };
        // Looked up again when somebody calls it.
        SEAL.end(is_over, || self.real.iter().for_each(|real| real.replace(std::ptr::null_mut())));
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
        clock::ticks() < SEAL.until()
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
        SEAL.keep();
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

    #[test]
    fn a_thread_that_was_never_inside_has_not_left() {
        std::thread::scope(|threads| {
            threads.spawn(|| assert!(!has_left()));
            threads.spawn(|| {
                enters(clock::ticks() + LONG);
                assert!(!INSIDE.are_none(clock::ticks()));
                assert!(has_left() && !has_left());
            });
        });
    }
}
