//! A device's clock, made of events that only say how far they are from each other.
//!
//! The time between two events comes in milliseconds as a float: 24 bits, so 60 ns at a
//! distance of a second. So there is a reference event, recorded on a stream of ours and
//! renewed now and then; a device time is the reference's time and the distance to it, and
//! the new reference's time is made from the old one's, so that the clock goes on without a
//! step. When a reference is recorded, the host's time before and after brackets it: that is
//! what relates the device's clock to the host's.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use hetrace_ring::clock::ticks;

type P = *mut c_void;

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

/// What an API can do with events. Errors are the API's, 0 is none.
///
/// # Safety
/// Events and streams that are passed are those that it has made, or that the clock's user has.
pub unsafe trait Events {
    /// Returns an event with times, or NULL.
    fn event(&self) -> P;
    /// Returns a stream that waits for no other, or NULL.
    fn stream(&self) -> P;
    /// Puts an event into a stream.
    fn record(&self, event: P, stream: P) -> i32;
    /// Returns 0 if an event is complete.
    fn query(&self, event: P) -> i32;
    /// Puts the milliseconds between two complete events into a place.
    fn between(&self, milliseconds: &mut f32, first: P, second: P) -> i32;
    /// Returns the device's time at the host's, in nanoseconds, where the clock begins.
    fn origin(&self, host: u64) -> u64;
    /// The device's clock was compared with the host's: times of both in nanoseconds, and the
    /// counter before and after.
    fn compared(&self, time: u64, host: u64, counters: [u64; 2]);
}

#[derive(Debug)]
struct Reference {
    event: AtomicPtr<c_void>,
    time: AtomicU64,
}

/// The clock of a device, or of a context.
#[derive(Debug)]
pub struct Clock {
    /// How many references there were; the last of them counts.
    count: AtomicU64,
    references: [Reference; KEPT],
    busy: AtomicBool,
    stream: AtomicPtr<c_void>,
    /// The next reference has been recorded, and was not complete when last seen.
    recorded: AtomicBool,
    /// Counter value and host time just before that.
    before: AtomicU64,
    before_ns: AtomicU64,
    /// Host time when the last reference was seen complete, and the first.
    renewed: AtomicU64,
    began: AtomicU64,
}

impl Clock {
    /// One that was not begun.
    #[allow(clippy::new_without_default)]
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

    /// Forgets everything: the events went with their context.
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

    /// Whether there was a reference.
    pub fn has_begun(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn reference(&self, number: u64) -> Option<&Reference> {
        self.references.get(number as usize % KEPT)
    }

    /// Device times of two events that are complete, in nanoseconds; an error
    /// code if they have none, `None` if the clock is not known yet.
    pub fn times(&self, api: &impl Events, first: P, second: P) -> Option<Result<(u64, u64), i32>> {
        // A reference is recorded anew only when three others have come.
        for _ in 0..3 {
            let count = self.count.load(Ordering::Acquire);
            let reference = self.reference(count.checked_sub(1)?)?;
            let (event, time) =
                (reference.event.load(Ordering::Relaxed), reference.time.load(Ordering::Relaxed));
            let (mut to_first, mut between) = (0f32, 0f32);
            let error = match api.between(&mut to_first, event, first) {
                0 => api.between(&mut between, first, second),
                error => error,
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
        if !self.has_begun() {
            return true;
        }
        let (renewed, began) = (self.renewed.load(Ordering::Relaxed), self.began.load(Ordering::Relaxed));
        now().saturating_sub(renewed) > PERIOD.min(renewed.saturating_sub(began) / SHARE_OF_AGE)
    }

    /// Makes a new reference, or finishes the one begun before.
    pub fn renew(&self, api: &impl Events) {
        if self.busy.swap(true, Ordering::Acquire) {
            return;
        }
        let rounds = if self.has_begun() { 1 } else { FIRST };
        for _ in 0..rounds {
            if self.one(api).is_none() {
                break;
            }
        }
        self.busy.store(false, Ordering::Release);
    }

    fn one(&self, api: &impl Events) -> Option<()> {
        let count = self.count.load(Ordering::Relaxed);
        let next = self.reference(count)?;
        let resumed = self.recorded.load(Ordering::Relaxed);
        let event = self.record(api, next, resumed)?;
        // One that was not complete the last time is not waited for again.
        let patience = if resumed { 0 } else { PATIENCE };
        let give_up = now().saturating_add(patience);
        while api.query(event) != 0 {
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
                if api.between(&mut apart, last.event.load(Ordering::Relaxed), event) != 0 {
                    return None;
                }
                last.time.load(Ordering::Relaxed).saturating_add_signed(nanoseconds(apart))
            }
            None => api.origin(middle),
        };
        next.time.store(time, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
        if count == 0 {
            self.began.store(before_ns, Ordering::Relaxed);
        }
        self.renewed.store(after_ns, Ordering::Relaxed);
        let before = self.before.load(Ordering::Relaxed);
        api.compared(time, middle, [before, after]);
        Some(())
    }

    /// Records the event of the next reference, unless that was done before (`resumed`). Returns the
    /// event, or `None` if the driver refuses.
    fn record(&self, api: &impl Events, next: &Reference, resumed: bool) -> Option<P> {
        let mut event = next.event.load(Ordering::Relaxed);
        let mut stream = self.stream.load(Ordering::Relaxed);
        if stream.is_null() {
            stream = api.stream();
            if stream.is_null() {
                return None;
            }
            self.stream.store(stream, Ordering::Relaxed);
        }
        if event.is_null() {
            event = api.event();
            if event.is_null() {
                return None;
            }
            next.event.store(event, Ordering::Relaxed);
        }
        if !resumed {
            self.before_ns.store(now(), Ordering::Relaxed);
            self.before.store(ticks(), Ordering::Relaxed);
            if api.record(event, stream) != 0 {
                return None;
            }
            self.recorded.store(true, Ordering::Relaxed);
        }
        Some(event)
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Milliseconds as whole nanoseconds.
fn nanoseconds(milliseconds: f32) -> i64 {
    (f64::from(milliseconds) * 1e6).round() as i64
}
