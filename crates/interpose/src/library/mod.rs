//! The preloaded way in, for an API whose one shared library exports all
//! functions. An API describes its library as a [`Library`]: its name and how it is
//! recognised (`library!` makes one); the rest is here.
//!
//! A program reaches a wrapper because it is linked to the name, because it
//! asked `dlsym` for it, or because the API itself handed out an address that
//! was exchanged ([`Library::handed_out`]). The wrapper must go on to the very
//! function that the program would have reached without us:
//!
//! * *Linked.* What the global scope holds behind us comes first, as it does
//!   for the dynamic loader; else the library that the caller needs itself. An
//!   API whose libraries have versions in their symbols is the other way
//!   round, for there the caller's version decides.
//! * *By address.* Each copy of the library has entries of its own
//!   ([`entries`](crate::entry_thunks)), which say which copy is meant.
//!
//! While one copy is loaded, a wrapper jumps to an address that was looked up
//! once. Another copy may come with every `dlopen`; so that one raises a flag
//! before it begins, and from then on wrappers go through short jumps that look
//! whether somebody calls for the first time ([`watch`]). With two copies each
//! call is asked who makes it ([`choose`]).
//!
//! * [`copies`]: which copies there are, and what they define;
//! * [`watch`]: noticing a second one; [`openers`], [`seal`], [`moves`]: what its threads have between them;
//! * [`choose`]: which one a call means;
//! * [`callers`], [`seen`]: who makes a call, without a lock, and who was looked at;
//! * [`asked`]: what `dlsym` returns; [`names`], [`index`]: the names, and their numbers;
//! * [`loaders`]: what is particular about a library that is a loader of drivers;
//! * [`handed`]: functions that the API hands out in tables;
//! * [`parts`]: a library in several files;
//! * [`neighbours`]: names that another API has, too; [`shared`]: names that libraries which are no API's have, too;
//! * [`started`]: putting right what our presence changed at the start;
//! * [`thunks`], [`hint`]: the machine code, and what it shows;
//! * [`named`]: which libraries are loaded, by their names;
//! * [`unknown`]: functions that the model does not have.
//!
//! What can't be done:
//! * A library opened with `RTLD_DEEPBIND` and linked to the API is bound to it
//!   directly, and stays untraced.
//! * A library opened later that refers to the API weakly finds it though it
//!   may not be there.
//! * Away from x86-64 there are no jumps: of several copies only the first is
//!   traced by address, and functions whose signature has changed only by address.

pub mod asked;
mod callers;
mod choose;
mod copies;
mod givers;
mod handed;
pub mod hint;
pub mod index;
mod loaders;
#[cfg(test)]
mod loaders_tests;
mod moves;
pub mod named;
pub mod names;
mod neighbours;
mod openers;
mod parts;
mod seal;
mod seen;
pub mod shared;
pub mod started;
#[cfg(test)]
mod tests;
mod thunks;
pub mod unknown;
pub mod watch;

pub use choose::{Scope, scope};
pub use copies::{COPIES, Copy};
pub use handed::Handed;
pub use loaders::Loader;
use names::Names;
use shared::Shared;
pub use started::global_scope;
use started::restore;

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::process::note;
use crate::real::{Address, Real};

/// A pointer of any kind.
pub type P = *mut c_void;

/// An API's library: how it is recognised, and what is known of its copies.
/// Made by `library!`.
#[allow(missing_debug_implementations, reason = "holds functions")]
pub struct Library {
    /// What an API says of itself.
    pub traits: Traits,
    /// Names of files that hold parts of a copy begin like this; none of a library in one file.
    pub parts: &'static [&'static str],
    /// The names of all functions, by their numbers.
    pub names: Names,
    /// Where each name stands, as [`index::index`] made it.
    pub index: &'static [u16],
    /// Finds the wrapper of a function by its name: what this library itself exports.
    pub wrapper_of: fn(&CStr) -> Option<P>,
    /// What the wrappers go on to.
    pub real: &'static [Real],
    /// The copies in the process; the first is the one that is used alone.
    pub copies: &'static [Copy; COPIES],
    /// The definitions of each copy, copy after copy.
    pub defined: &'static [Real],
    /// What stands in the global scope behind us and is reached by all.
    pub first: &'static [Real],
    /// The wrappers of the entries, copy after copy.
    pub entries: &'static [Real],
    /// Functions whose symbol has this signature only since a version, and their
    /// wrappers.
    pub changed: &'static [(usize, Version, Address)],
    /// Which calls of names are whose that other libraries have, too; `None` if the API has its names for itself.
    pub shared: Option<Shared>,
    /// The jumps that choose, by number.
    pub choosing: fn(usize) -> Option<P>,
    /// The entries of the copies.
    pub entry: fn(usize) -> Option<P>,
    /// Stands for a function that a copy lacks.
    pub missing: extern "C" fn() -> usize,
    /// Starts all this.
    pub loaded: extern "C" fn(),
}

/// The first two numbers of a version.
pub type Version = (u32, u32);

/// Reads a version out of the number that the API has.
pub type ReadVersion = fn(i32) -> Version;

/// How the version of a copy is found.
#[derive(Debug, Clone, Copy)]
pub enum FindVersion {
    /// A function `int f(int *version)`, and how to read what it says. It is called when a program asks for a function
    /// whose signature has changed: it must start nothing.
    Call(&'static CStr, ReadVersion),
    /// What versions brought, oldest first: a copy has the version of the last that it exports, and one that exports
    /// none is older than all.
    Exports(&'static [(&'static CStr, Version)]),
}

/// What an API says of its library.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// How people spell it, for notes.
    pub title: &'static str,
    /// A function that every copy has.
    pub signature: &'static CStr,
    /// Names of its libraries begin like this.
    pub sonames: &'static [&'static str],
    /// Whether a name may be one of its functions.
    pub begins: fn(&[u8]) -> bool,
    /// What stands for functions of other libraries that the API's own code must
    /// see called.
    pub beside: fn(&CStr) -> Option<P>,
    /// The symbols carry the library's version, so that each caller finds the
    /// copy it was linked to.
    pub versioned: bool,
    /// Copies with different names, or inside other libraries, are usual. Of a
    /// library with one name all linked callers reach the same.
    pub several: bool,
    /// How a copy's version is found, where signatures have changed.
    pub version: Option<FindVersion>,
    /// What callers with these beginnings of names ask for is their business.
    pub spared: &'static [&'static str],
    /// As are callers that define one of these.
    pub sparing: &'static [&'static CStr],
    /// The library is a loader: drivers with the same names stand behind it.
    pub loader: Option<Loader>,
}

/// The API's, since it started.
static LIBRARY: AtomicPtr<Library> = AtomicPtr::new(std::ptr::null_mut());

fn library() -> Option<&'static Library> {
    // SAFETY: NULL or what `started` was called with.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }
}

impl Library {
    /// The number of a function.
    pub fn number(&self, name: &CStr) -> Option<usize> {
        index::find(self.index, &self.names, name)
    }

    /// Leaves a line for the report, with the API's name before it.
    fn say(&self, text: &[u8]) {
        let mut line = [0; 120];
        let parts = self.traits.title.as_bytes().iter().chain(b": ").chain(text);
        let length = line.iter_mut().zip(parts).map(|(to, from)| *to = *from).count();
        note(line.get(..length).unwrap_or_default());
    }

    fn wrapper(&self, number: usize) -> Option<P> {
        match &self.shared {
            // The symbol is a jump that asks whose the call is.
            Some(shared) => shared.wrapper(number),
            None => (self.wrapper_of)(self.names.get(number)?),
        }
    }
}

/// Makes an API's [`Library`], `LIBRARY`, with all that is sized by its
/// functions, the hooks on the dynamic loader, and `REAL` and `look_up` for the
/// generated files. The API's crate has a function `loaded` that starts it.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the API's crate is meant")]
macro_rules! library {
    (@ changed) => { &[] };
    (@ changed $changed:path) => { &$changed };
    (@ shared) => { None };
    (@ shared $wrappers:path) => {
        Some($crate::library::shared::Shared::new(&$wrappers, {
            static OTHERS: [$crate::library::shared::Other; COUNT] =
                [const { $crate::library::shared::Other::unknown() }; COUNT];
            &OTHERS
        }))
    };
    (@ parts) => { &[] };
    (@ parts $parts:expr) => { &$parts };
    ($names:path, $(changed: $changed:path,)? $(parts: $parts:expr,)? $(shared: $wrappers:path,)? absent: $absent:literal, $traits:expr) => {
        const COUNT: usize = $names.len();
        const ALL: usize = COUNT * $crate::library::COPIES;
        static INDEX: [u16; $crate::library::index::places(COUNT)] = $crate::library::index::index(&$names);

        /// The real functions that the wrappers go on to.
        pub static REAL: [$crate::Real; COUNT] = [const { $crate::Real::unknown() }; COUNT];
        static FIRST: [$crate::Real; COUNT] = [const { $crate::Real::unknown() }; COUNT];
        static DEFINED: [$crate::Real; ALL] = [const { $crate::Real::unknown() }; ALL];
        static ENTRIES: [$crate::Real; ALL] = [const { $crate::Real::unknown() }; ALL];
        static COPIES: [$crate::library::Copy; $crate::library::COPIES] =
            [const { $crate::library::Copy::unknown() }; $crate::library::COPIES];

        /// The API's library.
        pub static LIBRARY: $crate::library::Library = $crate::library::Library {
            traits: $traits,
            parts: $crate::library!(@ parts $($parts)?),
            names: $crate::names!($names),
            index: &INDEX,
            wrapper_of: $crate::own_definition,
            real: &REAL,
            copies: &COPIES,
            defined: &DEFINED,
            first: &FIRST,
            entries: &ENTRIES,
            changed: $crate::library!(@ changed $($changed)?),
            shared: $crate::library!(@ shared $($wrappers)?),
            choosing: choosing::thunk,
            entry: entering::thunk,
            missing,
            loaded: crate::loaded,
        };

        /// Whether a library is the API's, for our libraries of other APIs.
        #[unsafe(no_mangle)]
        extern "C" fn hetrace_claims(start: *const std::ffi::c_void) -> bool {
            LIBRARY.claims(start)
        }

        /// What this library has of its session, for our libraries of other APIs.
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, reason = "a symbol of the library")]
        static hetrace_joined: &$crate::Joined = &$crate::JOINED;

        /// Runs when the library is loaded.
        pub extern "C" fn at_start() {
            LIBRARY.at_start();
        }

        extern "C" fn missing() -> usize {
            $absent
        }

        extern "C" fn choose(number: usize, stack: *const *const std::ffi::c_void) -> $crate::library::P {
            // SAFETY: the jumps pass the place of the return address of their call.
            unsafe {
                match number.checked_sub(COUNT) {
                    None => LIBRARY.choose(number, stack),
                    Some(number) => LIBRARY.select(number, stack),
                }
            }
        }

        $crate::choosing_thunks!(choosing, 2 * super::COUNT, super::choose);
        $crate::entry_thunks!(entering, super::ALL, super::ENTRIES);

        /// Looks up a real function whose address nothing has given us.
        #[cold]
        #[inline(never)]
        pub fn look_up(known: &$crate::Real, number: usize) -> Option<$crate::library::P> {
            LIBRARY.find(known, number)
        }

        $crate::hook_dlsym!(hooks::dlsym, hooks::dlvsym);
        $crate::hook_dlopen!(hooks::dlopen, hooks::dlclose);

        mod hooks {
            use $crate::dlsym::{Asked, DLCLOSE, DLOPEN, DLSYM, DLVSYM};
            use $crate::library::P;

            pub unsafe extern "C" fn dlsym(asked: &mut Asked) -> P {
                super::LIBRARY.asked(&DLSYM, asked)
            }

            pub unsafe extern "C" fn dlvsym(asked: &mut Asked) -> P {
                super::LIBRARY.asked(&DLVSYM, asked)
            }

            pub unsafe extern "C" fn dlopen(asked: &mut Asked) -> P {
                super::LIBRARY.opening(&DLOPEN, asked)
            }

            pub unsafe extern "C" fn dlclose(asked: &mut Asked) -> P {
                super::LIBRARY.closing(&DLCLOSE, asked)
            }
        }
    };
}
