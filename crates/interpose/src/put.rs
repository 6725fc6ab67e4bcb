//! How values become the bytes of a record: little-endian, packed.
//!
//! `hetrace_model::layout` says which shape each field has; the generated
//! wrappers choose the type from here that makes it. A tuple is its elements
//! one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Something with bytes in a record.
pub trait Put {
    /// How many.
    fn size(&self) -> usize;

    /// Writes them, and returns the place behind.
    ///
    /// # Safety
    /// `at` has room for [`Put::size`] bytes, and pointers inside `self` are
    /// readable for the lengths they came with.
    unsafe fn put(&self, at: *mut u8) -> *mut u8;
}

macro_rules! put_number {
    ($($ty:ty),*) => { $(
        impl Put for $ty {
            #[inline(always)]
            fn size(&self) -> usize {
                size_of::<$ty>()
            }

            #[inline(always)]
            unsafe fn put(&self, at: *mut u8) -> *mut u8 {
                // SAFETY: contract of `put`: room for `size` bytes, which are the number's. Records are
                // packed, so the store is unaligned.
                unsafe {
                    at.cast::<$ty>().write_unaligned(*self);
                    at.add(size_of::<$ty>())
                }
            }
        }
    )* };
}

put_number!(u8, u16, u32, u64, i8, i16, i32, i64, usize, isize, f32, f64);

/// Plain data without gaps: the bytes of a record that is no call.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'d, T>(pub &'d T);

impl<T> Put for Plain<'_, T> {
    fn size(&self) -> usize {
        size_of::<T>()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which the reference has.
        unsafe {
            at.copy_from_nonoverlapping(std::ptr::from_ref(self.0).cast(), size_of::<T>());
            at.add(size_of::<T>())
        }
    }
}

impl<T> Put for *const T {
    #[inline(always)]
    fn size(&self) -> usize {
        8
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which are 8.
        unsafe { (*self as u64).put(at) }
    }
}

impl<T> Put for *mut T {
    #[inline(always)]
    fn size(&self) -> usize {
        8
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which are 8.
        unsafe { (*self as u64).put(at) }
    }
}

/// Bytes as they are: what stands behind the record that says how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'d>(pub &'d [u8]);

impl Put for Raw<'_> {
    fn size(&self) -> usize {
        self.0.len()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which the slice has.
        unsafe {
            at.copy_from_nonoverlapping(self.0.as_ptr(), self.0.len());
            at.add(self.0.len())
        }
    }
}

macro_rules! put_tuple {
    ($($name:ident)*) => {
        impl<$($name: Put),*> Put for ($($name,)*) {
            #[inline(always)]
            fn size(&self) -> usize {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                0 $(+ $name.size())*
            }

            #[inline(always)]
            #[allow(unused_mut, unused_unsafe, non_snake_case)]
            unsafe fn put(&self, mut at: *mut u8) -> *mut u8 {
                let ($($name,)*) = self;
                // SAFETY: contract of `put`: room for `size` bytes, which are the sizes of the members
                // together, and pointers in them are readable.
                $( at = unsafe { $name.put(at) }; )*
                at
            }
        }
    };
}

put_tuple!();
put_tuple!(A);
put_tuple!(A B);
put_tuple!(A B C);
put_tuple!(A B C D);
put_tuple!(A B C D E);
put_tuple!(A B C D E F);
put_tuple!(A B C D E F G);
put_tuple!(A B C D E F G H);
put_tuple!(A B C D E F G H I);
put_tuple!(A B C D E F G H I J);
put_tuple!(A B C D E F G H I J K);
put_tuple!(A B C D E F G H I J K L);
put_tuple!(A B C D E F G H I J K L M);
put_tuple!(A B C D E F G H I J K L M N);
put_tuple!(A B C D E F G H I J K L M N O);
put_tuple!(A B C D E F G H I J K L M N O P);

/// A copy without a call for the short lengths that records have, and without
/// a loop, which the compiler would unroll: two pieces that may overlap.
///
/// # Safety
/// `from` is readable and `to` writable for `length` bytes.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: contract: both are valid for `length` bytes, at which each piece ends, or before. They
    // do not overlap: `to` is in a ring, which no pointer of the program leads to.
    unsafe {
        match length {
            0 => {}
            1..4 => {
                let (first, middle, last) = (*from, *from.add(length / 2), *from.add(length - 1));
                *to = first;
                *to.add(length / 2) = middle;
                *to.add(length - 1) = last;
            }
            4..8 => ends::<u32>(from, to, length),
            8..=16 => ends::<u64>(from, to, length),
            _ => to.copy_from_nonoverlapping(from, length),
        }
    }
}

/// Copies the first and the last `T` of `length` bytes.
///
/// # Safety
/// As [`copy`], and `length` is between the size of `T` and twice that.
#[inline(always)]
unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, length: usize) {
    let last = length - size_of::<T>();
    // SAFETY: contract: both are valid for `length` bytes; the pieces begin at 0 and `last`, and end
    // at `length` at the latest.
    unsafe {
        let (a, b) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(a);
        to.add(last).cast::<T>().write_unaligned(b);
    }
}

/// An 8-bit count and that many elements.
#[derive(Debug, Clone, Copy)]
pub struct Seq<T> {
    at: *const T,
    length: usize,
}

/// At most [`Caps::seq`] elements behind `at`; none if it is NULL.
#[inline(always)]
pub fn seq<T>(at: *const T, length: usize, caps: Caps) -> Seq<T> {
    Seq { at, length: if at.is_null() { 0 } else { length.min(caps.seq) } }
}

/// An 8-bit count, 0 or 1, and that one element.
#[derive(Debug, Clone, Copy)]
pub struct Maybe<T>(*const T);

/// The one element behind `at`, or none if it is NULL or must not be read.
#[inline(always)]
pub fn one<T>(at: *const T, readable: bool) -> Maybe<T> {
    Maybe(if readable { at } else { std::ptr::null() })
}

impl<T: Copy> Put for Maybe<T> {
    #[inline(always)]
    fn size(&self) -> usize {
        if self.0.is_null() { 1 } else { 1 + size_of::<T>() }
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: room for the count and the element, which is readable.
        unsafe {
            *at = u8::from(!self.0.is_null());
            if self.0.is_null() {
                return at.add(1);
            }
            at.add(1).cast::<T>().write_unaligned(self.0.read_unaligned());
            at.add(1 + size_of::<T>())
        }
    }
}

/// Elements up to a 0, the 0 included: a list of properties. `step` is 2 for
/// pairs of a name and a value.
///
/// # Safety
/// `at` is NULL or the list ends with a 0.
#[inline]
pub unsafe fn list(at: *const u64, step: usize, caps: Caps) -> Seq<u64> {
    let mut length = 0;
    if !at.is_null() {
        // SAFETY: contract: elements are readable up to a 0, at which this stops.
        while length + step <= caps.seq && unsafe { *at.add(length) } != 0 {
            length += step;
        }
    }
    Seq { at, length }
}

impl<T> Put for Seq<T> {
    #[inline(always)]
    fn size(&self) -> usize {
        1 + self.length * size_of::<T>()
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: room for the count and the elements, which are readable.
        unsafe {
            *at = self.length as u8;
            copy(self.at.cast(), at.add(1), self.length * size_of::<T>());
            at.add(1 + self.length * size_of::<T>())
        }
    }
}

/// A 16-bit count and that many bytes.
#[derive(Debug, Clone, Copy)]
pub struct Bytes {
    at: *const u8,
    length: usize,
}

/// At most [`Caps::bytes`] bytes behind `at`; none if it is NULL.
#[inline(always)]
pub fn bytes<T>(at: *const T, length: usize, caps: Caps) -> Bytes {
    Bytes { at: at.cast(), length: if at.is_null() { 0 } else { length.min(caps.bytes) } }
}

impl Put for Bytes {
    #[inline(always)]
    fn size(&self) -> usize {
        2 + self.length
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: room for the count and the bytes, which are readable.
        unsafe {
            at.cast::<u16>().write_unaligned((self.length as u16).to_le());
            copy(self.at, at.add(2), self.length);
            at.add(2 + self.length)
        }
    }
}

/// Text and a NUL.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    at: *const u8,
    length: usize,
}

/// The text behind `at`: `length` bytes of it, or up to the NUL if that is 0,
/// and in no case more than [`Caps::text`].
///
/// # Safety
/// `at` is NULL, or readable for `length` bytes or up to a NUL.
#[inline]
pub unsafe fn text<T>(at: *const T, length: usize, caps: Caps) -> Text {
    let at: *const u8 = at.cast();
    let most = if length == 0 { caps.text } else { length.min(caps.text) };
    let mut length = 0;
    if !at.is_null() {
        // SAFETY: contract: bytes are readable up to a NUL or `length`, at which this stops. A
        // NUL inside would end the text in the trace, too.
        while length < most && unsafe { *at.add(length) } != 0 {
            length += 1;
        }
    }
    Text { at, length }
}

impl Text {
    /// No text.
    const EMPTY: Text = Text { at: std::ptr::null(), length: 0 };
}

impl Put for Text {
    #[inline(always)]
    fn size(&self) -> usize {
        self.length + 1
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes, which are those that `text` counted and a
        // NUL; so many were readable then.
        unsafe {
            copy(self.at, at, self.length);
            keep_whole(at, self.length);
            *at.add(self.length) = 0;
            at.add(self.length + 1)
        }
    }
}

/// Replaces each NUL of a copied text by a space. There was none when the text was measured, but
/// another thread of the program may have changed it since; the reader would take the rest of the
/// text for the fields behind it.
///
/// # Safety
/// `length` bytes at `at` are the caller's, and were written.
#[inline(always)]
unsafe fn keep_whole(at: *mut u8, length: usize) {
    // SAFETY: the bytes lie in the record that this thread is writing, and have values: nobody else writes there. Shared
    // nevertheless, for it is memory of the ring.
    let copied = unsafe { std::slice::from_raw_parts(at, length) };
    if copied.contains(&0) {
        // SAFETY: the same bytes, to which no reference is used from here on.
        unsafe { blank_out(at, length) };
    }
}

/// # Safety
/// As [`keep_whole`], and nobody has a reference to them.
#[cold]
#[inline(never)]
unsafe fn blank_out(at: *mut u8, length: usize) {
    for i in 0..length {
        // SAFETY: one of the bytes at `at`, which are `length`, and this thread's to write.
        unsafe {
            if *at.add(i) == 0 {
                *at.add(i) = b' ';
            }
        }
    }
}

/// Most texts of a [`Texts`].
const TEXTS: usize = 8;

/// An 8-bit count and that many texts, together not longer than the cap. Where they are and how
/// long is read once, when this is made: the program may change it at any time.
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    texts: [Text; TEXTS],
    count: usize,
}

/// Texts behind `at`; `lengths` may be NULL, as may single lengths be 0.
///
/// # Safety
/// `at` is NULL, or has `count` pointers to texts as [`text`] wants them; `lengths` is NULL or has
/// as many lengths.
#[inline]
pub unsafe fn texts<T>(at: *const *const T, count: usize, lengths: *const usize, caps: Caps) -> Texts {
    let count = if at.is_null() { 0 } else { count.min(TEXTS) };
    // All of them must fit into one record.
    let caps = if count == 1 { caps } else { Caps { text: caps.text.min(128), ..caps } };
    let mut texts = [Text::EMPTY; TEXTS];
    for (i, place) in texts.iter_mut().enumerate().take(count) {
        // SAFETY: contract: there is a pointer of this number to a text and, if there are any, a
        // length of it.
        *place = unsafe {
            let length = if lengths.is_null() { 0 } else { *lengths.add(i) };
            text(*at.add(i), length, caps)
        };
    }
    Texts { texts, count }
}

impl Texts {
    fn all(&self) -> impl Iterator<Item = &Text> {
        self.texts.iter().take(self.count)
    }
}

impl Put for Texts {
    fn size(&self) -> usize {
        1 + self.all().map(Text::size).sum::<usize>()
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for the count and, in their order, all texts, whose bytes
        // were readable when they were measured.
        unsafe {
            *at = self.count as u8;
            self.all().fold(at.add(1), |at, text| text.put(at))
        }
    }
}

/// How much is recorded of what a pointer points at.
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Elements of an array; at most 255.
    pub seq: usize,
    /// Bytes of a value.
    pub bytes: usize,
    /// Bytes of a text, without its NUL.
    pub text: usize,
}

impl Caps {
    /// What a session may ask for at most, so that every record fits.
    pub const MOST: Caps = Caps { seq: 64, bytes: 1000, text: 1000 };

    /// The session's caps; without a session nothing is followed.
    #[inline(always)]
    pub fn current() -> Caps {
        // SAFETY: written once, while the library is loaded, before anyone can
        // call a wrapper. A plain load goes away where a cap is not needed.
        let cap = |place: &AtomicUsize| unsafe { place.as_ptr().read() };
        Caps { seq: cap(&CURRENT[0]), bytes: cap(&CURRENT[1]), text: cap(&CURRENT[2]) }
    }

    /// Sets the caps of this process, once, when it joins a session.
    pub(crate) fn set(self) {
        for (place, cap) in CURRENT.iter().zip([self.seq, self.bytes, self.text]) {
            place.store(cap, Ordering::Relaxed);
        }
    }
}

static CURRENT: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &impl Put) -> Vec<u8> {
        let mut out = vec![0xee; value.size() + 1];
        // SAFETY: room for the value, whose pointers are to live test data.
        let end = unsafe { value.put(out.as_mut_ptr()) };
        assert_eq!(end as usize - out.as_ptr() as usize, value.size());
        assert_eq!(out.pop(), Some(0xee), "not a byte more");
        out
    }

    const CAPS: Caps = Caps { seq: 3, bytes: 4, text: 5 };

    #[test]
    fn shapes_are_those_of_the_layout() {
        assert_eq!(written(&(1u8, 0x0302u16, -1i32)), [1, 2, 3, 255, 255, 255, 255]);
        assert_eq!(written(&seq([7u16, 8, 9, 10].as_ptr(), 4, CAPS)), [3, 7, 0, 8, 0, 9, 0]);
        assert_eq!(written(&bytes([1u8, 2, 3, 4, 5].as_ptr(), 5, CAPS)), [4, 0, 1, 2, 3, 4]);
        // SAFETY: texts with a NUL.
        unsafe {
            assert_eq!(written(&text(c"abc".as_ptr(), 0, CAPS)), b"abc\0");
            assert_eq!(written(&text(c"abcdefgh".as_ptr(), 0, CAPS)), b"abcde\0");
            assert_eq!(written(&text(c"abcdefgh".as_ptr(), 2, CAPS)), b"ab\0");
        }
        let list_of = [5u64, 6, 7, 8, 0];
        // SAFETY: ends with a 0.
        unsafe {
            assert_eq!(list(list_of.as_ptr(), 1, CAPS).length, 3);
            assert_eq!(list(list_of.as_ptr(), 2, CAPS).length, 2, "whole pairs only");
        }
        let strings = [c"one".as_ptr(), c"two".as_ptr()];
        // SAFETY: two texts with a NUL, and two lengths.
        let both = unsafe { texts(strings.as_ptr(), 2, [2, 0].as_ptr(), CAPS) };
        assert_eq!(written(&both), b"\x02on\0two\0");
    }

    /// Writes a value after `change` was called, which comes between it and its size.
    fn written_after(value: &(impl Put + Copy), change: impl FnOnce()) -> Vec<u8> {
        let size = value.size();
        change();
        assert_eq!(value.size(), size, "the size was fixed before");
        written(value)
    }

    #[test]
    fn what_the_program_changes_meanwhile_keeps_its_size() {
        let caps = Caps { seq: 9, bytes: 40, text: 40 };
        for length in [1, 3, 5, 12, 30] {
            let other = c"the other one";
            let mut string = [b'x'; 41];
            string[length] = 0;
            let bytes = string.as_mut_ptr();
            let set = |at: usize, byte: u8| {
                // SAFETY: inside of `string`, which is only used by pointer from here on.
                unsafe { *bytes.add(at) = byte };
            };
            let mut pointers = [bytes.cast_const(); 2];
            let (lengths, pointers) = ([0usize, 0], pointers.as_mut_ptr());
            // SAFETY: texts with a NUL, as many as pointers and lengths.
            let (one, two) = unsafe {
                (text(bytes.cast_const(), 0, caps), texts(pointers.cast_const(), 2, lengths.as_ptr(), caps))
            };
            let whole = "x".repeat(length);
            // It grows, and what is behind it is another.
            let grow = || {
                set(length, b'y');
                set(40, 0);
                // SAFETY: the second of two pointers.
                unsafe { *pointers.add(1) = other.as_ptr().cast() };
            };
            assert_eq!(written_after(&(one, 7u8), grow), format!("{whole}\0\x07").as_bytes());
            assert_eq!(written(&(two, 7u8)), format!("\x02{whole}\0{whole}\0\x07").as_bytes());
            // It shrinks: the fields behind it stay where the reader finds them.
            let shrunk = format!("{}{}", &whole[..length / 2], " ".repeat(length - length / 2));
            let shrink = || (length / 2..=length).for_each(|i| set(i, 0));
            assert_eq!(written_after(&(one, 7u8), shrink), format!("{shrunk}\0\x07").as_bytes());
            assert_eq!(written(&(two, 7u8)), format!("\x02{shrunk}\0{shrunk}\0\x07").as_bytes());
        }
        let mut numbers = [5u64, 6, 7, 0, 0];
        // SAFETY: ends with a 0.
        let properties = unsafe { list(numbers.as_ptr(), 1, caps) };
        let numbers = numbers.as_mut_ptr();
        // SAFETY: inside of `numbers`.
        let change = || unsafe { (*numbers.add(1), *numbers.add(3)) = (0, 9) };
        assert_eq!(written_after(&properties, change).len(), 1 + 3 * 8);
    }

    #[test]
    fn null_is_nothing() {
        let null = std::ptr::null::<u64>();
        assert_eq!(written(&seq(null, 9, CAPS)), [0]);
        assert_eq!(written(&one(null, true)), [0]);
        assert_eq!(written(&bytes(null, 9, CAPS)), [0, 0]);
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(written(&text(null, 9, CAPS)), [0]);
            assert_eq!(written(&list(null, 2, CAPS)), [0]);
        }
    }
}
