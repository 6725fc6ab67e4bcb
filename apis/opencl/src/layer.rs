//! The ICD loader's layer mechanism (`cl_loader_layers`): the loader opens this
//! library because `OPENCL_LAYERS` names it, and calls through our table.
//!
//! Whether a loader calls us is a flag that stands for itself: it is set when the table is whole, before the loader has it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_interpose::dlsym::caller;
use hetrace_interpose::{Object, is_ours};

use crate::above::remember;
use crate::generated::prelude::{P, REAL, Real, null_mut};
use crate::generated::tables::{DISPATCH, LOADER};

const CL_SUCCESS: i32 = 0;
const CL_INVALID_VALUE: i32 = -30;
const CL_LAYER_API_VERSION: u32 = 0x4240;
const CL_LAYER_NAME: u32 = 0x4241;
const CL_LAYER_API_VERSION_100: u32 = 100;
const NAME: &[u8] = b"hetrace\0";

static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Whether a loader calls us as its layer.
pub fn active() -> bool {
    ACTIVE.load(Ordering::Acquire)
}

/// Whether our wrapper leads to what is below us in this loader.
fn leads(real: &Real, below: P, loader: Option<&Object>) -> bool {
    let now = real.get();
    if !now.is_null() && !is_ours(now) && loader.is_some_and(|l| l.contains(now)) {
        // A preloaded wrapper led to the loader's own entry, which comes back
        // to us: from now on it skips that.
        real.replace(below);
        return true;
    }
    if !now.is_null() && Object::holding(now).is_none() {
        // The loader that it led to was closed, and this one was opened afterwards.
        real.replace(below);
        return true;
    }
    real.set(below)
}

/// What the loader asks before it takes us.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(name: u32, size: usize, value: P, size_ret: *mut usize) -> i32 {
    let version = CL_LAYER_API_VERSION_100.to_ne_bytes();
    let answer: &[u8] = match name {
        CL_LAYER_API_VERSION => &version,
        CL_LAYER_NAME => NAME,
        _ => return CL_INVALID_VALUE,
    };
    if !value.is_null() {
        if size < answer.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: the loader says there is room.
        unsafe { value.cast::<u8>().copy_from_nonoverlapping(answer.as_ptr(), answer.len()) };
    }
    if !size_ret.is_null() {
        // SAFETY: the loader's own place.
        unsafe { *size_ret = answer.len() };
    }
    CL_SUCCESS
}

/// Takes the table of what lies below us, and gives ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    count: u32,
    target: *const P,
    count_ret: *mut u32,
    layer_ret: *mut *const P,
) -> i32 {
    // SAFETY: the loader's own table and places.
    unsafe { begin(count, target, count_ret, layer_ret) }
}

/// The same for loaders since 2025, some of which know no other. Its properties say when the layer is to end; ours needs no
/// end. Such loaders close layers' libraries when they are done with them, which may be before the program's last thread
/// is: ours stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayerWithProperties(
    count: u32,
    target: *const P,
    count_ret: *mut u32,
    layer_ret: *mut *const P,
    _properties: *const u64,
) -> i32 {
    if let Some(own) = Object::holding(clInitLayerWithProperties as *const c_void) {
        own.keep();
    }
    // SAFETY: the loader's own table and places.
    unsafe { begin(count, target, count_ret, layer_ret) }
}

/// The loader is done: it calls through our table no more.
#[unsafe(no_mangle)]
pub extern "C" fn clDeinitLayer() -> i32 {
    CL_SUCCESS
}

/// # Safety
/// `target` has `count` entries, the others are NULL or places to write to.
unsafe fn begin(count: u32, target: *const P, count_ret: *mut u32, layer_ret: *mut *const P) -> i32 {
    if target.is_null() || count_ret.is_null() || layer_ret.is_null() {
        return CL_INVALID_VALUE;
    }
    let count = count as usize;
    // A loader newer than our model has more entries: they pass through us.
    let length = count.max(DISPATCH.len());
    let Some(table) = fresh_table(length) else { return CL_INVALID_VALUE };
    let loader = Object::holding(caller());
    if let Some(loader) = &loader {
        remember(loader, target, count);
    }
    for i in 0..count {
        // SAFETY: the loader's table has `count` entries.
        let below = unsafe { *target.add(i) };
        let number = DISPATCH.get(i).copied();
        let wrapper = number.and_then(|n| LOADER.iter().find(|(m, _)| *m == n));
        let ours = match (number, wrapper) {
            // A second loader in the process has the same functions below it,
            // except those that know its own platforms: these pass through.
            (Some(n), Some((_, w))) if !below.is_null() => {
                let leads = REAL.get(n).is_some_and(|r| leads(r, below, loader.as_ref()));
                if leads || by_object(i) { w.0.cast_mut() } else { below }
            }
            (_, None) => below,
            _ => null_mut(),
        };
        // SAFETY: the table has at least `count` entries.
        unsafe { *table.add(i) = ours };
    }
    ACTIVE.store(true, Ordering::Release);
    // SAFETY: the loader's own places.
    unsafe {
        *count_ret = length as u32;
        *layer_ret = table;
    }
    CL_SUCCESS
}

/// A table of NULLs, which the loader keeps for ever. Not from the program's heap:
/// a leak checker would find it there when the loader has forgotten it.
fn fresh_table(length: usize) -> Option<*mut P> {
    let bytes = length.checked_mul(size_of::<P>())?;
    // SAFETY: a fresh range at an address of the kernel's choice.
    let table = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (table != libc::MAP_FAILED).then_some(table.cast())
}

/// Whether the function at this place of the table finds its way by an object
/// of its first argument, so that any loader's real function will do.
fn by_object(place: usize) -> bool {
    // clGetPlatformIDs, clUnloadCompiler and clGetExtensionFunctionAddress
    // have no object; the platform-less ways to make a context ask the loader.
    const WITHOUT: &[&std::ffi::CStr] = &[
        c"clGetPlatformIDs",
        c"clUnloadCompiler",
        c"clGetExtensionFunctionAddress",
        c"clCreateContext",
        c"clCreateContextFromType",
    ];
    let number = DISPATCH.get(place).copied().unwrap_or(usize::MAX);
    let name = crate::generated::tables::NAMES.get(number);
    name.is_some_and(|n| !WITHOUT.contains(n))
}
