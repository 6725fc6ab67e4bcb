//! Which copy of the library a call means, when there are several.
//!
//! A call that came through an entry has left a hint; of every other one the
//! return address shows who makes it. A call that is not recorded jumps from
//! the program to the choosing jump, so both lie where that finds them. A
//! recorded one asks once, before its wrapper begins ([`Scope`]), and what it
//! learned holds for all that the wrapper calls.

use std::ffi::c_void;
use std::sync::atomic::{Ordering, fence};

use super::seen::Seen;
use super::watch::moves;
use super::{COPIES, Library, P, callers, hint, library, unknown};
use crate::dlsym::caller;
use crate::early::{self, several};
use crate::elf::Object;
use crate::errno::ErrnoGuard;
use crate::real::{Real, is_ours};

/// A call means this copy whatever stands before it: it has its address.
const BY_ADDRESS: usize = 0x100;
/// A signal's frame is larger than this, so nothing nearer lies between.
const NEAR: usize = 1024;

/// Around a wrapper that is recorded: it is known which copy is meant.
#[derive(Debug)]
pub struct Scope {
    /// What the call around it meant.
    before: usize,
}

impl Drop for Scope {
    fn drop(&mut self) {
        hint::set_current(self.before);
    }
}

/// By copy, the callers that mean it, as return addresses: as long as nothing else comes to lie there.
static CALLERS: [Seen<128>; COPIES] = [const { Seen::new() }; COPIES];

/// Finds out which copy is meant by a wrapper that does not go the usual way;
/// `loaded` starts the API's library, if that has not been done. The recorded
/// part of the wrapper runs inside of the scope; `None` if there is one copy.
#[cold]
#[inline(never)]
pub fn scope(loaded: extern "C" fn()) -> Option<Scope> {
    early::start(loaded);
    library().filter(|_| several()).map(Library::enter)
}

impl Library {
    #[inline(always)]
    fn enter(&self) -> Scope {
        let _errno = ErrnoGuard::new();
        let (entry, stack) = hint::left();
        let here = (&raw const entry) as usize;
        let which = if entry != 0 && stack.wrapping_sub(here) < NEAR {
            hint::take();
            self.by_entry(entry)
        } else {
            // SAFETY: `entry` is a variable of this function, which is inlined into `scope` alone.
            let (from, called) = unsafe { callers::call_to_scope(here as *const c_void) };
            if entry != 0 && called as usize == stack {
                hint::take();
                self.by_entry(entry)
            } else {
                self.by_caller(from)
            }
        };
        let before = hint::current();
        hint::set_current(which);
        Scope { before }
    }

    fn by_entry(&self, entry: usize) -> usize {
        ((entry - 1) / self.names.len() + 1) | BY_ADDRESS
    }

    /// What a linked call means by its return address; 0 if it is not known.
    fn by_caller(&self, from: *const c_void) -> usize {
        // Read first: what comes to lie there meanwhile is of another age.
        let age = moves();
        if let Some(copy) = CALLERS.iter().position(|callers| callers.holds(from, age)) {
            return copy + 1;
        }
        let calling = Object::holding(from);
        let Some(copy) = self.copy_of(calling.as_ref()).and_then(|c| self.copy(&c)) else { return 0 };
        CALLERS.get(copy).inspect(|callers| callers.add(from, age));
        copy + 1
    }

    /// Where a call goes on that means this.
    fn meant(&self, which: usize, number: usize) -> Option<P> {
        let copy = (which & (BY_ADDRESS - 1)).checked_sub(1)?;
        let linked = which & BY_ADDRESS == 0;
        let first = if linked { self.first(number) } else { None };
        first.map(|f| self.through(f, number)).or_else(|| self.target(copy, number))
    }

    /// Where a call of ours goes on, inside of a function that was handed out by its address alone, if nothing says where
    /// its library has the other one: to what linked programs get, by which they have made what such functions are
    /// given.
    fn of_linked(&self, which: usize, number: usize) -> Option<P> {
        let copy = (which & (BY_ADDRESS - 1)).checked_sub(1)?;
        self.copies.get(copy).filter(|copy| copy.is_file_less())?;
        self.first(number)
    }

    /// Where a linked call goes on if there are more copies than we can count.
    fn uncounted(&self, from: *const c_void, number: usize) -> Option<P> {
        let copy = self.copy_of(Object::holding(from).as_ref())?;
        let name = self.names.get(number)?;
        let address = self.first(number).or_else(|| copy.definition(name)).filter(|a| !is_ours(*a))?;
        Some(self.through(address, number))
    }

    /// Where a wrapper goes on; `stack` is where the return address of its call
    /// lies.
    ///
    /// # Safety
    /// `stack` points at a return address.
    pub unsafe fn choose(&self, number: usize, stack: *const *const c_void) -> P {
        let _errno = ErrnoGuard::new();
        // SAFETY: `stack` points at the return address of a wrapper that has not returned yet.
        let from = unsafe { *stack };
        // SAFETY: at `stack` lies the return address of a call that has not returned yet.
        unsafe { self.notice(stack) };
        let found = if !several() {
            self.only(number, || if is_ours(from) { caller() } else { from })
        } else if is_ours(from) {
            match hint::current() {
                // Begun while there was one copy.
                // SAFETY: `stack` points at the return address of a wrapper that has not returned yet.
                0 => self.linked(unsafe { callers::call_to(stack) }.0, number),
                which => self.meant(which, number).or_else(|| self.of_linked(which, number)),
            }
        } else {
            match hint::left() {
                (entry, left) if entry != 0 && left == stack as usize => {
                    hint::take();
                    self.meant(self.by_entry(entry), number)
                }
                _ => self.linked(from, number),
            }
        };
        match found {
            Some(address) => self.starting(number, address).unwrap_or(address),
            None => self.missing as *const c_void as P,
        }
    }

    /// Where the symbol of a function goes on whose signature has changed: to
    /// its wrapper, or past it to the function of an older copy; of one whose name others
    /// have, too, to its wrapper or to another library's function.
    ///
    /// # Safety
    /// As [`Library::choose`].
    pub unsafe fn select(&self, number: usize, stack: *const *const c_void) -> P {
        let _errno = ErrnoGuard::new();
        let missing = self.missing as *const c_void as P;
        // SAFETY: `stack` points at the return address of a call of the symbol that has not returned yet.
        let from = unsafe { *stack };
        // SAFETY: at `stack` lies the return address of a call that has not returned yet.
        unsafe { self.notice(stack) };
        if let Some(shared) = &self.shared {
            return self.whose(shared, from, number).unwrap_or(missing);
        }
        let copy = if several() {
            self.by_caller(from).checked_sub(1)
        } else {
            self.is_used().then_some(0).or_else(|| self.copy(&self.copy_of(Object::holding(from).as_ref())?))
        };
        let Some(copy) = copy else { return missing };
        let Some((wrapper, older)) = self.changed(copy, number) else { return missing };
        if !older {
            return wrapper;
        }
        let Some(real) = self.first(number).or_else(|| self.defined(copy, number)) else { return missing };
        self.names.get(number).and_then(|name| unknown::thunk(name, real)).unwrap_or(real)
    }

    fn linked(&self, from: *const c_void, number: usize) -> Option<P> {
        match self.by_caller(from) {
            0 => self.uncounted(from, number),
            which => self.meant(which, number),
        }
    }

    /// Where all calls go while there is one copy.
    fn only(&self, number: usize, from: impl FnOnce() -> *const c_void) -> Option<P> {
        if let Some(first) = self.first(number) {
            return Some(self.through(first, number));
        }
        if !self.is_used() {
            let copy = self.copy_of(Object::holding(from()).as_ref())?;
            self.copy(&copy)?;
        }
        self.target(0, number)
    }

    /// The real function of a wrapper that has not been called before.
    pub fn find(&self, known: &Real, number: usize) -> Option<P> {
        let _errno = ErrnoGuard::new();
        if let Some(thunk) = self.sealed(number) {
            known.replace(thunk);
            return Some(thunk);
        }
        let address = self.only(number, caller)?;
        if let Some(starting) = self.starting(number, address) {
            return Some(starting);
        }
        known.set(address);
        // Whoever was quicker knew more. But one that sealed the wrappers before this one had its address
        // may not have waited for it.
        fence(Ordering::SeqCst);
        if self.traits.several
            && (several() || self.watching())
            && let Some(thunk) = (self.choosing)(number)
        {
            known.replace(thunk);
        }
        Some(known.get()).filter(|a| !a.is_null()).or(Some(address))
    }

    /// The jump of a wrapper, if it has to go on through that now. Seals all.
    fn sealed(&self, number: usize) -> Option<P> {
        let thunk = self.traits.several.then(|| (self.choosing)(number)).flatten()?;
        if !several() && !self.watching() {
            self.look_again();
        }
        if !several() && !self.watching() {
            return None;
        }
        self.seal();
        Some(thunk)
    }
}
