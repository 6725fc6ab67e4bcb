//! Any bytes as a stream of a kernel trace, and what its threads did by it.
#![no_main]

use std::sync::LazyLock;

use hetrace_ctf::class::TraceClass;
use hetrace_ctf::metadata;
use hetrace_ctf::read::Trace as Ctf;
use hetrace_trace::os;
use hetrace_trace::trace::{Manifest, Trace};
use libfuzzer_sys::fuzz_target;

static CLASS: LazyLock<TraceClass> = LazyLock::new(|| {
    let text = include_bytes!("../../crates/os/tests/golden/metadata.tsdl");
    metadata::parse(text).expect("the metadata of the tests")
});

fuzz_target!(|data: &[u8]| {
    // Two CPUs: what is before the first half, and what is after it.
    let (one, other) = data.split_at(data.len() / 2);
    let streams = vec![("channel0_0".to_owned(), one.to_vec()), ("channel0_1".to_owned(), other.to_vec())];
    let Ok(ctf) = Ctf::from_class(CLASS.clone(), streams) else { return };
    let kernel = Trace::new(ctf, Vec::new(), Manifest::default());
    let Ok(Ok(system)) = os::read(&kernel, |pid| pid % 2 == 0, None) else { return };
    for life in &system.lives {
        let mut last = 0;
        for stretch in &life.stretches {
            assert!(stretch.start >= last && stretch.end > stretch.start);
            last = stretch.end;
            let _ = system.text(stretch.state);
        }
        let person = system.person(life.person);
        let _ = system.shares(person.pid.unwrap_or(0), person.tid, 0, u64::MAX);
    }
});
