//! How memory is got from the system by commands that read a trace.

/// Bytes that are got at once.
const AT_ONCE: libc::c_int = 8 << 20;
/// Larger pieces have memory of their own, which is given back when they are freed.
const OWN: libc::c_int = 32 << 20;

/// Gets memory in large pieces from now on, and keeps it: several threads make what a trace needs, and where each of them
/// asks the system for a page after the other (378 calls for a trace of 500 kB), all wait for each other there.
#[cfg(target_env = "gnu")]
pub fn in_large_pieces() {
    for (parameter, bytes) in [
        (libc::M_TOP_PAD, AT_ONCE),
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        (libc::M_MMAP_THRESHOLD, OWN),
    ] {
        // SAFETY: a call on two numbers, which changes how much later calls of the allocator ask for. One that it does not
        // take changes nothing.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Other C libraries have nothing of the kind.
#[cfg(not(target_env = "gnu"))]
pub fn in_large_pieces() {}
