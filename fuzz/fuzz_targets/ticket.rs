//! Any bytes as what `hetrace recover` finds in a session's folder.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| hetrace_session::fuzzing::ticket(data));
