//! The functions that programs call, with ITT's own prototypes: they lay structs flat, and go on to the generated
//! wrappers. Those whose prototype is the model's own need none; programs call the wrapper.
//!
//! One safety argument stands for all of them: the arguments are those that the program passes to the very
//! function of ITT that it calls, and pointers are followed as ITT's documentation has it.

use std::ffi::{c_char, c_void};

use crate::generated::prelude::P;
use crate::generated::wrappers;
use crate::local::{Kind, key};
use crate::objects;

/// `__itt_id`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Id {
    address: u64,
    extra: u64,
    reserved: u64,
}

/// `__itt_id` without its third number, which ITT always leaves 0.
type Two = (u64, u64);

impl Id {
    fn two(self) -> Two {
        (self.address, self.extra)
    }

    /// # Safety
    /// `id` is NULL or an `__itt_id`.
    unsafe fn behind(id: *const Id) -> Two {
        // SAFETY: NULL, or the program's own id, which it keeps while it makes this call.
        unsafe { id.as_ref() }.map_or((0, 0), |id| id.two())
    }
}

/// Makes callbacks that only lay ids flat.
macro_rules! flat {
    ($($name:ident($($arg:ident: $ty:ty),*) => ($($passed:expr),*);)*) => { $(
        pub unsafe extern "C" fn $name($($arg: $ty),*) {
            // SAFETY: see the head of this file.
            unsafe { wrappers::$name($($passed),*) };
        }
    )* };
}

flat! {
    __itt_id_create(d: P, id: Id) => (d, id.address, id.extra);
    __itt_id_destroy(d: P, id: Id) => (d, id.address, id.extra);
    __itt_task_begin(d: P, id: Id, p: Id, name: P) => (d, id.address, id.extra, p.address, p.extra, name);
    __itt_task_begin_fn(d: P, id: Id, p: Id, f: u64) => (d, id.address, id.extra, p.address, p.extra, f);
    __itt_task_end(d: P) => (d);
    __itt_task_begin_overlapped(d: P, id: Id, p: Id, name: P)
        => (d, id.address, id.extra, p.address, p.extra, name);
    __itt_task_end_overlapped(d: P, id: Id) => (d, key(Kind::Task, d, id.address, id.extra));
    __itt_task_group(d: P, id: Id, p: Id, name: P) => (d, id.address, id.extra, p.address, p.extra, name);
    __itt_region_begin(d: P, id: Id, p: Id, name: P) => (d, id.address, id.extra, p.address, p.extra, name);
    __itt_region_end(d: P, id: Id) => (d, key(Kind::Region, d, id.address, id.extra));
    __itt_frame_begin(frame: P) => (frame);
    __itt_frame_end(frame: P) => (key(Kind::OldFrame, frame, 0, 0));
    __itt_marker(d: P, id: Id, name: P, scope: u32) => (d, id.address, id.extra, name, scope);
    __itt_metadata_str_add(d: P, id: Id, name: P, data: *const i8, length: usize)
        => (d, id.address, id.extra, name, data, length as u64);
    __itt_metadata_str_add_with_scope(d: P, scope: u32, name: P, data: *const i8, length: usize)
        => (d, scope, name, data, length as u64);
    __itt_relation_add_to_current(d: P, relation: u32, tail: Id) => (d, relation, tail.address, tail.extra);
    __itt_relation_add(d: P, head: Id, relation: u32, tail: Id)
        => (d, head.address, head.extra, relation, tail.address, tail.extra);
    __itt_id_create_ex(d: P, clock: P, time: u64, id: Id) => (d, clock, time, id.address, id.extra);
    __itt_id_destroy_ex(d: P, clock: P, time: u64, id: Id) => (d, clock, time, id.address, id.extra);
    __itt_task_begin_ex(d: P, clock: P, time: u64, id: Id, p: Id, name: P)
        => (d, clock, time, id.address, id.extra, p.address, p.extra, name);
    __itt_task_begin_fn_ex(d: P, clock: P, time: u64, id: Id, p: Id, f: u64)
        => (d, clock, time, id.address, id.extra, p.address, p.extra, f);
    __itt_task_begin_overlapped_ex(d: P, clock: P, time: u64, id: Id, p: Id, name: P)
        => (d, clock, time, id.address, id.extra, p.address, p.extra, name);
    __itt_task_end_overlapped_ex(d: P, clock: P, time: u64, id: Id) => (d, clock, time, id.address, id.extra);
    __itt_marker_ex(d: P, clock: P, time: u64, id: Id, name: P, scope: u32)
        => (d, clock, time, id.address, id.extra, name, scope);
    __itt_thread_set_name(name: *const i8) => (hetrace_interpose::task(), name);
    __itt_counter_set_value(counter: P, value: *const c_void)
        => (counter, objects::value_type(counter), value_of(objects::value_type(counter), value));
    __itt_counter_set_value_v3(counter: P, value: *const c_void)
        => (counter, objects::value_type(counter), value_of(objects::value_type(counter), value));
    __itt_counter_set_value_ex(counter: P, clock: P, time: u64, value: *const c_void)
        => (counter, clock, time, objects::value_type(counter), value_of(objects::value_type(counter), value));
    __itt_metadata_add(d: P, id: Id, name: P, of: u32, count: usize, data: *const c_void)
        => (d, id.address, id.extra, name, of, count as u64, data, bytes_of(of, count));
    __itt_metadata_add_with_scope(d: P, scope: u32, name: P, of: u32, count: usize, data: *const c_void)
        => (d, scope, name, of, count as u64, data, bytes_of(of, count));
    __itt_formatted_metadata_add_overlapped(d: P, id: Id, format: P) => (d, id.address, id.extra, format);
    __itt_histogram_submit(histogram: P, length: usize, x: *const c_void, y: *const c_void)
        => (histogram, objects::types(histogram)[0], objects::types(histogram)[1], length as u64,
            x, there(x, bytes_of(objects::types(histogram)[0], length)), y, there(y, bytes_of(objects::types(histogram)[1], length)));
    __itt_heap_allocate_end(heap: P, at: *const u64, size: usize, initialized: i32)
        => (heap, behind(at), size as u64, initialized);
    __itt_heap_reallocate_end(heap: P, from: u64, at: *const u64, size: usize, initialized: i32)
        => (heap, from, behind(at), size as u64, initialized);
}

pub unsafe extern "C" fn __itt_frame_begin_v3(domain: P, id: *const Id) {
    // SAFETY: see the head of this file.
    unsafe {
        let (id, extra) = Id::behind(id);
        wrappers::__itt_frame_begin_v3(domain, id, extra, domain);
    }
}

pub unsafe extern "C" fn __itt_frame_end_v3(domain: P, id: *const Id) {
    // SAFETY: see the head of this file.
    unsafe {
        let (id, extra) = Id::behind(id);
        wrappers::__itt_frame_end_v3(domain, key(Kind::Frame, domain, id, extra));
    }
}

pub unsafe extern "C" fn __itt_frame_submit_v3(domain: P, id: *const Id, begin: u64, end: u64) {
    // SAFETY: see the head of this file.
    unsafe {
        let (id, extra) = Id::behind(id);
        wrappers::__itt_frame_submit_v3(domain, id, extra, begin, end);
    }
}

/// The handle of an event or a mark, of its number.
fn numbered(number: i32) -> P {
    std::ptr::without_provenance_mut(number.unsigned_abs() as usize)
}

pub unsafe extern "C" fn __itt_event_create(name: *const c_char, length: i32) -> i32 {
    // SAFETY: see the head of this file; a text of so many bytes.
    unsafe {
        let kept = objects::text_of(name, usize::try_from(length).unwrap_or(0));
        wrappers::__itt_event_create(kept.cast()) as usize as i32
    }
}

pub unsafe extern "C" fn __itt_event_start(event: i32) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_event_start(numbered(event)) };
    0
}

pub unsafe extern "C" fn __itt_event_end(event: i32) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_event_end(key(Kind::Event, numbered(event), 0, 0)) };
    0
}

pub unsafe extern "C" fn __itt_mark_create(name: *const i8) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_mark_create(name) as usize as i32 }
}

pub unsafe extern "C" fn __itt_mark(mark: i32, parameter: *const i8) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_mark(numbered(mark), parameter) }
}

pub unsafe extern "C" fn __itt_mark_off(mark: i32) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_mark_off(numbered(mark)) }
}

pub unsafe extern "C" fn __itt_mark_global(mark: i32, parameter: *const i8) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_mark_global(numbered(mark), parameter) }
}

pub unsafe extern "C" fn __itt_mark_global_off(mark: i32) -> i32 {
    // SAFETY: see the head of this file.
    unsafe { wrappers::__itt_mark_global_off(numbered(mark)) }
}

/// Bytes of a value of an `__itt_metadata_type`; 0 of one that is not known.
fn size_of_value(value_type: u32) -> usize {
    match value_type {
        1 | 2 | 8 => 8,
        3 | 4 | 7 => 4,
        5 | 6 => 2,
        _ => 0,
    }
}

fn bytes_of(value_type: u32, count: usize) -> u64 {
    size_of_value(value_type).saturating_mul(count) as u64
}

/// Bytes behind an address: none behind NULL.
fn there(data: *const c_void, bytes: u64) -> u64 {
    if data.is_null() { 0 } else { bytes }
}

/// The bits of a value.
///
/// # Safety
/// `value` is NULL or points at a value of this type.
unsafe fn value_of(value_type: u32, value: *const c_void) -> u64 {
    if value.is_null() {
        return 0;
    }
    // SAFETY: contract: so many bytes are there.
    unsafe {
        match size_of_value(value_type) {
            8 => value.cast::<u64>().read_unaligned(),
            4 => value.cast::<u32>().read_unaligned().into(),
            2 => value.cast::<u16>().read_unaligned().into(),
            _ => 0,
        }
    }
}

/// # Safety
/// `at` is NULL or points at an address.
unsafe fn behind(at: *const u64) -> u64 {
    // SAFETY: not NULL, so the program's own word, which it keeps while it makes this call.
    if at.is_null() { 0 } else { unsafe { at.read_unaligned() } }
}

#[cfg(test)]
mod tests {
    use std::ptr::null;

    use super::*;

    #[test]
    fn values_are_read_as_large_as_they_are() {
        let word = 0x1122_3344_5566_7788_u64;
        let at: *const c_void = (&raw const word).cast();
        // SAFETY: eight bytes, or NULL.
        let read = |of| unsafe { value_of(of, at) };
        assert_eq!([1, 3, 5, 0].map(read), [word, 0x5566_7788, 0x7788, 0]);
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { value_of(1, null()) }, 0);
        assert_eq!((bytes_of(7, 3), bytes_of(9, 3), bytes_of(8, usize::MAX)), (12, 0, u64::MAX));
    }
}
