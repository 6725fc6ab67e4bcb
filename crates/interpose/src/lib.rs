//! What every interposer needs, whatever its API: finding the session and the
//! real functions, recording a call, and never being noticed.
//!
//! An API's library (`apis/NAME`) is made of generated wrappers that call
//! [`call()`], and of a little hand-written knowledge. This crate is linked into
//! each of them, so everything `static` here exists once per API library.
//!
//! What binds it:
//! * no panic, no unwinding, no abort, no output, no change of `errno`;
//! * no allocation, lock or system call on the path of a recorded call, except
//!   the first of each thread and when a ring is full;
//! * anything not understood is passed through.

#![cfg_attr(loom, allow(dead_code, reason = "those who use it are left out"))]

mod account;
mod arena;
mod asan;
mod attach;
pub mod budget;
mod call;
mod cancel;
pub mod chain;
pub mod commands;
pub mod contexts;
mod direct;
pub mod dlsym;
pub mod early;
mod elf;
mod errno;
mod error_texts;
mod errors;
mod extra;
mod flags;
pub mod foreign;
mod forked;
pub mod glob;
mod grow;
pub mod halves;
pub mod handles;
pub mod hash;
pub mod held;
#[cfg(not(loom))]
pub mod inside;
mod join;
mod known;
pub mod life;
// Has a table in a static, which `Table::new` of a build for loom can't make.
#[cfg(not(loom))]
pub mod library;
mod mapped;
pub mod measure;
pub mod members;
#[cfg(target_arch = "x86_64")]
mod native;
#[cfg(not(target_arch = "x86_64"))]
#[path = "native/elsewhere.rs"]
mod native;
pub mod objects;
mod own;
pub mod pair;
pub mod peek;
mod phase;
pub mod prelude;
mod primitive;
mod process;
pub mod published;
pub mod put;
mod python;
// Likewise.
#[cfg(not(loom))]
pub mod ranges;
mod raw_elf;
mod real;
mod record;
mod room;
mod selection;
mod sent;
mod share;
mod spent;
pub mod table;
mod text;
mod thread;
mod tls;
mod who;
pub mod window;
pub mod worker;
mod write;

pub use budget::Outcome;
pub use call::{OwnWork, call, count_commands, poll};
pub use direct::own_definition;
pub use elf::{Object, Reference, each_object, generation};
pub use errno::ErrnoGuard;
pub use error_texts::{error_text, error_texts};
pub use errors::set_error_reporter;
pub use extra::Extra;
pub use flags::{FLAGS, Flags, flags, is_selected};
pub use hetrace_ring as ring;
pub use join::{JOINED, Joined, start, start_unused, used};
pub use native::describe_code;
pub use own::{pid, task};
pub use process::{Session, note, session, store_blob};
pub use real::{Address, Real, is_ours, lead, look_up_next};
pub use record::{record_extra, record_extra_at, record_with_text};
pub use room::await_room;
pub use spent::{Spent, collector_takes, collector_takes_once, loading, own_device, spend};
pub use thread::{thread_extra, thread_id, with_guard};
pub use window::{entering, in_window};

/// Version of the shared memory that this library was built for, for a
/// launcher that reads the file: one of another version says so and stops.
#[used]
#[unsafe(link_section = ".hetrace.abi")]
static ABI: u32 = hetrace_ring::abi::ABI_VERSION.to_le();

/// The version that this library's file says.
pub(crate) fn abi_version() -> u32 {
    // SAFETY: a constant of this library. Read as it stands in the file, so that what the launcher finds there and what
    // the library goes by are one.
    u32::from_le(unsafe { (&raw const ABI).read_volatile() })
}

/// Makes a library of an API's crate: `loaded` runs when the library is loaded, and its file has the model that it
/// was made from and that model's index, for whoever reads these.
#[macro_export]
macro_rules! api_library {
    ($loaded:path, $model:literal, $index:literal) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static LOADED: extern "C" fn() = {
            extern "C" fn begin() {
                $crate::loading($loaded);
            }
            begin
        };

        #[used]
        #[unsafe(link_section = ".hetrace.model")]
        static MODEL: [u8; include_bytes!($model).len()] = *include_bytes!($model);

        #[used]
        #[unsafe(link_section = ".hetrace.index")]
        static INDEX: [u8; include_bytes!($index).len()] = *include_bytes!($index);
    };
}

/// Makes the wrapper of one function: the symbol that programs call, which
/// jumps to the real function when nothing is to be recorded, and the part
/// that records, kept apart so that the first needs no stack. The API's crate
/// has a function `loaded` that starts it.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the API's crate is meant")]
macro_rules! wrapper {
    ($(#[$meta:meta])* $index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        $(#[$meta])*
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(never)]
            unsafe extern "C" fn recorded($($arg: $ty),*) $(-> $ret)? {
                let $on = $crate::entering($index);
                if $on == 0 {
                    // SAFETY: the arguments are the program's own.
                    return unsafe { real::$name($($arg),*) };
                }
                // SAFETY: the arguments are the program's own.
                unsafe { $body }
            }
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn scoped($($arg: $ty),*) $(-> $ret)? {
                let _copy = $crate::library::scope(crate::loaded);
                // SAFETY: the arguments are the program's own.
                unsafe { recorded($($arg),*) }
            }
            if $crate::flags($index) == 0
                && let Some(known) = real::known::$name()
            {
                // SAFETY: the arguments are the program's own.
                return unsafe { known($($arg),*) };
            }
            if $crate::early::unusual() {
                // SAFETY: the arguments are the program's own.
                return unsafe { scoped($($arg),*) };
            }
            // SAFETY: the arguments are the program's own.
            unsafe { recorded($($arg),*) }
        }
    };
}

/// As [`wrapper!`], for a function that hands out others, with a hook: also where nothing is to be
/// recorded, since programs ask once and keep what they got until something is.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the API's crate is meant")]
macro_rules! handing_wrapper {
    ($(#[$meta:meta])* $index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        $(#[$meta])*
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            let _copy = $crate::early::unusual().then(|| $crate::library::scope(crate::loaded));
            let $on = $crate::entering($index);
            if $on == 0 {
                // SAFETY: the arguments are the program's own.
                return unsafe { crate::hooks::$name(0, $($arg),*) };
            }
            // SAFETY: the arguments are the program's own.
            unsafe { $body }
        }
    };
}

/// As [`wrapper!`], for a function with structs that are passed by value. There
/// the way on may be a call and no jump, so it always begins by knowing who called.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the API's crate is meant")]
macro_rules! value_wrapper {
    ($(#[$meta:meta])* $index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        $(#[$meta])*
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            unsafe fn recorded($($arg: $ty),*) $(-> $ret)? {
                let $on = $crate::entering($index);
                if $on == 0
                    && let Some(known) = real::known::$name()
                {
                    // SAFETY: the arguments are the program's own.
                    return unsafe { known($($arg),*) };
                }
                if $on == 0 {
                    // SAFETY: the arguments are the program's own.
                    return unsafe { real::$name($($arg),*) };
                }
                // SAFETY: the arguments are the program's own.
                unsafe { $body }
            }
            #[cold]
            #[inline(never)]
            unsafe extern "C" fn scoped($($arg: $ty),*) $(-> $ret)? {
                let _copy = $crate::library::scope(crate::loaded);
                // SAFETY: the arguments are the program's own.
                unsafe { recorded($($arg),*) }
            }
            if $crate::early::unusual() {
                // SAFETY: the arguments are the program's own.
                return unsafe { scoped($($arg),*) };
            }
            // SAFETY: the arguments are the program's own.
            unsafe { recorded($($arg),*) }
        }
    };
}

/// As [`wrapper!`], for a function whose symbol had another signature in older
/// libraries: the symbol is a jump that first asks which library the call means.
#[macro_export]
macro_rules! changed_wrapper {
    ($names:path, #[$export:meta] $index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        #[cfg(target_arch = "x86_64")]
        $crate::value_wrapper! { $index $name($($arg: $ty),*) $(-> $ret)?, $on, $body }

        #[cfg(target_arch = "x86_64")]
        const _: () = {
            #[$export]
            #[unsafe(naked)]
            pub unsafe extern "C" fn symbol() {
                std::arch::naked_asm!(
                    "jmp hetrace_choosing + {place}",
                    place = const 16 * ($names.len() + $index),
                )
            }
        };

        // Without the jump nobody may stand before the symbol: what an older
        // signature has on the stack would be lost.
        #[cfg(not(target_arch = "x86_64"))]
        $crate::value_wrapper! { $index $name($($arg: $ty),*) $(-> $ret)?, $on, $body }

        #[cfg(not(target_arch = "x86_64"))]
        const _: usize = $names.len();
    };
}

/// As [`wrapper!`], for a function whose name libraries of others have, too: the symbol is a jump that first asks which
/// function the call would reach without us.
#[macro_export]
macro_rules! shared_wrapper {
    ($names:path, $wrapper:ident, #[$export:meta] $index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        #[cfg(target_arch = "x86_64")]
        $crate::$wrapper! { $index $name($($arg: $ty),*) $(-> $ret)?, $on, $body }

        #[cfg(target_arch = "x86_64")]
        const _: () = {
            #[$export]
            #[unsafe(naked)]
            pub unsafe extern "C" fn symbol() {
                std::arch::naked_asm!(
                    "jmp hetrace_choosing + {place}",
                    place = const 16 * ($names.len() + $index),
                )
            }
        };

        // Without the jump nobody may stand before the symbol: it may be another library's.
        #[cfg(not(target_arch = "x86_64"))]
        $crate::$wrapper! { $index $name($($arg: $ty),*) $(-> $ret)?, $on, $body }

        #[cfg(not(target_arch = "x86_64"))]
        const _: usize = $names.len();
    };
}

/// As [`wrapper!`], for a function that is handed out by address: `I` says
/// which of several real functions with this name is meant.
#[macro_export]
macro_rules! extension {
    ($index:literal $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? , $on:ident, $body:block) => {
        pub unsafe extern "C" fn $name<const I: usize>($($arg: $ty),*) $(-> $ret)? {
            let $on = $crate::entering($index);
            if $on == 0 {
                // SAFETY: the arguments are the program's own.
                return unsafe { real::$name::<I>($($arg),*) };
            }
            // SAFETY: the arguments are the program's own.
            unsafe { $body }
        }
    };
}
