//! A context's clock, made of events: [`reference`](hetrace_interpose::commands::reference).
//!
//! All contexts of a device share its clock: the first one's begins with the host's
//! time, the others join it.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_interpose::commands::reference::{self, Events};
use hetrace_interpose::ring::abi::{ClockRecord, special};

use super::super::record::send;
use super::super::{device_key, driver};
use super::{Context, living};
use crate::generated::prelude::{P, null_mut};

/// The latest comparison of a device's clock with the host's, by ordinal.
#[derive(Debug)]
struct Seen {
    device: AtomicU64,
    host: AtomicU64,
}

const DEVICES: usize = 64;
static SEEN: [Seen; DEVICES] =
    [const { Seen { device: AtomicU64::new(0), host: AtomicU64::new(0) } }; DEVICES];

/// The clock of a context. What the device's clock was compared to last is remembered for contexts to come.
#[derive(Debug)]
pub struct Clock(reference::Clock);

impl Clock {
    pub const fn new() -> Clock {
        Clock(reference::Clock::new())
    }

    /// Forgets everything: the events went with their context.
    pub fn forget(&self) {
        self.0.forget();
    }

    /// Device times of two events that are complete, in nanoseconds; an error
    /// code if they have none, `None` if the clock is not known yet.
    ///
    /// # Safety
    /// Complete events with times, of `context`, whose clock this is and which lives.
    pub unsafe fn times(&self, context: &Context, first: P, second: P) -> Option<Result<(u64, u64), i32>> {
        self.0.times(&Of(context), first, second)
    }

    /// Nanoseconds from an event to another that is behind it, as near as the driver says that; none if it does not.
    ///
    /// # Safety
    /// Complete events with times, of `context`, whose clock this is and which lives.
    pub unsafe fn between(&self, context: &Context, first: P, second: P) -> Option<u64> {
        let mut milliseconds = 0.0;
        let error = Of(context).between(&mut milliseconds, first, second);
        (error == 0 && milliseconds >= 0.0).then_some((f64::from(milliseconds) * 1e6).round() as u64)
    }

    /// Whether it is time for a new reference.
    pub fn is_due(&self) -> bool {
        self.0.is_due()
    }

    /// Makes a new reference, or finishes the one begun before.
    ///
    /// # Safety
    /// `context` is this clock's, lives and is current.
    pub unsafe fn renew(&self, context: &Context) {
        self.0.renew(&Of(context));
    }
}

/// A context that lives. It is current where something is made or recorded.
struct Of<'c>(&'c Context);

// SAFETY: the driver's own functions, with events and streams that are of this context, which lives.
unsafe impl Events for Of<'_> {
    fn event(&self) -> P {
        // SAFETY: the pool's context lives.
        unsafe { self.0.pool.take(self.0.handle()) }
    }

    fn stream(&self) -> P {
        let mut stream = null_mut();
        // SAFETY: the context is current; room for the answer.
        let error = unsafe { driver::cuStreamCreate(&mut stream, driver::NON_BLOCKING) };
        if error == 0 { stream } else { null_mut() }
    }

    fn record(&self, event: P, stream: P) -> i32 {
        // SAFETY: an event and a stream of the context, which is current.
        unsafe { driver::cuEventRecord(event, stream) }
    }

    fn query(&self, event: P) -> i32 {
        // SAFETY: an event of ours, in a context that lives.
        unsafe { driver::cuEventQuery(event) }
    }

    fn between(&self, milliseconds: &mut f32, first: P, second: P) -> i32 {
        // SAFETY: two complete events of a context that lives; room for the answer.
        unsafe { driver::cuEventElapsedTime(milliseconds, first, second) }
    }

    fn origin(&self, host: u64) -> u64 {
        join(self.0, host)
    }

    fn compared(&self, time: u64, host: u64, [before, after]: [u64; 2]) {
        let context = self.0;
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
        if other.clock.0.has_begun() {
            // SAFETY: it lives, and is current.
            unsafe { other.clock.renew(other) };
            break;
        }
    }
    let Some(seen) = SEEN.get(context.device() as usize) else { return host };
    let (device, then) = (seen.device.load(Ordering::Relaxed), seen.host.load(Ordering::Relaxed));
    if device == 0 { host } else { device.saturating_add_signed(host.wrapping_sub(then) as i64) }
}
