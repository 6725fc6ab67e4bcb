//! AddressSanitizer's shared runtime ends a program in which another library was
//! loaded before it, for that one might have taken `malloc` from it. We do stand
//! before it when preloaded, and define nothing that it intercepts but `dlsym`'s
//! kind, behind which its own are called. So its check is switched off, by the
//! function that it asks for options. A program's own function of this name
//! stands before ours; `ASAN_OPTIONS` is read afterwards and has the last word.

use std::ffi::c_char;

/// What the runtime calls before anything of ours was started.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"verify_asan_link_order=0".as_ptr()
}
