//! `--kernel-args`: what kernels are given. The values themselves are in the
//! calls that set them.

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::ring::abi::{ObjectRecord, object, option};

use super::query::{Memory, answer, context_devices, handles, text, version, word};
use super::record::{Cause, record_object};
use super::{objects, wanted};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const CL_KERNEL_NUM_ARGS: u32 = 0x1191;
const CL_KERNEL_CONTEXT: u32 = 0x1193;
const CL_KERNEL_PROGRAM: u32 = 0x1194;
const CL_KERNEL_ARG_ADDRESS_QUALIFIER: u32 = 0x1196;
const CL_KERNEL_ARG_ACCESS_QUALIFIER: u32 = 0x1197;
const CL_KERNEL_ARG_TYPE_NAME: u32 = 0x1198;
const CL_KERNEL_ARG_TYPE_QUALIFIER: u32 = 0x1199;
const CL_KERNEL_ARG_NAME: u32 = 0x119A;

/// Longest text of an argument that is recorded.
const TEXT: usize = 1000;
const UNKNOWN: &[u8] = b"unknown";

fn ask(kernel: P, name: u32, size: u64, at: P) -> i32 {
    // SAFETY: room as said; the kernel is the program's.
    unsafe { real::clGetKernelInfo(kernel, name, size, at, null_mut()) }
}

fn ask_arg(kernel: P, index: u32, name: u32, size: u64, at: P, ret: *mut u64) -> i32 {
    // SAFETY: room as said, or none; the kernel is the program's. Its devices have version 1.2 or newer, as
    // every caller has seen by `has_arg_info`.
    unsafe { real::clGetKernelArgInfo(kernel, index, name, size, at, ret) }
}

/// How many arguments a kernel has; 0 if it is not known.
pub fn arguments(kernel: P) -> u32 {
    word(|size, at| ask(kernel, CL_KERNEL_NUM_ARGS, size, at)).unwrap_or(0)
}

/// The name of a kernel.
pub fn name(kernel: P) -> &'static [u8] {
    let name = crate::kernels::name(kernel);
    if name.is_null() {
        return b"";
    }
    // SAFETY: NUL-terminated, in the arena, never changed.
    unsafe { std::ffi::CStr::from_ptr(name.cast()) }.to_bytes()
}

/// `clGetKernelArgInfo` came with OpenCL 1.2; before, there may not even be a
/// place for it.
pub fn has_arg_info(kernel: P) -> bool {
    let context: Option<u64> = word(|size, at| ask(kernel, CL_KERNEL_CONTEXT, size, at));
    let devices = context.and_then(|c| context_devices(c as P));
    devices.is_some_and(|d| handles(&d).all(|device| version(device) >= (1, 2)))
}

/// The address space of an argument as its number; `None` if it is not known.
pub fn address(kernel: P, index: u32) -> Option<u32> {
    word(|size, at| ask_arg(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, size, at, null_mut()))
}

/// A kernel was made; `source` is the one it was cloned from.
pub fn made(time: u64, kernel: P, source: P) {
    if kernel.is_null() {
        return;
    }
    if objects::active() {
        let _errno = ErrnoGuard::new();
        objects::kernel_made(kernel, source, arguments(kernel));
    }
    if wanted(option::KERNEL_ARGS) {
        let _errno = ErrnoGuard::new();
        describe(Cause::here(time), kernel);
    }
}

#[cold]
fn describe(cause: Cause, kernel: P) {
    let count = arguments(kernel);
    let program: u64 = word(|size, at| ask(kernel, CL_KERNEL_PROGRAM, size, at)).unwrap_or(0);
    let name = name(kernel);
    let record = ObjectRecord {
        what: object::KERNEL,
        object: kernel as u64,
        other: program,
        index: count,
        ..ObjectRecord::default()
    };
    record_object(cause, record, &[name]);
    let known = count > 0 && has_arg_info(kernel);
    for index in 0..count {
        argument(cause, kernel, name, index, known);
    }
}

fn argument(cause: Cause, kernel: P, kernel_name: &[u8], index: u32, known: bool) {
    let number = |name| {
        let value = known.then(|| word::<u32>(|size, at| ask_arg(kernel, index, name, size, at, null_mut())));
        value.flatten()
    };
    let words = |name| -> Option<Memory> {
        known.then(|| answer(|size, at, ret| ask_arg(kernel, index, name, size, at, ret))).flatten()
    };
    let address: &[u8] = match number(CL_KERNEL_ARG_ADDRESS_QUALIFIER) {
        Some(0x119B) => b"global",
        Some(0x119C) => b"local",
        Some(0x119D) => b"constant",
        Some(0x119E) => b"private",
        _ => UNKNOWN,
    };
    let access: &[u8] = match number(CL_KERNEL_ARG_ACCESS_QUALIFIER) {
        Some(0x11A0) => b"read_only",
        Some(0x11A1) => b"write_only",
        Some(0x11A2) => b"read_write",
        Some(0x11A3) => b"none",
        _ => UNKNOWN,
    };
    let qualifiers: Option<u64> = known
        .then(|| word(|size, at| ask_arg(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, size, at, null_mut())))
        .flatten();
    let mut buffer = [0u8; 64];
    let qualifiers = match qualifiers {
        Some(bits) => qualifier_text(bits, &mut buffer),
        None => UNKNOWN,
    };
    let (name, ty) = (words(CL_KERNEL_ARG_NAME), words(CL_KERNEL_ARG_TYPE_NAME));
    let name = name.as_ref().map_or(UNKNOWN, |m| cut(m.bytes()));
    let ty = ty.as_ref().map_or(UNKNOWN, |m| cut(m.bytes()));
    let record =
        ObjectRecord { what: object::KERNEL_ARG, object: kernel as u64, index, ..ObjectRecord::default() };
    record_object(cause, record, &[kernel_name, name, ty, address, access, qualifiers]);
}

fn cut(bytes: &[u8]) -> &[u8] {
    let text = text(bytes);
    text.get(..TEXT).unwrap_or(text)
}

/// `const restrict` and so on.
fn qualifier_text(bits: u64, buffer: &mut [u8; 64]) -> &[u8] {
    const NAMES: [&[u8]; 4] = [b"const ", b"restrict ", b"volatile ", b"pipe "];
    let mut length = 0;
    for (_, name) in NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0) {
        if let Some(place) = buffer.get_mut(length..length + name.len()) {
            place.copy_from_slice(name);
            length += name.len();
        }
    }
    buffer.get(..length.saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualifiers_are_named_in_the_order_of_their_bits() {
        let named = |bits| String::from_utf8_lossy(qualifier_text(bits, &mut [0; 64])).into_owned();
        assert_eq!(named(0), "");
        assert_eq!(named(0b1), "const");
        assert_eq!(named(0b111), "const restrict volatile");
        assert_eq!(named(0b1000), "pipe");
        assert_eq!(named(u64::MAX), "const restrict volatile pipe", "bits that have no name are left out");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut(b"float*\0rest"), b"float*");
        assert_eq!(cut(&[b'x'; 3 * TEXT]).len(), TEXT);
    }
}
