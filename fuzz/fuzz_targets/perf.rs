//! Any bytes as what the kernel left in a ring buffer of perf's: records of tracepoints, and samples of processors with
//! the registers that the first bytes say.
#![no_main]

use hetrace_os::perf::{record, sampled};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((mask, data)) = data.split_first_chunk() else { return };
    let mut records = record::Records::new(data);
    while records.next().is_some() {
        let place = records.place();
        assert!(!place.is_empty() && place.end <= data.len());
    }
    assert!(records.damaged() <= data.len());
    assert!(sampled::read(data, u64::from_le_bytes(*mask), drop) <= data.len());
});
