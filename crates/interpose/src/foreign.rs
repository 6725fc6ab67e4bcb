//! Functions of a library that is found at run time, such as a vendor's collector: one table, filled anew for each library
//! that is tried.

/// What a function returns that the library does not have. Errors of the libraries themselves are positive.
pub const MISSING: i32 = -1;

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
