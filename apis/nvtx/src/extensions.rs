//! The extensions of NVTX. Of that for payloads what marks, ranges and schemas need is
//! traced ([`crate::payloads`]); its events with times of the program's own, counters and
//! memory are not, and the report says so once a program uses one. Python's package asks
//! for the first of them in any case, and that alone says nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_interpose::{ErrnoGuard, note, session};

use crate::payloads;

/// A part of an extension: places for its functions' addresses.
#[repr(C)]
pub struct Segment {
    id: usize,
    count: usize,
    places: *mut usize,
}

/// What an extension passes to a tool.
#[repr(C)]
pub struct Module {
    version: u16,
    size: u16,
    number: u16,
    compatible: u16,
    count: usize,
    segments: *const Segment,
}

const MEMORY: u16 = 1;
const PAYLOADS: u16 = 2;
const COUNTERS: u16 = 4;

/// Functions whose calls go unrecorded: not those that prepare, nor the one
/// that asks whether a domain is enabled, which NVTX itself serves.
fn recording(module: u16) -> &'static [usize] {
    match module {
        // Registering a heap, and regions in it.
        MEMORY => &[0, 3],
        // Submitting one event or many.
        PAYLOADS => &[16, 17],
        // Samples.
        COUNTERS => &[1, 2, 3, 4, 5],
        _ => &[],
    }
}

fn say() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let _errno = ErrnoGuard::new();
        note(b"a program uses extensions of NVTX (counters, memory, or events with their own timestamps): these calls are not traced");
    }
}

/// Stands for any function that returns nothing or a number: as without a tool.
/// What it is called with lies where the caller takes it away again.
extern "C" fn untraced() -> u64 {
    say();
    0
}

/// What an extension calls before its first function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *const Module) -> i32 {
    // SAFETY: NULL, or what the extension passes.
    let Some(module) = (unsafe { module.as_ref() }) else { return 0 };
    if session().is_none() || usize::from(module.size) < size_of::<Module>() || module.count == 0 {
        return 1;
    }
    // SAFETY: it has at least one; the extensions have no more.
    let Some(segment) = (unsafe { module.segments.as_ref() }) else { return 1 };
    let set = |place: usize, function: usize| {
        if place < segment.count && !segment.places.is_null() {
            // SAFETY: one of `count` places.
            unsafe { segment.places.add(place).write(function) };
        }
    };
    for place in recording(module.number) {
        set(*place, untraced as *const () as usize);
    }
    if module.number == PAYLOADS {
        for (place, function) in payloads::functions().into_iter().enumerate() {
            set(place, function);
        }
    }
    1
}
