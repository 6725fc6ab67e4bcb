//! Work that a cancelled thread completes.
//!
//! Many calls of the C library that we make on slow paths are points where `pthread_cancel` takes
//! effect. The program's own call would not be one, and what we have begun must not stay half done.

unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
}

const PTHREAD_CANCEL_DISABLE: libc::c_int = 1;

/// As long as it lives, a request to cancel this thread waits.
pub(crate) struct NoCancel {
    before: libc::c_int,
}

impl NoCancel {
    pub(crate) fn new() -> Self {
        let mut before = PTHREAD_CANCEL_DISABLE;
        // SAFETY: changes a word of this thread's descriptor, and has a place for the old value.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        NoCancel { before }
    }
}

impl Drop for NoCancel {
    fn drop(&mut self) {
        // SAFETY: a value that the C library gave, and null, which it takes for nobody's interest.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}
