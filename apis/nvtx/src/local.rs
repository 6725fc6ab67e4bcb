//! What NVTX's functions answer. Nothing real stands behind them, so the
//! generated `real` functions lead here.

use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::generated::prelude::{P, REAL};
use crate::generated::real::known;
use crate::generated::tables::NAMES;
use hetrace_interpose::ranges::{levels, named};

/// Something that no other in the process has: a number from 1 on. A forked
/// child counts on, and is distinguished by its process.
fn unique() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// The handle of a new object. Nothing lies behind it: programs only pass it back.
fn handle() -> P {
    without_provenance_mut(unique() as usize)
}

/// Domain 0 is the default one.
const DEFAULT: u64 = 0;

/// Functions that answer nothing have nothing to do.
macro_rules! nothing {
    ($($name:ident($($ty:ty),*);)*) => {
        $( unsafe extern "C" fn $name($(_: $ty),*) {} )*
    };
}

nothing! {
    nvtxInitialize(*const std::ffi::c_void);
    nvtxMarkEx(u32, u32, u32, u64, *const i8, P);
    nvtxMark(*const i8);
    nvtxNameCategory(u32, *const i8);
    nvtxNameOsThread(u32, *const i8);
    nvtxDomainDestroy(P);
    nvtxDomainMarkEx(P, u32, u32, u32, u64, *const i8, P);
    nvtxDomainNameCategory(P, u32, *const i8);
    nvtxDomainResourceDestroy(P);
    nvtxNameCuDevice(i32, *const i8);
    nvtxNameCuContext(P, *const i8);
    nvtxNameCuStream(P, *const i8);
    nvtxNameCuEvent(P, *const i8);
    nvtxNameCudaDevice(i32, *const i8);
    nvtxNameCudaStream(P, *const i8);
    nvtxNameCudaEvent(P, *const i8);
    nvtxNameClDevice(P, *const i8);
    nvtxNameClContext(P, *const i8);
    nvtxNameClCommandQueue(P, *const i8);
    nvtxNameClMemObject(P, *const i8);
    nvtxNameClSampler(P, *const i8);
    nvtxNameClProgram(P, *const i8);
    nvtxNameClEvent(P, *const i8);
    nvtxDomainSyncUserDestroy(P);
    nvtxDomainSyncUserAcquireStart(P);
    nvtxDomainSyncUserAcquireFailed(P);
    nvtxDomainSyncUserAcquireSuccess(P);
    nvtxDomainSyncUserReleasing(P);
    nvtxMarkPayload(P, u64, *const std::ffi::c_void, u64, u64);
}

unsafe extern "C" fn nvtxRangeStartEx(_: u32, _: u32, _: u32, _: u64, text: *const i8, registered: P) -> u64 {
    start(text, registered)
}

unsafe extern "C" fn nvtxRangeStart(text: *const i8) -> u64 {
    start(text, null_mut())
}

unsafe extern "C" fn nvtxDomainRangeStartEx(
    _: P,
    _: u32,
    _: u32,
    _: u32,
    _: u64,
    text: *const i8,
    registered: P,
) -> u64 {
    start(text, registered)
}

/// A range that any thread may end.
fn start(text: *const i8, registered: P) -> u64 {
    let id = unique();
    // SAFETY: the program's text and handle.
    unsafe { named::started(id, text, registered) };
    id
}

unsafe extern "C" fn nvtxRangeEnd(id: u64) {
    named::ended(id);
}

unsafe extern "C" fn nvtxDomainRangeEnd(_: P, id: u64) {
    named::ended(id);
}

unsafe extern "C" fn nvtxRangeEndPayload(_: P, id: u64, _: u64, _: *const std::ffi::c_void, _: u64, _: u64) {
    named::ended(id);
}

unsafe extern "C" fn nvtxRangePushEx(_: u32, _: u32, _: u32, _: u64, text: *const i8, registered: P) -> i32 {
    push(DEFAULT, text, registered)
}

unsafe extern "C" fn nvtxRangePush(text: *const i8) -> i32 {
    push(DEFAULT, text, null_mut())
}

unsafe extern "C" fn nvtxRangePop() -> i32 {
    pop(DEFAULT)
}

unsafe extern "C" fn nvtxDomainRangePushEx(
    domain: P,
    _: u32,
    _: u32,
    _: u32,
    _: u64,
    text: *const i8,
    registered: P,
) -> i32 {
    push(domain as u64, text, registered)
}

unsafe extern "C" fn nvtxDomainRangePop(domain: P) -> i32 {
    pop(domain as u64)
}

fn push(domain: u64, text: *const i8, registered: P) -> i32 {
    let level = levels::push(domain);
    // SAFETY: the program's text and handle.
    unsafe { named::pushed(domain, level, text, registered) };
    level
}

fn pop(domain: u64) -> i32 {
    let level = levels::pop(domain);
    named::popped(domain, level);
    level
}

unsafe extern "C" fn nvtxDomainCreate(_: *const i8) -> P {
    handle()
}

unsafe extern "C" fn nvtxDomainRegisterString(_: P, text: *const i8) -> P {
    let handle = handle();
    // SAFETY: the program's text.
    unsafe { named::registered(handle, text) };
    handle
}

unsafe extern "C" fn nvtxDomainResourceCreate(_: P, _: u32, _: u64, _: *const i8, _: P) -> P {
    handle()
}

unsafe extern "C" fn nvtxDomainSyncUserCreate(_: P, _: *const i8, _: P) -> P {
    handle()
}

/// Numbers from here on are given by tools, those below by programs.
const SCHEMAS: u64 = 1 << 32;

fn schema(wanted: u64) -> u64 {
    if wanted == 0 { SCHEMAS + unique() } else { wanted }
}

unsafe extern "C" fn nvtxPayloadSchemaRegister(
    _: P,
    _: *const i8,
    _: u64,
    _: u64,
    _: *const i8,
    _: u64,
    _: u64,
    wanted: u64,
) -> u64 {
    schema(wanted)
}

unsafe extern "C" fn nvtxPayloadEnumRegister(
    _: P,
    _: *const i8,
    _: *const i8,
    _: u64,
    _: u64,
    wanted: u64,
) -> u64 {
    schema(wanted)
}

unsafe extern "C" fn nvtxRangePushPayload(
    domain: P,
    _: u64,
    _: *const std::ffi::c_void,
    _: u64,
    _: u64,
) -> i32 {
    push(domain as u64, null(), null_mut())
}

unsafe extern "C" fn nvtxRangePopPayload(
    domain: P,
    _: u64,
    _: *const std::ffi::c_void,
    _: u64,
    _: u64,
) -> i32 {
    pop(domain as u64)
}

unsafe extern "C" fn nvtxRangeStartPayload(_: P, _: u64, _: *const std::ffi::c_void, _: u64, _: u64) -> u64 {
    start(null(), null_mut())
}

/// Leads all wrappers here, before anyone can call one.
pub fn fill() {
    hetrace_interpose::lead! { NAMES, REAL, known:
        nvtxInitialize nvtxMarkEx nvtxMark nvtxRangeStartEx nvtxRangeStart nvtxRangeEnd nvtxRangePushEx
        nvtxRangePush nvtxRangePop nvtxNameCategory nvtxNameOsThread nvtxDomainCreate nvtxDomainDestroy
        nvtxDomainRegisterString nvtxDomainMarkEx nvtxDomainRangeStartEx nvtxDomainRangeEnd
        nvtxDomainRangePushEx nvtxDomainRangePop nvtxDomainNameCategory nvtxDomainResourceCreate
        nvtxDomainResourceDestroy nvtxNameCuDevice nvtxNameCuContext nvtxNameCuStream nvtxNameCuEvent
        nvtxNameCudaDevice nvtxNameCudaStream nvtxNameCudaEvent nvtxNameClDevice nvtxNameClContext
        nvtxNameClCommandQueue nvtxNameClMemObject nvtxNameClSampler nvtxNameClProgram nvtxNameClEvent
        nvtxDomainSyncUserCreate nvtxDomainSyncUserDestroy nvtxDomainSyncUserAcquireStart
        nvtxDomainSyncUserAcquireFailed nvtxDomainSyncUserAcquireSuccess nvtxDomainSyncUserReleasing
        nvtxPayloadSchemaRegister nvtxPayloadEnumRegister nvtxMarkPayload nvtxRangePushPayload
        nvtxRangePopPayload nvtxRangeStartPayload nvtxRangeEndPayload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_an_implementation() {
        fill();
        for (name, real) in NAMES.iter().zip(&REAL) {
            assert!(!real.get().is_null(), "{name:?}");
        }
    }
}
