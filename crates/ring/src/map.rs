//! Files as memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::abi::PAGE;

/// Why a file could not be mapped.
#[derive(Debug)]
pub enum MapError {
    /// The system refused.
    Os(io::Error),
    /// The file is smaller than it must be, or its size is no multiple of a page.
    Size(u64),
}

/// Memory that is a file's content, until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range; whoever reads or writes through it
// goes through the atomics and rules of the types laid over it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
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

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by this module, and nobody else unmaps it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

fn os() -> MapError {
    MapError::Os(io::Error::last_os_error())
}

/// Maps the first `length` bytes of a file, shared.
///
/// # Errors
/// [`MapError::Size`] if the file is shorter, [`MapError::Os`] if the system refuses.
pub fn map_file(file: &File, length: usize, writable: bool) -> Result<Mapping, MapError> {
    let size = file.metadata().map_err(MapError::Os)?.len();
    if size < length as u64 || length == 0 {
        return Err(MapError::Size(size));
    }
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: a fresh range at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if base == libc::MAP_FAILED {
        return Err(os());
    }
    let base = NonNull::new(base.cast()).ok_or(MapError::Size(0))?;
    Ok(Mapping { base, length })
}

/// Maps a ring file so that its data appears twice in a row: a record that
/// crosses the end of the ring is still one piece.
///
/// ```text
///  base        base + PAGE          + data          + data
///   ┌───────────┬───────────────────┬───────────────────┐
///   │ header    │ data              │ the same data     │
///   └───────────┴───────────────────┴───────────────────┘
/// ```
///
/// # Errors
/// As [`map_file`].
pub fn map_mirrored(file: &File, data: usize) -> Result<Mapping, MapError> {
    let size = file.metadata().map_err(MapError::Os)?.len();
    if size != (PAGE + data) as u64 || data == 0 || !data.is_multiple_of(PAGE) {
        return Err(MapError::Size(size));
    }
    let length = PAGE + 2 * data;
    // SAFETY: reserves a fresh range of addresses, without memory.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(os());
    }
    let mapping = Mapping { base: NonNull::new(base.cast()).ok_or(MapError::Size(0))?, length };
    for (at, bytes, offset) in [(0, PAGE + data, 0), (PAGE + data, data, PAGE)] {
        // SAFETY: replaces a part of the range reserved above, nothing else.
        let placed = unsafe {
            libc::mmap(
                mapping.base().add(at).cast(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if placed == libc::MAP_FAILED {
            return Err(os());
        }
    }
    Ok(mapping)
}
