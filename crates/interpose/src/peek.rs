//! Reading memory of the program that may not be there.

/// Copies memory of this process, all of it or nothing that counts.
///
/// # Errors
/// `EFAULT` if not all of it can be read, or what the system says if it does not answer that.
///
/// # Safety
/// `to` has room for `length` bytes.
pub(crate) unsafe fn read(from: *const u8, to: *mut u8, length: usize) -> Result<(), i32> {
    let there = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: length };
    // SAFETY: room by contract.
    unsafe { gather(&[there], to, length) }
}

/// Returns two words of memory that may not be there, by its address: how structs that are linked begin.
pub fn words(address: usize) -> Option<[u64; 2]> {
    let _errno = crate::ErrnoGuard::new();
    let mut words = [0u64; 2];
    // SAFETY: room for so many bytes.
    unsafe { read(address as *const u8, words.as_mut_ptr().cast(), 16) }.ok()?;
    Some(words)
}

/// Copies several pieces of memory, one behind the other, which are `length` bytes together.
///
/// # Errors
/// As [`read`].
///
/// # Safety
/// As [`read`].
pub(crate) unsafe fn gather(there: &[libc::iovec], to: *mut u8, length: usize) -> Result<(), i32> {
    let here = libc::iovec { iov_base: to.cast(), iov_len: length };
    // All words: of a shorter argument the upper half would be whatever is on the stack.
    let (one, flags) = (1usize, 0usize);
    // SAFETY: lists as long as said; the kernel reads this process's memory where it can, and writes `to`, which has
    // room by contract.
    let read = unsafe {
        let own = libc::syscall(libc::SYS_getpid);
        let (list, count) = (there.as_ptr(), there.len());
        libc::syscall(libc::SYS_process_vm_readv, own, &raw const here, one, list, count, flags)
    };
    match usize::try_from(read) {
        Ok(read) if read == length => Ok(()),
        Ok(_) => Err(libc::EFAULT),
        // SAFETY: the C library's own place for this thread's errno, which the call has just set.
        Err(_) => Err(unsafe { *libc::__errno_location() }),
    }
}
