//! How commands on devices are timed.
//!
//! Every queue gets the profiling property, every command an event; the
//! program sees neither ([`crate::hooks`]). [`hetrace_interpose::commands`] keeps
//! them and says when to ask about them. There is no callback per command,
//! because the driver's wake-up for it costs more than everything else together.

use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_interpose::commands::driver;
use hetrace_interpose::commands::named::{self, Function};
use hetrace_interpose::commands::sample::{self, Choice, Counted};
use hetrace_interpose::commands::{
    Backend, Depth, Enqueued, Place, Progress, Put, Store, Thread, Times, text,
};
use hetrace_interpose::ring::abi::{ClockRecord, DeviceRecord, QueueRecord, option, special};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::table::Table;
use hetrace_interpose::window::{session_key, session_number};
use hetrace_interpose::{OwnWork, note, record_with_text, session};

use crate::generated::prelude::{P, element, null_mut};
use crate::generated::real;
use crate::kernels;
use crate::queues::{self, OUT_OF_ORDER, PROFILED, Queue};
use crate::shared;

const CL_EVENT_COMMAND_EXECUTION_STATUS: u32 = 0x11D3;
const CL_PROFILING_COMMAND_QUEUED: u32 = 0x1280;
const CL_DEVICE_PROFILING_TIMER_RESOLUTION: u32 = 0x1025;
const CL_DEVICE_NAME: u32 = 0x102B;
const CL_DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
const CL_DEVICE_MAX_CLOCK_FREQUENCY: u32 = 0x100C;
const CL_DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101F;
const CL_DEVICE_UUID_KHR: u32 = 0x106A;

/// Work offset, global and local size.
pub type Geometry = (u8, [[u64; 3]; 3]);
/// Of a command that has none.
pub const NO_GEOMETRY: Geometry = (0, [[0; 3]; 3]);

/// Returns the geometry of a launch; none if it has more dimensions than there are: the driver refuses it
/// without reading the sizes, and so nothing is known of how many there are.
///
/// # Safety
/// `offset`, `global` and `local` are NULL or have as many sizes as there are dimensions, if that is at most 3.
#[inline]
pub unsafe fn geometry(
    dimensions: u32,
    offset: *const u64,
    global: *const u64,
    local: *const u64,
) -> Geometry {
    if dimensions > 3 {
        return NO_GEOMETRY;
    }
    let mut all = [[0; 3]; 3];
    for (row, from) in all.iter_mut().zip([offset, global, local]) {
        for (i, size) in row.iter_mut().enumerate().take(dimensions as usize) {
            // SAFETY: `i` is below `dimensions`, which is at most 3, and the function's own condition gives so many sizes or NULL.
            *size = unsafe { element(from, i) } as u64;
        }
    }
    (dimensions as u8, all)
}

/// Commands in flight.
static COMMANDS: Store<Event> = Store::new();

/// By what a command is asked about.
#[derive(Debug, Clone, Copy)]
struct Event {
    /// We own one reference.
    handle: P,
    /// The program has the event, too.
    shared: bool,
}

// SAFETY: OpenCL's functions may be called with a handle from any thread.
unsafe impl Send for Event {}
// SAFETY: a shared reference gives the handle only, and OpenCL 1.1 and later have all functions but
// `clSetKernelArg` safe from several threads at once; events have none of these.
unsafe impl Sync for Event {}

/// Whether commands are timed.
#[inline]
pub fn timing() -> bool {
    session().is_some_and(|s| s.option(option::DEVICE))
}

/// References of an event that are ours and not the program's.
pub fn own_references(event: P) -> u64 {
    u64::from(shared::has(event))
}

/// Runs a call that enqueues a command, with an event even if the program
/// wants none, and remembers the command.
///
/// # Safety
/// `queue`, `kernel` and `event` are those that `call` passes to the API: live handles or NULL, and NULL or a
/// place for the event's handle, into which a successful call puts a live one. `call` makes the call with the
/// place that it gets instead of `event`.
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
    let Some(known) = timed(time, queue) else {
        return call(event);
    };
    // Where not all commands are timed, this one is counted.
    let counted = if sample::is_on() { counted(kind, kernel) } else { None };
    let choice =
        counted.map_or(Choice::All, |(id, counted)| counted.choose_compared(kind, id, !kernel.is_null(), 0));
    if let Some((_, counted)) = counted
        && choice == Choice::Counted
    {
        let call = || driver::untimed(kind, || call(event));
        return counted.only_count(0, call, succeeded, || bytes() as u64);
    }
    let mut own = null_mut();
    let place = if event.is_null() { &raw mut own } else { event };
    let mut work = OwnWork::begun(time);
    let (result, returned) = work.real(|| call(place));
    if !succeeded(result) {
        work.failed();
        if let Some((_, counted)) = counted {
            counted.failed(choice, 0);
        }
        return result;
    }
    // Not before: to know how many there are, the driver may be asked about objects that the call proves to be some.
    let bytes = bytes() as u64;
    if let Some((_, counted)) = counted {
        counted.moved(bytes);
        driver::timed(kind, &work);
    }
    // SAFETY: a place of ours or the program's, filled in by a successful call.
    let handle = unsafe { *place };
    if handle.is_null() {
        return result;
    }
    let event = kept(handle, !event.is_null());
    let thread = COMMANDS.thread_in(&work);
    let place = thread.as_ref().and_then(|t| t.place().or_else(|| make_room(t, &mut work)));
    let (Some(thread), Some(place)) = (&thread, place) else {
        give_up(event);
        return result;
    };
    let command = Enqueued {
        cause_tid: thread.tid(),
        cause: time,
        returned,
        queue: queue as u64,
        device: known.device as u64,
        bytes,
        in_order: known.flags & OUT_OF_ORDER == 0,
        ..described(kind, kernel, counted.map(|(id, _)| id), choice, geometry)
    };
    match place.put(event, command) {
        Put::Kept => {}
        Put::Due => work.collecting(|| {
            COMMANDS.harvest(thread, &mut Asking::default());
            sample::report_counts(false, named::all());
        }),
        Put::Full => give_up(event),
    }
    result
}

/// Makes an event that was just made ours; if the program has it, too, by a reference of our own.
fn kept(handle: P, shared: bool) -> Event {
    if shared {
        // SAFETY: a live event, just made by a call that succeeded.
        unsafe { real::clRetainEvent(handle) };
        shared::add(handle);
    }
    Event { handle, shared }
}

/// Returns the queue if its commands are timed, and reports it where this session does not know it yet. No time: outside
/// of a capture window.
#[inline]
fn timed(time: u64, queue: P) -> Option<Queue> {
    let known = queues::get(queue);
    if time != 0 && known.is_none_or(|known| !queues::is_reported(known)) {
        meet(queue, known);
    }
    known.filter(|q| q.flags & PROFILED != 0 && timing() && time != 0)
}

/// A command of a queue that this session does not know: a session of the service began when the queue was there
/// already. Its profiling was decided when it was made.
#[cold]
#[inline(never)]
fn meet(queue: P, known: Option<Queue>) {
    static NOTED: AtomicU32 = AtomicU32::new(0);
    let number = session_number();
    let Some(known) = known else {
        if number != 0 && NOTED.swap(number, Ordering::Relaxed) != number {
            note(
                b"OpenCL queues that were made before the recording began have no times of commands: profiling is \
                  decided when a queue is made",
            );
        }
        return;
    };
    queues::set_reported(queue, known);
    // The driver is not asked: the program may have released the queue. Its bits are those of the API.
    let asked = if known.flags & queues::ASKED != 0 { 2 } else { 0 };
    let out_of_order = u64::from(known.flags & OUT_OF_ORDER != 0);
    queue_made(queue, null_mut(), known.device, asked | out_of_order);
}

/// What counts a command: the id of its kernel, or of its kind.
fn counted(kind: u8, kernel: P) -> Option<(u64, &'static Counted)> {
    if kernel.is_null() {
        return sample::of_kind(kind, memory(kind));
    }
    kernels::get(kernel).map(Function::counted)
}

/// What is known of a command by itself; the rest of it is empty.
#[inline]
fn described(kind: u8, kernel: P, counted: Option<u64>, choice: Choice, geometry: Geometry) -> Enqueued {
    Enqueued {
        dimensions: geometry.0,
        memory: memory(kind),
        function: counted.unwrap_or(0),
        name: if counted.is_none() { kernels::name(kernel) } else { std::ptr::null() },
        geometry: geometry.1,
        weight: choice.weight(),
        flags: choice.flags(),
        ..Enqueued::of(kind)
    }
}

/// There is no place for a command; perhaps there is one when those that have ended are gone.
#[cold]
#[inline(never)]
fn make_room<'t>(thread: &'t Thread<Event>, work: &mut OwnWork) -> Option<Place<'t, Event>> {
    work.collecting(|| COMMANDS.harvest(thread, &mut Asking::default()));
    thread.place()
}

/// There is no place for a command.
#[cold]
#[inline(never)]
fn give_up(event: Event) {
    COMMANDS.lose_for_room();
    release(event);
}

/// The program has waited for a device: collect what is finished.
pub fn synchronized() {
    crate::capture::harvest();
    if timing() {
        COMMANDS.collect_waited(&mut Asking::default());
        sample::report_counts(false, named::all());
    }
}

/// Asks about events.
#[derive(Default)]
struct Asking {
    /// The device whose clock was compared last.
    compared: u64,
}

impl Backend for Asking {
    type Token = Event;

    #[inline(always)]
    fn poll(&mut self, event: Event, command: &Enqueued) -> Progress {
        let mut status = 0i32;
        // SAFETY: room for the answer; the event is live, we own a reference.
        let error = unsafe {
            real::clGetEventInfo(
                event.handle,
                CL_EVENT_COMMAND_EXECUTION_STATUS,
                4,
                (&raw mut status).cast(),
                null_mut(),
            )
        };
        if error == 0 && status > 0 {
            return Progress::Waits;
        }
        let mut times = Times { status: if error == 0 { status } else { error }, ..Times::default() };
        let places = [&mut times.queued, &mut times.submitted, &mut times.start, &mut times.end];
        for (i, time) in places.into_iter().enumerate() {
            // SAFETY: room for the answer.
            let error = unsafe {
                real::clGetEventProfilingInfo(
                    event.handle,
                    CL_PROFILING_COMMAND_QUEUED + i as u32,
                    8,
                    std::ptr::from_mut(time).cast(),
                    null_mut(),
                )
            };
            if error != 0 {
                times.error = error;
            }
        }
        // Once for all commands of a device that are found in one look.
        if self.compared != command.device {
            self.compared = command.device;
            correlate(command.device as P);
        }
        Progress::Ended(times)
    }

    fn release(&mut self, event: Event) {
        release(event);
    }
}

/// Gives our reference back.
fn release(event: Event) {
    if event.shared {
        shared::remove(event.handle);
    }
    // SAFETY: the reference is ours: `enqueue` took it, and each event is released once.
    unsafe { real::clReleaseEvent(event.handle) };
}

/// Where the bytes of a command come from and go to, as indexes into
/// `MEMORY_KINDS`. The API determines it for these two only: the memory of a copy or a map
/// may be the host's as well as the device's.
fn memory(kind: u8) -> [u8; 2] {
    const READ: u8 = 2;
    const WRITE: u8 = 3;
    const DEVICE: u8 = 3;
    const HOST: u8 = 7;
    match kind {
        READ => [DEVICE, HOST],
        WRITE => [HOST, DEVICE],
        _ => [0; 2],
    }
}

/// Says that a queue was made, and for which device.
pub fn queue_made(queue: P, context: P, device: P, properties: u64) {
    let mut name = [0u8; 256];
    // SAFETY: room for one byte less than there is, so a NUL remains.
    unsafe { real::clGetDeviceInfo(device, CL_DEVICE_NAME, 255, name.as_mut_ptr().cast(), null_mut()) };
    device_seen(device, &name);
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
    // SAFETY: it ends with a NUL, which was left there.
    record_with_text(special::QUEUE, &record, unsafe { text(name.as_ptr()) });
    correlate(device);
    COMMANDS.at_exit(at_exit);
}

/// Device → the session in which it was described last.
static DESCRIBED: Table<256> = Table::new();

/// Says what a device is like, once in each session.
fn device_seen(device: P, name: &[u8; 256]) {
    let number = session_key();
    if DESCRIBED.get(device as u64) == Some(number) {
        return;
    }
    DESCRIBED.set(device as u64, number);
    let (mut units, mut clock_mhz, mut memory) = (0u32, 0u32, 0u64);
    // By which a GPU is the same one in other processes, in other APIs and in telemetry; few processors have it.
    let mut uuid = [0u8; 16];
    let places: [(u32, u64, *mut u8); 4] = [
        (CL_DEVICE_MAX_COMPUTE_UNITS, 4, (&raw mut units).cast()),
        (CL_DEVICE_MAX_CLOCK_FREQUENCY, 4, (&raw mut clock_mhz).cast()),
        (CL_DEVICE_GLOBAL_MEM_SIZE, 8, (&raw mut memory).cast()),
        (CL_DEVICE_UUID_KHR, 16, uuid.as_mut_ptr()),
    ];
    for (what, size, place) in places {
        // SAFETY: room for so many bytes; what fails leaves the 0 there.
        unsafe { real::clGetDeviceInfo(device, what, size, place.cast(), null_mut()) };
    }
    let record = DeviceRecord {
        device: device as u64,
        compute_units: units,
        clock_khz: clock_mhz.saturating_mul(1000),
        memory_bytes: memory,
        uuid,
        ..DeviceRecord::default()
    };
    // SAFETY: it ends with a NUL, which was left there.
    record_with_text(special::DEVICE, &record, unsafe { text(name.as_ptr()) });
}

/// What is complete when the program ends is collected; nothing is waited for.
extern "C" fn at_exit() {
    if timing() {
        COMMANDS.collect(Depth::Last, &mut Asking::default());
        sample::report_counts(true, named::all());
    }
}

/// Device → when its clock was compared last; `NEVER` if it can't be.
static COMPARED: Table<256> = Table::new();
const NEVER: u64 = u64::MAX;
/// Ticks between two comparisons: some tens of milliseconds.
const PERIOD: u64 = 200_000_000;

/// Compares a device's clock with ours, where the API can read both.
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
