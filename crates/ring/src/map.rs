//! Files as memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Why a file could not be mapped.
#[derive(Debug)]
pub enum MapError {
    /// The system refused.
    Os(io::Error),
    /// The file is smaller than it must be.
    Size(u64),
}

/// Memory that is a file's content, until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range that any thread may use; whoever reads or writes
// through it goes through the atomics and rules of the types laid over it.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives an address and a length only, which no thread changes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// First byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes mapped.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Leaves the memory mapped for ever: a traced program's threads may use
    /// it until the very end.
    pub fn leak(self) -> *mut u8 {
        let base = self.base.as_ptr();
        std::mem::forget(self);
        base
    }
}

#[cfg(not(miri))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by this module, and nobody else unmaps it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(not(miri))]
fn os() -> MapError {
    MapError::Os(io::Error::last_os_error())
}

/// Maps the first `length` bytes of a file, shared.
///
/// # Errors
/// As [`map_part`].
pub fn map_file(file: &File, length: usize, writable: bool) -> Result<Mapping, MapError> {
    map_part(file, 0, length, writable)
}

/// Maps `length` bytes of a file from `offset`, a multiple of the page size, on.
///
/// # Errors
/// [`MapError::Size`] if the file ends before, [`MapError::Os`] if the system refuses.
pub fn map_part(file: &File, offset: u64, length: usize, writable: bool) -> Result<Mapping, MapError> {
    let size = file.metadata().map_err(MapError::Os)?.len();
    let end = offset.checked_add(length as u64).ok_or(MapError::Size(size))?;
    let offset = libc::off_t::try_from(offset).map_err(|_| MapError::Size(size))?;
    if size < end || length == 0 {
        return Err(MapError::Size(size));
    }
    map(file, offset, length, writable)
}

#[cfg(not(miri))]
fn map(file: &File, offset: libc::off_t, length: usize, writable: bool) -> Result<Mapping, MapError> {
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: a fresh range at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    if base == libc::MAP_FAILED {
        return Err(os());
    }
    let base = NonNull::new(base.cast()).ok_or(MapError::Size(0))?;
    Ok(Mapping { base, length })
}

/// Under Miri, which maps no files: memory for each file that was ever mapped, by its descriptor. Tests must not close
/// such a file.
#[cfg(miri)]
fn map(file: &File, offset: libc::off_t, length: usize, _writable: bool) -> Result<Mapping, MapError> {
    use std::alloc::{Layout, alloc_zeroed};
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};

    static FILES: Mutex<Option<HashMap<i32, (usize, Mapping)>>> = Mutex::new(None);
    let size = file.metadata().map_err(MapError::Os)?.len() as usize;
    let layout = Layout::from_size_align(size, crate::abi::PAGE).map_err(|_| MapError::Size(size as u64))?;
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let (there, whole) = files.get_or_insert_default().entry(file.as_raw_fd()).or_insert_with(|| {
        // SAFETY: more than no bytes, as `map_part` has checked.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) });
        (size, Mapping { base: base.expect("memory"), length: size })
    });
    assert_eq!(*there, size, "a file that was closed, and another one under its descriptor");
    // SAFETY: `map_part` has checked that the part lies within the file.
    Ok(Mapping { base: unsafe { whole.base.add(offset as usize) }, length })
}
