//! The structs in which NVTX passes what belongs to a mark, a range or an object.
//!
//! Each begins with its version and its size; what lies behind that size was
//! unknown to whoever filled it in, and counts as 0.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

const ASCII: u32 = 1;
const UNICODE: u32 = 2;
const REGISTERED: u32 = 3;
const ARGB: u32 = 1;

/// A message in one of its forms.
#[derive(Debug, Clone, Copy)]
pub enum Message {
    /// Text, or NULL.
    Text(*const c_char),
    /// Text of `wchar_t`.
    Wide(*const u32),
    /// The handle of a text.
    Registered(*mut c_void),
}

impl Message {
    /// The message of a struct: its type, and the word that is one of several.
    fn new(kind: u32, value: u64) -> Self {
        match kind {
            ASCII => Message::Text(value as *const c_char),
            UNICODE => Message::Wide(value as *const u32),
            REGISTERED => Message::Registered(value as *mut c_void),
            _ => Message::Text(null()),
        }
    }

    /// The text and the handle as wrappers take them, of a message that is not
    /// wide.
    #[inline(always)]
    pub fn flat(self) -> (*const i8, *mut c_void) {
        match self {
            Message::Text(text) => (text.cast(), null_mut()),
            Message::Wide(_) => (null(), null_mut()),
            Message::Registered(handle) => (null(), handle),
        }
    }
}

/// A struct of NVTX of which only so many bytes are there.
#[derive(Clone, Copy)]
struct Given {
    at: *const u8,
    size: usize,
}

impl Given {
    /// # Safety
    /// `at` is NULL, or a struct with its size in bytes 2 and 3.
    #[inline(always)]
    unsafe fn new(at: *const u8) -> Self {
        // SAFETY: `at` is not NULL, so a struct whose bytes 2 and 3 are its size.
        let size = if at.is_null() { 0 } else { unsafe { at.add(2).cast::<u16>().read_unaligned() } };
        Given { at, size: size.into() }
    }

    /// The member at `offset`; 0 if it is not there.
    #[inline(always)]
    fn get<T: Copy + Default>(self, offset: usize) -> T {
        if offset + size_of::<T>() > self.size {
            return T::default();
        }
        // SAFETY: inside the size that the struct gives for itself.
        unsafe { self.at.add(offset).cast::<T>().read_unaligned() }
    }
}

/// Attributes of a mark or range.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub category: u32,
    pub color: u32,
    pub payload_type: u32,
    pub payload: u64,
    pub message: Message,
}

impl Event {
    /// # Safety
    /// `at` is NULL or an `nvtxEventAttributes_t`.
    #[inline(always)]
    pub unsafe fn read(at: *const u8) -> Self {
        // SAFETY: NULL or an `nvtxEventAttributes_t`, whose size is in bytes 2 and 3.
        let given = unsafe { Given::new(at) };
        let color = if given.get::<u32>(8) == ARGB { given.get(12) } else { 0 };
        let payload_type = given.get(16);
        let bits: u64 = given.get(24);
        let payload = match payload_type {
            0 => 0,
            // What lies beside a 32-bit member of the union is no part of it.
            4..=6 => bits & 0xffff_ffff,
            _ => bits,
        };
        let message = Message::new(given.get(32), given.get(40));
        Event { category: given.get(4), color, payload_type, payload, message }
    }
}

/// Attributes of an object that gets a name.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    pub identifier_type: u32,
    pub identifier: u64,
    pub message: Message,
}

impl Resource {
    /// # Safety
    /// `at` is NULL or an `nvtxResourceAttributes_t`.
    pub unsafe fn read(at: *const u8) -> Self {
        // SAFETY: NULL or an `nvtxResourceAttributes_t`, whose size is in bytes 2 and 3.
        let given = unsafe { Given::new(at) };
        let message = Message::new(given.get(16), given.get(24));
        Resource { identifier_type: given.get(4), identifier: given.get(8), message }
    }
}

/// The message of an `nvtxSyncUserAttributes_t`.
///
/// # Safety
/// `at` is NULL or such a struct.
pub unsafe fn sync_user(at: *const u8) -> Message {
    // SAFETY: NULL or an `nvtxSyncUserAttributes_t`, whose size is in bytes 2 and 3.
    let given = unsafe { Given::new(at) };
    Message::new(given.get(4), given.get(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Attributes {
        version: u16,
        size: u16,
        category: u32,
        color_type: i32,
        color: u32,
        payload_type: i32,
        reserved: i32,
        payload: u64,
        message_type: i32,
        message: *const c_char,
    }

    const WHOLE: Attributes = Attributes {
        version: 3,
        size: size_of::<Attributes>() as u16,
        category: 7,
        color_type: 1,
        color: 0xff00_aa00,
        payload_type: 2,
        reserved: 0,
        payload: -5i64 as u64,
        message_type: 1,
        message: c"text".as_ptr(),
    };

    fn read(attributes: Attributes) -> Event {
        // SAFETY: the struct that it wants.
        unsafe { Event::read((&raw const attributes).cast()) }
    }

    #[test]
    fn a_whole_struct_is_read() {
        let event = read(WHOLE);
        assert_eq!((event.category, event.color, event.payload_type), (7, 0xff00_aa00, 2));
        assert_eq!(event.payload as i64, -5);
        assert!(matches!(event.message, Message::Text(text) if text == WHOLE.message));
        assert_eq!(read(Attributes { color_type: 0, ..WHOLE }).color, 0, "no colour");
        assert_eq!(read(Attributes { payload_type: 0, ..WHOLE }).payload, 0, "no payload");
        assert_eq!(read(Attributes { payload_type: 5, ..WHOLE }).payload, 0xffff_fffb, "32 bits of it");
        let handle = read(Attributes { message_type: 3, ..WHOLE }).message;
        assert!(matches!(handle, Message::Registered(h) if h.cast_const().cast() == WHOLE.message));
        assert!(matches!(read(Attributes { message_type: 2, ..WHOLE }).message, Message::Wide(_)));
        assert!(read(Attributes { message_type: 9, ..WHOLE }).message.flat().0.is_null());
    }

    #[test]
    fn nothing_is_read_behind_the_size() {
        let event = read(Attributes { size: 16, ..WHOLE });
        assert_eq!((event.category, event.color), (7, 0xff00_aa00));
        assert_eq!((event.payload_type, event.payload), (0, 0));
        assert!(event.message.flat().0.is_null());
        let event = read(Attributes { size: 47, ..WHOLE });
        assert_eq!(event.payload as i64, -5);
        assert!(event.message.flat().0.is_null(), "half a pointer is none");
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { Event::read(null()) }.category, 0);
    }
}
