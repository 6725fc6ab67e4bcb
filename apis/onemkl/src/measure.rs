//! Integers that only the API itself knows: how wide they are, and counts made of them; named in `semantics.toml`.
//!
//! `MKL_INT` has 4 bytes in the interface LP64 and 8 in ILP64, under the same names. A wrapper passes 8 on. With 4, what is
//! above them is whatever the program left there, and must not be recorded; which interface it is the library says that is
//! loaded. `libmkl_rt` loads it at the first call, so of this one some numbers may be unknown, and are recorded as that.

use hetrace_interpose::library::named::Named;
pub use hetrace_interpose::measure::if_at_most;

/// Stands for a number that is not known: the model's `MKL_INT_UNKNOWN`.
const UNKNOWN: i64 = i64::MIN;
/// The most of an array that is recorded.
const MOST: usize = 64;

/// Interfaces with 4 bytes, and those with 8.
static INTERFACES: Named<2> =
    Named::new([&["libmkl_intel_lp64", "libmkl_gf_lp64"], &["libmkl_intel_ilp64", "libmkl_gf_ilp64"]]);

/// The number in a register, of which `low` is what its lower half says, by the interfaces that are loaded.
fn read<T: PartialEq>(register: T, low: T, unknown: T) -> T {
    match INTERFACES.loaded() {
        [true, false] => low,
        [false, true] => register,
        // The same with both, or not known.
        _ if low == register => register,
        _ => unknown,
    }
}

/// An integer of the interface.
pub fn integer(register: i64) -> i64 {
    read(register, i64::from(register as i32), UNKNOWN)
}

/// An integer without a sign.
pub fn unsigned(register: u64) -> u64 {
    read(register, u64::from(register as u32), UNKNOWN as u64)
}

/// An integer of the interface as the length of an array; 0 if it is not known or too much.
pub fn count(register: usize) -> usize {
    usize::try_from(integer(register as i64)).map_or(0, |n| if_at_most(n, MOST))
}
