//! Texts of `wchar_t`, which is UTF-32 on this system, as UTF-8 on the stack.

use std::mem::MaybeUninit;

use hetrace_interpose::put::Caps;

/// Room for the longest text that is recorded, and its NUL.
pub struct Buffer(MaybeUninit<[u8; Caps::MOST.text + 1]>);

impl Buffer {
    /// Holds nothing yet.
    #[inline(always)]
    pub fn new() -> Self {
        Buffer(MaybeUninit::uninit())
    }

    /// As much of the text as is recorded, in whole characters; NULL of NULL.
    /// What is no character becomes U+FFFD.
    ///
    /// # Safety
    /// `wide` is NULL or ends with a 0.
    pub unsafe fn utf8(&mut self, wide: *const u32) -> *const i8 {
        // SAFETY: `wide` is NULL or ends with a 0, which is all that `at_most` wants.
        unsafe { self.at_most(wide, Caps::current().text) }
    }

    /// # Safety
    /// `wide` is NULL or ends with a 0.
    unsafe fn at_most(&mut self, wide: *const u32, most: usize) -> *const i8 {
        if wide.is_null() {
            return std::ptr::null();
        }
        let most = most.min(Caps::MOST.text);
        let out = self.0.as_mut_ptr().cast::<u8>();
        let mut length = 0;
        for i in 0..=most {
            // SAFETY: not NULL, and no 0 has come before `i`, so the text goes on to here.
            let code = unsafe { wide.add(i).read_unaligned() };
            if code == 0 {
                break;
            }
            let mut bytes = [0; 4];
            let bytes = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes);
            if length + bytes.len() > most {
                break;
            }
            // SAFETY: the buffer has room for `most` bytes and a NUL.
            unsafe { out.add(length).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            length += bytes.len();
        }
        // SAFETY: `length` is at most `most`, behind which the buffer has room for the NUL.
        unsafe { *out.add(length) = 0 };
        out.cast_const().cast()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn utf8(wide: &[u32], most: usize) -> String {
        let mut buffer = Buffer::new();
        // SAFETY: ends with a 0, and gives a NUL-terminated text.
        let text = unsafe { CStr::from_ptr(buffer.at_most(wide.as_ptr(), most).cast()) };
        text.to_str().unwrap().to_owned()
    }

    #[test]
    fn characters_stay_whole() {
        let wide: Vec<u32> = "aßр€😀".chars().map(u32::from).chain([0]).collect();
        assert_eq!(utf8(&wide, 100), "aßр€😀");
        assert_eq!(utf8(&wide, 12), "aßр€😀");
        assert_eq!(utf8(&wide, 11), "aßр€");
        assert_eq!(utf8(&wide, 4), "aß");
        assert_eq!(utf8(&wide, 0), "");
        assert_eq!(utf8(&[0xd800, 0x0061, 0xffff_ffff, 0], 100), "\u{fffd}a\u{fffd}");
        let long = [u32::from('x'); 3000];
        assert_eq!(utf8(&long, usize::MAX).len(), Caps::MOST.text);
        // SAFETY: NULL is allowed.
        assert!(unsafe { Buffer::new().utf8(std::ptr::null()) }.is_null());
    }
}
