//! Another tool takes CUPTI: PyTorch's profiler, for one, subscribes and registers
//! buffers of its own when the program asks for a profile. CUPTI has room for one.
//! So this library stands before the functions by which tools begin, and lets go
//! of CUPTI first.

use std::ffi::{CStr, c_void};

use hetrace_interpose::dlsym::caller;
use hetrace_interpose::{Object, each_object, is_ours, look_up_next};

use super::api::NOT_INITIALIZED;
use super::{active, give_up, library};

macro_rules! stand_before {
    ($($name:ident $text:literal)*) => {
        $(
            /// As CUPTI's function of that name.
            ///
            /// # Safety
            /// As the real function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(a: usize, b: usize, c: usize, d: usize) -> i32 {
                // SAFETY: the caller calls the real function of this name, which has at most these four
                // arguments, all in registers.
                unsafe { taken($text, a, b, c, d) }
            }
        )*

        /// What programs that ask `dlsym` for such a function are to get.
        #[allow(dead_code, reason = "for the hook on dlsym")]
        pub fn exported(name: &CStr) -> Option<*mut c_void> {
            $(
                if name == $text {
                    return Some($name as *mut c_void);
                }
            )*
            None
        }
    };
}

stand_before! {
    cuptiSubscribe c"cuptiSubscribe"
    cuptiSubscribe_v2 c"cuptiSubscribe_v2"
    cuptiActivityRegisterCallbacks c"cuptiActivityRegisterCallbacks"
    cuptiActivityRegisterCallbacks_v2 c"cuptiActivityRegisterCallbacks_v2"
}

/// # Safety
/// The arguments are those of the function with that name; what is too much is
/// in registers that it does not look at.
unsafe fn taken(name: &CStr, a: usize, b: usize, c: usize, d: usize) -> i32 {
    let caller = Object::holding(caller());
    // A libcupti may come by its own exported name.
    if active() && !caller.as_ref().is_some_and(library::is_cupti) {
        give_up(b"the program uses CUPTI itself");
    }
    let real = real(name, caller);
    if real.is_null() {
        return NOT_INITIALIZED;
    }
    type Function = unsafe extern "C" fn(usize, usize, usize, usize) -> i32;
    // SAFETY: `real` is not NULL and has this name, so `a` to `d` are its arguments and registers it ignores.
    unsafe { std::mem::transmute::<*mut c_void, Function>(real)(a, b, c, d) }
}

/// What the caller would have reached without us: in the scope of all, in what it
/// needs itself, or in the only libcupti that there is.
fn real(name: &CStr, caller: Option<Object>) -> *mut c_void {
    let next = look_up_next(name);
    if !next.is_null() && !is_ours(next) {
        return next;
    }
    let needed = caller.and_then(|c| c.provider(name)).filter(library::is_cupti);
    if let Some(found) = needed.and_then(|l| l.definition(name)) {
        return found;
    }
    let mut found = std::ptr::null_mut();
    each_object(|object| {
        if library::is_cupti(object) {
            found = object.definition(name).unwrap_or(std::ptr::null_mut());
        }
        found.is_null()
    });
    found
}
