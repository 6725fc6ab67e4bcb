//! How commands on devices are timed: each gets an event, of which one reference is ours until
//! its times are known. `hetrace_interpose::commands` keeps them and says when to look.

use std::ffi::CStr;

use hetrace_interpose::commands::{Backend, Depth, Enqueued, Progress, Put, Store, Thread, Times};
use hetrace_interpose::ring::abi::{ClockRecord, DeviceRecord, FunctionRecord, QueueRecord, option, special};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::table::Table;
use hetrace_interpose::{OwnWork, record_with_text, session};

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const GIZMO_SUCCESS: u32 = 0;
const GIZMO_NOT_READY: u32 = 1;

/// The sizes of a launch: how many dimensions, then offset, global and local size in work-items.
pub type Geometry = (u8, [[u64; 3]; 3]);
/// Of a command that has none.
pub const NO_GEOMETRY: Geometry = (0, [[0; 3]; 3]);

/// Returns the sizes of a launch of so many groups in three dimensions, of so many items each.
pub fn geometry(sizes: [usize; 6]) -> Geometry {
    let [x, y, z, wide, high, deep] = sizes.map(|s| s as u64);
    let global = [x.saturating_mul(wide), y.saturating_mul(high), z.saturating_mul(deep)];
    (1, [[0; 3], global, [wide, high, deep]])
}

/// Queue → device.
static QUEUES: Table<1024> = Table::new();
/// Commands in flight.
static STORE: Store<Event> = Store::new();

/// An event with a reference of ours.
#[derive(Debug, Clone, Copy)]
struct Event(P);

// SAFETY: a handle, which any thread may pass to the API.
unsafe impl Send for Event {}
// SAFETY: as for `Send`.
unsafe impl Sync for Event {}

struct Events;

impl Backend for Events {
    type Token = Event;

    fn poll(&mut self, event: Event, command: &Enqueued) -> Progress {
        let mut times = [0u64; 4];
        // SAFETY: the event lives, a reference is ours; a `gizmoTimes` is four 64-bit numbers.
        let result = unsafe { real::gizmoEventTimes(event.0, (&raw mut times).cast()) };
        match result {
            GIZMO_SUCCESS => {
                correlate(command.device as P);
                let [queued, submitted, start, end] = times;
                Progress::Ended(Times { queued, submitted, start, end, ..Times::default() })
            }
            GIZMO_NOT_READY => Progress::Waits,
            _ => Progress::Gone,
        }
    }

    fn release(&mut self, event: Event) {
        // SAFETY: the reference is ours, and is not used again.
        unsafe { real::gizmoEventRelease(event.0) };
    }
}

fn timing() -> bool {
    session().is_some_and(|s| s.option(option::DEVICE))
}

/// Runs a call that enqueues a command, with an event even if the program wants none, and
/// remembers the command.
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
    let known = QUEUES.get(queue as u64).filter(|_| timing());
    let Some((device, thread)) = known.zip(STORE.thread()) else { return call(event) };
    let mut own = null_mut();
    let place = if event.is_null() { &raw mut own } else { event };
    let mut work = OwnWork::since(time);
    let (result, returned) = work.real(|| call(place));
    if !succeeded(result) {
        work.failed();
        return result;
    }
    // SAFETY: a place of ours or the program's, filled in by a successful call.
    let handle = unsafe { *place };
    if !event.is_null() {
        // SAFETY: a live event: the program can't have released it before it got it.
        unsafe { real::gizmoEventRetain(handle) };
    }
    let command = Enqueued {
        cause_tid: thread.tid(),
        dimensions: geometry.0,
        memory: memory(kind),
        cause: time,
        returned,
        queue: queue as u64,
        device,
        function: kernel as u64,
        bytes: bytes() as u64,
        geometry: geometry.1,
        in_order: true,
        ..Enqueued::of(kind)
    };
    match thread.put(Event(handle), command) {
        Put::Kept => {}
        Put::Due => work.collecting(|| STORE.harvest(&thread, &mut Events)),
        Put::Full => work.collecting(|| put_again(&thread, Event(handle), command)),
    }
    result
}

/// There was no place for a command; perhaps there is one when those that have ended are gone.
#[cold]
fn put_again(thread: &Thread<Event, ()>, event: Event, command: Enqueued) {
    STORE.harvest(thread, &mut Events);
    if thread.put(event, command) == Put::Full {
        STORE.lose_for_room();
        Events.release(event);
    }
}

/// Returns where the bytes of a command come from and go to, as indexes into `MEMORY_KINDS`.
fn memory(kind: u8) -> [u8; 2] {
    const READ: u8 = 2;
    const WRITE: u8 = 3;
    const DEVICE: u8 = 3;
    const HOST: u8 = 7;
    match kind {
        READ => [DEVICE, HOST],
        WRITE => [HOST, DEVICE],
        _ => [0, 0],
    }
}

/// The program has waited for commands.
pub fn synchronized() {
    if timing() {
        STORE.collect(Depth::All, &mut Events);
    }
}

extern "C" fn at_exit() {
    if timing() {
        STORE.collect(Depth::Last, &mut Events);
    }
}

/// Announces a device.
pub fn device_opened(device: P, ordinal: u32) {
    let mut name = [0u8; 64];
    // SAFETY: a live device, and room for the text.
    unsafe { real::gizmoDeviceName(device, name.as_mut_ptr().cast(), name.len() as u64) };
    let record = DeviceRecord { device: device as u64, ordinal, ..DeviceRecord::default() };
    record_with_text(special::DEVICE, &record, CStr::from_bytes_until_nul(&name).unwrap_or_default());
    correlate(device);
}

/// Announces a queue. Its handle may have been another's.
pub fn queue_made(queue: P, device: P) {
    QUEUES.set(queue as u64, device as u64);
    let record = QueueRecord { queue: queue as u64, device: device as u64, ..QueueRecord::default() };
    record_with_text(special::QUEUE, &record, c"");
    // The library was loaded before: its end comes after this.
    STORE.at_exit(at_exit);
}

/// Announces a kernel.
pub fn kernel_made(kernel: P, name: &CStr) {
    let record = FunctionRecord { function: kernel as u64, ..FunctionRecord::default() };
    record_with_text(special::FUNCTION, &record, name);
}

/// Device → when its clock was compared last.
static COMPARED: Table<16> = Table::new();
/// Ticks between two comparisons: some tens of milliseconds.
const PERIOD: u64 = 100_000_000;

/// Compares a device's clock with ours.
fn correlate(device: P) {
    if COMPARED.get(device as u64).is_some_and(|last| ticks().wrapping_sub(last) < PERIOD) {
        return;
    }
    let mut device_time = 0;
    let before = ticks();
    // SAFETY: a device of the API's, and a place for the time.
    let result = unsafe { real::gizmoDeviceTime(device, &raw mut device_time) };
    let after = ticks();
    COMPARED.set(device as u64, after);
    if result == GIZMO_SUCCESS {
        let record = ClockRecord { device: device as u64, device_time, before, after };
        record_with_text(special::CLOCK, &record, c"");
    }
}
