//! What is particular about a library that is a loader of drivers, as OpenCL's
//! ICD loader is.
//!
//! * Drivers export the API's names too, and some call themselves by them or fill
//!   their dispatch tables with them, so that they would be bound to us. Their
//!   references are put right ([`restore`]) when a loader asks for their entry
//!   points, and again when a loader that may have started returns. They are no
//!   copies of the library, unless somebody is linked to them or asks them.
//! * A loader may call us as its layer. Then a wrapper goes on to what lies below
//!   us in that loader ([`Loader::below`]), and what the loader's own functions are
//!   asked for is left alone: they come back to us.
//! * A loader that starts calls its layers for the very call that started it, which
//!   must not be recorded again. Every use of a loader begins with a few functions;
//!   while one may start, a function of the API stands before each of them
//!   ([`Loader::starting`]), which calls it inside of [`Library::starts`].
//! * A library that stands before us in the global scope and has the API's names is
//!   another implementation (`oclgrind ./prog` preloads one), not somebody who passes
//!   calls on: what is bound to it gets bound to us, and we lead to it.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::seen::Seen;
use super::started::is_before_us;
use super::watch::age;
use super::{Library, P, global_scope, hint, restore};
use crate::dlsym::caller;
use crate::elf::{Object, each_object};
use crate::errno::ErrnoGuard;
use crate::real::is_ours;
use crate::thread::with_guard;

/// What an API says of its loader.
#[derive(Debug, Clone, Copy)]
pub struct Loader {
    /// A library that has this function is a driver.
    pub driver: &'static CStr,
    /// Unless it has this one, too: loaders of some APIs have all functions of a driver.
    pub lacks: Option<&'static CStr>,
    /// Returns the function below us, by its number, in the loader that begins at
    /// an address; `None` if that loader does not call us as its layer.
    pub below: fn(usize, usize) -> Option<P>,
    /// Returns what stands before a function with which the use of a loader begins:
    /// a function of the same signature that calls [`Library::starts`].
    pub starting: fn(usize) -> Option<P>,
}

/// Where the library begins that stands before us in the place of the loader; 0 if
/// there is none.
static STAND_IN: AtomicUsize = AtomicUsize::new(0);
/// Functions of loaders that have returned: those have started, and cannot again as long as no library
/// is opened or closed.
static CAME_BACK: Seen<8> = Seen::new();

impl Library {
    /// Whether a library is a driver.
    pub(super) fn is_driver(&self, object: &Object) -> bool {
        self.traits.loader.is_some_and(|l| {
            object.definition(l.driver).is_some_and(|a| !is_ours(a))
                && l.lacks.is_none_or(|lacks| object.definition(lacks).is_none())
        })
    }

    /// Whether a library is a loader that calls us as its layer.
    pub(super) fn calls_below(&self, object: &Object) -> bool {
        let Some(loader) = &self.traits.loader else { return false };
        let number = self.number(self.traits.signature);
        number.is_some_and(|n| (loader.below)(object.start(), n).is_some())
    }

    /// Where a call goes on that means a copy: below us if it calls us as its
    /// layer, else to its own definition.
    pub(super) fn target(&self, copy: usize, number: usize) -> Option<P> {
        if let Some(loader) = &self.traits.loader
            && let Some(start) = self.copies.get(copy).map(|c| c.start()).filter(|s| *s != 0)
            && let Some(below) = (loader.below)(start, number).filter(|a| !is_ours(*a))
        {
            return Some(below);
        }
        self.defined(copy, number)
    }

    /// Where a call goes on that would have reached this address: the same, if the
    /// address lies in a loader.
    pub(super) fn through(&self, address: P, number: usize) -> P {
        let Some(loader) = &self.traits.loader else { return address };
        let known = (0..self.copies.len()).find(|c| self.defined(*c, number) == Some(address));
        let start = match known.and_then(|c| self.copies.get(c)) {
            Some(copy) => copy.start(),
            None => Object::holding(address).map_or(0, |o| o.start()),
        };
        (loader.below)(start, number).filter(|a| !is_ours(*a)).unwrap_or(address)
    }

    /// What a call goes on to instead of the function that it means, because it may
    /// start a loader. `None` if it need not be known.
    pub(super) fn starting(&self, number: usize, target: P) -> Option<P> {
        let stands = (self.traits.loader.as_ref()?.starting)(number)?;
        // Without the jumps a wrapper would not come back here after a `dlopen`.
        if (self.choosing)(number).is_some() && CAME_BACK.holds(target, age()) {
            return None;
        }
        let own = Object::holding(caller()).filter(|c| self.is_driver(c));
        if let Some(own) = own.and_then(|c| c.definition(self.names.get(number)?)) {
            return Some(own); // A driver that calls itself.
        }
        hint::leave_target(target);
        Some(stands)
    }

    /// Calls the function that the wrapper before goes on to; for functions that
    /// [`Loader::starting`] returns. `None` if nobody came through a wrapper.
    pub fn starts<R>(&self, call: impl FnOnce(P) -> R) -> Option<R> {
        let target = {
            let _errno = ErrnoGuard::new();
            hint::take_target()
        };
        if target.is_null() {
            return None;
        }
        let result = with_guard(|| call(target))?;
        let _errno = ErrnoGuard::new();
        // Read first: what is opened meanwhile begins another age.
        let age = age();
        // It has started: its drivers are loaded, and its layers are active.
        each_object(|object| {
            if self.is_driver(object) {
                self.restore(object);
            }
            true
        });
        CAME_BACK.add(target, age);
        Some(result)
    }

    fn restore(&self, object: &Object) {
        restore(object, |name| self.number(name).is_some());
    }

    /// `dlsym` is asked for what lies at this address: when a loader asks its driver,
    /// that is put right before it can be called.
    pub(super) fn asks_driver(&self, calling: &Object, address: P) {
        if self.traits.loader.is_some()
            && calling.definition(self.traits.signature).is_some()
            && let Some(driver) = Object::holding(address)
        {
            self.restore(&driver);
        }
    }

    /// The library that stands before us in the place of the loader.
    pub(super) fn stand_in(&self) -> Option<Object> {
        match STAND_IN.load(Ordering::Acquire) {
            0 => None,
            start => Object::holding(start as *const c_void),
        }
    }

    /// Whether this is that library.
    pub(super) fn stands_in(&self, object: &Object) -> bool {
        STAND_IN.load(Ordering::Acquire) == object.start()
    }

    /// Looks for another implementation before us, at the start of the program.
    pub(super) fn look_before_us(&self) {
        if self.traits.loader.is_none() {
            return;
        }
        // SAFETY: a NUL-terminated name.
        let first = unsafe { libc::dlsym(global_scope(), self.traits.signature.as_ptr()) };
        if first.is_null() || is_ours(first) {
            return;
        }
        let Some(before) = Object::holding(first).filter(is_before_us) else { return };
        if before.is_program() {
            self.say(b"the program contains a loader itself: its calls are not traced");
            return;
        }
        STAND_IN.store(before.start(), Ordering::Release);
        each_object(|object| {
            if is_ours(object.start() as *const c_void) || object.definition(self.traits.signature).is_some()
            {
                return true;
            }
            object.rebind(|reference| {
                let theirs = before.definition(reference.name())?;
                // Not bound yet: it leads to the library's own jumps.
                let taken = reference.now == theirs || object.contains(reference.now);
                if !taken || reference.defines {
                    return None;
                }
                self.number(reference.name()).and_then(|n| self.wrapper(n))
            });
            true
        });
    }
}
