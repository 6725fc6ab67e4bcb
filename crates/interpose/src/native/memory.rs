//! Reading the program's memory, which may be anything by the time that it is read.
//!
//! What a stack holds leads the way, and a stack may be corrupt. So the stack is read directly only where the kernel has
//! found it readable, from a frame that is in use up to the thread's end of it: that stays as long as the thread runs
//! there. All else is read by the kernel, which reports what can't be read.

use hetrace_ring::writer::Writer;

use crate::peek;

/// Bytes of a page of memory, at least.
const PAGE: usize = 4096;
/// So many pages are asked about at a time.
const PAGES: usize = 64;
/// A stack that is used further than this is read with care.
const LONGEST: usize = 1 << 28;

/// Reads bytes that may not be there.
pub(super) fn read<const N: usize>(at: usize) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    // SAFETY: there is room for as many bytes as are asked for.
    unsafe { peek::read(at as *const u8, bytes.as_mut_ptr(), N) }.ok()?;
    Some(bytes)
}

/// Reads a word that may not be there.
pub(super) fn word(at: usize) -> Option<usize> {
    read(at).map(usize::from_ne_bytes)
}

/// The stacks that a walk goes through.
#[derive(Debug)]
pub(super) struct Stack {
    /// What is read directly.
    direct: (usize, usize),
    /// A piece that the kernel has read, and where it is from.
    piece: [u8; 256],
    from: usize,
    length: usize,
}

impl Stack {
    /// The stack of this thread, used down to `sp`, which ends at `end` if it is the one that the thread began with.
    pub fn new(writer: &Writer, sp: usize, end: usize) -> Self {
        let direct = if is_readable(writer, sp, end) { (sp, end) } else { (0, 0) };
        Self { direct, piece: [0; 256], from: 0, length: 0 }
    }

    /// Reads a word; none if it can't be read, or is no word of a stack.
    #[inline(always)]
    pub fn word(&mut self, at: usize) -> Option<usize> {
        if !at.is_multiple_of(8) {
            return None;
        }
        let (first, end) = self.direct;
        if at >= first && at < end && end - at >= 8 {
            // SAFETY: a word of this thread's stack, between its stack pointer and its end: readable, and in use by
            // frames that do not run now, so nobody writes it. Any bytes are a number.
            return Some(unsafe { (at as *const usize).read() });
        }
        self.careful(at)
    }

    #[cold]
    #[inline(never)]
    fn careful(&mut self, at: usize) -> Option<usize> {
        if let Some(word) = self.held(at) {
            return Some(word);
        }
        // Not over the end of a page, behind which there may be nothing.
        let length = self.piece.len().min(PAGE - at % PAGE);
        self.length = 0;
        // SAFETY: room for at most as many bytes as the piece has.
        unsafe { peek::read(at as *const u8, self.piece.as_mut_ptr(), length) }.ok()?;
        (self.from, self.length) = (at, length);
        self.held(at)
    }

    /// A word of the piece.
    fn held(&self, at: usize) -> Option<usize> {
        let place = at.checked_sub(self.from)?;
        let end = place.checked_add(8).filter(|end| *end <= self.length)?;
        self.piece.get(place..end)?.try_into().ok().map(usize::from_ne_bytes)
    }
}

/// Whether all is readable from `sp` to `end`, which the writer remembers.
#[inline(always)]
fn is_readable(writer: &Writer, sp: usize, end: usize) -> bool {
    let [first, last] = [0, 1].map(|i: usize| writer.readable[i].get() as usize);
    (last == end && sp >= first && sp < end) || look(writer, sp, end)
}

#[cold]
#[inline(never)]
fn look(writer: &Writer, sp: usize, end: usize) -> bool {
    if sp >= end || end - sp > LONGEST {
        return false;
    }
    let first = sp & !(PAGE - 1);
    let mut from = first;
    while from < end {
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut there = [none; PAGES];
        let mut count = 0;
        for place in &mut there {
            if from >= end {
                break;
            }
            *place = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: 1 };
            (from, count) = (from + PAGE, count + 1);
        }
        let mut bytes = [0_u8; PAGES];
        // SAFETY: a byte for each of the places.
        let read = there.get(..count).map(|there| unsafe { peek::gather(there, bytes.as_mut_ptr(), count) });
        if read != Some(Ok(())) {
            return false;
        }
    }
    // A handler that comes in between has looked at the same stack.
    writer.readable[1].set(end as u64);
    writer.readable[0].set(first as u64);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_none_and_pieces_end_at_pages() {
        // SAFETY: two pages of our own, of which the second may not be touched; given back below.
        let at = unsafe {
            let (write, map) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let at = libc::mmap(std::ptr::null_mut(), 2 * PAGE, write, map, -1, 0) as usize;
            assert_eq!(libc::mprotect((at + PAGE) as *mut libc::c_void, PAGE, libc::PROT_NONE), 0);
            ((at + PAGE - 8) as *mut usize).write(7);
            at
        };
        let writer = Writer::new();
        let mut stack = Stack::new(&writer, at, at + 2 * PAGE);
        assert_eq!(stack.direct, (0, 0), "half of it is not there");
        assert_eq!(stack.word(at + PAGE - 8), Some(7));
        assert_eq!(stack.word(at + PAGE), None);
        assert_eq!(stack.word(at + PAGE - 4), None, "no place of a word");
        assert_eq!(stack.word(usize::MAX - 7), None);
        assert_eq!([word(at + PAGE - 8), word(at + PAGE - 4), word(0)], [Some(7), None, None]);
        let stack = Stack::new(&writer, at, at + PAGE);
        assert_eq!(stack.direct, (at, at + PAGE));
        assert!(is_readable(&writer, at + 8, at + PAGE) && !is_readable(&writer, at + 8, at + 2 * PAGE));
        // SAFETY: mapped above.
        unsafe { libc::munmap(at as *mut libc::c_void, 2 * PAGE) };
    }
}
