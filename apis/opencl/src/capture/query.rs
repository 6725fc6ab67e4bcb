//! Questions to the real API, and memory for long answers.

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Longest answer that is believed.
const MOST: usize = 1 << 30;
/// Most devices of a context or program that are asked about.
pub const DEVICES: usize = 64;

const CL_DEVICE_VERSION: u32 = 0x102F;
const CL_CONTEXT_DEVICES: u32 = 0x1081;

/// Memory of our own, given back when it is dropped.
#[derive(Debug)]
pub struct Memory {
    at: *mut u8,
    length: usize,
}

impl Memory {
    /// Zeroed memory; `None` if there is none.
    pub fn new(length: usize) -> Option<Memory> {
        // SAFETY: a fresh range at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                null_mut(),
                length.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (at != libc::MAP_FAILED).then_some(Memory { at: at.cast(), length })
    }

    /// Memory that was leaked before.
    ///
    /// # Safety
    /// `at` and `length` come from [`Memory::leak`], and nobody else uses it.
    pub unsafe fn again(at: *mut u8, length: usize) -> Memory {
        Memory { at, length }
    }

    pub fn leak(self) -> *mut u8 {
        std::mem::ManuallyDrop::new(self).at
    }

    pub fn at(&self) -> *mut u8 {
        self.at
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: our own range, as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.at, self.length) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; no reference to it outlives `self`.
        unsafe { libc::munmap(self.at.cast(), self.length.max(1)) };
    }
}

/// The whole answer of a query: `ask(size, place, size_ret)`. `None` if the
/// query fails or there is no memory.
pub fn answer(ask: impl Fn(u64, P, *mut u64) -> i32) -> Option<Memory> {
    let mut size = 0;
    if ask(0, null_mut(), &mut size) != 0 || size as usize > MOST {
        return None;
    }
    let memory = Memory::new(size as usize)?;
    if size > 0 && ask(size, memory.at().cast(), null_mut()) != 0 {
        return None;
    }
    Some(memory)
}

/// The answer of a query that is a number or handle.
pub fn word<T: Copy + Default>(ask: impl FnOnce(u64, P) -> i32) -> Option<T> {
    let mut value = T::default();
    (ask(size_of::<T>() as u64, (&raw mut value).cast()) == 0).then_some(value)
}

/// Text up to its NUL.
pub fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Handles that a query returned.
pub fn handles(memory: &Memory) -> impl Iterator<Item = P> {
    let words = memory.bytes().chunks_exact(8).take(DEVICES);
    words.map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default()) as P)
}

/// The devices of a context.
pub fn context_devices(context: P) -> Option<Memory> {
    answer(|size, at, ret| {
        // SAFETY: room as said; the context is the program's.
        unsafe { real::clGetContextInfo(context, CL_CONTEXT_DEVICES, size, at, ret) }
    })
}

/// The version of OpenCL that a device has; (0, 0) if it is not known.
pub fn version(device: P) -> (u8, u8) {
    let mut version = [0u8; 128];
    // SAFETY: room for one byte less than there is, so a NUL remains.
    let error = unsafe {
        real::clGetDeviceInfo(device, CL_DEVICE_VERSION, 127, version.as_mut_ptr().cast(), null_mut())
    };
    let digit = |i: usize| version.get(i).map_or(0, |b| b.wrapping_sub(b'0'));
    // "OpenCL <major>.<minor> …"
    if error == 0 && version.starts_with(b"OpenCL ") { (digit(7), digit(9)) } else { (0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query of a property with this value, that says `said` of its size and returns `error` when asked
    /// for the value.
    fn property(value: &[u8], said: u64, error: i32) -> impl Fn(u64, P, *mut u64) -> i32 {
        move |size, at, size_ret| {
            if !size_ret.is_null() {
                // SAFETY: the place that `answer` gives.
                unsafe { *size_ret = said };
            }
            if at.is_null() {
                return 0;
            }
            assert_eq!(size, said);
            // SAFETY: `answer` gives as much room as was said.
            unsafe { at.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), value.len()) };
            error
        }
    }

    #[test]
    fn answers_are_whole_or_none() {
        let whole = answer(property(b"a name\0", 7, 0)).expect("an answer");
        assert_eq!((whole.bytes(), text(whole.bytes())), (&b"a name\0"[..], &b"a name"[..]));
        assert_eq!(answer(property(b"", 0, 0)).expect("an answer").bytes(), b"");
        assert!(answer(property(b"value", 5, -30)).is_none(), "the second question fails");
        assert!(answer(|_, _, _| -30).is_none(), "the first question fails");
        assert!(answer(property(b"", (MOST + 1) as u64, 0)).is_none(), "nothing is as long as that");
    }

    #[test]
    fn memory_is_zeroed_and_can_be_leaked_and_taken_back() {
        let memory = Memory::new(5000).expect("memory");
        assert!(memory.bytes().iter().all(|b| *b == 0) && memory.bytes().len() == 5000);
        let at = memory.leak();
        // SAFETY: leaked just now.
        let memory = unsafe {
            *at = 7;
            Memory::again(at, 5000)
        };
        assert_eq!(memory.bytes().first(), Some(&7));
        assert!(Memory::new(0).expect("memory").bytes().is_empty());
    }

    #[test]
    fn handles_are_words_and_at_most_so_many() {
        let words: Vec<u8> = (1..=80u64).flat_map(u64::to_ne_bytes).chain([1, 2, 3]).collect();
        let memory = answer(property(&words, words.len() as u64, 0)).expect("an answer");
        let seen: Vec<u64> = handles(&memory).map(|p| p as u64).collect();
        assert_eq!(seen, (1..=DEVICES as u64).collect::<Vec<_>>());
    }

    #[test]
    fn words_are_of_their_own_size() {
        let ask = |size: u64, at: P| {
            assert_eq!(size, 4);
            // SAFETY: a place of four bytes.
            unsafe { at.cast::<u32>().write(9) };
            0
        };
        assert_eq!(word::<u32>(ask), Some(9));
        assert_eq!(word::<u64>(|size, _| if size == 8 { -30 } else { 0 }), None);
    }
}
