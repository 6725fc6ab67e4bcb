//! The copies of an API's library that are loaded, and what they define.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::started::{is_before_us, startup_definition};
use super::{FindVersion, Library, P, Version, restore};
use crate::elf::{Object, each_object};
use crate::real::is_ours;

/// How many copies are distinguished. Of more, only the linked calls are traced.
pub const COPIES: usize = 4;

/// A copy of the library.
#[derive(Debug)]
pub struct Copy {
    /// Where it begins; 0 if there is none.
    start: AtomicUsize,
    /// It stays loaded for ever.
    kept: AtomicBool,
    /// All its definitions were looked up.
    complete: AtomicBool,
    /// Its version, the second number in the lower half; 0 if not known yet.
    version: AtomicU32,
}

impl Copy {
    /// None yet.
    pub const fn unknown() -> Copy {
        Copy {
            start: AtomicUsize::new(0),
            kept: AtomicBool::new(false),
            complete: AtomicBool::new(false),
            version: AtomicU32::new(0),
        }
    }

    fn object(&self) -> Option<Object> {
        match self.start() {
            0 => None,
            start => Object::holding(start as *const c_void),
        }
    }

    /// Whether this place is, from now on at the latest, that of functions handed out in tables.
    pub(super) fn is_handed_out(&self) -> bool {
        let there = self.start.compare_exchange(0, HANDED_OUT, Ordering::AcqRel, Ordering::Acquire);
        there.map_or_else(|there| there == HANDED_OUT, |_| true)
    }

    /// Whether it is that of functions handed out, which is no file.
    pub(super) fn is_file_less(&self) -> bool {
        self.start() == HANDED_OUT
    }

    /// Where it begins; 0 if there is none.
    pub(super) fn start(&self) -> usize {
        self.start.load(Ordering::Acquire)
    }
}

/// Where a copy begins that is no file: nothing is at this address.
const HANDED_OUT: usize = 1;

/// Stands for "looked up, and not there".
const NONE: P = std::ptr::without_provenance_mut(1);

fn there(address: P) -> Option<P> {
    (address != NONE).then_some(address)
}

/// The version of the last of these functions that a library exports.
pub(super) fn exported(object: &Object, brought: &[(&CStr, Version)]) -> Version {
    /// Not 0.0, which stands for what was not looked up yet.
    const OLDEST: Version = (0, 1);
    let newest = brought.iter().rev().find(|(name, _)| object.definition(name).is_some());
    newest.map_or(OLDEST, |(_, version)| *version)
}

impl Library {
    /// Whether this is a copy of the library: a file of its own, or a part of
    /// another one. Who stands before us gets the calls that we get, and can
    /// only be passing them on. A part is none, behind a whole library.
    pub(super) fn is_copy(&self, object: &Object) -> bool {
        let signature = object.definition(self.traits.signature);
        signature.is_some_and(|a| !is_ours(a))
            && (!is_before_us(object) || self.stands_in(object))
            && !self.is_behind(object)
    }

    /// Whether it is a copy by its name.
    fn is_named(&self, object: &Object) -> bool {
        let name = object.soname().map(CStr::to_bytes).unwrap_or_default();
        self.traits.sonames.iter().any(|stem| name.starts_with(stem.as_bytes()))
    }

    /// Whether what this caller asks for is its own business.
    pub(super) fn is_spared(&self, object: &Object) -> bool {
        let name = object.soname().map(CStr::to_bytes).unwrap_or_default();
        let named = self.traits.spared.iter().any(|stem| name.starts_with(stem.as_bytes()));
        named || self.traits.sparing.iter().any(|f| object.definition(f).is_some())
    }

    /// How many copies there are, as far as it matters: 0, 1 or 2.
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        each_object(|object| {
            count += usize::from(self.is_copy(object) && !self.is_driver(object));
            count < 2
        });
        count
    }

    /// The number of a copy, which it keeps. `None` if there are too many.
    pub(super) fn copy(&self, object: &Object) -> Option<usize> {
        let at = object.start();
        for (number, copy) in self.copies.iter().enumerate() {
            let there = match copy.start.load(Ordering::Acquire) {
                0 => copy
                    .start
                    .compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire)
                    .unwrap_or_else(|e| e),
                there => there,
            };
            if there == 0 {
                restore(object, |name| self.number(name).is_some());
                self.bind_all();
                return Some(number);
            }
            if there == at {
                return Some(number);
            }
        }
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            self.say(b"too many copies in one process: some calls are not traced");
        }
        None
    }

    /// Whether a copy is known.
    pub(super) fn is_used(&self) -> bool {
        self.copies[0].start.load(Ordering::Acquire) != 0
    }

    /// Copies stay loaded, because addresses in them are kept. Asking for that
    /// takes the dynamic loader's lock, so it is put off until somebody closes
    /// a library and takes the lock anyway.
    pub(super) fn keep_copies(&self) {
        for copy in self.copies {
            if let Some(object) = copy.object()
                && !copy.kept.swap(true, Ordering::Relaxed)
            {
                object.keep();
            }
        }
    }

    /// A copy's own definition of a function.
    pub(super) fn defined(&self, copy: usize, number: usize) -> Option<P> {
        match self.defined.get(copy * self.names.len() + number)?.get() {
            unknown if unknown.is_null() => self.look_into(copy, &self.copies.get(copy)?.object()?, number),
            address => there(address),
        }
    }

    /// As [`Library::defined`], where the copy's file is at hand.
    pub(super) fn defined_in(&self, copy: usize, object: &Object, number: usize) -> Option<P> {
        match self.defined.get(copy * self.names.len() + number)?.get() {
            unknown if unknown.is_null() => self.look_into(copy, object, number),
            address => there(address),
        }
    }

    fn look_into(&self, copy: usize, object: &Object, number: usize) -> Option<P> {
        let name = self.names.get(number)?;
        let address =
            object.definition(name).or_else(|| self.in_parts(object, name)).filter(|a| !is_ours(*a));
        // A part may come later.
        if address.is_some() || self.parts.is_empty() {
            self.defined.get(copy * self.names.len() + number)?.replace(address.unwrap_or(NONE));
        }
        address
    }

    /// Looks all definitions of a copy up, and never again.
    fn look_all_up(&self, copy: usize) {
        let Some(copy_known) = self.copies.get(copy) else { return };
        if copy_known.complete.load(Ordering::Acquire) {
            return;
        }
        let Some(object) = copy_known.object() else { return };
        for number in 0..self.names.len() {
            self.look_into(copy, &object, number);
        }
        copy_known.complete.store(self.parts.is_empty(), Ordering::Release);
    }

    /// A copy's version; the newest there can be, if it has none.
    pub(super) fn version(&self, copy: usize) -> Version {
        const NEWEST: Version = (u32::MAX, 0);
        let (Some(known), Some(find)) = (self.copies.get(copy), self.traits.version) else {
            return NEWEST;
        };
        let word = known.version.load(Ordering::Relaxed);
        if word != 0 {
            return (word >> 16, word & 0xffff);
        }
        let found = match find {
            FindVersion::Call(name, read) => self.ask_version(copy, name).map(read),
            FindVersion::Exports(brought) => known.object().map(|object| exported(&object, brought)),
        };
        let Some(version) = found else { return NEWEST };
        known.version.store(version.0 << 16 | version.1 & 0xffff, Ordering::Relaxed);
        version
    }

    /// What a copy's own function says of its version.
    fn ask_version(&self, copy: usize, name: &CStr) -> Option<i32> {
        let get = self.number(name).and_then(|n| self.defined(copy, n))?;
        let mut number = 0;
        // SAFETY: the copy's own function, which the API promises to be this.
        let error =
            unsafe { std::mem::transmute::<P, unsafe extern "C" fn(*mut i32) -> i32>(get)(&raw mut number) };
        (error == 0).then_some(number)
    }

    /// The wrapper of a function whose signature has changed, and whether this
    /// copy has an older one.
    pub(super) fn changed(&self, copy: usize, number: usize) -> Option<(P, bool)> {
        let (_, since, wrapper) = self.changed.iter().find(|(n, ..)| *n == number)?;
        Some((wrapper.0.cast_mut(), self.version(copy) < *since))
    }

    /// What all linked callers reach, whatever they need: another library of
    /// the start that defines the function.
    pub(super) fn first(&self, number: usize) -> Option<P> {
        let known = self.first.get(number)?;
        let address = known.get();
        if !address.is_null() {
            return there(address);
        }
        // Where symbols have versions, only who has none takes all.
        let name = self.names.get(number)?;
        let takes_all = |o: &Object| {
            (!self.traits.versioned || !self.is_named(o))
                && self.claimed(o, name).is_none()
                && (self.shared.is_none() || self.copy_with(o).is_some())
        };
        let instead = self.stand_in().and_then(|o| o.definition(name));
        let address = instead.or_else(|| startup_definition(name, takes_all));
        known.replace(address.unwrap_or(NONE));
        address
    }

    /// The number of the function at an address of a copy; of several names
    /// the one asked for, or one that it begins.
    pub(super) fn by_address(&self, copy: usize, object: &Object, address: P, asked: &CStr) -> Option<usize> {
        if let Some(number) = self.number(asked)
            && self.defined_in(copy, object, number) == Some(address)
        {
            return Some(number);
        }
        self.look_all_up(copy);
        let mut found = None;
        let defined = self.defined.get(copy * self.names.len()..)?;
        for (number, (name, there)) in self.names.iter().zip(defined).enumerate() {
            if there.get() != address {
                continue;
            }
            if name.to_bytes().starts_with(asked.to_bytes()) {
                return Some(number);
            }
            found = found.or(Some(number));
        }
        found
    }

    /// The copy that a linked caller would have reached without us.
    pub(super) fn copy_of(&self, caller: Option<&Object>) -> Option<Object> {
        let is_copy = |o: &Object| self.is_copy(o);
        if let Some(own) = caller.filter(|c| self.calls_below(c)) {
            return Some(*own);
        }
        // A driver that calls the API does not mean itself, but whoever it is a driver for.
        let by_driver = caller.is_some_and(|c| self.is_driver(c));
        let needed = || caller?.first(|o| is_copy(o) && !(by_driver && self.is_driver(o)));
        let global = || {
            if let Some(instead) = self.stand_in() {
                return Some(instead);
            }
            let address = startup_definition(self.traits.signature, |_| true)?;
            Object::holding(address).filter(is_copy)
        };
        let own = if self.traits.versioned { needed().or_else(global) } else { global().or_else(needed) };
        own.or_else(|| self.copies[0].object()).or_else(|| self.any())
    }

    /// A function of any copy, for questions of ours that all copies answer alike.
    pub fn any_definition(&self, name: &CStr) -> Option<P> {
        let number = self.number(name)?;
        let known = self.first(number).or_else(|| self.defined(0, number));
        known.or_else(|| self.any()?.definition(name)).filter(|a| !is_ours(*a))
    }

    /// Any copy, for callers that need none themselves.
    fn any(&self) -> Option<Object> {
        let mut found = None;
        each_object(|object| {
            if self.is_copy(object) && !self.is_driver(object) {
                found = Some(*object);
            }
            found.is_none()
        });
        found
    }
}
