//! Any bytes as a program or library: what is looked up in it before it runs, names of its functions, its probes and its
//! tables of unwinding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hetrace_session::fuzzing::elf(data));
