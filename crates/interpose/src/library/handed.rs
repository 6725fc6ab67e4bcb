//! Functions that the API hands out in tables.
//!
//! A program that fills in such a table calls what it finds there, which is not what the library exports: it may be
//! a function inside, of a layer, or of the driver itself. Each of them gets an entry that leads to the wrapper of
//! the exported function and from there to the very function that was in the table. So these functions are a copy
//! of the library of their own, which is no file: one of the places for copies is kept for them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::watch::moves;
use super::{Library, P, Version, givers, unknown};
use crate::elf::Object;
use crate::errno::ErrnoGuard;
use crate::process::session;
use crate::real::is_ours;

/// One function in a table.
#[derive(Debug, Clone, Copy)]
pub struct Handed {
    /// Where in the table its address lies, in bytes.
    offset: u32,
    /// The number of the function.
    number: u32,
    /// The version of the API since which the table has it.
    since: Version,
}

impl Handed {
    /// A function, for the generated tables.
    pub const fn new(offset: u32, number: u32, since: Version) -> Handed {
        Handed { offset, number, since }
    }
}

impl Library {
    /// Exchanges the functions in a table that the API has filled in for a program that asked for this version.
    ///
    /// # Safety
    /// `table` is NULL, or a table of this version, which the API has filled in.
    pub unsafe fn hand_out(&self, table: P, functions: &[Handed], version: Version) {
        if table.is_null() || session().is_none() {
            return;
        }
        let _errno = ErrnoGuard::new();
        for function in functions.iter().filter(|f| f.since <= version) {
            // SAFETY: contract: the table of this version has a member there.
            let place = unsafe { table.cast::<u8>().add(function.offset as usize).cast::<P>() };
            // SAFETY: the member that is there has an address, which the API has filled in.
            let address = unsafe { place.read_unaligned() };
            if let Some(ours) = self.handed(address, function.number as usize) {
                // SAFETY: the same member; the table is the program's, which waits for the call to return.
                unsafe { place.write_unaligned(ours) };
            }
        }
    }

    /// Exchanges a function that the API has handed out by its name: one of the model's, or one of which nothing is
    /// known but its name.
    ///
    /// # Safety
    /// `place` is NULL or has an address, and `name` is NULL or NUL-terminated.
    pub unsafe fn hand_out_named(&self, place: *mut P, name: *const libc::c_char) {
        if place.is_null() || name.is_null() || session().is_none() {
            return;
        }
        let _errno = ErrnoGuard::new();
        // SAFETY: contract: neither is NULL.
        let (address, name) = unsafe { (*place, CStr::from_ptr(name)) };
        let found = match self.number(name) {
            Some(number) => self.handed(address, number),
            None if address.is_null() || is_ours(address) => None,
            None => unknown::thunk(name, address),
        };
        if let Some(ours) = found {
            // SAFETY: contract: the program's place, which waits for the call to return.
            unsafe { *place = ours };
        }
    }

    /// What stands for the function at an address that the API hands out under the number of another, which does
    /// the same.
    fn handed(&self, address: P, number: usize) -> Option<P> {
        if address.is_null() || is_ours(address) {
            return None;
        }
        let age = moves();
        let exported = match givers::known(address, age) {
            Some(known) => Some(known),
            None => {
                // A member that the API has left as it was may be any number.
                let object = Object::holding(address).filter(|o| o.executes(address))?;
                let copy = Some(()).filter(|()| self.is_copy(&object)).and_then(|()| self.copy(&object));
                let known = copy.map(|copy| (copy, object));
                known.inspect(|known| givers::remember(known, age))
            }
        };
        let defines = |known: &(usize, Object)| self.defined_in(known.0, &known.1, number) == Some(address);
        if let Some((copy, _)) = exported.filter(defines) {
            return self.entry_of(copy, number);
        }
        let copy = self.behind(address, number)?;
        // Its entry leaves a hint, and linked callers leave none.
        self.ask_each_time();
        self.entry_of(copy, number)
    }

    /// The copy, which is no file, that has this function at this address.
    pub(super) fn behind(&self, address: P, number: usize) -> Option<usize> {
        for (copy, known) in self.copies.iter().enumerate().skip(1).rev() {
            if !known.is_handed_out() {
                continue;
            }
            let place = self.defined.get(copy * self.names.len() + number)?;
            if place.get().is_null() {
                place.set(address);
            }
            if place.get() == address {
                return Some(copy);
            }
        }
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            self.say(b"too many tables of functions: some calls are not traced");
        }
        None
    }
}
