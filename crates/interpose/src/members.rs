//! Structs as wrappers see them: passed by value, or looked into behind a
//! pointer.

use crate::put::{Caps, Put};

/// A struct that is passed by value: as many numbers as fill it, so that it
/// travels in the registers or on the stack where the program put it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Val<T>(pub T);

impl<T: Copy> Put for Val<T> {
    #[inline(always)]
    fn size(&self) -> usize {
        size_of::<T>()
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which are the value's. Records are packed, so
        // the store is unaligned.
        unsafe {
            at.cast::<T>().write_unaligned(self.0);
            at.add(size_of::<T>())
        }
    }
}

/// A 16-bit count and that many bytes from the beginning of a struct that is passed by value.
#[derive(Debug, Clone, Copy)]
pub struct Begin<T> {
    value: T,
    length: usize,
}

/// At most [`Caps::bytes`] bytes of a struct that is too large for a record.
#[inline(always)]
pub fn begin<T: Copy>(value: Val<T>, length: usize, caps: Caps) -> Begin<T> {
    Begin { value: value.0, length: length.min(size_of::<T>()).min(caps.bytes) }
}

impl<T: Copy> Put for Begin<T> {
    #[inline(always)]
    fn size(&self) -> usize {
        2 + self.length
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes. The struct has `length` bytes at least (`begin`), all
        // written by the caller: it has no padding, being made of numbers.
        unsafe {
            at.cast::<u16>().write_unaligned((self.length as u16).to_le());
            at.add(2).copy_from_nonoverlapping((&raw const self.value).cast::<u8>(), self.length);
            at.add(2 + self.length)
        }
    }
}

/// An 8-bit count, 0 or 1, and a struct that begins with its own size: what
/// the program's version of it lacks is recorded as 0.
#[derive(Debug, Clone, Copy)]
pub struct Sized<T>(*const T);

/// The struct behind `at`, or none if that is NULL or must not be read.
#[inline(always)]
pub fn sized<T>(at: *const T, readable: bool) -> Sized<T> {
    Sized(if readable { at } else { std::ptr::null() })
}

impl<T: Copy> Put for Sized<T> {
    #[inline(always)]
    fn size(&self) -> usize {
        if self.0.is_null() { 1 } else { 1 + size_of::<T>() }
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: room for the count and the struct, of which as much is
        // readable as it says in its first word.
        unsafe {
            *at = u8::from(!self.0.is_null());
            if self.0.is_null() {
                return at.add(1);
            }
            let there = self.0.cast::<usize>().read_unaligned().clamp(8, size_of::<T>());
            let to = at.add(1);
            to.copy_from_nonoverlapping(self.0.cast(), there);
            to.add(there).write_bytes(0, size_of::<T>() - there);
            to.add(size_of::<T>())
        }
    }
}

/// A number in the struct behind `at`; 0 if that is NULL.
///
/// # Safety
/// `at` is NULL or a struct with such a member at `offset`.
#[inline(always)]
pub unsafe fn at_num<T: Number>(at: *const u8, offset: usize) -> usize {
    // SAFETY: contract: not NULL, so there is such a member.
    if at.is_null() { 0 } else { unsafe { at.add(offset).cast::<T>().read_unaligned() }.number() }
}

/// A pointer in the struct behind `at`; NULL if that is NULL or not filled in.
///
/// # Safety
/// `at` is NULL or a struct with such a member at `offset`.
#[inline(always)]
pub unsafe fn at_ptr<T>(at: *const u8, offset: usize, filled: bool) -> *const T {
    if at.is_null() || !filled {
        return std::ptr::null();
    }
    // SAFETY: contract: not NULL, so there is such a member.
    unsafe { at.add(offset).cast::<*const T>().read_unaligned() }
}

/// A member that can be a length.
pub trait Number: Copy {
    /// Its value; a negative one is no length, and counts as 0.
    fn number(self) -> usize;
}

macro_rules! number {
    ($($ty:ty),*) => { $(
        impl Number for $ty {
            #[inline(always)]
            fn number(self) -> usize {
                usize::try_from(self).unwrap_or(0)
            }
        }
    )* };
}

number!(u8, u16, u32, u64, i8, i16, i32, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Config {
        count: i32,
        values: *const u16,
    }

    #[test]
    fn members_are_read_where_they_lie() {
        let values = [1u16, 2];
        let config = Config { count: 2, values: values.as_ptr() };
        let at = (&raw const config).cast::<u8>();
        // SAFETY: the struct above.
        unsafe {
            assert_eq!(at_num::<i32>(at, 0), 2);
            assert_eq!(at_ptr::<u16>(at, 8, true), config.values);
            assert!(at_ptr::<u16>(at, 8, false).is_null());
            assert_eq!(at_num::<i32>(std::ptr::null(), 0), 0);
            let negative = Config { count: -1, values: std::ptr::null() };
            assert_eq!(at_num::<i32>((&raw const negative).cast(), 0), 0);
        }
    }

    #[test]
    fn no_more_is_read_than_a_struct_says() {
        let old = [9u8, 0, 0, 0, 0, 0, 0, 0, 7, 99];
        let mut out = [0xeeu8; 18];
        // SAFETY: room for a count and 16 bytes; the struct says it has 9.
        unsafe { sized(old.as_ptr().cast::<[u8; 16]>(), true).put(out.as_mut_ptr()) };
        assert_eq!(out, [1, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0xee]);
    }

    #[test]
    fn of_a_large_value_its_beginning_is_recorded() {
        let caps = Caps { seq: 1, bytes: 6, text: 1 };
        let put = |length| {
            let begin = begin(Val([0x0102_0304u32, 5]), length, caps);
            let mut out = [0xeeu8; 12];
            // SAFETY: room for a count and 8 bytes.
            unsafe { begin.put(out.as_mut_ptr()) };
            (begin.size(), out)
        };
        assert_eq!(put(3), (5, [3, 0, 4, 3, 2, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee]));
        assert_eq!(put(100).0, 8, "not more than is asked for in all");
    }

    #[test]
    fn a_value_is_its_bytes() {
        let value = Val([1u32, 2, 3]);
        let mut out = [0u8; 13];
        // SAFETY: room for it.
        unsafe { value.put(out.as_mut_ptr()) };
        assert_eq!(out, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0]);
    }
}
