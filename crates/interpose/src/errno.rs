//! `errno` belongs to the program.

/// Puts `errno` back when it goes out of scope.
#[derive(Debug)]
pub struct ErrnoGuard(i32);

impl ErrnoGuard {
    /// Remembers `errno`.
    pub fn new() -> Self {
        // SAFETY: the C library's own place for this thread's errno.
        ErrnoGuard(unsafe { *libc::__errno_location() })
    }
}

impl Default for ErrnoGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ErrnoGuard {
    fn drop(&mut self) {
        // SAFETY: the C library's own place for this thread's errno.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
