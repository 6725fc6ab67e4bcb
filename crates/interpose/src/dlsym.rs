//! Hooks on `dlsym` and its like, and who called us.
//!
//! The hooks are a few instructions ([`hook_dlsym!`]): they ask a Rust function
//! and then jump to the real one with everything as it was, so that it sees
//! the program's own return address, from which it derives what `RTLD_NEXT`
//! and `RTLD_DEFAULT` mean.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{Object, each_object};
use crate::held::hold;
use crate::real::is_ours;

/// A question to `dlsym`, as it lies on the stack.
#[repr(C)]
#[derive(Debug)]
pub struct Asked {
    /// The version; anything if `dlsym` was asked.
    pub version: *const c_char,
    /// The name.
    pub name: *const c_char,
    /// Where to look; the answer, if there is one already.
    pub handle: *mut c_void,
    /// Where the call returns to.
    pub caller: *const c_void,
}

/// One of the functions.
#[derive(Debug)]
pub struct Lookup {
    name: &'static CStr,
    real: AtomicPtr<c_void>,
}

/// `dlsym`.
pub static DLSYM: Lookup = Lookup::new(c"dlsym");
/// `dlvsym`.
pub static DLVSYM: Lookup = Lookup::new(c"dlvsym");
/// `dlopen`, whose file takes the place of the handle, and whose flags that of
/// the name.
pub static DLOPEN: Lookup = Lookup::new(c"dlopen");
/// `dlclose`.
pub static DLCLOSE: Lookup = Lookup::new(c"dlclose");

/// A function that our libraries have, each for its API.
pub(crate) const CLAIMS: &CStr = c"hetrace_claims";

/// Whether a library is one of ours, for any API.
pub(crate) fn is_hetrace(object: &Object) -> bool {
    object.definition(CLAIMS).is_some()
}

impl Lookup {
    const fn new(name: &'static CStr) -> Lookup {
        Lookup { name, real: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The real function: the first behind this library, found without
    /// `dlsym`. NULL only if nobody could have called it without us.
    pub fn real(&self) -> *mut c_void {
        let known = self.real.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        let (mut behind, mut found, mut before) = (false, None, None);
        each_object(|object| {
            if is_ours_unasked(object) {
                behind = true;
            } else if let Some(address) = object.definition(self.name) {
                // Loaded as a layer we stand at the end, behind all of them. Another of our libraries that came late
                // has us behind itself, and would send what it gets from us back.
                if behind {
                    found = Some(address);
                } else if object.definition(CLAIMS).is_none() {
                    before = Some(address);
                }
            }
            found.is_none()
        });
        let real = found.or(before).unwrap_or(std::ptr::null_mut());
        self.real.store(real, Ordering::Relaxed);
        real
    }

    /// Asks the real function, as this library.
    ///
    /// # Safety
    /// As `dlsym` or `dlvsym`.
    pub unsafe fn ask(&self, asked: &Asked) -> *mut c_void {
        let real = self.real();
        if real.is_null() {
            return real;
        }
        type Function = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
        // SAFETY: the address of one of the two, which begin with the same
        // arguments; one too many in a register does no harm.
        unsafe { std::mem::transmute::<*mut c_void, Function>(real)(asked.handle, asked.name, asked.version) }
    }
}

/// Inside a walk over the libraries none may be begun for the first time.
fn is_ours_unasked(object: &crate::elf::Object) -> bool {
    object.contains(is_ours as *const c_void)
}

/// Where the innermost call of this library came from: the first return
/// address outside of it. NULL if it is not known.
#[inline(never)]
pub fn caller() -> *const c_void {
    let mut found = std::ptr::null();
    each_frame(|at, _| {
        found = at;
        true
    });
    if is_ours(found) { std::ptr::null() } else { found }
}

/// As [`caller`], with the place on the stack where that return address lies; none if a function of this library is on the way
/// there.
#[inline(never)]
pub(crate) fn call_from_outside(without: *const c_void) -> Option<(*const c_void, usize)> {
    let (mut found, mut passed) = ((std::ptr::null(), 0), false);
    each_frame(|at, place| {
        found = (at, place);
        // The unwinder's table has where the function begins that a call returns to.
        passed |= is_ours(at) && function_of(at) == without;
        true
    });
    (!passed && !is_ours(found.0)).then_some(found)
}

/// Where the function of this library begins to which a call returns; NULL if the unwinder does not know it.
fn function_of(at: *const c_void) -> *const c_void {
    // SAFETY: asks the unwinder's tables for an address in code that is loaded. The address before is that of the call, which may be
    // the function's last instruction.
    unsafe { _Unwind_FindEnclosingFunction(at.wrapping_byte_sub(1).cast_mut()) }
}

/// Shows the return addresses of this thread's calls, the innermost first, and where on the stack they
/// lie, until `work` returns false: at the latest when one lies outside of this library, for only what
/// is ours is sure to have tables for the unwinder.
#[inline(never)]
pub(crate) fn each_frame<F: FnMut(*const c_void, usize) -> bool>(mut work: F) {
    unsafe extern "C" fn step<F: FnMut(*const c_void, usize) -> bool>(
        context: *mut c_void,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the unwinder's own context, valid during this call.
        let at = unsafe { _Unwind_GetIP(context) } as *const c_void;
        // SAFETY: the unwinder's own context, valid during this call: the stack as it was before the call that
        // returns to `at`.
        let stack = unsafe { _Unwind_GetCFA(context) };
        // SAFETY: the closure of `each_frame`, which nothing else uses until the unwinder returns.
        let work = unsafe { &mut *data.cast::<F>() };
        let goes_on = work(at, stack.wrapping_sub(size_of::<usize>())) && is_ours(at);
        if goes_on { 0 } else { 5 } // _URC_END_OF_STACK: enough.
    }
    is_ours(std::ptr::null()); // Known before the unwinder takes its lock.
    // The unwinder has locks, and old ones ask the dynamic loader for its list.
    let _held = hold();
    // SAFETY: `step` is called only while `work` lives, and ends the walk at the first address outside of this
    // library: only frames of this library are unwound, all of which have their tables. Of the function outside
    // the unwinder has looked for tables by then, and uses none.
    unsafe { _Unwind_Backtrace(step::<F>, (&raw mut work).cast()) };
}

// The compiler's own library, which the standard library needs already.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    fn _Unwind_FindEnclosingFunction(at: *mut c_void) -> *const c_void;
}

/// Exports `dlsym` and `dlvsym`. The two functions named get an [`Asked`] and
/// answer which function to go on with, or NULL if the answer is there.
#[macro_export]
macro_rules! hook_dlsym {
    ($dlsym:path, $dlvsym:path) => {
        $crate::hook_dlsym!(@ dlsym, $dlsym);
        $crate::hook_dlsym!(@ dlvsym, $dlvsym);
    };
    (@ $name:ident, $asked:path) => {
        // What the jump calls, and what nobody calls where there is no jump.
        const _: unsafe extern "C" fn(&mut $crate::dlsym::Asked) -> *mut std::ffi::c_void = $asked;

        /// Asks whether to answer ourselves, and else goes on as if it had
        /// never been here.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov rdi, rsp",
                "call {asked}",
                "mov r11, rax",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test r11, r11",
                "jz 2f",
                "jmp r11",
                "2: mov rax, rdi",
                "ret",
                ".cfi_endproc",
                asked = sym $asked,
            );
        }
    };
}

/// As [`hook_dlsym!`], for `dlopen` and `dlclose`.
#[macro_export]
macro_rules! hook_dlopen {
    ($dlopen:path, $dlclose:path) => {
        $crate::hook_dlsym!(@ dlopen, $dlopen);
        $crate::hook_dlsym!(@ dlclose, $dlclose);
    };
}
