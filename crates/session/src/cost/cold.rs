//! Other work: what a driver does in a call, as far as the nearest caches are concerned, and how much code records a call
//! behind it.

use std::arch::global_asm;
use std::hint::black_box;

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Lines of code, and of data, that are passed through: twice what the nearest caches have.
const LINES: usize = 1024;

/// Code that calls may come from another codegen unit to.
macro_rules! code {
    ($name:literal, $($line:expr),*) => {
        global_asm!(
            ".text",
            ".p2align 6",
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!($name, ":"),
            $($line),*
        );
    };
}

// Functions that return at once, each in a line of its own: 64 KiB of code.
code!("hetrace_cost_other_code", ".rept 1024", "ret", ".p2align 6", ".endr");

/// The instruction that goes on elsewhere.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp 2f"
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! jump {
    () => {
        "b 2f"
    };
}

// Lines of code more than our measurement has that a wrapper of a real library runs through for a recorded call: a launch
// of CUDA's passes 40, of which 12 are those of writing the record (`valgrind --tool=callgrind --dump-instr=yes`).
code!("hetrace_cost_wrapper_code", ".rept 28", jump!(), ".p2align 6", "2:", ".endr", "ret");

unsafe extern "C" {
    /// The first of the functions.
    fn hetrace_cost_other_code();
    /// Returns when it has passed through its lines.
    fn hetrace_cost_wrapper_code();
}

/// Passes through as much code as a wrapper has beside what writes its records.
#[inline(always)]
pub(super) fn wrapper() {
    // SAFETY: it takes and returns nothing, and does nothing but jump to its end.
    unsafe { hetrace_cost_wrapper_code() };
}

/// Data of other work.
#[derive(Debug)]
pub(super) struct Others(Vec<[u64; LINE / size_of::<u64>()]>);

impl Others {
    pub fn new() -> Self {
        Self(vec![[1; LINE / size_of::<u64>()]; LINES])
    }

    /// Passes through as much code and data as the nearest caches have, twice over. Takes some microseconds.
    pub fn work(&self) {
        let first = hetrace_cost_other_code as *const () as usize;
        for (number, line) in self.0.iter().enumerate() {
            // In no order that is foreseen, and each once.
            let number = number.wrapping_mul(389) % LINES;
            // SAFETY: there are so many functions of a line each behind the first one, which take and return nothing.
            let function: extern "C" fn() = unsafe { std::mem::transmute(first + number * LINE) };
            function();
            black_box(line[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_passed_through() {
        let mut numbers: Vec<usize> = (0..LINES).map(|number| number.wrapping_mul(389) % LINES).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..LINES));
        Others::new().work();
        wrapper();
    }
}
