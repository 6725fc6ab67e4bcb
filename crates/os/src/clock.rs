//! Times of the recorder itself.

use rustix::time::{ClockId, clock_gettime};

/// Returns the time on the trace's clock, in nanoseconds.
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Returns what a clock shows, in nanoseconds.
pub fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
