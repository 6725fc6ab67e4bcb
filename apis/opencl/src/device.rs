//! How commands on devices are timed.
//!
//! Every queue gets the profiling property, every command an event; the
//! program sees neither ([`crate::hooks`]). Times are read when a command has
//! completed: when the program synchronizes, and now and then while it
//! enqueues. There is no callback per command, because the driver's wake-up
//! for it costs more than everything else together, and never a wait.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{ClockRecord, CommandRecord, PendingRecord, QueueRecord, option, special};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::table::Table;
use hetrace_interpose::{OwnWork, count_commands, record_with_text, session};

use crate::generated::prelude::{P, element, null_mut};
use crate::generated::real;
use crate::kernels;
use crate::pending::{self, Enqueued, Left, Pending, Progress};
use crate::queues::{self, OUT_OF_ORDER, PROFILED};

const CL_EVENT_COMMAND_EXECUTION_STATUS: u32 = 0x11D3;
const CL_PROFILING_COMMAND_QUEUED: u32 = 0x1280;
const CL_DEVICE_PROFILING_TIMER_RESOLUTION: u32 = 0x1025;
const CL_DEVICE_NAME: u32 = 0x102B;

/// Work offset, global and local size.
pub type Geometry = (u8, [[u64; 3]; 3]);
/// Of a command that has none.
pub const NO_GEOMETRY: Geometry = (0, [[0; 3]; 3]);

/// The geometry of a launch.
#[inline]
pub unsafe fn geometry(
    dimensions: u32,
    offset: *const u64,
    global: *const u64,
    local: *const u64,
) -> Geometry {
    let mut all = [[0; 3]; 3];
    for (row, from) in all.iter_mut().zip([offset, global, local]) {
        for (i, size) in row.iter_mut().enumerate().take(dimensions as usize) {
            // SAFETY: NULL or as many sizes as there are dimensions.
            *size = unsafe { element(from, i) } as u64;
        }
    }
    (dimensions.min(3) as u8, all)
}

/// Events of the program of which we own a reference.
static SHARED: Table<16384> = Table::new();
/// Commands whose times could not be learned.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether commands are timed.
#[inline]
pub fn timing() -> bool {
    session().is_some_and(|s| s.option(option::DEVICE))
}

/// References of an event that are ours and not the program's.
pub fn own_references(event: P) -> u64 {
    SHARED.get(event as u64).unwrap_or(0)
}

/// Runs a call that enqueues a command, with an event even if the program
/// wants none, and remembers the command.
#[inline]
#[allow(clippy::too_many_arguments)]
pub unsafe fn enqueue<R: Copy>(
    time: u64,
    queue: P,
    kind: u8,
    kernel: P,
    bytes: impl FnOnce() -> usize,
    geometry: Geometry,
    event: *mut P,
    call: impl FnOnce(*mut P) -> R,
    succeeded: impl FnOnce(R) -> bool,
) -> R {
    let Some(known) = queues::get(queue).filter(|q| q.flags & PROFILED != 0 && timing()) else {
        return call(event);
    };
    let mut own = null_mut();
    let place = if event.is_null() { &raw mut own } else { event };
    let mut work = OwnWork::since(time);
    let (result, returned) = work.real(|| call(place));
    if !succeeded(result) {
        return result;
    }
    // SAFETY: a place of ours or the program's, filled in by a successful call.
    let handle = unsafe { *place };
    if handle.is_null() {
        return result;
    }
    let shared = !event.is_null();
    if shared {
        // SAFETY: a live event, just made.
        unsafe { real::clRetainEvent(handle) };
        SHARED.set(handle as u64, 1);
    }
    let command = Enqueued {
        cause_tid: hetrace_interpose::thread_id(),
        kind,
        dimensions: geometry.0,
        cause: time,
        returned,
        queue: queue as u64,
        device: known.device as u64,
        bytes: bytes() as u64,
        geometry: geometry.1,
    };
    let name = if kernel.is_null() { std::ptr::null() } else { kernels::name(kernel) };
    match pending::push(Pending { event: handle, name, shared, command }) {
        // Not each time, and not before there is something worth looking at.
        Some(under_way) => {
            count_commands(1, 0);
            if under_way % 32 == 0 {
                work.collecting(|| collect(false));
            }
        }
        None => {
            let _ = LOST.fetch_add(1, Ordering::Relaxed);
            release(handle, shared);
            work.collecting(|| collect(false));
        }
    }
    result
}

fn release(event: P, shared: bool) {
    if shared {
        SHARED.remove(event as u64);
    }
    // SAFETY: the reference is ours.
    unsafe { real::clReleaseEvent(event) };
}

/// The program has waited for a device: collect what is finished.
pub fn synchronized() {
    crate::capture::harvest();
    if timing() {
        collect(true);
    }
}

/// Collects finished commands, of this thread or of all.
pub fn collect(all: bool) {
    let (collected, left) = collect_finished(all);
    if collected > 0 {
        // The drainer orders commands; it must know how far it may go. What is
        // known of one thread's commands says nothing of the others'.
        tell_pending(if all { left } else { Left { oldest: 1 } });
    }
}

/// Answers how many were collected, and what is still under way.
fn collect_finished(all: bool) -> (u32, Left) {
    let mut collected = 0u32;
    let left = pending::collect(all, |pending| {
        let progress = finished(pending);
        collected += u32::from(progress == Progress::Collected);
        progress
    });
    (collected, left)
}

/// Records since when the oldest command is under way.
fn tell_pending(left: Left) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    let record = PendingRecord { lost, oldest: left.oldest };
    record_with_text(special::PENDING, &record, c"");
}

/// Records a command if it is complete, and gives its event back.
fn finished(pending: &Pending) -> Progress {
    let mut status = 0i32;
    // SAFETY: room for the answer; the event is live, we own a reference.
    let error = unsafe {
        real::clGetEventInfo(
            pending.event,
            CL_EVENT_COMMAND_EXECUTION_STATUS,
            4,
            (&raw mut status).cast(),
            null_mut(),
        )
    };
    if error == 0 && status > 0 {
        let in_order = queues::get(pending.command.queue as P).is_some_and(|q| q.flags & OUT_OF_ORDER == 0);
        return if in_order { Progress::QueueWaits } else { Progress::Waits };
    }
    let known = &pending.command;
    let (from, to) = memory(known.kind);
    let mut command = CommandRecord {
        cause_tid: known.cause_tid,
        kind: known.kind,
        dimensions: known.dimensions,
        from,
        to,
        cause: known.cause,
        returned: known.returned,
        observed: ticks(),
        queue: known.queue,
        device: known.device,
        bytes: known.bytes,
        status: if error == 0 { status } else { error },
        geometry: known.geometry,
        ..CommandRecord::default()
    };
    let times = [&mut command.queued, &mut command.submitted, &mut command.start, &mut command.end];
    for (i, time) in times.into_iter().enumerate() {
        // SAFETY: room for the answer.
        let error = unsafe {
            real::clGetEventProfilingInfo(
                pending.event,
                CL_PROFILING_COMMAND_QUEUED + i as u32,
                8,
                std::ptr::from_mut(time).cast(),
                null_mut(),
            )
        };
        if error != 0 {
            command.times_error = error;
        }
    }
    if !record_with_text(special::COMMAND, &command, text(pending.name)) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    count_commands(0, 1);
    correlate(pending.command.device as P);
    release(pending.event, pending.shared);
    Progress::Collected
}

/// Where the bytes of a command come from and go to, as indexes into
/// `MEMORY_KINDS`. Only of these two the API tells: what a copy or a map is
/// about may be the host's as well as the device's.
fn memory(kind: u8) -> (u8, u8) {
    const READ: u8 = 2;
    const WRITE: u8 = 3;
    const DEVICE: u8 = 3;
    const HOST: u8 = 7;
    match kind {
        READ => (DEVICE, HOST),
        WRITE => (HOST, DEVICE),
        _ => (0, 0),
    }
}

/// A name of the arena or of the driver's; empty where there is none.
fn text<'n>(name: *const u8) -> &'n CStr {
    // SAFETY: NULL, or NUL-terminated, and there for as long as it is used.
    if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name.cast()) } }
}

/// Says that a queue was made, and for which device.
pub fn queue_made(queue: P, context: P, device: P, properties: u64) {
    let mut name = [0u8; 256];
    // SAFETY: room for one byte less than there is, so a NUL remains.
    unsafe { real::clGetDeviceInfo(device, CL_DEVICE_NAME, 255, name.as_mut_ptr().cast(), null_mut()) };
    let mut resolution = 0u64;
    // SAFETY: room for a size_t.
    unsafe {
        let place = (&raw mut resolution).cast();
        real::clGetDeviceInfo(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, 8, place, null_mut());
    }
    let record = QueueRecord {
        queue: queue as u64,
        context: context as u64,
        device: device as u64,
        properties,
        resolution,
        ..QueueRecord::default()
    };
    record_with_text(special::QUEUE, &record, text(name.as_ptr()));
    correlate(device);
    static AT_EXIT: AtomicBool = AtomicBool::new(false);
    if !AT_EXIT.swap(true, Ordering::Relaxed) {
        // Registered after the driver was loaded, so it runs before its end.
        // SAFETY: a function that lives as long as this library.
        unsafe { libc::atexit(at_exit) };
    }
}

/// What is complete when the program ends is collected; nothing is waited for.
extern "C" fn at_exit() {
    if timing() {
        tell_pending(collect_finished(true).1);
    }
}

/// Device → when its clock was compared last; `NEVER` if it can't be.
static COMPARED: Table<256> = Table::new();
const NEVER: u64 = u64::MAX;
/// Ticks between two comparisons: some tens of milliseconds.
const PERIOD: u64 = 200_000_000;

/// Compares a device's clock with ours, where the API can tell.
fn correlate(device: P) {
    let last = COMPARED.get(device as u64);
    if last == Some(NEVER) || last.is_some_and(|l| ticks().wrapping_sub(l) < PERIOD) {
        return;
    }
    if last.is_none() && !has_timer(device) {
        COMPARED.set(device as u64, NEVER);
        return;
    }
    let (mut device_time, mut host_time) = (0u64, 0u64);
    let before = ticks();
    // SAFETY: places for both answers; the device has this function.
    let error = unsafe { real::clGetDeviceAndHostTimer(device, &mut device_time, &mut host_time) };
    let after = ticks();
    COMPARED.set(device as u64, if error == 0 { after } else { NEVER });
    if error == 0 {
        let record = ClockRecord { device: device as u64, device_time, before, after };
        record_with_text(special::CLOCK, &record, c"");
    }
}

/// Drivers before OpenCL 2.1 may not even have a place for the function.
fn has_timer(device: P) -> bool {
    crate::capture::version(device) >= (2, 1)
}
