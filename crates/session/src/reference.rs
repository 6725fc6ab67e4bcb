//! Reading the clocks.

use hetrace_ring::clock;

use crate::time::ReferencePoint;

/// Returns the three clocks at one moment: the best of a few readings.
pub(crate) fn reference() -> ReferencePoint {
    let read = || {
        let before = clock::ticks();
        let monotonic_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let after = clock::ticks();
        let realtime_ns = clock::nanoseconds(libc::CLOCK_REALTIME);
        let width = after.wrapping_sub(before);
        // Ticks are at most a nanosecond or so; as a doubt that is near enough.
        let uncertainty_ns = u32::try_from(width / 2).unwrap_or(u32::MAX);
        ReferencePoint { tsc: before.wrapping_add(width / 2), monotonic_ns, realtime_ns, uncertainty_ns }
    };
    let first = read();
    (0..4)
        .map(|_| read())
        .fold(first, |best, p| if p.uncertainty_ns < best.uncertainty_ns { p } else { best })
}
