//! Kernels by handle: their names, and how often they are launched.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use hetrace_interpose::commands::sample::Counted;
use hetrace_interpose::commands::{arena, text};
use hetrace_interpose::record_with_text;
use hetrace_interpose::ring::abi::{FunctionRecord, special};
use hetrace_interpose::table::Table;

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Longest name kept, without its NUL.
pub const NAME: usize = 247;
const CL_KERNEL_FUNCTION_NAME: u32 = 0x1190;

/// A kernel that was met. Kernels with equal names are one.
#[repr(C)]
#[derive(Debug)]
pub struct Kernel {
    /// By which commands and counts name it; never 0.
    pub id: u64,
    /// Its launches, where not all are timed.
    pub counted: Counted,
    /// Another with the same hash, which was met before.
    before: *const Kernel,
    // The name stands behind.
}

/// Handle → the kernel, in the arena.
static KERNELS: Table<16384> = Table::new();
/// Hash of a name → the kernels that have it, the last one first.
static NAMES: [AtomicPtr<Kernel>; 4096] = [const { AtomicPtr::new(null_mut()) }; 4096];
static IDS: AtomicU64 = AtomicU64::new(0);

impl Kernel {
    /// The name with its NUL.
    pub fn name(&self) -> *const u8 {
        // SAFETY: `make` put the name behind, in the same piece of the arena.
        unsafe { std::ptr::from_ref(self).add(1).cast() }
    }
}

/// The name of a kernel with its NUL; NULL if it has none.
#[inline]
pub fn name(kernel: P) -> *const u8 {
    get(kernel).map_or(std::ptr::null(), Kernel::name)
}

/// The kernel of a handle; none if it is NULL or has no name.
#[inline]
pub fn get(kernel: P) -> Option<&'static Kernel> {
    if kernel.is_null() {
        return None;
    }
    match KERNELS.get(kernel as u64) {
        // SAFETY: `ask` put the address of a kernel there, and none is ever freed.
        Some(known) => unsafe { (known as *const Kernel).as_ref() },
        None => ask(kernel),
    }
}

/// All kernels that were met, each with its id.
pub fn all() -> impl Iterator<Item = (u64, &'static Counted)> {
    NAMES
        .iter()
        .flat_map(|slot| with_hash(slot.load(Ordering::Acquire)))
        .map(|kernel| (kernel.id, &kernel.counted))
}

/// A kernel and those that were met before with the same hash.
fn with_hash(kernel: *const Kernel) -> impl Iterator<Item = &'static Kernel> {
    // SAFETY: null, or made by `make` and never freed.
    let at = |kernel: *const Kernel| -> Option<&'static Kernel> { unsafe { kernel.as_ref() } };
    std::iter::successors(at(kernel), move |kernel| at(kernel.before))
}

/// What counts the launches of a kernel, and its id. With the first launch in this process its name is recorded.
pub fn counted(kernel: P) -> Option<(u64, &'static Counted)> {
    let kernel = get(kernel)?;
    if kernel.counted.is_new() {
        let record = FunctionRecord { function: kernel.id, ..FunctionRecord::default() };
        // SAFETY: `make` left a NUL behind the name.
        record_with_text(special::FUNCTION, &record, unsafe { text(kernel.name()) });
    }
    Some((kernel.id, &kernel.counted))
}

/// A kernel was created: its handle may have belonged to another before.
pub fn forget(kernel: P) {
    KERNELS.remove(kernel as u64);
}

#[cold]
fn ask(kernel: P) -> Option<&'static Kernel> {
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
        return None;
    }
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(NAME);
    let known = intern(buffer.get(..length).unwrap_or_default())?;
    KERNELS.set(kernel as u64, std::ptr::from_ref(known) as u64);
    Some(known)
}

/// The one kernel of a name.
fn intern(name: &[u8]) -> Option<&'static Kernel> {
    let hash =
        name.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let slot = NAMES.get((hash >> 40) as usize & 4095)?;
    let mut made: *mut Kernel = null_mut();
    loop {
        let there = slot.load(Ordering::Acquire);
        // SAFETY: `make` left a NUL behind each name.
        let is_it = |kernel: &&Kernel| unsafe { text(kernel.name()) }.to_bytes() == name;
        // If another thread was quicker, ours stays where it is and is never used.
        if let Some(known) = with_hash(there).find(is_it) {
            return Some(known);
        }
        if made.is_null() {
            made = make(name)?;
        }
        // SAFETY: made just now, and nobody else knows the place yet.
        unsafe { (*made).before = there };
        if slot.compare_exchange(there, made, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // SAFETY: made above, and never freed or changed again.
            return unsafe { made.as_ref() };
        }
    }
}

fn make(name: &[u8]) -> Option<*mut Kernel> {
    let place = arena(size_of::<Kernel>() + name.len() + 1)?.cast::<Kernel>();
    let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: the arena gave room for a kernel, at a multiple of 8, and one byte more than the name has.
    unsafe {
        place.write(Kernel { id, counted: Counted::new(), before: std::ptr::null() });
        let text = place.add(1).cast::<u8>();
        text.copy_from_nonoverlapping(name.as_ptr(), name.len());
        *text.add(name.len()) = 0;
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_a_place() {
        let name = |kernel: Option<&'static Kernel>| {
            // SAFETY: a kernel's name ends with a NUL, and stays.
            kernel.map(|k| unsafe { text(k.name()) }.to_bytes().to_vec())
        };
        let id = |kernel: Option<&'static Kernel>| kernel.map(|k| k.id);
        let gemm = intern(b"gemm");
        assert_eq!(name(gemm), Some(b"gemm".to_vec()));
        assert_eq!(id(intern(b"gemm")), id(gemm));
        let longest = [b'k'; NAME];
        assert_eq!(name(intern(&longest)), Some(longest.to_vec()));
        assert_eq!(name(intern(b"")), Some(Vec::new()));
        // Names that share a slot stay what they are; all are counted, each once.
        let kernels: Vec<_> =
            (0..5000).map(|i| (format!("kernel{i}"), intern(format!("kernel{i}").as_bytes()))).collect();
        let mut ids: Vec<u64> = all().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(kernels.iter().all(|(_, k)| id(*k).is_some_and(|id| ids.binary_search(&id).is_ok())));
        let again = |i: usize| intern(format!("kernel{i}").as_bytes());
        assert!(kernels.iter().enumerate().all(|(i, (_, k))| id(*k) == id(again(i))));
        for (expected, kernel) in kernels {
            assert_eq!(name(kernel), Some(expected.into_bytes()));
        }
    }
}
