//! `--kernel-args`: what kernels are given. The values themselves are in the
//! calls that set them.

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::ring::abi::{ObjectRecord, object, option};

use super::query::{Memory, answer, context_devices, handles, text, version, word};
use super::{objects, wanted};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use hetrace_interpose::objects::{Cause, record_object};

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

/// What a kernel says of itself that is a number or handle.
fn ask<T: Copy + Default>(kernel: P, name: u32) -> Option<T> {
    word(|size, at| {
        // SAFETY: `word` passes room for `size` bytes; the kernel is the program's.
        unsafe { real::clGetKernelInfo(kernel, name, size, at, null_mut()) }
    })
}

/// A kernel that can be asked for its arguments: `clGetKernelArgInfo` came with OpenCL 1.2; before, there may
/// not even be a place for it.
#[derive(Debug, Clone, Copy)]
pub struct Described(P);

impl Described {
    /// `None` if one of the kernel's devices is older.
    pub fn new(kernel: P) -> Option<Described> {
        let context: u64 = ask(kernel, CL_KERNEL_CONTEXT)?;
        let devices = context_devices(context as P)?;
        handles(&devices).all(|device| version(device) >= (1, 2)).then_some(Described(kernel))
    }

    /// What is said of an argument that is a number.
    fn word<T: Copy + Default>(self, index: u32, name: u32) -> Option<T> {
        word(|size, at| {
            // SAFETY: `word` passes room for `size` bytes; the kernel is the program's, and `new` has seen that
            // its devices know the question.
            unsafe { real::clGetKernelArgInfo(self.0, index, name, size, at, null_mut()) }
        })
    }

    /// What is said of an argument that is text.
    fn text(self, index: u32, name: u32) -> Option<Memory> {
        answer(|size, at, ret| {
            // SAFETY: `answer` passes room for `size` bytes, or a place for the size; the kernel is the
            // program's, and `new` has seen that its devices know the question.
            unsafe { real::clGetKernelArgInfo(self.0, index, name, size, at, ret) }
        })
    }

    /// The address space of an argument as its number; `None` if it is not known.
    pub fn address(self, index: u32) -> Option<u32> {
        self.word(index, CL_KERNEL_ARG_ADDRESS_QUALIFIER)
    }
}

/// How many arguments a kernel has; 0 if it is not known.
pub fn arguments(kernel: P) -> u32 {
    ask(kernel, CL_KERNEL_NUM_ARGS).unwrap_or(0)
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
    let program: u64 = ask(kernel, CL_KERNEL_PROGRAM).unwrap_or(0);
    let name = name(kernel);
    let record = ObjectRecord {
        what: object::KERNEL,
        object: kernel as u64,
        other: program,
        index: count,
        ..ObjectRecord::default()
    };
    record_object(cause, record, &[name]);
    let described = if count > 0 { Described::new(kernel) } else { None };
    for index in 0..count {
        argument(cause, kernel, name, index, described);
    }
}

fn argument(cause: Cause, kernel: P, kernel_name: &[u8], index: u32, described: Option<Described>) {
    let number = |name| described.and_then(|d| d.word::<u32>(index, name));
    let words = |name| described.and_then(|d| d.text(index, name));
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
    let qualifiers: Option<u64> = described.and_then(|d| d.word(index, CL_KERNEL_ARG_TYPE_QUALIFIER));
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
