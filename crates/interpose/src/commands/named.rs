//! Functions that devices run, by their names: those with equal names are one. Kept for ever, in the arena, so that
//! commands in flight may refer to them.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use hetrace_ring::abi::{FunctionRecord, special};

use super::report::text;
use super::sample::Counted;
use crate::mapped::arena;
use crate::own;
use crate::record::record_with_text;
use crate::window::session_number;

/// Longest name kept, without its NUL.
pub const NAME: usize = 1023;
const HASHES: usize = 4096;

/// A function that was met.
#[repr(C)]
#[derive(Debug)]
pub struct Function {
    /// By which commands and counts name it; never 0.
    pub id: u64,
    /// Its launches, where not all are timed.
    pub counted: Counted,
    /// The process, and the number of the session, in whose trace it is named.
    announced: AtomicU64,
    /// Another with the same hash, which was met before.
    before: *const Function,
    // The name stands behind.
}

/// Hash of a name → the functions that have it, the last one first.
static NAMES: [AtomicPtr<Function>; HASHES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; HASHES];
static IDS: AtomicU64 = AtomicU64::new(0);

impl Function {
    /// The name with its NUL, which stays.
    pub fn name(&self) -> *const u8 {
        // SAFETY: `make` put the name behind, in the same piece of the arena.
        unsafe { std::ptr::from_ref(self).add(1).cast() }
    }

    /// Its id and what counts its launches. With the first in a session its name is recorded.
    pub fn counted(&'static self) -> (u64, &'static Counted) {
        let here = u64::from(own::pid()) << 32 | u64::from(session_number());
        // Asked first: an instruction that locks would wait for what the driver has written to the device.
        let is_known = self.announced.load(Ordering::Relaxed) == here;
        if !is_known && self.announced.swap(here, Ordering::Relaxed) != here {
            let record = FunctionRecord { function: self.id, ..FunctionRecord::default() };
            // SAFETY: `make` left a NUL behind the name.
            record_with_text(special::FUNCTION, &record, unsafe { text(self.name()) });
        }
        (self.id, &self.counted)
    }
}

/// All functions that were met, each with its id.
pub fn all() -> impl Iterator<Item = (u64, &'static Counted)> {
    NAMES
        .iter()
        .flat_map(|slot| with_hash(slot.load(Ordering::Acquire)))
        .map(|function| (function.id, &function.counted))
}

/// A function and those that were met before with the same hash.
fn with_hash(function: *const Function) -> impl Iterator<Item = &'static Function> {
    // SAFETY: null, or made by `make` and never freed.
    let at = |function: *const Function| -> Option<&'static Function> { unsafe { function.as_ref() } };
    std::iter::successors(at(function), move |function| at(function.before))
}

/// The one function of a name; `None` if it is empty, or no memory is left for more.
pub fn intern(name: &[u8]) -> Option<&'static Function> {
    if name.is_empty() { None } else { intern_any(name) }
}

/// As [`intern`], also of an empty name.
pub fn intern_any(name: &[u8]) -> Option<&'static Function> {
    let name = name.get(..NAME).unwrap_or(name);
    let hash =
        name.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let slot = NAMES.get(hash as usize % HASHES)?;
    let mut first = slot.load(Ordering::Acquire);
    let mut made: *mut Function = std::ptr::null_mut();
    loop {
        // SAFETY: `make` left a NUL behind each name.
        let known = with_hash(first).find(|f| unsafe { text(f.name()) }.to_bytes() == name);
        if known.is_some() {
            return known;
        }
        if made.is_null() {
            made = make(name)?;
        }
        // SAFETY: just made, and nobody else's until it hangs in the slot.
        unsafe { (*made).before = first };
        match slot.compare_exchange(first, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: made above, and never freed.
            Ok(_) => return unsafe { made.as_ref() },
            Err(other) => first = other,
        }
    }
}

fn make(name: &[u8]) -> Option<*mut Function> {
    let at = arena(size_of::<Function>() + name.len() + 1)?.cast::<Function>();
    let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: the arena gave room for both, zeroed, so the name ends.
    unsafe {
        at.write(Function {
            id,
            counted: Counted::new(),
            announced: AtomicU64::new(0),
            before: std::ptr::null(),
        });
        at.add(1).cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_one_function() {
        let one = intern(b"saxpy").expect("room");
        assert!(std::ptr::eq(one, intern(b"saxpy").expect("room")));
        let other = intern(b"scale").expect("room");
        assert!(one.id != 0 && one.id != other.id);
        // SAFETY: a name that ends.
        assert_eq!(unsafe { text(one.name()) }, c"saxpy");
        assert!(intern(b"").is_none());
        assert!(all().any(|(id, _)| id == one.id));
    }

    #[test]
    fn equal_names_share_a_place() {
        let name = |kernel: Option<&'static Function>| {
            // SAFETY: a function's name ends with a NUL, and stays.
            kernel.map(|k| unsafe { text(k.name()) }.to_bytes().to_vec())
        };
        let id = |kernel: Option<&'static Function>| kernel.map(|k| k.id);
        let gemm = intern_any(b"gemm");
        assert_eq!(name(gemm), Some(b"gemm".to_vec()));
        assert_eq!(id(intern_any(b"gemm")), id(gemm));
        let longest = [b'k'; NAME];
        assert_eq!(name(intern_any(&longest)), Some(longest.to_vec()));
        assert_eq!(name(intern_any(b"")), Some(Vec::new()));
        // Names that share a slot stay what they are; all are counted, each once.
        let kernels: Vec<_> =
            (0..5000).map(|i| (format!("kernel{i}"), intern_any(format!("kernel{i}").as_bytes()))).collect();
        let mut ids: Vec<u64> = all().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(kernels.iter().all(|(_, k)| id(*k).is_some_and(|id| ids.binary_search(&id).is_ok())));
        let again = |i: usize| intern_any(format!("kernel{i}").as_bytes());
        assert!(kernels.iter().enumerate().all(|(i, (_, k))| id(*k) == id(again(i))));
        for (expected, kernel) in kernels {
            assert_eq!(name(kernel), Some(expected.into_bytes()));
        }
    }
}
