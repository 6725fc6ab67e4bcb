//! Any bytes as a packed trace, opened and read.
#![no_main]

use std::path::Path;

use hetrace_ctf::read::{Files, Merge, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(files) = Files::from_archive(Path::new("fuzz"), data.to_vec()) else { return };
    let Ok((names, _)) = files.all() else { return };
    for name in names {
        let _ = files.read(&name);
    }
    let Ok(trace) = Trace::from_files(&files) else { return };
    for stream in 0..trace.stream_count() {
        let mut merge = Merge::of(trace.parts(stream, 3));
        while merge.next_event().is_some() {}
    }
});
