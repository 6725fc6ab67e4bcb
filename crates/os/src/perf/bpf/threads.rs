//! Which threads are followed: a byte for each number that a thread can have, in memory that the kernel's programs and
//! this process share.
//!
//! It is an array of one value, and not a hash by number: to store into a hash from here takes a system call, which
//! keeps programs at tracepoints of perf's away from the CPU until it returns, and their records were lost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::kernel::{self, Map};

/// The thread is followed, and has not begun a program yet.
pub const FOLLOWED: u8 = 1;
/// It is followed, and it or an ancestor has begun a program.
pub const BEGUN: u8 = 2;

/// Where the kernel says which numbers threads can have: below this one.
const LIMIT: &str = "/proc/sys/kernel/pid_max";
/// What that can be set to at most, which is also what an array's value can have in bytes.
const MOST: u32 = 1 << 22;

/// The bytes.
#[derive(Debug)]
pub struct Threads {
    array: OwnedFd,
    map: MmapRaw,
    size: u32,
}

impl Threads {
    /// Makes them, for all numbers that threads can have now.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> io::Result<Self> {
        let limit = std::fs::read_to_string(LIMIT).ok().and_then(|text| text.trim().parse().ok());
        let size = limit.unwrap_or(MOST).clamp(1, MOST);
        let array = kernel::map(Map::Array, 4, size, 1)?;
        let map = MmapOptions::new().len(size as usize).map_raw(&array)?;
        Ok(Self { array, map, size })
    }

    /// Returns the numbers that have a byte: those below it.
    pub fn size(&self) -> i32 {
        self.size.cast_signed()
    }

    /// Stores a thread's byte. Returns none if it has no place.
    pub fn set(&self, number: u32, value: u8) -> Option<()> {
        if number >= self.size {
            return None;
        }
        // SAFETY: the map has `size` bytes, and `number` is below that. The kernel's programs load and store single
        // bytes of it, as this does. The map lives as long as `self`.
        unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr().add(number as usize)) }
            .store(value, Ordering::Relaxed);
        Some(())
    }
}

impl AsFd for Threads {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.array.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_those_that_threads_can_have_is_refused() {
        let threads = match Threads::new() {
            Ok(threads) => threads,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
                eprintln!("SKIPPED: not allowed here: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let last = threads.size().cast_unsigned() - 1;
        assert_eq!((threads.set(last, BEGUN), threads.set(0, BEGUN)), (Some(()), Some(())));
        assert_eq!((threads.set(last + 1, BEGUN), threads.set(u32::MAX, BEGUN)), (None, None));
    }
}
