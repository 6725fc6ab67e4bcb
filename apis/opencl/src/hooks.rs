//! Functions whose answers must look as if we were not there, and those that
//! hand out other functions. Named `hook` in `semantics.toml`.

mod captured;
mod inside_hooks;

use std::ffi::CStr;

use hetrace_interpose::table::Table;
use hetrace_interpose::{is_ours, note};

use crate::generated::prelude::{EXTENSIONS, INSTANCES, P, REAL, look_up, null_mut};
use crate::generated::real;
use crate::generated::tables::{HANDED_OUT, LOADER, NAMES};
use crate::queues::{self, ASKED, OUT_OF_ORDER, PROFILED};
use crate::{capture, device, inside, kernels, layer};

pub use captured::*;
pub use inside_hooks::*;

const CL_SUCCESS: i32 = 0;
const CL_PROFILING_INFO_NOT_AVAILABLE: i32 = -7;
const CL_INVALID_VALUE: i32 = -30;
const CL_PROFILING_COMMAND_END: u32 = 0x1283;
const CL_QUEUE_CONTEXT: u32 = 0x1090;
const CL_QUEUE_PROPERTIES: u64 = 0x1093;
const CL_QUEUE_PROPERTIES_ARRAY: u32 = 0x1098;
const CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: u64 = 1;
const CL_QUEUE_PROFILING_ENABLE: u64 = 2;
const CL_QUEUE_ON_DEVICE: u64 = 4;
const CL_EVENT_COMMAND_QUEUE: u32 = 0x11D0;
const CL_EVENT_REFERENCE_COUNT: u32 = 0x11D2;

fn flags(properties: u64, profiled: bool) -> u64 {
    let mut flags = 0;
    if properties & CL_QUEUE_PROFILING_ENABLE != 0 {
        flags |= ASKED;
    }
    if profiled {
        flags |= PROFILED;
    }
    if properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
        flags |= OUT_OF_ORDER;
    }
    flags
}

fn made(queue: P, context: P, device: P, properties: u64, profiled: bool) {
    queues::remember(queue, device, flags(properties, profiled));
    device::queue_made(queue, context, device, properties);
}

/// Makes the queue with profiling, or else as the program wants it.
pub unsafe fn clCreateCommandQueue(
    _: u64,
    context: P,
    device: P,
    properties: u64,
    errcode_ret: *mut i32,
) -> P {
    let wanted = |properties| {
        // SAFETY: the program's own arguments.
        unsafe { real::clCreateCommandQueue(context, device, properties, errcode_ret) }
    };
    if !device::timing() {
        return wanted(properties);
    }
    let mut queue = wanted(properties | CL_QUEUE_PROFILING_ENABLE);
    let profiled = !queue.is_null();
    if !profiled {
        queue = wanted(properties);
    }
    if !queue.is_null() {
        made(queue, context, device, properties, profiled);
    }
    queue
}

/// As above, for a list of properties.
pub unsafe fn clCreateCommandQueueWithProperties(
    _: u64,
    context: P,
    device: P,
    properties: *const u64,
    errcode_ret: *mut i32,
) -> P {
    with_properties(context, device, properties, |list| {
        // SAFETY: the program's own arguments, or a list of ours.
        unsafe { real::clCreateCommandQueueWithProperties(context, device, list, errcode_ret) }
    })
}

fn with_properties(context: P, device: P, properties: *const u64, wanted: impl Fn(*const u64) -> P) -> P {
    let mut list = [0u64; queues::LIST + 2];
    let (mut length, mut bits, mut place) = (0, 0, None);
    if !properties.is_null() {
        // SAFETY: a list of pairs that ends with a 0.
        while length + 1 < queues::LIST && unsafe { *properties.add(length) } != 0 {
            // SAFETY: the name at `length` is not 0, so the list has a value behind it.
            let (name, value) = unsafe { (*properties.add(length), *properties.add(length + 1)) };
            (list[length], list[length + 1]) = (name, value);
            if name == CL_QUEUE_PROPERTIES {
                (bits, place) = (value, Some(length + 1));
            }
            length += 2;
        }
        // SAFETY: `length` is at a name or at the final 0: every pair passed over has a name other than 0.
        if unsafe { *properties.add(length) } != 0 {
            return wanted(properties); // Longer than any list we understand.
        }
    }
    if !device::timing() || bits & CL_QUEUE_ON_DEVICE != 0 {
        return wanted(properties);
    }
    let original = list;
    match place {
        Some(place) => list[place] |= CL_QUEUE_PROFILING_ENABLE,
        None => {
            (list[length], list[length + 1]) = (CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE);
        }
    }
    let mut queue = wanted(list.as_ptr());
    let profiled = !queue.is_null();
    if !profiled {
        queue = wanted(properties);
    }
    if !queue.is_null() {
        made(queue, context, device, bits, profiled);
        // Kept with its final 0; an empty list stands for NULL.
        let shown = if properties.is_null() { 0 } else { length + 1 };
        queues::remember_list(queue, original.get(..shown).unwrap_or_default());
    }
    queue
}

/// OpenCL 1.0's way to change a queue: profiling stays on underneath.
pub unsafe fn clSetCommandQueueProperty(
    _: u64,
    queue: P,
    properties: u64,
    enable: u32,
    old: *mut u64,
) -> i32 {
    let Some(known) = queues::get(queue).filter(|q| q.flags & PROFILED != 0) else {
        // SAFETY: the program's own arguments.
        return unsafe { real::clSetCommandQueueProperty(queue, properties, enable, old) };
    };
    let asks = properties & CL_QUEUE_PROFILING_ENABLE != 0;
    let passed = if enable == 0 { properties & !CL_QUEUE_PROFILING_ENABLE } else { properties };
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clSetCommandQueueProperty(queue, passed, enable, old) };
    if error == CL_SUCCESS {
        if !old.is_null() && known.flags & ASKED == 0 {
            // SAFETY: filled in by a successful call.
            unsafe { *old &= !CL_QUEUE_PROFILING_ENABLE };
        }
        let mut flags = known.flags;
        if asks {
            flags = if enable != 0 { flags | ASKED } else { flags & !ASKED };
        }
        queues::remember(queue, known.device, flags);
    }
    error
}

/// Hides the profiling property that the program did not ask for.
pub unsafe fn clGetCommandQueueInfo(
    _: u64,
    queue: P,
    name: u32,
    size: u64,
    value: P,
    size_ret: *mut u64,
) -> i32 {
    // Events of finished commands hold references of their queue.
    device::synchronized();
    let hidden = queues::get(queue).is_some_and(|q| q.flags & (PROFILED | ASKED) == PROFILED);
    if hidden && name == CL_QUEUE_PROPERTIES_ARRAY {
        // SAFETY: the program's own arguments.
        if let Some(answer) = unsafe { ask_one_as_wanted(queue, name, size, value, size_ret) } {
            return answer;
        }
    }
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clGetCommandQueueInfo(queue, name, size, value, size_ret) };
    if !hidden || (error != CL_SUCCESS && name != CL_QUEUE_PROPERTIES_ARRAY) {
        return error;
    }
    if u64::from(name) == CL_QUEUE_PROPERTIES && !value.is_null() && size >= 8 {
        // SAFETY: filled in by a successful call.
        unsafe { *value.cast::<u64>() &= !CL_QUEUE_PROFILING_ENABLE };
    } else if name == CL_QUEUE_PROPERTIES_ARRAY
        && let Some(list) = queues::list(queue)
        && (error == CL_SUCCESS || error == CL_INVALID_VALUE)
    {
        // SAFETY: the program's own places.
        return unsafe { show_list(list, size, value, size_ret) };
    }
    error
}

/// The context of a queue.
fn context_of(queue: P) -> Option<P> {
    let mut context: P = null_mut();
    let place = (&raw mut context).cast();
    // SAFETY: a place of ours, as large as said.
    let error = unsafe { real::clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, 8, place, null_mut()) };
    (error == CL_SUCCESS).then_some(context)
}

/// The driver's own answer, from a queue made once as the program wanted it: what
/// it returns without a list, or for an empty one, is its choice.
///
/// # Safety
/// The arguments of such a query.
unsafe fn ask_one_as_wanted(queue: P, name: u32, size: u64, value: P, size_ret: *mut u64) -> Option<i32> {
    let known = queues::get(queue)?;
    let properties = if known.flags & OUT_OF_ORDER != 0 { CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE } else { 0 };
    let context = context_of(queue)?;
    // SAFETY: places of ours and of the program; what is made is released again.
    unsafe {
        let mut error = CL_SUCCESS;
        let probe = match queues::list(queue) {
            Some(list) => {
                let list = if list.is_empty() { std::ptr::null() } else { list.as_ptr() };
                real::clCreateCommandQueueWithProperties(context, known.device, list, &mut error)
            }
            None => real::clCreateCommandQueue(context, known.device, properties, &mut error),
        };
        if probe.is_null() {
            return None;
        }
        let answer = real::clGetCommandQueueInfo(probe, name, size, value, size_ret);
        real::clReleaseCommandQueue(probe);
        Some(answer)
    }
}

/// Serves a query with the list that the program gave.
unsafe fn show_list(list: &[u64], size: u64, value: P, size_ret: *mut u64) -> i32 {
    let need = size_of_val(list);
    if !value.is_null() {
        if (size as usize) < need {
            return CL_INVALID_VALUE;
        }
        // SAFETY: the program says there is room.
        unsafe { value.cast::<u64>().copy_from_nonoverlapping(list.as_ptr(), list.len()) };
    }
    if !size_ret.is_null() {
        // SAFETY: the program's own place.
        unsafe { *size_ret = need as u64 };
    }
    CL_SUCCESS
}

/// Device → 1 if it returns times of queues without profiling, 0 if not.
static PROFILES_ANYWAY: Table<256> = Table::new();

/// Most drivers refuse to return the times of a queue without profiling, some
/// return them all the same. A program that asks must get its driver's answer,
/// so a queue is made once to try it. Only programs that ask where they
/// should not pay for that.
fn profiles_anyway(queue: P) -> bool {
    let Some(known) = queues::get(queue) else { return false };
    if let Some(profiles) = PROFILES_ANYWAY.get(known.device as u64) {
        return profiles == 1;
    }
    let profiles = try_without_profiling(queue, known.device).unwrap_or(false);
    PROFILES_ANYWAY.set(known.device as u64, u64::from(profiles));
    profiles
}

fn try_without_profiling(queue: P, device: P) -> Option<bool> {
    let context = context_of(queue)?;
    // SAFETY: places of ours for all answers; what is made is released again.
    unsafe {
        let mut error = CL_SUCCESS;
        let probe = real::clCreateCommandQueue(context, device, 0, &mut error);
        if probe.is_null() {
            return None;
        }
        let (mut event, mut time): (P, u64) = (null_mut(), 0);
        let mut profiles = None;
        if real::clEnqueueMarker(probe, &mut event) == CL_SUCCESS && real::clFinish(probe) == CL_SUCCESS {
            let place = (&raw mut time).cast();
            let answer = real::clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, place, null_mut());
            profiles = Some(answer != CL_PROFILING_INFO_NOT_AVAILABLE);
            real::clReleaseEvent(event);
        }
        real::clReleaseCommandQueue(probe);
        profiles
    }
}

/// A queue without profiling has no times to return.
pub unsafe fn clGetEventProfilingInfo(
    _: u64,
    event: P,
    name: u32,
    size: u64,
    value: P,
    size_ret: *mut u64,
) -> i32 {
    let mut queue: P = null_mut();
    if device::timing() {
        // SAFETY: room for the answer; for a wrong event it returns an error.
        let error = unsafe {
            real::clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, 8, (&raw mut queue).cast(), null_mut())
        };
        let hidden = queues::get(queue).is_some_and(|q| q.flags & (PROFILED | ASKED) == PROFILED);
        if error == CL_SUCCESS && hidden && !profiles_anyway(queue) {
            return CL_PROFILING_INFO_NOT_AVAILABLE;
        }
    }
    // SAFETY: the program's own arguments.
    unsafe { real::clGetEventProfilingInfo(event, name, size, value, size_ret) }
}

/// Leaves our own reference out of the count.
pub unsafe fn clGetEventInfo(_: u64, event: P, name: u32, size: u64, value: P, size_ret: *mut u64) -> i32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::clGetEventInfo(event, name, size, value, size_ret) };
    if error == CL_SUCCESS && name == CL_EVENT_REFERENCE_COUNT && !value.is_null() && size >= 4 {
        let own = device::own_references(event) as u32;
        // SAFETY: filled in by a successful call.
        unsafe { *value.cast::<u32>() = (*value.cast::<u32>()).saturating_sub(own) };
    }
    error
}

/// Finished commands hold references of their queue: give them back first.
pub unsafe fn clReleaseCommandQueue(_: u64, queue: P) -> i32 {
    device::synchronized();
    // SAFETY: the program's own argument.
    unsafe { real::clReleaseCommandQueue(queue) }
}

/// As above.
pub unsafe fn clReleaseContext(_: u64, context: P) -> i32 {
    device::synchronized();
    inside::context_released(context);
    // SAFETY: the program's own argument.
    unsafe { real::clReleaseContext(context) }
}

/// The program lets go of an event: perhaps the last one of a batch.
pub unsafe fn clReleaseEvent(_: u64, event: P) -> i32 {
    if device::own_references(event) != 0 {
        device::synchronized();
    }
    // SAFETY: the program's own argument.
    unsafe { real::clReleaseEvent(event) }
}

/// A new kernel may have the handle of an old one.
pub unsafe fn clCreateKernel(time: u64, program: P, name: *const i8, errcode_ret: *mut i32) -> P {
    // SAFETY: the program's own arguments.
    let kernel = unsafe { real::clCreateKernel(program, name, errcode_ret) };
    kernels::forget(kernel);
    capture::kernel_made(time, kernel, null_mut());
    inside::kernel_made(program, kernel);
    kernel
}

/// As above.
pub unsafe fn clCloneKernel(time: u64, source: P, errcode_ret: *mut i32) -> P {
    // SAFETY: the program's own arguments.
    let kernel = unsafe { real::clCloneKernel(source, errcode_ret) };
    kernels::forget(kernel);
    capture::kernel_made(time, kernel, source);
    inside::cloned(source, kernel);
    kernel
}

/// As above.
pub unsafe fn clCreateKernelsInProgram(
    time: u64,
    program: P,
    room: u32,
    kernels: *mut P,
    count: *mut u32,
) -> i32 {
    let mut own = 0;
    let count = if count.is_null() { &raw mut own } else { count };
    // SAFETY: the program's own arguments, or a place of ours.
    let error = unsafe { real::clCreateKernelsInProgram(program, room, kernels, count) };
    if error == CL_SUCCESS && !kernels.is_null() {
        // SAFETY: a successful call filled in this many handles.
        for i in 0..unsafe { *count }.min(room) as usize {
            // SAFETY: `i` is below the number that the call filled in, and `kernels` is not NULL.
            let kernel = unsafe { *kernels.add(i) };
            kernels::forget(kernel);
            capture::kernel_made(time, kernel, null_mut());
            inside::kernel_made(program, kernel);
        }
    }
    error
}

/// Exchanges the address of a function we know for that of its wrapper.
pub unsafe fn clGetExtensionFunctionAddress(_: u64, name: *const i8) -> P {
    // SAFETY: the program's own argument.
    let address = unsafe { real::clGetExtensionFunctionAddress(name) };
    // SAFETY: NULL or NUL-terminated, as the call wants it.
    unsafe { exchange(name, address) }
}

/// As above.
pub unsafe fn clGetExtensionFunctionAddressForPlatform(_: u64, platform: P, name: *const i8) -> P {
    // SAFETY: the program's own arguments.
    let address = unsafe { real::clGetExtensionFunctionAddressForPlatform(platform, name) };
    // SAFETY: `name` is NULL or NUL-terminated, as this call, too, wants it.
    unsafe { exchange(name, address) }
}

/// What the program gets instead of the address that it asked for: our wrapper's, if we have one.
///
/// # Safety
/// `name` is NULL or NUL-terminated.
unsafe fn exchange(name: *const i8, address: P) -> P {
    if name.is_null() || address.is_null() {
        return address;
    }
    // SAFETY: `name` is not NULL, as tested first, so it is NUL-terminated.
    let name = unsafe { CStr::from_ptr(name.cast()) };
    let Some(number) = NAMES.iter().position(|n| *n == name) else {
        untraced(name);
        return address;
    };
    if let Some((_, wrapper)) = LOADER.iter().find(|(n, _)| *n == number) {
        // The loader's own function comes back to our layer by itself.
        if layer::active() || is_ours(address) {
            return address;
        }
        // A driver's own function knows nothing of other platforms: the wrapper must not lead there.
        let leads_there = REAL.get(number).is_some_and(|real| {
            if real.get().is_null() {
                look_up(real, number);
            }
            !real.get().is_null() && real.set(address)
        });
        return if leads_there { wrapper.0.cast_mut() } else { address };
    }
    let Some((_, wrappers)) = HANDED_OUT.iter().find(|(n, _)| *n == number) else { return address };
    for instance in 0..INSTANCES {
        let slot = EXTENSIONS.get(number).and_then(|all| all.get(instance));
        if slot.is_some_and(|s| s.set(address)) {
            return wrappers.get(instance).map_or(address, |w| w.0.cast_mut());
        }
    }
    untraced(name); // More platforms with this function than we have wrappers.
    address
}

fn untraced(name: &CStr) {
    const TEXT: &[u8] = b"not traced, not in the model: ";
    let mut text = [0u8; 128];
    let bytes = name.to_bytes();
    let length = TEXT.len() + bytes.len().min(text.len() - TEXT.len());
    let (head, rest) = text.split_at_mut(TEXT.len());
    head.copy_from_slice(TEXT);
    for (to, from) in rest.iter_mut().zip(bytes) {
        *to = *from;
    }
    note(text.get(..length).unwrap_or_default());
}
