//! Functions of a library that is found at run time, such as a vendor's collector: one table, filled anew for each library
//! that is tried.

use std::ffi::{CStr, c_void};

use crate::dlsym::{Asked, DLSYM};
use crate::is_ours;

/// What a function returns that the library does not have. Errors of the libraries themselves are positive.
pub const MISSING: i32 = -1;

/// Loads a library, which stays loaded, and hands over what finds its functions: asked past our own hook. Returns what
/// `with` makes of it; `None` if there is no such library. Messages of what failed are taken back, as they are not meant
/// for the program.
pub fn open<R>(path: &CStr, with: impl FnOnce(&dyn Fn(&CStr) -> *mut c_void) -> R) -> Option<R> {
    // SAFETY: a NUL-terminated path. What the library does when it is loaded is what it would do to any program that uses
    // it.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    let look_up = |name: &CStr| {
        let (version, caller) = (std::ptr::null(), is_ours as *const c_void);
        let asked = Asked { version, name: name.as_ptr(), handle, caller };
        // SAFETY: a live handle, as it is not NULL where this is called, and a NUL-terminated name.
        unsafe { DLSYM.ask(&asked) }
    };
    let done = (!handle.is_null()).then(|| with(&look_up));
    // SAFETY: no preconditions.
    unsafe { libc::dlerror() };
    done
}

/// Declares `Api`, a table of functions that return an `i32`, and `API`, that of the library in use:
///
/// ```ignore
/// foreign! {
///     version c"cuptiGetVersion" (version: *mut u32);
/// }
/// ```
#[macro_export]
macro_rules! foreign {
    ($($name:ident $symbol:literal ($($arg:ident: $ty:ty),* $(,)?);)*) => {
        /// One library's functions.
        #[derive(Debug)]
        pub struct Api {
            $($name: $crate::published::Published<std::ffi::c_void>,)*
        }

        /// Those of the library in use.
        pub static API: Api = Api { $($name: $crate::published::Published::new(),)* };

        impl Api {
            /// Takes the functions of one library. Returns whether it has all of them.
            pub fn load(&self, look_up: impl Fn(&std::ffi::CStr) -> *mut std::ffi::c_void) -> bool {
                let mut all = true;
                $(
                    let address = look_up($symbol);
                    all &= !address.is_null();
                    self.$name.set(address);
                )*
                all
            }

            $(
                /// The function of that name.
                ///
                /// # Safety
                /// As the real function.
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> i32 {
                    let address = self.$name.get();
                    if address.is_null() {
                        return $crate::foreign::MISSING;
                    }
                    // SAFETY: the function of that name has had these parameters
                    // in all versions.
                    unsafe {
                        let function =
                            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($ty),*) -> i32>(address);
                        function($($arg),*)
                    }
                }
            )*
        }
    };
}
