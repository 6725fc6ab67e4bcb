//! A context's clock, made of events.
//!
//! Events give only the time between two of them, in milliseconds as a float: 24 bits,
//! so 60 ns at a distance of a second. So each context has a reference event,
//! recorded on a stream of ours and renewed now and then; a device time is the
//! reference's time and the distance to it, and the new reference's time is made
//! from the old one's, so that the clock goes on without a step. When a
//! reference is recorded, the host's time before and after brackets it: that is
//! what relates the device's clock to the host's.
//!
//! All contexts of a device share its clock: the first one's begins with the host's
//! time, the others join it.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{ClockRecord, special};
use hetrace_interpose::ring::clock::ticks;

use super::contexts::{Context, living};
use super::record::{now, send};
use super::{device_key, driver};
use crate::generated::prelude::{P, null_mut};

/// Nanoseconds between two references, once they have gone on for a while.
const PERIOD: u64 = 100_000_000;
/// In the beginning they follow each other more closely: how fast the device's clock goes
/// is known the better, the longer it was watched, and must be known from the start.
const SHARE_OF_AGE: u64 = 4;
/// Nanoseconds that are spent at most on seeing a reference complete.
const PATIENCE: u64 = 50_000;
/// So many references follow each other at first, for a narrow bracket.
const FIRST: u64 = 4;
const KEPT: usize = 4;

#[derive(Debug)]
struct Reference {
    event: AtomicPtr<std::ffi::c_void>,
    time: AtomicU64,
}

/// The clock of a context.
#[derive(Debug)]
pub struct Clock {
    /// How many references there were; the last of them counts.
    count: AtomicU64,
    references: [Reference; KEPT],
    busy: AtomicBool,
    stream: AtomicPtr<std::ffi::c_void>,
    /// The next reference has been recorded, and was not complete when last seen.
    recorded: AtomicBool,
    /// Counter value and host time just before that.
    before: AtomicU64,
    before_ns: AtomicU64,
    /// Host time when the last reference was seen complete, and the first.
    renewed: AtomicU64,
    began: AtomicU64,
}

/// The latest comparison of a device's clock with the host's, by ordinal.
#[derive(Debug)]
struct Seen {
    device: AtomicU64,
    host: AtomicU64,
}

const DEVICES: usize = 64;
static SEEN: [Seen; DEVICES] =
    [const { Seen { device: AtomicU64::new(0), host: AtomicU64::new(0) } }; DEVICES];

impl Clock {
    pub const fn new() -> Clock {
        Clock {
            count: AtomicU64::new(0),
            references: [const { Reference { event: AtomicPtr::new(null_mut()), time: AtomicU64::new(0) } };
                KEPT],
            busy: AtomicBool::new(false),
            stream: AtomicPtr::new(null_mut()),
            recorded: AtomicBool::new(false),
            before: AtomicU64::new(0),
            before_ns: AtomicU64::new(0),
            renewed: AtomicU64::new(0),
            began: AtomicU64::new(0),
        }
    }

    /// Forgets everything: the events went with their context. What the device's
    /// clock was compared to last is remembered for contexts to come.
    pub fn forget(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.stream.store(null_mut(), Ordering::Relaxed);
        self.recorded.store(false, Ordering::Relaxed);
        self.busy.store(false, Ordering::Relaxed);
        self.renewed.store(0, Ordering::Relaxed);
        for reference in &self.references {
            reference.event.store(null_mut(), Ordering::Relaxed);
        }
    }

    fn reference(&self, number: u64) -> Option<&Reference> {
        self.references.get(number as usize % KEPT)
    }

    /// Device times of two events that are complete, in nanoseconds; an error
    /// code if they have none, `None` if the clock is not known yet.
    ///
    /// # Safety
    /// Complete events with times, of this clock's context, which lives.
    pub unsafe fn times(&self, first: P, second: P) -> Option<Result<(u64, u64), i32>> {
        // A reference is recorded anew only when three others have come.
        for _ in 0..3 {
            let count = self.count.load(Ordering::Acquire);
            let reference = self.reference(count.checked_sub(1)?)?;
            let (event, time) =
                (reference.event.load(Ordering::Relaxed), reference.time.load(Ordering::Relaxed));
            let (mut to_first, mut between) = (0f32, 0f32);
            // SAFETY: both events are complete and have times, and their context, which is the
            // reference's, lives; locals for the results.
            let error = unsafe {
                match driver::cuEventElapsedTime(&mut to_first, event, first) {
                    0 => driver::cuEventElapsedTime(&mut between, first, second),
                    error => error,
                }
            };
            if self.count.load(Ordering::Acquire).wrapping_sub(count) >= KEPT as u64 - 1 {
                continue;
            }
            if error != 0 {
                return Some(Err(error));
            }
            let start = time.saturating_add_signed(nanoseconds(to_first)).max(1);
            // Both distances from the reference would be rounded apart.
            return Some(Ok((start, start.saturating_add_signed(nanoseconds(between).max(0)))));
        }
        None
    }

    /// Whether it is time for a new reference.
    pub fn is_due(&self) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let (renewed, began) = (self.renewed.load(Ordering::Relaxed), self.began.load(Ordering::Relaxed));
        now().saturating_sub(renewed) > PERIOD.min(renewed.saturating_sub(began) / SHARE_OF_AGE)
    }

    /// Makes a new reference, or finishes the one begun before.
    ///
    /// # Safety
    /// `context` is this clock's, lives and is current.
    pub unsafe fn renew(&self, context: &Context) {
        if self.busy.swap(true, Ordering::Acquire) {
            return;
        }
        let rounds = if self.count.load(Ordering::Relaxed) == 0 { FIRST } else { 1 };
        for _ in 0..rounds {
            // SAFETY: `context` is this clock's, lives and is current; `busy` was not set before, so the
            // flag is ours.
            if unsafe { self.one(context) }.is_none() {
                break;
            }
        }
        self.busy.store(false, Ordering::Release);
    }

    /// # Safety
    /// As [`Clock::renew`], and the flag is ours.
    unsafe fn one(&self, context: &Context) -> Option<()> {
        let count = self.count.load(Ordering::Relaxed);
        let next = self.reference(count)?;
        let resumed = self.recorded.load(Ordering::Relaxed);
        // SAFETY: the caller of this function has made the context current and holds the flag.
        let event = unsafe { self.record(context, next, resumed) }?;
        // One that was not complete the last time is not waited for again.
        let patience = if resumed { 0 } else { PATIENCE };
        let give_up = now().saturating_add(patience);
        // SAFETY: an event of ours, in a context that lives.
        while unsafe { driver::cuEventQuery(event) } != 0 {
            if now() > give_up {
                return None; // Another time: the device has better things to do.
            }
        }
        let (after, after_ns) = (ticks(), now());
        self.recorded.store(false, Ordering::Relaxed);
        let before_ns = self.before_ns.load(Ordering::Relaxed);
        let middle = before_ns + after_ns.saturating_sub(before_ns) / 2;
        let time = match count.checked_sub(1).and_then(|last| self.reference(last)) {
            Some(last) => {
                let mut apart = 0f32;
                // SAFETY: two complete events of a context that lives.
                let error = unsafe {
                    driver::cuEventElapsedTime(&mut apart, last.event.load(Ordering::Relaxed), event)
                };
                if error != 0 {
                    return None;
                }
                last.time.load(Ordering::Relaxed).saturating_add_signed(nanoseconds(apart))
            }
            None => join(context, middle),
        };
        next.time.store(time, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
        if count == 0 {
            self.began.store(before_ns, Ordering::Relaxed);
        }
        self.renewed.store(after_ns, Ordering::Relaxed);
        let before = self.before.load(Ordering::Relaxed);
        publish(context, time, middle, [before, after]);
        Some(())
    }

    /// Records the event of the next reference, unless that was done before (`resumed`). Returns the
    /// event, or `None` if the driver refuses.
    ///
    /// # Safety
    /// As [`Clock::one`].
    unsafe fn record(&self, context: &Context, next: &Reference, resumed: bool) -> Option<P> {
        let mut event = next.event.load(Ordering::Relaxed);
        let mut stream = self.stream.load(Ordering::Relaxed);
        // SAFETY: the context is current; the stream's handle is written to a variable of ours.
        unsafe {
            if stream.is_null() {
                if driver::cuStreamCreate(&mut stream, driver::NON_BLOCKING) != 0 {
                    return None;
                }
                self.stream.store(stream, Ordering::Relaxed);
            }
            if event.is_null() {
                event = context.pool.take(context.handle());
                if event.is_null() {
                    return None;
                }
                next.event.store(event, Ordering::Relaxed);
            }
            if !resumed {
                self.before_ns.store(now(), Ordering::Relaxed);
                self.before.store(ticks(), Ordering::Relaxed);
                if driver::cuEventRecord(event, stream) != 0 {
                    return None;
                }
                self.recorded.store(true, Ordering::Relaxed);
            }
        }
        Some(event)
    }
}

/// Keeps a comparison of a device's clock with the host's for contexts to come, and puts it into the
/// trace: device time and host time in nanoseconds, and the counter before and after.
fn publish(context: &Context, time: u64, host: u64, [before, after]: [u64; 2]) {
    if let Some(seen) = SEEN.get(context.device() as usize) {
        seen.device.store(time, Ordering::Relaxed);
        seen.host.store(host, Ordering::Relaxed);
    }
    // A context that joined another's clock did so by such a bracket, and
    // vouches for nothing.
    if leads(context) {
        let device = device_key(context.device());
        send(special::CLOCK, &ClockRecord { device, device_time: time, before, after }, c"");
    }
}

/// Milliseconds as whole nanoseconds.
fn nanoseconds(milliseconds: f32) -> i64 {
    (f64::from(milliseconds) * 1e6).round() as i64
}

/// Whether a context is the one that its device's clock is taken from: the first
/// that lives.
pub fn leads(context: &Context) -> bool {
    living().find(|c| c.device() == context.device()).is_some_and(|c| std::ptr::eq(c, context))
}

/// The device's clock at host time `host`, where a context begins to use it.
fn join(context: &Context, host: u64) -> u64 {
    let others = living().filter(|c| c.device() == context.device() && !std::ptr::eq(*c, context));
    for other in others {
        // A fresh look, for the clocks drift apart.
        let Some(_in_use) = other.enter(other.generation()) else { continue };
        let Some(_pushed) = driver::Pushed::new(other.handle()) else { continue };
        if other.clock.count.load(Ordering::Relaxed) > 0 {
            // SAFETY: it lives, and is current.
            unsafe { other.clock.renew(other) };
            break;
        }
    }
    let Some(seen) = SEEN.get(context.device() as usize) else { return host };
    let (device, then) = (seen.device.load(Ordering::Relaxed), seen.host.load(Ordering::Relaxed));
    if device == 0 { host } else { device.saturating_add_signed(host.wrapping_sub(then) as i64) }
}
