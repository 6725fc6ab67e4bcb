//! `--sources`: what programs are made of.

use hetrace_interpose::ring::abi::{ObjectRecord, object, option};
use hetrace_interpose::table::Table;
use hetrace_interpose::{ErrnoGuard, store_blob};

use super::query::{Memory, answer};
use super::wanted;
use crate::generated::prelude::P;
use crate::generated::real;
use hetrace_interpose::objects::{Cause, record_object};

const CL_PROGRAM_IL: u32 = 0x1169;

/// Pieces of a source for which the stack is enough.
const PIECES: usize = 128;
type Part = (*const u8, usize);

/// Program → hash of its intermediate code.
static IL: Table<4096> = Table::new();

/// Stores a program's source.
///
/// # Safety
/// The arguments are those of a successful `clCreateProgramWithSource`.
pub unsafe fn source(time: u64, program: P, count: u32, strings: *const P, lengths: *const u64) {
    if !wanted(option::SOURCES) {
        return;
    }
    let _errno = ErrnoGuard::new();
    let count = count as usize;
    let mut few: [Part; PIECES] = [(std::ptr::null(), 0); PIECES];
    let many = if count > PIECES { Memory::new(count * size_of::<Part>()) } else { None };
    let parts: &mut [Part] = match &many {
        // SAFETY: a page-aligned range of ours, long enough, zeroed: valid parts.
        Some(memory) => unsafe { std::slice::from_raw_parts_mut(memory.at().cast(), count) },
        None => few.get_mut(..count).unwrap_or_default(),
    };
    let mut length = 0;
    for (i, part) in parts.iter_mut().enumerate() {
        // SAFETY: the call succeeded, so there are `count` texts, and a length
        // of 0 or none at all stands for a NUL at the end.
        unsafe {
            let at = (*strings.add(i)).cast_const().cast::<u8>();
            let given = if lengths.is_null() { 0 } else { *lengths.add(i) as usize };
            *part = (at, if given == 0 { libc::strlen(at.cast()) } else { given });
        }
        length += part.1 as u64;
    }
    // SAFETY: each part is a text of the program, just measured, which the successful call has read.
    let hash = unsafe { store_blob(parts) };
    let record = ObjectRecord { index: count as u32, ..stored(object::SOURCE, program, length, hash) };
    record_object(Cause::here(time), record, &[]);
}

fn stored(what: u32, program: P, length: u64, hash: u64) -> ObjectRecord {
    ObjectRecord { what, object: program as u64, length, stored: length, hash, ..ObjectRecord::default() }
}

/// Stores a program's intermediate code.
///
/// # Safety
/// `il` is readable for `length` bytes.
pub unsafe fn il(time: u64, program: P, il: *const u8, length: usize) {
    if !wanted(option::SOURCES) {
        return;
    }
    let _errno = ErrnoGuard::new();
    // SAFETY: `il` is readable for `length` bytes, and `store_blob` reads no more of it.
    let hash = unsafe { store_blob(&[(il, length)]) };
    IL.set(program as u64, hash);
    record_object(Cause::here(time), stored(object::IL, program, length as u64, hash), &[]);
}

/// Stores intermediate code of programs that were made by a function handed
/// out by address: when they are built.
pub fn il_of(time: u64, program: P) {
    if !wanted(option::SOURCES) {
        return;
    }
    let _errno = ErrnoGuard::new();
    let code = answer(|size, at, ret| {
        // SAFETY: room as said; the program is the program's.
        unsafe { real::clGetProgramInfo(program, CL_PROGRAM_IL, size, at, ret) }
    });
    let Some(code) = code.filter(|c| !c.bytes().is_empty()) else { return };
    let hash = hetrace_interpose::objects::store(code.bytes());
    if IL.get(program as u64) == Some(hash) {
        return;
    }
    IL.set(program as u64, hash);
    record_object(Cause::here(time), stored(object::IL, program, code.bytes().len() as u64, hash), &[]);
}

/// Stores the binaries that a program was made from.
///
/// # Safety
/// The arguments are those of a successful `clCreateProgramWithBinary`.
pub unsafe fn binaries(
    time: u64,
    program: P,
    count: u32,
    devices: *const P,
    lengths: *const u64,
    binaries: *const P,
) {
    if !wanted(option::SOURCES) {
        return;
    }
    let _errno = ErrnoGuard::new();
    for i in 0..count as usize {
        // SAFETY: the call succeeded, so each array has `count` elements.
        let (device, length, at) =
            unsafe { (*devices.add(i), *lengths.add(i), (*binaries.add(i)).cast_const().cast::<u8>()) };
        // SAFETY: the call succeeded, so it has read `length` bytes of each binary.
        let hash = unsafe { store_blob(&[(at, length as usize)]) };
        let record = stored(object::BINARY, program, length, hash);
        record_object(
            Cause::here(time),
            ObjectRecord { other: device as u64, index: i as u32, ..record },
            &[],
        );
    }
}
