//! `--sources` and `--build-logs`: the code that modules are made of, with which options they are built, and what comes of it.
//!
//! Nothing is asked of the loader that the program would not ask: a log is read where the program has asked for one and the
//! build has succeeded. Of a build that failed it is recorded when the program reads it, for the loader of 2022 ends a program
//! that reads such a log where there are several drivers.

use core::ffi::CStr;
use core::ptr::null_mut;

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::objects::{Cause, INLINE, inline_or_stored, record_object, wanted};
use hetrace_interpose::ring::abi::{ObjectRecord, object, option};
use hetrace_interpose::store_blob;
use hetrace_interpose::table::Table;

use super::device::{filled, member};
use crate::device::events::SUCCESS;
use crate::generated::prelude::P;
use crate::generated::real;

/// Where members of `ze_module_desc_t` lie.
const FORMAT: usize = 16;
const INPUT_SIZE: usize = 24;
const INPUT: usize = 32;
const FLAGS: usize = 40;
/// `ZE_MODULE_FORMAT_IL_SPIRV`; what is not that is a device's own code.
const SPIRV: u32 = 0;

/// Log of a build that failed → its device.
static FAILED: Table<256> = Table::new();

pub unsafe fn zeModuleCreate(
    time: u64,
    context: P,
    device: P,
    desc: *const [u8; 56],
    module: *mut P,
    log: *mut P,
) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeModuleCreate(context, device, desc, module, log) };
    if desc.is_null() || !(wanted(option::SOURCES) || wanted(option::BUILD_LOGS)) {
        return result;
    }
    let _errno = ErrnoGuard::new();
    let cause = Cause::here(time);
    // SAFETY: a call that made a module has filled its place in.
    let made = if result == SUCCESS { unsafe { filled(module) } } else { None };
    if let Some(made) = made.filter(|_| wanted(option::SOURCES)) {
        // SAFETY: the call succeeded, so it has read the description and the code that this points at.
        unsafe { code(cause, made, device, desc) };
    }
    if wanted(option::BUILD_LOGS) {
        // SAFETY: not NULL, and the driver has read the description, whatever it made of it.
        let flags: *const i8 = unsafe { member::<usize, 56>(desc, FLAGS) } as *const i8;
        // SAFETY: flags are NULL or a text that the call has read.
        unsafe { options(cause, made.unwrap_or(null_mut()), flags) };
        // SAFETY: where the program wants a log, a build fills its place in, also one that fails.
        let log = unsafe { filled(log) }.filter(|log| !log.is_null());
        match (made, log) {
            (Some(made), Some(log)) => built(cause, (made, device), log),
            (Some(_), None) => {}
            (None, log) => {
                if let Some(log) = log {
                    FAILED.set(log as u64, device as u64);
                }
                said(cause, (null_mut(), device), result.cast_signed(), b"");
            }
        }
    }
    result
}

pub unsafe fn zeModuleBuildLogGetString(time: u64, log: P, size: *mut u64, text: *mut i8) -> u32 {
    // SAFETY: the program's own arguments.
    let result = unsafe { real::zeModuleBuildLogGetString(log, size, text) };
    if result == SUCCESS
        && !text.is_null()
        && wanted(option::BUILD_LOGS)
        && let Some(device) = FAILED.get(log as u64).filter(|device| *device != 0)
    {
        let _errno = ErrnoGuard::new();
        FAILED.set(log as u64, 0);
        // SAFETY: the call succeeded and the text's place is not NULL, so a text stands there.
        let text = unsafe { CStr::from_ptr(text.cast()) };
        said(Cause::here(time), (null_mut(), device as P), 0, text.to_bytes());
    }
    result
}

/// Stores a module's code.
///
/// # Safety
/// The description is that of a call that succeeded.
unsafe fn code(cause: Cause, module: P, device: P, desc: *const [u8; 56]) {
    // SAFETY: the call that succeeded has read these members.
    let (format, size, at) = unsafe {
        (
            member::<u32, 56>(desc, FORMAT),
            member::<u64, 56>(desc, INPUT_SIZE),
            member::<usize, 56>(desc, INPUT),
        )
    };
    // Programs of several parts have them behind the description.
    if at == 0 || size == 0 {
        return;
    }
    // SAFETY: the call that succeeded has read so many bytes there.
    let hash = unsafe { store_blob(&[(at as *const u8, size as usize)]) };
    let (what, other) = if format == SPIRV { (object::IL, 0) } else { (object::BINARY, device as u64) };
    let object = module as u64;
    let record =
        ObjectRecord { what, object, other, length: size, stored: size, hash, ..ObjectRecord::default() };
    record_object(cause, record, &[]);
}

/// Records the options of a build.
///
/// # Safety
/// `flags` is NULL or NUL-terminated.
unsafe fn options(cause: Cause, module: P, flags: *const i8) {
    // SAFETY: not NULL, so it is NUL-terminated.
    let text = if flags.is_null() { &[] } else { unsafe { CStr::from_ptr(flags.cast()) }.to_bytes() };
    let mut record =
        ObjectRecord { what: object::BUILD_OPTIONS, object: module as u64, ..ObjectRecord::default() };
    let shown = inline_or_stored(text, &mut record);
    record_object(cause, record, &[b"build", text.get(..shown).unwrap_or_default()]);
}

/// Reads and records what a build that succeeded says.
fn built(cause: Cause, of: (P, P), log: P) {
    let mut size = 0;
    // SAFETY: the log is that of a build that succeeded, and the place of its size is ours.
    let asked = unsafe { real::zeModuleBuildLogGetString(log, &raw mut size, null_mut()) };
    let mut text = [0_u8; INLINE];
    if asked != SUCCESS || size == 0 {
        return said(cause, of, 0, b"");
    }
    if size as usize > text.len() {
        // Far longer than what compilers say of code that they take: only its length is said.
        return record(cause, of, 0, ObjectRecord { length: size - 1, ..ObjectRecord::default() }, b"");
    }
    // SAFETY: the log as before, and room for so many bytes.
    let asked = unsafe { real::zeModuleBuildLogGetString(log, &raw mut size, text.as_mut_ptr().cast()) };
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_bytes();
    said(cause, of, 0, if asked == SUCCESS { text } else { b"" });
}

fn said(cause: Cause, of: (P, P), code: i32, text: &[u8]) {
    let mut log = ObjectRecord::default();
    let shown = inline_or_stored(text, &mut log);
    record(cause, of, code, log, text.get(..shown).unwrap_or_default());
}

/// Records what a build for a device said; without a module, of a build that failed.
fn record(cause: Cause, (module, device): (P, P), code: i32, log: ObjectRecord, text: &[u8]) {
    let status: &[u8] = if module.is_null() { b"error" } else { b"success" };
    let record =
        ObjectRecord { what: object::BUILD_LOG, object: module as u64, other: device as u64, code, ..log };
    record_object(cause, record, &[b"build", status, text]);
}
