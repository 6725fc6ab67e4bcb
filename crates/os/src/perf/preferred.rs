//! A thread that gets a processor at once when it has something to do.

/// What `nice` gives at best; root and CAP_SYS_NICE may.
const NICEST: i32 = -20;

/// Prefers the calling thread to all ordinary ones, as far as this user may: it is the least of realtime threads, or else as
/// nice as possible, or goes on as it is. What it starts has none of that. It must sleep nearly all the time.
pub fn prefer() {
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the structure, which lives until the call returns, and 0 is the calling thread.
    let refused =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const least) };
    if refused != 0 {
        // On Linux that is this thread alone.
        let _ = rustix::process::setpriority_process(None, NICEST);
    }
}
