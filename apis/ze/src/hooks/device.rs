//! Functions that make, end or await what commands mention. Their arguments are the program's own.

use core::ffi::{CStr, c_void};

use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{ErrnoGuard, in_window, peek};

use crate::device::events::{self, SUCCESS, known};
use crate::device::{self, clock, kernels, lists, queues, timing, waits};
use crate::generated::prelude::{P, Val};
use crate::generated::real;

/// Bits of `ze_event_pool_flags_t`. The host may only ask about events that are visible to it.
const HOST_VISIBLE: u32 = 1;
const IPC: u32 = 1 << 1;
const KERNEL_TIMESTAMP: u32 = 1 << 2;
const MAPPED_TIMESTAMP: u32 = 1 << 3;
/// Bits of `ze_event_counter_based_flags_t`: the device's times, and the host's.
const COUNTER_TIMESTAMPS: u32 = 1 << 4 | 1 << 5;
const COUNTER_HOST_VISIBLE: u32 = 1 << 2;
/// `ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC`.
const STYPE_COUNTER_BASED_POOL: u32 = 0x0002_0014;
/// Index of "kernel" in `COMMAND_KINDS`.
const KERNEL: u8 = 1;
/// Structures behind a description that are looked at.
const LINKS: usize = 8;
/// Where members of descriptions lie.
const NEXT: usize = 8;
const POOL_FLAGS: usize = 16;
const COUNTER_FLAGS: usize = 16;
const LIST_ORDINAL: usize = 16;
const LIST_FLAGS: usize = 20;
const QUEUE_FLAGS: usize = 24;
const QUEUE_PRIORITY: usize = 32;
const KERNEL_NAME: usize = 24;

/// A member of a description.
///
/// # Safety
/// NULL, or a description with this member, as a successful call has read it.
pub(super) unsafe fn member<T: Copy + Default, const N: usize>(of: *const [u8; N], at: usize) -> T {
    // SAFETY: contract: not NULL, so the member is there.
    if of.is_null() { T::default() } else { unsafe { of.cast::<u8>().add(at).cast::<T>().read_unaligned() } }
}

/// What a successful call has filled in.
///
/// # Safety
/// NULL, or an output that was filled in.
pub(super) unsafe fn filled(place: *const P) -> Option<P> {
    // SAFETY: contract: not NULL, so it was filled in.
    (!place.is_null()).then(|| unsafe { *place })
}

/// A call that makes something was made: `then` gets its handle if it succeeded. Returns the call's result.
///
/// # Safety
/// As [`filled`], if the call succeeded.
unsafe fn made(result: u32, place: *const P, then: impl FnOnce(P)) -> u32 {
    let _errno = ErrnoGuard::new();
    if result == SUCCESS
        && timing()
        // SAFETY: contract: the call succeeded.
        && let Some(handle) = unsafe { filled(place) }
    {
        then(handle);
    }
    result
}

pub unsafe fn zeDeviceGet(_: u64, driver: P, count: *mut u32, devices: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        let asked = if count.is_null() { 0 } else { *count };
        let result = real::zeDeviceGet(driver, count, devices);
        if result == SUCCESS && asked > 0 && !devices.is_null() {
            for ordinal in 0..asked.min(*count) {
                clock::listed(*devices.add(ordinal as usize), ordinal);
            }
        }
        result
    }
}

// ---- Queues and lists

pub unsafe fn zeCommandQueueCreate(
    _: u64,
    context: P,
    device: P,
    desc: *const [u8; 40],
    queue: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeCommandQueueCreate(context, device, desc, queue), queue, |queue| {
            queues::made(queue, context, device, member(desc, QUEUE_PRIORITY));
        })
    }
}

pub unsafe fn zeCommandQueueDestroy(_: u64, queue: P) -> u32 {
    if timing() {
        queues::gone(queue);
    }
    // SAFETY: the program's own argument.
    unsafe { real::zeCommandQueueDestroy(queue) }
}

pub unsafe fn zeCommandListCreate(_: u64, context: P, device: P, desc: *const [u8; 24], list: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeCommandListCreate(context, device, desc, list), list, |list| {
            device::ends_with_the_program();
            lists::regular_made(list, context, device, member(desc, LIST_ORDINAL), member(desc, LIST_FLAGS));
        })
    }
}

pub unsafe fn zeCommandListCreateImmediate(
    _: u64,
    context: P,
    device: P,
    desc: *const [u8; 40],
    list: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeCommandListCreateImmediate(context, device, desc, list), list, |list| {
            device::ends_with_the_program();
            lists::immediate_made(list, context, device, member(desc, QUEUE_FLAGS));
        })
    }
}

pub unsafe fn zeCommandListCreateCloneExp(_: u64, list: P, clone: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeCommandListCreateCloneExp(list, clone), clone, |clone| {
            lists::cloned(list, clone);
        })
    }
}

pub unsafe fn zeCommandListDestroy(_: u64, list: P) -> u32 {
    if timing() {
        let _errno = ErrnoGuard::new();
        lists::gone(list);
        queues::gone(list);
    }
    // SAFETY: the program's own argument.
    unsafe { real::zeCommandListDestroy(list) }
}

pub unsafe fn zeCommandListClose(_: u64, list: P) -> u32 {
    // SAFETY: the program's own argument.
    let result = unsafe { real::zeCommandListClose(list) };
    if result == SUCCESS
        && !in_window()
        && timing()
        && let Some(list) = lists::known(list)
    {
        list.is_closed_outside();
    }
    result
}

pub unsafe fn zeCommandListReset(_: u64, list: P) -> u32 {
    // SAFETY: the program's own argument.
    let result = unsafe { real::zeCommandListReset(list) };
    let _errno = ErrnoGuard::new();
    if result == SUCCESS
        && timing()
        && let Some(list) = lists::known(list)
    {
        list.clear();
    }
    result
}

pub unsafe fn zeCommandQueueExecuteCommandLists(
    time: u64,
    queue: P,
    count: u32,
    lists: *mut P,
    fence: P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        device::execute(time, queue, count, lists, |count, lists| {
            let result = real::zeCommandQueueExecuteCommandLists(queue, count, lists, fence);
            if result == SUCCESS {
                waits::fenced(fence, queue, ticks());
            }
            result
        })
    }
}

pub unsafe fn zeCommandListImmediateAppendCommandListsExp(
    time: u64,
    immediate: P,
    count: u32,
    lists: *mut P,
    event: P,
    waits: u32,
    events: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        device::execute(time, immediate, count, lists, |count, lists| {
            real::zeCommandListImmediateAppendCommandListsExp(immediate, count, lists, event, waits, events)
        })
    }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn zeCommandListImmediateAppendCommandListsWithParameters(
    time: u64,
    immediate: P,
    count: u32,
    lists: *mut P,
    next: *const c_void,
    event: P,
    waits: u32,
    events: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        device::execute(time, immediate, count, lists, |count, lists| {
            real::zeCommandListImmediateAppendCommandListsWithParameters(
                immediate, count, lists, next, event, waits, events,
            )
        })
    }
}

/// Waits for all that a queue has.
macro_rules! waits_for_queue {
    ($($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, queue: P, timeout: u64) -> u32 {
            let began = ticks();
            // SAFETY: the program's own arguments.
            let result = unsafe { real::$name(queue, timeout) };
            if result == SUCCESS && timing() {
                waits::waited(queue, began);
            }
            result
        }
    )* };
}

waits_for_queue! { zeCommandQueueSynchronize zeCommandListHostSynchronize }

pub unsafe fn zeFenceHostSynchronize(_: u64, fence: P, timeout: u64) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeFenceHostSynchronize(fence, timeout) };
    if result == SUCCESS && timing() {
        waits::passed(fence);
    }
    result
}

pub unsafe fn zeFenceQueryStatus(_: u64, fence: P) -> u32 {
    // SAFETY: the program's own argument.
    let result = unsafe { real::zeFenceQueryStatus(fence) };
    if result == SUCCESS && timing() && waits::passed(fence) {
        let _errno = ErrnoGuard::new();
        device::synchronized();
    }
    result
}

// ---- Lists that become others

/// The commands of a list were changed.
fn changed(result: u32, list: P) -> u32 {
    if result == SUCCESS
        && timing()
        && let Some(list) = lists::known(list)
    {
        list.spoil();
    }
    result
}

pub unsafe fn zeCommandListUpdateMutableCommandsExp(_: u64, list: P, desc: *const [u8; 24]) -> u32 {
    // SAFETY: the program's own arguments.
    changed(unsafe { real::zeCommandListUpdateMutableCommandsExp(list, desc) }, list)
}

pub unsafe fn zeCommandListUpdateMutableCommandSignalEventExp(_: u64, list: P, id: u64, event: P) -> u32 {
    // SAFETY: the program's own arguments.
    changed(unsafe { real::zeCommandListUpdateMutableCommandSignalEventExp(list, id, event) }, list)
}

pub unsafe fn zeCommandListUpdateMutableCommandKernelsExp(
    _: u64,
    list: P,
    count: u32,
    ids: *mut u64,
    kernels: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    changed(unsafe { real::zeCommandListUpdateMutableCommandKernelsExp(list, count, ids, kernels) }, list)
}

pub unsafe fn zeCommandListBeginGraphCaptureExt(_: u64, list: P, next: *const c_void) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeCommandListBeginGraphCaptureExt(list, next) };
    if result == SUCCESS {
        device::captures(true);
    }
    result
}

pub unsafe fn zeCommandListBeginCaptureIntoGraphExt(_: u64, list: P, graph: P, next: *const c_void) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeCommandListBeginCaptureIntoGraphExt(list, graph, next) };
    if result == SUCCESS {
        device::captures(true);
    }
    result
}

pub unsafe fn zeCommandListEndGraphCaptureExt(_: u64, list: P, next: *const c_void, graph: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeCommandListEndGraphCaptureExt(list, next, graph) };
    if result == SUCCESS {
        device::captures(false);
    }
    result
}

// ---- Launches whose arguments the model can't describe

#[allow(clippy::too_many_arguments)]
pub unsafe fn zeCommandListAppendLaunchKernelWithArguments(
    time: u64,
    list: P,
    kernel: P,
    groups: Val<[u32; 3]>,
    sizes: Val<[u32; 3]>,
    arguments: *mut P,
    next: *const c_void,
    event: P,
    waits: u32,
    events: *mut P,
) -> u32 {
    if timing() {
        kernels::grouped(kernel, sizes.0);
    }
    // SAFETY: the program's own arguments.
    unsafe {
        device::enqueue(
            time,
            list,
            KERNEL,
            kernel,
            || 0,
            Some(groups.0.map(u64::from)),
            event,
            |event| {
                real::zeCommandListAppendLaunchKernelWithArguments(
                    list, kernel, groups, sizes, arguments, next, event, waits, events,
                )
            },
            |result| result == SUCCESS,
        )
    }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn zeCommandListAppendLaunchMultipleKernelsIndirect(
    time: u64,
    list: P,
    count: u32,
    kernels: *mut P,
    counts: *const u32,
    arguments: *const [u8; 12],
    event: P,
    waits: u32,
    events: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        // Several have no one name.
        let one = if count == 1 { filled(kernels) } else { None };
        device::enqueue(
            time,
            list,
            KERNEL,
            one.unwrap_or(core::ptr::null_mut()),
            || 0,
            device::NO_GEOMETRY,
            event,
            |event| {
                real::zeCommandListAppendLaunchMultipleKernelsIndirect(
                    list, count, kernels, counts, arguments, event, waits, events,
                )
            },
            |result| result == SUCCESS,
        )
    }
}

// ---- Events

pub unsafe fn zeEventPoolCreate(
    _: u64,
    context: P,
    desc: *const [u8; 24],
    count: u32,
    devices: *mut P,
    pool: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments; what is read of the description the call itself reads.
    unsafe {
        if !timing() || desc.is_null() {
            return real::zeEventPoolCreate(context, desc, count, devices, pool);
        }
        let flags: u32 = member(desc, POOL_FLAGS);
        let next: usize = member(desc, NEXT);
        let mapped = if flags & MAPPED_TIMESTAMP == 0 { KERNEL_TIMESTAMP } else { 0 };
        let wanted = flags | HOST_VISIBLE | mapped;
        let mut what = known_by(flags) | if is_counter_based(next) { known::COUNTS } else { 0 };
        let mut result = u32::MAX;
        // What stands behind the description may say that these are events of another kind.
        if wanted != flags && flags & IPC == 0 && next == 0 {
            let mut own = desc.read_unaligned();
            own.as_mut_ptr().add(POOL_FLAGS).cast::<u32>().write_unaligned(wanted);
            result = real::zeEventPoolCreate(context, &raw const own, count, devices, pool);
            if result == SUCCESS {
                what = known::TIMED | known::ADDED | u64::from(flags);
            }
        }
        if result != SUCCESS {
            result = real::zeEventPoolCreate(context, desc, count, devices, pool);
        }
        if result == SUCCESS
            && let Some(pool) = filled(pool)
        {
            events::pool_made(pool, what);
        }
        result
    }
}

/// Whether what stands behind the description of a pool says that its events are counter-based: those need no reset.
/// Programs may leave anything there.
fn is_counter_based(next: usize) -> bool {
    let mut at = next;
    for _ in 0..LINKS {
        let Some([tag, next]) = (at != 0).then(|| peek::words(at)).flatten() else { return false };
        if tag as u32 == STYPE_COUNTER_BASED_POOL {
            return true;
        }
        at = next as usize;
    }
    false
}

/// What events of a pool with these flags are good for.
fn known_by(flags: u32) -> u64 {
    good_for(flags & (KERNEL_TIMESTAMP | MAPPED_TIMESTAMP) != 0, flags & HOST_VISIBLE != 0)
}

fn good_for(has_times: bool, is_visible: bool) -> u64 {
    match (has_times, is_visible) {
        (false, _) => known::PLAIN,
        (true, true) => known::TIMED,
        (true, false) => known::HIDDEN,
    }
}

pub unsafe fn zeEventPoolDestroy(_: u64, pool: P) -> u32 {
    events::pool_gone(pool);
    // SAFETY: the program's own argument.
    unsafe { real::zeEventPoolDestroy(pool) }
}

pub unsafe fn zeEventPoolGetFlags(_: u64, pool: P, flags: *mut u32) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeEventPoolGetFlags(pool, flags) };
    let known = events::pool(pool);
    if result == SUCCESS && !flags.is_null() && known & known::ADDED != 0 {
        // SAFETY: a successful call has filled it in.
        unsafe { *flags = known as u32 };
    }
    result
}

pub unsafe fn zeEventCreate(_: u64, pool: P, desc: *const [u8; 32], event: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeEventCreate(pool, desc, event), event, |event| {
            let what = match events::pool(pool) {
                0 => ask_pool(pool),
                what => what,
            };
            events::event_made(event, what);
        })
    }
}

/// A pool that another process shares, or that was made before we looked: since 1.9 it can be asked.
#[cold]
fn ask_pool(pool: P) -> u64 {
    let mut flags = 0;
    // SAFETY: the program's live pool, and room for the answer.
    match unsafe { real::zeEventPoolGetFlags(pool, &raw mut flags) } {
        SUCCESS => known_by(flags),
        _ => 0,
    }
}

pub unsafe fn zeEventCounterBasedCreate(
    _: u64,
    context: P,
    device: P,
    desc: *const [u8; 32],
    event: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeEventCounterBasedCreate(context, device, desc, event), event, |event| {
            let flags: u32 = member(desc, COUNTER_FLAGS);
            let what = good_for(flags & COUNTER_TIMESTAMPS != 0, flags & COUNTER_HOST_VISIBLE != 0);
            events::event_made(event, what | known::COUNTS);
        })
    }
}

pub unsafe fn zeEventCounterBasedOpenIpcHandle(
    _: u64,
    context: P,
    handle: Val<[u64; 8]>,
    event: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        made(real::zeEventCounterBasedOpenIpcHandle(context, handle, event), event, |event| {
            // Only who made it knows whether it has times.
            events::event_made(event, 0);
        })
    }
}

pub unsafe fn zeEventCounterBasedCloseIpcHandle(_: u64, event: P) -> u32 {
    if timing() {
        let _errno = ErrnoGuard::new();
        events::destroyed(event);
    }
    // SAFETY: the program's own argument.
    unsafe { real::zeEventCounterBasedCloseIpcHandle(event) }
}

pub unsafe fn zeEventDestroy(_: u64, event: P) -> u32 {
    if timing() {
        let _errno = ErrnoGuard::new();
        events::destroyed(event);
    }
    // SAFETY: the program's own argument.
    unsafe { real::zeEventDestroy(event) }
}

pub unsafe fn zeEventQueryStatus(_: u64, event: P) -> u32 {
    // SAFETY: the program's own argument.
    let result = unsafe { real::zeEventQueryStatus(event) };
    if result == SUCCESS && timing() && events::is_in_flight(event) {
        let _errno = ErrnoGuard::new();
        device::synchronized();
    }
    result
}

pub unsafe fn zeEventHostReset(_: u64, event: P) -> u32 {
    // SAFETY: the program's own argument.
    let reset = || unsafe { real::zeEventHostReset(event) };
    if timing() { events::reset(event, reset) } else { reset() }
}

pub unsafe fn zeContextDestroy(_: u64, context: P) -> u32 {
    if timing() {
        let _errno = ErrnoGuard::new();
        device::synchronized();
        device::context_ends(context);
    }
    // SAFETY: the program's own argument.
    unsafe { real::zeContextDestroy(context) }
}

// ---- Kernels

pub unsafe fn zeKernelCreate(_: u64, module: P, desc: *const [u8; 32], kernel: *mut P) -> u32 {
    // SAFETY: the program's own arguments.
    unsafe {
        let result = real::zeKernelCreate(module, desc, kernel);
        if result == SUCCESS
            && let Some(kernel) = filled(kernel)
        {
            let name: usize = member(desc, KERNEL_NAME);
            let name = (name as *const core::ffi::c_char).cast();
            if !core::ptr::eq(name, core::ptr::null()) {
                kernels::made(kernel, CStr::from_ptr(name).to_bytes());
            }
        }
        result
    }
}

pub unsafe fn zeKernelDestroy(_: u64, kernel: P) -> u32 {
    kernels::gone(kernel);
    // SAFETY: the program's own argument.
    unsafe { real::zeKernelDestroy(kernel) }
}

pub unsafe fn zeKernelSetGroupSize(_: u64, kernel: P, x: u32, y: u32, z: u32) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeKernelSetGroupSize(kernel, x, y, z) };
    if result == SUCCESS {
        kernels::grouped(kernel, [x, y, z]);
    }
    result
}
