//! Devices by their ordinals: what they are, their events and their clocks.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::pool::Pool;
use hetrace_interpose::commands::reference::{Clock, Events, now};
use hetrace_interpose::record_with_text;
use hetrace_interpose::ring::abi::{ClockRecord, DeviceRecord, special};
use hetrace_interpose::window::session_key;

use super::profiler;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const MOST: usize = 64;
const SUCCESS: u32 = 0;
const ATTRIBUTE_CLOCK_RATE: u32 = 5;
const ATTRIBUTE_MULTIPROCESSORS: u32 = 63;
/// `hipEventDisableSystemFence`: no cache is written back when an event is recorded.
const NO_FENCE: u32 = 0x2000_0000;
/// `hipStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

/// A device that runs commands.
#[derive(Debug)]
pub struct Device {
    /// Goes up when the device is reset, and what was made there is gone.
    generation: AtomicU32,
    /// Who makes calls about its events right now.
    users: AtomicU32,
    /// The session in which it was described.
    described: AtomicU64,
    pool: Pool,
    clock: Clock,
    /// When the collector's clock was last compared with the host's.
    compared: AtomicU64,
}

static DEVICES: [Device; MOST] = [const {
    Device {
        generation: AtomicU32::new(0),
        users: AtomicU32::new(0),
        described: AtomicU64::new(0),
        pool: Pool::new(),
        clock: Clock::new(),
        compared: AtomicU64::new(0),
    }
}; MOST];

/// Nanoseconds between two comparisons of the collector's clock, and looks at it in each.
const COMPARED_EVERY: u64 = 50_000_000;
const LOOKS: usize = 5;

/// The key of a device. It is never 0, which means none.
pub fn key(ordinal: u32) -> u64 {
    u64::from(ordinal) + 1
}

/// The device that is current in this thread.
pub fn current() -> Option<u32> {
    let mut ordinal = 0;
    // SAFETY: room for the answer.
    let error = unsafe { real::hipGetDevice(&raw mut ordinal) };
    (error == SUCCESS).then(|| ordinal.unsigned_abs())
}

/// Makes a device current as long as this lives.
struct Current(Option<i32>);

impl Current {
    fn new(ordinal: u32) -> Option<Current> {
        let before = current()?;
        if before == ordinal {
            return Some(Current(None));
        }
        // SAFETY: a device that the program uses.
        (unsafe { real::hipSetDevice(ordinal as i32) } == SUCCESS).then_some(Current(Some(before as i32)))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // SAFETY: what was current before.
            unsafe { real::hipSetDevice(before) };
        }
    }
}

/// A device, and that what was made there is not gone: as long as this lives, nobody says that it is.
#[derive(Debug)]
pub struct Use {
    device: &'static Device,
    ordinal: u32,
}

impl Drop for Use {
    fn drop(&mut self) {
        self.device.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Permission to touch what was made on a device; `None` if that is gone, or there are too many devices.
pub fn enter(ordinal: u32, generation: Option<u32>) -> Option<Use> {
    let device = DEVICES.get(ordinal as usize)?;
    // Before the number is looked at, so that `reset` sees one of the two.
    device.users.fetch_add(1, Ordering::SeqCst);
    let used = Use { device, ordinal };
    let here = generation.is_none_or(|number| device.generation.load(Ordering::SeqCst) == number);
    here.then_some(used)
}

/// A device is about to be reset. What is complete must have been collected before.
pub fn reset(ordinal: u32) {
    let Some(device) = DEVICES.get(ordinal as usize) else { return };
    device.generation.fetch_add(1, Ordering::SeqCst);
    // Others may be inside a question about an event: a few microseconds.
    for _ in 0..10_000 {
        if device.users.load(Ordering::SeqCst) == 0 {
            break;
        }
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    }
    device.pool.forget();
    device.clock.forget();
}

impl Use {
    /// Which life of the device this is.
    pub fn generation(&self) -> u32 {
        self.device.generation.load(Ordering::Relaxed)
    }

    /// Describes it in this session, and begins its clock or looks whether that is due.
    pub fn see(&self) {
        // Asked first: this comes with each command, and an instruction that locks takes longer.
        let (described, here) = (&self.device.described, session_key());
        if described.load(Ordering::Relaxed) != here && described.swap(here, Ordering::Relaxed) != here {
            self.describe();
        }
        if profiler::is_on() {
            self.compare();
        } else if self.device.clock.is_due() {
            self.device.clock.renew(self);
        }
    }

    /// Relates the collector's clock, which all devices share, to the host's, now and then.
    fn compare(&self) {
        let (now, last) = (now(), self.device.compared.load(Ordering::Relaxed));
        let order = Ordering::Relaxed;
        // Of threads that find it due, one does it.
        if now.saturating_sub(last) < COMPARED_EVERY
            || self.device.compared.compare_exchange(last, now, order, order).is_err()
        {
            return;
        }
        // The narrowest of a few looks.
        let looks = (0..LOOKS).filter_map(|_| profiler::compare());
        if let Some((time, counters)) = looks.min_by_key(|(_, [before, after])| after.wrapping_sub(*before)) {
            self.compared(time, 0, counters);
        }
    }

    #[cold]
    fn describe(&self) {
        let mut name: [c_char; 256] = [0; 256];
        let mut record =
            DeviceRecord { device: key(self.ordinal), ordinal: self.ordinal, ..Default::default() };
        let (ordinal, mut memory) = (self.ordinal as i32, 0u64);
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: room for the answer.
            let error = unsafe { real::hipDeviceGetAttribute(&raw mut value, attribute, ordinal) };
            if error == SUCCESS { value.unsigned_abs() } else { 0 }
        };
        record.compute_units = attribute(ATTRIBUTE_MULTIPROCESSORS);
        record.clock_khz = attribute(ATTRIBUTE_CLOCK_RATE);
        // SAFETY: room for the answers; the last byte of the name stays 0.
        unsafe {
            real::hipDeviceGetName(name.as_mut_ptr(), 255, ordinal);
            real::hipDeviceGetUuid(&raw mut record.uuid, ordinal);
            if real::hipDeviceTotalMem(&raw mut memory, ordinal) == SUCCESS {
                record.memory_bytes = memory;
            }
        }
        // SAFETY: it ends with a 0.
        record_with_text(special::DEVICE, &record, unsafe { CStr::from_ptr(name.as_ptr()) });
    }

    /// An event with times, or NULL.
    pub fn event(&self) -> P {
        Events::event(self)
    }

    /// Puts an event into a stream of the program's. Returns whether that worked.
    pub fn mark(&self, event: P, stream: P) -> bool {
        Events::record(self, event, stream) == 0
    }

    /// Gives events back that nothing refers to; one that is still in flight is simply recorded anew.
    pub fn give(&self, events: [P; 2]) {
        for event in events.into_iter().filter(|event| !event.is_null()) {
            self.device.pool.give(event, |event| {
                // SAFETY: an event of ours that nothing refers to.
                unsafe { real::hipEventDestroy(event) };
            });
        }
    }

    /// Whether an event is complete: 0, or the error.
    pub fn query(&self, event: P) -> i32 {
        Events::query(self, event)
    }

    /// Device times of two events that are complete; as [`Clock::times`].
    pub fn times(&self, [first, second]: [P; 2]) -> Option<Result<(u64, u64), i32>> {
        self.device.clock.times(self, first, second)
    }
}

// SAFETY: the API's own functions, with events and streams of this device, of which nothing is gone as long as it is
// in use.
unsafe impl Events for Use {
    fn event(&self) -> P {
        self.device.pool.take(|| {
            let Some(_current) = Current::new(self.ordinal) else { return null_mut() };
            let mut event = null_mut();
            // Versions that do not know the first refuse it. Both are with times.
            for flags in [NO_FENCE, 0] {
                // SAFETY: room for the answer.
                if unsafe { real::hipEventCreateWithFlags(&raw mut event, flags) } == SUCCESS {
                    return event;
                }
            }
            null_mut()
        })
    }

    fn stream(&self) -> P {
        let Some(_current) = Current::new(self.ordinal) else { return null_mut() };
        let mut stream = null_mut();
        // SAFETY: room for the answer.
        let error = unsafe { real::hipStreamCreateWithFlags(&raw mut stream, NON_BLOCKING) };
        if error == SUCCESS { stream } else { null_mut() }
    }

    fn record(&self, event: P, stream: P) -> i32 {
        // SAFETY: an event of the device, and a stream of it that lives.
        unsafe { real::hipEventRecord(event, stream) as i32 }
    }

    fn query(&self, event: P) -> i32 {
        // SAFETY: an event of ours that lives.
        unsafe { real::hipEventQuery(event) as i32 }
    }

    fn between(&self, milliseconds: &mut f32, first: P, second: P) -> i32 {
        // SAFETY: complete events of ours that live; room for the answer.
        unsafe { real::hipEventElapsedTime(milliseconds, first, second) as i32 }
    }

    fn origin(&self, host: u64) -> u64 {
        host
    }

    fn compared(&self, time: u64, _: u64, [before, after]: [u64; 2]) {
        let record = ClockRecord { device: key(self.ordinal), device_time: time, before, after };
        record_with_text(special::CLOCK, &record, c"");
    }
}
