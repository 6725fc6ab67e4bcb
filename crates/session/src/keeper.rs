//! A lock in the control file that shows programs whether the launcher lives.
//!
//! A program that waits for room in a ring must not wait for a launcher that was killed, and it
//! can't ask for it: in a PID namespace of its own it does not see the launcher, and it may
//! have forbidden itself to ask. The launcher holds a robust mutex there; when a thread dies,
//! however it does, the kernel marks the mutexes that it held.

use std::sync::atomic::{AtomicU32, Ordering};

/// Takes the lock for the calling thread, for as long as that lives. If another held it, that thread is dead: who calls
/// this owns the session. Returns whether that
/// worked; if not, programs see a launcher that lives for ever.
pub(crate) fn hold(place: &[AtomicU32; 16]) -> bool {
    // As it was marked when its holder died.
    place.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= size_of::<[AtomicU32; 16]>());
    let mutex = place.as_ptr().cast_mut().cast::<libc::pthread_mutex_t>();
    // SAFETY: all bit patterns of the attributes are valid, and `init` sets them; the mutex's
    // place is large enough, zeroed, aligned to eight bytes within a page, and no living
    // thread's: programs only read its first word. It is never unlocked or destroyed, which would follow pointers that a program may
    // have changed, and its memory stays mapped until the thread ends.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes) == 0
            && libc::pthread_mutexattr_setpshared(&raw mut attributes, libc::PTHREAD_PROCESS_SHARED) == 0
            && libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST) == 0
            && libc::pthread_mutex_init(mutex, &raw const attributes) == 0
            && libc::pthread_mutex_lock(mutex) == 0
    }
}
