//! Kernels by handle: their names, and the sizes of their groups.

use hetrace_interpose::commands::named::{self, Function, NAME};
use hetrace_interpose::table::Table;

use crate::generated::prelude::P;
use crate::generated::real;

/// Handle → the function of its name.
static NAMES: Table<32768> = Table::new();
/// Handle → work-items of a group, 21 bits for each dimension.
static GROUPS: Table<32768> = Table::new();
const SIZE: u32 = 21;

/// A kernel was made, perhaps with a handle that was another's.
pub fn made(kernel: P, name: &[u8]) {
    gone(kernel);
    if let Some(function) = named::intern(name) {
        NAMES.set(kernel as u64, std::ptr::from_ref(function) as u64);
    }
}

/// A kernel is about to be destroyed.
pub fn gone(kernel: P) {
    NAMES.remove(kernel as u64);
    GROUPS.remove(kernel as u64);
}

/// What a launch of it runs; the API is asked about kernels that were made before anything was recorded.
pub fn of(kernel: P) -> Option<&'static Function> {
    if kernel.is_null() {
        return None;
    }
    match NAMES.get(kernel as u64) {
        // SAFETY: an address that was put there, of what is never freed.
        Some(known) => unsafe { (known as *const Function).as_ref() },
        None => ask(kernel),
    }
}

#[cold]
fn ask(kernel: P) -> Option<&'static Function> {
    let mut text = [0u8; NAME + 1];
    let mut size = text.len() as u64;
    // SAFETY: the handle that the program launches by, and room for as many bytes as we say.
    let error = unsafe { real::zeKernelGetName(kernel, &raw mut size, text.as_mut_ptr().cast()) };
    if error != 0 {
        return None;
    }
    let name = text.split(|b| *b == 0).next().unwrap_or_default();
    let function = named::intern(name)?;
    NAMES.set(kernel as u64, std::ptr::from_ref(function) as u64);
    Some(function)
}

/// The program has said how large groups are.
pub fn grouped(kernel: P, sizes: [u32; 3]) {
    if sizes.iter().any(|size| size >> SIZE != 0) {
        GROUPS.remove(kernel as u64);
        return;
    }
    let [x, y, z] = sizes.map(u64::from);
    GROUPS.set(kernel as u64, x | y << SIZE | z << (2 * SIZE));
}

/// How large groups are; 0 if the program did not say, or more than we keep.
pub fn group(kernel: P) -> [u64; 3] {
    let sizes = if kernel.is_null() { 0 } else { GROUPS.get(kernel as u64).unwrap_or(0) };
    [0, SIZE, 2 * SIZE].map(|bits| sizes >> bits & ((1 << SIZE) - 1))
}
