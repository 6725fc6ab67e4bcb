//! Functions by which objects come and go that timed commands depend on: the
//! source of times is chosen before the first context, and nothing of ours is
//! touched after the last. Named `hook` in `semantics.toml`.
//!
//! All of them pass the program's own arguments on, and its answers back.
//!
//! Between threads are addresses of contexts, which are compared and not followed, and counts: nothing is handed over by them.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_interpose::in_window;

use crate::device;
use crate::generated::prelude::{P, c_void, null_mut};
use crate::generated::real;
use crate::inside::{self, Code, Jit};
use crate::kernel_args;

type CUresult = u32;

/// What a successful call has put behind a pointer.
///
/// # Safety
/// `at` is NULL or was filled in if `error` is 0.
unsafe fn made(error: CUresult, at: *mut P) -> Option<P> {
    if error != 0 || at.is_null() {
        return None;
    }
    // SAFETY: `at` is not NULL and `error` is 0, so the call has filled the place in.
    Some(unsafe { at.read() })
}

pub unsafe fn cuInit(_: u64, flags: u32) -> CUresult {
    // SAFETY: the program's own argument.
    let error = unsafe { real::cuInit(flags) };
    if error == 0 {
        device::start();
    }
    error
}

/// A function that makes an object, and what is to be remembered of it.
macro_rules! makes {
    ($hook:path: $($name:ident($place:ident: *mut P $(, $arg:ident: $ty:ty)*);)*) => { $(
        pub unsafe fn $name(_: u64, $place: *mut P $(, $arg: $ty)*) -> CUresult {
            device::start();
            // SAFETY: the program's own arguments.
            let error = unsafe { real::$name($place $(, $arg)*) };
            // SAFETY: the real function fills the place in.
            if let Some(made) = unsafe { made(error, $place) } {
                $hook(made);
            }
            error
        }
    )* };
}

/// Runs a function that puts a new context of a device behind `place`, and remembers it. Returns what it returned.
///
/// # Safety
/// `place` is NULL, or `call` fills it in if it returns 0.
unsafe fn making_context(place: *mut P, dev: i32, call: impl FnOnce() -> CUresult) -> CUresult {
    device::start();
    let error = call();
    // SAFETY: contract: `call` has filled the place in.
    if let Some(context) = unsafe { made(error, place) } {
        device::context_made(context, dev);
    }
    error
}

pub unsafe fn cuCtxCreate(_: u64, pctx: *mut P, flags: u32, dev: i32) -> CUresult {
    // SAFETY: the program's own arguments, of which the real function fills the place in.
    unsafe { making_context(pctx, dev, || real::cuCtxCreate(pctx, flags, dev)) }
}

pub unsafe fn cuCtxCreate_v2(_: u64, pctx: *mut P, flags: u32, dev: i32) -> CUresult {
    // SAFETY: the program's own arguments, of which the real function fills the place in.
    unsafe { making_context(pctx, dev, || real::cuCtxCreate_v2(pctx, flags, dev)) }
}

pub unsafe fn cuCtxCreate_v3<T>(
    _: u64,
    pctx: *mut P,
    params: *mut T,
    n: i32,
    flags: u32,
    dev: i32,
) -> CUresult {
    // SAFETY: the program's own arguments, `params` among them; the real function fills the place in.
    unsafe { making_context(pctx, dev, || real::cuCtxCreate_v3(pctx, params.cast(), n, flags, dev)) }
}

pub unsafe fn cuCtxCreate_v4<T>(_: u64, pctx: *mut P, params: *mut T, flags: u32, dev: i32) -> CUresult {
    // SAFETY: the program's own arguments, `params` among them; the real function fills the place in.
    unsafe { making_context(pctx, dev, || real::cuCtxCreate_v4(pctx, params.cast(), flags, dev)) }
}

makes! { device::stream_made:
    cuStreamCreate(phStream: *mut P, flags: u32);
    cuStreamCreateWithPriority(phStream: *mut P, flags: u32, priority: i32);
    cuGreenCtxStreamCreate(phStream: *mut P, green: P, flags: u32, priority: i32);
}

const DEVICES: usize = 64;
/// Primary contexts by device, and how often the program retains each.
static PRIMARY: [AtomicPtr<c_void>; DEVICES] = [const { AtomicPtr::new(null_mut()) }; DEVICES];
static RETAINED: [AtomicU32; DEVICES] = [const { AtomicU32::new(0) }; DEVICES];

fn primary(dev: i32) -> P {
    let place = usize::try_from(dev).ok().and_then(|d| PRIMARY.get(d));
    place.map_or(null_mut(), |p| p.load(Ordering::Acquire))
}

fn retained(dev: i32) -> Option<&'static AtomicU32> {
    RETAINED.get(usize::try_from(dev).ok()?)
}

pub unsafe fn cuDevicePrimaryCtxRetain(_: u64, pctx: *mut P, dev: i32) -> CUresult {
    device::start();
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuDevicePrimaryCtxRetain(pctx, dev) };
    // SAFETY: the real function fills the place in.
    if let Some(context) = unsafe { made(error, pctx) } {
        if let Some(place) = usize::try_from(dev).ok().and_then(|d| PRIMARY.get(d)) {
            place.store(context, Ordering::Release);
        }
        if let Some(count) = retained(dev) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        device::context_made(context, dev);
    }
    error
}

/// The last release ends the context, and any reset does.
fn released(dev: i32, release: impl FnOnce() -> CUresult, reset: bool) -> CUresult {
    let before = retained(dev).map_or(0, |c| c.load(Ordering::Acquire));
    if reset || before <= 1 {
        kernel_args::forget();
        inside::context_ends(primary(dev));
        device::primary_ends(dev, primary(dev));
    }
    let error = release();
    if error == 0 {
        if let Some(count) = retained(dev).filter(|_| !reset && before > 0) {
            count.fetch_sub(1, Ordering::AcqRel);
        }
        let (mut flags, mut active) = (0, 1);
        // SAFETY: room for the answers.
        let asked = unsafe { real::cuDevicePrimaryCtxGetState(dev, &mut flags, &mut active) };
        // Others may have retained it through doors that we do not see, or
        // released what we thought was theirs.
        if !reset && before > 1 && asked == 0 && active == 0 {
            kernel_args::forget();
            inside::context_ends(primary(dev));
            device::primary_ended(dev, primary(dev));
        }
    }
    error
}

macro_rules! releases {
    ($($name:ident, $reset:literal;)*) => { $(
        pub unsafe fn $name(_: u64, dev: i32) -> CUresult {
            // SAFETY: the program's own argument.
            released(dev, || unsafe { real::$name(dev) }, $reset)
        }
    )* };
}

releases! {
    cuDevicePrimaryCtxRelease, false;
    cuDevicePrimaryCtxRelease_v2, false;
    cuDevicePrimaryCtxReset, true;
    cuDevicePrimaryCtxReset_v2, true;
}

/// A function that ends an object, and what is to be done before.
macro_rules! ends {
    ($hook:path: $($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, object: P) -> CUresult {
            $hook(object);
            // SAFETY: the program's own argument.
            unsafe { real::$name(object) }
        }
    )* };
}

ends! { context_ends: cuCtxDestroy cuCtxDestroy_v2 cuCtxDetach }
fn context_ends(context: P) {
    kernel_args::forget(); // With the code that was loaded into it.
    inside::context_ends(context);
    device::context_ends(context);
}

ends! { device::stream_ends: cuStreamDestroy cuStreamDestroy_v2 }

pub unsafe fn cuGreenCtxDestroy(_: u64, green: P) -> CUresult {
    let mut context = null_mut();
    // SAFETY: the program's own argument, and room for the answer.
    unsafe {
        if device::is_on() && real::cuCtxFromGreenCtx(&mut context, green) == 0 {
            context_ends(context);
        }
        real::cuGreenCtxDestroy(green)
    }
}

pub unsafe fn cuModuleGetFunction(_: u64, hfunc: *mut P, module: P, name: *const i8) -> CUresult {
    // SAFETY: the program's own arguments; the real function has read the name.
    unsafe {
        let error = real::cuModuleGetFunction(hfunc, module, name);
        if let Some(function) = made(error, hfunc) {
            device::function_made(function, name.cast(), false);
            inside::function_made(function, module, name);
        }
        error
    }
}

pub unsafe fn cuLibraryGetKernel(_: u64, kernel: *mut P, library: P, name: *const i8) -> CUresult {
    // SAFETY: the program's own arguments; the real function has read the name.
    unsafe {
        let error = real::cuLibraryGetKernel(kernel, library, name);
        if let Some(made) = made(error, kernel) {
            device::function_made(made, name.cast(), true);
            inside::kernel_made(made, library, name);
        }
        error
    }
}

pub unsafe fn cuKernelGetFunction(_: u64, function: *mut P, kernel: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::cuKernelGetFunction(function, kernel);
        if let Some(made) = made(error, function) {
            device::function_of_kernel(made, kernel);
            inside::function_of_kernel(made, kernel);
        }
        error
    }
}

/// Handles that were handed out by the dozen, without names.
///
/// # Safety
/// If `error` is 0, `list` is NULL or holds `count` handles.
unsafe fn listed(error: CUresult, list: *mut P, count: u32, are_kernels: bool) {
    if error != 0 || list.is_null() {
        return;
    }
    for i in 0..count as usize {
        // SAFETY: `i` is below `count`, and `list` holds that many handles, as the call succeeded.
        let handle = unsafe { list.add(i).read() };
        // SAFETY: NULL is no name.
        unsafe { device::function_made(handle, std::ptr::null(), are_kernels) };
    }
}

/// The name of a function; NULL if the driver does not report it.
fn name_of_function(function: P) -> *const i8 {
    let mut name = std::ptr::null();
    // SAFETY: a function that the driver has listed, and room for the answer.
    unsafe { device::driver::cuFuncGetName(&mut name, function) };
    name.cast()
}

/// As above, for a kernel.
fn name_of_kernel(kernel: P) -> *const i8 {
    let mut name = std::ptr::null();
    // SAFETY: a kernel that the driver has listed, and room for the answer.
    unsafe { device::driver::cuKernelGetName(&mut name, kernel) };
    name.cast()
}

/// Shows the handles of a list that a call has filled in.
///
/// # Safety
/// If `error` is 0, `list` holds `count` handles.
unsafe fn each(error: CUresult, list: *const P, count: u32, then: impl Fn(P)) {
    for i in 0..if error == 0 { count as usize } else { 0 } {
        // SAFETY: the call has returned 0, so it has filled `count` handles in, and `i` is less.
        then(unsafe { list.add(i).read() });
    }
}

pub unsafe fn cuModuleEnumerateFunctions(_: u64, functions: *mut P, count: u32, module: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let all = |list: *mut P, count| real::cuModuleEnumerateFunctions(list, count, module);
        if let Some((error, listed)) = inside::without_twins(functions, count, module, all, name_of_function)
        {
            each(error, functions, listed, |function| {
                inside::function_made(function, module, name_of_function(function));
            });
            return error;
        }
        let error = all(functions, count);
        let mut there = 0;
        real::cuModuleGetFunctionCount(&mut there, module);
        listed(error, functions, count.min(there), false);
        error
    }
}

pub unsafe fn cuLibraryEnumerateKernels(_: u64, kernels: *mut P, count: u32, library: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let all = |list: *mut P, count| real::cuLibraryEnumerateKernels(list, count, library);
        if let Some((error, listed)) = inside::without_twins(kernels, count, library, all, name_of_kernel) {
            each(error, kernels, listed, |kernel| {
                inside::kernel_made(kernel, library, name_of_kernel(kernel));
            });
            return error;
        }
        let error = all(kernels, count);
        let mut there = 0;
        real::cuLibraryGetKernelCount(&mut there, library);
        listed(error, kernels, count.min(there), true);
        error
    }
}

ends! { code_ends: cuModuleUnload cuLibraryUnload }

fn code_ends(code: P) {
    inside::code_ends(code);
    device::code_unloaded();
}

/// Functions that are no commands themselves, and make the driver enqueue some: code has
/// variables that are copied to the device. The collector asks which call it was.
fn enqueues<R>(time: u64, call: impl FnOnce() -> R) -> R {
    // Outside of a capture window they are recorded because of the code that they load, and their copies are not.
    device::inside(if in_window() { time } else { 0 }, call)
}

pub unsafe fn cuFuncLoad(time: u64, function: P) -> CUresult {
    // SAFETY: the program's own argument.
    enqueues(time, || unsafe { real::cuFuncLoad(function) })
}

pub unsafe fn cuModuleLoadData(time: u64, module: *mut P, image: *const c_void) -> CUresult {
    // SAFETY: the program's own arguments, or an image that stands for its own.
    enqueues(time, || unsafe {
        inside::load(image, module, Code::Module, |image, _| real::cuModuleLoadData(module, image))
    })
}

pub unsafe fn cuModuleLoadFatBinary(time: u64, module: *mut P, image: *const c_void) -> CUresult {
    // SAFETY: the program's own arguments, or an image that stands for its own: a text, which another function takes.
    enqueues(time, || unsafe {
        inside::load(image, module, Code::Module, |image, own| match own {
            true => real::cuModuleLoadFatBinary(module, image),
            false => real::cuModuleLoadData(module, image),
        })
    })
}

pub unsafe fn cuModuleLoad(time: u64, module: *mut P, name: *const i8) -> CUresult {
    // SAFETY: the call's own arguments, of which `load` and `load_file` exchange the image only.
    enqueues(time, || unsafe {
        inside::load_file(name, module, Code::Module, |ours| match ours {
            Some(image) => real::cuModuleLoadData(module, image),
            None => real::cuModuleLoad(module, name),
        })
    })
}

/// What stands for an image can't be loaded with so many options.
const TOO_MANY: CUresult = 1;

pub unsafe fn cuModuleLoadDataEx(
    time: u64,
    module: *mut P,
    image: *const c_void,
    n: u32,
    options: *mut u32,
    values: *mut P,
) -> CUresult {
    // SAFETY: the program's own arguments, or a copy of its options with an image that stands for its own.
    enqueues(time, || unsafe {
        inside::load(image, module, Code::Module, |image, own| match own {
            true => real::cuModuleLoadDataEx(module, image, n, options, values),
            false => Jit::of(n, options, values).map_or(TOO_MANY, |jit| {
                jit.quietly(|n, options, values| real::cuModuleLoadDataEx(module, image, n, options, values))
            }),
        })
    })
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn cuLibraryLoadData(
    time: u64,
    library: *mut P,
    code: *const c_void,
    jit: *mut u32,
    jit_values: *mut P,
    jit_count: u32,
    options: *mut u32,
    values: *mut P,
    count: u32,
) -> CUresult {
    // SAFETY: the call's own arguments, of which `load` and `load_file` exchange the image only.
    enqueues(time, || unsafe {
        inside::load(code, library, Code::Library, |image, own| match own {
            true => {
                real::cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count)
            }
            false => Jit::of(jit_count, jit, jit_values).map_or(TOO_MANY, |jit| {
                jit.quietly(|n, names, list| {
                    real::cuLibraryLoadData(library, image, names, list, n, options, values, count)
                })
            }),
        })
    })
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn cuLibraryLoadFromFile(
    time: u64,
    library: *mut P,
    name: *const i8,
    jit: *mut u32,
    jit_values: *mut P,
    jit_count: u32,
    options: *mut u32,
    values: *mut P,
    count: u32,
) -> CUresult {
    // SAFETY: the call's own arguments, of which `load` and `load_file` exchange the image only.
    enqueues(time, || unsafe {
        inside::load_file(name, library, Code::Library, |ours| match ours {
            None => {
                real::cuLibraryLoadFromFile(library, name, jit, jit_values, jit_count, options, values, count)
            }
            Some(image) => Jit::of(jit_count, jit, jit_values).map_or(TOO_MANY, |jit| {
                jit.quietly(|n, names, list| {
                    real::cuLibraryLoadData(library, image, names, list, n, options, values, count)
                })
            }),
        })
    })
}
