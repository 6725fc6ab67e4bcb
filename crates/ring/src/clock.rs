//! The clock of the hot path: the processor's own counter.
//!
//! Reading it costs a few nanoseconds where `clock_gettime` costs two or three
//! times that; the drainer turns counts into CLOCK_MONOTONIC afterwards.

/// The counter now, in ticks of unknown length.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: RDTSC has no preconditions; a kernel that forbids it
        // (PR_SET_TSC) would do so for every program that reads the time.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let ticks: u64;
        // SAFETY: the virtual counter is readable in user mode on Linux.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    {
        nanoseconds(libc::CLOCK_MONOTONIC)
    }
}

/// A POSIX clock in nanoseconds; 0 if the system has no such clock.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result.
    if unsafe { libc::clock_gettime(clock, &mut now) } != 0 {
        return 0;
    }
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
