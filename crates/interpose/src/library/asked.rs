//! What a program gets that asks for a function of the API, from `dlsym` or
//! from the API itself.

use std::ffi::CStr;
use std::ptr::null_mut;

use super::started::{global_scope, is_before_us, startup_definition};
use super::watch::moves;
use super::{Library, P, givers, unknown};
use crate::dlsym::{Asked, Lookup};
use crate::early;
use crate::elf::Object;
use crate::errno::ErrnoGuard;
use crate::join::used;
use crate::process::session;
use crate::real::{is_ours, look_up_next};

/// What a program gets.
#[derive(Debug)]
enum Answer {
    /// What it would get without us.
    Theirs,
    /// This instead.
    Ours(P),
    /// Nothing, though it would find us.
    Nothing,
}

/// Resolves a question to `dlsym` or `dlvsym`: the function to go on with, or
/// NULL if the answer is in `asked`. Names that do not begin right, and what we
/// ask ourselves, never come to `exchange`.
fn asked_for(
    lookup: &Lookup,
    asked: &mut Asked,
    begins: impl FnOnce(&CStr) -> bool,
    exchange: impl FnOnce(&Asked, &CStr) -> Answer,
) -> P {
    let real = lookup.real();
    if real.is_null() {
        asked.handle = null_mut();
        return real;
    }
    if asked.name.is_null() {
        return real;
    }
    // SAFETY: the program's NUL-terminated name.
    let name = unsafe { CStr::from_ptr(asked.name) };
    if !begins(name) || session().is_none() || is_ours(asked.caller) {
        return real;
    }
    let _errno = ErrnoGuard::new();
    match exchange(asked, name) {
        Answer::Theirs => real,
        Answer::Ours(wrapper) => {
            asked.handle = wrapper;
            // What failed on our way to the answer is no failure of the question.
            // SAFETY: no preconditions.
            unsafe { libc::dlerror() };
            null_mut()
        }
        Answer::Nothing => {
            // Asked where it is not, the real function answers and complains
            // as it would have done.
            // SAFETY: asks only for what is loaded already.
            let elsewhere =
                unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            if !elsewhere.is_null() {
                asked.handle = elsewhere;
            }
            real
        }
    }
}

impl Library {
    /// What `dlsym` and `dlvsym` go on with.
    pub fn asked(&self, lookup: &Lookup, asked: &mut Asked) -> P {
        let begins = |name: &CStr| {
            let may_be = (self.traits.begins)(name.to_bytes()) || (self.traits.beside)(name).is_some();
            if may_be {
                early::start(self.loaded);
            }
            may_be
        };
        asked_for(lookup, asked, begins, |asked, name| match (self.traits.beside)(name) {
            Some(ours) => self.beside(lookup, asked, name, ours),
            None => self.exchange(lookup, asked, name),
        })
    }

    /// What stands for another library's function, except for that library.
    fn beside(&self, lookup: &Lookup, asked: &Asked, name: &CStr, ours: P) -> Answer {
        let calling = Object::holding(asked.caller);
        let spared = calling.is_some_and(|c| c.definition(name).is_some() || self.is_spared(&c));
        if spared || asked.handle == libc::RTLD_NEXT {
            return Answer::Theirs;
        }
        let handle = if asked.handle == libc::RTLD_DEFAULT { global_scope() } else { asked.handle };
        // SAFETY: the program's own question.
        let there = unsafe { lookup.ask(&Asked { handle, ..*asked }) };
        if there.is_null() { Answer::Theirs } else { Answer::Ours(ours) }
    }

    fn exchange(&self, lookup: &Lookup, asked: &Asked, name: &CStr) -> Answer {
        let calling = Object::holding(asked.caller);
        if asked.handle == libc::RTLD_NEXT {
            // Who stands before us would find us. Who stands behind us passes
            // on a call that has come through us.
            let lacks = self.number(name).is_some()
                && calling.as_ref().is_some_and(is_before_us)
                && look_up_next(name).is_null();
            return if lacks { Answer::Nothing } else { Answer::Theirs };
        }
        // The API asking itself, an interposer asking for what it stands for,
        // or a tool about its own business.
        let spared = calling
            .as_ref()
            .is_some_and(|c| c.definition(name).is_some() || self.is_own(c) || self.is_spared(c));
        let handle = if asked.handle == libc::RTLD_DEFAULT { global_scope() } else { asked.handle };
        // SAFETY: the program's own question.
        let mut address = unsafe { lookup.ask(&Asked { handle, ..*asked }) };
        if address.is_null() {
            return Answer::Theirs;
        }
        let through_us = is_ours(address);
        if through_us && self.number(name).is_none() {
            return Answer::Theirs; // What a loader of layers asks of us.
        }
        if !through_us && let Some(calling) = &calling {
            self.asks_driver(calling, address);
            if spared {
                self.asks_part(address);
            }
        }
        if through_us {
            // In the global scope: what is behind us there, or else what the
            // caller needs.
            address = startup_definition(name, |_| true).unwrap_or_else(|| look_up_next(name));
            if address.is_null() || is_ours(address) {
                let needed = calling.and_then(|c| c.first(|o| self.is_copy(o)));
                address = needed.and_then(|o| o.definition(name)).unwrap_or(null_mut());
            }
            if address.is_null() {
                return Answer::Nothing;
            }
        }
        let exchanged = if spared { None } else { self.exchanged(address, name) };
        match exchanged {
            Some(ours) => Answer::Ours(ours),
            None if through_us => {
                let theirs = Object::holding(address).and_then(|o| self.claimed(&o, name));
                Answer::Ours(theirs.unwrap_or(address))
            }
            None => Answer::Theirs,
        }
    }

    /// What stands for an address of the API: the entry of the copy it lies in,
    /// or the jump of an unknown function.
    fn exchanged(&self, address: P, name: &CStr) -> Option<P> {
        let age = moves();
        let known = givers::known(address, age);
        let holding = known.map(|(_, object)| object).or_else(|| Object::holding(address))?;
        let object = known.map(|(_, object)| object).or_else(|| self.copy_with(&holding));
        let object = object.filter(|o| !self.calls_below(o))?;
        // Who asks for its functions is about to call them.
        used();
        let copy = match known {
            Some((copy, _)) => copy,
            None => {
                let copy = self.copy(&object)?;
                // What lies in a part is looked at each time.
                if object.start() == holding.start() {
                    givers::remember(&(copy, object), age);
                }
                copy
            }
        };
        if copy > 0 {
            self.ask_each_time();
        }
        let behind = || if self.is_behind(&holding) { self.number(name) } else { None };
        match behind().or_else(|| self.by_address(copy, &object, address, name)) {
            // Its older signature is not in the model.
            Some(number) if self.changed(copy, number).is_some_and(|(_, older)| older) => {
                unknown::thunk(name, address)
            }
            Some(number) => {
                if self.first(number).is_some_and(|first| first != address) {
                    // Linked callers reach an interposer there, this one does not.
                    self.ask_each_time();
                }
                self.entry_of(copy, number)
            }
            None if holding.executes(address) => unknown::thunk(name, address),
            None => None,
        }
    }

    pub(super) fn entry_of(&self, copy: usize, number: usize) -> Option<P> {
        let wrapper = match self.changed(copy, number) {
            Some((wrapper, _)) => wrapper,
            None => self.wrapper(number)?,
        };
        let place = copy * self.names.len() + number;
        match (self.entry)(place) {
            Some(entry) => {
                self.entries.get(place)?.replace(wrapper);
                Some(entry)
            }
            None => (copy == 0).then_some(wrapper),
        }
    }

    /// What a program gets instead of an address that the API hands out under a
    /// name.
    ///
    /// # Safety
    /// `name` is NULL or NUL-terminated.
    pub unsafe fn handed_out(&self, address: P, name: *const libc::c_char) -> P {
        if address.is_null() || name.is_null() || session().is_none() || is_ours(address) {
            return address;
        }
        let _errno = ErrnoGuard::new();
        // SAFETY: `name` is not NULL, as tested first, so it is NUL-terminated.
        let name = unsafe { CStr::from_ptr(name) };
        self.exchanged(address, name).unwrap_or(address)
    }

    /// The same of an address that the API has put into a place of the program's, if its call returned 0.
    ///
    /// # Safety
    /// `name` is NULL or NUL-terminated, and `place` NULL or a place for an address; if `error` is 0, the API has filled
    /// it in.
    pub unsafe fn hand_out_at(&self, error: u32, name: *const libc::c_char, place: *mut P) {
        if error == 0 && !place.is_null() {
            // SAFETY: contract: the API has filled it in.
            let address = unsafe { *place };
            // SAFETY: contract: a NUL-terminated name, and the program's own place.
            unsafe { *place = self.handed_out(address, name) };
        }
    }
}
