//! A library in several files: one that programs are linked to, and parts behind it that export its functions, too.
//!
//! `libtoy.so.9` opens `libtoy_ops.so.9` and passes calls on to it. The first is the copy; a part is one only where no
//! whole library of its version is there, for programs may be linked to parts alone, and then has what its neighbours have.
//!
//! Parts call each other by the exported names, which would lead them to us. Those are no calls of the program: the
//! references of each part are bound to what the part needs itself, when the program starts, when the whole library asks for
//! a function in it, and when a copy is first used.

use std::ffi::{CStr, c_void};

use super::seen::Seen;
use super::started::{is_before_us, is_first};
use super::watch::moves;
use super::{Library, P};
use crate::elf::{Object, each_object};
use crate::real::is_ours;

/// Parts whose references are bound, by where they begin.
static BOUND: Seen<4> = Seen::new();

/// The version in a library's name: what stands behind `.so`.
fn version(name: &CStr) -> &[u8] {
    let name = name.to_bytes();
    let at = name.windows(3).position(|w| w == b".so").map_or(name.len(), |at| at + 3);
    name.get(at..).unwrap_or_default()
}

/// Whether two files are of one version.
fn are_one(first: &Object, second: &Object) -> bool {
    matches!((first.soname(), second.soname()), (Some(a), Some(b)) if version(a) == version(b))
}

/// The first library of the process that is wanted.
fn any(wanted: impl Fn(&Object) -> bool) -> Option<Object> {
    let mut found = None;
    each_object(|object| {
        if wanted(object) {
            found = Some(*object);
        }
        found.is_none()
    });
    found
}

impl Library {
    /// Whether a library is a part by its name.
    pub(super) fn is_part(&self, object: &Object) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        let name = object.soname().map(CStr::to_bytes).unwrap_or_default();
        self.parts.iter().any(|stem| name.starts_with(stem.as_bytes()))
    }

    /// Whether a library is a copy or a part of one: what it asks for is its own business.
    pub(super) fn is_own(&self, object: &Object) -> bool {
        self.is_copy(object) || self.is_part(object)
    }

    /// The whole library that a part is behind.
    fn whole_of(&self, part: &Object) -> Option<Object> {
        let is_whole = |o: &Object| {
            !self.is_part(o)
                && are_one(o, part)
                && o.definition(self.traits.signature).is_some_and(|a| !is_ours(a))
                && !is_before_us(o)
        };
        any(is_whole)
    }

    /// Whether a library is a part with a whole library before it.
    pub(super) fn is_behind(&self, object: &Object) -> bool {
        self.is_part(object) && self.whole_of(object).is_some()
    }

    /// The copy that what lies in this library belongs to.
    pub(super) fn copy_with(&self, object: &Object) -> Option<Object> {
        if self.is_copy(object) {
            return Some(*object);
        }
        if !self.is_part(object) {
            return None;
        }
        self.whole_of(object).or_else(|| any(|o| are_one(o, object) && self.is_copy(o)))
    }

    /// What a part of this copy defines, of a function that it lacks itself.
    pub(super) fn in_parts(&self, copy: &Object, name: &CStr) -> Option<P> {
        if self.parts.is_empty() {
            return None;
        }
        let part = any(|o| self.is_part(o) && are_one(o, copy) && o.definition(name).is_some())?;
        self.bind(&part);
        part.definition(name)
    }

    /// A library of the API's own is about to get the address of what lies in a part, and to call it.
    pub(super) fn asks_part(&self, address: P) {
        if self.parts.is_empty() {
            return;
        }
        let part = Object::holding(address).filter(|o| self.is_part(o));
        // With a part comes all that it needs.
        if part.is_some_and(|part| !BOUND.holds(part.start() as *const c_void, moves())) {
            self.bind_all();
        }
    }

    /// Binds the references of all parts.
    pub(super) fn bind_all(&self) {
        if self.parts.is_empty() {
            return;
        }
        each_object(|object| {
            if self.is_part(object) {
                self.bind(object);
            }
            true
        });
    }

    /// Binds a part's references to functions of the API to what the part needs itself, where they are bound to us, or
    /// would be at their first call.
    fn bind(&self, part: &Object) {
        let start = part.start() as *const c_void;
        // Read first: what comes to lie there meanwhile is of another age.
        let age = moves();
        if BOUND.holds(start, age) {
            return;
        }
        part.rebind(|reference| {
            let name = reference.name();
            self.number(name)?;
            let own = part.provider(name)?.definition(name).filter(|a| !is_ours(*a))?;
            // Not bound yet: it leads to the part's own jumps.
            let late = reference.now != own && part.contains(reference.now);
            (is_ours(reference.now) || (late && is_first(name))).then_some(own)
        });
        BOUND.add(start, age);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_behind_the_ending() {
        let of = |name: &'static CStr| str::from_utf8(version(name)).unwrap();
        assert_eq!((of(c"libtoy.so.9"), of(c"libtoy_ops.so.9"), of(c"libtoy_ops.so.8")), (".9", ".9", ".8"));
        assert_eq!((of(c"libtoy.so"), of(c"libtoy")), ("", ""));
    }
}
