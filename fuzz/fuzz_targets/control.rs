//! The control file of a service, which a hostile program writes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hetrace_session::fuzzing::control(data));
