//! Libraries of ours for other APIs in the process, one of whose functions may be called as
//! one of this API's.
//!
//! The first of us in the global scope gets every linked call of such a name, whichever API is
//! meant. What is meant is what the caller would have reached without any of us, and that is
//! known by the library that it lies in: each of us can be asked whether a library is its API's
//! ([`CLAIMS`]). So references to such a name are bound to the right one of us when the
//! program starts, what `dlsym` finds in the global scope is exchanged likewise, and what lies in
//! another API's library stands before nobody's function.
//!
//! What can't be done:
//! * A library opened later that is linked to such a name is bound to the first of us.
//! * An API whose libraries have another one's signature function is taken for that.

use std::ffi::{CStr, c_void};

use super::started::startup_definition;
use super::{Library, P};
use crate::dlsym::{CLAIMS, is_hetrace};
use crate::elf::{Object, each_object};
use crate::real::is_ours;

/// What each library of ours exports as [`CLAIMS`]: whether the library that begins at an address is a copy of
/// its API's.
type Claims = unsafe extern "C" fn(*const c_void) -> bool;
/// Other libraries of ours that are asked.
const MOST: usize = 16;

/// Another library of ours.
#[derive(Clone, Copy)]
struct Neighbour {
    object: Object,
    claims: Claims,
}

/// Those of the process but this one, in the order of the global scope; `None` behind the last.
fn neighbours() -> [Option<Neighbour>; MOST] {
    let mut list: [Option<Neighbour>; MOST] = [None; MOST];
    let mut places = list.iter_mut();
    each_object(|object| {
        let claims = object.definition(CLAIMS).filter(|c| !is_ours(*c));
        let Some(claims) = claims else { return true };
        // SAFETY: what `library!` exports under this name in each of our libraries.
        let claims = unsafe { std::mem::transmute::<P, Claims>(claims) };
        let Some(place) = places.next() else { return false };
        *place = Some(Neighbour { object: *object, claims });
        true
    });
    list
}

impl Library {
    /// Whether the library that begins at this address is a copy of this API's.
    pub fn claims(&self, start: *const c_void) -> bool {
        Object::holding(start).is_some_and(|o| self.is_copy(&o))
    }

    /// The wrapper of another API that a library is a copy of, if it is none of this one's and that
    /// API has a function of this name.
    pub(super) fn claimed(&self, object: &Object, name: &CStr) -> Option<P> {
        if self.is_copy(object) {
            return None;
        }
        let start = object.start() as *const c_void;
        // SAFETY: a library of the process; the function reads what the dynamic loader keeps of it.
        let mut theirs = neighbours().into_iter().flatten().filter(|n| unsafe { (n.claims)(start) });
        theirs.find_map(|n| n.object.definition(name))
    }

    /// Binds references to names that another API has, too, to the library of ours for the API
    /// that is meant. Before the program's first call.
    pub(super) fn settle(&self) {
        let others = neighbours();
        if others.iter().flatten().next().is_none() {
            return;
        }
        // Asked of what is referred to, not of all names: those are hundreds, times our libraries, in each process.
        let shared = |name: &CStr| others.iter().flatten().any(|n| n.object.definition(name).is_some());
        each_object(|object| {
            if is_hetrace(object) {
                return true;
            }
            object.rebind(|reference| {
                // Not bound yet: it leads to the library's own jumps.
                let open = is_ours(reference.now) || object.contains(reference.now);
                if !open || reference.defines || !(self.traits.begins)(reference.name().to_bytes()) {
                    return None;
                }
                let name = reference.name();
                let number = self.number(name).filter(|_| shared(name))?;
                let reached = startup_definition(name, |_| true);
                let holder = match reached {
                    Some(address) => Object::holding(address)?,
                    None => object.provider(name)?,
                };
                if self.is_copy(&holder) { self.wrapper(number) } else { self.claimed(&holder, name) }
            });
            true
        });
    }
}
