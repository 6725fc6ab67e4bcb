//! Names of an API that libraries which are no API's have, too: `cblas_dgemm` is oneMKL's, OpenBLAS' and the reference's.
//!
//! Preloaded we get every linked call of such a name. It is the API's only if the function that the caller would have
//! reached without us lies in a copy of the API's library (or in a part of one); every other call goes on to that function,
//! and is neither recorded nor counted. What is there when the program starts is bound past us, to the one or the other, so
//! no call of it asks anything. Libraries that are opened later come through a jump ([`Library::whose`]), which remembers
//! what it found by the place of the call until a library is opened or closed.
//!
//! What can't be done: a caller is known by the address that it is returned to. A function that a library tail-calls
//! (`jmp cblas_dgemm`) is taken for its caller's, which matters where two libraries that were opened later mean two others
//! by one name.

use std::ffi::{CStr, c_void};

use super::seen::Seen;
use super::started::{is_first, startup_definition};
use super::watch::moves;
use super::{Library, P};
use crate::elf::{Object, each_object};
use crate::real::{Address, Real, is_ours, look_up_next};

/// Which calls are whose.
#[allow(missing_debug_implementations, reason = "holds caches")]
pub struct Shared {
    /// Number and wrapper of each function, in the order of the numbers.
    wrappers: &'static [(usize, Address)],
    /// What other libraries define, by number.
    others: &'static [Other],
}

/// A function of another library with one of our names.
#[allow(missing_debug_implementations, reason = "holds a cache")]
pub struct Other {
    /// The first that a call went on to unrecorded; there is hardly ever another.
    first: Real,
    /// Callers that go on to it, and callers that go to the wrapper, by [`age`].
    callers: Seen<1>,
}

impl Other {
    /// None yet.
    pub const fn unknown() -> Other {
        Other { first: Real::unknown(), callers: Seen::new() }
    }
}

/// The age in which a caller is remembered: each has two, one for either kind.
fn age(moves: u64, ours: bool) -> u64 {
    moves << 1 | u64::from(ours)
}

/// Whether the library that an address lies in was loaded before another one.
fn is_loaded_before(address: P, other: &Object) -> bool {
    let mut before = false;
    each_object(|object| {
        before = object.contains(address) && object.start() != other.start();
        !before && object.start() != other.start()
    });
    before
}

impl Shared {
    /// Of these wrappers, with a place for each function.
    pub const fn new(wrappers: &'static [(usize, Address)], others: &'static [Other]) -> Shared {
        Shared { wrappers, others }
    }

    pub(super) fn wrapper(&self, number: usize) -> Option<P> {
        let (there, wrapper) = self.wrappers.get(number)?;
        (*there == number).then(|| wrapper.0.cast_mut())
    }
}

impl Library {
    /// Where a call of a shared name goes on, by who makes it: to its wrapper, or to another library's function.
    pub(super) fn whose(&self, shared: &Shared, from: *const c_void, number: usize) -> Option<P> {
        let (wrapper, other) = (shared.wrapper(number), shared.others.get(number)?);
        // Read first: what comes to lie there meanwhile is of another age.
        let now = moves();
        if other.callers.holds(from, age(now, true)) {
            return wrapper;
        }
        if other.callers.holds(from, age(now, false)) {
            return Some(other.first.get());
        }
        let name = self.names.get(number)?;
        let calling = Object::holding(from);
        let reached = self.reached(calling.as_ref(), name)?;
        // What the API's own libraries call of each other is no call of the program.
        let is_inside = calling.as_ref().is_some_and(|c| self.is_own(c));
        if !is_inside && Object::holding(reached).is_some_and(|o| self.copy_with(&o).is_some()) {
            other.callers.add(from, age(now, true));
            return wrapper;
        }
        // Remembered only where it is the one that is kept.
        if other.first.set(reached) && other.first.get() == reached {
            other.callers.add(from, age(now, false));
        }
        Some(reached)
    }

    /// What a caller reaches by a name without us: what the global scope of the start has, else what has come into the
    /// global scope since and before the caller, else what the caller needs itself, else anything that there is. A library
    /// is bound when it is opened, so what comes into the global scope behind it is not for it.
    fn reached(&self, calling: Option<&Object>, name: &CStr) -> Option<P> {
        let theirs = |address: P| Some(address).filter(|a| !a.is_null() && !is_ours(*a));
        let needed = || calling?.provider(name)?.definition(name);
        startup_definition(name, |_| true).or_else(|| {
            let global = theirs(look_up_next(name));
            let before = global.filter(|address| calling.is_none_or(|c| is_loaded_before(*address, c)));
            before.or_else(|| needed().and_then(theirs)).or(global).or_else(|| self.anywhere(name))
        })
    }

    /// The first definition in the process that is none of ours.
    fn anywhere(&self, name: &CStr) -> Option<P> {
        let mut found = None;
        each_object(|object| {
            if !crate::dlsym::is_hetrace(object) {
                found = object.definition(name);
            }
            found.is_none()
        });
        found
    }

    /// Binds what is referred to by shared names past us when the program starts: to the wrapper, or to the function of
    /// another library.
    pub(super) fn part_company(&self) {
        let Some(shared) = &self.shared else { return };
        each_object(|object| {
            if crate::dlsym::is_hetrace(object) || self.is_own(object) {
                return true;
            }
            object.rebind(|reference| {
                if !self.names.begin_with(reference.first()) {
                    return None;
                }
                let name = reference.name();
                let number = self.number(name)?;
                // Not bound yet: it leads to the library's own jumps, and from there to whoever is first in the global scope.
                let late = object.contains(reference.now) && is_first(name);
                if !late && !is_ours(reference.now) {
                    return None;
                }
                let reached = startup_definition(name, |_| true)?;
                let holder = Object::holding(reached)?;
                if self.copy_with(&holder).is_some() {
                    return shared.wrapper(number);
                }
                Some(self.claimed(&holder, name).unwrap_or(reached))
            });
            true
        });
    }
}
