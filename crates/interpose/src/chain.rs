//! Structs that are linked by their first members: each begins with a 32-bit tag, and at byte 8 has the address
//! of the next one.
//!
//! A program may leave that address as it found it where it knows that nobody looks behind it, so what is there is
//! read by the kernel, which says if it cannot be: one call for each struct, and none where nothing follows.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::errno::ErrnoGuard;
use crate::peek;
use crate::process::note;
use crate::put::{Caps, Put};

/// Bytes of a struct that the model does not have: its tag and the next one's address.
const HEAD: usize = 16;
/// So many structs are followed: a chain may be a circle.
const MOST: usize = 8;
/// Bytes that are recorded of all of them.
const ROOM: usize = 1000;

/// A 16-bit count of bytes, and the memory of one struct after the other.
#[derive(Debug, Clone, Copy)]
pub struct Chain {
    first: *const u8,
    /// Bytes of a struct by its tag, in the order of tags.
    sizes: &'static [(u32, u16)],
    length: usize,
}

/// The structs from `first` on, which may be NULL.
#[inline(always)]
pub fn chain(first: *const u8, sizes: &'static [(u32, u16)], caps: Caps) -> Chain {
    let length = if first.is_null() || caps.bytes == 0 { 0 } else { length(first, sizes) };
    Chain { first, sizes, length }
}

#[cold]
#[inline(never)]
fn length(first: *const u8, sizes: &[(u32, u16)]) -> usize {
    let mut length = 0;
    each(first, sizes, |_, size| {
        let fits = length + size <= ROOM;
        length += if fits { size } else { 0 };
        fits
    });
    length
}

/// Shows the structs and their sizes, until `go_on` says no or one cannot be read.
fn each(first: *const u8, sizes: &[(u32, u16)], mut go_on: impl FnMut(*const u8, usize) -> bool) {
    let _errno = ErrnoGuard::new();
    let mut at = first;
    for _ in 0..MOST {
        if at.is_null() {
            break;
        }
        let mut head = [0u64; HEAD / 8];
        // SAFETY: `head` has that many bytes.
        if let Err(error) = unsafe { peek::read(at, head.as_mut_ptr().cast(), HEAD) } {
            say(error);
            break;
        }
        let [tag, next] = head;
        let known = sizes.binary_search_by_key(&(tag as u32), |(known, _)| *known).ok();
        let size = known.and_then(|i| sizes.get(i)).map_or(HEAD, |(_, size)| usize::from(*size));
        if !go_on(at, size) {
            break;
        }
        at = std::ptr::with_exposed_provenance(next as usize);
    }
}

/// Says once that nothing is followed; an address that leads nowhere is the program's own affair.
fn say(error: i32) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if error != libc::EFAULT && !SAID.swap(true, Ordering::Relaxed) {
        note(b"the system refuses process_vm_readv: what follows structs by their first members is not recorded");
    }
}

impl Put for Chain {
    #[inline(always)]
    fn size(&self) -> usize {
        2 + self.length
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for the count and `length` bytes.
        unsafe {
            at.cast::<u16>().write_unaligned((self.length as u16).to_le());
            if self.length > 0 {
                self.copy(at.add(2));
            }
            at.add(2 + self.length)
        }
    }
}

impl Chain {
    /// Copies the structs. The program may have changed them since they were measured: what is not there any
    /// more is 0.
    ///
    /// # Safety
    /// `to` has room for `length` bytes.
    #[cold]
    #[inline(never)]
    unsafe fn copy(&self, to: *mut u8) {
        let mut done = 0;
        // SAFETY: contract: all within `length` bytes.
        unsafe { to.write_bytes(0, self.length) };
        each(self.first, self.sizes, |at, size| {
            let size = size.min(self.length - done);
            // SAFETY: `size` is no more than is left of the `length` bytes at `to`. One that cannot be read stays 0.
            _ = unsafe { peek::read(at, to.add(done), size) };
            done += size;
            done < self.length
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Link {
        tag: u32,
        next: *const u8,
        more: u64,
    }

    const SIZES: &[(u32, u16)] = &[(2, 24), (7, 16)];
    const CAPS: Caps = Caps { seq: 1, bytes: 1, text: 1 };

    fn recorded(first: *const u8) -> Vec<u8> {
        let chain = chain(first, SIZES, CAPS);
        let mut out = vec![0xee; chain.size()];
        // SAFETY: room for what `size` says.
        unsafe { chain.put(out.as_mut_ptr()) };
        assert_eq!(usize::from(u16::from_le_bytes([out[0], out[1]])), out.len() - 2);
        out.split_off(2)
    }

    fn link(tag: u32, next: *const u8) -> Link {
        Link { tag, next, more: 5 }
    }

    #[test]
    fn structs_are_followed_as_far_as_they_can_be_read() {
        assert!(recorded(std::ptr::null()).is_empty());
        // Nothing is at this address, and an uninitialised member may be any number.
        let nowhere = std::ptr::without_provenance(0xdead_beef_0000);
        assert!(recorded(nowhere).is_empty());
        let last = link(2, nowhere);
        let unknown = link(99, (&raw const last).cast());
        let first = link(7, (&raw const unknown).cast());
        let bytes = recorded((&raw const first).cast());
        assert_eq!(bytes.len(), 16 + 16 + 24, "of an unknown one only its first members");
        assert_eq!((bytes[0], bytes[16], bytes[32], bytes[48]), (7, 99, 2, 5));
    }

    #[test]
    fn a_circle_ends() {
        let mut round = link(2, std::ptr::null());
        round.next = (&raw const round).cast();
        assert_eq!(recorded((&raw const round).cast()).len(), MOST * 24);
    }

    #[test]
    fn errno_stays() {
        // SAFETY: this thread's own errno.
        unsafe { *libc::__errno_location() = 17 };
        recorded(std::ptr::without_provenance(0xdead_beef_0000));
        // SAFETY: this thread's own errno.
        assert_eq!(unsafe { *libc::__errno_location() }, 17);
    }
}
