//! Payloads that a schema describes: what NVTX's extension for them calls. NCCL ends ranges
//! with them, so that without these functions its ranges would never end.

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Write;
use std::ptr::null;

use crate::generated::prelude::P;
use crate::generated::wrappers;

/// One of the payloads of a call.
#[repr(C)]
pub struct Payload {
    schema: u64,
    /// Bytes; all bits set if only its reader can determine them.
    size: usize,
    payload: *const c_void,
}

/// The longest payload that is recorded, bytes; no program means a larger size.
const MOST: usize = 1 << 20;

/// The first payload, flat: schema, place and size.
///
/// # Safety
/// `data` is NULL, or `count` payloads.
#[inline(always)]
unsafe fn first(data: *const Payload, count: usize) -> (u64, *const c_void, u64) {
    if count == 0 {
        return (0, null(), 0); // `data` need not point at anything.
    }
    // SAFETY: `count` is not 0, so `data` is NULL or the first of so many payloads.
    match unsafe { data.as_ref() } {
        Some(first) if first.size <= MOST && !first.payload.is_null() => {
            (first.schema, first.payload, first.size as u64)
        }
        Some(first) => (first.schema, null(), 0),
        None => (0, null(), 0),
    }
}

unsafe extern "C" fn mark(domain: P, data: *const Payload, count: usize) {
    // SAFETY: what the program passes to this function of NVTX.
    unsafe {
        let (schema, payload, size) = first(data, count);
        wrappers::nvtxMarkPayload(domain, schema, payload, size, count as u64);
    }
}

unsafe extern "C" fn push(domain: P, data: *const Payload, count: usize) -> i32 {
    // SAFETY: `data` and `count` are those of an NVTX call: NULL, or so many payloads.
    unsafe {
        let (schema, payload, size) = first(data, count);
        wrappers::nvtxRangePushPayload(domain, schema, payload, size, count as u64)
    }
}

unsafe extern "C" fn pop(domain: P, data: *const Payload, count: usize) -> i32 {
    // SAFETY: `data` and `count` are those of an NVTX call: NULL, or so many payloads.
    unsafe {
        let (schema, payload, size) = first(data, count);
        wrappers::nvtxRangePopPayload(domain, schema, payload, size, count as u64)
    }
}

unsafe extern "C" fn start(domain: P, data: *const Payload, count: usize) -> u64 {
    // SAFETY: `data` and `count` are those of an NVTX call: NULL, or so many payloads.
    unsafe {
        let (schema, payload, size) = first(data, count);
        wrappers::nvtxRangeStartPayload(domain, schema, payload, size, count as u64)
    }
}

unsafe extern "C" fn end(domain: P, id: u64, data: *const Payload, count: usize) {
    // SAFETY: `data` and `count` are those of an NVTX call: NULL, or so many payloads.
    unsafe {
        let (schema, payload, size) = first(data, count);
        wrappers::nvtxRangeEndPayload(domain, id, schema, payload, size, count as u64);
    }
}

/// What describes a schema.
#[repr(C)]
pub struct SchemaAttributes {
    /// Which members count: a bit for each, from 1 on for `name`.
    mask: u64,
    name: *const c_char,
    kind: u64,
    flags: u64,
    entries: *const SchemaEntry,
    entry_count: usize,
    static_size: usize,
    alignment: usize,
    schema: u64,
    extension: *const c_void,
}

#[repr(C)]
struct SchemaEntry {
    flags: u64,
    kind: u64,
    name: *const c_char,
    description: *const c_char,
    detail: u64,
    offset: u64,
    semantics: *const c_void,
    reserved: *const c_void,
}

/// What describes an enumeration.
#[repr(C)]
pub struct EnumAttributes {
    mask: u64,
    name: *const c_char,
    entries: *const EnumEntry,
    entry_count: usize,
    size: usize,
    schema: u64,
    extension: *const c_void,
}

#[repr(C)]
struct EnumEntry {
    name: *const c_char,
    value: u64,
    is_flag: i8,
}

/// Names of the predefined types, by number, as C has them.
const TYPES: [&str; 28] = [
    "?",
    "char",
    "uchar",
    "short",
    "ushort",
    "int",
    "uint",
    "long",
    "ulong",
    "longlong",
    "ulonglong",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float",
    "double",
    "longdouble",
    "size",
    "address",
    "wchar",
    "char8",
    "char16",
    "char32",
];

/// A text of limited length, in place, with a NUL behind it.
struct Text {
    bytes: [u8; 1024],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Text { bytes: [0; 1024], length: 0 }
    }

    fn start(&self) -> *const i8 {
        self.bytes.as_ptr().cast()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let part = text.as_bytes().get(..room.min(text.len())).unwrap_or_default();
        if let Some(place) = self.bytes.get_mut(self.length..self.length + part.len()) {
            place.copy_from_slice(part);
            self.length += part.len();
        }
        if part.len() < text.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

/// # Safety
/// `name` is NULL or a text that ends.
unsafe fn text<'t>(name: *const c_char) -> &'t str {
    // SAFETY: not NULL in this branch, so a text that ends.
    if name.is_null() { "?" } else { unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("?") }
}

/// How many of a program's entries are looked at.
const ENTRIES: usize = 256;

unsafe extern "C" fn register_schema(domain: P, at: *const SchemaAttributes) -> u64 {
    let mut entries = Text::new();
    // SAFETY: what the program passes to this function of NVTX; a member counts if its bit is set.
    unsafe {
        let Some(about) = at.as_ref() else {
            return wrappers::nvtxPayloadSchemaRegister(domain, null(), 0, 0, null(), 0, 0, 0);
        };
        let has = |bit: u32| about.mask & (1 << bit) != 0;
        let count = if has(5) { about.entry_count } else { 0 };
        if has(4) && !about.entries.is_null() {
            for i in 0..count.min(ENTRIES) {
                let entry = &*about.entries.add(i);
                let separator = if i > 0 { "; " } else { "" };
                let name = text(entry.name);
                let written = match TYPES.get(entry.kind as usize) {
                    Some(kind) => write!(entries, "{separator}{kind} {name} @{}", entry.offset),
                    None => write!(entries, "{separator}{:#x} {name} @{}", entry.kind, entry.offset),
                };
                if written.is_err() {
                    break; // What there is room for is recorded, and how many there are.
                }
            }
        }
        wrappers::nvtxPayloadSchemaRegister(
            domain,
            if has(1) { about.name.cast() } else { null() },
            if has(2) { about.kind } else { 0 },
            if has(3) { about.flags } else { 0 },
            entries.start(),
            count as u64,
            if has(6) { about.static_size as u64 } else { 0 },
            if has(8) { about.schema } else { 0 },
        )
    }
}

unsafe extern "C" fn register_enum(domain: P, at: *const EnumAttributes) -> u64 {
    let mut entries = Text::new();
    // SAFETY: NULL or the enumeration that the program registers; a member counts if its bit is set.
    unsafe {
        let Some(about) = at.as_ref() else {
            return wrappers::nvtxPayloadEnumRegister(domain, null(), null(), 0, 0, 0);
        };
        let has = |bit: u32| about.mask & (1 << bit) != 0;
        let count = if has(3) { about.entry_count } else { 0 };
        if has(2) && !about.entries.is_null() {
            for i in 0..count.min(ENTRIES) {
                let entry = &*about.entries.add(i);
                let separator = if i > 0 { "; " } else { "" };
                if write!(entries, "{separator}{} = {}", text(entry.name), entry.value).is_err() {
                    break;
                }
            }
        }
        wrappers::nvtxPayloadEnumRegister(
            domain,
            if has(1) { about.name.cast() } else { null() },
            entries.start(),
            count as u64,
            if has(4) { about.size as u64 } else { 0 },
            if has(5) { about.schema } else { 0 },
        )
    }
}

/// Addresses of the extension's first functions, in the order of its numbers.
pub fn functions() -> [usize; 7] {
    [
        register_schema as *const () as usize,
        register_enum as *const () as usize,
        mark as *const () as usize,
        push as *const () as usize,
        pop as *const () as usize,
        start as *const () as usize,
        end as *const () as usize,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_payload_is_recorded() {
        let value = 7u64;
        let at = (&raw const value).cast();
        let two = [Payload { schema: 3, size: 8, payload: at }, Payload { schema: 4, size: 1, payload: at }];
        // SAFETY: two payloads, and none.
        unsafe {
            assert_eq!(first(two.as_ptr(), 2), (3, at, 8));
            assert_eq!(first(two.as_ptr(), 0), (0, null(), 0));
            assert_eq!(first(null(), 2), (0, null(), 0));
            let unknown = Payload { schema: 75, size: usize::MAX, payload: at };
            assert_eq!(
                first(&raw const unknown, 1),
                (75, null(), 0),
                "a size that only the reader can determine"
            );
        }
    }

    #[test]
    fn texts_end_where_their_room_does() {
        let mut text = Text::new();
        assert!(write!(text, "{}", "a".repeat(1000)).is_ok());
        assert!(write!(text, "{}", "b".repeat(100)).is_err());
        assert_eq!((text.length, text.bytes[1022], text.bytes[1023]), (1023, b'b', 0));
        assert!(write!(text, "c").is_err());
    }
}
