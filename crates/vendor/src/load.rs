//! Libraries of vendors, and their functions by name.

use std::ffi::OsStr;
use std::path::Path;

use libloading::Library;

/// Loads the given file, or the first of `names` that there is. The error is of the given file, or of the first name.
pub(crate) fn first(given: Option<&Path>, names: &[&str]) -> Result<Library, libloading::Error> {
    let files = match given {
        Some(file) => vec![file.as_os_str()],
        None => names.iter().map(OsStr::new).collect(),
    };
    let mut error = None;
    for file in files {
        // SAFETY: a vendor's library, or a file that the user has named for one: what it does when it is loaded is part of
        // asking for it. It stays loaded as long as any of its functions is held.
        match unsafe { Library::new(file) } {
            Ok(library) => return Ok(library),
            Err(failed) => error = error.or(Some(failed)),
        }
    }
    Err(error.unwrap_or(libloading::Error::DlOpenUnknown))
}

/// A struct of functions of a library, which it holds. `of` fails with the name of the first that is missing.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($field:ident: fn($($arg:ty),*) -> $result:ty = $symbol:literal,)*
        }
        optional {
            $($(#[$optional_meta:meta])* $optional:ident: fn($($optional_arg:ty),*) -> $optional_result:ty = $optional_symbol:literal,)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($vis $field: unsafe extern "C" fn($($arg),*) -> $result,)*
            $($(#[$optional_meta])* $vis $optional: Option<unsafe extern "C" fn($($optional_arg),*) -> $optional_result>,)*
            /// Last, so that it is unloaded last.
            _library: Library,
        }

        impl $name {
            $vis fn of(library: Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the symbol, if it is there, is the function of this name, whose signature is that of the
                    // vendor's header.
                    $($field: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }.map_err(|_| $symbol)?,)*
                    // SAFETY: the same; none if it is not there.
                    $($optional: unsafe { library.get(concat!($optional_symbol, "\0").as_bytes()) }.ok().map(|found| *found),)*
                    _library: library,
                })
            }
        }
    };
}
pub(crate) use functions;
