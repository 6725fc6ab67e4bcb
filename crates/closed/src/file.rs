//! A file that is read by calls of the system alone: the C library's are points where threads are cancelled, and others
//! may have theirs in their place.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

/// An open regular file.
pub(crate) struct File(c_int);

impl File {
    /// Opens a file, and nothing that may block or act when opened.
    pub(crate) fn open(path: &CStr) -> Option<Self> {
        // Of the same form as the system's on both processors.
        let mut found = MaybeUninit::<libc::stat>::uninit();
        let (at, none) = (libc::AT_FDCWD, 0);
        // SAFETY: a NUL-terminated path and room for the answer.
        let failed =
            unsafe { libc::syscall(libc::SYS_newfstatat, at, path.as_ptr(), found.as_mut_ptr(), none) };
        if failed != 0 {
            return None;
        }
        // SAFETY: filled by the call.
        if unsafe { found.assume_init() }.st_mode & libc::S_IFMT != libc::S_IFREG {
            return None;
        }
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: a NUL-terminated path.
        let number = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
        (number >= 0).then_some(File(number as c_int))
    }

    /// Reads bytes. Returns how many there were.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Option<usize> {
        let at = i64::try_from(at).ok()?;
        // SAFETY: the room is as large as is said.
        let read = unsafe { libc::syscall(libc::SYS_pread64, self.0, into.as_mut_ptr(), into.len(), at) };
        usize::try_from(read).ok()
    }

    /// Fills all of it, or `None`.
    pub(crate) fn fill(&self, at: u64, into: &mut [u8]) -> Option<()> {
        (self.read(at, into)? == into.len()).then_some(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: opened by us, closed once.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}
