//! Reading the interpreter's structures.
//!
//! They belong to this very thread, or live as long as one of its frames runs; so they can be read as they are. But
//! where they are was learned from CPython's sources, and an interpreter may have been changed. So the first stacks of
//! a process are read by the kernel, which reports what can't be read; later ones directly.

use crate::peek;

/// The least address that anything has.
const LEAST: usize = 1 << 12;
/// Above all addresses of a program on x86-64 with four levels of tables.
const MOST: usize = 1 << 47;
/// Bytes of a page of memory, at least.
const PAGE: usize = 4096;

/// How memory is read: by the kernel, or directly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory<const CAREFUL: bool>;

/// Returns whether something of a length may be at an address.
#[inline(always)]
fn is_plausible(at: usize, length: usize) -> bool {
    at >= LEAST && length < MOST && at < MOST - length
}

impl<const CAREFUL: bool> Memory<CAREFUL> {
    /// Reads a number; none if it can't be there.
    ///
    /// Directly, `at` is not looked at: it is a member of what [`Self::pointer`] said may be an object.
    #[inline(always)]
    pub fn read<T: Number>(self, at: usize) -> Option<T> {
        if CAREFUL {
            return self.read_carefully(at);
        }
        // SAFETY: a member of one of the interpreter's structures, by the layout of its version, which the careful
        // reads of the process have found to hold. What contains it is in use by a frame of this thread, so nobody
        // frees it meanwhile.
        Some(unsafe { (at as *const T).read_unaligned() })
    }

    #[cold]
    #[inline(never)]
    fn read_carefully<T: Number>(self, at: usize) -> Option<T> {
        if !is_plausible(at, size_of::<T>()) {
            return None;
        }
        let mut value = T::default();
        // SAFETY: the value is as long as said, and any bytes are a number.
        let read = unsafe { peek::read(at as *const u8, (&raw mut value).cast(), size_of::<T>()) };
        match read {
            Ok(()) => Some(value),
            Err(libc::EFAULT) => None,
            // The kernel does not answer that here: the layout is a released one, and is believed.
            // SAFETY: as in `read`, but for the proof.
            Err(_) => Some(unsafe { (at as *const T).read_unaligned() }),
        }
    }

    /// Reads the address of an object, or NULL.
    #[inline(always)]
    pub fn pointer(self, at: usize) -> Option<usize> {
        self.read::<usize>(at).filter(|to| *to == 0 || is_object(*to))
    }

    /// Reads the address of an object.
    #[inline(always)]
    pub fn object(self, at: usize) -> Option<usize> {
        self.read::<usize>(at).filter(|to| is_object(*to))
    }

    /// Bytes of an object that stay as they are while a frame of this thread runs; none if they can't be there.
    #[inline(always)]
    pub fn bytes<'m>(self, at: usize, length: usize) -> Option<&'m [u8]> {
        if !is_plausible(at, length) {
            return None;
        }
        if CAREFUL && length > 0 {
            let ends = (at..at + length).step_by(PAGE).chain([at + length - 1]);
            for end in ends {
                self.read::<u8>(end)?;
            }
        }
        // SAFETY: as in `read`: the content of a string or of a table of a code object, which never changes.
        Some(unsafe { std::slice::from_raw_parts(at as *const u8, length) })
    }
}

/// Returns whether an object, of less than a page before its content, may be at an address.
#[inline(always)]
pub(super) fn is_object(at: usize) -> bool {
    at.is_multiple_of(8) && is_plausible(at, PAGE)
}

/// Numbers that any bytes are.
pub(super) trait Number: Copy + Default {}

impl Number for u8 {}
impl Number for i32 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for usize {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_none() {
        let careful = Memory::<true>;
        let there = 7_u64;
        let at = (&raw const there) as usize;
        assert_eq!(careful.read::<u64>(at), Some(7));
        assert_eq!(Memory::<false>.read::<u64>(at), Some(7));
        assert_eq!(careful.read::<u64>(0), None);
        assert_eq!(careful.read::<u64>(usize::MAX - 3), None);
        // SAFETY: a page that nobody may touch, and that is given back.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_eq!(careful.read::<u64>(page as usize), None);
        assert!(careful.bytes(page as usize, 3).is_none());
        // SAFETY: mapped above.
        unsafe { libc::munmap(page, PAGE) };
    }
}
