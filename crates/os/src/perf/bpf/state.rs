//! The state of a thread that leaves its CPU, as the kernel's tracepoint reports it (`__trace_sched_switch_state` and
//! `__task_state_index` of `include/linux/sched.h`).

/// States that are reported: asleep, waiting for a device or the like, stopped, traced, dead, ended, parked.
const REPORTED: u32 = 0x7f;
/// Waiting for a device or the like.
const UNINTERRUPTIBLE: u32 = 2;
/// That, and not counted as load: a thread of the kernel that has nothing to do.
const IDLE: u32 = 0x402;
/// As which that is reported.
const REPORTED_IDLE: u32 = 0x80;
/// As which a thread is reported that was preempted.
const PREEMPTED: u32 = 0x100;
/// Waiting for a lock of a realtime kernel.
const LOCK: u32 = 0x1000;
/// Frozen, since Linux 6.1.
const FROZEN: u32 = 0x8000;

/// Returns what is reported of a thread that was preempted or not, in a state, and that has ended in a way or not.
pub fn reported(preempted: bool, state: u32, ended: u32) -> u32 {
    if preempted {
        return PREEMPTED;
    }
    let mut bits = (state | ended) & REPORTED;
    if state & IDLE == IDLE {
        bits = REPORTED_IDLE;
    }
    if state & (LOCK | FROZEN) != 0 {
        bits = UNINTERRUPTIBLE;
    }
    // The highest bit alone.
    bits.checked_ilog2().map_or(0, |highest| 1 << highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_tracepoint() {
        for (preempted, state, ended, expected) in [
            (false, 0, 0, 0),
            (false, 1, 0, 1),
            // Preempted while it was about to sleep.
            (true, 1, 0, 0x100),
            // Killable; stopped and to be woken by a kill.
            (false, 0x102, 0, 2),
            (false, 0x104, 0, 4),
            (false, 0x108, 0, 8),
            // The last time it leaves its CPU: dead, perhaps ended and waited for.
            (false, 0x80, 0x10, 0x10),
            (false, 0x80, 0x20, 0x20),
            (false, 0x80, 0x30, 0x20),
            (false, 0x40, 0, 0x40),
            (false, 0x402, 0, 0x80),
            (false, 0x1000, 0, 2),
            (false, 0x8000, 0, 2),
            // It may be frozen, and is asleep.
            (false, 0x2001, 0, 1),
        ] {
            assert_eq!(reported(preempted, state, ended), expected, "{preempted} {state:#x} {ended:#x}");
        }
    }
}
