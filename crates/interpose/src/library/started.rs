//! What our presence changed when the program started, put right; and the
//! global scope as it was then.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::neighbours::is_hetrace;
use super::{LIBRARY, Library};
use crate::elf::{Object, each_object};
use crate::errno::ErrnoGuard;
use crate::process::used;
use crate::real::is_ours;

/// How many libraries stand before us in the global scope, the program among
/// them.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// How many libraries were there when the program started: they are the global
/// scope, in its order, and never go. 0 if we were not there at the start.
static STARTUP: AtomicUsize = AtomicUsize::new(0);

/// Counts the libraries of the start: before any other is opened.
pub(super) fn remember() {
    if STARTUP.load(Ordering::Acquire) != 0 {
        return;
    }
    let own = remember as *const c_void;
    let (mut before, mut all) = (None, 0);
    each_object(|object| {
        if object.contains(own) {
            before = Some(all);
        }
        all += 1;
        true
    });
    if let Some(before) = before {
        BEFORE.store(before, Ordering::Relaxed);
        STARTUP.store(all, Ordering::Release);
    }
}

/// Whether a library stands before us in the global scope.
pub(super) fn is_before_us(object: &Object) -> bool {
    let (mut number, mut found) = (0, false);
    let before = BEFORE.load(Ordering::Acquire);
    each_object(|o| {
        found |= o.start() == object.start() && number < before;
        number += 1;
        number < before && !found
    });
    found
}

/// The first definition of a function behind us in the global scope of the
/// start, in a library that will do and is none of ours.
pub(super) fn startup_definition(name: &CStr, will_do: impl Fn(&Object) -> bool) -> Option<*mut c_void> {
    let (mut number, mut found) = (0, None);
    let (before, all) = (BEFORE.load(Ordering::Acquire), STARTUP.load(Ordering::Acquire));
    each_object(|object| {
        if number > before {
            found = object.definition(name).filter(|_| !is_hetrace(object) && will_do(object));
        }
        number += 1;
        number < all && found.is_none()
    });
    found.filter(|a| !is_ours(*a))
}

/// Binds a library's references to its own functions to them again, where they
/// are bound to us, or would be at their first call.
pub(super) fn restore(object: &Object, known: impl Fn(&CStr) -> bool) {
    object.rebind(|reference| {
        if !reference.defines || !known(reference.name()) {
            return None;
        }
        let own = object.definition(reference.name())?;
        // Not bound yet: it leads to the library's own jumps.
        let late = reference.now != own && object.contains(reference.now);
        (is_ours(reference.now) || (late && is_first(reference.name()))).then_some(own)
    });
}

/// Whether the global scope has our function of this name first.
pub(super) fn is_first(name: &CStr) -> bool {
    // SAFETY: a NUL-terminated name; nothing is loaded.
    is_ours(unsafe { libc::dlsym(super::global_scope(), name.as_ptr()) })
}

/// Takes back from a library what it refers to weakly and would have done
/// without.
fn without_unanswered(object: &Object, known: impl Fn(&CStr) -> bool, answered: impl Fn(&CStr) -> bool) {
    object.rebind(|reference| {
        let bare = reference.weak && !reference.defines && is_ours(reference.now);
        let lacks = bare
            && known(reference.name())
            && object.provider(reference.name()).is_none()
            && !answered(reference.name());
        lacks.then_some(std::ptr::null_mut())
    });
}

impl Library {
    /// Runs when we are loaded or first called, before the program does.
    pub fn started(&'static self) {
        let _errno = ErrnoGuard::new();
        if !LIBRARY.swap(std::ptr::from_ref(self).cast_mut(), Ordering::AcqRel).is_null() {
            return;
        }
        remember();
        self.look_before_us();
        self.settle();
        let known = |name: &CStr| self.number(name).is_some();
        let mut is_there = false;
        each_object(|object| {
            // Nor have our libraries for other APIs anything to do with this one.
            if is_ours(object.start() as *const c_void) || is_hetrace(object) {
                return true;
            }
            if self.is_copy(object) {
                restore(object, known);
                is_there = true;
            }
            without_unanswered(object, known, |name| startup_definition(name, |_| true).is_some());
            true
        });
        self.bind_all();
        if is_there {
            used();
        }
    }
}
