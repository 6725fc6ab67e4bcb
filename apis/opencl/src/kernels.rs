//! Names of kernels by handle.

use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_interpose::commands::arena;
use hetrace_interpose::table::Table;

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Longest name kept, without its NUL.
pub const NAME: usize = 247;
const CL_KERNEL_FUNCTION_NAME: u32 = 0x1190;

/// Handle → name in the arena.
static KERNELS: Table<16384> = Table::new();
/// Hash of a name → the name in the arena, so that equal names share a place.
static NAMES: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

/// The name of a kernel with its NUL; NULL if it has none.
pub fn name(kernel: P) -> *const u8 {
    match KERNELS.get(kernel as u64) {
        Some(name) => name as *const u8,
        None => ask(kernel),
    }
}

/// A kernel was created: its handle may have belonged to another before.
pub fn forget(kernel: P) {
    KERNELS.remove(kernel as u64);
}

#[cold]
fn ask(kernel: P) -> *const u8 {
    let mut buffer = [0u8; NAME + 1];
    // SAFETY: room for as many bytes as we say; the kernel is the program's.
    let error = unsafe {
        real::clGetKernelInfo(
            kernel,
            CL_KERNEL_FUNCTION_NAME,
            NAME as u64,
            buffer.as_mut_ptr().cast(),
            null_mut(),
        )
    };
    if error != 0 {
        return std::ptr::null();
    }
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(NAME);
    let Some(name) = intern(buffer.get(..length).unwrap_or_default()) else { return std::ptr::null() };
    KERNELS.set(kernel as u64, name as u64);
    name
}

/// The one copy of a name.
fn intern(name: &[u8]) -> Option<*const u8> {
    let hash =
        name.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let slot = NAMES.get((hash >> 40) as usize & 4095)?;
    let there = slot.load(Ordering::Acquire) as *const u8;
    // SAFETY: a NUL-terminated name in the arena, never changed.
    if !there.is_null() && unsafe { std::ffi::CStr::from_ptr(there.cast()) }.to_bytes() == name {
        return Some(there);
    }
    let place = arena(name.len() + 1)?;
    // SAFETY: the arena gave one byte more than the name has.
    unsafe {
        place.copy_from_nonoverlapping(name.as_ptr(), name.len());
        *place.add(name.len()) = 0;
    }
    slot.store(place as u64, Ordering::Release);
    Some(place)
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn equal_names_share_a_place() {
        let text = |name: Option<*const u8>| {
            // SAFETY: what `intern` returns is NUL-terminated and stays.
            name.map(|n| unsafe { CStr::from_ptr(n.cast()) }.to_bytes().to_vec())
        };
        let name = intern(b"gemm");
        assert_eq!(text(name), Some(b"gemm".to_vec()));
        assert_eq!(intern(b"gemm"), name);
        let longest = [b'k'; NAME];
        assert_eq!(text(intern(&longest)), Some(longest.to_vec()));
        assert_eq!(text(intern(b"")), Some(Vec::new()));
        // Names that share a slot push each other out and stay what they are.
        let all: Vec<_> =
            (0..5000).map(|i| (format!("kernel{i}"), intern(format!("kernel{i}").as_bytes()))).collect();
        for (expected, name) in all {
            assert_eq!(text(name), Some(expected.into_bytes()));
        }
    }
}
