//! Shared memory that a hostile program writes, drained.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hetrace_session::fuzzing::drain(data));
