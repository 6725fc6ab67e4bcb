//! What our presence changed when the program started, put right; and the
//! global scope as it was then.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use super::{LIBRARY, Library, P};
use crate::dlsym::is_hetrace;
use crate::early;
use crate::elf::{Object, each_object};
use crate::errno::ErrnoGuard;
use crate::join::{self, used};
use crate::real::is_ours;

/// How many libraries stand before us in the global scope, the program among
/// them.
static BEFORE: AtomicUsize = AtomicUsize::new(UNCOUNTED);
/// How many libraries were there when the program started: they are the global
/// scope, in its order, and never go. [`UNCOUNTED`] if we were not there at the start.
static STARTUP: AtomicUsize = AtomicUsize::new(UNCOUNTED);
/// Not 0, as with all that each process writes when it starts: so it lies with what the dynamic loader has written
/// already, and makes no page of its own.
const UNCOUNTED: usize = usize::MAX;

/// Whether anything of the start concerns the API.
static CONCERN: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 3;
const NOTHING: u8 = 1;
const SOMETHING: u8 = 2;

/// The global scope. `RTLD_DEFAULT` is not the same for us: our own references
/// stay inside this library.
pub fn global_scope() -> P {
    // SAFETY: the program itself is always open; nothing is loaded.
    unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// Counts the libraries of the start: before any other is opened.
pub(super) fn remember() {
    if STARTUP.load(Ordering::Acquire) != UNCOUNTED {
        return;
    }
    let mut count = Count::default();
    each_object(|object| count.add(object));
    count.keep();
}

/// The libraries of the process, while they are being counted.
#[derive(Default)]
struct Count {
    before: Option<usize>,
    all: usize,
}

impl Count {
    /// The next of them. Returns that there may be more.
    fn add(&mut self, object: &Object) -> bool {
        if object.contains(remember as *const c_void) {
            self.before = Some(self.all);
        }
        self.all += 1;
        true
    }

    /// All were counted.
    fn keep(self) {
        if let Some(before) = self.before
            && STARTUP.load(Ordering::Acquire) == UNCOUNTED
        {
            BEFORE.store(before, Ordering::Relaxed);
            STARTUP.store(self.all, Ordering::Release);
        }
    }
}

/// How many libraries stand before us, and how many there were at the start; 0 if we were not there.
fn counted() -> (usize, usize) {
    match STARTUP.load(Ordering::Acquire) {
        UNCOUNTED => (0, 0),
        all => (BEFORE.load(Ordering::Relaxed), all),
    }
}

/// Whether a library stands before us in the global scope.
pub(super) fn is_before_us(object: &Object) -> bool {
    let (mut number, mut found) = (0, false);
    let (before, _) = counted();
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
    let (before, all) = counted();
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
    is_ours(unsafe { libc::dlsym(global_scope(), name.as_ptr()) })
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
    /// Runs when the library is loaded, in each process of the session. Usually the API is nowhere in it, and such
    /// processes shall not pay for each API that there is: one of our libraries joins the session for all, the others
    /// wait. They start, all that is left, when a library is opened, when the program asks for one of their functions,
    /// or with the first call ([`early`]): at the latest when anything of the API can be there.
    pub fn at_start(&'static self) {
        let _errno = ErrnoGuard::new();
        let mut is_joined = false;
        if early::is_started()
            || !self.look_around(|ours| is_joined = is_joined || join::joined_by(ours).is_some())
            || !is_joined
        {
            return (self.loaded)();
        }
        join::wait();
    }

    /// Looks at the libraries of the start, once, and shows those of ours. Returns whether nothing in the others has to do
    /// with the API: none is a copy of its library or has one inside, and none refers to one of its functions.
    fn look_around(&self, mut ours: impl FnMut(&Object)) -> bool {
        match CONCERN.load(Ordering::Acquire) {
            UNKNOWN => {}
            known => return known == NOTHING,
        }
        let (mut count, mut concerned) = (Count::default(), false);
        each_object(|object| {
            if is_hetrace(object) {
                ours(object);
            } else {
                concerned = concerned || self.concerns(object);
            }
            count.add(object)
        });
        count.keep();
        CONCERN.store(if concerned { SOMETHING } else { NOTHING }, Ordering::Release);
        !concerned
    }

    /// Whether a library has to do with the API.
    fn concerns(&self, object: &Object) -> bool {
        let mut found = object.definition(self.traits.signature).is_some();
        object.rebind(|reference| {
            // Most names differ in their first byte.
            found =
                found || self.names.begin_with(reference.first()) && self.number(reference.name()).is_some();
            None
        });
        found
    }

    /// Runs when we are loaded or first called, before the program does.
    pub fn started(&'static self) {
        let _errno = ErrnoGuard::new();
        if !LIBRARY.swap(std::ptr::from_ref(self).cast_mut(), Ordering::AcqRel).is_null() {
            return;
        }
        remember();
        if self.look_around(|_| ()) {
            return;
        }
        self.look_before_us();
        match self.shared {
            Some(_) => self.part_company(),
            None => self.settle(),
        }
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
